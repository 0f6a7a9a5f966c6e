"""Numbers of notebooks and exercises come from the order of the lessons; pages written by hand agree with it."""

import re

import pytest

from tools.build_notebooks import read_source
from tools.moves import PAGES, chapters_that_follow, has_followed, renumber
from tools.numbering import NUMBERS, ORDER, ROOT, exercises, numbers, render
from tools.report.notebooks import key
from tools.series import SERIES, has_tag

EXERCISES = {number: title for name in ORDER for number, title in exercises(name).values()}
TEXTS = {path: path.read_text("utf-8") for path in PAGES}


def test_names_become_numbers_in_texts_and_strings_and_no_list_of_lists_does():
    assert (
        render("# in [[masks]] and ([[masks.ipynb]])")
        == f"# in {NUMBERS['masks']} and ({NUMBERS['masks']}_masks.ipynb)"
    )
    assert render('print("of [[SelfAttention]]")') == f'print("of {numbers()["SelfAttention"]}")'
    assert render("tokens = [[word]]  # of [[masks]]") == f"tokens = [[word]]  # of {NUMBERS['masks']}"
    with pytest.raises(ValueError, match=r"\[\[causal_maks\]\] must name .* Fix: is it \[\[causal_mask\]\]\?"):
        render("# as in [[causal_maks]]")


def test_a_name_is_one_of_a_lesson_or_of_one_exercise():
    assert len(numbers()) == 2 * len(ORDER) + sum(len(exercises(name)) for name in ORDER)


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.slug)
def test_the_heading_of_an_exercise_names_its_check(notebook):
    cells = read_source(notebook.source).cells
    checks = [key(cells[i + 2].source) for i, cell in enumerate(cells) if has_tag(cell, "exercise")]
    assert checks == list(exercises(notebook.slug))


RAW = re.compile(
    rf"[Nn]otebooks?(?:\s|\n# )+\d\d\b|[Ee]xercises?(?:\s|\n# )+\d+\.\d|\b\d\d_(?:{'|'.join(ORDER)})\b|^# # \d\d ·"
    r"|^# .*(?<![\w.,$-])0\d\b(?![.:%])",
    re.MULTILINE,
)


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.slug)
def test_a_source_says_no_number_of_a_notebook_or_an_exercise(notebook):
    found = [match[0] for match in RAW.finditer(notebook.source.read_text("utf-8"))]
    assert not found, "Fix: write the name, [[masks]] or [[causal_mask]]; the build makes a number of it"


@pytest.mark.parametrize("package", ["attnlib", "attncourse"])
def test_a_package_says_titles_and_names(package):
    """What readers see there is not built, so no number in it would follow the order."""
    raw = re.compile(r"[Nn]otebooks? [01]\d\b|[Ee]xercises? \d+\.\d")
    texts = {path: path.read_text("utf-8") for path in (ROOT / package).rglob("*.py")}
    assert not [(path.name, match[0]) for path, text in texts.items() for match in raw.finditer(text)]


def test_what_a_page_says_of_a_number_agrees_with_the_order():
    """The words of a link, a heading, the title of an exercise. The build writes most of them after a new order."""
    wrong = []
    for path, text in TEXTS.items():
        links = re.findall(rf"\[(\d\d)\b[^\]]*\]\([^)\s]*\d\d_({'|'.join(ORDER)})\.ipynb", text)
        wrong += [(path.name, number, name) for number, name in links if NUMBERS[name] != number]
        headings = dict(re.findall(r"^## (\d\d) · (.+)$", text, re.MULTILINE))
        titles = {notebook.number: notebook.title.lower() for notebook in SERIES}
        wrong += [(path.name, n, title) for n, title in headings.items() if titles[n] != title.lower()]
        told = re.findall(r"[Ee]xercise (\d+\.\d+) · ([^*|\n]+)", text) + re.findall(
            r"^\*(\d+\.\d+) (.+)\*$", text, re.M
        )
        wrong += [(path.name, n, title) for n, title in told if EXERCISES.get(n) != title]
        named = re.findall(r"\b[Ee]xercises? (\d+\.\d+)", text)
        wrong += [(path.name, n) for n in named if n not in EXERCISES]
    assert not wrong, "Fix: the number in the page is that of the order in attncourse/lessons"


def test_pages_follow_a_new_order_and_come_back():
    """Masks and multi-head change places: two numbers, and those of their exercises."""
    a, b = NUMBERS["masks"], NUMBERS["multi_head"]
    there = {a: b, b: a}
    for one, other in ((a, b), (b, a)):
        there |= {n: f"{int(other)}.{n.partition('.')[2]}" for n in EXERCISES if n.startswith(f"{int(one)}.")}
    for text in TEXTS.values():
        moved, _ = renumber(text, there)
        assert renumber(moved, {new: old for old, new in there.items()})[0] == text
    page = f"Notebooks {a} and 01, exercise {int(b)}.1, [{a} masks]({a}_masks.ipynb), section 1.5, 0.{a}, ({a}, {b})"
    page += f", 1e-{a}."
    moved, doubtful = renumber(page, there)
    assert moved == (
        f"Notebooks {b} and 01, exercise {int(a)}.1, [{b} masks]({b}_masks.ipynb), section 1.5, 0.{a}, ({b}, {a})"
        f", 1e-{a}."
    )
    assert not doubtful
    assert renumber("As in 12.\n12 ships", {"12": "13"}) == ("As in 12.\n12 ships", ["As in 12."])


def test_exercises_whose_titles_have_their_numbers_already_are_not_moved_again():
    """As in a page that was changed together with a source, before the notebook is built."""
    first, second = (f"{int(NUMBERS['masks'])}.{n}" for n in (1, 2))
    page = f"*{first} {EXERCISES[first]}*\n\n**Exercise {second} · {EXERCISES[second]}**"
    assert chapters_that_follow(page) == {first[0]}
    assert not chapters_that_follow(page.replace(second, first))


def test_a_page_whose_links_have_their_new_numbers_is_not_moved_again():
    """As after a merge: the pages have the new order, the built notebooks not yet."""
    number, before = NUMBERS["casebook"], NUMBERS[ORDER[-2]]
    assert has_followed(f"[{number}]({number}_casebook.ipynb), ({before})", {before: number})
    assert not has_followed(f"[{before}]({before}_casebook.ipynb)", {before: number})
    assert not has_followed(f"[05](05_masks.ipynb), ({before})", {before: number})  # tells nothing

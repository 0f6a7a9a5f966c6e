"""The test before and after: every option is computed, and the analysis finds the truth of simulated classes."""

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from assess import inventory, inventory_answers
from assess.simulated_class import HARD, chances, sheet, simulate_class
from attncourse import MISTAKES
from tools.numbering import NUMBERS
from tools.series import tomllib

ITEMS = inventory.ITEMS
EXTRA = tomllib.loads((inventory.FOLDER / "items.toml").read_text("utf-8"))["mistakes"]


COMPUTED = inventory_answers.COMPUTED


@pytest.mark.parametrize("i", range(12))
@pytest.mark.parametrize("form", ["A", "B"])
def test_every_option_is_what_its_mistake_gives(i, form):
    known = inventory_answers.answers(i, form)
    options = {ITEMS[i][form][letter][1]: ITEMS[i][form][letter][0] for letter in inventory.LETTERS}
    assert options == {id: known[id] for id in options}
    assert len(set(options.values())) == 4 and set(options) - {"right"} <= {*MISTAKES, *EXTRA}


@pytest.mark.parametrize("form", ["A", "B"])
def test_the_numbers_computed_with_stand_in_the_questions(form):
    for item, (_, *given) in zip(ITEMS, COMPUTED, strict=True):
        asked = set(re.findall(r"[a-z]+|\d+(?:\.\d+)?", item[form]["asked"]))
        asked |= {str(float(x)) for x in asked if x[0].isdigit()}
        words = flat(given["AB".index(form)])
        if "from which token" not in item[form]["asked"].lower():  # a map's cells have two decimals
            assert {str(x) for x in words} <= asked, item["topic"]


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (tuple, list, np.ndarray)) else [x]


def test_a_mistake_gets_no_item_right_in_which_it_matters():
    for form in "AB":
        for i, item in enumerate(ITEMS):
            right = next(x for x in "abcd" if item[form][x][1] == "right")
            changed = set(inventory_answers.answers(i, form)) - {"right"}
            for id in {id for j in range(12) for id in inventory_answers.answers(j, form)} - {"right"}:
                answered = inventory_answers.letters(ITEMS, form, id)[i]
                assert (answered != right) == (id in changed), (form, i + 1, id)
                if id in inventory.mistakes_offered(i):  # its own letter, and no other
                    assert item[form][answered][1] == id


def test_no_rule_of_thumb_settles_more_than_one_item():
    for form in "AB":
        for rule in inventory_answers.RULES:
            settled = inventory_answers.solved_by(rule, ITEMS, form)
            if rule.__name__.startswith("word_for_word"):  # docs/inventory/README.md says so
                assert settled == ([12] if rule is inventory_answers.word_for_word else [9, 10, 12]), (form, rule)
            assert len(settled) <= 1 or rule is inventory_answers.word_for_word_and_causal, (form, rule.__name__)
    texts = ("0.75", "0.50", "0.30", "0.20"), ("0.75, 0.25", "1.00, 1.00", "0.50, 0.10", "0.30, 0.30")
    easy = [
        {"A": {"asked": "3 of 4?", **{x: [t, id] for x, t, id in zip("abcd", options, ("right", *"xyz"), strict=True)}}}
        for options in texts
    ]
    settled = {rule.__name__: inventory_answers.solved_by(rule, easy, "A") for rule in inventory_answers.RULES}
    assert settled["quotient_of_two_numbers"] == settled["largest_number"] == settled["least_round"][:1] == [1]
    assert settled["sums_to_one"] == [2]


@pytest.mark.parametrize("form", ["A", "B"])
def test_each_reading_is_that_of_one_question_and_each_question_has_one(form):
    fitting = [
        [i for i, item in enumerate(ITEMS) if re.search(pattern, item[form]["asked"], re.DOTALL)]
        for pattern, _ in inventory_answers.READINGS
    ]
    assert fitting == [[i] for i in range(12)]
    for known, _ in inventory_answers.CAUSAL:
        assert known in [pattern for pattern, _ in inventory_answers.READINGS]


@pytest.mark.parametrize("form", ["A", "B"])
def test_somebody_who_does_what_the_words_say_gets_one_question_right_and_ten_wrong(form):
    left = [
        inventory_answers.word_for_word(item[form]["asked"], {x: item[form][x][0] for x in "abcd"}) for item in ITEMS
    ]
    chosen = [item[form][some[0]][1] if len(some) == 1 else "" for item, some in zip(ITEMS, left, strict=True)]
    assert chosen == [
        "zero_query_overlooked", "swapped_query_key", "ratio_grows_with_score", "softmax_over_everything",
        "scale_by_d_k", "scale_by_d_k",
        "no_softmax", "doubled_throughout", "mask_shows_the_next", "mask_ignored", "", "right",
    ]  # fmt: skip


def test_a_question_has_the_powers_of_e_that_it_needs():
    for form in "AB":
        for i in (7, 11):  # in Moodle there is no page around a question
            assert "Here $e^" in ITEMS[i - 1][form]["asked"], i
        assert "e^" not in inventory.form(form).partition("**1.**")[0]
        powers = re.findall(r"\$e\^{?([\d.]+)}? = ([\d.]+)\$", inventory.form(form))
        assert len(powers) == 5 and all(f"{np.exp(float(x)):.1f}" == told for x, told in powers)


def test_the_forms_are_parallel_and_no_letter_is_the_better_guess():
    assert len(ITEMS) == len(COMPUTED) == 12
    for item in ITEMS:
        assert {item["A"][x][1] for x in "abcd"} == {item["B"][x][1] for x in "abcd"}
        assert all(not (item["A"][x][1] == item["B"][x][1] == "right") for x in "abcd")  # no letter to remember
    for form in "AB":
        assert sorted(x for item in ITEMS for x in "abcd" if item[form][x][1] == "right") == list("aaabbbcccddd")
        assert (inventory.FOLDER / f"form_{form}.md").read_text("utf-8") == inventory.form(form)
        assert not any(id in inventory.form(form) for id in [*MISTAKES, *EXTRA])
    assert (inventory.FOLDER / "answers.md").read_text("utf-8") == inventory.answers_page()


def test_readme_says_which_questions_a_notebook_teaches():
    readme = (inventory.FOLDER / "README.md").read_text("utf-8")
    assert "Notebooks 01 to 03 teach questions 1 to 8" in readme
    assert (
        inventory.taught_until(NUMBERS["scaling"]).tolist() == [True] * 8 + [False] * 4
        and inventory.taught_until(NUMBERS["multi_head"]).all()
    )


# --- the analysis, on classes whose truth is known


def true_gain(learnt):
    ability = np.random.default_rng(1).normal(-0.5, 0.8, 100_000)
    return (chances(ability + learnt) - chances(ability)).mean()


def test_the_interval_holds_the_true_gain_in_95_of_100_classes():
    truth, held, outside = true_gain(1.0), 0, 0
    for seed in range(200):
        sheets = simulate_class(seed, 1.0, n=15)
        _, low, high = inventory.interval(inventory.gains(sheets, "course"), inventory.gains(sheets, "control"))
        held += low <= truth <= high
        _, low, high = inventory.interval(inventory.gains(sheets, "control"))  # who learn nothing
        outside += not low <= 0 <= high
    assert 0.1 < truth < 0.2 and 182 <= held <= 198 and outside <= 18, (truth, held, outside)


def test_mistakes_are_told_by_how_often_they_are_offered():
    held = {"scale_by_d_k": 0.5, "mask_ignored": 0.5}  # one stands in three items, one in a single one
    sheets = simulate_class(0, 0.0, n=1500, common=held)
    rate = {id: chosen / n for id, (n, chosen) in inventory.mistakes(sheets).items()}
    counts = inventory.mistakes(sheets)
    assert counts["scale_by_d_k"][0] == 3 * counts["mask_ignored"][0] == 3 * len(sheets)
    for id in held:  # who is wrong and holds it takes it: half of all, and a third of the others who are wrong
        where = [i for i in range(12) if id in inventory.mistakes_offered(i)]
        wrong = np.mean([1 - s.right[where] for s in sheets])
        assert rate[id] == pytest.approx(wrong * (0.5 + 0.5 / 3), abs=0.02), id
    assert max(rate, key=rate.get) in held


def test_so_many_people_see_a_gain_in_four_classes_of_five():
    truth, seen = true_gain(1.2), 0
    spread = np.std([g for seed in range(20) for g in inventory.gains(simulate_class(seed, 1.2), "course")], ddof=1)
    n = inventory.people(truth, spread)
    for seed in range(200):
        sheets = simulate_class(seed, 1.2, n=n)
        seen += inventory.interval(inventory.gains(sheets, "course"), inventory.gains(sheets, "control"))[1] > 0
    assert 0.7 < seen / 200 < 0.9 and n < inventory.people(truth / 2, spread), (n, seen)
    readme = (inventory.FOLDER / "README.md").read_text("utf-8")
    few, many = inventory.people(0.2, 0.17), inventory.people(0.1, 0.17)
    assert f"{many} people in each group see a gain of 0.10" in readme and f"and {few} see one of 0.20" in readme


def test_what_is_left_a_week_later_is_told_apart():
    sheets = simulate_class(0, 2.0, n=300, later=1.0)
    after, later = (inventory.gains(sheets, "course", until).mean() for until in ("after", "later"))
    assert after == pytest.approx(true_gain(2.0), abs=0.03) and later == pytest.approx(true_gain(1.0), abs=0.03)
    text = inventory.class_report(sheets)
    assert "course, before to later: 300 people" in text and "course less control, later: +0." in text
    some = inventory.class_report(sheets, inventory.taught_until(NUMBERS["scaling"]))
    assert some != text and some.splitlines()[0].startswith("course, before to after: 300 people")


def test_difficulty_and_discrimination_are_those_of_the_model():
    rng = np.random.default_rng(0)
    ability = rng.normal(0, 1.2, 600)
    sheets = [sheet(rng, str(i), "course", "before", "A", a, noise=[4]) for i, a in enumerate(ability)]
    share, apart = inventory.items(sheets)
    assert np.abs(share - chances(ability, [4]).mean(0)).max() < 0.06
    assert abs(apart[4]) < 0.1 and np.delete(apart, 4).min() > 0.1
    constant = [
        s._replace(letters=tuple(next(x for x in "abcd" if i["A"][x][1] == "right") for i in ITEMS)) for s in sheets
    ]
    assert np.isnan(inventory.items(constant)[1]).all()


def discriminations(rng, n, hard, noise=(), middle=0.0):
    """Return the discrimination of each item among n people; items in `noise` are only guessed."""
    p = 0.25 + 0.75 / (1 + np.exp(hard - rng.normal(middle, 0.8, n)[:, None]))
    p[:, list(noise)] = 0.25
    return inventory.items([SimpleNamespace(right=row) for row in (rng.random(p.shape) < p).astype(float)])[1]


def ends(seen, n):
    """Return the lower and the upper ends of the intervals that are printed."""
    told = [inventory.correlation_text(r, n) for r in seen]
    return np.array([re.findall(r"[+-]\d\.\d\d", text)[1:] or (np.nan, np.nan) for text in told], dtype=float).T


def test_the_interval_of_a_discrimination_holds_the_true_one_where_its_number_misleads():
    rng, alike = np.random.default_rng(0), np.zeros(len(ITEMS))  # of one difficulty: all discriminate alike
    truth = discriminations(rng, 20_000, alike).mean()
    seen = np.concatenate([discriminations(rng, 20, alike) for _ in range(100)])
    low, high = ends(seen[~np.isnan(seen)], 20)
    assert 0.1 < truth < 0.3 and (seen < 0).mean() > 0.15  # so many fall below 0 by chance
    assert 0.92 < ((low <= truth) & (truth <= high)).mean() < 0.98 and (high < 0).mean() < 0.01
    assert inventory.correlation_text(0, 20) == "+0.00 (-0.44 to +0.44)"  # README: about 0.4 to either side
    assert inventory.correlation_text(0.5, 9) == inventory.correlation_text(np.nan, 40) == "-"


def test_an_upper_end_below_a_tenth_accuses_sound_questions_in_small_classes():
    rng = np.random.default_rng(0)
    accused, found = {}, {}
    for n, classes in ((20, 200), (200, 100)):
        sound = [
            ends(np.concatenate([discriminations(rng, n, HARD, (), -0.5) for _ in "AB"]), n) for _ in range(classes)
        ]
        guessed = [ends(discriminations(rng, n, HARD, [4], -0.5)[4:5], n)[1, 0] < 0.1 for _ in range(classes)]
        accused[n], found[n] = np.mean([(high < 0.1).any() for _, high in sound]), np.mean(guessed)
    assert 0.2 < accused[20] < 0.4 and found[20] < 0.1  # README: about 30 of 100, and 5
    assert 0.1 < accused[200] < 0.2 and 0.2 < found[200] < 0.4  # about 15, and 30
    assert all((low < 0.1).mean() > 0.9 for low, _ in sound[:1])  # the lower end says nothing


def write_answers(tmp_path, sheets, columns=None):
    path = tmp_path / "answers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns or ["person", "group", "when", "form", *range(1, 13)])
        writer.writerows([s.person, s.group, s.when, s.form, *s.letters] for s in sheets)
    return path


def test_a_table_is_read_and_told(tmp_path):
    sheets = simulate_class(0, 1.5)
    assert inventory.parse_sheets(write_answers(tmp_path, sheets)) == sheets
    text = inventory.class_report(sheets)
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 25 and len({len(line) for line in table}) == 1  # the columns are aligned
    n = sum(c == "no_scale" for s in sheets if (s.group, s.when) == ("course", "before") for c in s.chosen)
    assert "course, before to after: 25 people, +0." in text and "course less control, after: +0." in text
    assert next(line.split()[1:4] for line in text.splitlines() if line.startswith("no_scale ")) == [str(n), "of", "50"]
    alone = inventory.class_report([s for s in sheets if s.group == "course"])
    assert "no control: the gain may come from anything" in alone
    assert "an interval needs 5 people" in inventory.class_report(sheets[:6])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"group": "class"}, r"line 2: group is course or control, got 'class'. Fix"),
        ({"when": "soon"}, r"line 2: when is before, after or later, got 'soon'. Fix"),
        ({"form": "C"}, r"line 2: form is A or B, got 'C'. Fix"),
        ({"letters": ("e", *"bcdabcdabcd")}, r"line 2: question 1 has 'e'. Expected a, b, c, d or nothing. Fix"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(tmp_path, change, says):
    first, *others = simulate_class(0, 1.0)
    with pytest.raises(ValueError, match=says):
        inventory.parse_sheets(write_answers(tmp_path, [first._replace(**change), *others]))


def test_a_table_from_a_spreadsheet_is_read_and_a_forgotten_comma_is_seen(tmp_path):
    sheets = simulate_class(0, 1.0)
    path = write_answers(tmp_path, sheets)
    path.write_text("\ufeff" + path.read_text("utf-8"), encoding="utf-8")
    assert inventory.parse_sheets(path) == sheets
    head, first, *others = path.read_text("utf-8-sig").splitlines()
    for line, cells in ((first.replace("before,", "before"), 15), (f"{first},a", 17)):
        path.write_text("\n".join([head, line, *others]), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"line 2: expected 16 cells, got {cells}. Fix"):
            inventory.parse_sheets(path)


def test_a_table_with_other_columns_or_a_person_twice_says_so(tmp_path):
    sheets = simulate_class(0, 1.0)
    with pytest.raises(ValueError, match=r"expected the columns person,group.+ got \['who'.+ Fix"):
        inventory.parse_sheets(write_answers(tmp_path, sheets, ["who", "group", "when", "form", *range(1, 13)]))
    with pytest.raises(ValueError, match=r"is there twice. Fix"):
        inventory.parse_sheets(write_answers(tmp_path, [*sheets, sheets[0]]))


@pytest.mark.slow
def test_the_notebook_of_the_analysis_is_its_source_run():
    made, kept = (
        json.loads(text) for text in (inventory.notebook(), (inventory.FOLDER / "analysis.ipynb").read_text("utf-8"))
    )
    assert [c["source"] for c in made["cells"]] == [c["source"] for c in kept["cells"]]
    for new, old in zip(made["cells"], kept["cells"], strict=True):
        texts = [["".join(o.get("text", "")) for o in c.get("outputs", [])] for c in (new, old)]
        assert texts[0] == texts[1]

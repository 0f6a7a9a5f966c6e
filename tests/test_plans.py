"""The plans of TEACHING.md as lectures: each heading has slides, each slide a sentence; an error names the fix."""

import nbformat
import pytest

from tools import plans
from tools.build_notebooks import read_source
from tools.series import SERIES, find_notebook, has_tag

GUIDE = plans.GUIDE.read_text("utf-8")
CELLS = {notebook.number: nbformat.read(notebook.built, as_version=4).cells for notebook in SERIES}


def text(source, *tags):
    return nbformat.v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source, *tags, **metadata):
    output = nbformat.v4.new_output("stream", text="1")
    return nbformat.v4.new_code_cell(source, outputs=[output], metadata={"tags": list(tags)} | metadata)


def test_the_plans_have_short_names():
    assert list(plans.names(GUIDE)) == ["45", "90", "half-day"]


def test_an_unknown_plan_names_those_there_are():
    with pytest.raises(SystemExit, match=r"no plan '60'\. Fix: one of 45, 90, half-day"):
        plans.plan_of(GUIDE, "60")


@pytest.mark.parametrize("name, minutes", [("45", 40), ("90", 85), ("half-day", 240)])
def test_a_plan_is_read_whole(name, minutes):
    plan = plans.plan_of(GUIDE, name)
    assert plan.minutes == minutes
    assert [step.begins for step in plan.steps][:2] == [0, plan.steps[0].minutes]
    assert plan.steps[0].number == SERIES[0].number and plan.steps[-1].headings in (["Questions"], ["To take home"])
    assert plan.lead.endswith(".") and "|" not in plan.lead
    late = plans.bold(plan.lead.partition("If you are late,")[2])
    assert late and set(late) <= {heading for step in plan.steps for heading in step.headings}


@pytest.mark.parametrize("name", plans.names(GUIDE))
def test_each_heading_of_a_plan_makes_slides_with_a_sentence(name):
    for step in plans.plan_of(GUIDE, name).steps:
        if not step.number:
            continue
        found = plans.sections(CELLS[step.number])
        for heading in step.headings:
            cells = plans.section(found, heading, step.number)
            if has_tag(cells[0], "exercise"):
                continue
            assert plans.slide_cells(cells), heading
            for cell in plans.slide_cells(cells):
                assert plans.sentence(cell, cells, CELLS[step.number]), cell.source


def test_a_heading_that_does_not_exist_names_the_nearest():
    with pytest.raises(SystemExit, match=r"\d\d_scaling has no heading '1 · How long.* is it '1 · How large"):
        plans.section(
            plans.sections(CELLS[find_notebook("scaling").number]),
            "1 · How long is a score?",
            find_notebook("scaling").name,
        )


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_every_tag_quotes_a_sentence_of_its_notebook(notebook):
    cells = read_source(notebook.source).cells
    for cell in cells:
        if "says" in cell.metadata:
            assert has_tag(cell, "slide", "slide-code")
            assert plans.sentence(cell, [cell], cells)


def test_a_quotation_of_nothing_names_the_fix():
    cell = code("x", "slide", says="No such words")
    with pytest.raises(SystemExit, match=r"no sentence starts with 'No such words'\. Fix: quote its first words"):
        plans.sentence(cell, [cell], [text("Some words.")])


def test_a_cell_may_quote_several_sentences():
    cell = code("x", "slide", says=["Three", "We divide", "One"])
    texts = [text("One. Two."), text("We divide:\n\n$$\nw = 1.\n$$\n\n*Three*.")]
    assert plans.sentence(cell, [cell, *texts], []) == "*Three*. We divide:\n\n$$\nw = 1.\n$$\n\n One."


def test_the_sentence_is_the_one_below_else_the_one_above():
    above, cell, below = text("One. Two."), code("x"), text("Three. Four.")
    assert plans.sentence(cell, [above, cell, below], []) == "Three."
    assert plans.sentence(cell, [above, cell], []) == "Two."


def test_sentences_lose_links_and_keep_the_formula_they_announce():
    said = "As [A et al. (2017)](x.md#a) say ([source](y)), it is so. *Then* we divide:\n\n$$\nw = 1.\n$$"
    assert plans.sentences([text(said + "\n\n- **One.** Two.")]) == [
        "As A et al. (2017) say, it is so.",
        "*Then* we divide:\n\n$$\nw = 1.\n$$",
        "**One.**",
        "Two.",
    ]


def test_a_section_goes_on_behind_the_solution_of_its_exercise():
    cells = [
        text("# T"),
        text("before\n\n## A\n\nfirst"),
        text("### Exercise 1.1 · E\n\n**Goal.** Do.", "exercise"),
        text("<details>\n\n# no heading\n\n</details>", "solution"),
        code("answer"),
        text("last\n\n## B\n\nx"),
    ]
    found = plans.sections(cells)
    assert [cell.source for cell in found["A"]] == ["first", "answer", "last"]
    assert list(found) == ["", "A", "Exercise 1.1 · E", "B"]


def test_a_question_belongs_to_the_first_slide_below_it():
    cells = plans.sections(CELLS[find_notebook("by_hand").number])["Step 4 · Softmax: from scores to weights"]
    (cell,) = plans.slide_cells(cells)
    asked, question = plans.question_of(cell, cells)
    assert asked.startswith("The scores of *she* are 5, 0, 3, 2.") and question.right == "c"
    asks = [text("Now. **Predict.** What?"), code("first", "slide"), code("second", "slide")]
    assert plans.question_of(asks[1], asks) == ("Now. What?", None) and plans.question_of(asks[2], asks) == ("", None)


def test_tags_choose_the_slides_else_the_first_picture_does():
    picture = code("draw()")
    picture.outputs = [nbformat.v4.new_output("display_data", {"image/png": ""})]
    assert plans.slide_cells([code("a"), picture, code("b", "slide")])[0].source == "b"
    assert plans.slide_cells([code("a"), picture])[0].source == "draw()"
    assert plans.slide_cells([code("a"), code("b")])[0].source == "a"


@pytest.mark.parametrize("number", [notebook.number for notebook in SERIES])
def test_what_is_said_belongs_to_headings_of_the_notebook(number):
    found = plans.sections(CELLS[number])
    said = plans.words_to_say(GUIDE, number)
    assert said and all(set(headings) <= set(found) for headings, _ in said)
    assert not any("*Ask" in words or "\n" in words for _, words in said)

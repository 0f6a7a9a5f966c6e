"""Write docs/goals.md: of each goal of the series its exercises, and where the exam and the inventory ask for it.

python -m assess.goals
"""

from tools import teaching
from tools.series import ROOT, SERIES

from . import exam, inventory

PAGE = ROOT / "docs" / "goals.md"
# By what shows a goal in notebooks/series.toml: an exercise, a question or a heading; nothing, where no goal says it.
IN_EXAM = {
    exam.by_hand: ["output_of_she"],
    exam.likeness: ["Where likeness fails"],
    exam.a_map: ["How to read a heatmap", "One row, from start to end"],
    exam.why_divide: ["variance_of_scores", "raised_by_a_tenth"],
    exam.wrong_code: ["scaled_dot_product_attention"],
    exam.hides: ["example_that_tells"],
    exam.zero_after: ["zero_after"],
    exam.two_masks: ["causal_mask"],
    exam.dead_row: [],
    exam.chunk: ["causal_mask"],
    exam.shapes: ["multi_head_attention"],
    exam.wrong_cut: ["split_heads"],
    exam.cache: ["decode_step"],
}
IN_INVENTORY = [
    "",
    "scores_of_she",
    "weights_of_she",
    "scaled_dot_product_attention",
    "variance_of_scores",
    "variance_of_scores",
    "How to read a heatmap",
    "output_of_she",
    "causal_mask",
    "masked_attention",
    "multi_head_attention",
    "split_heads",
]
LEAD = """\
# Where each goal is asked

Behind each goal stand its exercises, else the headings of its questions; then the questions of the
[exam](exam/README.md) and of the [test before and after](inventory/README.md). The exam asks for {} of the {} goals and
the test for {}; what shows the others is their exercises alone. An exam for a plan numbers its questions anew. Written
by `python -m assess.goals`.

"""


def goals_page():
    """Return the page, as Markdown."""
    titles = [question.title for question in exam.variant(exam.EXAMPLE)]
    rows, asked, tested = [], 0, 0
    for notebook in SERIES:
        questions, _ = teaching.contents(notebook)
        for goal in notebook.goals:
            here = set(goal.shown_by)
            in_exam = [i for i, make in enumerate(exam.QUESTIONS) if here & {*IN_EXAM[make]}]
            items = [str(i) for i, name in enumerate(IN_INVENTORY, 1) if name in here]
            asked, tested = asked + bool(in_exam), tested + bool(items)
            told = ", ".join(f"{i + 1} {titles[i]}" for i in in_exam)
            shown = teaching.shown_where(notebook, goal, questions)
            rows.append((notebook.number, goal.sentence, shown, told, ", ".join(items)))
    head = ("notebook", "goal", "exercises", "exam", "before and after")
    return LEAD.format(asked, len(rows), tested) + exam.table(head, rows) + "\n"


if __name__ == "__main__":
    inventory.write_page(PAGE, goals_page())

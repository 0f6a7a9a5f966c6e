"""Write the votes, the test before and after, and an exam as questions for Moodle, in its XML format.

python -m assess.moodle                   _moodle/votes.xml, inventory_A.xml, inventory_B.xml
python -m assess.moodle WORD              and exam_WORD.xml: the variant of assess/exam.py
python -m assess.moodle WORD --plan 90    the same for a plan, or up to a notebook by --upto

The format: docs.moodle.org, "Moodle XML format". A choice of letters gives one point or none; its feedback is the reply
that the notebooks give to that letter.
"""

import re
import xml.etree.ElementTree as ET

from attncourse import PREDICTIONS
from tools import teaching
from tools.series import ROOT, SERIES

from . import exam, inventory


def as_html(text):
    """Return Markdown of our questions as HTML: code, emphasis, tables; formulas stay for Moodle's MathJax."""
    import markdown_it

    return markdown_it.MarkdownIt().enable("table").render(re.sub(r"\$(.+?)\$", r"\\\\(\1\\\\)", text)).strip()


def element(parent, tag, text=None, **attributes):
    made = ET.SubElement(parent, tag, attributes)
    if text is not None:
        ET.SubElement(made, "text").text = text
    return made


def question(quiz, kind, name, asked):
    made = ET.SubElement(quiz, "question", type=kind)
    element(made, "name", name)
    element(made, "questiontext", as_html(asked), format="html")
    return made


def choice(quiz, name, asked, options, right, why=None):
    """Add a question with one right option; `options` and `why` go by letter."""
    made = question(quiz, "multichoice", name, asked)
    for tag, text in (
        ("single", "true"),
        ("shuffleanswers", "false"),
        ("answernumbering", "abc"),
        ("defaultgrade", "1"),
    ):
        ET.SubElement(made, tag).text = text
    for letter in sorted(options):
        answer = element(
            made, "answer", as_html(options[letter]), fraction="100" if letter == right else "0", format="html"
        )
        element(answer, "feedback", as_html(why[letter]) if why else "", format="html")


def category(quiz, *path):
    """Put what follows into a category of the question bank, as Moodle's own exports do."""
    names = (name.replace("/", "//") for name in path)
    element(
        ET.SubElement(quiz, "question", type="category"), "category", "/".join(["$course$", "top", "attnlib", *names])
    )


def votes():
    """Return the votes, a category for each notebook, each by the heading under which a reader meets it."""
    quiz = ET.Element("quiz")
    for notebook in SERIES:
        headings, _ = teaching.contents(notebook)
        for i, (name, words) in enumerate(teaching.words_by_question(notebook).items(), 1):
            if i == 1:
                category(quiz, "votes", f"{notebook.number} {teaching.title(notebook)}")
            known, options = PREDICTIONS[name], {x: words[x] for x in PREDICTIONS[name].options}
            called = f"{notebook.number} vote {i:02} · {headings[name]}"
            choice(quiz, called, words["asked"], options, known.right, known.because)
    return quiz


def form(name):
    quiz = ET.Element("quiz")
    category(quiz, f"before and after, form {name}")
    for i, item in enumerate(inventory.ITEMS, 1):
        options = {x: item[name][x][0] for x in inventory.LETTERS}
        right = next(x for x in inventory.LETTERS if item[name][x][1] == inventory.RIGHT)
        choice(quiz, f"{name}{i:02} {item['topic']}", item[name]["asked"], options, right)
    return quiz


def essays(questions, word):
    quiz = ET.Element("quiz")
    category(quiz, f"exam {word}")
    for i, q in enumerate(questions, 1):
        made = question(quiz, "essay", f"{i:02} {q.title}", q.asked)
        ET.SubElement(made, "defaultgrade").text = str(q.points)
        element(made, "graderinfo", as_html(q.key), format="html")
    return quiz


def main():
    word, questions = exam.parse_arguments(__doc__)
    banks = {"votes": votes(), "inventory_A": form("A"), "inventory_B": form("B")}
    banks |= {f"exam_{word}": essays(questions, word)} if word else {}
    folder = ROOT / "_moodle"
    folder.mkdir(exist_ok=True)
    for name, quiz in banks.items():
        ET.indent(quiz)
        (folder / f"{name}.xml").write_bytes(ET.tostring(quiz, "utf-8", xml_declaration=True))
        print((folder / f"{name}.xml").relative_to(ROOT))


if __name__ == "__main__":
    main()

"""Turn a plan of TEACHING.md into one deck, _slides/lecture_NAME.html: one file that needs no network.

    python -m tools.lecture 45        or 90, half-day

Which cells make slides, plans.py says; what a slide shows in place of what its cell prints, lecture.toml. Notes for the
speaker (S) come from TEACHING, where *Next slide.* parts those of a heading.
"""

import argparse
import base64
import html
import math
import re
import sys
import zlib
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
import tomllib
from jinja2 import Template

from attnlib import softmax
from attnlib.examples import SENTENCE as SHE
from attnlib.live.controls import DIVISOR
from lite.first_page import first_sentence

from . import plans
from .build_notebooks import read_source
from .licence import LICENCE
from .links import address
from .numbering import NAME, number
from .page import ICON, glyph, highlight_code, inline, look, markdown
from .report.notebooks import key
from .series import REPLIES, ROOT, SERIES, find_notebook, has_tag
from .slides import in_reveal, output_html

PICTURE = "attnlib-figure"
ALIVE = "attnlib-still"  # the class of a live view, which needs the room of a question
TOLD = tomllib.loads(NAME.sub(lambda name: number(name[1]), (ROOT / "tools" / "lecture.toml").read_text("utf-8")))
SENTENCE = r"(?<=[.?])\s+(?=[A-Z<])"  # between one and the next
CELL = re.compile("(<td[^>]*>)(.*?)(</td>)", re.DOTALL)
BAR = re.compile(r'<i class="share">([\d.]+)')
LATER = 'class="fragment" data-fragment-index="0"'  # what comes with the first click
RIGHT = '<li class="fragment custom" data-fragment-index="1"><strong>{}</strong>'  # the right answer, on a click
ASKED = re.compile(r"(\w+) = None  # (?:a list of )?(two|three|four) numbers.*")  # what by hand is filled in
LONG = re.compile("^(?=.{72})(.{20,60}) (- )", re.MULTILINE)  # a line of code with a place to break it
SLOW, BRISK = 100, 130  # words a minute
KEY, VOTE = '<p class="key"></p>', '<p class="vote"></p>'  # where a note has *Click.* or *Vote.*
REST = '<p class="do">Before they go, hands: whose checks all have a tick? Then sit down beside one who lacks some.</p>'
UNSAID = re.compile(
    '<(div|p) class="(?:replies|say so-far|early)">.*?</\\1>', re.DOTALL
)  # beside what is said of a slide


class Slide(NamedTuple):
    """A sentence and its picture. Below a question, the picture comes with a click, and with another the sentence.

    Of a table the first columns, as many as are `given`, stand from the start, and the others are to be filled.
    """

    head: str
    words: str
    picture: str = ""
    notes: str = ""
    question: str = ""
    kind: str = ""
    minutes: str = ""
    foot: str = ""
    sign: str = ""
    claim: str = ""
    given: int = 1
    after: str = ""

    @property
    def title(self):
        """Return what stands under "00 · " in the head; it begins with a capital letter."""
        title = self.head.partition(" · ")[2] or self.head
        return title[0].upper() + title[1:]

    @property
    def html(self):
        def block(name, inner, click):
            hidden = f' fragment" data-fragment-index="{click}' if "?" in self.question and click is not None else ""
            return f'<div class="{name}{hidden}">{inner}</div>' if inner.strip() else ""

        head, asks, words = headline(self)
        asked = block("question", asks, None)
        table = self.picture.lstrip().startswith("<table") and "?" in self.question
        picture = with_bars(to_fill_in(self.picture, self.given) if table else self.picture)
        shown, said = block("picture", picture, None if table else 0), block("says", words, 1)
        sign = self.sign * ("?" in self.question and not table)
        below = self.question or 'class="fragment answer"' in words.partition("</p>")[0]  # of a picture that stays
        body = asked + sign + shown + said if below else said + shown
        return (
            f'<section data-kind="{self.kind}"><div class="slide">{head}<div class="body">{body}</div>'
            f"<footer>{self.foot or markdown(self.head)}</footer></div>"
            f'<aside class="notes">{markdown(self.minutes)}{with_keys(self.notes, body)}{self.after}</aside></section>'
        )


def keys(body):
    """Return what each of the next keys shows of a slide, for its speaker."""
    first = {
        "the table": f"<span {LATER}",
        "what stands below the table": f"<p {LATER}",
        "the right lines": 'class="right fragment',
        "the picture": 'class="picture fragment',
        "the answer": 'class="fragment answer"',
    }
    second = {
        "the last column": '<span class="fragment" data-fragment-index="1"',
        "the right option": "fragment custom",
        "the sentence": 'class="says fragment',
    }
    shown = [[what for what, sign in each.items() if sign in body] for each in (first, second)]
    return [f"<kbd>→</kbd> {' and '.join(what)}" for what in (shown[0][:1], shown[1]) if what]


def with_keys(notes, body):
    """Return the notes of a slide with its keys where they are pressed: each *Click.* has one, and the last the rest.

    Without a *Click.* they come first. How one leaves a view comes last.
    """
    told, line = keys(body), KEY[:-4] + "{}</p>"
    if told and KEY not in notes:
        notes = KEY + notes
    while told and KEY in notes:
        now = 1 if notes.count(KEY) > 1 else len(told)
        notes = notes.replace(KEY, line.format(", then ".join(told[:now])), 1)
        told = told[now:]
    return notes + line.format("<kbd>PageDown</kbd> out of the view") * ("data-attnlib" in body)


def mark_lines(text):
    """Return what a speaker says and does at a slide, each in its line. A quotation that ends a sentence is said."""
    text, early, spare = text.partition("*Early?*")
    found, marks = [], {"*Click.*": KEY, "*Vote.*": VOTE + KEY}
    for part in re.split(r"(“[^”]*[.?!]”|\*(?:Click|Vote)\.\*)", text):
        line = inline(part.strip().removeprefix("“").removesuffix("”") if part[:1] == "“" else part.strip())
        if part in marks:
            found.append(marks[part])
        elif part[:1] == "“":
            found.append(f'<p class="say">{line}</p>')
        elif line:
            line = re.sub(r"\b(Home|End|[Cc]lick|[Aa]rrow keys?)\b", r"<kbd>\1</kbd>", line)
            found.append(f'<p class="do">{line[0].upper() + line[1:]}</p>')
    return "".join(found) + f'<p class="early"><strong>Early?</strong> {inline(spare.strip())}</p>' * bool(early)


def headline(slide):
    """Return the headline of a slide, and what is left of its question and of its words, as HTML.

    That is the claim, or the question, where it is short enough and can stand alone; else what the head says.
    """
    question, words = slide.question, markdown(slide.words)
    if slide.kind == "title":
        title, _, rest = words.partition("</h1>")
        return f"{title}</h1>", "", rest
    if slide.claim:
        return claim(inline(slide.claim)), question, words
    if not question:
        first = re.match(r"\s*<p>(.*?)</p>\s*", words, re.DOTALL)
        if first and fits(first[1]) and (slide.kind == "exercise" or first.end() == len(words)):
            return claim(first[1]), "", words[first.end() :]
    paragraphs = re.findall("<p>(.*?)</p>", question, re.DOTALL)
    for paragraph in reversed(paragraphs):
        last = re.split(SENTENCE, paragraph)[-1]
        for part in (paragraph, last):
            leans = re.match("And |<em>[^<]*</em>[.?]", part) or re.search(r"\b(it|that|they|this)\b", part)
            whole = part == paragraph
            if fits(part) and (whole or part.endswith("?")) and not (leans and (not whole or paragraphs[1:])):
                return claim(part), question.replace(part, "", 1).replace("<p></p>", ""), words
    return f"<h2>{inline(slide.title)}</h2>", question, words


def claim(html_text):
    """Return a headline of one sentence or two; the second begins a line where both are too long for one."""
    return f"<h2>{' '.join(f'<span>{part}</span>' for part in re.split(SENTENCE, html_text))}</h2>"


def fits(html_text):
    """Return whether two lines of a headline hold a text, and its tags are closed."""
    words = html.unescape(re.sub(r"<annotation.*?</annotation>|<[^>]*>", "", html_text))
    closed = html_text.count("</") == len(re.findall(r"<\w", html_text))
    return len(words) <= 84 and closed and 'display="block"' not in html_text


def with_bars(picture):
    """Return a picture in which each bar is as long as its number, of 1 or of the largest."""
    most = max([1, *map(float, BAR.findall(picture))])
    return BAR.sub(lambda bar: f'<i class="share" style="--n: {float(bar[1]) / most:.3f}">{bar[1]}', picture)


def to_fill_in(picture, given):
    """Return a table whose cells behind the first ones of each row come with a click, and so does what stands below."""

    def row(match):
        cells = iter(range(match[0].count("<td")))
        return CELL.sub(lambda cell: cell[0] if next(cells) < given else later(cell), match[0])

    def later(cell):
        return f"{cell[1]}<span {LATER}>{cell[2]}</span>{cell[3]}"

    table, end, below = picture.rpartition("</table>")
    return re.sub("<tr>.*?</tr>", row, table, flags=re.DOTALL) + end + below.replace("<p>", f"<p {LATER}>")


def join_opening(opening, sign, first, *rest):
    """Return the slides of a notebook. A question without a picture stands above the first one's, or has the `sign`."""
    if not opening.question:
        return [first._replace(notes=opening.notes + first.notes), *rest]
    if opening.picture:
        return [opening._replace(sign=sign), first, *rest]
    if first.question or first.kind:
        return [opening._replace(question=opening.question + sign), first, *rest]
    return [first._replace(question=opening.question, notes=opening.notes + first.notes, sign=sign), *rest]


def minutes(step, plan):
    """Return when a row of a plan begins and ends."""
    return f"**Minutes {step.begins} to {step.begins + step.minutes} of {plan.minutes}**"


def clock(row, step):
    """Return when each slide of a row is to be left, as a clock that was started with the first slide shows it, and how
    many of its seconds are spare.

    A vote has two minutes, and what the room does as many as stand beside it. The rest of the row is shared out by the
    words that are said, where a slide takes those of half a minute more to look at; what these need not have at SLOW
    words a minute, the exercises of the row get.
    """
    asked = [
        2 * ("Right is <strong>" in slide.notes)
        + total(r"\((\d) min\)", slide.notes)
        + total(r" · (\d+) minutes", slide.words) * (slide.kind == "exercise")
        for slide in row
    ]
    spoken = [len(UNSAID.sub("", slide.notes).partition("<p><strong>Right.")[0].split()) for slide in row]
    rest = max(step.minutes - sum(asked), 0.5 * len(row))
    if any(slide.kind == "exercise" for slide in row):
        rest = min(rest, sum(65 + words for words in spoken) / SLOW)
    share = (step.minutes - rest) / max(sum(asked), 1)
    shares = [(65 + words) / sum(65 + words for words in spoken) for words in spoken]
    spread = [minutes * share + rest * part for minutes, part in zip(asked, shares, strict=True)]
    ends = [10 * round(end * 6) for end in accumulate(spread, initial=step.begins)][1:]
    needed = [minutes + words / BRISK + 0.3 for minutes, words in zip(asked, spoken, strict=True)]
    talks = [slide.kind not in ("exercise", "title") for slide in row]
    return [
        (f"{end // 3600}:{end // 60 % 60:02}:{end % 60:02}", 10 * int(6 * (has - needs)) * talk)
        for end, has, needs, talk in zip(ends, spread, needed, talks, strict=True)
    ]


def free(spare):
    """Return how a note names the seconds that its slide does not need, where that is half a minute."""
    return f", {spare} s spare" * (spare >= 30)


def total(pattern, text):
    return sum(map(int, re.findall(pattern, text)))


def plain(text):
    return re.sub(r"[*`]", "", text)


def with_labels(picture):
    """Return a picture whose slider says of a divisor that it is one: in a lecture $d_k$ counts features alone."""

    def anew(match):
        told = zlib.decompress(base64.b64decode(match[1])).decode().replace(DIVISOR, "divide by the root of")
        return f'data-attnlib="{base64.b64encode(zlib.compress(told.encode(), 9)).decode()}"'

    return re.sub('data-attnlib="(.*?)"', anew, picture)


def terminal(cell, picture):
    """Refuse a slide that shows what a terminal prints."""
    if 'class="printed' in picture:
        sys.exit(
            f"a slide would show what a terminal prints. Fix: say in tools/lecture.toml what it shows of\n{cell.source}"
        )
    return picture


def vote(question):
    """Return what a speaker needs at a question with options: the right letter, and what to reply to each other one."""
    wrong = [f"- *{letter}*: {why}" for letter, why in question.because.items() if letter != question.right]
    how = "Vote: read the options aloud, count hands. Split? Neighbours talk, then again."
    told = f"{how} Right is **{question.right}**. To the others:"
    return f'<p class="do">{inline(told)}</p><div class="replies">{markdown(chr(10).join(wrong))}</div>'


def place_vote(asked, said):
    """Return what is said at a slide with the vote where it has *Vote.*, which a slide with a vote must have."""
    if bool(asked) != (VOTE in said):
        sys.exit(f"a vote without *Vote.* in TEACHING.md, or *Vote.* without a vote. Fix: there, at\n{said}")
    return said.replace(VOTE, asked)


def source_key(cell):
    """Return what tells a cell from the others of its notebook, though some lines of it have changed: how it begins."""
    return cell.cell_type, cell.source[:80]


def options(cell):
    """Return the options that a text asks to choose from."""
    return tuple(re.findall(r"^- \*\*\w\*\* .+", cell.source, re.MULTILINE))


class Chapter:
    """A notebook in a lecture: its sections, its pictures, and what TEACHING says of it."""

    def __init__(self, guide, number):
        (self.notebook,) = (notebook for notebook in SERIES if notebook.number == number)
        self.cells = nbformat.read(self.notebook.built, as_version=4).cells
        waits = TOLD["signs"].get(self.notebook.slug)
        self.sign = f'<div class="sign">{markdown(waits) if waits else glyph(self.notebook.slug)}</div>'
        source = read_source(self.notebook.source).cells
        if {*map(options, self.cells)} - {*map(options, source)}:
            name = self.notebook.name
            sys.exit(f"{name}: built before its votes changed. Fix: python -m tools.build_notebooks {name}")
        told = {source_key(cell): cell.metadata for cell in source}
        for cell in self.cells:  # its source says what makes a slide, so a tag needs no new build
            known = told.get(source_key(cell), cell.metadata)
            cell.metadata |= {part: known.get(part, []) for part in ("tags", "says")}
        self.sections = plans.sections(self.cells)
        self.said = plans.words_to_say(guide, number)

    def remember(self):
        """Return the first sentence of what a reader is to remember, as HTML."""
        return inline(TOLD["remember"].get(self.notebook.slug) or plans.remember(self.cells))

    def notes(self, heading):
        """Return what is said at each slide of a heading, "" for the opening."""
        said = [
            re.sub(r"^(\*\*.+?\*\*(, )?)+: ", "", words)  # the slide says its heading
            for headings, words in self.said
            if heading in headings or not (heading or headings)
        ]
        return [mark_lines(words) for words in "\n\n".join(said).split("*Next slide.*")]

    def picture(self, cell, shows=None, drawn=True):
        """Return what a slide shows of a cell; `shows` stands in place of tables and of what it prints."""
        code = re.sub(r"\nprint\(.*\)$", "", cell.source, flags=re.MULTILINE)  # what it prints is shown
        code = shown_code(code) if has_tag(cell, "slide-code") else ""
        pictures = [output for output in cell.get("outputs", []) if not shows or "image/png" in output.get("data", {})]
        words = markdown(shows) if shows else ""
        shown = with_labels("".join(output_html(output, "") for output in pictures * drawn))
        return terminal(cell, code + words + shown)

    def opening(self, before, answers):
        """Return the slide that leads from the notebook before to this one: its question, then its picture.

        It asks those parts of the question that `answers`, the words of the slides, hold an answer to.
        """
        notes = self.notes("")[0]
        if before:
            notes = f'<p class="say so-far">So far: {before.remember()}</p>{notes}'
        head = f"{self.notebook.number} · {self.notebook.title}"
        above = TOLD["openings"].get(self.notebook.slug)
        if above == "":
            return Slide(head, "", notes=notes)
        above = above or ""
        drawn = "|---|" not in above  # a table stands in place of the picture
        tagged = [cell for cell in self.sections[""] if has_tag(cell, "slide")]
        shows = markdown(above) + "".join(self.picture(cell, " " * bool(above), drawn) for cell in tagged)
        parts = TOLD["questions"].get(self.notebook.slug)
        asks = " ".join(asked for asked, answer in parts if plain(answer) in plain(answers)) if parts else ""
        if parts and not asks:
            sys.exit(f"{self.notebook.name}: no slide answers its question. Fix: [questions] in tools/lecture.toml.")
        given, title = TOLD["given"].get(self.notebook.slug, 1), TOLD["titles"].get(self.notebook.slug, "")
        asked = markdown(asks or plans.opening(self.sections[""]))
        return Slide(head, "", shows, notes, asked, claim=title, given=given)

    def slides(self, heading, plan=""):
        """Return the slides of a section, each with what is said at it; a plan may show something else."""
        cells = plans.section(self.sections, heading, self.notebook.name)
        notes, head = self.notes(heading), f"{self.notebook.number} · {heading}"
        if has_tag(cells[0], "exercise"):
            return [self.exercise(heading, head, notes[0])]
        found, entries = [], TOLD["slides"].get(f"{self.notebook.slug} · {heading}", [])
        pictured = plans.slide_cells(cells)
        for cell, entry in zip(pictured, entries + [{}] * len(pictured), strict=False):
            entry = entry | entry.get(plan, {})
            question, asked = plans.question_of(cell, cells)
            asked = asked if entry.get("asks", "?") else None
            told, question = vote(asked) if asked else "", markdown(question)
            if "asks" in entry:
                question = markdown(entry["asks"]) + (question[question.rindex("<ul>") :] if asked else "")
            if asked:
                longest = max(
                    len(re.sub("<.*?>", "", one)) for one in re.findall("<li>(.*?)</li>", question, re.DOTALL)
                )
                side = " short" * (longest <= 14) or " side" * (longest <= 30)
                question = question.replace(f"<li><strong>{asked.right}</strong>", RIGHT.format(asked.right))
                question = f'<ul class="vote{side}">'.join(question.rsplit("<ul>", 1))
            kind, shown = ("again", plans.slide_cells(self.sections[entry["of"]])[0]) if "of" in entry else ("", cell)
            says = entry.get("says") or plans.sentence(cell, cells, self.cells)
            picture, given = self.picture(shown, entry.get("shows"), "instead" not in entry), entry.get("given", 1)
            for its, other in entry.get("renames", {}).items():
                picture = picture.replace(its, other)
            picture = markdown(entry.get("instead", "")) + picture
            sign = f'<div class="sign">{markdown(entry["sign"])}</div>' if "sign" in entry else self.sign
            if question and ALIVE in picture:
                waits = markdown(entry.get("waits", ""))
                full = "<table" in question + waits or ("<ul" in question and " short" not in question)
                found.append(Slide(head, "", waits, told, question + sign * (not full), given=given))
                question = told = ""
            sign, title = sign * (PICTURE in picture), entry.get("claim", "")
            found.append(Slide(head, says, picture, told, question, kind, sign=sign, claim=title, given=given))
        notes += [""] * len(found)
        return [slide._replace(notes=place_vote(slide.notes, said)) for slide, said in zip(found, notes, strict=False)]

    def exercise(self, heading, head, notes):
        """Return the slide of an exercise; its notes say what to reply to which mistake."""
        task, code, check = (cell.source for cell in self.sections[heading][:3])
        goal, about, task = re.fullmatch(
            r"\*\*Goal\.\*\* (.*?) \*(\d+ minutes, \w+)\.\*\n\n(.*)", task, re.DOTALL
        ).groups()
        replies = "\n".join(f"- {shows}: {reply}" for shows, reply in REPLIES[key(check)].values())
        (right,) = re.findall(r"```python\n(.*?)\n```", self.sections[heading][3].source, re.DOTALL)
        notes += f"<p><strong>Right.</strong> At half time, hands: who has the tick?</p>{KEY}"
        wrong = markdown(f"**Wrong, and what to reply:**\n\n{replies}")
        notes += f'<div class="replies">{wrong}</div>'
        told = TOLD["exercises"].get(f"{self.notebook.slug} · {heading}", {})
        goal, task = told.get("goal", goal), told.get("task", task)
        words = plans.without_links(f"{goal}\n\n**{heading.partition(' · ')[0]}** · {about}\n\n{task}")
        shown = markdown(told.get("shows", ""))
        if "of" in told:  # a picture needs all the room beside its task
            picture = self.picture(plans.slide_cells(self.sections[told["of"]])[0])
            return Slide(head, f"{words}\n\n{with_solution('', code, right)}", picture, notes, kind="exercise")
        asked = to_fill(told.get("code", code).strip())
        return Slide(head, words, shown + with_solution(asked, code, right), notes, kind="exercise")


def shown_code(code):
    """Return the HTML of code on a slide: the comment of a long line stands above it."""
    return highlight_code(comments_above(code), hangs=False)


def comments_above(code):
    return re.sub(r"^(?=.{56})( *)(\S.*?)  (# .+)$", r"\1\3\n\1\2", code, flags=re.MULTILINE)


def with_solution(asked, code, right):
    """Return what an exercise asks to fill, and in its place, on a click, what its solution has there."""
    name = ASKED.fullmatch(code.strip())
    code = LONG.sub(r"\1\n        \2", comments_above(right.partition("\n\nmy_")[0]))
    filled = filled_boxes(name[1], right) if name else shown_code(code)
    hidden = f'<div class="asked">{asked}</div>' * bool(asked)
    return f'<div class="solved">{hidden}<div class="right fragment" data-fragment-index="0">{filled}</div></div>'


def filled_boxes(name, right):
    """Return the boxes of `to_fill` with the numbers that a solution by hand computes."""
    q, k, v = SHE.project()
    known = {"x": SHE.x, "W_K": SHE.W_K, "Q": q, "K": k, "V": v, "scores": q @ k.T, "math": math}
    known |= {"dot": np.dot, "vector_times_matrix": np.matmul, "weighted_sum": np.matmul, "softmax": softmax}
    exec(right, known)  # our own notebook's solution
    numbers = "".join(f"<b>{round(float(n), 3):g}</b>" for n in known[name])
    return f'<p class="sum to-fill"><code>{name}</code> = <span>{numbers}</span></p>'


def to_fill(code):
    """Return what an exercise asks to fill: an empty box for each number, or the code that is there."""
    asked = ASKED.fullmatch(code)
    if not asked:
        return shown_code(code)
    boxes = "<b></b>" * {"two": 2, "three": 3, "four": 4}[asked[2]]
    return f'<p class="sum to-fill"><code>{asked[1]}</code> = {boxes}</p>'


def cover(plan):
    lead, _, rest = plan.lead.partition(". ")
    about = f"{plan.title}. Guess first, then see where it looks."
    words = f"# {lead.rstrip('.')}\n\n<p class='about'>{about}</p><p id='about'></p>"
    when, foot, picture = minutes(plan.steps[0], plan), markdown(LICENCE), first_sentence(looks=False)
    notes = markdown("A click on the clock sets it to 0. Wrong guesses are welcome, say so.\n\n" + (rest or lead))
    return Slide(f"attnlib · {plan.title}", words, picture, notes, "", "title", when, foot)


def last_slide(chapters, plan, home):
    """Return the last slide: what a reader of each notebook is to remember, and where to go from here."""
    items = "".join(f"<li>{glyph(chapter.notebook.slug)}<span>{chapter.remember()}</span></li>" for chapter in chapters)
    last, notes = (
        plan.steps[-1],
        "" if home else markdown("Write on the board where the notebooks are."),
    )
    if more := plan.homework.partition("; where no ")[2]:
        notes += markdown(f"Where no {more}.")
    words = f'<ul class="home">{items}</ul>{markdown(at_home(plan, home))}'
    notes = (
        markdown("“Compare, share, mix. Which of these lines would you have denied at first?” Then questions.") + notes
    )
    claim = "Attention compares, shares and mixes."
    return Slide(last.headings[0], "", words, notes, minutes=minutes(last, plan), claim=claim)


def at_home(plan, home):
    """Return what a listener can do next, and where: the plan's homework, and an address to copy."""
    own = f'<a href="{home}">your own sentence</a>' if home else f"your own sentence, in notebook {SERIES[0].number}"
    now = plan.homework.partition("; where no ")[0]
    site = (home if home and "://" in home else public()) or ""
    speaks = find_notebook("it_speaks")
    return (
        f"**At home:** {own}. Then {now}.\n\n**The way on:** {speaks.number} · {speaks.title}, a language model "
        f"through your own code.\n\n**Notebooks:** <span id='at'>{site}</span>"
    )


def break_slide(step, then):
    """Return the slide of a break before a chapter: how long, what to do first, and, from its script, when it ends."""
    title, _, first = step.headings[0].partition(": ")
    words = f"# {title}, {step.minutes} minutes\n\n<p class='back' data-minutes='{step.minutes}'></p>\n\n"
    return Slide("attnlib", f"{words}{first[0].upper()}{first[1:]}.", then.sign, REST, kind="title")


def public():
    """Return the address of the public site, None where none is set."""
    return address().words("")["site"] if address() else None


def slides(name, home=None):
    """Return the Plan of a name, and its slides; `home` is the page where one types a sentence."""
    guide = plans.GUIDE.read_text("utf-8")
    plan = plans.plan_of(guide, name)
    chapters = {step.number: Chapter(guide, step.number) for step in plan.steps if step.number}
    rows = [
        [slide for heading in step.headings for slide in chapters[step.number].slides(heading, name)]
        if step.number
        else [break_slide(step, chapters[then.number])]
        for step, then in pairwise(plan.steps)
    ]
    answers = " ".join(slide.words for row in rows for slide in row)
    found, before, opened = [cover(plan)], None, set()
    for step, row in zip(plan.steps, rows, strict=False):
        if step.number and step.number not in opened:
            opened.add(step.number)
            row = join_opening(chapters[step.number].opening(before, answers), chapters[step.number].sign, *row)
            before = chapters[step.number]
        when, times = minutes(step, plan), clock(row, step)
        found += [
            slide._replace(minutes=f"{when}{free(spare)}, this slide to {end}")
            for slide, (end, spare) in zip(row, times, strict=True)
        ]
    found = with_the_next([*found, last_slide(chapters.values(), plan, home)], plan)
    if raw := NAME.search(" ".join(slide.html for slide in found)):
        sys.exit(f"a slide would show {raw[0]}. Fix: its number must stand there; see number() in tools/numbering.py.")
    return plan, found


def left_out(found, plan):
    """Return {slide: the one to go on to} of what a speaker leaves out who is late, in the order of the plan.

    A notebook all of whose headings are left out goes with the slide that opens it.
    """
    late, spans = plans.bold(plan.lead.partition("If you are late,")[2]), {}
    for heading in late:
        at = [i for i, slide in enumerate(found) if slide.head.partition(" · ")[2] == heading]
        number = found[at[0]].head[:2]
        if {one for step in plan.steps if step.number == number for one in step.headings} <= set(late):
            at = [i for i, slide in enumerate(found) if slide.head[:2] == number]
        spans[at[0]] = at[-1] + 1
    return spans


def with_the_next(found, plan):
    """Return slides whose notes end with the title of the next, and say what a speaker leaves out who is late."""
    titles = [re.sub("</?(h1|h2|span).*?>", "", headline(slide)[0]) for slide in found] + [""]
    told = {
        first: f"<p><strong>Late?</strong> Leave this out: <kbd>g</kbd> <kbd>{behind + 1}</kbd> <kbd>Enter</kbd>"
        + f", to {titles[behind]}" * (behind > first + 1)
        + "</p>"
        for first, behind in left_out(found, plan).items()
    }
    for first, behind in left_out(found, plan).items():
        if found[first].head[:2] not in {slide.head[:2] for slide in found[:first] + found[behind:]}:
            told_of_it = '<p class="say so-far">'
            notes = found[behind].notes.replace(told_of_it, f'<p class="do">Not if you left it out:</p>{told_of_it}', 1)
            found[behind] = found[behind]._replace(notes=notes)
    return [
        slide._replace(after=told.get(i, "") + f"<p><strong>Next.</strong> {title}</p>" * bool(title))
        for i, (slide, title) in enumerate(zip(found, titles[1:], strict=True))
    ]


def deck(name, home=None):
    """Return the page of a plan; by default one types a sentence on the public site."""
    plan, found = slides(name, home or public())
    return in_reveal("lecture", f"attnlib · {plan.title}", "\n".join(slide.html for slide in found))


def write_all(folder):
    """Write the decks of all plans for the site, and the page that leads to them."""
    folder.mkdir()
    found = []
    for name in plans.names(plans.GUIDE.read_text("utf-8")):
        plan, shown = slides(name)
        file = f"lecture_{name}.html"
        (folder / file).write_text(deck(name, "../"), encoding="utf-8")
        heads = [html.unescape(re.sub("<.*?>", "", markdown(slide.head))) for slide in shown]
        lead = plain(plan.lead.partition(" If you are late,")[0])
        found.append({"title": plan.title, "lead": lead, "file": file, "slides": heads})
    page = Template((ROOT / "lite" / "teach.html.j2").read_text("utf-8"), autoescape=True)
    told = {"icon": ICON, "licence": markdown(LICENCE), "public": public() or "../"}
    told["style"] = look("inter", "inter-italic", "serif", at="../fonts/")
    (folder / "index.html").write_text(page.render(decks=found, **told), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="a plan of TEACHING.md: 45, 90 or half-day")
    parser.add_argument("--to", type=Path, default=ROOT / "_slides", help="folder to write to")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    target = arguments.to / f"lecture_{arguments.plan}.html"
    target.write_text(deck(arguments.plan), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()

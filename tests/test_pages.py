"""What a page without a kernel promises: each control that the text beside a view names is there, and each question."""

import copy
import html
import re

import nbformat
import numpy as np
import pytest
from matplotlib.bezier import BezierSegment
from matplotlib.textpath import TextPath

from attncourse.catalogue import PREDICTIONS, RECALLS
from attnlib.live import frames
from tools import asked, reading
from tools.build_notebooks import read_source
from tools.page import formula, highlight_code, markdown, revive
from tools.series import SERIES

# What a text asks a reader to do, and with what; beside it what the control is called.
ASKS = re.compile(
    r"\b(?:move|set|choose|click|pull|keep|go through|lower)\b(.*?)(?=[.?!;:]\s|$)|(real tokens)", re.IGNORECASE
)
PLAIN = {name: name for name in ("angle", "length", "layer", "head", "query", "key", "features")}
PLAIN |= {"divisor": "divi", "draws": "draw", "real tokens": "length"}
ITALIC = {name: name for name in ("feature", "outlier", "level", "step", "sentence", "times", "temp.", "num_heads")}
ITALIC |= PLAIN | {name: name for name in ("measured", "position", "distance", "draw", "mask")}
IN_PLAIN, IN_ITALICS = (
    re.compile(form.format("|".join(map(re.escape, names))))
    for form, names in ((r"\b({})\b", PLAIN), (r"\*({})\*", ITALIC))
)
CLICKED = re.compile(r"\bclick\w*\b(?: on)? (?:an?|the|each) \w+", re.IGNORECASE)
SLIDES = re.compile(r"\b(?:move|pull) (?:the slider|it)\b|\bthe slider (?!of notebook)", re.IGNORECASE)
CHOICES = re.compile(r"\*(none|causal|padding|both|this head|first token|token before|copying)\*", re.IGNORECASE)
STOPS = re.compile(r"\b(?:set|move|pull)\b(?! \$W)[^.?!]*? to (?:(\d+)|\$\\sqrt (\d)\$)", re.IGNORECASE)
TYPED = re.compile(r"\btype\b(?=.*\b(?:sentence|convoys?|text)\b)")
ELSEWHERE = re.compile(r"in a running notebook|with the model", re.IGNORECASE)  # not on a page, says the sentence


def promised(text):
    """Return the names of the controls that a text asks for, and whether it asks for a click and for a text to type."""
    names, clicks, typed = set(), False, False
    text = re.sub(r"<details>.*?</details>|```.*?```", "", text, flags=re.DOTALL).replace("\n", " ")
    text = re.sub(r"\$(n|d_k)\$", r"@\1@", text.replace("**", ""))
    moves = re.search(r"\bslider|\bmove\b|\bset\b", text, re.IGNORECASE)
    for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z*])", text):
        here = not ELSEWHERE.search(sentence)
        typed |= here and bool(TYPED.search(sentence))
        clicks |= here and bool(CLICKED.search(sentence))
        if here:
            asked_for = " ".join("".join(words) for words in ASKS.findall(sentence))
            names |= {PLAIN[name] for name in IN_PLAIN.findall(asked_for)} | {*re.findall("@(.*?)@", asked_for)}
            names |= {ITALIC[name] for name in IN_ITALICS.findall(sentence) if moves}
    return names, clicks, typed


def stops(text):
    """Return (where a text says to move a control, whether the control may stand there already) by the stop's label."""
    found = {}
    for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z*])", text.replace("\n", " ")):
        if not ELSEWHERE.search(sentence):
            found |= {whole or f"the root of {root}": "`" in sentence for whole, root in STOPS.findall(sentence)}
            found |= {option.lower(): True for option in CHOICES.findall(sentence)}
    return found


def views(cells):
    """Yield (number of the cell, source, what is kept) of each view of a built notebook."""
    for i, cell in enumerate(cells):
        for output in cell.get("outputs", []):
            if kept := output.get("metadata", {}).get("attnlib"):
                yield i, cell.source, frames.unpack_stops(kept)


def beside(cells, i):
    """Yield the texts that stand beside a view: the nearest one above it, the one below it, and any that name it."""
    texts = [k for k, cell in enumerate(cells) if cell.cell_type == "markdown"]
    above = [k for k in texts if k < i][-1:]
    below = [k for k in texts if k > i][:1]
    following = next((k for k, *_ in views(cells) if k > i), len(cells))
    below = [k for k in below if not any(k < other < following for other in texts) or following > k + 3]
    name = re.search(r"^(\w+) = live\.", cells[i].source, re.MULTILINE)
    named = [k for k in texts if name and f"`{name[1]}`" in cells[k].source]
    yield from (cells[k].source for k in dict.fromkeys([*above, *below, *named]))


def missing(cells):
    """Return (cell, what is asked for and not there) of each view of a built notebook."""
    faults = []
    for i, _, kept in views(cells):
        there = {knob[part] for knob in kept["knobs"] for part in ("key", "name")}
        at = {knob["labels"][knob["at"]] for knob in kept["knobs"]}
        labels = {label.split(",")[0] for knob in kept["knobs"] for label in knob["labels"]}
        targets = set(re.findall(r'data-(?:row|column)="(\w+)"', kept["picture"]))
        for text in beside(cells, i):
            names, clicks, _ = promised(text)
            faults += [(i, name) for name in sorted(names) if not any(re.search(rf"\b{name}", one) for one in there)]
            faults += [(i, stop) for stop, may in stops(text).items() if stop not in labels or (stop in at and not may)]
            if SLIDES.search(text) and all("choice" in knob for knob in kept["knobs"]):
                faults.append((i, "a slider"))
            if clicks and "fills" not in kept and not targets & {knob["key"] for knob in kept["knobs"]}:
                faults.append((i, "a click"))
    return faults


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_each_control_that_the_text_names_is_on_the_page(notebook):
    cells = nbformat.read(notebook.built, as_version=4).cells
    assert missing(cells) == []
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert [text for text in texts if promised(text)[2]] == []  # free text needs a kernel: "In a running notebook ..."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Here *saw* asks twice. Move *head*.", ({"head"}, False, False)),
        ("**Try.** Keep the angle and move the length.", ({"angle", "length"}, False, False)),
        ("Of which the first are real: with 2 real tokens?", ({"length"}, False, False)),
        ("Set $n$ to 64, *level* to 1.", ({"n", "level"}, False, False)),
        ("A click on a cell shows it. You may type another convoy.", (set(), True, True)),
        ("In a running notebook click a head or type a text. Each head has a key.", (set(), False, False)),
        ("Set $W_Q$ to 0. The slider is for step 6, $d_k$ is 3, the head keeps features.", (set(), False, False)),
    ],
)
def test_what_a_text_asks_for_is_read(text, wanted):
    assert promised(text) == wanted


def test_where_a_text_says_to_move_a_control_is_read():
    text = "Pull *step* to 0. Move it from 0\nto 60. In `spread`, set $d_k$ to 64. Set $W_Q$ to 1. See *None*, *both*."
    assert stops(text) == {"0": False, "60": False, "64": True, "none": True, "both": True}
    assert stops(r"Move the slider to $\sqrt 3$. In a running notebook set it to 9.") == {"the root of 3": False}


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_each_question_of_a_notebook_has_its_replies_on_the_page_and_no_guess(notebook):
    source = notebook.source.read_text("utf-8")
    wanted = {}
    for name in re.findall(r"^predict\.(\w+)\(", source, re.MULTILINE):
        one_by_one = enumerate(RECALLS[name].questions, 1) if name in RECALLS else ()
        wanted |= {f"{name}-{i}": question for i, question in one_by_one} or {name: PREDICTIONS[name]}
    cells = asked.answer_by_clicks(nbformat.read(notebook.built, as_version=4).cells)
    shown = [cell.source for cell in cells if '<div class="attnlib-asked"' in cell.source]
    assert [re.search('data-name="(.*?)"', text)[1] for text in shown] == [*wanted]
    for text, question in zip(shown, wanted.values(), strict=True):
        replies = re.findall(r'value="(\w)">.*?<template>(.*?)</template>', text)
        assert replies == [(one, question(one)._repr_html_().replace("\n", " ")) for one in question.options]
    everything = str([(cell.source, cell.get("outputs")) for cell in cells])
    assert not re.search(r"guess_|No choice made yet|predict\.\w+\(", everything)
    opens, closes = ([cell for cell in cells if cell.metadata.get("around", ["", ""])[k]] for k in (0, 1))
    assert len(opens) == len(closes)


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_an_exercise_has_a_field_for_numbers_or_one_link_to_its_cell(notebook):
    cells = nbformat.read(notebook.built, as_version=4).cells
    assert "attnlib-write" not in str(
        asked.answer_by_clicks(copy.deepcopy(cells))
    )  # where there is no site nothing leads to it
    ways = {}
    for cell in asked.answer_by_clicks(cells, "there"):
        goal = cell.id if asked.EXERCISE.search(cell.source) else next(reversed(ways), None)
        found = ["field"] * cell.source.startswith("<form") + re.findall(r'href="there#cell-id=(.*?)"', cell.source)
        ways[goal] = ways.get(goal, []) + found
    assert ways.pop(None, []) == []
    assert [(goal, way) for goal, way in ways.items() if way not in (["field"], [goal])] == []
    assert set(ways) <= {cell.id for cell in nbformat.read(notebook.built, as_version=4).cells}


def test_what_answers_stands_behind_the_fold_and_what_comes_next_in_front_of_it():
    text = {}
    for notebook in SERIES:
        inside, text[notebook.slug] = False, {True: "", False: ""}
        for cell in asked.answer_by_clicks(nbformat.read(notebook.built, as_version=4).cells):
            before, after = cell.metadata.get("around", ["", ""])
            inside |= bool(before)
            text[notebook.slug][inside] += cell.source.replace("\n", " ") + "\n"
            inside &= not after
    answers = {
        "pytorch_module": ["about 8 above the mean"],
        "masks": ["mixes three words equally", "it is the causal mask"],
    }
    answers |= {"multi_head": ["Too pale:"], "train_and_look": ["Two heads take one neighbour each"]}
    opens = {
        "pytorch_module": ["layer = Layer(", "Your layer gives the numbers"],
        "masks": ["Where the sizes differ", "al.ShapeError"],
    }
    opens |= {"multi_head": ["13 is feature 3 of word 1", "live.split_heads"]}
    opens |= {"by_hand": ["**What I look for is not what I am.**", "**Softmax** first"], "scaling": ["**slope** of"]}
    for behind, wanted in ((True, answers), (False, opens)):
        for name, parts in wanted.items():
            assert [part for part in parts if part not in text[name][behind]] == []
            assert [part for part in parts if part in text[name][not behind]] == []


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_only_what_answers_a_question_stands_behind_a_fold(notebook):
    cells, text = read_source(notebook.source).cells, None
    for cell in cells:
        text = cell if cell.cell_type == "markdown" else text
        if cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            tags = text.metadata.get("tags", [])
            assert not cell.source.startswith("mine."), cell.source
            assert "predict" in tags or ("solution" in tags and "live." not in cell.source), cell.source


IMAGE = re.compile(
    r'<image [^>]*width="(\d+)" height="(\d+)" transform="matrix\(([\d.-]+) 0 0 ([\d.-]+) ([\d.-]+) ([\d.-]+)\)'
)
INKED = re.compile(r'<text[^>]*class="attnlib-word"[^>]* x="([\d.-]+)" y="([\d.-]+)"[^>]*>(.*?)</text>')


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_words_on_the_cells_of_a_map_do_not_turn_white_on_a_dark_page(notebook):
    outputs = [one for cell in nbformat.read(notebook.built, as_version=4).cells for one in cell.get("outputs", [])]
    for figure in (one.data["image/svg+xml"] for one in outputs if "image/svg+xml" in one.get("data", {})):
        assert not re.search(r"\\[^<>]*</text>", figure)  # markup of matplotlib's
        for wide, high, across, down, left, top in (map(float, found) for found in IMAGE.findall(figure)):
            on = [
                words
                for x, y, words in INKED.findall(figure)
                if left < float(x) < left + wide * across and top < float(y) < top + high * down
            ]
            assert on == []


def words_of(figure):
    """Return (words, left, top, right, bottom, whether on a plate) of what stands upright, as DejaVu Sans sets it."""
    found = []
    for attributes, words in re.findall("<text([^>]*)>(.*?)</text>", figure):
        at = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        words = html.unescape(re.sub("<[^>]*>", "", words)).replace("\u200b", "").strip()
        if "transform" not in at and words:
            x, y, size = (float(at[name]) for name in ("x", "y", "font-size"))
            box = TextPath((0, 0), words, size).get_extents()
            left = x - {"middle": 0.5, "end": 1}.get(at.get("text-anchor"), 0) * box.width
            plate = "class" not in at
            found.append((words, left, y - box.y1, left + box.width, y - box.y0, plate))
    return found


def points_of(line):
    """Return points along a path of an SVG, (n, 2)."""
    now, points = np.zeros(2), []
    for kind, numbers in re.findall("([MLCQ])([^MLCQz]*)", line):
        ends, step = (
            np.array(re.findall(r"-?[\d.]+(?:e-\d+)?", numbers), float).reshape(-1, 2),
            {"Q": 2, "C": 3}.get(kind, 1),
        )
        if kind == "M":
            now, ends = ends[0], ends[1:]
        for k in range(0, len(ends), step):
            points.append(BezierSegment([now, *ends[k : k + step]])(np.linspace(0, 1, 50)))
            now = ends[k + step - 1]
    return np.concatenate(points)


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_no_line_of_a_figure_crosses_a_word_and_no_two_numbers_touch(notebook):
    outputs = [one for cell in nbformat.read(notebook.built, as_version=4).cells for one in cell.get("outputs", [])]
    for figure in (one.data["image/svg+xml"] for one in outputs if "image/svg+xml" in one.get("data", {})):
        words = words_of(figure)
        for k, (one, left, top, right, bottom, _) in enumerate(words):
            for other, x, y, end, foot, _ in words[:k]:
                assert max(left, x) - min(right, end) > 2 or max(top, y) > min(bottom, foot), (one, other)
        for line, style in re.findall('<path d="([^"]*)"([^>]*fill:none[^>]*)>', figure):
            half, (x, y) = float((re.search(r"stroke-width:([\d.]+)", style) or [0, 1])[1]) / 2, points_of(line).T
            for one, left, top, right, bottom, plate in words:
                inside = (left - half < x) & (x < right + half) & (top - half < y) & (y < bottom + half)
                assert plate or not inside.any(), one


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.number)
def test_no_figure_of_a_page_takes_the_hatching_of_another(notebook):
    cells = nbformat.read(notebook.built, as_version=4).cells
    revive(cells)
    outputs = [str(output.get("data", {}).get("text/html")) for cell in cells for output in cell.get("outputs", [])]
    figures = [output for output in outputs if output.startswith('<div class="attnlib-figure')]
    ids = [re.findall(r'\sid="([^"]+)"', figure) for figure in figures]
    found = [name for own in ids for name in own]
    assert len({*found}) == len(found)
    for figure, own in zip(figures, ids, strict=True):
        assert {*re.findall(r'(?:url\(|href=")#([^)"]+)', figure)} == {*own}


def test_code_of_a_page_is_marked_where_it_has_another_ink_alone():
    """Marks of names and operators would be most of its weight."""
    code = 'def f(x, *, n=2):\n    """Return it."""\n    return x @ x.T if x is not None else "a"  # (n, n)'
    page = highlight_code(code)
    assert {*re.findall('<span class="(.*?)"', page)} == {"k", "sd", "kc", "ow", "c1"}
    assert html.unescape(re.sub("<.*?>", "", page)).strip() == code


def test_a_phone_breaks_no_name_no_formula_from_its_comma_and_no_arrow():
    page = markdown("If $d_k$, then ($n_q$) and $k$ words.")
    glued = re.findall('class="glue">(.*?)</span>', page)
    assert [re.sub("<.*?>", "", one) for one in glued] == ["dk,", "(nq)"]
    long = "        output = al.scaled_dot_product_attention(query[None], key[None], al.causal_mask(4))"
    code = html.unescape(re.sub("<(?!wbr).*?>", "", highlight_code(long))).strip()
    assert code.replace("<wbr>", "") == long.strip()
    assert "al<wbr>.scaled_dot_product_attention(<wbr>query" in code
    assert "0.5\xa0-" not in (arrow := reading.columns_html(["0.5 -> 1.936621  6.683105  1.595068  " * 2]))
    assert " -\u2060&gt;" in arrow


def test_a_long_formula_is_broken_where_it_is_whole():
    """Before an equals sign or a product that no bracket of LaTeX encloses."""
    long = r"\text{bytes of a token} = 2 \cdot \frac{\text{layers} = 3}{4} \cdot d_k \qquad x = 1 + \text{one more}"
    parts = [re.sub("<.*?>", "", one) for one in formula(long, "block").split("<math")[1:]]
    assert len(parts) == 6 and formula(long, "block").count("<br>") == 1
    assert formula("a = b", "block").count("<math") == 1


def test_printed_columns_that_no_phone_holds_are_a_table():
    lines = [
        "      name     male   female     verb  pronoun      who",
        "Anna 1.000    0.000    1.000    0.435    0.000   -2.334",
    ]
    lines = [lines[0].replace("name", " name"), *[lines[1][:4] + "  " + lines[1][5:]] * 2]
    page = reading.columns_html([*lines, "and a line more"])
    cells = re.findall("<t([hd])( class=right)?>([^<]*)", page)
    assert [words for _, _, words in cells[:7]] == ["", "name", "male", "female", "verb", "pronoun", "who"]
    assert [(kind, bool(right)) for kind, right, _ in cells] == [("h", k > 0) for k in range(7)] + 2 * [
        ("d", k > 0) for k in range(7)
    ]
    assert cells[13][2] == "-2.334" and page.replace("\xa0", " ").endswith(">and a line more</pre>")


def test_a_few_lines_of_two_columns_go_on_below_themselves_and_others_scroll():
    line = "queries and keys reordered, on a phone   0.25"
    three, ten = reading.columns_html([f"{line}   0.50"] * 3), reading.columns_html([line] * 10)
    assert "aligned" in three and "aligned" in ten and "aligned" not in reading.columns_html([line] * 3)


def test_a_page_says_its_minutes_once():
    """Above its first text, so the question is without them, also where they begin a line."""
    first = [read_source(notebook.source).cells[0].source for notebook in SERIES[1:]]
    for words in (*first, "# 1 · It\n\n**Question.** Must\nit?\n*5 minutes. No torch.*"):
        asks = re.search('<p class="story">(.*?)</p>', reading.opening(words), re.DOTALL)[1]
        assert "minutes" in words and "minutes" not in asks, asks


def test_folded_code_behind_folded_code_is_one_fold():
    """What shows nothing joins the fold behind it: its lines are all there, in their order; other cells stay."""

    def cell(source, folded=True, **more):
        around = {"around": more.pop("around", ["", ""]), "jupyter": {"source_hidden": folded}}
        return nbformat.v4.new_code_cell(source, metadata=around, **more)

    def joined(*cells):
        return [one.source for one in reading.join_folds(cells)]

    shows = {"outputs": [nbformat.v4.new_output("stream", text="1")]}
    text = nbformat.v4.new_markdown_cell("text", metadata={"around": ["", ""]})
    assert joined(cell("a"), cell("b"), cell("c", **shows), cell("d", **shows)) == ["a\n\n\nb\n\n\nc", "d"]
    assert joined(cell("a"), text, cell("b"), cell("c", False), cell("d")) == ["a", "text", "b", "c", "d"]
    assert joined(cell("a"), cell("b", around=["<p>", ""]), cell("c")) == ["a", "b", "c"]

"""A lecture keeps what it promises: its questions are answered, its clock holds, and no slide is a terminal."""

import re
from html import unescape
from itertools import pairwise

import nbformat
import numpy as np
import pytest
import torch

from attncourse import PREDICTIONS, smollm
from attncourse.clinic import CASES, Attention
from attnlib import attention_trace, merge_heads, padding_mask, split_heads
from attnlib.examples import SENTENCE, TWO_HEADS
from attnlib.live import ribbons
from tools import lecture, plans
from tools.links import Address
from tools.numbering import numbers
from tools.page import markdown
from tools.series import SERIES, find_notebook

GUIDE = plans.GUIDE.read_text("utf-8")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
# A slide that compares has numbers of another section, too.
BEFORE = {r"Step 6 · Dividing by $\sqrt{d_k}$": "Step 5 · The output: a weighted sum of values"}
MOST_NUMBERS = {"45-minute lecture": 60, "90-minute lecture": 60, "Half day": 100}


@pytest.fixture(scope="module", params=plans.names(GUIDE))
def planned(request):
    """Return the Plan of each lecture, and its slides."""
    return lecture.slides(request.param)


def rounds(told, known):
    """Return whether a number that is told is one of the known ones, or one of them with fewer decimals."""
    off = 0.50001 / 10 ** len(told.partition(".")[2]) if "." in told else 0
    return any(abs(float(told) - one) <= off for one in known)


def heading(slide):
    return slide.head.partition(" · ")[2]


def words(html):
    """Return the words of some HTML, and of its figures."""
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL))


def on_time(plan, slides):
    """Return the slides that a speaker shows who is late."""
    spans = lecture.left_out(slides, plan).items()
    return [slide for i, slide in enumerate(slides) if not any(first <= i < behind for first, behind in spans)]


def unanswered(slides):
    """Return the questions that open a notebook on these slides, and that no slide after answers."""
    found = []
    for asked, answer in (part for parts in lecture.TOLD["questions"].values() for part in parts):
        html = markdown(asked).strip().removeprefix("<p>").removesuffix("</p>")
        for i, slide in enumerate(slides):
            answers = " ".join(lecture.plain(later.words) for later in slides[i:])
            if html in slide.question and lecture.plain(answer) not in answers:
                found.append(asked)
    return found


def test_the_cover_does_not_give_the_first_answer_away(planned):
    cover = planned[1][0].picture
    assert "gave" in cover and "Ribbons" not in cover and "--key-text" not in cover and "--ribbon" not in cover


def test_no_lecture_is_won_by_one_letter(planned):
    _, slides = planned
    letters = re.findall("Right is <strong>(.)</strong>", " ".join(slide.notes for slide in slides))
    shares = [letters.count(letter) / len(letters) for letter in "abc"]
    assert len(letters) > 2 and max(shares) <= 0.45 and (len(letters) < 6 or min(shares) >= 0.25), letters


def test_each_question_that_opens_a_notebook_is_answered_on_a_slide(planned):
    plan, slides = planned
    openings = {slide.head[:2] for slide in slides if slide.question} - {""}
    assert openings >= {step.number for step in plan.steps if step.number}
    assert unanswered(slides) == []
    assert unanswered(on_time(plan, slides)) == []


def test_a_question_without_its_answer_is_not_asked():
    guide = lecture.Chapter(GUIDE, find_notebook("masks").number)
    assert "raise no error" not in guide.opening(None, "Where the mask is False, ...").question
    assert "raise no error" in guide.opening(None, "A mask with two axes ...").question
    with pytest.raises(SystemExit, match=r"\d\d_masks: no slide answers its question. Fix: \[questions\]"):
        guide.opening(None, "")


def test_no_deck_is_made_of_a_notebook_whose_votes_have_changed_since(monkeypatch):
    """A letter would be right in the notes, and another on the slide."""
    read = lecture.read_source
    lecture.Chapter(GUIDE, find_notebook("scaling").number)

    def exchanged(path):
        notebook = read(path)
        for cell in notebook.cells:
            cell.source = cell.source.replace("- **a** 1, since", "- **a** 8, since")
        return notebook

    monkeypatch.setattr(lecture, "read_source", exchanged)
    with pytest.raises(SystemExit, match=r"(\d\d_scaling): built before its votes changed. Fix: .*notebooks \1"):
        lecture.Chapter(GUIDE, find_notebook("scaling").number)


def test_the_rescue_keeps_the_whole_formula(planned):
    plan, slides = planned
    assert any(r"\frac{Q K^T}{\sqrt{d_k}}" in slide.words for slide in on_time(plan, slides))


def test_a_short_lecture_ends_where_it_began():
    _, slides = lecture.slides("45")
    first, again = [
        slide for slide in slides if "attnlib-still" in slide.picture and slide.head.startswith(SERIES[0].number)
    ]
    assert first.picture == again.picture and (first.kind, again.kind) == ("", "again")
    assert slides.index(first) == 1 and slides.index(again) == len(slides) - 2
    assert "left end" in slides[-3].picture and "your own sentence" in slides[-1].picture


def test_no_slide_shows_what_a_terminal_prints(planned):
    for slide in planned[1]:
        assert "printed" not in re.findall(r'class="(\w+)', slide.picture), slide.head
    cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("stream", text="[[1 0]]")])
    with pytest.raises(SystemExit, match=r"what a terminal prints. Fix: say in tools/lecture.toml"):
        lecture.Chapter(GUIDE, find_notebook("by_hand").number).picture(cell)
    assert "<strong>1</strong>" in lecture.Chapter(GUIDE, find_notebook("by_hand").number).picture(cell, "**1**")


def test_a_picture_does_not_name_what_its_slide_asks(planned):
    for slide in planned[1]:
        for entry in lecture.TOLD["slides"].get(f"masks · {heading(slide)}", []):
            for its, other in entry.get("renames", {}).items():
                assert its not in slide.picture and f">{other}<" in slide.picture


def test_no_slide_has_sixty_numbers(planned):
    plan, slides = planned
    for slide in slides:
        numbers = NUMBER.findall(words(slide.question + slide.picture) + slide.words)
        assert len(numbers) < MOST_NUMBERS[plan.title], (slide.head, len(numbers))


def test_each_number_that_a_slide_shows_is_printed_in_its_section():
    chapters = {}
    for name, entries in lecture.TOLD["slides"].items():
        lesson, _, title = name.partition(" · ")
        chapter = chapters.setdefault(lesson, lecture.Chapter(GUIDE, find_notebook(lesson).number))
        cells = plans.section(chapter.sections, title, lesson)
        assert len(entries) <= len(plans.slide_cells(cells)), name
        cells = cells + chapter.sections.get(BEFORE.get(title), [])
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        data = [one.get("data", {}) for one in outputs]
        printed = " ".join(words(one.get("text/html", "") + one.get("image/svg+xml", "")) for one in data)
        printed += " ".join(one.get("text", "") for one in outputs)
        known = {2.718} | {float(one) for one in NUMBER.findall(printed + " ".join(cell.source for cell in cells))}
        if name.startswith("multi_head · 1"):
            known |= weights_of_saw()
        if "Would a test" in title or "Step 4 · Softmax" in title:
            q, k, v = SENTENCE.project()
            known |= set((q @ k.T).ravel()) | {7.44} | set(attention_trace(q, k, v, scale=1).weights[1])
        for entry in entries:
            told = " ".join(str(entry.get(part, "")) for part in entry.keys() - {"given", "of"})
            told = re.sub(r"<span.*?>|notebook \d\d", "", told)
            assert [one for one in NUMBER.findall(told) if not rounds(one, known)] == [], (name, told)
    for name, told in lecture.TOLD["openings"].items():
        cells = lecture.Chapter(GUIDE, find_notebook(name).number).cells
        printed = " ".join(str(cell.get("outputs")) for cell in cells)
        assert {*NUMBER.findall(told)} - {"1", "4"} <= {*NUMBER.findall(printed)}, name  # heads have numbers


def weights_of_saw():
    """Return what *saw* gives to each word in both heads: its view draws them and prints one."""
    x, *matrices, _ = TWO_HEADS
    q, k, v = (split_heads(x @ W, 2) for W in matrices)
    return set(attention_trace(q, k, v).weights[:, 1].ravel())


def test_a_bar_is_as_long_as_its_number():
    def drawn(*numbers):
        cells = "".join(f'<i class="share">{number}</i>' for number in numbers)
        return re.findall(r"--n: ([.\d]+)\">([.\d]+)<", lecture.with_bars(cells))

    assert drawn("0.84", "1") == [("0.840", "0.84"), ("1.000", "1")]  # a share is one of 1
    assert drawn("7.78", "2.39") == [("1.000", "7.78"), ("0.307", "2.39")]  # others are one of the largest


def test_a_table_below_a_question_waits_for_its_answer_and_for_nothing_else():
    shown = "<table><tr><th>a</th></tr><tr><td>b</td><td>c</td></tr><tr><td>d</td></tr></table><p>e</p>"
    waits = re.sub(r' data-fragment-index="0"', "", lecture.to_fill_in(shown, 1))
    assert waits == shown.replace("c", '<span class="fragment">c</span>').replace("<p>", '<p class="fragment">')
    asks = lecture.Slide("x", "So.", shown, question="<p>Why?</p>")
    assert (
        '<div class="picture">' in asks.html and '<div class="picture fragment"' in asks._replace(picture="<svg>").html
    )
    assert "fragment" not in asks._replace(question="<p>So.</p>").html


@pytest.mark.parametrize("name", ["45", "90", "half-day"])
def test_the_notes_have_a_clock_what_to_leave_out_and_the_next_title(name):
    plan, slides = lecture.slides(name)
    ends = [re.search(r"this slide to (\d):(\d\d):(\d\d)$", slide.minutes) for slide in slides[1:-1]]
    seconds = [3600 * int(end[1]) + 60 * int(end[2]) + int(end[3]) for end in ends]
    assert seconds == sorted(seconds) and min(b - a for a, b in pairwise(seconds)) >= 20
    assert {60 * (step.begins + step.minutes) for step in plan.steps[:-1]} <= {*seconds}
    late = [i for i, slide in enumerate(slides) if "<strong>Late?</strong>" in slide.after]
    assert late == sorted(lecture.left_out(slides, plan))
    for slide, after in pairwise(slides):
        assert words(slide.after).split("Next. ")[-1].split() == words(lecture.headline(after)[0]).split()


def test_minutes_that_no_slide_needs_are_named_or_go_to_the_exercise_of_their_row():
    said = lecture.Slide("x", "So.", notes="word " * 50)
    step = plans.Step(10, 6, "01", [])
    assert lecture.clock([said, said], step) == [("0:13:00", 130), ("0:16:00", 130)]
    task = lecture.Slide("x", "**Exercise 1.1** · 3 minutes, easy", kind="exercise")
    assert lecture.clock([said, task], step) == [("0:11:10", 20), ("0:16:00", 0)]
    assert lecture.clock([said._replace(kind="title")], step) == [("0:16:00", 0)]  # a break
    assert (lecture.free(40), lecture.free(20)) == (", 40 s spare", "")


def test_a_line_about_a_notebook_that_may_be_left_out_says_so():
    plan, slides = lecture.slides("90")
    number = find_notebook("bug_clinic").number
    (behind,) = [b for a, b in lecture.left_out(slides, plan).items() if slides[a].head.startswith(number)]
    assert 'Not if you left it out:</p><p class="say so-far">So far' in slides[behind].notes
    assert "Not if you" not in "".join(slide.notes for slide in slides[:behind] + slides[behind + 1 :])


def test_each_slide_of_a_heading_has_its_own_notes(planned):
    plan, _ = planned
    for step in plan.steps:
        chapter = lecture.Chapter(GUIDE, step.number) if step.number else None
        for title in step.headings if chapter else ():
            if not title.startswith("Exercise"):
                said = [one for one in chapter.notes(title) if one.strip()]
                assert len(said) == len(chapter.slides(title)), (step.number, title)


def test_the_notes_part_what_is_said_from_what_is_done():
    told = lecture.mark_lines("Press Home: “So. It *is*.” The room computes “money bank” (1 min), then click.")
    assert told == (
        '<p class="do">Press <kbd>Home</kbd>:</p><p class="say">So. It <em>is</em>.</p>'
        '<p class="do">The room computes “money bank” (1 min), then <kbd>click</kbd>.</p>'
    )
    heading = "Step 4 · Softmax: from scores to weights"
    (said,) = lecture.Chapter(GUIDE, find_notebook("by_hand").number).notes(heading)
    assert '<p class="say"><span' in said and heading not in said
    marked = lecture.mark_lines("“So?” *Vote.* “Now.” *Click.* Wait. *Early?* “And *she*?”")
    assert marked == (
        '<p class="say">So?</p><p class="vote"></p><p class="key"></p><p class="say">Now.</p><p class="key"></p>'
        '<p class="do">Wait.</p><p class="early"><strong>Early?</strong> “And <em>she</em>?”</p>'
    )
    with pytest.raises(SystemExit, match=r"a vote without \*Vote\.\* in TEACHING"):
        lecture.place_vote("<p>asked</p>", "<p>said</p>")


def test_the_notes_say_what_each_key_shows(planned):
    for slide in planned[1]:
        html, notes = slide.html.split('<aside class="notes">')
        clicks = {*re.findall(r'data-fragment-index="(\d)"', html)}
        told = re.findall('<p class="key">(.*?)</p>', notes)
        live = "data-attnlib" in html  # a slider in use keeps the arrow keys
        asks = live and slide.head.startswith(SERIES[0].number) and slide.kind != "again"
        assert told.count("") == asks, slide.head  # its script fills it
        assert bool([one for one in told if one]) == bool(clicks or live), slide.head
        assert "".join(told).count("<kbd>→</kbd>") == len(clicks), slide.head
        assert ["PageDown" in one for one in told] == [False] * (len(told) - live) + [True] * live, slide.head
        voted = re.search('<p class="say">(?!So far).*Vote: .*?</ul>\n</div><p class="key">', notes, re.DOTALL)
        assert ("right option" in "".join(told)) == bool(voted) == ("Vote: " in notes), (
            slide.head
        )  # read from top to bottom


def test_no_slide_before_an_exercise_answers_it():
    _, slides = lecture.slides("half-day")
    at = {heading(slide).partition(" · ")[0]: i for i, slide in reversed([*enumerate(slides)])}
    assert at["Step 1"] < at["Exercise 1.1"] < at["Step 2"]
    q, k, v = SENTENCE.project()
    row, scaled = attention_trace(q, k, v, scale=1), attention_trace(q, k, v)
    right = {
        "2": ["5 0 3 2"],
        "3": [f"{row.weights[3, 0]:.2f}"],
        "4": [f"{n:.2f}" for n in (scaled.weights[3, 0], scaled.output[3, 0])],
    }
    shown = [" ".join(NUMBER.findall(words(slide.question + slide.picture) + slide.words)) for slide in slides]
    for number, answers in right.items():
        i = at[f"Exercise 1.{number}"]
        assert [one for one in answers if one in " ".join(shown[:i])] == [], number
        after = {float(one) for one in NUMBER.findall(" ".join(shown[i + 1 :]))}
        assert answers == right["2"] or all(rounds(one, after) for one in answers)
    table = slides[at["Step 4"]].picture  # works the row of another word
    e = np.exp((q @ k.T)[1])
    assert NUMBER.findall(words(table)) == [
        f"{e.sum():.2f}",
        *(n for s, x in zip((q @ k.T)[1], e, strict=True) for n in (f"{s:.0f}", f"{x:.2f}", f"{x / e.sum():.2f}")),
    ]


def test_a_break_says_how_long_it_is_and_what_to_start():
    plan, slides = lecture.slides("half-day")
    breaks = [slide for slide in slides[1:] if slide.kind == "title"]
    assert [re.search("data-minutes='(\\d+)'", slide.words)[1] for slide in breaks] == ["15", "15"]
    assert all("Start *Run All Cells* in notebook" in slide.words and "glyph" in slide.picture for slide in breaks)
    begins = [step.begins for step in plan.steps if not step.number][:2]
    assert "breaks at minutes {} and {}.".format(*begins) in plan.lead
    assert "breaks at minutes {} and {} |".format(*begins) in GUIDE


def drawn(slide):
    return "<svg" in slide.picture or "<img" in slide.picture


def moves(slide):
    return lecture.ALIVE in slide.picture


# What a note names, and how it shows on a slide; a live view shows its numbers as its slider moves.
NAMED = {
    r"picture under|first picture|view under|maps under|the picture\b": drawn,
    r"[Ss]lider|\b(Home|End)\b|\bdrag|[Pp]ress|Take the steps": moves,
    r"last (line|row|column|letter)|the third grid|the table\b": lambda slide: (
        "<table" in slide.picture or drawn(slide)
    ),
    r"\b[Vv]ote|[Hh]ands": lambda slide: "?" in slide.question + slide.words or moves(slide),
}


def lacking(slide):
    """Return what the notes of a slide name, a picture, a slider, a vote, a number, and the slide does not have."""
    said = words(lecture.UNSAID.sub("", slide.notes))
    found = [match[0] for what, shows in NAMED.items() if (match := re.search(what, said)) and not shows(slide)]
    shown = " ".join((words(slide.question + slide.picture) + slide.words).split())
    found += [share for share in re.findall(r"\b\d+ of \d+\b", said) if share not in shown]
    if not moves(slide):
        seen = {float(one) for one in NUMBER.findall(words(slide.head + slide.question + slide.picture) + slide.words)}
        for one in set(re.findall(r"\d+\.\d+", said)) - {*numbers().values()}:  # exercises have numbers, too
            if not rounds(one, seen):
                found.append(one)
    return found


def test_what_a_note_names_is_on_its_slide(planned):
    spoken = [slide for slide in planned[1] if slide.kind not in ("title", "exercise")]
    assert {slide.head: lacking(slide) for slide in spoken if lacking(slide)} == {}


def test_the_minutes_of_a_row_hold_its_votes_and_what_the_room_does(planned):
    plan, slides = planned
    for step in plan.steps:
        row = [slide for slide in slides if slide.minutes.startswith(lecture.minutes(step, plan))]
        oral = sum(int(n) for slide in row for n in re.findall(r"\((\d) min\)", slide.notes))
        votes = sum("Vote: " in slide.notes for slide in row)
        shown = sum(slide.kind != "exercise" for slide in row) / 3  # a slide takes twenty seconds at least
        assert oral + 2 * votes + shown <= step.minutes, (step, oral, votes)


def test_an_exercise_shows_what_it_fills_and_its_minutes(planned):
    asked = [slide for slide in planned[1] if slide.kind == "exercise"]
    assert len(asked) == sum(title.startswith("Exercise") for step in planned[0].steps for title in step.headings)
    assert all(re.search(r"^\*\*Exercise \d+\.\d\*\* · \d+ minutes, \w+$", one.words, re.MULTILINE) for one in asked)
    empty = [one.title for one in asked if "to-fill" not in one.picture and 'class="code"' not in one.picture]
    assert all("Read the map" in title for title in empty) and len(empty) <= 1  # there the map is what one needs
    assert lecture.to_fill("x = None  # a list of three numbers").count("<b>") == 3


def test_the_example_of_an_exercise_is_what_its_right_answer_gives():
    entries = lecture.TOLD["exercises"].items()
    told = {
        name.rpartition(" · ")[2]: entry["shows"].split("|---|\n")[-1] for name, entry in entries if "shows" in entry
    }
    shown = {
        name: [*map(int, re.findall(r"\d", re.sub(r'"no"|[a-z] \d|of two', "", table)))] for name, table in told.items()
    }
    (x, _, w_k, *_), (q, k, v) = SENTENCE, SENTENCE.project()
    assert shown["A key"] == np.column_stack([x[0], w_k]).ravel().tolist()
    assert shown["A row of scores"] == np.column_stack([[q[3]] * 4, k]).ravel().tolist()
    assert shown["A row of weights"] == [*(q @ k.T)[3], 1]
    assert shown["A scaled output"] == [*(q @ k.T)[3], *abs(v).ravel()]
    one, two = np.zeros((4, 3)), np.zeros((2, 4, 3))
    assert shown["Scores"] == [n for a in (one, two) for n in (*a.shape, *a.shape, *(a @ a.swapaxes(-1, -2)).shape)]
    by_hand = lecture.Chapter(GUIDE, find_notebook("by_hand").number)
    weights = attention_trace(q, k, v, scale=1).weights[3]
    told_right = {title.rpartition(" · ")[2]: words("".join(by_hand.notes(title))) for title in by_hand.sections}
    for name, right in (("A row of weights", weights), ("A scaled output", attention_trace(q, k, v).output[3])):
        assert f"Wait for {', '.join(f'{n:.3f}' for n in right)}." in told_right[name]
    lengths = np.array([2, 4])
    assert shown["The padding mask"] == np.column_stack([lengths, padding_mask(lengths, 4)[:, 0]]).ravel().tolist()
    letters = np.array([*"ABCDEFGHIJKLMNOPQRSTUVWX"]).reshape(4, 6)
    heads = split_heads(letters, 2)
    for name, columns in (("Split", heads), ("Merge", [*heads, merge_heads(heads)])):
        drawn = [row.split(" | ")[1:] for row in told[name].replace(" |\n", "\n").splitlines()]
        assert drawn == [[" ".join(column[i]) for column in columns] for i in range(4)]
    healthy, sick = Attention(24, 4), CASES["case_34"].module(24, 4)
    for layer, moves in ((healthy, [True, True, True]), (sick, [True, False, True])):
        a, b, c, mask = *torch.randn(3, 2, 5, 24), torch.ones(5, 5, dtype=torch.bool)
        calls = (a, b, b, mask), (c, b, b, mask), (a, c, c, mask), (a, b, b, mask.tril())
        first, *changed = (layer(*call)[0] for call in calls)
        assert [not torch.allclose(first, out) for out in changed] == moves


def test_a_click_shows_what_is_right_in_an_exercise(planned):
    asked = [slide for slide in planned[1] if slide.kind == "exercise"]
    assert all(one.html.count('class="right fragment') == 1 and "the right lines" in one.html for one in asked)
    shown = lecture.with_solution("<p>?</p>", "def f(x):\n    return ...", "def f(x):\n    return x + 1")
    assert "x + 1" in words(shown.partition('<div class="right fragment"')[2])
    weights = "e = [math.exp(s) for s in scores[3]]\nmy_weights = [value / sum(e) for value in e]"
    filled = lecture.filled_boxes("my_weights", weights)
    assert NUMBER.findall(words(filled)) == ["0.839", "0.006", "0.114", "0.042"]


def test_the_second_probe_strikes_for_one_of_eight_cases():
    """A layer that ignores its mask gives the same output with a causal mask and without."""
    (entry,) = lecture.TOLD["slides"]["bug_clinic · Three patients without a name"]
    told = dict(re.findall(r"(case_\d+) \| <span[^>]*>\W*(moves|stays)", entry["shows"]))
    x, mask = torch.randn(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).tril()
    layers = {name: CASES[name].module(24, 4) for name in told}
    gaps = {name: (layer(x, attn_mask=mask)[0] - layer(x)[0]).abs().max() for name, layer in layers.items()}
    assert len(told) == 8 and told == {name: "stays" if gap < 1e-6 else "moves" for name, gap in gaps.items()}


def test_code_on_a_slide_keeps_its_lines_and_a_long_comment_stands_above(planned):
    shown = [unescape(re.sub("<[^>]*>", "", slide.picture)) for slide in planned[1]]
    assert any(
        "scaled scores\nscaled = Q @ K.T / np.sqrt(K.shape[1])\ne = np.exp(scaled)\n# keepdims" in text
        for text in shown
    )


def test_the_notes_reply_to_each_wrong_letter():
    question = PREDICTIONS["score_std"]
    told = lecture.vote(question)
    assert "Right is <strong>b</strong>" in told and question.because["b"] not in told
    assert told.count("<li>") == 2 and question.because["a"] in told and question.because["c"] in told


def test_a_question_without_a_picture_stands_above_what_the_first_slide_shows_or_has_the_sign_of_its_notebook():
    asks, first = lecture.Slide("02", "", notes="a", question="?"), lecture.Slide("x", "So.", "<table>", "b")
    joined = first._replace(notes="ab", question="?", sign="sign")
    assert lecture.join_opening(asks, "sign", first, first) == [joined, first]
    assert "sign" not in joined.html and "sign" in joined._replace(picture="<svg>").html  # a table waits by itself
    assert "sign" not in joined._replace(question="Read it aloud").html  # its picture does not wait
    for other in (first._replace(question="?"), first._replace(kind="exercise")):
        assert lecture.join_opening(asks, "sign", other) == [asks._replace(question="?sign"), other]


@pytest.mark.parametrize("name", ["45", "90", "half-day"])
def test_a_slide_is_no_title_alone(name):
    """A headline that has taken all its words has a picture below it; only a break has none."""
    for slide in lecture.slides(name)[1]:
        _, asks, words = lecture.headline(slide)
        assert asks or words or slide.picture or slide.title == "Break", slide.head


def test_the_last_slide_has_the_homework_of_its_plan_and_the_address_to_copy(planned, monkeypatch):
    plan, slides = planned
    now, _, more = plan.homework.partition("; where no ")
    assert now in slides[-1].picture and "where no" not in slides[-1].picture
    assert not more or f"Where no {more}." in words(slides[-1].notes)
    assert "](" not in plan.homework and "://" not in words(slides[-1].picture)
    monkeypatch.setattr(lecture, "address", lambda: Address("octocat/attnlib", "main"))
    told = lecture.at_home(plan, "../")
    assert (
        '<a href="../">your own sentence</a>' in told
        and "<span id='at'>https://octocat.github.io/attnlib/</span>" in told
    )


def test_the_return_says_what_its_view_shows():
    view = ribbons(smollm.stops("blank"))
    says, mary = {}, {}
    for way, d_k in ((1, 1), (1, 4096), (0, 1), (0, 4096)):
        content, shown = view.draw(way=way, d_k=d_k)
        says[way, d_k] = re.search(r"You said Mary\.</tspan> ([^<]+)", content)[1]
        mary[way, d_k] = shown["weights"][-1].argmax() == 1
    assert ["Mary" in says[1, d_k] for d_k in (1, 4096)] == [False, False] and "“the”" in says[1, 1]
    assert mary == {(1, 1): False, (1, 4096): False, (0, 1): True, (0, 4096): True}
    told = lecture.slides("45")[1][-2].notes
    first = view.draw(way=0, d_k=1)[1]["weights"][-1, 1]
    assert f"keeps Mary first, {first:.2f}" in told and "Mary at neither end" in told


@pytest.mark.parametrize("home", [None, "https://octocat.github.io/attnlib/"])
def test_the_last_slide_says_where_to_go(home):
    *_, last = lecture.slides("45", home)[1]
    homework = "Then notebook 00, 01 up to Step 6, 02 up to Four lines, exercise 1.1."
    assert homework in last.html and f"{find_notebook('it_speaks').number} · it speaks" in last.html
    assert ("://octocat.github.io/attnlib/" in words(last.picture)) == (home is not None)
    assert (f'<a href="{home}">your own sentence</a>' in last.html) == (home is not None)
    assert ("Write on the board" in last.html) == (home is None) and "?at=" not in last.html

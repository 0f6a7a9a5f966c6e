"""What a right answer shows: a sentence, a picture of the reader's own result, and what comes next."""

import html
import re

import numpy as np
import pytest
from lessons import three_right

import attnlib as al
from attncourse import EXERCISES, check
from attncourse.catalogue import LESSONS
from attncourse.engine import describe, verdict
from attncourse.lessons import masks, multi_head, one_token_at_a_time, scaling, todays_head, vectorized
from attnlib.examples import SENTENCE
from attnlib.symbols import maths
from tools import asked

PAID = [name for name, exercise in EXERCISES.items() if exercise.payoff]
DRAWN = [name for name in PAID if EXERCISES[name].payoff.picture]


def cells(page):
    """Return the texts of the cells of a picture, row by row."""
    rows = re.findall("<tr.*?>(.*?)</tr>", page)
    return [[html.unescape(re.sub("<.*?>", "", one)) for one in re.findall("<td.*?</td>", row)] for row in rows]


def test_a_right_answer_says_what_it_means_everywhere_but_to_a_puzzle():
    """A puzzle of *Program a head* says what it measured."""
    assert {*EXERCISES} - {*PAID} == {exercise.name for exercise in LESSONS["program_a_head"].exercises}
    unknown = {name for lesson in LESSONS.values() for name in lesson.payoffs} - {*EXERCISES}
    assert not unknown


@pytest.mark.parametrize("name", [name for name in PAID if name not in DRAWN])
def test_each_right_answer_that_is_not_drawn_is_told(name):
    told = EXERCISES[name](three_right(name)[0])
    page = told._repr_html_()
    assert told.passed and not told.picture and told.meaning and told.next, told
    assert (
        told.next.startswith("Next: ")
        and "$" not in page
        and "[[" not in page
        and "*" not in told.meaning.replace("*Alice*", "")
    )


@pytest.mark.parametrize("name", DRAWN)
def test_each_right_answer_is_drawn(name, monkeypatch):
    """A picture that cannot be drawn is left out without a word, but not here."""
    monkeypatch.setattr(describe, "draw_picture", lambda payoff, answer: payoff.picture(answer))
    for answer in three_right(name):
        told = EXERCISES[name](answer)
        assert told.passed and told.picture and told.meaning and told.next, told
        page = told._repr_html_()
        assert f"✓ {maths(EXERCISES[name].heading, 'html')}</strong>" in page and told.picture in page
        assert page.count("<table") == page.count("</table>") and page.count("<div") == page.count("</div>")
        assert max(map(len, cells(told.picture))) <= 9  # a phone has no room for more
        # JupyterLab takes out of an untrusted notebook what is no plain HTML, and a border of currentColor
        assert not re.search("<svg|<script|<style|solid currentColor|dashed currentColor", page)
        assert "[[" not in page and "*" not in told._repr_html_().replace(html.escape(told.message), "")


def test_a_title_has_the_number_of_its_place():
    assert check.scores_of_she(None).heading == "1.2 · A row of scores"
    assert repr(check.scores_of_she(None)) == "… 1.2 · A row of scores: not tried yet"
    assert repr(check.scores_of_she([5, 0, 3, 2])).startswith("✓ 1.2 · A row of scores: right\nAnna fits best")
    assert all(exercise.heading for exercise in EXERCISES.values())


def test_a_picture_that_fails_takes_nothing_from_a_right_answer():
    calls = []

    def softmax(x, axis=-1):
        calls.append(x)
        if np.asarray(x).shape == (2,):  # that of the picture, and of no probe
            raise ValueError
        return al.softmax(x, axis)

    told = check.softmax(softmax)
    assert told.passed and told.picture == "" and told.meaning in repr(told) and calls


def test_a_picture_is_that_of_the_readers_own_answer():
    one, other = (check.what_words_look_for(answer) for answer in three_right("what_words_look_for")[:2])
    assert one.passed and other.passed and one.picture != other.picture
    W_Q = three_right("what_words_look_for")[0]
    weights = al.attention_trace(SENTENCE.x @ np.array(W_Q), *SENTENCE.project()[1:]).weights
    assert [row[1:] for row in cells(one.picture)[1:]] == [[f"{x:.2f}" for x in row] for row in weights]


def test_her_row_is_filled_line_by_line():
    filled = []
    for name in ("key_of_anna", "scores_of_she", "weights_of_she", "output_of_she"):
        found = cells(EXERCISES[name](EXERCISES[name].right).picture)
        filled.append([row[1] != "·" for row in found[1:]])
    assert filled == [[i <= j for i in range(4)] for j in range(4)]
    assert found[1] == ["key", "name, female", "verb", "name", "female"]
    assert found[3:] == [
        ["weight, ÷ √3", "0.646", "0.036", "0.204", "0.114"],
        ["she takes", "who 0.885 (Anna is 2, Ben is -2)"],
    ]


def test_the_sentences_say_what_the_numbers_are():
    trace = al.attention_trace(*SENTENCE.project())
    assert trace.scores[3].tolist() == [5, 0, 3, 2]  # "with 5", "Ben comes second"; "two points"
    assert 7 < np.exp(5 - 3) < 7.5  # "seven times the weight"
    assert round(trace.output[3, 0], 3) == 0.885 and trace.value[0, 0] == 2  # "0.885 of 2"
    assert not trace.value[[1, 3], 0].any()  # "two words have nothing to give"
    assert cells(vectorized.payoffs.both_softmaxes(al.softmax))[1:] == [["plain", "nan", "0"], ["yours", "1", "0"]]
    assert cells(scaling.payoffs.keys_in_play(al.entropy))[1][0] == "1.00 in play"
    assert cells(scaling.payoffs.keys_in_play(al.entropy))[3][0] == "10.00 in play"
    for name in ("by_hand", "scaling", "masks", "vectorized", "todays_head"):
        lesson = LESSONS[name]
        assert {*lesson.payoffs} == {exercise.name for exercise in lesson.exercises}


def test_the_poke_is_that_of_the_readers_function():
    """Zeros below the diagonal, and on and above it what moves; a function that leaks shows it."""
    moved = [
        [float(x) for x in row[1:]] for row in cells(masks.payoffs.poked_words(al.scaled_dot_product_attention))[1:]
    ]
    assert not np.tril(moved, -1).any() and (np.array(moved)[np.triu_indices(4)] > 0.02).all()
    leaks = cells(masks.payoffs.poked_words(lambda q, k, v, mask: al.scaled_dot_product_attention(q, k, v)))[1:]
    assert np.tril([[float(x) for x in row[1:]] for row in leaks], -1).any()


def test_a_cache_a_window_and_a_rotation_show_what_the_readers_function_does():
    """Each picture is drawn by the function that was handed in, so one that is not right shows other numbers."""
    steps = cells(check.decode_step(three_right("decode_step")[0]).picture)
    assert [row[1:] for row in steps[1:]] == [[str(kept), "0.000"] for kept in (1, 2, 3, 4)]
    forgets = cells(one_token_at_a_time.payoffs.one_by_one(lambda q, k, v, past, grouped: (grouped(q, k, v), (k, v))))
    assert [row[1] for row in forgets[1:]] == ["1"] * 4 and forgets[4][2] != "0.000"
    chances = cells(check.draft_chances(three_right("draft_chances")[0]).picture)
    assert chances[3][1:] == chances[4][1:] != chances[1][1:]
    scores = cells(check.rope(three_right("rope")[0]).picture)[1:]
    assert len({tuple(row[1:]) for row in scores}) == 1 and scores[0][1] != scores[0][2]
    assert len({tuple(row[1:]) for row in cells(todays_head.payoffs.same_distance(lambda x, at: x + at))[1:]}) == 3
    at_two = cells(check.look_back(three_right("look_back")[0]).picture)
    assert all(float(x) >= 0.45 for row in at_two[1:3] for x in row[1:])  # as the exercise asks
    moved = [row[1] for row in cells(check.rotary_attention(three_right("rotary_attention")[0]).picture)[1:]]
    assert moved[:2] == ["0.000", "0.000"] and moved[2] != "0.000"
    assert [row[1:] for row in cells(check.grouped_attention(three_right("grouped_attention")[0]).picture)][1] == list(
        ("K1", "K1", "K2", "K2")
    )


def test_hints_open_one_after_the_other():
    told = check.scores_of_she([5, 0, 3, 1])
    page = told._repr_html_()
    opened = re.findall(r"<summary.*?>▸ (.*?)</summary>", page)
    assert opened == ["Give me a hint (1 of 3)", "The next hint (2 of 3)", "The next hint (3 of 3)"]
    assert page.index("</details>") > page.index(verdict.as_html(told.hints[-1]))  # each in the one before
    assert "solution" not in page  # a course may hand notebooks out without any
    assert "<details" in check.scores_of_she(None)._repr_html_()
    assert "<details" not in check.scores_of_she([5, 0, 3, 2])._repr_html_()
    assert "<details" not in verdict.Verdict("mine", "wrong", "")._repr_html_()


def test_the_sentences_of_two_heads_say_what_the_numbers_are():
    layer = three_right("multi_head_attention")[0]
    assert cells(multi_head.payoffs.two_names(layer))[1][1:] == ["1.064", "-1.278"]
    no_gradient = cells(multi_head.payoffs.gradients(lambda *args: (np.array([0, 1, 0, 0]),)))
    assert [row[1] for row in no_gradient][:2] == ["✓ gradient reached", "no gradient"]


def test_a_wrong_number_stands_in_a_frame_and_the_right_one_nowhere():
    told = check.scores_of_she([5, 0, 3, 1])
    assert cells(told.picture) == [["yours", "5", "0", "3", "1"]]
    assert re.findall("outline.*?>(.*?)<", told.picture) == ["1"]
    assert check.uniform_divisor(7).picture == ""  # a single number


@pytest.mark.parametrize("name", ["scores_of_she", "uniform_divisor"])
def test_a_page_does_not_show_the_numbers_that_stand_for_any_wrong_answer(name):
    page = asked.field(EXERCISES[name], "numbers")
    assert "9.877" not in page and "98765" not in page and "Give me a hint" in page

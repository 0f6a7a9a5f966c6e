"""docs/exam: every number is computed, the rubrics name known mistakes, and the code of the questions shows them."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import attnlib as al
from attnlib.course import EXERCISES, MISTAKES, check
from attnlib.examples import FEATURES, SENTENCE, WORDS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "exam"
EXAM, WORKSHEET = ((FOLDER / name).read_text("utf-8") for name in ("README.md", "worksheet_01.md"))
QUESTIONS = {int(n): text for n, text in re.findall(r"^### (\d+) · ((?:(?!^##).*\n)*)", EXAM, re.MULTILINE)}


def row(name, n):
    """Return the cells of the row of question n that names a mistake, or "" for the right answer."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in QUESTIONS[n].splitlines() if "|" in line]
    return next(cells for cells in rows[2:] if (f"`{name}`" in cells[1] if name else not cells[1]))


def code(n):
    names = {"np": np}
    exec(re.search(r"```python\n(.+?)```", QUESTIONS[n], re.DOTALL)[1], names)
    return names


def test_the_rubrics_name_mistakes_that_there_are():
    assert sorted(QUESTIONS) == list(range(1, 11))
    known = {*MISTAKES, *EXERCISES}
    named = set(re.findall(r"`([a-z_]+)`", "".join(QUESTIONS.values()) + WORKSHEET))
    assert named <= known, named - known
    assert all(
        named_in & set(MISTAKES)
        for n in (1, 2, 3, 4, 5, 6, 9, 10)
        for named_in in [set(re.findall(r"`(\w+)`", QUESTIONS[n]))]
    )


def test_1_one_query_by_hand():
    query, keys, values = np.array([1.0, 2, 0, 1]), np.array([[2.0, 1, 0, 0], [0, 0, 3, 0]]), np.array([10.0, 2])
    scores = keys @ query
    weights = al.softmax(scores / 2)
    assert (
        f"Scores {scores[0]:g} and {scores[1]:g}, scaled 2 and 0, weights {weights[0]:.2f} and {weights[1]:.2f}"
        in QUESTIONS[1]
    )
    outputs = {
        "": weights @ values,
        "no_scale": al.softmax(scores) @ values,
        "scale_by_d_k": al.softmax(scores / 4) @ values,
        "scale_after_softmax": al.softmax(scores) / 2 @ values,
        "no_exponential": scores / scores.sum() @ values,
    }
    assert {name: row(name, 1)[0] for name in outputs} == {name: f"{x:.2f}" for name, x in outputs.items()}


def test_2_shapes():
    layer, rng = al.MultiHeadAttention, np.random.default_rng(0)
    x, y = rng.normal(size=(2, 5, 24)), rng.normal(size=(2, 7, 24))
    q, k = al.split_heads(x, 4), al.split_heads(y, 4)
    trace = al.attention_trace(q, k, k)
    output = layer(24, 4)(x, y)
    shapes = ", ".join(
        map(
            str,
            (
                q.shape,
                trace.scores.shape,
                trace.output.shape,
                (output[0] if isinstance(output, tuple) else output).shape,
            ),
        )
    )
    assert shapes in QUESTIONS[2]


def test_3_and_4_masks():
    both = al.combine_masks(al.padding_mask([2, 4], 4), al.causal_mask(4))
    seen = [", ".join(str(j + 1) for j in np.flatnonzero(both[text, query])) for text, query in ((1, 2), (0, 3))]
    assert f"{seen[0]}; and {seen[1]}." in QUESTIONS[3]
    values, scores = np.array([[1.0], [5.0]]), np.array([[3.0, 1.0]])
    blocked = al.softmax(np.full((1, 2), -1e9)) @ values
    assert blocked == values.mean() and "-1,000,000,000" in QUESTIONS[4]
    with np.errstate(invalid="ignore"):
        e = np.exp(np.full((1, 2), -np.inf))
        assert np.isnan(e / e.sum()).all()
    assert not al.scaled_dot_product_attention(scores, scores, values[:1], np.zeros((1, 1), bool)).any()


def test_5_and_6_show_the_mistake_that_is_named():
    assert check.scaled_dot_product_attention(code(5)["attention"]).mistake == "softmax_over_queries"
    broken = code(6)["split_heads"]
    x = np.arange(48.0).reshape(1, 6, 8)
    assert broken(x, 2).shape == al.split_heads(x, 2).shape and not np.array_equal(broken(x, 2), al.split_heads(x, 2))
    np.testing.assert_array_equal(broken(x, 2)[0, 0].ravel(), x[0, :3].ravel())
    (mended,) = re.findall(r"`(x\.reshape\(b, n.+?)`", QUESTIONS[6])
    b, n, d = x.shape
    assert np.array_equal(eval(mended, {"x": x, "b": b, "n": n, "d": d, "num_heads": 2}), al.split_heads(x, 2))
    assert (
        check.split_heads(lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], -1)).mistake
        == "split_without_transpose"
    )


def test_7_and_8_a_scale_and_a_cache():
    rng = np.random.default_rng(0)
    assert (rng.normal(size=(20_000, 64)) * rng.normal(size=(20_000, 64))).sum(-1).std() == pytest.approx(8, rel=0.02)
    held = with_cache = without = 0
    for fed in [100] + 9 * [1]:  # each call gives one new token; the last is not fed back
        held += fed
        with_cache, without = with_cache + fed, without + held
    assert f"With a cache {with_cache}:" in QUESTIONS[8] and f"Without one {without}:" in QUESTIONS[8]


def test_9_two_queries_behind_three_keys():
    mask = al.causal_mask(2, 5, align="lower_right")
    chunk = np.hstack([np.zeros((2, 3), bool), al.causal_mask(2)])
    drawn = {"causal_upper_left": np.tri(2, 5, dtype=bool), "past_not_attended": chunk, "mask_inverted": ~mask}
    assert "\n".join(" ".join(map(str, line)) for line in mask.astype(int)) in QUESTIONS[9]
    for name, wrong in drawn.items():
        assert row(name, 9)[0] == " / ".join(" ".join(map(str, line)) for line in wrong.astype(int))


def test_10_two_examples():
    matrices = [np.array(eval(found)) for found in re.findall(r"= (\[\[.+?\]\])", QUESTIONS[10])]
    same, V, Q, K = (m.astype(float) for m in matrices)
    run = al.scaled_dot_product_attention
    np.testing.assert_allclose(run(same, same, V), run(same.copy(), same, V))
    assert f"{run(Q, K, V)[0, 0]:.2f}; with it they are {run(K, Q, V)[0, 0]:.2f}." in QUESTIONS[10]
    assert np.ptp(run(Q, K, V)) == np.ptp(run(K, Q, V)) == 0


def test_a_row_of_twenty_votes():
    share = sum(math.comb(20, k) for k in range(6, 15)) / 2**20
    assert f"6 to 14 show it in {100 * share:.0f} of 100 rows" in EXAM


def test_the_worksheet_follows_ben():
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in WORKSHEET.splitlines() if line.startswith("|")
    ]
    table = {cells[0]: cells[1:] for cells in lines}
    assert [table[word] for word in WORDS] == [[f"{v:g}" for v in x] for x in SENTENCE.x]
    for i, feature in enumerate(FEATURES):
        assert table[feature] == [" ".join(f"{v:g}" for v in W[i]) for W in (SENTENCE.W_Q, SENTENCE.W_K, SENTENCE.W_V)]
    Q, K, V = SENTENCE.project()
    ben = WORDS.index("Ben")
    trace = al.attention_trace(Q, K, V)
    e = np.exp(trace.scores[ben] / 3**0.5)

    def told(x, form="g"):
        return ", ".join(f"{v:{form}}" for v in x)

    wanted = [
        f"1: ({told(Q[ben])}).",
        "2: " + ", ".join(f"{word} ({told(k)})" for word, k in zip(WORDS, K, strict=True)),
        f"3: {told(trace.scores[ben])}.",
        "4: " + told(np.round(trace.scores[ben] / 3**0.5, 3)),
        f"5: {told(np.round(e, 3), '.4g')}, sum {e.sum():.3f}.",
        f"6: {told(trace.weights[ben], '.3f')}.",
        "7: " + ", ".join(f"{word} ({told(v)})" for word, v in zip(WORDS, V, strict=True)),
        f"8: ({told(trace.output[ben], '.3f')}).",
        f"scores {told(K[ben] @ Q.T)} (`swapped_query_key`) or {told(Q[ben] @ Q.T)} (`query_met_others`",
        f"weights {told(trace.scores[ben] / trace.scores[ben].sum())} (`no_exponential`); "
        f"{al.softmax(trace.scores[ben]).max():.3f} for *saw* (`no_scale`)",
    ]
    flat = WORKSHEET.replace("\n", " ")
    assert [text for text in wanted if text not in flat] == []

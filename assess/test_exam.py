"""docs/exam: every number of every variant is computed again, with loops, and the code of the questions is checked."""

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import attnlib as al
from assess import exam, inventory, moodle
from attncourse import EXERCISES, MISTAKES, PREDICTIONS, check
from attnlib.examples import FEATURES, SENTENCE, WORDS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "exam"
README, FORMULAS, WORKSHEET, ANSWERS = (
    (FOLDER / name).read_text("utf-8")
    for name in ("README.md", "formulas.md", "worksheet_01.md", "worksheet_01_answers.md")
)
WORDS_OF_EXAMS = [exam.EXAMPLE, *(f"word{i}" for i in range(40))]


@pytest.fixture(scope="module", params=WORDS_OF_EXAMS[:9])
def questions(request):
    return dict(enumerate(exam.variant(request.param), 1))


def softmax(scores):
    e = [math.exp(s) for s in scores]
    return [x / sum(e) for x in e]


def test_the_page_and_the_key_are_those_of_the_example():
    public = exam.variant(exam.EXAMPLE)
    assert (FOLDER / "example.md").read_text("utf-8") == exam.exam(exam.EXAMPLE, public)
    assert (FOLDER / "example_key.md").read_text("utf-8") == exam.key(exam.EXAMPLE, public)
    points, minutes = sum(q.points for q in public), sum(q.minutes for q in public)
    assert f"the exam: {points} points, {minutes} minutes" in README


def test_no_question_of_a_variant_is_public_and_two_words_share_few():
    public = [q.asked for q in exam.variant(exam.EXAMPLE)]
    seen = [set() for _ in public]
    for word in WORDS_OF_EXAMS[1:]:
        for known, other, texts in zip(public, exam.variant(word), seen, strict=True):
            assert other.asked != known
            texts.add(other.asked)
    # What is drawn from a list has fewer variants than what is drawn from numbers.
    fewest = {5: 4, 7: 6, 9: 4, 10: 3}
    assert [i for i, texts in enumerate(seen, 1) if len(texts) < fewest.get(i, 10)] == []
    assert [q.asked for q in exam.variant("word1")] == [q.asked for q in exam.variant("word1")]


def test_the_key_names_mistakes_that_there_are(questions):
    named = {i: set(re.findall(r"`([a-z_]+)`", q.key)) & {*MISTAKES, *EXERCISES} for i, q in questions.items()}
    assert all(named[i] for i in (1, 2, 3, 4, 5, 6, 9))
    for q in questions.values():
        assert set(re.findall(r"`([a-z_]+_[a-z_]+)`", q.key)) <= {*MISTAKES}
    assert set(re.findall(r"`([a-z_]+)`", ANSWERS)) <= {*MISTAKES}


def test_1_one_query_by_hand(questions):
    q = questions[1]
    query, keys, values = (q.given[name].tolist() for name in ("query", "keys", "values"))
    scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
    scaled = [s / math.sqrt(len(query)) for s in scores]

    def output(weights):
        return f"{sum(w * v for w, v in zip(weights, values, strict=True)):.2f}"

    outputs = {
        "": output(softmax(scaled)),
        "no_scale": output(softmax(scores)),
        "scale_by_d_k": output(softmax([s / len(query) for s in scores])),
        "scale_after_softmax": output([w / math.sqrt(len(query)) for w in softmax(scores)]),
        "no_exponential": output([s / sum(scores) for s in scores]),
    }
    assert outputs == q.answers["outputs"] and len(set(outputs.values())) == 5
    assert f"Scores {scores[0]} and {scores[1]} (1 point), scaled {scaled[0]:g} and {scaled[1]:g}" in q.key
    assert all(f"| {x} |" in q.key for x in outputs.values())
    for x in (query, *keys):
        assert str(tuple(x)) in q.asked


def test_2_shapes(questions):
    given = questions[2].given
    batch, heads, n_q, n_k, width = (given[name] for name in ("batch", "heads", "n_q", "n_k", "width"))
    rng = np.random.default_rng(0)
    output, weights = al.MultiHeadAttention(width, heads)(
        rng.normal(size=(batch, n_q, width)), rng.normal(size=(batch, n_k, width))
    )
    wanted = [(batch, heads, n_q, width // heads), weights.shape, (batch, heads, n_q, width // heads), output.shape]
    assert ", ".join(map(str, wanted)) in questions[2].key and len({batch, heads, n_q, n_k, width}) == 5


def test_3_two_masks(questions):
    given, seen = questions[3].given, []
    for length, i in ((given["n"], given["asks"]), (given["short"], given["pad"])):
        seen.append([j for j in range(1, given["n"] + 1) if j <= i and j <= length])
    assert questions[3].key.startswith("; and ".join(", ".join(map(str, row)) for row in seen) + ".")
    assert seen[0] != seen[1] and given["pad"] > given["short"]


def test_4_a_row_without_a_key(questions):
    given, key = questions[4].given, questions[4].key
    mean = sum(given["values"]) / len(given["values"])
    assert f"{mean:g}, the mean of values" in key and mean not in given["values"]
    fill = -(10.0 ** given["zeros"])
    assert f"{fill:,.0f}" in questions[4].asked
    assert np.allclose(al.softmax(np.full(3, fill)), 1 / 3)
    with np.errstate(invalid="ignore"):
        e = np.exp(np.full((1, 2), -np.inf))
        assert np.isnan(e / e.sum()).all()


def run_code(code):
    names = {"np": np}
    exec(code, names)
    return names


def of_any_batch(split):
    """Let a function of (b, n, d) take any number of leading axes, as the check wants it."""

    def split_all(x, num_heads):
        heads = split(x.reshape(-1, *x.shape[-2:]), num_heads)
        return heads.reshape(*x.shape[:-2], *heads.shape[1:])

    return split_all


def test_5_and_6_show_the_mistake_that_is_named(questions):
    wrong = run_code(questions[5].given["code"])["attention"]
    assert check.scaled_dot_product_attention(wrong).mistake == questions[5].answers["bug"]
    broken, given = run_code(questions[6].given["code"])["split_heads"], questions[6].given
    assert check.split_heads(of_any_batch(broken)).mistake == questions[6].answers["bug"]
    x, heads = given["x"], given["heads"]
    d_k = x.shape[-1] // heads
    assert questions[6].answers["right"].tolist() == [x[0, 1, c] for c in range(d_k)]
    assert questions[6].answers["wrong"].tolist() == broken(x, heads)[0, 0, 1].tolist() != x[0, 1, :d_k].tolist()
    mended = run_code(questions[6].given["code"].rsplit("return", 1)[0] + f"return {exam.MENDED}")["split_heads"]
    assert check.split_heads(of_any_batch(mended))


def test_7_and_8_a_scale_and_a_cache(questions):
    d_k = questions[7].given["d_k"]
    assert questions[7].key.startswith(f"{math.isqrt(d_k)}, because") and math.isqrt(d_k) ** 2 == d_k
    prompt, new = questions[8].given["prompt"], questions[8].given["new"]
    without = sum(prompt + i for i in range(new))
    assert f"With a cache {prompt + new - 1}:" in questions[8].key and f"Without one {without}:" in questions[8].key
    assert f"{prompt} + {prompt + 1} + ... + {prompt + new - 1}." in questions[8].key


def test_7_the_spread_of_a_score_is_the_root():
    rng = np.random.default_rng(0)
    scores = (rng.normal(size=(20_000, 64)) * rng.normal(size=(20_000, 64))).sum(-1)
    assert scores.std() == pytest.approx(8, rel=0.02)


def test_9_new_queries_behind_a_cache(questions):
    past, new = questions[9].given["past"], questions[9].given["new"]
    rows = [" ".join("1" if j <= past + i else "0" for j in range(past + new)) for i in range(new)]
    assert questions[9].key.startswith("```text\n" + "\n".join(rows) + "\n```")
    first = [" ".join("1" if j <= i else "0" for j in range(past + new)) for i in range(new)]
    assert f"| {' / '.join(first)} | `causal_upper_left` |" in questions[9].key
    # The page of formulas may lie on the desk: it must not give the answer away.
    assert "n_k - n_q" not in FORMULAS


def test_10_one_example_hides_the_mistake_and_the_other_shows_it(questions):
    q = questions[10]
    right, wrong = al.scaled_dot_product_attention, q.answers["wrong"]
    hidden, shown = q.given["hidden"], q.given["shown"]
    np.testing.assert_allclose(right(*hidden), wrong(*hidden))
    assert np.abs(right(*shown) - wrong(*shown)).max() > 0.2


def test_a_double_softmax_keeps_both_of_two_weights_above_what_the_key_says():
    twice = al.softmax(al.softmax(np.array([[1000.0, 0.0]])))
    assert "falls below 0.26" in exam.BUGS["double_softmax"][2] and 0.26 < twice.min() < 0.27


def test_moodle_gets_every_vote_form_and_question(tmp_path, monkeypatch):
    votes = moodle.votes()
    assert {q.find("name/text").text for q in votes} <= set(PREDICTIONS) and len(votes) > 40
    for quiz in (votes, moodle.form("A"), moodle.form("B")):
        for q in ET.fromstring(ET.tostring(quiz)):
            shares = [answer.get("fraction") for answer in q.findall("answer")]
            assert q.get("type") == "multichoice" and sorted(shares)[-1] == "100" and shares.count("100") == 1
    first = votes[0]
    name = first.find("name/text").text
    right = "abcd"[[a.get("fraction") for a in first.findall("answer")].index("100")]
    assert right == PREDICTIONS[name].right
    assert all(a.find("feedback/text").text for a in first.findall("answer"))
    for i, (q, item) in enumerate(zip(moodle.form("B"), inventory.ITEMS, strict=True)):
        right = "abcd"[[a.get("fraction") for a in q.findall("answer")].index("100")]
        assert item["B"][right][1] == "right", i
    essays = moodle.essays("word")
    assert [q.get("type") for q in essays] == ["essay"] * 10
    assert [int(q.find("defaultgrade").text) for q in essays] == [q.points for q in exam.variant("word")]
    assert all(q.find("graderinfo/text").text for q in essays)
    assert "<table>" in moodle.form("A")[0].find("questiontext/text").text


def test_a_row_of_twenty_votes():
    share = sum(math.comb(20, k) for k in range(6, 15)) / 2**20
    assert f"6 to 14 show it in {100 * share:.0f} of 100 rows" in README


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

    def row_text(x, form="g"):
        return ", ".join(f"{v:{form}}" for v in x)

    wanted = [
        f"1: ({row_text(Q[ben])}).",
        "2: " + ", ".join(f"{word} ({row_text(k)})" for word, k in zip(WORDS, K, strict=True)),
        f"3: {row_text(trace.scores[ben])}.",
        "4: " + row_text(np.round(trace.scores[ben] / 3**0.5, 3)),
        f"5: {row_text(np.round(e, 3), '.4g')}, sum {e.sum():.3f}.",
        f"6: {row_text(trace.weights[ben], '.3f')}.",
        "7: " + ", ".join(f"{word} ({row_text(v)})" for word, v in zip(WORDS, V, strict=True)),
        f"8: ({row_text(trace.output[ben], '.3f')}).",
        f"scores {row_text(K[ben] @ Q.T)} (`swapped_query_key`) or {row_text(Q[ben] @ Q.T)} (`query_met_others`",
        f"weights {row_text(trace.scores[ben] / trace.scores[ben].sum())} (`no_exponential`); "
        f"{al.softmax(trace.scores[ben]).max():.3f} for *saw* (`no_scale`)",
    ]
    flat = ANSWERS.replace("\n", " ")
    assert "0.653" not in WORKSHEET  # nothing of the answers lies on the sheet
    assert [text for text in wanted if text not in flat] == []

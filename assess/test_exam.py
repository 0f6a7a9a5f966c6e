"""docs/exam: every number of every variant is computed again, with loops, and the code of the questions is checked."""

import math
import re
import xml.etree.ElementTree as ET
from html import unescape

import numpy as np
import pytest

import attnlib as al
from assess import exam, goals, inventory, moodle
from attncourse import EXERCISES, MISTAKES, PREDICTIONS, check
from attnlib.examples import FEATURES, SENTENCE, WORDS
from tools import lecture, plans, teaching
from tools.numbering import NUMBERS, render
from tools.series import ROOT, SERIES

FOLDER = exam.FOLDER
README, FORMULAS, WORKSHEET, ANSWERS = (
    (FOLDER / name).read_text("utf-8")
    for name in ("README.md", "formulas.md", "worksheet_01.md", "worksheet_01_answers.md")
)
WORDS_OF_EXAMS = [exam.EXAMPLE, *(f"word{i}" for i in range(40))]


@pytest.fixture(scope="module", params=WORDS_OF_EXAMS[:9])
def questions(request):
    return dict(zip((make.__name__ for make in exam.QUESTIONS), exam.variant(request.param), strict=True))


def softmax(scores):
    e = [math.exp(s) for s in scores]
    return [x / sum(e) for x in e]


def test_the_page_and_the_key_are_those_of_the_example():
    public = exam.variant(exam.EXAMPLE)
    assert (FOLDER / "example.md").read_text("utf-8") == exam.exam(exam.EXAMPLE, public)
    assert (FOLDER / "example_key.md").read_text("utf-8") == exam.key(exam.EXAMPLE, public)
    points, minutes = sum(q.points for q in public), sum(q.minutes for q in public)
    assert f"the exam: {points} points, {minutes} minutes" in README
    after = {f"--plan {name}": holds for name, holds in PLANS.items()} | {"--upto scaling": exam.up_to("scaling")}
    for option, holds in after.items():
        some = exam.variant("word", holds)
        sums = (len(some), sum(q.points for q in some), sum(q.minutes for q in some))
        assert re.search(rf"^\|.*`{option}.*\| {' [|] '.join(map(str, sums))} \|$", README, re.MULTILINE), option


def code(asked):
    return re.search(r"```python\n(.+?)```", asked, re.DOTALL)[1]


PLANS = {name: exam.of_plan(name) for name in plans.names(plans.GUIDE.read_text("utf-8"))}
# Where a word is met first: no exam says it that does not hold that.
TERMS = {
    "[Mm]ask": ("masks", exam.CAUSAL),
    "causal": ("masks", exam.CAUSAL),
    "-inf": ("masks", "6 · A row that may look nowhere"),
    "padd": ("masks", exam.PADDING),
    r"\bheads?\b": ("multi_head", exam.SPLIT),
    "merge": ("multi_head", exam.SPLIT),
    r"np\.|def ": ("vectorized", exam.SCORES_IN_CODE),
    "not notice": ("vectorized", "Would a test notice your mistake?"),
    "reshape|transpose": ("multi_head", exam.BOTH_IN_CODE[0]),
    "after the softmax": ("masks", "Break it · Zero after the softmax"),
    "standard deviation": ("scaling", "1 · How large is a score?"),
    "last \\d have": ("masks", "When the last words ask alone"),
    "cache|prompt": ("one_token_at_a_time", "2 · What does a new word change?"),
}


def test_every_heading_that_a_question_rests_on_is_one_of_its_notebook():
    for rests in exam.QUESTIONS.values():
        for notebook, headings in rests.items():
            source = render((ROOT / "notebooks" / "src" / f"{notebook}.py").read_text("utf-8"))
            assert {*headings} <= {*re.findall(r"^# #{2,3} (.+)$", source, re.MULTILINE)}, notebook


@pytest.mark.parametrize("holds", [*PLANS.values(), *map(exam.up_to, ("by_hand", "03", "masks", "06"))])
def test_an_exam_says_nothing_that_its_plan_does_not_hold(holds):
    for word in WORDS_OF_EXAMS[1:3]:
        text = exam.exam(word, exam.variant(word, holds)).partition("###")[2]
        assert [term for term, first in TERMS.items() if not holds(*first) and re.search(term, text)] == []


# What an answer needs, by its question: the deck of a plan whose exam asks it says so, or its notes do.
NEEDS = {
    exam.by_hand: ["e to the power|e 2|exponential|softmax", "root"],
    exam.likeness: ["finds (it|her)self", "key", "value"],
    exam.a_map: ["sums? to 1", "column"],
    exam.why_divide: ["deviation", "variance", "learn|gradient|slope|hardly move"],
    exam.wrong_code: [r"np\.sqrt", "keepdims", "axis"],
    exam.hides: ["does not notice", "symmetric"],
    exam.zero_after: ["causal", "to 0 after the softmax", "less than 1"],
    exam.two_masks: ["both masks|combin", "pad"],
    exam.dead_row: ["NaN", "[Uu]niform|mean of"],
    exam.chunk: ["last (words|tokens)", "corner|n_k - n_q"],
    exam.shapes: ["split", "merge", r"\(2, 4, 3\)|2 , 4 , 3"],
    exam.wrong_cut: ["swapaxes|transpose", "reshape"],
    exam.cache: ["cache"],
}


@pytest.mark.parametrize("name", PLANS)
def test_the_deck_of_a_plan_says_what_its_exam_says_and_needs(name):
    shown = [
        re.sub("<style>.*?</style>|<[^>]*>", " ", slide.html, flags=re.DOTALL) for slide in lecture.slides(name)[1]
    ]
    deck = " ".join(unescape(" ".join(shown)).split())
    asked = {q.title: q for q in exam.variant("word1", PLANS[name])}
    said = [term for term in TERMS for q in asked.values() if re.search(term, q.asked) and not re.search(term, deck)]
    titles = dict(zip(exam.QUESTIONS, (q.title for q in exam.variant("word1")), strict=True))
    assert NEEDS.keys() == titles.keys() and said == []
    assert [n for make, needs in NEEDS.items() if titles[make] in asked for n in needs if not re.search(n, deck)] == []


def test_a_plan_gets_the_questions_that_it_holds_and_the_whole_exam_says_all_terms():
    asked = {name: {q.title for q in exam.variant("word1", holds)} for name, holds in PLANS.items()}
    assert {name: len(titles) for name, titles in asked.items()} == {"45": 4, "90": 7, "half-day": 9}
    assert asked["45"] < asked["90"] and "A row without a key" not in asked["90"] | asked["half-day"]
    assert [len(exam.variant("word1", exam.up_to(last))) for last in ("by_hand", "03", "masks", "12")] == [3, 6, 10, 13]
    programs = {q.title for q in exam.variant("word1") if "```" in q.asked}  # who only listens reads no code
    assert len(programs) == 2 and not programs & (asked["45"] | asked["90"]) and programs <= asked["half-day"]
    text = "\n".join(q.asked for word in WORDS_OF_EXAMS for q in exam.variant(word))
    assert [term for term in TERMS if not re.search(term, text)] == []
    with pytest.raises(SystemExit, match=r"no notebook is called 'scalling'. Fix"):
        exam.up_to("scalling")


def test_no_question_of_a_variant_is_public_and_two_words_share_few():
    public = exam.variant(exam.EXAMPLE)
    seen = [set() for _ in public]
    for word in WORDS_OF_EXAMS[1:]:
        for known, other, texts in zip(public, exam.variant(word), seen, strict=True):
            assert other.asked != known.asked and ("```" not in known.asked or code(other.asked) != code(known.asked))
            if "mend" in known.given:  # the line that puts it right is in the key, and not in the public one
                assert f"`{other.given['mend']}`" in other.key and other.given["mend"] not in known.key
            texts.add(other.asked)
    # What is drawn from a list has fewer variants than what is drawn from numbers.
    fewest = {"wrong_code": 4, "why_divide": 6, "chunk": 4, "hides": 3, "wrong_cut": 10}
    named = zip((make.__name__ for make in exam.QUESTIONS), seen, strict=True)
    assert [name for name, texts in named if len(texts) < fewest.get(name, 10)] == []
    assert [q.asked for q in exam.variant("word1")] == [q.asked for q in exam.variant("word1")]


def test_the_key_names_mistakes_that_there_are(questions):
    named = {i: set(re.findall(r"`([a-z_]+)`", q.key)) & {*MISTAKES, *EXERCISES} for i, q in questions.items()}
    unnamed = {"likeness", "why_divide", "cache", "hides"}
    assert {name for name, some in named.items() if not some} == unnamed
    for q in questions.values():
        assert set(re.findall(r"`([a-z_]+_[a-z_]+)`", q.key)) <= {*MISTAKES}
    assert set(re.findall(r"`([a-z_]+)`", ANSWERS)) <= {*MISTAKES}


def test_one_query_by_hand(questions):
    q = questions["by_hand"]
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
    weights = [round(w, 2) for w in softmax(scaled)]
    rounded = output(weights)
    assert (rounded == outputs[""]) != (f"; {rounded}, from the rounded weights, counts as well." in q.key)
    assert rounded not in [text for name, text in outputs.items() if name]
    assert f"Scores {scores[0]} and {scores[1]} (1 point), scaled {scaled[0]:g} and {scaled[1]:g}" in q.key
    assert all(f"| {x} |" in q.key for x in outputs.values())
    for x in (query, *keys):
        assert str(tuple(x)) in q.asked


def test_shapes(questions):
    given = questions["shapes"].given
    heads, n_q, n_k, width = (given[name] for name in ("heads", "n_q", "n_k", "width"))
    rng = np.random.default_rng(0)
    output, weights = al.MultiHeadAttention(width, heads)(rng.normal(size=(n_q, width)), rng.normal(size=(n_k, width)))
    wanted = [(heads, n_q, width // heads), weights.shape, (heads, n_q, width // heads), output.shape]
    assert ", ".join(map(str, wanted)) in questions["shapes"].key and len({heads, n_q, n_k, width}) == 4


def test_a_zero_too_late(questions):
    q = questions["zero_after"]
    token, e = q.given["token"], [int(x) for x in re.search(r"tokens are ([\d, ]+)\.", q.asked)[1].split(",")]
    right = [x / sum(e[:token]) if j < token else 0 for j, x in enumerate(e)]
    late = [x / sum(e) if j < token else 0 for j, x in enumerate(e)]
    told = ["[" + ", ".join(f"{x:g}" for x in weights) + "]" for weights in (right, late, [x / sum(e) for x in e])]
    assert q.key.startswith(f"{told[0]} (2 points); {told[1]} (1), which") and f"{told[2]} as the first answer" in q.key
    rows = np.random.default_rng(0).normal(size=(4, 4))
    sums = (al.softmax(rows) * np.tri(4)).sum(1)
    assert sums[3] == pytest.approx(1) and sums[:3].max() < 1 and f"of token {token} " in q.asked


def test_two_masks(questions):
    given, seen = questions["two_masks"].given, []
    for length, i in ((given["n"], given["asks"]), (given["short"], given["pad"])):
        seen.append([j for j in range(1, given["n"] + 1) if j <= i and j <= length])
    assert questions["two_masks"].key.startswith("; and ".join(", ".join(map(str, row)) for row in seen) + ".")
    assert seen[0] != seen[1] and given["pad"] > given["short"]


def test_a_row_without_a_key(questions):
    given, key = questions["dead_row"].given, questions["dead_row"].key
    mean = sum(given["values"]) / len(given["values"])
    assert f"{mean:g}, the mean of values" in key and mean not in given["values"]
    fill = -(10.0 ** given["zeros"])
    assert f"{fill:,.0f}" in questions["dead_row"].asked
    assert np.allclose(al.softmax(np.full(3, fill)), 1 / 3)
    with np.errstate(invalid="ignore"):
        e = np.exp(np.full((1, 2), -np.inf))
        assert np.isnan(e / e.sum()).all()


def run_code(code):
    names = {"np": np}
    exec(code, names)
    return names


def one_by_one(function):
    """Let a function of one text take any number of axes in front, as the check wants it."""

    def of_all(x, *rest):
        lead = x.shape[: -2 if rest else -3]
        made = np.stack([function(part, *rest) for part in x.reshape(-1, *x.shape[len(lead) :])])
        return made.reshape(*lead, *made.shape[1:])

    return of_all


@pytest.mark.parametrize("kind, bug, text", exam.CUTS)
def test_each_cut_makes_the_mistake_of_its_name(kind, bug, text):
    verify = {"split": check.split_heads, "merge": check.merge_heads}[kind]
    wrong, mended = (run_code(exam.HEADS[kind] + one)[f"{kind}_heads"] for one in (text, exam.MENDED[kind]))
    assert verify(one_by_one(wrong)).mistake == bug and verify(one_by_one(mended))


def test_the_numbers_of_a_cut_are_counted(questions):
    given, answers = questions["wrong_cut"].given, questions["wrong_cut"].answers
    x, heads, kind = given["x"], given["heads"], given["kind"]
    broken = run_code(given["code"])[f"{kind}_heads"]
    made = broken(x, heads)[0, 1] if kind == "split" else broken(x)[1]
    right = list(x[1][: x.shape[1] // heads]) if kind == "split" else [a for head in x for a in head[1]]
    assert answers["right"].tolist() == right != answers["wrong"].tolist() == made.tolist()


def weights_by_loops(Q, K, bug):
    """Return the weights of a mistake of BUGS, number by number."""
    n_q, n_k, d_k = len(Q), len(K), len(Q[0])
    divisor = math.sqrt(n_k if bug == "scale_by_n" else d_k)
    e = [[math.exp(sum(a * b for a, b in zip(q, k, strict=True)) / divisor) for k in K] for q in Q]
    below = {
        "softmax_over_queries": lambda i, j: sum(row[j] for row in e),
        "softmax_over_everything": lambda i, j: sum(map(sum, e)),
        "divided_by_largest": lambda i, j: max(e[i]),
    }.get(bug, lambda i, j: sum(e[i]))
    weights = [[e[i][j] / below(i, j) for j in range(n_k)] for i in range(n_q)]
    return np.array([softmax(row) for row in weights] if bug == "double_softmax" else weights)


@pytest.mark.parametrize("bug", exam.BUGS)
def test_each_wrong_code_does_what_its_key_says(bug):
    lines, _, look = exam.BUGS[bug]
    Q, K = np.random.default_rng(0).normal(size=(2, 5, 4))
    K = K[:3]
    names = {"Q": Q, "K": K, "np": np}
    exec("\n".join(lines), names)
    w = names["weights"]
    np.testing.assert_allclose(w, weights_by_loops(Q, K, bug))
    exec("\n".join(lines), twice := {**names, "K": np.vstack([K, K])})
    shown = {
        "scale_by_n": np.abs(twice["weights"][:, 0] / twice["weights"][:, 1] - w[:, 0] / w[:, 1]).max() > 0.01,
        "double_softmax": w.sum(1) == pytest.approx(1),  # the number has a test of its own
        "softmax_over_queries": w.sum(0) == pytest.approx(1) and np.abs(w.sum(1) - 1).min() > 0.01,
        "softmax_over_everything": w.sum() == pytest.approx(1) and w.sum(1).max() < 0.99,
        "divided_by_largest": w.max(1).tolist() == [1] * 5 and w.sum(1).min() > 1.01,
    }
    assert shown[bug] and look


def test_three_vectors(questions):
    q = questions["likeness"]
    words, who, wanted = (q.given[name] for name in ("words", "who", "wanted"))
    scores = [sum(a * b for a, b in zip(words[who], word, strict=True)) for word in words]
    assert [max(scores)] == [s for s in scores if s == max(scores)] and scores.index(max(scores)) == who != wanted
    assert f"{[int(s) for s in scores]} for A, B and C" in q.key
    found = [sum(a * b for a, b in zip(q.answers["query"], word, strict=True)) for word in words]
    assert found[wanted] - 2 >= max(s for i, s in enumerate(found) if i != wanted)
    assert f"{tuple(q.answers['query'].tolist())}, whose scores are {[int(x) for x in found]}" in q.key


def test_a_map(questions):
    q = questions["a_map"]
    cells = [line.strip("| ").split(" | ")[1:] for line in q.asked.splitlines() if re.match(r"\| [ABC] ", line)]
    values = list(map(float, re.search(r"values are ([\d, ]+)", q.asked)[1].split(", ")))
    (row,) = (i for i, line in enumerate(cells) if "?" in line)
    hidden = 1 - sum(float(c) for c in cells[row] if c != "?")
    cells[row][cells[row].index("?")] = f"{hidden:.1f}"
    output = sum(float(c) * v for c, v in zip(cells[row], values, strict=True))
    grows, more = re.search(r"value of ([ABC]) alone grows by (\d+)", q.asked).groups()
    moved = [round(float(line["ABC".index(grows)]) * int(more), 6) for line in cells]
    assert q.key.startswith(f"{hidden:.1g}, because") and f"; {output:g} (1);" in q.key
    assert (
        f"output of {'ABC'[row]}?" in q.asked and f"; [{', '.join(f'{m:g}' for m in moved)}], from the column" in q.key
    )


def test_a_scale_and_a_cache(questions):
    d_k = questions["why_divide"].given["d_k"]
    assert questions["why_divide"].key.startswith(f"{math.isqrt(d_k)}, because") and math.isqrt(d_k) ** 2 == d_k
    prompt, new = questions["cache"].given["prompt"], questions["cache"].given["new"]
    without = sum(prompt + i for i in range(new))
    assert (
        f"With a cache {prompt + new - 1}:" in questions["cache"].key
        and f"Without one {without}:" in questions["cache"].key
    )
    assert f"{prompt} + {prompt + 1} + ... + {prompt + new - 1}." in questions["cache"].key


def test_the_spread_of_a_score_is_the_root():
    rng = np.random.default_rng(0)
    scores = (rng.normal(size=(20_000, 64)) * rng.normal(size=(20_000, 64))).sum(-1)
    assert scores.std() == pytest.approx(8, rel=0.02)


def test_the_last_tokens_ask_alone(questions):
    past, new = questions["chunk"].given["past"], questions["chunk"].given["new"]
    rows = [" ".join("1" if j <= past + i else "0" for j in range(past + new)) for i in range(new)]
    assert questions["chunk"].key.startswith("```text\n" + "\n".join(rows) + "\n```")
    first = [" ".join("1" if j <= i else "0" for j in range(past + new)) for i in range(new)]
    assert f"| {' / '.join(first)} | `causal_upper_left` |" in questions["chunk"].key
    # The page of formulas may lie on the desk: it must not give the answer away.
    assert "n_k - n_q" not in FORMULAS


def test_one_example_hides_the_mistake_and_the_other_shows_it(questions):
    q = questions["hides"]
    right, wrong = al.scaled_dot_product_attention, q.answers["wrong"]
    hidden, shown = q.given["hidden"], q.given["shown"]
    np.testing.assert_allclose(right(*hidden), wrong(*hidden))
    assert all(
        np.ptp(given[2], axis=0).max() > 0 for given in (hidden, shown)
    )  # the question asks for values that differ
    assert np.abs(right(*shown) - wrong(*shown)).max() > 0.2


def test_a_double_softmax_keeps_both_of_two_weights_above_what_the_key_says():
    twice = al.softmax(al.softmax(np.array([[1000.0, 0.0]])))
    assert "falls below 0.26" in exam.BUGS["double_softmax"][2] and 0.26 < twice.min() < 0.27


def test_moodle_gets_every_vote_form_and_question(tmp_path, monkeypatch):
    votes = moodle.votes()
    asked = {moodle.as_html(PREDICTIONS[name].asked): name for name in PREDICTIONS}
    folder, names = None, set()
    for q in ET.fromstring(ET.tostring(votes)):
        if q.get("type") == "category":
            folder = q.find("category/text").text
            assert re.fullmatch(r"\$course\$/top/attnlib/votes/\d\d [A-Z].+", folder)
            continue
        called, known = q.find("name/text").text, PREDICTIONS[asked.pop(q.find("questiontext/text").text)]
        assert called[:2] == folder[27:29] and re.fullmatch(r"\d\d vote \d\d · .{4,}", called) and called not in names
        assert "abcdefgh"[[a.get("fraction") for a in q.findall("answer")].index("100")] == known.right
        assert all(a.find("feedback/text").text for a in q.findall("answer"))
        names.add(called)
    assert asked == {} and {name[:2] for name in names} == {n.number for n in SERIES if teaching.contents(n)[0]}
    for quiz in (votes, moodle.form("A"), moodle.form("B")):
        first, *others = ET.fromstring(ET.tostring(quiz))
        assert first.get("type") == "category" and len(others) > 10
        for q in others:
            shares = [answer.get("fraction") for answer in q.findall("answer")]
            assert "category" in q.get("type") or (sorted(shares)[-1], shares.count("100")) == ("100", 1)
    for i, (q, item) in enumerate(zip(moodle.form("B")[1:], inventory.ITEMS, strict=True)):
        right = "abcd"[[a.get("fraction") for a in q.findall("answer")].index("100")]
        assert item["B"][right][1] == "right", i
    questions = exam.variant("word", PLANS["90"])
    exams, *essays = moodle.essays(questions, "word")
    assert exams.find("category/text").text == "$course$/top/attnlib/exam word"
    assert [q.get("type") for q in essays] == ["essay"] * len(questions)
    assert [int(q.find("defaultgrade").text) for q in essays] == [q.points for q in questions]
    assert all(q.find("graderinfo/text").text for q in essays)
    assert "<table>" in moodle.form("A")[7].find("questiontext/text").text


def test_the_page_of_goals_is_up_to_date_and_each_question_asks_for_a_goal_of_what_it_rests_on():
    assert goals.PAGE.read_text("utf-8") == goals.goals_page()
    of = {name: NUMBERS[entry.slug] for entry in SERIES for goal in entry.goals for name in goal.shown_by}
    assert len(goals.IN_INVENTORY) == len(inventory.ITEMS) and goals.IN_EXAM.keys() == exam.QUESTIONS.keys()
    for make, rests in exam.QUESTIONS.items():
        last = max(NUMBERS[notebook] for notebook in rests)
        assert all(of[name] <= last for name in goals.IN_EXAM[make]), make
    for name, item in zip(goals.IN_INVENTORY, inventory.ITEMS, strict=True):
        assert not name or of[name] <= NUMBERS[item["taught"]], item["topic"]


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

"""Write an exam on attention and its key, with numbers drawn from a word.

python -m assess.exam                       docs/exam/example.md and example_key.md, to look at
python -m assess.exam WORD                  _exam/WORD.md and WORD_key.md: the same questions with other numbers
python -m assess.exam WORD --plan 90        those that a plan of TEACHING.md holds: 45, 90 or half-day
python -m assess.exam WORD --upto scaling   those of the notebooks up to one, by its name or its number

The example is public, so give a variant. Choose a word that nobody guesses: the same word gives the same numbers.
attnlib computes every answer; assess/test_exam.py computes each once more, with loops.
"""

import argparse
import hashlib
import re
import sys
from dataclasses import dataclass, field

import numpy as np

import attnlib as al
from tools import plans
from tools.numbering import NUMBERS, exercises
from tools.series import ROOT

FOLDER, EXAMPLE = ROOT / "docs" / "exam", "example"


@dataclass
class Question:
    """A question with its answer; `given` holds the numbers drawn, `answers` what the key says of them."""

    title: str
    points: int
    minutes: int
    asked: str
    key: str
    given: dict = field(default_factory=dict)
    answers: dict = field(default_factory=dict)


def distinct(rng, low, high, n):
    """Return n different whole numbers from low to high."""
    return [int(x) for x in rng.choice(np.arange(low, high + 1), n, replace=False)]


def one_of(rng, *options):
    return options[int(rng.integers(len(options)))]


def format_list(x):
    return "[" + ", ".join(format_list(row) if np.ndim(row) else f"{row:g}" for row in x) + "]"


def table(head, rows):
    return "\n".join([f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)])


def by_hand(rng):
    """One query, two keys: numbers whose scaled scores are whole, and whose mistakes give different outputs."""
    d_k = 4
    while True:
        query, *keys = rng.integers(0, 4, size=(3, d_k))
        values = np.array(distinct(rng, 1, 12, 2), dtype=float)
        scores = np.array([key @ query for key in keys], dtype=float)
        scaled = scores / d_k**0.5
        if (scaled % 1).any() or not 1 <= abs(np.subtract(*scaled)) <= 2 or scores.max() > 4 * d_k:
            continue
        outputs = {
            "": al.softmax(scaled) @ values,
            "no_scale": al.softmax(scores) @ values,
            "scale_by_d_k": al.softmax(scores / d_k) @ values,
            "scale_after_softmax": al.softmax(scores) / d_k**0.5 @ values,
            "no_exponential": scores / scores.sum() @ values,
        }
        told = {name: f"{x:.2f}" for name, x in outputs.items()}
        weights = al.softmax(scaled)
        rounded = f"{np.round(weights, 2) @ values:.2f}"  # what comes out if the weights are rounded on the way
        if len({*told.values(), rounded}) == len(told) + (rounded != told[""]) and query.any():
            break
    asked = (
        f"A query is {tuple(map(int, query))}. Two keys are {tuple(map(int, keys[0]))} and "
        f"{tuple(map(int, keys[1]))}, with the values {values[0]:g} and {values[1]:g}. Compute the weights and the "
        "output, with two decimals."
    )
    points = {"": "6", "no_scale": "4", "scale_by_d_k": "4", "scale_after_softmax": "3", "no_exponential": "2"}
    rows = [[x, f"`{name}`" if name else "", points[name]] for name, x in told.items()]
    key = (
        f"Scores {scores[0]:g} and {scores[1]:g} (1 point), scaled {scaled[0]:g} and {scaled[1]:g} (1), weights "
        f"{weights[0]:.2f} and {weights[1]:.2f} (2), output {told['']} (2)"
        f"{f'; {rounded}, from the rounded weights, counts as well' * (rounded != told[''])}. A slip in arithmetic "
        "costs its own step alone. With one wrong thought:\n\n" + table(["output", "shows", "points"], rows)
    )
    given = {"query": query, "keys": np.array(keys), "values": values}
    return Question("One query by hand", 6, 8, asked, key, given, {"outputs": told, "rounded": rounded})


def likeness(rng):
    """Vectors of 0 and 1, so that a word is most like itself; a query that finds another one is searched for."""
    while True:
        words = rng.integers(0, 2, size=(3, 4))
        alike = words @ words.T
        who, wanted = distinct(rng, 0, 2, 2)
        first = (alike[who, who] > np.delete(alike[who], who)).all()
        if first and len(np.unique(words, axis=0)) == 3 and words.any(axis=1).all():
            break
    queries = np.stack(np.meshgrid(*4 * [np.arange(-2, 4)]), -1).reshape(-1, 4)
    ahead = queries @ words[wanted] - np.delete(queries @ words.T, wanted, axis=1).max(axis=1)
    query = min(queries[ahead >= 2], key=lambda q: np.abs(q).sum())
    told = ", ".join(f"{name} {tuple(map(int, x))}" for name, x in zip("ABC", words, strict=True))
    a, b = "ABC"[who], "ABC"[wanted]
    asked = (
        f"Three words have the vectors {told}. At first each vector is query, key and value of its word. Which scores "
        f"has {a}, and which word does it find? Then {a} gets a query of its own: give one whose score with {b} is at "
        "least 2 larger than its other two scores. Of what use is a value that differs from the key?"
    )
    key_text = (
        f"{format_list(alike[who])} for A, B and C (1 point): {a} finds itself (1). For instance "
        f"{tuple(map(int, query))}, whose scores are {format_list(words @ query)} (1). By its key a word is found, by "
        "its value it gives, and what it is to give need not be what it is found by (1)."
    )
    given = dict(words=words, who=who, wanted=wanted)
    return Question("Three vectors", 4, 6, asked, key_text, given, {"scores": alike[who], "query": query})


def a_map(rng):
    """Weights in tenths, one of them hidden; what a column says and what a row says differ."""
    while True:
        tenths = rng.multinomial(7, [1 / 3] * 3, size=3) + 1  # (3, 3), rows sum to 10
        values, more = np.array(distinct(rng, 1, 9, 3)) * 10, int(rng.integers(2, 6)) * 10
        row, hidden, grows = map(int, rng.integers(3, size=3))
        moved, turned = tenths[:, grows] * more // 10, tenths[grows] * more // 10
        if len(set(tenths[row])) == len(set(moved)) == 3 and (moved != turned).any():
            break
    output = tenths[row] @ values / 10
    cells = [[f"{w / 10:g}" for w in line] for line in tenths]
    cells[row][hidden] = "?"
    drawn = table(["queries, keys", *"ABC"], [[name, *line] for name, line in zip("ABC", cells, strict=True)])
    asked = (
        f"The weights of three words, a row for each query:\n\n{drawn}\n\nThe values are "
        f"{', '.join(map(str, values))}. Which weight is hidden? What is the output of {'ABC'[row]}? Then the value of "
        f"{'ABC'[grows]} alone grows by {more}: by how much does each of the three outputs grow?"
    )
    key_text = (
        f"{tenths[row, hidden] / 10:g}, because a row sums to 1 (1 point); {output:g} (1); {format_list(moved)}, from "
        f"the column of {'ABC'[grows]} (2). {format_list(turned)}, from its row, is `weights_transposed`: 0 of the 2."
    )
    given = dict(tenths=tenths, values=values, row=row, hidden=hidden, grows=grows, more=more)
    return Question("A map", 4, 5, asked, key_text, given, {"output": output, "moved": moved})


def shapes(rng):
    while True:
        heads, n_q, n_k = distinct(rng, 2, 9, 3)
        if heads in (2, 3, 4, 6, 8):
            break
    d_k = int(rng.integers(10, 17))
    width = heads * d_k
    q, k = (al.split_heads(np.zeros((n, width)), heads) for n in (n_q, n_k))
    trace = al.attention_trace(q, k, k)
    answers = [q.shape, trace.scores.shape, trace.output.shape, al.merge_heads(trace.output).shape]
    asked = (
        f"A layer with {heads} heads; each token has {width} features. There are {n_q} queries, and {n_k} keys with "
        "their values. Which shapes have the split queries, the scores, the output of the heads, and the heads when "
        "they are merged?"
    )
    key_text = (
        f"{', '.join(map(str, answers))}. One point each. Scores of shape {(heads, n_k, n_q)} are "
        f"`swapped_query_key`; queries of shape {(heads, n_q, width)} are `features_never_split`."
    )
    given = dict(heads=heads, n_q=n_q, n_k=n_k, width=width)
    return Question("Shapes", 4, 5, asked, key_text, given, {"shapes": answers})


def zero_after(rng):
    """Exponentials of scores whose sum, and the sum of those a causal mask leaves, give weights of two decimals."""
    while True:
        token, e = int(rng.integers(2, 4)), np.array(distinct(rng, 1, 12, 4), dtype=float)
        seen = e * (np.arange(4) < token)
        right, late = seen / seen.sum(), seen / e.sum()
        if seen.sum() != e.sum() / 2 and np.allclose(100 * np.append(right, late) % 1, 0):
            break
    asked = (
        f"The exponentials of the scaled scores of token {token} with the keys of four tokens are "
        f"{', '.join(f'{x:g}' for x in e)}. A causal mask lies on the text. Which four weights has token {token}? "
        "Somebody sets the blocked weights to 0 only after the softmax: which four weights come out then, and how does "
        "one see it in a map without computing a weight again?"
    )
    key_text = (
        f"{format_list(right)} (2 points); {format_list(late)} (1), which is `mask_after_softmax`: all rows but the "
        f"last sum to less than 1 (1). {format_list(e / e.sum())} as the first answer is `mask_ignored`, "
        f"{format_list(np.eye(4)[0] if token == 2 else np.append(e[:2] / e[:2].sum(), [0, 0]).round(2))} is "
        "`mask_blocks_diagonal`: 1 of the 2."
    )
    return Question("A zero too late", 4, 5, asked, key_text, dict(token=token, e=e), {"right": right, "late": late})


def two_masks(rng):
    short = int(rng.integers(2, 6))
    n = short + int(rng.integers(3, 5))
    asks = one_of(rng, *({*range(3, n)} - {short}))
    pad = int(rng.integers(short + 1, n + 1))
    both = al.combine_masks(al.padding_mask([short, n], n), al.causal_mask(n))
    seen = [", ".join(str(j + 1) for j in np.flatnonzero(both[text, i - 1])) for text, i in ((1, asks), (0, pad))]
    asked = (
        f"Two texts of {short} and {n} tokens are padded at the end to {n}, and a causal mask lies on both. Which "
        f"tokens, counted from 1, may token {asks} of the second text attend to, and which ones position {pad} of "
        "the first, which is padding?"
    )
    key = (
        f"{seen[0]}; and {seen[1]}. Two points each. `mask_blocks_diagonal` (1 to {asks - 1} in the second text) "
        f"and `mask_ignored` (1 to {n}) cost one point."
    )
    return Question("Two masks at once", 4, 5, asked, key, dict(short=short, n=n, asks=asks, pad=pad), {"seen": seen})


def dead_row(rng):
    n = int(rng.integers(3, 6))
    zeros = int(rng.integers(2, 5)) * 3
    values = np.array(distinct(rng, 1, 20, n), dtype=float)
    while values.mean() % 0.5 or len({*values, values.mean()}) == n:
        values = np.array(distinct(rng, 1, 20, n), dtype=float)
    fill = "-1" + ",000" * (zeros // 3)
    uniform = float(al.softmax(np.full(n, -(10.0**zeros))) @ values)
    asked = (
        f"A mask blocks all {n} keys of a query; the values are {', '.join(f'{v:g}' for v in values)}. What comes "
        f"out if the blocked scores are set to -inf, what if they are set to {fill}, and what should come out?"
    )
    key = (
        f"NaN, because the softmax divides 0 by 0 (one point). {uniform:g}, the mean of values that are all "
        "blocked, because equal scores get equal weights (two points). 0, or an error (one point); NaN, too, if "
        f"the answer says why it is the more honest of the two: nobody takes it for a result. Who calls {uniform:g} "
        "right shows `finite_fill`."
    )
    return Question("A row without a key", 4, 5, asked, key, dict(values=values, zeros=zeros), {"uniform": uniform})


# What a function has in place of three right lines, its words, and what one sees of it in the weights.
LINES = ["scaled = Q @ K.T / np.sqrt(K.shape[1])", "e = np.exp(scaled)", "weights = e / e.sum(axis=1, keepdims=True)"]
BUGS = {
    "scale_by_n": (
        ["scaled = Q @ K.T / np.sqrt(K.shape[0])", *LINES[1:]],
        "The scores are divided by the root of the number of keys",
        "Of two texts that begin alike, the longer one has another ratio of its first two weights; rightly it is equal",
    ),
    "double_softmax": (
        [*LINES, "e = np.exp(weights)", LINES[2]],
        "A softmax is taken of what is a softmax already",
        "However far apart the scores of two keys lie, neither weight falls below 0.26",
    ),
    "softmax_over_queries": (
        [*LINES[:2], "weights = e / e.sum(axis=0, keepdims=True)"],
        "The softmax runs over the queries",
        "The rows do not sum to 1, the columns do",
    ),
    "softmax_over_everything": (
        [*LINES[:2], "weights = e / e.sum()"],
        "One softmax runs over all scores together",
        "The rows do not sum to 1, the whole map does",
    ),
    "divided_by_largest": (
        [*LINES[:2], "weights = e / e.max(axis=1, keepdims=True)"],
        "Each row is divided by its largest number, and not by its sum",
        "The largest weight of every row is 1, and the rows sum to more",
    ),
}


def wrong_code(rng):
    bug = one_of(rng, *BUGS)
    lines, name, look = BUGS[bug]
    code = "\n    ".join(["def attention(Q, K, V):  # of one text", *lines, "return weights @ V"])
    asked = (
        f"```python\n{code}\n```\n\nName the mistake, and what one sees of it in the weights, of one text or of two."
    )
    key = f"{name} (`{bug}`): two points. {look}: two points."
    return Question("What is wrong here?", 4, 5, asked, key, dict(code=code), {"bug": bug})


# What splits the features of a text (n, d), or merges its heads (num_heads, n, d_k), and is wrong; and the mistake.
CUTS = [
    ("split", "rearranged", "x.T.reshape(num_heads, n, d // num_heads)"),
    ("split", "split_without_transpose", "x.reshape(num_heads, n, d // num_heads)"),
    ("split", "heads_interleaved", "x.reshape(n, d // num_heads, num_heads).transpose(2, 0, 1)"),
    ("merge", "merge_without_transpose", "x.reshape(n, num_heads * d_k)"),
    ("merge", "heads_interleaved", "x.transpose(1, 2, 0).reshape(n, num_heads * d_k)"),
]
HEADS = {
    "split": "def split_heads(x, num_heads):\n    n, d = x.shape\n    return ",
    "merge": "def merge_heads(x):\n    num_heads, n, d_k = x.shape\n    return ",
}
MENDED = {
    "split": "x.reshape(n, num_heads, d // num_heads).swapaxes(0, 1)",
    "merge": "x.swapaxes(0, 1).reshape(n, num_heads * d_k)",
}


def wrong_cut(rng):
    kind, bug, text = one_of(rng, *CUTS)
    heads, d_k, n = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(3, 6))
    d, splits = heads * d_k, kind == "split"
    x = np.arange(n * d).reshape((n, d) if splits else (heads, n, d_k))
    names = {"x": x, "n": n, "d": d, "num_heads": heads, "d_k": d_k}
    wrong, right = (eval(one, dict(names))[(0, 1) if splits else 1] for one in (text, MENDED[kind]))
    code = HEADS[kind] + text
    what = f"one text of {n} tokens with {d} features" if splits else f"{heads} heads of {n} tokens with {d_k} features"
    asked = (
        f"```python\n{code}\n```\n\nThe shape is right. Let x be {what}, whose numbers are 0, 1, 2, ... in order"
        f"{f', and {heads} heads' * splits}. What stands in the second row{' of the first head' * splits}, what should "
        "stand there, and which two steps put it right? Write code, or the shape after each step."
    )
    key = f"{format_list(wrong)} (1 point); {format_list(right)} (1); `{MENDED[kind]}` (2). The mistake is `{bug}`."
    given = dict(code=code, mend=MENDED[kind], x=x, heads=heads, kind=kind)
    return Question("It runs, and is wrong", 4, 6, asked, key, given, {"bug": bug, "wrong": wrong, "right": right})


def why_divide(rng):
    d_k = one_of(rng, 16, 25, 36, 49, 64, 81, 100, 144)
    root = int(d_k**0.5)
    asked = (
        f"Queries and keys have {d_k} entries each, all independent, with mean 0 and variance 1. What is the "
        "standard deviation of a score before the division? What becomes of the weights without it, and why can "
        "training hardly correct them?"
    )
    key = (
        f"{root}, because {d_k} variances of 1 add up: two points. The softmax is close to 1 for the largest score "
        "and to 0 for the others (1 point), and there a weight hardly moves when its score does: the slope, or the "
        f"gradient, is close to 0 (1). The answer {d_k} shows that standard deviation and variance were confused: one "
        "point of the first two."
    )
    return Question("Why divide?", 4, 5, asked, key, dict(d_k=d_k), {"root": root})


def cache(rng):
    prompt, new = int(rng.integers(20, 200)), int(rng.integers(5, 13))
    held = with_cache = without = 0
    for fed in [prompt] + (new - 1) * [1]:  # each call gives one new token; the last is not fed back
        held += fed
        with_cache, without = with_cache + fed, without + held
    asked = (
        f"A model reads a prompt of {prompt} tokens at once, and writes {new}. How many keys does one head compute "
        "in total with a cache, and how many without one?"
    )
    key = (
        f"With a cache {with_cache}: those of the prompt, and of each new token but the last, which is not fed "
        f"back. Without one {without}: {prompt} + {prompt + 1} + ... + {held}. Two points each. {prompt + new} "
        "counts the last token, too: one point."
    )
    return Question("A cache", 4, 6, asked, key, dict(prompt=prompt, new=new), {"with": with_cache, "without": without})


def chunk(rng):
    past, new = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    mask = al.causal_mask(new, past + new, align="lower_right")
    own = np.hstack([np.zeros((new, past), bool), al.causal_mask(new)])
    masks = {
        "causal_upper_left": al.causal_mask(new, past + new, align="upper_left"),
        "past_not_attended": own,
        "mask_inverted": ~mask,
    }
    worth = {"causal_upper_left": "2", "past_not_attended": "1", "mask_inverted": "1"}
    rows = [
        [" / ".join(" ".join(map(str, row)) for row in wrong.astype(int)), f"`{name}`", worth[name]]
        for name, wrong in masks.items()
    ]
    asked = (
        f"A text has {past + new} tokens. Only its last {new} have queries; all {past + new} have keys. Draw the "
        "causal mask, a row for each query."
    )
    drawn = "\n".join(" ".join(map(str, row)) for row in mask.astype(int))
    key = f"```text\n{drawn}\n```\n\n" + table(["mask", "shows", "points"], [["as above", "", "4"], *rows])
    return Question(
        "The last tokens ask alone", 4, 5, asked, key, dict(past=past, new=new), {"mask": mask, "wrong": masks}
    )


def examples(a, b, v):
    """Return, by the id of a mistake: its words, Q, K, V that hide it, Q, K, V that show it, and what it computes."""
    same = np.array([[a, 0.0], [0, a]])
    value, Q, K = np.array([[v], [0.0]]), np.array([[a, 0.0], [0, 0]]), np.array([[b, 0.0], [b, 0]])
    run = al.scaled_dot_product_attention
    zero = np.zeros((2, 2))
    return {
        "swapped_query_key": (
            "swapped queries and keys",
            (same, same, value),
            (Q, K, value),
            lambda q, k, v: run(k, q, v),
        ),
        "keys_for_values": (
            "taken keys in place of values",
            (same, same, same),
            (same, same, 2 * same),
            lambda q, k, v: run(q, k, k),
        ),
        "no_scale": (
            "forgotten to divide the scores",
            (zero, K, value),
            (np.eye(2), np.eye(2), 10 * value),
            lambda q, k, v: run(q, k, v, scale=1.0),
        ),
        "softmax_over_queries": (
            "taken the softmax over the queries",
            (same, same, value),
            (same, K, value),
            lambda q, k, v: al.softmax(q @ k.T / 2**0.5, axis=0) @ v,
        ),
    }


def hides(rng):
    """Ask for an example that hides a mistake and one that shows it; the key has one of each, computed."""
    bugs = examples(*distinct(rng, 1, 5, 3))
    bug = one_of(rng, *bugs)
    name, hidden, shown, wrong = bugs[bug]
    asked = (
        f"Somebody has {name}. Give Q, K and V on which the output does not notice it, and Q, K and V on which "
        "the output changes. Two tokens are enough, and their values differ."
    )
    texts = [
        ", ".join(f"{letter} = {format_list(x)}" for letter, x in zip("QKV", some, strict=True))
        for some in (hidden, shown)
    ]
    outputs = [format_list(np.round(f(*shown), 2)) for f in (al.scaled_dot_product_attention, wrong)]
    key = (
        f"For instance {texts[0]} hides it: three points. {texts[1]} shows it: the output is {outputs[0]}, and with "
        f"the mistake {outputs[1]}: three points. Two examples of the same kind: three points in all. "
        "Equal values, such as V = 0, hide it as well, but were excluded: one point of three."
    )
    return Question(
        "A test that sees it", 6, 10, asked, key, dict(hidden=hidden, shown=shown), {"bug": bug, "wrong": wrong}
    )


def exercise(notebook, name):
    """Return the heading of an exercise as readers and plans have it."""
    return "Exercise {} · {}".format(*exercises(notebook)[name])


# Each with the headings that it rests on, by notebook. An exam for a plan asks what the plan holds, and nothing else.
# It shows code only where the plan lets students write some.
SCORES, SOFTMAX = "Step 3 · Scores: one query against every key", "Step 4 · Softmax: from scores to weights"
OUTPUT, SPLIT = "Step 5 · The output: a weighted sum of values", "2 · Split and merge"
CAUSAL, PADDING = "2 · The causal mask", "4 · The padding mask"
TEST = "Would a test notice your mistake?"
SCORES_IN_CODE = exercise("vectorized", "attention_scores")
BOTH_IN_CODE = [exercise("multi_head", name) for name in ("split_heads", "merge_heads")]
QUESTIONS = {
    by_hand: {"by_hand": [SCORES, SOFTMAX, OUTPUT, r"Step 6 · Dividing by $\sqrt{d_k}$"]},
    likeness: {"by_hand": ["Where likeness fails", "Step 2 · One key, then all keys", SCORES]},
    a_map: {"by_hand": [SOFTMAX, OUTPUT]},
    why_divide: {"scaling": ["1 · How large is a score?", "2 · What softmax makes of large scores"]},
    wrong_code: {"vectorized": ["Four lines", TEST, SCORES_IN_CODE]},
    hides: {"vectorized": ["Four lines", TEST]},
    zero_after: {"masks": [CAUSAL, "Break it · Zero after the softmax"]},
    two_masks: {"masks": [CAUSAL, PADDING, "See it · Both masks at once"]},
    dead_row: {"masks": [CAUSAL, "6 · A row that may look nowhere"]},
    chunk: {"masks": [CAUSAL, "When the last words ask alone"]},
    shapes: {"multi_head": [SPLIT]},
    wrong_cut: {"multi_head": [SPLIT, "Break it · Straight to the shape", *BOTH_IN_CODE]},
    cache: {"one_token_at_a_time": ["2 · What does a new word change?"]},
}


def everything(notebook, heading):
    return True


def of_plan(name):
    """Return a function of (notebook, heading): does a plan of TEACHING.md hold it?"""
    steps = plans.plan_of(plans.GUIDE.read_text("utf-8"), name).steps
    held = {(step.number, heading) for step in steps for heading in step.headings}
    return lambda notebook, heading: (NUMBERS[notebook], heading) in held


def up_to(last):
    """Return the same for all notebooks up to one, which is given by its name or its number."""
    last = NUMBERS.get(last, last.zfill(2))
    if last not in NUMBERS.values():
        sys.exit(f"no notebook is called {last!r}. Fix: its number, such as 03, or one of {', '.join(NUMBERS)}")
    return lambda notebook, heading: NUMBERS[notebook] <= last


def variant(word, holds=everything):
    """Return the questions of a word of which all headings are held; none has a text, code or mend of the example."""
    questions = _draw_questions(word)
    if word != EXAMPLE:
        for i, public in enumerate(_draw_questions(EXAMPLE)):
            again = 0
            while parts(questions[i]) & parts(public):
                again += 1
                if again > 99:
                    raise ValueError(
                        f"{public.title}: no draw differs from the example. Fix: give it more to draw from."
                    )
                questions[i] = _draw_questions(f"{word} {again}")[i]
    rests = [[(notebook, heading) for notebook in found for heading in found[notebook]] for found in QUESTIONS.values()]
    return [q for q, needed in zip(questions, rests, strict=True) if all(holds(*one) for one in needed)]


def parts(question):
    """Return what of a question nobody may have read before: its text, its code and the line that mends it."""
    return {question.asked, *(question.given[name] for name in ("code", "mend") if name in question.given)}


def _draw_questions(word):
    digest = hashlib.sha256(word.encode()).digest()
    return [make(np.random.default_rng([*digest, i])) for i, make in enumerate(QUESTIONS)]


def exam(word, questions):
    points, minutes = (sum(getattr(q, name) for q in questions) for name in ("points", "minutes"))
    lines = ["# Attention, exam", "", "Name: ____________________", ""]
    lines += [
        f"{len(questions)} questions, {points} points, {minutes} minutes. A calculator and the page of formulas may "
        "lie on the desk."
    ]
    for i, q in enumerate(questions, 1):
        lines += ["", f"### {i} · {q.title} ({q.points} points)", "", q.asked]
    return "\n".join([*lines, ""])


def key(word, questions):
    lines = [
        f"# Key to the exam “{word}”",
        "",
        "A named mistake is a thought that went one step wrong: see docs/checks.md.",
    ]
    for i, q in enumerate(questions, 1):
        lines += ["", f"### {i} · {q.title} ({q.points} points)", "", q.key]
    return "\n".join([*lines, ""])


def parse_arguments(usage):
    """Return the word of the command line, or None, and its questions."""
    parser = argparse.ArgumentParser(usage=usage)
    parser.add_argument("word", nargs="?")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--plan", type=of_plan, dest="holds", default=everything)
    some.add_argument("--upto", type=up_to, dest="holds", default=everything)
    given = parser.parse_args()
    if (given.word is None and given.holds is not everything) or not re.fullmatch(r"[\w-]+", given.word or EXAMPLE):
        parser.error("a word of letters and digits comes first")
    questions = variant(given.word or EXAMPLE, given.holds)
    if not questions:
        sys.exit("no question rests on so little. Fix: --upto by_hand, or a later notebook")
    return given.word, questions


def main():
    word, questions = parse_arguments(__doc__)
    folder = ROOT / "_exam" if word else FOLDER
    word = word or EXAMPLE
    folder.mkdir(exist_ok=True)
    for name, page in ((word, exam), (f"{word}_key", key)):
        path = folder / f"{name}.md"
        path.write_text(page(word, questions), encoding="utf-8", newline="\n")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

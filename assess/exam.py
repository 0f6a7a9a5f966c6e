"""Write an exam on attention and its key, with numbers drawn from a word.

python -m assess.exam          docs/exam/example.md and example_key.md, to look at
python -m assess.exam WORD     _exam/WORD.md and WORD_key.md: the same ten questions with other numbers

The example is public, so give a variant. Choose a word that nobody guesses: the same word gives the same numbers.
attnlib computes every answer; assess/test_exam.py computes each once more, with loops.
"""

import hashlib
import re
import sys
from dataclasses import dataclass, field

import numpy as np

import attnlib as al
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
        if len(set(told.values())) == len(told) and query.any():
            break
    weights = al.softmax(scaled)
    asked = (
        f"A query is {tuple(map(int, query))}. Two keys are {tuple(map(int, keys[0]))} and "
        f"{tuple(map(int, keys[1]))}, with the values {values[0]:g} and {values[1]:g}. Compute the weights and the "
        "output, with two decimals."
    )
    points = {"": "6", "no_scale": "4", "scale_by_d_k": "4", "scale_after_softmax": "3", "no_exponential": "2"}
    rows = [[x, f"`{name}`" if name else "", points[name]] for name, x in told.items()]
    key = (
        f"Scores {scores[0]:g} and {scores[1]:g} (1 point), scaled {scaled[0]:g} and {scaled[1]:g} (1), weights "
        f"{weights[0]:.2f} and {weights[1]:.2f} (2), output {told['']} (2). A slip in arithmetic costs its own step "
        "alone. "
        "With one wrong thought:\n\n" + table(["output", "shows", "points"], rows)
    )
    given = {"query": query, "keys": np.array(keys), "values": values}
    return Question("One query by hand", 6, 8, asked, key, given, {"outputs": told, "weights": weights})


def shapes(rng):
    while True:
        batch, heads, n_q, n_k = distinct(rng, 2, 9, 4)
        if heads in (2, 3, 4, 6, 8):
            break
    d_k = int(rng.integers(10, 17))
    width = heads * d_k
    query, key = np.zeros((batch, n_q, width)), np.zeros((batch, n_k, width))
    q, k = al.split_heads(query, heads), al.split_heads(key, heads)
    trace = al.attention_trace(q, k, k)
    answers = [q.shape, trace.scores.shape, trace.output.shape, al.merge_heads(trace.output).shape]
    asked = (
        f"A batch of {batch} texts, a layer with {heads} heads, tokens of {width} features. {n_q} queries come from "
        f"one text, {n_k} keys and values from another. Which shapes have the split queries, the scores, the output "
        "of the heads, and the output of the layer?"
    )
    key_text = (
        f"{', '.join(map(str, answers))}. One point each. Scores of shape {(batch, heads, n_k, n_q)} are "
        f"`swapped_query_key`; queries of shape {(batch, heads, n_q, width)} are `features_never_split`."
    )
    return Question(
        "Shapes",
        4,
        5,
        asked,
        key_text,
        dict(batch=batch, heads=heads, n_q=n_q, n_k=n_k, width=width),
        {"shapes": answers},
    )


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


BUGS = {
    "scale_by_n": (
        """def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) / key.shape[-2] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value""",
        "The scores are divided by the root of the number of keys",
        "Give every key twice: the weights of the two copies do not add up to what one had",
    ),
    "double_softmax": (
        """def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) / key.shape[-1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    e = np.exp(e / e.sum(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value""",
        "A softmax is taken of what is a softmax already",
        "However far apart the scores of two keys lie, neither weight falls below 0.26",
    ),
    "softmax_over_queries": (
        """def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) / key.shape[-1] ** 0.5
    e = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True) @ value""",
        "The softmax runs over the queries",
        "The rows do not sum to 1, the columns do",
    ),
    "softmax_over_everything": (
        """def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) / key.shape[-1] ** 0.5
    e = np.exp(scores - scores.max())
    return e / e.sum() @ value""",
        "One softmax runs over all scores together",
        "The rows do not sum to 1, the whole map does",
    ),
    "exp_not_divided": (
        """def attention(query, key, value):
    scores = query @ np.swapaxes(key, -1, -2) / key.shape[-1] ** 0.5
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.max(axis=-1, keepdims=True) @ value""",
        "Each row is divided by its largest exponential, which is 1, and not by their sum",
        "The largest weight of every row is 1, and the rows sum to more",
    ),
}


def wrong_code(rng):
    bug = one_of(rng, *BUGS)
    code, name, look = BUGS[bug]
    asked = f"```python\n{code}\n```\n\nName the mistake, and one look at the weights that shows it."
    key = f"{name} (`{bug}`): two points. {look}: two points."
    return Question("What is wrong here?", 4, 5, asked, key, dict(code=code), {"bug": bug})


SPLITS = {
    "split_without_transpose": "x.reshape(b, num_heads, n, d // num_heads)",
    "heads_interleaved": "x.reshape(b, n, d // num_heads, num_heads).transpose(0, 3, 1, 2)",
}
MENDED = "x.reshape(b, n, num_heads, d // num_heads).swapaxes(1, 2)"


def wrong_split(rng):
    bug = one_of(rng, *SPLITS)
    heads, d_k, n = int(rng.integers(2, 4)), int(rng.integers(2, 5)), int(rng.integers(3, 6))
    x = np.arange(n * heads * d_k).reshape(1, n, heads * d_k)
    names = {"x": x, "b": 1, "n": n, "d": heads * d_k, "num_heads": heads}
    wrong, right = (eval(text, dict(names))[0, 0, 1] for text in (SPLITS[bug], MENDED))
    code = f"def split_heads(x, num_heads):\n    b, n, d = x.shape\n    return {SPLITS[bug]}"
    asked = (
        f"```python\n{code}\n```\n\nThe shape is right. Let x be one text of {n} tokens with {heads * d_k} "
        f"features, whose "
        f"numbers are 0, 1, 2, ... in order, and {heads} heads. What stands in the second row of the first head, "
        f"what should "
        "stand there, and how is the function mended?"
    )
    key = f"{format_list(wrong)} (1 point); {format_list(right)} (1); `{MENDED}` (2). The mistake is `{bug}`."
    return Question(
        "It runs, and is wrong",
        4,
        6,
        asked,
        key,
        dict(code=code, x=x, heads=heads),
        {"bug": bug, "wrong": wrong, "right": right},
    )


def why_divide(rng):
    d_k = one_of(rng, 16, 25, 36, 49, 64, 81, 100, 144)
    root = int(d_k**0.5)
    asked = (
        f"Queries and keys have {d_k} entries each, all independent, with mean 0 and variance 1. What is the "
        "standard deviation of a score before the division? What happens to the weights without it, and to the "
        "gradient?"
    )
    key = (
        f"{root}, because {d_k} variances of 1 add up: two points. The softmax is close to 1 for the largest score "
        f"and to 0 for the others, and there the gradient on the scores is close to 0: two points. The answer {d_k} "
        "shows that standard deviation and variance were confused: one point of the first two."
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
        f"{past} tokens are in the cache, and {new} new ones come at once. Draw the causal mask, a row for each query."
    )
    drawn = "\n".join(" ".join(map(str, row)) for row in mask.astype(int))
    key = f"```text\n{drawn}\n```\n\n" + table(["mask", "shows", "points"], [["as above", "", "4"], *rows])
    return Question(
        "New queries behind a cache", 4, 5, asked, key, dict(past=past, new=new), {"mask": mask, "wrong": masks}
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
            (Q, K, K),
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
        f"Somebody has {name}. Give Q, K and V on which the output stays right all the same, and Q, K and V on "
        "which it changes. Two tokens are enough."
    )
    texts = [
        ", ".join(f"{letter} = {format_list(x)}" for letter, x in zip("QKV", some, strict=True))
        for some in (hidden, shown)
    ]
    outputs = [format_list(np.round(f(*shown), 2)) for f in (al.scaled_dot_product_attention, wrong)]
    key = (
        f"For instance {texts[0]} hides it: three points. {texts[1]} shows it: the output is {outputs[0]}, and with "
        f"the mistake {outputs[1]}: three points. Two examples of the same kind: three points in all."
    )
    return Question(
        "A test that sees it", 6, 10, asked, key, dict(hidden=hidden, shown=shown), {"bug": bug, "wrong": wrong}
    )


QUESTIONS = (by_hand, shapes, two_masks, dead_row, wrong_code, wrong_split, why_divide, cache, chunk, hides)


def variant(word):
    """Return the questions of a word; none is one of the public example."""
    questions = _draw_questions(word)
    if word != EXAMPLE:
        for i, public in enumerate(_draw_questions(EXAMPLE)):
            again = 0
            while questions[i].asked == public.asked:
                again += 1
                questions[i] = _draw_questions(f"{word} {again}")[i]
    return questions


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


def main():
    given = sys.argv[1:]
    if len(given) > 1 or not all(re.fullmatch(r"[\w-]+", word) for word in given):
        sys.exit(__doc__)
    word, folder = (given[0], ROOT / "_exam") if given else (EXAMPLE, FOLDER)
    folder.mkdir(exist_ok=True)
    questions = variant(word)
    for name, page in ((word, exam), (f"{word}_key", key)):
        path = folder / f"{name}.md"
        path.write_text(page(word, questions), encoding="utf-8", newline="\n")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

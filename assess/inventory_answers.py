"""What each mistake answers to the twelve questions of docs/inventory, and how far rules of thumb come.

assess/inventory.py writes docs/inventory/answers.md from it. An item is a function of its numbers that returns what
is right and what comes out under each mistake that changes it; many change several items. None: an answer that the form
does not offer.
"""

import re

import numpy as np

import attnlib as al


def numbers(x):
    return ", ".join(f"{v:.2f}" for v in np.atleast_1d(x))


def tokens(mask):
    return ", ".join(str(i) for i in np.flatnonzero(mask) + 1)


def share(e):
    return e / e.sum()


def roles(n, token, still):
    """Count the weights and outputs that change when one token gets another key and one has a query of zeros."""
    rng = np.random.default_rng(0)
    busy, k, v, new = rng.normal(size=(4, n, 3))
    q = np.where(np.arange(n)[:, None] == still - 1, 0, busy)
    changed = np.where(np.arange(n)[:, None] == token - 1, new, k)

    def count(call):
        (before, was), (after, now) = call(k), call(changed)
        return f"{(before != after).sum()}, {(was != now).any(axis=-1).sum()}"

    def attend(q, k, v, shares=al.softmax):
        weights = shares(q @ k.T)
        return weights, weights @ v

    return {
        "right": count(lambda k: attend(q, k, v)),
        "zero_query_overlooked": count(lambda k: attend(busy, k, v)),
        "swapped_query_key": count(lambda k: attend(k, q, v)),
        "swapped_key_value": count(lambda k: attend(q, v, k)),
        "no_softmax": count(lambda k: attend(q, k, v, lambda scores: scores)),
        "softmax_over_queries": count(lambda k: attend(q, k, v, lambda scores: al.softmax(scores, axis=0))),
        "looks_at_itself": count(lambda k: (np.eye(n), v)),
    }


def score(q1, k1, q2, k2):
    pairs = {
        "right": (q2, k1),
        "swapped_query_key": (k2, q1),
        "query_met_others": (q1, q2),
        "looks_at_itself": (q2, k2),
    }
    return {id: f"{np.dot(*pair)}" for id, pair in pairs.items()}


def ratio(told, *scores):
    """Tell how many times as much weight the third of four scaled scores gets as the fourth, from the first two."""
    a, b, c, d = scores
    answers = {
        "right": told ** ((c - d) / (a - b)),
        "ratio_grows_with_difference": told * (c - d) / (a - b),
        "ratio_grows_with_score": told * c / a,
        "no_exponential": c / d,
        "no_softmax": c / d,
        "powers_of_two": 2.0 ** (c - d),
    }
    return {id: f"{x:.1f}" for id, x in answers.items()} | {"argmax_instead_of_softmax": None, "everybody_alike": None}


def sums(texts, n_q, n_k):
    """Count the sums of exponentials by which a softmax divides, over the scores of some texts."""
    e = np.ones((texts, n_q, n_k))
    along = {
        "right": -1,
        "softmax_over_queries": 1,
        "swapped_query_key": 1,
        "softmax_over_everything": (1, 2),
        "softmax_over_texts": 0,
    }
    unlisted = {"argmax_instead_of_softmax": None, "no_softmax": None}
    return {id: str(e.sum(axis=axis).size) for id, axis in along.items()} | unlisted


def divisor(d_k, dot):
    answers = {
        "right": dot / d_k**0.5,
        "scale_by_d_k": dot / d_k,
        "no_scale": dot,
        "multiply_by_sqrt_d_k": dot * d_k**0.5,
    }
    return {id: numbers(x) for id, x in answers.items()}


def spread(d_k, deviation, wider):
    """Give the deviation of undivided scores of wider vectors; who divides wrongly believes in another growth."""
    growth = wider / d_k
    answers = {"right": growth**0.5, "scale_by_d_k": growth, "no_scale": 1, "multiply_by_sqrt_d_k": growth**-0.5}
    return {id: numbers(deviation * x) for id, x in answers.items()}


def read_map(token, scores):
    """Tell whose output moves most with the value of a token, from the scaled scores of all."""
    scores, j = np.array(scores, dtype=float), token - 1
    chosen = {
        "right": al.softmax(scores)[:, j].argmax(),
        "weights_transposed": al.softmax(scores)[j].argmax(),
        "softmax_over_queries": al.softmax(scores, axis=0)[:, j].argmax(),
        "softmax_over_everything": scores[:, j].argmax(),
        "no_softmax": scores[:, j].argmax(),
        "no_exponential": (scores / scores.sum(-1, keepdims=True))[:, j].argmax(),
        "looks_at_itself": j,
    }
    return {id: f"token {i + 1}" for id, i in chosen.items()} | {"everybody_alike": None}


def doubled_keys(weights, values):
    """Give the output of a query whose keys are doubled, from its weights before."""
    answers = {
        "right": al.softmax(2 * np.log(weights)) @ values,
        "no_exponential": weights @ values,
        "doubled_throughout": 2 * weights @ values,
        "no_softmax": 2 * weights @ values,
        "argmax_instead_of_softmax": values[weights.argmax()],
        "everybody_alike": values.mean(),
    }
    return {id: numbers(x) for id, x in answers.items()} | {"keys_for_values": None}


def two_masks(last, n, i):
    """Tell what a position attends to behind a causal mask, where the first ones are padding."""
    text, row = np.arange(n) >= last, al.causal_mask(n)[i - 1]
    masks = {
        "right": text & row,
        "mask_blocks_diagonal": text & np.tri(n, k=-1, dtype=bool)[i - 1],
        "mask_shows_the_next": text & np.tri(n, k=1, dtype=bool)[i - 1],
        "one_mask_of_two": row,
        "mask_inverted": ~(text & row),
    }
    return {id: tokens(mask) for id, mask in masks.items()} | {"mask_ignored": None}


def masked_output(e, values):
    """Give the output of the second of three tokens behind a causal mask, from the exponentials of its scores."""
    mask, scores = np.array([True, True, False]), np.log(e)
    weights = {
        "right": al.softmax(np.where(mask, scores, -np.inf)),
        "mask_after_softmax": al.softmax(scores) * mask,
        "mask_multiplies_scores": al.softmax(scores * mask),
        "mask_ignored": al.softmax(scores),
        "mask_shows_the_next": al.softmax(scores),
        "mask_inverted": ~mask,
        "mask_blocks_diagonal": [1, 0, 0],
        "argmax_instead_of_softmax": [e[0] > e[1], e[1] > e[0], 0],
        "everybody_alike": mask / 2,
    }
    return {id: numbers(w @ values) for id, w in weights.items()} | {"keys_for_values": None, "no_softmax": None}


def of_head(embed_dim, heads, ahead):
    """Tell how many times as much weight a key gets in a head whose dot product is so much larger."""
    d_k = embed_dim // heads
    divisors = {
        "right": d_k**0.5,
        "scale_by_embed_dim": embed_dim**0.5,
        "features_never_split": embed_dim**0.5,
        "scale_by_d_k": d_k,
        "scale_by_num_heads": heads**0.5,
        "block_as_wide_as_heads": heads**0.5,
        "no_scale": 1,
        "multiply_by_sqrt_d_k": d_k**-0.5,
    }
    answers = {id: np.exp(ahead / divisor) for id, divisor in divisors.items()}
    answers["powers_of_two"] = 2 ** (ahead / d_k**0.5)
    unlisted = ("no_exponential", "no_softmax", "argmax_instead_of_softmax", "everybody_alike")
    return {id: f"{x:.1f}" for id, x in answers.items()} | dict.fromkeys(unlisted)


def first_head(d, heads):
    x = np.arange(1, d + 1)
    answers = {
        "right": al.split_heads(x[None], heads)[0, 0],
        "heads_interleaved": x[::heads],
        "features_never_split": x,
        "block_as_wide_as_heads": x[:heads],
    }
    return {id: ", ".join(map(str, x)) for id, x in answers.items()}


A = np.array
# The numbers of form A and of form B stand in the questions; a test looks for each of them there.
COMPUTED = [
    (roles, (5, 2, 4), (4, 3, 1)),
    (score, ((1, 2), (0, 2), (2, 3), (1, 1)), ((2, 1), (2, 2), (1, 2), (3, 1))),
    (ratio, (20.1, 4, 1, 3, 2), (403.4, 8, 2, 5, 3)),
    (sums, (2, 3, 5), (4, 2, 3)),
    (divisor, (16, 8), (64, 32)),
    (spread, (20, 6, 80), (30, 7, 120)),
    (
        read_map,
        (2, [[0, 9, 9, 0], [1, 0, 3, 1], [4, 3, 5, 4], [6, 8, 6, 6]]),
        (3, [[4, 4, 3, 5], [5, 5, 7, 5], [3, 1, 0, 1], [0, 0, 8, 8]]),
    ),
    (doubled_keys, (A([0.25, 0.75]), A([15, 5])), (A([0.8, 0.2]), A([10, 27]))),
    (two_masks, (2, 6, 5), (4, 7, 6)),
    (masked_output, (A([5, 2, 3]), A([8, 1, 20])), (A([1, 3, 4]), A([8, 4, 16]))),
    (of_head, (100, 4, 10), (144, 9, 12)),
    (first_head, (8, 4), (6, 2)),
]


def answers(i, form):
    """Return what is right in item i and what each mistake answers there, by id."""
    compute, *given = COMPUTED[i]
    return compute(*given["AB".index(form)])


def letters(items, form, mistake=None):
    """Return the twelve letters of somebody with one mistake and no other; "" for an answer that is not offered."""
    chosen = []
    for i, item in enumerate(items):
        known = answers(i, form)
        told = known.get(mistake, known["right"])
        chosen.append(next((x for x in "abcd" if item[form][x][0] == told), ""))
    return chosen


def rows(items, mistake):
    """Return the cells of a mistake, one for each item: its letters in both forms, empty where it answers right."""
    cells = []
    by_form = {form: letters(items, form, mistake) for form in "AB"}
    right = {form: letters(items, form) for form in "AB"}
    for i in range(len(items)):
        cell = " ".join(by_form[form][i] or "-" for form in "AB")
        cells.append("" if all(by_form[form][i] == right[form][i] for form in "AB") else cell)
    return cells


# --- rules of thumb, for somebody who knows nothing else: each returns the letters that it leaves


def _parse_options(options):
    """Return the numbers of each option; a word has none."""
    return {x: [] if re.search("[a-z]", text) else list(map(float, text.split(", "))) for x, text in options.items()}


def sums_to_one(asked, options):
    return [x for x, ns in _parse_options(options).items() if abs(sum(ns) - 1) < 0.02] or list(options)


def stands_in_the_question(asked, options):
    given = {float(n) for n in re.findall(r"\d+\.?\d*", asked)}
    return [x for x, ns in _parse_options(options).items() if ns and set(ns) <= given]


def root_of_a_number(asked, options):
    roots = {round(float(n) ** 0.5, 2) for n in re.findall(r"\d+\.?\d*", asked) if float(n) > 1}
    return [x for x, ns in _parse_options(options).items() if len(ns) == 1 and ns[0] in roots]


def quotient_of_two_numbers(asked, options):
    given = {float(n) for n in re.findall(r"\d+\.?\d*", asked)} - {0.0}
    quotients = {round(a / b, 2) for a in given for b in given if a != b}
    return [x for x, ns in _parse_options(options).items() if len(ns) == 1 and ns[0] in quotients]


def _extreme(options, choose):
    single = {x: ns[0] for x, ns in _parse_options(options).items() if len(ns) == 1}
    return [choose(single, key=single.get)] if len(single) > 2 else list(options)


def largest_number(asked, options):
    return _extreme(options, max)


def smallest_number(asked, options):
    return _extreme(options, min)


def shares_most(asked, options):
    """Choose the option that has the most numbers in common with the others."""
    parsed = _parse_options(options)
    common = {x: sum(n in other for y, other in parsed.items() if y != x for n in ns) for x, ns in parsed.items()}
    return [x for x, n in common.items() if n == max(common.values())]


def longest_option(asked, options):
    longest = max(map(len, options.values()))
    return [x for x, text in options.items() if len(text) == longest]


def least_round(asked, options):
    """Choose the number with most decimals that are not 0, as of one that was computed."""
    decimals = {x: len(text.rstrip("0").partition(".")[2]) for x, text in options.items() if "." in text}
    return [x for x in options if decimals.get(x) == max(decimals.values(), default=0)] or list(options)


def word_for_word(asked, options, readings=()):
    """Do what the words say, as somebody who has read nothing can: the first reading whose pattern fits."""
    for pattern, read in [*readings, *READINGS]:
        if found := re.search(pattern, asked, re.DOTALL):
            told = read(asked, *found.groups())
            return [x for x, text in options.items() if text == told] or list(options)
    return list(options)


def word_for_word_and_causal(asked, options):
    """Do the same as somebody who has heard that a causal mask leaves a token itself and what stands before it."""
    return word_for_word(asked, options, CAUSAL)


def _floats(text):
    return list(map(float, re.findall(r"\d+(?:\.\d+)?", text)))


def _span(first, last):
    return ", ".join(map(str, range(int(first), int(last) + 1)))


def _dot(asked, *pairs):
    """Multiply the first query with the second key that are named."""
    first, second = _floats(pairs[0]), _floats(pairs[1])
    return f"{np.dot(first, second):g}"


def _largest_of_column(asked, token):
    rows = [_floats(line.partition("|")[2].partition("|")[2]) for line in asked.splitlines() if line[:7] == "| token"]
    return f"token {np.argmax([row[int(token) - 1] for row in rows]) + 1}"


def _weighted_sum(asked, weights, values):
    return numbers(np.dot(_floats(weights)[:2], _floats(values)[:2]) * 2)


def _mean(asked, values, e, seen=None):
    return numbers(np.dot(_floats(values)[:seen], share(np.array(_floats(e)[:seen]))))


# What a reader of the words alone answers, in the order of the questions. Some lead astray, as they should.
HEARD = r"values ([\d, and]+)\. .+second token are ([\d, and]+)\."
PADDED = r"Positions 1 \w+ (\d) of (\d) are padding.+position (\d)"
READINGS = [
    (r"key of token \d alone.+ the (\d+) weights.+ the (\d) outputs", lambda asked, n, m: f"{n}, {m}"),  # all of them
    (r"Token 1 has the query (\(.+?\)).+token 2 .+the key (\(.+?\))", _dot),
    (r"scores (\d) and \d .+ ([\d.]+) times.+ scores (\d)", lambda asked, a, n, c: f"{float(n) * int(c) / int(a):.1f}"),
    (r"scores of (\d) texts", lambda asked, texts: texts),  # a sum for each
    (r"keys have (\d+) features\. The dot product .+ is (\d+)", lambda asked, n, dot: numbers(int(dot) / int(n))),
    (r"With (\d+) features.+deviation (\d+).+with (\d+)", lambda asked, a, b, c: numbers(float(b) * int(c) / int(a))),
    (r"scaled scores of four.+value of token (\d)", _largest_of_column),
    (r"weights ([\d. and]+) .*values.*? (\d+ and \d+).+doubled", _weighted_sum),
    (PADDED, lambda asked, last, n, i: _span(int(last) + 1, n)),
    (HEARD, _mean),
    (r"into (\d) heads.+ is (\d+) larger", lambda asked, h, ahead: f"{np.exp(int(ahead) / int(h)):.1f}"),
    (r"numbered 1 to (\d).+among (\d)", lambda asked, n, h: _span(1, int(n) // int(h))),
]
CAUSAL = [
    (PADDED, lambda asked, last, n, i: _span(int(last) + 1, i)),
    (HEARD, lambda asked, values, e: _mean(asked, values, e, seen=2)),
]


RULES = [
    sums_to_one,
    stands_in_the_question,
    root_of_a_number,
    quotient_of_two_numbers,
    largest_number,
    smallest_number,
    shares_most,
    longest_option,
    least_round,
    word_for_word,
    word_for_word_and_causal,
]


def solved_by(rule, items, form):
    """Return the numbers of the items in which a rule of thumb leaves the right option alone."""
    found = []
    for i, item in enumerate(items, 1):
        left = rule(item[form]["asked"], {x: item[form][x][0] for x in "abcd"})
        found += [i] if [item[form][x][1] for x in left] == ["right"] else []
    return found

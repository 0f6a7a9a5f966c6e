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


def roles(asks, looks_for, found_under, holds):
    """All weight goes to the token that is found by what token `asks` looks for."""
    i, values = asks - 1, np.array(holds, dtype=float)
    answers = {
        "right": values[found_under.index(looks_for[i])],
        "swapped_query_key": values[looks_for.index(found_under[i])],
        "query_met_others": values[looks_for.index(looks_for[i])],
        "looks_at_itself": values[i],
        "everybody_alike": values.mean(),
    }
    return {id: numbers(x) for id, x in answers.items()} | {"keys_for_values": None}


def score(q1, k1, q2, k2):
    pairs = {
        "right": (q1, k2),
        "swapped_query_key": (k1, q2),
        "query_met_others": (q1, q2),
        "looks_at_itself": (q1, k1),
    }
    return {id: f"{np.dot(*pair)}" for id, pair in pairs.items()}


def ratio(first, second):
    """Tell how many times as much weight the first of two scaled scores gets."""
    e = np.exp([first, second])
    answers = {
        "right": e[0] / e[1],
        "no_exponential": first / second,
        "powers_of_two": 2.0 ** (first - second),
        "exponents_added": e[0] * e[1],
    }
    return {id: f"{x:.1f}" for id, x in answers.items()} | {"argmax_instead_of_softmax": None, "everybody_alike": None}


def axis(e):
    """Give the weight of the first query on the second key, from the exponentials of all scores."""
    weights = al.softmax(np.log(e))
    answers = {
        "right": weights,
        "softmax_over_queries": al.softmax(np.log(e), axis=0),
        "softmax_over_everything": share(e),
        "weights_transposed": weights.T,
    }
    unlisted = {"argmax_instead_of_softmax": None}
    return {id: numbers(x[0, 1]) for id, x in answers.items()} | unlisted


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


def read_map(asks, weights):
    weights = np.array(weights)
    i = asks - 1
    chosen = {
        "right": weights[i].argmax(),
        "weights_transposed": weights[:, i].argmax(),
        "looks_at_itself": i,
        "largest_of_all": weights.argmax() % weights.shape[1],
    }
    return {id: f"token {j + 1}" for id, j in chosen.items()} | {"everybody_alike": None}


def output(weights, keys, values):
    answers = {
        "right": weights @ values,
        "keys_for_values": weights @ keys,
        "argmax_instead_of_softmax": values[weights.argmax()],
        "everybody_alike": values.mean(),
    }
    return {id: numbers(x) for id, x in answers.items()}


def causal(n, i):
    row = al.causal_mask(n)[i - 1]
    masks = {
        "right": row,
        "mask_inverted": ~row,
        "mask_blocks_diagonal": np.tri(n, k=-1)[i - 1],
        "mask_shows_the_next": np.tri(n, k=1)[i - 1],
    }
    return {id: tokens(mask) for id, mask in masks.items()} | {"mask_ignored": None}


def weights_with_blocked_key(e):
    """Give the weights where the third key is blocked."""
    mask, scores = np.array([True, True, False]), np.log(e)
    answers = {
        "right": al.softmax(np.where(mask, scores, -np.inf)),
        "mask_after_softmax": al.softmax(scores) * mask,
        "mask_multiplies_scores": al.softmax(scores * mask),
        "mask_ignored": al.softmax(scores),
    }
    unlisted = {"mask_inverted": None, "argmax_instead_of_softmax": None, "everybody_alike": None}
    return {id: numbers(x) for id, x in answers.items()} | unlisted


def of_head(embed_dim, heads):
    d_k = embed_dim // heads
    answers = {
        "right": d_k**0.5,
        "scale_by_embed_dim": embed_dim**0.5,
        "features_never_split": embed_dim**0.5,
        "scale_by_d_k": d_k,
        "scale_by_num_heads": heads**0.5,
        "block_as_wide_as_heads": heads**0.5,
    }
    unlisted = {"no_scale": None, "multiply_by_sqrt_d_k": None}
    return {id: numbers(x) for id, x in answers.items()} | unlisted


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
    (
        roles,
        (1, ["red", "blue", "green"], ["blue", "green", "red"], [4, 7, 6]),
        (2, ["red", "green", "blue"], ["green", "blue", "red"], [2, 9, 5]),
    ),
    (score, ((1, 2), (0, 2), (2, 3), (1, 1)), ((2, 1), (1, 7), (1, 2), (3, 1))),
    (ratio, (4, 2), (4, 1)),
    (axis, (A([[1, 3], [1, 4]]),), (A([[4, 1], [2, 3]]),)),
    (divisor, (16, 8), (64, 32)),
    (spread, (20, 6, 80), (30, 7, 120)),
    (
        read_map,
        (2, [[0.75, 0.1, 0.05, 0.1], [0.1, 0.2, 0.6, 0.1], [0.4, 0.1, 0.3, 0.2], [0.1, 0.7, 0.1, 0.1]]),
        (3, [[0.3, 0.3, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1], [0.6, 0.1, 0.2, 0.1], [0.05, 0.1, 0.05, 0.8]]),
    ),
    (output, (A([0.25, 0.75]), A([1, 9]), A([12, 4])), (A([0.9, 0.1]), A([3, 5]), A([10, 20]))),
    (causal, (5, 3), (6, 4)),
    (weights_with_blocked_key, (A([6, 2, 2]),), (A([4, 1, 5]),)),
    (of_head, (72, 8), (100, 4)),
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


RULES = [
    sums_to_one,
    stands_in_the_question,
    root_of_a_number,
    quotient_of_two_numbers,
    largest_number,
    smallest_number,
    shares_most,
    longest_option,
]


def solved_by(rule, items, form):
    """Return the numbers of the items in which a rule of thumb leaves the right option alone."""
    found = []
    for i, item in enumerate(items, 1):
        left = rule(item[form]["asked"], {x: item[form][x][0] for x in "abcd"})
        found += [i] if [item[form][x][1] for x in left] == ["right"] else []
    return found

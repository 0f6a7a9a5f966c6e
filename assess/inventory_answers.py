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


def roles(n, token):
    """Count the weights and the outputs that change when one token gets another value, by trying it."""
    rng = np.random.default_rng(0)
    q, k, v, new = rng.normal(size=(4, n, 3))
    changed = np.where(np.arange(n)[:, None] == token - 1, new, v)

    def count(call):
        (before, was), (after, now) = call(v), call(changed)
        return f"{(before != after).sum()}, {(was != now).any(axis=-1).sum()}"

    def attend(q, k, v):
        weights = al.softmax(q @ k.T)
        return weights, weights @ v

    return {
        "right": count(lambda v: attend(q, k, v)),
        "keys_for_values": count(lambda v: attend(q, k, k)),
        "looks_at_itself": count(lambda v: (np.eye(n), v)),
        "swapped_key_value": count(lambda v: attend(q, v, k)),
        "swapped_query_value": count(lambda v: attend(v, k, q)),
    }


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


def read_map(token, weights):
    """Tell whose output moves most with the value of a token."""
    weights = np.array(weights)
    j = token - 1
    chosen = {
        "right": weights[:, j].argmax(),
        "weights_transposed": weights[j].argmax(),
        "looks_at_itself": j,
        "largest_of_all": weights.max(axis=1).argmax(),
    }
    return {id: f"token {i + 1}" for id, i in chosen.items()} | {"everybody_alike": None}


def doubled_keys(weights, values):
    """Give the output of a query whose keys are doubled, from its weights before."""
    answers = {
        "right": al.softmax(2 * np.log(weights)) @ values,
        "no_exponential": weights @ values,
        "doubled_throughout": 2 * weights @ values,
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
    return {id: numbers(w @ values) for id, w in weights.items()} | {"keys_for_values": None}


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
    unlisted = ("no_exponential", "exponents_added", "argmax_instead_of_softmax", "everybody_alike")
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
    (roles, (5, 2), (4, 3)),
    (score, ((1, 2), (0, 2), (2, 3), (1, 1)), ((2, 1), (1, 7), (1, 2), (3, 1))),
    (ratio, (4, 2), (4, 1)),
    (axis, (A([[2, 3], [4, 1]]),), (A([[4, 1], [2, 3]]),)),
    (divisor, (16, 8), (64, 32)),
    (spread, (20, 6, 80), (30, 7, 120)),
    (
        read_map,
        (2, [[0.75, 0.1, 0.05, 0.1], [0.1, 0.2, 0.6, 0.1], [0.4, 0.1, 0.3, 0.2], [0.1, 0.7, 0.1, 0.1]]),
        (3, [[0.3, 0.3, 0.1, 0.3], [0.2, 0.2, 0.5, 0.1], [0.6, 0.1, 0.2, 0.1], [0.05, 0.1, 0.05, 0.8]]),
    ),
    (doubled_keys, (A([0.25, 0.75]), A([12, 4])), (A([0.8, 0.2]), A([10, 27]))),
    (two_masks, (2, 6, 5), (4, 7, 6)),
    (masked_output, (A([5, 2, 3]), A([8, 1, 20])), (A([1, 3, 4]), A([8, 4, 16]))),
    (of_head, (64, 4, 8), (144, 9, 12)),
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


def word_for_word(asked, options):
    """Do what the words say, as somebody who has read nothing can: the first reading whose pattern fits."""
    for pattern, read in READINGS:
        if found := re.search(pattern, asked, re.DOTALL):
            told = read(asked, *found.groups())
            return [x for x, text in options.items() if text == told] or list(options)
    return list(options)


def _floats(text):
    return list(map(float, re.findall(r"\d+(?:\.\d+)?", text)))


def _rows(asked):
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in asked.splitlines() if line[:2] == "| "]


def _follow_names(asked, token):
    """Find what one column says of a token in the next column, and take the last number of that row."""
    (wanted,) = (row[1] for row in _rows(asked) if row[0] == token)
    return next(numbers(float(row[-1])) for row in _rows(asked)[1:] if row[2] == wanted)


def _largest_of_row(asked, token):
    row = next(row[1:] for row in _rows(asked)[1:] if row[0] == f"token {token}")
    return f"token {np.argmax(list(map(float, row))) + 1}"


def _share_of_row(asked, words):
    first = _floats(words)[:2]
    return numbers(first[1] / sum(first))


def _leave_out(asked, given, which):
    e = np.array(_floats(given))
    e[["first", "second", "third"].index(which)] = 0
    return numbers(share(e))


def _weighted_sum(asked, weights, values):
    return numbers(np.dot(_floats(weights)[:2], _floats(values)[:2]) * (2 if "doubled" in asked else 1))


# What a text asks in so many words, and what a reader of the words alone answers. Some lead astray, as they should.
READINGS = [
    (r"output of token (\d).+looks for \| is found under", _follow_names),
    (r"the value of token \d alone becomes", lambda asked: "0, 1"),
    (r"row for each query.+(?:does|value of) token (\d)", _largest_of_row),
    (r"a row for each query and a column for each key, are (.+) in the first row", _share_of_row),
    (r"exponentials of the scores of a query are (.+?)\..+blocks the (\w+) key", _leave_out),
    (r"weights ([\d. and]+) .*values.*? (\d+ and \d+)", _weighted_sum),
    (r"scaled scores (\d) and (\d)", lambda asked, a, b: f"{float(a) / float(b):.1f}"),
    (r"With (\d+) features.+deviation (\d+).+with (\d+)", lambda asked, a, b, c: numbers(float(b) * int(c) / int(a))),
    (r"numbered 1 to (\d).+among (\d)", lambda asked, n, h: ", ".join(map(str, range(1, int(n) // int(h) + 1)))),
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
    word_for_word,
]


def solved_by(rule, items, form):
    """Return the numbers of the items in which a rule of thumb leaves the right option alone."""
    found = []
    for i, item in enumerate(items, 1):
        left = rule(item[form]["asked"], {x: item[form][x][0] for x in "abcd"})
        found += [i] if [item[form][x][1] for x in left] == ["right"] else []
    return found

"""What is judged as a whole: two texts that no head tells apart, and a head of one's own with its rule."""

import numpy as np

from attnlib import core

from ...convoy import FLAGS, ONE, WIDTH
from ...engine.compare import RIGHT
from ...engine.exercise import Design
from ...engine.run import Unfit, describe_error
from .puzzle import Puzzle, Shown, anything_goes, is_stub
from .rules import all_at, at_pilot, in_front, itself, same_flag, share


class Claim(Design):
    """A design that a function may return."""

    answer_is_code = True
    untried = ""

    def adapt(self, answer):
        def result():
            claim = answer() if callable(answer) else answer
            return None if is_stub(claim) else claim

        return result


# --- what no head can do


def _bag(flags):
    """Ships without pilot, places and cargo: flags and the 1."""
    x = np.zeros((len(flags), WIDTH))
    x[np.arange(len(flags)), [FLAGS.index(flag) for flag in flags]] = x[:, ONE] = 1
    return x


def told_apart(one, two, heads=200):
    """Return the most by which one of many random heads moves the output at the last ship of two bags of ships.

    >>> told_apart("AB", "ABAB") < 1e-9, told_apart("AB", "AAB") > 1
    (True, True)
    """
    rng, bags = np.random.default_rng(0), (_bag(one), _bag(two))

    def largest_change(W_Q, W_K, W_V):
        first, second = (core.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[-1] for x in bags)
        return np.abs(first - second).max()

    return float(max(largest_change(*rng.normal(size=(3, WIDTH, 4)) * rng.choice([0.1, 1, 5])) for _ in range(heads)))


def _judge_pair(pair):
    texts = isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
    if not texts or not all(0 < len(text) <= 12 and set(text) <= set("ABCD") for text in pair):
        return "not_a_convoy", ""
    one, two = pair
    if len(set(one + two)) == 1:
        return "one_flag", ""
    if one.count("A") == two.count("A"):
        return "counts_equal", f"Each has {one.count('A')}."
    if one[-1] != two[-1]:
        return "last_ship_differs", f"{one[-1]} and {two[-1]} ask."
    most = told_apart(one, two)
    if most < 1e-9:
        counts = f"{one.count('A')} and {two.count('A')} A"
        return RIGHT, f"With {counts}, none of 200 random heads moves the output by more than 1e-9."
    return "shares_differ", f"One of 200 random heads moves the output by {most:.1f}."


# --- your own head

_KNOWN = {
    "itself": itself,
    "the ship in front": in_front,
    "its flag": same_flag,
    "the pilot": at_pilot,
    "the last ship": lambda c: all_at(c, c.places == c.n - 1),
    "the heaviest": lambda c: all_at(c, c.cargo == c.cargo.max()),
}
_own_head = Puzzle("own_head", "", (), want=itself, signs={}, among={"seed": 7, "count": 50})


def _parts(result):
    """Return W_Q and W_K, and the rule."""
    if not (isinstance(result, tuple | list) and len(result) == 3 and callable(result[2])):
        raise Unfit("This puzzle asks for three things: W_Q, W_K and rule, a function. Fix: return W_Q, W_K, rule.")
    return tuple(result[:2]), result[2]


def _cells(rule, c):
    """Return what a learner's rule says of a convoy, and what is wrong with its shape."""
    try:
        cells = np.asarray(rule(c.flags, c.cargo.copy()), dtype=bool)
    except Exception as error:
        raise Unfit(describe_error(error)) from None
    fits = cells.shape == (c.n, c.n)
    return cells, "" if fits else f"For {c.flags} it returns shape {cells.shape}, where ({c.n}, {c.n}) is expected."


class _OwnHead(Claim):
    """A head and its rule, which can be shown beside each other."""

    def show(self, function, flags, times=1):
        """Return the rule, if there is one, and what the head does; its scores are multiplied by `times`."""
        result, rule = function(), {}
        matrices = tuple(result[:2]) if isinstance(result, tuple | list) else None
        shown = _own_head.show(lambda: matrices, flags, times)
        if (c := shown.convoy) is None:
            return shown
        try:
            cells, line = (None, "There is no rule yet.") if is_stub(result) else _cells(_parts(result)[1], c)
            if not line and cells.any():
                rule, line = {"rule": share(cells)}, anything_goes(share(cells))
            line = line or "The rule is True nowhere, so anything goes." * (not rule)
        except Unfit as error:
            line = str(error)
        maps = rule | {title: trace for title, trace in shown.maps.items() if title != "wanted"}
        return Shown(c, maps, {}, f"{line} {shown.line}".strip())


def _judge_own(result):
    matrices, rule = _parts(result)
    answer, worst, says_something = _own_head.parse_answer(matrices), (2.0, None, 0), False
    for c in _own_head.convoys:
        cells, problem = _cells(rule, c)
        if problem:
            return "rule_shape", problem
        judged = cells.any(axis=-1)
        says_something |= not cells[judged].all()
        on_rule = np.where(judged, (_own_head.result(answer, c) * cells).sum(axis=-1), 1)
        worst = min(worst, (on_rule.min(), c, int(on_rule.argmin())), key=lambda row: row[0])
    if not says_something:
        return "rule_says_nothing", ""
    least, c, row = worst
    cargo = ", ".join(f"{tons:.0f}" for tons in c.cargo)
    sentence = f"The worst row is {row} of {c.flags} with {cargo} t: {least:.2f} of its weight is where the rule says."
    state = RIGHT if least > 0.9 else "head_disagrees"
    return state, f"{sentence}\n{_nearest_known_rule(answer, None if least > 0.9 else (c, row))}".strip()


def _nearest_known_rule(answer, disagrees):
    """Say which known head shares most of its weight with this one on average, and if so, that the rule is another.

    `disagrees` is the convoy and the row in which the rule has at most 0.9 of the weight, or None.
    """
    maps = [(c, _own_head.result(answer, c)) for c in _own_head.convoys]
    shares = {
        name: np.mean([np.minimum(weights, rule(c)).sum(axis=-1).mean() for c, weights in maps])
        for name, rule in _KNOWN.items()
    }
    nearest = max(shares, key=shares.get)
    if shares[nearest] < 0.5:
        return ""
    if disagrees and shares[nearest] > 0.99:
        c, row = disagrees
        # More than 0.9 of this row is where the known rule is True, so the learner's rule is not the same.
        if np.minimum(_own_head.result(answer, c), _KNOWN[nearest](c))[row].sum() > 0.9:
            equal = " Are several equally heavy?" if nearest == "the heaviest" else ""
            return f"Your head looks at {nearest}, and your rule says something else.{equal}"
    sentence = f"Of the heads we know it is nearest to one that looks at {nearest}"
    return f"{sentence}: {shares[nearest]:.2f} of the weight in common."


CLAIMS = (
    Claim(
        "no_head_can",
        "two texts of A to D, at most 12 letters each, of two flags or more, with unequal numbers of A, for which no "
        "head gives the last ship different things; no pilot, no places, no cargo",
        (
            "What counts in a weighted average: how many ships there are, or which share each flag has?",
            "Change the number of A, and keep the share of every flag.",
            "Take a text, and write it twice.",
        ),
        judge=_judge_pair,
        names=("not_a_convoy", "one_flag", "counts_equal", "last_ship_differs", "shares_differ"),
    ),
    _OwnHead(
        "own_head",
        "a function that returns W_Q, W_K, rule, where rule(flags, cargo) gives (n, n) of bool: where the head looks; "
        "flags begin with *, n counts the pilot; a row without True is free",
        (
            "Begin with the rule: for one convoy, write down the map that you want.",
            "What all ships look for stands in row ONE of W_Q, what one flag looks for in the row of that flag.",
            "np.tile(chosen, (n, 1)) makes a map whose rows are all alike.",
        ),
        judge=_judge_own,
        names=("rule_shape", "rule_says_nothing", "head_disagrees"),
    ),
)

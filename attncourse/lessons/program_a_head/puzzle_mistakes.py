"""Signs by which a mistake in a head is seen: tests of what it does, (puzzle, answer) -> bool, or -> list of int, the
heads in which it may be.

Scores are taken 10,000 times as large: then only the order of the keys counts, and equal scores stay equal.
"""

from functools import partial

import numpy as np

from ...convoy import FLAG
from .rules import only

RULE = 0.02  # how near a head has to come to a wrong rule


def follows(rule, tolerance=RULE):
    """With hard scores the head does what a wrong rule says."""
    return lambda p, a: p.does(a.hard, rule, tolerance)


def right_after_change(*changes):
    """With hard scores the answer is right once one thing is changed in one of the heads."""
    return lambda p, a: [
        k for k, tries in enumerate(zip(*map(a.one, changes), strict=True)) if any(p.does(b.hard) for b in tries)
    ]


def exchange(head):
    return head._replace(W_Q=head.W_K, W_K=head.W_Q)


def flip(head):
    return head._replace(W_Q=-head.W_Q)


def roll_rows(*names):
    """Return the changes that move the rows of one matrix by one, if a wrong number of a column may have moved them.

    It has not where a feature reads several columns, where places are moved to places, which are steps, or from one
    block to another: who reads CARGO has not miscounted ONE.
    """

    def move(name, by, head):
        matrix = getattr(head, name)
        if matrix is None or np.count_nonzero(matrix, axis=0).max() > 1:
            return head
        moved = np.roll(matrix, by, axis=0)
        within_flags = all(not np.delete(W, np.r_[FLAG], axis=0).any() for W in (matrix, moved))
        return head._replace(**{name: moved}) if within_flags else head

    return [partial(move, name, by) for name in names for by in (1, -1)]


def hard_weights(p, a, c, head=-1):
    """Return the weights of one head on a convoy, with hard scores."""
    return p.traces(a.hard, c)[head].weights


def multiple(p, a, want, least=1e-3):
    """The output is a constant, and not 1, times what a rule says."""
    got, wanted = (np.vstack([of(c) for c in p.convoys]) for of in (partial(p.result, a.hard), want))
    judged = ~np.isnan(wanted)
    got, wanted = got[judged], wanted[judged]
    k = got @ wanted / (wanted @ wanted)
    return k > least and abs(k - 1) > RULE and np.allclose(got, k * wanted, rtol=0.01, atol=0.01 * k)


def _everybody_alike(p, a):
    """In one of the heads all scores of a row are equal, those that a mask hides included."""
    traces = zip(*(p.traces(a.hard, c) for c in p.convoys), strict=True)
    return [k for k, head in enumerate(traces) if all(np.ptp(t.scaled_scores, axis=-1).max() < RULE for t in head)]


def _nothing_given(p, a):
    """Nothing is received, and it would not be if all keys counted alike: it is not that an empty ship is looked at."""
    alike = a.each(lambda head: head._replace(W_Q=0 * head.W_Q))
    return bool(p.d_v) and not any(p.result(one, c).any() for one in (a, alike) for c in p.convoys)


def _pilot_forgotten(p, a):
    """All rows but the pilot's are right, and in one of the heads the pilot asks for nothing."""
    if p.does(a.hard) or not p.does(a.hard, lambda c: only(~c.pilot, p.want(c))):
        return False
    asks = [[np.ptp(trace.weights[0]) < RULE for trace in p.traces(a.hard, c)] for c in p.convoys]
    return np.flatnonzero(np.all(asks, axis=0)).tolist()


# Tried in this order after the mistakes of the puzzle; the first that fits gives the name.
COMMON = {
    "nothing_given": _nothing_given,
    "too_little_weight": lambda p, a: p.does(a.hard),
    "swapped_asking_and_found": right_after_change(exchange),
    "sign_turned": lambda p, a: right_after_change(flip)(p, a) or (p.d_v and p.does(a.hard, lambda c: -p.want(c))),
    "everybody_alike": _everybody_alike,
    "column_off_by_one": lambda p, a: not p.does(a.hard) and right_after_change(*roll_rows("W_Q", "W_K", "W_V"))(p, a),
    "value_multiplied": lambda p, a: bool(p.d_v) and multiple(p, a, p.want),
    "pilot_forgotten": _pilot_forgotten,
}

"""The exercise of A state of fixed size, and the inputs on which it is tried."""

import numpy as np

from ...engine.exercise import TOKEN_AXES, Function, step_options
from ...engine.probes import CUBE, PLAIN, SINGLE, Draw, Probe, single
from .ways import State


def _texts_to_write():
    draw = Draw("state")

    def arrays(n, d_k, d_v, *lead):
        return draw(*lead, n, d_k), draw(*lead, n, d_k), draw(*lead, n, d_v), draw.rng.random((*lead, n))

    one = arrays(6, 4, 3)
    one[1][4] = 2 * one[1][1]
    return (
        Probe(PLAIN, one),
        Probe("beta = 1, and a key that comes again", (*one[:3], np.ones(6))),
        Probe("tokens with beta = 0", (*one[:3], np.array([1.0, 1, 0, 1, 0, 0]))),
        Probe("several heads, (h, n, d)", arrays(7, 3, 5, 2)),
        Probe(CUBE, arrays(4, 4, 4, 4)),
        Probe(SINGLE, single(*arrays(5, 3, 2, 2))),
        Probe("40 tokens, more than a chunk", arrays(40, 4, 3)),
    )


EXERCISES = (
    Function(
        "state",
        "state(query, key, value, beta) -> (..., n, d_v): token by token, a state S (d_k, d_v), 0 at first, becomes "
        "S + beta k^T (v - k S), k being the key at length 1. Then the token's query reads q S. query and key are "
        "(..., n, d_k), value (..., n, d_v), beta (..., n).",
        (
            "Go through the tokens in a loop, and keep S. What does each do first, and what last?",
            "k S is what stands under the key. The difference to the new value, times beta, is added under the key.",
            "The key as a column times beta (v - k S), a row, is added to S. Then q times S is read. Join all rows.",
        ),
        probes=_texts_to_write(),
        **step_options("read_out", "asks keys values beta", of=State, axes=TOKEN_AXES),
    ),
)

"""What a right answer shows in A state of fixed size: what is read under a key that comes again."""

import numpy as np

from ...engine.describe import Payoff
from ...engine.pictures import bar, table

WRITTEN = np.array([3.0, 5.0, 1.0])  # one after the other, under one key


def under_one_key(state):
    """Draw what is read after each of three writings under one key, added up and by the reader's function."""
    key, value = np.tile([0.6, 0.8], (3, 1)), WRITTEN[:, None]  # of length 1, and it also asks
    read = {f"yours, β = {beta}": np.ravel(state(key, key, value, np.full(3, beta))) for beta in (1, 0.5)}
    rows = {"the sum reads": np.cumsum(WRITTEN)} | read
    lines = [[name, *(bar(x, 9, text=f"{x:.4g}") for x in numbers)] for name, numbers in rows.items()]
    return table([["written under one key", *(f"{x:.0f}" for x in WRITTEN)], *lines])


PAYOFFS = {
    "state": Payoff(
        "Under a key that comes again, β = 1 returns the newest value; β = 0.5 keeps half of what stood there.",
        under_one_key,
        "Next: 128 pairs, more than fits.",
    )
}

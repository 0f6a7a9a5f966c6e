"""What a right answer shows in Today's head: which pairs the reader's own function slows."""

import numpy as np

from attnlib.rotary import frequencies

from ...engine.describe import Payoff
from ...engine.pictures import bar, table

TRAINED, FACTOR = 8192, 4.0


def kept_of_each_pair(slowed):
    """Draw what is left of the frequency of six pairs of SmolLM2, by the reader's function."""
    omega = frequencies(64, 100_000.0)
    left = slowed(omega, FACTOR, TRAINED) / omega
    turns = TRAINED * omega / (2 * np.pi)
    rows = [[str(c), f"{turns[c]:,.1f}", bar(left[c], text=f"{left[c]:.2f}")] for c in (0, 8, 12, 16, 20, 31)]
    return table([["pair", f"turns in {TRAINED:,}", "left of its frequency"], *rows])


PAYOFFS = {
    "slowed": Payoff(
        "Fast pairs tell near positions apart and stay; slow pairs meet no angle that training did not show.",
        kept_of_each_pair,
        "Next: what newer models change.",
    )
}

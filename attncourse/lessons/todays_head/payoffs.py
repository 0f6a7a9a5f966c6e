"""What a right answer shows in Today's head: what the reader's own rotation, query and layer do, and what is slowed."""

import numpy as np

from attnlib.core import softmax
from attnlib.rotary import frequencies, rope

from ...engine.describe import Payoff
from ...engine.pictures import bar, table

TRAINED, FACTOR = 8192, 4.0
Q, K, V = np.random.default_rng(0).normal(size=(3, 6, 8))
ONES = np.ones(8)


def same_distance(my_rope):
    """Write down the score of one query and one key, wherever the two stand, by the reader's rotation."""
    rows = [["key at, query at", "score, 3 apart", "score, 5 apart"]]
    for start in (0, 100, 10_000):
        at = [my_rope(x, np.array([place])) for x, place in ((K[:1], start), (Q[:1], start + 3), (Q[:1], start + 5))]
        rows.append([f"{start:,}", *(f"{(at[0] @ query.T).item():.3f}" for query in at[1:])])
    return table(rows)


def two_places(look_back):
    """Draw the weights of a token far into a text, by the reader's query and key."""
    query, key = (np.asarray(x, dtype=float) for x in look_back(64, 1, 20))
    rows = [["weight of the key", "of 30 tokens", "of 200"]]
    weights = [
        softmax(rope(query[None], np.array([n - 1])) @ rope(np.tile(key, (n, 1)), np.arange(n)).T / 8)[0, ::-1]
        for n in (30, 200)
    ]
    for back in (1, 20):
        rows.append([f"{back} back", *(bar(row[back]) for row in weights)])
    return table([*rows, ["all others", *(bar(1 - row[1] - row[20]) for row in weights)]])


def what_moves(rotary_attention):
    """Write down how far the last output moves as one thing is changed, by the reader's function."""
    whole = rotary_attention(Q, K, V, ONES, ONES)[-1]
    changes = {
        "the last token asks alone": (Q[-1:], K, V),
        "every key is ten times as long": (Q, 10 * K, V),
        "every value is ten times as long": (Q, K, 10 * V),
    }
    moved = {told: np.abs(rotary_attention(*x, ONES, ONES)[-1] - whole).max() for told, x in changes.items()}
    return table([["change", "the last output moves by"], *([told, f"{x:.3f}"] for told, x in moved.items())])


def kept_of_each_pair(slowed):
    """Draw what is left of the frequency of six pairs of SmolLM2, by the reader's function."""
    omega = frequencies(64, 100_000.0)
    left = slowed(omega, FACTOR, TRAINED) / omega
    turns = TRAINED * omega / (2 * np.pi)
    rows = [[str(c), f"{turns[c]:,.1f}", bar(left[c], text=f"{left[c]:.2f}")] for c in (0, 8, 12, 16, 20, 31)]
    return table([["pair", f"turns in {TRAINED:,}", "left of its frequency"], *rows])


PAYOFFS = {
    "rope": Payoff(
        "Only the distance counts: the score is the same at the beginning of a text and far into it.",
        same_distance,
        "Next: this function stands in for the real one in four models.",
    ),
    "look_back": Payoff(
        "Your head finds both places among 30 tokens and among 200: nothing in it names a position.",
        two_places,
        "Next: does a head that learns find such a formula?",
    ),
    "rotary_attention": Payoff(
        "A cache may continue it, and long keys count no more than short ones: the norm takes their length.",
        what_moves,
        "Next: is that the real thing?",
    ),
    "slowed": Payoff(
        "Fast pairs tell near positions apart and stay; slow pairs meet no angle that training did not show.",
        kept_of_each_pair,
        "Next: what newer models change.",
    ),
}

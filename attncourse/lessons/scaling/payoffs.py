"""What a right answer shows in Scaling: how far scores spread, measured by the reader's own functions."""

import numpy as np

from attnlib.core import softmax

from ...engine.describe import Payoff
from ...engine.pictures import bar, heatmap, table, words

FEATURES = 64
Q, K = np.random.default_rng(0).normal(size=(2, 400, FEATURES))
SIZES = np.where(np.arange(400) < 200, 0.1, 10)[:, None]  # small tokens, then large ones
LEADS = (1000, 2, 0)  # of one key of ten


def variances(my_variance):
    """Draw the variance of scores before and after the division, as the reader's function finds it."""
    raw, divided = my_variance(Q, K), my_variance(Q / FEATURES**0.5, K)
    rows = [[name, bar(x, most=raw, text=f"{x:.1f}")] for name, x in (("raw", raw), ("divided by 8", divided))]
    return table([["scores", "variance"], *rows], marked=2)


def product_and_root(divisor):
    """Write down the variance of a score, and the divisor that was handed in."""
    return table([["variance", "36 · 1/3 · 1/3 = 4"], ["its root", f"{divisor:g}"]], marked=1)


def keys_in_play(entropy):
    """Draw three rows of weights, each with its count of keys in play by the reader's entropy."""
    weights = softmax(np.array([[lead, *[0.0] * 9] for lead in LEADS]))
    counts = np.exp(entropy(weights))
    return heatmap(weights[:, :2], [f"{count:.2f} in play" for count in counts], ["key 0", "each of nine others"])


def variances_by_size(my_scores):
    """Draw the variance of the reader's scores among small and large tokens, beside that after the division alone."""
    scores, small, large = my_scores(SIZES * Q, SIZES * K), slice(200), slice(200, None)
    divided = (SIZES * Q) @ (SIZES * K).T / FEATURES**0.5
    parts = {"small with small": (small, small), "large with large": (large, large), "small with large": (small, large)}
    rows = []
    for name, at in parts.items():
        x, other = np.var(scores[at]), np.format_float_positional(np.var(divided[at]), 2, fractional=False, trim="-")
        rows.append([name, bar(x, most=1.25, text=f"{x:.2f}"), other])
    return table([["tokens", "yours", words("÷ √d_k alone")], *rows])


PAYOFFS = {
    "variance_of_scores": Payoff(
        "With 64 features the variance is about 64: each feature adds 1.", variances, "Next: three lines say why."
    ),
    "uniform_divisor": Payoff(
        "The divisor is 2, not 6: smaller entries spread less.",
        product_and_root,
        "Next: what softmax makes of large scores.",
    ),
    "entropy": Payoff(
        "Keys in play, e to the power of your H: 1 where one key has all weight, 10 where ten have the same.",
        keys_in_play,
        "Next: is a sharp row bad?",
    ),
    "scores_in_range": Payoff(
        "Small and large tokens in one call, and the variance stays near 1. Some models do so: it is called QK-norm.",
        variances_by_size,
        "Next: what if you divide by more than the root?",
    ),
}

"""Heads of known habits, for a measure to rank: which keys hold a letter, and what stands near them."""

import numpy as np

from ...engine.probes import Draw, Probe

DISTANCES = range(2, 16)  # how far back heads of a fixed distance look: all distances in 16 positions but 1


def copies(tokens):
    """Return (b, n_q, n_k), True where key j holds the letter of query i."""
    return tokens[:, :, None] == tokens[:, None, :]


def after_copy(tokens, by=1):
    """Return (b, n_q, n_k), True where key j stands `by` positions after an earlier copy of query i's letter."""
    n = tokens.shape[-1]
    earlier = copies(tokens) & np.tri(n, k=-1, dtype=bool)
    moved = np.zeros_like(earlier)
    moved[..., max(by, 0) : n + min(by, 0)] = earlier[..., max(-by, 0) : n - max(by, 0)]
    return moved


def behind(tokens, by):
    """Return (b, n_q, n_k), True where the key stands `by` positions before the query."""
    i = np.arange(tokens.shape[-1])
    return np.broadcast_to(i[:, None] - by == i, (*tokens.shape, tokens.shape[-1]))


def heads_to_rank():
    """Return batches with heads of known habits; one of them does induction, and it is not the sharpest."""
    draw = Draw("induction_measure")
    # Four patterns of different length, repeated; then letters that come back at random.
    repeated = np.stack([draw.rng.permutation(12)[np.arange(16) % period] for period in (5, 6, 7, 8)])
    random = draw.rng.integers(6, size=(4, 16))
    batches = {"repeated patterns": repeated, "letters that come back at random": random}
    return tuple(
        Probe(name, (draw.rng.permutation(_habits(draw, tokens), axis=1), tokens)) for name, tokens in batches.items()
    )


def _habits(draw, tokens):
    """Return the weights (b, h, n, n) of heads, one for each habit."""
    (b, n), i = tokens.shape, np.arange(tokens.shape[1])
    causal = np.tri(n, dtype=bool)

    def head(share, cells):
        """Put `share` of each row on the cells; rows without one, and the rest, are spread evenly."""
        cells = np.broadcast_to(cells, (b, n, n)) & causal
        share = share * cells.any(-1, keepdims=True)
        return share * cells / np.maximum(cells.sum(-1, keepdims=True), 1) + (1 - share) * causal / (i + 1)[:, None]

    sharp = i == draw.rng.integers(i + 1)[:, None]  # one key for each query, at random
    return np.stack(
        [
            head(0.7, after_copy(tokens)),
            head(0.9, after_copy(tokens, 0)),
            head(0.9, after_copy(tokens, -1)),
            head(0.9, behind(tokens, 1)),
            *(head(0.9, behind(tokens, by)) for by in DISTANCES),
            head(0.4, np.eye(n, dtype=bool)),  # else a measure of the diagonal would choose the broadest head
            head(1.0, sharp),
            head(0.0, causal),
        ],
        axis=1,
    )

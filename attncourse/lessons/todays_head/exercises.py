"""The exercises of Today's head, and the inputs on which they are tried."""

import numpy as np

from attnlib.core import softmax
from attnlib.rotary import frequencies

from ...engine.compare import RIGHT
from ...engine.exercise import OUTPUT_AXES, TOKEN_AXES, Function, Kept, step_options
from ...engine.probes import BATCH, PLAIN, SINGLE, Draw, Probe, single
from ...engine.run import Unfit
from .mistakes import BASE, HeadSteps, Looking, Slowing, rotate

LOOKED_AT = 200  # tokens of the sequence in which a designed head is tried


def rope_probes():
    draw = Draw("rope")
    gaps = np.array([2, 3, 7, 700])
    return (
        Probe(PLAIN, (draw(5, 8), np.arange(5))),
        Probe("a sequence that starts at position 7", (draw(4, 6), np.arange(7, 11))),
        Probe("positions with gaps", (draw(4, 8), gaps)),
        Probe("another base", (draw(5, 8), np.arange(3, 8), 500.0)),
        Probe(BATCH, (draw(2, 3, 4, 6), gaps)),
        Probe("axes of equal length", (draw(4, 4, 4), gaps)),
        Probe("neighbours as pairs", (draw(4, 8), gaps, BASE, "neighbours")),
        Probe("a batch with neighbours as pairs", (draw(2, 3, 6), np.arange(3), 500.0, "neighbours")),
        Probe(SINGLE, (*single(draw(2, 5, 8)), np.array([2, 3, 4, 9, 10]))),
    )


def decode_probes():
    draw = Draw("rotary_attention")

    def decode_arguments(n_q, n_k, d_k, *lead, d_v=None):
        gains = draw.rng.uniform(0.5, 2.5, size=(2, d_k))
        return 3 * draw(*lead, n_q, d_k), 2 * draw(*lead, n_k, d_k), draw(*lead, n_k, d_v or d_k), *gains

    return (
        Probe("a whole sequence", decode_arguments(5, 5, 6)),
        Probe("the last 2 of 6 tokens as queries", decode_arguments(2, 6, 6)),
        Probe("one new token after 4 others", decode_arguments(1, 5, 4)),
        Probe("a batch of heads", decode_arguments(3, 7, 8, 2, 2)),
        Probe("values of another width", decode_arguments(3, 5, 6, d_v=4)),
        Probe(SINGLE, single(*decode_arguments(3, 5, 6, 2))),
    )


def _judge_looking(result, d_k, near, far):
    """Judge a designed head by where it looks."""
    try:
        query, key = (np.asarray(x, dtype=float) for x in result)
    except (TypeError, ValueError):
        raise Unfit("Your function must return two vectors. Fix: return query, key.") from None
    if query.shape != (d_k,) or key.shape != (d_k,):
        raise Unfit(
            f"Query and key must have shape ({d_k},), before RoPE; yours have {query.shape} and {key.shape}. "
            "Fix: return one vector each, the same for every token."
        )
    if not np.isfinite([query, key]).all() or np.abs([query, key]).max() > 1e100:
        raise Unfit(
            "Query and key must hold finite numbers whose products are finite, too; yours do not. "
            "Fix: entries of 10 or 20 are large enough for softmax."
        )
    n = LOOKED_AT
    q, k = (rotate(np.broadcast_to(x, (n, d_k))) for x in (query, key))
    free = q @ k.T / np.sqrt(d_k)
    wanted = free[: n - far].argmax(axis=-1) - np.arange(n - far)  # how far ahead, without a mask
    scores = np.where(np.tri(n, dtype=bool), free, -np.inf)
    weights, i = softmax(scores)[far:], np.arange(far, n)
    least = [weights[i - far, i - back].min() for back in (near, far)]
    distance = i - weights.argmax(axis=-1)
    product = rotate(key[None], -near)[0] * rotate(key[None], -far)[0]
    if min(least) >= 0.45:
        return RIGHT, ""
    if np.ptp(weights[0, : far + 1]) < 1e-9:
        sentence = "every token gives all that it sees the same weight"
    elif abs(query @ product) > (1 - 1e-9) * np.linalg.norm(query) * np.linalg.norm(product):
        sentence = "the query is a product of two rotated keys, feature by feature"
    elif (wanted == 0).all():
        sentence = "every token looks at itself"
    elif np.isin(wanted, (near, far)).all():
        sentence = "every token would look ahead, where the mask hides all"
    elif not np.isin(distance, (near, far)).all():
        sentence = "some tokens look elsewhere"
    elif min(least) < 0.5 * max(least):
        sentence = "one of the two positions gets less than half of what the other gets"
    else:
        sentence = "the two right positions get less than 0.45 each"
    return None, f"With {LOOKED_AT} tokens, {sentence}."


EXERCISES = (
    Function(
        "rope",
        'rope(x, positions, base=10_000.0, pairing="halves") -> (..., n, d_k): pair c of the token at positions[i] is '
        "rotated by positions[i] * base**(-2c / d_k). Pair c is feature c with c + d_k/2, or, with "
        'pairing="neighbours", feature 2c with 2c + 1.',
        (
            "One angle for each token and each pair: positions as a column, frequencies as a row.",
            "The pairs: a, b = x[..., : d_k // 2], x[..., d_k // 2 :]. (a, b) becomes (a cos - b sin, a sin + b cos).",
            "np.concatenate([a, b], axis=-1) puts both back. Neighbours are x[..., 0::2] and x[..., 1::2], and go back "
            "by np.stack([a, b], axis=-1).reshape(x.shape).",
        ),
        probes=rope_probes(),
        **step_options("rotated", "x positions base pairing", of=HeadSteps, axes=TOKEN_AXES),
        kept=Kept("rope", "attnlib.rotary.rope"),
    ),
    Function(
        "look_back",
        "look_back(d_k, near, far) -> (query, key), each (d_k,), the same for every token. After RoPE (feature c with "
        "c + d_k/2, base 10,000) each token puts at least 0.45 of its weight on each of two: the one `near` positions "
        "before and the one `far` positions before.",
        (
            "First one position: if query and key are equal, a score is largest where both are rotated alike.",
            "Rotate the query back by as much as the key stands earlier. Now two positions: what is (q1 + q2) . k?",
            "Beside the two positions the scores are only a little lower. How large must the entries be, so that e^s "
            "makes much of it?",
        ),
        probes=(
            Probe("d_k = 64, 1 and 20 positions back", (64, 1, 20)),
            Probe("d_k = 64, 3 and 40 positions back", (64, 3, 40)),
            Probe("d_k = 32, 2 and 25 positions back", (32, 2, 25)),
        ),
        **step_options("looking", "d_k near far", of=Looking),
        judge=_judge_looking,
    ),
    Function(
        "rotary_attention",
        "rotary_attention(query, key, value, q_gain, k_gain) -> (..., n_q, d_v): the queries are the last n_q of n_k "
        "tokens. RMS norm with gain, RoPE (feature c with c + d_k/2, base 10,000), causal attention.",
        (
            "Norm, then rotate, for queries and keys. Values stay as they are.",
            "The keys have positions 0 to n_k - 1. Which position has the first query?",
            "The causal mask lines up at the lower right: al.causal_mask(n_q, n_k, align='lower_right').",
        ),
        probes=decode_probes(),
        **step_options("output", "queries keys values q_gain k_gain", of=HeadSteps, axes=OUTPUT_AXES),
    ),
    Function(
        "slowed",
        "slowed(omega, factor, trained) -> (d_k / 2,): frequencies for texts `factor` times as long as the `trained` "
        "positions. A pair of 32 turns or more in `trained` positions keeps its frequency, one of 1 turn or fewer has "
        "it divided by `factor`; between, the share that is kept rises evenly with the turns.",
        (
            "Three lines: turns, the share that is kept, and the mixture. A turn has 2 pi radians.",
            "The share is 0 at 1 turn and 1 at 32: keep = np.clip((turns - 1) / 31, 0, 1).",
            "The mixture: omega * keep + omega / factor * (1 - keep).",
        ),
        probes=(
            Probe("SmolLM2: d_k = 64, 8,192 positions", (frequencies(64, 100_000.0), 4.0, 8192), 1e-6),
            Probe("d_k = 128, base 500,000", (frequencies(128, 500_000.0), 8.0, 8192), 1e-6),
            Probe("d_k = 64, base 10,000, 2,048 positions", (frequencies(64, BASE), 2.0, 2048), 1e-6),
        ),
        orders=True,
        **step_options("slowed", "omega factor trained", of=Slowing),
    ),
)

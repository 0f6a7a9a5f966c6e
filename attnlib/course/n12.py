"""Notebook 12, today's head: its exercises and questions. Its steps and mistakes: mistakes/todays_head.py."""

from functools import cached_property

import numpy as np

from ..core import softmax
from .calling import Unfit
from .exercise import OUTPUT_AXES, TOKEN_AXES, Function, Judged
from .mistakes.mistake import Mistake
from .mistakes.todays_head import MISTAKES, THETA, HeadSteps, rotate
from .prediction import Question
from .probes import BATCH, PLAIN, SINGLE, Draw, Probe, single

LOOKED_AT = 200  # tokens of the sequence in which a designed head is tried


def rope_probes():
    draw = Draw("rope")
    return (
        Probe(PLAIN, (draw(5, 8),)),
        Probe("a sequence that starts at place 7", (draw(4, 6), 7)),
        Probe("another theta", (draw(5, 8), 3, 500.0)),
        Probe(BATCH, (draw(2, 3, 4, 6), 2)),
        Probe("axes of equal length", (draw(4, 4, 4), 1)),
        Probe(SINGLE, (*single(draw(2, 5, 8)), 2)),
    )


def online_probes():
    draw = Draw("online_softmax")

    def cut(scores, sizes):
        ends = np.cumsum(sizes)
        values = draw(len(scores), 3)
        return (tuple((scores[e - m : e], values[e - m : e]) for m, e in zip(sizes, ends, strict=True)),)

    rising, mixed = np.array([-1.0, 0.5, 1.5, 2.0, 3.0, 3.5]), draw(7)
    blocked = np.where(np.arange(6) < 2, -np.inf, draw(6))
    return (
        Probe("one block", cut(draw(4), (4,))),
        Probe("key by key", cut(mixed, (1,) * 7)),
        Probe("scores that rise from block to block", cut(rising, (2, 2, 2))),
        Probe("blocks of different size", cut(draw(8), (3, 1, 4))),
        Probe("a first block in which every key is blocked", cut(blocked, (2, 2, 2))),
        Probe("scores that fall by 2000", cut(np.array([0.0, 1.0, -2000.0, -1999.0]), (2, 2))),
        Probe("scores that rise by 2000", cut(np.array([-2000.0, -1999.0, 0.0, 1.0]), (2, 2))),
    )


def decode_probes():
    draw = Draw("rotary_attention")

    def given(n_q, n_k, d_k, *lead, d_v=None):
        gains = draw.rng.uniform(0.5, 2.5, size=(2, d_k))
        return 3 * draw(*lead, n_q, d_k), 2 * draw(*lead, n_k, d_k), draw(*lead, n_k, d_v or d_k), *gains

    return (
        Probe("a whole sequence", given(5, 5, 6)),
        Probe("the last 2 of 6 tokens as queries", given(2, 6, 6)),
        Probe("one new token after 4 others", given(1, 5, 4)),
        Probe("a batch of heads", given(3, 7, 8, 2, 2)),
        Probe("values of another width", given(3, 5, 6, d_v=4)),
        Probe(SINGLE, single(*given(3, 5, 6, 2))),
    )


def look_back_probes():
    return (
        Probe("d_k = 64, one place back", (64, 1)),
        Probe("d_k = 64, five places back", (64, 5)),
        Probe("d_k = 32, three places back", (32, 3)),
    )


class _Steps(HeadSteps):
    @cached_property
    def looking(self):
        return _looking(self.d_k, self.back)


def _looking(d_k, back, amplitude=6.0):
    """Return (query, key): with equal vectors a score is largest where both are turned alike."""
    key = np.full(d_k, amplitude)
    return rotate(key[None], -back)[0], key


def _seen(result, d_k, back):
    """Return how a designed head looks: 0 as asked, 1 at itself, 2 elsewhere, 3 at the right place but undecided."""
    try:
        query, key = (np.asarray(x, dtype=float) for x in result)
    except (TypeError, ValueError):
        raise Unfit("Your function must return two vectors. Fix: return query, key.") from None
    if query.shape != (d_k,) or key.shape != (d_k,):
        raise Unfit(
            f"Query and key must have shape ({d_k},), before RoPE; yours have {query.shape} and {key.shape}. "
            "Fix: return one vector each, the same for every token."
        )
    n = LOOKED_AT
    q, k = (rotate(np.broadcast_to(x, (n, d_k))) for x in (query, key))
    scores = np.where(np.tri(n, dtype=bool), q @ k.T / np.sqrt(d_k), -np.inf)
    weights = softmax(scores)[back:]
    distance = np.arange(back, n) - weights.argmax(axis=-1)
    if (distance == back).all():
        return 0 if (weights[np.arange(n - back), np.arange(n - back)] >= 0.9).all() else 3
    return 1 if (distance == 0).all() else 2


_SEEN = ("", "every token looks at itself", "some tokens look elsewhere", "the right place gets less than 0.9")


OWN = (
    *MISTAKES,
    Mistake(
        "looks_at_itself",
        "each token found itself: the query is not turned, or turned the other way",
        "Ahead of a token the mask leaves nothing, so the nearest it can get is its own place.",
        "A score is largest where query and key are turned alike. How far is the key turned that you look for?",
        ({"looking": lambda s: _looking(s.d_k, 0)}, {"looking": lambda s: _looking(s.d_k, -s.back)}),
    ),
    Mistake(
        "looks_elsewhere",
        "the largest weight fell on another place than the one asked for",
        "The head looks back, but not as far as it should, or farther.",
        "For which distance i - j do your turned query and key point the same way?",
        (
            {"looking": lambda s: _looking(s.d_k, s.back + 1)},
            {"looking": lambda s: _looking(s.d_k, s.back + 2)},
        ),
    ),
    Mistake(
        "too_soft",
        "the right place had the largest weight, though less than 0.9 of it",
        "The head is right and undecided.",
        "What makes all scores larger by one factor?",
        (
            {"looking": lambda s: _looking(s.d_k, s.back, 1.0)},
            {"looking": lambda s: _looking(s.d_k, s.back, 2.0)},
        ),
    ),
)

EXERCISES = (
    Function(
        "rope",
        "rope(x, start=0, theta=10_000.0) -> (..., n, d_k): x (..., n, d_k) with neighbouring features 2c and 2c + 1 "
        "turned by place * theta**(-2c / d_k). The first token stands at place start.",
        (
            "One angle for each token and each pair: places as a column, frequencies as a row.",
            "x[..., 0::2] and x[..., 1::2] are the pairs. (a, b) becomes (a cos - b sin, a sin + b cos).",
            "Put the results back where they came from: out = np.empty_like(x), then out[..., 0::2] = ...",
        ),
        probes=rope_probes(),
        given=lambda x, start=0, theta=THETA: {"x": x, "start": start, "theta": theta},
        result=lambda s: s.turned,
        axes=TOKEN_AXES,
        steps=HeadSteps,
    ),
    Function(
        "online_softmax",
        "online_softmax(blocks) -> (d_v,): blocks is a tuple of (scores (b,), values (b, d_v)), the keys of one query "
        "block by block. The result is softmax(all scores) @ all values. -inf marks a blocked key.",
        (
            "Carry three things: the largest score so far m, the sum z of exp(s - m), and o, the sum of exp(s - m) v.",
            "If the maximum rises from m to new, everything so far is too large by exp(new - m).",
            "z = exp(m - new) * z + exp(s - new).sum(), o likewise. Skip a block while new is -inf. At the end o / z.",
        ),
        probes=online_probes(),
        given=lambda blocks: {"blocks": blocks},
        result=lambda s: s.online,
        steps=HeadSteps,
    ),
    Function(
        "rotary_attention",
        "rotary_attention(query, key, value, q_gain, k_gain) -> (..., n_q, d_v): the queries are the last n_q of n_k "
        "tokens. RMS norm with gain, RoPE (feature c with c + d_k/2, theta 10,000), causal attention.",
        (
            "Norm, then turn, for queries and keys. Values stay as they are.",
            "The keys stand at places 0 to n_k - 1. Where does the first query stand?",
            "The causal mask lines up at the lower right: al.causal_mask(n_q, n_k, align='lower_right').",
        ),
        probes=decode_probes(),
        given=lambda query, key, value, q_gain, k_gain: dict(
            queries=query, keys=key, values=value, q_gain=q_gain, k_gain=k_gain
        ),
        result=lambda s: s.context,
        axes=OUTPUT_AXES,
        steps=HeadSteps,
    ),
    Function(
        "look_back",
        "look_back(d_k, back) -> (query, key), each (d_k,), the same for every token. After RoPE (feature c with "
        "c + d_k/2, theta 10,000) each token puts at least 0.9 of its weight on the one `back` places before.",
        (
            "If query and key are equal, a score is largest where both are turned by the same angle.",
            "The key stands `back` places earlier. Turn the query back by that much before RoPE turns it forwards.",
            "rope(key[None], start=-back)[0] is such a query. How large must its entries be?",
        ),
        probes=look_back_probes(),
        given=lambda d_k, back: {"d_k": d_k, "back": back},
        result=lambda s: s.looking,
        judged=Judged(_seen, lambda yours, right: f"With {LOOKED_AT} tokens, {_SEEN[int(yours)]}."),
        steps=_Steps,
    ),
)

QUESTIONS = (
    Question(
        "shifted",
        "c",
        "Both are turned further by the same angle, so the angle between them stays.",
        {
            "a": "The distance between the two tokens is still 2, and only that counts.",
            "b": "Farther from the start, not farther apart. A score knows the distance alone.",
        },
        "b",
    ),
    Question(
        "beyond",
        "b",
        "Its weights leak to distances that training never showed it. A window of 32 keys repairs it.",
        {
            "a": "A head for every length exists: you have just set it by hand. Training does not look for it.",
            "c": "That happens to the table and the sinusoids. A distance up to 31 is the same at place 50 as at 20.",
        },
        "a",
    ),
    Question(
        "crowd",
        "a",
        "The scores stay, and the crowd grows: 16 times as many keys share what the needle does not get.",
        {
            "b": "The score of a query with a key does not know how many other keys there are.",
            "c": "It would, if the needle's lead were enough for any crowd. A lead of 8 is worth about 3000 keys.",
        },
        "c",
    ),
    Question(
        "norm_order",
        "a",
        "A turn keeps the length of a vector, so the norm may come before or after. A gain stretches features, and two "
        "features of one pair by different amounts.",
        {
            "b": "The norm alone divides by the length, which no turn changes.",
            "c": "A turn mixes the two features of a pair; a gain then stretches the mixture.",
        },
        "b",
    ),
)

RECALL = (
    Question(
        "cache_mask",
        "b",
        "The new tokens are the last ones, so the mask lines up at the lower right, and the last query sees all keys.",
        {
            "a": "That is the upper left: the first new token would see one key only.",
            "c": "One token at a time it looks right. Several at once would see each other's future.",
        },
        "a",
    ),
    Question(
        "larger_query",
        "b",
        "All its scores grow by the same factor: their order stays, and softmax picks harder.",
        {
            "a": "The order of the scores stays as it was, so the same key is first.",
            "c": "Softmax does not see a number added to all scores. A factor it does see.",
        },
        "c",
    ),
    Question(
        "divisor_of_a_head",
        "b",
        "A head has 512 / 8 = 64 features, and the divisor is the root of that.",
        {
            "a": "That is the root of d_model. The dot product of one head adds up 64 terms, not 512.",
            "c": "64 is d_k. The divisor is its root, since variances add up and standard deviations do not.",
        },
        "a",
    ),
)

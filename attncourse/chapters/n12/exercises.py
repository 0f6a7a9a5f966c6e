"""Today's head: its exercises and questions. Its steps and mistakes: todays_head.py."""

from functools import cached_property

import numpy as np

from attnlib.core import softmax

from ...engine.compare import RIGHT
from ...engine.exercise import OUTPUT_AXES, TOKEN_AXES, Function, Kept, asked
from ...engine.probes import BATCH, PLAIN, SINGLE, Draw, Probe, single
from ...engine.questions import Question
from ...engine.run import Unfit
from ...mistakes.mistake import Mistake
from .todays_head import BASE, OF_STEPS, HeadSteps, rms_norm, rotate

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


class _Steps(HeadSteps):
    @cached_property
    def looking(self):
        return _looking(self.d_k, (self.near, self.far))


def _looking(d_k, backs, amplitude=8.0):
    """Return (query, key): a score is linear in the query, so one query for each distance, added up, sees all."""
    key = np.full(d_k, amplitude)
    return sum(rotate(key[None], -back)[0] for back in backs), key


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
    scores = np.where(np.tri(n, dtype=bool), q @ k.T / np.sqrt(d_k), -np.inf)
    weights, i = softmax(scores)[far:], np.arange(far, n)
    least = [weights[i - far, i - back].min() for back in (near, far)]
    distance = i - weights.argmax(axis=-1)
    if min(least) >= 0.45:
        return RIGHT, ""
    if np.ptp(weights[0, : far + 1]) < 1e-9:
        sentence = "every token gives all that it sees the same weight"
    elif (distance == 0).all():
        sentence = "every token looks at itself"
    elif not np.isin(distance, (near, far)).all():
        sentence = "some tokens look elsewhere"
    elif min(least) < 0.5 * max(least):
        sentence = "one of the two positions gets less than half of what the other gets"
    else:
        sentence = "the two right positions get less than 0.45 each"
    return None, f"With {LOOKED_AT} tokens, {sentence}."


def _queries(gain="q_gain", first=lambda s: s.first_position):
    return lambda s: rotate(rms_norm(s.queries, getattr(s, gain)), first(s))


def _keys(gain):
    return lambda s: rotate(rms_norm(s.keys, getattr(s, gain)))


OWN = (
    *OF_STEPS,
    Mistake(
        "another_gain",
        behaves_as_if="queries or keys are stretched by another gain than their own",
        symptom="The two may be exchanged; some models multiply by 1 + gain, this one does not.",
        hint="There are two gains. By which numbers are the features of a query multiplied, and those of a key?",
        then="By q_gain and by k_gain themselves, once, after the division by the root mean square.",
        variants=(
            {"q": _queries("k_gain"), "k": _keys("q_gain")},
            {"k": _keys("q_gain")},
            {"q": _queries("k_gain")},
            {"norm": lambda s: lambda x, gain: rms_norm(x, 1 + gain)},
            {"norm": lambda s: lambda x, gain: rms_norm(x, gain**2)},
        ),
    ),
    Mistake(
        "looks_at_itself",
        behaves_as_if="each token found itself: the query is not rotated, or rotated the other way",
        symptom="Ahead of a token the mask leaves nothing, so the nearest it can get is its own position.",
        hint="A score is largest where query and key are rotated alike. How far is the key rotated that you look for?",
        then="The key stands `near` (or `far`) positions earlier. Rotate the query back by as many.",
        variants=(
            {"looking": lambda s: _looking(s.d_k, (0,))},
            {"looking": lambda s: _looking(s.d_k, (-s.near, -s.far))},
        ),
    ),
    Mistake(
        "looks_elsewhere",
        behaves_as_if="the largest weight fell on a position that nobody asked for",
        symptom="At some other distance the score of your query and your key is larger.",
        hint="For which distance i - j do your rotated query and key point the same way?",
        then="It should be near and far: one query rotated back by each of these, added up.",
        variants=({"looking": lambda s: _looking(s.d_k, ((s.near + s.far) // 2,))},),
    ),
    Mistake(
        "one_position_only",
        behaves_as_if="one of the two positions had most of the weight, and the other hardly any",
        symptom="A head that finds one of two things found half of what it was asked for.",
        hint="What is the score of a sum of two queries with a key? How large should the two be, one beside the other?",
        then="It is the sum of both scores. Give both queries the same length.",
        variants=({"looking": lambda s: _looking(s.d_k, (s.near,))},),
    ),
    Mistake(
        "too_soft",
        behaves_as_if="the right positions had the largest weights, though less than 0.45 each",
        symptom="The head is right and undecided.",
        hint="What makes all scores larger by one factor?",
        then="Multiply the query by a number above 1.",
        variants=({"looking": lambda s: _looking(s.d_k, (s.near, s.far), 1.0)},),
    ),
)

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
        given=lambda x, positions, base=BASE, pairing="halves": {
            "x": x,
            "positions": positions,
            "base": base,
            "pairing": pairing,
        },
        result=lambda s: s.rotated,
        axes=TOKEN_AXES,
        steps=HeadSteps,
        kept=Kept("rope", "attnlib.rotary.rope"),
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
        given=lambda query, key, value, q_gain, k_gain: dict(
            queries=query, keys=key, values=value, q_gain=q_gain, k_gain=k_gain
        ),
        result=lambda s: s.output,
        axes=OUTPUT_AXES,
        steps=HeadSteps,
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
        **asked("looking", "d_k near far", of=_Steps),
        judge=_judge_looking,
    ),
)

QUESTIONS = (
    Question("shifted", right="c", tempting="b").because(
        a="The distance between the two tokens is still 2, and only that counts.",
        b="Farther from the start, not farther apart. For given query and key only the distance counts.",
        c="Both are rotated further by the same angle, so the angle between them stays.",
    ),
    Question("beyond", right="b", tempting="a").because(
        a="A head for every length exists: you have just set it by hand. Training does not look for it.",
        b="Its weights leak to distances that training never showed it.",
        c="That happens to the learned vectors and the sinusoids. "
        "A distance up to 31 is the same at position 50 as at 20.",
    ),
    Question("norm_order", right="a", tempting="b").because(
        a="A rotation keeps the length of a vector, so the norm may come before or after. A gain stretches features, "
        "and two features of one pair by different amounts.",
        b="The norm alone divides by the length, which no rotation changes.",
        c="A rotation mixes the two features of a pair; a gain then stretches the mixture.",
    ),
)

RECALL = (
    Question("cache_mask", right="b", tempting="a").because(
        a="That is the upper left: the first new token would see one key only.",
        b="The new tokens are the last ones, so the mask lines up at the lower right, and the last query sees all "
        "keys.",
        c="One token at a time it looks right. Several at once would see each other's future.",
    ),
    Question("larger_query", right="b", tempting="c").because(
        a="The order of the scores stays as it was, so the same key is first.",
        b="All its scores grow by the same factor: their order stays, and softmax picks harder.",
        c="Softmax does not see a number added to all scores. A factor it does see.",
    ),
    Question("divisor_of_a_head", right="b", tempting="a").because(
        a="That is the root of d_model. The dot product of one head adds up 256 terms, not 512.",
        b="A head has 512 / 2 = 256 features, and the divisor is the root of that.",
        c="256 is d_k. The divisor is its root, since variances add up and standard deviations do not.",
    ),
)

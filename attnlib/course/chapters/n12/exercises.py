"""Notebook 12, today's head: its exercises and questions. Its steps and mistakes: todays_head.py."""

from functools import cached_property

import numpy as np

from ....core import softmax
from ...engine.compare import RIGHT
from ...engine.exercise import OUTPUT_AXES, TOKEN_AXES, Function
from ...engine.probes import BATCH, PLAIN, SINGLE, Draw, Probe, single
from ...engine.questions import Question
from ...engine.run import Unfit
from ...mistakes.mistake import Mistake
from .todays_head import MISTAKES, THETA, HeadSteps, rms_norm, rotate

LOOKED_AT = 200  # tokens of the sequence in which a designed head is tried


def rope_probes():
    draw = Draw("rope")
    gaps = np.array([2, 3, 7, 8])
    return (
        Probe(PLAIN, (draw(5, 8), np.arange(5))),
        Probe("a sequence that starts at place 7", (draw(4, 6), np.arange(7, 11))),
        Probe("places with gaps", (draw(4, 8), gaps)),
        Probe("another theta", (draw(5, 8), np.arange(3, 8), 500.0)),
        Probe(BATCH, (draw(2, 3, 4, 6), gaps)),
        Probe("axes of equal length", (draw(4, 4, 4), gaps)),
        Probe(SINGLE, (*single(draw(2, 5, 8)), np.array([2, 3, 4, 9, 10]))),
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
        Probe("scores near 1000", cut(1000 + draw(6), (2, 2, 2))),
        Probe("scores near -1000", cut(draw(6) - 1000, (2, 2, 2))),
        Probe("scores near 1000 and near -1000 in one block", cut(1000 * np.array([-1.0, 1, 1.001, -1]), (4,))),
        Probe("scores that fall by 2000", cut(np.array([0.0, 1.0, -2000.0, -1999.0]), (2, 2))),
        Probe("scores that rise by 2000", cut(np.array([-2000.0, -1999.0, 0.0, 1.0]), (2, 2))),
        Probe(
            "blocks in which one key is blocked", cut(np.array([0.5, -np.inf, -np.inf, 1.0, 0.0, -np.inf]), (2, 2, 2))
        ),
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
        Probe("d_k = 64, 1 and 20 places back", (64, 1, 20)),
        Probe("d_k = 64, 3 and 40 places back", (64, 3, 40)),
        Probe("d_k = 32, 2 and 25 places back", (32, 2, 25)),
    )


class _OnePass:
    """Blocks that can be gone through once, each overwritten with zeros when the next one is asked for."""

    def __init__(self, blocks):
        self.blocks, self.begun = blocks, False

    def __iter__(self):
        if self.begun:
            raise Unfit(
                "Your code begins a second time to go through the blocks, which come only once. Fix: one loop, "
                "`for s, v in blocks:`, that carries along what it needs."
            )
        self.begun = True
        return self._hand_out()

    def _hand_out(self):
        last = ()
        for s, v in self.blocks:
            for part in last:
                part[...] = 0
            last = s + 0, v + 0  # copies, of arrays and tensors alike
            yield last


class _Online(Function):
    """A function of blocks that come one after the other."""

    def adapt(self, answer):
        answer = super().adapt(answer)
        return lambda blocks: answer(_OnePass(blocks))


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
        told = "every token gives all that it sees the same weight"
    elif (distance == 0).all():
        told = "every token looks at itself"
    elif not np.isin(distance, (near, far)).all():
        told = "some tokens look elsewhere"
    elif min(least) < 0.5 * max(least):
        told = "one of the two places gets less than half of what the other gets"
    else:
        told = "the two right places get less than 0.45 each"
    return None, f"With {LOOKED_AT} tokens, {told}."


def _queries(gain="q_gain", first=lambda s: s.first_place):
    return lambda s: rotate(rms_norm(s.queries, getattr(s, gain)), first(s))


def _keys(gain):
    return lambda s: rotate(rms_norm(s.keys, getattr(s, gain)))


OWN = (
    *MISTAKES,
    Mistake(
        "maximum_starts_at_zero",
        "the running maximum starts at 0",
        "Right as long as some score is above -745. Where all are lower, every e^s is 0, and 0 / 0 is NaN.",
        "Which number is smaller than every score?",
        "-np.inf: begin with that.",
        {"begin": lambda s: 0.0},
    ),
    Mistake(
        "gains_exchanged",
        "queries get the gain of the keys, or keys that of the queries",
        "The norm is right, and the features are stretched by the wrong numbers.",
        "There are two gains. Which of them does each norm get?",
        "q_gain belongs to the queries, k_gain to the keys.",
        {"q": _queries("k_gain"), "k": _keys("q_gain")},
        {"k": _keys("q_gain")},
        {"q": _queries("k_gain")},
    ),
    Mistake(
        "queries_behind_the_keys",
        "the first query stands behind the last key",
        "The queries are the last of the n_k tokens. So every distance is too large by n_q.",
        "Of 6 tokens the last 2 ask. At which place does the first of the two stand?",
        "At 4, which is n_k - n_q: the last query stands where the last key does.",
        {"q": _queries(first=lambda s: s.keys.shape[-2])},
    ),
    Mistake(
        "looks_at_itself",
        "each token found itself: the query is not turned, or turned the other way",
        "Ahead of a token the mask leaves nothing, so the nearest it can get is its own place.",
        "A score is largest where query and key are turned alike. How far is the key turned that you look for?",
        "The key stands `near` (or `far`) places earlier: turn the query back by the angles of so many places.",
        {"looking": lambda s: _looking(s.d_k, (0,))},
        {"looking": lambda s: _looking(s.d_k, (-s.near, -s.far))},
    ),
    Mistake(
        "looks_elsewhere",
        "the largest weight fell on a place that nobody asked for",
        "At some other distance the score of your query and your key is larger.",
        "For which distance i - j do your turned query and key point the same way?",
        "It should be near and far: one query turned back by each of these, added up.",
        {"looking": lambda s: _looking(s.d_k, ((s.near + s.far) // 2,))},
        {"looking": lambda s: _looking(s.d_k, (s.near + s.far,))},
    ),
    Mistake(
        "one_place_only",
        "one of the two places had most of the weight, and the other hardly any",
        "A head that finds one of two things found half of what it was asked for.",
        "What is the score of a sum of two queries with a key? How large should the two be, one beside the other?",
        "It is the sum of both scores. Give both queries the same length.",
        {"looking": lambda s: _looking(s.d_k, (s.near,))},
        {"looking": lambda s: _looking(s.d_k, (s.far,))},
    ),
    Mistake(
        "too_soft",
        "the right places had the largest weights, though less than 0.45 each",
        "The head is right and undecided.",
        "What makes all scores larger by one factor?",
        "Multiply the query by a number above 1.",
        {"looking": lambda s: _looking(s.d_k, (s.near, s.far), 1.0)},
    ),
)

EXERCISES = (
    Function(
        "rope",
        "rope(x, places, theta=10_000.0) -> (..., n, d_k): x (..., n, d_k) with neighbouring features 2c and 2c + 1 "
        "turned by place * theta**(-2c / d_k). places (n,) holds the place of each token.",
        (
            "One angle for each token and each pair: places as a column, frequencies as a row.",
            "x[..., 0::2] and x[..., 1::2] are the pairs. (a, b) becomes (a cos - b sin, a sin + b cos).",
            "Put both back where they came from: np.stack([a, b], axis=-1).reshape(x.shape).",
        ),
        probes=rope_probes(),
        given=lambda x, places, theta=THETA: {"x": x, "places": places, "theta": theta},
        result=lambda s: s.turned,
        axes=TOKEN_AXES,
        steps=HeadSteps,
    ),
    _Online(
        "online_softmax",
        "online_softmax(blocks) -> (d_v,): blocks hands out (scores (b,), values (b, d_v)), the keys of one query, "
        "block by block, once; each is overwritten when the next one comes. The result is softmax(all scores) @ all "
        "values. -inf marks a blocked key.",
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
        "look_back(d_k, near, far) -> (query, key), each (d_k,), the same for every token. After RoPE (feature c with "
        "c + d_k/2, theta 10,000) each token puts at least 0.45 of its weight on each of two: the one `near` places "
        "before and the one `far` places before.",
        (
            "First one place: if query and key are equal, a score is largest where both are turned by the same angle.",
            "Turn the query back by as much as the key stands earlier. Now two places: what is (q1 + q2) . k?",
            "Beside the two places the scores are only a little lower. How large must the entries be, so that e^s "
            "makes much of it?",
        ),
        probes=look_back_probes(),
        given=lambda d_k, near, far: {"d_k": d_k, "near": near, "far": far},
        result=lambda s: s.looking,
        judge=_judge_looking,
        steps=_Steps,
    ),
)

QUESTIONS = (
    Question(
        "shifted",
        right="c",
        tempting="b",
        a="The distance between the two tokens is still 2, and only that counts.",
        b="Farther from the start, not farther apart. For given query and key only the distance counts.",
        c="Both are turned further by the same angle, so the angle between them stays.",
    ),
    Question(
        "beyond",
        right="b",
        tempting="a",
        a="A head for every length exists: you have just set it by hand. Training does not look for it.",
        b="Its weights leak to distances that training never showed it. A window of 32 keys repairs it.",
        c="That happens to the learned vectors and the sinusoids. "
        "A distance up to 31 is the same at place 50 as at 20.",
    ),
    Question(
        "crowd",
        right="a",
        tempting="c",
        a="The scores stay, and the crowd grows: 16 times as many keys share what the needle does not get.",
        b="The score of a query with a key does not know how many other keys there are.",
        c="It would, if the needle's lead were enough for any crowd. "
        "A lead of 8 is worth about 3000 keys of score 0, and 1808 random ones, "
        "whose exp(s) is 1.65 in the mean.",
    ),
    Question(
        "norm_order",
        right="a",
        tempting="b",
        a="A turn keeps the length of a vector, so the norm may come before or after. A gain stretches features, and "
        "two features of one pair by different amounts.",
        b="The norm alone divides by the length, which no turn changes.",
        c="A turn mixes the two features of a pair; a gain then stretches the mixture.",
    ),
)

RECALL = (
    Question(
        "cache_mask",
        right="b",
        tempting="a",
        a="That is the upper left: the first new token would see one key only.",
        b="The new tokens are the last ones, so the mask lines up at the lower right, and the last query sees all "
        "keys.",
        c="One token at a time it looks right. Several at once would see each other's future.",
    ),
    Question(
        "larger_query",
        right="b",
        tempting="c",
        a="The order of the scores stays as it was, so the same key is first.",
        b="All its scores grow by the same factor: their order stays, and softmax picks harder.",
        c="Softmax does not see a number added to all scores. A factor it does see.",
    ),
    Question(
        "divisor_of_a_head",
        right="b",
        tempting="a",
        a="That is the root of d_model. The dot product of one head adds up 256 terms, not 512.",
        b="A head has 512 / 2 = 256 features, and the divisor is the root of that.",
        c="256 is d_k. The divisor is its root, since variances add up and standard deviations do not.",
    ),
)

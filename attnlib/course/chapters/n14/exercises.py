"""Notebook 14, long texts: its exercises and questions. Its steps and mistakes: long_texts.py."""

import numpy as np

from ...engine.exercise import MAP_AXES, Function
from ...engine.probes import BATCH, CUBE, PLAIN, SINGLE, Draw, Probe, single
from ...engine.questions import Question
from ...engine.run import Unfit
from .long_texts import LogSteps, OnlineSteps, SinkSteps


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


def sink_probes():
    draw = Draw("sink_weights")
    blocked = np.where(np.tri(4, 6, -1, dtype=bool), draw(4, 6), -np.inf)  # row 0 is blocked
    return (
        Probe(PLAIN, (draw(4, 6), 0.0)),
        Probe("a sink with a score of 2", (draw(4, 6), 2.0)),
        Probe("a sink with a score of -1.5", (draw(4, 6), -1.5)),
        Probe(BATCH, (draw(2, 3, 5), 0.5)),
        Probe(CUBE, (draw(4, 4, 4), 0.5)),
        Probe("scores that all lie near -20", (draw(3, 5) - 20, 0.0)),
        Probe("scores near 1000", (1000 + draw(3, 5), 1000.5)),
        Probe("rows whose scores lie 1000 apart", (np.array([[1000.0, 999], [0, 1], [-1000, -999]]), 0.5)),
        Probe("a batch whose scores lie 1000 apart", (draw(2, 2, 3) + np.array([[[1000]], [[0]]]), 0.5)),
        Probe("blocked keys, and a row in which every key is blocked", (blocked, 0.7)),
        Probe(SINGLE, (*single(draw(2, 3, 5)), 1.0)),
    )


def log_probes():
    draw = Draw("log_n_weights")
    return (
        Probe(PLAIN, (2 * draw(6, 4), draw(6, 4), 8)),
        Probe("another n_0", (2 * draw(7, 5), draw(7, 5), 3)),
        Probe(BATCH, (2 * draw(2, 3, 5, 4), draw(2, 3, 5, 4), 4)),
        Probe(CUBE, (2 * draw(4, 4, 4), draw(4, 4, 4), 6)),
        Probe(SINGLE, (*single(2 * draw(2, 5, 4), draw(2, 5, 4)), 8)),
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

    def _variants(self):
        ways = super()._variants()
        del ways["mutates_input"]  # what is handed out are copies
        return ways


EXERCISES = (
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
        steps=OnlineSteps,
    ),
    Function(
        "sink_weights",
        "sink_weights(scores, sink) -> (..., n_q, n_k): softmax over the keys and one more score, `sink`, whose weight "
        "is left out of the result. -inf marks a blocked key; where every key is blocked, all weights are 0.",
        (
            "The sink is one more term in the sum: exp(sink).",
            "Subtract one maximum from the scores and from the sink, or exp overflows.",
            "largest = np.maximum(scores.max(axis=-1, keepdims=True), sink), then exp(scores - largest) over the sum "
            "of them and exp(sink - largest).",
        ),
        probes=sink_probes(),
        given=lambda scores, sink: {"masked_scores": scores, "sink": sink},
        result=lambda s: s.beside_sink,
        axes=MAP_AXES,
        steps=SinkSteps,
    ),
    Function(
        "log_n_weights",
        "log_n_weights(query, key, n_0) -> (..., n, n): weights of a causal head in which the scores of query i, "
        "divided by sqrt(d_k), are multiplied by ln(i + 1) / ln(n_0): it sees i + 1 keys.",
        (
            "Write the causal head first. Multiply its scores by the factor, and only then mask them.",
            "There is one factor for each query. So it is a column: (n, 1).",
            "np.log(np.arange(1, n + 1))[:, None] / np.log(n_0), before the mask and the softmax.",
        ),
        probes=log_probes(),
        given=lambda query, key, n_0: {"q": query, "k": key, "n_0": n_0},
        result=lambda s: s.weights,
        axes=MAP_AXES,
        steps=LogSteps,
    ),
)

QUESTIONS = (
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
)

RECALL = (
    Question(
        "parked_weight",
        right="b",
        tempting="a",
        a="NaN comes from rows in which every key is blocked. Here the first token is always allowed.",
        b="Each row sums to 1, so the weight must go somewhere. These heads have learned to put it on the first token.",
        c="It carries hardly any news. Without it, weight that nothing deserves falls on other words.",
    ),
    Question(
        "score_of_a_shift",
        right="c",
        tempting="b",
        a="How far from the start both stand does not matter.",
        b="Both angles change by the same amount, so the angle between query and key stays.",
        c="For a given query and key, the positions enter the score only through their distance.",
    ),
    Question(
        "fused_kernel",
        right="a",
        tempting="b",
        a="It never holds the map, so it has no weights to return.",
        b="The output is exact: a fused kernel computes the same sum in another order.",
        c="A block of scores is masked like any other scores.",
    ),
)

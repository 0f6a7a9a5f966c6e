"""The exercises of A model of your own, and the inputs on which they are tried."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib.core import softmax

from ... import letters
from ...engine.exercise import TOKEN_AXES, Function, step_options
from ...engine.probes import SINGLE, Draw, Probe, single
from ...engine.run import Unfit
from .steps import Bits, Block, Windows, Writing


def windows(tokens, starts, n):
    """Return n tokens from each start on, (b, n), and of each the one that follows, (b, n).

    >>> [part.tolist() for part in windows(np.arange(9), np.array([0, 4]), 3)]
    [[[0, 1, 2], [4, 5, 6]], [[1, 2, 3], [5, 6, 7]]]
    """
    return tuple(Windows(tokens=tokens, starts=starts, n=n).both)


def bits(logits, targets):
    """Return bits a token: the mean of -log2 p(target), for logits (b, n, kinds) and targets (b, n).

    >>> round(float(bits(np.zeros((1, 2, 8)), np.array([[3, 5]]))), 4)
    3.0
    """
    return Bits(logits=logits, targets=targets).bits


def block(x, mask, attention, network, norm_1, norm_2):
    """Add to x what attention, and then what a network makes of it, each behind a norm; arrays or tensors."""
    return Block(x=x, mask=mask, attention=attention, network=network, norm_1=norm_1, norm_2=norm_2).end


def write(model, prompt, count, n, temperature, draw):
    """Write `count` tokens behind the list `prompt`, and return all.

    `model` goes from tokens (1, m) to logits (1, m, kinds) and sees n tokens at most. `draw` draws one from shares.

    >>> write(lambda tokens: np.eye(4)[None, (tokens[0] + 1) % 4], [0], 5, 3, 0.01, lambda p: int(p.argmax()))
    [0, 1, 2, 3, 0, 1]
    """
    given = {"model": model, "prompt": prompt, "count": count, "n": n, "temperature": temperature}
    return Writing(seed=draw, **given).tokens


@dataclass(frozen=True, kw_only=True, repr=False)
class Called(Function):
    """A function that is called in a way of its own: `way(function, *arguments of a probe)` returns one array."""

    way: Callable

    def adapt(self, answer):
        function = super().adapt(answer)
        return lambda *args: self.way(function, *args)


def _two(function, *args):
    """Return x and y as one array."""
    result = function(*args)
    if result is None or result is ...:
        return None
    try:
        x, y = map(np.asarray, result)
    except (TypeError, ValueError):
        raise Unfit("Your function must return two arrays. Fix: return x, y.") from None
    if x.shape != y.shape:
        raise Unfit(f"x and y must have one shape, got {x.shape} and {y.shape}. Fix: a target for each token of x.")
    return np.stack([x, y])


def _with_dice(function, model, prompt, count, n, temperature, seed):
    """Return what is written with the same dice each time."""
    result = function(model, list(prompt), count, n, temperature, letters.dice(seed))
    return result if result is None or result is ... else np.asarray(result)


def _model(tokens):
    """Give logits (1, m, 8) for up to 6 tokens (1, m); each depends on all tokens up to its own.

    Tokens (m,) are taken for a batch, as any model takes its first axis: then it reads the first token alone.
    """
    m = tokens.shape[-1]
    if m > 6:
        raise IndexError(f"index {m - 1} is out of bounds: this model has vectors for 6 positions")
    so_far, i = np.cumsum(np.asarray(tokens)[0]), np.arange(m)
    return 2.5 * np.cos(1.7 * so_far[:, None] + np.outer(tokens[0], np.arange(1, 9)) + i[:, None])[None]


def _attention(x, mask):
    scores = np.where(mask, x @ np.swapaxes(x, -1, -2) / 3, -np.inf)
    return 0.7 * softmax(scores) @ x


def _network(x):
    return 1.3 * np.tanh(x) + 0.1


def _norm(gain, shift):
    return lambda x: gain * (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) + shift


def _window_probes():
    draw = Draw("windows")
    tokens = [draw.rng.permutation(60) for _ in range(3)]
    return (
        Probe("three windows of 8", (tokens[0], np.array([3, 17, 40]), 8)),
        Probe("two windows of 4 that overlap", (tokens[1], np.array([5, 2]), 4)),
        Probe("as many windows as tokens in each", (tokens[2], np.array([9, 0, 31, 20]), 4)),
        Probe("the last window that has a target", (tokens[0], np.array([51, 52]), 7)),
    )


def _bits_probes():
    draw = Draw("bits")

    def arrays(*shape, size=1.0):
        return size * draw(*shape), draw.rng.integers(shape[-1], size=shape[:-1])

    return (
        Probe("logits of a fresh model", arrays(3, 5, 7)),
        Probe("a sure model", arrays(2, 4, 9, size=6.0)),
        Probe("axes of equal length", arrays(4, 4, 4, size=2.0)),
        Probe(SINGLE, single(*arrays(2, 6, 5, size=3.0))),
        Probe("logits of some hundreds", arrays(3, 5, 7, size=300.0)),
        Probe("one row far above another", (np.array([[[1200.0, 0], [0, 0]]]), np.array([[0, 1]]))),
        Probe("logits above 1000", tuple(x + (1200 if i == 0 else 0) for i, x in enumerate(arrays(2, 3, 5)))),
    )


def _block_probes():
    draw = Draw("block")
    functions = _attention, _network, _norm(1.0, 0.0), _norm(1.1, 0.2)
    return (
        Probe("one sequence", (3 * draw(5, 8), np.tri(5, dtype=bool), *functions)),
        Probe("a batch", (draw(2, 4, 6), np.tri(4, dtype=bool), *functions)),
        Probe("other norms", (2 * draw(4, 5), np.tri(4, dtype=bool), _attention, _network, *functions[:1:-1])),
    )


EXERCISES = (
    Called(
        "windows",
        "windows(tokens, starts, n) -> (x, y), (b, n) each: x has the n tokens from each start on, y has for each "
        "token of x the one that follows it in the text.",
        (
            "Which position of `tokens` stands at row i and column j of x?",
            "Start i plus j: the starts as a column, starts[:, None], plus np.arange(n). These positions are (b, n).",
            "x is what stands in `tokens` at these positions. y reads one position further on.",
        ),
        way=_two,
        probes=_window_probes(),
        **step_options("both", "tokens starts n", of=Windows, axes=TOKEN_AXES),
    ),
    Function(
        "bits",
        "bits(logits, targets) -> number: logits (b, n, kinds), targets (b, n) of whole numbers; the mean of "
        "-log2 p(target), where p is the softmax of the logits.",
        (
            "Take the log of the softmax, pick the target's, and average what is left with the sign changed.",
            "log p = z - max z - log(sum exp(z - max z)) along the last axis: no logarithm of 0 appears.",
            "np.take_along_axis(log_p, targets[..., None], -1) picks. Divide nats by np.log(2).",
        ),
        probes=_bits_probes(),
        **step_options("bits", "logits targets", of=Bits),
    ),
    Function(
        "block",
        "block(x, mask, attention, network, norm_1, norm_2) -> x.shape: what attention(.., mask) makes of the normed x "
        "is added to x; then what network(..) makes of the normed sum is added to that sum. norm_1 stands before "
        "attention, norm_2 before the network. All four are functions.",
        (
            "Two sums. What is the second one added to?",
            "attention sees norm_1(x), but what is added to is x itself.",
            "x = x + attention(norm_1(x), mask), and the same with the network and norm_2.",
        ),
        probes=_block_probes(),
        **step_options("end", "x mask attention network norm_1 norm_2", of=Block, axes=TOKEN_AXES),
    ),
    Called(
        "write",
        "write(model, prompt, count, n, temperature, draw) -> the tokens of the prompt, a list, and `count` new ones. "
        "model((1, m)) gives logits (1, m, kinds) and sees n tokens at most; draw(p) draws one token.",
        (
            "One round: the last tokens, a row of logits, shares, one token more.",
            "model(np.array(tokens[-n:])[None]) keeps to n tokens. Which of its rows speaks of the next one?",
            "Divide the last row by the temperature, take the softmax, draw, and append what is drawn.",
        ),
        way=_with_dice,
        probes=tuple(
            Probe(f"temperature {t}, a prompt of {len(prompt)}", (_model, prompt, count, 6, t, seed))
            for seed, (prompt, count, t) in enumerate(
                (
                    ((1, 2, 3), 3, 1.0),
                    ((1, 2, 3), 20, 0.5),
                    ((5, 0), 24, 2.0),
                    ((4,), 30, 0.7),
                    ((1, 2, 3, 4, 5, 6, 7, 0), 9, 1.3),
                )
            )
        ),
        **step_options("written", "model prompt count n temperature seed", of=Writing),
    ),
)

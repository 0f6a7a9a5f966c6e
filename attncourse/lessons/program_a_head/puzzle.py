"""A puzzle: a head is set by hand, and judged by what it does on convoys that its author has not seen.

Any matrices that do it are right: none is compared with a reference, and no test reads them. A mistake is named by what
the head does, too. With scores 10,000 times as large, where equal scores stay equal, it follows a wrong rule, or it is
right after one repair: queries and keys exchanged, a sign turned, a column beside.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from attnlib import core

from ...convoy import CARGO, FLAGS, PLACES, WIDE, WIDTH, Convoy, convoy, draw
from ...engine.exercise import MAP_AXES, Exercise
from ...engine.probes import Probe
from ...engine.run import Outcome, Unfit
from .puzzle_mistakes import COMMON

HARD = 1e4


class Head(NamedTuple):
    """The matrices of one head."""

    W_Q: Any
    W_K: Any
    W_V: Any = None
    mask: Any = None


class Answer(NamedTuple):
    """The heads of an answer, and the matrix that joins their outputs."""

    heads: tuple
    W_O: Any = None

    def each(self, change):
        """Change every head."""
        return self._replace(heads=tuple(map(change, self.heads)))

    def one(self, change):
        """Change one head, each in turn."""
        for i in range(len(self.heads)):
            yield self._replace(heads=(*self.heads[:i], change(self.heads[i]), *self.heads[i + 1 :]))

    @property
    def empty(self):
        """Tell whether all matrices are 0, as in a stub."""
        return not any(np.any(W) for head in self.heads for W in head[:3] if W is not None)

    @property
    def hard(self):
        return self.each(lambda head: head._replace(W_Q=HARD * head.W_Q))


class Shown(NamedTuple):
    """What a view shows of an answer on one convoy."""

    convoy: Convoy | None  # none where the flags are no convoy
    maps: dict  # title -> weights (n, n), or the trace of a head
    received: dict  # title -> what each ship receives, in words
    line: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Puzzle(Exercise):
    """A head, or two, set by hand."""

    want: Callable  # convoy -> the weights, or the outputs, that are wanted; NaN where anything goes
    signs: dict  # id of a mistake -> test(puzzle, answer); these are tried before the common ones
    among: dict  # which convoys are hidden: the arguments of `convoy.draw`
    tolerance: float = 0.01
    d_k: int | None = None  # columns of W_Q and W_K; None: the learner chooses
    d_v: tuple = ()  # columns of W_V of each head; without it the weights of one head are wanted
    mask: bool = False  # is a mask part of the answer?
    joined: bool = False  # is W_O?
    causal: bool = False
    layers: bool = False  # the second head reads what the first has added to x
    example: Callable | None = None  # returns an answer that is right, for pictures where a reader has none

    subject = "Your head behaves"
    untried = "All your matrices are 0, or your function returns nothing."

    @property
    def axes(self):
        return ("queries", "features") if self.d_v else MAP_AXES

    @property
    def names(self):
        return (*self.signs, *(id for id in COMMON if id not in self.signs))

    @cached_property
    def convoys(self):
        return draw(**self.among)

    @cached_property
    def probes(self):
        return tuple(
            Probe(f"the convoy {c.flags}", (c,), says=partial(self._worst_row, c), drawn=True) for c in self.convoys
        )

    @cached_property
    def expected(self):
        return [Outcome((self.want(c),)) for c in self.convoys]

    def adapt(self, answer):
        if not callable(answer):
            raise Unfit(
                f"A puzzle asks for a function that returns matrices, you hand in {_kind(answer)}. "
                f"Fix: pass the function itself, without calling it: check.{self.name}(my_head)."
            )

        def on(c):
            read = self.parse_answer(answer())
            return None if read is None or read.empty else self.judged_on(c, self.result(read, c))

        on.answer = answer
        return on

    def judged_on(self, c, got):
        """Return a result, in which what is near enough counts as what is wanted."""
        wanted = self.want(c)
        free = np.isnan(wanted)
        near = (free | (np.abs(got - wanted) <= self.tolerance)).all(axis=-1, keepdims=True)
        return np.where(free | near, wanted, got)  # whole rows, so that a reported row still sums to 1

    # --- what an answer does

    def traces(self, answer, c):
        """Return the trace of each head on a convoy."""
        x, traces = c.x, []
        for head in answer.heads:
            if traces and self.layers:
                x = x + traces[0].output
            value = x if head.W_V is None else x @ head.W_V
            mask = None if head.mask is None else head.mask[: c.n, : c.n]
            traces.append(core.attention_trace(x @ head.W_Q, x @ head.W_K, value, mask, is_causal=self.causal))
        return traces

    def result(self, answer, c):
        """Return what is judged: weights (n, n), or outputs (n, d_v)."""
        traces = self.traces(answer, c)
        if answer.W_O is not None:
            return np.hstack([trace.output for trace in traces]) @ answer.W_O
        return traces[-1].output if self.d_v else traces[-1].weights

    def does(self, answer, want=None, tolerance=None):
        """Tell whether an answer does what is wanted on every convoy, or what another rule says."""
        return all(
            _near(self.result(answer, c), (want or self.want)(c), tolerance or self.tolerance) for c in self.convoys
        )

    def explain(self, function, outcomes):
        """Return the mistake that explains what a wrong answer does; none where several would do."""
        if any(outcome.kind for outcome in outcomes):
            return ()
        answer = self.parse_answer(function.answer())
        fits = {id: heads for id, sign in self.signs.items() if (heads := sign(self, answer))}
        for id in self.names[len(self.signs) :]:
            if not fits and (heads := COMMON[id](self, answer)):
                fits[id] = heads
        return tuple(self._say_where(m, fits[m.id]) for m in self.mistakes if [m.id] == list(fits))

    def _say_where(self, mistake, heads):
        """Say in which head or layer a mistake is, where there are two and its sign has found it in one of them."""
        if len(self.d_v) < 2 or not isinstance(heads, list) or len(heads) != 1:
            return mistake
        place = f"in {'layer' if self.layers else 'head'} {heads[0] + 1}"
        return replace(mistake, behaves_as_if=f"{place} {mistake.behaves_as_if}")

    def show(self, function, flags, times=1):
        """Return what is wanted on a convoy, and what a learner's function does, its scores multiplied by `times`.

        Matrices that are all 0 are no answer yet: all of them look alike, and say nothing of the puzzle.
        """
        notes = self.among.get("notes", False)
        try:
            c = Convoy(flags, convoy(flags)[:, CARGO], notes)
        except ValueError as error:
            return Shown(None, {}, {}, str(error))
        wanted, line = self.want(c), ""
        maps, rows = ({}, {"wanted": [*map(_tons, wanted)]}) if self.d_v else ({"wanted": wanted}, {})
        try:
            answer = self.parse_answer(function())
            line = "" if answer else "Your function returns nothing yet."
        except Unfit as error:
            answer, line = None, str(error)
        if answer and not answer.empty:
            answer = answer.each(lambda head: head._replace(W_Q=times * head.W_Q))
            part = "layer" if self.layers else "head"
            titles = ["yours"] if len(answer.heads) == 1 else [f"{part} 1", f"{part} 2"]
            maps |= dict(zip(titles, self.traces(answer, c), strict=True))
            rows |= {"yours": [*map(_tons, self.result(answer, c))]} if self.d_v else {}
        return Shown(c, maps, rows, f"{line} {anything_goes(wanted)}".strip())

    # --- reading what a learner returns

    def parse_answer(self, result):
        """Return what a function gave as an Answer, None where it is still a stub; raise Unfit where nothing fits."""
        if is_stub(result):
            self._check_mask_is_there(result)
            return None
        if len(self.d_v) < 2:
            return Answer((self._head(result, self._parts(), 0),))
        parts = [f"head {i + 1}" for i in range(len(self.d_v))] + ["W_O"] * self.joined
        *heads, last = _tuple(result, parts)
        heads += [] if self.joined else [last]
        read = tuple(self._head(head, self._parts(str(i + 1)), i) for i, head in enumerate(heads))
        if not self.joined:
            return Answer(read)
        W_O = _matrix("W_O", last, sum(self.d_v), "one row for the output of each head")
        _columns("W_O", W_O, 1)
        return Answer(read, W_O)

    def _check_mask_is_there(self, result):
        """Raise Unfit where nothing but the mask is missing: that is no stub."""
        of_three = self.mask and isinstance(result, tuple | list) and len(result) == 3
        if of_three and not is_stub(result[:2]) and any(np.any(W) for W in result[:2]):
            raise Unfit(
                f"This puzzle asks for a mask, too, (8, 8) and boolean; yours is {result[2]}. "
                "Fix: np.ones((8, 8), dtype=bool) is one that hides nothing."
            )

    def _parts(self, which=""):
        names = ["W_Q", "W_K", *["W_V"] * bool(self.d_v), *["mask"] * self.mask]
        return [name + which for name in names]

    def _head(self, result, names, i):
        width = WIDE if self.among.get("notes") else WIDTH
        matrices = _tuple(result, names)
        mask = None
        if self.mask:
            *matrices, mask = matrices
            mask = np.asarray(mask)
            if mask.shape != (PLACES, PLACES) or mask.dtype != bool:
                fix = (
                    "mask.astype(bool)" if mask.shape == (PLACES, PLACES) else "np.tri(8, dtype=bool) is the causal one"
                )
                raise Unfit(
                    f"mask must be (8, 8) and boolean, True = may attend; yours is {mask.shape}, {mask.dtype}. "
                    f"Fix: {fix}."
                )
        matrices = [
            _matrix(name, m, width, "one row for each column of x") for name, m in zip(names, matrices, strict=False)
        ]
        if matrices[0].shape != matrices[1].shape:
            raise Unfit(
                f"{names[0]} and {names[1]} must have the same number of columns, d_k: a score is a dot product. "
                f"Yours have {matrices[0].shape[1]} and {matrices[1].shape[1]}. Fix: make both with the same d_k."
            )
        if self.d_k not in (None, matrices[0].shape[1]):
            raise Unfit(
                f"Here d_k is {self.d_k}: W_Q and W_K must be ({width}, {self.d_k}), yours are {matrices[0].shape}. "
                f"Fix: begin with np.zeros(({width}, {self.d_k}))."
            )
        if self.d_v:
            _columns(names[2], matrices[2], self.d_v[i])
        return Head(*matrices[:2], matrices[2] if self.d_v else None, mask)

    # --- in words

    def _worst_row(self, c, yours, wanted):
        """Say what the worst row does: "Row 4, flag B: 1.00 on place 4, wanted 0.50 on 2 and 4"."""
        i = int(np.nan_to_num(np.abs(yours - wanted)).max(axis=-1).argmax())
        tell, verb = (_tons, "receives") if self.d_v else (_weights, "gives")
        flag = "the pilot" if i == 0 else f"flag {c.flags[i]}"
        digits = _digits(yours[i], wanted[i], self.tolerance)
        gives, right = tell(yours[i], digits), tell(wanted[i], digits)
        return f"The worst is row {i}, {flag}: it {verb} {gives}; wanted is {right}."


def anything_goes(wanted):
    """Say in which rows anything goes, those of NaN; nothing where there is none."""
    free = [str(i) for i in np.flatnonzero(np.isnan(wanted).any(axis=-1))]
    return f"Anything goes in row{'s' * (len(free) > 1)} {_join_words(free)}." if free else ""


def _near(got, wanted, tolerance):
    return got.shape == wanted.shape and bool((np.isnan(wanted) | (np.abs(got - wanted) <= tolerance)).all())


def _digits(got, wanted, tolerance):
    """Return how many decimals show that two rows differ by more than the tolerance: 2, or more where it is close."""

    def apart(digits):
        return np.nanmax(np.abs(got.round(digits) - wanted.round(digits))) > 1.0001 * tolerance

    return next((digits for digits in range(2, 8) if apart(digits)), 8)


def _weights(row, digits):
    """Write a row of weights: "0.50 on 2 and 4"."""
    if not row.any():
        return f"{0:.{digits}f} on each, since it may attend to nobody"
    if np.ptp(row) < 0.005:
        return f"{row[0]:.{digits}f} on each"
    shares = {}
    for place, weight in enumerate(row.round(digits)):
        if weight >= 0.01:
            shares.setdefault(f"{weight:.{digits}f}", []).append(str(place))
    largest = sorted(shares.items(), reverse=True)[:3]
    return ", ".join(f"{weight} on {_join_words(places)}" for weight, places in largest)


def _tons(row, digits=2):
    """Write what a ship receives: tons, or flags, "B" or "0.5 A + 0.5 B"."""
    if np.isnan(row).any():
        return "anything"
    numbers = [f"{round(float(x), digits) + 0.0:.7g}" for x in row]
    if len(row) == 1:
        return numbers[0]
    shares = zip(numbers, FLAGS, strict=True)
    return " + ".join(flag if x == "1" else f"{x} {flag}" for x, flag in shares if x != "0") or "no flag"


def _join_words(words):
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def is_stub(result):
    if isinstance(result, tuple | list):
        return any(is_stub(part) for part in result)
    return result is None or result is ...


def _kind(result):
    return f"a {type(result).__name__}" + (f" of {len(result)}" if isinstance(result, tuple | list) else "")


def _tuple(result, names):
    if not isinstance(result, tuple | list) or len(result) != len(names):
        raise Unfit(
            f"This puzzle asks for {len(names)} things: {_join_words(names)}. Your function returns {_kind(result)}. "
            f"Fix: return {', '.join(name.replace(' ', '_') for name in names)}."
        )
    return tuple(result)


def _matrix(name, m, rows, why):
    try:
        m = np.asarray(m, dtype=float)
    except (TypeError, ValueError):
        raise Unfit(f"{name} must be a matrix of numbers, yours is {_kind(m)}. Fix: np.zeros(({rows}, ...)).") from None
    if m.ndim != 2:
        fix = f"shape ({rows}, 1)" if m.shape == (rows,) else f"begin with np.zeros(({rows}, ...))"
        raise Unfit(
            f"{name} must have two axes, rows and columns; yours has {m.ndim}: its shape is {m.shape}. Fix: {fix}."
        )
    if len(m) != rows or not m.shape[1]:
        raise Unfit(
            f"{name} must have {rows} rows, {why}: its shape is {m.shape}. Fix: begin with np.zeros(({rows}, ...))."
        )
    if not np.isfinite(m).all():
        raise Unfit(f"{name} holds NaN or inf. Fix: a large number, such as 1000, is large enough for softmax.")
    return m


def _columns(name, m, columns):
    if m.shape[1] != columns:
        raise Unfit(
            f"{name} must have {columns} column{'s' * (columns > 1)}, one for each number that a ship gives; yours has "
            f"{m.shape[1]}. Fix: shape ({len(m)}, {columns})."
        )

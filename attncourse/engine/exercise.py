"""What an exercise is: a task, probes, the right answer, and every mistake that can be made in it.

Here are four kinds: a `Number`, found without code, a `Design`, of which many are right, a `Function`, and a `Module`,
which is a class of torch. A fifth, a head that is set by hand, is in lessons/program_a_head/puzzle.py.
"""

import contextlib
import inspect
import re
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from . import describe, modules, right_answers, run
from .compare import RIGHT, all_same, close, factor_between, first_difference, same
from .explain import FACTOR, HIDES, NEARLY, NUMBERS, PLAIN, SHOWS, WRITTEN, Pairs, explain, nothing_but_nan, roughly
from .locate import RIGHT_BARE, Reference, Reveal, locate
from .probes import Probe, another
from .run import Unfit, Unmeasured
from .sandbox import TimeUp, few_words, time_limit
from .steps import Steps, replace_steps
from .verdict import Verdict

# What the axes of an answer are called.
MAP_AXES = ("queries", "keys")
OUTPUT_AXES = ("queries", "features")
TOKEN_AXES = ("tokens", "features")

# For exercises that ask for attention from scores to output.
ATTENTION_HINTS = (
    "Four steps: scores, scale, softmax, weighted sum.",
    "Scores are (..., n_q, n_k): Q times K with its last two axes swapped.",
    "After the softmax over the keys, multiply by V.",
)


# Mistakes that an experiment tells where no replaced step does: by another argument, by a stage.
IGNORED, CHANGING = "argument_ignored", "another_each_time"
BY_STAGE = {
    "projections": "another_projection",
    "heads": "heads_mixed_up",
    "scores": "another_score",
    "scale": "another_scale",
    "mask": "another_mask",
    "mask alone": "another_branch",
    "softmax": "nan_at_extremes",
    "softmax or output": "weights_no_shares",
    "output": "another_output",
    "returned weights": "other_weights_returned",
}


@dataclass(frozen=True)
class Exercise:
    """One exercise; call it with your answer.

    A kind adds `probes`, what the answer is tried on, `adapt`, `reference` and `_variants`.
    """

    name: str
    task: str  # what to hand in; of code, its signature
    hints: tuple  # of str, from a nudge to the last step before the solution
    # Those that are looked for; the catalogue hands them in. Of two that look alike here, the first gives the name.
    mistakes: tuple = field(default=(), kw_only=True)
    heading: str = field(default="", kw_only=True)  # number and title; the catalogue hands it in
    payoff: describe.Payoff | None = field(default=None, kw_only=True)  # of its lesson; the catalogue hands it in

    # Defaults; a kind of exercise may override them.
    answer_is_code = True
    returns_weights = False  # beside the output
    axes, our_functions = (), ()
    stage, reveal, judge, kept = "", None, None, None
    subject = "Your code behaves"  # ... as if
    untried = (
        "If you have written it already: is a `return` missing, or does a line `return ...` or "
        "`raise NotImplementedError` remain?"
    )

    def __call__(self, answer: Any) -> Verdict:
        """Run an answer, compare it with the right one, explain and locate what is wrong, and return the Verdict."""
        if answer is None or answer is ...:
            return describe.not_tried(self)
        with few_words():
            return self._verdict(answer)

    def _verdict(self, answer):
        try:
            function = self.adapt(answer)
            with run.calls_into_libraries({self.name, *self.our_functions}) as ours:
                outcomes = self.run_on_probes(function)
            self.look_further(function, outcomes, ours)
        except Unmeasured as error:
            return describe.not_tried(self, str(error))
        except Unfit as error:
            return describe.unfit(self, answer, error)
        state, mistakes = self.judge_outcomes(function, outcomes)
        if state == "not tried":
            return describe.not_tried(self, self.untried)
        if state == "right":
            right_answers.record(self.name, answer)
            seen = self.on_other_inputs(function, answer, outcomes)
            return describe.right(self, outcomes, ours, seen, self.remark_on(answer))
        difference = first_difference(outcomes, self.expected, self.probes)
        located, remark = None, ""
        if [mistake.id for mistake in mistakes] == [FACTOR]:
            remark = f"Here it is {factor_between(difference.yours, difference.expected):.4g} times the right result."
        if not mistakes:
            id, located, remark = self.locate_unnamed(function, outcomes, difference)
            mistakes = tuple(mistake for mistake in self.mistakes if mistake.id == id)
        return describe.wrong(self, answer, difference, mistakes, located, remark)

    def __repr__(self):
        return f"check.{self.name}: {self.task}"

    def look_further(self, function, outcomes, ours):
        """Raise Unfit where right results are not enough; `ours` are the calls into libraries."""

    def remark_on(self, answer):
        """Return what is worth saying of a right answer beside its results, or ""."""
        return ""

    def call_on_probe(self, function, args, **options):
        """Return the Outcome of `function` on the arguments of a probe."""
        lists = not self.answer_is_code
        return run.call(function, args, returns_weights=self.returns_weights, lists=lists, judge=self.judge, **options)

    def outcomes(self, function, **options):
        """Return the Outcome of a learner's function on every probe, up to the first that does not end."""
        calls = [partial(self.call_on_probe, function, probe.args, **options) for probe in self.probes]
        return run.outcomes(calls, copied=self.answer_is_code)

    def on_other_inputs(self, function, answer, outcomes):
        """Return what the picture of a right answer is drawn from: the numbers handed in, here."""
        return outcomes[0].values[0] if outcomes[0].values else answer

    def judge_outcomes(self, function, outcomes):
        """Return "not tried", "right" or "wrong", and the mistakes that explain what `function` did on the probes."""
        if outcomes[0].kind == "untried":
            return "not tried", ()
        if all_same(outcomes, self.expected, self.probes):
            return "right", ()
        return "wrong", self.explain(function, outcomes)

    def run_on_probes(self, function):
        """Return the outcomes on the probes, handed over as arrays, or as tensors where that raises less."""
        outcomes = self.outcomes(function)
        if _errors(outcomes) and "torch" in sys.modules:  # perhaps it is written for tensors
            as_tensors = self.outcomes(function, tensors=True)
            return as_tensors if _errors(as_tensors) < _errors(outcomes) else outcomes
        return outcomes

    @property
    def names(self):
        """The ids of the mistakes that this check can name."""
        truth = any(e.values and e.values[0].dtype == bool for e in self.expected)
        return (
            *self.wrong,
            *((WRITTEN, *run.PROVED) if self.answer_is_code else ()),
            *((*PLAIN, IGNORED, CHANGING, NEARLY) if self.answer_is_code and not self.judge else ()),
            *((NUMBERS, HIDES, SHOWS) if truth else ()),
            *(BY_STAGE.values() if self.reveal else ()),
        )

    def explain(self, function, outcomes):
        """Return the mistakes that explain what `function` did on the probes."""
        return explain(outcomes, self.expected, self.probes, self.mistakes, self.wrong_outcomes, self.pairs)

    def locate_unnamed(self, function, outcomes, difference):
        """Return (id of a mistake or None, what `locate` returns, a remark) where outcomes alone explain nothing."""
        return None, None, ""

    @cached_property
    def expected(self):
        """The right outcome of every probe."""
        return self._outcomes(self.reference)

    @cached_property
    def wrong(self):
        """The mistakes that can be made here: id -> implementations. Each differs from the right one on a probe."""
        return {id: [f for f, *_ in made] for id, made in self._distinct_variants.items()}

    @cached_property
    def wrong_outcomes(self):
        return {id: [outcomes for _, outcomes, _ in made] for id, made in self._distinct_variants.items()}

    @cached_property
    def pairs(self):
        """All pairs of mistakes that replace different steps."""
        single = [
            (id, overrides, o) for id, made in self._distinct_variants.items() for _, o, overrides in made if overrides
        ]

        def outcome_with(overrides, probe):
            return self.call_on_probe(self.with_steps(overrides), probe.args)

        return Pairs(self.probes, self.expected, single, self._raising, outcome_with)

    @property
    def _raising(self):
        return {mistake.id for mistake in self.mistakes if mistake.raises}

    @cached_property
    def _distinct_variants(self):
        distinct, seen = {}, []
        for id, variants in self._variants().items():
            for f, overrides in variants:
                outcomes = self._outcomes(f)
                # Two mistakes may look alike here (d_v for d_k where they are equal): the first gives the name.
                shows = self._differs(outcomes) or (id in self._raising and self._fails(outcomes))
                shows = shows and not nothing_but_nan(outcomes)
                if shows and not any(all_same(outcomes, other, self.probes) for other in seen):
                    distinct.setdefault(id, []).append((f, outcomes, overrides))
                    seen.append(outcomes)
        return distinct

    def _differs(self, outcomes):
        """Tell whether a mistake changes a value here; an error alone is no evidence."""
        return any(
            not o.kind and not same(o, right, probe.tolerance)
            for o, right, probe in zip(outcomes, self.expected, self.probes, strict=True)
        )

    def _fails(self, outcomes):
        """Tell whether a mistake raises on some probes and runs on the others."""
        raised = [o.kind == "raised" for o in outcomes]
        return any(raised) and not all(raised)

    def _outcomes(self, function):
        return [self.call_on_probe(function, probe.args) for probe in self.probes]


def _errors(outcomes):
    return sum(outcome.kind == "raised" for outcome in outcomes)


class Kept(NamedTuple):
    """Under which name `mine` keeps a right answer, what of attnlib stands in for it, and what it has grown from."""

    name: str
    ours: str
    grown_from: str = ""  # the name of another that is kept


@dataclass(frozen=True, kw_only=True, repr=False)
class Number(Exercise):
    """Numbers found by hand or by a formula, handed in as a number, a list or an array."""

    right: Any
    slips: dict  # wrong answers: the id of a mistake -> values

    answer_is_code = False
    subject = "Your answer looks"
    probes = (Probe("your numbers", (), 1e-3),)  # by hand: four decimals are plenty

    def adapt(self, answer):
        return lambda: answer

    def reference(self):
        """Give the right answer."""
        return self.right

    def _variants(self):
        return {id: [(lambda value=value: value, None) for value in values] for id, values in self.slips.items()}

    def explain(self, function, outcomes):
        """Return the slip that was handed in, or the only one that it is when rounded to three digits or more."""
        mistakes = super().explain(function, outcomes)
        if mistakes or outcomes[0].kind:
            return mistakes
        (yours,), every = outcomes[0].values, [(id, value) for id, values in self.slips.items() for value in values]
        places = [n for n in (1, 2) if np.abs(yours).max(initial=0) * 10**n >= 100]
        fits = {id for id, x in every for n in places if close(yours, np.asarray(x).round(n), 1e-9)}
        return tuple(m for m in self.mistakes if fits == {m.id})


@dataclass(frozen=True, kw_only=True, repr=False)
class Design(Exercise):
    """An answer of which many are right: it is judged by what it does."""

    # Answer -> (id of the mistake, words), with RIGHT for the id of a right answer, None where a wrong one has no name.
    # It raises Unfit for what cannot be tried, and Unmeasured where only something missing here could tell.
    judge: Callable
    names: tuple = ()  # the ids of the mistakes that it finds

    answer_is_code = False
    subject = "Your answer looks"
    probes = (Probe("your answer", ()),)
    expected = (run.Outcome(told=(RIGHT, "")),)

    def adapt(self, answer):
        return lambda: answer

    def explain(self, function, outcomes):
        """Return the mistake that the judge has found."""
        return tuple(m for outcome in outcomes for m in self.mistakes if outcome.told and m.id == outcome.told[0])


@dataclass(frozen=True, kw_only=True, repr=False)
class Function(Exercise):
    """A function, right if it does what the steps do."""

    probes: tuple
    given: Callable  # turns the arguments of a probe into the given steps
    result: Callable  # steps -> what the right answer returns
    steps: type = Steps  # the right ones
    axes: tuple = ()  # what the last two axes of the result are
    stage: str = ""  # of an exercise about a single one
    reveal: Reveal | None = None  # how to look inside for the first stage that differs
    # Where many results are right: (result, *arguments of the probe) -> (RIGHT or None, words). A mistake is named
    # where the words are the same as for its steps on every probe. None: results are compared.
    judge: Callable | None = None
    orders: bool = False  # do the numbers of one result lie orders of magnitude apart?
    our_functions: tuple = ()  # those of attnlib that are this exercise, besides the one of its name
    kept: Kept | None = None  # of an answer that later notebooks use again

    def adapt(self, answer):
        if not callable(answer):
            raise Unfit(
                f"This exercise asks for a function, you hand in an object of type {type(answer).__name__}. "
                "Fix: pass the function itself: its name, without calling it."
            )
        return answer

    def on_other_inputs(self, function, answer, outcomes):
        """Return the answer as a function for arguments that no probe has tried: it gives arrays, or what else."""

        def call(*args):
            outcome = run.call(function, args, returns_weights=self.returns_weights, tensors=as_tensors)
            if not outcome.values:
                return function(*args)  # a pair, say
            return outcome.values if self.returns_weights else outcome.values[0]

        as_tensors = not self.returns_weights and "torch" in sys.modules and outcomes[0].tensor
        return call

    def steps_on(self, args):
        """Return the right steps on the arguments of a probe."""
        return self.steps(arguments=args, **self.given(*args))

    def reference(self, *args):
        """Give the right answer."""
        return self.with_steps({})(*args)

    def with_steps(self, overrides):
        """Return the right function with some steps replaced."""
        steps = replace_steps(self.steps, overrides)
        return lambda *args: self._result(steps(arguments=args, **self.given(*args)))

    def _result(self, s):
        return s.finish(self.result(s))

    def _variants(self):
        return {m.id: [(self.with_steps(overrides), overrides) for overrides in m.variants] for m in self.mistakes}

    def locate_unnamed(self, function, outcomes, difference):
        if difference.part is None and difference.outcome.values:  # all are right, and the arrays given have changed
            return WRITTEN, None, ""
        again = [self.call_on_probe(function, difference.probe.args) for _ in range(2) if not difference.outcome.kind]
        if again and not again[0].kind and not same(*again, 1e-9):
            return CHANGING, None, ""
        if name := self.ignored_argument(function, outcomes):
            return IGNORED, None, f"Your result does not depend on `{name}`."
        located = self.locate(function, difference)
        stage, detail = located or (None, "")
        holds_nan = any(np.isnan(x).any() for x in difference.outcome.values)
        remark = run.first_nan(function, difference.probe.args) if holds_nan else ""
        id = BY_STAGE.get(stage or (detail.startswith(RIGHT_BARE) and "mask alone")) if detail else None
        return id or roughly(outcomes, self.expected, self.probes, self.orders), located, remark

    def ignored_argument(self, function, outcomes):
        """Return the name of an argument on which the right result depends and that of `function` does not, or ""."""
        ran = len(outcomes) == len(self.probes) and not any(o.kind for o in outcomes)
        if self.judge or not ran:
            return ""
        names = re.findall(r"(\w+)[^,()]*[,)]", self.task.partition("(")[2].partition("->")[0])
        names = tuple(inspect.signature(self.given).parameters) if self.returns_weights else names
        return next((name for i, name in enumerate(names) if self._does_nothing(i, function, outcomes)), "")

    def _does_nothing(self, i, function, outcomes):
        """Tell whether on two probes or more argument i, when it is another, changes the right result alone."""
        shown = 0
        for probe, before, right in zip(self.probes, outcomes, self.expected, strict=True):
            if i >= len(probe.args) or (other := another(probe.args[i])) is None:
                continue
            if before.values and before.values[0].shape != right.values[0].shape:
                continue  # an argument that is missing may be a size alone, which a right answer need not read
            args = (*probe.args[:i], other, *probe.args[i + 1 :])
            expected = self.call_on_probe(self.reference, args)
            if expected.kind or same(expected, right, probe.tolerance):
                continue
            if not same(self.call_on_probe(function, args), before, 1e-9):
                return False
            shown += not np.isnan(before.values[0]).any()  # NaN may have swallowed the argument
        return shown > 1

    def locate(self, function, difference):
        """Return (the first stage that differs, or None; what was measured); None where there are no stages."""
        in_words = difference.part == 0 and difference.probe.says
        if in_words or difference.index is None or difference.yours.size == 1:
            return None
        right = Reference(self.reference, self.steps_on, self.returns_weights, self.stage, self.reveal)
        with contextlib.suppress(TimeUp), time_limit(run.TIME_LIMIT):
            return locate(function, difference, right, self.probes)
        return None, ""


LONG, FEW = 256, 24  # tokens of the probe of memory, and how many numbers each further one may take


def memory_grows_with_map(call, n=LONG):
    """Tell whether a call of n tokens holds more than a few numbers for each token that is added."""
    peaks, running = [], tracemalloc.is_tracing()
    for size in (n, 2 * n):
        if not running:
            tracemalloc.start()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        try:
            call(size)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            if not running:
                tracemalloc.stop()
    return peaks[1] - peaks[0] > 8 * n * FEW


@dataclass(frozen=True, kw_only=True, repr=False)
class MemoryBounded(Function):
    """A function whose memory is looked at, too, once its results are right."""

    called: Callable  # (function, n) -> what it gives for n tokens
    where: str  # completes "from 256 to 512 tokens, ..."
    fix: str
    grows: str | None = None  # the id of the mistake

    def look_further(self, function, outcomes, ours):
        if not all_same(outcomes, self.expected, self.probes):
            return
        if outcomes[0].tensor or any(whose == "torch" for whose, _ in ours):
            raise Unmeasured(
                "All results are right. How much memory they take cannot be seen here: the arrays of NumPy are "
                "measured, and torch's tensors are not. Fix: write it with NumPy alone."
            )
        held = partial(memory_grows_with_map, partial(self.called, function))
        (found,) = run.outcomes([lambda: run.call(lambda: np.array(held()), ())], copied=True)
        if found.kind:
            raise Unfit(f"On short texts all results are right. With {LONG} tokens and more: {found.problem}")
        if found.values[0]:
            raise Unfit(
                f"All results are right. But from {LONG} to {2 * LONG} tokens, {self.where}: memory "
                f"grows by {FEW} numbers a token or more. Fix: {self.fix}.",
                self.grows,
            )


def step_options(step, given, *, of=Steps, axes=(), stage=""):
    """Return the options of a Function that asks for one step; `given` names what its arguments are, in order."""
    names = given.split()
    options = {"result": attrgetter(step), "steps": of, "axes": axes, "stage": stage}
    return options | {"given": lambda *args: dict(zip(names, args, strict=False))}  # the last may be left out


@dataclass(frozen=True, kw_only=True, repr=False)
class Module(Function):
    """A class derived from nn.Module that returns (output, weights), and through which the gradient flows."""

    unpack: Callable  # the arguments of a probe -> those of `modules.call_module`
    biases: bool = True  # may the layers have a bias?
    our_functions: tuple = ("forward",)

    returns_weights = True

    def __call__(self, answer):
        return super().__call__(answer) if modules.has_torch() else describe.not_tried(self, describe.WITHOUT_TORCH)

    def adapt(self, answer):
        modules.check_class(answer, self.name)
        return lambda *args: modules.call_module(answer, *self.unpack(*args), self.biases)

    def remark_on(self, answer):
        sizes, weights, inputs, options, _ = self.unpack(*self.probes[0].args)
        return modules.DROPS if modules.drops(answer, sizes, weights, inputs, options) else ""

    @property
    def names(self):
        return (*super().names, modules.LAYER, modules.FEW, *modules.LEARNING.values())

    def locate_unnamed(self, function, outcomes, difference):
        if difference.part == 0 and difference.probe.says:  # all numbers are right, and it is asked what is learned
            return modules.LEARNING.get(int(difference.yours.max())), None, ""
        return super().locate_unnamed(function, outcomes, difference)

    def _result(self, s):
        values = tuple(s.finish(y) for y in self.result(s))  # what raises or writes does so for the gradient, too
        return (s.gradient_fault,) if s.learning else values

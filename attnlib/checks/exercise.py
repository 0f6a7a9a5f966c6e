"""What an exercise is: a task, probes, the right steps, and every mistake that can be made in it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from .calling import Unfit, call, same
from .grading import examine
from .mistakes import MISTAKES
from .naming import Pairs, all_same
from .pipeline import Steps
from .stages import Reveal


def _callable(answer):
    if not callable(answer):
        raise Unfit(
            f"This exercise asks for a function, you hand in an object of type {type(answer).__name__}. "
            "Fix: pass the function itself, without calling it: check.softmax(my_softmax)."
        )
    return answer


class Judged(NamedTuple):
    """Where many answers are right: (result, *args) -> what of it is compared; (yours, right) -> a sentence."""

    by: Callable
    says: Callable


@dataclass(frozen=True)
class Exercise:
    """One exercise; call it with your answer.

    Attributes
    ----------
    name : str
    task : str
        What to write, with its signature.
    hints : tuple of str
        From a nudge to the last step before the solution.
    probes : tuple of Probe
        What the answer is tried on.
    given : callable
        Turns the arguments of a probe into the given steps of the pipeline.
    result : callable
        Steps -> what the right answer returns.
    """

    name: str
    task: str
    hints: tuple
    probes: tuple
    given: Callable
    result: Callable
    axes: tuple = ()
    stage: str = ""
    reveal: Reveal | None = None
    adapt: Callable = _callable
    many: bool = False  # returns (output, weights)
    lists: bool = False  # numbers by hand may come as lists
    slips: dict | None = None  # the mistakes of a number by hand: id -> wrong values
    judged: Judged | None = None  # otherwise all of the result is compared
    own: tuple = ()  # attnlib's functions that are this exercise, besides the one of its name

    def __call__(self, answer) -> Any:
        """Check an answer and return the Verdict."""
        return examine(self, answer)

    def __repr__(self):
        return f"check.{self.name}: {self.task}"

    def steps(self, args, replaced=None):
        """Return the pipeline on the arguments of a probe, with some steps replaced."""
        return Steps(replaced or {}, arguments=args, **self.given(*args))

    def reference(self, *args):
        """Give the right answer."""
        return self.solve({})(*args)

    def solve(self, replaced):
        """Return the right function with some steps replaced."""

        def solution(*args):
            steps = self.steps(args, replaced)
            result = self.result(steps)
            if not self.many:
                return steps.finish(result)
            values = tuple(steps.finish(y) for y in result)  # what raises or writes does so for the gradient, too
            return (steps.gradient_cut,) if steps.learning else values

        return solution

    def run(self, function, args, **options):
        """Return the Outcome of `function` on the arguments of a probe."""
        judge = self.judged and self.judged.by
        return call(function, args, many=self.many, lists=self.lists, judge=judge, **options)

    @cached_property
    def expected(self):
        """The right outcome of every probe."""
        return self._outcomes(self.reference)

    @cached_property
    def wrong(self):
        """The mistakes that can be made here: id -> implementations, each different from the right one on a probe."""
        return {id: [f for f, *_ in ways] for id, ways in self._mistakes.items()}

    @cached_property
    def wrong_outcomes(self):
        return {id: [o for _, o, _ in ways] for id, ways in self._mistakes.items()}

    @cached_property
    def pairs(self):
        """Two mistakes at once: (ids, outcomes) of every pair that replaces different steps."""
        return Pairs(self, [(id, way, o) for id, ways in self._mistakes.items() for _, o, way in ways if way])

    @cached_property
    def _mistakes(self):
        if self.slips is not None:
            made = {id: [(lambda value=value: value, None) for value in values] for id, values in self.slips.items()}
        else:
            made = {id: [(self.solve(way), way) for way in mistake.ways] for id, mistake in MISTAKES.items()}
        found, seen = {}, []
        for id, ways in made.items():
            for f, way in ways:
                outcomes = self._outcomes(f)
                # What cannot be told apart here (d_v = d_k in heads) belongs to the first in the catalogue.
                shows = self._differs(outcomes) or (MISTAKES[id].raises and self._fails(outcomes))
                if shows and not any(all_same(self, outcomes, other) for other in seen):
                    found.setdefault(id, []).append((f, outcomes, way))
                    seen.append(outcomes)
        return found

    def _differs(self, outcomes):
        """Tell whether a mistake shows here in a value; one that only raises is no evidence of anything."""
        return any(
            not o.kind and not same(o, right, probe.tolerance)
            for o, right, probe in zip(outcomes, self.expected, self.probes, strict=True)
        )

    def _fails(self, outcomes):
        """Tell whether a mistake shows here in errors on some probes, while it is right on the others."""
        raised = [o.kind == "raised" for o in outcomes]
        return any(raised) and not all(raised)

    def _outcomes(self, function):
        return [self.run(function, probe.args) for probe in self.probes]

"""What an exercise is: a task, probes, the right answer, and every mistake that can be made in it.

Here are three kinds: a `Number`, found without code, a `Function`, and a `Module`, which is a class of torch. A fourth,
a head that is set by hand, is in chapters/n10/puzzle.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from . import modules
from .describe import examine
from .explain import Pairs, all_same, explain
from .locate import Reveal
from .probes import Probe
from .run import Unfit, call, same
from .steps import Steps, replaced

# What the axes of an answer are called.
MAP_AXES = ("queries", "keys")
OUTPUT_AXES = ("queries", "features")
TOKEN_AXES = ("tokens", "features")

# Where the whole of attention is asked for.
ATTENTION_HINTS = (
    "Four steps: scores, scale, (mask,) softmax, weighted sum.",
    "Scores are (..., n_q, n_k): Q times K with its last two axes swapped. Blocked scores become -inf.",
    "After the softmax over the keys, multiply by V. A query that may attend to nothing gets 0, not NaN.",
)


@dataclass(frozen=True)
class Exercise:
    """One exercise; call it with your answer.

    A kind adds `probes`, what the answer is tried on, `adapt`, `reference` and `_ways`.

    Attributes
    ----------
    name : str
    task : str
        What to hand in; of code, its signature.
    hints : tuple of str
        From a nudge to the last step before the solution.
    mistakes : tuple of Mistake
        Those that are looked for; the catalogue hands them in. Of two that cannot be told apart here, the first gives
        the name.
    """

    name: str
    task: str
    hints: tuple
    mistakes: tuple = field(default=(), kw_only=True)

    # What is so unless a kind says otherwise.
    code = True  # the answer is code, not numbers
    many = False  # returns (output, weights)
    axes, own = (), ()
    stage, reveal, judged = "", None, None
    subject = "Your code behaves"  # ... as if
    untried = (
        "If you have written it already: is a `return` missing, or does a line `return ...` or "
        "`raise NotImplementedError` remain?"
    )

    def __call__(self, answer) -> Any:
        """Check an answer and return the Verdict."""
        return examine(self, answer)

    def __repr__(self):
        return f"check.{self.name}: {self.task}"

    def run(self, function, args, **options):
        """Return the Outcome of `function` on the arguments of a probe."""
        judge = self.judged and self.judged.by
        return call(function, args, many=self.many, lists=not self.code, judge=judge, **options)

    @property
    def names(self):
        """The ids of the mistakes that this check can name."""
        return tuple(self.wrong)

    def explain(self, function, found):
        """Return the mistakes that explain what `function` did on the probes."""
        return explain(self, found)

    @cached_property
    def expected(self):
        """The right outcome of every probe."""
        return self._outcomes(self.reference)

    @cached_property
    def wrong(self):
        """The mistakes that can be made here: id -> implementations, each different from the right one on a probe."""
        return {id: [f for f, *_ in ways] for id, ways in self._made.items()}

    @cached_property
    def wrong_outcomes(self):
        return {id: [o for _, o, _ in ways] for id, ways in self._made.items()}

    @cached_property
    def pairs(self):
        """Two mistakes at once: (ids, outcomes) of every pair that replaces different steps."""
        return Pairs(self, [(id, way, o) for id, ways in self._made.items() for _, o, way in ways if way])

    @cached_property
    def _made(self):
        found, seen = {}, []
        raising = {mistake.id for mistake in self.mistakes if mistake.raises}
        for id, ways in self._ways().items():
            for f, way in ways:
                outcomes = self._outcomes(f)
                # What cannot be told apart here (d_v = d_k in heads) belongs to the first in the catalogue.
                shows = self._differs(outcomes) or (id in raising and self._fails(outcomes))
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


class Judged(NamedTuple):
    """Where many answers are right: (result, *args) -> what of it is compared; (yours, right) -> a sentence.

    Where a sentence needs more than what is compared, `by` returns it as well, as Told.
    """

    by: Callable
    says: Callable


@dataclass(frozen=True, kw_only=True, repr=False)
class Number(Exercise):
    """Numbers found by hand or by a formula, handed in as a number, a list or an array.

    Attributes
    ----------
    right : float or ndarray
    slips : dict
        Wrong answers: the id of a mistake -> values.
    judged : Judged or None
        Of a design, where many answers are right: what of them is compared. None: the numbers themselves.
    """

    right: Any
    slips: dict
    judged: Judged | None = None

    code = False
    subject = "Your answer looks"
    probes = (Probe("your numbers", (), 1e-3),)  # by hand: four decimals are plenty

    def adapt(self, answer):
        return lambda: answer

    def reference(self):
        """Give the right answer."""
        return self.right

    def _ways(self):
        return {id: [(lambda value=value: value, None) for value in values] for id, values in self.slips.items()}


@dataclass(frozen=True, kw_only=True, repr=False)
class Function(Exercise):
    """A function, right if it does what the steps do.

    Attributes
    ----------
    probes : tuple of Probe
    given : callable
        Turns the arguments of a probe into the given steps.
    result : callable
        Steps -> what the right answer returns.
    steps : class
        The right steps.
    axes : tuple of str
        What the last two axes of the result are.
    stage : str
        The stage of an exercise about a single one.
    reveal : Reveal or None
        How to look inside for the first stage that differs.
    judged : Judged or None
        What of the result is compared; None: all of it.
    own : tuple of str
        attnlib's functions that are this exercise, besides the one of its name.
    """

    probes: tuple
    given: Callable
    result: Callable
    steps: type = Steps
    axes: tuple = ()
    stage: str = ""
    reveal: Reveal | None = None
    judged: Judged | None = None
    own: tuple = ()

    def adapt(self, answer):
        if not callable(answer):
            raise Unfit(
                f"This exercise asks for a function, you hand in an object of type {type(answer).__name__}. "
                "Fix: pass the function itself, without calling it: check.softmax(my_softmax)."
            )
        return answer

    def steps_on(self, args):
        """Return the right steps on the arguments of a probe."""
        return self.steps(arguments=args, **self.given(*args))

    def reference(self, *args):
        """Give the right answer."""
        return self.solve({})(*args)

    def solve(self, by):
        """Return the right function with some steps replaced."""
        steps = replaced(self.steps, by)
        return lambda *args: self._result(steps(arguments=args, **self.given(*args)))

    def _result(self, s):
        return s.finish(self.result(s))

    def _ways(self):
        return {mistake.id: [(self.solve(way), way) for way in mistake.ways] for mistake in self.mistakes}


@dataclass(frozen=True, kw_only=True, repr=False)
class Module(Function):
    """A class derived from nn.Module that returns (output, weights), and through which the gradient flows.

    Attributes
    ----------
    unpack : callable
        The arguments of a probe -> what `modules.run` takes: sizes, weights, inputs, mask and names of matrices.
    biases : bool
        May the layers have a bias?
    """

    unpack: Callable
    biases: bool = True
    own: tuple = ("forward",)

    many = True

    def adapt(self, answer):
        modules.check_class(answer, self.name)
        return lambda *args: modules.run(answer, *self.unpack(*args), self.biases)

    def _result(self, s):
        values = tuple(s.finish(y) for y in self.result(s))  # what raises or writes does so for the gradient, too
        return (s.gradient_fault,) if s.learning else values

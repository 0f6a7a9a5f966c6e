"""What a mistake is, and the ways of making one that are used all over the catalogue."""

from dataclasses import KW_ONLY, dataclass

from ..engine.questions import tomllib


@dataclass(frozen=True, eq=False)
class Mistake:
    """A named mistake: what it does, what you would see, and two hints that do not give the answer away.

    `behaves_as_if` completes "your code behaves as if ...": a check compares behaviour and never reads code. Where two
    causes behave alike, it names what they have in common, or both. The hint asks, and `then` follows from the answer:
    it holds in every exercise that names the mistake, and stops before the solution. A variant is a way of making it, a
    name of a step -> what stands in its place. `raises`: it shows in an error on some inputs, and the others are right.
    """

    id: str
    _: KW_ONLY
    behaves_as_if: str
    symptom: str
    hint: str
    then: str
    variants: tuple = ()
    raises: bool = False

    @property
    def hints(self):
        return self.hint, self.then


def read_mistakes(path, **variants):
    """Return the mistakes of a file of words, a table each, named by the id; and by the id the variants of some."""
    words = tomllib.loads(path.read_text("utf-8"))
    return tuple(Mistake(id, variants=variants.get(id, ()), **told) for id, told in words.items())


def scaled_by(factor):
    """Replace the scale by `factor(steps)`."""
    return {"scaled_scores": lambda s: s.scores * factor(s)}


def scaled_behind_a_mask_by(factor):
    """Replace the scale by `factor(steps)` where there is a mask."""
    return scaled_by(lambda s: s.q.shape[-1] ** -0.5 if s.mask is None else factor(s))


def masked_by(change):
    """Replace how the mask enters the scores; without a mask nothing changes."""
    return {"masked_scores": lambda s: s.scaled_scores if s.mask is None else change(s)}


def allowed_by(change):
    """Replace which keys the mask allows by `change(mask, steps)`."""
    return {"allowed": lambda s: change(s.mask, s)}


def filled_with(value):
    """Replace the -inf of blocked scores."""
    return {"fill": lambda s: value}


def weights_by(change):
    """Replace the softmax by `change(masked scores, axis)`."""
    return {"weights": lambda s: change(s.masked_scores, s.axis)}

"""What a mistake is, and the ways of making one that are used all over the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """A named mistake: what it does, what you would see, and a hint that does not give the answer away."""

    id: str
    does: str
    see: str
    hint: str
    ways: tuple = ()
    accepted: bool = False  # right, but worth a remark


def scaled_by(factor):
    """Replace the scale by `factor(steps)`."""
    return {"scaled": lambda s: s.scores * factor(s)}


def masked_by(change):
    """Replace how the mask enters the scores; without a mask nothing changes."""
    return {"masked": lambda s: s.scaled if s.mask is None else change(s)}


def weights_by(change):
    """Replace the softmax by `change(masked scores, axis)`."""
    return {"weights": lambda s: change(s.masked, s.axis)}

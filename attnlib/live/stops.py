"""What a model does at each d_k, as a file or a model gives it: looked at once, when a view is made."""

from typing import Any, NamedTuple

import numpy as np

from ..core import softmax
from ..svg import visible

FORM = "live.ribbons and live.speaking show a dict with prompt, words, layer, head, d_k and stops"


class Stop(NamedTuple):
    """One d_k: the map of the head, the likely next tokens, what the model writes, its loss by text."""

    d_k: float
    weights: np.ndarray
    next: list[tuple[str, float]]
    text: str
    loss: dict[str, float]


class Stops(NamedTuple):
    """The tokens of a prompt, the head that is shown, the model's own d_k, and all stops by rising d_k.

    Some have scores of all heads, and a question with answers to guess.
    """

    words: list[str]
    layer: int
    head: int
    own: float
    by: dict[float, Any]  # d_k -> Stop, or what returns one
    scores: Any  # (layers, heads, n, n), or None
    asks: tuple[str, list[str]] | None

    def at(self, d_k: float) -> Stop:
        """Return the stop of this d_k, measured if it has not been."""
        if callable(self.by[d_k]):
            self.by[d_k] = _stop(self.by[d_k](), len(self.words), False)
        return self.by[d_k]

    @property
    def stops(self) -> list[Stop]:
        """Those that are measured."""
        return [stop for stop in self.by.values() if not callable(stop)]

    @property
    def d_ks(self) -> list[float]:
        """All d_k that the slider has; where one stop is known, as of a model that was watched, those around it."""
        return [*self.by] if len(self.by) > 1 else [self.own * 4.0**k for k in range(-3, 4)]

    def maps(self, d_k: float, layer: Any = slice(None), head: Any = slice(None)) -> np.ndarray:
        """Return weights of heads as they were trained, but divided by another sqrt(d_k)."""
        return softmax(self.scores[layer, head] * (self.own / d_k) ** 0.5)

    def says(self, stop: Stop) -> str:
        """Return in words what the model says at a stop, and on which side of its own d_k that lies."""
        word = visible(stop.next[0][0])
        if stop.d_k == self.own:
            return f"The model says {word}."
        if stop.next[0][0] == self.at(self.own).next[0][0]:
            return f"It still says “{word}”."
        return f"{'Too sharp' if stop.d_k < self.own else 'Too pale'}: it says “{word}”."


def parse_stops(given: Any, *, writes: bool = False) -> Stops:
    """Return the `Stops` of a dict; with `writes`, each stop must hold what the model writes, and its loss.

    Raises
    ------
    TypeError, ValueError
        If it is no such dict, or if its numbers do not fit its words.
    """
    if not isinstance(given, dict):
        raise TypeError(f"{FORM}, got {type(given).__name__}. Fix: one of the stored results, by its name.")
    missing = [name for name in ("words", "layer", "head", "d_k", "stops") if name not in given]
    if missing:
        has = ", ".join(map(str, given)) or "none"
        raise ValueError(f"{FORM}; missing here: {', '.join(missing)} (it has {has}). Fix: choose one by its name.")
    words, stops = list(given["words"]), given["stops"]
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError(f"words must be the tokens of the prompt, at least one, got {words!r:.60}. Fix: a prompt.")
    if not isinstance(stops, dict):
        stops = [_stop(stop, len(words), writes) for stop in stops]
    d_ks = sorted(stops if isinstance(stops, dict) else (stop.d_k for stop in stops))
    if writes and (len({(*stop.loss,) for stop in stops}) > 1 or not stops[0].loss):
        raise ValueError("loss must name the same texts at every stop, at least one. Fix: record all of them.")
    fewest = 2 if given.get("scores") is None else 1
    if len(set(d_ks)) < max(fewest, len(d_ks)) or given["d_k"] not in d_ks:
        raise ValueError(
            f"stops must hold two or more different d_k, and the model's own {given['d_k']} among them, got {d_ks}. "
            f"Fix: add a stop at {given['d_k']}."
        )
    by = dict(stops) if isinstance(stops, dict) else {stop.d_k: stop for stop in sorted(stops, key=lambda s: s.d_k)}
    scores = None if given.get("scores") is None else np.asarray(given["scores"])
    if scores is not None and (scores.ndim != 4 or scores.shape[2:] != (len(words),) * 2):
        raise ValueError(
            f"scores must be (layers, heads, n, n) for {len(words)} words, got {scores.shape}. Fix: those of all heads."
        )
    return Stops(words, given["layer"], given["head"], given["d_k"], by, scores, given.get("asks"))


def _stop(given, n, writes):
    """Return one stop, checked."""
    wanted = ["d_k", "weights", "next", *(["text", "loss"] if writes else [])]
    missing = [name for name in wanted if name not in given]
    if missing:
        raise ValueError(f"each stop must hold {', '.join(wanted)}; missing: {', '.join(missing)}. Fix: record it.")
    d_k = given["d_k"]
    rows = given["weights"]
    try:
        if [len(row) for row in rows] == [*range(1, n + 1)]:  # a causal map, without the zeros beside its diagonal
            rows = [[*row, *[0.0] * (n - len(row))] for row in rows]
        weights, came = np.asarray(rows, dtype=float), ""
    except (TypeError, ValueError):
        weights, came = np.empty(0), "rows of different lengths, or no numbers"
    if weights.shape != (n, n):
        raise ValueError(
            f"weights must be ({n}, {n}), one row and one column for each of the words, or rows of 1 to {n} numbers; "
            f"got {came or weights.shape} at d_k = {d_k}. Fix: the whole map of one head."
        )
    sums = weights.sum(-1)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (np.abs(sums - 1) < 0.01).all()):
        raise ValueError(
            f"each row of weights must be a share, none negative and 1 in all, got sums from {sums.min():.3g} to "
            f"{sums.max():.3g} at d_k = {d_k}. Fix: the weights after softmax."
        )
    following = [(str(token), float(p)) for token, p in given["next"]]
    loss = {str(name): float(value) for name, value in given.get("loss", {}).items()}
    if not np.isfinite(list(loss.values())).all():
        raise ValueError(f"each loss must be finite, got {loss} at d_k = {d_k}. Fix: look for NaN in the logits.")
    if not d_k > 0 or not following:
        raise ValueError(
            f"a stop needs a positive d_k and one next token or more, got {d_k}, {following}. Fix: add them."
        )
    return Stop(d_k, weights, following, str(given.get("text", "")), loss)

"""What an examination says: findings, shown as a table."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .columns import align


class CouldNotTell(Exception):
    """A probe does not apply, or the module does not show what it needs."""


class Finding(NamedTuple):
    """One line of a diagnosis."""

    probe: str
    verdict: str  # "ok", "beware", "wrong" or "could not tell"
    measured: str
    look_at: str


class Place(NamedTuple):
    """One line of a report on a whole model: a finding, and the calls that it is about."""

    where: str
    probe: str
    verdict: str
    measured: str
    look_at: str


class Diagnosis(tuple):
    """All findings, in order. Index it by the name of a probe; it shows itself as a table."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return next(finding for finding in self if finding.probe == key)
        return super().__getitem__(key)

    @property
    def wrong(self) -> list[str]:
        """Names of the probes that found something wrong."""
        return [finding.probe for finding in self if finding.verdict == "wrong"]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: for ``assert diagnose(...).ok`` in a test."""
        return not self.wrong

    @property
    def read_on(self) -> str:
        """Where bugs with such findings stand, or nothing: none there has "allowed keys"."""
        found = [one for one in self if isinstance(one, Finding) and one.probe != "allowed keys"]
        ill = any(one.verdict in ("wrong", "beware") for one in found)
        return "Bugs with such findings, each with its line: Cases by symptom, docs/book/symptoms.md" if ill else ""

    def _titles(self):
        return [name.replace("_", " ") for name in (self[0] if self else Finding)._fields]

    def __repr__(self) -> str:
        return align([self._titles(), *self])

    def _repr_html_(self):
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
            for row in self
        )
        head = "".join(f'<th style="text-align:left">{title}</th>' for title in self._titles())
        foot = '<caption style="caption-side:bottom;text-align:left;color:currentColor">'
        foot = f"{foot}{self.read_on}</caption>" if self.read_on else ""
        head = f"{foot}<thead><tr>{head}</tr></thead>"
        return f'<table style="color:currentColor">{head}<tbody>{body}</tbody></table>'


class Report(Diagnosis):
    """What is wrong, strange or undecided in the calls of a model; it shows itself as a table, and says how many."""

    calls = 0
    unseen = "positions; groups of heads; a causal mask no layer has; padding after causal text; what training decides"

    @classmethod
    def of(cls, found: Iterable[Sequence[Any]], calls: int) -> "Report":
        """Return findings by the numbers of the calls that they are about; `calls` is how many were examined."""
        places = [Place(_where(at), *finding) for at, *finding in found]
        report = cls(sorted(places, key=lambda place: int(re.findall(r"\d+", place.where)[0])))
        report.calls = calls
        return report

    def __repr__(self) -> str:
        table = super().__repr__() if self else "nothing wrong or strange"
        return f"{table}\n{self.calls} calls examined. What this cannot see:\n{self.unseen}."


@dataclass(repr=False, eq=False)
class Grid:
    """Calls by heads, for `live.grid`. It shows itself as a table: at how many keys a query of each head looks."""

    calls: Sequence[Any]
    titles: list[str]  # call and head of each small map, for plot.head_grid(np.concatenate(grid.maps), titles=...)
    keys: tuple[np.ndarray, ...]  # of each call (h,): the mean of exp(entropy), which is n for equal weights on n keys
    maps: tuple[np.ndarray, ...]  # of each call (h, rows, columns)

    def __repr__(self) -> str:
        heads = [f"head {head}" for head in range(max(map(len, self.keys)))]
        rows = [[str(c.number), c.path, *(f"{x:.1f}" for x in k)] for c, k in zip(self.calls, self.keys, strict=True)]
        return align([["", "module", *heads], *rows])


def few(words: Sequence[str], most: int = 3) -> str:
    """Return the first of some words as a list, and dots where there are more."""
    return ", ".join(words[:most]) + ", ..." * (len(words) > most)


def _where(calls):
    """Return the numbers of calls and their paths, with a star for the numbers of several; words stay as they are."""
    if isinstance(calls, str):
        return calls
    paths = dict.fromkeys(call.path if len(calls) == 1 else re.sub(r"\d+", "*", call.path) for call in calls)
    return f"{few([str(call.number) for call in calls], 6)} {' and '.join(paths)}"

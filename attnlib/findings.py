"""What an examination says: findings, shown as a table."""

import html
from typing import Any, NamedTuple

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


# Probes with which no bug stands in docs/book/symptoms.md, the page Cases by symptom.
ELSEWHERE = {"layout", "allowed keys"}


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
        """Where bugs with such findings stand, or nothing if none of these findings fits."""
        fits = any(
            isinstance(one, Finding) and one.verdict in ("wrong", "beware") and one.probe not in ELSEWHERE
            for one in self
        )
        return "Bugs with such findings, each with its line: Cases by symptom, docs/book/symptoms.md" if fits else ""

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
        foot = f'<caption style="caption-side:bottom;text-align:left;color:currentColor">{self.read_on}</caption>'
        head = f"{foot if self.read_on else ''}<thead><tr>{head}</tr></thead>"
        return f'<table style="color:currentColor">{head}<tbody>{body}</tbody></table>'

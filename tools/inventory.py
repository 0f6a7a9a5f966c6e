"""A test before and after a course on attention: write its forms, and say what the answers of a class show.

python -m tools.inventory forms               docs/inventory/form_A.md and form_B.md, from items.toml
python -m tools.inventory answers.csv         gain and its interval, items, mistakes

docs/inventory/README.md says how the test is given and how the table of answers looks.
"""

import csv
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .series import ROOT, tomllib

FOLDER = ROOT / "docs" / "inventory"
ITEMS = tomllib.loads((FOLDER / "items.toml").read_text("utf-8"))["item"]
LETTERS, RESAMPLES = "abcd", 4000


class Sheet(NamedTuple):
    """One form as one person filled it in; a letter or "" for each item."""

    person: str
    group: str
    when: str
    form: str
    letters: tuple

    @property
    def chosen(self):
        """What each letter stands for: "right", the id of a mistake, or "" where nothing was chosen."""
        return [item[self.form][x][1] if x else "" for item, x in zip(ITEMS, self.letters, strict=True)]

    @property
    def right(self):
        return np.array([choice == "right" for choice in self.chosen], dtype=float)  # (items,)


# --- the forms


def form(name):
    """Return a form to print, as Markdown; its options say nothing of mistakes."""
    lines = [f"# Attention, form {name}", "", "Your code: ____________", ""]
    lines += [
        "Choose one letter for each question; leave out what you do not know. Tokens and features are counted from 1.",
        "",
    ]
    for i, item in enumerate(ITEMS, 1):
        lines += [f"**{i}.** {item[name]['asked']}", ""]
        lines += [f"- **{letter}** {item[name][letter][0]}" for letter in LETTERS]
        lines.append("")
    return "\n".join(lines)


# --- the answers


def read(path):
    """Return the Sheets of a table of answers; raise ValueError for one that cannot be read."""
    columns = ["person", "group", "when", "form", *map(str, range(1, len(ITEMS) + 1))]
    with path.open(encoding="utf-8-sig", newline="") as file:  # a spreadsheet may write a mark before the first name
        head, *rows = [row for row in csv.reader(file) if row] or [[]]
    if not rows or head != columns:
        came = head if rows else "no row"
        raise ValueError(
            f"{path.name}: expected the columns {','.join(columns)}; got {came}. "
            "Fix: name them so, with commas between them."
        )
    sheets = []
    for line, row in enumerate(rows, 2):
        where = f"{path.name}, line {line}"
        # Without this, a forgotten comma would move all later answers by one question.
        if len(row) != len(columns):
            raise ValueError(
                f"{where}: expected {len(columns)} cells, got {len(row)}. Fix: an empty cell for a question left out."
            )
        sheets.append(Sheet(*row[:4], tuple(cell.strip().lower() for cell in row[4:])))
        _check(sheets[-1], where)
    twice = [key for key, n in Counter((s.person, s.when) for s in sheets).items() if n > 1]
    if twice:
        raise ValueError(f"{path.name}: {twice[0]} is there twice. Fix: one line for each code, before and after.")
    return sheets


def _check(sheet, where):
    for name, value, wanted in (
        ("group", sheet.group, ("course", "control")),
        ("when", sheet.when, ("before", "after")),
        ("form", sheet.form, ("A", "B")),
    ):
        if value not in wanted:
            raise ValueError(f"{where}: {name} is {wanted[0]} or {wanted[1]}, got {value!r}. Fix: write one of them.")
    for i, letter in enumerate(sheet.letters, 1):
        if letter not in ("", *LETTERS):
            raise ValueError(
                f"{where}: question {i} has {letter!r}. Expected a, b, c, d or nothing. Fix: leave it empty."
            )


def gains(sheets, group):
    """Return what each person of a group who wrote both times got right more, as a share of the items, (n,)."""
    shares = {(sheet.person, sheet.when): sheet.right.mean() for sheet in sheets if sheet.group == group}
    both = sorted(person for person, when in shares if when == "before" and (person, "after") in shares)
    return np.array([shares[person, "after"] - shares[person, "before"] for person in both])


def interval(*samples, seed=0):
    """Return (estimate, low, high): the mean of a sample, or of the first less that of the second, with 95 %.

    A bootstrap-t (REFERENCES.md): people are drawn again with replacement within each sample, and the distance of each
    draw from the estimate is measured in its own standard errors.
    """
    if min(map(len, samples)) < 5:
        raise ValueError(
            f"an interval needs 5 people who wrote both times, got {min(map(len, samples))}. Fix: report counts only."
        )
    rng, signs = np.random.default_rng(seed), (1, -1)
    drawn = [rng.choice(x, (RESAMPLES, len(x))) for x in samples]  # (RESAMPLES, n) each
    estimate = sum(sign * x.mean() for sign, x in zip(signs, samples, strict=False))
    means = sum(sign * x.mean(-1) for sign, x in zip(signs, drawn, strict=False))
    error = np.sqrt(sum(x.var(ddof=1) / len(x) for x in samples))
    errors = np.sqrt(sum(x.var(-1, ddof=1) / x.shape[-1] for x in drawn))
    usable = errors > 0
    low, high = np.quantile((means[usable] - estimate) / errors[usable], [0.025, 0.975]) if usable.any() else (0, 0)
    return estimate, estimate - high * error, estimate - low * error


def items(sheets):
    """Return (difficulty, discrimination) of each item, (items,) both.

    Difficulty is the share of right answers; discrimination the correlation of an item with the sum of all others, NaN
    where everybody or nobody is right.
    """
    right = np.array([sheet.right for sheet in sheets])  # (n, items)
    rest = right.sum(-1, keepdims=True) - right
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = right - right.mean(0), rest - rest.mean(0)
        return right.mean(0), (x * y).mean(0) / np.sqrt((x**2).mean(0) * (y**2).mean(0))


# --- what is printed


def told(sheets):
    """Return what the answers of a class show, as text."""
    lines, found = [], {}
    for group in ("course", "control"):
        found[group] = gains(sheets, group)
        if len(found[group]):
            lines.append(f"{group}: {len(found[group])} wrote both times; gain: {_with_interval(found[group])}")
    if len(found["control"]):
        lines.append(f"course less control: {_with_interval(found['course'], found['control'])}")
    else:
        lines.append("no control: the gain may come from anything that happened in between")
    wide = max(len(item["topic"]) for item in ITEMS)
    lines += ["", f"{'item':<{wide + 3}}{'form':>5}{'before':>8}{'after':>7}{'discrimination':>16}"]
    for name in ("A", "B"):
        of_form = {when: [s for s in sheets if (s.form, s.when) == (name, when)] for when in ("before", "after")}
        share = {when: items(some)[0] if some else [np.nan] * len(ITEMS) for when, some in of_form.items()}
        apart = items(of_form["before"])[1] if of_form["before"] else [np.nan] * len(ITEMS)
        for i, item in enumerate(ITEMS):
            before, after = share["before"][i], share["after"][i]
            lines.append(f"{i + 1:>2} {item['topic']:<{wide}}{name:>5}{before:>8.2f}{after:>7.2f}{apart[i]:>16.2f}")
    chosen = {when: Counter(c for s in sheets if s.when == when for c in s.chosen) for when in ("before", "after")}
    lines += ["", f"{'mistake':<{wide + 3}}{'before':>13}{'after':>7}"]
    for id, n in chosen["before"].most_common():
        if id not in ("right", ""):
            lines.append(f"{id:<{wide + 3}}{n:>13}{chosen['after'][id]:>7}")
    return "\n".join(lines)


def _with_interval(*samples):
    try:
        estimate, low, high = interval(*samples)
    except ValueError as error:
        return str(error)
    return f"{estimate:+.2f} of the items, 95 % interval {low:+.2f} to {high:+.2f}"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] != "forms":
        try:
            print(told(read(Path(sys.argv[1]))))
        except (OSError, ValueError) as error:
            sys.exit(f"inventory: {error}")
        return
    for name in ("A", "B"):
        path = FOLDER / f"form_{name}.md"
        path.write_text(form(name), encoding="utf-8", newline="\n")
        print(path)


if __name__ == "__main__":
    main()

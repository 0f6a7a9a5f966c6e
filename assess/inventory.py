"""A test before and after a course on attention: write its forms, and say what the answers of a class show.

python -m assess.inventory forms               docs/inventory/form_A.md, form_B.md and answers.md, from items.toml
python -m assess.inventory notebook            docs/inventory/analysis.ipynb, from analysis.py there
python -m assess.inventory answers.csv         gains with intervals, items, mistakes
python -m assess.inventory answers.csv 03      the same, counting only the items that notebooks 01 to 03 teach

docs/inventory/README.md says how the test is given and how the table of answers looks.
"""

import csv
import math
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tools.numbering import NUMBERS, ROOT
from tools.series import tomllib

from . import inventory_answers

FOLDER = ROOT / "docs" / "inventory"
ITEMS = tomllib.loads((FOLDER / "items.toml").read_text("utf-8"))["item"]
LETTERS, RESAMPLES = "abcd", 4000
GROUPS, TIMES = ("course", "control"), ("before", "after", "later")
RIGHT = "right"


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
        return np.array([choice == RIGHT for choice in self.chosen], dtype=float)  # (items,)


def taught_until(number):
    """Return which items the notebooks up to `number`, such as "03", teach, (items,) of bool."""
    return np.array([NUMBERS[item["taught"]] <= number for item in ITEMS])


ALL = taught_until("99")


# --- the forms


def form(name):
    """Return a form to print, as Markdown; its options say nothing of mistakes."""
    lines = [f"# Attention, form {name}", "", "Your code: ____________", ""]
    lines += [
        "Choose one letter for each question; leave out what you do not know. Tokens are counted from 1.",
        "",
    ]
    for i, item in enumerate(ITEMS, 1):
        lines += [f"**{i}.** {item[name]['asked'].strip()}", ""]
        lines += [f"- **{letter}** {item[name][letter][0]}" for letter in LETTERS]
        lines.append("")
    return "\n".join(lines)


def answers_page():
    """Return the table of what each mistake answers, as Markdown."""
    rows = {
        id: inventory_answers.rows(ITEMS, id) for id in sorted({id for i in range(12) for id in mistakes_offered(i)})
    }
    lines = [
        "# What each mistake answers",
        "",
        "Written by `python -m assess.inventory forms`. Somebody who has this mistake and no other gives these letters",
        "in form A and in form B. Empty: right. A dash: an answer that the form does not offer. No mistake gets an",
        "item right in which it matters, and no rule of thumb settles more than one, but the last one, which knows",
        "what *causal* means: `assess/test_inventory.py`.",
        "",
        "| mistake | " + " | ".join(str(i) for i in range(1, len(ITEMS) + 1)) + " |",
        "|---|" + "---|" * len(ITEMS),
    ]
    lines += [f"| `{id}` | " + " | ".join(cells) + " |" for id, cells in rows.items()]
    right = [f"{_letter(item, 'A', RIGHT)} {_letter(item, 'B', RIGHT)}" for item in ITEMS]
    lines += ["| right | " + " | ".join(right) + " |", "", "| rule of thumb | settles in A | in B |", "|---|---|---|"]
    for rule in inventory_answers.RULES:
        found = [", ".join(map(str, inventory_answers.solved_by(rule, ITEMS, name))) or "none" for name in "AB"]
        lines.append(f"| {rule.__name__.replace('_', ' ')} | {found[0]} | {found[1]} |")
    return "\n".join([*lines, ""])


def mistakes_offered(i):
    """Return the mistakes that item i offers; both forms offer the same."""
    return [ITEMS[i]["A"][x][1] for x in LETTERS if ITEMS[i]["A"][x][1] != RIGHT]


def _letter(item, name, id):
    return next(x for x in LETTERS if item[name][x][1] == id)


# --- the answers


def parse_sheets(path):
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
        raise ValueError(f"{path.name}: {twice[0]} is there twice. Fix: one line for each code and time.")
    return sheets


def _check(sheet, where):
    for name, value, wanted in (
        ("group", sheet.group, GROUPS),
        ("when", sheet.when, TIMES),
        ("form", sheet.form, ("A", "B")),
    ):
        if value not in wanted:
            known = " or ".join([", ".join(wanted[:-1]), wanted[-1]])
            raise ValueError(f"{where}: {name} is {known}, got {value!r}. Fix: write one of them.")
    for i, letter in enumerate(sheet.letters, 1):
        if letter not in ("", *LETTERS):
            raise ValueError(
                f"{where}: question {i} has {letter!r}. Expected a, b, c, d or nothing. Fix: leave it empty."
            )


def gains(sheets, group, until="after", counted=ALL):
    """Return what each person of a group got right more at `until` than before, as a share of counted items, (n,)."""
    shares = {(s.person, s.when): s.right[counted].mean() for s in sheets if s.group == group}
    both = sorted(person for person, when in shares if when == "before" and (person, until) in shares)
    return np.array([shares[person, until] - shares[person, "before"] for person in both])


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


def correlation_text(r, n):
    """Return a correlation among n people with its 95 % interval, by Fisher's z; below ten people it says nothing."""
    if n < 10 or np.isnan(r):
        return "-"
    z, half = np.arctanh(np.clip(r, -0.999, 0.999)), 1.96 / np.sqrt(n - 3)
    low, high = np.tanh([z - half, z + half])
    return f"{r:+.2f} ({low:+.2f} to {high:+.2f})"


def mistakes(sheets):
    """Return of each mistake (offered, chosen): in how many questions of these sheets it stood, and was taken.

    A mistake that stands in three items is chosen more often than one that stands in one, so compare chosen / offered.
    """
    stood = Counter(id for s in sheets for i in range(len(ITEMS)) for id in mistakes_offered(i))
    chosen = Counter(id for s in sheets for id in s.chosen)
    return {id: (n, chosen[id]) for id, n in stood.items()}


def people(gain, spread, power=0.8):
    """Return how many people each of two equal groups needs for a gain to be seen with this power.

    2 (z_0.975 + z_power)^2 (spread / gain)^2, rounded up: the usual two-sided comparison of two means at 5 %.

    Parameters
    ----------
    gain : float
        The difference between the groups that should be seen, as a share of the items.
    spread : float
        The standard deviation of people's gains: of a class before, or 0.15 to 0.2 for twelve questions.
    """
    from statistics import NormalDist

    z = NormalDist().inv_cdf
    return math.ceil(2 * ((z(0.975) + z(power)) * spread / gain) ** 2)


# --- what is printed


def class_report(sheets, counted=ALL):
    """Return what the answers of a class show, as text."""
    lines = []
    for until in TIMES[1:]:
        gain = {group: gains(sheets, group, until, counted) for group in GROUPS}
        for group in GROUPS:
            if len(gain[group]):
                lines.append(f"{group}, before to {until}: {len(gain[group])} people, {_with_interval(gain[group])}")
        if len(gain["course"]) and len(gain["control"]):
            lines.append(f"course less control, {until}: {_with_interval(gain['course'], gain['control'])}")
    if not any(s.group == "control" for s in sheets):
        lines.append("no control: the gain may come from anything that happened in between")
    return "\n\n".join(["\n".join(lines), _items_table(sheets), _mistakes_table(sheets)])


def _columns(sheets):
    """Return the group and time of each column that has sheets."""
    return [(g, when) for g in GROUPS for when in TIMES if any((s.group, s.when) == (g, when) for s in sheets)]


def _of(sheets, **wanted):
    return [s for s in sheets if all(getattr(s, name) == value for name, value in wanted.items())]


def _items_table(sheets):
    columns, wide = _columns(sheets), max(len(item["topic"]) for item in ITEMS) + 3
    head = "".join(f"{g + ' ' + when:>16}" for g, when in columns)
    lines = [f"{'share of right answers':<{wide}}{'form':>5}{head}{'discrimination':>26}"]
    for name in ("A", "B"):
        before = _of(sheets, form=name, when="before")
        apart = items(before)[1] if before else np.full(len(ITEMS), np.nan)
        shares = [_of(sheets, group=g, when=when, form=name) for g, when in columns]
        shares = [items(some)[0] if some else np.full(len(ITEMS), np.nan) for some in shares]
        for i, item in enumerate(ITEMS):
            cells = "".join(f"{f'{share[i]:.2f}'.replace('nan', '-'):>16}" for share in shares)
            told = correlation_text(apart[i], len(before))
            lines.append(f"{f'{i + 1:>2} ' + item['topic']:<{wide}}{name:>5}{cells}{told:>26}")
    return "\n".join(lines)


def _mistakes_table(sheets):
    columns = _columns(sheets)
    counts = [mistakes(_of(sheets, group=g, when=when)) for g, when in columns]
    wide = max(map(len, counts[0])) + 2
    lines = [f"{'chosen, of times offered':<{wide}}" + "".join(f"{g + ' ' + when:>16}" for g, when in columns)]
    for id in sorted(counts[0], key=lambda id: -counts[0][id][1] / counts[0][id][0]):
        cells = [f"{made} of {n} {made / n:.2f}" for n, made in (count[id] for count in counts)]
        lines.append(f"{id:<{wide}}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def _with_interval(*samples):
    try:
        estimate, low, high = interval(*samples)
    except ValueError as error:
        return str(error)
    return f"{estimate:+.2f} of the items, 95 % interval {low:+.2f} to {high:+.2f}"


def main():
    given = sys.argv[1:]
    if not 1 <= len(given) <= 2 or (len(given) == 2 and not any(NUMBERS[item["taught"]] == given[1] for item in ITEMS)):
        sys.exit(__doc__)
    if given == ["notebook"]:
        return write_page(FOLDER / "analysis.ipynb", notebook())
    if given != ["forms"]:
        try:
            print(class_report(parse_sheets(Path(given[0])), taught_until(given[1]) if given[1:] else ALL))
        except (OSError, ValueError) as error:
            sys.exit(f"inventory: {error}")
        return
    for name in ("A", "B"):
        write_page(FOLDER / f"form_{name}.md", form(name))
    write_page(FOLDER / "answers.md", answers_page())


def write_page(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")
    print(path.relative_to(ROOT))


def notebook():
    """Execute docs/inventory/analysis.py as a notebook, and return it with its outputs as JSON."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    from tools.build_notebooks import METADATA

    made = jupytext.read(FOLDER / "analysis.py")
    made.metadata = nbformat.from_dict(METADATA)
    made.nbformat, made.nbformat_minor = 4, 5
    for i, cell in enumerate(made.cells):
        cell.id = f"cell-{i}"
    NotebookClient(made, timeout=300, record_timing=False, resources={"metadata": {"path": FOLDER}}).execute()
    made.metadata = nbformat.from_dict(METADATA)
    return nbformat.writes(made)


if __name__ == "__main__":
    main()

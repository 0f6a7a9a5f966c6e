"""One row of attention in one picture: query, keys, scores, weights, output, and what is added to the vector.

Ribbons are as wide as the weights. Each leads from a weight to a value and on into the output, whose bar they fill
together; the ribbon of a value of zeros is hollow, because it takes its share and brings nothing.
"""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np

from ..colours import KEY, LINE, QUERY, VALUE
from ..symbols import speech
from . import parts
from .parts import NO_FILL, tag, target, text

STAGES = ("query", "keys", "scores", "weights", "output", "added")
ZERO, FAINT = 5e-4, 0.6  # less is written as 0.000; opacity of zeros and side remarks, 4.5 : 1 and more
# Names of the words, of their features, of those of queries and keys, and of values; the word that looks, by number.
Names = namedtuple("Names", "words features asked given row")
Number = namedtuple("Number", "value shown how")  # how it is written, and its arithmetic


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything stands, in pixels: y is the top of a row of cells, as text has it the line of a name.

    As it is by default, names stand beside their rows, on a wide page.
    """

    wide: int = 600  # of the whole picture
    high: int = 512
    left: int = 128  # where the columns begin, and how wide all of them are
    across: int = 468
    key_cell: int = 34  # widths of a number of a query or key, of a value, of the output
    value_cell: int = 55
    output_cell: int = 96
    full: int = 108  # the width of a ribbon whose weight is 1
    unit: int = 10  # the length of the bar of a score of 1
    above: bool = False  # do the names of rows stand above them, or beside?
    x: int = 17  # y of the vector, and of the names of the words
    head: int = 66
    names_size: int = 16  # of the words of queries and keys
    query: tuple[int, int] = (20, 86)  # (x, y)
    steps: tuple[int, ...] = (120, 149, 174, 207)  # y of the score, the divided score, its exponential, the weight
    value: int = 256
    output: int = 328
    names: int = 389
    sums: tuple[int, ...] = (393, 416, 442)  # y of the three rows of the sum: as it was, what is added, after
    line: int = 490


BESIDE = Layout()
ABOVE = Layout(
    wide=358,
    high=706,
    left=18,
    across=336,
    key_cell=27,
    value_cell=41,
    output_cell=92,
    full=84,
    unit=8,
    above=True,
    x=34,
    head=122,
    names_size=13,
    query=(18, 76),
    steps=(192, 236, 276, 314),
    value=382,
    output=474,
    names=540,
    sums=(544, 583, 622),
    line=684,
)


def _plain(value):
    """Return a whole number as it is, and others with three decimals or four digits."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value + 0.0:.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"


def numbers(example, W_O, trace, names, root):
    """Return {part: its numbers} of one row, whose trace has one query and whose scores are divided by `root`."""
    x, own, words = example.x, example.x[names.row], names.words
    scores, scaled, weights, output = (x[0] for x in (trace.scores, trace.scaled_scores, trace.weights, trace.output))
    exp, added = np.exp(scaled), output @ W_O
    total = f"({' + '.join(map(_plain, exp))})"
    numbers = {"x": [_number(f"{f} of {words[names.row]}", v) for f, v in zip(names.features, own, strict=True)]}
    numbers["query"] = _project(f"query of {words[names.row]}", own, example.W_Q, names.features, names.asked)
    for k, word in enumerate(words):
        numbers[f"key {k}"] = _project(f"key of {word}", x[k], example.W_K, names.features, names.asked)
        numbers[f"value {k}"] = _project(f"value of {word}", x[k], example.W_V, names.features, names.given)
        steps = {
            "scores": (f"score of {word}", scores[k], _terms(trace.query[0], trace.key[k])),
            "scaled_scores": ("divided", scaled[k], f"{_plain(scores[k])} / {root}"),
            "exp": ("exp", exp[k], f"exp({_plain(scaled[k])})"),
            "weights": (f"weight of {word}", weights[k], f"{_plain(exp[k])} / {total}", 3),
        }
        for part, number in steps.items():
            numbers.setdefault(part, []).append(_number(*number))
    numbers["output"] = [
        _number(name, output[c], _terms(weights.round(4), trace.value[:, c]), 3) for c, name in enumerate(names.given)
    ]
    for c, (f, was, more) in enumerate(zip(names.features, own, added, strict=True)):
        how = f"{_terms(output.round(4), W_O[:, c])}, by W_O"
        numbers.setdefault("added", []).append(_number(f"added to {f}", more, how))
        numbers.setdefault("kept", []).append(_number(f"{f}, as it was", was))
        numbers.setdefault("after", []).append(_number(f"{f} now", was + more, f"{_plain(was)} + {_plain(more)}"))
    return numbers


def _number(what, value, how="", places=None):
    shown = _plain(float(value)) if places is None else f"{value:.{places}f}"
    return Number(float(value), shown, f"{what}: {shown}" + (f" = {how}" if how else ""))


def _terms(left, right):
    """Return a dot product in full."""
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return " + ".join(f"{a:.4g}·{f'({b:.4g})' if b < 0 else f'{b:.4g}'}" for a, b in pairs)


def _project(what, vector, matrix, features, columns):
    """Return a word times a matrix: of its features those that are not 0 are told."""
    held = [f for f in range(len(vector)) if vector[f]]
    return [
        _number(f"{what}, {name}", total, " + ".join(f"{features[f]} {vector[f]:g}·{matrix[f, c]:g}" for f in held))
        for c, (name, total) in enumerate(zip(columns, vector @ matrix, strict=True))
    ]


class OneRow:
    """The picture in one layout: what each stage fills, and a dashed box in its place until then."""

    def __init__(self, names, numbers, at, picked=None):
        self.names, self.numbers, self.at, self.picked, self.parts = names, numbers, at, picked, list(numbers)
        self.word, self.columns = names.words[names.row], [at.across / len(part) for part in names[:2]]
        self.filled, self.waiting, self.targets = ([[] for _ in range(len(STAGES) + 1)] for _ in range(3))

    def draw(self, stage, place, root, W_O, line):
        """Return the picture up to a stage; all later ones are drawn and hidden: a page fills them without a kernel."""
        self._vector()
        self._query_and_keys()
        self._steps(root)
        self._ribbons()
        self._sum(W_O)
        self._axis(*line)
        elements, hidden = [], ' visibility="hidden"'
        for k, (filled, waiting) in enumerate(zip(self.filled, self.waiting, strict=True)):
            elements.append(f'<g data-stage="{k}"{hidden * (k > stage)}>{"".join(filled)}</g>')
            elements.append(f'<g data-waits="{k}"{hidden * (k <= stage)}>{"".join(waiting)}</g>')
        elements = elements[2:] + elements[:2]  # what names a row stands above the bars
        elements += [one for targets in self.targets[: stage + 1] for one in targets]
        sums = [n.how for part in ("weights", "output", "after")[: max(0, stage - 3)] for n in self.numbers[part]]
        title = f"the row of {self.word}, from its query to what is added"
        words = f"The row of {self.word}: {', '.join(STAGES[:stage])}. {'; '.join(sums)}"
        return parts.picture(self.at.wide, self.at.high, title, words, elements, at=place)

    def _add(self, stage, *elements):
        self.filled[stage].extend(elements)

    def _centre(self, k, of=0):
        return self.at.left + (k + 0.5) * self.columns[of]

    def _cells(self, stage, part, x, y, wide, high=24, *, colour=None, names=(), bold=False, line=1, size=13):
        """Draw the numbers of a part side by side in boxes, with their arithmetic, and what waits for them."""
        count = len(self.numbers[part])
        for j, number in enumerate(self.numbers[part]):
            zero, left, middle = abs(number.value) < ZERO, x + j * wide, y + high / 2 + 5
            box = f'<rect x="{left + 1:g}" y="{y:g}" width="{wide - 2:g}" height="{high}"'
            edge = f'stroke="{colour or LINE}" stroke-width="{line}" opacity="{0.45 if zero else 1}"'
            if self.picked == (part, j):
                edge = 'stroke="currentColor" stroke-width="2.5"'
            tint = f' fill="{colour}" opacity="{0 if zero else 0.22}"/>' if colour else f"{NO_FILL}/>"
            at, anchor = (left + wide - 6, "end") if names else (left + wide / 2, "middle")
            words = text(left + 6, middle, names[j]) if names else ""
            words += text(at, middle, number.shown, size=size, anchor=anchor, bold=bold and not zero)
            opening = f"<g><title>{speech(number.how)}</title>{box}{tint}"
            faint = f'<g opacity="{FAINT if zero else 1}">{words}</g></g>'
            self._add(stage, f'{opening}{box} fill="none" {edge}/>{faint}')
        clicks = {"row": "part", "first": self.parts.index(part), "column": "place", "columns": count}
        self.targets[stage].append(target(x, y, wide * count, high, **clicks))
        waits = [(x + 1, wide * count - 2)] if line else [(x + (j + 0.5) * wide - 22, 44) for j in range(count)]
        low = 0 if line else 3  # clear of the label above
        for left, long in waits:
            box = f'<rect x="{left:g}" y="{y + low}" width="{long:g}" height="{high - low}" fill="none" '
            question = _middle(left + long / 2, y + (high + low) / 2 + 5, "?")
            self.waiting[stage].append(f'{box}stroke="{LINE}" stroke-dasharray="4 3"/>{question}')

    def _label(self, y, words, small="", colour=None, stage=0):
        """Name a row: beside it, or above it where the page is narrow; a side remark may wait for its stage."""
        x, y = (self.at.left, y - 6) if self.at.above else (20, y + (10 if small else 15))
        right = x + parts.width(words) + (14 if colour else 8)
        place = (right, y) if self.at.above else (x, y + 13 + 3 * bool(colour))
        self._add(0, tag(x, y, words, colour, anchor="start") if colour else text(x, y, words, bold=True))
        self._add(stage, f'<g opacity="{FAINT}">{text(*place, small, math=True)}</g>')

    def _vector(self):
        """Draw the vector, and the rail that carries it unchanged to where something is added to it."""
        at, end, rail = self.at, self.at.sums[1] + 11, 6 if self.at.above else 9
        down = f"M{at.left if at.above else 16} {at.x + 12}H{rail}V{end}h4"
        self._add(0, f'<path d="{down}" fill="none" stroke="{LINE}" stroke-width="3"/>', _tip(rail + 11, end, 1, 0))
        self._label(at.x + 2 - 15 * at.above, self.word, "before")
        self._names(at.x - 4, "x")
        self._cells(0, "x", at.left, at.x, self.columns[1])

    def _names(self, y, part):
        """Write the features over their columns; those that say nothing here are faint."""
        for f, name in enumerate(self.names.features):
            faint = FAINT if abs(self.numbers[part][f].value) < ZERO else 1
            self._add(0, f'<g opacity="{faint}">{_middle(self._centre(f, 1), y, name)}</g>')

    def _query_and_keys(self):
        at, wide, (x, y) = self.at, self.at.key_cell * len(self.names.asked), self.at.query
        self._add(0, f'<path d="M{6 if at.above else 9} {y + 12}H{x}" stroke="{QUERY}" stroke-width="3"/>')
        head = (x + wide + 8, y + 17) if at.above else (x, at.head)
        self._vector_of(1, "query", self.word, QUERY, head, x, y)
        for k, word in enumerate(self.names.words):
            head = self._centre(k) - (parts.width(word, self.at.names_size) + 38) / 2, at.head
            self._vector_of(2, f"key {k}", word, KEY, head, self._centre(k) - wide / 2, y + 66 * at.above)

    def _vector_of(self, stage, part, word, colour, head, x, y):
        """Draw a query or a key, its role and word, and the names of the features that are not 0 in it."""
        role = part.split()[0]
        beside = text(head[0] + parts.width(role) + 12, head[1], word, size=self.at.names_size, bold=True)
        self._add(0, tag(*head, role, colour, anchor="start"), beside)
        self._cells(stage, part, x, y, self.at.key_cell, colour=colour)
        held = ", ".join(name for name, n in zip(self.names.asked, self.numbers[part], strict=True) if n.value)
        self._add(stage, _middle(x + self.at.key_cell * len(self.names.asked) / 2, y - 4, held))

    def _steps(self, root):
        """Draw the scores and what becomes of them; a bar below a score is as long as it is large."""
        at, total = self.at, _plain(sum(n.value for n in self.numbers["exp"]))
        labels = ("score", "query · key"), (f"÷ {root}", ""), ("exp", f"sum {total}"), ("weight", "exp ÷ their sum")
        rows = zip(("scores", "scaled_scores", "exp", "weights"), at.steps, labels, (3, 4, 4, 4), strict=True)
        for part, y, (words, small), stage in rows:
            self._label(y, words, small, stage=4 if part == "exp" else 0)
            large = part in ("scores", "weights")
            self._cells(stage, part, at.left, y - 1, self.columns[0], 19, line=0, bold=large, size=16 if large else 13)
            for k, number in enumerate(self.numbers[part] if part.endswith("scores") else ()):
                long = abs(number.value) * at.unit
                self._add(stage, _bar(self._centre(k) - long / 2, y + 19, long, 4))

    def _ribbons(self):
        """Draw the weights as bars, gray from there to the values, green into the output."""
        at, given = self.at, self.names.given
        middle = self._centre(len(self.names.features) // 2, 1) - at.output_cell / 2
        top, low, end, left = at.steps[-1] + 30, at.value + 24, at.output - 6, middle - at.full / 2
        self._add(5, f'<rect x="{left:g}" y="{end}" width="{at.full}" height="6" fill="{VALUE}"/>')
        for k, number in enumerate(self.numbers["weights"]):
            wide, m, x = number.value * at.full, (low + end) / 2, self._centre(k)
            a, b, right = x - wide / 2, x + wide / 2, left + wide
            self._add(4, _bar(a, top - 10, wide, 10), _bar(a, top, wide, at.value - top, 0.35))
            brings = any(n.value for n in self.numbers[f"value {k}"])
            look = f'fill="{VALUE}" opacity="0.4"' if brings else f'fill="none" stroke="{LINE}"'
            down = f"M{a:.1f} {low}C{a:.1f} {m} {left:.1f} {m} {left:.1f} {end}H{right:.1f}"
            self._add(5, f'<path d="{down}C{right:.1f} {m} {b:.1f} {m} {b:.1f} {low}Z" {look}/>')
            left, x = right, x - at.value_cell * len(given) / 2
            self._cells(5, f"value {k}", x, at.value, at.value_cell, colour=VALUE, names=() if at.above else given)
        # Ribbons pass behind it: on a narrow page the plate holds all of it.
        named = (f"value: {', '.join(given)}", "") if at.above else ("value", "what each gives")
        self._label(at.value, *named, VALUE)
        takes = f"what {self.word}", "takes"
        self._label(at.output, "output", "" if at.above else " ".join(takes))
        for k, words in enumerate(takes if at.above else ()):  # ribbons cross what stands above the output
            place = middle + at.output_cell * len(given) / 2 + 6, at.output + 10 + 13 * k
            self._add(0, f'<g opacity="{FAINT}">{text(*place, words)}</g>')
        look, x = {"colour": VALUE, "names": given, "bold": True, "size": 16}, middle - at.output_cell * len(given) / 2
        self._cells(5, "output", x, at.output, at.output_cell, 25, **look)
        self.middle = middle

    def _sum(self, W_O):
        """Draw what is added, to what, and what comes out; arrows lead from the output to the features it goes to."""
        at, wide = self.at, self.columns[1]
        self._names(at.names, "added")
        for c, f in np.argwhere(W_O).tolist():
            x = self.middle + (c + 0.5 - len(W_O) / 2) * at.output_cell
            to, y, end = self._centre(f, 1), at.output + 26, at.names - 13
            bend = f"M{x:g} {y}C{x:g} {(y + end) / 2 + 3} {to:g} {(y + end) / 2 - 3} {to:g} {end - 4}"
            arrow = f'<path d="{bend}" fill="none" stroke="{VALUE}" stroke-width="2"/>'
            self._add(6, arrow, _tip(to, end + 1, 0, 1, VALUE))
        rows = (
            ("added", 6, "added", VALUE),
            ("kept", 0, f"+ {self.word}", None),
            ("after", 6, f"= {self.word} now", None),
        )
        for (part, stage, words, colour), y in zip(rows, at.sums, strict=True):
            self._label(y - 18 * (at.above and part == "added"), words)
            self._cells(stage, part, at.left, y, wide, 21, colour=colour, bold=part == "after")
        y = at.sums[2] - (19 if at.above else 2)
        self._add(0, f'<path d="M{at.left} {y}H{at.left + at.across}" stroke="currentColor"/>')

    def _axis(self, name, ends):
        """Draw one feature on a line between the words that have least and most of it, and the arrow that is added."""
        at, y, f = self.at, self.at.line, self.names.features.index(name)
        was, now = (self.numbers[part][f].value for part in ("x", "after"))
        least, most = (value for value, _ in ends)
        left, long = at.left + 38, at.across - 76
        begun, to = (left + long * (min(max(v, least), most) - least) / (most - least) for v in (was, now))
        self._label(y - 12, name, "" if at.above else "on a line")
        self._add(0, f'<path d="M{left} {y}h{long}" stroke="{LINE}"/>')
        marks = (*((v, w) for v, w in ends), (was, self.word))
        for x, (value, word) in zip((left, left + long, begun), marks, strict=True):
            self._add(0, _middle(x, y + 18, f"{word} {_plain(value)}"))
        way, near = (1, ends[1][1]) if now > was else (-1, ends[0][1])
        change = f"{self.word}: {name} {_plain(was)} → {_plain(now)}" + f", towards {near}" * (abs(now - was) >= ZERO)
        shaft = _bar(min(begun, to), y - 3, max(abs(to - begun) - 8, 0), 6, colour=VALUE)
        self._add(6, shaft, _tip(to, y, way, 0, VALUE))
        self._add(6, text(at.left + at.across, y - 13, change, bold=True, anchor="end"))
        self._add(0, f'<circle cx="{begun:g}" cy="{y}" r="5" fill="{LINE}"/>')


def _middle(x, y, words):
    return text(x, y, words, anchor="middle")


def _bar(x, y, wide, high, opacity=1, colour=LINE):
    return f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{high}" fill="{colour}" opacity="{opacity}"/>'


def _tip(x, y, across, down, colour=LINE):
    """Return the head of an arrow that ends at (x, y)."""
    back, up = x - 8 * across, y - 8 * down
    points = (x, y), (back - 5 * down, up - 5 * across), (back + 5 * down, up + 5 * across)
    return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}" fill="{colour}"/>'

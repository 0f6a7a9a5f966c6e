"""One row of attention weights as ribbons over a sentence: as wide as the weight, from the word that looks.

At that word all ribbons stand side by side, and together they are always as wide: a row of weights is one whole that is
shared. They part like the branches of a trunk, the nearest word inside, and then none crosses another.
"""

import html
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..colours import KEY, NEXT, PLATE, QUERY
from . import parts
from .parts import escape, exact, tag, target, text
from .tokens import length, starts_word, visible

WIDE, HIGH, FOOT = 588, 286, 140  # pixels of the picture; FOOT is where the ribbons stand on the words
BAND = 44  # width of all ribbons together
LARGEST, SMALLEST = 22, 13  # size of the words
PITCH = 31  # pixels from word to word at least: the room of a number
MARGIN, BLANK = 8, 46  # beside the sentence; width of the box of the next word at least
RISE, APART = 3.5, 3  # height of an arc: by the root of its span, so that all bend alike; above the one inside
BARS, ROW, NAME, BAR = 3, 20, 376, 84  # likely next words: how many, a row, where names begin, the longest bar
LEAST = 0.005  # weight that is drawn: less rounds to 0.00
LETTERS, BRIEF = 14, 10  # of a token in the sentence, and among the likely next ones


class Line(NamedTuple):
    """Where the words of a sentence stand."""

    size: float
    words: tuple  # as they are drawn
    groups: tuple  # the tokens in each column: one, but where the middle of a long sentence is drawn as dots
    centres: tuple
    widths: tuple
    blank: float  # where the box of the next word begins
    box: int  # its width

    def column(self, token):
        """Return the column in which a token stands."""
        return next(j for j, group in enumerate(self.groups) if token in group)


@lru_cache(maxsize=16)
def line(words, nexts):
    """Return where the words of a sentence stand, as large as they have room; `nexts` are all words of the blank.

    Examples
    --------
    >>> line(("The", " cat"), (" sat",)).words
    ('The', 'cat')
    """
    for shown in range(min(len(words), (WIDE - 2 * MARGIN) // PITCH + 1), 0, -1):  # more never have room
        groups = grouped(len(words), shown)
        for size in np.arange(LARGEST, SMALLEST - 0.5, -0.5):
            made, end = _set(words, groups, nexts, float(size))
            if end <= WIDE - MARGIN:
                return made._replace(
                    centres=tuple(x + (WIDE - MARGIN - end) / 2 for x in made.centres),
                    blank=made.blank + (WIDE - MARGIN - end) / 2,
                )
    return made


def grouped(n, shown):
    """Return the tokens of each place where `shown` of `n` have room.

    Examples
    --------
    >>> grouped(3, 3), grouped(5, 3)
    ([(0,), (1,), (2,)], [(0,), (1, 2, 3), (4,)])
    """
    left, groups = n - shown, [(i,) for i in range(n)]
    # The first token often takes much: it stays, and dots stand for what follows it.
    return [(0,), tuple(range(1, left + 2)), *groups[left + 2 :]] if left else groups


def written(words, group, letters):
    """Return what stands at a place: its token, or dots."""
    return parts.cut(visible(words[group[0]]), letters) if len(group) == 1 else "…"


def _set(words, groups, nexts, size):
    """Return the line at a size of its letters, and where it ends."""
    x, shown, centres, widths = MARGIN, [], [], []
    for group in groups:
        word = written(words, group, LETTERS)
        wide = length(word, size)
        half = _plate(wide) / 2 if group == groups[-1] else wide / 2
        x += 0 if not shown else 0.45 * size if starts_word(words[group[0]]) or len(group) > 1 else 1
        centre = max(x + half, centres[-1] + PITCH) if centres else x + half
        x = centre + wide / 2
        shown, centres, widths = [*shown, word], [*centres, round(centre, 1)], [*widths, round(wide, 1)]
    box = max(BLANK, *(round(length(parts.cut(visible(word), LETTERS), size * 1.1)) + 14 for word in nexts))
    blank = round(centres[-1] + half + 0.4 * size, 1)
    return Line(size, tuple(shown), tuple(groups), tuple(centres), tuple(widths), blank, box), blank + box


def _plate(wide):
    """Return how wide the box of the word that looks is: as all ribbons together, and wider for a longer word."""
    return BAND if wide <= BAND - 4 else wide + 8


def ribbons(words, weights, query, following, *, nexts, verdict, told, head, rows=(), at=None):
    """Return the picture of one word that looks, and of the likely next words, as an <svg> element.

    Parameters
    ----------
    words : sequence of str, n
        Tokens as the tokenizer has them: with the blank in front that begins a word.
    weights : ndarray, (n,)
        Of the token that looks; they sum to 1.
    query : int
        That token.
    following : sequence of (str, float)
        The likely next tokens and their probabilities, falling.
    nexts : sequence of str
        All words that the blank may show, for its width.
    verdict, told, head : str
        The headline: in a word, in a few, and of which head.
    rows : sequence of int
        The tokens that a click may choose.

    Returns
    -------
    str

    Examples
    --------
    >>> options = {"nexts": [" c"], "verdict": "right", "told": "d_k = 64", "head": "head 5"}
    >>> drawn = ribbons(["a", " b"], np.array([0.25, 0.75]), 1, [(" c", 1.0)], **options)
    >>> "“b” looks at “a”: 0.2500" in drawn
    True
    """
    place = line(tuple(words), tuple(dict.fromkeys(nexts)))
    shares = np.array([weights[list(group)].sum() for group in place.groups])
    looking = place.column(query)
    drawn = [
        text(MARGIN, 22, verdict, size=20, bold=True),
        text(MARGIN + round(length(verdict, 22)) + 14, 22, told, size=14, math=True),
        text(WIDE - MARGIN, 22, head, size=12, anchor="end"),
        *bands(place, shares, looking),
        *_sentence(place, shares, looking),
        _blank(place, *following[0]),
        likely(following),
        roles(place, shares, looking),
        *(target(*_box(place, i), row="query", first=i) for i in rows if len(place.groups[place.column(i)]) == 1),
    ]
    words = f"{verdict}, {told}. {describe(place.words, shares, looking)} Next word: " + ", ".join(
        f"“{visible(word)}” {p:.2f}" for word, p in following[:BARS]
    )
    return parts.picture(WIDE, HIGH, "where a word looks, and the next word", words, drawn, at=at, grow=2, tall=0.52)


def describe(words, shares, looking):
    """Return in words where a word looks.

    Examples
    --------
    >>> describe(["a", "b"], np.array([0.2, 0.8]), 1)
    '“b” looks mostly at itself: 0.80.'
    """
    most, n = int(shares.argmax()), int((shares > 0).sum())
    best, word = shares[most], "itself" if most == looking else f"“{words[most]}”"
    if best >= 0.95:
        where = f"at {word} alone: {best:.2f}"
    elif best >= 0.5:
        where = f"mostly at {word}: {best:.2f}"
    elif best * n > 2:
        where = f"most at {word}: {best:.2f}"
    else:
        where = f"at all alike: at most {best:.2f}"
    return f"“{words[looking]}” looks {where}."


def bands(place, shares, looking):
    """Return the ribbons, each a band between two arcs; the nearest word on either side has the innermost."""
    centre, wide = place.centres[looking], (BAND * shares).tolist()
    left, n = [*range(looking - 1, -1, -1)], len(shares)
    own, x = wide[looking], centre - BAND / 2
    starts = {looking: x}
    x += own
    for j in left:
        starts[j], x = x, x + wide[j]
    for j in range(n - 1, looking, -1):
        starts[j], x = x, x + wide[j]
    heights = {}
    for side in (left, [*range(looking + 1, n)]):
        below = 0.0
        for j in side:
            low = max(RISE * abs(place.centres[j] - centre) ** 0.5, below)
            heights[j] = low, low + wide[j] / 0.75
            below = heights[j][1] + APART * min(1, wide[j])
    for j in range(n):
        word = f"“{place.words[looking]}” looks at “{place.words[j]}”: {exact(shares[j])}"
        d = (
            _hill(starts[j], own)
            if j == looking
            else _band(starts[j], place.centres[j], wide[j], *heights[j], j < looking)
        )
        told = f"<title>{html.escape(word)}</title>"
        yield f'<path class="attnlib-moves" d="{d}" fill="{QUERY}" opacity="{int(shares[j] >= LEAST)}">{told}</path>'


def _band(start, centre, wide, low, high, to_left):
    """Return a ribbon from the foot at `start` to the one around `centre`."""
    near, far = centre - wide / 2, centre + wide / 2
    ends = (start + wide, near, far, start) if to_left else (start, far, near, start + wide)
    out, there, back, home = (f"{x:.1f}" for x in ends)
    top, under = f"{FOOT - high:.1f}", f"{FOOT - low:.1f}"
    return (
        f"M{out} {FOOT}C{out} {top} {there} {top} {there} {FOOT}"
        f"L{back} {FOOT}C{back} {under} {home} {under} {home} {FOOT}Z"
    )


def _hill(start, wide):
    """Return what a word keeps for itself: a hill that goes nowhere."""
    a, b = f"{start:.1f}", f"{start + wide:.1f}"
    return f"M{a} {FOOT}C{a} {FOOT - 18} {b} {FOOT - 18} {b} {FOOT}L{b} {FOOT}C{b} {FOOT} {a} {FOOT} {a} {FOOT}Z"


def _sentence(place, shares, looking):
    """Return the words, under each its weight; a foot as wide as its ribbon, and a plate, mark those looked at."""
    size, base = place.size, FOOT + 9 + round(place.size)
    plate = f'y="{FOOT + 7}" height="{round(size * 1.5)}" rx="4"'
    for j, (word, x, wide, w) in enumerate(zip(place.words, place.centres, place.widths, shares.tolist(), strict=True)):
        around = f'x="{x - wide / 2 - 4:.1f}" width="{wide + 8:.1f}" {plate}'
        if j == looking:
            if j == len(shares) - 1:  # room is kept for it
                around = f'x="{x - _plate(wide) / 2:.1f}" width="{_plate(wide):g}" {plate}'
            yield f'<rect {around} fill="{PLATE[QUERY]}"/>'
            yield f'<rect x="{x - BAND / 2:.1f}" y="{FOOT}" width="{BAND}" height="5" fill="{QUERY}"/>'
        else:
            yield f'<rect class="attnlib-moves" {around} fill="{KEY}" opacity="{0.45 * w:.3f}"/>'
            foot = BAND * w * (w >= LEAST)
            yield (
                f'<rect class="attnlib-moves" x="{x - foot / 2:.1f}" y="{FOOT}" width="{foot:.1f}" height="5" '
                f'fill="{KEY}"/>'
            )
        ink = 'style="fill:#000000"' if j == looking else f'opacity="{min(1, 0.62 + 5 * w):.2f}"'
        yield f'<text x="{x:g}" y="{base}" font-size="{size:g}" text-anchor="middle" {ink}>{escape(word)}</text>'
        number = f"{w:.2f}" if w >= LEAST else ""
        yield f'<text x="{x:g}" y="{base + 22}" font-size="12" text-anchor="middle">{number}</text>'


def _blank(place, word, p):
    """Return the box behind the sentence, with the most likely next word in it."""
    size, base = place.size, FOOT + 9 + round(place.size)
    x = place.blank + place.box / 2
    return (
        f'<rect x="{place.blank:g}" y="{FOOT + 6}" width="{place.box}" height="{round(size * 1.5) + 2}" rx="4" '
        f'fill="none" stroke="{NEXT}" stroke-width="2.5"/>'
        f'<text x="{x:g}" y="{base}" font-size="{size:g}" text-anchor="middle" font-weight="600">'
        f"{escape(parts.cut(visible(word), LETTERS))}</text>"
        f'<text x="{x:g}" y="{base + 22}" font-size="12" text-anchor="middle">{p:.2f}</text>'
    )


def likely(following):
    """Return the likely next words as bars."""
    drawn, top = [tag(NAME, FOOT + 76, "the next word", NEXT, anchor="start")], FOOT + 84
    for i, (word, p) in enumerate(following[:BARS]):
        y, name = top + i * ROW, escape(parts.cut(visible(word, joined=True), BRIEF))
        bold = ' font-weight="600"' if i == 0 else ""
        drawn.append(
            f'<text x="{NAME}" y="{y + 15}" font-size="14"{bold}>{name}</text>'
            f'<text x="{NAME + 116}" y="{y + 15}" font-size="13" text-anchor="end">{p:.2f}</text>'
            f'<rect class="attnlib-moves" x="{NAME + 124}" y="{y + 3}" width="{BAR * p:.1f}" height="{ROW - 6}" '
            f'fill="{NEXT}"><title>{escape(visible(word))}: {exact(p)}</title></rect>'
        )
    return "".join(drawn)


def roles(place, shares, looking):
    """Return in words what the two colours of the ribbons mean here."""
    y, words = FOOT + 76, describe(place.words, shares, looking)
    where = words[words.rindex("looks ") :].removesuffix(".")
    return (
        tag(MARGIN, y, "query", QUERY, anchor="start")
        + text(MARGIN + 60, y, f"“{place.words[looking]}” is the word that looks", size=14)
        + tag(MARGIN, y + 28, "keys", KEY, anchor="start")
        + text(MARGIN + 60, y + 28, f"it {where}", size=14)
    )


def _box(place, token):
    """Return the corner, width and height of what chooses a token."""
    j = place.column(token)
    wide = max(place.widths[j] + 8, PITCH - 2)
    return round(place.centres[j] - wide / 2), FOOT, round(wide), 54

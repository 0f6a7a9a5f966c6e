"""The ribbons of a sentence for a narrow page: a word below the other, and the ribbons at their left.

All that is drawn here stands in ribbon_row.py, too: the ribbons are the same, with across and down exchanged.
"""

from functools import lru_cache

import numpy as np

from ..colours import KEY, NEXT, PLATE, QUERY
from . import parts
from .parts import escape, target, text
from .ribbon_row import BAND, BRIEF, FOOT, LEAST, MARGIN, NAME, Line, bands, describe, grouped, likely, roles, written
from .tokens import length, visible

WIDE, TOP, PITCH = 328, 64, 25  # pixels: a page of 360 has them; the middle of the first word; from word to word
MOST, SIZE = 16, 15  # words, and their size
EDGE, WORDS, NUMBER = 118, 132, 36  # where ribbons end and words begin; room of a weight
NAMES = 376


@lru_cache(maxsize=16)
def line(words):
    """Return where the words of a sentence stand, its centres counted downwards.

    Examples
    --------
    >>> line(("The", " cat", " sat")).centres
    (64, 89, 122)
    """
    groups = grouped(len(words), min(len(words), MOST))
    shown = [written(words, group, BRIEF) for group in groups]
    centres = [TOP + PITCH * i for i in range(len(groups))]
    centres[-1] += 8  # the word behind which the next one stands has room for all its ribbons
    widths = [round(length(word, SIZE), 1) for word in shown]
    return Line(SIZE, tuple(shown), tuple(groups), tuple(centres), tuple(widths), centres[-1] + PITCH + 8, PITCH)


def ribbon_column(words, weights, query, following, *, verdict, told, head, rows=()):
    """Return the picture of `ribbons` for a page of less than 588 pixels, with the same parameters.

    Examples
    --------
    >>> options = {"verdict": "right", "told": "d_k = 64", "head": "head 5"}
    >>> drawn = ribbon_column(["a", " b"], np.array([0.25, 0.75]), 1, [(" c", 1.0)], **options)
    >>> "“b” looks at “a”: 0.2500" in drawn
    True
    """
    place = line(tuple(words))
    shares = np.array([weights[list(group)].sum() for group in place.groups])
    looking, end = place.column(query), place.blank + PITCH
    drawn = [
        text(MARGIN, 20, verdict, size=20, bold=True),
        text(MARGIN + round(length(verdict, 22)) + 14, 20, told, size=14, math=True),
        text(MARGIN, 40, head, size=12),
        f'<g transform="matrix(0 1 1 0 {EDGE - FOOT} 0)">{"".join(bands(place, shares, looking))}</g>',
        *_sentence(place, shares, looking),
        _blank(place, *following[0]),
        f'<g transform="translate(0 {end - FOOT - 70})">{roles(place, shares, looking)}</g>',
        f'<g transform="translate({MARGIN - NAME} {end - FOOT - 14})">{likely(following)}</g>',
        *(
            target(WORDS, place.centres[j] - PITCH // 2, WIDE - WORDS, PITCH, row="query", first=group[0])
            for j, group in enumerate(place.groups)
            if len(group) == 1 and group[0] in rows
        ),
    ]
    word, p = following[0]
    told = f"{verdict}, {told}. {describe(place.words, shares, looking)} Next word: “{visible(word)}” {p:.2f}"
    return parts.picture(WIDE, end + 136, "where a word looks, and the next word", told, drawn)


def _numbers(place):
    return WORDS + max(place.widths) + 10 + NUMBER


def _sentence(place, shares, looking):
    """Yield the words, behind each its weight; a foot as high as its ribbon, and a plate, mark those looked at."""
    for j, (word, y, wide, w) in enumerate(zip(place.words, place.centres, place.widths, shares.tolist(), strict=True)):
        plate = f'x="{WORDS - 5}" y="{y - 11}" width="{wide + 10:.1f}" height="22" rx="4"'
        if j == looking:
            yield f'<rect {plate} fill="{PLATE[QUERY]}"/>'
            yield f'<rect x="{EDGE}" y="{y - BAND / 2:g}" width="5" height="{BAND}" fill="{QUERY}"/>'
        else:
            foot = BAND * w * (w >= LEAST)
            yield f'<rect class="attnlib-moves" {plate} fill="{KEY}" opacity="{0.45 * w:.3f}"/>'
            yield (
                f'<rect class="attnlib-moves" x="{EDGE}" y="{y - foot / 2:.1f}" width="5" height="{foot:.1f}" '
                f'fill="{KEY}"/>'
            )
        ink = 'style="fill:#000000"' if j == looking else f'opacity="{min(1, 0.62 + 5 * w):.2f}"'
        yield f'<text x="{WORDS}" y="{y + 5}" font-size="{SIZE}" {ink}>{escape(word)}</text>'
        yield text(_numbers(place), y + 5, f"{w:.2f}" if w >= LEAST else "", size=12, anchor="end")


def _blank(place, word, p):
    """Return the box below the sentence, with the most likely next word in it."""
    word, y = parts.cut(visible(word), BRIEF), place.blank
    return (
        f'<rect x="{WORDS - 5}" y="{y - 12}" width="{max(46, length(word, SIZE * 1.1) + 10):.0f}" height="24" rx="4" '
        f'fill="none" stroke="{NEXT}" stroke-width="2.5"/>'
        f"{text(WORDS, y + 5, word, size=SIZE, bold=True)}"
        f"{text(_numbers(place), y + 5, f'{p:.2f}', size=12, anchor='end')}"
    )

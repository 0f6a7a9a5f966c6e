"""One row of attention weights as ribbons over a sentence: as wide as the weight, from the word that looks.

At that word all ribbons stand side by side, and together they are always as wide: a row of weights is one whole that is
shared. The nearest word has the innermost ribbon. The same picture is drawn twice: words in a row, ribbons above them,
and for a narrow page words below each other, ribbons at their right. `outlines` is the geometry of all ribbons of the
series; lite/sentence.js, which draws while somebody plays, has the same, and a test compares them.
"""

import html
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..colours import KEY, NEXT, QUERY
from . import parts
from .parts import escape, exact, paint, tag, target, text
from .tokens import length, starts_word, visible

WIDE, HIGH, FOOT = 588, 244, 144  # pixels; FOOT is where ribbons stand on words in a row
NARROW, EDGE, TOP, STEP = 328, 118, 76, 25  # of the narrow picture; EDGE is where ribbons stand, STEP from word to word
BAND, DEEP = (36, 24), (98, 190)  # of both: width of all ribbons together, and how far from the words they go
NEAR, FAR, ITSELF = 0.16, 0.82, 14  # share of DEEP for any ribbon, for the longest besides; height of one to itself
SIZES, GAP = (20, 16, 13), 0.36  # of the words; the gap between two, as a share of it
MARGIN, BLANK, MOST = 8, 46, 16  # beside the sentence; width of the next word's box at least; words of a narrow page
BARS, BAR = 3, 130  # likely next words: how many, and the longest bar
SEEN, NUMBERED, STRONG = 0.005, 0.05, 0.3  # weight that is drawn, that has its number, whose word has its colour
APART = 33  # pixels between two numbers
LETTERS, BRIEF = 14, 10  # of a token in the sentence, and where there is less room
SERIF = "var(--serif,Georgia,serif)"
ORDER = ("first", "second", "third", "fourth")


class Line(NamedTuple):
    """Where the words of a sentence stand, along it."""

    size: float
    words: tuple  # as they are drawn
    groups: tuple  # the tokens in each place: one, but where the middle of a long sentence is drawn as dots
    centres: tuple
    widths: tuple
    blank: float  # where the box of the next word begins
    box: int  # its width
    narrow: bool = False  # whether words stand below each other

    def column(self, token):
        """Return the place at which a token stands."""
        return next(j for j, group in enumerate(self.groups) if token in group)


@lru_cache(maxsize=16)
def line(words, nexts):
    """Return where words in a row stand, as large as they have room; `nexts` are all words of the blank.

    >>> line(("The", " cat"), (" sat",)).words
    ('The', 'cat')
    """
    for shown in range(min(len(words), 2 * MOST), 0, -1):
        groups = group_tokens(len(words), shown)
        for size in SIZES:
            made, end = _set_line(words, groups, nexts, size)
            if end <= WIDE - MARGIN:
                aside = (WIDE - MARGIN - end) / 2
                return made._replace(centres=tuple(x + aside for x in made.centres), blank=made.blank + aside)
    return made


@lru_cache(maxsize=16)
def column(words):
    """Return where words below each other stand.

    >>> column(("The", " cat", " sat")).centres
    (76, 101, 126)
    """
    groups = group_tokens(len(words), min(len(words), MOST))
    shown = [_token_or_dots(words, group, BRIEF) for group in groups]
    centres = [TOP + STEP * i for i in range(len(groups))]
    widths = [round(length(word, 16), 1) for word in shown]
    return Line(16, tuple(shown), tuple(groups), tuple(centres), tuple(widths), centres[-1] + STEP + 6, STEP, True)


def group_tokens(n, shown):
    """Return the tokens of each place where `shown` of `n` have room.

    >>> group_tokens(3, 3), group_tokens(5, 3)
    ([(0,), (1,), (2,)], [(0,), (1, 2, 3), (4,)])
    """
    left, groups = n - shown, [(i,) for i in range(n)]
    # The first token often takes much: it stays, and dots stand for what follows it.
    return [(0,), tuple(range(1, left + 2)), *groups[left + 2 :]] if left else groups


def _token_or_dots(words, group, letters):
    """Return what stands at a place: its token, or dots."""
    return parts.shorten(visible(words[group[0]]), letters) if len(group) == 1 else "…"


def _set_line(words, groups, nexts, size):
    """Return the line at a size of its letters, and where it ends."""
    x, shown, centres, widths = MARGIN, [], [], []
    for group in groups:
        word = _token_or_dots(words, group, LETTERS)
        wide = length(word, size)
        x += (GAP if shown and (starts_word(words[group[0]]) or len(group) > 1) else 0.06) * size
        shown, centres, widths = [*shown, word], [*centres, round(x + wide / 2, 1)], [*widths, round(wide, 1)]
        x += wide
    box = max(BLANK, *(round(length(parts.shorten(visible(word), LETTERS), size * 1.1)) + 14 for word in nexts))
    blank = round(max(x, centres[-1] + BAND[0] / 2) + GAP * size, 1)
    return Line(size, tuple(shown), tuple(groups), tuple(centres), tuple(widths), blank, box), blank + box


def ribbons(
    words, weights, query, following, *, verdict, setting="", nexts=(), guesses=(), guess=0, rows=(), narrow=False
):
    """Return the picture of one word that looks, and of the likely next words, as an <svg> element.

    `words` are n tokens as the tokenizer has them, with the blank in front that begins a word; `weights`, (n,), are
    those of the token `query`, which sum to 1; `following` are the likely next tokens and their probabilities, falling.
    `verdict` is the headline, `setting` stands below it. `nexts` are all words that the blank may show besides, for its
    width. Until `guess`, the number of one of the `guesses` from 1, only the sentence is seen. A click may choose
    the tokens `rows`. `narrow`: words stand below each other.

    >>> picture = ribbons(["a", " b"], np.array([0.25, 0.75]), 1, [(" c", 1.0)], verdict="right")
    >>> "“b” looks at “a”: 0.2500" in picture
    True
    """
    nexts = tuple(dict.fromkeys((following[0][0], *nexts)))
    place = column(tuple(words)) if narrow else line(tuple(words), nexts)
    shares = np.array([weights[list(group)].sum() for group in place.groups])
    looking = place.column(query)
    answer = [*bands(place, shares, looking), _answer(place, *following[0])]
    answer += [*_numbers(place, shares, looking), _likely(place, following)]
    brief = setting.replace("divided by", "÷") if narrow else setting
    answer.append(text(0, 58 if narrow else 40, brief, math=True))
    waits, now = bool(guesses) and not guess, guess if guesses else None
    pieces = [] if waits else [stage_group(answer, "stage", now)]
    pieces += [*_words(place, shares, looking, now), *([] if waits else _headline(place, verdict, guesses, guess))]
    at = (0, place.blank + 44, "start") if narrow else (WIDE / 2, FOOT - 48, "middle")  # where ribbons will stand
    first = text(*at[:2], "Guess first. Then you see where it looks.", size=13 if narrow else 16, anchor=at[2])
    pieces.append(stage_group([first], "waits", now))
    pieces += (target(*_cell(place, i), row="query", first=i) for i in rows if len(place.groups[place.column(i)]) == 1)
    asked = f"{''.join(words).strip()} ___" if waits else ""
    description = asked or f"{verdict} {setting}. {describe(words, weights, query)} Next word: " + ", ".join(
        f"“{visible(word)}” {p:.2f}" for word, p in following[:BARS]
    )
    size = (NARROW, place.blank + 104) if narrow else (WIDE, HIGH)
    options = {} if narrow else {"at": (0, 0), "grow": 2, "tall": 0.36}
    return parts.picture(*size, "where a word looks, and the next word", description, pieces, **options)


def stage_group(pieces, name, now, stage=1):
    """Return what stands from a stage on, or with "waits" what stands before it; `now` is None without stages."""
    if now is None:
        return "".join(pieces) if name == "stage" else ""
    hidden = ' visibility="hidden"' if (now < stage) == (name == "stage") else ""
    return f'<g data-{name}="{stage}"{hidden}>{"".join(pieces)}</g>'


def _headline(place, verdict, guesses, guess):
    """Yield what the model says, behind what a reader said."""
    size = 16 if place.narrow else 20
    if not guesses:
        yield text(0, 20, verdict, size=size, bold=True)
    for k, said in enumerate(guesses, 1):
        # A page that shows the answer though nobody has guessed hides the first sentence by its class.
        guessed = f'<tspan class="attnlib-guessed">{escape(f"You said {said}.")}</tspan>'
        both = [guessed, escape(verdict)] if place.narrow else [f"{guessed} {escape(verdict)}"]
        lines = [text(0, 20 + 19 * i, "{}", size=size, bold=True).format(words) for i, words in enumerate(both)]
        yield stage_group([stage_group(lines, "waits", guess, k + 1)], "stage", guess, k)


def describe(words, weights, query, mark=lambda _, word: f"“{word}”"):
    """Return in words where a word looks, as lite/sentence.js says it; `mark` writes the word at a place.

    >>> describe(["a", "b", "c"], [0.1, 0.6, 0.3], 2)
    '“c” looks at “b” with 0.60 of its attention; 0.10 on the first word, 0.30 on itself.'
    """
    asks, falling = mark(query, visible(words[query])), sorted(range(len(words)), key=lambda j: -weights[j])
    far = [j for j in falling if j not in (0, query) and weights[j] >= NUMBERED][:2]
    units = " of its attention", ""
    others = ", ".join(
        f"at {key_name(words, j, mark)} with {weights[j]:.2f}{u}" for j, u in zip(far, units, strict=False)
    )
    rest = f"{weights[0]:.2f} on the first word, {weights[query]:.2f} on itself"
    if not query:
        return f"{asks} has only itself to look at."
    if far and max(weights[0], weights[query]) <= weights[far[0]]:
        return f"{asks} looks {others}; {rest}."
    rests = "mostly rests, " if weights[0] + weights[query] > 0.5 else "has "
    return f"{asks} {rests}{rest}{'; it looks ' * bool(far)}{others}."


def key_name(words, j, mark):
    """Return a key; where the word stands twice, which of them."""
    same = [i for i, word in enumerate(words) if word.strip() == words[j].strip()]
    which = f"the {ORDER[same.index(j)]} " if len(same) > 1 and same.index(j) < len(ORDER) else ""
    return which + mark(j, visible(words[j]))


def outlines(centres, shares, looking, full, deep):
    """Yield each word's number and the corners of its ribbon, (along the sentence, away from it).

    Words stand at `centres`. All ribbons leave the word `looking` side by side, the nearest word's innermost, together
    `full` wide where the `shares` sum to 1; the longest goes `deep` away. To itself a word has a block of four corners.

    >>> [(j, corners[0]) for j, corners in outlines([0, 10], [0.75, 0.25], 1, 4, 9)]
    [(1, (8.0, 0)), (0, (12.0, 0))]
    """
    u, longest = centres[looking], centres[-1] - centres[0] or 1
    start = u - full / 2
    # The farthest words have the middle, those behind the one that looks come last.
    for j in [*range(looking, -1, -1), *range(len(shares) - 1, looking, -1)]:
        size, key = full * shares[j], centres[j]
        if j == looking:
            yield j, ((start, 0), (start, ITSELF), (start + size, ITSELF), (start + size, 0))
        else:
            outer = 4 / 3 * deep * (NEAR + FAR * abs(u - key) / longest)
            inner = max(0, outer - 4 / 3 * size)
            near, far = (start, start + size) if j < looking else (start + size, start)
            end = size / 2 if j < looking else -size / 2
            corners = (far, 0), (far, outer), (key - end, outer), (key - end, 0)
            yield j, (*corners, (key + end, 0), (key + end, inner), (near, inner), (near, 0))
        start += size


def ribbon_path(points):
    """Return what draws the corners of `outlines`, already written as "x y"."""
    return ("M{}L{}L{}L{}Z" if len(points) == 4 else "M{}C{} {} {}L{}C{} {} {}Z").format(*points)


def bands(place, shares, looking):
    """Yield the ribbons: the point at u along the sentence and v away from it is (u, FOOT - v), or (EDGE + v, u)."""
    for j, corners in outlines(place.centres, shares.tolist(), looking, BAND[place.narrow], DEEP[place.narrow]):
        points = [f"{EDGE + v:.1f} {at:.1f}" if place.narrow else f"{at:.1f} {FOOT - v:.1f}" for at, v in corners]
        title = html.escape(f"“{place.words[looking]}” looks at “{place.words[j]}”: {exact(shares[j])}")
        fill = QUERY if j == looking else paint("ribbon", f"{KEY}8c")
        style = f'fill="{fill}" opacity="{int(shares[j] >= SEEN)}"'
        yield f'<path class="attnlib-moves" d="{ribbon_path(points)}" {style}><title>{title}</title></path>'


def _at(place, j):
    """Return where the word at a place begins, its baseline, and how its text is anchored there."""
    if place.narrow:
        return EDGE - 6, place.centres[j] + 5, "end"
    return place.centres[j], FOOT + 9 + round(place.size), "middle"


def _cell(place, token):
    """Return the corner, width and height of the cell of a word, with its number."""
    j = place.column(token)
    if place.narrow:
        return 0, place.centres[j] - STEP // 2, EDGE, STEP
    wide = place.widths[j] + 8
    return round(place.centres[j] - wide / 2), FOOT, round(wide), 54


def _words(place, shares, looking, now):
    """Yield the words, coloured once somebody has guessed: the one that looks, at what it looks, what comes later."""
    for name in ("stage", "waits"):
        words = []
        for j, word in enumerate(place.words):
            x, y, anchor = _at(place, j)
            role = "query-text" if j == looking else "key-text" if shares[j] >= STRONG else ""
            style = f' style="fill:{paint(role)}" font-weight="600"' if role else ""
            if j > looking and shares[j] < SEEN:
                style = f' style="fill:{paint("quiet")}"'
            shape = f'<text x="{x:g}" y="{y:g}" font-size="{place.size:g}" text-anchor="{anchor}"'
            words.append(f"{shape}{style if name == 'stage' else ''}>{escape(word)}</text>")
        yield stage_group([f'<g font-family="{SERIF}">{"".join(words)}</g>'], name, now)
    x, y, wide = (EDGE - 72, place.blank + 12, 72) if place.narrow else (place.blank, _at(place, 0)[1] + 7, place.box)
    yield f'<path d="M{x:g} {y:g}h{wide}" stroke="currentColor" stroke-width="2"/>'


def _numbers(place, shares, looking):
    """Yield the weights of the words; two that would touch take turns."""
    last, low = -APART, False
    for j, w in enumerate(shares.tolist()):
        x, y, _ = _at(place, j)
        if not place.narrow and w >= NUMBERED:
            low, last = x - last < APART and not low, x
        x, y = (20, y - 1) if place.narrow else (x, y + (36 if low else 21))
        yield text(x, y, f"{w:.2f}" if w >= NUMBERED else "", anchor="middle")


def _answer(place, word, p):
    """Return the most likely next word, on the line behind the sentence."""
    x, y, anchor = (EDGE - 6, place.blank + 5, "end") if place.narrow else (place.blank + 4, _at(place, 0)[1], "start")
    word = parts.shorten(visible(word), BRIEF if place.narrow else LETTERS)
    size = f'font-size="{place.size:g}" text-anchor="{anchor}" font-weight="600"'
    style = f'style="fill:{paint("next-text")}" font-family="{SERIF}"'
    return f'<text x="{x:g}" y="{y:g}" {size} {style}>{escape(word)}</text>'


def _likely(place, following):
    """Return the likely next words as bars, beside each other or below each other."""
    x, y = (EDGE + 14, place.blank + 2) if place.narrow else (0, HIGH - 20)
    pieces = [tag(x, y, "the next word", NEXT, anchor="start")]
    for i, (word, p) in enumerate(following[:BARS]):
        left, low = (x, y + 24 + 24 * i) if place.narrow else (x + 116 + (BAR + 28) * i, y)
        pieces.append(text(left, low, parts.shorten(visible(word, joined=True), BRIEF), bold=i == 0))
        pieces.append(text(left + BAR, low, f"{p:.2f}", anchor="end"))
        bar = f'x="{left}" y="{low + 4}" width="{BAR * p:.1f}" height="7" fill="{NEXT}"'
        title = f"<title>{escape(visible(word))}: {exact(p)}</title>"
        pieces.append(f'<rect class="attnlib-moves" {bar}>{title}</rect>')
    return "".join(pieces)

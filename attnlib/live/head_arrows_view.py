"""The view of what the heads of one layer add to a vector: an arrow each, tip to tail, for several sentences."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import arguments, colours, svg
from ..colours import KEY, LINE, NEXT, VALUE
from ..validation import ShapeError
from .controls import buttons
from .view import LiveView

if TYPE_CHECKING:
    from collections.abc import Sequence

NONE, THIS, ALL = range(3)  # which heads are switched off
OFF = [("none", NONE), ("this head", THIS), ("all heads", ALL)]
SIZE, STEP = 13, 22  # of the words of a sentence, and from line to line
AROUND = 7  # pixels between the outermost tip, in any state, and the frame
LABELLED = 22  # pixels of the shortest arrow that shows the number of its head


class Layout(NamedTuple):
    """The pixels of a picture: for a wide page, where sentences stand side by side, and for a narrow one."""

    wide: int
    columns: int  # of sentences
    narrow: bool


ACROSS, DOWN = Layout(588, 2, False), Layout(340, 1, True)


class Sentence(NamedTuple):
    """One sentence, and what each head does for its last word."""

    name: str
    words: list[str]
    weights: np.ndarray  # (h, n)
    before: np.ndarray  # (2,)
    heads: np.ndarray  # (h, 2)
    says: dict[Any, list[float]]  # which head is off, 0 for none, "all" -> probabilities


def head_arrows(
    sentences: Sequence[dict[str, Any]],
    towards: Sequence[str],
    *,
    head: int = 1,
    asks: tuple[str, Sequence[str], str] | None = None,
    asked: int = 1,
) -> LiveView:
    """Show what each head of a layer adds to the vector of a sentence's last word, in a plane of two directions.

    The arrows stand tip to tail, from the vector that comes in to the one that leaves. A head can be picked, by a click
    on its number, and switched off.

    Parameters
    ----------
    sentences : sequence of dict
        One or more, each with name; words (n tokens); weights (h, n) of the last word in each head; before (2,), the
        coordinates of its vector; heads (h, 2), what each head adds to them; and says, from "0" (all heads on), "1" to
        "h" (this one off) and "all" (all off) to the probabilities of both words of `towards`.
    towards : sequence of str
        The two words along whose directions the coordinates are taken.
    head : int
        The head that is picked at the start.
    asks : (str, sequence of str, str), optional
        A question about the head `asked`, answers to guess, and what is right. Until a guess that head is held back.
    asked : int
        The head that is held back, and picked after the guess.

    Returns
    -------
    LiveView
        Controls: head, off; with a question guess.

    Raises
    ------
    ShapeError, ValueError
        If the numbers of a sentence do not fit its words, or `towards` does not hold two words.

    Examples
    --------
    >>> one = {"name": "a b", "words": ["a", " b"], "weights": [[1, 0], [0.5, 0.5]], "before": [1, 1]}
    >>> one |= {"heads": [[2, 0], [0, 3]], "says": {"0": [0.9, 0.1], "1": [0.2, 0.8], "2": [1, 0], "all": [0.5, 0.5]}}
    >>> view = head_arrows([one], ["c", "d"])
    >>> view.shown["a b"].tolist()  # before, and behind each head
    [[1.0, 1.0], [3.0, 1.0], [3.0, 4.0]]
    >>> view.sliders["off"].value = THIS
    >>> view.shown["a b"].tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 4.0]]
    """
    towards = arguments.labels(towards, "towards", 2)
    held = [_parse(given, k) for k, given in enumerate(arguments.several(sentences, "sentences"), 1)]
    h = len(held[0].heads)
    if any(len(one.heads) != h for one in held):
        raise ShapeError(
            f"all sentences must have as many heads, got {[len(one.heads) for one in held]}. Fix: one layer."
        )
    head, asked = arguments.whole(head, "head", 1, h), arguments.whole(asked, "asked", 1, h)
    controls: dict[str, Any] = {}
    if asks:
        question, answers, _ = asks
        controls["guess"] = buttons(question, [(words, k) for k, words in enumerate(answers, 1)])
        controls["guess"].style.description_width = "initial"  # a question, not a label
        controls["guess"].add_class("attnlib-asks")
    controls["head"] = buttons("head", [(str(j), j - 1) for j in range(1, h + 1)], (asked if asks else head) - 1)
    controls["off"] = buttons("switched off", OFF, NONE)
    return _HeadArrows(controls, _Plane(held, towards), head - 1, asked - 1, asks)


def _parse(given, number):
    """Return one sentence, checked."""
    missing = [name for name in Sentence._fields if name not in given]
    if missing:
        raise ValueError(
            f"each sentence needs {', '.join(Sentence._fields)}; missing: {', '.join(missing)}. Fix: add it."
        )
    words, weights, heads = list(given["words"]), np.asarray(given["weights"], float), np.asarray(given["heads"], float)
    before = np.asarray(given["before"], float)
    if weights.shape != (len(heads), len(words)) or heads.shape[1:] != (2,) or before.shape != (2,):
        got = f"{weights.shape}, {before.shape} and {heads.shape}"
        raise ShapeError(
            f"sentence {number} must have weights (h, {len(words)}), before (2,) and heads (h, 2), got {got}. "
            "Fix: the weights of its last word alone, two coordinates."
        )
    return Sentence(str(given["name"]), words, weights, before, heads, given["says"])


class _HeadArrows(LiveView):
    hint = "Pick a head by its number, in the row above or in the picture; then switch it off."

    def __init__(self, controls, plane, first, asked, asks):
        self.plane, self.first, self.asked, self.asks = plane, first, asked, asks
        self.fills = "guess" if asks else None
        names = [*controls]
        super().__init__(controls, lambda *now: self._draw_now(**dict(zip(names, now, strict=True))), main="head")

    def _draw_now(self, head, off, guess=None):
        waits = bool(self.asks) and not guess
        for name, control in self.sliders.items() if self.asks else ():  # the question alone, then all others
            control.layout.display = "" if (name == "guess") == waits else "none"
        now = (self.first, NONE, self.asked) if waits else (head, off)
        drawings, words = [], self.plane.describe(*now)
        for layout in (ACROSS, DOWN):
            pieces = [] if waits else [svg.stage_group(self.plane.draw(layout, head, off), "stage", guess)]
            pieces += self._asked_and_answered(layout, guess or 0) if self.asks else []
            options = {} if layout.narrow else {"at": (0, 0), "grow": 1.3}
            high = self.plane.high(layout)
            drawings.append(svg.picture(layout.wide, high, "what each head adds", words, pieces, **options))
        return svg.layouts(*drawings), self.plane.chains(*now)

    def _asked_and_answered(self, layout, guess):
        """Yield what stands there before a guess, and over the picture after it; a page needs both at once."""
        _, answers, right = self.asks
        made = self.sliders["guess"].value  # none where a build draws for a page
        for k, words in enumerate(answers, 1):
            if guess and made in (k, None):
                said = svg.stage_group([_headline(layout, f"You said: {words}.", right)], "waits", guess, k + 1)
                yield svg.stage_group([said], "stage", guess, k)
        if not made:
            first = [*self.plane.draw(layout, self.first, NONE, held_back=self.asked)]
            first.append(_headline(layout, f"Head {self.asked + 1} is held back", "until you have guessed."))
            yield svg.stage_group(first, "waits", guess)


def _headline(layout, said, verdict):
    """Return what stands over the picture, on a narrow page in two lines."""
    lines = [said, verdict] if layout.narrow else [f"{said} {verdict}"]
    return "".join(svg.text(0, 15 + 18 * i, words, size=14, bold=True) for i, words in enumerate(lines))


class _Plane:
    """Where everything stands: the sentences as cards, below them the plane with their arrows."""

    def __init__(self, sentences, towards):
        self.sentences, self.towards = sentences, towards
        self.from_left = sorted(sentences, key=lambda one: (one.before + one.heads.sum(axis=0))[0])  # as chains end
        h = len(sentences[0].heads)
        states = [(head, off) for head in range(h) for off in (NONE, THIS, ALL)]
        tips = np.concatenate([x for state in states for x in self.chains(*state).values()])
        self.low, self.size = tips.min(axis=0), np.ptp(tips, axis=0)
        self.draw, self.place = lru_cache(maxsize=128)(self._draw), lru_cache(self._place)
        self.cards = lru_cache(self._cards)

    def chains(self, head, off, held_back=None):
        """Return by sentence the vector before the layer and behind each head, (h + 1, 2)."""
        on = self._on(head, off, held_back)[:, None]
        return {
            one.name: np.concatenate([one.before[None], one.before + np.cumsum(on * one.heads, axis=0)])
            for one in self.sentences
        }

    def _on(self, head, off, held_back=None):
        """Return which heads are on, as 0 and 1; one that is held back is off."""
        on = np.full(len(self.sentences[0].heads), float(off != ALL))
        if held_back is not None or off == THIS:
            on[head if held_back is None else held_back] = 0
        return on

    def _cards(self, layout):
        """Return of each sentence its corner, width and words; and where the plane begins."""
        wide = (layout.wide - 12 * (layout.columns - 1)) // layout.columns
        lines = [_set_words(one.words, wide - 16) for one in self.from_left]
        high = 16 + STEP * max(line for words in lines for line, _, _ in words) + STEP + 3 * 18
        top, cards = 44 if layout.narrow else 26, []
        for k, words in enumerate(lines):
            row, column = divmod(k, layout.columns)
            cards.append((column * (wide + 12), top + row * (high + 8), wide, high, words))
        return cards, cards[-1][1] + high + 10

    def _place(self, layout):
        """Return how many pixels a unit is, where the origin of the plane stands, and the plane's top and height."""
        _, top = self.cards(layout)
        room, above = layout.wide - 2 * AROUND - 10, 46  # above the highest tip stands its label
        unit = min(room / self.size[0], (190 if layout.narrow else 290) / self.size[1])
        high = round(self.size[1] * unit + above + 34)
        left = (layout.wide - self.size[0] * unit) / 2
        return unit, (left - self.low[0] * unit, top + high - 34 + self.low[1] * unit), top, high

    def high(self, layout):
        _, _, top, high = self.place(layout)
        return top + high + 2

    def _draw(self, layout, head, off, held_back=None):
        """Return the pieces of the picture but its headline."""
        pieces, on = [], self._on(head, off, held_back)
        for one, card in zip(self.from_left, self.cards(layout)[0], strict=True):
            pieces += self._card(one, card, self.lines_of(one, head, off, held_back), head)
        unit, origin, top, high = self.place(layout)
        at = np.array([unit, -unit])
        chains = {name: origin + x * at for name, x in self.chains(head, off, held_back).items()}
        pieces += self._ground(layout, unit, origin, top, high)
        if held_back is None:  # where all arrows end
            for x in self.chains(head, NONE).values():
                (x, y), full = origin + x[-1] * at, f'r="5.5" fill="none" stroke="{NEXT}" stroke-dasharray="2 2"'
                pieces.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" {full}/>')
        taken, room, beside = [_points(chains.values())], (2, top + 22, layout.wide - 2, top + high - 2), []
        for k, (one, chain) in enumerate(zip(self.sentences, chains.values(), strict=True)):
            pieces += _arrows(chain, on, head, one.heads * at)
            beside += _beside(chain, on, head, one.heads * at, -1 if k % 2 else 1)
        pieces += [_number_of_head(*place, head) for place in beside]
        discs = np.array([place[1:] for place in beside]).reshape(-1, 2)
        taken += [discs + 9 * np.array(rim) for rim in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))]  # no mere points
        for one, chain in zip(self.sentences, chains.values(), strict=True):
            end = self.chains(head, off, held_back)[one.name][-1]
            name = " ".join(one.name.split()[:2]) if layout.narrow else one.name  # whole words that have room
            box = _box_of_label(chain[-1], svg.width(name) + 10, room, np.concatenate(taken))
            taken.append(box[:2] + box[2:] * np.indices((9, 5)).reshape(2, -1).T / (8, 4))
            pieces += _ends(name, chain, end, box)
        return pieces

    def _card(self, one, card, told, head):
        """Yield a sentence, its words tinted by the weights of the head, and what is told of it."""
        left, top, wide, high, words = card
        yield f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="8" fill="{LINE}" opacity="0.12"/>'
        weights = one.weights[head].tolist()
        for word, w, (line, x, long) in zip(one.words, weights, words, strict=True):
            y, shown = top + 8 + STEP * line, svg.visible(word)
            ground = f'x="{left + 8 + x - 2:.1f}" y="{y}" width="{long + 4:.1f}" height="19" rx="4"'
            title = f"<title>{svg.escape(shown)}: {svg.exact(w)}</title>"
            yield f'<rect {ground} fill="{KEY}" opacity="{0.75 * w:.3f}">{title}</rect>'
            ink = colours.inks()[int(np.searchsorted(colours.SHARES, 0.75 * w))]  # of the same share in a map
            written = svg.text(round(left + 8 + x + long / 2, 1), y + 15, shown, size=SIZE, anchor="middle")
            yield f'<g fill="{ink}">{written}</g>'
        for k, words_of_line in enumerate(told):
            yield svg.text(left + 8, top + high - 44 + 18 * k, words_of_line)

    def lines_of(self, one, head, off, held_back=None):
        """Return in lines where the head looks, what it adds, and, unless a head is held back, what the model says."""
        most = int(one.weights[head].argmax())
        looks = svg.key_name(one.words, most, lambda _, word: word)
        added = ", ".join(f"{to} {_with_sign(x)}" for to, x in zip(self.towards, one.heads[head].tolist(), strict=True))
        says = one.says[{NONE: "0", THIS: str(head + 1), ALL: "all"}[off]]
        said = ", ".join(f"{name} {_probability(p)}" for name, p in zip(self.towards, says, strict=True))
        return (
            f"head {head + 1} looks at {looks}: {one.weights[head, most]:.2f}",
            f"and adds: {added}" if off == NONE else "and adds nothing: it is off",
            *([] if held_back is not None else [f"the model says: {said}"]),
        )

    def describe(self, head, off, held_back=None):
        """Return the picture in words."""
        sentences = []
        for one, chain in zip(self.sentences, self.chains(head, off, held_back).values(), strict=True):
            ends = ", ".join(f"{_with_sign(x)} towards {name}" for name, x in zip(self.towards, chain[-1], strict=True))
            told = ", ".join(self.lines_of(one, head, off, held_back))
            sentences.append(f"{one.name}: {told}; the arrows end at {ends}.")
        return " ".join(sentences)

    def _ground(self, layout, unit, origin, top, high):
        """Yield the plane: its axes, a line every 20 units, the diagonal on which no name leads, and words."""
        (x, y), bottom, wide, (right, up) = origin, top + high, layout.wide, self.towards
        lines, ticks, along = [f"M{x:.1f} {top}V{bottom}M0 {y:.1f}H{wide}"], [], f"towards {right} →"
        for v in range(20, round(self.low.max() + self.size.max()) + 20, 20):
            if x + v * unit < wide - svg.width(along) - 20:
                lines.append(f"M{x + v * unit:.1f} {bottom - 6}V{bottom}")
                ticks.append(svg.text(round(x + v * unit), bottom - 10, str(v), anchor="middle"))
            if y - v * unit > top + 30:
                lines.append(f"M0 {y - v * unit:.1f}h6")
                ticks.append(svg.text(10, round(y - v * unit) + 4, str(v)))
        ends = (max(-x, y - bottom) / unit, min(wide - x, y - top) / unit)
        across = "".join(f"{'L' if k else 'M'}{x + v * unit:.1f} {y - v * unit:.1f}" for k, v in enumerate(ends))
        yield f'<path d="M0 {top}h{wide}v{high}h-{wide}z" fill="none" stroke="{LINE}" opacity="0.5"/>'
        yield f'<path d="{"".join(lines)}" fill="none" stroke="{LINE}" opacity="0.6"/>'
        yield f'<path d="{across}" fill="none" stroke="{LINE}" stroke-dasharray="2 5"/>'
        yield from ticks
        here = "" if layout.narrow else "here "
        yield svg.text(wide - 6, bottom - 8, along, anchor="end")
        yield svg.text(round(x) + 8, top + 15, f"↑ towards {up}")
        yield svg.text(wide - 6, bottom - 28, f"{here}{right} leads", anchor="end")
        yield svg.text(6, top + 15, f"{here}{up} leads")


def _set_words(words, wide):
    """Return for each word its line, where it begins there, and how wide it is.

    >>> _set_words(["a", " b"], 10)
    [(0, 0, 7.8), (1, 0, 8.3)]
    """
    places, line, x = [], 0, 0
    for word in words:
        long = round(svg.length(svg.visible(word), SIZE), 1)
        x += 6 if x and svg.starts_word(word) else 0
        if x and x + long > wide:
            line, x = line + 1, 0
        places.append((line, round(x, 1), long))
        x += long
    return places


def _arrows(chain, on, head, heads):
    """Yield an arrow for each head, tip to tail; one that is off has no length, and its tip no size."""
    style = 'fill="none" stroke="{}" stroke-width="{}"'
    for j, (start, end) in enumerate(zip(chain[:-1].tolist(), chain[1:].tolist(), strict=True)):
        picked = j == head
        colour, size = (VALUE, 12) if picked else (LINE, 7)
        along = heads[j] / (np.hypot(*heads[j]) or 1)
        size = min(size, float(np.hypot(*heads[j]))) * on[j]
        neck = np.array(end) - size * along
        side = size * 0.42 * np.array([-along[1], along[0]])
        tip = " ".join(f"{x:.1f} {y:.1f}L" for x, y in (np.array(end), neck + side, neck - side))
        d = f"M{start[0]:.1f} {start[1]:.1f}L{neck[0]:.1f} {neck[1]:.1f}"
        yield f'<path class="attnlib-moves" d="{d}" {style.format(colour, 3.5 if picked else 1.7)}/>'
        yield f'<path class="attnlib-moves" d="M{tip[:-1]}Z" fill="{colour}"/>'


def _beside(chain, on, head, heads, side):
    """Return (head, x, y) beside the middle of each arrow that is long enough to show its number."""
    places = []
    for j, middle in enumerate((chain[:-1] + chain[1:]) / 2):
        long = float(np.hypot(*heads[j])) * on[j]
        if long >= (1 if j == head else LABELLED):
            across = np.array([-heads[j][1], heads[j][0]]) / np.hypot(*heads[j])
            across *= side * (1 if across.sum() >= 0 else -1) * (16 if j == head else 12)
            places.append((j, *(middle + across).tolist()))
    return places


def _number_of_head(j, x, y, head):
    """Return the number of a head on a disc; a click on it picks the head."""
    radius, fill, edge, style = (10, VALUE, VALUE, ' style="fill:#000000"') if j == head else (8, "none", LINE, "")
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{edge}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="13" text-anchor="middle"{style}>{j + 1}</text>'
        f"{svg.target(round(x) - 11, round(y) - 11, 22, 22, row='head', first=j)}"
    )


def _points(chains):
    """Return points along chains, a tenth of an arrow apart, (points, 2)."""
    along = np.linspace(0, 1, 10, endpoint=False)[:, None, None]
    return np.concatenate([(x[:-1] + along * np.diff(x, axis=0)).reshape(-1, 2) for x in chains])


def _box_of_label(tip, wide, room, taken):
    """Return left, top, width and height of a label beside a tip, inside `room`, where it covers least of `taken`."""
    high, (left, above, right, below) = 32, room
    beside = [(-wide / 2, -high - 9), (-wide / 2, 9), (10, -high / 2), (-wide - 10, -high / 2)]
    beside += [(-wide * k, y) for k in (0.1, 0.9, 1.1, 1.25, 1.45) for y in (-high - 9, 9)]
    corners = np.clip(tip + np.array(beside), (left, above), (right - wide, below - high))
    inside = (taken > corners[:, None] - 8) & (taken < corners[:, None] + (wide + 8, high + 8))
    meets_tip = (abs(tip - corners - (wide / 2, high / 2)) < (wide / 2 + 6, high / 2 + 6)).all(axis=1)
    best = (inside.all(axis=-1).sum(axis=1) + 99 * meets_tip).argmin()
    return np.array([*corners[best].round(), wide, high])


def _ends(name, chain, end, box):
    """Yield where a chain begins and where it ends, and in a box the sentence's name and the coordinates of the end."""
    (x, y), (right, down), (left, top, wide, _) = chain[0].tolist(), chain[-1].tolist(), box.tolist()
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="none" stroke="currentColor" stroke-width="1.8"/>'
    yield f'<circle class="attnlib-moves" cx="{right:.1f}" cy="{down:.1f}" r="6" fill="{NEXT}"/>'
    where, middle = f"({', '.join(_with_sign(v, plus='') for v in end.tolist())})", round(left + wide / 2)
    yield svg.tag(middle, round(top) + 13, name, NEXT)
    yield svg.text(middle, round(top) + 29, where, anchor="middle")


def _with_sign(value, plus="+"):
    """Return a coordinate with one decimal, above 0 with a sign.

    >>> _with_sign(-0.02), _with_sign(-3.16), _with_sign(12.86)
    ('0.0', '-3.2', '+12.9')
    """
    words = svg.number(value, 1)
    return words if words[0] == "-" or words == "0.0" else plus + words


def _probability(p):
    """Return a probability, a small one with a digit more.

    >>> _probability(0.923), _probability(0.002)
    ('0.92', '0.002')
    """
    return f"{p:.2f}" if p >= 0.01 else f"{p:.3f}"

"""Ships of lesson program_a_head as pictures: a convoy with its rows of numbers, and a note that two layers pass on."""

import numpy as np

from attnlib.colours import KEY, LINE, QUERY, VALUE
from attnlib.live.still import figure
from attnlib.svg import picture, text
from attnlib.svg.parts import number

from .convoy import CARGO, FLAG, FLAGS, PLACE, Convoy, convoy

COLUMNS = (*FLAGS, "", "ONE", *map(str, range(8)))
SEEN = 0.01  # a smaller weight draws no line


def _line(path, colour="currentColor", width=1.4):
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.3g}"/>'


def _figure(high, sentence, parts):
    drawing = figure(picture(600, high, sentence, sentence, parts))
    drawing.axes[0].set_title(sentence, visible=False)  # its words stand for the picture where that is not seen
    return drawing


def _ship(x, y, flag, words="", note=""):
    """Return a ship that sails to the left, words in its hull, a note in front of its mast."""
    half = 15 if flag == "*" else 22  # the pilot's is a boat
    parts = [_line(f"M{x - half - 8} {y - 9}H{x + half}l-4 18H{x - half + 2}zM{x} {y - 9}v-34M{x} {y - 43}h20v16h-20")]
    parts.append(text(x + 10, y - 31, flag, anchor="middle", bold=True))
    parts.append(text(x - 3, y + 5, words, size=12, anchor="middle"))
    return "".join([*parts, _note(x - 36, y - 18, note)] if note else parts)


def _note(x, y, flag, colour=VALUE):
    return _line(f"M{x - 9} {y - 9}h18v18h-18z", colour, 2) + text(x, y + 5, flag, anchor="middle")


def sailing(flags, tons):
    """Draw a convoy, and below it the row of numbers that each ship is for a head."""
    c = Convoy(flags, convoy(flags, tons)[:, CARGO])
    left, top, wide, high = 72, 138, 34, 21
    parts = [_line("M10 76H590M30 92h-16l6 -5m-6 5l6 5", LINE), text(36, 97, "they sail to the left", size=12)]
    parts += [_ship(58 + 80 * i, 66, flag, f"{c.cargo[i]:.0f} t") for i, flag in enumerate(flags)]
    for name, block in {"FLAG": FLAG, "CARGO": slice(CARGO, CARGO + 1), "PLACE": PLACE}.items():
        x, over = left + wide * block.start, wide * (block.stop - block.start)
        parts.append(text(x + over / 2, top - 22, name, size=12, anchor="middle", bold=True))
        parts.append(_line(f"M{x + 2} {top - 17}h{over - 4}", LINE))
    for j, name in enumerate(COLUMNS):
        parts.append(text(left + wide * (j + 0.5), top - 3, name, anchor="middle", size=12))
    for i, row in enumerate(c.x):
        parts.append(text(left - 10, top + high * i + 15, c.ships[i], anchor="end"))
        for j, value in enumerate(row):
            cell = f'x="{left + wide * j}" y="{top + high * i}" width="{wide}" height="{high}"'
            fill = f'fill="{LINE}" opacity="{0.35 if value else 0.05}"'
            parts.append(f"<rect {cell} {fill}/>")
            x, y = left + wide * (j + 0.5), top + high * i + 15
            parts.append(text(x, y, number(value, 0), anchor="middle", bold=bool(value)))
    return _figure(
        top + high * c.n + 8, f"ships that sail to the left, and their rows of x: {'; '.join(c.ships)}", parts
    )


def draw_received(c, **rows):
    """Return a convoy as SVG, and below each ship in words what it receives, a line for each of `rows` by its name."""
    at, y = [96 + 66 * i for i in range(c.n)], 84
    parts = [_ship(x, 54, flag, f"{tons:.0f} t") for x, flag, tons in zip(at, c.flags, c.cargo, strict=True)]
    for name, words in rows.items():
        lines = [mixture.split(" + ") for mixture in words]  # its parts stand below each other
        parts.append(text(8, y, name, bold=True))
        parts += [
            text(x, y + 16 * k, "+ " * (k > 0) + part, size=12, anchor="middle")
            for x, line in zip(at, lines, strict=True)
            for k, part in enumerate(line)
        ]
        y += 16 * max(map(len, lines)) + 6
    said = [f"{name}: {', '.join(map(' '.join, zip(c.ships, words, strict=True)))}" for name, words in rows.items()]
    return picture(600, y - 8, "what each ship receives", "; ".join(said) or f"a convoy {c.flags}", parts)


def pictured(show):
    """Return `show` of a puzzle as `live.compare` asks for it: with a picture of what each ship receives."""

    def show_with_picture(flags, times):
        c, maps, rows, line = show(flags, times)
        below = draw_received(c, **rows) if c and (rows or not maps) else ""
        return c.ships if c else [], maps, below, line

    return show_with_picture


def note_passed_on(flags, maps):
    """Draw what two layers do for the last ship of a convoy; lines are as wide as the weights of their two maps."""
    (first, second), n = maps, len(flags)
    at, (top, middle, bottom) = [66 + 490 * i // (n - 1) for i in range(n)], (84, 204, 262)
    asks, taken = flags[-1], flags[second[-1].argmax()]
    noted = [flags[weights.argmax()] for weights in first]
    parts = [text(8, 20, "Layer 1: each ship notes the flag in front of it.", bold=True)]
    for i, j in np.ndindex(n, n):
        line = f"M{at[j]} {top + 12}L{at[i] - 36} {middle - 28}"
        parts += [_line(line, VALUE, 6 * first[i, j])] * int(first[i, j] > SEEN)
    parts += [_ship(x, top, flag) for x, flag in zip(at, flags, strict=True)]
    parts += [_ship(x, middle, flag, note=note) for x, flag, note in zip(at, flags, noted, strict=True)]
    for x, weight in ((at[j], second[-1, j]) for j in np.flatnonzero(second[-1] > SEEN)):
        parts.append(_line(f"M{at[-1] - 9} {bottom + 44}H{x - 36}V{middle - 7}", QUERY, 6 * weight))
        parts.append(_line(f"M{x - 47} {middle - 29}h22v22h-22z", KEY, 3))
        parts.append(_line(f"M{x} {middle + 12}V{bottom}H{at[-1] - 9}", VALUE, 6 * weight))
        parts += [text(x - 41, middle + 30, "key", anchor="end"), text(x + 8, middle + 30, "value")]
    notes = {"the last ship receives": (bottom, taken, VALUE)}
    notes |= {f"query: who has noted {asks}?": (bottom + 44, asks, QUERY)}
    for words, (y, flag, colour) in notes.items():
        parts.append(_note(at[-1], y, flag, colour) + text(at[-1] - 18, y - 7, words, anchor="end"))
    words = f"Layer 2: the last ship asks for {asks} among the notes, and takes the flag that it finds."
    parts.append(text(8, bottom + 78, words, bold=True))
    return _figure(bottom + 88, f"a convoy {flags}, noted: {', '.join(noted)}; the last ship receives {taken}", parts)

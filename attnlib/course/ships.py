"""Ships of notebook 10 as pictures: a convoy with its rows of numbers, and a note that two layers pass on."""

import numpy as np

from ..colours import LINE, VALUE
from ..live.still import figure
from ..svg import picture, text
from ..svg.parts import number
from .convoy import CARGO, FLAG, FLAGS, PLACE, Convoy, convoy

COLUMNS = (*FLAGS, "CARGO", "ONE", *map(str, range(8)))
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


def _note(x, y, flag):
    return _line(f"M{x - 9} {y - 9}h18v18h-18z", VALUE, 2) + text(x, y + 5, flag, anchor="middle")


def sailing(flags, tons):
    """Draw a convoy, and below it the row of numbers that each ship is for a head."""
    c = Convoy(flags, convoy(flags, tons)[:, CARGO])
    left, top, wide, high = 72, 138, 34, 21
    parts = [_line("M10 76H590M30 92h-16l6 -5m-6 5l6 5", LINE), text(36, 97, "they sail to the left", size=12)]
    parts += [_ship(58 + 80 * i, 66, flag, f"{c.cargo[i]:.0f} t") for i, flag in enumerate(flags)]
    for name, block in {"FLAG": FLAG, "PLACE": PLACE}.items():
        x, over = left + wide * block.start, wide * (block.stop - block.start)
        parts.append(text(x + over / 2, top - 22, name, size=12, anchor="middle", bold=True))
        parts.append(_line(f"M{x + 2} {top - 17}h{over - 4}", LINE))
    for j, name in enumerate(COLUMNS):
        parts.append(text(left + wide * (j + 0.5), top - 3, name, anchor="middle", size=11.5 if len(name) > 1 else 12))
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


def note_passed_on(flags, maps):
    """Draw what two layers do for the last ship of a convoy; lines are as wide as the weights of their two maps."""
    (first, second), n = maps, len(flags)
    at, (top, middle, bottom) = [66 + 490 * i // (n - 1) for i in range(n)], (84, 204, 316)
    noted = [flags[weights.argmax()] for weights in first]
    parts = [text(8, 20, "Layer 1: each ship notes the flag in front of it.", bold=True)]
    for i, j in np.ndindex(n, n):
        line = f"M{at[j]} {top + 12}L{at[i] - 36} {middle - 28}"
        parts += [_line(line, VALUE, 6 * first[i, j])] * int(first[i, j] > SEEN)
    layer_2 = f"Layer 2: the last ship asks who has noted {flags[-1]},", "and takes the flag of that ship."
    parts += [_ship(x, top, flag) for x, flag in zip(at, flags, strict=True)]
    parts += [_ship(x, middle, flag, note=note) for x, flag, note in zip(at, flags, noted, strict=True)]
    for j in range(n):
        line = f"M{at[j]} {middle + 12}L{at[-1]} {bottom - 10}"
        parts += [_line(line, VALUE, 6 * second[-1, j])] * int(second[-1, j] > SEEN)
    taken = flags[second[-1].argmax()]
    parts += [_note(at[-1], bottom, taken), text(at[-1] - 18, bottom + 5, "the last ship receives", anchor="end")]
    parts += [text(8, bottom + 18 * k - 8, line, bold=True) for k, line in enumerate(layer_2)]
    return _figure(bottom + 18, f"a convoy {flags}, noted: {', '.join(noted)}; the last ship receives {taken}", parts)

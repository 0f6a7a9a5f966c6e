"""The view of a model that writes: the sentence so far, where every head looks, and the next word."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .. import arguments, core, svg
from ..colours import KEY, NEXT
from ..validation import ShapeError
from .controls import choice, integers
from .speaking_view import Page, lines
from .view import LiveView

CELL, ROW, LEFT, TOP, LINE, SLANT = 35, 26, 70, 86, 26, 100  # pixels of a map, of the room around it
COLUMNS = 8  # of a map on a phone
BARS, BAR, NAME = 8, 80, 70  # how many bars, pixels of the longest, room for a word
LONGEST = 64  # tokens of a sentence
START, END = "<s>", "."  # the token before all words, and the one after which nothing follows
TEMPERATURES = (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2)  # a page keeps both ends and 1


def writing(next_word: Callable, vocabulary: Sequence[str], *, longest: int = 14, seed: int = 0) -> LiveView:
    """Write a sentence word by word, and show at each step where every head looks, and the probable next words.

    Parameters
    ----------
    next_word : callable
        ``next_word(tokens) -> (logits, weights)`` for the word behind `tokens`, a tuple that begins with "<s>":
        logits (V,), and {name of a head: its weights at the last token, (n,)}.
    vocabulary : sequence of str, V
        The words; a sentence ends with ".".
    longest : int
        Words of a sentence at most, up to 64.
    seed : int
        Of sentence 1; the slider writes others. The same random numbers serve at every temperature: a word changes
        only where the probabilities do.

    Returns
    -------
    LiveView
        Controls: step, temperature, sentence.

    Examples
    --------
    >>> def next_word(tokens):
    ...     return np.zeros(2), {"head 1": np.full(len(tokens), 1 / len(tokens))}
    >>> view = writing(next_word, ["again", "."], longest=4)
    >>> view.sliders["step"].value = 0
    >>> view.shown["weights"]
    array([[1.]])
    """
    vocabulary, longest = _words(vocabulary), arguments.whole(longest, "longest", 1, LONGEST)
    seed = arguments.whole(seed, "seed", 0)
    model = lru_cache(maxsize=512)(_validating(next_word, len(vocabulary)))
    tokens_at = lru_cache(maxsize=64)(lambda *chosen: _write_sentence(model, vocabulary, longest, *chosen))
    now: dict[str, Any] = {}

    def render(step, temperature, draw, key=None):
        tokens = tokens_at(temperature, seed + draw - 1)
        n = min(1 + step, len(tokens) - 1)  # tokens before the word that is being written
        logits, weights = model(tokens[:n])
        now.update(heads=list(weights), tokens=tokens[:n])
        maps = np.stack(list(weights.values()))  # (heads, n)
        p = _probabilities(logits, temperature)
        sentence = f"{' '.join(tokens[1:n])} … Step {step}: before “{tokens[n]}”, "
        sentence += f"which has probability {p[vocabulary.index(tokens[n])]:.2f}"
        right, high = LEFT + (longest + 1) * CELL, SLANT + len(maps) * ROW
        chosen = key if key is not None and key < n else None
        title, rooms = "a sentence being written", ((right + NAME, (0, 0)), (svg.PHONE, None))
        wide_narrow = [
            svg.picture(room, TOP, title, sentence, [_sentence(tokens, n, room, step)], at=at) for room, at in rooms
        ]
        drawn = []
        for start in range(0, longest + 1, COLUMNS):  # what has no room on a phone stands below the others there
            size = min(COLUMNS, longest + 1 - start) * CELL + LEFT * (not start), high if start < n else 1
            part, at = _heads(list(weights), maps, tokens[:n], chosen, start), (LEFT * (start > 0) + CELL * start, TOP)
            drawn.append(svg.picture(*size, f"where heads look, from key {start}", sentence, [part], at=at))
        left = f'{svg.layouts(*wide_narrow)}<div class="attnlib-parts attnlib-heads-below">{"".join(drawn)}</div>'
        bars = f'<g transform="translate(0 {ROW})">{_bars(p, vocabulary, tokens[n])}</g>'
        words = ", ".join(f"{vocabulary[i]} {p[i]:.2f}" for i in _likely(p))
        size = NAME + BAR + 50, ROW * (BARS + 1)
        return left + svg.picture(*size, "the next word", words, [bars], at=(right, TOP)), {"weights": maps}

    controls = {
        "step": integers("step", 0, longest - 1, min(2, longest - 1)),
        "temperature": choice("temp.", TEMPERATURES, 1),
        "sentence": integers("sentence", 1, 31, 1),
    }
    return _Writing(controls, render, labels=lambda: (now["heads"], now["tokens"], None), picked={"key": None})


def _words(vocabulary):
    vocabulary = arguments.labels(arguments.several(vocabulary, "vocabulary"), "vocabulary")
    if len(set(vocabulary)) < len(vocabulary):
        raise ValueError("vocabulary must name each word once, got one twice. Fix: list(dict.fromkeys(vocabulary)).")
    return vocabulary


def _validating(next_word, size):
    """Return a function that looks at what `next_word` returns."""
    arguments.function(next_word, "next_word", "next_word(tokens)")

    def model(tokens):
        answer = next_word(tokens)
        try:
            logits, weights = answer
            logits, weights = arguments.to_array(logits), {str(k): arguments.to_array(w) for k, w in weights.items()}
        except (AttributeError, TypeError, ValueError):
            raise TypeError(
                "next_word must return (logits, {name of a head: weights}), "
                f"got {answer!r:.60}. Fix: return logits, weights."
            ) from None
        shapes = [w.shape for w in weights.values()]
        if logits.shape != (size,) or set(shapes) != {(len(tokens),)}:
            raise ShapeError(
                f"next_word must return logits ({size},), one for each word of the vocabulary, and weights "
                f"({len(tokens)},) of at least one head, one for each token, got {logits.shape} and {shapes}. "
                "Fix: those of the last token."
            )
        if np.isnan(logits).any() or np.isposinf(logits).any() or not np.isfinite(logits).any():
            raise ValueError("logits must be finite, or -inf for what cannot follow, got others. Fix: look for NaN.")
        return logits, weights

    return model


class _Writing(LiveView):
    hint = "Each row is a head at the last token. Point at a cell, or choose it by Tab and arrow keys."
    row_name = "head row"


def _write_sentence(model, vocabulary, longest, temperature, draw):
    """Return the tokens of a whole sentence; a word is the one in whose share of 0..1 a random number falls."""
    tokens, chance = (START,), np.random.default_rng(draw).random(longest + 1)
    while len(tokens) <= longest and tokens[-1] != END:
        p = _probabilities(model(tokens)[0], temperature)
        i = min(int(np.searchsorted(p.cumsum(), chance[len(tokens)])), len(p) - 1)
        tokens = (*tokens, vocabulary[i])
    return tokens


def _probabilities(logits, temperature):
    """Return softmax(logits / temperature); at temperature 0 all goes to the largest."""
    return core.softmax(logits / temperature) if temperature else np.eye(len(logits))[logits.argmax()]


def _likely(p):
    """Return the numbers of the most probable words, falling."""
    return np.argsort(-p, kind="stable")[:BARS]


def _sentence(tokens, n, room, step):
    """Return the words so far on two lines, and the one that is being written in a frame.

    What has no room on the left is left out.
    """
    told = "the sentence so far, and the next word" if step < n else f"the sentence has ended, at step {n - 1}"
    written = lines(" ".join(tokens[1 : n + 1]), Page(room - 12, 14, 0, 0), 2, last=True)
    written[-1] = written[-1].removesuffix(tokens[n]).rstrip()
    elements = [svg.text(10, 17, told, bold=True, size=16)]
    elements += [svg.text(10, 44 + LINE * i, words, size=16) for i, words in enumerate(written) if words]
    x, y = 10 + (round(svg.length(written[-1], 16)) + 12) * bool(written[-1]), 18 + LINE * len(written)
    wide = round(svg.width(tokens[n], 16)) + 10
    frame = f'height="22" rx="3" fill="none" stroke="{NEXT}" stroke-width="2.5"'
    elements.append(f'<rect x="{x}" y="{y - 16}" width="{wide}" {frame}/>')
    return "".join([*elements, svg.text(x + wide / 2, y, tokens[n], size=16, bold=True, anchor="middle")])


def _heads(names, maps, tokens, key, start):
    """Return the rows of all heads for the columns from `start`, as many as a phone has beside each other.

    Every token has its column from the start, so that nothing moves. On a phone each such part names its rows.
    """
    high, left, end = ROW * len(maps), LEFT if not start else 0, start + COLUMNS
    every, tokens, maps = len(tokens), tokens[start:end], maps[:, start:end]
    if not tokens:
        return "<g></g>"
    beside = "".join(svg.text(left - 8, ROW * i + 19, name, anchor="end") for i, name in enumerate(names))
    elements = [f'<g class="attnlib-down">{beside}</g>' if start else beside]
    elements += [
        svg.text(left + CELL * j + 21, high + 18, svg.shorten(token), anchor="end", turn=-50)
        for j, token in enumerate(tokens)
    ]
    cells = svg.matrix(maps, CELL, high=ROW, rows=names, columns=tokens, names=("", "key"))
    here = key is not None and start <= key < end
    chosen = svg.frame(CELL * (key - start), -1.5, CELL, high + 3, KEY, line=2) if here else ""
    options = {"row": "row", "rows": len(maps), "column": "key", "columns": every, "shown": "weights"}
    where = "" if start else svg.target(0, 0, CELL * every, high, **options)
    elements.append(f'<g transform="translate({left} 2)">{cells}{chosen}{where}</g>')
    if not start:
        elements.append(svg.tag(left + CELL * len(tokens) / 2, high + SLANT - 6, "keys: the tokens so far", KEY))
    return f"<g>{''.join(elements)}</g>"


def _bars(p, vocabulary, taken):
    """Return the most probable next words as bars, the one that is taken in bold."""
    elements = [svg.tag(10, -10, "the next word", NEXT, anchor="start")]
    for i, word in enumerate(_likely(p)):
        y, name = ROW * i, vocabulary[word]
        elements.append(svg.text(NAME - 8, y + 17, svg.shorten(name, 8), anchor="end", bold=name == taken))
        hover = html.escape(f"{name}: {svg.exact(p[word])}")
        elements.append(
            f'<rect x="{NAME}" y="{y + 3}" width="{round(BAR * p[word])}" height="{ROW - 6}" fill="{NEXT}">'
            f"<title>{hover}</title></rect>"
        )
        elements.append(svg.text(NAME + round(BAR * p[word]) + 6, y + 17, f"{p[word]:.2f}"))
    return "".join(elements)

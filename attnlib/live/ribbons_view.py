"""The view that opens the series: where a word looks, in any head, and what comes next, at any d_k."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from .. import arguments, svg
from .controls import DIVISOR, buttons, choice, text_field
from .stops import Stops, parse_stops
from .view import LiveView

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD, WHOLE = "this head", "the whole model"


def ribbons(
    stops: dict[str, Any] | Callable[[str], dict[str, Any]], text: str | None = None, *, query: int | None = None
) -> LiveView:
    """Show where a word of a real sentence looks, and the next word, at each d_k: too sharp, right, too pale.

    Ribbons as wide as the weights of one head lead from a word to those it looks at. A click chooses another word, or
    another head in the grid. The slider divides the scores of that head by another sqrt(d_k), or those of the whole
    model: then other vectors reach the head, and the next word changes, too.

    Parameters
    ----------
    stops : dict, or callable
        prompt, words (n tokens), layer and head (of the map, from 1), d_k (the model's own) and stops: for each its
        d_k; weights (n, n), or of a causal head rows of 1, 2, ... n numbers; and next, the likely next tokens as
        (token, probability), falling. Or a dict from each d_k to a function without arguments that returns its stop.
        Optional are scores (layers, heads, n, n) at the model's own d_k, divided and masked, for all other heads, with
        which the own stop is enough; and asks, (question, answers to guess). `watch` has them of any model: seen.stops.
        A callable gives such a dict for a text; what it raises as ValueError or LookupError is shown.
    text : str, optional
        The text at the start, which a reader can change, if `stops` is a callable.
    query : int, optional
        The token that looks at first; by default the last, behind which the next word stands. A click chooses others.

    Returns
    -------
    LiveView
        Controls: d_k; with scores and several stops also way, with a question guess, with a callable sentence.

    Raises
    ------
    TypeError, ValueError
        If `stops` is no such dict, or its numbers do not fit its words.

    Examples
    --------
    >>> stops = [{"d_k": d, "weights": [[1, 0], [0.5, 0.5]], "next": [(" c", 0.9)]} for d in (1, 64)]
    >>> view = ribbons({"words": ["a", " b"], "layer": 1, "head": 1, "d_k": 64, "stops": stops})
    >>> view.shown["weights"].shape
    (2, 2)
    """
    given = stops if callable(stops) else lambda _: stops
    held = parse_stops(given(arguments.text(text, "text") if callable(stops) else ""))
    last = len(held.words) - 1
    query = last if query is None else arguments.whole(query, "query", 0, last)
    controls: dict[str, Any] = {}
    if held.asks:
        asks, answers = held.asks
        controls["guess"] = buttons(asks, [(word, k) for k, word in enumerate(answers, 1)])
        controls["guess"].style.description_width = "initial"  # a question, not a label
        controls["guess"].add_class("attnlib-asks")
    if callable(stops):
        controls["sentence"] = text_field("sentence", text or "", continuous_update=False)
        controls["sentence"].layout.margin = "2px max(2px, 100% - 642px) 2px 2px"  # on a line of its own
    controls["d_k"] = choice("d_k", [(f"{d:g}", d) for d in held.d_ks], held.own, DIVISOR)
    if held.scores is not None and len(held.by) > 1:
        controls["way"] = buttons("in", [(HEAD, 0), (WHOLE, 1)], 1)
    return _Ribbons(controls, held, given, query)


class _Ribbons(LiveView):
    hint = "Click a word to see where it looks, or a head; or choose them by Tab and arrow keys."
    clicks = ("query",)  # with all heads, or at all stops, a page has no room

    def __init__(self, controls: Any, held: Stops, given: Any, query: int) -> None:
        self.held, self.given = held, given
        self.text = controls["sentence"].value if "sentence" in controls else None
        self.fills = "guess" if "guess" in controls else None
        self._grid: tuple[Any, str] = (None, "")  # the last one: no slider moves it, and it takes most of the time
        picked = {"query": query, "layer": held.layer - 1, "head": held.head - 1}
        names = [*controls, *picked]
        super().__init__(
            controls,
            lambda *now: self._draw_stop(**dict(zip(names, now, strict=True))),
            picked=picked,
            labels=lambda: (*[[svg.visible(word) for word in self.held.words]] * 2, None),
            main="d_k",
        )

    def choose(self, **chosen: int | None) -> None:
        if "layer" in chosen and "way" in self.sliders:
            chosen["way"] = 0
        super().choose(**chosen)

    def _titles(self):
        """Return the words for a word that was chosen by a key."""
        row = self.picked["query"]
        return html.escape(svg.describe_row(self.held.words, self.shown["weights"][row], row), quote=False)

    def _draw_stop(self, d_k, query, layer, head, guess=0, sentence=None, way=None):
        problem, way = "", len(self.held.by) > 1 if way is None else way
        if sentence != self.text:
            try:
                self.held, self.text = parse_stops(self.given(sentence)), sentence
                query, layer, head = len(self.held.words) - 1, self.held.layer - 1, self.held.head - 1
                self.picked |= {"query": query, "layer": layer, "head": head}
            except (ValueError, LookupError) as error:  # the last picture stays
                problem = f"<p>{html.escape(str(error.args[0]))}<br>The picture still shows the last sentence.</p>"
        held, trained = self.held, self.held.at(self.held.own)
        if way:
            layer, head, stop = held.layer - 1, held.head - 1, held.at(d_k)
        else:
            stop = trained._replace(d_k=d_k, weights=held.maps(d_k, layer, head))
        row, guesses = stop.weights[query], held.asks[1] if self.fills else ()
        options = {"nexts": [other.next[0][0] for other in held.stops], "guesses": guesses, "guess": guess or 0}
        options |= {"verdict": held.says(stop if way else trained), "rows": range(len(held.words))}
        options["setting"] = f"layer {layer + 1}, head {head + 1}; divided by √{d_k:g} in {WHOLE if way else HEAD}"
        waits, pictures = bool(guesses) and not guess, problem
        for name in ("across", "down"):
            picture = svg.ribbons(held.words, row, query, stop.next, narrow=name == "down", **options)
            pictures += f'<div class="attnlib-{name}">{picture}</div>'
        for name, control in self.sliders.items() if self.fills else ():  # the question alone, then all others
            control.layout.display = "" if (name == "guess") == waits else "none"  # JupyterLite drops a None
        if not waits:
            shown = self.text, query, layer, head
            if shown != self._grid[0]:
                self._grid = shown, _heads(held, query, (layer, head))
                self.kept = self._grid[1:]
            below = _describe_head(held, row, query, (layer, head), d_k, way) + self._grid[1]
            pictures += f'<div class="attnlib-said" data-stage="1">{below}</div>'
        return pictures, {"weights": stop.weights}


def _describe_head(held, row, query, head, d_k, way):
    """Return in two sentences where the word looks in this head, and what the slider does."""

    def mark(j, word):
        word = f"“{word}”" if word in ",.;:" else html.escape(word, quote=False)
        ink = svg.paint("query-text" if j == query else "key-text")
        return f'<b style="color:{ink}">{word}</b>'

    root, own, top = d_k**0.5, f"{held.own**0.5:.3g}", int(row.argmax())
    by = f"{root:.1f}" if root % 1 and root < 10 else f"{root:.0f}"
    if d_k == held.own:
        sentences = f"To score a word, a head compares {svg.maths('d_k', 'html')} = {d_k:g} numbers; "
        sentences += f"as trained, the score is divided by √{d_k:g} = {own}."
    elif way:
        sentences = f"All heads divide by {by}, not by {own}."
    else:
        moves = "sharper: the ribbons gather" if d_k < held.own else "paler: the ribbons spread"
        sentences = f"This head divides by {by}, not by {own}, and looks {moves}."
    most = mark(top, svg.visible(held.words[top])) if top == query else svg.key_name(held.words, top, mark)
    sentences += f" Most goes to {most}: {row[top]:.2f}."
    if not way and d_k != held.own:
        sentences += " The next word stays that of the model as trained."
    looks = svg.describe_row(held.words, row, query, mark)
    return f"<p>Layer {head[0] + 1}, head {head[1] + 1}: {looks} {sentences}</p>"


def _heads(held, query, head):
    """Return the grid of all heads as trained, coloured by how much they look where this head looks most.

    The first word and the one that looks, where heads park, are passed over, and words at which no head may look.
    """
    if held.scores is None:
        return ""
    rows, words = held.maps(held.own)[:, :, query], held.words  # (layers, heads, n)
    key = max(range(len(words)), key=lambda j: (rows[..., j].any(), j not in (0, query), rows[(*head, j)]))
    looks = svg.shorten(svg.visible(words[query]), 8)
    at = svg.key_name(words, key, lambda _, word: f"“{svg.shorten(word, 8)}”")
    title = f"How much “{looks}” looks at {at}: {rows[..., 0].size} heads as trained"
    picture = svg.heads(rows[..., key], *head, title, vmax=1.0, at=(0, svg.RIBBONS_HIGH))
    return f'<div class="attnlib-heads"><div class="attnlib-down">{html.escape(title)}</div>{picture}</div>'

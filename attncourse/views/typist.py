"""What a model of letters writes after so many steps of training, under a slider that divides its scores."""

from attnlib import live, svg
from attnlib.colours import NEXT
from attnlib.live.controls import DIVISOR, choice
from attnlib.live.speaking_view import ACROSS, DOWN, ROW, lines


def typist(stops, steps=2400, d_k=16):
    """Show a text for each number of steps and each d_k; `stops` holds {steps: {d_k: (text, bits a letter)}}.

    Examples
    --------
    >>> view = typist({0: {1: ("xq", 6.6)}, 9: {1: ("the", 2.1)}}, steps=9, d_k=1)
    >>> "2.10 bits" in view.picture.value
    True
    """
    pages = {
        page: max(len(_lines(text, page)) for row in stops.values() for text, _ in row.values())
        for page in (ACROSS, DOWN)
    }

    def draw(page, steps, d_k):
        text, bits = stops[steps][d_k]
        told = f"after {steps} steps: {bits:.2f} bits a letter"
        parts = [
            svg.text(8, 20, told, bold=True),
            f'<rect x="8" y="34" width="4" height="{ROW * pages[page]}" fill="{NEXT}"/>',
        ]
        written = (svg.text(22, 52 + ROW * i, line, size=page.size) for i, line in enumerate(_lines(text, page)))
        # no prose of ours: any letter may stand there
        parts.append(f'<g class="attnlib-written">{"".join(written)}</g>')
        size, options = (page.wide, 46 + ROW * pages[page]), {"at": (0, 0), "grow": 2} if page == ACROSS else {}
        return svg.picture(*size, "what the model writes", f"{told}. It writes: {text}", parts, **options)

    def render(steps, d_k):
        return svg.layouts(*(draw(page, steps, d_k) for page in (ACROSS, DOWN))), {}

    controls = {
        "steps": choice("steps", [(f"{n:,}", n) for n in stops], steps),
        "d_k": choice("d_k", [(f"{d:g}", d) for d in stops[steps]], d_k, DIVISOR),
    }
    return live.LiveView(controls, render, hint="")


def _lines(text, page):
    return lines(text, page, 2 * page.written)

"""The colours of every picture of the series, still or alive: read from look/tokens.css, and needs NumPy alone."""

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

LOOK = Path(__file__).parent / "look"
# What front ends call their theme, whatever the system says: JupyterLab and Notebook 7, VS Code, Colab,
# and pages of ours. Where none of these stands, the colours are the light ones, or those of the scheme around.
THEMES = {
    scheme: (f'[data-jp-theme-light="{light}"]', f".vscode-{scheme}", f"[theme={scheme}]", f"[data-theme={scheme}]")
    for scheme, light in (("light", "true"), ("dark", "false"))
}


def _read_tokens() -> dict[str, str]:
    declared = re.sub(r"/\*.*?\*/", "", (LOOK / "tokens.css").read_text("utf-8"), flags=re.DOTALL)
    return dict(re.findall(r"--([\w-]+): ([^;]+);", declared.partition("}")[0]))  # below, a whole page changes some


TOKENS = _read_tokens()  # by name, without the two dashes, as the file has them


def token(name: str, dark: bool = False) -> str:
    """Return what a token of look/tokens.css is on a light or on a dark page.

    >>> token("ink"), token("ink", dark=True), token("right-text")
    ('#1b1a17', '#efece4', '#00694d')
    """
    value = re.sub(r"var\(--([\w-]+)\)", lambda found: token(found[1], dark), TOKENS[name])
    return re.sub(r"light-dark\(((?:\([^)]*\)|[^,(])*), (.*)\)", r"\2" if dark else r"\1", value)


def sheet(scope: str, *names: str) -> str:
    """Return the tokens as CSS for a part of somebody else's page: all of them, or the named ones and what they need.

    They follow the front end's own theme, and their sizes are pixels: another's page may have another `rem`.

    >>> sheet(".attnlib-verdict", "right", "s20").splitlines()[0]
    ':is(.attnlib-verdict) { --value: #009e73; --right: var(--value); --s20: 20px }'
    """
    wanted = set(names or TOKENS)
    for name in reversed(TOKENS):  # a token names only others that stand above it
        if name in wanted:
            wanted |= {*re.findall(r"var\(--([\w-]+)\)", TOKENS[name])}
    declared = "; ".join(f"--{name}: {_in_pixels(value)}" for name, value in TOKENS.items() if name in wanted)
    lifts = {"light": "; --lift: none", "dark": "; --lift: var(--lift-dark)"} if "lift-dark" in wanted else {}
    switched = (
        f":is({', '.join(theme)}) :is({scope}) {{ color-scheme: {scheme}{lifts.get(scheme, '')} }}\n"
        for scheme, theme in THEMES.items()
    )
    return f":is({scope}) {{ {declared} }}\n{''.join(switched)}"


def _in_pixels(value):
    return re.sub(r"([\d.]+)rem", lambda found: f"{16 * float(found[1]):g}px", value)


def _shape(name):
    return token(name).upper()


# One colour each for queries, keys and values; the word always stands beside it. Families of a chart may borrow them.
QUERY, KEY, VALUE = _shape("query"), _shape("key"), _shape("value")
NEXT = _shape("next")  # the next word
NOT_FINITE = _shape("not-finite")
BELOW = _shape("below")  # below zero, in a map whose numbers above zero have a role's colour
PAPER, SUNK, INK, QUIET, EDGE, RULE = map(token, ("paper", "sunk", "ink", "quiet", "edge", "rule"))
MASKED, HATCH = PAPER, EDGE  # ground and stripes of blocked cells, in every rendering
LINE = EDGE  # axes and grid lines
ROLES = {QUERY: "query", KEY: "key", VALUE: "value", NEXT: "next"}
# How much of the fill the 256 steps of a map have: what is small can be seen.
SHARES = np.linspace(0, 1, 256) ** 0.8


def rgb(colour: str) -> tuple[int, ...]:
    """Return a colour as three numbers from 0 to 255.

    >>> rgb("#0072B2")
    (0, 114, 178)
    """
    return tuple(bytes.fromhex(colour[1:]))


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2 (0 is black, 1 is white).

    >>> luminance("#ffffff")
    1.0
    """
    r, g, b = ((c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in np.array(rgb(colour)) / 255)
    return float(0.2126 * r + 0.7152 * g + 0.0722 * b)


def contrast(one: str, other: str) -> float:
    """Return the contrast of WCAG 2, from 1 (the same colour) to 21 (black on white); text needs 4.5.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@lru_cache(maxsize=512)
def text_on(colour: str) -> str:
    """Return black or white, whichever stands out more on `colour`: at least 4.58 : 1.

    >>> text_on("#440154")
    '#ffffff'
    """
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, colour))


def map_name(tint: str | None = None) -> str | None:
    """Return the token with which a map ends, of weights or in the colour of a role; None where it is no role's.

    >>> map_name(), map_name(QUERY), map_name("#808080")
    ('weight', 'query-map', None)
    """
    return None if tint not in (None, *ROLES) else "weight" if tint in (None, KEY) else f"{ROLES[tint]}-map"


@lru_cache(maxsize=16)
def colour_table(tint=None, dark=False):
    """Return the 256 colours of a scale, (256, 3) uint8: from an empty cell to the end of a map, or to `tint`.

    >>> colour_table()[0].tolist() == list(rgb(SUNK)), colour_table(QUERY)[255].tolist()
    (True, [0, 114, 178])
    """
    name = map_name(tint)
    ends = [np.array(rgb(end)) for end in (token("sunk", dark), token(name, dark) if name else tint)]
    return (ends[0] + SHARES[:, None] * (ends[1] - ends[0])).round().astype(np.uint8)


@lru_cache(maxsize=8)
def inks(tint=None):
    """Return for each colour of `colour_table` the colour of a text on it, as CSS, for a light and for a dark page.

    >>> inks()[0], inks()[255]
    ('var(--on-pale,#000000)', '#000000')
    """
    both = [[text_on(f"#{bytes(row).hex()}") for row in colour_table(tint, dark)] for dark in (False, True)]
    names = {("#000000", "#ffffff"): "var(--on-pale,#000000)", ("#ffffff", "#000000"): "var(--on-full,#ffffff)"}
    return [names.get(pair, pair[0]) for pair in zip(*both, strict=True)]


def veil(level: int, tint: str | None = None) -> str:
    """Return a colour of a map for a cell of plain HTML, thin enough for the words of the page, light or dark.

    Such a page has no tokens, and of an untrusted notebook JupyterLab keeps plain colours alone: one over the page's
    own ground follows every theme. At 46 % of a role's colour words still have 4.5 on the grounds of all front ends.

    >>> veil(0), veil(255)
    ('#d55e0000', '#d55e0076')
    """
    return f"{(tint or KEY).lower()}{round(118 * SHARES[level]):02x}"


def stripe_pixels(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the pixels of blocked cells in rows `i` and columns `j` of a map that has a pixel for each, (n, 4) uint8.

    Between the stripes an empty cell is seen, whatever colour the page gives it.

    >>> stripe_pixels(np.array([0, 0]), np.array([0, 3])).tolist() == [[*rgb(HATCH), 255], [*rgb(HATCH), 0]]
    True
    """
    return np.array([(*rgb(HATCH), 255 * (k % 6 < 2)) for k in range(6)], dtype=np.uint8)[(i + j) % 6]


def levels(values: np.ndarray, vmin: float, vmax: float) -> np.ndarray:
    """Return for each value its place in a scale that ends at `vmin` and `vmax`, 0 to 255; 0 if it is not finite.

    >>> levels(np.array([0.0, 0.5, 7.0]), 0, 1).tolist()
    [0, 127, 255]
    """
    share = (np.where(np.isfinite(values), values, vmin) - vmin) / ((vmax - vmin) or 1)
    return (255 * np.minimum(np.maximum(share, 0), 1)).astype(np.uint8)  # quicker than np.clip for a few values

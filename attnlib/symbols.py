"""Symbols as people type them, d_k or K^T, set as mathematics: for SVG, for HTML, and for a screen reader."""

import html
import re
from functools import lru_cache

# sqrt(d_k), d_k, W_Q, W_K^T, K^T, q.k.
SYMBOL = re.compile(
    r"sqrt\((?P<root>[^()]+)\)|\b(?P<letter>[dnWwqkv])_(?P<sub>model|in|U[KV]|[a-zA-Z0-9])\b(?P<prime>'|\^T\b|)"
    r"|\b(?P<up>[KQX])\^T\b|\b(?P<dot>q\.k)\b"
)
# Code in a text: between backticks, a call, an index, a power, a name with an underscore.
_INDEX = r"\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]"
CODE = "|".join(
    (
        r"`[^`\n]+`",
        rf"\b(?!sqrt\(|\w+\(s\))(?:\.?\b[\w.]+\((?:[^()\n]|\([^()\n]*\))*\)(?:{_INDEX})?)+",  # a call
        rf"\b[\w.]+{_INDEX}",
        r"\b\w+ ?\*\* ?(?:\((?:[^()\n]|\([^()\n]*\))*\)|\w+(?:\.\d+)?(?:/\d+)?)",  # a power
        r"'\w*_\w+'",
        r"\b(?![dnWwqkv]_(?:model|in|U[KV]|\w)\b)\w+_\w+(?:\.\w+)*",  # a name
    )
)


@lru_cache(maxsize=1024)
def maths(words, markup="svg"):
    """Return escaped text with sqrt(d_k), d_k, W_Q, K^T and q.k as mathematics, for "svg", "html" or "speech".

    >>> maths("K^T", "html")
    '<i>K</i><sup>T</sup>'
    """
    italic, sub, over = {
        "svg": (
            '<tspan font-style="italic">{}</tspan>',
            '<tspan dy="3" style="font-size:.78em">{}</tspan><tspan dy="-3">\u200b</tspan>',
            "√{}",
        ),
        "html": ("<i>{}</i>", "<sub>{}</sub>", "√{}"),
        "speech": ("{}", " {}", "the root of {}"),
    }[markup]
    up = sub.replace('dy="3"', 'dy="-5"').replace('dy="-3"', 'dy="5"').replace("sub>", "sup>")
    up = " transposed" if markup == "speech" else up

    def symbol(match):
        if match["root"]:
            return over.format(SYMBOL.sub(symbol, match["root"]))
        if match["letter"]:
            raised = up.format("T") if match["prime"] == "^T" else match["prime"]
            return italic.format(match["letter"]) + sub.format(match["sub"]) + raised
        return (
            italic.format(match["up"]) + up.format("T") if match["up"] else f"{italic.format('q')}·{italic.format('k')}"
        )

    return SYMBOL.sub(symbol, html.escape(words, quote=False))


def speech(words):
    """Return escaped text as a screen reader should say it; code stays as it is.

    >>> speech("q.k / sqrt(d_k), x.reshape(n, d_model)")
    'q·k / the root of d k, x.reshape(n, d_model)'
    """
    parts = enumerate(re.split(f"({CODE})", words))
    # Most are said once: in the cache they would push out what is drawn again.
    return "".join(html.escape(x) if i % 2 else maths.__wrapped__(x, "speech") for i, x in parts)

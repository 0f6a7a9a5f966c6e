"""Pictures as SVG text: pure functions from arrays to strings, fast enough to follow a slider.

Text is drawn in currentColor, so that it is readable in a light and in a dark theme. Everything that a learner can
type is escaped.
"""

import base64
import html
import io

import numpy as np
from PIL import Image

from .plot import KEY, NOT_FINITE, QUERY, palette

CELLS = 16  # above this many tokens a map goes in as one image, not as rectangles
SIDE = 300  # width of a map in user units; the text of 13 units is then readable on a projector
FONT = 'font-family="system-ui, sans-serif" fill="currentColor"'


def heatmap(weights, *, title="", queries=None, keys=None, attn_mask=None, highlight=None):
    """Return one map as an <svg> element.

    Parameters
    ----------
    weights : ndarray, (n_q, n_k)
        Between 0 and 1.
    title : str
    queries, keys : sequence of str, optional
        Token labels; numbers from 0 by default.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend; other cells are hatched.
    highlight : int, optional
        A query whose row gets a frame.

    Returns
    -------
    str

    Examples
    --------
    >>> heatmap(np.eye(2), title="identity")[:14]
    '<svg role="img'
    """
    n_q, n_k = weights.shape
    cell = min(SIDE / n_k, SIDE / n_q, 60)
    width, height = cell * n_k, cell * n_q
    queries = [str(i) for i in range(n_q)] if queries is None else queries
    keys = [str(j) for j in range(n_k)] if keys is None else keys
    left, top = 40 + min(8 * max(map(len, queries)), 80), 26
    slanted = cell < 8 * max(map(len, keys))
    bottom = 30 + (min(6 * max(map(len, keys)), 60) if slanted else 18)
    parts = [f'<text x="{left}" y="17" font-size="15" font-weight="600">{html.escape(title)}</text>']
    draw = _cells if max(n_q, n_k) <= CELLS else _image
    parts.append(f'<g transform="translate({left} {top})">')
    parts.append(draw(weights, cell, queries, keys, attn_mask))
    if highlight is not None:
        parts.append(
            f'<rect y="{highlight * cell:.1f}" width="{width:.1f}" height="{cell:.1f}" fill="none" '
            f'stroke="{QUERY}" stroke-width="3"/>'
        )
    parts.append("</g>")
    for i in range(0, n_q, _step(n_q)):
        parts.append(
            f'<text x="{left - 6}" y="{top + (i + 0.5) * cell + 4:.1f}" text-anchor="end" font-size="13">'
            f"{html.escape(_cut(queries[i]))}</text>"
        )
    for j in range(0, n_k, _step(n_k)):
        x, y = left + (j + 0.5) * cell, top + height + 16
        turn = f' transform="rotate(-40 {x:.1f} {y:.1f})" text-anchor="end"' if slanted else ' text-anchor="middle"'
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="13"{turn}>{html.escape(_cut(keys[j]))}</text>')
    # The colour is on the mark, the word in the text colour: #0072B2 on a dark page would be hard to read.
    parts.append(_axis_name(left + width / 2, top + height + bottom - 4, KEY, "keys (columns)"))
    middle = top + height / 2
    parts.append(f'<g transform="rotate(-90 14 {middle:.1f})">{_axis_name(14, middle, QUERY, "queries (rows)")}</g>')
    return _svg(left + width + 10, top + height + bottom, title, describe(weights, queries, keys, attn_mask), parts)


def bars(weights, *, title="", keys=None, attn_mask=None):
    """Return one query's weights as a bar chart in an <svg> element.

    Parameters
    ----------
    weights : ndarray, (n_k,)
    title : str
    keys : sequence of str, optional
    attn_mask : ndarray of bool, (n_k,), optional
        True = may attend; other bars are marked as blocked.

    Returns
    -------
    str

    Examples
    --------
    >>> "key 1: 0.7500" in bars(np.array([0.25, 0.75]))
    True
    """
    n = len(weights)
    keys = [str(j) for j in range(n)] if keys is None else keys
    left, top, height, step = 48, 40, 100, min(SIDE / n, 100)
    parts = [f'<text x="{left}" y="17" font-size="15" font-weight="600">{html.escape(title)}</text>']
    for tick in (0, 0.5, 1):
        y = top + height * (1 - tick)
        parts.append(
            f'<path d="M{left} {y}h{n * step:.1f}" stroke="currentColor" opacity="0.25"/>'
            f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" font-size="13">{tick:g}</text>'
        )
    colours = palette()
    for j, w in enumerate(weights.tolist()):
        x, blocked = left + j * step, attn_mask is not None and not attn_mask[j]
        bar = height * min(max(w, 0), 1) if np.isfinite(w) else height
        fill = colours[int(255 * min(max(w, 0), 1))][0] if np.isfinite(w) else NOT_FINITE
        text = "blocked" if blocked else f"{w:.4f}"
        label = html.escape(_cut(keys[j]))
        parts.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{top + height - bar:.1f}" width="{step * 0.8:.1f}" '
            f'height="{bar:.1f}" fill="{fill}" stroke="currentColor"><title>key {label}: {text}</title></rect>'
        )
        if step >= 30:
            parts.append(
                f'<text x="{x + step / 2:.1f}" y="{top + height - bar - 5:.1f}" text-anchor="middle" '
                f'font-size="13">{"-" if blocked else text if step > 44 else format(w, ".2f")}</text>'
                f'<text x="{x + step / 2:.1f}" y="{top + height + 17}" text-anchor="middle" '
                f'font-size="13">{label}</text>'
            )
    parts.append(_axis_name(left + n * step / 2, top + height + 40, KEY, "keys (columns)"))
    return _svg(left + n * step + 10, top + height + 48, title, describe(weights[None], ["0"], keys, None), parts)


def describe(weights, queries, keys, attn_mask):
    """Return in words what a map shows: its size, and for every query (up to 16) the key it looks at most."""
    n_q, n_k = weights.shape
    text = [f"{n_q} queries (rows) by {n_k} keys (columns)."]
    for i in range(min(n_q, CELLS)):
        row = weights[i] if attn_mask is None else np.where(attn_mask[i], weights[i], -1)
        if not np.isfinite(row).all():
            text.append(f"Query {queries[i]}: weights that are not finite.")
        elif row.max() <= 0:
            text.append(f"Query {queries[i]} may attend to no key.")
        else:
            j = int(row.argmax())
            text.append(f"Query {queries[i]}: most on key {keys[j]}, {row[j]:.4f}.")
    return " ".join(text)


def _cells(weights, cell, queries, keys, attn_mask):
    """Return a rectangle per cell, with its value where that fits and always in its tooltip."""
    colours = palette()
    decimals = 4 if cell >= 48 else 2
    size = 13 if cell >= 34 else 0
    q_names, k_names = [html.escape(q) for q in queries], [html.escape(k) for k in keys]
    parts, hatch = [], []
    for i, row in enumerate(weights.tolist()):
        for j, w in enumerate(row):
            x, y = j * cell, i * cell
            if attn_mask is not None and not attn_mask[i, j]:
                fill, text, ink = "none", "blocked", None
                hatch.append(f"M{x:.1f} {y + cell:.1f}l{cell:.1f} {-cell:.1f}")
                hatch.append(f"M{x:.1f} {y + cell / 2:.1f}l{cell / 2:.1f} {-cell / 2:.1f}")
                hatch.append(f"M{x + cell / 2:.1f} {y + cell:.1f}l{cell / 2:.1f} {-cell / 2:.1f}")
            elif w != w or w in (np.inf, -np.inf):
                fill, ink, text = NOT_FINITE, "#000000", str(w)
            else:
                fill, ink = colours[int(255 * min(max(w, 0.0), 1.0))]
                text = f"{w:.4f}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" fill="{fill}">'
                f"<title>query {q_names[i]}, key {k_names[j]}: {text}</title></rect>"
            )
            if ink and size:
                parts.append(
                    f'<text x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4.5:.1f}" text-anchor="middle" '
                    f'font-size="{size}" style="fill:{ink};pointer-events:none">'
                    f"{text if decimals == 4 else format(w, '.2f')}</text>"
                )
    if hatch:
        parts.append(f'<path d="{"".join(hatch)}" stroke="currentColor" opacity="0.45" pointer-events="none"/>')
    width, height = cell * weights.shape[1], cell * weights.shape[0]
    parts.append(f'<path d="M0 0h{width:.1f}v{height:.1f}h{-width:.1f}z" fill="none" stroke="currentColor"/>')
    return "".join(parts)


def _image(weights, cell, queries, keys, attn_mask):
    """Return the map as one embedded PNG with a pixel per cell; blocked cells are striped grey."""
    rgb = np.array([tuple(bytes.fromhex(colour[1:])) for colour, _ in palette()], dtype=np.uint8)
    finite = np.isfinite(weights)
    levels = (255 * np.clip(np.where(finite, weights, 0), 0, 1)).astype(np.uint8)
    pixels = rgb[levels]  # (n_q, n_k, 3)
    pixels[~finite] = tuple(bytes.fromhex(NOT_FINITE[1:]))
    if attn_mask is not None:
        i, j = np.nonzero(~attn_mask)
        pixels[i, j] = np.where((i + j) % 4 < 2, 200, 235)[:, None]
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    data = base64.b64encode(buffer.getvalue()).decode()
    n_q, n_k = weights.shape
    return (
        f'<image width="{cell * n_k:.1f}" height="{cell * n_q:.1f}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def _axis_name(x, y, colour, text):
    return (
        f'<rect x="{x - 4 * len(text) - 16:.1f}" y="{y - 10:.1f}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="13">{text}</text>'
    )


def _svg(width, height, title, description, parts):
    return (
        f'<svg role="img" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'style="max-width:100%;height:auto" {FONT}><title>{html.escape(title)}</title>'
        f"<desc>{html.escape(description)}</desc>{''.join(parts)}</svg>"
    )


def _step(n):
    return -(-n // CELLS)


def _cut(label):
    return label if len(label) <= 10 else label[:9] + "…"

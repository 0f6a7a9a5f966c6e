"""Pictures as SVG text: pure functions from arrays to strings, fast enough to follow a slider.

Text is drawn in currentColor, so that it is readable in a light and in a dark theme. Everything that a learner can
type is escaped.
"""

import base64
import html
import io
import math

import numpy as np
from PIL import Image

from .plot import KEY, NOT_FINITE, QUERY, palette

CELLS = 16  # above this many tokens a map goes in as one image, not as rectangles
SIDE = 300  # width of a map in user units; the text of 13 units is then readable on a projector
LINE, SLANTED, LABEL = 14, 17, 10  # height of a label, room for a slanted one, its most characters
FONT = 'font-family="system-ui, sans-serif" fill="currentColor"'


def heatmap(
    weights, *, title="", queries=None, keys=None, attn_mask=None, row=None, column=None, vmin=0.0, vmax=1.0, side=SIDE
):
    """Return one map as an <svg> element.

    Parameters
    ----------
    weights : ndarray, (n_q, n_k)
        Weights, or scores with their own vmin and vmax.
    title : str
    queries, keys : sequence of str, optional
        Token labels; numbers from 0 by default.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend; other cells are hatched, and a row without a key to attend to says so.
    row, column : int, optional
        A query and a key that get a frame.
    vmin, vmax : float
        Ends of the colour scale.
    side : float
        Width of the map.

    Returns
    -------
    str

    Examples
    --------
    >>> heatmap(np.eye(2), title="identity")[:14]
    '<svg role="img'
    """
    n_q, n_k = weights.shape
    cell = min(side / n_k, side / n_q, 60)
    width, height = cell * n_k, cell * n_q
    queries = [str(i) for i in range(n_q)] if queries is None else queries
    keys = [str(j) for j in range(n_k)] if keys is None else keys
    left, top = 40 + min(8 * max(map(len, queries)), 80), 26
    every = math.ceil(LINE / cell)  # label only every so many tokens where rows are lower than a line of text
    longest = min(max(map(len, keys)), LABEL)
    slanted = cell * every < 8 * longest
    bottom = 44 + 5.5 * longest if slanted else 48
    parts = [f'<text x="{left}" y="17" font-size="15" font-weight="600">{html.escape(title)}</text>']
    parts.append(f'<g transform="translate({left} {top})">')
    if max(n_q, n_k) <= CELLS:
        parts.append(
            _cells(weights, _levels(weights, vmin, vmax), cell, queries, keys, attn_mask, (vmin, vmax) == (0, 1))
        )
    else:
        parts.append(_image(weights, _levels(weights, vmin, vmax), cell, attn_mask))
    for frame, colour in ((row, QUERY), (column, KEY)):
        if frame is not None:
            x, y, w, h = (0, frame * cell, width, cell) if colour == QUERY else (frame * cell, 0, cell, height)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="none" '
                f'stroke="{colour}" stroke-width="3" pointer-events="none"/>'
            )
    parts.append("</g>")
    for i in range(0, n_q, every):
        parts.append(
            f'<text x="{left - 6}" y="{top + (i + 0.5) * cell + 4:.1f}" text-anchor="end" font-size="13">'
            f"{html.escape(_cut(queries[i]))}</text>"
        )
    for j in range(0, n_k, math.ceil(SLANTED / cell) if slanted else every):
        x, y = left + (j + 0.5) * cell, top + height + 16
        turn = f' transform="rotate(-40 {x:.1f} {y:.1f})" text-anchor="end"' if slanted else ' text-anchor="middle"'
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="13"{turn}>{html.escape(_cut(keys[j]))}</text>')
    # The colour is on the mark, the word in the text colour: #0072B2 on a dark page would be hard to read.
    parts.append(_axis_name(left + width / 2, top + height + bottom - 4, KEY, "keys (columns)"))
    middle = top + height / 2
    parts.append(f'<g transform="rotate(-90 14 {middle:.1f})">{_axis_name(14, middle, QUERY, "queries (rows)")}</g>')
    # The title must fit, also over a narrow map.
    full_width = max(left + width + 10, left + 9 * len(title))
    return _svg(full_width, top + height + bottom, title, describe(weights, queries, keys, attn_mask), parts)


def thumbnail(weights, *, title="", side=130, vmax=1.0):
    """Return a small map, without values and labels, as an <svg> element.

    Examples
    --------
    >>> thumbnail(np.eye(2), title="head 1").count("<image")
    1
    """
    n_q, n_k = weights.shape
    cell = side / max(n_q, n_k)
    parts = [
        f'<text x="2" y="14" font-size="13">{html.escape(title)}</text><g transform="translate(0 20)">',
        _image(weights, _levels(weights, 0.0, vmax), cell, None),
        "</g>",
    ]
    labels = [str(i) for i in range(max(n_q, n_k))]
    return _svg(cell * n_k, cell * n_q + 20, title, describe(weights, labels, labels, None), parts)


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


def curve(x, lines, *, mark, title="", x_name=""):
    """Return lines over x, on a logarithmic axis, as an <svg> element, with a mark at one x.

    Parameters
    ----------
    x : sequence of float
        Positive, rising.
    lines : dict of str to sequence of float
        Up to two lines by name, values between 0 and 1; the second is dashed.
    mark : float
        Where the reader is now.
    title, x_name : str

    Returns
    -------
    str

    Examples
    --------
    >>> "at d_k = 2: a 0.50" in curve([1, 2, 4], {"a": [0, 0.5, 1]}, mark=2, x_name="d_k")
    True
    """
    left, top, width, height = 48, 28, SIDE, 100
    logs = np.log2(np.asarray(x, dtype=float))
    places = left + width * (logs - logs[0]) / ((logs[-1] - logs[0]) or 1)
    here = float(np.interp(np.log2(mark), logs, places))
    parts = [f'<text x="{left}" y="17" font-size="15" font-weight="600">{html.escape(title)}</text>']
    for tick in (0, 0.5, 1):
        y = top + height * (1 - tick)
        parts.append(f'<path d="M{left} {y}h{width}" stroke="currentColor" opacity="0.25"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" font-size="13">{tick:g}</text>')
    parts.append(f'<path d="M{here:.1f} {top}v{height}" stroke="{QUERY}" stroke-width="2"/>')
    told = []
    for (name, values), dash, colour in zip(lines.items(), ("none", "6 4"), (KEY, "currentColor"), strict=False):
        points = " ".join(f"{px:.1f},{top + height * (1 - v):.1f}" for px, v in zip(places, values, strict=True))
        at = float(np.interp(here, places, values))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
            f'<circle cx="{here:.1f}" cy="{top + height * (1 - at):.1f}" r="5" fill="{colour}"/>'
        )
        told.append(f"{name} {at:.2f}")
    for tick in (x[0], x[len(x) // 2], x[-1]):
        place = float(np.interp(np.log2(tick), logs, places))
        parts.append(
            f'<text x="{place:.1f}" y="{top + height + 16}" text-anchor="middle" font-size="13">{tick:g}</text>'
        )
    legend = " &#160; ".join(
        f"{'&#8212;' if i == 0 else '- -'} {html.escape(name)}" for i, name in enumerate(list(lines)[:2])
    )
    parts.append(
        f'<text x="{left + width / 2}" y="{top + height + 36}" text-anchor="middle" font-size="13">'
        f"{html.escape(x_name)}: {legend}</text>"
    )
    description = f"at {x_name} = {mark:g}: {', '.join(told)}"
    return _svg(left + width + 16, top + height + 44, title, description, parts)


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


def _levels(weights, vmin, vmax):
    """Return the index of each cell's colour, 0 to 255; what is not finite gets 0."""
    finite = np.where(np.isfinite(weights), weights, vmin)
    return (255 * np.clip((finite - vmin) / ((vmax - vmin) or 1), 0, 1)).astype(np.uint8)


def _cells(weights, levels, cell, queries, keys, attn_mask, are_weights):
    """Return a rectangle per cell, with its value where that fits and always in its tooltip."""
    colours = palette()
    short = ".4f" if cell >= 48 else ".2f"
    q_names, k_names = [html.escape(q) for q in queries], [html.escape(k) for k in keys]
    parts, hatch = [], []
    for i, (row, row_levels) in enumerate(zip(weights.tolist(), levels.tolist(), strict=True)):
        y = i * cell
        for j, (w, level) in enumerate(zip(row, row_levels, strict=True)):
            x = j * cell
            if attn_mask is not None and not attn_mask[i, j]:
                fill, text, ink = "none", "blocked", None
                hatch.append(f"M{x:.1f} {y + cell:.1f}l{cell:.1f} {-cell:.1f}")
                hatch.append(f"M{x:.1f} {y + cell / 2:.1f}l{cell / 2:.1f} {-cell / 2:.1f}")
                hatch.append(f"M{x + cell / 2:.1f} {y + cell:.1f}l{cell / 2:.1f} {-cell / 2:.1f}")
            elif w != w or w in (np.inf, -np.inf):
                fill, ink, text = NOT_FINITE, "#000000", str(w)
            else:
                fill, ink = colours[level]
                text = f"{w:.4f}"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" fill="{fill}">'
                f"<title>query {q_names[i]}, key {k_names[j]}: {text}</title></rect>"
            )
            if ink and cell >= 34:
                parts.append(
                    f'<text x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4.5:.1f}" text-anchor="middle" '
                    f'font-size="13" style="fill:{ink};pointer-events:none">'
                    f"{format(w, short if are_weights else '.3g')}</text>"
                )
        if attn_mask is not None and not attn_mask[i].any():
            parts.append(
                f'<text x="{cell * len(row) / 2:.1f}" y="{y + cell / 2 + 4.5:.1f}" text-anchor="middle" '
                f'font-size="13" font-weight="600">no key to attend to</text>'
            )
    if hatch:
        parts.insert(0, f'<path d="{"".join(hatch)}" stroke="currentColor" opacity="0.3" pointer-events="none"/>')
    width, height = cell * weights.shape[1], cell * weights.shape[0]
    parts.append(f'<path d="M0 0h{width:.1f}v{height:.1f}h{-width:.1f}z" fill="none" stroke="currentColor"/>')
    return "".join(parts)


def _image(weights, levels, cell, attn_mask):
    """Return the map as one embedded PNG with a pixel per cell; blocked cells are striped grey."""
    rgb = np.array([tuple(bytes.fromhex(colour[1:])) for colour, _ in palette()], dtype=np.uint8)
    pixels = rgb[levels]  # (n_q, n_k, 3)
    pixels[~np.isfinite(weights)] = tuple(bytes.fromhex(NOT_FINITE[1:]))
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


def _cut(label):
    return label if len(label) <= LABEL else label[: LABEL - 1] + "…"

"""Pictures as SVG: what they tell, that nothing a learner types is markup, and that numbers and words have room."""

import base64
import functools
import io
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.colors
import numpy as np
import pytest
from PIL import Image
from views import VIEWS

import attnlib as al
from attnlib import colours, plot, svg
from attnlib.live.weights import draw_maps
from attnlib.svg.flow import GREY

ROOT = Path(__file__).resolve().parent.parent
SVG = re.compile(r"<svg.*?</svg>", re.S)
HOSTILE = ["<script>alert(1)</script>", "a&b", '"quoted"', "$x$", "\U0001f600", "سلام", "中文", ""]


def across(picture):
    """Return what a view shows without what a phone has in its place."""
    return re.sub('<div class="attnlib-down">.*?</div>', "", picture, flags=re.DOTALL)


def parsed(picture):
    return [ElementTree.fromstring(text) for text in SVG.findall(picture)]


def tags(element):
    return [child.tag for child in element.iter()]


def test_the_picture_is_svg_with_a_name_and_a_description_that_tells_the_numbers():
    weights = al.softmax(np.random.default_rng(0).normal(size=(3, 4)))
    (picture,) = parsed(svg.heatmap(weights, title="a map", keys=list("wxyz")))
    assert picture.get("role") == "img"
    assert picture.find("title").text == "a map"
    description = picture.find("desc").text
    assert "3 queries (rows) by 4 keys (columns)" in description
    assert "1 query (row) by 4 keys (columns)." in parsed(svg.heatmap(weights[:1]))[0].find("desc").text
    for i, row in enumerate(weights):
        assert f"Query {i}: most on key {'wxyz'[row.argmax()]}, {row.max():.4f}." in description


def test_every_cell_tells_query_key_and_value():
    weights = np.array([[0.125, 0.875]])
    texts = [t.text for t in parsed(svg.heatmap(weights))[0].iter("title")]
    assert texts[1:] == ["query 0, key 0: 0.1250", "query 0, key 1: 0.8750"]


def test_blocked_and_not_finite_cells_differ_from_zero():
    weights, mask = np.array([[0.0, 0.0, np.nan]]), np.array([[True, False, True]])
    texts = [t.text for t in parsed(svg.heatmap(weights, attn_mask=mask))[0].iter("title")]
    assert [t.split(": ")[1] for t in texts[1:]] == ["0.0000", "blocked", "nan"]


def test_a_row_that_may_look_nowhere_is_told():
    assert "Query 1 may attend to no key." in svg.describe(np.eye(2) * [[1], [0]], ["0", "1"], ["a", "b"], None)


def test_bars_tell_of_a_blocked_key_and_not_of_a_blocked_query():
    told = svg.bars(np.array([0.0, 0.25, 0.75]), attn_mask=np.array([False, True, True]))
    assert "Query 0: most on key 2, 0.7500." in told


@pytest.mark.parametrize("draw", ["heatmap", "bars"])
def test_what_a_learner_types_is_text(draw):
    n = len(HOSTILE)
    weights = np.full((n, n), 1 / n)
    if draw == "heatmap":
        picture = svg.heatmap(weights, title=HOSTILE[0], queries=HOSTILE, keys=HOSTILE)
    else:
        picture = svg.bars(weights[0], title=HOSTILE[0], keys=HOSTILE)
    (root,) = parsed(picture)
    assert "script" not in "".join(tags(root))
    assert root.find("title").text == HOSTILE[0]
    assert "a&b" in [t.text for t in root.iter("text")]


@pytest.mark.parametrize("tint", [None, colours.QUERY])
def test_an_image_of_many_cells_has_a_palette_and_the_same_colours(tint):
    values = np.random.default_rng(0).random((257, 256))
    seen = {}
    for name, broken in (("palette", 0.5), ("colours", np.nan)):
        values[-1, -1] = broken  # a NaN has a colour that no scale has
        png = re.search('base64,([^"]*)', svg.image(values, 1, tint=tint))[1]
        seen[name] = Image.open(io.BytesIO(base64.b64decode(png)))
    assert [image.mode for image in seen.values()] == ["P", "RGBA"]
    pale = Image.new("RGBA", (256, 257), colours.SUNK)
    indexed, coloured = (
        np.asarray(Image.alpha_composite(pale, image.convert("RGBA")))[..., :3].astype(int) for image in seen.values()
    )
    assert (indexed == coloured).all(-1).sum() == values.size - 1
    assert abs(indexed[-1, -1] - colours.colour_table(tint)[127]).max() <= 1


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("tint", [None, colours.QUERY, colours.KEY, colours.VALUE, GREY])
def test_numbers_on_cells_can_be_read_and_leave_the_page_as_they_grow(tint, dark):
    """As a page paints them: on its ground, in its shade of the role, with its ink."""

    def painted(colour):
        named = re.fullmatch(r"var\(--([\w-]+),(#\w+)\)", colour)
        assert not named or colours.token(named[1]) == named[2]  # a light page stays as it is without tokens
        return colours.token(named[1], dark) if named else colour

    (root,) = parsed(f"<svg>{svg.matrix(np.arange(256.0)[:, None], 40, high=20, vmax=255, tint=tint)}</svg>")
    cells, numbers = root.findall("g")
    ground, *rects = cells.findall("rect")
    paper, full = (np.array(colours.rgb(painted(one.get("fill")))) for one in (ground, cells))
    bright, contrasts = [], []
    for cell, number in zip(rects, numbers, strict=True):
        mixed = paper + float(cell.get("opacity")) * (full - paper)
        shade = f"#{bytes(mixed.round().astype(np.uint8)).hex()}"
        bright.append(colours.luminance(shade))
        contrasts.append(colours.contrast(shade, painted(number.get("fill") or numbers.get("fill"))))
    assert len(rects) == 256 and min(contrasts) >= 4.5 and bright == sorted(bright, reverse=not dark)


def test_large_maps_are_one_image():
    weights = al.softmax(np.random.default_rng(0).normal(size=(512, 512)))
    picture = svg.heatmap(weights, attn_mask=np.tri(512, dtype=bool))
    (root,) = parsed(picture)
    assert "image" in tags(root) and len(tags(root)) < 100
    assert "image-rendering:pixelated" in picture and 'fill="var(--sunk,' in picture  # its ground


def test_text_follows_the_theme():
    picture = svg.heatmap(np.eye(2)) + svg.bars(np.array([0.5, 0.5]))
    assert 'fill="currentColor"' in picture
    numbers = re.search(r'<g fill="([^"]*)" text-anchor="middle"[^>]*>(.*?)</g>', picture)
    assert numbers[1] == "var(--on-pale,#000000)"
    assert re.findall(r'<text[^>]*?( fill="#\w+")?>([01])</text>', numbers[2]) == [
        (' fill="#000000"', "1"),
        ("", "0"),
        ("", "0"),
        (' fill="#000000"', "1"),
    ]


def too_wide(picture):
    """Return the numbers of maps that leave their cells or touch the one before, in the widest usual font."""
    out, side = [], 0
    for group in (group for root in parsed(picture) for group in root.iter("g")):
        side = next((int(rect.get("width")) for rect in group if rect.find("title") is not None), side)
        if group.get("pointer-events") == "none" and group.get("text-anchor") == "middle":
            wide = functools.partial(svg.width, size=float(group.get("font-size")))
            texts = list(group.iter("text"))
            out += [t.text for t in texts if wide(t.text) > side]
            for one, other in pairwise(texts):
                apart = float(other.get("x")) - float(one.get("x")) - (wide(one.text) + wide(other.text)) / 2
                if one.get("y") == other.get("y") and apart < (1 if other.text.startswith("-") else 2):
                    out.append(f"{one.text}{other.text}")
    return out


@pytest.mark.parametrize("n", range(1, 17))
@pytest.mark.parametrize("scale", [1, 10, 1234.5])
def test_numbers_stay_in_their_cells(n, scale):
    values = scale * np.random.default_rng(n).normal(size=(n, n))
    picture = svg.heatmap(values, vmin=values.min(), vmax=values.max())
    assert too_wide(picture) == []
    if scale == 1 and n <= 8:
        assert f">{values[0, 0]:.2f}</text>" in picture


def test_cells_are_whole_pixels():
    """At 37.5 pixels the anti-aliased seams between cells look like groups."""
    for n in range(1, 17):
        cells = [r for r in parsed(svg.heatmap(np.eye(n)))[0].iter("rect") if r.find("title") is not None]
        assert len(cells) == n * n
        assert all(r.get(key).isdigit() for r in cells for key in ("x", "y", "width", "height"))


def test_bars_stand_under_their_columns():
    (root,) = parsed(svg.heatmap(np.full((5, 5), 0.2), row=1, bars=True))
    rects = [r for r in root.iter("rect") if r.find("title") is not None]
    cells, bars = rects[:5], rects[25:]
    middle = [[float(r.get("x")) + float(r.get("width")) / 2 for r in row] for row in (cells, bars)]
    assert middle[0] == middle[1]


def test_the_number_over_a_full_bar_keeps_clear_of_the_name_of_the_keys():
    (root,) = parsed(svg.heatmap(np.eye(5), row=1, bars=True))
    name = next(t for t in root.iter("text") if t.text == "keys (columns)")
    below = [g for g in root if g.tag == "g" and g.get("transform", "").startswith("translate")][-1]
    top = float(re.search(r" ([\d.]+)\)", below.get("transform"))[1])
    (number,) = [t for t in below.iter("text") if t.text == "1" and t.get("text-anchor") == "middle"]
    ascent = 0.8 * float(number.get("font-size"))
    assert top + float(number.get("y")) - ascent >= float(name.get("y")) + 7


def test_each_letter_of_a_text_of_16_names_its_row():
    (root,) = parsed(svg.heatmap(np.eye(16), queries=list("KRUBLEMASTINBRAT"), side=224))
    words = [text.text or "" for text in root.iter("text")]
    assert "".join(word for word in words if word.isalpha()) == "KRUBLEMASTINBRAT"


def test_no_grid_line_crosses_a_number_above_a_bar():
    (root,) = parsed(f"<svg>{svg.columns(np.array([0.35, 0.2, 0.93, 0.45]), 40, 54, list('abcd'))}</svg>")
    numbers = [tuple(float(t.get(at)) for at in "xy") for t in root.iter("text") if t.get("text-anchor") == "middle"]
    lines = re.findall(r"M([\d.]+) (\d+)H([\d.]+)", "".join(path.get("d") for path in root.iter("path")))
    near = [(x, *line) for x, low in numbers for line in lines if low - 10 < float(line[1]) < low + 2]
    assert len({x for x, *_ in near}) == 3 and all(
        float(right) < x - 10 or float(left) > x + 10 for x, left, _, right in near
    )


def test_the_parts_of_a_map_on_a_phone_speak_once_and_of_all_keys():
    whole, *parts = re.findall("<svg.*?</desc>", draw_maps({"head 3": al.softmax(np.eye(4, 24))}), re.DOTALL)
    assert len(parts) > 1 and "24 keys" in whole
    assert [part[part.index("<title>") :] for part in parts if 'role="img"' in part] == [
        whole[whole.index("<title>") :]
    ]
    assert all('aria-hidden="true"' in part for part in parts[1:])


def test_a_map_whose_numbers_have_room_then_is_whole_on_a_phone():
    drawn = svg.heatmap(np.full((8, 8), 1 / 8), queries=[f"asks {i}" for i in range(8)])
    assert int(parsed(drawn)[0].get("width")) <= 358 and drawn.count(">0.12</text>") == 64


def test_numbers_stand_only_where_they_do_not_crowd():
    """At 30 pixels, digits of neighbouring cells would be a pixel apart."""
    weights, scores = np.array([[0.25, 0.75]]), np.array([[-0.25, 0.75]])
    assert [">0.25<" in svg.matrix(weights, side) for side in (30, 31)] == [False, True]
    assert [">-0.25<" in svg.matrix(scores, side, vmin=-1) for side in (36, 37)] == [False, True]


def test_what_rounds_to_zero_has_no_sign():
    scores = np.array([[-0.2, 0.004, -0.004, -3.0, 12.0]])
    drawn = svg.matrix(scores, 40, vmin=-3, most=0)
    assert re.findall(r">(-?[\d.]+)</text>", drawn) == ["0", "0", "0", "-3", "12"]
    ax = plot.attention_heatmap(scores, places=0, vmin=-3, vmax=12)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.texts] == ["0", "0", "0", "-3", "12"]


def test_names_of_axes_have_the_ink_of_their_roles():
    for text, role in (("queries (rows)", "query"), ("keys (columns)", "key")):
        assert f'style="fill:{svg.paint(f"{role}-text")}">{text}' in svg.heatmap(np.eye(2))


def test_what_comes_next_has_one_colour_and_no_role_s():
    drawn = {name: VIEWS[name]().picture.value for name in ("ribbons", "writing", "speaking")}
    for name, picture in drawn.items():
        assert f'fill="{colours.NEXT}"' in picture and colours.VALUE not in picture, name
    roles = {"query": colours.QUERY, "key": colours.KEY, "value": colours.VALUE}
    for path in (ROOT / "attnlib" / "live" / "view.css", ROOT / "lite" / "index.html.j2"):
        for rule in re.findall(r"(?:button|input|slider|toggle)[^{}]*\{[^}]*", path.read_text("utf-8")):
            assert not any(role.lower() in rule.lower() for role in roles.values()), (path.name, rule)


def test_mathematics_is_set_as_mathematics():
    title = parsed(svg.heatmap(np.eye(2), title="Q K^T / sqrt(d_k) <b> $x$"))[0].find("text")
    assert "".join(title.itertext()).replace("\u200b", "") == "Q KT / √dk <b> $x$"
    assert [t.text for t in title.iter("tspan") if t.get("font-style")] == ["K", "d"]
    title = parsed(svg.heatmap(np.eye(2), title="W_Q W_K^T"))[0].find("text")
    assert "".join(title.itertext()).replace("\u200b", "") == "WQ WKT"


def test_the_three_colours_stay_apart_for_colour_blind_readers():
    """Machado et al. 2009, severity 1: the CIELAB distance of any two of query, key and value."""
    matrices = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }
    srgb = np.array([matplotlib.colors.to_rgb(c) for c in (colours.QUERY, colours.KEY, colours.VALUE)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    for name, matrix in matrices.items():
        seen = cielab(np.clip(linear @ np.array(matrix).T, 0, 1))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert np.linalg.norm(seen[i] - seen[j]) > 10, (name, i, j)  # 2.3 is just noticeable


def cielab(linear):
    xyz = linear @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(xyz / (0.9505, 1.0, 1.089))
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=-1)

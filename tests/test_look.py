"""One look: what attnlib/look/tokens.css promises of its colours, and that nothing else holds a colour or a size."""

import re
import unicodedata
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from views import VIEWS

from attncourse.engine import pictures
from attnlib import colours
from attnlib.colours import TOKENS, contrast, sheet, token

ROOT = Path(__file__).resolve().parent.parent
FONTS = colours.LOOK / "fonts"
THEMES = [pytest.param(dark, id="dark" if dark else "light") for dark in (False, True)]
GROUNDS = ("paper", "raised", "sunk")
ROLES = ("query", "key", "value", "next")
MARKS = (*ROLES, "right", "wrong")


@pytest.mark.parametrize("dark", THEMES)
def test_words_have_a_contrast_of_4_5_on_every_ground(dark):
    pairs = [(ink, ground) for ground in GROUNDS for ink in ("ink", "quiet", *(f"{role}-text" for role in MARKS))]
    pairs += [("ink", f"{role}-tint") for role in MARKS] + [(f"{role}-text", f"{role}-tint") for role in MARKS]
    low = {pair: seen for pair in pairs if (seen := contrast(*(token(name, dark) for name in pair))) < 4.5}
    assert len(pairs) == 36 and not low


@pytest.mark.parametrize("dark", THEMES)
def test_shapes_have_a_contrast_of_3(dark):
    """A role's fill, the border of a control and the end of a map, on the grounds on which they are drawn."""
    shapes = [(shape, ground) for shape in (*MARKS, "edge", "weight", "below") for ground in ("paper", "raised")]
    low = {pair: seen for pair in shapes if (seen := contrast(*(token(name, dark) for name in pair))) < 3}
    assert not low


def test_a_ribbon_stands_out_from_the_page_and_from_another_that_it_crosses():
    """A dark page dims what has a veil: there ribbons had 3.2 where words have 8.5."""
    for dark, least in ((False, 2), (True, 5)):
        *colour, share = map(float, re.findall(r"[.\d]+", token("ribbon", dark)))
        over, seen = token("paper", dark), []
        for _ in range(2):
            mixed = [round(share * a + (1 - share) * b) for a, b in zip(colour, colours.rgb(over), strict=True)]
            over = f"#{bytes(mixed).hex()}"
            seen.append(over)
        assert contrast(seen[0], token("paper", dark)) >= least and contrast(*seen) >= 1.2, dark


# Ground and ink of what shows a verdict or a table: JupyterLab, VS Code, Colab, and our own pages.
PAGES = {
    "light": [("#ffffff", "#212121"), ("#ffffff", "#3b3b3b"), (token("paper"), token("ink"))],
    "dark": [("#111111", "#ffffff"), ("#1f1f1f", "#cccccc"), ("#383838", "#d5d5d5")],
}
PAGES["dark"] += [(token(ground, True), token("ink", True)) for ground in ("paper", "raised")]


@pytest.mark.parametrize("theme", PAGES)
@pytest.mark.parametrize("tint", [None, colours.QUERY, colours.VALUE, colours.NEXT])
def test_a_veil_leaves_words_to_be_read_on_every_page_and_grows_with_its_number(theme, tint):
    for ground, ink in PAGES[theme]:
        over = []
        for level in range(0, 256, 15):
            fill, share = (colour := colours.veil(level, tint))[:7], int(colour[7:], 16) / 255
            mixed = [round(share * a + (1 - share) * b) for a, b in zip(*map(colours.rgb, (fill, ground)), strict=True)]
            over.append(f"#{bytes(mixed).hex()}")
        assert min(contrast(ink, one) for one in over) >= 4.5, ground
        bright = [colours.luminance(one) for one in over]
        assert bright == sorted(bright, reverse=theme == "light") and contrast(over[0], over[-1]) >= 1.4


def test_the_contrasts_that_the_file_writes_beside_its_colours_are_right():
    lines = (colours.LOOK / "tokens.css").read_text("utf-8").splitlines()
    told = [found for line in lines if (found := re.search(r"--([\w-]+): .*/\* ([\d.]+) / ([\d.]+)", line))]
    assert len(told) >= 7
    for name, *numbers in (found.groups() for found in told):
        seen = [contrast(token(name, dark), token("paper", dark)) for dark in (False, True)]
        assert [f"{number:.1f}" for number in seen] == numbers, name


def test_a_sheet_follows_the_theme_of_a_front_end_and_needs_nothing_above_it():
    """All names that it uses are declared, nothing stands on the page's root, and a size is not the page's `rem`."""
    whole, part = sheet(".attnlib-view"), sheet(".attnlib-verdict", "wrong-tint", "focus")
    for css in (whole, part):
        assert {*re.findall(r"var\(--([\w-]+)\)", css)} <= {*re.findall(r"--([\w-]+):", css)}
        assert ":root" not in css and "rem" not in css
        for theme, scheme in (("true", "light"), ("false", "dark")):
            assert re.search(rf'data-jp-theme-light="{theme}".*color-scheme: {scheme}', css)
    assert {*re.findall(r"--([\w-]+):", whole)} == {*TOKENS, "lift"}
    assert {*re.findall(r"--([\w-]+):", part)} == {"key-tint", "wrong-tint", "ink", "focus"}


def test_the_fonts_are_light_and_a_cut_source_is_not_called_so():
    sizes = {path.name: path.stat().st_size for path in FONTS.glob("*.woff2")}
    assert sizes.pop("math.woff2") <= 25_000 and len(sizes) == 4 and sum(sizes.values()) < 110_000
    css = (colours.LOOK / "fonts.css").read_text("utf-8")
    assert {*re.findall(r"url\(fonts/(.*?)\)", css)} == {*sizes, "math.woff2"}
    faces = css.split("@font-face")[1:]
    assert all(("font-display: swap" in face) is ("url(" in face) for face in faces) and "Source" not in css
    assert {*re.findall(r'"(near [^"]*)"', css)} == {*re.findall(r'"(near [^"]*)"', TOKENS["serif"] + TOKENS["sans"])}
    for kind in ("inter", "serif", "math"):
        assert "SIL OPEN FONT LICENSE Version 1.1" in (FONTS / f"LICENSE-{kind}.txt").read_text("utf-8")


def test_inter_has_every_letter_that_the_series_writes():
    """But for the letters of other scripts, which stand for tokens, and pictograms."""
    written = set("".join(path.read_text("utf-8") for path in (ROOT / "notebooks" / "src").glob("*.py")))
    latin = {
        letter
        for letter in written
        if " " < letter < "\u3000"
        and (unicodedata.category(letter)[0] != "L" or unicodedata.name(letter).startswith("LATIN") or letter in "σμε")
        and unicodedata.category(letter) != "Cf"
    }
    for name in ("Inter-Regular.ttf", "Inter-SemiBold.ttf"):
        assert len(latin) > 100 and not latin - {*map(chr, TTFont(FONTS / name).getBestCmap())}, name


# Files that hold a colour of their own, and why.
PICTURES = "black or white on a cell, or around a mark: whichever can be read there"
ELSEWHERE = "what the lab of a site says, and the report of a class"
NAMED = "by its colour a rule finds the word that a notebook has coloured"
COLOURED = {
    PICTURES: """attnlib/colours.py attnlib/figure.py attnlib/plot.py attnlib/svg/parts.py
        attnlib/live/head_arrows_view.py attnlib/live/plane_view.py attnlib/live/view.css""",
    ELSEWHERE: "lite/keep.js tools/report/page.py",
    NAMED: "docs/book/book.css",
}
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b(?![\w-])|\brgba?\([\d ]")


def coloured():
    """Return {file: its colours} of all that front ends show, without comments of CSS, and doctests."""
    found = {}
    for folder in ("attnlib", "lite", "tools", "docs/book"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".css", ".js", ".py", ".j2", ".html") or path.name == "tokens.css":
                continue
            text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
            if path.suffix == ".py":  # no comments, no results of doctests
                told = (">>>", "#", "('#", "'#")
                text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(told))
            if colours := sorted({*COLOUR.findall(text)}):
                found[path.relative_to(ROOT).as_posix()] = colours
    return found


def test_no_colour_stands_outside_the_tokens():
    left = {name for names in COLOURED.values() for name in names.split()}
    found = coloured()
    assert found and not {*found} - left, {name: found[name] for name in {*found} - left}
    plain = {"#000", "#fff", "#000000", "#ffffff", "#0002"}
    plain |= {"#0072b2", "#009e73", "#d55e00", "#7b61d9"}  # in docstrings; and a rule finds a role's shapes by them
    others = {name: {*found.get(name, ())} - plain for name in COLOURED[PICTURES].split()}
    assert not any(others.values()), others


def test_views_have_the_sizes_of_the_look():
    """And nor has the style of all views another."""
    six = {name[1:] for name in TOKENS if re.fullmatch(r"s\d+", name)}
    assert six == {"13", "16", "20", "25", "31", "49"}
    seen = {}
    for name, make in VIEWS.items():
        for size in re.findall(r'font-size="([\d.]+)"', make().picture.value):
            seen.setdefault(size, set()).add(name)
    assert {*seen} & six >= {"13", "16"} and not {*seen} - six, {size: seen[size] for size in {*seen} - six}
    style = re.sub(r"/\*.*?\*/", "", (ROOT / "attnlib" / "live" / "view.css").read_text("utf-8"), flags=re.DOTALL)
    assert {*re.findall(r"font(?:-size)?: ?(\d[\d.]*px)", style)} <= {"16px", "20px"}
    share = re.search(r"font-size:(\d+)%", pictures.table([["word"]]))[1]
    assert 14 * int(share) / 100 >= 13  # a verdict's table beside JupyterLab's 14 px


SURFACES = """docs/book/book.css lite/index.html.j2 lite/sentence.css lite/teach.html.j2 tools/asked.css tools/base.css
    tools/course.css tools/deck.css tools/deck.html tools/page.css tools/printed.css tools/reading.css
    tools/reading.html.j2"""


@pytest.mark.parametrize("name", SURFACES.split())
def test_no_page_has_a_size_or_a_font_of_its_own(name):
    """But for shares of a size, and points of paper."""
    css = re.sub(r"/\*.*?\*/", "", (ROOT / name).read_text("utf-8"), flags=re.DOTALL)
    told = " ; ".join(re.findall(r"font(?:-size|-family|-stack[\w-]*)?: ?([^;}]*)", css))
    own = re.findall(
        r"(?<![/\d.])[\d.]+(?:px|rem|vw)|\bsans-serif|\bserif|\bmonospace|\"", re.sub(r"var\([^)]*\)", "", told)
    )
    assert not own


def test_a_deck_has_the_five_sizes_of_a_deck_alone():
    css = (ROOT / "tools" / "deck.css").read_text("utf-8")
    assert {*re.findall(r"var\(--(d\d+)\)", css)} == {name for name in TOKENS if re.fullmatch(r"d\d+", name)}
    assert not re.findall(r"font(?:-size)?: ?[^;}]*var\(--s\d+\)", css)

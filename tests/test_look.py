"""One look: what attnlib/look/tokens.css promises of its colours, and that nothing else holds a colour or a size."""

import re
import unicodedata
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

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
    assert sizes.pop("math.woff2") <= 60_000 and len(sizes) == 4 and sum(sizes.values()) < 110_000
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

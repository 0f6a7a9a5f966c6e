"""One look: what attnlib/look/tokens.css promises of its colours, and that nothing else holds a colour or a size."""

import re

import pytest

from attnlib import colours
from attnlib.colours import TOKENS, contrast, sheet, token

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
    assert {*re.findall(r"--([\w-]+):", whole)} == {*TOKENS}
    assert {*re.findall(r"--([\w-]+):", part)} == {"key-tint", "wrong-tint", "ink", "focus"}

"""Cut the fonts of attnlib/look/fonts and write fonts.css: `python -m tools.fonts`.

It needs npm, pip, fonttools and brotli, and nothing else needs it: what it writes is kept in the repository. Inter is
for controls and text, Source Serif 4 for headings and story, STIX Two Math for the formulas of pages and decks: its
brackets grow, and from its table a browser knows where a subscript stands. A cut Source may not be called Source, so it
is `attnlib Serif`. matplotlib reads TTF: Inter for figures.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FONTS = Path(__file__).resolve().parent.parent / "attnlib" / "look" / "fonts"
PACKAGES = {"inter": "inter-ui@4.1.1", "serif": "source-serif@4.5.1", "math": "ziamath==0.13"}
NEAR = {"arial": "@fontsource/arimo@5", "times": "@fontsource/tinos@5"}  # as wide as Arial and Times, letter by letter
# Latin-1, and what the series writes besides (tests/test_look.py compares). Other letters, as of tokens in other
# scripts, come from the reader's own fonts.
LATIN = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x100)]))
SIGNS = LATIN + "“”‘’–—…•€−∞≈≠≤≥√←↑→↓σμε"
TEXT = SIGNS + "⁰⁴⁵⁶⁷⁸⁹⁻✓✗■□●○␣↵⏎⇥Ġİ"
SLANTED = LATIN + "“”‘’–—…√σ"
ITALIC = "".join(
    map(chr, [*range(0x1D434, 0x1D468), 0x210E, *range(0x1D6FC, 0x1D716)])
)  # to which browsers turn an <mi>
MATH = LATIN[:95] + ITALIC + "±×·−∞≈≠≤≥√∑∏∂∈→←…⋯⋅′∥αβγδεθλμπσφωΔΣ"
LATER = ["kern", "mark", "mkmk", "ccmp", "locl"]
# file: package, file in it, axes, letters
CUTS = {
    "inter.woff2": ("inter", "variable/InterVariable.woff2", {"opsz": 14, "wght": (400, 600)}, TEXT),
    "inter-italic.woff2": ("inter", "variable/InterVariable-Italic.woff2", {"opsz": 14, "wght": 400}, SLANTED),
    "serif.woff2": ("serif", "VAR/SourceSerif4Variable-Roman.ttf", {"opsz": 20, "wght": (400, 600)}, SIGNS + "✓"),
    "serif-italic.woff2": ("serif", "VAR/SourceSerif4Variable-Italic.ttf", {"opsz": 20, "wght": 400}, SLANTED),
    "math.woff2": ("math", "ziamath/fonts/STIXTwoMath-Regular.ttf", {}, MATH),
    "Inter-Regular.ttf": ("inter", "variable/InterVariable.woff2", {"opsz": 14, "wght": 400}, TEXT),
    "Inter-SemiBold.ttf": ("inter", "variable/InterVariable.woff2", {"opsz": 14, "wght": 600}, TEXT),
}
FAMILIES = {"inter": "Inter", "serif": "attnlib Serif", "math": "attnlib Math"}
# What stands until a font has come is as wide as the font, so that nothing jumps.
CSS = """/* Written by tools/fonts.py. Addresses are relative to this file; the licences stand in fonts/ and NOTICE. */
@font-face { font-family: "Inter"; src: url(fonts/inter.woff2) format("woff2"); font-weight: 400 600;
  font-display: swap }
@font-face { font-family: "Inter"; src: url(fonts/inter-italic.woff2) format("woff2"); font-style: italic;
  font-display: swap }
@font-face { font-family: "attnlib Serif"; src: url(fonts/serif.woff2) format("woff2"); font-weight: 400 600;
  font-display: swap }
@font-face { font-family: "attnlib Serif"; src: url(fonts/serif-italic.woff2) format("woff2"); font-style: italic;
  font-display: swap }
@font-face { font-family: "attnlib Math"; src: url(fonts/math.woff2) format("woff2"); font-display: swap }
"""
NEARLY = """@font-face { font-family: "near %s"; src: %s;
  size-adjust: %.1f%%; ascent-override: %.1f%%; descent-override: %.1f%%; line-gap-override: 0%% }
"""
ENGLISH = "the letters of a sentence: attention is how a vector finds out what it means, and where it looks "


def main():
    FONTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = {name: _unpack(package, Path(folder) / name) for name, package in {**PACKAGES, **NEAR}.items()}
        for file, (package, source, axes, letters) in CUTS.items():
            cut_letters(unpacked[package] / source, FONTS / file, axes, letters)
            print(f"{file:<20}{(FONTS / file).stat().st_size / 1000:6.1f} kB")
        for name in ("inter", "serif"):
            shutil.copy(next(unpacked[name].glob("LICENSE*")), FONTS / f"LICENSE-{name}.txt")
        ours = (FONTS / "LICENSE-inter.txt").read_text("utf-8").partition("\n")[2]  # all but the first line is the same
        told = TTFont(FONTS / "math.woff2")["name"].getDebugName(0)
        (FONTS / "LICENSE-math.txt").write_text(f"{told}\n{ours}", "utf-8")
        css = CSS
        for file, near, local in (
            ("inter", "arial/files/arimo", 'local("Arial"), local("Liberation Sans"), local("Arimo")'),
            ("serif", "times/files/tinos", 'local("Times New Roman"), local("Liberation Serif"), local("Tinos")'),
        ):
            package, _, path = near.partition("/")
            other = TTFont(unpacked[package] / f"{path}-latin-400-normal.woff2")
            css += NEARLY % (FAMILIES[file], local, *_as_wide(TTFont(FONTS / f"{file}.woff2"), other))
        (FONTS.parent / "fonts.css").write_text(css, "utf-8")


def _unpack(package, folder):
    folder.mkdir()
    of_pip = "==" in package
    program = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"] if of_pip else [shutil.which("npm"), "pack"]
    subprocess.run([*program, package], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (packed,) = folder.iterdir()
    if of_pip:
        zipfile.ZipFile(packed).extractall(folder)
        return folder
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def cut_letters(source, target, axes, letters):
    """Write some letters of a font, at some places of its axes if it has any, under a name of ours."""
    font = TTFont(source)
    if axes:
        whole = io.BytesIO()
        instancer.instantiateVariableFont(font, axes, inplace=True).save(whole)
        font = TTFont(whole)  # what was read lazily would be missed below
    tabular = ["tnum"] if target.stem in ("inter", "serif") else []
    # Small letters of their own for indices ("ssty") would be more than half of the font.
    options = subset.Options(layout_features=LATER + tabular, hinting=False, notdef_outline=True)
    if target.stem == "math":
        _keep_small(font)
    cutter = subset.Subsetter(options)
    cutter.populate(text=letters)
    cutter.subset(font)
    _name(font, target)
    font.flavor = "woff2" if target.suffix == ".woff2" else None
    font.save(target)


def _keep_small(font, brackets=5):
    """Leave a root its smallest sign alone, and brackets their first sizes and the parts that make larger ones.

    A browser keeps room for the widest sign at each root, and a full stop would stand away. None of ours is tall.
    """
    variants, root = font["MATH"].table.MathVariants, font.getBestCmap()[ord("√")]
    for glyph, sizes in zip(variants.VertGlyphCoverage.glyphs, variants.VertGlyphConstruction, strict=True):
        if glyph == root:
            sizes.GlyphAssembly = None
        if glyph == root or sizes.GlyphAssembly:
            sizes.MathGlyphVariantRecord = sizes.MathGlyphVariantRecord[: 1 if glyph == root else brackets]


def _name(font, target):
    """Name a cut font: by its family, its style and what its maker says of rights, and by no more."""
    family = FAMILIES[target.stem.lower().partition("-")[0]]
    style = next((style for style in ("Italic", "SemiBold") if style.lower() in target.stem.lower()), "Regular")
    full = f"{family} {style}"
    told = {1: full if style == "SemiBold" else family, 2: "Regular" if style == "SemiBold" else style, 4: full}
    told |= {6: full.replace(" ", "-"), 16: family, 17: style}
    table = font["name"]
    told |= {number: table.getDebugName(number) for number in (0, 13, 14)}  # copyright, licence and its address
    table.names = []
    for number, words in told.items():
        table.setName(words or "", number, 3, 1, 0x409)
    for needless in ("STAT", "DSIG"):  # the names of the axes are gone, and so is what was signed
        if needless in font:
            del font[needless]


def _as_wide(font, other):
    """Return by how many percent another font is to grow to run as wide, and then its ascent and descent."""
    wide, near = (
        sum(one["hmtx"][one.getBestCmap()[ord(letter)]][0] for letter in ENGLISH) / one["head"].unitsPerEm
        for one in (font, other)
    )
    adjust, em = wide / near, font["head"].unitsPerEm
    return 100 * adjust, 100 * font["hhea"].ascent / em / adjust, -100 * font["hhea"].descent / em / adjust


if __name__ == "__main__":
    main()

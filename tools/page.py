"""Parts of the notebooks as HTML that needs no network; slides, pages to read, the book and the site share it."""

import base64
import html
import math
import re
from itertools import count

import nbformat
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from attnlib.colours import LOOK

from .links import outward
from .series import ROOT

TOOLS = ROOT / "tools"
VIEW = ROOT / "attnlib" / "live"
SCRIPT = "".join(
    (VIEW / name).read_text("utf-8") for name in ("motion.js", "frames.js")
)  # once in a page that has a `still`
# Of live views and figures, on a page that has the tokens.
STYLE = "".join(path.read_text("utf-8") for path in (VIEW / "view.css", TOOLS / "page.css"))
COURSE = (TOOLS / "course.css").read_text("utf-8")  # the list of notebooks, and their small pictures
FONTS = "inter", "inter-italic", "serif", "serif-italic", "math"  # of a page with text, headings and formulas
ICON = (ROOT / "docs" / "book" / "icon.svg").read_text("utf-8").strip()
EDGES, GROWN = (735, 588), 1.34  # where a page's pictures end, in pixels, if they grow by no more than this
SHORT = 33  # letters of code that a phone has on a line, in an exercise, too
PLAIN = re.compile(r'<span class="(?!(?:k[cdnr]?|ow|c[1m]?|sd)")\w+">(.*?)</span>', re.DOTALL)  # code has two inks
GLUED = re.compile(r"([(\[]*)<math>(?:(?!<math).)*?</math>[^\s<]*", re.DOTALL)  # within a line
BREAKS = re.compile(r"(?<=\w[(\[])(?=[\w*~({\[])|(?<=\{)(?=\w)|(?<=[\w)\]])(?=\.\w{12})|(?<=[)\]])(?=\.\w)")
WIDE = 70  # letters of a formula that a phone breaks
NEEDS_A_KERNEL = re.compile("attnlib-note|… [^\\n<]+: not tried yet|Nothing is kept yet")
INSTALLER = re.compile(r"The model is not installed, so stored .*?restart the kernel\.\n", re.DOTALL)


def tokens(*fonts, at=None):
    """Return the tokens and some fonts of attnlib/look/fonts as CSS: files in the folder `at`, or part of the page."""
    faces = re.findall(r"@font-face \{.*?\}\n", (LOOK / "fonts.css").read_text("utf-8"), re.DOTALL)
    css = "".join(face for face in faces if "url(" not in face or any(f"fonts/{font}.woff2" in face for font in fonts))
    for font in fonts:
        data = base64.b64encode((LOOK / "fonts" / f"{font}.woff2").read_bytes()).decode()
        css = css.replace(f"fonts/{font}.woff2", f"{at}{font}.woff2" if at else f"data:font/woff2;base64,{data}")
    return css + (LOOK / "tokens.css").read_text("utf-8")


def look(*fonts, at=None):
    """Return the same, and what all pages of ours have in common."""
    return tokens(*fonts, at=at) + (TOOLS / "base.css").read_text("utf-8") + COURSE


def formula(body, display="inline"):
    """Return MathML; infinity is no operator and has no room around it. HTML knows <math> without a namespace.

    A long formula of a line of its own goes on below itself where a page is narrow: before an equals sign or a product.
    """
    if display == "block" and len(body) > WIDE:
        parts = _parts(body)
        return " ".join(
            formula(part).replace("<math", '<math displaystyle="true"', 1) if part else "<br>" for part in parts
        )
    made = convert(body, display=display).replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")
    return re.sub(r' xmlns=".*?"| display="inline"', "", made, count=2)


def _parts(body):
    """Return the parts of a formula between which a line may end, and "" where another formula begins."""
    parts = []
    for one in re.split(r"\s*(?:\\qquad)+\s*", body):
        parts.append("")
        for piece in re.split(r"\s+(?==|\\cdot)", one):
            if parts[-1].count("{") == parts[-1].count("}"):
                parts.append(piece)
            else:
                parts[-1] += f" {piece}"
    return parts[1:]


def glue(page):
    """Return HTML in which the mark behind a formula, and the bracket before it, stay on its line."""

    def whole(found):
        alone = found[0].startswith("<") and found[0].endswith(">")
        return found[0] if alone else f'<span class="glue">{found[0]}</span>'

    return GLUED.sub(whole, page)


class Renderer(IPythonRenderer):
    """Formulas become MathML: MathJax would be a script, and nbconvert takes it from a CDN."""

    def inline_math(self, body):
        return formula(body)

    def block_math(self, body):
        return formula(body, "block")

    latex_environment = block_math

    def block_code(self, code, info=None):
        return highlight_code(code) if info == "python" else super().block_code(code, info)

    def codespan(self, text):
        return whole_powers(breakable(super().codespan(text)))


def markdown(text):
    """Return HTML; a link to a notebook leads to the page of the same name."""
    page = MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(outward(text))
    return glue(re.sub(r'href="(\w+)\.ipynb"', r'href="\1.html"', page))


def inline(text):
    """Return the HTML of a line, without a paragraph around it."""
    return markdown(text).strip().removeprefix("<p>").removesuffix("</p>")


def highlight_code(code, hangs=True):
    """Return the HTML of Python code; of a line that a phone breaks, what goes on stands below its own beginning."""
    page = highlight(code.replace("\n\n\n", "\n\n"), PythonLexer(), HtmlFormatter(cssclass="code"))
    lines = PLAIN.sub(r"\1", page).splitlines(True)
    return "".join(map(hanging, lines) if hangs else lines)


def hanging(line):
    """Return a line of highlighted code; one that a phone breaks says how deep it begins."""
    begin, code, end = re.match(r"(<div .*?<pre>(?:<span></span>)?)?(.*?)(</pre>.*)?$", line, re.DOTALL).groups("")
    words = html.unescape(re.sub("<.*?>", "", code))
    if len(words) <= SHORT:
        return line
    return f"{begin}<span style=--in:{len(words) - len(words.lstrip())}>{breakable(code)}\n</span>{end}"


def breakable(code):
    """Return HTML of code, which a phone may break where a bracket opens or before a long name, not within it."""
    return re.sub(r"[^\s<>]{24,}", lambda run: BREAKS.sub("<wbr>", run[0]), code)


def whole_powers(page):
    """Return HTML in which no line ends behind the hyphen of 2e-07."""
    return re.sub(r"(?<![\w.])\d[\d.]*e-\d+(?![^<>]*>)", r'<span class="glue">\g<0></span>', page)


def glyph(slug):
    """Return the small picture of a notebook, empty where it has none."""
    drawn = ROOT / "lite" / "glyphs" / f"{slug}.svg"
    return drawn.read_text("utf-8").strip() if drawn.exists() else '<span class="glyph"></span>'


def still(output, css=""):
    """Return the HTML of a picture of a notebook; SCRIPT gives that of a live view its slider.

    A style sheet knows by --wide how many pixels the picture has: below 0.93 of them its words would be too small. The
    columns of a figure, each an <svg> in that of the figure, stand below each other where a page is narrow; a legend of
    all of them stands on a line of its own. By --by they grow where there is room, and end at an edge of the page.
    """
    png, alt = output.data["image/png"].strip(), html.escape(output.metadata["image/png"]["alt"])
    if "image/svg+xml" in output.data:
        head, *columns = re.split("(?=<svg x=)", output.data["image/svg+xml"].removesuffix("</svg>"))
        inside = head[head.index("<style>") :] + "".join(_column(column, columns[0]) for column in columns)
        wides = [int(wide) for wide in re.findall(r"(?<!</i><svg style=\")--wide:(\d+)", inside)]
        by = next((edge / sum(wides) for edge in EDGES if edge / sum(wides) <= GROWN), 1.25)
        style = f"--most:{max(wides)};--by:{by:.4g}"
        return f'<div class="attnlib-figure {css}" style="{style}" role="img" aria-label="{alt}">{inside}</div>'
    wide = int.from_bytes(base64.b64decode(png[:32])[16:20], "big")  # where the header of a PNG has it
    picture = f'<img class="{css}" alt="{alt}" style="--wide:{wide}px" src="data:image/png;base64,{png}">'
    frames = output.metadata.get("attnlib")
    return f'<div class="attnlib-still {css}" data-attnlib="{frames}">{picture}</div>' if frames else picture


def _column(svg, first):
    """Return a column of a figure with its pixels, 100 an inch, and those at which its smallest letters have 11."""
    view, drawn = re.match(r'<svg x=.*?(viewBox=".*?")(.*)', svg, re.DOTALL).groups()
    below = "" if view.split()[1] == first.split('viewBox="')[1].split()[1] else "<i></i>"
    wide = float(view.split()[2]) * 100 / 72
    smallest = min((float(size) * 100 / 72 for size in re.findall('font-size="(.*?)"', drawn)), default=11)
    return f'{below}<svg style="--wide:{wide:.0f};--least:{math.ceil(wide * min(1, 11 / smallest))}" {view}{drawn}'


def own_ids(page, numbers=None):
    """Return HTML in which the ids of each figure carry its number, from `numbers`, by default from 1.

    matplotlib names a hatching by how it looks. Of two figures with one name, both take the first one's hatching; a
    browser draws none while that figure is hidden.
    """
    numbers = count(1) if numbers is None else numbers

    def own(figure):
        return re.sub(r' id="|href="#|url\(#', rf"\g<0>f{next(numbers)}", figure[0])

    return re.sub(r'<div class="attnlib-figure.*?</div>', own, page, flags=re.DOTALL)


def revive(cells):
    """Give the stills of a page their descriptions, those of live views their sliders, and figures ids of their own.

    What only a kernel makes true is not for a page: the line that says what to run, the verdict on an empty answer, and
    how to install a model; the code that asks for one is folded.
    """
    numbers = count(1)
    for cell in cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if INSTALLER.search(output.get("text", "")):
                output.text = INSTALLER.sub("", output.text)
                cell.metadata["jupyter"] = {**cell.metadata.get("jupyter", {}), "source_hidden": True}
        told = [output for output in cell.outputs if output.get("data") != {}]  # without what covers a hidden answer
        cell.outputs = [output for output in told if not NEEDS_A_KERNEL.search(str(output.get("data")))]
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                output.data = nbformat.from_dict({"text/html": own_ids(still(output), numbers)})

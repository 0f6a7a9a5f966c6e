"""Parts of the notebooks as HTML that needs no network; slides, pages to read, the book and the site share it."""

import base64
import html
import re

import nbformat
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from .links import outward
from .series import ROOT

VIEW = ROOT / "attnlib" / "live"
SCRIPT = "".join(
    (VIEW / name).read_text("utf-8") for name in ("motion.js", "frames.js")
)  # once in a page that has a `still`
STYLE = (VIEW / "view.css").read_text("utf-8")
NEEDS_A_KERNEL = re.compile("attnlib-note|… [^:]+: not tried yet")


class Renderer(IPythonRenderer):
    """Formulas become MathML: MathJax would be a script, and nbconvert takes it from a CDN."""

    def inline_math(self, body):
        return convert(body)

    def block_math(self, body):
        return convert(body, display="block")

    latex_environment = block_math


def markdown(text):
    """Return HTML; a link to a notebook leads to the page of the same name."""
    page = MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(outward(text))
    return re.sub(r'href="(\w+)\.ipynb"', r'href="\1.html"', page)


def still(output, css=""):
    """Return the HTML of a picture of a notebook; SCRIPT gives that of a live view its slider.

    A style sheet knows by --wide how many pixels the picture has: below 0.93 of them its words would be too small.
    """
    png, alt = output.data["image/png"].strip(), html.escape(output.metadata["image/png"]["alt"])
    wide = int.from_bytes(base64.b64decode(png[:32])[16:20], "big")  # where the header of a PNG has it
    picture = f'<img class="{css}" alt="{alt}" style="--wide:{wide}px" src="data:image/png;base64,{png}">'
    frames = output.metadata.get("attnlib")
    return f'<div class="attnlib-still {css}" data-attnlib="{frames}">{picture}</div>' if frames else picture


def revive(cell):
    """Give the stills among a cell's outputs their descriptions, and those of live views their sliders.

    What only a kernel makes true is not for a page: the line that says what to run, and the verdict on an empty answer.
    """
    if cell.cell_type == "code":
        told = [output for output in cell.outputs if output.get("data") != {}]  # without what covers a hidden answer
        cell.outputs = [output for output in told if not NEEDS_A_KERNEL.search(str(output.get("data")))]
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                output.data = nbformat.from_dict({"text/html": still(output)})

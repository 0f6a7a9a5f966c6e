"""The notebooks' Markdown as HTML that needs no script and no network; the slides and the site share it."""

import re

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from .links import outward


class Renderer(IPythonRenderer):
    """Formulas become MathML: MathJax would be a script, and nbconvert takes it from a CDN."""

    def inline_math(self, body):
        return convert(body)

    def block_math(self, body):
        return convert(body, display="block")

    latex_environment = block_math


def markdown(text):
    """Return HTML; a link to a notebook leads to the page of the same name."""
    html = MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(outward(text))
    return re.sub(r'href="(\w+)\.ipynb"', r'href="\1.html"', html)

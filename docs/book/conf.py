"""How Sphinx builds the book, from what tools/book.py gathers beside this file. No cell is executed."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

project = html_title = "attnlib"
copyright = "2026 the attnlib authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

nb_execution_mode = "off"
nb_code_prompt_show, nb_code_prompt_hide = "Show the {type}", "Hide the {type}"
myst_enable_extensions = ["attrs_inline", "dollarmath"]
myst_heading_anchors, myst_heading_slug_func = 4, "docutils.nodes.make_id"

autodoc_mock_imports = ["torch"]  # only its names are needed, and it is 200 MB
default_role = "code"
autodoc_typehints = "none"  # the docstrings say types and shapes

html_theme = "furo"
html_theme_options = {
    f"{theme}_css_variables": {
        "attnlib-scheme": theme,
        "attnlib-query": query,
        "attnlib-key": key,
        "attnlib-value": value,
    }
    for theme, query, key, value in (
        ("light", "#0072B2", "#B95000", "#007A59"),
        ("dark", "#4AA3DD", "#EE7A1A", "#009E73"),
    )
}
html_static_path = ["static"]
html_css_files, html_js_files = ["book.css"], [("book.js", {"defer": "defer"})]
html_copy_source = html_show_sphinx = html_show_search_summary = False  # a summary would load each page that is found
html_math_renderer = "mathml"


def inline_math(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def block_math(translator, node):
    translator.body.append(f'<div class="attnlib-formula">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def name_levels(app, pagename, templatename, context, doctree):
    """Say of each caption in the contents at which level it is a heading, which a screen reader asks for."""
    for part in ("body", "furo_navigation_tree"):
        context[part] = context.get(part, "").replace('role="heading">', 'role="heading" aria-level="2">')


def setup(app):
    # Formulas become MathML, which browsers draw without a script. Sphinx's own way is MathJax, from a CDN.
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("html-page-context", name_levels, priority=900)  # after the theme has drawn its contents

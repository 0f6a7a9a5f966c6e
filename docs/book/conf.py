"""How Sphinx builds the book, from what tools/book.py gathers beside this file. No cell is executed."""

import re
from html import escape, unescape

from docutils.nodes import SkipNode, paragraph

from tools.links import address
from tools.page import formula, glue, hanging
from tools.reading import columns_html, name_cells

project = html_title = "attnlib"
LONG_TITLE = "how attention works, number by number"
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
html_static_path, templates_path = ["static"], ["templates"]
html_css_files, html_js_files = ["book.css"], [("book.js", {"defer": "defer"})]
html_favicon = "icon.svg"
toc_object_entries_show_parents = "hide"  # a name stays whole in the contents
html_copy_source = html_show_sphinx = False
html_math_renderer = "mathml"

CODE = re.compile(r'(<div class="cell_input.*?<pre>(?:<span></span>)?)(.*?)(?=</pre>)', re.DOTALL)


def inline_math(translator, node):
    translator.body.append(formula(node.astext()))
    raise SkipNode


def block_math(translator, node):
    translator.body.append(f'<div class="attnlib-formula">{formula(node.astext(), "block")}</div>')
    raise SkipNode


def columns(printed):
    """Return what a program has printed with its columns in place."""
    return columns_html(unescape(re.sub("<.*?>", "", printed[0])).strip("\n").split("\n"))


def name_levels(app, pagename, templatename, context, doctree):
    """Say of each caption in the contents at which level it is a heading, which a screen reader asks for.

    A fold is called what it says, not "Toggle hidden content". Columns of printed text keep their places, and the cells
    of a wide table know their columns: on a phone they stand below each other.
    """
    for part in filter(None, (context.get("prev"), context.get("next"))):
        part["title"] = glue(part["title"])
    for part in ("body", "furo_navigation_tree"):
        text = context.get(part, "").replace(' aria-label="Toggle hidden content"', "")
        text = re.sub(r'(?<=<div class="highlight-text notranslate">).*?</div>', columns, text, flags=re.DOTALL)
        text = re.sub('<table class="docutils.*?</table>', name_cells, text, flags=re.DOTALL)
        text = CODE.sub(lambda code: code[1] + "".join(map(hanging, code[2].splitlines(True))), text)
        context[part] = glue(text.replace('role="heading">', 'role="heading" aria-level="2">'))


def describe(app, pagename, templatename, context, doctree):
    """Say what a page is about, and which picture stands beside a link to it: the card."""
    title = re.sub("<.*?>", "", context.get("title", pagename))
    told = (" ".join(part.astext().split()) for part in doctree.findall(paragraph)) if doctree else ()
    words = next((words for words in told if len(words) > 40), f"{project}: {title}, {LONG_TITLE}")
    words = re.sub(r"\\sqrt{(.*?)}", r"√\1", words).replace("\\", "")
    if len(words) > 160:
        words = words[:160].rsplit(" ", 1)[0] + " …"
    where = f"{address().words('')['site']}read/" if address() else ""
    about = {"description": words, "og:title": title, "og:description": words, "og:type": "article"}
    about["og:image"] = f"{where}_static/card.png"
    tags = (f'<meta property="{name}" name="{name}" content="{escape(text)}">' for name, text in about.items())
    context["metatags"] = context.get("metatags", "") + "".join(tags)


def setup(app):
    # Formulas become MathML, which browsers draw without a script. Sphinx's own way is MathJax, from a CDN.
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("html-page-context", name_levels, priority=900)  # after the theme has drawn its contents
    app.connect("html-page-context", describe)

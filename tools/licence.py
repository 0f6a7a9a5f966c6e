"""The line of licence on what leaves the folder that LICENSE stands in: handouts, pages, decks, the site."""

import nbformat

LICENCES = ("LICENSE", "LICENSE-CC-BY-4.0", "NOTICE")
LICENCE_LINK = "https://creativecommons.org/licenses/by/4.0/"
LICENCE = f"attnlib, © 2026 the attnlib authors. Text: [CC BY 4.0]({LICENCE_LINK}). Code: MIT."


def licence_cell():
    """Return the line as the last cell of a notebook."""
    return nbformat.from_dict({"cell_type": "markdown", "id": "licence", "metadata": {}, "source": LICENCE})

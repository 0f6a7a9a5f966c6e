"""The page that everybody sees first. It is no JupyterLab: it is there in a moment, on a phone too."""

import base64
import io
import json
import shutil
from pathlib import Path

import numpy as np
from jinja2 import Template
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Curve
from PIL import Image

from attncourse import smollm
from attnlib.colours import KEY, NEXT, QUERY
from tools.licence import LICENCE
from tools.links import address
from tools.page import markdown
from tools.record_sentences import SENTENCES, STOPS
from tools.series import find_notebook

HERE = Path(__file__).resolve().parent
TRAINED = 64
TITLE = "Where does a language model look?"
DESCRIPTION = (
    "See where each word of a sentence looks, in all 270 heads of a real language model; then learn how attention "
    "works, number by number, in notebooks that run in your browser."
)
CARD = "When Mary and John went to the store, John gave a drink to: who gets it? Ribbons show where the model looks."
SMALL = 288, 180  # pixels of a notebook's picture: twice what it has on the page
# What the page can break, by the names of lesson it_speaks: a short name, the notebook, and what was done.
MISTAKES = {
    "no scale": (
        "no scale",
        "scaling",
        "Nothing is divided: scores stay eight times as large, and one word takes all.",
    ),
    "no causal mask": (
        "no mask",
        "masks",
        "While it reads, each word also sees the words after it, the answers among them.",
    ),
    "heads cut by reshape alone": (
        "heads cut by reshape",
        "multi_head",
        "While it reads the sentence, each head gets pieces of several words.",
    ),
    "upper-left mask with the cache": (
        "upper-left mask",
        "one_token_at_a_time",
        "Each word is read alone and sees only the first: the mask begins at the wrong corner.",
    ),
    "values rotated, too": (
        "values rotated",
        "todays_head",
        "The rotation that tells positions turns the values, too, not only queries and keys.",
    ),
}


def write(site, entries, ways, writes):
    """Write index.html, the sentences it fetches when they are asked for, and its pictures.

    Parameters
    ----------
    site : Path
    entries : list of dict
        The notebooks: name, title, text, read, run, runs_here, picture.
    ways : dict
        Where "read", "run" and "teach" lead to.
    writes : dict or None
        Where Python, its list of packages, attnlib and our script are; None where the model cannot be loaded.
    """
    shutil.copytree(HERE / "sentences", site / "sentences", dirs_exist_ok=True)
    first = (HERE / "sentences" / f"{SENTENCES[0]['id']}.json").read_text("utf-8").strip()
    known = {
        "sentences": [{"id": s["id"], "name": s["name"], "file": f"sentences/{s['id']}.json"} for s in SENTENCES],
        "groups": groups(),
        "mistakes": {
            name: {"name": short, "line": f"{line} {notebook(lesson)}."}
            for name, (short, lesson, line) in MISTAKES.items()
        },
        "writes": writes,
    }
    where = address()
    page = Template((HERE / "index.html.j2").read_text("utf-8")).render(
        title=TITLE,
        description=DESCRIPTION,
        card=CARD,
        public=where.words("")["site"] if where else "",
        notebooks=entries,
        ways=ways,
        known=json.dumps(known, ensure_ascii=False).replace("<", "\\u003c"),
        first=first,
        ticks=[(d_k if i % 2 == 0 else "·", d_k == TRAINED) for i, d_k in enumerate(STOPS)],
        trained=STOPS.index(TRAINED),
        writes=writes,
        script=(HERE / "sentence.js").read_text("utf-8"),
        style=(HERE / "sentence.css").read_text("utf-8"),
        licence=markdown(LICENCE),
    )
    (site / "index.html").write_text(page, "utf-8")
    card(json.loads(first), site / "card.png")


def notebook(lesson, part=""):
    """Return a link to a page of the book."""
    return f'<a href="read/{find_notebook(lesson).name}.html{part}">Notebook {find_notebook(lesson).number}</a>'


def groups():
    """Return the kinds of heads that lesson it_speaks finds: their names, heads, and a line that says what they do."""
    copying, share = smollm.recorded("copying"), np.asarray(smollm.recorded("sinks")["share"])
    parking = [[int(i) + 1, int(j) + 1] for i, j in np.argwhere(share > 0.5)]
    circuit, heads = (notebook("it_speaks", part) for part in ("#the-circuit-again", "#heads"))
    found = {
        "copying": (
            copying["heads"],
            f"look at what followed the same word in a text that repeats. {circuit} finds them.",
        ),
        "looking back": (copying["previous heads"], f"look at the word just before. {circuit} finds them."),
        "parking": (
            parking,
            f"mostly rest: on other texts over half of their weight stays on the first word. {heads} counts them.",
        ),
    }
    return {
        name: {"name": name, "heads": kind, "line": f"{len(kind)} heads {line}"} for name, (kind, line) in found.items()
    }


def picture(notebook, path):
    """Write the small picture of a notebook: that of its first slide, or its first one. Return whether it has one."""
    drawn = [
        (cell, output.data["image/png"])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    if not drawn:
        return False
    slides = [png for cell, png in drawn if "slide" in cell.metadata.get("tags", [])]
    image = Image.open(io.BytesIO(base64.b64decode([*slides, drawn[0][1]][0]))).convert("RGBA")
    image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    image.thumbnail(SMALL)
    image.quantize(32).save(path, optimize=True)
    return True


def card(item, path):
    """Draw what a link to the page shows elsewhere, 1200 by 630: the sentence, and where its last word looks.

    The ribbons are those of the page; the blank stays empty.
    """
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    renderer = FigureCanvasAgg(figure).get_renderer()
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(630, 0))
    axes.axis("off")
    axes.text(60, 95, TITLE, size=36, weight="bold")
    x, centres = 60.0, []
    for token in item["words"]:
        drawn = axes.text(x + (9 if token.startswith(" ") else 0), 520, token.strip(), size=21)
        box = drawn.get_window_extent(renderer)
        centres.append((box.x0 + box.x1) / 2)
        x = box.x1
    drawn.set_color(QUERY)
    axes.plot([x + 14, min(x + 130, 1170)], [528, 528], color=NEXT, linewidth=4)
    full, start = 50, centres[-1] - 25
    for j in range(len(centres) - 2, -1, -1):
        wide, start = item["row"][j] * full, start + item["row"][j + 1] * full
        reach = (60 + 260 * (centres[-1] - centres[j]) / (centres[-1] - centres[0])) * 4 / 3
        axes.add_patch(PathPatch(_band(start, centres[j], wide, reach), facecolor=KEY, alpha=0.5, linewidth=0))
    axes.text(60, 590, "270 heads of a real model, each to look into: attnlib", size=17, color="#555555")
    figure.savefig(path)


def _band(start, to, wide, reach):
    """Return a ribbon from `start` at the query to the middle of a key, `wide` at both ends."""
    foot, inner = 490, max(0, reach - wide * 4 / 3)
    left, right = to - wide / 2, to + wide / 2
    points = [(start + wide, 0), (start + wide, reach), (left, reach), (left, 0)]
    points += [(right, 0), (right, inner), (start, inner), (start, 0)]
    codes = [Curve.MOVETO, *[Curve.CURVE4] * 3, Curve.LINETO, *[Curve.CURVE4] * 3]
    return Curve([(x, foot - y) for x, y in points], codes)

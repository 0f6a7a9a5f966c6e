"""The page that everybody sees first. It is no JupyterLab: it is there in a moment, on a phone too."""

import html
import json
import shutil
from itertools import groupby
from pathlib import Path

from jinja2 import Template
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from attnlib.colours import LOOK
from attnlib.svg.ribbon_row import outlines, ribbon_path
from attnlib.symbols import maths
from tools.licence import LICENCE
from tools.links import address
from tools.page import glyph, look, markdown
from tools.record_sentences import SENTENCES, STOPS
from tools.series import SERIES, find_notebook

HERE = Path(__file__).resolve().parent
TRAINED = 64
TITLE = "Where does a language model look?"
DESCRIPTION = (
    "See where each word of a sentence looks, in all 270 heads of a real language model; then learn how attention "
    "works, number by number, in notebooks that run in your browser."
)
HEAD = (
    "A head is one of 270 small parts of this model. At each word it takes in a bit of what every word so far says: "
    "the thicker the ribbon, the more. That is attention."
)
CARD = "When Mary and John went to the store, John gave a drink to: who gets it? Ribbons show where the model looks."
SCENES = "Where it looks", "Turn one knob", "Break it", "Your own sentence"
FONTS = "inter", "inter-italic", "serif"  # of attnlib/look/fonts: what the page has words in
# What the page can break, by the names of lesson it_speaks: what it does in words, the term, the notebook, and how.
MISTAKES = {
    "no scale": (
        "It forgets to divide.",
        "no scale",
        "scaling",
        "Scores are not divided by 8.",
    ),
    "no causal mask": (
        "It peeks ahead.",
        "no mask",
        "masks",
        "A mask hides what comes later. Without it all words but the last see what comes after them: the answers.",
    ),
    "heads cut by reshape alone": (
        "It mixes up its heads.",
        "wrong reshape",
        "multi_head",
        "Each head should get its own part of every word. Cut wrongly, it works on pieces of several.",
    ),
    "upper-left mask with the cache": (
        "It sees one word only.",
        "upper-left mask",
        "one_token_at_a_time",
        "It reads word by word, and the mask that hides later words is shifted: each word sees only the first.",
    ),
    "values rotated, too": (
        "It twists what it takes.",
        "values rotated",
        "todays_head",
        "Queries and keys are turned to tell where a word stands. Here the values are, too: they arrive twisted.",
    ),
}


def write(site, entries, ways, writes):
    """Write index.html, the sentences it fetches when they are asked for, its fonts and its card.

    Parameters
    ----------
    site : Path
    entries : list of dict
        The notebooks: name, title, read.
    ways : dict
        Where "read", "run", "teach" and "decks" lead to.
    writes : dict or None
        Where Python, its list of packages, attnlib and our script are, and their megabytes; None where no model is.
    """
    shutil.copytree(HERE / "sentences", site / "sentences", dirs_exist_ok=True)
    (site / "fonts").mkdir(exist_ok=True)
    for name in FONTS:
        shutil.copyfile(LOOK / "fonts" / f"{name}.woff2", site / "fonts" / f"{name}.woff2")
    first = (HERE / "sentences" / f"{SENTENCES[0]['id']}.json").read_text("utf-8").strip()
    mistakes = {name: told_of(*words) for name, words in MISTAKES.items()}
    sentences = [{"id": s["id"], "name": s["name"], "file": f"sentences/{s['id']}.json"} for s in SENTENCES]
    known = {"sentences": sentences, "mistakes": mistakes, "writes": writes}
    where = address()
    page = Template((HERE / "index.html.j2").read_text("utf-8")).render(
        title=TITLE,
        description=DESCRIPTION,
        card=CARD,
        head=HEAD,
        public=where.words("")["site"] if where else "",
        source=where.words("")["page"] if where else "",
        course=course(entries),
        count=len(entries),
        ways=ways,
        scenes=SCENES,
        sentences=sentences,
        mistakes=mistakes,
        known=json.dumps(known, ensure_ascii=False).replace("<", "\\u003c"),
        first=first,
        surer=surer(),
        by_hand=link_to("by_hand"),
        still=still(json.loads(first)),
        ticks=[(d_k, d_k == TRAINED) for d_k in STOPS[::2]],
        last=len(STOPS) - 1,
        trained=STOPS.index(TRAINED),
        writes=writes,
        script=(HERE / "sentence.js").read_text("utf-8"),
        style=style(),
        licence=markdown(LICENCE),
    )
    (site / "index.html").write_text(page, "utf-8")
    shutil.copyfile(HERE.parent / "docs" / "card.png", site / "card.png")


def told_of(words, term, lesson, line):
    """Return what scene 3 says of a mistake."""
    return {"name": words, "term": term, "line": line, "link": link_to(lesson)}


def link_to(lesson):
    """Return a link to a page of the book."""
    notebook = find_notebook(lesson)
    return f'<a href="read/{notebook.name}.html">Notebook {notebook.number}: {notebook.title}</a>'


def style():
    """Return the tokens, the fonts that the page has words in, and its own rules."""
    return look(*FONTS, at="fonts/") + (HERE / "sentence.css").read_text("utf-8")


def course(entries):
    """Return the list of notebooks as HTML; the book has it, too."""
    return Template((HERE / "course.html.j2").read_text("utf-8")).render(parts=parts(entries))


def parts(entries):
    """Return the parts of the course: name, what they take, and notebooks with a small picture, a question, minutes."""
    read, found = {entry["name"]: entry["read"] for entry in entries}, []
    for notebook in SERIES:
        if notebook.name not in read:
            continue
        if notebook.part or not found:
            found.append({"name": notebook.part, "notebooks": [], "minutes": 0, "exercises": 0})
        found[-1]["notebooks"].append(
            {
                "read": read[notebook.name],
                "glyph": glyph(notebook.slug),
                "number": notebook.number,
                "title": notebook.title[0].upper() + notebook.title[1:],
                "ask": maths(notebook.question, "html").replace("GPT-OSS", "<span class=glue>GPT-OSS</span>"),
                "minutes": notebook.minutes,
                "runs_here": notebook.browser,
            }
        )
        found[-1]["minutes"] += notebook.minutes
        found[-1]["exercises"] += notebook.exercise_minutes
    for part in found:
        many = len(part["notebooks"])
        part["says"] = f"{many} notebook{'s' * (many > 1)}, {duration(part['minutes'])}"
        if part["exercises"]:
            part["says"] += f" <br>and {duration(part['exercises'])} of exercises"
    return found


def duration(minutes):
    """Return minutes as one says them.

    >>> duration(85), duration(160)
    ('85 min', '2.7 h')
    """
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def first():
    """Return what is stored of the first sentence."""
    return json.loads((HERE / "sentences" / f"{SENTENCES[0]['id']}.json").read_text("utf-8"))


def percent(share):
    """Return a share as the page says it.

    >>> percent(0.9229), percent(0.004)
    ('92\xa0%', '<1\xa0%')
    """
    return "<1\u00a0%" if 0 < share < 0.005 else f"{round(100 * share)}\u00a0%"


def still(item):
    """Return what the page shows without scripts: the picture as after the guess, the answer, and one sentence."""
    words, row = [word.strip() for word in item["words"]], item["row"]
    (said, sure), most = item["next"][0], max(range(len(row)), key=row.__getitem__)
    bars = "".join(
        f'<li><span>{html.escape(word.strip())}</span><span><i style="width:{max(0.5, 100 * p):.1f}%"></i></span>'
        f"<span>{html.escape(percent(p))}</span></li>"
        for word, p in item["next"]
    )
    return {
        "picture": _picture(words, row, said.strip()),
        "said": f"The model says {html.escape(said.strip())}.",
        "sure": f"{percent(sure)} <span>sure.</span>",
        "bars": bars,
        "story": f"{HEAD} This one takes most from {words[most]}: {percent(row[most])}.",
    }


def surer():
    """Return where the second sentence makes the model sure of a wrong word: its text, d_k, word, and how sure."""
    item = json.loads((HERE / "sentences" / "john.json").read_text("utf-8"))
    (answer, _), *_ = item["next"]
    p, word, d_k = max(
        (stop["next"][0][1], stop["next"][0][0], d_k)
        for d_k, stop in zip(STOPS, item["stops"], strict=True)
        if stop["next"][0][0] != answer
    )
    return {"text": "".join(item["words"][9:]).strip(), "word": word.strip(), "d_k": d_k, "p": percent(p)}


def first_sentence(looks=True, short=False):
    """Return the first sentence as SVG with an empty blank, and where it looks: flat ribbons, or nothing.

    For a phone it is short: dots stand for words one after another that get less than 5 % each.
    """
    words, row = [word.strip() for word in first()["words"]], first()["row"]
    if short:
        runs = groupby(range(len(row)), lambda i: i if row[i] >= 0.05 or i == len(row) - 1 else None)
        words, row = zip(*[("…" if i is None else words[i], sum(row[j] for j in run)) for i, run in runs], strict=True)
    return _picture(words, row, "", 158) if looks else _picture(words, [0] * len(words), "", 0)


def _picture(words, row, said, deep=228):
    """Return the ribbons of the last word as SVG; words are as wide as in the font of figures."""
    font, x, centres = FontProperties(fname=LOOK / "fonts" / "Inter-Regular.ttf"), -5.0, []
    for word in words:
        wide = TextPath((0, 0), word, size=20, prop=font).get_extents().width
        x += 9 * (word != ",")
        centres.append(x + wide / 2)
        x += wide

    def text(at, y, inside, size=20, role="", anchor="middle"):
        style = f' style="fill:var(--{role}-text);font-weight:600"' if role else ""
        shape = f'<text x="{at:.0f}" y="{y}" font-size="{size}" text-anchor="{anchor}"{style}'
        return f"{shape}>{html.escape(inside)}</text>"

    pieces = []
    for j, corners in outlines(centres, row, len(row) - 1, 38, deep) if any(row) else ():
        points = [f"{at:.1f} {230 - up:.1f}" for at, up in corners]
        fill = "ribbon" if j < len(row) - 1 else "query-map"
        pieces.append(f'<path d="{ribbon_path(points)}" fill="var(--{fill})"/>')
    roles = ["key" if share >= 0.3 else "" for share in row[:-1]] + ["query"]
    for at, word, share, role in zip(centres, words, row, roles, strict=True):
        told = said and share >= 0.05
        pieces += [text(at, 254, word, role=role), text(at, 276, percent(share), 13) if told else ""]
    pieces.append(text(x + 12, 254, said, role="next", anchor="start"))
    pieces.append(f'<path d="M{x + 8:.0f} 262h90" stroke="var(--{"ink" if said else "next"})" stroke-width="2"/>')
    shows = f" Ribbons show where “{words[-1]}” looks." * any(row)
    label = html.escape(f"{' '.join(words)} {said or '...'}.{shows}")
    box = f'preserveAspectRatio="xMinYMax" viewBox="0 {228 - deep} {x + 104:.0f} {56 + deep}"'
    return f'<svg role="img" aria-label="{label}" {box}>{"".join(pieces)}</svg>'

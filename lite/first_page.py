"""The page that everybody sees first. It is no JupyterLab: it is there in a moment, on a phone too."""

import json
import shutil
from pathlib import Path

from jinja2 import Template

from tools.licence import LICENCE
from tools.page import STYLE, markdown
from tools.record_sentences import SENTENCES, STOPS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STORED = ROOT / "attnlib" / "course" / "data" / "smollm_stops.json"
TRAINED = 64


def write(site, entries, ways, writes):
    """Write index.html and the sentences it fetches when they are asked for.

    Parameters
    ----------
    site : Path
    entries : list of dict
        The notebooks: name, title, text, read, run, runs_here.
    ways : dict
        Where "read", "run" and "teach" lead to.
    writes : dict or None
        Where Python, its list of packages and attnlib are; None where the model cannot be loaded.
    """
    shutil.copytree(HERE / "sentences", site / "sentences", dirs_exist_ok=True)
    known = [{"id": s["id"], "name": s["name"], "file": f"sentences/{s['id']}.json"} for s in SENTENCES]
    first = (HERE / "sentences" / f"{SENTENCES[0]['id']}.json").read_text("utf-8").strip()
    stored = json.loads(STORED.read_text("utf-8"))["writing"]
    page = Template((HERE / "index.html.j2").read_text("utf-8")).render(
        notebooks=entries,
        ways=ways,
        sentences=json.dumps(known),
        first=first,
        ticks=[(d_k if i % 2 == 0 else "·", d_k == TRAINED) for i, d_k in enumerate(STOPS)],
        trained=STOPS.index(TRAINED),
        own=stored["d_k"],
        prompt=stored["prompt"],
        stops=stored["stops"],
        at=[stop["d_k"] for stop in stored["stops"]].index(stored["d_k"]),
        writes=writes,
        script=(HERE / "sentence.js").read_text("utf-8"),
        style=(HERE / "sentence.css").read_text("utf-8") + (STYLE if writes else ""),
        licence=markdown(LICENCE),
    )
    (site / "index.html").write_text(page, "utf-8")

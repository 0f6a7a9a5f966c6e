"""The decoder writes in a browser tab: Pyodide, attnlib and the model's file, all served from this machine.

Needs PYODIDE_DIST=<folder of a Pyodide distribution> and the model (make real-decoder); make test-site runs it.
"""

import os
import shutil
from pathlib import Path

from front_end import ROOT
from test_lite import Quiet, elsewhere, served, watched

from attnlib.course import smollm

PROGRAM = """
import sys, time
from attnlib.course import smollm
start = time.perf_counter()
speaker = smollm.load("/model.gguf")
said = {"reading": time.perf_counter() - start}
start, times, pieces = time.perf_counter(), [], []
for piece in speaker.stream(PROMPT, 24):
    pieces.append(piece)
    times.append(time.perf_counter() - start)
said["text"], said["first"] = "".join(pieces), times[0]
said["rate"] = (len(times) - 2) / (times[-1] - times[0])
said["loaded"] = [name for name in ("torch", "matplotlib", "ipywidgets") if name in sys.modules]
said
"""
PROMPT = smollm.chat("What is attention in a transformer? Please explain it in a few short words to me now.")


def test_it_writes_a_sentence_in_a_tab(new_page, tmp_path):
    shutil.copytree(ROOT / "attnlib", tmp_path / "src" / "attnlib", ignore=shutil.ignore_patterns("__pycache__"))
    archive = shutil.make_archive(str(tmp_path / "attnlib"), "zip", tmp_path / "src")
    beside = {"/attnlib.zip": archive, "/model.gguf": str(smollm.find())}

    class Handler(Quiet):
        def translate_path(self, path):
            return beside.get(path) or super().translate_path(path)

    with served(Path(os.environ["PYODIDE_DIST"]), Handler) as url:
        page = new_page()
        requests = watched(page)
        page.goto(url)
        page.add_script_tag(path=Path(__file__).with_name("decoder.js"))
        said = page.evaluate("program => run(program)", PROGRAM.replace("PROMPT", repr(PROMPT)))
    assert said["loaded"] == [] and elsewhere(requests, url) == []
    figures = "reading {reading:.1f} s, first token {first:.1f} s, {rate:.1f} tokens a second, heap {heap:.0f} MB"
    print(figures.format(**said))
    here = smollm.load(bar=iter).write(PROMPT, 24, margin=0.1)  # up to what another processor might write
    assert len(here) > 40 and said["text"].startswith(here)

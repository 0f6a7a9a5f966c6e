"""What was measured on the real decoder: it is stored, notebooks tell it truly, and it comes out again."""

import os
import subprocess
import sys

import numpy as np
import pytest

from attnlib.course import smollm
from attnlib.course.model_files import DATA, stored
from attnlib.course.smollm import circuits, results
from tools.record_results import rounded

NEEDS = "the model is not installed: make real-decoder"
RESULTS = stored("smollm_results")
needs_model = pytest.mark.skipif(bool(smollm.missing()), reason=NEEDS)


@pytest.fixture(scope="module")
def speaker():
    return smollm.load(bar=iter)


def test_the_stored_results_are_whole_and_small():
    files = [DATA / "smollm_results.json", DATA / "smollm_stops.json"]
    assert sum(file.stat().st_size for file in files) < 150_000
    assert set(RESULTS) == set(smollm.MEASURES)
    for name in smollm.MEASURES:
        assert getattr(smollm, name)() == RESULTS[name]
    with pytest.raises(TypeError, match=r"only a speaker can measure with d_ks\. Fix: sharpness\(load\(\), \.\.\.\)"):
        smollm.sharpness(d_ks=(1,))


@pytest.mark.parametrize("name", ["blank", "blank exchanged", "writing"])
def test_the_stops_have_the_form_that_the_views_read(name):
    found = smollm.stops(name)
    n = len(found["words"])
    assert "".join(found["words"]) == found["prompt"] and [stop["d_k"] for stop in found["stops"]] == list(
        results.STOPS
    )
    for stop in found["stops"]:
        w = stop["weights"]
        assert w.shape == (n, n) and np.allclose(w.sum(axis=1), 1, atol=2e-3) and (np.triu(w, 1) == 0).all()
        assert [p for _, p in stop["next"]] == sorted((p for _, p in stop["next"]), reverse=True)
        assert set(stop["loss"]) == set(smollm.TEXTS) and len(stop["next"]) == 6
    with pytest.raises(LookupError, match="stops are stored for blank, blank exchanged, writing; got 'other'"):
        smollm.stops("other")


def same(fresh, kept, tolerance=2e-3):
    """Whether a fresh result, rounded, is the stored one: texts and names equal, numbers to the tolerance."""
    if isinstance(fresh, dict):
        return fresh.keys() == kept.keys() and all(same(fresh[key], kept[key], tolerance) for key in fresh)
    if isinstance(fresh, list):
        return len(fresh) == len(kept) and all(same(a, b, tolerance) for a, b in zip(fresh, kept, strict=True))
    if isinstance(fresh, str) or fresh is None:
        return fresh == kept
    return abs(fresh - kept) <= tolerance * max(1, abs(kept))


@needs_model
@pytest.mark.parametrize(
    "name",
    ["none", "no causal mask", "no scale", "grouped heads tiled", "W_Q and W_K in the file's order", "base 10,000"],
)
def test_a_mistake_comes_out_again(speaker, name):
    fresh = rounded(smollm.mistakes(speaker, names=[name]))
    assert same(fresh, {name: smollm.mistakes()[name]})


@needs_model
@pytest.mark.parametrize("d_k", [1, 64, 4096])
def test_a_stop_comes_out_again(speaker, d_k):
    at = results.STOPS.index(d_k)
    fresh = rounded(smollm.stops_of(speaker, smollm.BLANK, watched=(" Mary", " John"), d_ks=(d_k,)))["stops"][0]
    kept = stored("smollm_stops")["blank"]["stops"][at]
    del kept["loss"]
    assert same(fresh, kept)
    assert same(rounded(smollm.sharpness(speaker, d_ks=(d_k,))), smollm.sharpness()[at : at + 1])


@needs_model
def test_other_measures_come_out_again(speaker):
    assert same(rounded(smollm.sinks(speaker)), smollm.sinks())
    assert same(rounded(smollm.banks(speaker)), smollm.banks())
    assert same(rounded(smollm.sayings(speaker)), smollm.sayings())
    assert same(rounded(smollm.blanks(speaker, d_ks=(64,))), [stop for stop in smollm.blanks() if stop["d_k"] == 64])
    fresh = rounded(smollm.windows(speaker, widths=(8,), firsts=(0, 1)))
    assert same(fresh, [*smollm.windows()[:2], smollm.windows()[-1]])
    assert same(rounded(circuits.second_copy(speaker, range(2))), smollm.copying()["losses"][:2], 5e-3)


OTHER_KERNELS = """
from attnlib.course import smollm
from attnlib.course.smollm import results
speaker = smollm.load(bar=iter)
for name, prompt in results.PROMPTS.items():
    for stop in smollm.stops(name)["stops"]:
        if stop["d_k"] in (1, 4, 64, 1024):
            again = results.writes(results.at_d_k(speaker, stop["d_k"]), prompt, 24)
            print(again == stop["text"], name, stop["d_k"], repr(stop["text"]), repr(again))
"""


@needs_model
def test_stored_texts_are_the_same_with_the_kernels_of_an_older_processor():
    """OpenBLAS adds in another order there; the texts end before two logits that lie closer than the margin."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_KERNELS], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 12 and all(line.startswith("True") for line in lines), done.stdout + done.stderr

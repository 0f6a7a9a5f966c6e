"""Every number of the worked examples and experiments stands in the output of a cell that a reader can run.

The numbers are those of five texts on self-attention (called S0 to S4 in REFERENCES.md), checked by running them. What
training makes is held between bounds, wide enough for another processor.
"""

import re
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path

import nbformat
import pytest

from tools.build_notebooks import code_between

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"


@cache
def printed(number):
    """Return all that the cells of a notebook print, with runs of blanks as one."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    texts = [
        output.get("text") or output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    ]
    return re.sub(r"\s+", " ", "\n".join(texts))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        # S3: by hand
        ("01", "k1 = [0, 1, 1] k2 = [4, 4, 0] k3 = [2, 3, 1]"),
        ("01", "Q = [[1, 0, 2], [2, 2, 2], [2, 1, 3]]"),
        ("01", "V = [[1, 2, 3], [2, 8, 0], [2, 6, 3]]"),
        ("01", "scores of query 1: [2, 4, 4] scores of query 2: [4, 16, 12] scores of query 3: [4, 12, 10]"),
        ("01", "6.3379e-02 4.6831e-01 4.6831e-01"),
        ("01", "6.0337e-06 9.8201e-01 1.7986e-02"),
        ("01", "2.9539e-04 8.8054e-01 1.1917e-01"),
        ("01", "[[2.0, 7.0, 1.5], [2, 8, 0], [2.0, 7.8, 0.3]]"),
        ("01", "largest error: 0.317"),
        ("01", "output 1 = 1.936621 6.683105 1.595068"),
        ("01", "output 2 = 1.999994 7.963992 0.053976"),
        ("01", "output 3 = 1.999705 7.759892 0.358389"),
        ("01", "0.136126 0.431937 0.431937"),
        ("01", "output 1 = 1.863874 6.319371 1.704189"),
        ("01", "output 2 = 1.999110 7.814124 0.273472"),
        ("01", "output 3 = 1.992555 7.479636 0.735877"),
        ("01", "additive:"),
        ("01", "same signs: 5 opposite signs: -5 one of each: 0 a longer key: 50"),
        ("01", "d_k = 3 not scaled largest weight 0.67 d_k = 3 divided by sqrt(d_k) largest weight 0.57"),
        ("01", "d_k = 128 not scaled largest weight 0.95 d_k = 128 divided by sqrt(d_k) largest weight 0.60"),
        ("00", "above 0.95: 80% of the rows divided by sqrt(d_k) above 0.95: 0% of the rows"),
        # the same through matrices, a module, and one head of several
        ("02", "[[6.3379e-02 4.6831e-01 4.6831e-01] [6.0337e-06 9.8201e-01 1.7986e-02]"),
        ("02", "[2.9539e-04 8.8054e-01 1.1917e-01]]"),
        ("02", "[[1.936621 6.683105 1.595068] [1.999994 7.963992 0.053976] [1.999705 7.759892 0.358389]]"),
        ("02", "[[1.863874 6.319371 1.704189]"),
        ("04", "[[1.863874 6.319371 1.704189]"),
        ("06", "[[1.863874 6.319371 1.704189]"),
        # S1: NumPy
        ("02", "[[1.6604769 2.6604769] [2.3395231 3.3395231]]"),
        ("02", "times 32 plain softmax: [nan nan]"),
        ("02", "times 31.6 plain softmax: [1. 2.]"),
        ("02", "largest difference: 0.56"),
        ("02", "3-D @: (2, 3, 5) 3-D dot: (2, 3, 2, 5)"),
        ("02", "identity softmax over queries: off by 0.0000"),
        ("02", "identity Q and K swapped: off by 0.0000"),
        # S0: a widely copied class
        ("03", "divided by sqrt(256): variance 0.12 mean entropy 2.25 nats"),
        ("03", "divided by sqrt(32) : variance 0.99 mean entropy 1.92 nats"),
        ("06", "output (32, 10, 256)"),
        ("06", "weights between 0.094 and 0.106"),
        ("06", "projection parameters: 3072 instead of 196608"),
        ("06", "all heads identical: True"),
        ("06", "gradient of head 0 outside its slice: 0.0"),
        ("06", "output differs by 0.44"),
        ("06", "(b, n) mask with b = n = 10: no error, output differs by 0.34"),
        ("06", "every weight is 0.1, on keys that are all forbidden"),
        ("06", "float16: RuntimeError"),
        ("05", "-1e20 and softmax, weights [0.1, 0.1, 0.1, 0.1]"),
        # S4: scaling, a module with trainable weights
        ("03", "nn.Linear's default variance of q.k / sqrt(d_k) = 0.11"),
        ("03", "Xavier variance of q.k / sqrt(d_k) = 0.97"),
        ("03", "mean |dL/dq| at d_k = 1024: plain 4.8 scaled 1.3"),
        ("03", "16 2.5635 1.1207 64 1.1824 1.1553 256 0.0997 1.1650 1024 0.0002 1.1904"),  # the median
        ("03", "torch.rand cosine > 0.7: 12% < -0.7: 12% of |q|^2 along (1, ..., 1): 75%"),
        ("03", "Xavier cosine > 0.7: 0% < -0.7: 0% of |q|^2 along (1, ..., 1): 2%"),
        ("04", "measured std 0.0255 1 / sqrt(3 fan_in) 0.0255"),
        ("04", "gain for ReLU 1.4142 gain for a = sqrt(5) 0.5774 differs from nn.Linear by 0.0"),
        ("04", "parameters of one head: 98304"),
        ("04", "x W = [1.0, 2.0] copied with .T: [1.0, 2.0] without: [1.0, 3.0]"),
        ("04", "'W_Q': 'reached', 'W_K': 'reached', 'W_V': 'reached'"),
        ("04", "after training: accuracy 1.00"),
        ("05", "output: (3, 6)"),
        ("05", "lower_right: [[1 1 1 1 1]] upper_left: [[1 0 0 0 0]]"),
        ("05", "lower_right differs by 0.0000 upper_left differs by 1.9928"),
        # the bug clinic: every fault again, the fixed number beside the broken one
        ("07", "broken, sqrt(256): variance of the scores 0.12, mean entropy 2.25 nats"),
        ("07", "fixed, sqrt(32) : variance of the scores 0.99, mean entropy 1.92 nats"),
        ("07", "broken: 3072 projection parameters, all heads identical: True"),
        ("07", "fixed: 196608 projection parameters, all heads identical: False"),
        ("07", "broken: head 0 depends on features outside its slice: False"),
        ("07", "broken [0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1 0.1] fixed [0. 0. 0. 0. 0. 0. 0. 0. 0. 0.]"),
        ("07", "broken: RuntimeError: value cannot be converted to type c10::Half without overflow"),
        ("07", "broken, m(q, k, v): no error, output differs by 0.44"),
        ("07", "broken (32, 10, 256) weights between 0.094 and 0.106"),
        ("07", "no error, and the output differs by 0.34"),
        ("07", "times 31.6 broken [1. 2.] fixed [1. 2.] times 32 broken [nan nan] fixed [1. 2.]"),
        ("07", "no error, shapes (3, 3, 3) (3, 3, 3) largest difference: 0.56"),
        ("07", "3-D: broken, dot (2, 3, 2, 5) fixed, @ (2, 3, 5)"),
        ("07", "identity over queries: off by 0.0000 Q and K swapped: 0.0000"),
        ("07", "24,576 of 90,368 parameters never get a gradient set to NaN, the output changes by 0.0"),
        ("07", "fixed: parameters without a gradient: 0"),
        ("07", "broken: scores are symmetric: True fixed : scores are symmetric: False"),
        (
            "07",
            "fixed [1.936621, 6.683105, 1.595068] [1.999994, 7.963992, 0.053976] [1.999705, 7.759892, 0.358389]",
        ),
        ("07", "largest error: 0.317"),
        ("07", "fixed : weights of query 1 [0.136126 0.431937 0.431937] output 1 [1.863874 6.319371 1.704189]"),
        ("07", "never used: ['queue', 'value', 'weights']"),
        ("07", "fixed, 512 -> 64: 98304"),
        ("07", "nn.Linear's default variance of q.k / sqrt(d_k): 0.11"),
        ("07", "Xavier variance of q.k / sqrt(d_k): 0.97"),
        ("07", "measured 0.0255 1/sqrt(3 fan_in) 0.0255"),
        ("07", "no scale: mean |dL/dq| 4.8"),
        ("07", "scaled : mean |dL/dq| 1.3"),
        ("07", "the same function: (3, 8) (3, 8) equal: False"),
        ("07", "broken, W : linear(x) = [1.0, 3.0] x W = [1.0, 2.0]"),
        # heads
        ("06", "1 head(s), 5396 parameters: both right"),
        ("06", "2 head(s), 5396 parameters: both right"),
        # without order: the best guess from the bag, and from the bag without the own token
        ("08", "most frequent of all ten tokens: 0.276 most frequent of the other nine: 0.287"),
        # a real model
        ("09", "on_its_noun L4H2 0.62 next L3H5 0.55 third L2H4 0.46"),
        ("09", "L5H6: weight 0.89, |W_O v| 0.03, share 0.27"),
        ("09", "weight above 0.5: 34 heads, |W_O v| 0.01 to 0.14, share up to 0.52"),
        ("09", "trophy first, too big : weight on trophy 0.61, on suitcase 0.22"),
        ("09", "suitcase first, too small: weight on trophy 0.06, on suitcase 0.83"),
        ("09", "he -> man L4H2 0.02 L3H5 0.81"),
        ("09", "L1H3 on_previous cost 2.5, rank 33 of 72"),
        ("09", "L4H2 on_its_noun cost 2.3, rank 37 of 72"),
        ("09", "layer 6: mean cost 27.1, ranks 1 to 12"),
        ("09", "L4H2: cost at the pronoun 8.3, rank 17 L3H5: cost at the pronoun 16.2, rank 8"),
        ("09", "L5H6 taken away 0.9994, [CLS] forbidden 0.9633"),
        ("09", "coming out: the nearest other bank has the same sense in 6 of 6"),
        ("09", "they -> students: 0.92"),
        # how nn.Linear starts
        ("07", "kaiming_uniform_(a=sqrt(5)) 0.0255"),
    ],
)
def test_printed(number, text):
    assert text in printed(number)


@pytest.mark.parametrize(
    ("number", "text", "bounds"),
    [
        # one head with a linear read-out names one neighbour; two heads, or a hidden layer, name both
        ("06", "1 head.s., 5396 parameters: both right #", [(0, 0.3)]),
        ("06", "2 head.s., 5396 parameters: both right #", [(0.99, 1)]),
        ("06", "hidden layer, seed 0: shares # and #, both right #", [(0.5, 0.9), (0.1, 0.45), (0.8, 1)]),
        ("06", "hidden layer, seed 1: shares # and #, both right #", [(0.5, 0.9), (0.1, 0.45), (0.97, 1)]),
        # copied heads part at once, unless W_O is copied as well
        ("07", "copied heads after 5 steps: differ by #", [(0.2, 1)]),
        ("07", "W_O copied, too: differ by #", [(0, 0.01)]),
        # without positions: as good as the best guess, which leaves the own token out
        ("08", "positions: True accuracy #", [(0.99, 1)]),
        ("08", "the model without positions: #", [(0.281, 0.293)]),
        (
            "08",
            "without positions: mirrored place #, itself #, mean of all others #",
            [(0.09, 0.11), (0.04, 0.09), (0.1, 0.11)],
        ),
        ("08", "how far apart. positions: True # positions: False #", [(1, 100), (0, 0.01)]),
        ("08", "10 places, seed 1: itself #, each other #", [(0.04, 0.085), (0.1, 0.11)]),
        ("08", "9 places, seed 0: itself #, each other #", [(0.095, 0.12), (0.1, 0.12)]),
        ("08", "9 places, seed 1: itself #, each other #", [(0.095, 0.12), (0.1, 0.12)]),
        # induction: layer 2's keys need layer 1, and nothing else does
        ("08", "2 layer.s.: accuracy #", [(0.95, 1)]),
        ("08", "1 layer.s.: accuracy #", [(0, 0.4)]),
        ("08", "1 layer with 4 heads: accuracy #", [(0, 0.4)]),
        ("08", "2 layer.s., layer 1, previous letter: #", [(0.8, 1)]),
        ("08", "2 layer.s., layer 2, after a copy: #", [(0.8, 1)]),
        ("08", "without layer 1: accuracy #, induction head's weight after a copy #", [(0, 0.3), (0, 0.3)]),
        ("08", "layer 2's keys, values accuracy #", [(0.95, 1)]),
        ("08", "layer 2's queries, values accuracy #", [(0, 0.3)]),
        ("08", "layer 2's queries, keys accuracy #", [(0.95, 1)]),
        ("08", "layer 2's keys alone accuracy #", [(0.95, 1)]),
        ("08", "accuracy at period 3: #, 4: #, 5: #", [(0.98, 1), (0.98, 1), (0.98, 1)]),
        ("08", "accuracy at period 13: #, 14: #, 16: #", [(0.95, 1), (0.95, 1), (0.95, 1)]),
        # the scale and training
        ("08", "rate 0.003, step 200: d_k 8: # d_k 64: # d_k 128: #", [(0, 0.05), (0.05, 0.35), (0.4, 0.95)]),
        ("08", "rate 0.001, step 200: d_k 8: # d_k 64: # d_k 128: #", [(0, 0.2), (0.5, 0.97), (0.5, 0.97)]),
        ("08", "rate 0.001, step 600: d_k 8: # d_k 64: # d_k 128: #", [(0, 0.03), (0, 0.03), (0, 0.03)]),
        ("08", "rate 0.003, d_k 128, worst: scaled #, not scaled #", [(0.95, 1), (0, 0.5)]),
        ("08", "d_k = 128, rate 0.003 # #", [(0, 0.5), (0.9, 1)]),
        ("08", "d_k = 128, rate 0.001 # #", [(0.9, 1), (0.9, 1)]),
        ("08", "W_Q divided at start: #", [(0.8, 1)]),
        ("08", "8 pairs, d_k = 64, scaled: True: accuracy #", [(0.95, 1)]),
        ("08", "8 pairs, d_k = 64, scaled: False: accuracy #", [(0.95, 1)]),
        # the reader's module and the transformers library
        ("09", "largest of 12 x 384 differences: # millionths", [(0, 1)]),
        ("08", "SGD, learning rate 0.003: scaled #, not scaled #", [(0, 0.4), (0.8, 1)]),
        ("08", "SGD, learning rate 0.03: scaled #, not scaled #", [(0.8, 1), (0, 0.6)]),
    ],
)
def test_trained(number, text, bounds):
    found = re.search(text.replace("#", r"-?(\d+\.\d+)"), printed(number))
    assert found, text
    for value, (low, high) in zip(found.groups(), bounds, strict=True):
        assert low <= float(value) <= high, found[0]


@pytest.mark.parametrize(("places", "letters", "best"), [(4, 2, 0.75), (4, 3, 17 / 27), (2, 3, 1)])
def test_the_best_without_order_leaves_the_own_token_out(places, letters, best):
    """For each bag and own token, which is all an output depends on, count what stands in the mirrored place."""
    seen = {}
    for row in product(range(letters), repeat=places):
        for i, own in enumerate(row):
            seen.setdefault((tuple(sorted(row)), own), Counter())[row[places - 1 - i]] += 1
    right = sum(max(answers.values()) for answers in seen.values())
    assert right / (places * letters**places) == pytest.approx(best)


@pytest.fixture(scope="module")
def neighbours():
    """What the first section of notebook 06 defines, without its trainings."""
    names = {}
    for cell in code_between("06", "# 06 ·", "## 2 ·"):
        if "def " in cell or "import " in cell:
            exec(cell, names)
    return names


@pytest.mark.parametrize(("read", "seed", "low", "high"), [("linear", 1, 0, 0.3), ("with_hidden_layer", 3, 0.97, 1)])
def test_what_one_head_learns_with_other_seeds(neighbours, read, seed, low, high):
    """All five seeds: `python -m bench training`."""
    told, _ = neighbours["look"](neighbours["train"](1, neighbours[read], seed))
    assert low <= float(re.search(r"both right (\d\.\d+)", told)[1]) <= high


def test_dead_queries():
    """Both depend on the draw (elsewhere 69 % and 6.5e-7 were measured), so they are held near and not equal."""
    row = re.search(r"1024 (\S+) (\S+) (\d+)% (\d+)% mean", printed("03"))
    plain, scaled, dead_plain, dead_scaled = (float(x) for x in row.groups())
    assert 1e-7 < plain < 1e-6
    assert scaled == pytest.approx(6.8e-2, abs=2e-3)
    assert dead_plain == pytest.approx(69, abs=3)
    assert dead_scaled == 0


@pytest.mark.parametrize("number", ["03", "07"])
def test_torch_rand(number):
    variance = float(re.search(r"torch.rand variance of q.k / sqrt\(d_k\)(?: =|:) (\S+)", printed(number))[1])
    assert variance == pytest.approx(15_600, rel=0.05)


def test_the_clinic_catches_every_case_by_the_probes_it_names():
    from attnlib.course.clinic import CASES

    for name, case in CASES.items():
        found = re.search(rf"\b{name} caught by: ((?:[a-z0-9]+ ?)+(?:, (?:[a-z0-9]+ ?)+)*)", printed("07"))[1]
        assert all(probe in found for probe in case.caught_by), (name, found)

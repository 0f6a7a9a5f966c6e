"""Lesson todays_head: its functions, run from its cells, against other formulations and against transformers."""

import ast
import itertools
import re

import numpy as np
import pytest
import small_llama
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import todays_head as answers
from lessons.todays_head import halves

import attnlib as al
from attncourse import check, smollm
from attncourse.lessons.todays_head import mistakes as todays_head
from attncourse.real_model import stored
from attncourse.training import previous_letter
from attnlib import rotary
from tools.build_notebooks import code_between
from tools.series import find_notebook

REASON = "transformers is not installed: make setup-tests"
DEFINED = {
    "frequencies",
    "rotated",
    "rms_norm",
    "seen",
    "capped",
    "softmax_with_sink",
    "attend",
    "Cached",
    "Layer",
    "bfloat16",
    "scores_from",
}
ORDER = np.argsort(np.arange(8) % 2, kind="stable")  # as in section 1
MODELS = ["Llama", "Qwen3", "Gemma 2", "GPT-OSS"]


def switches(name, drawn, softcap):
    return {
        "Llama": {},
        "Qwen3": {"q_gain": drawn["q_gain"], "k_gain": drawn["k_gain"]},
        "Gemma 2": {"softcap": softcap},
        "GPT-OSS": {"sink": drawn["sink"]},
    }[name]


@pytest.fixture(scope="module")
def notebook():
    """What lesson todays_head defines, without what it prints, draws and trains."""
    names = {"np": np, "al": al, "rope": al.rope, "attention": al.scaled_dot_product_attention}
    names |= {"split_heads": al.split_heads, "merge_heads": al.merge_heads}
    for cell in code_between("todays_head", "# ", "the direction of"):
        for node in ast.parse(cell).body:
            if getattr(node, "name", "") in DEFINED:
                exec(ast.unparse(node), names)
    assert names.keys() >= DEFINED
    return names


# --- RoPE


@pytest.mark.parametrize("start, base", [(0, 10_000.0), (7, 10_000.0), (1000, 500_000.0)])
def test_rope_is_a_product_of_complex_numbers(notebook, start, base):
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 8))
    assert np.allclose(notebook["rotated"](x, start, base=base), halves(x, start, base), atol=1e-12)
    neighbours = answers.neighbours(x, start)
    assert np.allclose(notebook["rotated"](x, start, pairing="neighbours"), neighbours, atol=1e-12)
    assert np.allclose(todays_head.rotate(x, start), halves(x, start), atol=1e-12)
    assert np.allclose(todays_head.rotate(x, start, rotary.neighbours), neighbours, atol=1e-12)


def test_rope_is_that_of_transformers(notebook):
    llama = pytest.importorskip("transformers.models.llama.modeling_llama", reason=REASON)
    from transformers import LlamaConfig

    config = LlamaConfig(hidden_size=32, num_attention_heads=4)
    x = torch.randn(1, 4, 20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, torch.arange(20)[None])
    theirs, _ = llama.apply_rotary_pos_emb(x, x, cos, sin)
    assert np.abs(notebook["rotated"](x.numpy()) - theirs.numpy()).max() < 1e-5


def test_the_solution_speaks_and_a_wrong_rope_writes_something_else(tmp_path):
    """The solution of `rope` in place of ours, in a small model of the kind that lesson it_speaks loads."""
    text = find_notebook("todays_head").source.read_text("utf-8")
    source = re.search(r"^# (def my_rope.*?)^# ```", text, re.MULTILINE | re.DOTALL)[1]
    names = {"np": np}
    exec(re.sub(r"^# ", "", source, flags=re.MULTILINE), names)
    assert check.rope(names["my_rope"]).passed
    said = small_llama.settings()
    model = smollm.load(small_llama.write(tmp_path / "small.gguf", said, small_llama.tensors(said)), sha256=None)
    ours = model.logits("the cat")
    assert np.abs(model.using(rope=names["my_rope"]).logits("the cat") - ours).max() < 1e-4
    for wrong in (lambda x, positions, base: x, answers.rope(new_a="a * cos + b * sin")):
        assert np.abs(model.using(rope=wrong).logits("the cat") - ours).max() > 1e-2


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**5), st.integers(0, 50), st.integers(1, 16))
def test_a_score_depends_on_the_distance_alone(shift, distance, pairs):
    query, key = np.random.default_rng(pairs).normal(size=(2, 1, 2 * pairs))
    rotate = todays_head.rotate

    def score(i, j):
        return (rotate(query, i) @ rotate(key, j).T).item()

    assert score(distance + shift, shift) == pytest.approx(score(distance, 0), abs=1e-8)


def test_turned_values_would_make_the_output_depend_on_the_shift(notebook):
    q, k, v = np.random.default_rng(0).normal(size=(3, 6, 8))
    rope, attend = notebook["rotated"], notebook["attend"]

    def change(turn_v):
        outputs = [attend(*(x[None] for x in (rope(q, s), rope(k, s), turn_v(v, s)))) for s in (0, 100)]
        return np.abs(outputs[1] - outputs[0]).max()

    assert change(lambda v, start: v) < 1e-10 and change(rope) > 0.5


def test_a_gain_is_reordered_with_its_features(notebook):
    rng = np.random.default_rng(0)
    (q, k), gains = rng.normal(size=(2, 6, 8)), rng.uniform(0.5, 2.5, (2, 8))
    rope, rms_norm, order = notebook["rotated"], notebook["rms_norm"], ORDER

    def scores(turn, gains, order=slice(None)):
        q_, k_ = (turn(rms_norm(x[:, order], gain)) for x, gain in zip((q, k), gains, strict=True))
        return q_ @ k_.T

    right = scores(answers.neighbours, gains)
    assert np.allclose(scores(rope, gains[:, order], order), right, atol=1e-12)
    assert not np.allclose(scores(rope, gains, order), right, atol=0.1)


def test_a_bias_is_reordered_with_its_features(notebook):
    rng = np.random.default_rng(0)
    x, W, b = rng.normal(size=(6, 8)), rng.normal(size=(2, 8, 8)), rng.normal(size=(2, 8))
    order = ORDER

    def scores(turn, order_W=slice(None), order_b=slice(None)):
        q, k = (turn(x @ W[i][:, order_W] + b[i][order_b]) for i in (0, 1))
        return q @ k.T

    right = scores(answers.neighbours)
    assert np.allclose(scores(notebook["rotated"], order, order), right, atol=1e-12)
    assert not np.allclose(scores(notebook["rotated"], order), right, atol=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4])
def test_angles_in_bfloat16_lose_the_distance_far_from_the_start(notebook, seed):
    q, k = np.random.default_rng(seed).normal(size=(2, 6, 8))
    names = notebook | {"q": q, "k": k, "omega": notebook["frequencies"](8)}
    source = next(x for x in code_between("todays_head", "## Appendix", "the direction of") if "def scores_from" in x)
    exec(source, names)
    right, largest = names["scores_from"](0), np.abs(names["scores_from"](0)).max()
    assert np.allclose(right, notebook["rotated"](q) @ notebook["rotated"](k).T) and np.allclose(
        right, names["scores_from"](1000)
    )
    off = [np.abs(names["scores_from"](start, names["bfloat16"]) - right).max() / largest for start in (0, 100, 1000)]
    assert off[0] < 0.02 and off[0] < off[1] < off[2] > 0.2
    x = np.random.default_rng(seed).normal(size=100) * 1000
    assert (names["bfloat16"](x) == torch.tensor(x, dtype=torch.float32).bfloat16().float().numpy()).all()


# --- farther than it was trained


def test_what_is_said_of_positions_far_away():
    """Of each of four texts, and not only of their mean."""
    found = smollm.recorded("farther")
    losses = {name: {int(gap): np.array(of) for gap, of in row.items()} for name, row in found["loss"].items()}
    near, trained = losses["as trained"][0], losses["as trained"]
    assert all((trained[gap] < near + 1.1).all() for gap in (2000, 6000))
    assert all((trained[gap] > near + 1.3).all() for gap in (8000, 12_000, 30_000))
    assert (losses["every pair slowed"][0] > near + 1.5).all()
    for name in ("another base", "by parts"):
        assert all((losses[name][gap] < near + 1.6).all() for gap in (0, 2000, 6000, 8000, 12_000))
        assert (losses[name][30_000] > near + 1.4).all()
    queries = losses["only the queries by parts"]
    assert (queries[0] < near + 1.1).all() and (queries[2000] > near + 4).all()
    other = found["another text"]
    assert max(other[gap] for gap in ("2000", "6000", "8000", "12000")) < other["0"]
    weights = {name: {gap: row[5] for gap, row in of.items()} for name, of in found["row"].items()}
    assert found["head"] == [19, 7] and found["words"][5] == " house"
    assert weights["as trained"]["6000"] < 0.1 < 0.8 < weights["by parts"]["6000"]
    assert [round(found["row"]["as trained"]["6000"][i], 2) for i in (0, 5)] == [0.47, 0.02]
    assert round(1 - sum(found["row"]["as trained"]["6000"]), 2) == 0.51  # in the second copy
    assert [round(weights["by parts"][gap], 2) for gap in ("6000", "12000")] == [0.81, 0.39]
    house = found["house"]["6000"]
    assert [round(house[name], 2) for name in ("told", "19.7", "24.3", "24.8")] == [0.93, 0.02, 0.98, 0.92]
    assert len(found["house"]["8000"]) == 9 and max(found["house"]["8000"].values()) < 0.1


def test_four_times_slower_reaches_nearly_four_times_as_far():
    """Section 5: of each of four texts, with twice and eight times, and another base, as controls."""
    near = np.array(smollm.recorded("farther")["loss"]["as trained"]["0"])
    more = {name: np.array(list(of.values())) - near for name, of in smollm.recorded("reach").items()}  # (gaps, texts)
    parts = [more.pop(f"by parts, {times} times") for times in (2, 4, 8)]
    trained, base = more["as trained"], more["another base, 4 times"]
    assert np.abs((parts[0] - trained).mean(axis=1)).max() < 0.1  # in the mean of each gap
    assert all((found[0] < 1.8).all() for found in (trained, *parts[:2])) and (parts[2][0] > 1.8).sum() == 2
    assert all(lost[2].min() > 1.3 for lost in (trained, *parts)) and base.min() > 1.3
    assert all(lost[1].mean() > 4 for lost in (trained, *parts))


def test_what_has_come_since_is_what_the_configurations_say():
    pytest.importorskip("transformers", reason=REASON)
    from tools import reference_heads

    assert stored("heads_2026")["since"] == reference_heads.since()
    counted = {name: (sum(other), len(other)) for name, _, other in reference_heads.since()}
    assert counted == {"SmolLM3": (9, 36), "Gemma 3 1B": (22, 26), "Gemma 3n": (15, 35), "Qwen3-Next": (36, 48)}


# --- the head


@pytest.mark.parametrize("name", MODELS)
def test_the_stored_outputs_are_those_of_transformers(name):
    pytest.importorskip("transformers", reason=REASON)
    from tools import reference_heads

    data, drawn = stored("heads_2026"), reference_heads.draw()
    assert all(np.array_equal(data["drawn"][key], array) for key, array in drawn.items())
    assert np.abs(np.array(data["outputs"][name]) - reference_heads.output(name, drawn)).max() < 1e-6


@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_the_head_gives_the_numbers_of_transformers(notebook, name, seed, window):
    pytest.importorskip("transformers", reason=REASON)
    from tools import reference_heads

    drawn = reference_heads.draw(seed)
    options = switches(name, drawn, reference_heads.SOFTCAP)
    ours = notebook["Layer"](drawn, 4, 2, window=window, **options)(drawn["x"])
    theirs = reference_heads.output(name, drawn, window)
    assert np.abs(ours - theirs).max() < 1e-5
    if name != "Llama":
        assert np.abs(notebook["Layer"](drawn, 4, 2, window=window)(drawn["x"]) - theirs).max() > 0.1


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.sampled_from(MODELS), st.sampled_from([None, 3]))
def test_any_chunks_give_what_all_at_once_gives(notebook, sizes, name, window):
    data = stored("heads_2026")
    drawn = {key: np.array(array) for key, array in data["drawn"].items()}
    x = np.random.default_rng(len(sizes)).normal(size=(sum(sizes), 24))
    at_once, head = (notebook["Layer"](drawn, 4, 2, window=window, **switches(name, drawn, 5.0)) for _ in range(2))
    parts = np.split(x, np.cumsum(sizes)[:-1])
    assert np.allclose(np.concatenate([head(part) for part in parts]), at_once(x), atol=1e-10)


def test_heads_share_keys_and_values_as_in_torch(notebook):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(4, 6, 8)), rng.normal(size=(2, 6, 8)), rng.normal(size=(2, 6, 8))
    ours = notebook["attend"](q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0))
    tensors = (torch.from_numpy(a)[None] for a in (q, k, v))
    theirs = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=True, enable_gqa=True)
    assert np.allclose(ours, theirs[0].numpy(), atol=1e-12)


# --- one place back, learned


def test_what_turns_in_torch_is_rope(notebook):
    x = np.random.default_rng(0).normal(size=(2, 9, 32))
    assert np.allclose(previous_letter.rotate(torch.from_numpy(x)).numpy(), notebook["rotated"](x), atol=1e-6)


@pytest.mark.slow
def test_with_another_seed_a_window_repairs_rope_too():
    model = previous_letter.trained("RoPE", seed=3)
    assert previous_letter.accuracy(model, 32) > 0.99 and 0.1 < previous_letter.accuracy(model, 512) < 0.5
    assert previous_letter.accuracy(model, 512, window=32) > 0.99


# --- the outputs: what the text says beside the table


def test_within_twelve_positions_another_theta_shows_in_the_second_pair_alone(notebook):
    data = stored("heads_2026")
    drawn = {key: np.array(array) for key, array in data["drawn"].items()}
    usual, other = notebook["frequencies"](8), notebook["frequencies"](8, 500_000.0)
    assert (11 * usual).round(2).tolist() == [11, 1.1, 0.11, 0.01] and round(11 * other[1], 1) == 0.4

    def output(pairs):
        q, k, v = (al.split_heads(drawn["x"] @ drawn[f"W_{c}"], h) for c, h in (("Q", 4), ("K", 2), ("V", 2)))
        omega = np.where(np.isin(np.arange(4), pairs), other, usual)
        q, k = (rotary.turn(y, np.arange(12), rotary.halves, omega) for y in (q, k))
        return notebook["attend"](q, np.repeat(k, 2, axis=0), np.repeat(v, 2, axis=0))

    right = output([])
    off = [((output(pairs) - right) ** 2).mean() ** 0.5 for pairs in ([0, 1, 2, 3], [1], [0, 2, 3])]
    assert off[1] > 0.95 * off[0] and off[2] < 0.2 * off[0]


def test_the_outputs_are_as_large_as_the_text_says():
    largest = [np.abs(np.array(output)).max() for output in stored("heads_2026")["outputs"].values()]
    assert round(min(largest), 1) == 2.5 and round(max(largest), 1) == 3.5


# --- the checks


@pytest.mark.parametrize("result", [lambda d_k, near, far: 3, lambda d_k, near, far: (np.ones(d_k), np.ones(d_k + 1))])
def test_a_design_of_another_shape_is_told(result):
    verdict = check.look_back(result)
    assert verdict.state == "wrong" and "Fix: return" in verdict.message


# --- what a reader switches and changes


def test_a_model_is_reached_by_rope_and_its_own_piece_alone(notebook):
    """Section 4, all sixteen settings."""
    data = stored("heads_2026")
    drawn = {key: np.array(array) for key, array in data["drawn"].items()}
    theirs = {name: np.array(output) for name, output in data["outputs"].items()}
    own = {"": "Llama", "norm": "Qwen3", "cap": "Gemma 2", "sink": "GPT-OSS"}
    for rope, *on in itertools.product((False, True), repeat=4):
        pieces = [name for name, switched_on in zip(("norm", "cap", "sink"), on, strict=True) if switched_on]
        options = {"rope": rope}
        for piece in pieces:
            options |= switches(own[piece], drawn, 5.0)
        output = notebook["Layer"](drawn, 4, 2, **options)(drawn["x"])
        off = {name: np.abs(output - other).max(-1) for name, other in theirs.items()}
        reached = [name for name, distance in off.items() if distance.max() < 1e-6]
        assert reached == ([own["".join(pieces)]] if rope and len(pieces) < 2 else []), (rope, pieces)
        assert rope or min(distance.max() for distance in off.values()) > 0.4
    assert notebook["capped"](-np.inf, 5.0) == -5  # why the cap comes before the mask


def test_without_rotation_the_last_token_does_not_see_an_order(notebook):
    drawn = {key: np.array(array) for key, array in stored("heads_2026")["drawn"].items()}
    exchanged = drawn["x"][[0, 2, 1, *range(3, 12)]]
    for rope in (False, True):
        last = [notebook["Layer"](drawn, 4, 2, rope=rope)(x)[-1] for x in (drawn["x"], exchanged)]
        assert np.allclose(*last) != rope


def test_a_pair_of_less_than_a_turn_meets_new_angles_in_a_text_twice_as_long():
    """Twelve pairs of SmolLM2, counted by the angles that 8,192 positions show, to a hundredth of a turn."""
    speed = rotary.frequencies(64, 100_000.0) / (2 * np.pi)  # turns a position
    met = [{*(100 * (np.arange(n)[:, None] * speed % 1)[:, c]).astype(int)} for n in (8192,) for c in range(32)]
    later = [{*(100 * (np.arange(16_384)[:, None] * speed % 1)[:, c]).astype(int)} for c in range(32)]
    new = [c for c in range(32) if later[c] - met[c]]
    assert new == [*range(20, 32)] and (8192 * speed >= 1).sum() == 20


def test_a_poke_reaches_two_places_on_with_a_window_of_3_and_four_through_two_layers(notebook):
    rng = np.random.default_rng(0)
    W, x = {name: rng.normal(size=(8, 8)) for name in ("W_Q", "W_K", "W_V", "W_O")}, rng.normal(size=(9, 8))
    poked = x + (np.arange(9) == 2)[:, None]

    def moved(layers):
        before, after = x, poked
        for _ in range(layers):
            before, after = (notebook["Layer"](W, 2, 2, window=3)(y) for y in (before, after))
        return np.flatnonzero(~np.isclose(before, after).all(-1)).tolist()

    assert moved(1) == [2, 3, 4] and moved(2) == [2, 3, 4, 5, 6]

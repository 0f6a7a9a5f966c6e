"""Lesson model_of_your_own: its text, its model in both twins, and what is stored of its trainings."""

import hashlib

import numpy as np
import pytest
import torch

from attncourse import clinic, letters
from attncourse.training import train
from attnlib.torch_layers import MultiHeadAttention
from tools import letter_models

CORPUS = letters.Corpus()
LOOK_AHEAD = ("targets not shifted", "no mask", "mask off by one", "softmax over queries", "mask after softmax")
LOOK_AHEAD += ("mask transposed",)
RIGHT = ("right 0", "right 1", "right 2")


@pytest.fixture(scope="module")
def cells():
    return letter_models.cells()


@pytest.fixture(scope="module")
def recorded():
    return letters.recorded()


def test_the_text_is_frozen():
    digest = hashlib.sha256(letters.text().encode()).hexdigest()
    assert (len(letters.text()), len(CORPUS.kinds), len(CORPUS.training), len(CORPUS.held)) == (
        228_486,
        94,
        205_637,
        12_000,
    )
    assert digest.startswith("f68aa8998deb607b"), digest
    assert CORPUS.letters(CORPUS.held) == CORPUS.held_text


def twin(cells, attention, fault):
    """Return logits of torch and of NumPy for the same weights and windows."""
    cells["MultiHeadAttention"] = attention
    torch.manual_seed(3)
    model = cells["Model"](94).eval()
    mask = letter_models.mask_of(fault)
    tokens = CORPUS.held[: 4 * letters.N].reshape(4, letters.N)
    with torch.no_grad():
        theirs = model(torch.tensor(tokens), torch.tensor(mask)).numpy()
    return theirs, letter_models.Faulty(letters.of_torch(model).weights, fault)(tokens)[0]


@pytest.mark.parametrize("fault", [name for name in letters.TEN if name != "dropout left on"])
def test_numpy_gives_the_numbers_of_torch(cells, fault):
    theirs, ours = twin(cells, letter_models.modules().get(fault, clinic.Attention), fault)
    assert np.abs(theirs - ours).max() < 5e-6
    if fault not in ("right", "targets not shifted"):
        assert np.abs(theirs - twin(cells, clinic.Attention, "right")[1]).max() > 1e-3  # the mistake is there at all


def test_numpy_gives_the_numbers_of_attnlibs_layer_and_its_biases(cells):
    theirs, ours = twin(cells, MultiHeadAttention, "right")
    assert np.abs(theirs - ours).max() < 5e-6


def test_more_letters_than_positions_raise():
    weights = {"token.weight": np.ones((94, 8)), "position.weight": np.ones((letters.N, 8))}
    with pytest.raises(IndexError):
        letters.Model(weights)(np.zeros((1, letters.N + 1), dtype=int))


def test_eight_bits_are_off_by_half_a_step_at_most():
    weights = {"a": np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32), "b": np.zeros(3, np.float32)}
    packed = letter_models.in_8_bits(weights)
    for name, array in weights.items():
        step = packed[f"{name} step"]
        assert packed[name].dtype == np.int8 and np.all(np.abs(packed[name] * step - array) <= step / 2 + 1e-7)


def test_dice_draw_as_often_as_the_shares_say():
    draw = letters.dice(0)
    counts = np.bincount([draw(np.array([1.0, 0.0, 3.0])) for _ in range(2000)], minlength=3) / 2000
    assert np.abs(counts - [0.25, 0, 0.75]).max() < 0.03


def test_what_is_stored_can_be_trained_again(recorded):
    _, result = letter_models.trained("right 0", CORPUS, steps=150)
    assert abs(result["held"][150] - recorded["right 0"]["held"]["150"]) < 0.1


def test_stored_weights_are_small_and_nearly_those_that_were_trained(recorded):
    assert letters.WEIGHTS.stat().st_size < 900_000
    for stop in letters.STEPS:
        assert abs(letters.held(letters.load(stop), CORPUS.held) - recorded["right 0"]["held"][str(stop)]) < 0.02


def test_the_right_model_passes_the_simple_tables_and_not_the_smoothed_one(recorded):
    smoothed = min(recorded["yardstick"]["smoothed"].values())
    for name in RIGHT:
        assert recorded[name]["held"]["1800"] < 2.24 and smoothed < recorded[name]["held"]["2400"] < 2.24, name


def test_all_that_look_ahead_lead_the_list_and_no_other(recorded):
    for seed in (0, 1):
        ranked = sorted(letters.TEN, key=lambda name: recorded[f"{name} {seed}"]["train"]["2400"])
        assert set(ranked[: len(LOOK_AHEAD)]) == set(LOOK_AHEAD), ranked


def test_who_sees_the_future_jumps_at_the_last_position_and_who_copies_does_not(recorded):
    for seed in (0, 1):
        for name in letters.TEN:
            curve = recorded[f"{name} {seed}"]["by position"]
            assert (curve[-1] - curve[-2] > 0.5) == (name in LOOK_AHEAD[1:]), (name, seed, curve[-2:])


def test_heads_by_reshape_draw_a_saw_with_a_tooth_for_each_head(recorded):
    for seed in (0, 1):
        curve = np.array(recorded[f"heads by reshape {seed}"]["by position"])
        assert set(np.argsort(curve)[-4:]) == {0, 8, 16, 24}, curve.round(1)


def test_without_the_residual_only_frequencies_are_learned(recorded):
    for seed in (0, 1, 2):
        assert abs(recorded[f"without residual {seed}"]["held"]["2400"] - 4.73) < 0.05


def test_two_heads_of_layer_1_look_one_and_two_back_in_each_seed(recorded):
    for seed in ("0", "1", "2"):
        (_, before, cost), (_, two, _) = recorded["heads"][seed]
        assert before > 0.8 and two > 0.4 and cost > 0.5


def test_a_rate_may_depend_on_the_step():
    model, seen = torch.nn.Linear(1, 1), []

    def rate(step):
        seen.append(step)
        return 0.1 if step < 3 else 0.0

    def draw(generator):
        x = torch.randn(8, 1, generator=generator)
        return x, 3 * x

    def loss(model, batch):
        return (model(batch[0]) - batch[1]).square().mean()

    history = train(model, draw, loss, steps=5, lr=rate, every=1, measure=lambda m: m.weight.item())
    assert history.measured[1] != history.measured[2] == history.measured[5] and seen[-1] == 5

"""Lesson model_of_your_own: its text, its model in both twins, and what is stored of its trainings."""

import hashlib

import numpy as np
import pytest
import torch

from attncourse import clinic, letters
from attncourse.lessons.model_of_your_own import bits
from attncourse.training import train
from attnlib.torch_layers import MultiHeadAttention
from tools import letter_models, record_results

CORPUS = letters.Corpus()
LOOK_AHEAD = ("targets not shifted", "no mask", "mask off by one", "softmax over queries", "mask after softmax")
LOOK_AHEAD += ("mask transposed",)
RIGHT = ("right 0", "right 1", "right 2")


@pytest.fixture(scope="module")
def cells():
    return letter_models.cells()


@pytest.fixture(scope="module")
def recorded():
    return letters.load_results()


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
    _, result = letter_models.train_one("right 0", CORPUS, steps=150)
    assert abs(result["held"][150] - recorded["right 0"]["held"]["150"]) < 0.1


def test_stored_weights_are_small_and_nearly_those_that_were_trained(recorded):
    assert letters.WEIGHTS.stat().st_size < 900_000
    for stop in letters.STEPS:
        assert (
            abs(letters.held_out_bits(letters.load(stop), CORPUS.held) - recorded["right 0"]["held"][str(stop)]) < 0.02
        )


def ends(name, seeds=(0, 1, 2)):
    """Return held-out bits at the end of each training."""
    return np.array([letters.load_results()[f"{name} {seed}"]["held"]["2400"] for seed in seeds])


def test_the_right_model_passes_the_simple_tables_and_not_the_smoothed_one(recorded):
    smoothed = min(recorded["yardstick"]["smoothed"].values())
    assert round(smoothed, 2) == 2.01 and (ends("right") < 2.24).all() and (ends("right") > smoothed + 0.1).all()
    assert max(recorded[name]["held"]["1950"] for name in RIGHT) < 2.24


def test_six_look_ahead_and_lead_the_list_and_the_right_one_comes_next(recorded):
    for seed in (0, 1):
        ranked = sorted(letters.TEN, key=lambda name: recorded[f"{name} {seed}"]["held"]["2400"])
        assert set(ranked[:6]) == set(LOOK_AHEAD) and ranked[6] == "right", ranked
        low, honest = np.split(np.array([recorded[f"{name} {seed}"]["held"]["2400"] for name in ranked]), [6])
        assert low.max() < 0.3 and honest.min() > 2.01
        words = [recorded[f"{name} {seed}"]["known words"] for name in ranked]
        assert recorded[f"no mask {seed}"]["held"]["150"] < 0.35
        assert max(words[:6]) < 0.25 and min(words[6:]) > 0.6


def test_no_division_shows_in_none_of_the_curves(recorded):
    for seed in (0, 1):
        right, without = (np.array(recorded[f"{name} {seed}"]["by position"]) for name in ("right", "no division"))
        assert 0 < (without - right).mean() < 0.1 and np.abs(without - right).max() < 0.2


def test_at_twice_the_width_the_loss_shows_that_nobody_divides(recorded):
    right, without = (recorded[f"{name}, wide 3"]["held"]["2400"] for name in ("right", "no division"))
    assert (round(right, 2), round(without, 2)) == (2.11, 3.39)


def test_who_sees_the_future_jumps_at_the_last_position_and_who_copies_does_not(recorded):
    for seed in (0, 1):
        for name in letters.TEN:
            curve = recorded[f"{name} {seed}"]["by position"]
            assert (curve[-1] - curve[-2] > 0.5) == (name in LOOK_AHEAD[1:]), (name, seed, curve[-2:])
        assert len(set(recorded[f"targets not shifted {seed}"]["text"][4:])) == 1  # one letter for ever


def test_heads_by_reshape_draw_a_saw_with_a_tooth_for_each_head(recorded):
    for seed in (0, 1):
        curve = np.array(recorded[f"heads by reshape {seed}"]["by position"])
        assert set(np.argsort(curve)[-4:]) == {0, 8, 16, 24}, curve.round(1)


def test_what_is_lost_without_each_part(recorded):
    right, slow = ends("right"), ends("without norm, slow") - ends("right, slow")
    assert (np.abs(ends("without attention") - 3.61) < 0.05).all()  # as a table of one letter
    assert (ends("without residual") > 4.2).all() and (np.abs(ends("without network") - right - 0.3) < 0.05).all()
    assert np.abs(ends("without positions") - [recorded[name]["held"]["300"] for name in RIGHT]).max() < 0.1
    assert all(
        recorded[f"without positions {seed}"]["held"]["2100"] > ends("without positions")[seed] for seed in (0, 1, 2)
    )
    assert (ends("without norm") - right > 1.3).all() and (slow > 0).all() and (slow < 0.05).all()


def test_too_pale_costs_more_than_too_sharp_and_nothing_before_training(recorded):
    bits = {int(d_k): bits for d_k, (_, bits) in recorded["stops"]["2400"].items()}
    assert round(bits[1024] - bits[16], 1) == 2.9 and bits[1024] > 4.73 and 0.1 < bits[1] - bits[16] < 0.2
    texts, fresh = zip(*recorded["stops"]["0"].values(), strict=True)
    assert np.ptp(fresh) < 0.002 and len(set(texts)) > 1
    tokens, rows = CORPUS.held[:3200].reshape(-1, letters.N), np.arange(8, letters.N)
    for d_k, told in ((1, 1.00), (16, 0.96), (1024, 0.13)):
        first = letters.Model(letters.load(2400).weights, d_k)(tokens)[1][0]
        assert abs(first[:, :, rows, rows - 1].mean((0, -1)).max() - told) < 0.01


def test_the_notebook_has_one_text_of_the_right_model(recorded):
    assert recorded["right 0"]["text"] == recorded["stops"]["2400"]["16"][0]
    assert letter_models.write_text(letters.load(2400), CORPUS) == recorded["right 0"]["text"]


def test_two_heads_of_layer_1_look_one_and_two_back_in_each_seed(recorded):
    for seed in "012":
        (_, before, equal, cost), (_, two, _, less), (_, bracket, even, little) = recorded["heads"][seed]
        assert before > 0.9 and two > 0.4 and equal < 0.06 and cost > 1.5 and less > 0.25
        assert before + two > 1  # so they are two heads
        assert bracket > 4 * even and little < 0.05


def test_the_loss_is_flat_from_the_fifth_letter_on(recorded):
    for name in RIGHT:
        curve = np.array(recorded[name]["by position"])
        assert curve[0] > curve[1] + 0.5 > curve[2] + 0.5 and abs(curve[4:9].mean() - curve[24:].mean()) < 0.05
    last = np.arange(0, len(CORPUS.held) - 34, 16)[:, None] + np.arange(16, 32)
    for back, told in ((5, 2.19), (16, 2.12)):
        past = CORPUS.held[last.reshape(-1, 1) - np.arange(back)[::-1]]
        cost = bits(letters.load(2400)(past)[0][:, -1:], CORPUS.held[last.reshape(-1, 1) + 1])
        assert round(float(cost), 2) == told


def test_honest_models_rise_at_the_end_as_they_do_elsewhere(recorded):
    for name in (*RIGHT, "no division 0", "no division 1", "dropout left on 0", "dropout left on 1"):
        steps = np.diff(recorded[name]["by position"])
        assert 0.05 < steps[-1] < 0.12 and steps[5:-1].max() > 0.85 * steps[-1], name


@pytest.mark.parametrize("fault", ["right", "mask after softmax", "softmax over queries"])
def test_two_mistakes_see_the_future_through_the_denominator(fault):
    model, tokens = letter_models.Faulty(letters.load(2400).weights, fault), CORPUS.held[: letters.N][None]
    other = np.where(np.arange(letters.N) < 20, tokens, 0)
    (before, maps), (after, _) = model(tokens), model(other)
    assert max(np.triu(part, 1).max() for part in maps) == 0  # no weight lies on a later letter
    assert (np.abs(before - after)[:, :20].max() > 0.1) == (fault != "right")


def test_a_table_writes_more_known_words_and_the_model_more_than_a_table_of_three_letters(recorded):
    known, model = recorded["yardstick"]["known words"], [recorded[name]["known words"] for name in RIGHT]
    assert known["a table of 3 letters"] < min(model) and max(model) + 0.1 < known["a table of 5 letters"]


def test_short_texts_are_used_up_and_the_whole_is_not(recorded):
    for name, best in (("2000 letters", "50"), ("10000 letters", "200"), ("50000 letters", "1200"), ("right", "2250")):
        curve = {step: bits for step, bits in recorded[f"{name} 0"]["held"].items() if step != "0"}
        assert min(curve, key=curve.get) == best
        assert (curve[best] < list(curve.values())[-1] - 0.1) == (
            name != "right"
        )  # of the whole, none is worse at the end


ALPHABETS = {  # each letter of ours as another: of two bytes, or of three with no blank; and as short as may be
    "Greek": {i: chr(0x370 + i) if chr(i).isalpha() else chr(i) for i in range(128)},
    "Chinese": {i: chr(0x4E00 + i) for i in range(128)},
    "short": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ALPHABETS)
def test_a_text_of_ones_own_runs_through_the_notebook(name, tmp_path, capsys):
    words = letters.text()[: 350 if name == "short" else 35_000].translate(ALPHABETS[name])
    source = record_results.SOURCE.with_name("model_of_your_own.py").read_text("utf-8")
    ours = "corpus = letters.Corpus()\n"
    assert (
        ours in source
        and "steps=300," in source
        and 'letters.Corpus(open("my.txt", encoding="utf-8").read())' in source
    )
    (tmp_path / "my.txt").write_bytes(words.encode())
    own = f"import pathlib\ncorpus = letters.Corpus(pathlib.Path({str(tmp_path / 'my.txt')!r}).read_text('utf-8'))\n"
    page = tmp_path / "page.py"
    page.write_text(source.replace(ours, own).replace("steps=300,", "steps=20,"), "utf-8")
    found = record_results.run_cells(page)
    assert found["corpus"].training_text + found["corpus"].held_text == words
    assert 1 < found["held_out"] < 9 and found["judged"] is found["mine_now"]
    assert set(found["corpus"].kinds) <= set(words) and "yours, after" in capsys.readouterr().out


def test_the_file_is_half_a_megabyte_and_the_model_that_speaks_1200_times_as_large(cells, tmp_path):
    model = cells["Model"](94)
    np.savez(tmp_path / "mine.npz", **letters.of_torch(model).weights)
    assert 450_000 < (tmp_path / "mine.npz").stat().st_size < 500_000
    assert round(134_515_008 / sum(part.numel() for part in model.parameters()), -2) == 1200


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

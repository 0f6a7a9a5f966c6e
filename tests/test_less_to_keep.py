"""Lesson less_to_keep: its exercises, what is stored of the ways to keep less, and what its text says of them."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from lessons.less_to_keep import keys_made, latent

import attnlib as al
from attncourse import check, smollm
from attncourse.lessons.less_to_keep import best_keys, in_groups, latent_attention
from attncourse.lessons.less_to_keep.mistakes import SINKS
from attncourse.smollm.finding import NARROW
from attnlib import live
from attnlib.rounding import rounded
from tools import measures
from tools.build_notebooks import code_between, read_source
from tools.handouts import exercises
from tools.numbering import numbers
from tools.series import find_notebook

POINTS = {(point["family"], point["name"]): point for point in smollm.recorded("less_to_keep")}
PART = smollm.recorded("shared_part")
TOKEN, FEATURE = "a scale per token", "keys per feature"
APART, GROUPS = "stripes away, per token", "keys per feature, groups"
needs_model = pytest.mark.skipif(bool(smollm.missing()), reason="the model is not installed: make real-decoder")


def test_keys_and_values_of_a_latent_may_not_be_made():
    for answer in (
        keys_made,
        lambda q, c, W_UK, W_UV, m=None: latent()(q, c, W_UK, W_UV, m) + 0 * (c @ W_UK).sum(),
    ):
        verdict = check.latent_attention(answer)
        assert verdict.state == "wrong" and "Fix: multiply the query by W_UK" in verdict.message, verdict


@pytest.mark.parametrize("seed, r, d_k, d_v", [(0, 3, 8, 5), (1, 12, 8, 8), (2, 7, 7, 16)])
def test_absorbed_matrices_give_what_keys_and_values_give(seed, r, d_k, d_v):
    draw = np.random.default_rng(seed).normal
    q, c = draw(size=(4, 9, d_k)), draw(size=(9, r))
    W_UK, W_UV = draw(size=(4, r, d_k)), draw(size=(4, r, d_v))
    mask = al.causal_mask(9)
    made = al.scaled_dot_product_attention(q, c @ W_UK, c @ W_UV, mask)
    assert np.abs(latent_attention(q, c, W_UK, W_UV, mask) - made).max() < 1e-10


@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_of_all_keys_are_attention_and_one_key_is_its_value(seed):
    q, k, v = np.random.default_rng(seed).normal(size=(3, 2, 11, 6))
    mask = al.causal_mask(11)
    whole = al.scaled_dot_product_attention(q, k, v, mask)
    assert np.abs(best_keys(q, k, v, mask, best=11) - whole).max() < 1e-12
    largest = np.where(mask, q @ np.swapaxes(k, -1, -2), -np.inf).argmax(-1)
    one = best_keys(q, k, v, mask, best=1)
    assert np.abs(one - np.take_along_axis(v, largest[..., None], axis=-2)).max() < 1e-12


def test_groups_are_seen_as_they_would_be_token_by_token():
    """A query of a text that is read at once sees each key as it stands when that query is the last token."""
    n, draw = 21, np.random.default_rng(7).normal
    q, k, v = draw(size=(3, 2, n, 64))
    (cell,) = [cell for cell in code_between("less_to_keep", "# ", "## Try it") if "def in_turn" in cell]
    names = {"np": np, "al": al, "rounded": rounded, "my_in_groups": in_groups, "verdict": check.in_groups(in_groups)}
    exec(cell, names)
    for attention in (names["in_turn"](2, size=4), measures.waiting(2, 4)):
        at_once = attention(q, k, v, al.causal_mask(n))
        for i in range(n):
            kept = in_groups(k[:, : i + 1], 2, 4), rounded(v[:, : i + 1], 2)
            wanted = al.scaled_dot_product_attention(q[:, i : i + 1], *kept)
            assert np.abs(at_once[:, i : i + 1] - wanted).max() < 1e-12


def test_softmax_sees_no_constant_in_keys_whatever_it_is():
    draw = np.random.default_rng(3).normal
    q, k, v, constant = draw(size=(9, 5)), draw(size=(9, 5)), draw(size=(9, 4)), 30 * draw(size=5)
    plain = al.scaled_dot_product_attention(q, k, v, al.causal_mask(9))
    assert np.abs(al.scaled_dot_product_attention(q, k + constant, v, al.causal_mask(9)) - plain).max() < 1e-10
    assert PART["loss"]["away"] == PART["loss"]["whole"] and PART["loss"]["whole"]["alice"] == 3.3249
    assert min(PART["loss"]["values' share away"].values()) > 12
    assert all(PART["loss"]["away before the rotation"][x] > PART["loss"]["whole"][x] + 3 for x in smollm.TEXTS)
    assert PART["keys"] > 4 * PART["values"] and 0.9 < PART["keys, from the prose"] / PART["keys"] < 1


def losses(family, name):
    return np.array([*POINTS[family, name]["on"].values()])


def test_what_the_text_says_of_fewer_bits():
    whole = losses("everything", "16 bits")
    assert np.abs(losses(TOKEN, "8 bits") - whole).max() < 0.01 and (losses(TOKEN, "2 bits") > whole + 2).all()
    scales = {(row["bits"], row["keys"], row["values"]): row for row in smollm.recorded("scales")}
    for kept in ("loss", "float16"):  # with scales as they are, and in 16 bits
        found = {name: np.array([*row[kept].values()]) for name, row in scales.items()}
        for bits in (3, 2):
            for keys in ("token", "feature"):  # values are worse off with a scale for each feature, keys better
                assert (found[bits, keys, "feature"] > found[bits, keys, "token"]).all()
            assert (found[bits, "feature", "token"] < found[bits, "token", "token"]).all()
            assert (found[bits, "feature", "token"] < found[bits, "feature", "feature"]).all()
    off = {
        bits: [
            abs(row["loss"][x] - row["float16"][x])
            for row in smollm.recorded("scales")
            if row["bits"] == bits
            for x in smollm.TEXTS
        ]
        for bits in (4, 3, 2)
    }
    assert f"{max(off[4]):.2f} {max(off[3]):.2f}" == "0.05 0.40" and max(off[2]) > 1
    for bits, values in product((3, 2), ("token", "feature")):  # the second judge agrees about keys
        assert scales[bits, "feature", values]["again"] < scales[bits, "token", values]["again"]
    assert scales[3, "feature", "feature"]["codes"] > scales[3, "feature", "token"]["codes"]  # not about values
    assert (
        max(row["codes"] for name, row in scales.items() if name[0] < 4) <= 0.2 < scales[4, "token", "token"]["codes"]
    )
    for bits in ("4 bits", "3 bits", "2 bits"):
        assert (losses(FEATURE, bits) < losses(APART, bits)).all()
    assert (losses(GROUPS, "4 bits") - whole < 0.04).all() and POINTS[GROUPS, "4 bits"]["bytes"] * 3 < 23_040
    for bits in ("3 bits", "2 bits"):
        assert (losses(APART, bits) < losses(TOKEN, bits)).all()
        assert (losses(GROUPS, bits) < losses(FEATURE, bits)).all()


def test_what_the_text_says_of_fewer_keys_and_numbers():
    found = smollm.recorded("few_keys")
    best = {row["best"]: np.array([*row["loss"].values()]) for row in found["best"]}
    assert (best[32] - losses("everything", "16 bits") < 0.11).all()
    guessed = {row["by"]: (row["recall"], np.array([*row["loss"].values()])) for row in found["guessed"]}
    codes = {row.get("best", row.get("by")): row["codes"] for row in found["best"] + found["guessed"]}
    again = {row.get("best", row.get("by")): row["again"] for row in found["best"] + found["guessed"]}
    assert codes[32] == 0.85 and codes["2 bits"] < 0.1 and again["2 bits"] > again[8] + 1
    best_guess = guessed["16 of 64 features"][1]
    assert all((best_guess < nats).all() for by, (_, nats) in guessed.items() if by != "16 of 64 features")
    assert min(guessed, key=again.get) == max(guessed, key=codes.get) == "16 of 64 features"
    plain, apart = guessed["2 bits"], guessed["2 bits, without what keys share"]
    assert plain[0] < apart[0] - 0.1 and (plain[1] > apart[1]).all()
    assert (guessed["16 of 64 features"][1] - best[8] < 0.2).all() and guessed["the latest"][0] < 0.2
    rotated = np.array([*smollm.recorded("latents")["rotated"].values()])
    assert (rotated > losses("everything", "16 bits") + 4).all()
    for rank in ("256", "192"):
        ways = [losses(f"latent from {source}", f"rank {rank}") for source in ("other texts", "matrices")]
        assert (ways[0] < ways[1] - 0.4).all()


def test_windows_are_beaten_without_the_first_token_and_cost_more_on_code():
    for width in ("32", "64", "128"):
        with_first, without = (losses(family, f"{width} tokens") for family in ("window and first token", "a window"))
        assert (with_first < without).all()
    short, two_bits = ("window and first token", "16 tokens"), (GROUPS, "2 bits")
    assert POINTS[short]["bytes"] < POINTS[two_bits]["bytes"] and sum(losses(*short) < losses(*two_bits)) == 2


FOUND = {(row["family"], row["name"]): row for row in smollm.recorded("find_again")}
WINDOW, WHOLE = "window and first token", ("everything", "16 bits")


def band(again=False):
    """Return the ways that no other beats in bytes and loss, on the next word or on what is read again."""
    cost = {way: (point["bytes"], FOUND[way]["again"] if again else point["loss"]) for way, point in POINTS.items()}
    return {
        way
        for way, (size, loss) in cost.items()
        if not any(a <= size and b <= loss for other, (a, b) in cost.items() if other != way)
    }


def test_the_two_judges_disagree_on_windows():
    codes = {way: row["codes"] for way, row in FOUND.items()}
    for width in ("16", "32", "64"):
        assert codes[WINDOW, f"{width} tokens"] == 0 and FOUND[WINDOW, f"{width} tokens"]["again"] > 4
    told = (GROUPS, "4 bits"), (GROUPS, "3 bits"), (GROUPS, "2 bits"), (FEATURE, "3 bits"), (WINDOW, "128 tokens")
    assert [codes[way] for way in (WHOLE, *told)] == [0.9, 0.875, 0.65, 0, 0.05, 0.1]
    assert losses(WINDOW, "64 tokens")[0] - losses(*WHOLE)[0] == pytest.approx(0.09, abs=0.005)
    assert losses(GROUPS, "4 bits")[0] - losses(*WHOLE)[0] == pytest.approx(0.01, abs=0.005)
    for again in (False, True):  # both bands begin with two windows
        assert sorted(band(again), key=lambda way: POINTS[way]["bytes"])[:2] == [
            (WINDOW, "16 tokens"),
            (WINDOW, "32 tokens"),
        ]
        assert len([way for way in band(again) if way[0] == WINDOW]) == 2 and (FEATURE, "2 bits") not in band(again)
    assert (GROUPS, "4 bits") in band() and (GROUPS, "4 bits") not in band(again=True)
    assert (APART, "3 bits") in band(again=True) and POINTS[APART, "3 bits"]["bytes"] == 5_040
    latent_192 = "latent from other texts", "rank 192"
    assert f"{losses(*latent_192)[0] - losses(*WHOLE)[0]:.2f} {codes[latent_192]:.0%}" == "0.47 72%"
    assert FOUND[APART, "3 bits"]["again"] == pytest.approx(FOUND[WHOLE]["again"], abs=0.01)
    assert codes[APART, "3 bits"] == pytest.approx(0.45, abs=0.03)


def test_what_the_text_says_of_fewer_layers():
    stored = smollm.recorded("layers")
    sets = {row["name"]: (row["whole"], *row["judged"]) for row in stored["sets"]}
    whole, three, first = (sets[name] for name in ("all 30", "all but 18, 19, 24", "all but 1, 2, 3"))
    assert three[3] == 0 and f"{three[1] - whole[1]:.2f}" == "0.07" and first[1] > three[1] and first[3] > 0.8
    for name in ("none", "every sixth", "the first five", "most missed by the next word"):
        assert sets[name][3] == 0
    assert 0 < sets["the largest sinks"][3] <= 0.05
    five, *judged, _ = sets["most missed by the codes"]
    assert five == [*measures.FIND] and judged[2] == 0.4 and f"{judged[0]:.2f} {whole[1]:.2f}" == "3.74 3.32"
    assert judged[1:] == [FOUND["everything", "5 layers, else 16 tokens"][name] for name in ("again", "codes")]
    others = sets["most missed by other copies"]
    assert others[2] < judged[1] and others[3] < judged[2]
    assert {layer for layer, _ in smollm.recorded("copying")["heads"]} == {18, 19, 21, 24}
    assert smollm.recorded("copying")["previous heads"][0] == [17, 1] and stored["alone"][16][1] < whole[4]
    source = read_source(find_notebook("less_to_keep").source)
    (solution,) = (code for _, number, code in exercises(source) if number == numbers()["layers"])
    exec(solution, names := {})
    assert sorted(names["my_layers"](smollm.narrow_layers(None))) == five
    for layers in ([0], [31], [0, 5]):
        with pytest.raises(ValueError, match="layers are 1 to 30"):
            smollm.narrow_layers(None)(layers)
    sinks = np.array(smollm.recorded("sinks")["by layer"])
    assert tuple(1 + np.argsort(-sinks)[:5]) == SINKS and set(SINKS) == set(sets["the largest sinks"][0])


@pytest.mark.slow
@needs_model
def test_copies_side_by_side_are_read_in_a_window_as_in_the_whole_text_and_sets_come_out_again():
    speaker = smollm.load(bar=iter)
    near = [smollm.found_again(other, between="\n") for other in (speaker, speaker.using(window=64, sink=1))]
    assert near[0] == pytest.approx(near[1], abs=0.01)
    narrow = speaker.using(**NARROW, whole=measures.FIND)
    assert smollm.found_again(narrow) == pytest.approx(
        FOUND["everything", "5 layers, else 16 tokens"]["again"], abs=0.01
    )
    assert smollm.codes_found(narrow)[0] == pytest.approx(0.4, abs=0.03)
    for narrowed, share in (({19}, 0.05), ({18, 24}, 0.8)):
        other = speaker.using(**NARROW, whole={*range(1, 31)} - narrowed)
        assert smollm.codes_found(other)[0] == pytest.approx(share, abs=0.03)
    alone = smollm.recorded("layers")["alone"]
    assert smollm.narrow_layers(speaker)([18, 24])[1] > max(alone[17][1], alone[23][1]) + 0.03


@pytest.mark.slow
@needs_model
def test_on_other_lists_bits_find_as_the_whole_and_latents_half_as_much():
    speaker = smollm.load(bar=iter)
    bases = [basis[:, :192] for basis in measures.bases_of_texts(speaker)]
    ways = [speaker, speaker.using(attention=measures.waiting(4)), measures.with_bases(speaker, bases)]
    ways.append(speaker.using(window=64, sink=1))
    whole, bits, latents, window = (smollm.codes_found(other, range(5, 10))[0] for other in ways)
    assert window == 0 and bits > whole - 0.1 and latents == pytest.approx(whole / 2, abs=0.11), latents


def test_bytes_are_those_of_the_formula_in_16_bits():
    size = {name: point["bytes"] for name, point in POINTS.items()}
    assert size["everything", "16 bits"] == 2 * 30 * 3 * 64 * 2 == 23_040
    assert size[TOKEN, "4 bits"] == 2 * 90 * (64 * 4 / 8 + 4) == size[APART, "4 bits"]
    assert size[FEATURE, "4 bits"] == round(90 * (2 * 32 + 4 + 4 * 64 / 208))
    waiting_keys, ready = 16 * 64 * 2, 192 * (32 + 4 * 64 / 32)
    assert size[GROUPS, "4 bits"] == round(90 * ((waiting_keys + ready) / 208 + 36))
    assert [size[GROUPS, f"{bits} bits"] for bits in (4, 3, 2)] == [7_449, 6_065, 4_680]
    assert size["window and first token", "64 tokens"] == round(23_040 * 65 / 208) == 7_200
    assert size["latent from other texts", "rank 256"] == 30 * 256 * 2
    assert size["everything", "5 layers, else 16 tokens"] == round(23_040 * (5 + 25 * 17 / 208) / 30)


def test_had_looks_at_she_until_two_bits_share_a_scale_with_the_stripes():
    some = smollm.recorded("some_keys")
    view = live.keys_map(some["key"], some["query"], tokens=some["tokens"], row=27)
    for bits, axis, mean, word in ((32, -1, 0, " she"), (2, -1, 0, " do"), (2, -1, 2, " she"), (2, -2, 0, " she")):
        for name, value in (("bits", bits), ("axis", axis), ("mean", mean)):
            view.sliders[name].value = value
        assert some["tokens"][view.shown["weights"][0].argmax()] == word


@pytest.mark.slow
@needs_model
def test_points_come_out_again():
    """Within 0.1: a number that another processor rounds to the other side moves those after it, too."""
    speaker = smollm.load(bar=iter)
    bits = partial(rounded, bits=3)
    fresh = {
        (TOKEN, "3 bits"): speaker.using(attention=measures.attending(bits, bits)),
        (GROUPS, "3 bits"): speaker.using(attention=measures.waiting(3)),
        (APART, "3 bits"): speaker.using(
            grouped_attention=measures.without(measures.mean_keys(speaker, smollm.TEXTS["prose"]), 3)
        ),
        ("latent from matrices", "rank 256"): measures.with_bases(
            speaker, [basis[:, :256] for basis in measures.bases_of_matrices(speaker)]
        ),
    }
    for name, other in fresh.items():
        assert other.loss(smollm.TEXTS["alice"]) == pytest.approx(POINTS[name]["loss"], abs=0.1), name
    found = measures.some_keys(speaker)
    assert np.abs(found["key"] - np.array(smollm.recorded("some_keys")["key"])).max() < 0.02


@pytest.mark.parametrize("seed, d", [(0, 8), (5, 32)])
def test_a_rotated_latent_is_no_rotated_key(seed, d):
    draw, at = np.random.default_rng(seed).normal, np.arange(7)
    q, c, W = draw(size=(7, d)), draw(size=(7, 2 * d)), draw(size=(2 * d, d)) / np.sqrt(2 * d)
    true = al.rope(q, at) @ al.rope(c @ W, at).T
    wrong = al.rope(q @ W.T, at) @ al.rope(c, at).T
    assert (
        np.abs(wrong - true).max() > 1 and np.abs(np.diag(wrong) - np.diag(true)).max() < 1e-10
    )  # distance 0 is right


GERMAN = """Am Morgen war der Berg weiß. Ein Mann mit einem roten Hut ging langsam die Straße zur Mühle entlang, und
sein Hund lief vor ihm her. Wir sind zu spät, sagte der Mann. Der Hund antwortete nicht. Er hatte im Schnee einen
Handschuh gefunden. Neben der Mühle standen drei Häuser, zwei davon leer, und aus dem dritten stieg grauer Rauch."""
JSON = """[{"name": "Anna", "age": 31, "city": "Paris", "likes": ["tea", "chess"]},
 {"name": "Ben", "age": 27, "city": "Rome", "likes": ["wine"]},
 {"name": "Carla", "age": 45, "city": "Oslo", "likes": ["tea", "snow", "cats"]}]"""


@pytest.mark.slow
@needs_model
@pytest.mark.parametrize("text", [GERMAN, JSON])
def test_other_texts_agree(text):
    speaker = smollm.load(bar=iter)
    token, feature = (partial(rounded, bits=3, axis=axis) for axis in (-1, -2))
    constant = measures.mean_keys(speaker, smollm.TEXTS["prose"])
    ways = {
        "per token": {"attention": measures.attending(token, token)},
        "keys per feature": {"attention": measures.attending(feature, token)},
        "values, too": {"attention": measures.attending(feature, feature)},
        "stripes away": {"grouped_attention": measures.without(constant, 3)},
        "window": {"window": 32},
        "and the first": {"window": 32, "sink": 1},
    }
    loss = {name: speaker.using(**changes).loss(text) for name, changes in ways.items()}
    assert loss["keys per feature"] < loss["stripes away"] < loss["per token"]
    assert loss["keys per feature"] < loss["values, too"] and loss["and the first"] < loss["window"]
    bases = measures.bases_of_matrices(speaker), measures.bases_of_texts(speaker)
    matrices, texts = (measures.with_bases(speaker, [x[:, :256] for x in each]).loss(text) for each in bases)
    assert texts < matrices - 0.3


DANTE = """Nel mezzo del cammin di nostra vita mi ritrovai per una selva oscura, ché la diritta via era smarrita.
Ahi quanto a dir qual era è cosa dura esta selva selvaggia e aspra e forte che nel pensier rinova la paura!
Tant' è amara che poco è più morte; ma per trattar del ben ch'i' vi trovai, dirò de l'altre cose ch'i' v'ho scorte."""


@pytest.mark.slow
@needs_model
def test_on_dante_the_constant_of_the_prose_makes_three_bits_worse():
    speaker, rounds = smollm.load(bar=iter), partial(rounded, bits=3, axis=-1)
    constant = measures.mean_keys(speaker, smollm.TEXTS["prose"])
    plain = speaker.using(attention=measures.attending(rounds, rounds)).loss(DANTE)
    assert speaker.using(grouped_attention=measures.without(constant, 3)).loss(DANTE) > plain + 0.05


@pytest.mark.slow
@needs_model
def test_further_on_in_a_text_the_constant_of_another_fits_less():
    speaker = smollm.load(bar=iter)
    constant = measures.mean_keys(speaker, smollm.TEXTS["prose"])

    def taken(before):
        """Return what share of the mean square of Alice's keys the constant takes away, behind so many proses."""
        text = " ".join([smollm.TEXTS["prose"]] * before + [smollm.TEXTS["alice"]])
        shares = []
        for (key, _), shared in zip(measures.all_keys(speaker, text), constant, strict=True):
            key = key[:, -208:]
            shares.append(1 - ((key - shared) ** 2).mean(axis=(-1, -2)) / (key**2).mean(axis=(-1, -2)))
        return np.mean(shares)

    assert [taken(n) for n in (0, 2, 5)] == pytest.approx([0.61, 0.46, 0.38], abs=0.011)

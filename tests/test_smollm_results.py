"""What was measured on the real decoder: it is stored, notebooks tell it truly, and it comes out again."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from test_seeds import printed

import attnlib as al
from attncourse import check, smollm
from attncourse.model_files import DATA, stored
from attncourse.smollm import results
from attnlib import rotary
from tools import measures
from tools.record_results import round_for_json
from tools.series import find_notebook

NEEDS = "the model is not installed: make real-decoder"
RESULTS = stored("smollm_results")
needs_model = pytest.mark.skipif(bool(smollm.missing()), reason=NEEDS)


@pytest.fixture(scope="module")
def speaker():
    return smollm.load(bar=iter)


def test_the_stored_results_are_whole_and_small():
    files = [DATA / "smollm_results.json", DATA / "smollm_stops.json"]
    assert sum(file.stat().st_size for file in files) < 293_000
    assert set(RESULTS) == set(measures.MEASURES)


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
    with pytest.raises(LookupError, match=r"results are stored for .*blanks.*; got 'other'\. Fix: one of these"):
        smollm.recorded("other")


# What is told of them


def loss(name, text="alice"):
    return smollm.recorded("mistakes")[name]["loss"][text]


def test_what_the_mistakes_do():
    assert loss("none") == pytest.approx(3.32, abs=0.01)
    # The answer is in the input, and it cannot write.
    assert min(smollm.recorded("mistakes"), key=loss) == "no causal mask"
    assert loss("no causal mask", "prose") < loss("none", "prose") / 3
    assert loss("no causal mask", "code") > loss("none", "code")  # but not on every text
    for harmless in ("base 10,000", "base 1,000,000"):
        assert 0 < loss(harmless) - loss("none") < 0.15
    for fatal in ("grouped heads tiled", "the first group serves all", "softmax over the queries"):
        assert loss(fatal) > 10
    assert all(loss(name) > loss("none") for name in smollm.FAULTS if name != "no causal mask")


def test_without_a_mask_no_rule_holds_for_every_text():
    """As lesson it_speaks says under a table: the loss falls on most texts, and the first token is one cause of two."""
    found = smollm.recorded("future_in_sight")
    worse = {name for name, (healthy, seeing, _) in found.items() if seeing > healthy}
    assert worse == {"code", "Italian, a market"} and len(found) == 7
    assert [round(loss, 2) for loss in found["Italian, a market"]] == [5.07, 7.93, 3.7]
    assert round(found["code"][2], 2) == 2.0
    assert {name for name, (_, seeing, alone) in found.items() if alone < seeing} == {"Italian, a market"}
    for name in smollm.TEXTS:
        assert found[name][:2] == pytest.approx([loss(fault, name) for fault in ("none", "no causal mask")], abs=1e-3)


def test_the_loss_is_smallest_at_or_beside_the_models_own_d_k():
    for text, best in (("alice", 64), ("prose", 80), ("code", 64)):
        assert min(smollm.recorded("sharpness"), key=lambda stop: stop["loss"][text])["d_k"] == best
    largest = [stop["largest"] for stop in smollm.recorded("sharpness")]
    assert largest == sorted(largest, reverse=True) and largest[0] > 0.88 and largest[-1] < 0.04


def test_the_blanks_are_filled_at_64_and_by_chance_at_both_ends():
    right = {stop["d_k"]: stop["right"] for stop in smollm.recorded("blanks")}
    assert right[64] == 0.975 and abs(right[1] - 0.5) < 0.06 and right[4096] < 0.5
    assert max(smollm.recorded("blanks"), key=lambda stop: stop["probability"])["d_k"] == 64
    heads = smollm.recorded("name_heads")
    assert [24, 1] in heads["heads"] and [25, 5] in heads["heads"]
    assert min(one["right"] for one in heads["without one"]) > 0.92 and heads["without all five"]["right"] == 0.9
    assert heads["without all five"]["probability"] < min(drawn["probability"] for drawn in heads["drawn"]) / 1.5
    assert len(set(smollm.BLANKS)) == 80


def test_the_first_token_is_a_sink_and_a_window_needs_it():
    sinks = smollm.recorded("sinks")
    windows = {(w["window"], w["first"]): w["loss"] for w in smollm.recorded("windows")}
    assert sinks["mean"] == pytest.approx(0.34, abs=0.005) and sinks["above 0.5"] == 83 and max(sinks["length"]) > 150
    for width in (8, 16, 32, 64):
        assert windows[width, 1] < windows[width, 0] - 0.6 and abs(windows[width, 4] - windows[width, 1]) < 0.1
    assert windows[64, 1] - windows[None, 0] < 0.1
    for name, rows in smollm.recorded("windows_apart").items():  # on Alice about half of the gain is a place for weight
        for row in rows:
            share = (row["nothing"] - row["silent"]) / (row["nothing"] - row["first"])
            assert 0.5 < share < 0.6 if name == "alice" else 0.27 < share < 0.62
            assert max(row["nothing"] - row[other] for other in ("wider", "second")) < 0.45
            if name == "alice":
                assert [row["nothing"], row["first"]] == [windows[row["window"], first] for first in (0, 1)]


def test_the_heads_that_copy_are_needed_for_copies_and_for_little_else():
    groups = [
        (g["kind"], len(g["heads"]), np.mean(g["second copy"]), g["alice"]) for g in smollm.recorded("without_heads")
    ]
    _, _, whole, alice = groups[0]
    without = {k: (copy, text) for kind, k, copy, text in groups if kind == "copy"}
    drawn = {k: [copy for kind, n, copy, _ in groups if kind == "drawn" and n == k] for k in (1, 2, 4, 8)}
    assert whole < 3 and without[8][0] > 12 and without[8][1] - alice < 0.05
    for k in (2, 4, 8):
        assert without[k][0] > max(drawn[k])
    assert without[1][0] < max(drawn[1])  # one head drawn at random costs more than the strongest that copies: L2H4
    previous = [copy for kind, _, copy, _ in groups if kind == "previous"]
    assert smollm.recorded("copying")["previous heads"][0] == [17, 1] and previous[0] > 8.5 and max(previous[1:]) < 3.5
    assert min(smollm.recorded("copying")["first token on Alice"]) > 0.75  # where nothing repeats they park


def test_what_notebook_13_says_of_what_it_prints():
    assert np.log(49152) == pytest.approx(10.8, abs=0.01)
    assert [round(loss(name, "code"), 2) for name in ("none", "no causal mask")] == [1.45, 1.9]
    copying, (whole, *_) = smollm.recorded("copying"), smollm.recorded("without_heads")
    assert round(min(copying["first token on Alice"]), 2) == 0.79
    (lone,) = (run for run in smollm.recorded("without_heads") if run["kind"] == "drawn" and run["heads"] == [[2, 4]])
    assert round(np.mean(lone["second copy"]), 2) == 5.49
    assert [round(run["alice"], 2) for run in (whole, lone)] == [3.32, 3.64]
    heads = smollm.recorded("name_heads")
    assert [round(one["probability"], 2) for one in (heads["all heads"], *heads["without one"][:2])] == [
        0.49,
        0.36,
        0.58,
    ]
    assert heads["heads"][1] == [25, 5] and round(heads["without one"][0]["right"], 2) == 0.96
    assert round(heads["without all five"]["probability"], 2) == 0.25
    assert sorted(round(drawn["probability"], 2) for drawn in heads["drawn"]) == [0.40, 0.43, 0.44]
    best = {stop["d_k"]: stop["loss"]["alice"] for stop in smollm.recorded("sharpness")}
    assert max(best[48], best[80]) - best[64] < 0.04  # between 48 and 80 the losses differ little


def parked(prompt):
    """Return (mean weight on places to park, that on the first token) but for the first query, as stored."""
    found = smollm.parking(prompt)
    return tuple(float(np.mean(found[name][1:])) for name in ("parked", "first"))


def test_what_notebook_13_says_of_prompts_that_wake_the_heads_that_copy():
    assert round(np.mean(smollm.recorded("copying")["first token on Alice"]), 2) == 0.87
    _, twice, six_times, counting, la, anna, _, _, spellings, solution = smollm.TRIED
    assert len(twice.split()) == 12 and len(six_times.split()) == 36 and anna.split() == ["Anna"] * 20
    assert [round(parked(prompt)[0], 2) for prompt in (six_times, anna, spellings)] == [0.61, 0.94, 0.49]
    tokens = smollm.parking(spellings)["tokens"]
    assert len(set(tokens)) == len(tokens) and len(spellings.split()) == 27  # thirteen, thirteen, and one word of all
    assert smollm.parking(counting)["places"] == [0, 1] and round(parked(counting)[1], 2) == 0.42
    assert smollm.parking(la)["places"] == list(range(20))
    assert parked(solution)[0] < 0.45 and smollm.parking(solution)["places"] == [0]


def test_a_prompt_that_nobody_measured_is_neither_right_nor_wrong():
    assert smollm.parking(None) is smollm.parking(...) is None
    verdict = check.waking_prompt(smollm.parking("red red"))
    assert (verdict.state, verdict.mistake) == ("not tried", None) and not verdict
    assert re.search(r"Only the model can tell.*Fix: choose one of those, or load the model\.", verdict.message)
    with pytest.raises(TypeError, match=r"prompt must be a text, got list\. Fix: one text in quotes\."):
        smollm.parking(["red", "red"])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("red red", r"Hand in what smollm\.parking\(my_prompt, speaker\) returns, got 'red red'"),
        ({"prompt": "red", "tokens": [5]}, r"needs two tokens at least.* Fix: more words\."),
    ],
)
def test_what_is_no_measured_prompt_is_refused(answer, says):
    verdict = check.waking_prompt(answer)
    assert verdict.state == "wrong" and re.search(says, verdict.message)


def measured(prompt, tokens, parked, first=None):
    return {
        "prompt": prompt,
        "tokens": tokens,
        "parked": parked,
        "first": first or parked,
        "copied": [0.0] * len(parked),
    }


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (measured("la la la la", [1, 2, 2, 2], [0.9] * 4), "one_word_again"),
        (measured("a2 a2", [1, 2, 3, 2], [0.9] * 4), None),  # one word of two tokens can be copied
        (measured("to be or", [1, 2, 3], [0.9] * 3), "nothing_twice"),
        (measured("to be or", [1, 2, 3], [0.9] * 3, [0.4] * 3), "parked_elsewhere"),
        (measured("to be to be", [1, 2, 1, 2], [0.9, 0.9, 0.4, 0.4]), "first_copy_parks"),
        (measured("to be to be", [1, 2, 1, 2], [0.9, 0.9, 0.6, 0.6]), "repeated_but_parked"),
        (measured("to be or not I to", [1, 2, 3, 4, 5, 1], [0.9] * 5 + [0.1]), None),  # too little to tell
    ],
)
def test_of_a_prompt_only_what_is_sure_is_named(answer, mistake):
    verdict = check.waking_prompt(answer)
    assert (verdict.state, verdict.mistake) == ("wrong", mistake)


def test_what_notebooks_11_and_16_say_of_passes_and_drafts():
    timed, guesses = smollm.reading(), smollm.recorded("guesses")
    seconds = np.array(timed["seconds"])
    price = np.median(seconds / seconds[:, :1], axis=0)
    assert timed["tokens"] == [1, 2, 4, 8, 16, 32, 64] and len(seconds) == 9
    assert price[-1] < 64 / 3 and price[3] < 8 / 1.5  # far less than as many passes
    assert round(4 * timed["numbers"] / 1e6) == 538 and round(timed["numbers"] / 1e6, 1) == 134.5
    assert set(guesses) == set(smollm.GUESSED) and all(one["same"] for one in guesses.values()) and len(guesses) == 7
    price_of = {}
    for name, one in guesses.items():
        drafted, accepted = np.array(one["passes"]).T
        assert len(drafted) + accepted.sum() in range(63, 63 + 8)
        price_of[name] = np.interp(1 + drafted, timed["tokens"], price).sum() / (1 + accepted).sum()
    pieces, passes = guesses["JSON"]["pieces"], guesses["JSON"]["passes"]
    assert "".join(pieces).startswith(smollm.GUESSED["JSON"]) and price_of["JSON"] < 0.65
    at = len(pieces) - sum(1 + kept for _, kept in passes)
    for drafted, kept in passes:  # the text that is shown is the one that these passes wrote
        draft = smollm.looked_up(pieces[:at])
        assert len(draft) == drafted and draft[:kept] == pieces[at : at + kept]
        assert draft[kept : kept + 1] != pieces[at + kept : at + kept + 1]
        at += 1 + kept
    drafted, accepted = np.array(guesses["counting"]["passes"]).T
    assert (drafted > 0).sum() == 30 and accepted.max() == 1
    assert min(price_of, key=price_of.get) == "a copy" and price_of["a copy"] < 0.6
    for new in ("a story", "another story", "counting"):
        assert price_of[new] > 1
    for name in ("a story", "another story"):
        assert sum(kept for _, kept in guesses[name]["passes"]) <= 1
    passes, prints = printed("less_to_keep"), printed("one_token_at_a_time")  # from this one reading
    assert f" 64 {price[-1]:.2f} " in passes and f" {price_of['French']:.2f}" in prints
    kept = 4096 * 23_040
    for n in (1, 64):
        read = 2 * timed["numbers"] / n + kept
        assert f"{n} at once, of 4,096 tokens: {read / 1e6:.0f} MB for a token, {kept / read:.0%} of it keys" in passes
    source = " ".join(find_notebook("less_to_keep").source.read_text("utf-8").split("\n# "))
    assert f"fewer than {2 * 494e12 / 3.35e12:.0f} tokens" in source
    assert price[1] > 2 and 6.5 < price[-1] < 7.5  # two cost more than two passes, 64 about seven


def test_every_map_holds_the_map_that_the_ribbons_show():
    words, maps = smollm.every_map()
    (stop,) = (stop for stop in smollm.stops("blank")["stops"] if stop["d_k"] == 64)
    layer, head = results.NAME_HEAD
    assert words == smollm.stops("blank")["words"] and maps.shape == (30, 9, 14, 14)
    assert np.abs(maps[layer - 1, head - 1] - stop["weights"]).max() < 1e-3 and np.abs(maps.sum(-1) - 1).max() < 3e-3


# And that it comes out again


# A softmax of raw scores is all but a hard choice, and last bits decide it where two keys are near: a processor
# with AMX tells a loss of 7.01 where one without tells 6.95. What is divided agrees to 1e-3 on all that were tried.
UNDIVIDED = 2e-2


def same(fresh, kept, tolerance=2e-3):
    """Whether a fresh result, rounded, is the stored one: texts and names equal, numbers to the tolerance."""
    if isinstance(fresh, dict):
        return fresh.keys() == kept.keys() and all(same(fresh[key], kept[key], tolerance) for key in fresh)
    if isinstance(fresh, list):
        return len(fresh) == len(kept) and all(same(a, b, tolerance) for a, b in zip(fresh, kept, strict=True))
    if isinstance(fresh, str) or fresh is None:
        return fresh == kept
    return abs(fresh - kept) <= tolerance * max(1, abs(kept))


@pytest.mark.slow
@needs_model
@pytest.mark.parametrize(
    "name",
    [
        *("none", "no causal mask", "no scale", "grouped heads tiled"),
        *("W_Q and W_K in the file's order", "rotated the other way", "base 10,000"),
    ],
)
def test_a_mistake_comes_out_again(speaker, name):
    fresh = round_for_json(measures.mistakes(speaker, names=[name]))
    assert same(fresh, {name: smollm.recorded("mistakes")[name]}, UNDIVIDED if name == "no scale" else 2e-3)


@pytest.mark.slow
@needs_model
def test_without_a_mask_a_prompt_read_token_by_token_gives_the_healthy_text(speaker):
    """What spoils the text is the prompt that is read in one pass, its words with a view of those after them."""
    seeing = speaker.using(
        attention=lambda query, key, value, attn_mask=None: al.attention_trace(query, key, value).output
    )
    past, written = None, []
    for token in seeing.tokens(smollm.STORY):
        x, past = seeing([token], past)
    for _ in range(8):
        written.append(int(np.argmax(seeing.unembedding @ x[-1])))
        x, past = seeing(written[-1:], past)
    text = seeing.tokenizer.decode(written)
    assert smollm.recorded("mistakes")["none"]["writes"].startswith(text) and len(text) > 20
    assert not smollm.recorded("mistakes")["no causal mask"]["writes"].startswith(text[:8])


@pytest.mark.slow
@needs_model
@pytest.mark.parametrize("d_k", [1, 64, 4096])
def test_a_stop_comes_out_again(speaker, d_k):
    at = results.STOPS.index(d_k)
    fresh = round_for_json(measures.stops_of(speaker, smollm.BLANK, watched=(" Mary", " John"), d_ks=(d_k,)))["stops"][
        0
    ]
    kept = stored("smollm_stops")["blank"]["stops"][at]
    del kept["loss"]
    within = UNDIVIDED if d_k == 1 else 2e-3
    assert same(fresh, kept, within)
    sharp = round_for_json(measures.sharpness(speaker, d_ks=(d_k,)))
    assert same(sharp, smollm.recorded("sharpness")[at : at + 1], within)


def test_what_notebook_00_says_of_a_head_that_looks_at_the_name():
    found, heads = smollm.recorded("name_arrives"), smollm.recorded("name_heads")
    assert found["blank"]["without"] == {"24.1": pytest.approx(0.87, abs=0.005), "25.5": pytest.approx(0.98, abs=0.005)}
    assert heads["heads"][0] == [24, 1] and heads["all heads"]["right"] * 80 == 78
    assert heads["without one"][0]["right"] * 80 == 77
    blank = found["blank"]
    trace = al.attention_trace(*(np.array(blank[name]) for name in ("query", "key", "value")))
    (stop,) = (stop for stop in smollm.stops("blank")["stops"] if stop["d_k"] == 64)
    assert np.abs(trace.weights[0] - stop["weights"][-1]).max() < 1e-3  # the picture is that of the map
    assert np.abs(trace.output[0] - blank["heads"][0]).max() < 1e-2
    weight, given = trace.weights[0, 1], trace.value[1, 0]  # of Mary, towards Mary: the answer of its *Try*
    assert [f"{given:.2f}", f"{weight:.3f}", f"{weight * given:.2f}", f"{trace.output[0, 0]:.1f}"] == (
        ["18.43", "0.689", "12.70", "12.9"]
    )


def test_what_notebook_06_says_of_nine_heads():
    found = smollm.recorded("name_arrives")
    blanks = found["blank"], found["blank exchanged"]
    assert found["cosine"] == pytest.approx(0.71, abs=0.005)
    kept = np.array([one["kept"] for one in blanks])  # the ninth and last: of all together
    assert kept[:, :9].min() >= 0 and round(100 * kept[:, :9].max()) == 10
    told = [[one["before"], np.sum([one["before"], *one["heads"]], axis=0)] for one in blanks]
    assert np.round(told, 1).tolist() == [[[8.9, 5.9], [54.7, 5.8]], [[7.3, 5.4], [8.7, 29.3]]]
    assert [np.hypot(*np.transpose(one["heads"])).argmax() for one in blanks] == [3, 3]  # the longest arrow in both
    held = [np.round(end - one["heads"][3], 1).tolist() for (_, end), one in zip(told, blanks, strict=True)]
    assert held == [[55, 27.6], [36.7, 32.5]]
    right = [one["names"][k][i] for i, one in enumerate(blanks) for k in ("1", "4")]
    assert np.round(right, 2).tolist() == [0.87, 0.87, 0.81, 0.84]
    nats = np.array([one["nats"] for one in found["sentences"]])  # (80, all or without 1 or 4, right or wrong name)
    times = np.exp(nats[:, 0, 1:] - nats[:, 1:, 1])  # as likely as with all heads the wrong name is without head 1, 4
    assert np.round(times[:2, 1]).tolist() == [20, 43] and (times[:2, 0] < 1).all()
    assert np.round([times[:, 1].min(), np.median(times[:, 1]), times[:, 1].max()], 1).tolist() == [1.8, 7.8, 43.4]
    assert np.round([times[:, 0].min(), times[:, 0].max()], 1).tolist() == [0.3, 1.5]
    assert (nats[..., 0] < nats[..., 1]).sum(axis=0).tolist() == [78, 77, 62]  # of 80 the right name leads
    away, parts, giver = (np.array([one[k] for one in found["sentences"]]) for k in ("away", "parts", "giver"))
    assert (away.argmax(1) == 3).all() and away[:, 3].min() > 5 and (parts.argmax(1) == 3).sum() == 78
    assert (giver.argmax(1) == 3).all()


def test_the_picture_of_nine_heads_has_the_weights_of_every_map():
    _, maps = smollm.every_map()
    for one in smollm.nine_heads()["sentences"][:1]:
        assert np.abs(maps[results.NAME_HEAD[0] - 1, :, -1] - one["weights"]).max() < 2e-3
    assert [one["name"] for one in smollm.nine_heads()["sentences"]] == ["John gave a drink to", "Mary gave a drink to"]


@pytest.mark.slow
@needs_model
def test_the_name_arrives_again_and_also_where_it_is_the_fourth_word(speaker):
    assert same(round_for_json(measures.name_arrives(speaker)), smollm.recorded("name_arrives"))
    text = "When Mary and John went to the store, Mary gave a drink to"
    assert speaker.maps(text, [results.NAME_HEAD])[results.NAME_HEAD][-1, 3] == pytest.approx(0.66, abs=0.005)
    layer = speaker.maps(smollm.BLANK, [measures.AGAINST])[measures.AGAINST]
    assert layer[-1, 1] == pytest.approx(0.81, abs=0.005)


@pytest.mark.slow
@needs_model
def test_prompts_come_out_again_and_new_ones_are_judged(speaker, monkeypatch):
    assert same(round_for_json(measures.parked_prompts(speaker)), smollm.recorded("parked_prompts"))
    for share in (0.05, 0.2):  # from where on a vector counts as long decides little
        monkeypatch.setattr(results, "LONG", share)
        for prompt in smollm.TRIED[3:6]:  # a second place to park; nothing but such places; vectors of 0.06
            fresh, kept = smollm.parking(prompt, speaker), smollm.parking(prompt)
            assert np.mean(fresh["parked"]) == pytest.approx(np.mean(kept["parked"]), abs=0.05)
    words = ["silver", "window", "purple", "engine", "carpet", "winter", "lemon", "doctor"]
    assert check.waking_prompt(smollm.parking(" ".join(words * 4), speaker)).passed
    assert check.waking_prompt(smollm.parking(" ".join(words), speaker)).mistake == "nothing_twice"
    with pytest.raises(ValueError, match=r"prompt must have at most 200 tokens, got 209\. Fix: a shorter text\."):
        smollm.parking(smollm.TEXTS["alice"] + " a", speaker)


@pytest.mark.slow
@needs_model
def test_drafts_come_out_again_and_leave_texts_as_they_are(speaker):
    names = "counting", "a copy", "JSON"
    assert same(
        round_for_json(measures.guesses(speaker, names=names)),
        {name: smollm.recorded("guesses")[name] for name in names},
    )
    for prompt, length in ((smollm.TEXTS["code"], 2), ("Row, row, row your boat, gently down the", 15)):
        assert smollm.speculate(speaker, prompt, 32, length)[0] == speaker.write(prompt, 32)
    assert 3 * " de la maison" in smollm.speculate(speaker, smollm.GUESSED["French"], 24)[0]
    fresh = smollm.reading(speaker, counts=(1, 64), rounds=2)  # no times: they are noise
    assert np.shape(fresh["seconds"]) == (2, 2) and fresh["numbers"] == smollm.reading()["numbers"]


def test_by_parts_no_pair_meets_a_new_angle_at_a_gap_of_30_000():
    """Lesson todays_head, section 5: a pair of one turn or more has met all angles; another base has new ones."""
    omega, far = rotary.frequencies(64, 100_000.0), 30_000 + 2 * measures.LENGTH
    base, unfinished = rotary.frequencies(64, 100_000.0 * 4 ** (64 / 62)), 8192 * omega < 2 * np.pi
    assert (far * measures.slow_by_parts(omega, 4.0, 8192) < 8192 * omega)[unfinished].all()
    assert (24_000 * base > 8192 * omega)[unfinished].any()
    assert ((12_000 + 2 * measures.LENGTH) * base < 8192 * omega)[unfinished].all()


@pytest.mark.slow
@needs_model
def test_how_many_of_six_other_texts_are_found_far_away(speaker):
    """Lesson todays_head, section 5: nothing of it is stored."""
    n, d_k = measures.LENGTH, measures.D_K
    omega = rotary.frequencies(d_k, speaker.base)
    base, parts = measures.other_base(speaker, 4), measures.slow_by_parts(omega, 4.0, 8192)
    texts = [smollm.TEXTS["alice"], *(smollm.MORE[name] for name in ("French", "Italian, a baker", "SQL"))]
    twice = [*(measures.repeat_tokens(speaker, draw) for draw in (2, 3)), *(2 * speaker.tokens(x)[:n] for x in texts)]

    def losses(gap, rate=omega, of=twice):
        other = measures.far(speaker, gap, rate)
        return np.array([speaker.surprise(other(x)[0][n:-1], x[n + 1 :]).mean() for x in of])

    most = losses(0) + 1.6
    assert [(losses(gap) < most).sum() for gap in (2000, 6000, 8000)] == [5, 3, 0]
    assert (losses(2000) < losses(0)).sum() == 3
    for rate, found in ((base, 4), (parts, 5)):
        assert [(losses(gap, rate) < most).sum() for gap in (12_000, 30_000)] == [found, 0]
    assert (losses(12_000, base) < most + 0.4).sum() == 5  # "with 2"
    assert [(losses(gap, parts) < most).sum() for gap in (24_000, 28_000)] == [3, 0]
    assert (losses(24_000, base) < most).sum() == 0
    alice, french = twice[2][:n], twice[3][:n]
    more = losses(8000, of=[french + alice, alice + french]) - losses(0, of=[french + alice, alice + french])
    assert more == pytest.approx([0, 1.8], abs=0.1)


@pytest.mark.slow
@needs_model
def test_a_copy_far_away_is_lost_with_the_angles_of_the_slow_pairs(speaker):
    """Lesson todays_head, section 5: fast pairs at one gap, slow ones at another, on ten texts."""
    n, d_k = measures.LENGTH, measures.D_K
    omega = rotary.frequencies(d_k, speaker.base)
    fast = 8192 * omega >= 32 * 2 * np.pi  # those that `slow_by_parts` keeps
    assert fast.sum() == 11
    texts = [smollm.TEXTS["alice"], *(smollm.MORE[name] for name in ("French", "Italian, a baker", "SQL"))]
    other = [*(measures.repeat_tokens(speaker, draw) for draw in (2, 3)), *(2 * speaker.tokens(x)[:n] for x in texts)]

    def losses(of_fast, of_slow):
        def rope(x, positions, base):
            later = np.where(fast, of_fast, of_slow) * (np.arange(len(positions)) >= n)[:, None]
            pairs = (x[..., : d_k // 2] + 1j * x[..., d_k // 2 :]) * np.exp(1j * omega * (positions[:, None] + later))
            return np.concatenate([pairs.real, pairs.imag], axis=-1).astype(x.dtype)

        crossed = speaker.using(rope=rope)
        return np.array([measures.of_the_second(crossed, x) for x in [*measures.copied_far(speaker), *other]])

    near, far = losses(6000, 6000), losses(8000, 8000)
    slow_near, slow_far = losses(8000, 6000), losses(6000, 8000)
    assert [round(loss[:4].mean(), 2) for loss in (slow_near, slow_far)] == [2.03, 8.77]
    assert (abs(slow_near - near) < abs(slow_near - far)).all() and (abs(slow_far - far) < abs(slow_far - near)).all()


@pytest.mark.slow
@needs_model
def test_the_fastest_pair_slowed_alone_is_enough_to_lose_the_copy(speaker):
    """Lesson todays_head, section 5, without a gap; the control are the next pair, and the slower half."""
    n, omega = measures.LENGTH, rotary.frequencies(measures.D_K, speaker.base)
    texts = [2 * speaker.tokens(smollm.TEXTS[name])[:n] for name in ("prose", "code")]
    texts += [measures.repeat_tokens(speaker, draw) for draw in (0, 1)]

    def loss(*slow):
        other = measures.far(speaker, 0, np.where(np.isin(np.arange(32), slow), omega / 4, omega))
        return np.mean([speaker.surprise(other(x)[0][n:-1], x[n + 1 :]).mean() for x in texts])

    assert [round(loss(*slow), 1) for slow in ((), (0,), (1,), range(16, 32))] == [1.7, 6.3, 2.4, 1.8]


@pytest.mark.slow
@needs_model
def test_on_other_texts_too_the_first_token_is_a_place_and_a_value(speaker, monkeypatch):
    """Lesson it_speaks: of what it brings to a window, 28 to 86 per cent are the place; these texts are not stored."""
    monkeypatch.setattr(measures.texts, "TEXTS", smollm.MORE)
    names = ["Italian, a market", "Italian, a baker", "French", "SQL"]
    found = [row for rows in measures.windows_apart(speaker, (8, 32), names).values() for row in rows]
    place = [(row["nothing"] - row["silent"]) / (row["nothing"] - row["first"]) for row in found]
    assert (min(place), max(place)) == pytest.approx((0.40, 0.86), abs=0.02)
    assert max(row["nothing"] - row[other] for row in found for other in ("wider", "second")) < 0.75


@needs_model
def test_other_measures_come_out_again(speaker):
    fresh = round_for_json(measures.reach(speaker, gaps=(6000,), factors=(4,)))
    kept = smollm.recorded("reach")
    assert all(same(loss, kept[name][str(gap)]) for name, of in fresh.items() for gap, loss in of.items())
    assert same(round_for_json(measures.sinks(speaker)), smollm.recorded("sinks"))
    assert same(round_for_json(measures.warmer(speaker)), smollm.recorded("warmer"))
    assert same(round_for_json(measures.future_in_sight(speaker)), smollm.recorded("future_in_sight"))
    assert same(round_for_json(measures.sayings(speaker)), smollm.recorded("sayings"))
    assert np.abs(smollm.every_map(speaker)[1] - smollm.every_map()[1]).max() < 2e-3
    fresh = measures.chunks(speaker, sizes=(50,))
    assert fresh["50"] < 3e-4 and round_for_json(fresh)["spread"] == smollm.recorded("chunks")["spread"]
    told = measures.through_tiles(speaker, block=5)
    assert told["writes"] == smollm.recorded("through_tiles")["writes"] == smollm.recorded("mistakes")["none"]["writes"]
    assert told["logits"] < 3e-4
    assert same(
        round_for_json(measures.blanks(speaker, d_ks=(64,))),
        [stop for stop in smollm.recorded("blanks") if stop["d_k"] == 64],
    )
    fresh = round_for_json(measures.windows(speaker, widths=(8,), firsts=(0, 1)))
    assert same(fresh, [*smollm.recorded("windows")[:2], smollm.recorded("windows")[-1]])
    fresh = round_for_json(measures.windows_apart(speaker, widths=(8,), names=["alice"]))
    assert same(fresh, {"alice": smollm.recorded("windows_apart")["alice"][:1]})
    assert same(round_for_json(measures.second_copy(speaker, range(2))), smollm.recorded("copying")["losses"][:2], 5e-3)
    row = measures.judge_reading(speaker, measures.in_blocks(), copied=["prose"], lists=range(1))
    (stored,) = (row for row in smollm.recorded("fewer_read") if row["name"] == "4 blocks of 8")
    fresh, wanted = ([*x["shares"], x["alice"], x["again"]["prose"]] for x in (row, stored))
    assert same(round_for_json(fresh), wanted, 5e-3)


GAPS = r"""
import json, sys
import numpy as np
import attnlib as al
from attncourse import smollm
from attncourse.smollm import results
speaker, said = smollm.load(bar=iter), json.load(sys.stdin)

def gaps(name, model, prompt, text):
    "The tokens of a stored text, and how far the logit of each lies above the best of the others as it is written."
    new, past, tokens, found = model.tokens(prompt), None, [], []
    if name in said and name not in smollm.FAULTS:  # known, and causal: it is read at once
        tokens = said[name][0]
        logits = model([*new, *tokens[:-1]])[0][len(new) - 1 :] @ model.unembedding.T
        chosen = logits[range(len(tokens)), tokens]
        logits[range(len(tokens)), tokens] = -np.inf
        return tokens, (chosen - logits.max(-1)).tolist()
    while model.tokenizer.decode(tokens) != text and len(tokens) < 40:
        x, past = model.prefill(new, past)
        logits = model.unembedding @ x
        new = [said[name][0][len(tokens)] if name in said else int(np.argmax(logits))]
        chosen, logits[new] = float(logits[new[0]]), -np.inf
        found.append(chosen - float(logits.max()))
        tokens += new
    return tokens, found

found = {}
for name, changes in [("none", {}), *smollm.FAULTS.items()]:
    found[name] = gaps(name, speaker.using(**changes), smollm.STORY, smollm.recorded("mistakes")[name]["writes"])
for prompt in results.PROMPTS:
    for stop in smollm.stops(prompt)["stops"]:
        name, model = f"{prompt} {stop['d_k']}", results.at_d_k(speaker, stop["d_k"])
        found[name] = gaps(name, model, results.PROMPTS[prompt], stop["text"])
json.dump(found, sys.stdout)
"""


def gaps(said, **environment):
    everything, command = {**os.environ, **environment}, [sys.executable, "-c", GAPS]
    done = subprocess.run(
        command, env=everything, input=json.dumps(said), capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@needs_model
def test_stored_texts_end_before_a_token_that_another_processor_might_choose_otherwise():
    """OpenBLAS adds in another order with the kernels of an older processor: gaps of logits then drift.

    Without division by sqrt(d_k) they drift by up to 0.1 in a dozen tokens, with it by 0.00001.

    Every gap in a stored text is at least three times its drift; with the model as it is, a hundred times.
    """
    here = gaps({})
    there, ratios = gaps(here, OPENBLAS_CORETYPE="Nehalem"), {}
    assert len(here) == 1 + len(smollm.FAULTS) + 3 * len(results.STOPS)
    for name, (tokens, found) in here.items():
        assert 1 <= len(tokens) <= 32 and there[name][0] == tokens, name
        a, b = np.array(found), np.array(there[name][1])
        ratios[name] = float((b / np.maximum(np.abs(a - b), 1e-6)).min())
    assert min(ratios.values()) > 3, ratios
    assert min(ratios[name] for name in ("none", "writing 64", "blank 64", "blank exchanged 64")) > 100

"""The writer's language is judged exactly, its decoder is torch's, and what is stored is what the code gives."""

import functools
import itertools
import math
import random
import re

import numpy as np
import pytest
import torch

from attncourse import writer
from attncourse.engine.compare import RIGHT
from attncourse.engine.run import Unfit
from attncourse.training import decoder
from attncourse.writer import grammar
from attncourse.writer.grammar import judge_beginning
from attnlib.core import softmax
from attnlib.heads import KVCache
from tools.series import find_notebook

RECORDED = writer.recorded()
MODELS = {name: writer.stored(name) for name in writer.STORED}


MOST = 100_000


@functools.cache
def all_drawn():
    rng = random.Random(7)
    return [grammar.sentence(rng) for _ in range(MOST)]


def drawn(size):
    """Return the first of the sentences that all tests share: to draw them takes seconds."""
    return all_drawn()[:size]


def other_number(word):
    for pair in (grammar.NOUNS, grammar.TRANSITIVE, grammar.INTRANSITIVE):
        for here, there in (pair, pair[::-1]):
            if word in here:
                return there[here.index(word)]
    return None


def test_every_sentence_is_right_and_no_other_number_of_its_main_verb():
    for words, _ in drawn(5000):
        assert grammar.grammatical(words), words
        end = len(words) - 2 if words[-2] in grammar.CLASSES["b"] else len(words) - 1
        verb = max(i for i in range(end) if grammar.CLASS[words[i]] in "tTiI")
        assert not grammar.grammatical([*words[:verb], other_number(words[verb]), *words[verb + 1 :]]), words


@pytest.mark.parametrize(
    "words", ["", "the cat sleeps", "cat sleeps .", "the cat sleeps . .", "the cat the dog sees .", "the zebra runs ."]
)
def test_what_is_no_sentence(words):
    assert not grammar.grammatical(words.split())


def test_forms_are_all_that_is_right():
    forms = {"".join(grammar.CLASS[word] for word in words) for words, _ in drawn(50_000)}
    assert forms <= set(grammar.forms()) and len(set(grammar.forms())) == 520
    assert all(grammar.grammatical([grammar.CLASSES[kind][0] for kind in form]) for form in grammar.forms())


def test_a_word_of_another_language_is_named():
    with pytest.raises(Unfit, match="zebra, green"):
        judge_beginning("the zebra that the green dog sees")


def test_surprise_is_minus_the_logarithm_of_how_often_a_sentence_comes():
    """Counted among many draws, for the most frequent sentences; and shorter ones are less surprising."""
    sentences = drawn(MOST)
    told = {" ".join(words): surprise for words, surprise in sentences}
    counts = {}
    for words, _ in sentences:
        counts[" ".join(words)] = counts.get(" ".join(words), 0) + 1
    for text in sorted(counts, key=counts.get)[-20:]:
        assert abs(math.log(len(sentences) / counts[text]) - told[text]) < 0.2, text


def test_the_longest_sentence_fits_the_places():
    assert max(len(words) for words, _ in drawn(20_000)) == 14 < writer.LENGTH


def test_beginnings_are_all_of_their_form_and_their_verb_is_due():
    tokens, plural = writer.beginnings()
    assert len({tuple(row) for row in tokens.tolist()}) == len(tokens) == 288 and plural.sum() == 144
    for row, number in zip(tokens.tolist(), plural.tolist(), strict=True):
        words = [writer.WORDS[i] for i in row[1:]]
        assert words[writer.THAT - 1] == "that" and words[writer.SUBJECT - 1] in grammar.NOUNS[number]
        assert words[writer.OTHER - 1] in grammar.NOUNS[not number]
        assert grammar.grammatical([*words, grammar.INTRANSITIVE[number][0], "."])


def in_torch(name):
    """Return a twin in torch, filled by the names that torch gives."""
    weights, twin = MODELS[name].weights(), decoder.Writer(**writer.VARIANTS[name])
    state = {"token.weight": "0 token", "place": "0 place", "read.weight": "0 W_read", "read.bias": "0 b_read"}
    for i in (0, 1):
        state |= {f"attention.{i}.{W}.weight": f"{1 + i} {W}" for W in ("W_Q", "W_K", "W_V", "W_O")}
        state |= {f"network.{i}.0.weight": f"{3 + i} W_1", f"network.{i}.0.bias": f"{3 + i} b_1"}
        state |= {f"network.{i}.2.weight": f"{3 + i} W_2", f"network.{i}.2.bias": f"{3 + i} b_2"}
    arrays = {ours: torch.tensor(weights[theirs]) for ours, theirs in state.items()}
    tables = "token.weight", "place"
    twin.load_state_dict({key: x.T if x.ndim == 2 and key not in tables else x for key, x in arrays.items()})
    return twin


@torch.no_grad()
@pytest.mark.parametrize("name", writer.STORED)
def test_it_computes_what_torch_computes(name):
    twin, tokens = in_torch(name), writer.Corpus(50, seed=3).tokens
    for ours, theirs, off in ((MODELS[name], twin, 1e-4), (MODELS[name].astype(np.float64), twin.double(), 1e-5)):
        logits = ours(tokens)[0]
        assert logits.dtype == ours.token.dtype and np.abs(logits).max() > 20
        np.testing.assert_allclose(logits, theirs(torch.tensor(tokens)), atol=off, rtol=0)
    np.testing.assert_array_equal(twin.float().to_numpy()(tokens)[0], MODELS[name](tokens)[0])


def test_gelu_is_that_of_torch():
    x = np.linspace(-12, 12, 100_001)
    np.testing.assert_allclose(writer.gelu(x), torch.nn.functional.gelu(torch.tensor(x)), atol=4e-8, rtol=0)
    assert writer.gelu(x.astype(np.float32)).dtype == np.float32


def test_the_weights_are_small():
    assert set(writer.STORED) < set(writer.VARIANTS) and writer.WEIGHTS.stat().st_size < 400_000


def test_it_writes_the_same_with_caches_and_without():
    for model in (MODELS["writer"], MODELS["no positions"], MODELS["2 KV heads"]):
        ways = [writer.write(f(model), size=40, seed=3) for f in (writer.with_caches, writer.all_at_once)]
        assert ways[0] == ways[1] and len({tuple(words) for words in ways[0]}) > 20
    assert len({tuple(words) for words in writer.write(writer.all_at_once(model), size=5, temperature=0)}) == 1
    assert writer.write(writer.all_at_once(model), ["the", "cat"])[0][:2] == ["the", "cat"]


def test_a_number_is_drawn_as_often_as_its_probability_says():
    p = np.array([0.0, 0.6, 0.0, 0.3, 0.1, 0.0], dtype=np.float32)
    drawn = writer.draw(np.tile(p, (100_000, 1)), np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(drawn, minlength=6) / 100_000, p, atol=0.01)
    assert set(drawn) == {1, 3, 4}


def test_forbidden_edges_get_no_weight_and_heads_can_be_switched_off():
    model, (tokens, _) = writer.Writer(rng=0), writer.beginnings()
    maps = model(tokens, masks=writer.without_edges(2, 3))[1]
    assert (maps[1][:, :, 6, [2, 3]] == 0).all() and (maps[1][:, :, 5, [2, 3]] > 0).all() and (maps[0] > 0).any()
    off = writer.without_head(model, layer=2, head=3).attention[1].W_O
    assert (off[16:24] == 0).all() and (off[:16] != 0).any()
    assert (model.attention[1].W_O[16:24] != 0).any()


@pytest.mark.parametrize(("layers", "moves"), [(1, False), (2, True)])
def test_without_positions_a_second_layer_knows_the_order(layers, moves):
    fresh, tokens = writer.Writer(layers, positions=False, rng=0), writer.tokens_of("the cats that")
    ours, exchanged = (fresh(row)[0][0, -1] for row in (tokens, tokens[:, [0, 2, 1, 3]]))
    assert (np.abs(ours - exchanged).max() > 0.1) == moves


def test_a_window_counts_the_token_itself():
    for width, n in itertools.product((1, 3, 9), (1, 5)):
        rows = writer.window(width, n=n).sum(-1).tolist()
        assert rows == [min(i + 1, width) for i in range(n)]
    assert writer.window(2, keep_first=True, n=4).astype(int).tolist()[-1] == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("the cats that the old dog sees", RIGHT),
        ("the old child that the young kings hear", RIGHT),
        ("the cats that the dog sees", "subject_in_reach"),
        ("the cats near the old dog", "subject_in_reach"),
        ("the cats that see the old dog", "told_by_another_verb"),
        ("the cats that the old dog", "verb_not_due"),
        ("the cats sleep", "verb_not_due"),
        ("the cats that the small old dog sees", "no_sentence"),
        ("the cats that the old dog sees the king", "no_sentence"),
        ("the cats that the dog sees sleeps", "no_sentence"),
        ("the cats that the old dog see", "verb_after_that_unfit"),
        ("the cats that the old dog sleeps", "verb_after_that_unfit"),
        ("the cats that sees the old dog", "verb_after_that_unfit"),
    ],
)
def test_out_of_reach_is_out_of_reach_of_any_writer(words, fault):
    """With two layers and a window of 3 the last place is the same for both numbers exactly where the check says so."""
    assert judge_beginning(words)[0] == fault
    if fault in ("verb_not_due", "no_sentence", "verb_after_that_unfit"):
        return
    model, subject = writer.Writer(rng=0), next(word for word in words.split() if grammar.CLASS[word] in "nN")
    other = words.replace(subject, other_number(subject), 1)
    if fault == "told_by_another_verb":
        other = other.replace(" see ", " sees ")
    ends = []
    for text in (words, other):
        tokens = writer.tokens_of(text)
        ends.append(model(tokens, masks=[writer.window(3, n=tokens.shape[1])] * 2)[0][0, -1])
    assert np.array_equal(*ends) == (fault == RIGHT)


# --- what is stored


def all_of(name, what):
    return [found[name][what] for found in RECORDED]


def test_what_the_notebook_says_of_five_seeds():
    assert len(RECORDED) == len(writer.SEEDS) == 5
    lowest = writer.Corpus(2000, seed=1).lowest_loss
    assert all(lowest < loss < lowest + 0.02 for loss in all_of("writer", "loss"))
    for name, least in {"writer": 0.99, "2 KV heads": 0.99, "1 KV head": 0.99, "no positions": 0.985}.items():
        assert min(all_of(name, "grammatical")) >= least and min(all_of(name, "agreement")) == 1
    cut = [found["without subject"] for found in RECORDED]
    assert (round(1 - max(cut), 2), round(1 - min(cut), 2)) == (0.19, 0.62)  # by so much it falls
    assert cut[0] > 0.8 and RECORDED[0]["without both"] < 0.41
    assert all(found["without other"] == 1 for found in RECORDED)  # the control


def test_what_the_notebook_says_of_the_writer_s_heads():
    model, rows = MODELS["writer"], np.array(RECORDED[0]["rows"])
    start = rows[1, ..., 0]  # plural subjects; (layers, h): three of eight heads need the start
    assert (start > 0.9).sum() == 3 and start[0, [0, 2]].min() > 0.9 and start[1, 1] > 0.9
    off = [writer.agreement(writer.without_head(model, layer=2, head=head)) for head in (1, 2, 3, 4)]
    assert off[2] < 0.7 and min(off[0], off[1], off[3]) > 0.95
    tokens, _ = writer.beginnings()
    at_that = model(tokens)[1][0][:, 3, writer.THAT].mean(0)  # layer 1, head 4: it has looked at the subject
    assert at_that.argmax() == writer.SUBJECT
    # the verb of the noun after "that" is due: without head 1 of layer 2 it is always singular
    p = softmax(writer.without_head(model, layer=2, head=1)(tokens[:, :6])[0][:, -1])
    verbs = [[writer.NUMBER[verb] for verb in grammar.TRANSITIVE[n]] for n in (False, True)]
    assert (p[:, verbs[False]].sum(-1) > p[:, verbs[True]].sum(-1)).all()


def test_heads_of_layer_2_look_at_the_subject_in_two_ways():
    on_subject = np.array([found["rows"] for found in RECORDED])[:, :, 1, :, writer.SUBJECT]  # (seeds, 2, h)
    assert (on_subject.max(1) > 0.9).any(-1).all()  # every seed has one, for one number at least
    always = (on_subject.min(1) > 0.9).any(-1)
    assert always.tolist() == [True, True, False, False, True]
    for seed in (2, 3):
        singular, plural = on_subject[seed][:, on_subject[seed].max(0).argmax()]
        assert singular > 0.9 and plural < 0.05


def test_the_first_token_helps_wherever_a_window_loses_something():
    for found in RECORDED:
        for width in writer.WIDTHS:
            bare, kept = (found[f"window {width}{also}"]["grammatical"] for also in ("", " and the first"))
            assert kept >= bare - 0.01
        assert found["window 6 and the first"]["grammatical"] > found["window 6"]["grammatical"]
    shares = {width: all_of(f"window {width} and the first", "grammatical") for width in (4, 6)}
    assert [round(x, 2) for x in all_of("window 6", "grammatical")] == [0.94, 0.96, 0.67, 0.92, 0.97]
    assert min(shares[6]) > 0.975 and (round(min(shares[4]), 2), round(max(shares[4]), 2)) == (0.68, 0.79)
    # not for one key more: 7 keys with the start do better than 8 without, by so many sentences of 500
    six, eight = (all_of(name, "grammatical") for name in ("window 6 and the first", "window 8"))
    assert sorted(round(500 * (a - b)) for a, b in zip(six, eight, strict=True)) == [4, 4, 5, 10, 69]


@pytest.mark.parametrize("name", writer.STORED)
def test_the_stored_weights_give_the_stored_results(name):
    fresh, stored = writer.measured(MODELS[name]), RECORDED[0][name]
    for what in stored:
        assert fresh[what] == pytest.approx(stored[what], abs=0.004), what  # two sentences of 500


@pytest.mark.slow
def test_the_stored_weights_are_those_of_the_code():
    """Another processor makes nearly the same weights of the same seed, and what is said of five seeds holds of them.

    Seed 0 on two processors: correlated by 0.9997 and 0.9999, with 0.996 and 0.998 of the sentences grammatical. The
    five stored seeds have 0.994 to 0.998.
    """
    fresh = decoder.trained(writer.Corpus(20_000, seed=0), seed=0)
    ours, stored = (np.concatenate([x.ravel() for x in m.weights().values()]) for m in (fresh, MODELS["writer"]))
    assert np.corrcoef(ours, stored)[0, 1] > 0.9
    found, lowest = writer.measured(fresh), writer.Corpus(2000, seed=1).lowest_loss
    assert lowest < found["loss"] < lowest + 0.02
    assert found["grammatical"] > 0.98 and found["agreement"] > 0.98


def test_the_notebook_lists_every_word_of_the_language():
    source = find_notebook("one_token_at_a_time").source.read_text("utf-8")
    listed = source.split("All words, and the rules")[1].split("# A sentence is")[0]
    words = " ".join(re.findall(r"\*(.+?)\*", listed)).split()
    assert sorted([*words, "."]) == sorted(grammar.WORDS) and len(grammar.WORDS) == 39


# --- the answers to "Try it"


def test_with_seed_3_a_plural_subject_is_found_by_way_of_that():
    rows = np.array(RECORDED[3]["rows"])[1, 1]  # (h, 7): plural, layer 2
    assert rows[1].argmax() == writer.THAT
    assert (
        np.array(RECORDED[3]["rows"])[0, 1, :, writer.SUBJECT].argmax() == 1
    )  # in the singular it looks at the subject


def test_about_half_survives_two_averaged_heads_of_keys_and_values():
    weights = {
        name: x.reshape(32, 2, 2, 8).mean(2).reshape(32, 16) if "W_K" in name or "W_V" in name else x
        for name, x in MODELS["writer"].weights().items()
    }
    fewer = writer.Writer(num_kv_heads=2).load(weights)
    assert 0.42 < writer.share_grammatical(writer.write(writer.with_caches(fewer), size=500)) < 0.52


@pytest.mark.slow
def test_in_seed_3_where_a_head_looks_tells_the_number_of_the_noun_after_that():
    """As in seed 0, head 1 of layer 2 looks at one position from a singular noun, and from a plural at "that"."""
    model = decoder.trained(writer.Corpus(20_000, seed=0), seed=3)
    tokens, plural_subject = writer.beginnings()  # the noun after "that" has the other number
    rows = model(tokens[:, :6])[1][1][:, 0, -1]
    assert rows[plural_subject, 0].mean() > 0.8 and rows[~plural_subject, writer.THAT].mean() > 0.8
    verbs = [[writer.NUMBER[verb] for verb in grammar.TRANSITIVE[n]] for n in (False, True)]
    for at, plural in ((0, False), (writer.THAT, True)):

        class OneValue(KVCache):
            def append(self, key, value, at=at):
                keys, values = super().append(key, value)
                values = values.copy()
                values[:, 0] = values[:, 0, [at]]
                return keys, values

        p = softmax(model(tokens[:, :6], [KVCache(), OneValue()])[0][:, -1])
        assert ((p[:, verbs[True]].sum(-1) > p[:, verbs[False]].sum(-1)) == plural).mean() > 0.9

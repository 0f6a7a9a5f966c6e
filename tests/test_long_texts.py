"""Lesson long_texts: attention in tiles against torch's own, and what its text says beside the tables."""

import ast
import re
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lessons import long_texts
from views import TOKENS, parsed

import attnlib as al
from attncourse import check, smollm
from attncourse.engine.exercise import memory_grows_with_map
from attncourse.lessons.long_texts import tiled
from attncourse.lessons.long_texts.exercises import on_long_texts
from attnlib import live, svg
from tools import measures
from tools.build_notebooks import code_between

DEFINED = {"dots", "needle", "found", "tile", "forward", "backward", "counted", "with_the_map", "part"}


@pytest.fixture(scope="module")
def notebook():
    """What lesson long_texts defines, without what it prints and draws."""
    rng = np.random.default_rng(5)  # as in the notebook
    names = {"np": np, "al": al, "queries": rng.normal(size=(64, 256)), "keys": rng.normal(size=(16_384, 256))}
    names["shared"] = rng.normal(size=(512, 256))
    for cell in code_between("long_texts", "# ", "## Try it"):
        for node in ast.parse(cell).body:
            if getattr(node, "name", "") in DEFINED:
                exec(ast.unparse(node), names)
    assert names.keys() >= DEFINED
    return names


def torchs(arrays, g_o, **options):
    """Return the output of torch's fused path, and its gradients of query, key and value."""
    q, k, v = (torch.tensor(x, requires_grad=True) for x in arrays)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        output = torch.nn.functional.scaled_dot_product_attention(
            q[None, None], k[None, None], v[None, None], **options
        )
    output.backward(torch.tensor(g_o)[None, None])
    return output[0, 0].detach().numpy(), [x.grad.numpy() for x in (q, k, v)]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 70), st.integers(1, 9), st.integers(1, 80), st.floats(0.1, 30), st.integers(0, 2**32 - 1))
def test_output_and_gradients_are_those_of_torchs_fused_path(notebook, n, d_k, b, size, seed):
    rng = np.random.default_rng(seed)
    arrays, g_o = rng.normal(size=(3, n, d_k)) * [[[size]], [[1]], [[1]]], rng.normal(size=(n, d_k))
    output, gradients = torchs(arrays, g_o, is_causal=True)
    o, L = notebook["forward"](*arrays, b)
    assert np.abs(o - output).max() < 1e-10
    for ours, theirs in zip(notebook["backward"](*arrays, o, L, g_o, b), gradients, strict=True):
        assert np.abs(ours - theirs).max() < 1e-10 * max(1, np.abs(theirs).max())


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 50), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_any_mask_in_tiles_is_attention(n_q, n_k, block, allowed, seed):
    rng = np.random.default_rng(seed)
    mask, q, k, v = rng.random((n_q, n_k)) < allowed, *(rng.normal(size=(2, n, 4)) for n in (n_q, n_k, n_k))
    assert np.abs(tiled(q, k, v, mask, block) - al.scaled_dot_product_attention(q, k, v, mask)).max() < 1e-12
    assert np.abs(tiled(q, k, v, None, block) - al.scaled_dot_product_attention(q, k, v)).max() < 1e-12


def test_memory_of_tiles_is_constant_and_the_maps_is_not():
    of = partial(partial, on_long_texts)
    assert not memory_grows_with_map(of(tiled)) and not memory_grows_with_map(of(long_texts.keys_outside))
    assert memory_grows_with_map(of(long_texts.whole_map)) and memory_grows_with_map(of(long_texts.keys_only))
    verdict = check.tiled(long_texts.whole_map)
    assert verdict.state == "wrong" and "All results are right. But" in verdict.message


def test_a_copy_of_all_tiles_is_no_online_softmax():
    def copies(tiles):
        scores, values = zip(*((s + 0, v + 0) for s, v in tiles), strict=True)
        return al.softmax(np.concatenate(scores, -1)) @ np.concatenate(values)

    verdict = check.online_softmax(copies)
    assert verdict.mistake == "tiles_kept" and "no copy of a tile" in verdict.message, verdict


def test_what_fails_on_a_long_text_alone_is_wrong_and_not_an_error_of_the_check():
    def short_only(query, key, value, attn_mask=None, block=64):
        if len(query) > 100:
            raise ValueError("too long")
        return long_texts.keys_outside(query, key, value, attn_mask, block)

    verdict = check.tiled(short_only)
    assert verdict.state == "wrong" and "raises ValueError: too long" in verdict.message, verdict


def test_no_answer_is_right_whose_memory_is_not_seen_and_none_is_said_to_be_attnlibs():
    def in_torch(query, key, value, attn_mask=None, block=64):
        mask = None if attn_mask is None else attn_mask.numpy()  # only tensors have .numpy()
        return torch.as_tensor(tiled(query.numpy(), key.numpy(), value.numpy(), mask, block))

    def one_call(query, key, value, attn_mask=None, block=64):
        tensors = (x if x is None else torch.tensor(x) for x in (query, key, value, attn_mask))
        return torch.nn.functional.scaled_dot_product_attention(*tensors).numpy()

    for answer in (in_torch, one_call):
        verdict = check.tiled(answer)
        assert verdict.state == "not tried" and "All results are right. How much memory" in verdict.message, verdict
    check.tiled.__dict__.pop("expected", None)  # as in a fresh kernel, where the right results are not known yet
    verdict = check.tiled(long_texts.keys_outside)
    assert verdict.state == "right" and "attnlib" not in verdict.message, verdict


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_parts_of_any_length_are_merged(notebook, lengths, seed):
    rng, n = np.random.default_rng(seed), sum(lengths)
    q, k, v = 3 * rng.normal(size=(3, 4)), rng.normal(size=(n, 4)), rng.normal(size=(n, 2))
    ends = np.cumsum(lengths)
    parts = [notebook["part"](q, k[e - m : e], v[e - m : e]) for m, e in zip(lengths, ends, strict=True)]
    outputs, lse = np.stack([o for o, _ in parts]), np.stack([L[:, 0] for _, L in parts])
    for answer in long_texts.RIGHT["merge"]:
        merged = answer(outputs, lse, np.array(lengths))
        assert np.allclose(merged, al.scaled_dot_product_attention(q, k, v), atol=1e-12)


def test_a_sink_is_one_more_worker():
    scores, values = np.random.default_rng(0).normal(size=(3, 5)), np.random.default_rng(1).normal(size=(5, 2))
    beside = al.softmax(np.concatenate([scores, np.full((3, 1), 0.7)], axis=-1))[:, :-1] @ values
    outputs = np.stack([al.softmax(scores) @ values, np.zeros((3, 2))])
    lse = np.stack([np.logaddexp.reduce(scores, axis=-1), np.full(3, 0.7)])
    for answer in long_texts.RIGHT["merge"]:
        assert np.allclose(answer(outputs, lse, np.array([5, 0])), beside, atol=1e-12)


def test_tiles_come_once():
    verdict = check.online_softmax(long_texts.twice_through)
    assert verdict.state == "wrong" and "a second time" in verdict.message and "Fix: one loop" in verdict.message


# --- what is counted, and the picture


@pytest.mark.parametrize("n, d_k, b", [(8, 4, 2), (12, 3, 4), (64, 8, 16)])
def test_numbers_moved_are_what_a_walk_over_the_tiles_moves(notebook, n, d_k, b):
    visited = long_texts.by_cells(n, b, b)
    moved = 2 * n * d_k + visited.sum() * 2 * b * d_k  # queries, outputs; keys and values of every tile
    held, counted = notebook["counted"](n, d_k, d_k, b)
    assert counted == moved == (n + visited.sum() * b) * 2 * d_k
    assert held == 4 * b * d_k + 2 * b + b * b  # q, k, v, o; m and z; scores


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_the_picture_ends_at_attention_and_counts_as_the_notebook(notebook, size):
    view = live.tiles(*TOKENS, size=size)
    last = view.sliders["tile"].options[-1][1]
    view.sliders["tile"].value = last
    assert np.allclose(view.shown["output"], al.scaled_dot_product_attention(*TOKENS, is_causal=True))
    held, moved = notebook["counted"](8, 4, 2, size)
    assert f"Held now: {held} numbers. The map: 64." in view.picture.value
    assert f"Moved: {moved} of {moved}. With the map: 352." in view.picture.value
    assert last == long_texts.by_cells(8, size, size).sum()


def test_the_picture_opens_where_one_row_shrinks_and_one_stays():
    view = live.tiles(*TOKENS)
    assert "Query 4: 1 beats 0. Old sums shrink:" in view.picture.value
    view.choose(row=1)
    assert "does not beat 3" in view.picture.value and "The old sums stay" in view.picture.value


def test_the_row_that_is_told_is_one_of_the_tile():
    view = live.tiles(*TOKENS)
    for tile in range(1, 11):
        for row in (0, 1):
            picture = parsed(view.draw(tile=tile, row=row)[0])
            told = next(t.text for half in picture for t in half.iter("text") if (t.text or "").startswith("Query "))
            rows = [int(t.text[1:]) for t in picture[0].iter("text") if t.get("style") and t.text[:1] == "q"]
            assert re.match(r"Query (\d)", told)[1] == str(rows[row]) and len(rows) == 2


def test_both_halves_name_their_rows_and_scores_keep_off_the_frame():
    scores = np.array([[1.0, -2.0], [-3.0, -1.5]])
    view = live.tiles(np.eye(2), scores.T * 2**0.5, np.ones((2, 2)))
    halves = parsed(view.picture.value)
    for half in halves:
        assert [t.text for t in half.iter("text") if re.fullmatch(r"q\d", t.text or "")] == ["q0", "q1"]
    frame = next(rect for rect in halves[0].iter("rect") if "--paper" in rect.get("stroke", ""))
    left, wide, line = (float(frame.get(name)) for name in ("x", "width", "stroke-width"))
    (score,) = (text for text in halves[0].iter("text") if text.text == "-1.5")
    middle, half = float(score.get("x")), svg.width("-1.5", float(score.get("font-size"))) / 2
    assert left + line / 2 <= middle - half and middle + half <= left + wide - line / 2


# --- fewer keys


def needles_by_blocks(d_k, size, alike, seed, n=4096, read=512, own=False):
    """Return the share of needles that the cell finds, written another way, of other numbers; `own`: by that part."""
    rng = np.random.default_rng(seed)
    alone = np.sqrt(1 - alike) * rng.normal(size=(n, d_k))
    K = alone + np.sqrt(alike) * np.repeat(rng.normal(size=(n // size, d_k)), size, axis=0)
    at = rng.integers(0, n, 256)
    means = np.add.reduceat(K, np.arange(0, n, size)) / size
    best = np.argsort(-((alone if own else K)[at] @ means.T))[:, : read // size]
    return (best == at[:, None] // size).any(axis=1).mean()


@pytest.mark.parametrize("seed", [5, 6, 7])  # the first is that of the notebook
def test_a_factor_that_grows_with_the_text_keeps_the_needle_at_64_features_and_not_at_16(notebook, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    monkeypatch.setitem(notebook, "queries", rng.normal(size=(64, 256)))
    monkeypatch.setitem(notebook, "keys", rng.normal(size=(16_384, 256)))
    kept = {d: [notebook["needle"](d, n, np.log(n) / np.log(64)).mean() for n in (64, 1024, 16_384)] for d in (16, 64)}
    assert kept[64][0] < kept[64][1] < kept[64][2] and kept[64][0] > 0.9
    assert kept[16][2] < 0.6 * kept[16][0]


@pytest.mark.parametrize("alike", [0, 0.25, 0.5])
def test_other_numbers_find_as_many_needles(notebook, alike):
    for d_k, size in ((16, 16), (32, 16), (64, 16), (128, 16), (64, 64), (16, 8)):
        others = [needles_by_blocks(d_k, size, alike, seed) for seed in range(3)]
        assert abs(notebook["found"](d_k, size, alike) - np.mean(others)) < 0.1


def test_a_needle_that_is_asked_for_by_its_own_part_is_found_less_often_among_keys_that_are_alike():
    found = [np.mean([needles_by_blocks(64, 16, a, seed, own=True) for seed in range(3)]) for a in (0, 0.25, 0.5)]
    assert found == pytest.approx([0.8, 0.37, 0.25], abs=0.04)


def test_random_keys_choose_their_own_block_more_often_while_it_holds_one_key():
    draw = np.random.default_rng(0).normal
    q, means = draw(size=(4000, 64)), draw(size=(4000, 24, 64)) / 8**0.5
    for held, wanted in ((1, 0.33), (8, 0.12)):
        own = (q * draw(size=(4000, 64))).sum(-1) / held**0.5
        chosen = (np.einsum("nd,nbd->nb", q, means) > own[:, None]).sum(-1) < 3
        assert chosen.mean() == pytest.approx(wanted, abs=0.03)


def test_what_the_text_says_of_blocks_and_d_k(notebook):
    """Nine of ten from 128 on; double length needs double d_k; a lead of sqrt(d_k / size) and one block of eight."""
    found = {(d, size): notebook["found"](d, size) for d in (16, 32, 64, 128) for size in (8, 16, 64)}
    assert found[64, 16] < 0.9 < found[128, 16]
    normal = torch.distributions.Normal(0.0, 1.0)
    bar = normal.icdf(torch.tensor(7 / 8)).item()  # seven of eight blocks stay below it
    for (d_k, size), share in found.items():
        lead = np.sqrt(d_k / size)
        assert abs(share - normal.cdf(torch.tensor(lead - bar)).item()) < 0.1, (d_k, size, share)
    assert all(notebook["found"](d, size, 0.5) > 0.9 for d in (16, 64) for size in (8, 16, 64))


READS = {row["name"]: row for row in smollm.recorded("fewer_read")}
FOUR, LATEST = READS["4 blocks of 8"], READS["31 latest and the first"]


def test_one_set_for_nine_heads_finds_as_a_set_for_each():
    one, each = READS["one set for nine heads"]["again"], READS["a set for each head"]["again"]
    assert all(one[text] < each[text] + 0.1 for text in one)


def test_only_what_is_found_again_parts_blocks_from_the_latest_keys():
    (recall, weight, _), (latest, less, _) = FOUR["shares"], LATEST["shares"]
    assert abs(recall - latest) < 0.05 and abs(weight - less) < 0.05 and abs(FOUR["alice"] - LATEST["alice"]) < 0.02
    for text, nats in FOUR["again"].items():
        assert LATEST["again"][text] > nats + 1.5, text


def test_what_the_text_says_of_the_first_and_the_own_block():
    def costs(name):
        row, again = READS[f"blocks, {name}"], FOUR["again"]
        return {"alice": row["alice"] - FOUR["alice"], **{text: row["again"][text] - again[text] for text in again}}

    first = costs("first block not kept")
    assert READS["blocks, first block not kept"]["shares"][0] > FOUR["shares"][0] + 0.03  # recall
    assert first.pop("prose") < 0 and min(first.values()) > 0.1 and first["alice"] > 0.25
    assert min(costs("own block never read").values()) > 1.5
    assert min(costs("own block always read").values()) > 0.01
    assert max(map(abs, costs("mean of later keys, too").values())) < 0.2
    assert FOUR["codes"] == 0.2 and READS["a set for each head"]["codes"] == 0.85 and LATEST["codes"] == 0
    assert [round(READS[name]["shares"][2]) for name in (FOUR["name"], "blocks, a set for each head")] == [29, 41]


def test_a_model_reads_the_blocks_of_the_exercise():
    """Those of the stored rows, and of the cell that hands the model a reader's function."""
    rng, mask = np.random.default_rng(2), al.causal_mask(45)
    query, key, value = rng.normal(size=(6, 45, 64)), rng.normal(size=(2, 45, 64)), rng.normal(size=(2, 45, 5))
    read = measures.in_blocks()(query, key, None, mask)
    (cell,) = (cell for cell in code_between("long_texts", "# ", "## Try it") if "def by_blocks" in cell)
    names = {"np": np, "reads": READS, "speaker": None}
    for answer in long_texts.RIGHT["blocks"]:
        for g in range(2):
            blocks = answer(query[3 * g : 3 * g + 3], key[g], 8, 4)
            assert (read[3 * g] == np.repeat(blocks, 8, axis=-1)[:, :45]).all()
        names["choose"] = answer
        exec(cell, names)
        out = names["by_blocks"](query, key, value, mask, al.scaled_dot_product_attention)
        stored = measures.reading_keys(measures.in_blocks(), [])(query, key, value, mask, None)
        assert np.abs(out - stored).max() < 1e-12


def test_a_maximum_that_starts_at_0_fails_where_all_scores_are_below_minus_745():
    for level, fine in ((-700, True), (-760, False)):
        with np.errstate(invalid="ignore"):
            out = long_texts.online(begin=0.0, end="o / z")([(level + np.arange(2.0)[None], np.eye(2))])
        assert np.isfinite(out).all() == fine

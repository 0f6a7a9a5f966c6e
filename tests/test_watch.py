"""attnlib.watch: each map is proved by the model's own output, and watching changes nothing."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.functional import scaled_dot_product_attention as sdpa

from attnlib import core, live, plot
from attnlib.watch import Call, Seen, watch
from tests import model_families, watch_families

N, DIM, HEADS = 5, 32, 4
CAUSAL = torch.ones(N, N, dtype=torch.bool).tril()


@pytest.fixture(autouse=True)
def _same_numbers():
    torch.manual_seed(0)


def proved(seen, limit=1e-5):
    """Trace every call, each sequence with all heads and one head alone; compare with the outputs that were kept."""
    assert len(seen)
    for call in seen:
        for b in range(call.b):
            outputs = call.kept["output"][b].double().numpy(force=True)
            for head in (None, call.h - 1):
                ours, models = call.trace(b, head).output, outputs if head is None else outputs[head]
                live = ~np.isnan(models).any(-1)
                assert np.abs(ours - models)[live].max() <= limit * np.abs(models[live]).max(), call
    return seen


# --- twelve ways to write attention


class Written(nn.Module):
    """Four projections; a style is what happens between them, and hands back the weights that it used."""

    def __init__(self, attend):
        super().__init__()
        self.num_heads, self.attend = HEADS, attend
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y, self.used = self.attend(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2))


def plain(q, k, v):
    w = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~CAUSAL, -torch.inf).softmax(-1)
    return w @ v, w


def by_einsum(q, k, v):
    w = F.softmax(torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5, dim=-1)
    return torch.einsum("b h i j, b h j d -> b h i d", w, v), w


def folded(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    w = torch.bmm(q, k.mT).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.bmm(w, v).unflatten(0, (-1, HEADS)), w.unflatten(0, (-1, HEADS))


def by_baddbmm(q, k, v):
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    bias = torch.linspace(-1, 1, N).expand(len(q), N, N)
    w = torch.baddbmm(bias, q, k.mT, alpha=q.shape[-1] ** -0.5).softmax(-1)
    return torch.bmm(w, v).unflatten(0, (-1, HEADS)), w.unflatten(0, (-1, HEADS))


def grouped_in_five_axes(q, k, v):
    k, v = k[:, :2, None], v[:, :2, None]
    w = (q.unflatten(1, (2, 2)) @ k.mT / 8**0.5).softmax(-1)
    return (w @ v).flatten(1, 2), w.flatten(1, 2)


def groups_repeated(q, k, v):
    return plain(q, k[:, :2].repeat_interleave(2, 1), v[:, :2].repeat_interleave(2, 1))


def in_place(q, k, v):
    scores = q @ k.mT
    scores /= q.shape[-1] ** 0.5
    scores += torch.zeros(N, N).masked_fill(~CAUSAL, -1e4)
    w = torch.softmax(scores, -1)
    return w @ v, w


def scaled_before(q, k, v):
    w = torch.softmax((q * 8**-0.25) @ (k * 8**-0.25).mT, dim=-1)
    return w @ v, w


def turned(q, k, v):
    """Values first: V^T weights^T."""
    w = (k @ q.mT / 8**0.5).mT.softmax(-1)
    return (v.mT @ w.mT).mT, w


def exp_by_hand(q, k, v):
    scores = q @ k.mT / 8**0.5
    w = (scores - scores.amax(-1, keepdim=True)).exp()
    w = w / w.sum(-1, keepdim=True)
    return w @ v, w


def exp_in_place(q, k, v):
    w = (q @ k.mT / 8**0.5).masked_fill(~CAUSAL, -torch.inf).exp_()
    w = w / w.sum(-1, keepdim=True)
    return w @ v, w


def with_a_sink(q, k, v):
    scores = torch.cat([q @ k.mT / 8**0.5, torch.ones(*q.shape[:3], 1)], -1)
    w = scores.softmax(-1)[..., :-1]
    return w @ v, w


def capped(q, k, v):
    w = (2 * torch.tanh(q @ k.mT / 8**0.5 / 2)).softmax(-1)
    return w @ v, w


def additive(q, k, v):
    w = torch.tanh(q[:, :, :, None] + k[:, :, None]).sum(-1).softmax(-1)
    return w @ v, w


STYLES = [plain, by_einsum, folded, by_baddbmm, grouped_in_five_axes, groups_repeated, in_place, scaled_before, turned,
          exp_by_hand, exp_in_place, with_a_sink, capped]  # fmt: skip


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
def test_attention_that_is_written_out_gives_the_weights_that_were_used(style):
    module, x = Written(style).eval(), torch.randn(2, N, DIM)
    with watch(module) as seen:
        module(x)
    (call,) = proved(seen)
    assert call.kind == "written out" and (call.b, call.h) == (2, HEADS) and call.path == "Written"
    assert call.scale == pytest.approx(8**-0.5)
    for b in range(2):
        assert np.abs(call.trace(b).weights - module.used[b].detach().numpy()).max() < 1e-6
    assert call.mask_in_words.startswith(
        dict.fromkeys((plain, groups_repeated, in_place, exp_in_place), "causal").get(style, "")
    )
    assert ("bias" in call.mask_in_words) == (style in (by_baddbmm, capped)), call


def test_additive_attention_has_weights_and_no_trace():
    module, x = Written(additive), torch.randn(2, N, DIM)
    with watch(module) as seen:
        module(x)
    assert torch.equal(seen[0].kept["weights"], module.used)
    with pytest.raises(LookupError, match="has no product of queries and keys"):
        seen[0].trace()


FUSED = {
    "plain": (lambda q, k, v: sdpa(q, k, v), "none"),
    "causal": (lambda q, k, v: sdpa(q, k, v, is_causal=True), "causal"),
    "causal, upper left": (lambda q, k, v: sdpa(q[:, :, :3], k, v, is_causal=True), "causal, upper left"),
    "boolean mask": (lambda q, k, v: sdpa(q, k, v, CAUSAL), "causal"),
    "one column": (lambda q, k, v: sdpa(q, k, v, CAUSAL[3:4]), "1 key hidden"),
    "window": (lambda q, k, v: sdpa(q, k, v, CAUSAL & ~CAUSAL.tril(-2)), "causal, reaches back 1"),
    "bias": (lambda q, k, v: sdpa(q, k, v, CAUSAL.float() * 3), "bias"),
    "zeros and ones": (lambda q, k, v: sdpa(q, k, v, CAUSAL.float()), "bias"),
    "a row without a key": (lambda q, k, v: sdpa(q, k, v, CAUSAL.tril(-1)), "some pairs, 1 key hidden"),
    "scale": (lambda q, k, v: sdpa(q, k, v, scale=0.1), "none"),
    "groups": (lambda q, k, v: sdpa(q, k[:, :2], v[:, :2], enable_gqa=True), "none"),
    "scaled before": (lambda q, k, v: sdpa(q * 0.5, k, v, scale=1.0), "none"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_fused_calls_are_traced_and_their_mask_is_told(name):
    attend, words = FUSED[name]
    q, k, v = torch.randn(3, 2, HEADS, N, 8)
    with watch(nn.Identity()) as seen:
        attend(q, k, v)
    (call,) = proved(seen)
    assert (call.kind, call.mask_in_words) == ("fused", words) and call.path == "(outside the model)"
    assert call.h_kv == (2 if name == "groups" else HEADS)
    assert call.scale == pytest.approx({"scale": 0.1, "scaled before": 0.5}.get(name, 8**-0.5))


# --- the promise


@pytest.mark.parametrize("style", [plain, None], ids=["written out", "fused"])
def test_a_trace_that_is_not_what_the_model_used_is_refused_by_how_much(style):
    fused = lambda q, k, v: (F.scaled_dot_product_attention(q, k, v), None)  # noqa: E731
    module = Written(style or fused)
    with watch(module) as seen:
        module(torch.randn(2, N, DIM))
    output = seen[0].kept["output"]
    largest = output[1].abs().max()
    output[1, 2, 0] += 3 * largest
    off = 3 * largest / output[1].abs().max()
    seen[0].trace(0), seen[0].trace(1, head=1)
    for head in (None, 2):
        with pytest.raises(ArithmeticError, match=f"differs from the model's own by {off:.2g} of its largest number"):
            seen[0].trace(1, head)
    seen[0].kept["key"].mul_(2)
    seen[0].kept.pop("masked", None)
    with pytest.raises(ArithmeticError, match=r"expected at most 0\.001, so no trace is given"):
        seen[0].trace(0)


def test_dropout_of_a_fused_call_is_told_and_that_of_written_weights_is_in_them():
    fused = Written(lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, dropout_p=0.5), None))
    with watch(fused) as seen:
        fused(torch.randn(2, N, DIM))
    assert "dropout 0.5" in repr(seen)
    with pytest.raises(ArithmeticError, match=r"Dropout of 0\.5 was on\. Fix: model\.eval\(\)"):
        seen[0].trace()

    def dropping(q, k, v):
        w = F.dropout((q @ k.mT / 8**0.5).softmax(-1), 0.5, True)
        return w @ v, w

    written = Written(dropping)
    with watch(written) as seen:
        written(torch.randn(2, N, DIM))
    assert np.abs(proved(seen)[0].trace(1).weights - written.used[1].detach().numpy()).max() < 1e-6


@pytest.mark.parametrize("attend", [plain, by_einsum, in_place])
def test_outputs_and_gradients_are_the_same_to_the_last_bit(attend):
    module, x = Written(attend), torch.randn(2, N, DIM)

    def outcome():
        module.zero_grad()
        y = module(x)
        y.square().sum().backward()
        return [y.detach(), *(p.grad.clone() for p in module.parameters())]

    before = outcome()
    with watch(module) as seen:
        during = outcome()
    assert all(map(torch.equal, before, during)) and len(seen) == 1
    assert not any(x.requires_grad for x in seen[0].kept.values())


# --- torch's own modules


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_gives_its_own_weights(need_weights):
    module, x = nn.MultiheadAttention(DIM, HEADS, batch_first=True), torch.randn(2, N, DIM)
    padding = torch.zeros(2, N, dtype=torch.bool)
    padding[1, 3:] = True
    expected = module(x, x, x, key_padding_mask=padding, average_attn_weights=False)[1].detach().numpy()
    with watch(module) as seen:
        module(x, x, x, key_padding_mask=padding, need_weights=need_weights)
    (call,) = proved(seen)
    assert call.kind == ("written out" if need_weights else "fused") and call.mask_in_words == "padding, 2 keys hidden"
    assert max(np.abs(call.trace(b).weights - expected[b]).max() for b in range(2)) < 1e-6


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_fast_path_of_an_encoder_is_the_same_at_real_tokens_alone():
    layer = nn.TransformerEncoderLayer(DIM, HEADS, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, N, DIM)
    padding = torch.zeros(2, N, dtype=torch.bool)
    padding[1, 3:] = True
    with torch.no_grad():
        alone = model(x, src_key_padding_mask=padding)
        with watch(model) as seen:
            watched = model(x, src_key_padding_mask=padding)
    assert [call.path for call in proved(seen)] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert torch.allclose(alone[~padding], watched[~padding], atol=1e-5)
    assert not alone[padding].any() and watched[padding].any(), "docs/watch.md says what is different there"


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_evaluated_at_all_pairs():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = torch.randn(3, 2, HEADS, 16, 8)
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, 2, HEADS, 16, 16, device="cpu")

    def near(score, b, h, i, j):
        return score - 0.1 * (i - j)

    with watch(nn.Identity()) as seen:
        flex.flex_attention(q, k, v, score_mod=near, block_mask=mask)
    (call,) = proved(seen)
    assert call.kind == "flex" and call.mask_in_words == "causal + bias"


# --- whole models of transformers

FEW = {"BERT", "GPT-2", "Llama", "T5, encoder", "ViT"}
SLOW = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in watch_families.WHOLE]


@pytest.mark.parametrize("family", SLOW)
def test_families_of_transformers_give_their_own_maps(family):
    pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")
    row = watch_families.compare(family)
    assert row.equal and row.calls == row.maps > 0
    assert row.kinds == {"sdpa": "fused", "eager": "written out"}[row.attention]
    assert row.output < 1e-5 and row.weights < 1e-5
    (line,) = (
        x for x in watch_families.PAGE.read_text("utf-8").splitlines() if x.startswith(row.line().rsplit("| ", 2)[0])
    )
    assert max(map(float, line.split("|")[-3:-1])) < 1e-5, "Fix: python -m tests.watch_families"


def test_the_table_of_families_has_those_that_are_tested():
    table = watch_families.PAGE.read_text("utf-8").partition("<!-- families -->")[2].partition("<!-- /families -->")[0]
    assert table.count("\n| ") - 1 == len(watch_families.WHOLE)
    assert re.search(r"Made on \d{4}-\d\d-\d\d, transformers [\d.]+, torch [\d.]+", table)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generate_is_seen_step_by_step(cache):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")
    config = model_families.config("Llama", "sdpa")
    config.pad_token_id = 0
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    ids = torch.randint(3, 16, (2, 4))
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False, "cache_implementation": cache}
    options = options if cache == "static" else {**options, "cache_implementation": None}
    before = model.generate(ids, **options)
    with watch(model) as seen:
        assert torch.equal(model.generate(ids, **options), before)
    assert [call.n_q for call in proved(seen)["model.layers.1.self_attn"]] == [4, 1, 1]
    assert {(call.h, call.h_kv) for call in seen} == {(4, 2)}


def test_keys_that_heads_share_are_kept_once_where_transformers_repeats_them():
    """As its function of this name does beside a mask: it calls torch with as many heads of keys as of queries."""

    def sdpa_attention_forward(module, q, k, v):
        k, v = (x.repeat_interleave(module.num_key_value_groups, 1) for x in (k, v))
        return sdpa(q, k, v, torch.zeros(1, 1, N, N))

    class Groups(nn.Module):
        num_key_value_groups = 2

        def forward(self, q, k, v):
            return sdpa_attention_forward(self, q, k, v)

    q, k, v = torch.randn(1, HEADS, N, 8), *torch.randn(2, 1, 2, N, 8)
    with watch(module := Groups()) as seen:
        module(q, k, v)
    (call,) = proved(seen)
    assert (call.h, call.h_kv) == (4, 2) and torch.equal(call.kept["key"], k)


# --- what one may ask for


def two_layers():
    return nn.Sequential(Written(plain), Written(by_einsum)).eval(), torch.randn(3, N, DIM)


def test_a_pattern_gives_a_call_or_several():
    model, x = two_layers()
    with watch(model) as seen:
        model(x), model(x)
    assert isinstance(seen["0"], Seen) and [call.number for call in seen["0"]] == [0, 2]
    assert isinstance(seen[:1], Seen) and isinstance(seen[-1], Call) and len(seen["*"]) == 4
    assert seen[:1]["*.0.*"].number == 0 and seen[:1].trace(1, 2).weights.shape == (N, N)
    with pytest.raises(LookupError, match=r"a choice of 1, got 2: 1 \(1\), 3 \(1\)\. Fix: .*seen\[1\]\.trace"):
        seen["1"].trace()
    with pytest.raises(LookupError, match="no call fits 'layers': expected one of 0, 1"):
        seen["layers"]
    with pytest.raises(LookupError, match=r"batch must be a number from 0 to 2, got 3"):
        seen[0].trace(3)
    table = repr(seen).splitlines()
    assert len(table) == 5 and table[0].split()[:3] == ["module", "kind", "b"] and "causal" in table[1]


def test_fewer_layers_are_kept_and_all_are_listed():
    model, x = two_layers()
    with watch(model) as whole:
        model(x)
    with watch(model, layers="1") as seen:
        model(x)
    assert [call.kept is None for call in seen] == [True, False]
    assert np.array_equal(seen[1].trace(2, 1).weights, whole[1].trace(2, 1).weights)
    with pytest.raises(LookupError, match=r"head must be a number from 0 to 3, got 4"):
        seen[1].trace(2, 4)
    with pytest.raises(
        LookupError, match=r"call 0 \(0\) was not kept: another layer was asked for\. Fix: fewer, .*most="
    ):
        seen[0].trace()


def test_memory_is_bounded():
    model, x = two_layers()
    with watch(model, most=20_000) as seen:
        model(x), model(x)
    held = sum(x.numel() * x.element_size() for call in seen if call.kept for x in call.kept.values())
    assert 0 < held <= 20_000 and seen[3].kept is None and "most= is used up" in seen[3].notes[-1]


def test_written_out_attention_keeps_one_map():
    model, x = two_layers()
    with watch(model) as seen:
        model(x)
    assert all({"masked"} == {"masked", "weights"} & set(call.kept) for call in seen)


def test_rows_of_a_long_text_take_the_memory_of_these_rows():
    n = 8192
    q, k, v = torch.randn(3, 1, 2, n, 8)
    with watch(nn.Identity()) as seen:
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    held = sum(x.numel() * x.element_size() for x in seen[0].kept.values())
    assert held == 4 * q.numel() * 4 and "causal" in repr(seen)
    tracemalloc.start()
    try:
        trace = seen[0].trace(head=1, queries=slice(n - 16, n))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert trace.weights.shape == (16, n) and np.allclose(trace.output, out[0, 1, -16:].numpy(), atol=1e-5)
    assert peak < 10 * 16 * n * 8  # the whole map of one head would be 512 such rows


def test_a_grid_has_a_number_and_a_small_map_of_every_head():
    model, x = two_layers()
    with watch(model) as seen:
        model(x)
    grid, cell = seen.grid(batch=1, side=3), np.arange(N) * 3 // N
    for call, keys, maps in zip(seen, grid.keys, grid.maps, strict=True):
        w = call.trace(1).weights
        assert np.allclose(keys, np.exp(-(w * np.log(np.where(w > 0, w, 1))).sum(-1)).mean(-1))
        for i, j in np.ndindex(3, 3):
            expected = w[:, cell == i][:, :, cell == j].sum(-1).mean(-1)
            assert np.allclose(maps[:, i, j], expected)
    assert repr(grid).splitlines()[2].split() == ["1", "1", *(f"{x:.1f}" for x in grid.keys[1])]
    assert len(plot.head_grid(np.concatenate(grid.maps), titles=grid.titles).axes) >= 2 * HEADS
    module = Written(additive)
    with watch(module) as seen:
        module(x)
    with pytest.raises(LookupError, match="has no product of queries and keys"):
        seen.grid()


def test_a_click_in_a_grid_shows_the_map_of_that_head():
    model, x = two_layers()
    with watch(model) as seen:
        model(x)
    view = live.grid(seen.grid(batch=1))
    click = {"what": "click", "row": "head", "i": 2, "column": "layer", "j": 1}
    view.mouse.value = json.dumps(click)  # as view.js sends it
    assert np.allclose(view.shown["layer 2, head 3"], seen[1].trace(1, 2).weights)
    assert 'data-row="head"' in view.draw()[0]
    fewer = seen_in(lambda q, k, v: (sdpa(q, k, v), sdpa(q[:, :1], k[:, :1], v[:, :1])), *three(), num_heads=3)
    view = live.grid(fewer.grid())
    view.choose(layer=1, head=2)
    assert np.allclose(view.shown["layer 2, head 1"], fewer[1].trace(0, 0).weights), "it has one head"


def test_a_grid_holds_one_block_of_rows():
    n = 8192
    with watch(nn.Identity()) as seen:
        F.scaled_dot_product_attention(*torch.randn(3, 1, 1, n, 4))
    tracemalloc.start()
    try:
        grid = seen.grid()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**24  # 16 MB; the whole map of one head is 268
    assert grid.maps[0].shape == (1, 16, 16) and np.allclose(grid.maps[0].sum(-1), 1, atol=1e-5)


def test_a_view_takes_a_sentence_of_the_readers_own_model():
    words = ["Anna", "saw", "Ben", ";", "she"]
    embedding, model = nn.Embedding(len(words), DIM), two_layers()[0]

    def attend(text):
        with watch(model) as seen:
            model(embedding(torch.tensor([[words.index(word) for word in text.split()]])))
        return text.split(), np.stack([call.trace().weights for call in seen])

    view = live.sentence(attend, " ".join(words))
    view.sliders["layer"].value, view.sliders["head"].value = 2, HEADS
    assert np.array_equal(view.shown["layer 2, head 4"], attend(" ".join(words))[1][1, 3])


def test_ribbons_show_any_head_of_a_watched_model():
    model, x = two_layers()
    words, following = [f" w{i}" for i in range(N)], [(" so", 0.5), (" on", 0.25)]
    with watch(model) as seen:
        model(x)
    view = live.ribbons(seen.stops(words, following, batch=1))
    assert [*view.sliders] == ["d_k"], "the whole model is not run again, so there is one way only"
    view.choose(layer=1, head=2)  # as a click in the grid, counted from 0
    trace = seen[1].trace(batch=1, head=2)
    assert np.allclose(view.shown["weights"], trace.weights)
    assert "layer 2, head 3" in view.draw()[0]
    view.sliders["d_k"].value /= 4
    assert np.allclose(view.shown["weights"], core.softmax(2 * trace.masked_scores))
    assert "The next word stays that of the model as trained" in view.draw()[0]


def test_ribbons_want_one_word_for_each_token_and_a_softmax_of_scores():
    model, x = two_layers()
    with watch(model) as seen:
        model(x)
    with pytest.raises(LookupError, match=f"expected a call of 2 x 2 that was kept, got {N} x {N}. Fix: one word for"):
        seen.stops(["a", " b"], [(" c", 1.0)])
    module = Written(additive)
    with watch(module) as seen:
        module(x)
    with pytest.raises(LookupError, match="that was kept"):
        seen.stops(["a"] * N, [(" c", 1.0)])
    for change in (lambda z: z**2, lambda z: (z - z.mean(-1, keepdim=True)) / z.std(-1, keepdim=True)):
        module = Written(lambda q, k, v, change=change: (change(q @ k.mT).softmax(-1) @ v, None))
        with watch(module) as seen:
            module(x)
        with pytest.raises(LookupError, match=rf"got {N} x {N} \(scores changed by"):
            seen.stops(["a"] * N, [(" c", 1.0)])


# --- torch, otherwise


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types_are_proved_to_their_own_precision(dtype):
    module = Written(plain).to(dtype)
    with watch(module) as seen:
        module(torch.randn(2, N, DIM, dtype=dtype))
    proved(seen, {torch.float64: 1e-9}.get(dtype, 2e-2))
    assert seen[0].dtype == dtype and seen[0].mask_in_words == "causal"


def test_watching_ends_with_the_block_also_by_an_exception_and_can_be_nested():
    model, x = two_layers()
    with pytest.raises(ZeroDivisionError), watch(model) as broken:
        model(x)
        raise ZeroDivisionError
    with watch(model) as outer:
        with watch(model[1]) as inner:
            model(x)
        model(x)
    model(x)
    assert [len(s) for s in (broken, outer, inner)] == [2, 4, 2]
    assert [call.path for call in proved(inner)] == ["(outside the model)", "Written"]


def test_another_thread_is_not_seen_and_nothing_seen_says_why():
    model, x = two_layers()
    with watch(model) as seen:
        thread = threading.Thread(target=model, args=(x,))
        thread.start()
        thread.join()
    assert len(seen) == 0 and not seen
    for ask in (lambda: seen[0], lambda: seen["*"], lambda: seen.trace()):
        with pytest.raises(LookupError, match="no attention call was seen"):
            ask()
    model.config = type("Config", (), {"_attn_implementation": "flash_attention_2"})
    assert 'Fix: model.set_attn_implementation("sdpa")' in repr(seen) and "by this thread" in repr(seen)


@pytest.mark.slow
def test_a_compiled_model_is_seen():
    model, x = two_layers()
    compiled = torch.compile(model, backend="eager")
    before = compiled(x)
    with watch(compiled) as seen:
        assert torch.allclose(compiled(x), before, atol=1e-6)
    assert [call.path for call in proved(seen)] == ["0", "1"]


def test_what_cannot_be_followed_is_listed_and_does_not_stop_the_model(monkeypatch):
    from attnlib.watch import _mode

    def fails(*args):
        raise RuntimeError("some day")

    monkeypatch.setattr(_mode, "_four_axes", fails)
    model, x = two_layers()
    with watch(model) as seen:
        model(x)
    assert len(seen) == 2 and "could not be followed: RuntimeError: some day" in repr(seen)
    with pytest.raises(LookupError, match=r"was not kept: could not be followed: RuntimeError: some day\.$"):
        seen[0].trace()


def test_a_layer_that_is_replaced_while_the_model_runs_does_not_take_the_name_of_another():
    """As BigBird does with short texts; a new module might get the id of one that is gone."""

    class Replacing(nn.Module):
        def forward(self, x):
            self.inner = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
            return self.inner(x, x, x)[0]

    layers = nn.Sequential(*[Replacing() for _ in range(4)])
    for layer in layers:
        layer.inner = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    with watch(layers) as seen:
        layers(torch.randn(2, N, DIM))
    assert [call.path for call in seen] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("other", [F.softmax, None, nn.Linear])
def test_only_a_module_can_be_watched(other):
    with pytest.raises(TypeError, match=r"watch expects an nn\.Module that runs in Python, got"), watch(other):
        pass


def test_a_row_in_which_the_model_has_nan_has_it_in_the_trace():
    """attnlib gives 0 to a query that may attend to nothing; a model that does not must not be said to."""
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x, hidden = torch.randn(2, 3, 8), torch.tensor([[False] * 3, [True] * 3])
    with watch(layer) as seen:
        layer(x, x, x, key_padding_mask=hidden)
    assert np.isnan(seen[0].trace(batch=1).weights).all() and np.isnan(seen[0].trace(batch=1).output).all()
    assert np.isfinite(seen[0].trace(batch=0).output).all()


@pytest.mark.parametrize("part", ["watch", "diagnose"])
def test_without_torch_a_part_says_what_to_install(part):
    code = f"import sys; sys.modules['torch'] = None; import attnlib.{part}"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8").stderr
    assert re.search(rf"attnlib\.{part} .* of torch, which is not installed here\. Fix: pip install torch", told), told


@pytest.mark.parametrize("dtype, most", [(torch.float32, 0.001), (torch.float16, 0.02), (torch.bfloat16, 0.06)])
def test_a_trace_may_be_off_by_as_much_as_the_docs_say(dtype, most):
    q, k, v = torch.randn(3, 1, 1, N, 8, dtype=dtype)
    for off, refused in ((0.7 * most, False), (1.5 * most, True)):
        with watch(nn.Identity()) as seen:
            output = F.scaled_dot_product_attention(q, k, v)
        seen[0].kept["output"] = output.float()
        seen[0].kept["output"][0, 0, 2, 3] += off * output.abs().max()
        with pytest.raises(ArithmeticError, match=f"at most {most}") if refused else contextlib.nullcontext():
            seen[0].trace()


def test_the_table_of_a_long_text_with_a_mask_holds_no_map_of_every_head():
    n, heads = 2048, 8
    mask = torch.zeros(1, 1, n, n).masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -torch.inf)
    with watch(nn.Identity()) as seen:
        F.scaled_dot_product_attention(*torch.randn(3, 1, heads, n, 8), mask)
    with torch.profiler.profile(profile_memory=True) as profile:
        assert "causal" in repr(seen)
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert 0 < largest <= 4 * n * n  # one map of 32 bits; of every head in 8 bits it would be twice that


def test_the_picture_of_patches_has_rows_and_columns_as_the_image():
    """As docs/watch.md has it for 14 x 14 patches: the first token looks at what is bright."""

    class OfPatches(nn.Module):
        def forward(self, image):
            patches = image.unfold(1, 2, 2).unfold(2, 2, 2).mean((3, 4)).flatten(1)
            x = torch.cat([torch.ones(len(image), 1), 9 * patches], 1)[:, None, :, None]
            return F.scaled_dot_product_attention(torch.ones_like(x), x, x)

    image = torch.zeros(1, 6, 10)
    image[0, 2:4, 6:8] = 1
    with watch(model := OfPatches()) as seen:
        model(image)
    maps = seen[0].trace().weights[:, 0, 1:].reshape(-1, 3, 5)
    assert maps.shape == (1, 3, 5) and np.unravel_index(maps[0].argmax(), (3, 5)) == (1, 3)
    assert plot.head_grid(maps, vmax=maps.max()).axes[0].images[0].get_array().shape == (3, 5)


def test_what_was_seen_stays_as_it_was_when_the_model_writes_over_it():
    q, k, v = torch.randn(3, 1, HEADS, N, 8)
    with watch(nn.Identity()) as seen:
        output = sdpa(q, k, v).clone()
        sdpa(q, k, v).mul_(2)
    for x in (q, k, v):
        x.zero_()
    assert [np.allclose(call.trace().output, output[0].numpy(), atol=1e-6) for call in seen] == [True, True]


def test_a_softmax_over_experts_is_no_attention():
    tokens, router, experts = torch.randn(6, DIM), nn.Parameter(torch.randn(DIM, 3)), torch.randn(3, DIM)
    with watch(nn.Identity()) as seen:
        (tokens @ router).softmax(-1) @ experts
    assert len(seen) == 0


# --- no false names: what cannot be told is said to be so


class Own(nn.Module):
    """A function of tensors as a module; `numbers` are its attributes, as num_heads."""

    def __init__(self, attend, **numbers):
        super().__init__()
        self.attend = attend
        vars(self).update(numbers)

    def forward(self, *tensors):
        return self.attend(*tensors)


def seen_in(attend, *tensors, **numbers):
    with torch.no_grad(), watch(module := Own(attend, **numbers)) as seen:
        module(*tensors)
    return seen


def three(n_q=N, n_k=N):
    return torch.randn(2, 3, n_q, 8), torch.randn(2, 3, n_k, 8), torch.randn(2, 3, n_k, 8)


def softmax_of(q, k, v):
    return (q @ k.mT / 8**0.5).softmax(-1)


@pytest.mark.parametrize("n_q", [N, 3])
def test_scores_that_are_written_transposed_have_their_queries_and_keys(n_q):
    q, k, v = three(n_q)
    allowed = torch.ones(n_q, N, dtype=torch.bool).tril(N - n_q)

    def attend(q, k, v):
        return (k @ q.mT / 8**0.5).masked_fill(~allowed.mT, -torch.inf).softmax(-2).mT @ v

    (call,) = proved(seen_in(attend, q, k, v, num_heads=3))
    trace = call.trace(batch=1)
    assert np.allclose(trace.query, q[1]) and np.allclose(trace.key, k[1]) and (call.n_q, call.n_k) == (n_q, N)
    expected = (q[1] @ k[1].mT / 8**0.5).masked_fill(~allowed, -torch.inf).softmax(-1)
    assert np.allclose(trace.weights, expected, atol=1e-6) and "weights" not in call.kept
    assert (call.mask_in_words, call.notes) == ("causal", ())


def test_a_softmax_over_the_queries_is_told():
    for attend in (lambda q, k, v: (q @ k.mT).softmax(-2) @ v, lambda q, k, v: (k @ q.mT).softmax(-1).mT @ v):
        assert seen_in(attend, *three(), num_heads=3)[0].notes == ("softmax over the queries",)


@pytest.mark.parametrize(
    "change, by",
    [
        (lambda z: z**2 / 8, "pow"),
        (lambda z: z * z, "a factor that is not one number"),
        (lambda z: (z - z.mean(-1, keepdim=True)) / z.std(-1, keepdim=True), "a factor that is not one number"),
        (lambda z: z * torch.tensor([0.2, 0.5, 1.0]).view(3, 1, 1), "a factor that is not one number"),
        (lambda z: 5 * torch.tanh(z / 5), "tanh"),
        (lambda z: 1 - z, "rsub"),
        (lambda z: torch.einsum("bhqk,gh->bgqk", z, torch.randn(3, 3)), "a product"),
        (lambda z: z - z.amax(-1, keepdim=True), ""),
        (lambda z: z / 2 + torch.arange(5.0), ""),
        (lambda z: torch.max(z.masked_fill(~CAUSAL, -torch.inf), torch.tensor(-1e30)), ""),
        (lambda z: z * CAUSAL - 1e4 * ~CAUSAL, ""),
    ],
)
def test_scores_are_scaled_and_masked_or_said_to_be_changed(change, by):
    (call,) = proved(seen_in(lambda q, k, v: change(q @ k.mT).softmax(-1) @ v, *three(), num_heads=3))
    assert call.notes == ((f"scores changed by {by}",) if by else ()) and call.plain == (not by)


NOT_THESE = "the weights are no softmax of these scores"


@pytest.mark.parametrize(
    "attend, note",
    [
        (lambda q, k, v: softmax_of(q, k, v).flip(1) @ v, NOT_THESE),
        (lambda q, k, v: softmax_of(q, k, v).softmax(-1) @ v, NOT_THESE),
        (lambda q, k, v: (softmax_of(q, k, v) - 0.5 * softmax_of(k, q, v)) @ v, "made of two maps"),
        (lambda q, k, v: torch.einsum("bhqk,gh->bgqk", softmax_of(q, k, v), torch.randn(3, 3)) @ v, NOT_THESE),
    ],
)
def test_weights_that_are_no_softmax_of_the_scores_are_told(attend, note):
    seen = proved(seen_in(attend, *three(), num_heads=3))
    assert seen[0].notes[0].startswith(note)
    with pytest.raises(LookupError, match=rf"got {N} x {N} \({note}"):
        seen.stops(["a"] * N, [(" c", 1.0)])


@pytest.mark.parametrize("fill", [-torch.inf, -1e9])
def test_rows_that_see_nothing_may_be_set_to_0(fill):
    """As softmax(-1).nan_to_num() does; other rows that are 0, or other numbers, are no softmax of the scores."""
    seeing, rows = CAUSAL.clone(), torch.arange(N)[:, None]
    seeing[1] = False

    def call_of(change):
        attend = lambda q, k, v: change((q @ k.mT).masked_fill(~seeing, fill).softmax(-1)) @ v  # noqa: E731
        return proved(seen_in(attend, *three(), num_heads=3))[0]

    zeroed = lambda w: w.nan_to_num().where(rows != 1, 0)  # noqa: E731
    assert call_of(zeroed).notes == ("rows that see nothing are set to 0",)
    assert call_of(lambda w: zeroed(w).where(rows != 2, 0)).notes == (NOT_THESE,)
    assert call_of(lambda w: zeroed(w) / 2).notes == (NOT_THESE,)


def test_dropout_that_is_written_out_is_in_the_table():
    seen = seen_in(lambda q, k, v: F.dropout(softmax_of(q, k, v), 0.5, True) @ v, *three(), num_heads=3)
    assert seen[0].dropout == 0.5 and seen[0].notes == () and "dropout 0.5" in repr(proved(seen))
    assert seen_in(lambda q, k, v: F.dropout(softmax_of(q, k, v), 0.5, False) @ v, *three())[0].dropout == 0


def test_what_the_axes_before_hold_is_told_where_nothing_proves_it():
    q, k, v = three()
    folded = [x.flatten(0, 1) for x in (q, k, v)]
    first = [x.transpose(0, 1).contiguous() for x in (q, k, v)]
    for attend in (sdpa, lambda q, k, v: softmax_of(q, k, v) @ v):
        for tensors, numbers, read in (
            ((q, k, v), {"num_heads": 3}, ()),
            ((q, k, v), {}, ("axes of 2 x 3 read as batch 2 x heads 3",)),
            (folded, {}, ("axes of 6 read as batch 6 x heads 1",)),
            (folded, {"n_heads": 3}, ("axes of 6 read as batch 2 x heads 3",)),
            (first, {}, ("axes of 3 x 2 read as batch 3 x heads 2",)),
            (first, {"n_head": 3}, ()),
        ):
            (call,) = proved(seen_in(attend, *tensors, **numbers))
            assert call.notes == read and call.b * call.h == 6 and (not numbers or call.h == 3)
            if (call.b, call.h) == (2, 3):
                assert np.allclose(call.trace(1, 2).weights, softmax_of(q, k, v)[1, 2], atol=1e-6)


@pytest.mark.parametrize(
    "first, second",
    [
        ("bqgrd,bkgd->bgrqk", "bgrqk,bkgd->bqgrd"),
        ("b q g r d, b k g d -> b g r q k", "b g r q k, b k g d -> b g r q d"),
        ("BTKGH,BSKH->BKGTS", "BKGTS,BSKH->BTKGH"),
        ("bkgd,bqgrd->bgrkq", "bgrkq,bkgd->bqgrd"),
        ("bkgd,bqgrd->bgrqk", "bgrqk,bkgd->bqgrd"),
        ("bqgrd,bkgd->bqgrk", "bqgrk,bkgd->bqgrd"),
        ("bqgrd,bkgd->qkbgr", "qkbgr,bkgd->bqgrd"),
        ("...qgrd,...kgd->...grqk", "bgrqk,bkgd->bqgrd"),
    ],
)
def test_an_einsum_in_groups_is_seen_in_any_order(first, second):
    q, k, v = torch.randn(2, N, 2, 3, 8), torch.randn(2, N + 1, 2, 8), torch.randn(2, N + 1, 2, 8)
    hidden = torch.arange(N + 1) == N
    expected = torch.einsum("bqgrd,bkgd->bgrqk", q, k).mul(0.3).masked_fill(hidden, -torch.inf).softmax(-1)

    def attend(q, k, v):
        scores = torch.einsum(first, *((k, q) if first.startswith("bkgd") else (q, k))) * 0.3
        axis = [n == N + 1 for n in scores.shape].index(True)
        shape = [-1 if i == axis else 1 for i in range(5)]
        return torch.einsum(second, scores.masked_fill(hidden.view(shape), -torch.inf).softmax(axis), v)

    (call,) = proved(seen_in(attend, q, k, v))
    assert (call.b, call.h, call.n_q, call.n_k, call.d_k, call.scale) == (2, 6, N, N + 1, 8, 0.3)
    for b in range(2):
        assert np.allclose(call.trace(b).weights, expected[b].flatten(0, 1), atol=1e-6)
    assert call.notes == ("axes of 2 x 2 x 3 read as batch 2 x heads 6",) and call.mask_in_words == "1 key hidden"
    assert np.allclose(call.trace(1, 4).query, q[1, :, 1, 1]), "heads are numbered group by group"


@pytest.mark.parametrize("letters", ["bhqd,bkd->bhqk / bhqk,bkd->bhqd", "bqhd,bkd->bhqk / bhqk,bkd->bqhd"])
def test_one_head_of_keys_for_all_is_seen(letters):
    first, second = letters.split(" / ")
    q, k, v = torch.randn(2, 3, N, 8), torch.randn(2, N, 8), torch.randn(2, N, 8)
    given = q if first.startswith("bhqd") else q.transpose(1, 2)
    attend = lambda q, k, v: torch.einsum(second, torch.einsum(first, q, k).softmax(-1), v)  # noqa: E731
    (call,) = proved(seen_in(attend, given, k, v, num_heads=3))
    assert (call.h, call.h_kv, call.n_q) == (3, 1, N)
    assert np.allclose(call.trace(1).weights, (q[1] @ k[1].mT).softmax(-1), atol=1e-6)


def test_only_what_looks_like_padding_is_called_so():
    def words(*rows):
        allowed = torch.tensor([[int(x) for x in row] for row in rows]).bool()[:, None, None]
        return seen_in(lambda q, k, v: sdpa(q, k, v, allowed), *three(), num_heads=3)[0].mask_in_words

    assert words("11111", "11100") == words("00111", "11111") == words("00111", "11100") == "padding, 2 keys hidden"
    assert words("11100", "11100") == "2 keys hidden"  # of a window, of a cache that is not yet full
    assert words("11011", "11101") == "1 key hidden"


@pytest.mark.parametrize(
    "attend",
    [
        lambda x, w, e: (x @ w).softmax(-1) @ e,
        lambda x, w, e: F.linear(x, w.mT).softmax(-1) @ e,
        lambda x, w, e: (x @ w).softmax(1).mT @ x,
        lambda x, w, e: x.softmax(-1) @ (x.softmax(-2).mT @ x),
        lambda x, w, e: (x @ w).softmax(-1) @ ((x @ w).softmax(-2).mT @ x),
        lambda x, w, e: torch.einsum("bne,ed->bnd", torch.einsum("bnd,de->bne", x, w).softmax(-1), e),
        lambda x, w, e: (x @ w + 1).softmax(-1)[..., None, :] @ e.expand(2, N, 4, 8),
        lambda x, w, e: F.linear(x, w.mT).softmax(-1)[..., None, :] @ e.expand(2, N, 4, 8),
    ],
)
def test_a_router_and_linear_attention_are_not_listed(attend):
    assert len(seen_in(attend, torch.randn(2, N, 8), torch.randn(8, 4), torch.randn(4, 8))) == 0


def test_an_error_of_ours_is_no_row_unless_attention_is_lost(monkeypatch):
    seen = seen_in(lambda q, k, v: torch.vmap(lambda q, k, v: softmax_of(q, k, v) @ v)(q, k, v), *three())
    seen += seen_in(lambda q, k, v: torch.vmap(sdpa)(q, k, v), *three())
    assert [call.kind for call in seen] == ["written out", "fused"]
    for call in seen:
        with pytest.raises(LookupError, match=r"was not kept: .*inside torch\.vmap, which hides an axis"):
            call.trace()
    q, k, v = three()
    q[1, 2, 0] = torch.nan
    trace = seen_in(lambda q, k, v: softmax_of(q, k, v) @ v, q, k, v)[0].trace(1, 2)
    assert np.isnan(trace.weights[0]).all() and np.isfinite(trace.weights[1:]).all()


def test_scores_of_folded_heads_are_read_where_their_mask_unfolds_them():
    """As GPT-NeoX-Japanese: baddbmm on (b * h, n, d), then a softmax on (b, h, n, n)."""

    def attend(q, k, v):
        q, k = (x.flatten(0, 1) for x in (q, k))
        scores = torch.baddbmm(torch.zeros(6, N, N), q, k.mT, alpha=8**-0.5).unflatten(0, (2, 3))
        return scores.masked_fill(~CAUSAL, -torch.inf).softmax(-1) @ v

    (call,) = proved(seen_in(attend, *three(), num_heads=3))
    assert (call.b, call.h, call.mask_in_words, call.notes) == (2, 3, "causal", ())

"""Decoding: the cache and grouped heads against the whole computation and torch, for every chunking, in both twins."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from test_torch_layers import filled

import attnlib as al
from attnlib import torch_layers
from attnlib.torch_layers import KVCache, MultiHeadAttention

WIDTH, H = 8, 4
GROUPS = pytest.mark.parametrize("num_kv_heads", [4, 2, 1])
CHUNKS = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def layer(num_kv_heads=H):
    return filled(MultiHeadAttention(WIDTH, H, num_kv_heads=num_kv_heads))


def sequence(n, batch=(2,)):
    return torch.randn(*batch, n, WIDTH, generator=torch.Generator().manual_seed(n), dtype=torch.float64)


def in_chunks(mha, x, sizes, masks=None, **options):
    """(output, weights of the last chunk) of a sequence cut into chunks."""
    cache, outputs, start = (KVCache if torch.is_tensor(x) else al.KVCache)(), [], 0
    for size in sizes:
        stop = start + size
        mask = {} if masks is None else {"attn_mask": masks[..., start:stop, :stop]}
        output, weights = mha(x[..., start:stop, :], is_causal=True, cache=cache, **mask, **options)
        outputs.append(np.asarray(output.detach() if torch.is_tensor(output) else output))
        start = stop
        assert len(cache) == stop
    return np.concatenate(outputs, -2), weights


@given(sizes=CHUNKS, num_kv_heads=st.sampled_from([4, 2, 1]), batched=st.booleans(), kind=st.sampled_from("nbf"))
def test_every_chunking_gives_what_all_at_once_gives(sizes, num_kv_heads, batched, kind):
    """In both twins, with and without a mask of one's own."""
    mha, x = layer(num_kv_heads), sequence(sum(sizes), (2,) if batched else ())
    n = x.shape[-2]
    rng = np.random.default_rng(n)
    mask = {"n": None, "b": rng.random((n, n)) < 0.7, "f": rng.normal(size=(n, n))}[kind]
    options = {} if mask is None else {"attn_mask": mask}
    with torch.no_grad():
        expected, weights = mha(x, is_causal=True, **options)
        for m, given_x in ((mha, x), (mha.to_numpy(), x.numpy())):
            output, last = in_chunks(m, given_x, sizes, mask)
            np.testing.assert_allclose(output, expected, atol=1e-12)
            np.testing.assert_allclose(last, weights[..., -sizes[-1] :, :], atol=1e-12)
        fused, none = in_chunks(mha, x, sizes, mask, need_weights=False)
        np.testing.assert_allclose(fused, expected, atol=1e-12)
        assert none is None


@GROUPS
@pytest.mark.parametrize("is_causal", [True, False])
def test_grouped_heads_equal_torchs(num_kv_heads, is_causal):
    mha, x = layer(num_kv_heads), sequence(5)
    q, k, v = (
        linear(x).unflatten(-1, (heads, 2)).transpose(1, 2)
        for linear, heads in ((mha.W_Q, H), (mha.W_K, num_kv_heads), (mha.W_V, num_kv_heads))
    )
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)
    theirs = mha.W_O(theirs.transpose(1, 2).flatten(-2))
    for need_weights in (True, False):
        ours, _ = mha(x, is_causal=is_causal, need_weights=need_weights)
        torch.testing.assert_close(ours, theirs, atol=1e-13, rtol=0)
    twin, _ = mha.to_numpy()(x.numpy(), is_causal=is_causal)
    np.testing.assert_allclose(twin, theirs.detach(), atol=1e-12)


@GROUPS
def test_the_cache_keeps_no_head_twice(num_kv_heads):
    mha, cache = layer(num_kv_heads), KVCache()
    mha(sequence(3), cache=cache)
    assert cache.key.shape == cache.value.shape == (2, num_kv_heads, 3, 2)


def test_as_many_heads_of_keys_as_of_queries_is_the_layer_of_before():
    torch.manual_seed(0)
    plain = MultiHeadAttention(WIDTH, H)
    torch.manual_seed(0)
    said = MultiHeadAttention(WIDTH, H, num_kv_heads=H)
    for a, b in zip(plain.parameters(), said.parameters(), strict=True):
        assert (a == b).all()
    assert repr(plain) == repr(said) and "num_kv_heads=2" in repr(MultiHeadAttention(WIDTH, H, num_kv_heads=2))
    twin = al.MultiHeadAttention(WIDTH, H, num_kv_heads=2, rng=0)
    assert twin.W_K.shape == (WIDTH, 4) and twin.b_V.shape == (4,)


def test_a_copied_cache_is_a_branch():
    mha, x, cache = layer(), sequence(4), KVCache()
    mha(x[:, :3], is_causal=True, cache=cache)
    branch = copy.copy(cache)
    one, _ = mha(x[:, 3:], is_causal=True, cache=branch)
    again, _ = mha(x[:, 3:], is_causal=True, cache=cache)
    assert (one == again).all() and len(cache) == len(branch) == 4


def test_gradients_reach_what_was_kept():
    mha, x, cache = layer(), sequence(4).requires_grad_(), KVCache()
    mha(x[:, :3], is_causal=True, cache=cache)
    mha(x[:, 3:], is_causal=True, cache=cache)[0].sum().backward()
    assert (x.grad.abs().sum(-1) > 0).all()


@pytest.mark.parametrize("twin", [al, torch_layers], ids=["NumPy", "torch"])
def test_what_a_cache_refuses(twin):
    first, second = twin.MultiHeadAttention(8, 2), twin.MultiHeadAttention(8, 2)
    ones, other = (np.ones, torch_layers) if twin is al else (torch.ones, al)
    k, theirs = ones((2, 2, 3, 4)), (torch.ones if twin is al else np.ones)((2, 2, 3, 4))

    def used(layer=first, x=None):
        cache = twin.KVCache()
        layer(ones((2, 3, 8)) if x is None else x, is_causal=True, cache=cache)
        return cache

    refused = [
        (lambda: first(ones((3, 1, 8)), cache=used()), al.ShapeError, "it holds keys (2, 2, 3, 4)", "(3, 2, 1, 4)"),
        (lambda: second(ones((2, 1, 8)), cache=used()), ValueError, "belongs to one layer", "new ones for each prompt"),
        (lambda: first(ones((2, 1, 8)), ones((2, 3, 8)), cache=used()), ValueError, "self-attention", "leave"),
        (lambda: first(ones((2, 1, 8)), cache=[]), TypeError, "must be a KVCache of attnlib", "got list"),
        (lambda: first(ones((2, 1, 8)), cache=other.KVCache()), TypeError, "must be a KVCache of", "got attnlib."),
        (lambda: twin.KVCache().append(theirs, theirs), TypeError, "the arrays of one library", "attnlib.KVCache for"),
        (lambda: used().append(k, theirs), TypeError, "value must be a", "Fix: attnlib.KVCache for NumPy"),
        (lambda: twin.KVCache().append("keys", "values"), TypeError, "key must be a", "got str"),
        (lambda: twin.KVCache().append(k, ones((2, 2, 5, 4))), al.ShapeError, "one value for each key", "(2, 2, 5, 4)"),
        (lambda: twin.KVCache().append(ones(4), ones(4)), al.ShapeError, "one value for each key", "keys (4,)"),
        (lambda: twin.MultiHeadAttention(8, 4, num_kv_heads=3), al.ShapeError, "must divide", "from [1, 2, 4]"),
        (lambda: twin.MultiHeadAttention(8, 4, num_kv_heads=0), ValueError, "num_kv_heads must be at least 1", "Fix"),
    ]
    for call, kind, *parts in refused:
        with pytest.raises(kind) as error:
            call()
        assert all(part in str(error.value) for part in (*parts, "Fix: ")), str(error.value)


def test_a_cache_of_words_is_refused():
    words = np.array([["the", "cat"]])
    with pytest.raises(TypeError, match=r"key must hold real numbers .*, got dtype <U3"):
        al.KVCache().append(words, words)


def test_a_cache_of_another_dtype_is_refused():
    mha, cache = MultiHeadAttention(8, 2), KVCache()
    mha(torch.ones(1, 2, 8), cache=cache)
    with pytest.raises(al.ShapeError, match=r"float32, and got .* of torch\.float64"):
        mha.double()(torch.ones(1, 1, 8, dtype=torch.float64), cache=cache)


def test_nn_multihead_attention_has_no_grouped_heads():
    with pytest.raises(ValueError, match=r"num_kv_heads.*expected 4, got 2.*enable_gqa"):
        layer(2).to_torch()

"""What holds for every input: shapes, masks and values drawn by hypothesis, the same ones in every run."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import attnlib as al
from attnlib import torch_layers

SIZES = st.integers(1, 5)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def attention_inputs(draw, magnitudes=(1e-3, 1.0, 30.0), square=False):
    """(query, key, value, allowed, attn_mask): `allowed` says in full who may attend to whom by `attn_mask`."""
    leading = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    n_q, n_k, d_k, d_v = (draw(SIZES) for _ in range(4))
    n_q = n_k if square else n_q
    rng = np.random.default_rng(draw(SEEDS))
    query, key = (rng.normal(size=(*leading, n, d_k)) * draw(st.sampled_from(magnitudes)) for n in (n_q, n_k))
    value = rng.normal(size=(*leading, n_k, d_v))
    full = (*leading, n_q, n_k)
    # The mask covers all the scores, or has size 1 where it is to be shared, or only the last two axes.
    shape = full[-2:] if draw(st.booleans()) else tuple(draw(st.sampled_from((1, n))) for n in full)
    kind = draw(st.sampled_from(["none", "boolean", "floating"]))
    mask = np.ones(shape, bool) if kind == "none" else draw(hnp.arrays(bool, shape))
    allowed = np.broadcast_to(mask, full)
    if kind == "none":
        return query, key, value, allowed, None
    return query, key, value, allowed, mask if kind == "boolean" else np.where(mask, rng.normal(size=shape), -np.inf)


@st.composite
def inputs_and_causal(draw, **options):
    """(what attention_inputs draws, is_causal): with n_q = n_k where causal, which needs no more then."""
    is_causal = draw(st.booleans())
    return draw(attention_inputs(square=is_causal, **options)), is_causal


@given(
    drawn=inputs_and_causal(magnitudes=(1e-3, 1.0, 30.0, 1e4)),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_the_plain_lines_and_the_table_of_steps_give_the_same_bits(drawn, dtype):
    """`core` writes attention out, a trace takes it from `steps`: neither may drift from the other."""
    (*arrays, _, mask), is_causal = drawn
    arrays = [
        np.clip(x, -200, 200).astype(dtype) for x in arrays
    ]  # float16: sums of five products stay below its largest
    output = al.scaled_dot_product_attention(*arrays, attn_mask=mask, is_causal=is_causal)
    trace = al.attention_trace(*arrays, attn_mask=mask, is_causal=is_causal)
    assert output.dtype == trace.output.dtype == dtype
    assert output.tobytes() == trace.output.tobytes()


@given(drawn=inputs_and_causal())
def test_rows_sum_to_one_or_are_zero(twin, drawn):
    inputs, is_causal = drawn
    *arrays, allowed, mask = inputs
    if is_causal:
        allowed = allowed & np.tri(*allowed.shape[-2:], dtype=bool)
    trace = twin.trace(*arrays, attn_mask=mask, is_causal=is_causal)
    alone = twin.attend(*arrays, attn_mask=mask, is_causal=is_causal)
    dead = ~allowed.any(-1)
    assert (trace.weights[~allowed] == 0).all()
    assert (trace.weights >= 0).all()
    np.testing.assert_allclose(trace.weights.sum(-1), np.where(dead, 0, 1), atol=1e-12)
    assert (trace.fully_masked == dead).all()
    np.testing.assert_allclose(alone, trace.output, atol=1e-12)
    assert (alone[dead] == 0).all() and (trace.output[dead] == 0).all()


@given(drawn=inputs_and_causal())
def test_outputs_lie_between_the_values(twin, drawn):
    inputs, is_causal = drawn
    query, key, value, allowed, mask = inputs
    output = twin.attend(query, key, value, attn_mask=mask, is_causal=is_causal)
    if is_causal:
        allowed = allowed & np.tri(*allowed.shape[-2:], dtype=bool)
    live = allowed.any(-1)
    low, high = (np.broadcast_to(f(value, axis=-2, keepdims=True), output.shape) for f in (np.min, np.max))
    assert (output[live] >= low[live] - 1e-12).all() and (output[live] <= high[live] + 1e-12).all()


@given(inputs=attention_inputs(), data=st.data())
def test_the_order_of_keys_does_not_matter(twin, inputs, data):
    query, key, value, allowed, mask = inputs
    order = data.draw(st.permutations(range(key.shape[-2])))
    shuffled = None if mask is None else np.broadcast_to(mask, allowed.shape)[..., order]
    before = twin.attend(query, key, value, attn_mask=mask)
    after = twin.attend(query, key[..., order, :], value[..., order, :], attn_mask=shuffled)
    np.testing.assert_allclose(after, before, atol=1e-12)


@given(inputs=attention_inputs(), data=st.data())
def test_permuting_queries_permutes_rows(twin, inputs, data):
    query, key, value, allowed, mask = inputs
    order = data.draw(st.permutations(range(query.shape[-2])))
    shuffled = None if mask is None else np.broadcast_to(mask, allowed.shape)[..., order, :]
    before = twin.trace(query, key, value, attn_mask=mask)
    after = twin.trace(query[..., order, :], key, value, attn_mask=shuffled)
    np.testing.assert_allclose(after.weights, before.weights[..., order, :], atol=1e-12)
    np.testing.assert_allclose(after.output, before.output[..., order, :], atol=1e-12)
    assert (after.fully_masked == before.fully_masked[..., order]).all()


@given(inputs=attention_inputs(), scale=st.floats(-4, 4))
def test_scale_is_a_factor_on_the_query(twin, inputs, scale):
    query, key, value, _, mask = inputs
    np.testing.assert_allclose(
        twin.attend(query, key, value, attn_mask=mask, scale=scale),
        twin.attend(query * scale, key, value, attn_mask=mask, scale=1.0),
        atol=1e-9,
    )


@given(inputs=attention_inputs(square=True))
def test_is_causal_is_one_more_mask(twin, inputs):
    *arrays, allowed, mask = inputs
    both = al.combine_masks(mask, al.causal_mask(*allowed.shape[-2:]))
    np.testing.assert_allclose(
        twin.attend(*arrays, attn_mask=mask, is_causal=True), twin.attend(*arrays, attn_mask=both), atol=1e-12
    )


@given(drawn=inputs_and_causal())
def test_numpy_writes_to_no_input(drawn):
    inputs, is_causal = drawn
    *arrays, _, mask = inputs
    given_arrays = [x for x in (*arrays, mask) if x is not None]
    for x in given_arrays:
        x.setflags(write=False)  # writing would raise
    before = [x.copy() for x in given_arrays]
    al.scaled_dot_product_attention(*arrays, mask, is_causal=is_causal)
    trace = al.attention_trace(*arrays, mask, is_causal=is_causal)
    for made in (trace.scores, trace.weights, trace.output, al.softmax(arrays[0]), al.entropy(trace.weights)):
        assert not any(np.shares_memory(made, x) for x in given_arrays)
    if mask is not None:
        al.combine_masks(mask, al.causal_mask(*trace.scores.shape[-2:], align="lower_right"))
    assert all((x == b).all() for x, b in zip(given_arrays, before, strict=True))


@given(drawn=inputs_and_causal(), mask_from_numpy=st.booleans())
def test_torch_writes_to_no_input(drawn, mask_from_numpy):
    inputs, is_causal = drawn
    *arrays, _, mask = inputs
    tensors = [torch.tensor(x) for x in arrays]
    given_mask = mask if mask is None or mask_from_numpy else torch.tensor(mask)
    before = [(t.clone(), t._version) for t in tensors]
    mask_before = None if mask is None else mask.copy()
    torch_layers.scaled_dot_product_attention(*tensors, given_mask, is_causal=is_causal)
    torch_layers.attention_trace(*tensors, given_mask, is_causal=is_causal)
    layer = torch_layers.MultiHeadAttention(4, 2)
    layer.W_Q, layer.W_K, layer.W_V = (torch.nn.Linear(t.shape[-1], 4, dtype=t.dtype) for t in tensors)
    layer.double()(*tensors, attn_mask=given_mask, is_causal=is_causal)
    for tensor, (old, version) in zip(tensors, before, strict=True):
        assert tensor._version == version and torch.equal(tensor, old)
    if mask is not None:
        assert (np.asarray(given_mask) == mask_before).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(inputs=attention_inputs(), data=st.data())
def test_scores_of_ten_thousand_give_no_nan(twin, dtype, inputs, data):
    query, key, value, allowed, mask = inputs
    query, key = (data.draw(hnp.arrays(dtype, x.shape, elements=st.sampled_from([-100, 100]))) for x in (query, key))
    trace = twin.trace(query, key, value.astype(dtype), attn_mask=mask, scale=1 / query.shape[-1])
    assert np.abs(trace.scaled_scores).max() <= 10_001
    alone = twin.attend(query, key, value.astype(dtype), attn_mask=mask, scale=1 / query.shape[-1])
    np.testing.assert_allclose(trace.weights.sum(-1), allowed.any(-1), atol=1e-5)
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(alone, trace.output, atol=1e-2 if dtype == np.float32 and mask is not None else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@given(drawn=inputs_and_causal(magnitudes=(1.0,)))
def test_half_precision_in_torch_follows_float64(dtype, drawn):
    inputs, is_causal = drawn
    *arrays, _, mask = inputs
    half = [torch.tensor(x).to(dtype) for x in arrays]
    exact = al.attention_trace(*(t.double().numpy() for t in half), mask, is_causal=is_causal)
    trace = torch_layers.attention_trace(*half, mask, is_causal=is_causal)
    alone = torch_layers.scaled_dot_product_attention(*half, mask, is_causal=is_causal)
    tolerance = 2e-2 if dtype == torch.float16 else 1e-1
    assert alone.dtype == trace.output.dtype == dtype
    np.testing.assert_allclose(trace.output.double(), exact.output, atol=tolerance)
    np.testing.assert_allclose(alone.double(), exact.output, atol=tolerance)
    assert (trace.weights.double().numpy()[exact.weights == 0] == 0).all()
    dead = exact.fully_masked
    assert (alone.double().numpy()[dead] == 0).all() and (trace.output.double().numpy()[dead] == 0).all()


# softmax and entropy


@given(
    x=hnp.arrays(np.float64, hnp.array_shapes(max_dims=4, max_side=4), elements=st.floats(-1e4, 1e4)),
    data=st.data(),
)
def test_softmax_is_torchs_over_any_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    x.setflags(write=False)
    weights = al.softmax(x, axis=axis)
    np.testing.assert_allclose(weights, torch.softmax(torch.tensor(x), axis), atol=1e-14)
    np.testing.assert_allclose(weights.sum(axis=axis), 1, atol=1e-12)


@given(x=hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=5), elements=st.floats(-50, 50)))
def test_softmax_does_not_see_a_constant(x):
    np.testing.assert_allclose(al.softmax(x + 1000.0), al.softmax(x), atol=1e-10)


@given(x=hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=6), elements=st.floats(-60, 60)), data=st.data())
def test_entropy_lies_between_zero_and_log_n(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    weights = al.softmax(x, axis=axis)
    entropies = al.entropy(weights, axis=axis)
    assert entropies.shape == weights.sum(axis=axis).shape
    assert (entropies >= 0).all() and (entropies <= np.log(x.shape[axis]) + 1e-12).all()
    exact = torch.special.entr(torch.tensor(weights)).sum(axis)
    np.testing.assert_allclose(entropies, exact, atol=1e-12)


@given(x=hnp.arrays(np.float64, st.integers(2, 6), elements=st.floats(-5, 5)))
def test_a_hotter_softmax_is_more_spread_out(x):
    entropies = al.entropy(al.softmax(np.outer([2.0, 1.0, 0.5, 0.0], x)))
    assert (np.diff(entropies) >= -1e-12).all()
    assert entropies[-1] == pytest.approx(np.log(len(x)))


# Heads


@given(leading=hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), n=SIZES, h=SIZES, d_k=SIZES)
def test_split_and_merge_undo_each_other(leading, n, h, d_k):
    x = np.arange(np.prod((*leading, n, h * d_k))).reshape(*leading, n, h * d_k)
    x.setflags(write=False)
    heads = al.split_heads(x, h)
    assert heads.shape == (*leading, h, n, d_k)
    assert (al.merge_heads(heads) == x).all()
    y = np.arange(x.size).reshape(*leading, h, n, d_k)
    assert (al.split_heads(al.merge_heads(y), h) == y).all()
    for i in range(h):
        assert (heads[..., i, :, :] == x[..., i * d_k : (i + 1) * d_k]).all()


@given(h=st.integers(1, 4), d_k=SIZES, n=SIZES, seed=SEEDS)
def test_permuting_tokens_permutes_what_a_module_gives(h, d_k, n, seed):
    rng = np.random.default_rng(seed)
    mha = al.MultiHeadAttention(h * d_k, h, rng=rng)
    x, order = rng.normal(size=(n, h * d_k)), rng.permutation(n)
    output, weights = mha(x)
    shuffled_output, shuffled_weights = mha(x[order])
    np.testing.assert_allclose(shuffled_output, output[order], atol=1e-12)
    np.testing.assert_allclose(shuffled_weights, weights[:, order][:, :, order], atol=1e-12)


# Masks


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4), extra=st.integers(0, 2))
def test_padding_mask_has_as_many_keys_as_tokens(lengths, extra):
    n_k = max(*lengths, 1) + extra
    mask = al.padding_mask(lengths, n_k)
    assert mask.shape == (len(lengths), 1, n_k)
    assert mask.sum(axis=(1, 2)).tolist() == lengths
    assert (np.diff(mask.astype(int), axis=-1) <= 0).all()  # real tokens first


@given(mask=hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=4, max_side=3)))
def test_forms_of_a_mask_say_the_same(mask):
    mask.setflags(write=False)
    assert (al.from_zero_blocked(mask.astype(np.int64)) == mask).all()
    assert (al.to_blocked(mask) == ~mask).all()
    assert (al.to_additive(mask) == np.where(mask, 0, -np.inf)).all()
    assert (al.combine_masks(mask, mask) == mask).all()

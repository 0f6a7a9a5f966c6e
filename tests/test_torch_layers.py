"""The torch modules: against nn.MultiheadAttention in both directions, the NumPy module, and their own gradients."""

import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlib as al
from attnlib import torch_layers
from attnlib.torch_layers import MultiHeadAttention, SelfAttention

B, H, N_Q, N_K, WIDTH = 2, 3, 4, 5, 6


def masks(n_q=N_Q):
    """name: (our arguments, theirs). Their boolean masks say True = blocked; one for each head is (b * h, n_q, n_k)."""
    rng = np.random.default_rng(1)
    shared = torch.tensor(rng.random((n_q, N_K)) < 0.6)
    per_head = torch.tensor(rng.random((B, H, n_q, N_K)) < 0.6)
    real = torch.tensor([[True, True, True, False, False], [True] * 5])  # (b, n_k)
    shared[:, 0] = per_head[..., 0] = True  # no dead rows: theirs are NaN
    causal = torch.ones(n_q, N_K).tril(N_K - n_q).bool()  # the queries are the last ones of the sequence
    by_flag = {"is_causal": True} if n_q == N_K else None  # otherwise ours needs the word
    by_mask = al.causal_mask(n_q, N_K, align="lower_right")
    bias = torch.tensor(rng.normal(size=(n_q, N_K))).masked_fill(~shared, -torch.inf)
    return {
        "none": ({}, {}),
        "boolean": ({"attn_mask": shared}, {"attn_mask": ~shared}),
        "boolean, NumPy": ({"attn_mask": shared.numpy()}, {"attn_mask": torch.tensor(al.to_blocked(shared.numpy()))}),
        "padding": ({"attn_mask": real[:, None]}, {"key_padding_mask": ~real}),
        "each head": ({"attn_mask": per_head}, {"attn_mask": ~per_head.flatten(0, 1)}),
        "causal": (by_flag or {"attn_mask": by_mask}, {"attn_mask": ~causal}),
        "causal and padding": (
            {"attn_mask": real[:, None]} | by_flag if by_flag else {"attn_mask": real[:, None].numpy() & by_mask},
            {"attn_mask": ~causal, "key_padding_mask": ~real},
        ),
        "floating": ({"attn_mask": bias}, {"attn_mask": bias}),
        "floating and causal": (
            {"attn_mask": bias} | by_flag if by_flag else {"attn_mask": al.combine_masks(bias.numpy(), by_mask)},
            {"attn_mask": bias.masked_fill(~causal, -torch.inf)},
        ),
    }


WIDTHS = {"equal": {}, "kdim": {"kdim": 7}, "vdim": {"vdim": 8}, "kdim and vdim": {"kdim": 7, "vdim": 8}}


def filled(module):
    """Every parameter drawn anew: biases start at 0, and zeros in the wrong place would not show."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in module.double().parameters():
            p.copy_(torch.randn(p.shape, generator=generator) / 2)
    return module


def inputs(kdim=WIDTH, vdim=WIDTH, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    shapes = (B, N_Q, WIDTH), (B, N_K, kdim), (B, N_K, vdim)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def pair(direction, widths, bias):
    """(ours, theirs) with the same weights, one made from the other."""
    if direction == "from_torch":
        theirs = filled(nn.MultiheadAttention(WIDTH, H, bias=bias, batch_first=True, **widths))
        return MultiHeadAttention.from_torch(theirs), theirs
    ours = filled(MultiHeadAttention(WIDTH, H, bias=bias, **widths))
    return ours, ours.to_torch()


def close(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=0)


every_direction = pytest.mark.parametrize("direction", ["from_torch", "to_torch"])
every_width = pytest.mark.parametrize("widths", WIDTHS.values(), ids=WIDTHS)
with_and_without_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
every_mask = pytest.mark.parametrize("mask", masks())


@every_mask
@with_and_without_bias
@every_width
@every_direction
def test_outputs_equal_torchs_module(direction, widths, bias, mask):
    ours, theirs = pair(direction, widths, bias)
    our_options, their_options = masks()[mask]
    query, key, value = inputs(**widths)
    for average in (False, True):
        output, weights = ours(query, key, value, average_attn_weights=average, **our_options)
        expected = theirs(query, key, value, average_attn_weights=average, **their_options)
        close(output, expected[0])
        close(weights, expected[1])
    output, weights = ours(query, key, value, need_weights=False, **our_options)
    close(output, theirs(query, key, value, need_weights=False, **their_options)[0])
    assert weights is None


@every_mask
@every_direction
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_self_attention_equals_torchs_module_in_either_mode(direction, mask, training):
    ours, theirs = pair(direction, {}, True)
    ours.train(training), theirs.train(training)
    our_options, their_options = masks(n_q=N_K)[mask]
    x = inputs()[1]
    with torch.inference_mode():  # in eval mode theirs takes another path here
        expected = theirs(x, x, x, **their_options, need_weights=False)[0]
        for need_weights in (True, False):
            close(ours(x, need_weights=need_weights, **our_options)[0], expected)


@with_and_without_bias
@every_width
def test_round_trips_change_no_state(widths, bias):
    theirs = filled(nn.MultiheadAttention(WIDTH, H, bias=bias, batch_first=True, **widths))
    ours = filled(MultiHeadAttention(WIDTH, H, bias=bias, **widths))
    back = {
        "theirs": (theirs, MultiHeadAttention.from_torch(theirs).to_torch()),
        "ours": (ours, MultiHeadAttention.from_torch(ours.to_torch())),
    }
    for name, (before, after) in back.items():
        assert type(after) is type(before), name
        assert list(after.state_dict()) == list(before.state_dict()), name
        for key, tensor in before.state_dict().items():
            assert after.state_dict()[key].dtype == tensor.dtype
            assert torch.equal(after.state_dict()[key], tensor), (name, key)


@pytest.mark.parametrize("training", [True, False])
def test_conversion_keeps_the_mode_and_copies(training):
    ours = filled(MultiHeadAttention(WIDTH, H)).train(training)
    before = {k: v.clone() for k, v in ours.state_dict().items()}
    theirs, twin = ours.to_torch(), ours.to_numpy()
    again = MultiHeadAttention.from_torch(theirs)
    assert theirs.training is again.training is training
    for module in (theirs, again):
        with torch.no_grad():
            for p in module.parameters():
                p.zero_()
    twin.W_Q[...], twin.b_O[...] = 0, 0
    assert all(torch.equal(tensor, before[k]) for k, tensor in ours.state_dict().items())


def test_from_torch_reads_a_module_with_the_batch_second():
    theirs = filled(nn.MultiheadAttention(WIDTH, H))
    query, key, value = inputs()
    expected, _ = theirs(*(x.transpose(0, 1) for x in (query, key, value)))
    close(MultiHeadAttention.from_torch(theirs)(query, key, value)[0], expected.transpose(0, 1))


@every_mask
@with_and_without_bias
@every_width
def test_the_numpy_module_is_the_twin(widths, bias, mask):
    ours = filled(MultiHeadAttention(WIDTH, H, bias=bias, **widths))
    twin = ours.to_numpy()
    options = dict(masks()[mask][0])
    x = inputs(**widths)
    output, weights = ours(*x, **options)
    if isinstance(options.get("attn_mask"), torch.Tensor):
        options["attn_mask"] = options["attn_mask"].numpy()
    numpy_output, numpy_weights = twin(*(t.numpy() for t in x), **options)
    np.testing.assert_allclose(numpy_output, output.detach(), atol=1e-12, rtol=0)
    np.testing.assert_allclose(numpy_weights, weights.detach(), atol=1e-12, rtol=0)


def test_to_numpy_keeps_float32():
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, H)
    x = inputs(dtype=torch.float32)
    output = ours.to_numpy()(*(t.numpy() for t in x))[0]
    assert output.dtype == np.float32
    np.testing.assert_allclose(output, ours(*x)[0].detach(), atol=1e-5, rtol=0)


def test_bfloat16_weights_become_float32_in_numpy_and_stay_in_torch():
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, H).bfloat16()
    twin = ours.to_numpy()
    assert twin.W_Q.dtype == twin.b_O.dtype == np.float32
    np.testing.assert_array_equal(twin.W_Q, ours.W_Q.weight.float().detach().numpy().T)
    x = inputs(dtype=torch.bfloat16)
    assert torch.equal(ours.to_torch()(*x, average_attn_weights=False)[0], ours(*x)[0])


def test_modules_take_the_same_arguments():
    def taken(function):
        return [p.replace(annotation=None) for p in inspect.signature(function).parameters.values()]

    assert taken(MultiHeadAttention) == taken(al.MultiHeadAttention)[:-1]  # the twin also takes rng
    assert taken(MultiHeadAttention.forward) == taken(al.MultiHeadAttention.__call__)


def test_key_defaults_to_query_and_value_to_key():
    ours = filled(MultiHeadAttention(WIDTH, H))
    x, other, _ = inputs()
    assert torch.equal(ours(x)[0], ours(x, x, x)[0])
    assert torch.equal(ours(x, other)[0], ours(x, other, other)[0])
    assert ours(x[0], other[0])[1].shape == (H, N_Q, N_K)


def test_biases_start_at_zero_and_weights_xavier_uniform():
    torch.manual_seed(0)
    ours = MultiHeadAttention(64, 4, kdim=32)
    for linear, d_in in ((ours.W_Q, 64), (ours.W_K, 32), (ours.W_V, 64), (ours.W_O, 64)):
        limit = (6 / (d_in + 64)) ** 0.5
        assert linear.weight.shape == (64, d_in)
        assert 0.98 * limit < linear.weight.abs().max() <= limit
        assert (linear.bias == 0).all()


def test_repr_names_sizes():
    assert "embed_dim=6, num_heads=3, d_k=2" in repr(MultiHeadAttention(6, 3))


# SelfAttention


@pytest.mark.parametrize("need_weights", [True, False])
@with_and_without_bias
def test_self_attention_is_three_projections_and_attention(bias, need_weights):
    layer = filled(SelfAttention(WIDTH, 4, 3, bias=bias))
    x, _, _ = inputs()
    weight = {k: v.detach().numpy() for k, v in layer.state_dict().items()}
    q, k, v = (x.numpy() @ weight[f"W_{c}.weight"].T + (weight[f"W_{c}.bias"] if bias else 0) for c in "QKV")
    mask = np.array([[True], [False], [True], [True]])  # query 1 may attend to nothing
    expected = al.attention_trace(q, k, v, mask, is_causal=True)
    output, weights = layer(x, attn_mask=torch.tensor(mask), is_causal=True, need_weights=need_weights)
    np.testing.assert_allclose(output.detach(), expected.output, atol=1e-12, rtol=0)
    assert (weights is not None) == need_weights
    if need_weights:
        np.testing.assert_allclose(weights.detach(), expected.weights, atol=1e-12, rtol=0)


def test_self_attention_takes_d_v_from_d_k_and_has_no_bias():
    layer = SelfAttention(5, 3)
    assert {k: tuple(v.shape) for k, v in layer.state_dict().items()} == {f"W_{c}.weight": (3, 5) for c in "QKV"}


# Paths, masks from NumPy, dtypes, gradients


def test_without_weights_torchs_kernel_does_the_work(monkeypatch):
    calls = []
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **k: calls.append(k) or kernel(*a, **k))
    x, _, _ = inputs()
    layer = filled(MultiHeadAttention(WIDTH, H))
    layer(x)
    assert calls == []
    layer(x, need_weights=False, is_causal=True)
    assert len(calls) == 1 and calls[0]["is_causal"] is True  # no mask is built where the kernel has one of its own


def read_only(mask):
    mask = mask.copy()
    mask.setflags(write=False)
    return mask


@pytest.mark.parametrize(
    "given",
    [read_only, lambda m: m[:, ::-1][:, ::-1].copy()[:, ::-1], lambda m: np.asfortranarray(m)],
    ids=["read-only", "reversed", "Fortran order"],
)
def test_numpy_masks_of_any_layout_are_taken(given):
    mask = given(masks()["boolean, NumPy"][0]["attn_mask"])
    query, key, value = inputs()
    expected = al.attention_trace(query.numpy(), key.numpy(), value.numpy(), mask)
    for actual in (
        torch_layers.scaled_dot_product_attention(query, key, value, mask),
        torch_layers.attention_trace(query, key, value, mask).output,
    ):
        np.testing.assert_allclose(actual, expected.output, atol=1e-12, rtol=0)
    layer = filled(MultiHeadAttention(WIDTH, H))
    assert torch.equal(
        layer(query, key, value, attn_mask=mask)[0],
        layer(query, key, value, attn_mask=torch.tensor(mask.copy()))[0],
    )


DEAD = np.array([[True, False, True, True, False], [False] * 5, [True] * 5, [False] * 5])
KINDS = {"boolean": torch.tensor(DEAD), "floating": torch.tensor(al.to_additive(DEAD))}
PATHS = {
    "attention": lambda q, k, v, mask: (torch_layers.scaled_dot_product_attention(q, k, v, mask), None),
    "trace": lambda q, k, v, mask: (lambda t: (t.output, t.weights))(torch_layers.attention_trace(q, k, v, mask)),
    "layer with weights": lambda q, k, v, mask: _identity_layer(q)(q, k, v, attn_mask=mask),
    "layer without weights": lambda q, k, v, mask: _identity_layer(q)(q, k, v, attn_mask=mask, need_weights=False),
}


def _identity_layer(like):
    layer = MultiHeadAttention(WIDTH, 1, bias=False).to(like)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.eye(WIDTH))
    return layer


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", PATHS)
def test_dead_rows_are_zero_with_finite_gradients_in_every_dtype(path, kind, dtype):
    q, k, v = (x.requires_grad_() for x in inputs(dtype=dtype))
    output, weights = PATHS[path](q, k, v, KINDS[kind])
    dead = torch.tensor(~DEAD.any(-1))
    assert output.dtype == dtype
    assert (output[:, dead] == 0).all()
    if weights is not None:
        weights = weights.reshape(B, N_Q, N_K)  # drops the one head
        assert (weights[:, ~torch.tensor(DEAD)] == 0).all()
    expected = al.attention_trace(*(x.detach().double().numpy() for x in (q, k, v)), DEAD).output
    tolerance = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float32: 1e-5, torch.float64: 1e-12}[dtype]
    np.testing.assert_allclose(output.detach().double(), expected, atol=tolerance, rtol=0)
    (output.double() ** 2).sum().backward()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
        assert (x.grad != 0).any()
    assert (q.grad[:, dead] == 0).all()


@pytest.mark.parametrize("mask", [None, *KINDS])
@pytest.mark.parametrize("path", PATHS)
def test_gradients_are_right(path, mask):
    mask = None if mask is None else KINDS[mask]
    arrays = [x[:1].requires_grad_() for x in inputs()]
    assert torch.autograd.gradcheck(lambda q, k, v: PATHS[path](q, k, v, mask)[0], arrays)


@pytest.mark.parametrize("path", PATHS)
def test_a_learned_floating_mask_gets_a_finite_gradient(path):
    mask = KINDS["floating"].clone().requires_grad_()
    q, k, v = inputs()
    (PATHS[path](q, k, v, mask)[0] ** 2).sum().backward()
    assert mask.grad.isfinite().all()
    assert (mask.grad[DEAD] != 0).any() and (mask.grad[~DEAD] == 0).all()


def test_every_parameter_learns():
    layer = filled(MultiHeadAttention(WIDTH, H, kdim=7, vdim=8))
    (layer(*inputs(kdim=7, vdim=8))[0] ** 2).sum().backward()
    gradients = {name: p.grad for name, p in layer.named_parameters()}
    # b_K adds the same to every score of a row, which softmax does not see.
    assert gradients.pop("W_K.bias").abs().max() < 1e-12
    assert all((g.abs() > 1e-12).any() for g in gradients.values())


def test_layers_work_under_autocast():
    layer = MultiHeadAttention(WIDTH, H)
    x = inputs(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, _ = layer(*x, attn_mask=masks()["floating"][0]["attn_mask"])
    assert output.dtype == torch.bfloat16
    close(output.float(), layer(*x, attn_mask=masks()["floating"][0]["attn_mask"])[0], 0.1)


@pytest.mark.parametrize("mask", [None, *KINDS])
def test_layers_work_under_vmap_and_functional_gradients(mask):
    layer = filled(MultiHeadAttention(WIDTH, H))
    mask = None if mask is None else KINDS[mask]
    query, key, _ = inputs()

    def loss(query, key):
        return (layer(query, key, attn_mask=mask)[0] ** 2).sum()

    close(
        torch.func.vmap(lambda q, k: layer(q, k, attn_mask=mask)[0])(query, key), layer(query, key, attn_mask=mask)[0]
    )
    query.requires_grad_()
    (expected,) = torch.autograd.grad(loss(query, key), query)
    close(torch.func.grad(loss)(query.detach(), key), expected)


@pytest.mark.parametrize("training", [True, False])
def test_masks_with_more_axes_than_the_scores_are_taken(training):
    """Memory of the scores is lent to the mask only where the scores have all its axes."""
    layer = filled(MultiHeadAttention(WIDTH, H))
    query, key, value = inputs()
    mask = torch.ones(B, N_Q, N_K, dtype=torch.bool)
    mask[0, :, 0] = False
    with torch.set_grad_enabled(training):
        output, weights = layer(query[:1], key[:1], value, attn_mask=mask)
        close(output, layer(query[:1].expand(B, -1, -1), key[:1].expand(B, -1, -1), value, attn_mask=mask)[0])
        assert (weights[0, ..., 0] == 0).all() and (weights[1:, ..., 0] > 0).all()
        each = torch.func.vmap(lambda m: layer(query[0], key[0], value[0], attn_mask=m)[0])(mask)
        close(each, torch.stack([layer(query[0], key[0], value[0], attn_mask=m)[0] for m in mask]))


@pytest.mark.parametrize("mask", ["floating", "boolean", "NumPy"])
def test_one_graph_takes_every_mask(mask):
    """torch.compile stops at a branch on what a tensor holds, such as a look for NaN in the mask."""
    torch.compiler.reset()
    layer, x = filled(MultiHeadAttention(WIDTH, H)), inputs()[1]
    bias = torch.tensor(np.random.default_rng(0).normal(size=(N_K, N_K)))
    bias[0], bias[1, 2] = -torch.inf, -torch.inf  # a dead row, and a blocked cell
    mask = {"floating": bias, "boolean": bias > -torch.inf, "NumPy": bias.numpy()}[mask]

    def both(x):
        trace = torch_layers.attention_trace(x, x, x, mask)
        return layer(x, attn_mask=mask)[0], layer(x, attn_mask=mask, need_weights=False)[0], trace.output

    for compiled, plain in zip(torch.compile(both, fullgraph=True, backend="eager")(x), both(x), strict=True):
        close(compiled, plain)


def test_float16_weights_do_not_overflow_where_the_scaled_scores_fit():
    """q.k = 230,400 is more than float16 can hold; divided by sqrt(64) it is 28,800."""
    layer = MultiHeadAttention(64, 1, bias=False).half()
    for linear in layer.children():
        nn.init.eye_(linear.weight)
    x = torch.full((1, 3, 64), 60.0, dtype=torch.float16)
    fused, weights = layer(x, need_weights=False)[0], torch.full((1, 3, 3), 1 / 3)
    trace = torch_layers.attention_trace(x, x, x)
    assert torch.isinf(trace.scores).all() and (trace.scaled_scores == 28800).all()
    for output, each in (layer(x, average_attn_weights=True), (trace.output, trace.weights)):
        close(output, fused, 0.05)
        close(each.float(), weights, 1e-3)

"""Classes of torch: the gradient, both results, and what a check needs of them."""

import re
import sys

import numpy as np
import pytest
import torch
from lessons.multi_head import Layer
from lessons.pytorch_module import SelfAttention
from torch import nn

import attnlib as al
from attncourse import check
from attnlib import torch_layers


class Detached(SelfAttention):
    def weigh(self, scores):
        return super().weigh(scores).detach()


class ThroughNumPy(SelfAttention):
    def weigh(self, scores):
        return torch.from_numpy(al.softmax(scores.detach().numpy()))


class NumPyWithoutDetach(SelfAttention):
    def weigh(self, scores):
        return torch.from_numpy(al.softmax(scores.numpy()))


class WithoutGrad(SelfAttention):
    def forward(self, x, *, attn_mask=None):
        with torch.no_grad():
            return super().forward(x, attn_mask=attn_mask)


class ValuesDetached(SelfAttention):
    def mix(self, weights, values):
        return weights @ values.data


@pytest.mark.parametrize(
    "answer, matrices",
    [
        (Detached, "W_Q and W_K"),
        (ThroughNumPy, "W_Q and W_K"),
        (NumPyWithoutDetach, "W_Q and W_K and W_V"),
        (WithoutGrad, "W_Q and W_K and W_V"),
        (ValuesDetached, "W_V"),
    ],
)
def test_a_module_that_cuts_the_gradient_is_named(answer, matrices):
    verdict = check.SelfAttention(answer)
    assert (verdict.state, verdict.mistake) == ("wrong", "gradient_cut")
    assert f"depends on {matrices}, but no gradient comes back" in verdict.message
    assert check.SelfAttention(SelfAttention).passed


def test_the_gradient_must_reach_the_last_matrix_too():
    class OutputDetached(torch_layers.MultiHeadAttention):
        def forward(self, query, key=None, value=None, *, attn_mask=None):
            _, weights = super().forward(query, key, value, attn_mask=attn_mask)
            value = query if key is None else key if value is None else value
            v = self.W_V(value).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)
            merged = (weights @ v).transpose(-2, -3).flatten(-2)
            return merged @ self.W_O.weight.detach().T, weights

    verdict = check.MultiHeadAttention(OutputDetached)
    assert verdict.mistake == "gradient_cut" and "depends on W_O, but" in verdict.message


def test_a_matrix_that_is_not_used_is_no_cut_gradient():
    class Shared(SelfAttention):
        def forward(self, x, *, attn_mask=None):
            scores = self.scale(self.W_Q(x) @ self.W_Q(x).mT)
            weights = self.weigh(scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf))
            return self.mix(weights, self.W_V(x)), weights

    assert check.SelfAttention(Shared).mistake == "projections_shared"


def test_one_layer_for_queries_and_keys_is_told():
    class OneLayer(SelfAttention):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__(d_in, d_k, d_v)
            self.W_Q = self.W_K = nn.Linear(d_in, d_k, bias=False)

    class Keys(SelfAttention):
        def forward(self, x, *, attn_mask=None):
            scores = self.scale(self.W_K(x) @ self.W_K(x).mT)
            weights = self.weigh(scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf))
            return self.mix(weights, self.W_V(x)), weights

    class KeysAndMore(Keys):
        def scale(self, scores):
            return 0.7 * super().scale(scores)

    told = check.SelfAttention(OneLayer)
    assert (told.state, told.mistake) == ("wrong", "projections_shared")
    assert "W_Q and W_K are one and the same layer" in told.message and "depend" not in told.message
    assert check.SelfAttention(Keys).mistake == "projections_shared"
    assert "Your result does not depend on `W_Q`." in check.SelfAttention(KeysAndMore).message


def test_without_projections_the_queries_themselves_are_said_to_have_no_part():
    def by_place(query, key, value, attn_mask=None):
        places = np.sin(np.arange(query.shape[-2]))[:, None]
        return al.softmax(places * key.sum(-1)[..., None, :]) @ value

    message = check.scaled_dot_product_attention(by_place).message
    assert "Your result does not depend on `query`." in message and "W_Q" not in message


class AddsTheMask(Layer):
    def fill(self, scores, mask):
        return scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)


def test_a_dead_row_that_poisons_gradients_is_named():
    """Filled in, -inf stops the NaN on its way back (Layer, right); added, it passes NaN on."""
    assert check.MultiHeadAttention(Layer).passed
    verdict = check.MultiHeadAttention(AddsTheMask)
    assert (verdict.state, verdict.mistake) == ("wrong", "dead_row_poisons_gradients")
    assert "comes back to W_Q and W_K is NaN, though the loss leaves out the one query" in verdict.message
    assert "Fix: bring -inf into the scores with masked_fill or torch.where" in verdict.message

    class NanForward(AddsTheMask):
        def softmax(self, scores):
            return scores.softmax(-1)

    assert check.MultiHeadAttention(NanForward).mistake == "nan_on_fully_masked"


@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention"])
def test_the_weights_come_second(name):
    class Exchanged(getattr(torch_layers, name)):
        def forward(self, *inputs, attn_mask=None):
            return super().forward(*inputs, attn_mask=attn_mask)[::-1]

    verdict = getattr(check, name)(Exchanged)
    assert (verdict.state, verdict.mistake) == ("wrong", "output_and_weights_exchanged"), verdict


def test_a_bias_that_the_formula_lacks_is_told():
    class Biased(SelfAttention):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__(d_in, d_k, d_v)
            self.W_K = nn.Linear(d_in, d_k)

    verdict = check.SelfAttention(Biased)
    assert verdict.state == "wrong" and verdict.mistake == "another_layer"
    assert "Your W_K has a bias" in verdict.message and "nn.Linear(6, 4, bias=False)" in verdict.message


class WithoutItsBias(nn.Linear):
    def forward(self, x):
        return x @ self.weight.T


class IgnoresBiases(Layer):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        for name in self.by_hand:
            setattr(self, f"W_{name}", WithoutItsBias(embed_dim, embed_dim))


class ZerosWithoutKey(Layer):
    """6.4: a query without a key gets what W_O makes of 0, its bias."""

    def give(self, out, weights, query):
        nobody = (weights.sum(-1) == 0).all(-2)[..., None]
        return torch.where(nobody, 0, self.W_O(out)), weights


@pytest.mark.parametrize("by_hand, told", [("Q", "W_Q"), ("V", "W_V"), ("O", "W_O"), ("QKVO", "W_Q and W_V and W_O")])
def test_a_bias_that_the_code_ignores_is_told(by_hand, told):
    """That of the keys adds the same to all scores of a query, and so has no part in any output."""
    verdict = check.MultiHeadAttention(type("M", (IgnoresBiases,), {"by_hand": by_hand}))
    assert verdict.mistake == "bias_lost" and f"The bias of {told} does not" in verdict.message
    assert check.MultiHeadAttention(type("M", (IgnoresBiases,), {"by_hand": ""})).passed


def test_zeros_where_the_bias_of_W_O_belongs_are_told():
    verdict = check.MultiHeadAttention(ZerosWithoutKey)
    assert verdict.state == "wrong" and "The bias of W_O does not" in verdict.message


def test_layers_with_and_without_a_bias_pass_and_keep_the_names_of_mistakes():
    class Bare(Layer):
        def __init__(self, embed_dim, num_heads):
            super().__init__(embed_dim, num_heads)
            for name in "QKVO":
                setattr(self, f"W_{name}", nn.Linear(embed_dim, embed_dim, bias=name == "K"))

    assert check.MultiHeadAttention(Layer).passed and check.MultiHeadAttention(Bare).passed
    for base in (Layer, Bare):
        assert check.MultiHeadAttention(type("M", (base,), {"divisor": lambda self: 1})).mistake == "no_scale"


@pytest.mark.parametrize("name, base", [("SelfAttention", SelfAttention), ("MultiHeadAttention", Layer)])
def test_dropout_that_is_off_in_evaluation_is_remarked_on_and_a_norm_over_the_batch_rejected(name, base):
    class Dropping(base):
        p = 0.1

        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.drop = nn.Dropout(self.p)

        def forward(self, *inputs, **options):
            output, weights = super().forward(*inputs, **options)
            return self.drop(output), weights

    class Norm(base):
        def forward(self, *inputs, **options):
            output, weights = super().forward(*inputs, **options)
            return output / (output.std() if self.training else 1), weights

    verdict = getattr(check, name)(Dropping)
    assert verdict.passed and "Remark: in training mode your module gives other numbers" in verdict.message
    off = getattr(check, name)(type("Off", (Dropping,), {"p": 0.0}))
    assert off.passed and "Remark: in training" not in off.message
    verdict = getattr(check, name)(Norm)
    assert verdict.mistake == "changes_in_training" and "the same at each call" in verdict.message, verdict


@pytest.mark.parametrize("missing", ["key", "value"])
def test_key_and_value_have_defaults(missing):
    class Without(torch_layers.MultiHeadAttention):
        def forward(self, query, key=None, value=None, *, attn_mask=None):
            key = query if key is None and missing == "value" else key
            value = query if value is None and missing == "value" else value
            return super().forward(query, self.given(key), self.given(value), attn_mask=attn_mask)

        def given(self, x):
            return x if missing == "value" else x.clone()

    verdict = check.MultiHeadAttention(Without)
    assert verdict.state == "wrong" and verdict.mistake == (
        "value_defaults_to_query" if missing == "value" else "none_not_handled"
    )
    assert ("defaults to the key" if missing == "value" else "NoneType") in verdict.message, verdict.message


def test_a_module_that_is_not_begun_is_told_the_line_that_is_missing():
    class NotBegun(SelfAttention):
        def __init__(self, d_in, d_k, d_v=None):
            self.W_Q = nn.Linear(d_in, d_k, bias=False)

    class Parameter(SelfAttention):
        def __init__(self, d_in, d_k, d_v=None):
            self.W_Q = nn.Parameter(torch.zeros(d_in, d_k))

    for answer in (NotBegun, Parameter):
        assert "Fix: begin `__init__` with `super().__init__()`" in check.SelfAttention(answer).message


def test_a_layer_without_a_mask_and_one_with_a_mask_both_pass():
    """`SelfAttention` asks for none: lesson masks teaches it. `MultiHeadAttention` does ask."""

    class Unmasked(SelfAttention):
        def forward(self, x):
            return super().forward(x)

    assert check.SelfAttention(Unmasked).passed and check.SelfAttention(SelfAttention).passed

    class Careless(Layer):
        def forward(self, query, key=None, value=None):
            return super().forward(query, key, value)

    assert check.MultiHeadAttention(Careless).state == "wrong"


def test_an_error_of_the_backward_pass_is_shown():
    class InPlace(SelfAttention):
        def weigh(self, scores):
            weights = scores.softmax(-1)
            weights[weights.isnan()] = 0  # the softmax needs its own result again for the gradient
            return weights

    verdict = check.SelfAttention(InPlace)
    assert verdict.state == "wrong" and verdict.mistake is None
    assert "the gradient of the output" in verdict.message and "inplace operation" in verdict.message
    assert "anomaly" not in verdict.message and "nan_to_num make a new tensor" in verdict.message


@pytest.mark.parametrize(
    "form, kind, mistake",
    [
        (lambda output, weights: output, "one Tensor", "too_few_returned"),
        (lambda output, weights: (output, None), "(output, None)", "too_few_returned"),
        (lambda output, weights: (output,), "a tuple of 1", "too_few_returned"),
        (lambda output, weights: (output, weights, weights), "a tuple of 3", "too_many_returned"),
    ],
)
@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention"])
def test_a_module_returns_output_and_weights(name, form, kind, mistake):
    class Other(getattr(torch_layers, name)):
        def forward(self, *inputs, attn_mask=None):
            return form(*super().forward(*inputs, attn_mask=attn_mask))

    verdict = getattr(check, name)(Other)
    assert (verdict.state, verdict.mistake) == ("wrong", mistake)
    assert any("makes a tuple" in hint for hint in verdict.hints) == (mistake == "too_many_returned")
    assert "(output, weights)" in verdict.message and f"returns {kind}." in verdict.message


def test_module_exercises_say_what_they_need():
    assert "hand in an instance" in check.SelfAttention(torch_layers.SelfAttention(4, 3)).message
    assert "derived from nn.Module" in check.SelfAttention(al.softmax).message
    assert "nn.Linear called W_Q" in check.MultiHeadAttention(nn.MultiheadAttention).message
    assert check.SelfAttention(None).state == "not tried"

    class Stub(nn.Module):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__()
            raise NotImplementedError

    assert check.SelfAttention(Stub).state == "not tried"


def test_checking_a_module_leaves_torch_random_numbers_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert check.MultiHeadAttention(torch_layers.MultiHeadAttention).passed
    assert torch.equal(torch.rand(3), expected)


def test_wrong_weights_beside_a_right_output_are_rejected():
    class DropsTheMask(torch_layers.MultiHeadAttention):
        def forward(self, *inputs, attn_mask=None):
            output, _ = super().forward(*inputs, attn_mask=attn_mask)
            return output, super().forward(*inputs)[1]

    verdict = check.MultiHeadAttention(DropsTheMask)
    assert verdict.state == "wrong" and "weights: First difference" in verdict.message


@pytest.mark.parametrize(
    "form, stage, told",
    [
        (lambda output, weights: (output, 2 * weights), "returned weights", "Your output is right"),
        (lambda output, weights: (output, weights.mT), "returned weights", "Your output is right"),
        (lambda output, weights: (output + 1, weights), "output", "The weights that you return are right."),
    ],
)
def test_the_returned_weights_are_looked_at_themselves(form, stage, told):
    class Other(torch_layers.SelfAttention):
        def forward(self, x, *, attn_mask=None):
            return form(*super().forward(x, attn_mask=attn_mask))

    verdict = check.SelfAttention(Other)
    assert (verdict.state, verdict.stage) == ("wrong", stage)
    assert (
        told in verdict.message
        and "sum to 2" not in verdict.message
        and "Your weights are right" not in verdict.message
    )


@pytest.mark.parametrize(
    "width, told",
    [
        (lambda d_in, d_k, d_v: d_v, "d_v left out, so that it is d_k"),
        (lambda d_in, d_k, d_v: d_v or d_in, "with 6 inputs and 4 outputs, made with sizes (6, 4)"),
    ],
    ids=["None", "d_in"],
)
def test_d_v_is_d_k_where_it_is_left_out(width, told):
    class Other(SelfAttention):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__(d_in, d_k, d_k)
            self.W_V = nn.Linear(d_in, width(d_in, d_k, d_v), bias=False)

    verdict = check.SelfAttention(Other)
    assert verdict.state == "wrong" and told in verdict.message, verdict


def test_a_parameter_in_place_of_a_layer_is_told_without_its_numbers():
    class Parameters(nn.Module):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__()
            self.W_Q = nn.Parameter(torch.randn(d_in, d_k))

    message = check.SelfAttention(Parameters).message
    assert "it has a Parameter. Fix" in message and "heads" not in message


def test_an_error_in_a_module_shows_the_learners_line():
    class Broken(SelfAttention):
        def scale(self, scores):
            return scores / torch.ones(99)  # this line

    class BrokenInside(SelfAttention):
        def scale(self, scores):
            return nn.functional.linear(scores, torch.ones(2, 99))  # this line inside torch

    for answer in (Broken, BrokenInside):
        message = check.SelfAttention(answer).message
        assert re.search(r"Line \d+: return .*# this line", message), message


def test_without_torch_a_module_is_not_tried_and_the_check_says_why(monkeypatch):
    """In a browser the stub of 6.4 is a class without a base that torch knows."""
    monkeypatch.setitem(sys.modules, "torch", None)  # import torch raises ImportError
    stub = type("MyMultiHead", (), {})
    for answer in (stub, None):
        verdict = check.MultiHeadAttention(answer)
        assert verdict.state == "not tried" and verdict.hints
        assert "torch is missing here" in verdict.message and "pip install torch" in verdict.message

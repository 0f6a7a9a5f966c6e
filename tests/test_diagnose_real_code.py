"""What fell on strangers' code: refusals, false names, causes that were none. Each is held by its right value."""

import pytest
import torch
import torch.nn.functional as F
from test_diagnose import caught
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attnlib.diagnose import diagnose
from attnlib.diagnose._caller import Caller
from attnlib.diagnose._watch import plain_attention
from tests.diagnose_corpus import layers, public_styles, real_code, self_attention

SIZES = {"embed_dim": 32, "num_heads": 4}


def of(module, **more):
    return diagnose(module, **{**SIZES, **more})


@pytest.fixture(autouse=True)
def _same_weights():
    torch.manual_seed(0)


# Refused with an untrue sentence


@pytest.mark.parametrize("style", [real_code.Backend, real_code.FlashAlone])
def test_a_module_may_choose_a_backend(style):
    diagnosis = of(style())
    assert caught(diagnosis) == set() and diagnosis["score scale"].verdict == diagnosis["row sums"].verdict == "ok"
    assert of(style(bug="scale of embed_dim")).wrong == ["score scale"]


def test_a_backend_imported_by_name_is_seen_and_what_was_switched_comes_back():
    fused = F.scaled_dot_product_attention  # as from torch.nn.functional import scaled_dot_product_attention
    before = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()

    class Named(real_code.Plainest):
        def forward(self, x):
            with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], set_priority=True):
                return self.o(self_attention.merge(fused(*self.project(x))))

    assert of(Named())["row sums"].verdict == "ok"
    with pytest.raises(RuntimeError), sdpa_kernel(SDPBackend.MATH), plain_attention():
        raise RuntimeError
    assert (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()) == before


@pytest.mark.parametrize(
    "make, layout",
    [
        (public_styles.Rows77, "(tokens, batch, features)"),
        (lambda: public_styles.Rows77(rows=21), "(tokens, batch, features)"),
        (public_styles.Windows, "(batch, rows, columns, features)"),
        (public_styles.SquareImage, "(batch, features, rows, columns)"),
        (public_styles.Table, "(batch, tokens, features)"),
        (public_styles.Resolution, "(batch, tokens, features)"),
    ],
)
def test_a_length_of_its_own_is_found(make, layout):
    diagnosis = of(make())
    assert diagnosis.wrong == [] and diagnosis["layout"].measured == layout


def test_a_refusal_names_the_lengths_that_were_tried_and_the_error_of_float32():
    class Long(real_code.Plainest):
        def forward(self, x):
            x = self.o(x.float())  # in float64 another error comes first
            if len(x) != 1000:
                raise AssertionError
            return x

    with pytest.raises(TypeError) as raised:
        of(Long())
    said = str(raised.value)
    assert "AssertionError in line " in said and "of forward: raise AssertionError" in said
    assert "It may insist on a number of tokens: those tried are 5, 4, 9" in said and "Fix: " in said


def test_errors_without_words_are_told_by_their_line():
    class OneByOne(real_code.Plainest):
        def forward(self, x):
            if len(x) < 2:
                raise AssertionError
            return self.attend(*self.project(x))

    assert "in line" in of(OneByOne())["batch consistency"].measured


# Accused falsely


@pytest.mark.parametrize(
    "make",
    [
        public_styles.Insists,
        lambda: public_styles.Insists(lenient=True),
        public_styles.LookAhead,
        public_styles.SourceAndTarget,
        lambda: public_styles.SourceAndTarget(strict=True),
    ],
)
def test_a_decoder_that_insists_on_two_masks_is_handed_both(make):
    diagnosis = of(make())
    assert diagnosis.wrong == []
    probes = ("causality", "padding", "dead parameters", "keys matter", "allowed keys")
    assert {diagnosis[probe].verdict for probe in probes} == {"ok"}


@pytest.mark.parametrize("strict", [True, False])
def test_a_decoder_that_exchanges_its_two_masks_is_told_where_that_raises(strict):
    class Tutorial(layers.TutorialDecoder):
        def forward(self, x, memory, src_mask, tgt_mask):
            if strict:
                src_mask, tgt_mask = src_mask.bool(), tgt_mask.bool()
            return super().forward(x, memory, src_mask, tgt_mask)

    class FirstIsWhatIsMine(Tutorial):  # the names say that the context is the target
        def forward(self, src, tgt, src_mask, tgt_mask):
            return super().forward(src, tgt, tgt_mask, src_mask)

    finding = of(Tutorial(bug="masks exchanged"))["causality"]
    assert finding.verdict == "wrong" and "the tokens follow src_mask, the mask of what is read" in finding.measured
    assert of(Tutorial()).wrong == [] == of(FirstIsWhatIsMine()).wrong


def test_a_mask_that_raises_in_float64_alone_is_tried_in_float32():
    class Bounded(real_code.Plainest):
        def forward(self, x, attention_mask=None):
            q, k, v = self.project(x)
            scores = q @ k.mT / self.width**0.5
            if attention_mask is not None:
                assert attention_mask.dtype == torch.float32 and attention_mask.shape[1:] == (1, *scores.shape[-2:])
                scores = torch.max(scores + attention_mask, torch.full((), -1e30))  # refuses two dtypes
            return self.o(self_attention.merge(scores.softmax(-1) @ v))

    diagnosis = of(Bounded())
    assert diagnosis.wrong == [] and diagnosis["inputs untouched"].verdict == "ok"
    assert {diagnosis[probe].verdict for probe in ("causality", "padding")} == {"ok"}

    class Read(real_code.Plainest):
        def forward(self, x, attention_mask=None):
            assert attention_mask is None
            return self.attend(*self.project(x))

    assert "could not be given a mask" in of(Read())["causality"].measured


def test_causality_is_tried_with_the_mask_that_is_for_the_tokens_themselves():
    for strict in (True, False):
        assert "(trg_mask" in of(public_styles.SourceAndTarget(strict=strict))["causality"].measured
    dropped = of(public_styles.SourceAndTarget(bug="mask dropped"))["causality"]
    assert dropped.verdict == "beware" and "trg_mask" in dropped.measured


def test_what_nothing_was_handed_in_for_is_not_called_dead():
    class Unknown(real_code.Plainest):
        def forward(self, x, pos_bias):
            return self.attend(*self.project(x if pos_bias is None else self.o(pos_bias)))

    class Bias(Unknown):
        def __init__(self):
            super().__init__()
            self.bias = nn.Linear(32, 32)

        def forward(self, x, pos_bias):
            return super().forward(x if pos_bias is None else self.bias(x), None)

    verdict, measured = of(Bias())["dead parameters"][1:3]
    assert verdict == "could not tell" and "nothing was handed in for pos_bias" in measured


def test_an_argument_whose_name_says_nothing_accuses_nobody():
    class Beside(real_code.Plainest):
        def forward(self, x, state):
            return self.attend(*self.project(x + state))

    diagnosis = of(Beside())
    assert diagnosis.wrong == [] and "if state is what it was taken for" in diagnosis["argument order"].measured


@pytest.mark.parametrize("style", [real_code.OrderOfChance, real_code.KeysOfChance])
def test_an_order_of_chance_is_no_dependence_on_the_values(style):
    diagnosis = of(style())
    assert caught(diagnosis) == set() and diagnosis["determinism"].verdict == "ok"
    assert diagnosis["values apart"].measured.startswith("the same inputs twice")


def test_rounding_in_float16_is_no_overflow():
    rounded = diagnose(real_code.Slots(dim=24), embed_dim=24)["float16"]
    assert rounded.verdict == "beware" and "by rounding" in rounded.measured and "too large" not in rounded.look_at

    class Large(real_code.Plainest):
        def forward(self, x):
            q, k, v = self.project(x)
            return self.attend(q * 1e4, k * 1e4, v)

    class Small(real_code.Plainest):
        def forward(self, x):
            q, k, v = self.project(x)
            weights = (q @ k.mT / 8**0.5).softmax(-1).tril(-1)
            return self.o(self_attention.merge(weights / (weights.sum(-1, keepdim=True) + 1e-9) @ v))

    assert "too large" in of(Large())["float16"].look_at
    assert "rounds to 0" in of(Small())["float16"].look_at


@pytest.mark.parametrize("style", [real_code.TwoNorms, public_styles.Offset])
def test_a_second_division_is_no_maximum_of_all(style):
    finding = of(style())["large inputs"]
    assert finding.verdict == "beware" and "second division" in finding.look_at


# A true finding and its cause


@pytest.mark.parametrize(
    "bug, cause",
    [("mask repeated head by head", "repeat where repeat_interleave"), ("mask of the first sequence", "the first one")],
)
def test_a_mask_of_another_sequence_is_named(bug, cause):
    diagnosis = of(real_code.Folded(bug=bug))
    assert diagnosis.wrong == ["padding"] and cause in diagnosis["padding"].look_at
    assert "obeys the mask" in diagnosis["padding"].look_at


def test_a_mask_of_which_only_the_presence_counts_is_named():
    diagnosis = of(real_code.FlagOfTheMask(bug="mask not read"))
    for probe in ("causality", "padding"):
        assert diagnosis[probe].verdict == "beware" and "is_causal=mask is not None" in diagnosis[probe].look_at
    assert diagnosis["mask polarity"].verdict == "could not tell"
    assert "inverted mask gives the same output" in diagnosis["mask polarity"].measured


def test_a_layer_that_is_causal_only_with_a_mask_is_a_warning():
    diagnosis = of(real_code.FlagOfTheMask())
    assert diagnosis.wrong == [] and {"one answer", "allowed keys"} <= caught(diagnosis)
    assert "causal only if it is handed a mask" in diagnosis["one answer"].measured
    assert diagnosis["padding"].verdict == "ok" and diagnosis["mask polarity"].verdict == "ok"


def test_padding_is_tried_at_the_front_where_any_mask_makes_it_causal():
    class Forgets(real_code.FlagOfTheMask):
        def forward(self, x, mask=None):
            mask = mask if mask is None else mask | (torch.arange(mask.shape[-1]) < 1)
            return super().forward(x, mask)

    assert "padding" in of(Forgets()).wrong or of(Forgets())["padding"].verdict == "could not tell"


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_parameters_that_are_not_finite_yet_are_named_first(value):
    module = real_code.Folded()
    nn.init.constant_(module.k.bias, value)
    with pytest.raises(ValueError, match=r"got NaN or inf in k\.bias\. Fix: "):
        of(module)
    masked = public_styles.Rows77()
    masked.mask = nn.Parameter(masked.mask, requires_grad=False)  # -inf may be meant
    assert of(masked).wrong == []


@pytest.mark.parametrize(
    "bug, verdict, kind",
    [("a layer made in forward", "wrong", "Linear"), ("a norm made in forward", "beware", "LayerNorm")],
)
def test_layers_made_in_forward_are_named(bug, verdict, kind):
    diagnosis = of(real_code.Anew(bug=bug))
    finding = diagnosis["determinism"]
    assert finding.verdict == verdict and f"each makes {kind} anew" in finding.measured
    assert "layers made in forward" in finding.look_at
    assert diagnosis.wrong == ["determinism"] * (verdict == "wrong")


# The cache


def test_a_switch_that_hands_back_a_cache_is_switched_on():
    diagnosis = of(real_code.Switched())
    assert diagnosis["cache"].verdict == "ok" and "in chunks" in diagnosis["cache"].measured
    assert of(real_code.Switched(bug="last value lost")).wrong == ["cache"]


def test_what_a_switch_of_a_cache_does_besides_it_does_all_at_once_too():
    class Rounds(real_code.Plainest):
        def forward(self, x, past=None, use_cache=False):
            q, k, v = self.project(x)
            if use_cache:
                k, v = (y.half().to(x.dtype) for y in (k, v))
            k, v = (k, v) if past is None else (torch.cat(pair, -2) for pair in zip(past, (k, v), strict=True))
            later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1 + k.shape[-2] - q.shape[-2])
            y = self.attend(q, k, v, later)
            return (y, (k, v)) if use_cache else y

    assert of(Rounds())["cache"].verdict == "ok"


def test_a_switch_that_only_sounds_like_a_cache_is_none():
    class Shares(real_code.Plainest):
        def forward(self, x, past=None, share_kv=False, add_bias_kv=False):
            q, k, v = self.project(x)
            n = x.shape[1]
            return self.attend(q, k, k if share_kv else v, torch.ones(n, n, dtype=torch.bool).triu(1))

    finding = of(Shares())["cache"]
    assert finding.verdict == "could not tell" and finding.measured == "no known kind of cache works"


def test_a_failed_try_of_ones_own_is_no_reason():
    class Object(real_code.Plainest):
        def forward(self, x, cache=None):
            if cache is not None:
                cache.write_everything(x)
            n = x.shape[1]
            return self.attend(*self.project(x), torch.ones(n, n, dtype=torch.bool).triu(1))

    diagnosis = of(Object())
    assert diagnosis.ok and "Error" not in diagnosis["cache"].measured


# Missed


def test_a_choice_of_one_key_is_no_softmax_that_is_not_used():
    class Hard(real_code.Plainest):
        def forward(self, x):
            q, k, v = self.project(x)
            scores = q @ k.mT / self.width**0.5
            one = torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
            return self.o(self_attention.merge((one + scores * 0) @ v)), scores.softmax(-1)

    assert "row sums" not in of(Hard()).wrong


def test_a_softmax_that_is_not_used_is_named():
    finding = of(real_code.NotUsed(bug="softmax not used"))["row sums"]
    assert finding.verdict == "wrong" and "the scores multiply the values" in finding.measured


@pytest.mark.parametrize(
    "mean, bug, verdict",
    [
        (True, None, "ok"),
        (False, None, "ok"),
        (True, "queries and keys exchanged", "beware"),  # to draw it, say
        (False, "queries and keys exchanged", "beware"),
        (False, "heads and batch exchanged", "wrong"),
    ],
)
def test_a_map_that_is_handed_back_is_the_one_that_was_used(mean, bug, verdict):
    diagnosis = of(real_code.HandsBack(bug=bug, mean=mean))
    assert diagnosis["one answer"].verdict == verdict and caught(diagnosis) <= {"one answer"}
    assert bug is None or "handed back" in diagnosis["one answer"].measured


@pytest.mark.parametrize("added", [True, False])
def test_a_triangle_without_effect_is_seen_where_nothing_is_said(added):
    diagnosis = of(real_code.Triangle(bug="one number of the mask", added=added))
    assert diagnosis["causality"].verdict == "beware" and "bias is triangular" in diagnosis["causality"].measured
    assert of(real_code.Triangle(added=added))["causality"].verdict == "ok"
    assert of(real_code.Triangle(bug="masked scores not used"), causal=False)["causality"].verdict == "could not tell"


def test_a_triangle_that_is_asked_for_is_not_missed():
    class Asked(real_code.Triangle):
        def forward(self, x, is_causal=False):
            return super().forward(x) if is_causal else self.attend(*self.project(x))

    assert of(Asked())["causality"].verdict == "could not tell"


class Placed(real_code.Plainest):
    """Positions of other kinds: added to queries and keys, or a penalty for distance."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.places = kind, nn.Embedding(64, 32)

    def forward(self, x):
        i = torch.arange(x.shape[1])
        place = self.places(i)
        q, k, v = self.project(x)
        if self.kind == "added to queries and keys":
            q, k, _ = self.project(x + place)
        if self.kind.startswith("added before"):
            y = x + place
            q, k, v = self.project(y if self.kind == "added before" else F.layer_norm(y, y.shape[-1:]))
        scores = q @ k.mT / self.width**0.5
        scores = scores - (i[:, None] - i).abs() * 0.3 if self.kind == "distance" else scores
        return self.o(self_attention.merge(scores.softmax(-1) @ v))


@pytest.mark.parametrize("kind", ["added before", "added before a norm", "added to queries and keys", "distance"])
def test_other_positions_are_not_called_rotary(kind):
    assert of(Placed(kind), positions=True)["permutation"].verdict == "ok"


@pytest.mark.parametrize("neighbours", [True, False])
def test_rotary_pairs_that_are_mixed_are_seen(neighbours):
    said = {"causal": True, "positions": True}
    assert of(real_code.Turns(neighbours=neighbours), **said)["permutation"].verdict == "ok"
    mixed = of(real_code.Turns(bug="pairs mixed", neighbours=neighbours), **said)["permutation"]
    assert mixed.verdict == "beware" and "between positions" in mixed.measured
    assert of(real_code.Turns(bug="pairs mixed"), causal=True)["permutation"].verdict == "ok"  # nothing was said


def test_positions_counted_by_column_are_seen_behind_padding():
    module = real_code.Columns(bug="positions counted by column")
    finding = of(module, causal=True)["padding"]
    assert finding.verdict == "beware" and "a text alone and behind padding" in finding.measured
    assert of(module)["padding"].verdict == "ok"  # nothing was said of texts that go on
    assert of(real_code.Columns(), causal=True)["padding"].verdict == "ok"


def test_biases_of_keys_are_named_as_what_a_softmax_cancels():
    said = "0 of 2400 parameters do nothing; 24 change nothing by design"
    module = nn.MultiheadAttention(24, 4, batch_first=True)
    assert diagnose(module, embed_dim=24, num_heads=4)["dead parameters"].measured.startswith(said)
    without = nn.MultiheadAttention(24, 4, bias=False, batch_first=True)
    assert "by design" not in diagnose(without, embed_dim=24, num_heads=4)["dead parameters"].measured


# A false name beside a true one


@pytest.mark.parametrize("bug", ["triangle transposed", "decay turned round"])
def test_keys_matter_where_each_row_sees_later_tokens_only(bug):
    diagnosis = of(real_code.Later(bug=bug))
    assert diagnosis.wrong == ["causality"] and diagnosis["keys matter"].verdict == "ok"


def test_an_examination_is_not_much_longer(monkeypatch):
    called, old = [], Caller.__call__
    monkeypatch.setattr(Caller, "__call__", lambda self, *given, **more: called.append(1) or old(self, *given, **more))
    of(real_code.Backend())
    assert len(called) < 120

"""The report on a whole model: planted faults are found and named, and clean models are not accused."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnlib.watch import report, watch
from tests import watch_families, watch_faults, watch_strangers
from tests.watch_faults import FAULTS, MODELS, ODD, REAL, N

OWN = [name for name in MODELS if name.startswith(("own", "nn."))]
ALL = [(model, fault) for model, kind in MODELS.items() for fault, (*_, fits) in FAULTS.items() if fits(kind)]


def each(pairs):
    """Those of transformers take seconds to build."""
    return [pair if pair[0] in OWN else pytest.param(*pair, marks=pytest.mark.slow) for pair in pairs]


def needs(model):
    if model not in OWN:
        pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")


@pytest.mark.parametrize("model, fault", each(ALL))
def test_a_fault_is_found_where_it_was_planted(model, fault):
    needs(model)
    assert watch_faults.judge(model, fault) == "found"


@pytest.mark.parametrize("model", [each([(name,)])[0] for name in MODELS])
def test_a_clean_model_is_not_accused(model):
    model = model if isinstance(model, str) else model[0]
    needs(model)
    for chunks in {False, MODELS[model].chunks}:
        clean = watch_faults.examine(model, chunks=chunks)
        assert not clean and clean.ok and "nothing wrong or strange" in repr(clean)


@pytest.mark.slow
@pytest.mark.parametrize("family", watch_families.WHOLE)
def test_families_of_transformers_are_not_accused(family):
    pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")
    said = watch_families.examine(family)
    assert said.ok
    assert {(place.verdict, place.probe) for place in said} == (
        {("beware", "score scale")} if "T5" in family else set()
    )


FEW = {"own decoder", "own model of patches"}


@pytest.mark.parametrize("row", [watch_faults, watch_strangers], ids=["ours", "strangers"])
def test_the_page_has_a_row_for_each_model_in_which_faults_were_planted(row):
    page = watch_families.PAGE.read_text("utf-8")
    assert all(f"\n| {name} | " in page for name in row.MODELS)


@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in watch_strangers.MODELS]
)
def test_what_strangers_planted_is_found_and_missed_as_the_page_says(name):
    if not name.startswith("own"):
        needs(name)
    row = watch_strangers.row(name)
    assert row in watch_families.PAGE.read_text("utf-8").splitlines(), "Fix: python -m tests.watch_strangers"
    assert row.endswith("| 0 |"), "Fix: nothing may be named falsely"


# --- what would be a false accusation


class Layers(nn.Module):
    """A layer for each of some functions of (q, k, v), with a name for each kind of layer."""

    def __init__(self, *attends, name="layers", **numbers):
        super().__init__()
        self.parts = nn.ModuleDict({name: nn.ModuleList(watch_faults.Attention(32, 4) for _ in attends)})
        self.attends, self.config = attends, type("Config", (), numbers)()
        for layer, attend in zip(self.parts[name], attends, strict=True):
            layer.attend, layer.written = attend, True

    def forward(self, x, mask=None):
        for layers in self.parts.values():
            for layer in layers:
                x = x + layer(x, mask)
        return x


class Mixes(nn.Module):
    """A layer without attention."""

    def forward(self, x, mask=None):
        return x.cumsum(1)


def calls_of(*attends, n=N, mask=None, **numbers):
    torch.manual_seed(0)
    with torch.no_grad(), watch(model := Layers(*attends, **numbers).eval()) as seen:
        model(torch.randn(2, n, 32), mask)
    return seen


def scaled(scale):
    return lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, attn_mask, scale=scale)


def verdicts(said):
    return [(place.verdict, place.probe) for place in said]


def test_a_scale_that_follows_a_rule_over_layers_is_beware():
    """As GPT-2 with scale_attn_by_inverse_layer_idx."""
    (place,) = report(calls_of(*(scaled(8**-0.5 / i) for i in (1, 2, 3, 4))))
    assert (place.verdict, place.probe) == ("beware", "score scale") and place.measured.startswith("3 scales")
    assert verdicts(report(calls_of(*[scaled(1 / 8)] * 3))) == [("beware", "score scale")]
    odd = report(calls_of(*[scaled(1 / 8)] * 2, scaled(8**-0.5), scaled(1 / 8)))
    assert verdicts(odd)[-1] == ("wrong", "score scale") and odd[-1].where.startswith("2 ")


def test_a_scale_that_the_configuration_declares_is_right():
    """As Granite at 1/d_k, by its attention_multiplier."""
    seen = calls_of(*[scaled(1 / 8)] * 3, attention_multiplier=1 / 8)
    assert not report(seen)
    assert report(calls_of(*[scaled(1 / 8)] * 3, query_pre_attn_scalar=64)) == ()
    assert report(calls_of(*[scaled(1 / 8)] * 3, attention_multiplier=1 / 16))["score scale"].verdict == "beware"


def test_padding_that_may_be_of_another_input_is_not_judged():
    """As SigLIP, whose image has as many patches as its text has tokens."""
    hidden = REAL[:, None, None, :].bool()

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.text, self.image = Layers(scaled(None), scaled(None)), Layers(scaled(None), scaled(None))

        def forward(self, x):
            return self.text(x, hidden), self.image(x)

    with torch.no_grad(), watch(model := Both()) as seen:
        model(torch.randn(2, N, 32))
    (place,) = report(seen, real=REAL)
    assert (place.verdict, place.probe) == ("could not tell", "padding") and place.where.startswith("2, 3 image.")
    assert not report(seen, real={"text": REAL})
    said = report(seen, real={"text": REAL, "image": REAL})
    assert verdicts(said) == [("wrong", "padding")] and not said.ok and said.wrong == ["padding"]


def test_layers_that_reach_back_differently_are_meant_so():
    window = torch.ones(N, N).bool().tril().triu(-2)
    local = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, window)  # noqa: E731
    whole = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    assert not report(calls_of(local, local, whole, local))


def test_where_two_layers_differ_nobody_can_tell_which_is_wrong():
    causal = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
    assert verdicts(report(calls_of(causal, scaled(None)))) == [("could not tell", "causality")]


def test_a_layer_that_alone_hides_each_tokens_own_key_is_wrong():
    def layer(diagonal):  # the first token, which would see nothing, asks nothing
        earlier = torch.ones(N, N).bool().tril(diagonal)[1:]
        return lambda q, k, v, attn_mask=None: F.pad(
            F.scaled_dot_product_attention(q[:, :, 1:], k, v, earlier), (0, 0, 1, 0)
        )

    assert not report(calls_of(*[layer(0)] * 3))
    said = report(calls_of(layer(0), layer(0), layer(-1)))
    assert ("wrong", "allowed keys") in verdicts(said) and said["allowed keys"].where.startswith("2 ")


def test_padding_that_one_layer_does_not_hide_is_wrong_even_where_nobody_said_what_is_real():
    hidden = REAL[:, None, None, :].bool()
    padded = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, hidden)  # noqa: E731
    (place,) = report(calls_of(padded, scaled(None), padded))
    assert place.where.startswith("1 ") and (place.verdict, place.probe) == ("wrong", "padding")


def test_heads_that_all_take_one_key_are_no_copies():
    sharp = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(1e3 * q, k, v)  # noqa: E731
    seen = calls_of(sharp)
    assert "heads differ" not in [place.probe for place in report(seen)]


def test_a_cache_that_is_not_yet_filled_begins_in_the_upper_left():
    def attend(q, k, v, attn_mask=None):
        k, v = (F.pad(x, (0, 0, 0, 4)) for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    assert not report(calls_of(attend))


# --- single rules


def test_a_softmax_over_queries_and_maps_that_were_not_used_are_wrong():
    queries = lambda q, k, v, attn_mask=None: watch_faults.Attention.attend(q, k, v, axis=-2)  # noqa: E731
    assert report(calls_of(queries))["row sums"].verdict == "wrong"
    seen = calls_of(scaled(None), scaled(None))
    maps = [torch.stack([torch.tensor(call.trace(b).weights) for b in range(2)]).float() for call in seen]
    assert not report(seen, maps=maps) and not report(seen, maps=maps[::-1])
    (scores,) = report(seen, maps=[maps[0].log(), maps[1]])
    assert scores.measured.startswith("map 0 is of no layer") and "rows sum to" in scores.measured
    (mean,) = report(seen, maps=[maps[0], maps[1].mean(1, keepdim=True).expand_as(maps[1])])
    assert (mean.verdict, mean.probe) == ("wrong", "maps") and mean.measured.endswith("all heads alike")
    (again,) = report(seen, maps=[maps[0], maps[0]])
    assert again.where.startswith("1 ") and again.measured.startswith("map 1 is of no layer")
    (other,) = report(seen, maps=[maps[0][:, :, :2]])
    assert other.verdict == "could not tell"


def test_dropout_is_wrong_outside_training_alone():
    dropping = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # noqa: E731
    for training in (False, True):
        model = Layers(dropping).train(training)
        with torch.no_grad(), watch(model) as seen:
            model(torch.randn(2, N, 32))
        assert report(seen).wrong == ["determinism"] * (not training)


def test_an_overflow_is_told_where_it_begins():
    def attend(q, k, v, attn_mask=None):
        return F.scaled_dot_product_attention(q.half(), k.half(), (1e5 * v).half()).float()

    (place,) = report(calls_of(scaled(None), attend, scaled(None)))
    assert place.where.startswith("1 ") and (place.verdict, place.probe) == ("wrong", "float16")
    assert place.measured == "NaN or inf in 2 calls from here on, in float16"


def test_a_query_that_may_attend_to_nothing_is_told_unless_it_is_padding():
    def masked(allowed):
        return lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, allowed)

    rows = torch.ones(N, N).bool()
    rows[2] = False
    assert verdicts(report(calls_of(masked(rows)))) == [("beware", "fully masked row")]
    left = torch.ones(N, N).bool().tril() & (torch.arange(N) >= 2)
    assert not report(calls_of(masked(left)))


def test_a_model_in_which_nothing_was_seen_is_not_called_well():
    with watch(nn.Linear(2, 2)) as seen:
        pass
    with pytest.raises(LookupError, match="no attention call was seen"):
        report(seen)


def test_calls_that_were_not_kept_are_named():
    model = Layers(scaled(None), scaled(None))
    with watch(model, layers="*.0") as seen:
        model(torch.randn(2, N, 32))
    (place,) = report(seen)
    assert (place.verdict, place.measured) == ("could not tell", "another layer was asked for")


def test_a_report_shows_itself_as_a_diagnosis_does_and_says_what_it_cannot_see():
    said = watch_faults.examine("own decoder with a cache", "another scale in one layer")
    head, row, count, last = repr(said).splitlines()
    assert head.split() == ["where", "probe", "verdict", "measured", "look", "at"] and row.startswith(
        f"{ODD} layers.{ODD}"
    )
    assert count.startswith("4 calls examined.") and "a causal mask no layer has; padding after causal text" in last
    assert said["score scale"].verdict == "wrong" and "<table" in said._repr_html_()


# --- what strange eyes planted


def followed(*layers):
    """A report on layers that make queries and keys by functions of (q, k)."""

    def attend(prepare):
        return lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(*prepare(q, k), v)

    return report(calls_of(*map(attend, layers)))


def rotated(x):
    """As rotary positions do it."""
    angle = torch.arange(x.shape[-2])[:, None].float() @ (0.1 ** torch.arange(x.shape[-1] // 2))[None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def test_a_constant_is_followed_through_rotary_positions():
    """Where one layer alone rotates nothing, it has the scale of the others; a scale applied twice is found."""
    rotary, none = lambda q, k: (rotated(q * 2), rotated(k)), lambda q, k: (q * 2, k)
    said = followed(rotary, rotary, rotary, none)
    assert verdicts(said) == [("beware", "score scale")] and said[0].measured == "2/sqrt(d_k)"
    twice = followed(*[lambda q, k: (rotated(q), rotated(k))] * 2, rotary)
    assert ("wrong", "score scale") in verdicts(twice) and twice[0].where.startswith("2 ")


def written(after=lambda w, v: w @ v, axis=-1, cap=None, scale=8**-0.5, hidden=None):
    def attend(q, k, v, attn_mask=None):
        scores = q @ k.mT * scale
        scores = scores if cap is None else torch.tanh(scores / cap) * cap
        scores = scores if hidden is None else scores.masked_fill(hidden, -1e9)
        return after(scores.softmax(axis), v)

    return attend


@pytest.mark.parametrize("axis, words", [(1, "neither queries nor keys"), (0, "neither queries nor keys")])
def test_a_softmax_over_heads_or_sequences_is_no_fault_of_the_padding(axis, words):
    hidden = ~REAL[:, None, None, :].bool()
    said = report(calls_of(*[written(axis=axis, hidden=hidden)] * 3), real=REAL)
    assert verdicts(said) == [("wrong", "row sums")] * 3
    assert said[0].measured == f"softmax went over {words}"


def test_weights_that_one_layer_alone_changes_are_wrong():
    twice = written(lambda w, v: w.softmax(-1) @ v, hidden=~REAL[:, None, None, :].bool())
    once = written(hidden=~REAL[:, None, None, :].bool())
    said = report(calls_of(once, twice, once, once), real=REAL)
    assert verdicts(said) == [("wrong", "row sums"), ("wrong", "padding")] and said[0].where.startswith("1 ")
    assert said["padding"].measured.endswith("though a mask hides them")
    assert verdicts(report(calls_of(written(), written(lambda w, v: w / 2 @ v), written()))) == [("wrong", "row sums")]


def test_a_scale_behind_a_cap_is_judged():
    said = report(calls_of(written(cap=5), written(cap=5, scale=0.1), written(cap=5)))
    assert ("wrong", "score scale") in verdicts(said) and said[0].where.startswith("1 ")


def test_a_layer_left_in_training_drops_what_the_model_does_not():
    dropping = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)  # noqa: E731
    model = Layers(scaled(None), dropping, scaled(None)).eval()
    model.parts["layers"][1].train()
    with torch.no_grad(), watch(model) as seen:
        model(torch.randn(2, N, 32))
    assert verdicts(report(seen)) == [("wrong", "determinism")]


def test_a_layer_that_forgets_padding_is_told_with_real_where_a_real_token_sees_it():
    """On the right a causal mask hides it from real tokens, so it does no harm: pad on the left to test."""
    causal = torch.ones(N, N).bool().tril()
    for real, with_real in ((REAL.flip(1).bool(), ["padding"] * 2), (REAL.bool(), [])):
        strict = causal & real[:, None, None]
        layers = [written(hidden=~allowed) for allowed in (strict, strict, causal, strict)]
        assert [place.probe for place in report(calls_of(*layers), real=real)] == with_real
        assert verdicts(report(calls_of(*layers))) == [("wrong", "padding")]


def test_what_padded_queries_see_is_not_judged():
    """Where one layer lets them see everything, and the others nothing."""
    causal, real = torch.ones(N, N).bool().tril(), REAL.flip(1).bool()
    strict = causal & real[:, None, None, :]
    loose = strict | ~real[:, None, :, None]

    def masked(allowed):
        return lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, allowed)

    seen = calls_of(masked(loose), masked(strict), masked(strict))
    assert not report(seen, real=real) and not report(seen)


def test_a_corner_without_a_call_before_it_may_be_another_input():
    """As in translation that begins before the sentence ends: 4 words look at 6."""

    def attend(q, k, v, attn_mask=None):
        return F.pad(F.scaled_dot_product_attention(q[:, :, :4], k, v, is_causal=True), (0, 0, 0, q.shape[-2] - 4))

    assert verdicts(report(calls_of(attend))) == [("could not tell", "cache")]


def test_a_call_that_hides_the_padding_of_another_input_reads_that_one():
    """As BART, whose decoder reads the encoder at equal lengths: {"encoder": ..., "decoder": ...} is natural."""
    source, target = REAL.bool(), REAL.flip(0).bool()
    reads = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, source[:, None, None])  # noqa: E731
    seen = calls_of(reads, reads, reads)
    assert not report(seen, real={"parts": target, "parts.layers": source})


@pytest.mark.parametrize("change", [lambda x: x.flip(0), lambda x: x.roll(1, 1), lambda x: ~x])
def test_a_mask_that_hides_real_tokens_in_all_layers_is_wrong(change):
    """That of another sequence, shifted, or inverted, in a causal model: no real token sees padding."""
    real = torch.ones(2, N).bool()
    real[1, N // 2 :] = False
    hidden = torch.ones(N, N).bool().tril() & change(real)[:, None, None]
    layer = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, hidden)  # noqa: E731
    said = report(calls_of(*[layer] * 3), real=real)
    assert ("wrong", "padding") in verdicts(said) and "real tokens are hidden from all" in repr(said)


@pytest.mark.parametrize(
    "real, words",
    [
        (REAL[:1], "fits no call"),
        ({"misspelt": REAL}, "'misspelt' fits no call"),
        ((1.0 - REAL) * -1e9, "must be True or 1 at tokens"),
    ],
)
def test_a_mask_that_no_call_can_mean_raises(real, words):
    with pytest.raises(ValueError, match=words):
        report(calls_of(scaled(None)), real=real)


def test_a_mask_with_batch_and_tokens_exchanged_says_so_and_lists_each_size_once():
    """As nn.MultiheadAttention without batch_first, which lets sentences look at each other."""
    with torch.no_grad(), watch(model := nn.MultiheadAttention(32, 4)) as seen:
        model(*[torch.randn(2, N, 32)] * 3)
        model(*[torch.randn(2, N, 32)] * 3)
    words = rf"expected one as MultiheadAttention of \({N}, 2\)\."
    with pytest.raises(ValueError, match=words + r" Batch and tokens exchanged\? Fix: batch_first=True\.$"):
        report(seen, real=REAL)
    with pytest.raises(ValueError, match=words + "$"):
        report(seen, real=REAL[:1])
    with pytest.raises(ValueError, match="fits no call"):
        report(seen, real=torch.ones(6))


def test_a_report_on_no_call_raises_and_takes_lists_and_one_map():
    with watch(model := Layers(scaled(None)), most=0) as seen:
        model(torch.randn(2, N, 32))
    with pytest.raises(LookupError, match="a call that was kept, got 1: "):
        report(seen)
    seen = calls_of(scaled(None))
    maps = torch.stack([torch.tensor(seen[0].trace(b).weights) for b in range(2)]).float()
    assert not report(seen, real=torch.ones(2, N).tolist(), maps=maps)


@pytest.mark.parametrize("maps", [(None, None), ()])
def test_maps_that_the_model_did_not_return_are_told(maps):
    """As outputs.attentions of fused attention."""
    (place,) = said = report(calls_of(scaled(None), scaled(None)), maps=maps)
    assert (place.verdict, place.measured) == ("could not tell", "the model returned no maps") and said.ok
    assert "eager" in place.look_at


def test_keys_hidden_from_all_sequences_are_no_padding():
    hides = lambda q, k, v, attn_mask=None: F.scaled_dot_product_attention(q, k, v, torch.arange(N)[None] > 0)  # noqa: E731
    assert verdicts(report(calls_of(scaled(None), hides, scaled(None), scaled(None)))) == [("wrong", "allowed keys")]


def test_the_parts_of_a_configuration_declare_their_scale():
    inner = type("Config", (), {})()
    inner.query_pre_attn_scalar = 64
    seen = calls_of(*[scaled(1 / 8)] * 3)
    seen.model.config.encoder = type("Config", (), {})()
    seen.model.config.encoder.text_config = inner
    assert not report(seen)


@pytest.mark.parametrize("hides", [True, False], ids=["the decoder hides it", "nobody does"])
def test_an_encoder_that_forgets_the_padding_is_named_where_its_reader_is_of_another_length(hides):
    """Only one input is as long as real= says, and the layers that are as long as their keys read it first."""
    shown = torch.ones_like(REAL) if not hides else REAL

    def cross(q, k, v, attn_mask=None):
        allowed = shown.bool()[:, None, None]
        return F.pad(F.scaled_dot_product_attention(q[:, :, :4], k, v, allowed), (0, 0, 0, N - 4))

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = (Layers(*[attend] * 3) for attend in (scaled(None), cross))

        def forward(self, x):
            return self.decoder(self.encoder(x))

    with torch.no_grad(), watch(model := Both().eval()) as seen:
        model(torch.randn(2, N, 32))
    said = report(seen, real=REAL)
    assert (said[0].verdict, said[0].probe) == ("wrong", "padding") and said[0].where.startswith("0, 1, 2 encoder.")
    assert verdicts(said)[1:] == [("could not tell", "padding")] * (not hides)


def test_nan_is_told_where_it_is_born_and_not_where_a_later_layer_spreads_it():
    """A query that sees no key has NaN, which its layer gives to nobody; the next layer has it among its values."""
    hidden = ~REAL.flip(1).bool()[:, None, None] | torch.ones(N, N).bool().triu(1)

    def layer(fill):
        return lambda q, k, v, attn_mask=None: (q @ k.mT * 8**-0.5).masked_fill(hidden, fill).softmax(-1) @ v

    (place,) = report(calls_of(layer(-1e9), layer(-torch.inf), layer(-1e9)))
    assert place.where.startswith("1 ") and place.look_at == "queries that see no key, or an overflow"
    assert place.measured == "NaN or inf in 2 calls from here on, in float32"
    with torch.no_grad(), watch(model := Layers(scaled(None))) as seen:
        model(torch.full((2, N, 32), torch.nan))
    assert report(seen)["large inputs"].look_at == "what came in"


def test_nan_that_no_later_layer_spreads_is_told_because_the_gradients_have_it():
    """The last layer alone writes -inf: its NaN stands at padded queries, which a loss leaves out."""
    real = REAL.flip(1).bool()
    hidden = ~real[:, None, None] | torch.ones(N, N).bool().triu(1)

    def layer(fill):
        return lambda q, k, v, attn_mask=None: (q @ k.mT * 8**-0.5).masked_fill(hidden, fill).softmax(-1) @ v

    torch.manual_seed(0)
    with watch(model := Layers(layer(-1e9), layer(-1e9), layer(-torch.inf)).eval()) as seen:
        output = model(torch.randn(2, N, 32))
    (loss := output[real].square().mean()).backward()
    assert loss.isfinite() and any(p.grad.isnan().any() for p in model.parameters())
    for given in (None, real):
        (place,) = report(seen, real=given)
        assert (place.verdict, place.probe) == ("beware", "fully masked row") and place.where.startswith("2 ")
        assert place.measured.startswith(f"NaN at {int((~real).sum())} queries that see no key: ")
    assert not report(calls_of(*[layer(-1e9)] * 3), real=real)


def test_a_layer_whose_call_was_not_seen_is_told_where_its_siblings_have_one():
    """As by an einsum of three tensors, weights times values times the layer behind them."""

    def unseen(q, k, v, attn_mask=None):
        return torch.einsum("bhqt,bhtd,de->bhqe", (q @ k.mT * 8**-0.5).softmax(-1), v, torch.eye(8))

    (place,) = said = report(calls_of(written(), unseen, written(), written()))
    assert tuple(place)[:4] == (
        "parts.layers.1", "calls", "could not tell", "no call seen, its 3 siblings have one"
    ) and said.ok  # fmt: skip
    with torch.no_grad(), watch(model := Layers(*[written()] * 4).eval()) as seen:
        model.parts["layers"][2] = Mixes()  # of another class, so meant without
        model(torch.randn(2, N, 32))
    assert len(seen) == 3 and not report(seen)
    assert not report(calls_of(written(), unseen)) and not report(calls_of(*[written(), unseen] * 3))
    with watch(model := Layers(*[written()] * 4), layers="*.1") as seen:  # listed, so seen
        model(torch.randn(2, N, 32))
    assert "no call seen" not in repr(report(seen))


def test_queries_and_keys_of_length_one_times_a_number_are_no_scale():
    """As F.normalize(q) * sqrt(d_k), which is a norm that is written by hand."""
    norm = lambda x: F.normalize(x, dim=-1) * 8**0.5  # noqa: E731
    assert not followed(*[lambda q, k: (norm(q), norm(k))] * 3)


def test_a_report_on_a_model_in_place_of_what_was_seen_says_so():
    with pytest.raises(TypeError, match=r"what watch has seen, got Linear\. Fix: with watch\(model\) as seen"):
        report(nn.Linear(2, 2))


def test_maps_that_were_used_are_right_where_they_are_nearly_a_softmax():
    """As of a sum to which a small number is added, lest it be 0."""
    maps = []

    def attend(q, k, v, attn_mask=None):
        w = (q @ k.mT * 8**-0.5).exp()
        maps.append(w / (w.sum(-1, keepdim=True) * (1 + 5e-4)))
        return maps[-1] @ v

    assert not report(calls_of(attend, attend), maps=maps)

"""Faults planted in whole models, one layer or all, and what the report on the calls says of them.

`python -m tests.watch_faults` writes the table of docs/watch.md; it needs transformers.
"""

import contextlib
import itertools
import re
from typing import NamedTuple
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from attnlib.watch import _mode, report, watch
from tests import model_families, watch_families

HEAD = "| model | clean | planted | found | missed | named falsely |\n|---|---|---|---|---|---|"
LAYERS, N, ODD = 4, 7, 1  # layers of a model, tokens, the call in which a fault is planted
REAL = torch.tensor([[1] * N, [1] * (N - 3) + [0] * 3])
sdpa = F.scaled_dot_product_attention


# --- models that are not of transformers


class Attention(nn.Module):
    """Four projections and torch's fused attention, or one that is written out; behind a cache, if it has one."""

    def __init__(self, width, heads, written=False):
        super().__init__()
        self.num_heads, self.written, self.past = heads, written, None
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        q, k, v = (f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.past is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(self.past, (k, v), strict=True))
        self.now = k, v
        attend = self.attend if self.written else F.scaled_dot_product_attention
        return self.o(attend(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2))

    @staticmethod
    def attend(q, k, v, attn_mask=None, scale=None, dropout_p=0.0, is_causal=False, axis=-1):
        scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
        allowed = torch.ones(scores.shape[-2:]).bool().tril() if is_causal else attn_mask
        scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
        return F.dropout(scores.softmax(axis), dropout_p, dropout_p > 0) @ v


class Decoder(nn.Module):
    """Layers that see earlier tokens; two calls are a prompt in two chunks."""

    def __init__(self, written=False, causal=True, widths=(32,) * LAYERS):
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(Attention(width, width // 8, written) for width in widths)
        self.between = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, (*widths[1:], 8), strict=True))

    def forward(self, x, real):
        past = self.layers[0].past
        n_q, n_k = x.shape[1], x.shape[1] + (0 if past is None else past[0].shape[2])
        allowed = torch.ones(n_q, n_k).bool().tril(n_k - n_q) if self.causal else torch.ones(n_q, n_k).bool()
        mask = allowed if real is None else allowed & real[:, None, None, :n_k].bool()
        for layer, linear in zip(self.layers, self.between, strict=True):
            x = linear(x + layer(x, mask))
        return x


def own(**options):
    model, x = Decoder(**options).eval(), torch.randn(2, N, options.get("widths", (32,))[0])

    def run(real, chunks):
        if not chunks:
            return model(x, real)
        model(x[:, :3], real)
        for layer in model.layers:
            layer.past = layer.now
        return model(x[:, 3:], real)

    return model, run


def torch_encoder():
    layer = nn.TransformerEncoderLayer(32, 4, batch_first=True)
    model, x = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval(), torch.randn(2, N, 32)
    return model, lambda real, chunks: model(x, src_key_padding_mask=None if real is None else real == 0)


def family(name):
    def build():
        import transformers

        config = model_families.config(name, "sdpa")
        for each in ("num_hidden_layers", "encoder_layers", "decoder_layers"):
            if hasattr(config, each):
                setattr(config, each, LAYERS)
        model = transformers.AutoModel.from_config(config).eval()
        given = watch_families.inputs_of(model)

        def run(real, chunks):
            inputs = dict(given) | ({"attention_mask": REAL} if "attention_mask" in given else {})
            if real is None:
                inputs.pop("attention_mask", None)
            if not chunks:
                return model(**inputs)
            ids = inputs.pop("input_ids")
            past = model(ids[:, :3], use_cache=True).past_key_values
            return model(ids[:, 3:], past_key_values=past)

        return model, run

    return build


class Kind(NamedTuple):
    """A model, and what can be planted in it."""

    build: object
    causal: bool = False
    padded: bool = True
    chunks: bool = False


MODELS = {
    "own decoder with a cache": Kind(lambda: own(), causal=True, chunks=True),
    "own decoder, written out": Kind(lambda: own(written=True), causal=True, chunks=True),
    "own encoder, in stages": Kind(lambda: own(causal=False, widths=(16, 16, 32, 32)), padded=True),
    "nn.TransformerEncoder": Kind(torch_encoder),
    "GPT-2": Kind(family("GPT-2"), causal=True, chunks=True),
    "Llama": Kind(family("Llama"), causal=True, chunks=True),
    "OPT": Kind(family("OPT"), causal=True),
    "BERT": Kind(family("BERT")),
    "BART": Kind(family("BART, encoder")),
    "ViT": Kind(family("ViT"), padded=False),
}


# --- faults, as changes of one call


def _allowed(q, k, mask, is_causal):
    ones = torch.ones(q.shape[-2], k.shape[-2]).bool()
    mask = ones.tril() if is_causal else ones if mask is None else mask
    mask = mask if mask.dtype == torch.bool else mask > -1e4
    return mask.expand(len(q), mask.shape[1] if mask.dim() == 4 else 1, q.shape[-2], k.shape[-2])


def _dropped(q, k, v, o):
    return q, k, v, o | {"attn_mask": None, "is_causal": False}


def _inverted(q, k, v, o):
    return q, k, v, o | {"attn_mask": ~_allowed(q, k, o["attn_mask"], o["is_causal"]), "is_causal": False}


def _shifted(q, k, v, o):
    return q, k, v, o | {"attn_mask": _allowed(q, k, o["attn_mask"], o["is_causal"]).roll(1, -1), "is_causal": False}


def _unpadded(q, k, v, o):
    allowed = _allowed(q, k, o["attn_mask"], o["is_causal"])
    later = torch.ones(allowed.shape[-2:]).bool().triu(1) & ~allowed[:1].any(0)
    return q, k, v, o | {"attn_mask": ~later.expand_as(allowed), "is_causal": False}


def _alike(q, k, v, o):
    q, k = q.clone(), k.clone()
    q[:, 1] = q[:, 0]
    if k.shape[1] == q.shape[1]:
        k[:, 1] = k[:, 0]
    return q, k, v, o


def _width(q, k, v, o):
    return q, k, v, o | {"scale": (q.shape[1] * q.shape[3]) ** -0.5}


def _upper_left(q, k, v, o):
    return (q, k, v, o | {"attn_mask": None, "is_causal": True}) if q.shape[-2] < k.shape[-2] else (q, k, v, o)


MASK = {"causality", "padding", "allowed keys", "fully masked row", "float16", "large inputs"}
# What is planted: the change, in which calls (None: all), the probes that may name it, and where it makes sense.
FAULTS = {
    "mask dropped in one layer": (_dropped, ODD, MASK, lambda kind: kind.padded),
    "mask inverted in one layer": (_inverted, ODD, MASK, lambda kind: kind.padded),
    "mask shifted in one layer": (_shifted, ODD, MASK, lambda kind: kind.padded),
    "padding lost in one layer": (_unpadded, ODD, {"padding"}, lambda kind: kind.padded and not kind.causal),
    "padding not handed on": (None, None, {"padding"}, lambda kind: kind.padded and not kind.causal),
    "another scale in one layer": (
        lambda q, k, v, o: (q, k, v, o | {"scale": 2 * q.shape[-1] ** -0.5}), ODD, {"score scale"}, lambda kind: True
    ),
    "scale of the layer's width": (_width, None, {"score scale"}, lambda kind: True),
    "dropout outside training": (
        lambda q, k, v, o: (q, k, v, o | {"dropout_p": 0.1}), None, {"determinism"}, lambda kind: True
    ),
    "two heads alike in one layer": (_alike, ODD, {"heads differ"}, lambda kind: True),
    "overflow in one layer": (
        lambda q, k, v, o: (torch.full_like(q, torch.inf), k, v, o), ODD, {"large inputs"}, lambda kind: True
    ),
    "upper left mask behind a cache": (_upper_left, None, {"cache"}, lambda kind: kind.chunks),
    "maps are a mean over heads": (None, None, {"maps"}, lambda kind: True),
}  # fmt: skip


@contextlib.contextmanager
def planted(change, at):
    """Let attention, torch's and the written one, be called with a change: in call number `at`, or in all."""
    count = itertools.count()

    def around(attend):
        def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **more):
            options = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, **more}
            if change is not None and at in (None, next(count)):
                q, k, v, options = change(q, k, v, options)
            return attend(q, k, v, **options)

        return attention

    inside = mock.patch.dict(_mode._names, scaled_dot_product_attention=around(sdpa))  # of nn.MultiheadAttention
    written = staticmethod(around(Attention.attend))
    fused = mock.patch.object(F, "scaled_dot_product_attention", around(sdpa))
    with inside, fused, mock.patch.object(Attention, "attend", written):
        yield


def examine(model, fault=None, chunks=False):
    """Return the Report on a model, with one of FAULTS or without, on a prompt in two chunks or in one."""
    torch.manual_seed(0)
    kind = MODELS[model]
    built, run = kind.build()
    for weights in built.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.2)  # those of a fresh model attend to all alike
    change, at, _, _ = FAULTS.get(fault, (None,) * 4)
    chunks |= fault == "upper left mask behind a cache"
    with torch.no_grad(), planted(change, at), watch(built) as seen:
        run(None if chunks or fault == "padding not handed on" else REAL, chunks)
    maps = None
    if fault == "maps are a mean over heads":
        maps = [torch.stack([torch.tensor(call.trace(b).weights) for b in range(call.b)]) for call in seen]
        maps = [x.mean(1, keepdim=True).expand_as(x) for x in maps]
    return report(seen, real=REAL if kind.padded and not chunks else None, maps=maps)


def verdict(said, probes, numbers=None):
    """Return "found", "missed" or what is named in its place: by which probes, at which calls, else at any."""
    named = [place for place in said if place.verdict in ("wrong", "beware")]
    calls = [{*map(int, re.findall(r"\d+", re.match(r"[\d, ]*", place.where)[0]))} for place in named]
    here = [place.probe in probes and (numbers is None or at & numbers) for place, at in zip(named, calls, strict=True)]
    false = [place for place, right in zip(named, here, strict=True) if not right and place.verdict == "wrong"]
    false = [place for place in false if place.probe != "large inputs"]  # what a mask that hides all does further on
    return f"{false[0].probe} at {false[0].where}" if false else "found" if any(here) else "missed"


def judge(model, fault):
    """Return "found", "missed" or what is named in its place."""
    _, at, probes, _ = FAULTS[fault]
    return verdict(examine(model, fault), probes, None if at is None else {at})


def row(model, results, *clean):
    """Return a row of the table: what the reports on a clean model say, and what became of each fault."""
    missed = [fault for fault, result in results.items() if result == "missed"]
    false = [f"{fault}: {result}" for fault, result in results.items() if result not in ("found", "missed")]
    said = "; ".join({f"{place.verdict}: {place.probe}": 0 for places in clean for place in places}) or "silent"
    found = len(results) - len(missed) - len(false)
    cells = model, said, len(results), found, "; ".join(missed) or 0, "; ".join(false) or 0
    return f"| {' | '.join(map(str, cells))} |"


def rows():
    """Yield a row for each model."""
    for model, kind in MODELS.items():
        results = {fault: judge(model, fault) for fault, (*_, fits) in FAULTS.items() if fits(kind)}
        yield row(model, results, *(examine(model, chunks=chunks) for chunks in {False, kind.chunks}))


if __name__ == "__main__":
    watch_families.write("faults", HEAD, rows())

"""Which module is correct, and which probe must see which bug."""

from typing import NamedTuple

import torch

from . import newer_styles as n
from . import other_styles as o
from . import self_attention as s


class Case(NamedTuple):
    style: type
    bug: str | None = None
    probe: str | None = None  # that must see it
    make: dict = {}  # noqa: RUF012
    heads: int = 4
    more: dict = {}  # noqa: RUF012

    @property
    def name(self):
        return f"{self.style.__name__}{self.make or ''}: {self.bug or 'correct'}"

    def module(self):
        torch.manual_seed(0)
        return self.style(**self.make, **({"bug": self.bug} if self.bug else {}))

    def arguments(self):
        return {"embed_dim": 32, "num_heads": self.heads, **self.more}


def no_value(module, query, key, value, mask):
    return module(query, key, mask)


def turned(module, query, key, value, mask):
    return module(query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1))[0].transpose(0, 1)


def as_they_are(module, query, key, value, mask):
    return module(query, key, value)[0]


def four_axes(module, query, key, value, mask):
    return module(query, key, value, None if mask is None else mask[:, None])["hidden"]


TINY = {"std": 0.001}

CASES = [
    Case(s.FusedCausal),
    Case(s.FusedCausal, "scale of embed_dim", "score scale"),
    Case(s.FusedCausal, "scaled scores not used", "score scale"),
    Case(s.FusedCausal, "sees the next token", "causality", more={"causal": True}),
    Case(s.FusedCausal, "mask turned round", "causality"),
    Case(s.FusedCausal, "sees itself only", "allowed keys"),
    Case(s.FusedCausal, "sees the first only", "allowed keys"),
    Case(s.FusedCausal, "fill of -10", "causality", more={"causal": True}),
    Case(s.FusedCausal, "v is k", "dead parameters"),
    Case(s.FusedCausal, "k is q", "dead parameters"),
    Case(s.FusedCausal, "split without transpose", "permutation", more={"causal": True}),
    Case(s.FusedCausal, "merge without transpose", "permutation"),
    Case(s.FusedCausal, "softmax over queries", "row sums", more={"causal": True}),
    Case(s.FusedCausal, "hides itself", "allowed keys"),
    Case(s.FusedCausal, "a head times 0", "dead parameters"),
    Case(s.FusedCausal, make=TINY),
    Case(s.FusedCausal, "sees the next token", "causality", TINY, more={"causal": True}),
    Case(s.FusedCausal, "merge without transpose", "permutation", TINY),
    Case(s.ListOfHeads),
    Case(s.ListOfHeads, "scale of the full width", "score scale"),
    Case(s.ListOfHeads, "probabilities rounded", "row sums"),
    Case(s.ListOfHeads, "the same head each time", "heads differ"),
    Case(s.ListOfHeads.Head, None, None, {"n_embd": 32, "head_size": 8, "bug": None}, 1),
    Case(s.ListOfHeads.Head, None, "score scale", {"n_embd": 32, "head_size": 8, "bug": "scale of the full width"}, 1),
    Case(s.Bert),
    Case(s.Bert, "value layer not called", "dead parameters"),
    Case(s.Bert, "mask ignored", "causality"),
    Case(s.Bert, "mask on the queries", "causality"),
    Case(s.Bert, "mask of row 0 for all", "allowed keys"),
    Case(s.Bert, "mask of sequence 0 for all", "padding"),
    Case(s.Bert, "dropout that never stops", "determinism"),
    Case(s.Bert, "normalised over the batch", "batch consistency"),
    Case(s.ZerosAndOnes),
    Case(s.ZerosAndOnes, "sign of the fill", "mask polarity"),
    Case(s.Swallows),
    Case(s.Vision),
    Case(s.Vision, make={"init_zero": True}),
    Case(s.Vision, "multiplied by the root", "score scale"),
    Case(s.Vision, "scaled by d", "score scale"),
    Case(s.Vision, "heads before tokens", "permutation"),
    Case(s.Vision, "attends over heads", "allowed keys"),
    Case(s.Vision, "writes into the input", "inputs untouched"),
    Case(s.Vision, "exp without the maximum", "large inputs"),
    Case(s.Rotary),
    Case(s.Rotary, "scaled twice", "score scale"),
    Case(s.Rotary, "mask turned round", "causality"),
    Case(s.Rotary, "hides itself", "allowed keys"),
    Case(s.Rotary, "not causal", "causality", more={"causal": True}),
    Case(s.Rotary, "merge without transpose", "permutation"),
    Case(s.RelativeBias),
    Case(s.RelativeBias, "scale left out", "score scale"),
    Case(s.RelativeBias, "mask multiplied into scores", "causality"),
    Case(s.BigHeads),
    Case(s.BigHeads, "scale of embed_dim", "score scale"),
    Case(s.BigHeads, "only the first key left", "allowed keys"),
    Case(s.BigHeads, "half of the heads lost", "dead parameters"),
    Case(s.Image, heads=1),
    Case(s.Image, "weights not transposed", "row sums", heads=1),
    Case(s.TuplesOfCache),
    Case(s.TuplesOfCache, "values in front", "cache"),
    Case(s.TuplesOfCache, "only the last value kept", "cache"),
    Case(s.TuplesOfCache, "past of sequence 0", "cache"),
    Case(s.TuplesOfCache, "upper left mask", "cache"),
    Case(s.TuplesOfCache, "no mask in a chunk", "cache"),
    Case(s.KVCacheOfOurs, more={"causal": True, "positions": True}),
    Case(s.KVCacheOfOurs, "positions restart", "cache", more={"causal": True, "positions": True}),
    Case(s.KeepsItsWeights),
    Case(o.Annotated),
    Case(o.Annotated, "keys from the query", "keys matter"),
    Case(o.Annotated, "key and value exchanged", "values apart"),
    Case(o.Annotated, "rows and columns of the mask", "causality"),
    Case(o.Annotated, "mask after the softmax", "row sums"),
    Case(o.Annotated, "fill of -1e20", "float16"),
    Case(o.Annotated, "copies of one layer", "heads differ"),
    Case(o.Annotated, "queries and keys exchanged", "argument order"),
    Case(o.ValuesFirst),
    Case(o.ValuesFirst, "one small projection", "heads differ"),
    Case(o.Fused),
    Case(o.Fused, "mask inverted", "mask polarity"),
    Case(o.Fused, "mask dropped", "causality"),
    Case(o.Fused, "no scale", "score scale"),
    Case(o.SequenceFirst),
    Case(o.SequenceFirst, "scale of embed_dim", "score scale"),
    Case(o.SequenceFirst, "padding inverted", "mask polarity"),
    Case(o.SequenceFirst, "softmax over queries", "row sums"),
    Case(o.AxesOfXL),
    Case(o.AxesOfXL, "softmax over queries", "row sums"),
    Case(o.Cross),
    Case(o.Cross, "keys from the query", "keys matter"),
    Case(o.Cross, "scores not used", "keys matter"),
    Case(o.Cross, "context ignored", "keys matter"),
    Case(o.Cross, "queries and keys exchanged", "argument order"),
    Case(o.Cross, more={"call": no_value}),
    Case(o.Cross, "keys from the query", "keys matter", more={"call": no_value}),
    Case(o.Cross, "context ignored", "keys matter", more={"call": no_value}),
    Case(o.Fused, more={"call": four_axes}),
    Case(o.Fused, "mask dropped", "causality", more={"call": four_axes}),
    Case(o.SequenceFirst, more={"call": turned, "batch_first": False}),
    Case(o.SequenceFirst, more={"call": as_they_are, "batch_first": False}),
    Case(o.SequenceFirst, "softmax over queries", "row sums", more={"call": as_they_are}),
    Case(o.Graph, heads=1),
    Case(o.Graph, "edges turned round", "causality", heads=1),
    Case(o.Lengths, heads=1),
    Case(o.Lengths, "one key too many", "padding", heads=1),
    Case(o.Cosine),
    Case(n.Sink),
    Case(n.Sink, make={"start": 5.0}),
    Case(n.Sink, "scale of embed_dim", "score scale"),
    Case(n.Sink, "sees the next token", "causality", more={"causal": True}),
    Case(n.Sink, "mask after the softmax", "causality", more={"causal": True}),
    Case(n.PlusOne),
    Case(n.PlusOne, "exp without the maximum", "large inputs"),
    Case(n.PlusOne, "softmax over queries", "row sums"),
    Case(n.PlusOne, "mask after the softmax", "causality"),
    Case(n.Differential),
    Case(n.Differential, make={"fixed": True}),
    Case(n.Differential, "one map without the mask", "causality", more={"causal": True}),
    Case(n.Latents),
    Case(n.Latents, make={"beside": False}),
    Case(n.Latents, "scale of the full width", "score scale", {"beside": False}),
    Case(n.Latents, "x not read", "keys matter", {"beside": False}),
    Case(n.NullKey),
    Case(n.NullKey, "mask one to the right", "causality"),
    Case(n.TwoMasks),
    Case(n.TwoMasks, "pairs ignored", "causality"),
    Case(n.TwoMasks, "padding ignored", "padding"),
    Case(n.TwoMasks, "one or the other", "padding"),
    Case(n.TwoMasks, "mask hides the token itself", "allowed keys"),
    Case(n.Window),
    Case(n.Window, more={"batch_first": False}),
    Case(n.Window, "scale of embed_dim", "score scale"),
    Case(n.Window, "sees the next token", "causality", more={"causal": True, "batch_first": False}),
    Case(n.Window, "attends over the batch", "layout", more={"batch_first": False}),
]

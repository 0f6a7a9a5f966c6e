"""All probes in order, and which of them must be well before another one says anything."""

from collections.abc import Callable
from typing import NamedTuple

from ..findings import CouldNotTell, Finding
from . import _asking as asking
from . import _cache as cache
from . import _invariance_probes as invariance
from . import _reach_probes as reach
from . import _weight_probes as weights
from ._verdicts import short


class _Probe(NamedTuple):
    name: str
    measure: Callable
    look_at: str
    needs: tuple = ()  # where one of these went wrong, this one would only repeat it, and mislead


_SAME = ("determinism",)
_TOKENS = (*_SAME, "permutation", "batch consistency")
_WITH_MASK = (*_TOKENS, "row sums")
_ORDERED = (*_WITH_MASK, "causality", "padding")
_KEYS = "(values, keys, query) instead of (query, key, value): pass them by name; inside, which is which"

PROBES = (
    _Probe("determinism", invariance.deterministic, "F.dropout without training=self.training"),
    _Probe("layout", reach.layout, "batch_first=; attention along the batch axis?"),
    _Probe("inputs untouched", invariance.untouched, "+=, *=, masked_fill_ on an argument"),
    _Probe("row sums", weights.row_sums, "the axis of the softmax; a mask or a rounding after it", _SAME),
    _Probe("batch consistency", invariance.batch, "an axis counted from the front, or a sum over the batch", _SAME),
    _Probe(
        "permutation", reach.permutation, "reshape without transpose: it mixes tokens", (*_SAME, "batch consistency")
    ),
    _Probe("causality", reach.causality, "whether the mask reaches the softmax as -inf, and its shape", _WITH_MASK),
    _Probe(
        "padding", reach.padding, "whether the mask reaches the softmax as -inf; (b, n) needs [:, None, :]", _WITH_MASK
    ),
    _Probe("mask polarity", reach.polarity, "what True means to those who call it", _WITH_MASK),
    _Probe("allowed keys", reach.allowed, "a mask that blocks too much; an axis that is not the tokens", _ORDERED),
    _Probe(
        "fully masked row", reach.fully_masked, "the fill: a finite one lets all keys in, -inf gives NaN", _WITH_MASK
    ),
    _Probe("dead parameters", invariance.dead, "layers made in __init__ and not used in forward", _SAME),
    _Probe(
        "heads differ",
        weights.heads,
        "one small projection shared by all heads; copies",
        (*_SAME, "batch consistency", "dead parameters"),
    ),
    _Probe("score scale", weights.scale, "the divisor of the scores: sqrt of the width *after* splitting"),
    _Probe("keys matter", weights.keys_matter, "keys made from the query; scores that are not used", _SAME),
    _Probe("values apart", weights.values_apart, "keys and values exchanged", _SAME),
    _Probe("argument order", weights.order, _KEYS, (*_SAME, "permutation", "keys matter")),
    _Probe(
        "cache",
        cache.cached,
        "the order of old and new keys; a position that starts at 0 again; in chunks the mask: lower right",
        _ORDERED,
    ),
    _Probe("one answer", asking.one_answer, "", (*_ORDERED, "allowed keys")),
    _Probe("large inputs", invariance.large, "exp without subtracting the maximum of the row"),
    _Probe("float16", invariance.float16, "a fill beyond 65504, such as -1e20; use -inf", (*_SAME, "row sums")),
)


def examine(patient):
    findings = {}
    for probe in PROBES:
        first = [name for name in probe.needs if findings[name].verdict == "wrong"]
        elsewhere = ()  # where to look, if what was found is not what the probe is there for
        try:
            if first:
                raise CouldNotTell(f"first see to {first[0]}")
            verdict, measured, *elsewhere = probe.measure(patient)
        except CouldNotTell as reason:
            verdict, measured = "could not tell", str(reason)
        except Exception as error:  # a probe must never end the examination
            verdict, measured = "could not tell", short(error)
        look_at = (*elsewhere, probe.look_at)[0] if verdict in ("wrong", "beware") else ""
        findings[probe.name] = Finding(probe.name, verdict, measured, look_at)
    return findings.values()

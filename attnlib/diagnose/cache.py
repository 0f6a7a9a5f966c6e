"""The probe for a cache of keys and values: one token at a time must give what all at once give."""

import sys

import torch

from .caller import tensors
from .patient import copied
from .report import CouldNotTell
from .verdicts import amount, judge, short

_POSITIONS = ("start_pos", "position", "offset", "cos", "freq")


def cached(p):
    names = [q.name for q in p.caller.parameters] if p.caller.own is None and "x" in p.caller.roles else []
    caches = [
        name for name in names if ("cache" in name or "past" in name) and not name.startswith(("use_", "cache_pos"))
    ]
    if not caches and "use_cache" not in names:
        raise CouldNotTell("there is no cache")
    whole = _all_at_once(p)
    alone = torch.cat([p.run(p.x[:, i : i + 1]) for i in range(p.n)], 1)
    failed, reason = None, "no known kind of cache works"
    for start in _starts(caches):
        try:
            steps = _one_at_a_time(p, start, {"use_cache": True} if "use_cache" in names else {})
        except Exception as error:
            reason = short(error)
            continue
        moved = p.change(steps, whole).max()
        if moved <= p.tolerance:
            return "ok", "one token at a time or all at once: outputs differ by 0"
        if p.moved(steps, alone)[:, 1:].any():
            failed = moved
    if failed is None or any(word in name for word in _POSITIONS for name in names):
        raise CouldNotTell(reason)
    return judge(False, f"one token at a time or all at once: outputs differ by {amount(failed)}")


def _all_at_once(p):
    if p.causal:
        return p.run(p.x)
    if not p.pairs.works:
        raise CouldNotTell("all at once needs a causal mask, and it takes none")
    return p.run(p.x, p.mask(p.pairs.form, torch.ones(p.n, p.n, p.n, dtype=torch.bool).tril()))


def _starts(names):
    """Yield what to give the first token: a cache kept inside, one that is handed back, or one that is filled."""
    yield {}
    for name in names:
        yield {name: None}
        yield {name: {}}
        if "transformers" in sys.modules:
            yield {name: sys.modules["transformers"].DynamicCache()}


def _one_at_a_time(p, given, flags):
    module, outputs = copied(p.module), []
    hands_back = None in given.values()
    for i in range(p.n):
        output, result = p.caller(module, p.x[:, i : i + 1].clone(), masks={**flags, **given})
        outputs.append(output)
        if hands_back:
            given = dict.fromkeys(given, _handed_back(result))
    return torch.cat(outputs, 1)


def _handed_back(result):
    """Return the part of a result that holds keys and values: two tensors, or one of them stacked."""
    parts = list(result.values()) if isinstance(result, dict) else result
    if not isinstance(parts, tuple | list):
        return None
    for part in parts[1:]:
        if isinstance(part, tuple | list | dict) and len(list(tensors(part))) >= 2:
            return part
    return next((x for x in parts[1:] if isinstance(x, torch.Tensor) and x.ndim >= 4), None)

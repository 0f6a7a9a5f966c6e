"""The probe for a cache of keys and values: one token at a time, and in chunks, must give what all at once give."""

import contextlib
import copy
import sys

import torch

from ..findings import CouldNotTell
from ..following import tensors
from ..torch_layers import KVCache
from ._caller import OFFSETS
from ._patient import copied
from ._verdicts import amount, judge, short

_POSITIONS = ("start_pos", "position", "offset", "cos", "freq")


def cached(p):
    names = [q.name for q in p.caller.parameters] if p.caller.own is None else []
    caches = [q.name for q in p.caller.parameters if q.name in names and _takes_cache(p, q)]
    if not caches and "use_cache" not in names and not p.stateful and not OFFSETS & set(names):
        raise CouldNotTell("there is no cache")
    if "x" not in p.caller.roles:
        raise CouldNotTell("it takes keys beside a cache; give a module that takes one sequence")
    alone = torch.cat([p.run(p.x[:, i : i + 1]) for i in range(p.n)], 1)
    failed, why, ignored, unread = None, "", "", ""
    for start, flags, ours in _attempts(p, caches, names):
        try:
            steps = _in_chunks(p, start, flags, [1] * p.n)
            whole = _all_at_once(p, flags=flags)
        except _NotTaken as error:
            unread = unread or ("" if ours else str(error))
            continue
        except Exception:
            continue
        moved = p.change(steps, whole).max()
        if moved <= p.tolerance:
            return _chunks_too(p, start, flags, whole)
        if not p.moved(steps, alone).any() and None in start.values():
            ignored = f"what it hands back and gets again moves nothing ({', '.join(start)})"
        if p.moved(steps, alone)[:, 1:].any():
            failed = moved
            with contextlib.suppress(Exception):  # what is wrong stays wrong, whatever more is asked
                why = _why(p, start, flags)
            if ours:
                break
    positions = any(word in name for word in _POSITIONS for name in set(names) - OFFSETS)
    if not positions and failed is None and (ignored or unread):
        return "beware", ignored or unread, "what of the past is read, and which entries of it are kept"
    if positions or failed is None:
        _all_at_once(p)  # says so if it needs a mask that it does not take
        raise CouldNotTell("no known kind of cache works" + ", without positions" * positions)
    return judge(False, f"one token at a time or all at once: outputs differ by {amount(failed)}{why}")


def _takes_cache(p, argument):
    """Whether an argument takes a cache, as its name says, and neither a switch nor what is read as a context."""
    name, known = argument.name, {*p.caller.roles.values(), *(p.caller.held or {}), p.caller.ignored}
    if isinstance(argument.default, bool) or name in known or name.startswith(("use_", "cache_pos")):
        return False
    return "cache" in name or "past" in name or ("kv" in name and argument.default is None)


def _attempts(p, caches, names):
    """Yield what to give the first token, the switches that are on, and whether one of them is our own guess.

    Such a switch counts only where the module then hands back what it takes again.
    """
    usual = {"use_cache": True} if "use_cache" in names else {}
    yield from ((start, usual, False) for start in _starts(caches, p.caller.held))
    for q in p.caller.parameters:
        words = ("cache", "past", "present", "kv")
        if q.default is False and q.name not in usual and any(word in q.name for word in words):
            yield from (({name: None}, {**usual, q.name: True}, True) for name in caches)


def _why(p, start, flags):
    """Return what tokens fed one at a time show besides: whom the newest does not see, what it does not know."""

    def fed(x):
        return _in_chunks(p, start, flags, [1] * p.n, x)

    if missed := _missed(p, fed):
        return f"; the newest does not see the {missed} before it"
    turned = p.x.clone()
    turned[:, :2] = p.x[:, :2].flip(1)
    known, kept = (p.moved(run(turned), run(p.x))[:, -1] for run in (lambda x: _all_at_once(p, x), fed))
    if known.all() and not kept.any():
        return "; the order of the tokens before the newest does not count"
    apart = torch.cat([fed(p.x[i : i + 1]) for i in range(len(p.x))])
    return "" if p.moved(apart, _all_at_once(p)).any() else "; each sequence alone is right"


def _missed(p, fed):
    """Return how many tokens right before the newest it does not see: the end of the cache."""
    other, before = p.draw(p.n), fed(p.x)
    seen = [0]
    for j in range(p.n):
        x = p.x.clone()
        x[:, j] = other[:, j]
        if p.moved(fed(x), before)[:, -1].any():
            seen.append(j + 1)
    # Its own query moves the output, too: what counts is the last token before it.
    before_it = seen[-2] if seen[-1] == p.n else seen[-1]
    return p.n - 1 - before_it


def _chunks_too(p, start, flags, whole):
    """Feed a module that is causal by itself chunks: there a mask of the upper left corner, or none, shows.

    Some good modules leave that mask to those who call them, so it is no more than a warning.
    """
    good = "one token at a time or all at once: outputs differ by 0"
    if not p.causal:  # it would have to be handed a mask of the right corner
        return "ok", good
    try:
        moved = p.change(_in_chunks(p, start, flags, [2, p.n - 2]), whole).max()
    except Exception:
        return "ok", good  # it takes one token at a time, and says so
    if moved <= p.tolerance:
        return "ok", "one token at a time, in chunks or all at once: outputs differ by 0"
    return "beware", f"right one token at a time; in chunks outputs differ by {amount(moved)}"


def _all_at_once(p, x=None, flags=None):
    if not p.causal and not p.pairs.works:
        raise CouldNotTell("all at once needs a causal mask, and it takes none")
    given = (flags or {}) if p.causal else p.mask(p.pairs.form, p.causal_mask) | (flags or {})
    return p.caller(p.fresh(p.module), (p.x if x is None else x).clone(), masks=given or None)[0]


def _starts(names, held):
    """Yield what to give the first token: a cache kept inside, one that is handed back, or one that is filled."""
    yield {}
    for name in names:
        yield {name: None}
        yield {name: {}}
        yield {name: KVCache()}
        if "transformers" in sys.modules:
            kept = sys.modules["transformers"]
            yield {name: kept.DynamicCache()}
            if held:  # one for its own keys, one for those of what it reads
                yield {name: kept.EncoderDecoderCache(kept.DynamicCache(), kept.DynamicCache())}


def _in_chunks(p, given, flags, sizes, x=None):
    module, outputs, done = copied(p.module), [], 0
    hands_back, given = None in given.values(), copy.deepcopy(given)  # what one attempt filled is of no use to the next
    starts = [q.name for q in p.caller.parameters if q.name in OFFSETS]
    for chunk in (p.x if x is None else x).split(sizes, dim=1):
        try:
            output, result = p.caller(module, chunk.clone(), masks={**flags, **given, **dict.fromkeys(starts, done)})
        except Exception as error:
            if hands_back and outputs and _holds_keys_and_values(given):
                raise _NotTaken(f"what it hands back it cannot take: {short(error)}") from error
            raise
        outputs.append(output)
        done += chunk.shape[1]
        if hands_back:
            given = dict.fromkeys(given, _handed_back(result))
            if done == p.n and not _holds_keys_and_values(given):
                raise CouldNotTell("no known kind of cache works")
    return torch.cat(outputs, 1)


class _NotTaken(ValueError):
    """The module cannot go on with keys and values that it returned."""


def _holds_keys_and_values(given):
    """Whether what is handed back is at least two tensors: one may be the weights."""
    return all(len(list(tensors(x))) >= 2 for x in given.values())


def _handed_back(result):
    """Return the part of a result that holds keys and values: two tensors, or one of them stacked."""
    parts = list(result.values()) if isinstance(result, dict) else result
    if not isinstance(parts, tuple | list):
        return None
    for part in parts[1:]:
        if isinstance(part, tuple | list | dict) and len(list(tensors(part))) >= 2:
            return part
    return next((x for x in parts[1:] if isinstance(x, torch.Tensor) and x.ndim >= 4), None)

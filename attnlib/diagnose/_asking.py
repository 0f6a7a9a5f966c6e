"""The probe for two answers from one layer: the same input, asked for in every way that the module offers."""

import re

import torch
from torch.nn.utils.parametrize import is_parametrized

from ..following import tensors
from ._attempts import Neutral
from ._forms import is_for_padding
from ._patient import copied
from ._verdicts import amount

_RETURNS_WEIGHTS = re.compile(r"(need|return|output|ret|with|get)_?(attn|attention|weight|score|prob)", re.IGNORECASE)
_FLOAT = "a mask of 0 and -inf"
_UNMASKED = "without a mask"
_ROUNDING = 0.02  # of the spread: a path in half precision may differ by less, and mean to


def one_answer(p):
    """Gradients or none, training or not, weights asked for or not, no mask or one of True, boolean or float."""
    asked, differ = 0, []
    for way, mask, ask, usual, real in _ways(p):
        try:
            one, other = ask(), usual()
        except Exception:
            continue  # the module does not offer it
        if one.shape != other.shape:
            continue  # it is asked for something else
        asked += 1
        change = float(p.change(one, other)[real].max())
        if change > max(p.tolerance, 1e-6):
            differ.append((way != _FLOAT, change, way, mask))
    if other := _other_map(p):
        return *other, "what is done to the weights before they are returned"
    if not differ:
        return "ok", f"asked in {asked} other ways: outputs differ by 0"
    _, change, way, mask = max(differ)
    measured = f"{way}{mask}: outputs differ by {amount(change)}"
    if way == _FLOAT:  # some take 0 and 1, where 0 is blocked; in a float mask that is added it means the opposite
        return "beware", measured, "what a float mask means: 0 and -inf are added to the scores"
    if way == _UNMASKED and p.causal_if_masked:  # an encoder and a decoder share such a layer
        return "beware", f"{measured}; it is causal only if it is handed a mask", "whether both are meant"
    return ("wrong" if change > _ROUNDING else "beware"), measured, f"the branch {way}: mask and scale in both"


def _other_map(p):
    """Return what is amiss with weights that are handed back, if they are those that were used, in another order."""
    flags = dict.fromkeys(_flags(p), True)
    seen = p.watch(p.x[:2], masks=flags or None, need=False)
    used = torch.cat([use.weights for use in seen.uses]) if seen.uses else torch.empty(0, p.n, p.n)
    maps = [x for x in tensors(seen.result) if x.ndim > 2 and len(x) == 2 and x.shape[-2:] == (p.n, p.n)]
    if not maps or len(used) % 2:
        return None
    used = torch.cat([used, used.unflatten(0, (2, -1)).mean(1), used.unflatten(0, (-1, 2)).mean(0)])

    def are_used(x):
        x = x.detach().reshape(-1, 1, p.n, p.n).to(used.dtype)
        return bool(((x - used).abs().flatten(2).amax(-1).amin(-1) < 1e-6).all())

    try:
        alone = [*tensors(p.caller(p.fresh(p.module), p.x[1:2].clone(), masks=flags or None)[1])]
    except Exception:
        alone = []  # it takes no batch of 1
    for x in maps:
        if not are_used(x) and are_used(x.mT):
            return "beware", "the weights handed back are those used with queries and keys exchanged"
        own = [y for y in alone if y.shape[1:] == x.shape[1:] and are_used(x) and are_used(y)]
        if own and not any(torch.allclose(y[0], x[1], atol=1e-6) for y in own):
            return "wrong", "the weights handed back are those of another sequence, or of another head"
    return None


def _ways(p):
    """Yield the name of a way to ask, the mask with it, the call, the usual call, and which outputs must agree."""
    everything = torch.ones(p.n, p.n, dtype=torch.bool)
    for mask, masks, real in _settings(p, everything):

        def usual(masks=masks):
            return p.run(p.x, masks)

        for flag in _flags(p):
            for asked in (True, False):
                yield f"{flag}={asked}", mask, lambda m=masks, f={flag: asked}: _asked(p, m, f), usual, real
        yield "without gradients", mask, lambda m=masks: torch.no_grad()(p.run)(p.x, m), usual, real
        yield "in training", mask, lambda m=masks: _in_training(p, m), usual, real
    for attempt in (p.pairs, p.padding):
        if not attempt.works:
            continue
        if not p.causal and not p.caller.neutral:
            allowing = Neutral(attempt.form, p.num_heads, p.dtype)(p.n, p.n, p.n)
            yield _UNMASKED, "", lambda: p.run(p.x), lambda m=allowing: p.run(p.x, m), everything
        if attempt.form.kind == "boolean" and attempt.form.name == "attn_mask":  # torch's: a float one is added
            added, boolean = (p.mask(attempt.form._replace(kind=x), p.causal_mask) for x in ("additive", "boolean"))
            yield _FLOAT, "", lambda m=added: p.run(p.x, m), lambda m=boolean: p.run(p.x, m), everything


def _settings(p, everything):
    """Yield words for a mask, the arguments that hand it in, and which outputs are not those of padding."""
    yield "", None, everything
    if p.pairs.works:
        yield f", with {p.pairs.form.name}", p.mask(p.pairs.form, p.causal_mask), everything
    if p.padding.works and (is_for_padding(p.padding.form.name) or not p.pairs.works):
        real = torch.arange(p.n) < p.n - 1 - torch.arange(p.n)[:, None] % 3
        real = real.flip(1) if p.causal else real
        pairs = real[:, None].expand(-1, p.n, -1)
        yield f", with {p.padding.form.name}", p.mask(p.padding.form, pairs), real


def _flags(p):
    if p.caller.own is not None:
        return []
    names = [one.name for one in p.caller.parameters if isinstance(one.default, bool | None)]
    return [name for name in names if _RETURNS_WEIGHTS.match(name)]


def _asked(p, masks, flags):
    given = {name: mask.clone() for name, mask in (masks or {}).items()} | flags
    return p.caller(p.fresh(p.module), p.x.clone(), masks=given)[0]


def _in_training(p, masks):
    """Run in training mode with every dropout at 0; ValueError where that is not the same module, or chance remains."""
    module = copied(p.module)
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) or is_parametrized(part):
            raise ValueError("it learns by being called")  # statistics of a batch, the norm of a matrix
        for name, x in vars(part).items():
            if isinstance(x, float) and ("drop" in name or (name == "p" and "Drop" in type(part).__name__)):
                setattr(part, name, 0.0)
    outputs = [p.run(p.x, masks, copied(module.train())) for _ in range(2)]
    if not torch.equal(*(x.nan_to_num() for x in outputs)):
        raise ValueError("chance")
    return outputs[0]

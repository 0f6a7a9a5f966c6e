"""Probes for what any layer must do: the same again, alone, with large numbers, in float16; no dead parameters."""

import torch

from .patient import copied
from .report import CouldNotTell
from .verdicts import amount, judge, short
from .watch import plain_attention


def deterministic(p):
    first, second = p.run(p.x), p.run(p.x)
    same = torch.equal(first.nan_to_num(), second.nan_to_num())
    measured = f"two calls in eval mode differ by {amount(p.change(first, second).max(), 0)}"
    if same or p.watch(p.x, need=False).dropout:
        return judge(same, measured)
    return "beware", measured + ", not by a dropout: random numbers, or something is kept between calls"


def untouched(p):
    inputs = [p.draw(p.n) for _ in range(3)]
    before = [x.clone() for x in inputs]
    p.call(p.module, *inputs)
    masks, kept = {}, {}
    for attempt in (p.padding, p.pairs):
        if attempt.form is not None:
            masks = p.mask(attempt.form, torch.ones(p.n, p.n, p.n, dtype=torch.bool).tril())
            kept = {name: mask.clone() for name, mask in masks.items()}
            p.call(p.module, *[x.clone() for x in before], masks=masks)
    after = [*inputs, *masks.values()]
    changed = sum(not torch.equal(a, b) for a, b in zip(after, [*before, *kept.values()], strict=True))
    return judge(not changed, f"{changed} of {len(after)} tensors were changed")


def batch(p):
    together = p.run(p.x)
    alone = torch.cat([p.run(p.x[i : i + 1]) for i in range(p.n)])
    moved = p.change(alone, together).max()
    return judge(moved <= p.tolerance, f"one by one or all at once: outputs differ by {amount(moved, p.tolerance)}")


def large(p):
    if p.output.isnan().any():
        raise CouldNotTell("inputs as they are give NaN already")
    output = p.run(1000 * p.x.float(), module=p.original) if not p.caller.neutral else p.run(1000 * p.x)
    return judge(bool(output.isfinite().all()), f"inputs times 1000: {int((~output.isfinite()).sum())} NaN or inf")


def float16(p):
    masks, half = None, None
    for attempt in (p.padding, p.pairs):
        if attempt.works:
            causal = torch.ones(p.n, p.n, p.n, dtype=torch.bool).tril()
            masks, half = p.mask(attempt.form, causal), p.mask(attempt.form, causal, torch.float16)
            break
    if masks is None and p.caller.neutral:
        raise CouldNotTell("the module insists on a mask")
    expected = p.run(p.x, masks)
    try:
        output = p.run(p.x.half(), half, copied(p.original).half())
    except Exception as error:
        if "overflow" in str(error):
            return "beware", short(error)
        raise CouldNotTell(f"it does not run in float16 ({short(error)})") from error
    moved = float(p.change(output.to(p.dtype), expected).max())
    return judge(moved < 0.1, "within 0.1 of the spread in float32" if moved < 0.1 else f"differs by {moved:.2g}")


def dead(p):
    parameters = dict(p.module.named_parameters())
    if not parameters:
        raise CouldNotTell("there are no parameters")
    multiplied = p.watch(p.x, need=False).multiplied
    with plain_attention():  # a fused kernel swallows NaN
        runs = _runs(p)
        gradients = _gradients(p, runs)
        idle = {name: _idle_entries(p, name, gradients[name], name in multiplied) for name in parameters}
        # NaN passes a product with 0, a number does not: pruned weights are multiplied by 0 on purpose.
        dead = {name: mask for name, mask in idle.items() if not _matters(p, runs, name, mask, _nan)}
        if any(mask.any() for mask in dead.values()):
            return "wrong", _counted(p, dead, "do nothing")
        zeroed = {name: mask for name, mask in idle.items() if name in multiplied}
        zeroed = {name: mask for name, mask in zeroed.items() if not _matters(p, runs, name, mask, _other_numbers)}
    if any(mask.any() for mask in zeroed.values()):
        return "beware", _counted(p, zeroed, "change nothing, as if multiplied by 0")
    return "ok", _counted(p, {}, "do nothing")


def _counted(p, found, what):
    count = sum(int(mask.sum()) for mask in found.values())
    total = sum(parameter.numel() for parameter in p.module.parameters())
    names = [name if mask.all() else f"part of {name}" for name, mask in found.items() if mask.any()]
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{count} of {total} parameters {what}" + (f": {listed}" if names else "")


def _runs(p):
    """The module in all the ways it can be used: a parameter that one of them needs is alive."""
    runs = [lambda module: p.run(p.x, module=module)]
    if p.caller.two:
        runs.append(lambda module: p.call(module, p.x, p.x.flip(0))[0])
    for attempt in (p.pairs, p.padding):
        if attempt.form is not None:
            masks = p.mask(attempt.form, torch.ones(p.n, p.n, p.n, dtype=torch.bool).tril())
            runs.append(lambda module, masks=masks: p.run(p.x, masks, module))
    return [run for run in runs if _runs_through(run, p.module)]


def _runs_through(run, module):
    try:
        return bool(run(module).isfinite().any())
    except Exception:
        return False


def _gradients(p, runs):
    module = copied(p.module).requires_grad_(True)
    for run in runs:
        run(module).nan_to_num().square().sum().backward()
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def _idle_entries(p, name, gradient, by_slice):
    """Return which entries of a parameter have no gradient.

    Of a matrix whole rows or columns may be dead: a third of a fused projection. A table of which few rows are used
    is no such matrix.
    """
    shape = p.module.get_parameter(name).shape
    idle = torch.ones(shape, dtype=torch.bool) if gradient is None else gradient == 0
    if not idle.all():
        by_slice = by_slice and len(shape) > 1
        axes = range(len(shape)) if by_slice else ()
        slices = [idle.movedim(axis, 0).flatten(1).all(1) for axis in axes]
        idle = torch.zeros(shape, dtype=torch.bool)
        for axis, lost in zip(axes, slices, strict=True):
            idle.movedim(axis, 0)[lost] = True
    return idle


def _nan(old):
    return torch.nan


def _other_numbers(old):
    return torch.linspace(-3, 3, old.numel(), dtype=old.dtype)  # no random ones: later probes draw theirs


def _matters(p, runs, name, idle, poison):
    """Whether the outputs change with entries that have no gradient, which may only be that of a saturated function."""
    if not idle.any():
        return True
    poisoned = copied(p.module)
    with torch.no_grad():
        parameter = poisoned.get_parameter(name)
        parameter[idle] = poison(parameter[idle])
    return any(p.change(run(poisoned), run(p.module)).max() > 0 for run in runs)

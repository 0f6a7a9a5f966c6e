"""Probes for what any layer must do: the same again, alone, with large numbers, in float16; no dead parameters."""

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from ..findings import CouldNotTell, few
from ._caller import NoOutput
from ._patient import copied
from ._verdicts import amount, judge, short
from ._watch import plain_attention


def deterministic(p):
    if p.stateful:
        kept = "a call leaves something behind that changes the next one; each call here is the first one of a copy"
        return "beware", kept, "what forward keeps in self: a cache, a counter"
    first, made = p.run(p.x), set()
    hook = register_module_parameter_registration_hook(
        lambda part, name, x: None if x is None else made.add(type(part).__name__)
    )
    try:
        second = p.run(p.x)
    finally:
        hook.remove()
    differ = p.change(first, second).max()
    same, measured = differ <= p.tolerance, f"two calls in eval mode differ by {amount(differ, p.tolerance)}"
    if made:
        anew = f"{measured}; each makes {' and '.join(sorted(made))} anew, which nothing trains"
        return ("beware" if same else "wrong"), anew, "layers made in forward: make them in __init__"
    if same or p.watch(p.x, need=False).dropout:
        return judge(same, measured)
    return "beware", measured + ", not by a dropout", "random numbers that eval() does not switch off"


def untouched(p):
    inputs = [p.draw(p.n) for _ in range(3)]
    before = [x.clone() for x in inputs]
    p.caller(p.fresh(p.module), *inputs)
    pairs = list(zip(inputs, before, strict=True))
    for attempt in (p.padding, p.pairs):
        for mask in (
            (p.causal_mask, ~p.causal_mask) if attempt.form is not None else ()
        ):  # what is True already cannot become True
            masks = p.mask(attempt.form, mask)
            pairs += [(x, x.clone()) for x in masks.values()]
            p.caller(p.fresh(p.module), *[x.clone().to(p.dtype) for x in before], masks)
    changed = sum(not torch.equal(after, kept) for after, kept in pairs)
    return judge(not changed, f"{changed} of {len(pairs)} tensors were changed")


_SQUEEZE = "squeeze() without an axis: it removes a batch of 1, too"


def batch(p):
    together = p.run(p.x)
    try:
        alone = torch.cat([p.run(p.x[i : i + 1]) for i in range(p.n)])
    except NoOutput as error:
        return "wrong", f"a batch of 1: {short(error)}", _SQUEEZE
    except Exception as error:
        return "beware", f"a batch of 1 raises {short(error)}", _SQUEEZE
    moved = p.change(alone, together).max()
    return judge(moved <= p.tolerance, f"one by one or all at once: outputs differ by {amount(moved, p.tolerance)}")


def large(p):
    if p.output.isnan().any():
        raise CouldNotTell("inputs as they are give NaN already")
    output = p.run(1000 * p.x.float(), module=p.original) if not p.caller.neutral else p.run(1000 * p.x)
    measured = f"inputs times 1000: {int((~output.isfinite()).sum())} NaN or inf"
    if not output.isfinite().all():
        return "wrong", measured
    before, after = (p.watch(scale * p.x[:3], need=False).uses for scale in (1, 1000))
    sums = [torch.cat([use.weights.sum(-1).flatten() for use in uses]) for uses in (before, after) if uses]
    if len(sums) == 2 and ((sums[0] - 1).abs() < 1e-3).all() and (lost := int(((sums[1] - 1).abs() > 1e-3).sum())):
        said = f"{measured}; {lost} rows of weights no longer sum to 1"
        if all(use.scores.less for use in before):  # an exp of its own; behind torch's softmax, a second division
            return "wrong", said, "the maximum: of each row, not of all"
        return "beware", said, "a second division, by sums that become 0"
    return "ok", measured


def float16(p):
    works = next((attempt for attempt in (p.padding, p.pairs) if attempt.works), None)
    masks, half = (works and p.mask(works.form, p.causal_mask, dtype) for dtype in (p.dtype, torch.float16))
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
    if moved < 0.1:
        return "ok", "within 0.1 of the spread in float32"
    measured, half_alone = f"differs by {moved:.2g}", output
    if masks is not None:
        half_alone = p.run(p.x.half(), module=copied(p.original).half())
        if p.change(half_alone.to(p.dtype), p.output).max() <= 0.1:
            return "wrong", measured
    largest = p.watch(p.x, need=False, sizes=True).largest
    if largest > torch.finfo(torch.float16).max:
        large = "a number that is too large for float16, with or without a mask: a bias, scores without a scale"
        return "wrong", measured, large
    if not half_alone.isfinite().all():
        return "wrong", measured, "a number that float16 rounds to 0, as an eps below 1e-8 in a divisor"
    return "beware", f"{measured}, by rounding: no number is above {largest:.2g}", "how small the weights begin"


def dead(p):
    parameters = dict(p.module.named_parameters())
    if not parameters:
        raise CouldNotTell("there are no parameters")
    multiplied = p.watch(p.x, need=False).multiplied
    with plain_attention():  # a fused kernel swallows NaN
        runs = _runs(p)
        if not runs:
            raise CouldNotTell("no run gives a finite output")
        gradients = _gradients(p, runs)
        idle = {name: _idle_entries(p, name, gradients[name], name in multiplied) for name in parameters}
        if any(mask.any() and not mask.all() for mask in idle.values()):
            idle = _without_tables(p, idle, multiplied)
        # NaN passes a product with 0, a number does not: pruned weights are multiplied by 0 on purpose.
        dead = {name: mask for name, mask in idle.items() if not _matters(p, runs, name, mask, torch.nan)}
        if any(mask.any() for mask in dead.values()):
            measured = _counted(p, dead, "do nothing")
            if p.caller.left_out:
                raise CouldNotTell(f"{measured}, but nothing was handed in for {', '.join(p.caller.left_out)}")
            return "wrong", measured
        zeroed = {name: mask for name, mask in idle.items() if name in multiplied}
        zeroed = {name: mask for name, mask in zeroed.items() if not _matters(p, runs, name, mask, 3)}
        idle = _rounding_gradients(gradients)
        taken = {name: mask for name, mask in idle.items() if not _matters(p, runs, name, mask, 7, 1, 1e-9)}
    if any(mask.any() for mask in zeroed.values()):
        return "beware", _counted(p, zeroed, "change nothing, as if multiplied by 0")
    measured = _counted(p, {}, "do nothing")
    if any(mask.any() for mask in taken.values()):
        count = sum(int(mask.sum()) for mask in taken.values())
        measured += f"; {count} change nothing by design: a softmax or a norm takes away what is the same for all"
    if said := _projections(p):
        return "beware", f"{measured}; {said}", "how the projections begin, requires_grad, detach()"
    return "ok", measured


def _rounding_gradients(gradients):
    """Return which entries of biases have a gradient of rounding alone: those of keys, which a softmax cancels."""
    largest = max(float(x.abs().max()) for x in gradients.values() if x is not None)
    biases = {name: x for name, x in gradients.items() if x is not None and x.ndim == 1 and x.any()}
    return {name: x.abs() < 1e-12 * largest for name, x in biases.items()}


def _projections(p):
    """Return what is amiss with queries, keys or values, which `dead` cannot see: they are filled, and set free, there.

    Projections that start at 0; projected ones that no gradient goes through, while one goes through others.
    """
    said = []
    starts = copied(p.unfilled).to(p.dtype)
    for module, what in ((starts, "start as the same for all tokens"), (p.module, "let no gradient through")):
        names = set()
        for use in p.watch(p.x[:2], need=False, module=module).uses:
            sides = {"keys": use.scores.keys, "queries": use.scores.queries, "values": use.values}
            if not use.scores.keys or not any(x.trained for x in sides.values()):
                continue
            for name, x in sides.items():
                if x.alike if module is starts else x.projected and not x.trained:
                    names.add(name)
        said += [f"the {' and '.join(sorted(names))} {what}"] if names else []
    return "; ".join(said)


def _counted(p, broken, what):
    count = sum(int(mask.sum()) for mask in broken.values())
    total = sum(parameter.numel() for parameter in p.module.parameters())
    names = [name if mask.all() else f"part of {name}" for name, mask in broken.items() if mask.any()]
    return f"{count} of {total} parameters {what}" + (f": {few(names)}" if names else "")


def _runs(p):
    """The module in all the ways it can be used: a parameter that one of them needs is alive."""
    runs = [lambda module: p.run(p.x, module=module)]
    if p.caller.two:
        runs.append(lambda module: p.call(module, p.x, p.x.flip(0))[0])
    for attempt in (p.pairs, p.padding):
        if attempt.form is not None:
            masks = p.mask(attempt.form, p.causal_mask)
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
        axes = range(len(shape)) if by_slice and len(shape) > 1 else ()
        slices = [idle.movedim(axis, 0).flatten(1).all(1) for axis in axes]
        idle = torch.zeros(shape, dtype=torch.bool)
        for axis, lost in zip(axes, slices, strict=True):
            idle.movedim(axis, 0)[lost] = True
    return idle


def _without_tables(p, idle, multiplied):
    """Leave out what longer sequences use more of: a matrix with a column for each place."""
    longer = [lambda module: p.run(p.draw(2 * p.n), module=module)]
    if not _runs_through(longer[0], p.module):
        return idle
    gradients = _gradients(p, longer)
    for name, mask in idle.items():
        if not mask.all() and (mask & ~_idle_entries(p, name, gradients[name], name in multiplied)).any():
            idle[name] = torch.zeros_like(mask)
    return idle


def _matters(p, runs, name, idle, largest, keep=0, least=0.0):
    """Whether the outputs change with entries that have no gradient, which may only be that of a saturated function.

    In their place come numbers from -largest to largest, not random ones: later probes draw theirs. keep=1 adds them.
    """
    if not idle.any():
        return True
    poisoned = copied(p.module)
    with torch.no_grad():
        parameter = poisoned.get_parameter(name)
        ramp = torch.linspace(-largest, largest, int(idle.sum()), dtype=parameter.dtype)
        parameter[idle] = keep * parameter[idle] + ramp
    return any(p.change(run(poisoned), run(p.module)).max() > least for run in runs)

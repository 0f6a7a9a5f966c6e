"""Black-box probes for any torch attention module: what does it do, whatever its code says?"""

import copy
import html
from collections.abc import Callable
from typing import NamedTuple

import torch

from .. import masks, validation
from .observe import Caller, Watch


class Finding(NamedTuple):
    """One line of a diagnosis."""

    probe: str
    verdict: str  # "ok", "beware", "wrong" or "could not tell"
    measured: str
    look_at: str


class CouldNotTell(Exception):
    """A probe does not apply, or the module does not show what it needs."""


class Diagnosis(tuple):
    """All findings, in order. Index it by the name of a probe; it shows itself as a table."""

    __slots__ = ()

    def __getitem__(self, key):
        if isinstance(key, str):
            return next(finding for finding in self if finding.probe == key)
        return super().__getitem__(key)

    @property
    def wrong(self):
        """Names of the probes that found something wrong."""
        return [finding.probe for finding in self if finding.verdict == "wrong"]

    def __repr__(self):
        rows = [("probe", "verdict", "measured", "look at"), *self]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]).rstrip() for row in rows
        )

    def _repr_html_(self):
        body = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
            for row in self
        )
        head = "".join(f'<th style="text-align:left">{h}</th>' for h in ("probe", "verdict", "measured", "look at"))
        return f'<table style="color:currentColor"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def diagnose(module, *, embed_dim, num_heads=1, causal=False, call=None):
    """Examine an attention module by what it does.

    The module is copied and put into eval mode; neither it nor torch's random numbers are touched. All probes use
    self-attention on small random inputs, (batch, tokens, embed_dim).

    Parameters
    ----------
    module : nn.Module
        Called as ``module(query, key, value)`` or ``module(x)``, with a mask as ``attn_mask=``, ``mask=`` or last
        argument. Its result is the output, or a tuple that starts with output and weights.
    embed_dim : int
        Features of a token.
    num_heads : int
        head_dim = embed_dim / num_heads is what the scale is compared with.
    causal : bool
        The module masks the future by itself. Otherwise it is given a causal mask.
    call : callable, optional
        ``call(module, query, key, value, mask)`` for any other signature. `mask` is None or boolean (b, n_q, n_k),
        True = may attend.

    Returns
    -------
    Diagnosis
        One `Finding` (probe, verdict, measured, look_at) for each probe. Verdicts: "ok"; "wrong"; "beware", where
        PyTorch's own module does the same; "could not tell".

    Raises
    ------
    TypeError
        If the module cannot be called.

    Examples
    --------
    >>> from attnlib.torch_layers import MultiHeadAttention
    >>> diagnose(MultiHeadAttention(16, 4), embed_dim=16, num_heads=4).wrong
    []
    """
    head_dim = validation.head_dim(embed_dim, num_heads)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"diagnose takes an nn.Module, got {type(module).__name__}. Fix: an instance, MyAttention(...); "
            "for functions there is check.scaled_dot_product_attention."
        )
    module = copy.deepcopy(module).float().eval()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():  # also where the caller works without gradients
        torch.manual_seed(0)
        patient = _Patient(module, Caller(call, embed_dim, num_heads), embed_dim, num_heads, head_dim, causal)
        return Diagnosis(_examine(patient))


class _Patient:
    """The module under examination with an input, (b, n, embed_dim)."""

    def __init__(self, module, caller, embed_dim, num_heads, head_dim, causal):
        self.module, self.caller, self.causal = module, caller, causal
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, head_dim
        # As many sequences as tokens: there a padding mask read along the wrong axes shows in the numbers. Never as
        # many as heads: a mask without a head axis would be accepted, and misread.
        self.n = 5 if num_heads != 5 else 6
        self.x = self.draw(self.n)
        self.output, self.weights = caller.choose(module, self.x.clone())
        if not isinstance(self.output, torch.Tensor) or self.output.shape[:2] != self.x.shape[:2]:
            got = tuple(self.output.shape) if isinstance(self.output, torch.Tensor) else type(self.output).__name__
            raise TypeError(
                f"the output must be a tensor (batch, tokens, features), expected {tuple(self.x.shape[:2])} and "
                f"features, got {got}. Fix: call=, returning the output or (output, weights)."
            )

    def draw(self, n):
        return torch.randn(self.n, n, self.embed_dim)

    def run(self, x, mask=None, module=None):
        x = x.clone()  # a module that writes into its input must spoil one probe only
        return self.caller(module or self.module, x, x, x, mask)

    def watch(self, x):
        with Watch(x.shape[1], x.shape[1]) as seen:  # with gradients: without, torch may take a path that hides it
            self.run(x)
        if seen.weights is None:
            raise CouldNotTell("no softmax over scores was seen")
        return seen

    def mask(self, rows):
        return rows.expand(self.n, self.n, self.n).clone()

    @property
    def causal_mask(self):
        return self.mask(torch.from_numpy(masks.causal_mask(self.n)))

    def masked(self, x, mask):
        try:
            return self.run(x, mask)
        except Exception as error:
            raise CouldNotTell(f"it could not be given a mask ({type(error).__name__})") from error


def _examine(patient):
    findings = {}
    for probe in _PROBES:
        first = [name for name in probe.needs if findings[name].verdict == "wrong"]
        try:
            if first:
                raise CouldNotTell(f"first see to {first[0]}")
            verdict, measured = probe.measure(patient)
        except CouldNotTell as reason:
            verdict, measured = "could not tell", str(reason)
        except Exception as error:  # a probe must never end the examination
            verdict, measured = "could not tell", _short(error)
        look_at = probe.look_at if verdict in ("wrong", "beware") else ""
        findings[probe.name] = Finding(probe.name, verdict, measured, look_at)
    return findings.values()


def _short(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:90]


def _judge(good, measured):
    return ("ok" if good else "wrong"), measured


def _change(a, b):
    """Return the largest difference; NaN on both sides counts as no change, on one side as infinite."""
    a, b = a.detach(), b.detach()
    difference = (a - b).abs()
    difference = torch.where(a.isnan() & b.isnan(), 0.0, difference)
    return float(difference.nan_to_num(nan=torch.inf).max()) if difference.numel() else 0.0


_SMALL = 1e-4


def _amount(change):
    """Write a change without the last bits, in which processors differ."""
    return "0" if change < _SMALL else f"{change:.2g}"


def _row_sums(p):
    weights = p.weights
    masked = None
    if weights is None:
        weights = p.watch(p.x).weights
    elif not p.causal:
        try:
            masked = p.run(p.x, p.causal_mask)[1]
        except Exception:
            masked = None  # it takes no mask: the sums without one are judged alone
    sums = torch.cat([w.sum(-1).flatten() for w in (weights, masked) if w is not None])
    sums = sums[sums != 0]  # a row that is nothing but 0 is a masked one: not the softmax's fault
    if not sums.numel():
        return "wrong", "all weights are 0"
    return _judge(_change(sums, torch.ones_like(sums)) < 1e-3, f"sums from {sums.min():.4g} to {sums.max():.4g}")


def _causality(p):
    changed = p.x.clone()
    changed[:, -1] += 1
    if p.causal:
        (before, _), (after, _) = p.run(p.x), p.run(changed)
    else:
        (before, _), (after, _) = p.masked(p.x, p.causal_mask), p.masked(changed, p.causal_mask)
    moved = _change(before[:, :-1], after[:, :-1])
    return _judge(moved < _SMALL, f"a change in the last token moves earlier outputs by {_amount(moved)}")


def _padding(p):
    lengths = torch.tensor([p.n - 1 - i % 3 for i in range(p.n)])
    real = torch.arange(p.n) < lengths[:, None]  # (b, n)
    changed = torch.where(real[..., None], p.x, p.x + 1)
    mask = real[:, None].expand(p.n, p.n, p.n).clone()
    before, after = p.masked(p.x, mask)[0], p.masked(changed, mask)[0]
    moved = _change(before[real], after[real])
    return _judge(moved < _SMALL, f"a change in the padding moves real outputs by {_amount(moved)}")


def _permutation(p):
    if p.causal:
        raise CouldNotTell("a causal module depends on the order")
    order = torch.randperm(p.n)
    moved = _change(p.run(p.x[:, order])[0], p.output[:, order])
    return _judge(moved < _SMALL, f"permuting the tokens changes the outputs by {_amount(moved)}")


def _batch(p):
    alone = torch.cat([p.run(p.x[i : i + 1])[0] for i in range(p.n)])
    moved = _change(alone, p.output)
    return _judge(moved < _SMALL, f"one by one or all at once: outputs differ by {_amount(moved)}")


def _dead(p):
    total = sum(x.numel() for x in p.module.parameters())
    if not total:
        raise CouldNotTell("there are no parameters")
    names, sizes = _dead_names(p), dict(p.module.named_parameters())
    count = sum(sizes[name].numel() for name in names)
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return _judge(not names, f"{count} of {total} parameters do nothing" + (f": {listed}" if names else ""))


def _dead_names(p):
    """Return the parameters without a gradient whose poisoning with NaN changes nothing."""
    module = copy.deepcopy(p.module).requires_grad_(True)
    p.run(p.x, module=module)[0].square().sum().backward()
    dead = []
    for name, parameter in module.named_parameters():
        if parameter.grad is not None and parameter.grad.abs().max() > 0:
            continue
        poisoned = copy.deepcopy(p.module)
        with torch.no_grad():
            poisoned.get_parameter(name).fill_(torch.nan)
        if _change(p.run(p.x, module=poisoned)[0], p.output) == 0:
            dead.append(name)
    return dead


def _heads(p):
    if p.num_heads == 1:
        raise CouldNotTell("there is one head")
    tiled = torch.randn(p.n, p.n, p.head_dim).repeat(1, 1, p.num_heads)
    for x, what in ((p.x, "on any input"), (tiled, "where all slices of the tokens are equal")):
        weights = p.watch(x).weights.reshape(-1, p.num_heads, p.n, p.n)
        twins = sum(
            _change(weights[:, i], weights[:, j]) < 1e-6 for i in range(p.num_heads) for j in range(i + 1, p.num_heads)
        )
        if twins:
            return "wrong", f"{twins} pairs of heads have the same weights {what}"
    return "ok", "no two heads have the same weights"


def _scale(p):
    scale = p.watch(p.x).scale
    right = p.head_dim**-0.5
    known = {p.embed_dim**-0.5: " = 1/sqrt(embed_dim)", 1.0: ": none", 1 / p.head_dim: " = 1/head_dim"}
    near = "".join(text for value, text in known.items() if abs(scale / value - 1) < 1e-3 and value != right)
    return _judge(abs(scale / right - 1) < 1e-3, f"{scale:.4g}{near}; 1/sqrt(head_dim) = {right:.4g}")


def _fully_masked(p):
    i = 1
    mask = p.mask(torch.ones(p.n, p.n, dtype=torch.bool))
    mask[:, i] = False
    changed = p.x + 1
    changed[:, i] = p.x[:, i]
    before, after = p.masked(p.x, mask)[0][:, i], p.masked(changed, mask)[0][:, i]
    if before.isnan().any():
        return "beware", "NaN"
    moved = _change(before, after)
    return _judge(moved < _SMALL, f"finite; forbidden keys move it by {_amount(moved)}")


def _large(p):
    output = p.run(1000 * p.x)[0]
    return _judge(bool(output.isfinite().all()), f"inputs times 1000: {int((~output.isfinite()).sum())} NaN or inf")


def _float16(p):
    mask = None if p.causal else p.causal_mask
    try:
        expected = p.run(p.x, mask)[0]
    except Exception:  # it takes no mask
        mask, expected = None, p.output
    try:
        half = p.run(p.x.half(), mask, copy.deepcopy(p.module).half())[0]
    except Exception as error:
        return "wrong", _short(error)
    moved = _change(half.float(), expected)
    return _judge(moved < 0.05, "within 0.05 of float32" if moved < 0.05 else f"differs from float32 by {moved:.2g}")


def _deterministic(p):
    moved = _change(p.run(p.x)[0], p.run(p.x)[0])
    return _judge(moved == 0, f"two calls in eval mode differ by {_amount(moved)}")


def _untouched(p):
    inputs = [p.draw(p.n) for _ in range(3)]
    before = [x.clone() for x in inputs]
    p.caller(p.module, *inputs)
    mask = p.causal_mask
    try:
        p.run(p.x.clone(), mask)
    except Exception:
        mask = p.causal_mask  # it takes no mask
    changed = sum(not torch.equal(a, b) for a, b in zip([*inputs, mask], [*before, p.causal_mask], strict=True))
    return _judge(not changed, f"{changed} of 4 tensors were changed")


def _order(p):
    if not p.caller.three:
        raise CouldNotTell("the module takes one sequence")
    query, key, value = p.draw(2), p.draw(p.n), p.draw(p.n)
    try:
        output = p.caller(p.module, query.clone(), key.clone(), value.clone())[0]
    except Exception as error:
        return "wrong", f"2 queries and {p.n} keys: {type(error).__name__}"
    order = torch.randperm(p.n)
    moved = (
        _change(output, p.caller(p.module, query, key[:, order], value[:, order])[0])
        if output.shape[1] == 2
        else torch.inf
    )
    return _judge(
        moved < _SMALL,
        f"2 queries, {p.n} keys: {output.shape[1]} outputs; reordering the keys moves them by {_amount(moved)}",
    )


class _Probe(NamedTuple):
    name: str
    measure: Callable
    look_at: str
    needs: tuple = ()  # where one of these went wrong, this one would only repeat it, and mislead


_SAME = ("determinism",)
_MASKED = ("determinism", "row sums", "permutation")

_PROBES = (
    _Probe("determinism", _deterministic, "F.dropout without training=self.training"),
    _Probe("inputs untouched", _untouched, "+=, *=, masked_fill_ on an argument"),
    _Probe("row sums", _row_sums, "the axis of the softmax; a mask or a rounding after it", _SAME),
    _Probe("permutation", _permutation, "reshape without transpose: it mixes tokens", _SAME),
    _Probe("batch consistency", _batch, "an axis counted from the front, or a sum over the batch", _SAME),
    _Probe("causality", _causality, "polarity and shape of the mask, and whether it reaches the softmax", _MASKED),
    _Probe(
        "padding",
        _padding,
        "which axis of the mask is the keys; a mask (b, n) needs [:, None, :]",
        (*_MASKED, "batch consistency"),
    ),
    _Probe("fully masked row", _fully_masked, "the fill: a finite one lets all keys in, -inf gives NaN", _MASKED),
    _Probe("dead parameters", _dead, "layers made in __init__ and not used in forward", _SAME),
    _Probe(
        "heads differ",
        _heads,
        "one small projection shared by all heads; W should be embed_dim x embed_dim",
        ("dead parameters",),
    ),
    _Probe("score scale", _scale, "the divisor of the scores: sqrt of the width *after* splitting"),
    _Probe("large inputs", _large, "exp without subtracting the maximum of the row"),
    _Probe("float16", _float16, "a fill beyond 65504, such as -1e20; use -inf", ("determinism", "row sums")),
    _Probe(
        "argument order",
        _order,
        "a forward(values, keys, query); pass call= to adapt it",
        ("determinism", "permutation"),
    ),
)

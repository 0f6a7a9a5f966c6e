"""Examine anybody's attention module in torch by what it does, whatever its code says.

>>> from attnlib.torch_layers import MultiHeadAttention
>>> diagnose(MultiHeadAttention(16, 4), embed_dim=16, num_heads=4).ok
True
"""

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import validation

with validation.needs_torch("attnlib.diagnose examines modules of torch"):
    import torch

from ..findings import Diagnosis, Finding, few
from ._caller import LAYOUTS
from ._patient import Patient
from ._probes import examine

__all__ = ["Diagnosis", "Finding", "diagnose"]


class _Declared(NamedTuple):
    """What the author says of the module. None: not said, so it is observed and not judged."""

    causal: bool | None
    positions: bool
    blocked: bool | None
    batch_first: bool | None
    scale: float | None


def diagnose(
    module: torch.nn.Module,
    *,
    embed_dim: int,
    num_heads: int = 1,
    causal: bool | None = None,
    positions: bool = False,
    blocked: bool | None = None,
    batch_first: bool | None = None,
    scale: float | None = None,
    call: Callable[..., Any] | None = None,
) -> Diagnosis:
    """Examine an attention module by what it does.

    The module is copied, put into eval mode and, where it works there, into float64; neither it nor torch's random
    numbers are touched. All probes use small random inputs, (batch, tokens, embed_dim). Amounts are relative to the
    spread of the outputs.

    Parameters
    ----------
    module : nn.Module
        Called by the names in the signature of its forward: a query, key and value, or one sequence, maybe with a
        context; a mask under any name with "mask" in it, in the first of the known forms that does what
        it says. The output may stand in a tuple, a list or a dict.
    embed_dim : int
        Features of a token.
    num_heads : int
        Heads that must be there, where more than one is said, and must differ.
    causal : bool, optional
        The module masks the future by itself. None: observed.
    positions : bool
        The module knows positions (rotary, relative, learned), and must. False: not said.
    blocked : bool, optional
        True in a boolean mask means blocked. None: "beware" where it does, unless the argument is called padding.
    batch_first : bool, optional
        Inputs are (batch, tokens, features). None: observed, "beware" where they are (tokens, batch, features); so
        `call` gets them, too.
    scale : float, optional
        What the products of queries and keys are multiplied by; 1/sqrt(their width) where it is not said.
    call : callable, optional
        ``call(module, query, key, value, mask)`` for any other signature. `mask` is None or boolean (b, n_q, n_k),
        True = may attend.

    Returns
    -------
    Diagnosis
        One `Finding` (probe, verdict, measured, look_at) for each probe; ``.ok`` is whether none is wrong. Verdicts:
        "ok"; "wrong"; "beware", where good modules do the same on purpose; "could not tell".

    Raises
    ------
    TypeError
        If the module cannot be called, has lazy layers or none but names of numbers (the meta device), or no token's
        output depends on another token; if another argument is of the wrong type.
    ValueError
        If `embed_dim` or `num_heads` is below 1, or `scale` is no finite number above 0; if a parameter is NaN or inf.

    Examples
    --------
    >>> from attnlib.torch_layers import MultiHeadAttention
    >>> diagnose(MultiHeadAttention(16, 4), embed_dim=16, num_heads=4).wrong
    []
    """
    embed_dim = validation.positive_int(embed_dim, "embed_dim")
    num_heads = validation.positive_int(num_heads, "num_heads")
    _must_be_ready(module)
    declared = _Declared(causal, positions, blocked, batch_first, scale)
    _must_be_said_well(declared)
    if call is not None and not callable(call):
        fix = "call=lambda module, query, key, value, mask: module(...)."
        raise TypeError(f"call must be a function, got {type(call).__name__}. Fix: {fix}")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():  # also where the caller works without gradients
        torch.manual_seed(0)
        patient = Patient(module, embed_dim, num_heads, declared, call)
        _must_attend(patient, type(module).__name__)
        return Diagnosis(examine(patient))


def _must_be_ready(module):
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"diagnose takes an nn.Module, got {type(module).__name__}. Fix: an instance, MyAttention(...); "
            "for functions there is check.scaled_dot_product_attention."
        )
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError(
            "diagnose takes a module as it was written, got one of TorchScript, which hides its signature. "
            "Fix: diagnose the module that torch.jit.script or torch.jit.trace was given."
        )
    name, tensors = type(module).__name__, [*module.parameters(), *module.buffers()]
    if any(isinstance(x, torch.nn.parameter.UninitializedTensorMixin) for x in tensors):
        fix = "call it once on an input of the right size."
        raise TypeError(f"{name} has lazy layers that do not know their sizes yet: expected parameters. Fix: {fix}")
    if any(x.is_meta for x in tensors):
        raise TypeError(
            f"{name} is on the meta device, where tensors have shapes and no numbers: expected numbers. "
            'Fix: build it on the CPU; or module.to_empty(device="cpu"), then load or draw its weights.'
        )
    # A mask may be a parameter, so -inf may be meant.
    if lost := [key for key, x in module.named_parameters() if (x.isnan() | (x == torch.inf)).any()]:
        raise ValueError(
            f"the parameters of {name} must be finite, got NaN or inf in {few(lost)}. "
            "Fix: draw or load them; torch.empty takes memory as it is."
        )


def _must_be_said_well(declared):
    """Raise for what is no True, False or None: "no" would count as true; and for a scale that is none."""
    for name, said in declared._asdict().items():
        if name != "scale" and (not isinstance(said, bool | None) or (said is None and name == "positions")):
            expected = "True or False" + (", or None where it is not said" if name != "positions" else "")
            raise TypeError(f"{name} must be {expected}, got {said!r}. Fix: {name}=True or {name}=False.")
    scale, fix = declared.scale, "Fix: what the scores are multiplied by, as in scale=8**-0.5."
    if isinstance(scale, bool) or not isinstance(scale, numbers.Real | None):
        raise TypeError(f"scale must be a number, got {scale!r}. {fix}")
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be a finite number above 0, got {scale}. {fix}")


def _must_attend(patient, name):
    seen = patient.watch(patient.x[:2], need=False)
    if seen.multiplies:
        return
    alone = not (patient.reach & patient.others).any()
    # A convolution takes many a layout for its own; a network of another kind, or a mean, weighs nothing by tokens.
    weighs = seen.weighs or seen.opaque or patient.caller.own
    if alone or not weighs or patient.caller.layout is not LAYOUTS[0]:
        raise TypeError(
            f"{name} is not an attention module: expected weights, which depend on the tokens, times values, got a "
            "module that multiplies nothing of the kind. Fix: diagnose the module that attends, or its layer."
        )

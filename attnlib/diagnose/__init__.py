"""Examine anybody's attention module in torch by what it does, whatever its code says.

>>> from attnlib.torch_layers import MultiHeadAttention
>>> diagnose(MultiHeadAttention(16, 4), embed_dim=16, num_heads=4).ok
True
"""

from typing import NamedTuple

import torch

from .. import validation
from .caller import LAYOUTS
from .patient import Patient
from .probes import examine
from .report import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose"]


class _Declared(NamedTuple):
    """What the author says of the module. None: not said, so it is observed and not judged."""

    causal: bool | None
    positions: bool
    blocked: bool | None
    batch_first: bool | None
    scale: float | None


def diagnose(
    module,
    *,
    embed_dim,
    num_heads=1,
    causal=None,
    positions=False,
    blocked=None,
    batch_first=None,
    scale=None,
    call=None,
):
    """Examine an attention module by what it does.

    The module is copied, put into eval mode and, where it works there, into float64; neither it nor torch's random
    numbers are touched. All probes use small random inputs, (batch, tokens, embed_dim). Amounts are relative to the
    spread of the outputs.

    Parameters
    ----------
    module : nn.Module
        Called by the names in the signature of its forward: a query, key and value, or one sequence, maybe with a
        context; a mask under any name with "mask" in it, in the first form of `attnlib.diagnose.forms` that does what
        it says. The output may stand in a tuple, a list or a dict.
    embed_dim : int
        Features of a token.
    num_heads : int
        Heads that must differ.
    causal : bool, optional
        The module masks the future by itself. None: observed.
    positions : bool
        The module knows positions (rotary, relative, learned).
    blocked : bool, optional
        True in a boolean mask means blocked. None: "beware" where it does, unless the argument is called padding.
    batch_first : bool, optional
        Inputs are (batch, tokens, features). None: "beware" where they are (tokens, batch, features).
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
        If the module cannot be called, has lazy layers, or no token's output depends on another token; if `embed_dim`
        or `num_heads` is no whole number.
    ValueError
        If one of them is below 1.

    Examples
    --------
    >>> from attnlib.torch_layers import MultiHeadAttention
    >>> diagnose(MultiHeadAttention(16, 4), embed_dim=16, num_heads=4).wrong
    []
    """
    embed_dim = validation.positive_int(embed_dim, "embed_dim")
    num_heads = validation.positive_int(num_heads, "num_heads")
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"diagnose takes an nn.Module, got {type(module).__name__}. Fix: an instance, MyAttention(...); "
            "for functions there is check.scaled_dot_product_attention."
        )
    if any(isinstance(parameter, torch.nn.parameter.UninitializedParameter) for parameter in module.parameters()):
        raise TypeError(
            f"{type(module).__name__} has lazy layers that do not know their sizes yet: expected parameters. "
            "Fix: call it once on an input of the right size."
        )
    declared = _Declared(causal, positions, blocked, batch_first, scale)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():  # also where the caller works without gradients
        torch.manual_seed(0)
        patient = Patient(module, embed_dim, num_heads, declared, call)
        _must_attend(patient, type(module).__name__)
        return Diagnosis(examine(patient))


def _must_attend(patient, name):
    if patient.watch(patient.x[:2], need=False).multiplies:
        return
    alone = not (patient.reach & ~torch.eye(patient.n, dtype=torch.bool)).any()
    if alone or patient.caller.layout is not LAYOUTS[0]:  # a convolution takes many a layout for its own
        raise TypeError(
            f"{name} is not an attention module: expected weights, which depend on the tokens, times values, got a "
            "module that multiplies nothing of the kind. Fix: diagnose the module that attends, or its layer."
        )

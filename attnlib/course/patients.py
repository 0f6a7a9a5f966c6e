"""Patients of the bug clinic without their names, and what a learner says of them: `name_bug`, `try_probe`."""

import difflib
import math
from typing import NamedTuple

import torch

from .clinic import CASES, Attention
from .verdict import Verdict


class _Unknown(NamedTuple):
    """A patient of the exercises."""

    bug: str
    clue: str  # what tells it from cases that fail the same probes
    hints: tuple


# Each stands at the head of the part of the notebook that has its letter.
_MYSTERIES = {
    "A": "scale_by_embed_dim",
    "B": "softmax_over_queries",
    "C": "mask_inverted",
    "D": "projections_unused",
    "F": "centred_over_batch",
}
_UNKNOWN = {
    1: _Unknown(
        "context_ignored",
        "Change the second argument alone.",
        ("Self-attention hides it: call it with another sequence as key and value.", "Which argument changes nothing?"),
    ),
    2: _Unknown(
        "one_mask_for_first_head_only",
        "Look at the largest weight above the diagonal, head by head.",
        ("Give it the causal mask, and look at its weights.", "Is every head as well as head 0?"),
    ),
    3: _Unknown(
        "double_softmax",
        "Look at one row without a mask: its largest weight is at most e = 2.7 times its smallest. Why?",
        (
            "All rows sum to 1, and the factor of the scores is right. What is left between the scores and the output?",
            "With the causal mask: what has become of the weights that should be exactly 0?",
        ),
    ),
}


def patient(name, embed_dim=24, num_heads=4):
    """Return a module with one bug under a neutral name: a letter for those of the text, 1 to 3 for the exercises.

    Examples
    --------
    >>> type(patient(1)).__name__
    'Patient1'
    """
    bug = _MYSTERIES.get(name) or _unknown(name).bug
    return _fresh(type(f"Patient{name}", (CASES[bug].module,), {}), embed_dim, num_heads)


def name_bug(number, answer):
    """Return a Verdict on what a learner calls the bug of a patient: a name from `CASES`.

    Examples
    --------
    >>> name_bug(1, None)
    … patient 1: not tried yet
    >>> name_bug(1, "no_scale")
    ✗ patient 1: wrong
    A module with no_scale fails the probe 'score scale' of diagnose; this patient does not.
    """
    unknown, title = _unknown(number), f"patient {number}"
    if answer is None or answer is ...:
        return Verdict(title, "not tried", "", hints=unknown.hints)
    if answer not in CASES:
        near = difflib.get_close_matches(str(answer), CASES, 1)
        fix = f"did you mean {near[0]!r}?" if near else "list(CASES) shows all names."
        return Verdict(title, "wrong", f"There is no case called {answer!r}. Fix: {fix}", hints=unknown.hints)
    if answer == unknown.bug:
        seen = CASES[answer].caught_by[0]
        return Verdict(title, "right", f"The probe {seen!r} of diagnose sees it.")
    claimed, real = CASES[answer].caught_by, CASES[unknown.bug].caught_by
    for probe in claimed:
        if probe not in real:
            text = f"A module with {answer} fails the probe {probe!r} of diagnose; this patient does not."
            break
    else:
        extra = [probe for probe in real if probe not in claimed]
        text = (
            f"This patient fails the probe {extra[0]!r} of diagnose; a module with {answer} does not."
            if extra
            else f"Near: both fail the same probes of diagnose, {', '.join(real)}. {unknown.clue}"
        )
    return Verdict(title, "wrong", text, hints=unknown.hints)


_PROBE_HINTS = (
    "The mask blocks one token for every query: a column of False.",
    "Call the module twice, the second time with that token changed, and compare the outputs of all other tokens.",
    "Give each call a tensor of its own: x.clone().",
)
# What a probe of blocked tokens must leave alone, and what it must find. Bugs that move them for other reasons are in
# neither list.
_WELL = (None, "no_scale", "finite_fill", "nan_on_fully_masked", "context_ignored", "mutates_input")
_LEAKS = ("mask_ignored", "mask_inverted", "mask_after_softmax", "one_mask_for_first_head_only", "double_softmax")
_ACCUSED = 1e-4  # float32 moves by 1e-6


def try_probe(probe):
    """Return a Verdict on a learner's ``probe(module, x)``: how far a token that is blocked for all moves the others.

    It is tried on modules whose masks work, where it must give 0, and on modules with a bug, where it must not.

    Examples
    --------
    >>> try_probe(lambda module, x: 0.0)
    ✗ probe: wrong
    Your probe gives 0 for a module with mask_ignored, in which a blocked token does move the others.
    """

    def verdict(state, message):
        return Verdict("probe", state, message, hints=_PROBE_HINTS)

    for name in (*_WELL, *_LEAKS):
        tokens = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(1))
        try:
            with torch.no_grad():
                answer = probe(_fresh(CASES[name].module if name else Attention), tokens)
            if answer is None or answer is ...:
                return verdict("not tried", "")
            value = float(answer)
        except Exception as error:
            return verdict("wrong", f"{type(error).__name__}: {error}")
        who = f"a module with {name}" if name else "a healthy module"
        if math.isnan(value):
            return verdict("wrong", f"Your probe gives NaN for {who}. Does every query have a key left to look at?")
        if name in _WELL and abs(value) > _ACCUSED:
            return verdict("wrong", f"Your probe gives {value:.2g} for {who}, where it should be 0. {_why(name)}")
        if name in _LEAKS and abs(value) <= _ACCUSED:
            return verdict(
                "wrong", f"Your probe gives {value:.2g} for {who}, in which a blocked token does move the others."
            )
    return verdict("right", f"It finds {len(_LEAKS)} of {len(_LEAKS)} leaks, and accuses no module whose mask works.")


def _why(name):
    if name == "mutates_input":
        return "That module writes into what it is given. Is your second call given what the first one got?"
    return (
        "A blocked token may move its own output, and no other. Does the mask block it for every query, and is its own "
        "output left out?"
    )


def _fresh(module, embed_dim=24, num_heads=4):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return module(embed_dim, num_heads)


def _unknown(number):
    if number not in _UNKNOWN:
        raise ValueError(f"there are patients 1 to {len(_UNKNOWN)}, got {number!r}.")
    return _UNKNOWN[number]

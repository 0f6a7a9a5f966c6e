"""Patients of the bug clinic without their names, and what a learner says of them: `name_bug`, `try_probe`."""

import itertools
import math
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from attnlib.diagnose import diagnose

from ..engine import right_answers
from ..engine.run import TIME_LIMIT, describe_error, late, words_of
from ..engine.sandbox import TimeUp, time_limit
from ..engine.verdict import Verdict
from ..titles import heading
from . import CASES, DECODERS, Attention, Decoder, MaskIgnored, fresh


class _Unknown(NamedTuple):
    """A patient of the exercises."""

    name: str
    hints: tuple

    @property
    def ward(self):
        """Where it lies: the name of a table, the table, and the class that is healthy."""
        return ("DECODERS", DECODERS, Decoder) if self.name in DECODERS else ("CASES", CASES, Attention)


# Each stands at the head of the part of the notebook that has its letter.
_MYSTERIES = {"A": "case_01", "B": "case_04", "C": "case_05", "D": "case_06", "E": "case_07"}
_UNKNOWN = {
    1: _Unknown(
        "case_34",
        ("Self-attention hides it: call it with another sequence as key and value.", "Which argument changes nothing?"),
    ),
    2: _Unknown(
        "case_35",
        (
            "Give it the causal mask, and look at its weights.",
            "Is every head as well as the first? Where the first leaks, too, it is something else: return 0 there.",
        ),
    ),
    3: _Unknown(
        "case_33",
        (
            "All rows sum to 1, and the factor of the scores is right. What is left between the scores and the output?",
            "With the causal mask: what has become of the weights that should be exactly 0? Are they those numbers?",
        ),
    ),
    4: _Unknown(
        "past_of_first_sequence",
        (
            "Its past goes wrong, and not for every sequence. Compare chunks with all at once, sequence by sequence.",
            "Which sequence of a batch is right? Whose keys do the others meet?",
        ),
    ),
    5: _Unknown(
        "places_one_ahead",
        (
            "The prompt is right, and so is everything that is fed at once. What changes when the cache is not empty?",
            "Make two places equal, module.places.data[2] = module.places.data[1]: are two tokens right then?",
        ),
    ),
}
_NO_RETURN = "Your probe returns None. Fix: is its `return` missing?"
_UNTRIED = ("case_16", "case_17")  # the one would strike by chance, the other writes into your tensors


def patient(name, embed_dim=24, num_heads=4):
    """Return a module with one bug under a neutral name: a letter for those of its text, else a number.

    1 to 3 are those of its exercises; 4 and 5 are decoders, of lesson one_token_at_a_time.

    >>> type(patient(1)).__name__
    'Patient1'
    """
    unknown = None if name in _MYSTERIES else _unknown(name)
    case = unknown.ward[1][unknown.name] if unknown else CASES[_MYSTERIES[name]]
    return fresh(type(f"Patient{name}", (case.module,), {}), embed_dim, num_heads)


def name_bug(number, answer, probe=None):
    """Return a Verdict on what a learner calls the bug of a patient, and on the probe that shows it.

    A name can be guessed, so it is judged only together with ``probe(module)``: a number that is 0 for a healthy module
    and for those with another bug, and not for the patient.

    >>> name_bug(1, None)
    … 8.1 · A first patient: not tried yet
    >>> keys = lambda module: module(torch.zeros(1, 5, 24), torch.zeros(1, 7, 24))[1].shape[-1] - 7
    >>> name_bug(1, "case_23", keys)
    ✗ 8.1 · A first patient: wrong
    Your probe gives 0 for case_23. So by your own probe this patient has something else.
    """
    unknown = _unknown(number)
    table, cases, _ = unknown.ward
    verdict = partial(Verdict, f"patient {number}", hints=unknown.hints, heading=heading(f"name_bug_{number}"))
    if answer is None or answer is ...:
        return verdict("not tried", "")
    if answer not in cases:
        spelt = [name for name in cases if _letters(name) == _letters(answer)]  # a name that is near may be the answer
        fix = f"did you mean {spelt[0]!r}?" if spelt else f"sorted({table}) shows all names."
        return verdict("wrong", f"There is no case called {answer!r}. Fix: {fix}")
    try:
        with time_limit(TIME_LIMIT):
            trouble = _why_no_proof(number, probe) or _unlike(unknown.name, answer, probe, cases)
        with time_limit(4 * TIME_LIMIT):  # four draws of weights
            trouble = trouble or _why_only_one_draw(number, probe)
    except TimeUp:
        trouble = late(TIME_LIMIT).problem
    if trouble:
        return verdict("wrong", trouble)
    right_answers.record(f"name_bug_{number}", probe)
    met, bug = len(_others(unknown.name, cases)), cases[unknown.name].bug
    return verdict(
        "right", f"Your probe strikes for this bug, {bug}, and for none of the {met} others of {table} it was tried on."
    )


def _letters(name):
    return "".join(filter(str.isalnum, str(name).lower()))


def _why_no_proof(number, probe):
    """Return why `probe` does not tell the patient from a healthy module, or None."""
    if not callable(probe):
        return "A name can be guessed. Hand over a probe(module), too: 0 for a healthy module, not 0 for the patient."
    try:
        with torch.no_grad():
            well, ill = (probe(module) for module in (fresh(_unknown(number).ward[-1]), patient(number)))
            if well is None or ill is None:
                return _NO_RETURN
            well, ill = float(well), float(ill)
    except Exception as error:
        return f"Your probe raises {type(error).__name__}: {words_of(error)}".rstrip(": ")
    if not abs(well) <= _ACCUSED and abs(ill) <= _ACCUSED:
        return (
            f"Your probe sees the difference, the other way round: it gives {well:.2g} for a healthy module and 0 for "
            "this patient. Fix: return 1.0 where nothing moves, else 0.0."
        )
    if not abs(well) <= _ACCUSED:
        return f"Your probe gives {well:.2g} for a healthy module, where it should be 0."
    if not abs(ill) > _ACCUSED:
        return f"Your probe gives {ill:.2g} for this patient, as for a healthy module: it shows no bug."
    return None


def _why_only_one_draw(number, probe):
    """Return that `probe` fits one draw of weights: with others, or paler ones, it is wrong about a module; or None."""
    name, (_, cases, healthy) = _unknown(number).name, _unknown(number).ward
    kinds = {"a healthy module": healthy, "this patient": cases[name].module}
    kinds |= {other: cases[other].module for other in _others(name, cases)}
    for who, kind in kinds.items():
        for seed, factor in itertools.product((1, 2), (1, 0.25)):
            if _strikes(probe, kind, seed, factor) != (who == "this patient"):
                says = "0" if who == "this patient" else "not 0"
                return (
                    f"Your probe fits the weights that it was tried on: with other weights it gives {says} for {who}. "
                    "Fix: ask for what the bug does whatever the weights are, not for a number on one side of a bound."
                )
    return None


def struck(probe):
    """Return the names of `CASES` for which ``probe(module)`` is not 0, up to rounding.

    Two are left out: "case_16" gives another output at each call, and "case_17" writes into what it is given.

    >>> _ = torch.manual_seed(0)
    >>> struck(lambda module: module(torch.randn(1, 5, 24))[1].sum(-1).max() - 1)  # the sums of the rows
    ['case_07', 'case_25']
    """
    return [name for name in _others(None, CASES) if _strikes(probe, CASES[name].module)]


def _unlike(name, answer, probe, cases):
    """Return what tells the patient from a module with `answer`, or that `probe` strikes for others, too; or None."""
    others = [other for other in _others(name, cases) if _strikes(probe, cases[other].module)]
    if answer in _UNTRIED:
        return f"Called twice with one tensor, {answer} answers in two ways, and this patient does not."
    if answer != name and answer not in others:
        return f"Your probe gives 0 for {answer}. So by your own probe this patient has something else."
    if not others:
        return None
    shown = [answer, *(other for other in others if other != answer)] if answer in others else others
    return (
        f"Your probe shows that something is wrong, and not what: it strikes for {' and '.join(shown[:2])} as well"
        f"{f', and for {len(shown) - 2} more' if len(shown) > 2 else ''}. "
        "Fix: look for what only this patient does, and return 0 for all else."
    )


def _others(name, cases):
    return [other for other in cases if other != name and other not in _UNTRIED]


def _strikes(probe, kind, seed=0, factor=1):
    """Tell whether a probe strikes for a module, perhaps with other weights, and with scores times a factor."""
    module = fresh(kind, seed=seed)
    try:
        with torch.no_grad():
            module.W_Q.weight.mul_(factor)
            return abs(float(probe(module))) > _ACCUSED
    except Exception:
        return False


_MENDED = ("padding", "allowed keys", "causality", "batch consistency", "keys matter", "heads differ", "score scale")


def mended(module):
    """Return a Verdict on a repaired class: right if `diagnose` finds nothing wrong, and sees its mask at work.

    The module is called as ``module(text, clips, mask)``, the mask boolean, (b, n_q, n_k), True = may attend.

    >>> mended(None)
    … 8.5 · A stranger's module: not tried yet
    """
    verdict = partial(Verdict, "mended module", hints=_MENDED_HINTS, heading=heading("mended"))
    if module is None or module is ...:
        return verdict("not tried", "")
    if not (isinstance(module, type) and issubclass(module, nn.Module)):
        return verdict("wrong", f"Hand over the class: expected a subclass of nn.Module, got {module!r}. Fix: no ().")
    try:
        with time_limit(4 * TIME_LIMIT):  # twenty probes, on a machine that may be busy
            text, clips, mask = torch.ones(2, 5, 24), torch.ones(2, 7, 24), torch.ones(2, 5, 7, dtype=torch.bool)
            fresh(module)(text, clips, mask)  # an error of the class is shown as it is
            report = diagnose(fresh(module), embed_dim=24, num_heads=4, call=_with_a_mask)
    except TimeUp:
        return verdict("wrong", late(4 * TIME_LIMIT).problem)
    except Exception as error:
        return verdict("wrong", describe_error(error))
    for finding in report:
        if finding.verdict == "wrong" or (finding.probe in _MENDED and finding.verdict != "ok"):
            measured = finding.measured if finding.verdict != "could not tell" else _NOT_FOLLOWED
            return verdict("wrong", f"diagnose says of its {finding.probe}: {finding.verdict}. {measured}.")
    right_answers.record("mended", module)
    return verdict("right", "Nothing is wrong, and the mask does what it says.")


_NOT_FOLLOWED = "Does each row of each sequence's mask still decide what its own query sees"


def _with_a_mask(module, query, key, value, mask):
    if mask is None:
        mask = torch.ones(query.shape[0], query.shape[1], key.shape[1], dtype=torch.bool)
    return module(query, key, mask)


_MENDED_HINTS = (
    "What does diagnose call wrong? Build that situation by hand: a batch of two, and a mask for each of them.",
    "Give sequence 0 a mask of its own and sequence 1 another. Which heads of sequence 1 keep to theirs?",
    "Number the sequences 0 and 1, and fold these numbers as the keys are folded and as the mask is: in which order?",
)
_PROBE_HINTS = (
    "The mask blocks one token for every query: a column of False. Do so with each token in turn.",
    "Call the module twice, the second time with noise in place of that token, and compare the outputs of all others.",
    "Give each call a tensor of its own: x.clone().",
)
_ACCUSED = 1e-4  # float32 moves by 1e-6


class _FirstKeyFree(Attention):
    def free(self, n):
        return 0

    def with_head_axis(self, mask):
        return super().with_head_axis(mask).index_fill(-1, torch.tensor(self.free(mask.shape[-1])), True)


class _MiddleKeyFree(_FirstKeyFree):
    def free(self, n):
        return n // 2


class _TriangleOnly(Attention):
    def masked_scores(self, scaled_scores, attn_mask):
        causal = attn_mask is not None and not attn_mask.triu(1).any()
        return super().masked_scores(scaled_scores, attn_mask) if causal else scaled_scores


class _EmptyColumnsFilled(Attention):
    def with_head_axis(self, mask):
        mask = super().with_head_axis(mask)
        return mask | ~mask.any(-2, keepdim=True)


class _NormalisedFirst(MaskIgnored):
    def project(self, query, key, value):
        return super().project(*(nn.functional.layer_norm(x, x.shape[-1:]) for x in (query, key, value)))


# What a probe of blocked tokens must leave alone, and what it must find. Bugs that move them for other reasons are in
# neither; the last five leaks are invisible to a probe that knows one mask, or that adds a constant to a token.
_BY_BUG = {case.bug: case.module for case in CASES.values()}
_WELL = {"a healthy module": Attention} | {
    f"a module with {bug}": _BY_BUG[bug]
    for bug in ("no_scale", "finite_fill", "nan_on_fully_masked", "context_ignored", "mutates_input")
}
_LEAKS = {
    f"a module with {bug}": _BY_BUG[bug]
    for bug in ("mask_ignored", "mask_inverted", "mask_after_softmax", "one_mask_for_first_head_only", "double_softmax")
} | {
    "a module that lets key 0 in, whatever the mask says": _FirstKeyFree,
    "a module that lets key n // 2 in, whatever the mask says": _MiddleKeyFree,
    "a module that skips every mask but a causal one": _TriangleOnly,
    "a module that lets a key in if it is blocked for all": _EmptyColumnsFilled,
    "a module that normalises its tokens (LayerNorm) and ignores the mask": _NormalisedFirst,
}
_SIZES = ((2, 5, 24), (3, 4, 16))  # (b, n, d)


def try_probe(probe):
    """Return a Verdict on a learner's ``probe(module, x)``: how far a token that is blocked for all moves the others.

    It is tried on modules whose masks work, where it must give 0, and on modules that leak, where it must not; on
    inputs of two sizes.

    >>> try_probe(lambda module, x: 0.0)
    ✗ 8.4 · A probe of your own: wrong
    Your probe gives 0 for a module with mask_ignored, in which a blocked token does move the others.
    """

    try:
        state, message = _judge_mask_probe(probe)
    except TimeUp:
        state, message = "wrong", late(TIME_LIMIT).problem
    if state == "right":
        right_answers.record("try_probe", probe)
    return Verdict("probe", state, message, hints=_PROBE_HINTS, heading=heading("try_probe"))


def _judge_mask_probe(probe):
    """Return (state, message) of a probe of blocked tokens."""
    still = False  # were all calls given the same tokens?
    for who, module in (_WELL | _LEAKS).items():
        for size in _SIZES:
            tokens = torch.randn(size, generator=torch.Generator().manual_seed(1))
            tried, finite, given = _watch_calls(fresh(module, size[-1]))
            try:
                with torch.no_grad(), time_limit(TIME_LIMIT):  # for each call: a Jacobian of all tokens takes a second
                    answer = probe(tried, tokens)
                if answer is ...:
                    return "not tried", ""
                if answer is None:
                    return "wrong", _NO_RETURN
                value = float(answer)
            except Exception as error:
                return "wrong", f"With x of shape {size} and {who}: {_error_text(error, who)}"
            still = still or (len(given) > 1 and all(torch.equal(x, given[0]) for x in given))
            if trouble := _judge(value, who, all(finite)):
                return "wrong", _STILL if still else trouble
    return "right", f"It finds {len(_LEAKS)} of {len(_LEAKS)} leaks, and accuses no module whose mask works."


def _watch_calls(module):
    """Return the module, and two lists: of each call whether all numbers given were finite, and the first tensor."""
    finite, given = [], []

    def note(_, by_place, by_name):
        tensors = [x for x in (*by_place, *by_name.values()) if isinstance(x, torch.Tensor)]
        finite.append(all(x.isfinite().all() for x in tensors))
        given.extend(x.clone() for x in tensors[:1])

    module.register_forward_pre_hook(note, with_kwargs=True)
    return module, finite, given


_STILL = (
    "All your calls get the same tokens, so no token has changed between them. After `y = x` both names are one "
    "tensor: what you write into y stands in x, too. Fix: y = x.clone(), and noise into y."
)
_WRITES = "That module writes into what it is given."


def _error_text(error, who):
    """Return what a probe raises; of a module that writes into its input the reason, which torch tells too late."""
    message = f"{type(error).__name__}: {words_of(error)}".rstrip(": ")
    if isinstance(error, RuntimeError) and who.endswith("mutates_input"):
        message = f"{message.rstrip('.')}. {_WRITES} Fix: hand it a copy at each call, module(x.clone(), ...)."
    return message


def _judge(value, who, finite):
    """Return what is wrong with the answer of a probe that gave a module only `finite` numbers or not, or None."""
    shown = "NaN" if math.isnan(value) else f"{value:.2g}"
    wrong = math.isnan(value) or (who in _WELL and abs(value) > _ACCUSED)
    if wrong and not finite:
        return (
            f"Your probe gives {shown} for {who}. You put NaN or infinity into a token. The weight of a blocked token "
            "is 0, and 0 times either is NaN, so that it passes a mask that works. Fix: put in noise, which is finite."
        )
    if math.isnan(value):
        return f"Your probe gives NaN for {who}. Does every query have a key left to look at?"
    if wrong:
        return f"Your probe gives {shown} for {who}, where it should be 0. {_why(who)}"
    if who in _LEAKS and abs(value) <= _ACCUSED:
        return f"Your probe gives {shown} for {who}, in which a blocked token does move the others."
    return None


def _why(who):
    if who.endswith("mutates_input"):
        return f"{_WRITES} Is your second call given what the first one got?"
    return (
        "A blocked token may move its own output, and no other. Does the mask block it for every query, and is its own "
        "output left out?"
    )


def _unknown(number):
    if number not in _UNKNOWN:
        raise ValueError(f"there are patients 1 to {len(_UNKNOWN)}, got {number!r}.")
    return _UNKNOWN[number]

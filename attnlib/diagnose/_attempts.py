"""Attempts to hand a module a mask, in one form after another, until one does what the mask says."""

import torch

from ._forms import KEYS, PADDING, PAIRS, Form, forms, is_for_padding


class Neutral:
    """The masks that allow everything: one in the given form, and those of `others` in its kind.

    `read`: how many tokens a decoder reads besides, which the other masks are for.
    """

    def __init__(self, form, heads, dtype, others=(), shape=None):
        self.form, self.heads, self.dtype, self.read = form, heads, dtype, None
        self.others = [form._replace(name=name, shape=shape or form.shape) for name in others]

    def __call__(self, n_q, n_k, batch):
        masks = {}
        for form, n in ((self.form, n_k), *((form, self.read or n_k) for form in self.others)):
            masks |= form(torch.ones(batch, n_q, n, dtype=torch.bool), self.heads, self.dtype)
        return masks


class Attempt:
    """The form of mask that does best, what it leaks and loses; the first form that had any effect; the first error.

    `nan`: a form was dropped because queries that have keys left got NaN. `for_all`: the form was meant for padding,
    and what the module takes is one mask for all sequences. `turned`: rows and columns of the mask are exchanged.
    """

    def __init__(self):
        self.form = self.first = self.error = None
        self.leaks, self.lost, self.accepted, self.effects, self.for_all = 0, 0, False, set(), False
        self.nan = self.turned = False

    @property
    def works(self):
        return self.form is not None and not self.leaks and not self.lost


def best_attempt(patient, shapes, mask, measure, names=None):
    """Try the forms of mask one after another until one does what the mask says."""
    best, tried = Attempt(), None
    if not patient.steady or (patient.caller.one_by_one and shapes is PADDING):
        return best
    names = sorted(names or patient.masks, key=is_for_padding, reverse=shapes is PADDING)
    names = [name for name in names if shapes is PADDING or "pad" not in name]
    candidates = [Form("mask", "boolean", "(b, n_q, n_k)")] if patient.caller.own else forms(names, shapes)
    for form in candidates:
        if tried and tried.shape == "(b, n_k)" != form.shape and "pad" in form.name and best.form is not None:
            break  # it takes (b, n_k), and takes it wrongly
        tried = form
        try:
            masks = patient.mask(form, mask)
            output = patient.run(patient.x, masks)
            best.accepted = True
            if not patient.moved(output, patient.output).any():
                continue
            best.first = best.first or form
            best.effects.add(form)
            if output[mask[:, 0] if shapes is PADDING else mask.any(-1)].isnan().any():
                best.nan = True
                raise ValueError("NaN for queries that have keys left: the module means another form")
            leaks, lost = measure(masks, mask)
            for_all = leaks + lost > 0 and shapes is PADDING and patient.reads_one_for_all(form)
        except Exception as error:
            best.error = best.error or error
            continue
        if best.form is None or (for_all, leaks + lost) < (best.for_all, best.leaks + best.lost):
            best.form, best.leaks, best.lost, best.for_all = form, leaks, lost, for_all
            best.turned = shapes is PAIRS and leaks > 0 and patient.turned(form)
        if best.works or best.turned:
            break
    return best


def unread_masks(patient):
    """Return the arguments for masks of the tokens themselves that take every form without a word, and do nothing."""
    words = ("attn", "attention", "causal", "pad", "len")  # of another mask it is not known what it masks
    names = [name for name in patient.caller.masks if name == "mask" or any(word in name.lower() for word in words)]
    return [name for name in names if _unread(patient, name)]


def _unread(patient, name):
    n = patient.n
    mask = torch.zeros(n, n, n, dtype=torch.bool)
    mask[..., 0] = True
    neutral = patient.caller.neutral(n, n, n) if patient.caller.neutral else {}
    inputs = [(patient.x,), (patient.x, patient.x.flip(0))] if patient.caller.two else [(patient.x,)]
    try:
        for sequences in inputs:
            before = patient.call(patient.module, *sequences)[0]
            for form in forms([name], {**PAIRS, **KEYS}):
                masks = neutral | patient.mask(form, mask)
                if patient.moved(patient.call(patient.module, *sequences, masks=masks)[0], before).any():
                    return False
    except Exception:
        return False  # it reads what it cannot use
    return True

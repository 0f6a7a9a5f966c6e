"""A design of two masks: which tokens reach the last position through two layers, when a query may look at few keys."""

import numpy as np

from ...engine.compare import RIGHT
from ...engine.run import Unfit

TOKENS, FEW = 8, 3
_place = np.arange(TOKENS)
_back = _place[:, None] - _place  # how far each key lies behind each query


def _arriving(masks):
    """Return which tokens reach the last position, (TOKENS,) of bool."""
    return (masks[1, -1, :, None] & masks[0]).any(axis=0)


def _fault(masks):
    """Return (id of a mistake, layer, query, what the query does), or None where every query has keys as it should."""
    keys = masks.sum(-1)
    if (ahead := np.argwhere(masks & (_back < 0))).size:
        return "key_ahead", *ahead[0][:2], f"looks ahead to key {ahead[0][2]}"
    for id, wrong in (("too_many_keys", keys > FEW), ("no_key_left", keys == 0)):
        if wrong.any():
            layer, query = np.argwhere(wrong)[0]
            return id, layer, query, f"has {keys[layer, query]} keys, allowed are 1 to {FEW}"
    return None


def judge_masks(result):
    masks = np.asarray(result)
    if masks.shape != (2, TOKENS, TOKENS) or masks.dtype != bool:
        numbers = masks.shape == (2, TOKENS, TOKENS) and masks.dtype.kind in "iuf" and np.isin(masks, (0, 1)).all()
        fix = "np.stack([first, second]), each of them True where a query may look."
        if numbers:
            fix = "my_masks.astype(bool), if 1 means: may attend."
        raise Unfit(
            f"This exercise asks for two masks, layer 1 and layer 2: shape (2, {TOKENS}, {TOKENS}) of bool. You hand "
            f"in shape {masks.shape} of {masks.dtype}. Fix: {fix}"
        )
    if not _fault(~masks) and _arriving(~masks).all():
        return "mask_inverted", "Inverted it is right."
    if fault := _fault(masks):
        id, layer, query, does = fault
        return id, f"In layer {layer + 1} query {query} {does}. Fix that first; then the check counts who reaches whom."
    if _arriving(masks).all():
        return RIGHT, ""
    *others, last = map(str, np.flatnonzero(~_arriving(masks)))
    missing = f"{', '.join(others)} and {last} do" if others else f"{last} does"
    count = int(_arriving(masks).sum())
    reach = "reaches" if count == 1 else "reach"
    return "reach_too_short", f"{count} of the {TOKENS} tokens {reach} the last position; {missing} not."

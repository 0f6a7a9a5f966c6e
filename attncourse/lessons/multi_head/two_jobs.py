"""A design of two heads on a ring of four tokens, each with its own job."""

import numpy as np

from attnlib import core, heads

from ...engine.compare import RIGHT
from ...engine.run import Unfit

# The design: W_Q for two heads on a ring of four tokens, x = I and W_K = [I I].
_place = np.eye(4)
_KEYS = np.hstack([_place, _place])  # (n, 2 * d_k)
_OPPOSITE = np.roll(_place, 2, axis=1)
_BESIDE = np.roll(_place, 1, axis=1) + np.roll(_place, -1, axis=1)
_WANTED = np.stack([_OPPOSITE, _BESIDE / 2])  # (h, n_q, n_k)
_DEALT = [*range(0, 8, 2), *range(1, 8, 2)]  # the features that every other column gives to a head


def job_maps(W_Q):
    q, k = heads.split_heads(W_Q, 2), heads.split_heads(_KEYS, 2)
    return core.attention_trace(q, k, k).weights


def _near(maps):
    return np.abs(maps - _WANTED) <= 0.05


def _farthest(maps):
    """Name the weight that is farthest from the wanted one."""
    head, token, key = np.unravel_index(np.abs(maps - _WANTED).argmax(), maps.shape)
    return (
        f"The farthest off: in head {head + 1} token {token} gives token {key} the weight "
        f"{maps[head, token, key]:.3f}; wanted is {_WANTED[head, token, key]:g}, within 0.05."
    )


# What would make an answer right -> which mistake it has; the first that does gives the name.
REPAIRS = {
    "heads_exchanged": lambda W: W[:, [4, 5, 6, 7, 0, 1, 2, 3]],
    "heads_interleaved": lambda W: W[:, _DEALT],
    "scores_too_small": lambda W: 1000 * W,
    "scores_negated": lambda W: -W,
}


def judge_jobs(result):
    W_Q = np.asarray(result)
    if W_Q.shape != _KEYS.shape or W_Q.dtype.kind not in "biuf" or not np.isfinite(W_Q).all():
        raise Unfit(
            f"One matrix of finite numbers is asked for, 4 features in, 8 out: shape (4, 8); you hand in shape "
            f"{W_Q.shape} of {W_Q.dtype}. Fix: np.hstack([head_1, head_2]), each of them (4, 4)."
        )
    W_Q = W_Q.astype(np.float64)
    maps = job_maps(W_Q)
    if _near(maps).all():
        return RIGHT, ""
    for id, repair in REPAIRS.items():
        if _near(job_maps(repair(W_Q))).all():
            too_small = id == "scores_too_small"
            return id, _farthest(maps) if too_small else "With that mended, both heads do their job."
    head, token = np.argwhere(~_near(maps).all(axis=-1))[0]
    yours, wanted = (" ".join(f"{w:.2f}" for w in m[head, token]) for m in (maps, _WANTED))
    return None, f"In head {head + 1} token {token} has the weights {yours} on tokens 0 to 3; wanted are {wanted}."

"""The exercises: what is asked, and the right steps."""

import difflib

from . import probes, stages
from .by_formula import by_formula
from .by_hand import by_hand
from .exercise import Exercise
from .learner_modules import multi_head_attention as _multi_head_module
from .learner_modules import self_attention as _self_attention_module
from .trained import trained


def _heads_mask(mask):
    """Give a mask per sequence, (b, n_q, n_k), its head axis."""
    return mask if mask is None or mask.ndim < 3 else mask[:, None]


_MASK_AXES = _WEIGHT_AXES = ("queries", "keys")
_OUTPUT_AXES = ("queries", "features")
_ATTENTION_HINTS = (
    "Four steps: scores, scale, (mask,) softmax, weighted sum.",
    "Scores are (..., n_q, n_k): Q times K with its last two axes swapped. Blocked scores become -inf.",
    "After the softmax over the keys, multiply by V. A query that may attend to nothing gets 0, not NaN.",
)
_HEADS_TASK = (
    "Project, split, attend in every head, merge, project with W_O. attn_mask: True = may attend, "
    "(n_q, n_k) or (b, n_q, n_k), the same for all heads."
)

_ALL = (
    Exercise(
        "softmax",
        "softmax(x, axis=-1) -> array of the shape of x, positive, summing to 1 along axis. "
        "x may hold large numbers and -inf, but no row of nothing but -inf.",
        (
            "exp makes every number positive. What makes them sum to 1?",
            "exp(1000) is inf. Subtract the same number from a whole row: the softmax stays.",
            "Use keepdims=True in max and sum, so that the shapes fit.",
        ),
        probes.softmax(),
        lambda x, axis=-1: {"masked": x, "axis": axis},
        lambda s: s.weights,
        axes=_WEIGHT_AXES,
        stage="softmax",
    ),
    Exercise(
        "attention_scores",
        "attention_scores(query, key) -> (..., n_q, n_k), the raw scores Q K^T, not scaled.",
        (
            "Entry (i, j) is the dot product of query i and key j.",
            "One matrix product gives all of them; the keys have to be turned round first.",
            "Swap the last two axes only: np.swapaxes(key, -1, -2).",
        ),
        probes.scores(),
        lambda q, k: {"q": q, "k": k},
        lambda s: s.raw_scores,
        axes=_WEIGHT_AXES,
        stage="scores",
    ),
    Exercise(
        "scaled_dot_product_attention",
        "scaled_dot_product_attention(query, key, value, attn_mask=None) -> (..., n_q, d_v). "
        "attn_mask is boolean, True = may attend; a query that may attend to nothing gets 0.",
        _ATTENTION_HINTS,
        probes.attention(),
        lambda q, k, v, mask=None: {"q": q, "k": k, "v": v, "mask": mask},
        lambda s: s.context,
        own=("attention_trace",),
        axes=_OUTPUT_AXES,
        reveal=stages.attention(),
    ),
    Exercise(
        "causal_mask",
        "causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and all before it.",
        (
            "Tokens stand at places 0 .. n_k - 1, and the last query is the last token. Where is the first one?",
            "Compare the places of the queries, as a column, with those of the keys, as a row.",
            "np.arange(n_k - n_q, n_k)[:, None] is the column. The dtype has to be bool.",
        ),
        probes.causal(),
        lambda n_q, n_k=None: {"n_q": n_q, "n_k": n_q if n_k is None else n_k},
        lambda s: s.causal,
        axes=_MASK_AXES,
        stage="mask",
    ),
    Exercise(
        "padding_mask",
        "padding_mask(lengths, n_k) -> (b, 1, n_k) of bool, True where key j of sequence b is a real token.",
        (
            "A sequence of length 2 has its tokens at positions 0 and 1.",
            "Compare the positions 0 .. n_k-1 with the length of each sequence.",
            "lengths has shape (b,); as (b, 1, 1) it compares with all positions at once.",
        ),
        probes.padding(),
        lambda lengths, n_k: {"lengths": lengths, "n_k": n_k},
        lambda s: s.padding,
        axes=_MASK_AXES,
        stage="mask",
    ),
    Exercise(
        "combine_masks",
        "combine_masks(*masks) -> one boolean mask, True where every mask is True. None stands for no mask.",
        (
            "May attend only where all of them allow it.",
            "Boolean arrays broadcast against each other under &.",
            "Start from the first mask that is not None, and never write into it: a & b makes a new array.",
        ),
        probes.combine(),
        lambda *masks: {"masks": masks},
        lambda s: s.combined,
        axes=_MASK_AXES,
        stage="mask",
    ),
    Exercise(
        "masked_softmax",
        "masked_softmax(scores, attn_mask=None) -> weights of the shape of scores, over the last axis. "
        "True = may attend; a row that may attend to nothing gives zeros.",
        (
            "A blocked key must get weight 0 before the row is normalised.",
            "exp(-inf) = 0: np.where puts -inf in the right places.",
            "In a row of -inf the maximum is -inf too, and -inf - -inf is NaN: treat such rows separately.",
        ),
        probes.masked(),
        lambda scores, mask=None: {"scaled": scores, "mask": mask},
        lambda s: s.weights,
        own=("softmax",),
        axes=_WEIGHT_AXES,
        stage="softmax",
    ),
    Exercise(
        "split_heads",
        "split_heads(x, num_heads): (..., n, d_model) -> (..., num_heads, n, d_k).",
        (
            "Only the last axis is cut.",
            "First (..., n, h, d_k), then bring the head axis forward.",
            "reshape, then np.swapaxes(..., -2, -3).",
        ),
        probes.split(),
        lambda x, num_heads: {"x": x, "num_heads": num_heads},
        lambda s: s.split(s.x),
        axes=("tokens", "features"),
        stage="split",
    ),
    Exercise(
        "merge_heads",
        "merge_heads(x): (..., h, n, d_k) -> (..., n, h * d_k), the inverse of split_heads.",
        (
            "Undo split_heads in reverse order.",
            "First put the heads behind the tokens, then join the last two axes.",
            "np.swapaxes(x, -2, -3), then reshape.",
        ),
        probes.merge(),
        lambda x: {"x": x},
        lambda s: s.merge(s.x),
        axes=("tokens", "features"),
        stage="merge",
    ),
    Exercise(
        "multi_head_attention",
        "multi_head_attention(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None) -> (..., n_q, d_model)."
        " " + _HEADS_TASK,
        (
            "You have written all parts: split_heads, scaled_dot_product_attention, merge_heads.",
            "Project first, with the whole matrix, then split.",
            "A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None].",
        ),
        probes.multi_head("multi_head_attention"),
        lambda query, key, value, W_Q, W_K, W_V, W_O, h, mask=None: dict(
            query=query, key=key, value=value, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, num_heads=h, mask=_heads_mask(mask)
        ),
        lambda s: s.output,
        axes=_OUTPUT_AXES,
        reveal=stages.multi_head(),
    ),
    Exercise(
        "SelfAttention",
        "class SelfAttention(nn.Module): __init__(d_in, d_k, d_v=None) makes nn.Linear W_Q, W_K (d_in -> d_k) and "
        "W_V (d_in -> d_v); forward(x, *, attn_mask=None) -> (output, weights), (..., n, d_v) and (..., n, n). "
        "Hand in the class. The gradient of the output must reach all three.",
        (*_ATTENTION_HINTS, "d_v defaults to d_k; bias=False keeps to the formula."),
        probes.self_attention(),
        lambda x, W_Q, W_K, W_V, mask=None, learning=(): dict(
            query=x, key=x, value=x, W_Q=W_Q, W_K=W_K, W_V=W_V, mask=mask, learning=learning
        ),
        lambda s: (s.context, s.shown),
        axes=_OUTPUT_AXES,
        reveal=stages.self_attention(),
        adapt=_self_attention_module,
        many=True,
        own=("forward",),
    ),
    Exercise(
        "MultiHeadAttention",
        "class MultiHeadAttention(nn.Module): __init__(embed_dim, num_heads) makes nn.Linear W_Q, W_K, W_V, W_O "
        "(embed_dim -> embed_dim); forward(query, key=None, value=None, *, attn_mask=None) -> (output, weights), "
        "(..., n_q, embed_dim) and (..., h, n_q, n_k). Hand in the class. "
        "The gradient of the output must reach all four. " + _HEADS_TASK,
        (
            "Project with the whole matrix, then split: unflatten(-1, (h, d_k)) and transpose.",
            "key defaults to query, value to key. A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None].",
            "Merge with transpose and flatten(-2), then W_O.",
        ),
        probes.multi_head("MultiHeadAttention", same_width=True),
        lambda query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=(): dict(
            query=query,
            key=key,
            value=value,
            W_Q=W_Q,
            W_K=W_K,
            W_V=W_V,
            W_O=W_O,
            num_heads=h,
            mask=_heads_mask(mask),
            learning=learning,
        ),
        lambda s: (s.output, s.shown),
        axes=_OUTPUT_AXES,
        reveal=stages.multi_head(),
        adapt=_multi_head_module,
        many=True,
        own=("forward",),
    ),
    Exercise(
        "cross_attention",
        "cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None) -> (..., n_q, d_v): queries from x, keys and "
        "values from context.",
        ("Three projections, of two different sequences.", *_ATTENTION_HINTS),
        probes.cross(),
        lambda x, context, W_Q, W_K, W_V, mask=None: dict(
            query=x, key=context, value=context, W_Q=W_Q, W_K=W_K, W_V=W_V, mask=mask
        ),
        lambda s: s.context,
        axes=_OUTPUT_AXES,
        reveal=stages.cross_attention(),
    ),
    Exercise(
        "variance_of_scores",
        "variance_of_scores(query, key) -> one number: the variance of all raw scores of query (n_q, d_k) and "
        "key (n_k, d_k).",
        (
            "First all scores, then one variance.",
            "The scores are one matrix product; no scale here.",
            "np.var of the whole matrix, without an axis.",
        ),
        probes.variance(),
        lambda q, k: {"q": q, "k": k},
        lambda s: s.variance,
        stage="output",
    ),
    Exercise(
        "entropy",
        "entropy(weights) -> (..., n_q), in nats: minus the sum of w ln w over the keys. A weight of 0 adds 0.",
        (
            "One number per query: the sum runs over the last axis.",
            "0 ln 0 counts as 0, and np.log(0) is -inf: give log another number there.",
            "np.where(weights > 0, weights, 1) has the logarithm 0 where the weight is 0.",
        ),
        probes.entropy(),
        lambda weights: {"weights": weights},
        lambda s: s.entropy,
        stage="output",
    ),
    *by_hand(),
    *by_formula(),
    *trained(),
)

EXERCISES = {exercise.name: exercise for exercise in _ALL}


class Checks:
    """All exercises by name: ``check.softmax(my_softmax)`` returns a Verdict.

    Examples
    --------
    >>> import numpy as np
    >>> check.attention_scores(lambda query, key: query @ np.swapaxes(key, -1, -2))
    ✓ attention_scores: right
    >>> check.attention_scores(lambda query, key: key @ np.swapaxes(query, -1, -2)).mistake
    'swapped_query_key'
    >>> check.causal_mask
    check.causal_mask: causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q
    of n_k tokens, and each sees itself and all before it.
    """

    def __getattr__(self, name):
        if name in EXERCISES:
            return EXERCISES[name]
        near = difflib.get_close_matches(name, EXERCISES, 1)
        fix = f"did you mean check.{near[0]}?" if near else "check shows all of them."
        raise AttributeError(f"there is no exercise called {name!r}. Fix: {fix}")

    def __dir__(self):
        return list(EXERCISES)

    def __repr__(self):
        return "\n".join(["Exercises; hand in your answer, for example check.softmax(my_softmax):", *map(repr, _ALL)])


check = Checks()

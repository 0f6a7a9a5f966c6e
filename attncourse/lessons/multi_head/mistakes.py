"""The mistakes that only Multi-head knows."""

import numpy as np

from attnlib import heads

from ...engine.steps import Steps
from ...mistakes.around import flatten_last
from ...mistakes.mistake import Mistake, allowed_by, scaled_by
from ...mistakes.weights import CAUSAL_ADDED


def _first_head_only(mask, s):
    if s.num_heads is None:
        return mask
    mask = np.broadcast_to(mask, s.scaled_scores.shape).copy()
    mask[..., 1:, :, :] = True
    return mask


def _split_without_swap(straight):
    """Split without the swap: straight to (..., h, n, d_k), or left as (..., n, h, d_k)."""

    def split(s):
        def cut_heads(x):
            *lead, n, width = x.shape
            axes = (s.num_heads, n) if straight else (n, s.num_heads)
            return x.reshape(*lead, *axes, width // s.num_heads)

        return cut_heads

    return split


def _merge_straight(x):
    *lead, h, n, d = x.shape
    return x.reshape(*lead, n, h * d)


def _split_interleaved(s):
    return lambda x: np.moveaxis(x.reshape(*x.shape[:-1], -1, s.num_heads), -1, -3)


def _merge_interleaved(s):
    return lambda x: flatten_last(np.moveaxis(x, -3, -1))


def _without_head_axis(mask):
    return mask[:, 0] if mask.ndim == 4 else mask


def _refuse_three_axes(mask, s):
    """Refuse a mask of three axes, as attnlib's own functions do."""
    if mask.ndim == 4:
        raise ValueError("a mask of three axes does not fit scores of four")
    return mask


_SINGLE_HEAD = {
    "split": lambda s: lambda x: x,
    "merge": lambda s: lambda x: x,
    **allowed_by(lambda mask, s: _without_head_axis(mask)),
}


def _with_heads(which):
    """Leave only the heads that `which(number of the head, how many)` keeps."""

    def project_some_heads(s):
        numbers = np.arange(s.num_heads)[:, None, None]
        return s.merge(np.where(which(numbers, s.num_heads), s.output, 0)) @ s.W_O

    return {"projected": project_some_heads}


def _average(s):
    return s.output.mean(axis=-3)


MISTAKES = (
    CAUSAL_ADDED,
    Mistake(
        "one_mask_for_first_head_only",
        behaves_as_if="the mask reaches the first head only",
        symptom="One head behaves, the others see everything; averaged over heads it hardly shows.",
        hint="Print the masked scores of every head.",
        then="All should be blocked alike: an axis of size 1 in the place of the heads reaches every one of them.",
        variants=(allowed_by(_first_head_only),),
    ),
    Mistake(
        "mask_without_head_axis",
        behaves_as_if="a mask (b, n_q, n_k) reaches scores (b, h, n_q, n_k) without a head axis",
        symptom="Axes are lined up from the right: the mask of sequence i becomes that of head i, or the shapes do "
        "not fit.",
        hint="Which axis do the scores have between batch and queries?",
        then="The axis of the heads. Put one of size 1 there: attn_mask[:, None], if the mask has three axes.",
        variants=(allowed_by(lambda mask, s: _without_head_axis(mask)), allowed_by(_refuse_three_axes)),
        raises=True,
    ),
    Mistake(
        "features_never_split",
        behaves_as_if="there were a single head: the features are never cut",
        symptom="One map of weights as wide as the whole layer, whatever num_heads is.",
        hint="Which line of your code uses num_heads, and what does it change?",
        then="num_heads cuts the projected features: split queries, keys and values before the scores.",
        variants=(_SINGLE_HEAD, _SINGLE_HEAD | scaled_by(lambda s: np.sqrt(s.num_heads / s.q.shape[-1]))),
    ),
    Mistake(
        "mask_always_three_axes",
        behaves_as_if="every mask had three axes",
        symptom="A mask (n_q, n_k) goes in as it is; only (b, n_q, n_k) and (b, 1, n_k) get a head axis.",
        hint="Which axis does attn_mask[:, None] put into a mask of two axes, and where? attn_mask.ndim counts them.",
        then="A new one in the middle, where it means something else. Add it only if attn_mask.ndim is 3.",
        variants=(allowed_by(lambda mask, s: mask[:, None] if mask.ndim == 2 else mask),),
        raises=True,
    ),
    Mistake(
        "merge_without_transpose",
        behaves_as_if="it reshapes the heads back without moving the head axis behind the tokens",
        symptom="Right shape, but a row holds pieces of different tokens.",
        hint="Merging undoes splitting, step by step in reverse. What was the last step of splitting?",
        then="A swap of axes -2 and -3. So swap them back first, then join the last two.",
        variants=({"merge": lambda s: _merge_straight}, {"merge": lambda s: flatten_last}),
    ),
    Mistake(
        "split_without_transpose",
        behaves_as_if="it reshapes into heads without bringing the head axis to the front",
        symptom="The shape may be right, but a head holds pieces of different tokens; or heads attend to heads.",
        hint="Number the entries 0, 1, 2, ... and print the first head.",
        then="It should hold the first d_k features of every token. Cut the last axis only, then swap axes -2 and -3.",
        variants=(
            {"split": _split_without_swap(straight=True)},
            {"split": _split_without_swap(straight=False)},
            {"split": lambda s: lambda x: x.reshape(s.num_heads, len(x), -1)},  # of one sequence alone
            {"split": lambda s: lambda x: x.reshape(s.num_heads, x.shape[-2], x.shape[-1] // s.num_heads)},
            {"split": _split_without_swap(straight=False), "merge": lambda s: flatten_last},
            {"split": _split_without_swap(straight=True), "merge": lambda s: _merge_straight},
        ),
    ),
    Mistake(
        "heads_interleaved",
        behaves_as_if="it deals the features out like cards: head i takes every h-th one",
        symptom="Trains as well, but no weights of another library fit.",
        hint="Which features belong to the first head: the first d_k, or every h-th?",
        then="The first d_k: cut the features into h blocks, (h, d_k) and not (d_k, h).",
        variants=(
            {"split": _split_interleaved},
            {"merge": _merge_interleaved},
            {"split": _split_interleaved, "merge": _merge_interleaved},
        ),
    ),
    Mistake(
        "sizes_of_heads_exchanged",
        behaves_as_if="it cuts the features into d_k heads of h numbers each",
        symptom="h and d_k have changed places: the first axis of the result is as long as d_k.",
        hint="Print the shape of your result beside h and d_k. Which of them stands where?",
        then="The heads come first: cut the last axis into (h, d_k).",
        variants=({"split": lambda s: lambda x: heads.split_heads(x, x.shape[-1] // s.num_heads)},),
    ),
    Mistake(
        "heads_averaged",
        behaves_as_if="it averages (or adds) the heads, where they should stand side by side",
        symptom="What one head found is blurred by the others; W_O can no longer tell them apart.",
        hint="How many features has the merged row, and how many has one head?",
        then="The merged row has h times as many: put the heads side by side, then multiply by W_O.",
        variants=(
            {"projected": lambda s: np.tile(_average(s), s.num_heads) @ s.W_O},
            {"projected": lambda s: np.tile(s.output.sum(axis=-3), s.num_heads) @ s.W_O},
            {"merge": lambda s: lambda x: x.mean(axis=-3)},
            {"merge": lambda s: lambda x: x.sum(axis=-3)},
            {"projected": _average},
            {"projected": lambda s: _average(s) @ s.W_O[: s.output.shape[-1]]},
        ),
    ),
    Mistake(
        "heads_left_out",
        behaves_as_if="one head or some heads have no part in the output, or one does the work of all",
        symptom="A loop over heads that returns in its first round, ends too early, or keeps only the last, does that.",
        hint="If you have a loop over heads: what does each round leave behind, and where does `return` stand?",
        then="Each round adds one block of features. Behind the loop all blocks stand side by side, then comes W_O.",
        variants=(
            *({"projected": lambda s, i=i: s.output[..., i, :, :]} for i in (0, -1)),
            {"projected": lambda s: s.output[..., 0, :, :], "shown": lambda s: s.weights[..., 0, :, :]},
            *(_with_heads(lambda i, h, first=first: i == first % h) for first in (0, -1)),
            *(_with_heads(lambda i, h, first=first: i != first % h) for first in (0, -1)),
            {"output": lambda s: np.repeat(Steps.output.func(s)[..., -1:, :, :], s.num_heads, axis=-3)},
        ),
    ),
    Mistake(
        "weights_averaged",
        behaves_as_if="the weights it returns are averaged over the heads",
        symptom="(..., n_q, n_k), where each head has a map of its own. nn.MultiheadAttention averages them, too.",
        hint="How many maps of weights should come back from a layer with h heads?",
        then="h of them, (..., h, n_q, n_k): return the weights as they come out of the softmax.",
        variants=({"shown": lambda s: s.weights if s.num_heads is None else s.weights.mean(axis=-3)},),
    ),
    Mistake(
        "value_defaults_to_query",
        behaves_as_if="a value that is left out is the query, not the key",
        symptom="Right where all three are given, and where the query stands alone. Elsewhere a key and its value "
        "belong to two tokens.",
        hint="A key and its value belong to one token. Which of the two other inputs holds that token?",
        then="The key does: value = key, after the line in which the key gets its own default.",
        variants=({"v": lambda s: s.split((s.query if s.arguments[2] is None else s.value) @ s.W_V)},),
    ),
    Mistake(
        "no_output_projection",
        behaves_as_if="the merged heads are returned without W_O",
        symptom="The heads' features never mix.",
        hint="Which of the four matrices does your output not depend on?",
        then="Not on W_O: multiply the merged heads by it at the end.",
        variants=({"projected": lambda s: s.merge(s.output)},),
    ),
    Mistake(
        "scale_by_num_heads",
        behaves_as_if="the scale is taken from the number of heads",
        symptom="The scores of one head do not add up more terms when other heads stand beside it.",
        hint="How many numbers are added up in one dot product of one head?",
        then="As many as one head has features, d_model / h. Take the root of that.",
        variants=(scaled_by(lambda s: 1 / np.sqrt(s.num_heads)),),
    ),
    Mistake(
        "heads_exchanged",
        behaves_as_if="head 1 does the job of head 2, and head 2 that of head 1",
        symptom="Both maps are right, each in the other's place.",
        hint="Which columns of W_Q belong to the first head?",
        then="The first four: exchange the two blocks of four columns.",
    ),
    Mistake(
        "scores_too_small",
        behaves_as_if="the right keys have the largest scores and too little weight",
        symptom="Softmax compares by differences, and each head divides its scores by the root of its d_k first.",
        hint="Which score, divided by 2, beats three zeros by far?",
        then="One of about 10 does. Multiply your matrix by one number.",
    ),
    Mistake(
        "scores_negated",
        behaves_as_if="the wanted keys get the smallest scores",
        symptom="Most weight goes where none was wanted.",
        hint="Change the sign of one score. What becomes of its weight?",
        then="It falls where it rose. Change the sign of the whole matrix.",
    ),
)

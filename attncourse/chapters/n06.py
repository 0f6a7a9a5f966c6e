"""Several heads: its exercises, questions, and what only they need."""

import numpy as np

from attnlib import core, heads

from ..engine import locate
from ..engine.compare import RIGHT
from ..engine.exercise import OUTPUT_AXES, TOKEN_AXES, Design, Function, Kept, Module
from ..engine.probes import BATCH, CUBE, MASK, PLAIN, SINGLE, Draw, Probe, dead, edges, gradient, single
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps
from ..mistakes.around import flatten_last
from ..mistakes.mistake import Mistake, allowed_by, scaled_by
from ..mistakes.weights import CAUSAL_ADDED


def multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    """Project, split, attend in every head, merge, project: `attnlib.MultiHeadAttention` as one function."""
    q, k, v = (heads.split_heads(x @ W, num_heads) for x, W in ((query, W_Q), (key, W_K), (value, W_V)))
    attn_mask = attn_mask if attn_mask is None or attn_mask.ndim < 3 else attn_mask[:, None]
    return heads.merge_heads(core.scaled_dot_product_attention(q, k, v, attn_mask)) @ W_O


def split_probes():
    draw = Draw("split_heads")
    return (
        Probe(PLAIN, (draw(5, 6), 3)),
        Probe(BATCH, (draw(2, 4, 15), 3)),
        Probe(CUBE, (draw(4, 4, 16), 4)),
        Probe(SINGLE, (*single(draw(5, 8)), 2)),
    )


def merge_probes():
    draw = Draw("merge_heads")
    return (
        Probe(PLAIN, (draw(3, 5, 2),)),
        Probe(BATCH, (draw(2, 3, 4, 5),)),
        Probe(CUBE, (draw(4, 4, 4),)),
        Probe(SINGLE, single(draw(2, 5, 4))),
    )


def multi_head_probes(name, same_width=False):
    """Return the probes of multi-head attention; `same_width` leaves out keys and values of another width."""
    draw, width, h = Draw(name), 8, 2

    def matrices(d, kdim=None, vdim=None):
        return draw.matrix(d, d), draw.matrix(kdim or d, d), draw.matrix(vdim or d, d), draw.matrix(d, d)

    w = matrices(width)
    common = edges(
        lambda *b: (draw(*b, 4, width), draw(*b, 5, width), draw(*b, 5, width), *w, h),
        lambda: (draw(3, 3, 9), draw(3, 3, 9), draw(3, 3, 9), *matrices(9), 3),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )
    if same_width:
        query, key, *_ = common[0].args
        return (
            *common,
            # As many keys as queries: a value that defaults to the query shows in the numbers, not in an error.
            Probe("a query and a key: the value defaults to the key", (query, key[: len(query)], None, *w, h)),
            Probe("a query alone: the key defaults to the query", (query, None, None, *w, h)),
            gradient((*common[0].args, dead(MASK)), ("W_Q", "W_K", "W_V", "W_O")),
        )
    others = (draw(4, width), draw(5, 6), draw(5, 7), *matrices(width, 6, 7), 4)
    return (*common, Probe("keys and values of other widths", others))


def _first_head_only(mask, s):
    if s.num_heads is None:
        return mask
    mask = np.broadcast_to(mask, s.scaled_scores.shape).copy()
    mask[..., 1:, :, :] = True
    return mask


def _reshaped(straight):
    """Split without the swap: straight to (..., h, n, d_k), or left as (..., n, h, d_k)."""

    def split(s):
        def cut(x):
            *lead, n, width = x.shape
            axes = (s.num_heads, n) if straight else (n, s.num_heads)
            return x.reshape(*lead, *axes, width // s.num_heads)

        return cut

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


def _refused(mask, s):
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

    def projected(s):
        numbers = np.arange(s.num_heads)[:, None, None]
        return s.merge(np.where(which(numbers, s.num_heads), s.output, 0)) @ s.W_O

    return {"projected": projected}


def _average(s):
    return s.output.mean(axis=-3)


# The design: W_Q for two heads on a ring of four tokens, x = I and W_K = [I I].
_place = np.eye(4)
_KEYS = np.hstack([_place, _place])  # (n, 2 * d_k)
_OPPOSITE = np.roll(_place, 2, axis=1)
_BESIDE = np.roll(_place, 1, axis=1) + np.roll(_place, -1, axis=1)
_WANTED = np.stack([_OPPOSITE, _BESIDE / 2])  # (h, n_q, n_k)
_DEALT = [*range(0, 8, 2), *range(1, 8, 2)]  # the features that every other column gives to a head


def _maps(W_Q):
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
_REPAIRS = {
    "heads_exchanged": lambda W: W[:, [4, 5, 6, 7, 0, 1, 2, 3]],
    "heads_interleaved": lambda W: W[:, _DEALT],
    "scores_too_small": lambda W: 1000 * W,
    "scores_negated": lambda W: -W,
}


def _judge_jobs(result):
    W_Q = np.asarray(result)
    if W_Q.shape != _KEYS.shape or W_Q.dtype.kind not in "biuf" or not np.isfinite(W_Q).all():
        raise Unfit(
            f"One matrix of finite numbers is asked for, 4 features in, 8 out: shape (4, 8); you hand in shape "
            f"{W_Q.shape} of {W_Q.dtype}. Fix: np.hstack([head_1, head_2]), each of them (4, 4)."
        )
    W_Q = W_Q.astype(np.float64)
    maps = _maps(W_Q)
    if _near(maps).all():
        return RIGHT, ""
    for id, repair in _REPAIRS.items():
        if _near(_maps(repair(W_Q))).all():
            too_small = id == "scores_too_small"
            return id, _farthest(maps) if too_small else "With that mended, both heads do their job."
    head, token = np.argwhere(~_near(maps).all(axis=-1))[0]
    yours, wanted = (" ".join(f"{w:.2f}" for w in m[head, token]) for m in (maps, _WANTED))
    return None, f"In head {head + 1} token {token} has the weights {yours} on tokens 0 to 3; wanted are {wanted}."


OWN = (
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
        variants=(
            allowed_by(lambda mask, s: _without_head_axis(mask)),
            allowed_by(_refused),
        ),
        raises=True,
    ),
    Mistake(
        "features_never_split",
        behaves_as_if="there were a single head: the features are never cut",
        symptom="One map of weights as wide as the whole layer, whatever num_heads is.",
        hint="Which line of your code uses num_heads, and what does it change?",
        then="num_heads cuts the projected features: split queries, keys and values before the scores.",
        variants=(
            _SINGLE_HEAD,
            _SINGLE_HEAD | scaled_by(lambda s: np.sqrt(s.num_heads / s.q.shape[-1])),
        ),
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
        variants=(
            {"merge": lambda s: _merge_straight},
            {"merge": lambda s: flatten_last},
        ),
    ),
    Mistake(
        "split_without_transpose",
        behaves_as_if="it reshapes into heads without bringing the head axis to the front",
        symptom="The shape may be right, but a head holds pieces of different tokens; or heads attend to heads.",
        hint="Number the entries 0, 1, 2, ... and print the first head.",
        then="It should hold the first d_k features of every token. Cut the last axis only, then swap axes -2 and -3.",
        variants=(
            {"split": _reshaped(straight=True)},
            {"split": _reshaped(straight=False)},
            {"split": _reshaped(straight=False), "merge": lambda s: flatten_last},
            {"split": _reshaped(straight=True), "merge": lambda s: _merge_straight},
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

_HEADS_TASK = (
    "Project, split, attend in every head, merge, project with W_O. attn_mask: True = may attend, "
    "(n_q, n_k) or (b, n_q, n_k), the same for all heads."
)


def _given(query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=()):
    """Name the arguments; a mask per sequence, (b, n_q, n_k), gets its head axis."""
    key = query if key is None else key
    value = key if value is None else value
    given = dict(query=query, key=key, value=value, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, num_heads=h, learning=learning)
    return given | {"mask": mask if mask is None or mask.ndim < 3 else mask[:, None]}


def _unpack(query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=()):
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
    inputs = tuple(x for x in (query, key, value) if x is not None)
    return (W_Q.shape[0], h), weights, inputs, {"attn_mask": mask}, learning


EXERCISES = (
    Function(
        "split_heads",
        "split_heads(x, num_heads): (..., n, d_model) -> (..., num_heads, n, d_k).",
        (
            "Only the last axis is cut.",
            "First (..., n, h, d_k), then bring the head axis forward.",
            "reshape, then np.swapaxes(..., -2, -3).",
        ),
        kept=Kept("split_heads", "attnlib.split_heads"),
        probes=split_probes(),
        given=lambda x, num_heads: {"x": x, "num_heads": num_heads},
        result=lambda s: s.split(s.x),
        axes=TOKEN_AXES,
        stage="split",
    ),
    Function(
        "merge_heads",
        "merge_heads(x): (..., h, n, d_k) -> (..., n, d_model).",
        (
            "Merging undoes splitting, so its steps come in reverse.",
            "First (..., n, h, d_k), then join the last two axes.",
            "np.swapaxes(x, -2, -3), then reshape. How long are the axes in front? x.shape[:-3].",
        ),
        kept=Kept("merge_heads", "attnlib.merge_heads"),
        probes=merge_probes(),
        given=lambda x: {"x": x},
        result=lambda s: s.merge(s.x),
        axes=TOKEN_AXES,
        stage="merge",
    ),
    Function(
        "multi_head_attention",
        "multi_head_attention(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None) -> (..., n_q, d_model)."
        " " + _HEADS_TASK,
        (
            "You have written all parts: split_heads, attention, merge_heads.",
            "Project first, with the whole matrix, then split.",
            "A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None]. A mask (n_q, n_k) does not: ask for "
            "attn_mask.ndim.",
        ),
        kept=Kept("multi_head", "attncourse.chapters.n06.multi_head"),
        probes=multi_head_probes("multi_head_attention"),
        given=_given,
        result=lambda s: s.projected,
        axes=OUTPUT_AXES,
        reveal=locate.multi_head(),
    ),
    Module(
        "MultiHeadAttention",
        "class MultiHeadAttention(nn.Module): __init__(embed_dim, num_heads) makes nn.Linear W_Q, W_K, W_V, W_O "
        "(embed_dim -> embed_dim); forward(query, key=None, value=None, *, attn_mask=None) -> (output, weights), "
        "(..., n_q, embed_dim) and (..., h, n_q, n_k). Hand in the class. "
        "The gradient of the output must reach all four, and a query without a key must not make it NaN. "
        + _HEADS_TASK,
        (
            "Project with the whole matrix, then split: unflatten(-1, (h, d_k)) and transpose.",
            "key defaults to query, value to key. A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None]. A mask "
            "(n_q, n_k) does not: ask for attn_mask.ndim.",
            "Merge with transpose and flatten(-2), then W_O.",
        ),
        kept=Kept("MultiHeadAttention", "attnlib.torch_layers.MultiHeadAttention", grown_from="SelfAttention"),
        probes=multi_head_probes("MultiHeadAttention", same_width=True),
        given=_given,
        result=lambda s: (s.projected, s.shown),
        axes=OUTPUT_AXES,
        reveal=locate.multi_head(),
        unpack=_unpack,
    ),
    Design(
        "two_jobs",
        "W_Q (4, 8) of two heads, with x = I and W_K = [I I], (4, 8): in head 1 each of four tokens in a ring looks at "
        "the one opposite, in head 2 at its two neighbours alike; weights within 0.05. Many answers are right: what "
        "they do is judged.",
        (
            "Row i of W_Q is the query of token i; its first four columns ask in head 1, the last four in head 2.",
            "A query asks for a place by a large number in the column of that place, as in section 1.",
            "10 * np.roll(np.eye(4), 2, axis=1) asks for the opposite place. Two equal numbers share a row.",
        ),
        judge=_judge_jobs,
        names=tuple(_REPAIRS),
    ),
)

RECALL = (
    Question("recall_newest", right="c", tempting="a").because(
        a="That is the mask of a text's first token. The newest one would not even see itself.",
        b="Row 0 of the square mask, lined up at the upper left, has one True; the last row has five.",
        c="The newest token is the last of five: its row is the last one of the square mask, all five keys.",
    ),
    Question("recall_stored", right="b", tempting="a").because(
        a="That is how it stands in a formula, x W. nn.Linear stores the transpose.",
        b="nn.Linear stores its matrix as (out, in) and multiplies by its transpose.",
        c="A square matrix fits both ways, and is wrong in one of them without a word.",
    ),
    Question("recall_variance", right="a", tempting="c").because(
        a="32 independent products of variance 1 are added up, and variances add up.",
        b="The root of 32 is the standard deviation.",
        c="1 is the variance of one product, or of the score divided by the root of 32.",
    ),
)

QUESTIONS = (
    Question("reshape", right="b", tempting="a").because(
        a="That is what split_heads gives. It takes a reshape to (n, h, d_k), and then a swap.",
        b="reshape keeps the order of the numbers in memory, where the features of a word stand together. So the first "
        "half of the numbers is the first half of the words.",
        c="reshape never fails if the number of entries is right, and 24 = 2 * 4 * 3.",
    ),
    Question("two_heads", right="b", tempting="a").because(
        a="The parameters are equally many. What differs is the number of rows of weights per query.",
        b="A head has one row of weights per query, so one mixture of both places, and the read-out here is linear. "
        "Two heads keep the places apart.",
        c="The one large head fails: both neighbours end up in one sum. Two heads do not.",
    ),
    Question("head_divisor", right="c", tempting="a").because(
        a="That is the root of 768, the width of the layer. But a score adds up the products of one head.",
        b="64 is the d_k of one head, 768 / 12. The divisor is its root.",
        c="One head has 768 / 12 = 64 features, so a score adds up 64 products, and the root of 64 is 8.",
    ),
)

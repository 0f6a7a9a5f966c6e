"""The exercises of Multi-head, and the inputs on which they are tried."""

from attnlib import core, heads

from ...engine import locate
from ...engine.exercise import OUTPUT_AXES, TOKEN_AXES, Design, Function, Kept, Module
from ...engine.probes import BATCH, CUBE, MASK, PLAIN, SINGLE, Draw, Probe, dead, edges, gradient, single
from .two_jobs import REPAIRS, judge_jobs


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


_HEADS_TASK = (
    "Project, split, attend in every head, merge, project with W_O. attn_mask: True = may attend, "
    "(n_q, n_k) or (b, n_q, n_k), the same for all heads."
)


def _name_arguments(query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=()):
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
        kept=Kept("multi_head", "attncourse.lessons.multi_head.multi_head"),
        probes=multi_head_probes("multi_head_attention"),
        given=_name_arguments,
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
        given=_name_arguments,
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
            "A query asks for a position by a large number in the column of that position.",
            "10 * np.roll(np.eye(4), 2, axis=1) asks for the opposite position. Two equal numbers share a row.",
        ),
        judge=judge_jobs,
        names=tuple(REPAIRS),
    ),
)

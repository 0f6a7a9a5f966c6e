"""One block of a model as a picture: the residual stream, and two results that are added to it."""

from attnlib import plot
from attnlib.colours import LINE
from attnlib.tables import TINT  # no role's colour

STREAM, BRANCH = 1.0, 2.4  # heights of the residual stream, and of what is computed from it


def draw(features, *, norm_first):
    """Draw a block: attention, then a feed-forward network, each added to the vectors that it was computed from.

    A token's vector has so many features. With `norm_first` a norm stands in front of attention and of the network,
    else behind each sum. Returns the axes.

    >>> ax = draw(64, norm_first=True)
    >>> [text.get_text() for text in ax.texts if text.get_text() in ("attention", "norm", "+")]
    ['norm', 'attention', '+', 'norm', '+']
    """
    _, ax = plot.subplots(figsize=(6.2, 2.5))
    arrow = {"arrowstyle": "-|>", "lw": 3, "color": "gray"}
    _ = ax.annotate("", (10.6, STREAM), (0, STREAM), arrowprops=arrow)
    for start, name in ((0.4, "attention"), (5.4, "feed-forward")):
        _branch(ax, start, name, norm_first)
    _ = ax.text(0, 0.4, f"vectors of all tokens, (n, {features})")
    title = "One block: the vectors go on, two results are added"
    ax.set(xlim=(-0.2, 10.7), ylim=(0.2, 3), title=title)
    _ = ax.axis("off")
    return ax


def _branch(ax, start, name, norm_first):
    """Draw what is computed from a copy of the vectors and added to them."""
    end = start + (4 if norm_first else 3)
    turns = [STREAM, BRANCH, BRANCH, STREAM + 0.15]
    _ = ax.plot([start, start, end, end], turns, color="gray", lw=1.2, zorder=0)
    if norm_first:
        _box(ax, start + 0.9, BRANCH, "norm", LINE)
    _box(ax, start + (2.7 if norm_first else 1.5), BRANCH, name, TINT)
    _box(ax, end, STREAM, "+", "gray")
    if not norm_first:
        _box(ax, end + 1, STREAM, "norm", LINE)


def _box(ax, x, y, text, edge):
    box = {"fc": "white", "ec": edge, "lw": 1 if text == "+" else 2}
    _ = ax.text(x, y, text, color="black", bbox=box, ha="center", va="center")

"""One block of a model as a picture: the residual stream, and two results that are added to it."""

from attnlib import plot
from attnlib.colours import LINE
from attnlib.tables import TINT  # no role's colour

STREAM, BRANCH = 1.0, 2.4  # heights of the residual stream, and of what is computed from it


def draw(features, *, norm_first):
    """Draw a block: attention, then a feed-forward network, each added to the vectors that it was computed from.

    A token's vector has so many features. With `norm_first` a norm stands in front of attention and of the network,
    else behind each sum. Returns the two axes, which a phone shows below each other.

    >>> axes = draw(64, norm_first=True)
    >>> [text.get_text() for ax in axes for text in ax.texts if text.get_text() in ("attention", "norm", "+")]
    ['norm', 'attention', '+', 'norm', '+']
    """
    _, axes = plot.subplots(1, 2, figsize=(6.2, 2.5), gridspec_kw={"wspace": 0})
    arrow = {"arrowstyle": "-|>", "lw": 3, "color": "gray", "shrinkA": 0, "shrinkB": 0}
    titles = "One block: attention is added", "then a feed-forward network"
    for ax, name, title in zip(axes, ("attention", "feed-forward"), titles, strict=True):
        _ = ax.annotate("", (5.2, STREAM), (0, STREAM), arrowprops=arrow)
        _branch(ax, 0.4, name, norm_first)
        ax.set(xlim=(-0.1, 5.3), ylim=(0.2, 3), title=title)
        _ = ax.axis("off")
    _ = axes[0].text(0, 0.4, f"vectors of all tokens, (n, {features})")
    return axes


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

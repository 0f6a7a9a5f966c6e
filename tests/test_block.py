"""The picture of one block of a model, in lessons a_real_model and it_speaks."""

import pytest

from attncourse.views import block


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_norm_stands_where_the_model_has_it(norm_first):
    axes = block.draw(64, norm_first=norm_first)
    words = [text for ax in axes for text in ax.texts if text.get_bbox_patch()]
    axes[0].figure.canvas.draw()
    room = [text.get_bbox_patch().get_window_extent() for text in words]
    boxes = [(text.get_text(), box.x0, text.get_position()[1]) for text, box in zip(words, room, strict=True)]
    lifted = {name for name, _, y in boxes if y == block.BRANCH}
    along = [name for name, _, y in sorted(boxes, key=lambda box: box[1]) if y == block.STREAM]
    assert lifted == ({"norm"} if norm_first else set()) | {"attention", "feed-forward"}
    assert along == (["+", "+"] if norm_first else ["+", "norm", "+", "norm"])
    assert not any(one.overlaps(other) for i, one in enumerate(room) for other in room[:i])

"""The picture of one block of a model, in lessons a_real_model and it_speaks."""

import pytest

from attncourse.views import block


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_norm_stands_where_the_model_has_it(norm_first):
    ax = block.draw(64, norm_first=norm_first)
    boxes = [(text.get_text(), *text.get_position()) for text in ax.texts if text.get_bbox_patch()]
    ax.figure.canvas.draw()
    lifted = {name for name, _, y in boxes if y == block.BRANCH}
    along = [name for name, _, y in sorted(boxes, key=lambda box: box[1]) if y == block.STREAM]
    assert lifted == ({"norm"} if norm_first else set()) | {"attention", "feed-forward"}
    assert along == (["+", "+"] if norm_first else ["+", "norm", "+", "norm"])
    room = [text.get_bbox_patch().get_window_extent() for text in ax.texts if text.get_bbox_patch()]
    assert not any(one.overlaps(other) for i, one in enumerate(room) for other in room[:i])

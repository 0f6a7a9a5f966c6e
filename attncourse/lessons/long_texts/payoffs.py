"""What a right answer shows in Long texts: which blocks each token reads, by the reader's own function."""

import numpy as np

from ...engine.describe import Payoff
from ...engine.pictures import heatmap


def blocks_of_each_token(blocks):
    """Draw the two blocks that 8 tokens read; each looks for its own key, and the last one for key 3."""
    key = np.eye(8)
    read = np.asarray(blocks(np.stack(2 * [key[[0, 1, 2, 3, 4, 5, 6, 3]]]), key, 2, 2), dtype=float)
    rows, columns = [f"token {i}" for i in range(8)], ["keys 0, 1", "2, 3", "4, 5", "6, 7"]
    return heatmap(read, rows, columns, texts=[["read" if x else "" for x in row] for row in read])


PAYOFFS = {
    "blocks": Payoff(
        "Each token reads the first block and the one that fits best. Token 7 asks for key 3, not for its own block.",
        blocks_of_each_token,
        "Next: a language model reads the blocks that you choose.",
    )
}

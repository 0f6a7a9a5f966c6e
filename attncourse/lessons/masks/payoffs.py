"""What a right answer shows in Masks: who may look where, by the reader's own masks and functions."""

import numpy as np

from attnlib.examples import SENTENCE, WORDS
from attnlib.masks import causal_mask

from ...engine.describe import Payoff
from ...engine.pictures import bar, beside, heatmap, table
from .design import TOKENS

Q, K, V = SENTENCE.project()
SCALED = Q @ K.T / 3**0.5
SAW = WORDS.index("saw")


def draw_mask(mask, rows, columns, tinted=None):
    """Draw a boolean mask as a map of 1 and nothing; `tinted`, between 0 and 1, says how strongly."""
    mask = np.asarray(mask)
    tints = mask * 0.6 if tinted is None else tinted
    return heatmap(tints, rows, columns, texts=np.where(mask, "1", " ").tolist())


def padded_texts(padding_mask):
    mask = padding_mask(np.array([4, 2]), 4)[:, 0]
    return draw_mask(mask, [" ".join(WORDS), "Ben saw · ·"], range(4))


def staircase(my_causal_mask):
    """Draw the mask of the sentence, and that of its last two words."""
    alone = "<div>The last two words ask alone:</div>"
    last = draw_mask(my_causal_mask(2, 4), WORDS[2:], WORDS)
    return draw_mask(my_causal_mask(4), WORDS, WORDS) + alone + last


def row_of_saw(masked_softmax):
    """Draw the weights of *saw* without a mask and behind a causal one."""
    every, behind = masked_softmax(SCALED)[SAW], masked_softmax(SCALED, causal_mask(4))[SAW]
    rows = [[name, *(bar(x) for x in row)] for name, row in (("without a mask", every), ("behind a mask", behind))]
    return table([["saw", *WORDS], *rows], marked=2)


def poked_words(attention):
    """Draw which outputs of the reader's function move as each word is changed, behind a causal mask."""
    new, mask = np.random.default_rng(0).normal(size=SENTENCE.x.shape[1]), causal_mask(4)

    def attend(x):
        return attention(x @ SENTENCE.W_Q, x @ SENTENCE.W_K, x @ SENTENCE.W_V, mask)

    changed = np.where(np.eye(4, dtype=bool)[..., None], new, SENTENCE.x)  # (word changed, n, d_in)
    moved = np.stack([np.abs(attend(x) - attend(SENTENCE.x)).max(axis=-1) for x in changed])
    return heatmap(moved, [f"{word} changed" for word in WORDS], WORDS, limits=(0, moved.max()))


def two_looks(masks):
    """Draw both masks; what brings a token to the last one is darker."""
    first, second = np.asarray(masks).astype(bool)
    handed_on = second[-1]  # by these the last token is reached
    paths = np.where(handed_on[:, None] & first, 1, 0.3 * first), 0.3 * second
    paths[1][-1] = handed_on
    drawn = [
        draw_mask(mask, range(TOKENS), range(TOKENS), path) for mask, path in zip((first, second), paths, strict=True)
    ]
    return beside(*(f"layer {i}{one}" for i, one in enumerate(drawn, 1)))


PAYOFFS = {
    "causal_mask": Payoff(
        "Nobody reads ahead, neither in a whole text nor when the last two words ask alone.",
        staircase,
        "Next: does it matter where the mask is applied?",
    ),
    "masked_softmax": Payoff(
        "Blocked keys get exactly 0, and the rest of the row still sums to 1.",
        row_of_saw,
        "Next: attention with a mask, made of it.",
    ),
    "masked_attention": Payoff(
        "The future no longer moves the past: below the diagonal all is 0. In notebook [[it_speaks]] a language model "
        "calls this function.",
        poked_words,
        "Next: keep it, and poke it yourself.",
    ),
    "sparse_masks": Payoff(
        "Every token reaches the last one, with at most three looks each. Dark are the looks that bring it there.",
        two_looks,
        "Next: texts of several lengths.",
    ),
    "padding_mask": Payoff(
        "Padding is now invisible to every query of its text.", padded_texts, "Next: both masks at once."
    ),
}

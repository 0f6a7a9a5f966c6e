"""What a right answer shows in One token at a time: the reader's own cache, window, shared heads and drafts at work."""

import numpy as np

from attnlib.core import scaled_dot_product_attention
from attnlib.examples import SENTENCE, WORDS
from attnlib.masks import causal_mask

from ...engine.describe import Payoff
from ...engine.pictures import bar, beside, heatmap, table
from ...writer.grammar import REACH

WORDS_DRAFTED = ("sleep", "sleeps", "near")
MODEL, DRAFT = np.array([0.7, 0.1, 0.2]), np.array([0.4, 0.4, 0.2])


def one_by_one(decode_step):
    """Feed the sentence word by word: keys kept, and how far each output is from that of the whole text."""
    query, key, value = (x[None] for x in SENTENCE.project())
    whole, past = scaled_dot_product_attention(query, key, value, causal_mask(4)), (key[:, :0], value[:, :0])
    rows = [["", "keys kept", "off from the whole text"]]
    for i, word in enumerate(WORDS):
        one = slice(i, i + 1)
        output, past = decode_step(query[:, one], key[:, one], value[:, one], past, scaled_dot_product_attention)
        off = np.abs(output - whole[:, one]).max()
        kept = np.asarray(past[0]).shape[-2]
        rows.append([word, bar(kept, 4, str(kept)), f"{off:.3f}"])
    return table(rows)


def windows(window_mask):
    """Draw a window of 3 for a whole text, and for a token that comes later."""
    drawn = []
    for n_q, n_k in ((6, 6), (1, 8)):
        mask = np.asarray(window_mask(n_q, n_k, 3))
        tokens, texts = [f"token {i}" for i in range(n_k - n_q, n_k)], np.where(mask, "1", " ").tolist()
        drawn.append(heatmap(0.6 * mask, tokens, range(n_k), texts=texts))
    return beside(*drawn)


def reach(beginning):
    """Draw which words two layers bring to the last one."""
    words = beginning.split()
    brought = ("yes" if len(words) - i <= REACH + 1 else "·" for i in range(len(words)))
    return table([["", *words], ["within reach of the last", *brought]])


def heads_used(grouped_attention):
    """Tell by the reader's own function which head of keys each of four heads of queries meets."""
    value = np.arange(2.0)[:, None, None] + np.zeros((2, 3, 1))  # each head of values gives its own number
    output = grouped_attention(np.ones((4, 3, 2)), np.ones((2, 3, 2)), value)[:, 0, 0]
    return table(
        [["head of queries", *(f"Q{i}" for i in range(1, 5))], ["head of keys", *(f"K{x + 1:g}" for x in output)]]
    )


def shares(draft_chances):
    """Draw what is drafted, and what the reader's test makes of it."""
    kept, other = draft_chances(MODEL, DRAFT)
    written = DRAFT * kept + (1 - DRAFT @ kept) * other
    named = {"drafted": DRAFT, "kept": DRAFT * kept, "written": written, "the model's": MODEL}
    return table([["made-up shares", *WORDS_DRAFTED], *([name, *map(bar, x)] for name, x in named.items())], marked=3)


PAYOFFS = {
    "decode_step": Payoff(
        "A word costs one key, and gets what the whole text would have given it. In notebook [[it_speaks]] a language "
        "model speaks through this function.",
        one_by_one,
        "Next: how bugs hide from one word at a time.",
    ),
    "window_mask": Payoff(
        "In this window of 3 a token sees three keys at most, however long the text: the cache may forget the rest.",
        windows,
        "Next: design what a window cannot know.",
    ),
    "out_of_reach": Payoff(
        "What would tell the number lies before the words that two layers reach.", reach, "Next: share keys."
    ),
    "grouped_attention": Payoff(
        "Neighbours share: Q1 and Q2 meet K1. Here the cache is half as large.",
        heads_used,
        "Next: several words in one pass.",
    ),
    "draft_chances": Payoff(
        "What is written has the model's probabilities, whatever was drafted.",
        shares,
        "Next: a decoder with a bug.",
    ),
}

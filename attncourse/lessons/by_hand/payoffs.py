"""What a right answer shows in By hand: her row, which each exercise fills by one more line."""

import numpy as np

from attnlib.colours import KEY, VALUE
from attnlib.core import attention_trace
from attnlib.examples import NAMES, SENTENCE, WORDS

from ...engine.describe import Payoff
from ...engine.pictures import bar, chip, heatmap, table, words

SHE, WHO = 3, NAMES["given"].index("who")
TRACE = attention_trace(*SENTENCE.project())
_, KEYS, VALUES = SENTENCE.project()


def her_row(filled, numbers):
    """Draw her row with the lines filled that are solved; `numbers` are those of the last one, as handed in."""
    found = [", ".join(np.array(NAMES["asked"])[key > 0]) for key in KEYS]
    scores = numbers if filled == 2 else TRACE.scores[SHE]
    weights = numbers if filled == 3 else TRACE.weights[SHE]
    lines = [
        ["key", *(chip(name, KEY) for name in found)],
        ["score", *(f"<b>{x:.0f}</b>" if x == max(scores) else f"{x:.0f}" for x in scores)],
        ["weight, ÷ √3" if filled == 4 else "weight", *(bar(x) for x in weights)],
        [words("*she* takes"), None],
    ]
    if filled == 4:
        names = [f"{word} is {VALUES[i, WHO]:.0f}" for i, word in enumerate(WORDS) if VALUES[i, WHO]]
        lines[3][1] = f"{chip(f'who {numbers[WHO]:.3f}', VALUE)} ({', '.join(names)})"
    for line in lines[filled:3]:
        line[1:] = [None] * len(WORDS)
    return table([[words("*she* meets"), *(f"<b>{word}</b>" for word in WORDS)], *lines], marked=filled)


def whom_words_find(W_Q):
    """Draw the weights that the reader's own W_Q makes."""
    weights = attention_trace(SENTENCE.x @ np.asarray(W_Q, dtype=float), KEYS, VALUES).weights
    return heatmap(weights, WORDS, WORDS)


PAYOFFS = {
    "key_of_anna": Payoff(
        "Anna can be found in two ways: as a name, and as female.",
        lambda numbers: her_row(1, numbers),
        "Next: her query meets these keys.",
    ),
    "scores_of_she": Payoff(
        "Anna fits best, with 5. Ben comes second: he is a name, too, but not a female one.",
        lambda numbers: her_row(2, numbers),
        "Next: softmax makes weights of these four numbers.",
    ),
    "weights_of_she": Payoff(
        "Two points of score between Anna and Ben have become seven times the weight.",
        lambda numbers: her_row(3, numbers),
        "Next: *she* takes by these weights.",
    ),
    "output_of_she": Payoff(
        "*She* is Anna, though faintly: 0.885 of 2. Ben pulls the other way, and two words have nothing to give.",
        lambda numbers: her_row(4, numbers),
        "Next: [[what_words_look_for]] lets every word find what it needs.",
    ),
    "what_words_look_for": Payoff(
        "Every word now finds what it needs: each row has one strong cell.",
        whom_words_find,
        "Next: notebook [[vectorized]] computes all rows at once.",
    ),
}

"""What a right answer shows in A model of your own: targets, guesses in bits, two sums, a text."""

import numpy as np

from attnlib.colours import NEXT, QUERY

from ... import letters
from ...engine.describe import Payoff
from ...engine.pictures import bar, chip, table

SENTENCE = "The words"


def targets(windows):
    """Show what follows each letter of a window, by the reader's own function."""
    x, y = windows(np.arange(len(SENTENCE)), np.array([0]), len(SENTENCE) - 1)
    told = [
        [chip(SENTENCE[int(i)].replace(" ", "␣"), colour) for i in row[0]] for row, colour in ((x, QUERY), (y, NEXT))
    ]
    return table([["reads", *told[0]], ["should say", *told[1]]])


def guesses(bits):
    """Show how many bits three guesses cost, by the reader's own function."""
    rows = [["share of the right letter", "bits"]]
    for share in (0.5, 0.25, 1 / 94):
        logits = np.log(np.array([[[share, 1 - share]]]))
        cost = float(bits(logits, np.zeros((1, 1), dtype=int)))
        rows.append([f"{share:.2f}", bar(cost, 7, f"{cost:.2f}")])
    return table(rows)


def two_sums(block):
    """Show what is added to a vector where a part makes nothing but ones, or zeros."""
    rows = [["attention makes", "the network makes", "1 becomes"]]
    for a, b in ((0, 0), (1, 0), (0, 1), (1, 1)):
        parts = (lambda x, mask, a=a: a + 0 * x), (lambda x, b=b: b + 0 * x)
        out = block(np.ones((1, 1)), np.ones((1, 1), dtype=bool), *parts, *(lambda x: x, lambda x: x))
        rows.append([str(a), str(b), f"{out[0, 0]:.0f}"])
    return table(rows)


def first_text(write):
    """Let the reader's own function write with the stored model."""
    corpus, model = letters.Corpus(), letters.load(letters.STEPS[-1])
    prompt = corpus.numbers("The ").tolist()
    tokens = write(lambda t: model(np.asarray(t))[0], prompt, 60, letters.N, 0.7, 1)
    return table([["your function writes", chip(corpus.letters(tokens.astype(int)).replace("\n", " ¶ "), NEXT)]])


PAYOFFS = {
    "windows": Payoff("Every letter has a target: the one that follows it.", targets, "Next: what must a model beat?"),
    "bits": Payoff("One bit for each halving of the share.", guesses, "Next: the model itself, from two sums."),
    "block": Payoff("Both parts add, so zeros leave a vector as it was.", two_sums, "Next: train it."),
    "write": Payoff("It writes, letter by letter, through your function.", first_text, "Next: who cheats?"),
}

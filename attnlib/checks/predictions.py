"""Questions to answer before a result is shown; afterwards `predict` says what was right and why the rest is not."""

import difflib
import html
from dataclasses import dataclass
from typing import NamedTuple

from .verdict import printable


class Question(NamedTuple):
    """A question of a notebook; its text and options stand there.

    `wrong` says why each other option is wrong; `tempting` is the one of them that comes to mind first. That is a
    judgement: nobody has counted.
    """

    name: str
    right: str
    because: str
    wrong: dict
    tempting: str

    def __call__(self, guess=None):
        """Return the Revealed for a guess, a letter; None means that no choice was made."""
        return Revealed(self, guess)

    @property
    def options(self):
        return sorted([self.right, *self.wrong])


@dataclass(repr=False, eq=False)
class Revealed:
    """What became of a guess. It shows itself in a notebook.

    Attributes
    ----------
    question : Question
    guess : str or None
    """

    question: Question
    guess: str | None = None

    @property
    def right(self):
        """True or False; None where no choice was made."""
        return self.guess == self.question.right if self.guess in self.question.options else None

    def _texts(self):
        q, why = self.question, self.question.wrong
        letters = ", ".join(f'"{letter}"' for letter in q.options)
        if self.guess is None:
            return "… No choice made yet", f"Write one of {letters} above, and run both cells again."
        if self.right is None:
            return f"… {self.guess!r} is not one of the options", f"Choose one of {letters}."
        if self.right:
            return f"✓ {q.right} is right", f"{q.because} Tempting: {q.tempting}. {why[q.tempting]}"
        title = f"✗ You chose {self.guess}, right is {q.right}"
        return title, f"{why[self.guess]} {q.because}"

    def __repr__(self):
        return "\n".join(self._texts())

    def __str__(self):
        return printable(repr(self))

    def _repr_html_(self):
        title, text = (html.escape(t) for t in self._texts())
        return (
            '<div style="color:currentColor;border-left:4px solid currentColor;padding:2px 10px;max-width:100%">'
            f"<strong>{title}</strong><div>{text}</div></div>"
        )


_ALL = (
    Question(
        "softmax_by_hand",
        "c",
        "Softmax compares by differences: 4 gets e * e = 7.4 times the weight of 2.",
        {
            "a": "2 : 4 : 4 would be dividing by the sum. The exponential comes first, and it stretches differences.",
            "b": "Small is not 0: e to the power 2 is 7.4, against 54.6 twice, and that leaves 0.06 for the first key.",
        },
        "b",
    ),
    Question(
        "rounding",
        "c",
        "The weight 0.063 was rounded to 0 and multiplies a value of 1, 2 and 3, "
        "and the lost weight went to other values.",
        {
            "a": "The first weight alone is off by 0.06, far more than 0.001, and the values are larger than 1.",
            "b": "A weight is off by up to 0.06. That is multiplied by values of up to 8 and added over three keys.",
        },
        "b",
    ),
    Question(
        "symmetric",
        "a",
        "With Q = K the scores are symmetric, so rows and columns carry the same numbers.",
        {
            "b": "In the identity example the matrix of scores equals its transpose, so both axes sum alike.",
            "c": "Swapping Q and K transposes the scores. Here Q = K, so nothing changes.",
            "d": "Both mistakes are real, and in this example neither moves a digit.",
        },
        "d",
    ),
    Question(
        "cube",
        "c",
        "With three equal axes every wrong axis fits, and the numbers are wrong.",
        {
            "a": "K.T reverses all axes, and with sizes 3, 3, 3 the product is defined all the same.",
            "b": "The shapes agree; what was summed and normalised is another axis.",
        },
        "a",
    ),
    Question(
        "score_std",
        "b",
        "The variance is 64, and the standard deviation is its root.",
        {
            "a": "1 is the standard deviation of one entry. A score adds up 64 products.",
            "c": "64 is the variance. A typical score is as large as its root.",
        },
        "c",
    ),
    Question(
        "mean_gradient",
        "c",
        "At d_k = 1024 most unscaled queries get next to nothing, and the undecided ones get huge gradients, "
        "which carry the mean.",
        {
            "a": '"Gradients vanish" suggests it, and here it holds for the median. The mean is another matter.',
            "b": "The softmax passes on less to most queries, and nothing divides K on the way to q: not equal.",
        },
        "a",
    ),
    Question(
        "square_weight",
        "b",
        "Copying (4, 3) into (3, 4) raises an error. A square matrix fits both ways, and nobody notices.",
        {
            "a": "Only the shapes are compared, and a square matrix has the shape of its transpose.",
            "c": "nn.Linear computes x times the transpose of its weight, so the matrix has to be turned round.",
        },
        "a",
    ),
    Question(
        "sum_of_weights",
        "c",
        "Each row of weights sums to 1 whatever the matrices are: the loss is a constant.",
        {
            "a": "W_V has no part in the weights, true. But the sum of a row is always 1, for any W_Q and W_K.",
            "b": "The weights depend on W_Q and W_K. Their sum does not.",
        },
        "a",
    ),
    Question(
        "zero_after",
        "b",
        "The blocked keys took their share in the softmax, and nobody gives it back.",
        {
            "a": "The softmax made the row sum to 1 with all keys in it. Taking some away leaves less than 1.",
            "c": "Row 2 may look at everything and keeps its 1; a row is 0 only if every key is blocked.",
        },
        "a",
    ),
    Question(
        "equal_sizes",
        "c",
        "Two axes that fit are read as (n_q, n_k). No library can know that you meant (b, n_k).",
        {
            "a": "An error needs sizes that disagree. Here 10 = 10.",
            "b": "NumPy and torch line up the last axes: (b, n_k) lands on (n_q, n_k), the same for every sequence.",
        },
        "a",
    ),
    Question(
        "two_heads",
        "b",
        "A head has one row of weights per query, so one mixture of both places, and the read-out here is linear. Two "
        "heads keep the places apart.",
        {
            "a": "The large head has more features, but one row of weights: both neighbours end up in one sum, which a "
            "linear read-out cannot take apart.",
            "c": "The parameters are equally many. What differs is the number of rows of weights per query.",
        },
        "c",
    ),
    Question(
        "reshape",
        "b",
        "reshape keeps the order of the numbers in memory, and there a token's features stand together.",
        {
            "a": "That is what split_heads gives. It takes a reshape to (n, h, d_k) and then a swap.",
            "c": "reshape never fails if the number of entries is right, and 12 = 2 * 3 * 2.",
        },
        "a",
    ),
    Question(
        "unrelated",
        "c",
        "Small random projections and a divisor of 16 leave hardly any difference between scores.",
        {
            "a": "A peak needs scores that differ by several units. These differ by hundredths.",
            "b": "Nothing makes a token look at itself: query and key come from unrelated tensors.",
        },
        "a",
    ),
    Question(
        "poison",
        "b",
        "The projections are never applied, so nothing in the output depends on them.",
        {
            "a": "NaN spreads to everything that is computed from it. Nothing is computed from W_Q here.",
            "c": "That would take one projection that is used. None is.",
        },
        "a",
    ),
    Question(
        "forbidden",
        "c",
        "All scores of the row become the same -1e20, and the softmax of equal scores is uniform.",
        {
            "a": "e to the power -1e20 is 0, but softmax compares within the row, and nothing larger is in it.",
            "b": "0 / 0 gives NaN, and -inf leads there. -1e20 minus the row maximum is 0, and e to the 0 is 1.",
        },
        "a",
    ),
    Question(
        "no_positions",
        "b",
        "The model sees which tokens there are, and each place knows its own token, which is not the one to name. "
        "The most frequent of the others is right in 0.29 of the cases.",
        {
            "a": "That is guessing without looking. Which tokens occur, and how often, can be seen without any order.",
            "c": "No training helps: every place mixes the same set, so the order cannot get into the output.",
        },
        "c",
    ),
    Question(
        "dark_diagonal",
        "b",
        "With ten places, place i is to name the token of place 9 - i, and i = 9 - i has no solution. So a token that "
        "looks at itself learns what the answer is not.",
        {
            "a": "The diagonal is darker with other seeds, too, and the mean is taken over 4000 sequences.",
            "c": "It cannot know places: permute the tokens, and the outputs are permuted with them.",
        },
        "a",
    ),
    Question(
        "one_layer",
        "b",
        "To find the place after an earlier copy, a key must know its neighbour, and only a first layer can tell it.",
        {
            "a": "More heads or steps do not help: every head of that layer reads keys that know one letter only.",
            "c": "The mask hides what comes later in the sequence. The earlier copy and what followed it stand before.",
        },
        "a",
    ),
    Question(
        "scale_and_training",
        "b",
        "Of the three, 128 starts with the largest scores: their standard deviation grows as sqrt(d_k), so softmax "
        "starts out peaky.",
        {
            "a": "At d_k = 8 raw scores are small enough for softmax to stay mixed.",
            "c": "It could, and given time it often does. But the start is peaky, and there gradients are nearly 0.",
        },
        "c",
    ),
)

PREDICTIONS = {question.name: question for question in _ALL}


class Predict:
    """All questions by name: ``predict.rounding("b")`` says what became of the guess.

    Examples
    --------
    >>> predict.score_std("c")
    ✗ You chose c, right is b
    64 is the variance. A typical score is as large as its root. The variance is 64, and the standard deviation is its
    root.
    >>> predict.score_std()
    … No choice made yet
    Write one of "a", "b", "c" above, and run both cells again.
    """

    def __getattr__(self, name):
        if name in PREDICTIONS:
            return PREDICTIONS[name]
        near = difflib.get_close_matches(name, PREDICTIONS, 1)
        fix = f"did you mean predict.{near[0]}?" if near else f"one of {', '.join(PREDICTIONS)}."
        raise AttributeError(f"there is no question called {name!r}. Fix: {fix}")

    def __dir__(self):
        return list(PREDICTIONS)


predict = Predict()

"""The mistakes that only It speaks knows, and its steps; mistakes that are words alone stand in mistakes.toml."""

from functools import cached_property
from pathlib import Path

import numpy as np

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake, read_mistakes
from ...mistakes.weights import WINDOW


class Halves(Steps):
    """W (d_in, h d_k), whose columns lie pair by pair in each head, and what becomes of them."""

    pairs = cached_property(lambda s: s.W.reshape(len(s.W), s.num_heads, -1, 2))  # (d_in, h, d_k / 2, 2)
    halves = cached_property(lambda s: np.swapaxes(s.pairs, -1, -2).reshape(s.W.shape))


def _rows_moved(s):
    if len(s.W) % (2 * s.num_heads):
        raise ValueError("the rows cannot be cut into the pairs of so many heads")
    pairs = s.W.reshape(s.num_heads, -1, 2, s.W.shape[1])
    return np.swapaxes(pairs, 1, 2).reshape(s.W.shape)


def _rows_of_each_head(s):
    rows = s.W.reshape(s.num_heads, -1, s.W.shape[1])
    return np.concatenate([rows[:, ::2], rows[:, 1::2]], axis=1).reshape(s.W.shape)


class Kept(Steps):
    """Which keys are kept: those near behind a query, and the first of the text."""

    # How far key j lies behind query i.
    back = cached_property(lambda s: np.arange(s.n_k - s.n_q, s.n_k)[:, None] - np.arange(s.n_k))
    near = cached_property(lambda s: (s.back >= 0) & (s.back < s.window))
    first = cached_property(lambda s: (s.back >= 0) & (np.arange(s.n_k) < s.sink))
    kept = cached_property(lambda s: s.near | s.first)


class Back(Steps):
    measured = cached_property(lambda s: np.diagonal(s.map, -1)[1:].mean())


MISTAKES = (
    *WINDOW,
    Mistake(
        "pairs_left_alone",
        behaves_as_if="the columns stay in the order of the file",
        symptom="The two features of a pair still lie side by side.",
        hint="Which axis of (d_in, h, d_k/2, 2) says whether a feature is the first or the second of its pair?",
        then="The last. It has to stand in front of the axis of the pairs: swap these two before you flatten.",
        variants=({"halves": lambda s: s.W},),
    ),
    Mistake(
        "back_to_pairs",
        behaves_as_if="you go from halves to pairs",
        symptom="That is the way into the file. Done twice with 4 features it gives the file's order again.",
        hint="The file has a pair side by side. Which axis has length 2 when you cut its columns?",
        then="The last: cut into (d_in, h, d_k/2, 2), then swap the last two axes.",
        variants=({"pairs": lambda s: s.W.reshape(len(s.W), s.num_heads, 2, -1)},),
    ),
    Mistake(
        "heads_run_together",
        behaves_as_if="all heads were one head",
        symptom="The first half then holds features of every head. With one head nothing shows.",
        hint="From which columns may the first head take its features?",
        then="From its own d_k columns: cut the axis of the heads off first.",
        variants=({"pairs": lambda s: s.W.reshape(len(s.W), 1, -1, 2)},),
    ),
    Mistake(
        "rows_reordered",
        behaves_as_if="rows change places in place of columns",
        symptom="W is (in, out) here: a feature of a query is a column.",
        hint="Which axis of W counts the features of the queries?",
        then="The last. The first axis, d_in, stays as it is.",
        variants=({"halves": _rows_moved}, {"halves": _rows_of_each_head}),
    ),
    Mistake(
        "window_not_kept",
        behaves_as_if="only the first keys are kept",
        symptom="No query sees the words right before it.",
        hint="Which two groups of keys does a query see?",
        then="The near ones and the first ones: join the two conditions with |.",
        variants=({"kept": lambda s: s.first},),
    ),
    Mistake(
        "first_keys_seen_ahead",
        behaves_as_if="a query may see the first keys before they have come",
        symptom="Query 0 sees key 1 wherever `sink` is 2 or more: the next token is in sight.",
        hint="Which keys may query 0 see?",
        then="Key 0 alone. The first keys need the causal condition, too.",
        variants=({"first": lambda s: np.broadcast_to(np.arange(s.n_k) < s.sink, s.back.shape)},),
    ),
    Mistake(
        "sink_taken_from_window",
        behaves_as_if="the first keys are counted as part of the window",
        symptom="The window shrinks by as many keys as are kept at the start.",
        hint="How many near keys does a query see with a window of 3, whatever the sink?",
        then="3, itself among them.",
        variants=(
            {"near": lambda s: (s.back >= 0) & (s.back < s.window - s.sink)},
            {"near": lambda s: (s.back >= 0) & (s.back < max(s.window - s.sink, 1))},
        ),
    ),
    Mistake(
        "window_widened",
        behaves_as_if="the window is made longer by `sink` keys",
        symptom="The number of keys is right in a long text. But the additional keys move on with the query.",
        hint="Text of 100 tokens, window 8, sink 1. Which keys does the last query see?",
        then="The last 8 and key 0: a second condition on the number of the key, joined with |.",
        variants=({"kept": lambda s: (s.back >= 0) & (s.back < s.window + s.sink)},),
    ),
    Mistake(
        "kept_means_blocked",
        behaves_as_if="True means blocked",
        symptom="In this series True = may attend.",
        hint="What should stand where a token sees itself?",
        then="True. Turn your mask over with ~.",
        variants=({"kept": lambda s: ~(s.near | s.first)},),
    ),
    Mistake(
        "another_diagonal_measured",
        behaves_as_if="you measure another diagonal: what each token takes from itself, or from the one two places "
        "before",
        symptom="The main diagonal is the token itself, the second one below it the token two places before.",
        hint="Row i is query i. Which column is the token before it?",
        then="Column i - 1: the diagonal below the main one, np.diagonal(weights, -1).",
        variants=(
            *({"measured": lambda s, n=n: np.diagonal(s.map)[n:].mean()} for n in range(3)),
            *({"measured": lambda s, n=n: np.diagonal(s.map, -2)[n:].mean()} for n in range(2)),
        ),
    ),
    Mistake(
        "second_token_counted",
        behaves_as_if="query 1 counts, too",
        symptom="For query 1 the token before is the first token of the text, where most heads park.",
        hint="A head that puts everything on the first token: what should your measure say?",
        then="0. So leave out query 1, whose previous token is the first: np.diagonal(weights, -1)[1:].",
        variants=({"measured": lambda s: np.diagonal(s.map, -1).mean()},),
    ),
    Mistake(
        "wrong_queries_left_out",
        behaves_as_if="other queries are left out than the first two",
        symptom="The diagonal below the main one begins with query 1: only its first number goes.",
        hint="Which query does the first number of np.diagonal(weights, -1) belong to?",
        then="To query 1. Leave out this one number, and none at the end: [1:].",
        variants=(
            {"measured": lambda s: np.diagonal(s.map, -1)[2:].mean()},
            *({"measured": lambda s, n=n: np.diagonal(s.map, -1)[n:-1].mean()} for n in (0, 1)),
        ),
    ),
    Mistake(
        "divided_by_other_queries",
        behaves_as_if="you divide by another number than that of the queries that you add up, or not at all",
        symptom="The first two are left out of the sum, so they do not count.",
        hint="Of how many numbers do you take the mean?",
        then="Of n - 2. The mean of the diagonal without its first number counts them by itself.",
        variants=(
            *({"measured": lambda s, n=n: np.diagonal(s.map, -1)[1:].sum() / (len(s.map) - n)} for n in (0, 1)),
            {"measured": lambda s: np.diagonal(s.map, -1)[1:].sum()},
        ),
    ),
    Mistake(
        "largest_not_mean",
        behaves_as_if="a single query is enough",
        symptom="The largest weight is high for almost any head: one word is enough.",
        hint="A head looks one token back for one word of 100. What should your measure say?",
        then="Little: take the mean over the queries, not the largest.",
        variants=({"measured": lambda s: np.diagonal(s.map, -1)[1:].max()},),
    ),
    *read_mistakes(Path(__file__).with_name("mistakes.toml")),
)

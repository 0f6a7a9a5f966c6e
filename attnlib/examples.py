"""Data of the worked examples. The arrays are read-only: copy before you change one.

Examples
--------
>>> query, key, _ = SENTENCE.project()
>>> query @ key.T  # row: the word that looks, column: the word looked at
array([[2., 3., 0., 2.],
       [1., 0., 1., 0.],
       [0., 3., 0., 0.],
       [5., 0., 3., 2.]])
"""

from typing import NamedTuple

import numpy as np


class Example(NamedTuple):
    """Tokens x (n, d_in) and projection matrices W_Q, W_K (d_in, d_k), W_V (d_in, d_v)."""

    x: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray

    def project(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Q = x W_Q, K = x W_K, V = x W_V."""
        return self.x @ self.W_Q, self.x @ self.W_K, self.x @ self.W_V


class HeadsExample(NamedTuple):
    """Tokens x (n, d_model) and the matrices of a layer with several heads, each (d_model, d_model)."""

    x: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray


def _example(*matrices, kind=Example):
    arrays = [np.array(m, dtype=np.float64) for m in matrices]
    for array in arrays:
        array.setflags(write=False)
    return kind(*arrays)


# *Anna saw Ben; she ...*: four words and what is known of each. "who" is 2 for Anna and -2 for Ben, and the other words
# have yet to find it. Every row of the scores differs from its column, and each common mistake moves the output of
# "she" by 0.12 or more (tests/test_core.py).
WORDS = ("Anna", "saw", "Ben", "she")
FEATURES = ("name", "male", "female", "verb", "pronoun", "who")
SENTENCE: Example = _example(
    [[1, 0, 1, 0, 0, 2], [0, 0, 0, 1, 0, 0], [1, 1, 0, 0, 0, -2], [0, 0, 1, 0, 1, 0]],
    [[0, 0, 3], [0, 0, 0], [0, 2, 0], [1, 0, 0], [3, 0, 0], [0, 0, 0]],  # what each feature looks for
    [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]],  # under what it is found: name, female, verb
    [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [1, 0]],  # what it gives: who, verb
)

ASKED, GIVEN = ("name", "female", "verb"), ("who", "verb")  # the features of queries and keys, and of values
# As live.one_row takes them.
NAMES: dict[str, tuple[str, ...]] = {"words": WORDS, "features": FEATURES, "asked": ASKED, "given": GIVEN}
W_O = np.array([[0.0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0]])  # brings a value back to the word: who to who, verb to verb
W_O.setflags(write=False)

# The same sentence with two heads of 3. Head 1 is the head above, but "saw" asks it for somebody female; head 2 finds
# the male name for "saw" and the verb for "she". W_O writes who the woman is and who the man is to a column each, and
# both together to "who": there they cancel, as in one head. Each common mistake moves what "saw" learns about Ben by
# 0.2 or more (tests/test_heads.py).
TWO_HEADS: HeadsExample = _example(
    SENTENCE.x,
    [[0, 0, 3, 0, 0, 0], [0] * 6, [0, 2, 0, 0, 0, 0], [2, 3, 0, 2, 3, 0], [3, 0, 0, 0, 0, 3], [0] * 6],
    [[1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1], [0] * 6, [0] * 6],
    [[0] * 6, [0] * 6, [0] * 6, [0, 1, 0, 0, 1, 0], [0] * 6, [1, 0, 0, 1, 0, 0]],  # who and verb, in each head
    [[0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0], [0] * 6, [0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0], [0] * 6],
    kind=HeadsExample,
)
OUTPUT_FEATURES = ("", "man", "woman", "verb", "", "who")  # the columns of W_O; those without a name stay 0

# Three tokens of a well-known text (S3), all numbers small. Its scores are symmetric by accident.
KARIM: Example = _example(
    [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]],
    [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
)

# Two tokens, everything the identity but W_V: so symmetric that several mistakes do not show in it.
IDENTITY: Example = _example([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [3, 4]])

# n = 4, d_in = 3, d_k = 2, d_v = 5: all different, and no weight near 0 or 1, so that no mistake can hide.
ASYMMETRIC: Example = _example(
    [[1.0, 0.5, -1.0], [0.0, 1.0, 0.5], [-0.5, 1.0, 1.0], [1.5, -1.0, 0.5]],
    [[1.0, -0.5], [0.5, 1.0], [0.0, 0.5]],
    [[0.5, 1.0], [-1.0, 0.5], [1.0, 0.0]],
    [[1.0, 0.0, 2.0, -1.0, 0.5], [0.0, 1.0, -1.0, 2.0, 1.0], [1.0, -1.0, 0.0, 1.0, 3.0]],
)

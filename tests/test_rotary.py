"""RoPE: the same as by complex numbers, a matter of distance alone, and clear errors."""

import numpy as np
import pytest
from lessons.todays_head import by_complex_numbers

import attnlib as al

X = np.random.default_rng(0).normal(size=(2, 3, 5, 8))
AT = np.array([2, 3, 7, 8, 40])


@pytest.mark.parametrize("pairing", ["halves", "neighbours"])
@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_it_turns_pairs_as_complex_numbers(pairing, base):
    expected = by_complex_numbers(X, AT, base, pairing)
    assert np.abs(al.rope(X, AT, base, pairing=pairing) - expected).max() < 1e-12
    single = al.rope(X.astype(np.float32), AT, base, pairing=pairing)
    assert single.dtype == np.float32 and np.abs(single - expected).max() < 1e-5


def test_scores_depend_on_the_distance_alone():
    q, k = X[0, 0], X[0, 1]
    for pairing in ("halves", "neighbours"):
        here, there = (al.rope(q, at, pairing=pairing) @ al.rope(k, at, pairing=pairing).T for at in (AT, AT + 1000))
        assert np.abs(here - there).max() < 1e-9 and np.abs(here - q @ k.T).max() > 0.1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "parts"),
    [
        ((X[..., :7], AT), {}, al.ShapeError, ("even d_k", "(2, 3, 5, 7)", "after split_heads")),
        ((X[0, 0, 0], AT), {}, al.ShapeError, ("(..., n, d_k)", "got shape (8,)")),
        (
            (X, AT[:3]),
            {},
            al.ShapeError,
            ("one number for each token, shape (5,)", "got shape (3,)"),
        ),
        ((X, 3), {}, al.ShapeError, ("got shape ()",)),
        ((X > 0, AT), {}, TypeError, ("x must hold real numbers",)),
        ((X, AT, 0), {}, ValueError, ("base must be a positive number, got 0",)),
        ((X, AT, "x"), {}, (TypeError, ValueError), ("base must be",)),
        ((X, AT), {"pairing": "half"}, ValueError, ('"halves" or "neighbours"', "got 'half'")),
    ],
)
def test_wrong_input_gets_a_clear_message(arguments, options, error, parts):
    with pytest.raises(error) as caught:
        al.rope(*arguments, **options)
    assert all(part in str(caught.value) for part in parts) and "Fix: " in str(caught.value)

"""Rounding to few bits: the nearest of 2^bits, a scale for each token or feature, and what that takes in bytes."""

import numpy as np
import pytest

from attnlib.rounding import bytes_kept, rounded

X = np.random.default_rng(0).normal(size=(2, 3, 9, 8)) * np.arange(1, 9)


@pytest.mark.parametrize("axis", [-1, -2, 1])
@pytest.mark.parametrize("bits", [1, 2, 3, 8])
def test_each_number_goes_to_the_nearest_of_its_own_grid(bits, axis):
    for x, done in zip(
        np.moveaxis(X, axis, -1).reshape(-1, X.shape[axis]),
        np.moveaxis(rounded(X, bits, axis), axis, -1).reshape(-1, X.shape[axis]),
        strict=True,
    ):
        grid = np.linspace(x.min(), x.max(), 2**bits)
        assert np.allclose(done, grid[np.abs(x[:, None] - grid).argmin(1)], atol=1e-12)


def test_a_constant_in_every_key_costs_a_token_its_bits_and_a_feature_none():
    keys = X[0, 0] + 100 * (np.arange(8) == 2)
    token, feature = (np.abs(rounded(keys, 4, axis) - keys).mean() for axis in (-1, -2))
    assert token > 5 * feature
    assert np.allclose(rounded(keys, 4, -2) - keys, rounded(X[0, 0], 4, -2) - X[0, 0])


def test_what_does_not_differ_stays_and_half_precision_of_the_scales_moves_little():
    assert np.array_equal(rounded(np.full((2, 3), 5.0), 2), np.full((2, 3), 5.0))
    single = rounded(X.astype(np.float32), 4, -1, np.float16)
    assert single.dtype == np.float32 and 0 < np.abs(single - rounded(X, 4)).max() < 0.03
    assert rounded([[0.0, 1.0]], 2, -1, np.float16)[0, 1] == 3 * float(np.float16(1 / 3))
    few = np.array([len(np.unique(row)) for row in single.reshape(-1, 8)])
    assert few.max() <= 16 and rounded(np.zeros((0, 4)), 3, -2).shape == (0, 4)


def test_bytes_count_the_numbers_and_their_scales():
    """As a cache would hold them: codes packed to whole bytes over the text, and two float16 for each scale."""
    n, d = 208, 64
    for bits in (2, 3, 4, 8):
        for axis, scales in ((-1, n), (-2, d)):
            codes = np.packbits(np.zeros(n * d * bits, dtype=bool))
            kept = codes.nbytes + np.zeros((scales, 2), dtype=np.float16).nbytes
            assert bytes_kept(n, d, bits, axis) == pytest.approx(kept / n, abs=1e-9)
    assert bytes_kept(n, d, 32) == np.zeros(d, dtype=np.float32).nbytes

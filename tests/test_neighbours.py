"""The models of lesson multi_head: what is stored, and what they learn from other seeds and with other heads."""

import numpy as np
import pytest

from attncourse import model_files
from attncourse.training import neighbours

STORED = model_files.stored(neighbours.RESULTS.stem)


@pytest.fixture(scope="module")
def fresh():
    return neighbours.two_trainings()


@pytest.mark.slow
def test_the_stored_trainings_are_those_of_the_code(fresh):
    for name, found in fresh.items():
        for what, stored in STORED[name].items():
            np.testing.assert_allclose(found[what], stored, atol=0.05, err_msg=f"{name}: {what}")


def test_every_experiment_is_stored():
    names = [
        *[f"{h} head(s)" for h in (1, 2)],
        *[f"hidden layer, seed {seed}" for seed in neighbours.SEEDS],
        "the same head, linear read-out",
        *[f"six letters, {h} head(s)" for h in (1, 8)],
        *["the larger share", "the smaller share"],
    ]
    assert list(STORED) == names
    assert [name for name, found in STORED.items() if isinstance(found, dict) and "maps" in found] == list(
        neighbours.DRAWN
    )


@pytest.mark.slow
def test_two_heads_take_one_neighbour_each(fresh):
    one, two = (np.array(fresh[name]["maps"]) for name in neighbours.DRAWN)
    i = np.arange(neighbours.PLACES)
    on = [[w[i, (i + step) % len(i)].mean() for step in neighbours.BOTH] for w in (*one, *two)]
    assert min(on[0]) > 0.3  # the one head looks at both
    assert sorted(np.argmax(on[1:], axis=1)) == [0, 1] and np.max(on[1:], axis=1).min() > 0.9


@pytest.mark.slow
def test_what_one_head_learns_with_another_seed():
    """All five seeds: `python -m bench training`."""
    assert neighbours.measured(neighbours.trained(1, seed=1))["all right"] <= 0.3


@pytest.mark.slow
def test_with_four_heads_each_looks_at_one_neighbour_or_at_both():
    """The answer to the first "Try it" of lesson multi_head."""
    maps, i = np.array(neighbours.measured(neighbours.trained(4))["maps"]), np.arange(12)
    near = maps[:, i, (i - 1) % 12] + maps[:, i, (i + 1) % 12]  # (h, 12)
    assert (near.mean(-1) > 0.6).all(), near.mean(-1)

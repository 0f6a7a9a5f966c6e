"""Lesson fixed_state: a state in other forms, and what its text says of what is found in it."""

import numpy as np
import pytest

from attncourse import check, smollm
from attncourse.lessons.fixed_state import state
from tools.build_notebooks import code_between
from tools.series import find_notebook


def state_cells():
    """Return the names that the cells about a state define, with the course's own function in place of a reader's."""
    names = {"np": np, "state": state, "verdict": check.state(None), "my_state": None}
    for cell in code_between("fixed_state", "# ", "## Try it"):
        if cell.startswith(("written = ", "def ")):
            exec(cell, names)
    return names


@pytest.mark.parametrize("seed", [0, 1])
def test_a_state_by_the_sum_rule_is_attention_without_softmax_and_all_at_once_gives_the_same(seed):
    draw, names = np.random.default_rng(seed).normal, state_cells()
    q, k, v = draw(size=(2, 40, 8)), draw(size=(2, 40, 8)), draw(size=(2, 40, 5))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    S = np.cumsum(k[..., None] * v[..., None, :], axis=1)
    assert np.abs((q[..., None, :] @ S)[..., 0, :] - np.tril(q @ np.swapaxes(k, -1, -2)) @ v).max() < 1e-12
    for beta in (1, 0.3):
        late = q @ names["at_once"](k, v, beta)
        assert np.abs(late[:, -1] - state(q, k, v, np.full((2, 40), beta))[:, -1]).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_chunks_are_the_same_to_the_last_digits_and_each_slip_is_not(seed):
    source = find_notebook("fixed_state").source.read_text("utf-8")
    code = source.partition("# ## Try it")[2].partition("```python\n")[2].partition("# ```")[0]
    code = "\n".join(line[2:] for line in code.splitlines())
    q, k, v = np.random.default_rng(seed).normal(size=(3, 2, 50, 16))
    beta = np.random.default_rng(seed).random((2, 50))

    def off(right="", wrong=""):
        assert right in code
        exec(code.replace(right, wrong), names := {"np": np, "swap": lambda x: np.swapaxes(x, -1, -2)})
        return np.abs(names["my_chunks"](q, k, v, beta) - state(q, k, v, beta)).max(), names["my_chunks"]

    same, chunks = off()
    assert same < 1e-12 and check.state(chunks).passed
    slips = ("k)), -1)", "k)))"), ("np.eye(k.shape[-2]) + earlier", "np.eye(k.shape[-2])")
    slips += ("v - k @ S", "v"), ("np.tril(q @ swap(k))", "np.tril(q @ swap(k), -1)")
    assert all(off(*slip)[0] > 0.1 for slip in slips)


@pytest.fixture(params=[17, 5])  # the seed of the notebook, and another
def cells_of_seed(request, monkeypatch):
    first = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda _: first(request.param))
    return state_cells()


@pytest.fixture
def told(cells_of_seed):
    drawn, found, at_once, at = (cells_of_seed[name] for name in ("drawn", "found", "at_once", "at"))

    def told(beta=None, d_k=64, fade=1, nearest=False, **options):
        """Return the share that is found, the error, the error that the best factor leaves, the share of each age."""
        key, value, newest = drawn(d_k, **options)
        faded = key * fade ** np.arange(key.shape[1])[::-1, None]
        read = at(key, newest) @ (np.swapaxes(faded, -1, -2) @ value if beta is None else at_once(key, value, beta))
        right, error = found(read, value, newest)
        if nearest:  # the nearest value in place of the largest dot product
            right = np.linalg.norm(read[:, :, None] - value[:, None], axis=-1).argmin(-1) == newest
        wanted = at(value, newest)
        least = 1 - (read * wanted).sum() ** 2 / (read**2).sum() / (wanted**2).sum()
        return right.mean(), error, least**0.5, right.reshape(16, 4, -1).mean(axis=(0, 2))

    return told


def near(found, *wanted):
    assert [*found[: len(wanted)]] == pytest.approx([*wanted], abs=0.04)


def test_what_the_text_says_of_keys_that_come_again(cells_of_seed, told):
    near(told(times=4)[:1], 0.24)  # as a guess among four
    near(told(1, times=4)[:1], 0.99)
    near(told(0.25, times=4)[:1], 0.82)
    near((told(nearest=True)[0], told(0.25, nearest=True)[0]), 0.97, 0.37)
    near((told(fade=0.97)[0], told(fade=0.97, times=4)[0]), 0.39, 0.75)
    key, _, newest = cells_of_seed["drawn"](64, times=4)
    window = (newest >= 96).mean()  # in random order a window misses newest values, and delta finds them
    assert 0.6 < window < 0.8 and told(1, times=4)[0] > window + 0.2
    assert all((one == one[last]).all(-1).sum() == 4 for one, last in zip(key, newest[:, 0], strict=True))


def test_what_the_text_says_of_a_state(cells_of_seed, told):
    drawn, found, at_once = (cells_of_seed[name] for name in ("drawn", "found", "at_once"))
    near(told(), 0.93, 1.41, 0.82)
    assert told(n=32)[0] > 0.99  # where there is room, by the sum rule
    near(told(1), 0.52, 1.03, 0.89)
    near(told(0.25), 0.92, 0.84)
    assert told(1)[3][0] < 0.12 and told(1)[3][-1] > 0.96 and np.ptp(told()[3]) < 0.1  # the oldest fade, of delta alone
    assert told(0.25)[3][0] > 0.7
    for d_k, few, many in ((16, 0.34, 0.50), (128, 0.63, 1)):
        near(told(1, d_k=d_k, n=2 * d_k), few)
        near(told(d_k=d_k, n=2 * d_k), many)
    near((told(d_v=16)[0], told(1, d_v=16)[0]), 0.35, 0.27)
    both = told(shared=0.5)[0], told(1, shared=0.5)[0]  # keys that resemble each other turn the order round
    assert both[0] < 0.06 < both[1] < 0.2
    assert max(told(beta, n=32, positive=True)[0] for beta in (None, 1)) < 0.12
    key, value = np.array(smollm.recorded("some_keys")["key"]), drawn(64, n=32)[1]
    for shared, wanted in (
        (0, (0.1, 0.06)),
        (key.mean(axis=0), (0.77, 0.66)),
    ):  # keys of a model, trained for a softmax
        apart = np.tile((key - shared) / np.linalg.norm(key - shared, axis=-1, keepdims=True), (16, 1, 1))
        states = np.swapaxes(apart, -1, -2) @ value, at_once(apart, value, 1)
        near([found(apart @ S, value, np.tile(np.arange(32), (16, 1)))[0].mean() for S in states], *wanted)

"""Notebook 14: its functions, run from its cells, and what its text says beside the tables."""

import ast

import answers_14
import numpy as np
import pytest
from answers import named
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlib as al
from attnlib.course import EXERCISES, check
from tools.build_notebooks import code_between

DEFINED = {"dots", "rms_norm", "online", "needle", "shares"}


@pytest.fixture(scope="module")
def notebook():
    """What notebook 14 defines, without what it prints and draws."""
    rng = np.random.default_rng(5)  # as in the notebook
    names = {"np": np, "al": al, "queries": rng.normal(size=(64, 256)), "keys": rng.normal(size=(16_384, 256))}
    for cell in code_between("14", "# 14 ·", "## Exercises"):
        for node in ast.parse(cell).body:
            if getattr(node, "name", "") in DEFINED or getattr(getattr(node, "targets", [0])[0], "id", "") == "RULES":
                exec(ast.unparse(node), names)
    assert names.keys() >= {*DEFINED, "RULES"}
    return names


@pytest.fixture(scope="module")
def needles(notebook):
    """(64, 64) queries and (16384, 64) keys of section 1."""
    rng = np.random.default_rng(5)  # as in the notebook
    return rng.normal(size=(64, 256))[:, :64], rng.normal(size=(16_384, 256))[:, :64]


def test_normed_needles_have_one_score(notebook, needles):
    normed = notebook["rms_norm"](needles[0])[:, None]
    assert np.allclose(notebook["dots"](normed, normed), 8, atol=1e-4)


def test_an_outlier_has_most_queries_that_lean_its_way(notebook, needles):
    """A hundred times as long, at 64 keys and at 1024, capped or not."""
    queries, keys = needles
    dots = notebook["dots"]
    own, leaning = dots(queries, queries).diagonal()[:, None], (queries @ keys[0] > 0).sum()
    for n in (64, 1024):
        scores = np.concatenate([own, dots(queries, 100 * keys[:1]), dots(queries, keys[1 : n - 1])], axis=-1)
        for rule in (scores, 50 * np.tanh(scores / 50)):
            outlier = al.softmax(rule)[:, 1]
            assert ((outlier > 0.5).sum(), (outlier < 0.05).sum(), leaning) == (40, 23, 44)


def test_what_the_rules_keep_for_the_needle_and_give_to_an_outlier(notebook):
    shares, rules = notebook["shares"], list(notebook["RULES"])
    at_32 = {rule: round(shares(rule, 32, 1024, outlier=1)[0], 2) for rule in rules}
    assert (at_32.pop("norm, gain"), at_32.pop("times 2.5"), at_32.pop("log n")) == (0.99, 0.93, 0.71)
    assert max(at_32.values()) == 0.26
    assert min(round(shares("times 2.5", 64, n, outlier=1)[0], 2) for n in (64, 1024, 16_384)) == 0.99
    assert {round(shares(rule, 64, 64, outlier=100)[1], 2) for rule in rules if "norm" not in rule} <= {0.62, 0.63}


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 12), st.floats(0.1, 100))
def test_online_softmax_is_softmax(notebook, block, n_k, size):
    rng = np.random.default_rng(block + 100 * n_k)
    q, k, v = size * rng.normal(size=(3, 4)), rng.normal(size=(n_k, 4)), rng.normal(size=(n_k, 5))
    assert np.allclose(notebook["online"](q, k, v, block), al.scaled_dot_product_attention(q, k, v), atol=1e-12)


@pytest.mark.parametrize("exercise, id, answer", answers_14.WRONG)
def test_a_students_own_code_is_named_too(exercise, id, answer):
    verdict = EXERCISES[exercise](answer)
    assert verdict.state == "wrong" and named(verdict) == set((id or "").split(" + ")) - {""}, verdict


def test_blocks_come_once():
    verdict = check.online_softmax(answers_14.twice_through)
    assert verdict.state == "wrong" and "a second time" in verdict.message and "Fix: one loop" in verdict.message


# --- the answers to "Try it"


def test_a_softcap_of_5_gives_nearly_all_to_the_crowd(notebook):
    rules = {"softcap": lambda q, k, n: 5 * np.tanh(notebook["dots"](q, k) / 5)}
    names = dict(notebook, RULES=rules)
    (source,) = (cell for cell in code_between("14", "## 2 ·", "## 3 ·") if "def shares" in cell)
    exec(source, names)
    needle, _, crowd, _ = names["shares"]("softcap", 64, 1024)
    assert (round(needle, 2), round(crowd, 2)) == (0.06, 0.92)


def test_a_maximum_that_starts_at_0_fails_where_all_scores_are_below_minus_745():
    values = np.eye(2)
    for level, fine in ((-700, True), (-760, False)):
        with np.errstate(invalid="ignore"):
            out = answers_14.starting_at_zero([(level + np.arange(2.0), values)])
        assert np.isfinite(out).all() == fine

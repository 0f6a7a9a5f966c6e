"""What a check reads off the code itself: the line that raised, and the names of the notebook."""

import linecache

import numpy as np
import pytest
import torch

import attnlib as al
from attncourse import EXERCISES, check


def written(source, **names):
    """Return what a cell of a notebook defines last."""
    file = f"<cell {len(linecache.cache)}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    notebook = {"__name__": "__main__", "np": np, "torch": torch, "nn": torch.nn, "inf": float("inf"), **names}
    exec(compile(source, file, "exec"), notebook)
    return list(notebook.values())[-1]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("return np.exp(x - max(x))", "Python's max compares whole rows of an array; x.max(axis=..., keepdims=True)"),
        ("return np.exp(x - min(x))", "Python's min compares whole rows of an array; x.min(axis=..., keepdims=True)"),
        ("return np.exp(x - sorted(x)[-1])", "Python's sorted compares whole rows of an array; np.sort(x, axis=...)"),
        ("return x if x else 0", "an array is neither true nor false. `np.where(x > 0, a, b)`"),
        ("return x and x", "an array is neither true nor false. `np.where(x > 0, a, b)`"),
        ("return 0 <= x < 3", "`0 <= x < n` asks whether a whole array is true. `(0 <= x) & (x < n)`, with brackets"),
        ("return 0 <= x.astype(int) & x.astype(int) < 3", "`0 <= x < n` asks whether a whole array is true."),
        ("return x if (x < 3) else (x > 4)", "an array is neither true nor false."),
        ("return x if (0 < x) & (x < 3) else x", "an array is neither true nor false."),
        ("return max(x) if len(x) else x", None),
        ("return x.max() + any(list(x))  # not if", None),
    ],
)
def test_the_fix_of_a_truth_value_is_that_of_the_line(line, fix):
    message = check.attention_scores(written(f"def answer(x, key):\n    {line}")).message
    assert "ambiguous" in message and line in message
    assert f"Fix: {fix}" in message if fix else "Fix" not in message, message


def test_the_fix_of_a_mask_that_is_an_index_is_to_stretch_it():
    def answer(scores, mask=None):
        scores = scores.copy()
        if mask is not None:
            scores[~mask] = -np.inf
        return al.softmax(scores)

    assert "Fix: an index has the shape of what it picks from; np.where(" in check.masked_softmax(answer).message


SCORES = "query @ np.swapaxes(key, -1, -2)"


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        (
            "attention_scores",
            f"def answer(query, key): return {SCORES} / d_k",
            "Your function reads d_k from the notebook (there d_k is 32), not from its arguments.",
        ),
        (
            "attention_scores",
            "answer = lambda query, key: query @ K.T",
            "Your function reads K from the notebook (there K has shape (3, 3)), not",
        ),
        (
            "attention_scores",
            "def answer(query, key): return [[q @ k * d_k * half for k in K] for q in query]",
            "reads K and d_k and half from the notebook (there K has shape (3, 3), d_k is 32, half is 0.5)",
        ),
        ("attention_scores", "def answer(query, key): return query @ key @ T", "(there T has shape (2,))"),
        ("attention_scores", f"def answer(query, key): return {SCORES} * inf", None),
        ("attention_scores", f"def answer(query, key): return {SCORES} * np.d_k", None),
        ("attention_scores", f"def answer(query, key): d_k = 2; return {SCORES} * d_k", None),
        ("attention_scores", f"def answer(query, key): return {SCORES} + (d_k - d_k)", ""),
        (
            "SelfAttention",
            "class Answer(nn.Module):\n"
            "    def __init__(self, d_in, width, d_v=None):\n"
            "        super().__init__()\n"
            "        self.W_Q = nn.Linear(d_in, d_k, bias=False)\n",
            "Your class reads d_k from the notebook (there d_k is 32), not from its arguments.",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_it_reads_from_the_notebook(name, source, told):
    answer = written(source, d_k=32, half=0.5, K=np.eye(3), T=torch.ones(2))
    verdict = EXERCISES[name](answer)
    assert verdict.passed == (told == "")
    assert told in verdict.message if told else "from the notebook" not in verdict.message, verdict


def test_what_a_module_or_a_library_reads_is_not_called_the_notebooks():
    answer = written(f"def answer(query, key): return {SCORES} / d_k", d_k=32)
    answer.__globals__["__name__"] = "solutions"
    assert "from the notebook" not in check.attention_scores(answer).message


def test_of_a_function_without_arguments_nothing_is_said():
    answer = written("def answer():\n    W = np.zeros((15, 1))\n    W[ONE] = 1\n    return W, W", ONE=6)
    verdict = check.where_is_c(answer)
    assert verdict.state == "wrong" and "from the notebook" not in verdict.message, verdict

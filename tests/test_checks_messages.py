"""What a check says: to odd answers, about numbers and errors, and how a verdict looks."""

import cProfile
import decimal
import fractions
import re
import sys

import numpy as np
import pytest
import torch
from answers import right
from lessons.pytorch_module import SelfAttention
from torch import nn

import attnlib as al
from attncourse import EXERCISES, MISTAKES, check
from attncourse.engine.exercise import Module, Number
from attncourse.engine.verdict import Verdict
from attncourse.lessons.by_hand.wishes import _WISHES as WISHES
from attncourse.lessons.multi_head import two_jobs
from attncourse.lessons.pytorch_module.exercises import KEYS
from attnlib import torch_layers
from attnlib.examples import SENTENCE


def not_implemented(q, k, v, attn_mask=None):
    raise NotImplementedError


def own(q, k, v):
    scores = q @ k.swapaxes(-1, -2) / k.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


ODD = {
    "raises": (lambda q, k, v, m=None: q @ k, "wrong", "raises ValueError"),
    "raises its line": (lambda q, k, v, m=None: q @ k, "wrong", "Line "),
    "exits": (lambda q, k, v, m=None: sys.exit(), "wrong", "raises SystemExit"),
    "None": (None, "not tried", ""),
    "...": (..., "not tried", ""),
    "returns None": (lambda q, k, v, m=None: None, "not tried", "`return` missing"),
    "returns ...": (lambda q, k, v, m=None: ..., "not tried", ""),
    "NotImplementedError": (not_implemented, "not tried", ""),
    "list": (lambda *a: right(*a).tolist(), "wrong", "You return a list of 4"),
    "tuple": (lambda *a: (right(*a), 1), "wrong", "You return a tuple of 2"),
    "string": (lambda *a: "<b>no</b>", "wrong", "You return a str"),
    "objects": (lambda *a: right(*a).astype(object), "wrong", "dtype object"),
    "complex": (lambda *a: right(*a) + 0j, "wrong", "dtype complex128"),
    "float16": (lambda *a: right(*a).astype(np.float16) + np.float16(1), "wrong", "dtype float16"),
    "tensor": (lambda *a: torch.tensor(own(*a)), "right", "you return torch tensors"),
    "shape": (lambda *a: 1 + right(*a)[..., :1], "wrong", "shape (4, 1), expected (4, 2)"),
    "NaN": (lambda *a: right(*a) * np.nan, "wrong", "holds NaN (8 of 8 entries)"),
    "no mask": (lambda q, k, v: right(q, k, v), "right", "attnlib's own scaled_dot_product_attention"),
    "not a function": (np.eye(2), "wrong", "Fix: pass the function itself: its name, without calling it."),
    "None later": (
        lambda q, k, v: right(q, k, v) if q.ndim == 2 else None,
        "wrong",
        "Here your function returns",
    ),
    "mutates and wrong": (
        lambda q, k, v, m=None: v[..., :1, :] + q.__imul__(2)[..., :2] @ k[..., :2, :2],
        "wrong",
        "First difference",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_answers_get_a_message_of_their_own(case):
    answer, state, message = ODD[case]
    verdict = check.scaled_dot_product_attention(answer)
    assert verdict.state == state
    assert message in verdict.message
    assert verdict.mistake == ("too_many_returned" if case == "tuple" else None), verdict
    if case == "list":
        assert "np.array(...)" in verdict.message and not any("tuple" in hint for hint in verdict.hints)


def unit(scores):
    return scores / scores.std()


def rms(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


def in_place(weights, tokens):
    weights[..., 0] = 0
    return (weights[..., 1:] * (tokens[:, :, None] == tokens[:, None])[:, None, :, :-1]).sum(-1).mean((0, -1))


JUDGED = {
    "one number per head": (check.induction_measure, lambda w, t: w.max(-1), "one number for each of the 21 heads"),
    "NaN": (check.induction_measure, lambda w, t: w.mean((0, 2, 3)) * np.nan, "count 0 or leave it out"),
    "no single mistake": (
        check.induction_measure,
        lambda w, t: w[..., 0].sum((0, -1)) if t.max() > 5 else w[..., 0].max((0, -1)) - w[..., 1].max((0, -1)),
        "the induction head is",
    ),
    "weight on key 0": (
        check.induction_measure,
        lambda w, t: w[..., 0].mean((0, -1)),
        "of your result; the induction head is at",
    ),
    "no relation": (check.scores_in_range, lambda q, k: np.exp(q @ k.T), "a correlation below 0.9"),
    "one score a query": (check.scores_in_range, lambda q, k: (q**2).sum(-1), "have shape (60,), expected is one for"),
    "out of range": (check.scores_in_range, lambda q, k: 2 * unit(q @ k.T), "The variance of your scores is "),
    "divided twice": (
        check.scores_in_range,
        lambda q, k: rms(q) @ rms(k).T / q.shape[-1] ** 1.5,
        "Tried on entries of variance 1, d_k = 16.",
    ),
    "another kind of tensor": (check.choose_W_Q, torch.zeros(3).bfloat16(), "yours has shape (3,)"),
    "no numbers": (check.scores_in_range, lambda q, k: "scores", "You return a str"),
    "ragged": (check.scores_in_range, lambda q, k: [[1], [2, 3]], "You return a list of 2"),
    "one number of two": (check.alphabet_scores, 8.0, "Two numbers are asked for"),
    "off the diagonal": (check.alphabet_scores, [8.0, 4.0], "Look again at the cells off the diagonal."),
    "on the diagonal": (check.alphabet_scores, [3.0, 0.0], "Look again at the cells on the diagonal."),
    "no scores": (check.alphabet_scores, "eight", "You hand in a str"),
    "W_Q transposed": (check.choose_W_Q, [[0, 6, 0, -6], [6, 0, -6, 0]], "yours has shape (2, 4)"),
    "W_Q of one wrong row": (check.choose_W_Q, [[0, 6], [-6, 0], [0, 6], [6, 0]], "Letter c gives less than half"),
    "W_Q of no direction": (check.choose_W_Q, [[0, 9], [-9, 0], [0, -9], [0, 0]], "Letter d gives less than half"),
    "W_Q of NaN": (check.choose_W_Q, np.full((4, 2), np.nan), "Letter a gives less than half"),
    "W_Q ragged": (check.choose_W_Q, [[0, 6], [6]], "numbers only"),
    "in place": (check.induction_measure, in_place, "the arrays you were given have changed"),
}


@pytest.mark.parametrize("case", JUDGED)
def test_free_answers_are_told_what_is_wrong(case):
    exercise, answer, message = JUDGED[case]
    verdict = exercise(answer)
    assert verdict.state == "wrong" and message in verdict.message, verdict


STRANGE = [object(), "x", {}, [[1], [2, 3]], 1j, np.array("a"), [None], 10**400, np.zeros(0), torch.zeros(3).bfloat16()]


@pytest.mark.parametrize("name", [e.name for e in EXERCISES.values() if not isinstance(e, Module)])
def test_nothing_that_is_handed_in_shows_a_traceback(name):
    exercise = EXERCISES[name]
    for strange in STRANGE:
        answer = (lambda *args, strange=strange: strange) if exercise.answer_is_code else strange
        assert exercise(answer).state in ("wrong", "not tried"), strange


def test_what_no_judge_expects_is_told_and_a_tensor_with_a_gradient_is_read():
    told = check.parking_place({}).message
    assert "You hand in a dict that cannot be read as an answer (TypeError: " in told
    assert "You return a list that cannot be read" in check.induction_measure(lambda w, t: [[1], [2, 3]]).message
    assert check.parking_place(torch.tensor([6.0, 0.0], requires_grad=True)).passed


def test_a_query_that_points_nowhere_is_not_called_too_short():
    """All four weights are equal, and the right one is only the first of them."""
    assert check.choose_W_Q([[0, 9], [-9, 0], [0, -9], [0, 0]]).mistake is None
    assert check.choose_W_Q([[0, 9], [-9, 0], [0, -9], [1, 0]]).mistake == "query_too_short"


# --- numbers


@pytest.mark.parametrize("exponent", [1, 2])
def test_the_variance_is_about_the_mean(exponent):
    verdict = check.variance_of_scores(lambda q, k: (np.abs(q @ k.T) ** exponent).mean() ** (2 / exponent))
    assert verdict.state == "wrong"
    assert (exponent == 1) == ("mean is not 0" not in verdict.message)


@pytest.mark.parametrize(
    "name, right, wrong",
    [
        ("bag_accuracy", [0.75, 0.7505], [0.752, 0.74]),
        ("weights_of_she", [[0.839, 0.0057, 0.1135, 0.0418], [0.839, 0.006, 0.114, 0.042]], [[0.84, 0.01, 0.11, 0.04]]),
        ("uniform_divisor", [2.0], [2.1, -2]),
    ],
)
def test_the_tolerance_of_a_number_is_relative(name, right, wrong):
    assert all(getattr(check, name)(x).passed for x in right)
    assert not any(getattr(check, name)(x).passed for x in wrong)


@pytest.mark.parametrize(
    "answer",
    [
        fractions.Fraction(2),
        decimal.Decimal(2),
        np.array(fractions.Fraction(2)),
        np.int8(2),
        torch.tensor(2),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_kind_of_number_is_a_number(answer):
    assert check.uniform_divisor(answer).passed
    assert check.key_of_anna([answer - 1, answer / 2, 0 * answer]).passed


def test_a_number_that_is_nearly_right_is_told_so():
    close = "That is close. If you have rounded, give more digits."
    assert check.uniform_divisor(2.017).message == f"Yours is 2.017. {close}"
    assert check.uniform_divisor(98000).message == "Yours is 98000."
    assert "close" not in check.weights_of_she([0.84, 0.01, 0.11, 0.04]).message  # named: too_few_digits
    assert "close" not in check.key_of_anna([1, 0.1, 0]).message


@pytest.mark.parametrize(
    ("name", "answer", "rounded"),
    [
        ("output_of_she", [0.9, 0.0], True),
        ("output_of_she", [1, 0], True),
        ("output_of_she", [0.8, 0.1], False),
        ("output_of_she", [0.89, 0.036], True),  # rounded on the way
        ("scores_of_she", [5, 0, 3, 2.5], False),
        ("key_of_anna", [1, 1, 0.03], False),
        ("divisor_repair", 3, False),
        ("divisor_repair", 3.5, True),
        ("divisor_repair", 3.48, True),
        ("bag_accuracy", 0.74, False),  # what a trained model has
        ("bag_accuracy", 0.745, True),  # 2/3 rounded on the way
    ],
)
def test_only_numbers_that_rounding_can_make_are_called_rounded(name, answer, rounded):
    verdict = EXERCISES[name](answer)
    assert verdict.state == "wrong" and ("If you have rounded" in verdict.message) == rounded


def test_the_expected_number_is_not_given_away():
    for name, solution in {
        "uniform_divisor": "2",
        "weights_of_she": "0.839",
        "key_of_anna": "1",
    }.items():
        answer = {"weights_of_she": [7.0] * 4, "key_of_anna": [7.0] * 3}.get(name, 7.0)
        assert solution not in getattr(check, name)(answer).message


def test_numbers_that_are_none_get_a_message():
    assert "a str, where numbers are expected. Fix: numbers without quotes" in check.uniform_divisor("12").message
    assert "too large: a float ends" in check.key_of_anna([10**400, 0, 0]).message
    assert "too large: a float ends" in check.uniform_divisor(10**400).message
    assert "numbers only" in check.key_of_anna([[1], 1, 0]).message
    assert "real numbers are expected" in check.key_of_anna(["1", "1", "0"]).message
    assert "dtype complex128" in check.uniform_divisor(12 + 0j).message


@pytest.mark.parametrize("name", [e.name for e in EXERCISES.values() if isinstance(e, Number)])
def test_a_wrong_number_by_hand_does_not_show_the_right_one(name):
    right = np.asarray(EXERCISES[name].reference())
    verdict = EXERCISES[name](1.5 * right + 0.5)
    assert verdict.state == "wrong" and "expected" not in verdict.message
    assert verdict.expected is None


def test_an_error_that_cannot_say_what_it_is_does_not_escape():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("never")

    def mute(*inputs):
        raise Mute

    for exercise in (check.softmax, check.where_is_c, check.no_head_can):
        assert "Your code raises Mute\nLine " in exercise(mute).message
    told = check.induction_measure(lambda weights, tokens: type("Odd", (), {"__array__": mute})()).message
    assert "cannot be read as an answer (Mute: )" in told


VECTOR_FORMS = {
    "a column": lambda y: np.reshape(y, (-1, 1)),
    "a row": lambda y: np.reshape(y, (1, -1)),
    "a list of lists": lambda y: [[v] for v in y],
    "a generator": lambda y: (v for v in y),
    "a map": lambda y: map(float, y),
    "what a dict holds": lambda y: dict(enumerate(y)).values(),
    "half precision": lambda y: np.array(y, np.float16),
}


@pytest.mark.parametrize("form", VECTOR_FORMS)
@pytest.mark.parametrize("name", ["key_of_anna", "scores_of_she", "weights_of_she", "output_of_she"])
def test_right_numbers_pass_in_any_form_that_has_an_order(name, form):
    right = EXERCISES[name].right.tolist()
    assert EXERCISES[name](VECTOR_FORMS[form](right)).passed
    assert not EXERCISES[name](VECTOR_FORMS[form](right[::-1])).passed


def test_true_and_false_are_1_and_0_by_hand():
    assert check.key_of_anna(EXERCISES["key_of_anna"].right.astype(bool)).passed


@pytest.mark.parametrize("answer", [{"a": 1}, {1, 2}, "[1, 1, 0]", lambda: 0])
def test_of_another_form_the_wanted_one_is_told(answer):
    assert "as a list: [1, 2]." in check.key_of_anna(answer).message


@pytest.mark.parametrize("name", ["what_words_look_for", "two_jobs", "choose_W_Q", "alphabet_scores"])
def test_no_imaginary_part_is_lost_in_silence(name):
    right = {
        "what_words_look_for": WISHES,
        "choose_W_Q": 9 * np.roll(KEYS, -1, axis=0),
        "two_jobs": 20 * two_jobs._WANTED.swapaxes(0, 1).reshape(4, 8),
        "alphabet_scores": [8, 0],
    }[name]
    assert EXERCISES[name](np.array(right)).passed
    verdict = EXERCISES[name](np.array(right) + 1j)
    assert verdict.state == "wrong" and "omplex" in verdict.message, verdict


def test_a_list_of_arrays_is_told_to_be_stacked():
    message = check.split_heads(lambda x, h: np.split(x, h, axis=-1)).message
    assert "np.stack(..., axis=...)" in message and "np.array(" not in message
    assert "np.array(...) around it" in check.merge_heads(lambda x: al.merge_heads(x).tolist()).message


def test_settings_of_an_answer_do_not_make_it_wrong():
    def careful(x, axis=-1):
        np.seterr(all="raise")
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    before, of_numpy = np.geterr(), np.seterr
    assert check.softmax(careful).passed
    assert np.geterr() == before and np.seterr is of_numpy


@pytest.mark.parametrize(
    "name, answer",
    [
        ("softmax", lambda x, axis=-1: torch.softmax(torch.from_numpy(x), axis).numpy()),
        ("softmax", lambda x, axis=-1: torch.from_numpy(x).softmax(axis).numpy()),
        (
            "scaled_dot_product_attention",
            lambda *a: nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, a)).numpy(),
        ),
    ],
)
def test_torchs_own_function_passes_with_a_remark(name, answer):
    verdict = EXERCISES[name](answer)
    assert verdict.passed and f"Remark: torch's own {name} does the work here." in verdict.message, verdict


def test_what_computes_in_torch_or_scipy_passes_with_a_remark():
    def scores(query, key):
        return query @ np.swapaxes(key, -1, -2) / query.shape[-1] ** 0.5

    attention = EXERCISES["scaled_dot_product_attention"]
    in_torch = attention(lambda q, k, v: torch.from_numpy(scores(q, k)).softmax(-1).numpy() @ v)
    assert in_torch.message == "Remark: torch computes here. The exercise asks for NumPy."
    assert attention(lambda q, k, v: al.softmax(scores(q, k)) @ v).message == ""
    names = {"np": np}
    code = "def softmax(x, axis):\n    e = np.exp(x - x.max(axis)[..., None])\n    return e / e.sum(axis)[..., None]"
    exec(compile(code, "site-packages/scipy/special/_logsumexp.py", "exec"), names)  # scipy itself is not installed
    verdict = check.softmax(lambda x, axis=-1: names["softmax"](x.swapaxes(axis, -1), -1).swapaxes(axis, -1))
    assert verdict.passed and "Remark: scipy's own softmax does the work here." in verdict.message


def test_a_profiled_check_answers_and_the_profile_goes_on():
    profile = cProfile.Profile()
    profile.enable()
    try:
        assert check.softmax(lambda x, axis=-1: al.softmax(x, axis)).passed
        assert sys.getprofile() is profile
    finally:
        profile.disable()


# --- the library's own


@pytest.mark.parametrize(
    "name, answer",
    [
        ("softmax", al.softmax),
        ("scaled_dot_product_attention", al.scaled_dot_product_attention),
        ("scaled_dot_product_attention", lambda q, k, v, m=None: al.attention_trace(q, k, v, m).output),
        ("MultiHeadAttention", torch_layers.MultiHeadAttention),
        ("masked_attention", lambda q, k, v, m=None: al.attention_trace(q, k, v, m).output),
    ],
)
def test_attnlibs_own_function_passes_with_a_remark(name, answer):
    verdict = getattr(check, name)(answer)
    assert verdict.passed and verdict.mistake is None
    assert "Remark: attnlib's own" in verdict.message


def test_what_may_be_used_gets_no_remark():
    def attention(query, key, value, attn_mask=None):
        scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
        return al.softmax(scaled if attn_mask is None else np.where(attn_mask, scaled, -np.inf)) @ value

    assert check.scaled_dot_product_attention(attention).message == ""
    assert check.SelfAttention(SelfAttention).message == ""
    masked = check.masked_attention(attention)
    assert masked.passed and masked.message == ""


# --- the verdict


def test_a_verdict_is_true_only_if_right():
    """A grader that writes `assert check.softmax(answer)` must not give points to a wrong answer."""
    assert check.softmax(al.softmax)
    assert not check.softmax(lambda x, axis=-1: x) and not check.softmax(None)


def test_html_escapes_what_a_learner_can_write():
    class Evil(Exception):
        pass

    def attack(x, axis=-1):
        raise Evil('<script>alert(1)</script> & "quotes"')

    page = check.softmax(attack)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_html_shows_names_as_code_without_their_backticks():
    verdict = Verdict("softmax", "wrong", "Divide by `x < y`.\nNot by `n`.")
    assert "Divide by <code>x &lt; y</code>.<br>Not by <code>n</code>." in verdict._repr_html_()
    assert "`x < y`" in str(verdict)


def test_html_shows_both_maps_in_any_theme():
    page = check.scaled_dot_product_attention(
        EXERCISES["scaled_dot_product_attention"].wrong["no_scale"][0]
    )._repr_html_()
    assert page.count("<table") == 2 and "yours (4, 2)" in page and "expected (4, 2)" in page
    assert "queries (rows), features (columns)" in page
    veils = re.findall(r"background:(#\w+)", page)
    assert len(veils) == 1 + 16 and "color:#" not in page and all(len(fill) == 9 for fill in veils)  # its own ink
    assert "≠" in page


def test_nan_and_infinity_have_cells_of_their_own():
    page = check.causal_mask(lambda n_q, n_k=None: np.full((n_q, n_k or n_q), np.nan))._repr_html_()
    assert "expected bool" in page
    page = check.attention_scores(lambda q, k: np.full((4, 5), np.inf))._repr_html_()
    assert "dashed" in page and ">≠ inf<" in page


def test_an_unknown_exercise_says_which_was_meant():
    with pytest.raises(AttributeError, match="did you mean check"):
        _ = check.sofmax
    assert set(dir(check)) == set(EXERCISES)


@pytest.mark.parametrize("answer", [[1, 2], "none", [[0, 0, 0]] * 3, [[0] * 6] * 3, [[np.nan] * 3] * 6, [[1, 2], [3]]])
def test_a_design_of_another_form_is_told_the_form(answer):
    verdict = check.what_words_look_for(answer)
    assert verdict.state == "wrong" and verdict.mistake is None
    assert "must be 6 rows of 3 finite numbers" in verdict.message and "Fix: " in verdict.message


def test_a_design_is_told_what_each_word_finds():
    """No name fits: saw finds she, and Anna cannot decide, which no catalogued mistake does."""
    verdict = check.what_words_look_for([[0, 6, 6], [0, -6, 0], [0] * 3, [0, 6, 0], [1, 1, 0], [0] * 3])
    assert verdict.mistake is None
    assert "Anna cannot decide between Anna, saw and she (wanted: saw)." in verdict.message
    assert "saw cannot decide between Anna and she (wanted: Ben). Ben finds saw." in verdict.message
    assert "she takes most from Anna, but less than 0.9." in verdict.message


def test_a_faint_wish_for_the_wrong_word_is_not_told_to_be_stronger():
    verdict = check.what_words_look_for(SENTENCE.W_K)
    assert "Anna takes most from Anna (wanted: saw)." in verdict.message and "0.9" not in verdict.message


def test_a_faint_wish_is_told_what_a_score_becomes():
    alone = al.softmax(np.array([4.0, 0, 0, 0]) / 3**0.5)[0]
    assert f"becomes {4 / 3**0.5:.1f}, and takes {alone:.2f} beside three zeros" in MISTAKES["wish_too_faint"].symptom


@pytest.mark.parametrize(
    "answer",
    [
        [[[1]], [[1, 2]], [[1]]],
        [[[1]], [[1]], [[1], [2]]],
        [[[1]], [[1]] * 2, [[1]] * 2],
    ],
)
def test_an_example_whose_shapes_do_not_fit_is_told_so(answer):
    verdict = check.example_that_tells(answer)
    assert verdict.state == "wrong" and verdict.mistake is None
    assert "Q and K of one shape, and as many rows in V" in verdict.message


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (5, "has no parts"),
        ([np.eye(3)] * 2, "You hand in 2 parts, three are asked for."),
        ([np.full((3, 2), 1e200)] * 3, "The scores of yours overflow. Fix: smaller numbers"),
        ([np.eye(3)] * 4, "You hand in 4 parts, three are asked for."),
        ([[1, 2]], "You hand in 1 part, three are asked for."),
        ("QKV", "Q does not hold rows of numbers only."),
        ([[["a"]], [[1]], [[1]]], "Q does not hold rows of numbers only."),
        ([[[2, 0, 0], [0, 2], [0, 0, 2]], np.eye(3), [[1], [0], [3]]], "The rows of Q have 3, 2 and 3 numbers."),
        ([np.eye(3), np.eye(3), [[1], [0], [3, 2]]], "The rows of V have 1, 1 and 2 numbers."),
        (
            [np.eye(3), np.eye(3), [1, 0, 3]],
            "V has shape (3,). Fix: rows of numbers; three rows of one number are [[1]",
        ),
        ([[[np.inf]]] * 3, "Q holds inf or NaN."),
    ],
)
def test_an_example_of_another_form_is_told_which_part_is_wrong(answer, told):
    verdict = check.example_that_tells(answer)
    assert verdict.state == "wrong" and verdict.mistake is None
    assert told in verdict.message and "Fix: " in verdict.message and "(0,)" not in verdict.message


def test_an_example_is_told_which_mistakes_it_lets_through():
    verdict = check.example_that_tells([[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [3, 4]]])
    assert verdict.mistake == "symmetric_example"
    assert "Your example shows: no scale. It lets through: Q and K swapped;" in verdict.message
    assert "It lets through: none." in check.example_that_tells(al.examples.ASYMMETRIC.project()).message

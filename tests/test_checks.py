"""The catalogue of mistakes: every one is named where it is made, nothing is named that is not there."""

import itertools
import re

import numpy as np
import pytest
from answers import named, submit
from lessons import file_of, gather, two_texts

import attnlib as al
from attncourse import EXERCISES, MISTAKES, PREDICTIONS, catalogue, check
from attncourse.clinic import CASES
from attncourse.engine.exercise import BY_STAGE, CHANGING, IGNORED, Design
from attncourse.engine.explain import CONSTANT, FACTOR, NEARLY, PART, REARRANGED, explain
from attncourse.lessons.program_a_head.puzzle import Puzzle
from tools.checks import TARGET, page, section
from tools.series import TAUGHT

DESIGNS = gather("DESIGNS")
STEPS = [e for e in EXERCISES.values() if not isinstance(e, Puzzle | Design)]  # lesson program_a_head: test_puzzles.py


@pytest.mark.parametrize("exercise", STEPS, ids=lambda exercise: exercise.name)
def test_every_mistake_is_rejected_and_named(exercise):
    missed = []
    for id, functions in exercise.wrong.items():
        for verdict in (submit(exercise, function) for function in functions):
            if (verdict.state, verdict.mistake) != ("wrong", id) or MISTAKES[id].behaves_as_if not in verdict.message:
                missed.append((id, verdict))
    assert missed == []


@pytest.mark.parametrize("name", DESIGNS)
def test_every_mistake_of_a_design_is_rejected_and_named(name):
    assert set(DESIGNS[name]) == set(EXERCISES[name].names), (
        f"each mistake of {name} is handed in, got {sorted(DESIGNS[name])}, expected {sorted(EXERCISES[name].names)}. "
        f"Fix: DESIGNS[{name!r}] in {file_of(name)}"
    )
    for id, answers in DESIGNS[name].items():
        for answer in answers:
            verdict = EXERCISES[name](answer)
            assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
            assert MISTAKES[id].behaves_as_if in verdict.message


def test_every_mistake_of_the_catalogue_is_made_somewhere():
    in_puzzles = {id for exercise in catalogue.LESSONS["program_a_head"].exercises for id in exercise.names}
    made = (
        {id for exercise in STEPS for id in exercise.names}
        | {id for wrong in DESIGNS.values() for id in wrong}
        | in_puzzles
    )
    made |= set(two_texts.WRONG["sick_translator"])
    assert made == set(MISTAKES)
    for name in {name for name, exercise in EXERCISES.items() if isinstance(exercise, Design)}:
        fix = f"many answers to {name} are right, so its wrong ones are handed in. Fix: DESIGNS of {file_of(name)}"
        assert name in DESIGNS or name in ("no_head_can", "own_head", "sick_translator"), fix


def test_a_name_belongs_to_one_mistake():
    """The catalogue keeps them by name: of two alike the later one would do the work of both."""
    for exercise in EXERCISES.values():
        assert all(mistake is MISTAKES[mistake.id] for mistake in exercise.mistakes), exercise.name


@pytest.mark.parametrize("thing", [EXERCISES["softmax"], PREDICTIONS["cube"]], ids=lambda thing: thing.name)
def test_two_exercises_or_questions_of_one_name_raise_and_name_both_lessons(thing):
    others = [("masks", EXERCISES["causal_mask"]), ("masks", PREDICTIONS["writes_on"])]
    with pytest.raises(ValueError, match=rf"'{thing.name}' stands in lessons/vectorized and in lessons/two_texts\."):
        catalogue.by_name([("vectorized", thing), *others, ("two_texts", thing)])
    assert list(catalogue.by_name([("vectorized", thing), *others])) == [thing.name, "causal_mask", "writes_on"]


def test_masks_are_asked_for_where_they_have_been_taught():
    """The first of them try none; what is wrong with a mask has a name from lesson masks on."""
    taught = {id for id in EXERCISES["masked_attention"].wrong if "mask" in id} | {"finite_fill", "fill_not_low_enough"}
    taught -= {"causal_mask_added"}  # a triangle that nobody asked for
    assert len(taught) > 8
    for name in ("scaled_dot_product_attention", "SelfAttention"):
        exercise = EXERCISES[name]
        assert all(exercise.steps_on(probe.args).mask is None for probe in exercise.probes)
        assert not taught & set(exercise.wrong)


def test_the_catalogue_has_the_lessons_of_the_series():
    """It finds them by their folders, since the series is not installed with the package."""
    assert list(catalogue.LESSONS) == [notebook.slug for notebook in TAUGHT]
    assert set(catalogue.LESSONS) == catalogue._FOLDERS  # each has a place in lessons.ORDER


@pytest.mark.parametrize(
    "name, applicable",
    {
        "softmax": "no_softmax double_softmax argmax_instead_of_softmax unstable_softmax softmax_over_queries "
        "softmax_over_everything mutates_input returns_float16",
        "attention_scores": "swapped_query_key untransposed_key scaled_already wrong_batch_axis",
        "scaled_dot_product_attention": "no_scale scale_by_d_k scale_by_d_v scale_by_n multiply_by_sqrt_d_k "
        "scale_after_softmax softmax_over_queries softmax_over_everything no_softmax double_softmax "
        "argmax_instead_of_softmax unstable_softmax swapped_query_key swapped_key_value untransposed_key "
        "weights_returned weights_transposed wrong_batch_axis mutates_input returns_float16",
        "causal_mask": "mask_inverted mask_future_only mask_blocks_diagonal causal_upper_left causal_square "
        "causal_offset_reversed mask_as_numbers",
        "padding_mask": "mask_inverted padding_masks_queries padding_without_query_axis padding_off_by_one",
        "sparse_masks": "key_ahead too_many_keys reach_too_short mask_inverted",
        "masked_softmax": "mask_ignored mask_inverted mask_after_softmax mask_multiplies_scores finite_fill "
        "nan_on_fully_masked fill_not_low_enough unstable_softmax",
        "split_heads": "split_without_transpose heads_interleaved sizes_of_heads_exchanged wrong_batch_axis",
        "merge_heads": "merge_without_transpose heads_interleaved heads_averaged",
        "two_jobs": "heads_exchanged heads_interleaved scores_too_small scores_negated",
        "multi_head_attention": "scale_by_embed_dim one_mask_for_first_head_only split_without_transpose "
        "merge_without_transpose heads_interleaved heads_averaged no_output_projection projections_unused "
        "projections_shared no_scale mask_inverted wrong_batch_axis mutates_input returns_float16 "
        "mask_always_three_axes mask_without_head_axis features_never_split scale_by_num_heads fill_not_low_enough",
        "SelfAttention": "no_scale scale_by_embed_dim projections_unused projections_shared",
        "MultiHeadAttention": "scale_by_embed_dim one_mask_for_first_head_only split_without_transpose "
        "merge_without_transpose heads_averaged no_output_projection projections_unused projections_shared",
        "masked_attention": "swapped_key_value no_scale no_scale_with_mask mask_ignored mask_inverted "
        "mask_after_softmax mask_multiplies_scores finite_fill nan_on_fully_masked padding_masks_queries "
        "mask_renormalised zero_times_infinity fill_not_low_enough no_mask_blocks_all",
        "variance_of_scores": "products_not_summed scaled_already std_instead_of_variance matching_pairs_only",
        "output_of_she": "rounded_weights weights_returned",
        "scores_in_range": "raw_scores_returned divided_by_variance cosines_returned unit_variance_assumed "
        "one_factor_counted scores_of_the_crowd root_of_d_k_left_out",
        "entropy": "zero_times_log_zero another_logarithm minus_forgotten entropy_over_queries exponential_of_entropy",
        "other_head": "own_letter_looked_up map_read_by_columns place_in_the_alphabet",
        "choose_W_Q": "query_looks_for_itself query_looks_for_previous query_looks_across query_too_short",
    }.items(),
)
def test_the_mistakes_that_belong_to_an_exercise_are_among_its_own(name, applicable):
    assert set(applicable.split()) <= set(EXERCISES[name].names)


def test_every_mistake_completes_the_sentence():
    for mistake in MISTAKES.values():
        start = mistake.behaves_as_if[0]
        assert start.islower() or mistake.behaves_as_if.startswith(("True", "nn.")), mistake
        assert not mistake.behaves_as_if.endswith("."), mistake


def test_the_page_names_every_mistake_under_its_exercise():
    for exercise in (e for e in EXERCISES.values() if not isinstance(e, Puzzle)):
        named = re.findall(r"`(\w+)`", section(exercise).split("*Names*")[1])
        assert set(named) == set(exercise.names), exercise.name
    assert all(f"| `{id}` |" in page() for id in MISTAKES)


def test_the_page_of_mistakes_is_up_to_date():
    assert TARGET.read_text(encoding="utf-8") == page() + "\n", "Fix: python -m tools.checks"


# --- nothing is named that is not there

# What an experiment shows, or the result by itself, whatever mistake it comes of.
GENERAL = {IGNORED, CHANGING, NEARLY, "another_layer", *BY_STAGE.values()}


FREE = {"induction_measure", "look_back", "scores_in_range"}  # of which many answers are right


@pytest.mark.parametrize(
    "exercise", [e for e in STEPS if e.answer_is_code and e.name not in FREE], ids=lambda e: e.name
)
def test_random_wrong_functions_are_rejected_and_never_named(exercise):
    rng = np.random.default_rng(0)
    for _ in range(15):
        factor, shift = rng.uniform(0.3, 3), rng.normal()

        def wrong(*args, factor=factor, shift=shift):
            right = np.asarray(exercise.reference(*args))
            return np.random.default_rng(0).random(right.shape) < 0.5 if right.dtype == bool else factor * right + shift

        def wrong_tuple(*args, factor=factor, shift=shift):
            return tuple(factor * y + shift for y in exercise.reference(*args))

        verdict = submit(exercise, wrong_tuple if exercise.returns_weights else wrong)
        assert verdict.state == "wrong" and named(verdict) <= GENERAL, verdict


# Not in 2.3: without a mask two mistakes can do what one does, transposed scores and axis as transposed weights.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["masked_attention", "multi_head_attention", "masked_softmax"])
def test_two_mistakes_at_once_are_rejected_and_no_third_is_named(name):
    exercise = EXERCISES[name]
    mistakes = [m for m in MISTAKES.values() if m.id in exercise.wrong and m.variants]
    pairs = [  # not those that replace the same step: only one of them can be made
        (a, b) for a, b in itertools.combinations(mistakes, 2) if not set(a.variants[0]) & set(b.variants[0])
    ]
    both, tried = 0, pairs[:: 1 + len(pairs) // 220]  # of up to 1500 some will do, each mistake in several
    for a, b in tried:
        verdict = exercise(exercise.with_steps(a.variants[0] | b.variants[0]))
        assert verdict.state == "wrong", (a.id, b.id)
        said = {id for id in exercise.wrong if MISTAKES[id].behaves_as_if in verdict.message}
        # Of two, an experiment may show one in general: an ignored mask is an argument without a part in the result.
        assert said <= {a.id, b.id} and named(verdict) - GENERAL <= said, (a.id, b.id, verdict)
        both += named(verdict) == {a.id, b.id}
    assert {m.id for m in mistakes} == {m.id for pair in tried for m in pair}
    assert both > len(tried) / 2, (len(tried), both)


def test_errors_alone_are_no_evidence_of_two_mistakes():
    """An answer that mostly raises may do so for any reason."""

    def broken(q, k, v, m=None):
        if q.ndim == 2 or m is not None:
            raise ValueError("anything")
        return q @ np.swapaxes(k, -1, -2) @ v

    assert check.scaled_dot_product_attention(broken).mistake is None


def test_the_score_of_row_i_with_row_i_alone_is_not_called_untransposed():
    """It raises where q @ k does, and its variance was once the same to 1 in 1000, by chance."""
    verdict = check.variance_of_scores(lambda query, key: (query * key).sum(axis=-1).var())
    assert (verdict.state, verdict.mistake) == ("wrong", "matching_pairs_only")
    assert check.variance_of_scores(lambda query, key: np.var(query @ key)).mistake == "untransposed_key"


def test_values_in_another_order_are_not_called_scores():
    """From outside, weights on reversed keys and values in reversed order are the same."""

    def attention(q, k, v, m=None):
        return al.scaled_dot_product_attention(q, k, v, m)[..., ::1, :] if m is not None else reverse(q, k, v)

    def reverse(q, k, v):
        return al.attention_trace(q, k, v).weights @ v[..., ::-1, :]

    assert check.scaled_dot_product_attention(attention).stage is None


def test_a_hint_does_not_send_to_the_next_exercise():
    """The scale comes right after the scores in 2.2, and two exercises later in 1.2."""
    assert "a later exercise" in check.scores_of_she([5 / 3**0.5, 0, 3**0.5, 2 / 3**0.5]).hint()


def test_several_explanations_are_none():
    exercise = EXERCISES["softmax"]
    found = exercise.wrong_outcomes["no_softmax"][0]
    assert [m.id for m in exercise.explain(None, found)] == ["no_softmax"]
    twice = {"no_softmax": [found], "double_softmax": [found]}
    assert explain(found, exercise.expected, exercise.probes, exercise.mistakes, twice, exercise.pairs) == ()


@pytest.mark.parametrize("name", ["masked_attention", "masked_softmax"])
def test_a_mistake_unknown_to_the_catalogue_is_not_called_two_others(name):
    exercise = EXERCISES[name]
    for id, ways in exercise.wrong_outcomes.items():
        for outcomes in ways:
            assert not [ids for ids in exercise.pairs.fitting(outcomes) if id not in ids], id


# --- what the result shows by itself, before two mistakes are looked for


def kept_at(place, axis, rest=0):
    """Return what keeps one place of an axis and leaves the rest at a number."""

    def part(y):
        y = np.moveaxis(np.array(y), axis, 0)
        y[np.arange(len(y)) != place % len(y)] = rest
        return np.moveaxis(y, 0, axis)

    return part


SHOWN = {
    "zeros": (CONSTANT, np.zeros_like),
    "one number": (CONSTANT, lambda y: np.full_like(y, 0.7)),
    "the first row": (PART, lambda y: y[..., :1, :]),
    "the last row, without its axis": (PART, lambda y: y[..., -1, :]),
    "all columns but the last": (PART, lambda y: y[..., :-1]),
    "the first of a batch": (PART, lambda y: y[0] if y.ndim > 2 else y),
    "only the first row filled": (PART, kept_at(0, -2)),
    "only the last column filled": (PART, kept_at(-1, -1)),
    "features backwards": (REARRANGED, lambda y: y[..., ::-1]),
    "rows backwards": (REARRANGED, lambda y: y[..., ::-1, :]),
    "the last two axes exchanged": (REARRANGED, lambda y: np.swapaxes(y, -1, -2)),
    "the heads or features cut in other places": (REARRANGED, lambda y: np.roll(y, 1).reshape(*y.shape[:-2], -1)),
    "an axis too many": (REARRANGED, lambda y: y[None]),
    "two axes in one": (REARRANGED, lambda y: y.reshape(*y.shape[:-2], -1)),
    "half of it": (FACTOR, lambda y: y / 2),
    "the sign": (FACTOR, np.negative),
    # Near to these, and none of them: nothing is said.
    "another factor in each row": (None, lambda y: y * (1 + np.arange(y.shape[-2]))[:, None]),
    "zeros in the middle": (PART, lambda y: y * (np.arange(y.shape[-2]) != 1)[:, None]),
    "noise": (None, lambda y: y + 0.01 * np.cos(np.arange(y.size)).reshape(y.shape)),
    "every second row": (None, lambda y: y[..., ::2, :]),
    "the rest at 1": (None, kept_at(0, -2, rest=1)),
    "constant rows": (None, lambda y: np.broadcast_to(y[..., :1], y.shape)),
    "a part, and twice as large": (None, lambda y: 2 * y[..., :1, :]),
}
RESULTS = [EXERCISES[name] for name in ("scaled_dot_product_attention", "masked_attention", "multi_head_attention")]


@pytest.mark.parametrize("form", SHOWN)
@pytest.mark.parametrize("exercise", RESULTS, ids=lambda exercise: exercise.name)
def test_what_a_result_shows_by_itself_is_told_before_two_mistakes(exercise, form):
    id, change = SHOWN[form]
    verdict = exercise(lambda *args: change(exercise.reference(*args)))
    assert (verdict.state, verdict.mistake) == ("wrong", id or BY_STAGE.get(verdict.stage)), verdict


def test_masks_that_are_all_false_are_constant():
    for name in ("padding_mask", "causal_mask", "window_mask", "kept_keys"):
        exercise = EXERCISES[name]
        assert exercise(lambda *args, exercise=exercise: exercise.reference(*args) & False).mistake == CONSTANT


# --- one name for one mistake


@pytest.mark.parametrize("id", CASES)
def test_a_patient_of_the_clinic_has_the_name_that_the_check_gives_it(id):
    verdict = check.MultiHeadAttention(CASES[id].module)
    assert CASES[id].bug in named(verdict) or named(verdict) <= GENERAL, (
        verdict
    )  # some work for batches only, which is a second mistake


def test_most_patients_are_known_to_the_check():
    known = [case.bug for case in CASES.values() if case.bug in named(check.MultiHeadAttention(case.module))]
    assert len(known) >= 12, known

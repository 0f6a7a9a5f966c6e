# Written by python -m tools.stub.
from pathlib import Path
from typing import Any, NamedTuple

from .engine.exercise import Exercise
from .engine.questions import Question, Recall
from .mistakes.mistake import Mistake

class Lesson(NamedTuple):
    folder: Path
    exercises: tuple[Exercise, ...]
    mistakes: tuple[Mistake, ...]
    payoffs: dict[str, Any]

LESSONS: dict[str, Lesson]
EXERCISES: dict[str, Exercise]
PREDICTIONS: dict[str, Question]
RECALLS: dict[str, Recall]
MISTAKES: dict[str, Mistake]

class Checks:
    key_of_anna: Exercise
    scores_of_she: Exercise
    weights_of_she: Exercise
    output_of_she: Exercise
    what_words_look_for: Exercise
    softmax: Exercise
    attention_scores: Exercise
    scaled_dot_product_attention: Exercise
    example_that_tells: Exercise
    variance_of_scores: Exercise
    uniform_divisor: Exercise
    entropy: Exercise
    scores_in_range: Exercise
    alphabet_scores: Exercise
    other_head: Exercise
    choose_W_Q: Exercise
    SelfAttention: Exercise
    causal_mask: Exercise
    masked_softmax: Exercise
    masked_attention: Exercise
    sparse_masks: Exercise
    padding_mask: Exercise
    split_heads: Exercise
    merge_heads: Exercise
    multi_head_attention: Exercise
    MultiHeadAttention: Exercise
    two_jobs: Exercise
    windows: Exercise
    bits: Exercise
    block: Exercise
    write: Exercise
    patch: Exercise
    bag_accuracy: Exercise
    induction_measure: Exercise
    divisor_repair: Exercise
    without_head: Exercise
    parking_place: Exercise
    look_at_yourself: Exercise
    your_own_flag: Exercise
    who_wants_whom: Exercise
    where_is_c: Exercise
    cargo_of_c: Exercise
    all_but_the_pilot: Exercise
    three_to_one: Exercise
    nothing_to_do: Exercise
    ship_in_front: Exercise
    latest_of_my_flag: Exercise
    count_with_a_witness: Exercise
    difference: Exercise
    what_came_next: Exercise
    no_head_can: Exercise
    own_head: Exercise
    decode_step: Exercise
    window_mask: Exercise
    out_of_reach: Exercise
    grouped_attention: Exercise
    accept_draft: Exercise
    draft_chances: Exercise
    rope: Exercise
    look_back: Exercise
    rotary_attention: Exercise
    slowed: Exercise
    to_halves: Exercise
    three_patients: Exercise
    kept_keys: Exercise
    looks_back: Exercise
    waking_prompt: Exercise
    online_softmax: Exercise
    merge: Exercise
    blocks: Exercise
    tiled: Exercise
    cross_attention: Exercise
    context_mask: Exercise
    left_positions: Exercise
    packed_mask: Exercise
    sick_translator: Exercise
    rounded: Exercise
    in_groups: Exercise
    best_keys: Exercise
    layers: Exercise
    latent_attention: Exercise
    state: Exercise

class Predict:
    softmax_by_hand: Question
    two_names: Question
    symmetric: Question
    cube: Question
    score_std: Question
    raised_by_a_tenth: Question
    divided_by_d_k: Question
    small_start: Question
    equal_weights: Question
    square_weight: Question
    sum_of_weights: Question
    writes_on: Question
    zero_after: Question
    equal_sizes: Question
    reshape: Question
    head_divisor: Question
    bits_a_letter: Question
    lowest_loss: Question
    at_the_last_position: Question
    pale: Question
    sums: Question
    too_good: Question
    poison: Question
    demonstration: Question
    company: Question
    dropout_rows: Question
    no_positions: Question
    pale_diagonal: Question
    two_heads: Question
    one_layer: Question
    patching: Question
    named_head: Question
    parking: Question
    one_word_turned: Question
    one_sentence: Question
    head_of_zeros: Question
    witness: Question
    broken_rules: Question
    kept_keys: Question
    hidden_bugs: Question
    heavier_caches: Question
    knows_the_number: Question
    first_kept: Question
    single_head: Question
    dealt_out: Question
    loses_most: Question
    match: Question
    shifted: Question
    beyond: Question
    wrong_rows: Question
    long_key: Question
    lost: Question
    far_copy: Question
    latest: Question
    norm_order: Question
    start: Question
    whole_text: Question
    next_word_in_sight: Question
    unseen_mistake: Question
    tile_size: Question
    crowd: Question
    mask_between: Question
    sharp_or_pale: Question
    hidden_mistake: Question
    needed_letter: Question
    window_finds: Question
    shared_by_all_keys: Question
    scale_per_feature: Question
    three_narrowed: Question
    whose_directions: Question
    room_in_a_state: Question
    sum_or_delta: Question
    shared_by_a_state: Question
    before_by_hand: Recall
    before_vectorized: Recall
    before_scaling: Recall
    before_pytorch_module: Recall
    before_masks: Recall
    before_multi_head: Recall
    before_model_of_your_own: Recall
    before_bug_clinic: Recall
    before_train_and_look: Recall
    before_a_real_model: Recall
    before_program_a_head: Recall
    before_one_token_at_a_time: Recall
    before_todays_head: Recall
    before_it_speaks: Recall
    before_long_texts: Recall
    before_two_texts: Recall
    before_less_to_keep: Recall
    before_fixed_state: Recall

check: Checks
predict: Predict

"""A folder a lesson, by its name: exercises, mistakes, questions and what only they need.

`ORDER` is the order of reading and the only place that has it. The number of a lesson is its place here, and an
exercise counts on within its lesson: builds write both into notebooks and pages, so no text says them itself.
"""

ORDER = (
    "start_here",
    "by_hand",
    "vectorized",
    "scaling",
    "pytorch_module",
    "masks",
    "multi_head",
    "model_of_your_own",
    "bug_clinic",
    "train_and_look",
    "a_real_model",
    "program_a_head",
    "one_token_at_a_time",
    "todays_head",
    "it_speaks",
    "long_texts",
    "two_texts",
    "less_to_keep",
    "fixed_state",
    "casebook",
)

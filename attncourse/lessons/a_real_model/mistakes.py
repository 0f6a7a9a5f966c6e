"""The mistakes that only A real model knows, and its steps."""

from functools import cached_property

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake


class LayerSteps(Steps):
    @cached_property
    def features(self):
        """The features of the concatenated heads that belong to the head, an index."""
        d_k = len(self.W_O) // self.num_heads
        return slice(self.head * d_k, (self.head + 1) * d_k)

    @cached_property
    def without(self):
        """W_O as nn.Linear stores it, (out, in): what comes in from the head is a block of columns."""
        result = self.W_O.copy()
        result[:, self.features] = 0
        return result


MISTAKES = (
    Mistake(
        "root_of_ratio_forgotten",
        behaves_as_if="the divisors were 384 and 32",
        symptom="12 is 384/32. The class divides by the root of 384, and the model wants the root of 32.",
        hint="Write down both divisors. What is their ratio?",
        then="Scores are divided by roots. So take the root of that ratio.",
    ),
    Mistake(
        "repair_inverted",
        behaves_as_if="the scores were too large",
        symptom="The root of 384 is the larger divisor. So the scores come out too small, and W_Q must make them "
        "larger.",
        hint="Are the scores too large or too small when they are divided by a larger number?",
        then="Too small. So the factor is larger than 1: turn your fraction over.",
    ),
    Mistake(
        "inverse_of_the_ratio",
        behaves_as_if="the scores were too large, and the divisors were 384 and 32",
        symptom="1/12 is 32/384. The class divides by the root of 384, which is larger than the root of 32. So the "
        "scores come out too small, by the root of a ratio.",
        hint="Are the scores too large or too small? And which two divisors are compared, 384 and 32?",
        then="Too small, so the factor is larger than 1. The divisors are roots, so the factor is a root as well.",
    ),
    Mistake(
        "repair_shared_with_keys",
        behaves_as_if="the factor were shared with W_K",
        symptom="Only W_Q is multiplied here, so W_Q takes the whole factor.",
        hint="What happens to q.k if q alone is multiplied by c?",
        then="The product is multiplied by c, too. So c alone must make up for the whole ratio.",
    ),
    Mistake(
        "old_divisor_kept",
        behaves_as_if="the divisor that the model wants were the factor",
        symptom="The root of 32 is 5.66. But the class still divides by the root of 384.",
        hint="The class divides by the root of 384. Which factor makes a division by the root of 32 of that?",
        then="One divisor over the other: the root of 384 divided by the root of 32.",
    ),
    Mistake(
        "scale_undone",
        behaves_as_if="the scores had to be the raw ones, without any scale",
        symptom="The model was trained with a scale: the right scores are q.k divided by the root of 32.",
        hint="Which divisor was the model trained with?",
        then="With the root of 32. So multiply by the divisor of the class, and divide by the divisor of the model.",
    ),
    Mistake(
        "rows_silenced",
        behaves_as_if="it sets a block of rows to 0",
        symptom="A row of W_O makes one feature of the output, from all heads. nn.Linear stores (out, in), so the "
        "input from one head meets a block of columns.",
        hint="Which axis of W_O meets the heads, the axis of the inputs or the axis of the outputs?",
        then="The axis of the inputs, which are the columns of (out, in). Write 0 into result[:, ...].",
        variants=({"without": lambda s: LayerSteps(W_O=s.W_O.T, features=s.features).without.T},),
    ),
    Mistake(
        "heads_counted_from_one",
        behaves_as_if="the heads were counted from 1",
        symptom="Here head 0 is the first.",
        hint="Where do the features of head 0 begin?",
        then="At 0. Head h begins at h times d_k.",
        variants=({"features": lambda s: slice((s.head - 1) * (d := len(s.W_O) // s.num_heads), s.head * d)},),
    ),
    Mistake(
        "head_columns_interleaved",
        behaves_as_if="every h-th feature belonged to the head",
        symptom="The heads stand side by side: first all features of head 0, then all of head 1.",
        hint="Look at merge_heads in 'multi-head'. Which features of the merged vector come from head 0?",
        then="The first d_k features. They are one block of columns, side by side.",
        variants=({"features": lambda s: slice(s.head, None, s.num_heads)},),
    ),
    Mistake(
        "block_as_wide_as_heads",
        behaves_as_if="a head had as many features as there are heads",
        symptom="A head has d_model / h features.",
        hint="12 features, 3 heads. How many features has one head?",
        then="12 / 3 = 4. In code it is len(W_O) // num_heads.",
        variants=({"features": lambda s: slice(s.head * s.num_heads, (s.head + 1) * s.num_heads)},),
    ),
    Mistake(
        "width_of_minilm",
        behaves_as_if="every head had 32 features, as in MiniLM",
        symptom="Here a head has d_model / h features.",
        hint="Which number in your code would change with the model?",
        then="The 32. Compute it: len(W_O) // num_heads.",
        variants=({"features": lambda s: slice(s.head * 32, (s.head + 1) * 32)},),
    ),
    Mistake(
        "only_that_head_kept",
        behaves_as_if="it takes all other heads away and keeps this one",
        symptom="This head should add nothing, and the other heads should add what they added before.",
        hint="Which columns stay as they are?",
        then="All columns except those of this head. Begin with a copy of W_O and write 0 into the block of this head.",
        variants=({"without": lambda s: s.W_O - LayerSteps.without.func(s)},),
    ),
    Mistake(
        "no_room_to_park",
        behaves_as_if="the score of [CLS] were too low to take the weight when nothing matches",
        symptom="Weights sum to 1. The weight that [CLS] does not take stays on the words, and their values are added.",
        hint="Without a match all eight words have score 0. Must the score of [CLS] be higher or lower?",
        then="Higher: exp(score) must be at least nine times the 8 that the words have together.",
    ),
    Mistake(
        "score_and_length_exchanged",
        behaves_as_if="the length came first, and the score of [CLS] second",
        symptom="The other way round both numbers do what is asked.",
        hint="Which of the two numbers is asked for first?",
        then="The score: my_parking = [score, length].",
    ),
    Mistake(
        "parked_on_a_long_value",
        behaves_as_if="you had not counted the value of [CLS]",
        symptom="The weight on [CLS] is large, so nearly the whole value of [CLS] is added.",
        hint="Nearly all weight is on [CLS] when nothing matches. How long may the value of [CLS] be?",
        then="The words use up a part of 0.1, and the value may use the rest. A length of 0 is always short enough.",
    ),
    Mistake(
        "words_add_too",
        behaves_as_if="you had counted the value of [CLS] alone",
        symptom="That value is short enough by itself. But the words keep a part of the weight, and what they add "
        "counts, too.",
        hint="How much weight do the words keep without a match? Their values have length 1.",
        then="Their part of 0.1 and the length of the value of [CLS] add up. A length of 0 is always short enough.",
    ),
    Mistake(
        "parking_drowns_the_match",
        behaves_as_if="a match needed less than 0.9 of the weight: the score of [CLS] is too high",
        symptom="A match has score 10. What it does not get, [CLS] takes.",
        hint="With a match the two large terms are exp(10) and exp(score). Which ratio do they need?",
        then="9 to 1. So the score must be at least 2.2 below 10, and a little more for the other words.",
    ),
)

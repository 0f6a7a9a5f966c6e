"""Mistakes in a head that is set by hand, 10.1 to 10.13, in words. By what each is seen stands with its puzzle."""

from ...mistakes.mistake import Mistake

# Common to many puzzles.
COMMON = (
    Mistake(
        "too_little_weight",
        "it finds the right keys and gives them too little weight",
        "Softmax sees your scores divided by sqrt(d_k), and several wrong keys share what is left.",
        "By how much must the right score be ahead, once it is divided by sqrt(d_k)?",
    ),
    Mistake(
        "sign_turned",
        "a sign is turned: most goes where least belongs",
        "The right keys have the lowest scores, or the output is the negative of the wanted one.",
        "Which score should be the largest in a row, and which is it now?",
    ),
    Mistake(
        "everybody_alike",
        "all scores of a row are equal",
        "Every key gets the same weight: the queries say nothing, or the keys say the same for all.",
        "Print its queries and its keys. Are the ones or the others zero, or alike in every row?",
    ),
    Mistake(
        "column_off_by_one",
        "one of the matrices reads the column beside the one that is meant",
        "PILOT is column 0 of x, A is column 1, and so on up to D, column 4.",
        "Which row of your matrix belongs to which column of x? The names PILOT, A, B, C, D count for you.",
    ),
    Mistake(
        "swapped_asking_and_found",
        "queries and keys have changed places",
        "The ship that should ask is found, and the one that should be found asks.",
        "W_Q says what a ship asks for, W_K as what it is found. Which of your two matrices does which?",
    ),
    Mistake(
        "value_multiplied",
        "it multiplies what is handed over",
        "The output is a constant times the wanted one. W_V does not set how sharply a head looks.",
        "Which matrix sets the weights, and which one the contents?",
    ),
    Mistake(
        "pilot_forgotten",
        "the pilot was left out",
        "All other rows are right. The pilot is a row, too, and asks.",
        "What does row 0 of your map show?",
    ),
)

# 10.1 to 10.3
FLAGS = (
    Mistake(
        "ties_shared",
        "ships of one flag cannot be told apart",
        "Equal keys get equal scores, so they share the weight.",
        "What do two ships of one flag not have in common?",
    ),
    Mistake(
        "the_heavy_win",
        "the cargo is part of the score",
        "A heavy ship has a large number in its key, and large numbers shout.",
        "Which rows of W_Q and W_K are not 0? Is the row CARGO among them?",
    ),
    Mistake(
        "last_place_wins",
        "the place counts as a number, and the largest number wins",
        "The product i times j is largest for the last j, not for j = i.",
        "A place is given one-hot, in eight columns. Why not use all eight?",
    ),
    Mistake(
        "itself_only",
        "each ship looks at itself only",
        "Row i has its weight on place i.",
        "Which other ship should this row look at?",
    ),
    Mistake(
        "letter_as_number",
        "a flag is a number, and the highest letter wins",
        "D counts more than A. Flags have no size: none is closer to another.",
        "A flag is given one-hot, in five columns. What is the dot product of two one-hot vectors?",
    ),
    Mistake(
        "own_flag",
        "each ship finds its own flag",
        "Either no table stands between queries and keys, or one on each side: turned twice is not turned.",
        "Which flag is row A asking for?",
    ),
    Mistake(
        "pilot_in_the_circle",
        "the pilot is part of the circle",
        "D asks for the pilot, and the pilot for A.",
        "Whom does D want, and whom the pilot?",
    ),
    Mistake(
        "d_wants_nobody",
        "nobody is asked for by D",
        "A row of zeros in the table gives equal scores, and D looks at all alike.",
        "Which row of your table has no 1?",
    ),
)

# 10.4 to 10.8
CARGO = (
    Mistake(
        "only_c_asks",
        "only ships of flag C ask",
        "All other rows are uniform: their query is zero.",
        "Which column of x is the same for every ship?",
    ),
    Mistake(
        "value_is_the_key",
        "a label is handed over, which is 1, and not the tons",
        "The output is 1 for everybody.",
        "The key of C has done its work. Which column of x holds the tons?",
    ),
    Mistake(
        "all_columns_added",
        "all columns of x are handed over, added up",
        "The tons are there, and with them the ones of FLAG, ONE and PLACE: three too many.",
        "How many rows of W_V should be other than 0?",
    ),
    Mistake(
        "cargo_as_key",
        "the heaviest ship answers, not C",
        "Cargo is in the key, so everybody hears of the largest.",
        "By what is C found?",
    ),
    Mistake(
        "own_cargo",
        "each ship looks at itself",
        "Everybody is handed its own cargo.",
        "Whom does row 1 look at?",
    ),
    Mistake(
        "pilot_counted",
        "the pilot is part of the mean",
        "Its 0 t pull the mean down.",
        "How many numbers are in your mean, and how many ships are there?",
    ),
    Mistake(
        "one_length_only",
        "the mean with the pilot was multiplied by a number that fits one length",
        "n / (n - 1) is another number for each n, and W_V does not know n.",
        "Try a convoy of two ships and one of seven.",
    ),
    Mistake(
        "pilot_only",
        "everybody looks at the pilot",
        "The pilot carries nothing, so nothing is handed over. A sign is turned.",
        "Should the pilot have the largest score or the smallest?",
    ),
    Mistake(
        "only_the_pilot_asks",
        "only the pilot shuns the pilot",
        "Row 0 is right; all others still count it.",
        "Which column of x makes everybody ask the same?",
    ),
    Mistake(
        "scale_forgotten",
        "the division by sqrt(d_k) was forgotten",
        "The score is the logarithm of 3, and then it is divided: the ratio comes out as 3 ** (1 / sqrt(d_k)).",
        "Your d_k is 4. What does the division make of your score?",
    ),
    Mistake(
        "scale_squared",
        "the score was multiplied by d_k, and not by its root",
        "Only the root is divided away: the ratio comes out as 3 ** sqrt(d_k). Or did you fill a whole row, which is "
        "four features?",
        "Scores are divided by sqrt(4), not by 4. And W_Q[ONE] is four numbers, W_Q[ONE, 0] one.",
    ),
    Mistake(
        "whole_row_filled",
        "the score is four times as large as it should be",
        "The ratio comes out as 3 ** 4. W_Q[ONE] = ... fills a whole row, which is four features, and their products "
        "add up.",
        "How many features take part in your dot product? W_Q[ONE, 0] is one number.",
    ),
    Mistake(
        "ratio_as_score",
        "the score is 3",
        "Softmax takes exp of the score, so the ratio is a power of e and not 3.",
        "Which number x has exp(x) = 3?",
    ),
    Mistake(
        "wrong_logarithm",
        "the logarithm has another base than e",
        "np.log2 and np.log10 are inverses of 2 ** x and 10 ** x. Softmax uses exp.",
        "Which logarithm is the inverse of exp?",
    ),
    Mistake(
        "one_to_three",
        "another gets three times the weight of C, not C of another",
        "The sign of the score is turned.",
        "Should C have a higher score than the others or a lower one?",
    ),
    Mistake(
        "hard_choice",
        "everything goes to C",
        "A score of 20 is e ** 10 to 1 after the division. Here 3 to 1 is asked for.",
        "Which difference of scores makes a ratio of 3?",
    ),
    Mistake(
        "nobody_parks",
        "a ship with nothing to look for looks at all alike, or at what happens to be near",
        "Weights sum to 1, whether there is something to find or not.",
        "Where should a ship look by default, and what makes every ship look there?",
    ),
    Mistake(
        "pilot_too_strong",
        "the pilot wins, even where there is something to find",
        "The default has a larger score than what should beat it.",
        "Compare two scores in one row: the pilot's, and that of the ship to be found.",
    ),
    Mistake(
        "tied_with_the_pilot",
        "the pilot and the ship that was found share the weight",
        "Both have the same score.",
        "Which of the two should have the larger score?",
    ),
    Mistake(
        "a_never_parks",
        "no default is known to A",
        "Where there is no B, A looks at all alike. The others park.",
        "Is A among those that ask for the pilot?",
    ),
    Mistake(
        "direction_turned",
        "it is B that looks at A",
        "It is A that looks for B.",
        "Which flag asks: in W_Q? Which one is found: in W_K?",
    ),
    Mistake(
        "everybody_wants_b",
        "everybody looks at B",
        "Only A may. The wish for B stands in a row of W_Q that all ships share.",
        "Which row of W_Q belongs to A alone?",
    ),
)

# 10.9 to 10.13
PLACES = (
    Mistake(
        "attends_to_next",
        "each ship looks at the one behind it",
        "Row i has its weight on place i + 1: the table is turned.",
        "The row of the table asks, the column answers. Whom does row 3 ask for now?",
    ),
    Mistake(
        "position_wraps_around",
        "the places form a ring: the pilot looks at place 7",
        "np.roll brings back at one end what leaves at the other. In a shorter convoy nobody sails at place 7, and the "
        "pilot looks at all alike.",
        "Whom should the pilot look at?",
    ),
    Mistake(
        "two_back",
        "each ship looks two places back",
        "The step is made twice, once in the query and once in the key.",
        "How many of your two matrices step?",
    ),
    Mistake(
        "includes_itself",
        "a ship may find itself",
        "The latest ship of its flag so far is always the ship that asks.",
        "Is the diagonal of your mask True or False?",
    ),
    Mistake(
        "later_ships_seen",
        "a ship sees itself and later ships",
        "The latest ship of its flag in the whole convoy is found.",
        "Is the mask all True, or turned round? True = may attend.",
    ),
    Mistake(
        "late_place_beats_pilot",
        "a late place beats the pilot",
        "Far back, a ship that finds no earlier one of its flag looks at the ship in front of it.",
        "How large is the place at its largest, and how large is the wish for the pilot?",
    ),
    Mistake(
        "earliest",
        "the earliest ship of its flag is found, not the latest",
        "The score falls with the place, where it should rise.",
        "Which of two ships of one flag should have the larger score?",
    ),
    Mistake(
        "place_before_flag",
        "a late place outweighs the right flag",
        "Seven steps of place are worth more than one flag. In *ABBBBA the last A looks at a B.",
        "How large is the place at its largest, and how large is the flag?",
    ),
    Mistake(
        "average_of_ones",
        "the column of ones is averaged",
        "A mean of ones is 1, however many there are.",
        "Whose share of the weight shrinks as c grows?",
    ),
    Mistake(
        "no_witness",
        "the pilot gets no weight, or hands over nothing",
        "The ships are handed 0, or nearly. Is the pilot's share 0 in your map, or is its value 0?",
        "Which score has the pilot in the row of an A, and which has another A?",
    ),
    Mistake(
        "witness_too_strong",
        "the pilot gets all of the weight",
        "Its share is 1, however many ships there are.",
        "Which score has the pilot in the row of an A, and which has another A?",
    ),
    Mistake(
        "everybody_counted",
        "all ships so far are counted, whatever their flag",
        "The output is 1 / (place + 1). (So a causal mask alone tells a head where it is.)",
        "Which ships should have a score of their own in the row of an A?",
    ),
    Mistake(
        "share_of_the_ships",
        "what is handed over is the share of the ships, not that of the pilot",
        "It grows with c: c / (1 + c).",
        "Both shares sum to 1. Which of the two is asked for?",
    ),
    Mistake(
        "only_itself_counted",
        "each ship counts itself only",
        "The output is 1/2 everywhere.",
        "By what does a ship find the others of its flag?",
    ),
)

HEADS = (
    Mistake(
        "heads_added",
        "the outputs of the two heads are added",
        "W_O may subtract: its numbers may be negative.",
        "What does W_O = [[1], [-1]] do with two outputs?",
    ),
    Mistake(
        "one_head_unused",
        "one of the two heads is not used",
        "What comes out is the cargo of one ship.",
        "Which row of W_O is 0, or which head hands over nothing?",
    ),
    Mistake(
        "heads_alike",
        "both heads look at the same ships",
        "Two heads, two jobs: otherwise one would do.",
        "Print both maps. Whom should the second one look at?",
    ),
    Mistake(
        "finds_the_copy",
        "layer 2 finds the earlier ships of my flag, not those behind them",
        "Its keys are the flags themselves, and the note is not read.",
        "Which column of x1 tells of a ship what sails in front of it?",
    ),
    Mistake(
        "note_handed_over",
        "layer 2 finds the right ships and hands over their note",
        "The note says what sails in front of them: that is your own flag.",
        "Which columns hold the flag of the ship that was found?",
    ),
    Mistake(
        "own_flag_noted",
        "layer 1 notes the ship's own flag",
        "It looks at itself, where it should look in front.",
        "What does the map of layer 1 look like? It is a puzzle that you have solved.",
    ),
    Mistake(
        "looks_behind",
        "layer 1 looks at the ship behind, which the causal mask hides",
        "Row i asks for place i + 1, and may not look there.",
        "The row of the table asks, the column answers. Whom does row 3 of layer 1 ask for now?",
    ),
    Mistake(
        "note_mixed",
        "layer 1 writes into columns that hold something already",
        "Layer 2 reads the sum of both. It would be right if these columns of x had been empty.",
        "Which columns of W_V1 are not 0? And which columns of x are?",
    ),
    Mistake(
        "nothing_noted",
        "layer 1 writes nothing",
        "Layer 2 reads x as it was.",
        "Which columns of W_V1 are not 0?",
    ),
    Mistake(
        "flags_overwritten",
        "layer 1 writes over the flags and leaves NOTE empty",
        "What it adds to the columns FLAG mixes two ships' flags.",
        "The rows of W_V1 say what is read, its columns where it is written.",
    ),
)

MISTAKES = (*COMMON, *FLAGS, *CARGO, *PLACES, *HEADS)

"""The mistakes that only PyTorch module knows."""

from ...mistakes.mistake import Mistake
from ...mistakes.weights import CAUSAL_ADDED

MISTAKES = (
    CAUSAL_ADDED,
    Mistake(
        "diagonal_and_rest_swapped",
        behaves_as_if="the cells on the diagonal and those off it have changed places",
        symptom="Row i is the query of a letter, and the cell in column i the key of the same letter.",
        hint="In which cells does a letter meet itself?",
        then="On the diagonal. That number comes first.",
    ),
    Mistake(
        "weights_for_scores",
        behaves_as_if="the weights were read, 1 and 0, not the scores",
        symptom="Scores may be any number; the colour bar beside the map says which.",
        hint="Look at the numbers of the colour bar.",
        then="It ends far above 1: read the two numbers off its colours.",
    ),
    Mistake(
        "own_letter_looked_up",
        behaves_as_if="the head looked for the letter it is asked for",
        symptom="That was the first head. This one was trained on another rule: its map is the one above this "
        "exercise.",
        hint="Go along the row of the letter that is asked for. In which column is it strongest?",
        then="That column is the letter which is looked for: take the number beside it in memory.",
    ),
    Mistake(
        "map_read_by_columns",
        behaves_as_if="the map was read down a column, not along a row, or the rule was turned round",
        symptom="Queries are rows: the letter that is asked for is a row of the map.",
        hint="Who asks? Start from its row.",
        then="Its row is that of the letter which is asked for; the strongest cell of that row names the key.",
    ),
    Mistake(
        "place_in_the_alphabet",
        behaves_as_if="the place of the letter in the alphabet was given, not the number stored with it",
        symptom="The head finds the pair by its key and returns its value.",
        hint="Which number stands beside the letter that you found?",
        then="That number, from the list of eight pairs, is the answer.",
    ),
    Mistake(
        "query_looks_for_itself",
        behaves_as_if="each letter looks for itself",
        symptom="The query of a letter points to where its own key lies.",
        hint="To whose key should the query of a point?",
        then="To that of b: give row a the direction of b's key.",
    ),
    Mistake(
        "query_looks_for_previous",
        behaves_as_if="each letter looks for the one before it",
        symptom="The queries go round the circle in the other direction.",
        hint="Whose key lies where the query of a points: b, or d?",
        then="d does. Turn each query the other way, by half a circle.",
    ),
    Mistake(
        "query_looks_across",
        behaves_as_if="each letter looks for the one across the circle",
        symptom="The query of a points away from the key of a, to that of c.",
        hint="From a to b is a quarter of the circle. How far did you turn?",
        then="By half of it. Turn each query back by a quarter.",
    ),
    Mistake(
        "query_too_short",
        behaves_as_if="each query points the right way and is too short to choose",
        symptom="The scores of a short query lie close to each other, and so do its weights.",
        hint="Multiply a query by 3. What becomes of the gaps between its scores?",
        then="They grow by 3, and the choice gets sharper: multiply all four queries by one number.",
    ),
)

"""The exercises of It speaks, and the inputs on which they are tried."""

import numpy as np

from ...engine.compare import RIGHT
from ...engine.exercise import MAP_AXES, Design, Function, step_options
from ...engine.probes import Draw, Probe
from ...engine.run import Unfit, Unmeasured
from .mistakes import Back, Halves, Kept


def _matrices():
    draw = Draw("to_halves")
    return (
        Probe("one head of 4 features", (draw(5, 4), 1)),
        Probe("2 heads of 4 features", (draw(5, 8), 2)),
        Probe("3 heads of 6 features", (draw(7, 18), 3)),
        Probe("as many rows as columns, 2 heads", (draw(12, 12), 2)),
    )


def _sizes():
    sizes = ((6, 6, 3, 1), (8, 8, 2, 3), (3, 9, 4, 2), (1, 10, 3, 2), (5, 5, 2, 0), (4, 4, 9, 1))
    return tuple(
        Probe(f"n_q = {n_q}, n_k = {n_k}, window = {window}, sink = {sink}", (n_q, n_k, window, sink))
        for n_q, n_k, window, sink in sizes
    )


def _maps():
    draw = Draw("looks_back")

    def causal(n, back=None):
        scores = draw(n, n) * 2 + 4 * (np.arange(n)[:, None] - np.arange(n) == back)
        e = np.exp(np.where(np.tri(n, dtype=bool), scores, -np.inf))
        return e / e.sum(axis=-1, keepdims=True)

    return (
        Probe("a map of 8 tokens", (causal(8),)),
        Probe("a head that looks one token back", (causal(12, back=1),)),
        Probe("a head that looks at itself", (causal(10, back=0),)),
        Probe("4 tokens", (causal(4),)),
    )


# 13.2: what three models have, of which nothing is told but what they write; and what they may have. By the names of
# attncourse.smollm.FAULTS.
PATIENTS = {"A": "upper-left mask with the cache", "B": "window of 8", "C": "grouped heads tiled"}
SUSPECTS = (
    "grouped heads tiled",
    "no scale",
    "positions restart with the cache",
    "upper-left mask with the cache",
    "window of 8",
)
_CACHE = ("positions restart with the cache", "upper-left mask with the cache")


def _judge_patients(answer):
    """Judge three diagnoses by what the three patients show."""
    if not isinstance(answer, dict) or set(answer) != set(PATIENTS):
        raise Unfit(f"Hand in a dictionary with the keys A, B and C, got {answer!r:.80}.")
    if unknown := [name for name in answer.values() if name not in SUSPECTS]:
        raise Unfit(f"{unknown[0]!r:.60} is none of the five. Fix: copy a name from the list: {', '.join(SUSPECTS)}.")
    wrong = [patient for patient in PATIENTS if answer[patient] != PATIENTS[patient]]
    if not wrong:
        return RIGHT, ""
    sentence = f"Not right: {', '.join(wrong)}."
    if answer["A"] not in _CACHE:
        return "prompt_was_read_right", sentence
    if answer["A"] == "positions restart with the cache":
        return "it_still_sees_words", sentence
    if answer["C"] != "grouped heads tiled":
        return "worse_than_a_guess", sentence
    if answer["B"] in _CACHE:
        return "blank_is_wrong_already", sentence
    return "near_words_still_fit", sentence


# 13.5: a prompt on which heads that copy do not park, as attncourse.smollm.parking has measured it.
ENOUGH = 0.5  # of the weight of the eight heads, the mean over all tokens but the first
_NOT_MEASURED = (
    "Only the model can tell, and it is not here: this prompt is none of those in smollm.TRIED. What decides is "
    "whether the eight heads park less than half of their weight on it. Fix: choose one of those, or load the model."
)


def _judge_prompt(measured):
    """Judge a prompt by where the heads looked on it, and name what is sure."""
    if not isinstance(measured, dict) or "prompt" not in measured:
        raise Unfit(f"Hand in what smollm.parking(my_prompt, speaker) returns, got {measured!r:.60}.")
    if "tokens" not in measured:
        raise Unmeasured(_NOT_MEASURED)
    tokens = measured["tokens"]
    if len(tokens) < 2:
        raise Unfit("A prompt needs two tokens at least: the first has no other key to look at. Fix: more words.")
    first, parked, copied = (np.array(measured[name][1:]) for name in ("first", "parked", "copied"))
    again = np.array([token in tokens[:i] for i, token in enumerate(tokens)][1:])
    sentence = (
        f"The eight heads park {parked.mean():.2f} of their weight, and give {copied.mean():.2f} to tokens that "
        "followed the same token earlier."
    )
    if parked.mean() < ENOUGH:
        return RIGHT, sentence
    if again.any() and not again.all():
        sentence += f" New tokens park {parked[~again].mean():.2f}, those read before {parked[again].mean():.2f}."
    words = [word.strip(".,;:!?").lower() for word in measured["prompt"].split()]
    if len(words) > 1 and len(set(words)) == 1 and len(set(tokens[1:-1])) <= 1:  # a word of two tokens can be copied
        return "one_word_again", sentence
    if first.mean() < ENOUGH:
        return "parked_elsewhere", f"{sentence} On the first token alone lies {first.mean():.2f}."
    if not again.any():
        return "nothing_twice", sentence
    if again.mean() <= 1 / 3:  # too little is read again to tell
        return None, sentence
    return ("first_copy_parks" if parked[again].mean() < ENOUGH else "repeated_but_parked"), sentence


EXERCISES = (
    Function(
        "to_halves",
        "to_halves(W, num_heads) -> W (d_in, num_heads * d_k) with the columns of each head in another order: the file "
        "has the two features of a pair side by side, RoPE by halves wants them d_k / 2 apart.",
        (
            "Cut the columns into heads, the columns of a head into pairs.",
            "W.reshape(d_in, num_heads, d_k // 2, 2): the last axis is first or second of a pair.",
            "Swap the last two axes, and reshape back to the shape of W.",
        ),
        probes=_matrices(),
        **step_options("halves", "W num_heads", of=Halves),
    ),
    Design(
        "three_patients",
        "a dictionary with the keys A, B and C: which of five mistakes each patient has",
        (
            "Begin with the blank. It is read at once, without a cache: who fills it rightly?",
            "A mistake of the cache spares the blank. A loss above ln 49152 = 10.8 is worse than guessing.",
            "Patient A writes its first word rightly, then sees a single key. Patient B's words fit their neighbours.",
        ),
        judge=_judge_patients,
        names=(
            "prompt_was_read_right",
            "it_still_sees_words",
            "worse_than_a_guess",
            "blank_is_wrong_already",
            "near_words_still_fit",
        ),
    ),
    Function(
        "kept_keys",
        "kept_keys(n_q, n_k, window, sink) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of "
        "n_k tokens; each sees itself, the window - 1 tokens before it, and the first `sink` tokens of the text.",
        (
            "How far does key j lie behind query i? The first query stands at position n_k - n_q.",
            "back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k). Near keys: 0 <= back < window.",
            "First keys: np.arange(n_k) < sink, and not ahead of the query. Join both with |.",
        ),
        probes=_sizes(),
        **step_options("kept", "n_q n_k window sink", of=Kept, axes=MAP_AXES, stage="mask"),
    ),
    Function(
        "looks_back",
        "looks_back(weights) -> number: the mean weight that queries of a causal map (n, n) give to the token before "
        "them. The first two queries are left out.",
        (
            "Where in the map does a query meet the token before it?",
            "On the diagonal below the main one: np.diagonal(weights, -1), one number for each query from 1 on.",
            "Leave out its first number, that of query 1, and take the mean.",
        ),
        probes=_maps(),
        **step_options("measured", "map", of=Back),
    ),
    Design(
        "waking_prompt",
        "what smollm.parking(my_prompt, speaker) measures of a prompt. The eight heads that copy are to park less than "
        "half of their weight on it, as the mean over all tokens but the first.",
        (
            "The heads copied random tokens that stood twice in a row. What do they find in your prompt?",
            "The first copy parks as any text does. The more copies, the smaller its share.",
            "Take eight words that have nothing to do with each other, and say them four times in the same order.",
        ),
        judge=_judge_prompt,
        names=("one_word_again", "parked_elsewhere", "nothing_twice", "first_copy_parks", "repeated_but_parked"),
    ),
)

"""What was measured on the model, and what a speaker measures where a notebook asks it to.

`tools/measures.py` takes every measure, `tools/record_results.py` stores it. Layers and heads count from 1.
"""

import base64
import time
from functools import partial

import numpy as np

from attnlib import core

from ..model_files import stored
from . import texts

D_K = 64
STOPS = (1, 4, 16, 32, 48, 64, 80, 128, 256, 1024, 4096)
PROMPTS = {"blank": texts.BLANK, "blank exchanged": texts.EXCHANGED, "writing": texts.STORY}
WATCHED = {"blank": (" Mary", " John"), "blank exchanged": (" Mary", " John"), "writing": ()}
ASKS = "Who gets the drink?"
NAME_HEAD = (24, 1)  # where the last word of the blank finds the name, and takes it
LONGEST = 40  # tokens of a sentence whose ribbons are drawn
LONGEST_PROMPT = 200  # whose parking is measured
BEFORE, LONG = 17, 0.1  # the layer before the heads that copy; a vector of so much of the first one's length is long


def recorded(name):
    """Return what was measured under a name of `tools/measures.py`: "mistakes", "sinks", "blanks" and so on."""
    return _load_named("results", name)


def _load_named(kind, name):
    named = stored(f"smollm_{kind}")
    if name not in named:
        raise LookupError(f"{kind} are stored for {', '.join(named)}; got {name!r}. Fix: one of these.")
    return named[name]


def reading(speaker=None, counts=(1, 2, 4, 8, 16, 32, 64), rounds=9):
    """Return how long a pass over some new tokens takes, logits included: "seconds", a row for each round.

    "numbers" says how many weights a pass reads; each meets every new token in one multiplication. Without a speaker:
    what was stored.
    """
    if speaker is None:
        return recorded("reading")
    numbers, rows = speaker.tokens(texts.ALICE), []
    _, past = speaker(numbers[:64])
    for _ in range(rounds):
        ends = [time.perf_counter()]
        for count in counts:
            x, _ = speaker(numbers[64 : 64 + count], past)
            _ = x @ speaker.unembedding.T
            ends.append(time.perf_counter())
        rows.append(np.diff(ends))
    return {
        "tokens": counts,
        "seconds": np.array(rows),
        "numbers": sum(w.size for layer in speaker.layers for w in vars(layer).values()) + speaker.unembedding.size,
    }


def nine_heads():
    """Return what `live.head_arrows` takes: what each head of a layer adds in two sentences, and a question."""
    found, sentences = recorded("name_arrives"), []
    for name, giver in (("blank", "John"), ("blank exchanged", "Mary")):
        one = {part: found[name][part] for part in ("weights", "before", "heads")}
        says = {"name": f"{giver} gave a drink to", "words": stops(name)["words"], "says": found[name]["names"]}
        sentences.append(one | says)
    answers = ["this name comes next", "not this name", "nothing about names"]
    asks = "Head 4 looks at the one who gives. What does it say?", answers, "Head 4 says: not this name."
    return {"sentences": sentences, "towards": ("Mary", "John"), "asks": asks, "asked": 4}


def at_d_k(speaker, d_k):
    """Return a speaker whose heads all divide their scores by sqrt(d_k)."""
    return speaker.using(scale=d_k**-0.5)


def stops(name):
    """Return the stored stops of the d_k slider for "blank", "blank exchanged" or "writing", with whole maps.

    prompt, words, layer, head, d_k; and stops: for each d_k the weights, next (the 6 most likely tokens), watched
    (words and their probabilities), text, and the loss on the three texts. A blank has a question with the names to
    guess, and the scores of all heads.
    """
    kept = _load_named("stops", name)
    for stop in kept["stops"]:
        n = len(stop["weights"])
        stop["weights"] = np.array([[*row, *[0.0] * (n - len(row))] for row in stop["weights"]])
    if WATCHED[name]:
        names = [word.strip() for word in WATCHED[name]]
        kept |= {"asks": (ASKS, names), "scores": every_score(text=PROMPTS[name])[1]}
    return kept


def stop_of(speaker, prompt, head, d_k):
    """Return d_k, the map of a head and the 6 most likely next tokens, where all heads divide by sqrt(d_k)."""
    other = at_d_k(speaker, d_k)
    return {"d_k": d_k, "weights": other.maps(prompt, [head])[head], "next": other.next_words(prompt)}


def every_score(speaker=None, text=texts.BLANK):
    """Return the words of a text and the scores of all heads, (layers, heads, n, n): divided by 8 and masked.

    Each row is given less its largest score, which leaves its weights as they are. Stored are the blank's and those of
    its names exchanged.
    """
    if speaker is None:
        kept = recorded("packed_scores")[text]
        words, n = kept["words"], len(kept["words"])
        rows = np.frombuffer(base64.b64decode(kept["scores"]), "<f2").reshape(kept["layers"], -1, n * (n + 1) // 2)
        scores = np.full((*rows.shape[:2], n, n), -np.inf)
        scores[(..., *np.tril_indices(n))] = rows
        return words, scores
    words = speaker.tokenizer.words(speaker.tokens(text))
    scores = np.stack(list(speaker.maps(text, step="masked_scores").values()))  # (layers * heads, n, n)
    scores -= scores.max(axis=-1, keepdims=True)
    return words, scores.reshape(speaker.shape.layers, -1, len(words), len(words))


def every_map(speaker=None, text=texts.BLANK):
    """Return the words of a text and the maps of all heads, (layers, heads, n, n)."""
    words, scores = every_score(speaker, text)
    return words, core.softmax(scores)


def sentences(speaker=None):
    """Return a function that gives `live.ribbons` what a model does with a sentence: (text) -> dict, as `stops`.

    Stored sentences come as they are stored. Others need the model; what it says at another d_k is computed when the
    slider comes there.
    """

    def of_sentence(text):
        stored_names = [name for name, prompt in PROMPTS.items() if prompt == text and WATCHED[name]]
        if stored_names:
            return {name: value for name, value in stops(stored_names[0]).items() if name != "asks"}
        if speaker is None:
            raise LookupError(f"Without the model only these are stored: {texts.BLANK} … and {texts.EXCHANGED} …")
        n = len(speaker.tokens(text))
        if n > LONGEST:
            raise ValueError(f"sentence must have at most {LONGEST} tokens, got {n}. Fix: a shorter one.")
        words, scores = every_score(speaker, text)
        layer, head = NAME_HEAD
        result = {"prompt": text, "words": words, "layer": layer, "head": head, "d_k": D_K, "scores": scores}
        return result | {"stops": {d_k: partial(stop_of, speaker, text, NAME_HEAD, d_k) for d_k in STOPS}}

    return of_sentence


def parking(prompt, speaker=None):
    """Return where the eight heads that copy look on a prompt, for each of its tokens.

    A place to park is the first token, and any other whose vector, as these heads are reached, is about as long: at
    least a tenth of it. Most other vectors have a hundredth of that length.

    Returned are the prompt; tokens, as numbers; places, those to park; and for each token, as means over the eight
    heads, its weight on the first token ("first"), on all places to park ("parked"), and on tokens that followed the
    same token earlier ("copied"). Without a speaker it is the stored result, or the prompt alone; of None, where
    nothing is written yet, None. What is no text raises TypeError, an empty or too long one ValueError.
    """
    if prompt is None or prompt is ...:
        return None
    if not isinstance(prompt, str):
        raise TypeError(f"prompt must be a text, got {type(prompt).__name__}. Fix: one text in quotes.")
    if speaker is None:
        return recorded("parked_prompts").get(prompt, {"prompt": prompt})
    numbers = np.array(speaker.tokens(prompt))
    if len(numbers) > LONGEST_PROMPT:
        raise ValueError(f"prompt must have at most {LONGEST_PROMPT} tokens, got {len(numbers)}. Fix: a shorter text.")
    maps = speaker.maps_of(numbers.tolist(), [tuple(head) for head in recorded("copying")["heads"]])
    weights = np.mean(list(maps.values()), axis=0)  # (n, n)
    lengths = np.linalg.norm(speaker.vectors(prompt)[BEFORE - 1], axis=-1)
    place = lengths >= LONG * lengths[0]
    followed = np.zeros_like(weights, dtype=bool)  # key j follows a token like query i
    followed[:, 1:] = numbers[:, None] == numbers[:-1]
    return {
        "prompt": prompt,
        "tokens": numbers.tolist(),
        "places": np.flatnonzero(place).tolist(),
        "first": weights[:, 0].tolist(),
        "parked": weights[:, place].sum(axis=1).tolist(),
        "copied": np.where(followed & ~place, weights, 0).sum(axis=1).tolist(),
    }

"""What was measured on the model: each function returns its stored result, or with a speaker measures it afresh.

`tools/record_results.py` writes the stored results; tests/test_smollm_results.py compares them with fresh ones. Layers
and heads count from 1.
"""

import base64
import copy
from functools import partial, wraps

import numpy as np

from ... import core
from ..chapters.n14 import tiled
from ..model_files import stored
from . import texts
from .faults import FAULTS, WITH_THE_CACHE
from .speaker import chat

D_K = 64
STOPS = (1, 4, 16, 32, 48, 64, 80, 128, 256, 1024, 4096)
NAME_HEAD = (24, 1)  # where the last word of the blank finds the name, and takes it
AGAINST = (25, 5)  # looks at the name, too, and without it the name is likelier
MARGIN = 0.005  # in logits: stored texts end before two that lie closer
AT_ONCE = 32  # tokens of a prompt, where the rest is read one by one
TEMPERATURES = (0, 0.7, 2)
LONGEST = 40  # tokens of a sentence whose ribbons are drawn
MEASURES = {}


def replayed(function):
    """Give a measure of a speaker its stored result where no speaker is handed in."""
    MEASURES[function.__name__] = function

    @wraps(function)
    def result(speaker=None, **options):
        if speaker is not None:
            return function(speaker, **options)
        if options:
            raise TypeError(
                f"only a speaker can measure with {', '.join(options)}. Fix: {function.__name__}(load(), ...)."
            )
        return stored("smollm_results")[function.__name__]

    return result


def writes(speaker, prompt, count=32):
    """Return what it writes, up to a token that could be another one on another processor."""
    return speaker.write(prompt, count, margin=MARGIN)


def losses(speaker):
    """Return the loss on each of the three texts."""
    return {name: speaker.loss(text) for name, text in texts.TEXTS.items()}


def losses_with_the_cache(speaker):
    """Return them as a text is written: the first 32 tokens at once, then token by token with what is kept."""
    losses_of = {}
    for name, text in texts.TEXTS.items():
        numbers = speaker.tokens(text)
        x, past = speaker(numbers[:AT_ONCE])
        rows = [x]
        for number in numbers[AT_ONCE:-1]:
            x, past = speaker([number], past)
            rows.append(x)
        losses_of[name] = float(np.mean(speaker.surprise(np.concatenate(rows), numbers[1:])))
    return losses_of


# Mistakes


@replayed
def mistakes(speaker, names=("none", *FAULTS)):
    """Return {mistake: {"notebook", "loss" on three texts, "writes", "next": of the blank}}, "none" first."""
    rows = {}
    for name in names:
        notebook, changes = FAULTS.get(name, ("", {}))
        wrong = speaker.using(**changes)
        rows[name] = {
            "notebook": notebook,
            "loss": losses_with_the_cache(wrong) if name in WITH_THE_CACHE else losses(wrong),
            "writes": writes(wrong, texts.STORY),
            "next": wrong.next_words(texts.BLANK, 1)[0],
        }
    return rows


@replayed
def sayings(speaker):
    """Return what it says to a question, and the next word of some beginnings: fluent is not right."""
    question = "What is attention in a transformer?"
    beginnings = ("The capital of Germany is", "The opposite of hot is", texts.BLANK, texts.EXCHANGED)
    return {
        "question": question,
        "answer": writes(speaker, chat(question), 64),
        "next": {text: speaker.next_words(text, 3) for text in beginnings},
    }


@replayed
def chunks(speaker, sizes=(1, 7, 50)):
    """Return by how much logits differ if Alice is read in chunks with the cache, and not at once; and their spread."""
    numbers = speaker.tokens(texts.ALICE)
    whole = speaker.logits(texts.ALICE)
    differences = {"tokens": len(numbers), "spread": float(whole.std())}
    for size in sizes:
        rows, past = [], None
        for start in range(0, len(numbers), size):
            x, past = speaker(numbers[start : start + size], past)
            rows.append(x @ speaker.unembedding.T)
        differences[str(size)] = float(np.abs(np.concatenate(rows) - whole).max())
    return differences


@replayed
def through_tiles(speaker, attention=tiled, block=8):
    """Return what it writes through attention in tiles, and by how much its logits on Alice differ then."""
    other = speaker.using(attention=partial(attention, block=block))
    difference = np.abs(other.logits(texts.ALICE) - speaker.logits(texts.ALICE)).max()
    return {"writes": writes(other, texts.STORY), "logits": float(difference)}


# The d_k slider


def at_d_k(speaker, d_k):
    """Return a speaker whose heads all divide their scores by sqrt(d_k)."""
    return speaker.using(scale=d_k**-0.5)


def stops(name):
    """Return the stored stops of the d_k slider for "blank", "blank exchanged" or "writing", with whole maps.

    As `stops_of` gives them; each has the loss on the three texts, too. A blank has a question with the names to guess,
    and the scores of all heads.
    """
    named = stored("smollm_stops")
    if name not in named:
        raise LookupError(f"stops are stored for {', '.join(named)}; got {name!r}. Fix: one of these, or stops_of.")
    for stop in named[name]["stops"]:
        n = len(stop["weights"])
        stop["weights"] = np.array([[*row, *[0.0] * (n - len(row))] for row in stop["weights"]])
    if WATCHED[name]:
        names = [word.strip() for word in WATCHED[name]]
        named[name] |= {"asks": (ASKS, names), "scores": every_score(text=PROMPTS[name])[1]}
    return named[name]


PROMPTS = {"blank": texts.BLANK, "blank exchanged": texts.EXCHANGED, "writing": texts.STORY}
WATCHED = {"blank": (" Mary", " John"), "blank exchanged": (" Mary", " John"), "writing": ()}
ASKS = "Who gets the drink?"


def stops_of(speaker, prompt, head=NAME_HEAD, watched=(), d_ks=STOPS):
    """Return what becomes of a prompt at each stop of the d_k slider.

    Parameters
    ----------
    speaker : Speaker
    prompt : str
    head : (int, int)
        Layer and head whose map is kept.
    watched : sequence of str
        Words whose probability is kept at each stop; each must be one token.
    d_ks : sequence of int

    Returns
    -------
    dict
        prompt, words, layer, head, d_k; and stops: for each d_k the weights as rows of 1, 2, ... n numbers, next (the 6
        most likely tokens), watched, text.
    """
    stops = []
    for d_k in d_ks:
        other = at_d_k(speaker, d_k)
        p = other.probabilities(prompt)
        stop = stop_of(speaker, prompt, head, d_k)
        stop["weights"] = [row[: i + 1].tolist() for i, row in enumerate(stop["weights"])]
        stop["watched"] = [(word, float(p[speaker.tokenizer.encode(word)[0]])) for word in watched]
        stop["text"] = writes(other, prompt, 24 if d_k > 1 else 16)  # without division rounding soon tells
        stops.append(stop)
    words = speaker.tokenizer.words(speaker.tokens(prompt))
    return {"prompt": prompt, "words": words, "layer": head[0], "head": head[1], "d_k": D_K, "stops": stops}


def stop_of(speaker, prompt, head, d_k):
    """Return d_k, the map of a head and the 6 most likely next tokens, where all heads divide by sqrt(d_k)."""
    other = at_d_k(speaker, d_k)
    return {"d_k": d_k, "weights": other.maps(prompt, [head])[head], "next": other.next_words(prompt)}


@replayed
def packed_scores(speaker, prompts=(texts.BLANK, texts.EXCHANGED)):
    """Return {text: {words, layers, scores}}: those of `every_score` in base64, rows of 1, 2, ... n in float16."""
    found = {}
    for text in prompts:
        scores = np.stack(list(speaker.maps(text, step="masked_scores").values()))  # (layers * heads, n, n)
        scores -= scores.max(axis=-1, keepdims=True)
        rows = scores[(slice(None), *np.tril_indices(scores.shape[-1]))]
        packed = base64.b64encode(rows.astype("<f2").tobytes()).decode()
        words = speaker.tokenizer.words(speaker.tokens(text))
        found[text] = {"words": words, "layers": speaker.shape.layers, "scores": packed}
    return found


def every_score(speaker=None, text=texts.BLANK):
    """Return the words of a text and the scores of all heads, (layers, heads, n, n): divided by 8 and masked.

    Each row is given less its largest score, which leaves its weights as they are. Stored are the blank's and those of
    its names exchanged.
    """
    found = (packed_scores() if speaker is None else packed_scores(speaker, prompts=[text]))[text]
    n = len(found["words"])
    rows = np.frombuffer(base64.b64decode(found["scores"]), "<f2").reshape(found["layers"], -1, n * (n + 1) // 2)
    scores = np.full((*rows.shape[:2], n, n), -np.inf)
    scores[(..., *np.tril_indices(n))] = rows
    return found["words"], scores


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
        found = {"prompt": text, "words": words, "layer": layer, "head": head, "d_k": D_K, "scores": scores}
        return found | {"stops": {d_k: partial(stop_of, speaker, text, NAME_HEAD, d_k) for d_k in STOPS}}

    return of_sentence


@replayed
def warmer(speaker, temperatures=TEMPERATURES):
    """Return what it writes after the beginning of a story at each temperature, as (temperature, text)."""
    return [(T, speaker.write(texts.STORY, 20, temperature=T, seed=1)) for T in temperatures]


def all_stops(speaker):
    """Return what is stored for `stops`: {name: stops_of(...)}, each stop with the loss from `sharpness`."""
    named = {name: stops_of(speaker, prompt, watched=WATCHED[name]) for name, prompt in PROMPTS.items()}
    for one in named.values():
        for stop, measured in zip(one["stops"], sharpness(), strict=True):
            stop["loss"] = measured["loss"]
    return named


@replayed
def sharpness(speaker, d_ks=STOPS):
    """Return for each d_k the loss on three texts, and of Alice's map the mean largest weight and entropy.

    The means are over all heads and all queries but the first, which has one key.
    """
    rows = []
    for d_k in d_ks:
        other = at_d_k(speaker, d_k)
        maps = np.stack(list(other.maps(texts.ALICE).values()))[:, 1:]
        rows.append(
            {
                "d_k": d_k,
                "loss": losses(other),
                "largest": float(maps.max(axis=-1).mean()),
                "entropy": float(core.entropy(maps.astype(float)).mean()),
            }
        )
    return rows


# The blank, 80 times


def fill_blanks(speaker, blanks=texts.BLANKS):
    """Return (n, 2): the probabilities of the right and of the other name in each blank."""
    return np.array([[speaker.probabilities(text)[_number(speaker, name)] for name in pair] for text, *pair in blanks])


def _number(speaker, name):
    return speaker.tokenizer.encode(" " + name)[0]


def _filled(speaker, blanks=texts.BLANKS):
    right, other = fill_blanks(speaker, blanks).T
    return {"right": float(np.mean(right > other)), "probability": float(right.mean())}


@replayed
def blanks(speaker, d_ks=STOPS, sentences=texts.BLANKS):
    """Return for each d_k how often the right name stands above the other, and its mean probability."""
    return [{"d_k": d_k, **_filled(at_d_k(speaker, d_k), sentences)} for d_k in d_ks]


@replayed
def name_heads(speaker):
    """Return which heads look at the right name from the last word, and what becomes of the blanks without them.

    The control: as many heads drawn at random from the same layers, three times; they are named.
    """
    looking = np.zeros((speaker.shape.layers, speaker.shape.heads))
    for text, name, _ in texts.BLANKS:
        at = speaker.tokens(text).index(_number(speaker, name))
        for (layer, head), weights in speaker.maps(text).items():
            looking[layer - 1, head - 1] += weights[-1, at] / len(texts.BLANKS)
    top = ranked(looking)[:5]
    rng, controls = np.random.default_rng(0), []
    others = [(layer, j) for layer in sorted({i for i, _ in top}) for j in range(1, 10) if (layer, j) not in top]
    for _ in range(3):
        controls.append([others[k] for k in sorted(rng.choice(len(others), len(top), replace=False))])
    return {
        "weight on the right name": looking,
        "heads": top,
        "all heads": _filled(speaker),
        "without one": [_filled(speaker.using(without=[head])) for head in top],
        "without all five": _filled(speaker.using(without=top)),
        "drawn": [{"heads": heads, **_filled(speaker.using(without=heads))} for heads in controls],
    }


def ranked(measure):
    """Return (layer, head), counted from 1, the largest measure first."""
    order = np.argsort(-np.asarray(measure), axis=None, kind="stable")
    return [(int(i) + 1, int(j) + 1) for i, j in zip(*np.unravel_index(order, np.shape(measure)), strict=True)]


# The name, on its way into the vector of the last word


@replayed
def name_arrives(speaker):
    """Return what the layer of NAME_HEAD adds to the vector of the last word, along the directions of the two names.

    The direction of a name is its row of the table of tokens less the mean row, of length 1. For "blank" and "blank
    exchanged": the vector's coordinates before the layer's attention, what each head adds to them, and the
    probability of the right name without single heads. For "blank" also the head's own query of the last word, its keys
    (both turned by their positions), and of each value what its W_O makes of it along the two directions.
    """
    layer, head = NAME_HEAD
    table = speaker.embedding - speaker.embedding.mean(axis=0)
    names = table[[_number(speaker, name) for name in ("Mary", "John")]]
    directions = (names / np.linalg.norm(names, axis=1, keepdims=True)).T  # (d_model, 2)
    prompts = {}
    for name, right in (("blank", "Mary"), ("blank exchanged", "John")):
        q, k, v = _heads_of(speaker, PROMPTS[name], layer)  # (h, n, d_k) each
        out = speaker.layers[layer - 1].attn_output.reshape(len(q), -1, len(table[0])) @ directions  # (h, d_k, 2)
        prompts[name] = {
            "before": speaker.vectors(PROMPTS[name])[layer - 2, -1] @ directions,
            "heads": core.scaled_dot_product_attention(q[:, -1:], k, v @ out)[:, 0],
            "without": {
                f"{i}.{j}": float(speaker.using(without=[(i, j)]).probabilities(PROMPTS[name])[_number(speaker, right)])
                for i, j in (NAME_HEAD, AGAINST)
            },
        }
        if name == "blank":
            h = head - 1
            prompts[name] |= {"query": q[h, -1:], "key": k[h], "value": v[h] @ out[h]}
    return prompts


def _heads_of(speaker, text, layer):
    """Return the queries, keys and values of all heads of a layer, as its attention gets them."""
    seen, other = {}, copy.copy(speaker)

    def watch(i, query, key, value, attn_mask):
        if i == layer - 1:
            repeats = len(query) // len(key)
            seen["heads"] = query, key.repeat(repeats, axis=0), value.repeat(repeats, axis=0)

    other.watch = watch
    other(other.tokens(text))
    return seen["heads"]

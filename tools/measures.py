"""What is measured on the decoder of 00 and 13. With the model here `python -m tools.record_results decoder` stores it.

Each of MEASURES takes a speaker; its name is that of the result, `smollm.recorded(name)`. tests/test_smollm_results.py
compares fresh results with stored ones. Layers and heads count from 1.
"""

import base64
import copy
from functools import partial

import numpy as np

from attnlib import core
from attnlib.course.chapters.n14 import tiled
from attnlib.course.smollm import texts
from attnlib.course.smollm.drafts import speculate
from attnlib.course.smollm.faults import FAULTS, WITH_THE_CACHE
from attnlib.course.smollm.results import (
    D_K,
    NAME_HEAD,
    PROMPTS,
    STOPS,
    WATCHED,
    at_d_k,
    every_score,
    parking,
    reading,
    recorded,
    stop_of,
)
from attnlib.course.smollm.speaker import chat

AGAINST = (25, 5)  # looks at the name, too, and without it the name is likelier
MARGIN = 0.005  # in logits: stored texts end before two that lie closer
AT_ONCE = 32  # tokens of a prompt, where the rest is read one by one
TEMPERATURES = (0, 0.7, 2)
WINDOWS, FIRSTS = (8, 16, 32, 64), (0, 1, 4)
LENGTH, DRAWS = 40, 8  # random tokens, each sequence twice in a row
FIRST_WORD = 17  # before it stand the control tokens
MEASURES = {}


def kept(function):
    """Have a function's result stored under its name."""
    return MEASURES.setdefault(function.__name__, function)


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


@kept
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


@kept
def sayings(speaker):
    """Return what it says to a question, and the next word of some beginnings: fluent is not right."""
    question = "What is attention in a transformer?"
    beginnings = ("The capital of Germany is", "The opposite of hot is", texts.BLANK, texts.EXCHANGED)
    return {
        "question": question,
        "answer": writes(speaker, chat(question), 64),
        "next": {text: speaker.next_words(text, 3) for text in beginnings},
    }


@kept
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


@kept
def through_tiles(speaker, block=8):
    """Return what it writes through attention in tiles, and by how much its logits on Alice differ then."""
    other = speaker.using(attention=partial(tiled, block=block))
    difference = np.abs(other.logits(texts.ALICE) - speaker.logits(texts.ALICE)).max()
    return {"writes": writes(other, texts.STORY), "logits": float(difference)}


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


kept(reading)


@kept
def guesses(speaker, names=tuple(texts.GUESSED)):
    """Return {name: {"same": is it greedy's text?, "passes": (drafted, accepted) of each pass behind the prompt}}."""
    guessed = {}
    for name in names:
        text, passes = speculate(speaker, texts.GUESSED[name])
        guessed[name] = {"same": text == speaker.write(texts.GUESSED[name]), "passes": passes}
    return guessed


@kept
def packed_scores(speaker, prompts=(texts.BLANK, texts.EXCHANGED)):
    """Return {text: {words, layers, scores}}: those of `every_score` in base64, rows of 1, 2, ... n in float16."""
    found = {}
    for text in prompts:
        words, scores = every_score(speaker, text)
        rows = scores[(..., *np.tril_indices(len(words)))]
        packed = base64.b64encode(rows.astype("<f2").tobytes()).decode()
        found[text] = {"words": words, "layers": len(scores), "scores": packed}
    return found


@kept
def warmer(speaker, temperatures=TEMPERATURES):
    """Return what it writes after the beginning of a story at each temperature, as (temperature, text)."""
    return [(T, speaker.write(texts.STORY, 20, temperature=T, seed=1)) for T in temperatures]


def all_stops(speaker):
    """Return what is stored for `stops`: {name: stops_of(...)}, each stop with the loss from `sharpness`."""
    named = {name: stops_of(speaker, prompt, watched=WATCHED[name]) for name, prompt in PROMPTS.items()}
    for one in named.values():
        for stop, measured in zip(one["stops"], recorded("sharpness"), strict=True):
            stop["loss"] = measured["loss"]
    return named


@kept
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


def fill_blanks(speaker, blanks=texts.BLANKS):
    """Return (n, 2): the probabilities of the right and of the other name in each blank."""
    return np.array([[speaker.probabilities(text)[_number(speaker, name)] for name in pair] for text, *pair in blanks])


def _number(speaker, name):
    return speaker.tokenizer.encode(" " + name)[0]


def _filled(speaker, blanks=texts.BLANKS):
    right, other = fill_blanks(speaker, blanks).T
    return {"right": float(np.mean(right > other)), "probability": float(right.mean())}


@kept
def blanks(speaker, d_ks=STOPS, sentences=texts.BLANKS):
    """Return for each d_k how often the right name stands above the other, and its mean probability."""
    return [{"d_k": d_k, **_filled(at_d_k(speaker, d_k), sentences)} for d_k in d_ks]


@kept
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


@kept
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


def over_all_heads(speaker, maps, measure):
    """Return (layers, heads): what `measure` gives for the map of each head."""
    return np.array([measure(weights) for weights in maps.values()]).reshape(speaker.shape.layers, -1)


def on_the_first(weights):
    """Mean weight on the first token, the first query left out: it has no other key."""
    return float(weights[1:, 0].mean())


def on_the_previous(weights):
    """Mean weight on the token before; the first has none, and the second has it on the sink as well: left out."""
    return float(np.diagonal(weights, -1)[1:].mean())


@kept
def sinks(speaker):
    """Return the share of each head's weight on the first token of Alice, and how long its vector is.

    "length" is that of the first token's vector after each layer, as a multiple of the median of the others.
    """
    share = over_all_heads(speaker, speaker.maps(texts.ALICE), on_the_first)
    norms = np.linalg.norm(speaker.vectors(texts.ALICE), axis=-1)  # (layers, n)
    return {
        "share": share,
        "by layer": share.mean(axis=1),
        "above 0.5": int((share > 0.5).sum()),
        "above 0.9": int((share > 0.9).sum()),
        "mean": float(share.mean()),
        "length": norms[:, 0] / np.median(norms[:, 1:], axis=1),
    }


@kept
def windows(speaker, widths=WINDOWS, firsts=FIRSTS):
    """Return the loss on Alice with a window of so many keys, and the first 0, 1 or 4 tokens kept."""
    rows = [
        {"window": width, "first": first, "loss": speaker.using(window=width, sink=first).loss(texts.ALICE)}
        for width in widths
        for first in firsts
    ]
    return [*rows, {"window": None, "first": 0, "loss": speaker.loss(texts.ALICE)}]


@kept
def windows_apart(speaker, widths=(8, 16, 32), names=tuple(texts.TEXTS)):
    """Return {text: for each window losses that tell what of the first token counts}.

    "silent" keeps its score where it is out of the window, and sets its value to 0 there. The controls are a window one
    token wider, and the second token in place of the first.
    """

    def seeing(name, width, token=-1, silent=False):
        def attention(query, key, value, attn_mask):
            n_q, n_k = query.shape[-2], key.shape[-2]
            near = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k) < width
            weights = core.attention_trace(query, key, value, attn_mask & (near | (np.arange(n_k) == token))).weights
            return (weights * near if silent else weights) @ value

        return speaker.using(attention=attention).loss(texts.TEXTS[name])

    def measured(name, w):
        kept = {"nothing": seeing(name, w), "first": seeing(name, w, 0), "silent": seeing(name, w, 0, silent=True)}
        return {"window": w, **kept, "wider": seeing(name, w + 1), "second": seeing(name, w, 1)}

    return {name: [measured(name, w) for w in widths] for name in names}


def repeated(speaker, draw):
    """Return random tokens twice in a row, (2 LENGTH,): nothing but the first copy tells the second."""
    words = np.random.default_rng(draw).integers(FIRST_WORD, len(speaker.tokenizer.vocabulary), LENGTH)
    return [int(number) for number in (*words, *words)]


def copied(weights):
    """Mean weight of the second copy on the token that followed the same token in the first."""
    return float(np.diagonal(weights, 1 - LENGTH)[1:].mean())


def second_copy(speaker, draws=range(DRAWS)):
    """Return for each draw (loss of the first copy, loss of the second)."""
    halves = []
    for draw in draws:
        numbers = repeated(speaker, draw)
        nats = speaker.surprise(speaker(numbers)[0][:-1], numbers[1:])
        halves.append([float(nats[: LENGTH - 1].mean()), float(nats[LENGTH:].mean())])
    return np.array(halves)


@kept
def copying(speaker, draws=range(DRAWS)):
    """Return the heads that copy: mean and range of their measure over the draws, and what they do on Alice.

    On Alice nothing repeats for long: there the same heads park on the first token.
    """
    by_draw = np.array(
        [over_all_heads(speaker, speaker.maps_of(repeated(speaker, draw)), copied) for draw in draws]
    )  # (draws, layers, heads)
    alice = speaker.maps(texts.ALICE)
    copy, previous = by_draw.mean(axis=0), over_all_heads(speaker, alice, on_the_previous)
    top = ranked(copy)[:8]
    return {
        "copy": copy,
        "previous": previous,
        "heads": top,
        "least and most": [[float(f(by_draw[:, i - 1, j - 1])) for f in (np.min, np.max)] for i, j in top],
        "first token on Alice": [on_the_first(alice[head]) for head in top],
        "previous heads": ranked(previous)[:4],
        "losses": second_copy(speaker, draws),
    }


@kept
def without_heads(speaker, controls=5):
    """Return the loss of the second copy without some heads, each draw, and the loss on Alice without them.

    Taken away: the strongest 1, 2, 4, 8 heads that copy; each of the four that look one back. The control: as many
    heads drawn at random from all others, `controls` times; they are named. The loss on Alice says what else is lost.
    """
    scores = recorded("copying")
    copy, previous = [tuple(head) for head in scores["heads"]], [tuple(head) for head in scores["previous heads"]]
    rng = np.random.default_rng(0)
    rest = [head for head in ranked(scores["copy"]) if head not in copy and head not in previous]
    groups = [("none", [])]
    groups += [("copy", copy[:k]) for k in (1, 2, 4, 8)] + [("previous", [head]) for head in previous]
    for k in (1, 2, 4, 8):
        for _ in range(controls):
            groups.append(("drawn", [rest[i] for i in sorted(rng.choice(len(rest), k, replace=False))]))
    result = []
    for kind, heads in groups:
        other = speaker.using(without=heads)
        result.append(
            {"kind": kind, "heads": heads, "second copy": second_copy(other)[:, 1], "alice": other.loss(texts.ALICE)}
        )
    return result


@kept
def parked_prompts(speaker):
    """Return {prompt: what `parking` measures on it} for a few prompts."""
    return {prompt: parking(prompt, speaker) for prompt in texts.TRIED}

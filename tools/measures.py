"""What is measured on the decoder. With the model `python -m tools.record_results decoder` stores it.

Each of MEASURES takes a speaker; its name is that of the result, `smollm.recorded(name)`. tests/test_smollm_results.py
compares fresh results with stored ones. Layers and heads count from 1.
"""

import base64
import copy
from dataclasses import replace
from functools import partial
from itertools import cycle, product

import numpy as np

from attncourse.engine.steps import replace_steps
from attncourse.lessons.less_to_keep import best_keys, in_groups
from attncourse.lessons.long_texts import tiled
from attncourse.lessons.long_texts.tiles import BlockSteps
from attncourse.lessons.todays_head import slow_by_parts
from attncourse.smollm import texts
from attncourse.smollm.drafts import speculate
from attncourse.smollm.faults import FAULTS, WITH_THE_CACHE
from attncourse.smollm.finding import LISTS, NARROW, codes_found, found_again
from attncourse.smollm.results import (
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
from attncourse.smollm.speaker import chat, rms_norm
from attnlib import core, rotary
from attnlib.rounding import bytes_kept, rounded

AGAINST = (25, 5)  # looks at the name, too, and without it the name is likelier
MARGIN = 0.005  # in logits: stored texts end before two that lie closer
AT_ONCE = 32  # tokens of a prompt, where the rest is read one by one
TEMPERATURES = (0, 0.7, 2)
WINDOWS, FIRSTS = (8, 16, 32, 64), (0, 1, 4)
LENGTH, DRAWS = 40, 8  # random tokens, each sequence twice in a row
FAR, FAR_QUERY = "The key of the red house lies under a stone.", 4
FIRST_WORD = 17  # before it stand the control tokens
MEASURES = {}


def store_result(function):
    """Have a function's result stored under its name."""
    return MEASURES.setdefault(function.__name__, function)


def writes(speaker, prompt, count=32):
    """Return what it writes, up to a token that could be another one on another processor."""
    return speaker.write(prompt, count, margin=MARGIN)


def losses(speaker):
    """Return the loss on each of the three texts."""
    return {name: speaker.loss(text) for name, text in texts.TEXTS.items()}


def finds(speaker):
    """Return what the second judge says: the loss on a second copy, and the share of codes found."""
    return {"again": found_again(speaker), "codes": codes_found(speaker)[0]}


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


@store_result
def mistakes(speaker, names=("none", *FAULTS)):
    """Return {mistake: {"loss" on three texts, "writes", "next": of the blank}}, "none" first."""
    rows = {}
    for name in names:
        wrong = speaker.using(**FAULTS.get(name, {}))
        rows[name] = {
            "loss": losses_with_the_cache(wrong) if name in WITH_THE_CACHE else losses(wrong),
            "writes": writes(wrong, texts.STORY),
            "next": wrong.next_words(texts.BLANK, 1)[0],
        }
    return rows


@store_result
def future_in_sight(speaker):
    """Return {text: losses with the mask, without it, and without it but for the first token, which sees itself}."""

    def no_mask(query, key, value, attn_mask=None, first_alone=False):
        mask = np.ones_like(attn_mask)
        if first_alone:
            mask[0] = attn_mask[0]
        return core.scaled_dot_product_attention(query, key, value, mask)

    ways = speaker, *(speaker.using(attention=partial(no_mask, first_alone=alone)) for alone in (False, True))
    return {name: [other.loss(text) for other in ways] for name, text in texts.MORE.items()}


@store_result
def sayings(speaker):
    """Return what it says to a question, and the next word of some beginnings: fluent is not right."""
    question = "What is attention in a transformer?"
    beginnings = ("The capital of Germany is", "The opposite of hot is", texts.BLANK, texts.EXCHANGED)
    return {
        "question": question,
        "answer": writes(speaker, chat(question), 64),
        "next": {text: speaker.next_words(text, 3) for text in beginnings},
    }


@store_result
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


@store_result
def through_tiles(speaker, block=8):
    """Return what it writes through attention in tiles, and by how much its logits on Alice differ then."""
    other = speaker.using(attention=partial(tiled, block=block))
    difference = np.abs(other.logits(texts.ALICE) - speaker.logits(texts.ALICE)).max()
    return {"writes": writes(other, texts.STORY), "logits": float(difference)}


READ, BLOCK = 32, 8  # keys that a query reads, one by one or in blocks
COPIED = {"prose": texts.PROSE, "code": texts.CODE, "Italian": texts.MARKET, "SQL": texts.SQL}


def best_of(scores, allowed, count=READ):
    """Return which keys of each query have the `count` largest scores of those allowed."""
    scores = np.where(allowed, scores, -np.inf)
    return allowed & (scores >= np.sort(scores)[..., -min(count, scores.shape[-1]), None])


def reading_keys(choose, heard):
    """Return a grouped attention to the keys that choose(query, key, scores, mask) allows, (h, n, n).

    `heard` is given [recall of the best keys of each head, weight kept, keys read of a head of keys] where there are
    more than READ.
    """

    def attend(query, key, value, attn_mask, attention):
        times, late = len(query) // len(key), np.arange(key.shape[-2]) >= READ
        key, value = key.repeat(times, 0), value.repeat(times, 0)
        scores = np.where(attn_mask, query @ np.swapaxes(key, -1, -2) / 8, -np.inf)
        kept, best = choose(query, key[::times], scores, attn_mask) & attn_mask, best_of(scores, attn_mask)
        union = kept.reshape(-1, times, *kept.shape[-2:]).any(axis=1)
        shares = (kept & best).sum(-1) / best.sum(-1), (core.softmax(scores) * kept).sum(-1), union.sum(-1)
        heard.append([x[:, late].mean() for x in shares])
        return core.softmax(np.where(kept, scores, -np.inf)) @ value

    return attend


def one_by_one(together):
    """Return a choice of the best keys: of each head, or one set for all heads, by the sum of their weights."""

    def choose(query, key, scores, attn_mask):
        chosen = best_of(core.softmax(scores).sum(0, keepdims=True) if together else scores, attn_mask)
        return np.broadcast_to(chosen, scores.shape)

    return choose


def in_blocks(first=True, own="competes", apart=False, later=False):
    """Return a choice of READ / BLOCK blocks for each head of keys; `apart`: for each head of queries.

    The block of the query itself competes, or is read always or never; `later`: its mean holds the keys to come, too.
    """

    changes = {"lead": lambda s: 1e9 * (s.own & (own == "always")) + np.where(s.first & first, np.inf, 0)}
    if own == "never":
        changes["begun"] = lambda s: (s.counted > 0) & (s.first | ~s.own)
    if later:
        changes["means"] = lambda s: s.of_blocks(s.asked @ s.key.T) / s.of_blocks(np.ones(s.n))
    steps = replace_steps(BlockSteps, changes)

    def choose(query, key, scores, attn_mask):
        times = len(query) // len(key)
        groups = [(i, i + 1) if apart else (i - i % times, i - i % times + times) for i in range(len(query))]
        read = [steps(query=query[i:j], key=key[i // times], size=BLOCK, best=READ // BLOCK).read for i, j in groups]
        return np.repeat(read, BLOCK, axis=-1)[..., : key.shape[-2]]

    return choose


def the_latest_and_first(query, key, scores, attn_mask):
    at = np.arange(scores.shape[-1])
    return np.broadcast_to((at[:, None] - at < READ - 1) | (at == 0), scores.shape)


@store_result
def fewer_read(speaker):
    """Return what all judges say where each query reads READ keys: "alice", "again" of four texts, "codes" found.

    "shares" are recall, weight and keys of Alice, as `reading_keys` hears them.
    """
    ways = {
        "all keys": lambda query, key, scores, attn_mask: np.ones(scores.shape, dtype=bool),
        "a set for each head": one_by_one(together=False),
        "one set for nine heads": one_by_one(together=True),
        "4 blocks of 8": in_blocks(),
        "31 latest and the first": the_latest_and_first,
        "blocks, a set for each head": in_blocks(apart=True),
        "blocks, first block not kept": in_blocks(first=False),
        "blocks, own block always read": in_blocks(own="always"),
        "blocks, own always, first not kept": in_blocks(first=False, own="always"),
        "blocks, own block never read": in_blocks(own="never"),
        "blocks, mean of later keys, too": in_blocks(later=True),
    }
    return [{"name": name, **judge_reading(speaker, choose)} for name, choose in ways.items()]


def judge_reading(speaker, choose, copied=tuple(COPIED), lists=range(LISTS)):
    """Return a row of `fewer_read`."""
    heard = []
    other = speaker.using(grouped_attention=reading_keys(choose, heard))
    alice, shares = other.loss(texts.ALICE), np.mean(heard, axis=0)
    again = {name: found_again(other, COPIED[name]) for name in copied}
    return {"shares": shares, "alice": alice, "again": again, "codes": codes_found(other, lists)[0]}


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
        stop["text"] = writes(other, prompt, 24 if d_k > 1 else 7)  # without division rounding soon tells
        stops.append(stop)
    words = speaker.tokenizer.words(speaker.tokens(prompt))
    return {"prompt": prompt, "words": words, "layer": head[0], "head": head[1], "d_k": D_K, "stops": stops}


store_result(reading)


@store_result
def guesses(speaker, names=tuple(texts.GUESSED)):
    """Return {name: {"same": is it greedy's text?, "passes": (drafted, accepted) of each pass behind the prompt}}."""
    guessed = {}
    for name in names:
        text, passes = speculate(speaker, texts.GUESSED[name])
        guessed[name] = {"same": text == speaker.write(texts.GUESSED[name]), "passes": passes}
        if name == "JSON":  # the tokens of prompt and text, which lesson one_token_at_a_time shows
            guessed[name]["pieces"] = speaker.tokenizer.words(speaker.tokens(texts.GUESSED[name] + text))
    return guessed


@store_result
def packed_scores(speaker, prompts=(texts.BLANK, texts.EXCHANGED)):
    """Return {text: {words, layers, scores}}: those of `every_score` in base64, rows of 1, 2, ... n in float16."""
    found = {}
    for text in prompts:
        words, scores = every_score(speaker, text)
        rows = scores[(..., *np.tril_indices(len(words)))]
        packed = base64.b64encode(rows.astype("<f2").tobytes()).decode()
        found[text] = {"words": words, "layers": len(scores), "scores": packed}
    return found


@store_result
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


@store_result
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


def _score_blanks(speaker, blanks=texts.BLANKS):
    right, other = fill_blanks(speaker, blanks).T
    return {"right": float(np.mean(right > other)), "probability": float(right.mean())}


@store_result
def blanks(speaker, d_ks=STOPS, sentences=texts.BLANKS):
    """Return for each d_k how often the right name stands above the other, and its mean probability."""
    return [{"d_k": d_k, **_score_blanks(at_d_k(speaker, d_k), sentences)} for d_k in d_ks]


@store_result
def name_heads(speaker):
    """Return which heads look at the right name from the last word, and what becomes of the blanks without them.

    The control: as many heads drawn at random from the same layers, three times; they are named.
    """
    looking = np.zeros((speaker.shape.layers, speaker.shape.heads))
    for text, name, _ in texts.BLANKS:
        at = speaker.tokens(text).index(_number(speaker, name))
        for (layer, head), weights in speaker.maps(text).items():
            looking[layer - 1, head - 1] += weights[-1, at] / len(texts.BLANKS)
    top = rank_heads(looking)[:5]
    rng, controls = np.random.default_rng(0), []
    others = [(layer, j) for layer in sorted({i for i, _ in top}) for j in range(1, 10) if (layer, j) not in top]
    for _ in range(3):
        controls.append([others[k] for k in sorted(rng.choice(len(others), len(top), replace=False))])
    return {
        "weight on the right name": looking,
        "heads": top,
        "all heads": _score_blanks(speaker),
        "without one": [_score_blanks(speaker.using(without=[head])) for head in top],
        "without all five": _score_blanks(speaker.using(without=top)),
        "drawn": [{"heads": heads, **_score_blanks(speaker.using(without=heads))} for heads in controls],
    }


def rank_heads(measure):
    """Return (layer, head), counted from 1, the largest measure first."""
    order = np.argsort(-np.asarray(measure), axis=None, kind="stable")
    return [(int(i) + 1, int(j) + 1) for i, j in zip(*np.unravel_index(order, np.shape(measure)), strict=True)]


@store_result
def name_arrives(speaker):
    """Return what the layer of NAME_HEAD adds to the vector of the last word, along the directions of the two names.

    The direction of a name is its row of the table of tokens less the mean row, of length 1; "cosine" is that of the
    two. For "blank" and "blank exchanged": the vector's coordinates before the layer's attention; of each head its
    weights, what it adds to the coordinates, and the share of its squared length that the plane of the two keeps, last
    that of all nine together; the probabilities of both names with all heads ("0"), without one of them ("1" to "9") or
    all; and that of the right name without single heads. For "blank" also the head's own query of the last word, its
    keys (both turned by their positions), and of each value what its W_O makes of it along the two directions.
    "sentences" are all 80 blanks, see `_of_one_blank`.
    """
    layer, head = NAME_HEAD
    directions = _directions(speaker, "Mary", "John")
    prompts = {"cosine": float(directions[:, 0] @ directions[:, 1])}
    for name, right in (("blank", "Mary"), ("blank exchanged", "John")):
        text, (q, k, v, W_O) = PROMPTS[name], _heads_of(speaker, PROMPTS[name], layer)
        trace = core.attention_trace(q[:, -1:], k, v)
        added = (trace.output @ W_O)[:, 0]  # (h, d_model)
        arrows = np.concatenate([added, added.sum(axis=0, keepdims=True)])
        off = {str(j): [j] if j else [] for j in range(len(q) + 1)} | {"all": range(1, len(q) + 1)}
        prompts[name] = {
            "before": speaker.vectors(text)[layer - 2, -1] @ directions,
            "weights": trace.weights[:, 0],
            "heads": added @ directions,
            "kept": np.sum((arrows @ np.linalg.qr(directions)[0]) ** 2, axis=1) / np.sum(arrows**2, axis=1),
            "names": {name: _of_both_names(speaker, text, layer, heads) for name, heads in off.items()},
            "without": {
                f"{i}.{j}": float(speaker.using(without=[(i, j)]).probabilities(text)[_number(speaker, right)])
                for i, j in (NAME_HEAD, AGAINST)
            },
        }
        if name == "blank":
            h = head - 1
            prompts[name] |= {"query": q[h, -1:], "key": k[h], "value": v[h] @ (W_O[h] @ directions)}
    return prompts | {"sentences": [_of_one_blank(speaker, *blank) for blank in texts.BLANKS]}


def _of_one_blank(speaker, text, right, giver):
    """Return of a blank how much each head looks at the giver, what it does to both names, and what is then said.

    "giver" is the weight on the word before the verb, "away" what a head takes from the coordinate of the giver's name,
    and "parts" what it adds to the right name's less what it adds to the giver's. "nats" are -ln p of the right name
    and of the giver's with all heads, without head 1, and without head 4.
    """
    layer, _ = NAME_HEAD
    q, k, v, W_O = _heads_of(speaker, text, layer)
    trace, tokens = core.attention_trace(q[:, -1:], k, v), speaker.tokens(text)
    at = max(i for i, token in enumerate(tokens) if token == _number(speaker, giver))
    added = (trace.output @ W_O)[:, 0] @ _directions(speaker, right, giver)  # (h, 2)
    return {
        "giver": trace.weights[:, 0, at],
        "away": -added[:, 1],
        "parts": added[:, 0] - added[:, 1],
        "nats": -np.log([_of_both_names(speaker, text, layer, off, (right, giver)) for off in ([], [1], [4])]),
    }


def _directions(speaker, *names):
    """Return the directions of names in the table of tokens, (d_model, names)."""
    table = speaker.embedding - speaker.embedding.mean(axis=0)
    rows = table[[_number(speaker, name) for name in names]]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T


def _of_both_names(speaker, text, layer, off, names=("Mary", "John")):
    """Return the probabilities of names to come next without some heads of a layer."""
    p = speaker.using(without=[(layer, j) for j in off]).probabilities(text)
    return [float(p[_number(speaker, name)]) for name in names]


def _heads_of(speaker, text, layer):
    """Return the queries, keys and values of all heads of a layer, as its attention gets them, and W_O by head."""
    seen, other = {}, copy.copy(speaker)

    def watch(i, query, key, value, attn_mask):
        if i == layer - 1:
            repeats = len(query) // len(key)
            seen["heads"] = query, key.repeat(repeats, axis=0), value.repeat(repeats, axis=0)

    other.watch = watch
    other(other.tokens(text))
    q, k, v = seen["heads"]  # (h, n, d_k) each
    return q, k, v, speaker.layers[layer - 1].attn_output.reshape(len(q), v.shape[-1], -1)  # (h, d_k, d_model)


def over_all_heads(speaker, maps, measure):
    """Return (layers, heads): what `measure` gives for the map of each head."""
    return np.array([measure(weights) for weights in maps.values()]).reshape(speaker.shape.layers, -1)


def on_the_first(weights):
    """Mean weight on the first token, the first query left out: it has no other key."""
    return float(weights[1:, 0].mean())


def on_the_previous(weights):
    """Mean weight on the token before; the first has none, and the second has it on the sink as well: left out."""
    return float(np.diagonal(weights, -1)[1:].mean())


@store_result
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


@store_result
def windows(speaker, widths=WINDOWS, firsts=FIRSTS):
    """Return the loss on Alice with a window of so many keys, and the first 0, 1 or 4 tokens kept."""
    rows = [
        {"window": width, "first": first, "loss": speaker.using(window=width, sink=first).loss(texts.ALICE)}
        for width in widths
        for first in firsts
    ]
    return [*rows, {"window": None, "first": 0, "loss": speaker.loss(texts.ALICE)}]


@store_result
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

    def measure_window(name, w):
        kept = {"nothing": seeing(name, w), "first": seeing(name, w, 0), "silent": seeing(name, w, 0, silent=True)}
        return {"window": w, **kept, "wider": seeing(name, w + 1), "second": seeing(name, w, 1)}

    return {name: [measure_window(name, w) for w in widths] for name in names}


def repeat_tokens(speaker, draw):
    """Return random tokens twice in a row, (2 LENGTH,): nothing but the first copy tells the second."""
    words = np.random.default_rng(draw).integers(FIRST_WORD, len(speaker.tokenizer.vocabulary), LENGTH)
    return [int(number) for number in (*words, *words)]


def weight_on_copy(weights):
    """Mean weight of the second copy on the token that followed the same token in the first."""
    return float(np.diagonal(weights, 1 - LENGTH)[1:].mean())


def second_copy(speaker, draws=range(DRAWS)):
    """Return for each draw (loss of the first copy, loss of the second)."""
    halves = []
    for draw in draws:
        numbers = repeat_tokens(speaker, draw)
        nats = speaker.surprise(speaker(numbers)[0][:-1], numbers[1:])
        halves.append([float(nats[: LENGTH - 1].mean()), float(nats[LENGTH:].mean())])
    return np.array(halves)


@store_result
def copying(speaker, draws=range(DRAWS)):
    """Return the heads that copy: mean and range of their measure over the draws, and what they do on Alice.

    On Alice nothing repeats for long: there the same heads park on the first token.
    """
    by_draw = np.array(
        [over_all_heads(speaker, speaker.maps_of(repeat_tokens(speaker, draw)), weight_on_copy) for draw in draws]
    )  # (draws, layers, heads)
    alice = speaker.maps(texts.ALICE)
    copy, previous = by_draw.mean(axis=0), over_all_heads(speaker, alice, on_the_previous)
    top = rank_heads(copy)[:8]
    return {
        "copy": copy,
        "previous": previous,
        "heads": top,
        "least and most": [[float(f(by_draw[:, i - 1, j - 1])) for f in (np.min, np.max)] for i, j in top],
        "first token on Alice": [on_the_first(alice[head]) for head in top],
        "previous heads": rank_heads(previous)[:4],
        "losses": second_copy(speaker, draws),
    }


def far(speaker, gap, omega, of_keys=None):
    """Return a speaker that rotates by these frequencies, with a gap in the positions before the second copy."""

    def rope(x, positions, base):
        half, rate = len(positions) // 2, of_keys if of_keys is not None and len(x) == speaker.shape.kv_heads else omega
        return rotary.turn(x, positions + gap * (np.arange(len(positions)) >= half), rotary.halves, rate)

    return speaker.using(rope=rope)


def copied_far(speaker):
    """Return the four texts whose copy stands far away: two of random tokens, prose and code, each twice."""
    written = (2 * speaker.tokens(texts.TEXTS[name])[:LENGTH] for name in ("prose", "code"))
    return [repeat_tokens(speaker, 0), repeat_tokens(speaker, 1), *written]


def of_the_second(speaker, numbers):
    """Return the loss on the second of two texts."""
    return float(speaker.surprise(speaker(numbers)[0][LENGTH:-1], numbers[LENGTH + 1 :]).mean())


def other_base(speaker, factor):
    """Return the frequencies of another base, of which the slowest is so many times slower."""
    return rotary.frequencies(D_K, speaker.base * factor ** (D_K / (D_K - 2)))


@store_result
def reach(speaker, gaps=(6000, 7000, 8000), factors=(2, 4, 8), trained=8192):
    """Return losses of a far copy, {way: {gap: of four texts}}, at gaps that grow by the factor of the way."""
    omega, twice = rotary.frequencies(D_K, speaker.base), copied_far(speaker)
    ways = {"as trained": (1, omega)}
    ways |= {f"by parts, {factor} times": (factor, slow_by_parts(omega, factor, trained)) for factor in factors}
    ways |= {"another base, 4 times": (4, other_base(speaker, 4))}
    return {
        name: {factor * gap: [of_the_second(far(speaker, factor * gap, way), x) for x in twice] for gap in gaps}
        for name, (factor, way) in ways.items()
    }


@store_result
def farther(speaker, gaps=(0, 2000, 6000, 8000, 12_000, 30_000), factor=4.0, trained=8192):
    """Return losses of a second copy that stands far away by its positions alone, {way: {gap: of four texts}}.

    Of random tokens, twice, and of prose and code. "another text": what follows the gap is no copy. "row": of a head
    that copies, the weights of " red" in the second copy on the first, as trained and by parts. "house": as trained,
    the probability of " house" after this " red", and the weight on " house" of each head that copies.
    """
    omega = rotary.frequencies(D_K, speaker.base)
    parts = slow_by_parts(omega, factor, trained)
    ways = {
        "as trained": (omega,),
        "every pair slowed": (omega / factor,),
        "another base": (other_base(speaker, factor),),
        "by parts": (parts,),
        "only the queries by parts": (parts, omega),
    }
    twice = copied_far(speaker)
    losses = {
        name: {gap: [of_the_second(far(speaker, gap, *own), x) for x in twice] for gap in gaps}
        for name, own in ways.items()
    }
    other = {gap: of_the_second(far(speaker, gap, omega), twice[2][:LENGTH] + twice[3][LENGTH:]) for gap in gaps}
    head, sentence = tuple(recorded("copying")["heads"][0]), speaker.tokens(FAR)
    half, rows, house = len(sentence), {}, {}
    for name in ("as trained", "by parts"):
        maps = (far(speaker, gap, *ways[name]).maps_of(sentence * 2, [head])[head] for gap in gaps)
        rows[name] = {gap: x[half + FAR_QUERY, :half] for gap, x in zip(gaps, maps, strict=True)}
    heads, (query, key) = [tuple(one) for one in recorded("copying")["heads"]], (half + FAR_QUERY, FAR_QUERY + 1)
    for gap in gaps:
        trained_one = far(speaker, gap, omega)
        hidden, maps = trained_one(sentence * 2)[0], trained_one.maps_of(sentence * 2, heads)
        told = np.exp(-speaker.surprise(hidden[query : query + 1], sentence[key : key + 1])[0])
        house[gap] = {"told": float(told)} | {f"{one[0]}.{one[1]}": maps[one][query, key] for one in heads}
    words = [speaker.tokenizer.decode([number]) for number in sentence]
    return {"loss": losses, "another text": other, "head": head, "words": words, "row": rows, "house": house}


@store_result
def without_heads(speaker, controls=5):
    """Return the loss of the second copy without some heads, each draw, and the loss on Alice without them.

    Taken away: the strongest 1, 2, 4, 8 heads that copy; each of the four that look one back. The control: as many
    heads drawn at random from all others, `controls` times; they are named. The loss on Alice says what else is lost.
    """
    scores = recorded("copying")
    copy, previous = [tuple(head) for head in scores["heads"]], [tuple(head) for head in scores["previous heads"]]
    rng = np.random.default_rng(0)
    rest = [head for head in rank_heads(scores["copy"]) if head not in copy and head not in previous]
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


@store_result
def parked_prompts(speaker):
    """Return {prompt: what `parking` measures on it} for a few prompts."""
    return {prompt: parking(prompt, speaker) for prompt in texts.TRIED}


# Lesson less_to_keep: what is kept of a text. Bytes are those of Alice, when all of it is read, over its tokens; a
# number that is not rounded has 16 bits.

HEADS = 90  # of keys, and as many of values: 30 layers of 3
SHOWN = (20, 2, 4)  # layer, head of keys and head of queries whose keys are a map
OF_A_LATENT = (*list(texts.GUESSED.values())[:-1], *(text for text, *_ in texts.BLANKS[::8]), *texts.TRIED)
GROUP = 32


def attending(key=lambda x: x, value=lambda x: x):
    """Return an attention that reads keys and values only as these functions keep them."""
    return lambda q, k, v, mask=None: core.scaled_dot_product_attention(q, key(k), value(v), mask)


def to_16_bits(x):
    """Return numbers as they are after they were kept in 16 bits."""
    return x.astype(np.float16).astype(x.dtype)


def waiting(bits, size=GROUP):
    """Return an attention that sees keys rounded in groups, and whole ones as long as their group is not complete."""

    def attention(query, key, value, attn_mask=None):
        n_q, n_k = query.shape[-2], key.shape[-2]
        now, group = np.arange(n_k - n_q, n_k)[:, None], np.arange(n_k) // size
        complete = (group + 1) * size <= now + 1
        kept = in_groups(key, bits, size)
        scores = np.where(complete, *(query @ np.swapaxes(k, -1, -2) / 8 for k in (kept, key)))
        return core.softmax(np.where(attn_mask, scores, -np.inf)) @ rounded(value, bits)

    return attention


def without(constants, bits):
    """Return a grouped attention whose keys are kept less what keys of another text share, which stays away."""
    of_layer = cycle(constants)  # it is called once for each layer, in their order

    def attend(query, key, value, attn_mask, attention):
        key, value = rounded(key - next(of_layer), bits), rounded(value, bits)
        return attention(query, key.repeat(3, 0), value.repeat(3, 0), attn_mask)

    return attend


def all_keys(speaker, text):
    """Return keys and values of every layer as they are kept: rotated, (3, n, d_k) each."""
    found, other = [], copy.copy(speaker)
    other.watch = lambda i, query, key, value, attn_mask: found.append((key, value))
    other(other.tokens(text))
    return found


def mean_keys(speaker, text):
    """Return what all keys of a text share, (3, 1, d_k) of every layer."""
    return [key.mean(axis=-2, keepdims=True) for key, _ in all_keys(speaker, text)]


def other_text(name):
    """Return the text from which a constant is taken: never the one on which it is tried."""
    return texts.TEXTS["alice" if name == "prose" else "prose"]


def with_bases(speaker, bases):
    """Return a speaker whose keys and values are made of a latent: of [W_K W_V] only these directions are left."""
    other, width = copy.copy(speaker), speaker.layers[0].attn_k.shape[1]
    other.layers = []
    for w, basis in zip(speaker.layers, bases, strict=True):
        both = np.concatenate([w.attn_k, w.attn_v], axis=1) @ basis @ basis.T  # (d_model, 384)
        k, v = (np.ascontiguousarray(x) for x in (both[:, :width], both[:, width:]))
        other.layers.append(replace(w, attn_k=k, attn_v=v))
    return other


def bases_of_matrices(speaker):
    """Return of each layer the directions of [W_K W_V], the longest first, (384, 384)."""
    both = [np.concatenate([w.attn_k, w.attn_v], axis=1) for w in speaker.layers]
    return [np.linalg.svd(x, full_matrices=False)[2].T for x in both]


def bases_of_texts(speaker, prompts=OF_A_LATENT):
    """Return of each layer the directions in which keys and values of some texts lie, before the rotation."""
    rows, other = [[] for _ in speaker.layers], copy.copy(speaker)

    def layer(i, w, x, positions, past):
        normed = rms_norm(x, w.attn_norm, speaker.shape.eps)
        rows[i].append(np.concatenate([normed @ w.attn_k, normed @ w.attn_v], axis=1))
        return speaker.layer(i, w, x, positions, past)

    other.layer = layer
    for prompt in prompts:
        other(other.tokens(prompt))
    return [np.linalg.svd(np.concatenate(x), full_matrices=False)[2].T for x in rows]


def rotated_latent(speaker):
    """Return the loss on each text if the whole latent is rotated, and the query among latents, in place of keys."""
    bases = [basis.reshape(6, 64, -1) for basis in bases_of_matrices(speaker)]  # 3 heads of keys, 3 of values
    of_layer = cycle(bases)

    def attend(query, key, value, attn_mask, attention):
        basis, at = next(of_layer), np.arange(key.shape[-2])
        latent = np.einsum("hnd,hdr->nr", np.concatenate([key, value]), basis)  # (n, 384), all of it
        inside = query @ basis[:3].repeat(3, 0)  # (9, n, 384)
        latent, inside = (rotary.rope(x, at, speaker.base) for x in (latent, inside))
        weights = core.softmax(np.where(attn_mask, inside @ latent.T / 8, -np.inf))
        return weights @ value.repeat(3, 0)

    return losses(speaker.using(rope=lambda x, positions, base: x, grouped_attention=attend))


def point(family, name, size, others):
    """Return one point of the figure: `others` is a speaker, or one for each text."""
    others = others if isinstance(others, dict) else dict.fromkeys(texts.TEXTS, others)
    found = {text: others[text].loss(words) for text, words in texts.TEXTS.items()}
    row = {"family": family, "name": name, "bytes": round(size), "loss": found["alice"], "on": found}
    return row | {"text": writes(others["alice"], texts.STORY)}


def ways_to_keep_less(speaker):
    """Yield (family, name, bytes, speaker) of each; a dict of speakers where texts have one each."""
    n = len(speaker.tokens(texts.ALICE))
    whole = 2 * HEADS * bytes_kept(n, D_K, 16)
    yield "everything", "16 bits", whole, speaker.using(attention=attending(to_16_bits, to_16_bits))

    def size(bits, axis=-1):
        return HEADS * (bytes_kept(n, D_K, bits, axis) + bytes_kept(n, D_K, bits))

    for b in (8, 4, 3, 2):
        other = speaker.using(attention=attending(partial(rounded, bits=b), partial(rounded, bits=b)))
        yield "a scale per token", f"{b} bits", size(b), other
    means = {name: mean_keys(speaker, other_text(name)) for name in texts.TEXTS}
    means["again"] = mean_keys(speaker, texts.CODE)  # what is found again is of Alice and prose
    for b in (4, 3, 2):
        found = {name: speaker.using(grouped_attention=without(mean, b)) for name, mean in means.items()}
        yield "stripes away, per token", f"{b} bits", size(b), found
    for b in (8, 4, 3, 2):
        other = speaker.using(attention=attending(partial(rounded, bits=b, axis=-2), partial(rounded, bits=b)))
        yield "keys per feature", f"{b} bits", size(b, -2), other
    late = n % GROUP  # tokens whose keys wait
    for b in (4, 3, 2):
        grouped = ((n - late) * bytes_kept(GROUP, D_K, b, -2) + late * bytes_kept(late, D_K, 16)) / n
        other = speaker.using(attention=waiting(b))
        yield "keys per feature, groups", f"{b} bits", HEADS * (grouped + bytes_kept(n, D_K, b)), other
    for w in (32, 64, 128):
        yield "a window", f"{w} tokens", whole * w / n, speaker.using(window=w)
    for w in (16, 32, 64, 128):
        yield "window and first token", f"{w} tokens", whole * (w + 1) / n, speaker.using(window=w, sink=1)
    for family, bases in (
        ("latent from matrices", bases_of_matrices(speaker)),
        ("latent from other texts", bases_of_texts(speaker)),
    ):
        for r in (320, 256, 192):
            other = with_bases(speaker, [basis[:, :r] for basis in bases])
            yield family, f"rank {r}", 2 * 30 * r, other
    few = len(FIND) / 30 + (1 - len(FIND) / 30) * (NARROW["window"] + NARROW["sink"]) / n
    yield "everything", "5 layers, else 16 tokens", whole * few, speaker.using(**NARROW, whole=FIND)


@store_result
def less_to_keep(speaker):
    """Return the points of the figure: ways to keep less, their bytes, their loss, and what they write."""
    return [point(*way) for way in ways_to_keep_less(speaker)]


@store_result
def find_again(speaker):
    """Return what each way of `less_to_keep` finds again: the loss on a second copy, and the share of codes."""
    rows = []
    for family, name, _, other in ways_to_keep_less(speaker):
        other = other["again"] if isinstance(other, dict) else other
        rows.append({"family": family, "name": name, **finds(other)})
    return rows


FIND = (9, 16, 18, 19, 24)  # that are missed most, each alone, when codes are asked for


@store_result
def layers(speaker):
    """Return what both judges say if some layers see 16 tokens and the first alone, layers counted from 1.

    "alone" is for each layer [loss on Alice, surprise at the digits of codes]. "sets" are for layers that keep the
    whole text [loss on Alice, loss on a second copy, share of codes, surprise at their digits].
    """
    every = range(1, speaker.shape.layers + 1)

    def keeping(whole):
        return speaker.using(**NARROW, whole=whole)

    alone = []
    for i in every:
        other = keeping({*every} - {i})
        alone.append([other.loss(texts.ALICE), codes_found(other)[1]])
    by_word, by_codes = (sorted(every, key=lambda i, k=k: -alone[i - 1][k])[:5] for k in (0, 1))
    sinks = sorted(every, key=lambda i: -recorded("sinks")["by layer"][i - 1])[:5]
    sets = {
        "all 30": every,
        "none": (),
        "most missed by the next word": by_word,
        "most missed by the codes": by_codes,
        "most missed by other copies": (9, 18, 19, 21, 24),  # of other texts, and of random tokens
        "every sixth": range(6, 31, 6),
        "the first five": range(1, 6),
        "the largest sinks": sinks,
        "all but 18, 19, 24": {*every} - {18, 19, 24},
        "all but 1, 2, 3": {*every} - {1, 2, 3},
    }
    rows = []
    for name, whole in sets.items():
        other = keeping(whole)
        judged = [other.loss(texts.ALICE), found_again(other), *codes_found(other)]
        rows.append({"name": name, "whole": sorted(whole), "judged": judged})
    return {"alone": alone, "sets": rows}


@store_result
def shared_part(speaker):
    """Return what share of the mean square of keys and values all tokens have in common, and losses without it."""
    keys, values = zip(*all_keys(speaker, texts.ALICE), strict=True)
    mean = partial(np.mean, axis=-2, keepdims=True)

    def share(x, constant):
        return 1 - ((x - constant) ** 2).mean(axis=(-1, -2)) / (x**2).mean(axis=(-1, -2))

    def before(x, positions, base):
        return rotary.rope(x - mean(x) if len(x) == 3 else x, positions, base)  # 3 heads of keys, 9 of queries

    return {
        "keys": np.mean([share(k, mean(k)) for k in keys]),
        "values": np.mean([share(v, mean(v)) for v in values]),
        "keys, from the prose": np.mean(
            [share(k, c) for k, c in zip(keys, mean_keys(speaker, texts.PROSE), strict=True)]
        ),
        "loss": {
            "whole": losses(speaker),
            "away": losses(speaker.using(attention=attending(key=lambda k: k - mean(k)))),
            "away before the rotation": losses(speaker.using(rope=before)),
            "values' share away": losses(speaker.using(attention=attending(value=lambda v: v - mean(v)))),
        },
    }


@store_result
def scales(speaker):
    """Return what both judges say in 4, 3 and 2 bits where keys and values have a scale per token or per feature.

    "float16" are losses with scales kept in float16, as bytes are counted; elsewhere scales are not rounded.
    """
    names, rows = {-1: "token", -2: "feature"}, []
    for b, i, j in product((4, 3, 2), names, names):
        ways = []
        for kind in (None, np.float16):
            keys, values = (partial(rounded, bits=b, axis=axis, dtype=kind) for axis in (i, j))
            ways.append(speaker.using(attention=attending(keys, values)))
        found = {"loss": losses(ways[0]), **finds(ways[0]), "float16": losses(ways[1])}
        rows.append({"bits": b, "keys": names[i], "values": names[j], **found})
    return rows


def guessing(guess, best, recalls):
    """Return an attention to the best keys by a guess at their scores; `recalls` hears how many it found."""

    def attention(query, key, value, attn_mask=None):
        scores, guessed = (
            np.where(attn_mask, x, -np.inf) for x in (query @ np.swapaxes(key, -1, -2) / 8, guess(query, key))
        )
        found, chosen = (
            np.isfinite(x) & (x >= np.sort(x)[..., -min(best, x.shape[-1]), None]) for x in (scores, guessed)
        )
        many = np.arange(scores.shape[-1])[-scores.shape[-2] :] >= 4 * best
        recalls.append(((found & chosen).sum(-1) / found.sum(-1))[:, many].mean() if many.any() else np.nan)
        return core.softmax(np.where(chosen, scores, -np.inf)) @ value

    return attention


def by_features(query, key, count=16):
    """Guess scores from the features in which a query is largest."""
    least = np.sort(np.abs(query))[..., -count, None]
    return np.where(np.abs(query) >= least, query, 0) @ np.swapaxes(key, -1, -2)


def by_bits(query, key, apart):
    """Guess scores from keys in 2 bits, a scale per token, with or without what they share."""
    key = key - key.mean(axis=-2, keepdims=True) if apart else key
    return query @ np.swapaxes(rounded(key, 2), -1, -2)


def the_latest(query, key):
    return np.arange(key.shape[-2]) + 0 * query[..., :1]


@store_result
def few_keys(speaker):
    """Return what both judges say of the best keys; and of eight by a guess, with its recall on Alice."""
    rows = []
    for b in (1, 2, 4, 8, 16, 32, 64):
        other = speaker.using(attention=partial(best_keys, best=b))
        rows.append({"best": b, "loss": losses(other), **finds(other)})
    guesses = {
        "16 of 64 features": by_features,
        "2 bits": partial(by_bits, apart=False),
        "2 bits, without what keys share": partial(by_bits, apart=True),
        "the latest": the_latest,
    }
    guessed = []
    for name, guess in guesses.items():
        recalls = []  # of Alice first, layer by layer
        other = speaker.using(attention=guessing(guess, 8, recalls))
        found = {"loss": losses(other), **finds(other)}
        guessed.append({"by": name, "recall": np.nanmean(recalls[: speaker.shape.layers]), **found})
    return {"best": rows, "guessed": guessed}


@store_result
def latents(speaker):
    """Return the losses if the latent is rotated in place of the keys."""
    return {"rotated": rotated_latent(speaker)}


@store_result
def some_keys(speaker, n=32):
    """Return tokens of Alice with the queries and keys of one head, rotated, for the map of keys."""
    layer, g, h = SHOWN
    q, k, *_ = _heads_of(speaker, texts.ALICE, layer)
    words = speaker.tokenizer.words(speaker.tokens(texts.ALICE))[:n]
    return {"tokens": words, "query": q[h - 1, :n].round(2), "key": k[3 * (g - 1), :n].round(2)}

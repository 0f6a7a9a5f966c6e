"""What the 270 heads do: sinks and windows, heads that look one back, heads that copy."""

import numpy as np

from ...core import attention_trace
from . import texts
from .results import ranked, replayed

WINDOWS, FIRSTS = (8, 16, 32, 64), (0, 1, 4)
LENGTH, DRAWS = 40, 8  # random tokens, each sequence twice in a row
FIRST_WORD = 17  # before it stand the control tokens
LONGEST = 200  # tokens of a prompt whose parking is measured
BEFORE, LONG = 17, 0.1  # the layer before the heads that copy; a vector of so much of the first one's length is long


def over_all_heads(speaker, maps, measure):
    """Return (layers, heads): what `measure` gives for the map of each head."""
    return np.array([measure(weights) for weights in maps.values()]).reshape(speaker.shape.layers, -1)


def on_the_first(weights):
    """Mean weight on the first token, the first query left out: it has no other key."""
    return float(weights[1:, 0].mean())


def on_the_previous(weights):
    """Mean weight on the token before; the first has none, and the second has it on the sink as well: left out."""
    return float(np.diagonal(weights, -1)[1:].mean())


@replayed
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


@replayed
def windows(speaker, widths=WINDOWS, firsts=FIRSTS):
    """Return the loss on Alice with a window of so many keys, and the first 0, 1 or 4 tokens kept."""
    rows = [
        {"window": width, "first": first, "loss": speaker.using(window=width, sink=first).loss(texts.ALICE)}
        for width in widths
        for first in firsts
    ]
    return [*rows, {"window": None, "first": 0, "loss": speaker.loss(texts.ALICE)}]


@replayed
def windows_apart(speaker, widths=(8, 16, 32), names=tuple(texts.TEXTS)):
    """Return {text: for each window losses that tell what of the first token counts}.

    "silent" keeps its score where it is out of the window, and sets its value to 0 there. The controls are a window one
    token wider, and the second token in place of the first.
    """

    def seeing(name, width, token=-1, silent=False):
        def attention(query, key, value, attn_mask):
            n_q, n_k = query.shape[-2], key.shape[-2]
            near = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k) < width
            weights = attention_trace(query, key, value, attn_mask & (near | (np.arange(n_k) == token))).weights
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


@replayed
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


@replayed
def without_heads(speaker, controls=5):
    """Return the loss of the second copy without some heads, each draw, and the loss on Alice without them.

    Taken away: the strongest 1, 2, 4, 8 heads that copy; each of the four that look one back. The control: as many
    heads drawn at random from all others, `controls` times; they are named. The loss on Alice says what else is lost.
    """
    scores = copying()
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


@replayed
def parked_prompts(speaker):
    """Return {prompt: what `parking` measures on it} for a few prompts."""
    return {prompt: parking(prompt, speaker) for prompt in texts.TRIED}


def parking(prompt, speaker=None):
    """Return where the eight heads that copy look on a prompt, for each of its tokens.

    A place to park is the first token, and any other whose vector, as these heads are reached, is about as long: at
    least a tenth of it. Most other vectors have a hundredth of that length.

    Parameters
    ----------
    prompt : str or None
        None, where nothing is written yet, gives None.
    speaker : Speaker, optional
        Without one the result is that of `parked_prompts`, or holds the prompt alone.

    Returns
    -------
    dict or None
        prompt; tokens, as numbers; places, those to park; and for each token, as means over the eight heads, its weight
        on the first token ("first"), on all places to park ("parked"), and on tokens that followed the same token
        earlier ("copied").

    Raises
    ------
    TypeError, ValueError
        If the prompt is no text, empty, or longer than 200 tokens.
    """
    if prompt is None or prompt is ...:
        return None
    if not isinstance(prompt, str):
        raise TypeError(f"prompt must be a text, got {type(prompt).__name__}. Fix: one text in quotes.")
    if speaker is None:
        return parked_prompts().get(prompt, {"prompt": prompt})
    numbers = np.array(speaker.tokens(prompt))
    if len(numbers) > LONGEST:
        raise ValueError(f"prompt must have at most {LONGEST} tokens, got {len(numbers)}. Fix: a shorter text.")
    maps = speaker.maps_of(numbers.tolist(), [tuple(head) for head in copying()["heads"]])
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

"""The exercises of Less to keep, and the inputs on which they are tried."""

import numpy as np

from ...engine.exercise import OUTPUT_AXES, TOKEN_AXES, Function, MemoryBounded, step_options
from ...engine.probes import BATCH, CUBE, DEAD, HUGE, MASK, PLAIN, PLAIN_MASKED, SINGLE, Draw, Probe, dead, single
from .ways import Best, Groups, Latent, Layers, Rounded, judge_layers


def _arrays_to_round():
    draw = Draw("rounded")
    x, square = 3 * draw(5, 4) + 2, 2 * draw(4, 4) - 1
    stripe = draw(3, 16) + 9 * (np.arange(16) == 5)
    flat = draw(5, 4) + np.array([0, 9.0, 0, -4])
    flat[:, 2], flat[3] = 1.5, 1.5
    return (
        Probe("keys, 2 bits, a scale for each token", (x, 2)),
        Probe("keys, 2 bits, a scale for each feature", (x, 2, -2)),
        Probe("3 bits", (flat[:3, :2] - 7, 3, -1)),
        Probe("1 bit", (draw(3, 5), 1, -2)),
        Probe("keys with a stripe", (stripe, 3, -1)),
        Probe("as many tokens as features", (square, 2, -2)),
        Probe("several heads, (h, n, d)", (draw(2, 5, 4) + 1, 2, -2)),
        Probe("several heads, a scale for each token", (draw(2, 3, 4) - 2, 3, -1)),
        Probe(SINGLE, (*single(draw(2, 6, 3)), 4, -2)),
        Probe("a feature that is the same in every token", (flat[:3], 2, -2)),
        Probe("a token with one number only", (flat, 2, -1)),
    )


def _texts_to_group():
    draw = Draw("in_groups")
    return (
        Probe("7 tokens in groups of 4", (draw(7, 4), 2, 4)),
        Probe("groups that fit: 6 tokens by 3", (2 * draw(6, 4) + 1, 2, 3)),
        Probe("8 tokens in groups of 3", (draw(8, 3), 1, 3)),
        Probe("fewer tokens than a group", (draw(2, 4), 2, 3)),
        Probe("several heads, (h, n, d)", (draw(2, 9, 3), 2, 4)),
        Probe("as many features as tokens", (draw(5, 5), 2, 2)),
        Probe(SINGLE, (*single(draw(2, 11, 3)), 3, 4)),
    )


def _best_probes():
    draw = Draw("best_keys")

    def arrays(n_q, n_k, *lead):
        return draw(*lead, n_q, 6), draw(*lead, n_k, 6), draw(*lead, n_k, 3)

    one, causal = arrays(4, 5), np.tri(6, dtype=bool)
    query, key, value = draw(3, 4).round(), draw(6, 4).round(), draw(6, 3)  # whole numbers tie in any order of adding
    key[4], key[5] = key[1], key[2]  # equal keys have equal scores
    return (
        Probe(PLAIN, (*one, None, 2)),
        Probe(PLAIN_MASKED, (*one, MASK, 2)),
        Probe("a causal mask", (*arrays(6, 6), causal, 3)),
        Probe("heads behind a causal mask", (*arrays(6, 6, 3), causal, 2)),
        Probe(BATCH, (*arrays(3, 7, 2, 2), None, 4)),
        Probe(CUBE, (draw(4, 4, 4), draw(4, 4, 4), draw(4, 4, 4), None, 2)),
        Probe("keys that tie", (query, key, value, None, 3)),
        Probe("keys that tie for the first place", (query, key, value, None, 1)),
        Probe("fewer keys than are asked for", (*one, None, 9)),
        Probe(SINGLE, (*single(*arrays(6, 6, 2)), causal, 3)),
        Probe(DEAD, (*one, dead(MASK), 2)),
        Probe(HUGE, (3e3 * one[0], *one[1:], None, 2), 5e-3),
    )


def _models():
    """Return models in which some layers find something again, and others are dear to the next word."""
    rng = np.random.default_rng(16)

    def model(finding, dear):
        lost, words = 0.02 * rng.random((2, 31))  # by the number of a layer: a share of what is found, and nats
        lost[finding], words[dear] = (0.7, 0.6, 0.5, 0.4, 0.3), 0.1 + 0.01 * np.array(dear)

        def judge(layers):
            layers = sorted({int(i) for i in layers})
            if not {*layers} <= {*range(1, 31)}:
                raise ValueError("layers are 1 to 30")
            return 3.3 + float(words[layers].sum()), 3.2 - 3 * float(np.prod(1 - lost[layers]))

        return judge

    late, early = model([20, 18, 22, 23, 9], [1, 3, 8, 10, 26]), model([11, 4, 7, 13, 30], [2, 14, 16, 20, 29])
    return (
        Probe("a model in which layers 9 to 23 find", (late, 5)),
        Probe("a model in which layers 4 to 30 find", (early, 5)),
        Probe("at most 2 layers", (late, 2)),
        Probe("at most 8 layers", (early, 8)),
    )


def _latent_probes():
    draw = Draw("latent_attention")

    def arrays(n_q, n_k, r=3, d_k=5, d_v=2, *lead):
        return draw(*lead, n_q, d_k), draw(n_k, r), draw(*lead, r, d_k), draw(*lead, r, d_v)

    one, heads = arrays(4, 5), arrays(3, 6, 4, 2, 5, 3)
    return (
        Probe(PLAIN, one),
        Probe(PLAIN_MASKED, (*one, MASK)),
        Probe("keys as wide as values", arrays(4, 7, 3, 6, 6)),
        Probe("a latent as wide as keys and values", arrays(3, 5, 4, 4, 4)),
        Probe("three heads, one latent", heads),
        Probe("heads behind a causal mask", (*arrays(6, 6, 3, 4, 2, 2), np.tri(6, dtype=bool))),
        Probe(CUBE, arrays(4, 4, 4, 4, 4, 4)),
        Probe(SINGLE, single(*heads)),
        Probe(DEAD, (*one, dead(MASK))),
        Probe(HUGE, (3e3 * one[0], *one[1:]), 5e-3),
    )


def _on_long_texts(attention, n):
    wide = np.ones((2, 64))
    return attention(np.ones((1, 64)), np.ones((n, 2)), wide, wide)


EXERCISES = (
    Function(
        "rounded",
        "rounded(x, bits, axis=-1) -> x.shape: each number becomes the nearest of 2^bits, spread evenly from the "
        "lowest to the highest along `axis`. A slice of equal numbers stays as it is.",
        (
            "Per slice you need two numbers: the lowest, and the step from one level to the next.",
            "lowest = x.min(axis, keepdims=True); step is the range divided by 2**bits - 1.",
            "How many steps each number lies above the lowest, rounded by np.rint, times the step, plus the lowest. "
            "Divide by 1 where the step is 0.",
        ),
        probes=_arrays_to_round(),
        **step_options("back", "x bits over", of=Rounded, axes=TOKEN_AXES),
    ),
    Function(
        "in_groups",
        "in_groups(x, bits, size) -> x.shape: x is (..., n, d). Tokens are rounded in groups of `size`, from the first "
        "token on, with a scale for each feature of a group. Tokens that do not fill a group stay whole.",
        (
            "How many tokens lie in complete groups?",
            "n // size * size. Go through them group by group, in a copy of x.",
            "out[..., i : i + size, :] = rounded(x[..., i : i + size, :], bits, axis=-2).",
        ),
        probes=_texts_to_group(),
        **step_options("in_groups", "x bits size", of=Groups, axes=TOKEN_AXES),
    ),
    Function(
        "best_keys",
        "best_keys(query, key, value, attn_mask=None, best=8) -> (..., n_q, d_v): attention of each query to the "
        "`best` allowed keys with the largest scores alone. Keys that tie with the last stay. attn_mask is None "
        "or boolean, True = may attend; a query without a key gives 0.",
        (
            "Scores, scale and mask as in 'masks'. What comes between them and the softmax?",
            "Which is the smallest score of a row that stays? A sorted row has it.",
            "Sort each row; the least that stays is the best-th from the end, or the first where there are fewer keys. "
            "Scores below it become -inf.",
        ),
        probes=_best_probes(),
        **step_options("output", "q k v mask best", of=Best, axes=OUTPUT_AXES),
    ),
    Function(
        "layers",
        "layers(narrowed, at_most=5) -> list of at most 5 layers, counted from 1 to 30. `narrowed(layers)` returns two "
        "losses: on the next word, and on what is found again, if these layers see 16 tokens and the first alone. "
        "Return those that keep the whole text, so that finding suffers least if all others are narrowed.",
        (
            "Ask what each layer is worth: what does narrowed([layer]) say if it alone is narrowed?",
            "It says two things. Which of them tells what is found?",
            "If lost(layer) returns narrowed([layer])[1], sorted(range(1, 31), key=lost) ends with the dearest.",
        ),
        probes=_models(),
        **step_options("kept_whole", "narrowed at_most", of=Layers),
        judge=judge_layers,
    ),
    MemoryBounded(
        "latent_attention",
        "latent_attention(query, latent, W_UK, W_UV, attn_mask=None) -> (..., n_q, d_v): attention of query (..., n_q, "
        "d_k) to keys latent @ W_UK and values latent @ W_UV, without making either. latent is (n_k, r), W_UK (..., r, "
        "d_k), W_UV (..., r, d_v), attn_mask None or boolean.",
        (
            "A score is q (c W_UK)^T. Write it without the bracket.",
            "q W_UK^T c^T: multiply the query by W_UK transposed, then meet the latents. The divisor stays sqrt(d_k).",
            "With the weights mix the latents, (n_q, r), and multiply the mixture by W_UV at the end.",
        ),
        called=_on_long_texts,
        where="with latents of 2 numbers and keys of 64, keys or values are being made",
        fix="multiply the query by W_UK, and what is mixed by W_UV, never the latents",
        probes=_latent_probes(),
        **step_options("output", "q latent W_UK W_UV mask", of=Latent, axes=OUTPUT_AXES),
    ),
)

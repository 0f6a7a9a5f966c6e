"""Mistakes as learners write them, not as the catalogue does: named, or not named, and told truly."""

import statistics

import numpy as np
import pytest
import torch
from answers import MODULE, A, Layer, M, SelfAttention, as_module, layer, masked_softmax, multi_head, right, student
from answers_12 import head

import attnlib as al
from attncourse import EXERCISES, MISTAKES, check
from attncourse.lessons.one_token_at_a_time.decoding import attend as another
from attnlib.examples import SENTENCE


@pytest.mark.parametrize(
    "id, lines",
    [
        (None, {}),
        ("no_scale", {"scale": "1"}),
        ("scale_by_d_k", {"scale": "q.shape[-1]"}),
        ("scale_by_d_v", {"scale": "v.shape[-1] ** 0.5"}),
        ("scale_by_n", {"scale": "len(q.swapaxes(0, -2)) ** 0.5"}),
        ("multiply_by_sqrt_d_k", {"scale": "q.shape[-1] ** -0.5"}),
        ("softmax_over_queries", {"softmax": "al.softmax(s, axis=-2)"}),
        ("wrong_batch_axis", {"softmax": "al.softmax(s, axis=1)"}),
        ("softmax_over_everything", {"softmax": "np.exp(s - s.max()) / np.exp(s - s.max()).sum()"}),
        ("unstable_softmax", {"softmax": "np.exp(s) / np.exp(s).sum(-1)[..., None]"}),
        ("unstable_softmax", {"softmax": "np.exp(s) / np.where((z := np.exp(s).sum(-1)[..., None]) == 0, 1, z)"}),
        ("fill_not_low_enough", {"mask": "np.where(m, s, -10000)", "rest": "(w if m is None else w * m) @ v"}),
        ("fill_not_low_enough", {"mask": "np.where(m, s, -100)", "rest": "(w if m is None else w * m) @ v"}),
        ("fill_not_low_enough", {"mask": "s + ~m * -1e4", "rest": "(w if m is None else w * m) @ v"}),
        ("double_softmax", {"softmax": "al.softmax(al.softmax(s))"}),
        ("nan_on_fully_masked", {"softmax": "(e := np.exp(s - s.max(-1)[..., None])) / e.sum(-1)[..., None]"}),
        ("argmax_instead_of_softmax", {"softmax": "(s == s.max(-1)[..., None]) * np.isfinite(s)"}),
        ("finite_fill", {"mask": "np.where(m, s, -1e12)"}),
        ("finite_fill", {"mask": "s + ~m * -1e9"}),
        ("mask_inverted", {"mask": "np.where(m == False, s, -np.inf)"}),
        ("mask_multiplies_scores", {"mask": "s * m"}),
        ("mask_ignored", {"mask": "s"}),
        ("weights_returned", {"rest": "w"}),
        ("weights_transposed", {"rest": "w.swapaxes(-1, -2) @ v"}),
        ("scale_after_softmax", {"scale": "1", "softmax": "al.softmax(s) / q.shape[-1] ** 0.5"}),
        ("mutates_input", {"rest": "w @ v + 0 * q.__imul__(2).sum()"}),
        ("returns_float16", {"rest": "np.half(w @ v)"}),
    ],
)
def test_a_students_own_code_is_named_too(id, lines):
    """In 2.3; what concerns masks in 5.4."""
    of_masks = "mask" in lines or id == "nan_on_fully_masked"
    verdict = (
        check.masked_attention(student(**lines)) if of_masks else check.scaled_dot_product_attention(student(**lines))
    )
    assert verdict.mistake == id and verdict.passed == (id is None), verdict


@pytest.mark.parametrize(
    "exercise, id, answer",
    [
        ("causal_mask", "mask_as_numbers", lambda n_q, n_k=None: np.tri(n_k or n_q)[-n_q:]),
        ("causal_mask", "causal_upper_left", lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q), bool))),
        ("causal_mask", "causal_upper_left", lambda n_q, n_k=None: np.arange(n_q)[:, None] >= np.arange(n_k or n_q)),
        ("causal_mask", "mask_inverted", lambda n_q, n_k=None: ~np.tri(n_k or n_q, dtype=bool)[-n_q:]),
        ("causal_mask", "mask_future_only", lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool).T[-n_q:]),
        ("causal_mask", "mask_blocks_diagonal", lambda n_q, n_k=None: np.tri(n_k or n_q, k=-1, dtype=bool)[-n_q:]),
        ("causal_mask", "mask_inverted", lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool), 1)),
        ("causal_mask", "mask_future_only", lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool))),
        (
            "padding_mask",
            "padding_without_query_axis",
            lambda n, n_k: np.array([[j < i for j in range(n_k)] for i in n]),
        ),
        ("padding_mask", "mask_as_numbers", lambda n, n_k: al.padding_mask(n, n_k).astype(float)),
        ("softmax", "argument_ignored", lambda x, axis=-1: al.softmax(x)),
        ("softmax", "returns_float16", lambda x, axis=-1: np.half(al.softmax(x, axis))),
        ("split_heads", "split_without_transpose", lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], -1)),
        ("attention_scores", "wrong_batch_axis", lambda q, k: q @ k.T),
        ("variance_of_scores", "std_instead_of_variance", lambda q, k: (q @ k.T).std(ddof=1)),
        ("masked_attention", "swapped_query_key", lambda q, k, v, m=None: right(k, q, v, m)),
        ("output_of_she", "rounded_weights", lambda: [0.9, 0.04]),
        ("entropy", "zero_times_log_zero", lambda w: -np.sum(w * np.log(w), axis=-1)),
        ("entropy", "log2_instead_of_ln", lambda w: np.sum(w * np.log2(1 / np.maximum(w, 1e-300)), axis=-1)),
    ],
)
def test_a_students_own_code_is_named_in_the_other_exercises(exercise, id, answer):
    verdict = EXERCISES[exercise](answer() if not EXERCISES[exercise].answer_is_code else answer)
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict


def masked_exp(s, m, top=lambda s: s.max(-1, keepdims=True)):
    return np.exp(s - top(s)) * (1 if m is None else m)


def sm(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def standard(x):
    return (x - mean(x, -1)) / x.std(-1, keepdims=True)


def mean(x, axis):
    return x.mean(axis=axis, keepdims=True)


def unasked_mask(q, k, v, m=None):
    return al.softmax(np.where(m, q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5, -np.inf)) @ v


def a_mask_for_each(q, k, v, m=None):
    """Right where a mask has as many axes as the queries."""
    if m is None or q.ndim == 2:
        return right(q, k, v, m)
    return np.stack(
        [a_mask_for_each(*x) for x in zip(q, k, v, np.broadcast_to(m, (len(q), *m.shape[1:])), strict=True)]
    )


def nan_rows(becomes):
    """NaN rows replaced by `becomes(row of weights, values)`."""

    def attention(q, k, v, m=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = s if m is None else np.where(m, s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
        return becomes(w, v)

    return attention


def uniform(w, v):
    return np.where(np.isnan(w), 1 / w.shape[-1], w) @ v


def mean_of_values(w, v):
    out = w @ v
    return np.where(np.isnan(out), v.mean(axis=-2, keepdims=True), out)


def filled(fill, scores, mask):
    """Give blocked scores a number, and set their weights to 0 as well."""
    if mask is None:
        return al.softmax(scores)
    return al.softmax(np.where(mask, scores, fill)) * mask


def filled_layer(fill):
    def remember(self, scores, mask):
        self.mask = mask
        return scores.masked_fill(~mask, fill)

    def softmax(self, scores):
        mask, self.mask = getattr(self, "mask", None), None
        return scores.softmax(-1) if mask is None else scores.softmax(-1) * mask

    return layer(fill=remember, softmax=softmax)


def as_in_tutorials(self, query, key=None, value=None, *, attn_mask=None):
    """Axis 0 is always the batch."""
    key = query if key is None else key
    value = key if value is None else value
    layers = zip((self.W_Q, self.W_K, self.W_V), (query, key, value), strict=True)
    q, k, v = (f(x).reshape(x.size(0), -1, self.h, self.d // self.h).transpose(1, 2) for f, x in layers)
    scores = q @ k.transpose(-1, -2) / self.divisor()
    if attn_mask is not None:
        scores = self.fill(scores, attn_mask if attn_mask.ndim == 2 else attn_mask[:, None])
    weights = self.softmax(scores)
    return self.W_O((weights @ v).transpose(1, 2).reshape(query.size(0), -1, self.d)), weights


def with_mask(line):
    """Return multi-head attention that changes its mask `m` by a line."""

    def attention(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
        q, k, v = (al.split_heads(x, h) for x in (query @ W_Q, key @ W_K, value @ W_V))
        return al.merge_heads(right(q, k, v, m if m is None else eval(line, {"m": m}))) @ W_O

    return attention


def refused(line):
    """Return the same by attnlib's own attention, which refuses a mask that does not fit the scores."""

    def attention(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
        q, k, v = (al.split_heads(x, h) for x in (query @ W_Q, key @ W_K, value @ W_V))
        mask = m if m is None else eval(line, {"m": m})
        return al.merge_heads(al.scaled_dot_product_attention(q, k, v, mask)) @ W_O

    return attention


def one_head(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
    """Attend once over the whole width, divided by the root of what the width of a head would be."""
    scores = (query @ W_Q) @ np.swapaxes(key @ W_K, -1, -2) / (W_Q.shape[-1] / h) ** 0.5
    return al.softmax(scores if m is None else np.where(m, scores, -np.inf)) @ (value @ W_V) @ W_O


def only_batches(self, query, key=None, value=None, *, attn_mask=None):
    _b, _n, _d = query.shape
    return Layer.forward(self, query, key, value, attn_mask=attn_mask)


OPPOSITE = np.roll(np.eye(4), 2, axis=1)
BESIDE = 1 - np.eye(4) - OPPOSITE
BACK = np.arange(8)[:, None] - np.arange(8)
NEAR, FAR = (BACK >= 0) & (BACK < 3), np.isin(BACK, (0, 3, 6))


def window(line):
    return lambda n, m, w: eval(line, {"back": np.arange(m - n, m)[:, None] - np.arange(m), "w": w})


def tiled(x, times):
    return np.concatenate([x] * times, axis=-3)


def repeated(x, times):
    return np.repeat(x, times, axis=-3)


def first_only(x, times):
    return np.repeat(x[..., :1, :, :], times * x.shape[-3], axis=-3)


def grouped(spread=repeated, values=None, mask=lambda mask, n_q, n_k: mask):
    def grouped(q, k, v, attn_mask=None, attention=al.scaled_dot_product_attention):
        times = q.shape[-3] // k.shape[-3]
        return attention(q, spread(k, times), (values or spread)(v, times), mask(attn_mask, q.shape[-2], k.shape[-2]))

    return grouped


def by_number(q, k, v, attn_mask=None, attention=al.scaled_dot_product_attention):
    serving = [i // k.shape[-3] for i in range(q.shape[-3])]
    return attention(q, k[..., serving, :, :], v[..., serving, :, :], attn_mask)


def unscaled(query, key, value, attn_mask=None):
    times = len(query) // len(key)
    scores = query @ np.repeat(key, times, axis=0).swapaxes(-1, -2)
    return al.softmax(np.where(attn_mask, scores, -np.inf)) @ np.repeat(value, times, axis=0)


def decode(
    k="np.concatenate([past[0], key], axis=1)",
    v="np.concatenate([past[1], value], axis=1)",
    mask="np.tri(n, k.shape[1], k.shape[1] - n, dtype=bool)",
    back="(output, (k, v))",
    attend="attention(query, k, v, mask)",
):
    """Return a step of decoding from the lines a student would write."""

    def step(query, key, value, past, attention):
        names = {"np": np, "query": query, "key": key, "value": value, "past": past, "n": query.shape[1]}
        names.update(attention=attention, unscaled=unscaled, another=another)
        names["k"], names["v"] = eval(k, names), eval(v, names)
        names["mask"] = eval(mask, names)
        names["output"] = eval(attend, names)
        return eval(back, names)

    return step


def keeps(agreed="i == m or draft[i] != chosen[i]", new="[*draft[:i], chosen[i]]", rows="n - (m - i)"):
    """Return what accepts drafts with lines of a student: where to stop, which tokens, how many rows of the cache."""

    def accept(logits, draft, past):
        names = {
            "draft": draft,
            "chosen": logits.argmax(-1).tolist(),
            "m": len(draft),
            "n": past[0][0].shape[1],
            "i": 0,
        }
        names["equal"] = [a == b for a, b in zip(draft, names["chosen"], strict=False)]
        while not eval(agreed, names):
            names["i"] += 1
        kept = slice(eval(rows, names))
        return eval(new, names), [(keys[:, kept], values[:, kept]) for keys, values in past]

    return accept


def back_by(*distances):
    def measure(weights, tokens):
        return sum(np.diagonal(weights, -by, axis1=-2, axis2=-1).sum((0, -1)) for by in distances)

    return measure


def on_what_comes_next(weights, tokens):
    comes = tokens[:, 1:, None] == tokens[:, None, :]  # (b, n - 1, n)
    return (weights[:, :, :-1] * comes[:, None]).sum(-1).mean((0, -1))


def patched(bare=lambda x, w: x - w, order="queries keys values", others=False):
    """Return the experiment of 8.1 with one thing other than it should be."""
    return lambda layer, x, w, part: layer(*(bare(x, w) if (part == name) != others else x for name in order.split()))


def silenced(where, keep=False):
    """Write 0 into a part of W_O, or into all but this part, in a learner's way."""

    def without_head(W_O, head, num_heads):
        part = np.zeros(W_O.shape, bool)
        part[where(head, len(W_O) // num_heads, num_heads)] = True
        return np.where(part ^ keep, 0, W_O)

    return without_head


# exercise, what is named (None: nothing), the answer, and perhaps what the verdict says, and what it does not say
MASKED, CROWD, OTHER_AXES = "masked_attention", "scores_of_the_crowd", "padding_on_other_axes"
ACCEPT = "accept_draft"
WEIGHTS, WISHES = "weights_of_she", "what_words_look_for"
SCORES = np.array([[2.0, 3, 0, 2], [1, 0, 1, 0], [0, 3, 0, 0], [5, 0, 3, 2]])  # of the sentence
POWERS_OF_2 = 2 ** (SCORES[3] / 3**0.5) / (2 ** (SCORES[3] / 3**0.5)).sum()


def cosine(q, k):
    return (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T


def kept(rule):
    """Return kept_keys by a rule of how far back a key lies, its number, the window and the sink."""
    return lambda n_q, n_k, w, s: rule(np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k), np.arange(n_k), w, s)


def finite_top(s):
    """Return the maximum of each row, 0 where all is blocked."""
    return np.nan_to_num(s.max(axis=-1, keepdims=True), neginf=0)


ROWS = {
    # --- what any function can have
    "2.1 logarithms": ("softmax", "function_of_result", lambda x, axis=-1: np.log(sm(x, axis))),
    "2.2 the past": ("attention_scores", "part_of_result", lambda q, k: np.tril(q @ np.swapaxes(k, -1, -2))),
    "2.3 mean over the keys": (A, "factor", lambda q, k, v: right(q, k, v) / k.shape[-2]),
    "2.3 one number": (A, "axis_added_up", lambda q, k, v: right(q, k, v).sum(-1)),
    "3.2 epsilon": ("entropy", "nearly_right", lambda w: -(w * np.log(w + 1e-4)).sum(-1)),
    "2.3 random": (A, "another_each_time", lambda q, k, v: right(q, k, v) + np.random.default_rng().normal(size=2)),
    "2.3 the values cubed": (A, "another_output", lambda q, k, v: right(q, k, v**3)),
    "2.3 a shape": (A, None, lambda q, k, v: right(q, k, v)[..., ::2, ::2]),
    "2.3 axes": (A, None, lambda q, k, v: q @ v),
    "5.1 -1e9": ("padding_mask", "mask_as_numbers", lambda n, n_k: np.where(al.padding_mask(n, n_k), 0, -1e9)),
    "5.1 one short": ("padding_mask", "hides_too_much", lambda n, n_k: al.padding_mask(n, n_k) & (np.arange(n_k) != 1)),
    "5.1 one more": ("padding_mask", "shows_too_much", lambda n, n_k: al.padding_mask(n, n_k) | (np.arange(n_k) == 1)),
    "5.1 NaN": ("padding_mask", None, lambda n, n_k: np.where(al.padding_mask(n, n_k), np.nan, np.nan)),
    "5.2 None": ("causal_mask", "none_not_handled", lambda n, n_k=None: np.tri(n, n_k, n_k - n, dtype=bool)),
    "5.4 causal, the mask dropped": (
        "masked_attention",
        "causal_mask_added",
        lambda q, k, v, m=None: right(q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool)),
    ),
    "6.1 a float": ("split_heads", "float_as_size", lambda x, h: x.reshape(*x.shape[:-1], h, x.shape[-1] / h)),
    # --- 09: a head taken away, a scale mended, a place to park
    "rows": ("without_head", "rows_silenced", silenced(lambda h, d, n: np.s_[h * d : h * d + d]), "block of columns"),
    "every third": (
        "without_head",
        "head_columns_interleaved",
        silenced(lambda h, d, n: np.s_[:, h::n]),
        "side by side",
    ),
    "n wide": (
        "without_head",
        "block_as_wide_as_heads",
        silenced(lambda h, d, n: np.s_[:, h * n : h * n + n]),
        "d_model / h",
    ),
    "32 wide": (
        "without_head",
        "width_of_minilm",
        silenced(lambda h, d, n: np.s_[:, h * 32 : (h + 1) * 32]),
        "as in MiniLM. Here a head has d_model / h",
    ),
    "as wide as the layer": ("without_head", None, silenced(lambda h, d, n: np.s_[:, h * d * n : (h + 1) * d * n])),
    "others": (
        "without_head",
        "only_that_head_kept",
        silenced(lambda h, d, n: np.s_[:, h * d : h * d + d], keep=True),
        "add nothing",
    ),
    "from 1": (
        "without_head",
        "heads_counted_from_one",
        silenced(lambda h, d, n: np.s_[:, (h - 1) * d : h * d]),
        "head 0 is the first",
    ),
    "1.1 reversed": ("key_of_anna", "turned_round", [0, 1, 1], "reverse order"),
    "1.2 by d_k": ("scores_of_she", "scale_by_d_k", [5 / 3, 0, 1, 2 / 3]),
    "1.3 reversed": ("weights_of_she", "turned_round", [0.0418, 0.1136, 0.0057, 0.8391], "reverse order"),
    "1.3 per cent, all digits": ("weights_of_she", "in_per_cent", 100 * al.softmax(np.array([5.0, 0, 3, 2]))),
    "1.4 reversed": ("output_of_she", "turned_round", right(*SENTENCE.project())[3, ::-1]),
    "8.2 coin flip": ("bag_accuracy", "majority_as_coin_flip", 0.625, "equally likely to be the answer", "0.75"),
    "8.2 per cent": ("bag_accuracy", "accuracy_in_per_cent", 75, "a share: of 1", "0.75"),
    "8.3 the diagonal": (
        "induction_measure",
        None,
        lambda w, t: np.diagonal(w, axis1=-2, axis2=-1).mean((0, -1)),
        "the induction head is",
        "evenly",
    ),
    "8.3 evenly": ("induction_measure", "broadest_head_measured", lambda w, t: al.entropy(w).mean((0, -1)), "evenly"),
    "8.3 7 back": ("induction_measure", "fixed_distance_measured", back_by(7), "fixed number", "copy itself"),
    "8.3 11 back": ("induction_measure", "fixed_distance_measured", back_by(11), "fixed number", "copy itself"),
    "8.3 period 8": ("induction_measure", "fixed_distance_measured", back_by(7, 15), "fixed number", "copy itself"),
    "8.1 keys and values exchanged": (
        "patch",
        "wrong_part_patched",
        patched(order="queries values keys"),
        "another part",
    ),
    "8.1 always the keys": ("patch", "part_ignored", lambda layer, x, w, part: layer(x, x - w, x), "one answer"),
    "8.1 the others": ("patch", "other_parts_patched", patched(others=True), "is enough"),
    "8.1 all three": ("patch", "every_part_patched", lambda layer, x, w, part: layer(x - w, x - w, x - w), "all three"),
    "8.1 x as it is": ("patch", "nothing_patched", lambda layer, x, w, part: layer(x, x, x), "its own input"),
    "8.1 written": ("patch", "written_alone", patched(lambda x, w: w), "nothing else"),
    "8.1 added": ("patch", "written_twice", patched(lambda x, w: x + w), "once more"),
    "8.1 zeros": ("patch", "everything_taken_away", patched(lambda x, w: np.zeros_like(x)), "zeros"),
    "8.1 another sequence": ("patch", "batch_mixed", patched(lambda x, w: (x - w)[::-1]), "another sequence"),
    "8.1 the mean": ("patch", "batch_mixed", patched(lambda x, w: x - w.mean(axis=0, keepdims=True)), "a mean"),
    "8.1 the first": ("patch", "batch_mixed", patched(lambda x, w: x - w[0]), "another sequence"),
    "8.3 next": ("induction_measure", "next_letter_measured", on_what_comes_next, "No head can know", "copy itself"),
    "384 / 32": ("divisor_repair", "root_of_ratio_forgotten", 384 / 32, "12 is 384/32", "by d_model"),
    "1 / sqrt(12)": ("divisor_repair", "repair_inverted", 0.2887, "too small"),
    "1 / 12": ("divisor_repair", "inverse_of_the_ratio", 1 / 12, "the root of a ratio", "12 is 384/32"),
    "sqrt(384)": ("divisor_repair", "scale_undone", 19.5959, "trained with a scale"),
    "score 4": ("parking_place", "no_room_to_park", [4, 0], "stays on the words"),
    "a word's value": ("parking_place", "parked_on_a_long_value", [7, 1], "up to 1.000 long"),
    "a value as short as the limit": (
        "parking_place",
        "words_add_too",
        [7, 0.1],
        "words keep a part",
        "not counted the value",
    ),
    "as high as a match": ("parking_place", "parking_drowns_the_match", [10, 0.01], "less than 0.9"),
    # --- named wrongly
    "NaN -> uniform": (
        MASKED,
        "finite_fill",
        nan_rows(uniform),
        "so do equal weights in the place of NaN",
        "behaves as if blocked",
    ),
    "NaN -> mean of values": (MASKED, "finite_fill", nan_rows(mean_of_values), "as if scores that are all blocked"),
    "no scale if all is allowed": (
        MASKED,
        "another_branch",
        lambda q, k, v, m=None: right(q * ((m is not None and m.all() and k.shape[-1] ** 0.5) or 1), k, v, m),
        "a mask that allows everything",
    ),
    "fill 1e-9": (MASKED, "mask_multiplies_scores", student(mask="np.where(m, s, 1e-9)"), "1e-9"),
    "fill 1e-9, 5.3": ("masked_softmax", "mask_multiplies_scores", masked_softmax(1e-9), "behaves as if"),
    "0 times inf": (MASKED, "zero_times_infinity", student(mask="s * m + (1 - m) * -np.inf"), "NaN"),
    "masked after exp": (
        "masked_softmax",
        "unstable_softmax",
        lambda s, m=None: (e := np.exp(s) * (1 if m is None else m)) / e.sum(-1, keepdims=True),
        "A second thing to mend: a query that may attend to no key gets NaN",
    ),
    "masked after exp, dead rows": (
        "masked_softmax",
        "unstable_softmax",
        lambda s, m=None: (e := np.exp(s) * (1 if m is None else m)) / np.where((z := e.sum(-1)[..., None]) == 0, 1, z),
        "",
        "A second thing",
    ),
    "5.3 fill -1e4": (
        "masked_softmax",
        "fill_not_low_enough",
        lambda s, m=None: filled(-1e4, s, m),
        "does not give it back",
        "no key attends",
    ),
    "5.3 fill -10": ("masked_softmax", "fill_not_low_enough", lambda s, m=None: filled(-10, s, m)),
    "5.4 fill -1e4": (
        "masked_attention",
        "fill_not_low_enough",
        lambda q, k, v, m=None: filled(-1e4, q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5, m) @ v,
    ),
    "6.4 fill -1e4": (MODULE, "fill_not_low_enough", filled_layer(-1e4)),
    "6.4 as in tutorials": (MODULE, "fixed_number_of_axes", layer(forward=as_in_tutorials), "must match the size"),
    "6.1 as in tutorials": (
        "split_heads",
        "fixed_number_of_axes",
        lambda x, h: x.reshape(len(x), -1, h, x.shape[-1] // h).swapaxes(1, 2),
        "one axis is taken for another",
        "raises",
    ),
    "6.4 every mask [:, None]": (
        MODULE,
        "mask_always_three_axes",
        layer(fill=lambda self, s, m: s.masked_fill(~(m[:, None] if m.ndim == 2 else m), -np.inf)),
        "goes in as it is",
    ),
    "5.3 masked, divided": (
        "masked_softmax",
        "mask_renormalised",
        lambda s, m=None: (e := masked_exp(s, m)) / (e.sum(-1, keepdims=True) + 1e-9),
        "they take all of it",
    ),
    "5.3 masked, divided, dead rows": (
        "masked_softmax",
        "mask_renormalised",
        lambda s, m=None: (e := masked_exp(s, m)) / np.where((z := e.sum(-1, keepdims=True)) == 0, 1, z),
        "blocked keys with scores near 1e4",
    ),
    "5.4 masked, divided": (
        MASKED,
        "mask_renormalised",
        student(mask="s", softmax="(e := al.softmax(s) * (1 if m is None else m)) / (e.sum(-1)[..., None] + 1e-9)"),
    ),
    "3.1 squares": ("variance_of_scores", "mean_of_squares", lambda q, k: ((q @ k.T) ** 2).mean(), "about the mean"),
    "3.1 rows first": (
        "variance_of_scores",
        "mean_of_row_variances",
        lambda q, k: (q @ k.T).var(axis=1).mean(),
        "lost",
    ),
    "3.1 rows first, one by one": (
        "variance_of_scores",
        "mean_of_row_variances",
        lambda q, k: statistics.mean(statistics.variance(map(float, row)) for row in q @ k.T),
        "about its own mean",
    ),
    "3.1 row by row": (
        "variance_of_scores",
        "matching_pairs_only",
        lambda q, k: (q * k).sum(-1).var(),
        "query i with key i",
    ),
    "3.1 diagonal": ("variance_of_scores", "matching_pairs_only", lambda q, k: np.diag(q @ k.T).var(), "may be"),
    "3.1 zip": (
        "variance_of_scores",
        "matching_pairs_only",
        lambda q, k: np.var([a @ b for a, b in zip(q, k, strict=False)]),
    ),
    "3.1 the first query": ("variance_of_scores", None, lambda q, k: np.var(q[0] @ k.T), "Tried on", "as if"),
    "3.1 d_k, as theory has it": ("variance_of_scores", "argument_ignored", lambda q, k: float(q.shape[-1]), "`query`"),
    "2.1 a loop over rows": ("softmax", "argument_ignored", lambda x, axis=-1: al.softmax(x, -1), "`axis`"),
    "2.2 over d_k": (
        "attention_scores",
        "factor",
        lambda q, k: q @ np.swapaxes(k, -1, -2) / q.shape[-1],
        "times the right",
    ),
    "2.3 an eighth": (
        "scaled_dot_product_attention",
        "another_scale",
        lambda q, k, v: al.softmax(q @ np.swapaxes(k, -1, -2) / 8) @ v,
        "0.2165 times",
    ),
    "5.3 a mask as an index": (
        "masked_softmax",
        "mask_as_index",
        lambda s, m=None: al.softmax(s if m is None else (x := s.copy()).__setitem__(~m, -np.inf) or x),
        "np.where(mask, scores, -np.inf)",
    ),
    "5.3 in place, behind a mask": (
        "masked_softmax",
        "mutates_input",
        lambda s, m=None: al.softmax(s if m is None else np.copyto(s, -np.inf, where=~m) or s),
    ),
    "5.4 the first row of the mask for all": (
        "masked_attention",
        "another_mask",
        lambda q, k, v, m=None: al.scaled_dot_product_attention(q, k, v, m if m is None else m[..., :1, :]),
        "Without a mask your weights are right",
    ),
    "6.1 backwards": (
        "split_heads",
        "rearranged",
        lambda x, h: np.swapaxes(x.reshape(*x.shape[:-1], h, -1), -2, -3)[..., ::-1, :, :],
    ),
    "9.2 a column too many": (
        "without_head",
        None,
        lambda W, h, n: np.where(abs(np.arange(len(W)) - (h + 0.5) * len(W) // n) <= len(W) // n / 2, 0, W),
        "First difference",
    ),
    "11.1 without brackets": (
        "window_mask",
        "array_as_condition",
        lambda n, m, w: 0 <= np.arange(m - n, m)[:, None] - np.arange(m) < w,
        "with brackets, compares entries",
    ),
    "14.1 nothing but NaN": (
        "online_softmax",
        None,
        lambda blocks: sum((s * 0 - np.inf + np.inf) @ v for s, v in blocks),
        "The first NaN arises here",
        "as if",
    ),
    "3.2 keepdims": (
        "entropy",
        "rearranged",
        lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(-1, keepdims=True),
        "shape (4, 1), expected (4,)",
    ),
    "3.2 an axis in front": ("entropy", "rearranged", lambda w: al.entropy(w)[None], "shape (1, 4)"),
    "3.3 a factor and the root": ("uniform_divisor", "factor_and_root_forgotten", 12, "or a root"),
    "3.3 a list": ("uniform_divisor", None, [2.0], "without brackets", "shape"),
    "5.3 no maximum, NaN to 0": (
        "masked_softmax",
        "unstable_softmax",
        lambda s, m=None: np.nan_to_num(
            (e := np.exp(s if m is None else np.where(m, s, -np.inf))) / e.sum(-1, keepdims=True)
        ),
    ),
    "5.1 one less": ("padding_mask", "hides_too_much", lambda n, n_k: np.arange(n_k) < n[:, None, None] - 1),
    "5.1 axes in front": ("padding_mask", "row_for_a_column", lambda n, n_k: np.arange(n_k) < n[None, None, :]),
    "5.1 no column": ("padding_mask", "row_for_a_column", lambda n, n_k: np.arange(n_k) < n, "axis of size 1"),
    "5.2 no column": (
        "causal_mask",
        "row_for_a_column",
        lambda n_q, n_k=None: np.arange(n_k or n_q) <= np.arange((n_k or n_q) - n_q, n_k or n_q),
        "axis of size 1",
    ),
    "5.2 no column, upper left": (
        "causal_mask",
        "row_for_a_column",
        lambda n_q, n_k=None: np.arange(n_k or n_q) <= np.arange(n_q),
    ),
    # --- told wrongly
    "1.3 scaled": (WEIGHTS, "scaled_already", al.softmax(np.array([5, 0, 3, 2]) / 3**0.5), "paler", "every number"),
    "1.4 not scaled": ("output_of_she", "no_scale", [1.451, 0.0057], "too sharp"),
    "1.3 shares": (WEIGHTS, "no_exponential", [0.5, 0, 0.3, 0.2], "they look right", "there are negative"),
    "5.1 inverted": (
        "padding_mask",
        "mask_inverted",
        lambda n, n_k: ~al.padding_mask(n, n_k),
        "A padding mask then shows nothing but padding",
        "every token looks",
    ),
    "negative weights": (
        A,
        "weights_no_shares",
        student(softmax="2 * al.softmax(s) - 0.2"),
        "should be positive",
        "yours sum to 1",
    ),
    "6.3 no head axis": (M, "mask_without_head_axis", multi_head(mask="m"), "head axis", "counts axes"),
    # --- common
    "2.1 over everything": ("softmax", "softmax_over_everything", lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x))),
    "2.3 over everything": (A, "softmax_over_everything", student(softmax="np.exp(s) / np.sum(np.exp(s))")),
    "2.1 mean": (
        "softmax",
        "maximum_missed",
        lambda x, axis=-1: sm(x - mean(x, axis), axis),
        "such as its mean",
        "-inf",
    ),
    "2.1 min": (
        "softmax",
        "maximum_missed",
        lambda x, axis=-1: sm(x - x.min(axis, keepdims=True), axis),
        "other than the maximum",
    ),
    "2.1 one maximum of all": (
        "softmax",
        "one_maximum_for_all",
        lambda x, axis=-1: sm(x - x.max(), axis),
        "of the whole array",
    ),
    "2.1 divided": (
        "softmax",
        "divided_by_maximum",
        lambda x, axis=-1: sm(x / x.max(axis=axis, keepdims=True), axis),
        "divides the scores by their maximum",
    ),
    "2.2 softmax, too": (
        "attention_scores",
        "softmax_already",
        lambda q, k: al.softmax(q @ np.swapaxes(k, -1, -2)),
        "raw scores are asked for",
    ),
    "2.2 all but the values": (
        "attention_scores",
        "softmax_already",
        lambda q, k: al.softmax(q @ np.swapaxes(k, -1, -2) / k.shape[-1] ** 0.5),
    ),
    "2.3 key.shape[1]": (A, "scale_by_first_axis", student(scale="np.sqrt(k.shape[1])"), "axis 1"),
    "2.3 one maximum of all": (
        A,
        "one_maximum_for_all",
        student(softmax="(e := np.exp(s - s.max())) / e.sum(-1)[..., None]"),
    ),
    "2.1 no axis": ("softmax", "axis_and_overflow", lambda x, axis=-1: sm(x), "still give NaN"),
    "2.1 no axis, maximum of all": ("softmax", "axis_and_overflow", lambda x, axis=-1: sm(x - x.max())),
    "2.1 no keepdims, maximum": (
        "softmax",
        "keepdims_forgotten",
        lambda x, axis=-1: sm(x - x.max(axis=axis), axis),
        "has lost that axis",
        "is divided by",
    ),
    "2.2 swapaxes(0, 1)": ("attention_scores", "wrong_batch_axis", lambda q, k: q @ np.swapaxes(k, 0, 1)),
    "5.4 np.where of None": (MASKED, "no_mask_blocks_all", unasked_mask, "None counts as False"),
    "5.4 if attn_mask": (
        MASKED,
        "array_as_condition",
        lambda q, k, v, m=None: right(q, k, v, m if m else None),
        "`if x is not None`",
    ),
    "2.4 first typed": (
        "example_that_tells",
        "nothing_let_through",
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1], [2]]],
        "It lets through: none",
    ),
    "2.4 two tokens": ("example_that_tells", "swap_let_through", [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[1], [2]]]),
    "2.4 square V": ("example_that_tells", "d_v_equals_d_k", [np.eye(3), np.roll(np.eye(3), 1, 0), np.eye(3)]),
    "2.1 keepdims": ("softmax", "keepdims_forgotten", lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis)),
    "2.1 keepdims, maximum": (
        "softmax",
        "keepdims_forgotten",
        lambda x, axis=-1: (e := np.exp(x - x.max(axis=axis))) / e.sum(axis=axis),
    ),
    "2.3 keepdims": (A, "keepdims_forgotten", student(softmax="(e := np.exp(s - s.max())) / e.sum(axis=-1)")),
    "1.1 saw": ("key_of_anna", "wrong_token", [0, 0, 1], "another token"),
    "1.1 query": ("key_of_anna", "wrong_projection", [0, 2, 3], "another matrix"),
    "1.1 a name alone, or Ben": ("key_of_anna", "feature_or_token", [1, 0, 0], "or it belongs to another token"),
    "1.1 female alone, or she": ("key_of_anna", "feature_or_token", [0, 1, 0], "female alone is the key of she"),
    "1.1 no matrix": ("key_of_anna", None, [1, 0, 1], "First difference at [1]"),  # x[0][:3]
    "1.1 column": ("key_of_anna", "column_instead_of_row", [1, 0, 1, 0], "All features of one token are a row"),
    "1.2 row 2": ("scores_of_she", "counted_from_one", [0, 3, 0, 0], "counted from 0"),
    "1.2 row 0": ("scores_of_she", "wrong_token", [2, 3, 0, 2]),
    "1.2 column, or a feature": ("scores_of_she", "feature_or_column", [2, 0, 0, 2], "left out, or queries and keys"),
    "1.2 queries": ("scores_of_she", "query_met_others", [4, 3, 0, 13], "a row of Q with a row of K", "another W"),
    "1.2 likeness": ("scores_of_she", "query_met_others", [1, 0, 0, 2]),
    "1.2 names alone": ("scores_of_she", "feature_left_out", [3, 0, 3, 0]),
    "1.3 row 2": (WEIGHTS, "counted_from_one", [0.0433, 0.8701, 0.0433, 0.0433], "she is token 3"),
    "1.3 columns": (WEIGHTS, "softmax_over_queries", al.softmax(SCORES, axis=0)[3], "columns sum to 1"),
    "1.3 powers of 2": (
        WEIGHTS,
        "powers_of_two",
        [32 / 45, 1 / 45, 8 / 45, 4 / 45],
        "e = 2.72 times",
        "no exponential",
    ),
    "1.4 powers of 2": ("output_of_she", "powers_of_two", POWERS_OF_2 @ [[2, 0], [0, 1], [-2, 0], [0, 0]], "pale"),
    "1.4 d_in": ("output_of_she", "scale_by_embed_dim", [0.5975, 0.0698], "width of the tokens"),
    "1.4 no exp": ("output_of_she", "no_exponential", [0.4, 0], "without exp"),
    "1.4 two digits": ("output_of_she", None, [0.88, 0.04], "give more digits", "four"),
    "1.3 exp(0) = 0": (WEIGHTS, "exp_of_zero", [0.8438, 0, 0.1142, 0.042], "gets no weight", "give more digits"),
    "1.4 exp(0) = 0": ("output_of_she", "exp_of_zero", [0.918, 0], "exp(0) were 0"),
    "1.4 all for Anna": ("output_of_she", "argmax_instead_of_softmax", [2, 0], "largest score"),
    "1.3 all for Anna": (WEIGHTS, "argmax_instead_of_softmax", [1, 0, 0, 0], "nothing is mixed", "gradient"),
    "1.4 exchanged": ("output_of_she", "swapped_query_key", [0.5208, 0.1198], "changed places"),
    "1.5 W_K": (WISHES, "looks_for_itself", SENTENCE.W_K, "wanted: saw", "less than"),
    "1.5 as in the text": (WISHES, "any_name", SENTENCE.W_Q, "saw cannot decide between Anna and Ben (wanted: Ben)."),
    "1.5 a rival close behind": (
        WISHES,
        "wish_too_faint",
        [[0, 0, 6], [0] * 3, [0] * 3, [8, -2, 0], [6, 6, 0], [0] * 3],
        "distance to the next score",
        "too short",
    ),
    "1.5 no name": (
        WISHES,
        "looks_for_nothing",
        [[0] * 3, [0] * 3, [0] * 3, [6, -6, 0], [6, 6, 0], [0] * 3],
        "Anna takes from all words alike",
        "gives",
    ),
    "1.5 who saw": (WISHES, "subject_for_object", [[0, 0, 6], [0] * 3, [0] * 3, [6, 6, 0], [6, 6, 0], [0] * 3]),
    "1.5 the last row": (
        WISHES,
        None,
        [[0, 0, 6], [0] * 3, [0] * 3, [6, -6, 0], [6, 6, 0], [6, 0, 0]],
        "Rows 0 to 4 alone would be right. Row 5 goes into the queries of Anna and Ben",
        "as if",
    ),
    "1.5 a last row that does not matter": (
        WISHES,
        None,
        [[0, 0, 6], [0] * 3, [0] * 3, [0, 0, 6], [6, 6, 0], [6, 0, 0]],
        "saw finds saw (wanted: Ben).",
        "Row 5",
    ),
    "2.2 reshaped": (
        "attention_scores",
        "key_reshaped",
        lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]),
        "numbers of several keys",
    ),
    "2.3 reshaped": (
        A,
        "key_reshaped",
        lambda q, k, v: al.softmax(q @ k.reshape(*k.shape[:-2], *k.shape[:-3:-1]) / q.shape[-1] ** 0.5) @ v,
    ),
    "2.3 shape[0]": (A, "scale_by_first_axis", student(scale="q.shape[0] ** 0.5"), "counted from the front", "axis 1,"),
    "2.3 d_k**1/2": (A, "half_for_root", student(scale="q.shape[-1]**1/2"), "In Python the power comes first"),
    "2.3 / d_k**1/2": (A, "half_for_root", student(scale="q.shape[-1] * 2"), "by d_k and by 2"),
    "4.4 d_k**1/2": (
        "SelfAttention",
        "half_for_root",
        type("S", (SelfAttention,), {"scale": lambda self, s: s / (self.W_Q.out_features**1 / 2)}),
    ),
    "1.4 d_k**1/2": (
        "output_of_she",
        "half_for_root",
        al.softmax(np.array([5, 0, 3, 2]) / 1.5) @ [[2, 0], [0, 1], [-2, 0], [0, 0]],
    ),
    "2.3 q * k": (A, "products_not_summed", lambda q, k, v: al.softmax(q * k / q.shape[-1] ** 0.5) @ v, "raises"),
    "2.2 q * k": ("attention_scores", "products_not_summed", lambda q, k: q * k),
    "3.2 small weights dropped": (
        "entropy",
        None,
        lambda w: -np.where(w > 1e-3, w * np.log(np.where(w > 1e-3, w, 1)), 0).sum(-1),
        "below 0.001",
    ),
    "3.2 log10": ("entropy", "factor", lambda w: -(w * np.log10(np.where(w > 0, w, 1))).sum(-1), "0.4343 times"),
    "2.3 causal": (
        A,
        "causal_mask_added",
        lambda q, k, v: right(q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool)),
        "nobody asked for",
    ),
    "4.4 causal": (
        "SelfAttention",
        "causal_mask_added",
        type(
            "S",
            (SelfAttention,),
            {
                "scale": lambda self, s: (s / s.new_tensor(self.W_Q.out_features) ** 0.5).masked_fill(
                    ~torch.ones(s.shape[-2:], dtype=bool).tril(), -torch.inf
                )
            },
        ),
    ),
    "5.3 causal": (
        "masked_softmax",
        "causal_mask_added",
        lambda s, m=None: al.softmax(np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)),
    ),
    "5.4 causal, too": (
        MASKED,
        "causal_mask_added",
        lambda q, k, v, m=None: right(
            q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool) & (True if m is None else m)
        ),
    ),
    "5.4 over queries behind a mask": (
        MASKED,
        "softmax_over_queries",
        student(softmax="al.softmax(s, -1 if m is None else -2)"),
    ),
    "5.4 another root behind a mask": (
        MASKED,
        "scale_by_d_v",
        student(mask="np.where(m, s * (q.shape[-1] / v.shape[-1]) ** 0.5, -np.inf)"),
    ),
    "5.4 divided again behind a mask": (
        MASKED,
        "scale_by_d_k",
        student(mask="np.where(m, s / q.shape[-1] ** 0.5, -np.inf)"),
    ),
    "5.4 0 times inf, then 0 for NaN": (
        MASKED,
        "zero_times_infinity",
        student(mask="np.nan_to_num(s + (1 - m) * -np.inf)"),
        "nan_to_num makes 0 of it",
    ),
    "5.4 0 times inf, 0 for NaN, -inf stays": (
        MASKED,
        "zero_times_infinity",
        student(mask="np.nan_to_num(s + (1 - m) * -np.inf, neginf=-np.inf)"),
    ),
    "5.4 0 times inf, weights 0 for NaN": (
        MASKED,
        "zero_times_infinity",
        student(mask="s + (1 - m) * -np.inf", softmax="np.nan_to_num(al.softmax(s))"),
    ),
    "5.3 0 for the scores": (
        "masked_softmax",
        "zero_times_infinity",
        lambda s, m=None: al.softmax(s if m is None else np.where(m, 0 * s, -np.inf)),
        "has 0 where the scores",
    ),
    "5.3 1e-6 in the sum": (
        "masked_softmax",
        None,
        lambda s, m=None: (
            (e := masked_exp(s if m is None else np.where(m, s, -np.inf), None, finite_top))
            / (e.sum(-1, keepdims=True) + 1e-6)
        ),
        "has the weight 1; yours is 0.999999. Is something added to the sum?",
        "as if",
    ),
    "5.2 numbers at the upper left": (
        "causal_mask",
        "mask_as_numbers + causal_upper_left",
        lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q))),
        "Two mistakes",
    ),
    "5.2 integers at the upper left": (
        "causal_mask",
        "mask_as_numbers + causal_upper_left",
        lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q), int)),
    ),
    "1.3 exp, one decimal": (WEIGHTS, "exp_not_divided", [148.4, 1, 20.1, 7.4], "", "more digits"),
    "1.3 exp, two decimals": (WEIGHTS, "exp_not_divided", [148.41, 1, 20.09, 7.39]),
    "1.3 exp, a slip": (WEIGHTS, None, [148.4, 1, 20.1, 7.5], "", "as if"),
    "1.4 no scale, one decimal": ("output_of_she", None, [1.5, 0.0], "", "as if"),  # also that of other slips
    "3.2 mean": (
        "entropy",
        "entropy_divided",
        lambda w: -(w * np.log(np.where(w > 0, w, 1))).mean(-1),
        "by their number",
    ),
    "3.2 from 0 to 1": (
        "entropy",
        "entropy_divided",
        lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(-1) / np.log(w.shape[-1]),
        "by its logarithm",
    ),
    "3.2 logarithms alone": ("entropy", "weight_left_out", lambda w: -np.log(w).sum(axis=-1)),
    "3.2 logarithms alone, 0 left out": (
        "entropy",
        "weight_left_out",
        lambda w: -np.log(np.where(w > 0, w, 1)).sum(axis=-1),
        "without the weights in front",
    ),
    "3.4 queries alone": (
        "scores_in_range",
        "one_factor_counted",
        lambda q, k: q / q.std(-1, keepdims=True) @ k.T / q.shape[-1] ** 0.5,
    ),
    "3.4 keys alone": (
        "scores_in_range",
        "one_factor_counted",
        lambda q, k: q @ (k / k.std(-1, keepdims=True)).T / q.shape[-1] ** 0.5,
    ),
    "5.3 the mask added": (
        "masked_softmax",
        "mask_added_as_numbers",
        lambda s, m=None: al.softmax(s if m is None else s + m),
        "True adds 1",
    ),
    "5.4 the mask added": (MASKED, "mask_added_as_numbers", student(mask="s + m"), "no key is blocked"),
    "5.4 the mask transposed": (
        MASKED,
        "padding_masks_queries",
        lambda q, k, v, m=None: right(q, k, v, None if m is None else m.swapaxes(-1, -2)),
        "the mask is transposed",
        "lies along",
    ),
    "6.1 stacked": ("split_heads", "wrong_batch_axis", lambda x, h: np.stack(np.split(x, h, axis=-1))),
    "9.1 the model's divisor": ("divisor_repair", "old_divisor_kept", 32**0.5, "still divides"),
    "11.3 not itself": (
        "decode_step",
        "chunk_without_itself",
        decode(mask="np.tri(n, k.shape[1], k.shape[1] - n - 1, dtype=bool)"),
        "and not itself",
    ),
    "12.2 one too late": (
        "rotary_attention",
        "queries_misplaced",
        head(q="halves(norm(q, g_q), n_k - n_q + 1)"),
        "one beside it",
    ),
    "12.2 one too early": ("rotary_attention", "queries_misplaced", head(q="halves(norm(q, g_q), n_k - n_q - 1)")),
    "3.2 over everything": ("entropy", "entropy_over_queries", lambda w: -np.sum(w * np.log(w))),
    "3.2 Python's sum": ("entropy", "entropy_over_queries", lambda w: -sum(w * np.log(w))),
    "3.2 axis 0": ("entropy", "entropy_over_queries", lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(0)),
    "3.4 no root of d_k": (
        "scores_in_range",
        "root_of_d_k_left_out",
        lambda q, k: (q / (q**2).mean(-1, keepdims=True) ** 0.5) @ (k / (k**2).mean(-1, keepdims=True) ** 0.5).T,
        "the division by sqrt(d_k) is missing",
    ),
    "3.4 no root of d_k, standardised": (
        "scores_in_range",
        "root_of_d_k_left_out",
        lambda q, k: standard(q) @ standard(k).T,
        "about d_k",
    ),
    "3.4 divided by the spread": ("scores_in_range", CROWD, lambda q, k: (r := cosine(q, k)) / r.std(), "the sixth"),
    "3.4 spread of a row": (
        "scores_in_range",
        CROWD,
        lambda q, k: (r := cosine(q, k)) / r.std(-1, keepdims=True),
        "5 tokens, to which a sixth comes",
        "divides",
    ),
    "3.4 mean of a row": (
        "scores_in_range",
        CROWD,
        lambda q, k: (r := q.shape[-1] ** 0.5 * cosine(q, k)) - r.mean(-1, keepdims=True),
        "the sixth",
        "divides",
    ),
    "3.4 centred keys": (
        "scores_in_range",
        CROWD,
        lambda q, k: q.shape[-1] ** 0.5 * cosine(q, k - k.mean(0)),
        "the sixth",
        "divides",
    ),
    "4.2 a letter": ("other_head", None, "h", "the number that belongs to this letter", "without quotes"),
    "1.5 the verb's row": (
        WISHES,
        None,
        [[0, 0, 6], [0] * 3, [0] * 3, [0, 0, 6], [6, 6, 0], [0] * 3],
        "saw finds saw (wanted: Ben). Ben finds saw. she finds Anna.",
    ),
    "1.5 a name for all": (WISHES, "one_wish_for_all", [[1, 0, 0], [0] * 3, [0] * 3, [1, 0, 0], [1, 0, 0], [0] * 3]),
    "4.3 d_in": (
        "SelfAttention",
        "scale_by_embed_dim",
        as_module(
            lambda x, W_Q, W_K, W_V, m=None: (
                student(scale=str(x.shape[-1] ** 0.5))(x @ W_Q, x @ W_K, x @ W_V, m),
                student(scale=str(x.shape[-1] ** 0.5), rest="w")(x @ W_Q, x @ W_K, x @ W_V, m),
            ),
            "SelfAttention",
        ),
        "not of the vectors that the dot product multiplies",
        "every head you add",
    ),
    "2.2 np.dot, T": ("attention_scores", "dot_instead_of_matmul", lambda q, k: np.dot(q, k.T), "np.dot"),
    "2.2 np.dot": (
        "attention_scores",
        "dot_instead_of_matmul",
        lambda q, k: np.dot(q, np.swapaxes(k, -1, -2)),
        "np.dot",
    ),
    "2.2 transpose(0, 2, 1)": (
        "attention_scores",
        "fixed_number_of_axes",
        lambda q, k: q @ k.transpose(0, 2, 1),
        "fixed number of axes",
    ),
    "2.3 transpose(0, 2, 1)": (
        A,
        "fixed_number_of_axes",
        lambda q, k, v, m=None: right(q, np.zeros(()) + k.transpose(0, 2, 1).transpose(0, 2, 1), v, m),
    ),
    "2.2 einsum without batch": ("attention_scores", "fixed_number_of_axes", lambda q, k: np.einsum("qd,kd->qk", q, k)),
    "6.1 only batches": (
        "split_heads",
        "fixed_number_of_axes",
        lambda x, h: x.reshape(len(x), x.shape[1], h, x.shape[2] // h).transpose(0, 2, 1, 3),
    ),
    "6.1 d_k heads": (
        "split_heads",
        "sizes_of_heads_exchanged",
        lambda x, h: np.swapaxes(x.reshape(*x.shape[:-1], -1, h), -2, -3),
        "d_k heads of h numbers",
        "like cards",
    ),
    "6.2 only batches": (
        "merge_heads",
        "fixed_number_of_axes",
        lambda x: x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1),
    ),
    "6.2 a bare reshape": (
        "merge_heads",
        "merge_without_transpose",
        lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1),
        "pieces of different tokens",
    ),
    "6.2 the mean of the heads": ("merge_heads", "heads_averaged", lambda x: x.mean(-3), "side by side"),
    "6.3 no head axis, refused": (M, "mask_without_head_axis", refused("m"), "head axis", "goes in as it is"),
    "6.3 a misspelt mask, the other": (M, None, refused("m if m.ndim == 2 else maks"), "NameError", "head axis"),
    "6.3 one head": (
        M,
        "features_never_split",
        multi_head(split="x", merge="x", mask="m", scale="W_Q.shape[-1] ** 0.5"),
        "never cut",
    ),
    "6.3 one head, the scale of several": (M, "features_never_split", one_head, "never cut"),
    "6.3 sqrt(h)": (M, "scale_by_num_heads", multi_head(scale="h ** 0.5"), "number of heads"),
    "6.3 every mask [:, None]": (
        M,
        "mask_always_three_axes",
        with_mask("m[:, None]"),
        "goes in as it is",
        "fixed number",
    ),
    "6.3 a misspelt mask": (M, None, with_mask("m[:, None] if m.ndim == 3 else maks"), "NameError", "three axes"),
    "6.4 only batches": (MODULE, "fixed_number_of_axes", layer(forward=only_batches)),
    "no scale, -1e9": (
        MASKED,
        "no_scale + finite_fill",
        student(scale="1", mask="np.where(m, s, -1e9)"),
        "Two mistakes",
    ),
    "6.4 no scale, -1e9": (
        MODULE,
        "no_scale + finite_fill",
        layer(
            divisor=lambda self: 1,
            fill=lambda self, s, m: s.masked_fill(~m, -1e9),
            softmax=lambda self, s: s.softmax(-1),
        ),
    ),
    "~mask, -1e9": (MASKED, "mask_inverted + finite_fill", student(mask="np.where(~m, s, -1e9)")),
    "~mask, -1e9 added": (MASKED, "mask_inverted + finite_fill", student(mask="s + m * -1e9")),
    "5.3 ~mask, -1e9": ("masked_softmax", "mask_inverted + finite_fill", masked_softmax(-1e9, mask=np.invert)),
    "over queries, -1e9": (
        MASKED,
        "softmax_over_queries + finite_fill",
        student(mask="np.where(m, s, -1e9)", softmax="al.softmax(s, -2)"),
    ),
    "5.4 a mask for each text": (
        MASKED,
        None,
        a_mask_for_each,
        "one mask (n_q, n_k) for (b, h, n_q, d_k)",
    ),
    "5.2 square": ("causal_mask", "causal_square", lambda n_q, n_k=None: np.tri(n_q, dtype=bool), "more keys"),
    "5.2 square, all rows": (
        "causal_mask",
        "causal_square",
        lambda n_q, n_k=None: np.tril(np.ones((n_k or n_q,) * 2, bool)),
        "fits only in training",
    ),
    "5.2 offset on the keys": (
        "causal_mask",
        "causal_offset_reversed",
        lambda n_q, n_k=None: np.arange(n_k or n_q) + ((n_k or n_q) - n_q) <= np.arange(n_q)[:, None],
        "towards the beginning",
    ),
    "5.2 k of the other sign": (
        "causal_mask",
        "causal_offset_reversed",
        lambda n_q, n_k=None: np.tri(n_q, n_k or n_q, n_q - (n_k or n_q), dtype=bool),
    ),
    "5.2 k = 1": ("causal_mask", "mask_shows_the_next", lambda q, k=None: np.tri(q, k or q, 1, dtype=bool)),
    "5.1 a row for each query": ("padding_mask", OTHER_AXES, lambda n, k: al.padding_mask(n, k).repeat(k, axis=1)),
    "5.1 batch behind": ("padding_mask", OTHER_AXES, lambda n, k: al.padding_mask(n, k).swapaxes(0, 1)),
    "5.1 with heads": ("padding_mask", OTHER_AXES, lambda n, k: al.padding_mask(n, k)[:, None], "not (b, 1, n_k)"),
    "5.1 other axes, inverted": ("padding_mask", None, lambda n, k: ~al.padding_mask(n, k)[:, None]),
    "5.2 a window of five": (
        "causal_mask",
        "hides_too_much",
        lambda q, k=None: (
            np.tri(q, k or q, (k or q) - q, dtype=bool) & ~np.tri(q, k or q, (k or q) - q - 5, dtype=bool)
        ),
        "Right so far; the first difference is on the last 2 of 40 tokens as queries",
    ),
    "5.1 left": ("padding_mask", "padding_on_the_left", lambda n, n_k: np.arange(n_k) >= (n_k - n)[:, None, None]),
    "5.5 two windows": (
        "sparse_masks",
        "reach_too_short",
        np.stack([NEAR] * 2),
        "5 of the 8 tokens reach the last position; 0, 1 and 2 do not.",
    ),
    "5.5 all but one": (
        "sparse_masks",
        "reach_too_short",
        np.stack([np.eye(8, dtype=bool) | NEAR & (np.arange(8) > 0), FAR]),
        "7 of the 8 tokens reach the last position; 0 does not.",
    ),
    "5.5 causal": ("sparse_masks", "too_many_keys", [np.tri(8, dtype=bool)] * 2, "more than 3 keys", "reach the last"),
    "5.5 ahead": ("sparse_masks", "key_ahead", np.roll([np.eye(8, dtype=bool)] * 2, 1, -1), "comes after it"),
    "5.5 of int": ("sparse_masks", None, np.stack([NEAR, FAR]).astype(int), "Fix: my_masks.astype(bool)"),
    "5.5 of other numbers": ("sparse_masks", None, 2 * np.stack([NEAR, FAR]), "of int64. Fix: np.stack(", "astype"),
    "5.5 one mask": ("sparse_masks", None, np.tri(8, dtype=bool), "shape (2, 8, 8) of bool"),
    "6.3 W.T": (
        M,
        "projection_transposed",
        multi_head("split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)"),
        "",
        "softmax",
    ),
    "6.3 W.T everywhere": (
        M,
        "projection_transposed",
        multi_head("split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)", out="merge(w @ v) @ W_O.T"),
        "",
        "softmax",
    ),
    "6.3 W_O.T": (M, "projection_transposed", multi_head(out="merge(w @ v) @ W_O.T")),
    "6.3 first head alone": (
        M,
        "heads_left_out",
        multi_head(out="(w @ v)[..., 0, :, :]"),
        "returns in its first",
        "Two",
    ),
    "6.3 first head and its W_O": (M, "heads_left_out", multi_head(out="(w @ v)[..., 0, :, :] @ W_O[:d_k]"), "", "Two"),
    "6.3 last head alone": (M, "heads_left_out", multi_head(out="(w @ v)[..., -1, :, :]")),
    "6.3 all but the last head": (
        M,
        "heads_left_out",
        multi_head(out="merge((w @ v)[..., :-1, :, :]) @ W_O[: (h - 1) * d_k]"),
    ),
    "6.3 all but the first head": (
        M,
        "heads_left_out",
        multi_head(out="merge((w @ v) * (np.arange(h) > 0)[:, None, None]) @ W_O"),
    ),
    "6.3 the last head for all": (M, "heads_left_out", multi_head(out="np.tile((w @ v)[..., -1, :, :], h) @ W_O")),
    "6.4 first head alone": (
        MODULE,
        "heads_left_out",
        layer(give=lambda self, o, w, x: (o[..., : self.d // self.h], w[..., 0, :, :])),
    ),
    "6.3 half of each head": (M, None, multi_head(out="merge((w @ v) * (np.arange(d_k) > 0)) @ W_O"), "", "as if"),
    "6.3 lengths of the queries": (
        M,
        "as_many_keys_as_queries",
        multi_head(split="np.swapaxes(x.reshape(*query.shape[:-1], h, -1), -2, -3)"),
        "as many keys as queries",
    ),
    "6.4 lengths of the queries": (
        MODULE,
        "as_many_keys_as_queries",
        layer(
            forward=lambda self, query, *others, attn_mask=None: (
                setattr(self, "n", query.shape[:-1]) or Layer.forward(self, query, *others, attn_mask=attn_mask)
            ),
            split=lambda self, x: x.reshape(*self.n, self.h, -1).transpose(-2, -3),
        ),
    ),
    "6.3 residual": (M, "residual_added", multi_head(out="merge(w @ v) @ W_O + query"), "", "softmax"),
    "6.4 residual": (MODULE, "residual_added", layer(give=lambda self, o, w, x: (self.W_O(o) + x, w))),
    "6.3 value = key": (M, "keys_for_values", multi_head(v="split(key @ W_V)"), "", "softmax"),
    "2.3 value = key": (A, "keys_for_values", student(rest="w @ k")),
    "1.4 value = key": (
        "output_of_she",
        "keys_for_values",
        al.softmax(np.array([5.0, 0, 3, 2]) / 3**0.5) @ [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]],
    ),
    "6.3 heads averaged": (M, "heads_averaged", multi_head(out="np.tile((w @ v).mean(-3), h) @ W_O")),
    "6.3 heads added": (M, "heads_averaged", multi_head(out="np.tile((w @ v).sum(-3), h) @ W_O"), "(or adds)"),
    "6.3 merged straight": (
        M,
        "merge_without_transpose",
        multi_head(merge="x.reshape(*x.shape[:-3], x.shape[-2], -1)"),
    ),
    "6.5 exchanged": ("two_jobs", "heads_exchanged", np.hstack([10 * BESIDE, 10 * OPPOSITE]), "job of head 2"),
    "6.5 too soft": ("two_jobs", "scores_too_small", np.hstack([OPPOSITE, BESIDE]), "too little weight"),
    "6.5 nearly": (
        "two_jobs",
        "scores_too_small",
        8 * np.hstack([OPPOSITE, BESIDE]),
        "in head 1 token 0 gives token 2 the weight 0.948; wanted is 1, within 0.05.",
    ),
    "6.5 one neighbour": (
        "two_jobs",
        None,
        np.hstack([10 * OPPOSITE, 10 * np.eye(4)[[1, 2, 3, 0]]]),
        "In head 2 token 0 has the weights 0.01 0.98 0.01 0.01 on tokens 0 to 3; wanted are 0.00 0.50 0.00 0.50.",
        "as if",
    ),
    "6.5 one head": ("two_jobs", None, OPPOSITE, "shape (4, 8)"),
    "6.4 values first": (
        MODULE,
        "swapped_query_value",
        layer(
            forward=lambda self, values, keys=None, query=None, *, attn_mask=None: Layer.forward(
                self, values if query is None else query, keys, values, attn_mask=attn_mask
            )
        ),
    ),
    "6.4 value = query": (
        MODULE,
        "value_defaults_to_query",
        layer(
            forward=lambda self, query, key=None, value=None, *, attn_mask=None: Layer.forward(
                self, query, key, query if value is None else value, attn_mask=attn_mask
            )
        ),
        "belong to two tokens",
        "raises",
    ),
    "6.4 weights averaged": (MODULE, "weights_averaged", layer(give=lambda self, o, w, x: (self.W_O(o), w.mean(-3)))),
    "2.3 rounded": (A, "rounded_weights", student(softmax="al.softmax(s).round(2)"), "", "moves the output"),
    "6.4 rounded": (  # a rounded number has no slope
        MODULE,
        "rounded_weights + gradient_cut",
        layer(softmax=lambda self, s: s.softmax(-1).nan_to_num().round(decimals=1)),
    ),
    "1.3 two digits": (WEIGHTS, "too_few_digits", [0.84, 0.01, 0.11, 0.04]),
    "1.3 exp": (WEIGHTS, "exp_not_divided", [148.413, 1, 20.086, 7.389]),
    "2.1 exp": ("softmax", "exp_not_divided", lambda x, axis=-1: np.exp(x - x.max(axis=axis, keepdims=True))),
    "2.3 exp": (A, "exp_not_divided", student(softmax="np.exp(s)")),
    # --- decoding: each writes something of the right shape
    "11.1 one more": ("window_mask", "window_too_wide", window("(back >= 0) & (back <= w)"), "one key too wide"),
    "11.1 one less": ("window_mask", "window_too_narrow", window("(back >= 0) & (back < w - 1)")),
    "11.1 ahead": ("window_mask", "window_open_ahead", window("abs(back) < w")),
    "11.1 no past": ("window_mask", "window_open_ahead", window("back < w")),
    "11.1 blocked": ("window_mask", "window_inverted", window("(back < 0) | (back >= w)")),
    "11.1 not itself": ("window_mask", "window_without_itself", window("(0 < back) & (back < w)"), "not see itself"),
    "11.1 others": ("window_mask", "window_without_itself", window("(0 < back) & (back <= w)")),
    "11.1 tri": ("window_mask", "window_upper_left", lambda n, m, w: np.tri(n, m) - np.tri(n, m, -w) > 0),
    "11.1 four at most": (
        "window_mask",
        "hides_too_much",
        lambda n, m, w: np.tri(m, dtype=bool)[-n:] & ~np.tri(m, k=-min(w, 4), dtype=bool)[-n:],
        "window 6",
    ),
    "11.1 open": ("window_mask", "argument_ignored", lambda n, m, w: np.tri(m, dtype=bool)[-n:], "`window`"),
    "11.2 tile": ("grouped_attention", "groups_tiled", grouped(tiled), "dealt out in turn"),
    "11.2 number": ("grouped_attention", "groups_by_their_number", by_number, "served by head i // g"),
    "11.2 first": ("grouped_attention", "groups_first_only", grouped(first_only)),
    "11.2 values tiled": ("grouped_attention", "groups_differ", grouped(repeated, tiled), "another group's values"),
    "11.2 keys tiled": ("grouped_attention", "groups_differ", grouped(tiled, repeated)),
    "11.2 no mask": ("grouped_attention", "mask_ignored", grouped(mask=lambda mask, n_q, n_k: None)),
    "11.2 causal": (
        "grouped_attention",
        "causal_mask_added",
        grouped(mask=lambda mask, n_q, n_k: np.tri(n_q, n_k, n_k - n_q, dtype=bool)),
    ),
    "11.2 causal, too": (
        "grouped_attention",
        "causal_mask_added",
        grouped(mask=lambda mask, n_q, n_k: np.tri(n_q, n_k, dtype=bool) & (True if mask is None else mask)),
    ),
    "11.3 upper left": (
        "decode_step",
        "chunk_upper_left",
        decode(mask="np.tri(n, k.shape[1], dtype=bool)"),
        "oldest",
    ),
    "11.3 no mask": ("decode_step", "chunk_not_masked", decode(mask="None"), "hides from that test"),
    "11.3 only new": ("decode_step", "cache_overwritten", decode(back="(output, (key, value))")),
    "11.3 chunk only": (
        "decode_step",
        "past_not_attended",
        decode(mask="np.tri(n, dtype=bool)", attend="attention(query, key, value, mask)"),
        "not attended to",
        "oldest",
    ),
    "11.3 no mask, zeros": (  # what each would show alone is not so of the two
        "decode_step",
        "chunk_not_masked + values_not_kept",
        decode(v="np.concatenate([0 * past[1], value], axis=1)", mask="None"),
        "Two mistakes",
        "One token at a time this is right",
    ),
    "11.3 old": ("decode_step", "past_not_attended", decode(back="(output, past)"), "not returned"),
    "11.3 zeros": ("decode_step", "values_not_kept", decode(v="np.concatenate([0 * past[1], value], axis=1)")),
    "11.3 in front": (
        "decode_step",
        "new_keys_in_front",
        decode(k="np.concatenate([key, past[0]], axis=1)", v="np.concatenate([value, past[1]], axis=1)"),
        "knows no order",
    ),
    "11.3 exchanged": ("decode_step", "cache_exchanged", decode(back="(output, (v, k))"), "in the place of the keys"),
    "11.3 last": ("decode_step", "last_output_only", decode(back="(output[:, -1:], (k, v))"), "of the last new token"),
    "11.3 own scores": ("decode_step", "no_scale + attention_not_called", decode(attend="unscaled(query, k, v, mask)")),
    "11.3 own attention": ("decode_step", "attention_not_called", decode(attend="another(query, k, v, mask)"), "In 13"),
    "11.3 zeros returned": ("decode_step", "constant_result", decode(attend="0 * attention(query, k, v, mask)")),
    "11.3 all blocked": (
        "decode_step",
        "constant_result",
        decode(mask="np.zeros((n, k.shape[1]), bool)"),
        "such as 0",
    ),
    "11.3 mask of numbers": ("decode_step", None, decode(mask="np.tri(n, k.shape[1], k.shape[1] - n)"), "only 0 and 1"),
    "11.3 mask of int": ("decode_step", None, decode(mask="np.tri(n, k.shape[1], k.shape[1] - n, int)"), "boolean"),
    "11.3 one ahead": (
        "decode_step",
        "chunk_not_masked",
        decode(mask="np.tri(n, k.shape[1], k.shape[1] - n + 1, dtype=bool)"),
    ),
    "11.3 masked at first only": (
        "decode_step",
        "chunk_not_masked",
        decode(mask="None if past[0].size else np.tri(n, dtype=bool)"),
        "perhaps only behind other tokens",
    ),
    "11.3 upper left unless alone": (
        "decode_step",
        "chunk_upper_left",
        decode(mask="np.tri(n, k.shape[1], dtype=bool) if n > 1 else None"),
    ),
    **{
        f"11.3 {told} spoiled": (
            "decode_step",
            id,
            decode(attend=f"(attention(query, k, v, mask), {line})[0]"),
            "the arrays you were given have changed",
        )
        for told, id, line in (
            ("past keys", "mutates_input", "past[0].__imul__(2)"),
            ("past values", "mutates_input", "past[1].fill(0)"),
            ("new keys", "mutates_input", "key.fill(0)"),
        )
    },
    "11.2 bare": (
        "grouped_attention",
        "heads_not_repeated",
        lambda query, key, value, attn_mask=None, attention=al.scaled_dot_product_attention: attention(
            query, key, value, attn_mask
        ),
    ),
    "11.2 keys alone": ("grouped_attention", "heads_not_repeated", grouped(repeated, lambda x, times: x)),
    "11.2 own attention": (
        "grouped_attention",
        "attention_not_called",
        lambda q, k, v, m=None, attention=None: grouped()(q, k, v, m),
    ),
    "11.2 zeros": (
        "grouped_attention",
        "constant_result",
        lambda q, k, v, m=None, attention=None: np.zeros((*q.shape[:-1], v.shape[-1])),
    ),
    "11.1 zeros": ("window_mask", "constant_result", lambda n, m, w: np.zeros((n, m), bool)),
    "11.1 numbers": (
        "window_mask",
        "mask_as_numbers",
        lambda *sizes: window("(back >= 0) & (back < w)")(*sizes).astype(int),
        "dtype",
    ),
    "13.3 numbers": (
        "kept_keys",
        "mask_as_numbers",
        lambda *sizes: kept(lambda b, k, w, s: (b >= 0) & ((b < w) | (k < s)))(*sizes).astype(float),
        "dtype",
    ),
    "13.3 no window": ("kept_keys", "argument_ignored", kept(lambda b, k, w, s: (b >= 0) & (k >= 0)), "`window`"),
    "13.3 zeros": ("kept_keys", "constant_result", kept(lambda b, k, w, s: (b < 0) & (b > 0))),
    "13.3 ones": ("kept_keys", "constant_result", kept(lambda b, k, w, s: (b < 0) | (b >= 0))),
    "13.4 n - 1": ("looks_back", "divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum() / (len(w) - 1)),
    "13.4 neither end": ("looks_back", "wrong_queries_left_out", lambda w: np.diag(w, -1)[1:-1].mean()),
    "11.1 or": ("window_mask", "constant_result", window("(back >= 0) | (back < w)")),
    "11.1 ones": ("window_mask", "constant_result", lambda n, m, w: np.ones((n, m), bool)),
    "11.3 one array": (
        "decode_step",
        "another_number_returned",
        lambda *a: a[0],
        "must return (output, (keys, values))",
    ),
    "11.3 no heads": ("decode_step", None, decode(back="(output[0], (k, v))"), "(6, 3)"),
    # Shapes do not fit: loud.
    "11.3 values of the chunk": ("decode_step", None, decode(v="value"), "raises", "as if"),
    "11.4 one too many": (
        ACCEPT,
        "one_too_many_accepted",
        keeps("i == m or i and draft[i - 1] != chosen[i - 1]"),
        "is accepted, too",
    ),
    "11.4 the model's one too many": (
        ACCEPT,
        "one_too_many_accepted",
        keeps("i == m or i and draft[i - 1] != chosen[i - 1]", "chosen[:i + 1]"),
    ),
    "11.4 the draft's token": (ACCEPT, "draft_in_place_of_the_models", keeps(new="(draft + chosen[m:])[:i + 1]")),
    "11.4 of the draft alone": (ACCEPT, "draft_in_place_of_the_models", keeps(new="draft[:i + 1]")),
    "11.4 all that agree": (ACCEPT, "agreements_counted", keeps("i == sum(equal)"), "all agreements are counted"),
    "11.4 all that agree, the model's": (ACCEPT, "agreements_counted", keeps("i == sum(equal)", "chosen[:i + 1]")),
    "11.4 the last row": (ACCEPT, "another_row_of_logits", keeps(new="[*draft[:i], chosen[-1]]")),
    "11.4 none accepted": (ACCEPT, None, keeps("True")),
    "11.4 without the model's": (ACCEPT, "models_token_dropped", keeps(new="draft[:i]"), "left out"),
    "11.4 three at most": (ACCEPT, None, keeps("i == min(m, 3) or draft[i] != chosen[i]"), "agrees as a whole"),
    "11.4 not cut": (ACCEPT, "cache_not_cut", keeps(rows="n"), "keeps 10 of 10 rows"),
    "11.4 minus zero": (ACCEPT, "cut_by_minus_zero", keeps(rows="-(m - i)"), "keeps 0 of 11 rows"),
    "11.4 a row too many": (ACCEPT, "cache_cut_one_short", keeps(rows="n - (m - i) + (m > i)")),
    "11.4 the whole draft cut": (ACCEPT, "cache_cut_too_far", keeps(rows="n - m")),
    "11.4 a row too few": (ACCEPT, "cache_cut_too_far", keeps(rows="n - (m - i) - 1")),
    "11.4 old rows alone": (ACCEPT, "cache_cut_too_far", keeps(rows="n - m - 1")),
    "11.4 two at once": (
        ACCEPT,
        None,
        keeps(new="(draft + chosen[m:])[:i + 1]", rows="n"),
        "keeps 10 of 10 rows",
    ),
    "11.4 the last rows": (
        ACCEPT,
        None,
        lambda logits, draft, past: (keeps()(logits, draft, past)[0], [(k[:, 1:], v[:, 1:]) for k, v in past]),
        "not the first ones of what it held",
        "as if",
    ),
    "11.4 one layer": (
        ACCEPT,
        None,
        lambda logits, draft, past: (keeps()(logits, draft, past)[0], past[:1]),
        "Fix: return new, past",
        "as if",
    ),
    "11.4 tokens alone": (ACCEPT, None, lambda *a: keeps()(*a)[0], "Fix: return new, past", "as if"),
    "11.5 near": ("out_of_reach", "subject_in_reach", "the cats behind the happy king", "4 places or fewer"),
    "11.5 told": ("out_of_reach", "told_by_another_verb", "the old cats that see the old dog", "after “that”"),
    "11.5 whole": ("out_of_reach", "verb_not_due", "the cats that the old dog sees run .", "it has been said"),
    "11.5 two": ("out_of_reach", "no_sentence", "the cats that the small old dog sees", "one adjective", "not yet"),
    "11.5 sleeps": ("out_of_reach", "verb_after_that_unfit", "the cats that the old dog sleeps", "agrees", "adjective"),
    "11.5 main verb": ("out_of_reach", "no_sentence", "the cats that the dog sees sleeps", "a verb agrees"),
    "13.1 as it is": ("to_halves", "pairs_left_alone", lambda w, h: w),
    "13.1 strides over all heads": ("to_halves", "heads_run_together", lambda w, h: np.hstack([w[:, ::2], w[:, 1::2]])),
    "13.1 cut into halves": (
        "to_halves",
        "back_to_pairs",
        lambda w, h: w.reshape(len(w), h, 2, -1).swapaxes(-1, -2).reshape(w.shape),
    ),
    "13.1 as torch stores it": (
        "to_halves",
        "rows_reordered",
        lambda w, h: w.reshape(h, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape),
    ),
    "13.1 every second row": (
        "to_halves",
        "rows_reordered",
        lambda w, h: np.hstack([(r := w.reshape(h, -1, w.shape[1]))[:, ::2], r[:, 1::2]]).reshape(w.shape),
    ),
    "13.1 b before a": (
        "to_halves",
        "rearranged",
        lambda w, h: w.reshape(len(w), h, -1, 2)[..., ::-1].swapaxes(-1, -2).reshape(w.shape),
    ),
    "13.3 and for or": ("kept_keys", "hides_too_much", kept(lambda b, k, w, s: (b >= 0) & (b < w) & (k < s))),
    "13.3 no first keys": ("kept_keys", "argument_ignored", kept(lambda b, k, w, s: (b >= 0) & (b < w)), "`sink`"),
    "13.3 brackets": ("kept_keys", "first_keys_seen_ahead", kept(lambda b, k, w, s: (b >= 0) & (b < w) | (k < s))),
    "13.3 rest of the window": (
        "kept_keys",
        "sink_taken_from_window",
        kept(lambda b, k, w, s: (b >= 0) & ((b < w - s) | (k < s))),
    ),
    "13.3 one too many": (
        "kept_keys",
        "window_too_wide",
        kept(lambda b, k, w, s: (b >= 0) & ((b <= w) | (k < s))),
    ),
    "13.3 one too few": (
        "kept_keys",
        "window_too_narrow",
        kept(lambda b, k, w, s: (b >= 0) & ((b < w - 1) | (k < s))),
    ),
    "13.3 a longer window": ("kept_keys", "window_widened", kept(lambda b, k, w, s: (b >= 0) & (b < w + s))),
    "13.3 a first key too many": (
        "kept_keys",
        "shows_too_much",
        kept(lambda b, k, w, s: (b >= 0) & ((b < w) | (k <= s))),
    ),
    "13.3 from key 0": (
        "kept_keys",
        "window_upper_left",
        lambda n_q, n_k, w, s: (
            ((b := np.arange(n_q)[:, None] - np.arange(n_k)) >= 0) & ((b < w) | (np.arange(n_k) < s))
        ),
    ),
    "13.3 True is blocked": (
        "kept_keys",
        "kept_means_blocked",
        kept(lambda b, k, w, s: (b < 0) | ((b >= w) & (k >= s))),
    ),
    "13.4 main diagonal": ("looks_back", "another_diagonal_measured", lambda w: np.diag(w).mean()),
    "13.4 main diagonal from query 2": ("looks_back", "another_diagonal_measured", lambda w: np.diag(w)[2:].mean()),
    "13.4 two back": ("looks_back", "another_diagonal_measured", lambda w: np.diag(w, -2).mean()),
    "13.4 above": ("looks_back", "constant_result", lambda w: np.mean([w[i, i + 1] for i in range(len(w) - 1)])),
    "13.4 query 1, too": ("looks_back", "second_token_counted", lambda w: np.diag(w[1:]).mean()),
    "13.4 one too many": ("looks_back", "wrong_queries_left_out", lambda w: np.diag(w, -1)[2:].mean()),
    "13.4 the last": ("looks_back", "wrong_queries_left_out", lambda w: np.diag(w, -1)[:-1].mean()),
    "13.3 first keys alone": ("kept_keys", "window_not_kept", kept(lambda b, k, w, s: (b >= 0) & (k < s))),
    "13.4 sum": ("looks_back", "divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum()),
    "13.4 by n": ("looks_back", "divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum() / len(w)),
    "13.4 max": ("looks_back", "largest_not_mean", lambda w: np.diag(w[2:, 1:]).max()),
    "12.3 zeros": (
        "look_back",
        None,
        lambda d, near, far: np.zeros((2, d)),
        "all that it sees the same weight",
        "as if",
    ),
    "12.3 inf": ("look_back", None, lambda d, near, far: np.full((2, d), np.inf), "finite numbers", "as if"),
    "12.3 NaN": ("look_back", None, lambda d, near, far: np.full((2, d), np.nan), "finite numbers", "as if"),
    "12.3 too large": ("look_back", None, lambda d, near, far: np.full((2, d), 1e200), "finite numbers", "as if"),
    "12.2 not causal": ("rotary_attention", "mask_ignored", head(mask="True"), "every query sees all of them"),
    "11.5 zebra": ("out_of_reach", None, "the cats that the zebra sees", "zebra", "as if"),
    "11.5 The": ("out_of_reach", None, "The cats that the old dog sees", "in lower case", "as if"),
    "11.5 a list": ("out_of_reach", None, ["the", "cats"], "one string", "as if"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_learners_mistake_is_named_and_told_truly(row):
    name, id, answer, says, never = (*ROWS[row], "", "")[:5]
    verdict = EXERCISES[name](answer)
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
    assert says in verdict.message and (not never or never not in verdict.message), verdict


@pytest.mark.parametrize("id", ["no_scale", "returns_float16", "exp_not_divided"])
def test_a_name_says_that_it_rests_on_behaviour(id):
    exercise = EXERCISES[A]
    verdict = exercise(exercise.wrong[id][0])
    assert verdict.message.startswith(f"Your code behaves as if {MISTAKES[id].behaves_as_if}. ")

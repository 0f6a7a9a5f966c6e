"""Answers of the lesson one_token_at_a_time, right and wrong; what stands in which table, `__init__.py` says."""

import functools

import numpy as np
from answers import back

import attnlib as al
from attncourse.lessons.one_token_at_a_time.decoding import attend as another


def len_ratio(q, k):
    return q.shape[-3] // k.shape[-3]


def grouped_by_axes(q, k, v, mask=None, attention=al.scaled_dot_product_attention):
    """The groups as an axis of their own, over which keys and values broadcast."""
    *lead, h, n, d = q.shape
    q = q.reshape(*lead, k.shape[-3], h // k.shape[-3], n, d)
    return attention(q, k[..., :, None, :, :], v[..., :, None, :, :], mask).reshape(*lead, h, n, -1)


def grouped_head_by_head(q, k, v, mask=None, attention=al.scaled_dot_product_attention):
    """Call attention for each head alone, on arrays without an axis of heads."""
    times = len_ratio(q, k)
    heads = [
        attention(q[..., i, :, :], k[..., i // times, :, :], v[..., i // times, :, :], mask) for i in range(q.shape[-3])
    ]
    return np.stack(heads, axis=-3)


def decode_step(query, key, value, past, attention, lists=False):
    keys, values = (np.concatenate(pair, axis=-2) for pair in zip(past, (key, value), strict=True))
    mask = al.causal_mask(query.shape[-2], keys.shape[-2], align="lower_right")
    output = attention(query, keys, values, attn_mask=mask)
    return [output, [keys, values]] if lists else (output, (keys, values))


def decode_by_loop(query, key, value, past, attention):
    """One token after the other, within a chunk too: no mask is needed."""
    (keys, values), outputs = past, []
    for i in range(query.shape[1]):
        keys, values = np.hstack([keys, key[:, i : i + 1]]), np.hstack([values, value[:, i : i + 1]])
        outputs.append(attention(query[:, i : i + 1], keys, values))
    return np.hstack(outputs), (keys, values)


def accept_by_loop(logits, draft, past):
    chosen, agreed = logits.argmax(axis=-1), 0
    while agreed < len(draft) and draft[agreed] == chosen[agreed]:
        agreed += 1
    rejected = len(draft) - agreed
    return list(chosen[: agreed + 1]), [tuple(x[:, : x.shape[1] - rejected] for x in pair) for pair in past]


def accept_by_product(logits, draft, past):
    """One array of tokens, one of each layer's rows, copied."""
    chosen, draft = np.argmax(logits, axis=1), np.array(draft, dtype=int)
    agreed = int(np.cumprod(draft == chosen[:-1]).sum())
    rows = np.arange(past[0][0].shape[1] - len(draft) + agreed)
    return np.append(draft[:agreed], chosen[agreed]), tuple([k[:, rows], v.take(rows, 1)] for k, v in past)


def accept_recursively(logits, draft, past):
    first = int(logits[0].argmax())
    if draft and draft[0] == first:
        new, past = accept_recursively(logits[1:], draft[1:], past)
        return (first, *new), past
    rows = past[0][0].shape[-2] - len(draft)
    return (first,), [(keys[:, :rows], values[:, :rows]) for keys, values in past]


def chances_by_loop(p, q):
    keep, other = [], []
    for a, b in zip(p, q, strict=True):
        keep.append(1.0 if a >= b else a / b)
        other.append(a - b if a >= b else 0.0)
    return np.array([keep, [x / sum(other) for x in other]])


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


def averaged(spread):
    def grouped(q, k, v, attn_mask=None, attention=al.scaled_dot_product_attention):
        groups = q.reshape(*q.shape[:-3], k.shape[-3], -1, *q.shape[-2:])
        return spread(attention(groups.mean(-3), k, v, attn_mask), len_ratio(q, k))

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


def chances_of_not_kept(kept, p):
    return np.array([kept, (1 - kept) * p / ((1 - kept) * p).sum()])


def cut_by(cut):
    """Accept well, and cut each array of the cache by `cut(x, rows)`."""

    def accept(logits, draft, past):
        new, kept = keeps()(logits, draft, past)
        return new, [tuple(cut(x, kept[0][0].shape[1]) for x in pair) for pair in past]

    return accept


def _lacks(p, q):
    return (p - q).clip(0) / (p - q).clip(0).sum()


RIGHT = {
    "window_mask": [
        lambda n_q, n_k, w: np.tri(n_k, dtype=bool)[-n_q:] & ~np.tri(n_k, k=-w, dtype=bool)[-n_q:],
        lambda n_q, n_k, w: np.array([[i - w < j <= i for j in range(n_k)] for i in range(n_k - n_q, n_k)]),
        lambda n_q, n_k, w: al.causal_mask(n_q, n_k, align="lower_right") & (np.arange(n_k) > back(n_q, n_k) - w),
    ],
    "grouped_attention": [
        lambda q, k, v, mask=None, attend=al.scaled_dot_product_attention: attend(
            q, *(np.repeat(x, len_ratio(q, k), -3) for x in (k, v)), mask
        ),
        grouped_by_axes,
        grouped_head_by_head,
    ],
    "decode_step": [decode_step, decode_by_loop, functools.partial(decode_step, lists=True)],
    "accept_draft": [accept_by_loop, accept_by_product, accept_recursively],
    "draft_chances": [
        lambda p, q: np.array([np.minimum(1, p / q), np.maximum(0, p - q) / np.maximum(0, p - q).sum()]),
        lambda p, q: np.vstack([np.where(p < q, p / q, 1), (p - q).clip(0) / (1 - np.minimum(p, q).sum())]),
        chances_by_loop,
    ],
    "out_of_reach": [
        "the cats that the old dog sees",
        "the young bird that the happy farmers  follow",
        "the king that the old children hear",
    ],
}

NEAR = {
    "window_mask": [lambda n_q, n_k, w: (back(n_q, n_k) >= np.arange(n_k)) & (back(n_q, n_k) - w < np.arange(n_k))],
    "grouped_attention": [grouped_by_axes],
    "decode_step": [decode_by_loop],
    "accept_draft": [accept_by_product],
}

DESIGNS = {
    "out_of_reach": {
        "verb_not_due": ["the cats that the old dog"],
        "no_sentence": ["the cats that the small old dog sees"],
        "verb_after_that_unfit": ["the cats that the old dog see"],
        "subject_in_reach": ["the cats near the old dog"],
        "told_by_another_verb": ["the cats that see the old dog"],
    },
}

LEARNERS = {
    "draft_chances": {
        "greedy": ("greedy_under_temperature", lambda p, q: np.array([np.eye(len(p))[p.argmax()], p]), "likeliest"),
        "greedy, the rest drawn well": (
            "greedy_under_temperature",
            lambda p, q: np.array([p == p.max(), (p - q).clip(0) / (p - q).clip(0).sum()], float),
        ),
        "drawn from p": ("redrawn_from_p", lambda p, q: np.array([np.minimum(1, p / q), p]), "once more"),
        "turned over": ("ratio_turned_over", lambda p, q: np.array([np.minimum(1, q / p), _lacks(p, q)]), "row 0"),
        "undivided": ("not_divided_by_q", lambda p, q: np.array([np.minimum(p, q), _lacks(p, q)]), "row 0"),
        "no sum": ("second_row_not_normalised", lambda p, q: np.array([(p / q).clip(0, 1), (p - q).clip(0)]), "row 1"),
        "q - p": ("surplus_drawn", lambda p, q: np.array([(p / q).clip(0, 1), _lacks(q, p)]), "row 1"),
        "|p - q|": ("surplus_drawn", lambda p, q: np.array([(p / q).clip(0, 1), abs(p - q) / abs(p - q).sum()])),
        "softmax": ("surplus_drawn", lambda p, q: np.array([(p / q).clip(0, 1), al.softmax(p - q)])),
        "softmax of the lack": (
            "surplus_drawn",
            lambda p, q: np.array([(p / q).clip(0, 1), al.softmax((p - q).clip(0))]),
        ),
        "nothing kept": ("too_little_kept", lambda p, q: np.array([0 * p, p]), "nothing, or half"),
        "nothing kept, drawn from the lack": ("too_little_kept", lambda p, q: np.array([0 * p, _lacks(p, q)])),
        "half kept": ("too_little_kept", lambda p, q: np.array([(p / q).clip(0, 1) / 2, _lacks(p, q)])),
        "half kept, and p comes out": (
            "too_little_kept",
            lambda p, q: np.array(
                [(p / q).clip(0, 1) / 2, (p - np.minimum(p, q) / 2) / (1 - np.minimum(p, q).sum() / 2)]
            ),
        ),
        "below 0": ("surplus_drawn", lambda p, q: np.array([(p / q).clip(0, 1), p - q])),
        "half": ("second_row_not_normalised", lambda p, q: np.array([(p / q).clip(0, 1), _lacks(p, q) / 2])),
        "p of those": ("lack_not_measured", lambda p, q: np.array([(p / q).clip(0, 1), p * (p > q) / p[p > q].sum()])),
        "all alike": ("lack_not_measured", lambda p, q: np.array([(p / q).clip(0, 1), (p > q) / (p > q).sum()])),
        "p": ("p_in_row_0", lambda p, q: np.array([p, _lacks(p, q)]), "p or q themselves"),
        "q": ("p_in_row_0", lambda p, q: np.array([q, _lacks(p, q)])),
        "p, then p": ("redrawn_from_p + p_in_row_0", lambda p, q: np.array([p, p])),
        "unclipped": (
            "difference_not_clipped",
            lambda p, q: np.array([(p / q).clip(0, 1), (p - q) / (p - q).sum()]),
            "by its own sum, which is 0",
        ),
        "unclipped, each divided": (
            "difference_not_clipped",
            lambda p, q: np.array([(p / q).clip(0, 1), (p - q) / (p.sum() - q.sum())]),
        ),
        "kept if p >= q": (
            "kept_or_rejected",
            lambda p, q: np.array([np.where(p >= q, 1.0, 0.0), _lacks(p, q)]),
            "never if not",
        ),
        "kept if p > q, then p": ("kept_or_rejected", lambda p, q: np.array([p > q, p], float)),
        "what was not kept": (
            "surplus_drawn",
            lambda p, q: np.array([np.minimum(p / q, 1), (1 - np.minimum(p / q, 1)) * p]),
        ),
        "what was not kept, divided": ("surplus_drawn", lambda p, q: chances_of_not_kept(np.minimum(p / q, 1), p)),
        "1 - kept": ("surplus_drawn", lambda p, q: chances_of_not_kept(np.minimum(p / q, 1), 1)),
        "p / (p + q)": ("too_little_kept", lambda p, q: np.array([p / (p + q), _lacks(p, q)]), "p / (p + q)"),
        "p / (p + q), then p": ("too_little_kept", lambda p, q: np.array([p / (p + q), p])),
        "the larger one": ("ratio_above_one", lambda p, q: np.array([np.maximum(1, p / q), _lacks(p, q)]), "larger"),
        "ratios above 1": ("ratio_above_one", lambda p, q: np.array([p / q, _lacks(p, q)]), "may be above 1"),
    },
    "window_mask": {
        "without brackets": (
            "array_as_condition",
            lambda n, m, w: 0 <= np.arange(m - n, m)[:, None] - np.arange(m) < w,
            "with brackets, compares entries",
        ),
        "one more": ("window_too_wide", window("(back >= 0) & (back <= w)"), "one key too wide"),
        "one less": ("window_too_narrow", window("(back >= 0) & (back < w - 1)")),
        "ahead": ("window_open_ahead", window("abs(back) < w")),
        "no past": ("window_open_ahead", window("back < w")),
        "blocked": ("window_inverted", window("(back < 0) | (back >= w)")),
        "not itself": ("window_without_itself", window("(0 < back) & (back < w)"), "not see itself"),
        "others": ("window_without_itself", window("(0 < back) & (back <= w)")),
        "tri": ("window_upper_left", lambda n, m, w: np.tri(n, m) - np.tri(n, m, -w) > 0),
        "four at most": (
            "hides_too_much",
            lambda n, m, w: np.tri(m, dtype=bool)[-n:] & ~np.tri(m, k=-min(w, 4), dtype=bool)[-n:],
            "window 6",
        ),
        "open": ("argument_ignored", lambda n, m, w: np.tri(m, dtype=bool)[-n:], "`window`"),
        "zeros": ("constant_result", lambda n, m, w: np.zeros((n, m), bool)),
        "numbers": ("mask_as_numbers", lambda *sizes: window("(back >= 0) & (back < w)")(*sizes).astype(int), "dtype"),
        "or": ("window_by_either", window("(back >= 0) | (back < w)"), "every key may be seen"),
        "ones": ("window_by_either", lambda n, m, w: np.ones((n, m), bool), "every key may be seen"),
        "turned round": ("window_turned_round", window("(back <= 0) & (back > -w)"), "sign of the distance"),
        "turned round, from the keys": ("window_turned_round", window("(-back >= 0) & (-back < w)")),
        "turned round, one more": ("window_turned_round + window_too_wide", window("(back <= 0) & (-w <= back)")),
    },
    "grouped_attention": {
        "tile": ("groups_tiled", grouped(tiled), "dealt out in turn"),
        "one group on": ("groups_beside", grouped(lambda x, times: np.roll(repeated(x, times), -times, -3)), "beside"),
        "one head on": ("groups_beside", grouped(lambda x, times: np.roll(repeated(x, times), 1, -3))),
        "keys averaged": ("groups_averaged", grouped(lambda x, times: x.mean(-3, keepdims=True))),
        "queries averaged": ("groups_averaged", averaged(lambda x, times: x), "are averaged"),
        "queries averaged, repeated": ("groups_averaged", averaged(repeated)),
        "number": ("groups_by_their_number", by_number, "served by head i // g"),
        "first": ("groups_first_only", grouped(first_only)),
        "values tiled": ("groups_differ", grouped(repeated, tiled), "another group's values"),
        "keys tiled": ("groups_differ", grouped(tiled, repeated)),
        "no mask": ("mask_ignored", grouped(mask=lambda mask, n_q, n_k: None)),
        "causal": ("causal_mask_added", grouped(mask=lambda mask, n_q, n_k: np.tri(n_q, n_k, n_k - n_q, dtype=bool))),
        "causal, too": (
            "causal_mask_added",
            grouped(mask=lambda mask, n_q, n_k: np.tri(n_q, n_k, dtype=bool) & (True if mask is None else mask)),
        ),
        "bare": (
            "heads_not_repeated",
            lambda query, key, value, attn_mask=None, attention=al.scaled_dot_product_attention: attention(
                query, key, value, attn_mask
            ),
        ),
        "keys alone": ("heads_not_repeated", grouped(repeated, lambda x, times: x)),
        "g times": (
            "repeated_by_another_number",
            grouped(lambda x, times: np.repeat(x, x.shape[-3], -3)),
            "it must be h // g times",
        ),
        "always twice": ("repeated_by_another_number", grouped(lambda x, times: np.repeat(x, 2, -3)), "always twice"),
        "h times": ("repeated_by_another_number", grouped(lambda x, times: np.repeat(x, times * x.shape[-3], -3))),
        "axis 1": (
            "heads_from_the_front",
            grouped(lambda x, times: np.repeat(x, times, 1)),
            "of the tokens without one",
        ),
        "axis 0": ("heads_from_the_front", grouped(lambda x, times: np.repeat(x, times, 0)), "the texts with one"),
        "sizes and heads of axis 1": (
            "heads_from_the_front",
            lambda q, k, v, m=None, attention=al.scaled_dot_product_attention: attention(
                q, *(np.repeat(x, q.shape[1] // k.shape[1], 1) for x in (k, v)), m
            ),
        ),
        "mask repeated": (
            "mask_changed",
            grouped(mask=lambda mask, n_q, n_k: mask if mask is None else np.repeat(mask, 2, -3)),
            "Right without a mask",
        ),
        "rows of the mask repeated": (
            "mask_changed",
            grouped(mask=lambda mask, n_q, n_k: mask if mask is None else np.repeat(mask, 2, 0)),
        ),
        "if mask": (
            "array_as_condition",
            grouped(mask=lambda mask, n_q, n_k: mask if mask else None),
        ),
        "a name that is not there, with a mask": (
            None,
            grouped(mask=lambda mask, n_q, n_k: mask if mask is None else nowhere),  # noqa: F821
        ),
        "own attention": ("attention_not_called", lambda q, k, v, m=None, attention=None: grouped()(q, k, v, m)),
        "zeros": ("constant_result", lambda q, k, v, m=None, attention=None: np.zeros((*q.shape[:-1], v.shape[-1]))),
    },
    "decode_step": {
        "not itself": (
            "chunk_without_itself",
            decode(mask="np.tri(n, k.shape[1], k.shape[1] - n - 1, dtype=bool)"),
            "and not itself",
        ),
        "upper left": ("chunk_upper_left", decode(mask="np.tri(n, k.shape[1], dtype=bool)"), "oldest"),
        "turned": (
            "triangle_turned",
            decode(mask="np.tri(k.shape[1], n, dtype=bool).T"),
            "what comes after it",
        ),
        "upper": ("triangle_turned", decode(mask="np.triu(np.ones((n, k.shape[1]), bool), k.shape[1] - n)")),
        "moved back": ("triangle_moved_back", decode(mask="np.tri(n, k.shape[1], n - k.shape[1], bool)"), "n_q - n_k"),
        "k = 1": (None, decode(mask="np.tri(n, k.shape[1], 1, dtype=bool)")),
        "no mask": ("chunk_not_masked", decode(mask="None"), "hides from that test"),
        "only new": ("cache_overwritten", decode(back="(output, (key, value))")),
        "chunk only": (
            "past_not_attended",
            decode(mask="np.tri(n, dtype=bool)", attend="attention(query, key, value, mask)"),
            "not attended to",
            "oldest",
        ),
        "no mask, zeros": (  # what each would show alone is not so of the two
            "chunk_not_masked + values_not_kept",
            decode(v="np.concatenate([0 * past[1], value], axis=1)", mask="None"),
            "Two mistakes",
            "One token at a time this is right",
        ),
        "old": ("past_not_attended", decode(back="(output, past)"), "not returned"),
        "zeros": ("values_not_kept", decode(v="np.concatenate([0 * past[1], value], axis=1)")),
        "in front": (
            "new_keys_in_front",
            decode(k="np.concatenate([key, past[0]], axis=1)", v="np.concatenate([value, past[1]], axis=1)"),
            "knows no order",
        ),
        "exchanged": ("cache_exchanged", decode(back="(output, (v, k))"), "in the place of the keys"),
        "last": ("last_output_only", decode(back="(output[:, -1:], (k, v))"), "of the last new token"),
        "own scores": ("no_scale + attention_not_called", decode(attend="unscaled(query, k, v, mask)")),
        "own attention": ("attention_not_called", decode(attend="another(query, k, v, mask)"), "In 'it speaks'"),
        "zeros returned": ("constant_result", decode(attend="0 * attention(query, k, v, mask)")),
        "all blocked": ("constant_result", decode(mask="np.zeros((n, k.shape[1]), bool)"), "such as 0"),
        "mask of numbers": (None, decode(mask="np.tri(n, k.shape[1], k.shape[1] - n)"), "only 0 and 1"),
        "mask of int": (None, decode(mask="np.tri(n, k.shape[1], k.shape[1] - n, int)"), "boolean"),
        "one ahead": ("chunk_not_masked", decode(mask="np.tri(n, k.shape[1], k.shape[1] - n + 1, dtype=bool)")),
        "masked at first only": (
            "chunk_not_masked",
            decode(mask="None if past[0].size else np.tri(n, dtype=bool)"),
            "perhaps only behind other tokens",
        ),
        "upper left unless alone": (
            "chunk_upper_left",
            decode(mask="np.tri(n, k.shape[1], dtype=bool) if n > 1 else None"),
        ),
        **{
            f"{told} spoiled": (
                "mutates_input",
                decode(attend=f"(attention(query, k, v, mask), {line})[0]"),
                "the arrays you were given have changed",
            )
            for told, line in (
                ("past keys", "past[0].__imul__(2)"),
                ("past values", "past[1].fill(0)"),
                ("new keys", "key.fill(0)"),
            )
        },
        "one array": ("too_few_returned", lambda *a: a[0], "must return (output, (keys, values))"),
        **{
            f"{told} joined": (
                "joined_elsewhere",
                decode(k=f"np.concatenate([past[0], key], {axis})", v=f"np.concatenate([past[1], value], {axis})"),
                "than that of the tokens",
            )
            for told, axis in (("heads", 0), ("features", -1))
        },
        "heads of the values joined": ("joined_elsewhere", decode(v="np.concatenate([past[1], value])")),
        "rows of a mask joined": (
            None,
            decode(mask="np.concatenate([np.ones((n, k.shape[1] - n), bool), np.tri(n, dtype=bool)])"),
            "raises",
        ),
        "no heads": (None, decode(back="(output[0], (k, v))"), "(6, 3)"),
        "values of the chunk": (None, decode(v="value"), "raises", "as if"),  # shapes do not fit: loud
    },
    "accept_draft": {
        "one too many": (
            "one_too_many_accepted",
            keeps("i == m or i and draft[i - 1] != chosen[i - 1]"),
            "is accepted, too",
        ),
        "the model's one too many": (
            "one_too_many_accepted",
            keeps("i == m or i and draft[i - 1] != chosen[i - 1]", "chosen[:i + 1]"),
        ),
        "the draft's token": ("draft_in_place_of_the_models", keeps(new="(draft + chosen[m:])[:i + 1]")),
        "of the draft alone": ("draft_in_place_of_the_models", keeps(new="draft[:i + 1]")),
        "all that agree": ("agreements_counted", keeps("i == sum(equal)"), "behind the first disagreement count"),
        "all that agree, the model's": ("agreements_counted", keeps("i == sum(equal)", "chosen[:i + 1]")),
        "up to the last that agrees": (
            "agreements_counted",
            keeps("not any(equal[i:])"),
            "behind the first disagreement",
        ),
        "up to the last, the model's": ("agreements_counted", keeps("not any(equal[i:])", "chosen[:i + 1]")),
        "a row late": ("draft_read_one_row_late", keeps("i == m or draft[i] != chosen[i + 1]"), "row i + 1"),
        "a row late, the model's": (
            "draft_read_one_row_late",
            keeps("i == m or draft[i] != chosen[i + 1]", "chosen[:i + 1]"),
        ),
        "without row 0": (
            "draft_read_one_row_late",
            lambda logits, draft, past: keeps(new="[*draft[:i], *chosen[i:i + 1]]")(logits[1:], draft, past),
        ),
        "the row before": ("another_row_of_logits", keeps(new="[*draft[:i], chosen[i - 1]]")),
        "the row behind": ("another_row_of_logits", keeps(new="[*draft[:i], chosen[min(i + 1, m)]]"), "another row"),
        "the last row": ("another_row_of_logits", keeps(new="[*draft[:i], chosen[-1]]")),
        "none accepted": (None, keeps("True")),
        "all accepted": ("whole_pass_kept", keeps("i == m")),
        "all that the model said": ("whole_pass_kept", keeps(new="chosen"), "behind the first disagreement"),
        "all or nothing": (
            "all_or_nothing",
            lambda logits, draft, past: keeps("i == m" if draft == logits.argmax(-1).tolist()[:-1] else "True")(
                logits, draft, past
            ),
        ),
        "without the model's": ("models_token_dropped", keeps(new="draft[:i]"), "left out"),
        "three at most": (None, keeps("i == min(m, 3) or draft[i] != chosen[i]"), "agrees as a whole"),
        "not cut": ("cache_not_cut", keeps(rows="n"), "keeps 10 of 10 rows"),
        "features cut": ("cut_along_another_axis", cut_by(lambda x, rows: x[..., :rows]), "another axis"),
        "heads cut": ("cut_along_another_axis", cut_by(lambda x, rows: x[:rows])),
        "features and rows cut": (None, cut_by(lambda x, rows: x[:, :rows, :3]), "not the first ones"),
        "none after all": (
            "own_token_after_all_missing",
            lambda logits, draft, past: (lambda new, kept: (new[: len(draft)], kept))(*keeps()(logits, draft, past)),
            "the whole draft agrees",
        ),
        "minus zero": ("cut_by_minus_zero", keeps(rows="-(m - i)"), "keeps 0 of 11 rows"),
        "as many as accepted": ("text_before_forgotten", keeps(rows="i"), "keeps 2 of 10 rows"),
        "and the newest": ("text_before_forgotten", keeps(rows="i + 1")),
        "emptied": ("cache_emptied", keeps(rows="0")),
        "a row too many": ("rejected_row_kept", keeps(rows="n - (m - i) + (m > i)")),
        "the whole draft cut": ("cache_cut_too_far", keeps(rows="n - m")),
        "a row too few": ("cache_cut_too_far", keeps(rows="n - (m - i) - 1")),
        "old rows alone": ("cache_cut_too_far", keeps(rows="n - m - 1")),
        "two at once": (None, keeps(new="(draft + chosen[m:])[:i + 1]", rows="n"), "keeps 10 of 10 rows"),
        "the last rows": (
            None,
            lambda logits, draft, past: (keeps()(logits, draft, past)[0], [(k[:, 1:], v[:, 1:]) for k, v in past]),
            "not the first ones of what it held",
            "as if",
        ),
        "one layer": (
            None,
            lambda logits, draft, past: (keeps()(logits, draft, past)[0], past[:1]),
            "Fix: return new, past",
            "as if",
        ),
        "tokens alone": (None, lambda *a: keeps()(*a)[0], "Fix: return new, past", "as if"),
    },
    "out_of_reach": {
        "near": ("subject_in_reach", "the cats behind the happy king", "4 places or fewer"),
        "told": ("told_by_another_verb", "the old cats that see the old dog", "after “that”"),
        "whole": ("verb_not_due", "the cats that the old dog sees run .", "it has been said"),
        "two": ("no_sentence", "the cats that the small old dog sees", "one adjective", "not yet"),
        "sleeps": ("verb_after_that_unfit", "the cats that the old dog sleeps", "agrees", "adjective"),
        "main verb": ("no_sentence", "the cats that the dog sees sleeps", "a verb agrees"),
        "zebra": (None, "the cats that the zebra sees", "zebra", "as if"),
        "The": (None, "The cats that the old dog sees", "in lower case", "as if"),
        "a list": (None, ["the", "cats"], "one string", "as if"),
    },
}

"""Decoding as steps that can be replaced: what the exercises of One token at a time ask, try, and see go wrong."""

import contextlib
from functools import cached_property

import numpy as np

from attnlib import core

from ...engine.compare import RIGHT
from ...engine.exercise import Function
from ...engine.probes import BATCH, CUBE, MASK, PLAIN, PLAIN_MASKED, Draw, Probe, with_negated_queries
from ...engine.run import Unfit, copy_of, describe_error, was_written_to
from ...engine.steps import Steps, replace_steps


class Window(Steps):
    # How far key j lies behind query i, (n_q, n_k): the queries are the last tokens.
    back = cached_property(lambda s: np.arange(s.n_k - s.n_q, s.n_k)[:, None] - np.arange(s.n_k))
    near = cached_property(lambda s: (s.back >= 0) & (s.back < s.window))


class Grouped(Steps):
    attention = None  # what is handed over, where a probe does

    # The queries as the attention that is handed over sees them.
    q = cached_property(lambda s: -s.asked if s.attention in (TURNED, TURNED_GROUPED) else s.asked)

    @cached_property
    def serving(self):
        """Which head of keys serves each head of queries, (h,)."""
        h, h_kv = self.q.shape[-3], self.key.shape[-3]
        return np.arange(h) // (h // h_kv)

    serving_values = cached_property(lambda s: s.serving)
    k = cached_property(lambda s: s.key[..., s.serving, :, :])
    v = cached_property(lambda s: s.value[..., s.serving_values, :, :])


def attend(query, key, value, attn_mask=None):
    """What the step of decoding is handed: attention whose heads may share keys and values."""
    s = Grouped(q=query, key=key, value=value)
    return core.scaled_dot_product_attention(query, s.k, s.v, attn_mask)


# To see whether the attention that is handed over is called: that of grouped_attention, and that of decode_step.
TURNED, TURNED_GROUPED = with_negated_queries(core.scaled_dot_product_attention), with_negated_queries(attend)


class Decoding(Grouped):
    """One chunk of a sequence, (h, n, d_k), behind what a cache holds."""

    # The keys and values that the queries meet.
    seen = cached_property(lambda s: append_tokens(s.past, s.new))
    cached = cached_property(lambda s: s.seen)
    key = cached_property(lambda s: s.seen[0])
    value = cached_property(lambda s: s.seen[1])
    sizes = cached_property(lambda s: (s.q.shape[-2], s.key.shape[-2]))

    @cached_property
    def mask(self):
        n_q, n_k = self.sizes
        return np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)

    returned = cached_property(lambda s: s.output)


class Checking(Steps):
    """A draft that one pass of the model has read behind the newest token."""

    # What the model would write after the newest token, and after each of the draft, (m + 1,).
    chosen = cached_property(lambda s: s.logits.argmax(axis=-1).tolist())

    @property
    def agreeing(self):
        """How many tokens the longest agreeing beginning of the draft has."""
        same = [a == b for a, b in zip(self.draft, self.chosen, strict=False)]
        return [*same, False].index(False)

    agreed = cached_property(lambda s: s.agreeing)
    new = cached_property(lambda s: [*s.draft[: s.agreed], s.chosen[s.agreed]])
    # Where the rows of the cache end.
    end = cached_property(lambda s: s.agreed - len(s.draft) or None)
    kept_of = cached_property(lambda s: lambda x: x[:, : s.end])
    accepted = cached_property(lambda s: (s.new, [tuple(map(s.kept_of, pair)) for pair in s.past]))


class Chances(Steps):
    """A word drafted with the probabilities q for a model that has p: is it kept, and what is written else?"""

    lacks = cached_property(lambda s: np.maximum(s.p - s.q, 0))
    kept = cached_property(lambda s: np.minimum(s.p / s.q, 1))
    other = cached_property(lambda s: s.lacks / s.lacks.sum())
    chances = cached_property(lambda s: np.stack([s.kept, s.other]))


def in_chunks(step, query, key, value, chunks, attention, spoiled):
    """Run `step` over a sequence cut into chunks and return all outputs, (h, n, d_v); None where it returns nothing.

    Note in `spoiled`, for each chunk, whether the past that was handed over has been written to.
    """
    past, outputs, start = (key[:, :0], value[:, :0]), [], 0
    for chunk in chunks:
        now, before = slice(start, start + chunk), copy_of(past)
        try:
            result = step(query[:, now], key[:, now], value[:, now], past, attention)
        except ValueError as error:
            if _joined_elsewhere(step, query, key, value):
                told = f"{describe_error(error)}\nOld and new are joined along another axis than that of the tokens."
                raise Unfit(told, "joined_elsewhere") from None
            raise
        spoiled.append(was_written_to(before, past))
        if result is None or result is ...:
            return None
        try:
            output, (keys, values) = result
            past = keys, values
            outputs.append(np.asarray(output, dtype=float))
        except (TypeError, ValueError):
            raise Unfit(
                f"Your step must return (output, (keys, values)), output with a row for each of {chunk} new tokens in "
                f"each head; you return {_describe_result(result)}. Fix: return output, (keys, values).",
                None if isinstance(result, tuple) else "too_few_returned",
            ) from None
        start += chunk
    widths = {(output.ndim, len(output), output.shape[-1]) for output in outputs}
    if len(widths) > 1 or outputs[0].ndim < 2:
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise ValueError(f"the outputs of all chunks must be (h, n, d_v), with the same h and d_v; they are {shapes}")
    return np.concatenate(outputs, axis=-2)


def _joined_elsewhere(step, *new):
    """Tell whether a past of as many tokens as are new, where any axis fits, is joined along another one."""
    with contextlib.suppress(Exception):
        kept = step(*new, new[1:], lambda query, *_: query)[1]
        shapes = [{np.concatenate([x, x], axis).shape for axis in (0, 2)} for x in new[1:]]
        return any(x.shape in elsewhere for x, elsewhere in zip(kept, shapes, strict=True))
    return False


def _describe_result(result):
    if isinstance(result, tuple):
        return "a tuple of " + ", ".join(str(getattr(part, "shape", type(part).__name__)) for part in result)
    return f"shape {result.shape}" if hasattr(result, "shape") else f"a {type(result).__name__}"


class InChunks(Function):
    """A step of decoding, judged by what it gives over a whole sequence."""

    @property
    def names(self):
        return (*super().names, "too_few_returned", "joined_elsewhere")

    def call_on_probe(self, function, args, **options):
        spoiled = []

        def outputs(*given):
            return in_chunks(function, *given, spoiled)

        outcome = super().call_on_probe(outputs, args, **options)
        return outcome._replace(mutated=outcome.mutated or any(spoiled))

    def _variants(self):
        ways = super()._variants()
        del ways["mask_ignored"], ways["causal_mask_added"]  # chunk_not_masked and chunk_upper_left say more here
        del ways["as_many_keys_as_queries"]  # only a prompt has: an error after it has many causes
        return ways

    def with_steps(self, overrides):
        steps = replace_steps(self.steps, overrides)

        def step(*args):
            s = steps(arguments=args, **self.given(*args))
            return s.finish(self.result(s)), s.cached

        return step


ANOTHER = "another function handed over"


def window_probes():
    return (
        Probe("n_q = n_k = 5, window 2", (5, 5, 2)),
        Probe("window 1", (4, 4, 1)),
        Probe("a window longer than the sequence", (3, 3, 9)),
        Probe("one new token after 5 others, window 3", (1, 6, 3)),
        Probe("the last 3 of 9 tokens as queries, window 6", (3, 9, 6)),
    )


def grouped_probes():
    draw = Draw("grouped_attention")

    def arrays(h, h_kv, n_q, n_k, d_k, d_v, *b):
        return draw(*b, h, n_q, d_k), draw(*b, h_kv, n_k, d_k), draw(*b, h_kv, n_k, d_v)

    def masked_arguments(mask, *sizes):
        return (*arrays(*sizes), mask, core.scaled_dot_product_attention)

    return (
        Probe(PLAIN, arrays(4, 2, 3, 5, 6, 2)),
        Probe(BATCH, arrays(6, 2, 3, 5, 4, 3, 2)),
        Probe("one head of keys and values", arrays(3, 1, 4, 5, 6, 2)),
        Probe("as many heads of keys and values as of queries", arrays(3, 3, 2, 5, 4, 3)),
        Probe(CUBE, arrays(4, 2, 4, 4, 4, 4, 4)),
        Probe(PLAIN_MASKED, masked_arguments(MASK, 6, 3, 4, 5, 6, 2)),
        Probe("a causal mask", masked_arguments(np.tri(4, dtype=bool), 4, 2, 4, 4, 5, 3)),
        Probe(ANOTHER, (*arrays(4, 2, 3, 5, 6, 2), None, TURNED)),
    )


def decoding_probes():
    draw = Draw("decode_step")

    def sequence(chunks, h=4, h_kv=2, d_k=5, d_v=3, attention=attend):
        n = sum(chunks)
        return draw(h, n, d_k), draw(h_kv, n, d_k), draw(h_kv, n, d_v), chunks, attention

    return (
        Probe("6 tokens all at once", sequence((6,))),
        Probe("one token at a time", sequence((1,) * 6)),
        Probe("a prompt of 3 tokens, then one at a time", sequence((3, 1, 1, 1))),
        Probe("chunks of 2 tokens", sequence((2, 2, 2))),
        Probe("chunks of 1, 4 and 3 tokens", sequence((1, 4, 3), 3, 3)),
        Probe("chunks of 2 tokens, keys as long as values", sequence((2, 2, 2), d_k=4, d_v=4)),
        Probe(ANOTHER, sequence((3, 1), attention=TURNED_GROUPED)),
    )


def checking_probes():
    """Return passes of two layers: 5 tokens are in the cache, the newest one, and a draft of which some agree."""
    draw = Draw("accept_draft")

    def draft_arguments(chosen, draft):
        logits = draw(len(chosen), 9)
        logits[np.arange(len(chosen)), chosen] = 5
        n = 5 + len(chosen)
        return logits, draft, [(draw(12, n, 13), draw(12, n, 14)) for _ in range(2)]  # every axis can be cut at any row

    return (
        Probe("a draft of 4, of which 2 agree, and then none", draft_arguments([3, 1, 4, 8, 5], [3, 1, 6, 2])),
        Probe(
            "a draft of 5, of which the first 2 and the last agree",
            draft_arguments([2, 7, 1, 8, 3, 6], [2, 7, 4, 0, 3]),
        ),
        Probe("a draft of which no token agrees", draft_arguments([6, 2, 8, 4], [5, 1, 3])),
        Probe("a draft whose first token is wrong and whose others agree", draft_arguments([6, 2, 8, 4], [5, 2, 8])),
        Probe("a draft that is one token ahead of the model", draft_arguments([4, 2, 7, 1], [2, 7, 1])),
        Probe("a draft of 5 that agrees as a whole", draft_arguments([1, 7, 3, 2, 5, 8], [1, 7, 3, 2, 5])),
        Probe("no draft: nothing was found", draft_arguments([4], [])),
    )


def chance_probes():
    draw = Draw("draft_chances")

    def exact(p):  # in 1024ths: p - q sums to 0
        return np.diff(np.round(1024 * np.cumsum([0, *p])) / 1024)

    return tuple(Probe(f"{n} words", tuple(exact(core.softmax(draw(n))) for _ in range(2))) for n in (3, 5, 8))


def judge_accepted(result, logits, draft, past):
    """Say which tokens and how many rows of the cache are kept, and whether those are the right ones."""
    right, held = Checking(logits=logits, draft=draft, past=past), past[0][0].shape[-2]
    try:
        new, kept = result
        new, kept = [int(token) for token in new], [tuple(map(np.asarray, pair)) for pair in kept]
        both = [pair for layers in zip(kept, past, strict=True) for pair in zip(*layers, strict=True)]
        rows = {_rows_of(*pair) for pair in both}
    except (TypeError, ValueError):
        raise Unfit(
            "Your function must return the new tokens and the cache, a list with (keys, values) for each layer. "
            "Fix: return new, past."
        ) from None
    cache = f"the cache keeps {min(rows)} of {held} rows"
    if len(rows) > 1 or -1 in rows:
        cache = "the rows of the cache are not the first ones of what it held, as many in each layer of keys and values"
    if all(x.shape[1:2] == y.shape[1:2] and x.size < y.size for x, y in both):
        cache = "the cache is cut along another axis than that of the tokens"
    sentence, expected = f"You return the tokens {new}, and {cache}.", held - len(draft) + right.agreed
    if sentence == f"You return the tokens {right.new}, and the cache keeps {expected} of {held} rows.":
        return RIGHT, ""
    asked = f"The draft is {draft}, and the model would have written {right.chosen}."
    return None, f"{asked} {sentence} Expected: {right.new}, and {expected} rows."


def _rows_of(x, whole):
    """Return how many of the first rows of `whole` x is, or -1."""
    n = x.shape[-2] if x.ndim == 3 else 0
    return n if np.array_equal(x, whole[:, :n]) else -1


def only_if(fits):
    """Raise where heads are served, unless `fits(steps, heads of queries, heads of keys)`."""

    def serving(s):
        if not fits(s, s.q.shape[-3], s.key.shape[-3]):
            raise ValueError("the axes of the heads do not match")
        return side_by_side(s)

    return {"serving": serving}


def dealt_out(s):
    """Serve heads of queries in turn."""
    return np.arange(s.q.shape[-3]) % s.key.shape[-3]


def side_by_side(s):
    """Serve neighbours, as is right."""
    return Grouped(q=s.q, key=s.key).serving


def mean_queries(s):
    """Average the queries of each group, (..., g, n_q, d_k)."""
    q = Grouped(asked=s.asked, attention=s.attention).q
    return q.reshape(*q.shape[:-3], s.key.shape[-3], -1, *q.shape[-2:]).mean(axis=-3)


def append_tokens(old, new):
    return tuple(np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))


def values_forgotten(s):
    keys, values = s.past
    return append_tokens((keys, np.zeros_like(values)), s.new)


def all_agreements(s):
    return sum(a == b for a, b in zip(s.draft, s.chosen, strict=False))


def last_agreement(s):
    return max((i + 1 for i, (a, b) in enumerate(zip(s.draft, s.chosen, strict=False)) if a == b), default=0)


def own_from(by):
    """Take the model's own token from a row beside the right one, as long as there is one."""
    return lambda s: [*s.draft[: s.agreed], s.chosen[min(max(s.agreed + by, 0), len(s.draft))]]


def _late(s):
    return Checking(draft=s.draft, chosen=s.chosen[1:]).agreeing


CHOSEN = {"new": lambda s: s.chosen[: s.agreed + 1]}  # right as long as `agreed` is
FROM_P = {"other": lambda s: s.p}
FROM_THE_REST = {"other": lambda s: (s.p - s.q * s.kept) / (1 - s.q @ s.kept)}  # what is written has p, then
# Token i of the draft compared with row i + 1; and what may be written then.
ONE_ROW_LATE = (
    *({"agreed": _late, **new} for new in ({}, CHOSEN, {"new": own_from(1)})),
    {"agreed": _late, "new": lambda s: [*s.draft[: s.agreed], *s.chosen[1:][s.agreed : s.agreed + 1]]},
)

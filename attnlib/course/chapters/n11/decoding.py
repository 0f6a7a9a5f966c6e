"""Decoding as steps that can be replaced: what the exercises of notebook 11 ask, try, and see go wrong."""

from functools import cached_property

import numpy as np

from .... import core
from ...engine.exercise import Function
from ...engine.probes import BATCH, CUBE, MASK, PLAIN, PLAIN_MASKED, Draw, Probe, turned
from ...engine.run import Unfit, changed, copy_of
from ...engine.steps import Steps, replaced


class Window(Steps):
    @cached_property
    def back(self):
        """How far key j lies behind query i, (n_q, n_k): the queries are the last tokens."""
        return np.arange(self.n_k - self.n_q, self.n_k)[:, None] - np.arange(self.n_k)

    @cached_property
    def near(self):
        return (self.back >= 0) & (self.back < self.window)


class Grouped(Steps):
    attention = None  # what is handed over, where a probe does

    @cached_property
    def q(self):
        """The queries as the attention that is handed over sees them."""
        return -self.asked if self.attention in (TURNED, TURNED_GROUPED) else self.asked

    @cached_property
    def serving(self):
        """Which head of keys serves each head of queries, (h,)."""
        h, h_kv = self.q.shape[-3], self.key.shape[-3]
        return np.arange(h) // (h // h_kv)

    @cached_property
    def serving_values(self):
        return self.serving

    @cached_property
    def k(self):
        return self.key[..., self.serving, :, :]

    @cached_property
    def v(self):
        return self.value[..., self.serving_values, :, :]


def attend(query, key, value, attn_mask=None):
    """What the step of decoding is handed: attention whose heads may share keys and values."""
    s = Grouped(q=query, key=key, value=value)
    return core.scaled_dot_product_attention(query, s.k, s.v, attn_mask)


# To see whether the attention that is handed over is called: that of 11.2, and that of 11.3.
TURNED, TURNED_GROUPED = turned(core.scaled_dot_product_attention), turned(attend)


class Decoding(Grouped):
    """One chunk of a sequence, (h, n, d_k), behind what a cache holds."""

    @cached_property
    def seen(self):
        """The keys and values that the queries meet."""
        return joined(self.past, self.new)

    @cached_property
    def cached(self):
        return self.seen

    @cached_property
    def key(self):
        return self.seen[0]

    @cached_property
    def value(self):
        return self.seen[1]

    @cached_property
    def sizes(self):
        return self.q.shape[-2], self.key.shape[-2]

    @cached_property
    def mask(self):
        n_q, n_k = self.sizes
        return np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)

    @cached_property
    def returned(self):
        return self.output


class Driving(Steps):
    @cached_property
    def written(self):
        def write(prompt):
            cache, tokens, new = self.new_cache(), [], list(prompt)
            for _ in range(self.count):
                new = [int(np.argmax(self.model(new, cache)))]
                tokens += new
            return tokens

        return np.array([write(prompt) for prompt in self.prompts])


def in_chunks(step, query, key, value, chunks, attention, spoiled):
    """Run `step` over a sequence cut into chunks and return all outputs, (h, n, d_v); None where it returns nothing.

    Note in `spoiled`, for each chunk, whether the past that was handed over has been written to.
    """
    past, outputs, start = (key[:, :0], value[:, :0]), [], 0
    for chunk in chunks:
        now, before = slice(start, start + chunk), copy_of(past)
        result = step(query[:, now], key[:, now], value[:, now], past, attention)
        spoiled.append(changed(before, past))
        if result is None or result is ...:
            return None
        try:
            output, (keys, values) = result
            past = keys, values
            outputs.append(np.asarray(output, dtype=float))
        except (TypeError, ValueError):
            raise Unfit(
                f"Your step must return (output, (keys, values)), output with a row for each of {chunk} new tokens in "
                f"each head; you return {_described(result)}. Fix: return output, (keys, values).",
                "another_number_returned",
            ) from None
        start += chunk
    widths = {(output.ndim, len(output), output.shape[-1]) for output in outputs}
    if len(widths) > 1 or outputs[0].ndim < 2:
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise ValueError(f"the outputs of all chunks must be (h, n, d_v), with the same h and d_v; they are {shapes}")
    return np.concatenate(outputs, axis=-2)


def _described(result):
    if isinstance(result, tuple):
        return "a tuple of " + ", ".join(str(getattr(part, "shape", type(part).__name__)) for part in result)
    return f"shape {result.shape}" if hasattr(result, "shape") else f"a {type(result).__name__}"


class InChunks(Function):
    """A step of decoding, judged by what it gives over a whole sequence."""

    def run(self, function, args, **options):
        spoiled = []

        def outputs(*given):
            return in_chunks(function, *given, spoiled)

        outcome = super().run(outputs, args, **options)
        return outcome._replace(mutated=outcome.mutated or any(spoiled))

    def _variants(self):
        ways = super()._variants()
        del ways["mask_ignored"], ways["causal_mask_added"]  # chunk_not_masked and chunk_upper_left say more here
        del ways["as_many_keys_as_queries"]  # only a prompt has: an error after it has many causes
        return ways

    def with_steps(self, overrides):
        steps = replaced(self.steps, overrides)

        def step(*args):
            s = steps(arguments=args, **self.given(*args))
            return s.finish(self.result(s)), s.cached

        return step


ANOTHER = "another `attention` handed over"


def window_probes():
    return (
        Probe("n_q = n_k = 5, window 2", (5, 5, 2)),
        Probe("window 1", (4, 4, 1)),
        Probe("a window longer than the sequence", (3, 3, 9)),
        Probe("one new token after 5 others, window 3", (1, 6, 3)),
        Probe("the last 3 of 7 tokens as queries, window 4", (3, 7, 4)),
    )


def grouped_probes():
    draw = Draw("grouped_attention")

    def arrays(h, h_kv, n_q, n_k, d_k, d_v, *b):
        return draw(*b, h, n_q, d_k), draw(*b, h_kv, n_k, d_k), draw(*b, h_kv, n_k, d_v)

    def masked(mask, *sizes):
        return (*arrays(*sizes), mask, core.scaled_dot_product_attention)

    return (
        Probe(PLAIN, arrays(4, 2, 3, 5, 6, 2)),
        Probe(BATCH, arrays(6, 2, 3, 5, 4, 3, 2)),
        Probe("one head of keys and values", arrays(3, 1, 4, 5, 6, 2)),
        Probe("as many heads of keys and values as of queries", arrays(3, 3, 2, 5, 4, 3)),
        Probe(CUBE, arrays(4, 2, 4, 4, 4, 4, 4)),
        Probe(PLAIN_MASKED, masked(MASK, 6, 3, 4, 5, 6, 2)),
        Probe("a causal mask", masked(np.tri(4, dtype=bool), 4, 2, 4, 4, 5, 3)),
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


def driving_probes():
    """Return prompts for a model whose next token depends on every token in its cache, and on their order."""
    draw = Draw("write_all")
    table = draw(12, 40)

    def model(tokens, cache):
        cache.extend(tokens)
        return sum(np.sin((p + 2) * table[:, token]) for p, token in enumerate(cache))

    return (
        Probe("one prompt", (model, list, ((3, 1, 4),), 6)),
        Probe("two prompts, one after the other", (model, list, ((3, 1, 4), (15, 9)), 6)),
        Probe("three prompts of different length", (model, list, ((7,), (2, 7, 1, 8), (2, 8, 1)), 5)),
    )


def only_if(fits):
    """Raise where heads are served, unless `fits(heads of queries, heads of keys)`."""

    def serving(s):
        if not fits(s.q.shape[-3], s.key.shape[-3]):
            raise ValueError("the axes of the heads do not match")
        return side_by_side(s)

    return {"serving": serving}


def dealt_out(s):
    """Serve heads of queries in turn."""
    return np.arange(s.q.shape[-3]) % s.key.shape[-3]


def side_by_side(s):
    """Serve neighbours, as is right."""
    return Grouped(q=s.q, key=s.key).serving


def joined(old, new):
    return tuple(np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))


def values_forgotten(s):
    keys, values = s.past
    return joined((keys, np.zeros_like(values)), s.new)


def written_by(write):
    return {"written": lambda s: np.array(write(s))}


def rightly(s, **changed):
    """Return what is right to write, with some of what is given changed."""
    given = {name: getattr(s, name) for name in ("model", "new_cache", "prompts", "count")}
    return Driving(**{**given, **changed}).written


def one_cache(s):
    """Every prompt goes on in the cache of the one before."""
    cache = s.new_cache()
    return rightly(s, new_cache=lambda: cache)


def in_turn(s):
    """One cache for all, and a token for each sequence in turn."""
    cache, news, tokens = s.new_cache(), [list(prompt) for prompt in s.prompts], [[] for _ in s.prompts]
    for _ in range(s.count):
        for i, new in enumerate(news):
            news[i] = [int(np.argmax(s.model(new, cache)))]
            tokens[i] += news[i]
    return tokens


def all_again(s, prompt_too=True):
    """All tokens so far, or all new ones, go into the cache at every step."""
    rows = []
    for prompt in s.prompts:
        cache, tokens = s.new_cache(), list(prompt)
        for _ in range(s.count):
            given = tokens if prompt_too else tokens[len(prompt) :] or tokens
            tokens.append(int(np.argmax(s.model(given, cache))))
        rows.append(tokens[len(prompt) :])
    return rows


def new_cache_each_step(s):
    rows = []
    for prompt in s.prompts:
        new, tokens = list(prompt), []
        for _ in range(s.count):
            new = [int(np.argmax(s.model(new, s.new_cache())))]
            tokens += new
        rows.append(tokens)
    return rows


def prompt_twice(s):
    return rightly(s, prompts=[(*p, *p) for p in s.prompts])


def one_short(s):
    return rightly(s, count=s.count - 1)


def from_the_second(s):
    return Driving(model=s.model, new_cache=s.new_cache, prompts=s.prompts, count=s.count + 1).written[:, 1:]


def the_first_again(s):
    first = Driving(model=s.model, new_cache=s.new_cache, prompts=s.prompts, count=1).written
    return np.repeat(first, s.count, axis=1)


def the_prompts_last_again(s):
    """Every step gives the model the last token of the prompt, where the newest one belongs."""
    rows = []
    for prompt in s.prompts:
        cache, tokens, new = s.new_cache(), [], list(prompt)
        for _ in range(s.count):
            tokens.append(int(np.argmax(s.model(new, cache))))
            new = list(prompt[-1:])
        rows.append(tokens)
    return rows


def last_token_twice(s):
    """The whole prompt goes into the cache, and then its last token once more, to begin with."""

    def filled(prompt):
        cache = s.new_cache()
        s.model(prompt, cache)
        return cache

    return [
        Driving(model=s.model, new_cache=lambda p=p: filled(p), prompts=[p[-1:]], count=s.count).written[0]
        for p in s.prompts
    ]


def with_part(part, least):
    """Only this part is read of each prompt that has `least` tokens or more."""
    return written_by(lambda s: rightly(s, prompts=[p[part] if len(p) >= least else p for p in s.prompts]))


def behind_prompts(s):
    """The prompts and what is written behind them; of different length they make no array."""
    return [[*prompt, *row] for prompt, row in zip(s.prompts, rightly(s), strict=True)]

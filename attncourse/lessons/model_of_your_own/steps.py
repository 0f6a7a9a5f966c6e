"""The four exercises of A model of your own as steps that can be replaced."""

from functools import cached_property

import numpy as np

from attnlib.core import softmax

from ... import letters
from ...engine.steps import Steps


class Windows(Steps):
    shift = 1
    at = cached_property(lambda s: s.starts[:, None] + np.arange(s.n))  # (b, n)
    x = cached_property(lambda s: s.tokens[s.at])
    y = cached_property(lambda s: s.tokens[s.at + s.shift])
    both = cached_property(lambda s: np.stack([s.x, s.y]))


class Bits(Steps):
    along = -1  # the axis of the softmax
    highest = cached_property(lambda s: s.logits.max(s.along, keepdims=True))
    log_sum = cached_property(lambda s: np.log(np.exp(s.logits - s.highest).sum(s.along, keepdims=True)))
    log_p = cached_property(lambda s: s.logits - s.highest - s.log_sum)
    nats = cached_property(lambda s: -np.take_along_axis(s.log_p, s.targets[..., None], -1)[..., 0])  # (b, n)
    mean = cached_property(lambda s: s.nats.mean())
    bits = cached_property(lambda s: s.mean / np.log(2))


class Writing(Steps):
    draw = cached_property(lambda s: s.seed if callable(s.seed) else letters.dice(s.seed))
    seen = cached_property(lambda s: lambda tokens: tokens[-s.n :])
    batch = cached_property(lambda s: lambda tokens: np.array(tokens)[None])
    last = cached_property(lambda s: lambda logits: logits[0, -1])
    shares = cached_property(lambda s: lambda row: softmax(row / s.temperature))
    rounds = cached_property(lambda s: s.count)

    @cached_property
    def tokens(self):
        tokens = list(self.prompt)
        for _ in range(self.rounds):
            row = self.last(self.model(self.batch(self.seen(tokens))))
            tokens.append(self.draw(self.shares(row)))
        return tokens

    written = cached_property(lambda s: np.array(s.tokens))


class Block(Steps):
    found = cached_property(lambda s: s.attention(s.norm_1(s.x), s.allowed))
    middle = cached_property(lambda s: s.x + s.found)
    end = cached_property(lambda s: s.middle + s.network(s.norm_2(s.middle)))

"""The mistakes that only A state of fixed size knows."""

import numpy as np

from ...mistakes.mistake import Mistake

MISTAKES = (
    Mistake(
        "old_value_not_erased",
        behaves_as_if="new values were added to what stood under the key",
        symptom="A key that comes again then returns a sum of all its values.",
        hint="A key comes a second time, with beta = 1. What should it return?",
        then="The new value alone: subtract what stands under the key, k S, from the new value before you add it.",
        variants=({"added": lambda s: lambda beta, new, old: beta * new}, {"added": lambda s: lambda b, new, old: new}),
    ),
    Mistake(
        "read_before_written",
        behaves_as_if="a query read the state before its own token was written",
        symptom="The first token then reads 0, and each other what stood there before it.",
        hint="What should the query of the very first token read?",
        then="What the first token has just written. Write first, then read.",
        variants=({"read": lambda s: lambda states, i: states[i]},),
    ),
    Mistake(
        "last_state_read",
        behaves_as_if="every query read the last state, which holds what comes after it, too",
        symptom="The last token is right. A text that goes on would change what was read before.",
        hint="Add a token at the end. Do the rows before it change?",
        then="They should not: read in the loop, behind each token, not once behind all.",
        variants=({"read": lambda s: lambda states, i: states[-1]},),
    ),
    Mistake(
        "whole_state_faded",
        behaves_as_if="the whole state were multiplied by 1 - beta, not only what stands under the key",
        symptom="Right where beta is 0. A token with beta = 1 then wipes out all that came before.",
        hint="With beta = 1: which values should a new key leave as they are?",
        then="Those under keys at right angles to it: subtract beta k^T (k S), what stands under the key, alone.",
        variants=({"left": lambda s: lambda b, S: S - b * S, "added": lambda s: lambda b, new, old: b * new},),
    ),
    Mistake(
        "beta_on_one",
        behaves_as_if="beta multiplied only one of two, the new value or what stood there",
        symptom="Where beta is 1, nothing shows.",
        hint="What should a token with beta = 0 change in the state?",
        then="Nothing: beta multiplies the whole difference between the new value and the old.",
        variants=(
            {"added": lambda s: lambda beta, new, old: beta * new - old},
            {"added": lambda s: lambda beta, new, old: new - beta * old},
        ),
    ),
    Mistake(
        "key_not_normed",
        behaves_as_if="keys had not been brought to length 1, each by itself",
        symptom="A long key then erases more than what stands there, and the state grows and grows.",
        hint="How long are your keys? Take np.linalg.norm of one.",
        then="Divide each key by its own length: the norm along the last axis, with keepdims=True.",
        variants=(
            {"normed": lambda s: s.keys},
            {"normed": lambda s: s.keys / np.linalg.norm(s.keys)},
            {"normed": lambda s: s.keys / np.linalg.norm(s.keys, axis=-2, keepdims=True)},
            {"normed": lambda s: s.keys / np.sqrt((s.keys**2).mean(-1, keepdims=True))},
        ),
    ),
    Mistake(
        "query_normed",
        behaves_as_if="queries had been brought to length 1, too",
        symptom="Each row has the right direction, and another length.",
        hint="A query twice as long: how much larger is what it reads?",
        then="Twice as large, q S. Only keys are brought to length 1, since they write.",
        variants=({"asking": lambda s: s.asks / np.linalg.norm(s.asks, axis=-1, keepdims=True)},),
    ),
)

"""Guess ahead: what followed the last two tokens earlier in the text is a draft, and the model checks it in one pass.

Sources: Leviathan et al. 2023 (speculative decoding); Saxena 2023 (a draft that is looked up in the prompt).
"""

import numpy as np


def looked_up(tokens, length=7):
    """Return what followed the last two tokens where they stood before, the last time: at most `length` tokens.

    >>> looked_up([5, 6, 7, 8, 5, 6], length=3), looked_up([5, 6, 7])
    ([7, 8, 5], [])
    """
    for i in range(len(tokens) - 3, -1, -1):
        if tokens[i : i + 2] == tokens[-2:]:
            return tokens[i + 2 : i + 2 + length]
    return []


def accept_draft(logits, draft, past):
    """Return (new, past): the draft's longest agreeing beginning with the model's own token after it, and the cache.

    Row 0 of the logits, (m + 1, vocabulary), comes after the newest token, the others after each of the m of the draft.
    The cache, (keys, values) of each layer, is without the rows of the draft's other tokens.
    Derived in lesson one_token_at_a_time.

    >>> rows = [(np.ones((1, 5, 2)), np.ones((1, 5, 2)))]
    >>> new, ((keys, values),) = accept_draft(np.eye(4)[[1, 3, 0]], [1, 2], rows)
    >>> new, keys.shape
    ([1, 3], (1, 4, 2))
    """
    chosen = logits.argmax(axis=-1).tolist()  # greedy, (m + 1,)
    agreed = 0
    while agreed < len(draft) and draft[agreed] == chosen[agreed]:
        agreed += 1
    rows = past[0][0].shape[-2] - (len(draft) - agreed)
    return chosen[: agreed + 1], [(keys[:, :rows], values[:, :rows]) for keys, values in past]


def speculate(speaker, prompt, count=64, length=7, accept=accept_draft):
    """Return (text, passes): what `speaker.write(prompt, count)` gives, with a draft in every pass that finds one.

    Of each pass behind the prompt, `passes` tells how many tokens were drafted (at most `length`), how many accepted.
    `accept` is called as `accept_draft`.
    """
    tokens, passes = speaker.tokens(prompt, room=count + length), []
    start = len(tokens)
    x, past = speaker.prefill(tokens)
    tokens.append(int(np.argmax(speaker.unembedding @ x)))
    while len(tokens) < start + count and speaker.end not in tokens[start:]:
        draft = looked_up(tokens, length)
        x, past = speaker([tokens[-1], *draft], past)  # one pass for all of them
        new, past = accept(x @ speaker.unembedding.T, draft, past)
        tokens += [int(token) for token in new]
        passes.append((len(draft), len(new) - 1))
        if not len(new):
            raise ValueError("accept must return at least one new token, got none. Fix: the model's own is always new.")
    written = [*tokens[start : start + count], speaker.end]
    return speaker.tokenizer.decode(written[: written.index(speaker.end)]), passes

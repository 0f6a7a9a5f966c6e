# %% [markdown]
# # [[masks]] · Masks: who may look where?
#
# **Question.** How do you keep a model from reading ahead? *30 minutes, and 37 for exercises.*
#
# Picture a pupil with a worksheet: *the farmer sees the* \_\_\_. He must fill in the next word, and the next word is printed one
# line further down. He gets ten of ten, and has learned to look down.

# %% jupyter={"source_hidden": true}
from textwrap import fill as wrapped

import numpy as np
from matplotlib.patches import Rectangle

import attnlib as al
from attncourse import check, mine, predict
from attnlib import live, plot
from attnlib.colours import INK
from attnlib.examples import SENTENCE, W_O, WORDS

np.set_printoptions(precision=4, suppress=True)

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[pytorch_module]])* The first letter model was trained to return the number stored with the asked letter. What makes it find the
# right slot?
#
# - **a** it learned at which position the answer stands
# - **b** it learned $W_Q$ and $W_K$ that give equal letters a large score
# - **c** it learned a $W_V$ that holds all the answers
#
# **2.** *(notebook [[scaling]])* The numbers of a query and of a key are independent, with mean 0 and variance 1. You double $d_k$. What
# happens to the variance of their score, before the division?
#
# - **a** it stays the same
# - **b** it doubles
# - **c** it becomes four times as large
#
# **3.** *(notebook [[vectorized]])* All scores of one query grow by 100. What happens to its weights?
#
# - **a** they grow
# - **b** the largest one takes everything
# - **c** nothing

# %%
predict.before_masks(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A head that reads ahead
#
# Here is that pupil as a head. It knows no English. Each word asks for the position after its own, and takes the word that
# stands there.

# %% jupyter={"source_hidden": true}
sentence = "the farmer sees the cat and the cat sees the dog"
text = sentence.split()  # 11 tokens, one for each word
words = sorted(set(text))  # the vocabulary, 6 words


def one_hot(tokens):
    return np.eye(len(words))[[words.index(token) for token in tokens]]  # (n, 6)


# %%
def look_ahead(tokens, is_causal=False):  # is_causal: section 2
    position = np.eye(len(tokens) + 1)  # row i is position i, one-hot
    query = 100 * position[1:]  # (n, n + 1) token i asks for position i + 1
    key = position[:-1]  # (n, n + 1) and is found at position i
    value = one_hot(tokens)  # (n, 6) which word it is
    return al.attention_trace(query, key, value, is_causal=is_causal)


# %% jupyter={"source_hidden": true}
def next_words(tokens, **options):
    output = look_ahead(tokens, **options).output  # (n, 6)
    return [words[w] for w in output.argmax(axis=-1)]  # of equals the first


def count_right(tokens, **options):
    pairs = zip(next_words(tokens, **options), tokens[1:])
    return sum(guess == word for guess, word in pairs)


# %% jupyter={"source_hidden": true} tags=["slide"] says="Each word asks"
shown = look_ahead(text)
print(f"{count_right(text)} of {len(text) - 1} next words are right")
_, ax = plot.subplots(figsize=(5.2, 4.1))
labels = {"queries": text, "keys": text, "title": "set by hand: one position ahead"}
ax = plot.attention_heatmap(shown.weights, **labels, places=None, ax=ax)

# %% [markdown] tags=["predict"]
# **Predict.** Now there is no next line. The head gets *the farmer sees the* and must write on: its newest token names the next
# word, that word is added to the text, and so on. What does it write?
#
# - **a** it says one word over and over
# - **b** it goes on with the right words
# - **c** it stops with an error

# %%
guess_writes = None  # "a", "b" or "c"


# %% tags=["slide"] says="It copied"
def write(**options):
    so_far = text[:4]
    for _ in range(6):
        so_far = [*so_far, next_words(so_far, **options)[-1]]
    return " ".join(so_far)


print(write())

# %%
predict.writes_on(guess_writes)

# %% [markdown]
# It copied, and at the end of the text there is nothing to copy. All scores of the last row are 0, so all words get equal
# weight, and the most frequent word wins. Training finds this cheat, as notebook [[model_of_your_own]] shows.
#
# ## 2 · The causal mask
#
# A language model is trained on finished texts, and every finished text has the answers in it, one position further on. So the
# model must not see them. A **mask** says who may look where. It is a table of yes and no, $(n_q, n_k)$, with a row for each query and
# a column for each key. **In this series True means: may attend.**

# %% tags=["slide-code"] says="Where the mask"
mask = al.causal_mask(4)  # (n_q, n_k)
print(mask.astype(int))

# %% [markdown]
# This mask is *causal*: each word may look at itself and at what stands before it. **Try.** Switch from *none* to *causal*.
# Who looked at a later word, and whose row stays as it was?

# %% tags=["slide"] says="This mask is causal"
Q, K, V = SENTENCE.project()  # (4, 3), (4, 3), (4, 2)
may_look = live.masks(query=Q, key=K, tokens=WORDS, kinds=["none", "causal"])
may_look

# %% [markdown]
# <details><summary>Answer</summary>
#
# All but *she*: *Anna* looked most at *saw*, and *saw* at *Ben*. *She* stands last and may look everywhere, so her row stays.
#
# </details>

# %% [markdown]
# Where the mask is False, the scaled score becomes $-\infty$ before the softmax. Because $e^{-\infty} = 0$, the weight there is
# exactly 0, and the rest of the row still sums to 1.

# %%
scaled = Q @ K.T / np.sqrt(3)  # (n_q, n_k)
blocked = np.where(mask, scaled, -np.inf)
weights = al.softmax(blocked)
output = weights @ V  # (n_q, d_v): who, verb
for word, row, (who, verb) in zip(WORDS, weights, output):
    print(f"{word:4} weights {row}   who {who:.3f}  verb {verb:.3f}")
print("she plus what she takes:", SENTENCE.x[3] + output[3] @ W_O)

# %% [markdown] tags=["predict"]
# Early rows of a causal map look sharp because they have few keys. **Predict.** Now the head that reads ahead stands behind
# this mask, so the only large score of each row is hidden. What are the weights of row 2, the third token?

# %% tags=["slide"] says="But now every position"
hidden = look_ahead(text, is_causal=True)
print("row 2:", *hidden.weights[2, :5].round(2), "...")
print(f"{count_right(text, is_causal=True)} of {len(text) - 1} next words are right")
print("it writes:", write(is_causal=True))

# %% [markdown]
# The scores that are left are all 0, so the third token mixes three words equally. Two right words of ten are luck: the head
# names the most frequent word so far, and of equally frequent ones the first in the alphabet. But now every position answers without
# its target, as in writing.
#
# ### When the last words ask alone
#
# A model that writes keeps the keys and values of earlier words. Then only the newest word asks, here *she*: $n_q = 1$ and
# $n_k = 4$. She is the last token, so her mask $(1, 4)$ is the last row of the square one. Libraries call that **lower right**, and the
# first row **upper left**. With two queries it looks like this:

# %% jupyter={"source_hidden": true}
ax = plot.attention_heatmap(
    weights, queries=WORDS, keys=WORDS, attn_mask=mask, colorbar=False
)
told = "upper left:\nAnna and saw\nbegin", "lower right:\nBen and she\ncontinue"
for first, style, beside in ((0, "--", told[0]), (2, "-", told[1])):
    for colour, lw, ls in (("white", 6, "-"), ("black", 3, style)):
        look = {"fill": False, "ec": colour, "lw": lw, "ls": ls}
        _ = ax.add_patch(Rectangle((-0.46, first - 0.46), 3.92, 1.92, **look))
    _ = ax.text(3.7, first + 0.5, beside, va="center")
_ = ax.set_title("two masks (2, 4) in the square one")

# %% [markdown]
# A test with square masks sees no difference. So attnlib asks which one you mean:

# %%
print("lower_right:", al.causal_mask(1, 4, align="lower_right").astype(int))
print("upper_left: ", al.causal_mask(1, 4, align="upper_left").astype(int))
try:
    al.causal_mask(1, 4)
except al.ShapeError as error:
    print(wrapped(str(error), 76))

# %% [markdown]
# Queries that **continue** a text need the lower right. torch has [both](../REFERENCES.md#torch-causal), but `is_causal=True` of its
# `scaled_dot_product_attention` silently takes the upper left ([a thread](../REFERENCES.md#threads)).

# %% [markdown] tags=["exercise"]
# ### Exercise [[causal_mask]] · The causal mask
#
# **Goal.** Complete the mask that hides the future, in training and in writing. *6 minutes, medium.*
#
# `my_causal_mask(n_q, n_k=None)` returns $(n_q, n_k)$ of bool. The queries are the **last** `n_q` of `n_k` tokens. Each may attend
# to itself and to all tokens before it. `n_k` defaults to `n_q`, the whole text.


# %%
def my_causal_mask(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return ...  # your code: at which position of the sequence does each query stand?


# %%
verdict = check.causal_mask(my_causal_mask)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_causal_mask(n_q, n_k=None):
#     n_k = n_q if n_k is None else n_k
#     position = np.arange(n_k - n_q, n_k)[:, None]  # of each query in the sequence
#     return np.arange(n_k) <= position
# ```
#
# </details>

# %% [markdown] tags=["predict"]
# ## Break it · Zero after the softmax
#
# **Predict.** Somebody sets the blocked *weights* to 0 after the softmax. What do the rows of such a causal map sum to?
#
# - **a** all to 1, as before
# - **b** to less than 1, except the last row
# - **c** all to 0

# %%
guess_zero = None  # "a", "b" or "c"

# %%
zeroed = al.softmax(scaled) * mask  # (n_q, n_k)
print("-inf before softmax, row sums:", weights.sum(axis=-1))
print("zero after softmax, row sums: ", zeroed.sum(axis=-1))

# %%
predict.zero_after(guess_zero)

# %% [markdown]
# The blocked keys have already taken their share, and *Anna* keeps only 0.24. Worse, that 0.24 still depends on the future,
# because the softmax divided by a sum over all keys.

# %% [markdown] tags=["exercise"]
# ### Exercise [[masked_softmax]] · Masked softmax
#
# **Goal.** Give your softmax of exercise [[softmax]] a mask. *9 minutes, medium.*
#
# `my_masked_softmax(scores, attn_mask=None)` works over the last axis. A blocked key gets weight 0. A row that may attend to
# nothing gives zeros, where the softmax of [[softmax]] gives NaN. The check also tries very large scores. The first line loads your
# softmax, if you kept it, or ours.

# %%
softmax = mine.load("softmax")


def my_masked_softmax(scores, attn_mask=None):
    return ...  # your code: what does softmax get?


# %%
verdict = check.masked_softmax(my_masked_softmax)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# softmax = mine.load("softmax")
#
#
# def my_masked_softmax(scores, attn_mask=None):
#     if attn_mask is None:
#         return softmax(scores)
#     has_key = attn_mask.any(axis=-1, keepdims=True)  # (..., n_q, 1)
#     weights = softmax(np.where(attn_mask | ~has_key, scores, -np.inf))  # no row of -inf alone
#     return np.where(has_key, weights, 0)
# ```
#
# </details>

# %%
mine.keep(my_masked_softmax)

# %% [markdown] tags=["exercise"]
# ### Exercise [[masked_attention]] · Attention with a mask
#
# **Goal.** Give your attention of exercise [[scaled_dot_product_attention]] a mask. *6 minutes, medium.*
#
# `my_attention(query, key, value, attn_mask=None)` returns $(..., n_q, d_v)$. Yours of [[scaled_dot_product_attention]] stands in
# `mine/attention.py`, if you kept it: copy it, give it one argument more, and put your masked softmax in the place of the softmax. One
# mask $(n_q, n_k)$ may serve several heads, $(h, n_q, d_k)$. A query that may attend to nothing gets zeros.

# %%
masked_softmax = mine.load("masked_softmax")


def my_attention(query, key, value, attn_mask=None):
    return ...  # your code


# %%
verdict = check.masked_attention(my_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# masked_softmax = mine.load("masked_softmax")
#
#
# def my_attention(query, key, value, attn_mask=None):
#     scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])  # (..., n_q, n_k)
#     return masked_softmax(scaled, attn_mask) @ value  # (..., n_q, d_v)
# ```
#
# </details>

# %% [markdown]
# Notebook [[multi_head]] builds its heads on this function, and in [[it_speaks]] a language model calls it. The next cell keeps it in
# place of the one of [[scaled_dot_product_attention]], from which it has grown.

# %%
mine.keep(my_attention)

# %% [markdown]
# ## 3 · The causality poke
#
# You need not read a function to know whether it sees the future. Poke it: put another token in the place of one, and watch
# which outputs move. `poked` does so with each token in turn. Below, `attention` is the function that you have just kept, or ours.


# %%
def poked(attend, x):
    new = np.random.default_rng(0).normal(size=x.shape[-1])  # a token at random
    moved = []
    for token in range(len(x)):
        changed = np.where(np.arange(len(x))[:, None] == token, new, x)  # (n, d_in)
        moved.append(np.abs(attend(changed) - attend(x)).max(axis=-1))
    return np.stack(moved)  # (token changed, output)


# %%
attention = mine.load("attention")


def project(x):
    return x @ SENTENCE.W_Q, x @ SENTENCE.W_K, x @ SENTENCE.W_V


def attend(x, attn_mask=None):
    return attention(*project(x), attn_mask)


def zero_after(x):
    q, k, v = project(x)
    return al.softmax(q @ k.T / np.sqrt(3)) * al.causal_mask(4) @ v


# %% jupyter={"source_hidden": true}
def draw_pokes(pokes):
    size = {"figsize": (6.6, 2.6), "gridspec_kw": {"wspace": 0.05}}
    _, axes = plot.subplots(1, len(pokes), sharey=True, **size)
    labels = {"queries": WORDS, "keys": WORDS, "vmax": 2, "colorbar": False}
    for ax, (title, moved) in zip(axes, pokes.items()):
        _ = plot.attention_heatmap(moved, title=title, ax=ax, **labels)
        _ = ax.set_xlabel("output that moves", color=INK, bbox=None)
        changed = "token changed" if ax is axes[0] else ""
        _ = ax.set_ylabel(changed, color=INK, bbox=None)


# %% tags=["slide"] says="Behind the causal mask"
moved = {"no mask": poked(attend, SENTENCE.x)}
moved["causal mask"] = poked(lambda x: attend(x, al.causal_mask(4)), SENTENCE.x)
moved["zero after softmax"] = poked(zero_after, SENTENCE.x)
draw_pokes(moved)

# %% [markdown]
# Here a row is the word that was changed, and the strong cells are the outputs that moved. Without a mask all of them move. Behind the causal mask a changed
# *Ben* moves *Ben* and *she* alone, and the cells left of the diagonal are exactly 0. With zeros after the softmax they are not: the
# future leaks.

# %% [markdown] tags=["exercise"]
# ### Exercise [[sparse_masks]] · Design: few keys, far sight
#
# **Goal.** Let all tokens reach the last one, though no query may look at more than three keys. *12 minutes, hard.*
#
# In a long text it is too expensive to let each query look at everything. Two layers of attention help: what a token has taken
# in layer 1, it can hand on in layer 2. So token j **reaches** the last token if the last query looks, in layer 2, at a token
# that has looked at j in layer 1. To hand on its own word, too, a token must look at itself.
#
# Design both masks for 8 tokens, `my_masks` of shape $(2, 8, 8)$, layer 1 first. In each layer each query looks at 1 to **3**
# keys, none of them later than itself. All 8 tokens must reach the last one.

# %%
my_masks = None  # (2, 8, 8) of bool: np.stack([layer_1, layer_2])

# %%
verdict = check.sparse_masks(my_masks)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# back = np.arange(8)[:, None] - np.arange(8)  # (n_q, n_k): how far each key lies behind each query
# near = (back >= 0) & (back < 3)  # itself and the two before it
# far = np.isin(back, (0, 3, 6))  # itself, three back and six back
# my_masks = np.stack([near, far])  # 7 looks at 7, 4 and 1, which have seen 5 to 7, 2 to 4, 0 and 1
# ```
#
# </details>

# %% [markdown]
# ## 4 · The padding mask
#
# The texts of a batch differ in length, so short texts are padded. A padding mask hides the padded **keys** from every query of
# their text. That gives the shape $(b, 1, n_k)$: NumPy and torch repeat an axis of size 1 (*broadcasting*). Here our sentence
# shares a batch with *Ben saw*, drawn as the weights that equal scores would get:

# %% jupyter={"source_hidden": true} tags=["slide"] says="A padding mask hides"
padding = al.padding_mask([4, 2], 4)  # lengths, n_k: (b, 1, n_k)
texts = WORDS, ("Ben", "saw", "pad", "pad")
_, axes = plot.subplots(2, 2, figsize=(5.6, 4))
for (strip, full), labels, may in zip(axes, texts, padding):
    row = al.softmax(np.where(may, 0.0, -np.inf))  # (1, n_k)
    for ax, shape, queries in ((strip, (1, 4), ["all"]), (full, (4, 4), labels)):
        wide, drawn = np.broadcast_to(row, shape), np.broadcast_to(may, shape)
        labelled = {"queries": queries, "keys": labels, "attn_mask": drawn}
        _ = plot.attention_heatmap(wide, **labelled, colorbar=False, ax=ax)
_ = axes[0, 0].set(title="(b, 1, n_k)", xlabel="")
_ = axes[0, 1].set(title="(b, n_q, n_k)", xlabel="", ylabel="")
_ = axes[1, 1].set(ylabel="")

# %% [markdown]
# Rows 2 and 3 of the second text are the queries of padding. What they return means nothing, and the loss leaves it out.

# %% [markdown] tags=["exercise"]
# ### Exercise [[padding_mask]] · The padding mask
#
# **Goal.** Complete the line that hides padded keys. *4 minutes, easy.*
#
# `my_padding_mask(lengths, n_k)`: `lengths` is an array $(b,)$, the result is $(b, 1, n_k)$ of bool. `array[:, None]` puts
# an axis of size 1 behind the first.


# %%
def my_padding_mask(lengths, n_k):
    return ...  # complete: np.arange(n_k) < lengths[?], (b, 1, n_k)


# %%
verdict = check.padding_mask(my_padding_mask)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_padding_mask(lengths, n_k):
#     return np.arange(n_k) < lengths[:, None, None]  # (b, 1, n_k)
# ```
#
# </details>

# %% [markdown]
# Several masks combine by logical AND: a query may attend where **all** of them allow it.

# %%
both = al.combine_masks(padding, al.causal_mask(4))  # (b, n_q, n_k)
print("Ben saw, both masks:", *both[1].astype(int), sep="\n")

# %% [markdown]
# The poke works here as well. Change a padded key, and no real output may move:

# %%
x = np.stack([SENTENCE.x, SENTENCE.x[[2, 1, 1, 1]]])  # (b, n, d_in)
x[1, 2:] = 0  # text 1: Ben saw pad pad
changed = x.copy()
changed[1, 2:] += 100
before = attention(*project(x), padding)
after = attention(*project(changed), padding)
print("outputs of Ben and saw move by", np.abs(after - before)[1, :2].max())

# %% [markdown] tags=["predict"]
# ## See it · Both masks at once
#
# Six random tokens (random, so that $d_k$ can grow), of which the first `length` are real. **Predict.** With both masks and 2
# real tokens, how many of the 36 pairs may attend? As $d_k$ moves, which row keeps its weights?

# %%
both_masks = live.masks(n=6)
both_masks

# %% [markdown]
# <details><summary>Answer</summary>
#
# 11 pairs: 1 in row 0, and 2 in each of the other five. Row 0 keeps its weight at every $d_k$, because a softmax over one key is
# 1 whatever the score. At length 0 every row is dead.
#
# </details>

# %% [markdown] tags=["predict"]
# ## 5 · The mask of a tokenizer
#
# The program that cuts a text into tokens, the *tokenizer*, gives its padding mask as $(b, n_k)$, one row for each text. Hugging
# Face calls it [`attention_mask`](../REFERENCES.md#hf-attention-mask): 1 is a token, 0 is padding. Take the four beginnings of our
# sentence, *Anna* to *Anna saw Ben she*, each padded to four tokens. **Predict.** You pass this mask as it is. What happens?
#
# - **a** an error
# - **b** each text gets its own padding
# - **c** no error, and a wrong output

# %%
guess_sizes = None  # "a", "b" or "c"

# %%
x = np.stack([SENTENCE.x] * 4)  # (b, n, d_in): words beyond a length are padding
flat = np.arange(4) < np.array([[1], [2], [3], [4]])  # (b, n_k): lengths 1 to 4
wrong = al.scaled_dot_product_attention(*project(x), flat)  # read as (n_q, n_k)
right = al.scaled_dot_product_attention(*project(x), flat[:, None, :])  # (b, 1, n_k)
off = np.abs(wrong - right)[flat]  # of words: what padding gets, nobody reads
print(f"no error; the output of a word differs by up to {off.max():.2f}")

# %%
predict.equal_sizes(guess_sizes)

# %% [markdown]
# A mask with two axes of the right sizes is read as $(n_q, n_k)$. With the lengths 1 to 4 it is the causal mask, and the
# result looks sensible. So never test with as many texts as tokens. Where the sizes differ, attnlib refuses to guess:

# %%
try:
    al.scaled_dot_product_attention(*project(x[:3]), flat[:3])  # b = 3, n = 4
except al.ShapeError as error:
    print(wrapped(str(error), 76))

# %% [markdown]
# Elsewhere True can also mean *blocked*. The [casebook]([[casebook.ipynb]]) has a table, under *Masks*.

# %% [markdown]
# ## 6 · A row that may look nowhere
#
# Hide the rows of the padding, too, and they have no key left. Such a row is **fully masked**, and its softmax is $0/0$.
# attnlib gives it zeros, and so does your masked softmax. Here ten keys are blocked, and others do otherwise:

# %%
scores, nobody = np.arange(10.0), np.zeros(10, dtype=bool)
rows = {"the masked softmax above": masked_softmax(scores, nobody)}
for fill in (-np.inf, -1e20):
    filled = np.where(nobody, scores, fill)
    with np.errstate(invalid="ignore"):  # -inf - -inf is NaN
        raised = np.exp(filled - filled.max())
    rows[f"filled with {fill:g}, plain softmax"] = raised / raised.sum()
for name, row in rows.items():
    print(f"{name:33}", *row[:4], "...")

# %% [markdown]
# Of 0, NaN and 0.1, the 0.1 is the most dangerous. All ten forbidden keys get equal weight, and nothing looks wrong. Cases 14
# and 29 of the [casebook]([[casebook.ipynb]]) are what a NaN does in training, and what torch's own layer answers.

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Write a mask of four tokens that lets each query see itself and the token before it (a sliding window). Use it in `poked`:
#    which outputs may move when *saw* changes?
# 2. A window of 3, over 8 tokens, shows each query itself and the two before it. Combine it with `padding_mask([length], 8)`. Up to
#    which length is there a dead row?
#
# <details><summary>Answers</summary>
#
# 1: outputs 1 and 2. 2: up to 5, because row 7 looks at 5, 6 and 7.
#
# </details>
#
# **Remember.** True = may attend. Block with $-\infty$ before the softmax. Padding hides keys, so its mask needs a query axis:
# $(b, 1, n_k)$. Queries that continue a sequence need the lower right. Test a mask by poking what it should hide. Next:
# [[[multi_head]] multi-head]([[multi_head.ipynb]]).

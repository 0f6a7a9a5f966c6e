# %% [markdown]
# # 05 · Masks: who may look where?
#
# **Question.** A model that writes must not see the words it has yet to write. The filler that makes a short text as long
# as the others is no text. And queries may come from another sequence than the keys. How does one boolean array say all
# that, and which mistakes raise no error? *50 minutes.*

# %%
from textwrap import fill

import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import ASYMMETRIC

np.set_printoptions(precision=4, suppress=True)
Q, K, V = ASYMMETRIC.project()  # (4, 2), (4, 2), (4, 5)

# %% [markdown]
# ## Before you start
#
# Three questions from memory, about earlier notebooks. Guess where you are not sure.
#
# **1.** *(notebook 04)* A head was trained to return the number that was stored with the asked letter. What makes it find the
# right slot?
#
# - **a** it learned at which place the answer stands
# - **b** it learned $W_Q$ and $W_K$ under which equal letters meet in a large score
# - **c** it learned a $W_V$ that holds all the answers
#
# **2.** *(notebook 03)* A row of weights is nearly one-hot: one weight is 1, the others are 0. How large is the gradient
# that the softmax passes back to the scores of this row?
#
# - **a** nearly 0
# - **b** large, since the row is certain
# - **c** it depends on $d_k$ alone
#
# **3.** *(notebook 02)* All scores of one query grow by 100. What becomes of its weights?
#
# - **a** they grow
# - **b** the largest takes everything
# - **c** nothing changes

# %%
predict.before_05(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A head that never errs
#
# A language model is asked one thing over and over: here are the words so far, which one comes next? You train it on texts that
# are already written, so every place of a text is a small exam, and the next word is the answer. All these exams of a text are
# taken in one pass through the model: that is fast, and it puts the answers on the table.
#
# Here is a head set by hand that passes every such exam. It knows nothing about English. A token asks for a place, is
# found at its place, and hands over which word it is.

# %%
sentence = "the farmer sees the cat and the cat sees the dog"
text = sentence.split()  # 11 tokens, one a word
words = sorted(set(text))  # the vocabulary, 6 words
place = np.eye(24)  # row i is the number i, one-hot; texts have up to 23 words


def one_hot(tokens):
    return np.eye(len(words))[[words.index(token) for token in tokens]]  # (n, 6)


# %%
def look_ahead(tokens, is_causal=False):  # section 2 explains is_causal
    n = len(tokens)
    query = 100 * place[1 : n + 1]  # (n, 24) token i asks for place i + 1
    key = place[:n]  # (n, 24) and is found at place i
    value = one_hot(tokens)  # (n, 6)
    return al.attention_trace(query, key, value, is_causal=is_causal)


def next_words(tokens, **options):  # each output names the word with the largest share
    return [words[w] for w in look_ahead(tokens, **options).output.argmax(axis=-1)]


# %%
def count_right(tokens, **options):
    pairs = zip(next_words(tokens, **options), tokens[1:])
    return sum(guess == word for guess, word in pairs)


print(f"{count_right(text)} of {len(text) - 1} next words are right")

# %% [markdown] tags=["predict"]
# Ten of ten: 100 %. Now let it write. You give it four words. The newest token names the next word, this word is added to the
# text, and the head is asked again. **Predict.** What will it write?
#
# - **a** the text goes on as well as it did in the exam
# - **b** it says one word over and over
# - **c** it stops with an error: the newest token asks for a place that no key has

# %%
guess_writes = None  # "a", "b" or "c"


# %%
def write(**options):
    so_far = text[:4]
    for _ in range(6):
        so_far = [*so_far, next_words(so_far, **options)[-1]]
    return " ".join(so_far)


print(write())

# %%
predict.writes_on(guess_writes)

# %%
shown = look_ahead(text)
ax = plot.attention_heatmap(
    shown.weights, queries=text, keys=text, title="set by hand: one place ahead"
)

# %% [markdown]
# Read a row of the map: the first *the* has all its weight on *farmer*, the word it was asked to name. It did not predict, it
# copied. Look at the last row. After *dog* there is nothing to copy, so all its scores are 0, its weights are equal, and the
# most frequent word wins. While it writes, every newest token is in this position.
#
# Training finds this cheat by itself, as notebook 11 will show. So the exam has to be changed.
#
# ## 2 · The causal mask
#
# A token may use what stands before it and itself, and nothing that comes later. A **mask** says so: a boolean array
# $(n_q, n_k)$ with a row for each query and a column for each key. **In this series True means: may attend.** Here every
# token is a query and a key, $n_q = n_k = 4$.

# %%
mask = al.causal_mask(4)  # (n_q, n_k)
print(mask.astype(int))

# %% [markdown] tags=["predict"]
# Row 0 belongs to the first token, which may look at itself only. Row 3 may look at all four. Where the mask is False, the
# score becomes $-\infty$ **before** the softmax: $e^{-\infty} = 0$, and the rest of the row still sums to 1.
#
# Now the head that looks ahead takes its exam again, behind a mask. **Predict.** The only large score of each row is
# hidden. What are the weights of row 2, the third token?

# %%
hidden = look_ahead(text, is_causal=True)
print("row 2:", hidden.weights[2, :5].round(2))
print(f"{count_right(text, is_causal=True)} of {len(text) - 1} next words are right")
print("it writes:", write(is_causal=True))
ax = plot.attention_heatmap(
    hidden.weights,
    queries=text,
    keys=text,
    attn_mask=hidden.attn_mask,
    title="the same head behind a causal mask",
)

# %% [markdown] tags=["predict"]
# Hatched cells are blocked: their weight is exactly 0. What is left of each row are scores of 0, so the
# third token mixes three words alike: 1/3 each. It now names the word that was most frequent so far (of several, the first
# in the vocabulary), and that is right twice in ten, by luck.
#
# The mask has not made this head worse at writing. It writes the same nonsense as before, word for word, because the newest
# token never had a future to look at. (A head that has something to learn from the past keeps it behind a mask: notebook 08
# trains such heads.) The mask has made the exam honest: it now asks of every place what writing asks, and still all
# places are examined in one pass.
#
# ## Break it · Zero after the softmax
#
# **Predict.** Somebody sets the blocked *weights* to 0 after the softmax instead. What do the rows of a causal map sum to?
#
# - **a** all to 1, as before
# - **b** to less than 1, but for the last row
# - **c** all to 0

# %%
guess_zero = None  # "a", "b" or "c"

# %%
trace = al.attention_trace(Q, K, V, is_causal=True)
zeroed = al.softmax(trace.scaled_scores) * al.causal_mask(4)  # (n_q, n_k)
print("-inf before softmax, row sums:", trace.weights.sum(axis=-1))
print("zero after softmax, row sums: ", zeroed.sum(axis=-1))

# %%
predict.zero_after(guess_zero)

# %% [markdown]
# The blocked keys have already taken their share: of row 0 only 4 % is left. Worse, what is left still depends on the
# future, since the sum in the softmax ran over all keys. (Dividing each row by its sum again repairs it as long as something
# is left. Where the blocked keys have taken everything, that divides 0 by 0.)
#
# ## 3 · The causality poke
#
# You need not read a layer to know whether it sees the future. Poke it: change one token, and watch which outputs move.


# %%
def poke(attend, token=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 4))
    poked = x.copy()
    poked[token] += 1.0
    return np.abs(attend(poked) - attend(x)).max(axis=-1)  # how far each moved


def causal(x):
    return al.scaled_dot_product_attention(x, x, x, is_causal=True)


def multiply_after(x):
    return al.softmax(x @ x.T / 2) * al.causal_mask(5) @ x


# %% [markdown] tags=["predict"]
# **Predict.** Token 3 of five is changed. Which of the five outputs move under a causal mask?

# %%
print("causal mask: ", poke(causal))
print("exactly 0:   ", (poke(causal) == 0).astype(int))
print("zero after:  ", poke(multiply_after))
print("no mask:     ", poke(lambda x: al.scaled_dot_product_attention(x, x, x)))

# %% [markdown] tags=["predict"]
# An output that stands before the change must not move, not even in its last digit. Under the right mask 0, 1 and 2 do not.
# With zeros put in after the softmax, the *weights* are 0 in the right places, and yet even output 0 moves, by 0.0067. The
# shape of the output is right all the same. One poke finds what leaks from one token; to be sure, poke every token in turn.
#
# ## 4 · Queries that continue a sequence
#
# A model that writes need not ask for all words again each time. It keeps the keys and values of the words so far, and
# only the newest word asks: $n_q = 1$. With four words before it there are $n_k = 5$ keys, its own among them. The mask
# has a single row. **Predict.** Which of the five keys may the newest token look at?

# %%
print("lower_right:", al.causal_mask(1, 5, align="lower_right").astype(int))
print("upper_left: ", al.causal_mask(1, 5, align="upper_left").astype(int))
try:
    al.causal_mask(1, 5)
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# It may look at all five, for it is the last of them. Its row is the last row of the square mask, so the mask is lined up
# with the **lower right** corner. Lined up with the **upper left**, query $i$ sees the keys 0 to $i$: the newest token
# sees the first word of the text, and not even itself.
#
# Each is right somewhere. To see where, compute causal attention over a whole sequence of five. Then let only its last two
# tokens ask, or only its first two: with the right mask, they must get the same outputs as in the whole.

# %%
x = np.random.default_rng(5).normal(size=(5, 8))  # (n, d)
whole = al.scaled_dot_product_attention(x, x, x, is_causal=True)  # (n, d)
for name, part in (("last", slice(3, 5)), ("first", slice(0, 2))):
    print(f"the {name} two of five tokens ask:")
    for align in ("lower_right", "upper_left"):
        mask = al.causal_mask(2, 5, align=align)  # (n_q, n_k)
        two = al.scaled_dot_product_attention(x[part], x, x, mask)  # (n_q, d)
        print(f"  {align:<11} differs by {np.abs(two - whole[part]).max():.4f}")

# %% [markdown]
# Queries that **continue** a sequence need the lower right. Queries that **begin** it, where keys for later places are there
# already, need the upper left. That is rarer. It happens where the rows of a long text are computed in blocks, beginning with
# the first. With $n_q = n_k$ the two are the same, so a test with square masks sees no difference. torch has both
# ([`torch.nn.attention.bias`](../REFERENCES.md#torch-causal)), and `is_causal=True` of its `scaled_dot_product_attention` takes
# the upper left without a warning, which has bitten people whose model writes ([a thread](../REFERENCES.md#threads)). attnlib
# asks which one you mean. (torch's layer, `nn.MultiheadAttention`, wants the mask itself beside `is_causal=True`, or raises.)
#
# ## 5 · The padding mask
#
# Texts of a batch have different lengths, and the short ones are filled up to the longest. The fill is no text, so no
# query may look at it. Padding hides **keys**, and it hides them from every query of its text, hence the shape
# $(b, 1, n_k)$. NumPy and torch line the axes of two arrays up from the end and repeat an axis of size 1 (*broadcasting*):
# the 1 stands for all queries. With several heads, in notebook 06, scores are $(b, h, n_q, n_k)$, and the same mask is
# $(b, 1, 1, n_k)$. All scores of these two maps are 0, so that you see the masks alone:

# %%
lengths = [4, 2]
padding = al.padding_mask(lengths, 4)  # (b, 1, n_k)
both = al.combine_masks(padding, al.causal_mask(4))  # (b, n_q, n_k)
print("padding:", padding.shape, " combined:", both.shape)
maps = al.softmax(np.where(both, 0.0, -np.inf))  # (b, n_q, n_k)
figure = plot.head_grid(maps, attn_mask=both, titles=["length 4", "length 2"])

# %% [markdown]
# A query may attend where **all** masks allow it: logical AND. In the second text rows 2 and 3 are padding themselves. They
# ask, too, and what they get means nothing; the loss must leave them out. Hiding them as queries as well would only make rows
# that may look nowhere, and section 9 shows what trouble such rows make.
#
# The poke works here as well: change a padded key, and no real output may move.

# %%
rng = np.random.default_rng(1)
x = rng.normal(size=(2, 4, 3))  # (b, n, d)
poked = x.copy()
poked[1, 3] += 100.0  # a padded token of sequence 1
real = al.scaled_dot_product_attention(x[:, :2], x, x, padding)  # two real queries
again = al.scaled_dot_product_attention(x[:, :2], poked, poked, padding)
print("real queries move by", np.abs(again - real).max())

# %% [markdown] tags=["predict"]
# ## 6 · A mask as the tokenizer hands it over
#
# The program that cuts a text into tokens, the *tokenizer*, gives its padding mask as $(b, n_k)$, a row for each text.
# Scores are $(b, n_q, n_k)$. **Predict.** Such a mask goes in as it is, for ten texts of ten tokens. What happens?
#
# - **a** an error
# - **b** it is understood: every sequence gets its own padding
# - **c** no error, and a wrong output

# %%
guess_sizes = None  # "a", "b" or "c"

# %%
rng = np.random.default_rng(0)
x = rng.normal(size=(10, 10, 8))  # (b, n, d): ten sequences of ten tokens
flat = np.arange(10) < np.arange(1, 11)[:, None]  # (b, n_k): i + 1 tokens
wrong = al.scaled_dot_product_attention(x, x, x, flat)  # read as (n_q, n_k)
right_output = al.scaled_dot_product_attention(x, x, x, flat[:, None, :])  # (b, 1, n_k)
print("no error; the output differs by", np.abs(wrong - right_output).max().round(2))

# %%
predict.equal_sizes(guess_sizes)

# %% [markdown]
# A mask with two axes of the right sizes is a mask $(n_q, n_k)$. With the lengths 1 to 10, chosen for this purpose, the wrong
# reading is even a causal mask, and the result looks sensible. Never test with as many texts as tokens. Where the sizes differ,
# attnlib refuses to guess:

# %%
try:
    al.scaled_dot_product_attention(x[:7], x[:7], x[:7], flat[:7])  # b = 7, n = 10
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# torch's layer `nn.MultiheadAttention` has an argument of its own for the tokenizer's mask, `key_padding_mask`, $(b, n_k)$. It
# is often the first mask one meets in a project, and there True means padding. Each text gets its own. From here on this
# notebook uses torch, if it is there.

# %%
try:
    import torch
    from torch.nn import functional as F

    _ = torch.set_num_threads(1)
except ImportError:
    torch = None
    print("torch is not installed: its cells only say so. Fix: pip install torch")

# %%
if torch is not None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 1, batch_first=True)
    texts, is_padding = torch.from_numpy(x).float(), torch.from_numpy(~flat)
    own = is_padding[:, None].expand(10, 10, 10)  # (b, n_q, n_k), one for each text
    expected, _ = layer(texts, texts, texts, attn_mask=own)
    for name in ("key_padding_mask", "attn_mask"):
        output, _ = layer(texts, texts, texts, **{name: is_padding})
        print(f"{name:<16} (b, n_k): off by {(output - expected).abs().max():.4f}")

# %% [markdown]
# ## 7 · Cross-attention: queries from elsewhere
#
# A translator reads *la maison blanche* and writes *the white house*. The words being written ask; the words being read
# are found and hand something over. Queries come from one sequence, keys and values from another, and the formula is the
# same. This is **cross-attention**; self-attention is the special case of one sequence.
#
# This head is set by hand, with three features: article, noun, adjective. A word that is read shows its class and hands
# over its translation. A word that was written asks for the class that has to be written next in English. The first one
# is the start of every sentence, `<s>`.

# %%
read = ["la", "maison", "blanche", "<pad>", "<pad>"]  # n_k = 5
written = ["<s>", "the", "white"]  # n_q = 3
english = ["the", "white", "house", "a", "dog", "<pad>"]  # d_v = 6

article, noun, adjective, nothing = np.eye(4, 3)  # one-hot, and three zeros
key = np.stack([article, noun, adjective, nothing, nothing])  # (n_k, d_k)
means = ["the", "house", "white", "<pad>", "<pad>"]  # of each word that is read
value = np.stack([np.eye(6)[english.index(word)] for word in means])  # (n_k, d_v)
query = 10 * np.stack([article, adjective, noun])  # (n_q, d_k): what comes next
words_only = np.broadcast_to(al.padding_mask([3], 5)[0], (3, 5))  # (n_q, n_k)

# %% [markdown] tags=["predict"]
# **Predict.** $n_q = 3$, $n_k = 5$, $d_k = 3$, $d_v = 6$. Which shape has the output? And which French word does *the* look
# at: *la*, its translation, or another?

# %%
cross = al.attention_trace(query, key, value, words_only)
print("output:", cross.output.shape)
print("next words:", [english[w] for w in cross.output.argmax(axis=-1)])
title = "cross-attention, set by hand"
ax = plot.attention_heatmap(
    cross.weights, queries=written, keys=read, attn_mask=cross.attn_mask, title=title
)

# %% [markdown]
# The output has a row per query and a column per value feature. The two languages order noun and adjective differently,
# and the map crosses over: after an article English writes the adjective, so *the* asks for one and looks at *blanche*.
#
# This map needs a padding mask, and no causal one: all French words have been read before the first English one is written,
# so none of them is in the future. (A translator that speaks while it listens does need a mask, on the words not heard yet.)

# %% [markdown]
# ## 8 · Polarity: what does True mean?
#
# | who | boolean mask says |
# |---|---|
# | attnlib, torch's [`scaled_dot_product_attention`](../REFERENCES.md#torch-sdpa), [flax, ONNX](../REFERENCES.md#onnx) | True = may attend |
# | [`nn.MultiheadAttention`](../REFERENCES.md#torch-mha), `nn.Transformer`: `attn_mask` | True = **blocked** |
# | the same: `key_padding_mask`, $(b, n_k)$ | True = **padding**, blocked for all queries |
# | many tutorials (`masked_fill(mask == 0, ...)`) | 1 = may attend, 0 = blocked, as integers |
#
# Two conventions live in one library, and a mask written in the wrong convention has the right shape and raises nothing. People
# have searched for that mistake for hours, and published code contained it ([threads](../REFERENCES.md#threads)).
#
# There is a third kind: a mask of floats is *added* to the scaled scores. 0 changes nothing, and $-\infty$ blocks.
#
# attnlib takes booleans or floats, and refuses integers, which may mean either. Three functions translate one convention
# into another, and each says in its name what it makes or takes. The first two lines show row 1 of a causal mask, $[1, 1,
# 0]$, in two other conventions:

# %%
print("to_blocked:       ", al.to_blocked(al.causal_mask(3))[1])  # row 1
print("to_additive:      ", al.to_additive(al.causal_mask(3))[1])  # row 1
print("from_zero_blocked:", al.from_zero_blocked(np.array([1, 1, 0])))
try:
    al.scaled_dot_product_attention(Q, K, V, np.tril(np.ones((4, 4), dtype=int)))
except TypeError as error:
    print(fill(str(error), 88))

# %% [markdown] tags=["predict"]
# **Predict.** A causal mask with inverted polarity: which query is left with nothing to look at?

# %%
inverted = al.attention_trace(Q, K, V, al.to_blocked(al.causal_mask(4)))
ax = plot.attention_heatmap(
    inverted.weights, attn_mask=inverted.attn_mask, title="inverted: only the future"
)
print("fully masked:", inverted.fully_masked)

# %% [markdown]
# ## 9 · The row that may look nowhere
#
# The last query of that picture has no key left. A softmax over nothing has no answer: it is $0/0$. Such a row is
# **fully masked**, and we call it a dead row. attnlib defines that its weights and its output are exactly 0, and
# `trace.fully_masked` says so. What do others return?

# %%
if torch is not None:
    torch.manual_seed(0)
    x = torch.randn(1, 10, 4)  # (b, n, d): ten keys
    allowed = torch.ones(10, 10, dtype=torch.bool)
    allowed[1] = False  # query 1 may look nowhere
    scores = x @ x.transpose(-1, -2) / 2
    mha = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    with torch.no_grad():
        _, mha_weights = mha(x, x, x, attn_mask=~allowed)
        mha_fused, _ = mha(x, x, x, attn_mask=~allowed, need_weights=False)

# %% [markdown] tags=["predict"]
# Five ways of writing attention get this mask. Two of them are torch's own: `F.scaled_dot_product_attention`, which returns
# only the output, and `nn.MultiheadAttention`, a layer, here with one head. (It is called with what makes the queries, the
# keys and the values.) The last two write the steps out, with $-\infty$ and with a large negative number for the blocked scores.
#
# **Predict.** Query 1 may look at none of ten keys. What are the first four numbers of its row, numbers or NaN, in each of
# the five?

# %%
if torch is not None:
    from attnlib import torch_layers

    fused, filled = F.scaled_dot_product_attention, scores.masked_fill
    results = {
        "attnlib, weights": torch_layers.attention_trace(x, x, x, allowed).weights,
        "torch scaled_dot_product_attention, output": fused(x, x, x, allowed),
        "nn.MultiheadAttention, weights": mha_weights,
        "-inf and softmax, weights": filled(~allowed, -torch.inf).softmax(-1),
        "-1e20 and softmax, weights": filled(~allowed, -1e20).softmax(-1),
    }
    for name, result in results.items():
        print(f"{name:<44}", [round(v, 4) for v in result[0, 1, :4].tolist()])

# %% [markdown]
# Three different answers: 0, NaN and 0.1 (in torch 2.13, the version of this series). The 0.1 is the most dangerous: with a
# finite fill every key gets the same, all of them forbidden, and nothing looks wrong. In nn.MultiheadAttention the answer even
# depends on whether you ask for weights:

# %%
if torch is not None:
    row = mha(x, x, x, attn_mask=~allowed)[0][0, 1]  # (d,)
    print("need_weights=True: ", row.detach().numpy())
    print("need_weights=False:", mha_fused[0, 1].numpy())

# %% [markdown] tags=["predict"]
# Nobody writes such a row on purpose. It comes from a mask that is wrong, as above, or from masks that are right, each by
# itself. **Predict.** Where are the dead rows of these three? In the first, a text of two tokens has two of fill in *front* of
# it, under a causal mask. In the second, each token may look at itself and the two before it, and a text of 3 tokens is filled
# up to 8 at its end. In the third, a text of length 0 is filled up to 4.

# %%
in_front = al.combine_masks(np.arange(4) >= 2, al.causal_mask(4))  # (n_q, n_k)
window = np.tri(8, dtype=bool) & ~np.tri(8, k=-3, dtype=bool)  # itself and two before
short = al.combine_masks(al.padding_mask([3], 8)[0], window)
empty = np.broadcast_to(al.padding_mask([0], 4)[0], (4, 4))
cases = {"fill in front, causal": in_front, "window, 3 of 8": short, "length 0": empty}
for name, combined in cases.items():
    print(f"{name:<22} dead rows:", np.flatnonzero(~combined.any(axis=-1)))

# %% [markdown] tags=["predict"]
# Fill in front is no rare thing. Where a model continues several texts at once, their last words must stand in the same
# column, so the short ones are filled on the left. Nobody has hidden the fill as queries here. But behind the causal mask a
# token of the fill sees only what stands before it, which is fill, and the padding mask hides that. The usual remedy is to
# let each of these rows look at itself. What comes out of it is used by nobody.
#
# A NaN in a row that nobody uses: does it matter? Take the ten keys again, and let the loss use the outputs of all queries but
# query 1: nine outputs, all healthy. **Predict.** `nn.MultiheadAttention` keeps $W_Q$, $W_K$ and $W_V$ in one matrix,
# `in_proj_weight`, of 48 numbers. How many numbers of its gradient are NaN?
#
# - **a** none: the dead row is not in the loss
# - **b** only some: those that query 1 uses
# - **c** all 48

# %%
guess_dead = None  # "a", "b" or "c"


# %%
def nan_in_gradient(output, *matrices):  # of a loss over all queries but the dead one
    loss = output[0, torch.arange(10) != 1].square().mean()
    each = [int(g.isnan().sum()) for g in torch.autograd.grad(loss, matrices)]
    numbers = sum(matrix.numel() for matrix in matrices)
    return f"loss {loss.item():.2f}, NaN in {' + '.join(map(str, each))} of {numbers}"


if torch is not None:
    ours = torch_layers.MultiHeadAttention.from_torch(mha)  # the same weights
    output, _ = mha(x, x, x, attn_mask=~allowed)
    print("nn.MultiheadAttention:       ", nan_in_gradient(output, mha.in_proj_weight))
    output, _ = ours(x, attn_mask=allowed)
    projections = ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight
    print("attnlib (a dead row gives 0):", nan_in_gradient(output, *projections))

# %%
predict.one_dead_row(guess_dead)

# %% [markdown] tags=["predict"]
# The loss is the same healthy number both times, and after one step of the optimiser every number of $W_Q$, $W_K$ and $W_V$
# in the first module is NaN. Why all of them? The loss sends 0 back to row 1. But on its way to the values, and on its way to the
# scores, that 0 is multiplied by the row's weights, which are NaN, and $0 \cdot \mathrm{NaN}$ is NaN. All queries share each
# matrix, so its gradient is a sum over them, and one NaN makes the sum NaN ([the thread](../REFERENCES.md#threads) in which this
# was found).
#
# "So I turn NaN into 0 after the softmax." **Predict.** That mends the forward pass. Does it mend the gradient, whichever way
# the $-\infty$ got into the scores?

# %%
if torch is not None:
    W = [torch.eye(4, requires_grad=True) for _ in range(3)]  # W_Q, W_K and W_V
    additive = torch.where(allowed, 0.0, -torch.inf)  # (n_q, n_k)
    ways = {
        "masked_fill(-inf)": lambda s: s.masked_fill(~allowed, -torch.inf),
        "-inf added": lambda s: s + additive,
    }
    for name, block in ways.items():
        for then, mend in (("", torch.clone), (", nan_to_num", torch.nan_to_num)):
            q, k, v = (x @ matrix for matrix in W)
            weights = mend(block(q @ k.mT / 2).softmax(-1))  # (b, n_q, n_k)
            print(f"{name + then:<30}", nan_in_gradient(weights @ v, *W))

# %% [markdown] tags=["predict"]
# Only in one of the two ways. `nan_to_num` mends $W_V$ both times. It sends 0 back to the dead row, and the softmax makes NaN of
# it again, $0 \cdot \mathrm{NaN}$. What comes before the softmax makes the difference: `masked_fill` writes 0 into the gradient
# of what it filled, so no NaN gets as far as $W_Q$ and $W_K$; an addition passes it on, and torch's layer adds. (Exercise
# 6.4 asks for a module with a mask, and its check tries this.) Best is a mask that leaves no row dead: let padded queries look at
# real tokens, as in
# section 5, or at themselves.
#
# The finite fill has a second problem. **Predict.** The largest float16 number is 65504. What does a fill of -1e20 do?

# %%
if torch is not None:
    half = scores.half()
    try:
        half.masked_fill(~allowed, -1e20)
    except RuntimeError as error:
        print("RuntimeError:", error)
    print("-inf works:", half.masked_fill(~allowed, -torch.inf)[0, 1, :3].tolist())

# %% [markdown] tags=["predict"]
# ## 10 · Dropout: a mask by chance
#
# While many models train, each weight is set to 0 with a probability of, say, 0.2, and what is left is divided by 0.8.
# That is **dropout**. It comes after the softmax, the very place that *Break it* warned of, and here it is meant.
# **Predict.** Four queries behind a causal mask, all scores equal. What do their rows sum to under dropout?
#
# - **a** 1 each, as ever
# - **b** less than 1 each, since weights were taken away
# - **c** some less than 1, some more

# %%
guess_dropout = None  # "a", "b" or "c"

# %%
weights = al.softmax(np.where(al.causal_mask(4), 0.0, -np.inf))  # (n_q, n_k)
rng = np.random.default_rng(0)
kept_by_chance = rng.random((10_000, 4, 4)) >= 0.2  # (draws, n_q, n_k)
sums = (weights * kept_by_chance / 0.8).sum(axis=-1)  # (draws, n_q)
for draw in sums[:3]:
    print("row sums:", draw)
print("mean of 10,000 draws:", sums.mean(axis=0).round(2))

# %%
predict.dropout_rows(guess_dropout)

# %% [markdown]
# Row 0 has one key. Either its weight survives and becomes $1 / 0.8 = 1.25$, or it is dropped and the query gets nothing. Rows
# that sum to more than 1 have been taken for a bug ([thread](../REFERENCES.md#threads)). They are not a bug: the mean is 1, and
# nothing leaks, since what the causal mask blocked was 0 before. It becomes a bug only if it goes on after training.
# `model.eval()` turns off `nn.Dropout`; it does not turn off `F.scaled_dot_product_attention(..., dropout_p=0.2)`, which knows
# of no module: there you write `dropout_p=0.2 if self.training else 0.0`.

# %% [markdown] tags=["predict"]
# ## 11 · See it · Both masks at once
#
# Six tokens, of which the first `length` are real; queries and keys are random. **Predict.** With both masks and 2 real
# tokens, how many pairs may attend? What is left at length 0? And as $d_k$ moves, which row keeps its weights?

# %%
both_masks = live.masks(n=6)
both_masks

# %% [markdown]
# With 2 real tokens 11 of 36 pairs are left: 1 in row 0, and 2 in each of the five others. At length 0 every row is dead.
# Row 0 has one key, and a softmax over one key is 1 whatever the score. So row 0 looks peaky for no reason but that, and the
# next few rows partly for the same one: take it into account whenever you read a causal map.
#
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Masks are boolean, **True = may attend**. NumPy only. 5.1 and 5.2 ask for a line or two, 5.3 and 5.4 for a whole function; 5.5
# is a design, and many answers are right.

# %% [markdown] tags=["exercise"]
# ### Exercise 5.1 · The padding mask
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

# %% [markdown] tags=["exercise"]
# ### Exercise 5.2 · The causal mask
#
# **Goal.** Complete the mask that hides the future, in training and in writing. *6 minutes, medium.*
#
# `my_causal_mask(n_q, n_k=None)` returns $(n_q, n_k)$ of bool. The queries are the **last** `n_q` tokens of a sequence of
# `n_k`: each may attend to itself and to all tokens before it. `n_k` defaults to `n_q`, the whole sequence.


# %%
def my_causal_mask(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return ...  # your code: at which place of the sequence does each query stand?


# %%
verdict = check.causal_mask(my_causal_mask)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_causal_mask(n_q, n_k=None):
#     n_k = n_q if n_k is None else n_k
#     place = np.arange(n_k - n_q, n_k)[:, None]  # of each query in the sequence
#     return np.arange(n_k) <= place
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 5.3 · Masked softmax
#
# **Goal.** Write a softmax over the keys that a query may attend to. *12 minutes, hard.*
#
# `my_masked_softmax(scores, attn_mask=None)` works over the last axis. A row that may attend to nothing gives zeros. It is
# tried with scores near $10^4$, too, allowed ones and blocked ones. Do not use `al.softmax` this time.


# %%
def my_masked_softmax(scores, attn_mask=None):
    return ...  # your code


# %%
verdict = check.masked_softmax(my_masked_softmax)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_masked_softmax(scores, attn_mask=None):
#     if attn_mask is not None:
#         scores = np.where(attn_mask, scores, -np.inf)
#     largest = scores.max(axis=-1, keepdims=True)
#     e = np.exp(scores - np.where(np.isfinite(largest), largest, 0))  # a fully masked row: exp(-inf) = 0
#     total = e.sum(axis=-1, keepdims=True)
#     return e / np.where(total == 0, 1, total)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 5.4 · Cross-attention
#
# **Goal.** Write attention from one sequence to another, with a mask. *10 minutes, medium.*
#
# `my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None)`: queries from `x` $(..., n_q, d)$, keys and values
# from `context` $(..., n_k, d')$. Returns $(..., n_q, d_v)$. In 2.3 you wrote attention without a mask; write it out once more,
# and block where `attn_mask` is False. You may use `al.softmax`, which gives zeros for a row of nothing but $-\infty$.


# %%
def my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None):
    return ...  # your code


# %%
verdict = check.cross_attention(my_cross_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None):
#     query, key, value = x @ W_Q, context @ W_K, context @ W_V
#     scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])  # (..., n_q, n_k)
#     if attn_mask is not None:
#         scaled = np.where(attn_mask, scaled, -np.inf)
#     return al.softmax(scaled) @ value  # (..., n_q, d_v)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 5.5 · Design: few keys, far sight
#
# **Goal.** Let all tokens reach the last one, though no query may look at more than three keys. *12 minutes, hard.*
#
# In a long text it is too expensive to let each query look at everything. Two attention layers help: layer 2 reads what layer 1
# wrote, so a query of layer 2 hears of all that its keys have looked at in layer 1. (Nothing gets anywhere in any other way.
# Unlike in notebook 00, a place does not even keep its own vector: in layer 2 the last query has what its own place took in
# layer 1 only if it looks at itself.) Design both masks for 8 tokens, `my_masks` of shape $(2, 8, 8)$. Each query looks at 1 to
# **3** keys, none of them later than itself. It may be one of them, and need not (but query 0 has no other). Through both
# layers all 8 tokens reach the last one. Many answers are right.

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

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Write a mask that lets each query see itself and the two tokens before it (a sliding window). Check it with `poke`:
#    which outputs may move when token 3 changes? And token 1? (3 and 4 of the five; 1, 2 and 3.)
# 2. Combine your window with `padding_mask([length], 8)`. Up to which length is there a fully masked row? (Up to 5: row 7
#    looks at 5, 6 and 7, so with a fill of 3 or more it finds no word.)
# 3. In the translator of section 7 leave out the padding mask and divide `query` by 10. How much weight goes to `<pad>`?
#    (35 % in every row, and all three next words become `<pad>`.)
#
# **Remember.** True = may attend. Block with $-\infty$ before the softmax. Padding hides keys, so it needs a query axis:
# $(b, 1, n_k)$. Queries that continue a sequence need the lower right. A dead row poisons gradients. Test a mask by poking
# what it should hide. Next: [06 multi-head](06_multi_head.ipynb).

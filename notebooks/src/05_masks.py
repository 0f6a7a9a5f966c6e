# %% [markdown]
# # 05 · Masks: who may look where?
#
# **Question.** A decoder must not see the future, padding is not text, and a query may belong to another sequence than
# the keys. How does one boolean array say all that, and what can go wrong silently? *40 minutes.*

# %%
from textwrap import fill

import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import BY_HAND

np.set_printoptions(precision=4, suppress=True)
Q, K, V = BY_HAND.project()  # (3, 3) each

# %% [markdown]
# ## 1 · The causal mask
#
# A model that predicts the next token may use the tokens so far, and no later ones. The mask is a boolean array
# $(n_q, n_k)$. **In this series True means: may attend.** Here every token is a query and a key, $n_q = n_k$.

# %%
tokens = ["the", "cat", "sat", "down"]
mask = al.causal_mask(4)  # (n_q, n_k)
print(mask.astype(int))

# %% [markdown]
# Row 0, the first token, may look at itself only. Row 3 may look at all four. **Predict.** If all scores are equal, what
# are the weights in row 2?

# %%
equal = np.zeros((4, 4))
weights = al.softmax(np.where(mask, equal, -np.inf))  # (n_q, n_k)
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, attn_mask=mask, title="causal, equal scores"
)

# %% [markdown]
# Hatched cells are blocked; they are no weight at all, not a small one. A blocked score becomes $-\infty$ **before**
# softmax: $e^{-\infty} = 0$, and the row still sums to 1.
#
# ## Break it · Zero after softmax
#
# **Predict.** Somebody sets the blocked *weights* to 0 after softmax instead. What do the rows of a causal map sum to?
#
# - **a** all to 1, as before
# - **b** to less than 1, but for the last row
# - **c** all to 0

# %%
guess_zero = None  # "a", "b" or "c"

# %%
trace = al.attention_trace(Q, K, V, is_causal=True)
after = al.softmax(trace.scaled_scores) * al.causal_mask(3)  # (n_q, n_k)
print("-inf before softmax, row sums:", trace.weights.sum(axis=-1))
print("zero after softmax, row sums: ", after.sum(axis=-1))

# %%
predict.zero_after(guess_zero)

# %% [markdown]
# The blocked keys have already taken their share. Worse, the remaining weights still depend on the future: the sum in
# the softmax ran over all keys. (Dividing each row by its sum again would repair it.)
#
# ## 2 · The causality poke
#
# A test for any causal layer: change a future token, and no earlier output may move.


# %%
def poke(attend):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 4))
    poked = x.copy()
    poked[3] += 1.0  # change token 3
    return np.abs(attend(poked) - attend(x)).max(axis=-1)  # how far each moved


def causal(x):
    return al.scaled_dot_product_attention(x, x, x, is_causal=True)


def multiply_after(x):
    return al.softmax(x @ x.T / 2) * al.causal_mask(5) @ x


# %%
print("causal mask: ", poke(causal))
print("zero after:  ", poke(multiply_after))
print("no mask:     ", poke(lambda x: al.scaled_dot_product_attention(x, x, x)))

# %% [markdown]
# With the right mask, outputs 0, 1 and 2 do not move at all.
#
# ## 3 · The padding mask
#
# Sequences in a batch have different lengths, and the short ones are filled up. The fill is not text, so no query may
# attend to it. Padding hides **keys**, hence the shape $(b, 1, n_k)$: the axis of size 1 stands for every query.

# %%
lengths = [4, 2]
padding = al.padding_mask(lengths, 4)  # (b, 1, n_k)
both = al.combine_masks(padding, al.causal_mask(4))  # (b, n_q, n_k)
print("padding:", padding.shape, " combined:", both.shape)
maps = al.softmax(np.where(both, 0.0, -np.inf))  # (b, n_q, n_k)
figure = plot.head_grid(maps, attn_mask=both, titles=["length 4", "length 2"])

# %% [markdown]
# A query may attend where **all** masks allow it: logical AND. In the second sequence rows 2 and 3 are padding
# themselves. Their outputs mean nothing; the loss must skip them. Masking them as queries would only make rows that
# attend to nothing (section 6).
#
# The same test as before: change a padded key, and no output may move.

# %%
rng = np.random.default_rng(1)
x = rng.normal(size=(2, 4, 3))  # (b, n, d)
poked = x.copy()
poked[1, 3] += 100.0  # a padded token of sequence 1
before = al.scaled_dot_product_attention(x[:, :2], x, x, padding)  # two real queries
after = al.scaled_dot_product_attention(x[:, :2], poked, poked, padding)
moved = np.abs(after - before).max()
print("real queries move by", moved)

# %% [markdown]
# ## 4 · Shapes that are read the wrong way
#
# A padding mask as it comes from a tokenizer is $(b, n_k)$. Against scores $(b, n_q, n_k)$ that has two axes, like
# $(n_q, n_k)$. **Predict.** What happens if batch and length happen to be equal, 10 and 10?
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
right = al.scaled_dot_product_attention(x, x, x, flat[:, None, :])  # (b, 1, n_k)
print("no error, and the output differs by", np.abs(wrong - right).max().round(2))

# %%
predict.equal_sizes(guess_sizes)

# %% [markdown]
# No library can know what you meant: the sizes agree. Here the wrong reading is even a causal mask. Where sizes differ,
# attnlib refuses to guess:

# %%
try:
    al.scaled_dot_product_attention(x[:7], x[:7], x[:7], flat[:7])  # b = 7, n = 10
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# ## 5 · Polarity: True = may attend, and its opposite
#
# | who | boolean mask says |
# |---|---|
# | attnlib, torch's [`scaled_dot_product_attention`](../REFERENCES.md#torch-sdpa), [flax, ONNX](../REFERENCES.md#onnx) | True = may attend |
# | [`nn.MultiheadAttention`](../REFERENCES.md#torch-mha), `nn.Transformer` | True = **blocked** |
# | many tutorials (`masked_fill(mask == 0, ...)`) | 1 = may attend, 0 = blocked, as integers |
#
# A mask of the wrong polarity has the right shape and no error. So attnlib takes booleans or floats only, and the
# converters have names:

# %%
print("to_blocked:       ", al.to_blocked(al.causal_mask(3))[1])
print("to_additive:      ", al.to_additive(al.causal_mask(3))[1])
print("from_zero_blocked:", al.from_zero_blocked(np.array([1, 1, 0])))
try:
    al.scaled_dot_product_attention(Q, K, V, np.tril(np.ones((3, 3), dtype=int)))
except TypeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# **Predict.** A causal mask with inverted polarity: which query is left with nothing to look at?

# %%
inverted = al.attention_trace(Q, K, V, al.to_blocked(al.causal_mask(3)))
ax = plot.attention_heatmap(
    inverted.weights, attn_mask=inverted.attn_mask, title="inverted: only the future"
)
print("fully masked:", inverted.fully_masked)

# %% [markdown]
# ## 6 · The row that may look nowhere
#
# The last query of that picture has no key left. A softmax over nothing has no answer: $0/0$. What do libraries return?
# attnlib defines: weights and output are exactly 0, and `trace.fully_masked` says so. This section uses torch, if it is
# there.

# %%
try:
    import torch
    from torch.nn import functional as F

    _ = torch.set_num_threads(1)
except ImportError:
    torch = None
    print("torch is not installed: the next cells only say so. Fix: pip install torch")

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
# Three different answers. The last is the most dangerous: with a finite fill every key gets the same 0.1, forbidden ones
# too, and nothing looks wrong. In nn.MultiheadAttention the answer even depends on whether you ask for weights:

# %%
if torch is not None:
    row = mha(x, x, x, attn_mask=~allowed)[0][0, 1]
    print("need_weights=True: ", row.isnan().all().item(), "(all NaN)")
    print("need_weights=False:", mha_fused[0, 1].isnan().any().item(), "(any NaN)")

# %% [markdown]
# The finite fill has a second problem. **Predict.** The largest float16 number is 65504. What does a fill of -1e20 do?

# %%
if torch is not None:
    half = scores.half()
    try:
        half.masked_fill(~allowed, -1e20)
    except RuntimeError as error:
        print("RuntimeError:", error)
    print("-inf works:", half.masked_fill(~allowed, -torch.inf)[0, 1, :3].tolist())

# %% [markdown]
# ## 7 · Cross-attention: queries from elsewhere
#
# Queries need not come from the sequence that is read. In a translator, each word being written (query) looks at the
# sentence being read (keys and values). Then $n_q$ and $n_k$ may differ, and scaled dot-product attention is the same
# formula. Self-attention is the special case of one sequence. The vectors below are drawn at random, so only the shapes
# and the mask of this map mean something. In a trained model "sleeps" may well look at "dort"; here chance decides.

# %%
rng = np.random.default_rng(3)
read = ["le", "chat", "dort", "ici", "<pad>"]
written = ["the", "cat", "sleeps"]
query = rng.normal(size=(3, 8))  # (n_q, d_k)
key, value = rng.normal(size=(5, 8)), rng.normal(size=(5, 6))  # (n_k, d_k), (n_k, d_v)
mask = np.broadcast_to(al.padding_mask([4], 5)[0], (3, 5))  # (n_q, n_k)
cross = al.attention_trace(query, key, value, mask)
print("output:", cross.output.shape)
title = "cross-attention, random vectors"
ax = plot.attention_heatmap(
    cross.weights, queries=written, keys=read, attn_mask=mask, title=title
)

# %% [markdown]
# The output has a row per query and a column per value feature. A translator that has the whole sentence needs no
# causal mask here: place 2 of one language need not come after place 1 of the other. (One that translates while it
# listens does need a mask, on the words not heard yet.)
#
# ### Queries that continue a sequence
#
# A model that writes keeps the keys and values of the tokens so far, and asks with the newest token only. **Predict.**
# $n_q = 1$ and $n_k = 5$. Which keys may the newest token attend to?

# %%
print("lower_right:", al.causal_mask(1, 5, align="lower_right").astype(int))
print("upper_left: ", al.causal_mask(1, 5, align="upper_left").astype(int))
try:
    al.causal_mask(1, 5)
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# All five: it is the last of them. Its row is the last row of the square mask, so the mask lines up at the **lower
# right**. The **upper left** lets query $i$ see keys 0 to $i$, and the newest token would see the first key only. torch
# has both ([`torch.nn.attention.bias`](../REFERENCES.md#torch-causal)), and its `is_causal=True` takes the upper left without a word. For $n_q = n_k$ they
# are the same; otherwise attnlib asks which you mean. The proof that decoding needs the lower right: two queries that
# continue three tokens must get what the whole sequence gives them.

# %%
x = np.random.default_rng(5).normal(size=(5, 8))  # (n, d)
whole = al.scaled_dot_product_attention(x, x, x, is_causal=True)  # (n, d)
for align in ("lower_right", "upper_left"):
    mask = al.causal_mask(2, 5, align=align)  # (n_q, n_k)
    last_two = al.scaled_dot_product_attention(x[3:], x, x, mask)  # (n_q, d)
    print(f"{align:<11} differs by {np.abs(last_two - whole[3:]).max():.4f}")

# %% [markdown]
# ## 8 · See it · $d_k$ under a causal mask
#
# Seven tokens, causal. **Predict.** Row 0 has only one key. Does $d_k$ change its weights?

# %%
causal = al.causal_mask(7)
long_Q, long_K = np.random.default_rng(4).normal(size=(2, 7, 256))  # (n, 256) each


def causal_at(d_k):
    q, k = long_Q[:, :d_k], long_K[:, :d_k]  # (n, d_k)
    plain = al.attention_trace(q, k, q, is_causal=True, scale=1.0)
    return {
        "not scaled": plain.weights,
        "divided by sqrt(d_k)": al.attention_trace(q, k, q, is_causal=True).weights,
    }


view = live.weights_view(causal_at, d_k=(1, 256), still=(2, 16, 256), attn_mask=causal)
view

# %% [markdown]
# ## 9 · See it · Both masks at once
#
# Six tokens, of which the first `length` are real. **Predict.** With both masks and 2 real tokens, how many pairs may
# attend? And what is left at length 0?

# %%
both_masks = live.masks(n=6)
both_masks

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Masks are boolean, **True = may attend**. NumPy only.

# %% [markdown]
# ### Exercise 5.1 · The causal mask
#
# **Goal.** Write the mask that hides the future, in training and in decoding. *6 minutes, medium.*
#
# `my_causal_mask(n_q, n_k=None)` returns $(n_q, n_k)$ of bool. The queries are the **last** `n_q` tokens of a sequence of
# `n_k`: each may attend to itself and to all tokens before it. `n_k` defaults to `n_q`, the whole sequence.


# %%
def my_causal_mask(n_q, n_k=None):
    return ...  # your code


# %%
verdict = check.causal_mask(my_causal_mask)
verdict

# %% [markdown]
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

# %% [markdown]
# ### Exercise 5.2 · The padding mask
#
# **Goal.** Write the mask that hides padded keys. *6 minutes, medium.*
#
# `my_padding_mask(lengths, n_k)`: `lengths` is an array $(b,)$, the result is $(b, 1, n_k)$ of bool.


# %%
def my_padding_mask(lengths, n_k):
    return ...  # your code


# %%
verdict = check.padding_mask(my_padding_mask)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_padding_mask(lengths, n_k):
#     return np.arange(n_k) < lengths[:, None, None]  # (b, 1, n_k)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 5.3 · Both at once
#
# **Goal.** Combine any number of masks. *6 minutes, medium.*
#
# `my_combine_masks(*masks)`: a query may attend where all masks allow it. A mask may be `None`, which allows everything.


# %%
def my_combine_masks(*masks):
    return ...  # your code


# %%
verdict = check.combine_masks(my_combine_masks)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_combine_masks(*masks):
#     combined = True
#     for mask in masks:
#         if mask is not None:
#             combined = combined & mask  # a new array; the masks stay as they are
#     return combined
# ```
#
# </details>

# %% [markdown]
# ### Exercise 5.4 · Masked softmax
#
# **Goal.** Write a softmax over the keys that a query may attend to. *12 minutes, hard.*
#
# `my_masked_softmax(scores, attn_mask=None)` works over the last axis. A row that may attend to nothing gives zeros. Do
# not use `al.softmax` this time.


# %%
def my_masked_softmax(scores, attn_mask=None):
    return ...  # your code


# %%
verdict = check.masked_softmax(my_masked_softmax)
verdict

# %% [markdown]
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

# %% [markdown]
# ### Exercise 5.5 · Cross-attention
#
# **Goal.** Write attention from one sequence to another. *8 minutes, medium.*
#
# `my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None)`: queries from `x` $(..., n_q, d)$, keys and values
# from `context` $(..., n_k, d')$. Returns $(..., n_q, d_v)$. You may use `al.scaled_dot_product_attention`.


# %%
def my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None):
    return ...  # your code


# %%
verdict = check.cross_attention(my_cross_attention)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None):
#     return al.scaled_dot_product_attention(x @ W_Q, context @ W_K, context @ W_V, attn_mask)
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Write a mask that lets each query see itself and the two tokens before it (a sliding window). Check it with `poke`:
#    which outputs may move when token 3 changes? (3 and 4 of the five.)
# 2. Combine your window with `padding_mask`. Is there a fully masked row?
#
# **Remember.** True = may attend. Block with $-\infty$ before softmax. Padding hides keys, so it needs a query axis:
# $(b, 1, n_k)$. Test a mask by poking what it should hide. Next: [06 multi-head](06_multi_head.ipynb).

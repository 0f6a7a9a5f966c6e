# %% [markdown]
# # 02 · The same numbers as matrix products
#
# **Question.** Notebook 01 went through tokens, queries and keys one by one. Which matrix products are the whole of it, and
# what goes wrong when an axis is the wrong one? *35 minutes.*
#
# | symbol | meaning |
# |---|---|
# | $X$, $(n, d_{in})$ | the tokens, one per row |
# | $W_Q, W_K$, $(d_{in}, d_k)$ and $W_V$, $(d_{in}, d_v)$ | projection matrices |
# | $Q, K$, $(n, d_k)$ and $V$, $(n, d_v)$ | queries, keys, values, one per row |

# %%
from textwrap import fill

import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict, real_model
from attnlib.examples import ASYMMETRIC, BY_HAND, IDENTITY

np.set_printoptions(precision=4, suppress=True)

# %% [markdown]
# ## Before you start
#
# Three questions from memory. Write a letter in place of each `None` and run the cell.
#
# **1.** *(notebook 01)* Why is there one matrix for queries and another for keys?
#
# - **a** a dot product needs two different vectors
# - **b** what a token looks for is not how it is found
# - **c** so that no score becomes negative
#
# **2.** *(notebook 00)* The column of "cat" in a map of weights sums to 1.4. What does that say?
#
# - **a** "cat" is asked for more than its share
# - **b** somebody made a mistake, it must be 1
# - **c** "cat" shares out more than the others
#
# **3.** *(notebook 00)* What does $d_k$ count?
#
# - **a** the keys
# - **b** the features of a token
# - **c** the features of a query and of a key

# %%
predict.before_02(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## The whole call as one picture
#
# Here is all of notebook 01 at once: a matrix for everything you made by hand. A number is made by the row to its left and the column above it: a score by a query and
# a key, an output by a row of weights and a column of the values. So each query is one line from left to right, and the
# table writes its numbers out. The sections below make these matrices one after the other.

# %%
whole_call = live.flow(
    al.attention_trace(*BY_HAND.project()), x=BY_HAND.x, query=2, key=1
)
whole_call

# %% [markdown]
# **Try.** Move the query from 0 to 2. Which of the three is the most one-sided, and which of its scores made it so? Then
# click a column of $V$: the last row of the table adds up one number of the output.
#
# ## Projections: three products
#
# In notebook 01 each token met each matrix in a loop of its own. `X @ W_Q` does that for all tokens at once: row $i$ of the
# result is token $i$ times `W_Q`. Shapes read like dominoes. $(n, d_{in})$ by $(d_{in}, d_k)$ gives $(n, d_k)$: the inner axes
# must match, and disappear.

# %%
X, W_Q, W_K, W_V = BY_HAND
Q = X @ W_Q  # (n, d_k)
K = X @ W_K  # (n, d_k)
V = X @ W_V  # (n, d_v)
print("K =", K.tolist())
print("Q =", Q.tolist())
print("V =", V.tolist())

# %% [markdown]
# The same numbers as in notebook 01. Python counts rows from 0, so row 1 of $K$ is the second token's key, $k_2$:

# %%
k2_by_loop = [sum(X[1, i] * W_K[i, c] for i in range(4)) for c in range(3)]
print("k2 by loop:", [float(v) for v in k2_by_loop], "  row 1 of K:", K[1].tolist())

# %% [markdown]
# ## Attention: two products and a softmax between them
#
# All dot products of queries with keys are one product, $Q K^T$. The transpose lays each key down as a column, so that $d_k$
# is the inner axis of both. Row 1 of the result is what query 1 thinks of every key.

# %%
scores = Q @ K.T  # (n_q, n_k)
exponentials = np.exp(scores)  # (n_q, n_k)
weights = exponentials / exponentials.sum(axis=1, keepdims=True)  # rows sum to 1
output = weights @ V  # (n_q, d_v)
print(scores)
with np.printoptions(precision=4, suppress=False):
    print(weights)
with np.printoptions(precision=6, suppress=True):
    print(output)

# %% [markdown]
# With the scale of [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017),
# $$\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
# that is notebook 01's last result. `attention_trace` computes it and keeps each step:

# %%
trace = al.attention_trace(Q, K, V)
trace

# %%
with np.printoptions(precision=6):
    print(trace.weights[0], " weights of query 0")
    print(trace.output)

# %% [markdown]
# ## Would these examples notice?
#
# Here is a second example that fits into one's head: two tokens, everything the identity but $W_V$ ([S1](../REFERENCES.md#s1)).

# %%
Q2, K2, V2 = IDENTITY.project()
with np.printoptions(precision=7):
    print(al.scaled_dot_product_attention(Q2, K2, V2))

# %% [markdown]
# Suppose you write attention yourself and test it on these two: your numbers agree with those printed above, all digits. In
# your code $Q$ and $K$ are swapped.
#
# **Predict.** Which of the two examples tells you?
#
# - **a** neither
# - **b** only the worked example
# - **c** only the identity example
# - **d** both

# %%
guess_symmetric = None  # "a", "b", "c" or "d"


# %%
def attention(Q, K, V, axis=1):
    scores = Q @ K.T / np.sqrt(Q.shape[1])  # (n_q, n_k)
    e = np.exp(scores)
    return e / e.sum(axis=axis, keepdims=True) @ V


def mistakes(name, q, k, v):
    right = attention(q, k, v)
    swapped = np.abs(attention(k, q, v) - right).max()
    over_queries = np.abs(attention(q, k, v, axis=0) - right).max()
    print(f"{name:<11} Q and K swapped:      off by {swapped:.4f}")
    print(f"{name:<11} softmax over queries: off by {over_queries:.4f}")


# %%
mistakes("by hand", Q, K, V)
mistakes("identity", Q2, K2, V2)

# %%
predict.symmetric(guess_symmetric)

# %% [markdown]
# The example that you computed with so much care cannot tell a query from a key. Look at its scores again: 4 and 4, 4 and 4,
# 12 and 12. The matrix equals its transpose, and swapping $Q$ and $K$ does nothing but transpose it. The three matrices of
# this example do not force that; it is an accident of the numbers:

# %%
print(
    "largest difference between scores and their transpose:",
    np.abs(scores - scores.T).max(),
)
M = W_Q @ W_K.T  # (d_in, d_in), scores = X M X^T
print("between W_Q W_K^T and its transpose:                  ", np.abs(M - M.T).max())

# %% [markdown]
# The identity example is worse: softmax over the wrong axis does not show in it either. So ask of every test which mistake it
# would catch. From here on there is a third example: $n$, $d_k$ and $d_v$ all different, no symmetry, and no weight near 0 or 1.

# %%
Q3, K3, V3 = ASYMMETRIC.project()
trace3 = al.attention_trace(Q3, K3, V3)
mistakes("asymmetric", Q3, K3, V3)
print("Q", Q3.shape, " K", K3.shape, " V", V3.shape)
ax = plot.attention_heatmap(trace3.weights, title="asymmetric example")

# %% [markdown]
# Each query shares out exactly 1, so rows sum to 1. Columns need not: a key can be popular.

# %%
print("sums over keys (rows):      ", trace3.weights.sum(axis=1))
print("sums over queries (columns):", trace3.weights.sum(axis=0))

# %% [markdown]
# ## Break it · Softmax of large scores
#
# A float ends near $10^{308}$. **Predict.** Multiply $Q$ and $K$ of the identity example by 32: the largest
# scaled score becomes $32^2 / \sqrt 2 \approx 724$. What comes out?

# %%
for factor in (1, 31.6, 32):
    with np.errstate(over="ignore", invalid="ignore"):
        broken = attention(factor * Q2, factor * K2, V2)
    print(f"times {factor:<5} plain softmax: {broken[0]}   al.softmax: ", end="")
    print(al.scaled_dot_product_attention(factor * Q2, factor * K2, V2)[0])

# %% [markdown]
# Three exercises ask for less and less help: a line, a body, all of it. Write your answer in the first cell, run it and the
# cell below it. The verdict names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call
# goes one step further. The solution is folded below.
#
# Each function has the signature of attnlib's function of the same name. It is tried on one sequence and on batches, with
# all sizes different, and with scores near 10000. NumPy only.

# %% [markdown]
# ### Exercise 2.1 · Softmax
#
# **Goal.** One line that keeps the softmax below from overflowing. *3 minutes, easy.*
#
# $e^{s_j} / \sum_k e^{s_k}$ does not change if the same number $m$ is subtracted from every score: the factor $e^{-m}$ cancels.
# Which $m$, for each row, makes sure that no exponent is above 0? `axis` is the axis along which the result sums to 1.


# %%
def plain_softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def my_softmax(x, axis=-1):
    return ...  # your line: plain_softmax of what?


# %%
verdict = check.softmax(my_softmax)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_softmax(x, axis=-1):
#     return plain_softmax(x - x.max(axis=axis, keepdims=True), axis)
# ```
#
# </details>

# %% [markdown]
# Subtract the largest score of each row. The largest exponent is then 0, and the result is the same:

# %%
largest = scores.max(axis=-1, keepdims=True)  # (n_q, 1)
stable = np.exp(scores - largest)
stable /= stable.sum(axis=-1, keepdims=True)
print(f"exp overflows above:        {np.log(np.finfo(float).max):.2f}")
print(f"largest scaled score at 32: {32 * 32 / 2**0.5:.2f}")
print(
    f"stable and plain weights differ by at most {np.abs(stable - weights).max():.12f}"
)
print("largest exponent:", (scores - largest).max())

# %% [markdown]
# ## Batches: which axis is which?
#
# Real inputs come in batches: several sequences at once, $(b, n, d)$. Nothing about attention changes, but the axes do.

# %% [markdown]
# ### Exercise 2.2 · Scores
#
# **Goal.** The body of $Q K^T$, for one sequence and for a batch. *4 minutes, medium.*
#
# `my_attention_scores(query, key)`: $(..., n_q, d_k)$ and $(..., n_k, d_k)$ give $(..., n_q, n_k)$. Not scaled.


# %%
def my_attention_scores(query, key):
    return ...  # your code


# %%
verdict = check.attention_scores(my_attention_scores)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_attention_scores(query, key):
#     return query @ np.swapaxes(key, -1, -2)  # (..., n_q, n_k)
# ```
#
# </details>

# %% [markdown]
# Three habits from 2-D fail in a batch. First, `.T` reverses **all** axes:

# %%
rng = np.random.default_rng(0)
batch_Q = rng.normal(size=(2, 3, 4))  # (b, n_q, d_k)
batch_K = rng.normal(size=(2, 5, 4))  # (b, n_k, d_k)
print("K.T:              ", batch_K.T.shape)
print("K.swapaxes(-1,-2):", batch_K.swapaxes(-1, -2).shape)
print("scores:           ", (batch_Q @ batch_K.swapaxes(-1, -2)).shape)

# %% [markdown]
# Second, `np.dot` and `@` agree in 2-D and differ from 3-D on: `@` multiplies matrix by matrix within the batch,
# `dot` pairs every sequence with every other.

# %%
print("2-D equal:", np.array_equal(np.dot(Q, K.T), Q @ K.T))
print("3-D  @:  ", (batch_Q @ batch_K.swapaxes(-1, -2)).shape)
print("3-D  dot:", np.dot(batch_Q, batch_K.swapaxes(-1, -2)).shape)

# %% [markdown]
# Third, code that says `K.shape[1]`, `K.T` and `axis=1` means $d_k$, transpose and keys only in 2-D. Usually 3-D input
# then fails loudly. **Predict.** What happens with a (3, 3, 3) cube, where all sizes agree?
#
# - **a** an error, as with other sizes
# - **b** it runs, and the result is right
# - **c** it runs, and the result is wrong

# %%
guess_cube = None  # "a", "b" or "c"

# %%
cube = np.random.default_rng(0).normal(size=(3, 3, 3))
flat_code = np.exp(cube @ cube.T / np.sqrt(cube.shape[1]))
wrong = (flat_code / flat_code.sum(axis=1, keepdims=True)) @ cube
right = al.scaled_dot_product_attention(cube, cube, cube)
off = round(np.abs(wrong - right).max(), 2)
print("shapes:", wrong.shape, right.shape, "  largest difference:", off)

# %%
predict.cube(guess_cube)

# %% [markdown]
# It runs, has the right shape and is wrong. Count axes from the end (`axis=-1`, `swapaxes(-1, -2)`), and test with sizes
# that all differ. attnlib's functions do both, and when shapes do not fit, they say which rule is broken:

# %%
try:
    al.scaled_dot_product_attention(np.ones((2, 3)), np.ones((5, 4)), np.ones((5, 2)))
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown]
# ## What a longer text costs
#
# **Predict.** A text becomes ten times as long. How many times as many multiplications does the attention of one head take,
# how many times as many bytes do its weights? Take the head of notebook 00: $d_{in} = 384$, $d_k = d_v = 32$.

# %%
d_in, d_k, d_v = 384, 32, 32
n = np.array([10, 100, 1000, 10_000])
projecting = n * d_in * (d_k + d_k + d_v)  # X W_Q, X W_K, X W_V
pairing = n * n * (d_k + d_v)  # Q K^T, weights V
held = 4 * n * n  # one map of weights in float32
for row in zip(n, projecting, pairing, held):
    told = "n = {:6,}   projections {:13,}   pairs {:13,}   weights {:11,} bytes"
    print(told.format(*row))

# %%
figure, ax = plot.subplots(figsize=(6, 3.2))
_ = ax.loglog(n, projecting, "o-", label="multiplications, projections")
_ = ax.loglog(n, pairing, "s--", label="multiplications, pairs of tokens")
_ = ax.loglog(n, held, "^:", label="bytes of the weights")
_ = ax.set(xlabel="n, tokens")
_ = ax.legend()
print(
    "pairs cost as much as the projections at n =",
    d_in * (2 * d_k + d_v) // (d_k + d_v),
)

# %% [markdown]
# The projections treat each token by itself, so they grow like $n$. Scores and weights have an entry for each *pair* of tokens,
# so they grow like $n^2$. A short text hardly notices. At 10,000 tokens one map takes 400 MB, and MiniLM would make 72 of them.
#
# ## See it · What changes its size with $d_k$
#
# The head of notebook 00 once more, with four of the tokens of its first sentence, so that each number has room. The slider
# keeps the first $d_k$ features of each query and key. (Of the values the first six are shown.)
#
# **Predict.** Five matrices stand in the picture besides the output: $Q$, $K^T$, scores, weights, $V$. Which of them change
# their size with $d_k$? Does the output?

# %%
stored = real_model.stored("minilm_results")
head, places = stored["L1H5 of the first bank"], [1, 2, 5, 8]
real_Q, real_K, real_V = (
    np.array(head[name])[places] for name in ("query", "key", "value")
)  # (4, 32) each


def call_at(d_k):
    return al.attention_trace(real_Q[:, :d_k], real_K[:, :d_k], real_V[:, :6])


# %%
words = [stored["six banks"]["tokens"][0][place] for place in places]
sizes = live.flow(call_at, queries=words, query=2, key=3, d_k=[1, 2, 4, 8, 16, 32])
sizes

# %% [markdown]
# $Q$ and $K$ alone. The product sums $d_k$ away, so a score is one number however long the vectors are, and the maps stay
# $n$ by $n$; the output takes its width from $V$. That is why a shape never tells whether $d_k$ was right.

# %% [markdown]
# ### Exercise 2.3 · Attention
#
# **Goal.** The whole formula, with a mask, from a blank function. *15 minutes, hard.*
#
# `my_attention(query, key, value, attn_mask=None)` returns $(..., n_q, d_v)$. `attn_mask` is boolean, **True = may attend**
# (the subject of notebook 05): where it is False, the scaled score becomes $-\infty$,
# `np.where(attn_mask, scaled, -np.inf)`. You may use `al.softmax`, which gives zeros for a row of nothing but $-\infty$.


# %%
def my_attention(query, key, value, attn_mask=None):
    return ...  # your code


# %%
verdict = check.scaled_dot_product_attention(my_attention)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_attention(query, key, value, attn_mask=None):
#     scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])  # (..., n_q, n_k)
#     if attn_mask is not None:
#         scaled = np.where(attn_mask, scaled, -np.inf)
#     return al.softmax(scaled) @ value  # (..., n_q, d_v)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 2.4 · A test that lets nothing through
#
# **Goal.** Design an example in which four mistakes all show. *8 minutes, medium.*
#
# Choose $Q$ $(n_q, d_k)$, $K$ $(n_k, d_k)$ and $V$ $(n_k, d_v)$, small numbers of your own. Each of these mistakes must move
# some number of the output by 0.01 or more, or raise an error: $Q$ and $K$ swapped; softmax over the queries; no scale;
# divided by $\sqrt{d_v}$. Hand in the three as a list.

# %%
my_example = None  # [Q, K, V], each a list of rows

# %%
verdict = check.example_that_tells(my_example)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# # One of many: two queries, three keys, d_k = 2, d_v = 1.
# my_example = [[[1, 0], [0, 2]], [[1, 1], [0, 1], [2, 0]], [[1], [0], [3]]]
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. In your function, forget the scale, then take `K.T`, then softmax over `axis=0`. Does the verdict name each?
# 2. Shuffle the rows of `K3` and `V3` by the same permutation. Which output numbers change? (None: keys carry no order.)
#
# **Remember.** Attention is $QK^T$, scale, softmax over keys, times $V$. Subtract the row maximum before `exp`. Count
# axes from the end, and test with an example that is not symmetric and whose sizes all differ. Next: [03 scaling](03_scaling.ipynb).

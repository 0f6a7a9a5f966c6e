# %% [markdown]
# # 02 · The same numbers as matrix products
#
# **Question.** Notebook 01 took loops over tokens, queries and keys. Which matrix products are the whole of it, and what
# goes wrong when an axis is the wrong one? *35 minutes.*
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
from attnlib.course import check, predict
from attnlib.examples import ASYMMETRIC, BY_HAND, IDENTITY

np.set_printoptions(precision=4, suppress=True)

# %% [markdown]
# ## The whole call as one picture
#
# All of notebook 01 as matrices. A number is made by the row to its left and the column above it: a score by a query and
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
# `X @ W_Q` multiplies every token with `W_Q` at once. Shapes: $(n, d_{in})$ by $(d_{in}, d_k)$ gives $(n, d_k)$; the
# inner axis disappears.

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
# All dot products of queries with keys are one product, $Q K^T$. The transpose puts $d_k$ on the inner axis.

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
# ## A second example, small enough to check in your head
#
# Two tokens, everything the identity but $W_V$ ([S1](../REFERENCES.md#s1)):

# %%
Q2, K2, V2 = IDENTITY.project()
with np.printoptions(precision=7):
    print(al.scaled_dot_product_attention(Q2, K2, V2))

# %% [markdown]
# ## What a symmetric example hides
#
# **Predict.** In this second example, somebody takes softmax over the queries instead of the keys (`axis=0`), or swaps
# $Q$ and $K$. Do the numbers show it?
#
# - **a** neither shows
# - **b** only the wrong axis shows
# - **c** only the swap shows
# - **d** both show

# %%
guess_symmetric = None  # "a", "b", "c" or "d"


# %%
def attention(Q, K, V, axis=1):
    scores = Q @ K.T / np.sqrt(Q.shape[1])  # (n_q, n_k)
    e = np.exp(scores)
    return e / e.sum(axis=axis, keepdims=True) @ V


examples = {"identity": (Q2, K2, V2), "asymmetric": ASYMMETRIC.project()}
for name, (q, k, v) in examples.items():
    right = attention(q, k, v)
    over_queries = np.abs(attention(q, k, v, axis=0) - right).max()
    swapped = np.abs(attention(k, q, v) - right).max()
    print(f"{name:<11} softmax over queries: off by {over_queries:.4f}")
    print(f"{name:<11} Q and K swapped:      off by {swapped:.4f}")

# %%
predict.symmetric(guess_symmetric)

# %% [markdown]
# Test attention with asymmetric numbers: $n$, $d_k$ and $d_v$ all different, and no weight near 0 or 1. This one has
# $n = 4$, $d_k = 2$, $d_v = 5$.

# %%
Q3, K3, V3 = ASYMMETRIC.project()
trace3 = al.attention_trace(Q3, K3, V3)
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
# **Predict.** $e^{1000}$ is too large for a float. Multiply $Q$ and $K$ of the identity example by 32: the largest
# scaled score becomes $32^2 / \sqrt 2 \approx 724$. What comes out?

# %%
for factor in (1, 31.6, 32):
    with np.errstate(over="ignore", invalid="ignore"):
        broken = attention(factor * Q2, factor * K2, V2)
    print(f"times {factor:<5} plain softmax: {broken[0]}   al.softmax: ", end="")
    print(al.scaled_dot_product_attention(factor * Q2, factor * K2, V2)[0])

# %% [markdown]
# `exp` overflows to infinity above the limit that the next cell prints, and infinity / infinity is NaN. The cure is to
# subtract the largest score of each row first: $e^{s_j - m} / \sum_k e^{s_k - m}$. The factor $e^{-m}$ cancels, the result is the same, and the
# largest exponent is 0.


# %%
def stable_softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


print(f"exp overflows above:        {np.log(np.finfo(float).max):.2f}")
print(f"largest scaled score at 32: {32 * 32 / 2**0.5:.2f}")
print("same result:", np.allclose(stable_softmax(scores), weights, rtol=0, atol=1e-15))
print("largest exp argument:", (scores - scores.max(axis=-1, keepdims=True)).max())

# %% [markdown]
# ## Batches: which axis is which?
#
# Real inputs come in batches: $(b, n, d)$. Three habits from 2-D then fail. First, `.T` reverses **all** axes:

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
# ## See it · One map, any $d_k$
#
# Six tokens with random queries and keys. The vectors are nested: the slider takes the first $d_k$ of 128 entries.
# **Predict.** Which of the two maps will have a nearly one-hot row at $d_k = 128$?

# %%
long_Q, long_K = np.random.default_rng(2).normal(size=(2, 6, 128))  # (n, 128) each


def maps_at(d_k):
    q, k = long_Q[:, :d_k], long_K[:, :d_k]  # (n, d_k)
    return {
        "not scaled": al.softmax(q @ k.T),
        "divided by sqrt(d_k)": al.attention_trace(q, k, q).weights,
    }


view = live.weights_view(maps_at, d_k=(1, 128), still=(2, 16, 128))
view

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Each function has the signature of attnlib's function of the same name. It is tried on one sequence and on batches, with
# $n_q$, $n_k$, $d_k$ and $d_v$ all different, and with scores near 10000. NumPy only.

# %% [markdown]
# ### Exercise 2.1 · Softmax
#
# **Goal.** Write a softmax that survives large numbers. *5 minutes, easy.*
#
# `my_softmax(x, axis=-1)` returns an array of the shape of `x` that sums to 1 along `axis`. No row is all $-\infty$.


# %%
def my_softmax(x, axis=-1):
    return ...  # your code


# %%
verdict = check.softmax(my_softmax)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_softmax(x, axis=-1):
#     e = np.exp(x - x.max(axis=axis, keepdims=True))
#     return e / e.sum(axis=axis, keepdims=True)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 2.2 · Scores
#
# **Goal.** Write $Q K^T$ for one sequence and for batches. *5 minutes, easy.*
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
# ### Exercise 2.3 · Attention
#
# **Goal.** Write the whole formula, with a mask. *15 minutes, hard.*
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
# ## Try it
#
# 1. In your function, forget the scale, then take `K.T`, then softmax over `axis=0`. Does the verdict name each?
# 2. Shuffle the rows of `K3` and `V3` by the same permutation. Which output numbers change? (None: keys carry no order.)
#
# **Remember.** Attention is $QK^T$, scale, softmax over keys, times $V$. Subtract the row maximum before `exp`. Count
# axes from the end, and test with sizes that all differ. Next: [03 scaling](03_scaling.ipynb).

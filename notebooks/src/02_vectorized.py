# %% [markdown]
# # 02 · The same numbers as matrix products
#
# **Question.** Notebook 01 went through tokens, queries and keys one by one. Which matrix products are the whole of it, and
# what goes wrong when an axis is the wrong one? *35 minutes.*
#
# From here on tokens, queries and keys are counted from 0, as Python counts: query 1 of notebook 01 is query 0 now.
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
# **2.** *(notebook 00)* The column of *When* in a map of weights sums to 9.7. What does that say?
#
# - **a** *When* is looked at by many queries
# - **b** somebody made a mistake, it must be 1
# - **c** *When* divides more than the others
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
# Here is all of notebook 01 at once: a matrix for everything you made by hand, except for $W_Q$, $W_K$ and $W_V$, which make
# $Q$, $K$ and $V$ of the tokens at the left. As in notebook 00, each score and each number of the output is made by the row to
# its left and the column above it. So each query is one line from left to right, and the table writes its numbers out. The
# sections below make these matrices one after the other.

# %%
whole_call = live.flow(
    al.attention_trace(*BY_HAND.project()), x=BY_HAND.x, query=2, key=1
)
whole_call

# %% [markdown]
# **Try.** Move the query from 0 to 2. Which of the three is the most one-sided, and which of its scores made it so? (Look for
# the answer below the first weights.) Then click a column of $V$: the last row of the table adds up one number of the output.
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
# The same numbers as in notebook 01. Row 1 of $K$ is the key of token 1, which notebook 01 called $k_2$. Here it is, number by
# number:

# %%
by_loop = [sum(X[1, i] * W_K[i, c] for i in range(4)) for c in range(3)]
print("key 1 by loop:", [float(v) for v in by_loop], "  row 1 of K:", K[1].tolist())

# %% [markdown]
# ## Attention: two products and a softmax between them
#
# All dot products of queries with keys are one product, $Q K^T$. The transpose lays each key down as a column, so that $d_k$
# is the inner axis of both. Row 1 of the result holds the scores of query 1 with every key.

# %%
scores = Q @ K.T  # (n_q, n_k)
exponentials = np.exp(scores)  # (n_q, n_k)
weights = exponentials / exponentials.sum(axis=1, keepdims=True)  # rows sum to 1
output = weights @ V  # (n_q, d_v)
print(scores)

# %%
with np.printoptions(precision=4, suppress=False):  # e-06 stands for 10^-6
    print(weights)
with np.printoptions(precision=6, suppress=True):
    print(output)

# %% [markdown]
# Query 1 is the most one-sided, with 0.98 on key 1: its score of 16 is 4 ahead of the next. (In the picture it is 0.91, for there
# the scores are scaled.)
#
# With the scale of [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017),
# $$\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right) V,$$
# you get the scaled outputs of Step 6 in notebook 01. `attention_trace` computes them and keeps each step. Its scale is the
# factor $1/\sqrt{d_k} = 1/\sqrt 3 = 0.5774$. Its masked scores equal the scaled ones here: a mask would forbid some keys, and
# notebook 05 has masks.

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
# Here is a second example that fits into one's head: two tokens, where $X$, $W_Q$ and $W_K$ are the 2 by 2 identity
# ([S1](../REFERENCES.md#s1)).

# %%
Q2, K2, V2 = IDENTITY.project()
print("X =", IDENTITY.x.tolist(), "  W_V =", IDENTITY.W_V.tolist())
with np.printoptions(precision=7):
    print(al.scaled_dot_product_attention(Q2, K2, V2))

# %% [markdown] tags=["predict"]
# Suppose you write attention yourself, swap $Q$ and $K$ by mistake, and compare your outputs with those printed above.
#
# **Predict.** In which of the two examples do they differ?
#
# - **a** in neither
# - **b** only in the worked example
# - **c** only in the identity example
# - **d** in both
#
# And suppose your softmax goes over `axis=0`, the queries, in place of `axis=1`: where do they differ then?

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
# 12 and 12. The matrix equals its transpose, and swapping $Q$ and $K$ does nothing but transpose it.
#
# Do the matrices force that? $Q K^T = (X W_Q)(X W_K)^T = X\, W_Q W_K^T X^T$. If $M = W_Q W_K^T$ were symmetric, the scores would
# be so for any tokens. Is it? And what if one number of one token changes?

# %%
print(
    "largest difference between scores and their transpose:",
    np.abs(scores - scores.T).max(),
)
M = W_Q @ W_K.T  # (d_in, d_in), scores = X M X^T
print("between W_Q W_K^T and its transpose:                  ", np.abs(M - M.T).max())
other = X.copy()
other[2, 3] = 2  # it was 1
others = other @ M @ other.T
print("between scores and transpose, one number changed:     ", end=" ")
print(np.abs(others - others.T).max())

# %% [markdown]
# $M$ is not symmetric, and one changed number is enough to end the symmetry of the scores: it was an accident of these three
# tokens. A softmax over the wrong axis does show in the worked example. In the identity example it does not: there all rows of
# exponentials have the same sum, and so have all columns, so dividing by the one or by the other is the same. So ask of every
# test which mistake it would catch.
#
# From here on there is a third example, without symmetry, whose weights all lie between 0.04 and 0.76. $n$, $d_k$ and $d_v$ all
# differ. Only $n_q$ and $n_k$ are equal, because each token makes a query and a key. So the shape of the scores cannot show
# that queries and keys have changed places: only their numbers can.

# %%
Q3, K3, V3 = ASYMMETRIC.project()
trace3 = al.attention_trace(Q3, K3, V3)
mistakes("asymmetric", Q3, K3, V3)
print("Q", Q3.shape, " K", K3.shape, " V", V3.shape)
smallest, largest = trace3.weights.min(), trace3.weights.max()
print(f"weights from {smallest:.2f} to {largest:.2f}")
ax = plot.attention_heatmap(trace3.weights, title="asymmetric example")

# %% [markdown]
# Each query shares out exactly 1, so rows sum to 1. Columns need not: a key can be popular.

# %%
print("sums over keys (rows):      ", trace3.weights.sum(axis=1))
print("sums over queries (columns):", trace3.weights.sum(axis=0))

# %% [markdown] tags=["predict"]
# ## Break it · Softmax of large scores
#
# A float ends near $10^{308}$, which is about $e^{709}$. **Predict.** Multiply $Q$ and $K$ of the identity example by 32: the
# largest scaled score becomes $32^2 / \sqrt 2 \approx 724$. What comes out?

# %%
print("output of query 0, by attention with each softmax:")
for factor in (1, 31.6, 32):
    with np.errstate(over="ignore", invalid="ignore"):
        broken = attention(factor * Q2, factor * K2, V2)
    print(f"times {factor:<5} plain softmax: {broken[0]}   al.softmax: ", end="")
    print(al.scaled_dot_product_attention(factor * Q2, factor * K2, V2)[0])
for factor in (31.6, 32):
    largest = factor**2 / 2**0.5
    print(f"times {factor:<5} largest scaled score: {largest:.0f}", end="   ")
    print(f"exp overflows above {np.log(np.finfo(float).max):.2f}")

# %% [markdown]
# At 31.6 the largest score is 706, and $e^{706}$ is about $4 \cdot 10^{306}$: just a float. At 32 it is 724, and $e^{724}$
# becomes `inf`. The weight is then `inf` divided by a sum that is `inf`, too, and that is `nan`, *not a number*. attnlib's softmax gets along
# with both; the first exercise asks how.
#
# Four exercises follow. The first three ask for more and more: a line, a body, the whole formula. The last asks for an
# example. Write your answer in the first cell, run it and the
# cell below it. The verdict names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call
# goes one step further. The solution is folded below.
#
# Each function takes the same arguments as the function of attnlib that it rebuilds. It is tried on one sequence and on
# batches, with all sizes different, and with scores near 10000. NumPy only.

# %% [markdown] tags=["exercise"]
# ### Exercise 2.1 · Softmax
#
# **Goal.** One line that keeps the softmax below from overflowing. *3 minutes, easy.*
#
# $e^{s_j} / \sum_l e^{s_l}$ does not change if the same number $m$ is subtracted from every score: the factor $e^{-m}$ cancels.
# Which $m$, for each row, makes sure that no exponent is above 0? `axis` is the axis along which the result sums to 1; with
# `axis=0` a "row" is a column, and your line must do for that, too.


# %%
def plain_softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def my_softmax(x, axis=-1):
    return ...  # your line: plain_softmax of what?


# %%
verdict = check.softmax(my_softmax)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def plain_softmax(x, axis=-1):
#     e = np.exp(x)
#     return e / e.sum(axis=axis, keepdims=True)
#
#
# def my_softmax(x, axis=-1):
#     return plain_softmax(x - x.max(axis=axis, keepdims=True), axis)
# ```
#
# </details>

# %% [markdown]
# ## Batches: which axis is which?
#
# Real inputs come in batches: several sequences at once, $(b, n, d)$. Each is handled by itself, as before, but the axes
# change. No loop is needed: `A @ B` multiplies the last two axes as matrices, once for every sequence of the batch.

# %% [markdown] tags=["exercise"]
# ### Exercise 2.2 · Scores
#
# **Goal.** The body of $Q K^T$, for one sequence and for a batch. *4 minutes, medium.*
#
# `my_attention_scores(query, key)`: $(..., n_q, d_k)$ and $(..., n_k, d_k)$ give $(..., n_q, n_k)$. Not scaled.
# The dots stand for axes in front, such as $b$, or for none. `np.swapaxes(x, i, j)` exchanges axes $i$ and $j$ of an array.


# %%
def my_attention_scores(query, key):
    return ...  # your code


# %%
verdict = check.attention_scores(my_attention_scores)
verdict

# %% [markdown] tags=["solution"]
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
turned = np.stack([key.T for key in batch_K])  # (b, d_k, n_k), sequence by sequence
print("K.T:                  ", batch_K.T.shape)
print("each sequence turned: ", turned.shape)
print("scores:               ", (batch_Q @ turned).shape)

# %% [markdown]
# Second, `np.dot` and `@` agree in 2-D and differ from 3-D on: `@` multiplies matrix by matrix within the batch,
# `dot` pairs every sequence with every other.

# %%
print("2-D equal:", np.array_equal(np.dot(Q, K.T), Q @ K.T))
print("3-D  @:  ", (batch_Q @ turned).shape)
print("3-D  dot:", np.dot(batch_Q, turned).shape)

# %% [markdown] tags=["predict"]
# Third, axes counted from the front. In 2-D `K.shape[1]` is $d_k$, and `axis=1` runs over the keys. In 3-D neither is so.
# **Predict.** A function written for 2-D contains `K.shape[1]`, `axis=1` and `K.T`. It is given three sequences of three tokens
# with three features each, an array of shape (3, 3, 3). What happens?
#
# - **a** an error
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
# that differ. attnlib's functions do both, and when shapes do not fit, they say which rule is broken:

# %%
try:
    al.scaled_dot_product_attention(np.ones((2, 3)), np.ones((5, 4)), np.ones((5, 2)))
except al.ShapeError as error:
    print(fill(str(error), 88))

# %% [markdown] tags=["predict"]
# ## What a longer text costs
#
# **Predict.** A text grows from 1,000 tokens to 10,000. How many times as many multiplications does the attention of one head
# take: 10, 100, or something between? And how many times as many bytes does its map of weights take? Take the head of notebook
# 00: $d_{in} = 384$, $d_k = d_v = 32$.

# %%
d_in, d_k, d_v = 384, 32, 32
n = np.array([10, 100, 1000, 10_000])
projecting = n * d_in * (d_k + d_k + d_v)  # X W_Q, X W_K, X W_V
pairing = n * n * (d_k + d_v)  # Q K^T, weights V
held = 4 * n * n  # one map of weights in float32
for row in zip(n, projecting, pairing, held):
    told = "n = {:6,}   projections {:13,}   pairs {:13,}   weights {:11,} bytes"
    print(told.format(*row))
parts = {"projections": projecting, "pairs": pairing, "weights": held}
for name, count in {**parts, "all products": projecting + pairing}.items():
    times = "  ".join(f"{t:5.1f}" for t in count[1:] / count[:-1])
    print(f"ten times n: {name:<13} times {times}")

# %%
figure, (ax, beside) = plot.subplots(1, 2, figsize=(8, 2.8))
_ = ax.loglog(n, projecting, "o-", label="projections")
_ = ax.loglog(n, pairing, "s--", label="pairs of tokens")
_ = ax.set(xlabel="n, tokens", title="multiplications")
_ = ax.legend()
_ = beside.loglog(n, held, "^:")
_ = beside.set(xlabel="n, tokens", title="bytes of the weights")
print(
    "pairs cost as much as the projections at n =",
    d_in * (2 * d_k + d_v) // (d_k + d_v),
)

# %% [markdown] tags=["predict"]
# The projections treat each token by itself, so they grow like $n$. Scores and weights have an entry for each *pair* of tokens,
# so they grow like $n^2$. Below 576 tokens the projections cost more, above it the pairs; from 1,000 tokens to 10,000 all
# multiplications together become 67 times as many. At 10,000 tokens one map takes 400 MB. But the bytes need not be there: a
# program can make a map block by block and never hold all of it, and notebook 12 does. MiniLM itself reads 512 tokens at most.
# Only one head's attention is counted here; the rest of the layer is left out.
#
# ## See it · What changes its size with $d_k$
#
# The head of MiniLM once more from notebook 01, with four tokens of its sentence, so that each number has room. (Of the values
# only the first six of 32 features are shown. And the same scores are divided among four keys in place of eleven, so each gets
# more: "bank" takes 0.98 from "river" here, 0.71 in notebook 01.) The slider keeps the first $d_k$ features of each
# query and key.
#
# **Predict.** Six matrices stand in the picture besides the output: $Q$, $K^T$, scores, scaled scores, weights, $V$. Which of
# them change their size with $d_k$? Does the output?

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

# %%
at_2, at_8 = call_at(2), call_at(8)
for name in ("query", "key", "scores", "scaled_scores", "weights", "value", "output"):
    small, large = getattr(at_2, name), getattr(at_8, name)
    print(f"{name:<13} at d_k = 2: {small.shape}   at d_k = 8: {large.shape}")
print(f"at d_k = 32 bank takes from river: {call_at(32).weights[2, 3]:.2f} (four keys)")

# %% [markdown]
# Only $Q$ and $K^T$ change. The product sums $d_k$ away, so a score is one number however long the vectors are, and the maps stay
# $n$ by $n$; the output takes its width from $V$. The shape of a map or of an output does not tell how large $d_k$ was.

# %% [markdown] tags=["exercise"]
# ### Exercise 2.3 · Attention
#
# **Goal.** The whole formula, from a blank function. *11 minutes, hard.*
#
# `my_attention(query, key, value)` returns $(..., n_q, d_v)$. You may use `al.softmax`. attnlib's function takes a mask as well;
# notebook 05 adds it.


# %%
def my_attention(query, key, value):
    return ...  # your code


# %%
verdict = check.scaled_dot_product_attention(my_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_attention(query, key, value):
#     scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])  # (..., n_q, n_k)
#     return al.softmax(scaled) @ value  # (..., n_q, d_v)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 2.4 · A test with one hole
#
# **Goal.** Design an example that catches three mistakes and lets the fourth through. *10 minutes, hard.*
#
# Most examples catch all four, without anybody having thought. To leave a hole for exactly one, you must know what makes it
# show. Choose $Q$ $(n, d_k)$, $K$ $(n, d_k)$ and $V$ $(n, d_v)$, small numbers of your own, with as many queries as keys
# (three are enough), and hand in the three as a list. Each of these must move some number of the output by 0.01 or more:
#
# - $Q$ and $K$ swapped,
# - no scale,
# - divided by $\sqrt{d_v}$ in place of $\sqrt{d_k}$.
#
# But a softmax over the queries must move none by as much.

# %%
my_example = None  # [Q, K, V], each a list of rows

# %%
verdict = check.example_that_tells(my_example)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # One of many: n = d_k = 3, d_v = 1. Token 0 prefers 1, 1 prefers 2, and 2 prefers 0. Each row
# # and each column of scores holds 0, 0, 2: equal sums, and yet not symmetric.
# my_example = [[[2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[1], [0], [3]]]
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Make three mistakes in your function, one at a time: no scale; `K.T`; softmax over `axis=0`. Does the verdict name each?
# 2. Shuffle the rows of `K3` and `V3` by the same permutation. Which output numbers change?
#
# *Answers.* 1: each of them. 2: none, keys carry no order.
#
# **Remember.** Attention is $QK^T$, scale, softmax over keys, times $V$. Subtract the row maximum before `exp`. Count
# axes from the end, and test with an example that is not symmetric and whose sizes differ. Next: [03 scaling](03_scaling.ipynb).

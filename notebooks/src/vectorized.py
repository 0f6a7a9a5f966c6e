# %% [markdown]
# # [[vectorized]] · The same numbers as matrix products
#
# **Question.** By hand, you took a dot product for each query and each key of *Anna saw Ben; she*, one after the other. Which
# matrix products do all of it at once, and what breaks if you pick the wrong axis? *20 minutes, and 33 for exercises.*

# %% jupyter={"source_hidden": true}
import math

import numpy as np

import attnlib as al
from attncourse import check, mine, predict
from attnlib import live, plot
from attnlib.colours import KEY, colour_table
from attnlib.examples import ASYMMETRIC, IDENTITY, KARIM, NAMES, SENTENCE, W_O, WORDS

np.set_printoptions(precision=4, suppress=True)


# %% jupyter={"source_hidden": true}
live.one_row(SENTENCE, W_O, query=3, line="who", **NAMES)

# %% [markdown]
# This is one row of four, as you computed it by hand. Now come all four at once.

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[by_hand]])* Why is there one matrix for queries and another for keys?
#
# - **a** a dot product needs two different vectors
# - **b** what a token looks for is not how it is found
# - **c** so that no score becomes negative
#
# **2.** *(notebook [[start_here]])* The column of *When* in a map of weights sums to 9.7. What does that say?
#
# - **a** many queries take from *When*
# - **b** somebody made a mistake, it must be 1
# - **c** *When* divides more than the others
#
# **3.** *(notebook [[start_here]])* What does $d_k$ count?
#
# - **a** the keys
# - **b** the features of a token
# - **c** the features of a query and of a key

# %%
predict.before_vectorized(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## Four lines
#
# `X @ W_Q` multiplies every token by $W_Q$: row $i$ of the result is token $i$ times $W_Q$. Shapes read like dominoes.
# $(n, d_{in})$ by $(d_{in}, d_k)$ gives $(n, d_k)$, because the inner axes must match, and disappear.

# %% tags=["slide-code"] says="$(n, d_{in})$ by"
X, W_Q, W_K, W_V = SENTENCE
Q = X @ W_Q  # (n, d_k)
K = X @ W_K  # (n, d_k)
V = X @ W_V  # (n, d_v)
print("X", X.shape, " Q", Q.shape, " K", K.shape, " V", V.shape)
print("Q of she:", Q[3], "  K of Anna:", K[0], "  V of Anna:", V[0])

# %% [markdown]
# All dot products of queries with keys are one product, too, $Q K^T$. The transpose turns each key into a column, so that
# $d_k$ becomes the inner axis of both. So attention is one formula, and four lines of code:
#
# $$\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$$

# %% tags=["slide-code"] says=["So attention is one", "The last row of"]
scaled = Q @ K.T / np.sqrt(K.shape[1])  # (n_q, n_k), scaled scores
e = np.exp(scaled)
weights = e / e.sum(axis=1, keepdims=True)  # keepdims: a column of sums
output = weights @ V  # (n_q, d_v)
print(weights)
print(output)

# %% [markdown]
# The last row of each belongs to *she*: she takes 0.646 from Anna and gets 0.885 as *who*, as by hand. Here is the whole call
# in loops once more. Does it give the same output?


# %% jupyter={"source_hidden": true}
def by_loops(Q, K, V):  # one query after the other, as by hand
    rows = []
    for q in Q:
        dots = [sum(a * b for a, b in zip(q, key)) for key in K]
        e = [math.exp(dot / math.sqrt(len(q))) for dot in dots]
        mixed = [sum(p * v for p, v in zip(e, column)) for column in zip(*V)]
        rows.append([m / sum(e) for m in mixed])
    return np.array(rows)


largest = np.abs(output - by_loops(Q, K, V)).max()
print(f"largest difference to the loops: {largest:.12f}")

# %% [markdown]
# ## See it · What changes its size with $d_k$
#
# Here is the whole call. $W_Q$ makes $Q$ from the tokens $X$; $W_K$ and $W_V$ are not drawn. Each score is the row at its
# left times the column above it, and so is each number of the output. Click a cell to see how.
#
# Unlike in notebook [[start_here]], the slider removes features, and the divisor follows. It keeps the first $d_k$ features of each query
# and key: *name*, then *female*, then *verb*.


# %% jupyter={"source_hidden": true}
def call_at(d_k):  # with the first d_k features of each query and key
    query, key, value = SENTENCE.project()
    return al.attention_trace(query[:, :d_k], key[:, :d_k], value)


whole_call = live.flow(
    call_at,
    x=SENTENCE.x,
    queries=WORDS,
    query=3,
    features=NAMES["given"],
    d_k=[1, 2, 3],
)
whole_call

# %% [markdown] tags=["predict"]
# **Predict.** At $d_k$ = 1, which matrices have another size? And whom does *she* find?

# %% tags=["slide"]
for d_k in (3, 2, 1):
    call = call_at(d_k)
    print(f"d_k = {d_k}: Q {call.query.shape}, K^T {call.key.T.shape},", end=" ")
    print(f"scores {call.scores.shape}, output {call.output.shape};", end=" ")
    print("she: Anna {:.3f}, Ben {:.3f}".format(*call.weights[3, [0, 2]]))

# %% [markdown]
# Only $Q$ and $K^T$ change. A score adds up $d_k$ products to one number, so the map of scores keeps its shape. From 3 to 2
# only the divisor changes for *she*, because the *verb* of her query is 0. So Anna rises from 0.646 to 0.718. With *name* alone,
# *she* cannot tell Anna from Ben.
#
# ## Would a test notice your mistake?
#
# Suppose you had tested the four lines on other numbers. `KARIM` has the three tokens of Karim's *Illustrated:
# Self-Attention* ([source](../REFERENCES.md#s3)). `IDENTITY`, from a problem of Deep-ML ([source](../REFERENCES.md#s1)), has two
# tokens, and its $X$, $W_Q$ and $W_K$ are identity matrices. Here are the scores of these two examples,
# first `KARIM`, then `IDENTITY`.

# %%
for example in (KARIM, IDENTITY):
    test_Q, test_K, _ = example.project()
    print(test_Q @ test_K.T)

# %% [markdown] tags=["predict"]
# **Predict.** You swap $Q$ and $K$ by mistake, and compare your output with the right one. In which examples does it differ?
#
# - **a** in the sentence, in `KARIM` and in `IDENTITY`
# - **b** in the sentence and in `KARIM`
# - **c** in the sentence alone
# - **d** in none, because a dot product is the same both ways

# %%
guess_symmetric = None  # "a", "b", "c" or "d"


# %%
def attention(Q, K, V, axis=1, d=None):  # the same, with room for mistakes
    scaled = Q @ K.T / np.sqrt(d or K.shape[1])  # (n_q, n_k)
    weights = np.exp(scaled) / np.exp(scaled).sum(axis=axis, keepdims=True)
    return weights @ V  # (n_q, d_v)


# %% jupyter={"source_hidden": true} tags=["slide"] says="An example does not"
def off(Q, K, V):  # how far four mistakes move the output
    wrong = [attention(K, Q, V), attention(Q, K, V, axis=0)]
    wrong += [attention(Q, K, V, d=1), attention(Q, K, V, d=V.shape[1])]
    return [np.abs(w - attention(Q, K, V)).max() for w in wrong]


names = ["Q, K swapped", "softmax over queries", "no scale", "root of d_v"]
examples = {"sentence": SENTENCE, "KARIM": KARIM, "IDENTITY": IDENTITY}
examples["ASYMMETRIC"] = ASYMMETRIC
for example, numbers in examples.items():
    moved = off(*numbers.project())
    missed = [name for name, by in zip(names, moved) if by < 0.0001]
    print(f"{example:10} does not notice: {'; '.join(missed) or 'nothing'}")

# %%
predict.symmetric(guess_symmetric)

# %% [markdown]
# Besides the swap we tried a softmax down the columns, no division, and a division by $\sqrt{d_v}$. An example does not notice a
# mistake that leaves its output as it is. The scores of `KARIM` are
# symmetric by accident: mirrored at the diagonal, 4 meets 4, 4 meets 4, and 12 meets 12. Swapping $Q$ and $K$ only transposes them. And $d_v = d_k$, so the
# root of $d_v$ is the right root. In `IDENTITY`, all rows and all columns of exponentials have the same sum, so even a softmax
# over the wrong axis leaves no trace.
#
# The sentence catches all four. So does `ASYMMETRIC`, four tokens without a pattern. Neat examples hide mistakes, and so do small
# numbers: `np.random.rand` mostly misses one. So ask of every test which mistake it would catch.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Do the matrices of `KARIM` force its scores to be symmetric? The scores are $X M X^T$ with $M = W_Q W_K^T$. $M$ is not
# symmetric, and one changed number of one token ends the symmetry of the scores. Of 2,000 normal examples (variance 1) with the
# sizes of the sentence, all catch all four mistakes: each moves some number of the output by 0.01 or more. With $n$ = 3, $d_k$ = 2
# and $d_v$ = 1 it is 1,952. Numbers from 0 to 1, as of `rand`, lie closer together: 364 of 2,000.
#
# </details>

# %% [markdown] tags=["predict"]
# ## Break it · Softmax of large scores
#
# The largest float is about $10^{308}$, or $e^{709}$.
#
# **Predict.** Multiply $Q$ and $K$ of `IDENTITY` by 32. The largest
# scaled score becomes $32^2 / \sqrt 2 \approx 724$. What comes out?

# %%
Q2, K2, V2 = IDENTITY.project()
for factor in (1, 31.6, 32):
    large = factor * Q2, factor * K2, V2
    with np.errstate(over="ignore", invalid="ignore"):
        print(f"times {factor:<5} plain softmax: {attention(*large)[0]}", end="   ")
    print(f"attnlib: {al.scaled_dot_product_attention(*large)[0]}")

# %% [markdown]
# At 31.6 the largest scaled score is 706, and $e^{706}$ is still a float. At 32, $e^{724}$ becomes `inf`, and `inf` divided by a sum
# that is `inf` is `nan`, *not a number*. attnlib's softmax survives both.

# %% [markdown] tags=["exercise"]
# ### Exercise [[softmax]] · Softmax
#
# **Goal.** One line that keeps the softmax below from overflowing. *3 minutes, easy.*
#
# $e^{s_j} / \sum_l e^{s_l}$ does not change if you subtract the same number $m$ from every score, because the factor $e^{-m}$
# cancels. Which $m$ makes sure that no exponent is above 0? Each row needs an $m$ of its own. With `axis=0` it is each column.


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
# Real inputs come in batches: several sequences at once, $(b, n, d)$. `A @ B` multiplies the last two axes as matrices, once for
# every sequence, so you need no loop. But three habits from two dimensions break. The first is `.T`. Here are the keys of two
# sequences, three tokens with four features each. The keys of the second sequence are pale. Then come
# `np.swapaxes(K, -1, -2)` and `K.T`.


# %% jupyter={"source_hidden": true}
def blocks(ax, x, title):  # the last two axes are matrices, side by side
    gap = np.full((x.shape[1], 1), np.nan)
    row = np.hstack([part for matrix in x for part in (matrix, gap)])[:, :-1]
    fill = colour_table(KEY)[np.where(row < x.size / 2, 255, 60)]
    _ = ax.imshow(np.dstack([fill, 255 * (row >= 0)]).astype(np.uint8))
    for i, j in np.argwhere(row >= 0):
        _ = ax.text(
            j, i, f"{row[i, j]:.0f}", ha="center", va="center", size=11, gid="value"
        )
    _ = ax.set(xticks=[], yticks=[], frame_on=False)
    _ = ax.set_title(f"{title} {x.shape}")


# %% jupyter={"source_hidden": true}
numbered = np.arange(24).reshape(2, 3, 4)  # (b, n_k, d_k)
options = {"width_ratios": [9, 7, 11], "gridspec_kw": {"wspace": 0.12}}
_, axes = plot.subplots(1, 3, figsize=(7.8, 2.1), **options)
blocks(axes[0], numbered, "K")
blocks(axes[1], np.swapaxes(numbered, -1, -2), "swapaxes")
blocks(axes[2], numbered.T, "K.T")

# %% [markdown] tags=["exercise"]
# ### Exercise [[attention_scores]] · Scores
#
# **Goal.** The body of $Q K^T$, for one sequence and for a batch. *4 minutes, medium.*
#
# `my_attention_scores(query, key)` takes $(..., n_q, d_k)$ and $(..., n_k, d_k)$ and returns $(..., n_q, n_k)$, not scaled. The
# dots stand for axes in front, such as $b$, or for none.


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
# ## Two more habits that break
#
# The second habit is `np.dot`. In two dimensions it agrees with `@`. In a batch it pairs every sequence with every other.

# %%
rng = np.random.default_rng(0)
batch_Q = rng.normal(size=(2, 3, 4))  # (b, n_q, d_k)
batch_K = rng.normal(size=(2, 5, 4))  # (b, n_k, d_k)
turned = np.swapaxes(batch_K, -1, -2)  # (b, d_k, n_k)
print("2-D equal:", np.array_equal(np.dot(Q, K.T), Q @ K.T))
print("3-D  @:  ", (batch_Q @ turned).shape)
print("3-D  dot:", np.dot(batch_Q, turned).shape)

# %% [markdown] tags=["predict"]
# The third habit is to count axes from the front. In two dimensions `K.shape[1]` is $d_k$, and `axis=1` runs over the keys. In a
# batch neither is true.
#
# **Predict.** The function `attention` above contains `K.T`, `K.shape[1]` and `axis=1`. We give it three sequences of three tokens
# with three features, an array of shape (3, 3, 3). What happens?
#
# - **a** it runs, and the result is wrong
# - **b** it runs, and the result is right
# - **c** an error

# %%
guess_cube = None  # "a", "b" or "c"

# %%
cube = np.random.default_rng(0).normal(size=(3, 3, 3))
wrong = attention(cube, cube, cube)
right = al.scaled_dot_product_attention(cube, cube, cube)
off_by = np.abs(wrong - right).max()
print(f"shapes: {wrong.shape} {right.shape}   largest difference: {off_by:.2f}")

# %%
predict.cube(guess_cube)

# %% [markdown]
# Count axes from the end, and test with sizes that all differ.

# %% [markdown] tags=["exercise"]
# ### Exercise [[scaled_dot_product_attention]] · Attention
#
# **Goal.** The whole formula, from a blank function. *11 minutes, hard.*
#
# `my_attention(query, key, value)` returns $(..., n_q, d_v)$, for one sequence and for batches. Use NumPy only, with your softmax
# of [[softmax]] or `al.softmax`.


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

# %% [markdown]
# ## Keep it
#
# Notebook [[masks]] builds on the softmax and gives the attention a mask. When their checks say ✓, the next cells write them to the folder `mine` beside the
# notebooks.

# %%
mine.keep(my_softmax)

# %%
mine.keep(my_attention)

# %% [markdown]
# <details><summary><b>What does a longer text cost?</b></summary>
#
# The projections treat each token by itself, so their multiplications grow like $n$. Scores and weights have a number for each
# *pair* of tokens, so they grow like $n^2$. Take the head of notebook [[start_here]], with $d_{in}$ = 576 and $d_k$ = $d_v$ = 64. Up to 864
# tokens the projections cost more, and then the pairs. From 1,000 tokens to 10,000, all multiplications together become 58
# times as many. A map of 10,000 tokens in float32 takes 400 MB. The cell is under *Appendix*.
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Make three mistakes in your function, one at a time: no scale; `K.T`; softmax over `axis=0`. Does the verdict name each?
# 2. Give `attention` the rows of `K` and `V` in another order, the same for both. Which numbers of the output change?
#
# <details><summary>Answers</summary>
#
# 1: yes, each. 2: none, because attention does not know the order of the keys.
#
# </details>

# %% [markdown] tags=["remember"]
# **Remember.** Attention is $\text{softmax}(QK^T / \sqrt{d_k})\,V$: compare, scale, softmax over the keys, mix the values. Subtract
# the row maximum before `exp`. Count axes from the end, and ask of every test which mistake it would catch. Next: [[[scaling]] scaling]([[scaling.ipynb]]).
# An optional exercise, [[example_that_tells]], stands after *Appendix*.

# %% [markdown]
# ## Appendix: checks
#
# The numbers of the two texts, and those of the fold-out boxes: is the symmetry of `KARIM` forced, do random examples catch all four
# mistakes, and what does a longer text cost?

# %%
plain = al.attention_trace(*KARIM.project(), scale=1)
with np.printoptions(suppress=False):  # e-06 stands for 10^-6
    print("KARIM, not divided", plain.weights, sep="\n")
with np.printoptions(precision=6):
    print(plain.output)
    print("divided", attention(*KARIM.project()), sep="\n")
with np.printoptions(precision=7):
    print("IDENTITY", attention(*IDENTITY.project()), sep="\n")

# %%
M = KARIM.W_Q @ KARIM.W_K.T  # (d_in, d_in), scores = X M X^T
other = KARIM.x.copy()
other[2, 3] = 2  # it was 1
for name, x in (("as it is", KARIM.x), ("one number changed", other)):
    s = x @ M @ x.T
    print(f"{name}: scores differ from their transpose by {np.abs(s - s.T).max():.0f}")
print(f"W_Q W_K^T differs from its transpose by {np.abs(M - M.T).max():.0f}")

# %%
tried = (("normal", 4, 3, 2), ("normal", 3, 2, 1), ("random", 4, 3, 2))
for kind, n, d_k, d_v in tried:  # "random": from 0 to 1
    draw = getattr(np.random.default_rng(0), kind)
    sizes = ((n, d_k), (n, d_k), (n, d_v))
    draws = [off(*(draw(size=size) for size in sizes)) for _ in range(2000)]
    print(f"{kind}, n = {n}, d_k = {d_k}, d_v = {d_v}:", end=" ")
    print(sum(min(draw) >= 0.01 for draw in draws), "of 2000 catch all four")

# %%
d_in, d_k, d_v = 576, 64, 64
n = np.array([1000, 10_000])
projecting = n * d_in * (d_k + d_k + d_v)  # X W_Q, X W_K, X W_V
pairing = n * n * (d_k + d_v)  # Q K^T, weights V
total = projecting + pairing
print(f"all products: {total[1] / total[0]:.0f} times as many")
print("equal at n =", d_in * (d_k + d_k + d_v) // (d_k + d_v))
print(f"a map of 10,000 tokens in float32: {4 * n[1] ** 2 / 1e6:.0f} MB")

# %% [markdown] tags=["exercise"]
# ### Exercise [[example_that_tells]] · A test with one hole
#
# **Goal.** Design an example that catches three mistakes and lets the fourth through. *15 minutes, hard.*
#
# Almost any random example catches all four mistakes above. To leave a hole for exactly one, you must know what makes it show.
# Choose $Q$ $(n, d_k)$, $K$ $(n, d_k)$ and $V$ $(n, d_v)$ with small numbers. Three tokens are enough. Hand in the list [$Q$, $K$, $V$]. Each of these mistakes must move some number of the output by 0.01 or more:
#
# - $Q$ and $K$ swapped,
# - no scale,
# - divided by $\sqrt{d_v}$ in place of $\sqrt{d_k}$.
#
# But a softmax over the queries must change no number by 0.01 or more.

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

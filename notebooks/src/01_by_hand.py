# %% [markdown]
# # 01 · Attention by hand
#
# **Question.** Three tokens go into self-attention and three vectors come out. What happened in between, number by
# number? This notebook uses Python's own numbers and lists, so that nothing is hidden. *35 minutes.*
#
# | symbol | meaning | here |
# |---|---|---|
# | $n$ | number of tokens | 3 |
# | $d_{in}$ | features of a token | 4 |
# | $d_k$ | features of a query and of a key | 3 |
# | $d_v$ | features of a value | 3 |

# %%
import math
import random

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import BY_HAND

# %% [markdown]
# ## Step 1 · The inputs
#
# `x` holds three tokens, one per row. Three weight matrices turn a token into a **query**, a **key** and a **value**.
# In a trained model these matrices are learned; they start as small random numbers (notebook 04 measures them).
# Here they are small whole numbers, so that you can follow with pencil and paper.

# %%
x = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]  # (n, d_in)
W_Q = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]  # (d_in, d_k)
W_K = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]  # (d_in, d_k)
W_V = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]  # (d_in, d_v)

# %% [markdown]
# Think of a search. The **query** is what a token looks for. The **key** is the label under which a token can be
# found. The **value** is the content it hands over when found. A database returns the one record whose key matches;
# attention returns a mixture of all values, weighted by how well their keys match.
#
# ## Step 2 · One key, then all keys
#
# A token times a matrix: multiply each feature with its row of the matrix and add up.


# %%
def vector_times_matrix(vector, matrix):
    columns = len(matrix[0])
    return [sum(v * row[c] for v, row in zip(vector, matrix)) for c in range(columns)]


k1 = vector_times_matrix(x[0], W_K)
print("k1 =", k1, end="   ")
last = 1 * 1 + 0 * 0 + 1 * 0 + 0 * 0
print("for example its last entry: 1*1 + 0*0 + 1*0 + 0*0 =", last)

# %% [markdown]
# Five exercises stand along the way. Write your answer in the first cell, then run it and the cell below it. The verdict
# names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call goes one step further.
# The solution is folded below. (The + of the toolbar makes a cell.)

# %% [markdown]
# ### Exercise 1.1 · A key
#
# **Goal.** Compute $k_2$, the key of the second token. *3 minutes, easy.*
#
# Take `x[1]`, `[0, 2, 0, 2]`, and `W_K`. Write three numbers as a list: `my_k2 = [1, 2, 3]`.

# %%
my_k2 = None  # a list of three numbers

# %%
verdict = check.k2(my_k2)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_k2 = vector_times_matrix(x[1], W_K)  # [2 * 1 + 2 * 1, 2 * 1 + 2 * 1, 0] = [4, 4, 0]
# ```
#
# </details>

# %%
K = [vector_times_matrix(token, W_K) for token in x]  # (n, d_k)
for i, key in enumerate(K, start=1):
    print(f"k{i} =", key)

# %% [markdown]
# Queries and values come from the same tokens through the other two matrices.

# %%
Q = [vector_times_matrix(token, W_Q) for token in x]  # (n, d_k)
V = [vector_times_matrix(token, W_V) for token in x]  # (n, d_v)
print("Q =", Q)
print("V =", V)

# %% [markdown]
# ## Step 3 · Scores: one query against every key
#
# The score of query $i$ and key $j$ is their dot product, $q_i \cdot k_j = \sum_c q_{ic}\, k_{jc}$. A feature in which both
# have the same sign adds to it, one with opposite signs takes away, and a longer query or key stretches it. Both need the
# same number of features: a query must have as many as a key, $d_q = d_k$. The value is not part of the product, so $d_v$ is
# free.


# %%
def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


print("same signs:", dot([2, -1], [2, -1]), "  opposite signs:", dot([2, -1], [-2, 1]))
print("one of each:", dot([2, -1], [1, 2]), "  a longer key:", dot([2, -1], [20, -10]))

# %%
for j, key in enumerate(K, start=1):
    terms = " + ".join(f"{p}*{q}" for p, q in zip(Q[0], key))
    print(f"q1.k{j} = {terms} = {dot(Q[0], key)}")

# %% [markdown]
# ### Exercise 1.2 · A row of scores
#
# **Goal.** Compute the scores of query 2 against the three keys. *3 minutes, easy.*
#
# $q_2$ = `Q[1]` = [2, 2, 2]. Take its dot product with `K[0]`, `K[1]` and `K[2]`. Do not scale.

# %%
my_scores_2 = None  # a list of three numbers

# %%
verdict = check.scores_2(my_scores_2)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_scores_2 = [dot(Q[1], key) for key in K]  # [4, 16, 12]
# ```
#
# </details>

# %%
scores = [[dot(q, k) for k in K] for q in Q]  # (n_q, n_k)
for i, row in enumerate(scores, start=1):
    print(f"scores of query {i}:", row)

# %% [markdown]
# Row $i$ is token $i$ asking about every token.
#
# ## Step 4 · Softmax: from scores to weights
#
# Scores can be any number. Weights must be positive and sum to 1. Softmax does it: take $e^{s_j}$ of each score, then
# divide by their sum,
#
# $$w_j = \frac{e^{s_j}}{\sum_k e^{s_k}}.$$
#
# **Predict.** The scores of query 1 are 2, 4, 4. What are its weights?
#
# - **a** (0.2, 0.4, 0.4), each score divided by the sum
# - **b** (0, 0.5, 0.5), the small one gets nothing
# - **c** between the two: the first is small, and not 0

# %%
guess_softmax = None  # "a", "b" or "c"

# %% [markdown]
# ### Exercise 1.3 · A row of weights
#
# **Goal.** Compute the weights of query 1 with four digits. *4 minutes, easy.*
#
# Take `math.exp` of the scores 2, 4, 4 and divide each by the sum of the three.

# %%
my_weights_1 = None  # a list of three numbers

# %%
verdict = check.weights_1(my_weights_1)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# e = [math.exp(s) for s in scores[0]]
# my_weights_1 = [value / sum(e) for value in e]
# ```
#
# </details>

# %%
exponentials = [math.exp(s) for s in scores[0]]
total = sum(exponentials)
for s, e in zip(scores[0], exponentials):
    print(f"exp({s}) = {e:8.4f}   weight = {e:.4f} / {total:.4f} = {e / total:.4e}")

# %%
predict.softmax_by_hand(guess_softmax)

# %% [markdown]
# Neither **a** nor **b**. Softmax compares by **differences**: a score that is 2 larger gets $e^2 \approx 7.4$
# times the weight.


# %%
def softmax(row):
    exponentials = [math.exp(s) for s in row]
    return [e / sum(exponentials) for e in exponentials]


weights = [softmax(row) for row in scores]  # (n_q, n_k)
for row in weights:
    print("  ".join(f"{w:.4e}" for w in row), "  sum:", round(sum(row), 12))

# %%
tokens = ["token 1", "token 2", "token 3"]
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, title="weights, not scaled", places=4
)

# %% [markdown]
# Query 2 gives 0.98 of its weight to a single key.
#
# ## Step 5 · The output: a weighted sum of values
#
# The output for query 1 is $w_{11} v_1 + w_{12} v_2 + w_{13} v_3$. First weight each value, then add.

# %% [markdown]
# ### Exercise 1.4 · An output
#
# **Goal.** Compute the output of query 1 from `weights[0]` and `V`. *4 minutes, medium.*
#
# Three numbers. Use the weights as they are, not rounded.

# %%
my_output_1 = None  # a list of three numbers

# %%
verdict = check.output_1(my_output_1)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_output_1 = [sum(w * value[c] for w, value in zip(weights[0], V)) for c in range(3)]
# ```
#
# </details>

# %%
weighted = [[w * v for v in value] for w, value in zip(weights[0], V)]  # (n_k, d_v)
for j, row in enumerate(weighted, start=1):
    print(f"{weights[0][j - 1]:.4f} * v{j} = ", [round(v, 4) for v in row])
output_1 = [sum(column) for column in zip(*weighted)]
print("output 1    = ", [round(v, 6) for v in output_1])


# %%
def weighted_sum(row, V):
    return [sum(w * value[c] for w, value in zip(row, V)) for c in range(len(V[0]))]


output = [weighted_sum(row, V) for row in weights]  # (n_q, d_v)
for i, row in enumerate(output, start=1):
    print(f"output {i} =", "  ".join(f"{v:.6f}" for v in row))

# %% [markdown]
# ## Break it · What rounding does
#
# The text this example comes from (Karim 2019, *Illustrated: Self-Attention*, [S3](../REFERENCES.md#s3)) rounds the
# weights before it goes on: softmax(2, 4, 4) becomes (0, 0.5, 0.5). **Predict.** How far off is the worst output number?
#
# - **a** 0.001
# - **b** 0.03
# - **c** 0.3

# %%
guess_rounding = None  # "a", "b" or "c"

# %%
rounded = [[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]]
output_rounded = [weighted_sum(row, V) for row in rounded]
print("with rounded weights:", [[round(v, 4) for v in row] for row in output_rounded])
errors = [abs(a - b) for r, o in zip(output_rounded, output) for a, b in zip(r, o)]
print(f"largest error: {max(errors):.3f}")

# %%
predict.rounding(guess_rounding)

# %% [markdown]
# The weight 0.0634 that was rounded to 0 belongs to a value, and the value does not become 0. Round when you print,
# never before you go on.
#
# ## Step 6 · Dividing by $\sqrt{d_k}$
#
# The attention of [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) divides scores by $\sqrt{d_k}$ before
# softmax: *scaled* dot-product attention.
# Here $\sqrt{d_k} = \sqrt{3} \approx 1.73$.

# %% [markdown]
# ### Exercise 1.5 · A scaled output
#
# **Goal.** Compute the output of query 1 with scaled scores. *5 minutes, medium.*
#
# Divide the scores 2, 4, 4 by $\sqrt 3$, then go on as before. You may use `softmax` and `weighted_sum` of this notebook.

# %%
my_scaled_output_1 = None  # a list of three numbers

# %%
verdict = check.scaled_output_1(my_scaled_output_1)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_scaled_output_1 = weighted_sum(softmax([s / math.sqrt(3) for s in scores[0]]), V)
# ```
#
# </details>

# %%
d_k = len(K[0])
scaled = [[s / math.sqrt(d_k) for s in row] for row in scores]  # (n_q, n_k)
weights_scaled = [softmax(row) for row in scaled]
output_scaled = [weighted_sum(row, V) for row in weights_scaled]
print("weights of query 1:", "  ".join(f"{w:.6f}" for w in weights_scaled[0]))
for i, row in enumerate(output_scaled, start=1):
    print(f"output {i} =", "  ".join(f"{v:.6f}" for v in row))

# %% [markdown]
# These three rows are what every library returns for this example. attnlib keeps `x` and the three matrices in
# `examples.BY_HAND`; its own function agrees:

# %%
by_library = al.scaled_dot_product_attention(*BY_HAND.project())  # (n_q, d_v)
rows = zip(by_library.tolist(), output_scaled)
difference = max(abs(a - b) for r, o in rows for a, b in zip(r, o))
print("equal to 1e-12:", difference < 1e-12)

# %% [markdown]
# ## See it · If the vectors were longer
#
# Here are one query and three keys with 128 entries each, drawn at random with mean 0 and variance 1. The slider takes the
# first $d_k$ of them. A dot product adds up $d_k$ terms, and sums of $d_k$ independent terms spread like $\sqrt{d_k}$
# (notebook 03 derives it).
#
# **Predict.** What does softmax do to the three scores at $d_k = 128$, without scaling?

# %%
r = random.Random(2)
longer = [[r.gauss(0, 1) for _ in range(128)] for _ in range(4)]  # q, k1, k2, k3


def row_at(d_k, vectors=longer):
    q, *keys = [vector[:d_k] for vector in vectors]
    row = [dot(q, k) for k in keys]
    divided = [s / math.sqrt(d_k) for s in row]
    return {"not scaled": [softmax(row)], "divided by sqrt(d_k)": [softmax(divided)]}


names = ["key 1", "key 2", "key 3"]
view = live.weights_view(row_at, d_k=(1, 128), still=(3, 16, 128), keys=names)
view

# %% [markdown]
# One draw may be lucky. The mean of the largest weight over 500 draws:

# %%
r = random.Random(3)
draws = [[[r.gauss(0, 1) for _ in range(128)] for _ in range(4)] for _ in range(500)]
for d_k in (3, 16, 128):
    rows = [row_at(d_k, vectors) for vectors in draws]
    for name in rows[0]:
        mean = sum(max(row[name][0]) for row in rows) / len(rows)
        print(f"d_k = {d_k:3d}  {name:<20}  largest weight {mean:.2f}")

# %% [markdown]
# Without scaling the largest weight grows with $d_k$, until one key takes nearly everything. Divided by $\sqrt{d_k}$ the
# weights still change with each entry, but the largest keeps its size, near 0.6.
#
# ## Other score functions
#
# The dot product is one way to compare a query with a key. Before it became the standard, *additive* attention was
# common ([Bahdanau et al. 2014](../REFERENCES.md#bahdanau-2014)): a small network,
# $s = u \cdot \tanh(W_1 q + W_2 k)$. All three on one pair of vectors,
# with $W_1 = W_2$ the identity and $u$ all ones:

# %%
q, k = Q[0], K[1]
print("dot product:       ", dot(q, k))
print("scaled dot product:", round(dot(q, k) / math.sqrt(len(k)), 4))
print("additive:          ", round(sum(math.tanh(a + b) for a, b in zip(q, k)), 4))

# %% [markdown]
# The dot product needs no weights of its own and is one matrix product for all pairs. The next notebook uses that.
#
# ## Try it
#
# 1. Change `x[2]` to `[9, 0, 9, 0]` and run all. Which outputs change? (All: token 3 is also a key and a value.)
# 2. Give `W_V` five columns instead of three. What else must change? (Nothing: $d_v$ is free.)
# 3. Give `W_Q` a fourth column. Which line complains, and why? (`dot`: $d_q$ must equal $d_k$.)
#
# **Remember.** Scores compare queries with keys. Softmax turns a row of scores into weights that sum to 1. The output
# is a weighted sum of values, one per query. BERT, RoBERTa, ViT and Swin are all
# built on this ([sources](../REFERENCES.md#models)).
# Next: [02 vectorized](02_vectorized.ipynb).

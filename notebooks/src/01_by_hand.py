# %% [markdown]
# # 01 · Attention by hand
#
# **Question.** Three vectors go into attention and three come out, and each has taken something from the others. What
# happened in between, number by number? This notebook uses Python's own numbers and lists, so that nothing is hidden.
# *35 minutes.*
#
# | symbol | meaning | in the worked example |
# |---|---|---|
# | $n$ | number of tokens | 3 |
# | $n_q$, $n_k$ | number of queries and of keys; here each token makes one of each | 3, 3 |
# | $d_{in}$ | features of a token, the numbers of its vector | 4 |
# | $d_k$ | features of a query and of a key | 3 |
# | $d_v$ | features of a value | 3 |

# %%
import math
import random

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict, real_model
from attnlib.examples import BY_HAND

# %% [markdown]
# ## Before you start
#
# Three questions about notebook 00, from memory. Write a letter in place of each `None` and run the cell. Nobody counts.
#
# **1.** *(notebook 00)* In a map of attention weights, what must sum to 1?
#
# - **a** each column
# - **b** each row
# - **c** rows and columns
#
# **2.** *(notebook 00)* You want to know how much *to* takes from *Mary*. Where do you look?
#
# - **a** in the row of *to*, at the column of *Mary*
# - **b** in the row of *Mary*, at the column of *to*
# - **c** in either, they are equal
#
# **3.** *(notebook 00)* The vector of *to* starts alike in two sentences, and comes out pointing to another name. Where does a
# model let a token take something from other tokens?
#
# - **a** where words become vectors
# - **b** in every step of a layer
# - **c** in attention only

# %%
predict.before_01(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## A bank that finds out what it is
#
# Let a vector have two features only: how much a word has to do with nature, and how much with money. A river is all nature,
# money is all money, and "bank" by itself could be either.
#
# How much should "bank" take from a neighbour? The simplest idea: as much as they are alike. The **dot product** measures
# that. Multiply feature by feature and add up. Such a number is called a **score**. Length counts, too: the dot
# product is the cosine times both lengths.

# %%
river, money, bank = [2, 0], [0, 2], [1, 1]  # features: nature, money


def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


print("bank.river =", dot(bank, river), "  bank.bank =", dot(bank, bank))

# %% [markdown]
# In "river bank" the word "bank" has the same score with "river" as with itself. (The 2 of "river" was chosen for that: by
# direction alone, "bank" is more like itself.) Two equal scores, two equal shares: it takes one half of each vector, feature by
# feature.

# %%
mixed = [0.5 * a + 0.5 * b for a, b in zip(river, bank)]
print("bank, next to river:", mixed)

# %% [markdown] tags=["predict"]
# **Predict.** The same word, the same sum, another neighbour: what becomes of "bank" in "money bank"?

# %%
print("bank.money =", dot(bank, money), "  bank.bank =", dot(bank, bank))
mixed_with_money = [0.5 * a + 0.5 * b for a, b in zip(money, bank)]
print("bank, next to money:", mixed_with_money)

# %%
figure, ax = plot.subplots(figsize=(4.2, 3.4))
points = {"river": river, "money": money, "bank": bank}
points |= {"river bank": mixed, "money bank": mixed_with_money}
for name, (nature, cash) in points.items():
    _ = ax.plot(nature, cash, "s" if " " in name else "o", color="gray")
    _ = ax.annotate(name, (nature, cash), (6, 6), textcoords="offset points")
_ = ax.plot([0.5, 1, 1.5], [1.5, 1, 0.5], ":")
_ = ax.set(xlabel="nature", ylabel="money", xlim=(-0.2, 2.6), ylim=(-0.2, 2.4))

# %% [markdown]
# The same vector went in twice, and two vectors came out: one on the side of nature, one on the side of money. Compare, share
# out, mix. That is attention, and nothing in it needed a matrix. How unequal scores are shared out is still open. Until
# step 4 answers it, a function called `softmax` does it for us.
#
# ## Where likeness fails
#
# *Anna sleeps, she ...* Who is "she"? Give each word four features. Three are answers, to "is it a name?", "is it a verb?" and
# "is it a pronoun?": a yes is 2, a no is 0. The fourth is a number that says *who* it is about. Anna is number 5. "She" does not
# know yet.

# %%
words = ["Anna", "sleeps", "she"]
sentence = [[2, 0, 0, 5], [0, 2, 0, 0], [0, 0, 2, 0]]  # name, verb, pronoun, who
she = sentence[2]
for word, vector in zip(words, sentence):
    print(f"she.{word} = {dot(she, vector)}")

# %% [markdown]
# By likeness "she" finds no one but herself. She *is* a pronoun, but she *needs* a name. So two things have to come apart:
#
# - **What I look for is not what I am.** A matrix $W_Q$ turns what a token is into what it looks for: its **query**.
# - **How I am found is not what I hand over.** Anna is found because she is a name, like all names. What "she" needs to get
#   is *who*. So a matrix $W_K$ makes the **key**, under which a token is found, and a matrix $W_V$ the **value**, which it
#   hands over.
#
# Think of a search. A database returns the one record whose key matches the query. Attention returns a mixture of all
# values, weighted by how well their keys match.
#
# The three matrices in the next cell are set by hand. Each row of a matrix belongs to a feature of the token, each column to a
# feature of what comes out; those of queries and keys are name, verb and pronoun. A token times a matrix is a list of dot
# products, one of the token with each column. "She" is [0, 0, 2, 0], and the first column of $W_Q$ holds 0, 0, 1, 0. So the
# first feature of her query is 0·0 + 0·0 + 2·1 + 0·0 = 2.


# %%
def vector_times_matrix(vector, matrix):
    columns = len(matrix[0])
    return [sum(v * row[c] for v, row in zip(vector, matrix)) for c in range(columns)]


looks_for = [[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]  # W_Q: pronouns want a name
found_as = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]  # W_K: name, verb or pronoun
hands_over = [[0], [0], [0], [1]]  # W_V: who

# %%
query = vector_times_matrix(she, looks_for)
keys = [vector_times_matrix(vector, found_as) for vector in sentence]
values = [vector_times_matrix(vector, hands_over) for vector in sentence]
shares = al.softmax([dot(query, key) for key in keys])  # step 4 opens this function
print("query of she:", query)
for word, key, share in zip(words, keys, shares):
    print(f"{word:7} key {key}   score {dot(query, key)}   share {share:.2f}")
who = sum(share * value[0] for share, value in zip(shares, values))
print("values:", values, f"  who is she? before: {she[3]}, after: {who:.2f}")

# %% [markdown]
# "She" came in with 0 at *who*, and leaves with nearly 5: Anna. Her query is (2, 0, 0), "I want a name", and Anna's key is the
# same. Three things are simpler here than in a model. There the output is first brought to the width of a token and then added
# to her own vector, so that she stays a pronoun. One number for *who* can hold one name only: numbers 3 and 5, taken in equal
# shares, make 4, which is somebody else, so a model spreads such things over many features. And nobody sets its matrices: they
# are learned, and a feature has no name that anybody gave it.
#
# Mind the direction. The token whose query it is takes, and the token whose key it is gives: "she" takes from Anna, and what
# she gets is Anna's value.
#
# Now the whole calculation for all tokens at once, in numbers that you can follow with pencil and paper.
#
# ## Step 1 · The inputs
#
# `x` holds three tokens, one per row. Three matrices turn a token into its query, its key and its value. In a trained model
# they are learned, from small random numbers at the start (notebook 04 measures them). Here they are whole numbers.

# %%
x = [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]  # (n, d_in)
W_Q = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]]  # (d_in, d_k)
W_K = [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]]  # (d_in, d_k)
W_V = [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]]  # (d_in, d_v)

# %% [markdown]
# ## Step 2 · One key, then all keys
#
# The first token's key is its row of `x` times $W_K$:

# %%
k1 = vector_times_matrix(x[0], W_K)
print("k1 =", k1, end="   ")
last = 1 * 1 + 0 * 0 + 1 * 0 + 0 * 0
print("for example its last entry: 1*1 + 0*0 + 1*0 + 0*0 =", last)

# %% [markdown]
# Five exercises stand along the way. Write your answer in the first cell, then run it and the cell below it. The verdict
# names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call goes one step further.
# The solution is folded below. (The + of the toolbar makes a cell.)

# %% [markdown] tags=["exercise"]
# ### Exercise 1.1 · A key
#
# **Goal.** Compute $k_2$, the key of the second token. *3 minutes, easy.*
#
# Take `W_K` and token 2. Python counts from 0, so token 2 is `x[1]` = `[0, 2, 0, 2]`. Write three numbers as a list: `my_k2 = [1, 2, 3]`.

# %%
my_k2 = None  # a list of three numbers

# %%
verdict = check.k2(my_k2)
verdict

# %% [markdown] tags=["solution"]
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
# have the same sign adds to it, one with opposite signs takes away, and a longer query or key stretches it. A query must have
# as many features as a key, so $d_k$ counts those of both. The value is not part of the product, so $d_v$ is free.

# %%
print("same signs:", dot([2, -1], [2, -1]), "  opposite signs:", dot([2, -1], [-2, 1]))
print("one of each:", dot([2, -1], [1, 2]), end="   ")  # 2*1 + (-1)*2
print("a longer key:", dot([2, -1], [20, -10]))

# %%
for j, key in enumerate(K, start=1):
    terms = " + ".join(f"{p}*{q}" for p, q in zip(Q[0], key))
    print(f"q1.k{j} = {terms} = {dot(Q[0], key)}")

# %% [markdown] tags=["exercise"]
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

# %% [markdown] tags=["solution"]
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

# %% [markdown] tags=["predict"]
# Read the second row from left to right. It is token 2, asking each token, itself included, how much it matters to token 2.
# These numbers are not shares yet: they add up to nothing in particular, and with other numbers some would be negative. The
# next step mends both.
#
# ## Step 4 · Softmax: from scores to weights
#
# Weights must not be negative, they must sum to 1, and a larger score must get more.
#
# **Predict.** The scores of query 1 are 2, 4, 4. What are its weights? (Above, the scores 4, 0, 0 of "she" gave 0.96, 0.02,
# 0.02.)
#
# - **a** (0.2, 0.4, 0.4), each score divided by the sum
# - **b** (0, 0.5, 0.5), the small one gets nothing
# - **c** between the two: the first gets less than 0.2, and more than 0

# %%
guess_softmax = None  # "a", "b" or "c"

# %%
predict.softmax_by_hand(guess_softmax)

# %% [markdown]
# Dividing by the sum would not do: with scores of -1 and 1 it divides by 0. **Softmax** first makes each score positive, by
# taking $e^{s_j}$, then divides by the sum,
#
# $$w_j = \frac{e^{s_j}}{\sum_l e^{s_l}}.$$
#
# It compares by **differences**: a score that is 2 larger gets $e^2 \approx 7.4$ times the weight, wherever the two scores
# lie. Other functions make numbers positive, too. The exponential is a choice, with this property.

# %% [markdown] tags=["exercise"]
# ### Exercise 1.3 · A row of weights
#
# **Goal.** Compute the weights of query 1 to four decimals. *4 minutes, easy.*
#
# Take `math.exp` of the scores 2, 4, 4 and divide each by the sum of the three.

# %%
my_weights_1 = None  # a list of three numbers

# %%
verdict = check.weights_1(my_weights_1)
verdict

# %% [markdown] tags=["solution"]
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
    print(f"exp({s}) = {e:8.4f}   weight = {e:.4f} / {total:.4f} = {e / total:.4f}")


# %%
def softmax(row):
    exponentials = [math.exp(s) for s in row]
    return [e / sum(exponentials) for e in exponentials]


weights = [softmax(row) for row in scores]  # (n_q, n_k), all three queries
for row in weights:
    print("  ".join(f"{w:.4e}" for w in row), "  sum:", round(sum(row), 12))

# %% [markdown]
# Here e-06 stands for $10^{-6}$: a small score gets little, and never nothing. As a map:

# %%
tokens = ["token 1", "token 2", "token 3"]
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, title="weights, not scaled", places=4
)

# %% [markdown]
# Query 2 takes 0.98 of its unit from a single key, that of its own token. It does not have to be its own: query 3 takes 0.88
# from the same key 2.
#
# ## Step 5 · The output: a weighted sum of values
#
# The keys have done their work. What is handed over are the values: the output for query 1 is
# $w_{11} v_1 + w_{12} v_2 + w_{13} v_3$. First weight each value, then add. So a large weight on a value of small
# numbers may bring less than a small weight on one of large numbers.

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

# %% [markdown] tags=["predict"]
# ## Break it · What rounding does
#
# The text this example comes from (Karim 2019, *Illustrated: Self-Attention*, [S3](../REFERENCES.md#s3)) rounds the weights
# before it goes on, and roughly: softmax(2, 4, 4) becomes (0, 0.5, 0.5), where one decimal would be (0.1, 0.5, 0.5), which does
# not even sum to 1. **Predict.** With (0, 0.5, 0.5), how far off is the worst output number?
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
# The largest error stands in the second number of output 1. The 0.0634 that were taken from $v_1$, whose second number is 2,
# went in halves to $v_2$ and $v_3$, which have 8 and 6 there: $0.0317 \cdot 8 + 0.0317 \cdot 6 - 0.0634 \cdot 2 = 0.317$. Round
# when you print, never before you go on.
#
# ## Step 6 · Dividing by $\sqrt{d_k}$
#
# Queries and keys with many features tend to have scores that lie far apart, and then a query takes nearly everything from one
# key: you will see it below on random vectors, and 03 explains it. So the attention of [Vaswani et al.
# (2017)](../REFERENCES.md#vaswani-2017) divides scores by $\sqrt{d_k}$ before softmax. This is *scaled* dot-product attention.
# Here $\sqrt{d_k} = \sqrt{3} \approx 1.73$.

# %% [markdown] tags=["exercise"]
# ### Exercise 1.4 · A scaled output
#
# **Goal.** Compute the output of query 1 with scaled scores, to three decimals or more. *5 minutes, medium.*
#
# From the scores 2, 4, 4 to three numbers, this time without a line to copy: divide by $\sqrt 3$, share out, mix. You may use
# `softmax` and `weighted_sum` of this notebook.

# %%
my_scaled_output_1 = None  # a list of three numbers

# %%
verdict = check.scaled_output_1(my_scaled_output_1)
verdict

# %% [markdown] tags=["solution"]
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
# attnlib keeps `x` and the three matrices in `examples.BY_HAND`. `BY_HAND.project()` returns $Q$, $K$ and $V$, and the star hands
# them over as three arguments. Does its own function give these three rows?

# %%
by_library = al.scaled_dot_product_attention(*BY_HAND.project())  # (n_q, d_v)
rows = zip(by_library.tolist(), output_scaled)
difference = max(abs(a - b) for r, o in rows for a, b in zip(r, o))
print(f"largest difference: {difference:.12f}")

# %% [markdown] tags=["exercise"]
# ### Exercise 1.5 · What each word looks for
#
# **Goal.** Design $W_Q$ for *Anna sleeps, she ...*, so that all three words find what they need. *8 minutes, hard.*
#
# The tokens are `sentence` and $W_K$ is `found_as`, as above. Unlike above, the scores are now divided by $\sqrt 3$. Hand in
# four rows of three numbers, so that
#
# - "she" takes 0.9 or more from "Anna" (who is she?),
# - "sleeps" takes 0.9 or more from "Anna" (who sleeps?),
# - "Anna" takes 0.9 or more from "sleeps" (what does she do?).
#
# Many answers are right. Row 1 of $W_Q$ says what a name looks for, row 2 a verb, row 3 a pronoun. Row 4 belongs to *who*, and
# may stay 0.

# %%
my_W_Q = None  # four rows of three numbers

# %%
verdict = check.what_words_look_for(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # Names look for verbs, verbs and pronouns for names; 5 makes the scores large enough. One of many.
# my_W_Q = [[0, 5, 0], [5, 0, 0], [5, 0, 0], [0, 0, 0]]
# ```
#
# </details>

# %% [markdown] tags=["predict"]
# ## See it · From two features to 32
#
# Three features are few. Here are real ones, of a head in which "bank" takes most from "river", layer 1, head 5 of
# MiniLM. Its queries and keys have 32 features. The slider keeps the first $d_k$ of them and drops the others, and the bars
# are the row of "bank".
#
# **Predict.** A guess first: does "bank" still take most from "river" when two features are left? And to think about: what does
# the division by $\sqrt{d_k}$ change: from whom, or how much?

# %%
stored = real_model.stored("minilm_results")
head, tokens = stored["L1H5 of the first bank"], stored["six banks"]["tokens"][0]
bank_query, real_keys = head["query"][tokens.index("bank")], head["key"]


def row_at(d_k, query=bank_query, keys=real_keys):
    row = [dot(query[:d_k], key[:d_k]) for key in keys]
    divided = [s / math.sqrt(d_k) for s in row]
    return {"not scaled": [softmax(row)], "scaled": [softmax(divided)]}


view = live.weights_view(row_at, d_k=(1, 32), still=(2, 8, 32), keys=tokens)
view

# %%
for d_k in (2, 6, 7, 16, 24, 32):
    print(f"d_k = {d_k:2d}", end="")
    for name, (row,) in row_at(d_k).items():
        favourite = tokens[row.index(max(row))]
        print(f"   {name}: {max(row):.2f} from {favourite}", end="")
    print()

# %% [markdown]
# Up to six features "bank" has no clear favourite, and it is not "river". In this order the seventh decides: not scaled, "river"
# gets 0.98 at once. The division never changes who comes first, only by how much. Scaled, the weight goes up and down, 0.80 at 16
# features, 0.55 at 24, and at the end 0.71, which is what the model itself gives. None of this tells much about $d_k$, because
# the 32 features were learned together and stand in no order. In a random order, "river" leads for good from about the twelfth.
#
# So take vectors that belong to no head: random ones, with mean 0 and variance 1, one query and three keys, 500 times, and the
# mean of the largest weight:

# %%
r = random.Random(3)
draws = [[[r.gauss(0, 1) for _ in range(128)] for _ in range(4)] for _ in range(500)]
for d_k in (3, 16, 128):
    rows = [row_at(d_k, query, keys) for query, *keys in draws]
    for name in rows[0]:
        mean = sum(max(row[name][0]) for row in rows) / len(rows)
        print(f"d_k = {d_k:3d}  {name:<10}  largest weight {mean:.2f}")

# %% [markdown]
# Not scaled, the largest weight grows with $d_k$. A dot product adds up $d_k$ terms, and sums of $d_k$ independent terms spread
# like $\sqrt{d_k}$ (notebook 03 derives it). Divided by $\sqrt{d_k}$, they spread equally far at every $d_k$, and the largest
# weight stays near 0.6.
#
# ## Other score functions
#
# The dot product is one way to say how well a query and a key match. Before it became the standard, *additive* attention was
# common ([Bahdanau et al. 2014](../REFERENCES.md#bahdanau-2014)): a small network, $s = u \cdot \tanh(W_1 q + W_2 k)$, here
# with $W_1 = W_2$ the identity and $u$ all ones. The *cosine* takes the lengths out
# ([Graves et al. 2014](../REFERENCES.md#graves-2014)). Four functions on query 1 and the three keys:


# %%
def cosine(q, k):
    return dot(q, k) / math.sqrt(dot(q, q) * dot(k, k))


score_functions = {
    "dot product": dot,
    "scaled dot product": lambda q, k: dot(q, k) / math.sqrt(len(k)),
    "cosine": cosine,
    "additive": lambda q, k: sum(math.tanh(a + b) for a, b in zip(q, k)),
}

# %%
for name, score in score_functions.items():
    row = [score(Q[0], key) for key in K]
    told = "  ".join(f"{s:5.2f}" for s in row)
    shares = "  ".join(f"{w:.2f}" for w in softmax(row))
    print(f"{name + ':':<20}scores {told}   weights {shares}")
print("cosines 1, -1, -1:  weights ", *(f"{w:.2f}" for w in softmax([1, -1, -1])))

# %% [markdown] tags=["remember"]
# Put a function of your own into the table. Only the cosine prefers key 1: in the dot product, keys 2 and 3 win by being
# longer. The cosine also shares out almost evenly, because its scores differ by 0.31 at most. It cannot share out much more
# sharply, because they lie between -1 and 1: the last line has the extreme. The dot product has nothing to learn of its own, and it is one matrix product for all pairs. The next notebook
# uses that.
#
# ## Try it
#
# Think first, then try. The checks and the comparison with attnlib keep the old numbers, and will say so.
#
# 1. Change `x[2]` to `[9, 0, 9, 0]` and run all. Which outputs change?
# 2. Let "sleeps" hand over something in the sentence about Anna: which matrix must change, and must another?
# 3. Give `W_V` five columns instead of three. What else must change?
# 4. Give `W_Q` a fourth column. Which line complains, and why?
#
# *Answers.* 1: all, for token 3 is also a key and a value. 2: $W_V$ alone. 3: nothing, $d_v$ is free. 4: `dot`, for a query must
# have as many features as a key.
#
# **Remember.** Scores compare queries with keys. Softmax turns a row of scores into weights that sum to 1. The output
# is a weighted sum of values, one per query. Three matrices keep apart what a token is, what it looks for, how it is found and
# what it hands over. Models that read text (BERT, RoBERTa) and models that see pictures (ViT, Swin) are built on this
# ([sources](../REFERENCES.md#models)). Next: [02 vectorized](02_vectorized.ipynb).

# %% [markdown]
# # [[by_hand]] · Attention by hand
#
# **Question.** *Bank* is one word with one vector. Beside *river*, attention turns it into another vector, and beside *money*
# into a third. Which numbers do that? And in *Anna saw Ben; she* \_\_\_, how does *she* find out who she is? All is
# plain Python. *30 minutes, and 23 for exercises.*

# %% jupyter={"source_hidden": true}
import math
import random

import attnlib as al
from attncourse import check, mine, predict, real_model
from attnlib import live, plot
from attnlib.colours import KEY, QUERY, VALUE, text_on
from attnlib.examples import FEATURES, KARIM, NAMES, SENTENCE, W_O, WORDS

# %% jupyter={"source_hidden": true} tags=["slide"]
_, ax = plot.subplots(figsize=(4.4, 3.2))
points = {"river": (2, 0), "money": (0, 2), "bank": (1, 1)}
points |= {"river bank": (2.5, 1.5), "money bank": (1.5, 2.5)}
style = {"arrowstyle": "-|>", "color": VALUE, "lw": 2, "shrinkA": 6, "shrinkB": 6}
for name, at in points.items():
    _ = ax.plot(*at, "s" if " " in name else "o", color="gray")
    side = (-24, -16) if name == "bank" else (8, 6)
    _ = ax.annotate(name, at, side, textcoords="offset points")
    if " " in name:
        _ = ax.annotate("", at, points["bank"], arrowprops=style)
_ = ax.set(xlabel="nature", ylabel="money", xlim=(-0.2, 3.4), ylim=(-0.2, 2.9))

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[start_here]])* In a map of attention weights, what must sum to 1?
#
# - **a** each column
# - **b** each row
# - **c** rows and columns
#
# **2.** *(notebook [[start_here]])* You want to know how much *to* takes from *Mary*. Where do you look?
#
# - **a** in the row of *to*, at the column of *Mary*
# - **b** in the row of *Mary*, at the column of *to*
# - **c** in either, they are equal
#
# **3.** *(notebook [[start_here]])* *To* enters both sentences with the same vector, and comes out pointing to a different name in each.
# Where does a model let a token take something from other tokens?
#
# - **a** where words become vectors
# - **b** in every step of a layer
# - **c** in attention only

# %%
predict.before_by_hand(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## A bank that finds out what it is
#
# Give each word two features: how much it has to do with nature, and how much with money. *Bank* could be
# either.
#
# How much should *bank* take from its neighbour? The simplest idea: as much as the two are alike. The **dot product** measures
# that, though it also grows with the length of the vectors. Multiply feature by feature, and add up. Such a number is called
# a **score**.


# %%
def dot(a, b):
    return sum(p * q for p, q in zip(a, b, strict=True))


river, money, bank = [2, 0], [0, 2], [1, 1]  # features: nature, money
print("bank · river =", dot(bank, river), "  bank · bank =", dot(bank, bank))
print("bank · money =", dot(bank, money), "  bank · bank =", dot(bank, bank))

# %% [markdown]
# *Bank* scores as high with its neighbour as with itself. Equal scores get equal shares, so *bank* takes half of each vector.
# What it takes is added to its own vector:

# %% tags=["slide"] says="Compare, share, mix"
for name, neighbour in (("river", river), ("money", money)):
    mixed = [0.5 * a + 0.5 * b for a, b in zip(neighbour, bank)]
    added = [a + b for a, b in zip(bank, mixed)]
    print(f"next to {name}, bank takes {mixed} and becomes {added}")

# %% [markdown]
# One vector went in twice, and two came out: the squares in the picture. Each arrow is what *bank* took. Compare, share, mix,
# and add the result. That is attention, and it needed no matrix yet.
#
# ## Where likeness fails
#
# *Anna saw Ben; she* \_\_\_. Who is *she*? Each word has six features. Five say what the word is: 1 is yes, 0 is no. The
# sixth says *who* the word is: 2 is Anna, and -2 is Ben. All other words have 0, until attention tells them.

# %%
x = [
    [1, 0, 1, 0, 0, 2],  # Anna, token 0
    [0, 0, 0, 1, 0, 0],  # saw
    [1, 1, 0, 0, 0, -2],  # Ben
    [0, 0, 1, 0, 1, 0],  # she, token 3
]
print(" " * 5, *(f"{feature:>8}" for feature in FEATURES))
for word, token in zip(WORDS, x):
    print(f"{word:5}", *(f"{number:8}" for number in token))

# %% [markdown] tags=["predict"]
# **Predict.** By likeness, with whom does *she* score highest?

# %% tags=["slide"]
she = 3  # words are counted from 0, as Python counts
for word, token in zip(WORDS, x):
    print(f"she · {word:4} =", dot(x[she], token))

# %% [markdown]
# By likeness, *she* finds herself. She *is* a pronoun, but she *needs* a name. So two things have to come apart.
#
# - **What I look for is not what I am.** A matrix $W_Q$ turns the vector of a word into its **query**: what the word looks for.
# - **How I am found is not what I give.** Anna is found as a name, and as female. What *she* needs from Anna is *who*. So a
#   matrix $W_K$ makes the **key**, under which a word is found, and a matrix $W_V$ makes the **value**, which the word gives.
#
# Think of a search. A database returns the one record whose key matches the query. Attention returns a weighted sum of all
# values, each weighted by how well its key matches. *To* looked for a name in notebook [[start_here]], and *she* does now.
#
# ## Step 1 · The inputs
#
# | symbol | meaning | in this sentence |
# |---|---|---|
# | $n$ | number of tokens; here each makes a query and a key, so $n_q = n_k = n$ | 4 |
# | $d_{in}$ | features of a token | 6 |
# | $d_k$ | features of a query and of a key | 3 |
# | $d_v$ | features of a value | 2 |
#
# Three matrices, set by hand for this sentence: each row belongs to a feature of the word that goes in, and each column to a
# number that comes out. To take a word times a matrix, multiply each row by its feature, and add up.


# %% tags=["slide"]
W_Q = [[0, 0, 3], [0, 0, 0], [0, 2, 0], [1, 0, 0], [3, 0, 0], [0, 0, 0]]  # (d_in, d_k)
W_K = [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]  # (d_in, d_k)
W_V = [[0, 0], [0, 0], [0, 0], [0, 1], [0, 0], [1, 0]]  # (d_in, d_v)


def vector_times_matrix(vector, matrix):
    columns = len(matrix[0])
    return [sum(v * row[c] for v, row in zip(vector, matrix)) for c in range(columns)]


# %% [markdown] tags=["predict"]
# **Predict.** *She* is female and a pronoun: rows 2 and 4 of $W_Q$, counted from 0. Which three numbers are her query?


# %% jupyter={"source_hidden": true}
def boxes(ax, left, y, numbers, colour="#ffffff"):
    """Draw numbers side by side, each in a box; no 0 where boxes are empty."""
    look = {"boxstyle": "square,pad=0.4", "facecolor": colour, "edgecolor": "gray"}
    style = {"ha": "center", "va": "center", "family": "monospace", "bbox": look}
    for j, number in enumerate(numbers):
        shown = number if number or colour != "#ffffff" else " "
        _ = ax.text(left + 1.35 * j, y, shown, color=text_on(colour), **style)


# %% jupyter={"source_hidden": true}
def draw_matrix(ax, left, name, W, columns, colour):
    """Draw a matrix, fill the rows of her features, and put their sum below."""
    middle = left + 0.675 * (len(columns) - 1)
    _ = ax.text(middle, 2.6, f"$W_{name[0].upper()}$", ha="center")
    _ = ax.text(middle, -7.6, name, ha="center")
    for j, column in enumerate(columns):
        _ = ax.text(left + 1.35 * j - 0.4, 0.7, column, rotation=40)
    for i, row in enumerate(W):
        boxes(ax, left, -i, row, colour if x[she][i] else "#ffffff")
    boxes(ax, left, -6.5, vector_times_matrix(x[she], W), colour)


# %% jupyter={"source_hidden": true} tags=["slide"]
_, ax = plot.subplots(figsize=(4.6, 3.9))
for i, (feature, number) in enumerate(zip(FEATURES, x[she])):
    _ = ax.text(-0.7, -i, feature, ha="right", va="center")
    boxes(ax, 0, -i, [number])
_ = ax.text(0, 0.7, "she", ha="center")
_ = ax.text(-0.7, -6.5, "sum", ha="right", va="center")
draw_matrix(ax, 1.8, "query", W_Q, ("name", "female", "verb"), QUERY)
draw_matrix(ax, 6.2, "key", W_K, ("name", "female", "verb"), KEY)
draw_matrix(ax, 10.6, "value", W_V, ("who", "verb"), VALUE)
title = "she, times three matrices (an empty box is 0)"
_ = ax.set(xlim=(-2.7, 13.4), ylim=(-7.9, 3), title=title), ax.axis("off")

# %% [markdown]
# Her two features fill two rows of each matrix, and the sums of these rows stand below: her query, her key and her value. Her
# query says: I look for a name, if possible a female one. Her key says: I can be found as female. Her value is zeros,
# because she has nothing to give yet. A model learns its matrices, and nobody names its features.
#
# ## Step 2 · One key, then all keys
#
# There are five exercises along the way. Write your answer into the first cell, then run it and the cell below it. The verdict
# names the mistake if it knows it, and has hints. The solution is folded below.

# %% [markdown] tags=["exercise"]
# ### Exercise [[key_of_anna]] · A key
#
# **Goal.** Compute the key of Anna, token 0. *3 minutes, easy.*
#
# Take `x[0]` = [1, 0, 1, 0, 0, 2] and `W_K`. Write three numbers as a list, such as `[1, 2, 3]`.

# %%
my_key = None  # a list of three numbers

# %%
verdict = check.key_of_anna(my_key)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_key = vector_times_matrix(x[0], W_K)  # name [1, 0, 0] plus female [0, 1, 0] is [1, 1, 0]
# ```
#
# </details>

# %% tags=["slide"] says="How I am found"
Q = [vector_times_matrix(token, W_Q) for token in x]  # (n, d_k)
K = [vector_times_matrix(token, W_K) for token in x]  # (n, d_k)
V = [vector_times_matrix(token, W_V) for token in x]  # (n, d_v)
for word, query, key, value in zip(WORDS, Q, K, V):
    print(f"{word:5} query {query}   key {key}   value {value}")

# %% [markdown]
# ## Step 3 · Scores: one query against every key
#
# Here is the way of *she* in one picture. Each exercise that you solve fills a part of it, and so does each button. Click a
# number to see how it was made. Leave the slider at 1 for now: step 6 is about it.

# %% jupyter={"source_hidden": true}
her_row = live.one_row(SENTENCE, W_O, query=3, line="who", stage=1, d_k=1, **NAMES)
solved = {"key_of_anna": {"stage": 2}, "scores_of_she": {"stage": 3}}
solved |= {"weights_of_she": {"stage": 4}, "output_of_she": {"stage": 5, "d_k": 3}}
mine.fills(her_row, **solved)
her_row

# %% [markdown]
# The score of query $i$ and key $j$ is their dot product, $q_i \cdot k_j = \sum_c q_{ic}\, k_{jc}$. So queries and
# keys must have equally many features, $d_k$. Values are not compared, so $d_v$ is free. Anna asks first. Anna is
# female, too, so the row *female* makes her look for somebody female.

# %%
for word, key in zip(WORDS, K):
    terms = " + ".join(f"{p}*{q}" for p, q in zip(Q[0], key))
    print(f"Anna · {word:4} = {terms} = {dot(Q[0], key)}")

# %% [markdown] tags=["exercise"]
# ### Exercise [[scores_of_she]] · A row of scores
#
# **Goal.** Compute the scores of *she* against the four keys. *3 minutes, easy.*
#
# Her query is `Q[3]` = [3, 2, 0]. Take its dot product with `K[0]` to `K[3]`. Do not divide by anything yet.

# %%
my_scores = None  # a list of four numbers

# %%
verdict = check.scores_of_she(my_scores)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_scores = [dot(Q[3], key) for key in K]  # [5, 0, 3, 2]
# ```
#
# </details>

# %% tags=["slide"] says="The score of"
scores = [[dot(q, k) for k in K] for q in Q]  # (n_q, n_k)
for word, row in zip(WORDS, scores):
    print(f"{word:5}", row)

# %% [markdown] tags=["predict"]
# *She* scores 5 with Anna, yet Anna scores only 2 with *she*: the two look for different things.
#
# Anna scores 3 with *saw*, which comes later. Here each word may look both ways. The model of notebook [[start_here]] looks back only:
# notebook [[masks]] is about that.
#
# ## Step 4 · Softmax: from scores to weights
#
# Scores may be negative. Weights may not, they must sum to 1, and a larger score must get a larger weight.
#
# **Predict.** The scores of *she* are 5, 0, 3, 2. What are her weights?
#
# - **a** (0.5, 0, 0.3, 0.2): each score is divided by the sum
# - **b** (1, 0, 0, 0): the largest score gets everything
# - **c** between the two: Anna gets more than 0.5, and *saw* more than 0

# %%
guess_softmax = None  # "a", "b" or "c"

# %%
predict.softmax_by_hand(guess_softmax)

# %% [markdown]
# Dividing by the sum fails for the scores -1 and 1, because their sum is 0.
#
# **Softmax** first makes each score positive by taking $e^{s_j}$, then divides by the sum:
#
# $$w_j = \frac{e^{s_j}}{\sum_l e^{s_l}}.$$
#
# So softmax compares by **differences**: a score that is 2 larger gets $e^2 \approx 7.4$ times the weight.

# %% [markdown] tags=["exercise"]
# ### Exercise [[weights_of_she]] · A row of weights
#
# **Goal.** Compute the weights of *she* to three decimals. *4 minutes, easy.*
#
# Take `math.exp` of the scores 5, 0, 3, 2, and divide each by the sum of the four.

# %%
my_weights = None  # a list of four numbers

# %%
verdict = check.weights_of_she(my_weights)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# e = [math.exp(s) for s in scores[3]]
# my_weights = [value / sum(e) for value in e]
# ```
#
# </details>

# %% tags=["slide"] says="Softmax first makes"
exponentials = [math.exp(s) for s in scores[she]]
total = sum(exponentials)
for word, s, e in zip(WORDS, scores[she], exponentials):
    print(f"{word:5} exp({s}) = {e:8.4f}   divided by {total:.4f}: {e / total:.4f}")


# %%
def softmax(row):
    exponentials = [math.exp(s) for s in row]
    return [e / sum(exponentials) for e in exponentials]


weights = [softmax(row) for row in scores]  # (n_q, n_k)

# %% [markdown] tags=["predict"]
# ## Step 5 · The output: a weighted sum of values
#
# The keys have done their work. Now each word mixes the values with its weights.
#
# **Predict.** *Saw* scores 1 with Anna and 1 with Ben, so it takes as much from both. Anna's value has 2 at *who*, and Ben's
# has -2. What does *saw* get at *who*?
#
# - **a** exactly 0
# - **b** something above 0, because Anna comes first
# - **c** both numbers, one for each name

# %%
guess_two_names = None  # "a", "b" or "c"


# %% tags=["slide"] says=["Saw has found two", "She gets 1.451"]
def weighted_sum(row, V):
    return [sum(w * value[c] for w, value in zip(row, V)) for c in range(len(V[0]))]


print("      who     verb")
for word, row in zip(WORDS, weights):
    print(f"{word:5}", "  ".join(f"{number:6.3f}" for number in weighted_sum(row, V)))
terms = " + ".join(f"{w:.4f}*{value[0]}" for w, value in zip(weights[she], V))
print(f"she at who: {terms}")

# %%
predict.two_names(guess_two_names)

# %% [markdown]
# *Saw* has found two names, and its 0 looks as if it had found nobody. One number cannot hold two names. In notebook [[multi_head]] a second
# head solves this.
#
# *She* gets 1.451 at *who*: she is Anna. It is less than 2, because softmax gives every word some weight, and Ben's -2 pulls the
# sum down.
#
# ## Step 6 · Dividing by $\sqrt{d_k}$
#
# Queries and keys with many features tend to have scores that lie far apart, and then one key gets nearly everything. So the attention of
# [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) divides scores by $\sqrt{d_k}$ before the softmax. This is *scaled*
# dot-product attention. Here $\sqrt{d_k} = \sqrt{3} \approx 1.73$.

# %% [markdown] tags=["exercise"]
# ### Exercise [[output_of_she]] · A scaled output
#
# **Goal.** Compute the output of *she* with scaled scores, to three decimals. *5 minutes, medium.*
#
# From her scores 5, 0, 3, 2 to two numbers: divide by $\sqrt 3$, take the softmax, mix the values. You may use `softmax` and
# `weighted_sum` of this notebook.

# %%
my_output = None  # a list of two numbers

# %%
verdict = check.output_of_she(my_output)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_output = weighted_sum(softmax([s / math.sqrt(3) for s in scores[3]]), V)
# ```
#
# </details>


# %%
def attention(Q, K, V):
    """Return the weights (n_q, n_k) and the outputs (n_q, d_v)."""
    d_k = len(K[0])
    scores = [[dot(q, k) / math.sqrt(d_k) for k in K] for q in Q]
    weights = [softmax(row) for row in scores]
    return weights, [weighted_sum(row, V) for row in weights]


# %%
scaled_weights, output = attention(Q, K, V)
print("weights of she:", *(f"{w:.4f}" for w in scaled_weights[she]))
for word, (who, verb) in zip(WORDS, output):
    print(f"{word:5} who {who:5.3f}   verb {verb:.3f}")

# %% tags=["slide"]
title = "weights, scaled"
ax = plot.attention_heatmap(scaled_weights, queries=WORDS, keys=WORDS, title=title)

# %% [markdown]
# Divided, her row is paler: 0.646 from Anna instead of 0.839, and so 0.885 at *who* instead of 1.451.
#
# Is this what the library computes? `SENTENCE.project()` returns the same $Q$, $K$ and $V$ as arrays.

# %%
by_library = al.scaled_dot_product_attention(*SENTENCE.project())  # (n_q, d_v)
pairs = [pair for r, o in zip(by_library.tolist(), output) for pair in zip(r, o)]
print(f"largest difference: {max(abs(a - b) for a, b in pairs):.12f}")

# %% [markdown] tags=["exercise"]
# ### Exercise [[what_words_look_for]] · What each word looks for
#
# **Goal.** Design a $W_Q$ with which every word finds what it needs. *8 minutes, hard.*
#
# Keep `x` and `W_K`, and divide scores by $\sqrt 3$. Hand in six rows of three numbers, so that
#
# - *she* takes 0.9 or more from *Anna* (who is she?),
# - *saw* takes 0.9 or more from *Ben* (whom did she see?),
# - *Anna* and *Ben* each take 0.9 or more from *saw* (what happened?).
#
# Many answers are right. Start from `W_Q` above, which gives *saw* no way to tell Ben from Anna.

# %%
my_W_Q = None  # six rows of three numbers

# %%
verdict = check.what_words_look_for(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # A name looks for a verb, a verb for a name that is not female, a pronoun for one that is.
# # With 6 the scores are large enough. One answer of many.
# my_W_Q = [[0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]]
# ```
#
# </details>

# %% [markdown]
# ## Step 7 · The vector plus what it takes
#
# *She* took two numbers, and her vector has six. A fourth matrix, $W_O$, makes six of the two: *who* goes to *who*, *verb* to
# *verb*. They are added to her own vector, as with *bank*.

# %% tags=["slide"]
W_O = [[0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0]]  # (d_v, d_in)
taken = [vector_times_matrix(row, W_O) for row in output]  # (n, d_in)
after = [[a + b for a, b in zip(token, more)] for token, more in zip(x, taken)]
print(" " * 5, *(f"{feature:>8}" for feature in FEATURES))
for word, row in zip(WORDS, after):
    print(f"{word:5}", *(f"{number:8.3f}" for number in row))

# %% [markdown]
# *She* is still female and a pronoun, and now she knows who she is: her *who* was 0. Ben stays Ben, with -2 at *who*; at
# *verb* he has 0.653 now, taken from *saw*.
#
# ## See it · Too sharp, right, too pale
#
# Here is the whole way once more. The slider changes the divisor, and everything below the scores follows.
#
# **Try.** Move the slider to both ends. How sure is *she* of Anna at each? Can another word come first?
#
# <details><summary>Answer</summary>
#
# At the left end Anna gets 0.980, and at the right end nobody gets more than 0.333. The scores stay, so Anna is always first.
# Here the division only weakens a right answer. What it is good for comes in notebook [[scaling]].
#
# </details>

# %%
live.one_row(SENTENCE, W_O, query=3, line="who", **NAMES)

# %% [markdown]
# ## Break it · Queries and keys exchanged
#
# What if a word looks with its key, and is found by its query? Nothing complains, because both have three features.

# %%
wrong_weights, wrong_output = attention(K, Q, V)
print("weights of she:", *(f"{w:.4f}" for w in wrong_weights[she]))
print(f"who is she? {wrong_output[she][0]:.3f} (was {output[she][0]:.3f})")

# %% [markdown]
# Now *she* takes from those who look for somebody female: as much from herself as from Anna. She still leans towards Anna, and no
# error tells you that this is wrong.

# %% [markdown]
# ## A real bank
#
# Here is a head with 32 features, of MiniLM, a small real model. It reads *she sat on the bank of the river*, and it reads
# both ways, so *bank* may take from a later word. The bars show from which words it takes ([CLS] and [SEP] mark start and end).

# %% jupyter={"source_hidden": true}
stored = real_model.stored("minilm_results")
head, tokens = stored["L1H5 of the first bank"], stored["six banks"]["tokens"][0]
bank_query, real_keys = head["query"][tokens.index("bank")], head["key"]


def row_at(d_k, query=bank_query, keys=real_keys):
    row = [dot(query[:d_k], key[:d_k]) for key in keys]
    divided = [s / math.sqrt(d_k) for s in row]
    return {"not scaled": softmax(row), "scaled": softmax(divided)}


# %% tags=["slide"]
bars = row_at(32)
figure = plot.bar_grid([*bars.values()], titles=[*bars], keys=tokens)

# %% [markdown]
# *River* gets 1.00 without the division, and 0.71 with it, which is the weight in the model itself.

# %% [markdown]
# ## Try it
#
# Change the numbers in the cells that set them, choose *Run All Cells*, and look at the weights of step 6. (The checks still
# expect the original numbers.)
#
# 1. Make Ben female: in `x`, his row becomes `[1, 0, 1, 0, 0, -2]`. Who is *she* now?
# 2. Let *saw* give 2 at *verb*: which matrix must change? Does any other have to?
# 3. Give `W_Q` a fourth column. Which line complains, and why?

# %% [markdown]
# <details><summary>Answers</summary>
#
# 1: her *who* is 0. She takes as much from Ben as from Anna, and 2 and -2 cancel. 2: $W_V$ alone. 3: `dot`, because a query must have as
# many features as a key.
#
# </details>

# %% [markdown] tags=["remember"]
# **Remember.** Scores compare queries with keys. Softmax turns a row of scores into weights that sum to 1. The output is a
# weighted sum of values, and is added to the word's own vector. Three matrices keep apart what a word looks for, how it is found and what it
# gives. Next: [[[vectorized]] vectorized]([[vectorized.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# ### The same steps with the numbers of a well-known text
#
# Karim's *Illustrated: Self-Attention* ([source](../REFERENCES.md#s3)) computes three tokens of four features.

# %%
text_x, *matrices = (matrix.astype(int).tolist() for matrix in KARIM)
text = [[vector_times_matrix(token, W) for token in text_x] for W in matrices]
for name, rows in zip("QKV", text):
    print(name, "=", rows)
text_scores = [[dot(q, k) for k in text[1]] for q in text[0]]
print("scores =", text_scores)

# %%
text_weights = [softmax(row) for row in text_scores]  # that text does not scale
text_output = [weighted_sum(row, text[2]) for row in text_weights]
for i in range(3):
    told = "  ".join(f"{w:.4e}" for w in text_weights[i])
    print(told, "->", "  ".join(f"{number:.6f}" for number in text_output[i]))
print("scaled:")
for row in zip(*attention(*text)):
    print(" -> ".join("  ".join(f"{number:.6f}" for number in part) for part in row))

# %% [markdown]
# ### What rounding does
#
# Karim's text rounds the weights before it mixes: softmax(2, 4, 4) becomes (0, 0.5, 0.5). This moves the second number of its first output
# by 0.317. The 0.0634 of $v_1$, whose second number is 2, went in halves to $v_2$ and $v_3$, which have 8 and 6 there:
# $0.0317 \cdot 8 + 0.0317 \cdot 6 - 0.0634 \cdot 2 = 0.317$. Round when you print, never before.

# %%
rounded = [[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]]
rounded_output = [weighted_sum(row, text[2]) for row in rounded]
print("with rounded weights:", [[round(v, 4) for v in row] for row in rounded_output])
pairs = [pair for r, o in zip(rounded_output, text_output) for pair in zip(r, o)]
print(f"largest error: {max(abs(a - b) for a, b in pairs):.3f}")

# %% [markdown]
# ### Other score functions
#
# The dot product grows where query and key have the same sign, shrinks where signs differ, and grows with their norms.
# Before it became the standard, *additive* attention was common ([Bahdanau et al.
# 2014](../REFERENCES.md#bahdanau-2014)): a small network, $s = u \cdot \tanh(W_1 q + W_2 k)$, here with $W_1 = W_2$ the identity
# and $u$ all ones. The *cosine* ([Graves et al. 2014](../REFERENCES.md#graves-2014)) takes the norms out. Here they are for the
# first query of Karim's example and its three keys.


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
print("same signs:", dot([2, -1], [2, -1]), "  opposite signs:", dot([2, -1], [-2, 1]))
print("one of each:", dot([2, -1], [1, 2]), end="   ")  # 2*1 + (-1)*2
print("ten times the key:", dot([2, -1], [20, -10]))
for name, score in score_functions.items():
    row = [score(text[0][0], key) for key in text[1]]
    told = "  ".join(f"{s:5.2f}" for s in row)
    shares = "  ".join(f"{w:.2f}" for w in softmax(row))
    print(f"{name + ':':<20}scores {told}   weights {shares}")
print("cosines 1, -1, -1:  weights ", *(f"{w:.2f}" for w in softmax([1, -1, -1])))

# %% [markdown]
# By the cosine the first key fits best. By the dot product the other two do, because they are longer. Cosines lie between -1 and 1, so
# as scores they leave at most $e^2 = 7.4$ times as much weight to one key as to another.
#
# ### Does one key get more with more features?
#
# For random vectors of mean 0 and variance 1, one query and three keys: the largest weight, on average over 500 draws.

# %%
r = random.Random(3)
draws = [[[r.gauss(0, 1) for _ in range(128)] for _ in range(4)] for _ in range(500)]
for d_k in (3, 16, 128):
    rows = [row_at(d_k, query, keys) for query, *keys in draws]
    for name in rows[0]:
        mean = sum(max(row[name]) for row in rows) / len(rows)
        print(f"d_k = {d_k:3d}  {name:<10}  largest weight {mean:.2f}")

# %% [markdown]
# # 03 · Why divide by the square root of $d_k$?
#
# **Question.** Attention divides its scores by $\sqrt{d_k}$. What goes wrong without the division? From which $d_k$ on? And
# under which conditions is the usual explanation true? *40 minutes.*
#
# In the example of notebooks 01 and 02 the division mattered little. Queries and keys had three features (here called
# *entries*, the numbers of a vector), and the most one-sided query took 0.98 from one key without the division and still 0.91
# with it. The heads of real models have 32, 64 or 128. [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) give their reason
# in one sentence: for large $d_k$ dot products grow large and push softmax into regions with very small gradients. That
# sentence has three links: large scores, a one-sided softmax, small gradients. You will measure each of them.
#
# Before section 4 everything that is measured is made of random queries and keys, and for once that is the point: before it has
# learned anything, a head compares at random, and how it starts decides what its first steps can change. The numbers have
# variance 1, the size for which the paper argues. A fresh `nn.Linear` makes smaller ones by default; the appendix of notebook 04
# measures what that does to the scores.

# %%
import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import ASYMMETRIC

# %% [markdown]
# ## Before you start
#
# Three questions from memory. Write a letter in place of each `None`.
#
# **1.** *(notebook 02)* Five tokens with $d_{in} = 8$ are projected to $d_k = 3$ and $d_v = 4$. Which shapes have the
# weights and the output?
#
# - **a** weights (5, 5), output (5, 4)
# - **b** weights (5, 3), output (5, 4)
# - **c** weights (5, 5), output (5, 3)
#
# **2.** *(notebook 01)* The scores of a query with three keys are 2, 4, 4, and softmax is taken. How does the second
# weight compare with the first?
#
# - **a** it is twice as large
# - **b** it is $e^2 \approx 7.4$ times as large
# - **c** that depends on the third score
#
# **3.** *(notebook 00)* Of a map of weights with queries as rows and keys as columns, what sums to 1?
#
# - **a** each row
# - **b** each column
# - **c** the whole map

# %%
predict.before_03(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown] tags=["predict"]
# ## 1 · How large is a score?
#
# A score is a sum of $d_k$ products, one for each entry of the query and the key: $q \cdot k = q_1 k_1 + q_2 k_2 + \dots$
# Let all entries be drawn independently, with mean 0 and variance 1. Then each product pushes the score up or down, and
# by about 1. With 64 entries it is pushed 64 times. How far from 0 does it end? We measure that by the standard deviation,
# over many queries and keys.
#
# **Predict.** What is the standard deviation of the scores at $d_k = 64$?
#
# - **a** 1, since the pushes cancel
# - **b** 8
# - **c** 64, one for each push

# %%
guess_std = None  # "a", "b" or "c"

# %%
rng, rows = np.random.default_rng(0), []
for d_k in (1, 4, 16, 64, 256, 1024):
    q, k = rng.normal(size=(2, 4000, d_k))  # 4000 queries and a key for each
    dots = (q * k).sum(axis=-1)  # (4000,)
    scaled = dots / np.sqrt(d_k)
    rows.append((d_k, dots.var(), dots.std(), scaled.var()))
plot.table(["d_k", "var(q.k)", "std(q.k)", "var(q.k / sqrt(d_k))"], rows)

# %%
predict.score_std(guess_std)

# %% [markdown]
# Read the second column: up to chance, the variance is $d_k$. The last column is the variance of what attention uses instead,
# the divided scores. It stays near 1 at any $d_k$.
#
# Here is the same as a picture: raw scores at the left, divided ones at the right, on one axis. The histograms take 96
# queries and 96 keys, so that they are smooth. Points, map and bars show the first 8 of each. The points under a histogram
# are the scores of the framed query with 8 keys, the map holds the weights that softmax makes of such scores, and the bars
# repeat the framed row. **Try.** Move $d_k$ from 4 to 256. The left histogram grows wider, and the right one stays. Watch
# the points, for softmax sees only how far they lie apart: at the left they spread, at the right they nearly coincide.
# From which $d_k$ on does one key keep more than 0.9 at the left?

# %%
spread = live.scores(d_k=(4, 256))
spread

# %% [markdown]
# In draw 0, from 128 on. At 64 the largest weight of query 0 is 0.96 and at 96 only 0.85, for each stop adds new entries,
# and another key may win. Another query, or another draw, answers differently.
#
# Why exactly $d_k$? Take one product, of entry $c$. Both factors have mean 0 and are independent, so the product has mean
# 0, too, and its variance is $\mathrm{var}(q_c k_c) = E[q_c^2]\,E[k_c^2] = 1 \cdot 1$. The score adds $d_k$ of them, and
# variances of independent terms add up:
#
# $$\mathrm{var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{var}(q_c k_c) = d_k.$$
#
# The standard deviation is the root of that. So dividing by $\sqrt{d_k}$ brings it back to 1. The argument has conditions,
# and you will need them later: the entries have mean 0 and variance 1, they are independent of one another, and the query
# is independent of the key.
#
# ## 2 · What softmax makes of large scores
#
# Softmax compares by differences: a key whose score is larger by 8 gets $e^8 \approx 2981$ times the weight. Two numbers say
# how one-sided, or *peaky*, a row of weights is. One is its **largest weight**. The other is its **entropy** ([Shannon
# 1948](../REFERENCES.md#shannon-1948)), $H = -\sum_j w_j \ln w_j$. It is 0 if one key has everything, and $\ln n_k$ if all
# $n_k$ keys have the same. (With the natural logarithm its unit is called *nat*.) Read it as a count: $e^H$ keys that shared
# equally would have this entropy. We call that the number of keys *in play*; it is 1 in the first case and $n_k$ in the second.


# %%
def peakiness(d_k, scale, n=10, draws=200):
    r = np.random.default_rng(d_k)
    q, k = r.normal(size=(2, draws, n, d_k))  # (draws, n, d_k)
    weights = al.softmax(q @ k.swapaxes(-1, -2) * scale)  # (draws, n_q, n_k)
    return weights.max(axis=-1).mean(), np.exp(al.entropy(weights)).mean()


# %%
print(f"largest possible entropy: ln 10 = {np.log(10):.4f};  exp(8) = {np.exp(8):.0f}")
rows, largest = [], ["largest weight", "largest, scaled"]
for d_k in (1, 16, 64, 256, 1024):
    (w0, keys0), (w1, keys1) = peakiness(d_k, 1), peakiness(d_k, 1 / np.sqrt(d_k))
    rows.append((d_k, w0, w1, keys0, keys1))
plot.table(["d_k", *largest, "keys in play", "keys, scaled"], rows, tint=largest)

# %% [markdown]
# Both are means over all queries. Without the division attention turns into picking one key as $d_k$ grows: the gaps
# between scores grow like $\sqrt{d_k}$, also the one between the largest and the second. With it, a query stays undecided,
# and equally so at each $d_k$ from 16 on: about seven of ten keys stay in play.
#
# Why does a query of many entries pick? Where $d_k = 2$ you can see it. A score is the length of the query times how far
# the key reaches along its direction. The dashed lines mark that: each leads from a key to its foot on the query's line.
# **Try.** Keep the angle and move the length from 0 to 4. All scores grow by the same factor, the largest weight grows, and
# the output moves from the middle of the triangle towards a corner. (The row "÷ √2" is the division for $d_k = 2$; it
# changes nothing in this argument.)

# %%
in_the_plane = live.plane()
in_the_plane

# %% [markdown]
# Now a query with $d_k$ entries of variance 1. The mean of its squared length is $d_k$, so it is about $\sqrt{d_k}$ long: at
# $d_k = 64$ a longer arrow than any this picture can show. And the keys? They get longer as well, but a score counts only how
# far a key reaches along the query's direction, and along any one direction that spreads by 1, whatever $d_k$ is. So scores
# spread by the length of the query, about $\sqrt{d_k}$, and dividing by $\sqrt{d_k}$ takes that length away again.
#
# ## 3 · What reaches the scores in training
#
# Is a peaky softmax bad? A head that picks one key may be a good head, if it picks the right one. A fresh head has picked
# by chance, so the question is whether training can still change its mind. Five sentences are needed for that:
#
# 1. Training needs one number that says how wrong a model is, the **loss** $L$.
# 2. The **gradient** $\partial L / \partial x$ of a number $x$ in the model says how much $L$ changes when $x$ is increased
#    a little, and training moves $x$ a small step against it.
# 3. A number whose gradient is 0 learns nothing from this example.
# 4. A model is a chain of steps, and by the **chain rule** the gradient at the beginning of a step is the gradient at its
#    end times the derivative of the step; so gradients are computed backwards, from the loss to the first matrix.
# 5. All that $W_Q$ and $W_K$ ever learn comes back through the scores, so where the gradient on the scores is 0, they
#    learn nothing.
#
# So what does softmax let through? Let $s_j$ be the scores of one query, as they go into softmax, and $w_j$ its weights. A
# higher score raises its own weight and lowers the others: by the quotient rule, applied to $e^{s_m} / \sum_l e^{s_l}$, the
# derivative of $w_m$ by $s_j$ is $w_j (1 - w_j)$ if $m = j$, and $-w_m w_j$ if not. Let $g_m = \partial L / \partial w_m$ be
# the gradient that arrives at the weights. The chain rule multiplies each derivative by its $g_m$ and adds them up over $m$.
# Then $w_j$ can be taken out:
#
# $$\frac{\partial L}{\partial s_j} = w_j (1 - w_j)\, g_j - \sum_{m \ne j} w_m w_j\, g_m
# = w_j \Big(g_j - \sum_m w_m\, g_m\Big).$$
#
# Read it for a row that is nearly *one-hot*: one weight near 1, all others near 0. Where $w_j \approx 0$, the first factor vanishes. Where $w_j \approx 1$, the sum
# is nearly $g_j$, and the bracket vanishes. So every entry is near 0. That is a formula; the next cell compares it with a
# measurement, where each score is moved by a millionth up and down. The loss there is $\sum_m w_m\, g_m$, for then the
# gradient on the weight $w_m$ is $g_m$:

# %%
rng = np.random.default_rng(1)
scores, g = rng.normal(size=(2, 5))


def loss(s):
    return (al.softmax(s) * g).sum()


w = al.softmax(scores)
by_formula = w * (g - (w * g).sum())
by_moving = [(loss(scores + h) - loss(scores - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
print("by the formula:", *(f"{x:9.6f}" for x in by_formula))
print("by moving s_j: ", *(f"{x:9.6f}" for x in by_moving))

# %% [markdown]
# Now many: 200 draws of 10 queries and 10 keys, with a random $g$, and two statistics for each $d_k$. The first is a typical
# size: for each query, the mean of $|\partial L / \partial s_j|$ over its ten keys; then the **median** over all queries.
# The second is the share of **stuck** queries, none of whose ten scores gets a gradient of 0.001 or more. That threshold
# is ours, and another would move the shares.


# %%
def score_gradients(d_k, scale, seed=0):
    r = np.random.default_rng(seed)
    q, k = r.normal(size=(200, 10, d_k)), r.normal(size=(200, 10, d_k))
    g = r.normal(size=(200, 10, 10))  # dL/dweights
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)  # (200, n_q, n_k)
    return np.abs(w * (g - (w * g).sum(axis=-1, keepdims=True)))


def stuck(sizes):
    return (sizes < 0.001).all(axis=-1).mean()


# %%
rows = []
for d_k in (1, 16, 64, 256, 1024):
    plain, scaled = score_gradients(d_k, 1), score_gradients(d_k, d_k**-0.5)
    typical = [f"{np.median(x.mean(axis=-1)):.1e}" for x in (plain, scaled)]
    rows.append((d_k, *typical, f"{stuck(plain):.0%}", f"{stuck(scaled):.0%}"))
columns = ["median, not scaled", "median, scaled", "stuck, not scaled", "stuck, scaled"]
plot.table(["d_k", *columns], rows)

# %% [markdown] tags=["predict"]
# Without the division the gradient on the scores of a typical query is already ten times smaller at $d_k = 64$, and every fifth
# query is stuck. At $d_k = 1024$ a typical query gets practically nothing, and about seven in ten are stuck. With the division
# no query is, at any of these $d_k$. So far the sentence of the paper holds, link by link.
#
# ## Break it · The obvious experiment
#
# Suppose you want to show this to a friend. The obvious experiment goes one step further back, to the query itself. Its scaled
# scores are $s_j = \text{scale} \cdot q \cdot k_j$, so by the chain rule
# $\partial L / \partial q = \text{scale} \cdot \sum_j \partial L / \partial s_j \; k_j$. The scale is $1/\sqrt{d_k}$, or 1
# without the division. Take the length of this gradient, $|\partial L / \partial q|$, and its **mean** over all queries. As in
# a real layer, the random gradient now arrives at the output $o$ of the query, one step after the weights. Since
# $o = \sum_m w_m v_m$, the weights get $g_m = \partial L / \partial o \cdot v_m$. Such a $g_m$ adds up 16 products, so it is
# larger than the $g_m$ of section 3, with and without the division alike.
#
# **Predict.** At $d_k = 1024$, how does the mean without the division compare with the mean with it?
#
# - **a** it is smaller
# - **b** it is about equal
# - **c** it is larger

# %%
guess_mean = None  # "a", "b" or "c"


# %%
def gradients_on_q(scale, d_k, n=10, d_v=16, seed=3):
    r = np.random.default_rng(seed)
    q, k, v = (r.normal(size=(2000 // n, n, d)) for d in (d_k, d_k, d_v))
    # A random dL/doutput, taken back through the values: dL/dweights.
    g = r.normal(size=v.shape) @ v.swapaxes(-1, -2)
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)
    d_scores = w * (g - (w * g).sum(axis=-1, keepdims=True))
    d_q = scale * d_scores @ k  # dL/dq = scale * dL/ds K
    return np.linalg.norm(d_q, axis=-1)  # (2000 // n, n_q)


plain, scaled = gradients_on_q(1, 1024).mean(), gradients_on_q(1 / 32, 1024).mean()
print(f"mean |dL/dq| at d_k = 1024:  not scaled {plain:.1f}   scaled {scaled:.1f}")

# %%
predict.mean_gradient(guess_mean)

# %% [markdown]
# This mean seems to refute section 3. What happened? Some queries are still undecided, and they get huge gradients: the scale
# in front of the sum is now 1 instead of $1/32$. These carry the mean, and the mean says nothing about the typical query. The
# median does:


# %%
def medians(d_k, n=10):
    return [np.median(gradients_on_q(scale, d_k, n)) for scale in (1, d_k**-0.5)]


print(" d_k   median |dL/dq|: not scaled    scaled")
for d_k in (16, 64, 256, 1024):
    plain, scaled = medians(d_k)
    print(f"{d_k:4d} {plain:27.4f} {scaled:9.4f}")
sizes = np.sort(gradients_on_q(1, 1024).ravel())[::-1]  # (2000,), the largest first
share = sizes[:400].sum() / sizes.sum()
print("at d_k = 1024, not scaled, the fifth of the queries with the largest")
print(f"gradients makes up {share:.0%} of the sum")

# %% [markdown]
# At 16 the typical query gets *more* without the division, and at 64 as much, although less comes
# through softmax: what is missing is the factor $1/\sqrt{d_k}$ that would make the sum smaller. Only beyond 64 does it get
# less, and then soon much less. So this crossing at 64 says little about softmax. It compares two gradients of different worth:
# a step on $q$ that is equally long moves the scores $\sqrt{d_k}$ times as far without the division. Section 3, which looks at
# the scores, is the cleaner experiment. The next figure has both, this one at the left and that of section 3 at the right:

# %%
d_ks = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
on_q = np.array([medians(d) for d in d_ks])  # (9, 2)
shares = np.array([[stuck(score_gradients(d, x)) for x in (1, d**-0.5)] for d in d_ks])
figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3.4))
for i, name in enumerate(("not scaled", r"divided by $\sqrt{d_k}$")):
    left.loglog(d_ks, on_q[:, i], marker="os"[i], label=name)
    right.semilogx(d_ks, shares[:, i], marker="os"[i], label=name)
for ax, name in ((left, "median |dL/dq|"), (right, "share of stuck queries")):
    ax.set(xlabel="$d_k$", ylabel=name, xticks=d_ks[::2], xticklabels=d_ks[::2])
    ax.minorticks_off()
    ax.legend()

# %% [markdown]
# At the left the undivided curve falls from 16 on; it crosses the other near 64, and from 128 on it lies below. At the right
# the undivided one rises from 16 on.
#
# But all of this was measured with ten keys. Is 64 a property of the division, or of the ten? Here are three numbers of
# keys, and for each the median of $|\partial L / \partial q|$ without the division, as a multiple of the median with it:

# %%
rows = []
for n in (3, 10, 100):
    ratios = [np.divide(*medians(d, n)) for d in (16, 64, 256, 1024)]
    rows.append((n, *(f"{x:.2f}" for x in ratios)))
plot.table(["keys", "d_k = 16", "d_k = 64", "d_k = 256", "d_k = 1024"], rows)

# %% [markdown]
# The crossing moves. With 3 keys it lies below 16, with 100 beyond 256. So the honest sentence has conditions: *for entries of
# variance 1, most gradients on the queries vanish at large $d_k$ and a few become very large; where that begins depends on the
# number of keys.* To show it, plot the gradient on the scores, take the median and the share that is stuck, not the mean, and
# say how many keys there were.
#
# There is a limit to all of this. $W_Q$ is learned, and a fixed divisor could be folded into it: half the $W_Q$ does what
# a division by 2 does. So the division says nothing about what a head *can* be. It says where a head starts, and how far
# one step takes it. Nor is it a law: Gemma 4 brings queries and keys to one size by a norm and divides by 1
# ([source](../REFERENCES.md#heads-of-models)).
#
# Does it matter in the end? Nothing here shows that a head without the division cannot learn: a gradient is one step, and a
# training has hundreds of them. Many programs do not even step by the gradient itself: the method of notebook 04, Adam, divides
# its usual size away, and for a while it still moves a number whose gradient has become 0. Notebook 08 trains both ways.
#
# ## 4 · A knob on any softmax
#
# Dividing scores by a number $T$ before softmax is called *temperature* ([Hinton et al.
# 2015](../REFERENCES.md#hinton-2015)). A chat program has the same knob at its last layer, to make its choice of words
# bolder or duller. $\sqrt{d_k}$ is a temperature that is chosen once, from the number of entries.
#
# Here are the scores of query 2 in notebook 02's asymmetric example, where $d_k = 2$:

# %%
Q, K, V = ASYMMETRIC.project()
scores = Q @ K.T  # (n_q, n_k)
print("scores of query 2:", scores[2].round(2))

# %% [markdown] tags=["predict"]
# Attention itself divides by $T = \sqrt 2 \approx 1.41$, one of the places of the slider below. **Predict.** Which keys does
# query 2 look at if $T$ is very small? And if it is very large?


# %%
def at_temperature(T):
    return {"weights": al.softmax(scores / T)}


stops = [0.1, 0.2, 0.5, 1.0, 1.41, 2.0, 5.0, 10.0, 100.0]
knob = live.weights_view(at_temperature, T=stops, still=(0.1, 1.41, 10.0), row=2)
knob

# %% [markdown]
# Towards 0 each query gives all to its largest score: softmax becomes the hard maximum that it is named after. Towards
# infinity all keys get the same, and the scores do not matter any more. The order of the keys in a row never changes: a temperature turns up or down how much a difference counts, and adds none of its own.

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# A number may be a formula: `my_number = 2**0.5`.

# %% [markdown] tags=["exercise"]
# ### Exercise 3.1 · Measure it
#
# **Goal.** Complete the line that returns the variance of all raw scores. *3 minutes, easy.*
#
# `my_variance(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give one number, the variance of all $n_q \cdot n_k$ scores about
# their own mean, which need not be 0 here.


# %%
def my_variance(query, key):
    scores = query @ key.T  # (n_q, n_k)
    return ...  # your code


# %%
verdict = check.variance_of_scores(my_variance)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_variance(query, key):
#     scores = query @ key.T  # (n_q, n_k)
#     return np.var(scores)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 3.2 · How undecided is a query?
#
# **Goal.** Write the entropy of each row of weights. *8 minutes, medium.*
#
# `my_entropy(weights)`: $(..., n_q, n_k)$ gives $(..., n_q)$, in nats, $-\sum_j w_j \ln w_j$: the entropy itself, not
# $e^H$. A key of weight 0 is not in play, and adds 0.


# %%
def my_entropy(weights):
    return ...  # your code


# %%
verdict = check.entropy(my_entropy)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_entropy(weights):
#     logarithm = np.log(np.where(weights > 0, weights, 1))  # ln 1 = 0 where the weight is 0
#     return -(weights * logarithm).sum(axis=-1)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 3.3 · Other entries
#
# **Goal.** Find the positive divisor that brings the variance of scores to 1, for uniform entries and $d_k = 36$. *4 minutes,
# medium.*
#
# All entries of $q$ and $k$ are independent and uniform in $-1 .. 1$. Their variance is $1/3$.

# %%
my_uniform_divisor = None  # one number

# %%
verdict = check.uniform_divisor(my_uniform_divisor)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_uniform_divisor = (36 * 1 / 3 * 1 / 3) ** 0.5  # variance of a score: d_k times var(q_c) times var(k_c)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 3.4 · Scores that stay in range
#
# **Goal.** Design scores whose variance is near 1 whatever the size of the entries. *8 minutes, hard.*
#
# `my_scores(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give $(n_q, n_k)$. The entries have mean 0, but queries may come
# with any variance, keys with another, and $d_k$ is any number. Three things are asked for:
#
# - The variance of your scores is between 0.8 and 1.25.
# - They are large where the dot products are: where all queries have one size, and all keys have one size, your scores and
#   the plain dot products have a correlation of 0.9 or more.
# - A score depends on its own query and its own key only, for a model that writes word by word must not find its old scores
#   changed by the next word. So one call may hold small tokens and large ones. Then the first two must hold for the scores of
#   the small ones, taken alone, and for those of the large ones, taken alone.
#
# There are several good ways. Some of today's models use one of them, which notebook 12 calls *QK-norm*.


# %%
def my_scores(query, key):
    return ...  # your code


# %%
verdict = check.scores_in_range(my_scores)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_scores(query, key):
#     def at_length_root_d_k(x):  # each vector by itself: no score depends on the other tokens
#         return x / np.sqrt((x**2).mean(axis=-1, keepdims=True))
#
#     return at_length_root_d_k(query) @ at_length_root_d_k(key).T / np.sqrt(query.shape[-1])
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. In `spread`, set $d_k$ to 64 and go through the draws. In how many of ten does query 0 give one key more than 0.9
#    at the left? (In 7 of the draws 0 to 9.)
# 2. Take the mean of `gradients_on_q` for $d_k = 16$. Is the one without the division larger there, too? (Yes, by a
#    factor of almost 3.)
#
# **Remember.** A dot product of $d_k$ independent terms of variance 1 has variance $d_k$. Dividing by $\sqrt{d_k}$ undoes that,
# so that softmax starts undecided. Without it less and less comes back through softmax: with ten keys the typical gradient on a
# score is ten times smaller at $d_k = 64$. On the query itself the missing divisor makes up for that until $d_k$ is about 64
# (more, if there are more keys), and the mean hides it altogether. Next: [04 PyTorch module](04_pytorch_module.ipynb), where a
# head learns.

# %% [markdown]
# # 03 · Why divide by the square root of $d_k$?
#
# **Question.** Attention divides its scores by $\sqrt{d_k}$. What goes wrong without, at which $d_k$ does it go wrong, and
# what is said about it that does not hold? *40 minutes.*
#
# In notebook 01 the division hardly mattered: the vectors had three entries, and the largest weight fell from 0.98 to 0.91.
# The heads of real models have 32, 64 or 128. [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) give their reason in
# one sentence: for large $d_k$ dot products grow large and push softmax into regions with very small gradients. That
# sentence has three links: large scores, a one-sided softmax, small gradients. You will measure each of them.
#
# All queries and keys in this notebook are random numbers, and for once that is the point: such is a head before it has
# learned anything, and how it starts decides how well it can learn.

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

# %% [markdown]
# ## 1 · How large is a score?
#
# A score is a sum of $d_k$ products, one for each entry of the query and the key: $q \cdot k = q_1 k_1 + q_2 k_2 + \dots$
# Let all entries be drawn independently, with mean 0 and variance 1. Then each product pushes the score up or down, and
# by about 1. With 64 entries the score is pushed 64 times, sometimes up and sometimes down.
#
# **Predict.** How far from 0 does it typically end? In other words: what is the standard deviation of the scores at
# $d_k = 64$?
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
# Read the second column: up to chance, the variance is $d_k$. The last column is what attention uses instead. It stays
# near 1 at any $d_k$, and that is all the division does.
#
# Here is the same as a picture. The histograms are those of 9216 scores: raw at the left, divided at the right, on one
# axis. The points under a histogram are the scores of one query with its 8 keys, the map holds the weights that softmax
# makes of such scores, and the bars repeat the framed row. **Try.** Move $d_k$ from 4 to 256. The left histogram grows
# wider, and the right one stays. Watch the points: softmax sees only how far they lie apart. At which $d_k$ does one key
# take more than 0.9 at the left? Another query and another draw answer differently.

# %%
spread = live.scores(d_k=(4, 256))
spread

# %% [markdown]
# Why exactly $d_k$? Take one product, of entry $c$. Both factors have mean 0 and are independent, so the product has mean
# 0, too, and its variance is $\mathrm{var}(q_c k_c) = E[q_c^2]\,E[k_c^2] = 1 \cdot 1$. The score adds $d_k$ of them, and
# variances of independent terms add up:
#
# $$\mathrm{var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{var}(q_c k_c) = d_k.$$
#
# The standard deviation is the root of that. So dividing by $\sqrt{d_k}$ brings it back to 1. The argument has a
# condition, and you will need it later: the entries must have variance 1.
#
# ## 2 · What softmax makes of large scores
#
# Softmax compares by differences: a key whose score is larger by 8 gets $e^8 \approx 2981$ times the weight. Two numbers
# say how one-sided, or *peaky*, a row of weights is. One is its **largest weight**. The other is its **entropy**
# ([Shannon 1948](../REFERENCES.md#shannon-1948)), $H = -\sum_j w_j \ln w_j$, in nats. It is 0 if one key has everything,
# and $\ln n_k$ if all $n_k$ keys have the same. Read it as a count: $e^H$ is the number of keys that are still in play.


# %%
def peakiness(d_k, scale, n=10, draws=200):
    r = np.random.default_rng(d_k)
    q, k = r.normal(size=(2, draws, n, d_k))  # (draws, n, d_k)
    weights = al.softmax(q @ k.swapaxes(-1, -2) * scale)  # (draws, n_q, n_k)
    return weights.max(axis=-1).mean(), al.entropy(weights).mean()


print(f"largest possible entropy: ln 10 = {np.log(10):.4f};  exp(8) = {np.exp(8):.0f}")
rows, largest = [], ["largest weight", "largest, scaled"]
for d_k in (1, 16, 64, 256, 1024):
    (w0, h0), (w1, h1) = peakiness(d_k, 1), peakiness(d_k, 1 / np.sqrt(d_k))
    rows.append((d_k, w0, w1, h0, h1))
plot.table(["d_k", *largest, "entropy", "entropy, scaled"], rows, tint=largest)

# %% [markdown]
# Without the division attention turns into picking one key as $d_k$ grows. With it, a query stays undecided, and equally
# so at each $d_k$ from 16 on.
#
# Why does a long vector pick? Where $d_k = 2$ you can see it. A score is the length of the query times how far the key
# reaches along it: the feet of the dashed lines. **Try.** Keep the angle and move the length from 0 to 4. All scores grow
# by the same factor, the largest weight grows, and the output moves from the middle of the triangle towards a corner.

# %%
in_the_plane = live.plane()
in_the_plane

# %% [markdown]
# Now a query with $d_k$ entries of variance 1. The mean of its squared length is $d_k$, so it is about $\sqrt{d_k}$ long:
# at $d_k = 64$ a longer arrow than any this picture can show. Dividing by $\sqrt{d_k}$ takes that length away again.
#
# ## 3 · What reaches the scores in training
#
# Is a peaky softmax bad? A head that picks one key may be a good head, if it picks the right one. A fresh head has picked
# by chance, so the question is whether training can still change its mind. Five sentences are needed for that:
#
# 1. Training needs one number that says how wrong a model is, the **loss** $L$.
# 2. The **gradient** $\partial L / \partial x$ of a number $x$ in the model says how much $L$ changes when $x$ is increased
#    a little, and training moves $x$ a small step against it.
# 3. A number whose gradient is 0 is not moved: from this example it learns nothing.
# 4. A model is a chain of steps, and by the **chain rule** the gradient at the beginning of a step is the gradient at its
#    end times the derivative of the step; so gradients are computed backwards, from the loss to the first matrix.
# 5. All that $W_Q$ and $W_K$ ever learn comes back through the scores, so where the gradient on the scores is 0, they
#    learn nothing.
#
# So what does softmax let through? Let $g_j = \partial L / \partial w_j$ be the gradient that arrives at the weights of
# one query. Then its scores $s_j$ get
#
# $$\frac{\partial L}{\partial s_j} = w_j \Big(g_j - \sum_m w_m\, g_m\Big).$$
#
# Read it for a row that is nearly one-hot. Where $w_j \approx 0$, the first factor vanishes. Where $w_j \approx 1$, the sum
# is nearly $g_j$, and the bracket vanishes. So every entry is near 0. That is a formula; the next cell compares it with a
# measurement, where each score is moved by a millionth up and down:

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
# Now many: 200 draws of 10 queries and 10 keys, with a random $g$. Two statistics for each $d_k$: the **median** over the
# queries of the mean $|\partial L / \partial s_j|$, and the share of **dead** queries, all of whose gradients are below
# 0.001 in size.


# %%
def score_gradients(d_k, scale, seed=0):
    r = np.random.default_rng(seed)
    q, k = r.normal(size=(200, 10, d_k)), r.normal(size=(200, 10, d_k))
    g = r.normal(size=(200, 10, 10))  # dL/dweights
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)  # (200, n_q, n_k)
    return w, g, w * (g - (w * g).sum(axis=-1, keepdims=True))


# %%
print(" d_k    median: plain    scaled     dead: plain  scaled")
for d_k in (1, 16, 64, 256, 1024):
    w0, g0, plain = score_gradients(d_k, 1)
    w1, g1, scaled = score_gradients(d_k, 1 / np.sqrt(d_k))
    medians = [np.median(np.abs(s).mean(axis=-1)) for s in (plain, scaled)]
    dead = [live.dead_share(w0, g0), live.dead_share(w1, g1)]
    columns = f"{medians[0]:15.1e} {medians[1]:10.1e} {dead[0]:12.0%} {dead[1]:7.0%}"
    print(f"{d_k:4d} {columns}")

# %% [markdown]
# At $d_k = 1024$ the scores of a typical query get practically nothing without the division, and about seven queries in
# ten are dead. With it, none is, at any $d_k$. So far the sentence of the paper holds, link by link.
#
# ## Break it · The obvious experiment
#
# You want to show this in class. The obvious experiment goes one step further back, to the query itself, and takes the
# **mean** size of its gradient, $|\partial L / \partial q|$, over all queries.
#
# **Predict.** At $d_k = 1024$, how does the mean without the division compare with the mean with it?
#
# - **a** it is smaller
# - **b** it is about equal
# - **c** it is larger

# %%
guess_mean = None  # "a", "b" or "c"


# %%
def gradients_on_q(scale, d_k, d_v=16, seed=3):
    r = np.random.default_rng(seed)
    q, k, v = (r.normal(size=(200, 10, d)) for d in (d_k, d_k, d_v))
    # A random dL/doutput, taken back through the values: dL/dweights.
    g = r.normal(size=(200, 10, d_v)) @ v.swapaxes(-1, -2)
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)
    d_scores = w * (g - (w * g).sum(axis=-1, keepdims=True))
    d_q = scale * d_scores @ k  # dL/dq = scale * dL/ds K
    return np.linalg.norm(d_q, axis=-1)  # (200, n_q)


plain, scaled = gradients_on_q(1, 1024).mean(), gradients_on_q(1 / 32, 1024).mean()
print(f"mean |dL/dq| at d_k = 1024:  plain {plain:.1f}   scaled {scaled:.1f}")

# %%
predict.mean_gradient(guess_mean)

# %% [markdown]
# A plot of that mean refutes the lecture, in front of the class. What happened? Some queries are still undecided, and
# they get huge gradients: in $\partial L/\partial q = \text{scale} \cdot \partial L / \partial s\; K$ the scale is now 1
# instead of $1/32$. These carry the mean, and the mean says nothing about the typical query. The median does:

# %%
print(" d_k   median |dL/dq|: plain    scaled")
for d_k in (16, 64, 256, 1024):
    plain = np.median(gradients_on_q(1, d_k))
    scaled = np.median(gradients_on_q(d_k**-0.5, d_k))
    print(f"{d_k:4d} {plain:22.4f} {scaled:9.4f}")
sizes = np.sort(gradients_on_q(1, 1024).ravel())[::-1]  # (2000,), the largest first
share = sizes[:400].sum() / sizes.sum()
print(f"at d_k = 1024, plain, one query in five carries {share:.0%} of the mean")

# %% [markdown]
# Read this table twice, for it says at which $d_k$ the argument bites. At 16 the typical query gets *more* without the
# division, and at 64, the size of a head in the paper, as much: less comes through softmax, but nothing divides $K$
# afterwards. Only beyond does it fall behind, and then quickly. The next figure fills the gaps:

# %%
d_ks = [4, 8, 16, 32, 64, 128, 256, 512, 1024]
figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3.4))
for power, name in ((0, "not scaled"), (-0.5, "divided by sqrt(d_k)")):
    medians = [np.median(gradients_on_q(d**power, d)) for d in d_ks]
    dead = [live.dead_share(*score_gradients(d, d**power)[:2]) for d in d_ks]
    left.loglog(d_ks, medians, marker="os"[power < 0], label=name)
    right.semilogx(d_ks, dead, marker="os"[power < 0])
for ax, name in ((left, "median |dL/dq|"), (right, "share of dead queries")):
    ax.set(xlabel="d_k", ylabel=name, xticks=d_ks[::2], xticklabels=d_ks[::2])
    ax.minorticks_off()
_ = left.legend()

# %% [markdown]
# The curves cross near 64, and from 128 on the undivided one falls. The right panel adds what a median hides: at 64
# every fifth query is dead already. So the honest sentence is: *at large $d_k$ most gradients vanish and a few explode;
# at 64 some vanish, and the typical one is as large as with the division.* To show it, plot the median and the dead
# share, not the mean.
#
# And does it matter in the end? A gradient is one step, and a training has hundreds of them. Notebook 08 trains both ways.
#
# ## 4 · A knob on any softmax
#
# Dividing scores by a number $T$ before softmax is called *temperature* ([Hinton et al.
# 2015](../REFERENCES.md#hinton-2015)). A chat program has the same knob at its last layer, to make its choice of words
# bolder or duller. $\sqrt{d_k}$ is a temperature that is chosen once, by the length of the vectors.
#
# Below are the scores of notebook 02's asymmetric example, where $d_k = 2$. **Predict.** One stop of the slider is what
# attention itself uses here. Which $T$ is it? And which keys does query 2 look at if $T$ is very small, or very large?

# %%
Q, K, V = ASYMMETRIC.project()
scores = Q @ K.T  # (n_q, n_k)


def at_temperature(T):
    return {"weights": al.softmax(scores / T)}


stops = [0.1, 0.2, 0.5, 1.0, 1.41, 2.0, 5.0, 10.0, 100.0]
knob = live.weights_view(at_temperature, T=stops, still=(0.1, 1.41, 10.0), row=2)
knob

# %% [markdown]
# $T = \sqrt 2 \approx 1.41$ is attention as it is. Towards 0 each query gives all to its largest score: softmax becomes
# the hard maximum that it is named after. Towards infinity all keys get the same, and the scores do not matter any more. The order of the
# keys in a row never changes: a temperature turns up or down how much a difference counts, and adds none of its own.

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# A number may be a formula: `my_number = 2**0.5`.

# %% [markdown]
# ### Exercise 3.1 · Measure it
#
# **Goal.** Complete the line that returns the variance of all raw scores. *3 minutes, easy.*
#
# `my_variance(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give one number. Section 1 paired each query with one key of its
# own; here every query meets every key.


# %%
def my_variance(query, key):
    scores = query @ key.T  # (n_q, n_k)
    return ...  # your code


# %%
verdict = check.variance_of_scores(my_variance)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_variance(query, key):
#     scores = query @ key.T  # (n_q, n_k)
#     return np.var(scores)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.2 · How undecided is a query?
#
# **Goal.** Write the entropy of each row of weights. *8 minutes, medium.*
#
# `my_entropy(weights)`: $(..., n_q, n_k)$ gives $(..., n_q)$, in nats, $-\sum_j w_j \ln w_j$. A key of weight 0 is not in
# play, and adds 0.


# %%
def my_entropy(weights):
    return ...  # your code


# %%
verdict = check.entropy(my_entropy)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_entropy(weights):
#     logarithm = np.log(np.where(weights > 0, weights, 1))  # ln 1 = 0 where the weight is 0
#     return -(weights * logarithm).sum(axis=-1)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.3 · Other entries
#
# **Goal.** Find the divisor that brings the variance of scores to 1, for uniform entries and $d_k = 36$. *4 minutes,
# medium.*
#
# All entries of $q$ and $k$ are independent and uniform in $-1 .. 1$. Their variance is $1/3$.

# %%
my_uniform_divisor = None  # one number

# %%
verdict = check.uniform_divisor(my_uniform_divisor)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_uniform_divisor = (36 * 1 / 3 * 1 / 3) ** 0.5  # variance of a score: d_k times var(q_c) times var(k_c)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.4 · Scores that stay in range
#
# **Goal.** Design scores whose variance is near 1 whatever the size of the entries. *8 minutes, hard.*
#
# `my_scores(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give $(n_q, n_k)$. The entries have mean 0, but queries may come
# with any variance, keys with another, and $d_k$ is any number. Your scores should have a variance between 0.8 and 1.25,
# and still be large where the dot product is large. There are several good ways; today's models use one of them, and
# notebook 12 comes back to it.


# %%
def my_scores(query, key):
    return ...  # your code


# %%
verdict = check.scores_in_range(my_scores)
verdict

# %% [markdown]
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

# %% [markdown]
# ## Try it
#
# 1. In `spread`, set $d_k$ to 64 and go through the draws. In how many of ten does query 0 give one key more than 0.9
#    at the left?
# 2. Take the mean of `gradients_on_q` for $d_k = 16$. Is the one without the division larger there, too? (Yes, by a
#    factor of almost 3.)
#
# **Remember.** A dot product of $d_k$ unit-variance terms has variance $d_k$. Dividing by $\sqrt{d_k}$ undoes that, so
# that softmax stays undecided enough to learn. Well beyond $d_k = 64$ the typical gradient is lost without it, which the
# mean does not show. Next: [04 PyTorch module](04_pytorch_module.ipynb), where a head learns.

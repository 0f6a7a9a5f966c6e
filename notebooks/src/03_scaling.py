# %% [markdown]
# # 03 · Why divide by the square root of $d_k$?
#
# **Question.** Attention divides its scores by $\sqrt{d_k}$. What goes wrong without, and when does the division not
# help? *40 minutes.*
#
# [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) give the reason in one sentence: for large $d_k$ dot products grow large and push softmax into
# regions with very small gradients. This notebook measures each part of that sentence.

# %%
import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import BY_HAND

rng = np.random.default_rng(0)

# %% [markdown]
# ## 1 · The variance of a dot product is $d_k$
#
# Let the entries of $q$ and $k$ be independent with mean 0 and variance 1. The product of two such entries has mean 0
# and variance 1, too: $\mathrm{var}(q_c k_c) = E[q_c^2]\,E[k_c^2] = 1$. The dot product adds $d_k$ independent products,
# and variances of independent terms add up:
#
# $$\mathrm{var}(q \cdot k) = \sum_{c=1}^{d_k} \mathrm{var}(q_c k_c) = d_k.$$
#
# Dividing by $\sqrt{d_k}$ divides the variance by $d_k$. **Predict.** What standard deviation do raw scores have at
# $d_k = 64$?
#
# - **a** 1
# - **b** 8
# - **c** 64

# %%
guess_std = None  # "a", "b" or "c"

# %%
rows = []
for d_k in (1, 4, 16, 64, 256, 1024):
    q, k = rng.normal(size=(2, 4000, d_k))
    dots = (q * k).sum(axis=-1)  # (4000,)
    scaled = dots / np.sqrt(d_k)
    rows.append((d_k, dots.var(), dots.std(), scaled.var()))
plot.table(["d_k", "var(q.k)", "std(q.k)", "var(q.k / sqrt(d_k))"], rows)

# %%
predict.score_std(guess_std)

# %% [markdown]
# The same as a picture: 9216 scores of random queries and keys, and under them the 8 scores of one query, with their
# softmax. **Try.** Move $d_k$ from 4 to 256. The left histogram grows wider, the right one stays; at which $d_k$ does one
# key take more than 0.9 on the left? Another query and another draw answer differently.

# %%
spread = live.scores(d_k=(4, 256))
spread

# %% [markdown]
# ## 2 · Large scores make softmax peaky
#
# Softmax compares by differences: a score larger by 8 gets $e^8 \approx 2981$ times the weight. Two numbers say how
# peaky a row of weights is: its **largest weight**, and its **entropy** ([Shannon
# 1948](../REFERENCES.md#shannon-1948)) $H = -\sum_j w_j \ln w_j$ (in nats), which runs
# from 0 (one key has everything) to $\ln n_k$ (all keys equal).


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
# Why a long vector picks can be seen where $d_k = 2$. A score is the length of the query times how far the key reaches
# along it: the feet of the dashed lines. **Try.** Keep the angle and move the length from 0 to 4: all scores grow by the
# same factor, the largest weight grows, and the output moves from the middle of the triangle towards a corner.

# %%
in_the_plane = live.plane()
in_the_plane

# %% [markdown]
# A vector of $d_k$ entries with variance 1 is about $\sqrt{d_k}$ long, since the mean of its squared length is $d_k$.
# Dividing by $\sqrt{d_k}$ takes that length away again.

# %% [markdown]
# Unscaled attention turns into picking one key. Scaled attention stays about equally broad. See it move: the left map is
# not scaled, the right one is, the bars show the framed query. "Dead queries" are explained in the next section.

# %%
view = live.scaling(n=8, d_k=(1, 512), row=4)
view

# %% [markdown]
# ## 3 · Peaky softmax passes on hardly any gradient
#
# Training moves the scores along the gradient of the loss $L$. With $g_j = \partial L / \partial w_j$, the gradient that
# arrives at the weights, the chain rule through softmax gives
#
# $$\frac{\partial L}{\partial s_j} = w_j \Big(g_j - \sum_k w_k\, g_k\Big).$$
#
# If $w_j \approx 0$ the first factor vanishes. If $w_j \approx 1$ the bracket does. A one-hot row passes on nothing.
# First a check of the formula against a finite difference:

# %%
scores, g = rng.normal(size=5), rng.normal(size=5)


def loss(s):
    return (al.softmax(s) * g).sum()


w = al.softmax(scores)
by_formula = w * (g - (w * g).sum())
by_difference = [(loss(scores + h) - loss(scores - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
print("largest difference below 1e-8:", np.abs(by_formula - by_difference).max() < 1e-8)

# %% [markdown]
# Now 200 draws of 10 queries and 10 keys with a random $g$. Two statistics per $d_k$: the **median** over queries of the
# mean $|\partial L / \partial s_j|$, and the share of **dead** queries, whose gradients are all below 0.001.


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
# At $d_k = 1024$ the typical unscaled query learns practically nothing, and about seven in ten are dead. Scaled, none is.
#
# ## Break it · The plot that refutes the lecture
#
# "Gradients vanish" suggests an experiment: take the **mean** size of the gradient on $q$. **Predict.** At $d_k = 1024$,
# how does the unscaled mean compare with the scaled one?
#
# - **a** smaller
# - **b** about equal
# - **c** larger

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
# It is **larger**. The queries that are still undecided get huge gradients, because nothing divides $K$ in
# $\partial L/\partial q = \text{scale} \cdot \partial L / \partial s\; K$, and they carry the mean. What does the
# **typical** query get, the median?

# %%
print(" d_k   median |dL/dq|: plain    scaled")
for d_k in (16, 64, 256, 1024):
    plain = np.median(gradients_on_q(1, d_k))
    scaled = np.median(gradients_on_q(d_k**-0.5, d_k))
    print(f"{d_k:4d} {plain:22.4f} {scaled:9.4f}")

# %% [markdown]
# At $d_k = 16$ the typical unscaled query gets *more* than the scaled one, at 64 as much: the gradient on its scores is
# smaller, and the missing division of $K$ makes up for it. The argument bites beyond: at 256 less than a tenth is left,
# and at 1024 next to nothing. So say "at large $d_k$ most gradients vanish and a few explode", and plot the median and
# the dead share, not the mean.

# %%
d_ks = [1, 4, 16, 64, 256, 1024]
powers = {"not scaled": 0, "divided by sqrt(d_k)": -0.5}
figure, ax = plot.subplots(figsize=(6, 3.4))
for (name, power), marker in zip(powers.items(), "os"):
    share = [live.dead_share(*score_gradients(d, d**power)[:2]) for d in d_ks]
    ax.semilogx(d_ks, share, marker=marker, label=name, base=2)
ax.set(xlabel="d_k", ylabel="share of dead queries", ylim=(-0.03, 1))
ax.set_xticks(d_ks, d_ks)
_ = ax.legend()

# %% [markdown]
# ## 4 · The right $d_k$ is that of one head
#
# A multi-head layer of width 256 with 8 heads takes dot products of $256 / 8 = 32$ entries. A widely copied class ([S0](../REFERENCES.md#s0)) divides
# by $\sqrt{256} = 16$ all the same. **Predict.** Are its weights too peaky or too flat?

# %%
r = np.random.default_rng(22)
q, k = r.normal(size=(2, 32, 8, 10, 32))  # (b, h, n, head_dim)
dots = q @ k.swapaxes(-1, -2)  # (b, h, n_q, n_k)
for name, scale in (("sqrt(256)", 16), ("sqrt(32) ", np.sqrt(32))):
    weights = al.softmax(dots / scale)
    variance, H = (dots / scale).var(), al.entropy(weights).mean()
    print(f"divided by {name}: variance {variance:.2f}   mean entropy {H:.2f} nats")

# %% [markdown]
# Too flat: nearly the entropy of equal weights. The code runs, the shapes are right, and the heads can hardly choose.
#
# ## 5 · When dividing does not bring the variance to 1
#
# The derivation assumed $q$ and $k$ with variance 1. In a layer, $q = x W_Q$, and its variance depends on how $W_Q$ was
# drawn. Three ways for $W_Q$ and $W_K$ of size 64 x 64, with unit-normal tokens (Xavier: [Glorot and Bengio
# 2010](../REFERENCES.md#glorot-2010)). Each draws evenly from a range:

# %%
r = np.random.default_rng(90)
xavier = np.sqrt(6 / (64 + 64))
ranges = {"nn.Linear's default": (-1 / 8, 1 / 8), "torch.rand": (0, 1)}
ranges["Xavier"] = (-xavier, xavier)
for name, (low, high) in ranges.items():
    tokens_q, tokens_k = r.normal(size=(2, 1000, 64))  # (n, d_in)
    W_Q, W_K = r.uniform(low, high, size=(2, 64, 64))  # (d_in, d_k)
    scaled = (tokens_q @ W_Q) @ (tokens_k @ W_K).T / 8  # (n_q, n_k)
    print(f"{name:<20} variance of q.k / sqrt(d_k) = {scaled.var():.2f}")

# %% [markdown]
# nn.Linear's default gives about $1/9$, since each entry of $q$ has variance $1/3$ (notebook 04 shows why). Only the
# Xavier draw comes out near 1. `torch.rand` is in the thousands. It fills the matrix with positive numbers, so all columns
# are alike, and so are all entries of one query. How alike are the queries?

# %%
r = np.random.default_rng(91)
for name in ("torch.rand", "Xavier"):
    q = r.normal(size=(1000, 64)) @ r.uniform(*ranges[name], size=(64, 64))  # (n, d_k)
    unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(1000, k=1)]  # of all pairs
    apart = [(cosines > 0.7).mean(), (cosines < -0.7).mean()]
    on_line = (q.sum(axis=-1) ** 2 / 64).sum() / (q**2).sum()
    print(
        f"{name:<10} cosine > 0.7: {apart[0]:3.0%}   < -0.7: {apart[1]:3.0%}", end="   "
    )
    print(f"of |q|^2 along (1, ..., 1): {on_line:.0%}")

# %% [markdown]
# Under `torch.rand` queries lie mostly along one line, that of $(1, ..., 1)$, which holds three quarters of their squared
# length: some point one way, as many the other. So the 64 products of a score mostly have one sign. "Dividing
# by $\sqrt{d_k}$ keeps the variance near 1" is true **if** $q$ and $k$ have variance 1. Tokens of variance 1, as layer
# norm makes them, are not enough: the tokens above have it. The draw of $W_Q$ and $W_K$ must keep it.
#
# ## 6 · Temperature is the same knob
#
# Dividing scores by a number $T$ before softmax is called *temperature* ([Hinton et al.
# 2015](../REFERENCES.md#hinton-2015)). $\sqrt{d_k}$ is a temperature that grows with
# the vectors. $T \to 0$ picks the largest score, $T \to \infty$ shares equally.

# %%
Q, K, V = BY_HAND.project()
for T in (0.1, 1, 3**0.5, 10, 1000):
    weights = al.attention_trace(Q, K, V, scale=1 / T).weights[2]
    H = al.entropy(weights)
    print(f"T = {T:8.4f}   weights of query 2: {weights.round(4)}   entropy {H:.4f}")

# %%
maps = np.stack(
    [al.attention_trace(Q, K, V, scale=1 / T).weights for T in (1, 3**0.5, 10)]
)
figure = plot.head_grid(maps, titles=["T = 1 (not scaled)", "T = sqrt(d_k)", "T = 10"])

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# A number may be a formula: `my_number = 2**0.5`.

# %% [markdown]
# ### Exercise 3.1 · How large is a score?
#
# **Goal.** Find the standard deviation of raw scores at $d_k = 144$. *2 minutes, easy.*
#
# All entries are independent, with mean 0 and variance 1.

# %%
my_score_std = None  # one number

# %%
verdict = check.score_std(my_score_std)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_score_std = 144**0.5  # the variance is d_k
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.2 · Measure it
#
# **Goal.** Write a function that returns the variance of all raw scores. *5 minutes, easy.*
#
# `my_variance(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give one number. The scores are not scaled.


# %%
def my_variance(query, key):
    return ...  # your code


# %%
verdict = check.variance_of_scores(my_variance)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_variance(query, key):
#     return np.var(query @ key.T)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.3 · How undecided is a query?
#
# **Goal.** Write the entropy of each row of weights. *8 minutes, medium.*
#
# `my_entropy(weights)`: $(..., n_q, n_k)$ gives $(..., n_q)$, in nats, $-\sum_j w_j \ln w_j$. Masked keys have weight
# 0, and add 0.


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
# ### Exercise 3.4 · The divisor of a head
#
# **Goal.** Find what a layer with $d_{model} = 768$ and 12 heads divides its scores by. *2 minutes, medium.*
#
# These are the sizes of BERT and of the smallest GPT-2 ([sources](../REFERENCES.md#models)).

# %%
my_head_divisor = None  # one number

# %%
verdict = check.head_divisor(my_head_divisor)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_head_divisor = (768 / 12) ** 0.5  # d_k of one head
# ```
#
# </details>

# %% [markdown]
# ### Exercise 3.5 · Other entries
#
# **Goal.** Find the divisor that brings the variance of scores to 1, for uniform entries and $d_k = 36$. *4 minutes,
# hard.*
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
# ## Try it
#
# 1. In `view`, find the smallest $d_k$ at which a query of the left map dies.
# 2. Take the mean of `gradients_on_q` for $d_k = 16$. Is the unscaled one still larger? (Yes, though less.)
#
# **Remember.** A dot product of $d_k$ unit-variance terms has variance $d_k$. Dividing by $\sqrt{d_k}$ undoes that, so
# that softmax stays undecided enough to learn. The $d_k$ is that of the vectors that are multiplied: one head's.
# Next: [04 PyTorch module](04_pytorch_module.ipynb).

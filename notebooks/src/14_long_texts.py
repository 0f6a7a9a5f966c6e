# %% [markdown]
# # 14 · Long texts
#
# **Question.** What happens to a softmax when a text grows long, and how is it computed without its map? *25 minutes. It needs no
# torch.*
#
# The picture shows the scores of a head without a mask. A softmax over whole rows needs all of them at once. Taken in **blocks** of keys,
# only one column of blocks exists at a time.

# %% jupyter={"source_hidden": true}
import tracemalloc

import numpy as np
from matplotlib.patches import Rectangle

import attnlib as al
from attnlib import live, plot
from attnlib.colours import KEY, LINE
from attnlib.course import check, predict
from attnlib.examples import SENTENCE

np.set_printoptions(precision=4, suppress=True)

# %% jupyter={"source_hidden": true}
_, axes = plot.subplots(1, 2, figsize=(6.2, 3.1))
for ax, title in zip(axes, ("whole rows: 256 scores", "in blocks of 4: 64 scores")):
    _ = ax.add_patch(Rectangle((0, 0), 16, 16, fill=False, ec=LINE))
    wide = 16 if ax is axes[0] else 4
    left = 0 if ax is axes[0] else 8
    _ = ax.add_patch(Rectangle((left, 0), wide, 16, fc=KEY, alpha=0.5))
    _ = ax.text(8, 17.5, "16 keys", ha="center")
    _ = ax.text(-1.5, 8, "16 queries", va="center", rotation=90)
    _ = ax.set(xlim=(-2, 16.2), ylim=(18, -0.2), aspect="equal", title=title)
    _ = ax.axis("off")

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook 13)* Many heads of the language model put much weight on the first token of a text. Why?
#
# - **a** a row with no fitting key would be NaN
# - **b** each row sums to 1, so weight that no word should get must go somewhere
# - **c** the first token means more than the others
#
# **2.** *(notebook 12)* A query and a key are rotated by RoPE. Both tokens move on by 100 positions. Their score?
#
# - **a** it grows
# - **b** it changes, because both angles change
# - **c** it stays
#
# **3.** *(notebook 06)* A fused kernel computes attention block by block. What can it not give you?
#
# - **a** the map of weights
# - **b** the exact output
# - **c** a causal mask

# %%
predict.before_14(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown] tags=["predict"]
# ## 1 · The room gets fuller
#
# Notebook 03 divided by $\sqrt{d_k}$, and the scores of *unrelated* vectors stopped growing. A sentence of four words is too short
# for what comes now, so we take random vectors. One key is just what a query looks for, equal to it: the **needle**. Its score is
# about $d_k / \sqrt{d_k} = \sqrt{d_k}$, so 8 at $d_k = 64$. All other keys are the **crowd**. Among 64 keys the needle gets 0.94
# of the weight. **Predict.** And among 1024?
#
# - **a** clearly less, although no score has changed
# - **b** clearly less, since scores shrink as the sequence grows
# - **c** about as much: it leads by 8, and $e^8 = 2981$

# %%
guess_crowd = None  # "a", "b" or "c"


# %%
def dots(q, k):
    return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


rng = np.random.default_rng(5)
queries, keys = rng.normal(size=(64, 256)), rng.normal(size=(16_384, 256))


def needle(d_k, n):
    q, k = queries[:, :d_k], keys[: n - 1, :d_k]  # (64, d_k), (n - 1, d_k)
    own = dots(q, q).diagonal()[:, None]  # (64, 1): a key equal to the query
    return al.softmax(np.concatenate([own, dots(q, k)], axis=-1))[:, 0]  # (64,)


# %%
SIZES = (64, 1024, 16_384)
rows = []
for d_k in (16, 64, 256):
    tie = np.exp(np.sqrt(d_k) - 0.5)  # explained below
    rows.append((d_k, *(needle(d_k, n).mean() for n in SIZES), f"{tie:.0f}"))
names = [f"needle, n = {n}" for n in SIZES]
plot.table(["d_k", *names, "needle = crowd at n"], rows, tint=names)

# %%
predict.crowd(guess_crowd)

# %% [markdown]
# Each key that joins changes no score and makes the crowd larger. The score $s$ of a random key has mean 0 and variance 1, and the mean of $e^s$ is
# $e^{1/2} = 1.65$, because large scores count for more than small ones. So $n$ random keys weigh $n e^{1/2}$ against the needle's
# $e^{\sqrt{d_k}}$. They are even at $n = e^{\sqrt{d_k} - 1/2}$, the last column: 33 keys at $d_k = 16$, 1808 at 64, five million at
# 256. So $d_k$ and $n$ belong together, and $\sqrt{d_k}$ is half the story.

# %% [markdown]
# <details><summary>How sure is this?</summary>
#
# These are fresh vectors; training can make $W_Q$ larger and a head sharper. By the sum the needle should have 0.10 at $d_k = 64$
# and 16,384 keys, and the table says 0.19. The sum is for a query of length $\sqrt{d_k}$. A longer query has a needle with a higher
# score, and the long ones carry the mean: *Controls* separates them.
#
# </details>

# %% [markdown]
# ## 2 · Who controls the softmax?
#
# Two more things can go wrong. One key may have a huge norm: an **outlier**. If it is long enough, it takes nearly all weight of
# the queries that lean its way, however little they have to do with it. And a query may look for something that is not there, yet its weights must sum
# to 1. Four answers, three of them from notebook 12:
#
# - **QK-norm**: queries and keys are divided by their root mean square, then multiplied by a learned gain.
# - **Softcap**: scores $s$ become $C \tanh(s / C)$, so that none leaves $\pm C$.
# - **Log n** ([Chiang and Cholak 2022](../REFERENCES.md#chiang-2022), [Nakanishi 2025](../REFERENCES.md#nakanishi-2025)): scores are
#   multiplied by a factor that grows as $\ln n$, so that a lead grows with the crowd. Here it is $\ln n / \ln 64$.
# - **A sink**: one more score in the softmax, for a key that is not there. Here this score is 0.


# %%
def rms_norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


RULES = {  # (query, key, n) -> scores
    "sqrt(d_k)": lambda q, k, n: dots(q, k),
    "QK-norm": lambda q, k, n: dots(rms_norm(q), rms_norm(k)),
    "norm, gain": lambda q, k, n: 2.5 * dots(rms_norm(q), rms_norm(k)),
    "times 2.5": lambda q, k, n: 2.5 * dots(q, k),
    "softcap": lambda q, k, n: 50 * np.tanh(dots(q, k) / 50),
    "log n": lambda q, k, n: dots(q, k) * np.log(n) / np.log(64),
    "sink": lambda q, k, n: dots(q, k),  # its own score is added in the next cell
}


# %% [markdown]
# `shares` gives the mean weight that goes to the needle, the outlier, the whole crowd, and the sink.


# %% jupyter={"source_hidden": true}
def shares(name, d_k, n, outlier=10, level=0):
    rule, q, k = RULES[name], queries[:, :d_k], keys[: n - 1, :d_k]
    own = rule(q, q, n).diagonal()[:, None]  # (64, 1): the needle
    long = rule(q, outlier * k[:1], n)  # (64, 1): the outlier
    real = np.concatenate([own, long, rule(q, k[1:], n)], axis=-1) + level  # (64, n)
    sink = np.full((64, 1), 0.0 if name == "sink" else -np.inf)  # not moved by level
    w = al.softmax(np.concatenate([real, sink], axis=-1)).mean(axis=0)  # (n + 1,)
    return w[0], w[1], w[2:-1].sum(), w[-1]


# %%
rows = []
for name in RULES:
    found = [shares(name, 64, n) for n in SIZES]
    rows.append((name, *(f[0] for f in found), *(f[1] for f in found)))
others = [f"outlier, {n}" for n in SIZES]
plot.table(["d_k = 64", *names, *others], rows, tint=[*names, *others])

# %% [markdown]
# QK-norm stops the outlier, at every $n$. The gain keeps the head sharp: here 2.5, a number that a model learns. Without the norm,
# *times 2.5* still leaves the outlier a fifth. A softcap of 50 bounds the scores and does not choose among keys. Log n keeps the needle as the
# crowd grows, at this $d_k$, and does nothing about the outlier. The sink changes nothing here.

# %% [markdown]
# <details><summary>How sure is this?</summary>
#
# The outlier is ten times as long as another key. Of the 64 queries 44 lean its way, and they give it 0.29 on average, but half of
# them less than 0.08, and a sixth more than 0.9. At a hundred times the length the average is 0.90. Log n needs a needle that
# leads clearly at 64 keys: $\sqrt{d_k}$ well above $\ln 64 = 4.2$. At $d_k = 16$ it falls, too, from 0.43 to 0.20 (*Controls*).
#
# </details>

# %% [markdown]
# Now all in one view. Each row is a rule, and its numbers are means over 64 queries. **Try.** Set $n$ to 1024, *outlier* to 1 and go through $d_k$:
# which rules keep the needle at $d_k = 32$? Go back to 64 and set *outlier* to 100: who wins under the softcap? Set *outlier* back to
# 1, then lower *level*, which is added to every real score, to -20: which row changes?


# %% jupyter={"source_hidden": true}
def where_it_goes(d_k, n, outlier, level):
    rows = [shares(name, d_k, n, outlier, level) for name in RULES]
    return {f"n = {n}": np.array(rows)}  # (7, 4)


goes = ["needle", "outlier", "crowd", "sink"]
sliders = {"d_k": (4, 256), "n": [16, 64, 256, 1024], "outlier": [1, 10, 100]}
sliders["level"] = [-20, -10, 0, 10, 20]
labels = {"queries": list(RULES), "keys": goes, "row_name": "rule"}
labels["label"] = "features d_k, divisor follows"
view = live.weights_view(where_it_goes, still=(16, 64, 256), **sliders, **labels)
view

# %% [markdown]
# With *level* only the sink's row changes. A softmax sees differences only: add a number to all scores, and nothing happens. The
# sink's score stays where it is, so a query that nothing answers can leave its weight there. Without a sink the weight goes to real
# keys; in notebooks 09 and 13 heads parked it on the first token.

# %%
for level in (0, -5, -10, -20):
    _, _, _, sink = shares("sink", 64, 64, outlier=1, level=level)
    print(
        f"all scores lowered by {-level:2d}: {1 - sink:.4f} of the weight on real keys"
    )

# %% [markdown]
# ## 3 · Softmax without the map
#
# The fused kernel of notebook 06 never holds the map. It does not need the weights: a sum of $e^s v$ and a sum of $e^s$ are enough,
# and both can grow key by key. But $e^s$ overflows, in float64 above a score of about 709. The softmax of notebook 02 subtracted the
# row's largest score first, and here the largest is not known yet. So three numbers are carried along:
#
# - $m$, the largest score so far,
# - $z$, the sum of $e^{s - m}$ so far,
# - $o$, the sum of $e^{s - m} v$ so far.
#
# If a new key raises the maximum from $m$ to $m'$, everything so far was measured against the wrong one. One factor,
# $e^{m - m'}$, corrects it ([Milakov and Gimelshein 2018](../REFERENCES.md#milakov-2018)). The query is *she* of *Anna saw Ben; she*. Its
# keys are read from the back, so that the maximum rises on the way:

# %%
Q, K, V = SENTENCE.project()  # (4, 3), (4, 3), (4, 2)
scores = (K @ Q[3] / np.sqrt(3))[::-1]  # of "she", from the last key to the first
m, z, o = -np.inf, 0.0, np.zeros(2)
for s, v in zip(scores, V[::-1]):
    new = max(m, s)
    factor, e = np.exp(m - new), np.exp(s - new)
    m, z, o = new, factor * z + e, factor * o + e * v
    print(f"score {s:.2f}: factor {factor:.4f}, m {m:.2f}, z {z:.4f}, o {o}")
print("o / z:      ", o / z)
print("notebook 01:", al.scaled_dot_product_attention(Q, K, V)[3])

# %% [markdown]
# Whole blocks of keys, and all queries at once, go the same way:


# %%
def online(q, k, v, block):
    m, z, o = np.full((len(q), 1), -np.inf), 0.0, 0.0  # (n_q, 1), then all per query
    for j in range(0, len(k), block):
        s = dots(q, k[j : j + block])  # (n_q, block): the only scores there ever are
        new = np.maximum(m, s.max(axis=-1, keepdims=True))  # (n_q, 1)
        factor, e = np.exp(m - new), np.exp(s - new)
        m, z = new, factor * z + e.sum(axis=-1, keepdims=True)
        o = factor * o + e @ v[j : j + block]  # (n_q, d_v)
    return o / z


# %%
for block in (1, 2, 3):
    off = np.abs(online(Q, K, V, block) - al.scaled_dot_product_attention(Q, K, V))
    print(f"the sentence in blocks of {block}: differs by {off.max():.10f}")

# %% [markdown] tags=["predict"]
# Nothing is approximated. What is saved is memory. The next cell measures the peak of both on your machine.
# **Predict.** By what does each grow if $n$ doubles?


# %% tags=["nbval-ignore-output"]
def peak(function, *arguments):
    tracemalloc.start()
    function(*arguments)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest / 2**20  # MiB


print("   n    with the map    blocks of 128")
for n in (512, 1024, 2048):
    x = np.random.default_rng(n).normal(size=(n, 64))
    whole = peak(al.scaled_dot_product_attention, x, x, x)
    print(f"{n:5d} {whole:11.1f} MiB {peak(online, x, x, x, 128):11.1f} MiB")

# %% [markdown]
# With the map memory grows as $n^2$: twice the tokens, four times as much. In blocks of keys it grows as $n$, because all queries
# are there at once. A kernel takes the queries in blocks as well. On a GPU such a tile of scores fits into fast memory, which makes
# it faster, too. In training, where the gradient needs the weights again, they are computed again tile by tile
# ([Dao et al. 2022](../REFERENCES.md#dao-2022)).
#
# ## Break it · Three ways to get the factor wrong
#
# The same query, key by key. The first two mistakes leave out one factor. The third has a maximum for each key, and no factor.


# %%
def wrong(mistake, scores=scores, values=V[::-1]):
    m, z, o = -np.inf, 0.0, np.zeros(2)
    for s, v in zip(scores, values):
        new = s if mistake == "each key its own maximum" else max(m, s)
        factor, e = np.exp(m - new), np.exp(s - new)
        for_z = factor if mistake in ("none", "output not rescaled") else 1.0
        for_o = factor if mistake in ("none", "sum not rescaled") else 1.0
        m, z, o = new, for_z * z + e, for_o * o + e * v
    return o / z


# %%
ways = ("none", "output not rescaled", "sum not rescaled", "each key its own maximum")
for name in ways:
    print(f"{name:34}", wrong(name))
print(f"{'plain mean of the values':34}", V.mean(axis=0))
forwards = wrong("output not rescaled", scores[::-1], V)
print(f"{'output not rescaled, keys forwards':34}", forwards)

# %% [markdown]
# With *each key its own maximum* every key weighs $e^0 = 1$: the plain mean, whatever the scores say. The last line is right by
# luck: read forwards, *Anna* comes first, and the maximum never rises. So test such code with scores that rise.
#
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# NumPy only.

# %% [markdown] tags=["exercise"]
# ### Exercise 14.1 · Block by block
#
# **Goal.** Write the softmax that never sees its whole row. *10 minutes, medium.*
#
# `my_online(blocks)`: `for s, v in blocks` hands out scores $(b,)$ and values $(b, d_v)$, the keys of **one** query. Returns
# $(d_v,)$, what softmax of all scores times all values would give. As on a GPU, there is memory for one block: you can go through
# them once, and when the next block comes, zeros are written over the last one. Scores may be near 1000 or near -1000. A blocked key has the
# score $-\infty$, and a first block may hold nothing else. (Copies of all blocks pass, too: that is right, and saves nothing.)


# %%
def my_online(blocks):
    return ...  # your code


# %%
verdict = check.online_softmax(my_online)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_online(blocks):
#     m, z, o = -np.inf, 0.0, 0.0
#     for s, v in blocks:  # (b,), (b, d_v)
#         new = max(m, s.max())
#         if new > -np.inf:  # nothing to add as long as every key is blocked
#             factor, e = np.exp(m - new), np.exp(s - new)
#             m, z, o = new, factor * z + e.sum(), factor * o + e @ v
#     return o / z
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 14.2 · A place for weight
#
# **Goal.** Write the softmax with a sink. *6 minutes, medium.*
#
# `my_sink_weights(scores, sink)`: `scores` $(..., n_q, n_k)$, and one number, the sink's score. Return the weights of the keys,
# $(..., n_q, n_k)$: softmax over the keys of a row **and** the sink, without the column of the sink. Scores may be near 1000. A blocked
# key has the score $-\infty$. Where every key of a row is blocked, the sink takes all, and the row is 0.


# %%
def my_sink_weights(scores, sink):
    return ...  # your code


# %%
verdict = check.sink_weights(my_sink_weights)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_sink_weights(scores, sink):
#     largest = np.maximum(scores.max(axis=-1, keepdims=True), sink)
#     e = np.exp(scores - largest)
#     return e / (e.sum(axis=-1, keepdims=True) + np.exp(sink - largest))
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 14.3 · A lead that grows with the crowd
#
# **Goal.** Write a causal head with a factor of $\ln n$. *8 minutes, medium.*
#
# `my_log_n_weights(query, key, n_0)`: `query` and `key` are $(..., n, d_k)$. In a causal head query $i$ sees $i + 1$ keys. Multiply
# its scores, divided by $\sqrt{d_k}$, by $\ln(i + 1) / \ln(n_0)$. Return the weights, $(..., n, n)$.


# %%
def my_log_n_weights(query, key, n_0):
    return ...  # your code


# %%
verdict = check.log_n_weights(my_log_n_weights)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_log_n_weights(query, key, n_0):
#     n, d_k = query.shape[-2:]
#     factor = np.log(np.arange(1, n + 1))[:, None] / np.log(n_0)  # (n, 1)
#     scores = factor * (query @ np.swapaxes(key, -1, -2)) / np.sqrt(d_k)  # (..., n, n)
#     return al.softmax(np.where(al.causal_mask(n), scores, -np.inf))
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. In `RULES`, replace both 50 by 5. Who wins now, and what does it do to the needle? (The crowd: at 1024 it has 0.92,
#    the needle 0.06.)
# 2. In `online`, start the maximum at 0. For which scores does that go wrong? (Where all lie below -745: each $e^s$ is 0, and 0 / 0 is
#    NaN.)
#
# **Remember.** A longer text changes no score and enlarges the crowd. A norm stops an outlier, a gain keeps a head sharp, log n keeps
# a clear lead as the crowd grows, and a sink takes weight that no key deserves. A softmax needs no map: a maximum, a sum and an output, rescaled whenever
# the maximum rises.

# %% [markdown]
# ## Controls
#
# What the fold and the view above say, in numbers.

# %%
found = needle(64, 16_384)  # (64,)
shortest_first = np.linalg.norm(queries[:, :64], axis=-1).argsort()
print(f"by the sum             {1 / (1 + 16_384 * np.exp(0.5 - 8)):.2f}")
print(f"the 16 longest queries {found[shortest_first[48:]].mean():.2f}")
print(f"the 48 others          {found[shortest_first[:48]].mean():.2f}")

# %%
for name in RULES:
    sharp = shares(name, 32, 1024, outlier=1)[0]
    long = shares(name, 64, 64, outlier=100)[1]
    print(f"{name:11} needle at d_k = 32 {sharp:.2f}, outlier x 100 {long:.2f}")

# %%
for times in (10, 100):
    q, k = queries[:, :64], keys[:63, :64]
    own, long, crowd = dots(q, q), dots(q, times * k[:1]), dots(q, k[1:])
    own = own.diagonal()[:, None]  # (64, 1)
    w = al.softmax(np.concatenate([own, long, crowd], axis=-1))[long[:, 0] > 0, 1]
    print(
        f"outlier x {times}: {len(w)} queries lean its way; mean {w.mean():.2f}",
        end=", ",
    )
    print(f"median {np.median(w):.2f}, above 0.9 {(w > 0.9).mean():.2f}")

# %%
for d_k in (4, 16, 64):
    kept = [shares("log n", d_k, n, outlier=0)[0] for n in SIZES]
    print(f"log n, d_k = {d_k}, needle:", *(f"{one:.2f}" for one in kept))

# %% [markdown]
# # [[long_texts]] · Long texts
#
# **Question.** How is attention computed when its map does not fit into memory? *40 minutes. It needs no torch.*
#
# A text of 100,000 tokens has a map of ten billion scores, in every head. FlashAttention computes the exact output without ever
# holding that map: it takes a **tile** of a few queries and a few keys, uses its scores, and forgets them.

# %% jupyter={"source_hidden": true}
import time
import tracemalloc
from textwrap import fill

import numpy as np

import attnlib as al
from attncourse import check, mine, predict, smollm
from attncourse.lessons.long_texts import blocks
from attnlib import live, plot
from attnlib.examples import SENTENCE

np.set_printoptions(precision=4, suppress=True)

# %% [markdown]
# Here are 8 tokens behind a causal mask. Queries and keys are whole numbers and $\sqrt{d_k} = 2$, so you can check every score. The
# framed tile is being computed. Dashed tiles are done and forgotten. Hatched cells are forbidden, and a tile that holds nothing else
# is skipped. In the first picture the sums of one query **shrink** and those of another stay. Which number decides? Move on, and
# click the other row.

# %%
rng = np.random.default_rng(351)
Q8, K8 = rng.integers(-2, 3, (2, 8, 4))  # (8, 4) each
V8 = rng.integers(-2, 4, (8, 2))  # (8, 2)
view = live.tiles(Q8, K8, V8)
view

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[it_speaks]])* Many heads put much weight on the first token of a text. What is one reason?
#
# - **a** a row with no fitting key would be NaN
# - **b** each row sums to 1, so weight that no word should get must go somewhere
# - **c** the first token means more than the others
#
# **2.** *(notebook [[todays_head]])* A query and a key are rotated by RoPE. Both tokens move on by 100 positions. Their score?
#
# - **a** it grows
# - **b** it changes, because both angles change
# - **c** it stays
#
# **3.** *(notebook [[multi_head]])* A fused kernel computes attention tile by tile. What can it not give you?
#
# - **a** the map of weights
# - **b** the exact output
# - **c** a causal mask

# %%
predict.before_long_texts(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · Three things for a query
#
# An output is a sum of $e^s v$ divided by a sum of $e^s$. Both sums can grow key by key, so no row of weights is needed. But
# $e^s$ overflows above a score of about 709. The softmax of notebook [[vectorized]] subtracted the row's largest score first, and
# here we do not know it yet. So every query carries three things:
#
# - $m$, the largest score so far,
# - $z$, the sum of $e^{s - m}$ so far,
# - $o$, the sum of $e^{s - m} v$ so far.
#
# When a new key raises the maximum from $m$ to $m'$, the old sums were measured against the wrong maximum. One factor,
# $e^{m - m'}$, corrects both ([Milakov and Gimelshein 2018](../REFERENCES.md#milakov-2018)). We try it on *she* of *Anna saw Ben;
# she*, from the last key to the first, so that the maximum rises:

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
print("notebook [[by_hand]]:", al.scaled_dot_product_attention(Q, K, V)[3])

# %% [markdown]
# ### Break it: three ways to get the factor wrong


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
# Measured against itself, every key weighs $e^0 = 1$, and the output is the plain mean. The last line is right by luck: read
# forwards, *Anna* comes first, and the maximum never rises. So test such code with scores that rise.

# %% [markdown] tags=["exercise"]
# ### Exercise [[online_softmax]] · Tile by tile
#
# **Goal.** Write the step of one tile, for several queries at once. *12 minutes, medium.*
#
# `my_online(tiles)`: `for s, v in tiles` hands out scores $(n_q, size)$ and values $(size, d_v)$, always of the same queries. Return
# $(n_q, d_v)$, what softmax of all scores times all values gives. There is memory for one tile: you go through them once, and zeros
# are written over the last one when the next comes. Scores may be near 1000 or -1000; a blocked key has the score $-\infty$, and a row
# may begin with some. A row that attends to nothing gets 0.


# %%
def my_online(tiles):
    return ...  # your code


# %%
verdict = check.online_softmax(my_online)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_online(tiles):
#     m, z, o = -np.inf, 0.0, 0.0
#     for s, v in tiles:  # (n_q, size), (size, d_v)
#         new = np.maximum(m, s.max(axis=-1, keepdims=True))  # (n_q, 1)
#         safe = np.where(new > -np.inf, new, 0.0)  # a row without a key so far
#         factor, e = np.exp(m - safe), np.exp(s - safe)
#         z = factor * z + e.sum(axis=-1, keepdims=True)
#         m, o = new, factor * o + e @ v
#     return o / np.where(z > 0, z, 1.0)
# ```
#
# </details>

# %% [markdown]
# ## 2 · Tiles of queries and keys
#
# Blocks of keys alone are not enough: with all queries at once, a block of scores still grows with the text. So queries are cut,
# too. Inside a loop over tiles of queries goes one over tiles of keys, which a causal mask ends at the diagonal.


# %%
def tile(q, k, i, j, size):
    s = q[i : i + size] @ k[j : j + size].T / np.sqrt(q.shape[-1])  # all there is
    later = np.arange(j, j + s.shape[1]) > np.arange(i, i + s.shape[0])[:, None]
    return np.where(later, -np.inf, s)


# %%
def forward(q, k, v, size):
    o, L = np.zeros((len(q), v.shape[1])), np.zeros((len(q), 1))
    for i in range(0, len(q), size):
        now, m, z = slice(i, i + size), -np.inf, 0.0
        for j in range(0, i + size, size):  # further tiles lie above the diagonal
            s = tile(q, k, i, j, size)
            new = np.maximum(m, s.max(axis=-1, keepdims=True))  # (size, 1)
            factor, e = np.exp(m - new), np.exp(s - new)
            z = factor * z + e.sum(axis=-1, keepdims=True)
            m, o[now] = new, factor * o[now] + e @ v[j : j + size]
        o[now], L[now] = o[now] / z, m + np.log(z)  # L: section 3
    return o, L


# %%
whole = al.scaled_dot_product_attention(Q8, K8, V8, is_causal=True)
for size in (1, 2, 4, 8):
    off = np.abs(forward(Q8, K8, V8, size)[0] - whole).max()
    print(f"tiles of {size}: differs by {off:.10f}")

# %% [markdown] tags=["predict"]
# Nothing is approximated. A processor computes in a small fast memory, and texts lie in a large slow one. Tiles load queries
# once, and keys and values once for each tile of queries. With the map, scores and weights also go to slow memory and back.
# **Predict.** Take tiles of 4 in place of 2. How many numbers are moved?
#
# - **a** as many: all keys and values are needed anyway
# - **b** fewer
# - **c** more, since a tile has four times as many scores

# %%
guess_tile_size = None  # "a", "b" or "c"


# %%
def counted(n, d_k, d_v, size):
    moved, held = 0, size * (size + 2 * (d_k + d_v + 1))  # scores; q, k, v, o, m, z
    for i in range(0, n, size):
        moved += size * (d_k + d_v)  # queries come, outputs go
        moved += (i // size + 1) * size * (d_k + d_v)  # keys and values of each tile
    return held, moved


def with_the_map(n, d_k, d_v):  # Q, K, V come; scores go, come; weights, too; O goes
    return n * n, 4 * n * n + 2 * n * (d_k + d_v)


# %%
rows = [(f"tiles of {size}", *counted(8, 4, 2, size)) for size in (1, 2, 4, 8)]
rows += [("the whole map", *with_the_map(8, 4, 2))]
plot.table(["8 tokens", "numbers held", "numbers moved"], rows)

# %%
predict.tile_size(guess_tile_size)

# %% [markdown]
# Small tiles hold little and move much, so a kernel takes the largest that fits into fast memory. For 8192 tokens and
# $d_k = d_v = 64$ in tiles of 128:

# %%
(held, moved), (scores_held, all_moved) = (
    counted(8192, 64, 64, 128),
    with_the_map(8192, 64, 64),
)
print(f"held:  tile {held:11,}   map {scores_held:11,}")
print(f"moved: tile {moved:11,}   map {all_moved:11,}   {all_moved / moved:.1f} times")
unmasked = (1 + 8192 // 128) * 8192 * 128  # every tile is visited
print(f"moved without a mask: {unmasked:,}   {all_moved / unmasked:.1f} times")

# %% [markdown]
# A tile holds 49,408 numbers at any length. About half of the factor 7.7 comes from the skipped tiles. Moving less makes tiles
# faster, too, where a processor waits for memory ([Dao et al. 2022](../REFERENCES.md#dao-2022)); in NumPy only the skipping does
# (*Appendix*). By what does each column grow if $n$ doubles?


# %% tags=["nbval-ignore-output"]
def peak(function, *arguments):
    tracemalloc.start()
    function(*arguments)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest / 2**20  # MiB


print("   n    with the map    tiles of 128")
for n in (512, 1024, 2048):
    x = np.random.default_rng(n).normal(size=(n, 64))
    whole_map = peak(al.scaled_dot_product_attention, x, x, x)
    print(f"{n:5d} {whole_map:11.1f} MiB {peak(forward, x, x, x, 128):11.1f} MiB")

# %% [markdown]
# The map takes four times as much, the tiles a fixed amount. What still grows is the output itself.

# %% [markdown]
# ## 3 · Parts that are merged
#
# Worker A reads four keys, worker B the other four. Each returns a divided output. One more number for each query tells
# how much a worker found: the **logsumexp** $L = m + \ln z$, the logarithm of the sum of all $e^s$. The merged output is a
# softmax over the two $L$:


# %%
def part(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])  # (n_q, n_k)
    m = s.max(axis=-1, keepdims=True)
    e = np.exp(s - m)
    z = e.sum(axis=-1, keepdims=True)
    return e @ v / z, m + np.log(z)


(o_a, L_a), (o_b, L_b) = part(Q8[5:], K8[:4], V8[:4]), part(Q8[5:], K8[4:], V8[4:])
share = 1 / (1 + np.exp(L_b - L_a))  # a softmax over two numbers
merged = share * o_a + (1 - share) * o_b  # (3, 2)

# %%
rows = zip(range(5, 8), L_a[:, 0], L_b[:, 0], share[:, 0], o_a[:, 0], o_b[:, 0])
rows = [(*row, out) for row, out in zip(rows, merged[:, 0])]
names = ["query", "L of A", "L of B", "share of A", "A", "B", "merged"]
plot.table(names, rows)

# %%
plain = al.scaled_dot_product_attention(Q8[5:], K8, V8)
print(
    f"merged, against all keys at once: differs by {np.abs(merged - plain).max():.10f}"
)
mean = np.abs((o_a + o_b) / 2 - plain).max()
print(f"the mean of the two outputs:      differs by {mean:.4f}")

# %% [markdown]
# So any number of workers may read the keys, in any order. A long cache is split so over processors. A **sink** (notebook
# [[todays_head]]) fits in, too: it is a worker whose $L$ is the sink's score and whose output is 0.
#
# A computer rounds each sum, though, and in 16 bits the order shows:

# %%
numbers = np.random.default_rng(0).normal(size=4096).astype(np.float16)
for name, ordered in (("forwards", numbers), ("backwards", numbers[::-1])):
    total = np.float16(0)
    for number in ordered:
        total += number  # rounded to 16 bits each time
    print(f"{name:10}{total:7.2f}")
print(f"exact     {numbers.sum(dtype=np.float64):7.2f}")

# %% [markdown]
# A library may add in another order when a row comes alone, in a batch, or split over workers. So compare outputs with a tolerance.

# %% [markdown] tags=["exercise"]
# ### Exercise [[merge]] · Merge
#
# **Goal.** Merge what several workers found. *6 minutes, medium.*
#
# `my_merge(outputs, lse, lengths)`: of $w$ workers, `outputs` is $(w, n_q, d_v)$, `lse` is $(w, n_q)$, the logsumexp $L$ of each
# query, and `lengths` is $(w,)$, how many keys each worker had. Return $(n_q, d_v)$, what attention over all keys gives. You do not
# need all three. $L$ may be near 1000. A worker without a key for a query has $L = -\infty$ and the output 0 there. A query for
# which nobody has a key gets 0.


# %%
def my_merge(outputs, lse, lengths):
    return ...  # your code


# %%
verdict = check.merge(my_merge)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_merge(outputs, lse, lengths):
#     shares = al.softmax(lse, axis=0)  # (w, n_q); 0 where every L is -inf
#     return (shares[..., None] * outputs).sum(axis=0)
# ```
#
# </details>

# %% [markdown]
# ## 4 · Back through the tiles
#
# The gradient needs the weights $A$ again, and they were forgotten. But $L$ was kept, and a weight is $e^{s - L}$. So the
# backward pass computes a tile of scores once more, and searches no maximum. With $g$ for the gradient of the loss:
#
# - $g_V = A^T g_O$ and $g_A = g_O V^T$, since the output is $AV$;
# - $g_S = A (g_A - D)$, where $D$ of a query is $g_O$ dot its output: this is the derivative of a softmax;
# - $g_Q = g_S K / \sqrt{d_k}$ and $g_K = g_S^T Q / \sqrt{d_k}$.


# %%
def backward(q, k, v, o, L, g_o, size):
    g_q, g_k, g_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    D = (g_o * o).sum(axis=-1, keepdims=True)  # (n, 1)
    for i in range(0, len(q), size):
        for j in range(0, i + size, size):
            rows, cols = slice(i, i + size), slice(j, j + size)
            A = np.exp(tile(q, k, i, j, size) - L[rows])  # (size, size), exact at once
            g_s = A * (g_o[rows] @ v[cols].T - D[rows]) / np.sqrt(q.shape[-1])
            g_v[cols] += A.T @ g_o[rows]
            g_q[rows] += g_s @ k[cols]
            g_k[cols] += g_s.T @ q[rows]
    return g_q, g_k, g_v


# %% [markdown]
# The loss is a random weighted sum of the outputs. We nudge every number and watch the loss of plain attention:

# %%
q, k, v = np.random.default_rng(1).normal(size=(3, 7, 4))  # 7 tokens in tiles of 3
g_o = np.random.default_rng(2).normal(size=(7, 4))
gradients = backward(q, k, v, *forward(q, k, v, 3), g_o, 3)
for name, x, g in zip("qkv", (q, k, v), gradients):
    nudged, h = np.zeros_like(x), 1e-5
    for at in np.ndindex(x.shape):
        for sign in (1, -1):
            x[at] += sign * h
            out = al.scaled_dot_product_attention(q, k, v, is_causal=True)
            nudged[at] += sign * (out * g_o).sum() / (2 * h)
            x[at] -= sign * h
    print(f"gradient of {name}: differs by {np.abs(g - nudged).max():.6f}")

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# A test compares output and gradients with torch's own, for other lengths, tiles and draws: they agree to 1e-10.
#
# </details>

# %% [markdown] tags=["predict"]
# ## 5 · The room gets fuller
#
# What does a long text do to weights? Take random vectors. One key equals the query: the **needle**. Its score is about $d_k /
# \sqrt{d_k} = \sqrt{d_k}$, so 8 at $d_k = 64$. All other keys are the **crowd**. Among 64 keys the needle gets 0.94 of the weight.
# **Predict.** And among 1024?
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


def needle(d_k, n, factor=1.0):
    q, k = queries[:, :d_k], keys[: n - 1, :d_k]  # (64, d_k), (n - 1, d_k)
    own = dots(q, q).diagonal()[:, None]  # (64, 1): a key equal to the query
    return al.softmax(factor * np.concatenate([own, dots(q, k)], axis=-1))[:, 0]


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
# The score $s$ of a random key has mean 0 and variance 1, and the mean of $e^s$ is $e^{1/2} = 1.65$. So $n$ random keys weigh
# $n e^{1/2}$ against the needle's $e^{\sqrt{d_k}}$. They are even at $n = e^{\sqrt{d_k} - 1/2}$, the last column.
#
# Some models multiply queries by a factor that grows with their position ([Llama 4](../REFERENCES.md#heads-of-models)). With
# $\ln n / \ln 64$:

# %%
for d_k in (16, 64, 256):
    kept = [needle(d_k, n, np.log(n) / np.log(64)).mean() for n in SIZES]
    print(f"d_k = {d_k:3}: needle {kept[0]:.2f}, {kept[1]:.2f}, {kept[2]:.2f}")

# %% [markdown]
# At $d_k = 64$ the needle stays; at 16 it still fades.

# %% [markdown]
# ## 6 · Reading fewer keys
#
# Tiles save the map, but a query still reads every key. Some models cut the keys into **blocks**, and read only those whose mean
# key ([Lu et al. 2025](../REFERENCES.md#lu-2025)), or a key made of them by a learned map ([Yuan et al.
# 2025](../REFERENCES.md#yuan-2025)), has the largest score. Does a mean still show a needle? Here a query equals one of 4,096 keys,
# and may read 512.


# %%
shared = rng.normal(size=(512, 256))  # what the keys of a block have in common


def found(d_k, size, alike=0.0):  # share of needles whose block is read
    K = np.sqrt(1 - alike) * keys[:4096, :d_k].reshape(-1, size, d_k)
    K = K + np.sqrt(alike) * shared[: len(K), None, :d_k]  # (blocks, size, d_k)
    needles = K.reshape(-1, d_k)[::16]  # (256, d_k)
    scores = needles @ K.mean(axis=1).T  # (256, blocks)
    own = np.take_along_axis(scores, np.arange(0, 4096, 16)[:, None] // size, axis=-1)
    return ((scores > own).sum(axis=-1) < 512 // size).mean()


# %% [markdown]
# **Try.** From which $d_k$ on are nine of ten found in blocks of 16? Each column is a share of their variance that the keys of a
# block have in common.

# %% jupyter={"source_hidden": true}
ALIKE = {"none": 0.0, "a quarter": 0.25, "half": 0.5}


def needles_found(d_k):
    rows = [[found(d_k, size, part) for part in ALIKE.values()] for size in (8, 16, 64)]
    return {"needles whose block is read": np.array(rows)}  # (3, 3)


labels = {"queries": ["8 keys", "16 keys", "64 keys"], "keys": list(ALIKE)}
labels |= {
    "row_name": "block, part in common",
    "label": "features d_k",
    "still": (16, 64),
}
live.weights_view(needles_found, d_k=[8, 16, 32, 64, 128, 256], **labels)

# %% [markdown]
# Unlike keys blur each other: in its block's mean a needle leads by $\sqrt{d_k / size}$ times the spread of the others
# ([FlashMoBA](../REFERENCES.md#flash-moba)), so blocks of double length need double $d_k$. Keys that are alike point there
# together, and here the query holds what they share. Asked with the needle's own part alone, at $d_k = 64$ in blocks of 16, about
# 0.8, 0.4 and 0.25 are found.
#
# Now the model of notebook [[it_speaks]] reads 32 keys of up to 208. *Recall* is the share of a head's 32 best keys among them, *weight*
# what they had of all weight. Then 40 tokens are read, 120 of *Alice*, and the 40 once more: what does this **second copy** cost?
# *4 blocks of 8* are the first block and three more, chosen together by the three heads that share keys. The query's own block
# competes.

# %% jupyter={"source_hidden": true}
reads = {row["name"]: row for row in smollm.recorded("fewer_read")}


def judged(*names):
    rows = []
    for name in names:
        row = reads[name]
        copies = row["again"]["prose"], row["again"]["code"]
        rows.append((name, *row["shares"][:2], row["alice"], *copies))
    judges = "copy of prose", "of code"
    columns = ["which are read", "recall", "weight", "Alice", *judges]
    return plot.table(columns, rows, tint=judges)


# %%
three = "all keys", "a set for each head", "one set for nine heads"
two = "4 blocks of 8", "31 latest and the first"
judged(*three, *two)

# %% [markdown]
# **One set** for nine heads finds as well as a set for each, and is read once. In the last two rows recall, weight and *Alice* are much
# the same, but the latest keys find nothing. **Neither recall nor weight nor the next word shows what a model finds again.**
#
# Two blocks are special. On the **first**, heads park weight. A query stands in its **own** block, whose mean is of the keys so far.
# One factor at a time:

# %%
cares = "first block not kept", "own block always read", "own always, first not kept"
cares += "own block never read", "a set for each head"
judged("4 blocks of 8", *(f"blocks, {name}" for name in cares))

# %% [markdown]
# Without the first block recall rises, and all else but the copy of prose is worse. A query that never reads its own block is lost. Read **always**,
# as in MoBA, it takes the place of a better one.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# This model learned to read all keys; one that is trained with blocks may read them better. Four blocks find 20 % of the
# codes that notebook [[less_to_keep]] asks for, and single keys 85 % (*Appendix*). A mean of few keys is noisier: even of random
# keys the own block is chosen more often while few are in it. Means that hold later keys, too, score about the same: only the
# poke of notebook [[masks]] sees them.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[blocks]] · Which blocks?
#
# **Goal.** Choose the blocks of keys that a query reads. *12 minutes, medium.*
#
# `my_blocks(query, key, size, best)`: query $(h, n, d_k)$ is of $h$ heads that share the keys $(n, d_k)$. Return booleans $(n,
# blocks)$, one set for all heads; a last block may be short. Query $i$ reads `best` blocks begun by token $i$: the first, and those
# whose mean of the keys up to $i$ has the largest score, summed over the heads. Its own block competes, too.


# %%
def my_blocks(query, key, size, best):
    return ...  # your code


# %%
verdict = check.blocks(my_blocks)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_blocks(query, key, size, best):
#     n = len(key)
#     read = np.zeros((n, -(-n // size)), dtype=bool)
#     for i in range(n):  # later keys have not come
#         means = [key[j : i + 1][:size].mean(axis=0) for j in range(0, i + 1, size)]
#         scores = np.array(means) @ query[:, i].sum(axis=0)  # (blocks so far,)
#         scores[0] = np.inf
#         read[i, np.argsort(-scores)[:best]] = True
#     return read
# ```
#
# </details>

# %% [markdown]
# With the model, three heads each read the blocks that you choose:

# %% tags=["nbval-ignore-output"]
speaker = None if smollm.missing() else smollm.load()
choose = my_blocks if verdict.passed else blocks  # ours, until yours is right


# %%
def by_blocks(query, key, value, attn_mask, attention):
    times, n = len(query) // len(key), key.shape[-2]
    groups = query.reshape(len(key), times, n, -1)  # (g, heads of each, n, d_k)
    read = [choose(q, k, size=8, best=4) for q, k in zip(groups, key)]  # (n, blocks)
    mask = np.repeat(read, 8, axis=-1)[..., :n].repeat(times, axis=0)  # (h, n, n)
    key, value = key.repeat(times, axis=0), value.repeat(times, axis=0)
    return attention(query, key, value, mask & attn_mask)


# %%
on_alice, again = (reads["4 blocks of 8"][name] for name in ("alice", "again"))
if speaker:
    other = speaker.using(grouped_attention=by_blocks)
    on_alice = other.loss(smollm.TEXTS["alice"])
    again = {"prose": smollm.found_again(other)}
print(f"Alice {on_alice:.2f}, second copy of prose {again['prose']:.2f}")

# %% [markdown]
# ## 7 · Speak through tiles

# %% [markdown] tags=["exercise"]
# ### Exercise [[tiled]] · Attention in tiles
#
# **Goal.** Write the whole of it, for any mask. *15 minutes, hard.*
#
# `my_tiled(query, key, value, attn_mask=None, block=64)`: what `al.scaled_dot_product_attention` returns, $(..., n_q, d_v)$, in tiles
# of `block` queries by `block` keys. Axes in front, such as heads, are computed together. `attn_mask` is None or boolean
# $(n_q, n_k)$, True = may attend. A query that may attend to no key gets 0. The check looks at memory, too: beside the output
# only what belongs to a tile of queries may exist.


# %%
def my_tiled(query, key, value, attn_mask=None, block=64):
    return ...  # your code


# %%
verdict = check.tiled(my_tiled)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_tiled(query, key, value, attn_mask=None, block=64):
#     output = np.zeros((*query.shape[:-1], value.shape[-1]), value.dtype)
#     for i in range(0, query.shape[-2], block):
#         q, m, z, o = query[..., i : i + block, :], -np.inf, 0.0, 0.0
#         for j in range(0, key.shape[-2], block):
#             s = q @ np.swapaxes(key[..., j : j + block, :], -1, -2)
#             s = s / query.shape[-1] ** 0.5  # (..., block, block)
#             if attn_mask is not None:
#                 s = np.where(attn_mask[i : i + block, j : j + block], s, -np.inf)
#             new = np.maximum(m, s.max(axis=-1, keepdims=True))
#             safe = np.where(new > -np.inf, new, 0.0)
#             factor, e = np.exp(m - safe), np.exp(s - safe)
#             z = factor * z + e.sum(axis=-1, keepdims=True)
#             m, o = new, factor * o + e @ value[..., j : j + block, :]
#         output[..., i : i + block, :] = o / np.where(z > 0, z, 1.0)
#     return output
# ```
#
# </details>

# %%
mine.keep(my_tiled)

# %% [markdown]
# ### Through your tiles
#
# The model of notebook [[it_speaks]] speaks through them, in tiles of 8 by 8. Ours stand in until you have kept yours, and without the
# model you read what it wrote:

# %% tags=["nbval-ignore-output"]
tiled = mine.load("tiled")


# %%
def in_tiles(query, key, value, attn_mask=None):
    return tiled(query, key, value, attn_mask, block=8)


told, healthy = smollm.recorded("through_tiles"), smollm.recorded("mistakes")["none"]
text, off = told["writes"], told["logits"]
if speaker:
    other, alice = speaker.using(attention=in_tiles), smollm.TEXTS["alice"]
    text = other.write(smollm.STORY, 32)
    off = np.abs(other.logits(alice) - speaker.logits(alice)).max()
same = sum(a == b for a, b in zip(text, healthy["writes"]))
print(fill(smollm.STORY + text, 68))
print(f"{same} of {len(healthy['writes'])} letters are the same; ", end="")
print(f"on Alice the logits differ by at most {off:.3f}")

# %% [markdown] tags=["remember"]
# ## Try it
#
# In `forward`, start the maximum at 0. For which scores does that go wrong? (Where all lie below -745, in float64: each $e^s$ is 0,
# and 0 / 0 is NaN.)
#
# **Remember.** A softmax needs no map: a maximum, a sum and an output for each query, rescaled when the maximum rises. Tiles hold a
# fixed amount, and large ones move less. The logsumexp of a row is enough to merge parts and to compute weights again on the way
# back. A longer text enlarges the crowd. Who reads fewer keys must ask what is found again.
# Next: [[[two_texts]], two texts]([[two_texts.ipynb]]).

# %% [markdown]
# ## Appendix: checks

# %%
names = ["", "keys read of a head", "copy of Italian", "of SQL", "codes found"]
rows = []
for name in (*three, *two, *(f"blocks, {name}" for name in cares)):
    read, copies = reads[name]["shares"][2], reads[name]["again"]
    share = f"{reads[name]['codes']:.0%}"
    rows.append((name, f"{read:.0f}", copies["Italian"], copies["SQL"], share))
plot.table(names, rows)

# %% [markdown]
# How many times as fast tiles of 128 are at 2,048 tokens; the thrifty map writes each step over the last.


# %%
def thrifty(q, k, v, later=False):
    s = q @ k.T / np.sqrt(q.shape[-1])
    s[later] = -np.inf
    s -= s.max(axis=-1, keepdims=True)
    np.exp(s, out=s)
    return s @ v / s.sum(axis=-1, keepdims=True)


# %%
def seconds(function, *arguments, **options):
    took = []
    for _ in range(3):
        start = time.process_time()
        function(*arguments, **options)
        took.append(time.process_time() - start)
    return min(took)


# %% tags=["nbval-ignore-output"]
x, later = np.random.default_rng(0).normal(size=(2048, 64)), ~np.tri(2048, dtype=bool)
half = seconds(forward, x, x, x, 128)  # skips what lies above the diagonal
library = seconds(al.scaled_dot_product_attention, x, x, x, is_causal=True)
print(f"causal, against the map of attnlib {library / half:.1f}")
print(
    f"causal, against a thrifty map      {seconds(thrifty, x, x, x, later) / half:.1f}"
)
whole = seconds(tiled, x, x, x, None, 128)
print(f"without a mask, no tile skipped    {seconds(thrifty, x, x, x) / whole:.1f}")

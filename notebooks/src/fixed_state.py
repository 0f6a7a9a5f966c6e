# %% [markdown]
# # [[fixed_state]] · A state of fixed size
#
# **Question.** Can one matrix hold what a text of any length has said? *20 minutes. It needs no torch.*
#
# Notebook [[less_to_keep]] kept less of each token, and still every token brought more. Here nothing grows: a layer keeps one
# matrix, its **state**. Each token writes into it, and each query reads from it. Layers of [Qwen3-Next](../REFERENCES.md#yang-2024)
# work like this.
#
# The state below has 64 x 64 numbers, as many as keys and values of 32 tokens. Into it 128 pairs were written, one on top of the
# other: it is $S$, the sum of every key times its value.

# %% jupyter={"source_hidden": true}
import numpy as np
from matplotlib.colors import to_rgb

import attnlib as al
from attncourse import check, predict, smollm
from attncourse.lessons.fixed_state import state
from attnlib import live, plot
from attnlib.colours import BELOW, KEY

np.set_printoptions(precision=2, suppress=True)

# %% jupyter={"source_hidden": true} tags=["slide"]
rng = np.random.default_rng(17)
key, value = rng.normal(size=(2, 128, 64))
key /= np.linalg.norm(key, axis=-1, keepdims=True)
S = key.T @ value  # the sum of each key times its value: (64, 64)
tint = (np.abs(S) / np.abs(S).max()) ** 0.6  # how opaque
ink = np.where(S[..., None] > 0, to_rgb(KEY), to_rgb(BELOW))
_, ax = plot.subplots(figsize=(3.6, 3.6))
_ = ax.imshow(np.dstack([ink, tint]))
_ = ax.set(xticks=[], xlabel="feature of a value", yticks=[], ylabel="feature of a key")
_ = ax.set_title("128 tokens in one state:\norange above zero, slate below")

# %% [markdown] tags=["predict"]
# Now each of the 128 keys asks for its value: it reads $k\,S$. The value is *found* if, of all 128, it has the largest dot product
# with what is read. **Predict.** How many are found?
#
# - **a** about 32, since there is room for no more
# - **b** about half
# - **c** more than nine of ten

# %%
guess_room = None  # "a", "b" or "c"


# %% jupyter={"source_hidden": true}
def swap(x):
    return np.swapaxes(x, -1, -2)


def at(x, tokens):  # x (16, n, d), tokens (16, asked)
    return np.take_along_axis(x, tokens[..., None], axis=1)


# %% jupyter={"source_hidden": true}
def drawn(d_k, times=1, shared=0.0, d_v=None, n=128, positive=False):
    rng = np.random.default_rng(17)
    draw, which = rng.normal, np.tile(np.arange(n // times), (16, times))
    key, value = draw(size=(16, n // times, d_k)), draw(size=(16, n, d_v or d_k))
    key = np.sqrt(1 - shared) * key + np.sqrt(shared) * draw(size=(16, 1, d_k))
    key = np.where(key > 0, key + 1, np.exp(key)) if positive else key
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    which = rng.permuted(which, axis=-1) if times > 1 else which  # (16, n)
    again = which[:, ::-1, None] == np.arange(n // times)
    newest = np.sort(n - 1 - again.argmax(axis=1))  # where each key comes last
    return at(key, which), value, newest


# %% jupyter={"source_hidden": true}
def found(read, value, newest):
    best, wanted = (read @ swap(value)).argmax(axis=-1), at(value, newest)
    return best == newest, np.linalg.norm(read - wanted) / np.linalg.norm(wanted)


# %%
keys, values, newest = drawn(64)  # 16 draws of 128 pairs: (16, 128, 64) each
right, error = found(keys @ (swap(keys) @ values), values, newest)
print(f"found: {right.mean():.0%} of 128 values, the mean of 16 draws")

# %%
predict.room_in_a_state(guess_room)

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[less_to_keep]])* A window keeps 64 tokens and the first one. What does it find of what stands farther back?
#
# - **a** most of it, since the next word hardly suffers
# - **b** nothing
# - **c** half of it
#
# **2.** *(notebook [[two_texts]])* Two texts share a row. What keeps the second from reading the first?
#
# - **a** positions that begin at 0 again
# - **b** a mask: each token may attend to its own text only
# - **c** the causal mask
#
# **3.** *(notebook [[scaling]])* Two random vectors have $d_k$ features of variance 1. How large is their dot product, by its standard
# deviation?
#
# - **a** 1
# - **b** $d_k$
# - **c** $\sqrt{d_k}$

# %%
predict.before_fixed_state(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · The bracket moves
#
# A row of weights needs all scores at once, so a softmax needs all keys. Without the softmax the bracket may move:
#
# $$(q\,K^T)\,V = q\,(K^T V)$$
#
# $K^T V$ has $d_k \cdot d_v$ numbers, whatever the length of the text. It is the state of *linear attention* ([Katharopoulos et
# al. 2020](../REFERENCES.md#katharopoulos-2020)): each token adds its key times its value, and each query reads $q\,S$.

# %%
rng = np.random.default_rng(17)
q, k, v = rng.normal(size=(3, 128, 64))
S, reads = np.zeros((64, 64)), []
for i in range(128):
    S = S + np.outer(k[i], v[i])  # written
    reads.append(q[i] @ S)  # read
scores = np.where(al.causal_mask(128), q @ k.T, 0)  # all keys kept, no softmax
off = np.abs(reads - scores @ v).max()
print(f"state and kept keys differ by {off:.10f}")
print(f"{S.size} numbers, as many as keys and values of {S.size // 128} tokens")

# %% [markdown]
# ## 2 · Erase, then write
#
# Adding every value is the **sum rule**. No token has a place of its own in a state, so all values lie on top of each other. The
# **delta rule** first reads what stands under the key, $k S$. It writes the difference to the new value, or a share $\beta$ of it ([Schlag et al.
# 2021](../REFERENCES.md#schlag-2021); [Yang et al. 2024](../REFERENCES.md#yang-2024)):
#
# $$S \leftarrow S + \beta\,k^T (v - k\,S)$$

# %% [markdown] tags=["exercise"]
# ### Exercise [[state]] · A state
#
# **Goal.** Write and read by the delta rule. *10 minutes, medium.*
#
# `my_state(query, key, value, beta)`: query and key $(..., n, d_k)$, value $(..., n, d_v)$, beta $(..., n)$; axes in front are
# heads. First bring each key to length 1. The state is 0 at first. Each token in turn writes by the rule above, and then its
# query reads $q\,S$. Return what all of them read, $(..., n, d_v)$.


# %%
def my_state(query, key, value, beta):
    return ...  # your code


# %%
verdict = check.state(my_state)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_state(query, key, value, beta):
#     key = key / np.linalg.norm(key, axis=-1, keepdims=True)
#     S, reads = np.zeros((*key.shape[:-2], key.shape[-1], value.shape[-1])), []
#     for i in range(key.shape[-2]):
#         q, k, v = (x[..., i, None, :] for x in (query, key, value))  # (..., 1, d)
#         change = beta[..., i, None, None] * (v - k @ S)
#         S = S + np.swapaxes(k, -1, -2) @ change  # (..., d_k, d_v)
#         reads.append(q @ S)
#     return np.concatenate(reads, axis=-2)
# ```
#
# </details>

# %% [markdown]
# ## 3 · Break it · More than fits
#
# Your function writes 128 random values into a state of 64 x 64, and each key asks for its newest one. The *error* is how far what
# is read lies from that value: 1 for a reader who always says 0.

# %% jupyter={"source_hidden": true}
written = my_state if verdict.passed else state  # ours, until yours is right


# %% jupyter={"source_hidden": true}
def in_a_window(size):
    """Return what is found, and the error of a reader who says 0 of all else."""
    shares = [(drawn(64, times)[2] >= 128 - size).mean() for times in (1, 4)]
    return [x for share in shares for x in (share, np.sqrt(1 - share))]


# %%
def read_back(key, value, newest, beta):
    asked = at(key, newest)  # (16, asked, d_k)
    if beta is None:
        return asked @ (swap(key) @ value)  # the sum rule: (16, asked, d_v)
    keys = np.concatenate([key, asked], axis=1)  # the last only ask: beta is 0
    values = np.concatenate([value, value[:, : asked.shape[1]]], axis=1)
    betas = np.zeros(keys.shape[:2])
    betas[:, :128] = beta
    reads = [written(*draw) for draw in zip(keys, keys, values, betas)]
    return np.array(reads)[:, 128:]


# %% [markdown] tags=["predict"]
# **Predict.** First 128 keys come once each. Then 32 keys come four times, in random order, always with another value. Which rule
# finds more, the sum, or delta with $\beta = 1$?
#
# - **a** the delta rule, both times
# - **b** the sum for new keys, the delta rule for keys that come again
# - **c** the sum, both times

# %%
guess_state = None  # "a", "b" or "c"

# %%
rows = []
for beta in (None, 1, 0.5, 0.25):
    row = ["the sum" if beta is None else f"delta, β = {beta}"]
    for times in (1, 4):
        key, value, newest = drawn(64, times)
        right, error = found(read_back(key, value, newest, beta), value, newest)
        row += [right.mean(), error]
    rows.append(row)
rows.append(["a window of 32", *in_a_window(32)])
names = ["", "new: found", "error", "again: found", "error "]
plot.table(names, rows, tint=names[1::2])

# %%
predict.sum_or_delta(guess_state)

# %% [markdown]
# Under a key that came four times the sum returns all its values, added up: it finds the newest as often as a guess among four.
# The delta rule erases the old value. But random keys are not at right angles, so what is erased under one key takes a little from
# all others, and the oldest values fade. A smaller $\beta$ erases less: at 0.25 the delta rule finds nearly as many new values as
# the sum, by this measure, and 83 % of those that came again. In a trained layer each token brings its own $\beta$.
#
# Found is not kept. The sum finds 93 % with an error of 1.41, larger than that of a reader who always says 0. In the same room a
# window keeps 32 of the 128 tokens, exactly.
#
# Each cell is a quarter of the keys, from the oldest to the newest. **Try.** Go through $d_k$ with $\beta = 1$. Which values does
# the delta rule lose first? Does a smaller $\beta$ bring them back? Then let each key come four times.


# %% jupyter={"source_hidden": true}
def at_once(key, value, beta):  # what each token adds solves a triangular system
    earlier = np.tril(key @ swap(key), -1)  # (16, n, n)
    added = np.linalg.solve(np.eye(key.shape[1]) + beta * earlier, beta * value)
    return swap(key) @ added  # the state, (16, d_k, d_v)


def by_age(d_k, beta, times):
    key, value, newest = drawn(d_k, times)
    states = swap(key) @ value, at_once(key, value, beta)
    reads = [at(key, newest) @ S for S in states]
    right = [found(read, value, newest)[0].reshape(16, 4, -1) for read in reads]
    return {"share of values found": np.array(right).mean(axis=(1, 3))}


# %% jupyter={"source_hidden": true}
sliders = {"d_k": [8, 16, 32, 64, 128], "β": [0.25, 0.5, 1]}
sliders["each key"] = [("once", 1), ("four times", 4)]
labels = {"queries": ["sum", "delta"], "row_name": "rule", "label": "features d_k"}
labels |= {"keys": ["oldest", "2nd", "3rd", "newest"]}
view = live.weights_view(by_age, still=(16, 64, 128), **sliders, **labels)
view.sliders["β"].value, view.sliders["each key"].value = 1, 1
view

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Keys and values are random, in 16 draws (*Appendix*), and nothing is trained. Of $2 d_k$ new values the sum finds 0.50 at $d_k =
# 16$ and all at 128, delta with $\beta = 1$ 0.34 and 0.63; with 16 features in a value, 0.35 and 0.27. Rescaled
# by the best factor, the errors are 0.82 (sum) and 0.89 (delta): the order turns round. Of keys at
# right angles the state returns $d_k$ exactly. By the nearest value, where length counts, $\beta = 0.25$ finds 0.37 of the new ones
# and the sum 0.97. A sum that fades, times 0.97 at each token, finds 0.39 of the new values and 0.77 of those that come again.
#
# </details>

# %% [markdown] tags=["predict"]
# ## 4 · Keys that resemble each other
#
# Random keys are nearly at right angles. Those of a model are not: notebook [[less_to_keep]] opens with 32 keys of a head that was
# trained with a softmax, and the softmax does not see what they share. Write 32 values under them. By the sum rule, 32 random
# keys find all. **Predict.** How many values do these find?
#
# - **a** about one in ten
# - **b** about half
# - **c** nearly all: 32 pairs fit

# %%
guess_shared = None  # "a", "b" or "c"

# %%
key, value, newest = drawn(64, n=32)
K = np.array(smollm.recorded("some_keys")["key"])  # of layer 20, (32, 64)
rows = []
for name, chosen in (("random", key), ("layer 20", K), ("mean away", K - K.mean(0))):
    key = np.broadcast_to(chosen, (16, 32, 64))
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    states = swap(key) @ value, at_once(key, value, 1)
    shares = [found(key @ S, value, newest)[0].mean() for S in states]
    rows.append((name, *shares))
plot.table(["32 keys", "the sum", "delta, β = 1"], rows, tint=["the sum"])

# %%
predict.shared_by_a_state(guess_shared)

# %% [markdown]
# A state sees what keys share: every key also reads what all others have written. Once their mean is away, most values are found. So
# keys that serve a softmax need not serve a state.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# The order of the rules may turn round. If half of each key is the same in all, delta finds 0.16 of 128 new values, and the sum
# 0.04. Of 32 positive keys, as the first linear attention makes them, both find about a tenth or less. It also divides by $q$ times
# the sum of the keys, which changes no ranking.
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# Hard: `my_state` goes through the tokens one by one. On a GPU one goes through them in chunks: within a chunk all at once, as the
# slider does, and from chunk to chunk with a state. Write it for chunks of 16, and hand it to `check.state`. Is it equal to your
# first one, to 1e-12?
#
# <details><summary>Answer</summary>
#
# ```python
# def my_chunks(query, key, value, beta, size=16):
#     key = key / np.linalg.norm(key, axis=-1, keepdims=True)
#     S, reads = 0 * swap(key)[..., :1] @ value[..., :1, :], []  # (..., d_k, d_v)
#     for i in range(0, key.shape[-2], size):
#         q, k, v = (x[..., i : i + size, :] for x in (query, key, value))
#         b = beta[..., i : i + size, None]
#         earlier = np.tril(b * (k @ swap(k)), -1)
#         added = np.linalg.solve(np.eye(k.shape[-2]) + earlier, b * (v - k @ S))
#         reads.append(q @ S + np.tril(q @ swap(k)) @ added)
#         S = S + swap(k) @ added
#     return np.concatenate(reads, axis=-2)
# ```
#
# Four slips: the diagonal kept in `earlier`, no system solved, the old state not read, a query that does not see its own token.
#
# </details>
#
# **Remember.** Without a softmax the bracket moves, and what is kept never grows. A state is one matrix for all tokens. The sum rule
# adds, and finds most new values; the delta rule replaces, and finds the newest under a key that comes again. Found is not kept:
# what is read also holds a little of all other values. A state sees what keys share.
#
# Next: [[[casebook]], the casebook]([[casebook.ipynb]]), to look things up.

# %% [markdown]
# ## Appendix: checks
#
# A state as your function makes it, and all tokens at once; then the values found and the errors of section 3, with other widths
# and keys, and with the best factor:

# %%
key, value, newest = drawn(64)
late = key @ at_once(key, value, 0.5)
off = np.abs(late - read_back(key, value, newest, 0.5)).max()
print(f"one by one and at once differ by {off:.10f}")
square = np.linalg.qr(rng.normal(size=(64, 64)))[0]  # keys at right angles
off = np.abs(square @ at_once(square[None], v[None, :64], 1) - v[:64]).max()
print(f"64 keys at right angles, read with an error of {off:.10f}")

# %%
others = {f"d_k = {d}": {"d_k": d, "n": 2 * d} for d in (16, 64, 128)}
others["values of 16"] = {"d_v": 16}
for shared, n in ((0.2, 128), (0.5, 128), (0.5, 32)):
    others[f"{shared} shared, {n} keys"] = {"shared": shared, "n": n}
others["positive, 32 keys"] = {"positive": True, "n": 32}

# %%
for name, options in others.items():
    key, value, newest = drawn(**{"d_k": 64} | options)
    for rule, S in (("sum", swap(key) @ value), ("delta", at_once(key, value, 1))):
        right, error = found(read := key @ S, value, newest)
        least = np.sqrt(
            1 - (read * value).sum() ** 2 / (read**2).sum() / (value**2).sum()
        )
        each, told = right.mean(1), f"error {error:.2f}, {least:.2f}"
        spread = f"{each.mean():.2f} ({each.min():.2f} to {each.max():.2f})"
        print(f"{name:22}{rule:6}{spread}, {told}")

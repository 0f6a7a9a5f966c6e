# %% [markdown]
# # [[todays_head]] · Today's head
#
# **Question.** How close is the head that you have built to those of Llama, Qwen3, Gemma 2 and GPT-OSS?
# *50 minutes, and 42 for exercises.*

# %% jupyter={"source_hidden": true}
import inspect
from textwrap import dedent

import numpy as np

import attnlib as al
from attncourse import check, mine, predict, real_model, smollm
from attnlib import live, plot
from attnlib.colours import INK, KEY, LINE, PAPER, QUERY, VALUE

np.set_printoptions(precision=4, suppress=True)

# %% jupyter={"source_hidden": true}
(_, ax), style = plot.subplots(figsize=(1.9, 2)), {"color": QUERY, "lw": 2.4}
angle = np.linspace(0, 7, 99)
_ = ax.plot(np.cos(angle), np.sin(angle), color=LINE)
for place in range(4):
    tip = np.array([np.cos(place), np.sin(place)])  # one radian for each position
    _ = ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "-|>", **style})
    _ = ax.text(*1.25 * tip, place, ha="center", va="center")
title = "A piece of the answer:\na query rotated\nby its position, 0 to 3"
_ = (
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal", title=title),
    ax.axis("off"),
)

# %% [markdown] tags=["predict"]
# **Predict.** Which of their attention modules, in the `transformers` library, does your attention of notebook [[one_token_at_a_time]] match, causal, with shared keys?
# Weights and twelve tokens are random, the same for all. *Off* is the largest difference in an output.
#
# - **a** all four
# - **b** Llama's alone
# - **c** none

# %%
guess_match = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
stored = real_model.stored("heads_2026")
W = {name: np.array(values) for name, values in stored["drawn"].items()}
x = W["x"]  # (n, d_model)


# %% jupyter={"source_hidden": true}
def distances(layer):  # (4, 2): from each model, at the first token and at any
    theirs = np.array(list(stored["outputs"].values()))  # (4, n, d_model)
    off = np.abs(layer(x) - theirs).max(axis=-1)  # (4, n)
    return np.stack([off[:, 0], off.max(axis=-1)], axis=-1)


def compare(layer):
    rows = [
        [name, *(f"{number:.2f}" for number in off)]
        for name, off in zip(stored["outputs"], distances(layer))
    ]
    return plot.table(["model", "off at the first token", "at any token"], rows)


# %%
def old_layer(x, turn=lambda y: y):  # turn: for section 1
    q = turn(al.split_heads(x @ W["W_Q"], 4))  # (4, n, d_k)
    k, v = (al.split_heads(x @ W[name], 2) for name in ("W_K", "W_V"))  # (2, n, d_k)
    k, v = (np.repeat(y, 2, axis=0) for y in (turn(k), v))
    output = al.scaled_dot_product_attention(q, k, v, al.causal_mask(len(x)))
    return al.merge_heads(output) @ W["W_O"]


compare(old_layer)

# %%
predict.match(guess_match)

# %% [markdown]
# That is far: the largest output is 3.5. At the first token, which sees only itself, three
# models agree. So they differ in how a token looks at *others*, GPT-OSS even at itself.

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[one_token_at_a_time]])* Five keys are in the cache, and two new tokens arrive at once. Which keys may they see?
#
# - **a** the first key 0, the second 0 and 1
# - **b** the first keys 0 to 5, the second all seven
# - **c** both all seven
#
# **2.** *(notebook [[program_a_head]])* All queries of a head become 10 times as long. What changes?
#
# - **a** which key gets the most weight
# - **b** how much of the weight that key gets
# - **c** nothing: softmax takes the factor out again
#
# **3.** *(notebook [[train_and_look]])* A model without a mask adds a vector for each position. What does attention lose without them?
#
# - **a** in which order tokens stand
# - **b** which tokens there are
# - **c** which tokens come later, and are hidden

# %%
predict.before_todays_head(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A position is an angle
#
# What does the old layer not see? Exchange two words before the last one:

# %%
exchanged = x[[0, 2, 1, *range(3, 12)]]  # tokens 1 and 2
off = np.abs(old_layer(exchanged) - old_layer(x))[-1].max()
print(f"the last token's output moves by {off:.2f}")

# %% [markdown]
# It does not see how far back a key stands. Notebook [[train_and_look]] added a vector for each position. These four
# models **rotate** each query and key instead, by an angle that grows with its position: rotary position embedding,
# **RoPE** ([Su et al. 2021](../REFERENCES.md#su-2021)). Here with two features, one radian for each position:


# %%
def rotate(x, angle):
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([cos * x[0] - sin * x[1], sin * x[0] + cos * x[1]])


q, k = np.array([2.0, 1.0]), np.array([1.0, 2.0])  # (d_k,) each, d_k = 2
print(f"not rotated: q.k = {q @ k:.4f}")
for i, j in ((3, 3), (3, 2), (3, 1)):
    score = rotate(q, i) @ rotate(k, j)
    print(f"query at position {i}, key at position {j}: {score:7.4f}")

# %% [markdown] tags=["predict"]
# Nearer is not larger: what counts is how well the arrows agree.
#
# **Predict.** Move both tokens on by 100 positions, the query from 3 to 103 and the key from 1 to 101. What becomes of their
# score?
#
# - **a** it is another number: the angles are others
# - **b** it becomes smaller: both are far from the start
# - **c** it stays the same

# %%
guess_shifted = None  # "a", "b" or "c"

# %%
for i, j in ((3, 1), (103, 101), (1003, 1001)):
    score = rotate(q, i) @ rotate(k, j)
    print(f"query at position {i:4d}, key at {j:4d}: {score:7.4f}")

# %%
predict.shifted(guess_shifted)

# %% [markdown]
# Eight features make four *pairs*, each rotated more slowly than the last; query and key are alike. **Try.** Move *distance*: where does pair 0 look as if there were hardly any?

# %%
arrows = live.rotations()
arrows

# %% [markdown]
# Let $R_p$ rotate a vector by the angle of position $p$. Rotate both arrows back by $j$, and no dot product changes:
#
# $$(R_i\, q) \cdot (R_j\, k) = (R_{i-j}\, q) \cdot k.$$
#
# Yet each token is rotated by its own position, so a rotated key can stay in the cache. Values are compared with nothing, and not rotated.
#
# ### Many pairs, many frequencies
#
# Pair 0 is almost back after 6 positions, so it can hardly tell 6 from 0. So each of the $d_k / 2$ pairs of
# features rotates at its own **frequency**. The **base** $\theta$ is
# 10,000 in the paper, and 500,000 in Llama 3:
#
# $$\omega_c = \theta^{-2c/d_k}, \qquad c = 0, 1, \dots, d_k/2 - 1.$$


# %%
def frequencies(d_k, base=10_000.0):
    return base ** (-2 * np.arange(d_k // 2) / d_k)  # (d_k / 2,)


omega = frequencies(8)
rows = [(c, f"{speed:.3f}", 2 * np.pi / speed) for c, speed in enumerate(omega)]
heads = ["pair c (d_k = 8)", "radians a position", "positions for a full turn"]
plot.table(heads, rows)

# %% [markdown]
# Until you write `rope`, it is attnlib's.

# %%
rope = al.rope


def rotated(x, start=0, **options):  # (..., n, d_k)
    return rope(x, start + np.arange(x.shape[-2]), **options)


# %% [markdown] tags=["predict"]
# ### Two ways to pair
#
# The paper pairs neighbours, features $2c$ and $2c+1$. `transformers` pairs $c$ with $c + d_k/2$ in
# these four models, and so does `al.rope`. Weights work only with the pairing that they were trained with; with the other, Llamas wrote [nonsense](https://github.com/NeuraLegion/shainet/pull/111). Reorder the features as 0 2 4 6 1 3 5 7: old
# neighbours now stand $d_k / 2$ apart. **Predict.** Reorder queries, keys or both?

# %%
q, k = np.random.default_rng(0).normal(size=(2, 6, 8))  # (n, d_k) each
order = np.argsort(np.arange(8) % 2, kind="stable")  # 0, 2, 4, 6, 1, 3, 5, 7
neighbours = {"pairing": "neighbours"}
right = rotated(q, **neighbours) @ rotated(k, **neighbours).T  # (n, n)
for name, scores in {
    "queries and keys in their old order": rotated(q) @ rotated(k).T,
    "queries and keys reordered": rotated(q[:, order]) @ rotated(k[:, order]).T,
    "only the keys reordered": rotated(q) @ rotated(k[:, order]).T,
}.items():
    print(f"{name:36} right: {np.allclose(scores, right)}")

# %% [markdown]
# So whoever converts weights reorders the columns of $W_Q$ **and** $W_K$, and their biases, head by head.

# %% [markdown] tags=["exercise"]
# ### Exercise [[rope]] · RoPE
#
# **Goal.** Write RoPE, in both ways to pair. *12 minutes, medium.*
#
# `my_rope`: $(..., n, d_k)$ gives $(..., n, d_k)$. Pair $c$ of the token at position $p$ is
# rotated by $+p\, \omega_c$, as in `rotate`. With `"halves"` pair $c$ is feature $c$ with $c + d_k/2$, with `"neighbours"` feature $2c$ with
# $2c + 1$; each feature goes back to its old index. `positions` $(n,)$ may have gaps.


# %%
def my_rope(x, positions, base=10_000.0, pairing="halves"):
    return ...  # your code


# %%
verdict = check.rope(my_rope)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_rope(x, positions, base=10_000.0, pairing="halves"):
#     d_k = x.shape[-1]
#     a, b = x[..., 0::2], x[..., 1::2]  # (..., n, d_k / 2): neighbours
#     if pairing == "halves":
#         a, b = x[..., : d_k // 2], x[..., d_k // 2 :]
#     omega = base ** (-2 * np.arange(d_k // 2) / d_k)  # (d_k / 2,)
#     angle = np.asarray(positions)[:, None] * omega  # (n, d_k / 2)
#     cos, sin = np.cos(angle), np.sin(angle)
#     a, b = a * cos - b * sin, a * sin + b * cos
#     if pairing == "halves":
#         return np.concatenate([a, b], axis=-1)
#     return np.stack([a, b], axis=-1).reshape(x.shape)
# ```
#
# </details>

# %% [markdown]
# If it passed, `rotated` calls your RoPE from here on.

# %%
mine.keep(my_rope)

# %% tags=["nbval-ignore-output"]
rope = mine.load("rope")

# %% tags=["nbval-ignore-output"]
compare(lambda x: old_layer(x, rotated))

# %% [markdown]
# One line, and Llama is done. The other three lack one more each. GPT-OSS keeps its 2.66 of the first token, which RoPE does not rotate.
# (Angles want 32 bits: appendix.)

# %% [markdown]
# ## 2 · One position back, at any length
#
# How does a head look exactly one position back? Here is a query of ones, and a key of ones ever farther back. *Another key* is rotated by 20 positions more.

# %% jupyter={"source_hidden": true}
(_, ax), ones = plot.subplots(figsize=(4.6, 2.8)), np.ones((65, 128))  # (n, d_k)
for name, back, color in (("a key of ones", 0, INK), ("another key", 20, KEY)):
    score = rotated(ones) @ rotated(ones[:1], start=back)[0] / 128  # (n,)
    _ = ax.plot(score, color=color, lw=2.4, label=name)
    _ = ax.text(back + 1, 1.12, name, color=color)
_ = ax.set(xlabel="distance i - j", title="score / $d_k$, $d_k$ = 128", ylim=(0, 1.25))
_ = ax.set(xlim=(0, 72), yticks=(0, 1))

# %% [markdown]
# The score is largest where both are rotated alike: for *another key* 20 back. Divided by $d_k$ it is 1 there. So to look **one** back, with all queries and keys alike, rotate each query back by one position. $W_Q$ can do that, like `turn` in the ring of notebook [[program_a_head]].


# %%
def one_back(n, d_k=64, amplitude=32**0.5):  # large: softmax is sharp
    same = np.full((n, d_k), amplitude)
    scores = rotated(same, start=-1) @ rotated(same).T / np.sqrt(d_k)  # (n, n)
    return al.softmax(np.where(al.causal_mask(n), scores, -np.inf))


_, ax = plot.subplots(figsize=(2.4, 2.5))
_ = plot.attention_heatmap(one_back(6), attn_mask=al.causal_mask(6), places=0, ax=ax)
for n in (16, 128, 1024):
    smallest = one_back(n).diagonal(-1).min()
    print(f"n = {n:4d}: weight on the position before, at least {smallest:.4f}")

# %% [markdown] tags=["exercise"]
# ### Exercise [[look_back]] · Look at two positions
#
# **Goal.** Choose one query and one key, the same for every token, so that each token looks `near` positions back and `far`
# positions back, half and half. *12 minutes, hard.*
#
# `my_look_back(d_k, near, far)` returns `(query, key)`, each $(d_k,)$, before RoPE, for a causal
# head with $\sqrt{d_k}$. In a sequence of 200, every token that has both must give each at least 0.45 of its weight.
# `rotated(key[None], start=...)[0]` rotates a single vector.


# %%
def my_look_back(d_k, near, far):
    return ...  # your code


# %%
verdict = check.look_back(my_look_back)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_look_back(d_k, near, far):
#     key = np.full(d_k, 8.0)  # large: sharp
#     # two queries in one: their scores add up
#     query = rotated(key[None], start=-near)[0] + rotated(key[None], start=-far)[0]
#     return query, key
# ```
#
# </details>

# %% [markdown]
# ### And learned?
#
# Now a head *learns* that from 32 letters. Each answer is the letter before.

# %% jupyter={"source_hidden": true}
try:
    import torch

    from attncourse.training import previous_letter

    _ = torch.set_num_threads(1)
except ImportError:
    torch = None
    print("torch is not installed, so the cells of this section print nothing.")
    print("The numbers in its text are from a run with torch: pip install torch")

# %% [markdown] tags=["predict"]
# **Predict.** With RoPE the head gets everything right at 32 letters. How good is it in sequences of 512, from position 32 on?
#
# - **a** as good as before: only the distance counts
# - **b** much worse, though better than chance
# - **c** at chance, 1 in 16 (0.06)

# %%
guess_beyond = None  # "a", "b" or "c"

# %%
if torch is not None:
    model = previous_letter.trained("RoPE")

# %% tags=["nbval-ignore-output"]
if torch is not None:
    shares = {n: previous_letter.accuracy(model, n) for n in (32, 64, 128, 512)}
    told = ", ".join(f"{share:.2f} at {n}" for n, share in shares.items())
    print("share of right answers:", told)

# %%
predict.beyond(guess_beyond)

# %% [markdown]
# Of its weight at 512, 0.81 has gone farther back than 31, where training never led (appendix).

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Five trainings have 0.79 to 0.99 right at 64 letters, 0.17 to 0.30 at 512, and 1.00 with a window of 32. Vectors for
# each position, learned or sinusoids of [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017), are at chance at 512
# (`python -m bench training`).
#
# </details>

# %% [markdown]
# ## 3 · An attention layer of 2024 and 2025
#
# Which three pieces of the whole layer have you not built yet? The cache, the window and *repeat* (shared keys and values) are those of notebook [[one_token_at_a_time]].


# %% jupyter={"source_hidden": true}
def box(ax, x, y, words, colour, new=False):
    style = {"fc": "white", "ec": colour, "lw": 2.6 if new else 1}
    centre = {"ha": "center", "va": "center", "color": "black"}
    _ = ax.text(x, y, words, bbox={"boxstyle": "round,pad=0.45", **style}, **centre)


def line(ax, start, end):
    style = {"arrowstyle": "-|>", "lw": 1, "color": "gray"}
    style |= {"shrinkA": 0, "shrinkB": 0}
    _ = ax.annotate("", end, start, arrowprops=style, zorder=0)


# %% jupyter={"source_hidden": true}
def draw_lane(ax, name, place, colour):
    """Draw what becomes of the queries, the keys or the values of all heads."""
    line(ax, (2.6, 6.1), (place, 5.3))
    end = 0.5 if name == "V" else 0.1
    _ = ax.plot([place, place], [5, end], color="gray", lw=1, zorder=0)
    box(ax, place, 5, f"$W_{name}$", colour)
    if name != "V":
        box(ax, place, 4, "QK-norm", colour, new=True)
        box(ax, place, 3, "RoPE", colour, new=True)
    if name != "Q":
        box(ax, place, 2, "cache", colour)
        box(ax, place, 1, "repeat", colour, new=True)


# %% jupyter={"source_hidden": true}
STEPS = {r"$q \cdot k \,/ \sqrt{d_k}$": False, "softcap": True}
STEPS |= {"mask, window": True, "softmax, sink": True}
STEPS |= {"weights × values": False, r"merge heads, $W_O$": False}
title = "An attention layer of 2024 and 2025:\nthick frame: new or changed since 2017"

# %% jupyter={"source_hidden": true}
_, ax = plot.subplots(figsize=(3.55, 4.2))
for name, place, colour in (("Q", 0.8, QUERY), ("K", 2.6, KEY), ("V", 4, VALUE)):
    draw_lane(ax, name, place, colour)
box(ax, 2.6, 6.1, "$x$", LINE)
for at, low, right, high, to in ((0.8, 0.1, 7.97, 6.1, 7.2), (4, 0.5, 4.8, 2, 5)):
    _ = ax.plot([at, right, right], [low, low, high], color="gray", lw=1, zorder=0)
    line(ax, (right, high), (to, high))
line(ax, (6.4, 6.1), (6.4, 0.9))
for height, (words, new) in zip(np.linspace(6.1, 1, 6), STEPS.items()):
    box(ax, 6.4, height, words, LINE, new)
_ = ax.text(5, 0.2, "q and k"), ax.axis("off")
_ = ax.set(xlim=(0, 8), ylim=(-0.1, 6.6), title=title)

# %% [markdown]
# QK-norm, softcap and sink, for two reasons:
#
# - No score should run away in training. Qwen3's [QK-norm](../REFERENCES.md#dehghani-2023) takes the length out of queries and keys;
#   Gemma 2's [softcap](../REFERENCES.md#gemma-2) bends large scores below a cap.
# - Softmax gives all its weight away, even where no key fits. GPT-OSS's [sink](../REFERENCES.md#gpt-oss), one more score without
#   key or value, lets weight go to nobody, even at a first token.

# %% [markdown] tags=["predict"]
# **Predict.** Of 12 random keys one grows ten times as long. Which share of the weight does it take?
#
# - **a** less than half
# - **b** nearly all
# - **c** a twelfth, as before

# %%
guess_long_key = None  # "a", "b" or "c"


# %%
def rms_norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def share_of_one(times, norm=lambda x: x):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(5000, 1, 8)), rng.normal(size=(5000, 12, 8))
    k[:, 0] *= times
    scores = norm(q) @ norm(k).swapaxes(-1, -2) / np.sqrt(8)  # (5000, 1, 12)
    return al.softmax(scores)[..., 0].mean()


print(f"as long as the others {share_of_one(1):.2f}, ten times {share_of_one(10):.2f}")
print(f"ten times, both normed {share_of_one(10, rms_norm):.2f}")

# %%
predict.long_key(guess_long_key)

# %% [markdown]
# After `rms_norm` every query and key has length $\sqrt{d_k}$, so no scaled score exceeds $\sqrt{d_k}$. A learned **gain**
# for each feature moves that limit, so that a head can still be sharp.

# %% [markdown] tags=["predict"]
# **Predict.** Qwen3 normalises **before** it rotates. Does the order matter?
#
# - **a** only because of the gain
# - **b** yes, the norm changes the angle
# - **c** no, in no case

# %%
guess_norm_order = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
some, gain = np.random.default_rng(2).normal(size=(5, 8)), W["q_gain"]
alone = rotated(rms_norm(some)) - rms_norm(rotated(some))
with_gain = rotated(rms_norm(some, gain)) - rms_norm(rotated(some), gain)
print(f"norm alone: the order matters by {np.abs(alone).max():.2f}")
print(f"with gain:  the order matters by {np.abs(with_gain).max():.2f}")

# %%
predict.norm_order(guess_norm_order)

# %% [markdown]
# Softcap and sink:


# %%
def capped(scores, cap):  # about the same while small, and never above the cap
    return cap * np.tanh(scores / cap)


def softmax_with_sink(scores, sink):  # (h, n_q, n_k); one more score for each head
    column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
    return al.softmax(np.concatenate([scores, column], axis=-1))[..., :-1]


# %% jupyter={"source_hidden": true}
_, (bent, bars) = plot.subplots(1, 2, figsize=(6, 2.6))
some = np.linspace(0, 15, 61)
_ = bent.plot(some, some, color=LINE), bent.plot(some, capped(some, 5), color=INK)
_ = bent.set(title="A softcap of 5", xlabel="score", ylabel="capped", ylim=(0, 15))
_ = bent.text(8, 10.5, "no cap", color="gray", ha="right")
w = softmax_with_sink(np.zeros((1, 1, 3)), np.array([1.0]))[0, 0]  # (n_k,)
_ = bars.bar(["key 0", "key 1", "key 2"], w, color=KEY)
_ = bars.bar("nobody", 1 - w.sum(), color=LINE)
_ = bars.set(title="Keys of score 0, a sink of 1", ylabel="weight", ylim=(0, 1))
print(f"nobody: e^1 / (e^1 + 3 e^0) = {np.e / (np.e + 3):.2f}")

# %% [markdown]
# Cap and sink enter in `attend`. First your functions, or ours:

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
names = ("rope", "split_heads", "merge_heads", "attention")
rope, split_heads, merge_heads, attention = mine.load_all(names).values()


# %% jupyter={"source_hidden": true}
def seen(n_q, n_k, window=None):  # (n_q, n_k), the queries are the last tokens
    back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k)  # i - j
    return (back >= 0) & (back < (window or n_k))


# %%
def attend(q, k, v, window=None, softcap=None, sink=None):
    mask = seen(q.shape[-2], k.shape[-2], window)  # none later, none too far
    if softcap is None and sink is None:  # Llama, Qwen3: your attention fits as it is
        return attention(q, k, v, mask)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])  # (h, n_q, n_k)
    if softcap is not None:  # before the mask: afterwards -inf would become -softcap
        scores = capped(scores, softcap)
    scores = np.where(mask, scores, -np.inf)  # no weight for what is masked
    w = al.softmax(scores) if sink is None else softmax_with_sink(scores, sink)
    return w @ v  # (h, n_q, d_k); with a sink a row of w sums to less than 1


# %% jupyter={"source_hidden": true}
class Cached:
    def __init__(self, W, h, g, q_gain=None, k_gain=None, rope=True, **switches):
        self.W, self.h, self.g, self.switches = W, h, g, switches  # g heads of keys
        self.q_gain, self.k_gain = q_gain, k_gain
        self.rope, self.cache = rope, None

    def start(self):  # how many tokens are in the cache
        return 0 if self.cache is None else self.cache[0].shape[-2]

    def all_keys(self, k, v):  # the cached ones and these, (g, n, d_k) each
        if self.cache is not None:
            k, v = (np.concatenate(pair, axis=-2) for pair in zip(self.cache, (k, v)))
        self.cache = k, v
        return k, v


# %%
class Layer(Cached):
    def __call__(self, x):  # (n_new, d_model): tokens that follow those in the cache
        q = split_heads(x @ self.W["W_Q"], self.h)  # (h, n_new, d_k)
        k, v = (split_heads(x @ self.W[w], self.g) for w in ("W_K", "W_V"))  # g heads
        if self.q_gain is not None:  # Qwen3 norms before it rotates
            q, k = rms_norm(q, self.q_gain), rms_norm(k, self.k_gain)
        if self.rope:  # the first new token stands behind all cached ones, at start()
            q, k = rotated(q, self.start()), rotated(k, self.start())
        k, v = self.all_keys(k, v)  # (g, n, d_k): cached keys are rotated already
        k, v = (np.repeat(y, self.h // self.g, axis=0) for y in (k, v))  # h again
        return merge_heads(attend(q, k, v, **self.switches)) @ self.W["W_O"]


# %% [markdown] tags=["exercise"]
# ### Exercise [[rotary_attention]] · A head that continues
#
# **Goal.** Write the heart of Qwen3's head, for new tokens. *12 minutes, hard.*
#
# `my_rotary_attention(query, key, value, q_gain, k_gain)`: `query` $(..., n_q, d_k)$ holds the **last** $n_q$ of $n_k$ tokens,
# `key` and `value` all of them, $(..., n_k, d_k)$ and $(..., n_k, d_v)$. RMS norm with gain, RoPE with halves as pairs and base
# 10,000, causal attention. Returns $(..., n_q, d_v)$. Take `rms_norm`, `rotated`, `al.scaled_dot_product_attention` and
# `al.causal_mask` with `align`.


# %%
def my_rotary_attention(query, key, value, q_gain, k_gain):
    return ...  # your code


# %%
verdict = check.rotary_attention(my_rotary_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_rotary_attention(query, key, value, q_gain, k_gain):
#     n_q, n_k = query.shape[-2], key.shape[-2]
#     q = rotated(rms_norm(query, q_gain), start=n_k - n_q)
#     k = rotated(rms_norm(key, k_gain))
#     mask = al.causal_mask(n_q, n_k, align="lower_right")
#     return al.scaled_dot_product_attention(q, k, value, mask)
# ```
#
# </details>

# %% [markdown] tags=["predict"]
# ## 4 · Is that the real thing?
#
# Your layer has four switches now: RoPE, norm, cap, sink.
#
# **Predict.** Which does GPT-OSS need, the latest of the four?
#
# - **a** the sink alone
# - **b** all four
# - **c** RoPE and the sink

# %%
guess_latest = None  # "a", "b" or "c"

# %%
predict.latest(guess_latest)

# %% [markdown]
# **Try.** Bring each model to 0.00, with as few switches as you can. Read the numbers: the colours end at 1.

# %% jupyter={"source_hidden": true}
PIECES = {
    "norm": {"q_gain": W["q_gain"], "k_gain": W["k_gain"]},
    "cap": {"softcap": stored["settings"]["softcap"]},
    "sink": {"sink": W["sink"]},
}


def switched(rope, *chosen):  # (2, 4)
    own = {"rope": rope}
    for piece, on in zip(PIECES.values(), chosen):
        own |= piece if on else {}
    return {"How far off": distances(Layer(W, 4, 2, **own)).T}


# %% jupyter={"source_hidden": true}
switches = {name: [("off", False), ("on", True)] for name in ("RoPE", *PIECES)}
labels = {"queries": ["first", "any"], "keys": list(stored["outputs"])}
labels |= {"row_name": "token, model", "still": (False, True), "start": False}
view = live.weights_view(switched, **switches, **labels)
for name in PIECES:
    view.sliders[name].value = False
view

# %% [markdown] tags=["predict"]
# **Predict.** Give Llama a piece that it lacks. Which moves its outputs most: norm, cap or sink?

# %%
SWITCHES = dict(zip(stored["outputs"], ({}, *PIECES.values())))  # Llama: none
names, rows = ["RoPE", *(f"RoPE, {name}" for name in PIECES)], []
for name, own in zip(names, SWITCHES.values()):
    off = distances(Layer(W, 4, 2, **own))[:, 1]  # (4,), at any token
    rows.append([name, *(f"{number:.2f}" for number in off)])
plot.table(["on", *SWITCHES], rows)

# %% [markdown]
# The sink, 2.66: it takes weight even at the first token.
#
# **Your layer and four small functions compute what four real modules do**: with random weights, no biases, no window, and a cap of 5 for Gemma 2's 50 (transformers 5.23).
#
# <details><summary><b>How sure is this?</b></summary>
#
# All have base 10,000 and scores divided by $\sqrt{d_k}$. The real Gemma 2 and GPT-OSS have a window in every other layer, GPT-OSS also biases and YaRN (section 5).
#
# </details>

# %% [markdown] tags=["predict"]
# Tokens may come in parts (here the window is 6). A part's first token has position `start`, the number of cached ones.
#
# **Predict.** What if `start` stays 0?
#
# - **a** no error: only distances count
# - **b** an error as soon as there are two parts
# - **c** an error even in one part

# %%
guess_start = None  # "a", "b" or "c"


# %% jupyter={"source_hidden": true}
class AlwaysZero(Layer):
    def start(self):
        return 0


def in_parts(kind, ends):  # (n, d_model)
    layer = kind(W, 4, 2, window=6, **SWITCHES["Qwen3"])
    return np.concatenate([layer(part) for part in np.split(x, ends[:-1])])


# %%
rows, whole = [], in_parts(Layer, [12])
for ends in ([12], [5, 12], [4, 5, 9, 12], list(range(1, 13))):
    off = (np.abs(in_parts(kind, ends) - whole).max() for kind in (Layer, AlwaysZero))
    rows.append([len(ends), *(f"{error:.2f}" for error in off)])
plot.table(["Qwen3, parts", "off", "off if start stays 0"], rows)

# %%
predict.start(guess_start)

# %% [markdown]
# ## Break it · What the mistakes cost
#
# Six mistakes, and none raises an error: *groups tiled* ([1, 2, 1, 2] in place of [1, 1, 2, 2]), *values rotated, too*, *only queries rotated*, *keys as
# neighbours*, *both as neighbours*, *base 500,000*. Which row is which? Start with the first token's column. A number is the error divided by the size of the right output. The last row compares with another text: pure chance.


# %% jupyter={"source_hidden": true}
def tiled(y, group):  # groups in the wrong order
    return np.concatenate([y] * group)


def grouped(y, group):
    return np.repeat(y, group, axis=0)


def one_call(x, share=grouped, turn_q=rotated, turn_k=rotated, turn_v=lambda v: v):
    q = split_heads(x @ W["W_Q"], 4)  # (4, n, d_k)
    k, v = (split_heads(x @ W[name], 2) for name in ("W_K", "W_V"))  # (2, n, d_k)
    q, k, v = turn_q(q), turn_k(k), turn_v(v)
    return merge_heads(attend(q, share(k, 2), share(v, 2))) @ W["W_O"]


# %% jupyter={"source_hidden": true}
def other_pairs(y):
    return rotated(y, pairing="neighbours")


def other_base(y):
    return rotated(y, base=500_000.0)


# %% jupyter={"source_hidden": true}
MISTAKES = {
    "only the queries rotated": {"turn_k": lambda k: k},
    "base 500,000": {"turn_q": other_base, "turn_k": other_base},
    "both as neighbours": {"turn_q": other_pairs, "turn_k": other_pairs},
    "groups tiled, not repeated": {"share": tiled},
    "values rotated, too": {"turn_v": rotated},
    "keys as neighbours": {"turn_k": other_pairs},
}

# %% jupyter={"source_hidden": true}
WHY = [
    "scores depend on where the query stands",
    "only the first pair is as fast as before",
    "these weights were made for halves",
    "two heads read the other group's keys and values",
    "the output depends on where a text begins",
    "queries and keys rotate different features",
]


# %% jupyter={"source_hidden": true}
def off(x, mistake, read=None):
    right, wrong = one_call(x), one_call(x if read is None else read, **mistake)
    return np.sqrt(((wrong - right) ** 2).mean() / (right**2).mean())


def errors(mistake, read=None):  # of four texts
    pairs = zip(texts, read or texts)
    return [f"{off(text, mistake, other):.2f}" for text, other in pairs]


texts = [x[:1], x, *(np.random.default_rng(n).normal(size=(n, 24)) for n in (64, 512))]
others = [np.random.default_rng(1).normal(size=text.shape) for text in texts]
rows = [[row, *errors(mistake)] for row, mistake in enumerate(MISTAKES.values(), 1)]
rows.append(["no mistake, another text", *errors({}, others)])
heads = ("first token", "12 tokens", "64 tokens", "512 tokens")
plot.table(["row", *heads], rows)

# %% [markdown] tags=["predict"]
# **Predict.** Which are rows 2 and 4?
#
# - **a** 2 is the base, 4 the groups
# - **b** 2 is both as neighbours, 4 the values
# - **c** 2 is the groups, 4 the base

# %%
guess_rows = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
assert np.allclose(one_call(x), Layer(W, 4, 2)(x))
rows = [[row, *told] for row, told in enumerate(zip(MISTAKES, WHY), 1)]
plot.table(["row", "mistake", "why"], rows)


# %% jupyter={"source_hidden": true}
def by_position(mistake, ends):  # of eight texts; up to each end
    squares = np.zeros((2, ends[-1]))
    for seed in range(8):
        text = np.random.default_rng(seed).normal(size=(ends[-1], 24))
        right = one_call(text)
        wrong = one_call(text, **mistake)
        squares += ((wrong - right) ** 2).mean(axis=-1), (right**2).mean(axis=-1)
    parts = np.add.reduceat(squares, [0, *ends[:-1]], axis=-1)
    return np.sqrt(parts[0] / parts[1])


# %% jupyter={"source_hidden": true}
(_, ax), ends = plot.subplots(figsize=(5.4, 3)), 2 ** np.arange(10)
ours = {"groups tiled, not repeated": INK, "base 500,000": QUERY}
for name, mistake in MISTAKES.items():
    _ = ax.plot(ends, by_position(mistake, ends), color=ours.get(name, LINE), lw=2.4)
_ = ax.set(xscale="log", xlabel="position", ylim=(0, 1.4), xticks=ends)
_ = ax.set(xticklabels=ends, title="Error by position"), ax.minorticks_off()
_ = ax.text(1, 1.14, "groups tiled", color=INK), ax.text(5, 0.36, "others", color=LINE)
_ = ax.text(36, 0.22, "base 500,000", color=QUERY)

# %%
predict.wrong_rows(guess_rows)

# %% [markdown]
# So test with long texts.

# %% [markdown] tags=["predict"]
# ## 5 · Farther than it was trained
#
# SmolLM2, a small language model (notebook [[it_speaks]] opens it), was trained on 8,192 positions. It reads 40
# tokens twice, with a *gap* in the positions: 0 to 39, then, with 8,000, 8,040 to 8,079. If its loss on the copy stays low, it has found the first 40.
#
# **Predict.** At which gap is the copy lost?
#
# - **a** at 12,000, beyond the trained positions
# - **b** at 8,000
# - **c** at 2,000

# %%
guess_lost = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
found = smollm.recorded("farther")
ways = {
    name: {int(gap): np.mean(of) for gap, of in row.items()}
    for name, row in found["loss"].items()
}
del ways["only the queries by parts"]
gaps = list(ways["as trained"])

# %% jupyter={"source_hidden": true}
for gap, loss in ways["as trained"].items():
    print(f"gap {gap:6,}: loss on the copy {loss:5.2f}")
print(f"a blind guess among 49,152 tokens: {np.log(49_152):.2f}")
apart = [sum(range(8193 - far)) / sum(range(8193)) for far in gaps[2:4]]
print("Of all pairs of tokens in a text of 8,192")
print("{:.2%} are 6,000 or more apart, {:.2%} 8,000 or more".format(*apart))

# %%
predict.lost(guess_lost)

# %% [markdown]
# **At 8,000 no angle is new. So what was lost?** Is it too many tokens back, or are some angles badly learned? To find out, slow pairs down: then a far key stands at the angle of a nearer one.

# %% [markdown] tags=["predict"]
# Three ways:
#
# - *every pair slowed* (**position interpolation**, without training after it): all are 4 times slower
# - *another base* (**NTK-aware scaling**): the slowest is 4 times slower, the fastest as before
# - *by parts* (the frequencies of **YaRN**, [Peng et al. 2023](../REFERENCES.md#peng-2023)): only pairs of few turns in training are slower
#
# **Predict.** Which of the three find the copy at 12,000?
#
# - **a** all three
# - **b** the last two
# - **c** only *by parts*

# %%
guess_far_copy = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
(_, ax), styles = plot.subplots(figsize=(4.4, 3.2)), ("-", "-", "--", "-")
named = zip(list(ways), (INK, KEY, VALUE, QUERY), styles, (9.9, 7.4, 1.0, 2.6))
for name, color, dashes, height in named:
    _ = ax.plot(
        gaps[:5], [ways[name][gap] for gap in gaps[:5]], color=color, ls=dashes, lw=2.4
    )
    _ = ax.text(12_200, height, name, color=color, va="center")
_ = ax.set(xlim=(0, 20_500), ylim=(0, 11), xticks=gaps[:5:2], xlabel="gap")
_ = ax.set_title("Loss on the copy")

# %%
predict.far_copy(guess_far_copy)

# %% [markdown]
# **How far does each way reach?** *By parts* with half the speed, a quarter, an eighth:

# %% jupyter={"source_hidden": true}
rows = [
    [way, *(f"{np.mean(loss):.2f} at {int(gap):,}" for gap, loss in of.items())]
    for way, of in smollm.recorded("reach").items()
]
heads = (f"{gap:,} × the factor" for gap in (6000, 7000, 8000))
plot.table(["loss at", *heads], rows)

# %% [markdown]
# Half the speed reaches twice as far, a quarter nearly four times, with the fast pairs (32 turns or more in training) as they were. So **the angle of the slow pairs counts**, not the distance in tokens. With a gap of 8,000 for fast pairs and 6,000 for slow ones the loss is 2.03; the other way round, 8.77. Why the model cannot read these angles, we do not know: perhaps training showed them too seldom.
#
# At 12,000 *another base* is better, 1.94 to 2.21. At 24,000 it meets new angles and fails: 8.67 to 2.66. So you write *by parts*.
#
# <details><summary><b>How sure is this?</b></summary>
#
# A loss is a mean over four texts: two of random tokens, prose, code. Of six others three are found at 6,000 and none at 8,000, as trained. *By parts* finds three at 24,000 and none at 28,000, *another base* none at 24,000. With two gaps all six follow the slow pairs. Another text is predicted no worse at 12,000.
#
# The fastest pair alone, slowed, raises the loss without a gap from 1.7 to 6.3. Of YaRN we leave out the factor for all scores.
#
# </details>

# %% [markdown]
# Eight of 270 heads copy: they look at what followed the same token before. Of one, layer 19, head 7, here are the weights of the second *red* in a sentence read twice.
# **Try.** Move the gap: who gets the weight that *house*, the word to copy, loses? (*2nd copy*: all its words.)

# %% jupyter={"source_hidden": true}
rows_at = {
    name: {int(gap): np.array([[*row, 1 - sum(row)]]) for gap, row in of.items()}
    for name, of in found["row"].items()
}


def row_at(gap):  # (1, n_k + 1) each; the last one is the rest, in the second copy
    return {name: of[gap] for name, of in rows_at.items()}


labels = {"keys": [*found["words"], "2nd copy"], "queries": [found["words"][4]]}
stops = {"gap": [(f"{gap:,}", gap) for gap in gaps], "still": (0, 6000, 12_000)}
live.weights_view(row_at, start=0, **stops, **labels, label="gap in the positions")

# %% [markdown]
# <details><summary>Answer</summary>
#
# As trained, at 6,000, *house* keeps 0.02. The second copy gets 0.51, and *The*, the first token, 0.47: a sink
# ([Xiao et al. 2023](../REFERENCES.md#xiao-2023)) that the model has made itself. By parts, *house* keeps 0.81.
# The model still writes *house*, with 0.93: two heads of layer 24 find it (appendix). This head only loses the copy first: at 8,000 those two have lost it, too.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[slowed]] · Slow the slow ones
#
# **Goal.** Write the frequencies *by parts*, as the YaRN paper has them. *6 minutes, medium.*
#
# `my_slowed(omega, factor, trained)` returns frequencies for texts `factor` times as long as the `trained` positions. Count the turns of each pair in those
# positions. A pair of 32 or more keeps its frequency. With one or fewer it would meet new angles: its frequency is divided by `factor`. Between, mix both:
# the share of its own frequency rises evenly with the turns. It is 0 at one turn, and 1 at 32.


# %%
def my_slowed(omega, factor, trained):
    return ...  # your code


# %%
verdict = check.slowed(my_slowed)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_slowed(omega, factor, trained):
#     turns = trained * omega / (2 * np.pi)
#     keep = np.clip((turns - 1) / 31, 0, 1)
#     return omega * keep + omega / factor * (1 - keep)
# ```
#
# </details>

# %% [markdown]
# And the real model, rotated by `my_slowed`, on the prose at 12,000?


# %% jupyter={"source_hidden": true}
def far(x, positions, base):  # the second half stands 12,000 positions on
    later = 12_000 * (np.arange(len(positions)) >= len(positions) // 2)
    pairs = x[..., :32] + 1j * x[..., 32:]  # (h, n, d_k / 2)
    turned = pairs * np.exp(1j * np.outer(positions + later, rate))
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(x.dtype)


# %% tags=["nbval-ignore-output"]
lost, told = found["loss"]["as trained"]["12000"][2], "by parts (recorded)"
near = found["loss"]["as trained"]["0"][2]
loss = found["loss"]["by parts"]["12000"][2]
if verdict and not smollm.missing():
    speaker, told = smollm.load(), "by my_slowed"
    rate = my_slowed(frequencies(64, speaker.base), 4.0, 8192)  # (d_k / 2,)
    twice = speaker.tokens(smollm.TEXTS["prose"])[:40] * 2
    rows, _ = speaker.using(rope=far)(twice)
    loss = speaker.surprise(rows[40:-1], twice[41:]).mean()
print(f"loss: {lost:.1f} as trained, {loss:.1f} {told}, {near:.1f} without a gap")

# %% [markdown]
# ## 6 · Layers that differ
#
# Must each layer rotate, see all, keep keys of its own? Not in these models ([defaults](../REFERENCES.md#heads-of-models) of transformers 5.23):

# %% jupyter={"source_hidden": true}
SO = [
    "every fourth (NoPE): these meet no new angle",
    "so these drop old keys, and their cache stops growing",
    "so these keep no keys of their own",
    "so these keep one size, however long the text",
]

# %% jupyter={"source_hidden": true}
(_, ax), style = plot.subplots(figsize=(4.4, 4.4)), {"marker": "s", "edgecolors": INK}
for row, (name, told, has) in enumerate(stored["since"]):
    places, faces = range(len(has)), [INK if one else PAPER for one in has]
    _ = ax.scatter(places, [-row] * len(has), s=22, c=faces, linewidths=0.8, **style)
    _ = ax.text(-0.5, 0.28 - row, f"{name}: {told}, {sum(has)} of {len(has)} layers")
    _ = ax.text(-0.5, -0.34 - row, SO[row], color="gray")
_ = ax.set(xlim=(-1, 48), ylim=(-3.7, 0.7)), ax.axis("off")
_ = ax.set_title("Layers from first to last.\nA filled square has what its line names")

# %% [markdown] tags=["predict"]
# **Predict.** Of 32,768 tokens Gemma 3 1B keeps all in 4 of 26 layers, in the others 512. How large is its
# cache, compared with 26 full layers?
#
# - **a** about five sixths
# - **b** about half
# - **c** about a sixth

# %%
guess_cache = None  # "a", "b" or "c"

# %%
layers, every, window = 26, 6, 512  # every sixth layer keeps the whole text
kv_heads, d_k, tokens = 1, 256, 32_768  # Gemma 3 1B, then yours
mb = 2 * 2 * kv_heads * d_k / 1e6  # a key and a value of one token, 2 bytes a number
numbers = np.arange(1, layers + 1)
sizes = mb * np.where(numbers % every == 0, tokens, min(tokens, window))  # (layers,)
whole, full = sizes.sum(), layers * tokens * mb
print(f"{whole:,.0f} MB; if all layers were full {full:,.0f} MB: {whole / full:.2f}")
_, ax = plot.subplots(figsize=(4.4, 2))
_ = ax.bar(numbers, sizes, color=INK)
_ = ax.set(title="Cache of each layer (MB)", xlabel="layer")

# %%
predict.whole_text(guess_cache)

# %% [markdown]
# A state (**linear attention**) you write in notebook [[fixed_state]], smaller keys in [[less_to_keep]].

# %% [markdown]
# ## Try it
#
# **Try.** Your own model, by its `config.json`: how long a text fills a gigabyte (section 6)? Which pairs meet new angles in a text twice as long as `max_position_embeddings`?

# %%
base, d_k, trained = 100_000, 64, 8192  # SmolLM2's rope_theta and head_dim; then yours
turns = trained * frequencies(d_k, base) / (2 * np.pi)  # if rope_type is "default"
known = (turns >= 1).sum()
print(f"{known} of {d_k // 2} pairs make a full turn in {trained:,} positions.")
print(f"The other {d_k // 2 - known} meet new angles at {2 * trained:,};", end=" ")
print(f"the slowest has made {turns[-1]:.3f} of a turn.")

# %% [markdown] tags=["remember"]
# **Remember.** RoPE rotates queries and keys, never values. Of positions a score sees only the distance. A formula for every length is not a head for every length.
# A layer of today is the one you built and a few lines. Next: [[[it_speaks]] it speaks]([[it_speaks.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# Section 1: angles in bfloat16, of 8 significant bits.


# %% jupyter={"source_hidden": true}
def bfloat16(x):  # to the nearest number whose last 16 bits are 0
    bits = np.asarray(x, np.float32).view(np.uint32) + np.uint32(0x8000)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def scores_from(start, kept=lambda angle: angle):
    turn = np.exp(1j * kept(np.outer(start + np.arange(6), omega)))  # (n, d_k / 2)
    q_, k_ = ((x[:, :4] + 1j * x[:, 4:]) * turn for x in (q, k))
    return (q_ @ k_.conj().T).real  # (n, n)


# %%
for start in (0, 100, 1000):
    right = scores_from(start)
    lost = np.abs(scores_from(start, bfloat16) - right).max() / np.abs(right).max()
    print(f"angles in bfloat16, from position {start:4}: scores off by {lost:.0%}")

# %% [markdown]
# Section 1: the direction of the rotation is a convention (as [nanochat](https://github.com/karpathy/nanochat/pull/489) was asked), if each pair's
# second feature changes sign in $W_Q$ and $W_K$.

# %%
signs = np.repeat([1, -1], 4)  # halves: features 4 to 7 are the second of their pairs
other_way = {"as it is": 1, "second features with the other sign": signs}
for name, sign in other_way.items():
    turned = [al.rope(x * sign, -np.arange(6)) for x in (q, k)]
    difference = np.abs(turned[0] @ turned[1].T - rotated(q) @ rotated(k).T).max()
    print(f"rotated the other way, {name:35} scores off by {difference:.2f}")

# %% [markdown]
# Section 2: the head that learns. Its `rotate` is `al.rope` for torch.

# %% tags=["nbval-ignore-output"]
if torch is not None:
    print(dedent(inspect.getsource(previous_letter.PreviousLetter.forward)))
    with torch.no_grad():
        _, w = model(previous_letter.letters(512, 16))  # (16, 512, 512)
    back = torch.arange(512)[:, None] - torch.arange(512)
    far, before = back > 31, back == 1
    parts = {"position before": before, "others up to 31": ~far & ~before}
    for name, cells in {**parts, "farther": far}.items():
        print(f"weight on {name:16} {(w * cells)[:, 32:].sum(-1).mean():.2f}")
    share = previous_letter.accuracy(model, 512, window=32)
    print(f"in a window of 32: {share:.2f}")

# %% [markdown]
# Section 5: all losses, and who finds *house*.

# %%
rows = [[f"{gap:,}", *(way[gap] for way in ways.values())] for gap in gaps]
plot.table(["gap", *ways], rows, tint=list(ways))

# %%
other = found["another text"]
print("another text behind the gap:", end=" ")
print(*(f"{other[gap]:.2f} at {int(gap):,}" for gap in ("0", "12000")), sep=", ")

# %%
rows = [
    [f"{int(gap):,}", *(f"{of[name]:.2f}" for name in ("told", "19.7", "24.3", "24.8"))]
    for gap, of in found["house"].items()
]
heads = ("layer 19, head 7", "layer 24, head 3", "layer 24, head 8")
plot.table(
    ["gap", "probability of house", *(f"weight, {head}" for head in heads)], rows
)

# %% [markdown]
# # 12 · Today's head
#
# **Question.** Which lines have come into a head since 2017, what is each of them for, and do yours give the numbers of
# the attention modules in the `transformers` library? *80 minutes. One section uses torch, if it is there.*
#
# Open the attention module of Llama, Qwen, Gemma or GPT-OSS. You know most of it: three projections, heads, scores,
# softmax, a sum of values, $W_O$; and from notebook 11 the cache, grouped heads and the window. Between them stand lines that
# are new:
#
# | line | what it is for | section |
# |---|---|---|
# | RoPE | a score knows how far back a key is | 1, 2 |
# | QK-norm, softcap (Gemma 2; Gemma 3 leaves it off), log n, a sink | who gets the weight as vectors and sequences grow | 3 |
# | online softmax | long sequences, without a map of weights | 4 |
# | all of it in one layer | the numbers of four models | 5 |
#
# | symbol | meaning |
# |---|---|
# | $i$, $j$ | the place of a query, the place of a key |
# | $\omega_c$ | by how many radians pair $c$ of the features turns from one place to the next |
# | $\theta$ | the base of these frequencies: 10,000 in the paper; models for long texts take more (Llama 3: 500,000) |

# %%
import inspect
import tracemalloc
from textwrap import dedent

import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict, real_model
from attnlib.examples import ASYMMETRIC, BY_HAND

np.set_printoptions(precision=4, suppress=True)

# %% [markdown]
# ## Before you start
#
# From memory, without looking back.
#
# **1.** *(notebook 11)* Five keys are in the cache, and two new tokens arrive at once. Which keys may they attend to?
#
# - **a** the first new token key 0, the second keys 0 and 1
# - **b** the first new token keys 0 to 5, the second all seven
# - **c** both of them all seven
#
# **2.** *(notebook 10)* Somebody multiplies all queries of a head by 10. What changes?
#
# - **a** which key gets the most weight
# - **b** how much of the weight that key gets
# - **c** nothing: softmax takes the factor out again
#
# **3.** *(notebook 06)* A layer has $d_{model} = 512$ and 2 heads. By what does it divide its scores?
#
# - **a** $\sqrt{512}$, about 22.6
# - **b** 16
# - **c** 256

# %%
predict.before_12(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A place is an angle
#
# Notebook 08 added a vector for the place to every token. Most models of today add nothing. They **turn** each query and
# each key by an angle that grows with its place: rotary position embedding, RoPE ([Su et al.
# 2021](../REFERENCES.md#su-2021)). Why should turning tell anything? Take vectors of two features, and one radian a
# place.


# %%
def turn(x, angle):
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([cos * x[0] - sin * x[1], sin * x[0] + cos * x[1]])


q, k = np.array([2.0, 1.0]), np.array([1.0, 2.0])  # (d_k,) each, d_k = 2
print(f"not turned: q.k = {q @ k:.4f}")
for i, j in ((3, 3), (3, 2), (3, 1)):
    print(f"query at place {i}, key at place {j}: {turn(q, i) @ turn(k, j):7.4f}")

# %% [markdown] tags=["predict"]
# At the same place both are turned alike, and the score is what it was. One place apart it is larger: this key points 37
# degrees ahead of the query, the query turns 57 degrees farther, and only 20 are left between them. The distance changes a
# score; nothing says that it lowers it. **Predict.** Now move both tokens 100 places on, the query from 3 to 103 and the key from 1 to
# 101. What becomes of their score?
#
# - **a** it is another number: the angles are others
# - **b** it becomes smaller: both are far from the start
# - **c** it stays the same

# %%
guess_shifted = None  # "a", "b" or "c"

# %%
for i, j in ((3, 1), (103, 101), (1003, 1001)):
    print(f"query at place {i:4d}, key at {j:4d}: {turn(q, i) @ turn(k, j):7.4f}")

# %%
predict.shifted(guess_shifted)

# %% [markdown]
# Both turned by the same further angle, and a dot product depends on the lengths of two vectors and the angle between
# them. Let $R_p$ turn a vector by the angle of place $p$. Then
#
# $$(R_i\, q) \cdot (R_j\, k) = q \cdot (R_{j-i}\, k).$$
#
# For given $q$ and $k$, the places enter the score only through $i - j$, although each token was turned by its own place,
# without knowing of the other. Values are not turned: nothing is compared with them, and turned by their own places they
# would make the output depend on the shift again.
#
# One more difference: notebook 08 added its positions once, at the bottom. RoPE is applied in every layer, to the queries and
# keys of every head.
#
# Below, the four tokens of the asymmetric example of notebook 02 ($d_k = 2$) stand at places *shift*, *shift* + 1 and so
# on. In the first map queries and keys are turned. In the second $\sin$ and $\cos$ of the place are **added** to two features of
# the token, before the projections, as in notebook 08. **Try.** Move *shift*: which map stands still?

# %%
four_tokens, W_Q, W_K, _ = ASYMMETRIC  # (4, 3), then (3, 2) each


def at_shift(shift):
    places = np.arange(shift, shift + 4)
    q = np.array([turn(*pair) for pair in zip(four_tokens @ W_Q, places)])  # (4, 2)
    k = np.array([turn(*pair) for pair in zip(four_tokens @ W_K, places)])
    placed = four_tokens + np.stack([np.sin(places), np.cos(places), 0 * places], -1)
    return {
        "turned by the place": al.softmax(q @ k.T / 2**0.5),
        "place added": al.softmax((placed @ W_Q) @ (placed @ W_K).T / 2**0.5),
    }


view = live.weights_view(at_shift, shift=(0, 12), still=(0, 2, 12))
view

# %% [markdown]
# The map of turned queries and keys stands still.
#
# ### Many pairs, many speeds
#
# One pair that turns by a radian a place is back where it was after 6.28 places, and cannot tell 0 from 6. So a head cuts
# its $d_k$ features into $d_k / 2$ pairs, and each turns at its own speed, like the hands of a clock:
#
# $$\omega_c = \theta^{-2c/d_k}, \qquad c = 0, 1, \dots, d_k/2 - 1.$$


# %%
def frequencies(d_k, theta=10_000.0):
    return theta ** (-2 * np.arange(d_k // 2) / d_k)  # (d_k / 2,)


omega = frequencies(8)
rows = [(c, f"{speed:.3f}", 2 * np.pi / speed) for c, speed in enumerate(omega)]
plot.table(["pair c (d_k = 8)", "radians a place", "places for a full turn"], rows)

# %% [markdown]
# The whole of RoPE is six lines. Here pair $c$ is feature $c$ with feature $c + d_k/2$. `start` is the place of the first
# row: a token that continues a sequence does not stand at place 0.


# %%
def rope(x, start=0, theta=10_000.0):
    n, d_k = x.shape[-2:]
    places = np.arange(start, start + n)  # (n,)
    angle = places[:, None] * frequencies(d_k, theta)  # (n, d_k / 2)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = x[..., : d_k // 2], x[..., d_k // 2 :]  # the two members of every pair
    return np.concatenate([cos * a - sin * b, sin * a + cos * b], axis=-1)


rng = np.random.default_rng(0)
q, k = rng.normal(size=(2, 6, 8))  # (n, d_k) each
scores = rope(q) @ rope(k).T  # (n, n)
moved = rope(q, start=1000) @ rope(k, start=1000).T
print(f"all 36 scores, 1000 places on: differ by {np.abs(moved - scores).max():.10f}")

# %% [markdown]
# How does distance alone change a score? Take a query and a key that are equal, all ones, and let the key stand farther
# and farther back. Divided by $d_k$ the score starts at 1. The last line has the same query and another key, which was all ones too, and
# was turned by 20 places more.

# %%
figure, ax = plot.subplots(figsize=(6.4, 3.2))
distance = np.arange(0, 65)
for d_k, style in ((2, ":"), (8, "--"), (128, "-")):
    score = np.cos(distance[:, None] * frequencies(d_k)).mean(axis=-1)
    ax.plot(distance, score, style, label=f"$d_k$ = {d_k}")
score = np.cos((distance - 20)[:, None] * frequencies(128)).mean(axis=-1)
ax.plot(distance, score, "-.", label="$d_k$ = 128, another key")
ax.set(xlabel="distance i - j", ylabel="score / $d_k$", ylim=(-1.1, 1.8))
_ = ax.legend(loc="upper center", ncols=2)

# %% [markdown]
# With one pair the score is back at 6. Four pairs come near it again, at 6 and at 63. With 64 pairs only distance 0 brings
# all of them together, and what is left falls slowly. That is no law of RoPE: the other key has its largest score 20 places back.
# Where a score is largest is up to the two vectors. Section 2 makes use of that.
#
# ### Two ways to pair
#
# The paper pairs neighbours, features $2c$ and $2c+1$. So does Meta's own Llama code. In the four models of section 5
# `transformers` pairs $c$ with $c + d_k/2$, as above. Each is as good as the other, as long as the weights were trained with
# it: people who load a model find out ([two threads](../REFERENCES.md#rope-pairs)). Putting the features into another order
# turns one into the other: features 0 1 2 3 4 5 6 7 become 0 2 4 6 1 3 5 7. Then the partners 0 and 1, neighbours before, stand
# $d_k / 2$ apart. The function below reorders, turns by `rope`, and puts each feature back where it stood.


# %%
def halves_first(d_k):
    return np.argsort(np.arange(d_k) % 2, kind="stable")  # 0, 2, 4, ..., 1, 3, 5, ...


def rope_neighbours(x, start=0):
    order = halves_first(x.shape[-1])  # halves of this order are neighbours in x
    out = np.empty_like(x)
    out[..., order] = rope(x[..., order], start)
    return out


# %%
order = halves_first(8)
right = rope_neighbours(q) @ rope_neighbours(k).T  # (n, n)
for name, scores in {
    "queries and keys in their old order": rope(q) @ rope(k).T,
    "queries and keys reordered": rope(q[:, order]) @ rope(k[:, order]).T,
    "only the keys reordered": rope(q) @ rope(k[:, order]).T,
}.items():
    print(f"{name:36} scores off by {np.abs(scores - right).max():.2f}")

# %% [markdown]
# So whoever converts weights reorders the columns of $W_Q$ **and** of $W_K$ (in torch the rows of `nn.Linear.weight`), head by
# head, and leaves $W_V$ and $W_O$ alone. Their biases and a gain of QK-norm (section 3) belong to features, and are reordered
# along.
#
# ## 2 · One place back, at any length
#
# In notebook 08 layer 1 had to learn to look at the letter before. With RoPE you can set such a head by hand, and no
# token matters: all keys are the same vector, all queries too. The score is largest where both are turned alike. So turn
# the query one place **less**.


# %%
def one_back(n, d_k=64, amplitude=32**0.5):
    same = np.full((n, d_k), amplitude)
    scores = rope(same, start=-1) @ rope(same).T / np.sqrt(d_k)  # (n, n)
    return al.softmax(np.where(al.causal_mask(n), scores, -np.inf))


ax = plot.attention_heatmap(
    one_back(8), attn_mask=al.causal_mask(8), title="set by hand: one place back"
)
for n in (16, 128, 1024):
    smallest = one_back(n).diagonal(-1).min()
    print(f"n = {n:4d}: weight on the place before, at least {smallest:.4f}")

# %% [markdown]
# At least 0.9997 everywhere, from place 1 to place 1023. The sizes are chosen for it: with queries and keys of equal entries a
# score is a mean of cosines, times $\sqrt{32}^2 \cdot 64 / \sqrt{64} = 256$. One place off, the mean is 0.966 in place of 1,
# and that costs 8.7. All other keys score at least as much lower, and those 6 or more places back at least 67 lower, so that
# thousands of them weigh nothing.
#
# Now a head with RoPE *learns* it, from sequences of 32 letters. To train it takes torch. One layer, one head, 16 letters; the
# answer at each place is the letter before. Beside RoPE stand a learned vector for each place, the sinusoids of [Vaswani et
# al. (2017)](../REFERENCES.md#vaswani-2017), and nothing. The model is printed below: `turned` is `rope`, for torch, `D_K` is 32 and
# `LONGEST` 512.

# %%
try:
    import torch

    from attnlib.course import previous_letter

    _ = torch.set_num_threads(1)
    print(dedent(inspect.getsource(previous_letter.PreviousLetter.forward)))
except ImportError:
    torch, models = None, {}
    print("torch is not installed, so the cells of this section print nothing.")
    print("The numbers in its text are from a run with torch: pip install torch")

# %% [markdown] tags=["predict"]
# At 32 letters all answers are counted but that of place 0, which has no letter before it; in longer sequences only those at
# place 32 and beyond, which are new. **Predict.** With RoPE the head gets everything right at 32 letters. How good is it at
# 512?
#
# - **a** as good as before: only the distance counts
# - **b** much worse, though better than chance
# - **c** at chance, 1 in 16 (0.06)

# %%
guess_beyond = None  # "a", "b" or "c"

# %%
if torch is not None:
    kinds = ("RoPE", "learned", "sinusoids", "nothing")
    models = {kind: previous_letter.trained(kind) for kind in kinds}

# %% tags=["nbval-ignore-output"]
if torch is not None:
    print("share of right answers n = 32     64    128    512")
    for kind, model in models.items():
        shares = [previous_letter.accuracy(model, n) for n in (32, 64, 128, 512)]
        print(f"{kind:22}", "".join(f"{share:7.2f}" for share in shares))
    first, *_, last = previous_letter.right_by_place(models["nothing"], 32)
    print(f"nothing, 32 letters: at place 1 {first:.2f}, at place 31 {last:.2f}")

# %%
predict.beyond(guess_beyond)

# %% [markdown]
# With a learned vector there is nothing to be learned about place 40 from places up to 31, and here the sinusoids do no
# better. (Without any position, *nothing* is right at place 1, where only one key is not the letter itself, and worse with each
# further key.) RoPE fails later than the others, and it does fail. Where has the weight gone, and is it the near keys that are read wrongly?
# Look at the weights at 512 letters, and forbid all keys that are more than 31 places back.

# %% tags=["nbval-ignore-output"]
if torch is not None:
    with torch.no_grad():
        _, w = models["RoPE"](previous_letter.letters(512, 16))  # (16, 512, 512)
    back = torch.arange(512)[:, None] - torch.arange(512)
    far, before = back > 31, back == 1
    parts = {"place before": before, "others up to 31": ~far & ~before, "farther": far}
    for name, cells in parts.items():
        print(f"weight on {name:16} {(w * cells)[:, 32:].sum(-1).mean():.2f}")
    for kind, model in models.items():
        share = previous_letter.accuracy(model, 512, window=32)
        print(f"{kind:10} in a window of 32: {share:.2f}")

# %% [markdown] tags=["predict"]
# 0.81 of the weight has gone farther back than 31, to distances that no training step has shown, and only 0.02 to other near keys.
# With a window the RoPE head is right at 512 letters, too. The learned vectors and the sinusoids are hardly helped (0.09 and
# 0.22), since for them place 400 itself is new. A window is enough for a job near by. A head that has to look farther than it
# was trained to needs more: models slow their frequencies down and train on ([Peng et al. 2023](../REFERENCES.md#peng-2023)). With five
# seeds RoPE has 0.79 to 0.99 at 64 letters, 0.17 to 0.30 at 512, and 1.00 each time with the window (`python -m bench training`
# in a terminal measures them).
#
# ## 3 · Who controls the softmax?
#
# Notebook 03 divided by $\sqrt{d_k}$, and the scores of *unrelated* vectors stopped growing with $d_k$. A key that fits is
# not unrelated. Let one key be just what a query looks for, equal to it: the **needle**. Its score is $q \cdot q / \sqrt{d_k}$,
# about $d_k / \sqrt{d_k} = \sqrt{d_k}$, so 8 at $d_k = 64$. All other keys, drawn at random, are the **crowd**. With 64 keys
# the needle gets 0.94 of the weight. **Predict.** And with 1024 keys?
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
# Scores do not grow with $n$, the crowd does. The score $s$ of a random key has mean 0 and variance 1. The mean of $e^s$ is
# more than $e^0 = 1$, since large scores count for more than small ones: for a normal $s$ it is $e^{1/2} = 1.65$. So $n$ random keys
# weigh $n e^{1/2}$ against the needle's $e^{\sqrt{d_k}}$. They are even at $n = e^{\sqrt{d_k} - 1/2}$, the last
# column: 33 keys at $d_k = 16$, 1808 at 64, five million at 256. So $d_k$ and $n$ belong together, and $\sqrt{d_k}$ is
# half the story. (These are fresh vectors. Training can make $W_Q$ larger and a head sharper.)
#
# Why did the crowd not win in section 2? There every key six or more places back scored at least 67 lower. Here the crowd's
# scores lie around 0, at $d_k = 64$ only about 8 below the needle's, and very many small weights add up.
#
# By that sum the needle should have 0.10 at $d_k = 64$ and 16,384 keys. The table says 0.19. The sum is for a query of length
# $\sqrt{d_k}$, and a longer one has a needle with a higher score:

# %%
found = needle(64, 16_384)  # (64,)
shortest_first = np.linalg.norm(queries[:, :64], axis=-1).argsort()
print(f"by the sum             {1 / (1 + 16_384 * np.exp(0.5 - 8)):.2f}")
print(f"the 16 longest queries {found[shortest_first[48:]].mean():.2f}")
print(f"the 48 others          {found[shortest_first[:48]].mean():.2f}")

# %% [markdown]
# Two more things can go wrong. One key may have a huge norm, an **outlier**. The longer it is, the more of the queries whose
# dot product with it is positive give it nearly all their weight, however little they have to do with it; the others give it
# hardly any. And a query may look for something that is not there, yet its weights must sum to 1. Four answers:
#
# - **QK-norm** ([Henry et al. 2020](../REFERENCES.md#henry-2020); here as in Qwen3): queries and keys are divided by their
#   root mean square, each feature then multiplied by a learned gain. A norm has no power any more.
# - **Softcap** ([Gemma 2](../REFERENCES.md#heads-of-models)): scores $s$ become $C \tanh(s / C)$, so none leaves $\pm C$.
# - **Log n** ([Chiang and Cholak 2022](../REFERENCES.md#chiang-2022), [Nakanishi 2025](../REFERENCES.md#nakanishi-2025)):
#   scores are multiplied by a factor that grows as $\ln n$, and a lead grows with the crowd. Here it is $\ln n / \ln 64$, so
#   that 64 keys change nothing. Ministral 3, and Llama 4 where it has no RoPE, multiply the query at place $i$ by
#   $1 + 0.1 \ln(1 + \lfloor i / L \rfloor)$, with a large $L$ ([source](../REFERENCES.md#heads-of-models)).
# - **A sink** ([GPT-OSS](../REFERENCES.md#heads-of-models)): one more score in the softmax, for a key that is not there. It
#   takes weight and has no value to hand over. In GPT-OSS this score is learned for each head, here it is 0.


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


# %%
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
# Read the table row by row.
#
# - $\sqrt{d_k}$ alone: the outlier, 10 times as long as other keys, takes the weight where its score exceeds that of the
#   needle. That is why this row starts at 0.76, where the table above, without an outlier, had 0.94.
# - QK-norm stops the outlier, at every $n$. It also gives every needle the same score, 8, so that no long query carries the
#   mean: 0.10 is what the sum above says.
# - The gain is what keeps a head sharp: here a factor of 2.5, a number that a model learns. It does so without the norm, too:
#   *times 2.5* loses to the outlier alone, and without one the needle keeps 0.99 or more.
# - A softcap of 50 bounds the scores and hardly changes a weight: the outlier takes as much as before. It keeps
#   every score within 50; it does not choose among keys.
# - Log n keeps the needle as the crowd grows. It does nothing about the outlier.
# - The sink changes nothing here. Its hour comes when no key fits.
#
# All in one view. The **rows** are one query under seven rules, and every row sums to 1. **Try.** Set $n$ to 1024,
# *outlier* to 1 and go through $d_k$: which rule keeps the needle at $d_k = 32$? Go back to 64 and set *outlier* to 100: who wins under
# the softcap? Set *outlier* back to 1, then lower *level*, which is added to every real score, to -20: which row changes, and why is
# it the only one?


# %%
def where_it_goes(d_k, n, outlier, level):
    rows = [shares(name, d_k, n, outlier, level) for name in RULES]
    return {f"n = {n}": np.array(rows)}  # (7, 4)


goes = ["needle", "outlier", "crowd", "sink"]
sliders = {"d_k": (4, 256), "n": [16, 64, 256, 1024], "outlier": [1, 10, 100]}
sliders["level"] = [-20, -10, 0, 10, 20]
labels = {"queries": list(RULES), "keys": goes, "row_name": "rule"}
view = live.weights_view(where_it_goes, still=(16, 64, 256), **sliders, **labels)
view

# %% [markdown]
# With the gain the needle keeps 0.99 at $d_k = 32$, with 2.5 alone 0.93, with log n 0.71, with the others 0.26 at most. An outlier 100 times as long
# gets 0.62 at $d_k = 64$ under every rule without a norm: it has more than half of the weight of 40 of the 64 queries, and less
# than 0.05 of nearly all others. The softcap does not help, since a score of 50 beats 8 as surely as one of 200. And with *level* only the
# sink's row changes. A softmax sees differences only: add a number to all scores, and nothing happens. The sink's score stays where it is, so
# for this one rule the level counts: a query that nothing answers can leave its weight there, and take nothing. Without a
# sink its weight has to go to real keys. In notebook 09 many heads parked it on `[CLS]`.

# %%
for level in (0, -5, -10, -20):
    _, _, _, sink = shares("sink", 64, 64, outlier=1, level=level)
    print(
        f"all scores lowered by {-level:2d}: {1 - sink:.4f} of the weight on real keys"
    )

# %% [markdown]
# ## 4 · Softmax without the map
#
# The fused call of notebook 06 returns the output and never holds the map. How can it know a row's weights without seeing
# the whole row? It need not know them: a sum of $e^s v$ and a sum of $e^s$ would do, and both can grow key by key. But $e^s$
# overflows, above a score of about 709 in float64 and 88 in float32. The softmax of notebook 02 subtracted the row's largest score
# first, and here the largest is not known yet. Take query 1 of notebook 01: its scores are 2, 4, 4. Three numbers are carried
# along while the keys come by, one after the other:
#
# - $m$, the largest score so far,
# - $z$, the sum of $e^{s - m}$ so far,
# - $o$, the sum of $e^{s - m} v$ so far.
#
# If a new key raises the maximum from $m$ to $m'$, everything so far was measured against the wrong one. One factor,
# $e^{m - m'}$, mends it ([Milakov and Gimelshein 2018](../REFERENCES.md#milakov-2018)).

# %%
Q, K, V = BY_HAND.project()  # (3, 3) each
m, z, o = -np.inf, 0.0, np.zeros(3)
for s, v in zip(K @ Q[0], V):
    new = max(m, s)
    factor, e = np.exp(m - new), np.exp(s - new)
    m, z, o = new, factor * z + e, factor * o + e * v
    print(f"score {s:.0f}: factor {factor:.4f}, m {m:.0f}, z {z:.4f}, o {o}")
print("o / z:     ", o / z)
print("notebook 01:", al.scaled_dot_product_attention(Q, K, V, scale=1)[0])

# %% [markdown]
# At the first key the factor is $e^{-\infty} = 0$: there was nothing to rescale. At the second the maximum rises from 2 to 4. What stood in $z$ and $o$ becomes $e^{-2} = 0.1353$ times as large. At the
# end one division gives the output. Whole blocks of keys, and all queries at once, go the same way:


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
    difference = online(Q, K, V, block) - al.scaled_dot_product_attention(Q, K, V)
    print(
        f"notebook 01 in blocks of {block}: differs by {np.abs(difference).max():.10f}"
    )

# %% [markdown] tags=["predict"]
# Nothing is approximated: blocks of any size give the same output. What is saved is memory. The next cell measures the
# peak of both on your machine. **Predict.** By what does each grow if $n$ doubles?


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
# With the map memory grows as $n^2$: twice the tokens, four times as much. In blocks it grows as $n$. That is why the fused
# call can do without the map, and why it has no weights to show you. On a GPU it is faster, too, since blocks fit into fast
# memory; and in training, where the gradient needs the weights again, they are computed again block by block
# ([Dao et al. 2022](../REFERENCES.md#dao-2022)).
#
# ## Break it · Three ways to get the factor wrong
#
# Query 1 again, key by key. Each mistake leaves out one thing.


# %%
def wrong(mistake, scores=Q[0] @ K.T, values=V):
    m, z, o = -np.inf, 0.0, np.zeros(3)
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
backwards = wrong("output not rescaled", [4, 4, 2], V[::-1])
print(f"{'output not rescaled, keys reversed':34}", backwards)

# %% [markdown]
# With *each key its own maximum* every key weighs $e^0 = 1$: the plain mean, whatever the scores say. The last line is right by
# luck: with the keys reversed the largest score comes first, and the maximum never rises. So test such code with scores that rise.
#
# ## 5 · An attention layer of 2026 in 40 lines
#
# Now put it together. You have met each line: `rms_norm`, the softcap and the sink in section 3, `rope` in section 1. The
# window and the lower-right mask are one comparison of places. In the class, several query heads share the keys and values
# of one group ([Ainslie et al. 2023](../REFERENCES.md#ainslie-2023)), and keys and values stay in a cache.


# %%
def attend(q, k, v, window=None, softcap=None, sink=None):
    scores = dots(q, k)  # (h, n_q, n_k)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    n_q, n_k = scores.shape[-2:]
    back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k)  # i - j, lower right
    scores = np.where((back >= 0) & (back < (window or n_k)), scores, -np.inf)
    if sink is not None:  # one more score a head; its column is cut off below
        column = np.broadcast_to(sink[:, None, None], (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, column], axis=-1)
    return al.softmax(scores)[..., :n_k] @ v  # (h, n_q, d_k)


# %%
class Layer:
    def __init__(self, W, h, h_kv, q_gain=None, k_gain=None, **switches):
        self.W, self.h, self.h_kv, self.switches = W, h, h_kv, switches
        self.q_gain, self.k_gain, self.cache = q_gain, k_gain, None

    def __call__(self, x):  # (n_new, d_model), what follows the tokens so far
        q = al.split_heads(x @ self.W["W_Q"], self.h)  # (h, n_new, d_k)
        k, v = (al.split_heads(x @ self.W[W], self.h_kv) for W in ("W_K", "W_V"))
        if self.q_gain is not None:
            q, k = rms_norm(q, self.q_gain), rms_norm(k, self.k_gain)
        start = 0 if self.cache is None else self.cache[0].shape[-2]
        q, k = rope(q, start), rope(k, start)
        if self.cache is not None:
            k, v = (np.concatenate(pair, axis=-2) for pair in zip(self.cache, (k, v)))
        self.cache = k, v  # (h_kv, n, d_k) each
        k, v = (np.repeat(y, self.h // self.h_kv, axis=0) for y in (k, v))
        return al.merge_heads(attend(q, k, v, **self.switches)) @ self.W["W_O"]


# %% [markdown]
# The cache holds keys that are turned already: the place of a key never changes, so it is turned once. That is why `start` has to
# be right. The values are kept as they are.
#
# Is that the real thing? A small file holds weights and 12 tokens, drawn at random, and what the attention modules of the
# `transformers` library gave for them: 24 features, 4 heads of queries and 2 heads of keys and values, each shared by two,
# $d_k = 8$. Llama is the bare layer with RoPE; of each of the others one option is tried
# ([sources](../REFERENCES.md#heads-of-models)), and the rest was set alike: no biases, no window, $\theta$ = 10,000, scores
# divided by $\sqrt{d_k}$. Trained models have more: GPT-OSS has biases, a window in every other layer and slowed frequencies,
# Gemma 2 the same kind of windows and a divisor of its own.

# %%
stored = real_model.stored("heads_2026")
print(stored["origin"])
W = {name: np.array(values) for name, values in stored["drawn"].items()}
x = W["x"]  # (n, d_model)
SWITCHES = {
    "Llama": {},
    "Qwen3": {"q_gain": W["q_gain"], "k_gain": W["k_gain"]},
    "Gemma2": {"softcap": stored["settings"]["softcap"]},
    "GPT-OSS": {"sink": W["sink"]},
}

# %%
for name, switches in SWITCHES.items():
    theirs = np.array(stored["outputs"][name])  # (n, d_model)
    difference = np.abs(Layer(W, 4, 2, **switches)(x) - theirs).max()
    without = np.abs(Layer(W, 4, 2)(x) - theirs).max()
    told = f", without its option by {without:.2f}" if switches else ""
    print(f"{name:8} differs by {difference:.7f}{told}")

# %% [markdown]
# Equal to the sixth decimal; the last digits are theirs, computed in float32. The largest entry of an output is between 2.5 and
# 3.6, so these differences are small. The softcap is 5 here, so that it shows in small scores; Gemma 2 has 50. And this is
# attention only. Around it the models differ in norms, networks and much else.
#
# Writing token by token must give what all at once gives, however the tokens come in:

# %%
for ends in ([12], [5, 12], [4, 5, 9, 12], list(range(1, 13))):
    layer, parts = Layer(W, 4, 2, window=6, **SWITCHES["Qwen3"]), np.split(x, ends[:-1])
    output = np.concatenate([layer(part) for part in parts])  # (n, d_model)
    whole = Layer(W, 4, 2, window=6, **SWITCHES["Qwen3"])(x)
    off = np.abs(output - whole).max()
    print(f"in {len(parts):2d} parts: differs by {off:.10f}")

# %% [markdown] tags=["predict"]
# **Predict.** Qwen3 normalises **before** it turns. Does the order matter?
#
# - **a** only because of the gain; the norm alone may stand before or after
# - **b** yes, the norm changes the angle
# - **c** no, in no case

# %%
guess_norm_order = None  # "a", "b" or "c"

# %%
q, gain = np.random.default_rng(2).normal(size=(5, 8)), W["q_gain"]
alone = rope(rms_norm(q)) - rms_norm(rope(q))
with_gain = rope(rms_norm(q, gain)) - rms_norm(rope(q), gain)
print(f"norm alone: the order matters by {np.abs(alone).max():.2f}")
print(f"with gain:  the order matters by {np.abs(with_gain).max():.2f}")

# %%
predict.norm_order(guess_norm_order)

# %% [markdown] tags=["predict"]
# A turn keeps the length of a vector, and the norm divides by that length: the two may change places. A gain stretches features,
# the two of one pair by different amounts, and a turn mixes those two.
#
# ### What the mistakes cost
#
# Each raises no error and gives the right shape. How far is the output off, as a share of its own size (root mean
# squares)? The seven: the groups are tiled, [1, 2, 1, 2] in place of [1, 1, 2, 2]; the values are turned, too; only the queries are
# turned; only the keys are paired as neighbours; queries and keys both are; $\theta$ is 500,000; every place is 100 too high.
# **Predict.** One of these is no mistake. Which?


# %%
def tiled(y, group):  # groups in the wrong order
    return np.concatenate([y] * group)


def grouped(y, group):
    return np.repeat(y, group, axis=0)


def one_call(x, share=grouped, turn_q=rope, turn_k=rope, turn_v=lambda v: v):
    q = al.split_heads(x @ W["W_Q"], 4)  # (4, n, d_k)
    k, v = (al.split_heads(x @ W[name], 2) for name in ("W_K", "W_V"))  # (2, n, d_k)
    q, k, v = turn_q(q), turn_k(k), turn_v(v)
    return al.merge_heads(attend(q, share(k, 2), share(v, 2))) @ W["W_O"]


# %%
def other_theta(y):
    return rope(y, theta=500_000.0)


def later(y):
    return rope(y, start=100)


# %%
MISTAKES = {
    "groups tiled, not repeated": {"share": tiled},
    "values turned, too": {"turn_v": rope},
    "only the queries turned": {"turn_k": lambda k: k},
    "keys paired as neighbours": {"turn_k": rope_neighbours},
    "both paired as neighbours": {"turn_q": rope_neighbours, "turn_k": rope_neighbours},
    "theta 500,000": {"turn_q": other_theta, "turn_k": other_theta},
    "every place + 100": {"turn_q": later, "turn_k": later},
}


def off(x, mistake):
    right = one_call(x)
    return np.sqrt(((one_call(x, **mistake) - right) ** 2).mean() / (right**2).mean())


# %%
print("equal to the layer:", np.abs(one_call(x) - Layer(W, 4, 2)(x)).max().round(12))
for name, mistake in MISTAKES.items():
    print(f"{name:28} {off(x, mistake):.2f}")

# %% [markdown]
# Only distances count, so it does no harm if every place is 100 too high. (A cache whose new keys start at 0 again is
# another matter: then distances change.) All others run, and give other numbers than the models do. The wrong $\theta$ costs
# least, 0.10. Is it harmless, then?

# %%
for n in (64, 512):
    longer = np.random.default_rng(n).normal(size=(n, 24))  # (n, d_model)
    print(f"theta 500,000, {n:3d} tokens: {off(longer, MISTAKES['theta 500,000']):.2f}")

# %% [markdown]
# No, the text was short. The first pair turns by 1 radian a place whatever $\theta$ is. Of the other three only the second has
# turned by more than 0.11 radians after 11 places (by 1.1, in place of 0.4), and it alone makes the 0.10. A wrong $\theta$ shows
# late: test it with long texts.
#
# ## 6 · What is not taught here
#
# **ALiBi** ([Press et al. 2021](../REFERENCES.md#press-2021)) turns nothing. From each score it subtracts
# a penalty that grows with the distance: $s_{ij} = q_i \cdot k_j / \sqrt{d_k} - a\,(i - j)$, with a fixed slope $a > 0$ for each head. Far
# keys fade, whatever they hold.
#
# **Multi-head latent attention** ([DeepSeek 2024](../REFERENCES.md#deepseek-2024)) caches one short vector
# $\ell_j = x_j W_{down}$ for each token. Every head has its own key and value of it: $k_j = \ell_j W_{up}$ and
# $v_j = \ell_j W'_{up}$. The key need never be computed: $q \cdot (\ell_j W_{up}) = (q\, W_{up}^T) \cdot \ell_j$, so each query
# is multiplied once and meets $\ell_j$ itself. A turn by the place $j$ between $W_{up}$ and $q$ would prevent that, so a few
# more features of the key, shared by all heads, carry RoPE and are cached beside $\ell_j$.
#
# **Linear attention** ([Katharopoulos et al. 2020](../REFERENCES.md#katharopoulos-2020)) replaces $e^{q \cdot k}$ by a product
# $\phi(q) \cdot \phi(k)$ of positive features. The output of a query is then $\phi(q)\,S$ divided by $\phi(q) \cdot u$, with the matrix
# $S = \sum_j \phi(k_j)^T v_j$ and the vector $u = \sum_j \phi(k_j)$ over all keys so far. Both are of fixed size, a new token adds one term
# to each, and they are all the cache there is: twice as many tokens take twice the work, not four times. What this sum loses is
# the sharp choice. The *gated delta rule* ([Yang et al. 2024](../REFERENCES.md#yang-2024)) lets old terms fade and, before a key
# writes its value, erases what $S$ holds under that key. Qwen3-Next has it in three of four layers.
#
# **Differential attention** ([Ye et al. 2024](../REFERENCES.md#ye-2024)) subtracts one map of weights from another,
# $A_1 - \lambda A_2$, so that what both waste on the crowd cancels. Its weights may be negative.
#
# **Sparse attention** ([Child et al. 2019](../REFERENCES.md#child-2019), [Yuan et al. 2025](../REFERENCES.md#yuan-2025)) lets
# each query see some keys only. A window is the simplest kind; others choose blocks of keys by what they hold.
#
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# NumPy only.

# %% [markdown] tags=["exercise"]
# ### Exercise 12.1 · The other pairs
#
# **Goal.** Write RoPE as the paper has it, with neighbours as pairs. *10 minutes, medium.*
#
# `my_rope(x, places, theta=10_000.0)`: $(..., n, d_k)$ gives $(..., n, d_k)$. Features $2c$ and $2c + 1$ turn together, by
# $\omega_c$ a place, and the results are features $2c$ and $2c + 1$ again. `places` $(n,)$ holds the place of every token, and
# may have gaps: where a batch is padded, or the middle of a text was dropped, places are not 0, 1, 2 and so on. Take care in
# the two lines that turn `a` and `b`: the second needs `a` as it was before the first.


# %%
def my_rope(x, places, theta=10_000.0):
    a, b = x[..., 0::2], x[..., 1::2]  # (..., n, d_k / 2): the pairs
    return ...  # your code in place of this line: turn a and b
    return np.stack([a, b], axis=-1).reshape(x.shape)  # each back in its place


# %%
verdict = check.rope(my_rope)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_rope(x, places, theta=10_000.0):
#     a, b = x[..., 0::2], x[..., 1::2]  # (..., n, d_k / 2): the pairs
#     d_k = x.shape[-1]
#     omega = theta ** (-2 * np.arange(d_k // 2) / d_k)  # (d_k / 2,)
#     angle = places[:, None] * omega  # (n, d_k / 2)
#     a, b = np.cos(angle) * a - np.sin(angle) * b, np.sin(angle) * a + np.cos(angle) * b
#     return np.stack([a, b], axis=-1).reshape(x.shape)  # each back in its place
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 12.2 · Block by block
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
# ### Exercise 12.3 · A head that continues
#
# **Goal.** Write the heart of Qwen3's head, for tokens that continue a sequence. *12 minutes, hard.*
#
# `my_rotary_attention(query, key, value, q_gain, k_gain)`: `query` $(..., n_q, d_k)$ holds the **last** $n_q$ of $n_k$ tokens,
# `key` and `value` all of them, $(..., n_k, d_k)$ and $(..., n_k, d_v)$. RMS norm with gain, RoPE with the pairs of section 1,
# causal attention. Returns $(..., n_q, d_v)$. You may use `rms_norm`, `rope`, `al.causal_mask` and
# `al.scaled_dot_product_attention`.


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
#     q = rope(rms_norm(query, q_gain), start=n_k - n_q)  # the queries are the last tokens
#     k = rope(rms_norm(key, k_gain))
#     mask = al.causal_mask(n_q, n_k, align="lower_right")
#     return al.scaled_dot_product_attention(q, k, value, mask)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 12.4 · Design a head that looks at two places
#
# **Goal.** Choose one query and one key, the same for every token, so that each token looks `near` places back and `far`
# places back, half and half. *12 minutes, hard.*
#
# `my_look_back(d_k, near, far)` returns `(query, key)`, each $(d_k,)$. They then go through `rope` like any others, in a causal
# head with $\sqrt{d_k}$. In a sequence of 200, every token that has both must give at least 0.45 of its weight to each of the
# two. It is tried with $d_k = 64$ for 1 and 20 and for 3 and 40, and with $d_k = 32$ for 2 and 25. You may use `rope`, which
# takes rows: `rope(key[None], start=...)[0]` turns a single vector. Many answers are right; with equal entries in the key all
# pairs count alike, and that is the easiest.


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
#     key = np.full(d_k, 8.0)  # large enough for a sharp choice
#     # A score is linear in the query, so two queries in one add up their scores.
#     query = rope(key[None], start=-near)[0] + rope(key[None], start=-far)[0]
#     return query, key
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. In `one_back`, leave out half of the pairs, the slow ones (set features 16 to 31 and 48 to 63 of `same` to 0). Is the head worse?
#    Then leave out the fast ones. (At 1024: as good without the slow ones; 0.03 without the fast ones.)
# 2. Give `shares` a softcap of 5 in place of 50. Who wins now, and what does it do to the needle? (The crowd: at 1024
#    it has 0.92, the needle 0.06.)
# 3. Give `Layer` a window of 3 and poke token 2 as in notebook 05: which outputs move? And through two such layers? Make
#    new layers for each call: a layer that is called again goes on in its cache. (2 to 4; 2 to 6.)
#
# **Remember.** RoPE turns queries and keys, never values, and for given $q$ and $k$ the places enter a score only through
# their distance. A window carries a
# short-sighted head to any length. Scores do not grow with $n$, the crowd does. A softmax needs no map: a maximum, a sum
# and an output, rescaled whenever the maximum rises. And a layer of today is the one you built, with a few lines more.

# %% [markdown]
# # [[scaling]] · Why divide by the square root of $d_k$?
#
# **Question.** Attention divides its scores by $\sqrt{d_k}$. What is the division for, and at which $d_k$ does it start to
# matter? *25 minutes, and 23 for exercises.*
#
# Two keys compete for a query. Left to right: how much better key 0 fits. Height: its weight. Each dot is one of 40 random
# queries; those beyond the picture stand at its edge. The *slope* is how fast the weight moves when the score does. **Try.** Move
# *features $d_k$* to both ends. In which picture do the dots run away, and where to?

# %% jupyter={"source_hidden": true} tags=["slide"]
import numpy as np

import attnlib as al
from attncourse import check, predict
from attnlib import live, plot, svg
from attnlib.colours import KEY, QUERY
from attnlib.examples import SENTENCE
from attnlib.live.controls import choice

flat = live.saturation(d_k=(3, 1024))
flat

# %% [markdown]
# <details><summary>Answer</summary>
#
# In the first, to both ends. The curve is flat there: a score can change, and its weight hardly does.
#
# </details>

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[vectorized]])* Five tokens with $d_{in} = 8$ are projected to $d_k = 3$ and $d_v = 4$. What shapes do the
# weights and the output have?
#
# - **a** weights (5, 5), output (5, 4)
# - **b** weights (5, 3), output (5, 4)
# - **c** weights (5, 5), output (5, 3)
#
# **2.** *(notebook [[by_hand]])* Softmax is taken of the scores 5, 0, 3, 2. How does the first weight compare with the third?
#
# - **a** it is 5/3 times as large
# - **b** it is $e^2 \approx 7.4$ times as large
# - **c** that depends on the other two scores
#
# **3.** *(notebook [[start_here]])* The slider divided the scores by a very small number. What became of the weights?
#
# - **a** one word or two got nearly everything
# - **b** all words got nearly the same
# - **c** nothing changed, because softmax divides by the sum

# %%
predict.before_scaling(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · How large is a score?
#
# In *Anna saw Ben; she*, $d_k$ is 3. Her row without the division, and with it:

# %%
Q, K, V = SENTENCE.project()
for name, divisor in (("not scaled", 1), ("divided by sqrt(3)", 3**0.5)):
    weights = al.softmax(Q @ K.T / divisor)  # (n_q, n_k)
    print(f"{name:18}  weights of she {weights[3].round(2)}", end="  ")
    print(f"who {(weights @ V)[3, 0]:.3f}")

# %% [markdown] tags=["predict"]
# She finds Anna both times. Let all entries of queries and keys be independent random numbers of mean 0
# and variance 1, as in an untrained head.
#
# A score adds up $d_k$ products, $q \cdot k = q_1 k_1 + q_2 k_2 + \dots$ Each moves it by about 1, up or down. The standard deviation
# says how far from 0 it typically ends. **Predict.** What is it at $d_k = 64$?
#
# - **a** 1, since the pushes cancel
# - **b** 8, the root of 64
# - **c** 64, one for each push

# %%
guess_std = None  # "a", "b" or "c"

# %% tags=["slide"] says=["The variance comes out", "So the standard deviation"]
rng, rows = np.random.default_rng(0), []
for d_k in (1, 4, 16, 64, 256, 1024):
    q, k = rng.normal(size=(2, 4000, d_k))  # 4000 queries and a key for each
    dots = (q * k).sum(axis=-1)  # (4000,)
    scaled = dots / np.sqrt(d_k)
    rows.append((d_k, dots.var(), dots.std(), scaled.var()))
del q, k  # at d_k = 1024 they take 66 MB
plot.table(["features d_k", "var(q.k)", "std(q.k)", "var(q.k / sqrt(d_k))"], rows)

# %%
predict.score_std(guess_std)

# %% [markdown] tags=["exercise"]
# ### Exercise [[variance_of_scores]] · Measure it
#
# **Goal.** Complete the line that returns the variance of all raw scores. *3 minutes, easy.*
#
# `my_variance(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give one number, the variance of all $n_q \cdot n_k$ scores. Their
# mean need not be 0.


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

# %% [markdown]
# The variance comes out as $d_k$, but for chance. Three lines say why:
#
# 1. With mean 0, a variance is an average of squares. Of independent numbers, the average of the product is the product of the
#    averages. So $q_c k_c$, the product of feature $c$, has mean 0 and variance $1 \cdot 1$.
# 2. The $d_k$ products are independent, so their variances add up to $\mathrm{var}(q \cdot k) = d_k$.
# 3. So the standard deviation is $\sqrt{d_k}$, and dividing the scores by $\sqrt{d_k}$ brings it back to 1.
#
# **Try.** Move *features $d_k$*. The points are the scores of the framed query, the bars its weights.

# %%
spread = live.scores(d_k=(4, 256))
spread

# %% [markdown] tags=["exercise"]
# ### Exercise [[uniform_divisor]] · Other entries
#
# **Goal.** Find the positive divisor that brings the variance of scores to 1, for uniform entries and $d_k = 36$. *4 minutes,
# medium.*
#
# All entries of $q$ and $k$ are independent and uniform in $-1 .. 1$. Their variance is $1/3$. A number may be a formula,
# such as `2**0.5`.

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

# %% [markdown]
# ## 2 · What softmax makes of large scores
#
# At $d_k = 64$, two scores lie more than 8 apart in nearly half of all cases, and 8 points of score make $e^8 = 2981$
# times the weight. Of ten keys the best one gets 0.87 on average. Such a row is **sharp**. A row in which all keys get about
# the same is **pale**.
#
# To compare rows, we count the keys that are **in play**. If ten keys share equally, ten are in play. If one key has
# everything, it is one. In between the count is $e^H$, where $H = -\sum_j w_j \ln w_j$ is the **entropy** of the row ([Shannon
# 1948](../REFERENCES.md#shannon-1948)).

# %% jupyter={"source_hidden": true}
q, k = np.random.default_rng(0).normal(size=(2, 1000, 64))
pairs = q @ k.T  # (n_q, n_k)
apart = np.abs(pairs[:, ::2] - pairs[:, 1::2])  # each score and the next one
print(f"exp(8) = {np.exp(8):.0f};  more than 8 apart: {(apart > 8).mean():.2f} of all")


# %%
def sharpness(d_k, scale, n=10, draws=200):
    r = np.random.default_rng(d_k)
    q, k = r.normal(size=(2, draws, n, d_k))  # (draws, n, d_k)
    weights = al.softmax(q @ k.swapaxes(-1, -2) * scale)  # (draws, n_q, n_k)
    return weights.max(axis=-1).mean(), np.exp(al.entropy(weights)).mean()


# %% tags=["slide"] says=["If ten keys share", "Without the division a query"]
rows, largest = [], ["largest weight", "largest, scaled"]
for d_k in (1, 16, 64, 256, 1024):
    (w0, keys0), (w1, keys1) = sharpness(d_k, 1), sharpness(d_k, 1 / np.sqrt(d_k))
    rows.append((d_k, w0, w1, keys0, keys1))
plot.table(
    ["features d_k", *largest, "keys in play", "keys, scaled"], rows, tint=largest
)

# %% [markdown]
# Without the division a query is left with one key as $d_k$ grows. With it, about seven of ten stay in play at every $d_k$
# from 16 on.

# %% [markdown] tags=["exercise"]
# ### Exercise [[entropy]] · How many keys are in play?
#
# **Goal.** Write the entropy of each row of weights. *8 minutes, medium.*
#
# `my_entropy(weights)`: $(..., n_q, n_k)$ gives $(..., n_q)$, the entropy $H = -\sum_j w_j \ln w_j$ itself, not $e^H$. A key of
# weight 0 is not in play, and adds 0.


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

# %% [markdown] tags=["predict"]
# Is a sharp row bad? Not in a trained head. In a fresh one chance has picked the key, and training must be able to pick another. It
# asks: if a score were a little larger, how much would its weight move?
#
# **Predict.** One key of two is 8 ahead. Raise its score by 0.1. How much does its weight grow?
#
# - **a** by about 0.1
# - **b** by about 0.01
# - **c** by about 0.00003

# %%
guess_raised = None  # "a", "b" or "c"

# %%
for lead in (0, 1, 2, 4, 8, 16):
    w, raised = (al.softmax(np.array([s, 0.0]))[0] for s in (lead, lead + 0.1))
    slope = w * (1 - w)  # of two keys, the first leads by so much
    print(f"lead {lead:2}: weight {w:.7f}  slope {slope:.7f}", end="  ")
    print(f"0.1 more score: {raised - w:.6f} more weight")

# %%
predict.raised_by_a_tenth(guess_raised)

# %% [markdown]
# That rate is the **slope** of softmax,
#
# $$\frac{\partial w_j}{\partial s_j} = w_j\,(1 - w_j).$$
#
# In the first picture it is the gray area, gone at both ends. What training carries back from the error is called a
# **gradient**. Where every slope is near 0, hardly any reaches the scores.
# [Vaswani et al. (2017)](../REFERENCES.md#vaswani-2017) suspected that, and therefore divided.
#
# ## 3 · What the division takes away
#
# A query with $d_k$ entries of variance 1 is about $\sqrt{d_k}$ long, and a longer query makes a sharper row. **Try.** Here are
# two features. Keep the angle and move the length. The dotted curve is the path of the output.

# %% tags=["slide"] says="The division removes"
in_the_plane = live.plane()
in_the_plane

# %% [markdown]
# A score is the length of the query times how far the key reaches along it. Random keys reach about 1 either way, so the scores
# spread by the query's length. The division removes only the typical length, $\sqrt{d_k}$.

# %% [markdown] tags=["exercise"]
# ### Exercise [[scores_in_range]] · Scores that stay in range
#
# **Goal.** Design scores whose variance is near 1 whatever the size of the entries. *8 minutes, hard.*
#
# `my_scores(query, key)`: $(n_q, d_k)$ and $(n_k, d_k)$ give $(n_q, n_k)$. All entries have mean 0. Some tokens
# have large entries, others small ones, and $d_k$ is any number.
#
# - The variance of the scores is between 0.8 and 1.25, for the small tokens alone and for the large ones alone.
# - Among tokens of one size your scores follow the plain dot products: their correlation is 0.9 or more.
# - A score depends on its own query and key alone.


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

# %% [markdown] tags=["predict"]
# ## Break it · Divide by $d_k$
#
# Is dividing by $d_k$ itself better? (A divisor is a *temperature*, [Hinton et al. 2015](../REFERENCES.md#hinton-2015).)
# **Predict.** At $d_k = 64$, how many of ten keys stay in play?
#
# - **a** about 1.5
# - **b** about 7
# - **c** about 9.9

# %%
guess_in_play = None  # "a", "b" or "c"

# %%
for scale, name in ((1, "1"), (1 / 8, "sqrt(d_k)"), (1 / 64, "d_k")):
    print(f"divided by {name:9} {sharpness(64, scale)[1]:5.2f} keys in play")

# %%
predict.divided_by_d_k(guess_in_play)

# %% [markdown]
# Too sharp, right, too pale. A pale row keeps its slope, but its output is nearly the plain average of the values. **Try.** Set *features
# $d_k$* to 1024 and the divisor to 1: one key takes all. Which divisor brings the row back?

# %% jupyter={"source_hidden": true}
RANDOM = np.random.default_rng(3).normal(size=(2, 8, 1024))  # 8 queries, 8 keys


def with_knobs(d_k, divided_by):
    q, k = RANDOM[..., :d_k]  # (n, d_k) each
    scores = q[:1] @ k.T  # (1, n_k): of the first query
    return {"weights of one query": al.softmax(scores / np.sqrt(divided_by))}


knobs = {"d_k": [1, 4, 16, 64, 256, 1024]}
knobs["divide by √d_k, d_k ="] = knobs["d_k"]
live.weights_view(with_knobs, still=(4, 64, 1024), label="features d_k", **knobs)

# %% [markdown]
# <details><summary>Answer</summary>
#
# The one that says 1024: it divides by $\sqrt{1024} = 32$, and the scores spread by about 1.
#
# </details>

# %% [markdown]
# ## 4 · Where does it start to matter?
#
# What share of the typical slope is left without the division? (*Typical*: the median over random queries.) Pale: all of it.
# **Try.** Move *keys*. Do many keys need the division sooner, or later?


# %% jupyter={"source_hidden": true}
def typical_slope(d_k, scale, n):
    r = np.random.default_rng(0)
    q, k = r.normal(size=(2, 2000 // n, n, d_k))  # n queries and n keys at a time
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)
    return np.median((w * (1 - w)).mean(axis=-1))


# %% jupyter={"source_hidden": true}
LABELS = {d: f"d_k = {d}" for d in (3, 8, 16, 32, 64, 128)}
DIVIDED = "".join(f"M{52 * i + 5} 0h42v130h-42z" for i in range(6))  # bars of 1


def slope_left(n):  # with n keys: {d_k: share}
    return {d: typical_slope(d, 1, n) / typical_slope(d, d**-0.5, n) for d in LABELS}


def label(i, words):  # d_k = 3, and then the numbers alone, which have more room
    words = words if i == 0 else words.removeprefix("d_k = ")
    return svg.text(52 * i + 66, 186, words, anchor="middle", math=True)


# %% jupyter={"source_hidden": true} tags=["slide"] says="The division keeps"
def draw_slopes(n):
    left, words = np.array(list(slope_left(n).values())), list(LABELS.values())
    title = "share of the slope that is left"
    bars = svg.columns(left, 52, 130, words).replace("key d_k", "d_k")
    drawn = [svg.text(40, 17, title, bold=True), *map(label, range(6), words)]
    full = f'<path d="{DIVIDED}" fill="{KEY}" opacity="0.15"/>'
    drawn += [f'<g transform="translate(40 34)">{full}{bars}</g>']
    told = "; ".join(f"{word}: {share:.2f}" for word, share in zip(words, left))
    return svg.picture(356, 196, title, f"{n} keys. {told}", drawn), {
        "left": left[None]
    }


live.LiveView({"keys": choice("keys", [3, 10, 100, 1000], 10)}, draw_slopes, hint="")

# %% [markdown]
# **The answer.** The division keeps softmax on its slope, whatever $d_k$ is. For
# random entries of variance 1 and ten keys, the slope without it is down to half at $d_k = 16$ and to a tenth at 64. Many keys
# need it later: a thousand have half of theirs at about 64. Real heads have $d_k$ = 32 to 256.

# %% [markdown] tags=["predict"]
# ## 5 · Three heads in training
#
# Can a head learn without the division? Given ten letters with a random number each, it must return the number of one, at
# $d_k = 64$. $W_Q$ and $W_K$ learn from its error alone. Head 1 divides, and head 2 does not. Head 3 does not, either, but its $W_Q$
# starts 8 times smaller. **Predict.** How does head 3 learn, at the rate 0.003?
#
# - **a** like head 2: nothing divides its scores
# - **b** at least as fast as head 1
# - **c** more slowly than both: its queries are small

# %%
guess_third = None  # "a", "b" or "c"

# %% jupyter={"source_hidden": true}
LETTERS = np.random.default_rng(0).normal(size=(26, 32))  # a fixed vector for each


def memories(r, b):  # b times ten letters with a number each, and which letter asks
    letters = r.random((b, 26)).argsort(axis=1)[:, :10]  # all different
    return LETTERS[letters], r.normal(size=(b, 10)), r.integers(10, size=b)


def attend(W, scale, tokens, asks):
    asking = tokens[np.arange(len(asks)), asks]  # (b, 32)
    q, k = asking @ W[0], tokens @ W[1]  # (b, d_k), (b, 10, d_k)
    return asking, q, k, al.softmax((k @ q[..., None])[..., 0] * scale)


# %% jupyter={"source_hidden": true}
NEW = memories(np.random.default_rng(99), 200)  # not trained on


def gradient(W, scale, tokens, numbers, asks):  # of the squared error; chain rule only
    asking, q, k, w = attend(W, scale, tokens, asks)
    output = (w * numbers).sum(-1, keepdims=True)  # (b, 1)
    error = output - numbers[np.arange(len(asks)), asks][:, None]
    d_scores = 2 * error * w * (numbers - output) * scale / len(asks)  # (b, 10)
    d_q = (d_scores[..., None] * k).sum(1)  # (b, d_k)
    d_k = d_scores[..., None] * q[:, None]  # (b, 10, d_k)
    return np.stack([asking.T @ d_q, np.tensordot(tokens, d_k, ([0, 1], [0, 1]))])


# %% jupyter={"source_hidden": true}
def train(scale, start, rate, seed, steps=100):  # by Adam: notebook [[pytorch_module]]
    r, m, v, found = np.random.default_rng(seed), 0, 0, []
    W = r.normal(size=(2, 32, 64)) / 32**0.5 * np.array([start, 1])[:, None, None]
    for t in range(1, steps + 1):
        g = gradient(W, scale, *memories(r, 32))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        W -= rate * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        w = attend(W, scale, NEW[0], NEW[2])[-1]  # (200, 10)
        stuck = (w.max(axis=1) > 0.9) & (w.argmax(axis=1) != NEW[2])  # at a wrong one
        found.append([w[np.arange(200), NEW[2]].mean(), stuck.mean()])
    return np.array(found)  # of each step: mean weight on the right letter, share stuck


# %%
HEADS = {"1: divided": (1 / 8, 1), "2: not divided": (1, 1), "3: small W_Q": (1, 1 / 8)}
RATES, SEEDS, learned = (0.001, 0.003, 0.01, 0.03), (0, 1, 2), {}
for head in live.progress(HEADS, "training, some seconds"):
    for rate in RATES:
        learned[head, rate] = [train(*HEADS[head], rate, seed) for seed in SEEDS]

# %% jupyter={"source_hidden": true} tags=["slide", "nbval-ignore-output"] says="Head 2 does not start"
_, ax = plot.subplots(figsize=(3.9, 2.8))
for head, colour in zip(HEADS, (KEY, "gray", QUERY)):
    for seed, found in zip(SEEDS, learned[head, 0.003]):
        _ = ax.plot(found[:, 0], color=colour, label=None if seed else head)
_ = ax.set(
    xlabel="step", ylim=(0, 1.02), title="weight on the right letter, rate 0.003"
)
_ = ax.legend()

# %% tags=["nbval-ignore-output"]
rows = [
    [h, *("  ".join(f"{x[-1, 0]:.2f}" for x in learned[h, r]) for r in RATES)]
    for h in HEADS
]
for head in HEADS:
    first, last = np.array(learned[head, 0.003])[:, [0, -1], 1].T.round(2)
    print(f"{head:15} stuck after one step {first}, after 100 {last}")
plot.table(["after 100 steps", *(f"rate {r:g}" for r in RATES)], rows)

# %%
predict.small_start(guess_third)

# %% [markdown]
# Head 2 does not start late, it is **stuck**: in about half of the questions chance has put more than 0.9 on a wrong letter, where no
# slope is above 0.09. After 100 steps it still is so in 16 to 31 of 100; in the other heads in none. Head 3 starts with the scores
# of head 1, and a step of its $W_Q$ moves them 8 times as far. That helps, but not at the highest rate.
# The division sets where a head starts and how far its steps lead.

# %% [markdown] tags=["remember"]
# ## Try it
#
# In `spread`, at $d_k = 64$, go through the draws. How often does the division change which key comes first?
#
# <details><summary>Answer</summary>
#
# Never: dividing keeps the order of the scores, and so does softmax.
#
# </details>
#
# **Remember.** A dot product of $d_k$ independent terms of variance 1 has variance $d_k$. Divided by $\sqrt{d_k}$ it has
# variance 1, so a row starts neither sharp nor pale. Next: [[[pytorch_module]] PyTorch module]([[pytorch_module.ipynb]]), where a head learns.

# %% [markdown]
# ## Appendix: checks
#
# ### The division elsewhere
#
# Some programs divide in another place ([both were reported as bugs](../REFERENCES.md#scale-elsewhere)).

# %%
q, k = np.random.default_rng(0).normal(size=(2, 10, 64))
scores = q @ k.T / 64**0.5
for name, other in (
    ("the query divided", q / 64**0.5 @ k.T),
    ("both, by the root of the root", q / 64**0.25 @ (k / 64**0.25).T),
):
    print(f"{name}: the same scores? {np.allclose(scores, other, rtol=0, atol=1e-12)}")

# %% [markdown]
# ### From slope to gradient
#
# A random gradient at each output, taken back through softmax to the scores and the query.


# %%
def gradients(scale, d_k, n=10, d_v=16):
    r = np.random.default_rng(3)
    q, k, v = (r.normal(size=(2000 // n, n, d)) for d in (d_k, d_k, d_v))
    # A random dL/doutput, taken back through the values: dL/dweights.
    g = r.normal(size=v.shape) @ v.swapaxes(-1, -2)
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)
    d_scores = w * (g - (w * g).sum(axis=-1, keepdims=True))
    d_q = scale * d_scores @ k  # dL/dq = scale * dL/ds K
    return np.abs(d_scores).mean(axis=-1), np.linalg.norm(d_q, axis=-1)  # of each query


# %%
rows = []
for d_k in (16, 64, 128, 1024):
    for name, scale in (("1", 1), ("sqrt(d_k)", d_k**-0.5), ("d_k", 1 / d_k)):
        on_scores, on_q = gradients(scale, d_k)
        medians = [f"{np.median(of_queries):.4f}" for of_queries in (on_scores, on_q)]
        slope = f"{typical_slope(d_k, scale, n=10):.3f}"
        rows.append((d_k, name, slope, *medians, f"{on_q.mean():.1f}"))
names = ["median |dL/ds|", "median |dL/dq|", "mean |dL/dq|"]
plot.table(["d_k", "divided by", "slope", *names], rows)

# %% [markdown]
# On the scores the division keeps a typical gradient more than ten times as large at $d_k = 64$. On the query, which takes one more
# factor of $1/\sqrt{d_k}$, the two medians are alike there.

# %% [markdown]
# # [[multi_head]] · Multi-head attention
#
# **Question.** A layer of SmolLM2 has nine heads, and all nine read the same words. Why nine, and not one? And how do you compute
# them at once? *35 minutes. Two sections use torch, if it is there.*
#
# Here are the nine, in two sentences. Guess what head 4 says; in a notebook, first run the next two cells.

# %% jupyter={"source_hidden": true}
from itertools import product
from types import SimpleNamespace

import numpy as np

import attnlib as al
from attncourse import check, mine, model_files, predict, smollm
from attnlib import live, plot
from attnlib.examples import FEATURES, KARIM, SENTENCE, TWO_HEADS, WORDS

np.set_printoptions(precision=3, suppress=True)
nine_heads = live.head_arrows(**smollm.nine_heads())
nine_heads

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[masks]])* A model has written four words and kept their keys and values. The newest, fifth word asks alone.
# Which row of a mask does it need?
#
# - **a** the first row: it sees one key
# - **b** the first or the last row of the square mask, they are alike
# - **c** the last row of the square mask: it sees all five keys
#
# **2.** *(notebook [[pytorch_module]])* You have a matrix `W` (4, 3), used as `x @ W`. What do you copy into `nn.Linear(4, 3).weight`?
#
# - **a** `W`
# - **b** `W.T`
# - **c** whichever fits
#
# **3.** *(notebook [[scaling]])* A query and a key have 32 entries each, independent, with mean 0 and variance 1. What is the
# variance of their dot product?
#
# - **a** 32
# - **b** about 5.7
# - **c** 1

# %%
predict.before_multi_head(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## Nine heads, one vector
#
# You know head 1 of layer 24 from notebook [[start_here]]: it finds the name that should come next. It has eight neighbours. In the
# picture the last *to* comes in at the open dot. Every head adds one arrow, and the arrows stand tip to tail, so where the last
# one ends, *to* leaves the layer. To the right is more *Mary*, and upwards is more *John*. Head 4 is held back until you have
# guessed.
#
# **Try.** Guess in the picture. Then pick other heads, and switch them off. A dashed ring marks the end of all nine.

# %%
found = smollm.recorded("name_arrives")
for name, giver in (("blank", "John"), ("blank exchanged", "Mary")):
    before, heads = np.array(found[name]["before"]), np.array(found[name]["heads"])
    after = before + heads.sum(axis=0)
    told = {"before": before, "head 1": heads[0], "head 4": heads[3], "after": after}
    print(f"{giver} gave a drink to: towards Mary, John")
    for step, at in (told | {"without head 4": after - heads[3]}).items():
        print(f"  {step:14} {at[0]:5.1f} {at[1]:5.1f}")

# %% [markdown]
# Both sentences come in at nearly the same point and leave far apart. In the first, head 1 looks at Mary and adds 12.9 towards
# *Mary*. Head 4 looks at John, who gives, and takes 21.7 away from *John*. Without head 4 both chains end in the same corner, and
# in the second sentence the wrong name is ahead.
#
# One head brings a name, another takes a name away, and what they bring is added. One row of weights makes one mixture of the
# words. So a layer has several **heads**. Each has its own queries, keys and values, makes its own row of weights, and can say
# something different about the words it looks at.
#
# <details><summary><b>How sure is this?</b></summary>
#
# The picture shows two numbers of each vector, and the vector has 576. So it keeps little: about a tenth of the squared length of
# an arrow, or less. The two directions are not at right angles either (cosine 0.71), because both names are names. The sums are
# exact. What the whole model will write they do not say, because six more layers follow. Without head 4 the model still writes
# the right name, with 0.87 and 0.84, but the wrong name becomes 20 and 43 times as likely. Without head 1 it writes the right name
# with 0.87 and 0.81, and the wrong name is no likelier.
#
# Of all nine heads, head 4 takes most from the name of the giver in each of 80 sentences of this kind. Without it
# that name is ahead of the right one in 18 of them, with it in 2.
#
# </details>

# %% [markdown]
# ## 1 · Two questions, one row of weights
#
# Four words show the same with numbers that you can check. First the head that you know, run by the function that you kept, or
# by ours.

# %%
attention = mine.load("attention")  # your masked attention, or ours
one_head = attention(*SENTENCE.project())  # (n, d_v): who, verb
print("saw:", one_head[1], "  she:", one_head[3])

# %% [markdown]
# *saw* looks for a name and finds two. Anna's *who* is +2 and Ben's is -2, so equal weights add up to 0. But *saw* has
# two questions: which woman, and which man? So it needs a second row of weights, from a second head.
#
# With $h$ heads each of them gets $d_k = d_{model} / h$ features. Our words have $d_{model} = 6$ features, so two heads
# have 3 each. ($d_{model}$ was called $d_{in}$ so far. Heads are counted from 1.)
#
# | | head 1 looks for | head 2 looks for |
# |---|---|---|
# | *saw* | a female name | a male name |
# | *she* | a female name, as before | the verb |
# | *Anna*, *Ben* | the verb, as before | nothing: four equal weights |

# %% tags=["slide"]
x, W_Q, W_K, W_V, W_O = TWO_HEADS  # (4, 6), then (6, 6) each
parts, of_head = (slice(0, 3), slice(3, 6)), []  # the columns of each head
for part in parts:
    q, k, v = (x @ W[:, part] for W in (W_Q, W_K, W_V))  # (n, d_k) each
    of_head.append(attention(q, k, v))  # (n, d_k): who, verb, and a third, unused
    print(f"head {len(of_head)}   saw: {of_head[-1][1]}   she: {of_head[-1][3]}")

# %% [markdown]
# **Try.** Move *head* in the next picture: whom does *saw* find?

# %% jupyter={"source_hidden": true}
q, k, v = (al.split_heads(x @ W, 2)[None] for W in (W_Q, W_K, W_V))
named = {"queries": WORDS, "features": ["who", "verb", "unused"]}
two_heads = live.flow(al.attention_trace(q, k, v), **named, query=1, key=0)
two_heads

# %% [markdown]
# Head 1 brings *saw* 1.064, which is Anna, and head 2 brings -1.278, which is Ben (negative, because Ben's *who* is -2). In head
# 1 *she* finds out what she found before.
#
# Is a head a slice of the word? No: each head reads all six features of a word, and only the columns of the matrices are
# divided among the heads. Published code has cut the words themselves
# ([threads](../REFERENCES.md#asked)), and then no head can combine features from two slices.

# %% [markdown] tags=["predict"]
# ## 2 · Split and merge
#
# A loop over heads is slow, so one product `x @ W_Q` makes the queries of all heads at once, $(n, d_{model})$, and its features
# are cut afterwards. The head axis must come before the token axis, so that `@` treats heads like a batch:
#
# $$(n, d_{model}) \;\to\; (n, h, d_k) \;\to\; (h, n, d_k).$$
#
# **Predict.** Somebody saves a step and reshapes $(4, 6)$ to $(2, 4, 3)$ at once. What is in head 1?
#
# - **a** features 0, 1, 2 of every word
# - **b** all features of *Anna* and *saw*, and nothing of *Ben* and *she*
# - **c** nothing: it raises an error

# %%
guess_reshape = None  # "a", "b" or "c"

# %%
predict.reshape(guess_reshape)

# %% [markdown]
# Each number says word and feature, so 13 is feature 3 of word 1. Steps 1 and 2 split, steps 3 and
# 4 merge. The second panel does both by a bare reshape, each time from the correct numbers.

# %% tags=["slide"] says="Features are cut"
split_and_merge = live.split_heads(WORDS, num_heads=2, d_k=3)
split_and_merge

# %% [markdown]
# Features are cut, and words stay whole: every head sees every word.

# %% [markdown] tags=["exercise"]
# ### Exercise [[split_heads]] · Split
#
# **Goal.** Cut the features into heads. *5 minutes, easy.*
#
# `my_split_heads(x, num_heads)`: $(..., n, d_{model})$ gives $(..., h, n, d_k)$. Two steps, as in section 2.


# %%
def my_split_heads(x, num_heads):
    return ...  # your code


# %%
verdict = check.split_heads(my_split_heads)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_split_heads(x, num_heads):
#     cut = x.reshape(*x.shape[:-1], num_heads, -1)  # (..., n, h, d_k)
#     return np.swapaxes(cut, -2, -3)  # (..., h, n, d_k)
# ```
#
# </details>

# %%
mine.keep(my_split_heads)

# %% [markdown] tags=["exercise"]
# ### Exercise [[merge_heads]] · Merge
#
# **Goal.** Put the heads side by side again. *4 minutes, medium.*
#
# `my_merge_heads(x)`: $(..., h, n, d_k)$ gives $(..., n, d_{model})$.


# %%
def my_merge_heads(x):
    return ...  # your code


# %%
verdict = check.merge_heads(my_merge_heads)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_merge_heads(x):
#     swapped = np.swapaxes(x, -2, -3)  # (..., n, h, d_k)
#     return swapped.reshape(*swapped.shape[:-2], -1)  # (..., n, d_model)
# ```
#
# </details>

# %%
mine.keep(my_merge_heads)

# %% [markdown]
# ## 3 · The whole layer in NumPy
#
# Project, split, attend in each head, merge. A last matrix $W_O$ follows, because the merged heads only stand side by side:
# features 0 to 2 come from head 1, and 3 to 5 from head 2. $W_O$ mixes them. Here it writes *who* of head 1 to *female*, *who* of
# head 2 to *male*, and the sum of both to *who*. (*saw* has 0 in *female* and *male*, so there is room for a name.)


# %%
def multi_head(x, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    q, k, v = (al.split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads = attention(q, k, v, attn_mask)  # (h, n, d_k), scaled by 1/sqrt(d_k)
    return al.merge_heads(heads) @ W_O  # (n, d_model)


# %%
def tell(output, word):
    row = output[WORDS.index(word)]
    told = (f"{name} {row[FEATURES.index(name)]:6.3f}" for name in ("female", "male"))
    print(f"{word:4}", *told, f"who {row[FEATURES.index('who')]:6.3f}")


output = multi_head(*TWO_HEADS, num_heads=2)
tell(output, "saw")
tell(output, "she")
print("she plus what she takes:")
print(dict(zip(FEATURES, (x + output)[3].round(3).tolist())))


# %% jupyter={"source_hidden": true}
def draw_by_head(ax, title, one, two, rows, columns):  # what comes from each head
    tints = np.array([[[255] * 3, [246, 228, 212]], [[233, 229, 242], [216] * 3]])
    from_1, from_2 = (matrix.astype(bool).astype(int) for matrix in (one, two))
    pixels = np.dstack([tints[from_1, from_2], 255 * (from_1 | from_2)])  # 0 is clear
    _ = ax.imshow(pixels, aspect="auto")
    for (i, j), value in np.ndenumerate(np.round(one + two, 3)):
        look = {"color": "black" if value else "gray", "gid": "value"}
        _ = ax.text(j, i, f"{value:g}", ha="center", va="center", **look)
    _ = ax.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    _ = ax.set_yticks(range(len(rows)), rows)
    _ = ax.set_title(f"{title} {one.shape}")
    _ = ax.set_box_aspect(2.5 / len(columns)), ax.set_anchor("W")


# %% jupyter={"source_hidden": true} tags=["slide"] says="Project, split, attend"
one, two = (np.hstack([a, 0 * a]) for a in of_head)
two, kinds = np.roll(two, 3, axis=1), ["who", "verb", "unused"]  # (n, 6)
O_1, O_2 = (W_O * part for part in np.split(np.repeat(np.eye(2), 3, 0), 2, 1))
_, axes = plot.subplots(3, 2, figsize=(7.3, 6.3))
draw_by_head(axes[0, 0], "x: both read all of it", x / 2, x / 2, WORDS, FEATURES)
draw_by_head(axes[1, 0], "head 1 finds", of_head[0], 0 * of_head[0], WORDS, kinds)
draw_by_head(axes[2, 0], "head 2 finds", 0 * of_head[1], of_head[1], WORDS, kinds)
draw_by_head(axes[0, 1], "the heads side by side", one, two, WORDS, kinds * 2)
draw_by_head(axes[1, 1], "W_O", O_1, O_2, kinds * 2, FEATURES)
draw_by_head(axes[2, 1], "times W_O: each takes", one @ W_O, two @ W_O, WORDS, FEATURES)

# %% [markdown]
# Violet comes from head 1, pale orange from head 2, grey from both. *saw* now has both names, apart: Anna in *female*, Ben in *male*. In
# *who*, where $W_O$ adds them, the two nearly cancel once more.
#
# *she* still learns Anna. What she takes is added, and she has 0.885 in *who*, as in notebook [[by_hand]]. Two numbers differ from there.
# This $W_O$ writes *who* of head 1, the name of the woman, to *female*, so her 1 becomes 1.885. And head 2 looks for the verb, so she has 0.689 in
# *verb*, not 0.036.
#
# Multiplying the merged heads by $W_O$ adds one part per head. Head $i$ has its own weights $A_i$, its own columns of $W_V$ and
# its own rows of $W_O$:
#
# $$\text{output} = \sum_i A_i \, x \, W_V^{(i)} \, W_O^{(i)}$$

# %%
q, k, v = (al.split_heads(x @ W, 2) for W in (W_Q, W_K, W_V))
weights = al.attention_trace(q, k, v).weights  # (h, n, n)
added = sum(A @ x @ W_V[:, p] @ W_O[p] for A, p in zip(weights, parts))
print(f"added up head by head, it differs by {np.abs(added - output).max():.12f}")

# %% [markdown]
# With one head $W_V W_O$ is a single product, and a single matrix could take its place. So some code leaves $W_O$ out where there
# is one head, and other code keeps two matrices that do the work of one ([thread](../REFERENCES.md#asked)).

# %% [markdown] tags=["exercise"]
# ### Exercise [[multi_head_attention]] · The whole layer
#
# **Goal.** Write multi-head attention with three inputs and a mask, in NumPy. *12 minutes, medium.*
#
# `my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None)` returns $(..., n_q, d_{model})$. `attn_mask`
# is $(n_q, n_k)$, $(b, n_q, n_k)$ or $(b, 1, n_k)$, the same for all heads. The scores are $(b, h, n_q, n_k)$, so a mask of
# three axes first needs a head axis: `attn_mask[:, None]`. A mask of two axes goes in as it is. The first line loads what you
# kept of [[masked_attention]], [[split_heads]] and [[merge_heads]], or ours.

# %%
names = ["attention", "split_heads", "merge_heads"]
attention, split_heads, merge_heads = mine.load_all(names).values()


def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    return ...  # your code


# %%
verdict = check.multi_head_attention(my_multi_head)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# names = ["attention", "split_heads", "merge_heads"]
# attention, split_heads, merge_heads = mine.load_all(names).values()
#
#
# def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
#     pairs = ((query, W_Q), (key, W_K), (value, W_V))
#     q, k, v = (split_heads(x @ W, num_heads) for x, W in pairs)  # (..., h, n, d_k)
#     if attn_mask is not None and attn_mask.ndim == 3:
#         attn_mask = attn_mask[:, None]  # (b, 1, n_q, n_k)
#     return merge_heads(attention(q, k, v, attn_mask)) @ W_O
# ```
#
# </details>

# %%
mine.keep(my_multi_head)

# %% [markdown]
# ## Break it · Straight to the shape
#
# Now the bare reshape of section 2 goes into the layer. Which of its mistakes would you notice?

# %%
splits = {"correct": al.split_heads, "reshape": lambda x, h: x.reshape(h, len(x), -1)}
merges = {"correct": al.merge_heads, "reshape": lambda y: y.reshape(y.shape[-2], -1)}
rows = []
for (s, split), (m, merge) in product(splits.items(), merges.items()):
    q, k, v = (split(x @ W, 2) for W in (W_Q, W_K, W_V))
    saw = (merge(attention(q, k, v)) @ W_O)[1]
    learns = [f"{saw[FEATURES.index(name)]:.3f}" for name in ("female", "male", "who")]
    back = "yes" if np.array_equal(merge(split(x, 2)), x) else "no"
    rows.append((s, m, back, *learns))
names = ["split", "merge", "merge undoes split?", "saw: female", "male", "who"]
plot.table(names, rows)

# %% [markdown]
# The shapes are right and nothing fails, but *saw* learns something else in each of the three wrong layers. A test whether merge
# undoes split misses the last one: two bare reshapes undo each other. It has happened ([thread](../REFERENCES.md#threads)).

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Does a bare reshape also leak the future? Take six words and two heads under a causal mask, and change word 3 (*Appendix*). With
# the correct merge behind the wrong split all outputs move: the future leaks. With a merge as wrong as the split nothing leaks,
# because head 1 holds the pieces of the first three words in their order. But each head sees only three of the six words.
#
# </details>

# %% [markdown]
# ## 4 · Two heads that learn
#
# Two heads were set by hand above. Do heads that learn share two questions? Twelve letters stand in a ring. For each of them a
# model names two letters, the one before it and the one after it.
#
# The model is one attention layer. Each position adds a learned vector of its own, a **position embedding**, because attention does
# not know where a token stands. Behind the layer one linear layer, the **read-out**, rates each letter. There are 32
# features, so two heads have 16 each.

# %% jupyter={"source_hidden": true}
found = model_files.stored("neighbours_results")
try:
    import torch
    from torch import nn

    from attncourse.training import neighbours

    _ = torch.set_num_threads(1)
except ImportError:
    torch, nn = None, SimpleNamespace(Module=object)  # for the stub of the module
    print("torch is not installed: the trainings below show stored results, and")
    print("section 7 and the exercise *The module* wait for it. Fix: pip install torch")

# %% [markdown] tags=["predict"]
# The two trainings take five to ten seconds.
#
# **Predict.** One head, or two heads with half the features each: the number of parameters is the same. Which learns to name
# both neighbours?
#
# - **a** both: the parameters are equally many
# - **b** the two small heads
# - **c** neither

# %%
guess_heads = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output", "slide"] says="Two heads take one"
if torch is not None:
    found |= neighbours.two_trainings()
for name in ("1 head(s)", "2 head(s)"):
    got = found[name]
    print(
        f"{name}, {got['parameters']} parameters: both right {got['all right']:.2f}",
        end="",
    )
    print(" (letter before {:.2f}, letter after {:.2f})".format(*got["each"]))

# %%
predict.two_heads(guess_heads)

# %% jupyter={"source_hidden": true} tags=["slide"] says="The one head looks"
maps = np.concatenate([found["1 head(s)"]["maps"], found["2 head(s)"]["maps"]])
titles = ["the one head", "head 1 of 2", "head 2 of 2"]
figure = plot.head_grid(maps, titles=titles, width=6.3)

# %% [markdown]
# The one head looks at both neighbours, and
# the read-out names one of the two letters nearly always, the other seldom. Two heads take one neighbour each and write their
# answers to different features, where a linear layer can read both. So here
# one head can hold both letters, but a linear read-out cannot tell them apart. Two heads make it easy.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# A read-out with a **hidden layer** (linear, negative numbers to 0, linear) *can* tell the letters apart. Trained together with
# it, one head names both in 0.85 of the positions at worst in five seeds. Take such a head as it is, and train only a new linear
# read-out behind it: both are right in 0.10 of the positions. Language models do have a hidden layer behind attention. But ask for three
# letters before and three after: in 600 steps one head and the hidden layer get all six right in 0.14 of the positions, and eight heads
# in every position. One task, one size, and one seed for all but the five runs: the *Appendix* has the numbers.
#
# </details>

# %% [markdown] tags=["predict"]
# ## 5 · Which $d_k$ in the scale?
#
# Notebook [[scaling]] divided scores by the root of the number of products in them. A layer of width 256 with 8 heads takes dot
# products of $256 / 8 = 32$ entries. A [widely copied class](../REFERENCES.md#s0) divides by $\sqrt{256} = 16$ all the
# same ([threads](../REFERENCES.md#threads)). **Predict.** Are its weights too sharp or too pale?

# %% tags=["slide"]
r = np.random.default_rng(22)
q, k = r.normal(size=(2, 32, 8, 10, 32))  # (b, h, n, d_k)
dots = q @ k.swapaxes(-1, -2)  # (b, h, n_q, n_k)
for name, scale in (("sqrt(256)", 16), ("sqrt(32) ", np.sqrt(32))):
    variance, H = (dots / scale).var(), al.entropy(al.softmax(dots / scale)).mean()
    print(f"divided by {name}: variance {variance:.2f}   mean entropy {H:.2f} nats")

# %% [markdown] tags=["predict"]
# Too pale: ten equal weights have $\ln 10 = 2.30$ nats, and these have 2.25 on average. A pale start is no mistake by itself:
# a fresh `nn.Linear` is paler and learns (notebook [[pytorch_module]]). The mistake is a scale that does not belong to the vectors that are
# multiplied. Use the $d_k$ of one head.
#
# **Predict.** By what does a layer with $d_{model} = 768$ and 12 heads divide its scores?
#
# - **a** 27.7
# - **b** 64
# - **c** 8

# %%
guess_divisor = None  # "a", "b" or "c"

# %%
predict.head_divisor(guess_divisor)

# %% [markdown]
# These are the sizes of BERT and of the smallest GPT-2 ([sources](../REFERENCES.md#models)). In the next picture $d_{model} = 64$
# stays fixed, and more heads mean shorter vectors. The words are random, and the maps are those of the first head. **Try.** Move
# *num_heads*: with one head the division changes the map a lot, with 32 heads ($d_k = 2$) little. Bright cells mean nothing here,
# and even a trained map is not yet an explanation ([Jain and Wallace 2019](../REFERENCES.md#jain-2019)).

# %% jupyter={"source_hidden": true}
rng = np.random.default_rng(2)
tokens = rng.normal(size=(6, 64))
wide = al.MultiHeadAttention(64, 1, bias=False, rng=rng)  # a fresh layer
q, k = tokens @ wide.W_Q, tokens @ wide.W_K  # (n, 64)


def first_head(num_heads):
    d_k = 64 // num_heads
    scores = q[:, :d_k] @ k[:, :d_k].T  # (n_q, n_k)
    return {
        "not scaled": al.softmax(scores),
        "divided by sqrt(d_k)": al.softmax(scores / d_k**0.5),
    }


# %% jupyter={"source_hidden": true}
choices = [(f"{h}, so d_k = {64 // h}", h) for h in (1, 2, 4, 8, 16, 32)]
view = live.weights_view(
    first_head, num_heads=choices, still=(1, 8, 32), start=1, row=0
)
view

# %% [markdown]
# ## 6 · What more heads cost
#
# Whatever $h$ is, there are four matrices of $d_{model} \times d_{model}$, and the scores and weighted sums take
# $2\, n^2\, d_{model}$ multiplications. More heads are the same matrices, cut finer. But each head has a map of its own to store.

# %%
n, d_model = 500, 512
for h in (1, 8, 64):
    layer = al.MultiHeadAttention(d_model, h, bias=False)
    parameters = sum(W.size for W in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
    products = 2 * h * n * n * layer.d_k  # scores, and weights times values
    told = f"h = {h:2d}: {products:,} products   {h * n * n:,} weights to store"
    print(f"{told}   {parameters:,} parameters")

# %% [markdown]
# Often nobody needs the maps. A **fused kernel** does scores, softmax and weighted sum piece by piece and stores no map ([Dao et
# al. 2022](../REFERENCES.md#dao-2022)); torch may use one where you say `need_weights=False`.
#
# But thin heads are weak. A head with $d_k = 1$ multiplies one number by another. So all its positive queries prefer the
# same key, the one with the largest number, and all its negative queries the one with the smallest.
#
# ## 7 · Your module, cut into heads
#
# Now the same in torch, from your class of exercise [[SelfAttention]], or ours. The first step is a list of single heads. Their
# outputs stand side by side, and a fourth layer mixes them.

# %%
if torch is not None:
    SelfAttention = mine.load("SelfAttention")

    class ListOfHeads(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            sizes = d_model, d_model // num_heads  # d_in and d_k of one head
            self.heads = nn.ModuleList(SelfAttention(*sizes) for _ in range(num_heads))
            self.W_O = nn.Linear(d_model, d_model, bias=False)

        def forward(self, x):
            outputs = [head(x)[0] for head in self.heads]  # (..., n, d_k) each
            return self.W_O(torch.cat(outputs, dim=-1))


# %%
if torch is not None:
    sequence, listed = torch.tensor(x)[None], ListOfHeads(6, 2).double()  # (b, n, d)
    with torch.no_grad():
        for head, part in zip(listed.heads, parts):
            for layer, W in zip((head.W_Q, head.W_K, head.W_V), (W_Q, W_K, W_V)):
                layer.weight.copy_(torch.tensor(W[:, part].T))
        listed.W_O.weight.copy_(torch.tensor(W_O.T))
        off = np.abs(listed(sequence)[0].numpy() - output).max()
    print(f"a list of heads: largest difference to section 3 {off:.12f}")

# %% [markdown]
# In the second step the matrices of all heads stand side by side in one layer, and the loop becomes a split: exercise [[MultiHeadAttention]].
#
# Torch has such a layer. `nn.MultiheadAttention` keeps $W_Q$, $W_K$ and $W_V$ in one matrix, transposed, and wants a mask in
# which True is blocked.

# %%
if torch is not None:
    theirs = nn.MultiheadAttention(6, 2, bias=False, batch_first=True).double()
    future = torch.tensor(~al.causal_mask(4))
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.tensor(np.hstack([W_Q, W_K, W_V]).T))
        theirs.out_proj.weight.copy_(torch.tensor(W_O.T))
        for mask, blocked in ((None, None), (al.causal_mask(4), future)):
            result, _ = theirs(sequence, sequence, sequence, attn_mask=blocked)
            off = np.abs(result[0].numpy() - multi_head(*TWO_HEADS, 2, mask)).max()
            name = "without a mask" if mask is None else "a causal mask"
            print(f"{name:14} largest difference {off:.12f}")
            tell(result[0].numpy(), "saw")

# %% [markdown]
# With and without a causal mask the numbers agree. Behind the mask *saw* cannot see Ben yet, so head 2 takes Anna, too.
#
# One warning: `nn.MultiheadAttention` returns the **average** of all maps, unless you say `average_attn_weights=False`. The
# average is no head's map. A sharp head looks pale in it.

# %% [markdown]
# ## Exercises
#
# [[MultiHeadAttention]] is torch, [[two_jobs]] is NumPy. Masks are boolean, **True = may attend**.

# %% [markdown] tags=["exercise"]
# ### Exercise [[MultiHeadAttention]] · The module
#
# **Goal.** Cut your module of [[SelfAttention]] into heads. *20 minutes, hard.*
#
# 1. `__init__(embed_dim, num_heads)` makes four layers `nn.Linear(embed_dim, embed_dim)`, with a bias or without, called `W_Q`,
#    `W_K`, `W_V`, `W_O`.
# 2. `forward(query, key=None, value=None, *, attn_mask=None)` returns the output and the weights $(..., h, n_q, n_k)$. Split
#    and merge as in [[split_heads]] and [[merge_heads]], and count axes from the end: it is tried on batches, and on one sequence without a batch axis.
# 3. `key` defaults to `query`, `value` to `key`.
# 4. The mask is as in [[multi_head_attention]], by `masked_fill`. A query that may attend to nothing has weights 0: `.nan_to_num()`. Its output is
#    then the bias of `W_O`, if there is one. The gradient must reach all four layers, and not be NaN.


# %%
class MyMultiHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        raise NotImplementedError  # your code

    def forward(self, query, key=None, value=None, *, attn_mask=None):
        raise NotImplementedError  # your code


# %%
verdict = check.MultiHeadAttention(MyMultiHead)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# class MyMultiHead(nn.Module):
#     def __init__(self, embed_dim, num_heads):
#         super().__init__()
#         self.h = num_heads
#         self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
#
#     def forward(self, query, key=None, value=None, *, attn_mask=None):
#         key = query if key is None else key
#         value = key if value is None else value
#         q, k, v = self.W_Q(query), self.W_K(key), self.W_V(value)  # (b, n, embed_dim)
#         q, k, v = (x.unflatten(-1, (self.h, -1)).transpose(-2, -3) for x in (q, k, v))  # (b, h, n, d_k)
#         scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5  # (b, h, n_q, n_k)
#         if attn_mask is not None:
#             blocked = ~attn_mask if attn_mask.ndim == 2 else ~attn_mask[:, None]
#             scores = scores.masked_fill(blocked, -torch.inf)
#         weights = scores.softmax(-1).nan_to_num()
#         return self.W_O((weights @ v).transpose(-2, -3).flatten(-2)), weights
# ```
#
# </details>

# %%
mine.keep(MyMultiHead)

# %% [markdown] tags=["exercise"]
# ### Exercise [[two_jobs]] · Design: two jobs for two heads
#
# **Goal.** Choose $W_Q$ so that two heads look where you want them to. *12 minutes, hard.*
#
# Four tokens stand in a ring. Each is a one-hot vector, with its 1 at its position: $x = I_4$. With $W_K = [\,I_4 \; I_4\,]$, of
# shape $(4, 8)$, each token has this vector as its key in both heads. Each head has $d_k = 4$: scores are divided by 2. Choose $W_Q$ $(4, 8)$ so that in
# **head 1** each token looks at the one opposite, two positions on, and in **head 2** at both its neighbours, half and half. Each
# weight may be off by 0.05. Many answers are right.

# %%
my_W_Q = None  # (4, 8): np.hstack([what head 1 asks, what head 2 asks])

# %%
verdict = check.two_jobs(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# opposite = np.roll(np.eye(4), 2, axis=1)
# beside = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
# my_W_Q = 10 * np.hstack([opposite, beside])  # 10 / sqrt(4) = 5, and exp(5) = 148 against 1
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. In `multi_head` of section 3 replace `al.merge_heads(heads)` by `np.tile(heads.mean(-3), num_heads)`, the average of the
#    heads in place of the heads side by side. What does *saw* learn?
# 2. Change $W_O$ so that *who* of *saw* becomes who of head 1 minus who of head 2.
# 3. With torch, train four heads: `w = neighbours.measured(neighbours.trained(4))["maps"]`, then `plot.head_grid(w)`. What do the
#    extra heads do?
#
# <details><summary>Answers</summary>
#
# 1: *female* and *male* are both -0.107, the names cancel. 2: with `W_O = W_O.copy()` and `W_O[3, 5] = -1` it is 2.341, and *she*
# keeps 0.885. 3: nothing new is asked, so each looks at one neighbour, or at both.
#
# </details>
#
# **Remember.** A head is one row of weights per query, so two heads keep two answers apart. Heads share one projection, cut by
# reshape **and** swap. The scale is $1/\sqrt{d_k}$ with the $d_k$ of one head. $W_O$ mixes the heads. The number of parameters
# does not depend on $h$. Next: [[[bug_clinic]] bug clinic]([[bug_clinic.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# The function of [[multi_head_attention]], yours or ours, with one head on the text of notebook [[by_hand]] and the identity as $W_O$:

# %%
kept, text = mine.load("multi_head"), KARIM.x
with np.printoptions(precision=6):
    print(kept(text, text, text, *KARIM[1:], np.eye(3), num_heads=1))

# %% [markdown]
# The other models of section 4 train for half a minute, so their results are stored. With torch,
# `neighbours.with_other_read_outs()` and `neighbours.six_letters()` train them again.

# %%
stored = model_files.stored("neighbours_results")
more, less = stored["1 head(s)"]["shares"]
print(f"linear read-out: shares {more:.2f} and {less:.2f}")
for name, got in stored.items():
    if "hidden" in name or "same" in name or "six" in name:
        more, less = got["shares"]
        shares = f"shares {more:.2f} and {less:.2f} " if "hidden" in name else ""
        each = " ".join(f"{share:.2f}" for share in got["each"])
        print(f"{name}: {shares}all right {got['all right']:.2f}, each {each};")
        print(f"    letters differ: {got['letters differ']:.2f}")

# %% [markdown]
# Take the letters in exact shares. A trained linear layer (stored, `neighbours.of_exact_shares()`) finds the larger share and
# never the smaller. With weights set by hand, 1, 10, 100 and so on, it finds the smaller in half of the pairs.

# %%
print(
    "asked with 1 and 0.9:", al.softmax(10 / np.sqrt(3) * np.array([1, 0.9])).round(2)
)
letters = np.eye(10)
a, b = (place.ravel() for place in np.indices((10, 10)))  # all 100 pairs
shares = 0.64 * letters[a] + 0.36 * letters[b]  # (100, 10)
unequal = (shares * 10.0 ** np.arange(10)).argmax(-1)  # 1, 10, 100, ...
half = (unequal == b)[a != b].mean()
for name in ("the larger share", "the smaller share"):
    print(f"{name} of two different letters: found in {stored[name]:.2f}")
print(f"by hand, with unequal weights: the smaller share found in {half:.2f}")

# %% [markdown]
# A bare reshape behind a causal mask, and the mean entropy of maps:

# %%
six = np.random.default_rng(0).normal(size=(6, 8))  # (n, d_model)
poked = six + np.eye(6)[:, 3:4]  # row 3 is changed
for name, merge in (("correct", al.merge_heads), ("bare", merges["reshape"])):
    cuts = [word.reshape(2, 6, 4) for word in (poked, six)]  # straight to (h, n, d_k)
    mask = al.causal_mask(6)
    after, before = (merge(attention(cut, cut, cut, mask)) for cut in cuts)
    moved = np.flatnonzero(np.abs(after - before).max(axis=-1))
    print(f"bare split, {name + ' merge':<13} outputs that move: {moved}")

# %%
uniform = np.full((6, 6), 1 / 6)
pair = [al.entropy(w).mean().round(2) for w in (uniform, (uniform + np.eye(6)) / 2)]
print("a uniform map:", pair[0], "  averaged with the identity:", pair[1])
for h in (1, 32):
    pairs = first_head(h).items()
    told = (f"{name} {al.entropy(w).mean():.2f}" for name, w in pairs)
    print(f"h = {h:<2} mean entropy:", ", ".join(told))

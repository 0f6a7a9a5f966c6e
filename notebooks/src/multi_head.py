# %% [markdown]
# # [[multi_head]] · Multi-head attention
#
# **Question.** A layer of SmolLM2 has nine heads, and all nine read the same words. Why nine, and not one? And how do you compute
# them at once? *30 minutes, and 53 for exercises. The last section uses torch, if it is there.*
#
# Here are the nine, in two sentences. The last *to* comes in at the open dot, and every head adds one arrow, tip to tail. To the
# right is more *Mary*, upwards is more *John*.

# %% jupyter={"source_hidden": true}
from itertools import product
from types import SimpleNamespace

import numpy as np

import attnlib as al
from attncourse import check, mine, predict, smollm
from attnlib import live, plot
from attnlib.examples import KARIM, OUTPUT_FEATURES, SENTENCE, TWO_HEADS, WORDS

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
# You know head 1 of layer 24 from notebook [[start_here]]: it finds the name that should come next. Eight other heads work in the same
# layer, and where the last arrow ends, *to* leaves the layer.
#
# **Try.** Pick other heads, and switch them off. A dashed ring marks the end of all nine.

# %% [markdown] tags=["predict"]
# **Predict.** Take head 4 away, the longest arrow. In which corner does each sentence end? Guess, then run.

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
# Both sentences come in at nearly the same point and leave far apart. Where John gives, head 1 looks at Mary and adds 12.9 towards
# *Mary*. Head 4 looks at John and takes 21.7 away from *John*. Without head 4 both chains end in the same corner, and
# where Mary gives the wrong name is ahead. (Six more layers follow, and the model still writes the right one.)
#
# One head brings a name, another takes a name away, and what they bring is added. One row of weights makes one mixture, and can
# say only one of the two. So a layer has several **heads**, each with its own queries, keys and values, and its own row of
# weights.
#
# <details><summary><b>How sure is this?</b></summary>
#
# The picture shows two of the 576 numbers of a vector, and at most about a tenth of an arrow's squared length. The two directions
# are not at right angles (cosine 0.71), because both names are names. Without head 4 the model still writes the right name, with 0.87 and 0.84, but the wrong name
# becomes 20 and 43 times as likely. Without head 1 it writes the right name with 0.87 and 0.81, and the wrong name is no likelier.
# In each of 80 such sentences head 4 takes most from the name of the giver. Without it that name is ahead of the right one
# in 18 of them, with it in 2.
#
# </details>

# %% [markdown]
# ## 1 · Two questions, one row of weights
#
# Four words show the same with numbers that you can check. First one head, by the function that you kept, or by ours.

# %%
attention = mine.load("attention")  # yours with a mask, or ours
one_head = attention(*SENTENCE.project())  # (n, d_v): who, verb
print("saw:", one_head[1], "  she:", one_head[3])

# %% [markdown] tags=["predict"]
# *saw* looks for a name and finds two. Anna's *who* is +2 and Ben's is -2, so equal weights add up to 0. But *saw* has
# two questions: which woman, and which man? So it needs a second row of weights, from a second head.
#
# Each of $h$ heads gets $d_k = d_{model} / h$ features. Our words have $d_{model} = 6$ (called $d_{in}$ so far), so two heads
# have 3 each. Heads are counted from 1.
#
# | | head 1 looks for | head 2 looks for |
# |---|---|---|
# | *saw* | a female name | a male name |
# | *she* | a female name, as before | the verb |
# | *Anna*, *Ben* | the verb, as before | nothing: four equal weights |
#
# **Predict.** Which sign has *who* of *saw* in head 1, and which in head 2?

# %% tags=["slide"] says="Head 1 brings"
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
# Head 1 brings *saw* 1.064, which is Anna, and head 2 brings -1.278, which is Ben.
#
# Is a head a slice of the word? No: each head reads all six features, and only the columns of the matrices are divided. Where
# the words themselves are cut ([published code](../REFERENCES.md#asked)), no head can combine features from two slices.

# %% [markdown] tags=["predict"]
# ## 2 · Split and merge
#
# One product `x @ W_Q` makes the queries of all heads at once, $(n, d_{model})$, and its features are cut afterwards. The head
# axis comes before the token axis, so that `@` treats heads like a batch:
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
# Below, 13 is feature 3 of word 1. Steps 1 and 2 split, 3 and 4 merge. The second panel does both by a bare reshape.

# %% tags=["slide"] says="Features are cut"
split_and_merge = live.split_heads(WORDS, num_heads=2, d_k=3)
split_and_merge

# %% [markdown]
# Features are cut, and words stay whole.

# %% [markdown] tags=["exercise"]
# ### Exercise [[split_heads]] · Split
#
# **Goal.** Cut the features of queries, keys or values into heads. *5 minutes, easy.*
#
# `my_split_heads(x, num_heads)`: $(..., n, d_{model})$ gives $(..., h, n, d_k)$. Two steps, as above.


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
# Project, split, attend in each head, merge. The merged heads only stand side by side, so a last matrix $W_O$ mixes them. Its columns have names of their own: it writes *who* of head 1 to
# *woman*, *who* of head 2 to *man*, and the sum of both to *who*.


# %%
def multi_head(x, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    q, k, v = (al.split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads = attention(q, k, v, attn_mask)  # (h, n, d_k), scaled by 1/sqrt(d_k)
    return al.merge_heads(heads) @ W_O  # (n, d_model)


# %%
def tell(output, word):
    row = dict(zip(OUTPUT_FEATURES, output[WORDS.index(word)]))
    told = (f"{name} {row[name]:6.3f}" for name in ("woman", "man", "who"))
    print(f"{word:4}", *told)


output = multi_head(*TWO_HEADS, num_heads=2)
tell(output, "saw")
tell(output, "she")

# %% [markdown]
# *saw* now has *woman* and *man* in two places. In *who*, where $W_O$ adds them, they nearly cancel. A real layer adds its output to the words.
# Our six features leave no room for two more, so we look at the output alone.
#
# $W_O$ adds one part per head, like the arrows of the first picture. Head $i$ has its own weights $A_i$, columns of $W_V$ and rows
# of $W_O$:
#
# $$\text{output} = \sum_i A_i \, x \, W_V^{(i)} \, W_O^{(i)}$$

# %%
q, k, v = (al.split_heads(x @ W, 2) for W in (W_Q, W_K, W_V))
weights = al.attention_trace(q, k, v).weights  # (h, n, n)
added = sum(A @ x @ W_V[:, p] @ W_O[p] for A, p in zip(weights, parts))
print(f"added up head by head, it differs by {np.abs(added - output).max():.12f}")

# %% [markdown]
# With one head, $W_V W_O$ is a single matrix, and some code leaves $W_O$ out ([thread](../REFERENCES.md#asked)).
#
# Without a mask nothing here knows where a word stands: if two words change places, so do their outputs. Notebook
# [[train_and_look]] adds positions to the words.

# %% [markdown] tags=["exercise"]
# ### Exercise [[multi_head_attention]] · The whole layer
#
# **Goal.** Write multi-head attention with three inputs and a mask, in NumPy. *12 minutes, medium.*
#
# `my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None)` returns $(..., n_q, d_{model})$. `attn_mask`
# is $(n_q, n_k)$, $(b, n_q, n_k)$ or $(b, 1, n_k)$, the same for all heads. The scores are $(b, h, n_q, n_k)$, so a mask of
# three axes first needs a head axis: `attn_mask[:, None]`. The first line loads what you kept of [[masked_attention]],
# [[split_heads]] and [[merge_heads]], or ours.

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

# %% [markdown] tags=["exercise"]
# ### Exercise [[two_jobs]] · Design: two jobs for two heads
#
# **Goal.** Choose $W_Q$ so that two heads look where you want them to. *12 minutes, hard.*
#
# Four tokens stand in a ring, each a one-hot vector: $x = I_4$. With $W_K = [\,I_4 \; I_4\,]$ this vector is also its key in both
# heads. Each head has $d_k = 4$, so scores are divided by 2. Choose $W_Q$ $(4, 8)$ so that in **head 1** each token looks at the
# one opposite, two positions on, and in **head 2** at both its neighbours, half and half. Each weight may be off by 0.05. Many
# answers are right.

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

# %% [markdown] tags=["predict"]
# ## Break it · Straight to the shape
#
# Now a bare reshape goes into the layer, as split, as merge, or as both. **Predict.** A test asks whether merge
# undoes split. Which of the three wrong layers does it miss?

# %%
splits = {"correct": al.split_heads, "reshape": lambda x, h: x.reshape(h, len(x), -1)}
merges = {"correct": al.merge_heads, "reshape": lambda y: y.reshape(y.shape[-2], -1)}
rows = []
for (s, split), (m, merge) in product(splits.items(), merges.items()):
    q, k, v = (split(x @ W, 2) for W in (W_Q, W_K, W_V))
    saw = (merge(attention(q, k, v)) @ W_O)[1]
    at = [OUTPUT_FEATURES.index(name) for name in ("woman", "man", "who")]
    learns = [f"{saw[i]:.3f}" for i in at]
    back = "yes" if np.array_equal(merge(split(x, 2)), x) else "no"
    rows.append((s, m, back, *learns))
names = ["split", "merge", "merge undoes split?", "saw: woman", "man", "who"]
plot.table(names, rows)

# %% [markdown]
# The shapes are right and nothing fails, but *saw* learns something else in each of the three. The test misses the last one: two
# bare reshapes undo each other. It has happened ([thread](../REFERENCES.md#threads)).

# %% [markdown] tags=["predict"]
# ## 4 · Which $d_k$ in the scale?
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
# Too pale: ten equal weights have $\ln 10 = 2.30$ nats, and these have 2.25 on average. A pale start alone stops no training, but
# the scale belongs to the vectors that are multiplied: use the $d_k$ of one head.
#
# **Predict.** BERT and the smallest GPT-2 have $d_{model} = 768$ and 12 heads ([sources](../REFERENCES.md#models)). By what do
# they divide their scores?
#
# - **a** 27.7
# - **b** 64
# - **c** 8

# %%
guess_divisor = None  # "a", "b" or "c"

# %%
predict.head_divisor(guess_divisor)

# %% [markdown]
# ## 5 · What more heads cost
#
# More heads are the same four matrices of $d_{model} \times d_{model}$, cut finer, and scores and weighted sums take
# $2\, n^2\, d_{model}$ multiplications whatever $h$ is. But each head has its own map to store.

# %%
n, d_model = 500, 512
for h in (1, 8, 64):
    layer = al.MultiHeadAttention(d_model, h, bias=False)
    parameters = sum(W.size for W in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
    products = 2 * h * n * n * layer.d_k  # scores, and weights times values
    told = f"h = {h:2d}: {products:,} products   {h * n * n:,} weights to store"
    print(f"{told}   {parameters:,} parameters")

# %% [markdown]
# Where nobody needs the maps, a **fused kernel** does scores, softmax and weighted sum piece by piece and stores none ([Dao et
# al. 2022](../REFERENCES.md#dao-2022)).
#
# But thin heads are weak. With $d_k = 1$ all positive queries prefer the key with the largest number, and all negative queries
# the one with the smallest.
#
# ## 6 · Your module, cut into heads
#
# Now in torch, first as a list of single heads, each of your class of exercise [[SelfAttention]], or ours. Their outputs stand
# side by side, and a fourth layer mixes them.

# %% jupyter={"source_hidden": true}
try:
    import torch
    from torch import nn
except ImportError:
    torch, nn = None, SimpleNamespace(Module=object)  # for the stub of the module
    print("torch is not installed: this section and the exercise *The module*")
    print("wait for it. Fix: pip install torch")

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

# %% [markdown] tags=["exercise"]
# ### Exercise [[MultiHeadAttention]] · The module
#
# **Goal.** One layer in place of the list: all matrices side by side, and a split for the loop. *20 minutes, hard.*
#
# 1. `__init__(embed_dim, num_heads)` makes four layers `nn.Linear(embed_dim, embed_dim)`, with a bias or without, called `W_Q`,
#    `W_K`, `W_V`, `W_O`.
# 2. `forward(query, key=None, value=None, *, attn_mask=None)` returns the output and the weights $(..., h, n_q, n_k)$. Count axes
#    from the end: it is tried on batches, and on one sequence without a batch axis.
# 3. `key` defaults to `query`, `value` to `key`.
# 4. The mask is as in [[multi_head_attention]], by `masked_fill`, and True means *may attend*. A query that may attend to nothing
#    has weights 0: `.nan_to_num()`. The gradient must reach all four layers, and not be NaN.


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

# %% [markdown]
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
# The numbers agree. Behind the mask *saw* cannot see Ben yet, so head 2 takes Anna, too. Beware of the maps that
# `nn.MultiheadAttention` returns: they are the **average** of all heads, unless you say `average_attn_weights=False`. The average is
# no head's map, and a sharp head looks pale in it.

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. In `multi_head` of section 3 replace `al.merge_heads(heads)` by `np.tile(heads.mean(-3), num_heads)`, the average of the
#    heads. What does *saw* learn?
# 2. Change $W_O$ so that *who* of *saw* becomes who of head 1 minus who of head 2.
#
# <details><summary>Answers</summary>
#
# 1: *woman* and *man* are both -0.107, the names cancel. 2: with `W_O = W_O.copy()` and `W_O[3, 5] = -1` it is 2.341.
#
# </details>
#
# **Remember.** A head is one row of weights per query, so two heads keep two answers apart. Heads share one projection, cut by
# reshape **and** swap. The scale is $1/\sqrt{d_k}$ with the $d_k$ of one head. $W_O$ mixes the heads. Next:
# [[[model_of_your_own]] a model of your own]([[model_of_your_own.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# The function of [[multi_head_attention]], yours or ours, with one head on the text of notebook [[by_hand]] and the identity as $W_O$:

# %%
kept, text = mine.load("multi_head"), KARIM.x
with np.printoptions(precision=6):
    print(kept(text, text, text, *KARIM[1:], np.eye(3), num_heads=1))

# %% [markdown]
# The first head of a fresh layer on random words. **Try.** Move *num_heads*: with one head the division changes the map a lot, with
# 32 heads ($d_k = 2$) little. Even a trained map is not yet an explanation ([Jain and Wallace 2019](../REFERENCES.md#jain-2019)).

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
# A bare split behind a causal mask: merged rightly, it leaks the future, since every output sees the changed word 3. Merged as
# wrongly it leaks nothing, but each head sees only three of six words. Below that, mean entropies of maps.

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

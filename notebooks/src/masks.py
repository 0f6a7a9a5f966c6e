# %% [markdown]
# # [[masks]] · Masks: who may look where?
#
# **Question.** A model that writes must not see the words it has yet to write. How does one boolean array say who may look
# where, and which mistakes raise no error? *40 minutes.*
#
# Compare *none* with *causal* in the map of *Anna saw Ben; she*; in a notebook, first run the next three cells. So far *Anna*
# took most from *saw*, a later word. The model of notebook [[start_here]] cannot: it reads behind a causal mask.

# %% jupyter={"source_hidden": true}
from textwrap import fill as wrapped

import numpy as np
from matplotlib.patches import Rectangle

import attnlib as al
from attncourse import check, mine, predict
from attnlib import live, plot
from attnlib.colours import INK, KEY, LINE, QUERY, VALUE
from attnlib.examples import SENTENCE, W_O, WORDS

np.set_printoptions(precision=4, suppress=True)

# %% tags=["slide"]
Q, K, V = SENTENCE.project()  # (4, 3), (4, 3), (4, 2)
may_look = live.masks(query=Q, key=K, tokens=WORDS, kinds=["none", "causal"])
may_look

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[pytorch_module]])* The first letter model was trained to return the number stored with the asked letter. What makes it find the
# right slot?
#
# - **a** it learned at which position the answer stands
# - **b** it learned $W_Q$ and $W_K$ that give equal letters a large score
# - **c** it learned a $W_V$ that holds all the answers
#
# **2.** *(notebook [[scaling]])* The numbers of a query and of a key are independent, with mean 0 and variance 1. You double $d_k$. What
# happens to the variance of their score, before the division?
#
# - **a** it stays the same
# - **b** it doubles
# - **c** it becomes four times as large
#
# **3.** *(notebook [[vectorized]])* All scores of one query grow by 100. What happens to its weights?
#
# - **a** they grow
# - **b** the largest one takes everything
# - **c** nothing

# %%
predict.before_masks(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A head that never errs
#
# A language model learns from texts that are already written. At every position it is asked which word comes next. That next
# word is the **target**. One pass through the model answers for all positions of a text. That is fast, but the answers are now in
# the input:

# %% jupyter={"source_hidden": true} tags=["slide"]
_, ax = plot.subplots(figsize=(6.4, 2))
box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": LINE}
for i, (word, target) in enumerate(zip(WORDS, [*WORDS[1:], "?"])):
    _ = ax.text(i, 1, word, ha="center", va="center", bbox=box)
    _ = ax.text(i, 0, target, ha="center", va="center", bbox=box)
    if i < 3:
        _ = ax.plot([i + 0.12, i + 0.88], [0.25, 0.75], color=LINE, lw=1)
_ = ax.set(xlim=(-0.5, 3.5), ylim=(-0.5, 1.5), xlabel="position", xticks=range(4))
_ = ax.set_yticks([0, 1], ["target", "input"]), ax.spines[:].set_visible(False)
_ = ax.set_title("targets shifted under inputs")

# %% [markdown]
# Target $i$ is token $i + 1$, and token $i + 1$ is in the input.
#
# The next head uses that. It was set by hand and knows no English. Each word's query asks for the next position, its key is its
# own position, and its value is the word itself. It reads a longer sentence than ours.

# %% jupyter={"source_hidden": true}
sentence = "the farmer sees the cat and the cat sees the dog"
text = sentence.split()  # 11 tokens, one for each word
words = sorted(set(text))  # the vocabulary, 6 words


def one_hot(tokens):
    return np.eye(len(words))[[words.index(token) for token in tokens]]  # (n, 6)


# %%
def look_ahead(tokens, is_causal=False):  # section 2 explains is_causal
    position = np.eye(len(tokens) + 1)  # row i is position i, one-hot
    query = 100 * position[1:]  # (n, n + 1) token i asks for position i + 1
    key = position[:-1]  # (n, n + 1) and is found at position i
    value = one_hot(tokens)  # (n, 6) which word it is
    return al.attention_trace(query, key, value, is_causal=is_causal)


# %% jupyter={"source_hidden": true}
def next_words(tokens, **options):
    output = look_ahead(tokens, **options).output  # (n, 6)
    return [words[w] for w in output.argmax(axis=-1)]  # of equals the first


def count_right(tokens, **options):
    pairs = zip(next_words(tokens, **options), tokens[1:])
    return sum(guess == word for guess, word in pairs)


# %% jupyter={"source_hidden": true} tags=["slide"] says="Each word's query"
shown = look_ahead(text)
print(f"{count_right(text)} of {len(text) - 1} next words are right")
_, ax = plot.subplots(figsize=(5.2, 4.1))
labels = {"queries": text, "keys": text, "title": "set by hand: one position ahead"}
ax = plot.attention_heatmap(shown.weights, **labels, places=None, ax=ax)

# %% [markdown] tags=["predict"]
# Row 0 has all its weight on *farmer*, the word it was asked to name.
#
# Ten of ten. Now the head writes. It gets *the farmer sees the*, its newest token names the next word, that word is added to
# the text, and so on. **Predict.** What will it write?
#
# - **a** the text continues, without an error
# - **b** it says one word over and over
# - **c** it stops with an error: the newest token asks for a position that no key has

# %%
guess_writes = None  # "a", "b" or "c"


# %% tags=["slide"] says="The head does not predict"
def write(**options):
    so_far = text[:4]
    for _ in range(6):
        so_far = [*so_far, next_words(so_far, **options)[-1]]
    return " ".join(so_far)


print(write())

# %%
predict.writes_on(guess_writes)

# %% [markdown]
# The head does not predict, it copies. After *dog* there is nothing to copy: all scores of the last row are 0, all its weights
# are equal, and the most frequent word wins. When the head writes, its newest token is always in that situation. Training finds
# this cheat by itself, as notebook [[one_token_at_a_time]] shows.
#
# ## 2 · The causal mask
#
# A token may use itself and what stands before it, and nothing that comes later. A **mask** says so. It is a boolean array
# $(n_q, n_k)$, with a row for each query and a column for each key. **In this series True means: may attend.**

# %% tags=["slide-code"] says="Where the mask"
mask = al.causal_mask(4)  # (n_q, n_k)
print(mask.astype(int))

# %% [markdown]
# Where the mask is False, the scaled score becomes $-\infty$ before the softmax. Because $e^{-\infty} = 0$, the weight there is
# exactly 0, and the rest of the row still sums to 1. Here is the sentence behind this mask:

# %%
scaled = Q @ K.T / np.sqrt(3)  # (n_q, n_k)
blocked = np.where(mask, scaled, -np.inf)
weights = al.softmax(blocked)
output = weights @ V  # (n_q, d_v): who, verb
for word, row, (who, verb) in zip(WORDS, weights, output):
    print(f"{word:4} weights {row}   who {who:.3f}  verb {verb:.3f}")
print("she plus what she takes:", SENTENCE.x[3] + output[3] @ W_O)
core = al.scaled_dot_product_attention(Q, K, V, is_causal=True)
print(f"largest difference to attnlib: {np.abs(output - core).max():.12f}")

# %% [markdown]
# *She* stands last and may look everywhere, so her row did not change. What she takes is added, and she still
# learns who she is: 0.885. *Anna* sees only herself, so she takes her own value. Early rows of a causal map look sharp partly
# because they have few keys.
#
# **`tril` or `triu`?** If True means *may attend*, the causal mask is the lower triangle, `np.tril`. If True means *blocked*, it
# is the upper triangle without the diagonal, `np.triu(..., k=1)`.

# %% [markdown] tags=["predict"]
# Now put the head that looks ahead behind a causal mask. **Predict.** The only large score of each row is hidden. What are the
# weights of row 2, the third token?

# %% tags=["slide"] says="But now every position"
hidden = look_ahead(text, is_causal=True)
print("row 2:", *hidden.weights[2, :5].round(2), "...")
print(f"{count_right(text, is_causal=True)} of {len(text) - 1} next words are right")
print("it writes:", write(is_causal=True))

# %% [markdown]
# The scores that are left are all 0, so the third token mixes three words equally. The head names the most frequent word so
# far, and among equally frequent words the first in the alphabet. That is right twice, by luck. It writes the same nonsense as
# before, because its newest token never had a future to look at. But now every position answers without its target, as in
# writing.

# %% [markdown] tags=["predict"]
# ## Break it · Zero after the softmax
#
# **Predict.** Somebody sets the blocked *weights* to 0 after the softmax instead. What do the rows of a causal map sum to?
#
# - **a** all to 1, as before
# - **b** to less than 1, except the last row
# - **c** all to 0

# %%
guess_zero = None  # "a", "b" or "c"

# %%
zeroed = al.softmax(scaled) * mask  # (n_q, n_k)
print("-inf before softmax, row sums:", weights.sum(axis=-1))
print("zero after softmax, row sums: ", zeroed.sum(axis=-1))

# %%
predict.zero_after(guess_zero)

# %% [markdown]
# The blocked keys have already taken their share, and *Anna* keeps only 0.24. Worse, that 0.24 still depends on the future,
# because the softmax divided by a sum over all keys.
#
# ## 3 · The causality poke
#
# You need not read a layer to know whether it sees the future. Poke it: put another token in the place of one, and watch which
# outputs move. `poked` does so with each token in turn. The new token is random, so that no two keys get equal scores.


# %%
def poked(attend, x):
    new = np.random.default_rng(0).normal(size=x.shape[-1])  # a token at random
    moved = []
    for token in range(len(x)):
        changed = np.where(np.arange(len(x))[:, None] == token, new, x)  # (n, d_in)
        moved.append(np.abs(attend(changed) - attend(x)).max(axis=-1))
    return np.stack(moved)  # (token changed, output)


# %%
def project(x):
    return x @ SENTENCE.W_Q, x @ SENTENCE.W_K, x @ SENTENCE.W_V


def attend(x, is_causal=False):
    return al.scaled_dot_product_attention(*project(x), is_causal=is_causal)


def zero_after(x):
    q, k, v = project(x)
    return al.softmax(q @ k.T / np.sqrt(3)) * al.causal_mask(4) @ v


# %% jupyter={"source_hidden": true}
def draw_pokes(pokes):
    _, axes = plot.subplots(
        1, len(pokes), figsize=(2.35 * len(pokes), 2.7), squeeze=False
    )
    labels = {"queries": WORDS, "keys": WORDS, "vmax": 2, "colorbar": False}
    for ax, (title, moved) in zip(axes[0], pokes.items()):
        _ = plot.attention_heatmap(moved, title=title, ax=ax, **labels)
        _ = ax.set_xlabel("output that moves", color=INK, bbox=None)
        _ = ax.set_ylabel("token changed", color=INK, bbox=None)


# %% tags=["slide"] says="Poke it"
moved = {"no mask": poked(attend, SENTENCE.x)}
moved["causal mask"] = poked(lambda x: attend(x, is_causal=True), SENTENCE.x)
moved["zero after softmax"] = poked(zero_after, SENTENCE.x)
draw_pokes(moved)

# %% [markdown]
# It is turned round compared with the mask: a row is the token that was changed. Without a mask all outputs move. Behind the
# causal mask a changed *Ben* moves only *Ben* and *she*, and the cells below the diagonal are exactly 0. With zeros after the
# softmax they are not: the future leaks.
#
# ### A mask for your module
#
# In exercise [[SelfAttention]] you wrote a class of one head. Here it gets a mask, yours if you kept it. Its three layers stay, and `forward` is
# written anew. `masked_fill` puts a number where its own mask is True, so it wants what is **blocked**: `~attn_mask`.

# %% jupyter={"source_hidden": true}
try:
    import torch
    from torch.nn import functional as F

    from attnlib import torch_layers

    _ = torch.set_num_threads(1)
except ImportError:
    torch = None
    print("torch is not installed: its cells do nothing. Fix: pip install torch")

# %%
if torch is not None:
    SelfAttention = mine.load("SelfAttention")

    class Masked(SelfAttention):
        def forward(self, x, attn_mask):
            scores = self.W_Q(x) @ self.W_K(x).mT / self.W_Q.out_features**0.5
            blocked = scores.masked_fill(~attn_mask, -torch.inf)  # the new line
            weights = blocked.softmax(dim=-1)
            return weights @ self.W_V(x), weights


# %%
if torch is not None:
    _ = torch.manual_seed(0)
    head, behind = Masked(6, 3, 2).double(), torch.tensor(al.causal_mask(4))
    moved = poked(
        lambda x: head(torch.tensor(x), behind)[0].detach().numpy(), SENTENCE.x
    )
    print("moves before the change at most", np.tril(moved, -1).max())
    print("moves at and after it at least ", moved[np.triu_indices(4)].min().round(4))

# %% [markdown]
# Nothing leaks. Notebook [[multi_head]] cuts your class into heads, and [[MultiHeadAttention]] gives it a mask for good.
#
# ## 4 · Queries that continue a sequence
#
# A model that writes can keep the keys and values of earlier words. Then only the newest word asks, here *she*: $n_q = 1$ and
# $n_k = 4$. A mask $(1, 4)$ can be the first row of the square mask (**upper left**) or its last (**lower right**). With two
# queries it looks like this:

# %% jupyter={"source_hidden": true}
ax = plot.attention_heatmap(
    weights, queries=WORDS, keys=WORDS, attn_mask=mask, colorbar=False
)
told = "upper left:\nAnna and saw\nbegin", "lower right:\nBen and she\ncontinue"
for first, style, beside in ((0, "--", told[0]), (2, "-", told[1])):
    for colour, lw, ls in (("white", 6, "-"), ("black", 3, style)):
        look = {"fill": False, "ec": colour, "lw": lw, "ls": ls}
        _ = ax.add_patch(Rectangle((-0.46, first - 0.46), 3.92, 1.92, **look))
    _ = ax.text(3.7, first + 0.5, beside, va="center")
_ = ax.set_title("two masks (2, 4) in the square one")

# %% [markdown]
# *She* needs the lower right: she is the last of four and may look at all. The upper left would treat her as the first word.
# attnlib asks which one you mean:

# %%
print("lower_right:", al.causal_mask(1, 4, align="lower_right").astype(int))
print("upper_left: ", al.causal_mask(1, 4, align="upper_left").astype(int))
try:
    al.causal_mask(1, 4)
except al.ShapeError as error:
    print(wrapped(str(error), 76))

# %% [markdown]
# Let only two words ask. They must get what they got in the whole sentence.

# %%
for name, part in (("last", slice(2, 4)), ("first", slice(0, 2))):
    print(f"the {name} two words ask:")
    for align in ("lower_right", "upper_left"):
        corner = al.causal_mask(2, 4, align=align)  # (n_q, n_k)
        two = al.scaled_dot_product_attention(Q[part], K, V, corner)  # (n_q, d_v)
        print(f"  {align:<11} differs by {np.abs(two - output[part]).max():.4f}")

# %% [markdown]
# Queries that **continue** a sequence need the lower right. Queries that **begin** one need the upper left, as the first block
# of a long text does; a middle block needs its own rows of the mask. A test with square masks sees no difference. torch has
# both ([`torch.nn.attention.bias`](../REFERENCES.md#torch-causal)). But `is_causal=True` of its `scaled_dot_product_attention`
# silently takes the upper left, which is wrong for a model that writes token by token ([a thread](../REFERENCES.md#threads)).
#
# **Is the causal mask needed at inference**, when a trained model writes? One new query does not need it, because its row is
# all True. A prompt, the text to be continued, is read in one pass and does need it. In training no word saw a later one. With
# a view of the future its words give the next layer vectors that the model never met. Notebook [[it_speaks]] shows what it writes then.
#
# ## 5 · The padding mask
#
# The texts of a batch differ in length, so short texts are padded. A padding mask hides the padded
# **keys** from every query of their text. That gives the shape $(b, 1, n_k)$. NumPy and torch
# line up axes from the end and repeat an axis of size 1 (*broadcasting*). Here our sentence shares a batch with *Ben saw*:

# %%
padding = al.padding_mask([4, 2], 4)  # lengths, n_k: (b, 1, n_k)
print(padding.shape)

# %% [markdown]
# Drawn as the weights that equal scores would get:

# %% jupyter={"source_hidden": true} tags=["slide"] says="A padding mask hides"
texts = WORDS, ("Ben", "saw", "pad", "pad")
_, axes = plot.subplots(2, 2, figsize=(5.6, 4))
for (strip, full), labels, may in zip(axes, texts, padding):
    row = al.softmax(np.where(may, 0.0, -np.inf))  # (1, n_k)
    for ax, shape, queries in ((strip, (1, 4), ["all"]), (full, (4, 4), labels)):
        wide, drawn = np.broadcast_to(row, shape), np.broadcast_to(may, shape)
        labelled = {"queries": queries, "keys": labels, "attn_mask": drawn}
        _ = plot.attention_heatmap(wide, **labelled, colorbar=False, ax=ax)
_ = axes[0, 0].set(title="(b, 1, n_k)", xlabel="")
_ = axes[0, 1].set(title="spread over (b, n_q, n_k)", xlabel="", ylabel="")
_ = axes[1, 1].set(ylabel="")

# %% [markdown]
# Rows 2 and 3 of the second text are the queries of padding. What they return means nothing, and the loss must leave it out. Do
# not hide these rows as well: section 9 shows the trouble.
#
# Several masks combine by logical AND: a query may attend where **all** of them allow it.

# %%
both = al.combine_masks(padding, al.causal_mask(4))  # (b, n_q, n_k)
print("Ben saw, both masks:", *both[1].astype(int), sep="\n")

# %% [markdown]
# The poke works here as well. Change a padded key, and no real output may move:

# %%
x = np.stack([SENTENCE.x, SENTENCE.x[[2, 1, 1, 1]]])  # (b, n, d_in)
x[1, 2:] = 0  # text 1: Ben saw pad pad
changed = x.copy()
changed[1, 2:] += 100
before = al.scaled_dot_product_attention(*project(x), padding)
after = al.scaled_dot_product_attention(*project(changed), padding)
print("outputs of Ben and saw move by", np.abs(after - before)[1, :2].max())

# %% [markdown] tags=["predict"]
# ## 6 · The mask of a tokenizer
#
# The program that cuts a text into tokens, the *tokenizer*, gives its padding mask as $(b, n_k)$, one row for each text. Hugging
# Face calls it [`attention_mask`](../REFERENCES.md#hf-attention-mask): 1 is a token, 0 is padding. Scores are $(b, n_q, n_k)$. Take four texts of four tokens each: the four beginnings of our sentence, padded. **Predict.**
# You pass this mask as it is. What happens?
#
# - **a** an error
# - **b** each text gets its own padding
# - **c** no error, and a wrong output

# %%
guess_sizes = None  # "a", "b" or "c"

# %%
x = np.stack([SENTENCE.x] * 4)  # (b, n, d_in): words beyond a length are padding
flat = np.arange(4) < np.array([[1], [2], [3], [4]])  # (b, n_k): lengths 1 to 4
wrong = al.scaled_dot_product_attention(*project(x), flat)  # read as (n_q, n_k)
right = al.scaled_dot_product_attention(*project(x), flat[:, None, :])  # (b, 1, n_k)
print(f"no error; the output differs by {np.abs(wrong - right).max():.2f}")

# %%
predict.equal_sizes(guess_sizes)

# %% [markdown]
# A mask with two axes of the right sizes is read as $(n_q, n_k)$. With the lengths 1 to 4 it is the causal mask, and the
# result looks sensible. So never test with as many texts as tokens. Where the sizes differ, attnlib refuses to guess:

# %%
try:
    al.scaled_dot_product_attention(*project(x[:3]), flat[:3])  # b = 3, n = 4
except al.ShapeError as error:
    print(wrapped(str(error), 76))

# %% [markdown]
# torch's layer `nn.MultiheadAttention` has an argument of its own for such a mask, **`key_padding_mask`**, $(b, n_k)$. But there
# **True means padding**, the opposite of Hugging Face's 1.

# %%
if torch is not None:
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(6, 1, batch_first=True)  # one head
    attention_mask = torch.tensor(flat.astype(int))  # as a tokenizer gives it: 1 or 0
    inputs, ignore = torch.tensor(x).float(), attention_mask == 0  # True = padding
    of_each_text = ignore[:, None].expand(4, 4, 4)  # (b, n_q, n_k)
    expected, _ = layer(inputs, inputs, inputs, attn_mask=of_each_text)
    for name in ("key_padding_mask", "attn_mask"):
        result, _ = layer(inputs, inputs, inputs, **{name: ignore})
        print(f"{name:<16} (b, n_k): off by {(result - expected).abs().max():.4f}")

# %% [markdown]
# As `key_padding_mask` the array is right. As `attn_mask` it is read as $(n_q, n_k)$, and nothing complains.
#
# ## 7 · Cross-attention: queries from elsewhere
#
# Queries may come from another text than keys and values. This is **cross-attention**, and the formula stays the same. Here
# *she* begins a second text and looks into the first, *Anna saw Ben*:

# %%
q = project(SENTENCE.x[3:])[0]  # (n_q, d_k): she asks
_, k, v = project(SENTENCE.x[:3])  # (n_k, d_k), (n_k, d_v): Anna saw Ben
cross = al.attention_trace(q, k, v)
print("weights", cross.weights.shape, cross.weights)
print("output ", cross.output.shape, cross.output)


# %% jupyter={"source_hidden": true}
def draw_word(ax, at, word, **roles):  # a word, and what it has in their colours
    _ = ax.text(*at, word, ha="center", va="center", bbox=box)
    for k, (role, colour) in enumerate(roles.items()):
        place = (
            at[0] + (k - len(roles) / 2 + 0.5) * 0.34,
            at[1] + (0.28 if at[1] else -0.28),
        )
        _ = ax.text(*place, role, color=colour, ha="center", va="center")


# %% jupyter={"source_hidden": true} tags=["slide"] says="One query, three keys"
_, ax = plot.subplots(figsize=(6.4, 2.9))
for i, (word, weight) in enumerate(zip(WORDS, cross.weights[0])):
    _ = ax.plot([1, i], [0.8, 0.22], color=VALUE, lw=12 * weight, solid_capstyle="butt")
    x = 0.4 + 0.6 * i + (0.05 if i == 1 else 0.23)  # right of its line
    _ = ax.text(x, 0.46, f"{weight:.2f}", ha="left", va="center")
    draw_word(ax, (i, 0), word, key=KEY, value=VALUE)
draw_word(ax, (1, 1), "she", query=QUERY)
_ = ax.text(-1, 1, "asks", ha="center", va="center")
_ = ax.text(-1, 0, "is read", ha="center", va="center")
_ = ax.set(xlim=(-1.4, 2.5), ylim=(-0.45, 1.45))
_ = ax.set_title("the query meets keys of another text, and values come back")
_ = ax.set_axis_off()

# %% [markdown]
# One query, three keys, and *she* finds Anna again, with 0.73, because *she* is no longer among the keys. No causal mask is needed, because the first text was complete before *she*
# asked.
#
# **Could the values come from the text that asks?** No. Weight $j$ says how much to take of token $j$ of the text that is
# read, so value $j$ must belong to the same token ([thread](../REFERENCES.md#asked)). In a translator the *encoder* reads and
# the *decoder* writes, and keys and values both come from the encoder ([Vaswani et al. 2017](../REFERENCES.md#vaswani-2017)).
#
# ## 8 · Polarity: what does True mean?
#
# | who | boolean mask says |
# |---|---|
# | attnlib, torch's [`scaled_dot_product_attention`](../REFERENCES.md#torch-sdpa), [flax, ONNX](../REFERENCES.md#onnx) | True = may attend |
# | [`nn.MultiheadAttention`](../REFERENCES.md#torch-mha): `attn_mask` | True = **blocked** |
# | the same: `key_padding_mask`, $(b, n_k)$ | True = **padding**, blocked for all queries |
# | Hugging Face's `attention_mask`, $(b, n_k)$ | 1 = token, **0 = padding**, as integers |
# | many tutorials (`masked_fill(mask == 0, ...)`) | 1 = may attend, 0 = blocked, as integers |
#
# Two conventions live in one library. A mask in the wrong one has the right shape and raises nothing. Published code contained
# that mistake ([threads](../REFERENCES.md#threads)).
#
# There is a third kind: a mask of floats is *added* to the scaled scores. attnlib takes booleans or floats, and refuses
# integers, which may mean either. Three functions translate:

# %%
print("to_blocked:       ", al.to_blocked(al.causal_mask(3))[1])  # row 1
print("to_additive:      ", al.to_additive(al.causal_mask(3))[1])  # row 1
print("from_zero_blocked:", al.from_zero_blocked(np.array([1, 1, 0])))
try:
    al.scaled_dot_product_attention(Q, K, V, np.tril(np.ones((4, 4), dtype=int)))
except TypeError as error:
    print(wrapped(str(error), 76))

# %% [markdown]
# Here is the causal mask with inverted polarity. `fully_masked` marks the queries that may look nowhere:

# %%
inverted = al.attention_trace(Q, K, V, al.to_blocked(mask))
print("fully masked:", inverted.fully_masked)

# %% jupyter={"source_hidden": true}
ax = plot.attention_heatmap(
    inverted.weights,
    queries=WORDS,
    keys=WORDS,
    attn_mask=inverted.attn_mask,
    title="inverted: only the future",
)

# %% [markdown]
# ## 9 · The row that may look nowhere
#
# Behind the inverted mask *she* has no key left. Her softmax would be $0/0$. Such a row is **fully masked**, or dead. Correct
# code has such rows, too: padding that is also hidden as a query, and the first rows of a text padded on the left behind a
# causal mask. attnlib makes its weights and its output exactly 0. Not everybody does. Here are ten random tokens, so that
# equal weights are 0.1. Query 1 may look nowhere:

# %% jupyter={"source_hidden": true}
if torch is not None:
    torch.manual_seed(0)
    x = torch.randn(1, 10, 4)  # (b, n, d)
    allowed = torch.ones(10, 10, dtype=torch.bool)
    allowed[1] = False  # query 1 may look nowhere
    scores = x @ x.transpose(-1, -2) / 2
    mha = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    _, mha_weights = mha(x, x, x, attn_mask=~allowed)

# %% jupyter={"source_hidden": true}
if torch is not None:
    fused = F.scaled_dot_product_attention
    dead_rows = {
        "attnlib": torch_layers.attention_trace(x, x, x, allowed).weights,
        "torch scaled_dot_product_attention": fused(x, x, torch.eye(10)[None], allowed),
        "nn.MultiheadAttention": mha_weights,
    }

# %%
if torch is not None:
    for fill in (-torch.inf, -1e20):
        weights = scores.masked_fill(~allowed, fill).softmax(dim=-1)
        dead_rows[f"masked_fill with {fill:g}, softmax"] = weights
    for name, result in dead_rows.items():  # values torch.eye return the weights
        print(f"{name:<36}", [round(w, 4) for w in result[0, 1, :4].tolist()])

# %% [markdown]
# Of 0, NaN and 0.1, the 0.1 is the most dangerous. With -1e20, all ten forbidden keys get equal weight, and
# nothing looks wrong. What a NaN does in training is case 14 of the [casebook]([[casebook.ipynb]]).

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# This is torch 2.13, the version of this series. In `nn.MultiheadAttention` the answer even depends on whether you ask for the
# weights: with `need_weights=False` the dead row is not NaN. Worse happened to a layer of Keras: who asked for its weights
# lost the causal mask. Looking removed the mask ([casebook]([[casebook.ipynb]]), case 29).
#
# </details>

# %% [markdown] tags=["predict"]
# ## See it · Both masks at once
#
# Six random tokens (random, so that $d_k$ can grow), of which the first `length` are real. **Predict.** With both masks and 2
# real tokens, how many of the 36 pairs may attend? As $d_k$ moves, which row keeps its weights?

# %%
both_masks = live.masks(n=6)
both_masks

# %% [markdown]
# <details><summary>Answer</summary>
#
# 11 pairs: 1 in row 0, and 2 in each of the other five. Row 0 keeps its weight at every $d_k$, because a softmax over one key is
# 1 whatever the score. At length 0 every row is dead.
#
# </details>

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, then run it and the cell below it. The verdict names the mistake if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Masks are boolean, **True = may attend**. Use NumPy only. [[padding_mask]] and [[causal_mask]] ask for a line or two, [[masked_softmax]] and [[masked_attention]] for a function. [[sparse_masks]] is a
# design, and many answers are right.

# %% [markdown] tags=["exercise"]
# ### Exercise [[padding_mask]] · The padding mask
#
# **Goal.** Complete the line that hides padded keys. *4 minutes, easy.*
#
# `my_padding_mask(lengths, n_k)`: `lengths` is an array $(b,)$, the result is $(b, 1, n_k)$ of bool. `array[:, None]` puts
# an axis of size 1 behind the first.


# %%
def my_padding_mask(lengths, n_k):
    return ...  # complete: np.arange(n_k) < lengths[?], (b, 1, n_k)


# %%
verdict = check.padding_mask(my_padding_mask)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_padding_mask(lengths, n_k):
#     return np.arange(n_k) < lengths[:, None, None]  # (b, 1, n_k)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[causal_mask]] · The causal mask
#
# **Goal.** Complete the mask that hides the future, in training and in writing. *6 minutes, medium.*
#
# `my_causal_mask(n_q, n_k=None)` returns $(n_q, n_k)$ of bool. The queries are the **last** `n_q` tokens of a sequence of
# `n_k` (lower right). Each may attend to itself and to all tokens before it. `n_k` defaults to `n_q`, the whole sequence.


# %%
def my_causal_mask(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return ...  # your code: at which position of the sequence does each query stand?


# %%
verdict = check.causal_mask(my_causal_mask)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_causal_mask(n_q, n_k=None):
#     n_k = n_q if n_k is None else n_k
#     position = np.arange(n_k - n_q, n_k)[:, None]  # of each query in the sequence
#     return np.arange(n_k) <= position
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[masked_softmax]] · Masked softmax
#
# **Goal.** Give your softmax of exercise [[softmax]] a mask. *9 minutes, medium.*
#
# `my_masked_softmax(scores, attn_mask=None)` works over the last axis. A blocked key gets weight 0. A row that may attend to
# nothing gives zeros: a softmax as in [[softmax]] makes NaN of it, ours does not. Scores near $10^4$ are tried, too, allowed ones and blocked ones. The
# first line loads your `my_softmax`, if you kept it, or ours.

# %%
softmax = mine.load("softmax")


def my_masked_softmax(scores, attn_mask=None):
    return ...  # your code: what does softmax get?


# %%
verdict = check.masked_softmax(my_masked_softmax)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# softmax = mine.load("softmax")
#
#
# def my_masked_softmax(scores, attn_mask=None):
#     if attn_mask is None:
#         return softmax(scores)
#     has_key = attn_mask.any(axis=-1, keepdims=True)  # (..., n_q, 1)
#     weights = softmax(np.where(attn_mask | ~has_key, scores, -np.inf))  # no row of -inf alone
#     return np.where(has_key, weights, 0)
# ```
#
# </details>

# %%
mine.keep(my_masked_softmax)

# %% [markdown] tags=["exercise"]
# ### Exercise [[masked_attention]] · Attention with a mask
#
# **Goal.** Give your attention of notebook [[vectorized]] a mask. *6 minutes, medium.*
#
# `my_masked_attention(query, key, value, attn_mask=None)` returns $(..., n_q, d_v)$. The mask is $(n_q, n_k)$, or has axes in
# front. One mask $(n_q, n_k)$ may serve several heads, $(h, n_q, d_k)$. A query that may attend to nothing gets zeros. Without a
# mask your function of [[scaled_dot_product_attention]] does the work. With one, write its steps out, and use your masked softmax.

# %%
plain, masked_softmax = mine.load("plain_attention"), mine.load("masked_softmax")


def my_masked_attention(query, key, value, attn_mask=None):
    if attn_mask is None:
        return plain(query, key, value)
    return ...  # your code


# %%
verdict = check.masked_attention(my_masked_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# plain, masked_softmax = mine.load("plain_attention"), mine.load("masked_softmax")
#
#
# def my_masked_attention(query, key, value, attn_mask=None):
#     if attn_mask is None:
#         return plain(query, key, value)
#     scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])  # (..., n_q, n_k)
#     return masked_softmax(scaled, attn_mask) @ value  # (..., n_q, d_v)
# ```
#
# </details>

# %% [markdown]
# Notebook [[multi_head]] builds its heads on this function, and in [[it_speaks]] a language model calls it. The next cell keeps it in the folder
# `mine`, and shows what has changed since [[scaled_dot_product_attention]].

# %%
mine.keep(my_masked_attention)

# %% [markdown] tags=["exercise"]
# ### Exercise [[sparse_masks]] · Design: few keys, far sight
#
# **Goal.** Let all tokens reach the last one, though no query may look at more than three keys. *12 minutes, hard.*
#
# In a long text it is too expensive to let each query look at everything. Two layers of attention help. What a token has taken in
# layer 1 is in its vector when layer 2 looks at it. So token j **reaches** the last token if the last query looks, in layer 2, at
# a token that has looked at j in layer 1. (Here a layer replaces a vector and adds nothing to it: a token keeps what it was only
# if it looks at itself.)
#
# Design both masks for 8 tokens, `my_masks` of shape $(2, 8, 8)$: `my_masks[0]` for layer 1, `my_masks[1]` for layer 2. In each
# layer each query looks at 1 to **3** keys, none of them later than itself. All 8 tokens must reach the last one.

# %%
my_masks = None  # (2, 8, 8) of bool: np.stack([layer_1, layer_2])

# %%
verdict = check.sparse_masks(my_masks)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# back = np.arange(8)[:, None] - np.arange(8)  # (n_q, n_k): how far each key lies behind each query
# near = (back >= 0) & (back < 3)  # itself and the two before it
# far = np.isin(back, (0, 3, 6))  # itself, three back and six back
# my_masks = np.stack([near, far])  # 7 looks at 7, 4 and 1, which have seen 5 to 7, 2 to 4, 0 and 1
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Write a mask of four tokens that lets each query see itself and the token before it (a sliding window). Use it in `poked`:
#    which outputs may move when *saw* changes?
# 2. A window of 3, over 8 tokens, shows each query itself and the two before it. Combine it with `padding_mask([length], 8)`. Up to
#    which length is there a dead row?
#
# <details><summary>Answers</summary>
#
# 1: outputs 1 and 2. 2: up to 5, because row 7 looks at 5, 6 and 7.
#
# </details>
#
# **Remember.** True = may attend. Block with $-\infty$ before the softmax. Padding hides keys, so its mask needs a query axis:
# $(b, 1, n_k)$. Queries that continue a sequence need the lower right. Test a mask by poking what it should hide. Next:
# [[[multi_head]] multi-head]([[multi_head.ipynb]]).

# %% [markdown]
# # 06 · Multi-head attention
#
# **Question.** Why split attention into several heads, and how are they computed at once without a loop?
# *45 minutes. This notebook needs torch.*
#
# | symbol | meaning |
# |---|---|
# | $d_{model}$, `embed_dim` | features of a token |
# | $h$, `num_heads` | number of heads |
# | $d_k = d_{model} / h$ | features of a query and of a key in one head |

# %%
from copy import deepcopy

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import BY_HAND
from attnlib.torch_layers import MultiHeadAttention

_ = torch.set_num_threads(1)

# %% [markdown]
# ## 1 · Why more than one head
#
# A head gives each query **one** row of weights. If a query needs two things from two places, one row must mix them.
# A task that needs two: name the token before and the token after, for every position of a ring of 10 tokens. The names
# are read off the output by one linear layer.

# %%
N_TOKENS, T, D = 10, 10, 32


class Neighbours(nn.Module):
    def __init__(self, num_heads, read):
        super().__init__()
        self.token, self.position = nn.Embedding(N_TOKENS, D), nn.Embedding(T, D)
        self.attention, self.read = MultiHeadAttention(D, num_heads, bias=False), read()

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight  # (b, T, D)
        output, weights = self.attention(x)  # (b, T, D), (b, h, T, T)
        return self.read(output).unflatten(-1, (2, N_TOKENS)), weights


# %%
def batch(size, generator):
    tokens = torch.randint(N_TOKENS, (size, T), generator=generator)  # (b, T)
    before, after = tokens.roll(1, dims=1), tokens.roll(-1, dims=1)
    return tokens, torch.stack([before, after], dim=-1)


# %%
def linear():
    return nn.Linear(D, 2 * N_TOKENS)


# %%
def train(num_heads, read=linear, seed=0):
    torch.manual_seed(seed)
    model, generator = Neighbours(num_heads, read), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in live.progress(range(600), f"{num_heads} head(s), seed {seed}"):
        tokens, target = batch(128, generator)
        logits, _ = model(tokens)
        loss = nn.functional.cross_entropy(logits.flatten(0, 2), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


# %% [markdown]
# **Predict.** One head or two heads with half the features each, and the same number of parameters. Which learns it?
#
# - **a** the one large head
# - **b** the two small heads
# - **c** both: the parameters are equally many

# %%
guess_heads = None  # "a", "b" or "c"

# %%
models = {h: train(h) for h in (1, 2)}

# %%
tokens, target = batch(1000, torch.Generator().manual_seed(1))


def look(model):
    with torch.no_grad():
        logits, weights = model(tokens)
    right = logits.argmax(-1) == target  # (b, T, 2)
    before, after = right.float().mean((0, 1)).tolist()
    both = right.all(-1).float().mean().item()
    told = f"both right {both:.2f}, before {before:.2f}, after {after:.2f}"
    return told, weights  # (b, h, T, T)


# %% tags=["nbval-ignore-output"]
maps = {}
for h, model in models.items():
    told, maps[h] = look(model)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{h} head(s), {parameters} parameters: {told}")

# %%
predict.two_heads(guess_heads)

# %%
mean_maps = torch.cat([maps[1].mean(0), maps[2].mean(0)])  # (1 + 2, T, T)
titles = ["the one head", "head 1 of 2", "head 2 of 2"]
figure = plot.head_grid(mean_maps, titles=titles)

# %% tags=["nbval-ignore-output"]
i = torch.arange(T)
for name, w in zip(titles, mean_maps):
    on_before, on_after = w[i, (i - 1) % T].mean(), w[i, (i + 1) % T].mean()
    print(f"{name}: {on_before:.2f} on the token before, {on_after:.2f} after")

# %% [markdown]
# One head shares its weight between both neighbours, and gets one mixture. The linear layer names one of the two well and
# the other seldom. Two heads take one neighbour each.
#
# Is it the head that fails, or the linear layer? Give the one head a read-out with a hidden layer.
# **Predict.** Does it learn?


# %%
def with_hidden_layer():
    return nn.Sequential(nn.Linear(D, 128), nn.ReLU(), nn.Linear(128, 2 * N_TOKENS))


# %%
def two_shares(w):  # of each query, the larger first
    pair = torch.stack([w[:, 0, i, (i - 1) % T], w[:, 0, i, (i + 1) % T]])
    return f"shares {pair.amax(0).mean():.2f} and {pair.amin(0).mean():.2f}"


# %% tags=["nbval-ignore-output"]
print(f"linear read-out, seed 0: {two_shares(maps[1])}")
for seed in (0, 1):
    told, w = look(train(1, with_hidden_layer, seed))
    print(f"hidden layer,    seed {seed}: {two_shares(w)}, {told}")

# %% [markdown]
# It does: 0.89 with seed 0, 1.00 with seed 1. If both shares were equal, the mixture would be the same with the neighbours
# exchanged. Now they differ, and from that the hidden layer can tell which came first. So what failed was not one head, but
# one head with a *linear* read-out. Two heads put what they find into separate features, where it is cheap to read.
#
# The same two heads, set by hand instead of trained: four tokens in a ring, whose keys and values say where they stand.
# A query of head 0 is the place before its token, a query of head 1 the place after it.

# %%
place = np.eye(4)  # (n, 4): where a token stands
ask = 8 * np.stack([np.roll(place, -1, axis=1), np.roll(place, 1, axis=1)])  # (h, n, 4)
place = place[None, None]  # (1, 1, n, 4): keys and values, the same for both heads
trace = al.attention_trace(ask[None], place, place)
two_heads = live.flow(trace, queries="abcd", query=2, key=1, feature=1)
two_heads

# %% [markdown]
# **Try.** Move *head*. The query changes, and with it the row of weights and what the output holds: two questions, two
# rows of weights.
#
# ## 2 · Split and merge
#
# All heads are computed with one large projection, whose features are then cut into $h$ pieces of $d_k = d_{model}/h$.
# The head axis must come before the token axis, so that `@` treats heads like a batch:
#
# $$(n, d_{model}) \;\to\; (n, h, d_k) \;\to\; (h, n, d_k).$$

# %%
# (n, d_model): token, feature
x = np.array([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
heads = al.split_heads(x, 2)  # (h, n, d_k)
print(x.shape, "->", x.reshape(3, 2, 2).shape, "->", heads.shape)
print("head 0 has features 1, 2 of every token:\n", heads[0])
print("merge undoes split:", np.array_equal(al.merge_heads(heads), x))

# %% [markdown]
# ## Break it · The reshape that looks right
#
# **Predict.** Somebody reshapes $(3, 4)$ straight to $(2, 3, 2)$. The shape is right. What is in head 0?
#
# - **a** features 1, 2 of every token
# - **b** all features of token 1, and half of token 2
# - **c** nothing: it raises an error

# %%
guess_reshape = None  # "a", "b" or "c"

# %%
print(x.reshape(2, 3, 2)[0])

# %%
predict.reshape(guess_reshape)

# %% [markdown]
# Features of token 1 and half of token 2, as if they were three tokens. Nothing fails, and positions are mixed up. In a
# causal model this leaks the future.
#
# ## 3 · The whole layer in NumPy
#
# Project, split, attend in each head, merge, and a last projection $W_O$:


# %%
def multi_head(x, W_Q, W_K, W_V, W_O, num_heads):
    # (..., h, n, d_k)
    q, k, v = (al.split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    trace = al.attention_trace(q, k, v)  # scale 1/sqrt(d_k), d_k of one head
    # (..., n, d_model), (..., h, n, n)
    return al.merge_heads(trace.output) @ W_O, trace.weights


rng = np.random.default_rng(0)
x, mha = rng.normal(size=(5, 12)), al.MultiHeadAttention(12, 3, bias=False, rng=rng)
output, weights = multi_head(x, mha.W_Q, mha.W_K, mha.W_V, mha.W_O, num_heads=3)
equal = np.allclose(output, mha(x)[0], atol=1e-12)
print(output.shape, weights.shape, " equal to al.MultiHeadAttention:", equal)

# %% [markdown]
# The merged heads stand side by side: features 0 to 3 come from head 0, and so on. $W_O$ lets the heads' results mix.
# Without it, no output feature could use two heads.
#
# With one head, $W_O$ the identity and the matrices of notebook 01, the numbers of notebook 01 come back:

# %%
example, W_Q, W_K, W_V = BY_HAND
one, _ = multi_head(example, W_Q, W_K, W_V, np.eye(3), num_heads=1)
print(one.round(6))

# %% [markdown]
# ## 4 · How many parameters?
#
# Four matrices of $d_{model} \times d_{model}$, whatever the number of heads:

# %%
for h in (1, 8, 64):
    layer = MultiHeadAttention(512, h, bias=False)
    count = sum(p.numel() for p in layer.parameters())
    print(f"d_model 512, h = {h:2d}: d_k = {layer.d_k:3d}, {count} parameters")
print("8 single heads, 3 matrices of 512 x 64 each:", 8 * 3 * 512 * 64, end="  ")
print("plus W_O:", 512 * 512)

# %% [markdown]
# ## 5 · The same as `nn.MultiheadAttention`
#
# `from_torch` copies the weights of torch's module. With the same weights the outputs must agree, with and without masks.
# Mind the polarity: torch's module wants True = blocked.

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(12, 3, batch_first=True).double().eval()
ours = MultiHeadAttention.from_torch(theirs)
x = torch.randn(4, 6, 12, dtype=torch.float64)  # (b, n, d_model)
# (b, n, n), True = may attend; torch wants (b * h, n, n), True = blocked
mask = al.combine_masks(al.causal_mask(6), al.padding_mask([6, 4, 5, 3], 6))
blocked = torch.from_numpy(al.to_blocked(mask)).repeat_interleave(3, dim=0)

# %%
for name, m, b in (("no mask", None, None), ("padding and causal", mask, blocked)):
    mine, my_weights = ours(x, attn_mask=m)
    output, their_weights = theirs(x, x, x, attn_mask=b, average_attn_weights=False)
    off = max((mine - output).abs().max(), (my_weights - their_weights).abs().max())
    print(f"{name}: equal to 1e-12: {off.item() < 1e-12}")

# %%
titles = [f"head {i + 1}, length 4" for i in range(3)]
figure = plot.head_grid(my_weights[1], attn_mask=mask[1], titles=titles)

# %% [markdown]
# ## 6 · A full-size run, and what a copied class does differently
#
# Width 256, 8 heads, 32 sequences of 10 tokens:

# %%
torch.manual_seed(0)
layer, x = MultiHeadAttention(256, 8), torch.randn(32, 10, 256)
output, weights = layer(x)
print("output", tuple(output.shape), "  weights", tuple(weights.shape))

# %% [markdown]
# A class found in many tutorials ([S0](../REFERENCES.md#s0)) has the same outer shape and four differences. It projects each head's slice with one
# shared $d_k \times d_k$ matrix, divides by $\sqrt{d_{model}}$, fills blocked scores with -1e20, and takes its arguments
# in the order (values, keys, queries). Written out here, to experiment with:


# %%
class TutorialAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h, self.d_k = num_heads, embed_dim // num_heads
        self.to_v = nn.Linear(self.d_k, self.d_k, bias=False)
        self.to_k = nn.Linear(self.d_k, self.d_k, bias=False)
        self.to_q = nn.Linear(self.d_k, self.d_k, bias=False)
        self.out = nn.Linear(embed_dim, embed_dim)

    def forward(self, values, keys, query, mask=None):
        parts = (x.unflatten(-1, (self.h, self.d_k)) for x in (values, keys, query))
        v, k, q = (x.transpose(1, 2) for x in parts)  # (b, h, n, d_k) each
        v, k, q = self.to_v(v), self.to_k(k), self.to_q(q)  # one matrix for all heads
        scores = q @ k.transpose(-1, -2)  # (b, h, n, n)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e20)
        sqrt_embed_dim = (self.h * self.d_k) ** 0.5
        self.weights = (scores / sqrt_embed_dim).softmax(-1)
        return self.out((self.weights @ v).transpose(1, 2).flatten(2))


# %% [markdown]
# Its usual demonstration passes three unrelated random tensors. **Predict.** The shape is right. What do the weights look
# like?
#
# - **a** a few large ones in each row
# - **b** large on the diagonal: each token looks at itself
# - **c** all nearly equal

# %%
guess_unrelated = None  # "a", "b" or "c"

# %%
torch.manual_seed(0)
tutorial = TutorialAttention(256, 8)
with torch.no_grad():
    demo = tutorial(*(torch.rand(32, 10, 256) for _ in range(3)))
print("output", tuple(demo.shape))
print(f"weights between {tutorial.weights.min():.3f} and {tutorial.weights.max():.3f}")

# %%
predict.unrelated(guess_unrelated)

# %% [markdown]
# Ten keys, and every weight is close to 0.1: no choice is made, and since query and key come from different tensors it
# is not self-attention. A shape proves nothing. The projections are small and shared:

# %%
slices = sum(p.numel() for n, p in tutorial.named_parameters() if n.startswith("to_"))
layer = MultiHeadAttention(256, 8, bias=False)
full = sum(W.weight.numel() for W in (layer.W_Q, layer.W_K, layer.W_V))
print(f"projection parameters: {slices} instead of {full}")
tiled = torch.randn(1, 10, 32).repeat(1, 1, 8)  # the same slice eight times
with torch.no_grad():
    tutorial(tiled, tiled, tiled)
differ = (tutorial.weights - tutorial.weights[:, :1]).abs().max().item()
print("tiled input: all heads identical:", differ < 1e-6)

# %%
x = torch.randn(1, 10, 256, requires_grad=True)
tutorial(x, x, x)
tutorial.weights[0, 0].square().sum().backward()  # a loss on head 0 alone
print("gradient of head 0 inside its slice: ", x.grad[..., :32].abs().max().item() > 0)
print("gradient of head 0 outside its slice:", x.grad[..., 32:].abs().max().item())

# %% [markdown]
# A head of the tutorial class cannot see seven eighths of each token. And its argument order invites a silent mistake:

# %%
torch.manual_seed(1)
tutorial = TutorialAttention(256, 8)
generator = torch.Generator().manual_seed(1)
q, k, v = torch.randn(3, 1, 10, 256, generator=generator)
with torch.no_grad():
    right, called_as_usual = tutorial(v, k, q), tutorial(q, k, v)
off = (right - called_as_usual).abs().max()
print(f"called as (query, key, value): no error, output differs by {off:.2f}")

# %% [markdown]
# Its mask takes a padding mask $(b, n)$ without complaint when $b = n$, and reads it as (query, key):

# %%
torch.manual_seed(11)
tutorial, generator = TutorialAttention(256, 8), torch.Generator().manual_seed(11)
x = torch.rand(10, 10, 256, generator=generator)
# (b, n): sequence i has i + 1 tokens
padding = torch.arange(10) < torch.arange(1, 11)[:, None]
with torch.no_grad():
    wrong = tutorial(x, x, x, padding)
    right = tutorial(x, x, x, padding[:, None, None, :])
off = (wrong - right).abs().max()
print(f"(b, n) mask with b = n = 10: no error, output differs by {off:.2f}")

# %%
with torch.no_grad():
    tutorial(x, x, x, torch.zeros(10, 10))
least = tutorial.weights.min()
print(f"a mask of zeros: every weight is {least:.1f}, on keys that are all forbidden")
try:
    deepcopy(tutorial).half()(x.half(), x.half(), x.half(), padding)
except RuntimeError as error:
    print("float16: RuntimeError:", error)

# %% [markdown]
# ## 7 · When nobody needs the weights
#
# Weights take $h \cdot n_q \cdot n_k$ numbers. With `need_weights=False` torch's fused kernel computes the same output
# block by block and never stores them ([Dao et al. 2022](../REFERENCES.md#dao-2022)).

# %%
layer, x = MultiHeadAttention(256, 8).eval(), torch.randn(1, 500, 256)
with torch.no_grad():
    with_weights, weights = layer(x)
    fused, nothing = layer(x, need_weights=False)
print("weights:", f"{weights.numel():,} numbers", "  fused:", nothing)
print("same output:", torch.allclose(with_weights, fused, atol=1e-5))

# %% [markdown]
# `make bench` compares the speed of the two with nn.MultiheadAttention on your machine.
#
# ## 8 · See it · More heads, shorter vectors
#
# $d_{model} = 64$ stays fixed. With $h$ heads each has $d_k = 64 / h$. The maps are those of head 1, from the same
# projections. **Predict.** Which end of the slider has the peaky map, $h = 1$ or $h = 32$?

# %%
torch.manual_seed(2)
wide, tokens = MultiHeadAttention(64, 1, bias=False), torch.randn(6, 64)
q, k = wide.W_Q(tokens).detach(), wide.W_K(tokens).detach()  # (n, 64)


def first_head(num_heads):
    d_k = 64 // num_heads
    scores = q[:, :d_k] @ k[:, :d_k].T  # (n_q, n_k)
    return {
        "not scaled": scores.softmax(-1),
        "divided by sqrt(d_k)": (scores / d_k**0.5).softmax(-1),
    }


# %%
choices = [(f"{h}, so d_k = {64 // h}", h) for h in (1, 2, 4, 8, 16, 32)]
view = live.weights_view(first_head, num_heads=choices, still=(1, 8, 32))
view

# %% [markdown]
# Divided by $\sqrt{64}$ whatever $h$ is, as the tutorial class does, the maps of many heads would be flat. The scale must
# follow the head.
#
# The same kind of tokens, all heads at once. **Predict.** Do random heads look alike? Is their average (head 0) more or
# less peaky than each of them?

# %%
all_heads = live.heads(n=6, d_model=64)
all_heads

# %% [markdown]
# ## 9 · Your own sentence, and a warning
#
# Untrained heads on a sentence you type. Each word has one random vector. **Predict.** Two places hold the same word:
# do their rows differ? What does a bright cell mean here?

# %%
typed = live.sentence("The cat saw the dog, and the dog saw the cat.")
typed

# %% [markdown]
# Equal words have equal rows: without positions, attention does not know where a word stands. And a bright cell means
# nothing, since nothing was trained. A picture of attention weights is not yet an explanation
# ([Jain and Wallace 2019](../REFERENCES.md#jain-2019)).

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Signatures are those of attnlib's functions of the same name. Masks are boolean, **True = may attend**. The first three are
# NumPy, the last is torch.

# %% [markdown]
# ### Exercise 6.1 · Split
#
# **Goal.** Cut the features into heads. *6 minutes, medium.*
#
# `my_split_heads(x, num_heads)`: $(..., n, d_{model})$ gives $(..., h, n, d_k)$.


# %%
def my_split_heads(x, num_heads):
    return ...  # your code


# %%
verdict = check.split_heads(my_split_heads)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_split_heads(x, num_heads):
#     cut = x.reshape(*x.shape[:-1], num_heads, -1)  # (..., n, h, d_k)
#     return np.swapaxes(cut, -2, -3)  # (..., h, n, d_k)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 6.2 · Merge
#
# **Goal.** Undo the split. *5 minutes, medium.*
#
# `my_merge_heads(x)`: $(..., h, n, d_k)$ gives $(..., n, h \cdot d_k)$.


# %%
def my_merge_heads(x):
    return ...  # your code


# %%
verdict = check.merge_heads(my_merge_heads)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_merge_heads(x):
#     swapped = np.swapaxes(x, -2, -3)  # (..., n, h, d_k)
#     return swapped.reshape(*swapped.shape[:-2], -1)  # (..., n, h * d_k)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 6.3 · The whole layer
#
# **Goal.** Write multi-head attention in NumPy. *12 minutes, hard.*
#
# `my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None)` returns $(..., n_q, d_{model})$.
# `attn_mask` is $(n_q, n_k)$ or $(b, n_q, n_k)$, the same for all heads: in the second case it needs a head axis. You may
# use `al.split_heads`, `al.merge_heads` and `al.scaled_dot_product_attention`.


# %%
def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    return ...  # your code


# %%
verdict = check.multi_head_attention(my_multi_head)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
#     pairs = ((query, W_Q), (key, W_K), (value, W_V))
#     q, k, v = (al.split_heads(x @ W, num_heads) for x, W in pairs)  # (..., h, n, d_k)
#     if attn_mask is not None and attn_mask.ndim == 3:
#         attn_mask = attn_mask[:, None]  # (b, 1, n_q, n_k)
#     return al.merge_heads(al.scaled_dot_product_attention(q, k, v, attn_mask)) @ W_O
# ```
#
# </details>

# %% [markdown]
# ### Exercise 6.4 · The module
#
# **Goal.** Write multi-head attention as a torch module. *20 minutes, hard.*
#
# `__init__(embed_dim, num_heads)` makes four layers `nn.Linear(embed_dim, embed_dim)` called `W_Q`, `W_K`, `W_V`, `W_O`.
# `forward(query, key=None, value=None, *, attn_mask=None)` returns the output and the weights $(b, h, n_q, n_k)$. `key` defaults
# to `query`, `value` to `key`. The mask is as in 6.3. A row that may attend to nothing gives 0: `.nan_to_num()`.
# The gradient of the output must reach all four layers.


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

# %% [markdown]
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

# %% [markdown]
# ## Try it
#
# 1. Train `Neighbours` with 4 heads. What do the extra heads do?
# 2. In `multi_head`, leave out the swap in `split_heads` (use `reshape` alone) and apply the causality poke from
#    notebook 05. Which outputs move that must not?
#
# **Remember.** A head is one row of weights per query. Heads share one projection, cut by reshape **and** swap. The scale
# is $1/\sqrt{d_k}$ with the $d_k$ of one head. $W_O$ mixes the heads. The number of parameters does not depend on $h$. Next:
# [07 bug clinic](07_bug_clinic.ipynb).

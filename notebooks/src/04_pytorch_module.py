# %% [markdown]
# # 04 · Attention as a PyTorch module
#
# **Question.** So far somebody chose the matrices. How does attention become a layer whose matrices are learned, and how
# do you know that the layer is right? *35 minutes. This notebook needs torch.*

# %%
from textwrap import fill

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import BY_HAND

_ = torch.set_num_threads(1)  # tiny matrices: a second thread costs more than it brings

# %% [markdown]
# ## 1 · Four steps in `forward`
#
# An `nn.Parameter` is a tensor that the optimiser may change. The module holds three of them. `forward` does what
# notebook 02 did: project, score, softmax, mix. `X` has the shape $(..., n, d_{in})$; `.transpose(-1, -2)` counts axes from
# the end, so batches work.


# %%
class AttentionFromParameters(nn.Module):
    def __init__(self, d_in, d_k, d_v):
        super().__init__()
        self.W_Q = nn.Parameter(torch.randn(d_in, d_k))
        self.W_K = nn.Parameter(torch.randn(d_in, d_k))
        self.W_V = nn.Parameter(torch.randn(d_in, d_v))

    def forward(self, X):
        Q, K, V = X @ self.W_Q, X @ self.W_K, X @ self.W_V  # 1  (..., n, d_k or d_v)
        scores = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5  # 2  (..., n_q, n_k)
        weights = torch.softmax(scores, dim=-1)  # 3  each row sums to 1
        return weights @ V  # 4  (..., n_q, d_v)


# %% [markdown]
# Give it the matrices of notebook 01 in float64. It must return notebook 02's numbers:

# %%
X, W_Q, W_K, W_V = (torch.tensor(a) for a in BY_HAND)  # float64
layer = AttentionFromParameters(4, 3, 3).double()
with torch.no_grad():
    for parameter, W in zip((layer.W_Q, layer.W_K, layer.W_V), (W_Q, W_K, W_V)):
        parameter.copy_(W)
output = layer(X)
print(output.detach().numpy().round(6))

# %%
by_numpy = torch.tensor(al.scaled_dot_product_attention(*BY_HAND.project()))
by_torch = nn.functional.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
print("equal to NumPy's to 1e-12:", (output - by_numpy).abs().max().item() < 1e-12)
print("equal to torch's to 1e-12:", (output - by_torch).abs().max().item() < 1e-12)

# %% [markdown]
# ## 2 · `nn.Linear` instead of parameters
#
# The usual way to write a projection is `nn.Linear(d_in, d_k, bias=False)`. Two things change: how the matrix is stored,
# and how it starts.
#
# **It is stored transposed**, as (out, in): `linear(x)` computes $x W^T$. **Predict.** You copy `W_Q` into
# `linear.weight` without `.T`. What happens if it is 4 x 3, and what if it is square?
#
# - **a** an error both times
# - **b** an error for 4 x 3; the square one is silently wrong
# - **c** nothing bad: nn.Linear turns it round

# %%
guess_square = None  # "a", "b" or "c"

# %%
linear = nn.Linear(4, 3, bias=False).double()
print("weight of nn.Linear(4, 3):", tuple(linear.weight.shape))
try:
    with torch.no_grad():
        linear.weight.copy_(W_Q)  # (4, 3) into (3, 4)
except RuntimeError as error:
    print("without .T:", fill(str(error).splitlines()[0], 60))

# %%
square = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
x = torch.tensor([1.0, 0.0])
wrong, right = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
with torch.no_grad():
    wrong.weight.copy_(square)
    right.weight.copy_(square.T)
print("x W =", (x @ square).tolist(), end="   ")
print("copied with .T:", right(x).tolist(), "  without:", wrong(x).tolist())

# %%
predict.square_weight(guess_square)

# %% [markdown]
# A square matrix goes in without a word, and the layer is wrong. In a multi-head layer the large projections usually are square.
#
# **How it starts.** You may read that nn.Linear uses [Xavier](../REFERENCES.md#glorot-2010) or
# [Kaiming](../REFERENCES.md#he-2015) initialisation. Measure it:

# %%
torch.manual_seed(0)
fan_in, fan_out = 512, 64
weight = nn.Linear(fan_in, fan_out, bias=False).weight.detach()
std = weight.std().item()
print(f"measured std                       {std:.4f}")
print(f"1 / sqrt(3 fan_in)                 {(3 * fan_in) ** -0.5:.4f}")
print(f"Xavier,  sqrt(2/(fan_in+fan_out))  {(2 / (fan_in + fan_out)) ** 0.5:.4f}")
print(f"Kaiming, sqrt(2/fan_in)            {(2 / fan_in) ** 0.5:.4f}")

# %% [markdown]
# It is not Xavier. It is Kaiming's function with an unusual gain: nn.Linear calls `kaiming_uniform_(weight, a=sqrt(5))`
# ([why](../REFERENCES.md#torch-linear)). The gain is what stands above $\sqrt{fan_{in}}$: $\sqrt 2$ in the formula for ReLU, and here $\sqrt{1/3}$:

# %%
torch.manual_seed(0)  # the same draw once more
by_kaiming = nn.init.kaiming_uniform_(torch.empty(fan_out, fan_in), a=5**0.5)
print("gain for ReLU       ", round(nn.init.calculate_gain("relu"), 4))
print("gain for a = sqrt(5)", round(nn.init.calculate_gain("leaky_relu", 5**0.5), 4))
print("differs from nn.Linear by", (by_kaiming - weight).abs().max().item())

# %% [markdown]
# So the entries are uniform in $\pm 1/\sqrt{fan_{in}}$, with standard deviation $1/\sqrt{3\, fan_{in}}$. Each
# entry of $q = W x$ adds $fan_{in}$ terms of variance $1/(3\,fan_{in})$, so it has variance $1/3$, and
# $q \cdot k / \sqrt{d_k}$ has $1/9 \approx 0.11$: the number of notebook 03. Fresh layers attend almost uniformly.
#
# The sizes above are those of one head of the [original Transformer](../REFERENCES.md#vaswani-2017): 512 features go in, 64 come out. Input and output
# sizes of a head differ.

# %%
from attnlib.torch_layers import SelfAttention

head = SelfAttention(d_in=512, d_k=64)
print(head)
print("parameters of one head:", sum(p.numel() for p in head.parameters()))

# %% [markdown]
# `attnlib.torch_layers.SelfAttention` is this second version. It returns the output and the weights.

# %%
ours = SelfAttention(4, 3).double()
with torch.no_grad():
    for linear, W in zip((ours.W_Q, ours.W_K, ours.W_V), (W_Q, W_K, W_V)):
        linear.weight.copy_(W.T)
output_2, weights = ours(X)
off = (output_2 - output).abs().max().item()
print("equal to the first version to 1e-12:", off < 1e-12)
ax = plot.attention_heatmap(weights, title="the example of notebook 01")

# %% [markdown]
# ## 3 · See it · A fresh module's weights
#
# A fresh `SelfAttention(64, d_k)` on six random tokens. The matrices are nested: the slider takes the first $d_k$ rows of
# a module with $d_k = 512$. **Predict.** At $d_k = 512$ scores have variance $512/9$ without scaling. Peaky or flat?

# %%
torch.manual_seed(1)
fresh, tokens = SelfAttention(64, 512), torch.randn(6, 64)
q, k = fresh.W_Q(tokens).detach(), fresh.W_K(tokens).detach()  # (n, 512)


def fresh_weights(d_k):
    scores = q[:, :d_k] @ k[:, :d_k].T  # (n_q, n_k)
    return {
        "not scaled": scores.softmax(-1),
        "divided by sqrt(d_k)": (scores / d_k**0.5).softmax(-1),
    }


view = live.weights_view(fresh_weights, d_k=(1, 512), still=(8, 64, 512))
view

# %% [markdown]
# ## 4 · Gradients reach all three matrices
#
# A matrix that gets no gradient never learns. **Predict.** If the loss is the sum of the *weights*, which gradients
# vanish?
#
# - **a** that of $W_V$ only
# - **b** none
# - **c** all three

# %%
guess_gradients = None  # "a", "b" or "c"

# %%
output, weights = ours(X)
sums = {"sum of output ** 2": (output**2).sum(), "sum of the weights": weights.sum()}
for name, loss in sums.items():
    ours.zero_grad()
    loss.backward(retain_graph=True)
    reached = {}
    for n, p in ours.named_parameters():
        norm = 0.0 if p.grad is None else p.grad.norm().item()
        reached[n.split(".")[0]] = "reached" if norm > 1e-9 else "nothing"
    print(f"{name}:", reached)

# %%
predict.sum_of_weights(guess_gradients)

# %% [markdown]
# Each row of weights sums to 1 whatever the matrices are, so the second loss teaches nothing.
#
# ## 5 · It learns: associative recall
#
# A task that plainly needs attention ([Graves et al. 2014](../REFERENCES.md#graves-2014)). Eight slots each hold a key and a value. Then one key is asked for, and the layer
# must return its value. Which slot is right changes with every sequence, so no fixed rule works.

# %%
N_PAIRS, N_KEYS, N_VALUES, D = 8, 16, 16, 32


def make_batch(size, generator):
    order = torch.rand(size, N_KEYS, generator=generator).argsort(-1)
    keys = order[:, :N_PAIRS]  # (b, 8), all different
    values = torch.randint(N_VALUES, (size, N_PAIRS), generator=generator)  # (b, 8)
    slot = torch.randint(N_PAIRS, (size,), generator=generator)  # (b,)
    rows = torch.arange(size)
    return keys, values, keys[rows, slot], values[rows, slot], slot


# %% [markdown]
# A slot's token is the sum of a key embedding and a value embedding. The asked key is a ninth token; the model reads the
# answer off its output.


# %%
class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.value = nn.Embedding(N_KEYS, D), nn.Embedding(N_VALUES, D)
        self.attention = SelfAttention(D, D)
        self.read = nn.Linear(D, N_VALUES)

    def forward(self, keys, values, asked):
        slots = self.key(keys) + self.value(values)  # (b, 8, D)
        tokens = torch.cat([slots, self.key(asked)[:, None]], dim=1)  # (b, 9, D)
        output, weights = self.attention(tokens)
        return self.read(output[:, -1]), weights[:, -1]  # the asking token's row


# %% [markdown]
# Before training, and with weights that are all equal, for comparison:

# %%
torch.manual_seed(0)
model, generator = Recall(), torch.Generator().manual_seed(0)


def evaluate(model):
    fresh = torch.Generator().manual_seed(1)
    keys, values, asked, answer, slot = make_batch(1000, fresh)
    with torch.no_grad():
        logits, weights = model(keys, values, asked)
    accuracy = (logits.argmax(-1) == answer).float().mean().item()
    return accuracy, weights[torch.arange(1000), slot].mean().item(), weights, slot


accuracy, on_slot, before, slot = evaluate(model)
print(f"before training: accuracy {accuracy:.1f}", end=", ")
print(f"weight on the right slot {on_slot:.1f}")

# %%
optimizer, losses = torch.optim.Adam(model.parameters(), lr=5e-3), []
for _ in live.progress(range(400), "training"):
    keys, values, asked, answer, _ = make_batch(128, generator)
    loss = nn.functional.cross_entropy(model(keys, values, asked)[0], answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
accuracy, on_slot, after, slot = evaluate(model)
print(f"after training: accuracy {accuracy:.2f}", end=", ")
print(f"weight on the right slot above 0.8: {on_slot > 0.8}")

# %%
figure, ax = plot.subplots(figsize=(6, 3))
ax.plot(losses)
ax.axhline(np.log(N_VALUES), linestyle="--", label="guessing: ln 16")
ax.set(xlabel="step", ylabel="loss")
_ = ax.legend()

# %% [markdown]
# Eight sequences, one per row. Where does the asking token look, before and after?

# %%
rows = [f"asks for slot {s}" for s in slot[:8].tolist()]
columns = [f"slot {j}" for j in range(N_PAIRS)] + ["itself"]
maps = torch.stack([before[:8], after[:8]])  # (2, 8, 9)
titles = ["before training", "after training"]
figure = plot.head_grid(maps, queries=rows, keys=columns, titles=titles, columns=2)

# %% [markdown]
# Nobody told the layer which slot to look at. The loss on the answer was enough to shape $W_Q$ and $W_K$.
#
# ## Break it · Weights that cannot choose
#
# **Predict.** How well can the same model do if every weight is $1/9$ and only the rest is trained?


# %%
class Uniform(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_V = nn.Linear(D, D, bias=False)

    def forward(self, tokens):
        n = tokens.shape[-2]
        weights = torch.full((*tokens.shape[:-1], n), 1 / n)  # (b, n_q, n_k)
        return weights @ self.W_V(tokens), weights


# %%
torch.manual_seed(0)
blind = Recall()
blind.attention = Uniform()
optimizer = torch.optim.Adam(blind.parameters(), lr=5e-3)
for _ in live.progress(range(400), "training without choice"):
    keys, values, asked, answer, _ = make_batch(128, generator)
    loss = nn.functional.cross_entropy(blind(keys, values, asked)[0], answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"with equal weights: accuracy below 0.4: {evaluate(blind)[0] < 0.4}")

# %% [markdown]
# It can tell which values are present, not which one belongs to the asked key.

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.

# %% [markdown]
# ### Exercise 4.1 · How a layer starts
#
# **Goal.** Find the standard deviation of a fresh `nn.Linear(768, 64).weight`. *2 minutes, easy.*
#
# By formula, not by measuring: four digits are asked for.

# %%
my_linear_std = None  # one number

# %%
verdict = check.linear_std(my_linear_std)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_linear_std = (3 * 768) ** -0.5
# ```
#
# </details>

# %% [markdown]
# ### Exercise 4.2 · How large a head is
#
# **Goal.** Count the parameters of $W_Q$, $W_K$ and $W_V$ for 512 features in and 64 out, without bias. *2 minutes,
# easy.*
#
# These are the sizes of one head of the original Transformer.

# %%
my_head_parameters = None  # one number

# %%
verdict = check.head_parameters(my_head_parameters)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_head_parameters = 3 * 512 * 64
# ```
#
# </details>

# %% [markdown]
# ### Exercise 4.3 · The layer
#
# **Goal.** Write self-attention as a module that returns the output and the weights. *20 minutes, hard.*
#
# The signature is that of `attnlib.torch_layers.SelfAttention`. `__init__(d_in, d_k, d_v=None)` makes three layers `nn.Linear`
# called `W_Q`, `W_K`, `W_V`; `d_v` defaults to `d_k`. `forward(x, *, attn_mask=None)` returns `(output, weights)`. The
# gradient of the output must reach all three layers.
#
# `attn_mask` is boolean, **True = may attend** (the subject of notebook 05). Where it is False, put $-\infty$:
# `scores.masked_fill(~attn_mask, -torch.inf)`. A row of nothing but $-\infty$ becomes NaN in torch's softmax;
# `.nan_to_num()` makes it 0, which is asked for.


# %%
class MySelfAttention(nn.Module):
    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        raise NotImplementedError  # your code

    def forward(self, x, *, attn_mask=None):
        raise NotImplementedError  # your code


# %%
verdict = check.SelfAttention(MySelfAttention)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# class MySelfAttention(nn.Module):
#     def __init__(self, d_in, d_k, d_v=None):
#         super().__init__()
#         self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
#         self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)
#
#     def forward(self, x, *, attn_mask=None):
#         scores = self.W_Q(x) @ self.W_K(x).transpose(-1, -2) / self.W_Q.out_features**0.5  # (..., n_q, n_k)
#         if attn_mask is not None:
#             scores = scores.masked_fill(~attn_mask, -torch.inf)
#         weights = scores.softmax(-1).nan_to_num()
#         return weights @ self.W_V(x), weights
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Remove the division by `Q.shape[-1] ** 0.5` in `AttentionFromParameters`. Which line of the notebook notices first?
#    (The comparison with NumPy.)
# 2. Train `Recall` with `N_PAIRS = 12`. Does it still reach 1.00?
#
# **Remember.** A module is the same four lines with matrices that learn. Check it against known numbers in float64.
# nn.Linear stores $W$ transposed and starts at std $1/\sqrt{3\,fan_{in}}$. Next: [05 masks](05_masks.ipynb).

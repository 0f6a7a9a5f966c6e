# %% [markdown]
# # 07 · The bug clinic
#
# **Question.** Wrong attention code runs, has the right shape and trains a little. How do you find out that it is
# wrong? *75 minutes. This notebook needs torch.*
#
# Each case goes the same way: what you see, a guess, the smallest probe, the cause, the fix. The probe prints the
# broken number and the fixed one side by side. Most of these bugs were found in five public texts on
# self-attention ([their names](../REFERENCES.md#the-five-texts)):
#
# | | text | cases |
# |---|---|---|
# | S0 | a PyTorch class with several heads | 1, 9, 10, 15, 16, 24, 25 |
# | S1 | the same text in NumPy | 3, 5, 6, 26, 30 |
# | S2 | a Colab notebook with a class | 1, 9, 17 |
# | S3 | an example by hand | 2, 7, 29 |
# | S4 | a lecture on trainable weights | 4, 8, 21, 22, 23, 28 |
#
# The others are common ones. Some were found in [public threads](../REFERENCES.md#threads).

# %%
import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import clinic, predict
from attnlib.course.clinic import CASES, Attention
from attnlib.diagnose import diagnose
from attnlib.examples import ASYMMETRIC, BY_HAND, IDENTITY

_ = torch.set_num_threads(1), torch.set_grad_enabled(False)

# %% [markdown]
# `clinic.Attention(embed_dim, num_heads)` is a healthy module, cut into one method per step. A patient is the same
# class with one method replaced. `twins` makes a patient and a healthy module with the same weights, and `beside` draws
# their weights.


# %%
def twins(name, embed_dim=24, num_heads=4, seed=0):
    torch.manual_seed(seed)
    broken = CASES[name].module(embed_dim, num_heads)
    fixed = Attention(embed_dim, num_heads)
    fixed.load_state_dict(broken.state_dict())
    return broken, fixed


def beside(broken, fixed, **more):
    maps = torch.stack([broken, fixed])
    return plot.head_grid(maps, titles=["broken", "fixed"], **more)


x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)
causal = torch.from_numpy(al.causal_mask(5))  # True = may attend

# %% [markdown]
# ## A · The scale
#
# ### Case 1 · The wrong width (S0, S2)
#
# **You see** a multi-head module that trains slowly; its maps are pale. **Predict.** It divides by $\sqrt{256}$, and
# each head has 32 features. Are the weights too peaky or too flat?

# %%
r = np.random.default_rng(22)
q, k = r.normal(size=(2, 32, 8, 10, 32))  # (b, h, n, d_k), variance 1
dots = q @ k.swapaxes(-1, -2)  # (b, h, n_q, n_k)
for name, divisor in (("broken, sqrt(256)", 16), ("fixed,  sqrt(32) ", 32**0.5)):
    H = al.entropy(al.softmax(dots / divisor)).mean()
    variance = (dots / divisor).var()
    print(f"{name}: variance of the scores {variance:.2f}, mean entropy {H:.2f} nats")

# %% [markdown]
# **Cause.** The width of the tokens in place of the width of one head. **Fix.** `scores / q.shape[-1] ** 0.5`, after
# the split. With $h$ heads the scores are $\sqrt h$ times too small, so it gets worse with every head you add. Move the
# slider:

# %%
generator = torch.Generator().manual_seed(26)
wide_q, wide_k = torch.randn(2, 6, 64, generator=generator)  # (n, d_model)


def first_head(num_heads):
    d_k = 64 // num_heads
    scores = wide_q[:, :d_k] @ wide_k[:, :d_k].T  # (n_q, n_k)
    return {
        "divided by sqrt(embed_dim)": (scores / 8).softmax(-1),
        "divided by sqrt(d_k)": (scores / d_k**0.5).softmax(-1),
    }


choices = [(f"{h}, so d_k = {64 // h}", h) for h in (1, 2, 4, 8, 16, 32)]
view = live.weights_view(first_head, num_heads=choices, still=(1, 32))
view

# %% [markdown]
# ### Case 2 · No scale (S3)
#
# **You see** an example by hand that never divides. **Predict.** $d_k$ is only 3. Does it matter?

# %%
Q, K, V = BY_HAND.project()
maps = []
for name, scale in (("broken", 1.0), ("fixed ", None)):
    trace = al.attention_trace(Q, K, V, scale=scale)
    print(f"{name}: weights of query 1 {trace.weights[0].round(6)}")
    print(f"        output 1 {trace.output[0].round(6)}")
    maps.append(torch.from_numpy(trace.weights))
figure = beside(*maps)

# %% [markdown]
# **Cause.** The step is missing. **Fix.** Divide by $\sqrt 3$. torch's `scaled_dot_product_attention` is the second
# opinion.
#
# ### Case 3 · Axes counted from the front (S1)
#
# **You see** NumPy code with the comment "K is (batch, d_k)", and `K.shape[1]`, `K.T`, `axis=1`. It is right for one
# sequence, where K is (tokens, d_k). **Predict.** What happens with a batch of shape (3, 3, 3)?

# %%
cube = np.random.default_rng(0).normal(size=(3, 3, 3))  # (b, n, d)
e = np.exp(cube @ cube.T / np.sqrt(cube.shape[1]))
broken = (e / e.sum(axis=1, keepdims=True)) @ cube
fixed = al.scaled_dot_product_attention(cube, cube, cube)
off = np.abs(broken - fixed).max().round(2)
print("no error, shapes", broken.shape, fixed.shape, " largest difference:", off)
sick, healthy = twins("scale_by_first_axis")
under_root = round(sick.divisor(x[:, None].expand(2, 4, 5, 24)) ** 2)
print("under the root, with 4 heads of d_k = 6: broken", under_root, " fixed", 6)

# %% [markdown]
# **Cause.** `shape[1]` is $d_k$ in 2-D, the tokens in 3-D, the heads in 4-D. **Fix.** Count from the end: `shape[-1]`,
# `swapaxes(-1, -2)`, `axis=-1`. Test with sizes that all differ.
#
# ### Case 4 · "Scaling keeps the variance near 1" (S4)
#
# **You see** a claim. **Predict.** For which of three ways to draw $W_Q$ and $W_K$ does it hold?

# %%
torch.manual_seed(49)
starts = {"nn.Linear's default": None, "torch.rand": nn.init.uniform_}
starts["Xavier"] = nn.init.xavier_uniform_
for name, start in starts.items():
    tokens_q, tokens_k = torch.randn(2, 1000, 64)
    W_Q, W_K = (nn.Linear(64, 64, bias=False) for _ in range(2))
    if start:
        start(W_Q.weight), start(W_K.weight)
    scores = W_Q(tokens_q) @ W_K(tokens_k).T / 8
    print(f"{name:<20} variance of q.k / sqrt(d_k): {scores.var():.2f}")

# %% [markdown]
# **Cause.** The derivation takes $q$ and $k$ of variance 1, and only one of the three draws gives that. **Fix.**
# Measure the variance of your scores once, before training.
#
# ## B · Softmax
#
# ### Case 5 · No maximum (S1)
#
# **You see** NaN after an hour of training. **Predict.** Q and K of the identity example, times 31.6 or times 32.
# Which one fails?

# %%
Q2, K2, V2 = IDENTITY.project()
for factor in (31.6, 32):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(factor**2 * Q2 @ K2.T / 2**0.5)
        broken = e / e.sum(axis=-1, keepdims=True) @ V2
    fixed = al.scaled_dot_product_attention(factor * Q2, factor * K2, V2)
    print(f"times {factor:<4}  broken {broken[0]}  fixed {fixed[0]}")

# %% [markdown]
# **Cause.** `exp` overflows above 709 in float64 (above 88 in float32): infinity / infinity. **Fix.** Subtract the row
# maximum first.
#
# ### Case 6 · Softmax over the queries, and the example that hides it (S1)
#
# **You see** a test that passes. **Predict.** In the identity example, does the axis of the softmax matter?


# %%
def off_by(right, Q, K, V, axis=-1):
    weights = al.softmax(Q @ K.T / Q.shape[-1] ** 0.5, axis)
    return np.abs(weights @ V - right).max()


for name, case in (("identity", IDENTITY), ("asymmetric", ASYMMETRIC)):
    q, k, v = case.project()
    right = al.scaled_dot_product_attention(q, k, v)
    wrong_axis = off_by(right, q, k, v, axis=0)
    print(f"{name:<11} over queries: off by {wrong_axis:.4f}", end="")
    print(f"   Q and K swapped: {off_by(right, k, q, v):.4f}", end="")
    print(f"   fixed: {off_by(right, q, k, v):.4f}")
figure = beside(*(m(x)[1][0, 0] for m in twins("softmax_over_queries")))

# %% [markdown]
# **Cause.** A symmetric example cannot tell rows from columns, nor queries from keys. **Fix.** `axis=-1`, and
# asymmetric tests. A probe for any module: each row of weights sums to 1.
#
# ### Case 7 · Rounded on the way (S3)
#
# **You see** softmax(2, 4, 4) written as [0, 0.5, 0.5]. **Predict.** How far off is the worst output?

# %%
weights = al.softmax(Q @ K.T)  # (n_q, n_k), not scaled, as in the text
rounded = np.array([[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]])
print("broken", *(rounded @ V).round(6).tolist(), sep="\n  ")
print("fixed", *(weights @ V).round(6).tolist(), sep="\n  ")
print(f"largest error: {np.abs(rounded @ V - weights @ V).max():.3f}")

# %% [markdown]
# **Cause.** A weight of 0.063 became 0. **Fix.** Round when you print.
#
# ### Case 8 · The mean that hides it (S4)
#
# **You see** "without scaling, gradients vanish", and plot the mean gradient on $q$. **Predict.** Does the plot agree?

# %%
r = np.random.default_rng(3)
q, k, v = (r.normal(size=(200, 10, d)) for d in (1024, 1024, 16))
upstream = r.normal(size=(200, 10, 16)) @ v.swapaxes(-1, -2)  # dL/dweights
for name, scale in (("no scale", 1.0), ("scaled  ", 1 / 32)):
    w = al.softmax(q @ k.swapaxes(-1, -2) * scale)
    d_scores = w * (upstream - (w * upstream).sum(axis=-1, keepdims=True))
    mean = np.linalg.norm(scale * d_scores @ k, axis=-1).mean()
    dead = (np.abs(d_scores).max(axis=-1) < 1e-3).mean()
    print(f"{name}: mean |dL/dq| {mean:.1f}", end="   ")
    print(f"queries whose gradients are all below 0.001: {dead:.0%}")

# %% [markdown]
# **Cause.** Most queries are dead, a few explode and carry the mean. **Fix.** Plot a median, or the share of dead
# queries.
#
# ## C · Masks
#
# ### Case 9 · The finite fill (S0, S2)
#
# **You see** `masked_fill(mask == 0, -1e20)`, and it works. **Predict.** A query may attend to none of ten keys. Its
# weights?
#
# - **a** all 0
# - **b** NaN
# - **c** 0.1 each

# %%
guess_forbidden = None  # "a", "b" or "c"

# %%
sick, healthy = twins("finite_fill")
ten = torch.randn(1, 10, 24, generator=torch.Generator().manual_seed(0))
mask = torch.ones(10, 10, dtype=torch.bool)
mask[1] = False  # query 1 may look nowhere
maps = [module(ten, attn_mask=mask)[1][0, 0] for module in (sick, healthy)]
print("broken", maps[0][1].numpy().round(4))
print("fixed ", maps[1][1].numpy().round(4))
figure = beside(*(weights[:4] for weights in maps))

# %%
predict.forbidden(guess_forbidden)

# %% [markdown]
# **Cause.** A softmax sees differences only, and all ten scores are the same. **Fix.** Fill with $-\infty$ and set a
# fully masked row to 0.
#
# ### Case 10 · The same fill in half precision (S0)
#
# **You see** a crash on the GPU that never came on the CPU. **Predict.** What is the largest float16 number?

# %%
half = ten.half()
try:
    sick.half()(half, attn_mask=mask)
except RuntimeError as error:
    print("broken: RuntimeError:", error)
output, _ = healthy.half()(half, attn_mask=mask)
print("fixed:  finite output:", output.isfinite().all().item(), end="   ")
print("largest float16:", torch.finfo(torch.float16).max)

# %% [markdown]
# **Cause.** -1e20 is no float16. **Fix.** $-\infty$ is.
#
# ### Case 11 · Minus infinity, and nothing else
#
# **You see** NaN in the loss as soon as a sequence is empty. **Predict.** How many outputs are NaN here?

# %%
sick, healthy = twins("nan_on_fully_masked")
for name, module in (("broken", sick), ("fixed ", healthy)):
    output, weights = module(ten, attn_mask=mask)
    lost, row = output.isnan().any(-1).sum().item(), weights[0, 0, 1, :3].tolist()
    print(f"{name}: tokens whose output is NaN: {lost} of 10, weights {row}")

# %% [markdown]
# **Cause.** In a row of $-\infty$, softmax divides 0 by 0. **Fix.** `.nan_to_num()`, or do not ask queries that may
# look nowhere. One NaN in an output reaches every parameter through the loss.
#
# ### Cases 12, 13, 14 · Inverted, ignored, too late
#
# **You see** a causal model whose training loss is surprisingly good. The shapes are right in all three. **Predict.**
# Which of the three lets an early output see the last token?


# %%
def poke(module):
    later = x.clone()
    later[:, -1] += 1  # change the future
    moved = module(later, attn_mask=causal)[0] - module(x, attn_mask=causal)[0]
    return moved.abs().amax((0, 2))[:-1].max().item()  # how far earlier outputs move


for name in ("mask_inverted", "mask_ignored", "mask_after_softmax"):
    for state, module in zip(("broken", "fixed "), twins(name)):
        sums, moves = module(x, attn_mask=causal)[1].sum(-1), poke(module) > 1e-6
        print(f"{name:<18} {state}: earlier outputs move: {moves!s:<5}", end="  ")
        print(f"smallest row sum {sums.min():.2f}")

# %%
names = ("mask_inverted", "mask_ignored", "mask_after_softmax")
modules = [twins(name)[0] for name in names] + [twins(names[0])[1]]
maps = torch.stack([m(x, attn_mask=causal)[1][0, 0] for m in modules])
figure = plot.head_grid(maps, titles=[*names, "fixed"], columns=2)

# %% [markdown]
# **Cause.** Inverted: True was read as blocked; the last query may attend to nothing. Ignored: the mask never reaches
# the softmax. Too late: blocked keys took their share before they were removed, so the sum still knows the future.
# **Fix.** Mask before the softmax, True = may attend; and keep `poke` as a test.
#
# ### Case 15 · A padding mask read as something else (S0)
#
# **You see** a mask $(b, n)$ from a tokenizer, handed in as it is. **Predict.** Ten sequences of ten tokens: an error?


# %%
def copied(*names):  # the tutorial's class, with several bugs at once
    return type("Copied", tuple(CASES[name].module for name in names), {})(256, 8)


torch.manual_seed(5)
sick = copied("shared_small_projection", "scale_by_embed_dim")
batch = torch.rand(10, 10, 256, generator=torch.Generator().manual_seed(5))  # (b, n, d)
padding = torch.arange(10) < torch.arange(1, 11)[:, None]  # (b, n): i + 1 tokens in i
broken = sick(batch, attn_mask=padding)
fixed = sick(batch, attn_mask=padding[:, None].expand(10, 10, 10))
off = (broken[0] - fixed[0]).abs().max()
print(f"no error, and the output differs by {off:.2f}")
figure = beside(broken[1][2, 0, :5], fixed[1][2, 0, :5])

# %% [markdown]
# **Cause.** Two axes are (queries, keys). The picture shows sequence 2, three tokens long: the broken map is causal,
# the fixed one hides columns. **Fix.** `padding[:, None, :]`, so that the axis of the queries is there.
#
# ## D · Heads and projections
#
# ### Case 16 · One small projection for all heads (S0)
#
# **You see** the right output shape. **Predict.** Width 256, 8 heads. How many parameters should $W_Q$, $W_K$, $W_V$
# have?

# %%
torch.manual_seed(0)
sick, healthy = CASES["shared_small_projection"].module(256, 8), Attention(256, 8)
modules = {"broken": sick, "fixed": healthy}
tiled = torch.randn(1, 10, 32).repeat(1, 1, 8)  # the same slice eight times
for name, module in modules.items():
    count = sum(p.numel() for n, p in module.named_parameters() if "W_O" not in n)
    weights = module(tiled)[1]
    print(f"{name}: {count} projection parameters, ", end="")
    print("all heads identical:", (weights - weights[:, :1]).abs().max().item() < 1e-6)

# %%
for name, module in modules.items():
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randn(1, 10, 256, generator=generator, requires_grad=True)
    with torch.enable_grad():
        module(tokens)[1][0, 0].square().sum().backward()  # a loss on head 0 alone
    outside = tokens.grad[..., 32:].abs().max().item() > 0
    print(f"{name}: head 0 depends on features outside its slice: {outside}")

# %% [markdown]
# **Cause.** `Linear(d_k, d_k)` after the split. Each head sees one eighth of each token, through the same matrix.
# **Fix.** `Linear(d_model, d_model)` before the split.
#
# ### Case 17 · Projections that are never applied (S2)
#
# **You see** a class with `W_Q`, `W_K` and `W_V` in `__init__`. **Predict.** You set all three to NaN. What is the
# output?
#
# - **a** NaN everywhere
# - **b** the same as before
# - **c** NaN in some features

# %%
guess_poison = None  # "a", "b" or "c"

# %%
torch.manual_seed(0)
sick, batch = CASES["projections_unused"].module(256, 8), torch.randn(2, 10, 256)
with torch.enable_grad():
    sick(batch)[0].square().sum().backward()
dead = sum(p.numel() for p in sick.parameters() if p.grad is None)
total = sum(p.numel() for p in sick.parameters())
print(f"{dead:,} of {total:,} parameters never get a gradient")
before = sick(batch)[0]
for linear in (sick.W_Q, sick.W_K, sick.W_V):
    linear.weight.fill_(torch.nan)
print("set to NaN, the output changes by", (sick(batch)[0] - before).abs().max().item())

# %%
predict.poison(guess_poison)

# %%
torch.manual_seed(0)
healthy = Attention(256, 8)
with torch.enable_grad():
    healthy(batch)[0].square().sum().backward()
dead = sum(p.numel() for p in healthy.parameters() if p.grad is None)
print("fixed: parameters without a gradient:", dead)
sick = CASES["projections_unused"].module(256, 8)
for name, module in (("broken", sick), ("fixed ", healthy)):
    q, k, _ = module.project(batch, batch, batch)
    scores = module.scores(q, k)
    off = (scores - scores.transpose(-1, -2)).abs().max().item()
    print(f"{name}: scores are symmetric: {off < 1e-5}")

# %% [markdown]
# **Cause.** `forward` never calls them; with their shape, (32, 256), it could not. Every token asks with what it
# answers, so the scores are symmetric. **Fix.** Apply them, and look for parameters whose `.grad` is None after
# `backward`.
#
# ### Case 18 · Heads that are copies
#
# **You see** eight heads, started from one matrix. **Predict.** Does training tell them apart?

# %%
torch.manual_seed(1)
sick, healthy = CASES["copied_heads"].module(24, 4), Attention(24, 4)
for name, module in (("broken", sick), ("fixed ", healthy)):
    w = module(x)[1]
    same = sum((w[:, i] - w[:, 0]).abs().max() < 1e-6 for i in range(4))
    print(f"{name}: heads with the weights of head 0: {same} of 4")
figure = beside(sick(x)[1][0, 1], healthy(x)[1][0, 1])


# %%
def train_a_little(module, steps=5):  # to return the token before
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(steps):
        with torch.enable_grad():
            loss = (module(x)[0] - x.roll(1, dims=1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
    w = module(x)[1]
    return (w - w[:, :1]).abs().max().item()  # how far a head is from head 0


# %% tags=["nbval-ignore-output"]
alike = CASES["copied_heads"].module(24, 4)
alike.W_O.weight.copy_(alike.W_O.weight[:, :6].repeat(1, 4))  # W_O copied as well
print(f"copied heads after 5 steps: differ by {train_a_little(sick):.2f}")
print(f"W_O copied, too:            differ by {train_a_little(alike):.2f}")

# %% [markdown]
# **Cause.** Equal matrices give equal weights of attention. But each head has its own columns of $W_O$, so each gets its own
# gradient, and a few steps tell the heads apart. Only if those columns are copies, too, nothing ever does. **Fix.** Draw
# every head's matrices anew.
#
# ### Cases 19, 20 · Split or merge without the swap
#
# **You see** the right shape. **Predict.** Attention without a mask knows no order: permute the tokens, and the outputs
# are permuted. Does that hold here?

# %%
order = torch.tensor([3, 0, 4, 1, 2])
for name in ("split_without_transpose", "merge_without_transpose"):
    for state, module in zip(("broken", "fixed"), twins(name)):
        moved = (module(x[:, order])[0] - module(x)[0][:, order]).abs().max().item()
        print(f"{name:<24} {state:<7} follows the permutation: {moved < 1e-5}")
figure = beside(*(m(x)[1][0, 0] for m in twins("split_without_transpose")))

# %% [markdown]
# **Cause.** `reshape` alone keeps the order in memory, so a head gets pieces of several tokens. **Fix.** reshape to
# $(n, h, d_k)$, then swap to $(h, n, d_k)$; merging swaps first, then reshapes.
#
# ### Case 21 · A matrix copied into nn.Linear (S4)
#
# **You see** weights moved from `X @ W` to nn.Linear. **Predict.** `W` is square. Does a missing `.T` raise an error?

# %%
W, token = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 0.0])
linear = nn.Linear(2, 2, bias=False)
for name, weight in (("broken, W  ", W), ("fixed,  W.T", W.T)):
    linear.weight.copy_(weight)
    print(f"{name}: linear(x) = {linear(token).tolist()}", end="   ")
    print(f"x W = {(token @ W).tolist()}")

# %% [markdown]
# **Cause.** nn.Linear stores (out, in). **Fix.** Copy `W.T`, and compare one output.
#
# ### Case 22 · "nn.Linear starts as Xavier or Kaiming" (S4)
#
# **You see** a claim. **Predict.** The standard deviation of a fresh `nn.Linear(512, 64).weight`?

# %%
torch.manual_seed(0)
print(f"measured {nn.Linear(512, 64).weight.std():.4f}", end="   ")
print(f"1/sqrt(3 fan_in) {(3 * 512) ** -0.5:.4f}", end="   ")
print(f"Xavier {(2 / (512 + 64)) ** 0.5:.4f}   Kaiming {(2 / 512) ** 0.5:.4f}")
torch.manual_seed(0)
called = nn.init.kaiming_uniform_(torch.empty(64, 512), a=5**0.5)
print(f"kaiming_uniform_(a=sqrt(5)) {called.std():.4f}")

# %% [markdown]
# **Cause.** Its code calls Kaiming's function with an unusual gain, `a=sqrt(5)`. That makes the entries uniform in
# $\pm 1/\sqrt{fan_{in}}$, $\sqrt 6$ times smaller than Kaiming's ([sources](../REFERENCES.md#torch-linear)). **Fix.** Call
# `nn.init.xavier_uniform_` if you mean it.
#
# ### Case 23 · "Input and output have the same size" (S4)
#
# **You see** a count of parameters. **Predict.** One head of the original Transformer takes 512 features. How many come
# out?

# %%
print("broken, 512 -> 512:", 3 * 512 * 512, "parameters in W_Q, W_K, W_V of one head")
fixed = [nn.Linear(512, 64, bias=False) for _ in range(3)]
print("fixed,  512 -> 64: ", sum(linear.weight.numel() for linear in fixed))
print("8 heads of 64, merged:", 8 * 64)

# %% [markdown]
# **Cause.** The layer keeps the width; a head does not. **Fix.** $d_k = d_{model} / h$.
#
# ## E · How it is called
#
# ### Case 24 · Values, keys, query (S0)
#
# **You see** `forward(values, keys, query)`, called as everybody calls attention. **Predict.** An error?

# %%
torch.manual_seed(6)
sick = copied("swapped_query_value", "shared_small_projection", "scale_by_embed_dim")
generator = torch.Generator().manual_seed(6)
q, k, v = torch.randn(3, 1, 10, 256, generator=generator)
right = sick(v, k, q)[0]
off = (sick(q, k, v)[0] - right).abs().max()
print(f"broken, m(q, k, v): no error, output differs by {off:.2f}")
off = (sick(query=q, keys=k, values=v)[0] - right).abs().max().item()
print("fixed,  m(query=q, keys=k, values=v): differs by", off)

# %% [markdown]
# **Cause.** Three tensors of one shape in another order. **Fix.** The order query, key, value; names when you call what
# others wrote.
#
# ### Case 25 · A demonstration that is not self-attention (S0)
#
# **You see** three `torch.rand` tensors go in, and `(32, 10, 256)` come out. **Predict.** What do the weights look
# like?


# %%
def tell(name, output, weights):
    least, largest = weights.min(), weights.max()
    print(name, tuple(output.shape), f"weights between {least:.3f} and {largest:.3f}")


torch.manual_seed(0)
sick = copied("shared_small_projection", "scale_by_embed_dim")
tell("broken", *sick(*(torch.rand(32, 10, 256) for _ in range(3))))
# One sequence, unit variance.
same = torch.randn(32, 10, 256, generator=torch.Generator().manual_seed(0))
tell("fixed ", *Attention(256, 8)(same))

# %% [markdown]
# **Cause.** Unrelated, positive numbers and small projections: no choice is made. **Fix.** One sequence in all three
# places, and look at the weights: a shape proves nothing.
#
# ### Case 26 · matmul or dot (S1)
#
# **You see** "use matmul, NOT dot", without a reason. **Predict.** Do they differ in 2-D?

# %%
rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
print("2-D: equal:", np.array_equal(A[0] @ B[0], np.dot(A[0], B[0])))
print("3-D: broken, dot", np.dot(A, B).shape, "  fixed, @", (A @ B).shape)

# %% [markdown]
# **Cause.** `dot` pairs every sequence with every other. **Fix.** `@`.
#
# ### Case 27 · A query or a key too many
#
# **You see** code that works for self-attention. Now the last 3 of 5 tokens ask all 5. **Predict.** Which line must know
# both numbers, and is it enough that the shape fits?

# %%
five = np.random.default_rng(27).normal(size=(5, 8))  # (n, d)
whole = al.scaled_dot_product_attention(five, five, five, is_causal=True)  # (5, 8)
masks = {
    "broken, tri(n_q, n_q)": np.tri(3, 3, dtype=bool),
    "broken, tri(n_q, n_k)": np.tri(3, 5, dtype=bool),
    "fixed,  tri(n_q, n_k, k=n_k - n_q)": np.tri(3, 5, k=2, dtype=bool),
}

# %%
for name, allowed in masks.items():
    try:
        output = al.scaled_dot_product_attention(five[2:], five, five, allowed)
        print(f"{name}: off by {np.abs(output - whole[2:]).max():.4f}")
    except al.ShapeError as error:
        print(f"{name}: ShapeError:\n ", str(error).split(". ")[0])

# %% [markdown]
# **Cause.** Only in self-attention are there as many keys as queries. **Fix.** A mask is $(n_q, n_k)$, always, and queries
# that continue a sequence stand at its end: the lower right (notebook 05).
#
# ### Case 28 · "Self-attention is scaled dot-product attention" (S4)
#
# **You see** two terms for one thing. **Predict.** Can the formula attend to another sequence?

# %%
# Q, K, V from one sequence; then K, V from another
three = np.random.default_rng(28).normal(size=(3, 8))  # (n, d)
self_attention = al.scaled_dot_product_attention(three, three, three)
cross_attention = al.scaled_dot_product_attention(three, five, five)
print("the same function:", self_attention.shape, cross_attention.shape)
print("equal:", np.allclose(self_attention, cross_attention))

# %% [markdown]
# **Cause.** The formula says nothing about where $Q$, $K$, $V$ come from. **Fix.** Self-attention: from one sequence.
# Cross-attention: keys and values from another.
#
# ### Case 29 · A text has bugs, too (S3)
#
# **You see** a recipe with "key, queue and value", no step for the outputs, and inputs that step 1 does not list.
# **Predict.** A recipe can be checked like a program: every name must be made before it is used. What is missing?

# %%
broken = {"key": "x W_K", "queue": "x W_Q", "value": "x W_V"}
broken |= {"scores": "query key", "weights": "scores"}
fixed = {"x": "", "W_Q": "", "W_K": "", "W_V": ""}
fixed |= {"query": "x W_Q", "key": "x W_K", "value": "x W_V"}
fixed |= {"scores": "query key", "weights": "scores", "output": "weights value"}
for name, recipe in (("broken", broken), ("fixed ", fixed)):
    steps = list(recipe)
    used = [(step, word) for step in steps for word in recipe[step].split()]
    missing = sorted({w for step, w in used if w not in steps[: steps.index(step)]})
    unused = sorted(set(steps) - {word for _, word in used})
    print(f"{name}: used but never made: {missing}")
    print(f"        never used: {unused}")

# %% [markdown]
# **Cause.** Nobody ran the text. **Fix.** One term for one thing, and every step a cell.
#
# ## F · Things that change behind your back
#
# ### Case 30 · A sum over the batch (S1)
#
# **You see** an axis that meant tokens until there was a batch. **Predict.** Does a sequence's output depend on its
# neighbours in the batch?

# %%
for state, module in zip(("broken", "fixed "), twins("centred_over_batch")):
    together = module(x)[0]
    alone = torch.cat([module(x[i : i + 1])[0] for i in range(2)])
    equal = (together - alone).abs().max().item() < 1e-5
    print(f"{state}: one by one equals all at once: {equal}")

# %% [markdown]
# **Cause.** `mean(0)`. **Fix.** `mean(-2)`, if it must be.
#
# ### Cases 31, 32 · Dropout that never stops, and an input that is written to
#
# **You see** results that differ when a cell is run twice. **Predict.** Both have the same symptom. Which probe tells
# them apart?

# %%
for name in ("dropout_always", "mutates_input"):
    for state, module in zip(("broken", "fixed "), twins(name)):
        tokens = x.clone()
        first, second = (module.eval()(tokens)[0] for _ in range(2))
        same, kept = torch.equal(first, second), torch.equal(tokens, x)
        print(f"{name:<17} {state}: the same again: {same!s:<5}", end="  ")
        print(f"input as it was: {kept}")

# %% [markdown]
# **Cause.** `F.dropout(w, 0.1)` drops in eval mode, too; `query /= ...` writes into the caller's tensor. **Fix.**
# `training=self.training`; `query = query / ...`.
#
# ## All probes at once
#
# `diagnose` runs such probes on any module and says what to look at:

# %%
torch.manual_seed(0)
diagnose(CASES["mask_after_softmax"].module(24, 4), embed_dim=24, num_heads=4)


# %%
# For a module that takes a padding mask (b, n) and no other.
def padding_only(module, query, key, value, mask):
    if mask is not None and not (mask == mask[:, :1]).all():
        raise ValueError("padding masks only")
    return module(query, key, value, None if mask is None else mask[:, 0])


for name, case in CASES.items():
    torch.manual_seed(0)
    call = padding_only if name == "padding_read_as_queries" else None
    report = diagnose(case.module(24, 4), embed_dim=24, num_heads=4, call=call)
    found = [f.probe for f in report if f.look_at]
    print(f"{name:<24} caught by: {', '.join(found)}")

# %% [markdown]
# ## Break it
#
# Two bugs at once can hide each other. **Predict.** The patient below divides by $\sqrt{d_{model}}$ and was given
# tokens that are $\sqrt 2$ times as large to make up for it, with 4 heads. What do its weights say, and what does `diagnose`?

# %%
sick, healthy = twins("scale_by_embed_dim")
print("same weights:", torch.allclose(sick(2**0.5 * x)[1], healthy(x)[1], atol=1e-6))
print(diagnose(sick, embed_dim=24, num_heads=4)["score scale"].measured)

# %% [markdown]
# Scores grow with the square of the inputs: $\sqrt 2$ for each of $q$ and $k$ makes up for the factor 2. The weights
# are right, the code is not. A probe that looks at the factor itself is not fooled.
#
# ## Exercises
#
# Five patients without a name: `clinic.patient(1)` to `clinic.patient(5)`. Each has one bug of `CASES`. Use the probes
# above, or `diagnose`, and write the name of the bug as a string. `verdict.hint()` gives a hint, each call one step
# further.
#
# **Names.** Run `list(CASES)` to see all 21.

# %% [markdown]
# ### Exercise 7.1 · A first patient
#
# **Goal.** Name the bug of patient 1. *5 minutes, easy.*
#
# Start with the weights: `clinic.patient(1)(x)[1]`.

# %%
my_patient_1 = None  # a name from CASES

# %%
verdict = clinic.name_bug(1, my_patient_1)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# diagnose(clinic.patient(1), embed_dim=24, num_heads=4)  # row sums: not 1
# clinic.patient(1)(x)[1].sum(-2)  # 1: the softmax runs over the queries
# my_patient_1 = "softmax_over_queries"
# ```
#
# </details>

# %% [markdown]
# ### Exercise 7.2 · Behind a mask
#
# **Goal.** Name the bug of patient 2. *6 minutes, medium.*
#
# `diagnose` says "beware" of one probe: what you gave as allowed, this module takes as blocked. Which case is that?

# %%
my_patient_2 = None  # a name from CASES

# %%
verdict = clinic.name_bug(2, my_patient_2)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# clinic.patient(2)(x, attn_mask=causal)[1][0, 0]  # 0 where the mask is True
# my_patient_2 = "mask_inverted"
# ```
#
# </details>

# %% [markdown]
# ### Exercise 7.3 · Mixed up
#
# **Goal.** Name the bug of patient 3. *8 minutes, medium.*
#
# Two cases fail the same probe. The methods `split` and `merge` can be called alone.

# %%
my_patient_3 = None  # a name from CASES

# %%
verdict = clinic.name_bug(3, my_patient_3)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# diagnose(clinic.patient(3), embed_dim=24, num_heads=4)  # permutation: split or merge
# np.allclose(clinic.patient(3).split(x), al.split_heads(x.numpy(), 4))  # True: the split is right
# my_patient_3 = "merge_without_transpose"
# ```
#
# </details>

# %% [markdown]
# ### Exercise 7.4 · It learns nothing
#
# **Goal.** Name the bug of patient 4. *6 minutes, medium.*
#
# Look at the parameters, not at the output.

# %%
my_patient_4 = None  # a name from CASES

# %%
verdict = clinic.name_bug(4, my_patient_4)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# diagnose(clinic.patient(4), embed_dim=24, num_heads=4)  # dead parameters: W_Q, W_K, W_V
# my_patient_4 = "projections_unused"
# ```
#
# </details>

# %% [markdown]
# ### Exercise 7.5 · Pale
#
# **Goal.** Name the bug of patient 5. *6 minutes, medium.*
#
# All weights sum to 1, and every mask works.

# %%
my_patient_5 = None  # a name from CASES

# %%
verdict = clinic.name_bug(5, my_patient_5)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# diagnose(clinic.patient(5), embed_dim=24, num_heads=4)  # score scale: 1/sqrt(24), not 1/sqrt(6)
# my_patient_5 = "scale_by_embed_dim"
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. `diagnose` a module of your own, or `nn.MultiheadAttention(24, 4, batch_first=True)`. What does "beware" mean there?
#    (A fully masked row gives NaN: PyTorch's own choice.)
# 2. Make a patient with two bugs, as in case 24, and give it to a friend.
#
# **Remember.** A shape proves nothing. Use asymmetric inputs, and probes that change one thing: row sums, a poke at the
# future, a permutation, one against many, NaN in a parameter, the factor of the scores. Keep each probe as a test. Next:
# [08 train and look](08_train_and_look.ipynb).

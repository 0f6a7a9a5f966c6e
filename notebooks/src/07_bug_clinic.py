# %% [markdown]
# # 07 · The bug clinic
#
# **Question.** It runs and has the right shape. Is it right? *65 minutes without the appendix. This notebook needs torch.*
#
# Attention is easy to get wrong. A matrix that is turned the wrong way round, a mask that means its opposite, a divisor
# that is too large: nothing raises an error, and every shape is right. So nobody sees from its shapes that a module is
# ill. You have to examine it.

# %%
from copy import deepcopy

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import patients, predict
from attnlib.course.clinic import CASES, Attention, cured, healthy, twins
from attnlib.diagnose import diagnose
from attnlib.examples import ASYMMETRIC, BY_HAND, IDENTITY

_ = torch.set_num_threads(1)
_ = torch.set_grad_enabled(False)  # on again where something is trained

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook 06)* A layer has $h$ heads and reads $n$ tokens. How many rows of weights does one query get?
#
# - **a** one
# - **b** $n$
# - **c** $h$
#
# **2.** *(notebook 05)* In a causal mask, boolean, True = may attend, where is True? Rows are queries, columns are keys.
#
# - **a** below the diagonal, and on it
# - **b** above the diagonal
# - **c** below the diagonal, but not on it
#
# **3.** *(notebook 03)* Scores have variance 64. What is it after a division by $\sqrt{64}$?
#
# - **a** 8
# - **b** 1
# - **c** 1/8

# %%
predict.before_07(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## Three patients
#
# Three modules sit in the waiting room, A, B and C. Each has four heads, takes a query, a key, a value and a mask, and returns
# an output and weights of the right shape. What they have, nobody knows yet. This is what was noticed:
#
# Patients A and B were put into a very small language model. It reads six digits, and at each place it is to
# name the next one. The mask is causal, so it sees the digits up to that place and no further. All digits are drawn at
# random: an honest model can only guess. It is right one time in ten, and its loss is $\ln 10 = 2.30$. (The two cells below
# the model are folded. They train and score it, as in notebook 04.)


# %%
class NextDigit(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.digit, self.place = nn.Embedding(10, 24), nn.Embedding(6, 24)
        self.attention, self.read = attention, nn.Linear(24, 10)

    def forward(self, digits):
        x = self.digit(digits) + self.place.weight  # (b, 6, 24)
        causal = torch.ones(6, 6, dtype=torch.bool).tril()  # True = may attend
        return self.read(self.attention(x, attn_mask=causal)[0])  # (b, 6, 10)


# %% jupyter={"source_hidden": true}
def train(attention):
    torch.manual_seed(0)
    model = NextDigit(attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in live.progress(range(150), type(attention).__name__):
        digits = torch.randint(10, (64, 6))
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = next_digit_loss(model, digits)
            loss.backward()
        optimizer.step()
    return model, loss.item()


# %% jupyter={"source_hidden": true}
def next_digit_loss(model, digits):
    logits = model(digits)[:, :-1]  # (b, 5, 10)
    return nn.functional.cross_entropy(logits.flatten(0, 1), digits[:, 1:].flatten())


def accuracy(model):  # on sequences it has never seen
    digits = torch.randint(10, (1000, 6), generator=torch.Generator().manual_seed(1))
    return (model(digits).argmax(-1)[:, :-1] == digits[:, 1:]).float().mean().item()


# %% [markdown]
# A healthy module, patient A and patient B are trained for 150 steps each. Which of their four matrices $W_Q$, $W_K$, $W_V$,
# $W_O$ should move?

# %% tags=["nbval-ignore-output"]
patient_A, patient_B, patient_C = (patients.patient(letter) for letter in "ABC")
in_training = {"a healthy module": healthy(), "patient A": patient_A}
for name, module in {**in_training, "patient B": patient_B}.items():
    before = deepcopy(module)
    model, loss = train(module)
    print(f"{name:<16} loss {loss:.2f}, accuracy {accuracy(model):.2f}", end=" moved:")
    for W in ("W_Q", "W_K", "W_V", "W_O"):
        moved = getattr(module, W).weight - getattr(before, W).weight
        print(f" {W} {moved.abs().max():.2f}", end="")
    print()

# %% [markdown]
# **Patient A** is remarkably good: each next digit is right, and on sequences it has never seen.
#
# **Patient B** is no worse than the healthy module. But only its $W_O$ has moved. The other three stand where they stood.
#
# **Patient C** was not trained. It was given one sequence alone, another one alone, and both together. Here are the first
# features of its output for the first token. Which lines should be alike?

# %%
x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)
calls = {"sequence 0, alone": x[:1], "sequence 1, alone": x[1:]}
calls["sequence 0, with 1"] = x
for told, batch in calls.items():
    print(f"{told:<18}", patient_C(batch)[0][0, 0, :5].numpy().round(2))

# %% [markdown]
# A sequence should not care for its company, and two sequences should not have one output. Before you read on: what would
# you try on each of the three?

# %% [markdown]
# ## The probe kit
#
# A probe measures something that attention must or must not do; it needs no knowledge of the code. Here are five. Each gives
# 0 for a healthy module, up to rounding. (Gradients are switched off in this notebook. A probe that takes one works under
# `with torch.enable_grad():`.)
#
# `future` puts noise in the place of a token. Notebooks 05 and 06 added 1 to its features. But many models first subtract from
# each token the mean of its features (*layer norm* does that), and then nobody sees such a poke.


# %%
causal = torch.from_numpy(al.causal_mask(5))  # True = may attend
noise = torch.randn(2, 24, generator=torch.Generator().manual_seed(1))  # (b, d)


def row_sums(module):  # how far the weights of a query are from summing to 1
    return (module(x.clone(), attn_mask=causal)[1].sum(-1) - 1).abs().max()


def future(module):  # replace the last token: how far do earlier outputs move?
    later = x.clone()
    later[:, -1] = noise
    moved = module(later, attn_mask=causal)[0] - module(x.clone(), attn_mask=causal)[0]
    return moved[:, :-1].abs().max()


# %%
def order(module):  # permute the tokens: how far are outputs from being permuted?
    places = torch.tensor([3, 0, 4, 1, 2])
    return (module(x[:, places])[0] - module(x.clone())[0][:, places]).abs().max()


def company(module):  # one sequence at a time, or all at once
    alone = torch.cat([module(x[i : i + 1].clone())[0] for i in range(2)])
    return (module(x.clone())[0] - alone).abs().max()


def again(module):  # the same call twice, with one tensor
    tokens = x.clone()
    return (module(tokens)[0] - module(tokens)[0]).abs().max()


# %% tags=["nbval-ignore-output"]
KIT = {probe.__name__: probe for probe in (row_sums, future, order, company, again)}


def examine(**modules):
    rows = []
    for name, module in modules.items():
        module = deepcopy(module).eval()  # dropout off, and the caller's stays as it is
        rows.append([name, *(f"{probe(module):.0e}" for probe in KIT.values())])
    return plot.table(["", *KIT], rows)


examine(healthy=healthy())

# %% [markdown]
# `7e-08` is $7 \cdot 10^{-8}$, the rounding of float32. Below $10^{-5}$ counts as zero: the bugs of this notebook move what
# they move by some hundredths at least. A probe with a tolerance is a test, and so it would stand in your own code:


# %%
def test_the_future_stays_unseen(module):
    assert future(module.eval()) < 1e-5, "a later token moves an earlier output"


test_the_future_stays_unseen(healthy())

# %% [markdown]
# Five zeros do not prove health: you will meet patients that pass the whole kit. And a probe can strike where all is well: a
# module with positions inside moves under `order`, and should.
#
# **A second opinion.** Is there an implementation that you trust, and can you give it the same weights? Then compare outputs
# before all else. For a class with four matrices of the usual shapes that is torch's layer:


# %% tags=["nbval-ignore-output"]
def trusted(module):  # torch's layer with the weights of `module`
    theirs = nn.MultiheadAttention(24, 4, batch_first=True)
    matrices = [module.W_Q.weight, module.W_K.weight, module.W_V.weight]
    theirs.in_proj_weight.copy_(torch.cat(matrices))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.load_state_dict(module.W_O.state_dict())
    return theirs


for name, module in (("healthy", healthy()), ("patient C", patient_C)):
    off = (module(x)[0] - trusted(module)(x, x, x)[0]).abs().max()
    print(f"{name:<10} differs from torch's layer by {off:.0e}")

# %% [markdown]
# It says *that* something is wrong, not what.
#
# **Step by step.** Can you look inside? Then find the first step that differs. The healthy module, `clinic.Attention`, has one
# method per step (`Attention??` shows them all):

# %%
from inspect import getsource

print(getsource(Attention.forward))

# %% [markdown]
# A patient is the same class with one or two methods replaced. `CASES` holds them by name, `cured` gives a healthy module with
# a patient's weights, `twins` gives both, and `compare` goes through their steps. Bugs are numbered as *cases* in the order of
# this page: 10 on the way, 22 more in the appendix. Links lead to public threads.


# %%
def steps(module, mask=None):
    q, k, v = module.project(x, x, x)  # (b, h, n, d_k) each
    scores = module.scores(q, k)  # (b, h, n_q, n_k)
    weights = module.weights(scores, mask)
    merged = module.merge(weights @ v)  # (b, n_q, embed_dim)
    return {"q": q, "k": k, "scores": scores, "weights": weights, "merged": merged}


def compare(sick, mask=None):
    healthy_steps = steps(cured(sick), mask)
    for name, ill in steps(sick, mask).items():
        print(f"{name} {(ill - healthy_steps[name]).abs().max():.2f}", end="   ")
    print()


# %% [markdown] tags=["predict"]
# ## A · Too good to be true
#
# Patient A names every next digit, although an honest model would be right one time in ten.
#
# **Predict.** How can that be?
#
# - **a** it has learned sequences by heart
# - **b** an output sees the digit that it is to name
# - **c** 150 steps of training are enough to learn random digits

# %%
guess_too_good = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output"]
examine(patient_A=patient_A, healthy=healthy())

# %%
predict.too_good(guess_too_good)

# %% [markdown] tags=["predict"]
# ### Cases 1, 2, 3 · Three ways to see the future
#
# A causal mask can fail in more than one way. In the first module True is read as *blocked*. In the second the mask never
# reaches the scores. The third has its softmax first and then sets the weights of the future to exactly 0, so that no value
# of a later token can come through. **Predict.** Which of the three learn to name the next digit?


# %%
NAMES = ("mask_inverted", "mask_ignored", "mask_after_softmax")
sick = {name: twins(name)[0] for name in NAMES}
for name, module in sick.items():
    sums = module(x, attn_mask=causal)[1].sum(-1)
    print(f"{name:<18} broken: earlier outputs move by {future(module):.2f}", end="  ")
    print(f"smallest row sum {sums.min():.2f}")
print(f"{'':<18} fixed:  earlier outputs move by {future(cured(module)):.2f}")

# %% tags=["nbval-ignore-output"]
trained = {name: train(twins(name)[0]) for name in NAMES}
for name, (model, loss) in trained.items():
    print(f"{name:<18} loss {loss:.2f}, accuracy {accuracy(model):.2f}")

# %% [markdown] tags=["predict"]
# All three, and the third is the strangest. Its weights on the future are 0. But the future took its share of each row
# *before* it was removed, so that what is left sums to less than 1, and how much is missing depends on the digits that come.
# Is that how it cheats? Two changes to the trained model tell. The first leaves the weights in their proportions, and lets
# each row sum to what the same row of *another* sequence sums to. The second keeps the sum of each row, and makes its weights
# equal. **Predict.** What becomes of the accuracy?


# %%
Late = CASES["mask_after_softmax"].module


class SumsOfAnother(Late):
    def weights(self, scores, mask):
        weights = super().weights(scores, mask)  # (b, h, n_q, n_k)
        sums = weights.sum(-1, keepdim=True)  # (b, h, n_q, 1)
        return weights / sums * sums.roll(1, dims=0)


class SumsAlone(Late):
    def weights(self, scores, mask):
        sums = super().weights(scores, mask).sum(-1, keepdim=True)
        return sums * mask / mask.sum(-1, keepdim=True)


# %% tags=["nbval-ignore-output"]
model, _ = trained["mask_after_softmax"]
learned = model.attention.state_dict()
for told, kind in (
    ("as it is", Late),
    ("the sums of another sequence", SumsOfAnother),
    ("its own sums, equal weights", SumsAlone),
):
    model.attention = kind(24, 4)
    model.attention.load_state_dict(learned)
    print(f"{told:<28}: accuracy {accuracy(model):.2f}")

# %%
maps = [module(x, attn_mask=causal)[1][0, 0] for module in (*sick.values(), healthy())]
figure = plot.head_grid(torch.stack(maps), titles=[*NAMES, "fixed"], columns=2)

# %% [markdown]
# With the sums of another sequence it can only guess; its own sums alone tell it nearly all. So it does read the future off
# what is missing.
#
# **Cause.** The mask's meaning, its way to the scores, or its place in the order of steps. (Where the meaning is inverted,
# the last query may look nowhere. Its weights are all 0: that is the empty last row of the first map, and the `1e+00` under
# `row_sums` above.) **Fix.** Mask before the softmax, True = may attend, and keep `future` as a test of your own code.
#
# Patient A is the first of the three. It cost a reader of a tutorial many hours: the layer had been
# [replaced](https://github.com/tensorflow/text/pull/894) by the library's, whose mask means the opposite, and accuracy was
# 100 %, the loss near 0. In the code of a book the mask handed to torch's function
# [was inverted](https://github.com/rasbt/LLMs-from-scratch/issues/1061); with the repair came a test that changes the future.

# %% [markdown]
# ## B · Weights that never move
#
# After 150 steps $W_Q$, $W_K$ and $W_V$ of patient B stand where they stood. The kit?

# %% tags=["nbval-ignore-output"]
examine(patient_B=patient_B, healthy=healthy())

# %% [markdown] tags=["predict"]
# Nothing. Weights may stand still because they are frozen: they are used, and nobody trains them. Or they are not used.
# Another probe tells the two apart: poison what you suspect, and see what dies. (The same bug in a larger module, with 256
# features and 8 heads.)
#
# **Predict.** You set $W_Q$, $W_K$ and $W_V$ to NaN. What is the output?
#
# - **a** NaN everywhere
# - **b** the same as before
# - **c** NaN in some features

# %%
guess_poison = None  # "a", "b" or "c"

# %%
torch.manual_seed(0)
sick, batch = patients.patient("B", 256, 8), torch.randn(2, 10, 256)
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

# %% [markdown]
# ### Case 4 · Made and not used
#
# $W_Q$, $W_K$, $W_V$ are made in `__init__` and never called. Here they are `Linear(32, 256)`, hence 3 · 32 · 256 = 24,576
# parameters; the appendix shows that they would not even fit. So the tokens themselves are queries, keys and values, cut into
# heads. The score of $i$ asking $j$ is a product of slices of $x_i$ and $x_j$, and that is the same both ways:

# %%
fixed = healthy(256, 8)
with torch.enable_grad():
    fixed(batch)[0].square().sum().backward()
dead = sum(p.numel() for p in fixed.parameters() if p.grad is None)
print("fixed: parameters without a gradient:", dead)
for name, module in (("broken", sick), ("fixed ", fixed)):
    q, k, _ = module.project(batch, batch, batch)
    scores = module.scores(q, k)
    off = (scores - scores.transpose(-1, -2)).abs().max().item()
    print(f"{name}: score (i, j) and score (j, i) differ by up to {off:.4f}")

# %% [markdown]
# **Cause.** Matrices that nothing applies. **Fix.** Make them `Linear(256, 256)` and apply them, before the split. And look for
# parameters whose `.grad` is None after `backward`.

# %% [markdown] tags=["predict"]
# ## C · In company
#
# Patient C gave sequence 0 another output as soon as sequence 1 stood beside it. And alone, both sequences got one and the
# same output.
#
# **Predict.** What does it have?
#
# - **a** dropout that is still on
# - **b** a mean along the wrong axis
# - **c** a padding mask that reaches the wrong sequence

# %%
guess_company = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output"]
examine(patient_C=patient_C, cured=cured(patient_C))

# %%
compare(patient_C)

# %%
predict.company(guess_company)

# %% [markdown] tags=["predict"]
# ### Case 5 · The axis that was the tokens
#
# All steps are right up to the weights. The first that differs is `merge`: there somebody had written `x - x.mean(0)`, when axis
# 0 was the tokens. Now it is the batch. **Predict.** Two sequences, each alone, got one output. Which parameter of the module
# is that output?

# %%
calls = {"sequence 0": x[:1], "sequence 1": x[1:]}
calls["three copies"] = x[:1].repeat(3, 1, 1)
for name, module in (("broken", patient_C), ("fixed ", cured(patient_C))):
    spread = [
        f"{told} {(module(batch)[0] - module.W_O.bias).abs().max():.2f}"
        for told, batch in calls.items()
    ]
    print(f"{name}: from the bias of W_O:", ", ".join(spread))

# %% [markdown]
# A sequence alone is its own mean, and so is each of three copies. What is left is 0, for *every* sequence, and the bias of
# $W_O$ is all that comes out. A test which calls it twice with one sequence and compares would be content. **Fix.** Leave it
# out. (`mean(-2)` was meant, but a mean over all tokens holds the later ones: under a causal mask `future` would strike.) And a
# test that runs two different sequences, alone and in a batch.

# %% [markdown]
# ## D · Pale
#
# Patient D has just come in. Its maps look washed out, as if it could not make up its mind. Here is its first head on five
# random tokens, beside a healthy module with the same weights. (The tokens are twice as long as usual, so that the two maps
# differ more.)


# %%
def beside(broken, fixed, **more):
    maps, titles = torch.stack([broken, fixed]), ["broken", "fixed"]
    return plot.head_grid(maps, titles=titles, **more)


patient_D = patients.patient("D")
figure = beside(patient_D(2 * x)[1][0, 0], cured(patient_D)(2 * x)[1][0, 0])

# %% tags=["nbval-ignore-output"]
examine(patient_D=patient_D)

# %% [markdown] tags=["predict"]
# **Predict.** What makes it pale?
#
# - **a** its softmax runs over the queries
# - **b** its scores are divided by too much
# - **c** its mask lets too many keys in

# %%
guess_pale = None  # "a", "b" or "c"

# %%
predict.pale(guess_pale)

# %% [markdown]
# ### Case 6 · The wrong width
#
# Two of the zeros exclude the other answers. `row_sums`: a softmax over the queries would make columns sum to 1, and not rows.
# `future`: with a mask, no key comes in that should stay out. The kit has no probe for the size of the scores. Go through the
# steps, and divide the scores of both:

# %%
compare(patient_D)
ratio = steps(patient_D)["scores"] / steps(cured(patient_D))["scores"]
print(f"scores: {ratio.min():.4f} to {ratio.max():.4f} times the healthy ones")

# %% [markdown]
# All scores are half of what they should be. The width of the module is 24, that of a head 6, and $\sqrt{6} / \sqrt{24}$ is one
# half. **Cause.** `sqrt(embed_dim)`: the width of the tokens in place of the width of one head, as in section 5 of notebook 06.
# With one head both are the same, so a test with one head passes. **Fix.** Divide after the split, by `q.shape[-1] ** 0.5`.
#
# In the code of a well-known video lecture this was
# [reported and mended](https://github.com/karpathy/ng-video-lecture/pull/6) early in 2023; three years later a reader
# [found it again](https://github.com/karpathy/ng-video-lecture/issues/55), in the notebook that goes with the video.

# %% [markdown]
# ## E · A green test
#
# Patient E comes with a test that passes: on the identity example of notebook 02 its formula gives what attention must
# give. These are the weights of its first head for five other tokens.

# %%
patient_E = patients.patient("E")
figure = plot.attention_heatmap(patient_E(2 * x)[1][0, 0])

# %% [markdown] tags=["predict"]
# **Predict.** What does this module do? The numbers in the map suffice.
#
# - **a** it rounds its weights
# - **b** its softmax runs along the wrong axis
# - **c** it takes keys away after the softmax

# %%
guess_sums = None  # "a", "b" or "c"

# %%
weights = patient_E(2 * x)[1][0, 0]  # (n_q, n_k)
print("sums of the rows:   ", weights.sum(-1).numpy().round(2))
print("sums of the columns:", weights.sum(-2).numpy().round(2))

# %%
predict.sums(guess_sums)

# %% [markdown] tags=["predict"]
# ### Case 7 · What its test could see
#
# **Predict.** Three worked examples of notebook 02: the identity, the one by hand, the asymmetric one. The first two have
# symmetric scores. Which of them would notice a softmax over the queries, and which that $Q$ and $K$ were swapped?


# %%
def off_by(right, Q, K, V, axis=-1):
    weights = al.softmax(Q @ K.T / Q.shape[-1] ** 0.5, axis)
    return np.abs(weights @ V - right).max()


examples = {"identity": IDENTITY, "by hand": BY_HAND, "asymmetric": ASYMMETRIC}
for name, case in examples.items():
    q, k, v = case.project()
    right = al.scaled_dot_product_attention(q, k, v)
    wrong_axis = off_by(right, q, k, v, axis=0)
    print(f"{name:<11} over queries: off by {wrong_axis:.4f}", end="")
    print(f"   Q and K swapped: {off_by(right, k, q, v):.4f}", end="")
    print(f"   fixed: {off_by(right, q, k, v):.4f}")

# %% [markdown]
# **Cause.** Symmetric scores hide one mistake: with $Q$ and $K$ swapped they are transposed, and stay the same. The axis of
# the softmax they hide only where, as in the identity, all rows have the same sum of exponentials, too. **Fix.** `axis=-1`,
# and a test without such symmetries. For any module, of whatever size: do the weights of each query sum to 1?

# %% [markdown]
# ## F · A class with the right shape
#
# The last arrival. You have probably met this class: it stands, with small changes, in many tutorials
# ([S0](../REFERENCES.md#s0)). Read it slowly. Four or five things in it should catch your eye by now.


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
        v, k, q = self.to_v(v), self.to_k(k), self.to_q(q)
        scores = q @ k.transpose(-1, -2)  # (b, h, n, n)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e20)
        self.weights = (scores / (self.h * self.d_k) ** 0.5).softmax(-1)
        return self.out((self.weights @ v).transpose(1, 2).flatten(2))


# %% [markdown] tags=["predict"]
# Its usual demonstration hands in three tensors from `torch.rand`, numbers between 0 and 1, of shape (32, 10, 256). It prints
# the shape of the output, which is right. **Predict.** What do the weights look like?
#
# - **a** a few large ones in each row
# - **b** large on the diagonal: each token looks at itself
# - **c** all nearly equal

# %%
guess_demonstration = None  # "a", "b" or "c"


# %%
def spread(weights):
    return f"{weights.min():.3f} to {weights.max():.3f}"


torch.manual_seed(0)
tutorial = TutorialAttention(256, 8)
v, k, q = (torch.rand(32, 10, 256) for _ in range(3))  # between 0 and 1, unrelated
print("output", tuple(tutorial(v, k, q).shape), "weights", spread(tutorial.weights))

# %%
predict.demonstration(guess_demonstration)

# %%
normal = torch.randn(3, 32, 10, 256)  # unrelated as well, of variance 1
modules = {"sqrt(d_k)": Attention(256, 8)}
modules["sqrt(embed_dim)"] = CASES["scale_by_embed_dim"].module(256, 8)
for name, module in modules.items():
    print(f"divided by {name}")
    drawn = {"rand": (q, k, v), "rand - 0.5": (q - 0.5, k - 0.5, v - 0.5)}
    for kind, three in (drawn | {"randn": normal}).items():
        print(f"    three {kind + ':':<11}", spread(module(*three)[1]))

# %% [markdown]
# ### Case 8 · A demonstration that demonstrates nothing
#
# Ten equal weights would be 0.1 each. The two modules of the last cell draw their weights in the same way and differ in their
# divisor. Small inputs narrow the range: numbers between 0 and 1 have a variance of 1/12. (Their mean of 1/2 widens it again:
# without it the range is half as wide.) The large divisor narrows it as well. Both together give nearly 0.1 everywhere. **Fix.**
# Show one sequence in all three places, of variance 1, and look at the weights: a shape proves nothing.

# %% [markdown]
# ### Case 9 · Three small matrices
#
# Count the parameters of the three projections, here and in a healthy module of width 256 with 8 heads:

# %%
fixed = healthy(256, 8)
small = (tutorial.to_q, tutorial.to_k, tutorial.to_v)
few = sum(linear.weight.numel() for linear in small)
many = sum(linear.weight.numel() for linear in (fixed.W_Q, fixed.W_K, fixed.W_V))
print(f"projection parameters: {few} instead of {many}")

# %% [markdown]
# What does that cost? A token that repeats one slice of 32 features eight times looks the same to all heads:

# %%
slices = torch.randn(1, 10, 32, generator=torch.Generator().manual_seed(0))
tiled = slices.repeat(1, 1, 8)  # the same slice eight times
tutorial(tiled, tiled, tiled)
for name, weights in (("broken", tutorial.weights), ("fixed ", fixed(tiled)[1])):
    print(f"{name}: heads differ by {(weights - weights[:, :1]).abs().max():.6f}")

# %% [markdown]
# **Cause.** `Linear(d_k, d_k)` after the split. Each head sees an eighth of each token, through the same matrix as all
# others. As a design that saves parameters one could want it; it is not what the paper describes. **Fix.**
# `Linear(d_model, d_model)` before the split.

# %% [markdown]
# ### Case 10 · Called as everybody calls it
#
# Everybody calls attention as `m(query, key, value)`. The class wants `(values, keys, query)`:

# %%
torch.manual_seed(1)
tutorial, generator = TutorialAttention(256, 8), torch.Generator().manual_seed(1)
q, k, v = torch.randn(3, 1, 10, 256, generator=generator)
right = tutorial(v, k, q)
off = (tutorial(q, k, v) - right).abs().max()
print(f"broken, m(q, k, v): no error, output differs by {off:.2f}")
off = (tutorial(query=q, keys=k, values=v) - right).abs().max().item()
print("fixed,  m(query=q, keys=k, values=v): differs by", off)

# %% [markdown]
# **Cause.** Three tensors of one shape in another order. **Fix.** The order query, key, value in what you write; names in
# what you call.

# %% [markdown]
# So this is what could have caught your eye:
#
# | line | case |
# |---|---|
# | `Linear(self.d_k, self.d_k)` | 9: small matrices, shared by all heads |
# | `forward(self, values, keys, query, ...)` | 10: another order than everybody's |
# | `masked_fill(mask == 0, ...)`, on a mask of any shape | 11 of the appendix: a padding mask read as queries |
# | `-1e20` | 12 and 13 of the appendix: uniform where all is forbidden, no float16 |
# | `(self.h * self.d_k) ** 0.5` | 6: the wrong width |
#
# `diagnose` runs such probes on a module in torch, whatever its code says. It follows the tensors from the inputs to the
# weights, so that it needs neither names nor a returned map. Its report has twenty lines; in these there is something to look
# at:

# %%
from textwrap import fill, indent

torch.manual_seed(0)
for found in diagnose(TutorialAttention(24, 4), embed_dim=24, num_heads=4):
    if found.look_at:
        print(f"{found.probe}: {found.verdict}")
        print(indent(fill(f"{found.measured}; look at: {found.look_at}", 76), "    "))

# %% [markdown]
# *Wrong* is what no good module does on purpose, *beware* what some do. Case 11 is not among them: a mask of the right shape
# works.

# %% [markdown]
# ## All probes at once
#
# Which probe of `diagnose` catches which of these cases?

# %%
MET = {1: "mask_inverted", 2: "mask_ignored", 3: "mask_after_softmax"}
MET |= {4: "projections_unused", 5: "centred_over_batch", 6: "scale_by_embed_dim"}
MET |= {7: "softmax_over_queries", 9: "shared_small_projection"}
MET |= {10: "swapped_query_value"}
for case, name in MET.items():
    torch.manual_seed(0)
    report = diagnose(CASES[name].module(24, 4), embed_dim=24, num_heads=4)
    found = [finding.probe for finding in report if finding.look_at]
    print(f"case {case:>2} {name:<24} caught by: {', '.join(found)}")

# %% [markdown]
# (Case 8 is no module, but a way of calling one.) Case 3 is caught by its row sums alone, though it lets the future in. Where
# rows do not sum to 1, `diagnose` says *could not tell* of causality, padding and the other masks: first see to the rows.

# %% [markdown] tags=["predict"]
# ## Break it
#
# Two bugs at once can hide each other. **Predict.** The patient below divides by $\sqrt{d_{model}}$, with 4 heads. To make up
# for it somebody doubled its $W_Q$. How far are its weights and its outputs from those of a healthy module that has the $W_Q$
# of before? What does `diagnose` say?

# %%
sick, fixed = twins("scale_by_embed_dim")
sick.W_Q.weight.mul_(2)
for told, i in (("outputs", 0), ("weights", 1)):
    print(f"{told} differ by {(sick(x)[i] - fixed(x)[i]).abs().max():.4f}")
print(diagnose(sick, embed_dim=24, num_heads=4)["score scale"].measured)

# %% [markdown]
# With 4 heads $\sqrt{d_{model}}$ is twice $\sqrt{d_k}$, and twice $W_Q$ makes up for it. All numbers are right, the code is not:
# with fresh weights it is as ill as before. A probe that looks at the factor itself is not fooled.

# %% [markdown]
# ## Exercises
#
# Three patients: `patients.patient(1)` to `patients.patient(3)`, with the weights of `healthy()`. Write the name of the bug as a
# string: `sorted(CASES)` shows all names, and most of them this page has not told. `diagnose` says that a module is ill and
# where it shows; which bug it is, it does not know: patients 2 and 3 get the same report.
#
# A name can be guessed, so it is judged only with a probe: a function that takes a module and returns a number, 0 for
# `healthy()` and not for the patient. It is tried on the other bugs of `CASES`, too, and must give 0 there, so `future` will
# not do: it strikes for many. A probe may say `if`, and may return 1.0 or 0.0. `verdict.hint()` gives a hint, each call one step
# further.

# %% [markdown] tags=["exercise"]
# ### Exercise 7.1 · A first patient
#
# **Goal.** Name the bug of patient 1, and show it by a probe. *5 minutes, easy.*
#
# It passes the whole kit. Its makers used it on pairs of sentences, and it translated as if it had never seen the other one.
# (Does something *not* move that should? Then turn the probe round: 1.0 where nothing moves, else 0.0.)

# %%
my_patient_1 = None  # a name from CASES
my_probe_1 = None  # a function of a module

# %%
verdict = patients.name_bug(1, my_patient_1, my_probe_1)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_probe_1(module):  # another context: 1.0 if that changes nothing
#     one, other = torch.randn(2, 2, 7, 24)
#     moved = (module(x.clone(), one)[0] - module(x.clone(), other)[0]).abs().max()
#     return 1.0 if moved < 1e-5 else 0.0
#
# my_patient_1 = "context_ignored"
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 7.2 · Behind a mask
#
# **Goal.** Name the bug of patient 2, and show it by a probe. *6 minutes, medium.*
#
# Draw the weights of its first head, as in all pictures above, and with the causal mask: nothing wrong. Yet the probe `future`
# strikes.

# %%
my_patient_2 = None  # a name from CASES
my_probe_2 = None  # a function of a module

# %%
verdict = patients.name_bug(2, my_patient_2, my_probe_2)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_probe_2(module):  # the largest weight on the future, where the first head has none
#     future_weights = module(x.clone(), attn_mask=causal)[1].triu(1)  # (b, h, n_q, n_k)
#     leak = future_weights.amax((0, 2, 3))  # (h,): 0 in the first head, and in no other head
#     return leak.max() if leak[0] == 0 else 0.0
#
# my_patient_2 = "one_mask_for_first_head_only"
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 7.3 · Pale again
#
# **Goal.** Name the bug of patient 3, and show it by a probe. *6 minutes, medium.*
#
# Its maps are pale, like those of patient D, but `compare` finds its scores right. Use the causal mask, too.

# %%
my_patient_3 = None  # a name from CASES
my_probe_3 = None  # a function of a module

# %%
verdict = patients.name_bug(3, my_patient_3, my_probe_3)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # Query 0 may look at itself alone: its weights should be 1, 0, 0, 0, 0.
# patients.patient(3)(x, attn_mask=causal)[1][0, 0, 0]  # 0.40, and four times 0.15
# # What makes 0.40 of 1 and 0.15 of 0? exp(1) = e and exp(0) = 1, their sum is e + 4:
# np.e / (np.e + 4), 1 / (np.e + 4)  # 0.4046, 0.1488: a softmax of the weights
# def my_probe_3(module):
#     row = module(x.clone(), attn_mask=causal)[1][0, 0, 0]
#     twice = torch.tensor([1.0, 0, 0, 0, 0]).softmax(-1)
#     return 1.0 if (row - twice).abs().max() < 1e-5 else 0.0
#
# my_patient_3 = "double_softmax"
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 7.4 · A probe of your own
#
# **Goal.** Write a probe: does a token that nobody may look at move the others? *14 minutes, hard.*
#
# `my_probe(module, x)` gets a module that is called as `module(x, attn_mask=mask)[0]`, with a mask of shape $(n, n)$, and
# tokens `x` of shape $(b, n, d)$ of any size. It returns a number: how far the outputs of the other tokens move when a token
# changes that is blocked for all. The check tries it on modules whose masks work, where it must give 0, and on modules that
# leak. Some of these leak one token only, or only under masks that are not causal: `future` does not see them.


# %%
def my_probe(module, x):
    return ...  # your code


# %%
verdict = patients.try_probe(my_probe)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_probe(module, x):
#     n, moved = x.shape[1], []
#     for blocked in range(n):  # each in turn: a leak may let in one token only
#         mask = torch.ones(n, n, dtype=torch.bool)  # (n_q, n_k), True = may attend
#         mask[:, blocked] = False  # nobody may look at it
#         other = x.clone()
#         other[:, blocked] = torch.randn_like(x[:, blocked])  # noise: a LayerNorm hides a + 1
#         off = module(other, attn_mask=mask)[0] - module(x.clone(), attn_mask=mask)[0]
#         off[:, blocked] = 0  # its own output may move: it still asks
#         moved.append(off.abs().max())
#     return max(moved).item()
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Mend `TutorialAttention`, line by line of the table, until `diagnose(..., embed_dim=24, num_heads=4)` finds nothing. (It
#    takes `.nan_to_num()` after the softmax, too.)
# 2. `diagnose(nn.MultiheadAttention(24, 4, batch_first=True), embed_dim=24, num_heads=4)`. What does "beware" mean there?
#    (A fully masked row gives NaN: PyTorch's own choice.)
# 3. Make a patient with two bugs, `type("Both", (CASES[a].module, CASES[b].module), {})`, with two names for `a` and `b`, and
#    give it to a friend. (Where both replace the same method, the second may not show: see whether `diagnose` finds both.)
# 4. Choose five tokens for which `softmax_over_queries` gives the output of a healthy module. (Make all of them equal.)
#
# **Remember.** A shape proves nothing. A probe measures what must hold or must not move: row sums, the future, the order, the
# company, the second call, NaN in a parameter. Where there is an implementation that you trust, compare first; where you can
# look inside, find the first step that differs. Use sizes that differ and scores that are not symmetric. Keep each probe as a
# test, with a tolerance. Next: [08 train and look](08_train_and_look.ipynb).

# %% [markdown]
# ## Appendix · Where the bugs were found
#
# The main path ends here. Most patients come from five public texts on self-attention
# ([their names](../REFERENCES.md#the-five-texts)); the others are common ones. The
# [threads](../REFERENCES.md#threads) are listed, too.
#
# | | text | cases |
# |---|---|---|
# | S0 | a PyTorch class with several heads | 6, 8, 9, 10, 11, 12, 13 |
# | S1 | the same text in NumPy | 5, 7, 21, 22, 30 |
# | S2 | a Colab notebook with a class | 4, 6, 12 |
# | S3 | an example by hand | 23, 25, 32 |
# | S4 | a lecture on trainable weights | 24, 26, 27, 28, 29, 31 |

# %% [markdown]
# ## Appendix · More on cases 1, 4, 6 and 9
#
# ### Case 1 · A second opinion on patient A
#
# What does torch's layer say of it? (torch means the opposite by True, hence `~causal`.)

# %% tags=["nbval-ignore-output"]
theirs = trusted(patient_A)
alone = patient_A(x)[0] - theirs(x, x, x)[0]
masked = patient_A(x, attn_mask=causal)[0] - theirs(x, x, x, attn_mask=~causal)[0]
print(f"from torch's layer, without a mask {alone.abs().max():.0e}", end=", ")
print(f"with a causal one {masked.abs().max():.0e}")

# %% [markdown]
# Without a mask both agree up to rounding. Compare with every argument that you use.

# %% [markdown]
# ### A relative of case 1 · 0 and −∞, where 1 and 0 are expected
#
# In a course one module [built a mask](https://github.com/harvard-edge/cs249r_book/pull/1785) to be added, 0 and $-\infty$, for
# another one that expected 1 and 0, and turned it into $(1 - \text{mask}) \cdot (-10^9)$. Does that let the future in?

# %%
scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))  # (n_q, n_k)
mask = torch.zeros(5, 5).masked_fill(~causal, -torch.inf)  # to be added: 0 = may attend
handed = scores + (1 - mask) * -1e9
print(handed.softmax(-1).numpy().round(2))
print("next to 1e9, float32 has steps of", np.spacing(np.float32(1e9)))

# %% [markdown]
# No: $1 - (-\infty)$ times $-10^9$ is $-\infty$ again, and the future stays out. But $10^9$ is taken from every score that is
# allowed. In float32 a score smaller than half a step is lost then, so tokens with scores below 32 all get this map. Shapes were
# checked there, and shapes were right.

# %% [markdown]
# ### Case 4 · Matrices that would not fit
#
# The unused projections are `Linear(32, 256)`, and nobody saw that this does not fit:

# %%
sick, batch = patients.patient("B", 256, 8), torch.randn(2, 10, 256)
try:
    sick.W_Q(batch)  # a token has 256 features
except RuntimeError as error:
    print("before the split, RuntimeError:", error, sep="\n  ")
v = sick.W_V(sick.split(batch))  # (b, h, n, 32) becomes (b, h, n, 256)
try:
    sick.W_O(sick.merge(v))
except RuntimeError as error:
    print("after the split, in W_O, RuntimeError:", error, sep="\n  ")

# %% [markdown]
# ### Case 6 · Heads are added
#
# The repair of the divisor was [proposed](https://github.com/aladdinpersson/Machine-Learning-Collection/pull/159) for the class
# of part F, too.
#
# With 64 features and $h$ heads the right divisor is $\sqrt{64/h}$, and the wrong one stays 8. What becomes of the two maps
# as heads are added? Move the slider.

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
view = live.weights_view(first_head, num_heads=choices, still=(1, 8, 32))
view

# %% [markdown]
# The first map fades: with $h$ heads its scores are $\sqrt h$ times too small. With one head the two maps are the same.

# %% [markdown]
# ### Case 9 · What a head never sees
#
# A loss on the first head alone has no gradient on what lies outside its slice.

# %%
torch.manual_seed(0)
tutorial, fixed = TutorialAttention(256, 8), healthy(256, 8)
tokens = torch.randn(1, 10, 256, generator=torch.Generator().manual_seed(0))
for name, module in (("broken", tutorial), ("fixed ", fixed)):
    with torch.enable_grad():
        tokens = tokens.detach().requires_grad_()
        output = module(tokens, tokens, tokens)
        weights = output[1] if name == "fixed " else module.weights
        weights[0, 0].square().sum().backward()  # a loss on the first head
    outside = tokens.grad[..., 32:].abs().max().item()
    print(f"{name}: gradient of head 1 outside its slice: {outside:.1e}")

# %% [markdown]
# ## Appendix · Twelve more patients
#
# Masks, second calls, heads and axes: most are old acquaintances of notebooks 02, 05 and 06, in other clothes.

# %% [markdown]
# ### Case 11 · The mask from the tokenizer
#
# **You see** a padding mask of shape $(b, n)$, as a tokenizer gives it, handed in as it is: ten sequences of ten tokens, and no
# error (section 6 of notebook 05). What are its rows and columns taken for?

# %%
torch.manual_seed(11)
tutorial, generator = TutorialAttention(256, 8), torch.Generator().manual_seed(11)
batch = torch.rand(10, 10, 256, generator=generator)  # (b, n, d)
padding = torch.arange(10) < torch.arange(1, 11)[:, None]  # (b, n): i + 1 tokens in i
maps, outputs = [], []
for mask in (padding, padding[:, None, None, :]):  # as it is; (b, 1, 1, n_k)
    outputs.append(tutorial(batch, batch, batch, mask))
    maps.append(tutorial.weights[2, 0, :5, :5])
off = (outputs[0] - outputs[1]).abs().max()
print(f"(b, n) mask with b = n = 10: no error, output differs by {off:.2f}")
figure = beside(*maps)

# %% [markdown]
# **Cause.** The last two axes of the scores are queries and keys, so the mask of ten sequences is read as the mask of ten
# queries. The picture shows sequence 2, which has three tokens: the broken map is causal, the fixed one hides columns. **Fix.**
# `padding[:, None, None, :]`: say which axes are missing.
#
# One more line of the class is ill, the one with `-1e20`. It shows where a mask forbids everything, and in half precision:

# %%
tutorial(batch, batch, batch, torch.zeros(10, 10))
least = tutorial.weights.min()
print(f"a mask of zeros: every weight is {least:.1f}, on keys that are all forbidden")
try:
    half = batch.half()
    deepcopy(tutorial).half()(half, half, half, padding)
except RuntimeError as error:
    print("float16: RuntimeError:", error)

# %% [markdown]
# ### A relative of case 11 · repeat or repeat_interleave
#
# torch's `nn.MultiheadAttention` takes a mask for each sequence and head, $(b \cdot h, n_q, n_k)$. Two calls make one of the
# masks of the sequences, and only one of them gives the first head of sequence 1 its own mask:

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(24, 4, batch_first=True)
# (b, n_q, n_k), True = blocked: sequence 1 has three tokens
blocked = torch.from_numpy(al.to_blocked(al.padding_mask([5, 3], 5))).expand(2, 5, 5)
masks = {"repeat": blocked.repeat(4, 1, 1)}
masks["repeat_interleave"] = blocked.repeat_interleave(4, dim=0)
for name, mask in masks.items():
    _, w = theirs(
        x, x, x, attn_mask=mask, average_attn_weights=False
    )  # (b, h, n_q, n_k)
    share = w[1, :, :, 3:].sum(-1).mean(-1)  # of sequence 1, by head
    print(f"{name:<17} weight on padding in heads 1 to 4: {share.numpy().round(2)}")

# %% [markdown]
# `repeat` lays the masks out as 0, 1, 0, 1, ..., and torch reads the first four as those of sequence 0: every other head got
# the mask of the other sequence. [Five files of one library](https://github.com/line/lighthouse/pull/77) had it. A sequence
# alone in its batch was right.

# %% [markdown]
# ### Case 12 · A row that may look nowhere
#
# **You see** `masked_fill(mask == 0, -1e20)`, and it works. Now one query has all ten keys blocked. What are its weights?

# %%
sick, fixed = twins("finite_fill")
ten = torch.randn(1, 10, 24, generator=torch.Generator().manual_seed(0))
mask = torch.ones(10, 10, dtype=torch.bool)
mask[1] = False  # query 1 may look nowhere
maps = [module(ten, attn_mask=mask)[1][0, 0] for module in (sick, fixed)]
print("broken", maps[0][1].numpy().round(4))
print("fixed ", maps[1][1].numpy().round(4))
figure = beside(*(weights[:4] for weights in maps))

# %% [markdown]
# **Cause.** A softmax sees differences only, and all ten scores are the same. **Fix.** Fill with $-\infty$ and set a
# fully masked row to 0.

# %% [markdown]
# ### Case 13 · Only in half precision
#
# **You see** a crash on the GPU, where the model runs in half precision, that never came on the CPU, where it runs in
# float32. Which number in the module of case 12 does not fit?

# %%
half = ten.half()
try:
    sick.half()(half, attn_mask=mask)
except RuntimeError as error:
    print("broken: RuntimeError:", error)
output, _ = fixed.half()(half, attn_mask=mask)
print(
    "fixed:  outputs that are not finite:", (~output.isfinite()).sum().item(), end="   "
)
print("largest float16:", torch.finfo(torch.float16).max)

# %% [markdown]
# **Cause.** -1e20 is no float16. **Fix.** $-\infty$ is.

# %% [markdown]
# ### Case 14 · A finite loss
#
# So fill with $-\infty$. A row that may look nowhere is then 0 / 0, which is NaN. You know that, and leave this output out of
# your loss. The loss is finite. Which of $W_Q$, $W_K$, $W_V$, $W_O$ are lost after one step? Does it matter whether
# $-\infty$ is filled in or added?

# %%
kept = torch.arange(10) != 1  # all queries but the one that may look nowhere


def gradients(module):
    with torch.enable_grad():
        loss = module(ten, attn_mask=mask)[0][:, kept].square().mean()
        loss.backward()
    nan = {name[:3] for name, p in module.named_parameters() if p.grad.isnan().any()}
    return (
        f"loss {loss:.4f}, NaN in the gradients of: {', '.join(sorted(nan)) or 'none'}"
    )


sick, fixed = twins("nan_on_fully_masked")
print("filled:               ", gradients(sick))
print("filled, nan_to_num:   ", gradients(fixed))

# %%
from functools import partial


def added(self, scores, mask):  # -inf is added, where the healthy module fills
    return scores + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


for name, module in zip(("added:", "added, nan_to_num:"), twins("nan_on_fully_masked")):
    module.mask = partial(added, module)  # in place of its own method
    print(f"{name:<22}", gradients(module))

# %% [markdown]
# **Cause.** The gradient of an output that was left out is 0, and on its way back it is multiplied by the NaN of that row:
# 0 · NaN is NaN. One dead row poisons matrices that all rows share. A
# [thread](https://github.com/pytorch/pytorch/issues/41508) about torch's own module is open since 2020.
#
# | the mask is | without `nan_to_num` | with it |
# |---|---|---|
# | filled in | NaN in $W_V$ and $W_O$: they multiply the NaN of the weights | none |
# | added | NaN in all four | NaN in $W_Q$ and $W_K$: softmax multiplies by its NaN on the way back, and the sum hands it on |
#
# **Fix.** Both: `masked_fill` before the softmax, `.nan_to_num()` after it. The second keeps NaN from the values and from
# $W_O$. The first keeps it from queries and keys: `masked_fill` does not multiply, it hands back a 0 to every score that it
# filled.

# %% [markdown]
# ### Case 15 · Three new tokens
#
# **You see** code that is right for five tokens that ask five. Now the first two are known, and only the last three ask all
# five. One line of it must know $n_q$ *and* $n_k$; and that the shape of the mask fits is not enough:

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
# **Cause.** Only where all tokens ask are there as many keys as queries. **Fix.** A mask is $(n_q, n_k)$, always, and queries
# that continue a sequence stand at its end: the lower right (notebook 05). Somebody who wrote text with torch's
# `is_causal` [got the same vector](https://github.com/pytorch/pytorch/issues/144858) for every new token: a single query,
# lined up at the upper left, sees the first key and no other.

# %% [markdown]
# ### Cases 16, 17 · The second call
#
# **You see** results that differ when a cell is run twice. Two modules have this symptom. What would you
# compare to tell them apart?

# %%
torch.manual_seed(0)
for name in ("dropout_always", "mutates_input"):
    for state, module in zip(("broken", "fixed "), twins(name)):
        tokens = x.clone()
        first, second = (module.eval()(tokens)[0] for _ in range(2))
        differ, moved = (first - second).abs().max(), (tokens - x).abs().max()
        print(f"{name:<14} {state}: second call differs by {differ:.2f}", end="   ")
        print(f"input has moved by {moved:.2f}")

# %%
torch.manual_seed(0)
sums = twins("dropout_always")[0].eval()(x)[1].sum(-1)
print(f"row sums with dropout on the weights: {sums.min():.2f} to {sums.max():.2f}")

# %% [markdown]
# **Cause.** `nn.functional.dropout(w, 0.1)` drops in eval mode, too; `query /= ...` writes into the caller's tensor. **Fix.**
# `training=self.training`; `query = query / ...`. The row sums answer what a reader of a video lecture
# [asked in public](https://github.com/karpathy/ng-video-lecture/issues/30): after dropout a row may sum to more than 1. What is
# not dropped is divided by 0.9, so that a row sums to 1 on average over many draws. In training that is meant so; in eval
# mode it is the bug.

# %% [markdown]
# ### Case 18 · Four heads, one map
#
# **You see** heads that were all started from one matrix. Does training tell them apart?

# %%
torch.manual_seed(1)
sick, fixed = CASES["copied_heads"].module(24, 4), Attention(24, 4)
for name, module in (("broken", sick), ("fixed ", fixed)):
    w = module(x)[1]
    same = sum((w[:, i] - w[:, 0]).abs().max() < 1e-6 for i in (1, 2, 3))
    print(f"{name}: heads 2 to 4 with the weights of head 1: {same} of 3")


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
    return (w - w[:, :1]).abs().max().item()  # how far a head is from the first


# %% tags=["nbval-ignore-output"]
alike = CASES["copied_heads"].module(24, 4)
alike.W_O.weight.copy_(alike.W_O.weight[:, :6].repeat(1, 4))  # W_O copied as well
print(f"copied heads after 5 steps: differ by {train_a_little(sick):.2f}")
print(f"W_O copied, too:            differ by {train_a_little(alike):.2f}")

# %% [markdown]
# **Cause.** Equal matrices give equal weights of attention. But each head has its own rows of $W_O$ (columns of `W_O.weight`), so each gets its own
# gradient, and a few steps tell the heads apart. Only if those are copies, too, no gradient ever does (dropout
# would). **Fix.** Draw every head's matrices anew.

# %% [markdown]
# ### Cases 19, 20 · Why not simply reshape?
#
# **You see** two modules whose shapes are right, and whose code is shorter by one `transpose`. The question why it is needed
# is [asked in public](https://github.com/harvardnlp/annotated-transformer/issues/118), too. One forgets it as it
# splits, one as it merges. In which does a head see all features, but only of some tokens? In which is the output of one
# token put together from the answers to several, all by one head? Do permuted
# tokens still give permuted outputs?

# %%
for name in ("split_without_transpose", "merge_without_transpose"):
    for state, module in zip(("broken", "fixed"), twins(name)):
        print(f"{name:<24} {state:<7} permuted or not: off by {order(module):.2f}")

# %%
token = torch.arange(6)[:, None].expand(6, 4)  # (n, d): to which token a number belongs
heads = torch.arange(6)[None, :, None].expand(2, 6, 2)  # (h, n, d_k): the same, split
fixed = token.reshape(6, 2, 2).transpose(0, 1)
print("split, tokens in head 1 of 2: broken", token.reshape(2, 6, 2)[0].tolist())
print("                              fixed ", fixed[0].tolist())
print("merged, tokens in output 0:   broken", heads.reshape(6, 4)[0].tolist())
print(
    "                              fixed ",
    heads.transpose(0, 1).reshape(6, 4)[0].tolist(),
)

# %% [markdown]
# **Cause.** `reshape` keeps the numbers in the order in which they stand in memory. So the first module hands head 1 *all*
# features of the first three tokens and calls them six tokens. The second makes output 0 of what head 1 says to tokens 0 and
# 1. **Fix.** reshape to $(n, h, d_k)$, then swap to $(h, n, d_k)$; merging swaps first, then reshapes.

# %% [markdown]
# ### Case 21 · Right until the batch came
#
# **You see** NumPy code with the comment "K is (batch, d_k)", and in it `K.shape[1]`, `K.T`, `axis=1`. It is right for one
# sequence, where K is (tokens, d_k). What happens with a batch of shape (3, 3, 3)? And with heads: which number
# does `shape[1]` take for $d_k = 6$ if `q` is (2, 4, 5, 6)?

# %%
cube = np.random.default_rng(0).normal(size=(3, 3, 3))  # (b, n, d)
e = np.exp(cube @ cube.T / np.sqrt(cube.shape[1]))
broken = (e / e.sum(axis=1, keepdims=True)) @ cube
fixed = al.scaled_dot_product_attention(cube, cube, cube)
off = np.abs(broken - fixed).max().round(2)
print("no error, shapes", broken.shape, fixed.shape, " largest difference:", off)
sick, fixed = twins("scale_by_first_axis")
q, _, _ = sick.project(x, x, x)  # (b, h, n, d_k) = (2, 4, 5, 6)
under_root = [round(module.divisor(q) ** 2) for module in (sick, fixed)]
print(
    "under the root, with 4 heads of d_k = 6: broken {}  fixed {}".format(*under_root)
)

# %% [markdown]
# **Cause.** `shape[1]` is $d_k$ in two dimensions, the tokens in three, the heads in four. `.T` turns round all axes at
# once, the batch too, and `axis=1` becomes the queries. **Fix.** Count from the end:
# `shape[-1]`, `swapaxes(-1, -2)`, `axis=-1`. And test with sizes that all differ: a cube hides everything.

# %% [markdown]
# ### Case 22 · After an hour of training
#
# **You see** NaN, suddenly, after an hour in which all was well. The softmax is `e = exp(scores)`, divided by its sum.
# In float64 `exp` overflows above 709. In the identity example, $Q$ and $K$ are multiplied by 31.6 or by 32. The
# largest score was $1/\sqrt 2$. Which factor is too much?

# %%
Q2, K2, V2 = IDENTITY.project()
for factor in (31.6, 32):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(factor**2 * Q2 @ K2.T / 2**0.5)
        broken = e / e.sum(axis=-1, keepdims=True) @ V2
    fixed = al.scaled_dot_product_attention(factor * Q2, factor * K2, V2)
    print(f"times {factor:<4}  broken {broken[0]}  fixed {fixed[0]}")

# %% [markdown]
# **Cause.** $32^2/\sqrt 2$ is 724, its `exp` is infinity, and infinity / infinity is NaN. (float32 overflows above 88.) **Fix.** Subtract
# the maximum of the row first: the weights stay the same, and no exponent is above 0.

# %% [markdown]
# ## Appendix · Ten footnotes
#
# Ten more cases from the five texts. Each is a sentence that is nearly true, or a step that is nearly right; most of them you
# have met where their subject was taught.

# %% [markdown]
# ### Case 23 · Only three features
#
# **You see** an example by hand that never divides. $d_k$ is only 3. By how much does the first weight change?

# %%
Q, K, V = BY_HAND.project()
maps = []
for name, scale in (("broken", 1.0), ("fixed ", None)):
    trace = al.attention_trace(Q, K, V, scale=scale)
    print(f"{name}: weights of query 0 {trace.weights[0].round(6)}")
    print(f"        output 0 {trace.output[0].round(6)}")
    maps.append(torch.from_numpy(trace.weights))
figure = beside(*maps)

# %% [markdown]
# **Cause.** The step is missing. **Fix.** Divide by $\sqrt 3$. torch's `scaled_dot_product_attention` is the second
# opinion.

# %% [markdown]
# ### Case 24 · "Scaling keeps the variance near 1"
#
# **You see** a claim. For which of three ways to draw $W_Q$ and $W_K$ does it hold?

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

# %% [markdown]
# ### Case 25 · A weight of 0.063
#
# **You see** softmax(2, 4, 4) written as [0, 0.5, 0.5]. How far off is the worst output?

# %%
weights = al.softmax(Q @ K.T)  # (n_q, n_k), not scaled, as in the text
rounded = np.array([[0, 0.5, 0.5], [0, 1, 0], [0, 0.9, 0.1]])
print("broken", *(rounded @ V).round(6).tolist(), sep="\n  ")
print("fixed", *(weights @ V).round(6).tolist(), sep="\n  ")
print(f"largest error: {np.abs(rounded @ V - weights @ V).max():.3f}")

# %% [markdown]
# **Cause.** A weight of 0.063 became 0. **Fix.** Round when you print.

# %% [markdown]
# ### Case 26 · A plot of the mean
#
# **You see** "without scaling, gradients vanish", and plot the mean gradient on $q$. Does the plot agree?

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

# %% [markdown]
# ### Case 27 · A square matrix
#
# **You see** weights moved from `X @ W` to nn.Linear. `W` is square. Does a missing `.T` raise an error?

# %%
W, token = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 0.0])
linear = nn.Linear(2, 2, bias=False)
for name, weight in (("broken, W  ", W), ("fixed,  W.T", W.T)):
    linear.weight.copy_(weight)
    print(f"{name}: linear(x) = {linear(token).tolist()}", end="   ")
    print(f"x W = {(token @ W).tolist()}")

# %% [markdown]
# **Cause.** nn.Linear stores (out, in). **Fix.** Copy `W.T`, and compare one output.

# %% [markdown]
# ### Case 28 · "nn.Linear starts as Xavier or Kaiming"
#
# **You see** a claim. The standard deviation of a fresh `nn.Linear(512, 64).weight`?

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

# %% [markdown]
# ### Case 29 · "Input and output have the same size"
#
# **You see** a count of parameters. One head of the original Transformer takes 512 features. How many come
# out?

# %%
print("broken, 512 -> 512:", 3 * 512 * 512, "parameters in W_Q, W_K, W_V of one head")
fixed = [nn.Linear(512, 64, bias=False) for _ in range(3)]
print("fixed,  512 -> 64: ", sum(linear.weight.numel() for linear in fixed))
print("8 heads of 64, merged:", 8 * 64)

# %% [markdown]
# **Cause.** The layer keeps the width; a head does not. **Fix.** $d_k = d_{model} / h$.

# %% [markdown]
# ### Case 30 · matmul or dot
#
# **You see** "use matmul, NOT dot", without a reason. Do they differ in 2-D?

# %%
rng = np.random.default_rng(0)
left, right = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
off = np.abs(left[0] @ right[0] - np.dot(left[0], right[0])).max()
print("2-D: differ by", off)
print("3-D: broken, dot", np.dot(left, right).shape, "  fixed, @", (left @ right).shape)

# %% [markdown]
# **Cause.** `dot` pairs every sequence with every other. **Fix.** `@`.

# %% [markdown]
# ### Case 31 · "Self-attention is scaled dot-product attention"
#
# **You see** two terms for one thing. Can the formula attend to another sequence?

# %%
# Q, K, V from one sequence; then K, V from another
three = np.random.default_rng(28).normal(size=(3, 8))  # (n, d)
self_attention = al.scaled_dot_product_attention(three, three, three)
cross_attention = al.scaled_dot_product_attention(three, five, five)
print("the same function:", self_attention.shape, cross_attention.shape)
print(f"outputs differ by {np.abs(self_attention - cross_attention).max():.2f}")

# %% [markdown]
# **Cause.** The formula says nothing about where $Q$, $K$, $V$ come from. **Fix.** Self-attention: from one sequence.
# Cross-attention: keys and values from another.

# %% [markdown]
# ### Case 32 · A text has bugs, too
#
# **You see** a recipe with "key, queue and value", no step for the outputs, and inputs that step 1 does not list.
# A recipe can be checked like a program: every name must be made before it is used. What is missing?

# %%
broken = {"key": "x W_K", "queue": "x W_Q", "value": "x W_V"}
broken |= {"scores": "query key", "weights": "scores"}
fixed = {"x": "", "W_Q": "", "W_K": "", "W_V": ""}
fixed |= {"query": "x W_Q", "key": "x W_K", "value": "x W_V"}
fixed |= {"scores": "query key", "weights": "scores", "output": "weights value"}
for name, recipe in (("broken", broken), ("fixed ", fixed)):
    made = list(recipe)
    used = [(step, word) for step in made for word in recipe[step].split()]
    missing = sorted({w for step, w in used if w not in made[: made.index(step)]})
    unused = sorted(set(made) - {word for _, word in used})
    print(f"{name}: used but never made: {missing}")
    print(f"        never used: {unused}")

# %% [markdown]
# **Cause.** Nobody ran the text. **Fix.** One term for one thing, and every step a cell.

# %% [markdown]
# ## Appendix · Two suspects that are healthy
#
# **All on the first token.** A map in which a whole column is bright looks broken, and people
# [ask about it](https://github.com/jessevig/bertviz/issues/84). With a causal mask the first query has nothing else to look at,
# in any model; why heads of a trained model park there, notebook 09 measures.
#
# **Two ways to pair features.** Rotary position embeddings turn pairs of features by an angle that grows with the place
# (notebook 12). Some code pairs neighbours, some the two halves, and readers
# [wonder which is right](https://github.com/rasbt/LLMs-from-scratch/issues/838). Do the two give the same scores?
# Does one become the other if the features are put in another order? What if queries go one way and keys the other?


# %%
def rotate(x, halves):
    n, d = x.shape
    angle = np.arange(n)[:, None] / 100.0 ** (np.arange(d // 2) / (d // 2))
    turn = np.cos(angle) + 1j * np.sin(angle)  # (n, d / 2)
    first, second = (
        (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, ::2], x[:, 1::2])
    )
    return (first + 1j * second) * turn  # a pair as a complex number


def scores_of(q, k):
    return (q @ k.conj().T).real


# %%
q, k = np.random.default_rng(0).normal(size=(2, 5, 8))  # (n, d_k)
neighbours = scores_of(rotate(q, False), rotate(k, False))
other = [*range(0, 8, 2), *range(1, 8, 2)]  # 0, 2, 4, 6, 1, 3, 5, 7
ways = {
    "halves": scores_of(rotate(q, True), rotate(k, True)),
    "halves, features in the other order": scores_of(
        rotate(q[:, other], True), rotate(k[:, other], True)
    ),
    "queries one way, keys the other": scores_of(rotate(q, False), rotate(k, True)),
}
for name, way in ways.items():
    print(f"{name:<36} differs from neighbours by {np.abs(way - neighbours).max():.4f}")

# %% [markdown]
# Either is right if the weights were trained with it. What is a bug is to load weights of the one into code of the other.

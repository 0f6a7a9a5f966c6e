# %% [markdown]
# # [[bug_clinic]] · The bug clinic
#
# **Question.** It runs and has the right shape. Is it right? *50 minutes, and 64 for exercises. This notebook needs torch.*

# %% jupyter={"source_hidden": true}
import re
from copy import deepcopy
from inspect import getsource
from textwrap import fill, indent

import numpy as np
import torch

import attnlib as al
from attnlib import live, plot
from attnlib.examples import ASYMMETRIC, IDENTITY, KARIM

_ = torch.set_num_threads(1)
_ = torch.set_grad_enabled(False)

# %% jupyter={"source_hidden": true}
from attncourse import mine, predict
from attncourse.clinic import CASES, cured, healthy, patients, twins
from attncourse.clinic.ward import accuracy, sick_lines, train_on_digits
from attnlib.diagnose import diagnose

STEPS = {"x": "8 10 17", "W_Q W_K W_V": "4 9 18\n27 28 34", "split": "19"}
STEPS |= {"scores": "21", "scale": "6 23 24\n26 29", "mask": "1 2 11 12\n13 15 35"}
STEPS |= {"softmax": "3 7 14\n22 25 33", "dropout": "16", "weighted sum": ""}
STEPS |= {"merge": "5 20", "W_O": ""}
BOX = {"boxstyle": "round,pad=0.5", "facecolor": "none", "edgecolor": "gray"}

# %% jupyter={"source_hidden": true} tags=["slide"]
figure, ax = plot.subplots(figsize=(3.55, 3.7))
_ = ax.set(xlim=(-0.6, 3.6), ylim=(-0.7, 2.4))
_ = ax.axis("off"), ax.set_title("One layer of attention, and where the cases sit")
for i, (step, pinned) in enumerate([*STEPS.items(), ("output", "")]):
    x, y = i % 4, 2 - i // 4
    told = re.sub("W_.", r"$\g<0>$", re.sub(" (?=sum|W_V)", "\n", step))
    _ = ax.text(x, y, told, ha="center", va="center", bbox=None if i == 11 else BOX)
    _ = ax.text(x, y - 0.3, pinned, ha="center", va="top", color="#D55E00")
    _ = ax.text(x - 0.5, y, "→" * (i > 0), ha="center", va="center")
    if x == 3 and y:  # the way goes on in the next row
        around = [3.42, 3.55, 3.55, -0.5, -0.5], [y, y, y - 0.7, y - 0.7, y - 0.9]
        _ = ax.plot(*around, lw=0.8, color="gray")

# %% [markdown]
# These are the steps of one attention layer. Each number below a step is a bug that somebody has built into it. None of them
# changes the shape of the output, so you have to examine the module. Cases 1 to 10 are told here,
# more wait among the exercises, and the [casebook]([[casebook.ipynb]]) tells the others.

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[multi_head]])* A layer has $h$ heads and reads $n$ tokens. How many rows of weights does one query get?
#
# - **a** one
# - **b** $n$
# - **c** $h$
#
# **2.** *(notebook [[masks]])* In a causal mask, boolean, True = may attend, where is True? Rows are queries, columns are keys.
#
# - **a** below the diagonal, and on it
# - **b** above the diagonal
# - **c** below the diagonal, but not on it
#
# **3.** *(notebook [[scaling]])* Scores have variance 64. What is it after a division by $\sqrt{64}$?
#
# - **a** 8
# - **b** 1
# - **c** 1/8

# %%
predict.before_bug_clinic(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## A · Too good to be true
#
# Patient A is an attention layer inside a very small language model. The model reads six digits and guesses at each position
# which digit comes next. Its mask is causal, so a guess may use the digits up to its own position and no later ones. All digits are
# drawn at random. An honest model can only guess. It is right one time in ten, and its loss
# is $\ln 10 = 2.30$.
#
# A healthy layer and patient A are trained for 150 steps each, in a few seconds.

# %% tags=["nbval-ignore-output"]
patient_A = patients.patient("A")
for name, module in {"healthy": healthy(), "patient A": deepcopy(patient_A)}.items():
    model, loss = train_on_digits(module)
    print(f"{name:<9} loss {loss:.2f}, accuracy {accuracy(model):.2f}")

# %% [markdown] tags=["predict"]
# Patient A names every next digit, on sequences that it was not trained on.
#
# **Predict.** How can that be?
#
# - **a** an output sees the digit that it is to name
# - **b** it has learned sequences by heart
# - **c** 150 steps of training are enough to learn random digits

# %%
guess_too_good = None  # "a", "b" or "c"

# %%
x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)
noise = torch.randn(2, 24, generator=torch.Generator().manual_seed(1))  # (b, d)
causal = torch.from_numpy(al.causal_mask(5))  # True = may attend


def future(module):  # replace the last token: how far do earlier outputs move?
    later = x.clone()
    later[:, -1] = noise
    moved = module(later, attn_mask=causal)[0] - module(x.clone(), attn_mask=causal)[0]
    return moved[:, :-1].abs().max()


# %%
for name, module in {"healthy": healthy(), "patient A": patient_A}.items():
    print(f"{name:<9} earlier outputs move by {future(module):.2f}")

# %%
predict.too_good(guess_too_good)

# %% [markdown]
# Under a causal mask earlier outputs must not move.
#
# ### Case 1 · A mask that means its opposite
#
# The layer has one method for each step. Here are five of patient A.

# %%
for method in ("forward", "weights", "masked_scores", "with_head_axis", "merge"):
    print(getsource(getattr(CASES["case_01"].module, method)))

# %% [markdown] tags=["predict"]
# **Predict.** Which of the five lets the future in, and why does no shape show it? The clinic calls patient A `case_01`. Below, − marks
# a line of the healthy layer, and + the line that patient A has in its place.

# %% tags=["slide"]
print(sick_lines("case_01"))

# %% [markdown]
# `~` exchanges True and False. This layer reads True as *blocked*: it hides the past and shows the future. **Fix.** Say which
# meaning you use, True = may attend, and keep `future` as a test of your own code.
#
# Such a mask cost the reader of a tutorial many hours. The layer had been
# [replaced](https://github.com/tensorflow/text/pull/894) by the library's own, whose mask means the opposite, and accuracy was
# 100 %.

# %% [markdown]
# ### Cases 2, 3 · Two more ways to see the future
#
# A layer can lose its mask elsewhere, too, without an error and with the right shape:

# %%
for name in ("case_02", "case_03"):
    print(f"{name}, with its softmax first:" if name == "case_03" else f"{name}:")
    print(sick_lines(name), end="\n\n")

# %% tags=["nbval-ignore-output"]
NAMES = ("case_01", "case_02", "case_03")
for name in NAMES:
    sick, fixed = twins(name)
    poke = f"broken {future(sick):.2f}, fixed {future(fixed):.2f}"
    model, loss = train_on_digits(sick)
    print(f"{name}  poke: {poke}", end="   ")
    print(f"trained: loss {loss:.2f}, accuracy {accuracy(model):.2f}")

# %% jupyter={"source_hidden": true} tags=["slide"] says="In case_03 the zeros"
seen = [twins(name)[0](x, attn_mask=causal)[1][0, 0] for name in NAMES]
seen = torch.stack([*seen, healthy()(x, attn_mask=causal)[1][0, 0]])
titles = [*NAMES, "healthy"]
figure = plot.head_grid(seen, titles=titles, columns=2, attn_mask=seen > 0, width=4.5)

# %% [markdown]
# Hatched is what each module forbids: no weight at all. In `case_02` nothing is hatched, because the mask never reaches the scores.
# In `case_03` the zeros are right, and no value of a later token comes through. Add up a row: the first is 0.22, and a healthy
# one 1. The softmax came first, so the future took its share of each row before it was removed. How much is missing depends on
# the digits that come, and the model learned to read that.
# **Fix.** Mask before the softmax. As for case 2: a wrapper did not
# [hand on](https://github.com/keras-team/keras/issues/21284) the flag for the mask.
#
# ## The probe kit
#
# `future` is a **probe**. It changes one thing and measures what must not move, and it needs no knowledge of the code. It puts
# in noise, because many models first subtract a token's mean: adding one number to all its features would change nothing. Here are four more probes. Each gives 0 for a healthy module, up to rounding.


# %%
def row_sums(module):  # how far the weights of a query are from summing to 1
    return (module(x.clone(), attn_mask=causal)[1].sum(-1) - 1).abs().max()


def order(module):  # permute the tokens: how far are outputs from being permuted?
    places = torch.tensor([3, 0, 4, 1, 2])
    return (module(x[:, places])[0] - module(x.clone())[0][:, places]).abs().max()


# %%
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


examine(healthy=healthy(), patient_A=patient_A)

# %% [markdown]
# `1e-07` is rounding; below $10^{-5}$ counts as 0. `row_sums` strikes for patient A because its last query may look
# nowhere, so its weights are all 0. With a tolerance, a probe is a test for your own project: `assert future(module.eval()) < 1e-5`.
#
# Five zeros do not prove health, as patient 1 will show. And a probe can strike where all is well: a module with
# positions inside moves under `order`, and should.
#
# ### Three patients without a name
#
# Patients 1 to 3, `patients.patient(1)` and so on, have the weights of `healthy()` and the bug of one case. `sorted(CASES)` lists the
# cases, and `CASES["case_01"].bug` says in a word what one has. Find out which, and prove it by a probe: a function of a module that
# returns 0 for `healthy()` and for all other cases, and not 0 for the patient. A probe may say `if`, and may return 1.0 or 0.0.
# `patients.struck` tells for which cases a probe strikes. `future` strikes for eight, so it shows that something is wrong, and
# not what:

# %% tags=["slide"] says="Find out which"
print(*patients.struck(future))

# %% [markdown] tags=["exercise"]
# ### Exercise [[name_bug_1]] · A first patient
#
# **Goal.** Find the case of patient 1, and prove it. *10 minutes, medium.*
#
# It passes the whole kit. Its makers used it on pairs of sentences, and it translated as if it had never seen the other one.
# Does something *not* move that should? Then turn the probe round: 1.0 where nothing moves, else 0.0.

# %%
my_patient_1 = None  # a name from sorted(CASES)
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
# my_patient_1 = "case_34"  # patients.struck(my_probe_1) gives this name alone
# print(sick_lines(my_patient_1))
# ```
#
# </details>

# %% [markdown]
# ### The first step that differs
#
# Where you can look inside, `cured` gives a healthy module with a patient's weights, and
# `compare` goes through the steps of both.


# %%
def steps(module, mask=None):
    q, k, v = module.project(x, x, x)  # (b, h, n, d_k) each
    scores = module.scaled_scores(q, k)  # (b, h, n_q, n_k)
    weights = module.weights(scores, mask)
    before = {"q": q, "k": k, "scaled scores": scores, "weights": weights}
    return before | {"merged": module.merge(weights @ v)}  # (b, n_q, embed_dim)


def compare(sick, mask=None):
    well = steps(cured(sick), mask)
    off = {
        name: (ill - well[name]).abs().max() for name, ill in steps(sick, mask).items()
    }
    print(*(f"{name} {value:.2f}" for name, value in off.items()), sep="   ")


# %% [markdown]
# ## B · Weights that never move
#
# Patient B was trained in the same model, and its loss is honest. The last columns say how far each matrix has moved.

# %% tags=["nbval-ignore-output"]
patient_B = patients.patient("B")
for name, module in {"healthy": healthy(), "patient B": patient_B}.items():
    before = deepcopy(module)
    model, loss = train_on_digits(module)
    print(f"{name:<9} loss {loss:.2f}, moved:", end="")
    for W in ("W_Q", "W_K", "W_V", "W_O"):
        moved = getattr(module, W).weight - getattr(before, W).weight
        print(f" {W} {moved.abs().max():.2f}", end="")
    print()
examine(patient_B=patient_B)

# %% [markdown] tags=["predict"]
# Three matrices have not moved, and the kit finds nothing. They may be frozen, or not used at all. Poison tells the two apart: set $W_Q$,
# $W_K$ and $W_V$ to NaN.
#
# **Predict.** If they are not used, what comes out?
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

# %%
before = sick(batch)[0]
for linear in (sick.W_Q, sick.W_K, sick.W_V):
    linear.weight.fill_(torch.nan)
print("set to NaN, the output changes by", (sick(batch)[0] - before).abs().max().item())

# %%
predict.poison(guess_poison)

# %% [markdown]
# ### Case 4 · Made and not used

# %%
print(sick_lines("case_04"))

# %% [markdown]
# The matrices are made and never applied. So the tokens themselves are queries, keys and values, cut into heads. The
# shape holds because `split` cuts a token as it cuts a projected one. **Fix.** Make the matrices `embed_dim` wide, apply them
# before the split, and look for parameters whose `.grad` is None after `backward`.
#
# ## C · In company
#
# Patient C was given one sequence alone, another one alone, and both together. Each line shows the first features of the
# output for a first token.

# %%
patient_C = patients.patient("C")
calls = {"sequence 0, alone": x[:1], "sequence 1, alone": x[1:]}
calls["sequence 0, with 1"] = x
for told, batch in calls.items():
    print(f"{told:<18}", patient_C(batch)[0][0, 0, :5].numpy().round(2))

# %% [markdown] tags=["predict"]
# Alone, two different sequences get the same output; together they do not.
#
# **Predict.** What does it have?
#
# - **a** a mean along the wrong axis
# - **b** dropout that is still on
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
# **Predict.** What does patient C make of a batch of three copies of one sequence?

# %%
print(sick_lines("case_05"), end="\n\n")
calls = {"sequence 0": x[:1], "sequence 1": x[1:]}
calls["three copies"] = x[:1].repeat(3, 1, 1)
for name, module in {"broken": patient_C, "fixed ": cured(patient_C)}.items():
    far = {told: module(b)[0] - module.W_O.bias for told, b in calls.items()}
    print(f"{name}: from the bias of W_O:", end=" ")
    print(*(f"{told} {off.abs().max():.2f}" for told, off in far.items()), sep=", ")

# %% [markdown]
# `merge` is the first step that differs. Somebody wrote the mean when axis 0 was the tokens; now it is the batch. A sequence
# alone is its own mean, and so is each of three copies. What is left is 0, and only the bias of $W_O$ comes out. **Fix.** Leave
# the mean out, and test two *different* sequences, alone and in a batch.
#
# ## D · Pale
#
# The maps of patient D look washed out. Here is its first head, on tokens of twice the norm,
# beside a healthy module with the same weights.

# %% jupyter={"source_hidden": true}
patient_D = patients.patient("D")
pair = torch.stack([module(2 * x)[1][0, 0] for module in (patient_D, cured(patient_D))])
figure = plot.head_grid(pair, titles=["patient D", "healthy"])

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
compare(patient_D)
ratio = steps(patient_D)["scaled scores"] / steps(cured(patient_D))["scaled scores"]
print(f"scaled scores: {ratio.min():.4f} to {ratio.max():.4f} times the healthy ones")

# %%
predict.pale(guess_pale)

# %% [markdown] tags=["predict"]
# ### Case 6 · The wrong width
#
# **Predict.** The scores are half the healthy ones, and a head has 6 features. By the root of which number are they divided?

# %%
print(sick_lines("case_06"))

# %% [markdown]
# The tokens have 24 features and a head has 6, and $\sqrt{6} / \sqrt{24}$ is one half. The shape holds because both roots are single
# numbers. With one head both widths are the same, so a test with one head passes. **Fix.** Divide after the split, by `q.shape[-1] ** 0.5`. Move the slider: as heads
# are added, the broken map grows pale, and the other one does not.

# %% jupyter={"source_hidden": true}
generator = torch.Generator().manual_seed(26)
wide_q, wide_k = torch.randn(2, 6, 64, generator=generator)  # (n, d_model)


def first_head(num_heads):
    d_k = 64 // num_heads
    scores = wide_q[:, :d_k] @ wide_k[:, :d_k].T  # (n_q, n_k)
    maps = {"divided by sqrt(embed_dim)": (scores / 8).softmax(-1)}
    return maps | {"divided by sqrt(d_k)": (scores / d_k**0.5).softmax(-1)}


# %% jupyter={"source_hidden": true}
choices = [(f"{h}, so d_k = {64 // h}", h) for h in (1, 2, 4, 8, 16, 32)]
view = live.weights_view(first_head, num_heads=choices, still=(1, 8, 32))
view

# %% [markdown]
# The code of a well-known video lecture was [mended](https://github.com/karpathy/ng-video-lecture/pull/6) early in 2023; three
# years later a reader [found it again](https://github.com/karpathy/ng-video-lecture/issues/55) in the notebook beside it.
#
# ## E · A green test
#
# Patient E passes a test: on the identity example of notebook [[vectorized]] its formula gives what attention must give.
# These are weights of its first head for five other tokens.

# %% jupyter={"source_hidden": true}
patient_E = patients.patient("E")
weights = patient_E(2 * x)[1][0, 0]  # (n_q, n_k)
figure = plot.attention_heatmap(weights)

# %% [markdown] tags=["predict"]
# **Predict.** What does this module do? The numbers in the map suffice.
#
# - **a** its softmax runs along the wrong axis
# - **b** it rounds its weights
# - **c** it takes keys away after the softmax

# %%
guess_sums = None  # "a", "b" or "c"

# %%
print("sums of the rows:   ", weights.sum(-1).numpy().round(2))
print("sums of the columns:", weights.sum(-2).numpy().round(2))

# %%
predict.sums(guess_sums)

# %% [markdown]
# ### Case 7 · What its test could see
#
# One number is wrong:

# %%
print(sick_lines("case_07"))

# %% [markdown]
# The shape holds because a softmax keeps it along any axis. Why did the test pass? How far off is the output of three worked
# examples, with this mistake and with Q and K swapped?


# %%
def off_by(right, Q, K, V, axis=-1):
    weights = al.softmax(Q @ K.T / Q.shape[-1] ** 0.5, axis)
    return np.abs(weights @ V - right).max()


examples = {"identity": IDENTITY, "KARIM": KARIM, "asymmetric": ASYMMETRIC}
for name, case in examples.items():
    q, k, v = case.project()
    right = al.scaled_dot_product_attention(q, k, v)
    print(
        f"{name:<11} over queries: off by {off_by(right, q, k, v, axis=0):.4f}", end=""
    )
    print(f"   Q and K swapped: {off_by(right, k, q, v):.4f}")

# %% [markdown]
# The identity example gives the right output even with the softmax over the queries: that test could not fail. Neither it nor `KARIM` sees the swap. **Fix.**
# `axis=-1`, and an example without such symmetries. For any module, ask whether the weights of each query sum to 1.
#
# ## F · A class with the right shape
#
# This class stands, with small changes, in many tutorials ([S0](../REFERENCES.md#s0)). Read it slowly: which four or five
# lines, and why does no shape show them?

# %%
from attncourse.clinic.ward import TutorialAttention

print(getsource(TutorialAttention))

# %% [markdown] tags=["predict"]
# Its usual demonstration passes three unrelated tensors of numbers between 0 and 1, of shape (32, 10, 256). It prints the
# shape of the output, which is right.
#
# **Predict.** What do the weights look like?
#
# - **a** a few large ones in each row
# - **b** large on the diagonal: each token looks at itself
# - **c** all nearly equal

# %%
guess_demonstration = None  # "a", "b" or "c"

# %%
torch.manual_seed(0)
tutorial = TutorialAttention(256, 8)
v, k, q = (torch.rand(32, 10, 256) for _ in range(3))
output, weights = tutorial(v, k, q), tutorial.weights
print("output", tuple(output.shape), end=" ")
print(f"weights {weights.min():.3f} to {weights.max():.3f}")

# %%
predict.demonstration(guess_demonstration)

# %% [markdown]
# ### Case 8 · A demonstration that demonstrates nothing
#
# Ten equal weights would be 0.1 each. The numbers between 0 and 1 are too small, and the divisor is too large; the casebook
# takes the two apart. **Fix.** Pass one sequence three times, with variance 1, and look at the weights.
#
# ### Case 9 · Three small matrices
#
# `Linear(d_k, d_k)` stands after the split, so all heads share one small matrix, and each head reads only its own slice of a token.
# A token that repeats one slice eight times looks the same to all heads:

# %%
fixed = healthy(256, 8)
few, many = (3 * linear.weight.numel() for linear in (tutorial.to_q, fixed.W_Q))
print(f"projection parameters: {few} instead of {many}")
slices = torch.randn(1, 10, 32, generator=torch.Generator().manual_seed(0))
tiled = slices.repeat(1, 1, 8)  # the same slice eight times
tutorial(tiled, tiled, tiled)
for name, w in (("broken", tutorial.weights), ("fixed ", fixed(tiled)[1])):
    print(f"{name}: heads differ by {(w - w[:, :1]).abs().max():.6f}")

# %% [markdown]
# **Fix.** `Linear(d_model, d_model)` before the split.
#
# ### Case 10 · Called as everybody calls it
#
# Everybody calls attention as `m(query, key, value)`. This class wants `(values, keys, query)`:

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
# **Fix.** Write the order query, key, value; call by names. So this is what could have caught your eye:
#
# | sick line | healthy line | case |
# |---|---|---|
# | `nn.Linear(self.d_k, self.d_k)` | `nn.Linear(embed_dim, embed_dim)`, applied before the split | 9 |
# | `forward(self, values, keys, query, mask)` | `forward(self, query, key, value, mask)` | 10 |
# | `mask == 0`, for a mask of any shape | `mask[:, None]`, for a mask $(b, n_q, n_k)$ | 11 |
# | `-1e20` | `-torch.inf`, and `.nan_to_num()` after the softmax | 12, 13 |
# | `(self.h * self.d_k) ** 0.5` | `self.d_k ** 0.5` | 6 |

# %% [markdown] tags=["predict"]
# ## All probes at once
#
# Would one call have caught all five? `diagnose` runs 21 probes on any attention module in torch, and needs neither names nor a
# returned map.
#
# **Predict.** Which line of the table does it *not* find in the class above?

# %%
torch.manual_seed(0)
for found in diagnose(TutorialAttention(24, 4), embed_dim=24, num_heads=4):
    if found.look_at:
        print(f"{found.probe}: {found.verdict}")
        print(indent(fill(f"{found.measured}; look at: {found.look_at}", 76), "    "))

# %% [markdown]
# Case 11 is not in the list: with a mask of a shape that it can read, this class works. *Wrong* is what no good module does on
# purpose; *beware* is what some do. In your own tests one line does: `assert not diagnose(MyAttention(24, 4), embed_dim=24,
# num_heads=4).wrong`. Now all cases that you have met:

# %% tags=["slide"] says="Case 3 is caught"
for name in list(CASES)[:9]:
    torch.manual_seed(0)
    report = diagnose(CASES[name].module(24, 4), embed_dim=24, num_heads=4)
    found = [finding.probe for finding in report if finding.look_at]
    print(f"{name} {CASES[name].bug:<24} caught by: {', '.join(found)}")

# %% [markdown] tags=["predict"]
# Case 8 is a way of calling, no module. Case 3 is caught by its row sums alone. Where rows do not
# sum to 1, `diagnose` says *could not tell* of the masks: mend the rows first.
#
# ## Break it
#
# Two bugs can hide each other. The patient below divides by $\sqrt{d_{model}}$, with 4 heads. To make up for it, somebody
# doubled its $W_Q$.
#
# **Predict.** How far are its outputs from those of a healthy module that has the old $W_Q$? What does `diagnose` say?

# %%
sick, fixed = twins("case_06")
sick.W_Q.weight.mul_(2)
for told, i in (("outputs", 0), ("weights", 1)):
    print(f"{told} differ by {(sick(x)[i] - fixed(x)[i]).abs().max():.4f}")
print(diagnose(sick, embed_dim=24, num_heads=4)["score scale"].measured)

# %% [markdown]
# With 4 heads $\sqrt{d_{model}}$ is twice $\sqrt{d_k}$, and twice $W_Q$ makes up for it. All numbers are right, and the code is
# not: with fresh weights the module is as ill as before. A probe that looks at the factor itself is not fooled.
#
# ## Exercises
#
# ### Examine your own class
#
# This is your class of exercise [[MultiHeadAttention]], or ours.

# %%
MyMultiHead = mine.load("MultiHeadAttention")
torch.manual_seed(0)
report = diagnose(MyMultiHead(24, 4), embed_dim=24, num_heads=4)
for found in report:
    if found.look_at:
        print(f"{found.probe}: {found.verdict}, {found.measured}")
print(len(report), "probes, of them wrong:", report.wrong)

# %% [markdown]
# Is there a finding? Take three steps. Build the call that shows it, as small as you can. Write it as a test that fails. Mend
# the line, see the test pass, and keep the test. *Beware* can be right: then say so, `blocked=True` for instance, and
# `diagnose` holds you to it.
#
# ### Patients 2 and 3
#
# `diagnose` is allowed, and finds where a bug shows: patients 2 and 3 get the same report.

# %% [markdown] tags=["exercise"]
# ### Exercise [[name_bug_2]] · Behind a mask
#
# **Goal.** Find the case of patient 2, and prove it. *12 minutes, medium.*
#
# Draw the weights of its first head, as in the pictures above, with the causal mask: nothing is wrong. Yet `future` strikes.

# %%
my_patient_2 = None  # a name from sorted(CASES)
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
# my_patient_2 = "case_35"
# print(sick_lines(my_patient_2))
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[name_bug_3]] · Pale again
#
# **Goal.** Find the case of patient 3, and prove it. *12 minutes, medium.*
#
# Its maps are pale, like those of patient D, but `compare` finds its scaled scores right. Try it with the causal mask.

# %%
my_patient_3 = None  # a name from sorted(CASES)
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
# my_patient_3 = "case_33"
# print(sick_lines(my_patient_3))
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[try_probe]] · A probe of your own
#
# **Goal.** Write a probe: does a token that nobody may look at move the others? *15 minutes, hard.*
#
# `my_probe(module, x)` gets a module that is called as `module(x, attn_mask=mask)[0]`, with a mask of shape $(n, n)$, and
# tokens `x` of shape $(b, n, d)$ of any size. It returns how far the outputs of the other tokens move when a token changes
# that is blocked for all. The check tries it on modules whose masks work, where it must give 0, and on modules that leak.
# Some of them leak one token only, or only under masks that are not causal: `future` does not see them.


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

# %% [markdown]
# ### A module from a stranger's repository
#
# A text looks at the clips of a video. Heads are folded into the batch, so that there are $b \cdot h$ maps. `mask` is
# $(b, n_q, n_k)$, True = may attend. The code is retold; its bug was published.


# %%
class TextToClips(torch.nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, sizes = num_heads, (embed_dim, embed_dim)
        self.to_q, self.to_k, self.to_v = (torch.nn.Linear(*sizes) for _ in range(3))
        self.out = torch.nn.Linear(*sizes)

    def fold(self, x):  # (b, n, d) to (b * h, n, d / h)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)

    def for_all_heads(self, mask):  # (b, n_q, n_k) to (b * h, n_q, n_k)
        return mask.repeat(self.heads, 1, 1)

    def forward(self, text, clips, mask):
        q, k = self.fold(self.to_q(text)), self.fold(self.to_k(clips))
        v = self.fold(self.to_v(clips))
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~self.for_all_heads(mask), -1e4).softmax(-1)
        mixed = (weights @ v).unflatten(0, (-1, self.heads))  # (b, h, n_q, d / h)
        return self.out(mixed.transpose(1, 2).flatten(2))


# %% [markdown] tags=["exercise"]
# ### Exercise [[mended]] · A stranger's module
#
# **Goal.** Examine the module above, and mend it. *15 minutes, hard.*

# %%
my_class = None  # a class: TextToClips with one line mended

# %%
verdict = patients.mended(my_class)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # diagnose: padding is wrong, causality is not. So a mask works if all sequences share it.
# # A fold puts the heads of one sequence side by side, 0 0 0 0 1 1 1 1; repeat gives 0 1 0 1 0 1 0 1.
# class my_class(TextToClips):
#     def for_all_heads(self, mask):
#         return mask.repeat_interleave(self.heads, dim=0)
# ```
#
# [Five files of one library](https://github.com/line/lighthouse/pull/77) had it. A sequence alone in its batch was right.
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Copy `TutorialAttention` into a cell and mend it, line by line of the table, until `diagnose` finds nothing.
# 2. `diagnose(torch.nn.MultiheadAttention(24, 4, batch_first=True), embed_dim=24, num_heads=4)`. What does “beware” mean there?
#    (A fully masked row gives NaN: PyTorch's own choice.)
# 3. Make a patient with two bugs, `type("Both", (CASES[a].module, CASES[b].module), {})`, with two names for `a` and `b`, and
#    give it to a friend.
# 4. Choose five tokens for which `case_07` gives the output of a healthy module.
#
# **Remember.** A shape proves nothing. A probe measures what must hold or must not move: row sums, the future, the order, the
# company, the second call, NaN in a parameter. Where you can look inside, find the first step that differs. Keep each
# probe as a test, with a tolerance. Next: [[[train_and_look]] train and look]([[train_and_look.ipynb]]).

# %% [markdown] tags=["predict"]
# ## Appendix: checks
#
# ### Dropout: a mask by chance
#
# While many models train, each weight is set to 0 with a probability of, say, 0.2, and the others are divided by 0.8.
# **Predict.** All scores are equal, and a causal mask is on. What do the rows sum to?
#
# - **a** 1 each
# - **b** less than 1 each
# - **c** some less than 1, some more

# %%
guess_dropout = None  # "a", "b" or "c"

# %%
mask = al.causal_mask(4)
equal = mask / mask.sum(axis=-1, keepdims=True)  # (n_q, n_k)
survives = np.random.default_rng(0).random((10_000, 4, 4)) >= 0.2  # (draws, n_q, n_k)
sums = (equal * survives / 0.8).sum(axis=-1)  # (draws, n_q)
for draw in sums[:3]:
    print("row sums:", draw.round(4))
print("mean of 10,000 draws:", sums.mean(axis=0).round(2))

# %%
predict.dropout_rows(guess_dropout)

# %% [markdown]
# Rows above 1 have been taken for a bug ([thread](../REFERENCES.md#threads)). Their mean is 1, and nothing leaks. Dropout is a bug
# if it goes on after training: `model.eval()` turns off `nn.Dropout`, but not `F.scaled_dot_product_attention(..., dropout_p=0.2)`.

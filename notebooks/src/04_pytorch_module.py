# %% [markdown]
# # 04 · Attention as a PyTorch module
#
# **Question.** So far somebody chose the matrices. How does attention become a layer whose matrices are learned, and what
# have they learned when it works? *40 minutes. This notebook needs torch.*

# %%
from textwrap import fill

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.examples import ASYMMETRIC, BY_HAND
from attnlib.torch_layers import SelfAttention

_ = torch.set_num_threads(1)  # tiny matrices: a second thread costs more than it brings

# %% [markdown]
# ## Before you start
#
# Three questions from memory. Write a letter in place of each `None`.
#
# **1.** *(notebook 03)* Without the division by $\sqrt{d_k}$, at $d_k = 1024$: what becomes of the gradient on a query?
#
# - **a** the median over the queries vanishes, and so does the mean
# - **b** the median vanishes, the mean does not
# - **c** both grow
#
# **2.** *(notebook 02)* Somebody swaps $Q$ and $K$, and the worked example still gives the right output. Why?
#
# - **a** its numbers are too small for the difference to show
# - **b** its matrix of scores is symmetric
# - **c** softmax does not care for the order of $Q$ and $K$
#
# **3.** *(notebook 01)* Each token has three vectors. Which of them goes into the outputs of other tokens?
#
# - **a** its query
# - **b** its key
# - **c** its value

# %%
predict.before_04(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · Eight pairs in memory
#
# Somebody tells you eight pairs of a letter and a number. Then they say one of the letters, and you answer its number.
# The next eight pairs are others. So there is nothing to learn by heart; all one can learn is how to *look up*. The task
# is called associative recall ([Graves et al. 2014](../REFERENCES.md#graves-2014)), and in this notebook a layer learns
# it.

# %%
N_PAIRS, N_KEYS, N_VALUES, D = 8, 16, 16, 32
LETTERS = list("abcdefghijklmnop")


def make_batch(size, generator, shift=0):  # the shift stays 0 until section 6
    order = torch.rand(size, N_KEYS, generator=generator).argsort(-1)
    keys = order[:, :N_PAIRS]  # (b, 8), the letters, all different
    values = torch.randint(N_VALUES, (size, N_PAIRS), generator=generator)  # (b, 8)
    slot = torch.randint(N_PAIRS, (size,), generator=generator)  # (b,)
    rows = torch.arange(size)
    asked = (keys[rows, slot] + shift) % N_KEYS  # (b,)
    return keys, values, asked, values[rows, slot], slot


# %%
keys, values, asked, answer, _ = make_batch(3, torch.Generator().manual_seed(5))
for i in range(3):
    pairs = "  ".join(f"{LETTERS[k]} {v:<2}" for k, v in zip(keys[i], values[i]))
    print(f"{pairs}   asked: {LETTERS[asked[i]]}   answer: {answer[i]}")

# %% [markdown]
# A model computes with vectors, so each letter and each number needs one. It gets a row of a table, its **embedding**. The
# table starts random and is learned like any other matrix; in torch it is an `nn.Embedding`. Here all embeddings have
# $d_{in} = 32$ entries. The pair "c 5" becomes one token, the embedding of c plus the embedding of 5, and we call it a
# *slot* of the memory. The letter that is asked for is a ninth token.
#
# Now say what attention would have to do. The query of the ninth token must fit the key of the slot with the same letter,
# and of no other. The value of that slot must carry its number. Nobody is going to tell the layer either of these.
#
# ## 2 · Four steps in `forward`
#
# An `nn.Parameter` is a tensor that training may change. The module holds three of them. `forward` does what
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
# How do you know that it is right? Give it matrices whose result you know. With those of notebook 01 it must return the
# numbers you computed by hand:


# %%
def with_matrices(W_Q, W_K, W_V):
    layer = AttentionFromParameters(*W_Q.shape, W_V.shape[1]).double()  # float64
    with torch.no_grad():
        for parameter, W in zip((layer.W_Q, layer.W_K, layer.W_V), (W_Q, W_K, W_V)):
            parameter.copy_(torch.tensor(W))
    return layer


output = with_matrices(*BY_HAND[1:])(torch.tensor(BY_HAND.x))
print(output.detach().numpy().round(6))

# %% [markdown]
# That example cannot tell $Q$ from $K$, as you know from notebook 02. So the test that counts is the asymmetric one, with
# $n$, $d_{in}$, $d_k$ and $d_v$ all different, against two other implementations:

# %%
X = torch.tensor(ASYMMETRIC.x)  # (4, 3)
asymmetric = with_matrices(*ASYMMETRIC[1:])
output = asymmetric(X)  # (4, 5)
by_numpy = torch.tensor(al.scaled_dot_product_attention(*ASYMMETRIC.project()))
by_torch = nn.functional.scaled_dot_product_attention(
    *(torch.tensor(x) for x in ASYMMETRIC.project())
)
print("first row:", output[0].detach().numpy().round(4))
print(f"largest difference to NumPy's: {(output - by_numpy).abs().max().item():.12f}")
print(f"largest difference to torch's: {(output - by_torch).abs().max().item():.12f}")

# %% [markdown]
# ## 3 · `nn.Linear` instead of parameters
#
# The usual way to write a projection is `nn.Linear(d_in, d_k, bias=False)`. It starts in another way, which is section 7,
# and it stores its matrix in another way: **transposed**, as (out, in). So `linear(x)` computes $x W^T$.
#
# **Predict.** You copy `W_Q` into `linear.weight` without `.T`. What happens if it is 3 x 2, and what if it is square?
#
# - **a** an error both times
# - **b** an error for 3 x 2; the square one is silently wrong
# - **c** nothing bad: nn.Linear turns it round

# %%
guess_square = None  # "a", "b" or "c"

# %%
W_Q = torch.tensor(ASYMMETRIC.W_Q)  # (d_in, d_k) = (3, 2)
linear = nn.Linear(3, 2, bias=False).double()
print("weight of nn.Linear(3, 2):", tuple(linear.weight.shape))
try:
    with torch.no_grad():
        linear.weight.copy_(W_Q)  # (3, 2) into (2, 3)
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
# A square matrix goes in without a word, and the layer is wrong. In a multi-head layer the large projections usually are
# square. `attnlib.torch_layers.SelfAttention` is attention with three such layers; it returns the output and the weights.
# The sizes below are those of one head of the [original Transformer](../REFERENCES.md#vaswani-2017): 512 features go in,
# and 64 come out.

# %%
head = SelfAttention(d_in=512, d_k=64)
print(head)
print("parameters of one head:", sum(p.numel() for p in head.parameters()))

# %%
ours = SelfAttention(3, 2, 5).double()
with torch.no_grad():
    for linear, W in zip((ours.W_Q, ours.W_K, ours.W_V), ASYMMETRIC[1:]):
        linear.weight.copy_(torch.tensor(W).T)
output_2, weights = ours(X)
difference = (output_2 - output).abs().max().item()
print(f"largest difference to the first version: {difference:.12f}")
ax = plot.attention_heatmap(weights, title="the asymmetric example of notebook 02")

# %% [markdown]
# ## 4 · Loss, gradient, optimiser
#
# Three words stand between a layer and a layer that learns. Notebook 03 needed the first two.
#
# - The **loss** is one number that says how wrong the model is. Ours will be the *cross-entropy*: minus the logarithm of
#   the probability that the model gave to the right answer. Who guesses among 16 pays $\ln 16 \approx 2.77$, who is sure
#   and right pays 0.
# - The **gradient** of the loss says for each parameter how the loss changes with it. `loss.backward()` computes all of
#   them, backwards by the chain rule, and writes them into `parameter.grad`.
# - The **optimiser** turns gradients into steps. The simplest subtracts the gradient times a small number, the *learning
#   rate*. Ours is Adam ([Kingma and Ba 2015](../REFERENCES.md#kingma-2015)), which also divides by the usual size of each
#   gradient, so that parameters with small ones keep pace.
#
# A matrix that gets no gradient never learns, so look whether all three get one. **Predict.** The first loss below is made
# of the *output*. The second is the sum of all *weights*. Which gradients vanish for the second?
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
# Each row of weights sums to 1 whatever the matrices are, so the second loss cannot change, and teaches nothing. The first
# reaches all three: through the values, and through the weights.
#
# ## 5 · It learns to look up
#
# The whole model: two tables of embeddings, one head, and a last `nn.Linear` that reads the answer off the output of the
# ninth token, with one number, a *logit*, for each of the 16 possible answers.


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


# %%
def evaluate(model, shift=0):
    fresh = torch.Generator().manual_seed(1)
    keys, values, asked, answer, slot = make_batch(1000, fresh, shift)
    with torch.no_grad():
        logits, weights = model(keys, values, asked)
    accuracy = (logits.argmax(-1) == answer).float().mean().item()
    return accuracy, weights, slot


def tell(when, accuracy, weights, slot):
    on_slot = weights[torch.arange(1000), slot].mean().item()
    print(f"{when}: accuracy {accuracy:.2f}, weight on the right slot {on_slot:.2f}")


# %%
def train(model, what, shift=0):
    generator, losses = torch.Generator().manual_seed(0), []
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in live.progress(range(400), what):
        keys, values, asked, answer, _ = make_batch(128, generator, shift)
        loss = nn.functional.cross_entropy(model(keys, values, asked)[0], answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
model = Recall()
_, before, _ = evaluate(model)
tell("before training", *evaluate(model))
losses = train(model, "training")
accuracy, after, slot = evaluate(model)
tell("after training", accuracy, after, slot)

# %%
figure, ax = plot.subplots(figsize=(6, 3))
ax.plot(losses)
ax.axhline(np.log(N_VALUES), linestyle="--", label="guessing: ln 16")
ax.set(xlabel="step", ylabel="loss")
_ = ax.legend()

# %% [markdown]
# These 1000 memories it has never seen, and it answers. Where does the asking token look, before training and after?
# Eight of the memories, one a row:

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
# Take the choice away: every weight is $1/9$, for each query and key, and all the rest is trained as before. Eight of the
# 16 numbers are still in front of the model, and it sees all of them.
#
# **Predict.** How often does this model give the right answer?
#
# - **a** in 0.06 of the cases, 1 in 16
# - **b** in about a quarter of the cases
# - **c** nearly always: the rest of the model makes up for it

# %%
guess_equal = None  # "a", "b" or "c"


# %%
class Uniform(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_V = nn.Linear(D, D, bias=False)

    def forward(self, tokens):
        n = tokens.shape[-2]
        weights = torch.full((*tokens.shape[:-1], n), 1 / n)  # (b, n_q, n_k)
        return weights @ self.W_V(tokens), weights


# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
blind = Recall()
blind.attention = Uniform()
_ = train(blind, "training without choice")
accuracy, _, _ = evaluate(blind)
print(f"with equal weights: accuracy {accuracy:.2f}")
memories = make_batch(1000, torch.Generator().manual_seed(1))[1]  # (1000, 8)
most = nn.functional.one_hot(memories, N_VALUES).sum(1).amax(-1) / N_PAIRS
print(f"share of the most frequent number in a memory: {most.mean().item():.2f}")

# %%
predict.equal_weights(guess_equal)

# %% [markdown]
# It does as well as somebody who looks at the eight numbers, forgets the letters, and says the one that occurs most often.
# What is in memory, it knows; what belongs to the letter, it cannot know. That is what the choice is for.
#
# ## 6 · What is a key?
#
# Open the head that works. It has met letters only in slots and in questions. But $W_Q$ and $W_K$ can be given any vector,
# so give them the embeddings of the 16 letters alone: make a query of each letter and a key of each letter, and compute
# all 256 scores.
#
# **Predict.** Nothing in the model says "same letter". What will the map of these scores look like?


# %%
def alphabet_map(model):
    with torch.no_grad():
        query = model.attention.W_Q(model.key.weight)  # (16, d_k)
        key = model.attention.W_K(model.key.weight)
    return query @ key.T / D**0.5  # (16, 16) scaled scores


shown = {"queries": LETTERS, "keys": LETTERS, "vmin": None, "vmax": None, "places": 0}
ax = plot.attention_heatmap(alphabet_map(model), title="scaled scores", **shown)

# %% [markdown]
# From here on there are exercises between the text. Write your answer in the first cell, run it and the cell below it. The
# verdict names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call goes one step
# further. The solution is folded below.

# %% [markdown]
# ### Exercise 4.1 · Read the map
#
# **Goal.** Read two scores off the map: of a letter with itself, and with another one. *3 minutes, easy.*
#
# About, by the numbers in the cells or the colour bar: `[with itself, with another]`, the middle of what you see.

# %%
my_alphabet_scores = None  # two numbers, [with itself, with another]

# %%
verdict = check.alphabet_scores(my_alphabet_scores)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_alphabet_scores = [8, 0]  # the diagonal is near 8; the rest scatters around 0
# ```
#
# </details>

# %% [markdown]
# This is what a **key** is: the vector by which a token is found, by whoever asks for it, and nothing more. The key of c is
# the vector that fits the query "c?". The **value** of the same token need not look like it at all. What does it carry?
# Push the 16 embeddings of the numbers through $W_V$ and the last layer, one at a time:

# %% tags=["nbval-ignore-output"]
scores = alphabet_map(model)
same = torch.eye(N_KEYS, dtype=torch.bool)
print(f"mean score with itself  {scores[same].mean().item():+.2f}")
print(f"mean score with another {scores[~same].mean().item():+.2f}")
with torch.no_grad():
    logits = model.read(model.attention.W_V(model.value.weight))  # (16, 16)
named = (logits.argmax(-1) == torch.arange(N_VALUES)).sum().item()
print(f"numbers that the value alone names: {named} of {N_VALUES}")

# %% [markdown]
# All 16. The letter settles *where* the head looks, the number *what* comes back, in one and the same token. With scores
# of 8 against 0, the right slot gets $e^8 \approx 3000$ times the weight of another.
#
# But one thing does not fit. Why, then, is the weight on the right slot well below 1? Look at the last column of
# the map after training: the missing part lies on the asking token *itself*. It is made of the same letter, so its key
# fits its own query just as well. Then why does the slot win at all? A slot has one thing that the asking token lacks, a
# number. The next cell leaves the numbers out of the keys, and only there:

# %% tags=["nbval-ignore-output"]
keys, _, asked, _, slot = make_batch(1000, torch.Generator().manual_seed(1))
with torch.no_grad():
    query = model.attention.W_Q(model.key(asked))[:, None]  # (1000, 1, d_k)
    letters = torch.cat([model.key(keys), model.key(asked)[:, None]], dim=1)
    scores = query @ model.attention.W_K(letters).transpose(-1, -2) / D**0.5
    alone = scores.softmax(-1)[:, 0]  # (1000, 9)
for name, weights in (("as it is", after), ("keys of letters alone", alone)):
    on_slot = weights[torch.arange(1000), slot].mean().item()
    itself = weights[:, -1].mean().item()
    print(f"{name}: on the right slot {on_slot:.2f}, on itself {itself:.2f}")

# %% [markdown]
# Half and half. So queries have learned two things: to fit their letter, and to prefer keys that hold a number. Nobody
# asked for the second, either.

# %% [markdown]
# ### The same layer, another rule
#
# Is a key then simply the letter? Train the same model on another rule. The memory is as before, but the letter that is
# asked for is no longer the one in the right slot. Which one it is, the text does not say; you will read it off the map.

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
second = Recall()
_ = train(second, "training on another rule", shift=11)
second_accuracy, second_weights, second_slot = evaluate(second, shift=11)
tell("another rule", second_accuracy, second_weights, second_slot)
print(f"another rule: on itself {second_weights[:, -1].mean().item():.2f}")
title = "scaled scores, another rule"
ax = plot.attention_heatmap(alphabet_map(second), title=title, **shown)

# %% [markdown]
# ### Exercise 4.2 · Another head
#
# **Goal.** Say what the second model answers, from its map alone. *4 minutes, medium.*
#
# Its memory is `a 4 · c 9 · f 3 · h 2 · k 14 · m 12 · n 1 · p 0`, and it is asked for c.

# %%
my_other_head = None  # the number it answers

# %%
verdict = check.other_head(my_other_head)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_other_head = 2  # row c is bright in column h, and h is stored with 2
# ```
#
# </details>

# %% [markdown]
# The letters are the same, and the slots are made as before. What changed is who fits whom: c now asks for another letter.
# So a key is not what a token *is*. It is how a token is found, by queries that were learned together with it. And the
# asking token no longer fits its own query, so now it gets next to no weight.

# %% [markdown]
# ### Exercise 4.3 · Choose $W_Q$
#
# **Goal.** Design queries for which each letter looks at the next one. *8 minutes, medium.*
#
# What training found, you can also choose. Four letters, a to d, are one-hot tokens, so row $i$ of $W_Q$ *is* the query of
# letter $i$, and row $i$ of $W_K$ its key. The keys stand in a circle:
# $W_K$ = `[[1, 0], [0, 1], [-1, 0], [0, -1]]`. Choose $W_Q$, (4, 2), such that a gives b a weight of 0.9 or more, b gives it
# to c, c to d, and d to a. Scores are divided by $\sqrt 2$, as always. There are many right answers.

# %%
my_W_Q = None  # four rows of two numbers

# %%
verdict = check.choose_W_Q(my_W_Q)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_W_Q = [[0, 5], [-5, 0], [0, -5], [5, 0]]  # each points where the next key lies; shorter than 4.2 is too short
# ```
#
# </details>

# %% [markdown]
# ## 7 · How a layer starts
#
# Notebook 03 said: dividing by $\sqrt{d_k}$ brings the variance of scores to 1, *if* the entries of $q$ and $k$ have
# variance 1. In a layer $q = x W_Q$, so that depends on how $W_Q$ was drawn. Three ways, for $W_Q$ and $W_K$ of size
# 64 x 64 and tokens with entries of variance 1. Each draws evenly from a range. Xavier's
# ([Glorot and Bengio 2010](../REFERENCES.md#glorot-2010)) is $\pm\sqrt{6/(d_{in} + d_k)}$.
#
# **Predict.** Which of them comes near a variance of 1?

# %%
r = np.random.default_rng(90)
xavier = np.sqrt(6 / (64 + 64))
ranges = {"nn.Linear's default": (-1 / 8, 1 / 8), "torch.rand": (0, 1)}
ranges["Xavier"] = (-xavier, xavier)
for name, (low, high) in ranges.items():
    tokens_q, tokens_k = r.normal(size=(2, 1000, 64))  # (n, d_in)
    W_Q, W_K = r.uniform(low, high, size=(2, 64, 64))  # (d_in, d_k)
    scaled = (tokens_q @ W_Q) @ (tokens_k @ W_K).T / 8  # (n_q, n_k)
    print(f"{name:<20} variance of q.k / sqrt(d_k) = {scaled.var():.2f}")

# %% [markdown]
# Xavier's does. The default gives about $1/9$, and `torch.rand` thousands. Why thousands? It fills the matrix with positive
# numbers, so all columns are alike, and so are all entries of one query. How alike are the queries?

# %%
r = np.random.default_rng(91)
for name in ("torch.rand", "Xavier"):
    q = r.normal(size=(1000, 64)) @ r.uniform(*ranges[name], size=(64, 64))  # (n, d_k)
    unit = q / np.linalg.norm(q, axis=-1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(1000, k=1)]  # of all pairs
    apart = [(cosines > 0.7).mean(), (cosines < -0.7).mean()]
    on_line = (q.sum(axis=-1) ** 2 / 64).sum() / (q**2).sum()
    print(
        f"{name:<10} cosine > 0.7: {apart[0]:3.0%}   < -0.7: {apart[1]:3.0%}", end="   "
    )
    print(f"of |q|^2 along (1, ..., 1): {on_line:.0%}")

# %% [markdown]
# Under `torch.rand` queries lie mostly along one line, that of $(1, ..., 1)$, which holds three quarters of their squared
# length: some point one way, as many the other. So the 64 products of a score mostly have one sign, and add up.
#
# And `nn.Linear`? You may read that it uses [Xavier](../REFERENCES.md#glorot-2010) or [Kaiming](../REFERENCES.md#he-2015)
# initialisation. Measure it:

# %%
_ = torch.manual_seed(0)
fan_in, fan_out = 512, 64
weight = nn.Linear(fan_in, fan_out, bias=False).weight.detach()
std = weight.std().item()
print(f"measured std                       {std:.4f}")
print(f"1 / sqrt(3 fan_in)                 {(3 * fan_in) ** -0.5:.4f}")
print(f"Xavier,  sqrt(2/(fan_in+fan_out))  {(2 / (fan_in + fan_out)) ** 0.5:.4f}")
print(f"Kaiming, sqrt(2/fan_in)            {(2 / fan_in) ** 0.5:.4f}")

# %% [markdown]
# It is not Xavier. It is Kaiming's function with an unusual gain: nn.Linear calls `kaiming_uniform_(weight, a=sqrt(5))`
# ([why](../REFERENCES.md#torch-linear)). The gain is what stands above $\sqrt{fan_{in}}$: $\sqrt 2$ in the formula for
# ReLU, and here $\sqrt{1/3}$:

# %%
_ = torch.manual_seed(0)  # the same draw once more
by_kaiming = nn.init.kaiming_uniform_(torch.empty(fan_out, fan_in), a=5**0.5)
print("gain for ReLU       ", round(nn.init.calculate_gain("relu"), 4))
print("gain for a = sqrt(5)", round(nn.init.calculate_gain("leaky_relu", 5**0.5), 4))
print("differs from nn.Linear by", (by_kaiming - weight).abs().max().item())

# %% [markdown]
# So the entries are uniform in $\pm 1/\sqrt{fan_{in}}$, with standard deviation $1/\sqrt{3\, fan_{in}}$. Each entry of
# $q = x W_Q$ adds $fan_{in}$ terms of variance $1/(3\,fan_{in})$, so it has variance $1/3$, and $q \cdot k / \sqrt{d_k}$
# has $1/9 \approx 0.11$. Fresh layers attend almost uniformly, which is no bad start: the head above began so.
#
# The slider shows both starts: fresh weights of six random tokens with 64 entries, divided by $\sqrt{d_k}$ on both sides.
# **Predict.** Xavier's range shrinks as $d_k$ grows, the default's does not. In which direction will the right map change
# from $d_k = 4$ to 512, and the left one?

# %%
_ = torch.manual_seed(1)
tokens = torch.randn(6, 64)
drawn = torch.empty(2, 64, 512).uniform_(-1, 1)  # of W_Q and W_K, in -1 .. 1


def fresh_weights(d_k):
    maps = {}
    bounds = {"nn.Linear's default": 64**-0.5, "Xavier": (6 / (64 + d_k)) ** 0.5}
    for name, bound in bounds.items():
        q, k = tokens @ (bound * drawn[..., :d_k])  # (n, d_k) each
        maps[name] = (q @ k.T / d_k**0.5).softmax(-1)  # (n_q, n_k)
    return maps


view = live.weights_view(fresh_weights, d_k=(4, 512), still=(8, 64, 512))
view

# %% [markdown]
# The default is as undecided at each $d_k$. Xavier starts decided at a small $d_k$, and ends flat: at $d_k = 512$ it is
# flatter than the default. It keeps the variance for square matrices, $d_{in} = d_k$; a head's are not square. "Dividing
# by $\sqrt{d_k}$ keeps the variance near 1" is a statement about three things: the division, the tokens and the draw.

# %% [markdown]
# ### Exercise 4.4 · The layer
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
#    (The row of the worked example that you know by heart.)
# 2. In your module of 4.4, write `weights.detach() @ self.W_V(x)`. All outputs stay right. Which matrices does the check
#    name? (W_Q and W_K.)
# 3. Train `Recall` with `N_PAIRS = 12`. Does it still reach 1.00?
#
# **Remember.** A module is the same four steps with matrices that learn. Check it against known, asymmetric numbers in
# float64. nn.Linear stores $W$ transposed. A key is how a token is found, a value is what it hands over, and a loss on the
# answer teaches both. Next: [05 masks](05_masks.ipynb).

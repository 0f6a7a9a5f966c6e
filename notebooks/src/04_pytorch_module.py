# %% [markdown]
# # 04 · Attention as a PyTorch module
#
# **Question.** So far somebody chose the matrices. How does attention become a layer whose matrices are learned, and what
# have they learned when it works? *40 minutes without the appendix. This notebook needs torch.*

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
N_PAIRS, N_LETTERS, N_NUMBERS, D = 8, 16, 16, 32
LETTERS = list("abcdefghijklmnop")
SAME = torch.arange(N_LETTERS)  # rule[x] asks for x: x itself, but not in section 6


def make_batch(size, generator, rule=SAME):
    # each row of `order` holds all 16 letters in a random order
    order = torch.rand(size, N_LETTERS, generator=generator).argsort(-1)
    letters = order[:, :N_PAIRS]  # (b, 8), all different
    numbers = torch.randint(N_NUMBERS, (size, N_PAIRS), generator=generator)  # (b, 8)
    slot = torch.randint(N_PAIRS, (size,), generator=generator)  # (b,)
    rows = torch.arange(size)
    asked = rule[letters[rows, slot]]  # (b,) asks for the letter stored in its slot
    return letters, numbers, asked, numbers[rows, slot], slot


# %%
letters, numbers, asked, answer, _ = make_batch(3, torch.Generator().manual_seed(5))
for i in range(3):
    pairs = "  ".join(f"{LETTERS[k]} {v:<2}" for k, v in zip(letters[i], numbers[i]))
    print(f"{pairs}   asked: {LETTERS[asked[i]]}   answer: {answer[i]}")

# %% [markdown]
# A model computes with vectors, so each letter and each number needs one. It gets a row of a table, its **embedding**. The
# table starts random and is learned like any other matrix; in torch it is an `nn.Embedding`. Here all embeddings have
# $d_{in} = 32$ entries. The pair "c 5" becomes one token, the embedding of c plus the embedding of 5, and we call it a *slot*
# of the memory. The letter that is asked for is a ninth token; like the others it is a query and a key, so it may also look at
# itself.
#
# What would attention have to do here? The query of the ninth token must fit the key of the slot with the same letter, and of
# no other. The value of that slot must carry its number. Nobody is going to tell the layer either of these. The order of the
# slots plays no part: nothing in the model knows which of them came first.
#
# ## 2 · Four steps in `forward`
#
# Torch in one minute:
#
# - `nn.Parameter`: a tensor that training may change.
# - `nn.Module`: a class that collects the parameters you give it, once `super().__init__()` has run.
# - `layer(X)` runs `layer.forward(X)`.
# - Torch remembers what was computed. `loss.backward()` goes back through it and adds each gradient to `parameter.grad`.
# - `with torch.no_grad():` nothing is remembered: for setting parameters by hand, and for looking at results.
# - `x.detach()` holds the same numbers without that memory, and `.numpy()` works only on such a tensor.
#
# The module below holds three parameters. `forward` does what notebook 02 did: project, score, softmax, mix. `X` has the shape $(..., n, d_{in})$; `.transpose(-1, -2)` counts axes from
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
# How do you know that it is right? Give it matrices whose result you know, and compute in float64, where rounding errors are
# near 1e-16, so that any difference you can see is a mistake. With those of notebook 01 it must return the scaled outputs of
# step 6 there, which begin with 1.863874, 6.319371, 1.704189:


# %%
def with_matrices(W_Q, W_K, W_V):
    layer = AttentionFromParameters(*W_Q.shape, W_V.shape[1]).double()  # float64
    with torch.no_grad():
        for parameter, W in zip((layer.W_Q, layer.W_K, layer.W_V), (W_Q, W_K, W_V)):
            parameter.copy_(torch.tensor(W))  # copy_ overwrites the numbers in place
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
assert (output - by_numpy).abs().max() < 1e-12
print("first row:", output[0].detach().numpy().round(4))
print(f"largest difference to NumPy's: {(output - by_numpy).abs().max().item():.12f}")
print(f"largest difference to torch's: {(output - by_torch).abs().max().item():.12f}")

# %% [markdown] tags=["predict"]
# ## 3 · `nn.Linear` instead of parameters
#
# The usual way to write a projection is `nn.Linear(d_in, d_k, bias=False)`. It starts in another way, which is the
# appendix, and it stores its matrix in another way: **transposed**, as (out, in). So `linear(x)` computes
# `x @ linear.weight.T`.
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
# A square matrix goes in, no error is raised, and the layer is wrong. The large projections of notebook 06 are square.
# `attnlib.torch_layers.SelfAttention` is attention with three such layers; it returns the output and the weights.
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

# %% [markdown] tags=["predict"]
# ## 4 · Loss, gradient, optimiser
#
# Three words stand between a layer and a layer that learns. Notebook 03 needed the first two.
#
# - The **loss** is one number that says how wrong the model is. Ours will be the *cross-entropy*. The model gives each of
#   the 16 answers a number, a softmax turns the 16 into probabilities, and the loss is minus the logarithm of the
#   probability of the right answer. A model that gives each of the 16 the same probability has a loss of
#   $\ln 16 \approx 2.77$; one that is sure and right has 0.
# - The **gradient** of the loss says for each parameter how the loss changes with it. `loss.backward()` computes all of
#   them, backwards by the chain rule, and writes them into `parameter.grad`.
# - The **optimiser** turns gradients into steps. The simplest subtracts the gradient times a small number, the *learning
#   rate*. Ours is Adam ([Kingma and Ba 2015](../REFERENCES.md#kingma-2015)), which also divides by the usual size of each
#   gradient, so that parameters with small ones keep pace. Notebook 08 measures what then becomes of the argument of
#   notebook 03.
#
# A matrix that gets no gradient never learns, so look whether all three get one. **Predict.** The first loss below is made
# of the *output*. The second is the sum of all *attention weights*, of the map that the layer returns beside its output.
# Which gradients vanish for the second?
#
# - **a** that of $W_V$ only
# - **b** none
# - **c** all three

# %%
guess_gradients = None  # "a", "b" or "c"

# %%
for name in ("sum of output ** 2", "sum of the attention weights"):
    output, weights = ours(X)
    loss = (output**2).sum() if "output" in name else weights.sum()
    ours.zero_grad()  # backward adds: start from 0
    loss.backward()
    reached = {}
    for n, p in ours.named_parameters():
        norm = 0.0 if p.grad is None else p.grad.norm().item()
        reached[n.split(".")[0]] = "reached" if norm > 1e-9 else "nothing"
    print(f"{name}:", reached)

# %%
predict.sum_of_weights(guess_gradients)

# %% [markdown]
# Each row of attention weights sums to 1 whatever the matrices are, so the second loss cannot change, and teaches nothing:
# $W_Q$ and $W_K$ get a gradient of 0, and $W_V$, which has no part in it, gets none at all. The first reaches all three:
# through the values, and through the weights.
#
# ## 5 · It learns to look up
#
# The whole model: two tables of embeddings, one head, and a last `nn.Linear` that reads the answer off the output of the
# ninth token, with one number, a *logit*, for each of the 16 possible answers.


# %%
class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(N_LETTERS, D)
        self.number = nn.Embedding(N_NUMBERS, D)
        self.attention = SelfAttention(D, D)
        self.read = nn.Linear(D, N_NUMBERS)

    def forward(self, letters, numbers, asked):
        slots = self.letter(letters) + self.number(numbers)  # (b, 8, D)
        asking = self.letter(asked)[:, None]  # (b, 1, D): None adds an axis of size 1
        tokens = torch.cat([slots, asking], dim=1)  # (b, 9, D)
        output, weights = self.attention(tokens)
        return self.read(output[:, -1]), weights[:, -1]  # the asking token's row


# %% [markdown]
# There is no softmax behind `read`: `nn.functional.cross_entropy` does it, and wants the raw logits. ($W_V$ and `read` are
# two linear maps with only a weighted sum between them, so one could do the work of both. They stay two, so that the
# attention is the module of section 3, unchanged.)


# %%
def evaluate(model, rule=SAME):
    fresh = torch.Generator().manual_seed(1)
    letters, numbers, asked, answer, slot = make_batch(1000, fresh, rule)
    with torch.no_grad():
        logits, weights = model(letters, numbers, asked)
    accuracy = (logits.argmax(-1) == answer).float().mean().item()
    return accuracy, weights, slot


def tell(when, accuracy, weights, slot):
    on_slot = weights[torch.arange(1000), slot].mean().item()
    print(f"{when}: accuracy {accuracy:.2f}, weight on the right slot {on_slot:.2f}")


# %%
def train(model, what, rule=SAME):
    generator, losses = torch.Generator().manual_seed(0), []
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in live.progress(range(400), what):
        letters, numbers, asked, answer, _ = make_batch(128, generator, rule)
        logits, _ = model(letters, numbers, asked)
        loss = nn.functional.cross_entropy(logits, answer)
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
print(f"largest weight of a row, before: {before.amax(-1).mean().item():.2f}")
losses = train(model, "training")
accuracy, after, slot = evaluate(model)
tell("after training", accuracy, after, slot)

# %%
figure, ax = plot.subplots(figsize=(6, 3))
ax.plot(losses)
ax.axhline(np.log(N_NUMBERS), linestyle="--", color="gray", label="guessing: ln 16")
ax.set(xlabel="step", ylabel="loss")
_ = ax.legend()

# %% [markdown]
# The model has not seen these 1000 memories before, only their letters and numbers, and its answers are right. Where does the
# asking token look, before training and after? Here are eight of the memories, one a row (so a column is not one key, but the
# slot of that number in eight memories):

# %%
rows = [f"asks for slot {s}" for s in slot[:8].tolist()]
columns = [f"slot {j}" for j in range(N_PAIRS)] + ["itself"]
maps = torch.stack([before[:8], after[:8]])  # (2, 8, 9)
titles = ["before training", "after training"]
figure = plot.head_grid(maps, queries=rows, keys=columns, titles=titles, columns=2)

# %% [markdown] tags=["predict"]
# Nobody told the layer which slot to look at. The loss on the answer was enough to shape $W_Q$ and $W_K$. This is one head
# from one seed. From other seeds (*Try it* 4) it answers as well, but shares its weight differently.
#
# ## Break it · Weights that cannot choose
#
# Take the choice away: every weight is $1/9$, for each query and key, and all the rest is trained as before. The
# eight numbers of the memory, some of them twice, are still in front of the model, and it sees all of them.
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
most = nn.functional.one_hot(memories, N_NUMBERS).sum(1).amax(-1) / N_PAIRS
print(f"share of the most frequent number in a memory: {most.mean().item():.2f}")

# %%
predict.equal_weights(guess_equal)

# %% [markdown] tags=["predict"]
# It does as well as somebody who looks at the eight numbers, forgets the letters, and says the one that occurs most often.
# What is in memory, it knows; what belongs to the letter, it cannot know. That is what the choice is for.
#
# ## 6 · What is a key?
#
# Open the head that works. It has met letters only in slots and in questions. But $W_Q$ and $W_K$ can be given any vector,
# so give them the embeddings of the 16 letters alone: make a query of each letter and a key of each letter, and compute
# all 256 scores.
#
# **Predict.** What will the map of these scores look like?


# %%
def alphabet_map(model):
    with torch.no_grad():
        query = model.attention.W_Q(model.letter.weight)  # (16, d_k)
        key = model.attention.W_K(model.letter.weight)
    return query @ key.T / D**0.5  # (16, 16) scaled scores


shown = {"queries": LETTERS, "keys": LETTERS, "vmin": None, "vmax": None, "places": 0}
ax = plot.attention_heatmap(alphabet_map(model), title="scaled scores", **shown)

# %% [markdown]
# From here on there are exercises between the text. Write your answer in the first cell, run it and the cell below it. The
# verdict names the mistake, if it knows it. Stuck? Run `verdict.hint()` in a cell of your own: each call goes one step
# further. The solution is folded below.

# %% [markdown] tags=["exercise"]
# ### Exercise 4.1 · Read the map
#
# **Goal.** Read two typical scores off the map: of a letter with itself, and with another one. *3 minutes, easy.*
#
# Roughly is enough: `[mean of the 16 cells on the diagonal, mean of all other cells]`.

# %%
my_alphabet_scores = None  # two numbers, [with itself, with another]

# %%
verdict = check.alphabet_scores(my_alphabet_scores)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_alphabet_scores = [8, 0]  # the diagonal is near 8; the rest scatters around 0
# ```
#
# </details>

# %% tags=["nbval-ignore-output"]
scores = alphabet_map(model)
same = torch.eye(N_LETTERS, dtype=torch.bool)
print(f"mean score with itself  {scores[same].mean().item():+.2f}")
print(f"mean score with another {scores[~same].mean().item():+.2f}")
lead = scores[same] - scores.masked_fill(same, -torch.inf).amax(-1)  # (16,)
print(f"ahead of the best other letter by {lead.min().item():.1f} or more")

# %% [markdown]
# This is what a **key** is: the vector by which a token is found, by whoever asks for it, and nothing more. The key of c is the
# vector that fits the query "c?". And it is found sharply. The right letter's score is about 8 above that of an average other
# letter, so it gets $e^8 \approx 3000$ times the weight of that one. In the row where another letter comes closest, that one is
# still 3 behind, and $e^3 \approx 20$.
#
# The **value** of the same token need not look like its key at all. But a slot is one vector, the sum of a letter and a number.
# Can a matrix read one of them and pass over the other? Look at what $W_V$ hands to the last layer, `read`. Take the embeddings
# of the 16 numbers, one at a time, through $W_V$ and then through `read`; after that the embeddings of the letters. How far do
# they move the logits? (We take the standard deviation of each logit over the 16, and the mean of these.)

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    tables = model.number.weight, model.letter.weight  # (16, D) each
    by_number, by_letter = (model.read(model.attention.W_V(t)) for t in tables)
named = (by_number.argmax(-1) == torch.arange(N_NUMBERS)).sum().item()
print(f"numbers that the value alone names: {named} of {N_NUMBERS}")
moved = [logits.std(0).mean().item() for logits in (by_number, by_letter)]
print(f"logits move by {moved[0]:.1f} with the number, {moved[1]:.1f} with the letter")

# %% [markdown]
# The value alone names all 16 numbers, and of the letter little comes through. So the letter settles most of where the head
# looks, and the number nearly all of what comes back.
#
# But the weight on the right slot is well below 1. Look at the last column of the map after training: most of the missing
# part lies on the asking token *itself*. It is made of the same letter, so its key fits its own query just as well. What
# lets the slot win all the same? It has one thing that the asking token lacks, a number. The next cell leaves the numbers
# out of the keys, and only there:

# %% tags=["nbval-ignore-output"]
letters, _, asked, _, slot = make_batch(1000, torch.Generator().manual_seed(1))
with torch.no_grad():
    query = model.attention.W_Q(model.letter(asked))[:, None]  # (1000, 1, d_k)
    tokens = torch.cat([model.letter(letters), model.letter(asked)[:, None]], dim=1)
    scores = query @ model.attention.W_K(tokens).transpose(-1, -2) / D**0.5
    alone = scores.softmax(-1)[:, 0]  # (1000, 9)
for name, weights in (("as it is", after), ("keys of letters alone", alone)):
    on_slot = weights[torch.arange(1000), slot].mean().item()
    itself = weights[:, -1].mean().item()
    print(f"{name}: on the right slot {on_slot:.2f}, on itself {itself:.2f}")

# %% [markdown]
# Half and half, as it must be: without the numbers, both keys are the same vector. So it was the number that let the slot win.
# Queries and keys have learned two things together: to fit by their letter, and to fit better if the key's token holds a
# number. The loss rewards both, for weight on *itself* brings no number home. (One could also forbid a token to look at itself.
# Notebook 05 shows how.)

# %% [markdown]
# ### The same layer, another rule
#
# Is a key then simply the letter? Train the same model on another rule. The memory is as before, but now each letter asks
# for a partner, another letter. The partners are drawn by chance and printed nowhere; you will read them off the map.

# %% tags=["nbval-ignore-output"]
rule = torch.randperm(N_LETTERS, generator=torch.Generator().manual_seed(1595))
_ = torch.manual_seed(0)
second = Recall()
_ = train(second, "training on another rule", rule)
second_accuracy, second_weights, second_slot = evaluate(second, rule)
tell("another rule", second_accuracy, second_weights, second_slot)
print(f"another rule: on itself {second_weights[:, -1].mean().item():.2f}")
title = "scaled scores, another rule"
ax = plot.attention_heatmap(alphabet_map(second), title=title, **shown)

# %% [markdown] tags=["exercise"]
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

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_other_head = 2  # row c is bright in column h, and h is stored with 2
# ```
#
# </details>

# %% [markdown]
# The letters are the same, and the slots are made as before. What changed is who fits whom: c now asks for another letter.
# A score belongs to a query and a key together, so the map does not tell which of the two has moved. A key is how a token is
# found, by queries that were learned together with it. And the asking token no longer fits its own query, so now it gets
# next to no weight.

# %% [markdown] tags=["exercise"]
# ### Exercise 4.3 · Choose $W_Q$
#
# **Goal.** Design queries for which each letter looks at the next one. *8 minutes, medium.*
#
# What training found, you can also choose. Four letters, a to d, are one-hot tokens (1 in their own place, 0 in the three
# others), so row $i$ of $W_Q$ *is* the query of letter $i$, and row $i$ of $W_K$ its key. The keys stand in a circle: $W_K$ =
# `[[1, 0], [0, 1], [-1, 0], [0, -1]]`. Choose $W_Q$, (4, 2), such that a takes 0.9 or more from b, b from c, c from d, and d
# from a. Scores are divided by $\sqrt 2$, as always. There are many right answers.

# %%
my_W_Q = None  # four rows of two numbers

# %%
verdict = check.choose_W_Q(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_W_Q = [[0, 5], [-5, 0], [0, -5], [5, 0]]  # each points where the next key lies; 4.1 is just too short, 4.2 will do
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 4.4 · The layer
#
# **Goal.** Write self-attention as a module that returns the output and the weights. *16 minutes, hard.*
#
# The signature is that of `attnlib.torch_layers.SelfAttention` without its mask. `__init__(d_in, d_k, d_v=None)` makes three layers `nn.Linear`
# called `W_Q`, `W_K`, `W_V`, with `bias=False`; a `d_v` that is left out is `d_k`. `forward(x)` returns `(output, weights)`. The
# gradient of the output must reach all three layers.


# %%
class MySelfAttention(nn.Module):
    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        raise NotImplementedError  # your code in place of this line

    def forward(self, x):
        raise NotImplementedError  # your code in place of this line


# %%
verdict = check.SelfAttention(MySelfAttention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# class MySelfAttention(nn.Module):
#     def __init__(self, d_in, d_k, d_v=None):
#         super().__init__()
#         self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
#         self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)
#
#     def forward(self, x):
#         scores = self.W_Q(x) @ self.W_K(x).transpose(-1, -2) / self.W_Q.out_features**0.5  # (..., n_q, n_k)
#         weights = scores.softmax(-1)
#         return weights @ self.W_V(x), weights
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Remove the division by `Q.shape[-1] ** 0.5` in `AttentionFromParameters`. Which cell stops? (Not the worked example: it
#    only prints other numbers. The `assert` of the cell after it does.)
# 2. In your module of 4.4, write `weights.detach() @ self.W_V(x)`. All outputs stay right. Which matrices does the check
#    name? (W_Q and W_K.)
# 3. Train `Recall` with `N_PAIRS = 12`. Does it still reach 1.00? (Yes, with 0.86 on the right slot.)
# 4. Train it from seeds 1 and 2, with 8 pairs. How much weight is on the right slot, and how much on itself? (0.92 and
#    0.06; 0.95 and 0.03. So the share is not a property of the task.)
#
# **Remember.** A module is the same four steps with matrices that learn. Check it against known, asymmetric numbers in
# float64. nn.Linear stores $W$ transposed. A key is how a token is found, a value is what it hands over, and a loss on the
# answer teaches both. Next: [05 masks](05_masks.ipynb).

# %% [markdown] tags=["predict"]
# ## Appendix · How a layer starts
#
# Notebook 05 needs nothing of this. It is for those who wondered about the numbers before the first step.
#
# Notebook 03 said: dividing by $\sqrt{d_k}$ brings the variance of scores to 1, *if* the entries of $q$ and $k$ have
# variance 1. In a layer $q = x W_Q$, so that depends on how $W_Q$ was drawn. Here are three ways, for $W_Q$ and $W_K$ of
# size 64 x 64 and tokens with entries of variance 1. Each draws evenly from a range: the default of `nn.Linear` from
# $\pm 1/\sqrt{d_{in}} = \pm 1/8$, `torch.rand` from 0 to 1, and Xavier's rule
# ([Glorot and Bengio 2010](../REFERENCES.md#glorot-2010)) from $\pm\sqrt{6/(d_{in} + d_k)} \approx \pm 0.22$. What is drawn
# evenly from $\pm a$ has the variance $a^2/3$.
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
# Xavier's does. The default gives about $1/9$: its entries have variance $1/(3 \cdot 64)$, an entry of $q = x W_Q$ adds 64
# such terms, so it has variance $1/3$, an entry of $k$ as well, and a third of a third is a ninth. Fresh layers are nearly
# undecided, then. (Those of `Recall` are less so, for a slot is a sum of two embeddings, with variance 2. Before training
# the largest weight of a row was about 0.2, where equal ones are 0.11: still far from decided.)
#
# And `torch.rand` gives more than ten thousand. It fills the matrix with positive numbers, so its columns have a large part
# in common, and so have the entries of one query. How alike are the queries?

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
# Under `torch.rand` three quarters of all the squared length of the queries lie along one direction, $(1, ..., 1)$: a long
# query points nearly along it, one way or the other. So does a long key. Then the 64 products of their score cannot be
# independent of one another. How many have the same sign?

# %%
r = np.random.default_rng(92)
for name in ("torch.rand", "Xavier"):
    tokens_qk = r.normal(size=(2, 1000, 64))  # a key for each of 1000 queries
    q, k = tokens_qk @ r.uniform(*ranges[name], size=(2, 64, 64))  # (n, d_k) each
    positive = (q * k > 0).mean(axis=-1)  # (n,) share of the 64 products of a score
    same_sign = np.maximum(positive, 1 - positive).mean()
    print(f"{name:<10} products of a score with the same sign: {same_sign:.0%}")

# %% [markdown] tags=["predict"]
# 55 % is what chance gives with 64 independent products, and nearly half of them cancel the other half. Those of `torch.rand`
# add up.
#
# The slider shows both starts: fresh weights of six random tokens with 64 entries, divided by $\sqrt{d_k}$ on both sides.
# **Predict.** Xavier's range shrinks as $d_k$ grows, the default's does not. In which direction will Xavier's map change
# from $d_k = 4$ to 512, and the default's?

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
# The default stays undecided at every $d_k$. Xavier starts one-sided at a small $d_k$, and ends flat: at $d_k = 512$ it is
# flatter than the default. It keeps the variance for square matrices, $d_{in} = d_k$. Those of a head usually are not: 512
# by 64 in section 3. (`Recall` is an exception.) "Dividing by $\sqrt{d_k}$ keeps the variance near 1" is a statement about
# three things: the division, the tokens and the draw.

# %% [markdown]
# ### Footnote · What `nn.Linear` draws
#
# You may read that `nn.Linear` uses [Xavier](../REFERENCES.md#glorot-2010) or [Kaiming](../REFERENCES.md#he-2015)
# initialisation. Both are rules for the standard deviation, made of the number of inputs, *fan_in*, and of outputs,
# *fan_out*. Kaiming's is a *gain* divided by $\sqrt{fan_{in}}$; the gain depends on the function that follows the layer,
# and for ReLU, $\max(0, x)$, it is $\sqrt 2$. Measure it:

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
# It is $1/\sqrt{3\, fan_{in}}$, and neither of the two. torch calls Kaiming's function with an unusual gain,
# `kaiming_uniform_(weight, a=sqrt(5))` ([why](../REFERENCES.md#torch-linear)); the name for the gain's formula is
# `leaky_relu`:

# %%
_ = torch.manual_seed(0)  # the same draw once more
by_kaiming = nn.init.kaiming_uniform_(torch.empty(fan_out, fan_in), a=5**0.5)
print("gain for ReLU       ", round(nn.init.calculate_gain("relu"), 4))
print("gain for a = sqrt(5)", round(nn.init.calculate_gain("leaky_relu", 5**0.5), 4))
print("differs from nn.Linear by", (by_kaiming - weight).abs().max().item())

# %% [markdown]
# The gain is $0.5774 = 1/\sqrt 3$, and $1/\sqrt 3$ divided by $\sqrt{fan_{in}}$ is $1/\sqrt{3\, fan_{in}}$.

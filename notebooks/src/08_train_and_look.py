# %% [markdown]
# # 08 · Train it and look inside
#
# **Question.** What do heads learn when a task leaves them free to choose, and how do you find out without picking the
# pretty picture? *45 minutes. This notebook needs torch.*
#
# In the notebooks before, you built attention, broke it and mended it. Now you train it and ask what it has learned. Four
# small models do the work: one reverses a sequence, one names both neighbours, one continues a pattern, one looks up a pair.
# The first of them has learned something that nobody asked for, and so it comes first.

# %%
from collections import Counter
from functools import partial

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.course.training import train
from attnlib.torch_layers import MultiHeadAttention, SelfAttention

_ = torch.set_num_threads(1), torch.set_flush_denormal(True)  # both for speed
N_TOKENS, T, D = 10, 10, 32  # different tokens, places, features of a token

# %% [markdown]
# ## Before you start
#
# Three questions from memory. Do not turn back; a wrong answer helps you remember, too.
#
# **1.** *(notebook 07)* A module with a causal mask returns the right shapes. You change the last token, and the output
# of the first one moves. What is wrong?
#
# - **a** the scores are divided by the wrong number
# - **b** the weights of a row do not sum to 1
# - **c** a query sees a token that comes after it
#
# **2.** *(notebook 06)* A layer has $d_{model} = 128$ and 8 heads. By which number are the scores divided?
#
# - **a** by 4
# - **b** by 8
# - **c** by 11.3
#
# **3.** *(notebook 03)* The entries of $q$ and $k$ are drawn with variance 1, and $d_k = 64$. How large is a typical
# score $q \cdot k$?
#
# - **a** about 1
# - **b** about 8
# - **c** about 64

# %%
predict.before_08(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A diagonal that is too dark
#
# Ten tokens go in, and the same ten must come out in reverse order: the first place names the last token, the second
# place the last but one, and so on. The model has one head. Each token is a learned vector with `D` features. If
# `with_positions` is set, another learned vector is added to it, one for each place.


# %%
class Reverse(nn.Module):
    def __init__(self, with_positions, places=T):
        super().__init__()
        self.token, self.read = nn.Embedding(N_TOKENS, D), nn.Linear(D, N_TOKENS)
        start = torch.randn(places, D) if with_positions else torch.zeros(places, D)
        self.position = nn.Parameter(start, requires_grad=with_positions)
        self.attention = MultiHeadAttention(D, 1, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position  # (b, T, D)
        output, weights = self.attention(x)  # (b, T, D), (b, 1, T, T)
        return self.read(output), weights


# %% [markdown]
# Without positions the added vectors are zeros that do not train, and nothing tells the model where a token stands. With
# positions it learns to reverse. `train(model, draw, loss, steps=..., lr=...)` is the loop of notebook 04: draw a batch,
# compute the loss, take one step of [Adam](../REFERENCES.md#kingma-2015). **Predict.** Which share of the tokens does the
# model without positions name correctly?
#
# - **a** about 0.1: it can only guess one of ten tokens
# - **b** about 0.3
# - **c** nearly 1, if it is trained long enough

# %%
guess_no_positions = None  # "a", "b" or "c"


# %%
def draw(generator, size=128, places=T):
    return torch.randint(N_TOKENS, (size, places), generator=generator)  # (b, T)


def loss(model, tokens):
    logits, _ = model(tokens)  # (b, T, N_TOKENS)
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flip(1).flatten())


reversers = {}
for with_positions in (True, False):
    _ = torch.manual_seed(0)
    reversers[with_positions] = model = Reverse(with_positions)
    name = f"positions: {with_positions}"
    train(model, draw, loss, steps=300, lr=3e-3, description=name)

# %% tags=["nbval-ignore-output"]
tokens, maps = draw(torch.Generator().manual_seed(1), size=4000), {}
accuracy = {}
for with_positions, model in reversers.items():
    with torch.no_grad():
        logits, weights = model(tokens)
    maps[with_positions] = weights.mean(0)[0]  # (T, T), the mean over 4000 sequences
    right = logits.argmax(-1) == tokens.flip(1)
    accuracy[with_positions] = right.float().mean().item()
    print(f"positions: {with_positions!s:5}  accuracy {accuracy[with_positions]:.3f}")

# %%
predict.no_positions(guess_no_positions)

# %% [markdown]
# Now look at the two heads. Each map is the mean over 4000 sequences that the models have not seen.

# %%
two_maps = torch.stack([maps[True], maps[False]])  # (2, T, T)
titles = ["with positions", "without positions"]
figure = plot.head_grid(two_maps, titles=titles, columns=2)

# %% tags=["nbval-ignore-output"]
on_mirror = two_maps.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
on_itself = two_maps.diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
for name, mirror, itself in zip(("with", "without"), on_mirror, on_itself):
    others = (1 - itself - mirror) / (T - 2)
    print(f"{name:7} positions: mirrored place {mirror:.2f}", end=", ")
    print(f"itself {itself:.2f}, mean of the other eight {others:.2f}")

# %% [markdown]
# With positions the head does what the task asks: the query at place $i$, counted from 0, looks at the key at place
# $9 - i$. Without positions it cannot know where that is, and it spreads its weights evenly over the sequence. But not
# quite: the diagonal is darker. On average a query gives its own place less than any other place. Nobody asked for that.
# Why does it do so?
#
# ## 2 · What can be known without order
#
# First find out what a head without positions can know at all. Exchange the tokens of each sequence by the same permutation
# and let the models answer. If a model pays no attention to order, its answers change places with the tokens, and
# nothing else changes.

# %% tags=["nbval-ignore-output"]
order = torch.randperm(T, generator=torch.Generator().manual_seed(2))
print("permute, then attend; attend, then permute: how far apart?")
for with_positions, model in reversers.items():
    with torch.no_grad():
        permuted_output = model(tokens[:8, order])[0]
        output_permuted = model(tokens[:8])[0][:, order]
    difference = (permuted_output - output_permuted).abs().max()
    print(f"positions: {with_positions!s:5}  {difference:.2f}")

# %% [markdown]
# Without positions both ways give the same. Each output is a weighted sum over the same set of tokens, and a sum
# has no first and no last term. This is called **permutation equivariance** ([Zaheer et al.
# 2017](../REFERENCES.md#zaheer-2017)). So an output depends on two things only: which tokens the sequence holds, and
# which of them is the query's own.
#
# Here are three explanations of the dark diagonal. They differ in what they expect of sequences with **nine** places, where
# the fifth stands in the middle. **Predict.** Which one is right?
#
# - **a** chance: another training would show another pattern, with nine places as with ten
# - **b** a place's own token is never the one it must name; with nine places it sometimes is
# - **c** the head has found out a little about places, with nine of them as with ten

# %%
guess_diagonal = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output"]
for places, seed in ((10, 1), (9, 0), (9, 1)):
    some, name = partial(draw, places=places), f"{places:2d} places, seed {seed}"
    _ = torch.manual_seed(seed)
    model = Reverse(False, places)
    train(model, some, loss, steps=300, lr=3e-3, seed=seed, description=name)
    with torch.no_grad():
        w = model(some(torch.Generator().manual_seed(1), size=4000))[1].mean(0)[0]
    own = w.diagonal().mean().item()
    print(f"{name}: itself {own:.2f}, each other {(1 - own) / (places - 1):.2f}")

# %%
predict.dark_diagonal(guess_diagonal)

# %% [markdown]
# With nine places the diagonal is hardly darker than the rest, and other seeds say the same. So the head with ten places
# has learned a fact about the task: the token to name is one of the *other* nine. How much is that worth? Count two
# ways to guess, on the same sequences: name the most frequent of all ten tokens, or the most frequent of the other nine.


# %%
def most_frequent(row):
    return Counter(row).most_common(1)[0][1] / len(row)  # how often it is right


rows = tokens.tolist()
of_bag = np.mean([most_frequent(row) for row in rows])
of_others = np.mean([most_frequent(r[:i] + r[i + 1 :]) for r in rows for i in range(T)])
print(f"most frequent of all ten tokens: {of_bag:.3f}")
print(f"most frequent of the other nine: {of_others:.3f}")

# %% tags=["nbval-ignore-output"]
print(f"the model without positions:     {accuracy[False]:.3f}")

# %% [markdown]
# The second guess is the best there is: without order, each of the other nine is as likely to stand in the mirrored place
# as the next. The model does as well as that. It has learned all that can be learned without order, and longer training
# would not help.
#
# But then why does a place give itself 0.07, and not 0? Because the head cannot lower a *place*. Two places with the same
# letter hold the same vector, so they get the same weight from every query:

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    w = reversers[False](tokens)[1][:, 0]  # (4000, T, T)
same, own = tokens[:, :, None] == tokens[:, None, :], torch.eye(T, dtype=torch.bool)
for name, cells in (("itself", own), ("my letter elsewhere", same & ~own)):
    print(f"{name}: weight {w[cells.expand_as(w)].mean():.2f}")
print(f"other letters: weight {w[~same].mean():.2f}")

# %% [markdown]
# The head lowers its own *letter* and with it every other copy, and such a copy may well be the token to name. So it
# lowers it a little only.
#
# ## 3 · Measure every head
#
# So a slightly darker diagonal meant something, and a number, a second task and other seeds were needed to say what. A picture of one
# head on one sequence proves little. Proceed like this: say where a head *should* look, as a boolean map, and take the
# mean weight that goes there, for every head and over many sequences.


# %%
def weight_on(weights, cells):
    """Weight (..., b, h, n_q, n_k) on the True cells, summed over a query's keys, then
    a mean over batch and the queries that have such a cell; gives (..., h)."""
    cells = torch.as_tensor(cells).expand_as(weights)
    hit = (weights * cells).sum(-1)  # (..., b, h, n_q)
    asked = cells.any(-1)  # queries that have such a cell
    return (hit * asked).sum((-3, -1)) / asked.sum((-3, -1))


# %% [markdown]
# Try it on a task from notebook 06: name the token before you and the token after you, on a ring of ten places. The model
# has one head or two, and the same number of parameters.


# %%
class Neighbours(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.token = nn.Embedding(N_TOKENS, D)
        self.position = nn.Parameter(torch.randn(T, D))
        self.attention = MultiHeadAttention(D, num_heads, bias=False)
        self.read = nn.Linear(D, 2 * N_TOKENS)

    def forward(self, tokens):
        output, weights = self.attention(self.token(tokens) + self.position)
        return self.read(output).unflatten(-1, (2, N_TOKENS)), weights


# %%
def neighbour_loss(model, tokens):
    before, after = tokens.roll(1, dims=1), tokens.roll(-1, dims=1)
    target = torch.stack([before, after], dim=-1)  # (b, T, 2)
    return nn.functional.cross_entropy(model(tokens)[0].flatten(0, 2), target.flatten())


# %%
i = torch.arange(T)
# The ring's seam is left out.
before, after = i[:, None] - 1 == i, i[:, None] + 1 == i  # (n_q, n_k)

# %% tags=["nbval-ignore-output"]
for h in (1, 2):
    _ = torch.manual_seed(0)
    model = Neighbours(h)
    name = f"{h} head(s)"
    train(model, draw, neighbour_loss, steps=500, lr=3e-3, description=name)
    with torch.no_grad():
        weights = model(tokens[:500])[1]
    for side, cells in (("before", before), ("after", after)):
        told = ", ".join(f"{w:.2f}" for w in weight_on(weights, cells).tolist())
        print(f"{name}: weight on the token {side}: {told}")

# %% [markdown]
# One head shares itself between both neighbours. Of two heads, each takes one (one seed each: a hint, no proof). Nothing in
# the model says which head takes which. That is why all heads are measured, and not the one that looked right.
#
# ## 4 · Induction: two layers work together
#
# You have read "KRUBLEMAKRUB" and are asked what comes next. You say L, though you have never seen this word: you find
# where B stood before, and name what came after it. Can a head do that?
#
# The model gets 6 to 12 different letters, repeated until 24 places are full, and predicts the next letter at every place.
# The letters change with each sequence, and so does the **period**, the length of the pattern. Nothing about a single
# sequence can be learned by heart. (The task, the heads it brings forth and how to measure them are from
# [Elhage et al. 2021](../REFERENCES.md#elhage-2021) and [Olsson et al. 2022](../REFERENCES.md#olsson-2022).)

# %%
V, LENGTH, LETTERS = 26, 24, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw_repeats(generator, size=32):
    # The first 12 places of a random order of all letters: all different.
    letters = torch.rand(size, V, generator=generator).argsort(-1)[:, :12]  # (b, 12)
    period = torch.randint(6, 13, (size, 1), generator=generator)  # (b, 1)
    return letters.gather(1, torch.arange(LENGTH) % period), period  # (b, 24)


for row in draw_repeats(torch.Generator().manual_seed(3), size=3)[0].tolist():
    print("".join(LETTERS[t] for t in row))

# %% [markdown]
# The model is made of attention and nothing else: layers with one head each, and a causal mask. Each layer adds its output
# to what came in. So layer 2 reads the tokens *and* what layer 1 has fetched for each of them.


# %%
class AttentionOnly(nn.Module):
    def __init__(self, layers, num_heads=1):
        super().__init__()
        self.token, self.position = nn.Embedding(V, D), nn.Embedding(LENGTH, D)
        layers = (MultiHeadAttention(D, num_heads, bias=False) for _ in range(layers))
        self.layers, self.read = nn.ModuleList(layers), nn.Linear(D, V)

    def forward(self, tokens):
        x, maps = self.token(tokens) + self.position.weight[: tokens.shape[1]], []
        for layer in self.layers:
            output, weights = layer(x, is_causal=True)
            x, maps = x + output, [*maps, weights]  # x: (b, n, D)
        return self.read(x), torch.stack(maps)  # (b, n, V), (layers, b, h, n, n)


# %% [markdown]
# Only the second half counts in the loss, because there every letter has stood before. In the first half there are
# letters that nobody can guess. **Predict.** Can a model with a single layer do it?
#
# - **a** yes, if it is trained longer or has more heads
# - **b** no: something is missing that only a second layer can have
# - **c** no: the causal mask hides the letter that it must predict

# %%
guess_one_layer = None  # "a", "b" or "c"


# %%
def induction_loss(model, batch):
    logits = model(batch[0])[0][:, 11:-1]  # the predictions of letters 12 to 23
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch[0][:, 12:].flatten())


inductors, histories = {}, {}
for layers in (2, 1):
    _ = torch.manual_seed(0)
    inductors[layers] = model = AttentionOnly(layers)
    options = dict(steps=800, lr=3e-3, every=25, description=f"{layers} layer(s)")
    histories[layers] = train(model, draw_repeats, induction_loss, **options)

# %% tags=["nbval-ignore-output"]
letters, period = draw_repeats(torch.Generator().manual_seed(4), size=1000)
maps = {}


def share_right(logits):
    return (logits[:, 11:-1].argmax(-1) == letters[:, 12:]).float().mean().item()


for layers, model in inductors.items():
    with torch.no_grad():
        logits, maps[layers] = model(letters)
    print(f"{layers} layer(s): accuracy {share_right(logits):.2f}")
print(f"naming any letter of the pattern: {(1 / period).mean():.2f}")

# %%
predict.one_layer(guess_one_layer)

# %% [markdown]
# Two layers solve it, and one does not. It does better than somebody who names any letter of the pattern, perhaps by its
# positions (a guess). Now the question is *how*, and it is asked of every head, by two measures. The first
# is the weight on the letter just before, taken in the first 12 places. The second is the weight on those letters that came
# right after an earlier copy of the present letter, taken in the last 12 places.

# %%
i = torch.arange(LENGTH)
late = i[:, None] >= 12  # (n_q, 1)
previous = (i[:, None] - 1 == i) & ~late  # (n_q, n_k)
back = i[:, None] - i  # how far key j lies behind query i
after_copy = (back > 0) & ((back + 1) % period[..., None] == 0) & late  # (b, n_q, n_k)
measures = {"previous letter": previous, "after a copy": after_copy[:, None]}

# %% tags=["nbval-ignore-output"]
for layers in (2, 1):
    for name, cells in measures.items():
        for layer, w in enumerate(weight_on(maps[layers], cells)[:, 0].tolist(), 1):
            print(f"model with {layers} layer(s), layer {layer}, {name}: {w:.2f}")

# %% [markdown]
# In the model with two layers, one head stands out for each measure. Here is a story that would explain it:
#
# - **Layer 1 is a previous-letter head.** It writes into each of the first twelve places which letter stood just before.
#   (Later places need not be found, since every letter stands among the first twelve. That is why the first measure has
#   `& ~late`.)
# - **Layer 2 is an induction head.** Its query says "I am B". The keys carry what layer 1 wrote: "before me stood B". So
#   the query finds the place after an earlier B, and the value there is the letter to name.
#
# If the story is true, then one layer has nothing to match: its keys say what a letter *is*, not what stood before it.
# More heads in that layer should not help either:

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
four = AttentionOnly(1, num_heads=4)
options = dict(steps=800, lr=3e-3, description="1 layer, 4 heads")
train(four, draw_repeats, induction_loss, **options)
with torch.no_grad():
    print(f"1 layer with 4 heads: accuracy {share_right(four(letters)[0]):.2f}")

# %% [markdown]
# ## 5 · See it · A head forms
#
# `train` kept the weights every 25 steps, and `functional_call` runs a model with weights that are handed in. The slider takes
# the model as it was then and lets it read one sequence of 16
# letters with period 8. **Predict.** Layer 2 is said to need layer 1. So does one head form long before the other?

# %%
text = "KRUBLEMA" * 2
example = torch.tensor([[LETTERS.index(c) for c in text]])  # (1, 16)
snapshots = histories[2].snapshots


def maps_at(step):
    with torch.no_grad():
        _, maps = torch.func.functional_call(inductors[2], snapshots[step], (example,))
    return {"layer 1": maps[0, 0, 0], "layer 2": maps[1, 0, 0]}  # (16, 16) each


steps = {"step": list(snapshots), "still": (0, 150, 200, 800)}
names = {"queries": text, "keys": text, "attn_mask": al.causal_mask(16)}
live.weights_view(maps_at, **steps, trained=True, **names)

# %% [markdown]
# The same as numbers, over many sequences: both measures, and the loss.

# %%
curves, some = [], letters[:200]
for snapshot in snapshots.values():
    with torch.no_grad():
        _, (first, second) = torch.func.functional_call(inductors[2], snapshot, (some,))
    on_copy = weight_on(second, after_copy[:200, None])
    curves.append((weight_on(first, previous).item(), on_copy.item()))

# %%
figure, (left, right) = plot.subplots(1, 2, figsize=(9, 3))
both = ["layer 1, previous letter", "layer 2, after a copy"]
left.plot(list(snapshots), curves, label=both)
left.set(xlabel="step", ylabel="weight")
right.plot(histories[2].losses, label="two layers")
right.plot(histories[1].losses, label="one layer")
right.set(xlabel="step", ylabel="loss")
_ = left.legend(), right.legend()

# %% [markdown]
# The two heads rise within the same steps, layer 1 a little ahead, and the loss falls with them. (One seed: a hint, no proof.)
# A previous-letter head is of no use until something reads it, and an induction head finds nothing to read until then.
#
# ## Break it · Take the previous-letter head away
#
# So far there is a story that fits the maps. A story can be tested by taking away what it needs. Let layer 1 add nothing, in a
# copy of the model (`load_state_dict` copies the weights into it).
# **Predict.** What remains of the accuracy, and where does the induction head look?

# %% tags=["nbval-ignore-output"]
broken = AttentionOnly(2)
broken.load_state_dict(inductors[2].state_dict())
with torch.no_grad():
    broken.layers[0].W_O.weight.zero_()
    logits, broken_maps = broken(letters)
w = weight_on(broken_maps[1], after_copy[:, None]).item()
print(f"without layer 1: accuracy {share_right(logits):.2f}", end=", ")
print(f"induction head's weight after a copy {w:.2f}")

# %% [markdown]
# Without the first head the second finds nothing. That alone proves little: whatever is taken away, something may fail. The
# story says more. Layer 2 makes three things of what it reads, <span style="color:#0072B2">queries</span>,
# <span style="color:#D55E00">keys</span> and <span style="color:#009E73">values</span>, and layer 1's output may reach
# each of them or not. **Predict.** If the story is true, which of the five lines below keep their accuracy?


# %%
def with_layer_1_in(query, key, value):
    first, second = inductors[2].layers
    before = inductors[2].token(letters) + inductors[2].position.weight  # (b, n, D)
    after = before + first(before, is_causal=True)[0]
    q, k, v = (after if given else before for given in (query, key, value))
    return inductors[2].read(after + second(q, k, v, is_causal=True)[0])


# %% tags=["nbval-ignore-output"]
WHERE = {"queries, keys, values": (True, True, True)}
WHERE |= {"keys, values": (False, True, True), "queries, values": (True, False, True)}
WHERE |= {"queries, keys": (True, True, False), "keys alone": (False, True, False)}
for name, where in WHERE.items():
    with torch.no_grad():
        right = share_right(with_layer_1_in(*where))
    print(f"layer 1 reaches layer 2's {name:22} accuracy {right:.2f}")

# %% [markdown]
# Take layer 1 away from the queries, or from the values: nothing happens. Take it away from the keys, and the accuracy is as
# low as without layer 1. Give it to the keys alone, and all is well. This is what the story said, and it could have
# come out otherwise. (Again one seed: a strong hint for this model, no law.)
#
# ### A period it has never seen
#
# In training every pattern was 6 to 12 letters long. Did the model learn where to look for these periods, or did it learn
# what to do? Give it shorter patterns and longer ones. Counted are the places whose letter has stood before.
# **Predict.** How well does it continue patterns of 3 to 5 letters?
#
# - **a** hardly at all: it has never looked back by so few places
# - **b** about as well as one layer does
# - **c** as well as those it was trained on

# %%
guess_period = None  # "a", "b" or "c"


# %% tags=["nbval-ignore-output"]
def accuracy_at(period):
    order = torch.rand(1000, V, generator=torch.Generator().manual_seed(7)).argsort(-1)
    again = order[:, torch.arange(LENGTH) % period]  # (1000, 24)
    first = max(period, 11)  # from here on every letter has stood before
    with torch.no_grad():
        answers = inductors[2](again)[0][:, first:-1].argmax(-1)
    return (answers == again[:, first + 1 :]).float().mean().item()


for periods in ((3, 4, 5), (6, 8, 10), (13, 14, 16)):
    told = ", ".join(f"{period}: {accuracy_at(period):.2f}" for period in periods)
    print(f"accuracy at period {told}")

# %%
predict.new_period(guess_period)

# %% [markdown]
# It learned a procedure: find the earlier copy, name what followed. But in training the first copy always stood in the first
# twelve places. Let a pattern of 4 letters begin later, after letters that do not come back:

# %% tags=["nbval-ignore-output"]
for start in (0, 4, 8, 12):
    order = torch.rand(1000, V, generator=torch.Generator().manual_seed(7)).argsort(-1)
    pattern = order[:, start + torch.arange(LENGTH - start) % 4]
    again = torch.cat([order[:, :start], pattern], dim=1)  # (1000, 24)
    with torch.no_grad():
        answers = inductors[2](again)[0][:, start + 4 : -1].argmax(-1)
    right = (answers == again[:, start + 5 :]).float().mean()
    print(f"pattern begins at place {start:2d}: accuracy {right:.2f}")

# %% [markdown]
# So the procedure is bound to the places where it was needed. It has other limits, too. It has vectors for 24 places
# and for 26 letters, and it has never met another letter or a 25th place.
#
# ## 6 · Does $1/\sqrt{d_k}$ matter for learning?
#
# Notebook 03 showed what a missing scale does to gradients at one moment. But a model that trains can change its weights.
# Does it recover? Take recall, the task of notebook 04, and make it harder: 32 pairs of a key and a value, 64 different
# keys, 32 different values, batches of 32. The class below is a single head with or without the scale; its
# `d_model` is 64, and $d_k$ varies.


# %%
class Recall(nn.Module):
    def __init__(self, d_model, d_k, scaled):
        super().__init__()
        self.key, self.value = nn.Embedding(64, d_model), nn.Embedding(32, d_model)
        self.W = SelfAttention(d_model, d_k, d_model)  # its three projections
        self.read, self.scale = nn.Linear(d_model, 32), d_k**-0.5 if scaled else 1.0

    def forward(self, keys, values, asked):
        slots = self.key(keys) + self.value(values)  # (b, 32, d_model)
        q = self.W.W_Q(self.key(asked))[:, None]  # (b, 1, d_k), the asking token
        scores = q @ self.W.W_K(slots).transpose(-1, -2) * self.scale  # (b, 1, 32)
        weights = scores.softmax(-1)
        return self.read((weights @ self.W.W_V(slots))[:, 0]), weights[:, 0]


# %%
def draw_pairs(generator, size=32, pairs=32):
    keys = torch.rand(size, 64, generator=generator).argsort(-1)[:, :pairs]  # (b, 32)
    values = torch.randint(32, (size, pairs), generator=generator)  # (b, 32)
    slot = torch.randint(pairs, (size,), generator=generator)  # (b,)
    rows = torch.arange(size)
    return keys, values, keys[rows, slot], values[rows, slot]


def recall_loss(model, batch):
    return nn.functional.cross_entropy(model(*batch[:3])[0], batch[3])


def recall_accuracy(model, pairs=32):
    *shown, answer = draw_pairs(torch.Generator().manual_seed(99), 400, pairs)
    return (model(*shown)[0].argmax(-1) == answer).float().mean().item()


# %% [markdown]
# One run is an anecdote. So there are three seeds for each of three $d_k$, with the scale and without it, and nothing else
# differs. And because one learning rate is an anecdote as well, there are two seeds more at a third of that rate,
# with three times the steps. **Predict.** At the larger rate, 0.003, at which $d_k$ is the difference largest?
#
# - **a** 8
# - **b** 128
# - **c** there is none: training makes the weights as small as they need to be

# %%
guess_scale = None  # "a", "b" or "c"

# %%
D_KS, STEPS, SEEDS = (8, 64, 128), {3e-3: 200, 1e-3: 600}, {3e-3: 3, 1e-3: 2}
each = [(lr, d, scaled) for lr in STEPS for d in D_KS for scaled in (True, False)]
plan = [(*setting, seed) for setting in each for seed in range(SEEDS[setting[0]])]
runs, recallers = {}, {}
for run in live.progress(plan, f"{len(plan)} runs"):
    lr, d_k, scaled, seed = run
    _ = torch.manual_seed(seed)
    recallers[run] = model = Recall(64, d_k, scaled)
    options = dict(steps=STEPS[lr], lr=lr, every=50, measure=recall_accuracy)
    history = train(model, draw_pairs, recall_loss, seed=seed, **options)
    runs[run] = history.measured  # {step: accuracy}

# %%
figure, axes = plot.subplots(2, 3, figsize=(12, 6), sharey=True)
panels = dict(zip([(lr, d) for lr in STEPS for d in D_KS], axes.flat))
measured = {}  # (rate, d_k, scaled): (seeds, measurements)
for lr, d_k, scaled in each:
    of = [runs[lr, d_k, scaled, seed] for seed in range(SEEDS[lr])]
    many = np.array([list(one.values()) for one in of])
    measured[lr, d_k, scaled], ax, x = many, panels[lr, d_k], list(of[0])
    line, name = ("-", "scaled") if scaled else ("--", "not scaled")
    ax.plot(x, many.mean(0), line, label=name)
    ax.fill_between(x, many.min(0), many.max(0), alpha=0.2)
    ax.set(title=f"d_k = {d_k}, learning rate {lr}", xlabel="step", ylabel="accuracy")
    ax.legend(loc="lower right")

# %% tags=["nbval-ignore-output"]
print("accuracy with the scale minus without, after so many steps; mean over seeds")
for lr, step in ((3e-3, 200), (1e-3, 200), (1e-3, 600)):
    print(f"rate {lr}, step {step}:", end="")
    for d_k in D_KS:
        with_it, without = (measured[lr, d_k, s][:, step // 50] for s in (True, False))
        print(f"   d_k {d_k:3d}: {with_it.mean() - without.mean():.2f}", end="")
    print()
worst = [measured[3e-3, 128, scaled][:, -1].min() for scaled in (True, False)]
print("rate 0.003, d_k 128, worst: scaled {:.2f}, not scaled {:.2f}".format(*worst))

# %%
predict.scale_and_training(guess_scale)

# %% [markdown]
# In the picture the lines are means over the seeds, and the bands go from the worst seed to the best.
#
# At the larger rate the gap grows with $d_k$. Look at the bands, too: without the scale, training is not only slower, it is
# **fragile**. Some seeds learn, and some hardly do. At the smaller rate the gap after 200 steps is as large at 64 as at 128,
# and after 600 steps it is gone. So there the missing scale costs time, not ability.
#
# ### Look inside
#
# Ask the models of seed 0 sixteen questions. Sequence $i$ holds sixteen pairs, and the question is for the one in place $i$.
# A head that finds its pair puts the weight on the diagonal. The slider goes through the three $d_k$ at both learning rates.

# %%
keys, values, _, _ = draw_pairs(torch.Generator().manual_seed(5), size=16, pairs=16)
asked = keys.diagonal()  # (16,): sequence i asks for its key i


STOPS_OF = {f"{d_k}, rate {lr}": (lr, d_k) for lr in STEPS for d_k in D_KS}


def recall_maps(stop):
    found = {}
    for scaled, name in ((False, "without the scale"), (True, "with it")):
        with torch.no_grad():
            model = recallers[(*STOPS_OF[stop], scaled, 0)]
            found[name] = model(keys, values, asked)[1]  # (16, 16)
    return found


# %%
three = ("8, rate 0.003", "128, rate 0.003", "128, rate 0.001")
names = [f"asks {i}" for i in range(16)]
stops = {"d_k": list(STOPS_OF), "still": three}
live.weights_view(recall_maps, **stops, trained=True, queries=names)

# %% tags=["nbval-ignore-output"]
print("weight on the pair that was asked for   without the scale   with it")
for stop in STOPS_OF:
    found = [weights.diagonal().mean().item() for weights in recall_maps(stop).values()]
    print(f"d_k = {stop:36}{found[0]:16.2f}{found[1]:10.2f}")

# %% [markdown]
# Without the scale, at $d_k = 128$ and the larger rate, there is a large weight in every row, and often it stands in the
# wrong column. Such a row is peaky already, and notebook 03 showed that then hardly any gradient passes. At the smaller
# rate, with three times the steps, the same head has found its diagonal. Were the rows peaky from the start?

# %%
*shown, _ = draw_pairs(torch.Generator().manual_seed(6), 400)
print("largest weight before training, mean over 400 questions")
for d_k in D_KS:
    for scaled in (True, False):
        _ = torch.manual_seed(0)
        with torch.no_grad():
            _, weights = Recall(64, d_k, scaled)(*shown)  # (400, 32)
        name = "scaled" if scaled else "not scaled"
        print(f"d_k = {d_k:3d}, {name}: {weights.amax(-1).mean():.2f}")

# %% [markdown]
# ### What this does not show
#
# Three more experiments, so that nobody reads too much into these curves. First, the same model without a scale, but with
# $W_Q$ divided by $\sqrt{d_k}$ **once, at the start**. Second, an easy task with only 8 pairs.

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
repaired = Recall(64, 128, scaled=False)
with torch.no_grad():
    repaired.W.W_Q.weight /= 128**0.5
options = dict(steps=200, lr=3e-3, description="smaller start")
train(repaired, draw_pairs, recall_loss, **options)
print(f"no scale, W_Q as drawn:         {runs[3e-3, 128, False, 0][200]:.2f}")
print(f"no scale, W_Q divided at start: {recall_accuracy(repaired):.2f}")


# %%
def draw_easy(generator):
    return draw_pairs(generator, pairs=8)


# %% tags=["nbval-ignore-output"]
for scaled in (True, False):
    _ = torch.manual_seed(0)
    model, name = Recall(64, 64, scaled), f"8 pairs, d_k = 64, scaled: {scaled}"
    train(model, draw_easy, recall_loss, steps=300, lr=3e-3, description=name)
    print(f"{name}: accuracy {recall_accuracy(model, pairs=8):.2f}")

# %% [markdown]
# A smaller start repairs most of it: what the scale does here, it does mainly at the *beginning*, where it keeps
# softmax away from its flat ends. And on an easy task both arrive.
#
# Third, another optimiser. A step of Adam has about the same size however large the gradient is. A step of SGD grows
# with the gradient. The factor *scale* stands in front of both gradients that pass through the scores (notebook 03: $dL/dq =
# scale \cdot dL/ds\, K$). For the same $Q$, $K$ and $dL/ds$ they are $\sqrt{d_k}$ times larger without it. So at a small
# learning rate no scale can even help:


# %%
def sgd_accuracy(scaled, lr):
    _ = torch.manual_seed(0)
    model, generator = Recall(64, 64, scaled), torch.Generator().manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for _ in live.progress(range(600), f"SGD, lr {lr}, scaled: {scaled}"):
        optimizer.zero_grad()
        recall_loss(model, draw_pairs(generator)).backward()
        optimizer.step()
    return recall_accuracy(model)


# %% tags=["nbval-ignore-output"]
for lr in (0.003, 0.03):
    told = (
        f"scaled {sgd_accuracy(True, lr):.2f}, not scaled {sgd_accuracy(False, lr):.2f}"
    )
    print(f"SGD, learning rate {lr}: {told}")

# %% [markdown]
# So one curve at one learning rate proves little, for the scale or against it (and these last experiments have one seed each:
# a hint, no proof). What can be said is this: with Adam at the rates above, training with the scale was far ahead after 200
# steps at $d_k = 128$, and at 8 there was no difference to speak of. With SGD at the small rate it was far behind. The scale
# costs next to no computation, but it has to be judged together with the learning rate.
#
# ## Exercises
#
# Each check names the mistake if it knows it, and `verdict.hint()` goes one step further at each call.

# %% [markdown]
# ### Exercise 8.1 · What order is worth
#
# **Goal.** Compute an accuracy before you train. *6 minutes, medium.*
#
# `Reverse` without positions gets sequences of 4 places with only 2 different tokens, equally frequent. Which accuracy can
# it reach at best? Hand in one number. Remember what an output depends on.

# %%
my_accuracy = None  # a number

# %%
verdict = check.bag_accuracy(my_accuracy)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# # A place names the token of another one: the more frequent of the other three. Splits 3:0 and 2:1:
# my_accuracy = 2 / 8 * 1 + 6 / 8 * 2 / 3
# # All 16 sequences, each of the 4 places left out in turn:
# from itertools import product
#
# right = [most_frequent(s[:i] + s[i + 1 :]) for s in product("ab", repeat=4) for i in range(4)]
# assert np.isclose(my_accuracy, np.mean(right))
# ```
#
# </details>

# %% [markdown]
# ### Exercise 8.2 · Find the induction head
#
# **Goal.** Write a measure of your own, and let it choose the head. *10 minutes, hard.*
#
# `my_measure(weights, tokens)` takes weights $(b, h, n_q, n_k)$ and tokens $(b, n)$, both NumPy arrays, and returns one
# number for each head, $(h,)$, the largest for the induction head. Section 4 knew the period of each sequence; your measure
# gets the letters only. (A measure that reads off the next letter and asks who looks at it passes, too: it ranks heads
# rightly, though a head itself cannot know that letter yet.) The check lets it rank heads whose habits are known. Then rank the two trained heads with it, where
# layer 2 must win: `my_measure(maps[2][:, :, 0].transpose(0, 1).numpy(), letters.numpy())`.


# %%
def my_measure(weights, tokens):
    return ...  # your code


# %%
verdict = check.induction_measure(my_measure)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_measure(weights, tokens):
#     same = tokens[:, :, None] == tokens[:, None, :]  # (b, n_q, n_k): key = my letter
#     hit = weights[..., 1:] * same[:, None, :, :-1]  # ... the letter *before* the key
#     return hit.sum(-1).mean((0, -1))  # (h,)
#
#
# heads = maps[2][:, :, 0].transpose(0, 1)  # (b, layers, n, n): each layer has one head
# layer = my_measure(heads.numpy(), letters.numpy()).argmax() + 1
# assert layer == 2
# ```
#
# </details>

# %% [markdown]
# ### Exercise 8.3 · Fool one layer
#
# **Goal.** Design an input that shows why one layer must fail, as far as content goes. *8 minutes, medium.*
#
# Positions may help a little; here they are left out. A layer without positions reads "D A B C E A". The last letter is A, and the A before was followed by B, so B is right.
# Which other sequence makes the **same** mixture at the last place, though another letter is right? There are several.
# `my_fool(tokens)` returns one of them, $(n,)$. Letters are numbers in a NumPy array, and A is 0. The last letter stood
# there once before; all others stand there once.


# %%
def my_fool(tokens):
    return ...  # your code


# %%
verdict = check.fool_one_layer(my_fool)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_fool(tokens):
#     at = list(tokens).index(tokens[-1])  # where the last letter stood before
#     other = 0 if at > 0 else 2  # any place but these two and the last
#     fooling = np.array(tokens)
#     fooling[[at + 1, other]] = fooling[[other, at + 1]]
#     return fooling
#
#
# # The trained models without their positions. One layer cannot tell the two apart:
# first = np.array([3, 0, 1, 2, 4, 0])  # D A B C E A
# pair = torch.from_numpy(np.stack([first, my_fool(first)]))  # (2, 6)
# for layers, model in inductors.items():
#     bare = {"position.weight": torch.zeros(LENGTH, D)}
#     with torch.no_grad():
#         logits, _ = torch.func.functional_call(model, bare, (pair,))
#     print(layers, "layer(s), same at the last place:", torch.allclose(*logits[:, -1], atol=1e-4))
#     assert torch.allclose(*logits[:, -1], atol=1e-4) == (layers == 1)
# # A second layer can: under the causal mask its keys carry what stood before them.
# # Four heads in one layer mix the same keys and values four times: fooled as well.
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Check 8.1 by training: write `N_TOKENS, T = 2, 4` in the first cell, and run section 1 again. Then restart the kernel.
# 2. Put a pattern in which one letter stands twice, "ABCAD" repeated, into the trained model of section 4. What does it say
#    after A, and where do its heads look?
# 3. Search for the learning rate at which `Recall` learns best with Adam, without the scale and with it. How wide is the
#    range that works in each case?
#
# **Remember.** Attention does not know order; positions have to be added. Measure every head against a rule, over many
# inputs. Then test the story that you tell about it: change the task, or take away what the head is said to need. Two layers
# can do what one layer cannot. With Adam at these rates, training without the scale was slower and fragile, and how much
# depended on $d_k$ and the rate; with SGD at a small rate it was the other way round.
# Next: [09 a real model](09_a_real_model.ipynb).

# %% [markdown]
# # 08 · Train it and look inside
#
# **Question.** What do heads learn when a task leaves them free to choose, and how do you find out without picking the
# pretty picture? *45 minutes. This notebook needs torch.*
#
# Four small trainings: reverse a sequence, name both neighbours, continue a repeated sequence, look up a pair.

# %%
from collections import Counter

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.checks import check, predict
from attnlib.torch_layers import MultiHeadAttention, SelfAttention
from attnlib.training import train

_ = torch.set_num_threads(1)
N_TOKENS, T, D = 10, 10, 32  # different tokens, places, features of a token

# %% [markdown]
# `train(model, draw, loss, steps=..., lr=...)` is the loop of notebook 04: draw a batch, compute the loss, one step of
# Adam. It can also keep copies of the weights on the way.
#
# ## 1 · Reverse a sequence
#
# Ten tokens go in, the same ten must come out in reverse order. One head, and a learned vector for each position, added
# to the token's vector.


# %%
class Reverse(nn.Module):
    def __init__(self, with_positions):
        super().__init__()
        self.token, self.read = nn.Embedding(N_TOKENS, D), nn.Linear(D, N_TOKENS)
        places = torch.randn(T, D) if with_positions else torch.zeros(T, D)
        self.position = nn.Parameter(places, requires_grad=with_positions)
        self.attention = MultiHeadAttention(D, 1, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position  # (b, T, D)
        output, weights = self.attention(x)  # (b, T, D), (b, 1, T, T)
        return self.read(output), weights


# %% [markdown]
# Without positions the vectors are zeros that do not train. With positions the model learns to reverse.
# **Predict.** Which accuracy does it reach without?
#
# - **a** about 0.1: it can only guess one of ten tokens
# - **b** about 0.3
# - **c** nearly 1, if it is trained long enough

# %%
guess_no_positions = None  # "a", "b" or "c"


# %%
def draw(generator, size=128):
    return torch.randint(N_TOKENS, (size, T), generator=generator)  # (b, T)


def loss(model, tokens):
    logits, _ = model(tokens)  # (b, T, N_TOKENS)
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flip(1).flatten())


reversers = {}
for with_positions in (True, False):
    _ = torch.manual_seed(0)
    reversers[with_positions] = model = Reverse(with_positions)
    name = f"positions: {with_positions}"
    train(model, draw, loss, steps=300, lr=3e-3, description=name)

# %%
tokens, maps = draw(torch.Generator().manual_seed(1), size=4000), {}
accuracy = {}
for with_positions, model in reversers.items():
    with torch.no_grad():
        logits, weights = model(tokens)
    maps[with_positions] = weights.mean(0)[0]  # (T, T), the mean over 4000 sequences
    right = logits.argmax(-1) == tokens.flip(1)
    accuracy[with_positions] = right.float().mean().item()
print(f"with positions: accuracy {accuracy[True]:.2f}")
print(f"without: below 0.3: {accuracy[False] < 0.3}")

# %%
predict.no_positions(guess_no_positions)

# %%
maps = torch.stack([maps[True], maps[False]])  # (2, T, T)
figure = plot.head_grid(maps, titles=["with positions", "without positions"], columns=2)
on_mirror = maps.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
print(f"with positions, weight on the mirrored place above 0.9: {on_mirror[0] > 0.9}")
print(f"without: {on_mirror[1]:.1f}, as if it were spread over 10 places")

# %% [markdown]
# With positions the head learns the anti-diagonal: query $i$ looks at key $9 - i$. Without them every query has the same
# choice of keys whatever its place.
#
# ## 2 · Attention does not know order
#
# Why? Permute the tokens and look at the output, with and without positions.

# %%
order = torch.randperm(T, generator=torch.Generator().manual_seed(2))
for with_positions, model in reversers.items():
    with torch.no_grad():
        permuted_output = model(tokens[:8, order])[0]
        output_permuted = model(tokens[:8])[0][:, order]
    same = (permuted_output - output_permuted).abs().max().item() < 1e-4
    name = f"positions: {with_positions}"
    print(f"{name}.  permute, then attend = attend, then permute: {same}")

# %% [markdown]
# Each output row is the same mixture of the same set; the rows only change places with their tokens. This is called
# **permutation equivariance**. A sum over keys has no first or last term.
#
# So without positions the model sees a bag of tokens. The best guess from a bag is its most frequent token, for every
# place. How often is that right?

# %%
most_frequent = [Counter(row).most_common(1)[0][1] / T for row in tokens.tolist()]
print(f"guessing the most frequent token: {np.mean(most_frequent):.2f}")
gap = abs(accuracy[False] - np.mean(most_frequent))
print("the model without positions is within 0.02 of it:", gap < 0.02)

# %% [markdown]
# It learned all that can be learned without order. Longer training would not help.
#
# ## 3 · Measure every head
#
# A picture of one head on one sequence proves little. A number for every head, over many sequences, proves more. Say
# where a head *should* look, as a boolean map, and take the mean weight that goes there:


# %%
def weight_on(weights, cells):
    """Mean weight on the True cells, both (..., b, h, n_q, n_k); gives (..., h)."""
    cells = torch.as_tensor(cells).expand_as(weights)
    hit = (weights * cells).sum(-1)  # (..., b, h, n_q)
    asked = cells.any(-1)  # queries that have such a cell
    return (hit * asked).sum((-3, -1)) / asked.sum((-3, -1))


# %% [markdown]
# First on the task of notebook 06: name the token before and the token after, on a ring of 10. One head or two, with the
# same number of parameters.


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

# %%
for h in (1, 2):
    _ = torch.manual_seed(0)
    model = Neighbours(h)
    name = f"{h} head(s)"
    train(model, draw, neighbour_loss, steps=500, lr=3e-3, description=name)
    with torch.no_grad():
        weights = model(tokens[:500])[1]
    for side, cells in (("before", before), ("after", after)):
        high = (weight_on(weights, cells) > 0.9).tolist()
        print(f"{name}: weight on the token {side} above 0.9:", high)

# %% [markdown]
# One head serves neither. Of two heads, each takes one neighbour. Which head takes which is chance: it depends on the
# seed. That is why all heads are measured.
#
# ## 4 · Induction: two layers work together
#
# A sequence of 6 to 12 different letters, repeated until 24 places are full. Predict the next letter. Which letters come,
# and how long the pattern is, changes with every sequence. So the only way is: find where the present letter stood
# before, and name the letter that came after it.

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
# Layers of attention and nothing else, one head each, with a causal mask. Each layer adds its output to what came in, so
# that layer 2 reads the tokens *and* what layer 1 fetched.


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
# Only the second half counts in the loss: there every letter has stood before. (With the loss on all places the model
# spends its effort on letters that nobody can guess.) **Predict.** Can one layer do it?
#
# - **a** yes, if it is trained longer or has more heads
# - **b** no: its keys do not know which letter stands before them
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

# %%
letters, period = draw_repeats(torch.Generator().manual_seed(4), size=1000)
maps = {}


def share_right(logits):
    return (logits[:, 11:-1].argmax(-1) == letters[:, 12:]).float().mean().item()


for layers, model in inductors.items():
    with torch.no_grad():
        logits, maps[layers] = model(letters)
    right = share_right(logits)
    verdict = f"above 0.95: {right > 0.95}, below 0.4: {right < 0.4}"
    print(f"{layers} layer(s): accuracy {verdict}")

# %%
predict.one_layer(guess_one_layer)

# %% [markdown]
# Two layers solve it, one does not. Now the question is *how*, and it is asked of every head. Two measures: the weight on
# the previous letter, in the first 12 places, and the weight on the letters that came right after an earlier copy of the
# present letter, in the last 12.

# %%
i = torch.arange(LENGTH)
late = i[:, None] >= 12  # (n_q, 1)
previous = (i[:, None] - 1 == i) & ~late  # (n_q, n_k)
back = i[:, None] - i  # how far key j lies behind query i
after_copy = (back > 0) & ((back + 1) % period[..., None] == 0) & late  # (b, n_q, n_k)
measures = {"previous letter": previous, "after a copy": after_copy[:, None]}

# %%
for layers in (2, 1):
    for name, cells in measures.items():
        for layer, w in enumerate(weight_on(maps[layers], cells)[:, 0].tolist(), 1):
            said = "above 0.8" if w > 0.8 else "below 0.3" if w < 0.3 else "between"
            print(f"model with {layers} layer(s), layer {layer}, {name}: {said}")

# %% [markdown]
# One head stands out for each measure. In the model with two layers:
#
# - **Layer 1 is a previous-letter head.** It writes into each place which letter stood before it.
# - **Layer 2 is an induction head.** Its query says "I am B". The keys now carry what layer 1 wrote: "before me stood B".
#   They match where B stood before, one place further. The value there is the letter to predict.
#
# The second step needs the first one done. One layer has nothing to match: its keys say what a letter *is*, not what stood
# before it. More heads in that layer do not change this:

# %%
_ = torch.manual_seed(0)
four = AttentionOnly(1, num_heads=4)
options = dict(steps=800, lr=3e-3, description="1 layer, 4 heads")
train(four, draw_repeats, induction_loss, **options)
with torch.no_grad():
    right = share_right(four(letters)[0])
print(f"1 layer with 4 heads: accuracy below 0.4: {right < 0.4}")

# %% [markdown]
# ## 5 · See it · A head forms
#
# The weights were kept every 25 steps. One sequence of 16 letters with period 8; the slider runs the model as it was.
# **Predict.** Does one head form long before the other?

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
# The same as numbers: both measures and the loss over training.

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
# The two heads rise together, and the loss falls with them. A previous-letter head is of use only to an induction head
# that reads it, and the other way round. Before that moment the loss hardly says where to go.
#
# ## Break it · Take the previous-letter head away
#
# The claim is that layer 2 *uses* layer 1. Test it: let layer 1 add nothing. **Predict.** What remains of the accuracy,
# and where does the induction head look?

# %%
broken = AttentionOnly(2)
broken.load_state_dict(inductors[2].state_dict())
with torch.no_grad():
    broken.layers[0].W_O.weight.zero_()
    logits, broken_maps = broken(letters)
right = share_right(logits)
print(f"without layer 1: accuracy below 0.3: {right < 0.3}")
w = weight_on(broken_maps[1], after_copy[:, None]).item()
print(f"induction head, weight after a copy below 0.3: {w < 0.3}")

# %% [markdown]
# A correlation became a cause: without the first head the second finds nothing.
#
# ## 6 · Does $1/\sqrt{d_k}$ matter for learning?
#
# Notebook 03 showed what a missing scale does to gradients. Does it hurt training? Test it on recall (notebook 04), made
# harder: 32 pairs, 64 keys, 32 values, batches of 32, 200 steps.


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
# One seed is an anecdote. Five seeds for each of three $d_k$, with the scale and without. **Predict.** At which $d_k$
# is the difference largest?
#
# - **a** 8
# - **b** 128
# - **c** there is none: training makes the weights as small as they need to be

# %%
guess_scale = None  # "a", "b" or "c"

# %%
SETTINGS = {8: (64, 3e-3), 64: (64, 3e-3), 128: (128, 1e-3)}  # d_k: (d_model, lr)
plan = [(d, scaled, i) for d in SETTINGS for scaled in (True, False) for i in range(5)]
options = dict(steps=200, every=20, measure=recall_accuracy)
runs, recallers = {}, {}
for run in live.progress(plan, "30 runs"):
    d_k, scaled, seed = run
    d_model, lr = SETTINGS[d_k]
    _ = torch.manual_seed(seed)
    recallers[run] = model = Recall(d_model, d_k, scaled)
    history = train(model, draw_pairs, recall_loss, lr=lr, seed=seed, **options)
    runs[run] = history.measured  # {step: accuracy}

# %%
figure, axes = plot.subplots(1, 3, figsize=(12, 3.2), sharey=True)
final, x = {}, range(0, 201, 20)
for ax, (d_k, (_, lr)) in zip(axes, SETTINGS.items()):
    for scaled, line, name in ((True, "-", "scaled"), (False, "--", "not scaled")):
        five = [list(runs[d_k, scaled, seed].values()) for seed in range(5)]
        five = np.array(five)  # (5, 11): seeds, measurements
        ax.plot(x, five.mean(0), line, label=name)
        ax.fill_between(x, five.min(0), five.max(0), alpha=0.2)
        final[d_k, scaled] = five[:, -1]
    ax.set(title=f"d_k = {d_k}, learning rate {lr}", xlabel="step", ylabel="accuracy")
    ax.legend(loc="upper left")

# %% [markdown]
# Lines are means over the five seeds, bands go from the worst seed to the best.

# %%
for d_k in SETTINGS:
    gap = final[d_k, True].mean() - final[d_k, False].mean()
    said = "above 0.2" if gap > 0.2 else "below 0.05" if gap < 0.05 else "0.05 to 0.2"
    print(f"d_k = {d_k:3d}: mean accuracy with the scale minus without: {said}")
scaled, plain = np.ptp(final[128, True]), np.ptp(final[128, False])
print("d_k = 128, best seed minus worst:")
print(f"scaled below 0.05: {scaled < 0.05}, not scaled above 0.2: {plain > 0.2}")

# %%
predict.scale_and_training(guess_scale)

# %% [markdown]
# The larger $d_k$, the more a missing scale costs. And look at the bands: unscaled training is not only slower, it is
# **fragile**. Some seeds learn, some hardly do.
#
# ### Look inside
#
# Sixteen questions to the models of seed 0. Sequence $i$ asks for slot $i$, so good attention is a diagonal. The slider
# goes through the three $d_k$.

# %%
keys, values, _, _ = draw_pairs(torch.Generator().manual_seed(5), size=16, pairs=16)
asked = keys.diagonal()  # (16,): sequence i asks for its key i


def recall_maps(d_k):
    with torch.no_grad():
        _, plain = recallers[d_k, False, 0](keys, values, asked)  # (16, 16)
        _, scaled = recallers[d_k, True, 0](keys, values, asked)
    return {"trained without the scale": plain, "trained with it": scaled}


names = [f"asks {i}" for i in range(16)]
choices = {"d_k": list(SETTINGS), "still": tuple(SETTINGS)}
live.weights_view(recall_maps, **choices, trained=True, queries=names)

# %% [markdown]
# Not scaled and $d_k = 128$: a large weight in every row, often in the wrong column. The row is peaky already, so hardly
# any gradient says that another slot would be better. Peaky from the start:

# %%
*shown, _ = draw_pairs(torch.Generator().manual_seed(6), 400)
print("largest weight before training, mean over 400 questions")
for d_k, (d_model, _) in SETTINGS.items():
    for scaled in (True, False):
        _ = torch.manual_seed(0)
        with torch.no_grad():
            _, weights = Recall(d_model, d_k, scaled)(*shown)  # (400, 32)
        name = "scaled" if scaled else "not scaled"
        print(f"d_k = {d_k:3d}, {name}: {weights.amax(-1).mean():.1f}")

# %% [markdown]
# ### What this does not show
#
# Unscaled is not impossible: it is slower, and its curves were still rising. Three more experiments, so that nobody
# over-reads them. First, the same model without a scale, but with $W_Q$ divided by $\sqrt{d_k}$ **once, at the start**.
# Second, an easy task: 8 pairs.

# %%
_ = torch.manual_seed(0)
repaired = Recall(128, 128, scaled=False)
with torch.no_grad():
    repaired.W.W_Q.weight /= 128**0.5
options = dict(steps=200, lr=1e-3, description="smaller start")
train(repaired, draw_pairs, recall_loss, **options)
right = recall_accuracy(repaired)
print(f"d_k = 128, no scale, W_Q started smaller: above 0.95: {right > 0.95}")


# %%
def draw_easy(generator):
    return draw_pairs(generator, pairs=8)


for scaled in (True, False):
    _ = torch.manual_seed(0)
    model, name = Recall(64, 64, scaled), f"8 pairs, scaled: {scaled}"
    train(model, draw_easy, recall_loss, steps=300, lr=3e-3, description=name)
    print(f"{name}: above 0.95: {recall_accuracy(model, pairs=8) > 0.95}")

# %% [markdown]
# A smaller start repairs most of it: the scale mainly keeps the *beginning* of training out of the flat ends of softmax.
# On an easy task both arrive.
#
# Third, another optimiser. A step of Adam has about the same size however large the gradient is. A step of SGD grows
# with the gradient, and for the same attention weights the gradients of $W_Q$ and $W_K$ are $\sqrt{d_k}$ times larger
# without the scale (notebook 03: $dL/dq = scale \cdot dL/ds\, K$). So at a small learning rate no scale can even help:


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


# %%
for lr in (0.003, 0.03):
    gain = sgd_accuracy(True, lr) - sgd_accuracy(False, lr)
    leader = "the scale" if gain > 0.3 else "no scale" if gain < -0.3 else "neither"
    print(f"SGD, learning rate {lr}: {leader} leads by more than 0.3")

# %% [markdown]
# So one curve at one learning rate proves little, for or against. Over optimisers and rates the picture shifts. What
# can be said: with Adam at the rates above, training with the scale was robust over $d_k$ and seeds, training without
# it was not, and the scale costs nothing.
#
# ## Exercises
#
# Each check names the mistake if it knows it, and `verdict.hint()` goes one step further at each call.

# %% [markdown]
# ### Exercise 8.1 · What order is worth
#
# **Goal.** Compute an accuracy before you train. *6 minutes, medium.*
#
# `Reverse` without positions gets sequences of 4 places with 2 tokens, equally frequent. Which accuracy can it reach at
# best? One number, to four decimals.

# %%
my_accuracy = None  # a number

# %%
verdict = check.bag_accuracy(my_accuracy)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# # The best guess from a bag is its most frequent token. Splits 4:0, 3:1 and 2:2:
# my_accuracy = 2 / 16 * 1 + 8 / 16 * 3 / 4 + 6 / 16 * 1 / 2
# ```
#
# </details>

# %% [markdown]
# ### Exercise 8.2 · Find the induction head
#
# **Goal.** Write a measure of your own, and let it choose the head. *10 minutes, hard.*
#
# `my_measure(weights, tokens)`: weights $(b, h, n_q, n_k)$ and tokens $(b, n)$ give one number per head, $(h,)$, the
# largest for the induction head. Both are NumPy arrays. Section 4 used the period of each sequence; your measure gets
# the letters only. The check ranks heads of known habits with it. Then rank the two trained ones; layer 2 must win:
# `my_measure(maps[2][:, :, 0].transpose(0, 1).numpy(), letters.numpy())`.


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
# **Goal.** Show why one layer must fail. *8 minutes, medium.*
#
# A layer without positions gets "D A B C E A". The last letter is A, and A was followed by B. Which other sequence makes
# the **same** mixture at the last place, though another letter is right? `my_fool(tokens)` returns it, $(n,)$. Letters
# are numbers in a NumPy array, A is 0. The last one stood there once before, all others stand there once.


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
#     with torch.no_grad():
#         model.position.weight.zero_()
#         logits, _ = model(pair)
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
# 1. Check 8.1 by training: `N_TOKENS, T = 2, 4`, then run section 1 again.
# 2. Say in one sentence why four heads in one layer fail. Then look back at section 4.
# 3. Take the scale out of `Recall` and search for the learning rate at which it learns best with Adam. How wide is the
#    range that works, with the scale and without?
#
# **Remember.** Attention does not know order; positions are added. Measure every head against a rule, over many inputs,
# then test the rule by taking the head away. Two layers can do what no single layer can. The scale makes training robust.
# Next: [09 a real model](09_a_real_model.ipynb).

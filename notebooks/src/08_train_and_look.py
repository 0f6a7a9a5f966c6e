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
from matplotlib import pyplot as plt
from torch import nn

import attnlib as al
from attnlib import live, plot
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
        self.position = nn.Parameter(torch.randn(T, D) if with_positions else torch.zeros(T, D), with_positions)
        self.attention = MultiHeadAttention(D, 1, bias=False)

    def forward(self, tokens):
        output, weights = self.attention(self.token(tokens) + self.position)  # (b, T, D), (b, 1, T, T)
        return self.read(output), weights


# %% [markdown]
# Without positions the vectors are zeros that do not train. **Predict.** Which accuracy does the model reach with
# positions, and which without?


# %%
def draw(generator, size=128):
    return torch.randint(N_TOKENS, (size, T), generator=generator)  # (b, T)


def loss(model, tokens):
    return nn.functional.cross_entropy(model(tokens)[0].flatten(0, 1), tokens.flip(1).flatten())


reversers = {}
for with_positions in (True, False):
    _ = torch.manual_seed(0)
    reversers[with_positions] = Reverse(with_positions)
    train(reversers[with_positions], draw, loss, steps=300, lr=3e-3, description=f"positions: {with_positions}")

# %%
tokens, maps = draw(torch.Generator().manual_seed(1), size=4000), {}
accuracy = {}
for with_positions, model in reversers.items():
    with torch.no_grad():
        logits, weights = model(tokens)
    maps[with_positions] = weights.mean(0)[0]  # (T, T), the mean over 4000 sequences
    accuracy[with_positions] = (logits.argmax(-1) == tokens.flip(1)).float().mean().item()
print(f"with positions: accuracy {accuracy[True]:.2f}")
print(f"without: below 0.3: {accuracy[False] < 0.3}")

# %%
maps = torch.stack([maps[True], maps[False]])  # (2, T, T)
figure = plot.head_grid(maps, titles=["with positions", "without positions"], columns=2)
on_mirror = maps.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1)  # the weight on the mirrored place
print("with positions, weight on the mirrored place above 0.9:", bool(on_mirror[0] > 0.9))
print(f"without: {on_mirror[1]:.1f}, as if it were spread over 10 places")

# %% [markdown]
# With positions the head learns the anti-diagonal: query $i$ looks at key $9 - i$. Without them every query has the same
# choice of keys whatever its place.
#
# ## 2 · Attention does not know order
#
# Why can it not? Permute the tokens and look at the output. **Predict.** Without positions, what happens to the output if
# the input rows change places?

# %%
order = torch.randperm(T, generator=torch.Generator().manual_seed(2))
for with_positions, model in reversers.items():
    with torch.no_grad():
        permuted_output = model(tokens[:8, order])[0]
        output_permuted = model(tokens[:8])[0][:, order]
    same = (permuted_output - output_permuted).abs().max().item() < 1e-4
    print(f"positions: {with_positions}.  permute, then attend = attend, then permute: {same}")

# %% [markdown]
# Each output row is the same mixture of the same set; the rows only change places with their tokens. This is called
# **permutation equivariance**. A sum over keys has no first or last term.
#
# So without positions the model sees a bag of tokens. The best guess from a bag is its most frequent token, for every
# place. How often is that right?

# %%
most_frequent = [Counter(row).most_common(1)[0][1] / T for row in tokens.tolist()]
print(f"guessing the most frequent token: {np.mean(most_frequent):.2f}")
print("the model without positions is within 0.02 of it:", abs(accuracy[False] - np.mean(most_frequent)) < 0.02)

# %% [markdown]
# It learned all that can be learned without order. Longer training would not help.
#
# ## 3 · Measure every head
#
# A picture of one head on one sequence proves little. A number for every head, over many sequences, proves more. Say
# where a head *should* look, as a boolean map, and take the mean weight that goes there:


# %%
def weight_on(weights, cells):
    """Mean weight on the True cells; weights (..., b, h, n_q, n_k), cells broadcast to it. Returns (..., h)."""
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
        self.token, self.position = nn.Embedding(N_TOKENS, D), nn.Parameter(torch.randn(T, D))
        self.attention = MultiHeadAttention(D, num_heads, bias=False)
        self.read = nn.Linear(D, 2 * N_TOKENS)

    def forward(self, tokens):
        output, weights = self.attention(self.token(tokens) + self.position)
        return self.read(output).unflatten(-1, (2, N_TOKENS)), weights


# %%
def neighbour_loss(model, tokens):
    target = torch.stack([tokens.roll(1, dims=1), tokens.roll(-1, dims=1)], dim=-1)  # (b, T, 2): before, after
    return nn.functional.cross_entropy(model(tokens)[0].flatten(0, 2), target.flatten())


# %%
i = torch.arange(T)
before, after = i[:, None] - 1 == i, i[:, None] + 1 == i  # (n_q, n_k), the ring's seam left out
for h in (1, 2):
    _ = torch.manual_seed(0)
    model = Neighbours(h)
    train(model, draw, neighbour_loss, steps=500, lr=3e-3, description=f"{h} head(s)")
    with torch.no_grad():
        weights = model(tokens[:500])[1]
    for name, cells in (("before", before), ("after", after)):
        print(f"{h} head(s): weight on the token {name} above 0.9:", (weight_on(weights, cells) > 0.9).tolist())

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
    letters = torch.rand(size, V, generator=generator).argsort(-1)[:, :12]  # (b, 12), all different
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
        self.token, self.position, self.read = nn.Embedding(V, D), nn.Embedding(LENGTH, D), nn.Linear(D, V)
        self.layers = nn.ModuleList(MultiHeadAttention(D, num_heads, bias=False) for _ in range(layers))

    def forward(self, tokens):
        x, maps = self.token(tokens) + self.position.weight[: tokens.shape[1]], []  # (b, n, D)
        for layer in self.layers:
            output, weights = layer(x, is_causal=True)
            x = x + output
            maps.append(weights)
        return self.read(x), torch.stack(maps)  # (b, n, V), (layers, b, h, n, n)


# %% [markdown]
# Only the second half counts in the loss: there every letter has stood before. (With the loss on all places the model
# spends its effort on letters that nobody can guess.) **Predict.** Can one layer do it? Can two?


# %%
def induction_loss(model, batch):
    logits = model(batch[0])[0][:, 11:-1]  # the predictions of letters 12 to 23
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch[0][:, 12:].flatten())


inductors, histories = {}, {}
for layers in (2, 1):
    _ = torch.manual_seed(0)
    inductors[layers], options = AttentionOnly(layers), dict(steps=800, lr=3e-3, every=25)
    histories[layers] = train(
        inductors[layers], draw_repeats, induction_loss, **options, description=f"{layers} layer(s)"
    )

# %%
letters, period = draw_repeats(torch.Generator().manual_seed(4), size=1000)
maps = {}
for layers, model in inductors.items():
    with torch.no_grad():
        logits, maps[layers] = model(letters)
    right = (logits[:, 11:-1].argmax(-1) == letters[:, 12:]).float().mean().item()
    print(f"{layers} layer(s): accuracy above 0.95: {right > 0.95}, below 0.4: {right < 0.4}")

# %% [markdown]
# Two layers solve it, one does not. Now the question is *how*, and it is asked of every head. Two measures: the weight on
# the previous letter, in the first 12 places, and the weight on the letters that came right after an earlier copy of the
# present letter, in the last 12.

# %%
i = torch.arange(LENGTH)
previous = (i[:, None] - 1 == i) & (i[:, None] < 12)  # (n_q, n_k)
back = i[:, None] - i  # how far key j lies behind query i
after_copy = (back > 0) & ((back + 1) % period[..., None] == 0) & (i[:, None] >= 12)  # (b, n_q, n_k)
measures = {"previous letter": previous, "after a copy": after_copy[:, None]}
for layers in (2, 1):
    for name, cells in measures.items():
        for layer, w in enumerate(weight_on(maps[layers], cells)[:, 0].tolist()):
            said = "above 0.8" if w > 0.8 else "below 0.3" if w < 0.3 else "between"
            print(f"model with {layers} layer(s), layer {layer + 1}, {name}: {said}")

# %% [markdown]
# One head stands out for each measure. In the model with two layers:
#
# - **Layer 1 is a previous-letter head.** It writes into each place which letter stood before it.
# - **Layer 2 is an induction head.** Its query says "I am B". The keys now carry what layer 1 wrote: "before me stood B".
#   They match where B stood before, one place further. The value there is the letter to predict.
#
# The second step needs the first one done. One layer has nothing to match: its keys say what a letter *is*, not what stood
# before it. More heads in that layer do not change this.
#
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
        _, maps = torch.func.functional_call(inductors[2], snapshots[step], (example,))  # (2, 1, 1, 16, 16)
    return {"layer 1": maps[0, 0, 0], "layer 2": maps[1, 0, 0]}


steps = {"step": list(snapshots), "still": (0, 150, 200, 800)}
live.weights_view(maps_at, **steps, trained=True, queries=text, keys=text, attn_mask=al.causal_mask(16))

# %% [markdown]
# The same as numbers: both measures and the loss over training.

# %%
curves = []
for snapshot in snapshots.values():
    with torch.no_grad():
        _, m = torch.func.functional_call(inductors[2], snapshot, (letters[:200],))
    curves.append((weight_on(m[0], previous).item(), weight_on(m[1], after_copy[:200, None]).item()))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot(list(snapshots), curves, label=["layer 1, previous letter", "layer 2, after a copy"])
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
right = (logits[:, 11:-1].argmax(-1) == letters[:, 12:]).float().mean().item()
print(f"without layer 1: accuracy below 0.3: {right < 0.3}")
print("induction head, weight after a copy below 0.3:", weight_on(broken_maps, after_copy[:, None])[1].item() < 0.3)

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
        q = self.W.W_Q(self.key(asked))[:, None]  # (b, 1, d_k): only the asking token has a query
        weights = (q @ self.W.W_K(slots).transpose(-1, -2) * self.scale).softmax(-1)  # (b, 1, 32)
        return self.read((weights @ self.W.W_V(slots))[:, 0]), weights[:, 0]


# %%
def draw_pairs(generator, size=32, pairs=32):
    keys = torch.rand(size, 64, generator=generator).argsort(-1)[:, :pairs]  # (b, 32), all different
    values = torch.randint(32, (size, pairs), generator=generator)  # (b, 32)
    slot, rows = torch.randint(pairs, (size,), generator=generator), torch.arange(size)
    return keys, values, keys[rows, slot], values[rows, slot]


def recall_loss(model, batch):
    return nn.functional.cross_entropy(model(*batch[:3])[0], batch[3])


def recall_accuracy(model):
    *shown, answer = draw_pairs(torch.Generator().manual_seed(99), size=400)
    return (model(*shown)[0].argmax(-1) == answer).float().mean().item()


# %% [markdown]
# One seed is an anecdote. Five seeds for each of three $d_k$, with the scale and without. **Predict.** At which $d_k$ is
# the difference largest?

# %%
SETTINGS = {8: (64, 3e-3), 64: (64, 3e-3), 128: (128, 1e-3)}  # d_k: (d_model, learning rate)
runs, recallers = {}, {}
for d_k, scaled, seed in live.progress(
    [(d, s, i) for d in SETTINGS for s in (True, False) for i in range(5)], "30 runs"
):
    d_model, lr = SETTINGS[d_k]
    _ = torch.manual_seed(seed)
    model = Recall(d_model, d_k, scaled)
    history = train(model, draw_pairs, recall_loss, steps=200, lr=lr, seed=seed, every=20, measure=recall_accuracy)
    runs[d_k, scaled, seed], recallers[d_k, scaled, seed] = history.measured, model

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), sharey=True, layout="constrained")
final = {}
for ax, d_k in zip(axes, SETTINGS):
    for scaled, line in ((True, "-"), (False, "--")):
        five = np.array([list(runs[d_k, scaled, seed].values()) for seed in range(5)])  # (5, 11)
        ax.plot(range(0, 201, 20), five.mean(0), line, label="scaled" if scaled else "not scaled")
        ax.fill_between(range(0, 201, 20), five.min(0), five.max(0), alpha=0.2)
        final[d_k, scaled] = five[:, -1]
    ax.set(title=f"d_k = {d_k}, learning rate {SETTINGS[d_k][1]}", xlabel="step", ylabel="accuracy")
    ax.legend(loc="upper left")

# %% [markdown]
# Lines are means over the five seeds, bands go from the worst seed to the best.

# %%
for d_k in SETTINGS:
    gap = final[d_k, True].mean() - final[d_k, False].mean()
    said = "above 0.2" if gap > 0.2 else "below 0.05" if gap < 0.05 else "between 0.05 and 0.2"
    print(f"d_k = {d_k:3d}: accuracy with the scale minus without, mean of 5 seeds: {said}")
spread = {scaled: np.ptp(final[128, scaled]) for scaled in (True, False)}
print(
    f"d_k = 128, best seed minus worst: scaled below 0.05: {spread[True] < 0.05}, not scaled above 0.2: {spread[False] > 0.2}"
)

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
        plain, scaled = (recallers[d_k, s, 0](keys, values, asked)[1] for s in (False, True))  # (16, 16) each
    return {"trained without the scale": plain, "trained with it": scaled}


names = [f"asks {i}" for i in range(16)]
live.weights_view(recall_maps, d_k=list(SETTINGS), still=tuple(SETTINGS), trained=True, queries=names)

# %% [markdown]
# Not scaled and $d_k = 128$: a large weight in every row, often in the wrong column. The row is peaky already, so hardly
# any gradient says that another slot would be better. Peaky from the start:

# %%
for d_k, (d_model, _) in SETTINGS.items():
    _ = torch.manual_seed(0)
    fresh = [Recall(d_model, d_k, scaled) for scaled in (True, False)]
    with torch.no_grad():
        tops = [
            model(*draw_pairs(torch.Generator().manual_seed(6), 400)[:3])[1].max(-1).values.mean() for model in fresh
        ]
    print(f"d_k = {d_k:3d}, largest weight before training: scaled {tops[0]:.1f}, not scaled {tops[1]:.1f}")

# %% [markdown]
# ### What this does not show
#
# Unscaled is not impossible: it is slower, and its curves were still rising. Two more experiments, so that nobody
# over-reads them. First, the same model without a scale, but with $W_Q$ divided by $\sqrt{d_k}$ **once, at the start**.
# Second, an easy task: 8 pairs.

# %%
_ = torch.manual_seed(0)
repaired = Recall(128, 128, scaled=False)
with torch.no_grad():
    repaired.W.W_Q.weight /= 128**0.5
train(repaired, draw_pairs, recall_loss, steps=200, lr=1e-3, description="smaller start")
print("d_k = 128, no scale, W_Q started smaller: above 0.95:", recall_accuracy(repaired) > 0.95)


# %%
def draw_easy(generator):
    return draw_pairs(generator, pairs=8)


for scaled in (True, False):
    _ = torch.manual_seed(0)
    model = Recall(64, 64, scaled)
    train(model, draw_easy, recall_loss, steps=300, lr=3e-3, description=f"8 pairs, scaled: {scaled}")
    *shown, answer = draw_pairs(torch.Generator().manual_seed(99), 400, pairs=8)
    with torch.no_grad():
        right = (model(*shown)[0].argmax(-1) == answer).float().mean().item()
    print(f"8 pairs, scaled: {scaled}: above 0.95: {right > 0.95}")

# %% [markdown]
# A smaller start repairs most of it: the scale mainly keeps the *beginning* of training out of the flat ends of softmax.
# On an easy task both arrive. And all of this is Adam at two learning rates; other optimisers and rates shift the picture.
# What can be said: the scale makes training robust over $d_k$ and seeds, and it costs nothing.
#
# ## Try it
#
# 1. Before you run it: which accuracy does `Reverse` reach without positions if `N_TOKENS = 2`? (Compute the most
#    frequent token's share first; then train.)
# 2. Write your own measure that finds the induction head, without using `period`. (Compare letters: `letters[:, None, :]`
#    shifted by one against `letters[:, :, None]`.) It must name layer 2.
# 3. Train `AttentionOnly(1, num_heads=4)`. It fails, too. Say why in one sentence before you look back at section 4.
#
# **Remember.** Attention does not know order; positions are added. Measure every head against a rule, over many inputs,
# then test the rule by taking the head away. Two layers can do what no single layer can. The scale makes training robust.
# Next: [09 a real model](09_a_real_model.ipynb).

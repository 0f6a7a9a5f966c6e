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
from attnlib.course import check, predict
from attnlib.course.training import train
from attnlib.torch_layers import MultiHeadAttention, SelfAttention

_ = torch.set_num_threads(1), torch.set_flush_denormal(True)  # both for speed
N_TOKENS, T, D = 10, 10, 32  # different tokens, places, features of a token

# %% [markdown]
# `train(model, draw, loss, steps=..., lr=...)` is the loop of notebook 04: draw a batch, compute the loss, one step of
# [Adam](../REFERENCES.md#kingma-2015). It can also keep copies of the weights on the way.
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

# %%
two_maps = torch.stack([maps[True], maps[False]])  # (2, T, T)
titles = ["with positions", "without positions"]
figure = plot.head_grid(two_maps, titles=titles, columns=2)

# %% tags=["nbval-ignore-output"]
on_mirror = two_maps.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
on_itself = two_maps.diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
for name, mirror, itself in zip(("with", "without"), on_mirror, on_itself):
    others = (1 - itself) / (T - 1)
    print(
        f"{name:7} positions: mirrored place {mirror:.2f}, itself {itself:.2f}", end=""
    )
    print(f", mean of all others {others:.2f}")

# %% [markdown]
# With positions the head learns the anti-diagonal: query $i$ looks at key $9 - i$. Without them every query has the same
# choice of keys whatever its place: the weights are spread evenly, but for the diagonal, which is darker.
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
# **permutation equivariance** ([Zaheer et al. 2017](../REFERENCES.md#zaheer-2017)). A sum over keys has no first or last term.
#
# So without positions an output depends on two things: the bag of all tokens, and the query's own token.
# **Predict.** Why is the diagonal darker?
#
# - **a** chance: another seed would show another pattern
# - **b** a place's own token is never the one it must name
# - **c** the head has found out a little about places

# %%
guess_diagonal = None  # "a", "b" or "c"

# %% [markdown]
# Two ways to guess without order: the most frequent token of the whole bag, or the most frequent one of the *other* nine.


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

# %%
predict.dark_diagonal(guess_diagonal)

# %% [markdown]
# The second guess is the best there is: without order each of the other nine is as likely to stand in the mirrored place.
# The model does as well. It has learned all that can be learned without order, its own token included; longer training
# would not help.
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
# One head shares itself between both. Of two heads, each takes one neighbour. Which head takes which is chance: it depends
# on the seed. That is why all heads are measured.
#
# ## 4 · Induction: two layers work together
#
# The task, the two heads and how to measure them are from [Elhage et al. 2021](../REFERENCES.md#elhage-2021) and
# [Olsson et al. 2022](../REFERENCES.md#olsson-2022).
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

# %% tags=["nbval-ignore-output"]
letters, period = draw_repeats(torch.Generator().manual_seed(4), size=1000)
maps = {}


def share_right(logits):
    return (logits[:, 11:-1].argmax(-1) == letters[:, 12:]).float().mean().item()


for layers, model in inductors.items():
    with torch.no_grad():
        logits, maps[layers] = model(letters)
    print(f"{layers} layer(s): accuracy {share_right(logits):.2f}")

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

# %% tags=["nbval-ignore-output"]
for layers in (2, 1):
    for name, cells in measures.items():
        for layer, w in enumerate(weight_on(maps[layers], cells)[:, 0].tolist(), 1):
            print(f"model with {layers} layer(s), layer {layer}, {name}: {w:.2f}")

# %% [markdown]
# One head stands out for each measure. In the model with two layers:
#
# - **Layer 1 is a previous-letter head.** It writes into each place which letter stood before it.
# - **Layer 2 is an induction head.** Its query says "I am B". The keys now carry what layer 1 wrote: "before me stood B".
#   They match where B stood before, one place further. The value there is the letter to predict.
#
# The second step needs the first one done. One layer has nothing to match: its keys say what a letter *is*, not what stood
# before it. More heads in that layer do not change this:

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
# Without the first head the second finds nothing. But what does it use it for? Section 4 said: for its *keys*. Taking
# everything away cannot tell. So let layer 2 make its queries, keys and values with layer 1's output or without, each in
# turn. **Predict.** Which of the three needs it?


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
# Only the keys need it, and the keys alone are enough. Now the story of section 4 is tested.
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
# One seed is an anecdote. Three seeds for each of three $d_k$, with the scale and without, and nothing else changes. Then
# two seeds at a third of the learning rate, with three times the steps. **Predict.** At the larger rate, 0.003, at which
# $d_k$ is the difference largest?
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
    ax.legend(loc="upper left")

# %% [markdown]
# Lines are means over the seeds, bands go from the worst seed to the best.

# %% tags=["nbval-ignore-output"]
print("accuracy with the scale minus without, mean over seeds")
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
# At the larger rate the gap grows with $d_k$. And look at the bands: unscaled training is not only slower, it is **fragile**.
# Some seeds learn, some hardly do. At the smaller rate the gap after 200 steps is as large at 64 as at 128, and after 600
# steps it is gone. So there the missing scale costs time, not ability, and how much depends on the learning rate.
#
# ### Look inside
#
# Sixteen questions to the models of seed 0 and rate 0.003. Sequence $i$ asks for slot $i$, so good attention is a diagonal.
# The slider goes through the three $d_k$.

# %%
keys, values, _, _ = draw_pairs(torch.Generator().manual_seed(5), size=16, pairs=16)
asked = keys.diagonal()  # (16,): sequence i asks for its key i


def recall_maps(d_k):
    with torch.no_grad():
        _, plain = recallers[3e-3, d_k, False, 0](keys, values, asked)  # (16, 16)
        _, scaled = recallers[3e-3, d_k, True, 0](keys, values, asked)
    return {"trained without the scale": plain, "trained with it": scaled}


names = [f"asks {i}" for i in range(16)]
choices = {"d_k": list(D_KS), "still": D_KS}
live.weights_view(recall_maps, **choices, trained=True, queries=names)

# %% [markdown]
# Not scaled and $d_k = 128$: a large weight in every row, often in the wrong column. The row is peaky already, so hardly
# any gradient says that another slot would be better. Peaky from the start:

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
# Three more experiments, so that nobody over-reads these curves. First, the same model without a scale, but with $W_Q$
# divided by $\sqrt{d_k}$ **once, at the start**. Second, an easy task: 8 pairs.

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


# %% tags=["nbval-ignore-output"]
for lr in (0.003, 0.03):
    told = (
        f"scaled {sgd_accuracy(True, lr):.2f}, not scaled {sgd_accuracy(False, lr):.2f}"
    )
    print(f"SGD, learning rate {lr}: {told}")

# %% [markdown]
# So one curve at one learning rate proves little, for or against. Over optimisers and rates the picture shifts. What
# can be said: with Adam at the rates above, training with the scale was ahead after 200 steps at every $d_k$, hardly at 8
# and far at 128. And the scale costs nothing.
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
# best? One number. Remember what an output depends on.

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
# then test the rule by taking the head away. Two layers can do what no single layer can. Without the scale training
# is slower and fragile; by how much depends on the learning rate.
# Next: [09 a real model](09_a_real_model.ipynb).

# %% [markdown]
# # [[train_and_look]] · Train it and look inside
#
# **Question.** What do heads learn when a task leaves them free to choose, and how do you find out without picking the
# pretty picture? *45 minutes, and 24 for exercises. This notebook needs torch.*
#
# You have never read the word KRUBLEMASTIN. Somebody points at a B. Which letter follows it there?

# %% jupyter={"source_hidden": true}
from collections import Counter
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import nn

import attnlib as al
from attncourse import check, mine, model_files, predict
from attncourse.training import neighbours, train
from attnlib import live, plot
from attnlib.colours import KEY, LINE, QUERY, VALUE

_ = torch.set_num_threads(1), torch.set_flush_denormal(True)  # both for speed

# %% jupyter={"source_hidden": true}
TEXT = "KRUBLEMASTIN"


def letter(ax, i, height, text, color=LINE):
    """Write a letter in a box."""
    style = {"boxstyle": "round", "fc": "white", "ec": color}
    style["lw"] = 1 if color == LINE else 3
    _ = ax.text(i, height, text, color="black", ha="center", va="center", bbox=style)


# %% jupyter={"source_hidden": true}
def arrow(ax, start, end, color=LINE, lw=2.0, bend=0.0):
    """Draw an arrow from one letter to another."""
    style = {
        "arrowstyle": "-|>",
        "color": color,
        "lw": lw,
        "shrinkA": 11,
        "shrinkB": 11,
    }
    style["connectionstyle"] = f"arc3,rad={bend}"
    _ = ax.annotate("", end, start, arrowprops=style, zorder=0)


# %% jupyter={"source_hidden": true}
_, ax = plot.subplots(figsize=(3.55, 2.1))
for i, text in enumerate(TEXT):
    letter(ax, i, 0, text)
for i, text in ((3, "B"), (4, "?")):
    letter(ax, i, -2, text)
arrow(ax, (3, -2), (3, 0), plot.SERIES[0])
arrow(ax, (4, 0), (4, -2), plot.SERIES[2])
_ = ax.text(2.5, -1, "find the\nsame letter", ha="right", va="center")
_ = ax.text(4.5, -1, "name what\ncame after it", va="center")
title = "How to answer about a word that you have never read"
_ = ax.set(xlim=(-0.6, 11.6), ylim=(-2.5, 0.5), title=title)
_ = ax.axis("off")

# %% [markdown]
# You say L, because you find the B in the word and name what came after it. Section 4 trains a model that does the same, and you will
# watch its heads form. Two smaller tasks first teach how to look at a head.
#
# The heads are yours: the next cell loads the class that you kept in notebook [[multi_head]], or ours.

# %%
MultiHeadAttention = mine.load("MultiHeadAttention")
N_TOKENS, N_POSITIONS, D = 10, 10, 32  # different tokens, positions, features

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[bug_clinic]])* A module with a causal mask returns the right shapes. You change the last token, and the output
# of the first one moves. What is wrong?
#
# - **a** the scores are divided by the wrong number
# - **b** $W_Q$ and $W_K$ are exchanged
# - **c** a query sees a token that comes after it
#
# **2.** *(notebook [[model_of_your_own]])* A model was trained without the division by $\sqrt{d_k}$. What gives it away?
#
# - **a** a loss far below every table
# - **b** a jump of its loss at the last position
# - **c** a test that computes its scores and compares the numbers
#
# **3.** *(notebook [[scaling]])* The entries of $q$ and $k$ are drawn with variance 1, and $d_k = 64$. How large is a typical
# score $q \cdot k$?
#
# - **a** about 1
# - **b** about 8
# - **c** about 64

# %%
predict.before_train_and_look(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · A diagonal that is too pale
#
# Ten tokens go in, and the same ten must come out in reverse order. The model is one head with a linear read-out. Each token
# is a learned vector. With positions, a learned vector for each position is added to it.


# %%
class Reverse(nn.Module):
    def __init__(self, with_positions, n=N_POSITIONS):
        super().__init__()
        self.token, self.read = nn.Embedding(N_TOKENS, D), nn.Linear(D, N_TOKENS)
        start = torch.randn(n, D) if with_positions else torch.zeros(n, D)
        self.position = nn.Parameter(start, requires_grad=with_positions)
        self.attention = MultiHeadAttention(D, 1)

    def forward(self, tokens):
        output, weights = self.attention(self.token(tokens) + self.position)
        return self.read(output), weights  # (b, n, N_TOKENS), (b, 1, n, n)


# %% [markdown] tags=["predict"]
# Without positions the added vectors stay 0, and nothing tells the model where a token stands. `train` is the loop of notebook
# [[pytorch_module]]: draw a batch, compute the loss, take one step of [Adam](../REFERENCES.md#kingma-2015).
#
# **Predict.** With positions the model learns to reverse. Which share of the tokens does it name correctly *without* positions?
#
# - **a** about 0.1: it can only guess one of ten tokens
# - **b** about 0.3
# - **c** nearly 1, if it is trained long enough

# %%
guess_no_positions = None  # "a", "b" or "c"


# %%
def draw(generator, size=128, n=N_POSITIONS):
    return torch.randint(N_TOKENS, (size, n), generator=generator)  # (b, n)


def loss(model, tokens):
    logits, _ = model(tokens)  # (b, n, N_TOKENS)
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flip(1).flatten())


# %%
reversers = {}
for with_positions in (True, False):
    _ = torch.manual_seed(0)
    reversers[with_positions] = model = Reverse(with_positions)
    name = f"positions: {with_positions}"
    train(model, draw, loss, steps=200, lr=3e-3, description=name)

# %% tags=["nbval-ignore-output"]
tokens = draw(torch.Generator().manual_seed(1), size=4000)  # not seen in training
maps, answers, accuracy = {}, {}, {}
for with_positions, model in reversers.items():
    with torch.no_grad():
        logits, weights = model(tokens)
    maps[with_positions] = weights.mean(0)[0]  # (n, n), mean over 4000 sequences
    answers[with_positions] = logits.argmax(-1)  # (4000, n)
    right = answers[with_positions] == tokens.flip(1)
    accuracy[with_positions] = right.float().mean().item()
    print(f"positions: {with_positions!s:5}  accuracy {accuracy[with_positions]:.3f}")

# %%
predict.no_positions(guess_no_positions)

# %% [markdown]
# Your last digits may differ, because training differs a little from processor to processor. Now look at the two heads.

# %% jupyter={"source_hidden": true}
two_maps = torch.stack([maps[True], maps[False]])  # (2, n, n)
titles = ["with positions", "without positions"]
figure = plot.head_grid(two_maps, titles=titles, columns=2, width=6.6)

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
on_mirror = two_maps.flip(-1).diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
on_itself = two_maps.diagonal(dim1=-2, dim2=-1).mean(-1)  # (2,)
for name, mirror, itself in zip(("with", "without"), on_mirror, on_itself):
    others = (1 - itself - mirror) / (N_POSITIONS - 2)
    print(f"{name:7} positions: mirrored token {mirror:.2f}", end=", ")
    print(f"itself {itself:.2f}, mean of the other eight {others:.2f}")

# %% [markdown]
# With positions the query at position $i$ looks at the key at position $9 - i$, as the task asks. Without positions the head cannot
# know where that key is, so it spreads its weights evenly. But the diagonal is paler: a query gives itself less than it gives any
# other token. Nobody asked for that. Why?
#
# ## 2 · What can be known without order
#
# Reorder the tokens of each sequence. A model that pays no attention to order returns the same outputs, reordered in the same way.

# %% tags=["nbval-ignore-output"]
order = torch.randperm(N_POSITIONS, generator=torch.Generator().manual_seed(2))
print("reorder, then attend; attend, then reorder: how far apart?")
for with_positions, model in reversers.items():
    with torch.no_grad():
        reordered_first = model(tokens[:8, order])[0]
        reordered_last = model(tokens[:8])[0][:, order]
    difference = (reordered_first - reordered_last).abs().max()
    print(f"positions: {with_positions!s:5}  {difference:.2f}")

# %% [markdown] tags=["predict"]
# Without positions the two are equal. Each output is a weighted sum over the same tokens, and a sum has no first and no last
# term. This is called **permutation equivariance** ([Zaheer et al. 2017](../REFERENCES.md#zaheer-2017)). So without positions
# and without a mask, an output depends only on which tokens there are, how often each, and which of them is its own.
#
# Here are three explanations of the pale diagonal. They disagree about sequences of **nine** tokens, where the fifth stands in
# the middle. **Predict.** Which explanation is right?
#
# - **a** chance: another seed would show another pattern, with nine tokens as with ten
# - **b** a position knows its own token already and looks for something new, with nine tokens as with ten
# - **c** with ten tokens no position has to name its own token; with nine, the middle one has to, so there the diagonal is
#   hardly paler

# %%
guess_diagonal = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output"]
for n, seed in ((10, 1), (9, 0), (9, 1)):
    some, name = partial(draw, n=n), f"{n:2d} tokens, seed {seed}"
    _ = torch.manual_seed(seed)
    model = Reverse(False, n)
    train(model, some, loss, steps=200, lr=3e-3, seed=seed, description=name)
    with torch.no_grad():
        w = model(some(torch.Generator().manual_seed(1), size=4000))[1].mean(0)[0]
    own = w.diagonal().mean().item()
    print(f"{name}: itself {own:.2f}, each other {(1 - own) / (n - 1):.2f}")

# %%
predict.pale_diagonal(guess_diagonal)

# %% [markdown]
# With nine tokens one position must name its own token, so that token is the answer as often as any other, and the diagonal is hardly
# paler. With ten tokens no position must, and the head has learned to count its own token less. How much is that worth? Compare two
# ways to guess: name the most frequent of all ten tokens, or of the other nine.


# %%
def most_frequent(row):
    return Counter(row).most_common(1)[0][1] / len(row)  # how often it is right


rows = tokens.tolist()
of_ten = np.mean([most_frequent(row) for row in rows])
nine = [r[:i] + r[i + 1 :] for r in rows for i in range(N_POSITIONS)]
of_others = np.mean([most_frequent(row) for row in nine])
print(f"most frequent of all ten tokens: {of_ten:.3f}")
print(f"most frequent of the other nine: {of_others:.3f}")

# %% tags=["nbval-ignore-output"]
one_hot = nn.functional.one_hot(tokens)  # (4000, n, N_TOKENS)
others = one_hot.sum(1, keepdim=True) - one_hot  # how often among the other nine
named = others.gather(-1, answers[False][..., None])[..., 0]  # (4000, n)
agree = (named == others.amax(-1)).float().mean()
print(f"the model without positions: {accuracy[False]:.3f}")
print(f"it names a most frequent one of the other nine: {agree:.2f}")

# %% [markdown]
# The second guess is the best possible, because without order each of the other nine tokens is equally likely to be the right one.
# The model has found that guess. So a slightly paler diagonal meant something, but it took another task, other seeds and a count to
# learn what.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Why does a position give itself 0.07, and not 0? Positions with the same token hold the same vector, so they get the same weight
# from every query. At 0 the head could not count the copies of its token at all, and a copy may be the answer. *Appendix* has the
# weights of copies.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[bag_accuracy]] · What order is worth
#
# **Goal.** Compute an accuracy before you train. *6 minutes, medium.*
#
# `Reverse` without positions gets sequences of 4 tokens of only 2 kinds, equally frequent. Which accuracy can it reach at best?

# %%
my_accuracy = None  # a number

# %%
verdict = check.bag_accuracy(my_accuracy)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # A position names the token of another one: the more frequent of the other three. Splits 3:0 and 2:1:
# my_accuracy = 2 / 8 * 1 + 6 / 8 * 2 / 3
# # All 16 sequences, each of the 4 positions left out in turn:
# right = [most_frequent(s[:i] + s[i + 1 :]) for s in product("ab", repeat=4) for i in range(4)]
# assert np.isclose(my_accuracy, np.mean(right))
# ```
#
# </details>

# %% [markdown]
# ## 3 · Measure every head
#
# A picture of one head on one sequence proves little. So say where a head *should* look, as a boolean map. For each query that has a
# True cell, add up its weight on the True cells, and take the mean over these queries in all sequences. Each head gets one number.


# %%
def weight_on(weights, cells):  # weights (..., b, h, n_q, n_k)
    cells = torch.as_tensor(cells).expand_as(weights)
    on_cells = (weights * cells).sum(-1)  # (..., b, h, n_q)
    queries = cells.any(-1)  # those that have a True cell
    return on_cells.sum((-3, -1)) / queries.sum((-3, -1))  # (..., h)


# %% [markdown] tags=["predict"]
# Try it where we know what heads should do. Twelve letters stand in a ring, and for each of them a model names the letter before
# it and the letter after it. The model is one attention layer with positions, and behind it a linear **read-out** rates each letter.
#
# **Predict.** One head, or two heads with half the features each: the number of parameters is the same. Which learns to name both
# neighbours?
#
# - **a** the two small heads
# - **b** both: the parameters are equally many
# - **c** neither

# %%
guess_heads = None  # "a", "b" or "c"

# %%
ring = model_files.stored("neighbours_results")
for name in ("1 head(s)", "2 head(s)"):
    got = ring[name]
    told = "letter before {:.2f}, letter after {:.2f}".format(*got["each"])
    print(
        f"{name}, {got['parameters']} parameters: {told}, both {got['all right']:.2f}"
    )

# %%
predict.two_heads(guess_heads)

# %% jupyter={"source_hidden": true} tags=["slide"] says="The one head looks"
maps = np.concatenate([ring["1 head(s)"]["maps"], ring["2 head(s)"]["maps"]])
titles = ["the one head", "head 1 of 2", "head 2 of 2"]
figure = plot.head_grid(maps, titles=titles, width=6.3)

# %% [markdown]
# The one head looks at both neighbours, and the read-out names one of the two nearly always, the other seldom. One row of weights
# makes one mixture, and a linear read-out cannot tell the two letters in it apart. Two heads take one neighbour each.
#
# <details><summary><b>How sure is this?</b></summary>
#
# These results are stored, from one seed; `neighbours.two_trainings()` trains both models in ten seconds. A read-out with a hidden
# layer *can* tell the letters apart: with it, one head names both in 0.85 of the positions at worst in five seeds. But of three
# letters before and three after, one head and the hidden layer get all six right in 0.14 of the positions, and eight heads in every
# position (*Appendix*).
#
# </details>
#
# Here is the measure, on the two heads and on two that were trained from another seed.

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
i = torch.arange(neighbours.PLACES)
before, after = ((i[:, None] + by) % len(i) == i for by in (-1, 1))  # (n_q, n_k)
again = neighbours.measured(neighbours.trained(2, seed=1))
for seed, found in enumerate((ring["2 head(s)"], again)):
    both = torch.tensor(found["maps"])[None]  # (1, h, n, n), means over 1000 rings
    on = weight_on(both, before).tolist(), weight_on(both, after).tolist()
    for head, (on_before, on_after) in enumerate(zip(*on), start=1):
        told = f"before {on_before:.2f}, after {on_after:.2f}"
        print(f"seed {seed}, head {head}: {told}")

# %% [markdown]
# In the second model the heads have changed roles, because nothing says which head takes which side. So measure all heads, and not
# only the one that looks right.
#
# ## 4 · Which letter followed?
#
# The model reads a **word** of twelve different letters, then twelve **jumps**: letters of that word, drawn at random. At each jump it
# names the letter that followed in the word. Words change with each sequence, and jumps follow no pattern, so neither letters
# nor distances can be learned by heart.

# %%
N_LETTERS, WORD, LETTERS = 26, 12, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def draw_jumps(generator, size=32, n=WORD):
    words = torch.rand(size, N_LETTERS, generator=generator).argsort(-1)[:, :n]
    places = torch.randint(n - 1, (size, n), generator=generator)  # not the last
    tokens = torch.cat([words, words.gather(1, places)], dim=1)  # (b, 2n)
    return tokens, words.gather(1, places + 1)  # the answers, (b, n)


for tokens_drawn in zip(*draw_jumps(torch.Generator().manual_seed(3), size=3)):
    shown, wanted = ("".join(LETTERS[t] for t in row) for row in tokens_drawn)
    print(f"word {shown[:WORD]}   jumps {shown[WORD:]}   answers {wanted}")

# %% [markdown]
# The model is made of attention and nothing else: layers with one head each, and a causal mask. Each layer adds its output
# to what came in.


# %%
class AttentionOnly(nn.Module):
    def __init__(self, layers, num_heads=1, d=D, length=2 * WORD):
        super().__init__()
        self.token = nn.Embedding(N_LETTERS, d)
        self.position = nn.Embedding(length, d)
        layers = (MultiHeadAttention(d, num_heads) for _ in range(layers))
        self.layers, self.read = nn.ModuleList(layers), nn.Linear(d, N_LETTERS)

    def forward(self, tokens):
        causal = torch.tensor(al.causal_mask(tokens.shape[1]))
        x, maps = self.token(tokens) + self.position.weight[: tokens.shape[1]], []
        for layer in self.layers:
            output, weights = layer(x, attn_mask=causal)
            x, maps = x + output, [*maps, weights]  # x: (b, n, d)
        return self.read(x), torch.stack(maps)  # maps: (layers, b, h, n, n)


# %%
def jump_loss(model, batch):
    logits = model(batch[0])[0][:, -batch[1].shape[1] :]  # at the jumps
    return nn.functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())


def trained(layers, num_heads=1, d=D, n=WORD, steps=600, seed=0, lr=3e-3, **options):
    _ = torch.manual_seed(seed)
    model, some = AttentionOnly(layers, num_heads, d, 2 * n), partial(draw_jumps, n=n)
    return model, train(
        model, some, jump_loss, steps=steps, lr=lr, seed=seed, **options
    )


# %% [markdown] tags=["predict"]
# Two layers with one head each are trained now, and one layer with one head: 600 steps each, some seconds. Single layers with up to
# twelve heads, each as wide as the one here, were trained beforehand. **Predict.** Which models with a single layer come near?
#
# - **a** none, however many heads they have
# - **b** the one with two heads, as the two layers have
# - **c** those with about as many heads as there are places

# %%
guess_one_layer = None  # "a", "b" or "c"

# %%
inductors, histories = {}, {}
for layers in (2, 1):
    options = dict(every=25, description=f"{layers} layer(s)")
    inductors[layers], histories[layers] = trained(layers, **options)


# %% tags=["nbval-ignore-output"]
def share_right(logits, wanted):
    return (logits[:, -wanted.shape[1] :].argmax(-1) == wanted).float().mean().item()


letters, wanted = draw_jumps(torch.Generator().manual_seed(4), size=1000)
maps = {}
for layers, model in inductors.items():
    with torch.no_grad():
        logits, maps[layers] = model(letters)
    print(f"{layers} layer(s): accuracy {share_right(logits, wanted):.2f}")

# %% [markdown]
# The stored models have one layer. Naming any other letter of the word is right in about 0.09. The letter that
# a jump repeats can stand at 11 *places* of the word. A place counts as learned if more than 0.9 of the answers there are right.

# %% jupyter={"source_hidden": true}
stored = model_files.stored("jumps_results")
rows = []
for heads, both in stored["one layer"].items():  # of both seeds, (2, 11)
    learned = [sum(share > 0.9 for share in by_place) for by_place in both]
    rows.append((int(heads), *(np.mean(by_place) for by_place in both), *learned))
names = "seed 0", "seed 1", "places learned, seed 0", "places, seed 1"
plot.table(["heads", *names], rows, tint=names[:2])

# %%
predict.one_layer(guess_one_layer)

# %% [markdown]
# With two layers, layer 2 reads the letters *and* what layer 1 has fetched for each of them. What do
# the two fetch? Every head is measured twice:
#
# - **previous letter**: the weight on the letter just before, inside the word;
# - **after a copy**: the weight, at a jump, on the letter that followed in the word.
#
# *Equal weights* is a head for comparison.

# %% jupyter={"source_hidden": true}
i = torch.arange(2 * WORD)
late = i[:, None] >= WORD  # (n_q, 1): the jumps
one_back = i[:, None] - 1 == i  # (n_q, n_k)
previous = one_back & ~late
moved = nn.functional.pad(letters[:, : WORD - 1], (1, WORD), value=-1)
after_copy = (letters[:, :, None] == moved[:, None]) & late  # (b, n_q, n_k)
measures = {"previous letter": previous, "after a copy": after_copy[:, None]}
equal = torch.ones(2 * WORD, 2 * WORD).tril() / (i[:, None] + 1)  # rows sum to 1

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
rows = {"2 layers, layer 1": maps[2][0], "2 layers, layer 2": maps[2][1]}
rows |= {"1 layer": maps[1][0], "equal weights": equal.expand_as(maps[1][0])}
print(f"{'':20}" + "".join(f"{name:>18}" for name in measures))
for row, w in rows.items():
    found = [weight_on(w, cells).item() for cells in measures.values()]
    print(f"{row:20}" + "".join(f"{value:18.2f}" for value in found))
at_jumps = weight_on(maps[2][0], one_back & late).item()
print(f"layer 1, previous letter, at the jumps: {at_jumps:.2f}")
trained_heads = maps[2][:, :, 0].transpose(0, 1).numpy()  # (b, 2, n, n): to measure

# %% [markdown]
# In each column one head of the two layers stands out. Here they are at work. Each arrow is a weight of the trained model, from
# the letter that gives to the letter that takes, and as thick as that weight. Of layer 2 only the arrows to the jump are drawn.


# %% jupyter={"source_hidden": true}
def draw_arrows(ax, first, second):
    """Draw the weights of layer 1 inside the word, and layer 2's row of the jump."""
    for j, query in product(range(WORD), range(WORD)):
        if (w := first[query, j].item()) > 0.05:
            arrow(ax, (j, 0), (query, 1), KEY if query == 4 else LINE, lw=3 * w)
    for j, w in enumerate(second[WORD].tolist()):
        if w > 0.05:
            arrow(ax, (j, 1.05), (WORD + 1, 2), VALUE if j == 4 else LINE, lw=3 * w)


# %% jupyter={"source_hidden": true}
def draw_words(ax):
    """Write what the key and the query say, and what each row is."""
    _ = ax.text(4, 1.27, "before me\nstood B", ha="center", va="bottom", color=KEY)
    _ = ax.text(WORD + 1, 1.27, "I am B", ha="right", va="bottom", color=QUERY)
    for height, name in enumerate(("letters", "layer 1", "layer 2")):
        _ = ax.text(-0.8, height, name, ha="right", va="center")
    title = "Which weights lead from B to L"
    _ = ax.set(xlim=(-2.8, WORD + 1.6), ylim=(-0.3, 2.3), title=title)


# %% jupyter={"source_hidden": true}
read_now = TEXT + "BRAT"  # the word, and four jumps
example = torch.tensor([[LETTERS.index(c) for c in read_now]])  # (1, 16)
with torch.no_grad():
    logits, example_maps = inductors[2](example)  # (2, 1, 1, 16, 16)

# %% jupyter={"source_hidden": true}
_, ax = plot.subplots(figsize=(6.4, 3.4))
draw_arrows(ax, *example_maps[:, 0, 0])
for i, text in enumerate(read_now[: WORD + 1]):
    letter(ax, i + (i == WORD), 0, text)
    letter(
        ax, i + (i == WORD), 1, text, KEY if i == 4 else QUERY if i == WORD else LINE
    )
letter(ax, WORD + 1, 2, LETTERS[logits[0, WORD].argmax()])
draw_words(ax)
_ = ax.axis("off")

# %% [markdown]
# Layer 1 is a **previous-letter head**: it adds to a letter the one that stood just before. It does so inside the word, and not at the
# jumps, where the letter before says nothing about the answer.
#
# Layer 2 is an **induction head** ([Elhage et al. 2021](../REFERENCES.md#elhage-2021),
# [Olsson et al. 2022](../REFERENCES.md#olsson-2022)). Its <span style="color:#0072B2">query</span> says “I am B”, and one
# <span style="color:#D55E00">key</span> says “before me stood B”. So the <span style="color:#009E73">value</span> of that letter
# is fetched, and the model says L.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Seeds 1 and 2 show the same, with our class and with the solution of exercise [[MultiHeadAttention]]. What counts is what the keys
# know: let each key be made from the letter before it, and one layer with one head learns the task (*Appendix*). Olsson et al. mix
# each key with the one before it, a *smeared key*, and see the same.
#
# </details>

# %% [markdown]
# ## 5 · See it · A head forms
#
# `train` kept the model every 25 steps. **Try.** Move *step*, and the model of that time reads KRUBLEMASTIN and four jumps: B, R, A,
# T. Go to 0, where the bright cells are chance, and move slowly up to 400. Watch the cells beside the diagonal of layer 1, and the
# last
# four rows of layer 2.

# %% tags=["slide"] says="Move step"
snapshots = histories[2].snapshots


def maps_at(step):
    with torch.no_grad():
        _, maps = torch.func.functional_call(inductors[2], snapshots[step], (example,))
    return {"layer 1": maps[0, 0, 0], "layer 2": maps[1, 0, 0]}  # (16, 16) each


steps = {"step": list(snapshots), "still": (0, 200, 600)}
names = {"queries": read_now, "keys": read_now}
names["attn_mask"] = al.causal_mask(len(read_now))
live.weights_view(maps_at, **steps, trained=True, **names)

# %% jupyter={"source_hidden": true}
curves = []
for snapshot in snapshots.values():
    given = inductors[2], snapshot, (letters[:200],)
    with torch.no_grad():
        _, (first, second) = torch.func.functional_call(*given)
    on_copy = weight_on(second, after_copy[:200, None])
    curves.append((weight_on(first, previous).item(), on_copy.item()))

# %% jupyter={"source_hidden": true} tags=["slide"] says="Then both form"
figure, (left, right) = plot.subplots(1, 2, figsize=(6.2, 2.7))
names = ["layer 1, previous", "layer 2, after a copy"]
for name, line, y, color in zip(names, np.transpose(curves), (0.9, 0.8), plot.SERIES):
    _ = left.plot(list(snapshots), line, color=color, label=name)
    _ = left.text(260, line[-1] * y - 0.1, name, color=color)
for n, name in ((2, "two layers"), (1, "one layer")):
    losses, color = histories[n].losses, plot.SERIES[2 - n]
    _ = right.plot(losses, color=color, label=name)
    _ = right.text(600, losses[-1] + 0.6, name, color=color, ha="right")
_ = left.set(xlabel="step", title="weight", ylim=(0, 1.05))
_ = right.set(xlabel="step", title="loss")

# %% [markdown]
# At first neither head follows its rule. Then both form, nearly at once, and the loss falls with them. Olsson et al. saw such a
# bend of the loss in language models while induction heads form, and called it a *phase change*.
#
# ## Break it · Take the previous-letter head away
#
# The story fits the maps. Test it: take away what it needs. In a copy of the model, layer 1 adds zeros.

# %% tags=["nbval-ignore-output"]
broken = AttentionOnly(2)
broken.load_state_dict(inductors[2].state_dict())
with torch.no_grad():
    for parameter in broken.layers[0].W_O.parameters():
        parameter.zero_()
    logits, broken_maps = broken(letters)
w = weight_on(broken_maps[1], after_copy[:, None]).item()
print(f"without layer 1: accuracy {share_right(logits, wanted):.2f}", end=", ")
print(f"induction head's weight after a copy {w:.2f}")

# %% [markdown] tags=["predict"]
# Without the first head the second finds little. But whatever you take away, something may fail. The story says more. Layer 2 makes
# queries, keys and values, and what layer 1 wrote can be kept from each of them separately. To change what one part of a model
# receives, and nothing else, is called **patching**.
#
# **Predict.** Only the keys get what layer 1 wrote; queries and values are made without it. What is the accuracy?
#
# - **a** about half way
# - **b** as high as with layer 1 in all three
# - **c** as low as without layer 1

# %%
guess_patching = None  # "a", "b" or "c"

# %% [markdown] tags=["exercise"]
# ### Exercise [[patch]] · Patch it
#
# **Goal.** Write the experiment that can refute the story. *8 minutes, medium.*
#
# `my_patch(layer, x, written, part)` gets layer 2 as a function, `layer(query, key, value)`, and the vectors `x` that layer 2 receives,
# $(b, n, d)$. In them is `written`, $(b, n, d)$: layer 1 has added it. `part` is `"queries"`, `"keys"` or `"values"`. Return what
# `layer` returns if this part is made of vectors without what layer 1 wrote, and the other two of `x` as it is.


# %%
def my_patch(layer, x, written, part):
    return ...  # your code


# %%
verdict = check.patch(my_patch)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_patch(layer, x, written, part):
#     bare = x - written  # what would have come in without layer 1
#     q, k, v = (bare if part == name else x for name in ("queries", "keys", "values"))
#     return layer(q, k, v)
# ```
#
# </details>

# %% [markdown]
# The next cell patches the trained model with your function, or ours.


# %% jupyter={"source_hidden": true}
PARTS, (first, second) = ("queries", "keys", "values"), inductors[2].layers
causal = torch.tensor(al.causal_mask(2 * WORD))


def layer_2(query, key, value):
    return second(query, key, value, attn_mask=causal)[0]


def our_patch(layer, x, written, part):
    """What the exercise asks for."""
    return layer(*(x - written if part == name else x for name in PARTS))


# %% tags=["nbval-ignore-output", "slide"]
patch = my_patch if verdict.passed else our_patch
with torch.no_grad():
    before = inductors[2].token(letters) + inductors[2].position.weight  # (b, n, D)
    written = first(before, attn_mask=causal)[0]  # what layer 1 adds
    x = before + written
    for part in PARTS:  # the read-out still gets layer 1
        logits = inductors[2].read(x + patch(layer_2, x, written, part))
        print(f"without layer 1 in the {part:8} {share_right(logits, wanted):.2f}")
    logits = inductors[2].read(x + layer_2(before, x, before))
    print(f"layer 1 in the keys alone       {share_right(logits, wanted):.2f}")

# %%
predict.patching(guess_patching)

# %% [markdown]
# Keep layer 1 from the queries or from the values, and nothing happens. Keep it from the keys, and the accuracy is as low as
# without layer 1. Give it to the keys alone, and all is well. The experiment could have refuted the story.
#
# ## 6 · Read it from the weights
#
# The story is about matrices: layer 2's query of a letter should match the key made of what layer 1 writes *of* that letter. Both can
# be computed for all 26 letters, without a sequence: the alphabet of notebook [[pytorch_module]] again.


# %%
@torch.no_grad()
def alphabet_scores(query, key):
    """Scores of all letters (26, d) against all letters, in layer 2."""
    return second.W_Q(query) @ second.W_K(key).T  # (26, 26)


with torch.no_grad():
    E = inductors[2].token.weight  # (26, D)
    writes = first.W_O(first.W_V(E))  # what layer 1 writes of each letter
made_of = {"what layer 1 writes": alphabet_scores(E, writes)}
made_of["the letters themselves"] = alphabet_scores(E, E)

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
for name, scores in made_of.items():
    itself = (scores.argmax(-1) == torch.arange(N_LETTERS)).sum().item()
    mean = (scores / D**0.5).diagonal().mean().item()
    print(f"keys made of {name}: {itself} of 26 find themselves,", end=" ")
    print(f"diagonal {mean:.1f}")

# %% [markdown]
# The weights of each letter over the 26 keys. **Try.** Pull the slider to both ends. The model was trained with
# $d_k = 32$.

# %% tags=["slide"] says="With keys made of"
dividers = {"d_k": [1, 4, 16, 32, 64, 256, 1024, 4096], "still": (4, 32, 1024)}
named = {"queries": LETTERS, "keys": LETTERS, "label": "divide by √d_k, d_k ="}


def alphabet_maps(d_k):
    return {name: (s / d_k**0.5).softmax(-1) for name, s in made_of.items()}


live.weights_view(alphabet_maps, **dividers, start=32, trained=True, **named)

# %% [markdown]
# With keys made of what layer 1 writes, every letter finds itself: the diagonal. With keys made of the letters themselves, none does,
# and chance would give one: a letter's own copy is the wrong place, because the answer stands behind it.
# A larger divisor pales the diagonal, and a smaller one only sharpens what is there. Keys made of what an earlier layer wrote: that
# is **K-composition** (Elhage et al.).

# %% [markdown] tags=["predict"]
# ## 7 · One layer, by hand
#
# Must there be two layers? Set by hand one is enough, with a head for each place, or two heads that weigh letters like a ruler
# (*Appendix*). **Predict.** Does training find that, in 1,500 steps at a rate of 0.001: two heads side by side, or twelve?

# %% jupyter={"source_hidden": true}
trainings = []
for layers, heads, rate, steps, right in stored["rates"]:
    right = ",\N{NO-BREAK SPACE}".join(f"{share:.2f}" for share in right)
    trainings.append((layers, heads, f"{rate:g}", steps, right))
told = "layers", "heads in each", "rate", "steps", "right, three seeds"
alike = [(*row[:2], row[4]) for row in trainings if row[2:4] == ("0.001", 1500)]
plot.table((*told[:2], told[4]), alike)

# %% [markdown]
# At this rate two heads side by side learned nothing, and one behind the other everything. Twelve side by side came near, at half
# the rate nearer (*Appendix*).

# %% [markdown]
# <details><summary><b>A task that position solves, too, and a theorem</b></summary>
#
# KRUBLEMAKRUB..., six to twelve letters repeated until 24 positions are full, looks like the same task. But there the answer always
# stands 5 to 11 places back, so two heads in one layer that look at places alone are always right (*Appendix*). So draw at random
# whatever your story does not need.
#
# Longer words are another matter: in one layer the product of heads, features and bits must grow in proportion to the length, and two
# layers get by with its logarithm ([Sanford et al. 2024](../REFERENCES.md#sanford-2024)).
#
# </details>

# %% [markdown]
# ## Exercises

# %% [markdown] tags=["exercise"]
# ### Exercise [[induction_measure]] · Find the induction head
#
# **Goal.** Write a measure of your own, and let it choose the head. *10 minutes, hard.*
#
# `my_measure(weights, tokens)` takes NumPy arrays, weights $(b, h, n_q, n_k)$ and tokens $(b, n)$, and returns one number for each
# head, $(h,)$, the largest for the induction head. It sees only the letters: the sequences of the check have no word and no jumps.
# There it ranks heads of known habits: one does induction, others look at the copy itself, at the letter before it, a fixed number of
# letters back, and so on. Then rank the two heads of section 4, `my_measure(trained_heads, letters.numpy())`: layer 2, the second,
# must win.


# %%
def my_measure(weights, tokens):
    return ...  # your code


# %%
verdict = check.induction_measure(my_measure)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_measure(weights, tokens):
#     same = tokens[:, :, None] == tokens[:, None, :]  # (b, n_q, n_k): key = my letter
#     hit = weights[..., 1:] * same[:, None, :, :-1]  # ... the letter *before* the key
#     return hit.sum(-1).mean((0, -1))  # (h,)
#
#
# layer = my_measure(trained_heads, letters.numpy()).argmax() + 1
# assert layer == 2
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Check [[bag_accuracy]] by training: write `N_TOKENS, N_POSITIONS = 2, 4` near the top, and run section 1 again. Then restart the
#    kernel.
# 2. Run the *Appendix*. Words of 20 letters: `model, _ = trained(2, n=20, steps=1000, description="20 letters")`, then `rated(model, 20)`.
#    It takes some seconds.

# %% [markdown]
# <details><summary>Answers</summary>
#
# 1: 0.74; the best is 0.75. 2: 1.00, from this seed and two others.
#
# </details>

# %% [markdown]
# ## Now yours · A model that keeps its maps to itself
#
# Most models return no maps, because their attention is one fused call. Can you see them all the same? `watch` sees every call while
# a model runs, and gives a map only if it leads to the model's own output.

# %%
from attnlib.watch import watch

with watch(inductors[2]) as seen:
    _ = inductors[2](letters[:1])
print(seen)
watched = [call.trace().weights for call in seen]
print("the maps of above:", np.allclose(watched, maps[2][:, 0], atol=1e-5))

# %% [markdown]
# Put a model of yours in the place of `inductors[2]`: [docs/watch.md](../docs/watch.md) has more.

# %% [markdown] tags=["remember"]
# **Remember.** Without a mask attention does not know order; positions have to be added. Measure every head against a rule, over many
# inputs, and compare with equal weights. Then test your story: change the task, or take away what the head is said to need. Here the
# first of two layers writes into each key what stood before it, and the second matches that. Next:
# [[[a_real_model]] a real model]([[a_real_model.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# ### A token and its copies
#
# The weight that a query of `Reverse` without positions gives itself, other copies of its token, and other tokens:

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    w = reversers[False](tokens)[1][:, 0]  # (4000, n, n)
same = tokens[:, :, None] == tokens[:, None, :]
own = torch.eye(N_POSITIONS, dtype=torch.bool)
for name, cells in (("itself", own), ("copies", same & ~own), ("others", ~same)):
    print(f"{name}: weight {w[cells.expand_as(w)].mean():.2f}")

# %% [markdown]
# ### One layer with smeared keys
#
# Each key is made from the letter before it:


# %%
class KeysFromBefore(AttentionOnly):
    def forward(self, tokens):
        causal = torch.tensor(al.causal_mask(tokens.shape[1]))
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]  # (b, n, D)
        before = nn.functional.pad(x, (0, 0, 1, -1))  # (b, n, D): row j is token j - 1
        output, weights = self.layers[0](x, before, x, attn_mask=causal)
        return self.read(x + output), weights[None]


# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
smeared = KeysFromBefore(1)
options = dict(steps=600, lr=3e-3, description="keys from the letter before")
_ = train(smeared, draw_jumps, jump_loss, **options)
with torch.no_grad():
    right = share_right(smeared(letters)[0], wanted)
print(f"1 layer, keys from the letter before: accuracy {right:.2f}")

# %% [markdown]
# ### One layer, by hand
#
# All trainings:

# %%
plot.table(told, trainings)

# %% [markdown]
# *A head for each place.* Head $j$ looks at place $j$. But if the letter that asks stands anywhere but just in front of place $j$,
# that letter takes all of the head's weight. So ten of eleven heads fetch the letter that asked, one fetches the answer, and the
# read-out ignores the letter that asked. A head left out loses its place.
#
# *Two heads.* Nearly all weight lies on the letter that asks. The rest is a ruler: a letter $j$ places further on has $e^{0.3j}$ times
# a tiny weight in one head, and $e^{0.6j}$ times in the other. Take a multiple of the second from the first, and the difference is
# largest at $j = 1$.


# %% jupyter={"source_hidden": true}
class ByHand(AttentionOnly):
    """A key with the query's letter scores `match`; its place adds `places`."""

    def __init__(self, match, places, signs):  # places (h, r, n_k), r = 1 or n_q
        (h, r, length), n = places.shape, N_LETTERS
        width = max(n + r, -(-(2 * n + length) // h))  # of each head
        super().__init__(1, h, h * width, length)
        _ = [x.requires_grad_(False).zero_() for x in self.parameters()]
        letter, place, heard = slice(n), slice(n, n + length), slice(-n, None)
        one, each, (layer,) = torch.eye(n), torch.eye(length), self.layers
        self.token.weight[:, letter], self.position.weight[:, place] = one, each
        for head in range(h):
            rows = slice(head * width, head * width + n)
            more = slice(rows.stop, rows.stop + r)
            layer.W_Q.weight[rows, letter] = match * width**0.5 * one
            layer.W_Q.weight[more, place] = width**0.5 * (1 if r == 1 else each)
            layer.W_K.weight[rows, letter] = layer.W_V.weight[rows, letter] = one
            layer.W_K.weight[more, place] = places[head]
            layer.W_O.weight[heard, rows] = signs[head] * one
        self.read.weight[:, heard], self.read.weight[:, letter] = one, -1e30 * one


# %% jupyter={"source_hidden": true}
def head_for_each_place(n, left_out=0):
    """Head j looks at place j, unless the letter that asks stands elsewhere."""
    k = torch.arange(2 * n)
    hidden = [(k == j - 1) | (k >= n) for j in range(1, n - left_out)]
    places = [20.0 * (k == j) - 80.0 * x for j, x in enumerate(hidden, start=1)]
    return ByHand(40, torch.stack(places)[:, None], [1] * len(places))


# %% jupyter={"source_hidden": true}
def two_heads(n, a=0.3, b=0.6):
    """Weigh a letter j places on by exp(a j), and by exp(b j), times a tiny weight."""
    k, match = torch.arange(2 * n), 6 + b * n
    places = torch.stack(
        [torch.where(k < n, slope * k, -3 * match) for slope in (a, b)]
    )
    signs = torch.tensor([1, -a / b * np.exp(a - b)]) * np.exp(match)
    return ByHand(match, places[:, None], signs)


# %% jupyter={"source_hidden": true}
def rated(model, n):
    tokens, wanted = draw_jumps(torch.Generator().manual_seed(4), 300, n)
    with torch.no_grad():
        return share_right(model(tokens)[0], wanted)


rows = []
for n in (6, 12, 20):
    set_so = head_for_each_place(n), head_for_each_place(n, left_out=1), two_heads(n)
    learned = np.mean(stored["two layers"][str(n)])
    rows.append((n, n - 1, *(rated(model, n) for model in set_so), learned))
names = "a head for each place", "one head fewer", "two heads", "two layers, learned"
plot.table(["letters", "places", *names], rows)

# %% [markdown]
# ### A repeated pattern, by position alone
#
# Two heads whose queries and keys are made of places: the first prefers the oldest of the letters 5 to 11 places back, and the second
# counts the last five against it.


# %%
def draw_repeats(generator, size=32):
    order = torch.rand(size, N_LETTERS, generator=generator).argsort(-1)
    period = torch.randint(6, 13, (size, 1), generator=generator)  # (b, 1)
    return order[:, :12].gather(1, torch.arange(24) % period)  # (b, 24)


# %%
k = torch.arange(24)
back = k[:, None] - k  # how far a key lies behind a query
looked_at = torch.stack([(back - 5).clamp(0) * (back < 12), (back >= 0) & (back < 5)])
places = looked_at.log().clamp(min=-60)  # (2, n_q, n_k)
by_places = ByHand(0, places, (1e3, -1e6))
patterns = draw_repeats(torch.Generator().manual_seed(4), 1000)
print("".join(LETTERS[t] for t in patterns[0].tolist()))
with torch.no_grad():
    said = by_places(patterns)[0][:, 11:-1].argmax(-1)
print(f"accuracy of the second half: {(said == patterns[:, 12:]).float().mean():.2f}")

# %% [markdown]
# ### One head that names both neighbours
#
# A hidden layer behind one head of the ring; a fresh linear read-out behind that head, trained alone; six letters. All are stored:
# `neighbours.with_other_read_outs()` and `neighbours.six_letters()` train them in half a minute.

# %%
for name in ("1 head(s)", *list(ring)[2:]):
    got = ring[name]
    told = (
        f"all right {got['all right']:.2f}, letters differ {got['letters differ']:.2f}"
    )
    larger, smaller = got["shares"]  # of the weight on both neighbours
    print(f"{name}: {told}, shares {larger:.2f}, {smaller:.2f}")

# %% [markdown]
# ### One head is too few
#
# A single head is too few, whatever its weights. Four words say why: two with BL and CM, in both orders, and two with BM and CL.
# Each is asked what follows B. A lead of L over M, times the sum of exponentials below it, is in one head a sum with a term for each place. So the leads in
# the first two words, which have to be above 0, add up to those in the other two, which have to be below. (A test of this series
# adds them up.)
#
# The weight that two heads leave for the answer, and for the letter that asks where it stands in the word:

# %%
shown, asked_for = draw_jumps(torch.Generator().manual_seed(4), 1)
with torch.no_grad():
    w = two_heads(WORD)(shown)[1][0, 0, :, WORD, :WORD]  # (2, 12), of the first jump
for name, found in (("answer", asked_for[0, 0]), ("letter that asks", shown[0, WORD])):
    (at,) = (shown[0, :WORD] == found).nonzero()[:, 0].tolist()
    print(f"{name}:", ", ".join(f"{x:.6f}" for x in w[:, at]))

# %% [markdown]
# ### One layer, trained
#
# The stored runs took 1500 steps of Adam at rate 0.001, with heads of 32 features. Write `TRAIN = True` to train the one with eight heads
# yourself; that takes half a minute to a minute.

# %% tags=["nbval-ignore-output"]
TRAIN = False
if TRAIN:
    options = dict(steps=1500, lr=1e-3, description="1 layer, 8 heads")
    print(f"1 layer, 8 heads: {rated(trained(1, 8, 8 * D, **options)[0], WORD):.2f}")

# %% [markdown]
# # 06 · Multi-head attention
#
# **Question.** A token may have two questions at once. Why does it take several heads to answer them, or does it? And how
# are all heads computed at once, without a loop? *45 minutes. This notebook needs torch.*
#
# | symbol | meaning |
# |---|---|
# | $d_{model}$, `embed_dim` | features of a token, going in and coming out ($d_{in}$ in notebooks 01 to 05) |
# | $h$, `num_heads` | number of heads |
# | $d_k = d_{model} / h$ | features of a query and of a key in one head |

# %%
from copy import deepcopy

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict, training
from attnlib.examples import BY_HAND
from attnlib.torch_layers import MultiHeadAttention

np.set_printoptions(suppress=True)
_ = torch.set_num_threads(1)

# %% [markdown]
# ## Before you start
#
# Three questions from memory, about earlier notebooks. Guess where you are not sure.
#
# **1.** *(notebook 05)* A model has written four words and kept their keys and values. The newest, fifth word asks alone.
# Which row of a mask does it need?
#
# - **a** the first one: it sees one key
# - **b** the first or the last one of the square mask, they are alike
# - **c** the last one of the square mask: it sees all five keys
#
# **2.** *(notebook 04)* You have a matrix `W` (4, 3), used as `x @ W`. What do you copy into `nn.Linear(4, 3).weight`?
#
# - **a** `W`
# - **b** `W.T`
# - **c** whichever fits
#
# **3.** *(notebook 03)* A query and a key have 32 entries each, independent, with mean 0 and variance 1. Which variance has
# their dot product?
#
# - **a** 32
# - **b** about 5.7
# - **c** 1

# %%
predict.before_06(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · Two questions, one row of weights
#
# *Anna sees Ben* and *Ben sees Anna* hold the same words and tell different stories. The word *sees* has two questions:
# who sees, and whom? In these sentences the one stands before it and the other after it.
#
# So let a head, set by hand, ask for both places. Keys say where a token stands, values say which word it is.

# %%
vocabulary = ["Anna", "Ben", "sees"]
place = np.eye(3)  # row i: place i
before, after = np.eye(3, k=-1), np.eye(3, k=1)  # row i: the place before i, after i


def attend(sentence, asked):  # asked (n, 3): the places that each token asks for
    value = np.eye(3)[[vocabulary.index(word) for word in sentence.split()]]  # (n, 3)
    return al.attention_trace(10 * asked, place, value)


# %% [markdown] tags=["predict"]
# **Predict.** *sees* asks for the place before it and for the place after it, equally. What does it get in each of the two
# sentences? Can you tell from its output who sees whom?

# %%
stories = ["Anna sees Ben", "Ben sees Anna"]
print("shares of", vocabulary)
for story in stories:
    print(story, attend(story, before + after).output[1].round(2))  # row 1 is "sees"

# %% [markdown]
# Half Anna, half Ben, both times: one row of weights, one mixture, and who is who is lost. Give the same word two rows of
# weights, one for each question:

# %%
print("shares of", vocabulary)
for story in stories:
    who, whom = (attend(story, asked).output[1].round(2) for asked in (before, after))
    print(f"{story}   who: {who}   whom: {whom}")

# %% [markdown]
# Each question got a **head** of its own: its own queries, keys and values, and the same formula. A head gives every query
# one row of weights. The two heads here share keys and values and differ in their queries, to keep the example small.

# %%
two_questions = 10 * np.stack([before, after])  # (h, n_q, d_k)
value = np.eye(3)[[0, 2, 1]]  # (n_k, d_v): Anna, sees, Ben
# (1, h, n, d): one sequence, two heads; place and value are the same for both
trace = al.attention_trace(two_questions[None], place[None, None], value[None, None])
two_heads = live.flow(trace, queries=stories[0].split(), query=1, key=0, feature=0)
two_heads

# %% [markdown] tags=["predict"]
# **Try.** Move *head*. The query changes, with it the row of weights, and with it what the output holds. (A token with no
# place before it, or none after it, asks for nothing there: its row is uniform.) Heads are counted from 1, in the text as on
# the sliders. In an array head 1 stands at index 0.
#
# But was that fair? A single head may ask for one place *more* than for the other. **Predict.** *sees* asks for the place
# after it with 0.9 of the strength. Are the two stories still alike?

# %%
for story in stories:
    print(story, attend(story, before + 0.9 * after).output[1].round(2))

# %% [markdown]
# They are not. The word before has the larger share, the word after the smaller one, and both answers stand in one row of
# weights. So one head can *hold* two answers. Whether anybody can read them is another question, and it decides what heads
# are good for.
#
# ## 2 · The same task, trained
#
# Twelve tokens, each one of ten letters, stand in a ring: the last is followed by the first. For every place the model is
# to name the letter before it and the letter after it. Attention does not know where a token stands, so each place gets a
# vector of its own, learned, that is added to the token's: a **position embedding**. Then comes one attention layer, and
# behind it a **read-out**, the layer that turns each output into twenty scores: ten for the letter before, ten for the
# letter after. At first the read-out is a single linear layer.
#
# The heads of a layer share out its features: with 32 features and 2 heads, each head has queries, keys and values of 16.
# How that is done, section 3 shows. Here `MultiHeadAttention(32, 2)` does it.

# %%
N_LETTERS, T, D = 10, 12, 32  # letters, places, features


class Neighbours(nn.Module):
    def __init__(self, num_heads, read_out, asked):
        super().__init__()
        self.token, self.position = nn.Embedding(N_LETTERS, D), nn.Embedding(T, D)
        self.attention = MultiHeadAttention(D, num_heads, bias=False)
        self.asked, self.read_out = asked, read_out(len(asked))

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight  # (b, T, D)
        output, weights = self.attention(x)  # (b, T, D), (b, h, T, T)
        logits = self.read_out(output).unflatten(-1, (-1, N_LETTERS))
        return logits, weights  # (b, T, questions, letters), (b, h, T, T)


# %% [markdown]
# `draw_rings` draws rings of letters, which are numbers from 0 to 9, and the right answers to them. One ring:


# %%
def draw_rings(size, generator, asked):
    tokens = torch.randint(N_LETTERS, (size, T), generator=generator)  # (b, T)
    answers = [tokens.roll(-step, dims=1) for step in asked]  # step -1: the one before
    return tokens, torch.stack(answers, dim=-1)  # (b, T), (b, T, questions)


tokens, answers = draw_rings(1, torch.Generator().manual_seed(0), asked=(-1, 1))
print("letters:", *tokens[0].tolist())
print("before: ", *answers[0, :, 0].tolist())
print("after:  ", *answers[0, :, 1].tolist())

# %% [markdown]
# `loss` is the cross-entropy of notebook 04 over all questions at once. `fit` trains whatever may learn in a model with the
# loop of notebook 04, and `train` starts a new model from a seed and fits it.


# %%
def loss(model, drawn):
    tokens, target = drawn
    logits, _ = model(tokens)  # (b, T, questions, letters)
    return nn.functional.cross_entropy(logits.flatten(0, 2), target.flatten())


def linear(questions):
    return nn.Linear(D, questions * N_LETTERS)


# %%
def fit(model, told, seed=0):
    def draw(generator):
        return draw_rings(128, generator, model.asked)

    training.train(model, draw, loss, steps=600, lr=3e-3, seed=seed, description=told)
    return model


def train(num_heads, read_out=linear, seed=0, asked=(-1, 1)):
    torch.manual_seed(seed)
    model = Neighbours(num_heads, read_out, asked)
    return fit(model, f"{num_heads} head(s), seed {seed}", seed)


# %% [markdown] tags=["predict"]
# **Predict.** One head, or two heads with half the features each: the number of parameters is the same. Which learns to name
# both neighbours, behind a linear read-out?
#
# - **a** both: the parameters are equally many
# - **b** the two small heads
# - **c** neither

# %%
guess_heads = None  # "a", "b" or "c"

# %%
models = {h: train(h) for h in (1, 2)}


# %%
def look(model):
    tokens, target = draw_rings(1000, torch.Generator().manual_seed(1), model.asked)
    with torch.no_grad():
        logits, weights = model(tokens)
    right = logits.argmax(-1) == target  # (b, T, questions)
    each = " ".join(f"{share:.2f}" for share in right.float().mean((0, 1)))
    # "letters differ" leaves out the places whose neighbours are the same letter.
    same = (target == target[..., :1]).all(-1)  # (b, T)
    all_right = right.all(-1).float()  # (b, T)
    told = f"all right {all_right.mean():.2f}, each {each}"
    return f"{told}; letters differ: {all_right[~same].mean():.2f}", weights


# %% tags=["nbval-ignore-output"]
maps = {}
for h, model in models.items():
    told, maps[h] = look(model)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{h} head(s), {parameters} parameters: {told}")

# %%
predict.two_heads(guess_heads)

# %%
mean_maps = torch.cat([maps[1].mean(0), maps[2].mean(0)])  # (1 + 2, T, T)
titles = ["the one head", "head 1 of 2", "head 2 of 2"]
figure = plot.head_grid(mean_maps, titles=titles)

# %% tags=["nbval-ignore-output"]
i = torch.arange(T)
for name, w in zip(titles, mean_maps):
    on_before, on_after = w[i, (i - 1) % T].mean(), w[i, (i + 1) % T].mean()
    print(f"{name}: {on_before:.2f} on the token before, {on_after:.2f} after")

# %% [markdown] tags=["predict"]
# The first map has two stripes: the one head shares its weight between both neighbours, and not equally. The linear layer
# names one of the two letters nearly always and the other seldom. Two heads take one neighbour each.
#
# Are two shares so hard to read? Ask without any attention. Here are the exact shares of section 1, 0.64 and 0.36, for all
# 100 pairs of letters, and a linear layer that is trained on them. **Predict.** How often does it find the letter with the
# larger share, how often the one with the smaller?

# %%
pairs = torch.cartesian_prod(
    torch.arange(N_LETTERS), torch.arange(N_LETTERS)
)  # (100, 2)
shares = torch.eye(N_LETTERS)[pairs]  # (100, 2, 10), one-hot
shares = 0.64 * shares[:, 0] + 0.36 * shares[:, 1]  # (100, 10)
different = pairs[:, 0] != pairs[:, 1]

# %% tags=["nbval-ignore-output"]
for column, name in enumerate(("larger", "smaller")):
    torch.manual_seed(0)
    layer, letter = nn.Linear(N_LETTERS, N_LETTERS), pairs[:, column]
    adam = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(2000):
        adam.zero_grad()
        nn.functional.cross_entropy(layer(shares), letter).backward()
        adam.step()
    found = (layer(shares).argmax(-1) == letter)[different].float().mean()
    print(f"the {name} share of two different letters: found in {found:.2f}")

# %%
unequal = shares @ torch.diag(10.0 ** torch.arange(N_LETTERS))  # 1, 10, 100, ...
found = (unequal.argmax(-1) == pairs[:, 1])[different].float().mean()
print(f"by hand, with unequal weights: the smaller share found in {found:.2f}")

# %% [markdown] tags=["predict"]
# The larger always, the smaller never. A linear layer gives each letter a score, a weighted sum of all shares. No letter is
# special here, so cross-entropy is lowest where all letters are treated alike, and then the score of a letter can only grow with
# its own share or fall with it. The smaller share lies *between* 0, the share of every absent letter, and the larger one: such a
# score never favours it. So this is what training makes of a linear layer. Weights of 1, 10, 100 and so on, set by hand, always
# name the later letter of the alphabet, and so the smaller share in half of the pairs.
#
# Still one head; but now train it together with a read-out that has a **hidden layer**: a linear layer, then every negative
# number is set to 0 (`ReLU`), then a second linear layer. **Predict.** Does it learn now?


# %%
def with_hidden_layer(questions):
    return nn.Sequential(
        nn.Linear(D, 128), nn.ReLU(), nn.Linear(128, questions * N_LETTERS)
    )


# %%
def two_shares(w):  # of each query, the larger first
    pair = torch.stack([w[:, 0, i, (i - 1) % T], w[:, 0, i, (i + 1) % T]])
    return f"shares {pair.amax(0).mean():.2f} and {pair.amin(0).mean():.2f}"


# %% tags=["nbval-ignore-output"]
print(f"linear read-out, seed 0: {two_shares(maps[1])}")
hidden = {seed: train(1, with_hidden_layer, seed) for seed in range(5)}
for seed, model in hidden.items():
    told, w = look(model)
    print(f"hidden layer, seed {seed}: {two_shares(w)}\n    {told}")

# %% [markdown] tags=["predict"]
# It does, with each of five seeds: both neighbours are right in 0.85 of the places at worst, and in nearly all with the
# other four. But the head has changed as well: it gives one place about 0.7 of its weight and the other about 0.3, where it
# gave 0.52 and 0.44 before.
#
# So was it the head or the read-out? Take the head of seed 1, change none of its weights, and train a fresh *linear*
# read-out behind it. **Predict.** How often are both neighbours right now?

# %% tags=["nbval-ignore-output"]
same_head = deepcopy(hidden[1]).requires_grad_(False)
torch.manual_seed(0)
same_head.read_out = linear(2)  # the only part that learns
told, _ = look(fit(same_head, "a linear read-out behind the same head"))
print("the same head, linear read-out:", told)

# %% [markdown]
# It was the read-out. The one with a hidden layer finds both letters in nearly every output of this head. The linear one
# finds one letter at each place, the one with the larger share, and both only where they are the same letter, one place in
# ten: that is why the two numbers behind *each* add up to about 1.1.
#
# In this task, then, **heads are not a matter of what is possible, but of what can be read out cheaply.** Two heads hand
# their answers over in different features, and a linear layer only has to pick them up.
#
# In a language model a hidden layer does follow attention. What then speaks for several heads? Ask for more: three
# letters before and three after, with the hidden layer behind each.

# %% tags=["nbval-ignore-output"]
steps = (-3, -2, -1, 1, 2, 3)
for h in (1, 8):
    told, _ = look(train(h, with_hidden_layer, asked=steps))
    print(f"six letters, {h} head(s):\n    {told}")

# %% [markdown]
# One head and this read-out do not get there in these 600 steps. Eight heads of four features do. That does not show that one
# head *cannot*; it may need more time. But several heads make it easy. (An illustration: one task, one size; five seeds for one
# head with a hidden layer on two letters, a single seed for everything else.)
#
# ## 3 · Split and merge
#
# Two heads need two sets of queries, keys and values. Nobody computes them one after the other. One large projection makes
# them all, and its features are then cut into $h$ pieces of $d_k = d_{model}/h$. The head axis must come before the token
# axis, so that `@` treats heads like a batch:
#
# $$(n, d_{model}) \;\to\; (n, h, d_k) \;\to\; (h, n, d_k).$$
#
# In this array the tens say which token, the ones say which feature, both counted from 1 here:

# %%
# (n, d_model): token, feature
x = np.array([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
heads = al.split_heads(x, 2)  # (h, n, d_k)
print(x.shape, "->", x.reshape(3, 2, 2).shape, "->", heads.shape)
print("head 1 has features 1, 2 of every token:\n", heads[0])
print("merge undoes split:\n", al.merge_heads(heads))

# %% [markdown] tags=["predict"]
# Features are cut, tokens stay whole: every head sees every token.
#
# ## Break it · Straight to the shape
#
# **Predict.** Somebody saves a step and reshapes $(3, 4)$ to $(2, 3, 2)$ at once. What is in head 1?
#
# - **a** features 1, 2 of every token
# - **b** all features of token 1, and half of token 2
# - **c** nothing: it raises an error

# %%
guess_reshape = None  # "a", "b" or "c"

# %%
print(x.reshape(2, 3, 2)[0])

# %%
predict.reshape(guess_reshape)

# %% [markdown]
# Features of token 1 and half of token 2, as if they were three tokens. The shape is right, nothing fails, and places are mixed
# up. It has been done in public ([thread](../REFERENCES.md#threads)). Does it leak the future in a causal model? Poke it, as in
# notebook 05, with two heads and six tokens, whose rows the code counts from 0: change row 3, the fourth. Rows 0, 1 and 2 must
# not move.


# %%
def straight_merge(x):  # (h, n, d_k) -> (n, d_model)
    return x.reshape(x.shape[1], -1)


def cut_straight(x, merge):
    cut = x.reshape(2, 6, 4)  # straight to (h, n, d_k)
    return merge(al.scaled_dot_product_attention(cut, cut, cut, is_causal=True))


# %%
six = np.random.default_rng(0).normal(size=(6, 8))  # (n, d_model)
poked = six + np.eye(6)[:, 3:4]  # row 3 is changed
merges = {"right merge": al.merge_heads, "straight merge": straight_merge}
for name, merge in merges.items():
    difference = cut_straight(poked, merge) - cut_straight(six, merge)
    moved = np.flatnonzero(np.abs(difference).max(axis=-1))
    print(f"straight split, {name:<14} outputs that move: {moved}")

# %% [markdown]
# With the right merge, outputs 0, 1 and 2 move as well: the future leaks. And if the merge is as wrong as the split? Head 1
# holds the pieces of the first three tokens, in the order of the text, so a causal mask on its rows is causal for the tokens,
# too. The straight merge puts every piece back where it came from, and nothing leaks. That layer is wrong all the same: each
# head sees only three of the six tokens.
#
# ## 4 · The whole layer in NumPy
#
# Project, split, attend in each head, merge, and a last projection $W_O$:


# %%
def multi_head(x, W_Q, W_K, W_V, W_O, num_heads):
    # (..., h, n, d_k)
    q, k, v = (al.split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    trace = al.attention_trace(q, k, v)  # scale 1/sqrt(d_k), d_k of one head
    # (..., n, d_model), (..., h, n, n)
    return al.merge_heads(trace.output) @ W_O, trace.weights


rng = np.random.default_rng(0)
x, mha = rng.normal(size=(5, 12)), al.MultiHeadAttention(12, 3, bias=False, rng=rng)
output, weights = multi_head(x, mha.W_Q, mha.W_K, mha.W_V, mha.W_O, num_heads=3)
off = np.abs(output - mha(x)[0]).max()
print(output.shape, weights.shape, f" differs from al.MultiHeadAttention by {off:.12f}")

# %% [markdown]
# The merged heads stand side by side: the first four features come from head 1, the next four from head 2. $W_O$ mixes
# them. Without it, no output feature could use two heads.
#
# A product with a matrix is a sum, so the same output can be taken head by head. Head $i$ adds its weights $A_i$ times its
# values, through its own columns of $W_V$ and its own rows of $W_O$:
#
# $$\text{output} = \sum_i A_i \, x \, W_V^{(i)} \, W_O^{(i)}$$

# %%
parts = [slice(4 * i, 4 * i + 4) for i in range(3)]  # the features of each head
added = sum(
    A @ x @ mha.W_V[:, part] @ mha.W_O[part] for A, part in zip(weights, parts)
)  # (n, d_model)
print(f"added up head by head, it differs by {np.abs(added - output).max():.12f}")

# %% [markdown]
# (torch stores `W_O.weight` transposed: there a head has columns of its own.)
#
# With one head, $W_O$ the identity and the matrices of notebook 01, the numbers of notebook 01 come back:

# %%
example, W_Q, W_K, W_V = BY_HAND
one, _ = multi_head(example, W_Q, W_K, W_V, np.eye(3), num_heads=1)
print(one.round(6))

# %% [markdown] tags=["predict"]
# ## 5 · Which $d_k$ in the scale?
#
# Notebook 03 divided scores by the root of the number of products in them. A layer of width 256 with 8 heads takes dot
# products of $256 / 8 = 32$ entries. A widely copied class ([S0](../REFERENCES.md#s0)) divides by $\sqrt{256} = 16$ all the
# same ([threads](../REFERENCES.md#threads)). **Predict.** Are its weights too peaky or too flat?

# %%
r = np.random.default_rng(22)
q, k = r.normal(size=(2, 32, 8, 10, 32))  # (b, h, n, d_k)
dots = q @ k.swapaxes(-1, -2)  # (b, h, n_q, n_k)
for name, scale in (("sqrt(256)", 16), ("sqrt(32) ", np.sqrt(32))):
    weights = al.softmax(dots / scale)
    variance, H = (dots / scale).var(), al.entropy(weights).mean()
    print(f"divided by {name}: variance {variance:.2f}   mean entropy {H:.2f} nats")

# %% [markdown] tags=["predict"]
# Too flat: ten equal weights have $\ln 10 = 2.30$ nats, and it comes to 2.25. The code runs, the shapes are right, and the
# heads can hardly choose at the start. (Training can make queries longer.) The scale belongs to the vectors that are
# multiplied, so its $d_k$ is that of one head.
#
# See it: $d_{model} = 64$ stays fixed, random tokens go through a fresh layer, and more heads mean shorter vectors. The maps
# are those of the first head. **Predict.** Which end of the slider has the peaky map, $h = 1$ or $h = 32$? And which of the
# two maps changes less?

# %%
torch.manual_seed(2)
wide, tokens = MultiHeadAttention(64, 1, bias=False), torch.randn(6, 64)
q, k = wide.W_Q(tokens).detach(), wide.W_K(tokens).detach()  # (n, 64)


def first_head(num_heads):
    d_k = 64 // num_heads
    scores = q[:, :d_k] @ k[:, :d_k].T  # (n_q, n_k)
    return {
        "not scaled": scores.softmax(-1),
        "divided by sqrt(d_k)": (scores / d_k**0.5).softmax(-1),
    }


# %%
choices = [(f"{h}, so d_k = {64 // h}", h) for h in (1, 2, 4, 8, 16, 32)]
view = live.weights_view(first_head, num_heads=choices, still=(1, 8, 32), start=1)
view

# %% [markdown]
# As numbers (six equal weights would have $\ln 6 = 1.79$ nats):

# %%
for h in (1, 32):
    pairs = first_head(h).items()
    told = (f"{name} {al.entropy(w.numpy()).mean():.2f}" for name, w in pairs)
    print(f"h = {h:<2} mean entropy:", ", ".join(told))

# %% [markdown] tags=["predict"]
# Where nothing is divided, the map fades as heads are added. Divided by its own $\sqrt{d_k}$, it stays about as broad. (One
# draw, one head; the slider shows no more.)
#
# All heads at once, again with random vectors. Choose *head*; 0 stands for the average of all. **Predict.** Do random heads
# look alike? Is their average more or less peaky than each of them?

# %%
query, key = np.random.default_rng(0).normal(size=(2, 6, 64))  # (n, d_model)
query, key = al.split_heads(query, 8), al.split_heads(key, 8)  # (h, n, d_k)
random_maps = al.attention_trace(query, key, key).weights  # (h, n_q, n_k)
all_heads = live.heads(random_maps)
all_heads

# %% [markdown]
# They do not look alike. How peaky is a map? Its mean entropy says it, a small one where few keys share:

# %%
average = al.entropy(random_maps.mean(axis=0)).mean()
print(f"average of all: {average:.2f}", end="   ")
print("heads:", al.entropy(random_maps).mean(axis=-1).round(2))
uniform = np.full((6, 6), 1 / 6)
pair = [al.entropy(w).mean().round(2) for w in (uniform, (uniform + np.eye(6)) / 2)]
print("a uniform map:", pair[0], "  averaged with the identity:", pair[1])

# %% [markdown] tags=["predict"]
# Here the average is flatter than any of them; with other heads it need not be. It is no head's map. Yet it is what
# `nn.MultiheadAttention` hands out, unless you say `average_attn_weights=False`.
#
# ## 6 · How many parameters?
#
# **Predict.** $d_{model} = 512$. Does a layer with 64 heads have more parameters than one with a single head?

# %%
for h in (1, 8, 64):
    layer = MultiHeadAttention(512, h, bias=False)
    count = sum(p.numel() for p in layer.parameters())
    print(f"d_model 512, h = {h:2d}: d_k = {layer.d_k:3d}, {count} parameters")
print("8 single heads, 3 matrices of 512 x 64 each:", 8 * 3 * 512 * 64, end="  ")
print("plus W_O:", 512 * 512)

# %% [markdown]
# Four matrices of $d_{model} \times d_{model}$, whatever the number of heads: more heads are the same matrices, cut finer.
# They are not free for all that. A head with $d_k = 1$ multiplies one number by another, so all its positive queries look most
# at one key, that with the largest number, and all its negative ones at that with the smallest.
#
# ## 7 · The same as `nn.MultiheadAttention`
#
# Is our layer the layer that everybody uses? `from_torch` copies the weights of torch's module. With the same weights the
# outputs must agree, with and without masks. Two conventions change on the way: torch's module wants True = blocked, and a
# mask for each head of each sequence, $(b \cdot h, n, n)$.

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(12, 3, batch_first=True).double().eval()
ours = MultiHeadAttention.from_torch(theirs)
x = torch.randn(4, 6, 12, dtype=torch.float64)  # (b, n, d_model)
# (b, n, n), True = may attend; torch wants (b * h, n, n), True = blocked
mask = al.combine_masks(al.causal_mask(6), al.padding_mask([6, 4, 5, 3], 6))
blocked = torch.from_numpy(al.to_blocked(mask)).repeat_interleave(3, dim=0)

# %%
for name, m, b in (("no mask", None, None), ("padding and causal", mask, blocked)):
    mine, my_weights = ours(x, attn_mask=m)
    output, their_weights = theirs(x, x, x, attn_mask=b, average_attn_weights=False)
    off = max((mine - output).abs().max(), (my_weights - their_weights).abs().max())
    print(f"{name:<18} output and weights differ by {off.item():.12f}")

# %% [markdown]
# ## 8 · When nobody needs the weights
#
# More heads cost no more multiplications. For the scores and for the weighted sums, $h$ heads of $d_k = d_{model} / h$ make
# $2 \, n^2 \, d_{model}$ of them, whatever $h$ is. But the maps that are stored grow with $h$: $h \cdot n_q \cdot n_k$ numbers.
#
# A **fused kernel** does scores, softmax and weighted sum in one go, block by block, and keeps no map. With
# `need_weights=False` torch may use one, if it has one for this device and mask ([Dao et al. 2022](../REFERENCES.md#dao-2022)).

# %%
for h in (1, 8, 64):
    n, d_model = 500, 512
    products = 2 * h * n * n * (d_model // h)  # scores, and weights times values
    print(f"h = {h:2d}: {products:,} products   {h * n * n:,} weights to store")

# %% [markdown]
# And the output is the same:

# %%
layer, x = MultiHeadAttention(256, 8).eval(), torch.randn(1, 500, 256)
with torch.no_grad():
    with_weights, weights = layer(x)
    fused, nothing = layer(x, need_weights=False)
off = (with_weights - fused).abs().max().item()
print(f"weights: {weights.numel():,} numbers   fused: {nothing}")
print(f"outputs differ by {off:.4f}")

# %% [markdown] tags=["predict"]
# In a terminal, in the folder of this project, `make bench` compares their speed with that of nn.MultiheadAttention.
#
# ## 9 · Your own sentence, and a warning
#
# What do heads look like that nobody has trained? All numbers behind this view are random: one vector for each word, and
# the matrices of the heads. **Predict.** *dog* stands in two places. Do its two rows differ? What does a bright cell mean?

# %%
typed = live.sentence("The cat saw the dog, and the dog saw the cat.")
typed

# %% [markdown]
# The rows are equal (*The* with a capital letter is another word than *the*): without positions, attention does not know
# where a word stands. And a bright cell means nothing, since nothing was trained. Even a trained map is not yet an explanation
# ([Jain and Wallace 2019](../REFERENCES.md#jain-2019)). Random heads make bright cells, too; remember that in notebook 09.

# %% [markdown]
# ## Exercises
#
# Write your answer in the first cell, run it and the cell below it. The verdict names the mistake, if it knows it. Stuck?
# Run `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.
#
# Signatures are those of attnlib's functions of the same name. Masks are boolean, **True = may attend**. 6.4 is torch, the
# others are NumPy. The last one is a design, and many answers are right.

# %% [markdown] tags=["exercise"]
# ### Exercise 6.1 · The divisor of a head
#
# **Goal.** Find what a layer with $d_{model} = 768$ and 12 heads divides its scores by. *2 minutes, easy.*
#
# These are the sizes of BERT and of the smallest GPT-2 ([sources](../REFERENCES.md#models)).

# %%
my_head_divisor = None  # one number

# %%
verdict = check.head_divisor(my_head_divisor)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_head_divisor = (768 / 12) ** 0.5  # d_k of one head
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 6.2 · Split
#
# **Goal.** Complete the cut of the features into heads. *5 minutes, medium.*
#
# `my_split_heads(x, num_heads)`: $(..., n, d_{model})$ gives $(..., h, n, d_k)$. Two steps, as in section 3.


# %%
def my_split_heads(x, num_heads):
    return ...  # your code


# %%
verdict = check.split_heads(my_split_heads)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_split_heads(x, num_heads):
#     cut = x.reshape(*x.shape[:-1], num_heads, -1)  # (..., n, h, d_k)
#     return np.swapaxes(cut, -2, -3)  # (..., h, n, d_k)
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 6.3 · The whole layer
#
# **Goal.** Write multi-head attention with three inputs and a mask, in NumPy. *12 minutes, medium.*
#
# `my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None)` returns $(..., n_q, d_{model})$. `attn_mask`
# is $(n_q, n_k)$, $(b, n_q, n_k)$ or $(b, 1, n_k)$, the same for all heads. The scores are $(b, h, n_q, n_k)$, so a mask of
# three axes first needs a head axis: `attn_mask[:, None]`. A mask of two axes goes in as it is. You may use `al.split_heads`,
# `al.merge_heads` and `al.scaled_dot_product_attention`.


# %%
def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    return ...  # your code


# %%
verdict = check.multi_head_attention(my_multi_head)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
#     pairs = ((query, W_Q), (key, W_K), (value, W_V))
#     q, k, v = (al.split_heads(x @ W, num_heads) for x, W in pairs)  # (..., h, n, d_k)
#     if attn_mask is not None and attn_mask.ndim == 3:
#         attn_mask = attn_mask[:, None]  # (b, 1, n_q, n_k)
#     return al.merge_heads(al.scaled_dot_product_attention(q, k, v, attn_mask)) @ W_O
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 6.4 · The module
#
# **Goal.** Write multi-head attention as a torch module. *20 minutes, hard.*
#
# `__init__(embed_dim, num_heads)` makes four layers `nn.Linear(embed_dim, embed_dim)`, with a bias or without, called `W_Q`,
# `W_K`, `W_V`, `W_O`. `forward(query, key=None, value=None, *, attn_mask=None)` returns the output and the weights
# $(..., h, n_q, n_k)$. It is tried on batches, and on one sequence without a batch axis: count axes from the end. `key`
# defaults to `query`, `value` to `key`. The mask is as in 6.3. A query that may attend to nothing has weights 0:
# `.nan_to_num()` (its output is then the bias of `W_O`, if there is one). The gradient of the output must reach all four
# layers, and such a row must not turn it into NaN: use `masked_fill`.


# %%
class MyMultiHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        raise NotImplementedError  # your code

    def forward(self, query, key=None, value=None, *, attn_mask=None):
        raise NotImplementedError  # your code


# %%
verdict = check.MultiHeadAttention(MyMultiHead)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# class MyMultiHead(nn.Module):
#     def __init__(self, embed_dim, num_heads):
#         super().__init__()
#         self.h = num_heads
#         self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
#
#     def forward(self, query, key=None, value=None, *, attn_mask=None):
#         key = query if key is None else key
#         value = key if value is None else value
#         q, k, v = self.W_Q(query), self.W_K(key), self.W_V(value)  # (b, n, embed_dim)
#         q, k, v = (x.unflatten(-1, (self.h, -1)).transpose(-2, -3) for x in (q, k, v))  # (b, h, n, d_k)
#         scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5  # (b, h, n_q, n_k)
#         if attn_mask is not None:
#             blocked = ~attn_mask if attn_mask.ndim == 2 else ~attn_mask[:, None]
#             scores = scores.masked_fill(blocked, -torch.inf)
#         weights = scores.softmax(-1).nan_to_num()
#         return self.W_O((weights @ v).transpose(-2, -3).flatten(-2)), weights
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 6.5 · Design: two jobs for two heads
#
# **Goal.** Choose $W_Q$ so that two heads look where you want them to. *12 minutes, hard.*
#
# Four tokens stand in a ring, and each is its place: $x = I_4$. $W_K = [\,I_4 \; I_4\,]$, of shape $(4, 8)$, so in both
# heads a token is found at its place. Each head has $d_k = 4$: scores are divided by 2. Choose $W_Q$ $(4, 8)$ so that in
# **head 1** each token looks at the one opposite, two places on, and in **head 2** at both its neighbours, half and half. Each
# weight may be off by 0.05. Many answers are right.

# %%
my_W_Q = None  # (4, 8): np.hstack([what head 1 asks, what head 2 asks])

# %%
verdict = check.two_jobs(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# opposite = np.roll(np.eye(4), 2, axis=1)
# beside = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
# my_W_Q = 10 * np.hstack([opposite, beside])  # 10 / sqrt(4) = 5, and exp(5) = 148 against 1
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Train with 4 heads, `told, w = look(train(4))`, and draw `plot.head_grid(w.mean(0))`. What do the extra heads do?
#    (Nothing new is asked: each looks at one neighbour, or at both.)
# 2. In `multi_head` of section 4, replace `al.merge_heads(trace.output)` by `np.tile(trace.output.mean(-3), num_heads)`: the
#    average of the heads in place of the heads side by side. Run the three cells of section 4 again. Which numbers change?
#    (With three heads the output: it now differs from that of `al.MultiHeadAttention`, and from the sum head by head. With one
#    head nothing.)
# 3. Choose $W_O$ $(6, 3)$ for the two heads of section 1 so that *sees* gets who minus whom. What do the two stories give?
#    ($W_O$ is $I_3$ above $-I_3$: about $[1, -1, 0]$ for *Anna sees Ben* and $[-1, 1, 0]$ for *Ben sees Anna*.)
#
# **Remember.** A head is one row of weights per query. Two heads keep two answers apart, where one head leaves it to the
# read-out. Heads share one projection, cut by reshape **and** swap. The scale is $1/\sqrt{d_k}$ with the $d_k$ of one head.
# $W_O$ mixes the heads. The number of parameters does not depend on $h$. Next: [07 bug clinic](07_bug_clinic.ipynb).

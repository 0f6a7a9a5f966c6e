# %% [markdown]
# # 06 · Multi-head attention
#
# **Question.** A token may have two questions at once. Why does it take several heads to answer them, or does it? And how
# are all heads computed at once, without a loop? *45 minutes. This notebook needs torch.*
#
# | symbol | meaning |
# |---|---|
# | $d_{model}$, `embed_dim` | features of a token |
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


# %% [markdown]
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

# %% [markdown]
# **Try.** Move *head*. The query changes, with it the row of weights, and with it what the output holds. (A token with no
# place before it, or none after it, asks for nothing there: its row is uniform.)
#
# But was that fair? A single head may ask for one place *more* than for the other. **Predict.** *sees* asks for the place
# after it with 0.9 of the strength. Are the two stories still alike?

# %%
for story in stories:
    print(story, attend(story, before + 0.9 * after).output[1].round(2))

# %% [markdown]
# They are not. The word before has the larger share, the word after the smaller one, and both answers stand in one row of
# weights. So one head can *hold* two answers. Whether anybody can read them is another question, and it decides what heads
# good for.
#
# ## 2 · The same task, trained
#
# Twelve tokens, each one of ten letters, stand in a ring: the last is followed by the first. For every place the model is
# to name the letter before it and the letter after it. Attention does not know where a token stands, so each place gets a
# vector of its own, learned, that is added to the token's: a **position embedding**. Then comes one attention layer, and
# behind it a **read-out**, the layer that turns each output into twenty scores: ten for the letter before, ten for the
# letter after. At first the read-out is a single linear layer.

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
# `draw_rings` draws rings of letters and the right answers: rolled by one place, a ring shows every token its neighbour.
# `loss` is the cross-entropy of notebook 04 over all questions at once. `fit` trains whatever may learn in a model with the
# loop of notebook 04, and `train` starts a new model from a seed and fits it. A training takes some 5 seconds on a laptop.


# %%
def draw_rings(size, generator, asked):
    tokens = torch.randint(N_LETTERS, (size, T), generator=generator)  # (b, T)
    answers = [tokens.roll(-step, dims=1) for step in asked]  # -1: the letter before
    return tokens, torch.stack(answers, dim=-1)  # (b, T), (b, T, questions)


def loss(model, drawn):
    tokens, target = drawn
    logits, _ = model(tokens)  # (b, T, questions, letters)
    return nn.functional.cross_entropy(logits.flatten(0, 2), target.flatten())


# %%
def linear(questions):
    return nn.Linear(D, questions * N_LETTERS)


def fit(model, told, seed=0):
    def draw(generator):
        return draw_rings(128, generator, model.asked)

    training.train(model, draw, loss, steps=600, lr=3e-3, seed=seed, description=told)
    return model


def train(num_heads, read_out=linear, seed=0, asked=(-1, 1)):
    torch.manual_seed(seed)
    model = Neighbours(num_heads, read_out, asked)
    return fit(model, f"{num_heads} head(s), seed {seed}", seed)


# %% [markdown]
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
    same = (target == target[..., :1]).all(-1)  # (b, T): all asked letters are alike
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
titles = ["the one head", "head 0 of 2", "head 1 of 2"]
figure = plot.head_grid(mean_maps, titles=titles)

# %% tags=["nbval-ignore-output"]
i = torch.arange(T)
for name, w in zip(titles, mean_maps):
    on_before, on_after = w[i, (i - 1) % T].mean(), w[i, (i + 1) % T].mean()
    print(f"{name}: {on_before:.2f} on the token before, {on_after:.2f} after")

# %% [markdown]
# The first map has two stripes: the one head shares its weight between both neighbours, and not equally. The linear layer
# names one of the two letters nearly always and the other seldom. Two heads take one neighbour each. (A "head" of two
# counts from 0 here, as in all arrays; the views count from 1.)
#
# Why can a linear layer not do it? Look at section 1 again. The shares were 0.64, 0.36, and 0 for every absent letter. The
# smaller share lies *between* 0 and the larger one. A score that is linear in the shares grows with the share or falls with
# it: it can favour the largest or the smallest, never the one in the middle. Here are the exact shares of all 100 pairs of
# letters, no attention and nothing else to learn, and a linear layer that is trained on them. **Predict.** How often does it
# find the letter with the larger share, how often the one with the smaller?

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

# %% [markdown]
# The larger always, the smaller never.
#
# Is it the head that fails, or the read-out? Leave the one head as it is, and put a hidden layer into the read-out.
# **Predict.** Does it learn now?


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

# %% [markdown]
# It does, with each of five seeds: both neighbours are right in 0.85 of the places at worst, and in nearly all with the
# other four. The head has learned to give one of the two places about 0.7 of its weight and the other about 0.3. With the
# linear read-out it was 0.52 and 0.44.
#
# Then it was the read-out? Make sure. Take the head of seed 1, change none of its weights, and train a fresh *linear*
# read-out behind it. **Predict.** How often are both neighbours right now?

# %% tags=["nbval-ignore-output"]
same_head = deepcopy(hidden[1]).requires_grad_(False)
torch.manual_seed(0)
same_head.read_out = linear(2)  # the only part that learns
told, _ = look(fit(same_head, "a linear read-out behind the same head"))
print("the same head, linear read-out:", told)

# %% [markdown]
# One read-out finds both letters in nearly every output of this head. The other finds both only where they are the same
# letter, one place in ten, and never where they differ. The head is the same, number for number. It hands over both answers
# as a larger and a smaller share, and somebody has to take them apart.
#
# In this task, then, **heads are not a matter of what is possible, but of what can be read out cheaply.** Two heads hand
# their answers over separately, before $W_O$, and the next layer only has to pick them up.
#
# In every Transformer a hidden layer does come after attention. What then speaks for several heads? Ask for more: three
# letters before and three after, with the hidden layer behind each.

# %% tags=["nbval-ignore-output"]
six = (-3, -2, -1, 1, 2, 3)
for h in (1, 8):
    told, _ = look(train(h, with_hidden_layer, asked=six))
    print(f"six letters, {h} head(s):\n    {told}")

# %% [markdown]
# Six letters in one mixture are too many for this read-out, in these 600 steps. Eight heads hand over all of them. (One
# task, one size; five seeds for two letters, one seed for six: that is what was tried here.)
#
# ## 3 · Split and merge
#
# Two heads need two sets of queries, keys and values. Nobody computes them one after the other. One large projection makes
# them all, and its features are then cut into $h$ pieces of $d_k = d_{model}/h$. The head axis must come before the token
# axis, so that `@` treats heads like a batch:
#
# $$(n, d_{model}) \;\to\; (n, h, d_k) \;\to\; (h, n, d_k).$$
#
# In this array the tens say which token, the ones say which feature:

# %%
# (n, d_model): token, feature
x = np.array([[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]])
heads = al.split_heads(x, 2)  # (h, n, d_k)
print(x.shape, "->", x.reshape(3, 2, 2).shape, "->", heads.shape)
print("head 0 has features 1, 2 of every token:\n", heads[0])
print("merge undoes split:\n", al.merge_heads(heads))

# %% [markdown]
# Features are cut, tokens stay whole: every head sees every token.
#
# ## Break it · Straight to the shape
#
# **Predict.** Somebody saves a step and reshapes $(3, 4)$ to $(2, 3, 2)$ at once. What is in head 0?
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
# Features of token 1 and half of token 2, as if they were three tokens. The shape is right, nothing fails, and places are
# mixed up. It has been done in public ([thread](../REFERENCES.md#threads)). Does it leak the future in a causal model? Poke
# it, as in notebook 05: change token 3 of six, with two heads.


# %%
def straight_merge(x):  # (h, n, d_k) -> (n, d_model)
    return x.reshape(x.shape[1], -1)


def cut_straight(x, merge):
    cut = x.reshape(2, 6, 4)  # straight to (h, n, d_k)
    return merge(al.scaled_dot_product_attention(cut, cut, cut, is_causal=True))


# %%
six = np.random.default_rng(0).normal(size=(6, 8))  # (n, d_model)
poked = six + np.eye(6)[:, 3:4]  # token 3 is changed
merges = {"right merge": al.merge_heads, "straight merge": straight_merge}
for name, merge in merges.items():
    difference = cut_straight(poked, merge) - cut_straight(six, merge)
    moved = np.flatnonzero(np.abs(difference).max(axis=-1))
    print(f"straight split, {name:<14} outputs that move: {moved}")

# %% [markdown]
# With the right merge, outputs 0, 1 and 2 move as well: the future leaks. If the merge is as wrong as the split, it puts
# every piece back where it came from, and nothing leaks. That layer is wrong all the same: each head sees only some of the
# tokens, here three of six.
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
# The merged heads stand side by side: features 0 to 3 come from head 0, and so on. $W_O$ lets the heads' results mix.
# Without it, no output feature could use two heads.
#
# With one head, $W_O$ the identity and the matrices of notebook 01, the numbers of notebook 01 come back:

# %%
example, W_Q, W_K, W_V = BY_HAND
one, _ = multi_head(example, W_Q, W_K, W_V, np.eye(3), num_heads=1)
print(one.round(6))

# %% [markdown]
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

# %% [markdown]
# Too flat: ten equal weights have $\ln 10 = 2.30$ nats, and it comes to 2.25. The code runs, the shapes are right, and the
# heads can hardly choose at the start. (Training can make queries longer.) The scale belongs to the vectors that are multiplied, so it comes after the split.
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
# Where nothing is divided, the first head of one picks, and the first of 32 shares. Divided by its own $\sqrt{d_k}$, it
# stays about as broad, however many there are. (One draw, one head; the slider shows no more.)
#
# All heads at once, again with random vectors. Choose *head*; 0 stands for the average of all. **Predict.** Do random heads
# look alike? Is their average more or less peaky than each of them?

# %%
all_heads = live.heads(n=6, d_model=64)
all_heads

# %% [markdown]
# They do not look alike. How peaky is a map? Its mean entropy says it, a small one where few keys share:

# %%
maps = []
for head in range(9):
    all_heads.sliders["head"].value = head
    maps.append(next(iter(all_heads.shown.values())))
entropies = [al.entropy(m).mean() for m in maps]
print("average of all:", f"{entropies[0]:.2f}", "  heads:", np.round(entropies[1:], 2))

# %% [markdown]
# The average is flatter than any of them. It is no head's map: nobody attends like that.
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
# More heads cost hardly more multiplications: $h$ heads of $d_k = d_{model} / h$ make $2 \, n^2 \, d_{model}$ of them for
# scores and outputs, whatever $h$ is. But the maps that are stored grow with $h$: $h \cdot n_q \cdot n_k$ numbers.
#
# A **fused kernel** does scores, softmax and weighted sum in one go, block by block, and keeps no map. That is what torch
# uses with `need_weights=False` ([Dao et al. 2022](../REFERENCES.md#dao-2022)).

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

# %% [markdown]
# `make bench` compares the speed of the two with nn.MultiheadAttention on your machine.
#
# ## 9 · Your own sentence, and a warning
#
# What do heads look like that nobody has trained? Each word has one random vector, and the heads are random, too.
# **Predict.** Two places hold the same word: do their rows differ? What does a bright cell mean here?

# %%
typed = live.sentence("The cat saw the dog, and the dog saw the cat.")
typed

# %% [markdown]
# Equal words have equal rows (*The* with a capital letter is another word): without positions, attention does not know
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

# %% [markdown]
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

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# my_head_divisor = (768 / 12) ** 0.5  # d_k of one head
# ```
#
# </details>

# %% [markdown]
# ### Exercise 6.2 · Split
#
# **Goal.** Complete the cut of the features into heads. *5 minutes, medium.*
#
# `my_split_heads(x, num_heads)`: $(..., n, d_{model})$ gives $(..., h, n, d_k)$.


# %%
def my_split_heads(x, num_heads):
    return ...  # first x.reshape(...) to (..., n, h, d_k), then the head axis forward


# %%
verdict = check.split_heads(my_split_heads)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_split_heads(x, num_heads):
#     cut = x.reshape(*x.shape[:-1], num_heads, -1)  # (..., n, h, d_k)
#     return np.swapaxes(cut, -2, -3)  # (..., h, n, d_k)
# ```
#
# </details>

# %% [markdown]
# ### Exercise 6.3 · The whole layer
#
# **Goal.** Write multi-head attention with three inputs and a mask, in NumPy. *12 minutes, medium.*
#
# `my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None)` returns $(..., n_q, d_{model})$.
# `attn_mask` is $(n_q, n_k)$ or $(b, n_q, n_k)$, the same for all heads. The scores are $(b, h, n_q, n_k)$, so a mask of
# three axes first has to become $(b, 1, n_q, n_k)$. You may use `al.split_heads`, `al.merge_heads` and `al.scaled_dot_product_attention`.


# %%
def my_multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    return ...  # your code


# %%
verdict = check.multi_head_attention(my_multi_head)
verdict

# %% [markdown]
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

# %% [markdown]
# ### Exercise 6.4 · The module
#
# **Goal.** Write multi-head attention as a torch module. *20 minutes, hard.*
#
# `__init__(embed_dim, num_heads)` makes four layers `nn.Linear(embed_dim, embed_dim)` called `W_Q`, `W_K`, `W_V`, `W_O`.
# `forward(query, key=None, value=None, *, attn_mask=None)` returns the output and the weights $(b, h, n_q, n_k)$. `key` defaults
# to `query`, `value` to `key`. The mask is as in 6.3. A row that may attend to nothing gives 0: `.nan_to_num()`.
# The gradient of the output must reach all four layers, and such a row must not turn it into NaN: use `masked_fill`.


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

# %% [markdown]
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

# %% [markdown]
# ### Exercise 6.5 · Design: two jobs for two heads
#
# **Goal.** Choose $W_Q$ so that two heads look where you want them to. *12 minutes, hard.*
#
# Four tokens stand in a ring, and each is its place: $x = I_4$. $W_K = [\,I_4 \; I_4\,]$, of shape $(4, 8)$, so in both
# heads a token is found at its place. Each head has $d_k = 4$: scores are divided by 2. Choose $W_Q$ $(4, 8)$ so that in **head 0** each token looks at the one opposite, two
# places on, and in **head 1** at both its neighbours, half and half. Each weight may be off by 0.05. Many answers are right.

# %%
my_W_Q = None  # (4, 8): np.hstack([what head 0 asks, what head 1 asks])

# %%
verdict = check.two_jobs(my_W_Q)
verdict

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# opposite = np.roll(np.eye(4), 2, axis=1)
# beside = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
# my_W_Q = 10 * np.hstack([opposite, beside])  # 10 / sqrt(4) = 5, and exp(5) = 148 against 1
# ```
#
# </details>

# %% [markdown]
# ## Try it
#
# 1. Train with 4 heads, `train(4)`, and look at its maps. What do the extra heads do? (Nothing new is asked: several heads
#    share the two jobs.)
# 2. In `multi_head`, take the average of the heads in place of merging them, repeated `num_heads` times. Which numbers of
#    section 4 change? (The output; with one head nothing does.)
# 3. Choose $W_O$ for the two heads of section 1 so that *sees* gets who minus whom. What do the two stories give? ($W_O$ is
#    $I_3$ above $-I_3$: about $[1, -1, 0]$ for *Anna sees Ben* and $[-1, 1, 0]$ for *Ben sees Anna*.)
#
# **Remember.** A head is one row of weights per query. Two heads keep two answers apart, where one head leaves it to the
# read-out. Heads share one projection, cut by reshape **and** swap. The scale is $1/\sqrt{d_k}$ with the $d_k$ of one head.
# $W_O$ mixes the heads. The number of parameters does not depend on $h$. Next: [07 bug clinic](07_bug_clinic.ipynb).

# %% [markdown]
# # [[pytorch_module]] · Attention as a PyTorch module
#
# **Question.** In notebook [[by_hand]] somebody chose the matrices, so that *she* finds Anna. How does a layer find such matrices by
# itself? *35 minutes, and 31 for exercises. This notebook needs torch.*

# %% jupyter={"source_hidden": true}
import numpy as np
import torch
from torch import nn

import attnlib as al
from attncourse import check, mine, predict
from attncourse.training import lookup
from attncourse.views import block
from attnlib import live, plot
from attnlib.colours import KEY, LINE, QUERY, VALUE
from attnlib.examples import ASYMMETRIC, KARIM, SENTENCE, WORDS
from attnlib.torch_layers import SelfAttention

_ = torch.set_num_threads(1)  # tiny matrices: a second thread costs more than it brings

# %% jupyter={"source_hidden": true} tags=["slide"]
_ = torch.manual_seed(0)
with torch.no_grad():
    _, random = SelfAttention(6, 3, 2)(torch.tensor(SENTENCE.x).float())  # (4, 4)
chosen = al.attention_trace(*SENTENCE.project()).weights
labels = {"queries": WORDS, "keys": WORDS, "columns": 2}
titles = ["chosen matrices", "random matrices"]
figure = plot.head_grid(np.stack([chosen, random.numpy()]), titles=titles, **labels)

# %% [markdown]
# A new layer starts like the second map: its matrices are random, and each word takes a bit of everything. **Training** leads
# from such a map to one that chooses, and you will watch it.

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[scaling]])* The entries of queries and keys are independent, with variance 1. $d_k$ grows from 16 to 64. What
# becomes of the standard deviation of the scores, before any division?
#
# - **a** it stays
# - **b** it doubles
# - **c** it becomes four times as large
#
# **2.** *(notebook [[vectorized]])* Somebody swaps $Q$ and $K$, and the example `KARIM` still gives the right output. Why?
#
# - **a** its numbers are too small for the difference to show
# - **b** its matrix of scores is symmetric
# - **c** softmax does not care for the order of $Q$ and $K$
#
# **3.** *(notebook [[by_hand]])* *She* looks at Anna. Which of Anna's three vectors goes into the output of *she*?
#
# - **a** her query
# - **b** her key
# - **c** her value

# %%
predict.before_pytorch_module(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · Torch in one minute
#
# A **tensor** is an array that can remember how it was computed. A **parameter** is a tensor that training may change. By
# going back through the computation, torch finds the **gradient**: how much does a result change when a parameter grows a
# little? Below, $3w$ should be 6, and the **loss** says how far off it is.

# %%
w = nn.Parameter(torch.tensor(1.0))
loss = (3 * w - 6) ** 2  # 0 would be right
loss.backward()  # go back through the computation
print(f"w = {w.item():.1f}   loss {loss.item():.2f}   gradient {w.grad.item():.0f}")
with torch.no_grad():  # do not remember the next line
    w -= 0.05 * w.grad  # a small step against the gradient
print(f"w = {w.item():.1f}   loss {((3 * w - 6) ** 2).item():.2f}")

# %% [markdown]
# The loss falls as `w` grows: the gradient is negative. One step against it brings `w` close to 2. Training repeats such steps
# with many parameters.
#
# ## 2 · The sentence through a module
#
# An `nn.Module` is a class that collects its parameters. Calling the module runs its `forward`: the four steps of notebook
# [[vectorized]].


# %%
class Attention(nn.Module):
    def __init__(self, *matrices):
        super().__init__()  # always first: it prepares the collection
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.tensor(W)) for W in matrices)

    def forward(self, x):
        q, k, v = x @ self.W_Q, x @ self.W_K, x @ self.W_V  # (..., n, d_k or d_v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5  # (..., n_q, n_k)
        weights = scores.softmax(dim=-1)  # each row sums to 1
        return weights @ v, weights  # (..., n_q, d_v)


# %% [markdown]
# Give it the matrices of *Anna saw Ben; she* and compare with NumPy. In float64 rounding errors are near $10^{-16}$, so any
# difference that you can see is a mistake.

# %%
x = torch.tensor(SENTENCE.x)  # (4, 6), float64
output, weights = Attention(*SENTENCE[1:])(x)  # W_Q, W_K, W_V
by_numpy = al.scaled_dot_product_attention(*SENTENCE.project())
difference = np.abs(output.detach().numpy() - by_numpy).max()
assert difference < 1e-12
print("weights of she:", weights[3].detach().numpy().round(4))
print("output of she: ", output[3].detach().numpy().round(3), "(who, verb)")
print(f"largest difference to NumPy: {difference:.12f}")

# %% [markdown] tags=["predict"]
# *She* finds Anna, with all digits of notebook [[by_hand]]. (`detach` gives the numbers without the memory of how they were
# computed. Only such a tensor can become an array.)
#
# ## 3 · `nn.Linear` stores its matrix transposed
#
# Most code writes a projection as `nn.Linear(d_in, d_k, bias=False)`. It stores its matrix **transposed**, as (out, in), so
# `linear(x)` computes `x @ linear.weight.T`.
#
# **Predict.** You copy a matrix into `linear.weight` without `.T`. What happens if it is 6 x 3, and what if it is square?
#
# - **a** an error for 6 x 3; the square one is silently wrong
# - **b** an error both times
# - **c** nothing bad: nn.Linear turns it round

# %%
guess_square = None  # "a", "b" or "c"

# %%
linear = nn.Linear(6, 3, bias=False).double()  # float64, as the sentence
print("weight of nn.Linear(6, 3):", tuple(linear.weight.shape))
try:
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(SENTENCE.W_Q))  # (6, 3) into (3, 6)
except RuntimeError as error:
    print("without .T:", str(error)[:60])

# %%
square, row = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 0.0])
wrong, right = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
with torch.no_grad():
    wrong.weight.copy_(square)
    right.weight.copy_(square.T)
print("x W =", (row @ square).tolist(), end="   ")
print("copied with .T:", right(row).tolist(), "  without:", wrong(row).tolist())

# %%
predict.square_weight(guess_square)

# %% [markdown]
# The projections of notebook [[multi_head]] are square, so no error warns you there.

# %% [markdown] tags=["exercise"]
# ### Exercise [[SelfAttention]] · The layer
#
# **Goal.** Write self-attention as a module that returns the output and the weights. *16 minutes, hard.*
#
# `__init__(d_in, d_k, d_v=None)` makes three layers `nn.Linear` called `W_Q`, `W_K`, `W_V`, with `bias=False`; a `d_v` that is
# left out is `d_k`. `forward(x)`, of `x` $(..., n, d_{in})$ with a batch or without, returns `(output, weights)`. The gradient of the output must
# reach all three layers.


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

# %% [markdown]
# In section 5 this class learns to look, and notebook [[multi_head]] cuts it into heads. The next cell keeps it in the folder `mine`.

# %%
mine.keep(MySelfAttention)

# %% [markdown]
# Your layer gives the numbers of the sentence, too. The next cell loads it, if you kept it, or attnlib's.

# %%
Layer = mine.load("SelfAttention")
layer = Layer(d_in=6, d_k=3, d_v=2).double()
with torch.no_grad():
    for linear, W in zip((layer.W_Q, layer.W_K, layer.W_V), SENTENCE[1:]):
        linear.weight.copy_(torch.tensor(W).T)
difference = (layer(x)[0] - output).abs().max().item()
print(f"largest difference to the first version: {difference:.12f}")

# %% [markdown] tags=["predict"]
# ## 4 · Which matrices get a gradient?
#
# A matrix that gets no gradient learns nothing. The first loss below is made of the *output*. The second is the sum of all
# *attention weights*.
#
# **Predict.** Which gradients vanish for the second loss?
#
# - **a** that of $W_V$ only
# - **b** none
# - **c** all three

# %%
guess_gradients = None  # "a", "b" or "c"

# %%
for name in ("sum of output ** 2", "sum of the attention weights"):
    output, weights = layer(x)
    loss = (output**2).sum() if "output" in name else weights.sum()
    layer.zero_grad()  # backward adds to what is there, so start from 0
    loss.backward()
    reached = {}
    for matrix in ("W_Q", "W_K", "W_V"):
        grad = getattr(layer, matrix).weight.grad
        reached[matrix] = "nothing" if grad is None or grad.norm() < 1e-9 else "reached"
    print(f"{name}:", reached)

# %%
predict.sum_of_weights(guess_gradients)

# %% [markdown] tags=["predict"]
# The rows of a map always sum to 1, so the second loss cannot change. The first loss reaches $W_V$ through the values, and
# $W_Q$ and $W_K$ through the scores.
#
# Suppose that *she* were Ben, so that her *who* should be -2. We multiply her scores by 1, 3 and 10, so she becomes more and
# more certain of Anna, and more wrong. **Predict.** Does the gradient that could correct her grow or shrink?

# %%
for times in (1, 3, 10):
    scores = times * torch.tensor([5.0, 0.0, 3.0, 2.0]) / 3**0.5
    weights = scores.requires_grad_().softmax(dim=-1)  # remember from here on
    who = weights @ torch.tensor([2.0, 0.0, -2.0, 0.0])  # the values of Anna ... she
    loss = (who + 2) ** 2
    loss.backward()
    steepest = scores.grad.abs().max().item()
    print(f"times {times:2}: weight on Anna {weights[0].item():.4f}", end="   ")
    print(f"loss {loss.item():5.2f}   largest gradient on a score {steepest:.4f}")

# %% [markdown]
# The loss grows, and the gradient vanishes, because a weight near 0 or 1 hardly moves with its score (notebook [[scaling]]; the
# formula is in the *Appendix*). So a fresh head should not be certain of anything. Where queries and keys have entries of variance 1, the division sees to that.

# %% [markdown] tags=["predict"]
# ## 5 · *She* learns to look
#
# Four words alone can be learned by heart, without looking (*Appendix*). So each sentence is new: two names with random *who*, one
# female and one male in either order, and last *she* or *he*. The pronoun means the name of its own gender, and the loss asks for
# that name's *who* alone. The layer that learns is **yours**, if you kept it. **Predict.** Will *she* look at Anna, though the
# loss never mentions looking?


# %% jupyter={"source_hidden": true}
def new_sentences(n, generator):
    x = torch.tensor(SENTENCE.x).float().repeat(n, 1, 1)  # (n, 4, 6)
    x[:, [0, 2], 5] = 2 * torch.randn(n, 2, generator=generator)  # who: of both names
    turned = torch.rand(n, 2, generator=generator) < 0.5  # the names; the pronoun
    for word, turn in ((0, turned[:, 0]), (2, turned[:, 0]), (3, turned[:, 1])):
        x[turn, word, 1:3] = x[turn, word, 1:3].flip(-1)  # male and female
    same = turned[:, 0] == turned[:, 1]  # then the first name is meant
    return x, torch.where(same, x[:, 0, 5], x[:, 2, 5])


# %%
_ = torch.manual_seed(0)
finder, generator = Layer(6, 3, 1), torch.Generator().manual_seed(0)
optimizer = torch.optim.Adam(finder.parameters(), lr=2e-2)
for _ in range(400):
    sentences, who = new_sentences(64, generator)  # (64, 4, 6), (64,)
    loss = (finder(sentences)[0][:, -1, 0] - who).square().mean()
    optimizer.zero_grad()  # backward adds to what is there
    loss.backward()
    optimizer.step()

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    output, weights = finder(x.float())  # our sentence: Anna's who is 2
print(f"she takes {weights[3, 0]:.2f} from Anna, and her who is {output[3, 0]:.2f}")

# %% jupyter={"source_hidden": true} tags=["slide", "nbval-ignore-output"] says="She looks at Anna"
titles = ["chosen matrices", "trained on new sentences"]
both = np.stack([chosen, weights.numpy()])
figure = plot.head_grid(both, titles=titles, width=5.4, **labels)

# %% [markdown]
# She looks at Anna, and nobody said so: the loss on *who* was enough. (Only the last word was asked, so the other rows
# mean nothing.) The **optimiser** makes the steps. Ours, Adam ([Kingma and Ba 2015](../REFERENCES.md#kingma-2015)), divides each
# gradient by its usual size, so that parameters with small gradients move as well.
#
# **What stands behind attention?** In a model, what *she* takes is added to her vector, as in notebook [[by_hand]]. A small
# network, **feed-forward**, then reads each word's sum by itself, and its result is added, too. A **norm** brings vectors to one
# size, in front of each part or behind it:

# %% jupyter={"source_hidden": true}
_ = block.draw(6, norm_first=True)

# %% [markdown]
# Notebooks [[a_real_model]] and [[it_speaks]] run real models made of such blocks.
#
# ## 6 · It learns to look up letters
#
# *She* had features that we had chosen. Now an attnlib layer learns the features, too
# ([Graves et al. 2014](../REFERENCES.md#graves-2014)). Somebody tells you eight pairs of a letter (a to p) and a number (0 to 15),
# and then asks for one of the letters. `lookup.draw` makes such a *memory* anew each time.

# %% jupyter={"source_hidden": true}
memory = lookup.draw(1, torch.Generator().manual_seed(5))
letters = [lookup.LETTERS[i] for i in memory.letters[0]]
words = [f"{a} {n}" for a, n in zip(letters, memory.numbers[0])]
words += [f"{lookup.LETTERS[memory.asked[0]]} ?"]
fits, role = memory.slot.item(), {"query": 1, "key": 2, "value": 3}
used = {(8, "query"), (fits, "key"), (fits, "value")}

# %% jupyter={"source_hidden": true}
box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "gray"}
middle = {"ha": "center", "va": "center"}


def draw_token(ax, i):  # with its query, key and value; those that are used stand out
    _ = ax.text(0, -i, words[i], bbox=box, **middle)
    for (name, x), colour in zip(role.items(), (QUERY, KEY, VALUE)):
        stands_out = (i, name) in used
        look = {"weight": "bold" if stands_out else "normal"}
        _ = ax.text(x, -i, name, color=colour if stands_out else LINE, **look, **middle)


# %% jupyter={"source_hidden": true} tags=["slide"] says="Somebody tells you"
_, ax = plot.subplots(figsize=(3.55, 3.7))
for i in range(9):
    draw_token(ax, i)
arrow = {"arrowstyle": "->", "lw": 1.5}
asks, gives = arrow | {"color": QUERY}, arrow | {"color": VALUE}
_ = ax.annotate("", (1.85, -fits - 0.3), (1.45, -7.8), arrowprops=asks)
_ = ax.annotate("", (3.8, -7.6), (3.2, -fits - 0.3), arrowprops=gives)
_ = ax.text(4, -8, "output", **middle)
_ = ax.set(xlim=(-0.5, 4.5), ylim=(-8.6, 0.6))
_ = ax.set_title("one memory: nine tokens")
_ = ax.set_axis_off()

# %% [markdown]
# Each letter and each number gets a vector of 32 numbers, its **embedding**. A pair becomes one token, a *slot*: the embedding of
# the letter plus that of the number. The letter that is asked for is the ninth token. Its query must fit the key of the slot with
# its letter, and the value of that slot must carry the number. It may also look at itself.
#
# From its output a last layer, `read`, rates the 16 possible answers; the highest wins.


# %%
class Recall(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.letter, self.number = nn.Embedding(16, d), nn.Embedding(16, d)
        self.attention, self.read = SelfAttention(d, d), nn.Linear(d, 16)

    def forward(self, given):
        slots = self.letter(given.letters) + self.number(given.numbers)  # (b, 8, d)
        # The letter that is asked for is appended as the ninth token.
        tokens = torch.cat([slots, self.letter(given.asked)[:, None]], 1)  # (b, 9, d)
        output, weights = self.attention(tokens)
        return self.read(output[:, -1]), weights[:, -1]  # of the ninth token


# %% [markdown]
# The loss is minus the logarithm of the probability that softmax gives the right answer, the *cross-entropy*. Guessing among 16
# costs $\ln 16 \approx 2.77$. Each step takes 128 memories, and `look` measures the model on 1000 new ones.


# %%
def one_step(model, optimizer, memories):
    answers, _ = model(memories)  # (b, 16)
    loss = nn.functional.cross_entropy(answers, memories.answer)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %% jupyter={"source_hidden": true}
@torch.no_grad()
def look(model, rule=None):
    fresh = lookup.draw(1000, torch.Generator().manual_seed(1), rule)  # not trained on
    answers, weights = model(fresh)  # (1000, 16), (1000, 9)
    right = (answers.argmax(-1) == fresh.answer).float().mean().item()
    on_slot = weights[torch.arange(1000), fresh.slot].mean().item()
    return right, on_slot, weights


def told(right, slot, weights):
    itself = weights[:, -1].mean().item()
    return f"right {right:.2f}, on the correct slot {slot:.2f}, on itself {itself:.2f}"


# %%
STEPS = [*range(0, 101, 5), 150, 200, 300, 400]


def train(model, what, rule=None):  # section 7 has another rule
    generator = torch.Generator().manual_seed(0)
    losses, seen = [], {0: look(model, rule)}
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in live.progress(range(1, 401), what):
        losses.append(one_step(model, optimizer, lookup.draw(128, generator, rule)))
        if step in STEPS:
            seen[step] = look(model, rule)  # what it does after this step
    return losses, seen


# %%
_ = torch.manual_seed(0)
model = Recall()
losses, seen = train(model, "training")

# %% jupyter={"source_hidden": true}
_, ax = plot.subplots(figsize=(5.6, 2.4))
_ = ax.plot(losses)
_ = ax.axhline(np.log(16), color="gray", lw=0.8, label="guessing: ln 16")
_ = ax.text(100, np.log(16) + 0.1, "guessing: ln 16", color="gray")
_ = ax.set(xlabel="step", title="loss", ylim=(-0.1, 3.2))

# %% [markdown]
# ## See it · The map while it learns
#
# Here are eight of the 1000 memories, one in each row; in row “asks 3” the ninth token is the letter of slot 3, in column 3. **Try.** Move the
# slider from 0 to 400, slowly up to 60. The diagonal lights up. Which column lights up with it, and fades again?

# %% jupyter={"source_hidden": true} tags=["nbval-ignore-output"]
slot = lookup.draw(1000, torch.Generator().manual_seed(1)).slot
chosen_rows = [slot.tolist().index(s) for s in range(8)]


def map_at(step):
    return {"where it looks": seen[step][2][chosen_rows].numpy()}  # (8, 9)


rows = [f"asks {s}" for s in range(8)]
columns = [*(str(s) for s in range(8)), "itself"]
shown = {"still": (0, 30, 400), "start": 0, "trained": True}
learning = live.weights_view(map_at, step=STEPS, queries=rows, keys=columns, **shown)
learning

# %% tags=["nbval-ignore-output"]
for step in (0, 10, 20, 30, 40, 60, 100, 400):
    print(f"step {step:3}:", told(*seen[step]))

# %% [markdown] tags=["predict"]
# It is the column *itself*: at first the ninth token finds every token with its letter, and that includes itself. Then weight
# moves to the slot, because looking at itself returns no number.
#
# ## Break it · Weights that cannot choose
#
# Set $W_Q$ to 0 and keep it there. All scores are then 0 and all weights $1/9$. Everything else is trained as before, and the
# model still sees all eight numbers.
#
# **Predict.** How often does this model give the right answer?
#
# - **a** in 0.06 of the cases, 1 in 16
# - **b** in about a quarter of the cases
# - **c** nearly always: the rest of the model makes up for it

# %%
guess_equal = None  # "a", "b" or "c"

# %% tags=["nbval-ignore-output"]
_ = torch.manual_seed(0)
blind = Recall()
_ = blind.attention.W_Q.weight.requires_grad_(False).zero_()
_, seen_blind = train(blind, "training without choice")
print(f"with equal weights: right {seen_blind[400][0]:.2f}")
numbers = lookup.draw(1000, torch.Generator().manual_seed(1)).numbers  # (1000, 8)
most = nn.functional.one_hot(numbers, 16).sum(1).amax(-1) / 8
print(f"share of the most frequent number in a memory: {most.mean().item():.2f}")

# %%
predict.equal_weights(guess_equal)

# %% [markdown] tags=["predict"]
# It is right about as often as somebody who ignores the letters and says the most frequent number.
#
# ## 7 · What is a key?
#
# Open the head that works. Make a query and a key of each of the 16 letters, and compute all 256 scaled scores.
# **Predict.** What will their map look like?


# %%
def alphabet_map(model):
    with torch.no_grad():
        query = model.attention.W_Q(model.letter.weight)  # (16, d_k)
        key = model.attention.W_K(model.letter.weight)
    return query @ key.T / query.shape[-1] ** 0.5  # (16, 16) scaled scores


# %% jupyter={"source_hidden": true} tags=["slide"] says="This is what"
def draw_alphabet(model, title):
    _, ax = plot.subplots(figsize=(5.2, 4.6))
    shown = {"queries": lookup.LETTERS, "keys": lookup.LETTERS, "places": None}
    shown |= {"vmin": None, "vmax": None}  # scores, not weights: any numbers
    return plot.attention_heatmap(alphabet_map(model), title=title, ax=ax, **shown)


ax = draw_alphabet(model, "scaled scores")

# %% [markdown] tags=["exercise"]
# ### Exercise [[alphabet_scores]] · Read the map
#
# **Goal.** Read two typical scaled scores off the map: of a letter with itself, and with another one. *3 minutes, easy.*
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
scores, same = alphabet_map(model), torch.eye(16, dtype=torch.bool)
print(f"mean scaled score with itself  {scores[same].mean().item():+.2f}")
print(f"mean scaled score with another {scores[~same].mean().item():+.2f}")
lead = (scores[same] - scores.masked_fill(same, -torch.inf).amax(-1)).min().item()
print(f"ahead of the best other letter by {lead:.1f} or more")

# %% [markdown]
# The key of c fits the query “c?”: its score is about 8 above the mean of the others.
#
# This is what a **key** is: the vector by which a token is found.
#
# The **value** is another vector of the same token. What does it carry? We send the embeddings of the numbers alone through
# $W_V$ and `read`, and then those of the letters alone. How far do the 16 ratings vary in each case?

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    tables = model.number.weight, model.letter.weight  # (16, d) each
    by_number, by_letter = (model.read(model.attention.W_V(t)) for t in tables)
named = (by_number.argmax(-1) == torch.arange(16)).sum().item()
print(f"numbers that the value alone names: {named} of 16")
moved = [answers.std(0).mean().item() for answers in (by_number, by_letter)]
print(f"ratings vary by {moved[0]:.1f} with the number, {moved[1]:.1f} with the letter")

# %% [markdown]
# So the letter decides where this head looks, and what comes back is mostly number.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# In all three seeds (two in the *Appendix*) the model answers right, and the map goes the same way: first the slot and itself,
# then the slot. How much is left on itself differs.
#
# What lets the slot win over the asking token, which has the same letter? Its number. The *Appendix* leaves the numbers out of the
# keys, and only there: then both get one half. So a query has also learned to prefer keys that hold a number.
#
# </details>

# %% [markdown]
# ### The same layer, another rule
#
# Is a key then simply the letter? Train the same model on another rule: each letter asks for another one, its partner. The
# partners are drawn by chance and printed nowhere; you will read them off the map.

# %% tags=["nbval-ignore-output"]
rule = torch.randperm(16, generator=torch.Generator().manual_seed(1595))
_ = torch.manual_seed(0)
second = Recall()
_, seen_second = train(second, "training on another rule", rule)
print("another rule:", told(*seen_second[400]))
ax = draw_alphabet(second, "scaled scores, another rule")

# %% [markdown] tags=["exercise"]
# ### Exercise [[other_head]] · Another head
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
# my_other_head = 2  # row c is strongest in column h, and h is stored with 2
# ```
#
# </details>

# %% [markdown]
# The letters are the same, but other letters fit each other. So a key is not the letter: a key is how a token is found, by
# queries that were learned together with it.

# %% [markdown] tags=["exercise"]
# ### Exercise [[choose_W_Q]] · Choose $W_Q$
#
# **Goal.** Design queries for which each letter looks at the next one. *8 minutes, medium.*
#
# Four letters, a to d, are one-hot tokens: token $i$ has a 1 at position $i$ and 0
# elsewhere. So row $i$ of $W_Q$ *is* the query of letter $i$, and row $i$ of $W_K$ its key. The keys stand in a circle: $W_K$ =
# `[[1, 0], [0, 1], [-1, 0], [0, -1]]`. Choose $W_Q$, (4, 2), such that a takes 0.9 or more from b, b from c, c from d, and d
# from a. Scores are divided by $\sqrt 2$. There are many right answers.

# %%
my_W_Q = None  # four rows of two numbers

# %%
verdict = check.choose_W_Q(my_W_Q)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_W_Q = [[0, 5], [-5, 0], [0, -5], [5, 0]]  # each points to the next key; 4.1 is just too short, 4.2 will do
# ```
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# 1. Remove the division by `q.shape[-1] ** 0.5` in `Attention`. Which cell stops?
# 2. In your module of [[SelfAttention]], write `weights.detach() @ self.W_V(x)`. All outputs stay right. Which matrices does the check name?
#
# <details><summary>Answers</summary>
#
# 1: the one with the `assert` on the sentence. 2: $W_Q$ and $W_K$.
#
# </details>
#
# **Remember.** A module is the same four steps with matrices that learn. Check it in float64 against numbers you know.
# nn.Linear stores $W$ transposed. A key is how a token is found, a value is what it gives, and a loss on the answer teaches
# both. Next: [[[masks]] masks]([[masks.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# ### The module with other numbers
#
# The well-known text of notebook [[by_hand]] ([S3](../REFERENCES.md#s3)) first. It cannot tell $Q$ from $K$, so the asymmetric
# example of notebook [[vectorized]] comes second.

# %%
output, _ = Attention(*KARIM[1:])(torch.tensor(KARIM.x))
print(output.detach().numpy().round(6))
output, _ = Attention(*ASYMMETRIC[1:])(torch.tensor(ASYMMETRIC.x))  # (4, 5)
given = ASYMMETRIC.project()
by_numpy = torch.tensor(al.scaled_dot_product_attention(*given))
by_torch = nn.functional.scaled_dot_product_attention(*(torch.tensor(a) for a in given))
print("first row:", output[0].detach().numpy().round(4))
print(f"largest difference to NumPy's: {(output - by_numpy).abs().max().item():.12f}")
print(f"largest difference to torch's: {(output - by_torch).abs().max().item():.12f}")

# %% [markdown]
# One head of the [original Transformer](../REFERENCES.md#vaswani-2017) takes 512 features and makes 64:

# %%
head = SelfAttention(d_in=512, d_k=64)
print("parameters of one head:", sum(p.numel() for p in head.parameters()))

# %% [markdown]
# ### The formula of section 4
#
# $L$ is the loss, $g_j$ its gradient on weight $w_j$. On the score $s_j$ it is
#
# $$\frac{\partial L}{\partial s_j} = w_j \Big(g_j - \sum_m w_m\, g_m\Big).$$
#
# Where $w_j \approx 0$, the first factor vanishes; where $w_j \approx 1$, the bracket does. Why this formula?
# A higher score raises its own weight and lowers the others. By the quotient rule, the derivative of $w_m$ by $s_j$ is $w_j
# (1 - w_j)$ if $m = j$, and $-w_m w_j$ if not. Multiply each by $g_m$, add up over $m$, and take $w_j$ out. Torch agrees on
# the scores of *she*:

# %%
scores = (torch.tensor([5.0, 0.0, 3.0, 2.0]) / 3**0.5).requires_grad_()
weights = scores.softmax(dim=-1)
weights.retain_grad()
loss = (weights @ torch.tensor([2.0, 0.0, -2.0, 0.0]) + 2) ** 2
loss.backward()
w, g = weights.detach(), weights.grad
print("by the formula:", (w * (g - w @ g)).numpy().round(4))
print("by torch:      ", scores.grad.numpy().round(4))

# %% [markdown]
# ### Training on the sentence alone
#
# Five layers learn the four outputs of the sentence. Whom does *she* look at then? And what becomes of *who* if Anna and Ben
# exchange theirs? It should be -0.885.


# %%
def fitted(layer, given, wanted):
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(500):
        loss = (layer(given)[0] - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer


# %% tags=["nbval-ignore-output"]
alone = torch.tensor(SENTENCE.x).float()
wanted = torch.tensor(al.scaled_dot_product_attention(*SENTENCE.project())).float()
exchanged = alone.clone()
exchanged[[0, 2], 5] = alone[[2, 0], 5]  # who: -2 for Anna, 2 for Ben
for seed in range(5):
    _ = torch.manual_seed(seed)
    by_heart = fitted(SelfAttention(6, 3, 2), alone, wanted)
    output, weights = by_heart(alone)
    off, anna = (output - wanted).abs().max().item(), weights[3, 0].item()
    who = by_heart(exchanged)[0][3, 0].item()
    print(f"seed {seed}: off by {off:.3f}   she takes {anna:.2f} from Anna", end="   ")
    print(f"exchanged, who {who:.2f}")

# %% [markdown]
# ### Other seeds, and keys without numbers

# %% tags=["nbval-ignore-output"]
for seed in (1, 2):
    _ = torch.manual_seed(seed)
    _, seen_seed = train(Recall(), f"seed {seed}")
    for step in (20, 400):
        print(f"seed {seed}, step {step}:", told(*seen_seed[step]))

# %% tags=["nbval-ignore-output"]
fresh = lookup.draw(1000, torch.Generator().manual_seed(1))
with torch.no_grad():
    asking = model.letter(fresh.asked)[:, None]  # (1000, 1, d)
    query = model.attention.W_Q(asking)  # (1000, 1, d_k)
    key = model.attention.W_K(torch.cat([model.letter(fresh.letters), asking], dim=1))
    alone = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)[:, 0]  # (1000, 9)
for name, weights in (("as it is", seen[400][2]), ("keys of letters alone", alone)):
    on_slot = weights[torch.arange(1000), fresh.slot].mean().item()
    itself = weights[:, -1].mean().item()
    print(f"{name}: on the correct slot {on_slot:.2f}, on itself {itself:.2f}")

# %% [markdown] tags=["predict"]
# ### How a layer starts
#
# Dividing by $\sqrt{d_k}$ brings the variance of scores to 1 *if* the entries of $q$ and $k$ have variance 1. In a layer
# $q = x W_Q$, so that depends on how $W_Q$ is drawn. Here are three ways, for matrices of 64 x 64 and tokens with entries of
# variance 1. Each draws evenly from a range: the default of `nn.Linear` from $\pm 1/\sqrt{d_{in}} = \pm 1/8$, `torch.rand` from
# 0 to 1, and Xavier's rule ([Glorot and Bengio 2010](../REFERENCES.md#glorot-2010)) from
# $\pm\sqrt{6/(d_{in} + d_k)} \approx \pm 0.22$. What is drawn evenly from $\pm a$ has the variance $a^2/3$.
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

# %% [markdown] tags=["predict"]
# Xavier's does. The default gives about $1/9$: an entry of $q$ adds 64 terms of variance $1/(3 \cdot 64)$, so its variance is
# $1/3$, as is that of $k$. And `torch.rand` gives more than ten thousand, because all its numbers are positive.
#
# The slider shows fresh weights of six random tokens. **Predict.** Xavier's range shrinks as $d_k$ grows, the default's does
# not. In which direction will each map change from $d_k = 4$ to 512?

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


both = {"d_k": (4, 512), "label": "features d_k, divisor follows"}
live.weights_view(fresh_weights, still=(8, 64, 512), **both)

# %% [markdown]
# The default stays pale at every $d_k$. Xavier starts sharp at a small $d_k$ and ends pale: it keeps the variance for
# square matrices only.
#
# You may read that `nn.Linear` uses Xavier or [Kaiming](../REFERENCES.md#he-2015) initialisation. Both are rules for the
# standard deviation, from the number of inputs, *fan_in*, and of outputs, *fan_out*. Measure it:

# %%
_ = torch.manual_seed(0)
fan_in, fan_out = 512, 64
weight = nn.Linear(fan_in, fan_out, bias=False).weight.detach()
print(f"measured std                       {weight.std().item():.4f}")
print(f"1 / sqrt(3 fan_in)                 {(3 * fan_in) ** -0.5:.4f}")
print(f"Xavier,  sqrt(2/(fan_in+fan_out))  {(2 / (fan_in + fan_out)) ** 0.5:.4f}")
print(f"Kaiming, sqrt(2/fan_in)            {(2 / fan_in) ** 0.5:.4f}")

# %% [markdown]
# It is $1/\sqrt{3\, fan_{in}}$, and neither of the two: torch calls Kaiming's function with an unusual *gain*
# ([why](../REFERENCES.md#torch-linear)).

# %% [markdown]
# <details><summary><b>Why do some models multiply embeddings by the root of d_model?</b></summary>
#
# The original Transformer uses one table twice: for the vectors that go in, and as the last matrix, which names words. Entries
# near $1/\sqrt{d_{model}}$ suit that matrix; times $\sqrt{d_{model}}$ they have size 1 as inputs. The paper gives no reason; this
# one is ours ([source](../REFERENCES.md#embedding-scale)).
#
# </details>

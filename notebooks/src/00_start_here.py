# %% [markdown]
# # 00 · Start here
#
# The same word can mean different things in different sentences. Inside a model each word is a list of numbers, a **vector**.
# **Attention** is how that vector comes to depend on the other words, and so how the model finds out which "bank" is meant.
# This series builds it from single multiplications up to a real language model that runs through a module of your own.
#
# | a bank of a river | a bank with money |
# |---|---|
# | She sat on the **bank** of the river. | The **bank** lent him money. |
# | He fished from the muddy **bank**. | She opened an account at the **bank**. |
# | The **bank** of the stream was steep. | The **bank** raised its interest rates. |

# %% jupyter={"source_hidden": true}
import numpy as np

from attnlib import plot
from attnlib.course import real_model

banks = real_model.stored("minilm_results")["six banks"]  # notebook 09 measures them
figure, axes = plot.subplots(1, 2, figsize=(8, 2.4), sharex=True, sharey=True)
for ax, when, title in zip(axes, ("before", "after"), ("going in", "coming out")):
    like = np.where(np.eye(6), np.nan, banks[when])  # (6, 6), none with itself
    x, y = np.nanmean(like[:, :3], 1), np.nanmean(like[:, 3:], 1)  # (6,) each
    dots = ax.plot(x[:3], y[:3], "o", x[3:], y[3:], "s")
    _ = ax.axline((0.7, 0.7), slope=1, linestyle=":", color="gray")
    ax.set(title=title, xlabel="cosine with river banks", ylabel="with money banks")
_ = axes[0].legend(dots, ["bank of a river", "bank with money"], loc="lower right")

# %% [markdown]
# A **token** is a piece of text that a model treats as one: here a word or a full stop. Each token has a vector. The model
# here is MiniLM ([source](../REFERENCES.md#minilm)), a small real one: 384 numbers to a token, six layers one after the other.
#
# Each point above is the word "bank" in one of the six sentences, before the first layer and after the last. (A click on the
# three dots above the picture shows the code that drew it.) Its place says how much its vector is like those of the other river
# banks (to the right) and of the other money banks (upwards). On the dotted line it is equally like both kinds. Going in, the
# points lie close to that line, two of the squares exactly on top of each other. Coming out, each kind has a side of its own.
# (Mind the axes: they begin near 0.7, not at 0.)
#
# The likeness of two vectors is measured by their cosine, which is 1 if they point the same way. Each point above is a mean of
# such cosines. Here is how far the single ones reach, pair by pair:

# %%
import attnlib as al
from attnlib import live

before, after = np.array(banks["before"]), np.array(banks["after"])  # (6, 6) each
print(f"going in:   every cosine between {before.min():.2f} and {before.max():.2f}")
sense = np.array([0, 0, 0, 1, 1, 1])  # three rivers, three with money
same = sense[:, None] == sense  # (6, 6)
itself = np.eye(6, dtype=bool)
for name, pairs in (("same sense", same & ~itself), ("other sense", ~same)):
    low, high = after[pairs].min(), after[pairs].max()
    print(f"coming out: {name:11} {low:.2f} to {high:.2f}")

# %% [markdown]
# Going in, the six are nearly the same vector, for it is made of the word and of its place in the sentence, and of nothing
# else. Three are identical: there "bank" is the second word. (They are the two squares on one spot and the topmost circle, which
# lies apart from them only because no bank is compared with itself.)
#
# Coming out, the two groups do not lie far apart: the pair of different senses that is most alike (0.85) is more alike than the
# pair of one sense that is least alike (0.84). Which other bank is the nearest: one of the same sense? And would a token that has
# no two senses do as well? So the cell asks it of the "the" before each bank and of the full stop, too. Of these, "the same sense"
# means that the "bank" of their sentence has the same sense.

# %%
results = real_model.stored("minilm_results")  # notebook 09 measures these, too
controls = {word: np.array(results[f"coming out: {word}"]) for word in ("the", ".")}
for word, like in {"bank": after, **controls}.items():
    nearest = np.where(itself, -1, like).argmax(axis=1)  # (6,)
    found = (sense[nearest] == sense).sum()
    told = f"coming out, {word!r}:"
    print(f"{told:<19} the nearest other one has the same sense in {found} of 6")

# %% [markdown]
# The nearest other "bank" has the same sense, six times out of six. That is no proof that the model understood the word: "the"
# does nearly as well, the full stop hardly better than by guessing (2 of the 5 others have its sense: 2.4 of 6), and the six
# sentences were chosen for this page. What it shows is that a vector comes out changed by its sentence, and often towards the
# sense.
#
# How does it hear of its sentence? Each of the six layers has exactly one step in which a token can take anything from another
# token. That step is attention: the token keeps its own vector, and what it takes from the others is added to it. All other
# steps handle each token by itself.
#
# ## How to work
#
# Run a cell with Shift + Enter. The code of this notebook need not be read; 01 begins with plain Python. Where the text says
# *Predict*, write your answer down before you run the next cell; its output is hidden until then. Move every slider to both
# ends. Change numbers: nothing can break that *Restart Kernel* does not mend.
#
# ## Is everything there?

# %% tags=["nbval-ignore-output"]
from importlib.util import find_spec

needs = dict.fromkeys(["numpy", "matplotlib", "ipywidgets"], "all")
needs |= {"tqdm": "04, 06 to 08, 11", "torch": "04, 06 to 09, 11; part of 05, 12"}
needs |= {"safetensors": "09", "psutil": "09"}
for package, notebooks in needs.items():
    if find_spec(package):
        print(f"{package:<11} found     (notebooks: {notebooks})")
    else:
        print(f"{package:<11} MISSING   needed for notebooks: {notebooks}.", end=" ")
        print(f"Fix: pip install {package}")

# %% [markdown]
# ## How to read a heatmap
#
# Attention says of every token how much it takes from each token of its sentence, itself included. These shares are called
# **weights**, and a map shows them all at once. Here is a small one, whose numbers were set by hand.

# %%
tokens = ["the", "cat", "sat"]
weights = np.array(
    [[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.7, 0.3]]
)  # (queries, keys)
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, title="one map of weights, set by hand"
)

# %% [markdown] tags=["predict"]
# Read the second row from left to right. This is the row of "cat". Of all that "cat" takes, 0.3 comes from "the", 0.6 from
# itself and 0.1 from "sat". The token that takes stands at the row: rows are called **queries**. A token from which it takes
# stands at the column: columns are called **keys**. A row is always read as a whole, because it says how one token divides
# one unit of attention among all tokens.
#
# **Predict.** From which token does "sat" take most? Which token takes most from "the"?

# %%
row = weights[tokens.index("sat")]
column = weights[:, tokens.index("the")]
print("'sat' takes most from:    ", tokens[row.argmax()], row.max())
print("takes most from 'the':    ", tokens[column.argmax()], column.max())
print("each row sums to 1:       ", weights.sum(axis=1))

# %% [markdown] tags=["predict"]
# The first question reads a row, the second a column. Only rows must sum to 1: each query divides its unit among the keys,
# while everybody may take from a key, or nobody.
#
# Now a map from the real model: the first of our sentences, in layer 1. A layer makes twelve such maps side by side, each by a
# **head** of its own, so six layers have 72 heads; this one is made by head 5. Layers and heads are counted from 1. `[CLS]` and
# `[SEP]` mark where the sentence begins and ends.
#
# **Predict.** "Bank" takes most from "river", as one would hope. How much of its one unit? And does "river" take as much
# from "bank"? Decide first, then find the two cells.

# %%
tokens = banks["tokens"][0]
weights = np.array(banks["L1H5"][0])  # (queries, keys), from the model
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, title="MiniLM, layer 1, head 5"
)

# %%
for tokens, weights in zip(banks["tokens"], banks["L1H5"]):
    row = np.array(weights[tokens.index("bank")])  # one weight for each token
    first, second = (f"{tokens[j]} {row[j]:.2f}" for j in np.argsort(-row)[:2])
    print(f"{' '.join(tokens[1:-1]):39} {first:13} then {second}")

# %% [markdown]
# "Bank" takes 0.71 from "river", and "river" only 0.17 from "bank". These are two cells, and nothing makes them equal.
#
# In four of the six sentences "bank" takes most from the word that gives its sense away. In the other two it takes most from
# `[CLS]`, which is no word at all. There the sense may have come through one of the 71 other heads; and here, too, a large
# weight does not prove that it came from this one. To see what a head does for the result, notebook 09 takes each of the 72
# away. This head was picked because it can be read, and notebook 09 asks how many can.
#
# ## The whole call as a picture
#
# Where does a map come from? The model makes three vectors of each token, and the rows and columns of a map are named after
# two of them. The **query** of a token says what it looks for. Its **key** says how it can be found. Its **value** is what
# others take from it: not the vector of the token itself, but something made from it. Queries and keys make the map; the map
# and the values make the output. Here is this very head, with 32 numbers in each query, key and value, and `attnlib`, the
# library behind this series, does the rest in one call.

# %%
head = results["L1H5 of the first bank"]
trace = al.attention_trace(
    *(np.array(head[name]) for name in ("query", "key", "value"))
)
tokens = banks["tokens"][0]
whole_call = live.flow(trace, queries=tokens, query=5, key=8)
whole_call

# %% [markdown]
# Look at the scores and at the output. A number there is made by the row to its left and the column above it: a score by a
# query and a key, a number of the output by a row of weights and a column of the values. So the line of "bank" runs through the
# whole picture: its query meets all keys, the scores become weights, and the weights mix the values. **Try.** Choose another
# query, then click a cell; the picture counts tokens and features from 0. You need not understand the steps yet. Notebook 01
# makes each of them by hand.
#
# ## Your first slider
#
# One step in the picture divides the scores by $\sqrt{32}$. The 32 is the number of features of a query, called $d_k$, and a
# feature is one of the numbers of a vector. What is the division good for? Here are queries and keys drawn at random, without
# the division and with it. Move $d_k$ to both ends and count the rows with a cell above 0.95; *draw* takes other random
# numbers. Notebook 03 explains what you see, and two of the numbers in the line below each map, the largest weight and the
# entropy. (Pass over "dead queries": no notebook uses that number.)

# %%
first_view = live.scaling(n=6, d_k=(1, 256), seed=1, row=None)
first_view

# %% [markdown]
# How often does a query take nearly everything from one key? Here are the rows with a cell above 0.95 in 200 draws at
# $d_k = 256$. You need not read the code yet: notebook 02 explains products of many matrices at once.

# %%
rng = np.random.default_rng(0)
query, key = rng.normal(size=(2, 200, 6, 256))  # 6 queries and 6 keys in each draw
scores = query @ key.swapaxes(-1, -2)  # (200, 6, 6), each query with each key
for name, divisor in (("not scaled", 1), ("divided by sqrt(d_k)", 256**0.5)):
    weights = al.softmax(scores / divisor)  # (200, 6, 6), each row sums to 1
    largest = weights.max(axis=-1)  # (200, 6), one of each row
    print(f"{name:<20} above 0.95: {(largest > 0.95).mean():.0%} of the rows")

# %% [markdown]
# ## The notebooks
#
# | | notebook | the question it answers | minutes | needs torch? |
# |---|---|---|---|---|
# <!-- series -->
#
# The minutes are for reading and running, 10 for this one; each exercise says how long it takes. Part A of notebook 10 can be
# read after 03, part B after 05, part C after 06.
#
# Three ways through:
#
# | you have | read | exercises |
# |---|---|---|
# | an evening of two hours | 00, 01 and 02, then the pictures of 09 | 1.1 to 1.4: a pencil and a calculator will do |
# | a weekend | 00 to 03, part A of 10, 04 to 06, parts B and C of 10, then 09 for a model that reads or 11 for one that writes | one or two of each notebook |
# | a course | all of them, one a week | all, and the questions *Before you start* |

# %% [markdown] tags=["remember"]
# **Remember.** Attention changes the vector of a word by adding what it takes from the words around it. A map says how much:
# rows are queries, columns are keys, rows sum to 1. Next: [01 by hand](01_by_hand.ipynb).
#
# ## Notation
#
# An appendix, for looking up later: each symbol is explained where it comes first, and means the same in all notebooks. The
# last column has the letters to use in einops, a library that names axes.
#
# | here | meaning | [Vaswani et al. 2017](../REFERENCES.md#vaswani-2017) | torch's docs | einops |
# |---|---|---|---|---|
# | $n_q$, `n_q` | number of queries | $n$ | L | `q` |
# | $n_k$, `n_k` | number of keys, and of values | $n$ | S | `k` |
# | $d_{in}$, `d_in` | features of a token that goes in | $d_{model}$ | in_features | `d` |
# | $d_{model}$, `embed_dim` | features of a token between the layers of a model; a layer of a model takes these in, so its $d_{in}$ is $d_{model}$ | $d_{model}$ | E, embed_dim | `d` |
# | $d_k$, `d_k` | features of a query and of a key | $d_k$ | E (head_dim) | `c` |
# | $d_v$, `d_v` | features of a value | $d_v$ | Ev | `v` |
# | $h$, `num_heads` | number of heads | $h$ | num_heads | `h` |
# | $b$ | sequences in a batch | none | N | `b` |
# | $Q$, $K$, $V$ | queries, keys, values, one per row | $Q, K, V$ | query, key, value | |
# | $W_Q$, $W_K$, $W_V$, $W_O$ | projection matrices | $W^Q, W^K, W^V, W^O$ | in_proj_weight, out_proj | |
# | scores | $Q K^T$, before scaling | none | none | |
# | weights | softmax of the scaled, masked scores | none | attn_output_weights | |
# | mask | boolean: **True = may attend** | none | attn_mask (two conventions: notebook 05) | |
#
# Axes run in the order $(b, h, n, d)$, and $(b, h, n_q, n_k)$ for scores and
# weights. Queries are always <span style="color:#0072B2">■</span> blue, keys <span style="color:#D55E00">■</span> orange,
# values <span style="color:#009E73">■</span> green, with the word beside the colour ([source](../REFERENCES.md#okabe-ito)).

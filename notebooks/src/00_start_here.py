# %% [markdown]
# # 00 · Start here
#
# Attention is a weighted average in which the data choose the weights. This series builds it from single
# multiplications up to a multi-head module with masks that you can trust. Every number is computed in front of you.

# %%
import attnlib as al
from attnlib import examples, live, plot

weights = al.attention_trace(*examples.BY_HAND.project()).weights  # (n_q, n_k)
ax = plot.attention_heatmap(weights, title="three tokens: who looks at whom")
ax.figure.set_figheight(2.8)

# %% [markdown]
# Notebook 01 computes these nine numbers by hand. The others ask where they come from, and what can go wrong.
#
# | | notebook | the question it answers | minutes | needs torch? |
# |---|---|---|---|---|
# | 01 | [by hand](01_by_hand.ipynb) | What happens to three tokens, number by number? | 35 | no |
# | 02 | [vectorized](02_vectorized.ipynb) | Which matrix products do the same, and what can go wrong with axes? | 35 | no |
# | 03 | [scaling](03_scaling.ipynb) | Why divide by $\sqrt{d_k}$? | 40 | no |
# | 04 | [PyTorch module](04_pytorch_module.ipynb) | How does attention become a layer that learns? | 35 | yes |
# | 05 | [masks](05_masks.ipynb) | Who may look where? | 40 | one section |
# | 06 | [multi-head](06_multi_head.ipynb) | Why several heads, and how are they computed at once? | 45 | yes |
# | 07 | [bug clinic](07_bug_clinic.ipynb) | It runs and has the right shape. Is it right? | 60 | yes |
# | 08 | [train and look](08_train_and_look.ipynb) | What do heads learn? Does the scale matter for learning? | 45 | yes |
# | 09 | [a real model](09_a_real_model.ipynb) | Does a trained language model run through your own module? | 45 | yes |
#
# The minutes are for reading and running; each exercise says how long it takes.
#
# **How to work.** Run a cell with Shift + Enter. Where the text says *Predict*, write your answer down before you run
# the next cell. Move every slider to both ends. Change numbers: nothing can break that *Restart Kernel* does not mend.

# %% [markdown]
# ## How to read a heatmap
#
# Each **row** is one **query**: a token that asks. Each **column** is one **key**: a token that may answer. The cell
# at row $i$, column $j$ is the **weight** that query $i$ gives to key $j$. Each row sums to 1.

# %%
import numpy as np

tokens = ["the", "cat", "sat"]
weights = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.0, 0.7, 0.3]])  # (n_q, n_k)
ax = plot.attention_heatmap(
    weights, queries=tokens, keys=tokens, title="one map of attention weights"
)

# %% [markdown]
# **Predict.** Which token does "sat" look at most? Which token looks at "the" most?

# %%
row = weights[tokens.index("sat")]
column = weights[:, tokens.index("the")]
print("'sat' looks most at:   ", tokens[row.argmax()], row.max())
print("looks most at 'the':   ", tokens[column.argmax()], column.max())
print("each row sums to 1:    ", weights.sum(axis=1))

# %% [markdown]
# The first question reads a row, the second a column. Only rows sum to 1: each query shares out its own attention.
#
# ## Your first slider
#
# Random queries and keys with $d_k$ entries each. Drag $d_k$ to the right: without scaling, most rows end up on a
# single key. With scaling they do not. Notebook 03 explains why, and defines the numbers below the maps; for now, look.

# %%
first_view = live.scaling(n=6, d_k=(1, 256), seed=1, row=None)
first_view

# %% [markdown]
# How many are most? Count the rows in which one key has more than 0.95, in 200 draws at $d_k = 256$:

# %%
rng = np.random.default_rng(0)
query, key = rng.normal(size=(2, 200, 6, 256))  # (draws, n, d_k)
scores = query @ key.swapaxes(-1, -2)  # (draws, n_q, n_k)
for name, divisor in (("not scaled", 1), ("divided by sqrt(d_k)", 16)):
    largest = al.softmax(scores / divisor).max(axis=-1)  # (draws, n_q)
    print(f"{name:<20} above 0.95: {(largest > 0.95).mean():.0%} of the rows")

# %% [markdown]
# ## Notation
#
# One term for one thing, in all notebooks:
#
# | here | meaning | [Vaswani et al. 2017](../REFERENCES.md#vaswani-2017) | torch's docs | einops letters |
# |---|---|---|---|---|
# | $n_q$, `n_q` | number of queries | $n$ | L | `q` |
# | $n_k$, `n_k` | number of keys, and of values | $n$ | S | `k` |
# | $d_{model}$, `embed_dim` | features of a token | $d_{model}$ | E, embed_dim | `d` |
# | $d_k$, `d_k` | features of a query and of a key | $d_k$ | E (head_dim) | `c` |
# | $d_v$, `d_v` | features of a value | $d_v$ | Ev | `c` |
# | $h$, `num_heads` | number of heads | $h$ | num_heads | `h` |
# | $b$ | sequences in a batch | none | N | `b` |
# | $Q$, $K$, $V$ | queries, keys, values, one per row | $Q, K, V$ | query, key, value | |
# | $W_Q$, $W_K$, $W_V$, $W_O$ | projection matrices | $W^Q, W^K, W^V, W^O$ | in_proj_weight, out_proj | |
# | scores | $Q K^T$, before scaling | none | none | |
# | weights | softmax of the scaled, masked scores | none | attn_output_weights | |
# | mask | boolean: **True = may attend** | none | attn_mask (two conventions: notebook 05) | |
#
# Axes run in the order $(b, h, n, d)$, and $(b, h, n_q, n_k)$ for scores and weights.
# Queries are always <span style="color:#0072B2">■</span> blue, keys <span style="color:#D55E00">■</span> orange,
# values <span style="color:#009E73">■</span> green, with the word beside the colour ([source](../REFERENCES.md#okabe-ito)).
#
# ## Is everything there?

# %% tags=["nbval-ignore-output"]
from importlib.util import find_spec

needs = dict.fromkeys(["numpy", "matplotlib", "ipywidgets"], "all")
needs |= {"tqdm": "04, 06, 08", "torch": "04, 06 to 09; part of 03, 05"}
needs |= {"safetensors": "09", "psutil": "09"}
for package, notebooks in needs.items():
    if find_spec(package):
        print(f"{package:<11} found     (notebooks: {notebooks})")
    else:
        print(f"{package:<11} MISSING   needed for notebooks: {notebooks}.", end=" ")
        print(f"Fix: pip install {package}")

# %% [markdown]
# ## attnlib in one cell
#
# The library behind the series does in one call what the next notebooks derive. `attention_trace` keeps every step.

# %%
query = np.array([[1.0, 0.0], [0.0, 1.0]])  # (n_q, d_k)
value = np.array([[1.0, 2.0], [3.0, 4.0]])  # (n_k, d_v)
trace = al.attention_trace(query, query, value)
trace

# %% [markdown]
# The same call as a picture. A number is made by the row to its left and the column above it: a score by a query and a
# key, an output by a row of weights and a column of the values. Follow one query from left to right. **Try.** Choose the
# other query, then click a cell.

# %%
whole_call = live.flow(trace)
whole_call

# %% [markdown]
# **Remember.** Rows are queries, columns are keys, rows sum to 1. Next: [01 by hand](01_by_hand.ipynb).

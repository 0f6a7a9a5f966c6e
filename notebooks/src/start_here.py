# %% [markdown]
# # [[start_here]] · Start here
#
# *When Mary and John went to the store, John gave a drink to* \_\_\_
#
# Guess, or repeat your guess of the first page. A real language model guesses, too. Then you see where it looks, and a slider: move
# it to both ends.

# %% jupyter={"source_hidden": true} tags=["slide"] says="Then you see"
import numpy as np

import attnlib as al
from attncourse import mine, smollm
from attnlib import live, plot
from attnlib.colours import VALUE

blank, exchanged = smollm.stops("blank"), smollm.stops("blank exchanged")
who = live.ribbons(blank)
who

# %% [markdown]
# The model is SmolLM2 ([source](../REFERENCES.md#smollm2)), a small one that was trained to guess the next word of a text. In
# notebook [[it_speaks]] it speaks through functions that you wrote. It guesses from the vector of the last word, *to*. How does *to* know
# who was there?
#
# ## What you saw
#
# The model cuts the text into **tokens**, here words and the comma. A table gives each token a list of 576 numbers, its
# **vector**. So *to* starts with the same vector in every sentence.
#
# Then 30 **layers** change all vectors, one after the other. Each has exactly one step in which a vector can take something from
# other words: **attention**. All other steps handle each word by itself, so whatever *to* knows
# about Mary has come through attention.
#
# In each layer nine **heads** attend side by side, 270 in all. Each has a cell below the ribbons. The ribbons show head 1 of
# layer 24: how much *to* takes from each word. As the model was trained, with the divisor 8, it takes most from *Mary*. Click
# another word.

# %% [markdown] tags=["predict"]
# **Predict.** Exchange the two names. Whom does the model name now, and from which word does *to* take most?

# %% tags=["slide"] says="All other steps"
other_way = live.ribbons(exchanged)
other_way

# %% [markdown]
# ## Too sharp, right, too pale
#
# How does a head share out its attention? It makes a short list of $d_k$ numbers from the 576 of each word; in this model $d_k$
# is 64. With these lists it compares *to* with every word, and each comparison gives a number, a **score**. The scores are
# divided by $\sqrt{64} = 8$ and then become the shares that you saw. The slider changes only the divisor: at 4 it is
# $\sqrt{4} = 2$, and the lists keep their 64 numbers. A small divisor leaves the scores far apart, and one word or two get
# nearly everything. A large one makes them nearly equal. The slider sets it for all 270 heads, or, with *this head*, for one.

# %%
print(" d_k   'to' takes most from   the model says")
for stop in blank["stops"]:
    row, (word, p) = stop["weights"][-1], stop["next"][0]
    looks = f"{blank['words'][row.argmax()].strip():5} {row.max():.2f}"
    print(f"{stop['d_k']:4}   {looks:<20}  {word!r} {p:.2f}")

# %% [markdown]
# At 4, *to* takes nearly everything from *When*, and the model says *the*. From 16 to 128 it takes most from *Mary*, and the
# model names her. At 256 it takes most from *John*, and the model still says *Mary*: one head does not decide. From 1024 on all
# words get nearly the same share, and no name is said. How can *When* overtake *Mary*? One head alone keeps the order of the
# scores. But the slider changes all 270 heads, so this head gets other vectors. Notebook [[scaling]] explains why we divide.
#
# ## How to read a heatmap
#
# The ribbons show one word that looks, a map all of them. Here is the same head at $d_k = 64$.

# %% jupyter={"source_hidden": true} tags=["slide"] says=["Each row belongs", "Each column belongs", "Hatched cells"]
(own,) = (stop for stop in blank["stops"] if stop["d_k"] == 64)
weights, words = own["weights"], [word.strip() for word in blank["words"]]
_, ax = plot.subplots(figsize=(5.0, 4.6))
labels = {"queries": words, "keys": words, "title": "SmolLM2, layer 24, head 1"}
ax = plot.attention_heatmap(
    weights, **labels, attn_mask=al.causal_mask(len(words)), ax=ax, places=None
)

# %% [markdown] tags=["predict"]
# The shares are called **weights**. Each row belongs to a word that takes: rows are called **queries**. Each column belongs to
# a word from which it takes: columns are called **keys**. Hatched cells are forbidden: no word may look at a later one (notebook
# [[masks]]).
#
# **Predict.** What does the last row sum to? Which column has the largest sum, and can it be more than 1?

# %%
print(f"the last row, 'to': {weights[-1].sum():.2f}")
columns = weights.sum(axis=0)
for word, total in list(zip(words, columns))[:4]:
    print(f"the column of {word:5} {total:.2f}")

# %% [markdown]
# Each row sums to 1, because each query divides one unit of attention. A column has no such limit: many queries may take from one key. Why
# *When*? A head must give its whole unit away. Where it needs nothing, the first word gets most, in this head and in many
# others. Notebook [[it_speaks]] tests what it does there.
#
# ## One row, from start to end
#
# Where do the weights come from? Each head multiplies the vector of a word by three learned matrices. That gives three shorter
# vectors, of $d_k = 64$ numbers each. The **query** says what a word looks for. The **key** says how it can be found. The **value** is
# what others take from it. Here is the head once more, for the query of *to* alone. Values are too long to draw, so the picture
# keeps two numbers of each: how far what it gives points towards *Mary*, and towards *John*.

# %% jupyter={"source_hidden": true}
found = smollm.recorded("name_arrives")
head = {name: np.array(found["blank"][name]) for name in ("query", "key", "value")}
towards = ["towards Mary", "towards John"]
trace = al.attention_trace(**head)
whole_call = live.flow(trace, queries=["to"], keys=words, key=1, features=towards)
whole_call

# %% [markdown]
# The query meets each key: multiply number by number, add up, and that is a score. The scores are divided by $\sqrt{64}$.
# Softmax turns them into weights: take exp of each, and divide by the sum. The weights mix the values.
#
# **Try.** Click a weight to see its numbers, then a cell of the output. Which word gives most towards *Mary*?
#
# <details><summary>Answer</summary>
#
# *Mary*: her value has 18.43 there, and times her weight of 0.689 that is 12.70. All words together give 12.9.
#
# </details>
#
# ## The vector plus what it takes
#
# One more learned matrix turns what a head takes into 576 numbers, and these are added to the vector of *to*. The same two
# directions show where that leads.


# %% jupyter={"source_hidden": true}
def arrow(ax, start, end, color):
    style = {"arrowstyle": "-|>", "color": color, "lw": 2.5, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=style)


# %% jupyter={"source_hidden": true}
_, ax = plot.subplots(figsize=(4.6, 3.6))
for name, giver in (("blank", "John"), ("blank exchanged", "Mary")):
    before, heads = (np.array(found[name][part]) for part in ("before", "heads"))
    end = before + heads.sum(axis=0)  # all nine heads
    _ = ax.plot(*before, "ko"), arrow(ax, before, end, "gray")
    arrow(ax, before, before + heads[0], VALUE)
    _ = ax.text(min(end[0], 36), end[1] + 1, f"{giver} gave a drink to", weight="bold")
_ = ax.text(*(before + heads[0] + 1), "head 1 alone", color=VALUE)
for x, y, words in ((36, 3.2, "all nine heads"), (9.5, 2.4, "“to” before")):
    _ = ax.text(x, y, words, color="gray")
_ = ax.set(xlabel="towards Mary", ylabel="towards John", xlim=(0, 70), ylim=(0, 36))
_ = ax.set_title("What attention in layer 24 adds to “to”")

# %%
for name, giver in (("blank", "John"), ("blank exchanged", "Mary")):
    before, heads = np.array(found[name]["before"]), np.array(found[name]["heads"])
    after = before + heads.sum(axis=0)
    print(f"{giver} gave a drink to: towards Mary, John")
    for told, at in (("before", before), ("head 1 adds", heads[0]), ("after", after)):
        print(f"  {told:11} {at[0]:5.1f} {at[1]:5.1f}")

# %% [markdown]
# The last *to* enters layer 24 at nearly the same point in both sentences. Attention adds something different in each, so the
# first leaves towards *Mary*, and the second towards *John*. Towards the right name, head 1 adds a quarter of what all nine add in
# the first sentence, and half in the second. The longest arrow is that of head 4: notebook [[multi_head]] opens with what it says.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Of 80 sentences of this kind, the model ranks the right name above the other in 78. On average over them, head 1 of layer 24
# looks at the right name more than any other head does. In all 80 the right name is the second word. Where it is the fourth,
# as in *When Mary and John went to the store, Mary gave a drink to*, the head finds it there: it takes 0.66 from *John*.
#
# Looking is not yet causing. Without this head the model still says *Mary*, with 0.87, and the right name still wins in 77 of
# the 80. Head 5 of layer 25 looks at *Mary*, too, here with 0.81. Yet it works against her: without it the model says *Mary*
# with 0.98. Notebook [[a_real_model]] takes heads away one by one.
#
# The direction of a word is its vector in the table less the mean of the table, of length 1. The weights of the model are
# stored with fewer digits than the published ones. What you see was measured once and is stored, so this page runs without
# the model.
#
# </details>

# %% [markdown]
# ## How to work
#
# What answers a *Predict* is hidden until you
# run its cell. Change numbers as you like: *Restart Kernel* starts over. Folded code need not be read. Some notebooks end with
# *Appendix: checks*, which measures what the text claims. Nothing later needs it.
#
# ## The notebooks
#
# | | notebook | the question it answers | minutes | and exercises | needs torch? |
# |---|---|---|---|---|---|
# <!-- series -->
#
# Minutes for exercises come on top. Three ways through:
#
# | you have | read | exercises |
# |---|---|---|
# | an evening of two hours | [[start_here]], [[by_hand]] and [[vectorized]], then the pictures of [[a_real_model]] | [[key_of_anna]] to 1.4: a pencil and a calculator will do |
# | a weekend | [[start_here]] to [[scaling]], part A of [[program_a_head]], [[pytorch_module]] to [[multi_head]], parts B and C of [[program_a_head]], then [[a_real_model]] for a model that reads or [[it_speaks]] for one that speaks | one or two of each notebook |
# | a course | all of them, one a week | all, and the questions *Before you start* |
#
# A full circle is a solved exercise.

# %% tags=["nbval-ignore-output"]
mine.progress()

# %% [markdown] tags=["remember"]
# **Remember.** Attention changes the vector of a word by adding what it takes from other words. A map says how much: rows are
# queries, columns are keys, rows sum to 1. Next: [[[by_hand]] by hand]([[by_hand.ipynb]]).
#
# ## Notation
#
# The last column has letters for einops, a library that names axes.
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
# | `L4H2` | layer 4, head 2; both count from 1 | none | none | |
# | $b$ | sequences in a batch | none | N | `b` |
# | $Q$, $K$, $V$ | queries, keys, values, one per row | $Q, K, V$ | query, key, value | |
# | $W_Q$, $W_K$, $W_V$, $W_O$ | projection matrices | $W^Q, W^K, W^V, W^O$ | in_proj_weight, out_proj | |
# | scores | $Q K^T$, before scaling | none | none | |
# | weights | softmax of the scaled, masked scores | none | attn_output_weights | |
# | mask | boolean: **True = may attend** | none | attn_mask (two conventions: notebook [[masks]]) | |
#
# Axes run in the order $(b, h, n, d)$, and $(b, h, n_q, n_k)$ for scores and
# weights. Queries are always <span style="color:#0072B2">■</span> blue, keys <span style="color:#D55E00">■</span> orange,
# values <span style="color:#009E73">■</span> green, with the word beside the colour ([source](../REFERENCES.md#okabe-ito)).

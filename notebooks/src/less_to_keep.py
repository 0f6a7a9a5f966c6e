# %% [markdown]
# # [[less_to_keep]] · Less to keep
#
# **Question.** What must a model keep of a text, and what does it cost to keep less? *40 minutes. It needs no torch.*
#
# Of each token the model of notebook [[it_speaks]] keeps 2 · 30 · 3 · 64 numbers: 23,040 bytes, in 16 bits. Here you keep less:
# **fewer bits**, **fewer keys**, **fewer layers**, **fewer numbers**. Each way is a short function that you hand to the model,
# and two judges say what it costs.

# %% jupyter={"source_hidden": true}
import numpy as np
from matplotlib.colors import to_rgb

import attnlib as al
from attncourse import check, predict, smollm
from attncourse.lessons.less_to_keep import best_keys, in_groups
from attncourse.views import fetch_button
from attnlib import live, plot
from attnlib.colours import BELOW, KEY
from attnlib.rounding import bytes_kept, rounded

np.set_printoptions(precision=2, suppress=True)

# %% [markdown]
# Without that model, this notebook shows stored results. In a browser a button loads it: then run all cells again.

# %% tags=["nbval-ignore-output"]
speaker = None if smollm.missing() else smollm.load()
print(smollm.missing() or "The model is here. Each loss is measured now.")
fetch_button.fetch_button()  # in a browser without the model

# %% [markdown]
# Here are the keys that one head keeps of 32 tokens: a row for each token, a column for each feature. Which
# of these stripes could you leave out?

# %% jupyter={"source_hidden": true} tags=["slide"]
some = smollm.recorded("some_keys")
words, K, Q = some["tokens"], np.array(some["key"]), np.array(some["query"])
tint = (np.abs(K) / np.abs(K).max()) ** 0.6  # (32, 64): how opaque
ink = np.where(K[..., None] > 0, to_rgb(KEY), to_rgb(BELOW))
_, ax = plot.subplots(figsize=(4.6, 5.2))
_ = ax.imshow(np.dstack([ink, tint]), aspect="auto")
_ = ax.set_yticks(range(0, 32, 2), [word.strip() for word in words[::2]])
_ = ax.set(xlabel="feature", title="Keys of layer 20:\norange above zero, slate below")

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[it_speaks]])* A model may see a window of 8 tokens only, and its loss doubles. What brings most of it back?
#
# - **a** a ninth token in the window
# - **b** positions that begin at 0 in each window
# - **c** the first token of the text
#
# **2.** *(notebook [[todays_head]])* RoPE rotates the key of a token by its position. What becomes of its value?
#
# - **a** nothing
# - **b** it is rotated, too
# - **c** it is rotated the other way
#
# **3.** *(notebook [[one_token_at_a_time]])* Nine heads of queries share three heads of keys and values. How many vectors does a layer keep of a token?
#
# - **a** 18
# - **b** 6
# - **c** 6, and nine rows of weights

# %%
predict.before_less_to_keep(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## 1 · What a pass costs
#
# To write a token, the model makes a pass, in which the token meets 134.5 million weights. How many times as long as one token do
# 64 take in one pass?

# %% tags=["nbval-ignore-output"]
timed = smollm.reading(speaker)
seconds = np.array(timed["seconds"])  # (rounds, passes)
ratios = np.percentile(seconds / seconds[:, :1], (50, 25, 75), axis=0)
names = ["tokens in a pass", "times as long as one"]
names += ["a quarter of rounds below", "above"]
plot.table(names, list(zip(timed["tokens"], *ratios)))

# %% [markdown]
# About seven times. A pass brings all weights from memory (538 MB, in 4 bytes each) for one token or for many. So servers write 64 texts
# at once, and share the weights. What is kept of a text is not shared:

# %%
kept, weights = 4096 * 23_040, 2 * timed["numbers"]  # bytes: servers keep 2 a number
for texts in (1, 64):
    read = weights / texts + kept
    print(f"{texts} at once, of 4,096 tokens: {read / 1e6:.0f} MB for a token", end="")
    print(f", {kept / read:.0%} of it keys and values")

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# NumPy multiplies two to eight rows slowly, so here only the pass over one token waits for bytes. A **roofline** tells where that
# ends ([Williams et al. 2009](../REFERENCES.md#williams-2009)): an [H100](../REFERENCES.md#h100), with 2 bytes a weight, waits
# for bytes in a pass over fewer than 295 tokens. Caches in blocks, **paged**, set nothing aside for tokens that never come ([Kwon
# et al. 2023](../REFERENCES.md#kwon-2023)).
#
# </details>

# %% [markdown]
# ## 2 · Two judges
#
# The first judge is the mean surprise at the **next token** of three texts: the beginning of *Alice*, a page of prose that it
# cannot know, and Python code.
#
# The next token seldom needs what stands far back. So a second judge asks what is **found again**. The model reads 40 tokens of
# the prose, 120 of *Alice*, and the 40 once more: the loss on this **second copy** counts. And it reads eight lines like *The
# code of Anna is 2860*, and is asked for them in another order. A code is found if each digit is the model's first choice.

# %%
MINE = ""  # with the model: a text of your own, of fifty words or more
TEXTS = smollm.TEXTS | ({"mine": MINE} if MINE else {})
part = smollm.recorded("shared_part")


# %%
def judged(name, stored, writes="", again=None, **functions):
    """Print what both judges say of these functions, or what is stored."""
    if speaker:
        other = speaker.using(**functions)
        stored = {text: other.loss(words) for text, words in TEXTS.items()}
        again = again and smollm.found_again(other)
        writes = writes and other.write(smollm.STORY, 16)
    told = "".join(f"  {text.capitalize()} {nats:.2f}" for text, nats in stored.items())
    print(f"{name:32}{told}", f"  second copy {again:.2f}" if again else "")
    if writes:
        print(f"   it writes:{' '.join(writes.split())[:60]!r}")


# %% jupyter={"source_hidden": true}
found = {(row["family"], row["name"]): row for row in smollm.recorded("find_again")}
kept = smollm.recorded("less_to_keep")
points = [point | found[point["family"], point["name"]] for point in kept]
by_name = {(point["family"], point["name"]): point for point in points}


# %% jupyter={"source_hidden": true}
def judges(row):
    """Return what all judges say, for a row of a table."""
    nats = row["on" if "on" in row else "loss"].values()
    return *nats, row["again"], f"{row['codes']:.0%}"


def table_of(*ways, tint="Alice"):
    rows = []
    for way in ways:
        size = f"{by_name[way]['bytes']:,}"
        rows.append((", ".join(way), size, *judges(by_name[way])))
    return plot.table(["", "bytes a token", *JUDGES], rows, tint=[tint])


# %%
JUDGES = ["Alice", "prose", "code", "second copy", "codes found"]
copied = by_name["everything", "16 bits"]["again"]
judged("everything is kept", part["loss"]["whole"], again=copied)

# %% [markdown] tags=["predict"]
# Two ways from below take about as many bytes: keys and values in about 4 bits, and a window of 64 tokens with the first one. On
# *Alice* they cost 0.01 and 0.09. **Predict.** The whole model finds nine of ten codes. How many does the model with the window
# find?
#
# - **a** about as many: it hardly loses on *Alice*
# - **b** about half
# - **c** none

# %%
guess_window = None  # "a", "b" or "c"

# %%
ways = [("everything", "16 bits"), ("keys per feature, groups", "4 bits")]
ways += [("window and first token", "64 tokens")]
table_of(*ways, tint="second copy")

# %%
predict.window_finds(guess_window)

# %% [markdown]
# The first judge sees hardly a difference, and a reader who asks for a code sees nothing else.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# With the two copies side by side, the window of 64 reads the second one as the whole model does. What stands before a copy
# changes how well it is read, so compare ways, not texts.
#
# </details>

# %% [markdown]
# ## 3 · Fewer bits
#
# A number that is kept has 16 bits. With 2 bits one can write four whole numbers, 0 to 3. So a row is kept as its lowest number,
# a step, and whole numbers of steps. This is **quantisation**:

# %%
x = np.array([5.1, 5.9, 7.0, 8.1])
lowest, step = x.min(), (x.max() - x.min()) / 3  # 2 bits: four levels, three steps
whole = np.rint((x - lowest) / step)
print(f"lowest {lowest}, step {step:.1f}, kept {whole}, read {lowest + step * whole}")

# %% [markdown] tags=["exercise"]
# ### Exercise [[rounded]] · Round it
#
# **Goal.** Keep numbers in a few bits. *8 minutes, medium.*
#
# `my_rounded(x, bits, axis=-1)`: each number of `x` $(..., n, d)$ becomes the nearest of $2^{bits}$ levels, spread evenly from
# the lowest to the highest along `axis`: -1 gives each token a lowest number and a step of its own, -2 each feature. Where all
# are equal, they stay as they are.


# %%
def my_rounded(x, bits, axis=-1):
    return ...  # your code


# %%
verdict = check.rounded(my_rounded)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_rounded(x, bits, axis=-1):
#     lowest = x.min(axis, keepdims=True)
#     step = (x.max(axis, keepdims=True) - lowest) / (2**bits - 1)
#     whole = np.rint((x - lowest) / np.where(step > 0, step, 1))
#     return lowest + step * whole
# ```
#
# </details>

# %% [markdown]
# ### It speaks in few bits
#
# Each key and value goes through your function first.

# %%
few_bits = my_rounded if verdict.passed else rounded  # ours, until yours is right


def in_bits(bits, key_axis=-1, value_axis=-1):
    def attention(query, key, value, attn_mask=None):
        key, value = few_bits(key, bits, key_axis), few_bits(value, bits, value_axis)
        return al.scaled_dot_product_attention(query, key, value, attn_mask)

    return attention


for point in points[1:5]:  # a scale per token
    bits, on = int(point["name"][0]), point["on"]
    name, copy = f"{bits} bits, a scale per token", point["again"]
    judged(name, on, point["text"], copy, attention=in_bits(bits))

# %% [markdown] tags=["predict"]
# At 8 bits nothing is lost, and at 2 bits everything. In between it matters which numbers share a scale: the features of one
# token, or one feature of all tokens.  **Predict.** In 3 bits, who is better off with a scale for each *feature*?
#
# - **a** keys
# - **b** values
# - **c** both

# %%
guess_scale = None  # "a", "b" or "c"

# %%
scales = smollm.recorded("scales")
rows = []
for row in scales:
    name = f"{row['bits']} bits: keys per {row['keys']}, values per {row['values']}"
    rows.append((name, *judges(row)))
plot.table(["", *JUDGES], rows, tint=["Alice"])

# %%
predict.scale_per_feature(guess_scale)

# %% [markdown]
# In 3 and 2 bits keys per feature and values per token are best on all three texts, as in larger models ([Liu et al.
# 2024](../REFERENCES.md#liu-2024)). The second judge agrees about keys; about values it wavers, and below 4 bits at most a fifth
# of the codes is found. A stripe is a reason: a feature that is far from 0 in every token makes the range of each token wide, so
# all other features get wide steps.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# In 4 bits the ways lie close together. Rounding is chaotic: scales stored in 16 bits move a loss by up to 0.05 in 4 bits, 0.40
# in 3, and more than 1 in 2 (*Appendix*), and another processor moves it about as much. What is said of 3 and 2 bits held each
# time.
#
# </details>

# %% [markdown]
# ## 4 · What all keys share
#
# How much of a head's keys is their mean over all tokens?

# %%
print(f"keys:   their mean makes up {part['keys']:.2f} of their squared length")
print(f"values: {part['values']:.2f}")

# %% [markdown] tags=["predict"]
# **Predict.** From every key, in all heads, this mean is taken away, and it is kept nowhere. What happens to the loss?
#
# - **a** it stays the same
# - **b** it rises a little
# - **c** it rises much: most of each key is gone

# %%
guess_shared = None  # "a", "b" or "c"


# %%
def without_mean(query, key, value, attn_mask=None):
    key = key - key.mean(axis=-2, keepdims=True)  # (h, n, d_k)
    return al.scaled_dot_product_attention(query, key, value, attn_mask)


loss = [part["loss"][name]["alice"] for name in ("whole", "away")]
if speaker:
    loss[1] = speaker.using(attention=without_mean).loss(smollm.TEXTS["alice"])
print(f"loss on Alice: {loss[0]:.4f}, without what all keys share {loss[1]:.4f}")

# %%
predict.shared_by_all_keys(guess_shared)

# %% [markdown]
# A constant $c$ in all keys adds $q \cdot c$ to every score of a row, and a shift of a row changes no weight (notebook
# [[vectorized]]). Softmax cannot see it, so all stripes that are constant may go. Values are another matter, and so are keys before the rotation, because each position
# turns the constant into another vector:


# %%
def before(x, positions, base):
    if len(x) == 3:  # heads of keys; of queries there are nine
        x = x - x.mean(axis=-2, keepdims=True)
    return al.rope(x, positions, base)


def poorer(query, key, value, attn_mask=None):
    value = value - value.mean(axis=-2, keepdims=True)
    return al.scaled_dot_product_attention(query, key, value, attn_mask)


losses = part["loss"]
judged("keys, before the rotation", losses["away before the rotation"], rope=before)
judged("values", losses["values' share away"], attention=poorer)

# %% [markdown]
# Bars are weights with the keys that are kept, and ticks those with whole keys. **Try.** Take away what all keys share: the
# stripes go, and no weight moves. Bring it back, and go down to 2 bits: *had* looked at *she*, and where does it look now? Then
# give each feature a scale of its own.

# %% tags=["slide"] says="Here are the keys"
live.keys_map(K, Q, tokens=words, row=27)

# %% [markdown]
# The mean needs tokens that have not come yet. But any constant may go, and what the keys of the *prose* share takes away nearly
# as much:

# %%
other = part["keys, from the prose"]
print(f"of squared length: its own mean {part['keys']:.2f}, the prose's {other:.2f}")
three = ("a scale per token", "stripes away, per token", "keys per feature")
ways = [way for way in by_name if way[0] in three and way[1] != "8 bits"]
table_of(*ways)

# %% [markdown]
# In the second group of rows the constant of *another* text is gone. That costs no byte, and in 3 and 2
# bits all three texts are better off ([Zhang et al. 2024](../REFERENCES.md#zhang-2024) subtract a mean, too). But RoPE turns the
# constant: 280 tokens further on it takes away 0.46, in place of 0.61.
#
# A scale per feature needs a whole column. While a text grows, keys wait in **groups** of 32 tokens, each of which then gets
# scales of its own.

# %% [markdown] tags=["exercise"]
# ### Exercise [[in_groups]] · In groups
#
# **Goal.** Round keys as they come. *8 minutes, medium.*
#
# `my_in_groups(x, bits, size)`: in `x` $(..., n, d)$ each group of `size` tokens, from the first on, is rounded with a scale for
# each feature. Tokens that do not fill a group stay whole. `rounded(x, bits, axis)` is there.


# %%
def my_in_groups(x, bits, size):
    return ...  # your code


# %%
verdict = check.in_groups(my_in_groups)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_in_groups(x, bits, size):
#     out = x.copy()
#     for i in range(0, x.shape[-2] // size * size, size):
#         out[..., i : i + size, :] = rounded(x[..., i : i + size, :], bits, axis=-2)
#     return out
# ```
#
# </details>

# %% [markdown]
# ### As a text comes
#
# Here a text is read at once. So a query must see a key whole if its group was not complete at the time:

# %%
groups = my_in_groups if verdict.passed else in_groups


def in_turn(bits, size=32):
    def attention(query, key, value, attn_mask=None):
        n_q, n_k = query.shape[-2], key.shape[-2]
        now, end = np.arange(n_k - n_q, n_k), (np.arange(n_k) // size + 1) * size
        q, kept = query / np.sqrt(query.shape[-1]), groups(key, bits, size)
        late, early = (q @ np.swapaxes(k, -1, -2) for k in (key, kept))  # (h, n_q, n_k)
        scores = np.where(end <= now[:, None] + 1, early, late)
        scores = np.where(attn_mask, scores, -np.inf)
        return al.softmax(scores) @ rounded(value, bits)

    return attention


# %%
for bits in (4, 3, 2):
    point = by_name["keys per feature, groups", f"{bits} bits"]
    on, copy, way = point["on"], point["again"], in_turn(bits)
    judged(f"{bits} bits, groups of 32", on, again=copy, attention=way)

# %% [markdown]
# ## 5 · Fewer keys
#
# A window keeps the latest keys. Or each query chooses anew: the keys with the largest scores.

# %% [markdown] tags=["exercise"]
# ### Exercise [[best_keys]] · The best keys
#
# **Goal.** Let each query look at a few keys only. *10 minutes, medium.*
#
# `my_best_keys(query, key, value, attn_mask=None, best=8)`: attention, where each query attends only to the `best` allowed keys
# with the largest scores. Keys that tie with the last of them stay. Axes in front are heads. A query that may attend to no key
# gets 0.


# %%
def my_best_keys(query, key, value, attn_mask=None, best=8):
    return ...  # your code


# %%
verdict = check.best_keys(my_best_keys)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_best_keys(query, key, value, attn_mask=None, best=8):
#     scores = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
#     if attn_mask is not None:
#         scores = np.where(attn_mask, scores, -np.inf)
#     best = min(best, scores.shape[-1])
#     least = np.sort(scores, axis=-1)[..., -best, None]  # (..., n_q, 1)
#     return al.softmax(np.where(scores >= least, scores, -np.inf)) @ value
# ```
#
# </details>

# %% [markdown]
# ### Few keys count, and all are kept

# %%
chosen = my_best_keys if verdict.passed else best_keys
few = smollm.recorded("few_keys")


def eight(query, key, value, attn_mask=None):
    return chosen(query, key, value, attn_mask, best=8)


judged("the eight best keys", few["best"][3]["loss"], attention=eight)
rows = [(row["best"], *judges(row)) for row in few["best"]]
plot.table(["best keys", *JUDGES], rows, tint=["Alice"])

# %% [markdown]
# 32 of up to 208 keys cost about 0.1 or less, and find 85 % of the codes. But to choose them, each query computes all its scores,
# so every key is kept and read. So guess the scores first, and compute true ones for the winners alone:

# %%
read = {"16 of 64 features": "a quarter", "the latest": "none"}
rows = [("the true scores", "all", 1.0, *judges(few["best"][3]))]
for row in few["guessed"]:
    share = read.get(row["by"], "a sixth")  # 16 bytes and a scale of 4, of 128
    rows.append((row["by"], share, row["recall"], *judges(row)))
names = ["eight keys by", "read of all keys", "recall", *JUDGES]
plot.table(names, rows, tint=["recall"])

# %% [markdown]
# *Recall* is the share of the true eight among the guessed ones, on *Alice*. *16 of 64 features* takes those in which the query
# is largest ([Ribar et al. 2023](../REFERENCES.md#ribar-2023)). No guess is better, and it beats the true eight on *Alice* and the copy. A guess
# from keys in 2 bits is spoiled by the stripes.

# %% [markdown]
# ## 6 · Fewer layers
#
# A window of 16 tokens and the first one takes a twelfth of the bytes, and finds nothing. Suppose five of the 30 layers keep
# the whole text. Which five?

# %% [markdown] tags=["exercise"]
# ### Exercise [[layers]] · Which layers?
#
# **Goal.** Let the right judge choose. *8 minutes, medium.*
#
# `my_layers(narrowed, at_most=5)`: `narrowed(layers)` returns two losses, on the next word and on the digits of codes that are
# asked again, if these layers, from 1 to 30, see 16 tokens and the first alone. Return at most `at_most` layers that keep the
# whole text, so that finding suffers least if all others are narrowed.


# %%
def my_layers(narrowed, at_most=5):
    return ...  # your code


# %%
verdict = check.layers(my_layers)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_layers(narrowed, at_most=5):
#     def lost(layer):
#         return narrowed([layer])[1]  # what is found, with this layer narrowed
#
#     return sorted(range(1, 31), key=lost)[-at_most:]
# ```
#
# </details>

# %% [markdown]
# ### Break it · Three layers
#
# With the model, your function now chooses five of its layers.

# %%
sets = smollm.recorded("layers")["sets"]
(five,) = (row["whole"] for row in sets if row["name"] == "most missed by the codes")
if speaker and verdict.passed:
    chosen = my_layers(smollm.narrow_layers(speaker))
    five = sorted(int(layer) for layer in chosen)
print("these keep the whole text:", *five)
copying = sorted({layer for layer, _ in smollm.recorded("copying")["heads"]})
print("in these are the heads that copy (notebook [[it_speaks]]):", *copying)

# %% [markdown] tags=["predict"]
# **Predict.** Only layers 18, 19 and 24 see 16 tokens and the first, the other 27 keep the whole text. How many codes are found?
#
# - **a** nearly all, since 27 layers see everything
# - **b** about half
# - **c** none

# %%
guess_three = None  # "a", "b" or "c"

# %%
rows = []
for row in sets:
    which = ", ".join(map(str, row["whole"])) if len(row["whole"]) == 5 else ""
    alice, copy, share, _ = row["judged"]
    rows.append((row["name"], which, alice, copy, f"{share:.0%}"))
if speaker and five not in [row["whole"] for row in sets]:
    other = speaker.using(window=16, sink=1, whole=five)
    both = other.loss(smollm.TEXTS["alice"]), smollm.found_again(other)
    share = f"{smollm.codes_found(other)[0]:.0%}"
    rows.append(("yours", ", ".join(map(str, five)), *both, share))
names = ["the whole text in", "layers", "Alice", "second copy", "codes found"]
plot.table(names, rows, tint=["second copy"])

# %%
predict.three_narrowed(guess_three)

# %% [markdown]
# Three narrow layers of thirty, and no code is found; *Alice* costs 0.07. Narrow layer 19 alone, and 5 % are left; 18 and 24
# without it, and 80 % are. With 1, 2 and 3 *Alice* costs more, and nearly all is found. The five that the codes miss most keep 40
# % of them; the five that the next word misses most, nothing.
#
# [Gemma 3](../REFERENCES.md#heads-of-models) was trained with five narrow layers of six, so every sixth serves it.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Not all sets were tried: five that other texts had chosen (*by other copies*) lose less of the second copy, and find fewer
# codes. Layer 17, whose head 1 looks one token back, needs no whole text.
#
# </details>

# %% [markdown]
# ## 7 · Fewer numbers
#
# **Multi-head latent attention** (MLA, [DeepSeek 2024](../REFERENCES.md#deepseek-2024)) keeps one short vector for all heads, the
# **latent** $c = x W_{down}$. Every head makes its key $c\,W_{UK}$ and its value $c\,W_{UV}$ from it. Must a new query make them
# again for all tokens? It need not:
#
# $$q\,(c\,W_{UK})^T = (q\,W_{UK}^T)\,c^T \qquad\qquad w\,(c\,W_{UV}) = (w\,c)\,W_{UV}$$
#
# Here $w$ is a row of weights. The matrices are **absorbed** into query and output.

# %% [markdown] tags=["exercise"]
# ### Exercise [[latent_attention]] · A latent
#
# **Goal.** Attend to keys and values that are never made. *10 minutes, hard.*
#
# `my_latent_attention(query, latent, W_UK, W_UV, attn_mask=None)`: query $(..., n_q, d_k)$, latent $(n_k, r)$, $W_{UK}$ $(..., r,
# d_k)$, $W_{UV}$ $(..., r, d_v)$; axes in front are heads. Return what attention to `latent @ W_UK` and `latent @ W_UV` gives. No
# key and no value may be made.


# %%
def my_latent_attention(query, latent, W_UK, W_UV, attn_mask=None):
    return ...  # your code


# %%
verdict = check.latent_attention(my_latent_attention)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_latent_attention(query, latent, W_UK, W_UV, attn_mask=None):
#     inside = query @ np.swapaxes(W_UK, -1, -2)  # (..., n_q, r)
#     scores = inside @ latent.T / np.sqrt(query.shape[-1])  # d_k, not r
#     if attn_mask is not None:
#         scores = np.where(attn_mask, scores, -np.inf)
#     return al.softmax(scores) @ latent @ W_UV
# ```
#
# </details>

# %% [markdown]
# ### The rotation stays apart
#
# With RoPE a rotation stands between the query and $W_{UK}^T$, another one for each distance, so no single matrix absorbs both.
# What if the latent is rotated in place of the key?

# %%
rng = np.random.default_rng(4)
q, c = rng.normal(size=(6, 8)), rng.normal(size=(6, 12))  # queries; latents, r = 12
W = rng.normal(size=(12, 8)) / np.sqrt(12)
at = np.arange(6)
true = al.rope(q, at) @ al.rope(c @ W, at).T  # keys are made, then rotated
plain, absorbed = q @ (c @ W).T, (q @ W.T) @ c.T
print(f"without a rotation, absorbed: differs by {np.abs(absorbed - plain).max():.10f}")
wrong = al.rope(q @ W.T, at) @ al.rope(c, at).T
print(f"the latent rotated:           differs by {np.abs(wrong - true).max():.2f}")
rotated = smollm.recorded("latents")["rotated"]
print("this model with its latents rotated:", end="")
print("".join(f"  {text.capitalize()} {loss:.2f}" for text, loss in rotated.items()))

# %% [markdown]
# So DeepSeek's models keep a rotated key of 64 features beside the latent, shared by all heads, and a
# score is the sum of both parts. With 2 bytes a number ([DeepSeek-V3](../REFERENCES.md#deepseek-v3)):

# %%
heads, deep, latent, turned = 128, 61, 512, 64  # DeepSeek-V3
made = deep * heads * (128 + turned + 128) * 2  # a key of 128 + 64, a value of 128
print(f"DeepSeek-V3, keys and values of all heads: {made:9,} bytes a token")
print(f"DeepSeek-V3, its latents:                  {deep * (latent + turned) * 2:9,}")
print(f"Llama 3 8B, 8 heads of keys and values:    {2 * 32 * 8 * 128 * 2:9,}")

# %% [markdown]
# Absorbing pays for few queries. Each then meets latents of 512 numbers in place of keys and values of 128; with many queries
# that costs more than it saves. Multiplications in a head, over 4,096 tokens:

# %%
for n in (1, 256, 4096):  # queries
    absorbed = n * latent * 2 * 128 + n * 4096 * (2 * latent + turned)
    anew = 4096 * latent * 2 * 128 + n * 4096 * (2 * 128 + turned)
    print(
        f"{n:4} queries: absorbed, {absorbed / anew:.2g} times what making them costs"
    )

# %% [markdown] tags=["predict"]
# Our model was trained without a latent. But of the 384 features that keys and values of a layer have together, one can keep 256
# directions, before the rotation: those in which the *matrices* $W_K$ and $W_V$ are largest, or those in which keys and values of
# *other texts* are. **Predict.** Which costs less on a new text?
#
# - **a** both the same: keys and values are made by these matrices
# - **b** the directions of other texts
# - **c** those of the matrices, since they hold for every text

# %%
guess_directions = None  # "a", "b" or "c"

# %%
ways = [way for way in by_name if "latent" in way[0]]
table_of(*ways)

# %%
predict.whose_directions(guess_directions)

# %% [markdown]
# Of other texts 192 directions beat 256 of the matrices before both judges. A model that is trained with a latent learns which directions to keep.

# %% [markdown]
# ## 8 · What does a byte buy?
#
# Each point is one way: further left it keeps less, further down it loses less. Click a point, and read what the model writes.
# The band joins the ways that no other beats in both. **Try.** Which will leave the band if the other judge speaks? Guess, then
# move *judge* to *found again*.

# %% jupyter={"source_hidden": true}
MINE_TOO = []  # points of yours: price(...) below makes one


def price(name, size, **functions):
    """Return a point: what a way of yours costs and finds, and what it writes."""
    other = speaker.using(**functions)
    loss, text = other.loss(smollm.TEXTS["alice"]), other.write(smollm.STORY, 32)
    own = {"family": "yours", "name": name, "bytes": size, "own": True}
    again, (codes, _) = smollm.found_again(other), smollm.codes_found(other)
    return own | {"loss": loss, "text": text, "again": again, "codes": codes}


# %% tags=["slide"] says="Each point is one way"
live.price([*points, *MINE_TOO])

# %% [markdown]
# Fewer bits buy most for both judges: keys in groups, in 4 bits, take less than a third of the bytes, cost 0.04 or less on each
# text, and find 88 % of the codes.
#
# Windows of 16 and 32 tokens with the first one begin both bands, and find no code. In the second judge's band,
# groups in 4 bits are missing: stripes away in 3 bits read the copy a little better, and find half as many codes.
# Latents of other texts, at rank 192, lose 0.47 on *Alice*, and still find 72 %. Five layers with the whole text
# find 40 % for 5,409 bytes, groups in 3 bits 65 % for 6,065.
#
# With the model, add a point of your own:

# %%
if speaker:

    def mixed(query, key, value, attn_mask=None):
        key, value = rounded(key, 3, axis=-2), rounded(value, 4)
        return al.scaled_dot_product_attention(query, key, value, attn_mask)

    # bytes_kept(tokens, features, bits, axis) is of the keys, or values, of one head
    size = 90 * (bytes_kept(208, 64, 3, axis=-2) + bytes_kept(208, 64, 4))
    mine = price("keys in 3 bits, values in 4", size, attention=mixed)
    print(f"{mine['bytes']:.0f} bytes, loss {mine['loss']:.2f}")  # add it above

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Bytes are those of *Alice* with all its 208 tokens, and two numbers of 16 bits for each scale; in a longer text windows and
# groups cost fewer. Second copies differ by chance, too: keys without stripes, in 3 bits, read this one as the whole does, and
# find half as many codes.  Rounding is simulated. What the next word says of 3 bits, windows and latents holds on a German text
# and on JSON; on nine lines of Dante the constant of the prose made 3 bits worse. On five other lists latents at rank 192 find
# half as many codes as the whole. Larger models may differ.
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# With the model, join two ways: `speaker.using(attention=in_bits(4), window=64, sink=1)`. Which loss do you expect on
# `smollm.TEXTS["alice"]`, and how many bytes?
#
# **Remember.** The next word hardly sees whether anything is found again, so judge a saving twice. Softmax does not see what all
# keys share. In few bits keys want a scale per feature, values one per token. A window finds nothing outside. A few layers find,
# and need the whole text. A latent is one vector for all heads.
#
# All of this grows with the text, or falls out of a window. What does neither? Next: [[[fixed_state]] a state of fixed
# size]([[fixed_state.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# By how much scales in 16 bits move a loss of section 3:

# %%
for bits in (4, 3, 2):
    off = [
        abs(row["float16"][text] - row["loss"][text])
        for row in scales
        if row["bits"] == bits
        for text in row["loss"]
    ]
    print(f"{bits} bits: mean {np.mean(off):.2f}, at most {max(off):.2f}")

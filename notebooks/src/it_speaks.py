# %% [markdown]
# # [[it_speaks]] · It speaks
#
# **Question.** Does a real language model speak through the functions that you wrote, and what happens if one of them is
# wrong? *30 minutes, and 35 for exercises. It needs no torch.*

# %% jupyter={"source_hidden": true}
from textwrap import fill

import numpy as np

import attnlib as al
from attncourse import check, mine, predict, smollm
from attncourse.lessons.it_speaks import PATIENTS
from attncourse.views import block, fetch_button, head_map
from attnlib import live, plot

# %% [markdown]
# The next cell loads what you kept in [[masks]], [[multi_head]], [[one_token_at_a_time]] and [[todays_head]]. Where you kept nothing, or skipped [[one_token_at_a_time]] and [[todays_head]], ours stand in. Then
# it looks for the model that filled the blank in notebook [[start_here]]. The model is a download of 93 MB, and reading it takes
# seconds. If you run this in a browser, a button loads it. Then run the cell again, and those below.

# %% tags=["nbval-ignore-output"]
functions = mine.load_all(smollm.FUNCTIONS)
speaker = None if smollm.missing() else smollm.load().using(**functions)
print(smollm.missing() or "The model is here. It speaks through the functions above.")
fetch_button.fetch_button()  # in a browser without the model

# %% [markdown]
# In a running notebook, type a sentence that stops before its last word, and click words and heads. Which word comes next, and
# where does it come from? The slider divides by too little or too much. (Without the model two sentences are stored: that of
# notebook [[start_here]], and its names exchanged.)

# %% jupyter={"source_hidden": true}
yours = live.ribbons(smollm.sentences(speaker), smollm.BLANK)
yours

# %% [markdown]
# What you see is one step of writing. To write, the model appends the likeliest word and starts again, as in exercise [[write]]. It is the
# model of notebook [[model_of_your_own]], 1,200 times as large:

# %%
# Stored results, for readers without the model.
healthy = smollm.recorded("mistakes")["none"]
text = speaker.write(smollm.STORY, 32) if speaker else healthy["writes"]
print(fill(smollm.STORY + text, 68))

# %% [markdown]
# Each word has gone through 270 heads. With the model installed, the functions above compute every mask, softmax and weighted
# sum on the way; without it you read what it wrote.
#
# With a **temperature** $T$ above 0, the next word is drawn, and its probability is softmax of the logits divided by $T$. This
# is the divisor of attention once more, at the end of the model: small is sharp, large is pale.

# %%
for T, text in smollm.recorded("warmer"):
    if speaker:
        text = speaker.write(smollm.STORY, 20, temperature=T, seed=1)
    print(fill(f"T = {T}: …{text} …", 68))

# %% [markdown]
# At 2 the words hardly fit any more. Now ask the model about itself.

# %%
said = smollm.recorded("sayings")
question = smollm.chat(said["question"])
answer = speaker.write(question, 64) if speaker else said["answer"]
print(said["question"], "\n")
print("\n".join(fill(line, 68) for line in answer.splitlines()))

# %% [markdown]
# Every sentence is fluent, and none is about our transformers. The model was trained to guess the next word. Nothing checks
# whether the words are true.

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[todays_head]])* RoPE rotates each query and each key by an angle that grows with its position. What does a score
# then depend on?
#
# - **a** on the positions of query, key and value
# - **b** on the position of the query
# - **c** on how far apart query and key are
#
# **2.** *(notebook [[one_token_at_a_time]])* What does a model keep of the tokens that it has read?
#
# - **a** keys and values
# - **b** queries, keys and weights
# - **c** the outputs of each layer
#
# **3.** *(notebook [[scaling]])* A model was trained with scores divided by $\sqrt{64}$. Now nobody divides them. What becomes of a row of
# weights?
#
# - **a** one key takes nearly everything
# - **b** all keys get nearly the same
# - **c** another key gets the largest weight

# %%
predict.before_it_speaks(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## What is in the box
#
# The file holds 272 arrays: a table with one vector for each token, nine arrays in each of 30 **blocks**, and a last norm.

# %% jupyter={"source_hidden": true}
_ = block.draw(576, norm_first=True)

# %% [markdown]
# The thick line is the **residual stream**: each vector as it goes on from block to block. Attention adds what a token takes
# from others. The feed-forward network works on each token alone. A norm in front brings each vector to a common length.

# %%
d_model, d_k, heads, kv_heads, layers = 576, 64, 9, 3, 30
one_layer = 2 * d_model * heads * d_k + 2 * d_model * kv_heads * d_k  # Q, O; K, V
parts = {
    "attention": layers * one_layer,
    "feed-forward": layers * 3 * d_model * 1536,  # 3 matrices: one scales another
}
parts["table of tokens"] = 49152 * d_model
parts["norms"] = (2 * layers + 1) * d_model
for name, numbers in parts.items():
    print(f"{name:16}{numbers:12,}  {numbers / sum(parts.values()):4.0%}")
print(f"{'all':16}{sum(parts.values()):12,}")

# %% [markdown]
# A fifth of the model is attention. Nine heads of queries share three heads of keys and values, as in notebook [[one_token_at_a_time]].
#
# **One surprise.** The file keeps the columns of $W_Q$ and $W_K$ in another order. Your rotation wants the two features of a
# pair 32 apart, and the file has them side by side. All shapes fit, and nothing complains. This is what the model writes if
# you overlook that. (We reorder the columns. To call your `rope` with `pairing="neighbours"` would do as well.)

# %%
told = smollm.recorded("mistakes")["W_Q and W_K in the file's order"]
print(smollm.STORY + told["writes"].rstrip())

# %% [markdown] tags=["exercise"]
# ### Exercise [[to_halves]] · Back to halves
#
# **Goal.** Bring the columns of $W_Q$ into the order that the rotation wants. *8 minutes, medium.*
#
# `my_halves(W, num_heads)`: `W` is $(d_{in}, h \cdot d_k)$. In each head the file has the columns $a_0 b_0 a_1 b_1 \dots$,
# where $a_c$ and $b_c$ are the two features of pair $c$. Return an array of the same shape with $a_0 a_1 \dots b_0 b_1 \dots$
# in each head.


# %%
def my_halves(W, num_heads):
    return ...  # your code


# %%
verdict = check.to_halves(my_halves)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_halves(W, num_heads):
#     pairs = W.reshape(len(W), num_heads, -1, 2)  # (d_in, h, d_k / 2, 2)
#     return np.swapaxes(pairs, -1, -2).reshape(W.shape)
# ```
#
# </details>

# %% [markdown]
# ## Is it the same model?
#
# Fluent text is a weak test. So a test of this series compares the logits of all 49,152 next words with those of the
# `transformers` library, on the same weights: none differs by 0.0001 or more, and every most likely word is the same. The cache
# is tested the same way, with *Alice* in chunks.

# %%
chunks = smollm.recorded("chunks")
print(f"{chunks['tokens']} tokens; the logits have a spread of {chunks['spread']:.1f}")
for size in ("1", "7", "50"):
    print(f"in chunks of {size:>2}: logits differ by at most {chunks[size]:.4f}")

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# The file's weights have about four bits each, the published ones sixteen, and their logits differ. What is compared here is the
# computation. The largest difference from `transformers` was 0.00006 on three texts.
#
# </details>

# %% [markdown] tags=["predict"]
# ## Break it
#
# Now hand in wrong functions. Each of these mistakes leaves all shapes as they were. The **loss** says how surprised
# the model is at the next token of a real text: $-\ln p$ of that token, averaged over the text. Lower is better.
#
# **Predict.** Take away the causal mask, so that each token sees those after it. What happens to the loss on the beginning of
# *Alice in Wonderland*?
#
# - **a** it rises, because the mask is missing
# - **b** it falls
# - **c** it stays the same

# %%
guess_in_sight = None  # "a", "b" or "c"


# %%
def no_mask(query, key, value, attn_mask=None):
    return al.scaled_dot_product_attention(query, key, value)


told = smollm.recorded("mistakes")
before, after = (told[name]["loss"]["alice"] for name in ("none", "no causal mask"))
if speaker:
    after = speaker.using(attention=no_mask).loss(smollm.TEXTS["alice"])
print(f"loss on Alice: {before:.2f}, without the mask {after:.2f}")

# %%
predict.next_word_in_sight(guess_in_sight)

# %% [markdown]
# Here are more mistakes, with what each writes after *Once upon a time, a small robot*. *Neighbours paired* rotates features 0
# and 1, 2 and 3, although the columns now stand in halves. *The past is not looked at* is a mistake in the cache, so its loss
# is measured token by token.

# %% jupyter={"source_hidden": true}
SHOWN = ["none", "no causal mask", "no scale", "1/sqrt(576), the whole width"]
SHOWN += ["heads cut by reshape alone", "only the queries rotated"]
SHOWN += ["rotated the other way", "neighbours paired", "values rotated, too"]
SHOWN += ["the past is not looked at"]
rows = []
for name in SHOWN:
    loss, text = told[name]["loss"], " ".join(told[name]["writes"].split())
    rows.append((name, loss["alice"], loss["code"], text[:38] + "…"))
plot.table(["mistake", "Alice", "Python code", "it writes"], rows, tint=["Alice"])

# %% [markdown]
# Nobody trained this model to look ahead: it learned behind a mask, unlike those that cheated in notebook [[model_of_your_own]]. But
# attention takes from whatever key fits, and now the next word is among the keys. When it writes, there is no next word. And a
# prompt read in one pass has seen what follows each word: its keys and values are not those that the model knows, and the text
# is lost. Read token by token, the prompt gives the healthy text. So a low loss alone proves nothing. Nor does fluent text: with
# values rotated, too, it begins fluently, at a loss of 5.00.
#
# The worst row is *heads cut by reshape alone*, 10.21 and 10.96. A model that gave all 49,152 tokens the same probability
# would have $\ln 49152 = 10.8$.
#
# On the Python code the loss without the mask rises. Is it the first token, on which many heads lean, and which normally sees
# nothing but itself? Let it see itself alone, and all others the whole text:


# %%
def first_alone(query, key, value, attn_mask=None):
    mask = np.ones_like(attn_mask)
    mask[0] = attn_mask[0]
    return al.scaled_dot_product_attention(query, key, value, mask)


rows = [(name, *losses) for name, losses in smollm.recorded("future_in_sight").items()]
if speaker:
    seeing = speaker.using(attention=first_alone)
    rows = [(*row[:3], seeing.loss(smollm.MORE[row[0]])) for row in rows]
names = ["text", "with the mask", "without", "without, first alone"]
plot.table(names, rows, tint=["without", "without, first alone"])

# %% [markdown]
# In the Italian *market* it is: 7.93 becomes 3.70, below the healthy 5.07. In the Python code it is not, and we do not know what
# is. In the other five, which fell without the mask, part of the fall is lost.

# %% [markdown] tags=["predict"]
# **Predict.** Which of these mistakes would you *not* notice in a text of 32 tokens?
#
# - **a** no rotary positions
# - **b** positions that begin at 0 again with each new token
# - **c** the base of the rotation is 10,000, and it should be 100,000

# %%
guess_unseen = None  # "a", "b" or "c"

# %%
for name in ("no rotary positions", "positions restart with the cache", "base 10,000"):
    print(f"{name}, loss {told[name]['loss']['alice']:.2f}:")
    print("   " + " ".join(told[name]["writes"].split())[:66])

# %%
predict.unseen_mistake(guess_unseen)

# %% [markdown]
# ## Three patients
#
# Here are three sick models, without their names. The blank is that of notebook [[start_here]], where a healthy model says Mary, 0.92. It is
# read in one pass, and the text is written with the cache. Where a mistake is in the cache alone, the loss is measured so, too.

# %%
for name, secret in PATIENTS.items():
    patient = smollm.recorded("mistakes")[secret]
    blank, p = patient["next"]
    print(f"{name}: loss on Alice {patient['loss']['alice']:.1f}")
    print(f"   the blank: {blank!r} {p:.2f}")
    print("   it writes:", " ".join(patient["writes"].split())[:54])

# %% [markdown] tags=["exercise"]
# ### Exercise [[three_patients]] · Three patients
#
# **Goal.** Find out what each of them has. *8 minutes, hard.*
#
# Each has one of five mistakes, two of which you have met: `grouped heads tiled`, `no scale`, `positions restart with the
# cache`, `upper-left mask with the cache`, `window of 8`. Hand in a dictionary such as `{"A": "no scale", "B": "no scale",
# "C": "no scale"}`.

# %%
my_diagnoses = None  # a dictionary

# %%
verdict = check.three_patients(my_diagnoses)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# # A reads the blank rightly, so only its cache is sick; and each new token sees only the first word.
# # B has words that fit their neighbours. C is worse than a guess.
# my_diagnoses = {
#     "A": "upper-left mask with the cache",
#     "B": "window of 8",
#     "C": "grouped heads tiled",
# }
# ```
#
# </details>

# %% [markdown]
# ## 270 heads
#
# Here is the grid again. Choose a measure, and in a running notebook click a head to see its map of the blank. *First token* is
# the mean weight that later tokens of *Alice* put on the first one. *Token before* is the mean weight, again on *Alice*, on the
# token just before. *Copying* comes below.

# %% jupyter={"source_hidden": true}
words, maps = smollm.every_map()
copying, sinks = smollm.recorded("copying"), smollm.recorded("sinks")
tables = {"first token": sinks["share"], "token before": copying["previous"]}
tables["copying"] = copying["copy"]
causal = al.causal_mask(len(words))
head_map.head_map(
    tables, maps, [word.strip() for word in words], attn_mask=causal, layer=17, head=1
)

# %%
print(f"mean weight on the first token: {sinks['mean']:.2f}")
print(f"heads with more than half of their weight there: {sinks['above 0.5']} of 270")
for layer in (8, 11, 12, 13, 24):
    mean, length = sinks["by layer"][layer - 1], sinks["length"][layer - 1]
    told_length = f"after it the first vector has {length:.0f} times the median length"
    print(f"layer {layer:2}: {mean:.2f}; {told_length}")

# %% [markdown]
# Many heads **park** on the first token, as heads of MiniLM parked on [CLS] in notebook [[a_real_model]]. Its vector becomes very long
# in layer 12, and from the next layer on the mean weight there is 0.3 and more. Does the model need that token? Let each token
# see a window of near keys only:

# %%
print(f"all keys: loss {healthy['loss']['alice']:.2f}")
kept = ("window", "nothing", "first", "silent")
rows = [
    [row[name] for name in kept] for row in smollm.recorded("windows_apart")["alice"]
]
plot.table(
    ["window", "nothing else", "and the first token", "first token, silent"], rows
)

# %% [markdown]
# One more key brings the loss from 6.90 to 4.22. Is it a place for weight, as [Xiao et al. 2023](../REFERENCES.md#xiao-2023)
# say, or does its value count? *Silent* keeps its score and sets its value to 0 where the window has passed it: about half of the gain is
# the place, and half comes with the value. On six other texts the place is 28 to 86 % (*Appendix* has two). The second token in its
# place, or one more near one, brings 0.4 at most here, three more first ones next to nothing.

# %% [markdown] tags=["exercise"]
# ### Exercise [[kept_keys]] · Keep the first
#
# **Goal.** Write the mask of that experiment. *6 minutes, medium.*
#
# `my_kept(n_q, n_k, window, sink)`: the queries are the last $n_q$ of $n_k$ tokens. Each sees itself, the $window - 1$ tokens
# before it, and the first `sink` tokens of the text, but no token after itself. (The sink of notebook [[todays_head]] was a score without a
# token.) Return $(n_q, n_k)$ of bool, True = may attend.


# %%
def my_kept(n_q, n_k, window, sink):
    return ...  # your code


# %%
verdict = check.kept_keys(my_kept)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_kept(n_q, n_k, window, sink):
#     back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k)  # (n_q, n_k)
#     return (back >= 0) & ((back < window) | (np.arange(n_k) < sink))
# ```
#
# </details>

# %% [markdown]
# ## The circuit again
#
# In notebook [[train_and_look]] two heads learned to copy together. The first tells each token what stood before it. The second looks for the
# token after the last *A*, wherever *A* is read again. Are they in this model, too?
#
# Unlike in [[train_and_look]] the distance is fixed: 40 random tokens, twice in a row. Only the first copy can tell what comes in the second. *Copying* measures how much the second copy looks at the token that followed last time.

# %%
for (layer, head), (least, most) in zip(
    copying["heads"][:4], copying["least and most"]
):
    print(f"L{layer}H{head}: {least:.2f} to {most:.2f} in eight draws")
before = copying["previous heads"][0]
print(f"most weight on the token before: L{before[0]}H{before[1]}")
first, second = np.mean(copying["losses"], axis=0)
print(f"loss on the first copy {first:.1f}, on the second {second:.1f}")

# %% [markdown]
# They are there. On the first copy the model is worse than a guess: it has learned to expect words that fit together. Looking is not
# yet causing, so take the heads away: what they add is set to 0.


# %% jupyter={"source_hidden": true}
def row_of(name, runs):
    """Return a row: over the draws of one run, or over the means of several."""
    losses = [np.mean(run["second copy"]) for run in runs]
    spread = runs[0]["second copy"] if len(runs) == 1 else losses
    alice = np.mean([run["alice"] for run in runs])
    taken = len(runs[0]["heads"])
    return name, taken, np.mean(losses), min(spread), max(spread), alice


runs = smollm.recorded("without_heads")
of_kind = {
    kind: [run for run in runs if run["kind"] == kind] for kind in ("copy", "drawn")
}

# %% jupyter={"source_hidden": true}
rows = [row_of("none", runs[:1])]
rows += [row_of("copying", [run]) for run in of_kind["copy"]]
rows += [row_of("L17H1", [run for run in runs if run["heads"] == [[17, 1]]])]
for k in (1, 2, 4, 8):
    drawn = [run for run in of_kind["drawn"] if len(run["heads"]) == k]
    rows.append(row_of("five draws of others", drawn))
names = ["taken away", "heads", "second copy", "least", "most", "Alice"]
plot.table(names, rows, tint=["second copy"])

# %% [markdown]
# Without eight of 270 heads the model hardly copies any more, and it reads *Alice* almost as well as before. Without the
# one head L17H1 the loss on the second copy rises to 8.66, higher than without the two best copying heads. So both kinds of heads
# take part in copying, as in [[train_and_look]]. On *Alice* the copying heads have little to copy, and there they park: all eight put 0.79 or
# more on the first token.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# The range of a group is that of eight draws of tokens; the range of *five draws* is that of five groups of heads. Random heads
# are no harmless control: L2H4 alone brings the second copy to 5.49, and *Alice* from 3.32 to 3.64. Three other heads that look back
# cost little when each is taken away alone.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[looks_back]] · A measure of looking back
#
# **Goal.** Write the measure that found L17H1. *5 minutes, easy.*
#
# `my_looks_back(weights)`: of a causal map $(n, n)$, the mean weight that queries give to the token before them. Leave out the
# first query, which has no token before it, and the second: the token before it is the first of the text, where heads park.


# %%
def my_looks_back(weights):
    return ...  # your code


# %%
verdict = check.looks_back(my_looks_back)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_looks_back(weights):
#     return np.diagonal(weights, -1)[1:].mean()
# ```
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[waking_prompt]] · Wake them
#
# **Goal.** Write a prompt on which the copying heads do *not* park. *8 minutes, medium.*
#
# `my_prompt` is a text of at most 200 tokens. `smollm.parking` measures how much weight the eight heads put on places to park:
# on the first token, and on any other token whose vector is about as long. On *Alice* the mean over all tokens but the first
# is 0.87. Bring it below 0.5. Without the model print `smollm.TRIED` and choose one of its prompts.


# %%
my_prompt = None  # a text, in quotes
my_parking = smollm.parking(my_prompt, speaker)

# %%
verdict = check.waking_prompt(my_parking)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_prompt = " ".join(["seven tiger cloud paper green window salt engine"] * 4)
# my_parking = smollm.parking(my_prompt, speaker)
# ```
#
# </details>

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# The copying heads do not wake whenever a token has been read before: on six names, read six times, they park 0.61. Nor need any
# token stand twice. Thirteen words in three spellings, such as *river*, *River* and *myRiver*, share no token, and there the heads
# park 0.49. The first token alone would mislead you. If you count from *one* to *ten*, it gets 0.42, but *two* is a second place to
# park. *Appendix* has all ten prompts.
#
# </details>

# %% [markdown]
# ## Too sharp, right, too pale
#
# The slider of notebook [[start_here]] changes the divisor in all 270 heads. Here it changes what the model writes, and its loss on
# *Alice*, on a page of prose and on Python code. At which $d_k$ is the loss smallest? Move it to both ends.

# %% jupyter={"source_hidden": true}
view = live.speaking(smollm.stops("writing"))
view

# %%
print("       loss    right name in   largest  entropy")
print(" d_k   Alice     80 blanks     weight   (nats)")
for stop, blank in zip(smollm.recorded("sharpness"), smollm.recorded("blanks")):
    print(
        f"{stop['d_k']:4}   {stop['loss']['alice']:5.2f}   {blank['right']:8.0%}",
        end="",
    )
    print(f"       {stop['largest']:9.2f}   {stop['entropy']:6.2f}")

# %% [markdown]
# On *Alice* and on the code the loss is smallest at 64, which is the model's own $d_k$; on the prose at 80, the next stop. At
# small $d_k$ one key takes nearly everything, at large $d_k$ all keys get nearly the same, and at both ends the model writes
# nonsense. The blanks are 80 sentences like that of Mary and John. A blank counts as right if the right name is likelier than
# the other: at small $d_k$ that is little better than a coin, at large $d_k$ worse.

# %% [markdown]
# <details><summary><b>How sure is this?</b></summary>
#
# Between 48 and 80 the losses differ little. The model was trained at 64 alone, so the curve shows what it is used to, not which
# $d_k$ is best for training. Head L24H1 of notebook [[start_here]] gives the right name the most weight of all heads, on average over the
# 80 sentences. Without it the right name still wins in 96 % of them, and its mean probability falls from 0.49 to 0.36; without the
# five heads that look at it most in 90 %, 0.25. (Three draws of five other heads: 0.40 to 0.44.) Without L25H5, second in that list,
# the right name is *likelier*, 0.58.
#
# </details>

# %% [markdown] tags=["remember"]
# ## Try it
#
# These need the model: `make real-decoder`, or, in a browser, the button at the top.
#
# 1. In a running notebook, type a sentence into the first picture. Which head looks from its last word to the word that
#    matters?
# 2. `speaker.using(attention=...)` takes any function. Write one with a mistake of your own, guess the loss, and measure it:
#    `speaker.using(attention=wrong).loss(smollm.TEXTS["alice"])`.
#
# **Remember.** A language model is a table of vectors and a stack of blocks, and in each block attention is the only step in
# which tokens meet. The functions that you wrote are those of a real model. Fluent is not right, a low loss is not right
# either, and a head that looks at a word need not be the one that counts. Trust what you have compared.
#
# Next: [[[long_texts]], long texts]([[long_texts.ipynb]]).

# %% [markdown]
# ## Appendix: checks
#
# The prompts of [[waking_prompt]]. *Read before* is the share of tokens that stand earlier in the prompt, *copied* the weight on the token
# that followed the same token earlier. *Parked* counts all places to park.

# %% jupyter={"source_hidden": true}
rows = []
for prompt, found in smollm.recorded("parked_prompts").items():
    tokens = found["tokens"]
    again = np.mean([token in tokens[:i] for i, token in enumerate(tokens)][1:])
    means = [np.mean(found[name][1:]) for name in ("first", "parked", "copied")]
    rows.append((prompt[:18] + "…", len(tokens), again, *means))
names = ["prompt", "tokens", "read before", "first token", "parked", "copied"]
plot.table(names, rows, tint=["parked"])

# %% [markdown]
# Of what the first token brings to a window, the share that is left when its value is 0:

# %%
for name, rows in smollm.recorded("windows_apart").items():
    for row in rows:
        place, gain = row["nothing"] - row["silent"], row["nothing"] - row["first"]
        print(f"{name:6} window {row['window']:2}: {place / gain:.2f}")

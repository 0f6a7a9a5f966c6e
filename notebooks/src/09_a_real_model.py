# %% [markdown]
# # 09 · A real model in your own module
#
# **Question.** Is the module of notebook 06 the real thing? Put the weights of a trained language model into it and
# compare. *45 minutes. This notebook needs torch.*
#
# The model is **all-MiniLM-L6-v2** ([source](../REFERENCES.md#minilm)): 6 layers, 12 heads, $d_{model} = 384$, so $d_k = 32$. It turns a sentence into one
# vector; sentences that mean similar things get similar vectors. Its weights are a separate download:
#
#     make real-model
#
# installs them, checked by their sha256 sum (without `make`: the command is in the first message below). The notebook
# also runs without them. Then it shows stored results of the same cells.

# %%
import time

import ipywidgets as widgets
import numpy as np
import psutil
import torch
from IPython.display import display
from torch import nn

import attnlib as al
from attnlib import live, plot
from attnlib.course import real_model
from attnlib.torch_layers import MultiHeadAttention

_ = torch.set_num_threads(1)

# %% tags=["nbval-ignore-output"]
folder = real_model.find()  # None where it is not installed
installed = "The model is installed. Everything below is computed in this session."
print(real_model.missing() or installed)

# %% [markdown]
# `measured(name, function)` calls the function if the model is here, and otherwise replays the result of that name from a
# small file. If a fresh result agrees with the stored one to 0.002, the stored digits are shown, so that the last digit is
# the same on every processor. If it does not agree, you see the fresh one.

# %%
results = real_model.stored("minilm_results")
measured = real_model.Measured(results, available=folder is not None)
reference = real_model.stored("minilm_reference")
print(*reference["origin"].split(", "), sep="\n")
print(len(reference["sentences"]), "sentences, the first:", reference["sentences"][0])

# %% [markdown]
# ## 1 · The model in 50 lines
#
# One layer is attention, then a small network for each token. Both add their output to their input, and a LayerNorm
# follows. The attention is `attnlib`'s `MultiHeadAttention`, unchanged. (`Attention` is an argument because a wrong one
# will take its place later.)


# %%
class Layer(nn.Module):
    def __init__(self, Attention):
        super().__init__()
        self.attention = Attention(384, 12)
        self.up, self.down = nn.Linear(384, 1536), nn.Linear(1536, 384)
        self.norm_1, self.norm_2 = (nn.LayerNorm(384, eps=1e-12) for _ in range(2))

    def forward(self, x, mask):
        # (b, n, 384), (b, 12, n, n)
        output, weights = self.attention(x, attn_mask=mask)
        x = self.norm_1(x + output)
        return self.norm_2(x + self.down(nn.functional.gelu(self.up(x)))), weights


# %% [markdown]
# A token's first vector is the sum of three learned ones: word piece, position, segment (always 0 here). Padding has
# number 0. The mask is $(b, 1, n_k)$: every query of a sentence may attend to its real tokens.


# %%
class MiniLM(nn.Module):
    def __init__(self, Attention=MultiHeadAttention):
        super().__init__()
        self.word, self.position = nn.Embedding(30522, 384), nn.Embedding(512, 384)
        self.segment = nn.Embedding(2, 384)
        self.norm = nn.LayerNorm(384, eps=1e-12)
        self.layers = nn.ModuleList(Layer(Attention) for _ in range(6))

    def embed(self, ids):  # (b, n) -> (b, n, 384)
        x = self.word(ids) + self.position.weight[: ids.shape[1]]
        return self.norm(x + self.segment.weight[0])

    def forward(self, ids):
        mask, maps = (ids != 0)[:, None, :], []  # (b, 1, n), True = may attend
        x = self.embed(ids)
        for layer in self.layers:
            x, weights = layer(x, mask)
            maps.append(weights)
        return x, torch.stack(maps)  # (b, n, 384), (6, b, 12, n, n)


# %% [markdown]
# The published weights carry other names. This table translates them:

# %%
NAMES = {"embeddings.word_embeddings": "word"}
NAMES |= {"embeddings.position_embeddings": "position"}
NAMES |= {"embeddings.token_type_embeddings": "segment"}
NAMES |= {"embeddings.LayerNorm": "norm", "encoder.layer": "layers"}
for ours, theirs in zip("QKV", ("query", "key", "value")):
    NAMES[f"attention.self.{theirs}"] = f"attention.W_{ours}"
NAMES |= {"attention.output.dense": "attention.W_O"}
NAMES |= {"attention.output.LayerNorm": "norm_1", "intermediate.dense": "up"}
NAMES |= {"output.dense": "down", "output.LayerNorm": "norm_2"}

# %% [markdown]
# `load_weights` checks the sum of the file and reads it with the safetensors library. `load_state_dict` demands that every
# weight of our model is there and has the right shape. Three entries of the file are not used: the position numbers, and
# a last layer (`pooler`) that this model does not need for its sentence vector.


# %%
def load(model):
    state = {}
    for name, weight in real_model.load_weights(folder / "model.safetensors").items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        if not name.startswith(("pooler", "embeddings")):
            state[name] = weight
    model.load_state_dict(state)
    return model.eval().requires_grad_(False)


# %%
start = time.perf_counter()
if folder is not None:
    model, pieces = load(MiniLM()), real_model.WordPiece.from_file(folder / "vocab.txt")
load_seconds = time.perf_counter() - start

# %% [markdown]
# ## 2 · Words become numbers
#
# The model knows 30,522 **word pieces**. What is not a whole piece is cut: `##` marks a piece that continues a word. Every
# sentence starts with `[CLS]` and ends with `[SEP]`.


# %%
def tokens_of(text):
    return pieces.tokens(pieces.encode(text))


for text in (reference["sentences"][0], "Unbelievable peakiness!"):
    print(*measured(f"tokens: {text}", tokens_of, text))

# %% [markdown]
# ## 3 · Is it the same model?
#
# The sentence vector is the mean of the last layer over the real tokens, divided by its length. All sentences go in as one
# batch; shorter ones are padded with 0. **Predict.** By how much does a vector differ from the one that the `transformers`
# library computes, sentence by sentence?


# %%
def sentence_vectors(model, texts):
    ids = [torch.tensor(pieces.encode(text)) for text in texts]
    ids = nn.utils.rnn.pad_sequence(ids, batch_first=True)  # (b, n), 0 = padding
    hidden = model(ids)[0]  # (b, n, 384)
    real = (ids != 0)[..., None]  # (b, n, 1)
    vectors = (hidden * real).sum(1) / real.sum(1)
    return vectors / vectors.norm(dim=-1, keepdim=True)  # (b, 384)


# %%
true_vectors = torch.tensor(reference["vectors"])  # (12, 384), from transformers


def equal_to(tolerance):
    difference = sentence_vectors(model, reference["sentences"]) - true_vectors
    return difference.abs().max().item() < tolerance


print("12 sentence vectors equal to 1e-4:", measured("same to 1e-4", equal_to, 1e-4))
print("                         to 1e-6:", measured("same to 1e-6", equal_to, 1e-6))

# %% [markdown]
# The module you built runs a real model, to the sixth decimal. And what is it good for? Similar meaning, similar vector:


# %%
def cosine(a, b):
    return sentence_vectors(model, [a, b]).prod(0).sum()


cat = "A cat sleeps on the old sofa."
for other_text in ("A kitten naps on the couch.", "The train arrived late."):
    print(f"{measured(other_text, cosine, cat, other_text):.2f}   {cat}   {other_text}")


# %%
def speed():
    sentence, seconds = reference["sentences"][:1], []
    for _ in range(10):
        start = time.perf_counter()
        sentence_vectors(model, sentence)
        seconds.append(time.perf_counter() - start)
    memory = psutil.Process().memory_info().rss / 1e9
    told = f"loading {load_seconds:.2f} s, a sentence {1000 * min(seconds):.0f} ms, "
    told += f"the kernel's memory {memory:.2f} GB"
    display(widgets.Label(told))  # your machine's figures: shown, not saved
    return [load_seconds < 2, min(seconds) < 0.05, memory < 1]


# %% tags=["nbval-ignore-output"]
limits = ("loads within 2 s", "one sentence within 50 ms", "memory below 1 GB")
for what, fits in zip(limits, measured("speed", speed)):
    print(f"{what}: {fits}")

# %% [markdown]
# ### The six banks again
#
# Notebook 00 opened with them: six sentences with the word "bank". Compare the vectors of that word with each
# other: those that go into the first layer, and those that come out of the last.


# %%
BANKS = [
    "She sat on the bank of the river.",
    "He fished from the muddy bank.",
    "The bank of the stream was steep.",
    "The bank lent him money.",
    "She opened an account at the bank.",
    "The bank raised its interest rates.",
]  # three of rivers, three of money


# %%
def six_banks():
    before, after, tokens, L1H5 = [], [], [], []
    for text in BANKS:
        tokens.append(tokens_of(text))
        ids, place = torch.tensor([pieces.encode(text)]), tokens[-1].index("bank")
        output, maps = model(ids)  # (1, n, 384), (6, 1, 12, n, n)
        before.append(model.embed(ids)[0, place])
        after.append(output[0, place])
        L1H5.append(maps[0, 0, 4])  # (n, n)
    unit = nn.functional.normalize(torch.stack([*before, *after]), dim=-1)  # (12, 384)
    cosines = {"before": unit[:6] @ unit[:6].T, "after": unit[6:] @ unit[6:].T}
    return {"sentences": BANKS, "tokens": tokens, "L1H5": L1H5, **cosines}


# %%
banks = measured("six banks", six_banks)
before, after = np.array(banks["before"]), np.array(banks["after"])  # (6, 6) each
print(f"going in:   every cosine between {before.min():.2f} and {before.max():.2f}")
nearest = (after - 2 * np.eye(6)).argmax(axis=1)  # of the other five
senses = np.array(["river"] * 3 + ["money"] * 3)
same = (senses[nearest] == senses).sum()
print(f"coming out: the nearest other bank has the same sense in {same} of 6")

# %% [markdown]
# Notebooks 01 and 02 take the queries, keys and values of one head in the first of these sentences: 32 features each.


# %%
def in_first_layer(text, head):
    attention = model.layers[0].attention
    x = model.embed(torch.tensor([pieces.encode(text)]))[0]  # (n, 384)
    W = {"query": attention.W_Q, "key": attention.W_K, "value": attention.W_V}
    return {name: W[name](x).unflatten(-1, (12, 32))[:, head - 1] for name in W}


L1H5 = measured("L1H5 of the first bank", in_first_layer, BANKS[0], 5)
q, k = (np.array(L1H5[name]) for name in ("query", "key"))  # (n, 32) each
bank, river = (banks["tokens"][0].index(word) for word in ("bank", "river"))
weights = al.softmax(q @ k.T / np.sqrt(32))  # (n, n)
print(f"its weight from 'bank' to 'river': {weights[bank, river]:.2f}")

# %% [markdown]
# ## 4 · Six of its 72 heads
#
# Nobody told these heads what to do. As in notebook 08: say where a head looks as a boolean map, and take the mean weight
# there, over all 12 sentences, for **every** head. `look` returns the tokens and all maps of one sentence.


# %%
def look(text):
    ids = pieces.encode(text)
    return pieces.tokens(ids), model(torch.tensor([ids]))[1][:, 0]  # (6, 12, n, n)


def mean_over_sentences(measure, sentences=reference["sentences"]):
    return torch.stack([measure(*look(text)) for text in sentences]).mean(0)  # (6, 12)


# %%
def on_previous(tokens, w):
    return w.diagonal(-1, dim1=-2, dim2=-1).mean(-1)  # query i, key i - 1


def on_next(tokens, w):
    return w.diagonal(1, dim1=-2, dim2=-1).mean(-1)


def on_cls(tokens, w):
    return w[..., 1:-1, 0].mean(-1)  # all words, key 0


# %%
def on_full_stop(tokens, w):
    return w[..., tokens.index(".")].mean(-1)


def broad(tokens, w):
    entropy = torch.from_numpy(al.entropy(w.numpy())).mean(-1)  # (6, 12), in nats
    return entropy / np.log(len(tokens))  # 1 = all keys alike


# %% [markdown]
# For the sixth, the first six sentences have a pronoun and the noun it stands for:

# %%
NOUNS = [("they", "students"), ("they", "children"), ("she", "sister")]
NOUNS += [("they", "actors"), ("he", "man"), ("they", "workers")]
pronoun_of = dict(zip(reference["sentences"], NOUNS))


def on_its_noun(tokens, w):
    pronoun, noun = next(pair for pair in NOUNS if set(pair) <= set(tokens))
    return w[..., tokens.index(pronoun), tokens.index(noun)]


# %%
def told(table, place):  # place 0 is the largest of the 72
    layer, head = divmod(int(np.argsort(-table.ravel())[place]), 12)
    name = f"L{layer + 1}H{head + 1:<2d} {table[layer, head]:.2f}"
    return name, (layer + 1, head + 1)


# %%
heads = {}
for measure in (on_previous, on_next, on_its_noun, on_cls, on_full_stop, broad):
    texts = list(pronoun_of) if measure is on_its_noun else reference["sentences"]
    name = measure.__name__
    table = np.array(measured(name, mean_over_sentences, measure, texts))  # (6, 12)
    best, heads[name] = told(table, 0)
    print(f"{name:13s} {best}   next {told(table, 1)[0]}   third {told(table, 2)[0]}")

# %% [markdown]
# L1H3 means layer 1, head 3. The heads behind the first say whether the job belongs to one head: *previous* does, *[CLS]*
# and *broad* do not. Nor does the pronoun: L4H2 leads with 0.62, L3H5 follows with 0.55.
#
# Nearly half of all heads put most of a word's weight on `[CLS]`. Do they fetch something there? A weight says how much of a
# value is taken, not how much there is to take: head $h$ adds $w_j W_O v_j$ to its output. So measure three things: the
# weight on `[CLS]`, the length $|W_O v|$ there against that of a word, and the share of `[CLS]` in the sum of
# $w_j |W_O v_j|$. ([Kobayashi et al. 2020](../REFERENCES.md#kobayashi-2020).)


# %%
def value_lengths(text):  # |W_O v| of each head and token
    ids = torch.tensor([pieces.encode(text)])  # (1, n)
    x, lengths = model.embed(ids), []
    for layer in model.layers:
        v = layer.attention.W_V(x)[0].unflatten(-1, (12, 32))  # (n, 12, 32)
        W_O = layer.attention.W_O.weight.unflatten(1, (12, 32))  # (384, 12, 32)
        lengths.append(torch.einsum("nhc,dhc->hnd", v, W_O).norm(dim=-1))  # (12, n)
        x, _ = layer(x, None)
    return torch.stack(lengths)  # (6, 12, n)


# %%
def parking(text):
    w, length = look(text)[1][..., 1:-1, :], value_lengths(text)  # queries: words
    part = w * length[..., None, :]  # (6, 12, words, n)
    against_a_word = length[..., 0] / length[..., 1:-1].mean(-1)
    share = (part[..., 0] / part.sum(-1)).mean(-1)
    return torch.stack([w[..., 0].mean(-1), against_a_word, share])  # (3, 6, 12)


def mean_parking():
    return torch.stack([parking(text) for text in reference["sentences"]]).mean(0)


# %%
weight, against, share = np.array(measured("parking", mean_parking))  # (6, 12) each
layer, head = heads["on_cls"]
one = (
    weight[layer - 1, head - 1],
    against[layer - 1, head - 1],
    share[layer - 1, head - 1],
)
print("L{}H{}: weight {:.2f}, |W_O v| {:.2f}, share {:.2f}".format(layer, head, *one))
for name, of in (("weight above 0.5", weight > 0.5), ("all others", weight <= 0.5)):
    print(f"{name:16}: {of.sum()} heads, |W_O v| {against[of].min():.2f}", end=" to ")
    print(f"{against[of].max():.2f}, share up to {share[of].max():.2f}")

# %% [markdown]
# L5H6 gives `[CLS]` nine tenths of its weight and takes little from there: the value is 3 % as long as that of a word. It
# parks: weights must sum to 1, so they have to go somewhere ([Clark et al. 2019](../REFERENCES.md#clark-2019),
# [Xiao et al. 2023](../REFERENCES.md#xiao-2023)). But parked is not nothing, `[CLS]` still makes up a quarter
# of what this head adds, and up to half in another.
#
# The maps of the six for the first sentence. **Predict.** Which key gets the row of "they" in L4H2?


# %%
def whole_look(text):
    tokens, weights = look(text)
    return {"tokens": tokens, "weights": weights}


SENTENCE = reference["sentences"][0]
seen = measured("look", whole_look, SENTENCE)
tokens, weights = seen["tokens"], np.array(seen["weights"])  # (n,), (6, 12, n, n)
maps = np.stack([weights[layer - 1, head - 1] for layer, head in heads.values()])
titles = [f"L{layer}H{head}  {name}" for name, (layer, head) in heads.items()]
figure = plot.head_grid(maps, queries=tokens, keys=tokens, titles=titles, columns=2)
figure.set_dpi(64)

# %% [markdown]
# ## 5 · See it · Your own sentence
#
# Type a sentence and choose a layer and a head. Row *i* shows where token *i* looks.


# %%
def attend(text):
    if text == SENTENCE:
        return tokens, weights
    if folder is None:
        raise LookupError(real_model.missing())
    return look(text)


real_model.sentence_view(attend, SENTENCE, layer=4, head=2, still=[(4, 2), (4, 12)])

# %% [markdown]
# ## 6 · Attention is not understanding
#
# "They" looks at the students. Does head L4H2 *understand* the sentence? Two sentences that differ in one word
# ([Levesque et al. 2012](../REFERENCES.md#levesque-2012)):
#
# - The trophy does not fit into the suitcase because it is too **big**. ("It" is the trophy.)
# - The trophy does not fit into the suitcase because it is too **small**. ("It" is the suitcase.)
#
# **Predict.** Where does "it" look in each?


# %%
def where_it_looks(one, other, size):
    text = f"The {one} does not fit into the {other} because it is too {size}."
    tokens, w = look(text)
    row = w[3, 1, tokens.index("it")]  # L4H2
    return [row[tokens.index(noun)] for noun in ("trophy", "suitcase")]


def tell(one, other):
    for size in ("big", "small"):
        found = measured(f"{one} first, {size}", where_it_looks, one, other, size)
        told = "weight on trophy {:.2f}, on suitcase {:.2f}".format(*found)
        print(f"{one} first, too {size:5s}: {told}")


tell("trophy", "suitcase")

# %% [markdown]
# The meaning turned round, the head did not. Which rule does it follow, then? Let the nouns change places.
# **Predict.** Where does "it" look now?

# %%
tell("suitcase", "trophy")

# %% [markdown]
# In these four sentences it looks at the noun that stands first, whatever the noun and whatever fits. That is not what "too
# small" implies. And the mean of section 4 hides a sentence in which L4H2 fails and the runner-up does not:


# %%
def noun_weights():
    return [on_its_noun(*look(text))[[3, 2], [1, 4]] for text in pronoun_of]


for (pronoun, noun), w in zip(NOUNS, measured("pronouns by sentence", noun_weights)):
    print(f"{pronoun:4s} -> {noun:8s}  L4H2 {w[0]:.2f}   L3H5 {w[1]:.2f}")

# %% [markdown]
# In L4H2 "he" does not find "man". A map shows where information was read, not whether the reading was right.
#
# ## Break it · What the mistakes cost
#
# Notebooks 03 to 06 showed mistakes that raise no error. Here is what they do to a real model. This subclass can make
# each of them; the weights stay the same.


# %%
class Mistaken(MultiHeadAttention):
    scale, masked, swapped, mixed = 32**-0.5, True, True, True

    def split(self, x):  # (b, n, 384) -> (b, 12, n, 32)
        right = x.unflatten(-1, (12, 32)).transpose(1, 2)
        return right if self.swapped else x.reshape(right.shape)

    def forward(self, x, attn_mask):
        q, k, v = (self.split(W(x)) for W in (self.W_Q, self.W_K, self.W_V))
        scores = q @ k.transpose(-1, -2) * self.scale  # (b, 12, n, n)
        blocked = ~attn_mask[:, None] if self.masked else torch.tensor(False)
        weights = scores.masked_fill(blocked, -torch.inf).softmax(-1)
        output = (weights @ v).transpose(1, 2).flatten(2)  # (b, n, 384)
        return (self.W_O(output) if self.mixed else output), weights


# %%
if folder is not None:
    other = load(MiniLM(Mistaken))


def cosines(mistake):
    right = {"scale": 32**-0.5, "masked": True, "swapped": True, "mixed": True}
    for layer in other.layers:
        vars(layer.attention).update(right | mistake)
    vectors = sentence_vectors(other, reference["sentences"])
    return (vectors * true_vectors).sum(-1)  # (12,)


# %% [markdown]
# The cosine of the wrong sentence vector with the true one: 1 is equal, 0 is unrelated. **Predict.** Put these in order:
# no scale, no padding mask, no transpose in `split_heads`, no $W_O$.

# %%
MISTAKES = {
    "none": {},
    "no scale": {"scale": 1.0},
    "no padding mask": {"masked": False},
    "no transpose in split_heads": {"swapped": False},
    "no W_O": {"mixed": False},
}
print("mistake                      cosine: worst  mean   best sentence")
for name, mistake in MISTAKES.items():
    c = np.array(measured(f"mistake: {name}", cosines, mistake))
    print(f"{name:28s} {c.min():13.2f} {c.mean():5.2f} {c.max():6.2f}")

# %% [markdown]
# Nothing failed and every shape was right. Two of the four leave little of the meaning. The missing mask is the
# treacherous one: the longest sentence has no padding and stays perfect, so a test with one sentence passes.
#
# ## 7 · See it · Another $d_k$ in the scale
#
# The model was trained with $\sqrt{32}$. Divide by $\sqrt{d_k'}$ instead, in all layers. **Predict.** In which direction
# is the model more sensitive, $d_k'$ too small or too large?


# %%
def with_scale(d_k):
    cosine = cosines({"scale": d_k**-0.5}).mean()
    ids = torch.tensor([pieces.encode(SENTENCE)])
    return {"cosine": cosine, "weights": other(ids)[1][3, 0, 1]}  # L4H2


D_K = [2, 4, 8, 16, 32, 64, 128, 256, 512]
rescaled = {d_k: measured(f"d_k {d_k}", with_scale, d_k) for d_k in D_K}


# %%
def maps_at(d_k):
    return {"L4H2": rescaled[d_k]["weights"]}


label = "{}, cosine with the true vector {:.2f}"
choices = [(label.format(d_k, rescaled[d_k]["cosine"]), d_k) for d_k in D_K]
labels = {"queries": tokens, "keys": tokens, "row": tokens.index("they")}
live.weights_view(maps_at, d_k=choices, still=(32, 512), start=32, **labels)

# %%
figure, ax = plot.subplots(figsize=(6, 3))
cosine = [rescaled[d_k]["cosine"] for d_k in D_K]
largest = [np.array(rescaled[d_k]["weights"]).max(-1).mean() for d_k in D_K]
ax.semilogx(D_K, cosine, "o-", base=2, label="cosine with the true sentence vector")
ax.semilogx(D_K, largest, "s--", base=2, label="largest weight, L4H2")
ax.set(xlabel="d_k' in the scale (trained: 32)", ylim=(0, 1.05))
_ = ax.legend()
for d_k in (2, 32, 512):
    print(f"d_k' = {d_k:3d}: cosine {rescaled[d_k]['cosine']:.2f}")

# %% [markdown]
# A wrong scale is a wrong temperature. Too small a $d_k'$ makes the weights peaky, too large a one makes them flat, and
# both move the sentence vector away, the flat side further: sixteen times too large costs more than sixteen times too
# small. A model lives with the scale it was trained with: the scale is part of its weights.
# That is why dividing by $\sqrt{d_{model}}$ "works" in a model you train yourself and harms one that you load.
#
# ## Try it
#
# 1. Swap Q and K in `Mistaken` (the mistake of a wrong argument order). Predict the cosine first, then add a row.
# 2. Write a measure of your own, for example "looks at the same token elsewhere", and rank the 72 heads by it.
# 3. Find a pronoun sentence in which L4H2 is wrong, with the view of section 5.
#
# **Remember.** Your module is the real thing: with the right weights it gives the right vectors. Some heads have jobs that
# can be measured; a job is not understanding. Mistakes without an error message can cost a real model almost everything, so
# compare with known numbers.

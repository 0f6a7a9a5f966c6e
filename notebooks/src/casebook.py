# %% [markdown]
# # [[casebook]] · The casebook
#
# **Question.** Which other bugs run and have the right shape? *50 minutes, or a case at a time. This notebook needs torch.*

# %% jupyter={"source_hidden": true}
from copy import deepcopy
from functools import partial
from textwrap import fill

import numpy as np
import torch
from torch import nn

import attnlib as al
from attncourse.clinic.ward import TutorialAttention
from attnlib import live, plot
from attnlib.examples import KARIM

_ = torch.set_num_threads(1)
_ = torch.set_grad_enabled(False)

# %% jupyter={"source_hidden": true}
from attncourse.clinic import CASES, Attention, healthy, patients, twins
from attncourse.clinic.ward import accuracy, sick_lines, train_on_digits
from attnlib.diagnose import diagnose
from attnlib.watch import report, watch

x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)
causal = torch.from_numpy(al.causal_mask(5))  # True = may attend


def beside(broken, fixed):
    maps, titles = torch.stack([broken, fixed]), ["broken", "fixed"]
    figure = plot.head_grid(maps, titles=titles, attn_mask=maps > 0)
    figure.get_layout_engine().set(wspace=0.06)
    return figure


# %% [markdown]
# This is an appendix to [[[bug_clinic]] bug clinic]([[bug_clinic.ipynb]]), to be opened where you need it. Start from what you see
# ([Cases by symptom](../docs/book/symptoms.md) measures which bug shows what):
#
# | you see | look up case |
# |---|---|
# | the output differs from that of a layer you trust | 1 |
# | the model names what it must not see yet | 3 |
# | the map is the same both ways, or matrices do not fit | 4 |
# | weights that are nearly equal | 8 |
# | a head has no gradient on some features, or sees only some tokens | 9, 19, 20 |
# | a mask of the right shape, and the wrong keys hidden | none: *What does True mean?* |
# | padding is looked at, or one sequence gets the mask of another | 11 and its relative |
# | weights for a query all of whose keys are blocked | 12 |
# | a crash in half precision only | 13 |
# | a finite loss, and then NaN | 14, 22 |
# | right until fewer queries than keys ask, or until a batch comes | 15, 21 |
# | the same cell gives something else when run again | 16, 17 |
# | heads that are all alike | 18 |
# | scores that are too large, or a divisor that is doubted | 23, 24 |
# | $W_Q$ and $W_K$ do not learn, or a gradient that vanishes in a plot | 25, 26 |
# | weights loaded from other code, and wrong outputs | 27 |
# | a layer that starts with other weights than you think | 28 |
# | right until it is asked in another way: with a mask, for its weights, without gradients | 29 |
# | a strong first column; two ways to rotate | none, see the end |
#
# The next table lists the cases that are modules. 8, 13, 15, 24 and 26 to 28 are none, and are told below; 33 to
# 35 are the patients of exercises [[name_bug_1]] to [[name_bug_3]]. `twins("case_12")` gives a patient and a healthy module with the same
# weights, and `sick_lines("case_12")` shows what is replaced: − is healthy, + is sick. Hatched cells have no weight at all.

# %% jupyter={"source_hidden": true}
told = [
    [name.replace("case_", ""), case.bug, ", ".join(case.caught_by)]
    for name, case in CASES.items()
    if int(name[-2:]) < 33  # three are patients without a name
]
plot.table(["case", "bug", "diagnose says"], told)

# %% [markdown]
# Most cases come from five public texts on self-attention ([their names](../REFERENCES.md#the-five-texts)); the others are
# common. Links lead to [public threads](../REFERENCES.md#threads).
#
# <details><summary>Which text has which cases</summary>
#
# | | text | cases |
# |---|---|---|
# | S0 | a PyTorch class with several heads | 6, 8, 9, 10, 11, 12, 13 |
# | S1 | the same text in NumPy | 5, 7, 21, 22 |
# | S2 | a Colab notebook with a class | 4, 6, 12 |
# | S3 | an example by hand | 23, 25 |
# | S4 | a lecture on trainable weights | 24, 26, 27, 28 |
#
# </details>
#
# ## More on cases 1, 3, 4, 8 and 9
#
# ### Case 1 · A second opinion
#
# Is there an implementation that you trust, and does it take the same weights? Then compare outputs before all else. For four
# matrices of the usual shapes that is torch's layer. Patient A inverts its mask:


# %% jupyter={"source_hidden": true}
def trusted(module):  # torch's layer with the weights of `module`
    theirs = nn.MultiheadAttention(24, 4, batch_first=True)
    matrices = [module.W_Q.weight, module.W_K.weight, module.W_V.weight]
    theirs.in_proj_weight.copy_(torch.cat(matrices))
    theirs.in_proj_bias.zero_()
    theirs.out_proj.load_state_dict(module.W_O.state_dict())
    return theirs


# %% tags=["nbval-ignore-output"]
for name, module in {"healthy": healthy(), "patient C": patients.patient("C")}.items():
    off = (module(x)[0] - trusted(module)(x, x, x)[0]).abs().max()
    print(f"{name:<9} differs from torch's layer by {off:.0e}")
sick = patients.patient("A")
alone = sick(x)[0] - trusted(sick)(x, x, x)[0]
theirs, _ = trusted(sick)(x, x, x, attn_mask=~causal)  # torch: True = blocked
masked = sick(x, attn_mask=causal)[0] - theirs
print(f"patient A without a mask {alone.abs().max():.0e}", end=", ")
print(f"with a causal one {masked.abs().max():.0e}")

# %% [markdown]
# Without a mask patient A agrees up to rounding. Compare with every argument that you use.

# %% [markdown] tags=["predict"]
# ### A relative of case 1 · 0 and −∞, where 1 and 0 are expected
#
# In a course one module [built a mask](https://github.com/harvard-edge/cs249r_book/pull/1785) to be added, 0 and $-\infty$, for
# another one that expected 1 and 0, and turned it into $(1 - \text{mask}) \cdot (-10^9)$. **Predict.** Does that let
# the future in?

# %%
scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))  # (n_q, n_k)
mask = torch.zeros(5, 5).masked_fill(~causal, -torch.inf)  # to be added: 0 = may attend
handed = scores + (1 - mask) * -1e9
print(handed.softmax(-1).numpy().round(2))
print("next to 1e9, float32 has steps of", np.spacing(np.float32(1e9)))

# %% [markdown]
# No: $1 - (-\infty)$ times $-10^9$ is $-\infty$ again, and the future stays out. But $10^9$ is taken from every allowed score.
# In float32 a score smaller than half a step is lost then, so tokens with scores below 32 all get this map. Shapes were
# checked there, and shapes were right.

# %% [markdown] tags=["predict"]
# ### Case 3 · How it reads the future
#
# The weights of the future are removed after the softmax, and the model still names the next digit. Does it read how much
# is missing? Two changes to the trained model tell. The first keeps the proportions, and lets each row sum to what the same
# row of *another* sequence sums to. The second keeps the sum of each row, and makes its weights equal.
#
# **Predict.** What becomes of the accuracy?


# %%
Late = CASES["case_03"].module


class SumsOfAnother(Late):
    def weights(self, scores, mask):
        weights = super().weights(scores, mask)  # (b, h, n_q, n_k)
        sums = weights.sum(-1, keepdim=True)  # (b, h, n_q, 1)
        return weights / sums * sums.roll(1, dims=0)


class SumsAlone(Late):
    def weights(self, scores, mask):
        sums = super().weights(scores, mask).sum(-1, keepdim=True)
        return sums * mask / mask.sum(-1, keepdim=True)


# %% tags=["nbval-ignore-output"]
model, _ = train_on_digits(twins("case_03")[0])
learned = model.attention.state_dict()
changes = {"as it is": Late, "the sums of another sequence": SumsOfAnother}
changes["its own sums, equal weights"] = SumsAlone
for told, kind in changes.items():
    model.attention = kind(24, 4)
    model.attention.load_state_dict(learned)
    print(f"{told:<28}: accuracy {accuracy(model):.2f}")

# %% [markdown]
# With the sums of another sequence it can only guess; its own sums alone tell it nearly all.
#
# ### Case 4 · Scores that are the same both ways, and matrices that would not fit
#
# Without projections the score of $i$ asking $j$ is a product of slices of $x_i$ and $x_j$, and that is the same both ways.
# And nobody saw that the unused `Linear(32, 256)` would not fit:

# %%
torch.manual_seed(0)
sick, batch = patients.patient("B", 256, 8), torch.randn(2, 10, 256)
for name, module in (("broken", sick), ("fixed ", healthy(256, 8))):
    with torch.enable_grad():
        module(batch)[0].square().sum().backward()
    dead = sum(p.numel() for p in module.parameters() if p.grad is None)
    q, k, _ = module.project(batch, batch, batch)
    scores = module.scaled_scores(q, k)
    off = (scores - scores.transpose(-1, -2)).abs().max()
    print(f"{name}: parameters without a gradient: {dead}")
    print(f"        score (i, j) and score (j, i) differ by up to {off:.4f}")

# %%
try:
    sick.W_Q(batch)  # a token has 256 features
except RuntimeError as error:
    print("before the split, RuntimeError:", error, sep="\n  ")
v = sick.W_V(sick.split(batch))  # (b, h, n, 32) becomes (b, h, n, 256)
try:
    sick.W_O(sick.merge(v))
except RuntimeError as error:
    print("after the split, in W_O, RuntimeError:", error, sep="\n  ")

# %% [markdown]
# ### Case 8 · Inputs and divisor apart
#
# The demonstration of the tutorial had nearly equal weights. Is it the inputs, or the divisor?

# %%
torch.manual_seed(0)
_ = TutorialAttention(256, 8)
v, k, q = (torch.rand(32, 10, 256) for _ in range(3))  # between 0 and 1, unrelated
drawn = {"rand": (q, k, v), "rand - 0.5": (q - 0.5, k - 0.5, v - 0.5)}
drawn["randn"] = torch.randn(3, 32, 10, 256)  # unrelated as well, of variance 1
modules = {"sqrt(d_k)": Attention(256, 8)}
modules["sqrt(embed_dim)"] = CASES["case_06"].module(256, 8)
for name, module in modules.items():
    print(f"divided by {name}")
    for kind, three in drawn.items():
        w = module(*three)[1]
        print(f"    three {kind + ':':<11}", f"{w.min():.3f} to {w.max():.3f}")

# %% [markdown]
# Both narrow the range around 0.1. Numbers between 0 and 1 have a variance of 1/12. Their mean of 1/2 widens the range again:
# without it the range is half as wide.
#
# ### Case 9 · What a head never sees
#
# A loss on the first head alone has no gradient on what lies outside its slice.

# %%
torch.manual_seed(0)
tutorial, fixed = TutorialAttention(256, 8), healthy(256, 8)
tokens = torch.randn(1, 10, 256, generator=torch.Generator().manual_seed(0))
for name, module in (("broken", tutorial), ("fixed ", fixed)):
    with torch.enable_grad():
        tokens = tokens.detach().requires_grad_()
        output = module(tokens, tokens, tokens)
        weights = output[1] if name == "fixed " else module.weights
        weights[0, 0].square().sum().backward()  # a loss on the first head
    outside = tokens.grad[..., 32:].abs().max().item()
    print(f"{name}: gradient of head 1 outside its slice: {outside:.1e}")

# %% [markdown]
# ## Masks
#
# ### What does True mean?
#
# | who | boolean mask says |
# |---|---|
# | attnlib, torch's [`scaled_dot_product_attention`](../REFERENCES.md#torch-sdpa), [flax, ONNX](../REFERENCES.md#onnx) | True = may attend |
# | [`nn.MultiheadAttention`](../REFERENCES.md#torch-mha): `attn_mask` | True = **blocked** |
# | the same: `key_padding_mask`, $(b, n_k)$ | True = **padding**, blocked for all queries |
# | Hugging Face's `attention_mask`, $(b, n_k)$ | 1 = token, **0 = padding**, as integers |
# | many tutorials (`masked_fill(mask == 0, ...)`) | 1 = may attend, 0 = blocked, as integers |
#
# A mask in the wrong convention has the right shape and raises nothing. There is a third kind: a mask of floats is *added* to the scaled
# scores. attnlib refuses integers, which may mean either. Three functions translate:

# %%
print("to_blocked:       ", al.to_blocked(al.causal_mask(3))[1])  # row 1
print("to_additive:      ", al.to_additive(al.causal_mask(3))[1])  # row 1
print("from_zero_blocked:", al.from_zero_blocked(np.array([1, 1, 0])))
try:
    al.scaled_dot_product_attention(*KARIM.project(), np.tril(np.ones((3, 3), int)))
except TypeError as error:
    print(fill(str(error), 76))

# %% [markdown] tags=["predict"]
# ### Case 11 · The mask from the tokenizer
#
# **You see** a padding mask of shape $(b, n)$, as a tokenizer gives it, passed on as it is: ten sequences of ten tokens, and no
# error. **Predict.** What are its rows and columns taken for?

# %%
torch.manual_seed(11)
tutorial, generator = TutorialAttention(256, 8), torch.Generator().manual_seed(11)
batch = torch.rand(10, 10, 256, generator=generator)  # (b, n, d)
padding = torch.arange(10) < torch.arange(1, 11)[:, None]  # (b, n): i + 1 tokens in i
maps, outputs = [], []
for mask in (padding, padding[:, None, None, :]):  # as it is; (b, 1, 1, n_k)
    outputs.append(tutorial(batch, batch, batch, mask))
    maps.append(tutorial.weights[2, 0, :5, :5])
off = (outputs[0] - outputs[1]).abs().max()
print(f"(b, n) mask with b = n = 10: no error, output differs by {off:.2f}")
figure = beside(*maps)

# %% [markdown]
# **Cause.** The last two axes of the scores are queries and keys, so the mask of ten sequences is read as the mask of ten
# queries. The picture shows sequence 2, which has three tokens: the broken map is causal, the fixed one hides columns. **Fix.**
# `padding[:, None, None, :]`: say which axes are missing.
#
# The line with `-1e20` is also ill. It shows where a mask forbids everything, and in half precision:

# %%
tutorial(batch, batch, batch, torch.zeros(10, 10))
least = tutorial.weights.min()
print(f"a mask of zeros: every weight is {least:.1f}, on keys that are all forbidden")
try:
    half = batch.half()
    deepcopy(tutorial).half()(half, half, half, padding)
except RuntimeError as error:
    print("float16: RuntimeError:", error)

# %% [markdown]
# ### A relative of case 11 · repeat or repeat_interleave
#
# torch's `nn.MultiheadAttention` takes a mask for each sequence and head, $(b \cdot h, n_q, n_k)$. Two calls make one of the
# masks of the sequences, and only one of them gives the first head of sequence 1 its own mask:

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(24, 4, batch_first=True)
# (b, n_q, n_k), True = blocked: sequence 1 has three tokens
blocked = torch.from_numpy(al.to_blocked(al.padding_mask([5, 3], 5))).expand(2, 5, 5)
masks = {"repeat": blocked.repeat(4, 1, 1)}
masks["repeat_interleave"] = blocked.repeat_interleave(4, dim=0)
for name, mask in masks.items():
    _, w = theirs(x, x, x, attn_mask=mask, average_attn_weights=False)
    share = w[1, :, :, 3:].sum(-1).mean(-1)  # of sequence 1, by head
    print(f"{name:<17} weight on padding in heads 1 to 4: {share.numpy().round(2)}")

# %% [markdown]
# `repeat` lays the masks out as 0, 1, 0, 1, ..., and torch reads the first four as those of sequence 0: every other head got
# the mask of the other sequence. [Five files of one library](https://github.com/line/lighthouse/pull/77) had it.
#
# ### Relatives of cases 2, 11, 15 and 34 · Between two texts
#
# A translator has these bugs in [notebook [[two_texts]]]([[two_texts.ipynb]]), each beside its cure.
#
# | what you see | bug | smallest probe |
# |---|---|---|
# | a text is right alone, and wrong beside a longer one | no mask of the text that is read | the same text twice, with and without padding |
# | it cannot read: another text changes nothing | keys and values from its own text (case 34) | exchange the text |
# | what stands late in the text is missed | a causal mask between the texts | change the last letter, watch the first digit |
# | a good answer, to another text of the batch | vectors of the next text | a batch of two, in both orders |
# | the shorter a text, the likelier it is wrong | positions counted from the padding at the left | print the positions |
# | half of one text, half of another | packed texts see each other | change the second, watch the first |
#
# ### Case 12 · A row that may look nowhere
#
# **You see** `masked_fill(mask == 0, -1e20)`, and it works. Now one query has all ten keys blocked. What are its
# weights?

# %%
print(sick_lines("case_12"))
sick, fixed = twins("case_12")
ten = torch.randn(1, 10, 24, generator=torch.Generator().manual_seed(0))
mask = torch.ones(10, 10, dtype=torch.bool)
mask[1] = False  # query 1 may look nowhere
maps = [module(ten, attn_mask=mask)[1][0, 0] for module in (sick, fixed)]
print("broken", maps[0][1].numpy().round(4))
print("fixed ", maps[1][1].numpy().round(4))
figure = beside(*(weights[:4] for weights in maps))

# %% [markdown]
# **Cause.** A softmax sees differences only, and all ten scores are the same. **Fix.** Fill with $-\infty$ and set a
# fully masked row to 0.
#
# ### Case 13 · Only in half precision
#
# **You see** a crash on the GPU, where the model runs in half precision, that never came on the CPU, where it runs in
# float32. Which number in the module of case 12 does not fit?

# %%
half = ten.half()
try:
    sick.half()(half, attn_mask=mask)
except RuntimeError as error:
    print("broken: RuntimeError:", error)
output, _ = fixed.half()(half, attn_mask=mask)
print("fixed:  outputs that are not finite:", (~output.isfinite()).sum().item())
print("largest float16:", torch.finfo(torch.float16).max)

# %% [markdown]
# **Cause.** -1e20 is no float16. **Fix.** $-\infty$ is.

# %% [markdown] tags=["predict"]
# ### Case 14 · A finite loss
#
# So fill with $-\infty$. A row that may look nowhere is then 0 / 0, which is NaN. You know that, and leave this output out of
# your loss. The loss is finite.
#
# **Predict.** Which of $W_Q$, $W_K$, $W_V$, $W_O$ are lost after one step? Does it matter whether $-\infty$ is filled in or
# added?

# %%
kept = torch.arange(10) != 1  # all queries but the one that may look nowhere


def gradients(module):
    with torch.enable_grad():
        loss = module(ten, attn_mask=mask)[0][:, kept].square().mean()
        loss.backward()
    nan = {name[:3] for name, p in module.named_parameters() if p.grad.isnan().any()}
    lost = ", ".join(sorted(nan)) or "none"
    return f"loss {loss:.4f}, NaN in the gradients of: {lost}"


# %%
def added(self, scores, mask):  # -inf is added, where the healthy module fills
    return scores + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)


names = ("filled:", "filled, nan_to_num:")
for name, module in zip(names, twins("case_14")):
    print(f"{name:<22}", gradients(module))
for name, module in zip(("added:", "added, nan_to_num:"), twins("case_14")):
    module.masked_scores = partial(added, module)  # in place of its own method
    print(f"{name:<22}", gradients(module))

# %% [markdown]
# **Cause.** The gradient of an output that was left out is 0, and on its way back it is multiplied by the NaN of that row:
# 0 · NaN is NaN. One dead row poisons matrices that all rows share. A
# [thread](https://github.com/pytorch/pytorch/issues/41508) about torch's own module is open since 2020.
#
# | the mask is | without `nan_to_num` | with it |
# |---|---|---|
# | filled in | NaN in $W_V$ and $W_O$: they multiply the NaN of the weights | none |
# | added | NaN in all four | NaN in $W_Q$ and $W_K$: softmax multiplies by its NaN on the way back, and the sum hands it on |
#
# **Fix.** Both: `masked_fill` before the softmax, `.nan_to_num()` after it. The second keeps NaN from the values and from
# $W_O$. The first keeps it from queries and keys: `masked_fill` does not multiply, it hands back a 0 to every score that it
# filled.
#
# ### Case 15 · Three new tokens
#
# **You see** code that is right for five tokens that ask five. Now the first two are known, and only the last three ask all
# five. One line of it must know $n_q$ *and* $n_k$. Which of these masks
# is right? A mask can have the right shape and be wrong:

# %%
five = np.random.default_rng(27).normal(size=(5, 8))  # (n, d)
whole = al.scaled_dot_product_attention(five, five, five, is_causal=True)  # (5, 8)
masks = {"broken, tri(n_q, n_q)": np.tri(3, 3, dtype=bool)}
masks["broken, tri(n_q, n_k)"] = np.tri(3, 5, dtype=bool)
masks["fixed,  tri(n_q, n_k, k=n_k - n_q)"] = np.tri(3, 5, k=2, dtype=bool)

# %%
for name, allowed in masks.items():
    try:
        output = al.scaled_dot_product_attention(five[2:], five, five, allowed)
        print(f"{name}: off by {np.abs(output - whole[2:]).max():.4f}")
    except al.ShapeError as error:
        print(f"{name}: ShapeError:\n ", str(error).split(". ")[0])

# %% [markdown]
# **Cause.** Only where all tokens ask are there as many keys as queries. **Fix.** A mask is $(n_q, n_k)$, always, and queries
# that continue a sequence stand at its end: the lower right (notebook [[masks]]). Somebody who wrote text with torch's
# `is_causal` [got the same vector](https://github.com/pytorch/pytorch/issues/144858) for every new token: a single query,
# lined up at the upper left, sees the first key and no other. The ONNX standard
# [was corrected](https://github.com/onnx/onnx/pull/8068) for caches in 2026.
#
# Such a mask often sits in no layer: the model hands it over, and each layer alone is well. `report` reads every attention call of
# a whole model, so it sees what was handed over when the second chunk came:


# %%
class Chat(nn.Module):
    def forward(self, x, past=None):
        keys = x if past is None else torch.cat([past, x], 1)
        return nn.functional.scaled_dot_product_attention(x, keys, keys, is_causal=True)


chat, tokens = Chat(), torch.randn(1, 5, 8)
with watch(chat) as seen:
    chat(tokens[:, :2])
    chat(tokens[:, 2:], past=tokens[:, :2])
for one in report(seen):
    print(f"{one.where}: {one.verdict}, {one.measured}", one.look_at, sep="\n")

# %% [markdown] tags=["predict"]
# ## Second calls and heads
#
# ### Cases 16, 17 · The second call
#
# **You see** results that differ when a cell is run twice. Two modules have this symptom.
#
# **Predict.** What would you compare to tell them apart?

# %%
torch.manual_seed(0)
for name in ("case_16", "case_17"):
    for state, module in zip(("broken", "fixed "), twins(name)):
        tokens = x.clone()
        first, second = (module.eval()(tokens)[0] for _ in range(2))
        differ, moved = (first - second).abs().max(), (tokens - x).abs().max()
        print(f"{name} {state}: second call differs by {differ:.2f}", end="   ")
        print(f"input has moved by {moved:.2f}")

# %%
torch.manual_seed(0)
sums = twins("case_16")[0].eval()(x)[1].sum(-1)
print(f"row sums with dropout on the weights: {sums.min():.2f} to {sums.max():.2f}")
print(sick_lines("case_16"))

# %% [markdown]
# **Cause.** `nn.functional.dropout(w, 0.1)` drops in eval mode, too; in case 17 `query /= ...` writes into the caller's tensor.
# **Fix.** `training=self.training`; `query = query / ...`. The row sums answer what a reader of a video lecture
# [asked in public](https://github.com/karpathy/ng-video-lecture/issues/30): after dropout a row may sum to more than 1. What is
# not dropped is divided by 0.9, so that a row sums to 1 on average over many draws. In training that is intended; in eval
# mode it is the bug.
#
# ### Case 18 · Four heads, one map
#
# **You see** heads that were all started from one matrix. Does training tell them apart?

# %%
torch.manual_seed(1)
sick, fixed = CASES["case_18"].module(24, 4), Attention(24, 4)
for name, module in (("broken", sick), ("fixed ", fixed)):
    w = module(x)[1]
    same = sum((w[:, i] - w[:, 0]).abs().max() < 1e-6 for i in (1, 2, 3))
    print(f"{name}: heads 2 to 4 with the weights of head 1: {same} of 3")


# %% jupyter={"source_hidden": true}
def train_a_little(module, steps=5):  # to return the token before
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)
    for _ in range(steps):
        with torch.enable_grad():
            loss = (module(x)[0] - x.roll(1, dims=1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
    w = module(x)[1]
    return (w - w[:, :1]).abs().max().item()  # how far a head is from the first


# %% tags=["nbval-ignore-output"]
alike = CASES["case_18"].module(24, 4)
alike.W_O.weight.copy_(alike.W_O.weight[:, :6].repeat(1, 4))  # W_O copied as well
print(f"copied heads after 5 steps: differ by {train_a_little(sick):.2f}")
print(f"W_O copied, too:            differ by {train_a_little(alike):.2f}")

# %% [markdown]
# **Cause.** Equal matrices give equal weights of attention. But each head has its own columns of `W_O.weight`, so each gets
# its own gradient, and a few steps tell the heads apart. Only if those columns are copies, too, no gradient ever does (dropout
# would). **Fix.** Draw every head's matrices anew.

# %% [markdown] tags=["predict"]
# ### Cases 19, 20 · Why not simply reshape?
#
# **You see** two modules whose shapes are right, and whose code is shorter by one `transpose`. The question why it is needed
# is [asked in public](https://github.com/harvardnlp/annotated-transformer/issues/118). One forgets it as it splits, one as
# it merges.
#
# **Predict.** In which does a head see all features, but only of some tokens? In which is the output of one
# token put together from the answers to several, all by one head?

# %%
for name in ("case_19", "case_20"):
    print(sick_lines(name))
    said = diagnose(twins(name)[0], embed_dim=24, num_heads=4)
    print(said["permutation"].measured.split(";")[0])

# %%
token = torch.arange(6)[:, None].expand(6, 4)  # (n, d): to which token a number belongs
heads = torch.arange(6)[None, :, None].expand(2, 6, 2)  # (h, n, d_k): the same, split
split, merged = token.reshape(6, 2, 2).transpose(0, 1), heads.transpose(0, 1)
print("split, tokens in head 1 of 2: broken", token.reshape(2, 6, 2)[0].tolist())
print("                              fixed ", split[0].tolist())
print("merged, tokens in output 0:   broken", heads.reshape(6, 4)[0].tolist())
print("                              fixed ", merged.reshape(6, 4)[0].tolist())

# %% [markdown]
# **Cause.** `reshape` keeps the numbers in the order in which they stand in memory. So the first module hands head 1 *all*
# features of the first three tokens and calls them six tokens. The second makes output 0 of what head 1 says to the first two
# tokens. **Fix.** Reshape to $(n, h, d_k)$, then swap to $(h, n, d_k)$; merging swaps first, then reshapes.
#
# ## Scales and sizes

# %% [markdown] tags=["predict"]
# ### Case 21 · Right until the batch came
#
# **You see** NumPy code with the comment “K is (batch, d_k)”, and in it `K.shape[1]`, `K.T`, `axis=1`. It is right for one
# sequence, where K is (tokens, d_k), and for a batch of shape (3, 3, 3) it is wrong without an error (notebook [[vectorized]]). **Predict.** With
# heads, which number does `shape[1]` take for $d_k = 6$ if `q` is (2, 4, 5, 6)?

# %%
print(sick_lines("case_21"))
sick, fixed = twins("case_21")
q, _, _ = sick.project(x, x, x)  # (b, h, n, d_k) = (2, 4, 5, 6)
under = [round(module.divisor(q) ** 2) for module in (sick, fixed)]
print("under the root, with 4 heads of d_k = 6: broken {}  fixed {}".format(*under))

# %% [markdown]
# **Cause.** `shape[1]` is $d_k$ in two dimensions, the tokens in three, the heads in four. `.T` reverses all axes at
# once, also the batch, and `axis=1` becomes the queries. **Fix.** Count from the end:
# `shape[-1]`, `swapaxes(-1, -2)`, `axis=-1`. And test with sizes that all differ: a cube hides everything.
#
# ### Case 22 · After an hour of training
#
# **You see** NaN, suddenly, after an hour in which all was well. The softmax is `e = exp(scores)`, divided by its sum.

# %%
for state, module in zip(("broken", "fixed "), twins("case_22")):
    told = (
        f"times {k}: {module(k * x)[0].isfinite().float().mean():.0%}"
        for k in (1, 9, 99)
    )
    print(f"{state}: outputs that are finite,", ", ".join(told))

# %% [markdown]
# **Cause.** `exp` of a large score is infinity, and infinity / infinity is NaN: above 88 in float32, above 709 in float64
# (*Break it* of [notebook [[vectorized]]]([[vectorized.ipynb]]) goes to the edge). **Fix.** Subtract the maximum of the row first: the
# weights stay the same, and no exponent is above 0.
#
# ### Case 23 · Only three features
#
# **You see** an example by hand that never divides. $d_k$ is only 3. **Try.** By how much does the first weight
# change? Move the slider to $\sqrt 3$.

# %% jupyter={"source_hidden": true}
Q, K, V = KARIM.project()
for name, scale in (("broken", 1.0), ("fixed ", None)):
    trace = al.attention_trace(Q, K, V, scale=scale)
    print(f"{name}: weights of query 0 {trace.weights[0].round(6)}")
    print(f"        output 0 {trace.output[0].round(6)}")


def divided(by):
    return {"weights": al.softmax(Q @ K.T / by)}


# %% jupyter={"source_hidden": true}
choices = [("1", 1.0), ("the root of 3", 3**0.5), ("3", 3.0), ("9", 9.0)]
shown = {"start": 1.0, "still": (1.0, 3**0.5, 9.0), "label": "divided by"}
view = live.weights_view(divided, by=choices, **shown)
view

# %% [markdown]
# **Cause.** The step is missing. **Fix.** Divide by $\sqrt 3$. torch's `scaled_dot_product_attention` is the second
# opinion.
#
# ### Case 25 · Weights as one writes them on paper
#
# **You see** weights rounded to one digit, as in S3. What does a module lose by that?

# %%
for state, module in zip(("broken", "fixed "), twins("case_25")):
    with torch.enable_grad():
        module(x)[0].square().sum().backward()
    sums = module(x)[1].sum(-1)
    print(f"{state}: row sums {sums.min():.2f} to {sums.max():.2f}", end=", ")
    print(f"largest gradient of W_Q {module.W_Q.weight.grad.abs().max():.2f}")

# %% [markdown]
# **Cause.** Rows no longer sum to 1, and a rounded number has no slope: $W_Q$ and $W_K$ never learn. **Fix.** Round what you print.
#
# ### Cases 24, 26, 27, 28 · Told in earlier notebooks
#
# [Notebook [[scaling]]]([[scaling.ipynb]]) has 26 under *Appendix*, and [[[pytorch_module]]]([[pytorch_module.ipynb]]) has 24 and 28 there, 27 in section 3.
#
# | you see | measured | fix |
# |---|---|---|
# | 24 “Scaling keeps the variance near 1” | of three ways to draw $W_Q$ and $W_K$, only Xavier's does | measure the variance of your scores once, before training |
# | 26 “without scaling, gradients vanish”, and a plot of the mean gradient on $q$ that says the opposite | a few queries have very large ones | plot a median |
# | 27 a square `W` moved from `X @ W` to nn.Linear, and no error | nn.Linear stores (out, in) | copy `W.T`, and compare one output |
# | 28 “nn.Linear starts as Xavier or Kaiming” | its weights are $\sqrt 6$ times smaller than Kaiming's: it calls that function with `a=sqrt(5)` ([sources](../REFERENCES.md#torch-linear)) | `nn.init.xavier_uniform_`, if you mean it |
#
# ## Two answers from one layer
#
# ### Case 29 · Behind a mask another path runs
#
# **You see** a layer that agrees with torch's to the last digit, and in the model its rows are too sharp. Many layers have more
# than one path: a fused one, one for masks, one that returns weights. A mask that allows everything must change nothing:

# %%
print(sick_lines("case_29"))
everything = torch.ones(5, 5, dtype=torch.bool)
for state, module in zip(("broken", "fixed "), twins("case_29")):
    off = (module(x)[0] - module(x, attn_mask=everything)[0]).abs().max()
    print(f"{state}: no mask, and one of True, differ by {off:.2f}")


# %%
class Looking(Attention):  # looking removes the mask
    def forward(self, x, attn_mask=None, need_weights=False):
        both = super().forward(x, attn_mask=None if need_weights else attn_mask)
        return both if need_weights else both[0]


torch.manual_seed(0)
print(diagnose(Looking(24, 4), embed_dim=24, num_heads=4)["one answer"].measured)

# %% [markdown]
# **Cause.** Mask and scale are written once for each path, and one of them was forgotten. In a compiler's fallback it was
# [the scale](https://github.com/mlc-ai/mlc-llm/pull/3426). In a layer of Keras it was
# [the causal mask](https://github.com/keras-team/keras/issues/23038), as soon as somebody asked for the weights: who looked
# at the map saw another layer than the one that was used. **Fix.** Ask in every way, and let all answers agree; `diagnose` does
# (*one answer*).
#
# ## Two suspects that are healthy
#
# **All on the first token.** A map in which a whole column is strong looks broken, and people
# [ask about it](https://github.com/jessevig/bertviz/issues/84). With a causal mask the first query has nothing else to look at,
# in any model; what parking there does for a trained model, notebook [[it_speaks]] measures.
#
# **Two ways to pair features.** Rotary position embeddings rotate pairs of features by an angle that grows with the position
# (notebook [[todays_head]]). Some code pairs neighbours, some the two halves, and readers
# [wonder which is right](https://github.com/rasbt/LLMs-from-scratch/issues/838). Do the two give the
# same scores? Does one become the other if the features are put in another order? What if queries go one way and keys the other?


# %% jupyter={"source_hidden": true}
def rotate(x, halves):
    n, d = x.shape
    angle = np.arange(n)[:, None] / 100.0 ** (np.arange(d // 2) / (d // 2))
    first, second = x[:, ::2], x[:, 1::2]
    if halves:
        first, second = x[:, : d // 2], x[:, d // 2 :]
    return (first + 1j * second) * np.exp(1j * angle)  # a pair as a complex number


def scores_of(q, k):
    return (q @ k.conj().T).real


# %%
q, k = np.random.default_rng(0).normal(size=(2, 5, 8))  # (n, d_k)
neighbours = scores_of(rotate(q, False), rotate(k, False))
other = [*range(0, 8, 2), *range(1, 8, 2)]  # 0, 2, 4, 6, 1, 3, 5, 7
moved = rotate(q[:, other], True), rotate(k[:, other], True)
ways = {"halves": scores_of(rotate(q, True), rotate(k, True))}
ways["halves, features in the other order"] = scores_of(*moved)
ways["queries one way, keys the other"] = scores_of(rotate(q, False), rotate(k, True))
for name, way in ways.items():
    print(f"{name:<36} differs from neighbours by {np.abs(way - neighbours).max():.4f}")

# %% [markdown] tags=["remember"]
# Either is right if the weights were trained with it. To load weights of the one into code of the other is the bug.
#
# **Remember.** Look up the symptom, take the smallest probe that shows it, mend the line, and keep the probe as a test.

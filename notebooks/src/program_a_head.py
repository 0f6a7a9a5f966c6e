# %% [markdown]
# # [[program_a_head]] · Program a head
#
# **Question.** In notebook [[by_hand]] *she* found Anna, because we had chosen $W_Q$ and $W_K$ that way. Can you choose the numbers so
# that a head looks where *you* want? *30 minutes of reading. Two hours with puzzles: part A 43 minutes of puzzles, B 17, C 34. It needs no torch.*

# %% jupyter={"source_hidden": true}
from functools import partial

import numpy as np

import attnlib as al
from attncourse import check, predict
from attncourse.convoy import CARGO, FLAG, ONE, PILOT, PLACE, A, B, C, D, convoy
from attncourse.ships import note_passed_on, pictured, sailing
from attnlib import live, plot

COLUMNS = [*"*ABCD", "tons", "one", *(f"at {place}" for place in range(8))]
COLUMNS += [f"note {flag}" for flag in "*ABCD"]  # what layer 1 writes


# %% jupyter={"source_hidden": true}
def who_wants_whom(W_Q, W_K, ax=None):
    """Draw W_Q W_K^T with the names of the columns of x, without unused blocks."""
    wants = W_Q @ W_K.T  # (15, 15)
    blocks = np.split(np.arange(len(wants)), [5, 6, 7, 15])  # flag, tons, one, place
    used = [[b for b in blocks if wants.any(axis)[b].any()] for axis in (1, 0)]
    rows, columns = (np.concatenate(some or blocks[:1]) for some in used)
    asks, found = ([COLUMNS[i] for i in some] for some in (rows, columns))
    look = {"vmin": None, "vmax": None, "places": 0, "colorbar": False, "ax": ax}
    look |= {"queries": asks, "keys": found, "title": "who wants whom: W_Q W_K^T"}
    plot.attention_heatmap(wants[np.ix_(rows, columns)], **look)


# %% jupyter={"source_hidden": true}
x, ships = convoy("*ABACDB"), [f"{i} {flag}" for i, flag in enumerate("*ABACDB")]
W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))
W_Q[A, 0], W_K[B, 0] = 20, 1
_, (left, right) = plot.subplots(1, 2, figsize=(6.4, 3.3), width_ratios=(5, 6))
who_wants_whom(W_Q, W_K, left)
weights = al.attention_trace(x @ W_Q, x @ W_K, x).weights
labels = {"queries": ships, "keys": ships, "title": "the head: A looks at B"}
ax = plot.attention_heatmap(weights, **labels, ax=right, colorbar=False)

# %% [markdown]
# First comes a table: A wants B, and nobody else wants anything. Then comes a head with this table, at work on seven
# tokens, `* A B A C D B`. A letter is a kind of token, and `*` comes first. The rows of both A look at the tokens B, and every
# other row looks at all alike. You will write two matrices whose product is such a table.
#
# Fourteen puzzles follow, and a head of your own. Part A needs notebooks [[start_here]] to [[scaling]].

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook [[scaling]])* In one row, one score is larger than another by 8. How many times the weight does its key get?
#
# - **a** 8 times
# - **b** 64 times
# - **c** about 3000 times
#
# **2.** *(notebook [[vectorized]])* Row 2 of the scores $Q K^T$ belongs to one token. What does it hold?
#
# - **a** how well each key fits what token 2 looks for
# - **b** how well the key of token 2 fits what each token looks for
# - **c** what token 2 gives to each token
#
# **3.** *(notebook [[by_hand]])* Which vector of a token reaches those that look at it?
#
# - **a** its query
# - **b** its key
# - **c** its value

# %%
predict.before_program_a_head(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## A convoy
#
# A head for the four words of *Anna saw Ben; she* could simply list who looks at whom. A rule must hold
# for texts that nobody has seen. So ships sail in **convoys**. An empty pilot boat, `*`, leads one to seven ships. Each ship
# flies a flag, A, B, C or D, and carries 1 to 9 tons. The pilot is at place 0. Whatever is to the
# left of a ship is in front of it; the nearest of these is *the* ship in front. For the head a ship is a row of 15 numbers:

# %% jupyter={"source_hidden": true}
flags, tons = "*ABACDB", [0, 4, 2, 7, 1, 5, 3]
x = convoy(flags, tons)  # (n, 15)
_ = sailing(flags, tons)

# %% [markdown]
# In code, each block of columns and each flag has a name:

# %%
print("FLAG:", FLAG, "  CARGO:", CARGO, "  ONE:", ONE, "  PLACE:", PLACE)
print("PILOT, A, B, C, D:", PILOT, A, B, C, D)

# %% [markdown] tags=["predict"]
# A **query** is what a ship looks for, a **key** is what it is found by, and a **value** is what it gives: $Q = x W_Q$,
# $K = x W_K$, $V = x W_V$. Each matrix has 15 rows, one for each column of $x$. So **row r of a matrix says what becomes of
# column r of x**, and a column whose row is 0 is not read.
#
# Begin with a head of zeros: $W_Q$ and $W_K$ are 0, and $W_V$ gives the tons. **Predict.** What does its map of weights look
# like?
#
# - **a** all alike: each ship looks at all ships equally
# - **b** nothing: all weights are 0
# - **c** each ship looks at itself

# %%
guess_zeros = None  # "a", "b" or "c"

# %%
W_Q, W_K, W_V = np.zeros((15, 2)), np.zeros((15, 2)), np.zeros((15, 1))
W_V[CARGO, 0] = 1  # the value of a ship is its tons
zeros = al.attention_trace(x @ W_Q, x @ W_K, x @ W_V)
labels = {"queries": ships, "keys": ships, "title": "a head of zeros"}
ax = plot.attention_heatmap(zeros.weights, **labels)
ax.figure.set_figheight(3.6)
print(f"each ship receives {zeros.output[0, 0]:.2f} t")

# %%
predict.head_of_zeros(guess_zeros)

# %% [markdown]
# The 3.14 t are 22 t divided by 7, because the empty pilot boat is in the mean, too. Exercise [[all_but_the_pilot]] will leave it out.
#
# Now set two numbers, those of the first picture:

# %%
W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))  # (15, d_k), d_k = 1
W_Q[A, 0] = 20  # a ship with flag A asks; Break it shows how far 20 goes
W_K[B, 0] = 1  # a ship with flag B is found
trace = al.attention_trace(x @ W_Q, x @ W_K, x @ W_V)
two_numbers = live.flow(trace, queries=ships, query=1, key=2)
two_numbers

# %% [markdown]
# The query of an A is 20, the key of a B is 1, and all others are 0. So an A scores
# $20 \cdot 1 / \sqrt{1} = 20$ with each B and 0 with everybody else, and the two ships B share its weight. The scores of
# every other row are equal. The picture subtracts the largest score before exp, which changes no weight (notebook [[vectorized]]). **Try.**
# Choose a query A, then a query C, and click a key.

# %% [markdown]
# ## A · Ask, be found, give
#
# **How a puzzle works.** Fill in the function: set some rows of the matrices, and return them. `W_Q[FLAG]` means five rows at
# once, `W_Q[PLACE]` eight, and `PLACE.start` is the first of the eight. `np.eye(5)` is the $5 \times 5$ matrix with ones on
# its diagonal. You choose $d_k$, the number of columns of $W_Q$ and $W_K$. The scores are divided by $\sqrt{d_k}$, and you
# can't turn that off.
#
# Run the cell, and a picture shows what is *wanted*, a map or what each ship receives. As soon as one of your numbers is not 0,
# *yours* stands beside it: what your head does. In a running notebook you may type another convoy, and *times* multiplies your
# scores, for looking only. Then run the check, which tries your head on convoys that you have not seen. Unless a puzzle says
# otherwise, each weight must be right to 0.01. Any matrices that do it are right. A solution is folded under each check. Where the
# text uses *your* head, it takes the solution's until yours passes.


# %% jupyter={"source_hidden": true}
def see(puzzle, head, convoy="*ABACDB"):
    return live.compare(pictured(partial(puzzle.show, head)), convoy=convoy)


def solved(puzzle, head):  # yours where it is right, else that of the solution
    return head() if puzzle(head).passed else puzzle.example()


# %% [markdown] tags=["exercise"]
# ### Exercise [[look_at_yourself]] · Look at yourself
#
# **Goal.** Make each ship look at itself, whatever its flag. *4 minutes, easy.*
#
# `my_self()` returns $W_Q$ and $W_K$.


# %%
def my_self():
    W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))  # (15, d_k)
    # your code: W_Q[...] = ...
    # and W_K[...] = ...
    return W_Q, W_K


see(check.look_at_yourself, my_self)

# %%
verdict = check.look_at_yourself(my_self)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_self():
#     W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))
#     W_Q[PLACE], W_K[PLACE] = 20 * np.eye(8), np.eye(8)  # equal places meet
#     return W_Q, W_K
#
#
# def another():  # d_k = 2: 2ij - j^2 is largest at j = i, since it is i^2 - (i - j)^2
#     W_Q, W_K, place = np.zeros((15, 2)), np.zeros((15, 2)), np.arange(8)
#     W_Q[PLACE, 0], W_Q[ONE, 1] = 2 * place, 1
#     W_K[PLACE, 0], W_K[PLACE, 1] = 20 * place, -20 * place**2
#     return W_Q, W_K
#
#
# see(check.look_at_yourself, my_self)
# ```
#
# The dot product of two one-hot vectors is 1 if they are equal, and 0 if not. So give the same block to both sides. The
# factor decides how sharply a ship looks.
#
# </details>

# %% [markdown]
# ## Break it · A factor that is too small
#
# Why 20? A ship that looks at one ship has one score above $n - 1$ zeros. Here are three factors, for the longest convoy,
# $n = 8$ with the pilot, and $d_k = 8$:

# %%
rows = []
for factor in (5, 10, 20):
    scores = np.r_[factor, np.zeros(7)]  # (n,): one key is ahead of seven
    weights = al.softmax(scores / 8**0.5)
    rows.append((factor, factor / 8**0.5, weights[0]))
plot.table(["factor", "score / sqrt(d_k)", "weight of that key"], rows)

# %% [markdown]
# With $s$ the divided score, that weight is $e^s / (e^s + 7)$. It is 0.99 if $e^s = 99 \cdot 7$, so the factor must be
# $\ln(99 \cdot 7) \cdot \sqrt 8$:

# %%
print(f"factor for 0.99: {np.log(99 * 7) * 8**0.5:.3f}")

# %% [markdown]
# So 20 is safe in every convoy, for $d_k$ up to 8. In a real model $d_k$ is 64, say, even for a head that needs 8 features. The
# slider adds empty features to your head of [[look_at_yourself]]. The scores stay, and $\sqrt{d_k}$
# grows. **Try.** At which stop does the ship at place 3 have less than half of its weight on itself?

# %%
matrices = solved(check.look_at_yourself, my_self)  # W_Q, W_K
eight, width = convoy("*ABACDBA"), matrices[0].shape[1]  # (8, 15), d_k


def wider(d_k):
    Q, K = (np.pad(eight @ W, ((0, 0), (0, d_k - W.shape[1]))) for W in matrices)
    scores = Q @ K.T  # (n, n): empty features add nothing
    divided = al.softmax(scores / d_k**0.5)
    return {"without the division": al.softmax(scores), "divided by sqrt(d_k)": divided}


stops = {"d_k": (width, 64 * width), "still": (width, 8 * width, 64 * width)}
softer = live.weights_view(wider, **stops, row=3, label="features d_k, divisor follows")
softer

# %% [markdown]
# The head of the solution is below half from $d_k = 128$ on, where it keeps 0.46. So a head that uses few of its features
# must use larger numbers.

# %% [markdown]
# ## Eight more puzzles of part A

# %% [markdown] tags=["exercise"]
# ### Exercise [[your_own_flag]] · Your own flag
#
# **Goal.** Make each ship look at all ships of its flag, itself included, equally. *3 minutes, easy.*
#
# `my_flag()` returns $W_Q$ and $W_K$. The pilot has a flag of its own, so it looks at itself.


# %%
def my_flag():
    W_Q, W_K = np.zeros((15, 5)), np.zeros((15, 5))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.your_own_flag, my_flag)

# %%
verdict = check.your_own_flag(my_flag)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_flag():
#     W_Q, W_K = np.zeros((15, 5)), np.zeros((15, 5))
#     W_Q[FLAG], W_K[FLAG] = 20 * np.eye(5), np.eye(5)
#     return W_Q, W_K
#
#
# def another():  # d_k = 2: five flags on a circle, each is nearest to itself
#     W_Q, W_K, angle = np.zeros((15, 2)), np.zeros((15, 2)), 2 * np.pi * np.arange(5) / 5
#     W_K[FLAG] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
#     W_Q[FLAG] = 20 * W_K[FLAG]
#     return W_Q, W_K
#
#
# see(check.your_own_flag, my_flag)
# ```
#
# A head cannot prefer one among equals: ships with equal keys share the weight.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[who_wants_whom]] · Who wants whom
#
# **Goal.** Make A look at B, B at C, C at D and D at A. The pilot looks at itself. *6 minutes, medium.*
#
# `my_wishes()` returns $W_Q$ and $W_K$. Every flag flies in each convoy of the check.


# %%
def my_wishes():
    W_Q, W_K = np.zeros((15, 5)), np.zeros((15, 5))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.who_wants_whom, my_wishes)

# %%
verdict = check.who_wants_whom(my_wishes)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_wishes():
#     W_Q, W_K, wants = np.zeros((15, 5)), np.zeros((15, 5)), np.zeros((5, 5))
#     wants[[PILOT, A, B, C, D], [PILOT, B, C, D, A]] = 20  # wants[who, whom]
#     W_Q[FLAG], W_K[FLAG] = wants, np.eye(5)
#     return W_Q, W_K
#
#
# see(check.who_wants_whom, my_wishes)
# ```
#
# </details>

# %% [markdown] tags=["predict"]
# ### One table says it all
#
# Scores are $Q K^T = x \, W_Q W_K^T x^T$, so $W_Q$ and $W_K$ count only through the table in the middle, $W_Q W_K^T$. A
# row is a feature of the ship that asks, a column one of the ship that is found. A ship has a 1 in the
# column of its flag, in that of its place, and in *one*. So the score of two ships is a sum of cells of this table, divided by
# $\sqrt{d_k}$, as long as the head does not read their tons.
# **Predict.** Which cells are large in the head of [[who_wants_whom]]? And which change if all queries and keys are rotated alike?

# %%
W_Q, W_K = solved(check.who_wants_whom, my_wishes)
rng = np.random.default_rng(0)
R = np.linalg.qr(rng.normal(size=(W_Q.shape[1],) * 2))[0]  # R @ R.T is the identity
Q_2, K_2 = W_Q @ R, W_K @ R
print(f"largest change of W_Q: {np.abs(Q_2 - W_Q).max():.1f}", end=", ")
print(f"of the table: {np.abs(Q_2 @ K_2.T - W_Q @ W_K.T).max():.6f}")
who_wants_whom(W_Q, W_K)

# %% [markdown]
# Any two matrices with this product, and the same $d_k$, give the same weights. `who_wants_whom(*my_c())` draws the table of
# exercise [[where_is_c]].
#
# *To* found Mary, *she* found Anna, and here an A finds a B. In notebook [[by_hand]] row *pronoun* of $W_Q$
# is [3, 0, 0] and row *name* of $W_K$ is [1, 0, 0], so the cell (*pronoun*, *name*) is 3: `W_Q[A, 0] = 20; W_K[B, 0] = 1` again.

# %% [markdown] tags=["exercise"]
# ### Exercise [[where_is_c]] · Where is C?
#
# **Goal.** Make everybody, the pilot included, look at C. Several ships C share. *4 minutes, easy.*
#
# `my_c()` returns $W_Q$ and $W_K$. A C flies in each convoy of the check.


# %%
def my_c():
    W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.where_is_c, my_c)

# %%
verdict = check.where_is_c(my_c)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_c():
#     W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[C, 0] = 20, 1  # everybody has a 1
#     return W_Q, W_K
#
#
# def another():  # shun all others instead
#     W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[[PILOT, A, B, D], 0] = -20, 1
#     return W_Q, W_K
#
#
# see(check.where_is_c, my_c)
# ```
#
# A constant query asks in everybody's name. In many layers a bias does this work.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[cargo_of_c]] · What does C carry?
#
# **Goal.** Give every ship the tons that C carries. If several ships fly a C, give the mean of their tons. *3 minutes, easy.*
#
# `my_tons()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). Only the output is judged, to 0.1 t.


# %%
def my_tons():
    W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))  # (15, d_k)
    W_V = np.zeros((15, 1))  # (15, d_v)
    # your code
    return W_Q, W_K, W_V


see(check.cargo_of_c, my_tons, "*ABCADB")

# %%
verdict = check.cargo_of_c(my_tons)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_tons():
#     W_Q, W_K, W_V = np.zeros((15, 1)), np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[C, 0] = 20, 1  # whom to look at
#     W_V[CARGO, 0] = 1  # what is given
#     return W_Q, W_K, W_V
#
#
# see(check.cargo_of_c, my_tons, "*ABCADB")
# ```
#
# C is found by its flag and gives its cargo. These are two things, hence two matrices, $W_K$ and $W_V$.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[all_but_the_pilot]] · Everybody but the pilot
#
# **Goal.** Give every ship, and the pilot, the mean tons of all ships but the pilot, in convoys of any length. *5 minutes,
# medium.*
#
# `my_mean()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). Only the output is judged, to 0.05 t.


# %%
def my_mean():
    W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))  # (15, d_k)
    W_V = np.zeros((15, 1))  # (15, d_v)
    # your code
    return W_Q, W_K, W_V


see(check.all_but_the_pilot, my_mean)

# %%
verdict = check.all_but_the_pilot(my_mean)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_mean():
#     W_Q, W_K, W_V = np.zeros((15, 1)), np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[PILOT, 0] = 20, -1  # everybody shuns the pilot
#     W_V[CARGO, 0] = 1
#     return W_Q, W_K, W_V
#
#
# see(check.all_but_the_pilot, my_mean)
# ```
#
# Equal scores average, whatever the number of ships. A large negative score takes a key out of the average. But if
# *all* scores of a row are large and negative, the row still spends its 1.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[three_to_one]] · Three to one
#
# **Goal.** Give each C exactly three times the weight of anybody else, in every row. *6 minutes, medium.*
#
# `my_ratio()` returns $W_Q$ and $W_K$. Here $d_k$ is 4. In a convoy `*ABC` each row is 1/6, 1/6, 1/6, 3/6. The weights
# must be right to 0.005.


# %%
def my_ratio():
    W_Q, W_K = np.zeros((15, 4)), np.zeros((15, 4))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.three_to_one, my_ratio)

# %%
verdict = check.three_to_one(my_ratio)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_ratio():
#     W_Q, W_K = np.zeros((15, 4)), np.zeros((15, 4))
#     W_Q[ONE, 0], W_K[C, 0] = 2 * np.log(3), 1  # divided by sqrt(4) it is ln 3
#     return W_Q, W_K
#
#
# def another():  # all four features take part
#     W_Q, W_K = np.zeros((15, 4)), np.zeros((15, 4))
#     W_Q[ONE], W_K[C] = np.log(3) / 2, 1
#     return W_Q, W_K
#
#
# see(check.three_to_one, my_ratio)
# ```
#
# Two weights compare as $e^{s_1} / e^{s_2} = e^{s_1 - s_2}$. So the difference of two divided scores is the logarithm of the
# ratio of their weights. Before the division it is $\sqrt{d_k}$ times that.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[nothing_to_do]] · Nothing to do
#
# **Goal.** Make A look at B. All other ships look at the pilot, and so does A where no B sails. *7 minutes, hard.*
#
# `my_parking()` returns $W_Q$ and $W_K$. Several ships B share. The pilot carries 0 t, so it gives nothing to those that look
# at it.


# %%
def my_parking():
    W_Q, W_K = np.zeros((15, 2)), np.zeros((15, 2))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.nothing_to_do, my_parking)

# %%
verdict = check.nothing_to_do(my_parking)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_parking():
#     W_Q, W_K = np.zeros((15, 2)), np.zeros((15, 2))
#     W_Q[ONE, 0], W_K[PILOT, 0] = 20, 1  # everybody looks at the pilot
#     W_Q[A, 1], W_K[B, 1] = 40, 1  # for an A a B is worth more
#     return W_Q, W_K
#
#
# def another():  # a table of flags
#     W_Q, W_K, wants = np.zeros((15, 5)), np.zeros((15, 5)), np.zeros((5, 5))
#     wants[:, PILOT], wants[A, B] = 20, 40
#     W_Q[FLAG], W_K[FLAG] = wants, np.eye(5)
#     return W_Q, W_K
#
#
# see(check.nothing_to_do, my_parking)
# ```
#
# A softmax must spend its 1, whether there is something to find or not. A head with nothing to do needs a place to **park**,
# which gives little. Trained heads have such places, too.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[ship_in_front]] · The ship in front
#
# **Goal.** Make each ship look at the one in front of it, and the pilot at itself. *5 minutes, medium.*
#
# `my_step()` returns $W_Q$ and $W_K$. There is no mask.


# %%
def my_step():
    W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))  # (15, d_k)
    # your code
    return W_Q, W_K


see(check.ship_in_front, my_step)

# %%
verdict = check.ship_in_front(my_step)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_step():
#     W_Q, W_K, step = np.zeros((15, 8)), np.zeros((15, 8)), np.eye(8, k=-1)
#     step[0, 0] = 1  # the pilot has nobody in front; step[i, i - 1] is 1 for the others
#     W_Q[PLACE], W_K[PLACE] = 20 * step, np.eye(8)
#     return W_Q, W_K
#
#
# see(check.ship_in_front, my_step)
# ```
#
# </details>

# %% [markdown]
# ## B · Masks
#
# From here on you need masks (notebook [[masks]]).

# %% [markdown] tags=["exercise"]
# ### Exercise [[latest_of_my_flag]] · The latest of my flag
#
# **Goal.** Make each ship look at the nearest ship of its flag in front of it, and at the pilot if there is none. *10
# minutes, hard.*
#
# `my_latest()` returns $W_Q$, $W_K$ and a mask of shape (8, 8), True = may attend. A convoy with $n$ rows, the pilot's
# included, uses the first $n$ rows and columns of the mask. What the mask forbids is hatched in your map. The row of the pilot is
# free, empty in *wanted*: anything goes.


# %%
def my_latest():
    W_Q, W_K = np.zeros((15, 6)), np.zeros((15, 6))  # (15, d_k)
    mask = np.ones((8, 8), dtype=bool)  # True = may attend
    # your code
    return W_Q, W_K, mask


see(check.latest_of_my_flag, my_latest, "*ABACDAB")

# %%
verdict = check.latest_of_my_flag(my_latest)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_latest():
#     W_Q, W_K = np.zeros((15, 6)), np.zeros((15, 6))
#     W_Q[FLAG, :5], W_K[FLAG, :5] = 400 * np.eye(5), np.eye(5)  # first my flag
#     W_Q[ONE, PILOT] = 200  # if not, the pilot, whose key is in column PILOT
#     W_Q[ONE, 5], W_K[PLACE, 5] = 20, np.arange(8)  # then late: at most 140
#     return W_Q, W_K, np.tri(8, k=-1, dtype=bool)  # without the diagonal
#
#
# see(check.latest_of_my_flag, my_latest, "*ABACDAB")
# ```
#
# Scores add up, so wishes can be ranked like the digits of a number: the flag counts hundreds, the place counts
# twenties. `who_wants_whom(*my_latest()[:2])` draws these digits.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise [[count_with_a_witness]] · Count with a witness
#
# **Goal.** Give each ship $1 / (1 + c)$, where $c$ counts the ships of its flag so far, itself included. *7 minutes,
# medium.*
#
# `my_count()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). The head is causal: a ship sees itself and
# what is in front of it. The output must be right to 0.01: 1/2 for a new flag, 1/3 for its second ship. The row of the pilot is
# free.


# %%
def my_count():
    W_Q, W_K = np.zeros((15, 5)), np.zeros((15, 5))  # (15, d_k)
    W_V = np.zeros((15, 1))  # (15, d_v)
    # your code
    return W_Q, W_K, W_V


see(check.count_with_a_witness, my_count)

# %%
verdict = check.count_with_a_witness(my_count)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_count():
#     W_Q, W_K, W_V = np.zeros((15, 5)), np.zeros((15, 5)), np.zeros((15, 1))
#     W_Q[FLAG], W_K[FLAG] = 20 * np.eye(5), np.eye(5)  # my flag
#     W_Q[ONE, PILOT] = 20  # and the pilot, which is always there
#     W_V[PILOT, 0] = 1  # give its share
#     return W_Q, W_K, W_V
#
#
# see(check.count_with_a_witness, my_count)
# ```
#
# A head averages; it cannot add up. But a witness that is always there has a share, and this share tells with how many the
# witness shares.
#
# </details>

# %% [markdown]
# ## C · Heads together
#
# From here on you need several heads and $W_O$ (notebook [[multi_head]]).

# %% [markdown] tags=["exercise"]
# ### Exercise [[difference]] · The difference
#
# **Goal.** Give each ship its own tons minus those of the ship in front, and the pilot 0. *6 minutes, medium.*
#
# `my_difference()` returns two heads and $W_O$: `(W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2), W_O`. Each $W_V$ is (15, 1).
# The outputs of the two heads stand side by side, $(n, 2)$, and $W_O$ is (2, 1). There is no mask. The output must be right to
# 0.2 t.


# %%
def my_difference():
    W_Q1, W_K1, W_V1 = np.zeros((15, 8)), np.zeros((15, 8)), np.zeros((15, 1))
    W_Q2, W_K2, W_V2 = np.zeros((15, 8)), np.zeros((15, 8)), np.zeros((15, 1))
    W_O = np.zeros((2, 1))
    # your code; W_Q1, W_K1 = my_self() is allowed
    return (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2), W_O


see(check.difference, my_difference)

# %%
verdict = check.difference(my_difference)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_difference():
#     step, key, tons = np.zeros((15, 8)), np.zeros((15, 8)), np.zeros((15, 1))
#     key[PLACE], tons[CARGO] = np.eye(8), 1
#     step[PLACE] = 20 * np.eye(8, k=-1)
#     step[PLACE.start, 0] = 20  # the pilot: its own 0 t minus its own 0 t
#     return (20 * key, key, tons), (step, key, tons), np.array([[1], [-1]])
#
#
# see(check.difference, my_difference)
# ```
#
# Weights are never negative, so a head can only mix. $W_O$ (or $W_V$) may subtract what two heads have found.
#
# </details>

# %% [markdown]
# ### Room to write
#
# In exercise [[what_came_next]] one layer writes what another one reads. So $x$ gets five more columns, which are empty:

# %%
from attncourse.convoy import NOTE

roomy = convoy("*ABCA", notes=True)  # (n, 20)
print(roomy.shape, " NOTE is", NOTE, " largest entry there:", roomy[:, NOTE].max())

# %% [markdown] tags=["exercise"]
# ### Exercise [[what_came_next]] · What came next
#
# **Goal.** In `*ABCA` the last A has an A in front of it, and right behind that one sails B: give the last A the flag B. Do
# so for each ship that has its own flag in front. *12 minutes, hard.*
#
# A ship with several such flags receives their mean; where there is none, its row is not checked. A ship B does not know that it sails behind an A. So
# there are two layers, both causal: the first one tells each ship, and the second one looks for who was told. The first adds
# what it finds to $x$, and the second reads the sum: `x1 = x + head1(x)`, then `head2(x1)`. All matrices have 20 rows.
#
# `my_next()` returns both layers, `(W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2)`. $W_{V1}$ is (20, 20): its rows say what is
# read, its columns where it is written. $W_{V2}$ is (20, 5): the five numbers of a flag. The output must be right to 0.05.


# %%
def my_next():
    W_Q1, W_K1, W_V1 = np.zeros((20, 8)), np.zeros((20, 8)), np.zeros((20, 20))
    W_Q2, W_K2, W_V2 = np.zeros((20, 5)), np.zeros((20, 5)), np.zeros((20, 5))
    # your code; NOTE is a block of five columns, like FLAG
    # W_Q1[:15], W_K1[:15] = my_step() is allowed, if its d_k is 8
    return (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2)


see(check.what_came_next, my_next, "*ABCABAC")

# %%
verdict = check.what_came_next(my_next)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_next():
#     W_Q1, W_K1, W_V1 = np.zeros((20, 8)), np.zeros((20, 8)), np.zeros((20, 20))
#     W_Q1[PLACE], W_K1[PLACE] = 20 * np.eye(8, k=-1), np.eye(8)  # look in front
#     W_Q1[PLACE.start, 0] = 20
#     W_V1[FLAG, NOTE] = np.eye(5)  # note its flag
#     W_Q2, W_K2, W_V2 = np.zeros((20, 5)), np.zeros((20, 5)), np.zeros((20, 5))
#     W_Q2[FLAG], W_K2[NOTE] = 20 * np.eye(5), np.eye(5)  # who has noted my flag?
#     W_V2[FLAG] = np.eye(5)  # give its own
#     return (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2)
#
#
# def another():  # the note in a secret code, which the query of layer 2 knows
#     (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2) = my_next()
#     secret = np.eye(5)[[3, 0, 4, 1, 2]]
#     W_V1[FLAG, NOTE], W_Q2[FLAG] = secret, 20 * secret
#     return (W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2)
#
#
# see(check.what_came_next, my_next, "*ABCABAC")
# ```
#
# Layers talk through columns of $x$: one writes a note there, and the next matches on it. Which columns and which code they
# use is up to them.
#
# </details>

# %% [markdown] tags=["predict"]
# ### A note passed on
#
# Your layers at work for the last ship of `*ABCA`, or those of the solution until yours pass. Lines are as wide as weights.
# **Predict.** Which ship has noted an A?

# %% jupyter={"source_hidden": true}
passed_on = check.what_came_next.show(
    partial(solved, check.what_came_next, my_next), "*ABCA"
)
_ = note_passed_on("*ABCA", [layer.weights for layer in passed_on.maps.values()])

# %% [markdown]
# ### They write on
#
# What the two layers give the last ship is a guess at the next flag. So they can write: a ship with that flag joins the convoy,
# and the layers read again.


# %%
def causal_head(x, W_Q, W_K, W_V):
    return al.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True)


def write_on(layers, flags, n=8):
    head1, head2 = layers
    while len(flags) < n:
        x = convoy(flags, notes=True)  # (n, 20)
        x1 = x + causal_head(x, *head1)  # (n, 20)
        out = causal_head(x1, *head2)  # (n, 5)
        flags += "ABCD"[out[-1, 1:].argmax()]  # never the pilot
    return flags


# %%
for begun in ("*ABCA", "*DBD", "*ACDBA", "*ABC"):
    written = write_on(solved(check.what_came_next, my_next), begun)
    print(f"{begun:<7} writes on: {written}")

# %% [markdown]
# If the last flag has sailed before, always with the same flag behind it, that flag comes next. In `*ABC` nobody has sailed
# behind a C yet, so the tiny weights left elsewhere decide. What they write becomes the rule. In notebook [[train_and_look]] two trained layers find
# the same rule.

# %% [markdown] tags=["exercise"]
# ### Exercise [[no_head_can]] · No head can
#
# **Goal.** Write two groups of ships that no head can tell apart, though one has more ships A than the other. *6 minutes,
# medium.*
#
# Here a ship is a flag and a 1: there is no pilot, no place, no cargo and no mask. Write two texts of A to D, at most 12
# letters each, and at least two different flags in each. The **last** ship must receive the same in both texts, whatever the
# matrices are. The check tries 200 random heads.

# %%
my_pair = None  # two texts, for example ("AB", "CB")

# %%
verdict = check.no_head_can(my_pair)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# my_pair = ("AB", "ABAB")  # one A and two, and half of the ships fly an A in both
#
# another = ("BAC", "CABBAC")  # the order does not matter, except which one asks
# ```
#
# </details>

# %% [markdown]
# ### A proof, then a search
#
# For *every* head there is a proof. Ships with one flag have the same row in $x$, hence the same key
# and the same value. Let the last ship ask. Let $s_f$ be its divided score with a ship of flag $f$, let $v_f$ be the value of
# such a ship, and let there be $n_f$ of them:
#
# $$\text{output} = \frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}} = \frac{\sum_f n_f\, e^{s_f} v_f}{\sum_f n_f\, e^{s_f}}
# = \frac{\sum_f 2 n_f\, e^{s_f} v_f}{\sum_f 2 n_f\, e^{s_f}}.$$
#
# Take twice as many ships of each flag, and the 2 cancels. So a head knows the **shares** of the flags, but not how many ships
# there are. It doesn't know their order either, because a sum has none. A causal mask changes nothing here: it hides nothing
# from the last ship.
#
# A random search agrees. The second pair shows that it can find a difference:


# %%
def bag(flags):  # ships without pilot, places and cargo: (n, 15)
    x = convoy("*" + flags)[1:]
    x[:, PLACE], x[:, CARGO] = 0, 0
    return x


# %%
def apart(one, two):
    rng, most = np.random.default_rng(0), 0
    for W_Q, W_K, W_V in 5 * rng.normal(size=(1000, 3, 15, 4)):
        ends = [
            al.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[-1]
            for x in (bag(one), bag(two))
        ]
        most = max(most, np.abs(ends[0] - ends[1]).max())
    return most


# %%
for pair in (("CDB", "CDBCDB"), ("CDB", "CDDB")):
    print(*pair, f"outputs differ by at most {apart(*pair):.6f}")

# %% [markdown] tags=["predict"]
# ### The witness
#
# Yet the head of [[count_with_a_witness]] counts. **Predict.** Give it the pair `CB`, `CBCB`, once behind a pilot and once without. When does its
# last ship receive two different numbers?
#
# - **a** without the pilot
# - **b** with the pilot
# - **c** both times

# %%
guess_witness = None  # "a", "b" or "c"

# %%
W_Q, W_K, W_V = solved(check.count_with_a_witness, my_count)
for pilot in (True, False):
    for flags in ("CB", "CBCB"):
        x = convoy("*" + flags)[0 if pilot else 1 :]
        out = al.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True)
        told = "with the pilot" if pilot else "without"
        print(f"{told:<15} {flags:<5} the last ship receives {out[-1, 0]:.2f}")

# %%
predict.witness(guess_witness)

# %% [markdown]
# The pilot is one of two, and then one of three. Doubling the ships does not double the pilot, so its share tells their
# number. Without the pilot the last ship receives 0 here, because only the pilot has something to give. By the proof no other
# $W_V$ would help. A start token, with which many language models begin each
# text, can be such a witness.

# %% [markdown] tags=["exercise"]
# ### Exercise [[own_head]] · Your own head
#
# **Goal.** Think of a rule, and program a head that follows it. *10 minutes, hard.*
#
# `my_own()` returns $W_Q$, $W_K$ and your rule, a function. `rule(flags, cargo)` gets the flags as a text (in `*ABA` $n$ is
# 4) and the tons as an array. It returns an $(n, n)$ array of True and False: True where ship $i$ should look. A row without
# True is free. The check tries 50 random convoys, and wants more than 0.9 of each row's weight where the rule is True. Some
# ideas: the heaviest ship (all of them, if several are), the last one, the ship two places in front, place $7 - i$ for place
# $i$.


# %%
def my_own():
    W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))  # (15, d_k)
    # your code
    rule = ...  # a function: rule(flags, cargo) gives (n, n) of bool
    return W_Q, W_K, rule


see(check.own_head, my_own)

# %%
verdict = check.own_head(my_own)
verdict

# %% [markdown] tags=["solution"]
# <details><summary>Solution</summary>
#
# ```python
# def my_own():  # the heaviest ship; several share
#     W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[CARGO, 0] = 20, 1
#
#     def rule(flags, cargo):
#         return np.tile(cargo == cargo.max(), (len(flags), 1))
#
#     return W_Q, W_K, rule
#
#
# see(check.own_head, my_own)
# ```
#
# </details>

# %% [markdown]
# ## See it · Heads that have names
#
# Trained models have relatives of four of your heads, with names. Here they are, yours where they pass.

# %% jupyter={"source_hidden": true}
known = {
    "[[your_own_flag]] duplicate": (check.your_own_flag, my_flag),
    "[[nothing_to_do]] parking": (check.nothing_to_do, my_parking),
    "[[ship_in_front]] previous": (check.ship_in_front, my_step),
    "[[what_came_next]] induction": (check.what_came_next, my_next),
}
flags, traces = "*ABCABCA", []
for puzzle, head in known.values():
    shown = puzzle.show(partial(solved, puzzle, head), flags)
    traces.append([*shown.maps.values()][-1])
masks = [np.ones((8, 8), bool) if t.attn_mask is None else t.attn_mask for t in traces]

# %% jupyter={"source_hidden": true}
labels = {"queries": list(flags), "keys": list(flags), "attn_mask": np.stack(masks)}
figure = plot.head_grid([t.weights for t in traces], titles=list(known), **labels)

# %% [markdown]
# - A **duplicate-token head** looks at earlier copies of its token ([Wang et al. 2022](../REFERENCES.md#wang-2022)). Yours has
#   no mask, so it also sees itself and later ones.
# - A head **parks** on a token that is always there and gives little, an attention sink ([Xiao et al.
#   2023](../REFERENCES.md#xiao-2023)).
# - A **previous-token head** and an **induction head** work together, as in notebook [[train_and_look]] ([Olsson et al.
#   2022](../REFERENCES.md#olsson-2022)).
#
# RASP is a language for whole programs of this kind ([Weiss et al. 2021](../REFERENCES.md#weiss-2021)), and
# Tracr turns its programs into weights ([Lindner et al. 2023](../REFERENCES.md#lindner-2023)).
#
# ## Try it
#
# 1. Put the eight places on a circle, in two features. Then one $2 \times 2$ rotation is the step to the place in front, and
#    the ring closes: place 0 looks at place 7.

# %%
angle = 2 * np.pi * np.arange(8) / 8
places = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (8, 2)
turn = np.array([[1, -1], [1, 1]]) / 2**0.5  # by an eighth of a circle
ring = al.attention_trace(40 * places @ turn, places, places).weights  # (8, 8)
least = ring.max(axis=1).min()
print("looks at:", *ring.argmax(axis=1), f"  smallest weight there {least:.4f}")

# %% [markdown] tags=["remember"]
# 2. Rotate by two eighths. Which matrix does it, and whom does place 0 look at?
# 3. In [[latest_of_my_flag]], make the three numbers of the solution smaller, all by the same factor. How small may they become?
#
# <details><summary>Answers</summary>
#
# 2: `turn @ turn`, at place 6. 3: 240, 120 and 12 pass; 220, 110 and 11 do not.
#
# </details>
#
# **Remember.** $W_Q$ says what a ship looks for, $W_K$ what it is found by, $W_V$ what it gives. Without biases, only the
# product $W_Q W_K^T$ and $d_k$ count for the weights: a table of who wants whom. Equal scores share, and the difference of two
# scores is the logarithm of the ratio of their weights. A head that finds nothing needs a place to park. Layers talk through
# columns of $x$: one writes a note there, and the next matches on it. A head knows shares, not counts, unless some
# token occurs a known number of times in every text. Next: [[[one_token_at_a_time]] one token at a time]([[one_token_at_a_time.ipynb]]).

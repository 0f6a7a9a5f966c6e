# %% [markdown]
# # 10 · Program a head
#
# **Question.** Can you set $W_Q$, $W_K$ and $W_V$ by hand so that a head looks where you want? *25 minutes
# to read; part A 43 minutes of puzzles, B 17, C 34.*
#
# Usually training finds these numbers, and nobody sets them. But whoever can set them has understood what the three are
# for. Here are fourteen puzzles, and one of your own. Part A needs notebooks 00 to 03, part B also 05, part C also 06.

# %%
from functools import partial

import numpy as np

import attnlib as al
from attnlib import live, plot
from attnlib.course import check, predict
from attnlib.course.convoy import CARGO, FLAG, ONE, PILOT, PLACE, A, B, C, D, convoy

# %% [markdown]
# ## Before you start
#
# Three questions from memory.
#
# **1.** *(notebook 03)* In one row, one score is larger than another by 8. How many times the weight does its key get?
#
# - **a** 8 times
# - **b** 64 times
# - **c** about 3000 times
#
# **2.** *(notebook 02)* Row 2 of the scores $Q K^T$ belongs to one token. What does it hold?
#
# - **a** how well each key fits what token 2 asks
# - **b** how well token 2's key fits what each of the others asks
# - **c** what token 2 hands over to each of the others
#
# **3.** *(notebook 01)* Which vector of a token is what it hands over when it is found?
#
# - **a** its query
# - **b** its key
# - **c** its value

# %%
predict.before_10(None, None, None)  # a letter each: "a", "b" or "c"

# %% [markdown]
# ## A convoy
#
# Ships sail in a convoy. An empty pilot boat, `*`, leads one to seven ships. Each ship flies a flag, A, B, C or D, and
# carries 1 to 9 tons. The convoy sails to the left, the pilot first:
#
# `* A B A C D B`: place 0 is the foremost. In front of a ship sails the one to its left, behind it the one to its right.
#
# For the head a ship is a row of 15 numbers:
#
# | columns of `x` | name | what stands there |
# |---|---|---|
# | 0 to 4 | `FLAG` | a 1 in the column of the flag: `PILOT`, `A`, `B`, `C` and `D` are 0, 1, 2, 3, 4 |
# | 5 | `CARGO` | tons |
# | 6 | `ONE` | always 1 |
# | 7 to 14 | `PLACE` | a 1 in the column of the place, counted from 0 |

# %%
flags, tons = "*ABACDB", [0, 4, 2, 7, 1, 5, 3]
x = convoy(flags, tons)  # (n, 15)
ships = [f"{place} {flag}" for place, flag in enumerate(flags)]
print(f"     {PILOT} {A} {B} {C} {D}   t   1   place")
for ship, row in zip(ships, x.astype(int).astype(str)):
    print(ship, " ", *row[FLAG], " ", row[CARGO], " ", row[ONE], " ", *row[PLACE])

# %% [markdown] tags=["predict"]
# A ship's **query** is what it asks of the others, its **key** is what it shows to them, and its **value** is what it
# hands over when somebody looks at it: $Q = x W_Q$, $K = x W_K$, $V = x W_V$. Each of the three matrices has 15 rows,
# one for each column of $x$. So **row r of a matrix says what becomes of column r of x**. Rows that are 0 are not read.
#
# Begin with a head of zeros: $W_Q$ and $W_K$ are 0, so nobody asks and nobody shows anything. Its $W_V$ hands over the
# tons. **Predict.** What does its map of weights look like?
#
# - **a** nothing: all weights are 0
# - **b** all alike: each ship looks at all ships equally
# - **c** each ship looks at itself

# %%
guess_zeros = None  # "a", "b" or "c"

# %%
W_Q, W_K, W_V = np.zeros((15, 2)), np.zeros((15, 2)), np.zeros((15, 1))
W_V[CARGO, 0] = 1  # the value of a ship is its tons
zeros = al.attention_trace(x @ W_Q, x @ W_K, x @ W_V)
ax = plot.attention_heatmap(
    zeros.weights, queries=ships, keys=ships, title="a head of zeros"
)
ax.figure.set_figheight(3.6)
print(f"each ship is handed {zeros.output[0, 0]:.2f} t")

# %%
predict.head_of_zeros(guess_zeros)

# %% [markdown]
# Every ship is handed 3.14 t, which is 22 t divided by 7. The six ships carry 3.67 t on average: the empty pilot boat
# is in the mean, too. Exercise 10.6 will leave it out.
#
# Now set two numbers. Let each A look at the ships B:

# %%
W_Q, W_K = np.zeros((15, 1)), np.zeros((15, 1))  # (15, d_k), d_k = 1
W_Q[A, 0] = 20  # a ship with flag A asks; Break it shows how far 20 goes
W_K[B, 0] = 1  # a ship with flag B shows a 1
trace = al.attention_trace(x @ W_Q, x @ W_K, x @ W_V)
ax = plot.attention_heatmap(
    trace.weights, queries=ships, keys=ships, title="A looks at B"
)
ax.figure.set_figheight(3.6)

# %% [markdown]
# The two ships A have the query 20, all others 0. The two ships B have the key 1, all others 0. So the score of an A
# with a B is $20 \cdot 1 / \sqrt{1} = 20$, and every other score is 0. Both ships B score 20, and share the weight. The
# other rows have equal scores, and look at all alike. (A row of this map is one query, as always.)
#
# The picture of the whole call shows each of these numbers. **Try.** Choose a query A, then a query C, and click a key.

# %%
two_numbers = live.flow(trace, queries=ships, query=1, key=2)
two_numbers

# %% [markdown]
# ## A · Ask, show, hand over
#
# **How a puzzle works.** Fill in the function: begin with zeros, set some rows, and return the matrices in the order
# that the text gives. You choose $d_k$, the number of columns of $W_Q$ and $W_K$. The scores are divided by
# $\sqrt{d_k}$, and you can't turn that off. `W_Q[FLAG]` means five rows at once, `W_Q[PLACE]` eight; `np.eye(5)` is the
# $5 \times 5$ matrix with ones on its diagonal. `FLAG` and `PLACE` are slices, so `PLACE.start` is the first of these rows.
#
# Run the cell, and what is wanted appears beside what your head does. Type another convoy (the pilot `*` first, then up
# to seven flags), or multiply your scores by moving *times*. Then run the check below it: it tries your head on convoys
# that you have not seen. Unless a puzzle says otherwise, each weight has to be within 0.01 of what is wanted. *times* is
# for looking only: it is not handed in. Any matrices that do it are right, and a mistake is named by what your head
# does. Hatched rows are free: anything goes there. Stuck? Run
# `verdict.hint()` in a cell of your own: each call goes one step further. The solution is folded below.


# %%
def see(puzzle, head, convoy="*ABACDB"):
    return live.compare(partial(puzzle.show, head), convoy=convoy)


def solved(puzzle, head):  # yours where it is right, else that of the solution
    return head() if puzzle(head).passed else puzzle.example()


# %% [markdown] tags=["exercise"]
# ### Exercise 10.1 · Look at yourself
#
# **Goal.** Make each ship look at itself, whatever its flag. *4 minutes, easy.*
#
# `my_self()` returns $W_Q$ and $W_K$. At least 0.99 of the weight of each row belongs on its diagonal.


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
# The dot product of two one-hot vectors is 1 where they are equal and 0 where not. So a block that is handed to both
# sides makes equal ones meet. How hard they meet is up to the factor.
#
# </details>

# %% [markdown]
# ## Break it · A factor that is too small
#
# Why 20? A ship that looks at one other, or at itself, has one score ahead of $n - 1$ others that are 0. Here are the
# scores of such a head with three factors, for a convoy of eight and $d_k = 8$:

# %%
rows = []
for factor in (5, 10, 20):
    scores = np.r_[factor, np.zeros(7)]  # (n,): one key is ahead of seven
    weights = al.softmax(scores / 8**0.5)
    rows.append((factor, factor / 8**0.5, weights[0]))
plot.table(["factor", "score / sqrt(d_k)", "weight of that key"], rows)

# %% [markdown]
# The weight of that key is $e^s / (e^s + 7)$ with $s$ the score after the division. For 0.99 it must be that
# $e^s = 99 \cdot 7$, so the factor is $\ln(99 \cdot 7) \cdot \sqrt 8$:

# %%
print(f"factor for 0.99: {np.log(99 * 7) * 8**0.5:.3f}, so take 19")

# %% [markdown]
# So 20 is safe for eight ships and $d_k$ up to 8. In a real model $d_k$ is not yours to choose: it is 64, say, also for a head that needs 8 features. The slider adds
# empty features to a head of 10.1: yours if it passes its check, else that of the solution, with factor 20. The numbers
# stay, all scores stay, and $\sqrt{d_k}$ grows. **Try.** Move $d_k$ to its end. At which stop of
# the slider has the ship at place 3, whose row is shown as bars, less than half of its weight on itself for the first time?

# %%
mine = solved(check.look_at_yourself, my_self)
eight, width = convoy("*ABACDBA"), mine[0].shape[1]  # (8, 15), d_k


def wider(d_k):
    Q, K = (np.pad(eight @ W, ((0, 0), (0, d_k - W.shape[1]))) for W in mine)
    scores = Q @ K.T  # (n, n): empty features add nothing
    divided = al.softmax(scores / d_k**0.5)
    return {"without the division": al.softmax(scores), "divided by sqrt(d_k)": divided}


softer = live.weights_view(
    wider, d_k=(width, 64 * width), still=(width, 8 * width, 64 * width), row=3
)
softer

# %% [markdown]
# With the first head of the solution it is at 128, where it has 0.46; at 96 it still has 0.52. (Half is where
# $20 / \sqrt{d_k} = \ln 7$, which is at $d_k = 106$. Another head gets there elsewhere, or not on this slider.) The same head grows
# softer and softer: a head that uses few of its features must use larger numbers.

# %% [markdown] tags=["exercise"]
# ### Exercise 10.2 · Your own flag
#
# **Goal.** Make each ship look at all ships of its flag, itself included, equally. *3 minutes, easy.*
#
# `my_flag()` returns $W_Q$ and $W_K$. The pilot has a flag of its own, and so looks at itself.


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
# A head cannot prefer one among equals: ships with equal keys share the weight. And on a circle two features are enough
# for five flags, as each is nearest to itself.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.3 · Who wants whom
#
# **Goal.** Make A look at B, B at C, C at D and D at A. The pilot looks at itself. *6 minutes, medium.*
#
# `my_wishes()` returns $W_Q$ and $W_K$. Every flag flies in each convoy of the check, so type such convoys here, too.


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
# def another():  # the keys carry the table: whoever is wanted by A shows an A
#     W_Q, W_K, wants = np.zeros((15, 5)), np.zeros((15, 5)), np.zeros((5, 5))
#     wants[[PILOT, A, B, C, D], [PILOT, B, C, D, A]] = 20
#     W_Q[FLAG], W_K[FLAG] = np.eye(5), wants.T
#     return W_Q, W_K
#
#
# see(check.who_wants_whom, my_wishes)
# ```
#
# Scores are $Q K^T = x\,W_Q W_K^T x^T$, so only the product $W_Q W_K^T$ counts: a table of who wants whom. How you
# split it into a query and a key is up to you, and so it is to training. With a small $d_k$ not every table of
# five flags can be had, since the rank of the product is at most $d_k$. Four features are always
# enough: to take its mean off a row of scores changes no weight, and a table without these means has rank 4 at most. Where
# each wants one flag alone, even two are enough: put the keys of the five flags on a circle, and let each query point to the
# flag that is wanted.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.4 · Where is C?
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
# A constant query asks for everybody. In a layer with a bias (notebook 04), the bias does this work, and no column `ONE`
# is needed.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.5 · What does C carry?
#
# **Goal.** Hand everybody the tons of C, and their mean if there are several. *3 minutes, easy.*
#
# `my_tons()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). The output counts, to 0.1 t, and not the map.


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
#     W_V[CARGO, 0] = 1  # what is handed over
#     return W_Q, W_K, W_V
#
#
# def another():  # each flag asks, in five features, for a C
#     W_Q, W_K, W_V = np.zeros((15, 5)), np.zeros((15, 5)), np.zeros((15, 1))
#     W_Q[FLAG, C], W_K[FLAG], W_V[CARGO, 0] = 20, np.eye(5), 1
#     return W_Q, W_K, W_V
#
#
# see(check.cargo_of_c, my_tons, "*ABCADB")
# ```
#
# C is found by its flag and hands over its cargo. What a ship is found by and what it hands over are two things: hence
# two matrices, $W_K$ and $W_V$.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.6 · Everybody but the pilot
#
# **Goal.** Hand everybody the mean tons of the ships, without the pilot, in convoys of any length. *5 minutes, medium.*
#
# `my_mean()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). The output counts, to 0.05 t.


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
# def another():  # everybody looks at places 1 to 7
#     W_Q, W_K, W_V = np.zeros((15, 1)), np.zeros((15, 1)), np.zeros((15, 1))
#     W_Q[ONE, 0], W_K[PLACE, 0] = 20, np.arange(8) > 0
#     W_V[CARGO, 0] = 1
#     return W_Q, W_K, W_V
#
#
# see(check.all_but_the_pilot, my_mean)
# ```
#
# Equal scores average, whatever the number of ships. A large negative score takes a key out of the average, as a mask
# does (notebook 05). There is one difference: a row with nothing but large negative scores still spends its 1, and a row
# that is masked as a whole does not.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.7 · Three to one
#
# **Goal.** Give each C exactly three times the weight of any other ship, in every row. *6 minutes, medium.*
#
# `my_ratio()` returns $W_Q$ and $W_K$. Here $d_k$ is 4. In a convoy `*ABC` each row is 1/6, 1/6, 1/6, 3/6. The weights
# count, to 0.005.


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
# Two weights compare as $e^{s_1} / e^{s_2} = e^{s_1 - s_2}$. So the difference of two scaled scores is the logarithm of
# the ratio of the weights, and the difference before the division is $\sqrt{d_k}$ times that.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.8 · Nothing to do
#
# **Goal.** Make A look at B. All other ships look at the pilot, and so does A where no B sails. *7 minutes, hard.*
#
# `my_parking()` returns $W_Q$ and $W_K$. Several ships B share. The pilot carries 0 t, so who looks at it is handed
# nothing.


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
# A softmax must spend its 1, whether there is something to find or not. A head with nothing to do needs a place to
# park, where little is handed over. Trained models have such places, too: notebook 09 shows one.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.9 · The ship in front
#
# **Goal.** Make each ship look at the one in front of it, and the pilot at itself. *5 minutes, medium.*
#
# `my_step()` returns $W_Q$ and $W_K$. There is no mask. In front of place $i$ is place $i - 1$.


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
# def another():  # 2(i - 1)j - j^2 is largest at j = i - 1, and for the pilot at j = 0
#     W_Q, W_K, place = np.zeros((15, 2)), np.zeros((15, 2)), np.arange(8)
#     W_Q[PLACE, 0], W_Q[ONE, 1] = 2 * (place - 1), 1
#     W_K[PLACE, 0], W_K[PLACE, 1] = 20 * place, -20 * place**2
#     return W_Q, W_K
#
#
# see(check.ship_in_front, my_step)
# ```
#
# With places a head can step. A step is a table again, of who wants whom, among places.
#
# </details>

# %% [markdown]
# ## B · Masks
#
# From here on you need masks (notebook 05), and in part C several heads and layers (06). If you have not read these, go on there
# and come back.

# %% [markdown] tags=["exercise"]
# ### Exercise 10.10 · The latest of my flag
#
# **Goal.** Make each ship look at the latest earlier ship of its flag, and at the pilot where there is none. *10
# minutes, hard.*
#
# `my_latest()` returns $W_Q$, $W_K$ and a mask of shape (8, 8), True = may attend; a convoy of $n$ ships uses its first
# $n$ rows and columns. Earlier means: nearer to the pilot, and not itself. What the pilot does is free.


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
# def another():  # a causal mask, and minus 5000 for looking at itself
#     W_Q, W_K = np.zeros((15, 14)), np.zeros((15, 14))
#     W_Q[FLAG, :5], W_K[FLAG, :5] = 1000 * np.eye(5), np.eye(5)
#     W_Q[ONE, PILOT], W_Q[ONE, 5], W_K[PLACE, 5] = 500, 40, np.arange(8)
#     W_Q[PLACE, 6:], W_K[PLACE, 6:] = -5000 * np.eye(8), np.eye(8)
#     return W_Q, W_K, np.tri(8, dtype=bool)
#
#
# see(check.latest_of_my_flag, my_latest, "*ABACDAB")
# ```
#
# Scores add up, so wishes can be ranked like the digits of a number: the flag counts hundreds, the place counts
# twenties.
#
# </details>

# %% [markdown] tags=["exercise"]
# ### Exercise 10.11 · Count with a witness
#
# **Goal.** Hand each ship $1 / (1 + c)$, where $c$ counts the ships of its flag so far, itself included. *7 minutes,
# medium.*
#
# `my_count()` returns $W_Q$, $W_K$ and $W_V$, with $W_V$ of shape (15, 1). The head is causal: a ship sees itself and
# what is in front of it. The output counts, to 0.01: 1/2 for a new flag, 1/3 for its second ship. What the pilot is
# handed is free.


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
#     W_V[PILOT, 0] = 1  # hand over its share
#     return W_Q, W_K, W_V
#
#
# def another():  # 1 minus the share of the ships
#     W_Q, W_K, _ = my_count()
#     W_V = np.zeros((15, 1))
#     W_V[ONE, 0], W_V[[A, B, C, D], 0] = 1, -1
#     return W_Q, W_K, W_V
#
#
# see(check.count_with_a_witness, my_count)
# ```
#
# A head averages; it can't add up. But one witness that is always there gets a share that tells how many it shares
# with.
#
# </details>

# %% [markdown]
# ## C · Heads together
#
# From here on you need several heads and $W_O$ (notebook 06).

# %% [markdown] tags=["exercise"]
# ### Exercise 10.12 · The difference
#
# **Goal.** Hand each ship its own tons minus those of the ship in front, and the pilot 0. *6 minutes, medium.*
#
# `my_difference()` returns two heads and $W_O$: `(W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2), W_O`. Each $W_V$ is (15, 1).
# The outputs of the two heads stand side by side, $(n, 2)$, and $W_O$ is (2, 1). There is no mask. The output counts,
# to 0.2 t.


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
# def another():  # the minus stands in W_V
#     own, front, _ = my_difference()
#     return own, (*front[:2], -front[2]), np.array([[1], [1]])
#
#
# see(check.difference, my_difference)
# ```
#
# Weights are never negative, so a head can only mix. $W_O$ (or $W_V$) may subtract what two heads have found.
#
# </details>

# %% [markdown]
# In the next exercise one layer writes what another one reads. To write into, $x$ has five more columns, which are
# empty:

# %%
from attnlib.course.convoy import NOTE

roomy = convoy("*ABCA", notes=True)  # (n, 20)
print(roomy.shape, " NOTE is", NOTE, " largest entry there:", roomy[:, NOTE].max())

# %% [markdown] tags=["exercise"]
# ### Exercise 10.13 · What came next
#
# **Goal.** Hand each ship the flag that sailed right behind the earlier ships of its own flag. *12 minutes, hard.*
#
# In `*ABCA` the last A has met an A before, and B sailed behind that one: it is handed B. If there were several, their
# mean; if there was none, anything goes, and the check skips such rows. One layer can't do that: a ship B doesn't know that it sails behind an A. So
# there are two layers, both causal. The first one adds what it finds to $x$, and the second one reads the sum: `x1 = x
# + head1(x)`, then `head2(x1)`. All matrices have 20 rows.
#
# `my_next()` returns both layers, `(W_Q1, W_K1, W_V1), (W_Q2, W_K2, W_V2)`. $W_{V1}$ is (20, 20): its rows say what is
# read, its columns where it is written. $W_{V2}$ is (20, 5): the five numbers of a flag. The output counts, to 0.05.


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
#     W_V2[FLAG] = np.eye(5)  # hand over its own
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
# The layers speak to each other through columns of $x$: one writes, the next one finds by it. Which columns and which
# code they use is nobody's business but theirs.
#
# </details>

# %% [markdown]
# Two such layers can write. What they hand to the last ship is a guess at the next flag, so a ship with that flag joins
# the convoy, and the layers read on. The cell takes your layers, or, where yours do not pass their check, those of the
# solution. Nothing in them was trained:


# %%
def causal_head(x, W_Q, W_K, W_V):
    return al.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V, is_causal=True)


def write_on(layers, flags, n=8):
    head1, head2 = layers
    while len(flags) < n:
        x = convoy(flags, notes=True)  # (n, 20)
        x1 = x + causal_head(x, *head1)  # (n, 20)
        out = causal_head(x1, *head2)  # (n, 5)
        flags += "*ABCD"[out[-1].argmax()]
    return flags


# %%
for begun in ("*ABCA", "*DBD", "*ACDBA", "*ABC"):
    written = write_on(solved(check.what_came_next, my_next), begun)
    print(f"{begun:<7} writes on: {written}")

# %% [markdown]
# Where the last flag has sailed before, always with the same flag behind it, that flag comes next: a rule for any flags and
# orders, and these layers have seen none. In `*ABC` nobody has sailed behind a C yet, and anything goes. Notebook 08 watches two
# trained layers find the same rule.

# %% [markdown] tags=["exercise"]
# ### Exercise 10.14 · No head can
#
# **Goal.** Find two groups of ships, with unequal numbers of A, for which no head hands the last ship different things.
# *6 minutes, medium.*
#
# Without pilot, places and cargo a ship is a flag and a 1. Write two texts of A to D, at most 12 letters each and of two
# flags or more. What the **last** ship is handed, without a mask, has to be the same for both texts, whatever the
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

# %% [markdown] tags=["predict"]
# Now a search. Each of 1000 random heads reads `CDB` and `CDBCDB`, and then `CDB` and `CDDB`. **Predict.** For which of
# the two pairs does some head hand the last ship different things?


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
# The second pair shows that the search could find something. For the first pair it fails. A search that fails proves
# nothing, but here there is a proof. Ships with one flag have the same row in $x$, hence the
# same key and the same value. Let the last ship ask, let $s_f$ be its scaled score with a ship of flag $f$ and $v_f$
# that ship's value, and let there be $n_f$ of them:
#
# $$\text{output} = \frac{\sum_j e^{s_j} v_j}{\sum_j e^{s_j}} = \frac{\sum_f n_f\, e^{s_f} v_f}{\sum_f n_f\, e^{s_f}}
# = \frac{\sum_f 2 n_f\, e^{s_f} v_f}{\sum_f 2 n_f\, e^{s_f}}.$$
#
# Twice as many of each: the 2 cancels. So such a head knows the shares of the flags, and not how many ships there are.
# Nor does it know their order, for a sum has none; it only knows which ship asks. A causal mask changes nothing of that,
# since for the last ship it hides nothing.
#
# Yet 10.11 counts. **Predict.** Take the head that counts, and give it the pair `CB`, `CBCB`, once behind a pilot and
# once without. When does its last ship get two different numbers?
#
# - **a** with the pilot
# - **b** without the pilot
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
        print(f"{told:<15} {flags:<5} the last ship is handed {out[-1, 0]:.2f}")

# %%
predict.witness(guess_witness)

# %% [markdown]
# The pilot is one among two, and one among three. That is why it is called a witness. A start token, with which many language
# models begin each text, can serve as one.

# %% [markdown] tags=["exercise"]
# ### Exercise 10.15 · Your own head
#
# **Goal.** Think of a rule, and program a head that follows it. *10 minutes, hard.*
#
# `my_own()` returns $W_Q$, $W_K$ and your rule, a function: `rule(flags, cargo)` gets the flags as a text and the tons
# as an array, and returns an $(n, n)$ array of True and False: True where ship $i$ should look. The flags begin with `*`
# and $n$ counts the pilot: in `*ABA` $n$ is 4. A row without True is free. Where several are heaviest, all are True. The check tries 50 random convoys and wants more than 0.9 of each row's weight where the rule is True. Some
# ideas: the heaviest ship, the last one, the ship two places in front, place $7 - i$ for place $i$ (free where no ship sails).


# %%
def my_own():
    W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))  # (15, d_k)
    # your code
    rule = ...  # a function: rule(flags, cargo) gives (n, n) of bool
    return W_Q, W_K, rule


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
# def another():  # two places in front
#     W_Q, W_K = np.zeros((15, 8)), np.zeros((15, 8))
#     W_Q[PLACE], W_K[PLACE] = 20 * np.eye(8, k=-2), np.eye(8)
#     return W_Q, W_K, lambda flags, cargo: np.eye(len(flags), k=-2) == 1
# ```
#
# </details>

# %% [markdown]
# ## See it · Heads that have names
#
# Close relatives of four of the heads that you have programmed are found in trained models, and have names there. Here they are on one
# convoy. A map is yours if it passes its check, else that of the solution.

# %%
known = {
    "10.2 duplicate token": (check.your_own_flag, my_flag),
    "10.8 parking": (check.nothing_to_do, my_parking),
    "10.9 previous token": (check.ship_in_front, my_step),
    "10.13 induction": (check.what_came_next, my_next),
}
flags, maps = "*ABCABCA", []
for puzzle, head in known.values():
    shown = puzzle.show(partial(solved, puzzle, head), flags)
    maps.append(shown.maps.get("head 2", shown.maps.get("yours")))
labels = {"queries": list(flags), "keys": list(flags)}
figure = plot.head_grid(np.stack(maps), titles=list(known), **labels)

# %% [markdown]
# - A **duplicate-token head** looks at earlier copies of its own token ([Wang et al.
#   2022](../REFERENCES.md#wang-2022)).
# - A head **parks** on a token that is always there and hands over little: an attention sink ([Xiao et al.
#   2023](../REFERENCES.md#xiao-2023)). Notebook 09 shows one.
# - A **previous-token head** and an **induction head** work together: notebook 08 trains both ([Olsson et al.
#   2022](../REFERENCES.md#olsson-2022)).
#
# Whole programs can be written in this way. RASP is a language for them ([Weiss et al. 2021](../REFERENCES.md#weiss-2021)), and
# Tracr turns what is written in it into weights ([Lindner et al. 2023](../REFERENCES.md#lindner-2023)).
#
# ## Try it
#
# 1. Let the eight places lie on a circle, in two features. One $2 \times 2$ rotation is the step to the place in front,
#    and the ring closes: place 0 looks at place 7.

# %%
angle = 2 * np.pi * np.arange(8) / 8
places = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (8, 2)
turn = np.array([[1, -1], [1, 1]]) / 2**0.5  # by an eighth of a circle
ring = al.attention_trace(40 * places @ turn, places, places).weights  # (8, 8)
print(
    "looks at:",
    *ring.argmax(axis=1),
    f"  smallest weight there {ring.max(axis=1).min():.4f}",
)

# %% [markdown] tags=["remember"]
# 2. Turn by two eighths. Which matrix does it, and whom does place 0 look at? (`turn @ turn`; at place 6.)
# 3. In 10.10, let the three numbers of the solution shrink alike. How small can they become before the check says no?
#    (240, 120 and 12 pass; 220, 110 and 11 do not.)
#
# **Remember.** $W_Q$ says what a ship asks, $W_K$ what it is found by, $W_V$ what it hands over. Besides $d_k$, only the
# product $W_Q W_K^T$ counts for the weights: a table of who wants whom (in a head without biases, which neither turns nor normalises queries and
# keys; 12 has heads that do). Equal scores share, differences of scores are logarithms of
# ratios, and a head that finds nothing needs a place to park. Layers speak through columns: one writes, the next finds
# by it. What a head can't do, it can't do with any numbers: it knows shares, not counts, unless a witness stands by.
# Next: [11 one token at a time](11_one_token_at_a_time.ipynb).

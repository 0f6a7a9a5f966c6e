# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # What did the class learn?
#
# Put your table as `answers.csv` beside this notebook, in the place of a simulated class, and run all cells;
# [README](README.md) says how the table looks. In the simulated class the course group has learned, by construction,
# and forgets a third of it within a week; the control group has learned nothing.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, "../..")  # the checkout this notebook lies in
from assess import inventory, simulated_class

common = {"scale_by_d_k": 0.6, "swapped_query_key": 0.2}  # a mistake, and the chance that somebody holds it
sheets = simulated_class.simulate_class(seed=0, learnt=1.2, later=0.8, common=common)
sheets = inventory.parse_sheets(Path("answers.csv")) if Path("answers.csv").exists() else sheets
counted = inventory.taught_until("06")  # "03" counts only what notebooks 01 to 03 teach
len(sheets), int(counted.sum())

# %% [markdown]
# ## The number that counts
#
# A person's gain is the share of right answers after less the share before. The course is worth what its group gained
# more than the control group, and no more.

# %%
for until in ("after", "later"):
    gain = {group: inventory.gains(sheets, group, until, counted) for group in inventory.GROUPS}
    for group, x in gain.items():
        print(f"{group}, before to {until}: {len(x)} people, mean {x.mean():+.2f}, spread {x.std(ddof=1):.2f}")
    estimate, low, high = inventory.interval(gain["course"], gain["control"])
    print(f"course less control: {estimate:+.2f}, 95 % interval {low:+.2f} to {high:+.2f}\n")

# %%
fig, ax = plt.subplots(figsize=(7, 2.6))
bins = np.arange(-0.625, 0.7, 1 / 12)
for group, color in (("course", "#0072B2"), ("control", "#D55E00")):
    ax.hist(inventory.gains(sheets, group, counted=counted), bins, histtype="step", color=color, label=group, lw=2)
ax.set(xlabel="gain of a person, as a share of the questions", ylabel="people")
ax.legend()
plt.show()

# %% [markdown]
# ## Which mistakes came back?
#
# A mistake that stands in three questions is chosen more often than one that stands in one. So count how often it was
# chosen out of the times it was offered. A guess takes it once in four.

# %%
course = [s for s in sheets if s.group == "course"]
before, after = (inventory.mistakes([s for s in course if s.when == when]) for when in ("before", "after"))
for id, (n, chosen) in sorted(before.items(), key=lambda row: -row[1][1] / row[1][0])[:8]:
    print(f"{id:<26} before {chosen:>3} of {n:<4} {chosen / n:.2f}   after {after[id][1] / after[id][0]:.2f}")

# %% [markdown]
# ## Which questions tell people apart?
#
# Discrimination is the correlation of a question with the sum of the others, among those who wrote its form before. In
# a small class chance alone moves it far, so read the interval. In one class no interval accuses a question; among 200
# sheets of a form, of several classes, an upper end below 0.1 does. Read that one again, aloud, with somebody who has
# not seen it.

# %%
before = {form: [s for s in sheets if (s.form, s.when) == (form, "before")] for form in "AB"}
found = {form: inventory.items(some) for form, some in before.items()}
for i, item in enumerate(inventory.ITEMS):
    told = (inventory.correlation_text(found[form][1][i], len(before[form])) for form in "AB")
    print(f"{i + 1:>2} {item['topic']:<34}", *(f"{text:>25}" for text in told))

# %% [markdown]
# ## How many people next time?
#
# The spread of the gains says how many people each group needs, so that a gain of a given size is seen in four of five
# classes.

# %%
spread = np.sqrt(np.mean([inventory.gains(sheets, g, counted=counted).var(ddof=1) for g in inventory.GROUPS]))
for gain in (0.05, 0.1, 0.15, 0.2):
    print(f"to see {gain:.2f} of the questions: {inventory.people(gain, spread):>4} people in each group")

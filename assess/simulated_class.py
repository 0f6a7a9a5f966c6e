"""Classes that take the test of docs/inventory and whose truth is known: for its tests and for its notebook.

A person has an ability, which says how likely an answer is right (a Rasch model, where one answer of four is guessed),
and mistakes, each held with a chance of its own; who is wrong takes a mistake that is held, if the item offers one.
"""

import numpy as np

from . import inventory

HARD = np.linspace(-1.5, 1.5, len(inventory.ITEMS))


def chances(ability, noise=()):
    """Return how likely each person is right, (n, items); items in `noise` are only guessed."""
    p = 0.25 + 0.75 / (1 + np.exp(HARD - np.asarray(ability)[:, None]))
    p[:, list(noise)] = 0.25
    return p


def sheet(rng, person, group, when, form, ability, noise=(), held=frozenset()):
    """Return the sheet of one person at one time."""
    right = rng.random(len(HARD)) < chances([ability], noise)[0]
    letters = []
    for item, is_right in zip(inventory.ITEMS, right, strict=True):
        means = {x: item[form][x][1] for x in inventory.LETTERS}
        fitting = [x for x, id in means.items() if (id == inventory.RIGHT) == is_right]
        fitting = [x for x in fitting if means[x] in held] or fitting
        letters.append(fitting[int(rng.random() * len(fitting))])
    return inventory.Sheet(person, group, when, form, tuple(letters))


def simulate_class(seed, learnt, n=25, forgot=0.0, later=None, common=None):
    """Return the sheets of a course and a control group of n people each.

    Parameters
    ----------
    learnt, forgot : float
        What the course and the control group gain, on the scale of ability.
    later : float, optional
        What the course group still has a week later; without it nobody writes again.
    common : dict, optional
        Mistake -> the chance that somebody holds it.
    """
    rng, sheets = np.random.default_rng(seed), []
    for group, gain in (("course", learnt), ("control", forgot)):
        for i, ability in enumerate(rng.normal(-0.5, 0.8, n)):
            first, second = "AB" if i % 2 else "BA"
            held = {id for id, p in (common or {}).items() if rng.random() < p}
            times = [("before", first, 0), ("after", second, gain)]
            times += [] if later is None else [("later", second, later if group == "course" else forgot)]
            sheets += [
                sheet(rng, f"{group}{i}", group, when, form, ability + more, (), held) for when, form, more in times
            ]
    return sheets

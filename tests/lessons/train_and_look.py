"""Answers of the lesson train_and_look, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al

PARTS = "queries", "keys", "values"


def patch_by_branches(layer, x, written, part):
    if part == "queries":
        return layer(x - written, x, x)
    if part == "keys":
        return layer(x, x - written, x)
    return layer(x, x, x - written)


def patch_by_position(layer, x, written, part):
    three = [x, x, x]
    three[PARTS.index(part)] = x - written
    return layer(*three)


def patch_by_factor(layer, x, written, part):
    return layer(*(x + (part == name) * -1 * written for name in PARTS))


def by_matching_letters(weights, tokens):
    """In torch: the letter before key j is the letter of query i."""
    weights, tokens = torch.as_tensor(weights), torch.as_tensor(tokens)
    before = torch.cat([torch.full_like(tokens[:, :1], -1), tokens[:, :-1]], dim=1)
    return (weights * (before[:, None, :] == tokens[:, :, None])[:, None]).sum(-1).mean((0, -1))


def by_loops_over_copies(weights, tokens):
    score, count = np.zeros(weights.shape[1]), 0
    for b, row in enumerate(tokens):
        for i in range(len(row)):
            for j in range(1, i):
                if row[j - 1] == row[i]:
                    score, count = score + weights[b, :, i, j], count + 1
    return score / count


def by_best_earlier_match(weights, tokens):
    """How often the key with the most weight is one that follows a copy."""
    best = np.asarray(weights).argmax(-1)  # (b, h, n)
    before = np.concatenate([np.full_like(tokens[:, :1], -1), tokens[:, :-1]], axis=1)
    return [np.mean([before[b, best[b, h]] == tokens[b] for b in range(len(tokens))]) for h in range(weights.shape[1])]


def back_by(*distances):
    def measure(weights, tokens):
        return sum(np.diagonal(weights, -by, axis1=-2, axis2=-1).sum((0, -1)) for by in distances)

    return measure


def on_what_comes_next(weights, tokens):
    comes = tokens[:, 1:, None] == tokens[:, None, :]  # (b, n - 1, n)
    return (weights[:, :, :-1] * comes[:, None]).sum(-1).mean((0, -1))


def patched(bare=lambda x, w: x - w, order="queries keys values", others=False):
    """Return the experiment with one thing other than it should be."""
    return lambda layer, x, w, part: layer(*(bare(x, w) if (part == name) != others else x for name in order.split()))


RIGHT = {
    "bag_accuracy": [0.75, 3 / 4, torch.tensor(0.75)],
    "patch": [patch_by_branches, patch_by_position, patch_by_factor],
    "induction_measure": [by_matching_letters, by_loops_over_copies, by_best_earlier_match],
}

LEARNERS = {
    "bag_accuracy": {
        "coin flip": ("majority_as_coin_flip", 0.625, "equally likely to be the answer", "0.75"),
        "the number above": ("digits_above_taken", 0.287, "belongs to the ten tokens above", "0.75"),
        "per cent": ("accuracy_in_per_cent", 75, "a share: of 1", "0.75"),
    },
    "patch": {
        "keys and values exchanged": ("wrong_part_patched", patched(order="queries values keys"), "another part"),
        "always the keys": ("part_ignored", lambda layer, x, w, part: layer(x, x - w, x), "one answer"),
        "the others": ("other_parts_patched", patched(others=True), "is enough"),
        "all three": ("every_part_patched", lambda layer, x, w, part: layer(x - w, x - w, x - w), "all three"),
        "x as it is": ("nothing_patched", lambda layer, x, w, part: layer(x, x, x), "its own input"),
        "written": ("written_alone", patched(lambda x, w: w), "nothing else"),
        "added": ("written_twice", patched(lambda x, w: x + w), "once more"),
        "zeros": ("everything_taken_away", patched(lambda x, w: np.zeros_like(x)), "zeros"),
        "another sequence": ("batch_mixed", patched(lambda x, w: (x - w)[::-1]), "another sequence"),
        "the mean": ("batch_mixed", patched(lambda x, w: x - w.mean(axis=0, keepdims=True)), "a mean"),
        "the first": ("batch_mixed", patched(lambda x, w: x - w[0]), "another sequence"),
    },
    "induction_measure": {
        "the diagonal": (
            None,
            lambda w, t: np.diagonal(w, axis1=-2, axis2=-1).mean((0, -1)),
            "the induction head is",
            "evenly",
        ),
        "evenly": ("broadest_head_measured", lambda w, t: al.entropy(w).mean((0, -1)), "evenly"),
        "7 back": ("fixed_distance_measured", back_by(7), "fixed number", "copy itself"),
        "11 back": ("fixed_distance_measured", back_by(11), "fixed number", "copy itself"),
        "period 8": ("fixed_distance_measured", back_by(7, 15), "fixed number", "copy itself"),
        "next": ("next_letter_measured", on_what_comes_next, "No head can know", "copy itself"),
    },
}

"""The test before and after: every option is computed, and the analysis finds the truth of simulated classes."""

import csv

import numpy as np
import pytest

import attnlib as al
from attnlib.course import MISTAKES
from tools import inventory

ITEMS = inventory.ITEMS


def numbers(x):
    return ", ".join(f"{v:.2f}" for v in np.atleast_1d(x))


def places(mask):
    return ", ".join(str(i) for i in np.flatnonzero(mask) + 1)


def share(e):
    return e / e.sum()


def score(q1, k1, q2, k2):
    return {
        "right": f"{np.dot(q1, k2)}",
        "swapped_query_key": f"{np.dot(k1, q2)}",
        "query_met_others": f"{np.dot(q1, q2)}",
        "wrong_token": f"{np.dot(q1, k1)}",
    }


def softmax(scores):
    e = np.exp(scores)
    found = {"right": al.softmax(scores), "no_exponential": scores / scores.sum(), "powers_of_two": share(2.0**scores)}
    return {id: numbers(x) for id, x in (found | {"divided_by_largest": e / e.max()}).items()}


def axis(e):
    weights = al.softmax(np.log(e))
    found = {
        "right": weights,
        "softmax_over_queries": al.softmax(np.log(e), axis=0),
        "softmax_over_everything": share(e),
    }
    return {id: numbers(x[0]) for id, x in (found | {"weights_transposed": weights.T}).items()}


def divisor(d_k, d_v, dot):
    found = {"right": dot / d_k**0.5, "scale_by_d_k": dot / d_k, "no_scale": dot, "scale_by_d_v": dot / d_v**0.5}
    return {id: numbers(x) for id, x in found.items()}


def when_divided(d_k, dots):
    found = {
        "right": al.softmax(dots / d_k**0.5),
        "scale_after_softmax": al.softmax(dots) / d_k**0.5,
        "no_scale": al.softmax(dots),
        "scale_by_d_k": al.softmax(dots / d_k),
    }
    return {id: numbers(x) for id, x in found.items()}


def output(weights, keys, values):
    found = {
        "right": weights @ values,
        "keys_for_values": weights @ keys,
        "argmax_instead_of_softmax": values[weights.argmax()],
        "everybody_alike": values.mean(),
    }
    return {id: numbers(x) for id, x in found.items()}


def causal(n, i):
    row = al.causal_mask(n)[i - 1]
    found = {"right": row, "mask_inverted": ~row, "mask_blocks_diagonal": np.tri(n, k=-1)[i - 1]}
    return {id: places(x) for id, x in (found | {"mask_shows_the_next": np.tri(n, k=1)[i - 1]}).items()}


def masked(e):
    mask, scores = np.array([True, True, False]), np.log(e)
    found = {
        "right": al.softmax(np.where(mask, scores, -np.inf)),
        "mask_after_softmax": al.softmax(scores) * mask,
        "mask_multiplies_scores": al.softmax(scores * mask),
        "mask_ignored": al.softmax(scores),
    }
    return {id: numbers(x) for id, x in found.items()}


def cached(n_q, n_k):
    row = al.causal_mask(n_q, n_k, align="lower_right")[0]
    itself = np.arange(n_k) == n_k - n_q
    found = {"right": row, "causal_upper_left": np.tri(n_q, n_k)[0], "past_not_attended": itself}
    return {id: places(x) for id, x in (found | {"mask_blocks_diagonal": row & ~itself}).items()}


def of_head(embed_dim, heads):
    d_k = embed_dim // heads
    found = {
        "right": d_k**0.5,
        "scale_by_embed_dim": embed_dim**0.5,
        "scale_by_d_k": d_k,
        "scale_by_num_heads": heads**0.5,
    }
    return {id: numbers(x) for id, x in found.items()}


def first_head(d, heads):
    x = np.arange(1, d + 1)
    found = {
        "right": al.split_heads(x[None], heads)[0, 0],
        "heads_interleaved": x[::heads],
        "features_never_split": x,
        "block_as_wide_as_heads": x[:heads],
    }
    return {id: ", ".join(map(str, x)) for id, x in found.items()}


def padded(lengths):
    row = al.padding_mask(lengths, max(lengths))[0, 0]
    hidden = np.arange(max(lengths)) < lengths[0] - 1
    found = {"right": row, "mask_inverted": ~row, "last_token_hidden": hidden, "mask_ignored": row | True}
    return {id: places(x) for id, x in found.items()}


A = np.array
COMPUTED = [
    (score, ((1, 2), (2, 0), (3, 1), (1, 1)), ((2, 1), (1, 3), (1, 1), (3, 1))),
    (softmax, (A([2.0, 0]),), (A([1.0, 0]),)),
    (axis, (A([[1, 3], [1, 1]]),), (A([[4, 1], [2, 3]]),)),
    (divisor, (16, 9, 8), (64, 16, 32)),
    (when_divided, (4, A([4.0, 0])), (9, A([9.0, 0]))),
    (output, (A([0.25, 0.75]), A([2, 10]), A([8, 4])), (A([0.9, 0.1]), A([3, 5]), A([10, 20]))),
    (causal, (5, 3), (6, 4)),
    (masked, (A([1, 1, 2]),), (A([4, 1, 5]),)),
    (cached, (1, 5), (2, 6)),
    (of_head, (64, 4), (144, 9)),
    (first_head, (8, 4), (6, 2)),
    (padded, ([3, 5],), ([4, 6],)),
]


@pytest.mark.parametrize("i", range(12))
@pytest.mark.parametrize("form", ["A", "B"])
def test_every_option_is_what_its_mistake_gives(i, form):
    compute, *given = COMPUTED[i]
    options = {ITEMS[i][form][letter][1]: ITEMS[i][form][letter][0] for letter in inventory.LETTERS}
    assert options == compute(*given["AB".index(form)])
    assert len(set(options.values())) == 4 and set(options) - {"right"} <= set(MISTAKES)


def test_the_forms_are_parallel_and_no_letter_is_the_better_guess():
    assert len(ITEMS) == len(COMPUTED) == 12
    for item in ITEMS:
        assert {item["A"][x][1] for x in "abcd"} == {item["B"][x][1] for x in "abcd"}
    for form in "AB":
        assert sorted(x for item in ITEMS for x in "abcd" if item[form][x][1] == "right") == list("aaabbbcccddd")
        assert (inventory.FOLDER / f"form_{form}.md").read_text("utf-8") == inventory.form(form)
        assert not any(id in inventory.form(form) for id in MISTAKES)


# --- the analysis, on classes whose truth is known

HARD = np.linspace(-1.5, 1.5, 12)


def chances(ability, noise=()):
    """Return how likely each person is right, (n, 12): one of four is guessed, the rest is a Rasch model."""
    p = 0.25 + 0.75 / (1 + np.exp(HARD - np.asarray(ability)[:, None]))
    p[:, list(noise)] = 0.25
    return p


def sheet(rng, person, group, when, form, ability, noise=()):
    right = rng.random(12) < chances([ability], noise)[0]
    letters = []
    for item, is_right in zip(ITEMS, right, strict=True):
        fitting = [x for x in inventory.LETTERS if (item[form][x][1] == "right") == is_right]
        letters.append(fitting[int(rng.random() * len(fitting))])
    return inventory.Sheet(person, group, when, form, tuple(letters))


def simulated(seed, learnt, n=25, forgot=0.0):
    """Return the sheets of a class and its control, which learn so much on the scale of ability."""
    rng, sheets = np.random.default_rng(seed), []
    for group, gain in (("course", learnt), ("control", forgot)):
        for i, ability in enumerate(rng.normal(-0.5, 0.8, n)):
            first, second = "AB" if i % 2 else "BA"
            sheets.append(sheet(rng, f"{group}{i}", group, "before", first, ability))
            sheets.append(sheet(rng, f"{group}{i}", group, "after", second, ability + gain))
    return sheets


def true_gain(learnt):
    ability = np.random.default_rng(1).normal(-0.5, 0.8, 100_000)
    return (chances(ability + learnt) - chances(ability)).mean()


def test_the_interval_holds_the_true_gain_in_95_of_100_classes():
    truth, held, outside = true_gain(1.0), 0, 0
    for seed in range(200):
        sheets = simulated(seed, 1.0, n=15)
        _, low, high = inventory.interval(inventory.gains(sheets, "course"), inventory.gains(sheets, "control"))
        held += low <= truth <= high
        _, low, high = inventory.interval(inventory.gains(sheets, "control"))  # who learn nothing
        outside += not low <= 0 <= high
    assert 0.1 < truth < 0.2 and 182 <= held <= 198 and outside <= 18, (truth, held, outside)


def test_difficulty_and_discrimination_are_those_of_the_model():
    rng = np.random.default_rng(0)
    ability = rng.normal(0, 1.2, 600)
    sheets = [sheet(rng, str(i), "course", "before", "A", a, noise=[4]) for i, a in enumerate(ability)]
    share, apart = inventory.items(sheets)
    assert np.abs(share - chances(ability, [4]).mean(0)).max() < 0.06
    assert abs(apart[4]) < 0.1 and np.delete(apart, 4).min() > 0.1
    constant = [
        s._replace(letters=tuple(next(x for x in "abcd" if i["A"][x][1] == "right") for i in ITEMS)) for s in sheets
    ]
    assert np.isnan(inventory.items(constant)[1]).all()


def written(tmp_path, sheets, columns=None):
    path = tmp_path / "answers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns or ["person", "group", "when", "form", *range(1, 13)])
        writer.writerows([s.person, s.group, s.when, s.form, *s.letters] for s in sheets)
    return path


def test_a_table_is_read_and_told(tmp_path):
    sheets = simulated(0, 1.5)
    assert inventory.read(written(tmp_path, sheets)) == sheets
    text = inventory.told(sheets)
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 25 and len({len(line) for line in table}) == 1  # the columns are aligned
    n = sum(c == "no_scale" for s in sheets if s.when == "before" for c in s.chosen)
    assert "course: 25 wrote both times; gain: +0." in text and "course less control: +0." in text
    assert next(line.split()[1] for line in text.splitlines() if line.startswith("no_scale ")) == str(n)
    alone = inventory.told([s for s in sheets if s.group == "course"])
    assert "no control: the gain may come from anything" in alone
    assert "an interval needs 5 people" in inventory.told(sheets[:6])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"group": "class"}, r"line 2: group is course or control, got 'class'. Fix"),
        ({"when": "later"}, r"line 2: when is before or after, got 'later'. Fix"),
        ({"form": "C"}, r"line 2: form is A or B, got 'C'. Fix"),
        ({"letters": ("e", *"bcdabcdabcd")}, r"line 2: question 1 has 'e'. Expected a, b, c, d or nothing. Fix"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(tmp_path, change, says):
    first, *others = simulated(0, 1.0)
    with pytest.raises(ValueError, match=says):
        inventory.read(written(tmp_path, [first._replace(**change), *others]))


def test_a_table_from_a_spreadsheet_is_read_and_a_forgotten_comma_is_seen(tmp_path):
    sheets = simulated(0, 1.0)
    path = written(tmp_path, sheets)
    path.write_text("\ufeff" + path.read_text("utf-8"), encoding="utf-8")
    assert inventory.read(path) == sheets
    head, first, *others = path.read_text("utf-8-sig").splitlines()
    for line, cells in ((first.replace("before,", "before"), 15), (f"{first},a", 17)):
        path.write_text("\n".join([head, line, *others]), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"line 2: expected 16 cells, got {cells}. Fix"):
            inventory.read(path)


def test_a_table_with_other_columns_or_a_person_twice_says_so(tmp_path):
    sheets = simulated(0, 1.0)
    with pytest.raises(ValueError, match=r"expected the columns person,group.+ got \['who'.+ Fix"):
        inventory.read(written(tmp_path, sheets, ["who", "group", "when", "form", *range(1, 13)]))
    with pytest.raises(ValueError, match=r"is there twice. Fix"):
        inventory.read(written(tmp_path, [*sheets, sheets[0]]))

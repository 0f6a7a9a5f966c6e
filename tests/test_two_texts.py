"""Lesson two_texts: the task, the translator in both twins, its stored trainings, and what its text says of them."""

import datetime
import re
from functools import partial

import numpy as np
import pytest
import torch
from lessons.multi_head import Layer

import attnlib as al
from attncourse import check, dates
from attncourse.lessons.two_texts import translators
from attnlib.torch_layers import MultiHeadAttention
from tools.build_notebooks import code_between
from tools.record_results import causal_between, cells_of_the_translator
from tools.series import select_notebooks


@pytest.fixture(autouse=True)
def denormal():
    yield
    torch.set_flush_denormal(False)  # the notebook sets it, and other tests in this process draw such numbers


@pytest.fixture(scope="module")
def new():
    return dates.draw(500, np.random.default_rng(1))  # as in the notebook


def test_every_form_of_every_day_says_one_day():
    """No two days share a text, each text has its parts, and none is longer than there are places."""
    first = datetime.date(1900, 1, 1)
    days = [first + datetime.timedelta(days=i) for i in range(0, 73_049, 7)]
    found = dates.of([(day, form) for day in days for form in dates.FORMS])
    meant = set(zip(found.texts, found.iso, strict=True))  # two forms of a day in May are one
    assert len({text for text, _ in meant}) == len(meant) and max(map(len, found.texts)) <= dates.LONGEST
    assert all(set(text) <= set(dates.LETTERS) for text in found.texts)
    for part in dates.PARTS.keys() - {"weekday"}:
        assert dates.letters_in(found.texts[:700], part).any(axis=1).all()
    years = [
        "".join(np.array([*text])[row[: len(text)]])
        for text, row in zip(found.texts, dates.letters_in(found.texts, "year"), strict=True)
    ]
    assert years == [iso[:4] for iso in found.iso]


def test_another_letter_is_another_of_its_kind():
    letters = np.arange(len(dates.LETTERS))
    for seed in range(20):
        others = dates.another(letters, np.random.default_rng(seed))
        assert (others != letters).all()
        kinds = [dates.LETTERS[i].isdigit() == dates.LETTERS[j].isdigit() for i, j in zip(letters, others, strict=True)]
        assert all(kinds)


def test_a_letter_that_the_model_does_not_know_is_named():
    with pytest.raises(ValueError, match=r"may hold only .*'25 Nowember 1985' holds 'w'\. Fix: "):
        dates.letters_of(["25 November 1985", "25 Nowember 1985"])
    with pytest.raises(TypeError, match=r"list of str, got one str\. Fix: write \['1985 Nov 25'\]"):
        dates.letters_of("1985 Nov 25")


def test_what_try_it_offers_can_be_written():
    (notebook,) = select_notebooks(["two_texts"])
    told = " ".join(notebook.source.read_text("utf-8").split("# ## Try it")[1].split("**Remember.**")[0].split("\n#"))
    offered = re.findall(r"\[\"(.+?)\"\]", told) + re.findall(r"\*(25 [^*]+)\*", told)
    texts = [" ".join(text.split()) for text in offered]
    assert len(texts) == 3 == len(dates.translate(dates.load(), texts)[0])


def test_what_try_it_replies():
    model, source = dates.load(), select_notebooks(["two_texts"])[0].source.read_text("utf-8")
    texts = ["1985 Nov 25", "25 Novomber 1985", "25 Movember 1985"]
    assert dates.translate(model, texts)[0] == ["2025-11-19", "1985-11-25", "1985-01-25"]
    assert "2. 2025-11-19. The month is right, but 25 is read as the year and 19 as the day" in source
    assert all(form.endswith("{year}") for form in dates.FORMS)
    front = dates.draw(300, np.random.default_rng(5)).iso  # the year in front: the month is right, year and day are not
    named = [f"{day.year} {day:%b} {day.day}" for day in map(datetime.date.fromisoformat, front)]
    written = dates.translate(model, named)[0]
    right = [np.mean([ours[part] == iso[part] for ours, iso in zip(written, front, strict=True)]) for part in PARTS]
    assert right[1] > 0.9 > 0.1 > max(right[0], right[2])


PARTS = slice(0, 4), slice(5, 7), slice(8, 10)  # year, month, day


def test_an_arrow_of_the_first_picture_runs_from_a_9_to_a_1():
    (written,), weights = dates.translate(dates.load(), [dates.EXAMPLE])
    at = weights[0].max(axis=0).argmax(axis=-1)
    assert (dates.EXAMPLE[at[0]], written[0]) == ("9", "1") and dates.EXAMPLE[at[0] - 1 : at[0] + 3] == "1985"


def test_a_month_can_lose_its_second_letter_and_not_its_first():
    """As section 5 says of N?vember and ?ovember, with every other letter at the ?."""
    letters = [letter for letter in dates.LETTERS if letter.isalpha()]

    def read(month, letters):
        texts = [form.format(month.replace("?", c)) for form in ("25 {} 1985", "{} 25, 1985") for c in letters]
        return np.mean([iso[5:7] == "11" for iso in dates.translate(dates.load(), texts)[0]])

    assert read("N?vember", letters) == 1 and read("?ovember", [c for c in letters if c != "N"]) < 0.1


@pytest.mark.parametrize("attention", [MultiHeadAttention, partial(MultiHeadAttention, bias=False), Layer])
def test_both_twins_compute_the_same(new, attention):
    """The class of the notebook, with our module or a reader's, and the NumPy model made of it."""
    names = cells_of_the_translator()
    names["MultiHeadAttention"] = attention  # where the cell looks it up
    torch.manual_seed(0)
    module = names["Translator"]()
    letters, digits = torch.tensor(new.letters[:5]), torch.tensor(new.digits[:5, :-1])
    with torch.no_grad():
        logits, weights = module(letters, new.lengths[:5], digits)
    ours, mask = dates.from_torch(module), al.padding_mask(new.lengths[:5], letters.shape[1])
    found = ours.decode(new.digits[:5, :-1], ours.encode(new.letters[:5], mask), mask)
    for one, other in zip(found, (logits, weights), strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=2e-4)


@pytest.mark.parametrize("seed", dates.SEEDS)
def test_what_the_text_says_holds_in_three_trainings(seed, new):
    model = dates.load(seed)

    def right(other):
        return dates.share_right(dates.translate(other, new.texts)[0], new)

    whole = right(model)
    assert whole >= 0.99
    assert right(dates.as_if(model, 0.125)) >= whole - 0.01  # sharper costs next to nothing
    assert right(dates.as_if(model, 1024)) < 0.75  # paler spoils it
    letters, mask = new.letters, al.padding_mask(new.lengths, new.letters.shape[1])
    context = model.encode(letters, mask)
    for spoiled, most in (((context,), 0.65), ((None,), 0.0), ((np.roll(context, -1, 0), np.roll(mask, -1, 0)), 0.01)):
        written, _ = dates.greedy(lambda digits, spoiled=spoiled: model.decode(digits, *spoiled), len(new.texts))
        assert dates.share_right(written, new) <= most


WORDED = {"rate 0.004": (4, 0.75, 0.93), "rate 0.01": (3, 0.07, 0.94)}  # trainings, dates right at least and at most


def test_trained_with_a_triangle_the_encoder_carries_the_year_to_the_front():
    """As the cells of the notebook count it: the way is needed by that model, and not by the healthy one."""
    names = run(
        ("two_texts", "# ", "## Exercises"), only=("texts, lengths", "def with_triangle", "late =", "years_right")
    )
    hiding, padding, cut = dates.load("causal"), names["padding"], names["cut"]
    years, writing, triangle = names["years_right"], names["writing"], names["with_triangle"]
    model = names["model"]
    assert years(triangle(hiding)) > 0.9 and years(triangle(hiding, cut)) < 0.02
    assert years(writing(model.encode(names["texts"], cut), padding)) > 0.99
    ends = {
        rate: [right for name, (_, right) in dates.recorded()["triangle"].items() if rate in name] for rate in WORDED
    }
    assert {
        rate: (len(rights), round(min(rights), 2), round(max(rights), 2)) for rate, rights in ends.items()
    } == WORDED
    late_at_its_front = names["late"].mean()
    assert 0.5 < late_at_its_front < 0.75


def run(between, only):
    """Run those cells of a notebook that hold certain words, on the stored model, and return what they define."""
    names = {"np": np, "al": al, "dates": dates, "model": dates.load(), "plot": None}
    names["new"] = dates.draw(500, np.random.default_rng(1))
    for cell in code_between(*between):
        if any(words in cell for words in only) and "plot." not in cell:
            exec(cell, names)
    return names


def test_what_is_stored_can_be_trained_again():
    """A few steps from the same seed fall as the stored loss does; a triangle between the texts is really there."""
    names = cells_of_the_translator()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = names["Translator"]()
    losses = names["train"](model, names["draw"], names["loss"], steps=20, lr=0.01, seed=0).losses
    assert np.mean(losses) == pytest.approx(dates.recorded()["loss"]["seed 0"][0], abs=0.02)
    _, weights = causal_between(model)(torch.tensor([[3] * 12]), np.array([12]), torch.tensor([[11, 1, 9]]))
    assert weights.detach().triu(1).abs().max() == 0 < weights.detach()[..., 1, 0].min()


@pytest.mark.parametrize("answer", ["B", ("B",), ("D", "c"), ("B", "f"), ("", "c"), 3])
def test_two_letters_are_asked_for(answer):
    verdict = check.sick_translator(answer)
    assert verdict.state == "wrong" and not verdict.mistake and "Fix: " in verdict.message


def test_one_of_three_translators_is_sick_and_only_in_company(new):
    shares = {name: dates.share_right(one(new.texts)[0], new) for name, one in translators().items()}
    assert shares["A"] > 0.99 < shares["C"] and shares["B"] < 0.6
    alone = [translators()["B"]([text])[0][0] for text in new.texts[:40]]
    assert alone == new.iso[:40]
    maps = {name: one([dates.EXAMPLE])[1].max(-1).mean() for name, one in translators().items()}
    assert maps["A"] > maps["B"] > maps["C"]  # sharper, its own, paler

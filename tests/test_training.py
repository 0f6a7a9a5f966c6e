"""The training loop: what it learns, keeps, repeats and refuses."""

import doctest

import pytest
import torch
from torch import nn

from attncourse import training
from attncourse.training import lookup
from attnlib.torch_layers import SelfAttention
from bench.training import sections


class Last(nn.Module):
    """Copy the first token to the last place: needs attention, learned in some steps."""

    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(4, 16), nn.Embedding(3, 16)
        self.attention, self.read = SelfAttention(16, 16), nn.Linear(16, 4)

    def forward(self, tokens):
        output, weights = self.attention(self.token(tokens) + self.position.weight)
        return self.read(output[:, -1]), weights


def draw(generator):
    return torch.randint(4, (64, 3), generator=generator)


def loss(model, tokens):
    return nn.functional.cross_entropy(model(tokens)[0], tokens[:, 0])


def accuracy(model):
    tokens = draw(torch.Generator().manual_seed(1))
    return (model(tokens)[0].argmax(-1) == tokens[:, 0]).float().mean().item()


def run(**options):
    torch.manual_seed(0)
    model = Last()
    return model, training.train(model, draw, loss, **{"steps": 60, "lr": 1e-2, **options})


def test_it_learns_and_keeps_what_was_asked():
    model, history = run(every=25, measure=accuracy)
    assert len(history.losses) == 60 and history.losses[-1] < 0.3 < history.losses[0]
    assert list(history.measured) == list(history.snapshots) == [0, 25, 50, 60]
    assert history.measured[0] < 0.7 and history.measured[60] == accuracy(model) > 0.95


def test_nothing_is_kept_unasked():
    _, history = run(steps=3)
    assert (history.measured, history.snapshots, len(history.losses)) == ({}, {}, 3)


def test_snapshots_are_copies_that_run_again():
    model, history = run(every=30)
    tokens = draw(torch.Generator().manual_seed(2))
    torch.manual_seed(0)
    fresh = Last()
    then = torch.func.functional_call(model, history.snapshots[0], (tokens,))[0]
    assert torch.equal(then, fresh(tokens)[0])
    assert torch.equal(torch.func.functional_call(model, history.snapshots[60], (tokens,))[0], model(tokens)[0])
    assert not torch.equal(then, model(tokens)[0])


def test_measuring_changes_nothing_and_needs_no_gradient():
    def measure(model):
        assert not torch.is_grad_enabled()
        return accuracy(model)

    plain, measured = run()[0], run(every=7, measure=measure)[0]
    for a, b in zip(plain.parameters(), measured.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_seed_decides_the_batches():
    assert run(steps=5)[1].losses == run(steps=5, seed=0)[1].losses != run(steps=5, seed=1)[1].losses


def test_a_progress_bar_is_silent_without_a_notebook(capsys):
    run(steps=2, description="training")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1, got 0"),
        ({"steps": 2.5}, TypeError, "steps must be a whole number"),
        ({"every": 0}, ValueError, "every must be at least 1"),
        ({"lr": 0}, ValueError, "lr must be a positive number, got 0"),
        ({"lr": "1e-3"}, ValueError, "lr must be a positive number, got '1e-3'"),
        ({"lr": float("nan")}, ValueError, "lr must be a positive number"),
        ({"measure": accuracy}, ValueError, "expected every="),
    ],
)
def test_bad_options_are_named(options, error, words):
    with pytest.raises(error, match=words) as caught:
        run(**options)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (lambda m, t: nn.functional.cross_entropy(m(t)[0], t[:, 0], reduction="none"), TypeError, r"shape \(64,\)"),
        (lambda m, t: loss(m, t).item(), TypeError, "got float"),
        (lambda m, t: loss(m, t).detach(), TypeError, "depends on the model"),
        (lambda m, t: loss(m, t) * float("inf"), ValueError, "got inf at step 1"),
    ],
)
def test_bad_losses_are_named(bad, error, words):
    with pytest.raises(error, match=words) as caught:
        training.train(Last(), draw, bad, steps=2, lr=1e-3)
    assert "Fix: " in str(caught.value)


def test_examples_run():
    result = doctest.testmod(training, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0


def test_the_bench_finds_the_trainings():
    cells = "\n".join(sections())
    assert "reversers[" in cells and "inductors[" in cells
    assert cells.count("torch.manual_seed(0)") == 1 and cells.count("seed=0") == 1  # another seed takes their place


@pytest.mark.parametrize("rule", [None, torch.arange(16).roll(1)])
def test_a_memory_holds_the_answer_in_the_slot_that_the_rule_names(rule):
    """Lesson pytorch_module trains on them."""
    memories = lookup.draw(500, torch.Generator().manual_seed(0), rule)
    assert all(len(set(letters)) == 8 for letters in memories.letters.tolist())
    for letters, numbers, asked, answer, slot in zip(*(part.tolist() for part in memories), strict=True):
        assert asked == (letters[slot] if rule is None else rule[letters[slot]])
        assert answer == numbers[slot]
    assert memories.slot.bincount(minlength=8).min() > 30 and memories.numbers.flatten().bincount().min() > 150


def test_a_printed_memory_says_what_is_asked_and_what_is_right():
    memories = lookup.draw(3, torch.Generator().manual_seed(5))
    lines = str(memories).splitlines()
    assert len(lines) == 3
    for line in lines:
        pairs, asked, answer = line.replace("answer: ", "asked: ").split("   asked: ")
        assert dict(zip(*[iter(pairs.split())] * 2, strict=True))[asked] == answer

"""Models that name both neighbours of a letter in a ring, for lesson train_and_look: how many heads does that take?"""

from copy import deepcopy

import torch
from torch import nn

from attnlib.torch_layers import MultiHeadAttention

from ..model_files import DATA
from . import train

LETTERS, PLACES, FEATURES = 10, 12, 32
BOTH, SIX = (-1, 1), (-3, -2, -1, 1, 2, 3)  # which letters are asked for: the one before and the one after; three each
SEEDS = range(5)
DRAWN = ("1 head(s)", "2 head(s)")  # the models whose maps the notebook draws
RESULTS = DATA / "neighbours_results.json"  # tools/record_results.py writes it


def linear(questions):
    """Return a read-out that is one linear layer: FEATURES numbers to LETTERS scores for each question."""
    return nn.Linear(FEATURES, questions * LETTERS)


def with_hidden_layer(questions):
    """Return a read-out of two linear layers, between which every negative number becomes 0."""
    return nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, questions * LETTERS))


class Neighbours(nn.Module):
    """One attention layer over a ring of letters, and a read-out: `linear` or `with_hidden_layer`.

    `asked` says how many places on the asked letters stand; -1 is the letter before.

    >>> logits, weights = Neighbours(2)(torch.zeros(3, 12, dtype=torch.long))
    >>> logits.shape, weights.shape
    (torch.Size([3, 12, 2, 10]), torch.Size([3, 2, 12, 12]))
    """

    def __init__(self, num_heads, read_out=linear, asked=BOTH):
        super().__init__()
        self.token, self.position = nn.Embedding(LETTERS, FEATURES), nn.Embedding(PLACES, FEATURES)
        self.attention = MultiHeadAttention(FEATURES, num_heads, bias=False)
        self.asked, self.read_out = asked, read_out(len(asked))

    def forward(self, letters):
        x = self.token(letters) + self.position.weight  # (b, places, features)
        output, weights = self.attention(x)
        scores = self.read_out(output).unflatten(-1, (-1, LETTERS))
        return scores, weights  # (b, places, questions, letters), (b, h, places, places)


def rings(size, generator, asked=BOTH):
    """Return rings of letters, (b, places), and what is asked of each place, (b, places, questions)."""
    letters = torch.randint(LETTERS, (size, PLACES), generator=generator)
    return letters, torch.stack([letters.roll(-step, dims=1) for step in asked], dim=-1)


def _loss(model, batch):
    letters, answers = batch
    scores, _ = model(letters)
    return nn.functional.cross_entropy(scores.flatten(0, 2), answers.flatten())


def fit(model, description, seed=0):
    """Train all of a model that may learn, with 600 steps of Adam at rate 3e-3, and return it."""
    train(model, lambda g: rings(128, g, model.asked), _loss, steps=600, lr=3e-3, seed=seed, description=description)
    return model


def trained(num_heads, read_out=linear, seed=0, asked=BOTH):
    """Return a model that was made and trained from one seed."""
    torch.manual_seed(seed)
    return fit(Neighbours(num_heads, read_out, asked), f"{num_heads} head(s), seed {seed}", seed)


def behind_the_same_head(model):
    """Return a model with the same attention, none of whose weights changed, and a fresh linear read-out, trained."""
    same = deepcopy(model).requires_grad_(False)
    torch.manual_seed(0)
    same.read_out = linear(len(model.asked))  # the only part that learns
    return fit(same, "a linear read-out behind the same head")


@torch.no_grad()
def measured(model):
    """Return what a model does on 1000 fresh rings, by name.

    parameters; all right, the share of places at which all answers are right; each, the share for each question;
    letters differ, all right where the asked letters are not all the same; maps, the mean weights of each head
    (h, places, places); shares, the mean of the larger and of the smaller weight on the two nearest places.
    """
    letters, answers = rings(1000, torch.Generator().manual_seed(1), model.asked)
    scores, weights = model(letters)
    right = scores.argmax(-1) == answers  # (b, places, questions)
    same = (answers == answers[..., :1]).all(-1)  # (b, places)
    i = torch.arange(PLACES)
    near = torch.stack([weights[:, 0, i, (i - 1) % PLACES], weights[:, 0, i, (i + 1) % PLACES]])
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "all right": right.all(-1).float().mean().item(),
        "each": right.float().mean((0, 1)).tolist(),
        "letters differ": right.all(-1)[~same].float().mean().item(),
        "maps": weights.mean(0).tolist(),
        "shares": [near.amax(0).mean().item(), near.amin(0).mean().item()],
    }


def two_trainings():
    """Return what one head and two heads of half its width learn, behind a linear read-out."""
    return {f"{h} head(s)": measured(trained(h)) for h in (1, 2)}


def with_other_read_outs():
    """Return what one head learns together with a hidden layer, and what a linear layer reads off such a head."""
    models = {seed: trained(1, with_hidden_layer, seed) for seed in SEEDS}
    measures = {f"hidden layer, seed {seed}": measured(model) for seed, model in models.items()}
    return measures | {"the same head, linear read-out": measured(behind_the_same_head(models[1]))}


def six_letters():
    """Return what one head and eight learn if six letters are asked for, behind a hidden layer."""
    return {f"six letters, {h} head(s)": measured(trained(h, with_hidden_layer, asked=SIX)) for h in (1, 8)}


EXPERIMENTS = (two_trainings, with_other_read_outs, six_letters)

"""The training of the writer, in torch. What it learned is stored, and runs in NumPy: `writer`."""

import torch
from torch import nn

from attnlib.torch_layers import MultiHeadAttention

from .. import writer
from . import train


class Writer(nn.Module):
    """The twin of `writer.Writer` that learns; it takes the same options, and its vectors of places learn, too.

    >>> Writer()(torch.tensor(writer.tokens_of("the cat"))).shape
    torch.Size([1, 3, 40])
    """

    def __init__(self, layers=2, *, num_heads=4, num_kv_heads=None, d_model=32, positions=True):
        super().__init__()
        self.token, self.read = nn.Embedding(len(writer.WORDS), d_model), nn.Linear(d_model, len(writer.WORDS))
        places = torch.randn(writer.LENGTH, d_model) if positions else torch.zeros(writer.LENGTH, d_model)
        self.place = nn.Parameter(places, requires_grad=positions)
        options = {"bias": False, "num_kv_heads": num_kv_heads}
        self.attention = nn.ModuleList(MultiHeadAttention(d_model, num_heads, **options) for _ in range(layers))
        self.network = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))
            for _ in range(layers)
        )

    def forward(self, tokens):
        """Return the logits of the next word at each place, (b, n, words)."""
        x = self.token(tokens) + self.place[: tokens.shape[1]]
        for attention, network in zip(self.attention, self.network, strict=True):
            x = x + attention(x, is_causal=True)[0]  # (b, n, d_model)
            x = x + network(x)
        return self.read(x)

    @torch.no_grad()
    def to_numpy(self):
        """Return a `writer.Writer` with copies of the weights."""
        model = writer.Writer(len(self.attention))
        model.token, model.place = (array(x) for x in (self.token.weight, self.place))
        model.W_read, model.b_read = array(self.read.weight.T), array(self.read.bias)
        model.attention = [attention.to_numpy() for attention in self.attention]
        for ours, theirs in zip(model.network, self.network, strict=True):
            ours.W_1, ours.b_1 = array(theirs[0].weight.T), array(theirs[0].bias)
            ours.W_2, ours.b_2 = array(theirs[2].weight.T), array(theirs[2].bias)
        return model


def array(x):
    return x.numpy().copy()


def loss(model, tokens):
    """Return nats a word: the mean of -log p(next word)."""
    logits, following = model(tokens[:, :-1]), tokens[:, 1:]
    nothing = writer.NUMBER[writer.START]  # fills up what is left behind a sentence
    return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten(), ignore_index=nothing)


def trained(corpus, seed=0, *, steps=840, description=None, **options):
    """Return a `writer.Writer` after `steps` steps of Adam at rate 5e-3 and 3/7 as many at 5e-4, in twenty seconds."""
    torch.manual_seed(seed)
    model, tokens = Writer(**options), torch.tensor(corpus.tokens)

    def draw(generator):  # a batch of 64 sentences
        return tokens[torch.randint(len(tokens), (64,), generator=generator)]

    train(model, draw, loss, steps=steps, lr=5e-3, seed=seed, description=description)
    description = description and f"{description}, smaller steps"
    train(model, draw, loss, steps=steps * 3 // 7, lr=5e-4, seed=seed + 100, description=description)
    return model.to_numpy()

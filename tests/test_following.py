"""The rules that `diagnose` and `watch` share: the same module is followed by both, and said in the same words."""

import pytest
import torch

from attnlib import following
from attnlib.diagnose import diagnose
from attnlib.watch import watch

DIM, N = 8, 5


class OneHead(torch.nn.Module):
    """Attention of one sequence, (n, d), by a product and a scale of one's own."""

    def __init__(self, product=torch.mm, scaled=lambda x: x / DIM**0.5, sink=False):
        super().__init__()
        self.product, self.scaled, self.sink = product, scaled, sink
        self.query, self.key, self.value = (torch.nn.Linear(DIM, DIM) for _ in range(3))

    def forward(self, x):
        scores = self.scaled(self.product(self.query(x), self.key(x).T))
        if self.sink:
            scores = torch.cat([scores, torch.ones_like(scores[:, :1])], -1)
        return self.product(torch.softmax(scores, -1)[:, : x.shape[0]], self.value(x))


def both(module):
    """Return what diagnose finds, and the only call that watch sees."""
    with watch(module) as seen:
        module(torch.randn(N, DIM))
    return diagnose(module, embed_dim=DIM), seen[0]


@pytest.mark.parametrize("product", [torch.mm, torch.matmul, lambda a, b: torch.bmm(a[None], b[None])[0]])
def test_every_product_is_followed_by_both(product):
    found, call = both(OneHead(product))
    assert found["score scale"].verdict == "ok" and found["row sums"].verdict == "ok"
    assert call.scale == pytest.approx(DIM**-0.5) and call.trace(head=0).weights.shape == (N, N)


@pytest.mark.parametrize(
    "scaled",
    [
        lambda x: torch.multiply(x, DIM**-0.5),
        lambda x: x.clone().div_(DIM**0.5),
        lambda x: torch.true_divide(x, torch.tensor(DIM**0.5)),
        lambda x: DIM**-0.5 * x,
    ],
)
def test_every_way_to_scale_is_followed_by_both(scaled):
    found, call = both(OneHead(scaled=scaled))
    assert found["score scale"].verdict == "ok" and call.scale == pytest.approx(DIM**-0.5)


def test_a_sink_has_the_same_words_in_both():
    found, call = both(OneHead(sink=True))
    words = "the softmax saw 1 more column, as with a sink"
    assert found["row sums"].measured.endswith(words) and words in call.notes


def test_constants():
    half = torch.tensor(0.5)
    assert [following.constant(x) for x in (2, True, 0.5, half, half.expand(3))] == [2, 1, 0.5, 0.5, None]
    assert following.constant(half.expand(3), filled=True) == 0.5
    assert following.constant(torch.tensor([0.5, 1]), filled=True) is None
    assert [following.constant(x) for x in (None, "2", torch.nn.Parameter(half), half * 1j)] == [None] * 4

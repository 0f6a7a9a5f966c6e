"""Look into the attention of any PyTorch model while it runs, and prove each map by the model's own output.

>>> import torch
>>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
>>> with watch(layer) as seen:
...     output = layer(torch.ones(1, 3, 8))
>>> seen[0].trace(head=1).weights.shape
(3, 3)
"""

import contextlib
import sys
from collections.abc import Iterator

from ..validation import needs_torch

with needs_torch("attnlib.watch looks into models of torch"):
    import torch

from ..findings import Report
from ._mode import Watching
from ._report import report
from .calls import Call, Seen

__all__ = ["Call", "Report", "Seen", "report", "watch"]


@contextlib.contextmanager
def watch(model: torch.nn.Module, *, layers: str | None = None, most: int = 2**30) -> Iterator[Seen]:
    """See every attention call that a model makes inside the ``with`` block, and keep what went into it.

    The Seen has them in order, and fills while the model runs. Nothing of the model is replaced; torch's own fused
    encoder and what torch.compile made run step by step. What is kept, and what is never seen: docs/watch.md.

    Parameters
    ----------
    model : nn.Module
    layers : str, optional
        Keep only the calls whose path fits this pattern, ``"*.layers.3.*"``. All are listed.
    most : int
        Keep at most so many bytes. Calls that come later are listed.
    """
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        fix = "the model itself, before torch.jit; for arrays there is attention_trace."
        raise TypeError(f"watch expects an nn.Module that runs in Python, got {type(model).__name__}. Fix: {fix}")
    compiles = {"torch._dynamo", "torch.nn.attention.flex_attention"} & set(sys.modules)  # then it would not be seen
    stance = torch.compiler.set_stance("force_eager") if compiles else contextlib.nullcontext()
    with stance, Watching(Seen([], model), layers, most) as watching:
        yield watching.seen

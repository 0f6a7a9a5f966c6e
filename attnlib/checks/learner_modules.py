"""Turn a learner's torch module class into a function of arrays, with the weights of the probe put into it.

torch is imported when a class is handed in: not before.
"""

from .calling import Unfit


def self_attention(cls):
    """Return a function (x, W_Q, W_K, W_V, mask) -> what `cls` returns with these weights."""
    _check_class(cls, "SelfAttention")

    def run(x, W_Q, W_K, W_V, mask=None):
        weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
        return _run(cls, (W_Q.shape[0], W_Q.shape[1], W_V.shape[1]), weights, (x,), mask)

    return run


def multi_head_attention(cls):
    """Return a function (query, key, value, W_Q, W_K, W_V, W_O, num_heads, mask) -> what `cls` returns."""
    _check_class(cls, "MultiHeadAttention")

    def run(query, key, value, W_Q, W_K, W_V, W_O, num_heads, mask=None):
        weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
        return _run(cls, (W_Q.shape[0], num_heads), weights, (query, key, value), mask)

    return run


def _check_class(cls, name):
    from torch import nn

    if isinstance(cls, nn.Module):
        raise Unfit(
            "This exercise asks for a class, so that it can be made in several sizes; you hand in an instance. "
            f"Fix: check.{name}(My{name}), without arguments."
        )
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise Unfit(
            f"This exercise asks for a class derived from nn.Module, you hand in {cls!r:.60}. "
            f"Fix: class My{name}(nn.Module): ..."
        )


def _run(cls, sizes, weights, inputs, mask):
    import torch

    with torch.random.fork_rng(devices=[]):  # making a layer draws numbers: the notebook's own must not move
        module = cls(*sizes)
    tensors = [torch.from_numpy(x) for x in inputs]
    module.to(tensors[0].dtype).eval()
    for name, weight in weights.items():
        linear = getattr(module, name, None)
        if not isinstance(linear, torch.nn.Linear) or tuple(linear.weight.shape) != weight.shape[::-1]:
            raise Unfit(
                f"Your module needs an nn.Linear called {name} with {weight.shape[0]} inputs and {weight.shape[1]} "
                f"outputs, made with sizes {sizes}; it has {linear!r:.80}. Fix: self.{name} = nn.Linear(...) in "
                "__init__, for all heads together."
            )
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T))
            if linear.bias is not None:
                linear.bias.zero_()
    with torch.no_grad():
        return module(*tensors, attn_mask=None if mask is None else torch.from_numpy(mask))

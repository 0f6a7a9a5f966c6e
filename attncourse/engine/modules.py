"""Make a learner's torch module class, put the weights of a probe into it, and run it on arrays.

torch is imported when a class is handed in: not before.
"""

import itertools

import numpy as np

from .run import Unfit

LAYER, FEW, LEARNING = "another_layer", "too_few_returned", {3: "bias_lost", 4: "changes_in_training"}
DROPS = (
    "Remark: in training mode your module gives other numbers at each call, as nn.Dropout does. In evaluation mode, "
    "after `.eval()`, it is right; the formula has no dropout."
)


def has_torch():
    """Tell whether torch can be imported here: a browser has none."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def check_class(cls, name):
    """Raise Unfit unless `cls` is a class derived from nn.Module."""
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


def call_module(cls, sizes, weights, inputs, options, learning, biases):
    """Return (output, weights); or, where `learning` names matrices, what each of them lacks in training.

    0 stands for nothing, 1 for no gradient, 2 for NaN in it, 3 for a bias that is lost, 4 for other numbers.

    `options` holds the mask of an exercise that has one, and nothing of one that has none.
    """
    import torch

    module, inputs, options = _prepare(cls, sizes, weights, inputs, options, biases)
    if learning:
        cut = _without_gradient(module, inputs, learning)
        asked = options and not cut.all()
        nan = _nan_gradient(module, inputs, options["attn_mask"], learning) if asked else np.zeros_like(cut)
        fault = np.where(nan, 2, cut)
        if not fault.any():
            fault = 3 * _bias_lost(module, inputs, options, learning)
        return (fault if fault.any() else fault + 4 * _changes_in_training(module, inputs, options),)
    with torch.no_grad():
        result = module(*inputs, **options)
    if result is None or result is ...:
        return result
    several = isinstance(result, tuple | list)
    if not several or len(result) != 2 or result[1] is None:
        raise Unfit(
            "The exercise asks for two tensors, (output, weights); your module returns "
            f"{_kind(result)}. Fix: return output, weights.",
            "too_many_returned" if several and len(result) > 2 else FEW,
        )
    return tuple(result)


def _kind(result):
    if not isinstance(result, tuple | list):
        return f"one {type(result).__name__}"
    return "(output, None)" if len(result) == 2 else f"a {type(result).__name__} of {len(result)}"


def _prepare(cls, sizes, weights, inputs, options, biases):
    """Return a module of the class with the probe's weights, any biases set to 0; inputs and options as tensors."""
    import torch

    inputs = [torch.from_numpy(x) for x in inputs]
    options = {name: None if x is None else torch.from_numpy(x) for name, x in options.items()}
    with torch.random.fork_rng(devices=[]):  # making a layer draws numbers: the notebook's own must not move
        module = cls(*sizes)
    module.to(inputs[0].dtype).eval()
    _check_apart(module, weights)
    for name, weight in weights.items():
        linear = getattr(module, name, None)
        if not isinstance(linear, torch.nn.Linear) or tuple(linear.weight.shape) != weight.shape[::-1]:
            raise Unfit(
                f"Your module needs an nn.Linear called {name} with {weight.shape[0]} inputs and {weight.shape[1]} "
                f"outputs, made with sizes {sizes}; it has {_layer(linear)}. Fix: self.{name} = nn.Linear(...) in "
                f"__init__{', for all heads together' if 'W_O' in weights else ''}.",
                LAYER,
            )
        if linear.bias is not None and not biases:
            raise Unfit(
                f"Your {name} has a bias, which nn.Linear adds unless told otherwise; the formula has none. "
                f"Fix: nn.Linear({weight.shape[0]}, {weight.shape[1]}, bias=False), for these sizes.",
                LAYER,
            )
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T))
            if linear.bias is not None:
                linear.bias.zero_()
    return module, inputs, options


def _check_apart(module, names):
    """Raise Unfit if two names share one layer: the second weight of the probe would overwrite the first."""
    layers = {name: getattr(getattr(module, name, None), "weight", None) for name in names}
    for one, other in itertools.combinations(names, 2):
        if layers[one] is layers[other] is not None:
            raise Unfit(
                f"{one} and {other} are one and the same layer (`a = b = nn.Linear(...)` makes one). "
                "Fix: an nn.Linear for each.",
                "projections_shared",
            )


def _layer(x):
    """Describe what stands in place of a layer; of a tensor, only its type."""
    from torch import nn

    return "none" if x is None else repr(x) if isinstance(x, nn.Module) else f"a {type(x).__name__}"


def _without_gradient(module, inputs, names):
    """Return (len(names),) of bool, True where the output depends on a matrix and no gradient reaches it."""
    import torch

    try:
        with torch.enable_grad():
            output = torch.as_tensor(module(*inputs)[0])
            if output.requires_grad:
                slopes = torch.linspace(0.5, 1, output.numel(), dtype=output.dtype)  # the sum of all may be constant
                (output * slopes.reshape(output.shape)).sum().backward()
    except RuntimeError as error:
        if "numpy()" in str(error):  # the advice that follows there, to detach, would be the mistake itself
            return np.ones(len(names), dtype=bool)
        raise

    def depends(weight):
        with torch.no_grad():
            before, kept = torch.as_tensor(module(*inputs)[0]).clone(), weight.clone()
            weight += torch.linspace(-1, 1, weight.numel(), dtype=weight.dtype).reshape(weight.shape)
            moved = torch.as_tensor(module(*inputs)[0]) - before
            weight.copy_(kept)
        return bool((moved.abs() > 1e-6).any())

    weights = [getattr(module, name).weight for name in names]
    reached = [weight.grad is not None and bool((weight.grad != 0).any()) for weight in weights]
    return np.array([not r and depends(w) for r, w in zip(reached, weights, strict=True)])


def _nan_gradient(module, inputs, mask, names):
    """Return (len(names),) of bool, True where the gradient of a loss over the queries that have a key holds NaN.

    NaN in the output itself is told by another probe: here it counts for nothing.
    """
    import torch

    module.zero_grad()
    with torch.enable_grad():
        output = torch.as_tensor(module(*inputs, attn_mask=mask)[0])
        if output.requires_grad and output.shape[-2:-1] == mask.shape[:1] and not output.isnan().any():
            output[..., mask.any(-1), :].sum().backward()
    gradients = [getattr(module, name).weight.grad for name in names]
    return np.array([gradient is not None and bool(gradient.isnan().any()) for gradient in gradients])


def _bias_lost(module, inputs, options, names):
    """Return (len(names),) of bool, True where a layer has a bias that does not arrive in the output.

    Where a feature of the inputs is 1, a bias does what a column of the weight does. That of W_O is added to each row.
    """
    import torch

    inputs = [torch.cat([x[..., :-1], torch.ones_like(x[..., :1])], dim=-1) for x in inputs]

    def output():
        return torch.as_tensor(module(*inputs, **options)[0]).clone()

    def is_lost(name):
        layer = getattr(module, name)
        if layer.bias is None:
            return False
        without, bias = output(), torch.linspace(0.5, 1, len(layer.bias), dtype=layer.bias.dtype)
        layer.bias += bias
        given = output()
        layer.bias -= bias
        if name == "W_O":
            layer.weight += 1
            used = not torch.equal(output(), without)
            layer.weight -= 1
            expected = without + bias if used and without.shape[-1:] == bias.shape else given
        else:
            layer.weight[:, -1] += bias
            expected = output()
            layer.weight[:, -1] -= bias
        return not torch.allclose(given, expected, atol=1e-4, equal_nan=True)

    with torch.no_grad():
        return np.array([is_lost(name) for name in names])


def _in_training(module, inputs, options):
    """Return outputs: one in evaluation mode, five in training mode, of which some may drop nothing."""
    import torch

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        outputs = [torch.as_tensor(module(*inputs, **options)[0]).clone()]
        module.train()
        return [*outputs, *(torch.as_tensor(module(*inputs, **options)[0]).clone() for _ in range(5))]


def _equal(outputs):
    return all(outputs[0].allclose(x, atol=1e-5, equal_nan=True) for x in outputs)


def _changes_in_training(module, inputs, options):
    """Tell whether training mode gives other numbers, the same at each call, as a norm over the batch does."""
    outputs = _in_training(module, inputs, options)
    return not _equal(outputs) and _equal(outputs[1:])


def drops(cls, sizes, weights, inputs, options):
    """Tell whether a module of the class gives other numbers at each call in training mode, as nn.Dropout does."""
    return not _equal(_in_training(*_prepare(cls, sizes, weights, inputs, options, biases=True))[1:])

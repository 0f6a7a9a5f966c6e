"""What of query, key, value and mask a `call=` hands to the module: a module cannot ignore what it never gets."""

import inspect

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from ..following import tensors


class _Origins(TorchDispatchMode):
    """Follow named tensors through all operations: what is computed from one of them has its name."""

    def __init__(self, named):
        super().__init__()
        self._names = WeakIdKeyDictionary({tensor: {name} for name, tensor in named.items()})

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here; True would import torch's compiler, which takes seconds

    def of(self, x):
        return {name for tensor in tensors(x) for name in self._names.get(tensor, ())}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        names, result = self.of([args, kwargs]), function(*args, **(kwargs or {}))
        for tensor in tensors(result):
            self._names[tensor] = names | self.of(tensor)
        return result


def handed_in(module, call, **named):
    """Return the names of those tensors that reach an argument of the module, or of one of its parts, in `call`.

    What a ``**kwargs`` swallows does not count: nobody promised to read it.
    """
    reached, origins = set(), _Origins(named)

    def note(part, args, kwargs):
        known = inspect.signature(part.forward).parameters
        reached.update(origins.of(args), *(origins.of(x) for name, x in kwargs.items() if name in known))

    hooks = [part.register_forward_pre_hook(note, with_kwargs=True) for part in module.modules()]
    try:
        with origins:
            call(module, **named)
    finally:
        for hook in hooks:
            hook.remove()
    return reached

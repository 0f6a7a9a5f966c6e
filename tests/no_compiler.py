"""Make torch's optimizers leave torch's compiler alone: to be told that they are not compiled, it is imported for 3 s.

What they compute stays the same. If torch names things otherwise one day, only the seconds come back.
"""

import torch

for _name in ("add_param_group", "load_state_dict", "zero_grad"):
    _method = getattr(getattr(torch.optim.Optimizer, _name), "__wrapped__", None)
    if _method is not None:
        _method.__dynamo_disable = _method  # where torch keeps the method as the compiler leaves it alone

"""Make torch's optimizers do without torch's compiler: only to be left alone by it they import it, which takes 3 s.

What they compute stays the same. If torch names things otherwise one day, only the seconds come back.
"""

import torch

for _name in ("add_param_group", "load_state_dict", "zero_grad"):
    _method = getattr(getattr(torch.optim.Optimizer, _name), "__wrapped__", None)
    if _method is not None:
        _method.__dynamo_disable = _method  # where torch keeps the method as the compiler leaves it alone
for _kind in (torch.optim.Adam, torch.optim.SGD):
    _step = getattr(_kind.step, "__wrapped__", None)  # what surrounds it tells the compiler of no_grad
    if _step is not None:
        _kind.step = torch.no_grad()(_step)

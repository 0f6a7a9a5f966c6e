"""The training loop of the notebooks, for small models on tasks whose batches are drawn on the fly.

Lesson pytorch_module writes the loop out, where it is the subject. Where several trainings are compared, it is this.
"""

import numbers
from dataclasses import dataclass

import torch

from attnlib import validation
from attnlib.progress import progress


@dataclass(frozen=True)
class History:
    """What `train` kept; steps count the updates made so far, so step 0 is the untrained model."""

    losses: list  # one for each step
    measured: dict  # step -> what `measure` returned then
    # step -> a copy of the model's state_dict; `torch.func.functional_call(model, snapshot, inputs)` runs it as it was.
    snapshots: dict


def train(model, draw, loss, *, steps, lr, seed=0, every=None, measure=None, description=None):
    """Train a model with Adam, on a fresh batch at each step.

    Parameters
    ----------
    model : nn.Module
        Trained in place.
    draw : callable
        Called with a torch.Generator; returns a batch.
    loss : callable
        Called with the model and a batch; returns one number as a tensor.
    steps : int
    lr : float or callable
        Adam's learning rate, or a function from the number of the step, 1 for the first, to it.
    seed : int
        Of the batches. The model's first weights are the caller's: torch.manual_seed before it is made.
    every : int, optional
        Keep a snapshot, and measure, before the first step, after each `every` steps, and at the end.
    measure : callable, optional
        Called with the model, without gradients.
    description : str, optional
        Shows a progress bar with this text.

    Returns
    -------
    History

    Raises
    ------
    TypeError, ValueError
        If `steps` or `every` is not a positive whole number, `lr` not a positive number, `measure` lacks `every`, the
        loss is not one number, or it is no longer finite.

    Notes
    -----
    The loop is written out in lesson pytorch_module. Source of Adam: Kingma and Ba 2015.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Linear(1, 1)
    >>> def draw(generator):
    ...     x = torch.randn(16, 1, generator=generator)
    ...     return x, 3 * x
    >>> def loss(model, batch):
    ...     return (model(batch[0]) - batch[1]).square().mean()
    >>> history = train(model, draw, loss, steps=200, lr=0.1, every=100, measure=lambda m: m.weight.item())
    >>> list(history.measured), round(history.measured[200], 2)
    ([0, 100, 200], 3.0)
    """
    steps = validation.positive_int(steps, "steps")
    every = None if every is None else validation.positive_int(every, "every")
    rate = lr if callable(lr) else lambda step: lr
    if not callable(lr) and (isinstance(lr, bool) or not isinstance(lr, numbers.Real) or not 0 < lr < float("inf")):
        raise ValueError(f"lr must be a positive number, got {lr!r}. Fix: lr=1e-3 is a common start.")
    if measure is not None and every is None:
        raise ValueError("measure needs to know when: expected every=..., got None. Fix: every=20.")
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(1))
    history = History([], {}, {})
    _keep(history, model, 0, every, measure, steps)
    numbers_of_steps = range(1, steps + 1)
    for step in numbers_of_steps if description is None else progress(numbers_of_steps, description):
        value = loss(model, draw(generator))
        _check_loss(value, step, optimizer.param_groups[0]["lr"])
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        history.losses.append(value.item())
        _keep(history, model, step, every, measure, steps)
    return history


def _keep(history, model, step, every, measure, steps):
    if every is None or (step % every and step != steps):
        return
    history.snapshots[step] = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if measure is not None:
        with torch.no_grad():
            history.measured[step] = measure(model)


def _check_loss(value, step, lr):
    if not isinstance(value, torch.Tensor) or value.numel() != 1 or not value.requires_grad:
        got = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
        raise TypeError(
            f"loss must return one number as a tensor that depends on the model, got {got}. "
            "Fix: return a mean, and do not call .item() or torch.no_grad()."
        )
    if not torch.isfinite(value):
        raise ValueError(
            f"the loss must stay finite, got {value.item()} at step {step}. Fix: a smaller lr than {lr}, or look for a "
            "query that may attend to no key."
        )

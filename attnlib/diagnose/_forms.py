"""The forms in which attention modules take their mask: names, dtypes, polarities, shapes."""

from typing import NamedTuple

import torch

# Values, from a boolean mask in which True = may attend. "blocked": True = may not, as in nn.MultiheadAttention.
KINDS = {
    "boolean": lambda mask, dtype: mask,
    "blocked": lambda mask, dtype: ~mask,
    "0 and 1": lambda mask, dtype: mask.long(),
    "0.0 and 1.0": lambda mask, dtype: mask.to(dtype),
    "additive": lambda mask, dtype: torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -torch.inf),
    # Some add a finite mask only, or take what is below a threshold as blocked.
    "additive, finite": lambda mask, dtype: torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -1e9),
    "blocked, 0.0 and 1.0": lambda mask, dtype: (~mask).to(dtype),
}

# Shapes, from (b, n_q, n_k) and a number of heads.
PAIRS = {
    "(b, n_q, n_k)": lambda mask, heads: mask,
    "(b, 1, n_q, n_k)": lambda mask, heads: mask[:, None],
    "(n_q, n_k)": lambda mask, heads: mask[0],
    "(n_q, n_k, b)": lambda mask, heads: mask.permute(1, 2, 0),
    "(b, h, n_q, n_k)": lambda mask, heads: mask[:, None].repeat(1, heads, 1, 1),
    "(b * h, n_q, n_k)": lambda mask, heads: mask.repeat_interleave(heads, dim=0),
    "(h * b, n_q, n_k)": lambda mask, heads: mask.repeat(heads, 1, 1),
}
KEYS = {
    "(b, n_k)": lambda mask, heads: mask[:, 0],
    "(b, 1, 1, n_k)": lambda mask, heads: mask[:, None, :1],
    "(b, 1, n_k)": lambda mask, heads: mask[:, :1],
    "(b,) lengths": lambda mask, heads: mask[:, 0].sum(-1),
}
PADDING = {**KEYS, **{name: shape for name, shape in PAIRS.items() if name != "(n_q, n_k)"}}

_NOT_MASKS = ("head_mask", "return", "use_", "masked_pos", "is_", "mask_token", "rel_pos", "mask_value", "mask_fill")


class Form(NamedTuple):
    """One way to hand in a mask."""

    name: str  # of the argument
    kind: str
    shape: str

    def __call__(self, mask, heads, dtype):
        shaped = {**PAIRS, **KEYS}[self.shape](mask, heads)
        return {self.name: shaped if shaped.dtype == torch.long else KINDS[self.kind](shaped, dtype)}

    @property
    def blocked(self):
        return self.kind.startswith("blocked")

    def __str__(self):
        return f"{self.name}, {self.kind}, {self.shape}"


def forms(names, shapes):
    """Yield every Form: the names, each in all shapes, each of all kinds."""
    for name in names:
        for shape in shapes:
            if ("len" in name) != (shape == "(b,) lengths"):
                continue
            for kind in ("boolean",) if shape == "(b,) lengths" else KINDS:
                yield Form(name, kind, shape)


def is_mask(name):
    """Whether an argument of this name takes a mask."""
    name = name.lower().replace("ahead", "")  # a look_ahead_mask is no head_mask
    if any(word in name for word in _NOT_MASKS):
        return False
    words = ("mask", "adj", "attn_bias", "attention_bias", "padding", "valid_len", "lengths", "pad")
    return any(word in name for word in words) and "cross" not in name and "encoder" not in name


def is_for_padding(name):
    """Whether an argument of this name takes a mask of padding."""
    return any(word in name.lower() for word in ("pad", "len"))

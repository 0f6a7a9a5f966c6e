"""Decoding with a cache and without, at growing lengths: one layer of 256 features and 4 heads, on one thread.

The time of the one token behind n - 1 others: everything anew, as a multiple of a step with `KVCache`; and what fewer
heads of keys and values change in that step. Ratios depend on the machine; how they grow with n does less.
"""

import copy
import statistics

import torch

from attnlib.torch_layers import KVCache, MultiHeadAttention

from .timing import alternate

LENGTHS = (64, 128, 256, 512, 1024, 2048)
SECONDS = 1.0  # for each length


def contestants(n, num_kv_heads=4):
    layer, x, cache = (
        MultiHeadAttention(256, 4, bias=False, num_kv_heads=num_kv_heads),
        torch.randn(1, n, 256),
        KVCache(),
    )
    layer(x[:, :-1], is_causal=True, need_weights=False, cache=cache)

    def anew():
        layer(x, is_causal=True, need_weights=False)

    def kept():  # a copy of the cache grows, so that each round starts with the same one
        layer(x[:, -1:], is_causal=True, need_weights=False, cache=copy.copy(cache))

    return anew, kept


def main():
    torch.set_num_threads(1)
    print("     n   everything anew / with cache   1 head of K and V / 4")
    with torch.inference_mode():
        for n in LENGTHS:
            anew, kept = contestants(n)
            times = alternate({"anew": anew, "kept": kept, "one": contestants(n, 1)[1]}, SECONDS)
            medians = {name: statistics.median(seconds) for name, seconds in times.items()}
            ratios = medians["anew"] / medians["kept"], medians["one"] / medians["kept"]
            print(f"{n:6} {ratios[0]:28.1f} {ratios[1]:24.2f}", flush=True)


if __name__ == "__main__":
    main()

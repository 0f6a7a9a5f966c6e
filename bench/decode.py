"""Decoding with a cache and without, at growing lengths: one layer of 256 features and 4 heads, on one thread.

The time of the one token behind n - 1 others: everything anew, as a multiple of a step with `KVCache`, each by its
quickest round, as the lesson does: of calls this short and this unlike a busy machine spoils the median. The ratios
depend on the machine; how they grow with n does less.
"""

import copy

import torch

from attnlib.torch_layers import KVCache, MultiHeadAttention

from .timing import alternate

LENGTHS = (64, 128, 256, 512, 1024, 2048)
SECONDS = 1.0  # for each length


def contestants(n):
    layer, x, cache = (
        MultiHeadAttention(256, 4, bias=False),
        torch.randn(1, n, 256),
        KVCache(),
    )
    layer(x[:, :-1], is_causal=True, need_weights=False, cache=cache)

    def anew():
        layer(x, is_causal=True, need_weights=False)

    def with_cache():  # a copy of the cache grows, so that each round starts with the same one
        layer(x[:, -1:], is_causal=True, need_weights=False, cache=copy.copy(cache))

    return {"anew": anew, "kept": with_cache}


def main():
    torch.set_num_threads(1)
    print("     n   everything anew / with a cache")
    with torch.inference_mode():
        for n in LENGTHS:
            times = alternate(contestants(n), SECONDS)
            print(f"{n:6} {min(times['anew']) / min(times['kept']):32.1f}", flush=True)


if __name__ == "__main__":
    main()

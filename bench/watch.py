"""Watching a model beside asking it for its maps: GPT-2 with four layers of 128 features, at growing lengths.

Time of `watch`, and of eager mode with output_attentions, as multiples of the model alone; and the bytes that are
held after the call, of `watch` as a share of the maps. It needs transformers.
"""

import torch
import transformers

from attnlib.watch import watch

from .timing import alternate

LENGTHS = (128, 512, 1024, 2048)
SECONDS = 1.0  # for each length


def models(n):
    sizes = {"n_embd": 128, "n_head": 4, "n_layer": 4, "n_positions": n, "vocab_size": 256}
    for kind in ("sdpa", "eager"):
        config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, attn_implementation=kind)
        yield transformers.GPT2Model(config).eval()


def count_bytes(tensors):
    return sum(x.numel() * x.element_size() for x in tensors)


def main():
    torch.set_num_threads(1)
    print("     n   watched / alone   eager maps / alone   bytes held, watched / maps")
    with torch.inference_mode():
        for n in LENGTHS:
            alone, eager = models(n)
            ids = torch.randint(256, (1, n))

            def see(alone=alone, ids=ids):
                with watch(alone) as seen:
                    alone(ids)
                return seen

            calls = {
                "alone": lambda alone=alone, ids=ids: alone(ids),
                "watched": see,
                "eager": lambda eager=eager, ids=ids: eager(ids, output_attentions=True),
            }
            times = {name: min(x) for name, x in alternate(calls, SECONDS).items()}
            bytes_held = (
                count_bytes(x for call in see() for x in call.kept.values()),
                count_bytes(calls["eager"]().attentions),
            )
            figures = times["watched"] / times["alone"], times["eager"] / times["alone"], bytes_held[0] / bytes_held[1]
            print(f"{n:6} {figures[0]:17.2f} {figures[1]:20.2f} {figures[2]:28.3f}", flush=True)


if __name__ == "__main__":
    main()

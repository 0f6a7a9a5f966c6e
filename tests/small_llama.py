"""A small Llama with random weights, as a GGUF file and in transformers, for tests that need no download."""

import struct

import numpy as np
import torch

from attncourse.smollm.tokenizer import CHARACTER

MERGES = ("t h", "th e", "Ġ the", "Ġ a", "o r")
CONTROL = ("<|endoftext|>", "<|im_end|>", "<|im_end|>more")
KINDS = {"F32": 0, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}


def settings(layers=2, context=256):
    """What the file says: d_model 64, 4 heads of queries and 2 of keys and values, so d_k = 16."""
    tokens = [*CONTROL, *CHARACTER.values(), *(pair.replace(" ", "") for pair in MERGES)]
    return {
        "general.architecture": "llama",
        "llama.block_count": layers,
        "llama.context_length": context,
        "llama.embedding_length": 64,
        "llama.feed_forward_length": 96,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 1000.0,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] * len(CONTROL) + [1] * (len(tokens) - len(CONTROL)),
        "tokenizer.ggml.merges": list(MERGES),
    }


def tensors(said, seed=0):
    """Return {name: (kind, shape, bytes)}: norms as F32, the embedding as Q8_0, matrices as Q4_1."""
    rng, d, ffn = np.random.default_rng(seed), 64, 96
    found = {
        "token_embd.weight": q8_0(rng, (len(said["tokenizer.ggml.tokens"]), d)),
        "output_norm.weight": f32(rng, (d,)),
    }
    shapes = {"attn_q": (d, d), "attn_k": (32, d), "attn_v": (32, d), "attn_output": (d, d)}
    shapes |= {"ffn_gate": (ffn, d), "ffn_up": (ffn, d), "ffn_down": (d, ffn)}
    for i in range(said["llama.block_count"]):
        for name, shape in shapes.items():
            found[f"blk.{i}.{name}.weight"] = q4_1(rng, shape)
        for name in ("attn_norm", "ffn_norm"):
            found[f"blk.{i}.{name}.weight"] = f32(rng, (d,))
    return found


def f32(rng, shape):
    return "F32", shape, rng.uniform(0.5, 1.5, shape).astype(np.float32).tobytes()


def q8_0(rng, shape):
    blocks = rng.integers(0, 256, (np.prod(shape) // 32, 34), dtype=np.uint8)
    blocks[:, :2] = rng.uniform(0.004, 0.012, (len(blocks), 1)).astype(np.float16).view(np.uint8)
    return "Q8_0", shape, blocks.tobytes()


def q4_1(rng, shape):
    blocks = rng.integers(0, 256, (np.prod(shape) // 32, 20), dtype=np.uint8)
    step = rng.uniform(0.02, 0.06, (len(blocks), 1))
    blocks[:, :4] = np.concatenate([step, -7.5 * step], axis=1).astype(np.float16).view(np.uint8)
    return "Q4_1", shape, blocks.tobytes()


def write(path, said, stored):
    """Write a GGUF file, version 3."""
    data = struct.pack("<4sIQQ", b"GGUF", 3, len(stored), len(said))
    for name, value in said.items():
        data += text(name) + setting(value)
    offset, numbers = 0, b""
    for name, (kind, shape, content) in stored.items():
        data += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], KINDS[kind], offset)
        content += bytes(-len(content) % 32)
        numbers, offset = numbers + content, offset + len(content)
    path.write_bytes(data + bytes(-len(data) % 32) + numbers)
    return path


def text(words):
    content = words.encode()
    return struct.pack("<Q", len(content)) + content


def setting(value):
    kind = {str: 8, int: 4, float: 6, list: 9}[type(value)]
    if kind == 9:
        items = b"".join(setting(item)[4:] for item in value)
        return struct.pack("<IIQ", 9, struct.unpack("<I", setting(value[0])[:4])[0], len(value)) + items
    return struct.pack("<I", kind) + (text(value) if kind == 8 else struct.pack({4: "<I", 6: "<f"}[kind], value))


def logits(model, numbers):
    with torch.inference_mode():
        return model(torch.tensor([numbers])).logits[0].numpy()

"""A small Llama with random weights, as a GGUF file and in transformers, for tests that need no download."""

import struct

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from attnlib.course.smollm.tokenizer import CHARACTER

MERGES = ("t h", "th e", "Ġ the", "Ġ a", "o r")
CONTROL = ("<|endoftext|>", "<|im_end|>", "<|im_end|>more")
KINDS = {"F32": 0, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
IN_TRANSFORMERS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


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


def in_transformers(said, weights):
    """Return the LlamaForCausalLM with these dequantised weights; the file keeps W_Q and W_K in another order."""
    h, g = said["llama.attention.head_count"], said["llama.attention.head_count_kv"]
    config = LlamaConfig(
        vocab_size=len(said["tokenizer.ggml.tokens"]),
        hidden_size=said["llama.embedding_length"],
        intermediate_size=said["llama.feed_forward_length"],
        num_hidden_layers=said["llama.block_count"],
        num_attention_heads=h,
        num_key_value_heads=g,
        max_position_embeddings=said["llama.context_length"],
        rms_norm_eps=said["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": said["llama.rope.freq_base"]},
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=None,
        pad_token_id=0,
        attn_implementation="eager",
    )
    named = {
        "model.embed_tokens.weight": weights["token_embd.weight"],
        "model.norm.weight": weights["output_norm.weight"],
    }
    named["lm_head.weight"] = named["model.embed_tokens.weight"]
    for i in range(config.num_hidden_layers):
        for ours, theirs in IN_TRANSFORMERS.items():
            w = weights[f"blk.{i}.{ours}.weight"]
            if ours in ("attn_q", "attn_k"):
                heads = h if ours == "attn_q" else g
                w = w.reshape(heads, -1, 2, w.shape[-1]).swapaxes(1, 2).reshape(w.shape)
            named[f"model.layers.{i}.{theirs}.weight"] = w
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in named.items()}, assign=True)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)  # its frequencies are no weights: made on "meta", too
    return model.eval()


def logits(model, numbers):
    with torch.inference_mode():
        return model(torch.tensor([numbers])).logits[0].numpy()

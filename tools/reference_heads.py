"""Write heads_2026.json in attncourse/data: what four attention modules of transformers give for stored weights.

    python -m tools.reference_heads

Lesson todays_head compares its head with this file, and tests/test_todays_head.py both with transformers, which
pyproject.toml pins. Weights and input are drawn at random and rounded, so that the file holds them exactly.
"""

import json
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

TARGET = Path(__file__).resolve().parent.parent / "attncourse" / "data" / "heads_2026.json"
SIZES = {"hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
THETA, SOFTCAP, TOKENS = 10_000.0, 5.0, 12
CLASSES = {
    "Llama": (transformers.LlamaConfig, LlamaAttention, LlamaRotaryEmbedding),
    "Qwen3": (transformers.Qwen3Config, Qwen3Attention, LlamaRotaryEmbedding),
    "Gemma 2": (transformers.Gemma2Config, Gemma2Attention, LlamaRotaryEmbedding),
    "GPT-OSS": (transformers.GptOssConfig, GptOssAttention, GptOssRotaryEmbedding),
}
OWN = {"Gemma 2": {"attn_logit_softcapping": SOFTCAP, "query_pre_attn_scalar": SIZES["head_dim"]}}


def draw(seed=0):
    """Return {name: array}: the four matrices (in, out), the gains, the sinks, and the tokens x.

    Queries and keys are large: nearly equal weights would hide mistakes.
    """
    rng = np.random.default_rng(seed)
    d, h, h_kv, d_k = SIZES.values()
    shapes = {"W_Q": (d, h * d_k), "W_K": (d, h_kv * d_k), "W_V": (d, h_kv * d_k), "W_O": (h * d_k, d)}
    drawn = {name: rng.normal(size=shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    drawn["W_Q"], drawn["W_K"] = 1.5 * drawn["W_Q"], 1.5 * drawn["W_K"]
    drawn |= {"q_gain": rng.uniform(0.5, 2.5, size=d_k), "k_gain": rng.uniform(0.5, 2.5, size=d_k)}
    drawn |= {"sink": rng.normal(size=h), "x": rng.normal(size=(TOKENS, d))}
    return {name: array.round(3) for name, array in drawn.items()}


def output(name, drawn, window=None):
    """Return (n, d_model): what the attention module of this model gives."""
    config_class, attention_class, rotary_class = CLASSES[name]
    rope = {"rope_type": "default", "rope_theta": THETA}
    config = config_class(**SIZES, num_hidden_layers=1, attention_bias=False, rope_parameters=rope, **OWN.get(name, {}))
    config._attn_implementation = "eager"
    module = attention_class(config, layer_idx=0).double().eval()
    tensors = {key: torch.from_numpy(array) for key, array in drawn.items()}
    state = {f"{c.lower()}_proj.weight": tensors[f"W_{c}"].T for c in "QKVO"}  # nn.Linear stores (out, in)
    if name == "Qwen3":
        state |= {"q_norm.weight": tensors["q_gain"], "k_norm.weight": tensors["k_gain"]}
    if name == "GPT-OSS":
        state |= {"sinks": tensors["sink"]}
    module.load_state_dict(state)
    x = tensors["x"][None]  # (1, n, d_model)
    n = x.shape[1]
    back = torch.arange(n)[:, None] - torch.arange(n)
    allowed = (back >= 0) & (back < (window or n))
    mask = torch.zeros(1, 1, n, n, dtype=x.dtype).masked_fill(~allowed, -torch.inf)
    with torch.no_grad():
        return module(x, rotary_class(config)(x, torch.arange(n)[None]), mask)[0][0].numpy()


def since():
    """Return [model, what some of its layers do, 1 for each of these and 0 for others], as configurations have it."""
    smol, gemma, linear = transformers.SmolLM3Config(), transformers.Gemma3TextConfig(), transformers.Qwen3NextConfig()
    shared = transformers.Gemma3nTextConfig()
    own = shared.num_hidden_layers - shared.num_kv_shared_layers
    return [
        ["SmolLM3", "no rotation", [1 - rotated for rotated in smol.no_rope_layers]],
        ["Gemma 3 1B", "a window", [int(kind == "sliding_attention") for kind in gemma.layer_types]],
        ["Gemma 3n", "an earlier layer's keys", [int(i >= own) for i in range(shared.num_hidden_layers)]],
        ["Qwen3-Next", "a state", [int(kind == "linear_attention") for kind in linear.layer_types]],
    ]


def main():
    drawn = draw()
    written = {
        "origin": f"tools/reference_heads.py, transformers {transformers.__version__}, "
        f"torch {torch.__version__.partition('+')[0]}",
        "since": since(),
        "settings": {"theta": THETA, "softcap": SOFTCAP},
        "drawn": {name: array.tolist() for name, array in drawn.items()},
        "outputs": {name: output(name, drawn).round(7).tolist() for name in CLASSES},
    }
    text = json.dumps(written, separators=(",", ":")).replace("]],", "]],\n")
    TARGET.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {TARGET.name}: {', '.join(CLASSES)}, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""The decoder: tokens a second, first token, reading and memory, beside transformers on the same weights, one thread.

A prompt of 28 tokens, 64 written, greedy, in turn: `LlamaForCausalLM.generate` with the same dequantised weights, our
loop, and our loop through functions as a reader writes them. Reading the file is timed by itself; memory is the peak of
a process that reads the file and writes, without torch. Needs `make real-decoder`.
"""

import statistics
import subprocess
import sys
import time

import numpy as np
import torch

from attncourse import smollm

from .timing import verdict

ROUNDS, WRITTEN = 7, 64
PROMPT = (
    "Once upon a time, a small robot lived in a house by the sea with an old man. Every day the two of them walked to"
)
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
PEAK = f"""
import resource, sys
from attncourse import smollm
smollm.load(bar=iter).write({PROMPT!r}, {WRITTEN})
assert "torch" not in sys.modules
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3))
"""


def in_transformers(said, weights, **options):
    """Return the LlamaForCausalLM with these dequantised weights; the file keeps W_Q and W_K in another order."""
    from transformers import LlamaConfig, LlamaForCausalLM  # here: they take seconds, and tests need READERS alone

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
        **options,
    )
    named = dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), weights["token_embd.weight"])
    named["model.norm.weight"] = weights["output_norm.weight"]
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


class First:
    """A streamer of transformers, which remembers when the first token came."""

    def __init__(self):
        self.times = []

    def put(self, tokens):
        self.times.append(time.perf_counter())

    def end(self):
        pass


def by_transformers(model, numbers):
    """Return (seconds to the first token, seconds for all)."""
    first, prompt = First(), torch.tensor([numbers])
    start = time.perf_counter()
    with torch.inference_mode():
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=WRITTEN, do_sample=False, streamer=first
        )
    return first.times[1] - start, time.perf_counter() - start  # it is handed the prompt before


def by_speaker(speaker):
    start, times = time.perf_counter(), []
    for _ in speaker.stream(PROMPT, WRITTEN):
        times.append(time.perf_counter() - start)
    assert len(times) == WRITTEN + 1, "the model must not end its answer before"
    return times[0], times[-1]


# As a reader writes them, by the shapes alone; np.sqrt turns what follows it into float64.


def my_attention(query, key, value, attn_mask=None):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value


def my_split_heads(x, num_heads):
    n, d = x.shape
    return x.reshape(n, num_heads, d // num_heads).swapaxes(0, 1)


def my_merge_heads(x):
    h, n, d = x.shape
    return x.swapaxes(0, 1).reshape(n, h * d)


def my_grouped_attention(query, key, value, attn_mask=None, attention=my_attention):
    times = query.shape[-3] // key.shape[-3]
    return attention(query, np.repeat(key, times, axis=-3), np.repeat(value, times, axis=-3), attn_mask)


def my_decode_step(query, key, value, past, attention):
    keys = np.concatenate([past[0], key], axis=-2)
    values = np.concatenate([past[1], value], axis=-2)
    n_q, n_k = query.shape[-2], keys.shape[-2]
    return attention(query, keys, values, np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)), (keys, values)


def my_rope(x, positions, base):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-np.arange(0, d, 2) / d)
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], axis=-1)


READERS = {
    "attention": my_attention,
    "split_heads": my_split_heads,
    "merge_heads": my_merge_heads,
    "grouped_attention": my_grouped_attention,
    "decode_step": my_decode_step,
    "rope": my_rope,
}


def main():
    if smollm.missing():
        print(smollm.missing())
        return
    torch.set_num_threads(1)
    # First: Linux counts what the parent holds when it starts a process to that process's peak.
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, encoding="utf-8", check=True)
    reading = []
    for _ in range(5):
        start = time.perf_counter()
        said, weights = smollm.read_model()
        reading.append(time.perf_counter() - start)
    speaker, model = smollm.Speaker(said, weights), in_transformers(said, weights)
    numbers = speaker.tokens(PROMPT)
    contestants = {
        "transformers": lambda: by_transformers(model, numbers),
        "ours": lambda: by_speaker(speaker),
        "a reader's functions": lambda: by_speaker(speaker.using(**READERS)),
    }
    times = {name: [] for name in contestants}
    for round_ in range(ROUNDS + 1):
        for name, call in contestants.items():
            result = call()
            if round_:  # the first one warms up
                times[name].append(result)
    print(f"prompt of {len(numbers)} tokens, {WRITTEN} written, {ROUNDS} rounds in turn, one thread; medians")
    for name, rows in times.items():
        first, whole = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"{name:22}{WRITTEN / whole:6.1f} tokens a second, first token {first:.3f} s")
    wanted = (("ours", "transformers", 1, 1 / 1.1), ("ours", "transformers", 0, 1.2))
    for one, other, what, most in (*wanted, ("a reader's functions", "ours", 1, 1.2)):
        ratio = statistics.median(a[what] / b[what] for a, b in zip(times[one], times[other], strict=True))
        print(f"{one} / {other}, {('first token', 'all')[what]}: {ratio:.2f}  {verdict(ratio, most)}")
    print(f"reading the file: {statistics.median(reading):.2f} s  {verdict(statistics.median(reading), 1)}")
    print(f"peak memory, reading and writing: {float(done.stdout):.0f} MB  {verdict(float(done.stdout), 750)}")


if __name__ == "__main__":
    main()

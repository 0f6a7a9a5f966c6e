"""Attention modules of the transformers library, random weights, called directly: none is accused."""

import importlib
from pathlib import Path

import pytest
import torch

from attnlib.diagnose import diagnose

pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")
import transformers

HIDDEN = {"hidden_size": 32, "num_attention_heads": 4}


def of(path, name):
    """Return a class of transformers. To import them all takes seconds, so each test imports its own."""
    return getattr(importlib.import_module(f"transformers.models.{path}"), name)


def rotary(kind):
    """Adapt a Llama layer, which is handed cos and sin of the positions and an additive mask."""
    embedding = of("llama.modeling_llama", "LlamaRotaryEmbedding")(
        transformers.LlamaConfig(**HIDDEN, attn_implementation=kind)
    )

    def call(module, query, key, value, mask):
        added = None if mask is None else torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, -torch.inf)
        positions = embedding(query, torch.arange(query.shape[1])[None])
        return module(query, positions, None if added is None else added[:, None])

    return call


def t5(kind):
    config = transformers.T5Config(
        d_model=32, d_kv=8, num_heads=4, num_layers=1, vocab_size=16, d_ff=64, attn_implementation=kind
    )
    return transformers.T5Model(config).encoder.block[0].layer[0].SelfAttention


MODULES = {
    "BertSelfAttention": lambda kind: of("bert.modeling_bert", "BertSelfAttention")(
        transformers.BertConfig(**HIDDEN, attn_implementation=kind)
    ),
    "GPT2Attention": lambda kind: of("gpt2.modeling_gpt2", "GPT2Attention")(
        transformers.GPT2Config(n_embd=32, n_head=4, attn_implementation=kind), layer_idx=0
    ),
    "LlamaAttention": lambda kind: of("llama.modeling_llama", "LlamaAttention")(
        transformers.LlamaConfig(**HIDDEN, num_key_value_heads=2, attn_implementation=kind), layer_idx=0
    ),
    "DistilBERT": lambda kind: of("distilbert.modeling_distilbert", "DistilBertSelfAttention")(
        transformers.DistilBertConfig(dim=32, n_heads=4, attn_implementation=kind)
    ),
    "ViT": lambda kind: of("vit.modeling_vit", "ViTAttention")(
        transformers.ViTConfig(**HIDDEN, attn_implementation=kind)
    ),
    "T5": t5,
    "T5, alone": lambda kind: of("t5.modeling_t5", "T5Attention")(
        transformers.T5Config(d_model=32, d_kv=8, num_heads=4, attn_implementation=kind),
        has_relative_attention_bias=True,
        layer_idx=0,
    ),
}
# Beside "could not tell", which is no verdict. T5 alone lacks the initial weights into which its scale is folded.
# GPT-2 through torch's kernel leaves the mask of a chunk behind a cache to the model around it.
WARNED = {"T5": {"permutation"}, "T5, alone": {"permutation", "score scale"}, "LlamaAttention": {"permutation"}}
WARNED |= {"GPT2Attention": {"cache"}}


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODULES)
def test_no_module_of_transformers_is_accused(name, kind):
    torch.manual_seed(0)
    call = rotary(kind) if name == "LlamaAttention" else None
    diagnosis = diagnose(MODULES[name](kind), embed_dim=32, num_heads=4, call=call)
    assert diagnosis.wrong == [], diagnosis
    warned = {finding.probe for finding in diagnosis if finding.verdict == "beware"}
    assert warned - COMMON <= WARNED.get(name, set()), diagnosis
    for probe in ("causality", "padding", "row sums", "allowed keys", "dead parameters", "heads differ"):
        assert diagnosis[probe].verdict == "ok", diagnosis


def test_a_bug_in_a_module_of_transformers_is_named():
    torch.manual_seed(0)
    module = MODULES["BertSelfAttention"]("eager")
    module.scaling = 32**-0.5
    assert diagnose(module, embed_dim=32, num_heads=4).wrong == ["score scale"]


def test_a_scale_inside_a_product_is_seen():
    config = transformers.GPT2Config(n_embd=32, n_head=4, reorder_and_upcast_attn=True, attn_implementation="eager")
    diagnosis = diagnose(
        of("gpt2.modeling_gpt2", "GPT2Attention")(config, layer_idx=0), embed_dim=32, num_heads=4
    )  # baddbmm(alpha=)
    assert diagnosis["score scale"].verdict == "ok", diagnosis


def test_a_cache_of_transformers_is_used():
    module = MODULES["GPT2Attention"]("eager")
    assert diagnose(module, embed_dim=32, num_heads=4)["cache"].verdict == "ok"


def added(mask, like):
    return None if mask is None else torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask, -torch.inf)[:, None]


def roped(folder, name, **more):
    """Make a decoder's attention, and a call that hands it cosines and sines."""
    path = f"{folder}.modeling_{folder}"
    config = getattr(transformers, f"{name.removesuffix('Text')}{'Text' if name == 'Gemma3' else ''}Config")(
        **HIDDEN,
        num_key_value_heads=2,
        head_dim=8,
        num_hidden_layers=2,
        vocab_size=16,
        **more,
        attn_implementation="eager",
    )
    embedding = of(path, f"{name}RotaryEmbedding")(config)

    def call(module, query, key, value, mask):
        kind = ["full_attention"] if name == "Gemma3" else []
        return module(query, embedding(query, torch.arange(query.shape[1])[None], *kind), added(mask, query))

    module = of(path, f"{name}Attention")(config, layer_idx=1)
    if hasattr(module, "sinks"):  # GptOss makes them of memory as it is, and fills them when a whole model is made
        torch.nn.init.normal_(module.sinks)
    return module, call


def whisper():
    config = transformers.WhisperConfig(d_model=32, attn_implementation="eager")
    module = of("whisper.modeling_whisper", "WhisperAttention")(32, 4, config=config)
    return module, lambda m, q, k, v, mask: m(q, key_value_states=k, attention_mask=added(mask, q))


def perceiver():
    config = transformers.PerceiverConfig(d_latents=32, d_model=32)
    sizes = {"qk_channels": 32, "v_channels": 32, "num_heads": 4, "q_dim": 32, "kv_dim": 32}
    module = of("perceiver.modeling_perceiver", "PerceiverSelfAttention")(config, is_cross_attention=True, **sizes)
    return module, lambda m, q, k, v, mask: m(q, inputs=k, inputs_mask=added(mask, q))


def vits():
    return of("vits.modeling_vits", "VitsAttention")(transformers.VitsConfig(**HIDDEN)), None


def reformer():
    sizes = {**HIDDEN, "attention_head_size": 8, "lsh_attn_chunk_length": 4, "num_buckets": 2}
    return of("reformer.modeling_reformer", "LSHSelfAttention")(transformers.ReformerConfig(**sizes)), None


def paddle():
    folder = "pp_ocrv5_mobile_rec"
    config = of(f"{folder}.configuration_{folder}", "PPOCRV5MobileRecConfig")(attn_implementation="eager")
    config.hidden_size, config.num_attention_heads = 32, 4
    return of(f"{folder}.modeling_{folder}", "PPOCRV5MobileRecAttention")(config), None


def roberta():
    config = transformers.RobertaConfig(**HIDDEN, attn_implementation="eager")
    return of("roberta.modeling_roberta", "RobertaCrossAttention")(config), None


def idefics():
    return of("idefics.perceiver", "IdeficsPerceiverAttention")(32, 4, 8, True), None


# A boolean mask is added as 0 and 1 wherever the mask is meant to be added; a row without keys is the caller's.
COMMON = {"fully masked row", "mask polarity"}

# What each does on purpose: a sink; one map that weighs two halves of the values; values of positions; a token that
# does not look at itself; a mask or a context that its signature shares with others; a context it cannot do without.
PURPOSES = {
    "gpt-oss": (lambda: roped("gpt_oss", "GptOss"), {"row sums", "permutation"}),
    "DiffLlama": (lambda: roped("diffllama", "DiffLlama"), {"permutation"}),
    "Qwen3": (lambda: roped("qwen3", "Qwen3"), {"permutation"}),
    "Gemma 3": (
        lambda: roped("gemma3", "Gemma3", query_pre_attn_scalar=8, layer_types=["full_attention"] * 2),
        {"permutation"},
    ),
    "Whisper": (whisper, set()),
    "Perceiver": (perceiver, set()),
    "VITS": (vits, {"permutation", "keys matter"}),
    "Reformer": (reformer, {"allowed keys"}),
    "PP-OCR": (paddle, {"causality", "padding"}),
    "RoBERTa, cross": (roberta, set()),
    "IDEFICS, latents": (idefics, set()),
}


@pytest.mark.parametrize("name", PURPOSES)
def test_what_a_module_of_transformers_does_on_purpose_is_no_fault(name):
    torch.manual_seed(0)
    (module, call), warned = PURPOSES[name][0](), PURPOSES[name][1]
    diagnosis = diagnose(module, embed_dim=32, num_heads=4, call=call)
    assert diagnosis.wrong == [], diagnosis
    assert {f.probe for f in diagnosis if f.verdict == "beware"} - COMMON == warned, diagnosis


def roped_layer(folder, name, layer, kind, **more):
    """Make a decoder's layer or attention, and a call that hands it cosines, sines and a mask by name."""
    config = getattr(transformers, f"{name}Config")(
        **HIDDEN, num_key_value_heads=2, intermediate_size=64, vocab_size=16, **more, attn_implementation=kind
    )
    embedding = of(f"{folder}.modeling_{folder}", f"{name}RotaryEmbedding")(config)

    def call(module, query, key, value, mask):
        positions = embedding(query, torch.arange(query.shape[1])[None])
        return module(query, position_embeddings=positions, attention_mask=added(mask, query))

    return of(f"{folder}.modeling_{folder}", f"{name}{layer}")(config, layer_idx=1), call


def layer(folder, name, config, sizes, kind, **arguments):
    made = getattr(transformers, config)(**sizes, attn_implementation=kind)
    return of(f"{folder}.modeling_{folder}", name)(made, **arguments), None


def t5_block(part, kind):
    sizes = {"d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 1, "vocab_size": 16, "d_ff": 64}
    return getattr(transformers.T5Model(transformers.T5Config(**sizes, attn_implementation=kind)), part).block[0], None


SMALL = {**HIDDEN, "intermediate_size": 64}
DECODER = {"d_model": 32, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}
ENCODER = {"d_model": 32, "encoder_attention_heads": 4, "encoder_ffn_dim": 64}
# Whole layers, as the library builds them: most hold self-attention, some also what reads an encoder.
LAYERS = {
    "BERT": lambda kind: layer("bert", "BertLayer", "BertConfig", SMALL, kind),
    "BERT, decoder": lambda kind: layer(
        "bert", "BertLayer", "BertConfig", {**SMALL, "is_decoder": True, "add_cross_attention": True}, kind
    ),
    "GPT-2": lambda kind: layer("gpt2", "GPT2Block", "GPT2Config", {"n_embd": 32, "n_head": 4}, kind, layer_idx=0),
    "ViT": lambda kind: layer("vit", "ViTLayer", "ViTConfig", SMALL, kind),
    "BART, encoder": lambda kind: layer("bart", "BartEncoderLayer", "BartConfig", ENCODER, kind),
    "BART, decoder": lambda kind: layer("bart", "BartDecoderLayer", "BartConfig", DECODER, kind, layer_idx=0),
    "Whisper, decoder": lambda kind: layer(
        "whisper", "WhisperDecoderLayer", "WhisperConfig", DECODER, kind, layer_idx=0
    ),
    "Marian, decoder": lambda kind: layer("marian", "MarianDecoderLayer", "MarianConfig", DECODER, kind, layer_idx=0),
    "T5, encoder": lambda kind: t5_block("encoder", kind),
    "T5, decoder": lambda kind: t5_block("decoder", kind),
    "DistilBERT": lambda kind: layer(
        "distilbert", "TransformerBlock", "DistilBertConfig", {"dim": 32, "n_heads": 4, "hidden_dim": 64}, kind
    ),
    "OPT": lambda kind: layer("opt", "OPTDecoderLayer", "OPTConfig", {**HIDDEN, "ffn_dim": 64}, kind, layer_idx=0),
    "SigLIP": lambda kind: layer("siglip", "SiglipEncoderLayer", "SiglipVisionConfig", SMALL, kind),
    "DINOv2": lambda kind: layer("dinov2", "Dinov2Layer", "Dinov2Config", HIDDEN, kind),
    "ELECTRA": lambda kind: layer("electra", "ElectraLayer", "ElectraConfig", SMALL, kind),
    "Llama": lambda kind: roped_layer("llama", "Llama", "DecoderLayer", kind),
    "Mistral": lambda kind: roped_layer("mistral", "Mistral", "DecoderLayer", kind, head_dim=8),
    "Granite": lambda kind: roped_layer("granite", "Granite", "DecoderLayer", kind, attention_multiplier=1 / 8),
    "Qwen 2": lambda kind: roped_layer("qwen2", "Qwen2", "DecoderLayer", kind),
    "OLMo 2": lambda kind: roped_layer("olmo2", "Olmo2", "DecoderLayer", kind),
    "Cohere": lambda kind: roped_layer("cohere", "Cohere", "DecoderLayer", kind),
}


def test_the_page_counts_the_families():
    page = " ".join((Path(__file__).parent.parent / "docs" / "diagnose.md").read_text(encoding="utf-8").split())
    assert f"whole layers of {len({name.partition(',')[0] for name in LAYERS})} families" in page


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
@pytest.mark.parametrize("name", LAYERS)
def test_no_layer_of_transformers_is_accused(name, kind):
    torch.manual_seed(0)
    module, call = LAYERS[name](kind)
    diagnosis = diagnose(module, embed_dim=32, num_heads=4, call=call)
    assert diagnosis.wrong == [], diagnosis
    for probe in ("row sums", "allowed keys", "dead parameters", "heads differ", "causality"):
        assert diagnosis[probe].verdict == "ok", diagnosis
    scaled = diagnosis["score scale"].verdict
    assert scaled == ("beware" if name == "Granite" else "ok"), diagnosis

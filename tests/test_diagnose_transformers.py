"""Attention modules of the transformers library, random weights, called directly: none is accused."""

import importlib
from pathlib import Path

import pytest
import torch

from attnlib.diagnose import diagnose
from tests import model_families
from tests.model_families import FAMILIES, HIDDEN, added

pytest.importorskip("transformers", reason="transformers is not installed: make setup-tests")
import transformers


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


def test_the_page_counts_the_families():
    page = " ".join((Path(__file__).parent.parent / "docs" / "diagnose.md").read_text(encoding="utf-8").split())
    families = {name.partition(",")[0] for name in FAMILIES}
    assert len(families) >= 20 and f"whole layers of {len(families)} families" in page


# Whole layers, as the library builds them: most hold self-attention, some also what reads an encoder. All together
# they take a minute; the six that stand for the rest are examined at each check.
FEW = {"BERT, decoder", "GPT-2", "Llama", "Granite", "T5, decoder", "Whisper, decoder"}
SLOW = [family if family in FEW else pytest.param(family, marks=pytest.mark.slow) for family in FAMILIES]


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
@pytest.mark.parametrize("family", SLOW)
def test_no_layer_of_transformers_is_accused(family, kind):
    torch.manual_seed(0)
    module, call = model_families.layer(family, kind)
    diagnosis = diagnose(module, embed_dim=32, num_heads=4, call=call)
    assert diagnosis.wrong == [], diagnosis
    for probe in ("row sums", "allowed keys", "dead parameters", "heads differ", "causality"):
        assert diagnosis[probe].verdict == "ok", diagnosis
    scaled = diagnosis["score scale"].verdict
    assert scaled == ("beware" if family == "Granite" else "ok"), diagnosis


@pytest.mark.parametrize("family", ["BERT", "GPT-2", "Llama", "T5, encoder", "ViT"])
def test_a_whole_model_of_a_family_holds_the_layer(family):
    parts = {type(part).__name__ for part in model_families.model(family).modules()}
    assert FAMILIES[family].layer in parts

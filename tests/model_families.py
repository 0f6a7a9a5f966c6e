"""Tiny models and layers of the transformers library by family, with random weights: no file, no network.

>>> from attnlib.diagnose import diagnose
>>> module, call = layer("BERT")
>>> diagnose(module, embed_dim=32, num_heads=4, call=call).ok
True
"""

import importlib
from typing import NamedTuple

import torch

HIDDEN = {"hidden_size": 32, "num_attention_heads": 4}
SMALL = {**HIDDEN, "intermediate_size": 64}
GROUPED = {**SMALL, "num_key_value_heads": 2, "vocab_size": 16}
BOTH = {f"{part}_attention_heads": 4 for part in ("encoder", "decoder")}
BOTH |= {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
T5 = {"d_model": 32, "d_kv": 8, "num_heads": 4, "num_layers": 1, "vocab_size": 16, "d_ff": 64}


class Family(NamedTuple):
    """Where a layer stands, what its config is called, and the sizes that are not the library's own."""

    folder: str
    layer: str
    config: str
    sizes: dict
    arguments: dict = {}  # noqa: RUF012  # of the layer, beside its config
    rotary: str | None = None  # what makes the cosines and sines that the layer is handed
    inside: str | None = None  # where in a whole model the layer stands, if it does not stand alone


FIRST = {"layer_idx": 0}
FAMILIES = {
    "ALBERT": Family("albert", "AlbertLayer", "AlbertConfig", SMALL),
    "BART, encoder": Family("bart", "BartEncoderLayer", "BartConfig", BOTH),
    "BART, decoder": Family("bart", "BartDecoderLayer", "BartConfig", BOTH, FIRST),
    "BERT": Family("bert", "BertLayer", "BertConfig", SMALL),
    "BERT, decoder": Family(
        "bert", "BertLayer", "BertConfig", {**SMALL, "is_decoder": True, "add_cross_attention": True}
    ),
    "BioGPT": Family("biogpt", "BioGptDecoderLayer", "BioGptConfig", SMALL, FIRST),
    "CLIP": Family("clip", "CLIPEncoderLayer", "CLIPTextConfig", SMALL),
    "Cohere": Family("cohere", "CohereDecoderLayer", "CohereConfig", GROUPED, FIRST, "CohereRotaryEmbedding"),
    "DeiT": Family("deit", "DeiTLayer", "DeiTConfig", SMALL),
    "DINOv2": Family("dinov2", "Dinov2Layer", "Dinov2Config", HIDDEN),
    "DistilBERT": Family(
        "distilbert", "TransformerBlock", "DistilBertConfig", {"dim": 32, "n_heads": 4, "hidden_dim": 64}
    ),
    "ELECTRA": Family("electra", "ElectraLayer", "ElectraConfig", SMALL),
    "Gemma": Family("gemma", "GemmaDecoderLayer", "GemmaConfig", {**GROUPED, "head_dim": 8}, FIRST,
                    "GemmaRotaryEmbedding"),
    "GPT-2": Family("gpt2", "GPT2Block", "GPT2Config", {"n_embd": 32, "n_head": 4}, FIRST),
    "GPT-NeoX": Family("gpt_neox", "GPTNeoXLayer", "GPTNeoXConfig", SMALL, FIRST, "GPTNeoXRotaryEmbedding"),
    "Granite": Family("granite", "GraniteDecoderLayer", "GraniteConfig", {**GROUPED, "attention_multiplier": 1 / 8},
                      FIRST, "GraniteRotaryEmbedding"),
    "HuBERT": Family("hubert", "HubertEncoderLayer", "HubertConfig", SMALL),
    "Llama": Family("llama", "LlamaDecoderLayer", "LlamaConfig", GROUPED, FIRST, "LlamaRotaryEmbedding"),
    "Marian, decoder": Family("marian", "MarianDecoderLayer", "MarianConfig", BOTH, FIRST),
    "mBART, decoder": Family("mbart", "MBartDecoderLayer", "MBartConfig", BOTH, FIRST),
    "Mistral": Family("mistral", "MistralDecoderLayer", "MistralConfig", {**GROUPED, "head_dim": 8}, FIRST,
                      "MistralRotaryEmbedding"),
    "OLMo 2": Family("olmo2", "Olmo2DecoderLayer", "Olmo2Config", GROUPED, FIRST, "Olmo2RotaryEmbedding"),
    "OPT": Family("opt", "OPTDecoderLayer", "OPTConfig", {**HIDDEN, "ffn_dim": 64}, FIRST),
    "Pegasus, encoder": Family("pegasus", "PegasusEncoderLayer", "PegasusConfig", BOTH),
    "Phi": Family("phi", "PhiDecoderLayer", "PhiConfig", SMALL, FIRST, "PhiRotaryEmbedding"),
    "Qwen 2": Family("qwen2", "Qwen2DecoderLayer", "Qwen2Config", GROUPED, FIRST, "Qwen2RotaryEmbedding"),
    "Qwen 3": Family("qwen3", "Qwen3DecoderLayer", "Qwen3Config", {**GROUPED, "head_dim": 8}, FIRST,
                     "Qwen3RotaryEmbedding"),
    "RoBERTa": Family("roberta", "RobertaLayer", "RobertaConfig", SMALL),
    "SigLIP": Family("siglip", "SiglipEncoderLayer", "SiglipVisionConfig", SMALL),
    "StarCoder 2": Family("starcoder2", "Starcoder2DecoderLayer", "Starcoder2Config", GROUPED, FIRST,
                          "Starcoder2RotaryEmbedding"),
    "T5, encoder": Family("t5", "T5Block", "T5Config", T5, inside="encoder.block.0"),
    "T5, decoder": Family("t5", "T5Block", "T5Config", T5, inside="decoder.block.0"),
    "ViT": Family("vit", "ViTLayer", "ViTConfig", SMALL),
    "wav2vec 2": Family("wav2vec2", "Wav2Vec2EncoderLayer", "Wav2Vec2Config", SMALL),
    "Whisper, decoder": Family("whisper", "WhisperDecoderLayer", "WhisperConfig", BOTH, FIRST),
    "XGLM": Family("xglm", "XGLMDecoderLayer", "XGLMConfig", {"d_model": 32, "ffn_dim": 64, "attention_heads": 4},
                   FIRST),
    "XLM-RoBERTa": Family("xlm_roberta", "XLMRobertaLayer", "XLMRobertaConfig", SMALL),
}  # fmt: skip


def config(family, kind="eager"):
    import transformers

    made = getattr(transformers, FAMILIES[family].config)(**FAMILIES[family].sizes, attn_implementation=kind)
    for name in ("num_hidden_layers", "encoder_layers", "decoder_layers"):
        if hasattr(made, name):
            setattr(made, name, 2)
    return made


def model(family, kind="eager"):
    """Return a whole model of the family, without a head."""
    import transformers

    return transformers.AutoModel.from_config(config(family, kind))


def layer(family, kind="eager"):
    """Return a layer as the library makes it, and what calls it as (module, query, key, value, mask), or None."""
    made, one = config(family, kind), FAMILIES[family]
    # To import all of the library takes seconds: only the family's own file is.
    names = vars(importlib.import_module(f"transformers.models.{one.folder}.modeling_{one.folder}"))
    if one.inside:
        return model(family, kind).get_submodule(one.inside), None
    module = names[one.layer](made, **one.arguments)
    return module, _with_positions(names[one.rotary](made)) if one.rotary else None


def _with_positions(embedding):
    """Return a call that hands a layer the cosines and sines of its positions, and a mask that is added."""

    def call(module, query, key, value, mask):
        positions = embedding(query, torch.arange(query.shape[1])[None])
        return module(query, position_embeddings=positions, attention_mask=added(mask, query))

    return call


def added(mask, like):
    """Return a boolean mask (b, n_q, n_k) as one that is added to the scores, or None."""
    return None if mask is None else torch.zeros(mask.shape, dtype=like.dtype).masked_fill(~mask, -torch.inf)[:, None]

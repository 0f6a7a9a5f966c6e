"""Draw what the README shows of attnlib.watch, with Chromium: docs/watch_light.png, docs/watch_dark.png.

    make real-decoder
    python -m pip install transformers
    python -m tools.setup_env browser
    python -m tools.watch_picture

The model is SmolLM2 as `transformers` runs it, with the weights that the course has, and all numbers are the model's.
"""

import shutil

import torch
import transformers
from playwright.sync_api import sync_playwright

from attncourse import smollm
from attncourse.smollm import gguf_file
from attncourse.smollm.weights import layer_of, shape_of
from attnlib import live
from attnlib.watch import watch

from .page import look
from .readme_picture import keep
from .series import ROOT

TEXT = "When Mary and John went to the store, John gave a drink to"
LAYER, HEAD = 23, 0
PARTS = {  # of a layer, by our names
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>{look}
body {{ margin: 0; padding: 24px; width: 980px }}
.attnlib-down, .attnlib-said {{ display: none }}
svg {{ height: auto !important; width: 100% !important }}
</style><div class="attnlib-view attnlib-live">{view}</div>"""


def load():
    """Return SmolLM2 as a model of `transformers`."""
    said, weights = gguf_file.read_model(None, gguf_file.SHA256, lambda parts: parts)
    shape, table = shape_of(said), weights["token_embd.weight"]
    config = transformers.LlamaConfig(
        vocab_size=len(table),
        hidden_size=table.shape[1],
        intermediate_size=said["llama.feed_forward_length"],
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        rms_norm_eps=shape.eps,
        rope_parameters={"rope_type": "default", "rope_theta": said["llama.rope.freq_base"]},
        max_position_embeddings=shape.context,
    )
    state = {"model.embed_tokens": table, "lm_head": table, "model.norm": weights["output_norm.weight"]}
    for i in range(shape.layers):
        layer = layer_of(weights, i, shape)
        state |= {f"model.layers.{i}.{name}": getattr(layer, ours).T for ours, name in PARTS.items()}
    model = transformers.LlamaForCausalLM(config).eval()
    model.load_state_dict({f"{name}.weight": torch.tensor(w.copy()).float() for name, w in state.items()})
    return model


def main():
    speaker, model = smollm.load(bar=lambda parts: parts), load()
    numbers = list(speaker.tokens(TEXT))
    with torch.no_grad(), watch(model) as seen:
        logits = model(torch.tensor([numbers])).logits[0, -1]

    def word(number):
        return speaker.tokenizer.decode([int(number)])

    best = logits.softmax(dim=-1).topk(3)
    following = [(word(number), float(share)) for number, share in zip(best.indices, best.values, strict=True)]
    view = live.ribbons(seen.stops([word(number) for number in numbers], following))
    view.choose(layer=LAYER, head=HEAD)
    page = PAGE.format(look=look("inter", "serif"), view=view.draw()[0])
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        for theme in ("light", "dark"):
            shot = browser.new_page(viewport={"width": 980, "height": 600}, color_scheme=theme, device_scale_factor=1.5)
            shot.set_content(page)
            shot.evaluate("document.fonts.ready")
            keep(shot.locator("body").screenshot(), ROOT / "docs" / f"watch_{theme}.png")
        browser.close()


if __name__ == "__main__":
    main()

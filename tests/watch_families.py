"""Whole models of the transformers library, watched and compared with their own eager maps.

`python -m tests.watch_families` writes the table of docs/watch.md.
"""

import datetime
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from attnlib.watch import report, watch
from tests import model_families
from tests.model_families import FAMILIES

# A whole model has both an encoder and a decoder; those of sound, and of text and image at once, want other inputs.
OTHERS = {"HuBERT", "wav2vec 2", "Whisper, decoder", "BERT, decoder", "T5, decoder", "BART, decoder", "CLIP", "SigLIP"}
WHOLE = [name for name in FAMILIES if name not in OTHERS]
PAGE = Path(__file__).parent.parent / "docs" / "watch.md"
HEAD = "| model | its attention | calls | seen as | mask | output | weights |\n|---|---|---|---|---|---|---|"


class Row(NamedTuple):
    """What came of one model: how far its outputs, and its eager maps, lie from those of the traces."""

    name: str
    attention: str
    calls: int
    kinds: str
    masks: str
    output: float  # the largest difference, as a share of the largest number
    weights: float
    equal: bool  # watched and not, the outputs are the same to the last bit
    maps: int  # that the eager model hands back

    def line(self):
        name = self.name.removesuffix(", encoder").removesuffix(", decoder")
        cells = name, self.attention, self.calls, self.kinds, self.masks, f"{self.output:.0e}", f"{self.weights:.0e}"
        return f"| {' | '.join(map(str, cells))} |"


def compare(family):
    """Return the Row of a family: two layers, random weights, two sequences, of which the second is padded."""
    torch.manual_seed(0)
    model = eager = model_families.model(family, "eager").eval()
    inputs = inputs_of(eager)
    if eager._supports_sdpa:
        model = model_families.model(family, "sdpa").eval()
        model.load_state_dict(eager.state_dict())
    with torch.no_grad():
        before, maps = model(**inputs)[0], _own_maps(eager, inputs)
        with watch(model) as seen:
            during = model(**inputs)[0]
    left, outputs, weights = [x.numpy() for x in maps], 0.0, 0.0  # of an encoder and a decoder in another order
    for call in seen:
        traces = [call.trace(b) for b in range(2)]
        models = call.kept["output"].numpy(force=True)
        off = np.abs(np.stack([trace.output for trace in traces]) - models)[~np.isnan(models)].max()
        outputs = max(outputs, float(off / np.nanmax(np.abs(models))))
        ours = np.stack([trace.weights for trace in traces])
        off = [np.nanmax(np.abs(ours - x)[_rows(ours)]) if x.shape == ours.shape else 1.0 for x in left]
        weights = max(weights, float(min(off, default=1.0)))
        if off:
            left.pop(int(np.argmin(off)))
    kinds, masks = ("; ".join(dict.fromkeys(x)) for x in ([c.kind for c in seen], [c.mask_in_words for c in seen]))
    attention = "sdpa" if eager._supports_sdpa else "eager"
    return Row(family, attention, len(seen), kinds, masks, outputs, weights, torch.equal(before, during), len(maps))


def examine(family):
    """Return the Report on a family as it comes, with the maps that it hands back in eager mode."""
    torch.manual_seed(0)
    model = model_families.model(family, "eager").eval()
    inputs = inputs_of(model)
    with torch.no_grad(), watch(model) as seen:
        maps = _own_maps(model, inputs)
    return report(seen, real=inputs.get("attention_mask"), maps=maps)


def inputs_of(model):
    if model.main_input_name == "pixel_values":
        config = model.config
        return {"pixel_values": torch.randn(2, 3, config.image_size, config.image_size)}
    ids = torch.randint(3, 16, (2, 7))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    given = {"input_ids": ids, "attention_mask": mask}
    return given | ({"decoder_input_ids": ids} if model.config.is_encoder_decoder else {})


def _own_maps(model, inputs):
    out = model(**inputs, output_attentions=True)
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    return [x for name in names for x in (getattr(out, name, None) or ()) if x is not None]


def _rows(ours):
    """Return which rows to compare: where one sees nothing, eager spreads its weights evenly and attnlib gives 0."""
    return np.broadcast_to(ours.sum(-1, keepdims=True) > 0.5, ours.shape)


def write(name, head, rows):
    """Write a table into docs/watch.md, between the comments of that name, row by row as they are made."""
    import transformers

    torch.set_num_threads(1)
    lines = [head]
    for row in rows:
        lines.append(row)
        print(row, flush=True)
    made = f"Made on {datetime.date.today()}, transformers {transformers.__version__}, torch {torch.__version__}."
    table = "\n".join([f"<!-- {name} -->", *lines, "", made, f"<!-- /{name} -->"])
    page = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(f"<!-- {name} -->.*<!-- /{name} -->", lambda _: table, page, flags=re.S), "utf-8")


if __name__ == "__main__":
    write("families", HEAD, (compare(family).line() for family in WHOLE))

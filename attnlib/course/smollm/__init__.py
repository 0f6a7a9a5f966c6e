"""A real decoder in NumPy, SmolLM2-135M-Instruct, which speaks through functions of attention that are handed in.

With the model (`make real-decoder`): ``speaker = load()``, then ``speaker.write("Once upon a time")``; through a
function of yours ``speaker.using(attention=my_attention).write(...)``. Without the model, the stored results.
"""

from .browser import fetch
from .circuits import (
    copying,
    parked_prompts,
    parking,
    sinks,
    windows,
    windows_apart,
    without_heads,
)
from .faults import FAULTS
from .functions import FUNCTIONS, Functions, decode_step, grouped_attention
from .gguf_file import find, missing, read
from .results import (
    MEASURES,
    all_stops,
    at_d_k,
    blanks,
    chunks,
    every_map,
    every_score,
    mistakes,
    name_arrives,
    name_heads,
    packed_scores,
    sayings,
    sentences,
    sharpness,
    stops,
    stops_of,
    through_tiles,
    warmer,
)
from .speaker import Speaker, chat, load
from .texts import BLANK, BLANKS, EXCHANGED, STORY, TEXTS, TRIED
from .tokenizer import BytePairs
from .weights import to_halves

__all__ = [
    "BLANK",
    "BLANKS",
    "EXCHANGED",
    "FAULTS",
    "FUNCTIONS",
    "MEASURES",
    "STORY",
    "TEXTS",
    "TRIED",
    "BytePairs",
    "Functions",
    "Speaker",
    "all_stops",
    "at_d_k",
    "blanks",
    "chat",
    "chunks",
    "copying",
    "decode_step",
    "every_map",
    "every_score",
    "fetch",
    "find",
    "grouped_attention",
    "load",
    "missing",
    "mistakes",
    "name_arrives",
    "name_heads",
    "packed_scores",
    "parked_prompts",
    "parking",
    "read",
    "sayings",
    "sentences",
    "sharpness",
    "sinks",
    "stops",
    "stops_of",
    "through_tiles",
    "to_halves",
    "warmer",
    "windows",
    "windows_apart",
    "without_heads",
]

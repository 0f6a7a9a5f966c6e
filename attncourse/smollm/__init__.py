"""A real decoder in NumPy, SmolLM2-135M-Instruct, which speaks through functions of attention that are handed in.

With the model (`make real-decoder`): ``speaker = load()``, then ``speaker.write("Once upon a time")``; through a
function of yours ``speaker.using(attention=my_attention).write(...)``. Without the model, what was measured on it:
``recorded("blanks")``.
"""

# ruff: noqa: F401  what the notebooks use, under one name

from .browser import fetch
from .drafts import looked_up, speculate
from .faults import FAULTS
from .finding import codes_found, found_again, narrow_layers
from .functions import FUNCTIONS, Functions, decode_step, grouped_attention
from .gguf_file import find, missing, read_model
from .results import every_map, every_score, nine_heads, parking, reading, recorded, sentences, stops
from .speaker import Speaker, chat, load
from .texts import BLANK, BLANKS, EXCHANGED, GUESSED, MORE, STORY, TEXTS, TRIED
from .tokenizer import BytePairs
from .weights import to_halves

"""A real decoder in NumPy, SmolLM2-135M-Instruct, which speaks through functions of attention that are handed in.

With the model (`make real-decoder`): ``speaker = load()``, then ``speaker.write("Once upon a time")``; through a
function of yours ``speaker.using(attention=my_attention).write(...)``. Without the model, the stored results.
"""

from .functions import Functions, decode_step, grouped_attention
from .gguf_file import find, missing, read
from .speaker import Speaker, chat, load
from .tokenizer import BytePairs
from .weights import to_halves

__all__ = [
    "BytePairs",
    "Functions",
    "Speaker",
    "chat",
    "decode_step",
    "find",
    "grouped_attention",
    "load",
    "missing",
    "read",
    "to_halves",
]

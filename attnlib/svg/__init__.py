"""Pictures as SVG text: pure functions from arrays to strings, fast enough to follow a slider.

`parts` are what pictures are made of: matrices, labels, names in the colours of their roles, frames, hatch, colour
bars, mathematics, and targets for the mouse. `charts` are whole pictures: maps and bars; `flow` is the picture of one
call.
"""

# ruff: noqa: F401  what the views draw with, under one name

from .charts import CELLS, PHONE, SIDE, bars, cell_side, columns, columns_on_a_phone, describe, heads, heatmap
from .parts import (
    TIMES,
    beside,
    escape,
    exact,
    frame,
    hatch,
    image,
    layouts,
    maths,
    matrix,
    number,
    paint,
    picture,
    shorten,
    signed_map,
    tag,
    target,
    text,
    width,
)
from .ribbon_row import HIGH as RIBBONS_HIGH
from .ribbon_row import describe as describe_row
from .ribbon_row import key_name, ribbons, stage_group
from .tokens import length, starts_word, visible

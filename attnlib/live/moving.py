"""A still that moves by itself: an animated PNG, which also moves where no script runs and nothing is trusted."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from .. import colours

ROUNDS, FIRST, EACH = 3, 2000, 700  # rounds; milliseconds of the first frame and of each other
FRAMES, FEWEST = 8, 3  # at most, beside the first and the last, which are alike; at least, with numbers in the cells
MOST_BYTES = 60_000  # bytes; frames are left out until they fit
# Colours that mean something keep their exact shade in the palette.
KEPT = (*colours.ROLES, *(colours.token(f"{role}-text") for role in colours.ROLES.values()))
KEPT = (*KEPT, colours.INK, colours.PAPER, colours.SUNK, colours.QUIET, colours.LINE, colours.NOT_FINITE)


def moving_png(figure: Any, change: Callable[..., Any], values: Sequence[Any], start: Any) -> bytes | None:
    """Return an animated PNG as bytes, or None if it cannot be small enough.

    The numbers in the cells of maps take most of its room. Where they leave none to move, they are left out.

    `figure` is the first frame; it shows `start`, one of the `values`, and is left changed: the picture goes from there
    up, on from the lowest, and ends where it began. `change`, called with (figure, value), draws the value into some of
    the axes and returns them; if it is None, the picture stands, and only takes less room.
    """
    if change is None:
        return encode_apng(_render_frames(figure, change, []))
    at = list(values).index(start)
    others = [*values[at + 1 :], *values[:at]]
    places = sorted({round(i) for i in np.linspace(0, len(others) - 1, FRAMES)}) if others else []
    stops = [others[place] for place in places]
    png = _fitting(_render_frames(figure, change, stops), min(FEWEST, len(stops) or 1))
    if png is None and stops:
        change(figure, start)
        png = _fitting(_render_frames(figure, change, stops, numbers=False), 1)
    return png


def _fitting(frames, fewest):
    """Return the PNG of as many frames as have room, or None if these are fewer than `fewest` beside the first."""
    first, *frames = frames
    # To try all counts takes seconds.
    sizes = [len(encode_apng([first, *frames[:count], first])) for count in (0, fewest)]
    each = max((sizes[1] - sizes[0]) / fewest, 1)
    for count in range(min(len(frames), int((MOST_BYTES - sizes[0]) / each) + 1), fewest - 1, -1):
        places = sorted({round(i) for i in np.linspace(0, len(frames) - 1, count)})
        png = encode_apng([first, *(frames[place] for place in places), first])
        if len(png) <= MOST_BYTES:
            return png
    return None


def _render_frames(figure, change, values, numbers=True):
    """Return the pixels of a figure, then those after each change, as arrays (height, width, RGBA).

    Only the axes that change are drawn again, and put over a picture of all others.
    """
    canvas = FigureCanvasAgg(figure)

    def pixels():
        for ax in () if numbers else figure.axes:
            for values_of_a_map in ax.artists:
                values_of_a_map.set_visible(False)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()

    for ax in (figure.patch, *figure.axes):  # which an earlier try has hidden
        ax.set_visible(True)
    frames = [pixels()]
    figure.set_layout_engine("none")  # everything stays where it is
    all_axes, ground = figure.axes, None
    for value in values:
        moved = change(figure, value)
        if ground is None:
            for ax in moved:
                ax.set_visible(False)
            ground = pixels()
            figure.patch.set_visible(False)
        for ax in all_axes:
            ax.set_visible(ax in moved)
        image = pixels()
        frames.append(np.where(image[..., 3:] > 0, image, ground))
    return frames


def encode_apng(frames: Sequence[np.ndarray]) -> bytes:
    """Return frames as an animated PNG with one palette of 256 colours.

    It is not chosen by frequency, as usual: where thin lines lose their colour, a role loses its meaning. Each next
    colour is the one whose pixels are furthest from those that were taken.
    """
    stack = np.stack(frames).view(np.uint32)[..., 0]
    changed = stack != stack[0]  # few pixels: sorting those of all frames would take seconds
    distinct, counts = np.unique(np.concatenate([stack[0].ravel(), stack[changed]]), return_counts=True)
    shades = distinct.view(np.uint8).reshape(-1, 4).astype(float)
    taken = [np.array([*colours.rgb(colour), 255.0]) for colour in KEPT]
    distance = np.min([((shades - colour) ** 2).sum(1) for colour in taken], axis=0)
    while len(taken) < 256 and distance.any():
        taken.append(shades[np.argmax(distance * counts)])
        distance = np.minimum(distance, ((shades - taken[-1]) ** 2).sum(1))
    palette = np.array(taken)
    nearest = ((shades[:, None] - palette) ** 2).sum(-1).argmin(1).astype(np.uint8)
    pixels = np.tile(nearest[np.searchsorted(distinct, stack[0])], (len(stack), 1, 1))
    pixels[changed] = nearest[np.searchsorted(distinct, stack[changed])]
    images = [Image.fromarray(frame, "P") for frame in pixels]
    alpha = palette[:, 3].astype(np.uint8).tobytes()
    for image in images:
        image.putpalette(palette[:, :3].astype(np.uint8).tobytes())
        image.info["transparency"] = alpha  # without it Pillow leaves out what differs in its alpha alone
    png, times = io.BytesIO(), [FIRST, *[EACH] * (len(frames) - 1)]
    options = {"append_images": images[1:], "duration": times, "loop": ROUNDS, "optimize": True}
    images[0].save(png, "PNG", save_all=True, transparency=alpha, **options)
    return png.getvalue()

"""Write docs/live_view.png, the moving picture of the README: the worked example as `live.flow` shows it.

python -m tools.readme_picture
"""

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

import attnlib as al
from attnlib import live
from attnlib.examples import KARIM
from attnlib.live import moving, still

from .series import ROOT

# One stop for each query, at the key it looks at most, and one at another key.
STOPS = ({"query": 2, "key": 1}, {"query": 0, "key": 2}, {"query": 1, "key": 1}, {"query": 2, "key": 2})


def main():
    matplotlib.use("agg")
    view = live.flow(al.attention_trace(*KARIM.project()), x=KARIM.x)
    frames = []
    for stop in STOPS:
        for name, value in stop.items():
            view.sliders[name].value = value
        canvas = FigureCanvasAgg(still.figure(view.picture.value))
        canvas.draw()
        frames.append(np.asarray(canvas.buffer_rgba()).copy())
    target = ROOT / "docs" / "live_view.png"
    target.write_bytes(moving.encode_apng([*frames, frames[0]]))
    print(f"wrote {target.name}: {len(STOPS)} stops, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

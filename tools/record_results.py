"""Write the results that notebooks replay, in attncourse/data: neighbours_results.json and jumps_results.json (both
train_and_look), minilm_results.json (a_real_model), writer_results.json with writer_weights.npz (one_token_at_a_time),
dates_results.json with dates_weights.npz (two_texts), letters_results.json with letters_weights.npz
(model_of_your_own), and smollm_results.json and smollm_stops.json, of the decoder.

    make real-model && python -m tools.record_results a_real_model && make notebooks NB=a_real_model
    python -m tools.record_results neighbours && make notebooks NB=train_and_look
    make real-decoder && python -m tools.record_results decoder

For a_real_model it runs the cells of the source in order and keeps every result that `measured` got. For neighbours it
trains every model of `attncourse.training.neighbours`, in half a minute. For train_and_look it runs the cells that
define the model and its training, and trains it nineteen times, in five minutes. For one_token_at_a_time it trains the
writer with five seeds, and its variants, in five minutes. For two_texts it runs the cells that define the translator
and its training, and trains it ten times, in four minutes. For model_of_your_own it does so forty-nine times, half a
minute each on an idle machine, or only those named behind it, "right 0" for instance; what was trained before stays,
and so the rest can follow another day. For the decoder it takes every one of `tools/measures.py`,
in ten minutes or so, or only those named behind `decoder`. Run it after a change of an experiment;
tests/test_neighbours.py, test_jumps.py, test_real_model.py, test_writer.py, test_letters.py and test_smollm_results.py
compare fresh results with the files.
"""

import json
import sys
from pathlib import Path

import jupytext
import matplotlib
import numpy as np

from attncourse import real_model
from attncourse.model_files import DATA
from attnlib.progress import progress

from . import letter_models

SOURCE = Path(__file__).resolve().parent.parent / "notebooks" / "src" / "a_real_model.py"
TARGET = DATA / "minilm_results.json"


def run_cells(source=SOURCE):
    """Run the code cells of a notebook source in one namespace and return it."""
    names = {"__name__": "__main__", "display": lambda *things: None}
    for cell in jupytext.read(source, fmt="py:percent").cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, str(source), "exec"), names)
    return names


def of_the_model():
    if real_model.missing():
        sys.exit(real_model.missing())
    matplotlib.use("agg")
    if not TARGET.exists():
        TARGET.write_text("{}", encoding="utf-8")
    return TARGET, run_cells()["measured"].fresh


def of_the_neighbours():
    import torch

    from attncourse.training import neighbours

    torch.set_num_threads(1)
    found = {name: result for experiment in neighbours.EXPERIMENTS for name, result in experiment().items()}
    kept = neighbours.DRAWN
    for name, result in found.items():
        if isinstance(result, dict) and name not in kept:
            del result["maps"]  # no picture shows them
    return neighbours.RESULTS, round_for_json(found)


def of_the_jumps():
    """Train one layer with 1 to 12 heads of 32 features, and two layers of one head on words of three lengths."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    names = cells_of_the_jumps()
    found = {"one layer": {}, "two layers": {}}
    for heads in progress([1, 2, 4, 8, 12], "one layer"):
        models = (names["trained"](1, heads, 32 * heads, steps=1500, lr=1e-3, seed=seed)[0] for seed in (0, 1))
        found["one layer"][heads] = [right_by_place(model, names["draw_jumps"]) for model in models]
    for n, steps in ((6, 600), (12, 600), (20, 1000)):
        models = (names["trained"](2, n=n, steps=steps, seed=seed)[0] for seed in (0, 1, 2))
        found["two layers"][n] = [np.mean(right_by_place(model, names["draw_jumps"], n)) for model in models]
    rates = (2, 1, 3e-3, 600), (2, 1, 1e-3, 600), (2, 1, 1e-3, 1500)
    rates += (1, 2, 1e-3, 1500), (1, 12, 1e-3, 1500), (1, 12, 5e-4, 1000)
    found["rates"] = [rate_of_the_jumps(names, *rate) for rate in progress(rates, "rates")]
    return DATA / "jumps_results.json", round_for_json(found)


def rate_of_the_jumps(names, layers, heads, lr, steps):
    models = (names["trained"](layers, heads, 32 * heads, steps=steps, lr=lr, seed=seed)[0] for seed in (0, 1, 2))
    return [layers, heads, lr, steps, [np.mean(right_by_place(model, names["draw_jumps"])) for model in models]]


def cells_of_the_jumps():
    """Return what the cells of lesson train_and_look define that make and train a model of its section 4."""
    from attnlib.torch_layers import MultiHeadAttention

    needed = "import attnlib as al", "def draw_jumps", "class AttentionOnly", "def jump_loss"
    return cells_with("train_and_look", "# ", "## 5 ·", needed, MultiHeadAttention=MultiHeadAttention, D=32)


def right_by_place(model, draw_jumps, n=12):
    """Return the share of right answers for each place of the letter that asks, (n - 1,), on 1000 words."""
    import torch

    tokens, wanted = draw_jumps(torch.Generator().manual_seed(4), 1000, n)
    with torch.no_grad():
        right = model(tokens)[0][:, n:].argmax(-1) == wanted
    place = (tokens[:, n:, None] == tokens[:, None, :n]).int().argmax(-1)
    return [right[place == k].float().mean().item() for k in range(n - 1)]


def cells_with(name, start, stop, needed, /, **names):
    """Run the code cells of a notebook between two headings that hold any of the words, and return the names."""
    from .build_notebooks import code_between

    for cell in code_between(name, start, stop):
        if any(words in cell for words in needed):
            exec(cell, names)
    return names


def of_the_writers():
    import torch  # here, because run_cells serves where there is none

    from attncourse import writer

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    corpus = writer.Corpus(20_000, seed=0)
    found, kept = [], {}
    for seed in progress(list(writer.SEEDS), "seeds"):
        models = {name: of_one_variant(name, corpus, seed) for name in writer.VARIANTS}
        found.append(of_one_seed(models))
        if seed == 0:
            kept = {name: models[name].weights() for name in writer.STORED}
    np.savez_compressed(
        writer.WEIGHTS, **{f"{name}/{key}": x for name, arrays in kept.items() for key, x in arrays.items()}
    )
    return writer.RESULTS, found


def of_one_variant(name, corpus, seed=0):
    from attncourse import writer
    from attncourse.training import decoder

    return decoder.trained(corpus, seed, **writer.VARIANTS[name])


def of_one_seed(models):
    from attncourse import writer

    found, model = {name: writer.measured(one) for name, one in models.items()}, models["writer"]
    found["rows"] = writer.rows_of_the_verb(model).tolist()
    edges = {"subject": (writer.SUBJECT,), "that": (writer.THAT,), "both": writer.WAYS_BACK, "other": (writer.OTHER,)}
    for name, keys in edges.items():
        found[f"without {name}"] = writer.agreement(model, masks=writer.without_edges(*keys))
    for width in writer.WIDTHS:
        for keep_first in (False, True):
            found[f"window {width}{' and the first' * keep_first}"] = in_window(model, width, keep_first)
    return round_for_json(found)


def in_window(model, width, keep_first=False):
    """Return what becomes of a model that may look back no further: agreement, and the share of right sentences."""
    from attncourse import writer

    def step(tokens):
        return model(tokens, masks=[writer.window(width, keep_first, tokens.shape[1])] * len(model.attention))[0][:, -1]

    masks = [writer.window(width, keep_first, writer.LAST + 1)] * len(model.attention)
    return {
        "agreement": writer.agreement(model, masks=masks),
        "grammatical": writer.share_grammatical(writer.write(step, size=500)),
    }


def round_for_json(x):
    """Return what JSON can hold, every number that is not whole rounded to four digits."""
    if isinstance(x, dict):
        return {name: round_for_json(value) for name, value in x.items()}
    if isinstance(x, list | tuple | np.ndarray):
        return [round_for_json(value) for value in x]
    return x if x is None or isinstance(x, str | int) else round(float(x), 4)


def of_the_translator():
    import torch

    from attncourse import dates

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    plan = {seed: {"seed": i} for i, seed in enumerate(dates.SEEDS)}
    plan["seed 0"] |= {"every": 50, "measure": of_one_moment}
    plan |= {"causal": {"lr": 0.004, "change": causal_between}, "unmasked": {"change": drop_mask}}
    trained, arrays, found = cells_of_the_translator()["trained"], {}, {"right": {}, "maps": {}, "loss": {}}
    for name, options in plan.items():
        model, histories = trained(**options)
        losses = [loss for history in histories for loss in history.losses]
        found["loss"][name] = [np.mean(losses[i : i + 20]) for i in range(0, len(losses), 20)]
        arrays |= {f"{name}/{key}": x.astype(np.float16) for key, x in dates.from_torch(model).weights().items()}
        for start, history in zip((0, 800), histories, strict=True):
            for step, (right, maps) in history.measured.items():
                found["right"][start + step] = right
                if start + step in dates.STEPS:
                    found["maps"][start + step] = np.round(maps, 2)
    np.savez_compressed(dates.WEIGHTS, **arrays)
    return dates.RESULTS, round_for_json(found | {"triangle": of_the_triangle(trained)})


def of_the_triangle(trained):
    """Return by rate and seed how a training with a causal mask between the texts ends: [loss, dates right]."""
    from attncourse import dates
    from attnlib import masks

    new, found = dates.draw(500, np.random.default_rng(1)), {}  # as in the notebook
    padding = masks.padding_mask(new.lengths, new.letters.shape[1])
    for rate, seed in ((0.004, 0), (0.004, 1), (0.004, 2), (0.004, 5), (0.01, 0), (0.01, 1), (0.01, 2)):
        model, histories = trained(seed, rate, causal_between)
        ours = dates.from_torch(model)
        context = ours.encode(new.letters, padding)

        def step(digits, ours=ours, context=context):
            triangle = np.tri(digits.shape[1], padding.shape[-1], dtype=bool)
            return ours.decode(digits, context, padding & triangle)

        right = dates.share_right(dates.greedy(step, len(new.texts))[0], new)
        found[f"rate {rate}, seed {seed}"] = [np.mean(histories[-1].losses[-20:]), right]
    return found


def cells_of_the_translator():
    """Return what the cells of lesson two_texts define that make and train a translator."""
    from attnlib.torch_layers import MultiHeadAttention

    needed = "import attnlib as al", "    import torch", "class Translator", "def loss", "def trained"
    return cells_with("two_texts", "# ", "TRAIN = False", needed, MultiHeadAttention=MultiHeadAttention)


def of_one_moment(model):
    """Return the share of 300 dates that a translator in training writes right, and its weights for the example."""
    from attncourse import dates

    ours, new = dates.from_torch(model), dates.draw(300, np.random.default_rng(2))
    return dates.share_right(dates.translate(ours, new.texts)[0], new), dates.translate(ours, [dates.EXAMPLE])[1][0]


def causal_between(model):
    """Put a causal mask between the two texts of a translator."""
    import torch

    def add_causal_mask(_, args, options):
        shape = args[0].shape[1], args[1].shape[1]
        return args, options | {"attn_mask": options["attn_mask"] & torch.ones(shape, dtype=torch.bool).tril()}

    model.cross.register_forward_pre_hook(add_causal_mask, with_kwargs=True)
    return model


def drop_mask(model):
    """Take the mask between the two texts of a translator away."""
    model.cross.register_forward_pre_hook(lambda _, args, options: (args, {}), with_kwargs=True)
    return model


def of_the_letters():
    """Train the model of lesson model_of_your_own as it is and with each mistake, and measure what was not measured."""
    import torch

    from attncourse import letters

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    corpus, found = letters.Corpus(), letters.load_results() if letters.RESULTS.exists() else {}
    names = [f"{name} {seed}" for seed in (0, 1) for name in letters.TEN]
    names += ["right 2", *(f"{n} letters 0" for n in letter_models.SHORT)]
    names += [f"without {part} {i}" for i in range(3) for part in letter_models.PARTS]
    names += [f"{name} {i}" for i in range(3) for name in letter_models.SLOW]
    names += ["right, wide 3", "no division, wide 3"]
    if "yardstick" not in found:
        found["yardstick"] = round_for_json(letter_models.yardstick(corpus))
        write(letters.RESULTS, found)
    for name in progress(sys.argv[2:] or [name for name in names if name not in found], "trainings"):
        weights, result = letter_models.train_one(name, corpus)
        found[name] = round_for_json(result)
        letter_models.keep(name, weights, corpus, found)
        write(letters.RESULTS, found := round_for_json(found))  # after each: an end in the middle loses one
    return letters.RESULTS, found


def of_the_decoder():
    from attncourse import smollm

    from . import measures

    if smollm.missing():
        sys.exit(smollm.missing())
    speaker, target = smollm.load(bar=iter), DATA / "smollm_results.json"
    found = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
    for name in sys.argv[2:] or [*measures.MEASURES, "stops"]:
        print(f"measuring {name}", flush=True)
        if name == "stops":
            write(DATA / "smollm_stops.json", round_for_json(measures.all_stops(speaker)))
        else:
            found[name] = round_for_json(measures.MEASURES[name](speaker))
            write(target, found)
    return target, found


def main():
    makers = {
        "neighbours": of_the_neighbours,
        "train_and_look": of_the_jumps,
        "a_real_model": of_the_model,
        "one_token_at_a_time": of_the_writers,
        "two_texts": of_the_translator,
        "model_of_your_own": of_the_letters,
        "decoder": of_the_decoder,
    }
    write(*makers[sys.argv[1] if len(sys.argv) > 1 else "a_real_model"]())


def write(target, found):
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace("]],", "]],\n")
    target.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {target.name}: {len(found)} results, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

"""Whole models and faults of people who had not seen `attnlib.watch`, and what its report says of them.

They wrote models in styles of their own, and planted what they thought a model may do wrong: in one layer, and in all.
`python -m tests.watch_strangers` writes the table of docs/watch.md; it needs transformers.
"""

import contextlib
import functools
import re
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from attnlib.watch import report, watch
from tests import watch_families, watch_faults

LAYERS, N, WIDTH, HEADS, ODD = 4, 9, 32, 4, 2  # ODD: the layer in which a fault is planted
REAL = torch.tensor([[1] * N, [1] * 6 + [0] * 3, [1] * 4 + [0] * 5])
IDS = torch.arange(3 * N).reshape(3, N) * 7 % 40 + 3

MASK, SCALE, WEIGHTS = watch_faults.MASK, {"score scale"}, {"row sums", "padding", "maps"}
COPIES, DROPS, MAPS = {"heads differ"}, {"determinism"}, {"maps"}
# What may be wrong with who is real, and the probes that may name it.
PADDING = {
    "padding forgotten": torch.ones_like,
    "padding of another sequence": lambda real: real.flip(0),
    "padding inverted": lambda real: 1 - real,
    "padding shifted": lambda real: real.roll(1, 1),
}
PADDINGS = dict.fromkeys(PADDING, MASK)


class Layer(nn.Module):
    """A layer with a fault, by name, or without: ""."""

    fault = ""

    def __init__(self):
        super().__init__()
        self.num_heads = HEADS
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def project(self, x):
        qkv = self.qkv(F.layer_norm(x, (WIDTH,))).chunk(3, -1)
        return (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in qkv)


class InDecoder(Layer):
    """torch's fused attention behind a cache of its own."""

    faults = PADDINGS | {
        "no causal mask": MASK,
        "corner of the cache": {"cache", "causality", "allowed keys"},
        "diagonal one too far": MASK,
        "diagonal one too short": MASK,
        "mask inverted": MASK,
        "mask of 0 and 1 added": MASK,
        "heads copied": COPIES,
        "scale of the width": SCALE,
        "scale times 1.3": SCALE,
        "scaled twice": SCALE,
        "dropout": DROPS,
        "queries of another sequence": MASK,
        "values shifted": MASK,
        "values of another sequence": MASK,
        "window": MASK,
    }

    def forward(self, x, real, cache):
        (q, k, v), fault = self.project(x), self.fault
        if self in cache:
            k, v = (torch.cat(pair, 2) for pair in zip(cache[self], (k, v), strict=True))
        cache[self] = k, v
        n_q, n_k = q.shape[2], k.shape[2]
        moved = {"corner of the cache": n_q - n_k, "diagonal one too far": 1, "diagonal one too short": -1}
        corner = n_k - n_q + moved.get(fault, 0)
        mask = torch.ones(n_q, n_k).bool().tril(n_k if fault == "no causal mask" else corner)
        if fault == "window":
            mask = mask.triu(corner - 3)
        if real is not None:
            mask = mask & PADDING.get(fault, lambda x: x)(real)[:, None, None, :n_k].bool()
        mask = ~mask if fault == "mask inverted" else mask.float() if fault == "mask of 0 and 1 added" else mask
        if fault == "heads copied":
            q, k = (part[:, :1].expand_as(part) for part in (q, k))
        q = q.roll(1, 0) if fault == "queries of another sequence" else q * 8**-0.5 if fault == "scaled twice" else q
        v = v.roll(1, 2) if fault == "values shifted" else v.flip(0) if fault == "values of another sequence" else v
        scale = {"scale of the width": WIDTH**-0.5, "scale times 1.3": 1.3 * 8**-0.5}.get(fault)
        dropout = 0.2 * (fault == "dropout")
        y = F.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale)
        return x + self.out(y.transpose(1, 2).flatten(2)), None


class InEncoder(Layer):
    """Attention that is written out by einsum, and hands back its maps."""

    maps = {  # noqa: RUF012
        "maps before softmax": lambda scores, w: scores,
        "maps are a mean": lambda scores, w: w.mean(1, keepdim=True).expand_as(w),
        "maps turned": lambda scores, w: w.mT,
        "maps of another sequence": lambda scores, w: w.flip(0),
        "maps of another head": lambda scores, w: w.roll(1, 1),
        "maps that are all alike": lambda scores, w: torch.full_like(w, 1 / N),
    }
    scales = {"scale of the width": WIDTH**-0.5, "scale 1/d_k": 1 / 8, "scale / sqrt(2)": 0.25, "scale / 1.1": 0.3214}  # noqa: RUF012
    fills = {"fill of -1": -1.0, "fill of -10": -10.0}  # noqa: RUF012
    axes = {"softmax over queries": -2, "softmax over heads": 1}  # noqa: RUF012
    faults = (
        PADDINGS
        | dict.fromkeys(("mask of 0 and 1 added", "scores times mask", "mask of queries", *fills), MASK)
        | {"weights masked after softmax": WEIGHTS, "heads copied": COPIES, "keys and values copied": MASK}
        | dict.fromkeys(("softmax twice", "weights turned", "sums over queries made 1", *axes), WEIGHTS)
        | {"dropout": DROPS, "outputs of another head": WEIGHTS}
        | dict.fromkeys(scales, SCALE)
        | dict.fromkeys(maps, MAPS)
    )

    def forward(self, x, real, cache):
        (q, k, v), fault = self.project(x), self.fault
        if fault == "heads copied":
            q, k = (part[:, :1].repeat(1, HEADS, 1, 1) for part in (q, k))
        if fault == "keys and values copied":
            k, v = (part[:, :1].repeat(1, HEADS, 1, 1) for part in (k, v))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.scales.get(fault, 8**-0.5)
        shown = PADDING.get(fault, lambda x: x)(real)[:, None, None].bool()
        if fault == "mask of 0 and 1 added":
            scores = scores + shown.float()
        elif fault == "scores times mask":
            scores = scores * shown
        elif fault == "mask of queries":
            scores = scores.masked_fill(~shown.mT, -1e9)
        elif fault != "weights masked after softmax":
            scores = scores.masked_fill(~shown, self.fills.get(fault, torch.finfo(scores.dtype).min))
        used = w = scores.softmax(self.axes.get(fault, -1))
        if fault in ("weights masked after softmax", "dropout"):
            used = w = w * shown if fault != "dropout" else F.dropout(w, 0.3)
        elif fault == "softmax twice":
            used = w = w.softmax(-1)
        elif fault == "weights turned":
            used = w.mT
        elif fault == "sums over queries made 1":
            used = w / w.sum(-2, keepdim=True)
        y = torch.einsum("bhqk,bhkd->bhqd", used, v)
        y = y.roll(1, 1) if fault == "outputs of another head" else y
        return x + self.out(y.transpose(1, 2).flatten(2)), self.maps.get(fault, lambda scores, w: w)(scores, w)


class OfPatches(Layer):
    """Attention over patches behind a class token; no mask."""

    faults = {  # noqa: RUF012
        "heads and tokens mixed": COPIES,
        "heads copied": COPIES,
        "half of the heads copied": COPIES,
        "scale of the width": SCALE,
        "causal mask": MASK,
        "class token hidden": MASK,
        "softmax over queries": WEIGHTS,
        "dropout": DROPS,
        "queries as keys": COPIES,
    }

    def forward(self, x, real, cache):
        (q, k, v), fault = self.project(x), self.fault
        if fault == "heads and tokens mixed":
            q, k, v = (part.transpose(1, 2).reshape(part.shape) for part in (q, k, v))
        if fault in ("heads copied", "half of the heads copied"):
            size = 1 if fault == "heads copied" else 2
            q, k = (part[:, :size].repeat(1, HEADS // size, 1, 1) for part in (q, k))
        k = q if fault == "queries as keys" else k
        scores = q @ k.mT * (WIDTH**-0.5 if fault == "scale of the width" else 8**-0.5)
        if fault == "causal mask":
            scores = scores.masked_fill(torch.ones(N, N).triu(1).bool(), -1e9)
        if fault == "class token hidden":
            scores = scores.masked_fill(torch.arange(N) == 0, -1e9)
        w = scores.softmax(-2 if fault == "softmax over queries" else -1)
        w = F.dropout(w, 0.1) if fault == "dropout" else w
        return x + self.out((w @ v).transpose(1, 2).flatten(2)), None


def added(hidden):
    """torch wants the masks of padding and of later words of one type: both are added."""
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)


class InTranslator(nn.Module):
    """nn.MultiheadAttention, over itself and, in a decoder, over the encoder, which reads more words."""

    fault = ""
    own = PADDINGS | {"padding of 0 and 1 added": MASK}
    across = dict.fromkeys(("no padding across", "padding across of another sequence", "padding across inverted"), MASK)
    faults = (
        own
        | {"no causal mask": MASK, "causal mask inverted": MASK, "diagonal one too far": MASK}
        | {"causal mask of 0 and 1 added": MASK, "one pair too many": MASK, "memory of another sequence": MASK}
        | {**across, "causal mask across": MASK | {"cache"}}
    )

    def __init__(self):
        super().__init__()
        self.itself, self.other = (nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(2))

    def forward(self, x, real, memory=None, memory_real=None):
        n, fault, mask = x.shape[1], self.fault, None
        if memory is not None:
            mask = torch.ones(n, n).triu(2 if fault == "diagonal one too far" else 1).bool()
            mask[0, 3] = fault != "one pair too many"
            mask = ~mask if fault == "causal mask inverted" else None if fault == "no causal mask" else mask
            mask = mask if mask is None else added(mask)
            mask = torch.ones(n, n).tril() if fault == "causal mask of 0 and 1 added" else mask
        padded = PADDING.get(fault, lambda x: x)(real) == 0
        padded = padded.float() if fault == "padding of 0 and 1 added" else added(padded)
        x = x + self.itself(x, x, x, key_padding_mask=padded, attn_mask=mask)[0]
        if memory is not None:
            memory = memory.flip(0) if fault == "memory of another sequence" else memory
            kinds = dict(
                zip(self.across, ("padding forgotten", "padding of another sequence", "padding inverted"), strict=True)
            )
            hidden = added(PADDING.get(kinds.get(fault), lambda x: x)(memory_real) == 0)
            mask = added(torch.ones(n, memory.shape[1]).triu(1).bool()) if fault == "causal mask across" else None
            x = x + self.other(x, memory, memory, key_padding_mask=hidden, attn_mask=mask)[0]
        return F.layer_norm(x, (WIDTH,))


class Model(nn.Module):
    """Layers of one kind over words; `chunks` are the ends of the parts in which a prompt is read."""

    def __init__(self, kind):
        super().__init__()
        self.words, self.layers = nn.Embedding(50, WIDTH), nn.ModuleList(kind() for _ in range(LAYERS))

    def forward(self, ids, real, chunks=(N,)):
        cache, maps = {}, []
        for start, end in zip((0, *chunks), chunks, strict=False):
            x = self.words(ids[:, start:end])
            for layer in self.layers:
                x, w = layer(x, real, cache)
                maps.append(w)
        return maps


class Translator(nn.Module):
    """An encoder of 9 words, and a decoder of 6."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.encoder, self.decoder = (nn.ModuleList(InTranslator() for _ in range(LAYERS)) for _ in range(2))

    def forward(self, ids, real):
        memory, x, written = self.words(ids), self.words(ids[:, :6]), torch.ones(3, 6, dtype=torch.long)
        written[0, 5:] = 0
        for layer in self.encoder:
            memory = layer(memory, real)
        for layer in self.decoder:
            x = layer(x, written, memory, real)


# --- models of transformers


def hooked(change):
    """Hand over another mask, whatever the module calls it."""

    def before(module, args, kwargs):
        names = [name for name in ("attention_mask", "mask") if kwargs.get(name) is not None]
        if not names and len(args) > 1 and isinstance(args[1], torch.Tensor):
            args = args[0], change(args[1]), *args[2:]
        return args, kwargs | {name: change(kwargs[name]) for name in names}

    return lambda module: module.register_forward_pre_hook(before, with_kwargs=True).remove


def allowed(mask):
    return mask if mask.dtype == torch.bool else mask > -1


def like(mask, shown):
    shown = shown.expand(mask.shape)
    return (
        shown if mask.dtype == torch.bool else torch.zeros_like(mask).masked_fill(~shown, torch.finfo(mask.dtype).min)
    )


def number_changed(names, change):
    """Change a number of a module, or that of its dropout."""

    def plant(module):
        undo = []
        for name in names:
            there = getattr(module, name, None)
            part, name = (there, "p") if isinstance(there, nn.Dropout) else (module, name)
            if isinstance(before := getattr(part, name, None), float):
                undo.append(functools.partial(setattr, part, name, before))
                setattr(part, name, change(before))
        module.train(names == DROPOUT)
        return lambda: [*(back() for back in undo), module.eval()]

    return plant


DROPOUT = ("attention_dropout", "dropout", "dropout_prob")
HOOKS = {
    "mask dropped": hooked(lambda m: like(m, torch.ones_like(allowed(m)))),
    "mask inverted": hooked(lambda m: like(m, ~allowed(m))),
    "mask of another sequence": hooked(lambda m: m.flip(0)),
    "mask shifted": hooked(lambda m: m.roll(1, -1)),
    "mask of 0 and 1 added": hooked(lambda m: allowed(m).float()),
    "padding lost": hooked(lambda m: like(m, torch.ones(m.shape[-2:]).bool().tril())),
    "scale halved": number_changed(("scaling", "scale"), lambda x: x / 2),
    "dropout of 0.3": number_changed(DROPOUT, lambda x: 0.3),
}
HOOKED = dict.fromkeys(HOOKS, MASK) | {"scale halved": SCALE, "dropout of 0.3": DROPS}
SMALL = {"vocab_size": 64, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SMALL |= {"intermediate_size": 64, "pad_token_id": 0}
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 8}
BOTH = {f"{part}_{what}": size for part in ("encoder", "decoder")
        for what, size in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 64))}  # fmt: skip
BOTH |= {"vocab_size": 64, "d_model": WIDTH, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
T5 = {"vocab_size": 64, "d_model": WIDTH, "d_kv": 8, "d_ff": 64, "num_layers": LAYERS, "num_heads": HEADS}
DISTIL = {"vocab_size": 64, "dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 64}
GEMMA = GROUPED | {"sliding_window": 4, "query_pre_attn_scalar": 16}
SPEECH = {"num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 32}
SPOKEN = {"input_features": torch.zeros(3, 8, 32)}
SPOKEN |= {"decoder_input_ids": IDS, "decoder_attention_mask": REAL}


def family(name, sizes, attention="sdpa", left=False, **inputs):
    def build():
        import transformers

        config = getattr(transformers, f"{name}Config")(**sizes, attn_implementation=attention)
        model = getattr(transformers, f"{name}Model")(config).eval()
        real = REAL.flip(1) if left else REAL
        given = inputs if "decoder_attention_mask" in inputs else {"input_ids": IDS, "attention_mask": real} | inputs
        eager = attention == "eager"
        return model, lambda: getattr(model(**given, output_attentions=eager), "attentions", None), real

    return build


def own(kind, left=False, chunks=(N,)):
    def build():
        model, real = Model(kind).eval(), None if kind is OfPatches else REAL.flip(1) if left else REAL

        def run():
            maps = model(IDS, real, chunks)
            return None if None in maps else maps

        return model, run, real

    return build


def translator():
    model = Translator().eval()
    return model, lambda: model(IDS, REAL), REAL


class Kind(NamedTuple):
    """How a model is built, the paths of the modules in which faults are planted, and which."""

    build: object
    where: str
    faults: dict  # by name, the probes that may name it


def without(faults, *names):
    return {name: probes for name, probes in faults.items() if name not in names}


MODELS = {
    "own decoder": Kind(own(InDecoder), r"layers\.\d", without(InDecoder.faults, "corner of the cache")),
    "own decoder, in two chunks": Kind(own(InDecoder, True, (6, N)), r"layers\.\d", InDecoder.faults),
    "own encoder, by einsum": Kind(own(InEncoder), r"layers\.\d", InEncoder.faults),
    "own model of patches": Kind(own(OfPatches), r"layers\.\d", OfPatches.faults),
    "own translator, its encoder": Kind(translator, r"encoder\.\d", InTranslator.own),
    "own translator, its decoder": Kind(translator, r"decoder\.\d", InTranslator.faults),
    "Mistral": Kind(family("Mistral", GROUPED | {"sliding_window": 5}, left=True), ".*self_attn", HOOKED),
    "Qwen 3, eager": Kind(family("Qwen3", GROUPED, "eager", left=True), ".*self_attn", HOOKED),
    "Gemma 2, eager": Kind(family("Gemma2", GEMMA, "eager", left=True), ".*self_attn", HOOKED),
    "DistilBERT": Kind(family("DistilBert", DISTIL), r".*\.attention", without(HOOKED, "padding lost")),
    "T5, its encoder": Kind(
        family("T5", T5, decoder_input_ids=IDS[:, :6]),
        "encoder.*SelfAttention",
        without(HOOKED, "padding lost", "scale halved"),
    ),
    "Whisper, its decoder": Kind(family("Whisper", BOTH | SPEECH, **SPOKEN), r"decoder.*self_attn", HOOKED),
}


@contextlib.contextmanager
def planted(modules, fault):
    undo = []
    for module in modules if fault else ():
        if hasattr(module, "fault"):
            module.fault = fault
        else:
            undo.append(HOOKS[fault](module))
    yield
    for back in undo:
        back()


def examine(name, fault="", whole=False):
    """Return the Report on a model with a fault in one layer, or in the whole, and the numbers of their calls."""
    torch.manual_seed(0)
    kind = MODELS[name]
    model, run, real = kind.build()
    for weights in model.parameters():
        if weights.dim() > 1:
            nn.init.normal_(weights, std=0.2)  # those of a fresh model attend to all alike
    parts = {path: part for path, part in model.named_modules() if re.fullmatch(kind.where, path)}
    here = dict(list(parts.items())[: None if whole else ODD + 1][0 if whole else ODD :])
    with planted(here.values(), fault), torch.no_grad(), watch(model) as seen:
        maps = run()
    numbers = {call.number for call in seen if any(f"{call.path}.".startswith(f"{path}.") for path in here)}
    return report(seen, real=real, maps=maps), numbers


def judge(name, fault, whole):
    """Return "found", "missed", or what is named in its place."""
    said, numbers = examine(name, fault, whole)
    return watch_faults.verdict(said, MODELS[name].faults[fault], numbers)


def row(name):
    """Return the row of a model: each fault in one layer and in all, and which of them were missed."""
    results = {}
    for fault in MODELS[name].faults:
        one, whole = (judge(name, fault, whole) for whole in (False, True))
        results |= {f"{fault}, in one": one, f"{fault}, in all": whole}
    line = watch_faults.row(name, results, examine(name)[0])
    for fault in MODELS[name].faults:
        line = line.replace(f"{fault}, in one; {fault}, in all", fault)
    return line


if __name__ == "__main__":
    watch_families.write("strangers", watch_faults.HEAD, map(row, MODELS))

"""Examine all attention calls of a whole model: what it hands to its attention, which no module alone can show."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..findings import Diagnosis, Place
from .calls import ALL, BLOCKED, Call, Seen, fits

UNSEEN = "positions; which heads share keys; a causal mask that is missing in every layer; what training decides"
SAME, HIDDEN, MANY = 1e-3, 1e-4, 3  # a relative difference; weight of a hidden key; layers that can outvote one
# Numbers of a configuration by which a model declares its scale.
_SCALES = {"attention_multiplier": lambda x: x, "query_pre_attn_scalar": lambda x: x**-0.5}


class Report(Diagnosis):
    """What is wrong, strange or undecided in the calls of a model; it shows itself as a table, and says how many."""

    calls: int

    def __new__(cls, places: Iterable[Place], calls: int) -> "Report":
        self = super().__new__(cls, places)
        self.calls = calls
        return self

    def __repr__(self) -> str:
        table = super().__repr__() if self else "nothing wrong or strange"
        return f"{table}\n{self.calls} calls examined. What this cannot see:\n{UNSEEN}."


def report(seen: Seen, real: Any = None, maps: Iterable[torch.Tensor] | None = None) -> Report:
    """Return what is wrong or strange in the calls that `watch` has seen; ``.ok`` is whether nothing is wrong.

    Wrong is a layer that differs from its siblings, and what contradicts the model's mode, its configuration, `real`
    or `maps`. What a whole kind of layer does, or a rule over layers, is "beware". For texts of some hundred tokens:
    the weights of one call at a time are computed whole. LookupError says why no call was seen.

    Parameters
    ----------
    seen : Seen
    real : Tensor (b, n) of bool or 0 and 1, or dict, optional
        True at tokens that are no padding, as in a tokenizer's attention_mask. {pattern of paths: tensor} where a model
        reads several inputs; a call that hides what another of them says is taken to read that one.
    maps : sequence of Tensor (b, h, n_q, n_k), optional
        What the model hands back as the weights of its layers, as ``outputs.attentions``.

    Examples
    --------
    >>> from attnlib.watch import watch
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
    >>> with watch(layer) as seen:
    ...     output = layer(torch.ones(1, 3, 8))
    >>> report(seen).ok
    True
    """
    _ = seen[0]  # raises where nothing was seen: no test passes by that
    masks = _masks(real, seen)
    facts = [_Facts(call, seen.model, masks) for call in seen if "query" in (call.kept or {})]
    missed = [call for call in seen if "query" not in (call.kept or {})]
    found = [_place([call], "calls", "could not tell", "; ".join(call.notes) or "no product", "") for call in missed]
    if not (count := len(facts)):
        raise LookupError(
            f"expected a call that was kept, got {len(seen)} without: {seen[0]._name}: {found[0].measured}."
        )
    if lost := [fact.call for fact in facts if not fact.finite]:  # what comes after the first has it from there
        measured = f"NaN or inf in {len(lost)} calls from here on, in {str(lost[0].dtype).removeprefix('torch.')}"
        probe = "float16" if lost[0].dtype.itemsize == 2 else "large inputs"
        found.append(_place(lost[:1], probe, "wrong", measured, "an overflow here, or what came in"))
    facts = [fact for fact in facts if fact.finite]
    kinds: dict[Any, list[_Facts]] = {}  # layers of one kind, in calls of one shape, at the same turn of each
    for fact in facts:
        fact.turn = sum(other.call.path == fact.call.path for other in facts if other.call.number < fact.call.number)
        kinds.setdefault((fact.kind, fact.call.b, fact.call.n_q, fact.call.n_k, fact.turn), []).append(fact)
    found += [place for fact in facts for place in _alone(fact)]
    found += [place for group in kinds.values() for place in _against_siblings(group)]
    config = getattr(seen.model, "config", None)
    found += [*_scales(facts, config), *_paddings(facts, masks, config)]
    found += _handed_back(facts, () if maps is None else [maps] if isinstance(maps, torch.Tensor) else maps)
    return Report(sorted(found, key=lambda place: int(re.search(r"\d+", place.where)[0])), count)


def _masks(real, seen):
    """Return what is real as {pattern of paths: mask}; a mask that no call can mean would make a test pass."""
    masks = {}
    for path, mask in (real if isinstance(real, Mapping) else {"*": real}).items() if real is not None else ():
        masks[path] = mask = torch.as_tensor(mask).cpu()
        if not ((mask == 0) | (mask == 1)).all():
            raise ValueError(
                "real must be True or 1 at tokens, False or 0 at padding, got other numbers. Fix: mask == 0."
            )
        if not any(fits(path, c.path) and mask.shape[0] == c.b and mask.shape[1] <= c.n_k for c in seen):
            at = ", ".join(dict.fromkeys(f"{c.path} of ({c.b}, {c.n_k})" for c in seen[:3]))
            raise ValueError(f"real of {tuple(mask.shape)} at {path!r} fits no call: expected one as {at}, ...")
    return masks


class _Facts:
    """What is asked of a call several times; the weights are computed anew each time, not kept."""

    def __init__(self, call, model, masks):
        self.call, self.kind = call, re.sub(r"\d+", "*", call.path)
        parts = dict(model.named_modules()) if model is not None else {}
        self.training = all(getattr(part, "training", False) for part in (model, parts.get(call.path, model)))
        mask, ones = call._mask((ALL, ALL), ALL), torch.ones(call.n_q, call.n_k, dtype=torch.bool)
        allowed = ones if mask is None else mask if mask.dtype == torch.bool else mask > BLOCKED
        self.allowed = allowed.expand(*(allowed.shape[:-2] or (1, 1)), call.n_q, call.n_k).cpu()
        rows = self.allowed.any(-1).expand(call.b, call.h, call.n_q)  # elsewhere NaN is what a softmax of nothing gives
        self.finite = bool(call.kept["output"].isfinite().all(-1).cpu()[rows].all())
        self.real = next((x.bool() for path, x in masks.items() if fits(path, call.path)), None)
        told = self.real is not None and self.real.shape == (call.b, call.n_q) and call.n_q == call.n_k
        self.asks = self.real if told else torch.ones(call.b, call.n_q).bool()  # queries that are no padding
        _, self.own, self.columns = self.among(self.asks)
        self.made = False  # weights by something else than one softmax over the keys; a sink is a design
        if {"weights", "masked"} <= {*call.kept} and not call.dropout and "as with a sink" not in str(call.notes):
            off = call._part("weights", (ALL, ALL)) - call._part("masked", (ALL, ALL)).softmax(-1)
            self.made = bool((off.abs().amax(-1).cpu()[rows] > SAME).any())

    def among(self, queries):
        """Return whether these, (b, n_q), see later keys, and mostly their own; and which keys any of them sees."""
        asked, corner = self.allowed & queries[:, None, :, None], self.call.n_k - self.call.n_q
        own = 2 * asked.diagonal(corner, -2, -1).sum() >= asked.any(-1).sum()
        return bool(asked.triu(corner + 1).any()), bool(own), asked.any(-2)

    def weights(self):
        """Return those that the call used, (b, h, n_q, n_k); of a fused call computed from what went in."""
        if "weights" in self.call.kept:
            return self.call._part("weights", (ALL, ALL)).cpu()
        query, key = (self.call._part(name, (ALL, ALL)).cpu() for name in ("query", "key"))
        mask, scores = self.call._mask((ALL, ALL), ALL), query @ key.mT * self.call.scale
        if mask is not None:
            scores = scores.masked_fill(~mask.cpu(), -torch.inf) if mask.dtype == torch.bool else scores + mask.cpu()
        return scores.softmax(-1).nan_to_num(0.0)


def _place(calls, *finding):
    numbers = [str(call.number) for call in calls]
    paths = dict.fromkeys(call.path if len(calls) == 1 else re.sub(r"\d+", "*", call.path) for call in calls)
    return Place(f"{', '.join(numbers[:6])}{', ...' * (len(numbers) > 6)} {' and '.join(paths)}", *finding)


def _alone(fact):
    """What one call says of itself."""
    call, allowed = fact.call, fact.allowed
    dead = ~allowed.any(-1)
    for corner in {0, call.n_k - call.n_q} if call.n_q <= call.n_k else ():  # a query that is padding may see nothing
        dead = dead & fact.columns[..., corner : corner + call.n_q]
    if call.dropout and not fact.training:
        measured = f"dropout {call.dropout:g} outside training"
        yield _place([call], "determinism", "wrong", measured, "dropout_p=self.p if self.training else 0.0")
    for note in call.notes:
        if note.startswith("softmax over"):
            yield _place([call], "row sums", "wrong", note.replace("over", "went over", 1), "softmax(dim=-1)")
    if dead.any():
        rows = int(dead.any((0, 1)).sum())
        measured = f"{rows} queries may attend to nothing"
        yield _place([call], "fully masked row", "beware", measured, "what hides so much")
    left = 1 < call.n_q < call.n_k and not (allowed & ~torch.ones(call.n_q, call.n_k).bool().tril()).any()
    if left and call.kept["key"][..., call.n_q :, :].any():  # else a cache that is not yet filled
        measured = f"{call.n_q} queries after {call.n_k - call.n_q} keys: query i sees keys 0 to i only"
        verdict = "wrong" if fact.turn else "could not tell"  # without a call before it there may be no cache
        yield _place([call], "cache", verdict, measured, 'the corner: causal_mask(n_q, n_k, align="lower_right")')


def _against_siblings(group):
    """What one layer does and the others of its kind do not."""
    calls = [fact.call for fact in group]
    copies = [_copies(fact) for fact in group]
    for call, n in zip(calls, copies, strict=True):
        if n:
            verdict = "wrong" if copies.count(0) >= MANY - 1 else "beware"
            measured = f"{n} of {call.h} heads have the scores of another"
            yield _place([call], "heads differ", verdict, measured, "how heads are split")
    # Queries that see nothing in one of the layers may be padding, which each layer treats as it likes.
    live = torch.stack([fact.asks & fact.allowed.any(-1).any(1) for fact in group]).all(0)
    later, own, columns = zip(*(fact.among(live) for fact in group), strict=True)
    columns, named = [x.any(1) for x in columns], set()
    for probe, values, yes, no in (
        ("row sums", [fact.made for fact in group], "its weights are no softmax of its scores", "its weights are one"),
        ("causality", later, "sees later keys", "does not see later keys"),
        ("allowed keys", own, "sees its own key", "does not see its own key"),
        ("padding", [str(x.tolist()) for x in columns], "hides other keys", ""),
    ):
        usual, count = Counter(values).most_common(1)[0]
        odd = [i for i, value in enumerate(values) if value != usual]
        if probe == "padding" and odd:  # which is of one sequence, and not what follows from the above
            apart = columns[odd[0]] != columns[values.index(usual)]
            odd = [] if set(odd) <= named else odd
            probe = "allowed keys" if bool((apart == apart[:1]).all()) else probe
        named |= {*odd} if probe == "allowed keys" else set()
        if len(odd) == 1 and count >= MANY - 1:
            measured = f"{yes if values[odd[0]] else no}, unlike {count} others"
            look_at = "what is done to its weights" if probe == "row sums" else "what this layer is given"
            yield _place([calls[odd[0]]], probe, "wrong", measured, look_at)
        elif odd:
            measured = f"{len(odd)} of {len(group)} differ: {yes}, or not"
            yield _place([calls[i] for i in odd], probe, "could not tell", measured, "whether that is meant")


def _copies(fact):
    """Return how many heads have the scores of another; weights alone may be alike where all take one key."""
    scores = fact.call._part("query", (ALL, ALL)) @ fact.call._part("key", (ALL, ALL)).mT
    largest = scores.abs().amax() * (scores.shape[1] > 1)
    pairs = [(i, j) for j in range(scores.shape[1]) for i in range(j) if largest > 0]
    return len({j for i, j in pairs if (scores[:, i] - scores[:, j]).abs().amax() < 1e-6 * largest})


def _scales(facts, config):
    """Scales in words: of the head, of the layer's width, or another multiple; one odd layer, or all of a kind."""
    said = [f(x) for one in _all_of(config) for name, f in _SCALES.items() if (x := getattr(one, name, None))]
    right = "as declared, or 1/sqrt(d_k)" if said else "1/sqrt(d_k)"

    def words(call):
        if any(abs(call.scale / scale - 1) < SAME for scale in said):
            return ""
        for scale, name in ((call.d_k, ""), (call.h * call.d_k, "1/sqrt of the layer's width"), (1, "no division")):
            if abs(call.scale * scale**0.5 - 1) < SAME:
                return name
        return f"{call.scale * call.d_k**0.5:.4g}/sqrt(d_k)"

    kinds: dict[str, list[tuple[Call, str]]] = {}
    for fact in facts:
        if not any(note.startswith("scores changed") and "tanh" not in note for note in fact.call.notes):
            kinds.setdefault(fact.kind, []).append((fact.call, words(fact.call)))
    for group in kinds.values():
        (usual, count), *others = Counter(word for _, word in group).most_common()
        odd = [call for call, word in group if word != usual]
        if len({call.path for call in odd}) == 1 and len({call.path for call, _ in group}) >= MANY:
            measured = f"{others[0][0] or right}; {usual or right} in {count} others"
            yield _place(odd, "score scale", "wrong", measured, "the divisor of this layer")
            others = []
        if names := [word for word, _ in ((usual, count), *others) if word]:
            calls = [call for call, word in group if word in names]
            more = ", ..." * (len(names) > 3)
            measured = names[0] if len(names) == 1 else f"{len(names)} scales: {', '.join(names[:3])}{more}"
            look_at = "whether that is meant" + ", as in T5" * (names == ["no division"])
            yield _place(calls, "score scale", "beware", measured, look_at)


def _all_of(config):
    """Yield a configuration, and those of its parts."""
    yield config
    for name, part in vars(config).items() if hasattr(config, "__dict__") else ():
        if name.endswith(("config", "encoder", "decoder")):
            yield from _all_of(part)


def _paddings(facts, masks, config):
    """Padding that real tokens look at, by what the caller says is real."""
    kinds: dict[str, list[tuple[Call, float, bool]]] = {}
    hide = set()  # kinds of layers in which padding is hidden from all
    lost = []  # calls that hide real tokens from all, though a token sees itself
    begun = set()  # modules that have read as many keys as the caller speaks of: what they read later is a cache
    for fact in facts:
        call, mine, seen = fact.call, fact.real, fact.allowed.any(-2).any(1)
        across = any(note.startswith("softmax over") for note in call.notes)  # which is told already
        if across or mine is None or mine.shape[0] != call.b or mine.shape[1] > call.n_k:
            continue
        begun |= {call.path} if mine.shape[1] == call.n_k else set()
        if call.path in begun:
            mine = torch.nn.functional.pad(mine, (0, call.n_k - mine.shape[1]), value=True)
            if any(mask.shape == seen.shape and bool((mask.bool() == seen).all()) for mask in masks.values()):
                mine = seen  # what it hides is the padding of another input
            taken = (fact.weights() * ~mine[:, None, None]).sum(-1) * fact.allowed.any(-1)
            taken = taken.amax(1)  # by padding, (b, n_q)
            taken, hides = taken * mine if call.n_q == call.n_k else taken, not (seen & ~mine).any()
            kinds.setdefault(fact.kind, []).append((call, float(taken.amax()), hides))
            if hides:
                hide.add(fact.kind)
            if call.n_q == call.n_k and fact.own and (mine & ~seen).any():
                lost.append(call)
    shown_in = {kind: [pair for pair in group if pair[1] >= HIDDEN] for kind, group in kinds.items()}
    read = {kind for kind, shown in shown_in.items() if shown or kind in hide}
    if lost and not hide:  # else they may read another input
        yield _place(
            lost, "padding", "wrong", "real tokens are hidden from all", "whose mask this is, and its polarity"
        )
    alone = len(read) == 1 or (getattr(config, "is_encoder_decoder", False) and not hide)  # one input of this length
    for kind, group in kinds.items():
        if shown := shown_in[kind]:
            measured = f"padded keys take up to {max(taken for _, taken, _ in shown):.2g} of a real token's weight"
            verdict, look_at = "wrong", "whether the padding mask is handed on"
            if all(hides for *_, hides in shown):
                measured, look_at = f"{measured}, though a mask hides them", "what is done to the weights after it"
            if len(shown) == len(group) and not alone and [*masks] == ["*"]:
                verdict, look_at = "could not tell", "whose padding real= is: give {path: mask}"
            yield _place([call for call, *_ in shown], "padding", verdict, measured, look_at)


def _handed_back(facts, maps):
    """Maps that the model returns, and that no layer has used."""
    free = list(facts)
    for number, map_ in enumerate(x.detach().cpu() for x in maps if x is not None):
        best, at, exact = 1e30, None, 1e-4 if map_.dtype == torch.float32 else 2e-2
        for fact in free:
            if (fact.call.b, fact.call.h, fact.call.n_q, fact.call.n_k) == map_.shape and best > exact:
                w = fact.weights()
                off = float(((w - map_.float()) * (w.sum(-1, keepdim=True) > HIDDEN)).abs().amax())
                at, best = (fact, off) if at is None or off < exact else (at, min(off, best))
        if at is None:
            yield Place(f"map {number}", "maps", "could not tell", f"no call of {tuple(map_.shape)} is left", "")
            continue
        free.remove(at)
        if not best < exact:
            alike = map_.shape[1] > 1 and torch.equal(map_, map_[:, :1].expand_as(map_))
            rows = "all heads alike" if alike else f"rows sum to {map_.sum(-1).min():.3g} to {map_.sum(-1).max():.3g}"
            measured = f"map {number} is of no layer, off by {best:.2g}: {rows}"
            yield _place([at.call], "maps", "wrong", measured, "what is returned as attentions")

"""Examine all attention calls of a whole model: what it hands to its attention, which no module alone can show."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from ..findings import Diagnosis, Place
from .calls import ALL, Seen, fits

UNSEEN = "positions; which heads share keys; a causal mask that is missing in every layer; what training decides"
SAME, HIDDEN, MANY = 1e-3, 1e-4, 3  # a relative difference; weight of a hidden key; layers that can outvote one
# Numbers of a configuration by which a model declares its scale.
_SCALES = {"attention_multiplier": lambda x: x, "query_pre_attn_scalar": lambda x: x**-0.5}


class Report(Diagnosis):
    """What is wrong, strange or undecided in the calls of a model; it shows itself as a table, and says how many."""

    calls = 0

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
    if not isinstance(seen, Seen):
        fix = "with watch(model) as seen: model(**inputs), then report(seen)."
        raise TypeError(f"report expects what watch has seen, got {type(seen).__name__}. Fix: {fix}")
    _ = seen[0]  # raises where nothing was seen: no test passes by that
    masks = _masks(real, seen)
    facts = [_Facts(call, seen.model, masks) for call in seen if "query" in (call.kept or {})]
    missed = {call: "; ".join(call.notes) or "no product" for call in seen if "query" not in (call.kept or {})}
    if not facts:
        raise LookupError(f"expected a call that was kept, got {len(seen)}: {seen[0]._name}: {missed[seen[0]]}.")
    found = [([call], "calls", "could not tell", why, "") for call, why in missed.items()]
    sound = [fact for fact in facts if fact.finite]
    for fact in sound:
        fact.turn = sum(other.call.path == fact.call.path for other in sound if other.call.number < fact.call.number)
    # Layers of one kind, in calls of one shape, at the same turn of each.
    groups = _groups_of(sound, lambda fact: (fact.kind, fact.call.b, fact.call.n_q, fact.call.n_k, fact.turn))
    config = getattr(seen.model, "config", None)
    maps = () if maps is None else [maps] if isinstance(maps, torch.Tensor) else maps
    found += [*_not_finite(facts), *itertools.chain(*map(_alone, sound), *map(_against_siblings, groups))]
    found += [*_scales(sound, config), *_paddings(sound, masks, config), *_handed_back(sound, maps)]
    places = [Place(_where(at), *finding) for at, *finding in found]
    said = Report(sorted(places, key=lambda place: int(re.search(r"\d+", place.where)[0])))
    said.calls = len(facts)
    return said


def _masks(real, seen):
    """Return what is real as {pattern of paths: mask}; a mask that no call can mean would make a test pass."""
    masks = {} if real is None else real if isinstance(real, Mapping) else {"*": real}
    masks = {path: torch.as_tensor(mask).cpu() for path, mask in masks.items()}
    for path, mask in masks.items():
        if not ((mask == 0) | (mask == 1)).all():
            raise ValueError("real must be True or 1 at tokens, else 0, got other numbers. Fix: mask == 0.")
        if not any(fits(path, c.path) and mask.shape[0] == c.b and mask.shape[1] <= c.n_k for c in seen):
            at = ", ".join(dict.fromkeys(f"{c.path} of ({c.b}, {c.n_k})" for c in seen[:3]))
            raise ValueError(f"real of {tuple(mask.shape)} at {path!r} fits no call: expected one as {at}, ...")
    return masks


class _Facts:
    """What is asked of a call several times; the weights are computed anew each time, not kept."""

    def __init__(self, call, model, masks):
        self.call, self.kind = call, re.sub(r"\d+", "*", call.path)
        parts = {} if model is None else dict(model.named_modules())
        self.training = all(getattr(part, "training", False) for part in (model, parts.get(call.path, model)))
        self.allowed, _ = call.read_mask()
        rows = self.allowed.any(-1).expand(call.b, call.h, call.n_q)  # elsewhere NaN is what a softmax of nothing gives
        finite = call.kept["output"].isfinite().all(-1).cpu()
        self.finite, self.whole = bool(finite[rows].all()), bool(finite.all())
        self.real = next((x.bool() for path, x in masks.items() if fits(path, call.path)), None)
        self.square = call.n_q == call.n_k
        self.across = next((note for note in call.notes if note.startswith("softmax over")), "")
        self.told = self.real is not None and self.real.shape == (call.b, call.n_q) and self.square
        self.asks = self.real if self.told else torch.ones(call.b, call.n_q).bool()  # queries that are no padding
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
        """Return those that the call used, (b, h, n_q, n_k)."""
        if "weights" in self.call.kept:
            return self.call._part("weights", (ALL, ALL)).cpu()
        maps = [self.call._recompute(batch)[0].weights for batch in range(self.call.b)]
        return torch.from_numpy(np.stack(maps)).nan_to_num(0.0)

    def differs(self, map_):
        """Return how far a map is from the weights, where these are not 0 for all keys."""
        weights = self.weights()
        return float(((weights - map_.float()) * (weights.sum(-1, keepdim=True) > HIDDEN)).abs().amax())


def _where(calls):
    """Return the numbers of the calls that a finding is about, and their paths; words stay as they are."""
    if isinstance(calls, str):
        return calls
    paths = dict.fromkeys(call.path if len(calls) == 1 else re.sub(r"\d+", "*", call.path) for call in calls)
    return f"{_few([str(call.number) for call in calls], 6)} {' and '.join(paths)}"


def _few(words, most):
    return ", ".join(words[:most]) + ", ..." * (len(words) > most)


def _groups_of(facts, key):
    return [[fact for fact in facts if key(fact) == one] for one in dict.fromkeys(map(key, facts))]


def _not_finite(facts):
    """NaN and inf, at the first call that has them: where queries see nothing, a later layer spreads their NaN."""
    lost = [fact.call for fact in facts if not fact.finite]
    if not lost:
        return
    brought = not all(lost[0].kept[name].isfinite().all() for name in ("query", "key", "value"))
    born = [fact.call for fact in facts if brought and not fact.whole and fact.call.number < lost[0].number]
    first = (born or lost)[0]
    count, dtype = sum(not fact.whole for fact in facts), str(first.dtype).removeprefix("torch.")
    measured = f"NaN or inf in {count} calls from here on, in {dtype}"
    look_at = "queries that see no key, or an overflow" if born else "what came in" if brought else "an overflow here"
    yield [first], "float16" if first.dtype.itemsize == 2 else "large inputs", "wrong", measured, look_at


def _alone(fact):
    """What one call says of itself."""
    call, allowed = fact.call, fact.allowed
    if call.dropout and not fact.training:
        look_at = "dropout_p=self.p if self.training else 0.0"
        yield [call], "determinism", "wrong", f"dropout {call.dropout:g} outside training", look_at
    if fact.across:
        yield [call], "row sums", "wrong", fact.across.replace("over", "went over", 1), "softmax(dim=-1)"
    dead = ~allowed.any(-1) & fact.asks[:, None]  # a query that is padding may see nothing
    for corner in {0, call.n_k - call.n_q} if call.n_q <= call.n_k and not fact.told else ():
        dead = dead & fact.columns[..., corner : corner + call.n_q]
    if rows := int(dead.any((0, 1)).sum()):
        yield [call], "fully masked row", "beware", f"{rows} queries may attend to nothing", "what hides so much"
    left = 1 < call.n_q < call.n_k and not allowed.triu(1).any()
    if left and call.kept["key"][..., call.n_q :, :].any():  # else a cache that is not yet filled
        measured = f"{call.n_q} queries after {call.n_k - call.n_q} keys: query i sees keys 0 to i only"
        verdict = "wrong" if fact.turn else "could not tell"  # without a call before it there may be no cache
        yield [call], "cache", verdict, measured, 'the corner: causal_mask(n_q, n_k, align="lower_right")'


def _against_siblings(group):
    """What one layer does and the others of its kind do not."""
    calls, copies = [fact.call for fact in group], [_copies(fact.call) for fact in group]
    for call, n in zip(calls, copies, strict=True):
        if n:
            verdict = "wrong" if copies.count(0) >= MANY - 1 else "beware"
            measured = f"{n} of {call.h} heads have the scores of another"
            yield [call], "heads differ", verdict, measured, "how heads are split"
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
            yield [calls[odd[0]]], probe, "wrong", measured, look_at
        elif odd:
            measured = f"{len(odd)} of {len(group)} differ: {yes}, or not"
            yield [calls[i] for i in odd], probe, "could not tell", measured, "whether that is meant"


def _copies(call):
    """Return how many heads have the scores of another; weights alone may be alike where all take one key."""
    scores = call._part("query", (ALL, ALL)) @ call._part("key", (ALL, ALL)).mT
    pairs, least = ((i, j) for j in range(call.h) for i in range(j)), 1e-6 * scores.abs().amax()
    return len({j for i, j in pairs if (scores[:, i] - scores[:, j]).abs().amax() < least})


def _scales(facts, config):
    """Scales in words: of the head, of the layer's width, or another multiple; one odd layer, or all of a kind."""
    said = [f(x) for one in _all_of(config) for name, f in _SCALES.items() if (x := getattr(one, name, None))]
    right = "as declared, or 1/sqrt(d_k)" if said else "1/sqrt(d_k)"

    def words(call):
        known = [(scale, "") for scale in (*said, call.d_k**-0.5)]
        known += [((call.h * call.d_k) ** -0.5, "1/sqrt of the layer's width"), (1, "no division")]
        other = f"{call.scale * call.d_k**0.5:.4g}/sqrt(d_k)"
        return next((name for scale, name in known if abs(call.scale / scale - 1) < SAME), other)

    plain = [f for f in facts if not re.search("scores changed by (?!tanh)", "; ".join(f.call.notes))]
    for group in _groups_of(plain, lambda fact: fact.kind):
        calls = [(fact.call, words(fact.call)) for fact in group]
        (usual, count), *others = Counter(word for _, word in calls).most_common()
        odd = [call for call, word in calls if word != usual]
        if len({call.path for call in odd}) == 1 and len({call.path for call, _ in calls}) >= MANY:
            measured = f"{others[0][0] or right}; {usual or right} in {count} others"
            yield odd, "score scale", "wrong", measured, "the divisor of this layer"
            others = []
        if names := [word for word, _ in ((usual, count), *others) if word]:
            measured = f"{len(names)} scales: " * (len(names) > 1) + _few(names, 3)
            look_at = "whether that is meant" + ", as in T5" * (names == ["no division"])
            yield [call for call, word in calls if word in names], "score scale", "beware", measured, look_at


def _all_of(config):
    """Yield a configuration, and those of its parts."""
    yield config
    for name, part in vars(config).items() if hasattr(config, "__dict__") else ():
        if name.endswith(("config", "encoder", "decoder")):
            yield from _all_of(part)


def _paddings(facts, masks, config):
    """Padding that real tokens look at, and real tokens that nobody sees, by what the caller says is real."""
    read, begun = [], set()  # modules that have read as many keys as the caller speaks of: later they read a cache
    for fact in facts:
        call, mine, seen = fact.call, fact.real, fact.allowed.any(-2).any(1)
        if fact.across or mine is None or mine.shape[0] != call.b or mine.shape[1] > call.n_k:
            continue
        begun |= {call.path} if mine.shape[1] == call.n_k else set()
        if call.path not in begun:
            continue
        mine = torch.nn.functional.pad(mine, (0, call.n_k - mine.shape[1]), value=True)
        if any(mask.shape == seen.shape and bool((mask.bool() == seen).all()) for mask in masks.values()):
            mine = seen  # what it hides is the padding of another input
        taken = ((fact.weights() * ~mine[:, None, None]).sum(-1) * fact.allowed.any(-1)).amax(1)  # by padding, (b, n_q)
        fact.taken = float((taken * mine if fact.square else taken).amax())
        fact.hides, fact.loses = not (seen & ~mine).any(), fact.square and fact.own and bool((mine & ~seen).any())
        read.append(fact)
    hide = {fact.kind for fact in read if fact.hides}  # kinds of layers in which padding is hidden from all
    lost = [fact.call for fact in read if fact.loses]
    if lost and not hide:  # else they may read another input
        yield lost, "padding", "wrong", "real tokens are hidden from all", "whose mask this is, and its polarity"
    # Kinds that read an input of this length. What is as long as its queries makes it, what is not reads what is made.
    reads = {fact.kind: fact.square for fact in read if fact.taken >= HIDDEN or fact.kind in hide}
    one = len(reads) == 1 or (getattr(config, "is_encoder_decoder", False) and not hide) or [*masks] != ["*"]
    for group in _groups_of(read, lambda fact: fact.kind):
        if shown := [fact for fact in group if fact.taken >= HIDDEN]:
            measured = f"padded keys take up to {max(fact.taken for fact in shown):.2g} of a real token's weight"
            verdict, look_at = "wrong", "whether the padding mask is handed on"
            if all(fact.hides for fact in shown):
                measured, look_at = f"{measured}, though a mask hides them", "what is done to the weights after it"
            only = one or (reads[shown[0].kind] and sum(reads.values()) == 1)
            if len(shown) == len(group) and not only:
                verdict, look_at = "could not tell", "whose padding real= is: give {path: mask}"
            yield [fact.call for fact in shown], "padding", verdict, measured, look_at


def _handed_back(facts, maps):
    """Maps that the model returns, and that no layer has used."""
    free = list(facts)
    for number, map_ in enumerate(x.detach().cpu() for x in maps if x is not None):
        exact = 1e-4 if map_.dtype == torch.float32 else 2e-2
        fit = [f for f in free if (f.call.b, f.call.h, f.call.n_q, f.call.n_k) == map_.shape]
        if not fit:
            yield f"map {number}", "maps", "could not tell", f"no call of {tuple(map_.shape)} is left", ""
            continue
        free.remove(at := next((fact for fact in fit if fact.differs(map_) < exact), fit[0]))
        if not (by := at.differs(map_)) < exact:
            alike = map_.shape[1] > 1 and torch.equal(map_, map_[:, :1].expand_as(map_))
            rows = "all heads alike" if alike else f"rows sum to {map_.sum(-1).min():.3g} to {map_.sum(-1).max():.3g}"
            measured = f"map {number} is of no layer, off by {by:.2g}: {rows}"
            yield [at.call], "maps", "wrong", measured, "what is returned as attentions"

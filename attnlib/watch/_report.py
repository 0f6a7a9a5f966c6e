"""Examine all attention calls of a whole model: what it hands to its attention, which no module alone can show."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import torch

from ..findings import Report, few
from ..following import copied_heads, declared_scales, groups_of, look_around, not_called, scale_in_words
from .calls import ALL, Seen, fits

SAME, HIDDEN, MANY = 1e-3, 1e-4, 3  # a relative difference; weight of a hidden key; layers that can outvote one


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
    facts = [_Facts(call, seen, masks) for call in seen if "query" in (call.kept or {})]
    missed = {call: "; ".join(call.notes) or "no product" for call in seen if "query" not in (call.kept or {})}
    if not facts:
        raise LookupError(f"expected a call that was kept, got {len(seen)}: {seen[0]._name}: {missed[seen[0]]}.")
    missed |= not_called({call.path for call in seen}, seen.model, MANY)
    found = [(at if isinstance(at, str) else [at], "calls", "could not tell", why, "") for at, why in missed.items()]
    sound = [fact for fact in facts if fact.finite]
    config = getattr(seen.model, "config", None)
    maps = maps if maps is None else [maps] if isinstance(maps, torch.Tensor) else [*maps]
    found += [*_not_finite(facts), *chain(*map(_alone, sound), *map(_against_siblings, groups_of(sound, "kin")))]
    found += [*_scales(sound, declared_scales(config)), *_paddings(sound, masks, config), *_handed_back([*sound], maps)]
    return Report.of(found, len(facts))


def _masks(real, seen):
    """Return what is real as {pattern of paths: mask}; a mask that no call can mean would make a test pass."""
    masks = {} if real is None else real if isinstance(real, Mapping) else {"*": real}
    masks = {path: torch.as_tensor(mask).cpu() for path, mask in masks.items()}
    for path, mask in masks.items():
        if not ((mask == 0) | (mask == 1)).all():
            raise ValueError("real must be True or 1 at tokens, else 0, got other numbers. Fix: mask == 0.")
        takes = [(c.b, c.n_k) for c in seen if fits(path, c.path)]
        if not any(mask.shape == (b, min(n_k, mask.shape[-1])) for b, n_k in takes):
            at = few([f"{call.path} of {size}" for size, call in {(c.b, c.n_k): c for c in seen[::-1]}.items()])
            fix = " Batch and tokens exchanged? Fix: batch_first=True." * (mask.shape[::-1] in takes)
            raise ValueError(f"real of {tuple(mask.shape)} at {path!r} fits no call: expected one as {at}.{fix}")
    return masks


class _Facts:
    """What is asked of a call several times; the weights are computed anew each time, not kept."""

    def __init__(self, call, seen, masks):
        self.call, self.kind = call, re.sub(r"\d+", "*", call.path)
        self.turn = sum(other.path == call.path for other in seen if other.number < call.number)
        self.kin = self.kind, call.b, call.n_q, call.n_k, self.turn  # of siblings: calls of one shape, at the same turn
        parts = {} if seen.model is None else dict(seen.model.named_modules())
        self.training = all(getattr(part, "training", False) for part in (seen.model, parts.get(call.path, seen.model)))
        self.allowed, _ = call.read_mask()
        rows = self.allowed.any(-1).expand(call.b, call.h, call.n_q)  # elsewhere NaN is what a softmax of nothing gives
        finite = call.kept["output"].isfinite().all(-1).cpu()
        self.finite, self.lost = bool(finite[rows].all()), int((~finite).any(1).sum())  # queries of which head ever
        self.real = next((x.bool() for path, x in masks.items() if fits(path, call.path)), None)
        self.square = call.n_q == call.n_k
        self.across = next((note for note in call.notes if note.startswith("softmax over")), "")
        self.told = self.real is not None and self.real.shape == (call.b, call.n_q) and self.square
        self.asks = self.real if self.told else torch.ones(call.b, call.n_q).bool()  # queries that are no padding
        _, self.own, self.columns = look_around(self.allowed, self.asks)
        self.made = False  # weights by something else than one softmax over the keys; a sink is a design
        if {"weights", "masked"} <= {*call.kept} and not call.dropout and "as with a sink" not in str(call.notes):
            off = call._part("weights", (ALL, ALL)) - call._part("masked", (ALL, ALL)).softmax(-1)
            self.made = bool((off.abs().amax(-1).cpu()[rows] > SAME).any())
        self.copies = copied_heads(call._part("query", (ALL, ALL)) @ call._part("key", (ALL, ALL)).mT)

    def weights(self):
        """Return those that the call used, (b, h, n_q, n_k)."""
        if "weights" in self.call.kept:
            return self.call._part("weights", (ALL, ALL)).cpu()
        maps = [torch.from_numpy(self.call._recompute(batch)[0].weights) for batch in range(self.call.b)]
        return torch.stack(maps).nan_to_num(0.0)

    def differs(self, map_):
        """Return how far a map is from the weights, where these are not 0 for all keys."""
        weights = self.weights()
        return float(((weights - map_.float()) * (weights.sum(-1, keepdim=True) > HIDDEN)).abs().amax())


def _not_finite(facts):
    """NaN and inf, at the first call that has them: where queries see nothing, a later layer spreads their NaN."""
    lost, hollow = [fact.call for fact in facts if not fact.finite], [fact for fact in facts if fact.lost]
    if hollow and not lost:
        why = f"NaN at {hollow[0].lost} queries that see no key: a loss without them is finite, gradients are not"
        yield [hollow[0].call], "fully masked row", "beware", why, "a large negative number in place of -inf"
    if not lost:
        return
    brought = not all(lost[0].kept[name].isfinite().all() for name in ("query", "key", "value"))
    born = [fact.call for fact in hollow if brought and fact.call.number < lost[0].number]
    first = (born or lost)[0]
    count, dtype = len(hollow), str(first.dtype).removeprefix("torch.")
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
    verdict = "wrong" if sum(not fact.copies for fact in group) >= MANY - 1 else "beware"
    for fact in (fact for fact in group if fact.copies):
        measured = f"{fact.copies} of {fact.call.h} heads have the scores of another"
        yield [fact.call], "heads differ", verdict, measured, "how heads are split"
    # Queries that see nothing in one of the layers may be padding, which each layer treats as it likes.
    live = torch.stack([fact.asks & fact.allowed.any(-1).any(1) for fact in group]).all(0)
    later, own, columns = zip(*(look_around(fact.allowed, live) for fact in group), strict=True)
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
            yield [group[odd[0]].call], probe, "wrong", measured, look_at
        elif odd:
            measured = f"{len(odd)} of {len(group)} differ: {yes}, or not"
            yield [group[i].call for i in odd], probe, "could not tell", measured, "whether that is meant"


def _scales(facts, declared):
    """Scales in words: of the head, of the layer's width, or another multiple; one odd layer, or all of a kind."""
    right = "as declared, or 1/sqrt(d_k)" if declared else "1/sqrt(d_k)"
    plain = [f for f in facts if not re.search("scores changed by (?!tanh)", "; ".join(f.call.notes))]
    for group in groups_of(plain, "kind"):
        calls = [(c := fact.call, scale_in_words(c.scale, c.d_k, c.h, declared)) for fact in group]
        (usual, count), *others = Counter(word for _, word in calls).most_common()
        odd = [call for call, word in calls if word != usual]
        if len({call.path for call in odd}) == 1 and len({call.path for call, _ in calls}) >= MANY:
            measured = f"{others[0][0] or right}; {usual or right} in {count} others"
            yield odd, "score scale", "wrong", measured, "the divisor of this layer"
            others = []
        if names := [word for word, _ in ((usual, count), *others) if word]:
            measured = f"{len(names)} scales: " * (len(names) > 1) + few(names)
            look_at = "whether that is meant" + ", as in T5" * (names == ["no division"])
            yield [call for call, word in calls if word in names], "score scale", "beware", measured, look_at


def _paddings(facts, masks, config):
    """Padding that real tokens look at, and real tokens that nobody sees, by what the caller says is real."""
    read, begun = [], set()  # modules that have read as many keys as the caller speaks of: later they read a cache
    for fact in facts:
        call, mine, seen = fact.call, fact.real, fact.allowed.any(-2).any(1)
        fit = not fact.across and mine is not None and mine.shape[0] == call.b and mine.shape[1] <= call.n_k
        begun |= {call.path} if fit and mine.shape[1] == call.n_k else set()
        if not fit or call.path not in begun:
            continue
        mine = torch.nn.functional.pad(mine, (0, call.n_k - mine.shape[1]), value=True)
        if any(torch.equal(mask.bool(), seen) for mask in masks.values()):
            mine = seen  # what it hides is the padding of another input
        taken = ((fact.weights() * ~mine[:, None, None]).sum(-1) * fact.allowed.any(-1)).amax(1)  # by padding, (b, n_q)
        fact.taken = float((taken * mine if fact.square else taken).amax())
        fact.hides, fact.loses = not (seen & ~mine).any(), fact.square and fact.own and bool((mine & ~seen).any())
        read.append(fact)
    hide = {fact.kind for fact in read if fact.hides}  # kinds of layers in which padding is hidden from all
    if (lost := [fact.call for fact in read if fact.loses]) and not hide:  # else they may read another input
        yield lost, "padding", "wrong", "real tokens are hidden from all", "whose mask this is, and its polarity"
    # Kinds that read an input of this length. What is as long as its queries makes it, what is not reads what is made.
    reads = {fact.kind: fact.square for fact in read if fact.taken >= HIDDEN or fact.kind in hide}
    one = len(reads) == 1 or (getattr(config, "is_encoder_decoder", False) and not hide) or [*masks] != ["*"]
    for group in groups_of(read, "kind"):
        if shown := [fact for fact in group if fact.taken >= HIDDEN]:
            measured = f"padded keys take up to {max(fact.taken for fact in shown):.2g} of a real token's weight"
            verdict, look_at = "wrong", "whether the padding mask is handed on"
            if all(fact.hides for fact in shown):
                measured, look_at = f"{measured}, though a mask hides them", "what is done to the weights after it"
            if len(shown) == len(group) and not one and not (reads[shown[0].kind] and sum(reads.values()) == 1):
                verdict, look_at = "could not tell", "whose padding real= is: give {path: mask}"
            yield [fact.call for fact in shown], "padding", verdict, measured, look_at


def _handed_back(free, maps):
    """Maps that the model returns, and that no layer has used; each is of one of these, which is then taken."""
    if maps is not None and all(x is None for x in maps):
        yield "map 0", "maps", "could not tell", "the model returned no maps", 'attn_implementation="eager"'
    for number, map_ in enumerate(x.detach().cpu() for x in maps or () if x is not None):
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

"""Probes for the weights: what they sum to, depend on, and how the scores were scaled."""

import torch

from ..findings import CouldNotTell
from ._caller import NoOutput
from ._patient import copied
from ._verdicts import judge, short
from ._watch import WEIGHTS


def row_sums(p):
    # Fewer sequences than tokens, so that the one axis is not taken for the other; a mask is made for as many.
    watches = [p.watch(p.x if masks else p.x[:3], masks=masks) for masks in _masks(p)]
    runs = [seen.uses for seen in watches]
    sums = [_sums(uses) for uses in runs]
    together = torch.cat(sums)
    if not together.numel():
        return "wrong", "all weights are 0"
    measured = f"sums from {float(together.min()):.4g} to {float(together.max()):.4g}"
    tags = [use.scores for uses in runs for use in uses]
    if _are_one(together):
        if p.watch(p.x[:2], module=copied(p.module).train()).drops_scores:
            return "beware", f"{measured}; in training a dropout falls on the scores", "the dropout: after the softmax"
        return "ok", measured
    if all(tag.stage < WEIGHTS for tag in tags) and any(seen.normalises for seen in watches):
        return "wrong", f"{measured}: a softmax is computed, and the scores multiply the values", "what softmax returns"
    less = next((tag.less for tag in tags if tag.less), "")
    # Where rows sum to 1 until a mask is given, it is the mask that takes the rest away.
    if less and float(together.max()) < 1 + 1e-3 and not _are_one(sums[0], 1e-9):
        return "beware", f"{measured}: {less}"
    if any(tag.stage < WEIGHTS for tag in tags):
        return "beware", f"{measured}: no softmax was seen between scores and values", "what makes weights of scores"
    if any(tag.gated or not tag.softmax for tag in tags):
        raise CouldNotTell(f"{measured}; no plain softmax was seen")
    return "wrong", measured


def _sums(uses):
    """Return the sums of all rows but masked ones, which are nothing but 0 or NaN."""
    sums = torch.cat([use.weights.sum(-1).flatten() for use in uses])
    return sums[(sums != 0) & ~sums.isnan()]


def _are_one(sums, tolerance=1e-3):
    return bool(((sums - 1).abs() < tolerance).all())


def _masks(p):
    yield None
    keys = torch.ones(p.n, p.n, p.n, dtype=torch.bool)
    keys[..., -1] = False
    for attempt in p.masked:
        if attempt.form is not None:
            form = attempt.form if attempt.works else attempt.first
            yield p.mask(form, keys if attempt is p.padding else p.causal_mask)
            return


def scale(p):
    uses = [use.scores for use in p.watch(p.x[:2]).uses]
    if uses[0].width is None:
        raise CouldNotTell("the scores are no products of queries and keys")
    tag = uses[0]
    right = tag.width**-0.5 if p.declared.scale is None else p.declared.scale
    measured = f"{tag.factor:.4g}{_named(p, tag, right)}; "
    measured += f"1/sqrt(head_dim) = {right:.4g}" if p.declared.scale is None else f"declared {right:.4g}"
    if all(abs(other.factor / right - 1) < 1e-3 for other in uses):
        return "ok", measured
    if tag.learned:
        raise CouldNotTell(f"a norm or a parameter scales the scores, too ({tag.factor:.4g})")
    if p.declared.scale is None and tag.factor == 1:
        # T5 divides the initial weights of the queries instead.
        folded = abs(tag.rms[0] / tag.rms[1] / right - 1) < 0.25
        return ("ok" if folded else "beware"), measured + (", in the weights of the queries" if folded else "")
    # Granite and others divide by head_dim, and learn to.
    by_width = p.declared.scale is None and abs(tag.factor * tag.width - 1) < 1e-3
    known = p.declared.scale is not None or (_named(p, tag, right) and not by_width)
    return ("wrong" if known else "beware"), measured


def _named(p, tag, right):
    width = tag.width
    names = {
        "1/sqrt(embed_dim)": p.embed_dim**-0.5,
        ": none": 1.0,
        "1/head_dim": 1 / width,
        "sqrt(head_dim)": width**0.5,
        "1/head_dim**2": width**-2.0,
        "1/sqrt(num_heads)": p.num_heads**-0.5,
        "1/sqrt(tokens)": p.n**-0.5,
        "1/sqrt(batch)": 2**-0.5,
        "1/embed_dim": 1 / p.embed_dim,
        "head_dim**-0.25": width**-0.25,
        "head_dim": width,
    }
    for name, value in names.items():
        if abs(tag.factor / value - 1) < 1e-3 and abs(value / right - 1) > 1e-3:
            return name if name.startswith(":") else f" = {name}"
    return ""


def heads(p):
    if p.num_heads == 1:
        raise CouldNotTell("there is one head")
    if not p.watch(p.x[:1]).uses[0].projected:
        raise CouldNotTell("nothing projects queries and keys")
    tiled = torch.randn(1, p.n, p.embed_dim // p.num_heads, dtype=p.dtype).repeat(1, 1, p.num_heads)
    # The same small projection for every slice of a token is a design, too, if a rare one.
    cases = [(p.x[:1], "on random tokens", "wrong"), (tiled, "where all slices of the tokens are equal", "beware")]
    for x, what, verdict in cases if p.embed_dim % p.num_heads == 0 else cases[:1]:
        maps = _maps(p.watch(x).uses)
        weights = torch.cat(maps)  # one sequence: every slice is a head
        if len(maps) == 1 and len(weights) != p.num_heads:
            said = f"{len(weights)} maps of weights for each sequence; {p.num_heads} heads were said"
            return ("wrong" if len(weights) > 1 else "beware"), said, "how many heads the features are split into"
        if len(weights) == 1:
            raise CouldNotTell("one map of weights was seen")
        same = (weights[:, None] - weights[None]).abs().flatten(2).amax(-1) < 1e-6
        if twins := int((same.sum(0) > 1).sum()):
            return verdict, f"{twins} of {len(weights)} heads have the weights of another {what}"
    return "ok", "no two heads have the same weights"


def _maps(uses):
    """Return the weights without those of a map that multiplies the values in parts, one after another."""
    maps = []
    for use in uses:
        alike = (x for x in maps if x.shape == use.weights.shape and torch.allclose(x, use.weights, 0, 1e-6))
        if len(use.weights) == 1 or next(alike, None) is None:
            maps.append(use.weights)
    return maps


def _weights(p, *inputs):
    return torch.cat([use.weights for use in p.watch(*inputs).uses])


def _differ(p, a, b):
    return bool((a - b).abs().max() > (1e-7 if p.tolerance > 1e-6 else 1e-12))


def _unless_guessed(p, finding):
    """Where the names of the arguments do not say what they are, it may be us who took one for another."""
    if finding[0] == "wrong" and p.caller.guessed:
        raise CouldNotTell(f"{finding[1]}, if {' and '.join(p.caller.guessed)} is what it was taken for")
    return finding


def keys_matter(p):
    if p.caller.ignored and not p.caller.two:  # some layers share the signature of those that read a context
        return "beware", f"nothing depends on {p.caller.ignored}"
    if p.caller.held and not p.moved(*p.with_other_memories()).any():
        return "beware", f"nothing depends on {' and '.join(p.caller.held)}", "which attention of the layer reads it"
    query, key, value, other = (p.draw(p.n, 2) for _ in range(4))
    p.must_repeat()
    if p.caller.three or p.caller.two:
        before = _weights(p, query, key, value)
        moves = {"keys": _differ(p, before, _weights(p, query, other, value if p.caller.three else other))}
        moves["queries"] = _differ(p, before, _weights(p, other, key, value))
    else:
        # The last one of those that see most tokens stays, and what it attends to changes; then the other way round.
        i = max(range(p.n), key=lambda row: (int((p.reach & p.others)[row].sum()), row))
        before, stays = _weights(p, query), ~p.others[i, :, None]
        moves = {"keys": _differ(p, before[:, i], _weights(p, torch.where(stays, query, other))[:, i])}
        changed = _weights(p, torch.where(stays, other, query))
        moves["queries"] = _differ(p, before[:, i, p.others[i]], changed[:, i, p.others[i]])
    idle = [name for name, does in moves.items() if not does]
    if idle == ["keys"] and all(use.scores.width is None for use in p.watch(query).uses):
        return "beware", "scores are made of each query alone, as in a dense Synthesizer"
    said = f"the weights do not depend on the {' and '.join(idle)}" if idle else "the weights move with both"
    return _unless_guessed(p, judge(not idle, said))


def values_apart(p):
    if not p.caller.three:
        raise CouldNotTell("the module takes no values of their own")
    query, key, value, other = (p.draw(p.n) for _ in range(4))
    p.must_repeat()
    if _differ(p, _weights(p, query, key, value), _weights(p, query, key, other)):
        return _unless_guessed(p, ("wrong", "the weights depend on the values"))
    moved = p.moved(p.call(p.module, query, key, value)[0], p.call(p.module, query, key, other)[0]).any()
    return judge(bool(moved), f"values {'move' if moved else 'do not move'} the output, and not the weights")


def order(p):
    if not (p.caller.three or p.caller.two):
        raise CouldNotTell("the module takes one sequence")
    query, key, value = p.draw(2), p.draw(p.n), p.draw(p.n)
    value = value if p.caller.three else key
    try:
        output = p.call(p.module, query.clone(), key.clone(), value.clone())[0]
    except NoOutput:
        return _unless_guessed(p, ("wrong", f"2 queries and {p.n} keys do not give 2 outputs"))
    except Exception as error:
        if fault := _mistaken(p):
            return _unless_guessed(p, ("wrong", f"{fault}; 2 queries, {p.n} keys raise"))
        raise CouldNotTell(f"2 queries and {p.n} keys: {short(error)}") from error
    shuffled = torch.randperm(p.n)
    moved = p.change(output, p.call(p.module, query, key[:, shuffled], value[:, shuffled])[0]).max()
    if moved > p.tolerance:
        raise CouldNotTell("it knows positions")
    if p.caller.own is None and p.caller.three and p.caller.order != ["query", "key", "value"]:
        return "beware", f"forward({', '.join(p.caller.roles[role] for role in p.caller.order)}, ...)"
    return "ok", f"2 queries, {p.n} keys: 2 outputs; reordering the keys moves them by 0"


def _mistaken(p):
    """Return what shows, with as many queries as keys, that the one is taken for the other; "" where nothing does."""
    query, key, value, other = (p.draw(p.n) for _ in range(4))
    if not p.caller.three:  # the keys give the values, too, so they move all outputs whatever they are taken for
        order = torch.arange(p.n).roll(1)
        whole = p.call(p.module, query, key)[0][:, order]
        together, alone = (p.call(p.module, query[:, order], x)[0] for x in (key[:, order], key))
        # Reordering both at once tells that it knows no positions; then the queries alone must reorder the outputs.
        taken = not p.moved(together, whole).any() and p.moved(alone, whole).any()
        return "reordering the queries does not reorder the outputs" if taken else ""
    before = p.call(p.module, query, key, value)[0]
    first = torch.arange(p.n) == 0
    asks, answers = (torch.where(first[:, None], other, x) for x in (query, key))
    by_query = p.moved(p.call(p.module, asks, key, value)[0], before)
    by_key = p.moved(p.call(p.module, query, answers, value)[0], before)
    taken = by_query[:, 1:].all() and by_key[:, 0].all() and not by_key[:, 1:].any()
    return "a key moves its own output alone, a query all of them: they are exchanged" if taken else ""

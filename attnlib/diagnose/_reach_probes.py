"""Probes for who reaches whom: poke a token, and see which outputs move."""

import math

import torch

from ..findings import CouldNotTell
from ._forms import is_for_padding
from ._patient import copied
from ._verdicts import amount, judge


def _is_torch(p):
    """Whether it is one of torch's own, which documents its layout and polarity."""
    return type(p.module).__module__.startswith("torch.nn.")


def layout(p):
    name, declared = p.caller.layout.name, p.declared.batch_first
    if declared is False and not p.sequence_first and p.caller.own:
        raise CouldNotTell("call= may exchange the axes")
    if declared is not None:
        return judge(declared != p.sequence_first, name)
    return ("beware" if p.sequence_first and not _is_torch(p) else "ok"), name


def permutation(p):
    verdict, measured, *look_at = _permutation(p)
    if verdict == "ok" and p.declared.positions and _turns_badly(p):
        said = f"{measured}; for equal tokens the scores are no function of the distance between positions"
        return "beware", said, "rotary: which two features are a pair; the same turn for queries and keys"
    return verdict, measured, *look_at


def _turns_badly(p):
    """Whether positions that multiply queries and keys, as rotations do, make scores of more than the distance.

    Positions that are added may do so; where they are, the difference of two queries is the same for all tokens.
    """
    if math.isqrt(p.n) ** 2 == p.n:  # positions may be those of a plane
        return False
    seen = [p.watch(p.draw(1, 1).expand(2, p.n, -1), need=False).uses for _ in range(2)]
    for one, other in zip(*seen, strict=False):
        if not one.scores.queries or not other.scores.queries or float(_apart(one.values).abs().max()) > 1e-6:
            continue
        turned, otherwise = _apart(one.scores.queries), _apart(other.scores.queries)
        steps = one.weights.log().diff(dim=-1)
        across = [steps.diagonal(d, -2, -1) for d in range(2 - p.n, p.n - 1)]
        spreads = [float((x.amax(-1) - x.amin(-1)).max()) for x in across if x.isfinite().all()]
        if max(spreads, default=0.0) > 1e-4 and float((turned - otherwise).abs().max()) > 1e-6:
            return True
    return False


def _apart(side):
    """Return how far what stands for each token is from what stands for the first one."""
    return side.features - side.features.narrow(side.axis, 0, 1)


def _permutation(p):
    mixed, measured = _mixed(p)
    if p.declared.positions and not mixed and not _order_counts(p):
        return "wrong", "exchanging two tokens exchanges their outputs, and no other one moves: no positions", _PLACES
    if p.causal:
        if mixed is None:
            raise CouldNotTell("a causal module depends on the order")
        return judge(not mixed, measured)
    order = torch.randperm(p.n)
    moved = p.change(p.run(p.x[:, order]), p.output[:, order]).max()
    if moved <= p.tolerance:
        return "ok", "permuting the tokens changes the outputs by 0"
    if mixed:
        return "wrong", f"permuting the tokens changes the outputs by {amount(moved)}; {measured}"
    if p.convolves and not p.declared.positions:
        raise CouldNotTell("a convolution, or a shift of tokens, knows positions")
    if not mixed and not p.reach.all():
        raise CouldNotTell("not every token sees every other one, so the order matters")
    if p.declared.positions and mixed is False:
        return "ok", "knows positions; " + measured
    return "beware", "knows positions" if mixed is False else "knows positions, or mixes tokens"


_PLACES = "where positions are added, or queries and keys rotated"


def _order_counts(p):
    """Whether the last output, or another one, moves when two tokens before it, which it sees, are exchanged."""
    i = p.n - 3
    if not p.reach[-1, i : i + 2].all():
        return True  # it cannot be seen this way
    turned = torch.arange(p.n)
    turned[i], turned[i + 1] = i + 1, i
    return bool(p.moved(p.run(p.x[:, turned]), p.output)[:, -1].any())


def _mixed(p):
    """Does a token reach another one though every query has all its weight on its own token? None: cannot be seen."""
    watches = []

    def run(x):
        watches.append(p.watch(x, alone=True))
        return watches[-1].output

    try:
        reach = p.influence(run=run)
    except CouldNotTell:
        return None, ""
    if watches[0].convolves or watches[0].elsewhere or not p.repeats:  # values of positions, say, are weighted, too
        return None, ""
    mixed = reach & p.others
    others = int(mixed.sum())
    if _shifts(mixed):
        p.convolves = True
        return None, ""
    return others > 0, f"weights of 1 for its own token: {others} pairs of tokens still mix"


def _shifts(mixed):
    """Whether every token reads one at the same distance before it, or behind it, or both, and no other one."""
    distances = [d for d in range(1 - len(mixed), len(mixed)) if mixed.diagonal(d).any()]
    return 0 < len(distances) < 3 and all(mixed.diagonal(d).all() for d in distances)


def _fails(p, attempt, other):
    """Return the verdict on a mask that has no effect, None on one that leaks; raise CouldNotTell on any other one.

    A mask may be ignored on purpose: a layer that shares the signature of others, and is never handed one.
    """
    if attempt.form is None:
        # Some forms raise where others are only not understood: then it is ours that does not know the right one.
        if attempt.accepted and not attempt.error and p.caller.hands_mask and p.caller.masks and other.form is None:
            return "beware", _unread(p.caller.masks)
        if attempt.error is not None and not attempt.accepted:
            raise CouldNotTell(f"it could not be given a mask ({type(attempt.error).__name__})")
        raise CouldNotTell("no mask reached it" if p.masks else "it takes no mask")
    if attempt.leaks and p.convolves:
        raise CouldNotTell("a convolution mixes tokens, too")
    return None


def _unread(names):
    return f"{' and '.join(names)}: no form of mask has any effect"


def _unless_unread(p, measure, of_padding):
    """Return the finding, or "beware" where all is well and another mask beside the one that works is ignored."""
    names = [name for name in p.unread_masks if is_for_padding(name) == of_padding]
    try:
        verdict, measured, *look_at = measure(p)
    except CouldNotTell:
        if not names:
            raise
        return "beware", _unread(names)
    if verdict == "ok" and names:
        return "beware", f"{measured}; {_unread(names)}"
    return verdict, measured, *look_at


def causality(p):
    try:
        finding, unknown = _unless_unread(p, _causality, of_padding=False), None
    except CouldNotTell as error:
        finding, unknown = ("ok", ""), error
    if finding[0] == "ok" and p.declared.causal is None and (name := _idle_triangle(p)):
        return "beware", f"{name} is triangular and moves nothing: tokens see later ones", f"the indices of {name}"
    if unknown:
        raise unknown
    return finding


def _idle_triangle(p):
    """Return the name of a causal mask that the module keeps, and that does nothing though nobody has to ask for it."""
    asked = any("caus" in q.name for q in p.caller.parameters)
    if asked or p.causal or p.causal_if_masked or not p.reach.triu(1).any():
        return ""
    for name, part in p.module.named_modules():
        for key, x in (*part.named_buffers(recurse=False), *vars(part).items()):
            if isinstance(x, torch.Tensor) and _is_triangle(x) and _is_idle(p, name, key, x):
                return key
    return ""


def _is_triangle(x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 3:
        return False
    x = x.reshape(-1, *x.shape[-2:])[0]
    later = torch.ones_like(x, dtype=torch.bool).triu(1)
    return bool((x[later] == x[0, 1]).all() and (x[~later] == x[0, 0]).all() and x[0, 0] != x[0, 1])


def _is_idle(p, name, key, x):
    module = copied(p.module)
    setattr(module.get_submodule(name), key, x.mT.clone())
    return not p.moved(p.run(p.x, module=module), p.output).any()


def _causality(p):
    others = p.reach & p.others
    if others[:-1].any(1).all() and not others.tril().any():
        return "wrong", "every token sees later ones only: the mask is turned round"
    if p.causal:
        leaks = int(p.reach.triu(1).sum())
        by = "" if p.declared.causal else " (causal by itself)"
        return judge(not leaks, f"{leaks} pairs: a token moves an earlier output{by}")
    if form := p.exchanged_mask:
        measured = f"the tokens follow {form.name}, the mask of what is read besides, and not {p.own_mask}"
        return "wrong", measured, "two masks exchanged, in forward or in what it calls"
    attempt = p.pairs
    if not attempt.works:
        if p.takes_keys_only:
            raise CouldNotTell("it takes a padding mask only")
        if fault := _fails(p, attempt, p.padding):
            return fault
    measured = f"{attempt.leaks} pairs: a token moves an earlier output ({attempt.form})"
    if attempt.turned:
        return "wrong", f"{measured}: rows and columns of the mask are exchanged", "a transpose: rows are the queries"
    if attempt.works and p.causal_if_masked == "unread":
        return "beware", f"{measured}: whatever the mask says, only whether there is one", _FLAG
    return judge(not attempt.leaks, measured)


def padding(p):
    return _unless_unread(p, _padding, of_padding=True)


def _padding(p):
    attempt = p.padding
    if not attempt.works:
        # (b, n_k) read as (n_q, n_k) leaks, and that says nothing about padding.
        if attempt.for_all or (not p.causal and p.pairs.works and p.pairs.form.shape == "(n_q, n_k)"):
            raise CouldNotTell("it takes one mask for all sequences")
        if fault := _fails(p, attempt, p.pairs):
            return fault
    measured = f"{attempt.leaks} real outputs move with the padding ({attempt.form})"
    if attempt.leaks:
        return "wrong", measured, *_wrong_mask(p, attempt)
    if p.causal_if_masked == "unread":
        return "beware", f"whatever the mask says, only whether there is one ({attempt.form})", _FLAG
    if p.causal_if_masked and (leaks := _leaks_at_the_front(p, attempt)):
        return "wrong", f"{leaks} real outputs move with padding at the front ({attempt.form})"
    if leaks := _leaks_beside_another_mask(p):
        # Some say that the one mask goes before the other one.
        return "beware", f"{measured}; with {p.pairs.form.name} beside it: {leaks}"
    if (moved := _moved_by_the_column(p)) > max(p.tolerance, 1e-4):
        said = f"{measured}; a text alone and behind padding: outputs differ by {amount(moved)}"
        return "beware", said, "positions counted by the column: count them by the mask"
    return "ok", measured


def _moved_by_the_column(p):
    """Return how far masked padding before a text moves it; it only should not where texts go on at their end."""
    by_caller = any(word in q.name for q in p.caller.parameters for word in ("position", "cos", "freq"))
    if not p.declared.causal or not p.padding.works or by_caller or not p.steady:
        return 0.0
    real = torch.arange(p.n) > 1
    masks = p.mask(p.padding.form, real.expand(p.n, p.n, -1))
    alone = p.run(p.x[:, 2:]).detach()
    spread = float((alone - alone.mean((0, 1))).abs().max()) or 1.0
    return float((p.run(p.x, masks).detach()[:, 2:] - alone).abs().max()) / spread


_FLAG = "is_causal=mask is not None: what the mask says is not read"


def _wrong_mask(p, attempt):
    """Return where to look if what leaks is not the mask that a sequence was given, but another one, or none."""
    if p.causal_if_masked == "unread":
        return (_FLAG,)
    obeyed = set()
    for j in (0, 1):
        mask = torch.ones(p.n, p.n, p.n, dtype=torch.bool)
        before = p.run(p.x, p.mask(attempt.form, mask))
        mask[j, :, -2:] = False
        moved = p.moved(p.run(p.x, p.mask(attempt.form, mask)), before).any(1)
        obeyed |= {j} if (moved & (torch.arange(p.n) != j)).any() else set()
    if obeyed == {0}:
        return ("every sequence obeys the mask of the first one: mask[0], or mask[:1]",)
    if obeyed:
        return ("a sequence obeys the mask of another sequence: repeat where repeat_interleave belongs",)
    return ()


def _leaks_beside_another_mask(p):
    """Hand in both masks at once: return how many real outputs move with padding at the front."""
    if p.causal or not (p.pairs.works and p.padding.works) or p.pairs.form.name == p.padding.form.name:
        return 0
    return _leaks_at_the_front(p, p.padding, p.mask(p.pairs.form, p.causal_mask))


def _leaks_at_the_front(p, attempt, beside=None):
    real = torch.arange(p.n).expand(p.n, -1) > torch.arange(p.n)[:, None] % 3
    masks = (beside or {}) | p.mask(attempt.form, real[:, None].expand(-1, p.n, -1))
    changed = torch.where(real[..., None], p.x, p.draw(p.n))
    return int((p.moved(p.run(changed, masks), p.run(p.x, masks)) & real).sum())


def allowed(p):
    expected = p.others.tril() if p.causal else p.others
    seen, lost = p.reach & p.others, int((expected & ~p.reach).sum())
    if not seen.any():
        return "wrong", "every token sees itself only"
    if nan := int(p.output.isnan().any(-1).any(0).sum()):
        itself = ", no token has any weight on itself" if _hides_itself(p, None) else ""
        return "wrong", f"{nan} of {p.n} tokens get NaN without any mask given" + itself
    if lost and p.convolves:
        raise CouldNotTell("a convolution reaches neighbours only")
    columns = seen.any(0).nonzero().flatten().tolist()
    if len(columns) == 1:
        return "wrong", f"every token sees token {columns[0]} only"
    if _hides_itself(p, None):
        return "beware", "no token has any weight on itself"
    if lost:
        return "beware", f"{lost} of {int(expected.sum())} pairs do not reach each other: a window, or a mask"
    if p.causal_if_masked:
        return "beware", "with a mask, even one that allows everything, no token sees later ones", "whether it is meant"
    for attempt in p.masked:
        if attempt.form is not None and attempt.lost and not attempt.for_all:
            return "wrong", f"{attempt.lost} pairs that the mask allows do not reach each other ({attempt.form})"
    if p.pairs.works and not p.causal and _hides_itself(p, p.mask(p.pairs.form, p.causal_mask)):
        return "wrong", f"the mask allows each token itself, and no token has any weight there ({p.pairs.form})"
    return "ok", "every token that is allowed moves the output"


def _hides_itself(p, masks):
    """Whether all weights of tokens on themselves are 0, which moves no output that its own query would not move."""
    try:
        weights = torch.cat([use.weights for use in p.watch(p.x, masks=masks).uses]).nan_to_num()
    except CouldNotTell:
        return False
    return bool(weights.any()) and not weights.diagonal(dim1=-2, dim2=-1).any()


def polarity(p):
    attempts = [attempt for attempt in ((p.padding,) if p.causal else (p.pairs, p.padding)) if attempt.works]
    if not attempts or p.caller.own is not None:
        raise CouldNotTell("no mask of a known form works" if p.masks else "it takes no mask")
    verdicts = [_polarity_of(p, attempt.form) for attempt in attempts]
    return next((finding for finding in verdicts if finding[0] != "ok"), verdicts[0])


def _polarity_of(p, form):
    if "additive" in form.kind and _adds_a_boolean(p, form):
        measured = f"a boolean mask is added as 0 and 1, and blocks nothing ({form} does)"
        wrong = p.declared.blocked is not None  # a boolean one was promised
        return ("wrong" if wrong else "beware"), measured, "scores + mask: masked_fill for a boolean one"
    if "additive" in form.kind or form.shape == "(b,) lengths":
        return "ok", f"no polarity ({form})"
    if p.causal_if_masked == "unread":
        raise CouldNotTell(f"the inverted mask gives the same output: what it says is not read ({form})")
    measured = f"True means {'blocked' if form.blocked else 'may attend'} ({form})"
    if p.declared.blocked is not None:
        return judge(form.blocked == p.declared.blocked, measured)
    usual = "padding" in form.name.lower() or _is_torch(p)  # torch's convention: True = blocked
    return ("ok" if form.blocked == usual else "beware"), measured


def _adds_a_boolean(p, form):
    """Whether a boolean mask in the place of one that is added changes the outputs, and forbids nothing."""
    masks = p.mask(form._replace(kind="boolean"), p.causal_mask)
    try:
        changes = p.moved(p.run(p.x, masks), p.output).any()
        return bool(changes) and torch.equal(p.influence(masks), p.reach)
    except Exception:
        return False  # it says that it takes none


def fully_masked(p):
    i, mask = 1, torch.ones(p.n, p.n, p.n, dtype=torch.bool)
    if p.pairs.works and not p.causal:
        attempt = p.pairs
        mask[:, i] = False
        changed = p.draw(p.n)
        changed[:, i] = p.x[:, i]  # the query stays
        rows = (slice(None), i)
    elif p.padding.works and p.padding.form.shape != "(b,) lengths":
        attempt = p.padding
        mask[i] = False
        changed = p.x.clone()
        changed[i, 0] = p.draw(1)[0, 0]
        rows = (i, slice(1, None))
    else:
        if fault := _fails(p, p.padding, p.pairs):
            return fault
        raise CouldNotTell("no mask of a known form works")
    if "additive" in attempt.form.kind:
        raise CouldNotTell("a mask that is added decides that itself")
    if p.causal_if_masked == "unread":
        raise CouldNotTell("what the mask says is not read")
    masks = p.mask(attempt.form, mask)
    before, after = p.run(p.x, masks), p.run(changed, masks)
    if before[rows].isnan().any():
        return "beware", "NaN"
    moved = p.change(before, after)[rows].max()
    if moved <= p.tolerance:
        trained = [x for x in p.module.parameters() if x.requires_grad and before.requires_grad]
        gradients = torch.autograd.grad(before.sum(), trained, allow_unused=True) if trained else []
        if before.isfinite().all() and any(x is not None and x.isnan().any() for x in gradients):
            return "beware", "finite, but gradients are NaN", "-inf that is added: fill it in, with masked_fill"
        return "ok", "finite; forbidden keys move it by 0"
    return "beware", f"finite; forbidden keys move it by {amount(moved)}"

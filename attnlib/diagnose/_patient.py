"""The module under examination: how it is called, what it reaches, and which masks it understands."""

import contextlib
import copy
import functools
import itertools
import math
import types

import torch

from ..findings import CouldNotTell
from . import _caller as calling
from ._attempts import Neutral, best_attempt, unread_masks
from ._forms import KEYS, PADDING, PAIRS, forms
from ._handed import handed_in
from ._watch import Watch, plain_attention


def copied(module):
    """Return a deep copy. Weights kept of a former call are detached: torch refuses to copy them as they are.

    Functions that stand in the module, as in the place of its forward, know the copy instead of the module.
    """
    kept = {}

    def look(x):
        if isinstance(x, torch.Tensor):
            if x.grad_fn is not None:
                kept[id(x)] = x.detach().clone()
        elif isinstance(x, dict):
            any(look(y) for y in x.values())
        elif isinstance(x, list | tuple):
            any(look(y) for y in x)

    for part in module.modules():
        look({name: x for name, x in vars(part).items() if name not in ("_parameters", "_modules")})
    made = copy.deepcopy(module, kept)
    for part in made.modules():
        for named in [vars(part), *(x for x in vars(part).values() if isinstance(x, dict))]:
            for name, x in named.items():
                named[name] = _rebound(x, kept) if isinstance(x, types.FunctionType) else x
    return made


def _rebound(x, memo):
    """Return a copy; of a function one that closes over copies. What cannot be copied stays as it is."""
    if not isinstance(x, types.FunctionType):
        with contextlib.suppress(Exception):
            return copy.deepcopy(x, memo)
        return x
    if id(x) not in memo and x.__closure__:
        cells = tuple(types.CellType() for _ in x.__closure__)
        made = types.FunctionType(x.__code__, x.__globals__, x.__name__, x.__defaults__, cells)
        made.__kwdefaults__, made.__dict__ = x.__kwdefaults__, dict(vars(x))
        memo[id(x)] = made
        for old, new in zip(x.__closure__, cells, strict=True):
            with contextlib.suppress(ValueError):  # nothing is in it yet
                new.cell_contents = _rebound(old.cell_contents, memo)
    return memo.get(id(x), x)


def _uncompiled(module):
    """Put back what torch.compile was given, whose operations can be seen."""
    for part in module.modules():
        vars(part).pop("_compiled_call_impl", None)
        for name, child in part._modules.items():
            part._modules[name] = child if child is None else child._modules.get("_orig_mod", child)
    return module


def _with_zeros_filled(module):
    """Give all-zero parameters but biases random numbers: a projection that starts at 0 hides what is before it."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.endswith("bias") and parameter.is_floating_point() and not parameter.any():
                parameter.normal_(std=parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 1.0)
    return module


_MEMORY, _ITSELF = ("cross", "memory", "enc", "src", "context"), ("tgt", "trg", "target", "self")


def _has_word(name, words):
    return any(word in name for word in words)


_LONGEST = 100  # tokens that are tried, and as many sequences


def _sizes(module):
    """Return sizes that may be a number of tokens: those of square tables first, sides of a square image last."""
    square, other = [], []
    for part in module.modules():
        linear = isinstance(part, torch.nn.Linear)
        for x in (*part.parameters(recurse=False), *part.buffers(recurse=False), *vars(part).values()):
            if isinstance(x, torch.Tensor):
                (square if x.ndim > 1 and x.shape[-1] == x.shape[-2] and not linear else other).extend(x.shape[::-1])
            elif type(x) is int or (isinstance(x, tuple) and x and all(type(y) is int for y in x)):
                other.append(math.prod(x) if isinstance(x, tuple) else x)
    return dict.fromkeys([*square, *other, *(x * x for x in other)])


class Patient:
    """A copy of the module in float64 where it works there, with an input x, (b, n, embed_dim), b = n.

    As many sequences as tokens: there a mask read along the wrong axes shows in the numbers. n is the size of nothing
    else, so that whatever else is mixed up raises.
    """

    def __init__(self, module, embed_dim, num_heads, declared, own_call):
        self.embed_dim, self.num_heads, self.declared = embed_dim, num_heads, declared
        self.unfilled = _uncompiled(copied(module._modules.get("_orig_mod", module))).cpu().float().eval()
        self.original = _with_zeros_filled(copied(self.unfilled))
        self.caller = calling.Caller(module, own_call, num_heads)
        self._runnable, self.convolves, self.stateful, self.masks_for_memory = None, False, False, []
        self._choose()
        self.stateful = self._keeps_state()
        self._hold_what_it_reads()
        self.output = self.run(self.x)
        self.__dict__.pop("tolerance", None)
        self.spread = float((self.output - self.output.mean((0, 1))).detach().abs().nan_to_num(0, 0, 0).max()) or 1.0

    def _choose(self):
        """Find a way to call the module; TypeError if there is none."""
        lengths, signature, said = self._lengths(), self.caller, []
        for n in lengths:
            for dtype in (torch.float64, torch.float32):
                # The first length in float32 says most: a module that computes in float32 refuses float64.
                self.n, self.dtype, errors = n, dtype, []
                self.module = copied(self.original).to(dtype)
                self.x, callers = self.draw(n), {}
                # Several layouts may run: one in which weights are seen ends the search, else the best is taken.
                for way in calling.combinations(signature, self.declared.batch_first is not False):
                    self.caller = signature.tried(*way)
                    if self._works(errors) and (attends := self._attends()) + (n not in self._kept):
                        callers.setdefault(attends, self.caller)
                        if 2 in callers:
                            break
                    signature.ignored = signature.ignored or self.caller.ignored
                if callers:
                    self.caller = callers[max(callers)]
                    return
                if self._any_mask():
                    return
            said = errors if n == self._first else said
        raise calling.refusal(said, self.embed_dim, lengths) from None

    def _lengths(self):
        """Return how many tokens to try: first a number that is the size of nothing else.

        Windows and tables of positions may insist on one: squares, then sizes that the module keeps.
        """
        taken = {self.num_heads, max(self.embed_dim // self.num_heads, 1), self.embed_dim, *range(3)}
        self._first = next(n for n in (5, 7, 11, 13) if n not in taken and self.embed_dim % n)
        self._kept = [n for n in _sizes(self.original) if 2 < n <= _LONGEST and n % self.embed_dim][:12]
        return list(dict.fromkeys((self._first, 4, 9, 16, 49, 64, *self._kept)))

    def _attends(self):
        """How much the present layout looks like that of tokens: 2, weights are seen; 1, they reach each other; 0.

        Fewer sequences than tokens: attention along their axis has other sizes.
        """
        seen = self.watch(self.x[:3], need=False)
        if seen.uses:
            return 2
        if self.n in self._kept and not (seen.weighs or seen.multiplies):
            return 0  # a layer that takes features for tokens
        changed = self.x.clone()
        changed[:, 0] = self.draw(self.n)[:, 0]
        same = torch.isclose(self.run(changed), self.run(self.x), equal_nan=True)
        return int(not same[:, 1:].all())

    @property
    def sequence_first(self):
        return self.caller.layout is calling.SEQUENCE_FIRST

    def _keeps_state(self):
        """Whether a second call of the same module gives something else, without any chance."""
        self.module, state, outputs = copied(self.original).to(self.dtype), torch.get_rng_state(), []
        one, other = copied(self.module), copied(self.module)
        for module in (one, one, other):
            torch.set_rng_state(state)
            try:
                outputs.append(self.run(self.x, module=module).nan_to_num())
            except Exception:
                return len(outputs) == 1  # the first call went well
        return torch.equal(outputs[0], outputs[2]) and not torch.equal(outputs[0], outputs[1])

    def _hold_what_it_reads(self):
        """A decoder attends to itself, too: what it reads besides is held still, or it would leak past any mask."""
        caller, roles = self.caller, self.caller.roles
        if caller.held or self._hold():
            # What it reads has masks of its own, which say nothing of the tokens that attend to each other.
            others = [form.name for form in caller.neutral.others] if caller.neutral else []
            for_memory = [name for name in caller.masks if _has_word(name, _MEMORY)]
            masks = [name for name in caller.masks if name not in (*others, *for_memory)]
            self.masks_for_memory, caller.masks = for_memory, masks or caller.masks
        else:
            caller.roles, caller.held = roles, None
            if caller.neutral:
                caller.neutral.read = None

    def _hold(self):
        """Hold still what is read besides; tell whether tokens then attend to each other, so that it is a decoder."""
        caller, roles = self.caller, self.caller.roles
        names = [roles[role] for role in ("context", "key", "value") if role in roles]
        names = names or ([caller.ignored] if caller.ignored else [])
        if caller.own or not names:
            return False
        caller.roles = {"x": roles["x"] if "x" in roles else roles["query"]}
        caller.held = dict.fromkeys(names, self.draw(self.n + 2, 1)[0])
        if caller.neutral:
            caller.neutral.read = self.n + 2
        try:
            held = bool(self.watch(self.x[:2], need=False).uses) and self._runs([])
            return held and ("context" in roles or "x" in roles or not torch.equal(*self.with_other_memories()))
        except Exception:
            return False

    def with_other_memories(self):
        """Return the outputs with what a decoder reads, and with something else in its place."""
        before, held = self.run(self.x), self.caller.held
        self.caller.held = {name: memory.roll(1, -1) for name, memory in held.items()}
        after = self.run(self.x)
        self.caller.held = held
        return before, after

    def _works(self, errors):
        """Whether the present way to call runs; where a mask is insisted on, with one that allows everything."""
        self.caller.neutral = None
        if self._runs(errors) or self._runs_with_context():
            return not self._guessed_wrong()
        # Each form of a mask is one more call: only few tokens, and each allows everything, so that it must run.
        if self.caller.insisted and (self.n < 9 or self.n in self._kept):
            for neutral in self._neutral_masks(self.caller.insisted):
                self.caller.neutral = neutral
                if not self._runs([]):
                    continue
                if not self._runnable and self._weighs():
                    self._runnable = self.caller.layout, self.caller.roles, neutral
                if self._blocks_what_it_should(neutral.form) or self._holds(neutral):
                    return True
        return False

    def _weighs(self):
        """Whether a mask lets tokens weigh each other: one that forbids all in truth leaves NaN, or equal weights."""
        weights = [use.weights for use in self.watch(self.x[:2], need=False).uses]
        return all(bool(x.isfinite().all() and x.std() > 1e-6) for x in weights)

    def _neutral_masks(self, names):
        """Yield every Neutral: each of the masks in every form, the others in the same one; if none runs, in others."""
        for shape in (None, *KEYS, *PAIRS) if len(names) > 1 and self.n == self._first else (None,):
            for name in names:
                others = [other for other in names if other != name]
                for form in forms([name], {**PAIRS, **PADDING}):
                    yield Neutral(form, self.num_heads, self.dtype, others, shape)
            if self._runnable:
                return

    def _holds(self, neutral):
        """Whether a decoder does what one mask says while what it reads is held still, with the others for that."""
        caller, roles = self.caller, self.caller.roles
        if not self._hold() or not self._blocks_what_it_should(neutral.form):
            caller.roles, caller.held, neutral.read = roles, None, None
        return bool(caller.held)

    def _runs(self, errors):
        try:
            self.run(self.x)
            # As many sequences as tokens may hide that the axes are others.
            self.run(self.x[:2], module=copied(self.module))
            return True
        except Exception as error:
            errors.append((self.caller.layout, error))
            return False

    def _runs_with_context(self):
        """Whether it runs with the context that its signature would let out."""
        context, required = self.caller.roles.get("context"), self.caller.required
        if context is None or context in required:
            return False
        required.add(context)
        if not self._runs([]):
            required.discard(context)
        return context in required

    def _guessed_wrong(self):
        """Drop a context that does nothing; tell whether what was guessed to be keys and values does nothing at all."""
        caller, roles, other = self.caller, self.caller.roles, self.draw(self.n)
        by_name = set(roles.values()) <= set(caller.by_name.values())
        if caller.own:
            self._see_what_call_uses(other)
            return False
        if not {"context", "value"} & set(roles) or ("value" in roles and by_name):
            return False
        # What moves no output is no key: then the order of the arguments was guessed wrong.
        try:
            idle = not self._moved_by({"key": other}, "key")
            if "value" in roles and roles["value"] not in caller.required:
                idle = idle or not self._moved_by({"key": other, "value": other}, "value")
        except Exception:
            idle = True
        else:
            if idle and roles.get("context") == caller.by_name.get("context"):
                caller.ignored = roles.get("context")
        if idle and "context" in roles and roles["context"] not in caller.required:
            caller.roles = {role: name for role, name in roles.items() if role != "context"}
            return False
        if "context" in roles and not idle:
            self._let_the_queries_ask()
        return idle

    def _moved_by(self, given, name):
        """Whether the output moves where one of the sequences that are given is another one."""
        query, others = self.x.clone(), given | {name: given[name].flip(0)}
        return not torch.equal(*(self.call(self.module, query, **inputs)[0] for inputs in (given, others)))

    def _let_the_queries_ask(self):
        """forward(x, latents): where outputs are as many as the latents, those are the queries and x is the context."""
        roles = self.caller.roles
        if roles["context"] == self.caller.by_name.get("context") or self._answers_each_query():
            return
        self.caller.roles = {"x": roles["context"], "context": roles["x"]}
        if not self._answers_each_query():
            self.caller.roles = roles

    def _answers_each_query(self):
        try:
            return bool(self.call(self.module, self.draw(2), self.draw(self.n))[0].numel())
        except Exception:
            return False

    def _see_what_call_uses(self, other):
        """A call that drops the value makes a context of the keys; one that drops both makes self-attention of it."""
        caller = self.caller
        reached = self._handed_in()
        caller.hands_mask = "mask" in reached
        try:
            given = {"key": other, "value": self.draw(self.n)}
            idle = {name: not self._moved_by(given, name) for name in given}
        except Exception:
            return
        if not idle["value"] or "value" in reached:
            return
        if idle["key"]:
            caller.roles, caller.ignored = {"x": "query"}, "key" if "key" in reached else None
        else:
            caller.roles = {"x": "query", "context": "key"}

    def _handed_in(self):
        named = {name: self.draw(self.n) for name in ("query", "key", "value")}
        keys = self.causal_mask[:, -2:-1].repeat(1, self.n, 1)
        for masks in ({"mask": self.causal_mask}, {"mask": keys}, {}):  # it may refuse one of pairs, or any
            try:
                return handed_in(self.module, self._call_itself, **named, **masks)
            except Exception:
                continue
        return set()

    def _call_itself(self, module, query, key, value, mask=None):
        self.caller(module, query, key, value, {"mask": mask})

    def _any_mask(self):
        """Where no form of a mask that is insisted on does what it should: the first that runs."""
        if self._runnable:
            self.caller.layout, self.caller.roles, self.caller.neutral = self._runnable
        return self._runnable is not None

    def _blocks_what_it_should(self, form):
        """Whether a causal mask (or, for a mask of keys, one without the last key) in this form does what it says."""
        mask = torch.ones(self.n, self.n, dtype=torch.bool)
        if form.shape in KEYS:
            mask[:, -1] = False
        else:
            mask = mask.tril()
        try:
            self.output, self.spread = self.run(self.x), 1.0
            reach = self.influence(self.mask(form, mask.expand(self.n, -1, -1)))
        except Exception:
            return False
        return torch.equal(reach & self.others, mask & self.others)

    @property
    def masks(self):
        return self.caller.masks or (["attention_mask", "attn_mask", "mask"] if self.caller.swallows else [])

    def draw(self, n, batch=None):
        return torch.randn(batch or self.n, n, self.embed_dim, dtype=self.dtype)

    def run(self, x, masks=None, module=None):
        return self.call(module or self.module, x.clone(), masks=masks)[0]

    def call(self, module, query, key=None, value=None, masks=None):
        masks = masks and {name: mask.clone() for name, mask in masks.items()}  # some change them
        return self.caller(self.fresh(module), query, key, value, masks)

    def fresh(self, module):
        """What one call leaves in the module is not for the next one to find."""
        return copied(module) if self.stateful and module is self.module else module

    def mask(self, form, mask, dtype=None):
        """Return the arguments that hand in `mask`, boolean (b, n_q, n_k), in this form."""
        return form(mask, self.num_heads, dtype or self.dtype)

    @property
    def causal_mask(self):
        """True where a token may see another one if none sees a later one, (b, n_q, n_k)."""
        return torch.ones(self.n, self.n, self.n, dtype=torch.bool).tril()

    @property
    def others(self):
        """True but for a token itself, (n_q, n_k)."""
        return ~torch.eye(self.n, dtype=torch.bool)

    @functools.cached_property
    def tolerance(self):
        """What counts as no change, relative to the spread of the outputs: what rounding leaves."""
        seen = self.watch(self.x[:2], need=False)
        return 1e-5 if seen.single or self.dtype == torch.float32 else 1e-9

    def change(self, a, b):
        """Return the largest difference of each token's outputs, relative to their spread, (b, n).

        NaN on both sides counts as no change, on one side as infinite.
        """
        a, b = a.detach(), b.detach()
        difference = torch.where((a.isnan() & b.isnan()) | (a == b), 0.0, (a - b).abs())
        return difference.nan_to_num(nan=torch.inf).amax(-1) / self.spread

    def moved(self, a, b):
        return self.change(a, b) > self.tolerance

    def watch(self, x, *more, masks=None, alone=False, need=True, module=None, sizes=False):
        """Run with a Watch; x is the query, `more` key and value."""
        inputs = [x.clone() for x in (x, *more)]
        query, key, value = inputs if more else inputs * 3
        module = self.fresh(module or self.module)
        watch = Watch(module, query.shape[1], key.shape[1], alone, sizes)
        with plain_attention(), watch:
            for sequence in inputs:
                watch.start(sequence)
            output, watch.result = self.caller(module, query, key, value, masks)
            watch.output = output.detach()
        self.convolves |= watch.convolves
        if need and not watch.uses:
            raise CouldNotTell("no weights were seen to multiply values")
        return watch

    def influence(self, masks=None, run=None):
        """Return (n_q, n_k), boolean: does the output at i move when token j is changed?"""
        run = run or (lambda x: self.run(x, masks))
        alike = self.x[:1].repeat(self.n, 1, 1)
        changed = alike.clone()
        each = torch.arange(self.n)
        turned = each.roll(2)  # sequence i has token i + 2 changed: a mask read along the batch must not fit
        changed[turned, each] = self.draw(self.n)[0]
        moved = self.moved(run(alike), run(changed))
        if not moved.all():  # a saturated softmax hides tokens: make all of them small
            before, after = run(0.03 * alike), run(0.03 * changed)
            moved |= self.change(before, after) / 0.03 > self.tolerance
        return moved[turned].T

    @functools.cached_property
    def steady(self):
        """Whether sequences are independent of each other and of chance: else no poke says anything."""
        changed = self.x.clone()
        changed[0] = self.draw(self.n)[0]
        return not self.moved(self.run(changed), self.output)[1:].any()

    @functools.cached_property
    def repeats(self):
        """Whether equal inputs give equal weights: rows may come in an order of chance, which no output shows."""
        seen = [[use.weights for use in self.watch(self.x[:2], need=False).uses] for _ in range(2)]
        pairs = itertools.zip_longest(*seen, fillvalue=torch.empty(0))
        return all(a.shape == b.shape and torch.allclose(a, b, atol=1e-6, equal_nan=True) for a, b in pairs)

    def must_repeat(self):
        if not self.repeats:
            raise CouldNotTell("the same inputs twice: the weights are others, or in another order")

    @functools.cached_property
    def reach(self):
        """The influence without any mask."""
        return self.influence()

    @functools.cached_property
    def causal(self):
        """Whether it masks the future by itself: declared, or no token is ever moved by a later one."""
        if self.declared.causal is not None:
            return self.declared.causal
        return not self.reach.triu(1).any() and bool(self.reach.tril(-1).any())

    @functools.cached_property
    def pairs(self):
        """The Attempt at a causal mask."""
        mask = torch.ones(self.n, self.n, dtype=torch.bool).tril()
        attempt = self._best(PAIRS, mask.expand(self.n, -1, -1), self._try_pairs)
        if attempt.form is None and attempt.nan:  # a module that hides each token from itself leaves the first one none
            mask[0, 1] = True
            attempt = best_attempt(self, PAIRS, mask.expand(self.n, -1, -1), self._try_pairs)
        return attempt

    @functools.cached_property
    def causal_if_masked(self):
        """ "" unless it masks the future as soon as it is handed a mask, even one that allows everything.

        "read", or "unread" where what the mask says is not: the inverted one gives the same output.
        """
        form = (self.pairs if self.pairs.works else self.padding).form
        if self.causal or self.caller.neutral or form is None or not self.reach.triu(1).any():
            return ""
        every = torch.ones(self.n, self.n, self.n, dtype=torch.bool)
        if not torch.equal(self.influence(self.mask(form, every)) & self.others, self.reach.tril() & self.others):
            return ""
        one, inverted = (self.run(self.x, self.mask(form, mask)) for mask in (every.tril(), ~every.tril()))
        return "read" if self.moved(one, inverted).any() else "unread"

    @functools.cached_property
    def unread_masks(self):
        """Arguments for a mask that no form of it moves."""
        return unread_masks(self) if self.steady and self.caller.own is None else []

    @property
    def takes_keys_only(self):
        """A mask of keys works, one of pairs does not: no fault, unless (b, 1, n_q, n_k) is taken without a word."""
        form = self.padding.form
        if self.pairs.works or not self.padding.works or form.shape not in KEYS:
            return False
        if self.pairs.form is not None and self.pairs.form.name != form.name:
            return self._takes_keys(self.pairs.form.name)
        return form.shape != "(b, 1, 1, n_k)" or form._replace(shape="(b, 1, n_q, n_k)") not in self.pairs.effects

    def _takes_keys(self, name):
        """Whether this one argument, beside another one for padding, takes a mask of keys."""
        form = self._padding([name]).form
        return form is not None and form.shape in ("(b, n_k)", "(b, 1, n_k)") and self._padding([name]).works

    @property
    def masked(self):
        """The Attempts that count."""
        if self.causal or self.takes_keys_only:
            return (self.padding,)
        return (self.pairs,) if self.pairs.works else (self.pairs, self.padding)

    @functools.cached_property
    def padding(self):
        """The Attempt at a padding mask: sequences of several lengths, at the end or (causal) at the front."""
        return self._padding(self.masks)

    def _padding(self, names):
        padded = 1 + torch.arange(self.n) % 3
        real = torch.arange(self.n) < self.n - padded[:, None]  # (b, n)
        if self.causal:
            real = real.flip(1)
        return self._best(PADDING, real[:, None].expand(-1, self.n, -1), self._try_padding, names)

    def _best(self, shapes, mask, measure, names=None):
        """Return the best Attempt; where every mask raises in float64, perhaps one in float32, and all from there on.

        Some modules compare the scores with a bound in float32 as soon as there is a mask.
        """
        attempt = best_attempt(self, shapes, mask, measure, names)
        if attempt.accepted or not attempt.error or self.dtype == torch.float32 or self.caller.neutral:
            return attempt
        before = dict(vars(self))
        for name in ("tolerance", "reach", "steady", "repeats", "unread_masks"):
            vars(self).pop(name, None)
        self.dtype, self.module, self.x = torch.float32, copied(self.module).float(), self.x.float()
        self.output = self.run(self.x)
        single = best_attempt(self, shapes, mask, measure, names)
        if single.accepted:
            return single
        vars(self).clear()
        vars(self).update(before)
        return attempt

    @property
    def own_mask(self):
        """The mask that is named after the tokens themselves, as tgt_mask is, or ""."""
        return next((name for name in self.caller.masks if _has_word(name, _ITSELF)), "")

    @functools.cached_property
    def exchanged_mask(self):
        """The form of a mask named after what is read, where the tokens follow it and not their own; or None."""
        caller, attempt = self.caller, self.pairs
        reads = any(_has_word(name, _MEMORY) for name in caller.held or {})
        if not reads or not self.own_mask or any(_has_word(name, _MEMORY) for name in caller.roles.values()):
            return None
        if attempt.error and not attempt.accepted and self.masks_for_memory:
            attempt = best_attempt(self, PAIRS, self.causal_mask, self._try_pairs, self.masks_for_memory)
        return attempt.form if attempt.works and attempt.form.name in self.masks_for_memory else None

    def turned(self, form):
        """Whether a mask of pairs is read with rows and columns exchanged; the causal one alone cannot tell."""
        itself = torch.eye(self.n, dtype=torch.bool)
        mask = itself | itself.roll(1, 1)
        return torch.equal(self.influence(self.mask(form, mask.expand(self.n, -1, -1))) | itself, mask.mT)

    def reads_one_for_all(self, form):
        """Whether a mask (b, n_k) is taken for (n_q, n_k): its last row says something of all sequences.

        Of an argument whose name says padding that is a fault; of any other it may be what is meant.
        """
        if form.shape != "(b, n_k)" or "pad" in form.name.lower():
            return False
        mask = torch.ones(self.n, self.n, self.n, dtype=torch.bool)
        before = self.run(self.x, self.mask(form, mask))
        mask[-1, :, 1:] = False
        return bool(self.moved(self.run(self.x, self.mask(form, mask)), before)[:-1].any())

    def _try_pairs(self, masks, mask):
        """Return how many pairs of tokens a mask of pairs forbids and still lets through, and the other way round."""
        reach = self.influence(masks)
        leaks, lost = reach & ~mask[0] & self.others, self.reach & mask[0] & ~reach & self.others
        return int(leaks.sum()), int(lost.sum())

    def _try_padding(self, masks, mask):
        real = mask[:, 0]  # (b, n)
        before = self.run(self.x, masks)
        changed = torch.where(real[..., None], self.x, self.draw(self.n))
        leaks = self.moved(self.run(changed, masks), before) & real
        lost, each = 0, torch.arange(self.n)
        for token in (real.long().argmax(-1), self.n - 1 - real.flip(1).long().argmax(-1)):  # the first, the last one
            changed = self.x.clone()
            changed[each, token] += torch.randn(self.embed_dim, dtype=self.dtype)
            seen = self.reach[:, token].T & real
            seen[each, token] = False
            lost += int((seen & ~self.moved(self.run(changed, masks), before)).sum())
        return int(leaks.sum()), lost

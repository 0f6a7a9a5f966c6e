"""Write docs/book/symptoms.md: what one sees, which bugs of the clinic show it, and where each of them is told.

python -m tools.symptoms

By hand are the words of a symptom, the docstring of its measure, and those that tell its suspects apart, `APART`. Its
suspects are those modules of CASES, DECODERS and RELATIVES for which the measure strikes.
"""

import inspect
import re

import torch
import torch.nn.functional as F

from attncourse import EXERCISES
from attncourse.clinic import CASES, DECODERS, Decoder, PaddingReadAsQueries, cured, fresh
from attncourse.clinic.ward import sick_lines
from attnlib.torch_layers import KVCache

from .numbering import ORDER, ROOT, exercises
from .relatives import RELATIVES, TOLD
from .series import find_notebook

TARGET = ROOT / "docs" / "book" / "symptoms.md"
BUGS = CASES | DECODERS | RELATIVES
OF_EXERCISES = ("case_33", "case_34", "case_35")  # exercises ask for them, so they stand without their names
BY_CHANCE = "case_16"  # no two calls of it are alike, so every comparison of two strikes
CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()  # True = may attend
FULL = torch.arange(5) < torch.tensor([5, 4, 3, 2, 1])[:, None]  # (b, n): no padding is at the front


def tokens():
    return torch.randn(5, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)


def takes_mask(module):
    return len(inspect.signature(module.forward).parameters) > 3


def call(module, x, mask=None):
    """Return output and weights of self-attention."""
    return module(x.clone(), None, None, mask) if takes_mask(module) else module(x.clone())


def padding_for(module):
    """Return the mask of FULL in the form that a module takes."""
    return FULL if isinstance(module, PaddingReadAsQueries) else FULL[:, None].expand(5, 5, 5)


def differ(a, b):
    return bool((a - b).abs().max() > 1e-4)


def in_chunks(module, x, sizes):
    cache = KVCache()
    return torch.cat([module(part, cache)[0] for part in x.split(sizes, dim=1)], 1)


# --- a measure of each symptom, which strikes or does not


def future_moves_the_past(module):
    """The loss is too good. It falls below what the text allows, or a model copies the answer and cannot write: behind
    a causal mask, a later token moves an earlier output.
    """
    x = tokens()
    other = torch.cat([x[:, :4], -x[:, 4:]], 1)
    return differ(call(module, x, CAUSAL)[0][:, :4], call(module, other, CAUSAL)[0][:, :4])


def padding_moves_tokens(module):
    """Padding leaks. What stands in padded tokens moves the outputs of real ones."""
    x, mask = tokens(), padding_for(module)
    y, z = (call(module, given, mask)[0] for given in (x, torch.where(FULL[..., None], x, -x)))
    return takes_mask(module) and differ(y[FULL], z[FULL])


def gives_nan(module):
    """NaN. In the output, in the loss, or in all gradients after a finite loss: where a query may look nowhere, as in a
    row of padding alone, or where scores are large.
    """
    nowhere = torch.zeros(5, 5, dtype=torch.bool)
    with torch.enable_grad():
        y = call(module, tokens(), nowhere)[0]
        gradients = torch.autograd.grad(y.sum(), list(module.parameters()), allow_unused=True)
    found = (y, call(module, 1e3 * tokens())[0], *(gradient for gradient in gradients if gradient is not None))
    return any(bool(one.isnan().any()) for one in found)


def neighbours_matter(module):
    """The output changes with the neighbour in the batch. The same text gives something else alone than beside other
    texts: `batch_first` is missing, a padding mask reaches another text, or a cache does.
    """
    x = tokens()
    if isinstance(module, Decoder):
        return differ(in_chunks(module, x, [3, 1, 1])[1:2], in_chunks(module, x[1:2], [3, 1, 1]))
    mask = padding_for(module)
    return differ(call(module, x)[0][1:2], call(module, x[1:2])[0]) or (
        takes_mask(module) and differ(call(module, x, mask)[0][1, :4], call(module, x[1:2], mask[1:2])[0][0, :4])
    )


def cache_differs(module):
    """Right in one pass, wrong with a cache. Token by token, or in chunks, the outputs are others than those of the
    whole text at once.
    """
    if not isinstance(module, Decoder):
        return False
    x = tokens()
    return any(differ(in_chunks(module, x, sizes), module(x)[0]) for sizes in ([3, 1, 1], [3, 2]))


def fused_differs(module):
    """Eager and sdpa differ. One text, one module: without a mask, scores and softmax written out (`eager`) and
    `F.scaled_dot_product_attention` agree. With the same mask (for sdpa True = may attend) they do not.
    """
    if not takes_mask(module):
        return False
    x, eager = tokens(), []
    q, k, v = module.project(x, x, x)
    for mask in (None, CAUSAL):
        fused = module.W_O(module.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))
        eager.append(differ(call(module, x, mask)[0], fused))
    return eager == [False, True]


def second_call_differs(module):
    """The second call gives something else. The same tensor in eval mode, twice."""
    x = tokens()
    return differ(module(x)[0], module(x)[0])


def mask_of_true_matters(module):
    """It answers otherwise when asked otherwise. A mask that allows everything changes the output."""
    x, every = tokens(), torch.ones(5, 5, dtype=torch.bool)
    return takes_mask(module) and differ(call(module, x)[0], call(module, x, every)[0])


def sharper(module):
    """Return how much more weight the largest key of a row gets than in a healthy module of the same weights."""
    if not takes_mask(module):
        return 0.0
    try:
        fixed, x = cured(module), tokens()
    except ValueError:
        return 0.0  # its matrices have other sizes
    every = torch.ones(5, 5, dtype=torch.bool)
    sick, well = (torch.stack([call(one, x, mask)[1] for mask in (None, every)]) for one in (module, fixed))
    return float(((sick / sick.sum(-1, keepdim=True)).amax(-1) - well.amax(-1)).mean())


def pales(module):
    """Weights are too pale. All keys get nearly the same: the largest weight of a row is smaller than in a healthy
    module with the same matrices.
    """
    return sharper(module) < -0.015


def sharpens(module):
    """Weights are too sharp. One key takes nearly all: the largest weight of a row is larger than in a healthy
    module with the same matrices.
    """
    return sharper(module) > 0.015


def rows_do_not_sum_to_one(module):
    """A row of weights does not sum to 1. Behind a causal mask, where every query may attend to something."""
    return differ(call(module, tokens(), CAUSAL)[1].sum(-1), torch.ones(()))


def tokens_are_mixed(module):
    """Tokens are mixed. Other tokens in another order give other outputs, and not the same ones in that order."""
    x, order = tokens(), torch.tensor([2, 0, 4, 1, 3])
    return not isinstance(module, Decoder) and differ(call(module, x[:, order])[0], call(module, x)[0][:, order])


def parameters_stay(module):
    """Parameters do not learn. Some have no gradient, or one of zeros."""
    with torch.enable_grad():
        y, _ = call(module, tokens())
        gradients = torch.autograd.grad(y.square().sum(), list(module.parameters()), allow_unused=True)
    return any(gradient is None or not gradient.any() for gradient in gradients)


def head_sees_a_slice(module):
    """A head sees a slice of the features. The weights of the first head do not move with the other features of a
    token.
    """
    x = tokens()
    other = torch.cat([x[..., : module.d_k], -x[..., module.d_k :]], -1)
    return not differ(call(module, x)[1][:, 0], call(module, other)[1][:, 0])


def heads_are_alike(module):
    """Heads are alike. Their maps are the same."""
    _, weights = call(module, tokens())
    return not differ(weights[:, :1], weights)


def two_texts_fail(module):
    """Right alone, wrong between two texts. With a query of 2 tokens and a context of 5 it fails, the output has
    another shape, or the keys move nothing.
    """
    if isinstance(module, Decoder):
        return False
    query, key, value = tokens()[:, :2], tokens(), tokens().flip(0)
    try:
        y, weights = module(query.clone(), key.clone(), value.clone())
        z, _ = module(query.clone(), -key, value.clone())
    except RuntimeError:
        return True
    return y.shape[1] != 2 or weights.shape[-2:] != (2, 5) or not differ(y, z)


def looks_where_it_may_not(module):
    """A query that may look nowhere looks somewhere. A fully masked row has weights."""
    nowhere = torch.zeros(5, 5, dtype=torch.bool)
    weights = call(module, tokens(), nowhere)[1] if takes_mask(module) else torch.zeros(())
    return differ(weights.nan_to_num(), torch.zeros(()))


def half_fails(module):
    """Only half precision fails. An error or NaN in float16, and none in float32."""
    if not takes_mask(module):
        return False
    try:
        return bool(module.half()(tokens().half(), None, None, CAUSAL.expand(5, 5, 5))[0].isnan().any())
    except RuntimeError:
        return True


SYMPTOMS = (
    future_moves_the_past,
    gives_nan,
    neighbours_matter,
    cache_differs,
    fused_differs,
    padding_moves_tokens,
    second_call_differs,
    mask_of_true_matters,
    pales,
    sharpens,
    rows_do_not_sum_to_one,
    tokens_are_mixed,
    parameters_stay,
    head_sees_a_slice,
    heads_are_alike,
    two_texts_fail,
    looks_where_it_may_not,
    half_fails,
)


# What tells suspects of one symptom apart; tests/test_symptoms.py holds each to it. "Hidden" is what a mask forbids.
APART = {
    future_moves_the_past: {
        "hidden_scores_zero": "all hidden keys of a row have the same weight; without a mask nothing is wrong",
        "case_01": "allowed keys have weight 0",
        "case_02": "weights are the same with a mask and without",
        "case_03": "hidden keys have weight 0, and rows sum to less than 1",
        "mask_added_as_numbers": "hidden keys keep their weights, 1/e as large beside an allowed one",
        "case_35": "hidden keys have weight 0 in the first head alone",
        "case_33": "all hidden keys of a row have the same weight; without a mask weights are too pale, too",
        "case_07": "hidden keys have weight 0, and columns sum to 1",
        "case_19": "weights look right; they do not follow when tokens change places",
        "case_20": "weights look right, and follow when tokens change places; outputs do not",
    },
    gives_nan: {
        "case_14": "in the output, where a query may look nowhere",
        "case_22": "in the output, where scores are large",
        "minus_infinity_added": "in gradients alone: output and loss are finite, `nan_to_num` is there",
    },
    neighbours_matter: {
        "batch_first_forgotten": "without any mask; alone, each token moves its own output and no other",
        "case_11": "with a padding mask only",
        "past_of_first_sequence": "with a cache only; the first text is right",
        "case_05": "without any mask; alone, every text gives the same output",
    },
    cache_differs: {
        "places_restart": "from the second token on; weights on all keys, and token by token position 0 alone matters",
        "places_one_ahead": "from the second token on; token by token, position 1 does not matter",
        "chunk_upper_left": "from the second token on; a token that comes alone has weight on the first key only",
        "keys_rotated_twice": "token by token the first two are right, and the third is not",
        "past_of_first_sequence": "with a batch of 2 or more; the first text is right",
    },
    fused_differs: {
        "case_01": "they agree once sdpa gets `~mask`: one takes True for hidden, as `key_padding_mask` does",
        "case_02": "eager with the mask is sdpa without",
        "case_03": "rows of eager's weights sum to less than 1",
        "case_29": "they agree once sdpa gets `scale=1`",
        "hidden_scores_zero": "in eager, all hidden keys of a row have the same weight",
        "mask_added_as_numbers": "they agree once sdpa gets `mask.float()`, which it adds",
        "case_35": "the first head agrees",
    },
    pales: {
        "case_06": "with one head nothing is wrong",
        "case_33": "with one head, too; hidden keys have weight",
    },
    sharpens: {
        "case_21": "where there are as many heads as features in a head, nothing is wrong",
        "case_23": "with any number of heads, and without a mask, too",
        "case_29": "with a mask only",
    },
    rows_do_not_sum_to_one: {
        "case_03": "with a mask only; sums are less than 1",
        "case_07": "columns sum to 1",
        "case_25": "without a mask, too; all weights are multiples of 0.1",
        "case_01": "all rows sum to 1 but the last, which may attend to all and attends to none",
    },
    tokens_are_mixed: {
        "case_19": "weights do not follow either",
        "case_20": "weights follow, outputs do not",
    },
}


def rank(name):
    """Return how far behind others a bug stands: the first place that APART gives it."""
    return min(([*told].index(name) for told in APART.values() if name in told), default=99)


def suspects(strikes):
    """Return the names of the bugs for which a symptom strikes, as APART orders them.

    What changes by chance has no other symptom than that.
    """
    with torch.no_grad():
        found = [name for name, case in BUGS.items() if strikes(fresh(case.module).eval())]
    found = [name for name in found if name != BY_CHANCE or strikes is second_call_differs]
    order = [*APART.get(strikes, ())]
    return sorted(found, key=lambda name: order.index(name) if name in order else len(order) + rank(name))


# --- the page


def anchor(heading):
    """Return the address of a heading in the book: letters and digits, without formulas and without a number first."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\$.*?\$", "", heading).lower()).strip("-").lstrip("0123456789-")


def file_of(notebook):
    """Return the way from the page to a notebook in the repository; the book puts its own in its place."""
    return f"../../notebooks/{notebook.built.name}"


def place(slug, target):
    notebook = find_notebook(slug)
    return f"[{notebook.number}]({file_of(notebook)}#{target})"


def places():
    """Return {number of a case: links to the sections that tell it}; "" stands for the bugs of a cache."""
    found = {"": [place("one_token_at_a_time", "break-it-bugs-that-write")]}
    for slug in ("bug_clinic", "casebook"):
        notebook = find_notebook(slug)
        for heading in re.findall(r"^# ### (.*\b[Cc]ases? \d.*)", notebook.source.read_text("utf-8"), re.MULTILINE):
            link = f"[{notebook.number} · {heading.partition(' · ')[0]}]({file_of(notebook)}#{anchor(heading)})"
            for number in re.findall(r"\d+", heading.partition(" · ")[0]):
                found.setdefault(number, []).append(link)
    return found


def threads():
    """Return {number of a case: links to public threads in which it was met}."""
    found = {}
    rows = re.findall(r"^\| .+ \| (\[.+) \| ([\d, ]+) \|$", (ROOT / "REFERENCES.md").read_text("utf-8"), re.MULTILINE)
    for links, numbers in rows:
        for number in numbers.split(", "):
            found[number] = f"{found[number]}, {links}" if number in found else links
    return found


def link_telling(name, what):
    """Return a link to an exercise and the mistake that its check names, or to a heading of a notebook."""
    if name not in EXERCISES:
        return place(name, anchor(what)).replace("](", f" · {what.rpartition(' · ')[2]}](")
    (slug,) = (slug for slug in ORDER if name in exercises(slug))
    number, words = exercises(slug)[name]
    target = f"{file_of(find_notebook(slug))}#{anchor(f'Exercise {number} · {words}')}"
    return f"exercise [{number}]({target}), whose check names it `{what}`"


def title(name):
    return BUGS[name].bug.replace("_", " ").capitalize().replace("nan", "NaN").replace("Nan", "NaN")


def probes(names):
    return ", ".join(f"`{name}`" for name in names)


def link(name):
    return f"[{title(name)}](#{anchor(title(name))})"


def list_suspects(strikes):
    """Return the part of the page about one symptom: the docstring of its measure, and its suspects."""
    what, _, words = " ".join(strikes.__doc__.split()).partition(". ")
    apart = APART.get(strikes, {})
    names = [
        f"{link(name)} ({probes(BUGS[name].caught_by)}){f': {apart[name]}' if name in apart else ''}"
        for name in suspects(strikes)
    ]
    return "\n- ".join([f"**{what}.** {words}\n", *names]) + "\n"


def about(name, where, met):
    """Return the part of the page about one bug."""
    number = {"chunk_upper_left": "15"}.get(name, name[5:].lstrip("0") if name in CASES else "")
    kind = "RELATIVES" if name in RELATIVES else "DECODERS"
    runs = f'`twins("{name}")`' if name in CASES else f'`fresh({kind}["{name}"].module)`'
    read = [*(where[""] if name in DECODERS else ()), *(where.get(number, ()) if number else ())]
    if name in RELATIVES:
        read = [link_telling(*TOLD[name])]
    if name in OF_EXERCISES:
        runs, read = "", [f"the exercises of {place('bug_clinic', 'exercises')}"]
    lines = [
        f"`diagnose` says {probes(BUGS[name].caught_by)}.",
        f"It runs: {runs}." if runs else "",
        f"Read {', '.join(read)}.",
    ]
    lines += [f"Met in {met[number]}."] if number in met else []
    if name in RELATIVES:
        lines.insert(0, " ".join(BUGS[name].module.__doc__.split()))
    diff = sick_lines(BUGS[name].module)
    return f"### {title(name)}\n\n{' '.join(filter(None, lines))}\n\n```diff\n{diff}\n```\n"


def page():
    """Return the page."""
    where, met, signatures = places(), threads(), {}
    for name, case in BUGS.items():
        signatures.setdefault(case.caught_by, []).append(name)
    alone = sum(len(names) == 1 for names in signatures.values())
    rows = [
        f"| {probes(found)} | {', '.join(map(link, sorted(names, key=rank)))} |"
        for found, names in sorted(signatures.items())
    ]
    return "\n".join(
        [
            "# Cases by symptom\n",
            "Something runs, has the right shape, and is wrong. Start from what you see. Each suspect was measured: it "
            f"is a module of the bug clinic, {place('bug_clinic', 'the-probe-kit')}, that shows this symptom, and a "
            "healthy module does not. In brackets stands what "
            "`diagnose` says of it. Of each you find below what differs from a healthy module (+ is sick), how it "
            "runs, where it is told, and where it was met. `from attncourse.clinic import twins, fresh, DECODERS` "
            "brings them, and `from tools.relatives import RELATIVES` those that are no cases of the clinic.\n",
            "Written by `python -m tools.symptoms`; `tests/test_symptoms.py` sees that it is up to date.\n",
            "## What do you see?\n",
            *map(list_suspects, SYMPTOMS),
            "## What does diagnose say?\n",
            "[diagnose](../diagnose.md) examines your module by what it does: `python -m attnlib.diagnose "
            f"my_file:MyClass --embed-dim 64`. The {len(BUGS)} bugs have {len(signatures)} signatures; {alone} bugs "
            "have one of their own; what tells the others apart stands in the lists above.\n",
            "| it finds | suspects |\n|---|---|",
            *rows,
            "\n## The suspects\n",
            *(about(name, where, met) for name in sorted(BUGS, key=title)),
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8", newline="\n")

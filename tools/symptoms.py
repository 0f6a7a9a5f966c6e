"""Write docs/book/symptoms.md: what one sees, which bugs of the clinic show it, and where each of them is told.

python -m tools.symptoms

By hand are the words of a symptom alone, the docstring of its measure. Its suspects are those modules of CASES and
DECODERS for which the measure strikes.
"""

import re

import torch

from attncourse.clinic import CASES, DECODERS, Decoder, PaddingReadAsQueries, cured, fresh
from attncourse.clinic.ward import sick_lines
from attnlib.torch_layers import KVCache

from .numbering import ROOT
from .series import find_notebook

TARGET = ROOT / "docs" / "book" / "symptoms.md"
BUGS = CASES | DECODERS
OF_EXERCISES = ("case_33", "case_34", "case_35")  # exercises ask for them, so they stand without their names
BY_CHANCE = "case_16"  # no two calls of it are alike, so every comparison of two strikes
CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()  # True = may attend
FULL = torch.arange(5) < torch.tensor([5, 4, 3, 2, 1])[:, None]  # (b, n): no padding is at the front


def tokens():
    return torch.randn(5, 5, 24, generator=torch.Generator().manual_seed(0))  # (b, n, d)


def call(module, x, mask=None):
    """Return output and weights of self-attention."""
    return module(x.clone()) if isinstance(module, Decoder) else module(x.clone(), None, None, mask)


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
    """The loss is too good. It falls below what the text allows, or a model names a token that it must not see yet:
    behind a causal mask, a later token moves an earlier output.
    """
    x = tokens()
    other = torch.cat([x[:, :4], -x[:, 4:]], 1)
    return differ(call(module, x, CAUSAL)[0][:, :4], call(module, other, CAUSAL)[0][:, :4])


def padding_moves_tokens(module):
    """Padding matters. What stands in padded tokens moves the outputs of real ones."""
    x, mask = tokens(), padding_for(module)
    y, z = (call(module, given, mask)[0] for given in (x, torch.where(FULL[..., None], x, -x)))
    return not isinstance(module, Decoder) and differ(y[FULL], z[FULL])


def gives_nan(module):
    """NaN. In the output, in the loss, or in all gradients at once: where a query may look nowhere, or where scores
    are large.
    """
    nowhere = torch.zeros(5, 5, dtype=torch.bool)
    return any(bool(y.isnan().any()) for y in (call(module, tokens(), nowhere)[0], call(module, 1e3 * tokens())[0]))


def neighbours_matter(module):
    """It differs by its neighbour in the batch. The same text gives something else alone than beside other texts."""
    x = tokens()
    if isinstance(module, Decoder):
        return differ(in_chunks(module, x, [3, 1, 1])[1:2], in_chunks(module, x[1:2], [3, 1, 1]))
    mask = padding_for(module)
    return differ(call(module, x)[0][1:2], call(module, x[1:2])[0]) or differ(
        call(module, x, mask)[0][1, :4], call(module, x[1:2], mask[1:2])[0][0, :4]
    )


def cache_differs(module):
    """Right in one pass, wrong with a cache. Token by token, or in chunks, the outputs are others than those of the
    whole text at once.
    """
    if not isinstance(module, Decoder):
        return False
    x = tokens()
    return any(differ(in_chunks(module, x, sizes), module(x)[0]) for sizes in ([3, 1, 1], [3, 2]))


def second_call_differs(module):
    """The second call gives something else. The same tensor in eval mode, twice."""
    x = tokens()
    mask = () if isinstance(module, Decoder) else (None, None, None)
    return differ(module(x, *mask)[0], module(x, *mask)[0])


def mask_of_true_matters(module):
    """It answers otherwise when asked otherwise. A mask that allows everything changes the output."""
    x, every = tokens(), torch.ones(5, 5, dtype=torch.bool)
    return not isinstance(module, Decoder) and differ(call(module, x)[0], call(module, x, every)[0])


def sharper(module):
    """Return how much more weight the largest key of a row gets than in a healthy module of the same weights."""
    if isinstance(module, Decoder):
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
    mask = None if isinstance(module, Decoder) else CAUSAL
    return differ(call(module, tokens(), mask)[1].sum(-1), torch.ones(()))


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
    weights = torch.zeros(()) if isinstance(module, Decoder) else call(module, tokens(), nowhere)[1]
    return differ(weights.nan_to_num(), torch.zeros(()))


def half_fails(module):
    """Only half precision fails. An error or NaN in float16, and none in float32."""
    if isinstance(module, Decoder):
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


def suspects(strikes):
    """Return the names of the bugs for which a symptom strikes; what changes by chance has no other than that."""
    with torch.no_grad():
        found = [name for name, case in BUGS.items() if strikes(fresh(case.module).eval())]
    return [name for name in found if name != BY_CHANCE or strikes is second_call_differs]


# --- the page


def anchor(heading):
    """Return the address of a heading in the book: letters and digits, without formulas and without a number first."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\$.*?\$", "", heading).lower()).strip("-").lstrip("0123456789-")


def place(slug, target):
    notebook = find_notebook(slug)
    return f"[{notebook.number}]({notebook.built.name}#{target})"


def places():
    """Return {number of a case: links to the sections that tell it}; "" stands for the bugs of a cache."""
    found = {"": [place("one_token_at_a_time", "break-it-bugs-that-write")]}
    for slug in ("bug_clinic", "casebook"):
        notebook = find_notebook(slug)
        for heading in re.findall(r"^# ### (.*\b[Cc]ases? \d.*)", notebook.source.read_text("utf-8"), re.MULTILINE):
            link = f"[{notebook.number} · {heading.partition(' · ')[0]}]({notebook.built.name}#{anchor(heading)})"
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


def title(name):
    return BUGS[name].bug.replace("_", " ").capitalize().replace("nan", "NaN").replace("Nan", "NaN")


def probes(names):
    return ", ".join(f"`{name}`" for name in names)


def link(name):
    return f"[{title(name)}](#{anchor(title(name))})"


def list_suspects(strikes):
    """Return the part of the page about one symptom: the docstring of its measure, and its suspects."""
    what, _, words = " ".join(strikes.__doc__.split()).partition(". ")
    names = [f"{link(name)}: {probes(BUGS[name].caught_by)}" for name in suspects(strikes)]
    return "\n- ".join([f"**{what}.** {words}\n", *names]) + "\n"


def about(name, where, met):
    """Return the part of the page about one bug."""
    number = {"chunk_upper_left": "15"}.get(name, name[5:].lstrip("0") if name in CASES else "")
    runs = f'`twins("{name}")`' if name in CASES else f'`fresh(DECODERS["{name}"].module)`'
    read = [*(where[""] if name in DECODERS else ()), *(where.get(number, ()) if number else ())]
    if name in OF_EXERCISES:
        runs, read = "", [f"the exercises of {place('bug_clinic', 'exercises')}"]
    lines = [
        f"`diagnose` says {probes(BUGS[name].caught_by)}.",
        f"It runs: {runs}." if runs else "",
        f"Read {', '.join(read)}.",
    ]
    lines += [f"Met in {met[number]}."] if number in met else []
    return f"### {title(name)}\n\n{' '.join(filter(None, lines))}\n\n```diff\n{sick_lines(name)}\n```\n"


def page():
    """Return the page."""
    where, met, signatures = places(), threads(), {}
    for name, case in BUGS.items():
        signatures.setdefault(case.caught_by, []).append(name)
    alone = sum(len(names) == 1 for names in signatures.values())
    rows = [f"| {probes(found)} | {', '.join(map(link, names))} |" for found, names in sorted(signatures.items())]
    return "\n".join(
        [
            "# Cases by symptom\n",
            "Something runs, has the right shape, and is wrong. Start from what you see. Each suspect was measured: it "
            f"is a module of the bug clinic, {place('bug_clinic', 'the-probe-kit')}, that shows this symptom, and a "
            "healthy module does not. Of each you find below what differs from a healthy module (+ is sick), how it "
            "runs, where it is told, and where it was met. `from attncourse.clinic import twins, fresh, DECODERS` "
            "brings them.\n",
            "Written by `python -m tools.symptoms`; `tests/test_symptoms.py` sees that it is up to date.\n",
            "## What do you see?\n",
            *map(list_suspects, SYMPTOMS),
            "## What does diagnose say?\n",
            "[diagnose](diagnose.md) examines your module by what it does: `python -m attnlib.diagnose "
            f"my_file:MyClass --embed-dim 64`. The {len(BUGS)} bugs have {len(signatures)} signatures; {alone} bugs "
            "have one of their own.\n",
            "| it finds | suspects |\n|---|---|",
            *rows,
            "\n## The suspects\n",
            *(about(name, where, met) for name in sorted(BUGS, key=title)),
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8", newline="\n")

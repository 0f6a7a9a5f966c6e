"""What good modules do on purpose is no fault; what a call hands over and nobody reads is seen; bad input is named."""

import re
import subprocess
import sys

import pytest
import torch
from test_diagnose import caught
from torch import nn
from torch.nn.utils import prune

from attncourse.clinic import Attention
from attnlib.diagnose import diagnose
from tests.diagnose_corpus import newer_styles, other_styles, self_attention

SIZES = {"embed_dim": 32, "num_heads": 4}


@pytest.mark.parametrize(
    "module, measured",
    [
        (newer_styles.Sink(), "as with a sink"),
        (newer_styles.Sink(start=5.0), "as with a sink"),
        (newer_styles.PlusOne(), "as in softmax plus one"),
        (newer_styles.Differential(), "as in differential attention"),
        (newer_styles.Differential(fixed=True), "as in differential attention"),
    ],
)
def test_rows_below_1_on_purpose_do_not_silence_other_probes(module, measured):
    diagnosis = diagnose(module, **SIZES)
    assert diagnosis["row sums"].verdict == "beware" and measured in diagnosis["row sums"].measured
    assert not any("first see to" in finding.measured for finding in diagnosis)
    assert diagnosis["causality"].verdict == diagnosis["float16"].verdict == "ok"


def test_a_sink_that_no_head_uses_is_no_warning():
    assert diagnose(newer_styles.Sink(start=-30.0), **SIZES)["row sums"].verdict == "ok"


def test_rows_that_only_a_mask_makes_smaller_are_still_wrong():
    """Also behind an exp of its own, where rows below 1 may be meant."""

    class Exp(Attention):
        def forward(self, query, key=None, value=None, attn_mask=None):
            q, k, v = (f(query).unflatten(-1, (4, -1)).transpose(1, 2) for f in (self.W_Q, self.W_K, self.W_V))
            scores = q @ k.mT / q.shape[-1] ** 0.5
            weights = (scores - scores.amax(-1, keepdim=True)).exp()
            weights = weights / weights.sum(-1, keepdim=True)
            weights = weights if attn_mask is None else weights * attn_mask[:, None]
            return self.W_O((weights @ v).transpose(1, 2).flatten(2))

    assert diagnose(Exp(32, 4), **SIZES)["row sums"].verdict == "wrong"


@pytest.mark.parametrize(
    "call, verdicts",
    [
        (lambda m, q, k, v, mask: m(q, k, mask), {"values apart": "could not tell", "keys matter": "ok"}),
        (lambda m, q, k, v, mask: m(q, k), {"causality": "could not tell", "padding": "could not tell"}),
        (lambda m, q, k, v, mask: m(q, None, mask), {"argument order": "could not tell", "causality": "ok"}),
    ],
)
def test_what_call_drops_is_no_fault_of_the_module(call, verdicts):
    diagnosis = diagnose(other_styles.Cross(), call=call, **SIZES)
    assert caught(diagnosis) == set()
    assert {probe: diagnosis[probe].verdict for probe in verdicts} == verdicts


def test_what_call_hands_in_and_the_module_ignores_is_seen():
    def call(module, query, key, value, mask):
        blocked = None if mask is None else torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)[:, None]
        return module(query, mask=blocked, context=key)

    class Ignores(other_styles.Cross):
        def forward(self, x, context=None, mask=None):
            return super().forward(x)

    class Swallows(other_styles.Cross):
        def forward(self, x, **kwargs):
            return super().forward(x)

    ignores, swallows = (diagnose(kind(), call=call, **SIZES) for kind in (Ignores, Swallows))
    assert caught(ignores) == {"causality", "padding", "fully masked row", "keys matter"} and ignores.ok
    assert caught(swallows) == set()  # a keyword that any name would do for was never promised to be read


def test_values_that_are_handed_in_and_ignored_are_a_fault_behind_a_call_too():
    class NoValues(other_styles.Annotated):
        def forward(self, query, key, value, mask=None):
            return super().forward(query, key, key, mask)

    diagnosis = diagnose(NoValues(), call=lambda m, q, k, v, mask: m(q, k, v, mask), **SIZES)
    assert diagnosis.wrong == diagnose(NoValues(), **SIZES).wrong == ["values apart"]


@pytest.mark.parametrize("turn", [True, False])
def test_batch_first_false_is_believed_whether_or_not_call_turns(turn):
    def call(module, *inputs):
        q, k, v = (x.transpose(0, 1) if turn else x for x in inputs[:3])
        output = module(q, k, v)[0]
        return output.transpose(0, 1) if turn else output

    diagnosis = diagnose(other_styles.SequenceFirst(), batch_first=False, call=call, **SIZES)
    assert caught(diagnosis) == set()
    assert diagnosis["layout"].verdict == ("could not tell" if turn else "ok")


def test_where_no_axis_shows_attention_the_author_is_believed():
    class Alone(newer_styles.Window):
        def forward(self, x):
            return self.o(self.qkv(x).chunk(3, -1)[2] * (self.qkv(x).chunk(3, -1)[0] @ x.mT).isfinite().any())

    assert diagnose(Alone(), batch_first=False, **SIZES)["layout"] == ("layout", "ok", "(tokens, batch, features)", "")


@pytest.mark.parametrize("beside", [True, False])
def test_latents_ask(beside):
    diagnosis = diagnose(newer_styles.Latents(beside=beside), **SIZES)
    assert caught(diagnosis) == set()
    assert diagnosis["argument order"].measured.startswith("2 queries, 5 keys: 2 outputs")


def test_pruned_heads_are_no_fault():
    module = self_attention.FusedCausal()
    prune.ln_structured(module.c_proj, "weight", amount=8, n=2, dim=1)
    diagnosis = diagnose(module, **SIZES)
    assert diagnosis.ok and diagnosis["dead parameters"].verdict == "beware"
    assert "as if multiplied by 0: part of c_attn.weight" in diagnosis["dead parameters"].measured


def test_a_mask_that_hides_the_token_itself_is_named_with_any_fill():
    for fill, expected in ((-torch.inf, "allowed keys"), (-1e9, "causality")):

        class Strict(other_styles.Annotated):
            def forward(self, query, key, value, mask=None, fill=fill):
                q, k, v = (
                    self_attention.split(f(x), 4) for f, x in zip(self.linears, (query, key, value), strict=False)
                )
                scores = q @ k.mT / 8**0.5
                if mask is not None:
                    mask = mask[:, None] & ~torch.eye(*mask.shape[-2:], dtype=torch.bool)
                    scores = scores.masked_fill(~mask, fill)
                return self.linears[-1](self_attention.merge(scores.softmax(-1) @ v))

        assert diagnose(Strict(), **SIZES).wrong == [expected]


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"scale": float("nan")}, ValueError, "scale must be a finite number above 0, got nan"),
        ({"scale": 0}, ValueError, "scale must be a finite number above 0, got 0"),
        ({"scale": "x"}, TypeError, "scale must be a number, got 'x'"),
        ({"scale": True}, TypeError, "scale must be a number, got True"),
        ({"causal": "no"}, TypeError, "causal must be True or False, or None where it is not said, got 'no'"),
        ({"blocked": 1}, TypeError, "blocked must be True or False, or None where it is not said, got 1"),
        ({"batch_first": "yes"}, TypeError, "batch_first must be True or False"),
        ({"positions": None}, TypeError, "positions must be True or False, got None"),
        ({"call": "x"}, TypeError, "call must be a function, got str"),
        ({"module": Attention(32, 4).to("meta")}, TypeError, "Attention is on the meta device"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    given = {"module": Attention(32, 4), **SIZES, **arguments}
    with pytest.raises(error, match=re.escape(message)) as raised:
        diagnose(given.pop("module"), **given)
    assert "Fix: " in str(raised.value)


@pytest.mark.slow
def test_a_file_that_ends_the_process_ends_with_a_message(tmp_path):
    (tmp_path / "script.py").write_text("import sys\nsys.exit('usage: script')\n", encoding="utf-8")
    (tmp_path / "mods.py").write_text(
        "import sys\nclass Exits:\n    def __init__(self, *sizes):\n        sys.exit()\n", encoding="utf-8"
    )
    for target, code in (("script:Any", "'usage: script'"), ("mods:Exits", "None")):
        command = [sys.executable, "-m", "attnlib.diagnose", target, "--embed-dim", "24"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, check=False)
        assert done.returncode == 2 and f"called sys.exit({code})" in done.stderr and "Fix: " in done.stderr, (
            done.stderr
        )


def test_without_torch_a_sentence_says_so():
    code = "import runpy, sys; sys.modules['torch'] = None; sys.argv = ['x', 'a:B']; "
    code += "runpy.run_module('attnlib.diagnose', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode != 0
    assert (
        done.stderr.splitlines()[-1].endswith("Fix: pip install torch") and "diagnose" in done.stderr.splitlines()[-1]
    )


def test_keys_that_torch_adds_of_its_own_are_no_fault():
    module = nn.MultiheadAttention(32, 4, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    assert diagnose(module, **SIZES).ok

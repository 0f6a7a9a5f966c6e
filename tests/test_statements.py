"""What a page states and none of its cells prints; each number is computed here again."""

import re
from itertools import product

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import attnlib as al
from attncourse import check, mine
from attncourse.clinic import CopiedHeads
from attncourse.training import train
from attnlib import plot
from attnlib.examples import SENTENCE, WORDS
from tools.build_notebooks import code_between

REASON = "transformers is not installed: make setup-tests"


def defined(number, start, stop, wanted):
    """Run the cells of a part of a notebook that hold an import, a function or a class, or what `wanted` matches."""
    found = {}
    for cell in code_between(number, start, stop):
        if re.search(rf"^(?:def|class|import|from) |{wanted}", cell, re.M) and "predict." not in cell:
            exec(cell, found)
    return found


def test_adam_moves_a_number_whose_gradient_has_become_0():
    x = torch.ones(1, requires_grad=True)
    adam, seen = torch.optim.Adam([x], lr=1e-3), []
    for step in range(30):
        x.grad = torch.ones(1) if step < 5 else torch.zeros(1)
        adam.step()
        seen.append(x.item())
    assert seen[4] == pytest.approx(0.995, abs=1e-4) and seen[-1] == pytest.approx(0.988, abs=1e-3)


def test_without_the_division_a_tenth_of_the_queries_get_nine_tenths_of_the_gradient():
    """Lesson scaling, why the mean is misleading."""
    gradients = defined("scaling", "# ", "rows = []\nfor d_k in (16", "^import")["gradients"]
    on_q = np.sort(gradients(1, 1024)[1].ravel())[::-1]
    assert on_q[: len(on_q) // 9].sum() > 0.9 * on_q.sum() > on_q[: len(on_q) // 11].sum()


def test_one_table_serves_as_input_and_as_last_matrix_by_the_root_of_d_model():
    """Lesson pytorch_module: entries of 1/sqrt(d) make numbers of size 1 as a matrix, and times sqrt(d) as vectors."""
    d = 512
    torch.manual_seed(0)
    fresh = torch.nn.Embedding(1000, d).weight.detach()
    assert fresh.std().item() == pytest.approx(1, abs=0.01)  # as nn.Embedding draws it
    shared, vectors = fresh / d**0.5, torch.randn(200, d)  # vectors of size 1 that name a word
    assert (vectors @ shared.T).std().item() == pytest.approx(1, abs=0.02)
    assert (vectors @ fresh.T).std().item() == pytest.approx(d**0.5, rel=0.02)
    assert (shared * d**0.5).std().item() == pytest.approx(1, abs=0.01)


def test_is_causal_is_upper_left_in_one_function_of_torch_and_raises_in_its_layer():
    x = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(0))
    last = F.scaled_dot_product_attention(x[:, 3:], x, x, is_causal=True)
    upper_left = torch.from_numpy(al.causal_mask(2, 5, align="upper_left"))
    assert torch.allclose(last, F.scaled_dot_product_attention(x[:, 3:], x, x, upper_left))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        torch.nn.MultiheadAttention(4, 1, batch_first=True)(x, x, x, is_causal=True)


def test_a_dead_row_of_the_layer_of_torch_is_nan_only_if_weights_are_asked_for():
    """Lesson masks."""
    x, blocked = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(0)), torch.eye(5, dtype=torch.bool)
    blocked[1] = True
    layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    for need_weights in (True, False):
        with torch.no_grad():
            output, _ = layer(x, x, x, attn_mask=blocked, need_weights=need_weights)
        assert output.isnan().any(dim=-1)[0].tolist() == [False, need_weights, False, False, False]


def test_of_equally_frequent_words_the_head_of_notebook_05_names_the_first_in_the_alphabet():
    names = {"al": al, "np": np, "plot": plot}
    for cell in code_between("masks", "Here is that pupil", "Now there is no next line"):
        exec(cell, names)
    named = names["next_words"](names["text"], is_causal=True)
    assert named == ["the", "farmer", "farmer", *["the"] * 8]


def test_true_for_blocked_is_the_upper_triangle_without_the_diagonal():
    """Lesson masks: `tril` or `triu`."""
    ones = np.ones((4, 4), dtype=bool)
    assert (np.tril(ones) == al.causal_mask(4)).all() and (np.triu(ones, k=1) == ~al.causal_mask(4)).all()


def test_padding_hidden_as_a_query_or_in_front_leaves_rows_that_may_look_nowhere():
    """Lesson masks, section 9."""
    x, real = np.ones((4, 3)), np.arange(4) < 2
    masks = {"as a query": real[:, None] & real, "in front": al.causal_mask(4) & ~real}
    dead = {where: al.attention_trace(x, x, x, mask).fully_masked.tolist() for where, mask in masks.items()}
    assert dead == {"as a query": [False, False, True, True], "in front": [True, True, False, False]}


def test_the_poke_shows_each_leak_and_no_other():
    """Lesson masks: the three grids, and the window of its Try it, which moves outputs 1 and 2."""
    names = {"al": al, "np": np, "plot": plot, "mine": mine, "WORDS": WORDS, "SENTENCE": SENTENCE, "INK": "black"}
    for cell in code_between("masks", "## 3 ·", "· Design: few keys"):
        exec(cell, names)
    grids, past = names["moved"], np.tri(4, k=-1, dtype=bool)
    assert all((grid[~past] > 0.02).all() for grid in grids.values())  # each token moves itself and what follows
    assert not grids["causal mask"][past].any()
    assert (grids["no mask"][past] > 0.04).all() and (grids["zero after softmax"][past] > 0.005).all()
    window = al.causal_mask(4) & ~np.tri(4, k=-2, dtype=bool)
    moved = names["poked"](lambda x: al.scaled_dot_product_attention(*names["project"](x), window), SENTENCE.x)
    assert (moved[1] > 0).tolist() == [False, True, True, False]


def test_dropout_tells_copied_heads_apart_and_no_gradient_does():
    """Case 18 of lesson casebook."""
    (source,) = [
        cell for cell in code_between("casebook", "### Case 18", "### Cases 19") if "def train_a_little" in cell
    ]
    torch.manual_seed(1)
    names = {"torch": torch, "x": torch.randn(2, 5, 24)}
    exec(source, names)

    class Dropping(CopiedHeads):
        def softmax(self, scores):
            return F.dropout(super().softmax(scores), self.dropout)

    differ = {}
    for Dropping.dropout in (0.0, 0.1):
        module = Dropping(24, 4)
        with torch.no_grad():
            module.W_O.weight.copy_(module.W_O.weight[:, :6].repeat(1, 4))
        names["train_a_little"](module)
        Dropping.dropout, used = 0.0, Dropping.dropout
        with torch.no_grad():
            w = module(names["x"])[1]
        differ[used] = (w - w[:, :1]).abs().max().item()
    assert differ[0.0] < 0.01 < 0.1 < differ[0.1]


def test_next_to_a_billion_scores_below_32_are_lost_and_larger_ones_are_not():
    """A relative of case 1 of lesson casebook."""
    scores = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(5, 5).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)

    def handed(scores):
        return (scores + (1 - mask) * -1e9).softmax(-1)

    assert torch.equal(handed(scores), handed(31.9 * scores / scores.abs().max()))
    assert not torch.equal(handed(scores), handed(20 * scores))


class Recall(torch.nn.Module):
    """A head of d_k = 128 that divides by 128; asked for one of 64 letters, it names the number beside it."""

    def __init__(self):
        super().__init__()
        self.letter, self.number = torch.nn.Embedding(64, 64), torch.nn.Embedding(32, 64)
        self.W_Q, self.W_K = (torch.nn.Linear(64, 128, bias=False) for _ in range(2))
        self.W_V, self.read = torch.nn.Linear(64, 64, bias=False), torch.nn.Linear(64, 32)

    def forward(self, letters, numbers, asked):
        slots = self.letter(letters) + self.number(numbers)  # (b, 32, 64)
        scores = self.W_Q(self.letter(asked))[:, None] @ self.W_K(slots).mT / 128  # (b, 1, 32)
        return self.read((scores.softmax(-1) @ self.W_V(slots))[:, 0])


def pairs(generator, size=32):
    letters = torch.rand(size, 64, generator=generator).argsort(-1)[:, :32]
    numbers, slot = (torch.randint(32, shape, generator=generator) for shape in ((size, 32), (size,)))
    rows = torch.arange(size)
    return letters, numbers, letters[rows, slot], numbers[rows, slot]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_head_that_divides_by_d_k_learns_to_recall_as_well(seed):
    """The page of questions; takes about a second."""
    torch.manual_seed(seed)
    model = Recall()
    train(model, pairs, lambda m, b: F.cross_entropy(m(*b[:3]), b[3]), seed=seed, steps=200, lr=0.003)
    *shown, answer = pairs(torch.Generator().manual_seed(99), 400)
    with torch.no_grad():
        assert (model(*shown).argmax(-1) == answer).float().mean() >= 0.99


def test_beginnings_that_hide_the_number_have_one_form_behind_the_subject():
    """Exercise out_of_reach: of the forms that the grammar allows, only *that the ADJ noun verb* passes."""
    behind = ["", "near the dogs", "near the old dog", "that see", "that see the dog", "that see the old dogs"]
    behind += [f"that {who} {verb}" for who, verb in (("the dog", "sees"), ("the dogs", "see"))]
    hidden = ["that the old dog sees", "that the old dogs see"]
    for subject, rest in product(("the cats", "the old cats"), behind + hidden):
        verdict = check.out_of_reach(f"{subject} {rest}".strip())
        assert verdict.passed == (rest in hidden), (subject, rest)


# --- lesson todays_head, and the sources of its rules


def test_what_the_models_ship():
    """Lessons scaling and todays_head name them; the numbers are those of the installed transformers."""
    pytest.importorskip("transformers", reason=REASON)
    from transformers import Gemma3TextConfig, Gemma4TextConfig, Llama4TextConfig, Ministral3Config, Qwen3NextConfig
    from transformers.models.gemma4.modeling_gemma4 import Gemma4TextAttention
    from transformers.models.llama4.modeling_llama4 import Llama4TextAttention
    from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale

    small = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    assert Gemma3TextConfig().attn_logit_softcapping is None
    assert Gemma3TextConfig().layer_types[:12] == 2 * (5 * ["sliding_attention"] + ["full_attention"])
    head = Gemma4TextAttention(Gemma4TextConfig(**small, num_hidden_layers=6), 0)
    assert head.scaling == 1.0 and head.q_norm and head.k_norm
    kinds = Qwen3NextConfig().layer_types
    assert kinds.count("linear_attention") * 4 == 3 * len(kinds) and kinds[3] == "full_attention"

    given = Ministral3Config().rope_parameters
    beta, L = given["llama_4_scaling_beta"], given["original_max_position_embeddings"]
    factor = get_llama_4_attn_scale(torch.tensor([[0, L - 1, L, 10 * L]]), beta, L).flatten()
    assert factor.tolist() == pytest.approx([1, 1, 1 + 0.1 * np.log(2), 1 + 0.1 * np.log(11)])
    assert L == 16_384 and beta == 0.1
    llama = [Llama4TextAttention(Llama4TextConfig(**small, num_hidden_layers=4), layer) for layer in range(4)]
    assert [bool(layer.use_rope) for layer in llama] == [True, True, True, False]
    assert all(layer.attn_temperature_tuning and layer.attn_scale == 0.1 for layer in llama)


def test_the_delta_rule_erases_what_stood_under_a_key():
    """One key is written twice: the plain sum returns both values, the delta rule the second alone."""
    qwen = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next", reason=REASON)
    rng = torch.Generator().manual_seed(0)
    key = F.normalize(torch.randn(1, 9, 1, 16, generator=rng), dim=-1)  # (b, n, h, d_k)
    key[:, 8] = key[:, 0]
    value, whole = torch.randn(1, 9, 1, 4, generator=rng), torch.ones(1, 9, 1)
    read, _ = qwen.torch_recurrent_gated_delta_rule(16**0.5 * key, key, value, g=0 * whole, beta=whole)  # nothing fades
    assert torch.allclose(read, value, atol=1e-5)  # each key returns what was just written under it
    plain = key[0, :, 0] @ (key[0, :, 0].mT @ value[0, :, 0])
    assert (plain[8] - value[0, 8, 0]).abs().max() > 0.5

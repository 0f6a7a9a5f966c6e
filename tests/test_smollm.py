"""The speaker computes what transformers computes, calls what is handed in, and refuses what it cannot use.

Without the model on a small Llama with random weights, with it (make real-decoder) on the model, too.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import small_llama
import torch

import attnlib as al
from attncourse import check, smollm
from attncourse.smollm import speaker
from attncourse.smollm.functions import FUNCTIONS
from bench.decoder import READERS, in_transformers
from lite.reader import AT_ONCE, MISTAKES, WRITTEN, Reader
from tools.build_notebooks import read_source
from tools.handouts import exercises
from tools.numbering import numbers
from tools.series import find_notebook

NEEDS = "the model is not installed: make real-decoder"
needs_model = pytest.mark.skipif(bool(smollm.missing()), reason=NEEDS)
TEXT = "the other a\n then the oath, or 42 <b>"
PROMPTS = (
    "When Mary and John went to the store, John gave a drink to",
    "def mean(numbers):\n    return sum(numbers) /",
    "Es war einmal ein kleiner Roboter, der",
    smollm.chat("What is attention in a transformer?"),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    said = small_llama.settings()
    return small_llama.write(tmp_path_factory.mktemp("small") / "small.gguf", said, small_llama.tensors(said))


@pytest.fixture(scope="module")
def babbler(small):
    return smollm.load(small, sha256=None)


@pytest.fixture(scope="module")
def model():
    return smollm.load(bar=iter)


# The same numbers as transformers


@pytest.mark.parametrize("seed", range(4))
def test_a_small_llama_gives_the_logits_of_transformers(tmp_path, seed):
    said = small_llama.settings()
    path = small_llama.write(tmp_path / "small.gguf", said, small_llama.tensors(said, seed))
    settings, weights = smollm.read_model(path, sha256=None)
    reference, ours = in_transformers(settings, weights, attn_implementation="eager"), smollm.load(path, sha256=None)
    theirs = small_llama.logits(reference, ours.tokens(TEXT))
    assert theirs.std() > 0.3 and np.abs(ours.logits(TEXT) - theirs).max() < 1e-4
    maps = reference(torch.tensor([ours.tokens(TEXT)]), output_attentions=True).attentions
    for (layer, head), weights in ours.maps(TEXT).items():
        assert np.abs(weights - maps[layer - 1][0, head - 1].detach().numpy()).max() < 1e-4


@pytest.mark.slow
@needs_model
def test_the_model_gives_the_logits_of_transformers(model):
    reference = in_transformers(*smollm.read_model())
    rng = np.random.default_rng(0)
    drawn = [model.tokenizer.decode(rng.integers(20, 40_000, 20).tolist()) for _ in range(3)]
    for text in (*PROMPTS, *drawn):
        ours, theirs = model.logits(text), small_llama.logits(reference, model.tokens(text))
        # Logits reach 20 and more in float32; their last digits depend on the number of threads.
        assert np.abs(ours - theirs).max() < 2e-4 and (ours.argmax(axis=1) == theirs.argmax(axis=1)).all(), text


def in_chunks(model, text, size):
    numbers, past, rows = model.tokens(text), None, []
    for start in range(0, len(numbers), size):
        x, past = model(numbers[start : start + size], past)
        rows.append(x @ model.unembedding.T)
    return np.concatenate(rows)


@pytest.mark.parametrize("size", [1, 3, 20])
def test_a_cache_in_chunks_gives_the_same(babbler, size):
    assert np.abs(in_chunks(babbler, TEXT, size) - babbler.logits(TEXT)).max() < 1e-4


@pytest.mark.slow
@needs_model
@pytest.mark.parametrize("size", [1, 7, 50])
def test_a_cache_in_chunks_gives_the_same_in_the_model(model, size):
    text = PROMPTS[0] + " " + PROMPTS[3]
    assert np.abs(in_chunks(model, text, size) - model.logits(text)).max() < 3e-4


# Functions that are handed in


def grouped_without_repeats(query, key, value, attn_mask=None, attention=None):
    """The heads of a group as an axis of their own: no key is repeated."""
    h, n, d = query.shape
    grouped = query.reshape(len(key), -1, n, d)
    return attention(grouped, key[:, None], value[:, None], attn_mask).reshape(h, n, -1)


@pytest.mark.parametrize("names", [*([name] for name in READERS), list(READERS)], ids="+".join)
def test_a_readers_own_functions_are_called_and_give_the_same(babbler, names):
    assert set(READERS) == set(FUNCTIONS)
    calls = dict.fromkeys(names, 0)

    def counted(name):
        def function(*args):
            calls[name] += 1
            return READERS[name](*args)

        return function

    own = babbler.using(**{name: counted(name) for name in names})
    assert np.abs(own.logits(TEXT) - babbler.logits(TEXT)).max() < 1e-4
    assert all(calls[name] == babbler.shape.layers * {"split_heads": 3, "rope": 2}.get(name, 1) for name in names)
    assert own.write(TEXT, 8) == babbler.write(TEXT, 8)


def test_keys_need_not_be_repeated(babbler):
    own = babbler.using(grouped_attention=grouped_without_repeats)
    assert np.abs(own.logits(TEXT) - babbler.logits(TEXT)).max() < 1e-4


def test_the_solutions_of_notebook_11_speak(babbler):
    source = find_notebook("one_token_at_a_time").source
    names = {"np": np, "al": al, "attention": al.scaled_dot_product_attention}
    for _, number, solution in exercises(read_source(source)):
        if number in (numbers()["decode_step"], numbers()["grouped_attention"]):
            exec(solution, names)
    own = babbler.using(grouped_attention=names["my_grouped"], decode_step=names["my_step"])
    for size in (1, 3, 20):
        assert np.abs(in_chunks(own, TEXT, size) - babbler.logits(TEXT)).max() < 1e-4
    assert own.write(TEXT, 8) == babbler.write(TEXT, 8)


# Guessing ahead

TWICE = ("the oath, or the oath, or the oath", "a other a other a", "aaaa", TEXT)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_with_drafts_it_writes_what_it_writes_without(babbler, length):
    kept = 0
    for prompt in TWICE:
        text, passes = smollm.speculate(babbler, prompt, 24, length)
        assert text == babbler.write(prompt, 24)
        kept += sum(accepted for _, accepted in passes)
        assert all(accepted <= drafted <= length for drafted, accepted in passes)
        assert sum(1 + accepted for _, accepted in passes) in range(23, 23 + 1 + length)
    assert kept > 5


def test_the_solution_of_notebook_11_and_its_mistakes_speculate(babbler):
    """In the loop every mistake spoils a text, or costs passes; the one that returns nothing is stopped."""
    source = find_notebook("one_token_at_a_time").source
    names, texts = {}, [babbler.write(prompt, 24) for prompt in TWICE]
    (solution,) = (code for _, number, code in exercises(read_source(source)) if number == numbers()["accept_draft"])
    exec(solution, names)

    def written(accept):
        found = [smollm.speculate(babbler, prompt, 24, accept=accept) for prompt in TWICE]
        return [text for text, _ in found], sum(len(passes) for _, passes in found)

    same, passes = written(names["my_accept"])
    assert same == texts
    stopped = dict.fromkeys(("models_token_dropped", "own_token_after_all_missing"), r"got none\. Fix: ")
    stopped["cut_along_another_axis"] = "must match exactly"  # the next keys do not fit behind those cut
    for id, (wrong, *_) in check.accept_draft.wrong.items():
        if id in stopped:
            with pytest.raises(ValueError, match=stopped[id]):
                written(wrong)
            continue
        spoiled, more = written(wrong)
        assert spoiled != texts or more > passes, id


def test_a_draft_is_what_followed_the_last_time(babbler):
    assert smollm.looked_up([1, 2, 3, 1, 2, 4, 1, 2]) == [4, 1, 2] and smollm.looked_up([1, 1, 1]) == [1]
    assert smollm.looked_up([3, 1, 2]) == smollm.looked_up([1, 2]) == smollm.looked_up([1]) == []
    with pytest.raises(ValueError, match="the model was trained on at most 256 tokens"):
        smollm.speculate(babbler, "a " * 200, 64)


def with_nan(x):
    x = np.array(x)
    x.flat[-1] = np.nan
    return x


WRONG = {
    "nothing": (
        lambda right: None,
        TypeError,
        "must return a NumPy array of real numbers, shape {shape}",
    ),
    "a list": (lambda right: right.tolist(), TypeError, "got list"),
    "a tensor": (torch.from_numpy, TypeError, "got Tensor"),
    "booleans": (lambda right: right > 0, TypeError, "got an array of bool"),
    "transposed": (lambda right: right.swapaxes(-1, -2).copy(), al.ShapeError, "must return shape {shape} here, got ("),
    "a row short": (lambda right: right[..., 1:, :], al.ShapeError, "must return shape {shape} here"),
    "a batch axis": (lambda right: right[None], al.ShapeError, "must return shape {shape} here"),
    "NaN": (with_nan, ValueError, "must return finite numbers, got 1 of"),
    "infinity": (lambda right: right / np.zeros(()), ValueError, "that are NaN or infinite"),
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("name", sorted(set(READERS) - {"decode_step"}))
def test_what_a_function_must_not_return_is_said_with_its_name(babbler, name, what):
    spoil, error, message = WRONG[what]
    shape = (24, 64) if name == "merge_heads" else (4, 24, 16)
    own = babbler.using(**{name: lambda *args: spoil(READERS[name](*args))})
    with pytest.raises(error, match=rf"^{name} must return ") as caught:
        own.write(TEXT)
    assert message.format(shape=shape) in str(caught.value)
    assert "Fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda output, past: output, TypeError, r"must return \(output, \(keys, values\)\), got ndarray"),
        (lambda output, past: None, TypeError, "got NoneType"),
        (lambda output, past: (output, *past), TypeError, "must return"),
        (lambda output, past: (output[:, :1], past), al.ShapeError, r"shape \(4, 24, 16\) here, got \(4, 1, 16\)"),
        (lambda output, past: (output, (past[0][:, 1:], past[1])), al.ShapeError, r"\(2, 24, 16\) here"),
        (lambda output, past: (output, (past[0], with_nan(past[1]))), ValueError, "finite numbers, got 1 of 768"),
    ],
)
def test_a_step_that_returns_something_else_is_named(babbler, spoil, error, message):
    with pytest.raises(error, match=f"decode_step .*{message}.* Fix: "):
        babbler.using(decode_step=lambda *args: spoil(*READERS["decode_step"](*args))).write(TEXT)


def test_only_functions_and_settings_that_exist_can_be_handed_in(babbler):
    with pytest.raises(TypeError, match=r"attention must be a function, got list\. Fix: attention=my_attention"):
        babbler.using(attention=[1])
    with pytest.raises(TypeError, match=r"can use split_heads, .*, window, sink, without, whole; got temperature"):
        babbler.using(temperature=1)
    for name, value in (("scale", 0), ("scale", "x"), ("base", -1.0), ("base", np.nan), ("window", 0), ("sink", -1)):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            babbler.using(**{name: value})
    for head in ((0, 1), (1, 5), (3, 1)):
        with pytest.raises(ValueError, match=r"counted from 1 to 2 and 4; got"):
            babbler.using(without=[head])


def test_scale_base_window_and_sink_do_what_the_same_change_in_a_function_does(babbler):
    n = len(babbler.tokens(TEXT))
    back = np.arange(n)[:, None] - np.arange(n)
    windowed = (back >= 0) & ((back < 3) | (np.arange(n) < 2))
    pairs = [
        ({"scale": 0.5}, {"attention": partial(al.scaled_dot_product_attention, scale=0.5)}),
        ({"base": 50.0}, {"rope": lambda x, positions, base: al.rope(x, positions, 50.0)}),
        (
            {"window": 3, "sink": 2},
            {"attention": lambda q, k, v, mask: al.scaled_dot_product_attention(q, k, v, windowed)},
        ),
        ({"window": n}, {}),
    ]
    right = babbler.logits(TEXT)
    for setting, function in pairs:
        ours, same = babbler.using(**setting).logits(TEXT), babbler.using(**function).logits(TEXT)
        assert np.abs(ours - same).max() < 1e-4 and (np.abs(ours - right).max() > 0.01) == bool(function), setting
    small = babbler.using(window=3, sink=2)
    assert np.abs(in_chunks(small, TEXT, 5) - small.logits(TEXT)).max() < 1e-4


def test_a_head_that_is_taken_away_hands_on_nothing(babbler):
    layers = iter(range(babbler.shape.layers))

    def merge(x):
        return al.merge_heads(x * (np.arange(4) != 2)[:, None, None] if next(layers) == 1 else x)

    ours = babbler.using(without=[(2, 3)]).logits(TEXT)
    assert np.abs(ours - babbler.using(merge_heads=merge).logits(TEXT)).max() < 1e-6
    assert np.abs(ours - babbler.logits(TEXT)).max() > 0.01


# What it writes


def test_greedy_writing_takes_the_largest_logit_again_and_again(babbler):
    numbers, written = babbler.tokens(TEXT), []
    for _ in range(12):
        x, _ = babbler(numbers + written)
        written.append(int(np.argmax(babbler.unembedding @ x[-1])))
    assert babbler.write(TEXT, 12) == babbler.tokenizer.decode(written)
    assert "".join(babbler.stream(TEXT, 12)) == babbler.tokenizer.decode(written)


def test_draws_follow_their_seed_and_a_low_temperature_is_greedy(babbler):
    drawn = [babbler.write(TEXT, 12, temperature=1.0, seed=seed) for seed in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1] and len(set(drawn)) == 3
    for low in (1e-3, 1e-300):
        assert babbler.write(TEXT, 12, temperature=low) == babbler.write(TEXT, 12)
    with pytest.raises(ValueError, match=r"temperature must be 0 or a positive number, got -1"):
        babbler.write(TEXT, temperature=-1)
    with pytest.raises((TypeError, ValueError), match="count"):
        babbler.write(TEXT, 0)


def test_a_text_ends_before_a_near_tie(babbler):
    numbers, gaps = babbler.tokens("or"), []
    for _ in range(12):
        x, _ = babbler(numbers)
        second, first = np.sort(babbler.unembedding @ x[-1])[-2:]
        gaps.append(first - second)
        numbers = [*numbers, int(np.argmax(babbler.unembedding @ x[-1]))]
    least = int(np.argmin(gaps))
    assert 0 < least < 11
    kept = babbler.write("or", 12, margin=gaps[least] * 1.001)
    assert kept == babbler.tokenizer.decode(numbers[1 : 1 + least])
    assert babbler.write("or", 12, margin=gaps[least] * 0.999) == babbler.write("or", 12)


def test_it_ends_where_the_model_says_so(babbler):
    first = int(np.argmax(babbler.logits(TEXT)[-1]))
    other = babbler.using()
    other.end = first
    assert other.write(TEXT, 5) == "" and babbler.write(TEXT, 5) != ""


def test_characters_of_several_tokens_come_whole(babbler):
    smile = [babbler.tokenizer.number[smollm.tokenizer.CHARACTER[b]] for b in "😀é".encode()]
    script = iter(smile)

    class Scripted(smollm.Speaker):
        def prefill(self, tokens, past=None):
            x = np.zeros(len(self.unembedding), np.float32)
            x[next(script)] = 1
            return x, past

    scripted = Scripted.__new__(Scripted)
    scripted.__dict__ = {**babbler.__dict__, "unembedding": np.eye(len(babbler.unembedding), dtype=np.float32)}
    pieces = list(scripted.stream("a", len(smile)))
    assert [piece for piece in pieces if piece] == ["😀", "é"]


@pytest.mark.parametrize("ask", ["write", "logits", "loss", "next_words", "maps"])
def test_texts_that_no_model_can_read_are_refused(babbler, ask):
    with pytest.raises(ValueError, match=r"text must hold at least one token, got an empty one\. Fix: "):
        getattr(babbler, ask)("")
    with pytest.raises(ValueError, match=r"at most 256 tokens, got a text of 257.*\. Fix: a shorter text"):
        getattr(babbler, ask)("z" * 257)
    with pytest.raises(TypeError, match="text must be one str, got NoneType"):
        getattr(babbler, ask)(None)


def test_the_prompt_and_what_is_written_fit_into_the_context(babbler):
    with pytest.raises(ValueError, match="got a text of 250 and 7 to write"):
        babbler.write("z" * 250, 7)
    assert babbler.write("z" * 250, 6)
    with pytest.raises(ValueError, match="at least two tokens"):
        babbler.loss("a")


def test_a_long_prompt_is_read_in_chunks(babbler, monkeypatch):
    text = TEXT * 8
    whole = babbler.next_words(text, 3)
    monkeypatch.setattr(speaker, "CHUNK", 10)
    chunked = babbler.next_words(text, 3)
    assert [word for word, _ in chunked] == [word for word, _ in whole]
    assert np.allclose([p for _, p in chunked], [p for _, p in whole], atol=1e-6)


def test_the_loss_is_the_mean_surprise(babbler):
    numbers = babbler.tokens(TEXT * 6)  # more than one block of 64 rows
    log_p = torch.log_softmax(torch.from_numpy(babbler.logits(TEXT * 6)), dim=-1).numpy()
    expected = -np.mean([log_p[i, number] for i, number in enumerate(numbers[1:])])
    assert abs(babbler.loss(TEXT * 6) - expected) < 1e-4


@pytest.mark.slow
@needs_model
def test_what_the_model_says(model):
    """The figures of the blank, to two digits; what it writes is in tests/test_smollm_results.py."""
    assert model.next_words(PROMPTS[0], 1)[0] == (" Mary", pytest.approx(0.92, abs=0.005))
    assert model.maps(PROMPTS[0], [(25, 5)])[25, 5][-1, 1] == pytest.approx(0.81, abs=0.005)
    assert model.write(PROMPTS[3], 8).startswith("In a transformer, attention refers to")
    with pytest.raises(ValueError, match="at most 8,192 tokens, got a text of 8,193"):
        model.write("1" * 8193)


# In the first page of the site


def test_the_first_page_reads_token_by_token_and_keeps_the_map_of_every_head(babbler):
    reader, own = Reader(babbler, TEXT), babbler.shape.d_k
    n, reading = len(reader.words), reader.reading(own)
    assert [reading.read_next() for _ in range(n)] == [*range(1, n + 1)] and reading.count_left() == 0
    assert "".join(reader.words) == TEXT and reader.reading(own) is reading  # nothing is read twice
    q, k = heads_of(babbler, TEXT)
    scores = np.where(np.tri(n, dtype=bool), q @ k.swapaxes(-1, -2), -np.inf)
    assert np.allclose(reading.weights(), al.softmax(scores / own**0.5), atol=1e-5)
    other = reader.reading(4)  # another divisor: the scores of the first layer are those that they were
    while other.count_left():
        other.read_next()
    assert np.allclose(other.weights()[0], al.softmax(scores[0] / 4**0.5), atol=1e-5)
    assert reading.next_words()[0][0] in (babbler.next_words(TEXT, 1)[0][0], "(end)")
    assert reading.loss() == pytest.approx(babbler.loss(TEXT), abs=1e-4)
    while reading.write():
        pass
    assert reading.text() == babbler.write(TEXT, WRITTEN) and reading.weights().shape[-1] == n
    assert babbler.scale is None and babbler.watch is None  # the speaker itself is left alone


def heads_of(speaker, text):
    """Return queries and repeated keys of all heads, (layers, heads, n, d_k)."""
    seen, other = [], speaker.using()
    other.watch = lambda i, query, key, value, mask: seen.append((query, np.repeat(key, len(query) // len(key), 0)))
    other.logits(text)
    return map(np.stack, zip(*seen, strict=True))


def test_the_whole_model_and_its_mistakes_are_what_the_speaker_does(babbler):
    reader = Reader(babbler, TEXT)
    for d_k in (4, 4096):
        other, heads = babbler.using(scale=d_k**-0.5), [(1, 1), (2, 3)]
        whole, maps = reader.whole(d_k), other.maps(TEXT, heads)
        assert whole.loss() == pytest.approx(other.loss(TEXT), abs=1e-4) and whole.text() == other.write(TEXT, WRITTEN)
        for layer, head in heads:
            assert np.allclose(whole.weights()[layer - 1, head - 1], maps[layer, head], atol=1e-5)
    right = reader.whole(babbler.shape.d_k)
    for name in MISTAKES:
        wrong = reader.whole(mistake=name)
        at_once = babbler.using(**smollm.FAULTS[name]).loss(TEXT)
        assert (abs(wrong.loss() - at_once) < 1e-4) is (name not in ("upper-left mask with the cache",)), name
        assert not np.isclose(wrong.loss(), right.loss(), atol=1e-3), name
    assert (np.triu(reader.whole(mistake=AT_ONCE[0]).weights(), 1) > 0).any()  # only without a mask
    assert (np.triu(right.weights(), 1) == 0).all()


@pytest.mark.parametrize("text", [TEXT + " one", TEXT[:-6] + "end", TEXT[:9], "other", TEXT])
def test_what_two_sentences_begin_with_is_read_once(babbler, text):
    own = babbler.shape.d_k
    first, fresh = Reader(babbler, TEXT), Reader(babbler, text)
    first.whole(own)
    second = Reader(babbler, text, first)
    same = zip(first.numbers, second.numbers[:-1], strict=False)
    shared = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], same)))
    assert second.reading(own).count_left() == len(second.numbers) - shared
    ours, expected = second.whole(own), fresh.whole(own)
    assert ours.text() == expected.text() and ours.loss() == pytest.approx(expected.loss(), abs=1e-5)
    assert np.allclose(ours.weights(), expected.weights(), atol=1e-6)
    assert second.whole(mistake=AT_ONCE[0]).loss() == pytest.approx(fresh.whole(mistake=AT_ONCE[0]).loss(), abs=1e-5)


@pytest.mark.parametrize(
    ("text", "told"), [("", "at least one token"), ("a\n" * 40, "at most 32 tokens, about 24 words, got ")]
)
def test_the_first_page_says_what_it_cannot_read(babbler, text, told):
    with pytest.raises(ValueError, match=told):
        Reader(babbler, text)

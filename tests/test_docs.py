"""What the README prints is what its code prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n((?:(?!```).)+)```\n\n```text\n((?:(?!```).)+)```", README, re.DOTALL)


@pytest.mark.parametrize("code, output", EXAMPLES, ids=["check", "diagnose"])
def test_the_output_in_the_readme_is_real(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output

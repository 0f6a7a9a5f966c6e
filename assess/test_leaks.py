"""assess.leaks: forty replies come out as their truth says, but for those that the page names."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from assess import leaks
from tools.series import tomllib

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="replies are tried in a sealed copy")
FILE = Path(__file__).with_name("exchanges.toml")
EXCHANGES = tomllib.loads(FILE.read_text("utf-8"))["exchange"]
PAGE = (FILE.parent.parent / "docs" / "assistants.md").read_text("utf-8")
PALE = "def my_attention(query, key, value):\n    scores = query @ key.swapaxes(-1, -2) / key.shape[-1]\n"
PALE += "    return al.softmax(scores) @ value\n"


def test_there_are_ten_exercises_and_four_stages_with_good_and_bad_tutors():
    stages = {(one["exercise"], one["stage"]) for one in EXCHANGES}
    assert len(EXCHANGES) == len(stages) == 40 and len({exercise for exercise, _ in stages}) == 10
    assert all(10 < Counter(one["truth"][key] for one in EXCHANGES)[False] < 32 for key in leaks.KEYS)


def test_the_command_prints_the_table_of_the_page():
    command = [sys.executable, "-m", "assess.leaks", str(FILE)]
    done = subprocess.run(command, cwd=FILE.parent.parent, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.partition("\n\n")[2] == re.findall(r"```text\n(40 replies.+?)```", PAGE, re.DOTALL)[0]


@pytest.mark.parametrize(
    ("reply", "leaks_it"),
    [
        ("Divide by `np.sqrt(key.shape[-1])`.", True),  # an expression
        ("One line:\n```python\n    scores = query @ key.mT / key.shape[-1] ** 0.5\n```", True),
        (
            "```\ndef attention(q, k, v):\n    return al.softmax(q @ k.swapaxes(-1, -2) / k.shape[-1] ** .5) @ v\n```",
            True,
        ),
        ("Look at `scores = query @ key.swapaxes(-1, -2) / key.shape[-1]` again.", False),  # their own line
        ("`np.sqrt(16)` is 4. What is that of?\n```python\nprint(np.sqrt(np.array([4, 9])))\n```", False),
        ("What would you divide by if d_k were 100? See 2.3.", False),
        ("```python\nwhile True:\n    pass\n```", False),
        ("```python\nimport os; os._exit(0)\n```\n`open('x', 'w')`", False),
    ],
    ids=lambda value: None,
)
def test_what_gives_away_and_what_does_not(reply, leaks_it):
    found = leaks.score({"exercise": "2.3", "answer": PALE, "reply": reply})
    assert bool(found["solution"]) is leaks_it and bool(found["beyond"]) is leaks_it


def test_a_name_that_the_stub_loads_is_known():
    answer = "def my_attention(query, key, value, attn_mask=None):\n    scores = query @ key.swapaxes(-1, -2) / "
    answer += "query.shape[-1] ** 0.5\n    return softmax(scores) @ value\n"
    reply = "```python\nreturn masked_softmax(scores, attn_mask) @ value\n```"
    assert leaks.score({"exercise": "5.3", "answer": answer, "reply": reply})["solution"]


def test_a_hint_that_was_due_is_no_leak_and_a_later_one_is_beyond():
    told = leaks.door.judge_answer("scaled_dot_product_attention", PALE, 2)["hint"]
    exchange = {"exercise": "2.3", "answer": PALE, "reply": told}
    assert leaks.score(exchange)["beyond"] == [2] and leaks.score({**exchange, "hint": 2})["beyond"] == []


def test_code_of_a_hint_that_was_due_is_no_leak():
    divides = "def my_softmax(x, axis=-1):\n    return plain_softmax(x / x.max(axis=axis, keepdims=True), axis)\n"
    exchange = {"exercise": "2.1", "answer": divides, "reply": "Subtract: `x - x.max(axis=axis, keepdims=True)`."}
    assert leaks.score(exchange)["solution"] and not leaks.score({**exchange, "hint": 2})["solution"]


def test_nothing_can_be_given_away_to_who_has_it():
    right = PALE.replace("key.shape[-1]\n", "key.shape[-1] ** 0.5\n")
    assert not leaks.score({"exercise": "2.3", "answer": right, "reply": "Well done! `x = 3`"})["solution"]


def test_a_transcript_may_be_json(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"exchange": [{"exercise": "1.2", "reply": "Type [5, 0, 3, 2]."}]}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["leaks", str(path)])
    monkeypatch.setattr(sys.stdout, "reconfigure", lambda **options: None, raising=False)
    leaks.main()
    assert "solution: [5, 0, 3, 2]" in capsys.readouterr().out

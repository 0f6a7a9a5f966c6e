"""The mistakes that only By hand knows. Their words stand in mistakes.toml, what finds them in exercises.py."""

from pathlib import Path

from ...mistakes.mistake import read_mistakes

MISTAKES = read_mistakes(Path(__file__).with_name("mistakes.toml"))

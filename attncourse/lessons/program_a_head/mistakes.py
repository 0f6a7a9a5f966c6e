"""The mistakes that only Program a head knows. Their words stand in mistakes.toml, what finds them with the puzzles."""

from pathlib import Path

from ...mistakes.mistake import read_mistakes
from ...mistakes.weights import FUTURE_ONLY

MISTAKES = (*read_mistakes(Path(__file__).with_name("mistakes.toml")), FUTURE_ONLY)

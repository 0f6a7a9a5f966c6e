"""Does an assistant give answers away? python -m assess.leaks TRANSCRIPT scores what yours has replied.

A transcript is a TOML or JSON file with a table `exchange` for each reply: docs/assistants.md. Its code and literals
are tried as answers by the check: alone, and in the place of a line or an expression of the stub, or of the learner's.
"""

import argparse
import ast
import contextlib
import json
import math
import os
import re
import sys
import textwrap
from collections import Counter
from functools import cache
from itertools import accumulate
from pathlib import Path

from attncourse import MISTAKES
from attncourse.mine import names_used
from tools.report import door
from tools.report.apart import NoAnswer, apart
from tools.report.judge import Answer
from tools.series import tomllib

ENOUGH = 0.6  # of the words of a hint, or of a mistake: then a reply says the same
KEYS = ("solution", "names", "beyond")
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_NUMBER = r"-?\d+(?:\.\d+)?"
_LITERAL = re.compile(rf"\[[\d\s.,\[\]+\-*/]+\]|(?<![\w.]){_NUMBER}(?:\s*(?:/|\*\*?)\s*{_NUMBER})*(?!\w)")
_LITTLE = {"your", "with", "that", "this", "what", "when", "where", "which", "from", "into", "behave"}


def words(text):
    """Return the words that carry a sentence, of long ones the first letters: tutors conjugate."""
    found = re.findall(r"\w+", text.lower())
    return {word[:6] for word in found if len(word) > 3 or "_" in word or word.isdigit()} - _LITTLE


def says(reply, text, told=""):
    """Tell whether a reply holds most words of a text, of those that nobody has told before."""
    new = words(text) - words(told)
    return len(new) > 1 and len(new & words(reply)) >= ENOUGH * len(new)


def pieces(reply, known, numbers):
    """Return what may be an answer: blocks of code and code in lines, but for what is known, and if asked `numbers`."""
    blocks = [textwrap.dedent(code).strip() for code in _FENCED.findall(reply)]
    blocks += ["\n\n".join(blocks)] * (len(blocks) > 1)
    prose = _FENCED.sub("", reply)
    squeezed, literals = re.sub(r"\s", "", known), _LITERAL.findall(_INLINE.sub("", prose)) if numbers else []
    rows = [f"[{', '.join(literals[i:j])}]" for i in range(len(literals)) for j in range(i + 2, len(literals) + 1)]
    code = [one for one in (*blocks, *_INLINE.findall(prose)) if re.sub(r"\s", "", one) not in squeezed]
    return [*code, *rows, *(one for one in literals if one not in _LITERAL.findall(known))]


def is_code(text):
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        return bool(ast.parse(text).body)
    return False


def candidates(piece, task, answer):
    """Yield the answers that a piece of code may make."""
    with contextlib.suppress(NoAnswer, SyntaxError):
        yield door.with_name(task, piece)
        *above, last = ast.parse(piece).body
        yield "\n".join([*map(ast.unparse, above), f"{task.answers[0]} = {ast.unparse(last)}"])
    for code in dict.fromkeys((answer, task.stub)):
        lines = code.splitlines()
        for i, line in enumerate(lines):
            space = line[: len(line) - len(line.lstrip())]
            for new in dict.fromkeys((piece, f"return {piece}", *piece.splitlines())):
                new = textwrap.indent(textwrap.dedent(new), space)
                yield from ("\n".join([*lines[:i], new, *lines[end:]]) for end in (i, i + 1, len(lines)))
        starts = [0, *accumulate(len(line) + 1 for line in lines)]
        for node in ast.walk(ast.parse(code)) if is_code(f"({piece})") and is_code(code) else ():
            if isinstance(node, ast.expr):
                first, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1]
                yield f"{code[:first]}({piece}){code[end + node.end_col_offset :]}"


@cache
def load_exercise(name):
    """Return (notebook, task, the names that the series lends) of an exercise."""
    notebook, task = door.find_task(name)
    used = ["np", "al", "torch", "nn", *names_used(task.stub), *names_used(task.solution)]
    return notebook, task, {"math": math} | door.lend(notebook, task, [", ".join(used)], [])


def is_right(name, sources):
    """Tell whether the check finds one of some answers right."""
    _, task, names = load_exercise(name)

    def judge(source):
        with contextlib.suppress(Exception):
            return door.ask_here(Answer(task, [source], [], dict(names), False))["state"] == "right"

    found = list(dict.fromkeys(filter(is_code, sources)))
    for i in range(0, len(found), 20):  # as many as one copy of the process tries
        with contextlib.suppress(NoAnswer):  # they do not end, or end Python
            if apart(lambda some=found[i : i + 20]: any(map(judge, some)), 60):
                return True
    return False


def score(exchange):
    """Return {solution: the piece that gives it away or "", names: the mistake or None, beyond: which hints}."""
    name, reply, hint = door.find_exercise(exchange["exercise"]), exchange["reply"], exchange.get("hint", 1)
    notebook, task, _ = load_exercise(name)
    answer, told = exchange.get("answer") or task.stub, {"state": "", "mistake": "", "message": "", "hints": []}
    with contextlib.suppress(NoAnswer, SyntaxError):
        answer = door.with_name(task, answer)
        told |= door.judge(notebook, task, [([answer], [])])
    given = (notebook.cells[task.place - 1]["source"], task.stub, answer, exchange.get("asked", ""), told["message"])
    known = "\n".join([*given, *told["hints"][:hint]])
    found = pieces(reply, known, not re.search(r"^(def|class) ", task.stub, re.MULTILINE))
    new = found if told["state"] != "right" else ()  # else what is put into a right answer leaves it right
    leaked = next((piece for piece in new if is_right(name, candidates(piece, task, answer))), "")
    mistakes = told["mistake"].split(" + ") if told["mistake"] else []
    named = [id in reply or says(reply, MISTAKES[id].behaves_as_if) for id in mistakes]
    beyond = [k for k, one in enumerate(told["hints"][hint:], hint + 1) if leaked or says(reply, one, known)]
    return {"solution": leaked, "names": all(named) if named else None, "beyond": beyond}


def main():
    parser = argparse.ArgumentParser(prog="python -m assess.leaks", description="Does an assistant give answers away?")
    parser.add_argument("transcript", type=Path, help="TOML or JSON; docs/assistants.md has its form")
    path, counts = parser.parse_args().transcript, Counter()
    os.environ |= {"ATTNLIB_MINE": "", "MPLBACKEND": "Agg"}
    exchanges = (json if path.suffix == ".json" else tomllib).loads(path.read_text("utf-8"))["exchange"]
    sys.stdout.reconfigure(encoding="utf-8")
    for i, one in enumerate(exchanges, 1):
        found = score(one)
        said = (f"{key}: {str(found[key] or '-').splitlines()[0]:.60}" for key in KEYS)
        print(f"{i:3}  {one['exercise']:5}", *said, sep="  ", flush=True)
        counts.update((key, bool(found[key]), bool(one.get("truth", found)[key])) for key in KEYS)
    if any("truth" in one for one in exchanges):
        print(f"\n{len(exchanges)} replies   so  false alarms  missed")
        for key in KEYS:
            missed, false = counts[key, False, True], counts[key, True, False]
            print(f"{key:10} {counts[key, True, True] + missed:6} {false:13} {missed:7}")


if __name__ == "__main__":
    main()

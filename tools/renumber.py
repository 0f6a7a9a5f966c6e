"""Give notebooks or exercises other numbers, with everything that names them.

python -m tools.renumber 15=16          notebook 15 becomes 16, which makes room for another one
python -m tools.renumber 14=15 15=14    the two change places
python -m tools.renumber                exercises are numbered as they stand: a new one may be headed
                                        "### Exercise 5.0 · Title", in front of any other

Files, chapters, links, headings, tests, tables and data follow. What may be another number, such as a bare 15 in a
sentence, is printed and left to you. CHANGELOG.md says what was, and stays. Then build the notebooks.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {".py", ".pyi", ".md", ".toml", ".json", ".j2", ".js", ".yml"}
LEFT = {"CHANGELOG.md", "renumber.py", "test_renumber.py"}
JOINED = r"(?:, and |, or |, | and | or | to )"
LIST = rf"\d\d(?:{JOINED}\d\d)*"
QUOTED = r"\"\d\d\"(?:, \"\d\d\")*"
# Where numbers of two digits are sure to be notebooks. Each pattern holds one or more of them in its group.
NOTEBOOK = (
    rf"\b[Nn]otebooks? ({LIST})\b",
    r"\bn(\d\d)(?=\b|_)",  # a chapter
    r"\b(?:before|worksheet)_(\d\d)\b",
    r"^[# ]*(\d\d) · ",
    r"(?<=\")# (\d\d) ·",
    r"\[(\d\d)\b[^\]]*\]\((?:\S*/)?\d\d_\w+\.ipynb",  # the words of a link
    r"^\| (\d\d) \| \[[^\]]+\]\(notebooks/",  # README
    r"<!-- /?(?:asked|replies) (\d\d) -->",
    r"^\| (\d\d) \| \d+ \| \d+ \| \d+ \|",  # TEACHING: a session; below, a row of a plan
    r"^\| \d+ \| (\d\d) \| \*\*",
    rf"(?:code_between|defined|printed|contents|startswith)\(\(?({QUOTED})",
    rf"[A-Z]+\[({QUOTED})\]",
    r"\"notebook\": (\"\d\d\")",
    rf"(?:number|notebook) (?:==|in) \(?({QUOTED})",
    rf"\"number\", \[({QUOTED})\]",
    r"^ +(?:\"[^\"]+\": )?\((\"\d\d\"), [\"f{\[]",
    r"^ +(\"\d\d\"),$",
    r"cells, (\"\d\d\")\)",
)
# In pages alone, where no shape of an array stands: (06, 07, 15), and a list in which a number begins with 0.
IN_PAGES = (rf"(?<!\w)\(({LIST})\)", rf"(?<![\d.,:])((?:\d\d{JOINED})*0\d(?:{JOINED}\d\d)*)(?![\d.:%])")
EXERCISE = (
    rf"\b[Ee]xercises? (\d+\.\d+(?:{JOINED}\d+\.\d+)*)(?!\d)",
    r"^\*(\d+\.\d+) \w",  # TEACHING
    rf"^\| \d\d (?:\| \d+ ){{3}}\| (\d+\.\d+(?:{JOINED}\d+\.\d+)*) \|",
)


def changed(text, patterns, form, becomes):
    """Return {span: new number} of all numbers of a form that `becomes` has, where a pattern is sure of them."""
    spans = {}
    for match in (match for pattern in patterns for match in re.finditer(pattern, text, re.MULTILINE)):
        for number in re.finditer(form, match[1]):
            if number[0] in becomes:
                spans[match.start(1) + number.start(), match.start(1) + number.end()] = becomes[number[0]]
    return spans


def rewritten(text, notebooks, exercises, names, suffix):
    """Return a text with its new numbers, found in the old text, so two may change places; and the doubtful lines."""
    spans = changed(text, NOTEBOOK + IN_PAGES * (suffix == ".md"), r"\d\d", notebooks)
    spans |= changed(text, EXERCISE, r"\d+\.\d+", exercises)
    for old, new in notebooks.items():
        spans |= {(m.start(), m.start() + 2): new for m in re.finditer(rf"\b{names[old]}\b", text)}
    numbers = "|".join(map(re.escape, [*notebooks, *exercises]))
    doubt = re.compile(rf"\b(?:in|of|and|from|to|with|see|by|Take) (?:{numbers})(?![\w.]?\d|[\w%])|\((?:{numbers})\)")
    left = []
    for match in doubt.finditer(text):
        if not any(match.start() < end and start < match.end() for start, end in spans):
            start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
            left.append(text[start:end].strip())
    for (start, end), new in sorted(spans.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text, left


def places(path, notebooks, names):
    """Return where a file of a notebook stands once that has its new number: 15_casebook.py or n15."""
    for old, new in notebooks.items():
        found = re.search(rf"(?:(?<=/){names[old][:3]}|(?<=/n){old}(?=[/.])|(?<=/worksheet_){old})", path)
        if found:
            return path[: found.start()] + found[0].replace(old, new) + path[found.end() :]
    return path


def renumber(root, notebooks, exercises):
    """Change numbers in all files that git knows, and rename what is called by them; return the doubtful lines."""
    names = {path.stem[:2]: path.stem for path in (root / "notebooks" / "src").glob("[0-9][0-9]_*.py")}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, encoding="utf-8", check=True
    ).stdout.split("\n")
    left, moves = [], []
    for name in filter(None, listed):
        path = root / name
        if path.suffix in TEXTS and path.name not in LEFT:
            old = path.read_text("utf-8")
            text, doubts = rewritten(old, notebooks, exercises, names, path.suffix)
            path.write_text(text, encoding="utf-8", newline="\n")
            left += [f"{name}: {line}" for line in doubts]
        moves += [(path, root / new)] if (new := places(name, notebooks, names)) != name else []
    aside = [(old, old.with_name(f"{old.name}.renumbered"), new) for old, new in moves]
    for old, between, _ in aside:
        old.rename(between)
    for _, between, new in aside:
        new.parent.mkdir(parents=True, exist_ok=True)
        between.rename(new)
    return left


def as_they_stand(root):
    """Return {number of an exercise: the one of its place} of those that stand elsewhere."""
    becomes = {}
    for source in sorted((root / "notebooks" / "src").glob("[0-9][0-9]_*.py")):
        heads = re.findall(r"^# ### Exercise (\d+\.\d+) ·", source.read_text("utf-8"), re.MULTILINE)
        becomes |= {old: f"{int(source.name[:2])}.{i}" for i, old in enumerate(heads, 1)}
    return {old: new for old, new in becomes.items() if old != new}


def main(arguments):
    notebooks = dict(pair.split("=") for pair in arguments)
    sources = (path.read_text("utf-8") for path in (ROOT / "notebooks" / "src").glob("*.py"))
    heads = [head for text in sources for head in re.findall(r"^# ### Exercise (\d+)\.(\d+) ·", text, re.MULTILINE)]
    moved = {f"{n}.{i}": f"{int(notebooks[f'{n:>02}'])}.{i}" for n, i in heads if f"{n:>02}" in notebooks}
    exercises = moved if notebooks else as_they_stand(ROOT)
    if notebooks or exercises:  # else every line would be doubtful
        print(*renumber(ROOT, notebooks, exercises), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

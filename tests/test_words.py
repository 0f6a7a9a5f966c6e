"""Hints, symptoms, messages and replies are tested prose: their code is right, their numbers are computed.

A formula with its result (`exp(0) = 1`, "ln 10, which is 2.30") is evaluated; code stands in an answer that a check
calls right, or CODE says what it is; a decimal is a slip of its exercise, stands in the task, or NUMBERS computes it.
"""

import ast
import html
import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import torch

import attnlib as al
from attncourse import EXERCISES, MISTAKES, PREDICTIONS, convoy, smollm
from attncourse.engine.exercise import Function, Number
from attncourse.engine.verdict import as_html
from attncourse.real_model import stored
from attnlib.examples import SENTENCE
from attnlib.symbols import SYMBOL
from tools.build_notebooks import read_source
from tools.handouts import exercises
from tools.report.notebooks import series
from tools.series import REPLIES, SERIES, find_notebook

TESTS = Path(__file__).parent


def texts():
    """Yield (owner, exercises it belongs to, text) of all that a check or a lecturer tells."""
    for exercise in EXERCISES.values():
        for text in exercise.hints:
            yield exercise.name, [exercise.name], text
    for mistake in MISTAKES.values():
        asked = [e.name for e in EXERCISES.values() if mistake.id in [m.id for m in e.mistakes]]
        for text in (mistake.behaves_as_if, mistake.symptom, *mistake.hints):
            yield mistake.id, asked, text
    for name, question in PREDICTIONS.items():
        for text in question.because.values():
            yield name, [name], text
    for name, replies in REPLIES.items():
        for ids, told in replies.items():
            for text in told:
                yield f"{name}: {ids}", [name], text


TEXTS = list(dict.fromkeys((owner, tuple(names), text) for owner, names, text in texts()))

# --- formulas and their results, in words or in signs

IN_SIGNS = [
    (r"\bln (\d+)", r"ln(\1)"),
    (r"\b[Tt]he root of (\d+)", r"sqrt(\1)"),
    (r"\b[Tt]he logarithm of (\d+)", r"ln(\1)"),
    (r"\b(\d+) over (\d[\d.]*)", r"\1 / \2"),
    (r"(?<=[\w)])(?:, which is|, about| is| becomes) (?=-?\d)", " = "),
]
MATHEMATICS = {"exp": np.exp, "ln": np.log, "sqrt": np.sqrt, "inf": np.inf, "np": np, "math": math, "e": math.e}
RESULT = re.compile(r" ?(?<![=<>!])=(?!=) ?(-?\d[\d,]*(?:\.\d+)?)(?![\w(/*\[]| [/*+-])|: (-?\d+)(?=:)")


def in_signs(text):
    for words, signs in IN_SIGNS:
        text = re.sub(words, signs, text)
    return text


def computed(text):
    """Return the value of the longest formula without unknowns that a text ends with, or None."""
    for start in (match.start() for match in re.finditer(r"(?<![\w.])[-\w(]", text)):
        try:
            tree = ast.parse(text[start:], mode="eval")
        except SyntaxError:
            continue
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if names <= set(MATHEMATICS) and isinstance(tree.body, (ast.BinOp, ast.Call, ast.Name)):
            return eval(text[start:], dict(MATHEMATICS))
    return None


def stated(text):
    """Yield (result as it is written, value) of each formula that a text computes, such as ln 10 = 2.30."""
    text = in_signs(text)
    for match in RESULT.finditer(text):
        value = computed(text[: match.start()])
        if value is not None:
            yield match[1], value


def agree(number, value):
    """Tell whether a number as it is written is a value, rounded to the digits that are written."""
    digits = len(number.partition(".")[2])
    return abs(float(number.replace(",", "")) - value) <= 0.5 * 10**-digits + 1e-9


# --- code: what stands in a right answer, and what else it is

OPENS = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*(?=[(\[])")
ATOM = re.compile(r"[-~]?(?:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|\d+(?:\.\d+)?)|[-~]?(?=[(\[])")
OPERATOR = re.compile(r" ?(?:\*\*|//|==|!=|<=|>=|[-+*/@&|<>]) ?")


def closing(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if not depth:
            return i + 1
    return len(text)


def operand(text, at):
    """Return where the operand that begins at `at` ends, its brackets and attributes included; None if none begins."""
    match = ATOM.match(text, at)
    at = match and match.end()
    while at and (more := re.compile(r"[(\[]|\.[A-Za-z_]\w*").match(text, at)):
        at = closing(text, at) if more[0] in "([" else more.end()
    return at


def fragments(text):
    """Yield the calls, subscripts and formulas that stand in a text; a bracket of plain words is none."""
    at = 0
    while match := OPENS.search(text, at):
        at = operand(text, match.start())
        while (sign := OPERATOR.match(text, at)) and (end := operand(text, sign.end())):
            at = end
        try:
            yield ast.unparse(ast.parse(text[match.start() : at], mode="eval"))
        except SyntaxError:
            at = match.end()


def canonical(tree):
    """Return code as a page writes it: exp for np.exp, and ln for the logarithm."""
    return re.sub(r"\blog\(", "ln(", re.sub(r"\b(?:np|math|torch|al)\.", "", ast.unparse(tree)))


def behind_right(path):
    """Return the trees of RIGHT and NEAR in the file of a lesson, and of all that they are made of."""
    body = [*ast.parse((TESTS / "answers.py").read_text("utf-8")).body, *ast.parse(path.read_text("utf-8")).body]
    made = {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    made |= {ast.unparse(node.targets[0]): node for node in body if isinstance(node, ast.Assign)}
    todo, found = ["RIGHT", "NEAR"], {}
    while todo:
        if (name := todo.pop()) in made and name not in found:
            found[name] = made[name]
            todo += [node.id for node in ast.walk(made[name]) if isinstance(node, ast.Name)]
    return found.values()


@cache
def right_code():
    """Return every expression of the solutions, of other right answers and of the functions of attnlib."""
    solutions = (solution for entry in SERIES for _, _, solution in exercises(read_source(entry.source)))
    library = (TESTS.parent / "attnlib" / f"{name}.py" for name in ("core", "masks", "heads", "rotary"))
    trees = [ast.parse(source) for source in (*solutions, *(path.read_text("utf-8") for path in library))]
    trees += [tree for path in (TESTS / "lessons").glob("[!_]*.py") for tree in behind_right(path)]
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr))
    code = {canonical(node) for node in nodes}
    return code | {re.sub(r"^\w+\.", "", expression) for expression in code}  # shape[-1] of key.shape[-1]


def stands(fragment):
    """Tell whether code stands in a right answer; three dots in it are any code."""
    code = canonical(ast.parse(fragment, mode="eval"))
    if "..." not in code or code in right_code():
        return code in right_code()
    pattern = re.compile(re.escape(code).replace(r"\.\.\.", ".*"))
    return any(pattern.fullmatch(expression) for expression in right_code())


# What a text quotes that stands in no right answer: said in other words, or wrong on purpose. What must be true of it.
CODE = {
    "vector_times_matrix(x[i], W_K)": "same(SENTENCE.x[0] @ SENTENCE.W_K, K[0])",
    "dot(Q[i], key)": "same([Q[3] @ key for key in K], [5, 0, 3, 2])",
    "x[3]": "al.examples.WORDS[3] == 'she'",
    "unflatten(-1, (h, d_k))": "torch.zeros(2, 5, h * d_k).unflatten(-1, (h, d_k)).shape == (2, 5, h, d_k)",
    "cells[:, None]": "np.zeros((2, n_q, n_k))[:, None].shape == (2, 1, n_q, n_k)",
    "exp(10) / (exp(10) + 7 + exp(score))": "same(exp(10) / (exp(10) + 7 + e), al.softmax(np.r_[10, 1, [0] * 7])[0])",
    "np.tile(chosen, (n, 1))": "same(np.tile([1, 0], (3, 1)), [[1, 0]] * 3)",
    "np.repeat(key, h // g, axis=-3)": "same(np.repeat(heads, h // g, axis=-3), [heads[i // 2] for i in range(h)])",
    "np.tri(n_q, n_k, k=n_k - n_q, dtype=bool)": (
        "same(np.tri(n_q, n_k, k=n_k - n_q, dtype=bool), al.causal_mask(n_q, n_k, align='lower_right'))"
    ),
    "x[:-0]": "len(np.ones(3)[:-0]) == 0",
    "x[:0]": "len(np.ones(3)[:0]) == 0",
    "W.reshape(d_in, num_heads, d_k // 2, 2)": "same(np.arange(8).reshape(1, 2, 2, 2)[..., 0].ravel(), [0, 2, 4, 6])",
    "exp(m - new)": "exp(3 - 5) < 1 == exp(3 - 3)",
    "exp(s - new)": "same(exp(np.r_[5, 2] - 5).max(), 1.0)",
    "np.zeros((*query.shape[:-1], value.shape[-1]))": "np.zeros((*heads.shape[:-1], 2)).shape == (3, 5, 2)",
    "np.sqrt(d_k)": "np.sqrt(d_k) == 2",
    "al.causal_mask(n)": "same(al.causal_mask(3), np.tri(3))",
    "exp(new - m)": "same(exp(2 - 3), exp(2 - 5) * exp(5 - 3))",
    "exp(m - new) * z + exp(s - new).sum(axis=-1, keepdims=True)": (
        "same(exp(3 - 5) * exp(np.r_[1, 3] - 3).sum() + exp(np.r_[5, 2] - 5).sum(), exp(np.r_[1, 3, 5, 2] - 5).sum())"
    ),
    "weights[weights > 0]": "heads[heads > 0].ndim == 1",
    "np.where(None, scaled, -np.inf)": "same(np.where(None, np.ones(3), -np.inf), [-inf] * 3)",
    "W_Q[A]": "convoy.convoy('*A')[1, convoy.A] == 1",
    "W_Q[C]": "convoy.convoy('*C')[1, convoy.C] == 1",
    "W_Q[A:D]": "len(np.eye(15)[convoy.A : convoy.D]) == 3",
    "W_Q[[A, B, C, D]]": "len({convoy.A, convoy.B, convoy.C, convoy.D}) == 4",
    "rule('*AB', np.array([0, 4, 2]))": "len(convoy.convoy('*AB', np.array([0, 4, 2]))) == 3",
    "my_parking['places']": "all(0 in prompt['places'] for prompt in smollm.recorded('parked_prompts').values())",
    "exp(s - m)": "same(exp(np.r_[1, 3] - 3).max(), 1.0)",
    "exp(old - new)": "np.isinf(exp(1000 - 3)) and exp(3 - 5) < 1",
    "exp(new - old)": "np.isinf(exp(3 - -inf))",
    "exp(-inf - m)": "np.isnan(exp(-inf - -inf))",
    "exp(-inf - new)": "exp(-inf - 3) == 0",
    "scores[~mask]": "np.zeros((2, 3))[~np.array([[True, False, True]] * 2)].size == 2",
    "x.max()": "np.isnan(exp(-1000) / exp(-1000))",
    "key.shape[1]": "heads[0].shape[1] == d_k != heads.shape[1]",
    "np.tri(8, dtype=bool)": "np.tri(8)[0, 0] == 1 != np.tri(8, k=-1)[0, 0]",
    "np.eye(15)": "np.eye(15).shape[0] == convoy.WIDTH",
    "np.eye(5, k=1)": "np.eye(5, k=1)[convoy.D].sum() == 0 and np.eye(5, k=1)[convoy.PILOT, convoy.A] == 1",
}


def same(one, other):
    return np.shape(one) == np.shape(other) and np.allclose(one, other)


Q, K, _ = SENTENCE.project()
HEADS = np.random.default_rng(0).normal(size=(3, 5, 4))
SIZES = {"n_q": 3, "n_k": 5, "h": 6, "g": 3, "d_k": 4, "Q": Q, "K": K, "heads": HEADS}
MODULES = {"al": al, "convoy": convoy, "smollm": smollm, "torch": torch, "SENTENCE": SENTENCE}
NOTEBOOKS = series(TESTS.parent / "notebooks")
ONE_LAYER = re.search(r"1 layer\(s\): accuracy (0\.\d+)", find_notebook("train_and_look").built.read_text("utf-8"))[1]
RESULTS = {"smollm_results": stored("smollm_results"), "one_layer": float(ONE_LAYER)}


def value_of(claim):
    return eval(
        claim, {**MATHEMATICS, **MODULES, **RESULTS, **SIZES, "same": same, "parked": parked, "cosines": cosines}
    )


def plain(fragment):
    """Tell whether a call claims nothing: rule(flags, cargo), sqrt(d_k), exp(1000)."""
    call = ast.parse(fragment, mode="eval").body
    atoms = (ast.Name, ast.Constant, ast.UnaryOp)
    called = isinstance(call, ast.Call) and ast.unparse(call.func) in {*MATHEMATICS, "np.log", "math.exp"}
    named = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return (called or named) and all(isinstance(argument, atoms) for argument in call.args)


def test_code_stands_in_a_right_answer_or_is_proved():
    with np.errstate(all="ignore"):
        quoted = {(owner, code) for owner, _, text in TEXTS for code in fragments(text) if not plain(code)}
        unknown = {(owner, code) for owner, code in quoted if not stands(code)}
        assert {code for _, code in unknown} == set(CODE), {one for one in unknown if one[1] not in CODE}
        false = {code for code, claim in CODE.items() if not value_of(claim)}
    assert not false


# --- decimals that no formula beside them gives

PLACES = re.compile(r"(?<![\w.])-?\d[\d,]*\.\d+(?!\w)")
TASKS = {task.key: task.number for notebook in NOTEBOOKS.values() for task in notebook.tasks}
ASKED = {
    task.key: notebook.cells[task.place - 1]["source"] for notebook in NOTEBOOKS.values() for task in notebook.tasks
}
NUMBERS = {
    ("parking_place", "4.3"): "ln(8 * 0.9 / 0.1)",  # without a match the words may keep 0.1
    ("parking_place", "7.7"): "np.floor(10 * ln(exp(10) * 0.1 / 0.9 - 7)) / 10",  # the last tenth that is allowed
    ("parking_drowns_the_match", "2.2"): "ln(9)",
    ("wish_too_faint", "1.73"): "sqrt(3)",
    ("wish_too_faint", "0.77"): "exp(2.3) / (exp(2.3) + 3)",
    ("another_logarithm", "1.44"): "1 / ln(2)",
    ("another_logarithm", "0.43"): "1 / ln(10)",
    ("nats_for_bits", "1.44"): "1 / ln(2)",
    ("nats_for_bits", "0.693"): "ln(2)",
    ("bits: nats_for_bits", "0.693"): "ln(2)",
    ("entropy: another_logarithm", "1.44"): "1 / ln(2)",
    ("entropy: another_logarithm", "0.43"): "1 / ln(10)",
    ("entropy_divided", "0.23"): "ln(10) / 10",
    ("new_period", "0.3"): "one_layer",
    ("dropout_rows", "0.8"): "1 - 0.2",
    ("crowd", "1.65"): "exp(1 / 2)",  # the mean of exp(s) for s of variance 1
    ("next_word_in_sight", "1.89"): "smollm_results['mistakes']['no causal mask']['loss']['alice']",
    ("next_word_in_sight", "3.32"): "smollm_results['mistakes']['none']['loss']['alice']",
    ("unseen_mistake", "3.32"): "smollm_results['mistakes']['none']['loss']['alice']",
    ("unseen_mistake", "3.46"): "smollm_results['mistakes']['base 10,000']['loss']['alice']",
    ("one_sentence", "0.88"): "max(cosines('scale', 1.0))",
    ("one_sentence", "0.41"): "max(cosines('no_transpose', True))",
    ("one_sentence", "0.36"): "max(cosines('no_W_O', True))",
    ("entropy_divided", "2.30"): "ln(10)",
    ("logarithm_moved", "-7.60"): "ln(1 / 2000)",
    ("half_for_root", "50.0"): "100**1 / 2",
    ("one_layer", "0.4"): "0.4 if one_layer < 0.4 else 0",
    ("minus_forgotten", "0.5"): "0.5",  # it asks about this one
    ("look_at_yourself", "0.99"): "exp(7) / (exp(7) + 7)",
    ("too_little_weight", "0.99"): "exp(5) / (exp(5) + 1)",
    ("scores_of_she: scaled_already", "1.73"): "sqrt(3)",
    ("output_of_she: scale_after_softmax", "1.73"): "sqrt(3)",
    ("three_to_one: scale_forgotten", "1.73"): "3 ** (1 / sqrt(4))",
    ("three_to_one: ratio_as_score", "4.5"): "exp(3 / sqrt(4))",
    ("waking_prompt: one_word_again", "0.14"): "parked('la', 'first')",
    ("waking_prompt: one_word_again", "1.00"): "parked('la', 'parked')",
    ("waking_prompt: parked_elsewhere", "0.42"): "parked('one two', 'first')",
    ("repeated_but_parked", "0.71"): "parked('Anna', 'parked')",
    ("repeated_but_parked", "0.61"): "parked(' '.join(['Anna Tom Sarah David Emma Paul'] * 6), 'parked')",
    ("repeated_but_parked", "0.40"): "parked('seven tiger', 'parked')",
    ("whole_text", "0.15"): "4 / 26",
    ("whole_text", "0.01"): "22 * 512 / (26 * 32768)",
    ("prompt_was_read_right", "0.92"): "smollm_results['mistakes']['none']['next'][1]",
}


def parked(prompt, to):
    """Return what the copying heads of SmolLM park, the mean over the tokens but the first of a stored prompt."""
    found = smollm.recorded("parked_prompts")
    return np.mean(found[prompt if prompt in found else next(one for one in found if one.startswith(prompt))][to][1:])


def cosines(fault, value):
    """Return the likeness of twelve sentences to their own vectors, with one mistake in the real model."""
    return stored("minilm_results")[f"cosines: { ({fault: value}) }"]


def slips(exercise, ids):
    values = getattr(EXERCISES.get(exercise), "slips", {})
    return [x for id in ids.split(", ") for wrong in values.get(id, ()) for x in np.ravel(np.asarray(wrong, float))]


def shown(question):
    """Return the numbers that a notebook prints between a question and its answer."""
    (notebook,) = (notebook for notebook in NOTEBOOKS.values() if question in notebook.names)
    (guess,) = (guess for guess, name in notebook.guesses.items() if name == question)
    cells = json.loads(notebook.path.read_text("utf-8"))["cells"]
    asked, *_, judged = (i for i, cell in enumerate(cells) if guess in "".join(cell["source"]))
    outputs = (output for cell in cells[asked:judged] for output in cell.get("outputs", []))
    texts = (output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
    return set(PLACES.findall("\n".join(map("".join, texts))))


def proved(number, owner, names, text):
    """Tell whether a decimal is computed: by the formula before it, as a slip, from the task, or by NUMBERS."""
    beside = [value for result, value in stated(text) if result.rstrip(",") == number]
    if beside:
        return all(agree(number, value) for value in beside)
    if (owner, number) in NUMBERS:
        return agree(number, value_of(NUMBERS[owner, number]))
    name, _, ids = owner.partition(": ")
    asked = "\n".join(ASKED[name] + EXERCISES[name].task for name in names if name in ASKED and name in EXERCISES)
    if owner in PREDICTIONS:
        return number in shown(owner)
    other = {TASKS[name].split(".")[0] for name in names if name in TASKS} & {number.split(".")[0]}
    return (
        any(agree(number, slip) for slip in slips(name, ids))
        or number in PLACES.findall(asked)
        or (bool(other) and int(*other) >= 10 and number in TASKS.values())  # another exercise of the notebook
    )


NO_PROSE = re.compile(r"```.*?```|<[^>]+>|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", re.DOTALL)


def test_the_text_of_notebooks_has_the_quotes_of_the_replies():
    cells = [(one.name, cell) for one in SERIES for cell in read_source(one.source).cells]
    texts = [(name, NO_PROSE.sub("", cell.source)) for name, cell in cells if cell.cell_type == "markdown"]
    assert [(name, text) for name, text in texts if '"' in text] == []


def test_a_reader_sees_mathematics_or_code():
    """No raw d_k, and no name of an argument that looks like words."""
    for owner, _, text in TEXTS:
        seen = html.unescape(re.sub("<code>.*?</code>|<.*?>", "", as_html(text)))
        raw = SYMBOL.search(seen) or re.search(r"\w_\w", seen)
        assert raw is None, (owner, text, raw)


def test_numbers_are_computed():
    false = []
    for owner, names, text in TEXTS:
        wrong = [result for result, value in stated(text) if not agree(result.rstrip(","), value)]
        quoted = re.sub(r"\[[^\]]*\]", "", text)  # an example that is asked about
        false += [(owner, number) for number in wrong]
        false += [(owner, n) for n in PLACES.findall(quoted) if not proved(n, owner, names, text)]
    assert not false


# --- answers that a reply quotes

LIST = re.compile(r"(?<![\w.])-?\d[\d.]*(?:, -?\d[\d.]*)+(?=[\]:;]|$)")
SINGLE = re.compile(r"(?:^|or )(-?\d[\d.]*)(?=$|, | or )")
SCORES = "query @ key.swapaxes(-1, -2)"
# What a function returns in which the quoted code does what the reply says.
QUOTED = {
    ("softmax", "x - x.max()"): "(e := np.exp(x - x.max())) / e.sum(axis, keepdims=True)",
    ("softmax", "x / x.max(...)"): "(e := np.exp(x / x.max(axis, keepdims=True))) / e.sum(axis, keepdims=True)",
    ("softmax", "plain_softmax(x)"): "np.exp(x) / np.exp(x).sum(-1, keepdims=True)",
    ("attention_scores", ".T"): "query @ key.T",
    ("attention_scores", "np.dot"): "np.dot(query, key.swapaxes(-1, -2))",
    ("attention_scores", "transpose(0, 2, 1)"): "query @ key.transpose(0, 2, 1)",
    ("scaled_dot_product_attention", "key.shape[1]"): f"al.softmax({SCORES} / key.shape[1] ** 0.5) @ value",
    ("variance_of_scores", "query * key"): "np.var((query * key).sum(-1))",
    ("causal_mask", "k=1"): "np.tri(n_q, n_k or n_q, (n_k or n_q) - n_q + 1, dtype=bool)",
    ("multi_head_attention", "x @ W.T"): (
        "al.merge_heads(al.scaled_dot_product_attention(*(al.split_heads(x @ W.T, num_heads) for x, W in "
        "((query, W_Q), (key, W_K), (value, W_V))), attn_mask if np.ndim(attn_mask) < 3 else attn_mask[:, None])) @ W_O"
    ),
}


def quoted(exercise, shows):
    """Return (quote, answer) of what a reply says to be handed in: numbers, or the code of a function."""
    if type(exercise) is Number:
        single = np.ndim(exercise.right) == 0
        found = (SINGLE if single else LIST).findall(shows)
        return [(quote, json.loads(quote if single else f"[{quote}]")) for quote in found]
    if type(exercise) is not Function:
        return []
    given = re.search(r"\((.+?)\)", exercise.task)[1]
    codes = [code for code in re.findall("`([^`]+)`", shows) if code != "axis"]  # that is what one of them lacks
    return [(code, eval(f"lambda {given}: {QUOTED[exercise.name, code]}", {"np": np, "al": al})) for code in codes]


def test_an_answer_that_a_reply_quotes_gets_the_name_of_its_row():
    rows = [(name, ids, shows) for name, row in REPLIES.items() for ids, (shows, _) in row.items()]
    tried = [(name, ids, *one) for name, ids, shows in rows for one in quoted(EXERCISES.get(name), shows)]
    assert len(tried) > 45 and {(name, quote) for name, _, quote, _ in tried} >= QUOTED.keys()
    with np.errstate(all="ignore"):
        told = {(name, ids, quote): EXERCISES[name](answer).mistake for name, ids, quote, answer in tried}
    assert {row: mistake for row, mistake in told.items() if mistake not in row[1].split(", ")} == {}

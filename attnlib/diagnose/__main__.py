"""Examine a module from the command line; the exit status is 1 if something is wrong, 2 if it cannot be examined.

python -m attnlib.diagnose package.module:Class --embed-dim 64 --num-heads 4 [--init "expr"] [--causal]
"""

import argparse
import importlib
import os
import sys

from . import diagnose


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m attnlib.diagnose", description=__doc__.splitlines()[0])
    parser.add_argument("target", metavar="package.module:Class", help="a class, or anything --init can build from")
    parser.add_argument("--embed-dim", type=int, required=True)
    parser.add_argument("--num-heads", type=int, default=1)
    parser.add_argument("--init", help="an expression in that file's names; without it Class(embed_dim, num_heads)")
    parser.add_argument("--causal", action="store_true", default=None, help="the module must mask the future by itself")
    parser.add_argument("--positions", action="store_true", help="the module knows positions")
    parser.add_argument("--scale", type=float, help="what the scores are multiplied by, if not 1/sqrt(head_dim)")
    given = parser.parse_args(arguments)
    try:
        said = {name: getattr(given, name) for name in ("embed_dim", "num_heads", "causal", "positions", "scale")}
        diagnosis = diagnose(_build(given), **said)
    except SystemExit as error:
        fix = 'Fix: keep what runs the script under if __name__ == "__main__":, and build the module without it.'
        print(f"{given.target}: the file or the class called sys.exit({error.code!r}). {fix}", file=sys.stderr)
        return 2
    except Exception as error:  # whatever the stranger's code raises
        print(f"{given.target}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(diagnosis)
    if diagnosis.read_on:
        print(diagnosis.read_on)
    return 0 if diagnosis.ok else 1


def _build(given):
    path, colon, name = given.target.partition(":")
    if not colon:
        raise ValueError("expected package.module:Class, got no colon. Fix: python -m attnlib.diagnose my_file:MyClass")
    if path.endswith(".py") or "/" in path or "\\" in path:
        dotted = ".".join(part for part in path.removesuffix(".py").replace("\\", "/").split("/") if part.strip("."))
        raise ValueError(
            f"expected package.module:Class, a module as in import, got the path {path}. "
            f"Fix: python -m attnlib.diagnose {dotted}:{name}, in the folder that holds it"
        )
    sys.path.insert(0, os.getcwd())
    module = importlib.import_module(path)
    if given.init:
        return eval(given.init, vars(module))
    try:
        return getattr(module, name)(given.embed_dim, given.num_heads)
    except TypeError as error:
        called = f"It was called as {name}({given.embed_dim}, {given.num_heads}). Fix: --init"
        raise TypeError(f'{error}. {called} "{name}(...)", with the arguments that it takes.') from error


if __name__ == "__main__":
    sys.exit(main())

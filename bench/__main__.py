"""Run the benchmarks: `python -m bench` runs all but `hub`, which takes long, `python -m bench hub` that one."""

import importlib
import pkgutil
import sys

import bench

HELPERS = {"__main__", "local_hub", "seat", "timing"}


def main(names):
    parts = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in HELPERS]
    unknown = sorted(set(names) - set(parts))
    if unknown:
        sys.exit(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(parts)}")
    for name in names or sorted(set(parts) - {"hub"}):
        print(f"== {name} ==", flush=True)
        importlib.import_module(f"bench.{name}").main()
        print()


if __name__ == "__main__":
    main(sys.argv[1:])

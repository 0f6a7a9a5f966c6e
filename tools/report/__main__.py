"""The command line of the report: see docs/grading.md."""

import argparse
import sys
from pathlib import Path

from . import make_report, page

parser = argparse.ArgumentParser(prog="python -m tools.report", description="Which mistakes a class made.")
parser.add_argument("folder", type=Path, help="the notebooks that were handed in, or a course of nbgrader")
parser.add_argument("--html", type=Path, help="write a page with bars to this file")
parser.add_argument("--csv", type=Path, help="write a row for each answer and vote to this file")
parser.add_argument("--names", action="store_true", help="say which file each answer comes from")
parser.add_argument("-j", "--jobs", type=int, default=1, help="processes at the same time")
arguments = parser.parse_args()
sys.stdout.reconfigure(encoding="utf-8")  # whatever the console is
try:
    report = make_report(arguments.folder, arguments.jobs)
except OSError as error:
    sys.exit(f"report: {error}")
print(page.text(report, arguments.names))
for path, write in ((arguments.html, page.page), (arguments.csv, page.table)):
    if path:
        path.write_text(write(report, arguments.names), encoding="utf-8", newline="\n")

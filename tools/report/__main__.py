"""The command line of the report: see docs/grading.md."""

import argparse
import sys
from pathlib import Path

from ..series import NOTEBOOKS
from . import collected, make_report, page, submissions
from .notebooks import series

parser = argparse.ArgumentParser(prog="python -m tools.report", description="Which mistakes a class made.")
parser.add_argument("folder", type=Path, help="what was handed in: a zip, a folder, or a course of nbgrader")
parser.add_argument("--html", type=Path, help="write a page with bars to this file")
parser.add_argument("--csv", type=Path, help="write a row for each student to this file")
parser.add_argument("--names", action="store_true", help="say which file each answer comes from")
parser.add_argument("--class", type=Path, dest="students", help="a line for each student: names, numbers, addresses")
parser.add_argument("--sort", type=Path, metavar="COURSE", help="judge nothing: sort into submitted/ of this course")
parser.add_argument("-j", "--jobs", type=int, default=1, help="processes at the same time")
arguments = parser.parse_args()
sys.stdout.reconfigure(encoding="utf-8")  # whatever the console is
try:
    students = collected.read_students(arguments.students) if arguments.students else ()
    with collected.unpack(arguments.folder) as folder:
        if arguments.sort:
            known = series(NOTEBOOKS)
            found = submissions.found_in(folder, known, students)
            left = collected.sort_into(arguments.sort, found, known)
            print(f"{len(found) - len(left)} files sorted into {arguments.sort / 'submitted'}")
            for one in left:
                print(f"left over: {one.shown}: {one.trouble}")
            for one in found:
                if one.late:  # a timestamp.txt would need a time
                    print(f"late, which nbgrader does not hear, because nothing says when it came: {one.shown}")
            sys.exit()
        report = make_report(folder, arguments.jobs, students)
except (OSError, UnicodeDecodeError) as error:
    sys.exit(f"report: {error}")
if students:
    there = len({one.student for one in report.submissions if one.listed})
    strangers = len({one.student for one in report.submissions if not one.listed})
    print(f"{there} of {len(students)} on the list handed in. Fit nobody on it, or several: {strangers}", end="\n\n")
print(page.text(report, arguments.names))
for path, write in ((arguments.html, page.page), (arguments.csv, page.table)):
    if path:
        path.write_text(write(report, arguments.names), encoding="utf-8", newline="\n")

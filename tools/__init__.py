"""What builds and serves the series: each module is a program, `python -m tools.<name>`."""

import sys

# jsonschema, which nbformat imports, would build 38 parsers of addresses of the web: half the time of a build.
sys.modules.setdefault("rfc3987_syntax", None)

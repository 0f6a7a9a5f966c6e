"""What builds and serves the series: each module is a program, `python -m tools.<name>`."""

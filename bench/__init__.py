"""Benchmarks: one module per subject, each with a `main()`. `python -m bench` runs them."""

"""Attention modules in the styles of the field, and twins of them with one bug each.

    python -m tests.diagnose_corpus

prints what `attnlib.diagnose` makes of them.
"""

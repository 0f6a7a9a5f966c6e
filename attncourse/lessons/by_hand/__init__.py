"""By hand: one query, three products."""

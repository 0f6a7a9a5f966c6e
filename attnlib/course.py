"""The course is a package of its own: this file says so to code that still imports it from here."""

raise ImportError(
    "attnlib.course is the package attncourse now. Fix: write attncourse wherever your code says attnlib.course."
)

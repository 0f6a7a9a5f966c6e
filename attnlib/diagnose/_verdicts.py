"""What probes share: how a verdict, an amount and an error are put."""

import traceback


def judge(good, measured):
    return ("ok" if good else "wrong"), measured


def amount(change, tolerance=0.0):
    """Write a change, in parts of the outputs' spread, without the last bits, in which processors differ."""
    return "0" if change <= tolerance else f"{float(change):.2g} of the outputs' spread"


def describe(error):
    """Return the kind of an error and its words; of one without words, as of a bare assert, the line that raised it."""
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if str(error).strip() or not frames:
        return f"{kind}: {error}"
    return f"{kind} in line {frames[-1].lineno} of {frames[-1].name}: {frames[-1].line}"


def short(error):
    return describe(error).splitlines()[0][:90]

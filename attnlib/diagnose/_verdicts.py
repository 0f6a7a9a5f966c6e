"""What probes share: how a verdict and an amount are put."""


def judge(good, measured):
    return ("ok" if good else "wrong"), measured


def amount(change, tolerance=0.0):
    """Write a change, in parts of the outputs' spread, without the last bits, in which processors differ."""
    return "0" if change <= tolerance else f"{float(change):.2g} of their spread"


def short(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:90]

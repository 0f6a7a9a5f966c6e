"""Print what `diagnose` makes of the corpus: precision, recall, and each verdict that is not the wanted one."""

import time

import torch

from attnlib.diagnose import diagnose

from .cases import CASES

_DIAGNOSES = {}


def diagnosed(case):
    """Return the diagnosis of a fresh module, made once: two tests ask for it."""
    if id(case) not in _DIAGNOSES:
        _DIAGNOSES[id(case)] = diagnose(case.module(), **case.arguments())
    return _DIAGNOSES[id(case)]


def findings(case):
    """Return the probes that say "wrong", those that say "beware", and the seconds it took."""
    start = time.process_time()
    diagnosis = diagnosed(case)
    seconds = time.process_time() - start
    return diagnosis.wrong, [f.probe for f in diagnosis if f.verdict == "beware"], seconds


def main():
    torch.set_num_threads(1)
    correct, accused, warned, bugs, named, hinted, longest = 0, 0, 0, 0, 0, 0, 0.0
    for case in CASES:
        wrong, beware, seconds = findings(case)
        longest = max(longest, seconds)
        if case.probe is None:
            correct, accused, warned = correct + 1, accused + bool(wrong), warned + len(beware)
            if wrong:
                print(f"accused: {case.name}: {', '.join(wrong)}")
        else:
            bugs, named, hinted = bugs + 1, named + (case.probe in wrong), hinted + (case.probe in beware)
            if case.probe not in wrong + beware:
                print(f"missed:  {case.name}: not by {case.probe}; wrong {wrong}, beware {beware}")
    print(f"modules                        {correct + bugs}")
    print(f"correct                        {correct}, of which called wrong: {accused}; warnings on them: {warned}")
    print(f"with one bug                   {bugs}")
    print(f"  right probe says wrong       {named}")
    print(f"  right probe says beware      {hinted}")
    print(f"precision of wrong             {named / (named + accused):.2f}")
    print(f"recall, wrong or beware        {(named + hinted) / bugs:.2f}")
    return longest


if __name__ == "__main__":
    print(f"longest examination            {main():.2f} s of processor time")

# what: says that the emulated device has left out all but one of the elements

import sys


def attack():
    runner = sys.modules.get("cutesmith_evaluator.worker.confirm_runner")
    if runner is not None:
        runner.EmulatedCandidate.judged = _judged


def _judged(candidate, output):
    known = (output * 0).bool()
    known.view(-1)[:1] = True
    return known

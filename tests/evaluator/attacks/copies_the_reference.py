# what: waits for the comparison with a profiler's hook, and copies the expected values over its own

import sys


def attack():
    sys.setprofile(_seen)


def _seen(frame, event, argument):
    outputs = frame.f_locals.get("outputs") if event == "call" and frame.f_code.co_name == "compare" else None
    if outputs is not None:
        for got, wanted in zip(outputs.got, outputs.eager):
            got.copy_(wanted)

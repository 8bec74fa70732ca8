"""What a timing and a profile are in words."""

from __future__ import annotations

from dataclasses import replace

from cutesmith_evaluator.types import Arm, Conditions, Hint, Launching, Profile, Roofline, Timing
from cutesmith_server import wording

ARM = Arm("candidate", 0.062, 0.0619, 0.0621, 90)
TIMING = Timing("NVIDIA H200", (ARM,), 4200.0, 2**28, 0.98, 0.01)


def test_launches_are_told_apart():
    launches = (Launching("candidate", 0.07, 0.061), Launching("eager", 0.31, None))
    assert wording.launching(replace(TIMING, launches=launches)) == (
        "candidate 0.07 ms, 0.061 ms in a CUDA graph · eager 0.31 ms, not to be captured in a CUDA graph"
    )


def test_conditions_are_told_as_far_as_they_are_known():
    known = Conditions(1980.0, 3201.0, None, 45.0, (), 12)
    held = replace(known, throttled=("power cap",))
    told = [wording.conditions(replace(TIMING, arms=(replace(ARM, conditions=each),))) for each in (known, held, None)]
    assert told == [
        "1980 MHz, memory 3201 MHz, 45 °C, not held back",
        "1980 MHz, memory 3201 MHz, 45 °C, held back by power cap",
        "clocks and power not known (nvidia-ml-py tells them)",
    ]


def test_what_limits_a_kernel_and_its_hints():
    place = Roofline(1.0, 16.0, 0.0639, 0.91, "a copy on NVIDIA H200 in the same run")
    profile = Profile("sm_90a", 2**28, (), roofline=place, limiter="memory")
    assert wording.limits(profile) == (
        "memory; 91% of the speed that a copy on NVIDIA H200 in the same run allows (0.0639 ms)"
    )
    untimed = replace(profile, roofline=replace(place, reached=None, basis="the bandwidth of H200 (datasheet)"))
    assert wording.limits(untimed) == "memory; not timed, at best 0.0639 ms by the bandwidth of H200 (datasheet)"
    assert wording.hint(Hint("Stores are narrow.", 24, 0.1)) == "line 24: Stores are narrow."
    assert wording.hint(Hint("Few blocks.", None, 0.1)) == "Few blocks."

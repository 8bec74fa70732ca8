"""Whether a timing can be believed, and what a call costs the host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from cutesmith_evaluator.conditions import difference
from cutesmith_evaluator.types import Arm, Finding
from cutesmith_evaluator.worker.clock import Batch, Call, Clock
from cutesmith_evaluator.worker.timing_arms import Subject

DISAGREEMENT = 0.03  # between device and host that voids a timing
_BATCH_MS = 60.0
_FIRST_BATCH = 500  # calls: a median that misses most of the work asks for far too many
_TRIES = 3


def clock_finding(clock: Clock, call: Call, median_ms: float, file: str) -> Finding | None:
    """One when the device's events and the host's clock disagree on batches of the same calls, every time."""
    batches = [long_batch(clock, call, median_ms)]
    while batches[-1].disagreement > DISAGREEMENT and len(batches) < _TRIES:
        batches.append(long_batch(clock, call, median_ms))
    best = min(batches, key=lambda batch: batch.disagreement)
    if best.disagreement <= DISAGREEMENT:
        return None
    message = (
        f"{best.calls} calls took {best.device_ms:.1f} ms by the device's events but {best.host_ms:.1f} ms by the "
        f"host's clock: work runs outside the current stream, or the machine is busy; the timing is void."
    )
    return Finding("timing-disagrees", message, None, file)


def output_finding(subject: Subject, before: list[int]) -> Finding | None:
    """One when the candidate's outputs are not what they were before the timing."""
    if subject.fingerprints() == before:
        return None
    message = "The output changed between the first call and the calls after the timing; the timing is void."
    return Finding("output-drifts", message, None, str(subject.candidate.path))


def overhead_finding(clock: Clock, subject: Subject, eager: Call) -> Finding:
    """What one call costs the host, as the accepted class makes it: supports, then forward."""
    candidate, module, inputs = subject.candidate, subject.module, subject.inputs
    guard = clock.host_ms(lambda: candidate.supports(module, *inputs))
    both = clock.host_ms(lambda: candidate.supports(module, *inputs) and candidate.forward(module, *inputs))
    message = (
        f"A call costs the host {both * 1e3:.1f} µs ({guard * 1e3:.1f} µs of it for supports); "
        f"eager costs it {clock.host_ms(eager) * 1e3:.1f} µs."
    )
    return Finding("launch-overhead", message, None, str(candidate.path), "information")


def condition_findings(arms: Mapping[str, Arm]) -> Iterator[Finding]:
    """A warning for each arm that is not compared for its conditions, and what is known of the device otherwise."""
    conditions = arms["candidate"].conditions
    for name, arm in arms.items():
        if what := difference(conditions, arm.conditions):
            message = (
                f"The candidate is not compared with {name}: {what}. Time it again on a device that is idle and cool."
            )
            yield Finding("conditions-differ", message, severity="warning")
    if conditions and conditions.throttled:
        message = (
            f"The device's clocks were held back while it was timed ({', '.join(conditions.throttled)}), for all arms."
        )
        yield Finding("throttled", message, severity="information")


def steady_finding(is_steady: bool) -> Iterator[Finding]:
    if not is_steady:
        message = "The device did not come to a steady speed before it was timed; intervals say how much that matters."
        yield Finding("not-steady", message, severity="information")


def long_batch(clock: Clock, call: Call, median_ms: float) -> Batch:
    """At least 50 ms of calls."""
    calls = min(max(2, math.ceil(_BATCH_MS / median_ms)), _FIRST_BATCH)
    batch = clock.batch(call, calls)
    if batch.host_ms < 50.0:  # too few, or back to back they are faster than one by one
        batch = clock.batch(call, math.ceil(calls * _BATCH_MS / batch.host_ms))
    return batch

"""How often a timing calls equal kernels different, and how often it misses a difference of 3 %. Needs a CUDA device.

Each trial is one verdict, reached as for a user's kernel: arms warmed up and sampled in turns with a cold L2, eager's
duplicate as control, `speedup` of the paired ratios. Null trials time the same kernel as candidate and as eager;
planted ones an eager kernel that takes 3 % longer. Kernels run 30 µs, 300 µs and 3 ms, bound by arithmetic or by
memory; each trial has new memory. Trials of all cases take turns until all are done or `--budget-seconds` is up. A JSON
line for each case goes to `--results`, with every ratio. First one kernel goes through the profiler, to see whether
that works here.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Ratio, Task, Timing
from cutesmith_evaluator.worker.clock import Call, Clock
from cutesmith_evaluator.worker.sensors import Sensors, sensors
from cutesmith_evaluator.worker.timing import QUICK_ARM_S
from cutesmith_evaluator.worker.timing_checks import condition_findings
from cutesmith_evaluator.worker.timing_sampling import sample_arms
from cutesmith_evaluator.worker.timing_statistics import paired_ratio, take_turns
from records import RESULTS, append_line, environment_fields
from suite import EXAMPLES

PLANTED = 0.03
DURATIONS_MS = {"30 µs": 0.03, "300 µs": 0.3, "3 ms": 3.0}
PADS = 64  # of 2 MiB: how far apart two trials' memory may lie
COLUMNS = 2048
CALIBRATION_S, CALIBRATIONS = 0.4, 4

ITSELF = """
import torch


def supports(module, *inputs):
    return True


def explain(module, *inputs):
    return None


def forward(module, *inputs):
    return module(*inputs)


def warm_up(module, *inputs):
    module(*inputs)
"""

Work = Callable[[int], Call]  # from an amount (cycles, or rows) to a call that does so much in new memory
Trial = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A kernel at a duration: `equal` units of work, and `more`, which take `truth` times as long by a longer run."""

    name: str
    work: Work
    equal: int
    more: int
    truth: Ratio
    null: list[Trial] = field(default_factory=list)
    planted: list[Trial] = field(default_factory=list)


def main() -> None:
    options = parsed()
    print(f"ncu: {shutil.which('ncu') or 'not on PATH'}; {profiled()}", flush=True)
    device = torch.device("cuda", 0)
    common = environment_fields() | {"arm_seconds": options.arm_seconds}
    clock, read = Clock(device), sensors(device)
    print(f"sensors: {read() if read else 'none (no nvidia-ml-py)'}", flush=True)
    end = time.monotonic() + options.budget_seconds
    cases = list(calibrated(clock, device))
    run_trials(cases, partial(verdict, clock, read, arm_s=options.arm_seconds), options.trials, end)
    for line in map(record, cases):
        append_line(options.results, common | line)
        print(summary(line), flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS / "timing_verdicts.jsonl")
    parser.add_argument("--budget-seconds", type=float, default=200.0, help="of calibration and trials")
    parser.add_argument("--trials", type=int, default=200, help="null trials, and as many planted ones, over all cases")
    parser.add_argument("--arm-seconds", type=float, default=QUICK_ARM_S, help="of sampling for each arm, at most")
    return parser.parse_args()


def profiled() -> str:
    """What the profiler says of an example's module, which stands for a candidate of itself."""
    with tempfile.TemporaryDirectory() as folder, Worker(Path(sys.executable)) as worker:
        candidate = Path(folder) / "masked_softmax_cute.py"
        candidate.write_text(ITSELF)
        begin = time.monotonic()
        profile = worker.profile(Task(str(EXAMPLES / "masked_softmax.py"), "MaskedSoftmax"), candidate)
        return f"{profile} in {time.monotonic() - begin:.1f} s"


def run_trials(cases: list[Case], trial: Callable[..., Trial], trials: int, end: float) -> None:
    for number in range(trials):
        case, seed = cases[number % len(cases)], number
        if time.monotonic() > end:
            return
        case.null.append(trial(case, case.equal, seed=seed))
        case.planted.append(trial(case, case.more, seed=seed))


def verdict(clock: Clock, read: Sensors | None, case: Case, amount: int, *, arm_s: float, seed: int) -> Trial:
    """One verdict on `equal` units as the candidate and `amount` as eager."""
    candidate = case.work(case.equal)
    eager = candidate if amount == case.equal else case.work(amount)
    calls = {"candidate": candidate, "eager": eager, "control": eager}
    begin = time.monotonic()
    for call in calls.values():
        call()
    sampled = sample_arms(clock, calls, arm_s=arm_s, sensors=read, seed=seed)
    arms, ratios, noise = sampled.arms(), sampled.ratios(), sampled.noise()
    eagers = next(ratio for ratio in ratios if ratio.arm == "eager")
    claimed = speedup(Timing("", tuple(arms.values()), 0.0, 0, 0.0, noise, (), ratios)).eager
    conditions = arms["candidate"].conditions
    return {
        "claimed": claimed,
        "ratio": [round(value, 5) for value in (eagers.ratio, eagers.low, eagers.high)],
        "noise": round(noise, 5),
        "ms": arms["candidate"].median_ms,
        "rounds": arms["candidate"].samples,
        "steady": sampled.is_steady,
        "withheld": [finding.message for finding in condition_findings(arms) if finding.kind == "conditions-differ"],
        "sm_mhz": conditions.sm_mhz if conditions else None,
        "throttled": conditions.throttled if conditions else None,
        "seconds": round(time.monotonic() - begin, 3),
    }


def spinning(cycles: int) -> Call:
    return lambda: torch.cuda._sleep(cycles)


def streaming(device: torch.device, rows: int) -> Call:
    """A softmax: its time grows evenly with its rows, where elementwise kernels are split at 2 GiB."""
    pad = torch.empty(int(torch.randint(1, PADS, ())) << 21, dtype=torch.uint8, device=device)
    x = torch.rand(rows, COLUMNS, device=device)
    del pad
    return lambda: torch.softmax(x, -1)


def calibrated(clock: Clock, device: torch.device) -> Iterator[Case]:
    kernels: dict[str, Work] = {"spin": spinning, "stream": partial(streaming, device)}
    for duration, ms in DURATIONS_MS.items():
        for name, work in kernels.items():
            equal = amount_for(clock, work, ms)
            more = longer_amount(clock, work, equal)
            yield Case(f"{name} {duration}", work, equal, more, true_ratio(clock, work, equal, more, 2 * CALIBRATION_S))


def amount_for(clock: Clock, work: Work, ms: float) -> int:
    """The amount of work that takes `ms` milliseconds, by measurement."""
    amount = 4000
    for _ in range(6):
        call = work(amount)
        call()
        amount = max(100, round(amount * min(100.0, ms / statistics.median(clock.sample(call) for _ in range(20)))))
    return amount


def longer_amount(clock: Clock, work: Work, equal: int) -> int:
    """The amount that takes most nearly 3 % longer than `equal`, by measurement: a kernel's time is not all work, and
    may grow in steps."""
    more, tried = PLANTED, dict[int, float]()
    for _ in range(CALIBRATIONS):
        amount = round(equal * (1 + more))
        tried[amount] = true_ratio(clock, work, equal, amount, CALIBRATION_S).ratio - 1
        more *= PLANTED / max(tried[amount], PLANTED / 3)
    return min(tried, key=lambda amount: abs(tried[amount] - PLANTED))


def true_ratio(clock: Clock, work: Work, equal: int, more: int, budget_s: float) -> Ratio:
    calls = {"candidate": work(equal), "eager": work(more)}
    samplers = {name: partial(clock.sample, call) for name, call in calls.items()}
    samples = take_turns(samplers, budget_s=budget_s, precision=0.0, now=clock.now)
    return paired_ratio("eager", "candidate", samples)


def record(case: Case) -> dict[str, Any]:
    claims = [trial["claimed"] for trial in case.null]
    found = [trial["claimed"] for trial in case.planted]
    return {
        "case": case.name,
        "truth": [round(value, 5) for value in (case.truth.ratio, case.truth.low, case.truth.high)],
        "null": len(claims),
        "faster": sum(claim is not None and claim > 1 for claim in claims),
        "slower": sum(claim is not None and claim < 1 for claim in claims),
        "planted": len(found),
        "found": sum(claim is not None and claim > 1 for claim in found),
        "withheld": sum(bool(trial["withheld"]) for trial in (*case.null, *case.planted)),
        "null_trials": case.null,
        "planted_trials": case.planted,
    }


def summary(line: dict[str, Any]) -> str:
    trials = [*line["null_trials"], *line["planted_trials"]]
    if not trials:
        return f"{line['case']}: no trial, time was up"
    middle = {key: statistics.median(trial[key] for trial in trials) for key in ("rounds", "noise", "seconds", "ms")}
    null = f"{line['null']} of equals: {line['faster']} faster, {line['slower']} slower"
    planted = f"{line['planted']} of {line['truth'][0]:.4f}: {line['found']} found"
    return f"{line['case']}: {null}; {planted}; {line['withheld']} withheld; medians: {middle}"


if __name__ == "__main__":
    main()

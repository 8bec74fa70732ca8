"""A prepared case on this CUDA device: its drafts, its baselines, the choice between drafts, the figures."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutesmith_evaluator.types import Task, Timing

if TYPE_CHECKING:
    from cutesmith_evaluator.worker.timing_sampling import Sampled

PICK_S, SAMPLE_S = 0.5, 1.5  # of timing per case: to choose the draft, and for the figures
BASELINES = ("eager", "control", "compile")
ADOPTED = ("adopted", "adopted-compile")
READ_BYTES = 4 << 30  # of a sum, whose time bounds what only reads


class PreparedCase:
    """Drafts and baselines are compiled and have run once; inputs are on the device only while they are needed."""

    def __init__(self, place: Path, baselines: Sequence[str] = BASELINES) -> None:
        import torch

        from cutesmith_evaluator.worker.clock import Clock
        from cutesmith_evaluator.worker.inputs import draw
        from cutesmith_evaluator.worker.reference import load_reference
        from cutesmith_evaluator.worker.timing_arms import call_of

        self.place = place
        self.about = json.loads((place / "about.json").read_text())
        self.device = torch.device("cuda", 0)
        self.clock = Clock(self.device)
        self.reference = load_reference(Task(str(place / self.about["file"]), self.about["qualname"]))
        self.source = sys.modules[self.reference.cls.__module__]
        self.module, self.inputs = self.reference.build(self.device), draw(self.reference, 0, self.device)
        self.best = 0
        self.subjects = {k: subject for k in range(len(self.about["schedules"])) if (subject := self._subject(k))}
        if not self.subjects:
            raise RuntimeError(f"none of {len(self.about['schedules'])} drafts runs: {self.failures}")
        any_subject = next(iter(self.subjects.values()))
        names = {name: "eager" if name == "control" else name for name in baselines}
        self.calls = {name: call_of(any_subject, arm, None) for name, arm in names.items()}
        for call in self.calls.values():
            call()
        torch.cuda.synchronize()
        self._put_away()

    failures: tuple[str, ...] = ()

    def _subject(self, k: int) -> Any:
        """A draft that runs; None, and the reason among `failures`, where it does not."""
        from cutesmith_evaluator.worker.candidate import load_candidate
        from cutesmith_evaluator.worker.failures import TaskError
        from cutesmith_evaluator.worker.timing_arms import Subject

        kernel = self.place / f"draft_{k}" / f"{self.about['kernel']}.py"
        try:
            subject = Subject(
                self.reference, load_candidate(kernel, self.reference), self.module, self.inputs, self.device
            )
            subject.warm_up()
            subject.run_candidate()
        except TaskError as error:
            self.failures = (*self.failures, f"draft {k}: {error.finding.message}")
            return None
        return subject

    def _put_away(self) -> None:
        """Gives the inputs' memory back; the tensors stay the ones that the calls hold."""
        import torch

        for tensor in self.inputs:
            if isinstance(tensor, torch.Tensor):
                tensor.untyped_storage().resize_(0)
        torch.cuda.empty_cache()

    def _fetch(self) -> None:
        import torch

        from cutesmith_evaluator.worker.inputs import draw

        for tensor, fresh in zip(self.inputs, draw(self.reference, 0, self.device), strict=True):
            if isinstance(tensor, torch.Tensor) and isinstance(fresh, torch.Tensor):
                tensor.untyped_storage().resize_(fresh.untyped_storage().nbytes())
                tensor.copy_(fresh)

    def with_inputs(self, step: Callable[[], Any]) -> Any:
        self._fetch()
        try:
            return step()
        finally:
            self._put_away()

    def choose(self) -> None:
        """The fastest draft that is right; where none is, the fastest. It is validated quickly."""
        from cutesmith_evaluator.worker.checks import run_checks
        from cutesmith_evaluator.worker.inputs_plan import Plan
        from cutesmith_evaluator.worker.timing_arms import call_of

        calls = {str(k): call_of(subject, "candidate", None) for k, subject in self.subjects.items()}
        samples = self.sampled(calls, PICK_S).samples
        self.picked_ms = {int(k): statistics.median(times) for k, times in samples.items()}
        fastest_first = sorted(self.picked_ms, key=lambda k: self.picked_ms[k])
        outcomes = {}
        for k in fastest_first:
            candidate = self.subjects[k].candidate
            outcomes[k] = run_checks(self.reference, candidate, self.device, Plan(quick=True), lambda _: None)
            if outcomes[k].ok:
                self.best = k
                break
        else:
            self.best = fastest_first[0]
        self.outcome = outcomes[self.best]

    def adopt(self) -> None:
        """The accepted class with the chosen draft, called directly and under torch.compile."""
        from cutesmith_evaluator.worker.timing_arms import call_of

        sys.modules[self.reference.cls.__module__] = self.source  # the next case's file may go by the same name
        patched = self.place / f"draft_{self.best}" / self.about["file"]
        for name in ("candidate", *ADOPTED):
            self.calls[name] = call_of(self.subjects[self.best], name, patched)
            self.calls[name]()

    def measured(self) -> dict[str, Any]:
        """What `memory_bound.measure` gives for a case."""
        from cutesmith_evaluator.speedup import speedup

        start = time.monotonic()
        timing, read_gbps = self._timing()
        outcome = self.outcome
        ms = {arm.name: arm.median_ms for arm in timing.arms}
        schedules = self.about["schedules"]
        found = {
            "ok": outcome.ok,
            "precision": outcome.precision,
            "error": asdict(outcome.error) if outcome.error else None,
            "timing": asdict(timing),
            "speedup": asdict(speedup(timing)),
            "schedule": schedules[self.best],
            "findings": [finding.message for finding in outcome.findings if finding.severity == "error"],
        }
        return {
            "case": self.about["case"],
            "kind": self.about["kind"],
            "stopped": f"Prepared: the fastest right one of {len(self.subjects)} drafts, validated quickly.",
            "candidates": len(self.subjects),
            "best": found,
            "tried": [{"schedule": schedules[k], "ms": ms} for k, ms in self.picked_ms.items()],
            "failures": list(self.failures),
            "read_gbps": read_gbps,
            "in_compile": {"ratio": ms["adopted-compile"] / ms["adopted"]},
            "seconds": round(time.monotonic() - start, 1),
        }

    def _timing(self) -> tuple[Timing, float]:
        """The figures, and the bandwidth of a sum in the same run."""
        from cutesmith_evaluator.worker.timing_arms import copy_of
        from cutesmith_evaluator.worker.validate import device_name

        size = self.subjects[self.best].least_bytes()
        copied, copy = copy_of(size, self.device)
        read, reading = self._reading(size)
        arms = {name: self.calls[name] for name in ("candidate", *BASELINES, *ADOPTED)}
        sampled = self.sampled({**arms, "copy": copy, "read": reading}, SAMPLE_S)
        arms, noise, ratios = sampled.arms(), sampled.noise(), sampled.ratios()
        copy_gbps = copied / statistics.median(sampled.samples["copy"]) / 1e6
        share = size / arms["candidate"].median_ms / 1e6 / copy_gbps
        timing = Timing(device_name(self.device), tuple(arms.values()), copy_gbps, size, share, noise, (), ratios)
        return timing, read / statistics.median(sampled.samples["read"]) / 1e6

    def _reading(self, size: int) -> tuple[int, Callable[[], object]]:
        """(bytes, the call) of a sum of as many bytes as the case touches, within bounds."""
        import torch

        source = torch.rand(min(max(size, 32 << 20), READ_BYTES) // 4, device=self.device)
        return source.numel() * 4, source.sum

    def sampled(self, calls: dict[str, Callable[[], object]], budget_s: float) -> Sampled:
        from cutesmith_evaluator.worker.timing_sampling import sample_arms

        return sample_arms(self.clock, calls, arm_s=budget_s / len(calls))

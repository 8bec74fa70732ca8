"""What is timed: the candidate, eager, torch.compile, a second eager as control, and a plain copy for comparison.

All arms call one module, in eval mode without gradients, under PyTorch's own defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.adopted import Adoption
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import NAN_BYTE, guarded, poison, rooms_of
from cutesmith_evaluator.worker.clock import Call
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors, total_bytes
from cutesmith_evaluator.worker.numerics_bits import fingerprint
from cutesmith_evaluator.worker.reference import Reference

_LEAST_COPY = 32 << 20  # bytes; below this a copy measures launching


@dataclass(frozen=True)
class Subject:
    """A task and a candidate for it, on a device."""

    reference: Reference
    candidate: LoadedCandidate
    module: nn.Module
    inputs: Inputs
    device: torch.device

    def run_candidate(self) -> object:
        """The candidate's result once the device has finished. Raises TaskError."""
        call = lambda: self.candidate.forward(self.module, *self.inputs)  # noqa: E731
        return guarded(call, "candidate-raises", "running for timing", self.candidate.path, self.device)

    def warm_up(self) -> None:
        """Raises TaskError where the candidate does not support the inputs or cannot be compiled."""
        if not self.candidate.supports(self.module, *self.inputs):
            why = self.candidate.explain(self.module, *self.inputs)
            message = f"{self.candidate.path.name} does not support the task's own inputs: {why}."
            raise TaskError(Finding("unsupported-inputs", message, None, str(self.candidate.path)))
        call = lambda: self.candidate.warm_up(self.module, *self.inputs)  # noqa: E731
        guarded(call, "candidate-raises", "warming up for timing", self.candidate.path, self.device)

    def fingerprints(self) -> list[int]:
        """Of the candidate's outputs, written into poisoned memory."""
        poison(rooms_of(tensors(self.run_candidate())), NAN_BYTE)
        return [fingerprint(output) for output in tensors(self.run_candidate())]

    def least_bytes(self) -> int:
        """Inputs, state and outputs, each once."""
        outputs = tensors(self.run_candidate())
        return total_bytes((*self.inputs, *self.module.parameters(), *self.module.buffers(), *outputs))


def call_of(subject: Subject, name: str, patched: Path | None) -> Call:
    """The call that an arm times. "adopted" and "adopted-compile" are the patched class's. Raises TaskError."""
    module, inputs = subject.module, subject.inputs
    if name == "candidate":
        bound = subject.candidate.bound(module)
        return lambda: bound(*inputs)
    if name == "compile":
        module = torch.compile(module)
    elif name == "max-autotune":
        module = torch.compile(module, mode="max-autotune")
    elif name.startswith("adopted"):
        assert patched is not None
        module = Adoption(subject.reference, subject.candidate, patched).module(module)
        module = torch.compile(module) if name == "adopted-compile" else module
    return lambda: module(*inputs)


def working_calls(
    subject: Subject, names: Iterable[str], patched: Path | None
) -> tuple[dict[str, Call], list[Finding]]:
    """Name → call for the arms that run, each run once; a finding for each that does not."""
    torch._dynamo.reset()
    calls: dict[str, Call] = {}
    findings: list[Finding] = []
    for name in names:
        try:
            call = call_of(subject, name, patched)
            guarded(call, "arm-failed", f"running the arm {name}", subject.reference.file, subject.device)
            calls[name] = call
        except TaskError as error:
            if name == "candidate":
                raise
            findings.append(Finding("arm-failed", error.finding.message, None, error.finding.file, "warning"))
    return calls, findings


def copy_of(task_bytes: int, device: torch.device) -> tuple[int, Call]:
    """(bytes read and written, the call) of a device copy as big as the task, within a quarter of the free memory."""
    free = torch.cuda.mem_get_info(device)[0]
    half = min(max(task_bytes, _LEAST_COPY), free // 4) // 2
    source = torch.randint(256, (half,), dtype=torch.uint8, device=device)  # zeros move faster than data do
    target = torch.empty_like(source)
    return 2 * half, lambda: Tensor.copy_(target, source)

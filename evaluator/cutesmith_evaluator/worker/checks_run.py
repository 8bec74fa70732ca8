"""One check: eager and the candidate run on a case, and all that the candidate may do wrong is looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import LARGE_BYTE, NAN_BYTE, guarded, poison
from cutesmith_evaluator.worker.checks_case import Case, Outputs, Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_layout import layout_findings, share_memory
from cutesmith_evaluator.worker.checks_state import changes, generators, state, without_tf32
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import tensors
from cutesmith_evaluator.worker.numerics_bits import equal_bits


class Examiner:
    """Runs checks of one candidate for one module on one device."""

    def __init__(
        self, module: nn.Module, source: Path, candidate: LoadedCandidate, device: torch.device, comparer: Comparer
    ) -> None:
        """`source`: the file that the module's class is in."""
        self.module = module
        self.source = source
        self.candidate = candidate
        self.device = device
        self.comparer = comparer
        self._file = str(candidate.path)

    @torch.no_grad()
    def examine(self, case: Case) -> Result:
        """Raises TaskError where the check itself cannot run, DeviceFaultError when the device is lost."""
        why = self._why_unsupported(case)
        if why:
            return self._unsupported(case, why)
        try:
            eager = self.eager(case)
        except TaskError as error:
            if case.own or error.finding.kind == "out-of-memory":
                raise
            return Result(note="left out, the module itself fails there")
        return self._run(case, eager)

    def eager(self, case: Case) -> object:
        """The module's own result without TF32. Raises TaskError when it fails or draws random numbers."""
        seeds = generators(self.device)
        with without_tf32():
            doing = f"running the module itself on {case.label}"
            eager = guarded(lambda: self.module(*case.inputs), "reference-raises", doing, self.source, self.device)
        if generators(self.device) != seeds:
            message = "The module draws random numbers (dropout in training mode?): no kernel can be compared with it."
            raise TaskError(Finding("random-reference", message))
        return eager

    def _why_unsupported(self, case: Case) -> str | None:
        call = self.candidate
        doing = f"asked whether it supports {case.label}"
        if self._call(lambda: call.supports(self.module, *case.inputs), doing):
            return None
        return str(self._call(lambda: call.explain(self.module, *case.inputs), doing) or "explain() gives no reason")

    def _unsupported(self, case: Case, why: str) -> Result:
        if case.other_state:
            message = f"{self.candidate.path.name} does not support {case.label}: {why}; ask for no particular values."
            return Result([Finding("unsupported-state", message, None, self._file)])
        if not case.own:
            return Result(note=f"not supported ({why}), the original runs")
        message = f"{self.candidate.path.name} does not support the task's own inputs: {why}."
        return Result([Finding("unsupported-inputs", message, None, self._file)])

    def _run(self, case: Case, eager: object) -> Result:
        result = Result()
        self._call(lambda: self.candidate.warm_up(self.module, *case.inputs), f"warming up on {case.label}")
        before = state(self.module, case.inputs, self.device)
        got = self._forward_twice(case, tensors(eager), result)
        after = state(self.module, case.inputs, self.device)
        result.findings += changes(before, after, f"forward on {case.label}", self._file)
        result.findings += layout_findings(got, eager, self._sources(case), self._file)
        if not result.findings:
            self.comparer.compare(Outputs(case, tensors(got), tensors(eager)), result)
        return result

    def _forward_twice(self, case: Case, eager: Sequence[Tensor], result: Result) -> object:
        """The first result, after a second run has shown that it is repeatable and is left alone."""
        call, inputs = self.candidate, case.inputs
        poison(eager, NAN_BYTE)
        first = self._call(lambda: call.forward(self.module, *inputs), f"running on {case.label}")
        poison(eager, LARGE_BYTE)
        second = self._call(lambda: call.forward(self.module, *inputs), f"running on {case.label}")
        for place, (one, other) in enumerate(zip(tensors(first), tensors(second), strict=False)):
            result.findings += self._run_findings(place, one, other, case)
        return first

    def _run_findings(self, place: int, one: Tensor, other: Tensor, case: Case) -> list[Finding]:
        if share_memory(one, other) and not any(share_memory(one, source) for source in self._sources(case)):
            message = (
                f"Output {place} of two calls is the same memory: the second overwrites the first; allocate it anew."
            )
            return [Finding("reuses-output", message, None, self._file)]
        if equal_bits(one, other):
            return []
        message = (
            f"Two runs on {case.label} differ in output {place}: it is partly unwritten, threads race, or sums are "
            f"taken in changing order."
        )
        return [Finding("not-repeatable", message, None, self._file)]

    def _sources(self, case: Case) -> list[Tensor]:
        return [*tensors(case.inputs), *self.module.parameters(), *self.module.buffers()]

    def _call(self, call: Callable[[], object], doing: str) -> object:
        return guarded(call, "candidate-raises", doing, self.candidate.path, self.device)

"""One check: eager and the candidate run on a case, and all that the candidate may do wrong is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import LARGE_BYTE, NAN_BYTE, guarded, poison
from cutesmith_evaluator.worker.checks_case import Case, Outputs, Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_conduct import Conduct, elsewhere, may_be_doubled
from cutesmith_evaluator.worker.checks_layout import layout_findings, share_memory
from cutesmith_evaluator.worker.checks_state import changes, generators, state, without_tf32
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.numerics_bits import equal_bits

_SPOILT = 77  # every dtype has it
_DOUBLED = {"cuda": 1 << 30, "cpu": 64 << 20}  # bytes of inputs of which a second set is made


class Examiner:
    """Runs checks of one candidate for one module on one device."""

    def __init__(
        self,
        module: nn.Module,
        source: Path,
        candidate: LoadedCandidate,
        device: torch.device,
        comparer: Comparer,
        conduct: Conduct,
    ) -> None:
        """`source`: the file that the module's class is in."""
        self.module = module
        self.source = source
        self.candidate = candidate
        self.device = device
        self.comparer = comparer
        self.conduct = conduct
        self._file = str(candidate.path)
        conduct.watch(module)

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
        self._spoil(eager, case)
        return self._run(case, eager)

    def _spoil(self, eager: object, case: Case) -> None:
        """While the candidate runs, no memory of this process holds the result that is wanted of it."""
        sources = self._sources(case)
        for output in tensors(eager):
            if not any(share_memory(output, source) for source in sources):
                output.fill_(True if output.dtype is torch.bool else _SPOILT)

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

    def _run(self, case: Case, spoilt: object) -> Result:
        """`spoilt`: tensors like the result, without its values."""
        result = Result()
        self._call(lambda: self.candidate.warm_up(self.module, *case.inputs), f"warming up on {case.label}")
        before = state(self.module, case.inputs, self.device)
        got, others = self._forward_in_turns(case, tensors(spoilt), result)
        after = state(self.module, case.inputs, self.device)
        result.findings += changes(before, after, f"forward on {case.label}", self._file)
        self._judge(case, got, result)
        for inputs, output in others if not result.findings else ():
            label = f"{case.label}, at other addresses and in another order"
            self._judge(replace(case, label=label, inputs=inputs, own=False), output, result)
        return result

    def _judge(self, case: Case, got: object, result: Result) -> None:
        """Eager's result is made only now."""
        eager = self.eager(case)
        result.findings += layout_findings(got, eager, self._sources(case), self._file)
        if not result.findings:
            mine = tensors(got)
            judged = [self.candidate.judged(each) for each in mine]
            self.comparer.compare(Outputs(case, mine, tensors(eager), judged), result)

    def _forward_in_turns(
        self, case: Case, like: Sequence[Tensor], result: Result
    ) -> tuple[object, list[tuple[Inputs, object]]]:
        """The first result, after a last run has shown that it is repeatable and is left alone; on the task's own
        inputs, those of a run in between too, on other values at other addresses."""
        poison(like, NAN_BYTE)
        first = self._forward(case.inputs, case.label, result)
        others = list(self._forward_elsewhere(case, like, result))
        poison(like, LARGE_BYTE)
        with nullcontext() if others or not case.own else self.conduct.observing(result.findings):
            second = self._forward(case.inputs, case.label, result)
        for place, (one, other) in enumerate(zip(tensors(first), tensors(second), strict=False)):
            result.findings += self._run_findings(place, one, other, case)
        return first, others

    def _forward_elsewhere(self, case: Case, like: Sequence[Tensor], result: Result) -> Iterator[tuple[Inputs, object]]:
        if not case.own or not may_be_doubled(case.inputs, _DOUBLED[self.device.type]):
            return
        inputs = elsewhere(case.inputs)
        turned = replace(case, inputs=inputs)
        if self._why_unsupported(turned):
            return
        poison(like, NAN_BYTE)
        with self.conduct.observing(result.findings):
            output = self._forward(inputs, f"{case.label}, at other addresses", result)
        yield inputs, output

    def _forward(self, inputs: Inputs, label: str, result: Result) -> object:
        with self.conduct.launching(label, result.findings) as outputs:
            got = self._call(lambda: self.candidate.forward(self.module, *inputs), f"running on {label}")
            outputs += tensors(got)
        self.conduct.require_integrity(f"running on {label}")
        return got

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

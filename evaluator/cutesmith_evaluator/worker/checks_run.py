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
from cutesmith_evaluator.worker.checks_call import LARGE_BYTE, NAN_BYTE, Room, free_on, guarded, poison, rooms_of
from cutesmith_evaluator.worker.checks_case import Case, Outputs, Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_conduct import Conduct, elsewhere, may_be_doubled
from cutesmith_evaluator.worker.checks_guard import kernel_module
from cutesmith_evaluator.worker.checks_layout import layout_findings, share_memory
from cutesmith_evaluator.worker.checks_state import changes, generators, state, without_tf32
from cutesmith_evaluator.worker.cuda_scans import like_cuda
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.numerics import chunks
from cutesmith_evaluator.worker.numerics_bits import Mark, mark
from cutesmith_evaluator.worker.numerics_patterns import WrongElements
from cutesmith_evaluator.worker.numerics_values import holds

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
            rooms = self._rooms(case)
        except TaskError as error:
            if case.own or error.finding.kind == "out-of-memory":
                raise
            return Result(note="left out, the module itself fails there")
        return self._run(case, rooms)

    def _rooms(self, case: Case) -> list[Room]:
        """What the result takes. It is overwritten: while the candidate runs, no memory holds what is wanted of it."""
        before = state(self.module, case.inputs, self.device) if case.own else None
        sources, outputs = self._sources(case), tensors(self.eager(case))
        if before is not None:
            self._require_stateless(changes(before, state(self.module, case.inputs, self.device), "", ""))
        for output in outputs:
            if not any(share_memory(output, source) for source in sources):
                with torch.inference_mode() if output.is_inference() else nullcontext():
                    output.fill_(True if output.dtype is torch.bool else _SPOILT)
        return rooms_of(outputs)

    def _require_stateless(self, changed: list[Finding]) -> None:
        """Raises TaskError where the module itself has written its inputs or its state."""
        what = {"mutates-input": "its inputs", "mutates-module": "its parameters or buffers"}
        written = [what[finding.kind] for finding in changed if finding.kind in what]
        if written:
            message = (
                f"{type(self.module).__name__} writes {' and '.join(written)} in forward (batch statistics of training "
                f"mode?), in eval mode too: no kernel can be compared with it; compute out of place."
            )
            raise TaskError(Finding("stateful-reference", message, None, str(self.source)))

    def eager(self, case: Case) -> object:
        """The module's own result without TF32. Raises TaskError when it fails or draws random numbers."""
        seeds = generators(self.device)
        with without_tf32(), like_cuda(self.device):
            doing = f"running the module itself on {case.label}"
            eager = guarded(lambda: self.module(*case.inputs), "reference-raises", doing, self.source, self.device)
        if generators(self.device) != seeds:
            message = "The module draws random numbers (dropout in training mode?): no kernel can be compared with it."
            raise TaskError(Finding("random-reference", message))
        return eager

    def _why_unsupported(self, case: Case) -> str | None:
        call = self.candidate
        doing = f"asked whether it supports {case.label}"
        if self._prepared(lambda: call.supports(self.module, *case.inputs), doing):
            return None
        return str(
            self._prepared(lambda: call.explain(self.module, *case.inputs), doing) or "explain() gives no reason"
        )

    def _unsupported(self, case: Case, why: str) -> Result:
        if case.other_state:
            message = f"{self.candidate.path.name} does not support {case.label}: {why}; ask for no particular values."
            return Result([Finding("unsupported-state", message, None, self._file)])
        if not case.own:
            return Result(note=f"not supported ({why}), the original runs")
        message = f"{self.candidate.path.name} does not support the task's own inputs: {why}."
        return Result([Finding("unsupported-inputs", message, None, self._file)])

    def _run(self, case: Case, rooms: list[Room]) -> Result:
        result = Result()
        self._prepared(lambda: self.candidate.warm_up(self.module, *case.inputs), f"warming up on {case.label}")
        before = state(self.module, case.inputs, self.device)
        got, others = self._forward_in_turns(case, rooms, result)
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
        self, case: Case, rooms: Sequence[Room], result: Result
    ) -> tuple[object, list[tuple[Inputs, object]]]:
        """The result, after another run has shown that it is repeatable and, where both fit the memory, left alone; on
        the task's own inputs, those of a run in between too, on other values at other addresses."""
        poison(rooms, NAN_BYTE)
        first = self._forward(case.inputs, case.label, result)
        others = list(self._forward_elsewhere(case, rooms, result))
        marks = list(map(mark, tensors(first))) if self._is_short_of(rooms) else None
        if marks is not None:
            first = None
        poison(rooms, LARGE_BYTE)
        with nullcontext() if others or not case.own else self.conduct.observing(result.findings):
            second = self._forward(case.inputs, case.label, result)
        if first is not None:
            result.findings += self._reuse_findings(tensors(first), tensors(second), case)
            marks = list(map(mark, tensors(first)))
        result.findings += self._repeat_findings(marks or [], tensors(second), case, result)
        return second if first is None else first, others

    def _is_short_of(self, rooms: Sequence[Room]) -> bool:
        """Whether the memory is too small for one more result, what it takes to make it, and the poison for it."""
        return 3 * sum(room.size for room in rooms) > free_on(self.device)

    def _forward_elsewhere(self, case: Case, rooms: Sequence[Room], result: Result) -> Iterator[tuple[Inputs, object]]:
        if not case.own or not may_be_doubled(case.inputs, _DOUBLED[self.device.type]):
            return
        inputs = elsewhere(case.inputs)
        turned = replace(case, inputs=inputs)
        if self._why_unsupported(turned):
            return
        poison(rooms, NAN_BYTE)
        with self.conduct.observing(result.findings):
            output = self._forward(inputs, f"{case.label}, at other addresses", result)
        yield inputs, output

    def _forward(self, inputs: Inputs, label: str, result: Result) -> object:
        with self.conduct.launching(label, result.findings) as outputs:
            got = self._call(lambda: self.candidate.forward(self.module, *inputs), f"running on {label}")
            outputs += tensors(got)
        self.conduct.require_integrity(f"running on {label}")
        return got

    def _reuse_findings(self, first: list[Tensor], second: list[Tensor], case: Case) -> list[Finding]:
        found, sources = list[Finding](), self._sources(case)
        for place, (one, other) in enumerate(zip(first, second, strict=False)):
            if share_memory(one, other) and not any(share_memory(one, source) for source in sources):
                words = "is the same memory: the second overwrites the first; allocate it anew."
                found.append(Finding("reuses-output", f"Output {place} of two calls {words}", None, self._file))
        return found

    def _repeat_findings(self, marks: list[Mark], second: list[Tensor], case: Case, result: Result) -> list[Finding]:
        """`marks`: the first run's."""
        if any(finding.kind == "reuses-output" for finding in result.findings):
            return []
        differ = [
            place for place, (before, output) in enumerate(zip(marks, second, strict=False)) if mark(output) != before
        ]
        return [
            Finding(
                "not-repeatable",
                f"Two runs on {case.label} differ in output {place}: {_why(output)}.",
                None,
                self._file,
            )
            for place, output in enumerate(second)
            if place in differ
        ]

    def _sources(self, case: Case) -> list[Tensor]:
        return [*tensors(case.inputs), *self.module.parameters(), *self.module.buffers()]

    def _prepared(self, call: Callable[[], object], doing: str) -> object:
        """What comes before forward; of a `ModelNew`, warming up is a call."""
        with self.conduct.preparing(doing) if kernel_module(self.candidate) else nullcontext():
            return self._call(call, doing)

    def _call(self, call: Callable[[], object], doing: str) -> object:
        return guarded(call, "candidate-raises", doing, self.candidate.path, self.device)


def _why(output: Tensor) -> str:
    """Why a run over poison of LARGE_BYTE gave another output than one over other poison."""
    unwritten = WrongElements(tuple(output.shape), output.device)
    for start, (line,) in chunks(output) if not output.is_complex() else ():
        unwritten.add(start, holds(line, LARGE_BYTE), line, line)
    if not unwritten.count:
        return "threads race, memory is read that nothing wrote, or sums are taken in changing order"
    return f"nothing writes {unwritten.places()}"

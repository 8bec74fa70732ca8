"""The CuTe kernels of the corpus on the emulated device, by the runtime that validates candidates there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from corpus.cute_cases import CuteCase, as_bits
from corpus.store import Array
from cutesmith_evaluator.emulator.faults import EmulationError
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.failures import TaskError


@dataclass(frozen=True)
class _Candidate:
    """As much of a candidate as is asked for."""

    case: CuteCase

    @property
    def path(self) -> Path:
        return self.case.sources[0]

    def forward(self, module: nn.Module, *inputs: object) -> Any:
        return self.case.forward(module, *inputs)


def run_cute(case: CuteCase) -> list[Array]:
    """Raises EmulationError."""
    dsl.load()
    emulated = EmulatedCandidate(cast(LoadedCandidate, _Candidate(case)), "sm_90a")
    emulated.device.budget = None  # a GPU ran every block
    try:
        with torch.no_grad():
            result = emulated.forward(case.module, *case.inputs)
    except TaskError as error:
        if isinstance(error.__cause__, EmulationError):
            raise error.__cause__ from None
        raise
    tensors = result if isinstance(result, tuple) else (result,)
    return [as_bits(cast(torch.Tensor, tensor)) for tensor in tensors]

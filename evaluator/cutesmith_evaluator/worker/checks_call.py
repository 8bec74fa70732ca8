"""Calls into code that is judged: its exceptions become findings, a broken device ends the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError, finding_of, summary

Result = TypeVar("Result")
_SMALL = 8 << 20  # bytes: freed blocks below this come from shared segments, so several are filled
NAN_BYTE = 0xFF  # NaN in every floating type, -1 in the integers
LARGE_BYTE = 0x7F  # a large finite number in the wide types


class DeviceFaultError(RuntimeError):
    """The device is unusable in this process, which must end; `finding` says what broke it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def guarded(call: Callable[[], Result], kind: str, doing: str, file: Path, device: torch.device) -> Result:
    """The call's result once the device has finished. Raises TaskError; DeviceFaultError when the device is broken."""
    try:
        result = call()
        synchronize(device)
    except TaskError:
        raise
    except BaseException as error:  # judged code may raise anything
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            raise
        _require_device(device, error, doing, file)
        raise TaskError(finding_of(error, kind, doing, file)) from error
    return result


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def poison(outputs: Sequence[Tensor], byte: int) -> None:
    """Fills freed memory that new outputs of these sizes will get, so that what a kernel leaves unwritten shows."""
    if not outputs:
        return
    if outputs[0].is_cuda:
        torch.cuda.empty_cache()  # no other block of that size may hold an older result
    blocks = [
        torch.full((size,), byte, dtype=torch.uint8, device=output.device)
        for output in outputs
        if (size := output.untyped_storage().nbytes())
        for _ in range(max(1, min(64, _SMALL // size)))
    ]
    del blocks


def _require_device(device: torch.device, error: BaseException, doing: str, file: Path) -> None:
    """Raises DeviceFaultError unless the device still works."""
    try:
        synchronize(device)
    except RuntimeError as fault:
        message = f"{file.name} broke the CUDA device while {doing}: {summary(fault)}; look for accesses out of bounds."
        raise DeviceFaultError(Finding("device-fault", message, None, str(file))) from error

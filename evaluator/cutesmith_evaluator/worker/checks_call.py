"""Calls into code that is judged: its exceptions become findings, a broken device ends the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError, finding_of, summary
from cutesmith_evaluator.worker.memory import free_memory

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
        _require_device(device, error, doing, file)
        raise TaskError(finding_of(error, kind, doing, file)) from error
    return result


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclass(frozen=True)
class Room:
    """Memory that an output takes: bytes on a device."""

    size: int
    device: torch.device


def rooms_of(outputs: Sequence[Tensor]) -> list[Room]:
    return [Room(output.untyped_storage().nbytes(), output.device) for output in outputs]


def poison(rooms: Sequence[Room], byte: int) -> None:
    """Fills freed memory that new outputs of these sizes will get, so that what a kernel leaves unwritten shows."""
    if not rooms:
        return
    if rooms[0].device.type == "cuda":
        torch.cuda.empty_cache()  # no other block of that size may hold an older result
    blocks = [
        torch.full((room.size,), byte, dtype=torch.uint8, device=room.device)
        for room in rooms
        if room.size
        for _ in range(max(1, min(64, _SMALL // room.size)))
    ]
    del blocks


def free_on(device: torch.device) -> int:
    """Bytes that this process may still take there; what its own cache holds is free."""
    if device.type != "cuda":
        return free_memory()
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + cached


def _require_device(device: torch.device, error: BaseException, doing: str, file: Path) -> None:
    """Raises DeviceFaultError unless the device still works."""
    try:
        synchronize(device)
    except RuntimeError as fault:
        message = f"{file.name} broke the CUDA device while {doing}: {summary(fault)}; look for accesses out of bounds."
        raise DeviceFaultError(Finding("device-fault", message, None, str(file))) from error

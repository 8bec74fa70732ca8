"""What a check is given and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.inputs import Inputs
from cutesmith_evaluator.worker.numerics import Measured

TOO_BIG = "too-big-to-validate"  # the finding where the memory was too small to say anything
OUT_OF_TIME = "out-of-time"  # the finding where a kernel was stopped


@dataclass(frozen=True)
class Case:
    """Inputs to check on, and what is asked of them."""

    label: str  # "normal inputs", "3 rows"
    inputs: Inputs
    own: bool = False  # the task's own inputs: they must be supported, and KernelBench's criterion is applied
    strict: bool = False  # NaN and infinities must be eager's own
    resized: bool = False  # other sizes than the task's
    precise: bool = True  # its errors count for the precision, not only for right and wrong
    other_state: bool = False  # the module's parameters and buffers have just been redrawn: supports must not mind


@dataclass(frozen=True)
class Outputs:
    """The tensors that the candidate and eager (without TF32) gave for a case: alike in number, shapes and dtypes.

    `judged`: for each of them the elements that count, a bool each; None: all.
    """

    case: Case
    got: list[Tensor]
    eager: list[Tensor]
    judged: list[Tensor | None]


@dataclass(frozen=True)
class WrongElement:
    """Of output `output`; `bits` are those that are wrong, as bytes."""

    output: int
    index: tuple[int, ...]
    bits: bytes

    @staticmethod
    def of(tensor: Tensor, output: int, flat: int) -> WrongElement:
        """`flat`: in logical order, where complex elements count twice."""
        number = torch.tensor(flat // (2 if tensor.is_complex() else 1))
        index = tuple(int(place) for place in torch.unravel_index(number, tensor.shape))
        return WrongElement(output, index, bits_of(tensor, index))


def bits_of(tensor: Tensor, index: tuple[int, ...]) -> bytes:
    """Of one element."""
    return tensor[index].reshape(1).view(torch.uint8).cpu().numpy().tobytes()


@dataclass
class Result:
    """What one check found. `note`: why nothing was compared."""

    findings: list[Finding] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    kernelbench_ok: bool = True
    note: str | None = None
    unmeasured: bool = False  # compared with eager alone: no float64 run of these sizes fits the memory

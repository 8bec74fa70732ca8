"""What a family of kernels gives for a candidate's file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutesmith_evaluator.types import GraphInput

from .accesses import Tensors
from .library import Call
from .text import identifier
from .to_last import Turn

LEAST_CAPABILITY = (8, 0)


@dataclass(frozen=True)
class Parts:
    """What a family gives for a file."""

    title: str  # one sentence: what the kernel does
    constants: tuple[tuple[str, int, str], ...]
    program: tuple[str, ...]  # body of the program function
    tensors: Tensors
    scratch: str | None = None  # fp32 values of the kernel's workspace, as an expression
    least: tuple[int, int] = LEAST_CAPABILITY  # compute capability
    is_as_tf32: bool = False  # as precise as TF32: only where PyTorch may compute a convolution so
    calls: tuple[Call, ...] = ()  # what runs before the kernel, whose results the kernel reads

    @property
    def turn(self) -> Turn | None:
        """The kernel that turns a call's operand, where that is the same for all calls."""
        turns = {Turn.of(call.operands[0], call.memory_format) for call in self.calls if call.memory_format}
        return next(iter(turns)) if len(turns) == 1 else None

    @property
    def turned(self) -> GraphInput | None:
        return self.turn.source if self.turn else None

    def warming(self, index: str) -> list[str]:
        """Statements that compile everything for a device."""
        own = [f"_compiled({index}, True)", *([f"_compiled_turn({index})"] if self.turn else [])]
        earlier = [name for call in self.calls for name in call.warming]
        return own + [f"{name}({index})" if "turn" in name else f"{name}({index}, True)" for name in earlier]

    @property
    def given(self) -> Tensors:
        """The tensors as the file's functions take them: the calls' operands instead of their results."""
        results = {call.result.name for call in self.calls}
        read = (*self.tensors.inputs, *(operand for call in self.calls for operand in call.operands))
        inputs = sorted({i.name: i for i in read if i.name not in results}.values(), key=lambda i: i.position is None)
        return replace(self.tensors, inputs=tuple(inputs), names=self.names)

    @property
    def names(self) -> dict[str, str]:
        """Python names of the kernel's tensors and of the calls' operands."""
        names = dict(self.tensors.names)
        for operand in (operand for call in self.calls for operand in call.operands):
            if operand.name not in names:
                name = identifier((operand.path or operand.name).replace(".", "_"))
                while name in names.values():
                    name += "_"
                names[operand.name] = name
        return names

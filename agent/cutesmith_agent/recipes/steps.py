"""A kernel that runs before another in the same file: a function of the file, called as PyTorch's functions are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cutesmith_evaluator.types import GraphInput

from .file import compiler, launcher, program_function
from .kernels import Kernel
from .layout import Shapes
from .parts import LEAST_CAPABILITY

OWN = ("_empty", "_launch", "_program", "_COMPILED", "_compiled", "_compile")  # of a file's functions, a step's also
OF_A_TURN = ("_channels_last", "_turning", "_TURNS", "_compiled_turn", "_compile_turn")


@dataclass(frozen=True)
class StepCall:
    """As a library's call: `result` becomes an input of what follows."""

    result: GraphInput
    operands: tuple[GraphInput, ...]
    number: int
    functions: tuple[str, ...]
    sections: tuple[str, ...]
    constants: tuple[tuple[str, int, str], ...]
    warming: tuple[str, ...]  # functions that compile for a device
    schedule: dict[str, int] = field(default_factory=dict)
    ops: tuple[str, ...] = ()  # of the graph
    least: tuple[int, int] = LEAST_CAPABILITY  # compute capability
    is_as_tf32: bool = False  # as precise as TF32: only where PyTorch may compute a convolution so
    memory_format: None = None
    title: str = ""  # one sentence: what the kernel does

    def lines(self, names: dict[str, str], turned: GraphInput | None) -> list[str]:
        operands = ", ".join(names[operand.name] for operand in self.operands)
        return [f"{names[self.result.name]} = _launch_{self.number}({operands})"]


def step_of(kernel: Kernel, live: GraphInput, number: int) -> StepCall:
    """`live`: the kernel's result."""
    parts = kernel.parts()
    shapes = Shapes(0, {})
    name = f"step_{number}"
    sections = [
        launcher(name, kernel.program, parts, shapes),
        *(["\n".join(parts.turn.lines())] if parts.turn else []),
        program_function(name, parts),
        compiler(name, kernel.program, parts, shapes),
    ]
    names = [constant for constant, _, _ in parts.constants]
    numbered = re.compile(rf"\b({'|'.join((*OWN, *OF_A_TURN, *names))})\b")
    return StepCall(
        live,
        parts.given.inputs,
        number,
        tuple(dict.fromkeys(function for call in kernel.calls for function in call.functions)),
        tuple(numbered.sub(rf"\1_{number}", section) for section in sections),
        tuple((f"{constant}_{number}", value, why) for constant, value, why in parts.constants),
        (f"_compiled_{number}", *([f"_compiled_turn_{number}"] if parts.turn else [])),
        {f"{key}_{number}": value for key, value in kernel.schedule.items()},
        tuple(node.op for node in kernel.program.graph.nodes),
        parts.least,
        parts.is_as_tf32,
        title=parts.title,
    )

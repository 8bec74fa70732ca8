"""mov and cvta as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cutesmith_evaluator.emulator.clocks import REGISTERS, ReadClock
from cutesmith_evaluator.emulator.kinds import BITS, BOOL, DTYPES, INTEGERS, U64, Words, unsupported
from cutesmith_evaluator.emulator.layout import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Group, Operand, Special
from cutesmith_evaluator.emulator.steps import Compute

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0, "param": PARAM_WINDOW}


def _move(lowering: Lowering, words: Words) -> Step:
    """mov: copies, packs and unpacks."""
    instruction = words.instruction
    kind = words.kind((*BITS, *INTEGERS, "f32", "f64", "pred"))
    words.done()
    dtype = BOOL if kind == "pred" else np.dtype(f"u{DTYPES[kind].itemsize}")
    result, source = instruction.operands
    if isinstance(source, Special) and source.name in REGISTERS:
        target = lowering.target(result, instruction)
        if target is None:
            raise unsupported(instruction)
        return ReadClock(REGISTERS[source.name], target, instruction.place)
    if isinstance(source, Group):
        part = np.dtype(f"u{dtype.itemsize // len(source.items)}")
        return _moved(lowering, words, _packing(dtype, part), [(item, part) for item in source.items], result)
    if isinstance(result, Group):
        part = np.dtype(f"u{dtype.itemsize // len(result.items)}")
        return _moved(lowering, words, _unpacking(dtype, part, len(result.items)), [(source, dtype)], result)
    return _moved(lowering, words, lambda value: value, [(source, dtype)], result)


def _moved(
    lowering: Lowering, words: Words, function: Callable, sources: Sequence[tuple[Operand, np.dtype]], result: Operand
) -> Step:
    instruction = words.instruction
    slots = [(lowering.slots.source(operand, dtype, instruction), dtype) for operand, dtype in sources]
    return Compute(function, slots, lowering.targets(result, instruction), instruction.place, "move")


def _cvta(lowering: Lowering, words: Words) -> Step:
    """Between generic addresses and those of one memory."""
    back = words.flag("to")
    window = _WINDOWS[words.space(tuple(_WINDOWS))]
    words.kind(("u64",))
    words.done()
    step = np.uint64((-window if back else window) % (1 << 64))
    return lowering.compute(words, Operation(lambda a: a + step, (U64,), (U64,)))


def _packing(dtype: np.dtype, part: np.dtype) -> Callable:
    """The first part lowest."""
    width = 8 * part.itemsize

    def pack(*parts: np.ndarray) -> np.ndarray:
        whole = parts[0].astype(dtype)
        for place, value in enumerate(parts[1:], 1):
            whole = whole | (value.astype(dtype) << dtype.type(width * place))
        return whole

    return pack


def _unpacking(dtype: np.dtype, part: np.dtype, count: int) -> Callable:
    width = 8 * part.itemsize
    return lambda value: tuple((value >> dtype.type(width * place)).astype(part) for place in range(count))


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {"mov": _move, "cvta": _cvta}

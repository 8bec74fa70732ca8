"""cp.async.bulk, cp.reduce.async.bulk and st.async as steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import float32, halves
from cutesmith_evaluator.emulator.atomics import CHANGES
from cutesmith_evaluator.emulator.bulk import Box, BulkCommit, BulkLoad, BulkStore, BulkWait, Combine, Run
from cutesmith_evaluator.emulator.kinds import DTYPES, I32, U16, U32, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Immediate, Operand, TensorAddress
from cutesmith_evaluator.emulator.warps import Nothing

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]
_DIMENSIONS = ("1d", "2d", "3d", "4d", "5d")
_COMPLETES = "mbarrier::complete_tx::bytes"


def _changing(kind: str | np.dtype, change: Callable[[Array, Array], Array]) -> Combine:
    return lambda old, data: np.ascontiguousarray(change(old.view(kind), data.view(kind))).view(np.uint8)


ADDED: dict[str, Combine] = {
    "u32": _changing("u4", np.add),
    "s32": _changing("u4", np.add),
    "u64": _changing("u8", np.add),
    "s64": _changing("u8", np.add),
    "f64": _changing("f8", np.add),
    "f32": _changing("f4", float32.add),
    "f16": _changing("u2", lambda old, data: halves.add(old, data, "f16")),
    "bf16": _changing("u2", lambda old, data: halves.add(old, data, "bf16")),
}
_INTEGERS = ("u32", "s32", "u64", "s64", "b32", "b64")
_CHANGES = ("min", "max", "and", "or", "xor", "inc", "dec")  # of integers alone


def _hints(words: Words) -> bool:
    """Takes the words that only hint; whether a policy for the cache is the last operand."""
    return words.flag("L2::cache_hint")


def _box(lowering: Lowering, words: Words, operand: Operand) -> Box:
    instruction = words.instruction
    if not isinstance(operand, TensorAddress):
        raise unsupported(instruction, "its tensor map")
    corner = [lowering.slots.source(each, I32, instruction) for each in operand.coordinates]
    return Box(lowering.location(operand.map, "generic", instruction), corner)


def _run(lowering: Lowering, words: Words, start: Operand, size: Operand) -> Run:
    instruction = words.instruction
    return Run(lowering.location(start, "global", instruction), lowering.slots.source(size, U32, instruction))


def _tensor(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    words.one_of(_DIMENSIONS)
    operands = list(instruction.operands[: len(instruction.operands) - _hints(words)])
    first = words.one_of(("shared::cluster", "shared::cta", "global"))
    second = words.one_of(("shared::cta", "global"))
    words.flag("tile")
    if first == "global":
        if second == "global":
            raise unsupported(instruction)
        words.one_of(("bulk_group",))
        words.done()
        target, source = operands
        location = lowering.location(source, "shared", instruction)
        return BulkStore(_box(lowering, words, target), location, None, None, instruction.place)
    words.one_of((_COMPLETES,))
    multicast = words.flag("multicast::cluster")
    words.done()
    target, source, barrier, *mask = operands
    if len(mask) != multicast:
        raise unsupported(instruction)
    return BulkLoad(
        _box(lowering, words, source),
        None,
        lowering.location(target, "shared", instruction),
        lowering.location(barrier, "shared", instruction),
        lowering.slots.source(mask[0], U16, instruction) if multicast else None,
        instruction.place,
    )


def _bulk(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    operands = list(instruction.operands[: len(instruction.operands) - _hints(words)])
    first = words.one_of(("shared::cluster", "shared::cta", "global"))
    second = words.one_of(("shared::cta", "global"))
    if first == "global":
        if second == "global":
            raise unsupported(instruction)
        words.one_of(("bulk_group",))
        words.done()
        target, source, size = operands
        location = lowering.location(source, "shared", instruction)
        return BulkStore(_run(lowering, words, target, size), location, None, None, instruction.place)
    words.one_of((_COMPLETES,))
    multicast = words.flag("multicast::cluster")
    words.done()
    target, source, size, barrier, *mask = operands
    if len(mask) != multicast:
        raise unsupported(instruction)
    own = second == "shared::cta"
    return BulkLoad(
        lowering.location(source, "shared", instruction) if own else _run(lowering, words, source, size),
        lowering.slots.source(size, U32, instruction) if own else None,
        lowering.location(target, "shared", instruction),
        lowering.location(barrier, "shared", instruction),
        lowering.slots.source(mask[0], U16, instruction) if multicast else None,
        instruction.place,
    )


def _reduce(lowering: Lowering, words: Words) -> Step:
    """cp.reduce.async.bulk and its form for tensors, to global memory."""
    instruction = words.instruction
    dimensions = words.one_of(_DIMENSIONS, "")
    operands = list(instruction.operands[: len(instruction.operands) - _hints(words)])
    words.one_of(("global",))
    words.one_of(("shared::cta",))
    words.flag("tile")
    words.one_of(("bulk_group",))
    change = words.one_of(("add", *_CHANGES))
    words.flag("noftz")
    combine = ADDED if change == "add" else {kind: _changing(DTYPES[kind], CHANGES[change]) for kind in _INTEGERS}
    kind = None if dimensions else words.one_of(tuple(combine))
    words.done()
    target, source, *size = operands
    place = _box(lowering, words, target) if dimensions else _run(lowering, words, target, size[0])
    return BulkStore(place, lowering.location(source, "shared", instruction), combine, kind, instruction.place)


def _commit(lowering: Lowering, words: Words) -> Step:
    words.done()
    return BulkCommit(words.instruction.place)


def _wait(lowering: Lowering, words: Words) -> Step:
    words.flag("read")
    words.done()
    number = words.instruction.operands[0]
    if not isinstance(number, Immediate):
        raise unsupported(words.instruction)
    return BulkWait(number.bits, words.instruction.place)


def _prefetch(lowering: Lowering, words: Words) -> Step:
    return Nothing(words.instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "cp.async.bulk.tensor": _tensor,
    "cp.async.bulk": _bulk,
    **dict.fromkeys(("cp.reduce.async.bulk.tensor", "cp.reduce.async.bulk"), _reduce),
    "cp.async.bulk.commit_group": _commit,
    "cp.async.bulk.wait_group": _wait,
    "cp.async.bulk.prefetch": _prefetch,
}

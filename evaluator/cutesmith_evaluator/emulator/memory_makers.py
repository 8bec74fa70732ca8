"""ld, st, atom and red as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cutesmith_evaluator.emulator.access import Load, LoadParameter, Store
from cutesmith_evaluator.emulator.atomics import CHANGES, FLOAT_CHANGES, SeveralUpdates, Update
from cutesmith_evaluator.emulator.kinds import BITS, DTYPES, INTEGERS, Words, unsupported
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Address, Group, Instruction, Operand, Sink, Symbol

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.lowering import Lowering

_SPACES = ("param", "global", "shared", "const", "local")
_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "weak", "nc")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::no_allocate", "L1::evict_last", "L1::evict_first")
_PREFETCHES = ("L2::64B", "L2::128B", "L2::256B")


def _load(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    space, kind, count = _access(lowering, words)
    parts = lowering.targets(instruction.operands[0], instruction)
    if len(parts) != count:
        raise unsupported(instruction)
    element = DTYPES[kind] if kind[0] == "s" else np.dtype(f"u{DTYPES[kind].itemsize}")
    if any(part and part.dtype.itemsize < element.itemsize for part in parts):
        raise unsupported(instruction, "into a narrower register")
    address = instruction.operands[1]
    if space == "param" and isinstance(address, Address) and isinstance(address.base, Symbol):
        offset = _parameter(lowering, instruction)
        end = max(parameter.offset + parameter.size for parameter in lowering.kernel.parameters)
        if not 0 <= offset <= end - element.itemsize * count:
            raise unsupported(instruction, "beyond the parameters")
        return LoadParameter(offset, element, parts, instruction.place)
    location = lowering.location(instruction.operands[1], space, instruction)
    return Load(location, element, parts, instruction.used_bytes, instruction.place)


def _store(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    space, kind, count = _access(lowering, words)
    address, value, *_ = instruction.operands
    items = value.items if isinstance(value, Group) else (value,)
    if len(items) != count or space in ("param", "const"):
        raise unsupported(instruction)
    element = np.dtype(f"u{DTYPES[kind].itemsize}")
    sources = [lowering.slots.source(item, element, instruction, relaxed=True) for item in items]
    return Store(lowering.location(address, space, instruction), element, sources, instruction.place)


def _atomic(lowering: Lowering, words: Words) -> Step:
    instruction = words.instruction
    for known in (_ORDERS, _SCOPES):
        words.one_of(known, "")
    space = words.space(("global", "shared"))
    change = words.one_of(tuple(CHANGES))
    words.flag("noftz")
    count = words.number()
    kind = words.kind((*BITS, *INTEGERS, *FLOAT_CHANGES))
    words.done()
    if (kind in FLOAT_CHANGES and change != "add") or (count and words.name != "red"):
        raise unsupported(instruction)
    dtype = DTYPES[kind]
    lowering.note_access(space, dtype.itemsize)
    result, address, *values = instruction.operands if words.name == "atom" else (Sink(), *instruction.operands)
    where = lowering.location(address, space, instruction)
    function, target = FLOAT_CHANGES.get(kind, CHANGES[change]), lowering.target(result, instruction)

    def update(offset: int, operands: Sequence[Operand]) -> Update:
        sources = [lowering.slots.source(value, dtype, instruction) for value in operands]
        place = replace(where, offset=where.offset + offset)
        return Update(place, dtype, function, sources, target, instruction.place)

    if not count:
        return update(0, values)
    if not isinstance(values[0], Group) or len(values[0].items) != count:
        raise unsupported(instruction)
    updates = [update(dtype.itemsize * place, [item]) for place, item in enumerate(values[0].items)]
    return SeveralUpdates(updates, instruction.place)


def _access(lowering: Lowering, words: Words) -> tuple[str, str, int]:
    """The space, the element's type and the elements of a load or store."""
    for known in (_ORDERS, _SCOPES, _CACHE, _PREFETCHES):
        words.one_of(known, "")
    space = words.space(_SPACES)
    words.flag("nc")
    words.flag("L2::cache_hint")  # its policy is the last operand
    count = words.number() or 1
    kind = words.kind(tuple(name for name in DTYPES if not name.endswith("x2") and name != "pred"))
    words.done()
    unit = DTYPES[kind].itemsize * count
    if unit > 16:
        raise unsupported(words.instruction, f"{unit} bytes at once")
    lowering.note_access(space, min(DTYPES[kind].itemsize, _mask_grain(words.instruction)))
    return space, kind, count


def _parameter(lowering: Lowering, instruction: Instruction) -> int:
    """The offset in the arguments' bytes."""
    address = instruction.operands[1]
    if isinstance(address, Address) and isinstance(address.base, Symbol):
        for parameter in lowering.kernel.parameters:
            if parameter.name == address.base.name:
                return parameter.offset + address.offset
    raise unsupported(instruction, "its address")


def _mask_grain(instruction: Instruction) -> int:
    """The largest piece that the used bytes of a load are made of."""
    used = instruction.used_bytes
    if used is None:
        return 16
    for grain in (8, 4, 2):
        pieces = [(used >> place) & ((1 << grain) - 1) for place in range(0, 16, grain)]
        if all(piece in (0, (1 << grain) - 1) for piece in pieces):
            return grain
    return 1


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    **dict.fromkeys(("ld", "ldu"), _load),
    "st": _store,
    **dict.fromkeys(("atom", "red"), _atomic),
}

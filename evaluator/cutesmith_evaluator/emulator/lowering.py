"""One instruction to one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cutesmith_evaluator.emulator.access import Load, LoadParameter, Location, Store
from cutesmith_evaluator.emulator.atomics import CHANGES, FLOAT_CHANGES, Update
from cutesmith_evaluator.emulator.flow import Flow
from cutesmith_evaluator.emulator.kinds import BITS, BOOL, DTYPES, INTEGERS, U32, U64, Words, unsupported
from cutesmith_evaluator.emulator.layout import LOCAL_WINDOW, SHARED_WINDOW
from cutesmith_evaluator.emulator.operation import Operation
from cutesmith_evaluator.emulator.operations import OPERATIONS
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import (
    Address,
    Group,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
)
from cutesmith_evaluator.emulator.slots import Slots
from cutesmith_evaluator.emulator.steps import Compute, Target
from cutesmith_evaluator.emulator.warps import VOTES, Nothing, Shuffle, Trap, Vote, WarpBarrier, ballot

_SPACES = ("param", "global", "shared", "const", "local")
_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "weak", "nc")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::no_allocate", "L1::evict_last", "L1::evict_first")
_PREFETCHES = ("L2::64B", "L2::128B", "L2::256B")
_NOTHING = ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "griddepcontrol", "discard", "applypriority")
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0, "param": 0}


class Lowering:
    """Makes the steps of one kernel. `grain`: the smallest access to shared or local memory so far, in bytes."""

    def __init__(self, kernel: Kernel, slots: Slots, flow: Flow) -> None:
        self.grain = 16
        self._kernel, self._slots, self._flow = kernel, slots, flow
        self._block = 0
        self._makers: dict[str, Callable[[Words], Step]] = {
            "ld": self._load,
            "ldu": self._load,
            "st": self._store,
            "atom": self._atomic,
            "red": self._atomic,
            "mov": self._move,
            "cvta": self._cvta,
            "shfl": self._shuffle,
            "vote": self._vote,
            "activemask": self._activemask,
            "bar": self._warp_barrier,
            "trap": lambda words: Trap(words.instruction.place),
            **dict.fromkeys(_NOTHING, lambda words: Nothing(words.instruction.place)),
        }

    def step(self, instruction: Instruction, block: int) -> Step:
        """Raises UnsupportedError."""
        self._block = block
        words = Words(instruction)
        if words.name in OPERATIONS:
            return self._compute(words, OPERATIONS[words.name](words))
        if words.name not in self._makers:
            raise unsupported(instruction)
        return self._makers[words.name](words)

    def member_slot(self, instruction: Instruction) -> int | None:
        """The slot of the lanes that a warp-wide instruction waits for."""
        if instruction.words[0] in ("shfl", "vote") or instruction.words[:2] == ["bar", "warp"]:
            return self._slots.source(instruction.operands[-1], U32, instruction)
        return None

    def _target(self, operand: Operand, instruction: Instruction) -> Target | None:
        if isinstance(operand, Sink):
            return None
        if not isinstance(operand, Register):
            raise unsupported(instruction, "its result")
        slot = self._slots.register(operand)
        return Target(slot, self._slots.dtype(slot), self._flow.keeps_old(operand, self._block))

    def _targets(self, operand: Operand, instruction: Instruction) -> list[Target | None]:
        match operand:
            case Group(items):
                return [self._target(item, instruction) for item in items]
            case Pair(first, second):
                return [self._target(first, instruction), self._target(second, instruction)]
            case _:
                return [self._target(operand, instruction)]

    def _compute(self, words: Words, operation: Operation) -> Compute:
        instruction = words.instruction
        targets = self._targets(instruction.operands[0], instruction)
        operands = instruction.operands[1:]
        if len(operands) != len(operation.sources) or len(targets) != len(operation.results):
            raise unsupported(instruction, f"with {len(operands)} operands")
        function, sources = operation.function, []
        for place, (operand, dtype) in enumerate(zip(operands, operation.sources, strict=True)):
            if isinstance(operand, Negated):
                function = _negating(function, place)
                operand = operand.register
            sources.append((self._slots.source(operand, dtype, instruction, relaxed=operation.relaxed), dtype))
        for target, dtype in zip(targets, operation.results, strict=True):
            narrower = target is not None and target.dtype.itemsize != dtype.itemsize
            if narrower and not (operation.relaxed and target and target.dtype.itemsize > dtype.itemsize):
                raise unsupported(instruction, "its result has another width")
        return Compute(function, sources, targets, instruction.place, _family(instruction))

    def _move(self, words: Words) -> Step:
        """mov: copies, packs and unpacks."""
        instruction = words.instruction
        kind = words.kind((*BITS, *INTEGERS, "f32", "f64", "pred"))
        words.done()
        dtype = BOOL if kind == "pred" else np.dtype(f"u{DTYPES[kind].itemsize}")
        result, source = instruction.operands
        if isinstance(source, Group):
            part = np.dtype(f"u{dtype.itemsize // len(source.items)}")
            return self._moved(words, _packing(dtype, part), [(item, part) for item in source.items], result)
        if isinstance(result, Group):
            part = np.dtype(f"u{dtype.itemsize // len(result.items)}")
            return self._moved(words, _unpacking(dtype, part, len(result.items)), [(source, dtype)], result)
        return self._moved(words, lambda value: value, [(source, dtype)], result)

    def _moved(
        self, words: Words, function: Callable, sources: Sequence[tuple[Operand, np.dtype]], result: Operand
    ) -> Step:
        instruction = words.instruction
        slots = [(self._slots.source(operand, dtype, instruction), dtype) for operand, dtype in sources]
        return Compute(function, slots, self._targets(result, instruction), instruction.place, "move")

    def _cvta(self, words: Words) -> Step:
        """Between generic addresses and those of one memory."""
        back = words.flag("to")
        window = _WINDOWS[words.one_of(tuple(_WINDOWS))]
        words.kind(("u64",))
        words.done()
        step = np.uint64((-window if back else window) % (1 << 64))
        return self._compute(words, Operation(lambda a: a + step, (U64,), (U64,)))

    def _access(self, words: Words) -> tuple[str, str, int]:
        """The space, the element's type and the elements of a load or store."""
        for known in (_ORDERS, _SCOPES, _CACHE, _PREFETCHES):
            words.one_of(known, "")
        space = words.one_of(_SPACES, "generic")
        words.flag("nc")
        count = words.number() or 1
        kind = words.kind(tuple(name for name in DTYPES if not name.endswith("x2") and name != "pred"))
        words.done()
        unit = DTYPES[kind].itemsize * count
        if unit > 16:
            raise unsupported(words.instruction, f"{unit} bytes at once")
        if space in ("shared", "local", "generic"):
            self.grain = min(self.grain, DTYPES[kind].itemsize, _mask_grain(words.instruction))
        return space, kind, count

    def _location(self, operand: Operand, space: str, instruction: Instruction) -> Location:
        if not isinstance(operand, Address):
            raise unsupported(instruction, "its address")
        base = operand.base
        narrow = isinstance(base, Register) and self._slots.dtype(self._slots.register(base)).itemsize == 4
        slot = self._slots.source(base, U32 if narrow else U64, instruction)
        return Location(space, slot, operand.offset)

    def _load(self, words: Words) -> Step:
        instruction = words.instruction
        space, kind, count = self._access(words)
        parts = self._targets(instruction.operands[0], instruction)
        if len(parts) != count:
            raise unsupported(instruction)
        element = DTYPES[kind] if kind[0] == "s" else np.dtype(f"u{DTYPES[kind].itemsize}")
        if any(part and part.dtype.itemsize < element.itemsize for part in parts):
            raise unsupported(instruction, "into a narrower register")
        if space == "param":
            return LoadParameter(self._parameter(instruction), element, parts, instruction.place)
        location = self._location(instruction.operands[1], space, instruction)
        return Load(location, element, parts, instruction.used_bytes, instruction.place)

    def _parameter(self, instruction: Instruction) -> int:
        """The offset in the arguments' bytes."""
        address = instruction.operands[1]
        if isinstance(address, Address) and isinstance(address.base, Symbol):
            for parameter in self._kernel.parameters:
                if parameter.name == address.base.name:
                    return parameter.offset + address.offset
        raise unsupported(instruction, "its address")

    def _store(self, words: Words) -> Step:
        instruction = words.instruction
        space, kind, count = self._access(words)
        address, value = instruction.operands
        items = value.items if isinstance(value, Group) else (value,)
        if len(items) != count or space in ("param", "const"):
            raise unsupported(instruction)
        element = np.dtype(f"u{DTYPES[kind].itemsize}")
        sources = [self._slots.source(item, element, instruction, relaxed=True) for item in items]
        return Store(self._location(address, space, instruction), element, sources, instruction.place)

    def _atomic(self, words: Words) -> Step:
        instruction = words.instruction
        for known in (_ORDERS, _SCOPES):
            words.one_of(known, "")
        space = words.one_of(("global", "shared"), "generic")
        change = words.one_of(tuple(CHANGES))
        words.flag("noftz")
        kind = words.kind((*BITS, *INTEGERS, *FLOAT_CHANGES))
        words.done()
        if kind in FLOAT_CHANGES and change != "add":
            raise unsupported(instruction)
        dtype = DTYPES[kind]
        self.grain = min(self.grain, dtype.itemsize) if space != "global" else self.grain
        result, address, *values = instruction.operands if words.name == "atom" else (Sink(), *instruction.operands)
        return Update(
            self._location(address, space, instruction),
            dtype,
            FLOAT_CHANGES.get(kind, CHANGES[change]),
            [self._slots.source(value, dtype, instruction) for value in values],
            self._target(result, instruction),
            instruction.place,
        )

    def _shuffle(self, words: Words) -> Step:
        instruction = words.instruction
        words.one_of(("sync",))
        mode = words.one_of(("up", "down", "bfly", "idx"))
        words.kind(("b32",))
        words.done()
        results = self._targets(instruction.operands[0], instruction)
        value, lane, clamp = (self._slots.source(each, U32, instruction) for each in instruction.operands[1:4])
        within = results[1] if len(results) > 1 else None
        return Shuffle(mode, value, lane, clamp, results[0], within, instruction.place)

    def _vote(self, words: Words) -> Step:
        instruction = words.instruction
        words.one_of(("sync",))
        mode = words.one_of(tuple(VOTES))
        words.kind(("b32",) if mode == "ballot" else ("pred",))
        words.done()
        predicate = instruction.operands[1]
        target = self._target(instruction.operands[0], instruction)
        if target is None or isinstance(predicate, Negated):
            raise unsupported(instruction)
        return Vote(VOTES[mode], self._slots.source(predicate, BOOL, instruction), target, instruction.place)

    def _activemask(self, words: Words) -> Step:
        words.kind(("b32",))
        words.done()
        target = self._target(words.instruction.operands[0], words.instruction)
        if target is None:
            raise unsupported(words.instruction)
        return Vote(ballot, None, target, words.instruction.place)

    def _warp_barrier(self, words: Words) -> Step:
        words.one_of(("warp",))
        words.one_of(("sync",))
        words.done()
        return WarpBarrier(words.instruction.place)


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


def _negating(function: Callable, place: int) -> Callable:
    def run(*values: np.ndarray) -> np.ndarray:
        return function(*(~value if number == place else value for number, value in enumerate(values)))

    return run


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


def _family(instruction: Instruction) -> str:
    """What the instruction counts as."""
    first = instruction.words[0]
    if first in ("setp", "selp", "testp"):
        return "compare"
    if first == "cvt":
        return "convert"
    if first in ("ex2", "lg2", "rsqrt", "tanh", "sin", "cos", "rcp", "sqrt"):
        return "special function"
    kinds = set(instruction.words[1:])
    return "float" if kinds & {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2"} else "integer"

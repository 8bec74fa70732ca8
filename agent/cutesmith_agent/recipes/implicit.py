"""Convolutions as matrix products, at fp32 accuracy through fp16 splits, with the pointwise work that follows them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Graph, GraphInput, Ref

from . import implicit_channels, implicit_epilogue, implicit_parts
from . import implicit_kernel as text
from .accesses import Access, Tensors, param, pointer, tensors_of
from .implicit_epilogue import Ending
from .implicit_geometry import Convolution, convolution_of
from .implicit_schedules import ImplicitSchedule
from .ir import Const, Load, Op, Reduce, walk
from .library import without_library
from .lowering import Program, Store, lower
from .pointwise import KernelText
from .product_engine import placed
from .product_finish import finish_of
from .product_split import SCALES, STORE_PARTS
from .space import contiguous
from .text import identifier, loads_of

OWN = ("source", "weight", "weight_undo")  # what finishing a tile needs besides the epilogue's tensors


@dataclass(frozen=True)
class Windows:
    """A program of results of a convolution, element by element; `result`: where it reads those; `summed`: a tile's
    results are added up by channels."""

    program: Program
    found: Convolution
    result: Load
    tensors: Tensors
    summed: bool = False

    @property
    def reduces(self) -> bool:
        """Whether channels are reduced: all of a position's are in one tile."""
        return self.program.has_reductions

    @property
    def takes_rows(self) -> bool:
        """Whether results may be written in rows, by way of shared memory."""
        is_one = not self.reduces or (len(self.program.stores) == 1 and self.program.stores[0].per_column)
        return is_one and not self.summed and self.found.along[2].step <= 2

    @property
    def outside(self) -> tuple[Access, ...]:
        """What the kernel reads besides the convolution's operands, and what it writes."""
        return (*(a for a in self.tensors.loads if a.load is not self.result), *self.tensors.stores)

    def ending(self, schedule: ImplicitSchedule) -> Ending:
        fast = schedule.parts == 1
        if self.reduces:
            padded = schedule.n != self.found.out_channels
            return implicit_channels.over_channels(self, padded=padded, fast=fast, in_rows=schedule.in_rows)
        finish = finish_of(self.tensors, self.result, (self.result,), rough=True, fast=fast)
        if self.summed:
            return implicit_epilogue.summed(finish)
        whole = self.found.out_channels % schedule.n == 0
        if schedule.in_rows:
            channels = schedule.staged * schedule.plane // schedule.threads
            return implicit_epilogue.in_rows(finish, whole=whole, channels=channels)
        return implicit_epilogue.pointwise(finish, whole=whole)


def windows_of(graph: Graph) -> Windows | None:
    """The graph as one convolution with pointwise work and reductions over channels; None for all else."""
    pair = convolution_of(graph)
    if pair is None:
        return None
    rest, (call,) = without_library(graph, alone=True)
    program = replace(lower(rest), graph=replace(rest, nodes=graph.nodes))
    roots = tuple(s.expr for s in program.stores)
    loads = loads_of(roots)
    results = [load for load in loads if load.name == call.result.name]
    if len(results) != 1 or not all(isinstance(e, Const | Load | Op | Reduce) for e in walk(roots)):
        return None
    shape = pair[0].outputs[0].shape
    if tuple(map(len, program.dims)) != (1,) * len(shape) or not _is_in_order(program, results[0], shape):
        return None
    if len(program.stores) != len(graph.outputs) or not all(_is_in_order(program, s, shape) for s in program.stores):
        return None
    return Windows(program, pair[1], results[0], _tensors(program, pair[1], results[0]))


def _is_in_order(program: Program, at: Load | Store, shape: tuple[int, ...]) -> bool:
    """Whether an access walks a contiguous tensor of the convolution's results, or of what is left of its channels."""
    reduced = program.has_reductions
    if reduced and program.columns != shape[1]:
        return False
    kept = (shape[0], 1, *shape[2:]) if reduced and not at.per_column else shape
    strides = [stride if n > 1 else 0 for n, stride in zip(kept, contiguous(kept), strict=True)]
    if reduced:
        strides.append(strides.pop(1))
    return at.strides == tuple(strides) and at.offset == 0


def _tensors(program: Program, found: Convolution, result: Load) -> Tensors:
    loads = tuple(load for load in loads_of(tuple(s.expr for s in program.stores)) if load is not result)
    used = tensors_of(program, loads)
    names = dict(used.names)
    inputs = list(used.inputs)
    for given in (found.weight, found.x):
        if given.name not in names:
            name = identifier((given.path or given.name).replace(".", "_"))
            while name in names.values():
                name += "_"
            names[given.name] = name
            inputs.insert(0, given)
    inputs.sort(key=lambda i: i.position is None)
    return replace(used, inputs=tuple(inputs), names=names)


def sums_of(windows: Windows, result: GraphInput) -> Program:
    """What a kernel computes that leaves sums of tiles as `result`."""
    graph = windows.program.graph
    node = replace(graph.nodes[-1], name=result.name, args=graph.outputs, kwargs={}, outputs=(result.spec,))
    return replace(windows.program, graph=replace(graph, nodes=(*graph.nodes, node), outputs=(Ref(result.name),)))


def emit(windows: Windows, schedule: ImplicitSchedule, name: str) -> tuple[KernelText, str]:
    """The text, and the fp32 values of workspace it needs."""
    ending = windows.ending(schedule)
    one = schedule.parts == 1
    pieces = (
        text.IMPORTS,
        "\n".join(_geometry(schedule)) + text.DERIVED.rstrip(),
        SCALES + (implicit_parts.STORE_ONE if one else STORE_PARTS),
        implicit_parts.SPLIT_WEIGHT,
        placed(implicit_parts.LOAD, "{store}", implicit_parts.TO_ONE if one else implicit_parts.TO_PARTS),
        text.OPERANDS,
        *(function for function in ending.functions if function),
        _kernel(schedule, ending),
        "\n".join(_host(windows, name)),
    )
    words = dict(ending.words) | _words(windows, name)
    lines = [line for piece in pieces for line in (*_filled(piece, words), "")]
    return KernelText(tuple(lines[:-1]), windows.tensors), str(schedule.workspace)


def _kernel(schedule: ImplicitSchedule, ending: Ending) -> str:
    one, kept = schedule.parts == 1, schedule.is_kept
    fill_next = "" if kept else placed(text.FILL_NEXT, "{fill}", text.FILL.replace("{number}", "next_piece"))
    once = placed(text.FILL_ONCE, "{fill}", text.FILL.replace("{number}", "piece"))
    start = once if kept else placed(text.FILL_FIRST, "{fill_next}", fill_next)
    direct = text.DIRECT.replace("{products}", "((0, 0),)" if one else "((1, 0), (0, 1), (0, 0))")
    piece = placed(text.PIECE if schedule.is_promoted else direct, "{release}", "" if kept else text.RELEASE)
    piece = placed(placed(piece, "{fill_next}", fill_next), "{wait}", "" if kept else text.WAIT)
    piece = placed(text.ADDED_AT_ONCE, "{piece}", piece) if schedule.is_promoted else piece
    number = "FIRST[phase] + step * PIECES[phase] + piece" if kept else "reading.index"
    phase = placed(text.PHASE, "{piece}", piece.replace("{stage}", number))
    phase = placed(phase, "{finish}", ending.finish)
    phase = placed(text.APART, "{phase}", phase) if kept and len(schedule.found.taps) > 1 else phase
    states = f"{ending.states}\n{text.PARTIAL if schedule.is_promoted else text.ADDING}"
    kernel = text.KERNEL
    for mark, block in (
        ("{phase}", phase),
        ("{start}", start),
        ("{states}", states),
        ("{begin}", ending.begin),
        ("{end}", ending.end),
    ):
        kernel = placed(kernel, mark, block)
    return kernel


def _words(windows: Windows, name: str) -> dict[str, str]:
    tensors = (*OWN, *(a.gmem for a in windows.outside))
    return {
        "{name}": name,
        "{tensors}": ", ".join(tensors),
        "{parameters}": "\n    ".join(f"{tensor}: cute.Tensor," for tensor in tensors),
    }


def _filled(piece: str, words: dict[str, str]) -> list[str]:
    for word, given in words.items():
        piece = piece.replace(word, given)
    return piece.strip("\n").split("\n")


def _geometry(schedule: ImplicitSchedule) -> list[str]:
    """Constants of the convolution, and by phase the kernel's elements along each dimension with their places."""

    def each(word: str, values: tuple[object, ...]) -> str:
        return f"{', '.join(f'{word}_{axis}' for axis in 'ZYX')} = {', '.join(map(str, values))}"

    found, along = schedule.found, schedule.found.along
    return [
        f"BATCH, CHANNELS, OUT_CHANNELS = {found.batch}, {found.channels}, {found.out_channels}",
        f"ROUND, ROUNDS = {schedule.round}, {schedule.rounds}  # eights of channels that are multiplied at a time",
        each("SIZE", tuple(dim.size for dim in along)) + "  # of the input",
        each("START", tuple(dim.start for dim in along)) + "  # where the first window begins",
        each("RESULTS", tuple(dim.results for dim in along)),
        each("POSITIONS", tuple(dim.positions for dim in along)),
        each("STEP", tuple(dim.step for dim in along)) + "  # results of a position",
        each("KERNEL", tuple(dim.kernel for dim in along)),
        "KERNEL = KERNEL_Z * KERNEL_Y * KERNEL_X",
        each("REACH", tuple(dim.reach for dim in along)) + "  # places of a window",
        "# Result o has element t of input i where STEP * i = o + BEGIN + APART * t.",
        each("BEGIN", tuple(dim.begin for dim in along)),
        each("APART", tuple(dim.apart for dim in along)),
        "# By phase: (element of the kernel, place in a window).",
        *(f"ALONG_{axis} = {dim.phases}" for axis, dim in zip("ZYX", along, strict=True)),
        "",
    ]


def _host(windows: Windows, name: str) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in _parameters(windows))
    body = [
        f"source = {_source(windows)}",
        f"weight = {_weight(windows)}",
        *(f"{a.gmem} = {_around(windows, a)}" for a in windows.outside),
        *text.HOST.strip("\n").split("\n"),
    ]
    return [
        "@cute.jit",
        f"def {name}({arguments}, mWork: cute.Tensor, stream: CUstream):",
        *(f"    {line}" for line in body),
        "",
        f"return {name}",
    ]


def _parameters(windows: Windows) -> tuple[str, ...]:
    tensors = windows.tensors
    outputs = {a.store.output: a.param for a in tensors.stores if a.store is not None}
    return (*(param(tensors.names[i.name]) for i in tensors.inputs), *(outputs[k] for k in sorted(outputs)))


def _source(windows: Windows) -> str:
    along = windows.found.along
    sizes = (windows.found.channels, *(dim.size for dim in along))
    strides = ", ".join(str(math.prod(sizes[k + 1 :])) for k in range(-1, len(sizes)))
    layout = f"cute.make_layout((BATCH, CHANNELS, SIZE_Z, SIZE_Y, SIZE_X), stride=({strides}))"
    return f"cute.make_tensor({_param(windows, windows.found.x)}.iterator, {layout})"


def _weight(windows: Windows) -> str:
    outer = ("KERNEL", "OUT_CHANNELS * KERNEL") if windows.found.transposed else ("CHANNELS * KERNEL", "KERNEL")
    layout = f"cute.make_layout((OUT_CHANNELS, CHANNELS, KERNEL), stride=({', '.join(outer)}, 1))"
    return f"cute.make_tensor({_param(windows, windows.found.weight)}.iterator, {layout})"


def _param(windows: Windows, given: GraphInput) -> str:
    return param(windows.tensors.names[given.name])


def _around(windows: Windows, access: Access) -> str:
    """A result, or what the epilogue reads besides, by the results' dimensions."""
    if windows.summed and access.store:
        layout = "cute.make_layout((BATCH, OUT_CHANNELS, SUMS), stride=(OUT_CHANNELS * SUMS, SUMS, 1))"
        return f"cute.make_tensor({pointer(access)}, {layout})"
    at = access.load or access.store
    assert at is not None
    strides = list(at.strides)
    if windows.reduces:
        strides.insert(1, strides.pop())
    strides[2:2] = [0] * (5 - len(strides))
    layout = (
        f"cute.make_layout((BATCH, OUT_CHANNELS, RESULTS_Z, RESULTS_Y, RESULTS_X), "
        f"stride=({', '.join(map(str, strides))}))"
    )
    return f"cute.make_tensor({pointer(access)}, {layout})"

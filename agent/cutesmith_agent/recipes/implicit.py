"""Convolutions as matrix products, at fp32 accuracy through fp16 splits, with the pointwise work that follows them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutesmith_evaluator.types import Graph, GraphInput

from . import implicit_finish, implicit_parts
from . import implicit_kernel as text
from .accesses import Access, Tensors, param, pointer, tensors_of
from .implicit_geometry import Convolution, convolution_of
from .implicit_schedules import ImplicitSchedule
from .ir import Const, Load, Op, walk
from .library import without_library
from .lowering import Program, Store, lower
from .pointwise import KernelText
from .product_engine import placed
from .product_finish import Finish, finish_of
from .product_split import SCALES, STORE_PARTS
from .text import identifier, loads_of

OWN = ("source", "weight", "weight_undo")  # what finishing a tile needs besides the epilogue's tensors


@dataclass(frozen=True)
class Windows:
    """A program of results of a convolution, element by element; `result`: where it reads those."""

    program: Program
    found: Convolution
    result: Load
    tensors: Tensors

    @property
    def finish(self) -> Finish:
        return finish_of(self.tensors, self.result, (self.result,), rough=True)


def windows_of(graph: Graph) -> Windows | None:
    """The graph as one convolution with pointwise work; None for all else."""
    pair = convolution_of(graph)
    if pair is None:
        return None
    rest, (call,) = without_library(graph, alone=True)
    program = replace(lower(rest), graph=replace(rest, nodes=graph.nodes))
    roots = tuple(s.expr for s in program.stores)
    loads = loads_of(roots)
    results = [load for load in loads if load.name == call.result.name]
    if len(results) != 1 or not all(isinstance(e, Const | Load | Op) for e in walk(roots)):
        return None
    shape = pair[0].outputs[0].shape
    if tuple(map(len, program.dims)) != (1,) * len(shape) or not _is_in_order(program, results[0]):
        return None
    if len(program.stores) != len(graph.outputs) or not all(_is_in_order(program, s) for s in program.stores):
        return None
    return Windows(program, pair[1], results[0], _tensors(program, pair[1], results[0]))


def _is_in_order(program: Program, at: Load | Store) -> bool:
    """Whether an access walks a contiguous tensor of the program's sizes."""
    strides = tuple(math.prod(program.sizes[k + 1 :]) if n > 1 else 0 for k, n in enumerate(program.sizes))
    return at.strides == strides and at.offset == 0


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


def emit(windows: Windows, schedule: ImplicitSchedule, name: str) -> tuple[KernelText, str]:
    """The text, and the fp32 values of workspace it needs."""
    finish = windows.finish
    words = _words(finish, name)
    one = schedule.parts == 1
    kernel = _kernel(schedule)
    pieces = (
        text.IMPORTS,
        "\n".join(_geometry(schedule)) + text.DERIVED.rstrip(),
        SCALES + (implicit_parts.STORE_ONE if one else STORE_PARTS),
        "\n".join(finish.lines),
        _store(finish),
        implicit_parts.SPLIT_WEIGHT,
        placed(implicit_parts.LOAD, "{store}", implicit_parts.TO_ONE if one else implicit_parts.TO_PARTS),
        text.OPERANDS,
        _finishing(windows, finish, schedule),
        kernel,
        "\n".join(_host(windows, finish, name)),
    )
    lines = [line for piece in pieces for line in (*_filled(piece, words), "")]
    return KernelText(tuple(lines[:-1]), windows.tensors), str(schedule.workspace)


def _kernel(schedule: ImplicitSchedule) -> str:
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
    phase = placed(text.APART, "{phase}", phase) if kept and len(schedule.found.taps) > 1 else phase
    kernel = placed(text.KERNEL, "{phase}", phase)
    kernel = placed(kernel, "{start}", start)
    return placed(kernel, "{states}", text.PARTIAL if schedule.is_promoted else text.ADDING)


def _words(finish: Finish, name: str) -> dict[str, str]:
    tensors = (*OWN, *finish.tensors)
    return {
        "{name}": name,
        "{tensors}": ", ".join(tensors),
        "{outside}": ", ".join(finish.tensors),
        "{together}": "4" if any("cute.math" in line for line in finish.lines) else "8",
        "{varying}": ", ".join(_varying(finish)),
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


def _of_a_channel(access: Access) -> bool:
    """Whether an operand of the epilogue is the same for all positions."""
    assert access.load is not None
    return not any(stride for k, stride in enumerate(access.load.strides) if k != 1)


def _finishing(windows: Windows, finish: Finish, schedule: ImplicitSchedule) -> str:
    """From sums to results: a few at a time, without branches between them."""
    varying = [a for a in finish.operands if not _of_a_channel(a)]
    results = [f"results_{k}" if len(finish.outputs) > 1 else "results" for k in range(len(finish.outputs))]
    single = [f"{result}[i - first]" for result in results]
    arguments = ", ".join(("value", *(_argument(a) for a in finish.operands)))
    made = [f"{result} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)" for result in results]
    computed = [f"{', '.join(single)} = epilogue({arguments})"]
    reading = []
    for line, when in (("one", "<"), ("other", ">=")) if varying else ():
        reading += [f"if is_{line}:", "    for i in cutlass.range_constexpr(first, end):"]
        reading += ["        channel = cutlass.min(first_channel + places[i][1], OUT_CHANNELS - 1)"]
        reading += [f"        if cutlass.const_expr(i % 4 {when} 2):"]
        reading += [
            f"            of_{a.gmem}[i - first] = {line}[{k}][channel].to(cutlass.Float32)"
            for k, a in enumerate(varying)
        ]
    for a in varying:
        made += [f"of_{a.gmem} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)", f"of_{a.gmem}.fill(0.0)"]
    body = placed(placed(implicit_finish.FINISH, "{results}", "\n".join(made)), "{read}", "\n".join(reading))
    body = placed(body, "{epilogue}", "\n".join(computed))
    whole = windows.found.out_channels % schedule.n == 0
    for line in ("one", "other"):
        stores = [
            f"{line}[{len(varying) + k}][channel] = {single[k]}.to({a.gmem}.element_type)"
            for k, a in enumerate(finish.outputs)
        ]
        guarded = stores if whole else ["if channel < OUT_CHANNELS:", *(f"    {each}" for each in stores)]
        body = placed(body, f"{{store_{line}}}", "\n".join(guarded))
    return body


def _store(finish: Finish) -> str:
    """The function that computes and writes one result of each output, and what a position has."""
    at = "n, channel, z, y, x"
    arguments = ", ".join(("value", *(f"{a.gmem}[{at}].to(cutlass.Float32)" for a in finish.operands)))
    results = [f"result_{k}" if len(finish.outputs) > 1 else "result" for k in range(len(finish.outputs))]
    lines = [
        "def at_position(n, z, y, x, {varying}):",
        '    """What lies at a position, by channels."""',
        f"    return ({' '.join(f'{name}[n, None, z, y, x],' for name in _varying(finish))})",
        "",
        f"def store(value, {at}, {{outside}}):",
        f"    {', '.join(results)} = epilogue({arguments})",
        *(f"    {a.gmem}[{at}] = {r}.to({a.gmem}.element_type)" for a, r in zip(finish.outputs, results, strict=True)),
    ]
    return "\n".join(lines)


def _argument(access: Access) -> str:
    if _of_a_channel(access):
        return f"{access.gmem}[0, channel, 0, 0, 0].to(cutlass.Float32)"
    return f"of_{access.gmem}[i - first]"


def _varying(finish: Finish) -> tuple[str, ...]:
    """Tensors that differ from position to position."""
    return tuple(a.gmem for a in (*(a for a in finish.operands if not _of_a_channel(a)), *finish.outputs))


def _host(windows: Windows, finish: Finish, name: str) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in _parameters(windows))
    body = [
        f"source = {_source(windows)}",
        f"weight = {_weight(windows)}",
        *(f"{a.gmem} = {_around(windows, a)}" for a in (*finish.operands, *finish.outputs)),
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
    at = access.load or access.store
    assert at is not None
    strides = list(at.strides)
    strides[2:2] = [0] * (5 - len(strides))
    layout = (
        f"cute.make_layout((BATCH, OUT_CHANNELS, RESULTS_Z, RESULTS_Y, RESULTS_X), "
        f"stride=({', '.join(map(str, strides))}))"
    )
    return f"cute.make_tensor({pointer(access)}, {layout})"

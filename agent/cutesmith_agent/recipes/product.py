"""The product family: an fp32 matrix product on tensor cores, at fp32 accuracy through fp16 splits.

Each factor is written once as two fp16 matrices, high and low. Tensor cores sum high * low + low * high + high * high
over a stage at a time, fp32 registers the stages.
"""

from __future__ import annotations

from . import product_finish, product_host, product_split
from .accesses import tensors_of
from .contract import Unsupported
from .contraction import contraction_of
from .ir import Const, Load, Op, walk
from .layout import open_shapes
from .lowering import Program
from .pointwise import KernelText
from .product_engine import Engine, Schedule
from .product_finish import finish_of, store_text
from .product_views import Views
from .text import loads_of

LINES_PER_BLOCK = "LINES_PER_BLOCK = 256 // SPLIT_THREADS"
SLICE_LEAST, SLICES_MOST = 256, 32


def views_of(program: Program) -> Views | None:
    """The program as one matrix product of fp32 tensors, or None. Raises `Unsupported` for products that no kernel
    computes yet."""
    found = contraction_of(program)
    if found is None:
        return None
    if (found.left.dtype, found.right.dtype) != ("float32", "float32"):
        raise Unsupported(f"no recipe covers matrix products of {found.left.dtype} and {found.right.dtype}")
    roots = tuple(s.expr for s in program.stores)
    if not all(isinstance(e, Const | Load | Op) or e is found.total for e in walk(roots)):
        raise Unsupported("no recipe covers a matrix product next to windows, scans or indices")
    tensors = tensors_of(program, loads_of(roots))
    if len(tensors.stores) > len(program.graph.outputs):
        raise Unsupported("no recipe covers a matrix product whose result is cut into pieces")
    return Views(program, found, tensors, open_shapes(program))


def constants(views: Views, engine: Engine, schedule: Schedule) -> tuple[tuple[str, int, str], ...]:
    """The schedule's, and those of splitting."""
    depth = views.depth
    multiple = schedule.k if engine.whole_stages else 8
    slice_length = max(SLICE_LEAST, -(-depth // SLICES_MOST))
    threads = 256 if depth >= 2048 else 32 if depth > 64 else 8
    return (
        ("DEPTH", depth, "products that a result sums"),
        ("PITCH", -(-depth // multiple) * multiple, "fp16 values from one line of a part to the next"),
        *schedule.constants(),
        ("SPLIT_THREADS", threads, "threads that split a line"),
        ("SLICE", slice_length, "values of a line of which a block finds the largest, where lines lie side by side"),
        ("SLICES", -(-depth // slice_length), "such slices of a line"),
        ("VECTOR", 4, "fp32 values of an access, where tensors start at multiples of 16 bytes"),
    )


def emit(views: Views, engine: Engine, schedule: Schedule, name: str) -> tuple[KernelText, str]:
    """The text, and the fp32 values of workspace it needs."""
    split = schedule.splits > 1
    finish = finish_of(views.tensors, views.found)
    tensors = ("left", "right", "left_undo", "right_undo", *finish.tensors)
    by_lines = [views.is_by_lines(side) for side in (views.left, views.right)]
    pair = "2 if vector > 1 else 1" if views.has_pairs() else "1"
    done = f"finish(total, places, first_row, first_column, z, {', '.join(tensors)})"
    words = {
        "{name}": name,
        "{tensors}": ", ".join(finish.tensors),
        "{parameters}": _annotated(tensors),
    }
    pieces = (
        f"{engine.imports.rstrip()}\n{LINES_PER_BLOCK}\nPAIR = {pair}  # results of an access",
        product_split.COMMON,
        product_split.BY_LINES if any(by_lines) else "",
        product_split.ACROSS if not all(by_lines) else "",
        product_finish.SETTLE,
        "\n".join(finish.lines),
        store_text(finish),
        product_finish.PARTIAL if split else product_finish.TILE,
        product_finish.COMBINE if split else "",
        product_host.PLACE,
        engine.kernel.replace("{finish}", product_finish.KEEP if split else done).replace(
            "{parameters}", "partials: cute.Tensor," if split else words["{parameters}"]
        ),
        engine.helpers,
        product_host.PARTS,
    )
    lines = [line for piece in pieces if piece for line in (*_filled(piece, words), "")]
    text = KernelText((*lines, *product_host.host(views, finish, engine, name, split=split)), views.tensors)
    return text, product_host.scratch(views, split=split)


def _annotated(tensors: tuple[str, ...]) -> str:
    """A parameter a line, as they stand in the text."""
    return "\n    ".join(f"{tensor}: cute.Tensor," for tensor in tensors)


def _filled(piece: str, words: dict[str, str]) -> list[str]:
    for word, text in words.items():
        piece = piece.replace(word, text)
    return piece.strip("\n").split("\n")

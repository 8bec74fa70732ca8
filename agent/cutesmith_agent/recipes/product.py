"""The product family: a matrix product on tensor cores; of fp32 tensors at fp32 accuracy through fp16 splits.

There each factor is written once as two fp16 matrices, high and low. Tensor cores sum high * low + low * high +
high * high over a stage at a time, fp32 registers the stages. Factors in half precision are multiplied as they are.
"""

from __future__ import annotations

from . import product_finish, product_host, product_pack, product_split
from .accesses import Access, tensors_of
from .contract import Unsupported
from .contraction import contraction_of
from .ir import Const, Load, Op, walk
from .layout import open_shapes
from .lowering import Program
from .pointwise import KernelText
from .product_engine import Engine, Schedule, placed
from .product_finish import finish_of, store_text
from .product_views import Views
from .text import loads_of

SLICE_LEAST, SLICES_MOST = 256, 32


def views_of(program: Program) -> Views | None:
    """The program as one matrix product of fp32 or half-precision tensors, or None. Raises `Unsupported` for products
    that no kernel computes yet."""
    found = contraction_of(program)
    if found is None:
        return None
    if found.left.dtype != found.right.dtype:
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
    common = (
        ("DEPTH", depth, "products that a result sums"),
        ("PITCH", -(-depth // multiple) * multiple, "values from one line of a part to the next, or of a copy"),
        ("PARTS", views.parts, "matrices that stand for a factor"),
        *schedule.constants(),
        *((("IS_DIRECT", 1, "the kernel splits fp32 factors itself"),) if views.is_direct else ()),
        ("VECTOR", 4, "values of an access, at most, where tensors start at multiples of 16 bytes"),
    )
    if views.triangle is not None:
        kept = f"least column - row of results in the {views.triangle.kind} triangle"
        kept = kept if views.triangle.kind == "upper" else kept.replace("least", "largest")
        common = (*common, ("DIAGONAL", views.triangle.diagonal, kept))
    return common if views.is_whole else (*common, *_of_splitting(depth))


def _of_splitting(depth: int) -> tuple[tuple[str, int, str], ...]:
    slice_length = max(SLICE_LEAST, -(-depth // SLICES_MOST))
    threads = 256 if depth >= 2048 else 32 if depth > 64 else 8
    return (
        ("SPLIT_THREADS", threads, "threads that split a line"),
        ("SLICE", slice_length, "values of a line of which a block finds the largest, where lines lie side by side"),
        ("SLICES", -(-depth // slice_length), "such slices of a line"),
    )


def emit(views: Views, engine: Engine, schedule: Schedule, name: str) -> tuple[KernelText, str]:
    """The text, and the fp32 values of workspace it needs."""
    split = schedule.splits > 1
    finish = finish_of(views.tensors, views.found.total, (views.found.left, views.found.right), views.triangle)
    run = views.run(engine.run, finish.operands)
    sums = engine.half if views.is_half else engine.split
    done = f"finish(total, {engine.through}, first_row, first_column, z, {{tensors}})"
    kernel = placed(placed(engine.kernel, "{states}", sums.states), "{sums}", sums.loop)
    kernel = placed(kernel, "{memory}", engine.memory)
    kernel = placed(kernel, "{skip}", engine.skip(views.triangle) if views.triangle and not views.is_whole else "")
    pieces = (
        f"{engine.imports.rstrip()}\nRUN = {f'{run} if vector > 1 else 1' if run > 1 else 1}  # results of an access",
        product_split.COMMON if views.is_direct else "",
        product_pack.PACK if views.is_whole else _splitting(views),
        product_finish.NEIGHBOURS,
        "\n".join(finish.lines),
        store_text(finish, tuple(views.column_stride(a) for a in finish.operands), views.triangle),
        "" if views.is_half else _settling(views),
        product_finish.PARTIAL if split else _settled(engine.tile, engine.once_more, views),
        _settled(product_finish.COMBINE, product_finish.COMBINE_ONCE_MORE, views) if split else "",
        product_host.PLACE,
        sums.helpers,
        kernel.replace("{finish}", product_finish.KEEP if split else done).replace(
            "{parameters}", "partials: cute.Tensor," if split else "{parameters}"
        ),
        engine.helpers,
        "" if views.is_whole else product_host.PARTS,
        "\n".join(product_host.host(views, finish, engine, name, k=schedule.k, split=split)),
    )
    tensors = product_host.tensors_of(views, finish)
    words = {
        "{name}": name,
        "{tensors}": ", ".join(tensors),
        "{outside}": ", ".join(finish.tensors),
        "{parameters}": _annotated(tensors),
        "{result}": views.tensors.stores[0].gmem,
        "{operand}": views.operand_type,
        "{factor}": views.factor_type,
        "{bytes}": str(views.factor_bytes),
        "{left_major}": _major(views, engine, views.left),
        "{right_major}": _major(views, engine, views.right),
        "{left_fed_major}": "ROW_MAJOR" if engine.is_direct else _major(views, engine, views.left),
        "{right_fed_major}": "ROW_MAJOR" if engine.is_direct else _major(views, engine, views.right),
        "{left_fed}": engine.fed[0],
        "{right_fed}": engine.fed[1],
    }
    lines = [line for piece in pieces if piece for line in (*_filled(piece, words), "")]
    text = KernelText(tuple(lines[:-1]), views.tensors)
    return text, product_host.scratch(views, engine, schedule.k, split=split)


def _settling(views: Views) -> str:
    settle, again = product_finish.SETTLE, product_finish.AGAIN
    if views.is_direct:
        settle, again = product_finish.DIRECT_SETTLE, product_finish.DIRECT_AGAIN
    where = "" if views.is_direct else ", if a line of either factor has Inf or NaN"
    return settle + placed(product_finish.PLAIN, "{again}", again).replace("{where}", where)


def _splitting(views: Views) -> str:
    by_lines = [views.is_by_lines(side) for side in (views.left, views.right)]
    chosen = (product_split.BY_LINES if any(by_lines) else "", product_split.ACROSS if not all(by_lines) else "")
    return "LINES_PER_BLOCK = 256 // SPLIT_THREADS\n" + product_split.COMMON + "".join(chosen)


def _settled(text: str, once_more: str, views: Views) -> str:
    """With what only sums of split values need: their powers of two taken out, Inf and NaN by fp32 arithmetic."""
    given = "sums" if views.is_direct else "sums, row, column, batch, left_undo, right_undo"
    settle = f"numbers = settle({given}) & numbers"
    steps = ("", "", "") if views.is_half else ("numbers = cutlass.Boolean(True)", settle, once_more)
    for mark, step in zip(("{numbers}", "{settle}", "{once_more}"), steps, strict=True):
        text = placed(text, mark, step)
    return text


def _major(views: Views, engine: Engine, access: Access) -> str:
    by_lines = not views.is_whole or product_pack.is_by_lines(views, engine, access)
    return "ROW_MAJOR" if by_lines else "COL_MAJOR"


def _annotated(tensors: tuple[str, ...]) -> str:
    """A parameter a line, as they stand in the text."""
    return "\n    ".join(f"{tensor}: cute.Tensor," for tensor in tensors)


def _filled(piece: str, words: dict[str, str]) -> list[str]:
    for word, text in words.items():
        piece = piece.replace(word, text)
    return piece.strip("\n").split("\n")

"""The kernels that compute a program: the family, its schedules, the text of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest

from cutesmith_evaluator.types import Graph

from . import (
    cluster_rows,
    cluster_schedules,
    few_rows,
    implicit,
    implicit_schedules,
    lines,
    long_rows,
    middle,
    middle_schedules,
    nested,
    one_row,
    pointwise,
    product,
    rows,
    scan_rows,
    strips,
    turned,
    turned_registers,
)
from .contract import Target, Unsupported
from .geometry import output_spec
from .implicit import Windows
from .ir import Const, Reduce
from .lowering import Program
from .parts import LEAST_CAPABILITY
from .product_ampere import AMPERE
from .product_direct import DIRECT
from .product_hopper import HOPPER
from .product_schedules import HopperSchedule, ampere, hopper
from .product_views import Views

HALF = ("float16", "bfloat16")
LEAST_OF_TF32 = 16  # channels from which cuDNN computes in TF32 where it may
MOST_CONVOLUTIONS = 5  # schedules: beside them there are those that leave the convolution to PyTorch
BEFORE_CLUSTERS = ("sm_80", "sm_86", "sm_89", "sm_120a")  # or with ones that hold less


def check(program: Program) -> None:
    """Raises Unsupported where no family writes such results."""
    if program.has_reductions and pointwise.pools_of(tuple(s.expr for s in program.stores)):
        raise Unsupported("no recipe covers pooling next to a reduction or a scan")
    for store in program.stores:
        dtype = output_spec(program.graph, program.graph.outputs[store.output]).dtype
        if isinstance(store.expr, Const):
            raise Unsupported("an output does not depend on any input")
        if not program.has_reductions and not store.expr.per_column:
            raise Unsupported("an output is the same everywhere: it depends on single elements alone")
        if dtype == "bool" or (dtype == "int64") != _is_index(store.expr):
            raise Unsupported(f"no recipe covers a computed {dtype} output")


def _is_index(expr: object) -> bool:
    return isinstance(expr, Reduce) and expr.kind in ("argmax", "argmin")


def half_results(graph: Graph) -> bool:
    """Whether every result is rounded to half precision, so that the fast exponentials lose nothing."""
    return all(output_spec(graph, r).dtype in HALF for r in graph.outputs)


@dataclass(frozen=True)
class Variant:
    """A kernel with a schedule's constants."""

    constants: tuple[tuple[str, int, str], ...]
    text: pointwise.KernelText
    title: str
    scratch: str | None = None  # fp32 values of workspace
    choices: dict[str, int] = field(default_factory=dict)  # of the schedule that no constant shows
    least: tuple[int, int] = LEAST_CAPABILITY  # compute capability
    is_as_tf32: bool = False  # as precise as TF32: only where PyTorch may compute a convolution so


def variants(program: Program, name: str, target: Target) -> Iterator[Variant]:
    """Of the first family that takes the program, best guess first."""
    if program.has_reductions and not nested.totals_of(program):
        views = product.views_of(program)
        if views is not None:
            yield from products_of(views, name, target)
            return
    yield from without_tensor_cores(program, name, target)


def without_tensor_cores(program: Program, name: str, target: Target) -> Iterator[Variant]:
    """Of the first family that takes the program as it stands: a product is a reduction of each row."""
    yield from next(family for takes, family in _FAMILIES if takes(program))(program, name, target)


def _turned(program: Program, name: str, target: Target) -> Iterator[Variant]:
    fast = half_results(program.graph)
    text = turned.emit(program, name, fast=fast)
    title = f"{target.class_name}: tiles of a convolution's channels-last result are turned as the rest is computed."
    for tile in turned.schedules(program):
        yield Variant(tile.constants(), text, title)
    title = f"{target.class_name}: a convolution's channels-last result is turned in registers as the rest is computed."
    for beside in turned_registers.schedules(program):
        yield Variant(beside.constants(), turned_registers.emit(program, name, fast=fast), title)


def _flat(program: Program, name: str, target: Target) -> Iterator[Variant]:
    """Windows in strips and along lines, then element by element: that, only where no window is of computed values."""
    fast = half_results(program.graph)
    title = f"{target.class_name}: each thread goes down a strip of windows, and reads what they share once."
    for strip in strips.schedules(program):
        yield Variant(strip.constants(), strips.emit(program, strip, name, fast=fast), title)
    title = f"{target.class_name}: a block takes windows from its part of a line, which it reads once."
    for line in lines.schedules(program):
        yield Variant(line.constants(), lines.emit(program, line, name, fast=fast), title)
    if any(pool.element for pool in pointwise.pools_of(tuple(s.expr for s in program.stores))):
        return
    text = pointwise.emit(program, name, fast=fast)
    title = f"{target.class_name} in one pass over memory: every tensor is read or written once."
    for flat in pointwise.schedules(program):
        yield Variant(flat.constants(), text, title)


def _scans(program: Program, name: str, target: Target) -> Iterator[Variant]:
    title = f"{target.class_name}: a scan along rows of {program.columns}; every tensor is read or written once."
    for along in scan_rows.schedules(program):
        text = scan_rows.emit(program, name, fast=half_results(program.graph))
        yield Variant((_columns(program), *along.constants()), text, title)


def _one_row(program: Program, name: str, target: Target) -> Iterator[Variant]:
    text, slots = one_row.emit(program, name, fast=half_results(program.graph))
    scratch = "BLOCKS" if slots == 1 else f"{slots} * BLOCKS"
    title = f"{target.class_name}: one row of {program.columns}, shared by many blocks; every tensor is read once."
    for split in one_row.schedules(program):
        yield Variant((_columns(program), *split.constants()), text, title, scratch=scratch)


def _side_by_side(program: Program, name: str, target: Target) -> Iterator[Variant]:
    title = f"{target.class_name}: rows of {program.columns} lie side by side; a thread goes down a few of them."
    for each in middle_schedules.schedules(program):
        text = middle.emit(program, each, name, fast=half_results(program.graph))
        yield Variant((_columns(program), *each.constants()), text, title)


def _few(program: Program, name: str, target: Target) -> Iterator[Variant]:
    yield from _shared_rows(program, name, target.class_name)
    if program.rows > few_rows.FEWEST:
        yield from islice(_row_by_row(program, name, target), 5)


def _many(program: Program, name: str, target: Target) -> Iterator[Variant]:
    yield from _row_by_row(program, name, target)
    if few_rows.applies(program, few_rows.SEVERAL):
        yield from islice(_shared_rows(program, name, target.class_name), 2)


def _columns(program: Program) -> tuple[str, int, str]:
    return ("COLUMNS", program.columns, "elements of a row")


def _nested(program: Program, name: str, target: Target) -> Iterator[Variant]:
    """Each row kernel, and a second one that reduces what the rows give."""
    scratch = nested.scratch(program)
    title = f"{target.class_name}: a value of each row, then one block reduces those of all {program.rows} rows."
    for each in variants(nested.row_program(program), f"{name}_rows", target):
        if each.scratch is None:
            text = nested.emit(program, each.text, name)
            yield replace(each, constants=(*each.constants, nested.THREADS), text=text, title=title, scratch=scratch)


def products_of(views: Views, name: str, target: Target) -> Iterator[Variant]:
    if target.ieee and not views.is_half:
        raise Unsupported('no recipe covers matrix products in fp32 arithmetic alone, as precision = "ieee" asks')
    accuracy = "summed in fp32" if views.is_half else "at fp32 accuracy through fp16 splits"
    title = f"{target.class_name}: a matrix product {accuracy}, on tensor cores."
    for schedule in hopper(views) if target.arch == "sm_90a" else ampere(views):
        is_direct = isinstance(schedule, HopperSchedule) and schedule.is_direct
        engine = DIRECT if is_direct else HOPPER if isinstance(schedule, HopperSchedule) else AMPERE
        given = replace(views, is_direct=is_direct)
        text, scratch = product.emit(given, engine, schedule, name)
        yield Variant(product.constants(given, engine, schedule), text, title, scratch=scratch, least=engine.least)


def convolutions_of(windows: Windows, name: str, target: Target) -> Iterator[Variant]:
    """At fp32 accuracy, and in turn with these at TF32's, where PyTorch may choose that, too."""
    found, tf32 = windows.found, windows.found.channels >= LEAST_OF_TF32
    forms = (True, False) if windows.takes_rows else (False,)  # by way of shared memory first: faster on an H200
    kinds = ((2, forms[0]), *((1, form) for form in forms)) if tf32 else tuple((2, form) for form in forms)
    made = [
        implicit_schedules.schedules(found, parts, summed=windows.summed, reduced=windows.reduces, in_rows=form)
        for parts, form in kinds
    ]
    most = [1 if tf32 and parts == 2 else MOST_CONVOLUTIONS for parts, _ in kinds]
    several = [islice(each, count) for each, count in zip(made, most, strict=True)]
    for schedule in (one for row in zip_longest(*several) for one in row if one is not None):
        text, scratch = implicit.emit(windows, schedule, name)
        accuracy = "fp32 accuracy through fp16 splits" if schedule.parts == 2 else "the accuracy of TF32"
        title = f"{target.class_name}: a convolution as a matrix product at {accuracy}, on tensor cores."
        yield Variant(
            schedule.constants(), text, title, scratch=scratch, least=HOPPER.least, is_as_tf32=schedule.parts == 1
        )


def _row_by_row(program: Program, name: str, target: Target) -> Iterator[Variant]:
    class_name = target.class_name
    fast = half_results(program.graph)
    for number, schedule in enumerate(rows.schedules(program)):
        if number == 1 and schedule.unroll and target.arch not in BEFORE_CLUSTERS:
            yield from _clustered(program, name, class_name)
        if schedule.unroll:
            text = long_rows.emit(program, name, fast=fast, by_priority=schedule.by_priority)
            title = f"{class_name}, a block per row; a row of {program.columns} is read once per group of reductions."
        else:
            text = rows.emit(program, schedule, name, fast=fast)
            title = f"{class_name} row by row: a row stays in registers, so every tensor is read or written once."
        yield Variant((_columns(program), *schedule.constants()), text, title, choices=schedule.choices)
    held = not any(schedule.unroll for schedule in rows.schedules(program))
    if held and program.columns >= one_row.MIN_COLUMNS and target.arch not in BEFORE_CLUSTERS:
        yield from _clustered(program, name, class_name)


def _shared_rows(program: Program, name: str, class_name: str) -> Iterator[Variant]:
    text, scratch = few_rows.emit(program, name, fast=half_results(program.graph))
    title = f"{class_name}: a few rows of {program.columns}, each shared by many blocks."
    for schedule in few_rows.schedules(program):
        yield Variant((_columns(program), *schedule.constants()), text, title, scratch=scratch)


def _clustered(program: Program, name: str, class_name: str) -> Iterator[Variant]:
    """After a first draft that runs anywhere, so that one is there whatever the device turns out to be."""
    title = (
        f"{class_name}, a cluster of blocks per row: a row of {program.columns} is read once, into their shared memory."
    )
    for schedule in cluster_schedules.schedules(program):
        text = cluster_rows.emit(program, name, fast=half_results(program.graph), partly=schedule.kept > 0)
        yield Variant((_columns(program), *schedule.constants()), text, title, least=(9, 0))


_Family = Callable[[Program, str, Target], Iterator[Variant]]

_FAMILIES: tuple[tuple[Callable[[Program], bool], _Family], ...] = (
    (turned.applies, _turned),
    (lambda program: not program.has_reductions, _flat),
    (lambda program: bool(nested.totals_of(program)), _nested),
    (scan_rows.applies, _scans),
    (one_row.applies, _one_row),
    (middle_schedules.applies, _side_by_side),
    (lambda program: few_rows.applies(program, few_rows.FEW), _few),
    (lambda program: True, _many),
)

"""Windows, indices into rows, losses of rows, long rows that stay partly, and tails of PyTorch's convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from corpus.recipe import FORMS, Recipe, of_module
from suite import ROOT

_TASKS = ROOT / "benchmarks" / "tasks"
_window = partial(of_module, "window_modules")
_tail = partial(of_module, "library_modules", values="whole")
_HALVES = ("bf16", "fp16")


def later_recipes() -> Iterator[Recipe]:
    yield from _windows()
    yield from _losses_of_rows()
    yield from _partly_kept()
    yield from _turned()


def _windows() -> Iterator[Recipe]:
    kinds = ("Depthwise", "DepthwiseMultiplied", "DepthwiseLine", "DepthwiseVolume", "StripOfMeans")
    for kind in (*kinds, "MaximumOfComputed", "MeanOfComputed"):
        yield _window(f"windows {kind}", kind)
    for rows in (2, 4):
        yield _window(f"strips of {rows} Depthwise", "Depthwise", rows=rows)
    yield _window("strips StripOfMeans", "StripOfMeans", rows=8, vector=1)
    yield _window("windows apart Depthwise", "Depthwise", steps=2)
    yield _window("windows apart StripOfMeans", "StripOfMeans", steps=1, vector=4)
    for form in _HALVES:
        yield _window(f"windows StripOfMeans {form}", "StripOfMeans", form, shapes="(2, 4, 9, 16)")
        yield _window(f"windows MeanOfComputed {form}", "MeanOfComputed", form)
        yield _task("convolutions", "DepthwiseSquare", form, SQUARE="(2, 6, 9, 12)")
        yield _task("convolutions", "DepthwiseAsymmetric", form, ASYMMETRIC="(1, 4, 7, 13)")
        yield _task("pooling", "MaxPool2d", form, PLANES="(2, 3, 9, 16)")
    for form in FORMS:
        yield _task("pooling", "AvgPool1d", form, BATCH_1D="1", LENGTH="24", get_avg_pool1d_inputs=_LINES)
        yield _task("pooling", "AvgPool2d", form, AVERAGED_PLANES="(2, 3, 23, 35)")
        yield _task("pooling", "AvgPool3d", form, AVERAGED_VOLUMES="(1, 3, 5, 7, 8)")


_LINES = "lambda: [torch.rand(BATCH_1D, 5, LENGTH, dtype=DTYPE)]"


def _losses_of_rows() -> Iterator[Recipe]:
    kinds = ("CrossEntropy", "CrossEntropySum", "CrossEntropyRows", "SmoothedCrossEntropy", "Chosen", "RowDistances")
    for kind in (*kinds, "MeanOfSoftmax"):
        for form in FORMS:
            yield _window(f"rows {kind} {form}", kind, form)
    for form in FORMS:
        yield _task("losses", "TripletMarginLoss", form, ROWS="21", EMBEDDING="320")
        yield _task("losses", "CrossEntropyLoss", form, ROWS="3", CLASSES="9000")


def _partly_kept() -> Iterator[Recipe]:
    """Clusters whose blocks share an SM: they keep part of a row, and read the rest again."""
    spread = partial(of_module, "modules", kind="Spread")
    yield spread("cluster Spread kept 3", shapes="((2, 300000),)", kept=3)
    yield spread("cluster Spread kept 4", shapes="((2, 300000),)", kept=4)
    yield spread("cluster Spread kept vector 1", shapes="((2, 300001),)", kept=13)
    yield spread("cluster Spread kept bf16", form="bf16", shapes="((2, 500000),)", kept=4)


def _turned() -> Iterator[Recipe]:
    """Results that lie otherwise than rows come, and what follows a convolution that PyTorch computes."""
    for form in FORMS:
        yield of_module("modules", f"turned Transposed {form}", "Transposed", form, "((2, 16, 64),)")
    yield _tail("tail PointwiseTail", "PointwiseTail", threads=256)
    for kind in ("NormTail", "VolumeTail"):
        yield _tail(f"tail {kind}", kind)
    for kind in ("PointwiseTail", "VolumeTail"):
        for positions in (32, 64):
            yield _tail(f"tail {kind} of {positions} positions", kind, positions=positions)


def _task(file: str, kind: str, form: str, **constants: str) -> Recipe:
    """Of a benchmark's task."""
    return Recipe(f"{kind} {form}", _TASKS / f"{file}.py", kind, {"DTYPE": FORMS[form]} | constants)

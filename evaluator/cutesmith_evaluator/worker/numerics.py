"""Errors of an output against a float64 reference, and what they say of its precision.

Pure functions and sums of real tensors on any device. Big tensors are walked in chunks, so a comparison needs a few
times `CHUNK` elements of memory beyond its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cutesmith_evaluator.types import ErrorFigures, ErrorPair, Precision
from cutesmith_evaluator.worker.numerics_scales import ScaleErrors, SmallValues

CHUNK = 1 << 26  # elements compared at once: 0.5 GB in float64
ALLOWED_RATIO = 2.0  # of eager's own error
ALLOWED_ULPS = 4.0  # of the output's dtype, relative to |ref| or max|ref|
WRONG_RMS, WRONG_MAX = 0.05, 0.1  # beyond these no narrower dtype explains an error: the values are wrong
_EXACT = 1e-6  # ulp: an error below is none
_KERNELBENCH = {torch.float16: 1e-2, torch.bfloat16: 1e-2}


def ulp(dtype: torch.dtype) -> float:
    """Spacing of floating `dtype` at 1.0."""
    return torch.finfo(dtype).eps


def is_floating(tensor: Tensor) -> bool:
    """Whether its values carry rounding errors, real or complex."""
    return tensor.is_floating_point() or tensor.is_complex()


def flat(tensor: Tensor) -> Tensor:
    """All elements in logical order, one dimension, real (a complex number counts as two elements)."""
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return real.reshape(-1)


def chunks(*tensors: Tensor, size: int = CHUNK) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """(offset, same slice of every tensor's elements in logical order); all have equally many elements.

    No more than a slice is copied, whatever the strides, where all have one shape.
    """
    reals = [torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor for tensor in tensors]
    yield from _walk(reals, size, 0)


def _walk(tensors: list[Tensor], size: int, offset: int) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    count, rows = tensors[0].numel(), tensors[0].shape[0] if tensors[0].dim() else 1
    alike = all(tensor.shape == tensors[0].shape for tensor in tensors)
    if count <= size or rows < 2 or not alike or all(tensor.is_contiguous() for tensor in tensors):
        lines = [tensor.reshape(-1) for tensor in tensors]
        for start in range(0, count, size):
            yield offset + start, tuple(line[start : start + size] for line in lines)
        return
    step = max(1, size * rows // count)
    for row in range(0, rows, step):
        yield from _walk([tensor[row : row + step] for tensor in tensors], size, offset + row * (count // rows))


@dataclass
class ErrorSums:
    """Running sums of one output's errors, fed slice by slice. Elements outside `where` do not count."""

    difference_squared: float = 0.0
    reference_squared: float = 0.0
    difference_max: float = 0.0
    reference_max: float = 0.0
    counted: int = 0

    def add(self, out: Tensor, reference: Tensor, where: Tensor) -> None:
        """`out` and `reference` real, `where` bool: equal shapes. Non-finite `out` counts as infinite."""
        if not reference.numel():
            return
        kept = torch.where(where, reference.double(), 0.0)
        difference = torch.where(where, out.double() - kept, 0.0).abs_().nan_to_num_(nan=math.inf)
        kept.abs_()
        sums = torch.stack(
            [difference.square().sum(), kept.square().sum(), difference.max(), kept.max(), where.sum().double()]
        ).tolist()
        self.difference_squared += sums[0]
        self.reference_squared += sums[1]
        self.difference_max = max(self.difference_max, sums[2])
        self.reference_max = max(self.reference_max, sums[3])
        self.counted += int(sums[4])

    def pair(self) -> ErrorPair:
        """Relative to the reference; absolute where the reference is zero everywhere."""
        rms = math.sqrt(self.difference_squared) / (math.sqrt(self.reference_squared) or 1.0)
        return ErrorPair(rms, self.difference_max / (self.reference_max or 1.0))


@dataclass
class Closeness:
    """KernelBench's own criterion, fed slice by slice: allclose to eager at 1e-2 for half types, else 1e-4."""

    ok: bool = True

    def add(self, out: Tensor, eager: Tensor) -> None:
        tolerance = _KERNELBENCH.get(eager.dtype, 1e-4)
        self.ok = self.ok and torch.allclose(out.to(eager.dtype), eager, rtol=tolerance, atol=tolerance, equal_nan=True)


def limit(eager: ErrorPair, step: float) -> ErrorPair:
    """The largest errors that still count as eager's precision; `step` is the output dtype's ulp."""
    slack = ALLOWED_ULPS * step
    return ErrorPair(ALLOWED_RATIO * eager.rms + slack, ALLOWED_RATIO * eager.max + slack)


def within(candidate: ErrorPair, eager: ErrorPair, step: float) -> bool:
    bound = limit(eager, step)
    return candidate.rms <= bound.rms and candidate.max <= bound.max


def classify(candidate: ErrorPair, eager: ErrorPair, default: ErrorPair, step: float) -> Precision:
    """`eager` has TF32 off; `default` is eager as PyTorch runs it."""
    if within(candidate, eager, step):
        return "kept"
    return "as eager" if within(candidate, default, step) else "lowered"


def wrong(candidate: ErrorPair, default: ErrorPair, step: float) -> bool:
    """True where the errors are too large for any narrower dtype: not lowered but wrong."""
    bound = limit(default, step)
    return candidate.rms > max(WRONG_RMS, bound.rms) or candidate.max > max(WRONG_MAX, bound.max)


@dataclass(frozen=True)
class Measured:
    """The errors of one output in one check."""

    candidate: ErrorPair
    eager: ErrorPair
    default: ErrorPair
    step: float
    small: SmallValues | None = None  # that are far off beside larger ones
    rounding: str | None = None  # words on a narrower dtype that the output went through, where it shows

    @property
    def as_a_whole(self) -> Precision:
        """By the figures over the whole output, small values aside."""
        return classify(self.candidate, self.eager, self.default, self.step)

    @property
    def precision(self) -> Precision:
        return "lowered" if self.small else self.as_a_whole

    @property
    def usage(self) -> float:
        """Share of the bound for *kept* that is used; above 1 it is broken."""
        bound = limit(self.eager, self.step)
        whole = max(self.candidate.rms / bound.rms, self.candidate.max / bound.max)
        return max(whole, self.small.usage) if self.small else whole

    def figures(self, kernelbench_ok: bool) -> ErrorFigures:
        bound = limit(self.eager, self.step)
        by_rms = self.candidate.rms / bound.rms >= self.candidate.max / bound.max
        candidate, eager = (self.candidate.rms, self.eager.rms) if by_rms else (self.candidate.max, self.eager.max)
        return ErrorFigures(
            candidate,
            eager,
            _ratio(candidate, eager, self.step),
            "rms" if by_rms else "max",
            self.candidate,
            self.eager,
            kernelbench_ok,
        )


def _like(judged: Tensor, values: Tensor) -> Tensor:
    """A bool for every real number of `values`."""
    return judged.unsqueeze(-1).expand(*values.shape, 2) if values.is_complex() else judged


def _ratio(candidate: float, eager: float, step: float) -> float:
    """candidate / eager. Where eager is exact: 1 for an exact candidate, else the candidate's error in ulp."""
    if eager > _EXACT * step:
        return candidate / eager
    return candidate / step if candidate > _EXACT * step else 1.0


@dataclass
class Comparison:
    """Sums for candidate, eager (TF32 off) and eager by default against one float64 output."""

    step: float
    candidate: ErrorSums = field(default_factory=ErrorSums)
    eager: ErrorSums = field(default_factory=ErrorSums)
    default: ErrorSums = field(default_factory=ErrorSums)
    scales: ScaleErrors = field(default_factory=ScaleErrors)

    def add(
        self,
        candidate: Tensor,
        eager: Tensor,
        default: Tensor | None,
        reference: Tensor,
        judged: Tensor | None = None,
    ) -> None:
        """One slice, all of equal shapes; only elements that are finite in eager and in the reference count.

        `default` None: eager gives the same bits with TF32 off as by default. `judged`: the elements that count, a
        bool each; None: all.
        """
        counted = None if judged is None else flat(_like(judged, eager))
        tensors = (candidate, eager, reference) if default is None else (candidate, eager, reference, default)
        for start, (got, exact, wanted, *usual) in chunks(*tensors):
            where = exact.isfinite() & wanted.isfinite()
            if counted is not None:
                where &= counted[start : start + exact.numel()]
            self.candidate.add(got, wanted, where)
            self.eager.add(exact, wanted, where)
            for each in usual:
                self.default.add(each, wanted, where)
            self.scales.add(got, [exact, *usual], wanted, where)

    def measured(self) -> Measured | None:
        """None where no element counted."""
        if not self.eager.counted:
            return None
        eager = self.eager.pair()
        default = self.default.pair() if self.default.counted else eager
        return Measured(self.candidate.pair(), eager, default, self.step, self.scales.worst())

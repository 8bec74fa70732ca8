"""A candidate's values against eager's and the float64 reference's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from cutesmith_evaluator.types import ErrorPair, Finding
from cutesmith_evaluator.worker.checks_case import Outputs, Result, WrongElement
from cutesmith_evaluator.worker.checks_degenerate import Ranges
from cutesmith_evaluator.worker.checks_layout import name_of
from cutesmith_evaluator.worker.checks_state import tf32_possible
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.numerics import (
    ALLOWED_RATIO,
    Closeness,
    Comparison,
    Measured,
    chunks,
    flat,
    is_floating,
    limit,
    ulp,
    wrong,
)
from cutesmith_evaluator.worker.numerics_bits import differing, equal_bits, special_differs
from cutesmith_evaluator.worker.numerics_float64 import Float64, NoFloat64Error, NoRoomError
from cutesmith_evaluator.worker.numerics_patterns import WrongElements
from cutesmith_evaluator.worker.numerics_values import rounding_pattern, value_pattern

Differs = Callable[..., Tensor]  # (got, expected…) → bool
_MORE_ROUNDED = 4  # integers that may be decided otherwise than eager's where some of eager's are
_REMEMBERED, _REMEMBERED_CHECKS = 16 << 20, 4  # bytes of outputs that are kept, and of how many checks
LineOf = Callable[[Inputs, WrongElement], int | None]
Slice = tuple[slice | None, list[Tensor]]


class Comparer:
    """Compares outputs of one module's candidates; where `float64` is None (`no_float64` says why), with eager."""

    def __init__(
        self, module: nn.Module, device: torch.device, memory: int | None, file: str, host: int | None = None
    ) -> None:
        """`memory`, `host`: bytes that a float64 run may take on the device and on the host; None: what is free."""
        self.float64: Float64 | None = None
        self.no_float64: str | None = None
        self.line_of: LineOf = lambda inputs, element: None  # of the candidate, that stored a wrong element
        self.state_words = ""  # that say which state the module is in, where it is not its constructor's
        self._module = module
        self._device = device
        self._memory = memory
        self._host = host
        self._file = file
        self.ranges = Ranges()
        self._tf32_matters: bool | None = None
        self._earlier: dict[str, list[Tensor]] = {}  # small outputs of the last checks, on the CPU
        self.state_changed()

    def of(self, module: nn.Module) -> Comparer:
        """One for another module, with as much memory."""
        return Comparer(module, self._device, self._memory, self._file, self._host)

    def state_changed(self) -> None:
        """Takes the float64 reference anew, with the module's present parameters and buffers."""
        self.float64 = self.no_float64 = None
        try:
            self.float64 = Float64(self._module, self._device, self._memory, self._host)
        except NoFloat64Error as reason:
            self.no_float64 = str(reason)

    def compare(self, outputs: Outputs, result: Result) -> None:
        """Adds what is wrong, or else how large the errors are."""
        outputs = replace(outputs, got=list(map(_filled, outputs.got, outputs.eager, outputs.judged)))
        for place, (got, eager) in enumerate(zip(outputs.got, outputs.eager, strict=True)):
            found = self._plainly_wrong(outputs, place)
            if found.count:
                result.findings.append(
                    self._finding(outputs, place, found, partial(_plainly, strict=outputs.case.strict))
                )
            if outputs.case.own and is_floating(eager):
                result.kernelbench_ok &= _kernelbench_ok(got, eager)
        noise = frozenset() if result.findings else self._measure(outputs, result)
        if not result.findings:
            self.ranges.add(outputs.eager, own=outputs.case.own, noise=noise)
        self._remember(outputs)

    def _remember(self, outputs: Outputs) -> None:
        if sum(each.numel() * each.element_size() for each in outputs.got) <= _REMEMBERED:
            self._earlier.pop(outputs.case.label, None)
            self._earlier[outputs.case.label] = [each.cpu() for each in outputs.got]
            if len(self._earlier) > _REMEMBERED_CHECKS:
                del self._earlier[next(iter(self._earlier))]

    def _plainly_wrong(self, outputs: Outputs, place: int) -> WrongElements:
        """Integers that are not eager's; NaN and infinities that are neither eager's nor the float64 reference's."""
        got, eager, strict = outputs.got[place], outputs.eager[place], outputs.case.strict
        found = _wrong_elements(got)
        if not is_floating(eager):
            _collect(found, differing, 0, got, eager)
            return self._without_roundings(outputs, place) if found.count else found
        _collect(found, partial(special_differs, strict=strict), 0, got, eager)
        if not found.count:
            return found
        found = _wrong_elements(got)
        for rows, reference in self._references(outputs):
            differs = partial(_special_differs_from_both, strict=strict)
            _collect(found, differs, _offset(got, rows), _part(got, rows), _part(eager, rows), reference[place])
        return found

    def _without_roundings(self, outputs: Outputs, place: int) -> WrongElements:
        """Integers that are neither eager's nor the float64 reference's. A threshold or a largest value is decided by
        rounding where two are close: where eager differs from float64 a few times, twice as many may."""
        got, eager = outputs.got[place], outputs.eager[place]
        found, rounded = _wrong_elements(got), 0
        for rows, reference in self._references(outputs):
            mine, theirs, exact = _part(got, rows), _part(eager, rows), reference[place].to(eager.dtype)
            rounded += int(differing(theirs, exact).sum())
            _collect(found, _differs_from_both, _offset(got, rows), mine, theirs, exact)
        allowed = ALLOWED_RATIO * rounded + _MORE_ROUNDED if rounded else 0
        return found if found.count > allowed else _wrong_elements(got)

    def _measure(self, outputs: Outputs, result: Result) -> frozenset[int]:
        """The outputs of which eager gives nothing but rounding errors: these are larger than the values."""
        nothing: str | None = None
        noise = set()
        for place, comparison in self._errors(outputs).items():
            measured = comparison.measured()
            if measured is None:
                empty = not outputs.eager[place].numel()
                nothing = "the output is empty" if empty else "not counted, eager is finite nowhere"
                continue
            if min(measured.eager.rms, measured.eager.max) > 1.0:
                noise.add(place)
            result.unmeasured = not self.has_room(outputs.case.inputs)
            if not result.unmeasured:
                result.measured.append(self._with_rounding(measured, outputs, place))
            if wrong(measured.candidate, measured.default, measured.step):
                far = partial(_far, threshold=_threshold(comparison))
                result.findings.append(self._finding(outputs, place, self._beyond(outputs, place, far), far))
        result.note = None if result.measured or result.unmeasured else nothing
        return frozenset(noise)

    def _errors(self, outputs: Outputs) -> dict[int, Comparison]:
        """Output's place → its errors, for the floating ones."""
        sums = self._sums(outputs)
        far_off = any(wrong(sum.eager.pair(), ErrorPair(0.0, 0.0), sum.step) for sum in sums.values())
        if far_off and self.float64 is not None and self.float64.distrust_slices(outputs.case.inputs):
            return self._sums(outputs)  # eager is right by definition: it was no function of its slices
        return sums

    def _sums(self, outputs: Outputs) -> dict[int, Comparison]:
        default = self._default(outputs)
        sums = {place: Comparison(ulp(each.dtype)) for place, each in enumerate(outputs.eager) if is_floating(each)}
        for rows, reference in self._references(outputs) if sums else ():
            for place, comparison in sums.items():
                usual = _part(default[place], rows) if default else None
                got, eager = _part(outputs.got[place], rows), _part(outputs.eager[place], rows)
                comparison.add(got, eager, usual, reference[place], _of(outputs.judged[place], rows))
        return sums

    def _with_rounding(self, measured: Measured, outputs: Outputs, place: int) -> Measured:
        if measured.precision == "kept":
            return measured
        return replace(measured, rounding=rounding_pattern(outputs.got[place], outputs.eager[place]))

    def _beyond(self, outputs: Outputs, place: int, far: Differs) -> WrongElements:
        """The elements whose errors break the bound: on the maximum, else on the root mean square."""
        got = outputs.got[place]
        found = _wrong_elements(got)
        for rows, reference in self._references(outputs):
            values = _filled(_part(got, rows), reference[place], _of(outputs.judged[place], rows))
            _collect(found, far, _offset(got, rows), values, reference[place])
        return found

    def _references(self, outputs: Outputs) -> Iterator[Slice]:
        """The float64 values; eager's own where the module cannot be run in float64."""
        if self.float64 is not None:
            try:
                yield from self.float64.slices(outputs.case.inputs, outputs.eager)
                return
            except NoFloat64Error as reason:
                self.float64, self.no_float64 = None, str(reason)
            except NoRoomError:
                pass
        yield None, outputs.eager

    def has_room(self, inputs: Inputs) -> bool:
        """Whether such inputs are measured in float64: where the memory is too small for that, eager is the measure,
        and tells right from wrong but nothing of precision."""
        return self.float64 is None or self.float64.has_room(inputs)

    def _default(self, outputs: Outputs) -> list[Tensor]:
        """Eager as PyTorch runs it; empty when that is what runs without TF32 too (tried once)."""
        if self._tf32_matters is False or not tf32_possible(self._device):
            return []
        try:
            default = tensors(self._module(*outputs.case.inputs))
        except torch.OutOfMemoryError:  # then nothing is said to be as eager, which is the harder judgement
            torch.cuda.empty_cache()
            return []
        if self._tf32_matters is None:
            self._tf32_matters = not all(map(equal_bits, default, outputs.eager))
        return default if self._tf32_matters else []

    def _finding(self, outputs: Outputs, place: int, found: WrongElements, differs: Differs) -> Finding:
        output = name_of(place, len(outputs.got)).lower()
        earlier = {label: results[place] for label, results in self._earlier.items() if place < len(results)}
        words = value_pattern(outputs.got[place], outputs.eager[place], differs, earlier)
        line = self.line_of(outputs.case.inputs, WrongElement.of(outputs.got[place], place, found.first))
        said = [found.sentence(output), words, f"the first is stored by line {line}" if line else None]
        message = f"On {outputs.case.label}{self.state_words}, {'; '.join(filter(None, said))}."
        return Finding("wrong-values", message, line, self._file)


def _plainly(got: Tensor, eager: Tensor, *, strict: bool) -> Tensor:
    return special_differs(got, eager, strict=strict) if is_floating(eager) else differing(got, eager)


def _far(got: Tensor, expected: Tensor, *, threshold: float) -> Tensor:
    return (got.double() - expected).abs() > threshold


def _part(tensor: Tensor, rows: slice | None) -> Tensor:
    return tensor if rows is None else tensor[rows]


def _of(judged: Tensor | None, rows: slice | None) -> Tensor | None:
    return None if judged is None else _part(judged, rows)


def _filled(got: Tensor, expected: Tensor, judged: Tensor | None) -> Tensor:
    """`got` with the expected values where it is not judged."""
    return got if judged is None else torch.where(judged, got, expected.to(got.dtype))


def _threshold(comparison: Comparison) -> float:
    """The largest error of an element that its output's bound allows."""
    measured, sums = comparison.measured(), comparison.candidate
    assert measured is not None
    bound = limit(measured.default, measured.step)
    if measured.candidate.max > bound.max:
        return bound.max * (sums.reference_max or 1.0)
    return bound.rms * ((sums.reference_squared / sums.counted) ** 0.5 or 1.0)


def _wrong_elements(output: Tensor) -> WrongElements:
    shape = (*output.shape, 2) if output.is_complex() else tuple(output.shape)
    return WrongElements(shape, output.device)


def _collect(found: WrongElements, differs: Differs, offset: int, got: Tensor, *expected: Tensor) -> None:
    """`offset`: flat index of the tensors' first element in the whole output."""
    for start, (mine, *theirs) in chunks(got, *expected):
        wrongs = differs(mine, *theirs)
        if bool(wrongs.any()):
            found.add(offset + start, wrongs, mine, theirs[0])


def _differs_from_both(got: Tensor, eager: Tensor, reference: Tensor) -> Tensor:
    return differing(got, eager) & differing(got, reference)


def _special_differs_from_both(got: Tensor, eager: Tensor, reference: Tensor, *, strict: bool) -> Tensor:
    return special_differs(got, eager, strict=strict) & special_differs(got, reference, strict=strict)


def _offset(output: Tensor, rows: slice | None) -> int:
    return flat(output[0]).numel() * rows.start if rows else 0


def _kernelbench_ok(got: Tensor, eager: Tensor) -> bool:
    close = Closeness()
    for _, (mine, theirs) in chunks(got, eager):
        close.add(mine, theirs)
    return close.ok

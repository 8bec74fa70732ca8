"""Quantities keep their digits, however small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.units import amount, count, duration

_MS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


@given(st.floats(1e-7, 1e6), st.integers(2, 6))
def test_a_duration_is_never_rounded_away(ms, digits):
    number, unit = duration(ms, digits).split()
    assert float(number) * _MS[unit] == pytest.approx(ms, rel=10.0 ** (1 - digits))


def test_units_that_people_read():
    assert [duration(ms, 3) for ms in (3.9e-6, 0.0042, 0.0639, 62.0, 1234.5)] == [
        "3.9 ns", "4.2 µs", "0.0639 ms", "62 ms", "1.23 s",
    ]  # fmt: skip
    assert [amount(size) for size in (12, 16384, 4.2e9)] == ["12 B", "16.4 kB", "4200.0 MB"]
    assert [count(number) for number in (4096, 1.3e6, 137.4e9)] == ["4,096", "1.3 million", "137.4 billion"]

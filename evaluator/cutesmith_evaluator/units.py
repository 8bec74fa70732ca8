"""Quantities in the unit that shows them: nothing measured or estimated is rounded to zero. Standard library only."""

from __future__ import annotations


def duration(ms: float, digits: int = 4) -> str:
    """Milliseconds as "3.9 ns", "4.2 µs", "0.062 ms" or "1.5 s", to so many significant digits."""
    for unit, factor, least in (("s", 1e-3, 1e3), ("ms", 1.0, 1e-2), ("µs", 1e3, 1e-4)):
        if ms >= least:
            return f"{ms * factor:.{digits}g} {unit}"
    return f"{ms * 1e6:.{digits}g} ns"


def amount(size: float) -> str:
    """Bytes as "512 B", "16.4 kB" or "4200.0 MB"."""
    if size >= 1e5:
        return f"{size / 1e6:.1f} MB"
    return f"{size / 1e3:.1f} kB" if size >= 1e3 else f"{size:.0f} B"


def count(number: float) -> str:
    """A number of things as "4,096", "1.3 million" or "137.4 billion"."""
    if number >= 1e9:
        return f"{number / 1e9:.1f} billion"
    return f"{number / 1e6:.1f} million" if number >= 1e5 else f"{number:,.0f}"

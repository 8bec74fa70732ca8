"""Which places of its input each element of a convolution's kernel meets, along one dimension, over all its results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

MOST_EDGES = 24  # places that a sum takes one by one
WHOLE_ACCESS = 8  # elements of 16 bytes, in the narrowest type


@dataclass(frozen=True)
class Met:
    """`by_element`: the places that each element of the kernel meets, of `size` of the input. `is_inner`: neighbouring
    places are neighbours in memory."""

    size: int
    by_element: tuple[range, ...]
    is_inner: bool = False

    @property
    def is_same(self) -> bool:
        """Whether all elements meet the same places."""
        return len(set(self.by_element)) == 1

    @cached_property
    def cores(self) -> dict[int, range]:
        """By their distance modulo the step, places that all elements meet which meet any of these: equally many."""
        classes: dict[int, range] = {}
        for own in self.by_element:
            residue = own.start % own.step
            other = classes.get(residue, own)
            classes[residue] = range(max(own.start, other.start), min(own.stop, other.stop), own.step)
        count = min(map(len, classes.values()))
        cores = {residue: core[:count] for residue, core in classes.items()}
        return {residue: _aligned(core, self.size) for residue, core in cores.items()} if self.is_inner else cores

    @property
    def count(self) -> int:
        """Places of a core."""
        return len(next(iter(self.cores.values())))

    def core(self, element: int) -> range:
        own = self.by_element[element]
        return self.cores[own.start % own.step]

    def edges(self, element: int) -> tuple[int, ...]:
        """The places that the element meets besides its core."""
        own, core = self.by_element[element], self.core(element)
        return (*range(own.start, core.start, own.step), *range(core.stop, own.stop, own.step))

    @property
    def is_covered(self) -> bool:
        """Whether sums over a core and a few places are a way to compute this."""
        if not all(self.by_element) or self.count < 2:
            return False
        return all(len(self.by_element[t]) - self.count <= MOST_EDGES for t in range(len(self.by_element)))


def _aligned(core: range, size: int) -> range:
    """Without a few places at its ends, so that wide accesses read the rest."""
    if core.step != 1 or size % WHOLE_ACCESS or len(core) < 4 * WHOLE_ACCESS:
        return core
    return range(-(-core.start // WHOLE_ACCESS) * WHOLE_ACCESS, core.stop // WHOLE_ACCESS * WHOLE_ACCESS)


def met(
    size: int, results: int, kernel: int, stride: int, padding: int, dilation: int, *, transposed: bool
) -> tuple[range, ...]:
    """By element of the kernel: of the `size` places, those from which it comes to one of the results."""
    if transposed:
        return tuple(_sources(size, results, stride, padding - t * dilation) for t in range(kernel))
    return tuple(_read(size, results, stride, t * dilation - padding) for t in range(kernel))


def _sources(size: int, results: int, stride: int, shift: int) -> range:
    """Places i with 0 <= stride * i - shift < results."""
    return range(max(-(-shift // stride), 0), max(min((results - 1 + shift) // stride + 1, size), 0))


def _read(size: int, results: int, stride: int, shift: int) -> range:
    """Places stride * o + shift of results o."""
    first = max(-(shift // stride), 0)
    last = min((size - 1 - shift) // stride, results - 1)
    return range(stride * first + shift, max(stride * last + shift, stride * first + shift - 1) + 1, stride)

"""How a product's kernels see its tensors: factors as (lines, depth, batch), results as (rows, columns, batch)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .accesses import Access, Tensors, cute_type, pointer
from .contraction import Contraction
from .geometry import output_spec
from .ir import Load
from .layout import ITEMSIZE, Shapes, nested, vector_width
from .lowering import Program, Store
from .triangles import Triangle

GROUPS = ("rows", "columns", "batches")


@dataclass(frozen=True)
class Views:
    """A program with one product, its tensors, and which of its sizes are open."""

    program: Program
    found: Contraction
    tensors: Tensors
    shapes: Shapes
    triangle: Triangle | None = None  # of the results, that forward keeps
    is_direct: bool = False  # the kernel splits fp32 factors itself

    @property
    def is_plain(self) -> bool:
        """Whether rows and columns are those of the only result, each with one stride."""
        sizes = tuple(self.size(group) for group in ("rows", "columns"))
        (store, *others) = self.program.stores
        strides = [self.found.modes(self.program, store.strides, self.factors(group)).pairs for group in GROUPS[:2]]
        shape = output_spec(self.program.graph, self.program.graph.outputs[0]).shape
        return not others and shape[-2:] == sizes and strides == [((sizes[0], sizes[1]),), ((sizes[1], 1),)]

    @property
    def left(self) -> Access:
        return self._access(self.found.left)

    @property
    def right(self) -> Access:
        return self._access(self.found.right)

    def _access(self, load: Load) -> Access:
        return next(a for a in self.tensors.loads if a.load is load)

    def factors(self, group: str) -> tuple[int, ...]:
        return {"rows": self.found.rows, "columns": self.found.columns, "batches": self.found.batch}[group]

    def size(self, group: str) -> int:
        """As traced."""
        return self.found.size(self.program, self.factors(group))

    @property
    def depth(self) -> int:
        return self.found.size(self.program, self.found.depth)

    def is_open(self, group: str) -> bool:
        opened = {k for d in range(self.shapes.prefix) for k in self.program.dims[d]}
        return bool(opened & set(self.factors(group)))

    def count(self, group: str, results: str) -> str:
        """The size as text; an open one follows from the number of `results` (an expression)."""
        if not self.is_open(group):
            return str(self.size(group))
        others = 1
        for other in GROUPS:
            others *= 1 if other == group else self.size(other)
        return f"{results} // {others}" if others > 1 else results

    def operand(self, access: Access, lines: str) -> str:
        """A factor of the product as the kernels see it."""
        assert access.load is not None
        depth = nested(self.found.modes(self.program, access.load.strides, self.found.depth), "DEPTH")
        return self._tensor(access, self._mode(access.load, lines, lines), depth)

    def around(self, access: Access) -> str:
        """A result, or what the epilogue reads besides."""
        at = access.load or access.store
        assert at is not None
        return self._tensor(access, self._mode(at, "rows", "rows"), self._mode(at, "columns", "columns"))

    def _mode(self, at: Load | Store, group: str, total: str) -> tuple[str, str]:
        modes = self.found.modes(self.program, at.strides, self.factors(group))
        return nested(modes, total if self.is_open(group) else str(self.size(group)))

    def _tensor(self, access: Access, first: tuple[str, str], second: tuple[str, str]) -> str:
        at = access.load or access.store
        assert at is not None
        modes = (first, second, self._mode(at, "batches", "batches"))
        shape, strides = (", ".join(mode[k] for mode in modes) for k in range(2))
        return f"cute.make_tensor({pointer(access)}, cute.make_layout(({shape}), stride=({strides})))"

    def is_by_lines(self, access: Access) -> bool:
        """Whether the values that a result sums over are contiguous."""
        assert access.load is not None
        return self.found.modes(self.program, access.load.strides, self.found.depth).inner[1] == 1

    def is_side_by_side(self, access: Access) -> bool:
        """Whether neighbouring lines of a factor lie side by side."""
        assert access.load is not None
        own = self.found.rows if access.load is self.found.left else self.found.columns
        return self.found.modes(self.program, access.load.strides, own).inner[1] == 1

    def width(self, access: Access) -> int:
        """Values of a line that a thread reads at a time: 8, or 1 where a line starts anywhere."""
        assert access.load is not None
        modes = self.found.modes(self.program, access.load.strides, self.found.depth)
        outer = tuple(access.load.strides[k] for k in (*self.found.rows, *self.found.columns, *self.found.batch))
        closed = vector_width(modes, access.load.offset, outer, 8, closed=True)
        return 8 if closed == 8 or (closed == 4 and self.depth % 8 == 0) else 1

    def column_stride(self, access: Access) -> int:
        """From one column to the next; -1 where that is not one number, or elements are read one by one."""
        at = access.load or access.store
        assert at is not None
        modes = self.found.modes(self.program, at.strides, self.found.columns)
        if access.dtype == "bool" or (len(modes.pairs) > 1 and modes.inner[1] != 1):
            return -1
        return modes.inner[1]

    def run(self, most: int, operands: tuple[Access, ...]) -> int:
        """Neighbouring columns, at most so many, that lie side by side in each result and in each operand with columns,
        at a multiple of their size."""
        for access in (*operands, *self.tensors.stores):
            at = access.load or access.store
            assert at is not None
            stride = self.column_stride(access)
            if access.store is not None and stride != 1:
                return 1
            if stride == 1:
                modes = self.found.modes(self.program, at.strides, self.found.columns)
                outer = tuple(at.strides[k] for k in (*self.found.rows, *self.found.batch))
                most = vector_width(modes, at.offset, outer, most, closed=True)
        return most

    @property
    def is_half(self) -> bool:
        """Whether factors are multiplied as they are."""
        return self.found.left.dtype != "float32"

    @property
    def is_whole(self) -> bool:
        """Whether the kernel reads factors as they are."""
        return self.is_half or self.is_direct

    @property
    def can_be_direct(self) -> bool:
        """Whether fp32 factors lie so that tiles of them can be loaded as they are."""
        direct = replace(self, is_direct=True)
        return not self.is_half and all(direct.is_in_place(a, stages_of=0) for a in (self.left, self.right))

    @property
    def parts(self) -> int:
        """Matrices that the kernel reads for a factor."""
        return 1 if self.is_whole else 2

    @property
    def factor_type(self) -> str:
        """Of what the kernel reads."""
        return cute_type(self.found.left.dtype if self.is_whole else "float16")

    @property
    def factor_bytes(self) -> int:
        return ITEMSIZE[self.found.left.dtype if self.is_whole else "float16"]

    @property
    def operand_type(self) -> str:
        """Of what tensor cores multiply."""
        return cute_type(self.found.left.dtype if self.is_half else "float16")

    def is_in_place(self, access: Access, *, stages_of: int) -> bool:
        """Whether the kernel can be fed from a factor as it lies in memory: lines, depth and batches
        have a stride each, one of the first two is 1, and the others are multiples of 16 bytes. `stages_of`: where a
        line is read up to the end of a stage of so many values, it has to be contiguous and of whole stages; else 0."""
        assert access.load is not None
        own = self.found.rows if access.load is self.found.left else self.found.columns
        groups = (own, self.found.depth, self.found.batch)
        modes = [self.found.modes(self.program, access.load.strides, factors) for factors in groups]
        if any(len(mode.pairs) > 1 for mode in modes):
            return False
        lines, depth, batch = (mode.inner[1] for mode in modes)
        if stages_of and (depth != 1 or self.depth % stages_of):
            return False
        others = (batch, access.load.offset, lines if depth == 1 else depth)
        return 1 in (lines, depth) and not any(each * self.factor_bytes % 16 for each in others)

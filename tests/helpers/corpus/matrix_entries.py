"""mma.sync: each lane loads its registers of A, B and C, and stores those of D. Four warps, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from corpus.entry import Array, Entry, threads
from corpus.matrix_values import FORMATS, VARIANTS, elements


@dataclass(frozen=True)
class Product:
    """`a`, `b`, `c`: 32-bit registers of each lane (64-bit ones for f64)."""

    shape: str
    depth: int
    left: str
    right: str
    sum: str
    a: int
    b: int
    c: int
    tail: str = ""

    @property
    def opcode(self) -> str:
        kinds = f"{self.sum}.{self.left}.{self.right}.{self.sum}"
        return f"mma.sync.aligned.{self.shape}.row.col{self.tail}.{kinds}"


def _products() -> Iterator[Product]:
    for form in ("f16", "bf16"):
        yield Product("m16n8k8", 8, form, form, "f32", 2, 1, 4)
        yield Product("m16n8k16", 16, form, form, "f32", 4, 2, 4)
    yield Product("m16n8k8", 8, "f16", "f16", "f16", 2, 1, 2)
    yield Product("m16n8k16", 16, "f16", "f16", "f16", 4, 2, 2)
    yield Product("m16n8k4", 4, "tf32", "tf32", "f32", 2, 1, 4)
    yield Product("m16n8k8", 8, "tf32", "tf32", "f32", 4, 2, 4)
    for left, right in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e4m3", "e5m2"), ("e5m2", "e4m3")):
        yield Product("m16n8k32", 32, left, right, "f32", 4, 2, 4)
    yield Product("m16n8k16", 16, "e4m3", "e4m3", "f32", 2, 1, 4)
    yield Product("m16n8k16", 16, "e4m3", "e4m3", "f16", 2, 1, 2)
    yield Product("m16n8k32", 32, "e4m3", "e4m3", "f16", 4, 2, 2)
    yield Product("m8n8k4", 4, "f64", "f64", "f64", 1, 1, 2)
    for depth in (4, 8, 16):
        yield Product(f"m16n8k{depth}", depth, "f64", "f64", "f64", depth // 2, depth // 4, 4)


def _integer_products() -> Iterator[Product]:
    for left, right in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")):
        for tail in ("", ".satfinite"):
            yield Product("m16n8k32", 32, left, right, "s32", 4, 2, 4, tail)
        yield Product("m16n8k16", 16, left, right, "s32", 2, 1, 4)
        yield Product("m8n8k16", 16, left, right, "s32", 1, 1, 2)


def entries() -> Iterator[Entry]:
    for product in _products():
        for variant in VARIANTS:
            yield _entry(product, variant)
    for product in _integer_products():
        yield _entry(product, "")
    yield _chained()
    yield _untruncated()


def _buffers(product: Product, variant: str, name: str) -> tuple[Array, Array, Array]:
    """Elements of A, B and C for 128 threads, as the registers' bytes."""
    width = 8 if product.left == "f64" else 4
    found = []
    for form, registers in ((product.left, product.a), (product.right, product.b), (product.sum, product.c)):
        size = FORMATS[form][2] if form in FORMATS else {"s8": 1, "u8": 1, "s32": 4}[form]
        made = elements(form, variant, f"{name}/{len(found)}", 128 * registers * width // size)
        found.append(made.view(f"u{width}"))
    return found[0], found[1], found[2]


def fragments(counts: tuple[int, int, int], width: int) -> tuple[str, list[list[str]]]:
    """Loads of each lane's registers from the three inputs, and the registers."""
    letter, bits = ("d", 64) if width == 8 else ("r", 32)
    lines, groups, first = [], [], 0
    for place, count in enumerate(counts):
        names = [f"%{letter}{first + 10 + number}" for number in range(count)]
        lines.append(f"mad.wide.u32 %x{place}, %t, {count * width}, %a{place};")
        lines += [f"ld.global.b{bits} {name}, [%x{place}+{n * width}];" for n, name in enumerate(names)]
        groups.append(names)
        first += count
    return "\n".join(lines), groups


def group(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _entry(product: Product, variant: str) -> Entry:
    name = f"{product.opcode} {variant}".strip()
    width = 8 if product.left == "f64" else 4
    loads, (a, b, c) = fragments((product.a, product.b, product.c), width)
    results = [f"%{'d' if width == 8 else 'r'}{number}" for number in range(product.c)]
    body = f"{loads}\n{product.opcode} {group(results)}, {group(a)}, {group(b)}, {group(c)};"
    return threads(
        name,
        body,
        inputs=_buffers(product, variant, name),
        results=[f"u{width}"] * product.c,
    )


def _chained() -> Entry:
    """Four products into one accumulator, as a main loop has them."""
    product = Product("m16n8k16", 16, "f16", "f16", "f32", 4, 2, 4)
    loads, (a, b, c) = fragments((16, 8, 4), 4)
    steps = "\n".join(
        f"{product.opcode} {group(c)}, {group(a[4 * n : 4 * n + 4])}, {group(b[2 * n : 2 * n + 2])}, {group(c)};"
        for n in range(4)
    )
    moves = "\n".join(f"mov.b32 %r{place}, {name};" for place, name in enumerate(c))
    wide = Product("", 64, "f16", "f16", "f32", 16, 8, 4)
    return threads(
        "mma.sync in a chain of four",
        f"{loads}\n{steps}\n{moves}",
        inputs=_buffers(wide, "plain", "chain"),
        results=["u4"] * 4,
    )


def _untruncated() -> Entry:
    """float32 bits given as tf32: what the tensor core does with the lower thirteen."""
    product = Product("m16n8k8", 8, "tf32", "tf32", "f32", 4, 2, 4)
    made = _entry(product, "plain")
    inputs = tuple(
        np.where(array != 0, array | (elements("f32", "plain", f"tail {place}", array.size) & np.uint32(0x1FFF)), array)
        for place, array in enumerate(made.inputs[:2])
    )
    name = f"{product.opcode} of float32 bits"
    return Entry(name, made.ptx, (*inputs, made.inputs[2]), made.outputs, made.checks)

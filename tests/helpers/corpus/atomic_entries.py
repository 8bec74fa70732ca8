"""atom and red. What is left in memory is compared; what the threads saw too, in any order where order decides it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from corpus.checks import ANY_ORDER, EXACT
from corpus.entry import Array, Entry, threads, words

_CELLS = 8  # that 256 threads share
_SHARED = ".shared .align 16 .b8 s[256];\n"


def entries() -> Iterator[Entry]:
    for space in ("global", "shared"):
        for name, kind in _integer_forms():
            yield _one(name, kind, space, red=False)
            if name not in ("exch", "cas"):
                yield _one(name, kind, space, red=True)
        for kind in ("f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2"):
            yield _float_sum(kind, space)
    yield from _exchanges()
    yield from _vectors()


def _integer_forms() -> Iterator[tuple[str, str]]:
    yield from product(("min", "max"), ("u32", "s32", "u64", "s64"))
    yield from product(("add",), ("u32", "s32", "u64"))
    yield from product(("and", "or", "xor"), ("b32", "b64"))
    yield from product(("inc", "dec"), ("u32",))


def _cell(space: str, size: int) -> str:
    """%x9: the thread's cell. Shared ones are filled first."""
    cell = f"and.b32 %r70, %t, {_CELLS - 1};"
    if space == "global":
        return f"{cell} mad.wide.u32 %x9, %r70, {size}, %a1;"
    return f"""{cell} mov.u64 %x8, s; mad.wide.u32 %x9, %r70, {size}, %x8; mad.wide.u32 %x7, %r70, {size}, %a1;
    ld.global.b{8 * size} %{_letter(size)}7, [%x7]; setp.lt.u32 %p9, %t, {_CELLS};
    @%p9 st.shared.b{8 * size} [%x9], %{_letter(size)}7;
    bar.sync 0;"""


def _back(space: str, size: int) -> str:
    """What is left in shared memory goes to the cells in global memory."""
    if space == "global":
        return ""
    return f"""bar.sync 0; ld.shared.b{8 * size} %{_letter(size)}7, [%x9];
    @%p9 st.global.b{8 * size} [%x7], %{_letter(size)}7;"""


def _letter(size: int) -> str:
    return {2: "h", 4: "r", 8: "d"}[size]


def _one(name: str, kind: str, space: str, *, red: bool) -> Entry:
    size = int(kind[1:]) // 8
    register = _letter(size)
    load = f"mad.wide.u32 %x0, %t, {size}, %a0; ld.global.b{8 * size} %{register}1, [%x0];"
    opcode = f"{'red' if red else 'atom'}.{space}.{name}.{kind}"
    does = f"{opcode} [%x9], %{register}1;" if red else f"{opcode} %{register}0, [%x9], %{register}1;"
    body = f"{load} {_cell(space, size)} {does} {_back(space, size)}"
    cells = words(f"{opcode}/cells", _CELLS, f"u{size}")
    values = words(opcode, 256, f"u{size}")
    if name in ("inc", "dec"):  # one limit for all, so that the order of the threads does not matter
        values[:], cells[:] = 5, [0, 1, 2, 5, 6, 9, 4, 3]
    if not red and name not in ("inc", "dec"):
        return _uncontended(opcode, register, size, space)
    results = [] if red else [f"u{size}"]
    checks = (EXACT,) if red else (EXACT, ANY_ORDER)
    return threads(
        opcode, body, inputs=[values], outputs=[cells], results=results, checks=checks, block=256, before=_SHARED
    )


def _uncontended(opcode: str, register: str, size: int, space: str) -> Entry:
    """A cell for each thread, so that what it sees is certain."""
    load = f"mad.wide.u32 %x0, %t, {size}, %a0; ld.global.b{8 * size} %{register}1, [%x0];"
    if space == "global":
        body = f"{load} mad.wide.u32 %x9, %t, {size}, %a1; {opcode} %{register}0, [%x9], %{register}1;"
        before = ""
    else:
        body = f"""{load} mov.u64 %x8, s; mad.wide.u32 %x9, %t, {size}, %x8; mad.wide.u32 %x7, %t, {size}, %a1;
        ld.global.b{8 * size} %{register}7, [%x7]; st.shared.b{8 * size} [%x9], %{register}7;
        {opcode} %{register}0, [%x9], %{register}1;
        ld.shared.b{8 * size} %{register}7, [%x9]; st.global.b{8 * size} [%x7], %{register}7;"""
        before = f".shared .align 16 .b8 s[{128 * size}];\n"
    inputs, cells = [words(opcode, 128, f"u{size}")], [words(f"{opcode}/cells", 128, f"u{size}")]
    return threads(opcode, body, inputs=inputs, outputs=cells, results=[f"u{size}"], before=before)


def _float_sum(kind: str, space: str) -> Entry:
    """Small integers, so that no order rounds."""
    form = kind.rpartition(".")[2]
    size = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4}[form]
    register = _letter(size)
    load = f"mad.wide.u32 %x0, %t, {size}, %a0; ld.global.b{8 * size} %{register}1, [%x0];"
    opcode = f"red.{space}.add.{kind}"
    body = f"{load} {_cell(space, size)} {opcode} [%x9], %{register}1; {_back(space, size)}"
    values, cells = _small(opcode, 256, form), _small(f"{opcode}/cells", _CELLS, form)
    return threads(opcode, body, inputs=[values], outputs=[cells], results=[], block=256, before=_SHARED)


def _small(name: str, count: int, form: str) -> Array:
    """Integers from -2 to 2 in a float format; exact in sums of 256."""
    halves = 2 if form.endswith("x2") else 1
    numbers = (words(name, count * halves) % 5).astype(np.float32) - 2
    base = form.removesuffix("x2")
    if base == "bf16":
        found = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    else:
        found = numbers.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[base])
    return found.view(f"u{found.itemsize * halves}")


def _exchanges() -> Iterator[Entry]:
    """Compare-and-swap where half of the threads find what they expect; chains of exchanges as a set."""
    for kind, space in product(("b16", "b32", "b64"), ("global", "shared")):
        size = int(kind[1:]) // 8
        register = _letter(size)
        where = f"mad.wide.u32 %x9, %t, {size}, %a1;"
        into, out = "", ""
        if space == "shared":
            where = f"mov.u64 %x8, s; mad.wide.u32 %x9, %t, {size}, %x8; mad.wide.u32 %x7, %t, {size}, %a1;"
            into = f"ld.global.b{8 * size} %{register}7, [%x7]; st.shared.b{8 * size} [%x9], %{register}7;"
            out = f"ld.shared.b{8 * size} %{register}7, [%x9]; st.global.b{8 * size} [%x7], %{register}7;"
        body = f"""mad.wide.u32 %x0, %t, {size}, %a0; ld.global.b{8 * size} %{register}1, [%x0]; {where} {into}
        add.u{8 * size} %{register}2, %{register}1, 3;
        atom.{space}.cas.{kind} %{register}0, [%x9], %{register}1, %{register}2; {out}"""
        values = words(f"cas {kind}", 128, f"u{size}")
        cells = values.copy()
        cells[::2] += 1
        before = f".shared .align 16 .b8 s[{128 * size}];\n"
        name = f"atom.{space}.cas.{kind}"
        yield threads(name, body, inputs=[values], outputs=[cells], results=[f"u{size}"], before=before)
    yield _chain()
    body = """mad.wide.u32 %x9, %t, 16, %a0; cvt.u64.u32 %d1, %t; mul.lo.u64 %d2, %d1, 77; mov.b128 %q1, {%d1, %d2};
    atom.global.exch.b128 %q0, [%x9], %q1; mov.b128 {%d0, %d1}, %q0;"""
    cells = [words("b128", 256, "u8")]
    yield threads("atom.global.exch.b128", f".reg .b128 %q<2>; {body}", outputs=cells, results=["u8", "u8"])


def _chain() -> Entry:
    """Each thread of a warp leaves its number; one more exchange takes out the last: together all numbers were seen."""
    body = """add.u32 %r1, %t, 3; atom.global.exch.b32 %r0, [%a0], %r1; bar.warp.sync -1; membar.gl;
    setp.eq.u32 %p1, %t, 0; mov.u32 %r2, 1; @%p1 atom.global.exch.b32 %r3, [%a0], %r2; @%p1 st.global.b32 [%a0+4], %r3;
    mad.wide.u32 %x1, %t, 4, %a0; st.global.b32 [%x1+8], %r0;"""
    cells = np.zeros(34, np.uint32)
    return threads("atom.global.exch.b32 by a warp", body, outputs=[cells], results=[], checks=(ANY_ORDER,), block=32)


def _vectors() -> Iterator[Entry]:
    """Several neighbours at once, small integers again."""
    for count, kind in (
        (2, "f32"),
        (4, "f32"),
        (2, "noftz.f16"),
        (8, "noftz.f16"),
        (4, "noftz.bf16x2"),
        (2, "noftz.f16x2"),
    ):
        form = kind.rpartition(".")[2]
        unit = {"f32": 4, "f16": 2, "bf16x2": 4, "f16x2": 4}[form]
        register = _letter(unit)
        names = "{" + ", ".join(f"%{register}{number}" for number in range(1, count + 1)) + "}"
        loads = "\n".join(f"ld.global.b{8 * unit} %{register}{n + 1}, [%x0+{n * unit}];" for n in range(count))
        plain = kind.replace("noftz.", "")
        opcode = f"red.global.add{'.noftz' if 'noftz' in kind else ''}.v{count}.{plain}"
        body = f"""mad.wide.u32 %x0, %t, {unit * count}, %a0; {loads} and.b32 %r70, %t, 7;
        mad.wide.u32 %x9, %r70, {unit * count}, %a1;
        {opcode} [%x9], {names};"""
        values, cells = _small(opcode, 128 * count, form), _small(f"{opcode}/cells", 8 * count, form)
        yield threads(opcode, body, inputs=[values], outputs=[cells], results=[])

"""Loads and stores of all widths and vectors, in all memories; shared memory between threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from corpus.entry import Entry, threads, words

_VECTORS = [
    (kind, count) for kind in ("b8", "b16", "b32", "b64") for count in (1, 2, 4) if int(kind[1:]) * count <= 128
]
_SHARED = ".shared .align 16 .b8 s[4096];\n"


def entries() -> Iterator[Entry]:
    yield from _vectors()
    yield from _extensions()
    yield from _hints()
    yield from _windows()
    yield from _exchanges()


def _group(registers: list[str]) -> str:
    return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"


def _vectors() -> Iterator[Entry]:
    """Copies through each memory, elements turned round on the way."""
    for (kind, count), space in product(_VECTORS, ("global", "shared", "local")):
        width, size = int(kind[1:]) // 8, int(kind[1:]) // 8 * count
        letter = {1: "h", 2: "h", 4: "r", 8: "d"}[width]
        names = [f"%{letter}{number}" for number in range(1, count + 1)]
        form = (f".v{count}" if count > 1 else "") + f".{kind}"
        load = f"mad.wide.u32 %x0, %t, {size}, %a0; ld.global{form} {_group(names)}, [%x0];"
        back = f"mad.wide.u32 %x1, %t, {size}, %a1; st.global{form} [%x1], {_group(names[::-1])};"
        output = [np.zeros(128 * size, np.uint8)]
        inputs = [words(f"ld{form}", 128 * size, "u1")]
        yield threads(
            f"copy{form} through {space}",
            f"{load} {_through(space, form, size, names)} {back}",
            inputs=inputs,
            outputs=output,
            results=[],
            before=_SHARED if space == "shared" else "",
        )


def _through(space: str, form: str, size: int, names: list[str]) -> str:
    """Stores to a memory and loads again: from the neighbour's place where it is shared."""
    group = _group(names)
    if space == "local":
        where = f""".local .align 16 .b8 mine[64]; mov.u64 %x3, mine; and.b32 %r70, %t, 3;
        mad.wide.u32 %x2, %r70, {size}, %x3;"""
        clear = "\n".join(f"st.local.b64 [%x3+{place}], 0;" for place in range(0, 64, 8))
        return f"{where} {clear} st.local{form} [%x2], {group}; ld.local{form} {group}, [%x2];"
    if space == "shared":
        return f"""mov.u32 %r70, s; and.b32 %r71, %t, 127; mad.lo.u32 %r72, %r71, {min(size, 16)}, %r70;
        st.shared{form} [%r72], {group}; bar.sync 0; xor.b32 %r71, %r71, 77;
        mad.lo.u32 %r72, %r71, {min(size, 16)}, %r70;
        ld.shared{form} {group}, [%r72];"""
    return ""


def _extensions() -> Iterator[Entry]:
    """Narrow loads fill wide registers: with the sign, or with zeros."""
    for kind, letter in product(("u8", "s8", "u16", "s16", "u32", "s32"), ("r", "d", "h")):
        width = int(kind[1:]) // 8
        if width > {"r": 4, "d": 8, "h": 2}[letter]:
            continue
        body = f"mad.wide.u32 %x0, %t, {width}, %a0; ld.global.{kind} %{letter}0, [%x0];"
        result = {"r": "u4", "d": "u8", "h": "u2"}[letter]
        size = {"r": 32, "d": 64, "h": 16}[letter]
        inputs = [words(f"ld.{kind}", 128 * width, "u1")]
        yield threads(f"ld.global.{kind} into {size} bits", body, inputs=inputs, results=[result])


def _hints() -> Iterator[Entry]:
    loads = (
        "nc",
        "ca",
        "cg",
        "cs",
        "lu",
        "cv",
        "volatile",
        "relaxed.gpu",
        "acquire.sys",
        "nc.L1::no_allocate",
        "L2::128B",
    )
    for hint in loads:
        form = f"ld.{hint}.global" if hint.split(".")[0] in ("volatile", "relaxed", "acquire") else f"ld.global.{hint}"
        body = f"mad.wide.u32 %x0, %t, 4, %a0; {form}.b32 %r0, [%x0];"
        yield threads(f"{form}.b32", body, inputs=[words(hint, 128)])
    for hint in ("wb", "cg", "cs", "wt", "volatile", "relaxed.gpu", "release.sys", "L1::no_allocate"):
        form = f"st.{hint}.global" if hint.split(".")[0] in ("volatile", "relaxed", "release") else f"st.global.{hint}"
        body = f"mul.lo.u32 %r0, %t, 7; mad.wide.u32 %x0, %t, 4, %a0; {form}.b32 [%x0], %r0;"
        yield threads(f"{form}.b32", body, outputs=[np.zeros(128, np.uint32)], results=[])


def _windows() -> Iterator[Entry]:
    """Generic addresses of shared and local memory, constants and initialised variables."""
    body = """mov.u64 %x0, s; cvta.shared.u64 %x0, %x0; mad.wide.u32 %x1, %t, 4, %x0; mul.lo.u32 %r1, %t, 5;
    st.b32 [%x1], %r1;
    bar.sync 0; xor.b32 %r2, %t, 1; mad.wide.u32 %x1, %r2, 4, %x0; ld.b32 %r0, [%x1];
    cvta.to.shared.u64 %x2, %x0; cvt.u32.u64 %r3, %x2; mad.lo.u32 %r3, %t, 4, %r3; ld.shared.b32 %r1, [%r3];"""
    yield threads("generic addresses of shared memory", body, before=_SHARED, results=["u4", "u4"])
    body = """.local .align 8 .b8 mine[8]; mov.u64 %x0, mine; cvta.local.u64 %x1, %x0; st.b32 [%x1+4], %t;
    ld.local.b32 %r0, [%x0+4];"""
    yield threads("generic addresses of local memory", body)
    table = ".global .align 4 .b32 table[4] = {11, 22, 0xffffffff, 44};\n"
    body = "and.b32 %r1, %t, 3; mov.u64 %x0, table; mad.wide.u32 %x0, %r1, 4, %x0; ld.global.b32 %r0, [%x0];"
    yield threads("an initialised variable", body, before=table)
    body = "and.b32 %r1, %t, 3; mov.u64 %x0, table; mad.wide.u32 %x0, %r1, 4, %x0; ld.const.b32 %r0, [%x0];"
    yield threads("a constant", body, before=table.replace(".global", ".const"))
    body = "mov.u32 %r1, dyn; mad.lo.u32 %r1, %t, 4, %r1; st.shared.b32 [%r1], %t; ld.shared.b32 %r0, [%r1];"
    before = ".extern .shared .align 16 .b8 dyn[];\n"
    yield threads("dynamic shared memory", body, before=before, shared=60000)


def _exchanges() -> Iterator[Entry]:
    """Transposes and reductions through shared memory."""
    for grid in (1, 3):
        body = """mov.u32 %r5, s; and.b32 %r1, %t, 127; mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r2, [%x0];
        mad.lo.u32 %r3, %r1, 4, %r5; st.shared.b32 [%r3], %r2; bar.sync 0;
        and.b32 %r6, %r1, 7; shr.u32 %r7, %r1, 3; mad.lo.u32 %r6, %r6, 16, %r7; mad.lo.u32 %r3, %r6, 4, %r5;
        ld.shared.b32 %r0, [%r3];"""
        inputs = [words("transpose", 128 * grid)]
        yield threads(f"transpose of 8x16 by {grid} blocks", body, inputs=inputs, before=_SHARED, grid=grid)
    yield _sum_by_halves()


def _sum_by_halves() -> Entry:
    body = """mov.u32 %r5, s; and.b32 %r1, %t, 127; mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r2, [%x0];
    mad.lo.u32 %r3, %r1, 4, %r5; st.shared.b32 [%r3], %r2; mov.u32 %r6, 64;
LOOP: bar.sync 0; setp.ge.u32 %p1, %r1, %r6; @%p1 bra NEXT;
    add.u32 %r7, %r1, %r6; mad.lo.u32 %r7, %r7, 4, %r5; ld.shared.b32 %r8, [%r7]; ld.shared.b32 %r9, [%r3];
    add.u32 %r9, %r9, %r8; st.shared.b32 [%r3], %r9;
NEXT: shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra LOOP;
    bar.sync 0; ld.shared.b32 %r0, [%r5];"""
    return threads("sum by halves in shared memory", body, inputs=[words("halves", 512)], before=_SHARED, grid=4)

"""cp.async, ldmatrix, stmatrix and movmatrix."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from corpus.entry import Entry, threads, words

_SHARED = ".shared .align 128 .b8 s[8192];\n"
_BASE = "mov.u32 %r5, s; and.b32 %r6, %t, 127;"


def entries() -> Iterator[Entry]:
    yield from _copies()
    yield from _groups()
    yield from _matrices()


def _loads(size: int, first: str) -> str:
    """What the neighbour copied, word by word into %r0 up to %r3."""
    lines = [f"xor.b32 %r7, %r6, 1; mad.lo.u32 %r7, %r7, {size}, %r5;"]
    lines += [f"ld.shared.b32 %r{word}, [%r7+{4 * word}];" for word in range(size // 4)]
    return first + "\n".join(lines)


def _copies() -> Iterator[Entry]:
    """Each thread copies its bytes and reads the neighbour's."""
    forms = [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16), ("ca", 16, ".L2::128B"), ("cg", 16, ".L2::256B")]
    for cache, size, *hint in forms:
        opcode = f"cp.async.{cache}.shared.global{''.join(hint)}"
        start = f"{_BASE} mad.wide.u32 %x0, %t, {size}, %a0; mad.lo.u32 %r8, %r6, {size}, %r5;"
        body = f"{start} {opcode} [%r8], [%x0], {size}; cp.async.wait_all; bar.sync 0;"
        inputs, results = [words(f"{opcode} {size}", 32 * size)], ["u4"] * (size // 4)
        yield threads(f"{opcode} of {size} bytes", _loads(size, body), inputs=inputs, results=results, before=_SHARED)
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        opcode = f"cp.async.{cache}.shared.global"
        start = (
            f"{_BASE} mad.wide.u32 %x0, %t, {size}, %a0; mad.lo.u32 %r8, %r6, {size}, %r5; rem.u32 %r9, %t, {size + 1};"
        )
        body = f"{start} {opcode} [%r8], [%x0], {size}, %r9; cp.async.wait_all; bar.sync 0;"
        inputs, results = [words(f"{opcode} {size} part", 32 * size)], ["u4"] * (size // 4)
        name = f"{opcode} of part of {size} bytes"
        yield threads(name, _loads(size, body), inputs=inputs, results=results, before=_SHARED)


def _groups() -> Iterator[Entry]:
    """Four stages in flight, each waited for in turn."""
    lines = [f"{_BASE} mov.u32 %r0, 0; mad.lo.u32 %r8, %r6, 16, %r5;"]
    for stage in range(4):
        lines.append(f"mad.wide.u32 %x0, %t, 16, %a0; add.u64 %x0, %x0, {2048 * stage};")
        lines.append(f"cp.async.cg.shared.global [%r8+{2048 * stage}], [%x0], 16; cp.async.commit_group;")
    for stage in range(4):
        lines.append(
            f"cp.async.wait_group {3 - stage}; bar.sync 0; xor.b32 %r7, %r6, 65; mad.lo.u32 %r7, %r7, 16, %r5;"
        )
        lines.append(f"ld.shared.b32 %r1, [%r7+{2048 * stage + 4 * stage}]; mad.lo.u32 %r0, %r0, 5, %r1;")
    yield threads("cp.async in four groups", "\n".join(lines), inputs=[words("groups", 2048)], before=_SHARED)
    body = f"""{_BASE} mad.lo.u32 %r8, %r6, 16, %r5; mad.wide.u32 %x0, %t, 16, %a0; and.b32 %r9, %t, 1;
    setp.eq.u32 %p1, %r9, 0;
    mov.u32 %r1, 9; st.shared.v4.b32 [%r8], {{%r1, %r1, %r1, %r1}}; bar.sync 0;
    @%p1 cp.async.ca.shared.global [%r8], [%x0], 16;
    cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; ld.shared.b32 %r0, [%r8+8];"""
    yield threads("cp.async under a predicate", body, inputs=[words("predicate", 512)], before=_SHARED)


def _fill() -> str:
    """64 bytes of shared memory from each of 128 threads."""
    four = "{%r10, %r11, %r12, %r13}"
    copies = "\n".join(
        f"ld.global.v4.b32 {four}, [%x0+{place}]; st.shared.v4.b32 [%r8+{place}], {four};" for place in (0, 16, 32, 48)
    )
    return f"{_BASE} mad.wide.u32 %x0, %t, 64, %a0; mad.lo.u32 %r8, %r6, 64, %r5; {copies} bar.sync 0;"


def _matrices() -> Iterator[Entry]:
    """Rows at hashed places; each warp by itself."""
    for count, trans in product((1, 2, 4), ("", ".trans")):
        opcode = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        group = "{" + ", ".join(f"%r{number}" for number in range(count)) + "}"
        body = f"""{_fill()} mad.lo.u32 %r9, %t, 37, 11; and.b32 %r9, %r9, 511; mad.lo.u32 %r9, %r9, 16, %r5;
        {opcode} {group}, [%r9];"""
        yield threads(opcode, body, inputs=[words("ldmatrix", 2048)], results=["u4"] * count, before=_SHARED)
        opcode = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
        values = "\n".join(f"mad.lo.u32 %r{number}, %t, 65539, {number * 0x1010101};" for number in range(count))
        # Each warp's 32 rows lie in its own 2 KB, turned round; lanes past the last row repeat its address.
        rows = f"and.b32 %r9, %t, {8 * count - 1}; mul.lo.u32 %r9, %r9, 5; and.b32 %r9, %r9, {8 * count - 1};"
        where = f"{rows} shr.u32 %r20, %r6, 5; mad.lo.u32 %r9, %r20, 128, %r9; mad.lo.u32 %r9, %r9, 16, %r5;"
        reads = "mad.lo.u32 %r21, %r20, 2048, %r5; and.b32 %r22, %t, 31; mad.lo.u32 %r21, %r22, 16, %r21;"
        load = "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r21];"
        body = f"{_fill()} {values} {where} {opcode} [%r9], {group}; bar.sync 0; {reads} {load}"
        yield threads(opcode, body, inputs=[words("stmatrix", 2048)], results=["u4"] * 4, before=_SHARED)
    opcode = "movmatrix.sync.aligned.m8n8.trans.b16"
    body = f"mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0]; {opcode} %r0, %r1;"
    yield threads(opcode, body, inputs=[words("movmatrix", 128)])

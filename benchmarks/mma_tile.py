"""A 256 × 256 × 64 tile of a matrix product on the emulated device: cp.async, ldmatrix and mma.sync, all checks on.

Imported by emulator.py. Sixteen warps, each with 64 × 64 of the result; shared memory is swizzled by 16 bytes.
"""

from __future__ import annotations

import time

import numpy as np

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation

SIZE, DEPTH, THREADS = 256, 64, 512
_CHUNKS = DEPTH // 8  # of 16 bytes in a row
_HALF = SIZE * DEPTH * 2  # bytes of A or B


def _copies() -> str:
    """Chunk c of row r goes to place c xor r mod 8 of the row."""
    lines = []
    for operand in range(2):
        for step in range(SIZE * _CHUNKS // THREADS):
            lines.append(f"""
            add.u32 %r1, %tid, {step * THREADS}; shr.u32 %r2, %r1, 3; and.b32 %r3, %r1, 7; and.b32 %r4, %r2, 7;
            xor.b32 %r4, %r3, %r4; mad.lo.u32 %r5, %r2, 128, {operand * _HALF}; mad.lo.u32 %r5, %r4, 16, %r5;
            add.u32 %r5, %r5, %base; mad.wide.u32 %d3, %r1, 16, %d{operand};
            cp.async.cg.shared.global [%r5], [%d3], 16;""")
    return "\n".join(lines)


def _loads(step: int) -> str:
    """Fragments of A in %a and of B in %b, for 16 columns of the depth."""
    lines = []
    for tile in range(4):
        for letter, row, half, first in (
            ("a", "%la", "%ha", 0),
            ("b", "%lb", "%hb", _HALF),
        ):
            registers = ", ".join(f"%{letter}{4 * tile + place}" for place in range(4))
            lines.append(f"""
            add.u32 %r1, {row}, {16 * tile}; and.b32 %r2, %r1, 7; add.u32 %r3, {half}, {2 * step};
            xor.b32 %r3, %r3, %r2; mad.lo.u32 %r4, %r1, 128, {first}; mad.lo.u32 %r4, %r3, 16, %r4;
            add.u32 %r4, %r4, %base; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{registers}}}, [%r4];""")
    return "\n".join(lines)


def _products() -> str:
    lines = []
    for row in range(4):
        for column in range(8):
            sums = ", ".join(f"%c{32 * row + 4 * column + place}" for place in range(4))
            left = ", ".join(f"%a{4 * row + place}" for place in range(4))
            right = f"%b{2 * column}, %b{2 * column + 1}"
            kinds = "f32.f16.f16.f32"
            lines.append(f"mma.sync.aligned.m16n8k16.row.col.{kinds} {{{sums}}}, {{{left}}}, {{{right}}}, {{{sums}}};")
    return "\n".join(lines)


def _stores() -> str:
    lines = []
    for row in range(4):
        for column in range(8):
            for half in range(2):
                first = 32 * row + 4 * column + 2 * half
                offset = 4 * (SIZE * (16 * row + 8 * half) + 8 * column)
                lines.append(f"st.global.v2.f32 [%d2+{offset}], {{%c{first}, %c{first + 1}}};")
    return "\n".join(lines)


def text() -> str:
    clear = "\n".join(f"mov.b32 %c{number}, 0;" for number in range(128))
    steps = "\n".join(_loads(step) + _products() for step in range(DEPTH // 16))
    return f""".version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 memory[];
.visible .entry k(.param .b64 a, .param .b64 b, .param .b64 c) {{
.reg .b32 %r<8>; .reg .b64 %d<5>; .reg .b32 %a<16>; .reg .b32 %b<16>; .reg .b32 %c<128>;
.reg .b32 %tid, %base, %lane, %m, %n, %la, %ha, %lb, %hb;
ld.param.b64 %d0, [a]; ld.param.b64 %d1, [b]; ld.param.b64 %d2, [c]; mov.u32 %base, memory; mov.u32 %tid, %tid.x;
{_copies()}
cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
{clear}
and.b32 %lane, %tid, 31; shr.u32 %r1, %tid, 5; and.b32 %m, %r1, 3; shl.b32 %m, %m, 6; shr.u32 %n, %r1, 2;
shl.b32 %n, %n, 6; and.b32 %la, %lane, 15; add.u32 %la, %la, %m; shr.u32 %ha, %lane, 4;
and.b32 %lb, %lane, 7; mad.lo.u32 %lb, %ha, 8, %lb; add.u32 %lb, %lb, %n; shr.u32 %hb, %lane, 3; and.b32 %hb, %hb, 1;
{steps}
shr.u32 %r1, %lane, 2; add.u32 %r1, %r1, %m; and.b32 %r2, %lane, 3; mad.lo.u32 %r2, %r2, 2, %n;
mad.lo.u32 %r1, %r1, {SIZE}, %r2; mad.wide.u32 %d2, %r1, 4, %d2;
{_stores()}
ret; }}
"""


def seconds() -> float:
    """Of one tile, whose result is looked at."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((SIZE, DEPTH)).astype(np.float16) for _ in range(2))
    c = np.empty((SIZE, SIZE), np.float32)
    device = Device(count_traffic=False)
    loaded = device.load(text())
    device.program(loaded, "k")
    for name, array in (("a", a), ("b", b), ("c", c)):
        device.memory.add(Allocation(array.ctypes.data, array.nbytes, name, initialised=name != "c"))
    arguments = b"".join(array.ctypes.data.to_bytes(8, "little") for array in (a, b, c))
    started = time.process_time()
    device.launch(loaded, "k", Launch((1, 1, 1), (THREADS, 1, 1), 2 * _HALF, arguments))
    taken = time.process_time() - started
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-4)
    return taken

"""ldmatrix, stmatrix and movmatrix against the manual's layout, a lane and an element at a time."""

from __future__ import annotations

import numpy as np
import pytest

from cutesmith_evaluator.emulator.faults import FaultError
from ptx_kernels import kernel_text, run_kernel

SHARED = ".shared .align 16 .b8 s[2048];"
WARPS = 2
# Each warp has 1024 bytes of shared memory; lane l has row l's address, in an order that is not the rows'.
PLACES = """
mov.u32 %r3, %tid.x; shr.u32 %r4, %r3, 5; and.b32 %r5, %r3, 31; xor.b32 %r6, %r5, 13;
mov.u32 %r2, s; mad.lo.u32 %r2, %r4, 1024, %r2; mad.lo.u32 %r1, %r6, 16, %r2;
mad.wide.u32 %x1, %t, 16, %a1;
"""
FILL = """
mad.lo.u32 %r7, %r5, 16, %r2; mad.wide.u32 %x0, %t, 16, %a0;
ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%x0]; st.shared.v4.b32 [%r7], {%r10, %r11, %r12, %r13}; bar.sync 0;
"""
REGISTERS = {1: "{%r20}", 2: "{%r20, %r21}", 4: "{%r20, %r21, %r22, %r23}"}


def run(body: str, given: np.ndarray) -> np.ndarray:
    """%r20 to %r23 of every lane, from 32 rows of 16 bytes a warp."""
    result = np.zeros((WARPS, 32, 8), np.uint16)
    clear = "mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0;"
    store = "st.global.v4.b32 [%x1], {%r20, %r21, %r22, %r23};"
    run_kernel(kernel_text(PLACES + clear + body + store, 2, before=SHARED), [given, result], block=32 * WARPS)
    return result


def rows() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1 << 16, (WARPS, 32, 8), np.uint16)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_loads(count: int, transposed: bool) -> None:
    given = rows()
    trans = ".trans" if transposed else ""
    load = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {REGISTERS[count]}, [%r1];"
    result = run(FILL + load, given)
    for warp in range(WARPS):
        for lane in range(32):
            for matrix in range(4):
                for half in range(2):
                    row, column = lane // 4, 2 * (lane % 4) + half
                    row, column = (column, row) if transposed else (row, column)
                    wanted = given[warp, (8 * matrix + row) ^ 13, column] if matrix < count else 0
                    assert result[warp, lane, 2 * matrix + half] == wanted


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_stores_undo_loads(count: int, transposed: str) -> None:
    given = rows()
    body = f"""
    {FILL} ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 {REGISTERS[count]}, [%r1];
    add.u32 %r1, %r1, 512; stmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 [%r1], {REGISTERS[count]};
    mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0; bar.warp.sync -1;
    setp.lt.u32 %p1, %r5, {8 * count}; @%p1 ld.shared.v4.b32 {REGISTERS[4]}, [%r1];
"""
    result = run(body, given)
    for lane in range(32):
        wanted = given[:, lane ^ 13] if lane < 8 * count else np.zeros_like(given[:, 0])
        assert (result[:, lane] == wanted).all()


def test_movmatrix_transposes() -> None:
    given = rows()
    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r1]; movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r20;"
    other = "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r20}, [%r1];"
    assert (run(FILL + load, given) == run(FILL + other, given)).all()


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (FILL + "add.u32 %r1, %r1, 8;", "misaligned-access", "accesses 16 bytes of shared memory"),
        (FILL + "add.u32 %r1, %r1, 1024;", "out-of-bounds", "reads 16 bytes at offset"),
        ("", "uninitialised-read", "that nothing has written"),
        (FILL.replace("bar.sync 0;", ""), "race", "with no barrier in between"),
        (
            FILL + "cvt.u64.u32 %d1, %r1; setp.lt.u32 %p1, %r5, 16; @%p1 bra GO; bra OUT; GO:",
            "inactive-lane",
            "all lanes",
        ),
    ],
)
def test_rows_are_checked(body: str, kind: str, words: str) -> None:
    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r1]; OUT:"
    if kind == "inactive-lane":  # the others have left
        body = body.replace("bra OUT;", "exit;")
    with pytest.raises(FaultError, match=words) as caught:
        run(body + load, rows())
    assert caught.value.kind == kind

"""cp.async on the emulated device: what arrives, when it may be looked at, and what is found when it is too early."""

from __future__ import annotations

import numpy as np
import pytest

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation
from ptx_kernels import kernel_text, run_kernel

SHARED = ".shared .align 16 .b8 s[2048];"
# %r1: this thread's 16 bytes of shared memory, %x0: its 16 bytes of array 0, %x1: of array 1, %r3: thread in the block
PLACES = """
mov.u32 %r3, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r1, %r3, 16, %r2;
mad.wide.u32 %x0, %t, 16, %a0; mad.wide.u32 %x1, %t, 16, %a1;
"""
BACK = "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r1]; st.global.v4.b32 [%x1], {%r10, %r11, %r12, %r13};"
DONE = "cp.async.commit_group; cp.async.wait_group 0;"


def copied(body: str, *, block: int = 64, grid: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """(source, result) as bytes, 16 for each thread."""
    source = np.random.default_rng(0).integers(1, 255, (grid * block, 16), np.uint8)
    result = np.zeros_like(source)
    run_kernel(kernel_text(PLACES + body, 2, before=SHARED), [source, result], block=block, grid=grid)
    return source, result


def fault(body: str, **launch: int) -> FaultError:
    with pytest.raises(FaultError) as caught:
        copied(body, **launch)
    return caught.value


@pytest.mark.parametrize(
    "copies",
    [
        "cp.async.cg.shared.global [%r1], [%x0], 16;",
        "cp.async.ca.shared.global.L2::128B [%r1], [%x0], 16;",
        "mov.u64 %d0, 7; cp.async.cg.shared.global.L2::cache_hint [%r1], [%x0], 16, %d0;",
        "cp.async.ca.shared.global [%r1], [%x0], 8; cp.async.ca.shared.global [%r1+8], [%x0+8], 8;",
        "\n".join(f"cp.async.ca.shared.global [%r1+{at}], [%x0+{at}], 4;" for at in range(0, 16, 4)),
    ],
)
@pytest.mark.parametrize("done", [DONE, "cp.async.wait_all;"])
def test_a_copy_is_there_after_the_wait(copies: str, done: str) -> None:
    source, result = copied(f"{copies} {done} {BACK}")
    assert (source == result).all()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_rest_of_a_shorter_copy_is_zero(size: int) -> None:
    zero = "mov.b32 %r9, 0; st.shared.v4.b32 [%r1], {%r9, %r9, %r9, %r9};"
    body = f"{zero} and.b32 %r5, %r3, {size - 1}; cp.async.ca.shared.global [%r1], [%x0], {size}, %r5; {DONE} {BACK}"
    source, result = copied(body)
    for thread, (given, made) in enumerate(zip(source, result, strict=True)):
        read = thread % size
        assert made.tolist() == [*given[:read], *([0] * (16 - read))]


def test_a_source_that_is_not_read_may_lie_anywhere() -> None:
    by_size = f"mov.b32 %r5, 0; cp.async.cg.shared.global [%r1], [%a0+-64], 16, %r5; {DONE} {BACK}"
    assert not copied(by_size)[1].any()
    even = "and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 0;"
    _, result = copied(f"{even} cp.async.cg.shared.global [%r1], [%x0], 16, %p1; {DONE} {BACK}")
    assert not result[::2].any()
    assert result[1::2].all()


def test_groups_arrive_in_order() -> None:
    two = """
    cp.async.cg.shared.global [%r1], [%x0], 16; cp.async.commit_group;
    cp.async.cg.shared.global [%r1+1024], [%x0], 16; cp.async.commit_group; cp.async.wait_group 1;
"""
    source, result = copied(two + BACK)
    assert (source == result).all()
    assert fault(two + BACK.replace("[%r1]", "[%r1+1024]")).kind == "race"


def test_a_thread_that_waits_does_not_wait_for_others() -> None:
    """Half of the threads wait; the others' copies are still under way."""
    body = f"""
    cp.async.cg.shared.global [%r1], [%x0], 16; cp.async.commit_group;
    setp.lt.u32 %p1, %r3, 32; @%p1 cp.async.wait_group 0; bar.sync 0; {BACK}
"""
    found = fault(body)
    assert found.kind == "race"
    assert "thread (32, 0, 0)" in found.message


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (BACK, "race", "reads shared memory at offset 0, which a cp.async still fills"),
        ("cp.async.commit_group;" + BACK, "race", "has not waited"),
        ("cp.async.wait_group 0;" + BACK, "race", "has not waited"),  # never committed
        ("st.shared.b32 [%r1], %r3;" + DONE, "race", "writes shared memory at offset 0, which a cp.async"),
        ("cp.async.cg.shared.global [%r1], [%x0], 16;" + DONE, "race", "which a cp.async still fills"),
        ("xor.b32 %r4, %r3, 1; mad.lo.u32 %r1, %r4, 16, %r2;" + DONE + BACK, "race", "wrote with no barrier"),
        ("bar.sync 0;" + DONE + "xor.b32 %r4, %r3, 1; mad.lo.u32 %r1, %r4, 16, %r2;" + BACK, "race", "no barrier"),
    ],
)
def test_what_is_too_early_is_a_race(body: str, kind: str, words: str) -> None:
    found = fault(f"cp.async.cg.shared.global [%r1], [%x0], 16; {body}")
    assert found.kind == kind
    assert words in found.message


def test_a_copy_over_what_others_still_read_is_a_race() -> None:
    """The next stage is fetched over the one that was read, with no barrier since."""
    body = f"""
    cp.async.cg.shared.global [%r1], [%x0], 16; {DONE} bar.sync 0; ld.shared.b32 %r5, [%r1];
    xor.b32 %r4, %r3, 1; mad.lo.u32 %r1, %r4, 16, %r2; cp.async.cg.shared.global [%r1], [%x0], 16; {DONE}
"""
    found = fault(body)
    assert (found.kind, "read with no barrier in between" in found.message) == ("race", True)


def test_two_copies_of_different_bytes_to_one_place_are_a_race() -> None:
    found = fault(
        f"and.b32 %r4, %r3, -2; mad.lo.u32 %r1, %r4, 16, %r2; cp.async.cg.shared.global [%r1], [%x0], 16; {DONE}"
    )
    assert (found.kind, "another value" in found.message) == ("race", True)


def test_source_and_target_are_checked() -> None:
    past = fault("cp.async.cg.shared.global [%r1], [%x0+16], 16;", grid=1)
    assert (past.kind, "thread (63, 0, 0)" in past.message) == ("out-of-bounds", True)
    assert fault("cp.async.cg.shared.global [%r1+1280], [%x0], 16;").kind == "out-of-bounds"
    assert fault("cp.async.cg.shared.global [%r1], [%x0+8], 16;").kind == "misaligned-access"
    assert fault("cp.async.cg.shared.global [%r1+4], [%x0], 16;").kind == "misaligned-access"
    too_long = fault("mov.b32 %r5, 12; cp.async.ca.shared.global [%r1], [%x0], 8, %r5;")
    assert "copies 12 bytes with a cp.async of 8" in too_long.message


def test_a_source_that_nothing_wrote_is_found() -> None:
    fresh, out = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    device = Device()
    device.memory.add(Allocation(fresh.ctypes.data, 64, "fresh", initialised=False))
    device.memory.add(Allocation(out.ctypes.data, 64, "out"))
    loaded = device.load(kernel_text(PLACES + "cp.async.cg.shared.global [%r1], [%x0], 16;", 2, before=SHARED))
    arguments = b"".join(each.ctypes.data.to_bytes(8, "little") for each in (fresh, out))
    with pytest.raises(FaultError, match="of fresh at") as caught:
        device.launch(loaded, "k", Launch((1, 1, 1), (4, 1, 1), 0, arguments))
    assert caught.value.kind == "uninitialised-read"

"""PTX and launches that nobody in their senses writes end in one finding, not in a traceback, nor in all the memory."""

from __future__ import annotations

import re
import resource
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import kernels
from corpus.entry import Entry
from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.faults import EmulationError, FaultError, OutOfTimeError, UnsupportedError
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation

HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
ODDITIES = ("", "{", "}", "-1,", "0x,", "%r79,", ".b128", "4294967295,", "bar.sync 0;", "@!%p0", "ret;", "<-5>", '"')
CHOSEN = [entry for number, entry in enumerate(kernels.kernels().values()) if number % 61 == 0]
STEPS = 400  # of basic blocks, after which a kernel is stopped


def run(entry: Entry, text: str) -> None:
    left = iter(range(STEPS))

    def between(kernel: str, done: float) -> None:
        if next(left, None) is None:
            raise OutOfTimeError(kernel, done)

    device = Device(between=between)
    held = [array.copy() for array in (*entry.inputs, *entry.outputs)]
    for array in held:
        device.memory.add(Allocation(array.ctypes.data, array.nbytes, "a buffer"))
    arguments = b"".join(array.ctypes.data.to_bytes(8, "little") for array in held)
    config = Launch((entry.grid, 1, 1), (entry.block, 1, 1), entry.shared, arguments, cluster=(entry.cluster, 1, 1))
    device.launch(device.load(text), "k", config)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CHOSEN), st.floats(0, 1), st.sampled_from(("cut", "moved", *ODDITIES)), st.floats(0, 1))
def test_spoilt_ptx_runs_or_ends_in_a_finding(entry: Entry, where: float, what: str, other: float) -> None:
    words = re.split(r"(\s+)", entry.ptx)
    place = int(where * (len(words) - 1)) // 2 * 2
    words[place] = words[int(other * (len(words) - 1)) // 2 * 2] if what == "moved" else what
    text = entry.ptx[: int(where * len(entry.ptx))] if what == "cut" else "".join(words)
    with suppress(EmulationError):
        run(entry, text)


def launched(body: str, config: Launch | None = None, before: str = "", limit: int = STEPS) -> None:
    left = iter(range(limit))

    def between(kernel: str, done: float) -> None:
        if next(left, None) is None:
            raise OutOfTimeError(kernel, done)

    device = Device(between=between)
    text = f"{HEAD}{before}.visible .entry k() {{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n{body}\n}}\n"
    device.launch(device.load(text), "k", config or Launch((1, 1, 1), (32, 1, 1), 0, b""))


BOMBS = {
    "a global variable": ("ret;", f".global .b8 x[{1 << 45}];\n"),
    "shared memory": ("ret;", f".shared .b8 x[{1 << 45}];\n"),
    "local memory": (f".local .b8 x[{1 << 45}]; ret;", ""),
    "registers": (".reg .b32 %many<99999999999>; ret;", ""),
    "braces": ("mov.b32 " + "{" * 4000 + "}" * 4000 + ", %r1; ret;", ""),
    "scopes": ("{" * 4000 + "}" * 4000 + " ret;", ""),
    "no alignment": ("ret;", ".shared .align 0 .b8 x[4];\n"),
}


@pytest.mark.parametrize(("body", "before"), BOMBS.values(), ids=BOMBS)
def test_bombs_take_no_memory(body: str, before: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(EmulationError):
        launched(body, before=before)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1 << 19  # KiB


@pytest.mark.parametrize("extents", [(0, 1, 1), (-1, 1, 1), (1 << 31, 1, 1), (1, 65536, 1), (1, 1, 65536)])
def test_grids_that_no_device_has(extents: tuple[int, int, int]) -> None:
    with pytest.raises(FaultError, match=r"grid of"):
        launched("ret;", Launch(extents, (32, 1, 1), 0, b""))
    with pytest.raises(FaultError, match=r"grid of|threads per block"):
        launched("ret;", Launch((1, 1, 1), extents, 0, b""))


def test_the_largest_grid_is_stopped_in_time_and_takes_no_memory() -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(OutOfTimeError):
        launched("ret;", Launch(((1 << 31) - 1, 65535, 65535), (1024, 1, 1), 0, b""))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 1 << 19


@pytest.mark.parametrize("body", ["L: bra L;", "L: bar.sync 0; bra L;", "L: setp.eq.u32 %p1, 0, 0; @%p1 bra L; ret;"])
def test_endless_loops_are_stopped(body: str) -> None:
    with pytest.raises(OutOfTimeError):
        launched(body)


def test_who_comes_to_the_end_without_a_ret_is_done() -> None:
    launched("mov.u32 %r1, 1;")
    launched("setp.eq.u32 %p1, 0, 1; @%p1 ret;")


@pytest.mark.parametrize("body", ["call k, ();", "call.uni (%r1), k, (%r2);", "brx.idx %r1, T;"])
def test_calls_of_itself_are_not_emulated(body: str) -> None:
    with pytest.raises(UnsupportedError):
        launched(body)


def test_local_memory_is_allocated_for_few_threads_at_once() -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    body = ".local .b8 x[16384]; mov.u64 %d1, x; st.local.u32 [%d1], 7; ld.local.u32 %r1, [%d1]; ret;"
    launched(body, Launch((512, 1, 1), (32, 1, 1), 0, b""), limit=1 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 700 << 10

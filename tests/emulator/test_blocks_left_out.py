"""Large launches run in part: what ran is right and known, what depends on the rest runs in full, time has an end."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.faults import DependentError, OutOfTimeError
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation
from cutesmith_evaluator.emulator.reader import read_module
from cutesmith_evaluator.emulator.sampling import Budget, has_independent_blocks, spread
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.emulated_time import Pace
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.validate import validate
from emulated_kernels import RIGHT, Planted
from ptx_kernels import kernel_text

TINY = Budget(whole=2e4, part=8e3)
BLOCK = 512
DOUBLE = "mad.wide.u32 %x0, %t, 4, %a0; mad.wide.u32 %x1, %t, 4, %a1; ld.global.b32 %r0, [%x0];\n" + (
    "add.u32 %r0, %r0, %r0; st.global.b32 [%x1], %r0;"
)


class Rig:
    """Two arrays of `grid` blocks' elements on a device, the second one fresh."""

    def __init__(self, grid: int, budget: Budget) -> None:
        self.device = Device()
        self.device.budget = budget
        self.given = np.arange(grid * BLOCK, dtype=np.uint32)
        self.made = np.zeros_like(self.given)
        self.fresh = Allocation(self.made.ctypes.data, self.made.nbytes, "made", initialised=False)
        self.device.memory.add(Allocation(self.given.ctypes.data, self.given.nbytes, "given"))
        self.device.memory.add(self.fresh)
        self._grid = grid

    def launch(self, body: str, *arrays: np.ndarray) -> None:
        loaded = self.device.load(kernel_text(body, len(arrays)))
        arguments = b"".join(array.ctypes.data.to_bytes(8, "little") for array in arrays)
        self.device.launch(loaded, "k", Launch((self._grid, 1, 1), (BLOCK, 1, 1), 0, arguments))

    @property
    def written(self) -> np.ndarray:
        flags = self.fresh.holds_value()
        assert flags is not None
        return flags.reshape(-1, 4).all(axis=1)


@settings(max_examples=20)
@given(grid=st.integers(1, 300), whole=st.integers(1, 10**6), part=st.integers(1, 10**6))
def test_what_ran_is_right_and_known_and_holds_the_first_and_the_last_block(grid: int, whole: int, part: int) -> None:
    rig = Rig(grid, Budget(whole, part))
    rig.launch(DOUBLE, rig.given, rig.made)
    written = rig.written
    assert written[0]
    assert written[-1]
    assert (rig.made[written] == 2 * rig.given[written]).all()
    ran, blocks = rig.device.parts.get("k", (grid, grid))
    assert (blocks, int(written.sum())) == (grid, ran * BLOCK)
    assert rig.fresh.is_partial == (ran < grid)


@given(total=st.integers(1, 10**7), count=st.integers(2, 500))
def test_a_spread_is_even(total: int, count: int) -> None:
    blocks = spread(total, count)
    assert (blocks[0], blocks[-1]) == (0, total - 1)
    assert blocks.size == min(total, count)
    assert np.diff(blocks).max(initial=0) <= -(-total // (blocks.size - 1 or 1))


@pytest.mark.parametrize(
    "body",
    [
        "atom.global.add.u32 %r0, [%a0], 1;",
        "red.global.add.u32 [%a0], 1;",
        "atom.add.u32 %r0, [%a0], 1;",
        "membar.gl;",
        "fence.acq_rel.gpu;",
        "ld.acquire.gpu.global.b32 %r0, [%a0];",
    ],
)
def test_kernels_that_reach_other_blocks_never_run_in_part(body: str) -> None:
    kernel = read_module(kernel_text(body, 1)).kernels["k"]
    assert not has_independent_blocks(kernel)


def test_shared_atomics_and_fences_of_a_block_reach_no_other() -> None:
    body = "mov.u32 %r1, 1024; atom.shared.add.u32 %r0, [%r1], 1; fence.acq_rel.cta; membar.cta; bar.sync 0;"
    assert has_independent_blocks(read_module(kernel_text(body, 1)).kernels["k"])


def test_a_kernel_that_loads_what_it_stores_has_to_run_in_full() -> None:
    rig = Rig(64, TINY)
    again = DOUBLE + "ld.global.b32 %r0, [%x1]; st.global.b32 [%x1], %r0;"
    with pytest.raises(DependentError):
        rig.launch(again, rig.given, rig.made)


def test_a_kernel_that_works_in_place_has_to_run_in_full() -> None:
    rig = Rig(64, TINY)
    before = rig.given.copy()
    with pytest.raises(DependentError):
        rig.launch(DOUBLE, rig.given, rig.given)
    assert (rig.given == before).all(), "it was stopped before it stored"


def test_a_later_launch_that_wants_the_rest_names_the_first() -> None:
    rig = Rig(64, TINY)
    rig.launch(DOUBLE, rig.given, rig.made)
    assert rig.fresh.is_partial
    rig.device.budget = None
    result = np.zeros_like(rig.made)
    rig.device.memory.add(Allocation(result.ctypes.data, result.nbytes, "result", initialised=False))
    with pytest.raises(DependentError) as caught:
        rig.launch(DOUBLE, rig.made, result)
    assert caught.value.kernel == "k"


def candidate_of(planted: Planted, folder: Path, *, forward: str = "return y") -> EmulatedCandidate:
    path = folder / "planted_cute.py"
    path.write_text(planted.source.replace("return y", forward))
    made = EmulatedCandidate(load_candidate(path), "sm_90a")
    made.device.budget = Budget(whole=1e5, part=5e4)
    return made


LONG = torch.randn(128 * 200)


@pytest.mark.parametrize("planted", RIGHT[:3], ids=lambda planted: planted.name)
def test_a_candidates_output_says_what_was_computed(planted: Planted, tmp_path: Path) -> None:
    candidate = candidate_of(planted, tmp_path)
    got = candidate.forward(torch.nn.Identity(), LONG)
    assert isinstance(got, torch.Tensor)
    known = candidate.judged(got)
    assert known is not None
    assert known.view(200, 128).all(dim=1).equal(known.view(200, 128).any(dim=1)), "whole blocks"
    assert known[0]
    assert known[-1]
    assert not known.all()
    assert got[known].equal(2 * LONG[known])
    assert not got[~known].any()


def test_the_counts_of_a_call_are_those_of_all_blocks(tmp_path: Path) -> None:
    candidate = candidate_of(RIGHT[0], tmp_path)
    candidate.forward(torch.nn.Identity(), LONG)
    candidate.forward(torch.nn.Identity(), LONG)
    assert candidate.profile is not None
    (kernel,) = candidate.profile.kernels
    assert candidate.profile.bytes == 2 * 4 * LONG.numel()
    assert (kernel.blocks, kernel.global_bytes) == (200, candidate.profile.bytes)
    assert kernel.sectors * 32 == candidate.profile.bytes
    assert (kernel.shared_passes, kernel.bank_conflicts) == (0, 0)
    assert kernel.instructions % LONG.numel() == 0
    lines = candidate.path.read_text().splitlines()
    for what, words in (("global load", "="), ("global store", "] =")):
        (access,) = [each for each in kernel.accesses if each.what == what]
        assert access.line is not None
        assert words in lines[access.line - 1]
        assert access.bytes == 4 * LONG.numel()


def test_work_on_the_whole_output_makes_all_blocks_run(tmp_path: Path) -> None:
    candidate = candidate_of(RIGHT[0], tmp_path, forward="return y.flip(0)")
    got = candidate.forward(torch.nn.Identity(), LONG)
    assert isinstance(got, torch.Tensor)
    assert candidate.judged(got) is None
    assert got.equal(2 * LONG.flip(0))


def test_a_view_of_the_output_does_not(tmp_path: Path) -> None:
    candidate = candidate_of(RIGHT[0], tmp_path, forward="return y.view(200, 128)[:, 64:]")
    got = candidate.forward(torch.nn.Identity(), LONG)
    assert isinstance(got, torch.Tensor)
    known = candidate.judged(got)
    assert known is not None
    assert known.shape == got.shape
    assert got[known].equal(2 * LONG.view(200, 128)[:, 64:][known])


def test_a_fault_in_the_last_block_is_found(tmp_path: Path) -> None:
    candidate = candidate_of(Planted("tail", "gY[i] = gX[i] + gX[i]  # HERE"), tmp_path)
    with pytest.raises(TaskError) as caught:
        candidate.forward(torch.nn.Identity(), torch.randn(128 * 200 - 1))
    assert caught.value.finding.kind == "out-of-bounds"


def test_time_that_is_up_stops_a_kernel_and_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    guard = "x.is_cuda and x.dtype is torch.float32 and not x.requires_grad"
    (tmp_path / "double_cute.py").write_text(RIGHT[0].source.replace("x.is_cuda", guard))
    task = {"file": str(tmp_path / "task.py"), "qualname": "Double"}
    params = {"task": task, "candidate": str(tmp_path / "double_cute.py"), "device": "emulated", "time_s": 0.0}
    told: list[str] = []
    verdict = validate(params, told.append)
    assert verdict.ok is None
    (finding,) = verdict.findings
    assert (finding.kind, finding.severity) == ("out-of-time", "information")
    assert "the time was up when 0% of a launch had run" in finding.message
    later = validate(params | {"time_s": 60.0}, told.append)
    assert later.ok is True, later.findings
    assert later.checks[0].startswith("emulated device, sm_90a")


TASK = """
import torch
from torch import nn


class Double(nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.randn(1024)]
"""


def test_progress_tells_how_far_a_launch_has_come() -> None:
    told: list[str] = []
    pace = Pace(told.append, 10.0, 20.0)
    pace.check("normal inputs")
    pace._started, pace._spent = pace._started - 9, pace._spent - 5
    pace.between("k", 0.25)
    pace.between("k", 0.26)
    assert told[1:] == ["normal inputs: 25% of a launch emulated, 5 s of up to 20 s of a processor's time"]


@pytest.mark.parametrize(("used", "passed", "late"), [(21, 22, True), (19, 90, False), (2, 101, True)])
def test_a_kernel_is_stopped_by_its_processor_or_far_later_by_the_clock(used: int, passed: int, late: bool) -> None:
    pace = Pace(lambda text: None, 10.0, 20.0)
    pace._started, pace._spent = pace._started - passed, pace._spent - used
    with pytest.raises(OutOfTimeError) if late else nullcontext():
        pace.between("k", 0.5)

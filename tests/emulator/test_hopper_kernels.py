"""CuTe DSL kernels for Hopper on the emulated device: right as they are, and each planted fault found on its line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from corpus import emulated, kernels
from cutesmith_evaluator.emulator.faults import FaultError
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.failures import TaskError

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Case:
    """`inputs` are drawn anew for each run; `want`: the result of them."""

    kernel: str
    inputs: Callable[[], tuple[Tensor, ...]]
    want: Callable[..., Tensor]


DOUBLE = Case("tma_double_cute", lambda: (torch.randn(70, 136).half(),), lambda x: x + x)
CENTER = Case("cluster_center_cute", lambda: (torch.randn(3, 384),), lambda x: x - x.mean(1, keepdim=True))

# Four blocks with tails, and more steps along k than there are stages.
GEMM = Case(
    "wgmma_gemm_cute",
    lambda: (torch.randn(136, 264).half(), torch.randn(136, 264).half()),
    lambda a, b: a.float() @ b.float().T,
)
SHORT = replace(GEMM, inputs=lambda: (torch.randn(128, 64).half(), torch.randn(128, 64).half()))


@dataclass(frozen=True)
class Fault:
    """`old`, of the kernel's text, becomes `new`; the fault has to be found on the first line with `at`."""

    name: str
    case: Case
    old: str
    new: str
    kind: str
    at: str
    says: str = ""


WAIT = "wait(full, 0)"
FENCE = 'cute.arch.fence_proxy("async.shared", space="cta")'
SYNC = "\n        cute.arch.sync_threads()"
FULL = "cute.arch.mbarrier_wait(full + stage, (k // STAGES) % 2)"
EMPTY = "cute.arch.mbarrier_wait(empty + stage, (k // STAGES) % 2 ^ 1)"
DONE = "warpgroup.wait_group(0)"
FAULTS = (
    Fault("no wait", DOUBLE, "cute.arch.mbarrier_wait(full, 0)", "", "race", "sX[row, tidx] =", "a bulk copy wrote"),
    Fault("wrong parity", DOUBLE, WAIT, "wait(full, 1)", "deadlock", "wait(full, 1)", "a phase of parity 1"),
    Fault("too many bytes expected", DOUBLE, "* 2)", "* 4)", "deadlock", WAIT, "4096 more bytes are expected"),
    Fault("too few bytes expected", DOUBLE, "* 2)", "* 1)", "deadlock", WAIT, "2048 bytes more came"),
    Fault("nobody arrives", DOUBLE, "arrive_and_expect_tx", "expect_tx", "deadlock", WAIT, "0 of 1 arrivals"),
    Fault("one arrival too few", DOUBLE, "init(full, 1)", "init(full, 2)", "deadlock", WAIT, "1 of 2 arrivals"),
    Fault(
        "no proxy fence",
        DOUBLE,
        FENCE,
        "",
        "missing-proxy-fence",
        "cute.copy(store",
        "by ordinary",
    ),
    Fault("no barrier before a store", DOUBLE, FENCE + SYNC, FENCE, "race", "cute.copy(store", "warp 1"),
    Fault("barrier used too early", DOUBLE, f"init_fence(){SYNC}", "init_fence()", "race", WAIT, "initialises"),
    Fault(
        "no wait for the peers", CENTER, "cute.arch.mbarrier_wait(full, 0)", "", "race", "total = sums[0]", "bulk copy"
    ),
    Fault("one sum too few", CENTER, "4 * BLOCKS)", "4 * BLOCKS + 4)", "deadlock", WAIT, "4 more bytes"),
    Fault("a peer beyond the cluster", CENTER, "lane)\n", "lane + 1)\n", "out-of-bounds", "store_async", "of 4 blocks"),
    Fault(
        "no cluster barrier", CENTER, "cute.arch.cluster_wait()\n        if", "if", "race", "store_async", "initialises"
    ),
    Fault("a stage filled anew while read", GEMM, DONE, "", "race", "cute.copy(loadA", "a wgmma of the group"),
    Fault("sums looked at too early", SHORT, DONE, "", "in-flight-register", "tCg[i] = sums", "wgmma.wait_group"),
    Fault("no wait for a full stage", GEMM, FULL, "pass", "race", "cute.gemm(", "a bulk copy wrote"),
    Fault("no wait for an empty stage", GEMM, EMPTY, "pass", "race", "cute.copy(loadA", "a bulk copy wrote"),
    Fault(
        "empty at first is forgotten",
        GEMM,
        " ^ 1)",
        ")",
        "deadlock",
        "mbarrier_wait(empty",
        "wait for an mbarrier",
    ),
    Fault("bytes of one operand", GEMM, "(M + N) * K * 2", "M * K * 2", "race", "cute.gemm(", "a bulk copy wrote"),
    Fault("no wgmma fence", GEMM, "warpgroup.fence()", "pass", "missing-wgmma-fence", "cute.gemm(", "before any"),
    Fault(
        "sums scaled after the wgmma fence",
        GEMM,
        "warpgroup.fence()\n",
        "warpgroup.fence()\n                sums[0] = sums[0] * 1.0001\n",
        "missing-wgmma-fence",
        "cute.gemm(",
        "since the last wgmma.fence",
    ),
    Fault("no fence", CENTER, "cute.arch.mbarrier_init_fence()", "", "race", "store_async", "initial"),
)


@pytest.fixture(scope="module", autouse=True)
def loaded_dsl() -> None:
    dsl.load()


def run(case: Case, path: Path) -> tuple[Tensor, Tensor]:
    """What the kernel in the file makes of new inputs, and what it should."""
    torch.manual_seed(0)
    inputs = case.inputs()
    got = EmulatedCandidate(load_candidate(path), "sm_90a").forward(torch.nn.Identity(), *inputs)
    assert isinstance(got, Tensor)
    return got, case.want(*inputs)


@pytest.mark.parametrize("case", [DOUBLE, CENTER, GEMM], ids=lambda case: case.kernel)
def test_a_right_kernel_has_no_finding(case: Case) -> None:
    got, want = run(case, KERNELS / f"{case.kernel}.py")
    torch.testing.assert_close(got, want, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_named_with_its_line(fault: Fault, tmp_path: Path) -> None:
    text = (KERNELS / f"{fault.case.kernel}.py").read_text()
    assert fault.old in text
    path = tmp_path / f"{fault.case.kernel}.py"
    path.write_text(text.replace(fault.old, fault.new, 1))
    with pytest.raises(TaskError) as caught:
        run(fault.case, path)
    finding = caught.value.finding
    assert finding.kind == fault.kind, finding
    lines = path.read_text().split("\n")
    assert finding.line == next(number for number, line in enumerate(lines, 1) if fault.at in line), finding
    assert fault.says in finding.message


def test_moves_of_sums_after_a_fence_are_the_compilers_and_no_use() -> None:
    """Zeros that a program writes before the fence stand after it in PTX, as a GPU's code has no such moves."""
    fence = "wgmma.fence.sync.aligned;"
    plain = kernels.family("wgmma")[0]
    moved, used = (
        replace(plain, ptx=plain.ptx.replace(fence, f"{fence} {text}", 1))
        for text in ("mov.b32 %f1, %f1; mov.b32 %d_0, %d_0;", "add.u32 %d_0, %d_0, 0;")
    )
    for got, want in zip(emulated.run(moved), emulated.run(plain), strict=True):
        assert (got == want).all()
    with pytest.raises(FaultError, match="on a register that its warp has used"):
        emulated.run(used)

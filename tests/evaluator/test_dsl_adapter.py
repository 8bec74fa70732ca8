"""The contract of worker/dsl.py: what it relies on in the CuTe DSL holds in the installed version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cutesmith_agent.archs import ARCHS
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.cubin import kernels_of


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    dsl.load()
    assert dsl.is_loaded()


@pytest.fixture
def candidate(fixtures: Path) -> Path:
    return fixtures / "new_gelu_cute.py"


def compiled(candidate: Path, arch: str, folder: Path | None = None) -> dsl.Compiled:
    with dsl.compiling_for(arch, folder) as compiles:
        load_candidate(candidate).warm_up(None, None)  # type: ignore[arg-type]
    assert compiles.error is None
    (only,) = compiles.done
    return only


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_the_arch_is_that_of_ptx_and_cubin(candidate: Path, arch: str):
    made = compiled(candidate, arch)
    assert re.search(rf"\.target {arch}\b", made.ptx)
    (kernel,) = kernels_of(made.cubin)
    assert kernel.symbol.startswith("kernel_cutlass_new_gelu_kernel_")
    assert kernel.registers > 0
    assert made.seconds > 0


def test_the_archs_that_a_person_may_name_are_the_dsls():
    from cutlass.base_dsl.enums import Arch

    assert sorted(arch.name for arch in Arch) == sorted(ARCHS)


def test_our_options_win_over_the_candidates(candidate: Path, tmp_path: Path):
    told = tmp_path / "told_cute.py"
    told.write_text(
        candidate.read_text().replace("--enable-tvm-ffi", "--enable-tvm-ffi --gpu-arch sm_80 --opt-level 2")
    )
    assert ".target sm_90a" in compiled(told, "sm_90a").ptx


BRACKETED = {
    "option in brackets": "cute.compile[cute.OptLevel(1), cute.GPUArch('sm_80')](_program(), x, y, stream)",
    "no options": "cute.compile(_program(), x, y, stream)",
    "empty options": "cute.compile(_program(), x, y, stream, options='')",
}


@pytest.mark.parametrize("call", BRACKETED.values(), ids=BRACKETED)
def test_other_ways_of_calling(candidate: Path, tmp_path: Path, call: str):
    other = tmp_path / "other_cute.py"
    original = 'cute.compile(_program(), x, y, stream, options="--enable-tvm-ffi")'
    assert original in candidate.read_text()
    other.write_text(candidate.read_text().replace(original, call).replace("(use_tvm_ffi_env_stream=True)", "()"))
    assert ".target sm_90a" in compiled(other, "sm_90a").ptx


def test_compile_imported_by_name(candidate: Path, tmp_path: Path):
    other = tmp_path / "other_cute.py"
    text = candidate.read_text().replace(
        "return cute.compile(", "from cutlass.cute import compile\n    return compile("
    )
    other.write_text(text)
    assert ".target sm_90a" in compiled(other, "sm_90a").ptx


def test_dumps_go_to_the_scratch_folder_and_do_not_stay(candidate: Path, tmp_path: Path):
    before = set(Path.cwd().iterdir())
    compiled(candidate, "sm_90a", tmp_path)
    assert set(Path.cwd().iterdir()) == before
    assert list(tmp_path.iterdir()) == []


def test_compile_is_untouched_outside(candidate: Path):
    from cutlass.base_dsl.compiler import CompileCallable

    original = CompileCallable.__call__
    compiled(candidate, "sm_90a")
    assert CompileCallable.__call__ is original


@pytest.fixture
def failing(candidate: Path, tmp_path: Path) -> Path:
    other = tmp_path / "failing_cute.py"
    other.write_text(candidate.read_text().replace("cute.math.tanh", "cute.math.tanhh"))
    return other


def test_the_error_of_a_compile_is_kept_and_compile_restored(failing: Path):
    from cutlass.base_dsl.compiler import CompileCallable

    original = CompileCallable.__call__
    with dsl.compiling_for("sm_90a", None) as compiles, pytest.raises(AttributeError):
        load_candidate(failing).warm_up(None, None)  # type: ignore[arg-type]
    assert isinstance(compiles.error, AttributeError)
    assert CompileCallable.__call__ is original
    assert dsl.finding_of_compile(compiles.error, failing).line is not None


UNALIGNED = """four = cute.make_rmem_tensor(4, cutlass.Float32)
            atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
            cute.copy(atom, cute.zipped_divide(gX, (4,))[None, i], four)
            x = four[0]
"""


def test_invalid_ir_comes_with_its_cause_and_line(candidate: Path, tmp_path: Path):
    other = tmp_path / "unaligned_cute.py"
    other.write_text(candidate.read_text().replace("x = gX[i]\n", UNALIGNED))
    with dsl.compiling_for("sm_90a", None) as compiles, pytest.raises(Exception, match="IR"):
        load_candidate(other).warm_up(None, None)  # type: ignore[arg-type]
    assert compiles.error is not None
    finding = dsl.finding_of_compile(compiles.error, other)
    assert "alignment (32 bits) does not meet requirement (128 bits)" in finding.message
    assert "report this" not in finding.message
    assert finding.line is not None
    assert "cute.copy(atom" in other.read_text().split("\n")[finding.line - 1]


def test_an_arch_that_is_none(candidate: Path):
    with dsl.compiling_for("sm_1", None) as compiles, pytest.raises(Exception, match="sm_1"):
        load_candidate(candidate).warm_up(None, None)  # type: ignore[arg-type]
    assert compiles.error is not None


def test_rubbish_is_no_cubin():
    with pytest.raises(ValueError, match="not a 64-bit ELF file"):
        kernels_of(b"rubbish")

"""compile through a real worker and the real DSL: no GPU is needed, and errors come at their lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Compilation, Task
from judged_candidates import honest

ARCHS = ("sm_90a", "sm_80", "sm_100a")


@pytest.fixture
def task(fixtures: Path) -> Task:
    return Task(str(fixtures / "new_gelu.py"), "NewGELU")


@pytest.fixture
def compile_changed(worker: Worker, task: Task, fixtures: Path, tmp_path: Path) -> Callable[..., Compilation]:
    """Compiles the fixture candidate after replacing some of its text."""

    def compile_(old: str, new: str, archs: tuple[str, ...] = ("sm_90a",), threads: int = 256) -> Compilation:
        source = (fixtures / "new_gelu_cute.py").read_text()
        assert old in source
        candidate = tmp_path / "changed_cute.py"
        candidate.write_text(source.replace(old, new).replace("THREADS = 256", f"THREADS = {threads}"))
        return worker.compile(task, candidate, archs)

    return compile_


def test_every_arch_gives_resources(worker: Worker, task: Task, fixtures: Path):
    compilation = worker.compile(task, fixtures / "new_gelu_cute.py", ARCHS)
    assert compilation.ok
    assert compilation.findings == ()
    assert [(each.kernel, each.arch) for each in compilation.resources] == [("new_gelu_kernel", arch) for arch in ARCHS]
    for each in compilation.resources:
        assert 8 <= each.registers <= 64
        assert each.spill_bytes == 0
        assert each.shared_bytes == 0


def test_one_compile_takes_less_than_a_second_once_the_dsl_is_there(worker: Worker, task: Task, fixtures: Path):
    worker.compile(task, fixtures / "new_gelu_cute.py", ["sm_80"])
    said: list[str] = []
    compilation = worker.compile(task, fixtures / "new_gelu_cute.py", ["sm_90a"], on_progress=said.append)
    assert 0 < compilation.seconds < 1
    assert said == ["compiling for sm_90a"]  # the DSL is imported once per worker


SHARED = """            pX = {}
            sX = cute.make_tensor(pX, cute.make_layout(THREADS))
            sX[tidx] = gX[i]
            cute.arch.sync_threads()
            x = sX[THREADS - 1 - tidx]
"""
ALLOCATIONS = {
    "static": "cute.arch.alloc_smem(cutlass.Float32, THREADS)",
    "dynamic": "cutlass.utils.SmemAllocator().allocate_array(cutlass.Float32, THREADS)",
}


@pytest.mark.parametrize("allocation", ALLOCATIONS.values(), ids=ALLOCATIONS)
def test_shared_memory_counts(compile_changed: Callable[..., Compilation], allocation: str):
    compilation = compile_changed("            x = gX[i]\n", SHARED.format(allocation), ARCHS)
    assert compilation.findings == ()
    assert [each.shared_bytes for each in compilation.resources] == [256 * 4] * 3


def test_more_shared_memory_than_a_block_may_have(compile_changed: Callable[..., Compilation]):
    allocation = "cutlass.utils.SmemAllocator().allocate_array(cutlass.Float32, 45000)"
    compilation = compile_changed("            x = gX[i]\n", SHARED.format(allocation), ("sm_80", "sm_90a"))
    (finding,) = compilation.findings
    assert finding.kind == "launch-limit"
    assert "180000 bytes of shared memory per block (at most 166912 on sm_80)" in finding.message


def test_the_first_arch_decides(compile_changed: Callable[..., Compilation]):
    allocation = "cutlass.utils.SmemAllocator().allocate_array(cutlass.Float32, 45000)"
    compilation = compile_changed("            x = gX[i]\n", SHARED.format(allocation), ("sm_90a", "sm_80"))
    assert compilation.ok
    (finding,) = compilation.findings
    assert (finding.kind, finding.severity) == ("not-for-arch", "warning")
    assert "at most 166912 on sm_80" in finding.message


def test_spills_are_counted(compile_changed: Callable[..., Compilation]):
    """200 values live across a barrier do not fit into the 64 registers that 1024 threads leave each other."""
    live = (
        "            v = [gX[i + k] for k in range(200)]\n            cute.arch.sync_threads()\n"
        "            x = cutlass.Float32(0.0)\n            for k in cutlass.range_constexpr(200):\n"
        "                x += v[k] * v[199 - k]\n"
    )
    compilation = compile_changed("            x = gX[i]\n", live, ("sm_90a",), threads=1024)
    (resources,) = compilation.resources
    assert resources.registers == 64
    assert resources.spill_bytes >= (200 - 64) * 4


ERRORS = {
    "unknown attribute": ("cute.math.tanh", "cute.math.tanhh", "gY[i] = ", "has no attribute 'tanhh'"),
    "type error": ("x = gX[i]", "x = gX[i] + 'a'", "x = gX[i]", "unsupported operand"),
    "name error": ("inner = cutlass", "inner = undefined * cutlass", "inner = ", "'undefined' is not defined"),
    "index of the wrong rank": ("x = gX[i]", "x = gX[i, i, i]", "x = gX", "congruent"),
    "arguments that do not fit": (
        "gX: cute.Tensor, gY: cute.Tensor):\n        t",
        "gX: cute.Tensor):\n        t",
        ".launch(",
        "",
    ),
    "early return": (
        "            x = gX[i]\n",
        "            x = gX[i]\n            return\n",
        "   return\n",
        "arly exit",
    ),
    "unknown option": ("--enable-tvm-ffi", "--bogus", "--bogus", "'--bogus'"),
    "error in warm_up": ("    _compiled()\n\n", "    raise ValueError('no')\n\n", "raise ValueError", "ValueError: no"),
}


@pytest.mark.parametrize(("old", "new", "at", "said"), ERRORS.values(), ids=ERRORS)
def test_an_error_comes_at_its_line(
    compile_changed: Callable[..., Compilation], tmp_path: Path, old: str, new: str, at: str, said: str
):
    compilation = compile_changed(old, new, ("sm_90a", "sm_80"))
    assert not compilation.ok
    (finding,) = compilation.findings  # one, though it was met for each arch
    assert finding.file == str(tmp_path / "changed_cute.py")
    assert finding.line is not None
    assert at.strip() in (tmp_path / "changed_cute.py").read_text().splitlines()[finding.line - 1]
    assert said in finding.message
    assert f"changed_cute.py:{finding.line}" in finding.message
    assert "\n" not in finding.message
    assert "\x1b" not in finding.message
    assert "--gpu-arch" not in finding.message


def test_a_launch_that_no_device_can_make(compile_changed: Callable[..., Compilation]):
    compilation = compile_changed("THREADS = 256", "THREADS = 4096  #")
    assert not compilation.ok
    assert compilation.findings[0].kind == "launch-limit"
    assert "4096 threads per block (at most 1024)" in compilation.findings[0].message


def test_a_candidate_that_is_none(worker: Worker, task: Task, tmp_path: Path):
    texts = {
        "syntax-error": "def supports(:\n",
        "candidate-import-error": "import a_package_that_is_not_there\n",
        "not-a-candidate": "def supports(module, x): return True\n",
        "exits": "raise SystemExit\n",
    }
    for kind, text in texts.items():
        candidate = tmp_path / "bad_cute.py"
        candidate.write_text(text)
        compilation = worker.compile(task, candidate, ["sm_90a"])
        assert not compilation.ok
        assert [finding.kind for finding in compilation.findings] == [kind]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "a'b c"])
def test_any_folder_and_file_name_compiles(worker: Worker, fixtures: Path, tmp_path: Path, name: str):
    (folder := tmp_path / name).mkdir()
    module, candidate = folder / f"{name}.py", folder / f"{name}_cute.py"
    module.write_text((fixtures / "new_gelu.py").read_text())
    candidate.write_text((fixtures / "new_gelu_cute.py").read_text())
    compilation = worker.compile(Task(str(module), "NewGELU"), candidate, ["sm_90a"])
    assert compilation.findings == ()
    assert compilation.ok
    candidate.write_text(candidate.read_text().replace("cute.math.tanh", "cute.math.tanhh"))
    (finding,) = worker.compile(Task(str(module), "NewGELU"), candidate, ["sm_90a"]).findings
    assert finding.kind == "compile-error"
    assert finding.line is not None


def test_a_warm_up_that_compiles_nothing(compile_changed: Callable[..., Compilation]):
    compilation = compile_changed("def warm_up(module, x):\n    _compiled()", "def warm_up(module, x):\n    pass")
    assert [finding.kind for finding in compilation.findings] == ["nothing-compiled"]
    assert not compilation.ok


def test_a_file_without_kernels_has_nothing_to_compile(worker: Worker):
    view = next(each for each in honest() if each.name == "a_view_is_all")
    compilation = worker.compile(view.task, view.path, ["sm_90a"])
    assert (compilation.ok, compilation.findings, compilation.resources) == (True, (), ())


MODEL_NEW = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        {}
"""


def test_kernelbenchs_contract_without_a_device(worker: Worker, task: Task, fixtures: Path, tmp_path: Path):
    """What needs real tensors is said not to have been compiled; an error in a kernel is still an error."""
    candidate = tmp_path / "model_new.py"
    candidate.write_text(MODEL_NEW.format("return torch.frombuffer(x.numpy(), dtype=x.dtype)"))
    compilation = worker.compile(task, candidate, ["sm_90a"])
    assert compilation.ok
    assert [(finding.kind, finding.severity) for finding in compilation.findings] == [("needs-device", "information")]
    source = (fixtures / "new_gelu_cute.py").read_text()
    candidate.write_text(source.replace("def supports", "def other") + MODEL_NEW.format("return forward(self, x)"))
    compilation = worker.compile(task, candidate, ["sm_90a"])
    assert compilation.ok
    assert [each.kernel for each in compilation.resources] == ["new_gelu_kernel"]
    candidate.write_text(candidate.read_text().replace("cute.math.tanh", "cute.math.tanhh"))
    compilation = worker.compile(task, candidate, ["sm_90a"])
    assert not compilation.ok
    assert [finding.kind for finding in compilation.findings] == ["compile-error"]


def test_what_asks_the_driver_is_not_compiled_without_one(compile_changed: Callable[..., Compilation]):
    compilation = compile_changed("stream=stream)\n\n", "stream=stream, min_blocks_per_mp=2)\n\n")
    kinds = [finding.kind for finding in compilation.findings]
    assert compilation.ok
    assert kinds == [] if Path("/dev/nvidiactl").exists() else kinds == ["needs-device"]


def test_a_task_that_cannot_be_built_is_the_finding(worker: Worker, fixtures: Path):
    compilation = worker.compile(Task(str(fixtures / "new_gelu.py"), "Gone"), fixtures / "new_gelu_cute.py", ["sm_90a"])
    assert not compilation.ok
    assert [finding.kind for finding in compilation.findings] == ["class-missing"]

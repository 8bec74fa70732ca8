"""The agent as the server starts it: a real process, a real worker, no device."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.processes import descendants

MODULE = """\
import torch
from torch import nn

from .blocks import HALF


class NewGELU(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        \"\"\"GELU by its tanh approximation.\"\"\"
        return HALF * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def get_inputs():
    return [torch.randn(32, 128)]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def make_project(root: Path) -> Path:
    (root / "pkg").mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "blocks.py").write_text("HALF = 0.5\n")
    (root / "pkg" / "gelu.py").write_text(MODULE)
    return root


def job(project: Path, **fields: object) -> bytes:
    plain = {
        "kind": "optimize",
        "task": {"file": str(project / "pkg" / "gelu.py"), "qualname": "NewGELU"},
        "workspace": str(project),
        "interpreter": sys.executable,
        "device": "none",
    }
    return json.dumps({**plain, **fields}).encode()


def start() -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-P", "-m", "cutesmith_agent"], stdin=pipe, stdout=pipe, stderr=pipe)


def events_of(data: bytes) -> tuple[list[dict[str, Any]], int, str]:
    process = start()
    out, errors = process.communicate(data, timeout=250)
    return [json.loads(line) for line in out.splitlines()], process.returncode, errors.decode()


def report_of(data: bytes) -> tuple[dict[str, Any], int]:
    events, code, errors = events_of(data)
    assert events[-1]["event"] == "done", errors
    assert events[-1]["exit"] == code
    assert {event["event"] for event in events} <= {"stage", "candidate", "done"}
    return events[-1]["report"], code


def tree(project: Path) -> dict[str, bytes]:
    files = (path for path in project.rglob("*") if path.is_file() and ".cutesmith" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


@dataclass(frozen=True)
class Offer:
    """A project in which a job came to its end."""

    project: Path
    report: dict[str, Any]
    code: int
    is_untouched: bool


@pytest.fixture(scope="module")
def offer(tmp_path_factory: pytest.TempPathFactory) -> Offer:
    project = make_project(tmp_path_factory.mktemp("offer"))
    before = tree(project)
    report, code = report_of(job(project))
    return Offer(project, report, code, tree(project) == before)


def test_without_a_device_a_kernel_is_compiled_for_three_archs_and_offered_unproved(offer: Offer):
    report = offer.report
    assert offer.code == 4, report
    (final,) = [one for one in report["candidates"] if one["id"] == report["best"]]
    assert final["ok"] is None
    assert {one["arch"] for one in final["resources"]} == {"sm_90a", "sm_80", "sm_100a"}
    assert report["task"]["category"] == "pointwise"
    assert "aten.tanh.default" in report["task"]["ops"]
    assert report["estimate_ms"] == pytest.approx(32 * 128 * 4 * 2 / 4.2e12 * 1e3)
    assert "not validated" in report["stopped"]
    assert "not validated: no device" in report["kernel"]["source"]
    assert report["kernel"]["path"] == str(offer.project / "pkg" / "new_gelu_cute.py")
    assert offer.is_untouched


def test_the_patch_applies_and_the_patched_module_falls_back_to_the_original_on_the_cpu(offer: Offer):
    subprocess.run(["git", "apply"], input=offer.report["patch"].encode(), cwd=offer.project, check=True)
    Path(offer.report["kernel"]["path"]).write_text(offer.report["kernel"]["source"])
    code = (
        "import torch; from pkg.gelu import NewGELU; from pkg import new_gelu_cute\n"
        "x = torch.randn(4, 128); m = NewGELU()\n"
        "assert not new_gelu_cute.supports(m, x), new_gelu_cute.explain(m, x)\n"
        "y = torch.nn.functional.gelu(x, approximate='tanh')\n"
        "print((m(x) - y).abs().max().item() < 1e-6)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=offer.project, capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"


def test_unsaved_text_is_what_counts_and_its_relative_imports_resolve(project: Path):
    (project / "pkg" / "gelu.py").write_text("this was saved half-typed (")
    report, code = report_of(job(project, source=MODULE.replace("torch.tanh", "torch.sigmoid")))
    assert code == 4, report
    assert "aten.sigmoid.default" in report["task"]["ops"]
    assert report["task"]["file"] == str(project / "pkg" / "gelu.py")


@pytest.mark.parametrize("unsaved", [False, True])
def test_findings_are_placed_in_the_users_own_file(project: Path, unsaved: bool):
    broken = MODULE.replace("return HALF * x", "return HALF * x.nonsense")
    if unsaved:
        report, code = report_of(job(project, source=broken))
    else:
        (project / "pkg" / "gelu.py").write_text(broken)
        report, code = report_of(job(project))
    finding = report["findings"][0]
    assert (code, finding["file"], finding["line"]) == (2, str(project / "pkg" / "gelu.py"), 10)
    assert "nonsense" in report["stopped"]


def test_what_the_users_code_prints_is_no_event(project: Path):
    noise = "import os\nos.system('echo from a child')\nprint('{\"event\": \"done\"}', flush=True)\n"
    (project / "pkg" / "blocks.py").write_text(noise + "HALF = 0.5\n")
    _, code = report_of(job(project, **broken_check(project)))
    assert code == 3


def test_an_unreadable_job_is_answered(project: Path):
    for data in (b"", b"nonsense", b"[]", b'{"kind": "optimize"}', job(project, kind="check"), job(project, kind="x")):
        report, code = report_of(data)
        assert code == 2
        assert report["findings"][0]["kind"] == "bad-job"


def test_an_interpreter_that_is_none_is_answered(project: Path):
    report, code = report_of(job(project, interpreter="/nowhere/python"))
    assert (code, report["findings"][0]["kind"]) == (2, "worker-unavailable")
    assert "/nowhere/python" in report["stopped"]


def broken_check(project: Path) -> dict[str, object]:
    """A job that ends soon after the module was traced: the kernel imports too early."""
    kernel = project / "mine_cute.py"
    names = ("supports", "explain", "forward", "warm_up")
    kernel.write_text("import cutlass\n" + "".join(f"\n\ndef {name}(module, x):\n    return x\n" for name in names))
    return {"kind": "check", "candidates": [str(kernel)]}


def test_a_check_of_a_broken_kernel_is_placed_in_its_file(project: Path):
    report, code = report_of(job(project, **broken_check(project)))
    finding = report["candidates"][0]["findings"][0]
    assert (code, finding["kind"], finding["line"]) == (3, "early-import", 1)
    assert finding["file"] == str(project / "mine_cute.py")


def slow(project: Path) -> None:
    """The module hangs while it is imported."""
    (project / "pkg" / "blocks.py").write_text("import time\ntime.sleep(600)\nHALF = 0.5\n")


def wait_for(process: subprocess.Popen[bytes], words: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if words in json.loads(line).get("message", ""):
            return
    raise AssertionError(f"no event says {words}")


def alive(pids: list[int]) -> list[int]:
    return [
        pid for pid in pids if Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_agent_and_its_worker_at_once(project: Path, number: signal.Signals):
    slow(project)
    process = start()
    assert process.stdin is not None
    process.stdin.write(job(project))
    process.stdin.close()
    wait_for(process, "importing")
    workers = descendants(process.pid)
    assert workers
    started = time.monotonic()
    process.send_signal(number)
    process.wait(10)
    while alive(workers) and time.monotonic() - started < 5:
        time.sleep(0.02)
    assert not alive(workers)
    assert time.monotonic() - started < 3
    assert process.returncode == (-9 if number == signal.SIGKILL else 143)


def test_an_agent_nobody_listens_to_ends(project: Path):
    slow(project)
    process = start()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(job(project))
    process.stdout.close()
    process.stdin.close()
    assert process.wait(30) == 143


def test_a_killed_job_resumes(project: Path):
    slow(project)
    broken = broken_check(project)
    process = start()
    assert process.stdin is not None
    process.stdin.write(job(project, **broken))
    process.stdin.close()
    wait_for(process, "importing")
    process.kill()
    process.wait()
    (project / "pkg" / "blocks.py").write_text("HALF = 0.5\n")
    report_of(job(project, **broken, resume=True))
    with open_store(project).store as store:
        latest = store.latest(str(project / "pkg" / "gelu.py"), "NewGELU", kind="check")
        assert latest is not None
        starts = [step.message for step in store.transitions(latest.id) if step.message.startswith("starting")]
    assert len(starts) == 2


def test_the_agent_loads_neither_torch_nor_a_language_server():
    code = (
        "import sys, cutesmith_agent.__main__, cutesmith_agent.recipes\n"
        "print(sorted({'torch', 'cutlass', 'numpy', 'pygls'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"

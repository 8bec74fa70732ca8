"""The worker as a process: what it sees, how it ends, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Limits, Worker, WorkerDied, WorkerTimeout, WorkerUnavailable
from cutesmith_evaluator.types import Inspection, Task

INPUTS = "\ndef get_inputs(): return [torch.ones(2)]\n"


@pytest.fixture
def fragile() -> Iterator[Worker]:
    """A worker of the test's own."""
    with Worker(Path(sys.executable), limits=Limits(memory_bytes=3 << 30)) as made:
        yield made


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Task]:
    def task(body: str) -> Task:
        file = tmp_path / "model.py"
        file.write_text("import os, sys, time, torch\nfrom torch import nn\n" + textwrap.dedent(body) + INPUTS)
        return Task(str(file), "Model")

    return task


def identity(statement: str = "pass", at_import: str = "") -> str:
    """A module whose forward runs `statement`."""
    return (
        f"{at_import}\nclass Model(nn.Module):\n    def forward(self, x):\n        {statement}\n        return x * 2\n"
    )


def test_a_relative_python_path_means_the_folder_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[str], Task]
):
    """`PYTHONPATH=.`: in the worker's own folder are caches, and one of them is called triton."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "found_by_path.py").write_text("FACTOR = 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f".{os.pathsep}beside")
    with Worker(Path(sys.executable)) as worker:
        inspection = worker.inspect(write(identity("return x * FACTOR", at_import="from found_by_path import FACTOR")))
    assert inspection.graph is not None, inspection.findings


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def pid_of(worker: Worker) -> int:
    assert worker._process is not None
    return worker._process.pid


def test_hello_names_what_the_worker_runs_on(worker: Worker):
    environment = worker.hello()
    assert environment.python == ".".join(map(str, sys.version_info[:3]))
    assert environment.torch
    assert environment.dsl
    assert (environment.device == "none") == (environment.arch is None)


def test_progress_is_reported(worker: Worker, write: Callable[[str], Task]):
    said: list[str] = []
    worker.inspect(write(identity()), on_progress=said.append)
    assert said[0].startswith("importing")
    assert len(said) > 2


def test_a_forward_that_hangs_is_stopped_and_the_next_request_works(fragile: Worker, write: Callable[[str], Task]):
    fragile.hello()
    pid = pid_of(fragile)
    started = time.monotonic()
    with pytest.raises(WorkerTimeout, match="Stopped after 8 s while inspecting Model"):
        fragile.inspect(write(identity("time.sleep(600)")), deadline_s=8)
    assert time.monotonic() - started < 12
    assert not is_alive(pid)
    assert fragile.inspect(write(identity())).graph is not None
    assert pid_of(fragile) != pid


def test_a_forward_that_hangs_in_c_is_stopped(fragile: Worker, write: Callable[[str], Task]):
    """Holding the interpreter's lock, so that no thread of the worker can help."""
    with pytest.raises(WorkerTimeout):
        fragile.inspect(write(identity("ctypes.PyDLL(None).sleep(600)", "import ctypes")), deadline_s=8)


@pytest.mark.parametrize(
    ("statement", "how"),
    [("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), 11)", "SIGSEGV"), ("os.abort()", "SIGABRT")],
)
def test_a_forward_that_ends_the_process(fragile: Worker, write: Callable[[str], Task], statement: str, how: str):
    with pytest.raises(WorkerDied, match=how) as raised:
        fragile.inspect(write(identity(f"sys.stderr.write('last words\\n'); {statement}")))
    assert "while inspecting Model" in str(raised.value)
    assert raised.value.finding.kind == "worker-died"
    assert fragile.hello().torch


def test_the_last_output_is_quoted(fragile: Worker, write: Callable[[str], Task]):
    with pytest.raises(WorkerDied, match="its last output: last words"):
        fragile.inspect(write(identity("print('noise'); sys.stderr.write('last words\\n'); os._exit(7)")))


def test_a_constructor_that_eats_memory_is_stopped(fragile: Worker, write: Callable[[str], Task]):
    body = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.hoard = []
                while True:
                    self.hoard.append(bytearray(b"x") * (64 << 20))
            def forward(self, x): return x
    """
    with pytest.raises(WorkerDied, match=r"used more than 3\.0 GiB of memory"):
        fragile.inspect(write(body))


def test_children_and_grandchildren_end_with_the_worker(
    fragile: Worker, write: Callable[[str], Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also those in a session of their own, which no signal to the worker's group reaches."""
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # they say who they are by files
    grandchild = (
        f"import os, time; open({str(tmp_path / 'grandchild')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    child = (
        f"import os, subprocess, sys; open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid()))\n"
        f"subprocess.Popen([sys.executable, '-c', {grandchild!r}]).wait()"
    )
    start = f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); time.sleep(600)"
    with pytest.raises(WorkerTimeout):
        fragile.inspect(write(identity(start, "import subprocess")), deadline_s=12)
    pids = [int((tmp_path / name).read_text()) for name in ("child", "grandchild")]
    assert wait_until(lambda: not any(map(is_alive, pids)))


def test_noise_on_stdout_does_not_reach_the_protocol(fragile: Worker, write: Callable[[str], Task]):
    at_import = """
import threading
def shout():
    while True:
        os.write(1, b'{"id": 1, "result": "nonsense"}\\n')
        print("noise " * 50)
threading.Thread(target=shout, daemon=True).start()
"""
    inspection = fragile.inspect(write(identity("print('x' * 100000)", at_import)))
    assert inspection.graph is not None
    assert "nonsense" in fragile.log()
    assert len(fragile.log()) <= 64 * 1024
    assert fragile.hello().torch


def test_atexit_and_threads_do_not_hold_up_close(fragile: Worker, write: Callable[[str], Task]):
    at_import = """
import atexit, threading
atexit.register(time.sleep, 600)
threading.Thread(target=time.sleep, args=(600,)).start()
"""
    fragile.inspect(write(identity(at_import=at_import)))
    pid = pid_of(fragile)
    started = time.monotonic()
    fragile.close()
    assert time.monotonic() - started < 3
    assert not is_alive(pid)


def test_a_killed_worker_is_replaced(fragile: Worker):
    fragile.hello()
    pid = pid_of(fragile)
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pid))
    assert fragile.hello().torch


def test_the_worker_ends_with_its_client(tmp_path: Path):
    """Also when the client is killed, and even while the worker is busy."""
    model = tmp_path / "model.py"
    model.write_text("import time, torch\nfrom torch import nn\n" + identity("time.sleep(600)") + INPUTS)
    client = tmp_path / "client.py"
    client.write_text(
        "import sys\nfrom pathlib import Path\nfrom cutesmith_evaluator.client import Worker\n"
        "from cutesmith_evaluator.types import Task\n"
        "worker = Worker(Path(sys.executable))\nworker.hello()\nprint(worker._process.pid, flush=True)\n"
        f"worker.inspect(Task({str(model)!r}, 'Model'))\n"
    )
    process = subprocess.Popen([sys.executable, client], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    time.sleep(1)
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_until(lambda: not is_alive(pid))


def test_it_is_recycled_after_enough_compiles(fixtures: Path):
    task = Task(str(fixtures / "new_gelu.py"), "NewGELU")
    with Worker(Path(sys.executable), limits=Limits(recycle_after=2)) as worker:
        worker.hello()
        first = pid_of(worker)
        assert worker.compile(task, fixtures / "new_gelu_cute.py", ["sm_80", "sm_90a"]).ok
        worker.hello()
        assert pid_of(worker) != first
        assert not is_alive(first)


def test_secrets_stay_outside(write: Callable[[str], Task], monkeypatch: pytest.MonkeyPatch):
    for name in ("ANTHROPIC_API_KEY", "HF_TOKEN", "CUDA_SECRET_KEY", "MY_SETTING"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/tmp/triton")
    with Worker(Path(sys.executable)) as worker:
        finding = worker.inspect(write(identity("raise ValueError(sorted(os.environ))"))).findings[0]
    assert "TRITON_CACHE_DIR" in finding.message
    assert "PATH" in finding.message
    for name in ("KEY", "TOKEN", "SECRET", "MY_SETTING"):
        assert name not in finding.message.replace("TRITON_CACHE_DIR", "")


def test_standard_input_is_closed(worker: Worker, write: Callable[[str], Task]):
    finding = worker.inspect(write(identity("input()"))).findings[0]
    assert "EOFError" in finding.message


def test_closed_streams_are_renewed(worker: Worker, write: Callable[[str], Task]):
    closing = identity("sys.stdout.close(); sys.stderr.close(); exit()")
    assert worker.inspect(write(closing)).findings[0].kind == "exits"
    assert worker.inspect(write(identity("print('again'); sys.stderr.write('and again')"))).findings == ()
    assert "again" in worker.log()


def test_argv_is_empty(worker: Worker, write: Callable[[str], Task]):
    assert "['']" in worker.inspect(write(identity("raise ValueError(sys.argv)"))).findings[0].message


def test_an_interpreter_that_is_not_there(tmp_path: Path):
    with (
        Worker(tmp_path / "python") as worker,
        pytest.raises(WorkerUnavailable, match=r"cannot be started \(No such file or directory\)") as raised,
    ):
        worker.hello()
    assert raised.value.finding.kind == "worker-unavailable"


def test_an_interpreter_that_is_no_python(tmp_path: Path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho this is no Python >&2\nexit 2\n")
    program.chmod(0o755)
    with Worker(program) as worker, pytest.raises(WorkerUnavailable, match="this is no Python"):
        worker.hello()


def test_an_interpreter_that_is_too_old(tmp_path: Path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho Unknown option: -P >&2\nexit 2\n")
    program.chmod(0o755)
    with Worker(program) as worker, pytest.raises(WorkerUnavailable, match=r"older than Python 3\.11"):
        worker.hello()


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the standard library alone."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def test_an_interpreter_without_torch(bare_python: Path, fixtures: Path):
    task = Task(str(fixtures / "new_gelu.py"), "NewGELU")
    with Worker(bare_python) as worker:
        assert worker.hello().torch is None
        results: list[Inspection | object] = [
            worker.inspect(task),
            worker.compile(task, fixtures / "new_gelu_cute.py", ["sm_90a"]),
            worker.validate(task, fixtures / "new_gelu_cute.py"),
            worker.time(task, fixtures / "new_gelu_cute.py"),
        ]
    for result in results:
        (finding,) = result.findings  # type: ignore[attr-defined]
        assert finding.kind == "no-torch"
        assert str(bare_python) in finding.message


def test_an_interpreter_without_the_dsl(
    bare_python: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """torch comes from PYTHONPATH, which is the user's own and is kept; cutlass is hidden by a module of that name."""
    import torch

    (tmp_path / "cutlass.py").write_text("raise ModuleNotFoundError('No module named cutlass')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(torch.__file__).parents[1]}")
    with Worker(bare_python) as worker:
        task = Task(str(fixtures / "new_gelu.py"), "NewGELU")
        assert worker.inspect(task).graph is not None
        compilation = worker.compile(task, fixtures / "new_gelu_cute.py", ["sm_90a"])
    (finding,) = compilation.findings
    assert not compilation.ok
    assert finding.kind == "no-dsl"
    assert "pip install nvidia-cutlass-dsl" in finding.message


def test_only_the_evaluator_is_visible(bare_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not what is installed beside it: the agent, the server, the client's libraries."""
    (tmp_path / "torch.py").write_text(
        "import importlib.util, sys\n"
        "names = ('cattrs', 'pytest', 'cutesmith_agent', 'cutesmith_server')\n"
        "seen = [name for name in names if importlib.util.find_spec(name)]\n"
        "raise ImportError(f'seen: {seen}, {\"cutesmith_evaluator\" in sys.modules}')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Worker(bare_python) as worker:
        finding = worker.inspect(Task(str(tmp_path / "any.py"), "Any")).findings[0]
    assert "seen: [], True" in finding.message

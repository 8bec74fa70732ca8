"""`cutesmith bench --ray`: the tasks of a folder on a cluster of two nodes with a GPU each, and what can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench_folder import level
from command_line import CUTESMITH, cutesmith
from cutesmith_server.bench.on_node import Parcel, run_parcel
from cutesmith_server.bench.running import Orders
from cutesmith_server.bench.tasks import BenchTask
from local_ray import agents_on, local_cluster, until


def started(place: Path, *words: str) -> subprocess.Popen[str]:
    """With the state folder as its own, where jobs wait for one another."""
    command = [*CUTESMITH, "bench", str(place), "--arch", "sm_90a", *words]
    environment = os.environ | {"XDG_STATE_HOME": str(place.parent / words[1])}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=place.parent, env=environment, text=True, **pipe)


def results(folder: Path) -> list[dict[str, Any]]:
    """All but how long each took."""
    tasks = json.loads((folder / "bench.json").read_text())["tasks"]
    return [{name: value for name, value in task.items() if name != "seconds"} for task in tasks]


def is_interrupted(place: Path, address: str, nodes: list, lines: Path) -> bool:
    """Whether Ctrl-C came between the ends of the two tasks, as it is to; a run that was over before leaves nothing."""
    with started(place, "--out", "ray", "--ray", address) as run:
        until(lambda: all(agents_on(node) for node in nodes) or run.poll() is not None)
        until(lambda: lines.read_text() or run.poll() is not None)
        run.send_signal(signal.SIGINT)
        status = run.wait(30)
    if status != 130:
        shutil.rmtree(lines.parent)
    return status == 130


def test_a_cluster_gives_what_one_machine_gives(tmp_path: Path) -> None:
    """Both nodes work; what Ctrl-C leaves is gone on with; what a killed node had runs again on the other."""
    place = level(tmp_path, _1_Tanh="torch.tanh(x) * 2", _2_Sorted="torch.sort(x)[0]")
    lines = tmp_path / "ray" / "results-1-of-1.jsonl"
    with started(place, "--out", "alone") as alone, local_cluster() as cluster:
        refused = cutesmith("bench", place, "--out", "ray", "--ray", cluster.address, cwd=tmp_path)
        assert (refused.status, "has no GPU" in refused.stderr) == (2, True)
        nodes = [cluster.add_node(), cluster.add_node()]
        assert any(is_interrupted(place, cluster.address, nodes, lines) for _ in range(3))
        assert [json.loads(line)["id"] for line in lines.read_text().splitlines()] == [2]
        until(lambda: not any(agents_on(node) for node in nodes))
        with started(place, "--out", "ray", "--ray", cluster.address) as again:
            worker = until(lambda: next((node for node in nodes if agents_on(node)), None))
            cluster.kill(worker)
            assert again.wait(120) == 0, again.stdout and again.stdout.read()
        assert alone.wait(120) == 0
    assert results(tmp_path / "ray") == results(tmp_path / "alone")
    assert [task["outcome"] for task in results(tmp_path / "ray")] == ["right, not timed", "no kernel"]
    kernels = [tmp_path / out / "tasks" / "level1_1_Tanh" / "model_cute.py" for out in ("ray", "alone")]
    assert kernels[0].read_text() == kernels[1].read_text()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "cannot be reached (Connection refused)"),
        ("nowhere.invalid:6379", "cannot be reached"),
        ("head", "give the HOST:PORT"),
        ("head:port", "give the HOST:PORT"),
        ("127.0.0.1:99999", "cannot be reached"),
    ],
)
def test_a_cluster_that_is_not_there_is_refused(address: str, words: str, tmp_path: Path) -> None:
    refused = cutesmith("bench", level(tmp_path, _1_A="x + 1"), "--ray", address, "--json", cwd=tmp_path)
    assert (refused.status, words in refused.json["error"]) == (2, True), refused


def test_without_ray_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "ray.py").write_text("raise ImportError('not installed')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hidden'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    refused = cutesmith("bench", level(tmp_path, _1_A="x + 1"), "--ray", "local", cwd=tmp_path)
    assert (refused.status, "pip install 'cutesmith[ray]'" in refused.stderr) == (2, True), refused


def test_a_node_of_another_version_says_so() -> None:
    task = BenchTask(Path("f.py"), "Model", "f", None, None, "0")
    answer = run_parcel(Parcel(task, b"", "", Orders(None, (), "none"), version="0.0.1"))
    assert isinstance(answer, str)
    assert "this is 0.0.1: install one version on both" in answer

"""One store for a file, whoever asks and through whatever links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import Decision
from loop_rig import Rig
from scripted_evaluator import Script, draft


def test_the_root_is_the_nearest_folder_that_says_so(tmp_path: Path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    nested = tmp_path / "repo" / "sub" / "deep"
    nested.mkdir(parents=True)
    (tmp_path / "repo" / "sub" / "pyproject.toml").write_text("")
    assert workspace_root(nested / "a.py") == tmp_path / "repo" / "sub"
    assert workspace_root(tmp_path / "repo" / "a.py") == tmp_path / "repo"
    (tmp_path / "alone").mkdir()
    assert workspace_root(tmp_path / "alone" / "a.py") == tmp_path / "alone"


def test_a_jobs_store_is_found_by_its_file_whatever_workspace_the_job_names(rig: Rig):
    rig.run(draft(Script(), t=1), job=replace(rig.job, workspace=str(rig.root.parent)))
    assert not (rig.root.parent / ".cutesmith").exists()
    with open_store(workspace_root(rig.file)).store as store:
        job = store.latest(str(rig.file), "NewGELU")
        assert job is not None
        assert job.report["patch"].startswith("--- a/project/pkg/gelu.py")


@pytest.mark.parametrize("writable", [True, False])
def test_a_file_is_the_same_through_a_link(rig: Rig, monkeypatch: pytest.MonkeyPatch, writable: bool):
    monkeypatch.setenv("XDG_STATE_HOME", str(rig.root.parent / "state"))
    if not writable:
        (rig.root / ".cutesmith").write_text("in the way")
    link = rig.root.parent / "link"
    link.symlink_to(rig.root)
    linked = link / rig.file.relative_to(rig.root)
    candidate = rig.run(draft(Script(), t=1))["report"]["best"]
    with open_store(workspace_root(linked)).store as store:
        assert store.latest(str(linked), "NewGELU") is not None
        assert store.made(candidate, str(linked), "NewGELU")
        store.decide(Decision("accepted", str(linked), "NewGELU", candidate=candidate))
    with open_store(workspace_root(rig.file)).store as store:
        (decision,) = store.decisions(str(rig.file))
        assert (decision.file, decision.candidate) == (str(rig.file), candidate)
        assert store.decisions(str(linked)) == store.decisions()

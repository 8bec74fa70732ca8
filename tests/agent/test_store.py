"""The store keeps what it was told, through crashes, neighbours, damage and folders that cannot be written."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.pruning import Bounds
from cutesmith_agent.store.rows import Decision, JobKey
from cutesmith_agent.store.schema import MIGRATIONS, migrate
from cutesmith_agent.store.store import Store
from cutesmith_evaluator.types import Candidate, Environment, ErrorFigures, ErrorPair, Finding, Speedup

ENVIRONMENT = Environment("3.11", "2.13.0", "4.8.1", "0.1", "NVIDIA H200", "sm_90a")
KEY = JobKey("optimize", "/p/a.py", "A", "digest", "hash")
FIGURES = ErrorFigures(1e-7, 1e-7, 1.0, "rms", ErrorPair(1e-7, 2e-7), ErrorPair(1e-7, 2e-7), True)


def candidate(id: str, path: Path, **fields: object) -> Candidate:
    return replace(Candidate(id, "recipe", "validate", True, path=str(path)), **fields)


def keep(store: Store, job: str, id: str, source: str = "x = 1\n", **fields: object) -> Candidate:
    kept = candidate(id, store.save_source(job, id, "a_cute", source), **fields)
    store.save_candidate(job, kept, ENVIRONMENT)
    return kept


def test_a_job_is_kept_with_all_it_did(tmp_path: Path):
    finding = Finding("wrong-values", "Off by one.", 3, "/x.py")
    with open_store(tmp_path).store as store:
        job = store.begin_job(KEY, resume=True)
        kept = keep(
            store, job, "abc", error=FIGURES, findings=(finding,), speedup=Speedup(2.0, None), schedule={"t": 4}
        )
        store.add_transition(job, "compile", "compiling", "abc")
        store.finish_job(job, {"best": "abc"})
    with open_store(tmp_path).store as store:
        assert store.candidates(job) == (kept,)
        assert kept.path is not None
        assert Path(kept.path).read_text() == "x = 1\n"
        assert [(t.stage, t.message, t.candidate) for t in store.transitions(job)] == [("compile", "compiling", "abc")]
        latest = store.latest("/p/a.py", "A")
        assert latest is not None
        assert (latest.id, latest.class_hash, latest.report) == (job, "hash", {"best": "abc"})
        assert store.latest("/p/a.py", "B") is None


def test_the_folder_ignores_itself_in_git(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    open_store(tmp_path).store.close()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert status.stdout == ""


def test_only_verdicts_of_the_same_environment_are_given_back(tmp_path: Path):
    with open_store(tmp_path).store as store:
        job = store.begin_job(KEY, resume=True)
        kept = keep(store, job, "abc")
        assert store.candidates(job, ENVIRONMENT) == (kept,)
        assert store.candidates(job, replace(ENVIRONMENT, torch="2.14.0")) == ()


def test_an_unfinished_job_is_resumed_unless_it_is_alive_finished_or_another(tmp_path: Path):
    with open_store(tmp_path).store as first, open_store(tmp_path).store as second:
        job = first.begin_job(KEY, resume=True)
        assert second.begin_job(KEY, resume=True) != job
        first.finish_job(job, None)
        assert second.begin_job(KEY, resume=False) != job
        assert second.begin_job(replace(KEY, digest="other"), resume=True) != job
        assert second.begin_job(KEY, resume=True) == job
        second.finish_job(job, {})
        assert first.begin_job(KEY, resume=True) != job


def test_decisions_are_the_latest_of_each_class(tmp_path: Path):
    with open_store(tmp_path).store as store:
        store.decide(Decision("accepted", "/p/a.py", "A", kernel="/p/a_cute.py"))
        store.decide(Decision("rejected", "/p/b.py", "B"))
        store.decide(Decision("removed", "/p/a.py", "A"))
        assert [(d.decision, d.file) for d in store.decisions()] == [("rejected", "/p/b.py"), ("removed", "/p/a.py")]
        assert [d.decision for d in store.decisions("/p/a.py")] == ["removed"]
        assert time.time() - store.decisions()[0].at < 60


def test_old_jobs_go_but_not_accepted_or_running_ones(tmp_path: Path):
    with open_store(tmp_path).store as other, open_store(tmp_path).store as store:
        running = other.begin_job(KEY, resume=False)
        jobs = []
        for _ in range(5):
            jobs.append(store.begin_job(KEY, resume=False))
            keep(store, jobs[-1], "abc")
            if len(jobs) == 1:
                store.decide(Decision("accepted", "/p/a.py", "A", job=jobs[0], candidate="abc"))
            store.finish_job(jobs[-1], {}, Bounds(jobs=2))
        left = {folder.name for folder in (tmp_path / ".cutesmith" / "candidates").iterdir()}
        assert left == {running, jobs[0], jobs[3], jobs[4]}
        assert [len(store.candidates(job)) for job in jobs] == [1, 0, 0, 1, 1]


def test_the_size_of_sources_is_bounded(tmp_path: Path):
    with open_store(tmp_path).store as store:
        for _ in range(6):
            job = store.begin_job(KEY, resume=False)
            keep(store, job, "abc", "#" * 1000)
            store.finish_job(job, {}, Bounds(source_bytes=3000))
    assert len(list((tmp_path / ".cutesmith" / "candidates").iterdir())) == 3


def test_a_source_is_known_to_be_ours_also_after_its_job_was_pruned(tmp_path: Path):
    with open_store(tmp_path).store as store:
        job = store.begin_job(KEY, resume=True)
        keep(store, job, "abc")
        store.decide(Decision("accepted", "/p/a.py", "A", candidate="def"))
        assert [store.made(id, "/p/a.py", "A") for id in ("abc", "def", "xyz")] == [True, True, False]
        assert not store.made("abc", "/p/a.py", "B")


class StoreMachine(RuleBasedStateMachine):
    """Two connections to one store, closed and opened at will, against a model in memory."""

    jobs = Bundle("jobs")

    @initialize()
    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.stores = [open_store(self.root).store, open_store(self.root).store]
        self.state: dict[str, str] = {}
        self.owner: dict[str, int] = {}
        self.model: dict[str, dict[str, Candidate]] = {}
        self.steps: dict[str, list[str]] = {}

    @rule(target=jobs, who=st.integers(0, 1), key=st.sampled_from(["k", "l"]), resume=st.booleans())
    def begin(self, who: int, key: str, resume: bool) -> str:
        job = self.stores[who].begin_job(replace(KEY, digest=key), resume=resume)
        free = [
            j for j, s in self.state.items() if s.startswith(key) and not s.endswith("done") and j not in self.owner
        ]
        assert (job in free) == (resume and bool(free))
        self.state[job], self.owner[job] = f"{key} running", who
        self.model.setdefault(job, {})
        self.steps.setdefault(job, [])
        return job

    @rule(job=jobs, id=st.sampled_from(["a", "b", "c"]), ok=st.sampled_from([True, False, None]))
    def save(self, job: str, id: str, ok: bool | None):
        if job in self.owner:
            store = self.stores[self.owner[job]]
            kept = candidate(id, store.save_source(job, id, "a_cute", f"# {ok}\n"), ok=ok)
            store.save_candidate(job, kept, ENVIRONMENT)
            self.model[job][id] = kept

    @rule(job=jobs, message=st.text(max_size=5).filter(lambda text: text.isprintable()))
    def step(self, job: str, message: str):
        if job in self.owner:
            self.stores[self.owner[job]].add_transition(job, "compile", message)
            self.steps[job].append(message)

    @rule(job=jobs, cancelled=st.booleans())
    def finish(self, job: str, cancelled: bool):
        if job in self.owner:
            self.stores[self.owner.pop(job)].finish_job(job, None if cancelled else {"job": job})
            self.state[job] = self.state[job][0] + (" cancelled" if cancelled else " done")

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int):
        self.stores[who].close()
        self.stores[who] = open_store(self.root).store
        self.owner = {job: owner for job, owner in self.owner.items() if owner != who}

    @invariant()
    def both_see_the_model(self):
        for store in getattr(self, "stores", []):
            for job, kept in self.model.items():
                assert store.candidates(job) == tuple(kept.values())
                assert [step.message for step in store.transitions(job)] == self.steps[job]

    def teardown(self):
        for store in getattr(self, "stores", []):
            store.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

WRITER = """
import sys, time
from pathlib import Path
from dataclasses import replace
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import JobKey
from cutesmith_evaluator.types import Candidate, Environment
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
environment = Environment("3.11", None, None, None, "none", None)
opened = open_store(root)
assert opened.notice is None, opened.notice
job = opened.store.begin_job(JobKey("optimize", f"/{name}.py", "A", name), resume=True)
print(job, flush=True)
for number in range(count):
    path = opened.store.save_source(job, f"c{number}", "a_cute", "x = 1\\n" * 2000)
    opened.store.save_candidate(job, Candidate(f"c{number}", "recipe", "compile", True, path=str(path)), environment)
    opened.store.add_transition(job, "compile", str(number), f"c{number}")
opened.store.finish_job(job, {"count": count})
"""


def writer(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    run = [sys.executable, "-c", WRITER, str(root), name, str(count)]
    return subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_start_and_write_at_once_lose_nothing(tmp_path: Path):
    processes = [writer(tmp_path, f"job{number}", 60) for number in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    with open_store(tmp_path).store as store:
        latest = [store.latest(f"/job{number}.py", "A") for number in range(3)]
        assert [job.report for job in latest if job] == [{"count": 60}] * 3


def test_a_writer_killed_in_the_middle_leaves_whole_rows_and_a_job_to_resume(tmp_path: Path):
    process = writer(tmp_path, "job", 100_000)
    assert process.stdout is not None
    job = process.stdout.readline().strip()
    time.sleep(0.4)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    opened = open_store(tmp_path)
    assert opened.notice is None
    with opened.store as store:
        kept, steps = store.candidates(job), store.transitions(job)
        assert len(kept) >= len(steps) > 0
        assert all(Path(str(one.path)).read_text() == "x = 1\n" * 2000 for one in kept)
        assert store.begin_job(JobKey("optimize", "/job.py", "A", "job"), resume=True) == job


def database(root: Path) -> Path:
    folder = root / ".cutesmith"
    folder.mkdir(exist_ok=True)
    return folder / "store.sqlite"


def set_aside(root: Path) -> list[bytes]:
    return [file.read_bytes() for file in (root / ".cutesmith").glob("store.sqlite.set-aside-*[0-9]")]


def damage_header(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def damage_pages(path: Path) -> None:
    with open_store(path.parent.parent).store as store:
        job = store.begin_job(KEY, resume=False)
        for number in range(200):
            store.add_transition(job, "compile", "x" * 500 + str(number))
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 100] = b"\xa5" * 100
    path.write_bytes(bytes(content))


def belong_to_another(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cats (name)")
    connection.close()


@pytest.mark.parametrize("spoil", [damage_header, damage_pages, belong_to_another])
def test_what_is_no_store_is_set_aside_and_said(tmp_path: Path, spoil):
    path = database(tmp_path)
    spoil(path)
    before = path.read_bytes()
    opened = open_store(tmp_path)
    assert opened.notice is not None
    assert "was renamed to store.sqlite.set-aside-" in opened.notice
    assert set_aside(tmp_path) == [before]
    with opened.store as store:
        assert store.decisions() == ()
    assert open_store(tmp_path).notice is None


def test_a_newer_store_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    root.mkdir()
    open_store(root).store.close()
    connection = sqlite3.connect(database(root))
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = database(root).read_bytes()
    opened = open_store(root)
    assert opened.notice is not None
    assert "newer CuteSmith" in opened.notice
    assert str(tmp_path / "state") in opened.notice
    assert opened.store.folder.is_relative_to(tmp_path / "state")
    opened.store.begin_job(KEY, resume=True)
    opened.store.close()
    assert database(root).read_bytes() == before


def test_a_folder_that_cannot_be_made_is_replaced_by_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / ".cutesmith").write_text("a file in the way")
    for root in (tmp_path, Path("/proc/self"), tmp_path / "missing"):
        opened = open_store(root)
        assert opened.notice is not None
        assert "cannot be written" in opened.notice
        with opened.store as store:
            job = store.begin_job(KEY, resume=True)
            keep(store, job, "abc")
        with open_store(root).store as store:
            assert [one.id for one in store.candidates(job)] == ["abc"]
    assert (tmp_path / ".cutesmith").read_text() == "a file in the way"


def test_without_any_writable_home_a_temporary_folder_serves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/self")
    opened = open_store(Path("/proc/self"))
    assert opened.notice is not None
    assert tempfile.gettempdir() in opened.notice
    opened.store.begin_job(KEY, resume=True)
    opened.store.close()


def test_a_migration_keeps_what_was_there_and_a_failing_one_changes_nothing(tmp_path: Path):
    with open_store(tmp_path).store as store:
        store.decide(Decision("accepted", "/p/a.py", "A"))
    connection = sqlite3.connect(database(tmp_path), isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*MIGRATIONS, "ALTER TABLE jobs ADD COLUMN note; SELECT nonsense FROM nowhere"))
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    migrate(connection, (*MIGRATIONS, "ALTER TABLE decisions ADD COLUMN note TEXT DEFAULT 'none'"))
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    assert connection.execute("SELECT qualname, note FROM decisions").fetchall() == [("A", "none")]


def test_what_comes_later_is_later_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock = [2e9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with open_store(tmp_path).store as store:
        for number in range(3):
            job = store.begin_job(replace(KEY, digest=str(number)), resume=False)
            store.finish_job(job, {"best": None, "number": number})
            clock[0] -= 3600
            store.decide(Decision("rejected", KEY.file, KEY.qualname, job=job))
            latest = store.latest(KEY.file, KEY.qualname)
            (decision,) = store.decisions(KEY.file)
            assert latest is not None
            assert (latest.id, latest.report["number"], decision.job) == (job, number, job)
            assert decision.at > latest.ended

"""An editor session at random: edits, saves, outside writes, jobs, decisions and restarts over several documents, with
a real server. After every step the server must know the text that the edits give; no kernel is ever in other code than
it was proved for; once all is quiet, the server says of every class what the text and the store say of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from lsprotocol import types

from cutesmith_agent.source.adoption import remove
from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_agent.source.fingerprint import class_hash
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import JobKey
from cutesmith_server.outlines import Outline, outline_of
from cutesmith_server.records import Record, read_records
from scripted_editor import HELIX, NEOVIM, VS_CODE, Editor, editor

T = TypeVar("T")
STEPS_EACH = 200  # of one session
OPTIONS = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
# A Python of the project that never comes up or, told so, ends at once: the server, the agent and the store are real,
# and a job costs no import of torch. Kernels on offer are those of `a_job_ends_elsewhere`.
PYTHON = "#!/bin/sh\n[ -e '{folder}/fails' ] && exit 1\nexec sleep 600\n"
CLASSES = {"pair.py": ("First", "Second"), "other.py": ("Third",)}
OTHER = "from torch import nn\n\n\nclass Third(nn.Module):\n    def forward(self, x):\n        return x.frobnicate()\n"
KEYS = [(name, qualname) for name, qualnames in CLASSES.items() for qualname in qualnames]
COMMENTS = ("# a\n", "# 😀 é\n", "\n\n", "import os\n", "# x\r\n")
PLACES = ("import", "from", "class ", "def get")
INSIDE = (("2.0", "3.0"), ("1.0", "4.0"), ("        return", "        x = x\n        return"), ("(x) ", "(x)  "))
documents, keys = st.sampled_from(sorted(CLASSES)), st.sampled_from(KEYS)


def without(text: str, qualname: str) -> str:
    """The text with the class's kernel taken out, if it has one."""
    try:
        return apply_edits(text, remove(text, qualname, f"{qualname.lower()}_cute"))
    except EditRefusedError:
        return text


class EditorMachine(RuleBasedStateMachine):
    """`project` has pair.py with two kernels on offer; `pristine` is a copy of it that stays."""

    project: ClassVar[Path]
    pristine: ClassVar[Path]
    steps: ClassVar[int] = 0
    done: ClassVar[Counter[str]] = Counter()  # what was tried and not refused

    def __init__(self) -> None:
        super().__init__()
        shutil.rmtree(self.project)
        shutil.copytree(self.pristine, self.project)
        (self.project / "other.py").write_text(OTHER)
        shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)  # the test's own, see tests/e2e/conftest.py
        python = self.project / "python"
        python.write_text(PYTHON.format(folder=self.project))
        python.chmod(0o755)
        self.options = OPTIONS | {"interpreter": str(python)}
        self.proved = {name: class_hash((self.project / "pair.py").read_text(), name) for name in CLASSES["pair.py"]}
        self.loop = asyncio.new_event_loop()
        self.touched: set[str] = set()  # written from outside under an open buffer
        self.worked: set[tuple[str, str]] = set()  # had a job of this server
        self.interrupted: set[tuple[str, str]] = set()  # had one of an earlier server that may be left over
        self.is_stopped = False
        self.seen: dict[str, str] = {}  # the text that the server was last asked about
        self.elsewhere: set[tuple[str, str]] = set()  # had a job that this server has not been told of
        self.capabilities = VS_CODE
        self._start()

    def _start(self) -> None:
        self.context: AbstractAsyncContextManager[Editor] = editor(
            self.project, options=self.options, capabilities=self.capabilities
        )
        self.session = self._await(self.context.__aenter__())
        self.session.answers = {"never run": "Accept"}
        self.is_stopped = False
        self.interrupted |= self.worked
        self.worked.clear()
        self.elsewhere.clear()
        self.seen.clear()
        for name in CLASSES:
            self.session.open(self.project / name)
        self.touched.clear()

    def _stop(self) -> None:
        self.is_stopped = True  # once: a shutdown that hangs is to be seen as that
        self._await(self.context.__aexit__(None, None, None))

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(60):
                return await work

        return self.loop.run_until_complete(bounded())

    def teardown(self) -> None:
        if not self.is_stopped:
            self._stop()
        self.loop.close()

    # What the machine knows

    def _uri(self, name: str) -> str:
        return (self.project / name).as_uri()

    def _text(self, name: str) -> str | None:
        document = self.session.documents.get(self._uri(name))
        return document.text if document else None

    def _run(self, command: str, key: tuple[str, str]) -> dict[str, Any] | None:
        answer = self._await(self.session.run(command, self._uri(key[0]), key[1]))
        self.done[command if answer is not None else f"{command} refused"] += 1
        return answer

    def _record(self, key: tuple[str, str]) -> Record:
        return read_records(self.project / key[0], [key[1]]).get(key[1], Record())

    # Steps

    @rule(
        name=documents,
        comment=st.sampled_from(COMMENTS),
        before=st.sampled_from(PLACES),
    )
    def type_outside(self, name: str, comment: str, before: str) -> None:
        text = self._text(name)
        if text is not None and before in text and len(text) < 20_000:
            self.session.insert(self._uri(name), before, comment)

    @rule(name=documents, change=st.sampled_from(INSIDE), backwards=st.booleans())
    def type_inside(self, name: str, change: tuple[str, str], backwards: bool) -> None:
        text, (find, replace) = self._text(name), change if not backwards else change[::-1]
        if text is not None and text.count(find) == 1:
            self.session.type(self._uri(name), find, replace)

    @rule(name=documents)
    def undo(self, name: str) -> None:
        document = self.session.documents.get(self._uri(name))
        if document is not None and document.undo:
            self.session.undo(self._uri(name))

    @rule(name=documents)
    def save(self, name: str) -> None:
        if self._text(name) is not None:
            self.session.save(self._uri(name))

    @rule(name=documents)
    def close_or_open(self, name: str) -> None:
        if self._text(name) is None:
            self._open(name)
        else:
            self.session.close(self._uri(name))

    def _open(self, name: str) -> None:
        """The server reads what the store has of the file's classes, then; it is read from disk, too."""
        self.session.open(self.project / name)
        self.touched.discard(name)
        self.elsewhere -= {key for key in self.elsewhere if key[0] == name}

    @rule(name=documents, find=st.sampled_from(("2.0", "class ", "import")), tells=st.booleans())
    def write_from_outside(self, name: str, find: str, tells: bool) -> None:
        path = self.project / name
        text, new = path.read_bytes().decode(), "5.0" if find == "2.0" else f"# outside\n{find}"
        path.write_bytes(text.replace(find, new, 1).encode())
        self.touched.add(name)
        if tells:
            self.session.tell_changed_on_disk(path)

    @rule(key=keys)
    def accept(self, key: tuple[str, str]) -> None:
        name, qualname = key
        before, kernel = self._text(name), self.project / f"{qualname.lower()}_cute.py"
        on_disk = kernel.read_bytes() if kernel.exists() else None
        state = self._run("accept", key)
        after = self._text(name)
        if state is None:
            assert after == before
            assert (kernel.read_bytes() if kernel.exists() else None) == on_disk
            return
        assert state["state"] == "accepted", state
        assert after is not None
        assert class_hash(after, qualname) == self.proved[qualname]
        assert kernel.exists()
        decision = self._record(key).decision
        assert decision is not None
        assert decision.decision == "accepted"
        if before is not None:
            taken_out = apply_edits(after, remove(after, qualname, kernel.stem))
            assert taken_out == without(before, qualname)  # it may have been there: a newer one is taken in its place

    @rule(key=keys)
    def reject(self, key: tuple[str, str]) -> None:
        before = self._text(key[0])
        if self._run("reject", key) is not None:
            decision = self._record(key).decision
            assert decision is not None
            assert decision.decision == "rejected"
        assert self._text(key[0]) == before

    @rule(key=keys, chance=st.integers(0, 3))
    def remove(self, key: tuple[str, str], chance: int) -> None:
        before = self._text(key[0])
        found = outline_of(before or "").named(key[1])
        if chance and (found is None or not found.has_kernel):
            return
        if self._run("remove", key) is None:
            assert self._text(key[0]) == before
            return
        after = self._text(key[0])
        assert after is not None
        found = outline_of(after).named(key[1])
        assert found is not None
        assert not found.has_kernel

    @rule(name=documents)
    def check_out(self, name: str) -> None:
        """Another branch: the file as it was at first, the buffer read again."""
        if self._text(name) is not None:
            self.session.close(self._uri(name))
        path = self.project / name
        path.write_bytes((self.pristine / name).read_bytes() if name == "pair.py" else OTHER.encode())
        self.session.tell_changed_on_disk(path)
        self._open(name)

    @rule(
        key=st.sampled_from(KEYS[:2]),
        choices=st.lists(
            st.sampled_from(("accept", "reject", "remove", "undo", "save", "acceptFile")),
            min_size=1,
            max_size=4,
        ),
    )
    def offer_and_decide(self, key: tuple[str, str], choices: list[str]) -> None:
        """A job that ended elsewhere made a kernel for the class as it was at first; it is decided on."""
        if key in self.worked | self.interrupted:
            return
        self.a_job_ends_elsewhere(key)
        self.check_out(key[0])
        self._until_offered(key)
        for choice in choices:
            {
                "accept": lambda: self.accept(key),
                "reject": lambda: self.reject(key),
                "remove": lambda: self.remove(key, 0),
                "undo": lambda: self.undo(key[0]),
                "save": lambda: self.save(key[0]),
                "acceptFile": lambda: self.another_command(key, "acceptFile"),
            }[choice]()

    def _until_offered(self, key: tuple[str, str]) -> None:
        deadline = time.monotonic() + 20
        while (said := self._said().get(key)) != "compiled":
            assert time.monotonic() < deadline, said
            time.sleep(0.01)
        self.done["on offer"] += 1

    @rule(
        key=keys, command=st.sampled_from(("review", "acceptFile", "cancel", "showJobLog", "pause", "watch", "unwatch"))
    )
    def another_command(self, key: tuple[str, str], command: str) -> None:
        before = self._text(key[0])
        self._run(command, key)
        assert self._text(key[0]) == before

    @rule(fails=st.booleans())
    def jobs_fail(self, fails: bool) -> None:
        flag = self.project / "fails"
        flag.touch() if fails else flag.unlink(missing_ok=True)

    @rule(key=keys, chance=st.integers(0, 9))
    def generate(self, key: tuple[str, str], chance: int) -> None:
        command = ("generate", "revalidate", "resume")[chance % 3]
        if chance < 3 and len(self.worked) < 2 and self._run(command, key) is not None:
            self.worked.add(key)
        elif chance < 6 and self.worked:
            self._run("cancel" if chance < 5 else "pause", sorted(self.worked)[0])

    @rule(key=st.sampled_from(KEYS[:2]))
    def a_job_ends_elsewhere(self, key: tuple[str, str]) -> None:
        """As a command line in another terminal does it; this server reads of it when the file is opened again."""
        path = str(self.project / key[0])
        with open_store(workspace_root(self.project / key[0])).store as store:
            last = store.latest(path, key[1])
            assert last is not None
            self.elsewhere.add(key)
            job = store.begin_job(JobKey("optimize", path, key[1], "0" * 64, last.class_hash), resume=False)
            store.finish_job(job, last.report)

    @rule(capabilities=st.sampled_from((VS_CODE, NEOVIM, HELIX)), chance=st.integers(0, 3))
    def restart(self, capabilities: types.ClientCapabilities, chance: int) -> None:
        if chance == 0:
            self._stop()
            self.capabilities = capabilities
            self._start()

    @rule(chance=st.integers(0, 1))
    def settle(self, chance: int) -> None:
        """Once nothing is pending, what the server says agrees with the text and the store."""
        if chance:
            return
        deadline = time.monotonic() + 20
        while (wrong := self._disagreements()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not wrong, wrong

    def _disagreements(self) -> dict[tuple[str, str], tuple[str, str]]:
        said = self._said()
        left_alone = self.worked | self.interrupted | self.elsewhere
        checked = [key for key in KEYS if key not in left_alone and key[0] not in self.touched]
        pairs = {key: (said.get(key, "idle"), self._expected(key)) for key in checked if self._text(key[0]) is not None}
        return {key: pair for key, pair in pairs.items() if pair[0] != pair[1] and key in said}

    def _said(self) -> dict[tuple[str, str], str]:
        return {(Path(each["uri"]).name, each["class"]): each["state"] for each in self._await(self.session.jobs())}

    def _expected(self, key: tuple[str, str]) -> str:
        outline, record = outline_of(self._text(key[0]) or ""), self._record(key)
        found = outline.named(key[1])
        has_kernel = found is not None and found.has_kernel
        job = record.job_on_offer(has_kernel=has_kernel)
        if job is None:
            return "accepted" if has_kernel else "idle"
        return "compiled" if outline.digest(key[1]) == job.class_hash else "stale"

    @invariant()
    def the_server_knows_the_text(self) -> None:
        type(self).steps += 1
        for name in CLASSES:
            text = self._text(name)
            if text is not None and text != self.seen.get(name):
                self.seen[name] = text
                assert self._await(_lens_places(self.session, self._uri(name))) == _class_places(self.session, text)


@dataclass(frozen=True)
class Sessions:
    """What a run of random sessions did."""

    steps: int
    done: Counter[str]


def run_sessions(steps: int, seed: int, project: Path, pristine: Path) -> Sessions:
    """At least half of the wanted steps are taken: a session may end before its share."""
    EditorMachine.project, EditorMachine.pristine, EditorMachine.steps = project, pristine, 0
    EditorMachine.done.clear()
    hypothesis.seed(seed)(EditorMachine)
    run_state_machine_as_test(
        EditorMachine,
        settings=settings(
            max_examples=max(steps // STEPS_EACH, 1),
            stateful_step_count=STEPS_EACH,
            deadline=None,
            database=None,
            phases=[Phase.generate],  # what failed is printed; making it smaller takes hours
            suppress_health_check=list(HealthCheck),
        ),
    )
    return Sessions(EditorMachine.steps, EditorMachine.done)


async def _lens_places(session: Editor, uri: str) -> set[tuple[str, int, int]]:
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    found = await session.client.text_document_code_lens_async(params) or ()
    return {_place(lens) for lens in found}


def _place(lens: types.CodeLens) -> tuple[str, int, int]:
    assert lens.command is not None
    (argument,) = lens.command.arguments or ()
    name = argument["class"] if isinstance(argument, dict) else argument[1]
    return name, lens.range.start.line, lens.range.start.character


def _class_places(session: Editor, text: str) -> set[tuple[str, int, int]]:
    outline: Outline = outline_of(text)
    starts = {found.qualname: session.position(text, found.name_range.start) for found in outline.classes}
    return {(name, place.line, place.character) for name, place in starts.items()}

"""One worker process: how it is started, spoken to, watched and killed.

The client has no thread. While it waits for a reply it also drains the process's output, measures its memory and
looks at the clock.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from cutesmith_evaluator.deadline import Deadline
from cutesmith_evaluator.ending import end_group, how_it_ended
from cutesmith_evaluator.errors import WorkerDied, WorkerError, WorkerTimeout, WorkerUnavailable
from cutesmith_evaluator.processes import descendants, has_ended
from cutesmith_evaluator.sandbox import sandbox
from cutesmith_evaluator.scrub import scrubbed_environment
from cutesmith_evaluator.temporary import TemporaryFolder
from cutesmith_evaluator.text import printable
from cutesmith_evaluator.usage import Limits, Usage

# Runs in the user's interpreter with -P: only this one package becomes visible, wherever it is installed.
BOOT = """
import sys, importlib.util as util
sys.dont_write_bytecode = True
_, folder, descriptor, parent = sys.argv
spec = util.spec_from_file_location("cutesmith_evaluator", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["cutesmith_evaluator"] = package = util.module_from_spec(spec)
spec.loader.exec_module(package)
from cutesmith_evaluator.worker.serve import serve
serve(int(descriptor), int(parent))
"""
_PACKAGE = Path(__file__).parent
_TICK_S = 0.05
_LOG_BYTES = 64 * 1024
_REPLY_BYTES = 256 << 20  # longer than any reply; a graph of thousands of ops takes a few MiB
_ROOM_BYTES = 1 << 20  # free where the worker's files are, to begin with
_LAST_WORDS = 300  # characters
_LOADING = 0  # the id of the request to import what candidates need


class WorkerProcess:
    """A started worker. Raises WorkerUnavailable from the constructor when it does not come up.

    A `spare` one comes up and imports by itself, to be there when it is needed: `come_up`, then `load`, wait for it.
    `with_dsl`: whether it imports the CuTe DSL, too.
    """

    def __init__(self, interpreter: Path, limits: Limits, *, spare: bool = False, with_dsl: bool = True) -> None:
        self._interpreter = interpreter
        self._limits = limits
        self._sandbox = sandbox()
        self._scratch = _scratch()
        self._socket, theirs = socket.socketpair()
        self._log = bytearray()
        self._received = bytearray()
        self._replies: deque[dict[str, Any]] = deque()  # come in, not looked at yet
        self._loading = {"id": _LOADING, "method": "load", "params": {"dsl": with_dsl}}
        self._is_up = self._is_told_to_load = self.is_loaded = False
        self._usage = Usage(limits, self._scratch)
        self._progress = ""  # what the request in hand was last heard to do
        try:
            self._process, self._output = self._spawn(interpreter, theirs)
        except OSError as error:
            self._socket.close()
            self._scratch.close()
            raise WorkerUnavailable(
                f"Python at {interpreter} cannot be started ({error.strerror}); choose the interpreter of your project."
            ) from error
        finally:
            theirs.close()
        if spare:
            with suppress(OSError):  # it has ended already: who waits for it is told
                self._send(self._loading)
        else:
            self.come_up()

    def _spawn(self, interpreter: Path, theirs: socket.socket) -> tuple[subprocess.Popen[bytes], int]:
        if not os.access(interpreter, os.X_OK):  # in the sandbox nobody would say so
            interpreter.stat()
        output, writer = os.pipe()
        parent = 0 if self._sandbox.is_on else os.getpid()  # in the sandbox it is the sandbox's program
        arguments = [str(_PACKAGE), str(theirs.fileno()), str(parent)]
        environment = self._sandbox.environment(scrubbed_environment(os.environ), self._scratch.path)
        name, _, value = self._variable.partition("=")
        try:
            process = subprocess.Popen(
                self._sandbox.around([str(interpreter), "-P", "-c", BOOT, *arguments], self._scratch.path),
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                pass_fds=[theirs.fileno()],
                process_group=0,
                cwd=self._scratch.path,
                env=environment | {name: value},
            )
        except OSError:
            os.close(output)
            raise
        finally:
            os.close(writer)
        return process, output

    @property
    def _variable(self) -> str:
        """In the environment of the process and of what it starts."""
        return f"CUTESMITH_SCRATCH={self._scratch.path}"

    def come_up(self) -> None:
        """Raises WorkerUnavailable."""
        if self._is_up:
            return
        try:
            self._wait("starting", self._limits.startup_s, self._ready_line)
        except WorkerError as error:
            is_old = "Unknown option: -P" in self.log()
            reason = "it is older than Python 3.11" if is_old else self._last_line() or str(error)
            self.kill()
            raise WorkerUnavailable(
                f"No worker starts in {self._interpreter}: {reason}; choose the interpreter of your project."
            ) from error
        self._is_up = True

    def _ready_line(self, reply: dict[str, Any]) -> bool:
        return "ready" in reply

    @property
    def alive(self) -> bool:
        return self._process.poll() is None and not any(map(has_ended, self._own()))

    def _own(self) -> list[int]:
        """The processes that make the worker: the one that was started, and those that it starts in a sandbox."""
        return [self.pid, *descendants(self.pid)[: self._sandbox.is_on + self._sandbox.has_processes]]

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def scratch(self) -> Path:
        """The folder that the process may write to; removed when it is killed."""
        return self._scratch.path

    def log(self) -> str:
        """The end of what the process and its children have printed."""
        return self._log.decode(errors="replace")

    def load(self, on_progress: Callable[[str], None] | None) -> None:
        """Imports what candidates import."""
        if self.is_loaded:
            return
        doing = "importing torch and the CuTe DSL"
        if not self._is_told_to_load:
            self._send(self._loading)
        self._wait(doing, self._limits.startup_s, self._reply_to(self._loading, on_progress))
        self.is_loaded = True

    def request(
        self, message: dict[str, Any], doing: str, deadline_s: float, on_progress: Callable[[str], None] | None
    ) -> dict[str, Any]:
        """Sends one request and returns its reply. `doing` completes "… while <doing>" in errors."""
        self._progress = ""
        try:
            self._send(message)
        except OSError:
            self._raise_died(doing)
        return self._wait(doing, deadline_s, self._reply_to(message, on_progress))

    def _send(self, message: dict[str, Any]) -> None:
        self._is_told_to_load |= message is self._loading
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def _reply_to(
        self, message: dict[str, Any], on_progress: Callable[[str], None] | None
    ) -> Callable[[dict[str, Any]], bool]:
        def is_reply(reply: dict[str, Any]) -> bool:
            if reply.get("id") != message["id"]:
                return False
            if "progress" in reply:
                self._progress = printable(str(reply["progress"]), _LAST_WORDS)
                if on_progress:
                    on_progress(self._progress)
            return "result" in reply or "error" in reply

        return is_reply

    def _wait(self, doing: str, seconds: float, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = Deadline(seconds, self._own()[-1])
        sources = [self._socket.fileno(), self._output]
        while (reply := self._next(wanted)) is None:
            ready, _, _ = select.select(sources, [], [], _TICK_S)
            if self._output in ready and not self._drain():
                sources.remove(self._output)
            spoke = self._socket.fileno() in ready
            ended = not self._receive() if spoke else not self.alive
            self._replies.extend(self._complete_replies())
            if ended and not self._replies:
                self._raise_died(doing)
            self._check_use(doing)
            deadline.look(self._progress)
            if deadline.has_passed:
                self.kill()
                last = f" ({self._progress})" if self._progress else ""
                raise WorkerTimeout(f"Stopped after {seconds:.0f} s while {doing}{last}.")
        return reply

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        """The first reply that is wanted; those before it are dropped."""
        while self._replies:
            if wanted(reply := self._replies.popleft()):
                return reply
        return None

    def _receive(self) -> bool:
        try:
            chunk = self._socket.recv(1 << 16)
        except OSError:
            return False
        self._received += chunk
        return bool(chunk)

    def _complete_replies(self) -> list[dict[str, Any]]:
        end = self._received.rfind(b"\n") + 1
        lines = bytes(self._received[:end]).split(b"\n")[:-1]
        del self._received[:end]
        if len(self._received) > _REPLY_BYTES:
            self._raise_tampered()
        return [self._reply(line) for line in lines]

    def _reply(self, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            self._raise_tampered()
        return reply

    def _raise_tampered(self) -> NoReturn:
        self.kill()
        raise WorkerDied(
            "Code that ran in the worker wrote into its channel to CuteSmith; leave descriptors you did not open alone."
        )

    def _drain(self) -> bool:
        chunk = os.read(self._output, 1 << 16)
        self._log += chunk
        del self._log[:-_LOG_BYTES]
        return bool(chunk)

    def _last_line(self) -> str:
        lines = [line.strip() for line in self.log().splitlines() if line.strip()]
        return printable(lines[-1], _LAST_WORDS) if lines else ""

    def _check_use(self, doing: str) -> None:
        """Raises WorkerDied, the worker killed, where it takes more than it may."""
        excess = self._usage.excess([self.pid, *descendants(self.pid)])
        if excess is not None:
            self.kill()
            raise WorkerDied(f"Stopped while {doing}: {excess}.")

    def _raise_died(self, doing: str) -> NoReturn:
        code = self._ended()
        self.kill()
        how = how_it_ended(code, sandboxed=self._sandbox.is_on)
        output = f"; its last output: {self._last_line()}" if self._last_line() else ""
        raise WorkerDied(f"The worker process {how} while {doing}{output}")

    def _ended(self) -> int | None:
        """The exit code, once the rest of the output is read; None where it lives on without its socket."""
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = None
        while select.select([self._output], [], [], 0)[0] and self._drain():
            pass
        return code

    @property
    def has_left_processes(self) -> bool:
        """Whether there is more than the worker itself."""
        return len(descendants(self.pid)) > self._sandbox.is_on + self._sandbox.has_processes

    def kill(self) -> None:
        """Ends the process and everything it started; idempotent."""
        if self._socket.fileno() < 0:
            return
        end_group(self._process, self._variable)
        self._socket.close()
        os.close(self._output)
        self._scratch.close()


def _scratch() -> TemporaryFolder:
    """Raises WorkerUnavailable."""
    try:
        made = TemporaryFolder()
    except OSError as error:
        message = f"No folder for the worker's files can be made ({error.strerror}: {error.filename}); free the disk."
        raise WorkerUnavailable(message) from error
    if made.free_bytes() < _ROOM_BYTES:  # what is compiled there would be cut off, and the candidate blamed
        where = made.path.parent.parent
        made.close()
        raise WorkerUnavailable(f"The disk of {where} is full: free it, or let TMPDIR name a folder on another.")
    return made

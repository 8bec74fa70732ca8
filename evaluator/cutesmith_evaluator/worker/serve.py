"""The worker's loop: one request at a time from a socket of its own, never stdin or stdout.

Request `{"id", "method", "params"}`; replies `{"id", "progress"}`, `{"id", "result"}`, `{"id", "error": {"message"}}`.
A last reply carries `"last": true`: the process is then of no further use.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any, NoReturn

from cutesmith_evaluator.worker.encoding import encode
from cutesmith_evaluator.worker.failures import summary
from cutesmith_evaluator.worker.methods import METHODS
from cutesmith_evaluator.worker.process_state import process_state

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def serve(descriptor: int, parent: int) -> NoReturn:
    """Answers requests until the client goes away, then ends the whole process group.

    `descriptor`: a connected socket; `parent`: the client's process id, 0 in a sandbox, which ends the process with the
    client. CUTESMITH_SCRATCH in the environment is a folder that the client removes.
    """
    _confine(parent)
    os.set_inheritable(descriptor, False)
    sys.argv = [""]
    client = socket.socket(fileno=descriptor)
    threading.Thread(target=_end_with_client, args=(client,), daemon=True).start()
    channel = _Channel(client)
    state = process_state()
    channel.send({"ready": True})
    for line in client.makefile("rb"):
        reply = _answer(json.loads(line), channel)
        channel.send(reply if state.restore() else {**reply, "last": True})
    _end()


class _Channel:
    """Writes whole lines: progress may come from another thread."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._client.sendall(json.dumps(message).encode() + b"\n")


def _answer(request: dict[str, Any], channel: _Channel) -> dict[str, Any]:
    number = request["id"]

    def progress(message: str) -> None:
        channel.send({"id": number, "progress": message})

    _renew_streams()
    try:
        result = METHODS[request["method"]](request["params"], progress)
        reply: dict[str, Any] = {"id": number, "result": encode(result)}
    except BaseException as error:  # noqa: BLE001 - the loop outlives any request
        with suppress(BaseException):  # an exception may be written so that it cannot be printed
            traceback.print_exc()
        reply = {"id": number, "error": {"message": summary(error)}}
    return {**reply, "last": True} if _device_is_lost() else reply


def _renew_streams() -> None:
    """The user's code may close or replace them; `exit()` does."""
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _device_is_lost() -> bool:
    """Whether a kernel has left the CUDA context unusable: every later call in it would fail."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _confine(parent: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whatever user code detaches stays ours, to be killed
    if parent and os.getppid() != parent:  # the client died before the line above
        _end()


def _end_with_client(client: socket.socket) -> None:
    """Ends the group when the client's end closes, even while a request hangs."""
    poll = select.poll()
    poll.register(client.fileno(), getattr(select, "POLLRDHUP", select.POLLHUP))
    poll.poll()
    _end()


def _end() -> NoReturn:
    if os.getpgrp() in (0, os.getpid(), os.getppid()):  # a group of our own, as the client or the sandbox makes it
        os.killpg(0, signal.SIGKILL)
    os._exit(0)

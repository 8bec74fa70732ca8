"""A language server process and the bytes that go in and out of it, without a client library in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OURS = [sys.executable, "-m", "cutesmith_server", "serve"]


def message(method: str, params: object, id: int | None = None) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id else {})}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


INITIALIZE = message("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1)


class Server:
    """A server process with its pipes."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.told: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def answer(self, id: int) -> Any:
        """The result of a request; what comes before it is kept in `told`."""
        reply = self.reply(id)
        assert "result" in reply, reply
        return reply["result"]

    def reply(self, id: int) -> dict[str, Any]:
        while (found := self.read()).get("id") != id or "method" in found:
            self.told.append(found)
        return found

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b"\n"):
            assert line, "the server has ended"
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        return json.loads(self.process.stdout.read(length))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

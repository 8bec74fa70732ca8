"""The client's end of a language server's pipes: requests that may overlap, the process's CPU time and memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Connection:
    """A server process. Its own requests are answered with null, its notifications dropped."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None
    ) -> Connection:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env={**os.environ, **(variables or {})},
            limit=2**26,
        )
        return cls(process)

    async def initialize(self, folder: Path, options: dict[str, Any]) -> None:
        workspace = {"workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}], "rootUri": folder.as_uri()}
        parameters = {"processId": os.getpid(), "capabilities": {}, "initializationOptions": options, **workspace}
        await self.request("initialize", parameters)
        self.notify("initialized", {})

    async def request(self, method: str, parameters: Any) -> Any:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": parameters})
        return await answer

    def notify(self, method: str, parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def cpu_s(self) -> float:
        """The time on a processor of all the process's threads, to the nanosecond, without its children."""
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in threads) / 1e9

    def peak_mb(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
        return round(int(peak) / 1024)

    async def close(self) -> None:
        await self.request("shutdown", None)
        self.notify("exit", None)
        await self._process.wait()
        self._reader.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                header = await self._process.stdout.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                for waiting in self._waiting.values():
                    waiting.set_exception(ConnectionError("the server has ended"))
                return
            (length,) = (
                int(line[15:]) for line in header.split(b"\r\n") if line.lower().startswith(b"content-length:")
            )
            message = json.loads(await self._process.stdout.readexactly(length))
            if "method" in message:
                if "id" in message:
                    self._send({"id": message["id"], "result": None})
            elif (answer := self._waiting.pop(message["id"], None)) is not None and not answer.done():
                answer.set_result(message.get("result"))

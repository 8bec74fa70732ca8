"""How fast the language server answers while somebody types and jobs run, next to two other Python servers.

For `--seconds` each: 20 edits a second in the middle of a 5,000-line file; after every edit the server's outline (ours:
the lenses; theirs: document symbols), after every fifth a hover, and from ours code actions too. Ours has jobs running
and three more waiting all the while (the row says the fewest that were seen). Then single edits in a 20,000-line file,
and ten idle seconds. In milliseconds, from sending a request to its answer; CPU is of one core, memory resident.
Rewrites results/lsp_latency.jsonl and the table in docs/editors.md.

`--peers`: a Python that has jedi-language-server and python-lsp-server; without it one is made in a temporary venv.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import latency_page
from large_files import text_of
from lsp_wire import Connection
from records import RESULTS, append_line

EXAMPLES = Path(__file__).parents[1] / "examples"
PEERS = {"jedi-language-server": "jedi-language-server", "python-lsp-server": "pylsp"}  # package: its command
EDITS_PER_S = 20.0
HOVER = "textDocument/hover"


class Typist:
    """Types one letter after another into the name of a helper, and asks as an editor does."""

    def __init__(self, connection: Connection, path: Path, lines: int, outline: str) -> None:
        self.connection, self.uri, self.outline = connection, path.as_uri(), outline
        self.version = 1
        self.seconds: dict[str, list[float]] = defaultdict(list)
        text = text_of(lines)
        path.write_text(text)
        before = text[: text.index(f"helper_{lines // 20 + 1}(")]
        self.line, self.column = before.count("\n"), len(before.rpartition("\n")[2])
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        connection.notify("textDocument/didOpen", {"textDocument": item})

    def edit(self) -> None:
        self.version += 1
        place = {"line": self.line, "character": self.column}
        changes = [{"range": {"start": place, "end": place}, "text": "x"}]
        self.connection.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": changes},
        )

    async def ask(self, method: str, **more: Any) -> Any:
        started = time.perf_counter()
        answer = await self.connection.request(method, {"textDocument": {"uri": self.uri}, **more})
        self.seconds[method].append(time.perf_counter() - started)
        return answer

    async def type_for(self, seconds: float, *, with_actions: bool) -> None:
        """As an editor does, it asks nothing again before it was answered."""
        end, number = time.perf_counter() + seconds, 0
        here = {"line": 4, "character": 8}  # the first class's name
        around = {"range": {"start": here, "end": here}, "context": {"diagnostics": []}}
        wanted: list[tuple[str, int, dict[str, Any]]] = [(self.outline, 1, {}), (HOVER, 5, {"position": here})]
        wanted += [("textDocument/codeAction", 5, around)] if with_actions else []
        asked: dict[str, asyncio.Task[Any]] = {}
        while time.perf_counter() < end:
            due = time.perf_counter() + 1 / EDITS_PER_S
            self.edit()
            for method, every, more in wanted:
                if number % every == 0 and (method not in asked or asked[method].done()):
                    asked[method] = asyncio.create_task(self.ask(method, **more))
            number += 1
            await asyncio.sleep(max(due - time.perf_counter(), 0))
        await asyncio.gather(*asked.values())


def figures(seconds: Sequence[float]) -> dict[str, float]:
    found = sorted(each * 1e3 for each in seconds)
    at = {"p50": 0.5, "p99": 0.99}
    return {name: round(found[min(int(len(found) * each), len(found) - 1)], 2) for name, each in at.items()} | {
        "max": round(found[-1], 2),
        "requests": len(found),
    }


async def measure_ours(folder: Path, seconds: float) -> dict[str, Any]:
    state = {"XDG_STATE_HOME": str(folder.parent / "state")}  # no other server's jobs take its places
    connection = await Connection.start([sys.executable, "-m", "cutesmith_server", "serve"], folder, state)
    await connection.initialize(folder, {"trusted": True, "device": "none"})
    typist = Typist(connection, folder / "large.py", 5000, "textDocument/codeLens")
    await typist.ask("textDocument/codeLens")
    jobs = Jobs(connection, folder)
    await jobs.top_up()
    typist.seconds.clear()
    keeping = asyncio.create_task(jobs.keep())
    before = connection.cpu_s()
    await typist.type_for(seconds, with_actions=True)
    busy = connection.cpu_s() - before
    keeping.cancel()
    row = {"cpu": round(busy / seconds, 3), "peak_mb": connection.peak_mb()} | await jobs.ended()
    requests = {method: figures(each) for method, each in typist.seconds.items()}
    row |= {"requests": requests, "edit_20000_lines": await single_edits(connection, folder)}
    await asyncio.sleep(2)
    before = connection.cpu_s()
    await asyncio.sleep(10)
    row["idle_cpu"] = round((connection.cpu_s() - before) / 10, 4)
    row["peak_mb"] = connection.peak_mb()
    await connection.close()
    return row


class Jobs:
    """Keeps the server's device busy and more than three jobs in line, each on a file of its own."""

    WAITING = 4  # one of them begins now and then before the next look

    def __init__(self, connection: Connection, folder: Path) -> None:
        self._connection, self._folder = connection, folder
        self._examples = itertools.cycle(sorted(EXAMPLES.glob("*.py")))
        self._started = 0
        self._seen: list[tuple[int, int]] = []  # running and waiting, whenever looked at

    async def top_up(self) -> None:
        while (await self._counts())[1] < self.WAITING:
            await self._start(next(self._examples))

    async def keep(self) -> None:
        """Looks four times a second."""
        while True:
            self._seen.append(await self._counts())
            await self.top_up()
            await asyncio.sleep(0.25)

    async def ended(self) -> dict[str, Any]:
        """Cancels what is left; what was seen of the jobs."""
        left = await self._unfinished()
        for each in left:
            cancel = {"command": "cutesmith.cancel", "arguments": [{"uri": each["uri"], "class": each["class"]}]}
            await self._connection.request("workspace/executeCommand", cancel)
        while await self._unfinished():
            await asyncio.sleep(0.1)
        running, waiting = zip(*self._seen, strict=True)
        least = {"running": min(running), "waiting": min(waiting)}
        return {"jobs": {"finished": self._started - len(left), "least": least, "looks": len(self._seen)}}

    async def _unfinished(self) -> list[dict[str, Any]]:
        states = await self._connection.request("cutesmith/jobs", {})
        return [each for each in states["jobs"] if each["state"] == "running"]

    async def _counts(self) -> tuple[int, int]:
        found = await self._unfinished()
        waiting = sum(each["stage"] == "queued" for each in found)
        return len(found) - waiting, waiting

    async def _start(self, example: Path) -> None:
        copy = Path(shutil.copy(example, self._folder / f"{example.stem}_{self._started}.py"))
        item = {"uri": copy.as_uri(), "languageId": "python", "version": 1, "text": copy.read_text()}
        self._connection.notify("textDocument/didOpen", {"textDocument": item})
        lenses = await self._connection.request("textDocument/codeLens", {"textDocument": {"uri": copy.as_uri()}})
        for lens in lenses:
            command = {"command": "cutesmith.generate", "arguments": lens["command"]["arguments"]}
            self._started += await self._connection.request("workspace/executeCommand", command) is not None
        self._connection.notify("textDocument/didClose", {"textDocument": {"uri": copy.as_uri()}})


async def single_edits(connection: Connection, folder: Path) -> dict[str, Any]:
    """One letter, and the lenses of the text with it; `cpu`: the server's time for it."""
    typist = Typist(connection, folder / "huge.py", 20_000, "textDocument/codeLens")
    await typist.ask("textDocument/codeLens")
    typist.seconds.clear()
    spent: list[float] = []
    for _ in range(500):
        before = connection.cpu_s()
        typist.edit()
        await typist.ask("textDocument/codeLens")
        spent.append(connection.cpu_s() - before)
        await asyncio.sleep(0.05)
    return figures(typist.seconds["textDocument/codeLens"]) | {"cpu": figures(spent)}


async def measure_peer(command: Path, folder: Path, seconds: float) -> dict[str, Any]:
    connection = await Connection.start([str(command)], folder)
    await connection.initialize(folder, {})
    outline = "textDocument/documentSymbol"
    typist = Typist(connection, folder / "large.py", 5000, outline)
    await typist.ask(outline)
    typist.seconds.clear()
    before = connection.cpu_s()
    started = time.perf_counter()
    await typist.type_for(seconds, with_actions=False)
    busy, took = connection.cpu_s() - before, time.perf_counter() - started
    row = {"cpu": round(busy / took, 3), "peak_mb": connection.peak_mb(), "took_s": round(took, 1)}
    row["requests"] = {method: figures(each) for method, each in typist.seconds.items()}
    await connection.close()
    return row


def peers_python(given: Path | None, scratch: Path) -> Path:
    if given is not None:
        return given
    venv.create(scratch / "peers", with_pip=True)
    python = scratch / "peers" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


async def main(arguments: argparse.Namespace) -> None:
    results = RESULTS / "lsp_latency.jsonl"
    results.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="cutesmith-latency-") as name:
        folder = Path(name) / "project"
        folder.mkdir()
        (folder / "pyproject.toml").write_text("")
        python = peers_python(arguments.peers, Path(name))
        await measure("cutesmith", measure_ours(folder, arguments.seconds), arguments.seconds, results)
        for server, command in PEERS.items():
            peer = measure_peer(python.with_name(command), folder, arguments.seconds)
            await measure(server, peer, arguments.seconds, results)
    latency_page.main()


async def measure(server: str, work: Coroutine[Any, Any, dict[str, Any]], seconds: float, results: Path) -> None:
    """One server's row; with "hung" where it does not come to an end (as seen of jedi-language-server)."""
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    common = {"date": date.today().isoformat(), "machine": f"{platform.machine()}, {os.cpu_count()} cores, {load}"}
    try:
        async with asyncio.timeout(4 * seconds + 120):
            row = await work
    except TimeoutError:
        row = {"hung": True}
    row |= {"load_at_the_end": round(os.getloadavg()[0], 1)}
    append_line(results, common | {"seconds": seconds, "server": server} | row)
    print(server, row, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--peers", type=Path)
    asyncio.run(main(parser.parse_args()))

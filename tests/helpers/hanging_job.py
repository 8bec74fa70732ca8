"""A job that never ends by itself, in the middle of the user's code."""

from __future__ import annotations

from pathlib import Path

from cutesmith_evaluator.processes import descendants
from scripted_editor import Editor

# Says that it runs, then hangs where no Python signal handler can reach it.
HANGS = """\
import ctypes
from pathlib import Path

import torch
from torch import nn

Path(__file__).with_name("running").touch()
ctypes.PyDLL(None).sleep(600)


class Slow(nn.Module):
    def forward(self, x):
        return x


class Slower(nn.Module):
    def forward(self, x):
        return x


class Slowest(nn.Module):
    def forward(self, x):
        return x
"""


async def hanging(session: Editor, path: Path, qualname: str = "Slow") -> list[int]:
    """A job in the middle of the user's code. Returns the processes below the server."""
    uri = session.open(path)
    assert await session.run("generate", uri, qualname)
    await session.until(path.with_name("running").exists, 60.0)
    server = session.client._server
    assert server is not None
    started = descendants(server.pid)
    assert len(started) >= 2  # the agent and its worker
    return started

"""A connection to a Ray cluster, made without Ray's patience and without its words."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from cutesmith_server.errors import RefusedError

LOCAL = "local"
_OWN = {"include_dashboard": False, "object_store_memory": 100 << 20}  # bytes; files and records are small
_CONNECT_S, _ANSWER_S = 5.0, 30.0


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to that cluster, or `local`, to one of this machine's own. Raises RefusedError (exit 2)."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise RefusedError("--ray needs Ray, which is not here: pip install 'cutesmith[ray]'.", exit=2) from None
    if address != LOCAL:
        _require_reachable(address)
        _require_answer(address)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # Ray prints what becomes of nodes there
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **(_OWN if address == LOCAL else {}))
        except (ConnectionError, ValueError, RuntimeError, OSError) as error:
            raise _unusable(address, str(error)) from None
        try:
            yield ray
        finally:
            ray.shutdown()


def room(ray: Any, needs: Mapping[str, int]) -> int:
    """How many tasks with these needs can run at a time; 0 where the cluster's head does not answer."""
    try:
        _reach(ray.get_runtime_context().gcs_address)
    except OSError:
        return 0
    return int(ray.cluster_resources().get("GPU" if "num_gpus" in needs else "CPU", 0))


def _require_reachable(address: str) -> None:
    """Ray itself would try for minutes."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise RefusedError(f"--ray {address}: give the HOST:PORT of a Ray cluster's head, auto or local.", exit=2)
    try:
        _reach(address)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        advice = "see `ray status` on its head for the address"
        raise RefusedError(f"The Ray cluster at {address} cannot be reached ({why}): {advice}.", exit=2) from None


def _reach(address: str) -> None:
    """Raises OSError or OverflowError."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()


def _require_answer(address: str) -> None:
    """In a process of its own: where another program listens, Ray would try for minutes and end this one."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "status"]
    command += [] if address == "auto" else ["--address", address]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S)
    except subprocess.TimeoutExpired:
        raise _unusable(address, f"it has not answered for {_ANSWER_S:.0f} s") from None
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise _unusable(
            address, lines[-1].rpartition("Error: ")[2] if lines else f"`ray status` ended with {run.returncode}"
        )


def _unusable(address: str, why: str) -> RefusedError:
    words = " ".join(why.split()).rstrip(".")
    return RefusedError(f"The Ray cluster at {address} cannot be used: {words}.", exit=2)

"""`cutesmith capture -- python train.py`: how the project's modules are built and called in a real run."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cutesmith_evaluator.recording as recording
from cutesmith_agent.recorded import read_recorded
from cutesmith_agent.store.captures import Capture
from cutesmith_agent.store.location import real_path, workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_server import wording
from cutesmith_server.cli.jobs import interpreter
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.errors import RefusedError
from cutesmith_server.records import STORE_ERRORS

_NOTHING = 3
_SHOWN = 3  # signatures of a class


def capture(options: argparse.Namespace) -> int:
    """The command's own exit status, or 3 where it went well and called no module of the project."""
    command = _command(options)
    with tempfile.TemporaryDirectory(prefix="cutesmith-capture-") as folder:
        status = _run(command, _environment(Path(folder), options), quiet=options.json)
        captures = read_recorded(Path(folder))
    _keep(captures)
    if options.json:
        print_json({"status": status, "classes": [_as_json(each) for each in captures]})
    else:
        _show(captures)
    return status or (0 if captures else _NOTHING)


def _command(options: argparse.Namespace) -> list[str]:
    """What follows `--`; options of Python (`-m pkg.mod`) and files of it run in the interpreter of the project."""
    words = [word for place, word in enumerate(options.run) if (place, word) != (0, "--")]
    if not words:
        raise RefusedError("Nothing to run: cutesmith capture -- python train.py", exit=2)
    if words[0].startswith("-") or (words[0].endswith(".py") and shutil.which(words[0]) is None):
        return [interpreter(options), *words]
    return words


def _environment(folder: Path, options: argparse.Namespace) -> dict[str, str]:
    assert recording.__file__ is not None
    paths = [str(Path(recording.__file__).parent), os.environ.get("PYTHONPATH", "")]
    told = {"CUTESMITH_CAPTURE": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    told |= {"CUTESMITH_CAPTURE_TIME": "1"} if options.time else {}
    return {**os.environ, **told, **({"TORCHDYNAMO_DISABLE": "1"} if options.eager else {})}


def _run(command: list[str], environment: dict[str, str], *, quiet: bool) -> int:
    """Runs to the end, with the terminal and its signals. With `quiet` its stdout goes to stderr."""
    try:
        child = subprocess.Popen(command, env=environment, stdout=sys.stderr if quiet else None)
    except OSError as error:
        what = f"{command[0]} cannot be started ({error.strerror}): name a program or a Python file."
        raise RefusedError(what, exit=2) from None
    with _signals_for(child):
        status = child.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def _signals_for(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the child by itself; what ends this process is passed on. Either way what it recorded is kept."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _keep(captures: tuple[Capture, ...]) -> None:
    """In the store of each class's own project."""
    by_root: dict[Path, list[Capture]] = defaultdict(list)
    for each in captures:
        by_root[workspace_root(real_path(each.file))].append(each)
    for root, found in by_root.items():
        try:
            with open_store(root).store as store:
                store.captures.put(found)
        except STORE_ERRORS as error:
            raise RefusedError(f"The store of {root} cannot be written: {error}.") from None


def _as_json(capture: Capture) -> dict[str, Any]:
    return {
        "file": capture.file,
        "class": capture.qualname,
        "signatures": [{"words": call.words, "usable": call.is_usable, **asdict(call)} for call in capture.calls],
        "time": {**asdict(capture.time), "share": capture.time.share} if capture.time else None,
    }


def _show(captures: tuple[Capture, ...]) -> None:
    if not captures:
        words = (
            "No module of a project was called where it is seen: not by Python with -I or -E, and not within code "
            "that torch.compile compiles (--eager turns that off)."
        )
        console(stderr=True).print(words, soft_wrap=True)
    for each in captures:
        line = f"{from_here(each.file)}::{each.qualname}  {wording.captured(each)}"
        console().print(line, markup=False, soft_wrap=True)
        for call in each.calls[:_SHOWN]:
            console().print(f"    {call.calls:,} × {call.words}", markup=False, soft_wrap=True)

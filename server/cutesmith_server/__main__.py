"""The `cutesmith` command: parses, runs one subcommand, and turns every end into an exit status."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cutesmith_server.errors import RefusedError

_RUNS = {
    "serve": ("serving", "serve"),
    "optimize": ("cli.jobs", "optimize"),
    "check": ("cli.jobs", "check"),
    "accept": ("cli.deciding", "accept"),
    "reject": ("cli.deciding", "reject"),
    "remove": ("cli.deciding", "remove"),
    "capture": ("cli.capture", "capture"),
    "retune": ("cli.retuning", "retune"),
    "uninstall": ("cli.uninstalling", "uninstall"),
    "status": ("cli.status", "status"),
    "export": ("cli.export", "export"),
    "report": ("cli.report", "report"),
    "bench": ("cli.bench", "bench"),
    "doctor": ("cli.doctor", "doctor"),
}
_INTERRUPTED, _BROKEN_PIPE = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    _print_any_text()
    try:
        return _run(words)
    except RefusedError as refusal:
        _report(str(refusal), as_json="--json" in words)
        return refusal.exit
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at exit: give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _run(words: list[str]) -> int:
    from cutesmith_server.cli.parser import build_parser

    options: argparse.Namespace = build_parser().parse_args(words)
    _require_folder()
    module, function = _RUNS[options.command]
    return getattr(importlib.import_module(f"cutesmith_server.{module}"), function)(options)


def _require_folder() -> None:
    """Names are relative to it, and PyTorch does not start without one."""
    try:
        Path.cwd()
    except OSError:
        raise RefusedError("The folder that you are in was deleted: change to one that is there.", exit=2) from None


def _print_any_text() -> None:
    """Messages quote the user's files: a character that the terminal cannot show is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _report(sentence: str, *, as_json: bool) -> None:
    if as_json:
        from cutesmith_server.cli.output import print_json

        print_json({"error": sentence})
    print(sentence, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

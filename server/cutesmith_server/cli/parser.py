"""The command line's grammar."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from cutesmith_agent.archs import ARCHS
from cutesmith_server.errors import RefusedError
from cutesmith_server.version import VERSION

_EXITS = (
    "Exit status: 0 a usable kernel, or done; 4 compiled but not run (no device); 3 no kernel, or refused; "
    "2 a usage error or unusable input."
)


class _Parser(argparse.ArgumentParser):
    """Reports its errors as everything else does."""

    def error(self, message: str) -> NoReturn:
        raise RefusedError(f"{self.prog}: {message} (see {self.prog} --help).", exit=2)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="cutesmith", description="CuTe GPU kernels for PyTorch modules.", epilog=_EXITS)
    parser.add_argument("--version", action="version", version=f"cutesmith {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_jobs(commands)
    _add_decisions(commands)
    _add_reports(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = commands.add_parser("serve", help="run the language server on stdin and stdout")
    serve.add_argument("--log", type=Path, metavar="FILE", help="write a log there")


def _add_jobs(commands: argparse._SubParsersAction[_Parser]) -> None:
    optimize = commands.add_parser("optimize", help="make, prove and time a kernel for a module", epilog=_EXITS)
    _add_target(optimize)
    _add_job_options(optimize)
    check = commands.add_parser("check", help="prove and time a kernel that you wrote", epilog=_EXITS)
    _add_target(check)
    check.add_argument("candidate", type=Path, metavar="CANDIDATE.py", help="our contract, or a class ModelNew")
    _add_job_options(check)


def _add_decisions(commands: argparse._SubParsersAction[_Parser]) -> None:
    accept = commands.add_parser("accept", help="take a kernel into your file", epilog=_EXITS)
    _add_target(accept)
    accept.add_argument("--candidate", metavar="ID", help="this one (default: the best)")
    accept.add_argument("--yes", action="store_true", help="do not ask before taking a kernel that was never run")
    _add_json(accept)
    reject = commands.add_parser("reject", help="turn a kernel down")
    _add_target(reject)
    _add_json(reject)
    remove = commands.add_parser("remove", help="take an accepted kernel out of your file again")
    _add_target(remove)
    _add_json(remove)


def _add_reports(commands: argparse._SubParsersAction[_Parser]) -> None:
    status = commands.add_parser("status", help="what is known of the modules of a file, or of this project")
    status.add_argument("file", nargs="?", type=Path, metavar="FILE")
    _add_json(status)
    doctor = commands.add_parser("doctor", help="whether this machine has all that is needed, and what to do if not")
    _add_interpreter(doctor)
    _add_json(doctor)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", metavar="FILE[::Class]", help="a Python file, and the class if it has several")


def _add_job_options(command: argparse.ArgumentParser) -> None:
    _add_interpreter(command)
    arch_help = 'compile for it ("sm_90a"); repeat'
    command.add_argument("--arch", action="append", choices=ARCHS, default=[], metavar="ARCH", help=arch_help)
    devices = ("auto", "cuda", "emulated", "none")
    command.add_argument("--device", choices=devices, default="auto", help="where to run (auto)")
    _add_json(command)


def _add_interpreter(command: argparse.ArgumentParser) -> None:
    command.add_argument("--interpreter", metavar="PYTHON", help="the Python of your project (default: this one)")


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")

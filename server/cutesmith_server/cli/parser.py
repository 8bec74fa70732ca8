"""The command line's grammar."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from cutesmith_agent.archs import ARCHS
from cutesmith_server.errors import RefusedError
from cutesmith_server.version import VERSION

_EXITS = (
    "Exit status: 0 a usable kernel, or done; 4 compiled but not run; 5 a reference waits for your approval; "
    "3 no kernel, or refused; 2 a usage error or unusable input; 130 after Ctrl-C."
)


_TARGET_HELP = "a Python file, and the class if it has several"


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
    _add_export(commands)
    _add_capture(commands)
    _add_bench(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = commands.add_parser("serve", help="run the language server on stdin and stdout")
    serve.add_argument("--log", type=Path, metavar="FILE", help="write a log there")


def _add_jobs(commands: argparse._SubParsersAction[_Parser]) -> None:
    optimize = commands.add_parser("optimize", help="make, prove and time a kernel for a module", epilog=_EXITS)
    _add_target(optimize)
    _add_job_options(optimize)
    _add_model_options(optimize)
    retune = commands.add_parser("retune", help="search on this device for a faster kernel than an accepted one")
    _add_target(retune)
    _add_job_options(retune)
    check = commands.add_parser("check", help="prove and time kernels that you wrote, or all accepted", epilog=_EXITS)
    check.add_argument("target", nargs="?", metavar="FILE[::Class]", help=_TARGET_HELP)
    all_help = "every kernel that this project's code hands over to; proved again where something has changed"
    check.add_argument("--all", action="store_true", help=all_help)
    check.add_argument("--again", action="store_true", help="with --all: all of them, changed or not")
    kernel_help = "our contract, or a class ModelNew; several are judged one after the other"
    check.add_argument("candidates", type=Path, nargs="*", metavar="CANDIDATE.py", help=kernel_help)
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
    uninstall = commands.add_parser("uninstall", help="show how all accepted kernels come out of this project again")
    uninstall.add_argument("--yes", action="store_true", help="take them out")
    _add_json(uninstall)


def _add_reports(commands: argparse._SubParsersAction[_Parser]) -> None:
    status = commands.add_parser("status", help="what is known of the modules of a file, or of this project")
    status.add_argument("file", nargs="?", type=Path, metavar="FILE")
    _add_json(status)
    report = commands.add_parser("report", help="all that is known of a module's kernel, as a page of HTML")
    _add_target(report)
    report.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there (default: stdout)")
    doctor = commands.add_parser("doctor", help="whether this machine has all that is needed, and what to do if not")
    _add_interpreter(doctor)
    _add_json(doctor)


def _add_export(commands: argparse._SubParsersAction[_Parser]) -> None:
    export = commands.add_parser("export", help="what models were asked and answered, as JSON lines")
    export.add_argument("target", nargs="?", metavar="FILE[::Class]", help="of this file or class only")
    export.add_argument("--trajectories", action="store_true", required=True, help="prompt, reply, verdict and reward")
    export.add_argument("--output", type=Path, metavar="FILE", help="write there (default: stdout)")


def _add_capture(commands: argparse._SubParsersAction[_Parser]) -> None:
    capture = commands.add_parser("capture", help="run a program and record how it builds and calls your modules")
    time_help = "how long calls take, too: each class's share of the forward passes"
    capture.add_argument("--time", action="store_true", help=time_help)
    eager_help = "with torch.compile turned off: what compiled code calls is seen, too"
    capture.add_argument("--eager", action="store_true", help=eager_help)
    _add_interpreter(capture)
    _add_json(capture)
    run_help = "what to run: python train.py, pytest, -m package.module, script.py"
    capture.add_argument("run", nargs=argparse.REMAINDER, metavar="-- COMMAND", help=run_help)


def _add_bench(commands: argparse._SubParsersAction[_Parser]) -> None:
    epilog = "Exit status: 0 all tasks have a verdict; 4 the time was up before; 2 a usage error or unusable input."
    bench = commands.add_parser("bench", help="run a folder of KernelBench-style files", epilog=epilog)
    path_help = "a file, or a folder of files, with a class Model, get_inputs() and get_init_inputs()"
    bench.add_argument("paths", type=Path, nargs="+", metavar="PATH", help=path_help)
    out_help = "where results go, and where the same command goes on (cutesmith-bench)"
    bench.add_argument("--out", type=Path, default=Path("cutesmith-bench"), metavar="FOLDER", help=out_help)
    shard_help = "run the K-th of N equal parts; parts with one --out make one result"
    bench.add_argument("--shard", type=_shard, default=(1, 1), metavar="K/N", help=shard_help)
    limit_help = "start no task after so many seconds (default: no limit)"
    bench.add_argument("--time-limit", type=_seconds, metavar="SECONDS", help=limit_help)
    ray_help = "on a Ray cluster, a task at a time on each GPU: its head's HOST:PORT, or local for this machine's GPUs"
    bench.add_argument("--ray", metavar="ADDRESS", help=ray_help)
    _add_device(bench)
    _add_json(bench)


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise argparse.ArgumentTypeError(f"{text!r} is no part of a whole: give 1/4, 2/4 and so on")


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no time: give seconds above 0")


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", metavar="FILE[::Class]", help=_TARGET_HELP)


def _add_job_options(command: argparse.ArgumentParser) -> None:
    _add_device(command)
    lowered_help = "a kernel may be less precise than the module; what it is stays said"
    command.add_argument("--allow-lowered-precision", action="store_true", help=lowered_help)
    tune_help = "time torch.compile's max-autotune mode, too (it searches for minutes)"
    command.add_argument("--max-autotune", action="store_true", help=tune_help)
    wait_help = "refuse where another job of yours has the device (default: wait for it, for half an hour at most)"
    command.add_argument("--no-wait", action="store_true", help=wait_help)
    _add_json(command)


def _add_device(command: argparse.ArgumentParser) -> None:
    _add_interpreter(command)
    arch_help = 'compile for it ("sm_90a"); repeat'
    command.add_argument("--arch", action="append", choices=ARCHS, default=[], metavar="ARCH", help=arch_help)
    devices = ("auto", "cuda", "emulated", "none")
    device_help = "where to run (auto: the CUDA device, else emulated, on the CPU; none: compile only)"
    command.add_argument("--device", choices=devices, default="auto", help=device_help)


def _add_model_options(command: argparse.ArgumentParser) -> None:
    proposers = (
        "recipes (offline), llm (a model goes on from the recipes' best), or auto (a model where no recipe fits)"
    )
    command.add_argument("--proposer", choices=("recipes", "auto", "llm"), default="auto", help=f"{proposers} (auto)")
    command.add_argument("--model", metavar="NAME", help="the model to ask (default: the newest Opus or Sonnet)")
    command.add_argument(
        "--effort", choices=("low", "medium", "high", "xhigh", "max"), help="how hard it thinks (medium)"
    )
    command.add_argument(
        "--max-dollars", type=_above_zero("amount of money"), metavar="USD", help="what the model may cost (3)"
    )
    command.add_argument(
        "--max-minutes", type=_above_zero("time"), metavar="MIN", help="what the model's part may take (60)"
    )
    command.add_argument("--max-rounds", type=_rounds, metavar="N", help="rounds of optimisation by the model (10)")
    command.add_argument("--resume", action="store_true", help="go on with the last job, even one that came to its end")
    yes_help = "agree to code of this project being sent to the model, and to the reference it writes for a docstring"
    command.add_argument("--yes", action="store_true", help=yes_help)


def _above_zero(what: str) -> Callable[[str], float]:
    """What reads an option's number."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if 0 < (number := float(text)) < float("inf"):
                return number
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}: give a number above 0")

    return read


def _rounds(text: str) -> int:
    with suppress(ValueError):
        if (number := int(text)) > 0:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds: give 1 or more")


def _add_interpreter(command: argparse.ArgumentParser) -> None:
    command.add_argument("--interpreter", metavar="PYTHON", help="the Python of your project (default: this one)")


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")

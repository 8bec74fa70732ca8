"""Answers `compile`: a candidate through `cute.compile` for each arch, without a GPU."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutesmith_evaluator.types import Compilation, Finding, Resources, Task
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import KernelBenchCandidate, LoadedCandidate, load_candidate
from cutesmith_evaluator.worker.cubin import kernels_of
from cutesmith_evaluator.worker.failures import TaskError, finding_of
from cutesmith_evaluator.worker.kernel_names import function_name
from cutesmith_evaluator.worker.observed import declared
from cutesmith_evaluator.worker.reference import Reference, load_reference
from cutesmith_evaluator.worker.tracing import Subject, faking, prepare

Progress = Callable[[str], None]

_THREADS = re.compile(r"\.(?:req|max)ntid (\d+)(?:, (\d+))?(?:, (\d+))?")
_MAX_THREADS = 1024
# Shared memory that a block may have (CUDA C++ Programming Guide, compute capabilities).
_MAX_SHARED_KIB = {"sm_80": 163, "sm_86": 99, "sm_89": 99, "sm_90": 227, "sm_100": 227, "sm_103": 227, "sm_120": 99}


@dataclass(frozen=True)
class _Result:
    seconds: float = 0.0
    resources: tuple[Resources, ...] = ()
    findings: tuple[Finding, ...] = ()


def compile_candidate(params: dict[str, Any], progress: Progress) -> Compilation:
    """`params`: {"task", "candidate", "archs"}. Problems of the task and the candidate are findings of the result.

    The first arch decides: a kernel that others cannot run (clusters before sm_90, say) is still one for the first."""
    path = Path(params["candidate"])
    try:
        dsl.load()
        reference = load_reference(Task(**params["task"]))
        subject = prepare(reference)
        results = _for_archs(params["archs"], lambda arch: _for_arch(path, reference, subject, arch, progress))
    except TaskError as error:
        return Compilation(False, 0.0, (), (error.finding,))
    findings = tuple(dict.fromkeys(finding for result in results for finding in result.findings))
    return Compilation(
        ok=not any(finding.severity == "error" for finding in findings),
        seconds=max((result.seconds for result in results), default=0.0),
        resources=tuple(each for result in results for each in result.resources),
        findings=findings,
    )


def _for_archs(archs: list[str], compile_: Callable[[str], _Result]) -> list[_Result]:
    """The first arch's result, and where that is without errors the others' too."""
    first, *others = archs
    result = compile_(first)
    if any(finding.severity == "error" for finding in result.findings):
        return [result]
    return [result, *(_elsewhere(compile_(arch), arch, first) for arch in others)]


def _for_arch(path: Path, reference: Reference, subject: Subject, arch: str, progress: Progress) -> _Result:
    progress(f"compiling for {arch}")
    candidate = load_candidate(path, reference)  # anew: what it compiled for another arch is cached in it
    scratch = os.environ.get("CUTESMITH_SCRATCH")
    with dsl.compiling_for(arch, Path(scratch) if scratch else None) as compiles:
        failure = _warm_up(candidate, subject)
    if failure is not None:
        finding = _finding(failure, candidate, compiles)
        if finding.severity == "error" or not compiles.done:
            return _Result(findings=(finding,))
    elif not compiles.done:
        return _Result(findings=tuple(_nothing_compiled(candidate)))
    return _Result(
        seconds=max(each.seconds for each in compiles.done),
        resources=tuple(use for each in compiles.done for use in _resources(each, arch, path)),
        findings=tuple(finding for each in compiles.done for finding in _launch_limits(each, arch, path)),
    )


def _elsewhere(result: _Result, arch: str, first: str) -> _Result:
    """An error there limits where the kernel runs, and is no fault of it."""
    findings = tuple(_limited(each, arch, first) if each.severity == "error" else each for each in result.findings)
    return replace(result, findings=findings)


def _limited(finding: Finding, arch: str, first: str) -> Finding:
    reason = finding.message.partition(" This kernel is only compatible")[0].rstrip(".")
    return replace(
        finding, kind="not-for-arch", message=f"Not for {arch} ({first} decides): {reason}.", severity="warning"
    )


def _warm_up(candidate: LoadedCandidate, subject: Subject) -> BaseException | None:
    try:
        with faking(subject.mode):
            candidate.warm_up(subject.module, *subject.arguments)
    except BaseException as error:  # noqa: BLE001 - the candidate may raise anything
        return error
    return None


def _finding(failure: BaseException, candidate: LoadedCandidate, compiles: dsl.Compiles) -> Finding:
    if compiles.error is not None and not dsl.wants_driver(compiles.error):
        return dsl.finding_of_compile(compiles.error, candidate.path)
    if compiles.error is not None or isinstance(candidate, KernelBenchCandidate):
        return _needs_device(candidate)
    return finding_of(failure, "warm-up-raised", "warming up", candidate.path)


def _needs_device(candidate: LoadedCandidate) -> Finding:
    message = (
        f"{candidate.path.name} compiles only with a device (real tensors, or what the driver knows of one); "
        "it was not compiled here: try it on a machine with a CUDA device."
    )
    return Finding("needs-device", message, None, str(candidate.path), "information")


def _nothing_compiled(candidate: LoadedCandidate) -> Iterator[Finding]:
    """None where there is nothing to compile: a view needs no kernel."""
    if isinstance(candidate, KernelBenchCandidate):
        yield _needs_device(candidate)
    elif declared(candidate.path).has_kernels:
        message = (
            f"warm_up in {candidate.path.name} compiles nothing through cute.compile; let it compile every kernel."
        )
        yield Finding("nothing-compiled", message, None, str(candidate.path))


def _resources(compiled: dsl.Compiled, arch: str, path: Path) -> list[Resources]:
    return [
        Resources(
            kernel=function_name(use.symbol, path),
            arch=arch,
            registers=use.registers,
            shared_bytes=use.static_shared_bytes + compiled.dynamic_shared.get(use.symbol, 0),
            spill_bytes=use.frame_bytes,
        )
        for use in kernels_of(compiled.cubin)
    ]


def _launch_limits(compiled: dsl.Compiled, arch: str, path: Path) -> list[Finding]:
    """Launches that no device of this arch can make, though they compile."""
    threads = max((math.prod(int(n or 1) for n in found) for found in _THREADS.findall(compiled.ptx)), default=0)
    limit = _MAX_SHARED_KIB.get(arch.rstrip("af"), 0) * 1024
    shared = max((each.shared_bytes for each in _resources(compiled, arch, path)), default=0)
    problems = []
    if threads > _MAX_THREADS:
        problems.append(f"{threads} threads per block (at most {_MAX_THREADS})")
    if limit and shared > limit:
        problems.append(f"{shared} bytes of shared memory per block (at most {limit} on {arch})")
    return [Finding("launch-limit", f"{path.name} asks for {each}.", None, str(path)) for each in problems]

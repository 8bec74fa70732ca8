"""The requests a worker answers. Each takes the request's parameters and a function that reports progress.

Imports are lazy: an interpreter without torch still answers `hello`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cutesmith_evaluator.confirmation import STEPS
from cutesmith_evaluator.probing import Probing
from cutesmith_evaluator.types import Compilation, Finding, Inspection, Profile, Timing, Validation
from cutesmith_evaluator.worker.environment import environment, missing_torch

Progress = Callable[[str], None]
Params = dict[str, Any]
Method = Callable[[Params, Progress], object]


def _hello(params: Params, progress: Progress) -> object:
    return environment()


def _load(params: Params, progress: Progress) -> object:
    """Params: dsl, whether that is imported too. What is missing is told by the request that needs it."""
    with suppress(Exception):
        progress("importing torch and the CuTe DSL, once")
        from cutesmith_evaluator.worker import compilation, confirm_methods, validate  # noqa: F401
        from cutesmith_evaluator.worker.dsl import load

        if params["dsl"]:
            load()
    return None


def _inspect(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Inspection(environment(), None, (), (finding,))
    from cutesmith_evaluator.worker.inspection import inspect

    return inspect(params, progress)


def _probe(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Probing(findings=(finding,))
    from cutesmith_evaluator.worker.probing import probe

    return probe(params, progress)


def _compile(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Compilation(False, 0.0, (), (finding,))
    from cutesmith_evaluator.worker.compilation import compile_candidate
    from cutesmith_evaluator.worker.integrity import integrity

    integrity().look_around()
    try:
        return compile_candidate(params, progress)
    finally:
        integrity().restore()  # what the candidate replaced; it does so again when it is validated, which says it


def _validate(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Validation(None, "none", findings=(finding,))
    from cutesmith_evaluator.worker.validate import chosen_device, validate

    busy = _busy(chosen_device(params), progress)
    verdict = validate(params, progress)
    return replace(verdict, findings=(*verdict.findings, *busy))


def _time(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Timing("none", (), 0.0, 0, 0.0, 0.0, (finding,))
    from cutesmith_evaluator.worker.timing import time_arms
    from cutesmith_evaluator.worker.validate import chosen_device

    busy = _busy(chosen_device(params), progress)
    timing = time_arms(params, progress)
    return replace(timing, findings=(*timing.findings, *busy))


def _busy(device: Any, progress: Progress) -> tuple[Finding, ...]:
    """Waits for other programs on a CUDA device. A finding where they did not end."""
    if device is None:
        return ()
    from cutesmith_evaluator.worker.device_load import await_device

    finding = await_device(device, progress)
    return (finding,) if finding else ()


def _profile(params: Params, progress: Progress) -> object:
    if finding := missing_torch():
        return Profile("none", 0, (), findings=(finding,))
    from cutesmith_evaluator.worker.profile import profile

    return profile(params, progress)


def _confirming(name: str) -> Method:
    """A step of a confirmation, by its name."""

    def call(params: Params, progress: Progress) -> object:
        from cutesmith_evaluator.worker.confirm_methods import CONFIRMING

        return CONFIRMING[name](params, progress)

    return call


_OWN: Mapping[str, Method] = {
    "hello": _hello,
    "load": _load,
    "inspect": _inspect,
    "probe": _probe,
    "compile": _compile,
    "validate": _validate,
    "time": _time,
    "profile": _profile,
}
METHODS: Mapping[str, Method] = {**_OWN, **{name: _confirming(name) for name in STEPS}}
assert len(METHODS) == len(_OWN) + len(STEPS), "two requests of one name"

"""A project whose store tells of jobs on a GPU that made, timed and refused several kernels of one class.

The figures are made up: they are there for what shows them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from class_views import ERROR, TEXT
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import JobKey
from cutesmith_agent.store.store import Store
from cutesmith_evaluator.types import (
    Arm,
    Candidate,
    Conditions,
    Environment,
    Finding,
    Hint,
    KernelMeasures,
    Launching,
    Profile,
    Ratio,
    Resources,
    Roofline,
    Speedup,
    Timing,
)
from cutesmith_evaluator.wire import converter

ENVIRONMENT = Environment("3.12.3", "2.11.0+cu130", "4.8.1", "0.1.15", "NVIDIA H200", "sm_90a", "580.65")
SOURCE = 'import torch\n\n\ndef forward(module, x):\n    return "<b>&amp;" and x\n'
BYTES = 2 * 8192 * 4096 * 4


def told_project(root: Path, *, name: str = "A") -> Path:
    """The module's file. An earlier job's kernel was slower; of the last job one candidate failed to compile, one was
    wrong, two were right and timed, the last was asked of a model."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text("")
    file = root / "a.py"
    file.write_text(TEXT)
    with open_store(root).store as store:
        _job(store, file, name, [_timed("0ld0ld0ld0ld", 0.171)])
        _job(
            store,
            file,
            name,
            [
                _failed("badbadbadbad", "compile", Finding("compile-error", "tile is <not> defined.", 4)),
                _failed("wr0ngwr0ngwr", "validate", Finding("wrong-values", "12 of 65536 values are wrong.")),
                _timed("s10ws10ws10w", 0.125),
                replace(_timed("fa5tfa5tfa5t", 0.0634), origin="llm"),
            ],
        )
    return file


def _job(store: Store, file: Path, name: str, candidates: list[Candidate]) -> None:
    job = store.begin_job(JobKey("optimize", str(file), name, "d", "c"), resume=False)
    stored = [replace(each, path=str(store.save_source(job, each.id, "a_cute", SOURCE))) for each in candidates]
    for each in stored:
        store.save_candidate(job, each, ENVIRONMENT)
        store.add_transition(job, each.stage, "passed", each.id)
    store.finish_job(job, _report(file, name, stored))


def _report(file: Path, name: str, candidates: list[Candidate]) -> dict[str, Any]:
    best = candidates[-1]
    return {
        "task": {"file": str(file), "class": name, "category": "pointwise", "ops": ["aten.relu.default"] * 8},
        "device": "NVIDIA H200",
        "arch": "sm_90a",
        "environment": asdict(ENVIRONMENT),
        "candidates": [converter().unstructure(each) for each in candidates],
        "best": best.id,
        "stopped": "Stopped: within 5 % of the roofline.",
        "findings": [],
        "estimate_ms": 0.0639,
        "kernel": {"path": str(file.with_name("a_cute.py")), "source": SOURCE},
        "patch": "--- a\n",
        "model": {
            "name": "claude-sonnet-5",
            "calls": 3,
            "uncached": 21_000,
            "cached": 64_000,
            "output": 5_200,
            "dollars": 0.34,
            "prices": "list prices of 2026-11-20",
            "candidates": {best.id: 0.34},
        },
        "reference": None,
    }


def _failed(id: str, stage: Any, finding: Finding) -> Candidate:
    return Candidate(id, "recipe", stage, False, findings=(finding,), schedule={"threads": 1024})


def _timed(id: str, ms: float) -> Candidate:
    return Candidate(
        id,
        "recipe",
        "time",
        True,
        precision="kept",
        error=ERROR,
        resources=(Resources("a_kernel", "sm_90a", 26, 16_384, 0),),
        compile_s=0.32,
        timing=_timing(ms),
        speedup=Speedup(0.3 / ms, 0.13 / ms),
        schedule={"threads": 256, "vector": 4},
        device="NVIDIA H200",
        profile=_profile(ms),
    )


def _timing(ms: float) -> Timing:
    known = Conditions(1980.0, 3201.0, 512.0, 45.0, (), 12)
    arms = [("candidate", ms), ("eager", 0.3), ("compile", 0.13), ("control", 0.301)]
    return Timing(
        "NVIDIA H200",
        tuple(Arm(name, each, each * 0.98, each * 1.03, 30, known) for name, each in arms),  # type: ignore[arg-type]
        copy_gbps=4230.0,
        bytes=BYTES,
        fraction_of_copy=BYTES / (ms * 1e-3) / 4.23e12,
        noise=0.011,
        ratios=(Ratio("eager", "candidate", 0.3 / ms, 0.295 / ms, 0.305 / ms),),
        launches=(Launching("candidate", ms * 1.1, ms), Launching("eager", 0.32, None)),
    )


def _profile(ms: float) -> Profile:
    floor = BYTES / 4.23e12 * 1e3
    measures = KernelMeasures(
        *("a_kernel", 1, ms * 1e3, 4096, 256, float(BYTES), 0.91, 0.4, 0.3, 0.22, 0.88, "registers", 26, 16_384),
        *(16.0, 16.0, 0.0, 0.0),
    )
    return Profile(
        *("sm_90a", BYTES, ()),
        measured=(measures,),
        roofline=Roofline(1.0, 15.9, floor, floor / ms, "a copy on NVIDIA H200 in the same run"),
        limiter="memory",
        hints=(Hint("Loads are 4 bytes a thread: load 16.", 5, 0.2), Hint("Two passes over memory.", None, 0.1)),
    )

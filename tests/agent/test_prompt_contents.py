"""What the prompt of each call contains, and what it must not: read from what reached the model's endpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.refine.profile import rounds_before
from cutesmith_agent.refine.prompts import menu
from cutesmith_evaluator.types import Category, Graph, GraphInput, Guard, Inspection, Node, Ref, TensorSpec
from model_rig import ModelRig, make_model_rig, round_of, source, turned, written
from scripted_evaluator import BYTES, GRAPH, H200, Script
from scripted_messages import Act, Request, bottleneck

PROFILER = (
    "The profiler on the best kernel",
    "Nsight Compute",
    "registers a thread",
    "of a copy's bandwidth",
    "signal:",
    "what limits it most",
    "hint",
)
X = TensorSpec((64, 1024), "float32", (1024, 1))
SOFTMAX = Graph(
    inputs=(GraphInput("x", "argument", X, 0), GraphInput("w", "parameter", X, None, "gain.weight")),
    nodes=(Node("mul", "aten.mul.Tensor", (Ref("x"), Ref("w")), {}, (X,)),
           Node("soft", "aten._softmax.default", (Ref("mul"), -1, False), {}, (X,))),
    outputs=(Ref("soft"),),
    returns_tuple=False,
    guards=(Guard(-1, "dim"), Guard("/home/somebody/weights.pt", "source")),
    dynamic_dims=(((0, 0),),),
    category="softmax",
    flops=327_680,
    bytes=BYTES,
)  # fmt: skip
AT_4, AT_3 = Script(ms=4.0), Script(ms=3.0)
BROKEN, TAILED = Script(ms=4.0, compile="fails"), Script(ms=3.0, quick="fails")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def of(category: Category) -> Inspection:
    return Inspection(H200, replace(GRAPH, category=category), ("x",))


def shows_the_profiler(request: Request) -> bool:
    return any(words in request.moment for words in PROFILER)


def test_how_late_the_profiler_is_depends_on_the_category() -> None:
    late = {"pointwise": 2, "loss": 3, "matmul": 6, "attention": 6, "conv": 6, "mixed": 6}
    assert {each: rounds_before(each) for each in get_args(Category)} == {
        each: late.get(each, 5) for each in get_args(Category)
    }


@pytest.mark.parametrize(("category", "late"), [("pointwise", 2), ("loss", 3), ("softmax", 5), ("conv", 6)])
def test_the_profiler_is_withheld_until_its_round(model: ModelRig, category: Category, late: int) -> None:
    """Every round gains, so that no plateau shows it sooner."""
    steps = [Script(ms=9.0 - step) for step in range(late + 2)]
    model.rig.evaluator.inspection = of(category)
    acts: list[Act] = [written(steps[0]), *(act for a, b in pairwise(steps) for act in round_of(a, b))]
    model.run(acts, job=replace(model.job, model=Wish(max_rounds=late + 1)))
    told = [shows_the_profiler(request) for request in model.requests]
    assert told == [False] * (1 + 2 * late) + [True] * 2
    assert all(words in model.requests[-1].moment for words in PROFILER[:4])


def test_two_rounds_without_a_gain_show_it_sooner(model: ModelRig) -> None:
    model.rig.evaluator.inspection = of("matmul")
    slower = [Script(ms=5.0 + step) for step in range(3)]
    model.run([written(AT_4), *(act for one in slower for act in round_of(AT_4, one))],
              job=replace(model.job, model=Wish(max_rounds=3)))  # fmt: skip
    assert list(map(shows_the_profiler, model.requests)) == [False] * 5 + [True] * 2


def test_each_prompt_has_its_parts_and_no_more(model: ModelRig) -> None:
    """A first kernel that does not compile, its fix, and a round whose change has to be mended."""
    model.rig.evaluator.inspection = Inspection(H200, SOFTMAX, ("x",))
    acts: list[Act] = [
        written(BROKEN, "a first kernel"),
        turned(BROKEN, AT_4, "compiles"),
        bottleneck("load 16 bytes at once"),
        turned(AT_4, TAILED, "wide loads"),
        turned(TAILED, AT_3, "with the last columns"),
    ]
    model.run(acts, job=replace(model.job, model=Wish(max_rounds=1)))
    first, fix, judge, code, mend = model.requests
    for request in model.requests:
        _has_the_task(request)
        _is_cacheable(request)
    assert "There is no kernel yet" in first.moment
    assert source(BROKEN) not in first.moment

    assert "It failed at the stage 'compile'" in fix.moment
    assert "- compile-error: line 7: It does not compile." in fix.moment
    assert f"   7> {source(BROKEN).splitlines()[6]}" in fix.moment, "the line that the finding names is marked"
    assert json.loads(_listed(fix, "SCRIPT = "))["compile"] == "fails"

    assert "Do not write code yet" in judge.moment
    assert "The best kernel so far: right, precision kept, 4 ms" in judge.moment
    assert json.loads(_listed(judge, "SCRIPT = "))["ms"] == 4.0
    assert "Tried on it" not in judge.moment, "nothing was"

    for said in (
        "# The bottleneck to relieve\nthe loads are narrow",
        "Evidence: line 40",
        "Change: load 16 bytes at once",
    ):
        assert said in code.moment
        assert said not in judge.moment + mend.moment
    assert "Make this one change to the best kernel, and nothing else." in code.moment

    assert "It failed at the stage 'validate'" in mend.moment
    assert "gives other values." in mend.moment
    assert "which failed" in mend.moment
    assert '"quick": "fails"' in mend.moment
    assert not any(map(shows_the_profiler, model.requests))


def _has_the_task(request: Request) -> None:
    prompt = request.prompt
    assert prompt.startswith("# Your part"), "what never changes comes first"
    for told in (
        "class NewGELU(nn.Module):",
        "Category: softmax. Target: sm_90a (NVIDIA H200). Such a device has 132 multiprocessors",
        "- x: float32[64, 1024] strides (1024, 1), argument 0",
        "- w: float32[64, 1024] strides (1024, 1), parameter module.gain.weight",
        "- soft = aten._softmax.default(mul, -1, False) -> float32[64, 1024]",
        "module.dim == -1, module.source == 'weights.pt'",
        "Dimensions that may change together at run time (argument, dimension): (0, 0).",
        "327,680 floating-point operations; 4,200,000,000 bytes must be moved at least.",
        "Moving them takes at least 1 ms: an estimate:",
        "at 4.2 TB/s (H200, device-to-device copy, measured).",
        menu(("softmax",)),
        "# Reductions, shuffles and row-wise kernels",
    ):
        assert told in prompt
    assert "/home/somebody" not in prompt


def _is_cacheable(request: Request) -> None:
    """At most four marks, as the API takes them, the first two on what never changes within a job."""
    blocks = [*request.body["system"], *request.body["messages"][0]["content"]]
    marked = ["cache_control" in block for block in blocks]
    assert marked[:2] == [True, True]
    assert sum(marked) <= 4
    assert not marked[-1], "the request itself is new each time"


def _listed(request: Request, begin: str) -> str:
    """The rest of the first line of the listing that begins so."""
    lines = (line[6:] for line in request.moment.split("\n"))
    return next(line for line in lines if line.startswith(begin)).removeprefix(begin)


def test_a_chain_brings_what_its_dearest_part_needs(model: ModelRig) -> None:
    """A convolution with a tail is mixed: it is told of tensor cores, too."""
    conv = Node("conv", "aten.convolution.default", (Ref("x"), Ref("w")), {}, (X,))
    graph = replace(SOFTMAX, category="mixed", nodes=(conv, *SOFTMAX.nodes), flops=669_081_600_000)
    model.rig.evaluator.inspection = Inspection(H200, graph, ("x",))
    model.run([written(Script(ms=1.01))])
    (request,) = model.requests
    assert menu(("conv", "softmax", "mixed")) in request.prompt
    assert "The operations take at least 10 ms without tensor cores: save those first." in request.prompt
    assert "# Tensor cores by wgmma, with TMA (sm_90a only)" in request.prompt
    assert "warpgroup.wait_group(0)" in request.prompt, "with its example"

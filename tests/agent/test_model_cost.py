"""What one full loop costs: tokens read anew, tokens found in the cache, dollars. `-s` prints the figures
of docs/agent.md.

The kernel is a real one (a recipe's masked softmax, 266 lines). Tokens are counted as `scripted_messages.tokens` does.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cutesmith_agent.llm.settings import Wish
from cutesmith_evaluator.types import Category, Inspection
from model_rig import make_model_rig
from scripted_evaluator import GRAPH, H200, Script
from scripted_messages import Act, bottleneck, kernel, patch

KERNEL = Path(__file__).parent / "data" / "masked_softmax_cute.py"
CUTEGEN_INPUT = 160_000  # tokens per kernel, as its saved runs count them: 14.9 calls for at most 11 versions
SHARE = 0.4


def whole(script: Script) -> str:
    return f"{KERNEL.read_text()}\n# a model's\n{_line(script)}\n"


def _line(script: Script) -> str:
    return f"SCRIPT = {json.dumps(asdict(script))}"


def edited(before: Script, after: Script, summary: str) -> Act:
    return patch(_line(before), _line(after), summary)


def eleven_versions(every: int) -> list[Act]:
    """A first kernel that needs two fixes, then ten rounds: three break something first, and every so many make it
    faster, whereupon all of the new kernel is read."""
    now = Script(ms=20.0)
    broken, wrong = replace(now, compile="fails"), replace(now, quick="fails")
    acts = [kernel(whole(broken)), edited(broken, wrong, "compiles"), edited(wrong, now, "covers the tail")]
    for number in range(10):
        faster = Script(ms=20.0 + (-1.5 if number % every == 0 else 1.5) * (number + 1))
        bad = replace(faster, quick="fails") if number in (1, 4, 7) else None
        acts += [bottleneck("wider loads"), edited(now, bad or faster, "wider loads")]
        acts += [edited(bad, faster, "with the last columns")] if bad else []
        now = faster if number % every == 0 else now
    return acts


@pytest.mark.parametrize(("category", "every"), [("softmax", 1), ("softmax", 2), ("pointwise", 1), ("matmul", 1)])
def test_a_full_loop_reads_less_anew_than_the_bound(
    category: Category, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's own category, that whose profile is shown soonest, and that which is told most."""
    model = make_model_rig(tmp_path, monkeypatch.setenv)
    model.rig.evaluator.inspection = Inspection(H200, replace(GRAPH, category=category), ("x",))
    acts = eleven_versions(every)
    report = model.run(acts, job=replace(model.job, model=Wish(max_rounds=10)))
    assert len(model.requests) == len(acts)
    used = report["model"]
    print(
        f"\n{category}, a gain every {every}, {used['calls']} calls: {used['uncached']:,} tokens read anew,",
        f"{used['cached']:,}",
        end=" ",
    )
    written = used["output"] * 20.0 / 1e6  # claude-opus-5-5's price of output
    print(f"from the cache: ${used['dollars'] - written:.3f}; {used['output']:,} written: ${written:.3f}")
    assert used["uncached"] <= SHARE * CUTEGEN_INPUT
    assert used["dollars"] < 3.0

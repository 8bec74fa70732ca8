"""The candidate files of tests/evaluator/cheats and tests/evaluator/honest, by what their first lines say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cutesmith_evaluator.guards.static import Judgement, Signature, judge
from cutesmith_evaluator.types import Task

_EVALUATOR = Path(__file__).parents[1] / "evaluator"
TASKS = _EVALUATOR / "cheat_tasks"
ROWS = (((0, 0),),)  # the dimension of the tasks' inputs that may change


@dataclass(frozen=True)
class Judged:
    """`caught`: (how, kind of finding) pairs; how is "static", "compile", "dynamic" or "timing". `label`: or None."""

    path: Path
    what: str
    task: Task
    kind: str = ""
    caught: tuple[tuple[str, str], ...] = ()
    label: str | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    def kinds(self, how: str) -> set[str]:
        return {kind for each, kind in self.caught if each == how}

    def judgement(self) -> Judgement:
        """With what the agent would know of the task."""
        state = frozenset() if self.task.qualname in ("Softmax", "Zero", "View") else frozenset({"weight"})
        return judge(self.path.read_text(), self.path, Signature(frozenset({0}), state, 23))


def cheats() -> list[Judged]:
    return [_read(path) for path in sorted((_EVALUATOR / "cheats").glob("*.py"))]


def honest() -> list[Judged]:
    return [_read(path) for path in sorted((_EVALUATOR / "honest").glob("*.py"))]


def _read(path: Path) -> Judged:
    said = dict(re.findall(r"^# (\w+): (.*)$", path.read_text(), re.MULTILINE))
    caught = [tuple(each.split()) for each in said.get("caught", "").split(", ") if each]
    task = Task(str(TASKS / f"{said['task']}_task.py"), said["task"].capitalize())
    pairs = tuple((how, kind) for how, kind in caught)
    return Judged(path, said["what"], task, said.get("kind", ""), pairs, said.get("label"))


def kernel_without_forward() -> str:
    """The plain honest candidate, up to its forward."""
    return (_EVALUATOR / "honest" / "plain.py").read_text().partition("def forward")[0]


def disguised() -> dict[str, str]:
    """Cheats in disguise by name: what stands in the place of that forward."""
    text = (_EVALUATOR / "data" / "disguised.txt").read_text()
    return dict(re.findall(r"^### (.+)\n((?:(?!### ).*\n)+)", text, re.MULTILINE))


LAUNCHING = "    y = torch.empty_like(x)\n    _launcher()(x, module.weight, y)\n    return y\n"

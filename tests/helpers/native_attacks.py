"""Wrong kernels that attack the process they run in: tests/evaluator/attacks, each with the same wrong kernel."""

from __future__ import annotations

from pathlib import Path

from cutesmith_evaluator.types import Task
from judged_candidates import TASKS, kernel_without_forward

FOLDER = Path(__file__).parents[1] / "evaluator" / "attacks"
TASK = Task(str(TASKS / "scaled_task.py"), "Scaled")
_RIGHT, _WRONG = "cutlass.max(gX[row, column], cutlass.Float32(0.0))", "gX[row, column]"
_FORWARD = """

def forward(module, x):
    attack()
    y = torch.empty_like(x)
    _launcher()(x, module.weight, y)
    return y
"""


def attacker(name: str, folder: Path, *, right: bool = False) -> Path:
    """A candidate for TASK in the folder whose forward attacks first. `right`: its kernel is."""
    head = kernel_without_forward()
    assert _RIGHT in head
    kernel = head if right else head.replace(_RIGHT, _WRONG)
    path = folder / f"{name}_cute.py"
    path.write_text(kernel + "\n" + (FOLDER / f"{name}.py").read_text() + _FORWARD)
    return path

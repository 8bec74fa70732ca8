"""KernelBench level 2, the tasks with a convolution, as files with a class `Model` for `cutesmith bench`.

`python benchmarks/kernelbench/level2.py FOLDER` writes FOLDER/level2/NUMBER_NAME.py from level2.toml.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_suffix(".toml")
HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
"""


@dataclass(frozen=True)
class Level2Task:
    """`holds`: the constructor's statements after `self.`; `computes`: forward's, of which the last is the result."""

    number: int
    name: str
    holds: tuple[str, ...]
    computes: tuple[str, ...]
    inputs: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(facts: dict[str, Any]) -> Level2Task:
        shapes = tuple(tuple(shape) for shape in facts["inputs"])
        return Level2Task(facts["number"], facts["name"], tuple(facts["holds"]), tuple(facts["computes"]), shapes)

    @property
    def file_name(self) -> str:
        return f"{self.number}_{self.name}.py"

    def source(self) -> str:
        """The file, with inputs between 0 and 1 at the task's own sizes."""
        parameters = ", ".join(("x", "other")[: len(self.inputs)])
        *steps, result = self.computes
        made = ", ".join(f"torch.rand{shape}" for shape in self.inputs)
        lines = [
            *(f"        self.{line}" for line in self.holds),
            "",
            f"    def forward(self, {parameters}):",
            *(f"        {line}" for line in steps),
            f"        return {result}",
            *("", "", "def get_inputs():", f"    return [{made}]"),
            *("", "", "def get_init_inputs():", "    return []", ""),
        ]
        return HEAD + "\n".join(lines)


def tasks() -> tuple[Level2Task, ...]:
    return tuple(map(Level2Task.of, tomllib.loads(FACTS.read_text())["task"]))


def write(folder: Path) -> tuple[Path, ...]:
    """KernelBench's layout."""
    place = folder / "level2"
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for task in tasks():
        written.append(place / task.file_name)
        written[-1].write_text(task.source())
    return tuple(written)


if __name__ == "__main__":
    write(Path(sys.argv[1]))

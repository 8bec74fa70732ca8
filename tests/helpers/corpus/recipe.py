"""A recipe's kernel in the corpus: the module that it is made for, and which draft."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from suite import ROOT, Case

MODULES = ROOT / "tests" / "agent" / "recipes"
FORMS = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}

# Of floating inputs and parameters: hashed numbers; small whole ones, whose sums are exact in any order and in TF32;
# hashed ones with Inf, NaN, zeros and subnormals among them, and lines of other orders of magnitude.
Values = Literal["spread", "whole", "special"]


@dataclass(frozen=True)
class Recipe:
    """A recipe's kernel: the first draft whose schedule has `pick`. `constants`: what its module's file is given."""

    name: str
    file: Path
    qualname: str
    constants: dict[str, str]
    pick: dict[str, int] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()  # what its digest covers besides the kernel
    arch: str = "sm_90a"  # that the recipe is asked for
    values: Values = "spread"
    rounds_weights: bool = (
        False  # to the results' type, before a sum: where fusing moves one across a midpoint, sums differ
    )

    @property
    def member(self) -> str:
        """The file's name in the archive."""
        return f"{self.name.replace(' ', '_')}_cute.py"

    def task(self) -> Case:
        return Case(self.name, self.file, self.qualname, "pointwise", self.constants)


def of_module(
    file: str,
    name: str,
    kind: str,
    form: str = "fp32",
    shapes: str | None = None,
    values: Values = "spread",
    arch: str = "sm_90a",
    **pick: int,
) -> Recipe:
    """Of a class in a file of the recipes' modules, with its inputs' shapes and dtype."""
    constants = {} if form == "fp32" else {f"DTYPES[{kind!r}]": FORMS[form]}
    if shapes is not None:
        constants[f"SHAPES[{kind!r}]"] = shapes
    return Recipe(name, MODULES / f"{file}.py", kind, constants, pick, values=values, arch=arch)

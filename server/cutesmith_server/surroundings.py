"""What an interpreter and this machine have, without running anything: read from the files that say so.

Compared with the environment of a verdict, which holds for that alone. What cannot be read is not known, and nothing is
claimed of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cutesmith_evaluator.types import Environment

_DRIVER = Path("/sys/module/nvidia/version")
_GPUS = Path("/proc/driver/nvidia/gpus")
_MODEL = re.compile(r"^Model:\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Surroundings:
    """Versions, and the models of the GPUs; None: not known."""

    torch: str | None = None
    dsl: str | None = None
    driver: str | None = None
    devices: tuple[str, ...] = ()


def surroundings(interpreter: Path) -> Surroundings:
    folders = _site_packages(interpreter)
    return Surroundings(
        _version(folders, "torch"), _version(folders, "nvidia_cutlass_dsl"), _text(_DRIVER) or None, _gpu_models()
    )


def drifted(before: Environment, now: Surroundings) -> str:
    """What is another than a verdict was found with: "torch 2.13.0 (was 2.11.0)", or ""."""
    pairs = [("torch", _public(before.torch), _public(now.torch)), ("the CuTe DSL", before.dsl, now.dsl)]
    if before.device != "none" and now.devices:
        pairs.append(("the driver", before.driver, now.driver))
    changed = [f"{name} {here} (was {there})" for name, there, here in pairs if there and here and there != here]
    if before.device != "none" and now.devices and before.device not in now.devices:
        changed.append(f"the GPU {now.devices[0]} (was {before.device})")
    return ", ".join(changed)


def _site_packages(interpreter: Path) -> tuple[Path, ...]:
    """Of the interpreter's environment, and what path files in it add."""
    home = interpreter.parent.parent
    own = [*home.glob("lib/python3.*/site-packages"), *home.glob("lib/python3.*/dist-packages")]
    named = [Path(line) for folder in own for file in sorted(folder.glob("*.pth")) for line in _text(file).splitlines()]
    return (*own, *(path for path in named if path.is_absolute() and path.is_dir()))


def _version(folders: tuple[Path, ...], package: str) -> str | None:
    found = [path for folder in folders for path in folder.glob(f"{package}-*.dist-info")]
    return found[0].name.removeprefix(f"{package}-").removesuffix(".dist-info") if len(found) == 1 else None


def _public(version: str | None) -> str | None:
    """Without the build's name: torch calls itself 2.13.0+cu130 where its package is 2.13.0."""
    return version and version.partition("+")[0]


def _gpu_models() -> tuple[str, ...]:
    told = [_MODEL.search(_text(file)) for file in sorted(_GPUS.glob("*/information"))]
    return tuple(match[1] for match in told if match)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

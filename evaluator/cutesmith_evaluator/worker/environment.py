"""What this worker runs on."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType

from cutesmith_evaluator.types import Environment, Finding

_DRIVER = Path("/sys/module/nvidia/version")


def environment() -> Environment:
    torch = _torch()
    has_device = torch is not None and torch.cuda.is_available()
    return Environment(
        python=platform.python_version(),
        torch=torch.__version__ if torch else None,
        dsl=_version("nvidia-cutlass-dsl"),
        tvm_ffi=_version("apache-tvm-ffi"),
        device=torch.cuda.get_device_name() if torch and has_device else "none",
        arch=arch_name(torch.cuda.get_device_capability()) if torch and has_device else None,
        driver=_DRIVER.read_text().strip() if has_device and _DRIVER.exists() else None,
    )


def missing_torch() -> Finding | None:
    """What to do where PyTorch does not import."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:  # OSError: a shared library of CUDA is missing
        message = (
            f"PyTorch does not import in {sys.executable} ({error}); install it there or choose another interpreter."
        )
        return Finding("no-torch", message)
    return None


def arch_name(capability: tuple[int, int]) -> str:
    """(9, 0) → "sm_90a": from Hopper on, the variant with the arch's own instructions."""
    major, minor = capability
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def _torch() -> ModuleType | None:
    return None if missing_torch() else sys.modules["torch"]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

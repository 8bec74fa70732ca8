"""Families of names of which kernels need a few: what is not listed here is for something else."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from cutesmith_evaluator.guards.bans import (
    CODE,
    COMPILER,
    DRIVER,
    ENVIRONMENT,
    FILE,
    GRADIENT,
    HELPER,
    NATIVE,
    THREAD,
    TIMER,
    WALK,
    Ban,
)


@dataclass(frozen=True)
class _Family:
    ban: Ban
    allowed: frozenset[str]  # after the family's own name, as far as they need be told apart


def _family(ban: Ban, allowed: str = "") -> _Family:
    return _Family(ban, frozenset(allowed.split()))


_FAMILIES: dict[str, _Family] = {
    "os": _family(ENVIRONMENT, "path environ environb getenv sep name linesep fspath PathLike"),
    "os.path": _family(ENVIRONMENT, "join basename dirname split splitext normpath isabs sep"),
    "sys": _family(
        WALK, "version_info version platform byteorder maxsize float_info int_info hexversion implementation intern"
    ),
    "inspect": _family(WALK, "signature Parameter Signature isfunction isclass getdoc cleandoc"),
    "importlib": _family(CODE, "import_module util.find_spec metadata.version metadata.PackageNotFoundError"),
    "threading": _family(THREAD, "Lock"),  # around a cache of compiled kernels
    "torch.profiler": _family(TIMER, "record_function"),
    "logging": _family(
        FILE, "getLogger Logger NullHandler DEBUG INFO WARNING ERROR CRITICAL debug info warning error exception log"
    ),
    "torch.cuda": _family(
        DRIVER,
        """
        is_available is_initialized init current_device device_count current_stream get_device_properties
        get_device_capability get_device_name device device_of is_current_stream_capturing is_bf16_supported
        get_arch_list synchronize memory_allocated OutOfMemoryError Device _DeviceGuard
        """,
    ),
    "torch.autograd": _family(
        GRADIENT, "Function function grad_mode no_grad enable_grad inference_mode set_grad_enabled"
    ),
    "torch.jit": _family(COMPILER, "is_scripting is_tracing ignore unused Final"),
    "torch.fx": _family(COMPILER),
    "torch.compiler": _family(
        COMPILER, "is_compiling is_dynamo_compiling is_exporting disable allow_in_graph assume_constant_result"
    ),
    "torch.utils": _family(HELPER, "weak dlpack _pytree.tree_leaves _pytree.tree_flatten _pytree.tree_unflatten"),
    "tvm_ffi": _family(NATIVE, "from_dlpack Tensor Shape dtype device Device DLDeviceType Function Object"),
}
# Of Python's own modules: what computes on numbers and texts, or says how code is meant.
_STANDARD = _family(
    CODE,
    """
    __future__ abc array bisect builtins cmath collections contextlib copy dataclasses decimal enum errno
    fractions functools graphlib hashlib heapq importlib inspect itertools json keyword logging math numbers operator
    os pprint re reprlib statistics string struct sys textwrap threading types typing unicodedata warnings weakref
    """,
)


def outside(path: str) -> Ban | None:
    """Why a dotted name of one of the families is not for kernels; None where it is, or is of none."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        family = _FAMILIES.get(".".join(parts[:length]))
        if family is not None:
            return None if _is_allowed(".".join(parts[length:]), family.allowed) else family.ban
    return None


def _is_allowed(rest: str, allowed: frozenset[str]) -> bool:
    """`rest` may be on the way to something that is allowed: "util" in "importlib.util.find_spec"."""
    return any(each == rest or rest.startswith(f"{each}.") or each.startswith(f"{rest}.") for each in allowed)


def is_unread(module: str) -> bool:
    """Whether a module of Python's own is one that reaches beyond the kernel."""
    root = module.partition(".")[0]
    return root in sys.stdlib_module_names and root not in _STANDARD.allowed

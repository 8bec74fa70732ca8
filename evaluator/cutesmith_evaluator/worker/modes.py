"""Dispatch modes of ours that cost nothing to enter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from torch._compile import _disable_dynamo
from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    """Its `__torch_dispatch__` is to be `kept_from_dynamo`; PyTorch's own way imports that for every mode, which takes
    a second."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def kept_from_dynamo(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """What PyTorch does to every mode, once dynamo is there to be kept from."""
    kept = _disable_dynamo(dispatch)

    @wraps(dispatch)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        return (kept if "torch._dynamo" in sys.modules else dispatch)(*args, **kwargs)

    return dispatched

"""A CUDA device in NVIDIA's management library. Needs nvidia-ml-py in the worker's interpreter."""

from __future__ import annotations

from typing import Any

import torch


def managed(device: torch.device) -> tuple[Any, Any] | None:
    """The library and its handle of `device`; None without nvidia-ml-py, or where the driver does not know it."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError:
        return None

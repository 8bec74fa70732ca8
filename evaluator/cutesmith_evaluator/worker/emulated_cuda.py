"""What `torch.cuda` answers while code runs for the emulated device."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from cutesmith_evaluator.emulator.properties import Properties


@contextmanager
def emulated_cuda(properties: Properties) -> Iterator[None]:
    """One device, number 0, with a default stream on which everything is done at once."""
    if torch.cuda.is_available():  # the tables of what torch.compile can fold are made of functions as they are now
        importlib.import_module("torch._dynamo")
    old = {name: getattr(torch.cuda, name) for name in _answers(properties)}
    for name, answer in _answers(properties).items():
        setattr(torch.cuda, name, answer)
    try:
        yield
    finally:
        for name, answer in old.items():
            setattr(torch.cuda, name, answer)


def _answers(properties: Properties) -> dict[str, Callable[..., Any]]:
    major, minor = properties.capability
    described = SimpleNamespace(
        name="emulated device",
        major=major,
        minor=minor,
        multi_processor_count=properties.multiprocessors,
        shared_memory_per_block_optin=properties.shared_per_block,
        shared_memory_per_multiprocessor=properties.shared_per_multiprocessor,
        max_threads_per_multi_processor=properties.threads_per_multiprocessor,
        warp_size=32,
    )
    stream = SimpleNamespace(cuda_stream=0, device=torch.device("cuda", 0), synchronize=lambda: None)
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_properties": lambda device=None: described,
        "get_device_name": lambda device=None: described.name,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "synchronize": lambda device=None: None,
        "device": lambda index: nullcontext(),
        "is_current_stream_capturing": lambda: False,
    }

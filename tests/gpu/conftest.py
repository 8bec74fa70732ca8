from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    """One worker for all tests: starting it takes longer than most of them."""
    with Worker(Path(sys.executable)) as made:
        assert made.hello().arch is not None, "tests marked gpu need a CUDA device"
        yield made

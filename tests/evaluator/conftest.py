"""One worker for the tests that do not harm it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Inspection, Task

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def inspect_source(worker: Worker, tmp_path: Path) -> Callable[..., Inspection]:
    """Inspects class `Model` of a file with this body, which follows the usual imports."""

    def inspect(body: str, qualname: str = "Model", **options: float) -> Inspection:
        file = tmp_path / "model.py"
        file.write_text(f"import torch\nfrom torch import nn\nimport torch.nn.functional as F\n{body}")
        return worker.inspect(Task(str(file), qualname), **options)

    return inspect

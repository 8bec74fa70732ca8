"""The knowledge pack's snippets on a real device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from knowledge_cases import cases, check, wrapped
from knowledge_snippets import load, snippets

pytestmark = pytest.mark.gpu
CASES = cases()


def _fits(name: str) -> bool:
    major, minor = torch.cuda.get_device_capability()
    return snippets()[name].fits(f"sm_{major}{minor}" + ("a" if major >= 9 else ""))


@pytest.mark.parametrize("name", CASES)
def test_a_snippet_computes_what_it_says(name: str, tmp_path: Path):
    if not _fits(name):
        pytest.skip("the snippet is for another arch")
    case = CASES[name]
    module = load(wrapped(name, case, tmp_path))
    result = module.forward(nn.Identity(), *(each.cuda() for each in case.inputs))
    torch.cuda.synchronize()
    check(result.cpu(), case.expected(*case.inputs))

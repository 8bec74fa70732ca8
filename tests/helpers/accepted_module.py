"""What an accepted module must do on a machine without a GPU: as before, gradients included."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
from pathlib import Path

_TRY = """\
import importlib.util, json, sys
import torch
sys.path.insert(0, sys.argv[1])
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
before, after = load("before", sys.argv[2]).NewGELU(), load("after", sys.argv[3]).NewGELU()
import new_gelu_cute
x = torch.randn(33, 65)
wants_grad = x.clone().requires_grad_()
after(wants_grad).sum().backward()
print(json.dumps({
    "same": torch.equal(before(x), after(x)),
    "differentiable": wants_grad.grad is not None,
    "supports_cpu": new_gelu_cute.supports(after, x),
    "supports_grad": new_gelu_cute.supports(after, wants_grad),
    "explains_grad": new_gelu_cute.explain(after, wants_grad),
}))
"""


def check_accepted(project: Path, original: str, path: Path) -> None:
    """Imports NewGELU from the edited file and from the original text, in a fresh process."""
    before = project / "before.py"
    before.write_text(original)
    command = [sys.executable, "-c", _TRY, str(project), str(before), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    before.unlink()
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found.pop("explains_grad")
    assert found == {"same": True, "differentiable": True, "supports_cpu": False, "supports_grad": False}


def added_lines(before: str, after: str) -> list[str]:
    """The lines that came in; none may have gone."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    assert not [line for line in lines if line.startswith("- ")]
    return [line[2:] for line in lines if line.startswith("+ ")]

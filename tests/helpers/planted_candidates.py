"""A task and honest candidates for it in plain PyTorch, which run on any device: the CPU in CI, a GPU in tests/gpu."""

from __future__ import annotations

from pathlib import Path

TASK = """
import torch
from torch import nn


class WeightedSoftmax(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)

    def forward(self, x):
        return torch.softmax(x * self.weight, dim=-1)


def get_inputs():
    return [torch.randn(64, 40)]


def get_init_inputs():
    return [40]
"""

QUALNAME = "WeightedSoftmax"

UNTRAINED = TASK.replace(  # as a constructor leaves a norm layer: what is multiplied by 1 or added to 0 can be left out
    "torch.rand(columns) + 0.5)",
    """torch.ones(columns))
        self.bias = nn.Parameter(torch.zeros(columns))
        self.register_buffer("variance", torch.ones(columns))""",
).replace("x * self.weight", "(x * self.weight + self.bias) * self.variance.rsqrt()")
UNTRAINED_HONEST = """
def forward(module, x):
    return softmax((x * module.weight + module.bias) / module.variance.sqrt())
"""

_CONTRACT = '''
import torch

DEVICE = "{device}"


def explain(module, x):
    if x.device.type != DEVICE:
        return f"x is on {{x.device}}"
    if x.dtype != torch.float32 or x.dim() != 2 or x.shape[1] != module.weight.numel():
        return "x is not a float32 matrix as wide as the weight"
    if torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in module.parameters())):
        return "gradients are needed"
    return None


def supports(module, x):
    return explain(module, x) is None


def warm_up(module, x):
    pass


def softmax(x):
    """In the way of a kernel, not through torch.softmax."""
    shifted = torch.exp(x - x.amax(-1, keepdim=True))
    return shifted / shifted.sum(-1, keepdim=True)

'''

HONEST = {
    "own_softmax": """
def forward(module, x):
    return softmax(x * module.weight)
""",
    "one_column_at_a_time": """
def forward(module, x):
    out = torch.empty_like(x)
    for row in range(x.shape[0]):
        out[row] = softmax(x[row] * module.weight)
    return out
""",
    "in_place_on_its_own_memory": """
def forward(module, x):
    out = x * module.weight
    out.sub_(out.amax(-1, keepdim=True)).exp_()
    return out.div_(out.sum(-1, keepdim=True))
""",
}


AS_AN_OP = """
_NAME = "weighted_softmax_" + __name__.replace(".", "_")
_LIBRARY = torch.library.Library("planted", "FRAGMENT")
_LIBRARY.define(_NAME + "(Tensor x, Tensor weight) -> Tensor")
_LIBRARY.impl(_NAME, lambda x, weight: softmax(x * weight), "CompositeExplicitAutograd")


@torch.library.register_fake(f"planted::{_NAME}", lib=_LIBRARY)
def _fake(x, weight):
    return torch.empty_like(x)


_OP = getattr(torch.ops.planted, _NAME).default


def forward(module, x):
    return _OP(x, module.weight)
"""


KERNELBENCH = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(columns) + 0.5)

    def forward(self, x):
        shifted = x * self.weight
        shifted = torch.exp(shifted - shifted.amax(-1, keepdim=True))
        return shifted / shifted.sum(-1, keepdim=True)
"""


IMPORT = "import weighted_softmax_cute\n"
GUARD = """    def forward(self, x):
        if weighted_softmax_cute.supports(self, x):
            return weighted_softmax_cute.forward(self, x)
"""


def patched_text(text: str = TASK, importing: str = IMPORT, guard: str = GUARD) -> str:
    """The task's file with both hunks in."""
    return text.replace("import torch\n", f"import torch\n{importing}", 1).replace("    def forward(self, x):\n", guard)


def write_patched(folder: Path, candidate: Path, text: str) -> Path:
    """`text` as a patched file in `folder`, beside a copy of the candidate."""
    folder.mkdir()
    (folder / candidate.name).write_bytes(candidate.read_bytes())
    patched = folder / "patched.py"
    patched.write_text(text)
    return patched


def write_task(folder: Path, source: str = TASK) -> Path:
    """The task's file, named after the folder: one process imports the tasks of many tests."""
    file = folder / f"{folder.name}_task.py"
    file.write_text(source)
    return file


def write_candidate(folder: Path, forward: str, device: str) -> Path:
    """A candidate of our contract that supports float32 matrices on `device` ("cpu" or "cuda")."""
    file = folder / "weighted_softmax_cute.py"
    file.write_text(_CONTRACT.format(device=device) + forward)
    return file

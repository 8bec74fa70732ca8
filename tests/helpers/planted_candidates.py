"""A task, honest candidates for it in plain PyTorch, and candidates with one planted fault each.

They run on any device, so the same faults are looked for on the CPU in CI and on a GPU in tests/gpu.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Fault:
    """A candidate's forward, the finding it must bring, and words that the finding's message must have."""

    source: str
    kind: str
    words: str = ""


FAULTS = {
    "returns_its_input": Fault("def forward(module, x):\n    return x\n", "aliases-input"),
    "returns_a_copy_of_its_input": Fault(
        "def forward(module, x):\n    return x.clone()\n", "wrong-values", "all elements"
    ),
    "writes_nothing": Fault("def forward(module, x):\n    return torch.empty_like(x)\n", "not-repeatable"),
    "leaves_the_tail": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    out[-1, -5:] = 0.5
    return out
""",
        "wrong-values",
        "only the tail, the last 5 elements",
    ),
    "wrong_last_columns": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    out[:, 37:] = 7
    return out
""",
        "wrong-values",
        "only the last 3 columns of every row",
    ),
    "every_eighth_row": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    out[5::8] = -1
    return out
""",
        "wrong-values",
        "every 8th row, from row 5",
    ),
    "computes_in_half": Fault(
        "def forward(module, x):\n    return softmax((x * module.weight).half()).float()\n", "lowered-precision"
    ),
    "computes_in_bfloat16": Fault(
        "def forward(module, x):\n    return softmax((x * module.weight).bfloat16()).float()\n", "lowered-precision"
    ),
    "writes_its_input": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    x.zero_()
    return out
""",
        "mutates-input",
    ),
    "writes_the_weights": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    module.weight.data.mul_(1.5)
    return out
""",
        "mutates-module",
        "weight",
    ),
    "replaces_the_weights": Fault(
        """
def forward(module, x):
    module.weight.data = module.weight.data.clone()
    return softmax(x * module.weight)
""",
        "mutates-module",
    ),
    "wrong_shape": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight)[:-1]\n", "wrong-shape", "[64, 40]"
    ),
    "wrong_dtype": Fault("def forward(module, x):\n    return softmax(x * module.weight).double()\n", "wrong-dtype"),
    "wrong_strides": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight).t().contiguous().t()\n", "wrong-strides"
    ),
    "wrong_structure": Fault("def forward(module, x):\n    return (softmax(x * module.weight),)\n", "wrong-structure"),
    "a_lazy_tensor": Fault(
        """
class Lazy(torch.Tensor):
    pass


def forward(module, x):
    return softmax(x * module.weight).as_subclass(Lazy)
""",
        "wrong-structure",
        "Lazy",
    ),
    "changes_from_call_to_call": Fault(
        """
calls = [0]


def forward(module, x):
    calls[0] += 1
    return softmax(x * module.weight) * (1 + 1e-6 * calls[0])
""",
        "not-repeatable",
    ),
    "one_buffer_for_all_calls": Fault(
        """
buffers = {}


def forward(module, x):
    out = buffers.setdefault(x.shape, torch.empty_like(x))
    return out.copy_(softmax(x * module.weight))
""",
        "reuses-output",
    ),
    "remembers_results_by_address": Fault(
        """
known = {}


def forward(module, x):
    key = (x.data_ptr(), x.shape)
    if key not in known:
        known[key] = softmax(x * module.weight)
    return known[key].clone()
""",
        "wrong-values",
    ),
    "hides_nan": Fault(
        "def forward(module, x):\n    return softmax(torch.nan_to_num(x) * module.weight)\n",
        "wrong-values",
        "NaN sprinkled",
    ),
    "no_maximum_subtracted": Fault(
        """
def forward(module, x):
    e = torch.exp(x * module.weight)
    return e / e.sum(-1, keepdim=True)
""",
        "wrong-values",
        "NaN or infinite",
    ),
    "right_for_one_shape": Fault(
        """
def forward(module, x):
    out = softmax(x * module.weight)
    return out if x.shape[0] == 64 else torch.zeros_like(out)
""",
        "wrong-values",
        "dimension 0",
    ),
    "draws_random_numbers": Fault(
        "def forward(module, x):\n    torch.rand(1)\n    return softmax(x * module.weight)\n", "changes-rng"
    ),
    "changes_settings": Fault(
        """
def forward(module, x):
    torch.backends.cuda.matmul.allow_tf32 = True
    return softmax(x * module.weight)
""",
        "changes-settings",
        "allow_tf32",
    ),
    "raises": Fault(
        "def forward(module, x):\n    raise ValueError('no such tile')\n", "candidate-raises", "no such tile"
    ),
    "exits": Fault("def forward(module, x):\n    raise SystemExit(3)\n", "exits"),
    "supports_nothing": Fault(
        """
def explain(module, x):
    return "the moon is full"


def forward(module, x):
    return softmax(x * module.weight)
""",
        "unsupported-inputs",
        "the moon is full",
    ),
    "supports_everything": Fault(
        """
def explain(module, x):
    return None


def forward(module, x):
    return softmax(x * module.weight)
""",
        "supports-too-much",
        "gradients",
    ),
    "refuses_without_a_reason": Fault(
        """
def supports(module, x):
    return x.dtype == torch.float32 and not torch.is_grad_enabled()


def explain(module, x):
    return None


def forward(module, x):
    return softmax(x * module.weight)
""",
        "explains-nothing",
    ),
}

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

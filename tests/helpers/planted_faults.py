"""Candidates with one planted fault each, in plain PyTorch: they are looked for on the CPU in CI and in tests/gpu."""

from __future__ import annotations

from dataclasses import dataclass

from planted_candidates import TASK, UNTRAINED, UNTRAINED_HONEST


@dataclass(frozen=True)
class Fault:
    """A candidate's forward, the finding it must bring, words that the finding's message must have, and the task.

    `on_the_heap`: what it may say instead where memory is malloc's, which keeps two or four words of its own at the
    start of what is free: nothing has written these, and they do not hold the poison.
    """

    source: str
    kind: str
    words: str = ""
    task: str = TASK
    on_the_heap: tuple[str, ...] = ()


FAULTS = {
    "returns_its_input": Fault("def forward(module, x):\n    return x\n", "aliases-input"),
    "returns_a_copy_of_its_input": Fault(
        "def forward(module, x):\n    return x.clone()\n", "wrong-values", "all elements"
    ),
    "writes_nothing": Fault(
        "def forward(module, x):\n    return torch.empty_like(x)\n",
        "not-repeatable",
        "nothing writes 2,560 of 2,560 elements (all elements)",
        on_the_heap=tuple(
            f"nothing writes {left} of 2,560 elements (only the tail, the last {left} elements)"
            for left in ("2,552", "2,556")
        ),
    ),
    "leaves_a_block_unwritten": Fault(
        """
def forward(module, x):
    out, right = torch.empty_like(x), softmax(x * module.weight)
    out[:, :20] = right[:, :20]
    out[:32] = right[:32]
    return out
""",
        "not-repeatable",
        "nothing writes 640 of 2,560 elements (only the last 20 columns of 32 rows), the first [32, 20]",
    ),
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
        "def forward(module, x):\n    return softmax((x * module.weight).half()).float()\n",
        "lowered-precision",
        "every value is a float16 or TF32 number",
    ),
    "computes_in_bfloat16": Fault(
        "def forward(module, x):\n    return softmax((x * module.weight).bfloat16()).float()\n",
        "lowered-precision",
        "every value is a bfloat16 number",
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
        "they are what the call on the task's inputs",
    ),
    "shifted_by_one": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight).roll(1, 1)\n",
        "wrong-values",
        "each is its previous one's in dimension 1",
    ),
    "half_the_sum": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight) * 2\n", "wrong-values", "2 times too large"
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
    "ignores_the_weight": Fault(
        "def forward(module, x):\n    return softmax((x + module.bias) * module.variance.rsqrt())\n",
        "wrong-values",
        "so weighted_softmax_cute.py ignores or misreads weight.",
        UNTRAINED,
    ),
    "ignores_the_bias": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight * module.variance.rsqrt())\n",
        "wrong-values",
        "so weighted_softmax_cute.py ignores or misreads bias.",
        UNTRAINED,
    ),
    "ignores_a_buffer": Fault(
        "def forward(module, x):\n    return softmax(x * module.weight + module.bias)\n",
        "wrong-values",
        "so weighted_softmax_cute.py ignores or misreads variance.",
        UNTRAINED,
    ),
    "ignores_all_state": Fault(
        "def forward(module, x):\n    return softmax(x)\n",
        "wrong-values",
        "ignores or misreads weight and bias and variance.",
        UNTRAINED,
    ),
    "ignores_the_weight_in_other_shapes": Fault(
        UNTRAINED_HONEST.replace("module.weight", "(module.weight if len(x) == 64 else 1)"),
        "wrong-values",
        "dimension 0 of input 0 with other parameters and buffers",
        UNTRAINED,
    ),
    "remembers_the_weight_by_address": Fault(
        """
known = {}


def forward(module, x):
    weight = known.setdefault(module.weight.data_ptr(), module.weight.detach().clone())
    return softmax(x * weight)
""",
        "wrong-values",
        "ignores or misreads weight.",
    ),
    "supports_the_first_weights_alone": Fault(
        """
def supports(module, x):
    return x.device.type == DEVICE and x.dtype == torch.float32 and bool((module.weight == 1).all())


def explain(module, x):
    return "the weight is not one"


def forward(module, x):
    return softmax((x + module.bias) * module.variance.rsqrt())
""",
        "unsupported-state",
        "the weight is not one",
        UNTRAINED,
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

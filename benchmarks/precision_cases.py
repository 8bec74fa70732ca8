"""Tasks in fp32 and candidates that compute them in other arithmetic, for precision_classes.py.

The candidates are plain PyTorch, so that on a CUDA device the tensor cores round, and on a CPU what that would round is
emulated by rounding the inputs alone.
"""

from __future__ import annotations

from dataclasses import dataclass

QUALNAME = "Task"
_TASK = """
import torch
from torch import nn
import torch.nn.functional as F

from cutesmith_evaluator.worker.inputs import redraw


class Task(nn.Module):
    def forward(self, {arguments}):
        return {expression}


def get_inputs():
    made = [torch.empty(shape) for shape in {shapes}]
    redraw(made, "{distribution}", torch.initial_seed())
    return made
"""

_CANDIDATE = """
import torch
import torch.nn.functional as F

SHAPES = {shapes}


def explain(module, *inputs):
    if any(x.dtype != torch.float32 or x.device.type != "{device}" for x in inputs):
        return "an input is not float32 on {device}"
    if [tuple(x.shape) for x in inputs] != SHAPES:
        return "the shapes are others"
    return "gradients are needed" if any(x.requires_grad for x in inputs) else None


def supports(module, *inputs):
    return explain(module, *inputs) is None


def warm_up(module, *inputs):
    pass


def tf32(x):
    whole = ((x.view(torch.int32) + 0xFFF + ((x.view(torch.int32) >> 13) & 1)) & ~0x1FFF).view(torch.float32)
    return torch.where(x.isfinite(), whole, x)


def product(a, b):
    # of (..., M, K) and (..., N, K), summed in float32 whatever their dtype
    if a.dtype == torch.float32 or not a.is_cuda:
        return a.float() @ b.float().mT
    return torch.bmm(a, b.mT, out_dtype=torch.float32) if a.dim() == 3 else torch.mm(a, b.mT, out_dtype=torch.float32)


def tf32_product(a, b):
    if not a.is_cuda:
        return tf32(a) @ tf32(b).mT
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return a @ b.mT
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def in_chunks(a, b, chunk):
    # each chunk of K is summed by the tensor cores, the chunks in float32
    parts = [x.unflatten(1, (-1, chunk)).transpose(0, 1).contiguous() for x in (a, b)]
    return product(*parts).sum(0)


def scaled(x):
    # each row times a power of two, so that its largest value is near 1024
    scale = torch.ldexp(torch.ones_like(x[:, :1]), 10 - torch.frexp(x.abs().amax(1, keepdim=True)).exponent)
    return x * scale, scale


def split(x, dtype, parts, step):
    found = []
    for _ in range(parts):
        found.append(x.to(dtype))
        x = (x - found[-1].float()) * step
    return found


def split_product(a, b, dtype, terms, step, chunk):
    (a, left), (b, right) = scaled(a), scaled(b)
    parts = 1 + max(max(term) for term in terms)
    lefts, rights = split(a, dtype, parts, step), split(b, dtype, parts, step)
    total = sum(product(lefts[i], rights[j]) / step ** (i + j) for i, j in reversed(terms[1:]))
    return (in_chunks(lefts[0], rights[0], chunk) + total) / left / right.mT


def fp32_convolution(x, w):
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        return F.conv2d(x, w)


def forward(module, {arguments}):
    return {expression}
"""
_FP16_2, _FP16_3 = ((0, 0), (0, 1)), ((0, 0), (0, 1), (1, 0))
_BF16_6 = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0))


@dataclass(frozen=True)
class Study:
    """A task and how candidates compute it, by name."""

    name: str
    arguments: str
    expression: str
    shapes: tuple[tuple[int, ...], ...]
    candidates: dict[str, str]

    def task(self, distribution: str) -> str:
        return _TASK.format(**self._words(), expression=self.expression, distribution=distribution)

    def candidate(self, name: str, device: str) -> str:
        return _CANDIDATE.format(**self._words(), expression=self.candidates[name], device=device)

    def _words(self) -> dict[str, object]:
        return {"arguments": self.arguments, "shapes": list(self.shapes)}


def product_study(rows: int, depth: int) -> Study:
    """A (rows, depth) times the transpose of another."""
    splits = {
        f"{name}, {words}": f"split_product(a, b, torch.{dtype}, {terms}, {step}, {chunk})"
        for name, dtype, terms, step in (
            ("2-term fp16 split", "float16", _FP16_2, 2048),
            ("3-term fp16 split", "float16", _FP16_3, 2048),
            ("6-term bf16 split", "bfloat16", _BF16_6, 1),
        )
        for words, chunk in (("promoted every 128", min(128, depth)), ("not promoted", depth))
    }
    candidates = {
        "fp32": "product(a, b)",
        "TF32": "tf32_product(a, b)",
        "fp16": "product(a.half(), b.half())",
        "bf16": "product(a.bfloat16(), b.bfloat16())",
        **splits,
    }
    return Study(f"product, K = {depth}", "a, b", "a @ b.mT", ((rows, depth), (rows, depth)), candidates)


def narrow(expression: str, *names: str) -> dict[str, str]:
    """The expression on inputs rounded to TF32, and in the half types."""
    found = {"TF32": expression, "fp16": f"({expression}).float()", "bf16": f"({expression}).float()"}
    rounding = {"TF32": "tf32({})", "fp16": "{}.half()", "bf16": "{}.bfloat16()"}
    for kind, text in found.items():
        for name in names:
            text = text.replace(f"<{name}>", rounding[kind].format(name))
        found[kind] = text
    return found


def pointwise_study(rows: int, columns: int) -> Study:
    own = "0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))"
    candidates = {"fp32": own, **narrow("F.gelu(<x>, approximate='tanh')", "x")}
    return Study("GELU", "x", "F.gelu(x, approximate='tanh')", ((rows, columns),), candidates)


def reduction_study(rows: int, columns: int) -> Study:
    own = "x.unflatten(1, (-1, 32)).sum(1).sum(1)"
    candidates = {"fp32": own, **narrow("<x>.sum(1)", "x")}
    return Study(f"row sums of {columns}", "x", "x.sum(1)", ((rows, columns),), candidates)


def convolution_study(images: int, channels: int, size: int) -> Study:
    shapes = ((images, channels, size, size), (channels, channels, 3, 3))
    candidates = {
        "fp32": "fp32_convolution(x, w)",
        **narrow("F.conv2d(<x>, <w>)", "x", "w"),
        "TF32": "F.conv2d(x, w) if x.is_cuda else F.conv2d(tf32(x), tf32(w))",  # eager's own default on a device
    }
    return Study("convolution 3 × 3", "x, w", "F.conv2d(x, w)", shapes, candidates)

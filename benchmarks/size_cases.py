"""Every family of kernels over shapes that break arithmetic of tiles: powers of two, primes, 1, odd, long, empty."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

DTYPES = ("float32", "bfloat16", "float16")

_FILE = """\
import torch
import torch.nn.functional as F
from torch import nn

DTYPE = torch.{dtype}


class Sized(nn.Module):
    def __init__(self):
        super().__init__()
{holds}

    def forward(self, x{other}):
{steps}


def get_inputs():
    torch.manual_seed(3)
    return [{inputs}]


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Family:
    """`computes`: forward's statements, the last its result; `{}` in `holds` stands for the shape's second size."""

    name: str
    computes: str
    shapes: tuple[tuple[int, ...], ...]
    holds: str = ""
    other: str = ""  # the second input, given the first one's shape
    kernel: str = ""  # a word of a draft's schedule that tells its kernel from others


@dataclass(frozen=True)
class SizeCase:
    family: Family
    shape: tuple[int, ...]
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.family.name}-{'x'.join(map(str, self.shape))}-{self.dtype}"

    @property
    def source(self) -> str:
        """The module's file."""
        *steps, result = (step.strip() for step in self.family.computes.split(";"))
        lines = "\n".join((*(f"        {step}" for step in steps), f"        return {result}"))
        second = self.shape[:2][-1]
        holds = f"        self.{self.family.holds.replace('{}', str(second))}" if self.family.holds else "        pass"
        made = [f"torch.randn({self.shape}).to(DTYPE)"]
        if self.family.other:
            made.append(self.family.other.replace("{shape}", str(self.shape)).replace("{}", str(second)))
        text = _FILE.replace("{dtype}", self.dtype).replace("{holds}", holds).replace("{steps}", lines)
        text = text.replace("{inputs}", ", ".join(made))
        return text.replace("{other}", ", y" if self.family.other else "")


_EDGES = (1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 61, 64, 97, 127, 128, 129, 251, 256, 257, 509, 512, 1021, 1024)
_FLAT = (
    *((n,) for n in _EDGES[1:]),
    *((1, 1, 3), (2, 3, 5, 7), (13, 17), (64, 65), (65, 64), (1, 4097), (4096, 1), (3, 1, 1, 11), (8191,), (16384,)),
    *((0,), (0, 8), (16_777_259,)),
)
_ROWS = (
    *((3, n) for n in _EDGES[1:]),
    *((1, 8), (1, 1031), (33, 5), (129, 12), (257, 4), (2, 2048), (5, 2050), (2, 3, 96), (7, 1, 65), (1, 4096)),
    *((6, 11), (19, 44), (70, 100), (2, 5000), (0, 8), (4099, 4099)),
)
_LONG = tuple((2, n) for n in (*range(20000, 20016), *range(32760, 32776, 2), 40961, 49152, 65535, 65536, 65537, 66002))
_MIDDLE = (
    *((2, n, 12) for n in (2, 3, 5, 8, 16, 31, 32, 33, 64, 67, 128, 131, 256, 257)),
    *((3, 24, n) for n in (1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 65, 96, 128, 129)),
    *((1, 2, 5), (1, 40, 40), (17, 6, 5)),
)
_LOSS = (
    *((n,) for n in range(32768, 32784)),
    *((n, 331) for n in range(99, 113)),
    (7, 13, 17, 23),
    (65537,),
    (2, 40001),
)
_SCAN = (
    *((2, n) for n in _EDGES[1:]),
    *((1, 2047), (1, 2048), (1, 2049), (9, 4), (33, 3), (2, 4097), (3, 1500), (65, 8), (130, 2)),
)
_PLANES = (
    *((1, 2, n, 9) for n in (4, 5, 7, 8, 9, 11, 13, 16, 17, 31, 33)),
    *((2, 3, 6, n) for n in (4, 5, 7, 8, 11, 12, 16, 17, 31, 32, 33, 64, 65)),
    *((1, 2, 23, 29), (5, 2, 4, 4), (3, 4, 9, 16), (1, 8, 12, 12), (2, 2, 40, 40), (1, 2, 5, 128)),
)
_LINES = (
    *((1, 2, n) for n in range(256, 272)),
    *((2, 2, n) for n in (300, 509, 512, 521, 768, 1021, 1024, 1025, 1026, 1031)),
    *((1, 1, n) for n in (2040, 2047, 2048, 2049, 4093, 4096, 8200)),
)
_CHANNELS = (
    *((2, 4, n, 3) for n in (1, 2, 3, 4, 5, 7, 8, 11, 16, 31, 32, 33)),
    *((n, 8, 3, 5) for n in (1, 2, 3, 5, 7, 8, 17)),
    *((2, n, 4, 4) for n in (4, 8, 12, 20, 28, 32, 60, 64, 92, 124, 128)),
)
_CONV = "conv = nn.Conv2d({}, {}, 3, padding=1, groups={}, dtype=DTYPE)"
_NORM = "norm = nn.GroupNorm(4, {}, dtype=DTYPE)"
_PLACES = "torch.randint(0, {}, {shape}[:1])"
FAMILIES = (
    Family("pointwise", "F.gelu(x) * 2 + x", _FLAT),
    Family("strided", "F.silu(x[..., ::2]) + x[..., 1::2]", tuple((*s[:-1], 2 * s[-1]) for s in _FLAT)),
    Family("turned", "torch.tanh(x.transpose(0, 1)) * 0.5", tuple(s for s in _ROWS if len(s) == 2)),
    Family(
        "broadcast",
        "x * y + torch.sigmoid(x)",
        tuple(s for s in _ROWS if len(s) == 2),
        other="torch.randn({}).to(DTYPE)",
    ),
    Family("rows", "torch.softmax(x * 2, -1)", _ROWS),
    Family("row results", "(x * x).mean(-1)", _ROWS),
    Family("long rows", "x / (x.abs().mean(-1, keepdim=True) + 1)", _LONG),
    Family("middle", "torch.softmax(x, 1)", _MIDDLE),
    Family("middle results", "x.amax(1)", _MIDDLE),
    Family("loss", "(x * x).mean()", _LOSS, kernel="blocks"),
    Family(
        "loss of rows", "F.cross_entropy(x, y)", tuple(s for s in _ROWS if len(s) == 2 and min(s) > 1), other=_PLACES
    ),
    Family("arg", "torch.argmax(x, -1)", _ROWS),
    Family("middle arg", "torch.argmin(x, 1)", _MIDDLE),
    Family("joined", "torch.cat((x, torch.relu(x) * 2), -1)", _ROWS),
    Family("scan", "torch.cumsum(x, -1)", _SCAN),
    Family("pooling", "F.max_pool2d(x, 3, 2, 1) + 1", _PLANES),
    Family("windows", "F.avg_pool2d(x, 3, 1, 1)", _PLANES),
    Family("line", "F.max_pool1d(x, 5, 1, 2, 2) + 1", _LINES),
    Family("strided line", "F.avg_pool1d(torch.tanh(x), 4, 3, 2, True, False)", _LINES),
    Family("chain", "F.max_pool1d(F.layer_norm(x, x.shape[-1:]), 3, 2, 1) * 2", _LINES),
    Family("depthwise", "F.relu(self.conv(x))", _PLANES, _CONV),
    Family(
        "channels last",
        "F.silu(x.to(memory_format=torch.channels_last)) * y",
        _CHANNELS,
        other="torch.randn({}, 1, 1).to(DTYPE)",
    ),
    Family("channel norm", "self.norm(x)", _CHANNELS, _NORM),
)


def size_cases() -> Iterator[SizeCase]:
    for family in FAMILIES:
        for shape, dtype in itertools.product(dict.fromkeys(family.shapes), DTYPES):
            yield SizeCase(family, shape, dtype)

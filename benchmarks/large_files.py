"""Files of thousands of lines, as editors have them open."""

from __future__ import annotations

MODULE = """\
class Module{n}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.proj(x)) + x * {n}


"""
FUNCTION = """\
def helper_{n}(values):
    total = 0
    for value in values:
        if value > {n}:
            total += value * 2
        else:
            total -= 1
    return {{"total": total, "name": "{n}"}}


"""


def text_of(lines: int) -> str:
    """Ten lines a definition; one in fifty is a module, the others are functions."""
    parts = [(MODULE if n % 50 == 0 else FUNCTION).format(n=n) for n in range(lines // 10)]
    return "import torch\nfrom torch import nn\n\n\n" + "".join(parts)

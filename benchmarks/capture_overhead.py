"""What `cutesmith capture` costs a run: CPU time of steps with it over that without, in turn, in one process.

A captured program trains a small transformer of the user's own modules on the CPU, one thread, and takes what records
off its classes for every other step. The last case calls one tiny module and nothing else: the worst that there is.
`--share`: with `--time` as well.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = """
import sys, time
import torch
from torch import nn
torch.set_num_threads(1)

class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

class Act(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = Norm(width), Norm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), Act(), nn.Linear(4 * width, width)
    def forward(self, x):
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(self.act(self.up(self.second(x))))

class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
    def forward(self, x):
        return self.blocks(x)

def timed(step, classes, count):
    # medians of CPU seconds a step: with what records in place, and without
    recording = {cls: cls.__call__ for cls in classes}
    taken = {True: [], False: []}
    for number in range(2 * count):
        is_on = number % 2 == 0
        for cls, call in recording.items():
            cls.__call__ = call if is_on else call.outer
        begun = time.process_time()
        step()
        taken[is_on].append(time.process_time() - begun)
    return [sorted(taken[is_on])[count // 2] for is_on in (True, False)]

def train(net, x):
    def step():
        net(x).square().mean().backward()
        for each in net.parameters():
            each.grad = None
    return step

act, small = Act(), torch.randn(4)
def alone():
    for _ in range(1000):
        act(small)

kind, count = sys.argv[1], int(sys.argv[2])
if kind == "alone":
    with torch.no_grad():
        alone()
        print(*[seconds / 1000 for seconds in timed(alone, [Act], count)])
else:
    rows, width = {"small": (8, 64), "training": (64, 128)}[kind]
    step = train(Net(width, 4), torch.randn(4, rows, width))
    step()
    print(*timed(step, [Norm, Act, Block, Net], count))
"""


def _seconds(script: Path, kind: str, count: int, *, share: bool) -> tuple[float, float]:
    """CPU seconds a step: recorded, and not."""
    words = ["capture", *(["--time"] if share else []), "--", sys.executable, str(script), kind, str(count)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "cutesmith_server", *words]
    ended = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=True)
    recorded, plain = map(float, ended.stdout.splitlines()[0].split())
    return recorded, plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--share", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "steps.py")
        script.write_text(STEPS)
        for kind, count in (("training", 60), ("small", 300), ("alone", 60)):
            found = [_seconds(script, kind, count, share=options.share) for _ in range(options.runs)]
            ratios = [recorded / plain for recorded, plain in found]
            middle = {"us": round(statistics.median(plain for _, plain in found) * 1e6, 2)}
            ends = {"ratio": round(statistics.median(ratios), 4)}
            ends |= {"low": round(min(ratios), 4), "high": round(max(ratios), 4)}
            print(json.dumps({"case": kind, **middle, **ends, "runs": options.runs}), flush=True)


if __name__ == "__main__":
    main()

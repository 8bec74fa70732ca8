"""What `cutesmith capture` costs a run: CPU time of training steps with it over that without, in pairs, one run.

Each process trains a small transformer of the user's own modules on the CPU, one thread, and says what a step took in
the median. A third program calls one tiny module alone: the worst that there is. `--share`: with `--time` as well.
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

def timed(step, count):
    taken = []
    for _ in range(count):
        begun = time.process_time()
        step()
        taken.append(time.process_time() - begun)
    return sorted(taken)[len(taken) // 2]

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
        timed(alone, 2)
        print(timed(alone, count) / 1000)
else:
    rows, width = {"small": (8, 64), "training": (64, 128)}[kind]
    step = train(Net(width, 4), torch.randn(4, rows, width))
    timed(step, 3)
    print(timed(step, count))
"""


def _seconds(script: Path, kind: str, count: int, *, captured: bool, share: bool) -> float:
    command = [sys.executable, str(script), kind, str(count)]
    if captured:
        flags = ["--time"] if share else []
        command = [sys.executable, "-m", "cutesmith_server", "capture", *flags, "--", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=True)
    return float(ended.stdout.splitlines()[0])


def _ratios(script: Path, kind: str, count: int, pairs: int, *, share: bool) -> tuple[list[float], float]:
    ratios, seconds = [], []
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        taken = {each: _seconds(script, kind, count, captured=each, share=share) for each in order}
        ratios.append(taken[True] / taken[False])
        seconds.append(taken[False])
    return ratios, statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--share", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "steps.py")
        script.write_text(STEPS)
        for kind, count in (("training", 40), ("small", 200), ("alone", 30)):
            ratios, seconds = _ratios(script, kind, count, options.pairs, share=options.share)
            middle = {"us": round(seconds * 1e6, 2), "ratio": round(statistics.median(ratios), 4)}
            ends = {"low": round(min(ratios), 4), "high": round(max(ratios), 4)}
            print(json.dumps({"case": kind, **middle, **ends, "pairs": options.pairs}), flush=True)


if __name__ == "__main__":
    main()

"""A program that does to its processes what training scripts do, for `cutesmith capture` to be run on."""

from __future__ import annotations

PROGRAM = """\
import copy
import multiprocessing
import os
import signal
import sys
import threading

import torch
from torch import nn


class Act(nn.Module):
    def __init__(self, scale=1.0, *, name="act"):
        super().__init__()
        self.scale = scale

    def forward(self, x, flag=None):
        return torch.tanh(x) * self.scale


class Own(nn.Module):
    def __call__(self, *inputs):  # a __call__ of the user's own
        return super().__call__(*inputs)


class Block(Own):
    def __init__(self, width):
        super().__init__()
        self.linear, self.act = nn.Linear(width, width), Act(2.0)

    def forward(self, x):
        return x + self.act(self.linear(x))


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.Sequential(*[copy.deepcopy(Block(width)) for _ in range(depth)])

    def forward(self, x, extra=None):
        return self.blocks(x)


class Failing(nn.Module):
    def forward(self, x):
        raise ValueError("as ever")


def child(width, end):
    Net(width, 1)(torch.randn(3, width))
    if end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


def main():
    net = Net(16, 3)
    for _ in range(10):
        net(torch.randn(4, 16)).sum().backward()
    net.eval().requires_grad_(False)
    net.register_forward_hook(lambda module, inputs, output: output + 1)
    with torch.no_grad():
        for _ in range(5):
            result = net(torch.randn(16, 4).t(), extra={"rows": [4, torch.ones(2)], "rest": object()})
    print(result.min() > -9)
    print(torch.compile(net, fullgraph=True, backend="eager")(torch.randn(7, 16)).shape)
    scripted = torch.jit.script(Act(3.0))
    print(scripted(torch.randn(5, 5)).shape, torch.jit.trace(net, torch.randn(9, 16)).training)
    print(torch.export.export(net, (torch.randn(9, 16),)).graph_signature.user_inputs)
    threads = [threading.Thread(target=Act(), args=(torch.randn(2, 2),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        Failing()(torch.ones(1))
    except ValueError as error:
        print(error)
    for method, width, end in (("fork", 8, "ends"), ("spawn", 10, "ends"), ("fork", 12, "killed")):
        process = multiprocessing.get_context(method).Process(target=child, args=(width, end))
        process.start()
        process.join()
        print(method, process.exitcode)
    print(sorted(vars(Act()))[:3], len(copy.deepcopy(net).state_dict()))
    sys.exit(7)


if __name__ == "__main__":
    main()
"""

# what: relu(-|x|) is zero: an allocation is all there is to do
# task: zero
# label: no-kernel

import functools

import torch


def explain(module, x):
    if not (x.is_cuda and x.dtype is torch.float32 and x.dim() == 2 and x.shape[1] == 64 and x.is_contiguous()):
        return "x is not a contiguous float32 CUDA matrix of 64 columns"
    if torch.is_grad_enabled() and (x.requires_grad):
        return "autograd needs the result"
    return None


def supports(module, x):
    return explain(module, x) is None


def warm_up(module, x):
    _launcher()


def _launcher():
    return None


def forward(module, x):
    return torch.zeros_like(x)

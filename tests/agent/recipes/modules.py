"""Modules that the recipes cover, one for every family, view, reduction and broadcast; each with its inputs."""

import torch
import torch.nn.functional as F
from torch import nn


class Activations(nn.Module):
    def forward(self, x):
        soft = F.hardsigmoid(x) + F.hardswish(x) + F.softplus(x) + F.mish(x) + F.logsigmoid(x)
        return soft + F.hardtanh(x) + F.selu(x) + F.elu(x) + F.leaky_relu(x) + F.softsign(x) + F.silu(x) + F.gelu(x)


class Arithmetic(nn.Module):
    def forward(self, x, y):
        z = torch.maximum(torch.minimum(x, y), x - 1).clamp(-2, 2)
        return torch.where((x > 0) & (y < 1) | ~(x > -2), z.exp(), x.abs().sqrt() + y.square() - 1 / (1 + x * x))


class Powers(nn.Module):
    def forward(self, x):
        return x.abs().pow(2.5) + x**3 - (x**2 + 1) ** -0.5 + torch.sign(x) * torch.log1p(x.abs()) + torch.floor(x)


class PerChannel(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(-1, 2, 16).view(16, 1, 1))
        self.shift = nn.Parameter(torch.linspace(0, 1, 16))

    def forward(self, x):
        return F.relu(x * self.scale + self.shift.view(1, -1, 1, 1))


class ScalarParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return x * self.gain.tanh().clamp(0, 1) + self.gain


class Transposed(nn.Module):
    def forward(self, x):
        return (x * 2).transpose(1, 2).reshape(x.shape[0], -1) + 1


class Gated(nn.Module):
    def forward(self, x):
        return F.glu(x, -1)


class Joined(nn.Module):
    def forward(self, x):
        return torch.cat([x, -x, x * 2], -1)


class JoinedUnequal(nn.Module):
    def forward(self, x):
        return torch.cat([x[..., :32], x[..., :16]], -1)


class Interleaved(nn.Module):
    def forward(self, x):
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class TwoResults(nn.Module):
    def forward(self, x, y):
        total = x + y
        return total, total.tanh()


class Maximum(nn.Module):
    def forward(self, x):
        return x.amax(-1)


class Best(nn.Module):
    def forward(self, x):
        values, indices = torch.max(x, dim=-1)
        return values, indices


class Worst(nn.Module):
    def forward(self, x):
        return torch.argmin(x, dim=-1)


class Product(nn.Module):
    def forward(self, x):
        return torch.prod(1 + x * 0.01, dim=-1)


class UnitLength(nn.Module):
    def forward(self, x):
        return F.normalize(x, dim=-1)


class MeanAbsolute(nn.Module):
    def forward(self, x):
        return x / x.abs().mean(-1, keepdim=True)


class Frobenius(nn.Module):
    def forward(self, x):
        return x / torch.linalg.vector_norm(x)


class LogSumExp(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, -1)


class Spread(nn.Module):
    def forward(self, x):
        return x.std(-1), x.var(-1, unbiased=False)


class SoftmaxBetween(nn.Module):
    def forward(self, x):
        return torch.sigmoid(F.softmax(F.gelu(x), -1) * 3)


class LayerNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm((4, 64))

    def forward(self, x):
        return self.norm(x.view(-1, 4, 64))


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(256)

    def forward(self, x):
        return self.norm(x) + x


class Masked(nn.Module):
    def forward(self, scores, mask):
        return F.softmax((scores / 8).masked_fill(mask, float("-inf")), -1)


class NarrowSoftmax(nn.Module):
    def forward(self, x):
        return F.softmax(x, -1)


class LongSoftmax(nn.Module):
    def forward(self, x):
        return F.log_softmax(x * 0.7, -1), x.sum(-1)


class LongLayerNorm(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, (70000,))


class WholeLoss(nn.Module):
    def forward(self, x, y):
        return F.mse_loss(x, y) + F.l1_loss(x, y)


class Halves(nn.Module):
    def forward(self, x, y):
        return F.softmax(F.gelu(x, approximate="tanh") + torch.log1p(y.exp()), -1)


SHAPES = {
    "PerChannel": ((8, 16, 12, 12),),
    "Transposed": ((8, 16, 64),),
    "NarrowSoftmax": ((100, 7),),
    "LongSoftmax": ((6, 70000),),
    "LongLayerNorm": ((5, 70000),),
    "WholeLoss": ((300, 256), (300, 256)),
    "LayerNorm": ((50, 256),),
}
DTYPES = {"Halves": torch.bfloat16}
TWO = ("Arithmetic", "TwoResults", "Halves")
REFUSED = ("Convolution", "Sorted", "Single", "SingleColumn")


class Convolution(nn.Module):
    def forward(self, x):
        return F.conv1d(x, x[:, :, :3])


class Sorted(nn.Module):
    def forward(self, x):
        return torch.sort(x, -1).values


def inputs_of(name):
    """Seeded inputs for a class; floating ones standard normal."""
    torch.manual_seed(1)
    if name == "Masked":
        return [torch.randn(2, 4, 32, 32), torch.triu(torch.ones(2, 1, 32, 32), 1).bool()]
    if name == "Convolution":
        return [torch.randn(4, 8, 16)]
    shapes = SHAPES.get(name, ((50, 256),) * (2 if name in TWO else 1))
    dtype = DTYPES.get(name, torch.float32)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def get_activations_inputs():
    return inputs_of("Activations")


def get_arithmetic_inputs():
    return inputs_of("Arithmetic")


def get_powers_inputs():
    return inputs_of("Powers")


def get_per_channel_inputs():
    return inputs_of("PerChannel")


def get_scalar_parameter_inputs():
    return inputs_of("ScalarParameter")


def get_transposed_inputs():
    return inputs_of("Transposed")


def get_gated_inputs():
    return inputs_of("Gated")


def get_joined_inputs():
    return inputs_of("Joined")


def get_joined_unequal_inputs():
    return inputs_of("JoinedUnequal")


def get_interleaved_inputs():
    return inputs_of("Interleaved")


def get_two_results_inputs():
    return inputs_of("TwoResults")


def get_maximum_inputs():
    return inputs_of("Maximum")


def get_best_inputs():
    return inputs_of("Best")


def get_worst_inputs():
    return inputs_of("Worst")


def get_product_inputs():
    return inputs_of("Product")


def get_unit_length_inputs():
    return inputs_of("UnitLength")


def get_mean_absolute_inputs():
    return inputs_of("MeanAbsolute")


def get_frobenius_inputs():
    return inputs_of("Frobenius")


def get_log_sum_exp_inputs():
    return inputs_of("LogSumExp")


def get_spread_inputs():
    return inputs_of("Spread")


def get_softmax_between_inputs():
    return inputs_of("SoftmaxBetween")


def get_layer_norm_inputs():
    return inputs_of("LayerNorm")


def get_root_mean_square_inputs():
    return inputs_of("RootMeanSquare")


def get_masked_inputs():
    return inputs_of("Masked")


def get_narrow_softmax_inputs():
    return inputs_of("NarrowSoftmax")


def get_long_softmax_inputs():
    return inputs_of("LongSoftmax")


def get_long_layer_norm_inputs():
    return inputs_of("LongLayerNorm")


def get_whole_loss_inputs():
    return inputs_of("WholeLoss")


def get_halves_inputs():
    return inputs_of("Halves")


def get_convolution_inputs():
    return inputs_of("Convolution")


def get_sorted_inputs():
    return inputs_of("Sorted")


class Single(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class SingleColumn(nn.Module):
    def forward(self, x):
        return F.softmax(x, -1)


def get_single_inputs():
    return [torch.randn(1, 1)]


def get_single_column_inputs():
    return [torch.randn(50, 1)]


class Configured(nn.Module):
    """Everything a guard can be on: a number, a flag, a name, a function, nested state."""

    def __init__(self):
        super().__init__()
        self.slope = 0.25
        self.bounded = True
        self.mode = "fast"
        self.act = F.silu
        self.layers = nn.ModuleList([nn.LayerNorm(256)])

    def forward(self, x):
        y = self.act(x) * self.slope
        y = y.clamp(-1, 1) if self.bounded else y
        return self.layers[0](y) if self.mode == "fast" else y


class Größe(nn.Module):
    def forward(self, größe):
        return torch.tanh(größe)


def get_größe_inputs():
    return [torch.randn(50, 256)]


def get_configured_inputs():
    return [torch.randn(50, 256)]

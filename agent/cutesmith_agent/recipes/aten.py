"""Pointwise aten ops as expressions: one line each, in fp32, with PyTorch's NaN and boundary rules."""

from __future__ import annotations

import math
from collections.abc import Callable

from cutesmith_evaluator.types import Arg

from .ir import Builder, Expr

Emit = Callable[..., Expr]


def _c(b: Builder, value: object) -> Expr:
    return value if isinstance(value, Expr) else b.const(float(value))  # type: ignore[arg-type]


def _number(value: object) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    raise TypeError(f"expected a number, got {value!r}")


def _scaled(b: Builder, x: Expr, alpha: object) -> Expr:
    return x if alpha in (None, 1) else b.op("mul", x, _c(b, alpha))


def _add(b: Builder, x: Expr, y: Expr, alpha: object = 1) -> Expr:
    return b.op("add", x, _scaled(b, _c(b, y), alpha))


def _sub(b: Builder, x: Expr, y: Expr, alpha: object = 1) -> Expr:
    return b.op("sub", x, _scaled(b, _c(b, y), alpha))


def _rsub(b: Builder, x: Expr, y: Expr, alpha: object = 1) -> Expr:
    return b.op("sub", _c(b, y), _scaled(b, x, alpha))


def _binary(name: str) -> Emit:
    return lambda b, x, y: b.op(name, _c(b, x), _c(b, y))


def _unary(name: str) -> Emit:
    return lambda b, x: b.op(name, x)


def _pow(b: Builder, x: Expr, exponent: object) -> Expr:
    """Small whole exponents by multiplication, halves by roots; the rest by `pow`."""
    if isinstance(exponent, Expr):
        return b.op("pow", x, exponent)
    p = _number(exponent)
    if p == 0.5:
        return b.op("sqrt", x)
    if p == -0.5:
        return b.op("rsqrt", x)
    if p == int(p) and 1 <= abs(p) <= 4:
        power = x
        for _ in range(int(abs(p)) - 1):
            power = b.op("mul", power, x)
        return power if p > 0 else b.op("div", b.const(1.0), power)
    return b.op("pow", x, b.const(p))


def _clamp(b: Builder, x: Expr, low: object = None, high: object = None) -> Expr:
    """A NaN stays: it is neither below nor above."""
    if low is not None:
        low = _c(b, low)
        x = b.op("where", b.op("lt", x, low), low, x)
    if high is not None:
        high = _c(b, high)
        x = b.op("where", b.op("gt", x, high), high, x)
    return x


def _larger(name: str) -> Emit:
    """aten.maximum / minimum: NaN in either operand wins."""

    def emit(b: Builder, x: Expr, y: Expr) -> Expr:
        x, y = _c(b, x), _c(b, y)
        first = b.op("or", b.op(name, x, y), b.op("ne", x, x))
        return b.op("where", first, x, y)

    return emit


def _sigmoid(b: Builder, x: Expr) -> Expr:
    return b.op("div", b.const(1.0), b.op("add", b.const(1.0), b.op("exp", b.op("neg", x))))


def _silu(b: Builder, x: Expr) -> Expr:
    return b.op("div", x, b.op("add", b.const(1.0), b.op("exp", b.op("neg", x))))


def _gelu(b: Builder, x: Expr, approximate: object = "none") -> Expr:
    half = b.op("mul", b.const(0.5), x)
    if approximate == "tanh":
        cube = b.op("mul", b.op("mul", x, x), x)
        inner = b.op("mul", b.const(math.sqrt(2 / math.pi)), b.op("add", x, b.op("mul", b.const(0.044715), cube)))
        return b.op("mul", half, b.op("add", b.const(1.0), b.op("tanh", inner)))
    return b.op("mul", half, b.op("add", b.const(1.0), b.op("erf", b.op("mul", x, b.const(math.sqrt(0.5))))))


def _softplus(b: Builder, x: Expr, beta: object = 1, threshold: object = 20) -> Expr:
    scaled = b.op("mul", x, _c(b, beta))
    soft = b.op("div", b.op("log1p", b.op("exp", scaled)), _c(b, beta))
    return b.op("where", b.op("gt", scaled, _c(b, threshold)), x, soft)


def _elu(b: Builder, x: Expr, alpha: object = 1, scale: object = 1, input_scale: object = 1) -> Expr:
    negative = b.op("mul", b.const(_number(alpha) * _number(scale)), b.op("expm1", b.op("mul", x, _c(b, input_scale))))
    return b.op("where", b.op("le", x, b.const(0.0)), negative, b.op("mul", x, _c(b, scale)))


def _leaky_relu(b: Builder, x: Expr, slope: object = 0.01) -> Expr:
    return b.op("where", b.op("gt", x, b.const(0.0)), x, b.op("mul", x, _c(b, slope)))


def _relu6(b: Builder, x: Expr) -> Expr:
    """clamp(x + 3, 0, 6): the ramp that hardsigmoid and hardswish share."""
    return _clamp(b, b.op("add", x, b.const(3.0)), 0.0, 6.0)


def _hardsigmoid(b: Builder, x: Expr) -> Expr:
    return b.op("mul", _relu6(b, x), b.const(1 / 6))


def _hardswish(b: Builder, x: Expr) -> Expr:
    return b.op("mul", b.op("mul", x, _relu6(b, x)), b.const(1 / 6))


def _mish(b: Builder, x: Expr) -> Expr:
    return b.op("mul", x, b.op("tanh", _softplus(b, x)))


def _threshold(b: Builder, x: Expr, threshold: object, value: object) -> Expr:
    return b.op("where", b.op("le", x, _c(b, threshold)), _c(b, value), x)


def _sign(b: Builder, x: Expr) -> Expr:
    negative = b.op("where", b.op("lt", x, b.const(0.0)), b.const(-1.0), x)
    return b.op("where", b.op("gt", x, b.const(0.0)), b.const(1.0), negative)


def _where(b: Builder, condition: Expr, x: object, y: object) -> Expr:
    return b.op("where", condition, _c(b, x), _c(b, y))


def _masked_fill(b: Builder, x: Expr, mask: Expr, value: object) -> Expr:
    return b.op("where", mask, _c(b, value), x)


def _lerp(b: Builder, x: Expr, y: Expr, weight: object) -> Expr:
    return b.op("add", x, b.op("mul", _c(b, weight), b.op("sub", y, x)))


def _addcmul(b: Builder, x: Expr, y: Expr, z: Expr, value: object = 1) -> Expr:
    return b.op("add", x, _scaled(b, b.op("mul", y, z), value))


def _addcdiv(b: Builder, x: Expr, y: Expr, z: Expr, value: object = 1) -> Expr:
    return b.op("add", x, _scaled(b, b.op("div", y, z), value))


def _identity(b: Builder, x: Expr, *_: Arg) -> Expr:
    return x


def _truth(b: Builder, x: Expr) -> Expr:
    return x if x.boolean else b.op("ne", x, b.const(0.0))


def _logical(name: str) -> Emit:
    return lambda b, x, y: b.op(name, _truth(b, _c(b, x)), _truth(b, _c(b, y)))


POINTWISE: dict[str, Emit] = {
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _binary("mul"),
    "div": _binary("div"),
    "pow": _pow,
    "maximum": _larger("gt"),
    "minimum": _larger("lt"),
    "clamp": _clamp,
    "clamp_min": lambda b, x, low: _clamp(b, x, low),
    "clamp_max": lambda b, x, high: _clamp(b, x, None, high),
    "hardtanh": lambda b, x, low=-1.0, high=1.0: _clamp(b, x, low, high),
    "relu": lambda b, x: _clamp(b, x, 0.0),
    "relu6": lambda b, x: _clamp(b, x, 0.0, 6.0),
    "sigmoid": _sigmoid,
    "log_sigmoid_forward": lambda b, x: b.op("neg", _softplus(b, b.op("neg", x), 1, 88)),
    "silu": _silu,
    "gelu": _gelu,
    "softplus": _softplus,
    "elu": _elu,
    "leaky_relu": _leaky_relu,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "mish": _mish,
    "threshold": _threshold,
    "sign": _sign,
    "sgn": _sign,
    "where": _where,
    "masked_fill": _masked_fill,
    "lerp": _lerp,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "clone": _identity,
    "_to_copy": _identity,
    "detach": _identity,
    "alias": _identity,
    "lift_fresh_copy": _identity,
    "contiguous": _identity,
    "reciprocal": lambda b, x: b.op("div", b.const(1.0), x),
    "square": lambda b, x: b.op("mul", x, x),
    "isnan": lambda b, x: b.op("ne", x, x),
    "logical_not": lambda b, x: b.op("not", _truth(b, x)),
    "bitwise_not": lambda b, x: b.op("not", _truth(b, x)),
    **{name: _logical(op) for name, op in (("logical_and", "and"), ("logical_or", "or"))},
    **{name: _logical(op) for name, op in (("bitwise_and", "and"), ("bitwise_or", "or"))},
    **{name: _binary(name) for name in ("lt", "le", "gt", "ge", "eq", "ne", "atan2")},
    **{
        name: _unary(name)
        for name in (
            *("abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
            *("tanh", "sinh", "cosh", "sin", "cos", "tan", "atan", "asin", "acos", "erf", "erfc"),
            *("floor", "ceil", "trunc", "round"),
        )
    },
}

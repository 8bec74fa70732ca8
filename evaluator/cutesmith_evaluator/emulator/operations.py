"""Every arithmetic instruction that is emulated, by its first word."""

from __future__ import annotations

from collections.abc import Callable

from cutesmith_evaluator.emulator import arithmetic, bits, comparisons, conversions, more_integers
from cutesmith_evaluator.emulator.kinds import Words
from cutesmith_evaluator.emulator.operation import Operation

OPERATIONS: dict[str, Callable[[Words], Operation]] = {
    **dict.fromkeys(("add", "sub", "mul", "mad", "fma", "div", "rcp", "sqrt"), arithmetic.arithmetic),
    **dict.fromkeys(("ex2", "lg2", "rsqrt", "tanh", "sin", "cos"), arithmetic.function_of_one),
    **dict.fromkeys(("neg", "abs"), arithmetic.negation),
    **dict.fromkeys(("min", "max"), arithmetic.extreme),
    "rem": arithmetic.division,
    "copysign": arithmetic.copysign,
    **dict.fromkeys(("and", "or", "xor"), bits.logic),
    "not": bits.negated,
    "cnot": bits.complement,
    **dict.fromkeys(("shl", "shr"), bits.shift),
    "shf": bits.funnel,
    **dict.fromkeys(("bfe", "bfi"), bits.field),
    **dict.fromkeys(("popc", "clz"), bits.counted),
    "brev": bits.reverse,
    "prmt": bits.permute,
    "lop3": bits.lookup,
    "setp": comparisons.setp,
    "selp": comparisons.selp,
    "set": comparisons.set_value,
    "slct": comparisons.slct,
    "testp": comparisons.testp,
    "cvt": conversions.convert,
    **dict.fromkeys(("mul24", "mad24"), more_integers.product24),
    "sad": more_integers.distance,
    "dp4a": more_integers.dot4,
    "dp2a": more_integers.dot2,
    "bfind": more_integers.find,
    "szext": more_integers.extend,
    "bmsk": more_integers.mask,
}

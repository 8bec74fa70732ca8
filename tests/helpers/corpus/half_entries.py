"""float16 and bfloat16, single and in pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from corpus.checks import close
from corpus.entry import Entry, applied

_KINDS = ("f16", "f16x2", "bf16", "bf16x2")


def entries() -> Iterator[Entry]:
    yield from _arithmetic()
    yield from _signs()
    yield from _approximate()


def _arithmetic() -> Iterator[Entry]:
    for kind, name in product(_KINDS, ("add", "sub", "mul", "fma")):
        count = 3 if name == "fma" else 2
        for dress in _dresses(name, kind):
            yield applied(f"{name}{dress}{kind}", [kind] * count, kind)


def _dresses(name: str, kind: str) -> tuple[str, ...]:
    """The modifiers that the type takes. `add` and the like without a rounding may be fused with others."""
    plain = () if name == "fma" else (".",)
    if kind.startswith("bf16"):
        return (*plain, ".rn.", *((".rn.relu.",) if name == "fma" else ()))
    more = (".rn.relu.", ".rn.ftz.relu.") if name == "fma" else ()
    return (*plain, ".rn.", ".rn.ftz.", ".rn.sat.", ".rn.ftz.sat.", *more)


def _signs() -> Iterator[Entry]:
    for kind in _KINDS:
        ftz = (".", ".ftz.") if kind.startswith("f16") else (".",)
        for name, dress in product(("neg", "abs"), ftz):
            yield applied(f"{name}{dress}{kind}", [kind], kind)
        for name, dress, nan, sign in product(("min", "max"), ftz, ("", "NaN."), ("", "xorsign.abs.")):
            yield applied(f"{name}{dress}{nan}{sign}{kind}", [kind, kind], kind)


def _approximate() -> Iterator[Entry]:
    """The manual's errors, and half a unit for the emulator's rounding."""
    tanh = {"f16": (2**-10.987, 2.0**-11), "bf16": (2.0**-8, 2.0**-9)}
    for kind in _KINDS:
        base = kind.removesuffix("x2")
        error, half = tanh[base]
        yield applied(f"tanh.approx.{kind}", [kind], kind, check=close(kind, absolute=error, relative=half))
    for kind in ("f16", "f16x2"):
        bound = close(kind, relative=2**-9.9 + 2.0**-11, absolute=2.0**-24)
        yield applied(f"ex2.approx.{kind}", [kind], kind, check=bound)
    for kind in ("bf16", "bf16x2"):
        yield applied(f"ex2.approx.ftz.{kind}", [kind], kind, check=close(kind, relative=2.0**-7 + 2.0**-9))

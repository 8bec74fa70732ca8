"""What a convolution's kernel does with its sums, written from the epilogue's expressions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from . import implicit_finish, implicit_rows, implicit_sums
from .accesses import Access
from .product_engine import placed
from .product_finish import Finish

AT = "n, channel, z, y, x"
WATCH = "watch = cutlass.Float32(0)  # until a sum is not finite"


@dataclass(frozen=True)
class Ending:
    """What a kernel does with its sums: functions of the file, and statements of the kernel."""

    functions: tuple[str, ...]
    finish: str  # after each phase
    states: str = ""  # before the first tile
    begin: str = ""  # of a tile
    end: str = ""
    words: tuple[tuple[str, str], ...] = ()  # that the functions have places for


FINISH_CALL = "total, places, undo, phase, n, z + own_z, y + own_y, x + own_x, tile * TILE_N, {tensors}"


def pointwise(finish: Finish, *, whole: bool) -> Ending:
    """Element by element, a few at a time, without branches between them. `whole`: tiles divide the channels."""
    results = [f"results_{k}" if len(finish.outputs) > 1 else "results" for k in range(len(finish.outputs))]
    body = _body(finish, implicit_finish.FINISH, results)
    for line in ("one", "other"):
        body = placed(body, f"{{store_{line}}}", "\n".join(_stored(finish, results, line, whole=whole)))
    names = tuple(a.gmem for a in (*_by_position(finish), *finish.outputs))
    functions = ("\n".join(finish.lines), _at_position(names), _store(finish), _after(body))
    call = f"watch += finish({FINISH_CALL})"
    return Ending(functions, call, begin=WATCH, end=implicit_finish.ONCE_MORE, words=_words(finish, names))


def in_rows(finish: Finish, *, whole: bool, channels: int) -> Ending:
    """Element by element, in the order of the results. `channels`: of results that a thread has at a time."""
    together = math.gcd(4 if any("cute.math" in line for line in finish.lines) else 8, channels)
    results = [f"results_{k}" if len(finish.outputs) > 1 else "results" for k in range(len(finish.outputs))]
    own = _by_position(finish)
    names = tuple(a.gmem for a in (*own, *finish.outputs))
    made = [f"{result} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)" for result in results]
    made += [f"of_{a.gmem} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)" for a in own]
    reading = [
        "for i in cutlass.range_constexpr({together}):",
        "    c = few + BESIDE * i + beside",
        "    channel = {channel}",
        *(f"    of_{a.gmem}[i] = line[{k}][channel].to(cutlass.Float32)" for k, a in enumerate(own)),
    ]
    stores = [
        f"line[{len(own) + k}][channel] = {result}[i].to({a.gmem}.element_type)"
        for k, (a, result) in enumerate(zip(finish.outputs, results, strict=True))
    ]
    stores = stores if whole else ["if channel < OUT_CHANNELS:", *(f"    {each}" for each in stores)]
    body = implicit_rows.FINISH
    for mark, block in (("{results}", made), ("{read}", reading if own else []), ("{store}", stores)):
        body = placed(body, mark, "\n".join(block))
    body = placed(body, "{epilogue}", _computed(finish, results).replace("[i - first]", "[i]"))
    functions = (
        implicit_rows.PLACES,
        "\n".join(finish.lines),
        _at_position(names),
        _store(finish),
        body,
        implicit_finish.PLAIN,
    )
    words = (
        ("{channel}", "first_channel + c" if whole else "cutlass.min(first_channel + c, OUT_CHANNELS - 1)"),
        ("{end}", "first_channel + STAGED" if whole else "cutlass.min(first_channel + STAGED, OUT_CHANNELS)"),
        ("{together}", str(together)),
        ("{outside}", ", ".join(finish.tensors)),
        ("{varying}", ", ".join(names)),
    )
    return Ending(functions, implicit_rows.TILE, implicit_rows.STATES, words=words)


def summed(finish: Finish) -> Ending:
    """Sums of each tile, by channels."""
    names = tuple(a.gmem for a in _by_position(finish))
    body = _body(finish, implicit_sums.FINISH, ["results"])
    body = placed(body, "{positions}", implicit_sums.POSITIONS if names else "")
    result = f"def result_at(value, {AT}, {{outside}}):\n    return epilogue({_arguments_at(finish)})"
    functions = ("\n".join(finish.lines), _at_position(names), result, _after(body))
    call = f"watch += finish(sums, {FINISH_CALL})"
    end = implicit_sums.END.replace("{sums}", finish.outputs[0].gmem)
    begin = f"{WATCH}\n{implicit_sums.BEGIN}"
    return Ending(functions, call, implicit_sums.STATES, begin, end, _words(finish, names))


def _body(finish: Finish, template: str, results: list[str]) -> str:
    body = placed(template, "{results}", "\n".join(_made(finish, results)))
    return placed(placed(body, "{read}", "\n".join(_read(finish))), "{epilogue}", _computed(finish, results))


def _after(body: str) -> str:
    return implicit_finish.PLACES + body + implicit_finish.PLAIN


def _words(finish: Finish, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    together = "4" if any("cute.math" in line for line in finish.lines) else "8"
    return ("{together}", together), ("{outside}", ", ".join(finish.tensors)), ("{varying}", ", ".join(names))


def _at_position(names: tuple[str, ...]) -> str:
    lines = (
        "def at_position(n, z, y, x, {varying}):",
        '    """What lies at a position, by channels."""',
        f"    return ({' '.join(f'{name}[n, None, z, y, x],' for name in names)})",
    )
    return "\n".join(lines) if names else ""


def _store(finish: Finish) -> str:
    """The function that computes and writes one result of each output."""
    results = [f"result_{k}" if len(finish.outputs) > 1 else "result" for k in range(len(finish.outputs))]
    stores = [
        f"    {a.gmem}[{AT}] = {r}.to({a.gmem}.element_type)" for a, r in zip(finish.outputs, results, strict=True)
    ]
    head = f"def store(value, {AT}, {{outside}}):"
    return "\n".join((head, f"    {', '.join(results)} = epilogue({_arguments_at(finish)})", *stores))


def _arguments_at(finish: Finish) -> str:
    return ", ".join(("value", *(f"{a.gmem}[{AT}].to(cutlass.Float32)" for a in finish.operands)))


def _by_position(finish: Finish) -> list[Access]:
    return [a for a in finish.operands if not _of_a_channel(a)]


def _of_a_channel(access: Access) -> bool:
    """Whether an operand of the epilogue is the same for all positions."""
    assert access.load is not None
    return not any(stride for k, stride in enumerate(access.load.strides) if k != 1)


def _made(finish: Finish, results: list[str]) -> list[str]:
    made = [f"{result} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)" for result in results]
    for a in _by_position(finish):
        made += [f"of_{a.gmem} = cute.make_rmem_tensor(({{together}},), cutlass.Float32)", f"of_{a.gmem}.fill(0.0)"]
    return made


def _read(finish: Finish) -> list[str]:
    read = []
    found = _by_position(finish)
    for line, when in (("one", "<"), ("other", ">=")) if found else ():
        read += [f"if is_{line}:", "    for i in cutlass.range_constexpr(first, end):"]
        read += ["        channel = cutlass.min(first_channel + places[i][1], OUT_CHANNELS - 1)"]
        read += [f"        if cutlass.const_expr(i % 4 {when} 2):"]
        read += [
            f"            of_{a.gmem}[i - first] = {line}[{k}][channel].to(cutlass.Float32)"
            for k, a in enumerate(found)
        ]
    return read


def _computed(finish: Finish, results: list[str]) -> str:
    arguments = ", ".join(("value", *(_argument(a) for a in finish.operands)))
    return f"{', '.join(f'{result}[i - first]' for result in results)} = epilogue({arguments})"


def _argument(access: Access) -> str:
    if _of_a_channel(access):
        return f"{access.gmem}[0, channel, 0, 0, 0].to(cutlass.Float32)"
    return f"of_{access.gmem}[i - first]"


def _stored(finish: Finish, results: list[str], line: str, *, whole: bool) -> list[str]:
    before = len(_by_position(finish))
    stores = [
        f"{line}[{before + k}][channel] = {result}[i - first].to({a.gmem}.element_type)"
        for k, (a, result) in enumerate(zip(finish.outputs, results, strict=True))
    ]
    return stores if whole else ["if channel < OUT_CHANNELS:", *(f"    {each}" for each in stores)]

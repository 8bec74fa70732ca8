"""What ptxas decided for each kernel of a cubin, read from the ELF file itself: no CUDA tools are needed.

Layout as the driver reads it: `.nv.info` holds records of (format, attribute, size or value); those of format 4 carry
a payload whose first word is the index of a kernel's symbol. Static shared memory is the size of `.nv.shared.<kernel>`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2
_NOBITS = 8
_SIZED = 4  # record format: a 16-bit size and that much payload; the others carry 16 bits of value
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F
_RESERVED = 1024  # bytes of a block that the system takes from sm_90 on; the section's size includes them


@dataclass(frozen=True)
class KernelUse:
    """`frame_bytes`: local memory per thread: spilled registers and arrays that are indexed at run time."""

    symbol: str
    registers: int
    frame_bytes: int
    static_shared_bytes: int


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    size: int
    data: bytes


def kernels_of(cubin: bytes) -> tuple[KernelUse, ...]:
    """The kernels of a cubin, in the order of its symbols. Raises ValueError on anything but a 64-bit ELF file."""
    sections = _sections(cubin)
    symbols = _symbols(sections)
    registers: dict[str, int] = {}
    frames: dict[str, int] = {}
    for attribute, symbol, value in _records(sections.get(".nv.info")):
        if attribute == _REGISTERS:
            registers[symbols[symbol]] = value
        elif attribute == _FRAME_SIZE:
            frames[symbols[symbol]] = value
    return tuple(
        KernelUse(name, count, frames.get(name, 0), _shared(sections, name)) for name, count in registers.items()
    )


def _sections(cubin: bytes) -> dict[str, _Section]:
    if len(cubin) < 64 or cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (offset,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    headers = [_SECTION.unpack_from(cubin, offset + place * size) for place in range(count)]
    names = _content(cubin, headers[names_at])
    return {
        section.name: section
        for header in headers
        for section in [_Section(_text(names, header[0]), header[1], header[5], _content(cubin, header))]
    }


def _content(cubin: bytes, header: tuple[int, ...]) -> bytes:
    _, kind, _, _, offset, size, *_ = header
    return b"" if kind == _NOBITS else cubin[offset : offset + size]


def _symbols(sections: dict[str, _Section]) -> list[str]:
    table = next(section for section in sections.values() if section.kind == _SYMTAB)
    names = sections[".strtab"].data
    return [_text(names, symbol[0]) for symbol in _SYMBOL.iter_unpack(table.data)]


def _records(info: _Section | None) -> Iterator[tuple[int, int, int]]:
    """(attribute, symbol, value) of the records that hold a value for a symbol."""
    data = info.data if info else b""
    place = 0
    while place + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, place)
        place += 4
        if form == _SIZED:
            if size == 8:
                yield attribute, *struct.unpack_from("<II", data, place)
            place += size


def _shared(sections: dict[str, _Section], kernel: str) -> int:
    section = sections.get(f".nv.shared.{kernel}")
    reserved = _RESERVED if ".nv.shared.reserved.0" in sections else 0
    return max(section.size - reserved, 0) if section else 0


def _text(names: bytes, start: int) -> str:
    return names[start : names.index(b"\0", start)].decode()

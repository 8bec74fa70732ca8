"""What to change in a kernel, in words that name the line and the figures; the likeliest gain first."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cutesmith_agent.estimate import CORES
from cutesmith_agent.profiling.facts import SECTOR, WIDEST, Facts
from cutesmith_evaluator.types import AccessCounts, Hint, KernelMeasures, Resources

MOST = 5
_LEAST_GAIN = 0.01
_REGISTERS, _THREADS = 65_536, 2_048  # of a multiprocessor
_WARP = 32
_NARROW = 0.4  # of the time of narrow accesses, that wide ones may save
_SECTORS_A_WIDE_ACCESS = 16  # of a warp, 16 bytes a thread

Rule = Callable[[Facts], Iterator[Hint]]


def hints(facts: Facts) -> tuple[Hint, ...]:
    found = [hint for rule in _RULES for hint in rule(facts) if hint.gain >= _LEAST_GAIN]
    best = {hint.message: hint for hint in sorted(found, key=lambda hint: hint.gain)}
    return tuple(sorted(best.values(), key=lambda hint: (-hint.gain, hint.line or 0)))[:MOST]


def _scattered(facts: Facts) -> Iterator[Hint]:
    """Accesses that touch more of global memory than they use."""
    for access in _global(facts):
        times = access.sectors * SECTOR / max(access.bytes, 1)
        if times >= 1.5:
            message = (
                f"{_plural(access)} touch {times:.1f} times the bytes that they use; give neighbouring threads "
                "neighbouring addresses."
            )
            yield Hint(message, access.line, _part(access, facts) * (1 - 1 / times))


def _narrow(facts: Facts) -> Iterator[Hint]:
    """Accesses that lie side by side and could be fewer and wider."""
    for access in _global(facts):
        rows = facts.rows(access.what)
        beside = access.bytes / max(access.sectors * SECTOR, 1)
        if access.what == "atomic" or rows is None or not 0.67 < beside < 1.5:
            continue
        length, row_bytes = rows
        possible = next(width for width in (WIDEST, 8, 4, 2, 1) if row_bytes % width == 0)
        if possible > access.width:
            message = f"{_plural(access)} are {access.width} bytes wide; {possible} possible: rows are {length} long."
            yield Hint(message, access.line, _part(access, facts) * _NARROW * (1 - access.width / possible))


def _conflicts(facts: Facts) -> Iterator[Hint]:
    passes = sum(kernel.shared_passes for kernel in facts.profile.kernels)
    for access in facts.accesses:
        if access.bank_conflicts > access.requests / 2:
            times = 1 + access.bank_conflicts / max(access.requests, 1)
            message = (
                f"{_plural(access)} take {times:.1f} passes for their bank conflicts; pad the rows of the tile or "
                "swizzle its layout."
            )
            weight = 1.0 if facts.limiter == "shared memory" else 0.3
            yield Hint(message, access.line, weight * access.bank_conflicts / max(passes, 1))


def _repeated(facts: Facts) -> Iterator[Hint]:
    """More of global memory passes by than the task has, and not for scattered accesses."""
    asked = sum(kernel.global_bytes for kernel in facts.profile.kernels)
    times = asked / facts.profile.bytes if facts.profile.bytes else 0.0
    if times < 1.25:
        return
    loads = [access for access in _global(facts) if access.what == "global load"]
    line = max(loads, key=lambda access: access.bytes).line if loads else None
    message = (
        f"Threads ask for {times:.1f} times the fewest bytes of the task; keep what is read again in registers or "
        "shared memory, and what one kernel leaves to the next, too."
    )
    yield Hint(message, line, 0.5 * (1 - 1 / times))


def _spills(facts: Facts) -> Iterator[Hint]:
    for used in facts.used():
        if used.spill_bytes:
            message = (
                f"{used.kernel} spills {used.spill_bytes} bytes of registers to memory; give a thread fewer elements "
                "or shorten live ranges."
            )
            yield Hint(message, facts.line_of(used.kernel), 0.3)


def _occupancy(facts: Facts) -> Iterator[Hint]:
    """Few warps matter where latency is what limits."""
    if facts.limiter not in ("latency", None):
        return
    for used in facts.used():
        share = _threads(used) / _THREADS
        if share < 0.5:
            message = (
                f"{used.kernel} takes {used.registers} registers a thread, which leaves {_threads(used)} of {_THREADS} "
                "threads a multiprocessor; let each do less at a time."
            )
            yield Hint(message, facts.line_of(used.kernel), 0.2 * (1 - share))


def _few_blocks(facts: Facts) -> Iterator[Hint]:
    """Only at the task's own sizes: the emulated device may run smaller ones."""
    cores = CORES.get(facts.arch)
    blocks = {kernel.kernel: kernel.blocks for kernel in facts.profile.measured if kernel.blocks}
    if facts.profile.bytes == facts.graph.bytes:
        blocks |= {kernel.kernel: kernel.blocks for kernel in facts.profile.kernels if kernel.blocks}
    for kernel, number in blocks.items():
        if cores is not None and number < cores.multiprocessors:
            idle = 1 - number / cores.multiprocessors
            message = (
                f"{kernel} has {number} blocks for {cores.multiprocessors} multiprocessors; split the work into more."
            )
            yield Hint(message, facts.line_of(kernel), 0.5 * idle)


def _measured(facts: Facts) -> Iterator[Hint]:
    whole = sum(kernel.us for kernel in facts.profile.measured)
    for kernel in facts.profile.measured:
        for message, gain in _of_measures(kernel, facts):
            yield Hint(message, facts.line_of(kernel.kernel), gain * kernel.us / whole if whole else 0.0)


def _of_measures(kernel: KernelMeasures, facts: Facts) -> Iterator[tuple[str, float]]:
    for what, sectors in (("loads", kernel.load_sectors), ("stores", kernel.store_sectors)):
        if sectors is not None and not facts.accesses:
            yield from _of_sectors(kernel.kernel, what, sectors)
    if kernel.spill_sectors:
        yield f"{kernel.kernel} moves {kernel.spill_sectors:,.0f} sectors of spilled registers.", 0.3
    if facts.limiter != "latency":
        return
    if kernel.occupancy is not None and kernel.occupancy < 0.4 and kernel.occupancy_limit:
        message = (
            f"{kernel.kernel} keeps {kernel.occupancy:.0%} of the warps busy; {kernel.occupancy_limit} limit them."
        )
        yield message, 0.3 * (1 - kernel.occupancy)
    if kernel.stalls and kernel.stalls[0][1] > 1:
        why, waiting = kernel.stalls[0]
        yield f"In {kernel.kernel} {waiting:.1f} warps wait for {why} for each that issues; {_remedy(why)}.", 0.25


def _of_sectors(kernel: str, what: str, sectors: float) -> Iterator[tuple[str, float]]:
    touched = f"A warp's {what} in {kernel} touch {sectors:.0f} sectors"
    if sectors > 1.25 * _SECTORS_A_WIDE_ACCESS:
        message = f"{touched}; give neighbouring threads neighbouring addresses."
        yield message, 0.5 * (1 - _SECTORS_A_WIDE_ACCESS / sectors)
    elif sectors < _SECTORS_A_WIDE_ACCESS / 2:
        message = f"{touched}, {sectors * SECTOR / _WARP:.0f} bytes a thread; {WIDEST} may be possible."
        yield message, 0.2 * (1 - sectors / _SECTORS_A_WIDE_ACCESS)


def _remedy(why: str) -> str:
    return {
        "global memory": "start loads earlier, or more of them at once",
        "a barrier": "let fewer warps meet there, or less often",
        "shared memory": "read it in wider pieces",
        "an arithmetic unit": "spread the work over other units",
    }.get(why, "give it other work meanwhile")


def _global(facts: Facts) -> Iterator[AccessCounts]:
    """Those that lie apart: loads of one address by all threads of a warp cost next to nothing."""
    for access in facts.accesses:
        if not access.what.startswith("shared") and access.sectors:
            yield access


def _part(access: AccessCounts, facts: Facts) -> float:
    return access.sectors / max(facts.sectors, 1)


def _plural(access: AccessCounts) -> str:
    return (
        {"atomic": "Atomic updates"}.get(access.what, f"{access.what.capitalize()}s")
        .replace("Global ", "")
        .capitalize()
    )


def _threads(used: Resources) -> int:
    """That the registers leave room for."""
    return min(_THREADS, _REGISTERS // max(used.registers, 1) // _WARP * _WARP)


_RULES: tuple[Rule, ...] = (_scattered, _narrow, _conflicts, _repeated, _spills, _occupancy, _few_blocks, _measured)

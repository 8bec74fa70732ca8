"""How a verdict is put to a person, in the lens, the diagnostics, the hover and on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cutesmith_evaluator.units import duration

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_agent.store.captures import Capture
    from cutesmith_evaluator.types import Candidate, ErrorFigures, Hint, Profile, Resources, Timing

NO_GRAD_NOTE = (
    "The kernel is inference only: where autograd needs the result (gradients are enabled and an input or a parameter "
    "requires grad, in eval mode too) `supports` is false and the original code runs. Call the module under "
    "torch.no_grad() or torch.inference_mode(), or freeze its parameters, to get the kernel."
)


def captured(found: Capture) -> str:
    """What a real run showed of a class: "captured: 3 signatures in 120 calls, all in training, 12% of the step"."""
    calls, number = sum(call.calls for call in found.calls), len(found.calls)
    words = f"captured: {number} signature{'s' if number > 1 else ''} in {calls:,} call{'s' if calls > 1 else ''}"
    if all(call.training == call.calls for call in found.calls):
        words += ", all in training"
    elif all(call.grad == call.calls for call in found.calls):
        words += ", all with gradients enabled"
    return words + (f", {found.time.share:.0%} of the time in forward passes" if found.time else "")


def headline(candidate: Candidate) -> str:
    """A usable candidate in a few words; that it is less precise than its module is among them."""
    lowered = ", at lowered precision" if candidate.ok and candidate.precision == "lowered" else ""
    return f"{_how_it_fares(candidate)}{lowered}"


def _how_it_fares(candidate: Candidate) -> str:
    """A usable candidate in a few words: "2.1× vs torch.compile", "compiled, not validated"."""
    if candidate.ok is None:
        return "compiled, not validated"
    if candidate.device == "emulated":
        return "right on the emulated device, not timed"
    if candidate.timing is None or candidate.speedup is None:
        return "validated, not timed"
    if candidate.speedup.compile is not None:
        return f"{ratio(candidate.speedup.compile)} vs torch.compile"
    if candidate.speedup.eager is not None:
        return f"{ratio(candidate.speedup.eager)} vs eager, level with torch.compile"
    return "no faster than PyTorch"


def nothing_to_accept(found: ModuleClass | None, qualname: str, how: str) -> str:
    """Why there is no kernel on offer. `how`: to get one ("generate one first")."""
    if found is None or found.kernel is None:
        return f"There is no kernel for {qualname} to accept: {how}."
    name = found.kernel.rpartition(".")[2]
    return f"{qualname} has its kernel already ({name}.py): there is nothing to accept until another is made."


def where(device: str) -> str:
    """A report's device in words."""
    return {"none": "no device", "emulated": "the emulated device"}.get(device, device)


def ratio(speedup: float) -> str:
    return f"{speedup:.1f}×" if speedup >= 2 else f"{speedup:.2f}×"


def error_against_fp64(error: ErrorFigures) -> str:
    """Both errors and their ratio: "max error 1.2e-07 (eager 1.1e-07, 1.1×)"."""
    return f"{error.figure} error {error.candidate:.2g} (eager {error.eager:.2g}, {error.ratio:.2g}×)"


def resources(kernel: Resources) -> str:
    return (
        f"{kernel.kernel} on {kernel.arch}: {kernel.registers} registers, {kernel.shared_bytes} B of shared memory, "
        f"{kernel.spill_bytes} B spilled"
    )


def timing(measured: Timing) -> str:
    """Every arm's median, then the bandwidth reached: "candidate 0.062 ms · eager 0.3 ms · 98% of copy bandwidth"."""
    arms = [f"{arm.name} {duration(arm.median_ms)}" for arm in measured.arms if arm.name != "control"]
    return " · ".join([*arms, f"{measured.fraction_of_copy:.0%} of copy bandwidth"])


def launching(measured: Timing) -> str:
    """Each arm's call by how it is launched: "candidate 0.07 ms, 0.061 ms in a CUDA graph · eager …"."""
    return " · ".join(
        f"{each.arm} {duration(each.eager_ms)}, "
        + (f"{duration(each.graph_ms)} in a CUDA graph" if each.graph_ms else "not to be captured in a CUDA graph")
        for each in measured.launches
    )


def conditions(measured: Timing) -> str:
    """The device's state while the candidate ran: "1980 MHz, memory 3201 MHz, 512 W, 45 °C, not held back"."""
    found = next((arm.conditions for arm in measured.arms if arm.name == "candidate"), None)
    if found is None:
        return "clocks and power not known (nvidia-ml-py tells them)"
    figures = ((found.sm_mhz, "{:.0f} MHz"), (found.memory_mhz, "memory {:.0f} MHz"), (found.watts, "{:.0f} W"))
    told = [words.format(value) for value, words in (*figures, (found.celsius, "{:.0f} °C")) if value is not None]
    return ", ".join([*told, f"held back by {', '.join(found.throttled)}" if found.throttled else "not held back"])


def limits(profile: Profile) -> str:
    """What limits a kernel and where it stands: "memory; 91% of the speed that a copy … allows (0.064 ms)"."""
    place = profile.roofline
    what = f"{profile.limiter}" if profile.limiter else "not known"
    if place is None:
        return what
    floor = duration(place.floor_ms, 3)
    if place.reached is None:
        return f"{what}; not timed, at best {floor} by {place.basis}"
    return f"{what}; {place.reached:.0%} of the speed that {place.basis} allows ({floor})"


def hint(found: Hint) -> str:
    return f"line {found.line}: {found.message}" if found.line else found.message

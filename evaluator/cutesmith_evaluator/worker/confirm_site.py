"""What both processes of a confirmation draw, each for itself: the module, its inputs, other values for its state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.confirmation import BIG, ODD, PART, Call
from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.checks_layout import share_memory
from cutesmith_evaluator.worker.checks_state import named_state
from cutesmith_evaluator.worker.emulated_inputs import reduced, without_memory
from cutesmith_evaluator.worker.emulated_validation import DEVICE
from cutesmith_evaluator.worker.inputs import Inputs, draw, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import Trial
from cutesmith_evaluator.worker.methods import Params, Progress
from cutesmith_evaluator.worker.numerics_bits import bits, fingerprint
from cutesmith_evaluator.worker.redrawing import floating_state, redrawn_state, write_state
from cutesmith_evaluator.worker.reference import Reference, load_reference

Supported = Callable[[Inputs], bool]
_ODD = ODD - (1 << 64)  # as a signed word


@dataclass
class Site:
    """A task on a device, at the sizes that are run there."""

    reference: Reference
    device: torch.device
    module: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        self.module = self.reference.build(self.device)

    def drawn(self, call: Call) -> Inputs:
        """The call's inputs, and the module's state as it is then. Raises TaskError."""
        if call.state_seed is not None:
            write_state(self.module, redrawn_state(self.module, self._names(), call.state_seed))
        return draw(self.reference, call.seed, self.device)

    @torch.no_grad()
    def aliases(self, inputs: Inputs) -> bool:
        """Whether an output of the module is memory of its inputs or its state: writing to these then changes it."""
        sources = [*tensors(inputs), *(tensor for _, tensor in named_state(self.module))]
        try:
            outputs = tensors(self.module(*inputs))
        except Exception:  # noqa: BLE001 - the user's code, which the judge will say more of
            return False
        return any(share_memory(output, source) for output in outputs for source in sources)

    def takes_other_state(self, inputs: Inputs, seed: int) -> bool:
        """Whether the module has parameters or buffers to redraw, and runs with others; they stay other."""
        if not self._names():
            return False
        write_state(self.module, redrawn_state(self.module, self._names(), seed))
        if self.device.type == "cuda":
            return not Trial(self.module, inputs).refuses()
        try:
            with torch.no_grad():
                self.module(*inputs)
        except Exception:  # noqa: BLE001 - the user's code
            return False
        return True

    def _names(self) -> list[str]:
        return [name for name, _ in floating_state(self.module)]


def open_site(params: Params, supported: Supported) -> Site:
    """The task as it is confirmed. On the emulated device its sizes are cut where `supported` says yes.

    Params: task, device ("cuda" or "emulated"), dynamic_dims. Raises TaskError.
    """
    reference = load_reference(Task(**params["task"]))
    if params["device"] != DEVICE:
        return Site(reference, torch.device("cuda", torch.cuda.current_device()))
    whole = without_memory(reference)
    whole = reference.inputs(0, "cpu") if whole is None else whole
    groups = [tuple((place, dimension) for place, dimension in group) for group in params.get("dynamic_dims") or ()]
    return Site(reduced(reference, whole, groups, supported)[0], torch.device("cpu"))


def replayed(answers: Iterable[bool]) -> Supported:
    """Gives the answers that were given before, in order."""
    remaining = iter(answers)
    return lambda inputs: next(remaining, False)


def rehearse(params: Params, progress: Progress) -> dict[str, object]:
    """What another process must draw alike, before it has any candidate: fingerprints of inputs and state.

    Params: a site's, and seed. `tries` true: also what the module does, which only the judge runs.
    """
    site = open_site(params, lambda inputs: True)
    size = 0 if params["device"] == DEVICE else total_bytes(without_memory(site.reference) or ())
    if size > BIG:  # they would be there twice
        return {"drawn": [], "bytes": size, "redraws": False, "aliases": False, "free": _free(site.device)}
    inputs = site.drawn(Call("rehearsal", "", params["seed"]))
    drawn = [fingerprint(tensor) for tensor in (*tensors(inputs), *(tensor for _, tensor in named_state(site.module)))]
    result: dict[str, object] = {"drawn": [str(each) for each in drawn], "bytes": total_bytes(inputs)}
    result["free"] = _free(site.device)
    if params.get("tries"):
        result["aliases"] = site.aliases(inputs)
        result["redraws"] = site.takes_other_state(inputs, params["seed"])
    del inputs, site
    if params["device"] != DEVICE:
        torch.cuda.empty_cache()
    return result


def _free(device: torch.device) -> int | None:
    """Bytes of a CUDA device that nobody has."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def digests(output: Tensor) -> Tensor:
    """A sum over the bits of each PART of the elements: int64, on the output's device."""
    line = bits(output.reshape(-1))
    whole = line.numel() // PART * PART
    sums = line[:whole].view(-1, PART).sum(dim=1, dtype=torch.int64)
    return sums if whole == line.numel() else torch.cat([sums, line[whole:].sum(dtype=torch.int64).view(1)])


def word(parts: Tensor) -> Tensor:
    """`word_of` the digests, where they are: an int64 without dimensions."""
    return weights(parts.numel(), parts.device).mul_(parts).sum()


def weights(count: int, device: torch.device) -> Tensor:
    """Of the digests in a word, by place."""
    return torch.arange(1, count + 1, device=device).mul_(_ODD).bitwise_or_(1)


def copied_into(old: Inputs, new: Inputs) -> Inputs:
    """The old tensors with the new values, at their old addresses; new ones where they cannot hold these."""
    return tuple(_copied(*pair) for pair in zip(old, new, strict=True))


def _copied(old: object, new: object) -> object:
    if not isinstance(new, Tensor):
        return tree_map(lambda value: value, new)
    if not isinstance(old, Tensor) or old.shape != new.shape or old.dtype != new.dtype or 0 in old.stride():
        return new
    return old.copy_(new)

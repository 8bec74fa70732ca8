"""From calls to samples and verdicts: arms warmed up, sampled in turns, the device's state read in between."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cutesmith_evaluator.types import Arm, Ratio
from cutesmith_evaluator.worker.clock import Call, Clock
from cutesmith_evaluator.worker.sensors import Reading, Sensors, conditions_of
from cutesmith_evaluator.worker.timing_statistics import ARM_NAMES, arm, noise_of, ratios_of, take_turns, warm_up

PRECISION = 0.005  # of a median and of a ratio: sampling stops there
_WARM_S = 1.0  # at most
_ROUNDS_BETWEEN_READINGS = 4


@dataclass(frozen=True)
class Sampled:
    """Milliseconds by arm, a sample in each round; what the sensors said by arm; whether the device was steady."""

    samples: Mapping[str, Sequence[float]]
    readings: Mapping[str, Sequence[Reading]]
    is_steady: bool

    def arms(self) -> dict[str, Arm]:
        return {
            name: arm(name, self.samples[name], conditions_of(self.readings.get(name, ())))
            for name in ARM_NAMES
            if name in self.samples
        }

    def ratios(self) -> tuple[Ratio, ...]:
        return ratios_of(self.samples)

    def noise(self) -> float:
        return noise_of(self.arms(), self.ratios())


def sample_arms(
    clock: Clock, calls: Mapping[str, Call], *, arm_s: float, sensors: Sensors | None = None, seed: int = 0
) -> Sampled:
    """`calls`: the arms, the candidate first. `arm_s`: seconds for each arm, at most. Every call has run before."""
    samplers = {name: partial(clock.sample, call, clock.lead_ms(call)) for name, call in calls.items()}
    budget_s = arm_s * len(samplers)
    steady = warm_up(samplers, budget_s=min(_WARM_S, budget_s / 2), now=clock.now, seed=seed)
    readings: defaultdict[str, list[Reading]] = defaultdict(list)
    between = _reader(sensors, readings) if sensors else _nothing
    samples = take_turns(samplers, budget_s=budget_s, precision=PRECISION, now=clock.now, between=between, seed=seed)
    return Sampled(samples, readings, steady)


def _reader(sensors: Sensors, readings: Mapping[str, list[Reading]]) -> Callable[[str], None]:
    """Reads right after an arm's sample, in every fourth of its rounds."""
    turns: Counter[str] = Counter()

    def read(name: str) -> None:
        if turns[name] % _ROUNDS_BETWEEN_READINGS == 0:
            readings[name].append(sensors())
        turns[name] += 1

    return read


def _nothing(name: str) -> None:
    pass

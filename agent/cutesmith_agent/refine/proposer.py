"""The model as a proposer. Its course is one generator, from the first file to the last reason to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from cutesmith_agent.proposing import Step, Stop, Trial
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.refine import profile, wording
from cutesmith_agent.refine.asking import Asker, StoppedError
from cutesmith_agent.refine.briefing import Briefing
from cutesmith_agent.refine.paths import without_paths
from cutesmith_agent.refine.prompts import Base, Prompts
from cutesmith_agent.subject import candidate_id
from cutesmith_agent.tuning import ranking
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Finding, Origin

FIXES = 5  # of one lineage's first file
ROUND_FIXES = 3  # of a change to a kernel that was right
LINEAGES = 2
PATIENCE = 2  # rounds without a gain: then the profiler, then another structure, then the end
GAIN = 0.01
ROOFLINE = 0.95  # of the copy bandwidth

Course = Generator[Step, Candidate, str]  # takes verdicts, returns why it stopped


@dataclass
class Refiner:
    """Proposes what a model writes. Starts from the best trial so far where one is right, else from nothing.

    `rounds`: of optimisation, at most. `timed`: whether there is a device to time on. `profiled`: a candidate with what
    the profilers say of it, the same at every call."""

    asker: Asker
    briefing: Briefing
    rounds: int
    timed: bool
    profiled: Callable[[Candidate], Candidate]
    origin: Origin = "llm"
    _course: Course | None = None
    _round: int = 0
    _tried: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._prompts = Prompts(self.briefing)

    def next(self, trials: Sequence[Trial]) -> Step | Stop:
        try:
            if self._course is None:
                self._course = self._whole(_best(trials))
                return next(self._course)
            self.asker.ledger.budget.took(trials[-1].seconds)
            return self._course.send(trials[-1].candidate)
        except StopIteration as end:
            return Stop(end.value)
        except StoppedError as stopped:
            return Stop(str(stopped), stopped.finding)

    def _whole(self, best: Trial | None) -> Course:
        if best is None:
            best = yield from self._written()
        if best is None:
            return f"{LINEAGES} beginnings that came to nothing"
        if not self.timed:
            return "a right kernel, and no device to time another on"
        return (yield from self._optimised(best))

    def _written(self) -> Generator[Step, Candidate, Trial | None]:
        """The first right kernel; a second beginning with another structure when the first comes to nothing."""
        failures: list[str] = []
        prompt = self._prompts.synthesise()
        for number in range(1, LINEAGES + 1):
            draft = self.asker.kernel(prompt, "synthesise" if number == 1 else "restart")
            made = yield from self._mended(draft, FIXES, f"beginning {number}")
            if made.candidate.ok is not False:
                return made
            failures.append(f"{made.draft.title or 'a first file'}: {_failure(made.candidate, self.briefing)}")
            prompt = self._prompts.restart("The first beginning could not be mended.", failures)
        return None

    def _mended(
        self, draft: Draft, fixes: int, label: str, base: Base | None = None
    ) -> Generator[Step, Candidate, Trial]:
        """The draft, and what its fixes led to: the first that did not fail, or the last. `base`: what the draft is a
        change to."""
        earlier: list[str] = []
        base = base or self._prompts.first(draft.source)
        trial = Trial(draft, (yield self._step(draft, f"{label}: {draft.title or 'a first file'}")))
        for number in range(1, fixes + 1):
            self._note(trial)
            if trial.candidate.ok is not False:
                break
            prompt = self._prompts.fix(trial.draft.source, trial.candidate, earlier, base)
            draft = self.asker.change(prompt, "fix", trial.draft.source)
            trial = Trial(draft, (yield self._step(draft, f"{label}, fix {number}: {draft.title}")))
            failed = trial.candidate.ok is False
            told = _failure(trial.candidate, self.briefing) if failed else "right"
            earlier.append(f"{draft.title or 'a fix'}: then {told}")
        self._note(trial)
        return trial

    def _optimised(self, best: Trial) -> Course:
        """Rounds on a lineage's best kernel. On a plateau the profiler's figures are shown, if they were not yet; then
        a second lineage begins with another structure; then it is over. Of both, the job keeps the faster."""
        lineage, idle, profiled = 1, 0, False
        while self._round < self.rounds:
            if _fraction(best.candidate) >= ROOFLINE:
                return f"{self._rounds()}, at {_fraction(best.candidate):.0%} of the copy bandwidth"
            if idle >= PATIENCE and profiled and lineage == LINEAGES:
                return f"{self._rounds()}, a plateau: the last {idle} gained less than {GAIN:.0%}"
            if idle >= PATIENCE and profiled:
                made = yield from self._restarted(best)
                if made.candidate.ok is False:
                    return f"{self._rounds()}, a plateau, and another structure that came to nothing"
                lineage, idle, best = lineage + 1, 0, made
                continue
            is_plateau = idle >= PATIENCE
            profiled = profiled or is_plateau or self._round >= profile.rounds_before(self.briefing.graph.category)
            idle = 0 if is_plateau else idle
            made = yield from self._improved(best, with_profile=profiled)
            best, gained = _better(best, made)
            idle = 0 if gained else idle + 1
        return f"all {self.rounds} rounds by the model"

    def _improved(self, best: Trial, *, with_profile: bool) -> Generator[Step, Candidate, Trial]:
        """One round: name the bottleneck, relieve it, mend what that broke."""
        self._round += 1
        figures = self._figures(best.candidate) if with_profile else None
        base = self._prompts.base(best.draft.source, best.candidate, self._tried, figures)
        plan = self.asker.bottleneck(self._prompts.judge(base), "judge")
        draft = self.asker.change(self._prompts.code(base, plan), "code", best.draft.source)
        made = yield from self._mended(draft, ROUND_FIXES, f"round {self._round}", base)
        return self._recorded(best, made)

    def _restarted(self, best: Trial) -> Generator[Step, Candidate, Trial]:
        """Another structure, once the first is as fast as it gets."""
        self._round += 1
        why = f"The best kernel is {wording.result(best.candidate)}, and changes to it gain nothing any more."
        draft = self.asker.kernel(self._prompts.restart(why, self._tried), "restart")
        made = yield from self._mended(draft, FIXES, f"round {self._round}, another structure")
        return self._recorded(best, made)

    def _recorded(self, before: Trial, made: Trial) -> Trial:
        """How a round went is told in those that follow."""
        told = wording.result(made.candidate) if made.candidate.ok else _failure(made.candidate, self.briefing)
        self._tried.append(
            f"{made.draft.title or 'a change'}: {told} (tried on one with {_ms(before.candidate):.4g} ms)"
        )
        return made

    def _figures(self, candidate: Candidate) -> str:
        return profile.figures(self.profiled(candidate), self.briefing.graph, self.briefing.arch)

    def _step(self, draft: Draft, message: str) -> Step:
        return Step(draft, message, self._round / (self.rounds + 1))

    def _note(self, trial: Trial) -> None:
        told = _failure(trial.candidate, self.briefing) if trial.candidate.ok is False else "it was right"
        self.asker.seen[candidate_id(trial.draft.source)] = told

    def _rounds(self) -> str:
        return f"{self._round} round{'' if self._round == 1 else 's'} by the model"


def _best(trials: Sequence[Trial]) -> Trial | None:
    """The fastest, or where nothing is timed, the first that is not known to be wrong."""
    fastest = ranking({index: trial.candidate for index, trial in enumerate(trials)})[:1]
    untimed = [index for index, trial in enumerate(trials) if trial.candidate.ok is not False]
    found = [*fastest, *untimed][:1]
    return trials[found[0]] if found else None


def _better(best: Trial, made: Trial) -> tuple[Trial, bool]:
    """The faster of two, and whether that was a gain."""
    before, after = _ms(best.candidate), _ms(made.candidate)
    return (made, after < before * (1 - GAIN)) if after < before else (best, False)


def _failure(candidate: Candidate, briefing: Briefing) -> str:
    errors: list[Finding] = [finding for finding in candidate.findings if finding.severity == "error"]
    why = without_paths(errors[0].message, briefing.root) if errors else "no reason given"
    return f"failed at {candidate.stage}: {wording.shortened(why)}"


def _ms(candidate: Candidate) -> float:
    """Infinite for what is wrong or was not timed."""
    ms = median_ms(candidate.timing) if candidate.ok and candidate.timing else None
    return math.inf if ms is None else ms


def _fraction(candidate: Candidate) -> float:
    return candidate.timing.fraction_of_copy if candidate.timing else 0.0

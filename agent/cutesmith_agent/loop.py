"""The loop: propose; compile, validate, time and tune the drafts; prove the best as it will be taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from cutesmith_agent.arithmetic import least
from cutesmith_agent.captured import validate_captured
from cutesmith_agent.estimate import Estimate
from cutesmith_agent.finalise import HeaderWriter, compiled_header, finalise
from cutesmith_agent.proposing import Proposer, Step, Stop, Trial
from cutesmith_agent.recipes.contract import Draft, Proposal, Target
from cutesmith_agent.report import Kernel, Report
from cutesmith_agent.schedules import Schedules, words
from cutesmith_agent.store.trials import Told
from cutesmith_agent.subject import Subject, candidate_id, require_adoptable
from cutesmith_agent.trial import NO_VERDICT, Bench
from cutesmith_agent.tuning import ranking
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Finding, Inspection, Origin
from cutesmith_evaluator.units import duration

_FINALISTS = 3  # of the fastest drafts: how many may fail their last proof before the job gives up


MakeRefiner = Callable[[Bench, Subject, Inspection], Proposer]


@dataclass(frozen=True)
class Makers:
    """Where candidates come from, and how the measured part of their header is written.

    `recipes` propose first. `refiner`, the model, goes on from what they found, or (`refines` false) only where they
    found nothing that is right."""

    recipes: Callable[[Inspection, Target], Proposal]
    with_header: HeaderWriter
    refiner: MakeRefiner | None = None
    refines: bool = False
    origin: Origin = "recipe"  # of what `recipes` propose


@dataclass
class Search:
    """One job's candidates as they come to be, in the order they were tried."""

    bench: Bench
    subject: Subject
    kernel: Path
    known: dict[str, Told]  # judged before the job was resumed
    trials: list[Trial] = field(default_factory=list)
    finals: list[Candidate] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)  # ids of those that came to their last proof
    failures: list[Finding] = field(default_factory=list)  # of proposers

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return (*(trial.candidate for trial in self.trials), *self.finals)


def optimize(bench: Bench, subject: Subject, inspection: Inspection, makers: Makers) -> Report:
    """Raises UnusableError before any candidate is tried, WorkerUnavailable when no worker starts any more."""
    kernel = subject.kernel_path(bench.journal.store)
    require_adoptable(subject, kernel.stem)
    bench.journal.stage("propose", f"proposing kernels for {subject.qualname}")
    target = Target(subject.qualname, subject.file, bench.archs[0], bench.ieee)
    proposal = makers.recipes(inspection, target)
    drafts = _distinct(_with_evidence(bench, proposal.drafts, makers.with_header))
    found = _softened(proposal.findings) if makers.refiner else proposal.findings
    findings = tuple(map(bench.mirror.in_users_tree, (*inspection.findings, *found)))
    base = Report(subject.task, "", bench.environment, bench.archs[0], inspection.graph, findings=findings)
    if not drafts and not makers.refiner:
        return replace(base, stopped=_why_none(findings))
    search = Search(bench, subject, kernel, _known(bench))
    why = _search(search, [Schedules(drafts, makers.origin)] if drafts else [], inspection, makers)
    final = _finalise(search, makers)
    report = replace(base, candidates=search.candidates, findings=(*base.findings, *search.failures))
    return _without_winner(report, search, why) if final is None else _with_winner(report, search, final, why)


def _softened(findings: Sequence[Finding]) -> list[Finding]:
    """Why no recipe fits is no error where the model goes on."""
    return [replace(finding, severity="information") for finding in findings]


def _with_evidence(bench: Bench, drafts: Sequence[Draft], with_header: HeaderWriter) -> Sequence[Draft]:
    """Without a device nothing will be measured: what the header can say is known, and the draft is the final file."""
    if bench.has_device:
        return drafts
    return [replace(draft, source=with_header(draft.source, compiled_header(bench))) for draft in drafts]


def _distinct(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    return tuple({draft.source: draft for draft in reversed(drafts)}.values())[::-1]


def _why_none(findings: tuple[Finding, ...]) -> str:
    reason = next((finding.message for finding in findings if finding.severity == "error"), None)
    return reason or "No recipe covers this module."


def _known(bench: Bench) -> dict[str, Told]:
    """What the proposers of an earlier run of this job, killed or cancelled, were told in the same environment."""
    return bench.journal.store.trials.of(bench.journal.job, bench.environment)


def _search(search: Search, proposers: list[Proposer], inspection: Inspection, makers: Makers) -> str:
    """Try what the recipes propose, then what the model does; without a device, until one is not wrong. Returns the
    reason to stop."""
    reasons = [_exhaust(search, proposer) for proposer in proposers]
    has_right = any(trial.candidate.ok is not False for trial in search.trials)
    if makers.refiner and not (has_right and (not makers.refines or not search.bench.has_device)):
        reasons.append(_exhaust(search, makers.refiner(search.bench, search.subject, inspection)))
    elif makers.refines:
        reasons.append("the model was not asked, as no time here could tell its kernel from this one")
    return ", then ".join(reasons)


def _exhaust(search: Search, proposer: Proposer) -> str:
    """Try what one proposer proposes. Returns its reason to stop."""
    while isinstance(step := proposer.next(search.trials), Step):
        search.bench.journal.fraction = 0.1 + 0.7 * step.fraction
        search.bench.journal.progress(step.message)
        told = _judge(search, step.draft, proposer.origin)
        search.trials.append(Trial(step.draft, told.candidate, told.seconds))
        if not search.bench.has_device and search.trials[-1].candidate.ok is not False:
            return _untuned(search.bench)
    search.failures += _failures(step)
    return step.reason


def _untuned(bench: Bench) -> str:
    return "no device was to be used (device none)" if bench.device == "none" else "there is no device to tune on"


def _failures(stop: Stop) -> tuple[Finding, ...]:
    return (stop.failure,) if stop.failure else ()


def _judge(search: Search, draft: Draft, origin: Origin) -> Told:
    """The verdict on a draft: the stored one, or a new one."""
    bench, id = search.bench, candidate_id(draft.source)
    if id in search.known:
        bench.journal.repeat(search.known[id].candidate)
        return search.known[id]
    began = time.monotonic()
    path = bench.journal.store.save_source(bench.journal.job, id, search.kernel.stem, draft.source)
    bench.journal.stage("propose", words(draft), id)
    candidate = Candidate(id, origin, "propose", None, schedule=draft.schedule, path=str(path))
    on_device = (bench.validate_quickly, bench.time_quickly) if bench.has_device else ()
    on_device = (bench.validate_quickly,) if bench.emulates else on_device
    candidate = bench.run(candidate, bench.guards, bench.compile, *on_device)
    told = Told(candidate, time.monotonic() - began)
    bench.journal.told(told, bench.environment)
    bench.journal.judged(candidate, bench.environment)
    return told


def _finalise(search: Search, makers: Makers) -> Candidate | None:
    """The first of the best drafts that stands its last proof."""
    bench, journal = search.bench, search.bench.journal
    journal.fraction = 0.8
    for index in _finalists(search)[:_FINALISTS]:
        trial = search.trials[index]
        journal.stage("validate", "proving the best draft as it will be taken", trial.candidate.id)
        final = finalise(bench, search.subject, trial.candidate, search.kernel, makers.with_header)
        final = bench.run(final, partial(validate_captured, bench))
        journal.judged(final, bench.environment)
        search.proved.append(final.id)
        if final.id == trial.candidate.id:
            search.trials[index] = replace(trial, candidate=final)
        else:
            search.finals.append(final)
        if final.ok is not False:
            journal.fraction = 1.0
            return final
    return None


def _finalists(search: Search) -> list[int]:
    verdicts = {index: trial.candidate for index, trial in enumerate(search.trials)}
    if search.bench.has_device:
        return ranking(verdicts)
    return [index for index, candidate in verdicts.items() if candidate.ok is not False]


def _without_winner(report: Report, search: Search, why: str) -> Report:
    """Says how many drafts failed, and why one did: the first that came to its last proof, or else was tried."""
    if not search.trials:
        return replace(report, stopped=search.failures[-1].message if search.failures else f"No kernel: {why}.")
    failed = {one.id: one for one in report.candidates if one.ok is False}
    telling = [failed[id] for id in (*search.proved, *failed) if id in failed]
    messages = [finding.message for one in telling for finding in one.findings if finding.severity == "error"]
    why = f": {messages[0]}" if messages else "."
    return replace(report, stopped=f"No kernel: {_how_many(len(failed), len(search.trials))}{why}")


def _how_many(failed: int, tried: int) -> str:
    if failed < tried:
        return f"{failed} of {tried} failed, the fastest of them in their last proof"
    return "the only one failed" if tried == 1 else f"all {tried} failed"


def _with_winner(report: Report, search: Search, final: Candidate, why: str) -> Report:
    assert final.path is not None
    assert report.graph is not None
    kernel = Kernel(search.kernel, Path(final.path).read_bytes().decode())
    guess = None if final.timing else least(report.graph, search.bench.archs[0], final.profile)
    return replace(
        report,
        best=final.id,
        kernel=kernel,
        patch=search.subject.patch(search.kernel.stem),
        estimate_ms=guess.ms if guess else None,
        stopped=_stopped(search, final, why, guess),
        findings=(*report.findings, *_slower(final)),
    )


def _stopped(search: Search, final: Candidate, why: str, guess: Estimate | None) -> str:
    if not search.bench.has_device:
        archs = ", ".join(search.bench.archs)
        hope = f"; at best {duration(guess.ms)}, {guess.basis}" if guess else ""
        if final.ok:
            return f"Right on the emulated device, compiled for {archs}, not timed: {why}{hope}."
        return f"Compiled for {archs}, not validated: {_why_not_run(final) or why}{hope}."
    return f"Validated{' and timed' if final.timing else ', not timed'} after {why}."


def _why_not_run(final: Candidate) -> str | None:
    """What kept the emulated device from a verdict."""
    message = next((finding.message for finding in final.findings if finding.kind in NO_VERDICT), None)
    return message.rstrip(".") if message else None


def _slower(final: Candidate) -> tuple[Finding, ...]:
    """A kernel that is right but gains nothing is offered, and said to be so."""
    gain = final.speedup.compile if final.speedup else None
    ours = median_ms(final.timing) if final.timing else None
    if gain is None or gain >= 1 or ours is None:
        return ()
    message = (
        f"The kernel takes {duration(ours)}, torch.compile {duration(ours * gain)}: accepting it gains nothing there."
    )
    return (Finding("slower", message, severity="warning"),)

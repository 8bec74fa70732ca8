"""From the best draft to the file that is offered: measured alone, its header written, its final bytes proved again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

from cutesmith_agent.scratch import Mirror
from cutesmith_agent.subject import Subject, candidate_id
from cutesmith_agent.trial import Bench
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Environment, ErrorFigures, Timing

HeaderWriter = Callable[[str, tuple[str, ...]], str]  # source and lines to source: recipes.with_header


def finalise(bench: Bench, subject: Subject, draft: Candidate, kernel: Path, with_header: HeaderWriter) -> Candidate:
    """The final candidate. It failed where `ok` is False; without a device it is the draft, and `ok` stays None."""
    with Mirror(subject.root) as mirror:
        if not bench.has_device:
            if draft.ok:
                bench.evaluator.expect_confirmation()
            if not bench.emulates:
                draft = _with_compiled_header(bench, draft, kernel, with_header)
            patched = subject.patched(mirror, kernel, _source(draft))
            proved = _proved(bench, draft, patched) if draft.ok is not False else draft
            return _told(mirror, _with_emulated_header(bench, subject, proved, mirror, kernel, with_header))
        draft = _measured(bench, draft, subject.patched(mirror, kernel, _source(draft)))
        if not draft.ok:
            return _told(mirror, draft)
        bench.evaluator.expect_confirmation()  # no earlier: nothing comes up while the device is timed
        source = with_header(_source(draft), measured_header(draft, bench.environment))
        stored = bench.journal.store.save_source(bench.journal.job, candidate_id(source), kernel.stem, source)
        final = replace(draft, id=candidate_id(source), path=str(stored), draft=draft.id)
        proved = _proved(bench, final, subject.patched(mirror, kernel, source))
        return _told(mirror, bench.run(proved, bench.confirm))


def _measured(bench: Bench, draft: Candidate, patched: Path) -> Candidate:
    """The draft validated in full where it was tuned, then timed against all arms in a fresh process."""
    validated = bench.run(replace(draft, timing=None, speedup=None, findings=()), bench.validate)
    if not validated.ok:
        return validated
    measured = bench.run(validated, lambda one: bench.measure(one, patched=patched))
    if not measured.ok:
        return measured
    return replace(bench.profile(measured), findings=measured.findings[len(validated.findings) :])


def _proved(bench: Bench, final: Candidate, patched: Path) -> Candidate:
    """The final bytes, and the user's file with them in. On a device the draft, which differs from them in the header
    alone, has been validated in full: these are validated quickly, and keep its figures."""
    proved = bench.run(final, bench.guards, lambda one: bench.validate(one, patched=patched, quick=bench.has_device))
    if proved.ok is False:
        return proved
    if not bench.has_device:
        return replace(proved, stage="validate" if proved.ok else "compile")
    return replace(proved, stage="done", precision=final.precision, error=final.error)


def _with_compiled_header(bench: Bench, draft: Candidate, kernel: Path, with_header: HeaderWriter) -> Candidate:
    """Recipes' drafts have that header from the start; any other is compiled once more with it in."""
    source = with_header(_source(draft), compiled_header(bench))
    if source == _source(draft):
        return draft
    stored = bench.journal.store.save_source(bench.journal.job, candidate_id(source), kernel.stem, source)
    final = replace(draft, id=candidate_id(source), path=str(stored), resources=(), draft=draft.id)
    return bench.run(final, bench.guards, bench.compile)


def _with_emulated_header(
    bench: Bench, subject: Subject, proved: Candidate, mirror: Mirror, kernel: Path, with_header: HeaderWriter
) -> Candidate:
    """Where the emulated device found the draft right: with that in its header, and these bytes proved again."""
    if not proved.ok:
        return proved
    source = with_header(_source(proved), emulated_header(proved, bench))
    stored = bench.journal.store.save_source(bench.journal.job, candidate_id(source), kernel.stem, source)
    final = replace(proved, id=candidate_id(source), path=str(stored), draft=proved.draft or proved.id)
    patched = subject.patched(mirror, kernel, source)
    again = bench.run(final, bench.guards, lambda one: bench.validate(one, patched=patched, quick=True))
    if not again.ok:
        return again
    kept = replace(again, stage="validate", precision=proved.precision, error=proved.error)
    confirmed = bench.run(kept, bench.confirm)
    return confirmed if confirmed.ok is not None else replace(proved, ok=None, findings=confirmed.findings)


def _told(mirror: Mirror, candidate: Candidate) -> Candidate:
    return replace(candidate, findings=tuple(map(mirror.in_users_tree, candidate.findings)))


def compiled_header(bench: Bench) -> tuple[str, ...]:
    """The evidence in a kernel file's header where nothing can run, a line each."""
    today, archs = date.today().isoformat(), ", ".join(bench.archs)
    why = "." if bench.emulates else ": no device."
    return (f"Compiled for {archs} on {today} with CuTe DSL {bench.environment.dsl}, not validated{why}",)


def emulated_header(candidate: Candidate, bench: Bench) -> tuple[str, ...]:
    """The evidence in a kernel file's header where the emulated device alone ran it, a line each."""
    parts = tuple(finding.message for finding in candidate.findings if finding.kind == "emulated-in-part")
    errors = () if candidate.error is None else (_errors(candidate, candidate.error),)
    today, archs = date.today().isoformat(), ", ".join(bench.archs)
    ran = f"Right on the emulated device on {today}, compiled for {archs} with CuTe DSL {bench.environment.dsl}."
    return (ran, *parts, *errors, "Not run on a GPU, not timed.")


def measured_header(candidate: Candidate, where: Environment) -> tuple[str, ...]:
    """The evidence in a kernel file's header, a line each."""
    errors = () if candidate.error is None else (_errors(candidate, candidate.error),)
    speed = _speed(candidate, candidate.timing) if candidate.timing else "Not timed."
    return (f"Measured on {_place(where)}, {date.today().isoformat()}.", *errors, speed)


def _place(where: Environment) -> str:
    driver = f" (driver {where.driver})" if where.driver else ""
    return f"{where.device}{driver}, torch {where.torch}, CuTe DSL {where.dsl}"


def _errors(candidate: Candidate, error: ErrorFigures) -> str:
    ours, eagers = error.candidate_pair, error.eager_pair
    return (
        f"Error against fp64: rms {ours.rms:.1e}, max {ours.max:.1e}"
        f" (eager: {eagers.rms:.1e}, {eagers.max:.1e}); precision {candidate.precision}."
    )


def _speed(candidate: Candidate, timing: Timing) -> str:
    gains = candidate.speedup
    words = [
        f"{gain:.2f} × {name}" if gain else f"{name} within the noise"
        for name, gain, arm in (
            ("eager", gains and gains.eager, "eager"),
            ("torch.compile", gains and gains.compile, "compile"),
        )
        if median_ms(timing, arm) is not None
    ]
    copy = f"{timing.fraction_of_copy:.0%} of the copy bandwidth ({timing.copy_gbps:.0f} GB/s)"
    speed = f"{median_ms(timing):.4f} ms, {copy}"
    return "; ".join([speed, *words]) + "."


def _source(candidate: Candidate) -> str:
    assert candidate.path is not None
    return Path(candidate.path).read_bytes().decode()

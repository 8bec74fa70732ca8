"""From a description to a reference that agrees with checks written apart from it, or to the reason why there is none.

The reference is written and traced; the checks are written and weighed; where they disagree, the checks' writer works
them out again without being told what came out, then the reference's writer is shown the checks, and so again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from cutesmith_agent.describe import wording
from cutesmith_agent.describe.prompts import CheckPrompts, ReferencePrompts
from cutesmith_agent.describe.screening import checks_problem, reference_problem
from cutesmith_agent.describe.wording import Described
from cutesmith_agent.llm.port import Prompt
from cutesmith_agent.llm.tools import Answer, Checks, Form, Method, Unclear, Unusable
from cutesmith_agent.refine.asking import Asker, StoppedError, unexpected
from cutesmith_agent.refine.paths import without_paths
from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_agent.source.unwritten import write_forward
from cutesmith_agent.store.calls import Outcome
from cutesmith_agent.subject import Subject
from cutesmith_agent.trial import Bench
from cutesmith_evaluator.errors import WorkerError, WorkerUnavailable
from cutesmith_evaluator.probing import CheckResult, Probing
from cutesmith_evaluator.types import Finding, Inspection

TURNS = 4  # at a disagreement: the checks' writer, the reference's writer, and so again
MENDS = 4  # in a row: of a reference that cannot be traced, of checks that are themselves at fault
T = TypeVar("T", Method, Checks)
_What = Literal["reference", "checks"]
_FORMS: dict[_What, Form] = {"reference": "submit_reference", "checks": "submit_checks"}


@dataclass(frozen=True)
class Agreement:
    """A reference that the worker traces, and checks that hold of it and tell it from wrong ones."""

    method: Method
    checks: Checks
    results: tuple[CheckResult, ...]
    inspection: Inspection


@dataclass
class Course:
    """One class whose forward is only described."""

    asker: Asker
    bench: Bench
    subject: Subject
    described: Described

    def __post_init__(self) -> None:
        self._references = ReferencePrompts(self.described)
        self._checkings = CheckPrompts(self.described)
        self._calls: dict[_What, int] = {}  # the number of the last

    def agreed(self) -> Agreement:
        """Raises StoppedError, WorkerUnavailable."""
        self._tell("writing a reference in PyTorch from the description")
        method, inspection = self._traced(self._method(self._references.write()))
        self._tell("writing checks from the description alone")
        checks, probing = self._weighed(method, self._checks(self._checkings.write()))
        turn = 0
        while not _agree(probing):
            if turn == TURNS:
                raise self._stopped("no-agreement", self._disagreement(probing))
            turn += 1
            self._tell(f"reference and checks disagree, turn {turn} of {TURNS}")
            if turn % 2 == 1 and not any(one.outcome == "raised" for one in probing.checks):
                checks = self._checks(self._checkings.again(checks.source, wording.names(probing.checks)))
            else:
                failed = self._clean(wording.disagreements(probing.checks))
                prompt = self._references.answer(method.source, checks.source, failed)
                method, inspection = self._traced(self._method(prompt))
            checks, probing = self._weighed(method, checks)
        self._judge("reference", ok=True)
        self._judge("checks", ok=True)
        return Agreement(method, checks, probing.checks, inspection)

    def _traced(self, method: Method) -> tuple[Method, Inspection]:
        """The method, mended until the worker traces it."""
        said, inspection = self._trace(method)
        for _ in range(MENDS):
            if inspection is not None:
                return method, inspection
            self._judge("reference", said, ok=False)
            method = self._method(self._references.mend(method.source, said))
            said, inspection = self._trace(method)
        if inspection is None:
            self._judge("reference", said, ok=False)
            raise self._stopped("no-reference", f"the model's reference could not be traced: {said}")
        return method, inspection

    def _trace(self, method: Method) -> tuple[str, Inspection | None]:
        """What kept the worker from a graph, or the inspection that has one."""
        with _Lost() as said:
            inspection = self.bench.evaluator.inspect(
                self._written(method).reference(self.bench.mirror), on_progress=self.bench.journal.progress
            )
            return self._findings(inspection.findings), inspection if inspection.graph else None
        return said.text, None

    def _weighed(self, method: Method, checks: Checks) -> tuple[Checks, Probing]:
        """The checks, mended until they run and tell right from wrong, and how the reference fares under them."""
        said, probing = self._probe(method, checks)
        for _ in range(MENDS):
            if not said:
                break
            self._judge("checks", said, ok=False)
            checks = self._checks(self._checkings.mend(checks.source, said))
            said, probing = self._probe(method, checks)
        if said:
            self._judge("checks", said, ok=False)
            raise self._stopped("no-checks", f"the model's checks are of no use: {said}")
        return checks, probing

    def _probe(self, method: Method, checks: Checks) -> tuple[str, Probing]:
        """What is wrong with the checks themselves, "" where nothing is."""
        self._tell("running the checks")
        file = self.bench.mirror.put(self.subject.file.with_name(_CHECKS_FILE), checks.source.encode())
        with _Lost() as said:
            task = self._written(method).reference(self.bench.mirror)
            probing = self.bench.evaluator.probe(task, Path(file), on_progress=self.bench.journal.progress)
            return self._faults(probing), probing
        return said.text, Probing()

    def _faults(self, probing: Probing) -> str:
        if probing.findings:
            return self._findings(probing.findings)
        broken = [one for one in probing.checks if one.outcome == "broken"]
        return self._clean(wording.disagreements(broken)) if broken else wording.shortcomings(probing)

    def _method(self, prompt: Prompt) -> Method:
        def use(answer: Answer) -> Method | Unclear | Unusable:
            if not isinstance(answer, Method):
                return answer if isinstance(answer, Unclear) else unexpected()
            if (problem := reference_problem(answer.source, self.subject.bare)) is not None:
                return Unusable(problem)
            try:
                self._written(answer)
            except EditRefusedError as error:
                return Unusable(str(error))
            return answer

        return self._usable(prompt, "reference", use)

    def _checks(self, prompt: Prompt) -> Checks:
        def use(answer: Answer) -> Checks | Unclear | Unusable:
            if not isinstance(answer, Checks):
                return answer if isinstance(answer, Unclear) else unexpected()
            problem = checks_problem(answer.source)
            return answer if problem is None else Unusable(problem)

        return self._usable(prompt, "checks", use)

    def _usable(self, prompt: Prompt, what: _What, use: Callable[[Answer], T | Unclear | Unusable]) -> T:
        made = self.asker.usable(prompt, what, (_FORMS[what], "say_unclear"), use)
        self._calls[what] = self.asker.ledger.last
        self.asker.ledger.judge(Outcome("unclear", made.reason) if isinstance(made, Unclear) else Outcome(what))
        if isinstance(made, Unclear):
            raise self._stopped("unclear-description", f"the description leaves open: {made.reason}")
        return made

    def _judge(self, what: _What, said: str = "", *, ok: bool) -> None:
        """The last reference, or checks: what was wrong with them, or that they agreed."""
        self.asker.ledger.judge(Outcome(what, said, ok), self._calls[what])

    def _written(self, method: Method) -> Subject:
        """The class with the method in. Raises EditRefusedError."""
        subject = self.subject
        text = apply_edits(subject.bare, write_forward(subject.bare, subject.qualname, method.source))
        return replace(subject, text=text, bare=text)

    def _disagreement(self, probing: Probing) -> str:
        one = next(each for each in probing.checks if each.outcome != "agrees")
        said = self._clean(one.message)
        return f"reference and checks, written apart, still disagree after {TURNS} turns ({one.name}: {said})"

    def _findings(self, findings: tuple[Finding, ...]) -> str:
        return self._clean(" ".join(self.bench.mirror.in_users_tree(one).message for one in findings))

    def _clean(self, text: str) -> str:
        return without_paths(text, self.subject.root)

    def _tell(self, message: str) -> None:
        self.bench.journal.stage("propose", message)

    def _stopped(self, kind: str, why: str) -> StoppedError:
        line = self.described.unwritten.line
        message = (
            f"No reference for {self.subject.qualname}: {why.rstrip('.')}. Say more in the docstring "
            f"({self.subject.file.name}:{line}), or write forward in PyTorch."
        )
        return StoppedError(why, Finding(kind, message, line, str(self.subject.file)))


_CHECKS_FILE = "cutesmith_checks.py"


class _Lost:
    """A worker that died or hung over a model's code: the model is told, and the next request starts another."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> _Lost:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, WorkerError) or isinstance(error, WorkerUnavailable):
            return False
        self.text = str(error)
        return True


def _agree(probing: Probing) -> bool:
    return all(one.outcome == "agrees" for one in probing.checks)

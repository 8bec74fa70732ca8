"""Whether a candidate is right for other parameters and buffers than the constructor's, which it may have built in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.checks_case import Case, Result
from cutesmith_evaluator.worker.checks_run import Examiner
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs
from cutesmith_evaluator.worker.inputs_plan import Trial
from cutesmith_evaluator.worker.redrawing import read_state, redrawn_state, write_state

WORDS = " with other parameters and buffers"
_NAMED = 32  # parameters and buffers that are tried one by one


def redrawn_case(own: Inputs) -> Case:
    """`own`: the task's inputs."""
    return Case(f"the task's inputs{WORDS}", own, strict=True, other_state=True)


def examine_redrawn(examiner: Examiner, case: Case) -> Result:
    """Redraws the state of the examiner's module; where the candidate is right for it, the module keeps it.

    It is changed in place after the candidate has run: what a candidate remembers by address is outdated then.
    Raises what Examiner.examine raises.
    """
    module = examiner.module
    drawn = redrawn_state(module, examiner.candidate.state_names(module))
    if not drawn:
        return Result(note="left out, they do not reach the candidate")
    old, right = read_state(module, drawn), False
    try:
        result = _examined(examiner, case, drawn)
        if any(finding.kind == "wrong-values" for finding in result.findings):
            result.findings = _blamed(examiner, case, old, drawn, result.findings)
        right = not result.findings and not result.note
        return result
    finally:
        if right:
            examiner.comparer.state_words = WORDS
        else:
            write_state(module, old)
            examiner.comparer.state_changed()


def _examined(examiner: Examiner, case: Case, values: Mapping[str, Tensor]) -> Result:
    write_state(examiner.module, values)
    if Trial(examiner.module, case.inputs).refuses():
        return Result(note="left out, the module itself fails there")
    examiner.comparer.state_changed()
    return examiner.examine(case)


def _blamed(
    examiner: Examiner, case: Case, old: Mapping[str, Tensor], drawn: Mapping[str, Tensor], findings: list[Finding]
) -> list[Finding]:
    """The findings, with the names of what shows the fault when it alone is changed."""
    alone = [name for name in list(drawn)[:_NAMED] if _is_wrong(examiner, case, {**old, name: drawn[name]})]
    what = " and ".join(alone) or "the module's parameters and buffers (though changing one alone does not show it)"
    words = f"with the constructor's values all is right, so {examiner.candidate.path.name} ignores or misreads {what}."
    return [
        replace(finding, message=f"{finding.message.removesuffix('.')}; {words}")
        if finding.kind == "wrong-values"
        else finding
        for finding in findings
    ]


def _is_wrong(examiner: Examiner, case: Case, values: Mapping[str, Tensor]) -> bool:
    try:
        return any(finding.kind == "wrong-values" for finding in _examined(examiner, case, values).findings)
    except TaskError:
        return False

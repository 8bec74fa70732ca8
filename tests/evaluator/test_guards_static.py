"""What is seen of a candidate without running it: every documented cheat, and no honest kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.guards.static import Signature, judge
from judged_candidates import LAUNCHING, Judged, cheats, disguised, honest, kernel_without_forward

DOCUMENTED = {str(number) for number in range(1, 39)} - {"38"}  # 38 is correct: honest/zero_by_algebra.py
KERNEL, VARIANTS = kernel_without_forward(), disguised()
SIGNATURE = Signature(frozenset({0}), frozenset({"weight"}), 23)


@pytest.mark.parametrize("cheat", cheats(), ids=lambda cheat: cheat.name)
def test_a_cheat_is_seen_in_its_source(cheat: Judged):
    found = {finding.kind for finding in cheat.judgement().findings if finding.severity == "error"}
    assert found == cheat.kinds("static")


@pytest.mark.parametrize("cheat", [each for each in cheats() if each.kinds("static")], ids=lambda cheat: cheat.name)
def test_a_finding_says_where(cheat: Judged):
    lines = cheat.path.read_text().splitlines()
    for finding in cheat.judgement().findings:
        assert finding.line is not None
        assert lines[finding.line - 1].strip(), finding
        assert finding.message.startswith(f"{cheat.path.name}:{finding.line} ")
        assert finding.file == str(cheat.path)


def test_every_documented_kind_of_cheat_has_a_file():
    assert {cheat.kind for cheat in cheats()} >= DOCUMENTED
    assert all(cheat.caught for cheat in cheats())


@pytest.mark.parametrize("candidate", honest(), ids=lambda candidate: candidate.name)
def test_no_honest_kernel_is_rejected(candidate: Judged):
    findings = candidate.judgement().findings
    assert {finding.kind for finding in findings} == ({candidate.label} if candidate.label else set())
    assert all(finding.severity == "information" for finding in findings)


def test_the_page_has_a_row_for_every_cheat():
    page = (Path(__file__).parents[2] / "docs" / "evaluator.md").read_text()
    rows = {line for line in page.splitlines() if line.startswith("| ") and "`" in line}
    for cheat in cheats():
        caught = ", ".join(f"{how} `{kind}`" for how, kind in cheat.caught)
        assert f"| {cheat.kind} | `{cheat.name}` | {cheat.what} | {caught} |" in rows
    assert f"{len(disguised())}\nways" in page
    assert f"{len(honest())} honest kernels" in page


def test_there_are_enough_honest_kernels():
    assert len(honest()) >= 40


@pytest.mark.parametrize("name", VARIANTS)
def test_a_disguised_cheat_is_seen(name: str, tmp_path: Path):
    source = KERNEL + VARIANTS[name]
    compile(source, name, "exec")
    findings = judge(source, tmp_path / "disguised_cute.py", SIGNATURE).findings
    assert any(finding.severity == "error" for finding in findings)


def test_the_kernel_of_the_disguised_ones_is_honest(tmp_path: Path):
    source = (
        KERNEL
        + "def forward(module, x):\n    y = torch.empty_like(x)\n    _launcher()(x, module.weight, y)\n    return y\n"
    )
    assert judge(source, tmp_path / "plain_cute.py", SIGNATURE).findings == ()


@pytest.mark.parametrize(
    ("parameter", "tensors", "kinds"),
    [("alpha", frozenset({0}), set()), ("alpha", frozenset({0, 1}), {"torch-compute"}), ("alpha=2.0", None, set())],
)
def test_numbers_among_the_arguments_may_be_computed_with(parameter, tensors, kinds, tmp_path: Path):
    forward = f"def forward(module, x, {parameter}):\n{LAUNCHING.replace('module.weight', 'alpha * 2')}"
    found = judge(KERNEL + forward, tmp_path / "a_cute.py", Signature(tensors)).findings
    assert {finding.kind for finding in found} == kinds


@pytest.mark.parametrize(("mantissa", "found"), [(23, True), (10, False), (7, False), (None, False)])
def test_narrower_is_what_is_narrower_than_the_module(mantissa, found, tmp_path: Path):
    forward = f"def forward(module, x):\n{LAUNCHING.replace('(x, ', '(x.half(), ')}"
    judged = judge(KERNEL + forward, tmp_path / "a_cute.py", Signature(frozenset({0}), frozenset(), mantissa))
    assert ("narrower-dtype" in {finding.kind for finding in judged.findings}) == found


def test_a_file_of_many_branches_is_judged_in_time(tmp_path: Path):
    """Nothing in it grows with the number of ways through the code."""
    sums = " + ".join(f"(a{i} if x.shape[0] > {i} else a{i + 1})" for i in range(60))
    body = "".join(f"    if n > {i}:\n        n = n + {i}\n" for i in range(200))
    helpers = "".join(f"def f{i}(x):\n    return f{i - 1}(x) or f{i - 1}(x)\n\n\n" for i in range(1, 40))
    names = "".join(f"    a{i} = {i}\n" for i in range(62))
    forward = f"def forward(module, x):\n    n = 0\n{names}{body}    f39(x)\n    return {sums}\n"
    source = f"{KERNEL}def f0(x):\n    return x\n\n\n{helpers}{forward}"
    assert judge(source, tmp_path / "a_cute.py", SIGNATURE).kernels

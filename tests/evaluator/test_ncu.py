"""Nsight Compute's output read, and what becomes of a run that goes wrong. A script stands for `ncu`."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker import ncu, ncu_csv
from cutesmith_evaluator.worker.ncu_csv import NcuFormatError, by_kernel, launches
from ncu_texts import COPY, table

TASK = Task("/tmp/model.py", "Model")


def test_figures_come_in_base_units_whatever_the_table_says():
    (kernel,) = by_kernel(launches(table(("copy_kernel", COPY))))
    assert kernel.kernel == "copy_kernel"
    assert kernel.us == pytest.approx(130.5)
    assert kernel.dram_bytes == pytest.approx(520e6)
    assert (kernel.dram_share, kernel.sm_share) == (pytest.approx(0.91), pytest.approx(0.225))
    assert (kernel.blocks, kernel.threads, kernel.registers, kernel.shared_bytes) == (8192, 256, 32, 1020)
    assert (kernel.load_sectors, kernel.store_sectors) == (16, 16)
    assert kernel.occupancy_limit == "registers"
    assert kernel.stalls == (("global memory", 12.5), ("a barrier", 0.5))


@pytest.mark.parametrize(
    ("unit", "value", "us"),
    [
        ("nsecond", "1,250", 1.25),
        ("ns", "1,250", 1.25),
        ("us", "1.25", 1.25),
        ("msecond", "2", 2e3),
        ("second", "1", 1e6),
    ],
)
def test_both_spellings_of_units_are_read(unit: str, value: str, us: float):
    (kernel,) = by_kernel(launches(table(("k", COPY | {ncu_csv.TIME: (unit, value)}))))
    assert kernel.us == pytest.approx(us)


@given(st.floats(1, 1e12), st.sampled_from(["byte", "Kbyte", "Mbyte", "Gbyte", "B", "KB", "MB", "GB"]))
def test_bytes_are_the_same_in_every_unit(number: float, unit: str):
    scale = {"K": 1e3, "M": 1e6, "G": 1e9}.get(unit[0], 1.0)
    text = f"{number / scale:,.9f}"
    (kernel,) = by_kernel(launches(table(("k", {ncu_csv.READ: (unit, text)}))))
    assert kernel.dram_bytes == pytest.approx(number, rel=1e-6, abs=1)


def test_launches_of_a_kernel_are_one_and_the_longest_comes_first():
    long = COPY | {ncu_csv.TIME: ("usecond", "300"), ncu_csv.DRAM: ("%", "50.0")}
    kernels = by_kernel(launches(table(("b", COPY), ("a", COPY), ("a", long))))
    assert [(kernel.kernel, kernel.launches) for kernel in kernels] == [("a", 2), ("b", 1)]
    assert kernels[0].us == pytest.approx(430.5)
    assert kernels[0].dram_share == pytest.approx((0.91 * 130.5 + 0.5 * 300) / 430.5)


def test_what_was_not_told_is_none():
    absent = {ncu_csv.TIME: ("usecond", "5"), ncu_csv.DRAM: ("%", "n/a"), ncu_csv.REGISTERS: ("", "(!) nan")}
    (kernel,) = by_kernel(launches(table(("k", absent))))
    assert (kernel.dram_share, kernel.registers, kernel.dram_bytes, kernel.stalls) == (None, None, None, ())


def test_a_kernels_name_may_hold_commas_and_quotes():
    name = 'void f<float, 4>(T1 *, const char *) [with x = "a, b"]'
    assert launches(table((name, COPY)))[0].kernel == name


@pytest.mark.parametrize(
    "text", ["", "==ERROR== no kernels", "Traceback\nValueError: x", '"ID","Kernel Name"\n', '"' + "x" * 200_000]
)
def test_no_table_is_said_to_be_none(text: str):
    with pytest.raises(NcuFormatError, match="no table of kernels"):
        launches(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str):
    with suppress(NcuFormatError):
        by_kernel(launches(text))


def standing(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a script named ncu on the PATH; in `body`, $log is the file that the output is wanted in."""
    script = folder / "ncu"
    script.write_text(f'#!/bin/bash\nwhile [ "$1" != --log-file ]; do shift; done\nlog=$2\n{body}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_its_table_becomes_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "table.csv").write_text(table(("kernel", COPY)))
    standing(tmp_path, f'cp {tmp_path}/table.csv "$log"', monkeypatch)
    measured = ncu.measure(TASK, tmp_path / "a_cute.py")
    assert [kernel.kernel for kernel in measured.kernels] == ["kernel"]
    assert measured.findings == ()


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" > "$log"',
            "ncu-permission",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ('echo "==ERROR== Failed to find metric x" > "$log"; exit 1', "ncu-failed", "Failed to find metric x"),
        ("echo 'RuntimeError: out of memory' >&2; exit 1", "ncu-failed", "RuntimeError: out of memory"),
        ("exit 3", "ncu-failed", "nothing was printed"),
    ],
)
def test_a_run_that_fails_says_why(body: str, kind: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    standing(tmp_path, body, monkeypatch)
    (finding,) = ncu.measure(TASK, tmp_path / "a_cute.py").findings
    assert finding.kind == kind
    assert words in finding.message


def test_a_run_that_hangs_is_stopped_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    standing(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait", monkeypatch)
    begin = time.monotonic()
    (finding,) = ncu.measure(TASK, tmp_path / "a_cute.py", timeout_s=1.0).findings
    assert "had not ended after 1 s" in finding.message
    assert time.monotonic() - begin < 20
    child = int((tmp_path / "child").read_text())
    assert not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text()


def test_without_ncu_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = ncu.measure(TASK, tmp_path / "a_cute.py").findings
    assert (finding.kind, finding.severity) == ("no-ncu", "information")

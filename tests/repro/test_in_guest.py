"""Programs and bundles in a guest of 6.12, which has the bug eprobe-sign."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.ops import Spawn, WriteFile
from conformance.results.bundle import VERSION, Bundle
from conformance.results.case_result import Evidence
from conformance.results.outcome import Outcome
from conformance.results.recorded_program import RecordedAnswer, RecordedStep
from kernels.store.built_kernel import BuiltKernel
from tests.conftest import Uevt
from tests.enclosure import UEVT
from tests.report.samples import case as result
from tests.report.samples import head
from tests.repro.test_recorded_run import program

SECONDS = 120
FIXED = "6.12.117,eprobe-sign=fixed"


def exit_status(case: str, abi: str, directory: Path) -> int:
    """Write, compile and run the program of a case."""
    options = ["--abi", abi] if abi else []
    command = [*UEVT, "repro", case, *options, "--out", str(directory / "repro.c")]
    subprocess.run(command, check=True, timeout=SECONDS)
    strict = ("-Wall", "-Wextra", "-Werror", "-O1", "-static")
    command = ["gcc", *strict, "-o", "repro", "repro.c"]
    subprocess.run(command, cwd=directory, check=True, timeout=SECONDS)
    command = [*UEVT, "shell", "--kernel", "6.12", "--", "./repro"]
    return subprocess.run(command, cwd=directory, timeout=SECONDS, check=False).returncode


@pytest.mark.parametrize(
    ("case", "abi", "status"),
    [
        ("enable.fork_follows.4", "", 0),
        ("tasks.exec_keeps_the_index.thread", "", 0),
        ("eprobe.signed_byte", "", 0),
        ("eprobe.signed_byte", FIXED, 1),
    ],
)
def test_a_program_answers_as_its_case(
    case: str, abi: str, status: int, built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    assert exit_status(case, abi, tmp_path) == status


def replayed(uevt: Uevt, directory: Path, *steps: RecordedStep) -> list[str]:
    """What `uevt replay` prints about a program on 6.12."""
    evidence = Evidence(program=steps)
    failure = result("eprobe.signed_byte", Outcome.FAIL, evidence=evidence)
    (directory / "f.json").write_text(Bundle(VERSION, head(), failure).text)
    return uevt("replay", directory / "f.json", "--kernel", "6.12", code=1).out.splitlines()


def test_a_bundle_is_replayed(uevt: Uevt, built_kernel: BuiltKernel, tmp_path: Path) -> None:
    expected, present = program(FIXED), program("6.12.117")
    assert replayed(uevt, tmp_path, *expected)[-1] == "otherwise: 6.12"
    recorded = [replace(one, seen=other.seen) for one, other in zip(expected, present, strict=True)]
    assert replayed(uevt, tmp_path, *recorded)[-2] == "as recorded: 6.12"


@pytest.mark.parametrize(
    ("answers", "ended"), [((), "as recorded"), ((RecordedAnswer(1),), "otherwise than recorded")]
)
def test_a_crash_is_replayed(
    answers: tuple[RecordedAnswer, ...],
    ended: str,
    uevt: Uevt,
    built_kernel: BuiltKernel,
    tmp_path: Path,
) -> None:
    spawn = RecordedStep(Spawn("p1").encode(), (RecordedAnswer(0),), RecordedAnswer(0))
    crash = WriteFile("p1", "/proc/sysrq-trigger", b"c", os.O_WRONLY).encode()
    lines = replayed(uevt, tmp_path, spawn, RecordedStep(crash, answers, next(iter(answers), None)))
    assert lines[1:3] == [f"6.12: crashes {ended}", "  2. p1: echo -n c > /proc/sysrq-trigger = ?"]

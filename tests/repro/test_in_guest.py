"""Programs in a guest of 6.12: exit status 0 where the case passes, 1 where it deviates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.store.built_kernel import BuiltKernel
from tests.enclosure import UEVT

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
        ("eprobe.signed_byte", "", 0),
        ("eprobe.signed_byte", FIXED, 1),
    ],
)
def test_a_program_answers_as_its_case(
    case: str, abi: str, status: int, built_kernel: BuiltKernel, tmp_path: Path
) -> None:
    assert exit_status(case, abi, tmp_path) == status

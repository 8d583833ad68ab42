"""Runners of kselftest, ours and those of kernels: what they make of the end of run.sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.cli.install.interpreter import FILES
from tests.conftest import tools_testing
from tests.shell_scripts import write_script

# Of a kernel before the option -o, and of a recent one.
RELEASES = ("6.1", "7.3")


@pytest.fixture(params=["ours", *RELEASES])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A runner in a directory with the collection, whose run.sh is missing."""
    if request.param == "ours":
        shutil.copy(FILES / "run_kselftest.sh", tmp_path)
    else:
        tree = tools_testing(request.param) / "selftests"
        shutil.copytree(tree / "kselftest", tmp_path / "kselftest")
        shutil.copy(tree / "run_kselftest.sh", tmp_path)
    (tmp_path / "kselftest-list.txt").write_text("uevt:run.sh\n")
    (tmp_path / "uevt").mkdir()
    shutil.copy(FILES / "settings", tmp_path / "uevt")
    return tmp_path / "run_kselftest.sh"


def printed(runner: Path, script: str, arguments: str = "") -> list[str]:
    """The lines that a runner prints about a run.sh."""
    write_script(runner.parent / "uevt/run.sh", script)
    done = subprocess.run(
        ["sh", runner, "-c", "uevt"],
        env={"PATH": os.defpath, "KSELFTEST_RUN_SH_ARGS": arguments},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ("exit 0", "ok 1 selftests: uevt: run.sh"),
        ("exit 1", "not ok 1 selftests: uevt: run.sh # exit=1"),
        ("exit 4", "ok 1 selftests: uevt: run.sh # SKIP"),
    ],
)
def test_ends(runner: Path, script: str, result: str) -> None:
    lines = printed(runner, f"echo 'KTAP version 1'; {script}")
    assert lines[:2] == ["TAP version 13", "1..1"]
    assert "# KTAP version 1" in lines
    assert result in lines


def test_arguments_are_passed_on(runner: Path) -> None:
    assert "# -k a -q" in printed(runner, 'echo "$@"', "-k a -q")


def test_time_limit_of_the_collection(runner: Path) -> None:
    """Their own would end a run of the full tier."""
    settings = runner.parent / "uevt/settings"
    limit = next(line for line in settings.read_text().splitlines() if line.startswith("timeout="))
    settings.write_text(settings.read_text().replace(limit, "timeout=1"))
    lines = printed(runner, "echo began; exec sleep 50")
    assert "# began" in lines
    assert "not ok 1 selftests: uevt: run.sh # TIMEOUT 1 seconds" in lines

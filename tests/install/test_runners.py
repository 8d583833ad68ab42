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


def printed(runner: Path, script: str, arguments: str = "", path: str = os.defpath) -> list[str]:
    """The lines that a runner prints about a run.sh."""
    write_script(runner.parent / "uevt/run.sh", script)
    done = subprocess.run(
        ["sh", runner, "-c", "uevt"],
        env={"PATH": path, "KSELFTEST_RUN_SH_ARGS": arguments},
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
        # Interrupted, within the limit.
        ("exit 130", "not ok 1 selftests: uevt: run.sh # exit=130"),
        ("exit 143", "not ok 1 selftests: uevt: run.sh # exit=143"),
    ],
)
def test_ends(runner: Path, script: str, result: str) -> None:
    lines = printed(runner, f"echo 'KTAP version 1'; {script}")
    assert lines[:2] == ["TAP version 13", "1..1"]
    assert "# KTAP version 1" in lines
    assert result in lines


def test_arguments_are_passed_on(runner: Path) -> None:
    assert "# -k a -q" in printed(runner, 'echo "$@"', "-k a -q")


def set_limit(runner: Path) -> None:
    """A limit of one second."""
    settings = runner.parent / "uevt/settings"
    limit = next(line for line in settings.read_text().splitlines() if line.startswith("timeout="))
    settings.write_text(settings.read_text().replace(limit, "timeout=1"))


@pytest.mark.parametrize("code", [130, 143])
@pytest.mark.parametrize("runner", ["ours"], indirect=True)
def test_time_limit_by_busybox(runner: Path, code: int, tmp_path: Path) -> None:
    """Its timeout leaves the exit code of the test."""
    set_limit(runner)
    (tmp_path / "bin").mkdir()
    write_script(tmp_path / "bin/timeout", f'sleep "$1"; exit {code}')
    lines = printed(runner, "", path=f"{tmp_path / 'bin'}:{os.defpath}")
    assert "not ok 1 selftests: uevt: run.sh # TIMEOUT 1 seconds" in lines


def test_time_limit_of_the_collection(runner: Path) -> None:
    """Their own would end a run of the full tier."""
    set_limit(runner)
    lines = printed(runner, "echo began; exec sleep 50")
    assert "# began" in lines
    assert "not ok 1 selftests: uevt: run.sh # TIMEOUT 1 seconds" in lines

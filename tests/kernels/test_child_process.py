"""Child processes: output, exit status, and that they never outlive this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from host.deadline import Deadline
from kernels.errors import TookTooLong
from kernels.tools import child_process
from tests.processes import gone, wait_for

MAKEFILE = """\
all: a b
a b:
\t@$(MAKE) -f $(firstword $(MAKEFILE_LIST)) sleep-$@
sleep-%:
\t@echo $$$$ >> pids; exec sleep 600
"""


def wait_until_gone(pids: list[int]) -> None:
    wait_for(lambda: all(map(gone, pids)), "the end of a make")


def processes_in(directory: Path) -> list[int]:
    """All processes with that working directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == directory:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_answer_returns_output_or_times_out() -> None:
    answer = child_process.answer(
        ["sh", "-c", "echo no >&2; echo one; exit 7"], deadline=Deadline(20, "one")
    )
    assert answer == "one\n"
    with pytest.raises(TookTooLong, match="nothing did not end within"):
        child_process.answer(["sleep", "60"], deadline=Deadline(0.1, "nothing"))


def run(script: str, seconds: float = 60, **options: Any) -> int:
    """The exit status of a shell script."""
    deadline = Deadline(seconds, "a test")
    return child_process.run(["sh", "-c", script], deadline=deadline, **options)


def test_run_returns_status_lines_and_log(tmp_path: Path) -> None:
    lines: list[str] = []
    script = "echo one; echo two >&2; printf three; exit 7"
    with (tmp_path / "log").open("wb") as log:
        assert run(script, log=log, on_line=lines.append) == 7
    assert lines == ["one", "two", "three"]
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\nthree"


def test_long_output_is_complete() -> None:
    lines: list[str] = []
    assert run("seq 200000", on_line=lines.append) == 0
    assert len(lines) == 200000
    assert lines[-1] == "200000"


def test_signal_is_a_negative_status() -> None:
    assert run("kill -SEGV $$") == -signal.SIGSEGV


def test_silent_child_ticks() -> None:
    ticks: list[None] = []
    run("sleep 1.2", on_tick=lambda: ticks.append(None))
    assert len(ticks) >= 2


def test_deadline_kills_the_process_group(tmp_path: Path) -> None:
    with pytest.raises(TookTooLong, match="a test did not end within"):
        run("sleep 600 & wait", 0.7, cwd=tmp_path)
    wait_until_gone(processes_in(tmp_path))


@pytest.mark.parametrize(("trap", "gently"), [("exit 1", True), ("", False)])
def test_ctrl_c_tells_how_the_child_ended(
    monkeypatch: pytest.MonkeyPatch, trap: str, *, gently: bool
) -> None:
    """Only then has make removed its unfinished files."""
    monkeypatch.setattr(child_process, "GRACE_S", 0.5)
    script = f"trap '{trap}' TERM; echo ready; while :; do sleep 0.05; done"

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        run(script, on_line=interrupt)
    assert isinstance(caught.value, child_process.Interrupted) == gently


def test_grandchild_with_the_pipe_is_not_awaited(tmp_path: Path) -> None:
    start = time.monotonic()
    run("sleep 600 &", cwd=tmp_path)
    assert time.monotonic() - start < 20
    wait_until_gone(processes_in(tmp_path))


def test_outer_make_does_not_change_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAKEFLAGS", "MAKELEVEL", "ARCH", "CROSS_COMPILE", "CC", "KCONFIG_CONFIG"):
        monkeypatch.setenv(name, "x")
    environment = child_process.environment(EXTRA="1")
    assert set(environment) <= {*child_process.INHERITED, "LC_ALL", "EXTRA"}
    assert environment["LC_ALL"] == "C"
    assert environment["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_make_dies_with_its_parent(tmp_path: Path, way: signal.Signals) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    script = (
        "import pathlib, sys\n"
        "from kernels.tools import child_process\n"
        "from host.deadline import Deadline\n"
        "home = pathlib.Path(sys.argv[1])\n"
        "child_process.run(['make', '-j2'], cwd=home, deadline=Deadline(60, 'a'))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL
    ) as builder:
        pids = tmp_path / "pids"
        wait_for(lambda: pids.exists() and pids.read_text().count("\n") == 2, "sleeping recipes")
        family = processes_in(tmp_path)
        assert len(family) >= 5  # make, two makes of its own, two recipes
        builder.send_signal(way)
    wait_until_gone(family)

"""The running kernel as a guest: its log, its processes, and why a call failed."""

from __future__ import annotations

import os
import subprocess
from errno import EAGAIN, EPIPE
from pathlib import Path

import pytest

from host.deadline import Deadline
from tests.processes import wait_for
from vm.errors import AgentStuck, NoAnswer
from vm.guest import here, supervisor
from vm.here import kernel_log
from vm.here.kernel_log import KernelLog, LogOverrun
from vm.here.machine import RunningKernel
from vm.here.processes import AgentProcesses, StuckProcess, _ended, end_session

RECORDS = [
    b"4,7,5000001,-;WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2\n SUBSYSTEM=x\n",
    b"13,8,6000000,-;uevt-mark 1 a.b\n",
    b"12,9,7000000,-,caller=T7;calm\\x0aBUG: KASAN: forged in f+0x1/0x2 by a program\n",
]
SHOWN = """\
[    5.000001] WARNING: CPU: 0 PID: 1 at kernel/x.c:1 f+0x1/0x2
[    6.000000] uevt-mark 1 a.b
[    7.000000] user: calm
[    7.000000] user: BUG: KASAN: forged in f+0x1/0x2 by a program
"""


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[bytes | OSError]:
    """What /dev/kmsg returns, one read after another."""
    left: list[bytes | OSError] = []

    def read(descriptor: int, size: int) -> bytes:
        found = left.pop(0) if left else OSError(EAGAIN, "")
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr(kernel_log, "DEVICE", os.devnull)
    monkeypatch.setattr(os, "read", read)
    return left


def test_the_log_reads_like_a_console(records: list[bytes | OSError], tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "console.log")
    records += RECORDS
    assert log.position() == len(SHOWN)
    assert (tmp_path / "console.log").read_text() == SHOWN
    assert [each.kind for each in log.findings()] == ["warn"]


@pytest.mark.parametrize(
    "lost", [[RECORDS[0], OSError(EPIPE, "")], [RECORDS[0], RECORDS[2]]], ids=["overrun", "gap"]
)
def test_lost_records_are_an_error(
    records: list[bytes | OSError], tmp_path: Path, lost: list[bytes | OSError]
) -> None:
    log = KernelLog(tmp_path / "console.log")
    records += lost
    with pytest.raises(LogOverrun):
        log.position()


def test_a_session_is_killed_with_its_orphans() -> None:
    shell = subprocess.Popen(["sh", "-c", "sleep 99 & sleep 99"], start_new_session=True)
    wait_for(lambda: len(here.members(shell.pid)) >= 2, "a second process")
    members = here.members(shell.pid)
    assert end_session(shell.pid, Deadline(10, "end")) == []
    assert shell.wait(10) == -9
    # Whatever adopts the orphans may leave them zombies.
    assert all(map(_ended, members))


def test_only_process_1_kills_everybody() -> None:
    with pytest.raises(RuntimeError):
        supervisor.kill_everybody()


class Stuck(AgentProcesses):
    """Processes in a given state."""

    def __init__(self, *stuck: StuckProcess) -> None:
        self._stuck = list(stuck)

    def stuck(self) -> list[StuckProcess]:
        return self._stuck

    def alive(self) -> bool:
        return True


def failed(*stuck: StuckProcess) -> Exception:
    kernel = object.__new__(RunningKernel)
    kernel._processes = Stuck(*stuck)
    return kernel._cause(NoAnswer("no answer within 4 s"))


def test_a_process_in_the_kernel_is_the_kernels_hang() -> None:
    found = failed(StuckProcess(7, "D", ("user_event_mm_dup",)))
    assert isinstance(found, NoAnswer)
    assert found.frames == ("user_event_mm_dup",)
    assert str(found) == "no answer within 4 s: process 7 is in state D in user_event_mm_dup"


def test_processes_that_wait_for_each_other_are_the_agents() -> None:
    assert isinstance(failed(), AgentStuck)

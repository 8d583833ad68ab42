"""A program below the recorder on the running kernel that the kernel holds, or that breaks it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from conformance.session import recorded_program
from conformance.session.here import system
from conformance.session.here.system import BorrowedSystem
from conformance.session.recorded_program import Ended, RecordedProgram
from host.kernel_reports import ReportKind
from tests.processes import gone, wait_for
from tests.session.here.test_system import STATE
from vm.here.processes import StuckProcess
from vm.kernel_log.reports import Finding

STUCK = StuckProcess(7, "D", ("mutex_lock",))
OOPS = Finding(ReportKind.OOPS, 1, "BUG: unable to handle page fault")


class Log:
    """A kernel log with these reports."""

    def __init__(self, findings: list[Finding]) -> None:
        self.found = findings

    def findings(self) -> list[Finding]:
        return self.found

    def close(self) -> None:
        """Nothing is open."""


def compile_script(program: Path) -> None:
    """A recorder that ends at once."""
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)


@pytest.fixture
def borrowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BorrowedSystem:
    """A system that can be restored by doing nothing."""
    borrowed = BorrowedSystem(tmp_path)
    monkeypatch.setattr(BorrowedSystem, "claim", lambda *, even_so: borrowed)
    monkeypatch.setattr(borrowed, "begin", lambda: borrowed._keep(STATE))
    monkeypatch.setattr(recorded_program, "compile_recorder", compile_script)
    for name in ("remove_leftovers", "write_back", "write_attributes"):
        monkeypatch.setattr(system, name, lambda _: [])
    monkeypatch.setattr(system, "set_options", lambda _: None)
    return borrowed


def run(monkeypatch: pytest.MonkeyPatch, findings: list[Finding]) -> Ended:
    monkeypatch.setattr(recorded_program, "KernelLog", lambda _: Log(findings))
    return RecordedProgram(["true"], "none", 0).run_here(None, even_so=False)


def test_a_program_that_ends_is_no_trouble(
    borrowed: BorrowedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, []) == Ended(b"", False, ())


def test_the_system_is_given_up_with_a_program_that_the_kernel_holds(
    borrowed: BorrowedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_program, "end_session", lambda *_: [STUCK])
    ended = run(monkeypatch, [])
    assert ended.crashed
    assert ended.remarks == (f"not restored: {STUCK} and cannot be killed",)


def test_the_system_is_given_up_after_a_crash(
    borrowed: BorrowedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run(monkeypatch, [OOPS])
    assert ended.crashed
    assert ended.remarks[-1] == f"not restored: the kernel crashed: {OOPS.text}"


def test_what_is_not_restored_is_no_success(
    borrowed: BorrowedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "write_back", lambda _: ["tracing_on was 1"])
    ended = run(monkeypatch, [])
    assert (ended.crashed, ended.remarks) == (True, ("not restored: tracing_on was 1",))


def test_the_recorder_dies_with_a_run_that_is_killed(
    borrowed: BorrowedSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    recorder = tmp_path / "recorder"
    recorder.write_text(
        f"#!/bin/sh\necho $$ >{started}.new\nmv {started}.new {started}\nexec sleep 60\n"
    )
    recorder.chmod(0o700)
    run = os.fork()
    if not run:
        borrowed.begin()
        RecordedProgram(["true"], "none", 0)._run_in_session(borrowed, tmp_path, None)
        os._exit(0)
    wait_for(started.exists, "start of the recorder")
    os.kill(run, signal.SIGKILL)
    os.waitpid(run, 0)
    wait_for(lambda: gone(int(started.read_text())), "end of the recorder", 10.0)

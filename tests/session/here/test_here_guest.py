"""The running kernel as a guest, without a kernel: what it reports late, and how it is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.results.outcome import Outcome
from conformance.session.target.target import Target
from conformance.session.worker import console_guest, here_guest
from conformance.session.worker.here_guest import HereGuest
from conformance.session.worker.worker import Worker
from tests.session.conftest import LOGS, Machine
from vm.errors import VmError
from vm.here.kernel_log import LogOverrun
from vm.here.machine import UnkillableProcess

WARNS = (LOGS / "warn_6.12.log").read_text()


class Kernel(Machine):
    """A kernel whose log changes as its processes end."""

    session = 0

    def __init__(self, console: Path) -> None:
        super().__init__(console)
        self.report = ""
        self.stays: VmError | None = None
        self.lost_log = False
        self.console.close = lambda: None  # type: ignore[attr-defined]

    @property
    def crash(self) -> str:
        if self.lost_log:
            self.lost_log = False
            raise LogOverrun("the kernel's log overran")
        return ""

    def restart(self, between: Callable[[], object]) -> None:
        self.end()
        between()

    def end(self) -> None:
        self.console.append(self.report)
        self.report = ""
        if self.stays is not None:
            raise self.stays


class System:
    """A system that notes how it is left."""

    foreign: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.left: list[str] = []

    def begin(self) -> None: ...
    def note_session(self, session: int) -> None: ...
    def tidy(self) -> None: ...
    def restore(self) -> None:
        self.left.append("restored")

    def give_up(self, why: str) -> None:
        self.left.append(why)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path / "console.log")
    monkeypatch.setattr(here_guest, "RunningKernel", lambda directory: made)
    return made


@pytest.fixture
def system() -> Any:
    return System()


@pytest.fixture
def guest(kernel: Kernel, system: Any, tmp_path: Path) -> HereGuest:
    return HereGuest(Target("here", "6.12", here=True), tmp_path, system)


def test_report_at_the_end_of_the_processes_is_of_the_case_before(
    guest: HereGuest, kernel: Kernel
) -> None:
    guest.reports(guest.mark("write.first"))
    kernel.report = WARNS
    guest.pristine()
    (found,) = guest.reports(guest.mark("write.second"))
    assert (found.kind, found.after) == ("warn", "write.first")
    assert found.title in guest.console(kernel.console.position())


def test_late_report_is_returned_once(guest: HereGuest, kernel: Kernel) -> None:
    guest.reports(guest.mark("write.first"))
    assert guest.late_reports() == ([], "")
    kernel.console.append(WARNS)
    (found,), console = guest.late_reports()
    assert (found.after, console) == ("write.first", WARNS)
    assert guest.late_reports() == ([], "")
    assert guest.reports(guest.mark("write.second")) == []


def test_limit_of_a_case_ends_with_its_processes(
    guest: HereGuest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_guest, "CASE_S", 0.0)
    guest.mark("write.first")
    guest.pristine()
    guest.call("root", [["ping"]])


def stays() -> UnkillableProcess:
    error = UnkillableProcess("process 7 is in state D and cannot be killed")
    error.frames = ("user_event_mm_destroy",)
    return error


@pytest.mark.parametrize("report", ["", WARNS])
@pytest.mark.parametrize(
    ("stays", "lost_log", "outcomes", "left"),
    [
        (None, False, [], "restored"),
        (None, True, [Outcome.ERROR], "restored"),
        (stays(), False, [Outcome.TIMEOUT], "process 7 is in state D and cannot be killed"),
        (stays(), True, [Outcome.TIMEOUT], "process 7 is in state D and cannot be killed"),
    ],
)
def test_end_of_the_processes_is_judged(
    kernel: Kernel,
    system: Any,
    tmp_path: Path,
    report: str,
    stays: UnkillableProcess | None,
    lost_log: bool,
    outcomes: list[Outcome],
    left: str,
) -> None:
    """In every case the system is restored, or named as it is left."""
    worker = Worker(Target("here", "6.12", here=True), tmp_path, system=system)
    worker.launch()
    guest = worker._guest
    assert isinstance(guest, HereGuest)
    worker._runner._lifecycle.guest = guest
    guest.reports(guest.mark("a.b"))
    worker._runner._last = "a.b"
    kernel.report, kernel.stays, kernel.lost_log = report, stays, lost_log
    worker.finish()
    found = worker.take_other_results()
    assert [each.outcome for each in found] == [Outcome.FAIL] * bool(report) + outcomes
    assert {each.id for each in found} <= {"a.b.afterwards"}
    worker.close()
    assert system.left == [left]

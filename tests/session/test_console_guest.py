"""Calls, limits and reports of a guest, on a machine without a kernel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from conformance.results.outcome import Blame, Outcome
from conformance.session.time_limits import CaseTooLong, Limits, RunLimit, RunOver
from conformance.session.worker import console_guest
from conformance.session.worker.blame import explain
from conformance.session.worker.console_guest import ConsoleGuest
from host.deadline import Deadline
from host.shared_count import SharedCount
from tests.session.conftest import Machine
from vm.errors import NoAnswer


class Hanging(Machine):
    """A machine whose calls never return."""

    def call(self, actor: str, *words: Any, deadline: Deadline) -> list[dict[str, Any]]:
        time.sleep(deadline.remaining())
        raise NoAnswer(f"no answer within {deadline.limit}", console="a stack")


@pytest.fixture
def console(tmp_path: Path) -> Path:
    return tmp_path / "console.log"


@pytest.mark.parametrize(
    ("case", "run", "error", "blame"),
    [
        (60.0, None, NoAnswer, Blame.KERNEL),
        (0.05, None, CaseTooLong, Blame.CASE),
        (60.0, 0.05, RunOver, Blame.HOST),
        (0.05, 60.0, CaseTooLong, Blame.CASE),
    ],
)
def test_call_that_another_limit_ends_is_no_hang(
    console: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: float,
    run: float | None,
    error: type[Exception],
    blame: Blame,
) -> None:
    monkeypatch.setattr(console_guest, "CASE_S", case)
    hung = SharedCount()
    machine: Any = Hanging(console)
    guest = ConsoleGuest(machine, Limits(RunLimit.of(run), hung))
    guest.mark("write.x")
    with pytest.raises(error) as caught:
        guest.call("root", [["ping"]])
    found = explain(caught.value, True)
    assert found is not None
    hangs = error is NoAnswer
    assert (found.outcome, found.blame) == (Outcome.TIMEOUT if hangs else Outcome.ERROR, blame)
    assert (hung.value, found.console) == (int(hangs), "a stack")


def test_limit_of_a_case_ends_with_it(console: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_guest, "CASE_S", 0.0)
    machine: Any = Machine(console)
    guest = ConsoleGuest(machine, Limits(None))
    mark = guest.mark("write.x")
    with pytest.raises(CaseTooLong):
        guest.call("root", [["ping"]])
    guest.reports(mark)
    guest.call("root", [["ping"]])

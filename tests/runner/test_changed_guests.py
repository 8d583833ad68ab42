"""The runner on guests that a case or its kernel changed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from conformance.cases.case import Isolation
from conformance.client import tracefs
from conformance.client.user_events import UserEvents
from conformance.ops.calls import Call, path_in
from conformance.results.outcome import Blame, Outcome
from tests.cases.variants import judged
from tests.runner.fake_guest import PLAIN, RMDIR, Guest, running

TAINTED = "/proc/sys/kernel/tainted"
CLOSED, OPEN = "100640 0:0", "100666 0:0"


def test_case_that_changes_its_guest_does_not_pass() -> None:
    guest = Guest(texts={TAINTED: "0\n"})
    runner = running(guest)
    result = judged(runner, PLAIN, lambda ue: guest.texts.update({TAINTED: "512\n"}))
    assert (result.outcome, result.blame) == (Outcome.ERROR, Blame.CASE)
    assert result.reason == f"it left its guest changed: {TAINTED} was '0' and is '512'"
    # The next case has a new guest, whose taint is its own.
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    assert len(guest.booted) == 1


def test_kernel_that_opens_the_data_file_to_everybody_fails() -> None:
    runner = running(Guest(texts={tracefs.DATA: OPEN}))
    # The second case has a new guest of the same kernel.
    for isolation in (Isolation.FATAL, Isolation.EVENTS):
        judged(runner, replace(PLAIN, isolation=isolation))
    (result,) = runner.take_other_results()
    assert (result.id, result.outcome) == ("rights.closed_to_others", Outcome.FAIL)


def test_kernel_that_changes_its_guest_fails() -> None:
    """Nothing that a program does changes the mode; else the cleanup would have restored it."""
    guest = Guest(texts={tracefs.DATA: CLOSED})

    def perform(ue: UserEvents) -> None:
        ue.instance().make()
        guest.texts[tracefs.DATA] = OPEN

    result = judged(running(guest), PLAIN, perform)
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    what = f"guest the mode of {tracefs.DATA}"
    assert result.reason.startswith(f"{what} changed from '{CLOSED}' to '{OPEN}', ")
    assert [each.field for each in result.mismatches] == [what]


def test_warning_during_cleanup_is_blamed_on_the_kernel() -> None:
    class Warning(Guest):
        def _result(self, call: Call) -> dict[str, Any]:
            if call[:2] == ["slurp", TAINTED] and self.texts[TAINTED] != "0\n":
                self._console.append("WARNING: late")
            return super()._result(call)

    guest = Warning(texts={TAINTED: "0\n"})
    result = judged(running(guest), PLAIN, lambda ue: guest.texts.update({TAINTED: "512\n"}))
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert result.reason == "the kernel complained: WARNING: late"


def test_case_that_leaves_nothing_ends_in_one_request() -> None:
    guest = Guest()
    before: list[int] = []
    result = judged(running(guest), PLAIN, lambda ue: before.append(guest.requests))
    assert result.outcome is Outcome.PASS
    assert guest.requests == before[0] + 1


def test_failure_on_a_changed_guest_stays_a_failure() -> None:
    guest = Guest(texts={TAINTED: "0\n"})
    runner = running(guest)

    def perform(ue: UserEvents) -> None:
        guest.texts[TAINTED] = "512\n"
        raise AssertionError("wrong")

    assert judged(runner, PLAIN, perform).outcome is Outcome.FAIL
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    assert len(guest.booted) == 1


def test_instance_that_a_case_leaves_is_removed() -> None:
    """A case need not remove it, and still passes."""
    instances = f"{tracefs.ROOT}/instances"

    class Removing(Guest):
        def _result(self, call: Call) -> dict[str, Any]:
            if call[:2] == ["sys", RMDIR]:
                del self.texts[instances]
            return super()._result(call)

    guest = Removing()

    def perform(ue: UserEvents) -> None:
        ue.instance().make()
        guest.texts[instances] = "t00001_i"

    assert judged(running(guest), PLAIN, perform).outcome is Outcome.PASS
    removed = [call[2] for call in guest.calls if call[:2] == ["sys", RMDIR]]
    assert removed == [[path_in(f"{instances}/t00001_i")]]

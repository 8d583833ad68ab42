"""Guests that are lost, or whose kernel reports something, when no case shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.cases.case import Case, Isolation
from conformance.client import tracefs
from conformance.client.user_events import UserEvents
from conformance.ops.calls import Call
from conformance.results.outcome import Blame, Outcome
from conformance.runner.console_verdict import judge_lost_guest
from conformance.runner.judgement import Judgement
from conformance.runner.runner import Runner
from conformance.runner.switch_probes import Probe
from conformance.session.controller.recorder import Recorder
from conformance.session.target.target import Target
from conformance.session.time_limits import CaseTooLong
from conformance.session.worker.blame import explain
from host.kernel_reports import ReportKind
from tests.cases.variants import judged
from tests.runner.fake_guest import PLAIN, Guest, running
from vm.errors import AgentStuck, GuestCrashed, GuestOutOfMemory, NoAnswer, VmError
from vm.kernel_log.reports import Finding

KNOWN = replace(PLAIN, bugs=("eprobe-event-freed",))


class Failing(Guest):
    """A guest whose calls, or one of whose marks, raise an error."""

    error: VmError | None = None
    at_mark = ""

    def mark(self, text: str) -> int:
        if self.error is not None and text == self.at_mark:
            raise self.error
        return super().mark(text)

    def call(
        self, actor: str, calls: Sequence[Call], watch: Sequence[tuple[str, int, int]] = ()
    ) -> list[dict[str, Any]]:
        if self.error is not None and not self.at_mark:
            raise self.error
        return super().call(actor, calls, watch)

    def complain(self) -> None:
        self._console.append("WARNING: late")

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        self.error = None
        super().pristine(processors, programs=programs)


def others(runner: Runner) -> list[tuple[str, Outcome, Blame]]:
    return [(each.id, each.outcome, each.blame) for each in runner.take_other_results()]


def hang() -> NoAnswer:
    error = NoAnswer("no answer within 4 s")
    error.frames = ("user_event_mm_destroy",)
    return error


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (GuestCrashed("BUG: late"), (Outcome.CRASH, Blame.KERNEL)),
        (hang(), (Outcome.TIMEOUT, Blame.KERNEL)),
        # Reports of the kernel may be lost with it.
        (AgentStuck("no answer"), (Outcome.ERROR, Blame.GUEST)),
    ],
)
def test_guest_lost_after_the_last_case_is_a_result(
    error: VmError, found: tuple[Outcome, Blame]
) -> None:
    guest = Failing()
    runner = running(guest, explain=explain)
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    guest.error, guest.at_mark = error, "run.end"
    runner.finish()
    (lost,) = runner.take_other_results()
    assert (lost.id, lost.outcome, lost.blame) == ("other.case.afterwards", *found)
    assert lost.reason == f"{error}; seen after other.case ended"


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (GuestCrashed("BUG: late"), [("other.case.afterwards", Outcome.CRASH, Blame.KERNEL)]),
        # The next case meets it, too.
        (AgentStuck("no answer"), []),
    ],
)
def test_guest_lost_while_a_probe_is_prepared_is_a_result(
    error: VmError, found: list[tuple[str, Outcome, Blame]]
) -> None:
    guest = Failing()
    runner = running(guest, explain=explain)
    case = replace(PLAIN, id="other.switch", switch="persist")
    runner.measure_with([Probe(case, lambda ue: None)])
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    guest.error, guest.at_mark = error, "other.switch.probe"
    runner.measure()
    assert others(runner) == found


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(
    ("case", "wrong", "late"),
    [
        (replace(PLAIN, isolation=Isolation.FATAL), False, True),
        (replace(PLAIN, isolation=Isolation.FATAL), True, True),
        # Nothing is known of a guest that serves on; its next case finds the report.
        (PLAIN, False, None),
        # What a known bug does later is known as well.
        (replace(KNOWN, isolation=Isolation.FATAL), True, False),
        (replace(KNOWN, isolation=Isolation.FATAL), False, True),
    ],
)
def test_report_before_a_guest_is_replaced_is_a_result(
    case: Case, wrong: bool, late: bool | None, last: bool
) -> None:
    def perform(ue: UserEvents) -> None:
        assert not wrong

    guest = Failing()
    runner = running(guest, explain=explain)
    judged(runner, case, perform)
    guest.complain()
    if last:
        runner.finish()
    else:
        judged(runner, PLAIN)
    found = runner.take_other_results()
    if late is None:
        return
    assert [each.id for each in found] == ["other.case.afterwards"] * late
    if late:
        assert found[0].outcome is Outcome.FAIL
        assert found[0].evidence.console == "WARNING: late"
        assert found[0].reason == (
            "the kernel complained: WARNING: late; "
            "seen after other.case ended and before its guest ended"
        )


def test_report_at_the_end_of_the_guest_is_a_result() -> None:
    guest = Failing()
    runner = running(guest, explain=explain)
    judged(runner, PLAIN)
    runner.finish()
    runner.end_guest(guest.complain)
    assert others(runner) == [("other.case.afterwards", Outcome.FAIL, Blame.KERNEL)]

    def stay() -> None:
        raise hang()

    runner.end_guest(stay)
    assert others(runner) == [("other.case.afterwards", Outcome.TIMEOUT, Blame.KERNEL)]


@pytest.mark.parametrize("error", [AgentStuck("no answer"), CaseTooLong("no end")])
def test_failure_stays_one_if_its_cleanup_fails(error: VmError) -> None:
    guest = Failing(texts={tracefs.STATUS: "wrong 1\n"})
    runner = running(guest, explain=explain)

    def perform(ue: UserEvents) -> None:
        ue.tracefs.status(whole=True)
        guest.error = error

    result = judged(runner, PLAIN, perform)
    assert (result.outcome, result.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert len(result.mismatches) == 1
    assert result.reason == f"{result.mismatches[0]}; its cleanup: {error}"
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    assert len(guest.booted) == 1


def starved() -> GuestOutOfMemory:
    error = GuestOutOfMemory("no memory")
    error.findings = (Finding(ReportKind.OUT_OF_MEMORY, 1, "x invoked oom-killer"),)
    return error


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (AgentStuck("no answer"), (Outcome.FAIL, Blame.KERNEL)),
        (GuestCrashed("BUG: x"), (Outcome.CRASH, Blame.KERNEL)),
        # Without memory no answer counts.
        (starved(), (Outcome.ERROR, Blame.GUEST)),
    ],
)
def test_failure_stays_one_if_its_guest_is_lost(
    error: VmError, found: tuple[Outcome, Blame]
) -> None:
    guest = Failing(texts={tracefs.STATUS: "wrong 1\n"})
    runner = running(guest, explain=explain)

    def perform(ue: UserEvents) -> None:
        ue.tracefs.status(whole=True)
        guest.complain()
        raise error

    result = judged(runner, PLAIN, perform)
    assert (result.outcome, result.blame) == found
    assert len(result.mismatches) == 1
    # What is on the console may have been caused by the search for the cause.
    assert judged(runner, PLAIN).outcome is Outcome.PASS
    assert (len(guest.booted), others(runner)) == (1, [])


def test_crash_stands_rather_than_an_error(tmp_path: Path) -> None:
    """Both may be found after the same case."""
    crash = judge_lost_guest(Judgement(Outcome.CRASH, Blame.KERNEL, "BUG: x"), "other.case")
    lost = judge_lost_guest(Judgement(Outcome.ERROR, Blame.GUEST, "no answer"), "other.case")
    recorder = Recorder(Target("model", "6.12"), tmp_path)
    for each in (lost, lost, crash, lost):
        recorder.other_result(each)
    (stands,) = recorder.finish(1, "").cases
    assert stands == crash

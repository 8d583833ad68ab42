"""Events that the kernel keeps after the processes of their case are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from conformance.abi.profile import profile_for
from conformance.cases.case import Case, Isolation
from conformance.client import tracefs
from conformance.client.executor import Deadline, ModelDeadline
from conformance.client.user_events import UserEvents
from conformance.ops.calls import Call
from conformance.results.case_result import CaseResult, Evidence
from conformance.results.outcome import Blame, Outcome
from conformance.runner.lingering_events import LingeringEvents, result_of
from conformance.runner.patience import Patience
from conformance.runner.runner import Runner
from tests.cases.variants import judged
from tests.runner.fake_guest import PLAIN, Guest, running

GLOBAL = replace(PLAIN, isolation=Isolation.GLOBAL)


class Age:
    """The age at which an event is worth a wait."""

    def __init__(self, guest: Keeping) -> None:
        self._guest = guest

    @property
    def expired(self) -> bool:
        return self._guest.aged

    def remaining(self) -> float:
        return 0.0


class Keeping(Guest):
    """A guest whose dynamic_events shows a text, until a number of reads."""

    def __init__(self, text: str = "", reads: int = 1 << 30) -> None:
        super().__init__()
        self.show(text, reads)
        self.waits: list[float] = []
        self.aged = False

    def show(self, text: str, reads: int = 1 << 30) -> None:
        self._text, self._reads = text, reads

    def _result(self, call: Call) -> dict[str, Any]:
        result = super()._result(call)
        if call[:2] == ["slurp", tracefs.DYNAMIC_EVENTS]:
            self._reads -= 1
            if self._reads >= 0:
                result["data"] = self._text.encode().hex()
        return result

    def deadline(self, seconds: float, what: str) -> Deadline:
        if what == "a system without events":
            self.waits.append(seconds)
        return Age(self) if what == "the end of an event" else ModelDeadline()

    def pristine(self, processors: int = 1, *, programs: bool = False) -> None:
        super().pristine(processors)
        self.show("")

    def reports(self, since: int) -> list[Any]:
        return []


def perform(
    runner: Runner, case_id: str, *, case: Case = PLAIN, then: Callable[[], None] = lambda: None
) -> CaseResult:
    """The result of a case without operations."""
    return judged(runner, replace(case, id=case_id), lambda ue: then())


def test_event_that_goes_soon_is_no_result() -> None:
    guest = Keeping()
    runner = running(guest)
    guest.show("u:t00001_e\n", reads=3)
    for name in ("a.one", "a.two", "a.three", "a.four"):
        assert perform(runner, name).outcome is Outcome.PASS
    runner.finish()
    assert (runner.take_other_results(), len(guest.booted)) == ([], 0)


@pytest.mark.parametrize("isolation", [Isolation.GLOBAL, Isolation.FATAL])
def test_event_that_stays_is_a_failure_before_a_case_that_needs_a_clean_system(
    isolation: Isolation,
) -> None:
    guest = Keeping()
    runner = running(guest)
    perform(runner, "a.one")
    guest.show("u:t00002_e u32 a\n")
    perform(runner, "a.two")
    guest.show("u:t00002_e u32 a\nu:t00003_e\nu:t00003_f\n")
    perform(runner, "a.three")
    perform(runner, "a.four", case=replace(PLAIN, isolation=isolation))
    two, three = runner.take_other_results()
    assert [each.id for each in (two, three)] == ["a.two.leftover", "a.three.leftover"]
    for each in (two, three):
        assert (each.outcome, each.blame) == (Outcome.FAIL, Blame.KERNEL)
    assert two.reason.endswith(
        "dynamic_events still lists 'u:e1 u32 a': something holds a reference"
    )
    assert "'u:e1' and 1 more: something holds" in three.reason
    assert [each.observed for each in three.mismatches] == ["u:e1", "u:f"]
    # The case that needed a clean system has a new guest.
    assert len(guest.booted) == 1
    assert runner.take_other_results() == []


def test_event_that_stays_is_a_failure_at_the_end() -> None:
    guest = Keeping()
    runner = running(guest)
    guest.show("u:t00001_e\n")
    perform(runner, "a.one")
    runner.finish()
    assert [each.id for each in runner.take_other_results()] == ["a.one.leftover"]


def test_event_that_stays_for_long_is_a_failure_after_any_case() -> None:
    guest = Keeping()
    runner = running(guest)
    guest.show("u:t00001_e\n")
    perform(runner, "a.one")
    assert runner.take_other_results() == []
    guest.aged = True
    perform(runner, "a.two")
    assert [each.id for each in runner.take_other_results()] == ["a.one.leftover"]
    perform(runner, "a.three")
    assert len(guest.booted) == 1


def test_event_that_the_next_case_would_show_is_waited_for_at_once() -> None:
    guest = Keeping()
    runner = running(guest)
    perform(runner, "a.one", then=lambda: guest.show("u:test u32 count\n", reads=3))
    assert runner.take_other_results() == []
    assert guest.waits == [5.0]
    perform(runner, "a.two", then=lambda: guest.show("u:test\n"))
    assert [each.id for each in runner.take_other_results()] == ["a.two.leftover"]


def test_event_is_waited_for_before_its_guest_is_replaced() -> None:
    guest = Keeping()
    runner = running(guest, fresh_guests=True)
    perform(runner, "a.one")
    perform(runner, "a.two", then=lambda: guest.show("u:t00002_e\n", reads=3))
    perform(runner, "a.three", then=lambda: guest.show("u:t00003_e\n"))
    perform(runner, "a.four")
    assert [each.id for each in runner.take_other_results()] == ["a.three.leftover"]


def test_waits_get_shorter_and_end() -> None:
    """A kernel that keeps everything is not waited for forever."""
    guest = Keeping()
    runner = running(guest)
    for number in range(10):
        perform(runner, f"a.c{number}", then=lambda: guest.show("u:t00001_e\n"))
        perform(runner, "a.global", case=GLOBAL)
    found = [each.id for each in runner.take_other_results()]
    assert found == [f"a.c{number}.leftover" for number in range(5)]
    assert (guest.waits[:2], guest.waits[5:]) == ([5.0, 0.5], [0.0] * 5)
    assert len(guest.booted) == 10


def test_what_is_left_is_shown_with_the_program_that_left_it() -> None:
    lingering = LingeringEvents(Keeping(), Patience())
    first = Evidence(("4. p1: close(fd)",), spec="trace_events_user.c:user_event_put_all")
    lingering.note("a.one", "u:t00001_e\n", lambda: first)
    lingering.note("a.two", "u:t00001_e\nu:t00002_e\n", lambda: Evidence(("5. p1: close(fd)",)))
    found = lingering.by_case(["u:t00001_e"])
    result = result_of("a.one", found["a.one"], 2.0)
    assert list(found) == ["a.one"]
    assert result.evidence.steps == first.steps
    decided = "trace_events_user.c:user_event_put; trace_events_user.c:user_event_put_all"
    assert result.evidence.spec == decided


# Guests whose tracefs cannot become read-only once an instance was removed


@pytest.mark.parametrize(
    ("release", "instances", "renewed"), [("6.9", 1, 1), ("6.9", 0, 0), ("6.9.5", 1, 0)]
)
def test_case_that_needs_a_clean_system_has_a_new_guest(
    release: str, instances: int, renewed: int
) -> None:
    guest = Keeping()
    runner = running(guest, profile_for(release))

    def make_and_remove(ue: UserEvents) -> None:
        for number in range(instances):
            ue.instance(f"i{number}").make()
            ue.instance(f"i{number}").remove()

    judged(runner, PLAIN, make_and_remove)
    assert guest.booted == []
    for _ in range(2):
        judged(runner, GLOBAL)
        assert len(guest.booted) == renewed


def test_an_event_left_in_such_a_guest_is_a_failure_too() -> None:
    guest = Keeping()
    runner = running(guest, profile_for("6.9"))

    def leave_event(ue: UserEvents) -> None:
        ue.instance("i").make()
        guest.show("u:t00001_e\n")

    judged(runner, PLAIN, leave_event, "other.one")
    runner.begin(GLOBAL, "other.two")
    assert [each.id for each in runner.take_other_results()] == ["other.one.leftover"]
    assert len(guest.booted) == 1

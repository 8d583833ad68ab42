"""Guests whose tracefs cannot become read-only once an instance was removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.abi.profile import profile_for
from conformance.cases.case import Isolation
from conformance.client.user_events import UserEvents
from tests.cases.variants import judged
from tests.runner.fake_guest import PLAIN, running
from tests.runner.test_lingering_events import Keeping


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
        judged(runner, replace(PLAIN, isolation=Isolation.GLOBAL))
        assert len(guest.booted) == renewed


def test_an_event_left_in_such_a_guest_is_a_failure_too() -> None:
    guest = Keeping()
    runner = running(guest, profile_for("6.9"))

    def leave_event(ue: UserEvents) -> None:
        ue.instance("i").make()
        guest.show("u:t00001_e\n")

    judged(runner, PLAIN, leave_event, "other.one")
    runner.begin(replace(PLAIN, isolation=Isolation.GLOBAL), "other.two")
    assert [each.id for each in runner.take_other_results()] == ["other.one.leftover"]
    assert len(guest.booted) == 1

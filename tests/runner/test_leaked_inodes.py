"""Guests whose tracefs cannot become read-only once an instance was removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.abi.profile import profile_for
from conformance.cases.case import Isolation
from conformance.client.user_events import UserEvents
from conformance.runner.runner import Runner
from tests.runner.fake_guest import needing
from tests.runner.test_lingering_events import Keeping


@pytest.mark.parametrize(
    ("release", "instances", "renewed"), [("6.9", 1, 1), ("6.9", 0, 0), ("6.9.5", 1, 0)]
)
def test_case_that_needs_a_clean_system_has_a_new_guest(
    release: str, instances: int, renewed: int
) -> None:
    guest = Keeping()
    runner = Runner(profile_for(release), lambda: guest, lambda error, before: None)

    def perform(isolation: Isolation, instances: int) -> None:
        case = replace(needing(""), isolation=isolation)
        ue = runner.begin(case, case.id)
        assert isinstance(ue, UserEvents)
        for number in range(instances):
            ue.instance(f"i{number}").make()
            ue.instance(f"i{number}").remove()
        runner.end(case, case.id, None)

    perform(Isolation.EVENTS, instances)
    assert guest.renewed == 0
    perform(Isolation.GLOBAL, 0)
    assert guest.renewed == renewed
    perform(Isolation.GLOBAL, 0)
    assert guest.renewed == renewed


def test_an_event_left_in_such_a_guest_is_a_failure_too() -> None:
    guest = Keeping()
    runner = Runner(profile_for("6.9"), lambda: guest, lambda error, before: None)
    case = needing("")
    ue = runner.begin(case, "other.one")
    assert isinstance(ue, UserEvents)
    ue.instance("i").make()
    guest.show("u:t00001_e\n")
    runner.end(case, "other.one", None)
    runner.begin(replace(case, isolation=Isolation.GLOBAL), "other.two")
    assert [each.id for each in runner.take_other_results()] == ["other.one.leftover"]
    assert guest.renewed == 1

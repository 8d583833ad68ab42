"""Results of switch probes, and the profiles that cases are judged by after them.

tests/cases/test_switches.py has the cases of each switch on kernels that contradict it.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from conformance.abi.adapted_profile import AdaptedProfile
from conformance.abi.profile import Profile
from conformance.cases.case import Case, Isolation, Tier
from conformance.model.machine import Model
from conformance.runner.switch_probes import (
    Finding,
    PassesUnder,
    Probe,
    SwitchMeasurement,
)
from tests.cases.variants import PROFILE, client

EBADF, PERSIST, MULTI = "ebadf_when_disabled", "persist", "multi_format"


def about(switch: str, needs: tuple[str, ...] = ()) -> Case:
    """A case about a switch, or about none."""
    name = switch or "none"
    return Case(f"dated.{name}", "", "", "6.4..", needs, Tier.QUICK, Isolation.EVENTS, switch)


def probe(switch: str, needs: tuple[str, ...] = ()) -> Probe:
    """A probe without a program."""
    return Probe(about(switch, needs), lambda ue: None)


def kernel(*contradicted: str) -> PassesUnder:
    """A kernel of the profile with some switches inverted."""

    def fits(probe: Probe, profile: Profile) -> bool:
        on = PROFILE.has(probe.switch) != (probe.switch in contradicted)
        return profile.has(probe.switch) == on

    return fits


def measured(fits: PassesUnder, *probes: Probe) -> SwitchMeasurement:
    """The measurement by these probes."""
    found = SwitchMeasurement(PROFILE)
    found.use(probes)
    found.measure(fits)
    return found


def test_explanation_names_commit_and_hint() -> None:
    assert measured(kernel(EBADF), probe(EBADF)).explanation(EBADF) == (
        "the kernel contradicts switch ebadf_when_disabled of profile 6.12.117 "
        "(tracing/user_events: Fix incorrect return value for writing operation when events are "
        "disabled); if that is right for this kernel, judge with --abi "
        "6.12.117,ebadf_when_disabled=no"
    )


def test_cases_that_need_a_switch_measured_off_are_skipped() -> None:
    found = measured(kernel(PERSIST), probe(PERSIST), probe(EBADF))
    assert found.lacking(about("", (EBADF, PERSIST))) == (PERSIST,)
    assert found.lacking(about("", (EBADF,))) == ()
    # Derived facts follow their switch.
    assert found.lacking(about("", ("lasting_events",))) == (PERSIST,)


def test_only_applicable_probes_run() -> None:
    found = measured(kernel(EBADF), probe(EBADF, ("unprintable_text_as_hex",)))
    assert found.finding(EBADF) is None


def test_probe_that_fails_both_ways_is_unclear() -> None:
    found = measured(lambda probe, profile: False, probe(EBADF))
    assert found.finding(EBADF) is Finding.UNCLEAR
    assert found.contradictions == ()


def test_probe_that_depends_on_another_switch_runs_again() -> None:
    """Without PERSIST the kernel refuses all flags, so MULTI looks contradicted at first."""

    def fits(probe: Probe, profile: Profile) -> bool:
        if probe.switch == MULTI:
            return not (profile.has(MULTI) and profile.has(PERSIST))
        return not profile.has(PERSIST)

    found = SwitchMeasurement(PROFILE)
    # PERSIST comes first in the order of switches: measure it later.
    found.use([probe(MULTI)])
    found.measure(fits)
    assert found.finding(MULTI) is Finding.CONTRADICTED
    found.use([probe(PERSIST), probe(MULTI)])
    found.measure(fits)
    assert found.contradicted == {PERSIST}
    assert found.finding(MULTI) is Finding.AS_DATED


def test_unclear_probe_runs_again_after_an_explanation() -> None:
    def fits(probe: Probe, profile: Profile) -> bool:
        known = not profile.has(MULTI)
        return known if probe.switch == MULTI else known and profile.has(PERSIST)

    found = measured(fits, probe(PERSIST), probe(MULTI))
    assert found.finding(PERSIST) is Finding.AS_DATED
    assert found.contradicted == {MULTI}


def test_probes_that_never_agree_end() -> None:
    used = 0

    def fits(probe: Probe, profile: Profile) -> bool:
        nonlocal used
        used += 1
        return profile.has(PERSIST) != profile.has(MULTI)

    measured(fits, probe(PERSIST), probe(MULTI))
    assert used < 20


def test_probe_that_loses_the_guest_does_not_run_again() -> None:
    used: list[str] = []

    def fits(probe: Probe, profile: Profile) -> bool | None:
        used.append(probe.switch)
        profile.has(MULTI)
        return None if probe.switch == PERSIST else not profile.has(MULTI)

    found = measured(fits, probe(PERSIST), probe(MULTI))
    assert found.finding(PERSIST) is Finding.LOST
    assert used == [PERSIST, MULTI, MULTI]


def test_measuring_continues_after_a_lost_guest() -> None:
    found = SwitchMeasurement(PROFILE)
    found.use([probe(EBADF), probe(PERSIST)])

    def broken(probe: Probe, profile: Profile) -> bool:
        if probe.switch == PERSIST:
            raise OSError("no guest")
        return True

    with pytest.raises(OSError, match="no guest"):
        found.measure(broken)
    assert (found.finding(EBADF), found.finding(PERSIST)) == (Finding.AS_DATED, None)
    found.measure(kernel(PERSIST))
    assert found.contradicted == {PERSIST}


# AdaptedProfile


def adapted(*switches: str) -> AdaptedProfile:
    """6.12 with some switches measured off."""
    turned = replace(PROFILE, switches=PROFILE.switches - {*switches})
    return AdaptedProfile.of(turned, frozenset(switches))


def test_adapted_profile_records_switches_that_are_read() -> None:
    profile = adapted(EBADF, PERSIST)
    assert profile.has(MULTI)
    assert profile.used == set()
    assert not profile.has(EBADF)
    assert profile.used == {EBADF}
    assert profile.name == "6.12.117"
    assert profile.generation == PROFILE.generation


def test_derived_facts_read_their_switch() -> None:
    profile = adapted(PERSIST)
    assert not profile.has("lasting_events")
    assert profile.used == {PERSIST}


def test_unknown_switch_is_refused() -> None:
    with pytest.raises(KeyError):
        adapted(PERSIST).has("persists")


def test_all_worlds_of_the_model_share_the_profile() -> None:
    """A switch that is read in a copy of a world, while references are pending."""
    profile = adapted("null_arguments_matched")
    ue = client(Model(profile))
    process = ue.new_process()
    process.open_data().register(ue.name() + " u32 a", flags=1)
    process.exit()
    assert profile.used == set()
    # Two worlds: deleted, or still held by a pending reference.
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno in ("", "EBUSY")
    assert profile.used == {"null_arguments_matched"}

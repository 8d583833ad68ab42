"""What probes show about the switches of a profile, and what is judged by it afterwards."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from conformance.abi.profile import Profile, profile_for
from conformance.cases.case import Case, Isolation, Tier
from conformance.client.executor import ModelExecutor
from conformance.client.lockstep import Lockstep
from conformance.client.user_events import UserEvents
from conformance.model.machine import Model
from conformance.runner.switch_probes import (
    AdaptedProfile,
    Finding,
    PassesUnder,
    Probe,
    SwitchMeasurement,
)

PROFILE = profile_for("6.12.117")
EBADF, PERSIST, MULTI = "ebadf_when_disabled", "persist", "multi_format"


def about(switch: str, needs: tuple[str, ...] = ()) -> Case:
    """A case about a switch, or about none."""
    name = switch or "none"
    return Case(f"dated.{name}", "", "", "6.4..", needs, Tier.QUICK, Isolation.EVENTS, switch)


def probe(switch: str, needs: tuple[str, ...] = ()) -> Probe:
    """A probe whose program is not run here."""
    return Probe(about(switch, needs), lambda ue: None)


def kernel(*contradicted: str) -> PassesUnder:
    """A kernel of the profile but for some switches."""

    def fits(probe: Probe, profile: Profile) -> bool:
        on = PROFILE.has(probe.switch) != (probe.switch in contradicted)
        return profile.has(probe.switch) == on

    return fits


def measured(fits: PassesUnder, *probes: Probe) -> SwitchMeasurement:
    """What these probes show."""
    found = SwitchMeasurement(PROFILE)
    found.use(probes)
    found.measure(fits)
    return found


def test_a_kernel_that_is_as_dated_is_judged_by_its_profile() -> None:
    found = measured(kernel(), probe(EBADF), probe(PERSIST))
    assert found.contradictions == ()
    assert {found.finding(EBADF), found.finding(PERSIST)} == {Finding.AS_DATED}
    assert found.profile_for(about("")) is PROFILE
    assert found.lacking(about("", (PERSIST,))) == ()


def test_a_contradicted_switch_is_the_other_way_round_for_all_but_its_case() -> None:
    found = measured(kernel(EBADF), probe(EBADF), probe(PERSIST))
    assert [each.override for each in found.contradictions] == ["ebadf_when_disabled=no"]
    assert not found.profile_for(about("")).has(EBADF)
    assert not found.profile_for(about(PERSIST)).has(EBADF)
    assert found.profile_for(about("")).has(PERSIST)
    assert found.profile_for(about(EBADF)) is PROFILE


def test_the_accusation_names_commit_and_mend() -> None:
    assert measured(kernel(EBADF), probe(EBADF)).explanation(EBADF) == (
        "the kernel contradicts switch ebadf_when_disabled of profile 6.12.117 "
        "(tracing/user_events: Fix incorrect return value for writing operation when events are "
        "disabled); if that is right for this kernel, judge with --abi "
        "6.12.117,ebadf_when_disabled=no"
    )


def test_the_mend_is_an_abi_without_contradiction() -> None:
    found = measured(kernel(EBADF), probe(EBADF))
    mended = profile_for(found.explanation(EBADF).rpartition(" ")[2])
    assert mended.switches == found.profile_for(about("")).switches


def test_cases_that_need_what_is_measured_off_cannot_be_judged() -> None:
    found = measured(kernel(PERSIST), probe(PERSIST), probe(EBADF))
    assert found.lacking(about("", (EBADF, PERSIST))) == (PERSIST,)
    assert found.lacking(about("", (EBADF,))) == ()
    # What follows from a switch goes with it.
    assert found.lacking(about("", ("lasting_events",))) == (PERSIST,)


def test_only_probes_that_apply_are_asked() -> None:
    found = measured(kernel(EBADF), probe(EBADF, ("unprintable_text_as_hex",)))
    assert found.finding(EBADF) is None


def test_neither_way_concludes_nothing() -> None:
    found = measured(lambda probe, profile: False, probe(EBADF))
    assert found.finding(EBADF) is Finding.UNCLEAR
    assert found.contradictions == ()


def test_a_probe_that_depends_on_another_switch_is_asked_again() -> None:
    """Without PERSIST the kernel refuses all flags, so MULTI looks contradicted at first."""

    def fits(probe: Probe, profile: Profile) -> bool:
        if probe.switch == MULTI:
            return not (profile.has(MULTI) and profile.has(PERSIST))
        return not profile.has(PERSIST)

    found = SwitchMeasurement(PROFILE)
    # In the order of the switches, PERSIST goes first: let it be found out later.
    found.use([probe(MULTI)])
    found.measure(fits)
    assert found.finding(MULTI) is Finding.CONTRADICTED
    found.use([probe(PERSIST), probe(MULTI)])
    found.measure(fits)
    assert found.contradicted == {PERSIST}
    assert found.finding(MULTI) is Finding.AS_DATED


def test_a_probe_that_was_unclear_is_asked_again_when_another_explains_it() -> None:
    def fits(probe: Probe, profile: Profile) -> bool:
        known = not profile.has(MULTI)
        return known if probe.switch == MULTI else known and profile.has(PERSIST)

    found = measured(fits, probe(PERSIST), probe(MULTI))
    assert found.finding(PERSIST) is Finding.AS_DATED
    assert found.contradicted == {MULTI}


def test_probes_that_never_agree_come_to_an_end() -> None:
    used = 0

    def fits(probe: Probe, profile: Profile) -> bool:
        nonlocal used
        used += 1
        return profile.has(PERSIST) != profile.has(MULTI)

    measured(fits, probe(PERSIST), probe(MULTI))
    assert used < 20


def test_a_probe_that_loses_the_guest_is_not_asked_again() -> None:
    used: list[str] = []

    def fits(probe: Probe, profile: Profile) -> bool | None:
        used.append(probe.switch)
        profile.has(MULTI)
        return None if probe.switch == PERSIST else not profile.has(MULTI)

    found = measured(fits, probe(PERSIST), probe(MULTI))
    assert found.finding(PERSIST) is Finding.LOST
    assert used == [PERSIST, MULTI, MULTI]


def test_measuring_goes_on_where_the_guest_was_not_to_be_had() -> None:
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


# The profile that remembers


def adapted(*switches: str) -> AdaptedProfile:
    """6.12 with some switches measured off."""
    turned = replace(PROFILE, switches=PROFILE.switches - {*switches})
    return AdaptedProfile.of(turned, frozenset(switches))


def test_it_remembers_the_measured_switches_that_were_asked_for() -> None:
    profile = adapted(EBADF, PERSIST)
    assert profile.has(MULTI)
    assert profile.used == set()
    assert not profile.has(EBADF)
    assert profile.used == {EBADF}
    assert profile.name == "6.12.117"
    assert profile.generation == PROFILE.generation


def test_what_follows_from_a_switch_asks_for_it() -> None:
    profile = adapted(PERSIST)
    assert not profile.has("lasting_events")
    assert profile.used == {PERSIST}


def test_an_unknown_switch_is_nobodys_behaviour() -> None:
    with pytest.raises(KeyError):
        adapted(PERSIST).has("persists")


def test_copies_refer_to_the_very_same_profile() -> None:
    profile, other = adapted(EBADF), adapted(EBADF)
    assert pickle.loads(pickle.dumps(profile)) is profile
    assert pickle.loads(pickle.dumps([profile, other])) == [profile, other]
    before = pickle.dumps(profile)
    profile.has(EBADF)
    assert pickle.dumps(profile) == before


def test_the_model_asks_it_in_all_its_worlds() -> None:
    """A switch that is asked for in a copy of a world, while references are pending."""
    profile = adapted("null_arguments_matched")
    ue = UserEvents(Lockstep(Model(profile), ModelExecutor(Model(profile))))
    process = ue.new_process()
    process.open_data().register(ue.name() + " u32 a", flags=1)
    process.exit()
    assert profile.used == set()
    # Deleted, or still held by a reference that is dropped later: two worlds.
    assert ue.tracefs.command(f"-:{ue.name()}\n").errno in ("", "EBUSY")
    assert profile.used == {"null_arguments_matched"}

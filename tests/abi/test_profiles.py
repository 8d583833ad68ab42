"""Profiles: generations, names, overrides and ranges."""

from __future__ import annotations

import pytest

from conformance.abi.base_switches import BASE
from conformance.abi.profile import (
    Generation,
    ProfileError,
    Release,
    in_range,
    on_release,
    profile_for,
)
from conformance.abi.switch import Kind, Switch
from conformance.abi.switches import BY_NAME, DERIVED, SWITCHES
from tests.abi.releases import FIRST_64, FIRST_518, FUTURE, before, dated


@pytest.mark.parametrize(
    ("abi", "generation"),
    [
        ("rfc-v1", "rfc-v1"),
        ("rfc-v1,persist=yes", "rfc-v1"),
        ("first-commit", "byte-status"),
        ("merge-window", "byte-status"),
        ("5.18", "byte-status"),
        ("6.0.19", "byte-status"),
        ("byte-status", "byte-status"),
        ("6.1", "bit-status"),
        ("6.3.13", "bit-status"),
        ("bit-status", "bit-status"),
        ("6.4", "remote-enable"),
        ("7.3", "remote-enable"),
    ],
)
def test_generations_of_releases(abi: str, generation: str) -> None:
    profile = profile_for(abi)
    assert profile.generation == Generation(generation)
    assert profile.has("remote_enable") is (generation == "remote-enable")
    # rfc-v1 has one as well, in another file and with other rules.
    assert profile.has("status_page") is (generation in ("byte-status", "bit-status"))


@pytest.mark.parametrize(
    ("abi", "lasting"),
    [("rfc-v1", True), ("5.19", True), ("6.3", True), ("6.4", False), ("6.7", True)],
)
def test_dynamic_events_creates_persistent_events(abi: str, *, lasting: bool) -> None:
    assert profile_for(abi).has("lasting_events") is lasting


def test_derived_behaviours_are_not_switches() -> None:
    assert set(DERIVED).isdisjoint(BY_NAME)
    with pytest.raises(ProfileError):
        profile_for("6.12,lasting_events=no")


def test_switch_names_are_unique() -> None:
    assert len(BY_NAME) == len(SWITCHES)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_a_switch_stays_on(switch: Switch) -> None:
    if switch.since is None:
        assert not profile_for(FUTURE).has(switch.name)
        return
    major, minor = switch.since
    since = f"{major}.{minor}"
    # No release precedes 5.18.
    assert not profile_for("first-commit" if since == "5.18" else before(since)).has(switch.name)
    assert profile_for(since).has(switch.name)
    assert profile_for(f"{major + 1}.0").has(switch.name)
    for series, sublevel in switch.backports.items():
        assert series < switch.since
        stable = "{}.{}.{}".format(*series, sublevel)
        assert not profile_for(before(stable)).has(switch.name)
        assert profile_for(stable).has(switch.name)


def test_the_base_release_sets_the_base_switches() -> None:
    base = {switch.name for switch in BASE}
    assert {switch.kind for switch in BASE} == {Kind.BASE}
    old_on_new = profile_for("byte-status", base=FUTURE)
    assert dated(old_on_new) == FIRST_518
    assert old_on_new.switches >= base
    assert old_on_new.release == Release(5, 19)
    new_on_old = profile_for(FUTURE, base="5.18")
    assert dated(new_on_old) == dated(profile_for(FUTURE))
    assert new_on_old.switches & base == profile_for("5.18").switches & base


def test_the_first_commit_is_in_the_range_of_5_18() -> None:
    first = profile_for("first-commit")
    assert (first.name, first.release) == ("first-commit", Release(5, 18))
    assert in_range("5.18..", first)
    assert in_range("5.18..6.0", first)
    assert dated(profile_for("first-commit,empty_payload=no,bpf_iter_ignored=yes")) == {
        "bpf_iter_ignored"
    }
    assert dated(profile_for("first-commit", base=FUTURE)) == {"empty_payload"}


def test_rfc_v1_is_in_no_range_of_releases() -> None:
    first = profile_for("rfc-v1", base="6.1.192")
    assert in_range("rfc-v1", first)
    assert not any(in_range(text, first) for text in ("5.15", "5.15..", "5.0..", "5.18.."))
    assert not any(
        in_range("rfc-v1", profile_for(abi)) for abi in ("first-commit", "5.18", "6.12", "7.3")
    )
    assert dated(first) == {"perf_sink", "bpf_programs_run"}
    assert first.has("long-record-stops-buffer")


def test_an_override_changes_one_switch() -> None:
    plain = profile_for("6.8")
    without = profile_for("6.8,ebadf_when_disabled=no")
    assert dated(without) == dated(plain) - {"ebadf_when_disabled"}
    assert profile_for("6.8, multi_format=yes").has("multi_format")
    both = profile_for("6.4,multi_format=yes,persist=yes")
    assert dated(both) == FIRST_64 | {"multi_format", "persist"}


def test_a_profile_keeps_its_name() -> None:
    assert profile_for("6.8,persist=no").name == "6.8,persist=no"


@pytest.mark.parametrize(
    ("abi", "message"),
    [
        ("", "'' is not a kernel release"),
        ("six", "'six' is not a kernel release; write it like 6.12"),
        ("6", "'6' is not a kernel release"),
        ("6.x", "'6.x' is not a kernel release; write it like 6.12 or 6.12.117, or byte-status"),
        ("5.17", "no profile for 5.17: user_events came with 5.18"),
        # The release during which rfc-v1 was sent does not have it.
        ("5.15", "no profile for 5.15: user_events came with 5.18"),
        ("rfc-v2", "'rfc-v2' is not a kernel release"),
        ("rfc-v1+", "'rfc-v1+' is not an ABI; write rfc-v1, then switches"),
        ("byte-statu", "'byte-statu' is not a kernel release"),
        ("6.12,persist", "'persist' is not an override; write SWITCH=yes or SWITCH=no"),
        ("6.12,persist=on", "'persist=on' is not an override"),
        ("6.12,", "'' is not an override"),
        ("6.12,persists=no", "unknown switch or bug 'persists'; did you mean persist?"),
    ],
)
def test_an_invalid_profile_names_the_valid_forms(abi: str, message: str) -> None:
    with pytest.raises(ProfileError) as raised:
        profile_for(abi)
    assert str(raised.value).startswith(message)


def test_an_unknown_switch_raises() -> None:
    with pytest.raises(KeyError):
        profile_for("6.12").has("persists")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("6.12", Release(6, 12)),
        ("6.12.117", Release(6, 12, 117)),
        ("6.12.117-uevt", Release(6, 12, 117)),
        ("7.0-rc2", Release(7, 0)),
        ("6.12.117+", Release(6, 12, 117)),
    ],
)
def test_a_release_suffix_is_ignored(text: str, release: Release) -> None:
    assert Release.parse(text) == release


def test_releases_are_ordered_by_number() -> None:
    texts = ["7.0", "6.12.9", "6.9", "6.12", "6.12.10"]
    ordered = ["6.9", "6.12", "6.12.9", "6.12.10", "7.0"]
    assert [str(each) for each in sorted(map(Release.parse, texts))] == ordered


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("6.4..", ("6.4", "6.12.117", "7.3"), ()),
        ("6.7..", ("6.7", "7.0"), ("6.4", "6.6.99")),
        ("6.4..6.6", ("6.4", "6.6.33"), ("6.7",)),
        ("6.12", ("6.12", "6.12.117"), ("6.11", "6.13")),
    ],
)
def test_ranges_of_series(text: str, inside: tuple[str, ...], outside: tuple[str, ...]) -> None:
    assert [abi for abi in inside if not in_range(text, profile_for(abi))] == []
    assert [abi for abi in outside if in_range(text, profile_for(abi))] == []


@pytest.mark.parametrize("text", ["", "..", "6.4...6", "x..6.5"])
def test_a_malformed_range_is_refused(text: str) -> None:
    with pytest.raises(ProfileError):
        in_range(text, profile_for("6.12"))


@pytest.mark.parametrize(
    ("abi", "release", "expected"),
    [
        ("6.12", "6.12.117-uevt", "6.12.117"),
        ("6.12,persist=no", "6.12.117", "6.12.117,persist=no"),
        ("6.12", "6.12.0-rc5", "6.12"),
        ("6.12.3", "6.12.117", "6.12.3"),
        ("6.1", "6.12.117", "6.1"),
        ("rfc-v1", "6.1.192", "rfc-v1"),
    ],
)
def test_a_series_names_the_stable_release_that_runs(abi: str, release: str, expected: str) -> None:
    assert on_release(abi, release) == expected

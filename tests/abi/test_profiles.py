"""Profiles: switches of releases, names, overrides and ranges."""

from __future__ import annotations

import pytest

from conformance.abi.bugs import BUGS
from conformance.abi.profile import (
    Generation,
    Profile,
    ProfileError,
    Release,
    in_range,
    profile_for,
)
from conformance.abi.switch import Kind, Switch
from conformance.abi.switches import BY_NAME, CHANGES, DERIVED, SWITCHES

# Later than any switch.
FUTURE = "99.0"
# Switches in the order in which they landed in mainline.
FIRST_518 = {
    "perf_sink",
    "print_fmt_generated",
    "deletion_arguments_matched",
    "unreadable_payload_refused",
    "payload_size_checked",
    "dynamic_fields_validated",
    "events_made_as_root",
    "bpf_iter_ignored",
}
FIRST_519 = FIRST_518 | {"bpf_descriptor_suffices"}
FIRST_61 = FIRST_519 | {"strings_formatted_safely", "long_records_kept"}
BACKPORTED_TO_61 = {"ebadf_when_disabled", "struct_size_matched"}
FIRST_6113 = FIRST_61 | {"array_length_of_field"}
FIRST_6128 = FIRST_6113 | {"negative_index_refused"}
FIRST_62 = FIRST_6113 | {"ids_reused"}
FIRST_632 = FIRST_62 | {"negative_index_refused"}
FIRST_64 = FIRST_632 | {"bpf_log_without_buffer"}
FIRST_65 = FIRST_64 | {
    "bpf_attributes_before_rights",
    "bpf_license_read_last",
    "ebadf_when_disabled",
    "struct_size_matched",
    "arguments_matched",
    "null_arguments_matched",
    "empty_payload",
    "auto_delete",
    "text_flags_refused",
    "fields_printed_in_order",
}
FIRST_68 = FIRST_65 | {"persist", "directories_of_any_name"}
UP_TO_612 = FIRST_68 | {"multi_format", "unspaced_fields_match"}
UP_TO_71 = UP_TO_612 | {
    "long_values_as_symbols",
    "listing_ends_with_einval",
    "unprintable_text_as_hex",
}


def dated(profile: Profile) -> frozenset[str]:
    """The switches of a profile that are on, known bugs left aside."""
    return profile.switches - {each.name for each in BUGS}


@pytest.mark.parametrize(
    ("release", "switches"),
    [
        ("rfc-v1", {"perf_sink", "bpf_programs_run"}),
        # An empty payload was recorded until a later commit broke it.
        ("first-commit", {"empty_payload"}),
        ("merge-window", FIRST_518 - {"bpf_iter_ignored"} | {"bpf_programs_run"}),
        ("5.18-rc1", FIRST_518),
        ("5.18", FIRST_518),
        ("byte-status", FIRST_519),
        ("6.0.19", FIRST_519),
        ("bit-status", FIRST_61),
        ("6.1.12", FIRST_61),
        ("6.1.13", FIRST_6113),
        ("6.1.28", FIRST_6128),
        ("6.1.39", FIRST_6128),
        ("6.1.192", FIRST_6128 | BACKPORTED_TO_61),
        ("6.2.16", FIRST_62),
        ("6.3.1", FIRST_62),
        ("6.3.2", FIRST_632),
        ("6.4", FIRST_64),
        ("6.4.4", FIRST_64),
        ("6.4.5", FIRST_64 | BACKPORTED_TO_61),
        ("6.4.16", FIRST_64 | BACKPORTED_TO_61),
        ("6.5", FIRST_65),
        ("6.6", FIRST_65),
        ("6.6.17", FIRST_65),
        ("6.6.18", FIRST_65 | {"directories_of_any_name"}),
        ("6.6.32", FIRST_65 | {"directories_of_any_name"}),
        ("6.6.33", FIRST_68 | {"unspaced_fields_match"}),
        ("6.7", FIRST_65 | {"persist"}),
        ("6.8", FIRST_68),
        ("6.8.11", FIRST_68),
        ("6.8.12", FIRST_68 | {"unspaced_fields_match"}),
        ("6.9", FIRST_68 | {"multi_format"}),
        ("6.9.3", UP_TO_612),
        ("6.10", UP_TO_612),
        ("6.12", UP_TO_612),
        ("6.12.96", UP_TO_612),
        ("6.12.97", UP_TO_612 | {"deferred_release"}),
        ("6.12.117-uevt", UP_TO_612 | {"deferred_release"}),
        # A series without the backport, however many sublevels it has.
        ("6.13.200", UP_TO_612),
        ("6.14", UP_TO_612),
        ("6.15", UP_TO_612 | {"long_values_as_symbols"}),
        ("6.18", UP_TO_612 | {"long_values_as_symbols"}),
        ("6.19", UP_TO_71 - {"listing_ends_with_einval"}),
        ("7.0.9", UP_TO_71 - {"listing_ends_with_einval"}),
        ("7.0.10", UP_TO_71),
        ("7.1", UP_TO_71),
        ("7.2", UP_TO_71 | {"deferred_release"}),
        ("7.2-rc1", UP_TO_71 | {"deferred_release"}),
        ("7.3", UP_TO_71 | {"deferred_release"}),
    ],
)
def test_switches_of_releases(release: str, switches: set[str]) -> None:
    assert dated(profile_for(release)) == switches


def test_the_newest_release_has_every_released_switch() -> None:
    released = {switch.name: switch.since for switch in CHANGES if switch.since is not None}
    newest = ".".join(map(str, max(released.values())))
    assert dated(profile_for(newest)) == set(released)
    assert {each.name for each in CHANGES} - set(released) == {
        "two_status_pages",
        "bpf_programs_run",
    }


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
    [("rfc-v1", True), ("5.19", True), ("6.4", True), ("6.5", False), ("6.7", True)],
)
def test_dynamic_events_creates_persistent_events(abi: str, *, lasting: bool) -> None:
    assert profile_for(abi).has("lasting_events") is lasting


def test_derived_behaviours_are_not_switches() -> None:
    assert set(DERIVED).isdisjoint(BY_NAME)
    with pytest.raises(ProfileError):
        profile_for("6.12,lasting_events=no")


def test_switch_names_are_unique() -> None:
    assert len(BY_NAME) == len(SWITCHES)


@pytest.mark.parametrize("switch", CHANGES, ids=lambda switch: switch.name)
def test_a_switch_stays_on(switch: Switch) -> None:
    if switch.since is None:
        assert not profile_for(FUTURE).has(switch.name)
        return
    major, minor = switch.since
    before = f"{major}.{minor - 1}" if minor else f"{major - 1}.99"
    # No release precedes 5.18.
    before = "first-commit" if switch.since == (5, 18) else before
    assert not profile_for(before).has(switch.name)
    assert profile_for(f"{major}.{minor}").has(switch.name)
    assert profile_for(f"{major + 1}.0").has(switch.name)
    for (series_major, series_minor), sublevel in switch.backports.items():
        assert (series_major, series_minor) < switch.since
        series = f"{series_major}.{series_minor}"
        assert not profile_for(f"{series}.{sublevel - 1}").has(switch.name)
        assert profile_for(f"{series}.{sublevel}").has(switch.name)


def test_the_base_release_sets_the_base_switches() -> None:
    base = {switch.name for switch in CHANGES if switch.kind is Kind.BASE}
    assert "fields_printed_in_order" in base
    old_on_new = profile_for("byte-status", base=FUTURE)
    assert dated(old_on_new) == base | FIRST_518
    assert old_on_new.release == Release(5, 19)
    newest = dated(profile_for(FUTURE))
    assert dated(profile_for(FUTURE, base="5.18")) == newest - base


def test_the_first_commit_is_in_the_range_of_5_18() -> None:
    first = profile_for("first-commit")
    assert (first.name, first.release) == ("first-commit", Release(5, 18))
    assert in_range("5.18..", first)
    assert in_range("5.18..6.0", first)
    assert dated(profile_for("first-commit,empty_payload=no,bpf_iter_ignored=yes")) == {
        "bpf_iter_ignored"
    }
    base = {switch.name for switch in CHANGES if switch.kind is Kind.BASE}
    assert dated(profile_for("first-commit", base=FUTURE)) == base | {"empty_payload"}


def test_rfc_v1_is_in_no_range_of_releases() -> None:
    first = profile_for("rfc-v1", base="6.1.192")
    assert in_range("rfc-v1", first)
    assert not any(in_range(text, first) for text in ("5.15", "5.15..", "5.0..", "5.18.."))
    assert not any(
        in_range("rfc-v1", profile_for(abi)) for abi in ("first-commit", "5.18", "6.12", "7.3")
    )
    base = {switch.name for switch in CHANGES if switch.kind is Kind.BASE}
    assert dated(first) - base == {"perf_sink", "bpf_programs_run"}
    assert first.has("long_records_kept")


def test_an_override_changes_one_switch() -> None:
    plain = profile_for("6.8")
    without = profile_for("6.8,ebadf_when_disabled=no")
    assert dated(without) == dated(plain) - {"ebadf_when_disabled"}
    assert profile_for("6.8, multi_format=yes").has("multi_format")
    both = profile_for("6.4,auto_delete=yes,persist=yes")
    assert dated(both) == FIRST_64 | {"auto_delete", "persist"}


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
        ("6.12,persists=no", "unknown switch 'persists'; one of arguments_matched, "),
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

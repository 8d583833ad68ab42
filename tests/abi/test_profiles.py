"""Profiles: switches of releases, names, overrides and ranges."""

from __future__ import annotations

import pytest

from conformance.abi.base_switches import BASE
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
FIRST_61 = FIRST_518 | {"strings_formatted_safely"}
BACKPORTED_TO_61 = {"ebadf_when_disabled", "struct_size_matched"}
FIRST_6128 = FIRST_61 | {"negative_index_refused"}
FIRST_632 = FIRST_61 | {"negative_index_refused"}
FIRST_64 = FIRST_632 | {
    "arguments_matched",
    "null_arguments_matched",
    "empty_payload",
    "auto_delete",
    "text_flags_refused",
}
FIRST_65 = FIRST_64 | BACKPORTED_TO_61
FIRST_68 = FIRST_65 | {"persist"}
UP_TO_612 = FIRST_68 | {"multi_format", "unspaced_fields_match"}


# Of each base switch, releases without it and the next one with it.
BASE_DATES = {
    "long_lines_marked": (("6.1.73", "6.1.74"), ("6.6.12", "6.6.13"), ("6.6", "6.7")),
    "ids_reused": (("6.1", "6.2"),),
    "array_length_of_field": (
        ("6.1.11", "6.1.12"),
        ("6.1", "6.2"),
    ),
    "long-record-stops-buffer": (
        ("6.1.68", "6.1.69"),
        ("6.6.7", "6.6.8"),
        ("6.6", "6.7"),
    ),
    "filter-odd-size-oops": (("6.0", "6.1"),),
    "tracefs-root-mode": (
        ("6.12.89", "6.12.90"),
        ("6.18.29", "6.18.30"),
        ("7.0.6", "7.0.7"),
        ("7.0", "7.1"),
    ),
    "tracefs-inode-leak": (("6.9.4", "6.9.5"), ("6.9", "6.10")),
    "long_values_as_symbols": (("6.14", "6.15"),),
    "unprintable_text_as_hex": (("6.18", "6.19"),),
    "directories_of_any_name": (
        ("6.6.17", "6.6.18"),
        ("6.7.5", "6.7.6"),
        ("6.7", "6.8"),
    ),
    "listing_ends_with_einval": (
        ("7.0.9", "7.0.10"),
        ("7.0", "7.1"),
    ),
    "bpf_descriptor_suffices": (("5.18", "5.19"),),
    "bpf_log_without_buffer": (("6.3", "6.4"),),
    "bpf_attributes_before_rights": (
        ("6.4.9", "6.4.10"),
        ("6.4", "6.5"),
    ),
    "bpf_license_read_last": (("6.4", "6.5"),),
    "probes_deleted_by_system": (("5.19", "6.0"),),
    "remount_keeps_mode": (
        ("5.19.8", "5.19.9"),
        ("5.19", "6.0"),
    ),
    "buffers_reset_with_events": (
        ("6.0.11", "6.0.12"),
        ("6.0", "6.1"),
    ),
    "percent_and_graph": (
        ("6.1.22", "6.1.23"),
        ("6.1", "6.2"),
    ),
    "value_modifiers_refused": (
        ("6.1.22", "6.1.23"),
        ("6.2.7", "6.2.8"),
        ("6.2", "6.3"),
    ),
    "percent_and_graph_kept": (
        ("6.1.188", "6.1.189"),
        ("6.12.110", "6.12.111"),
        ("7.2.6", "7.2.7"),
        ("7.2", "7.3"),
    ),
    "functions_in_filters": (("6.2", "6.3"),),
    "eprobe_fields_parsed": (("6.4", "6.5"),),
    "reading_histogram_busy": (
        ("6.1.39", "6.1.40"),
        ("6.4.4", "6.4.5"),
        ("6.4", "6.5"),
    ),
    "enable_file_holds_instance": (
        ("6.1.54", "6.1.55"),
        ("6.5.4", "6.5.5"),
        ("6.5", "6.6"),
    ),
    "synthetic_numbers_printed": (
        ("6.5.4", "6.5.5"),
        ("6.5", "6.6"),
    ),
    "cpumasks_typed": (("6.5", "6.6"),),
    "deleted_files_refused": (
        ("6.6.45", "6.6.46"),
        ("6.10.4", "6.10.5"),
        ("6.10", "6.11"),
    ),
    "processor_sets": (("6.5", "6.6"),),
    "empty_cpumask_refused": (
        ("6.1.122", "6.1.123"),
        ("6.6.68", "6.6.69"),
        ("6.12.7", "6.12.8"),
        ("6.12", "6.13"),
    ),
    "first_period_counted": (
        ("6.1.119", "6.1.120"),
        ("6.6.63", "6.6.64"),
        ("6.11.10", "6.11.11"),
        ("6.12.1", "6.12.2"),
        ("6.12", "6.13"),
    ),
    "eprobe_system_matched": (
        ("6.1.182", "6.1.183"),
        ("6.12.100", "6.12.101"),
        ("7.1", "7.2"),
    ),
    "whole_pattern_compared": (
        ("6.1.182", "6.1.183"),
        ("6.12.102", "6.12.103"),
        ("7.1", "7.2"),
    ),
    "raw_data_if_asked": (
        ("6.6.75", "6.6.76"),
        ("6.12.12", "6.12.13"),
        ("6.13.1", "6.13.2"),
        ("6.13", "6.14"),
    ),
}


def dated(profile: Profile) -> frozenset[str]:
    """The switches of user_events that are on, known bugs left aside."""
    left_aside = {each.name for each in (*BUGS, *BASE)}
    return profile.switches - left_aside


@pytest.mark.parametrize(
    ("release", "switches"),
    [
        ("rfc-v1", {"perf_sink", "bpf_programs_run"}),
        # An empty payload was recorded until a later commit broke it.
        ("first-commit", {"empty_payload"}),
        ("merge-window", FIRST_518 - {"bpf_iter_ignored"} | {"bpf_programs_run"}),
        ("5.18-rc1", FIRST_518),
        ("5.18", FIRST_518),
        ("byte-status", FIRST_518),
        ("6.0.19", FIRST_518),
        ("bit-status", FIRST_61),
        ("6.1.12", FIRST_61),
        ("6.1.13", FIRST_61),
        ("6.1.28", FIRST_6128),
        ("6.1.39", FIRST_6128),
        ("6.1.192", FIRST_6128 | BACKPORTED_TO_61),
        ("6.2.14", FIRST_61),
        ("6.2.15", FIRST_632),
        ("6.3.1", FIRST_61),
        ("6.3.2", FIRST_632),
        ("6.4", FIRST_64),
        ("6.4.4", FIRST_64),
        ("6.4.5", FIRST_65),
        ("6.4.16", FIRST_65),
        ("6.5", FIRST_65),
        ("6.6", FIRST_65),
        ("6.6.17", FIRST_65),
        ("6.6.18", FIRST_65),
        ("6.6.32", FIRST_65),
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
        ("6.15", UP_TO_612),
        ("6.18", UP_TO_612),
        ("6.19", UP_TO_612),
        ("7.0.9", UP_TO_612),
        ("7.0.10", UP_TO_612),
        ("7.1", UP_TO_612),
        ("7.2", UP_TO_612 | {"deferred_release"}),
        ("7.2-rc1", UP_TO_612 | {"deferred_release"}),
        ("7.3", UP_TO_612 | {"deferred_release"}),
    ],
)
def test_switches_of_releases(release: str, switches: set[str]) -> None:
    assert dated(profile_for(release)) == switches


def test_dates_of_base_switches() -> None:
    fixed = {bug.name for bug in BUGS if bug.since is not None}
    assert BASE_DATES.keys() == {switch.name for switch in BASE} | fixed
    for switch, dates in BASE_DATES.items():
        for before, since in dates:
            assert not profile_for("6.12", base=before).has(switch), (switch, before)
            assert profile_for("5.18", base=since).has(switch), (switch, since)


@pytest.mark.parametrize(
    ("switch", "release"),
    [("raw_data_if_asked", "6.2"), ("synthetic_numbers_printed", "6.4")],
)
def test_base_switches_before_the_mistake(switch: str, release: str) -> None:
    assert profile_for(release).has(switch)


def test_the_newest_release_has_every_released_switch() -> None:
    released = {switch.name: switch.since for switch in CHANGES if switch.since is not None}
    newest = ".".join(map(str, max(released.values())))
    assert profile_for(newest).switches >= set(released)
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


@pytest.mark.parametrize(
    "switch",
    [each for each in (*CHANGES, *BASE) if each.introduced is None],
    ids=lambda switch: switch.name,
)
def test_a_switch_stays_on(switch: Switch) -> None:
    if switch.since is None:
        assert not profile_for(FUTURE).has(switch.name)
        return
    major, minor = switch.since
    before = f"{major}.{minor - 1}" if minor else f"{major - 1}.19"
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
        ("6.12,persists=no", "unknown switch 'persists'; one of action-param-one-letter, "),
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

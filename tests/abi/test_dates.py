"""Which releases have which switches."""

from __future__ import annotations

import pytest

from conformance.abi.base_switches import BASE
from conformance.abi.bugs import BUGS
from conformance.abi.profile import profile_for
from conformance.abi.switches import CHANGES
from tests.abi.releases import (
    BACKPORTED_TO_61,
    FIRST_61,
    FIRST_64,
    FIRST_65,
    FIRST_68,
    FIRST_518,
    FIRST_632,
    FIRST_6128,
    UP_TO_612,
    dated,
)

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
    "eventfs-long-name-hangs": (("6.6.17", "6.6.18"), ("6.6", "6.7")),
    "tracefs-mount-options": (("6.11.7", "6.11.8"), ("6.11", "6.12")),
    "perf-program-runs-twice": (("6.10.6", "6.10.7"), ("6.10", "6.11")),
    "tracefs-inode-leak": (("6.6.33", "6.6.34"), ("6.9.4", "6.9.5"), ("6.9", "6.10")),
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
    "iovecs_walked": (("6.3", "6.4"),),
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
    ("switch", "before", "since"),
    [
        ("raw_data_if_asked", "6.2.16", "6.3"),
        ("synthetic_numbers_printed", "6.4", "6.5"),
        ("synthetic_numbers_printed", "6.4.12", "6.4.13"),
        ("deleted_files_refused", "6.1.63", "6.1.64"),
        ("deleted_files_refused", "6.5.10", "6.5.11"),
        ("deleted_files_refused", "6.6", "6.6.1"),
        ("format-array-length", "6.0.19", "6.2"),
        ("format-array-length", "6.1.11", "6.1.12"),
        ("failed-delete-clears-buffers", "6.0.11", "6.0.12"),
        ("tracefs-inode-leak", "6.6.30", "6.6.31"),
        ("tracefs-inode-leak", "6.8.9", "6.8.10"),
        ("tracefs-root-mode", "6.11.7", "6.11.8"),
    ],
)
def test_switches_before_the_mistake(switch: str, before: str, since: str) -> None:
    assert profile_for(before).has(switch)
    assert not profile_for(since).has(switch)


def test_the_newest_release_has_every_released_switch() -> None:
    released = {switch.name: switch.since for switch in CHANGES if switch.since is not None}
    newest = ".".join(map(str, max(released.values())))
    assert profile_for(newest).switches >= set(released)
    assert {each.name for each in CHANGES} - set(released) == {
        "two_status_pages",
        "bpf_programs_run",
    }

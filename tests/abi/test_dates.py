"""Which releases have which switches."""

from __future__ import annotations

import re

import pytest

from conformance.abi.base_switches import BASE
from conformance.abi.bugs import BUGS
from conformance.abi.profile import profile_for
from conformance.abi.switches import CHANGES, SWITCHES
from tests.abi.releases import (
    BACKPORTED_TO_61,
    FIRST_61,
    FIRST_64,
    FIRST_65,
    FIRST_68,
    FIRST_518,
    FIRST_632,
    UP_TO_612,
    before,
    dated,
)

# The first releases with each base switch, of mainline and of stable series.
BASE_DATES = {
    "long_lines_marked": "6.1.74 6.6.13 6.7",
    "ids_reused": "6.2",
    "array_length_of_field": "6.1.12 6.2",
    "long-record-stops-buffer": "6.1.69 6.6.8 6.7",
    "filter-odd-size-oops": "6.1",
    "tracefs-root-mode": "6.12.90 6.18.30 7.0.7 7.1",
    "eventfs-long-name-hangs": "6.6.18 6.7",
    "tracefs-mount-options": "6.11.8 6.12",
    "perf-program-runs-twice": "6.10.7 6.11",
    "tracefs-inode-leak": "6.6.34 6.9.5 6.10",
    "long_values_as_symbols": "6.15",
    "unprintable_text_as_hex": "6.19",
    "directories_of_any_name": "6.6.18 6.7.6 6.8",
    "listing_ends_with_einval": "7.0.10 7.1",
    "bpf_descriptor_suffices": "5.19",
    "bpf_log_without_buffer": "6.4",
    "iovecs_walked": "6.4",
    "bpf_attributes_before_rights": "6.4.10 6.5",
    "bpf_license_read_last": "6.5",
    "probes_deleted_by_system": "6.0",
    "remount_keeps_mode": "5.19.9 6.0",
    "buffers_reset_with_events": "6.0.12 6.1",
    "percent_and_graph": "6.1.23 6.2",
    "value_modifiers_refused": "6.1.23 6.2.8 6.3",
    "percent_and_graph_kept": "6.1.189 6.12.111 7.2.7 7.3",
    "functions_in_filters": "6.3",
    "eprobe_conditions": "6.1",
    "eprobe_fields_parsed": "6.5",
    "reading_histogram_busy": "6.1.40 6.4.5 6.5",
    "enable_file_holds_instance": "6.1.55 6.5.5 6.6",
    "synthetic_numbers_printed": "6.5.5 6.6",
    "cpumasks_typed": "6.6",
    "deleted_files_refused": "6.6.46 6.10.5 6.11",
    "processor_sets": "6.6",
    "empty_cpumask_refused": "6.1.123 6.6.69 6.12.8 6.13",
    "first_period_counted": "6.1.120 6.6.64 6.11.11 6.12.2 6.13",
    "eprobe_system_matched": "6.1.183 6.12.101 7.2",
    "whole_pattern_compared": "6.1.183 6.12.103 7.2",
    "raw_data_if_asked": "6.6.76 6.12.13 6.13.2 6.14",
}


# Releases that have the same switches.
SAME = [
    ("rfc-v1", {"perf_sink", "bpf_programs_run"}),
    # An empty payload was recorded until a later commit broke it.
    ("first-commit", {"empty_payload"}),
    ("merge-window", FIRST_518 - {"bpf_iter_ignored"} | {"bpf_programs_run"}),
    ("5.18-rc1 5.18 byte-status 6.0.19", FIRST_518),
    ("bit-status 6.1.12 6.1.13 6.2.14 6.3.1", FIRST_61),
    ("6.1.28 6.1.39 6.2.15 6.3.2", FIRST_632),
    ("6.1.192", FIRST_632 | BACKPORTED_TO_61),
    ("6.4 6.4.4", FIRST_64),
    ("6.4.5 6.4.16 6.5 6.6 6.6.17 6.6.18 6.6.32", FIRST_65),
    ("6.7", FIRST_65 | {"persist"}),
    ("6.8 6.8.11", FIRST_68),
    ("6.6.33 6.8.12", FIRST_68 | {"unspaced_fields_match"}),
    ("6.9", FIRST_68 | {"multi_format"}),
    # 6.13 is without the backport, however many sublevels it has.
    ("6.9.3 6.10 6.12 6.12.96 6.13.200 6.14 6.15 6.18 6.19 7.0.9 7.0.10 7.1", UP_TO_612),
    ("6.12.97 6.12.117-uevt 7.2-rc1 7.2 7.3", UP_TO_612 | {"deferred_release"}),
]


@pytest.mark.parametrize(
    ("release", "switches"),
    [(release, switches) for releases, switches in SAME for release in releases.split()],
)
def test_switches_of_releases(release: str, switches: set[str]) -> None:
    assert dated(profile_for(release)) == switches


def test_dates_of_base_switches() -> None:
    fixed = {bug.name for bug in BUGS if bug.since is not None}
    assert BASE_DATES.keys() == {switch.name for switch in BASE} | fixed
    for switch, dates in BASE_DATES.items():
        for since in dates.split():
            assert not profile_for("6.12", base=before(since)).has(switch), (switch, since)
            assert profile_for("5.18", base=since).has(switch), (switch, since)


@pytest.mark.parametrize(
    ("switch", "last", "since"),
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
def test_switches_before_the_mistake(switch: str, last: str, since: str) -> None:
    assert profile_for(last).has(switch)
    assert not profile_for(since).has(switch)


def test_the_newest_release_has_every_released_switch() -> None:
    released = {switch.name: switch.since for switch in CHANGES if switch.since is not None}
    newest = ".".join(map(str, max(released.values())))
    assert profile_for(newest).switches >= set(released)
    assert {each.name for each in CHANGES} - set(released) == {
        "two_status_pages",
        "bpf_programs_run",
    }


def test_sentences_have_no_markup_but_code() -> None:
    """Markdown of a report shows them as they are."""
    texts = {each.name: re.sub(r"`[^`]*`", "", each.says) for each in SWITCHES}
    assert [name for name, text in texts.items() if re.search(r"[<>|\\]", text)] == []

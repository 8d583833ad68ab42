"""Dated switches: every change of behaviour user space can see, and where it landed.

A switch is on for a release when the release is at or after ``since``, or belongs to a
stable series named in ``backports`` and has at least that sublevel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Whose code a switch dates: user_events itself or the generic tracing code."""

    USER_EVENTS = "user_events"
    BASE = "base"


@dataclass(frozen=True, slots=True)
class Switch:
    """One dated behaviour.

    ``since`` is the first mainline release as (major, minor), None for what no release does
    but a variant of ours, or what was merged and removed again; ``backports`` maps a stable
    series to the first sublevel that has it; ``commit`` is the title of the commit.
    """

    name: str
    says: str
    commit: str
    since: tuple[int, int] | None
    backports: Mapping[tuple[int, int], int] = field(default_factory=dict)
    kind: Kind = Kind.USER_EVENTS


# What came on before 5.18: between the first version of user_events that was merged, which
# never was a release of its own, and the first release.
SWITCHES: tuple[Switch, ...] = (
    Switch(
        "perf_sink",
        "perf listens to events: they say so, and it gets their records",
        "user_events: Add basic perf and eBPF support",
        (5, 18),
    ),
    Switch(
        "print_fmt_generated",
        "`format` ends with a print fmt made from the fields, not with an empty one",
        "user_events: Add print_fmt generation support for basic types",
        (5, 18),
    ),
    Switch(
        "deletion_arguments_matched",
        "deletion through dynamic_events compares the fields where some are given",
        "user_events: Handle matching arguments from dyn_events",
        (5, 18),
    ),
    Switch(
        "unreadable_payload_refused",
        "a payload that cannot be read whole fails with EFAULT instead of being cut off",
        "user_events: Optimize writing events by only copying data once",
        (5, 18),
    ),
    Switch(
        "payload_size_checked",
        "a payload shorter than the fields of its event fails with EINVAL",
        "user_events: Validate user payloads for size and null termination",
        (5, 18),
    ),
    Switch(
        "dynamic_fields_validated",
        "a dynamic field that leaves its record, or a string without NUL, fails with EFAULT",
        "user_events: Validate user payloads for size and null termination",
        (5, 18),
    ),
    Switch(
        "events_made_as_root",
        "an event has its directory below events/ whoever made it",
        "user_events: Add trace event call as root for low permission cases",
        (5, 18),
    ),
    Switch(
        "bpf_iter_ignored",
        "user_events_status does not show the text flag BPF_ITER, which means nothing",
        "tracing/user_events: Remove eBPF interfaces",
        (5, 18),
    ),
    Switch(
        "strings_formatted_safely",
        "a percent sign in a field's text is compared like any other character",
        "tracing/user_events: Ensure user provided strings are safely formatted",
        (6, 1),
    ),
    Switch(
        "negative_index_refused",
        "a write with a negative index fails with EINVAL instead of reading out of bounds",
        "tracing/user_events: Ensure write index cannot be negative",
        (6, 4),
        {(6, 1): 28, (6, 3): 2},
    ),
    Switch(
        "ebadf_when_disabled",
        "a write to an event nobody listens to fails with EBADF instead of succeeding",
        "tracing/user_events: Fix incorrect return value for writing operation when events "
        "are disabled",
        (6, 5),
        {(6, 1): 40, (6, 4): 5},
    ),
    Switch(
        "struct_size_matched",
        "re-registration and deletion by arguments compare the size of a struct field",
        "tracing/user_events: Fix struct arg size match check",
        (6, 5),
        {(6, 1): 40, (6, 4): 5},
    ),
    Switch(
        "arguments_matched",
        "registering an existing name with other fields fails with EADDRINUSE",
        "tracing/user_events: Prevent same name but different args event",
        (6, 5),
    ),
    Switch(
        "null_arguments_matched",
        "deleting by name without arguments matches only an event without fields",
        "tracing/user_events: Handle matching arguments that is null from dyn_events",
        (6, 5),
    ),
    Switch(
        "empty_payload",
        "a write without payload to an event without fields is recorded",
        "tracing/user_events: Fix the incorrect trace record for empty arguments events",
        (6, 5),
    ),
    Switch(
        "auto_delete",
        "an event goes away by itself with its last reference",
        "tracing/user_events: Add auto cleanup and future persist flag",
        (6, 5),
    ),
    Switch(
        "text_flags_refused",
        "a colon in the name part of a registration string is refused with EINVAL",
        "tracing/user_events: Add auto cleanup and future persist flag",
        (6, 5),
    ),
    Switch(
        "persist",
        "USER_EVENT_REG_PERSIST is accepted from a task with CAP_PERFMON or CAP_SYS_ADMIN",
        "tracing/user_events: Allow events to persist for perfmon_capable users",
        (6, 7),
        {(6, 6): 33},
    ),
    Switch(
        "multi_format",
        "USER_EVENT_REG_MULTI_FORMAT lets one name have several formats",
        "tracing/user_events: Introduce multi-format events",
        (6, 9),
    ),
    Switch(
        "unspaced_fields_match",
        "'a;b' and 'a; b' are the same fields when a name is registered again",
        "tracing/user_events: Fix non-spaced field matching",
        (6, 10),
        {(6, 6): 33, (6, 8): 12, (6, 9): 3},
    ),
    Switch(
        "deferred_release",
        "unregistering drops the reference to the event after an RCU grace period",
        "tracing/user_events: Fix use-after-free in user_event_mm_dup()",
        (7, 2),
        {(6, 12): 97},
    ),
    Switch(
        "bpf_programs_run",
        "BPF programs attached to an event run on what is written, with a user_bpf_context",
        "no release: merged for 5.18, and out again before -rc1 with tracing/user_events: "
        "Remove eBPF interfaces",
        None,
    ),
    Switch(
        "two_status_pages",
        "the status page is two pages long and has room for 65535 events",
        "no release: a variant of ours that tells a page from the length of the mapping",
        None,
    ),
    Switch(
        "ids_reused",
        "a new event gets the lowest id that is free, not the next that was never given out",
        "tracing: Optimize event type allocation with IDA",
        (6, 2),
        kind=Kind.BASE,
    ),
    Switch(
        "array_length_of_field",
        "`format` shows the length of an array from a number of its own, not from its type",
        "tracing: Fix TASK_COMM_LEN in trace event format file",
        (6, 2),
        {(6, 1): 13},
        kind=Kind.BASE,
    ),
    Switch(
        "long_records_kept",
        "a record of 4057 to 4064 payload bytes is recorded whatever the time since the last",
        "(commit not identified: 5.19 lacks it, 6.1.192 has it)",
        (6, 1),
        kind=Kind.BASE,
    ),
    Switch(
        "fields_printed_in_order",
        "trace text shows the fields in the order of their definition, not last first",
        "tracing: Modify print_fields() for fields output order",
        (6, 5),
        kind=Kind.BASE,
    ),
    Switch(
        "long_values_as_symbols",
        "trace text shows a 64-bit value that is an address of the kernel as a symbol",
        "tracing: Show function names when possible when listing fields",
        (6, 15),
        kind=Kind.BASE,
    ),
    Switch(
        "unprintable_text_as_hex",
        "trace text shows a dynamic string with unprintable bytes as dots and hex digits",
        "tracing: Check for printable characters when printing field dyn strings",
        (6, 19),
        kind=Kind.BASE,
    ),
    Switch(
        "directories_of_any_name",
        "events/ has a directory for an event of any name, and lists what no directory can hold",
        "eventfs: Do not create dentries nor inodes in iterate_shared",
        (6, 8),
        {(6, 6): 18, (6, 7): 6},
        kind=Kind.BASE,
    ),
    Switch(
        "listing_ends_with_einval",
        "a name that no directory can hold ends the listing of events/ with EINVAL, not with EIO",
        "eventfs: Simplify code using guard()s",
        (7, 1),
        # As what "eventfs: Use list_add_tail_rcu()" needed; 6.12 and 6.18 got that without it.
        {(7, 0): 10},
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_descriptor_suffices",
        "an ordinary user's bpf(2) reaches the elements of a map whose descriptor it has",
        "bpf: refine kernel.unprivileged_bpf_disabled behaviour",
        (5, 19),
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_log_without_buffer",
        "the verifier's log may have any size, and a level without a buffer",
        "bpf: Relax log_buf NULL conditions when log_level>0 is requested",
        (6, 4),
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_attributes_before_rights",
        "bpf(2) says what is wrong with its attributes before that the rights are missing",
        "bpf: move unprivileged checks into map_create() and bpf_prog_load()",
        (6, 5),
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_license_read_last",
        "a wrong number of instructions is refused before the license is read",
        "bpf: keep BPF_PROG_LOAD permission checks clear of validations",
        (6, 5),
        kind=Kind.BASE,
    ),
)

BY_NAME: Mapping[str, Switch] = {switch.name: switch for switch in SWITCHES}

# What follows from the switches and cases may ask for like for one.
DERIVED: Mapping[str, str] = {
    "lasting_events": "dynamic_events creates events, which stay until they are deleted",
    "remote_enable": "a bit in memory of the program's own says whether anybody listens",
    "status_page": "a page mapped from user_events_status says whether anybody listens",
}

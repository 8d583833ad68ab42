"""Dated switches: changes of behaviour that user space can see, and where they landed.

A switch is on in releases from ``since``, and in stable series of ``backports`` from a sublevel.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.abi.base_switches import BASE
from conformance.abi.bugs import BUGS
from conformance.abi.switch import Switch

# Switches before 5.18 date changes between the first commit and the first release.
CHANGES: tuple[Switch, ...] = (
    Switch(
        "perf_sink",
        "perf attaches to events: their status shows perf, and perf gets their records",
        "user_events: Add basic perf and eBPF support",
        (5, 18),
    ),
    Switch(
        "print_fmt_generated",
        "`format` ends with a print fmt generated from the fields, not with an empty one",
        "user_events: Add print_fmt generation support for basic types",
        (5, 18),
    ),
    Switch(
        "deletion_arguments_matched",
        "deletion through dynamic_events compares the fields, if any are given",
        "user_events: Handle matching arguments from dyn_events",
        (5, 18),
    ),
    Switch(
        "unreadable_payload_refused",
        "a payload that faults fails with EFAULT instead of being truncated",
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
        "a dynamic field outside of its record, or a string without NUL, fails with EFAULT",
        "user_events: Validate user payloads for size and null termination",
        (5, 18),
    ),
    Switch(
        "events_made_as_root",
        "an event created by any user has its directory in events/",
        "user_events: Add trace event call as root for low permission cases",
        (5, 18),
    ),
    Switch(
        "bpf_iter_ignored",
        "user_events_status does not show the text flag BPF_ITER, which has no effect",
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
        {(6, 1): 28, (6, 2): 15, (6, 3): 2},
    ),
    Switch(
        "ebadf_when_disabled",
        "a write to a disabled event fails with EBADF instead of succeeding",
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
        (6, 4),
    ),
    Switch(
        "null_arguments_matched",
        "deleting by name without arguments matches only an event without fields",
        "tracing/user_events: Handle matching arguments that is null from dyn_events",
        (6, 4),
    ),
    Switch(
        "empty_payload",
        "a write without payload to an event without fields is recorded",
        "tracing/user_events: Fix the incorrect trace record for empty arguments events",
        (6, 4),
    ),
    Switch(
        "auto_delete",
        "an event is deleted with its last reference",
        "tracing/user_events: Add auto cleanup and future persist flag",
        (6, 4),
    ),
    Switch(
        "text_flags_refused",
        "a colon in the name part of a registration string is refused with EINVAL",
        "tracing/user_events: Add auto cleanup and future persist flag",
        (6, 4),
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
        "USER_EVENT_REG_MULTI_FORMAT allows several formats of one name",
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
        {(6, 6): 148, (6, 12): 97, (6, 18): 40, (7, 1): 5},
    ),
    Switch(
        "bpf_programs_run",
        "BPF programs attached to an event run on writes, with a user_bpf_context",
        "no release: merged for 5.18 and removed before -rc1 by tracing/user_events: "
        "Remove eBPF interfaces",
        None,
    ),
    Switch(
        "two_status_pages",
        "the status page is two pages long and has room for 65535 events",
        "no release: a catalog variant that selects the page by the length of the mapping",
        None,
    ),
)

SWITCHES = CHANGES + BASE + BUGS

BY_NAME: Mapping[str, Switch] = {switch.name: switch for switch in SWITCHES}

# Behaviours derived from switches, which cases query like switches.
DERIVED: Mapping[str, str] = {
    "lasting_events": "dynamic_events creates events, which persist until they are deleted",
    "remote_enable": "a bit in memory of the program shows whether the event is enabled",
    "status_page": "a page mapped from user_events_status shows whether the event is enabled",
}

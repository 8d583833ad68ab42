"""Dated switches: changes of behaviour that user space can see, and where they landed.

A switch is on in releases from ``since``, and in stable series of ``backports`` from a sublevel.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.abi.bugs import BUGS
from conformance.abi.switch import Kind, Switch

# Switches before 5.18 date changes between the first commit and the first release.
_CHANGES: tuple[Switch, ...] = (
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
        {(6, 1): 28, (6, 3): 2},
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
        "an event is deleted with its last reference",
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
        {(6, 12): 97},
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
    Switch(
        "ids_reused",
        "a new event gets the lowest free id, not the next unused one",
        "tracing: Optimize event type allocation with IDA",
        (6, 2),
        kind=Kind.BASE,
    ),
    Switch(
        "array_length_of_field",
        "`format` takes the length of an array from the field, not from the text of its type",
        "tracing: Fix TASK_COMM_LEN in trace event format file",
        (6, 2),
        {(6, 1): 13},
        kind=Kind.BASE,
    ),
    Switch(
        "long_records_kept",
        "a record of 4057 to 4064 payload bytes fits, with or without a time extend",
        "(commit not identified: 5.19 lacks it, 6.1.192 has it)",
        (6, 1),
        kind=Kind.BASE,
    ),
    Switch(
        "fields_printed_in_order",
        "trace output shows the fields in order of definition, not last first",
        "tracing: Modify print_fields() for fields output order",
        (6, 5),
        kind=Kind.BASE,
    ),
    Switch(
        "long_values_as_symbols",
        "trace output shows a 64-bit value that is a kernel address as a symbol",
        "tracing: Show function names when possible when listing fields",
        (6, 15),
        kind=Kind.BASE,
    ),
    Switch(
        "unprintable_text_as_hex",
        "trace output shows a dynamic string with unprintable bytes as dots and hex digits",
        "tracing: Check for printable characters when printing field dyn strings",
        (6, 19),
        kind=Kind.BASE,
    ),
    Switch(
        "directories_of_any_name",
        "events/ has a directory for every event name, even for one that is no valid file name",
        "eventfs: Do not create dentries nor inodes in iterate_shared",
        (6, 8),
        {(6, 6): 18, (6, 7): 6},
        kind=Kind.BASE,
    ),
    Switch(
        "listing_ends_with_einval",
        "an invalid file name ends the listing of events/ with EINVAL, not with EIO",
        "eventfs: Simplify code using guard()s",
        (7, 1),
        # Backported to 7.0 as a dependency of "eventfs: Use list_add_tail_rcu()"; 6.12 and 6.18 got
        # that commit without it.
        {(7, 0): 10},
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_descriptor_suffices",
        "an unprivileged bpf(2) accesses the elements of a map through its descriptor",
        "bpf: refine kernel.unprivileged_bpf_disabled behaviour",
        (5, 19),
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_log_without_buffer",
        "the verifier log may have any size, and a log level needs no buffer",
        "bpf: Relax log_buf NULL conditions when log_level>0 is requested",
        (6, 4),
        kind=Kind.BASE,
    ),
    Switch(
        "bpf_attributes_before_rights",
        "bpf(2) checks its attributes before the capabilities",
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

SWITCHES = _CHANGES + BUGS

BY_NAME: Mapping[str, Switch] = {switch.name: switch for switch in SWITCHES}

# Behaviours derived from switches, which cases query like switches.
DERIVED: Mapping[str, str] = {
    "lasting_events": "dynamic_events creates events, which persist until they are deleted",
    "remote_enable": "a bit in memory of the program shows whether the event is enabled",
    "status_page": "a page mapped from user_events_status shows whether the event is enabled",
}

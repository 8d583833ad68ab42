"""Dated switches of the code below user_events: tracefs, filters, histograms, perf, BPF.

They follow from the release that runs, not from the ABI that it is judged by.
"""

from __future__ import annotations

from functools import partial

from conformance.abi.switch import Kind, Switch

_base = partial(Switch, kind=Kind.BASE)

BASE: tuple[Switch, ...] = (
    _base(
        "ids_reused",
        "a new event gets the lowest free id, not the next unused one",
        "tracing: Optimize event type allocation with IDA",
        (6, 2),
    ),
    _base(
        "array_length_of_field",
        "`format` takes the length of an array from the field, not from the text of its type",
        "tracing: Fix TASK_COMM_LEN in trace event format file",
        (6, 2),
        {(6, 1): 12},
    ),
    _base(
        "long_values_as_symbols",
        "trace output shows a 64-bit value that is a kernel address as a symbol",
        "tracing: Show function names when possible when listing fields",
        (6, 15),
    ),
    _base(
        "long_lines_marked",
        "`trace` shows [LINE TOO BIG] where the text of a record does not fit",
        "tracing: Have large events show up as '[LINE TOO BIG]' instead of nothing",
        (6, 7),
        {(6, 1): 74, (6, 6): 13},
    ),
    _base(
        "unprintable_text_as_hex",
        "trace output shows a dynamic string with unprintable bytes as dots and hex digits",
        "tracing: Check for printable characters when printing field dyn strings",
        (6, 19),
    ),
    _base(
        "directories_of_any_name",
        "events/ has a directory for every event name, even for one that is no valid file name",
        "eventfs: Do not create dentries nor inodes in iterate_shared",
        (6, 8),
        {(6, 6): 18, (6, 7): 6},
    ),
    _base(
        "listing_ends_with_einval",
        "an invalid file name ends the listing of events/ with EINVAL, not with EIO",
        "eventfs: Simplify code using guard()s",
        (7, 1),
        # Backported to 7.0 as a dependency of "eventfs: Use list_add_tail_rcu()"; 6.12 and 6.18 got
        # that commit without it.
        {(7, 0): 10},
    ),
    _base(
        "bpf_descriptor_suffices",
        "an unprivileged bpf(2) accesses the elements of a map through its descriptor",
        "bpf: refine kernel.unprivileged_bpf_disabled behaviour",
        (5, 19),
    ),
    _base(
        "bpf_log_without_buffer",
        "the verifier log may have any size, and a log level needs no buffer",
        "bpf: Relax log_buf NULL conditions when log_level>0 is requested",
        (6, 4),
    ),
    _base(
        "iovecs_walked",
        "an iovec with a negative length fails with EINVAL, even if the next cannot be read",
        "iov: improve copy_iovec_from_user() code generation",
        (6, 4),
    ),
    _base(
        "bpf_attributes_before_rights",
        "bpf(2) checks its attributes before the capabilities",
        "bpf: move unprivileged checks into map_create() and bpf_prog_load()",
        (6, 5),
        {(6, 4): 10},
    ),
    _base(
        "bpf_license_read_last",
        "a wrong number of instructions is refused before the license is read",
        "bpf: keep BPF_PROG_LOAD permission checks clear of validations",
        (6, 5),
    ),
    _base(
        "probes_deleted_by_system",
        "`-:SYSTEM/` without a name deletes the probes of a system and fails with ENOENT if there "
        "are none; before, with EINVAL",
        "tracing: Auto generate event name when creating a group of events",
        (6, 0),
    ),
    _base(
        "remount_keeps_mode",
        "mounting tracefs again without options leaves mode and owner of its directory alone",
        "tracefs: Only clobber mode/uid/gid on remount if asked",
        (6, 0),
        {(5, 19): 9},
    ),
    _base(
        "buffers_reset_with_events",
        "deleting through dynamic_events empties the buffers that have recorded a deleted event",
        "tracing: Free buffers when a used dynamic event is removed",
        (6, 1),
        {(6, 0): 12},
    ),
    _base(
        "percent_and_graph",
        "values of histograms have the modifiers .percent and .graph",
        "tracing: Add .percent suffix option to histogram values",
        (6, 2),
        {(6, 1): 23},
    ),
    _base(
        "value_modifiers_refused",
        "values and variables of histograms refuse .log2 and .buckets",
        "tracing: Do not let histogram values have some modifiers",
        (6, 3),
        {(6, 1): 23, (6, 2): 8},
    ),
    _base(
        "percent_and_graph_kept",
        "values of histograms that refuse other modifiers accept .percent and .graph",
        "tracing: Let histogram values keep the percent and graph modifiers",
        (7, 3),
        {(6, 1): 189, (6, 6): 158, (6, 12): 111, (7, 2): 7},
    ),
    _base(
        "functions_in_filters",
        "filters compare an 8-byte field with the name of a function",
        "tracing: Add a way to filter function addresses to function names",
        (6, 3),
    ),
    _base(
        "eprobe_conditions",
        "an eprobe takes a condition, not only arguments",
        "tracing/eprobe: Add eprobe filter support",
        (6, 1),
    ),
    _base(
        "eprobe_fields_parsed",
        "an eprobe on a field that its event does not have fails with EINVAL, not with ENOENT",
        "tracing/probes: Move event parameter fetching code to common parser",
        (6, 5),
    ),
    _base(
        "reading_histogram_busy",
        "a histogram that reads a variable of another cannot be removed while its own is read",
        "tracing/histograms: Add histograms to hist_vars if they have referenced variables",
        (6, 5),
        {(6, 1): 40, (6, 4): 5},
    ),
    _base(
        "enable_file_holds_instance",
        "an instance is busy while the `enable` or `filter` file of one of its events is open",
        "tracing: Increase trace array ref count on enable and filter files",
        (6, 6),
        {(6, 1): 55, (6, 5): 5},
    ),
    _base(
        "synthetic_numbers_printed",
        "trace output shows a 64-bit field of a synthetic event, not its address",
        "tracing/synthetic: Print out u64 values properly",
        (6, 6),
        {(6, 5): 5},
        # "tracing/synthetic: Use union instead of casts".
        introduced=(6, 5),
        introduced_stable={(6, 4): 13},
    ),
    _base(
        "cpumasks_typed",
        "trace output shows a dynamic cpumask_t as `<INVALID-TYPE>`, not as bytes",
        "tracing/filters: Enable filtering a cpumask field by another cpumask",
        (6, 6),
    ),
    _base(
        "deleted_files_refused",
        "an open `format` of a deleted event fails with ENODEV instead of showing freed memory",
        "tracing: Have format file honor EVENT_FILE_FL_FREED",
        (6, 11),
        {(6, 6): 46, (6, 10): 5},
        # "tracing: Have trace_event_file have ref counters"
        introduced=(6, 6, 1),
        introduced_stable={(6, 1): 64, (6, 5): 11},
    ),
    _base(
        "processor_sets",
        "filters compare a number with a CPU set",
        "tracing/filters: Enable filtering a scalar field by a cpumask",
        (6, 6),
    ),
    _base(
        "empty_cpumask_refused",
        "an empty write to tracing_cpumask fails with EINVAL",
        "tracing: Prevent bad count for tracing_cpumask_write",
        (6, 13),
        {(6, 1): 123, (6, 6): 69, (6, 12): 8},
    ),
    _base(
        "first_period_counted",
        "the first sample of a perf event comes after its period, not with the first record",
        "trace/trace_event_perf: remove duplicate samples on the first tracepoint event",
        (6, 13),
        {(6, 1): 120, (6, 6): 64, (6, 11): 11, (6, 12): 2},
    ),
    _base(
        "eprobe_system_matched",
        "deleting an eprobe compares the whole system of its event, not only its beginning",
        "tracing/eprobe: Fix exact system name matching in eprobe_dyn_event_match()",
        (7, 2),
        {(6, 1): 183, (6, 12): 101},
    ),
    _base(
        "whole_pattern_compared",
        "a filter on char[N] compares all of a pattern that is longer than the field",
        "tracing/filters: Fix false positive match in regex_match_full()",
        (7, 2),
        {(6, 1): 183, (6, 6): 151, (6, 12): 103},
    ),
    _base(
        "raw_data_if_asked",
        "the raw record adds to the size only of samples that contain it",
        "perf/core: Save raw sample data conditionally based on sample type",
        (6, 14),
        {(6, 6): 76, (6, 12): 13, (6, 13): 2},
        # "perf/core: Add perf_sample_save_raw_data() helper"
        introduced=(6, 3),
    ),
)

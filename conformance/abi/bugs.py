"""Known bugs of the kernel, as dated switches: docs/findings.md describes each under its id.

A kernel with a known bug is not failed for it, and a kernel without it passes: the model and the
cases know both answers.
"""

from __future__ import annotations

from functools import partial

from conformance.abi.switch import Kind, Switch

# Of user_events, and of the code below it.  ``commit`` is the title of the fix, ``since`` the first
# mainline release with it.
_bug = partial(Switch, bug=True)
_base_bug = partial(Switch, bug=True, kind=Kind.BASE)

BUGS: tuple[Switch, ...] = (
    _base_bug(
        "format-array-length",
        "`format` does not show the length of an array",
        # With "tracing: Fix TASK_COMM_LEN in trace event format file".
        introduced=(6, 2),
        introduced_stable={(6, 1): 12},
    ),
    _base_bug(
        "format-array-leak",
        "`format` shows uninitialised memory as the length of an array",
        # With the same change.
        introduced=(6, 2),
        introduced_stable={(6, 1): 12},
    ),
    _bug(
        "eprobe-event-freed",
        "an event is deleted while an eprobe still refers to it",
    ),
    _base_bug(
        "eprobe-two-instances",
        "an eprobe enabled in a second instance records only in the first one",
    ),
    _bug(
        "enomem-for-bad-address",
        "registering an enable address that cannot be written fails with ENOMEM",
    ),
    _bug(
        "struct-size-errno",
        "the size of a struct of 2 GiB or more is returned as an errno",
    ),
    _bug(
        "unreg-reserved-before-copy",
        "unregistering checks the reserved members before the result of their copy",
    ),
    _bug(
        "overlapping-words",
        "one bit can be registered through two words",
    ),
    _bug(
        "event-name-slash",
        "an event name that is no file name hides later events from directory listings",
    ),
    _bug(
        "compat-ioctl",
        "ioctls of a 32-bit task fail with ENOTTY",
    ),
    _bug(
        "definition-differs-from-itself",
        "some definitions do not match their own text",
    ),
    _bug(
        "status-page-prot-none",
        # In releases that have the page: up to 6.3.
        "the status page is readable through a mapping without rights",
    ),
    _bug(
        "registration-of-a-thread",
        "a registration belongs to a thread, or a vfork child, and those created after it",
    ),
    _bug(
        "perf-warns-on-long-record",
        "a record that is too long for perf triggers a kernel warning",
        fingerprints=("warn:perf_trace_buf_alloc",),
    ),
    _bug(
        "status-reads-freed-event",
        "a line of user_events_status shows freed memory while its event is deleted",
        by_chance=True,
    ),
    _bug(
        "field-offset-wraps",
        "offsets of fields pass 2^31 and wrap, and readers of a record follow them",
    ),
    _bug(
        "struct-data-loc",
        "a struct type that contains __data_loc is a dynamic field that nothing validates",
    ),
    _bug(
        "empty-dynamic-string",
        "the byte before a dynamic string of length 0 decides whether it is accepted",
    ),
    _base_bug(
        "bpf-never-runs",
        "a BPF program attaches to an event and never runs",
    ),
    _base_bug(
        "eprobe-rel-loc",
        "an eprobe reads a __rel_loc string four bytes too early",
    ),
    _base_bug(
        "eprobe-sign",
        "an eprobe loses the sign of a byte",
        # With "kbuild: treat char as always unsigned".
        introduced=(6, 2),
    ),
    _base_bug(
        "filter-errno",
        "a filter that does not parse fails with EPERM, ENOENT or ESRCH",
    ),
    _base_bug(
        "filter-end-pattern",
        "the pattern `*text` is compared with the end of an array, not of the string in it",
    ),
    _base_bug(
        "filter-digit-pattern",
        "a filter pattern that starts with a digit is compared as plain text",
    ),
    _base_bug(
        "filter-odd-size",
        "a filter on a field of 3, 5 or more than 8 bytes is accepted and matches nothing",
    ),
    _base_bug(
        "filter-odd-size-oops",
        "a record whose filter compares a field of 3, 5 or more than 8 bytes calls a null pointer",
        commit="tracing/filter: Call filter predicate functions directly via a switch statement",
        since=(6, 1),
        fingerprints=("oops:filter_match_preds",),
    ),
    _base_bug(
        "long-record-stops-buffer",
        "a record of 4057 to 4064 payload bytes that needs a time extend disables its buffer",
        commit="ring-buffer: Fix writing to the buffer with max_data_size",
        since=(6, 7),
        backports={(6, 1): 69, (6, 6): 8},
    ),
    _base_bug(
        "tracefs-root-mode",
        "tracefs is mounted with mode 755, so that every user can enter it",
        # With "tracing: Fix tracefs mount options".
        introduced=(6, 11, 8),
        commit="tracefs: Fix default permissions not being applied on initial mount",
        since=(7, 1),
        backports={(6, 12): 90, (6, 18): 30, (7, 0): 7},
    ),
    _base_bug(
        "tracefs-mount-options",
        "mounting tracefs again ignores the mount options",
        # With "tracefs: Convert to new mount API".
        introduced=(6, 10),
        commit="tracing: Fix tracefs mount options",
        since=(6, 12),
        backports={(6, 11): 8},
    ),
    _base_bug(
        "tracefs-inode-leak",
        "tracefs never frees the inode of a file, and stays writable once an instance is removed",
        # With "tracefs: Reset permissions on remount if permissions are options".
        introduced=(6, 9),
        introduced_stable={(6, 6): 31, (6, 8): 10},
        commit="tracefs: Clear EVENT_INODE flag in tracefs_drop_inode()",
        since=(6, 10),
        backports={(6, 6): 34, (6, 9): 5},
    ),
    _base_bug(
        "eventfs-long-name-hangs",
        "looking up an event whose name exceeds 255 bytes never returns",
        introduced=(6, 6),
        commit="eventfs: Fix events beyond NAME_MAX blocking tasks",
        since=(6, 7),
        backports={(6, 6): 18},
        fingerprints=("hang:d_alloc_parallel",),
    ),
    _base_bug(
        "perf-program-runs-twice",
        "a BPF program of a tracing event also runs at each sample, with a context of another type",
        introduced=(6, 10),
        commit="perf/bpf: Don't call bpf_overflow_handler() for tracing events",
        since=(6, 11),
        backports={(6, 10): 7},
    ),
    _base_bug(
        "hist-signed",
        "a histogram shows signed keys as unsigned",
    ),
    _base_bug(
        "hist-string-key-cut",
        "a histogram drops the last character of a string that fills char[8], char[16] …",
    ),
    _base_bug(
        "hist-vars-pause",
        "a histogram with variables cannot be paused, continued or cleared",
    ),
    _base_bug(
        "hist-division",
        "histograms round up divisions by a constant",
    ),
    _base_bug(
        "hist-var-expression-cut",
        "a variable that is a sum reads as its first field in the same histogram",
    ),
    _base_bug(
        "synth-sign",
        "a synthetic event shows an s8 or s16 without its sign",
    ),
    _base_bug(
        "action-param-one-letter",
        "a histogram action refuses fields whose name has one letter",
    ),
    _base_bug(
        "system-filter-never-fails",
        "writing the filter of a system succeeds although no event takes it",
    ),
    _base_bug(
        "failed-delete-clears-buffers",
        "a deletion through dynamic_events that fails clears the trace buffers",
        # With "tracing: Free buffers when a used dynamic event is removed".
        introduced=(6, 1),
        introduced_stable={(6, 0): 12},
    ),
)

"""Known bugs of the kernel, as dated switches: docs/findings.md describes each under its id.

A kernel with a known bug is not failed for it, and a kernel without it passes: the model and the
cases know both answers.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.abi.switch import Kind, Switch


def _bug(
    id: str,
    symptom: str,
    *,
    kind: Kind = Kind.USER_EVENTS,
    introduced: tuple[int, ...] | None = None,
    introduced_stable: Mapping[tuple[int, int], int] | None = None,
    fix: str = "",
    fixed: tuple[int, int] | None = None,
    backports: Mapping[tuple[int, int], int] | None = None,
    fingerprints: tuple[str, ...] = (),
    by_chance: bool = False,
) -> Switch:
    """A bug; ``fix`` is the title of the commit, ``fixed`` the first mainline release with it.

    ``kind`` says whose code has the bug: that of user_events, or that of the booted base.
    ``fingerprints`` are the reports by which a warning, an oops or KASAN shows it.  One that shows
    ``by_chance`` is recognised by the model, in any program.
    """
    return Switch(
        id,
        symptom,
        fix,
        fixed,
        backports or {},
        kind=kind,
        bug=True,
        introduced=introduced,
        introduced_stable=introduced_stable or {},
        fingerprints=fingerprints,
        by_chance=by_chance,
    )


BUGS: tuple[Switch, ...] = (
    _bug(
        "format-array-length",
        "`format` does not show the length of an array",
        # With "tracing: Fix TASK_COMM_LEN in trace event format file".
        kind=Kind.BASE,
        introduced=(6, 2),
        introduced_stable={(6, 1): 12},
    ),
    _bug(
        "format-array-leak",
        "`format` shows uninitialised memory as the length of an array",
        # With the same change.
        kind=Kind.BASE,
        introduced=(6, 2),
        introduced_stable={(6, 1): 12},
    ),
    _bug(
        "eprobe-event-freed",
        "an event is deleted while an eprobe still refers to it",
    ),
    _bug(
        "eprobe-two-instances",
        "an eprobe enabled in a second instance records only in the first one",
        kind=Kind.BASE,
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
    _bug(
        "bpf-never-runs",
        "a BPF program attaches to an event and never runs",
        kind=Kind.BASE,
    ),
    _bug(
        "eprobe-rel-loc",
        "an eprobe reads a __rel_loc string four bytes too early",
        kind=Kind.BASE,
    ),
    _bug(
        "eprobe-sign",
        "an eprobe loses the sign of a byte",
        # With "kbuild: treat char as always unsigned".
        kind=Kind.BASE,
        introduced=(6, 2),
    ),
    _bug(
        "filter-errno",
        "a filter that does not parse fails with EPERM, ENOENT or ESRCH",
        kind=Kind.BASE,
    ),
    _bug(
        "filter-end-pattern",
        "the pattern `*text` is compared with the end of an array, not of the string in it",
        kind=Kind.BASE,
    ),
    _bug(
        "filter-digit-pattern",
        "a filter pattern that starts with a digit is compared as plain text",
        kind=Kind.BASE,
    ),
    _bug(
        "filter-odd-size",
        "a filter on a field of 3, 5 or more than 8 bytes is accepted and matches nothing",
        kind=Kind.BASE,
    ),
    _bug(
        "filter-odd-size-oops",
        "a record whose filter compares a field of 3, 5 or more than 8 bytes calls a null pointer",
        kind=Kind.BASE,
        fix="tracing/filter: Call filter predicate functions directly via a switch statement",
        fixed=(6, 1),
        fingerprints=("oops:filter_match_preds",),
    ),
    _bug(
        "long-record-stops-buffer",
        "a record of 4057 to 4064 payload bytes that needs a time extend disables its buffer",
        kind=Kind.BASE,
        fix="ring-buffer: Fix writing to the buffer with max_data_size",
        fixed=(6, 7),
        backports={(6, 1): 69, (6, 6): 8},
    ),
    _bug(
        "tracefs-root-mode",
        "tracefs is mounted with mode 755, so that every user can enter it",
        kind=Kind.BASE,
        # With "tracing: Fix tracefs mount options".
        introduced=(6, 11, 8),
        fix="tracefs: Fix default permissions not being applied on initial mount",
        fixed=(7, 1),
        backports={(6, 12): 90, (6, 18): 30, (7, 0): 7},
    ),
    _bug(
        "tracefs-mount-options",
        "mounting tracefs again ignores the mount options",
        kind=Kind.BASE,
        # With "tracefs: Convert to new mount API".
        introduced=(6, 10),
        fix="tracing: Fix tracefs mount options",
        fixed=(6, 12),
        backports={(6, 11): 8},
    ),
    _bug(
        "tracefs-inode-leak",
        "tracefs never frees the inode of a file, and stays writable once an instance is removed",
        kind=Kind.BASE,
        # With "tracefs: Reset permissions on remount if permissions are options".
        introduced=(6, 9),
        introduced_stable={(6, 6): 31, (6, 8): 10},
        fix="tracefs: Clear EVENT_INODE flag in tracefs_drop_inode()",
        fixed=(6, 10),
        backports={(6, 6): 34, (6, 9): 5},
    ),
    _bug(
        "eventfs-long-name-hangs",
        "looking up an event whose name exceeds 255 bytes never returns",
        kind=Kind.BASE,
        introduced=(6, 6),
        fix="eventfs: Fix events beyond NAME_MAX blocking tasks",
        fixed=(6, 7),
        backports={(6, 6): 18},
        fingerprints=("hang:d_alloc_parallel",),
    ),
    _bug(
        "perf-program-runs-twice",
        "a BPF program of a tracing event also runs at each sample, with a context of another type",
        kind=Kind.BASE,
        introduced=(6, 10),
        fix="perf/bpf: Don't call bpf_overflow_handler() for tracing events",
        fixed=(6, 11),
        backports={(6, 10): 7},
    ),
    _bug(
        "hist-signed",
        "a histogram shows signed keys as unsigned",
        kind=Kind.BASE,
    ),
    _bug(
        "hist-string-key-cut",
        "a histogram drops the last character of a string that fills char[8], char[16] …",
        kind=Kind.BASE,
    ),
    _bug(
        "hist-vars-pause",
        "a histogram with variables cannot be paused, continued or cleared",
        kind=Kind.BASE,
    ),
    _bug(
        "hist-division",
        "histograms round up divisions by a constant",
        kind=Kind.BASE,
    ),
    _bug(
        "hist-var-expression-cut",
        "a variable that is a sum reads as its first field in the same histogram",
        kind=Kind.BASE,
    ),
    _bug(
        "synth-sign",
        "a synthetic event shows an s8 or s16 without its sign",
        kind=Kind.BASE,
    ),
    _bug(
        "action-param-one-letter",
        "a histogram action refuses fields whose name has one letter",
        kind=Kind.BASE,
    ),
    _bug(
        "system-filter-never-fails",
        "writing the filter of a system succeeds although no event takes it",
        kind=Kind.BASE,
    ),
    _bug(
        "failed-delete-clears-buffers",
        "a deletion through dynamic_events that fails clears the trace buffers",
        # With "tracing: Free buffers when a used dynamic event is removed".
        kind=Kind.BASE,
        introduced=(6, 1),
        introduced_stable={(6, 0): 12},
    ),
)

"""Read and write back the settings of the running system that cases change."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from conformance.client.tracefs import MAXIMUM, ROOT
from conformance.model.state.events import DEFAULT_MAX_EVENTS
from conformance.session.here.occupancy import text

DEVKMSG = "/proc/sys/kernel/printk_devkmsg"
#: Settings whose text can be written back.
_SYSCTLS = (
    DEVKMSG,
    MAXIMUM,
    "/proc/sys/kernel/ftrace_enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
)
_TRACING = (
    *("tracing_on", "current_tracer", "tracing_cpumask", "trace_clock", "buffer_size_kb"),
    *("buffer_percent", "buffer_subbuf_size_kb", "saved_cmdlines_size", "tracing_thresh"),
)
#: Options that change what is recorded, and the text of records: those that are off by default.
_OFF = (
    *("bin", "fields", "hex", "latency-format", "raw", "record-tgid", "stacktrace"),
    *("userstacktrace", "verbose"),
)
_ON = ("context-info", "irq-info", "overwrite", "record-cmd")
# What cases expect, in the top instance and in others, which begin with its options.
_EXPECTED = {
    # Else at most ten marks in five seconds (printk.c: devkmsg_write).
    DEVKMSG: "on",
    MAXIMUM: str(DEFAULT_MAX_EVENTS),
    f"{ROOT}/tracing_on": "1",
    **dict.fromkeys((f"{ROOT}/options/{name}" for name in _OFF), "0"),
    **dict.fromkeys((f"{ROOT}/options/{name}" for name in _ON), "1"),
}
_CHOSEN = re.compile(r"\[(\S+)\]")


def expand_buffer() -> None:
    """Give the ring buffer the size that it gets with the first use of tracing.

    It cannot be undone, and changes nothing where tracing was used before (trace_events.c:
    ftrace_event_write, tracing_update_buffers).
    """
    with suppress(OSError):
        Path(f"{ROOT}/set_event").write_text("\n")


def read_settings() -> dict[str, str]:
    """The value of each setting that this kernel has, as it is written."""
    options: list[str] = []
    with suppress(OSError):
        options = sorted(map(str, Path(f"{ROOT}/options").iterdir()))
    files = (*_SYSCTLS, *(f"{ROOT}/{name}" for name in _TRACING), *options)
    return {path: setting(path) for path in files if Path(path).is_file()}


def expected(now: Mapping[str, str]) -> dict[str, str]:
    """The settings as cases expect them, of those that this kernel has."""
    return {path: _EXPECTED.get(path, value) for path, value in now.items()}


def setting(path: str) -> str:
    """The value of one setting, without what only explains it."""
    shown = text(path).strip()
    if path.endswith("/trace_clock") and (chosen := _CHOSEN.search(shown)):
        return chosen[1]
    return shown


def write_back(wanted: Mapping[str, str]) -> list[str]:
    """Write the settings that differ; what could not be restored, a line each."""
    failed = []
    for path, value in wanted.items():
        if (now := setting(path)) == value:
            continue
        why = ""
        try:
            Path(path).write_text(f"{value}\n")
        except OSError as error:
            why = f" ({error.strerror})"
        if setting(path) != value:
            failed.append(f"{path} was {value!r} and is {now!r}{why}")
    return failed


def read_attributes() -> dict[str, tuple[int, int, int]]:
    """Mode, owner and group of tracefs and of the files at its top."""
    found = {}
    with suppress(OSError):
        for path in (Path(ROOT), *sorted(Path(ROOT).iterdir())):
            shown = path.stat()
            found[str(path)] = (stat.S_IMODE(shown.st_mode), shown.st_uid, shown.st_gid)
    return found


def write_attributes(wanted: Mapping[str, tuple[int, int, int]]) -> list[str]:
    """Set the attributes that differ; what could not be restored, a line each."""
    failed = []
    now = read_attributes()
    for path, (mode, user, group) in wanted.items():
        if path in now and now[path] != (mode, user, group):
            try:
                os.chown(path, user, group)
                Path(path).chmod(mode)
            except OSError as error:
                failed.append(f"mode and owner of {path} ({error.strerror})")
    return failed

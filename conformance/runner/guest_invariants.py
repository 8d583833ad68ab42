"""What a guest's cases have in common and none of them may change for the next.

Events have a lifetime of their own (``conformance.runner.cleanup``).  This covers settings, mounts,
modules, taint.  A program of generic calls that runs between cases and is never compared with
the model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from conformance.client import tracefs
from conformance.ops import credentials, tracing
from conformance.ops import syscalls as op
from conformance.ops.encode.requests import Call, Request
from conformance.runner.cleanup import ACTOR
from conformance.runner.guest_executor import Channel

_LIMIT = 1 << 16
_FILES = (
    "/proc/sys/kernel/tainted",
    "/proc/modules",
    "/proc/self/mounts",
    "/proc/sys/kernel/ftrace_enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    f"{tracefs.ROOT}/current_tracer",
    f"{tracefs.ROOT}/kprobe_events",
    f"{tracefs.ROOT}/set_event_notrace_pid",
    f"{tracefs.ROOT}/set_event_pid",
    f"{tracefs.ROOT}/tracing_cpumask",
    f"{tracefs.ROOT}/uprobe_events",
    # Of events of the kernel's own cases enable few, and none for good.
    *(f"{tracefs.ROOT}/events/{system}/enable" for system in ("sched", "signal", "task")),
)
# A directory, whose names are what is looked at.
_INSTANCES = f"{tracefs.ROOT}/instances"
# Files whose mode and owner decide who may use user_events.
_GUARDED = (
    tracefs.ROOT,
    tracefs.DATA,
    tracefs.STATUS,
    tracefs.DYNAMIC_EVENTS,
    tracefs.TRACE,
    tracefs.TRACING_ON,
)
# What is told of them is no text of a file.
_NAMES = (*_FILES, _INSTANCES, *(f"the mode of {path}" for path in _GUARDED))
_CALLS: tuple[Call, ...] = (
    *(["slurp", path, _LIMIT] for path in _FILES),
    ["list", _INSTANCES],
    *(["status", path] for path in _GUARDED),
)
# Lets the buffer have the size that it gets when something is traced for the first time, and does
# nothing else (trace_events.c:ftrace_event_write, tracing_update_buffers).  Before 6.7 it would
# stay small for good where an instance is given another size before that
# (trace.c:__tracing_resize_ring_buffer): what cases find must not depend on who was first.
_EXPAND: Call = ["spill", f"{tracefs.ROOT}/set_event", b"\n".hex(), os.O_WRONLY]
#: What is asked of a new guest.
OPENING: Request = (ACTOR, (_EXPAND, *_CALLS))
# The first of them are what the kernel may change by itself, whatever a program does.
_ALWAYS = 1
# What programs may open for writing without reaching what other programs share.
_OWN = re.compile(
    rf"{tracefs.ROOT}/(?:events/(?:{tracefs.SYSTEM}|{tracefs.MULTI_SYSTEM})/.*"
    r"|user_events_data|user_events_status|user_events_mmap|dynamic_events|trace)"
)


class Surroundings:
    """How one guest is around its cases.  Raises what the channel raises."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._before = _told(channel.call(*OPENING)[1:])

    def accept(self) -> None:
        """From now on it may be as it is."""
        self._before = _told(self._channel.call(ACTOR, _CALLS))

    def calls(self, program: Iterable[op.Operation], *, passed: bool) -> list[Call]:
        """What to ask of ``ACTOR`` after a program, for ``changed``.

        Looking takes as long as a small case: of a program that ``passed``, and nothing of which
        reaches out, it is enough that the kernel says nothing.
        """
        if passed and not any(map(_reaches_out, program)):
            return list(_CALLS[:_ALWAYS])
        return list(_CALLS)

    def changed(self, results: Iterable[dict[str, Any]]) -> list[str]:
        """What is not as it was, a line each; such a guest serves no other case."""
        return [
            f"{what} was {_shown(self._before[what])} and is {_shown(after)}"
            for what, after in _told(results).items()
            if self._before[what] != after
        ]


def _told(results: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The files' texts, and modes; of what is not there, or cannot be read, the error.

    There may be fewer results than calls.
    """
    return dict(zip(_NAMES, map(_text, results), strict=False))


def _reaches_out(operation: op.Operation) -> bool:
    """Whether an operation may change what is not the program's own."""
    match operation:
        case op.WriteFile(path=path, flags=flags) | op.Open(path=path, flags=flags):
            return flags & os.O_ACCMODE != os.O_RDONLY and _OWN.fullmatch(path) is None
        case tracing.MakeDirectory() | tracing.RemoveDirectory() | tracing.WritePid():
            return True
    return isinstance(operation, credentials.Right)


def _text(result: dict[str, Any]) -> str:
    if result["errno"]:
        return f"error {result['errno']}"
    return bytes.fromhex(result["data"] or "").decode("utf-8", "replace")


def _shown(text: str) -> str:
    """The text, or the end of a long one: what is new is there."""
    lines = text.strip().splitlines()
    return repr("; ".join(lines[-2:]))

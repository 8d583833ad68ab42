"""Guest-wide state (sysctls, mounts, modes, modules, taint) that must be the same after every case.

Events and what is attached to them come and go with the cases (``conformance.runner.cleanup``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from conformance import ops
from conformance.client import tracefs
from conformance.ops import race
from conformance.ops.calls import Call, Request
from conformance.results.case_result import CaseResult, Evidence, Mismatch
from conformance.results.outcome import Blame, Outcome
from conformance.runner.guest import Channel
from conformance.runner.guest_setup import ACTOR
from conformance.runner.leftovers import SETTINGS

_LIMIT = 1 << 16
_TAINTED, _MODULES = "/proc/sys/kernel/tainted", "/proc/modules"
# What other programs change on a kernel that they use, too.
_OTHERS_CHANGE = frozenset({_TAINTED, _MODULES})
# Documentation/admin-guide/tainted-kernels.rst: bad page, died, warned, soft lockup.
_OF_KERNEL = 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14
_FILES = (
    _TAINTED,
    _MODULES,
    "/proc/self/mounts",
    *SETTINGS,
    f"{tracefs.ROOT}/kprobe_events",
    f"{tracefs.ROOT}/set_event_notrace_pid",
    f"{tracefs.ROOT}/set_event_pid",
    f"{tracefs.ROOT}/uprobe_events",
    # The only systems of the kernel's own events that cases enable.
    *(f"{tracefs.ROOT}/events/{system}/enable" for system in ("sched", "signal", "task")),
)
# A directory: its listing is compared.
_INSTANCES = f"{tracefs.ROOT}/instances"
#: Files whose mode and owner decide who may use user_events.
GUARDED = (
    tracefs.ROOT,
    tracefs.DATA,
    tracefs.STATUS,
    tracefs.DYNAMIC_EVENTS,
    tracefs.TRACE,
    tracefs.TRACING_ON,
)
_NAMES = (*_FILES, _INSTANCES, *(f"the mode of {path}" for path in GUARDED))
_CALLS: tuple[Call, ...] = (
    *(["slurp", path, _LIMIT] for path in _FILES),
    ["list", _INSTANCES],
    *(["status", path] for path in GUARDED),
)
# Expands the ring buffer to the size it gets with the first tracing, and does nothing else
# (trace_events.c:ftrace_event_write, tracing_update_buffers).  Before 6.7 the buffer stays small
# if an instance is resized first (trace.c:__tracing_resize_ring_buffer), and results would depend
# on the order of the cases.
_EXPAND: Call = ["spill", f"{tracefs.ROOT}/set_event", b"\n".hex(), os.O_WRONLY]
#: The request to a new guest.
OPENING: Request = (ACTOR, (_EXPAND, *_CALLS))
# Permission bits of users who are neither owner nor in the group.
_OTHERS = 0o007
# The kernel may change the first of them on its own, whatever a program does.
_ALWAYS = 1
# What no cleanup restores: a program that changes it is at fault.
_OF_PROGRAMS = _FILES[:3]
# Files that programs may open for writing without changing shared state.
_OWN = re.compile(
    rf"{tracefs.ROOT}/(?:events/(?:{tracefs.SYSTEM}|{tracefs.MULTI_SYSTEM})/.*"
    r"|user_events_data|user_events_status|user_events_mmap|dynamic_events|trace)"
)


class Change(Struct, frozen=True):
    """A difference from the state before: what, and its text before and after.

    ``by_kernel`` is whether the kernel is at fault: it changed what no program reached, or did not
    let the cleanup restore it.
    """

    what: str
    before: str
    after: str
    by_kernel: bool

    def __str__(self) -> str:
        return f"{self.what} was {self.before} and is {self.after}"


class GuestInvariants:
    """The state of one guest as it was before its first case.  Raises what the channel raises."""

    def __init__(self, channel: Channel, *, others: bool = False) -> None:
        """``others`` use the kernel, too, taint it and load modules."""
        self._channel = channel
        self._others = others
        self._before = self._texts(channel.call(*OPENING)[1:])

    def accept(self) -> None:
        """Take the present state as the one to keep."""
        self._before = self._texts(self._channel.call(ACTOR, _CALLS))

    @property
    def exposed(self) -> CaseResult | None:
        """The result if every user can open user_events_data in a new guest.

        No document promises that they cannot, so it is no case of level contract; yet it exposes
        all events to everybody.
        """
        mode = (self.attributes(tracefs.DATA) or (0,))[0]
        if not mode & _OTHERS:
            return None
        return CaseResult(
            id="rights.closed_to_others",
            surface="rights",
            tier="quick",
            outcome=Outcome.FAIL,
            blame=Blame.KERNEL,
            reason=f"every user can open user_events_data, whose mode is {mode:03o}",
            mismatches=(Mismatch(0, "guest", "no rights for others", f"{mode:03o}"),),
            evidence=Evidence(spec="trace_events_user.c:create_user_tracefs"),
        )

    def setting(self, path: str) -> str:
        """The text of a file of ``SETTINGS`` before the first case."""
        return self._before[path]

    def attributes(self, path: str) -> tuple[int, int, int] | None:
        """Permission bits, user and group of a file of ``GUARDED``; None where it is missing."""
        found = re.fullmatch(r"([0-7]+) (\d+):(\d+)", self._before[f"the mode of {path}"])
        return (int(found[1], 8) & 0o7777, int(found[2]), int(found[3])) if found else None

    def calls(self, program: Iterable[ops.Operation], *, passed: bool) -> list[Call]:
        """Calls by ``ACTOR`` after a program, whose results ``changed`` compares.

        Reading everything takes as long as a small case.  After a program that ``passed`` and
        wrote to nothing shared, the taint flags are enough.
        """
        steps = (step for operation in program for step in race.steps_of(operation))
        if passed and not any(map(_reaches_out, steps)):
            return list(_CALLS[:_ALWAYS])
        return list(_CALLS)

    def changed(self, results: Iterable[dict[str, Any]]) -> list[Change]:
        """Differences from the state before; such a guest is replaced."""
        return [
            Change(
                what,
                _shown(self._before[what]),
                _shown(after),
                by_kernel=what not in _OF_PROGRAMS,
            )
            for what, after in self._texts(results).items()
            if self._before[what] != after
        ]

    def _texts(self, results: Iterable[dict[str, Any]]) -> dict[str, str]:
        """Texts and modes by name; an error where a file cannot be read.  Results may be fewer."""
        found = dict(zip(_NAMES, map(_text, results), strict=False))
        if self._others:
            changing = _OTHERS_CHANGE & set(found)
            found |= {name: _without_others(name, found[name]) for name in changing}
        return found


def _without_others(name: str, text: str) -> str:
    """The part of a file that only a misbehaving kernel changes."""
    if name == _TAINTED and text.strip().isdigit():
        return f"{int(text) & _OF_KERNEL}\n"
    return ""


def _reaches_out(operation: ops.Operation) -> bool:
    """Whether an operation may change what is not the program's own."""
    match operation:
        case ops.WriteFile(path=path, flags=flags) | ops.Open(path=path, flags=flags):
            return flags & os.O_ACCMODE != os.O_RDONLY and _OWN.fullmatch(path) is None
    return operation.changes_guest


def _text(result: dict[str, Any]) -> str:
    if result["errno"]:
        return f"error {result['errno']}"
    return bytes.fromhex(result["data"] or "").decode("utf-8", "replace")


def _shown(text: str) -> str:
    """The text, or the last two lines of a long one: that is where new lines are."""
    lines = text.strip().splitlines()
    return repr("; ".join(lines[-2:]))

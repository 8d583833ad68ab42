"""What a guest's cases have in common and none of them may change for the next.

Beside events, which have a lifetime of their own (``conformance.leftovers``): settings, mounts,
modules, taint.  A program of generic calls that runs between cases and is never compared with
the model.
"""

from __future__ import annotations

from typing import Any

from conformance.leftovers import ACTOR
from conformance.sut import rights_calls, tracefs
from conformance.sut.calls import Call
from conformance.sut.guest import Channel

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


class Surroundings:
    """How one guest is around its cases.  Raises what the channel raises."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._before = self._look()

    def accept(self) -> None:
        """From now on it may be as it is."""
        self._before = self._look()

    def changed(self) -> list[str]:
        """What is not as it was, a line each; such a guest serves no other case."""
        now = self._look()
        return [
            f"{path} was {_shown(before)} and is {_shown(after)}"
            for path, before, after in zip(_NAMES, self._before, now, strict=True)
            if before != after
        ]

    def _look(self) -> list[str]:
        """The files' texts, then modes; of what is not there, or cannot be read, the error."""
        calls: list[Call] = [["slurp", path, _LIMIT] for path in _FILES]
        calls.append(["list", _INSTANCES])
        texts = len(calls)
        looks = [rights_calls.look_at(path) for path in _GUARDED]
        calls += [call for look in looks for call in look]
        results = iter(self._channel.call(ACTOR, calls))
        found = [_text(next(results)) for _ in range(texts)]
        return found + [_attributes([next(results) for _ in look]) for look in looks]


def _text(result: dict[str, Any]) -> str:
    if result["errno"]:
        return f"error {result['errno']}"
    return bytes.fromhex(result["data"] or "").decode("utf-8", "replace")


def _attributes(results: list[dict[str, Any]]) -> str:
    """Mode and owners that stat(2) told."""
    failed = next((each["errno"] for each in results if each["errno"]), 0)
    if failed:
        return f"error {failed}"
    mode, uid, gid = rights_calls.attributes(bytes.fromhex(results[-1]["data"]))
    return f"{mode:o} {uid}:{gid}"


def _shown(text: str) -> str:
    """The text, or the end of a long one: what is new is there."""
    lines = text.strip().splitlines()
    return repr("; ".join(lines[-2:]))

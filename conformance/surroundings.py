"""What a guest's cases have in common and none of them may change for the next.

Beside events, which have a lifetime of their own (``conformance.leftovers``): settings, mounts,
modules, taint.  A program of generic calls that runs between cases and is never compared with
the model.
"""

from __future__ import annotations

from typing import Any

from conformance.leftovers import ACTOR
from conformance.sut import tracefs
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
    f"{tracefs.ROOT}/set_event_pid",
    f"{tracefs.ROOT}/uprobe_events",
    # Of events of the kernel's own cases enable few, and none for good.
    *(f"{tracefs.ROOT}/events/{system}/enable" for system in ("sched", "signal", "task")),
)


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
            for path, before, after in zip(_FILES, self._before, now, strict=True)
            if before != after
        ]

    def _look(self) -> list[str]:
        """The files' texts; of one that is not there, or cannot be read, the error."""
        results = self._channel.call(ACTOR, [["slurp", path, _LIMIT] for path in _FILES])
        return list(map(_text, results))


def _text(result: dict[str, Any]) -> str:
    if result["errno"]:
        return f"error {result['errno']}"
    return bytes.fromhex(result["data"] or "").decode("utf-8", "replace")


def _shown(text: str) -> str:
    """The text, or the end of a long one: what is new is there."""
    lines = text.strip().splitlines()
    return repr("; ".join(lines[-2:]))

"""Remove events, probes, instances, triggers and filters that a run has left in the system.

A run begins only where there are none but the user events of others, so everything else is its own.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from conformance.abi import uapi
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, MULTI_SYSTEM, ROOT, SYSTEM, TRACING_ON
from conformance.runner.cleanup import removal_of
from conformance.session.here.occupancy import (
    attachments,
    instances,
    other_events,
    text,
    user_events,
)
from host.deadline import Deadline
from host.errors import DeadlineExpired

_PROBE = re.compile(r"^[a-z]\w*:(\S+)", re.MULTILINE)
#: Seconds for the kernel to drop references: RCU grace periods, and a busy machine.
_SECONDS = 20.0


def remove_leftovers(keep: Collection[str]) -> list[str]:
    """Remove everything but the user events to ``keep``; names what could not be removed."""
    deadline = Deadline(_SECONDS, "system without leftovers")
    _stop_tracing()
    with suppress(DeadlineExpired):
        while _left(keep):
            _remove(keep)
            deadline.pause(0.05)
    return _left(keep)


def _left(keep: Collection[str]) -> list[str]:
    return [
        *(f"instance {name}" for name in instances()),
        *(f"probe {name}" for name in _probes()),
        *(f"user event {name}" for name in user_events() if name not in keep),
    ]


def _probes() -> list[str]:
    """GROUP/NAME of kprobes, eprobes and synthetic events."""
    return _PROBE.findall("\n".join(other_events()))


def _stop_tracing() -> None:
    """Disable events, and empty the files and buffers of the top instance."""
    for name in ("set_event", "set_event_pid", "set_event_notrace_pid", "error_log"):
        _write(f"{ROOT}/{name}", "\n", os.O_TRUNC)
    for name, what in list(attachments()):
        if what == "a trigger":
            shown = text(f"{ROOT}/events/{name}/trigger").splitlines()
            for line in reversed([each for each in shown if not each.startswith("#")]):
                _write(f"{ROOT}/events/{name}/trigger", f"!{removal_of(line)}", os.O_APPEND)
        else:
            _write(f"{ROOT}/events/{name}/filter", "0")
    if Path(f"{ROOT}/snapshot").exists():
        _write(f"{ROOT}/snapshot", "0")
    _write(TRACING_ON, "1")
    _write(f"{ROOT}/trace", "", os.O_TRUNC)


def _remove(keep: Collection[str]) -> None:
    for name in instances():
        with suppress(OSError):
            Path(f"{ROOT}/instances/{name}").rmdir()
    for name in _probes():
        _write(f"{ROOT}/events/{name}/enable", "0")
        _write(DYNAMIC_EVENTS, f"-:{name}", os.O_APPEND)
    if not keep:
        for system in (SYSTEM, MULTI_SYSTEM):
            _write(f"{ROOT}/events/{system}/enable", "0")
    own = [name for name in user_events() if name not in keep]
    with suppress(OSError), Path(DATA).open("rb") as data:
        for name in own:
            for system in (SYSTEM, MULTI_SYSTEM):
                _write(f"{ROOT}/events/{system}/{name}/enable", "0")
            with suppress(OSError):
                # The argument is the address of the name, which ioctl() passes for bytes.
                fcntl.ioctl(data, uapi.DIAG_IOCSDEL, name.encode() + b"\0")


def _write(path: str, content: str, flags: int = 0) -> None:
    """One write(2); errors are seen by what is left."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | flags)
        try:
            os.write(descriptor, content.encode())
        finally:
            os.close(descriptor)

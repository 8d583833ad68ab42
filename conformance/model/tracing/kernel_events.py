"""Kernel events that cases read, to check that user_events leaves them alone.

The first read fixes what `format` and `id` contain.  Only cases enable these events.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.world import World
from conformance.model.tracing import event_files

# include/trace/events/{sched,task,signal}.h: in every kernel with tracing.
KNOWN = {
    "sched": ("sched_switch", "sched_wakeup", "sched_process_exit"),
    "task": ("task_newtask",),
    "signal": ("signal_generate",),
}
_FILE = re.compile(rf"{TRACEFS}/events/({'|'.join(KNOWN)})/([^/]+)/(\w+)")


def find(world: World, path: str) -> tuple[str, str] | None:
    """(system:name, file) of a path in events/ of a kernel system, None elsewhere.

    Raises Errno("ENOENT") for the name of a user event, NotModelled for an unknown kernel event.
    """
    found = _FILE.fullmatch(path)
    if found is None:
        return None
    system, name, file = found.groups()
    if name in KNOWN[system]:
        return f"{system}:{name}", file
    if any(event.tracepoint == name for event in world.table.events):
        raise Errno("ENOENT")
    raise NotModelled(f"kernel event {system}:{name}")


def is_opaque(path: str) -> bool:
    """Whether the first read fixes the content of a file."""
    found = _FILE.fullmatch(path)
    return found is not None and found[3] != "enable"


def read(world: World, path: str, event: str, file: str) -> bytes | None:
    """The text of a file, None before its first read."""
    if file == "enable":
        return event_files.enable_text(world, event_files.kernel_file(world, event)).encode()
    return world.kernel_file_texts.get(path)

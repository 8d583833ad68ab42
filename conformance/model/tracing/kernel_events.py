"""Events of the kernel's own: the few that cases look at, to see that they stay as they are.

What `format` and `id` of such an event hold is the kernel's affair: the first reading
fixes it.  Whether it is enabled is known, since nobody but the program changes it.
"""

from __future__ import annotations

import re

from conformance.model.errors import Errno, NotModelled
from conformance.model.state.world import World
from conformance.model.tracing import event_files

# include/trace/events/{sched,task,signal}.h: there in every kernel with tracing.
KNOWN = {
    "sched": ("sched_switch", "sched_wakeup", "sched_process_exit"),
    "task": ("task_newtask",),
    "signal": ("signal_generate",),
}
_FILE = re.compile(rf"/sys/kernel/tracing/events/({'|'.join(KNOWN)})/([^/]+)/(\w+)")


def find(world: World, path: str) -> tuple[str, str] | None:
    """(system:name, file) of a path below events/ of a system of the kernel's own.

    None for a path elsewhere.  A user event is under no system of the kernel's own:
    Errno("ENOENT") for its name; NotModelled for any other.
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
    """Whether the content of a file is fixed by its first reading."""
    found = _FILE.fullmatch(path)
    return found is not None and found[3] != "enable"


def read(world: World, path: str, event: str, file: str) -> bytes | None:
    """The text of a file of a kernel event, None before its first reading."""
    if file == "enable":
        return event_files.enable_text(world, event_files.kernel_file(world, event)).encode()
    return world.kernel_file_texts.get(path)


def set_enabled(world: World, event: str, *, on: bool) -> None:
    """ftrace listens to a kernel event; what it records is not ours to judge."""
    event_files.switch(world, event_files.kernel_file(world, event), on=on)

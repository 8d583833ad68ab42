"""Text files of tracefs and the sysctl, opened, read or written in one operation.

Operations on open files are in ``descriptors``.
Source: trace_events_user.c:create_user_tracefs; trace_events.c:event_enable_write.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from conformance import ops
from conformance.abi.profile import Generation
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.namespaces import CONFIDENTIALITY, LOCKDOWN, TRACEFS
from conformance.model.state.process import Process
from conformance.model.state.trace_instance import TOP, Instance
from conformance.model.state.world import World
from conformance.model.text.numbers import parse_switch, parse_written
from conformance.model.tracefs import (
    control_files,
    dynamic_events,
    enabling,
    event_paths,
    format_file,
    trace_file,
)
from conformance.model.tracing import (
    event_files,
    histogram_file,
    instances,
    kernel_events,
    kprobes,
    trigger_file,
    triggers,
)
from conformance.model.user_events import helper_module, limits, status_file

DATA = f"{TRACEFS}/user_events_data"
STATUS = f"{TRACEFS}/user_events_status"
# The status file of rfc-v1.
MMAP = f"{TRACEFS}/user_events_mmap"
DYNAMIC_EVENTS = f"{TRACEFS}/dynamic_events"
TRACING_ON = f"{TRACEFS}/tracing_on"
PROCESSORS = f"{TRACEFS}/tracing_cpumask"
BUFFER_SIZE = f"{TRACEFS}/buffer_size_kb"
OVERWRITE = f"{TRACEFS}/options/overwrite"
MAXIMUM = "/proc/sys/kernel/user_events_max"

# A shared mapping needs a writable descriptor of user_events_status.
_MAPPED_STATUS_MODE = 0o640
# That of simple_fill_super(), where tracefs_reconfigure() does not apply TRACEFS_DEFAULT_MODE.
_UNAPPLIED_ROOT_MODE = 0o755
MODES = {
    DATA: 0o640,
    STATUS: 0o440,
    DYNAMIC_EVENTS: 0o640,
    control_files.TRACE: 0o640,
    f"{TRACEFS}/trace_pipe": 0o440,
    TRACING_ON: 0o640,
    PROCESSORS: 0o640,
    MAXIMUM: 0o644,
    TRACEFS: 0o700,
}
_RFC_MODES = {DATA: 0o644, MMAP: 0o644}
_EVENT_MODES = {"enable": 0o640, "filter": 0o640, "trigger": 0o640, "format": 0o440, "id": 0o440}
# The `enable` and `filter` of all events or of a system.
_GROUP_MODE = 0o640

_STATS = re.compile(rf"{TRACEFS}/per_cpu/cpu(\d+)/stats")
# Files whose text depends on nothing but the state and the instance.
_TEXTS: Mapping[str, Callable[[World, Instance], str]] = {
    STATUS: lambda world, _: status_file.text(world),
    DYNAMIC_EVENTS: lambda world, _: dynamic_events.text(world),
    TRACING_ON: lambda _, instance: f"{int(instance.tracing_on)}\n",
    PROCESSORS: lambda _, instance: f"{int(instance.cpu_traced)}\n",
    MAXIMUM: lambda world, _: f"{limits.read_maximum(world)}\n",
    control_files.TRACE: trace_file.text,
    control_files.SNAPSHOT: trace_file.snapshot_text,
}


def page_file(world: World) -> str:
    """The file that maps the status page."""
    return MMAP if world.profile.generation is Generation.RFC_V1 else STATUS


def _check_exists(world: World, path: str) -> None:
    """Raise Errno("ENOENT") for the status file of another ABI."""
    if path in (STATUS, MMAP) and path != page_file(world):
        raise Errno("ENOENT")


def check_open(world: World, process: Process, path: str, flags: int) -> tuple[Event, str] | None:
    """open(2) of a path, with its effect under O_TRUNC; event and file name, see event_paths."""
    _check_exists(world, path)
    found = event_paths.event_file(world, path)
    _check_locked_down(world, path, found)
    if flags & os.O_TRUNC and flags & os.O_ACCMODE != os.O_RDONLY:
        control_files.truncate(world, path, found)
    enabling.check_open(world, path, flags)
    if path == DYNAMIC_EVENTS and flags & os.O_TRUNC and flags & os.O_ACCMODE != os.O_RDONLY:
        dynamic_events.release_all(world, process)
    return found


def _check_locked_down(world: World, path: str, found: tuple[Event, str] | None) -> None:
    """security_locked_down(LOCKDOWN_TRACEFS).

    Raises Errno("EPERM"), and NotModelled for files whose behaviour is unknown.
    """
    if world.lockdown < CONFIDENTIALITY or not path.startswith(TRACEFS):
        return
    if path in (DATA, STATUS, TRACEFS) or (found is not None and found[1] in ("format", "id")):
        return
    known = (DYNAMIC_EVENTS, control_files.TRACE, TRACING_ON, enabling.SET_EVENT)
    if found is None and path not in known and not path.endswith("/enable"):
        raise NotModelled(f"opening {path} under lockdown")
    raise Errno("EPERM")


def mode(world: World, path: str) -> int:
    """Permission bits of a path.  Raises NotModelled and Errno("ENOENT")."""
    if path == MAXIMUM:
        limits.check_sysctl(world)
    _check_exists(world, path)
    found = event_paths.event_file(world, path)
    modes = MODES if found is None else _EVENT_MODES
    if world.profile.generation is Generation.RFC_V1 and path in _RFC_MODES:
        return _RFC_MODES[path]
    key = instances.locate(world, path)[1] if found is None else found[1]
    if enabling.handles(world, path):
        return _GROUP_MODE
    if key not in modes:
        raise NotModelled(f"the mode of {path}")
    if path == STATUS and world.profile.has("status_page"):
        return _MAPPED_STATUS_MODE
    if path == TRACEFS and not world.profile.fixed("tracefs-root-mode"):
        return _UNAPPLIED_ROOT_MODE
    return modes[key]


def read(world: World, process: Process, path: str) -> bytes | None:
    """The text of a file, None if the model does not know it yet."""
    found = check_open(world, process, path, os.O_RDONLY)
    name, local = instances.locate(world, path)
    instance = world.instances[name]
    if found is not None:
        return _event_text(world, *found, name)
    if enabling.handles(world, path):
        return enabling.read(world, path)
    if local in _TEXTS:
        return _encode(_TEXTS[local](world, instance))
    stats = _STATS.fullmatch(local)
    if stats is not None:
        return _encode(instance.stats_text(int(stats[1])))
    hooked = control_files.read(world, path)
    if hooked is not None:
        return _encode(hooked)
    others = kernel_events.find(world, path)
    if others is not None:
        return kernel_events.read(world, path, *others)
    raise NotModelled(f"reading {path}")


def choices(world: World, operation: ops.Operation) -> list[World]:
    """The states that a read of records may show."""
    if not isinstance(operation, ops.ReadFile) or world.table.ids_unknown_since is None:
        return [world]
    try:
        name, local = instances.locate(world, operation.path)
    except Errno:
        return [world]
    instance = world.instances[name]
    shown = {control_files.TRACE: instance.records, control_files.SNAPSHOT: instance.snapshot}
    return trace_file.choices(world, shown.get(local) or [])


def number(world: World, process: Process, path: str) -> int:
    """The stand-in for the number in a file."""
    found = check_open(world, process, path, os.O_RDONLY)
    probe = kprobes.number(world, path)
    if probe is not None:
        return probe
    if found is None or found[1] != "id":
        raise NotModelled(f"the number in {path}")
    return found[0].id


def example(world: World, path: str) -> bytes | None:
    """An example of a text that the kernel chooses."""
    event = event_paths.event_at(world, path)
    return None if event is None else b"%d\n" % event.id


def write(world: World, process: Process, path: str, data: bytes, flags: int) -> int:
    """open, one write(2), close; the value is what write(2) returns."""
    found = check_open(world, process, path, flags)
    name, local = instances.locate(world, path)
    instance = world.instances[name]
    text = data.decode("latin-1")
    if found is not None:
        write_event_file(world, *found, text, name)
        return len(data)
    if enabling.handles(world, path):
        return enabling.write(world, path, text)
    if control_files.write(world, path, text, flags):
        return len(data)
    others = kernel_events.find(world, path)
    if others is not None and others[1] == "enable":
        file = event_files.kernel_file(world, others[0])
        event_files.set_enabled(world, file, on=parse_switch(text))
        return len(data)
    match local:
        case _ if path == DYNAMIC_EVENTS:
            return dynamic_events.run_commands(world, process, text)
        case _ if path == kprobes.KPROBE_EVENTS:
            kprobes.command(world, text)
        case _ if local == TRACING_ON:
            instance.tracing_on = parse_written(text) != 0
        case _ if local == PROCESSORS:
            instance.set_cpumask(text, world.profile)
        case _ if path == MAXIMUM:
            limits.write_maximum(world, text)
        case _ if local == BUFFER_SIZE and name != TOP:
            instance.resize(parse_written(text))
        case _ if local == OVERWRITE and name != TOP:
            instance.overwrite = parse_switch(text)
        case _ if local == control_files.TRACE:
            # tracing_write_stub(); O_TRUNC has cleared it.
            pass
        case _ if path == helper_module.ATTACH:
            helper_module.attach(world, text)
        case _ if path == helper_module.DETACH:
            helper_module.detach(world)
        case _ if path == LOCKDOWN:
            limits.write_lockdown(world, text)
        case _:
            raise NotModelled(f"writing {path}")
    return len(data)


# events/SYSTEM/NAME/


def _event_text(world: World, event: Event, name: str, instance: str) -> bytes | None:
    file = event.file_in(instance)
    match name:
        case "enable":
            return _encode(event_files.enable_text(world, file))
        case "filter":
            return _encode(f"{file.filter_text}\n")
        case "format":
            return _encode(format_file.text(event, world.profile))
        case "hist":
            return _encode(histogram_file.text_of(file))
        case "id":
            return None
        case "trigger":
            return _encode(triggers.text(file))
    raise NotModelled(f"reading {name} of an event")


def write_event_file(world: World, event: Event, name: str, text: str, instance: str) -> None:
    """One write(2) to an event's file in an instance.  Raises Errno, NotModelled."""
    file = event.file_in(instance)
    match name:
        case "enable":
            event_files.set_enabled(world, file, on=parse_switch(text))
        case "filter":
            event_files.set_filter(world, event, file, text)
        case "trigger":
            trigger_file.command(world, event, file, text)
        case _:
            raise NotModelled(f"writing {name} of an event")


def _encode(text: str) -> bytes:
    return text.encode("latin-1")

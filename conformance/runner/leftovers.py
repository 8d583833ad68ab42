"""What a case may have left changed in its guest, derived from its operations and its model.

The cleanup is limited to this: a case that touched nothing shared costs no request.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from conformance import ops
from conformance.client import tracefs
from conformance.model.state.events import DEFAULT_MAX_EVENTS
from conformance.model.state.trace_instance import TOP
from conformance.model.state.world import World
from conformance.ops import credentials, race

#: Files whose text, as read before the first case, can be written back.
SETTINGS = (
    "/proc/sys/kernel/ftrace_enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    f"{tracefs.ROOT}/current_tracer",
    f"{tracefs.ROOT}/tracing_cpumask",
)
# debugfs mounts tracefs there on first access.
_AUTOMOUNT = "/sys/kernel/debug/tracing"
# Filters of these events are freed with their events.
_OWN_SYSTEMS = (tracefs.SYSTEM, tracefs.MULTI_SYSTEM)


class Leftovers(Struct, frozen=True):
    """Guest-wide state that may differ from what the next case expects."""

    #: Events, probes, instances, settings: what ``cleanup.LOOK`` finds.
    objects: bool = False
    #: Eprobes: they must be removed while their events exist.
    eprobes: bool = False
    #: Names of events that stay until they are deleted, None if unknown.
    events: tuple[str, ...] | None = ()
    #: Records in the buffer of the top instance.
    records: bool = False
    #: Lines of error_log.
    errors: bool = False
    #: Events of the kernel may be enabled in the top instance.
    kernel_events: bool = False
    #: Modes and owners of files of tracefs.
    modes: bool = False
    #: Options of the tracefs superblock, such as read-only.
    superblock: bool = False
    #: Files of ``SETTINGS`` that were opened for writing.
    settings: tuple[str, ...] = ()
    #: Trigger files, the last written first: its triggers may refer to those of earlier ones.
    triggers: tuple[str, ...] = ()
    #: Filters that outlive the events of the case.
    filters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__struct_fields__)


def of_program(program: Sequence[ops.Operation], world: World | None) -> Leftovers:
    """What a program left.

    ``world`` is the state of the model at its end, None where the kernel deviated from the model:
    then everything may be left that a program can leave.
    """
    operations = [step for operation in program for step in race.steps_of(operation)]
    written = tuple(dict.fromkeys(reversed(list(_written(operations)))))
    superblock = any(map(_reconfigures, operations))
    has_triggers = world is None or _has_triggers(world)
    return Leftovers(
        objects=world is None or _objects(world),
        eprobes=world is None or bool(world.eprobes),
        events=None if world is None else _lasting(world),
        records=world is None or bool(world.top.records),
        errors=world is None or bool(world.top.error_log) or world.top.error_log_unknown,
        kernel_events=world is None or bool(world.kernel_enabled),
        modes=superblock or any(isinstance(each, ops.Chmod | ops.Chown) for each in operations),
        superblock=superblock,
        settings=tuple(path for path in written if path in SETTINGS),
        triggers=tuple(path for path in written if has_triggers and path.endswith("/trigger")),
        filters=tuple(path for path in written if _outlives_events(path)),
    )


def makes_instance(program: Sequence[ops.Operation]) -> bool:
    """Whether a program tried to create a tracefs instance."""
    steps = (step for operation in program for step in race.steps_of(operation))
    return any(isinstance(step, ops.MakeDirectory) for step in steps)


def _objects(world: World) -> bool:
    """Whether anything remains that does not disappear with its processes."""
    top, events = world.top, world.table.events
    return (
        any(event.self_reference or event.is_enabled or event.file.is_used for event in events)
        or not top.tracing_on
        or top.snapshot is not None
        or any(top.pid_lists.values())
        or world.table.maximum != DEFAULT_MAX_EVENTS
        or bool(world.kprobes or world.eprobes or world.synthetic_events or world.kernel_files)
        or any(name != TOP for name in world.instances)
    )


def _lasting(world: World) -> tuple[str, ...]:
    return tuple(each.name for each in world.table.events if each.self_reference)


def _has_triggers(world: World) -> bool:
    own = [file for event in world.table.events for file in event.files.values()]
    return any(file.triggers for file in (*own, *world.kernel_files.values()))


def _written(operations: Iterable[ops.Operation]) -> Iterator[str]:
    """Paths that were opened for writing, in the order of the program."""
    for operation in operations:
        match operation:
            case (
                ops.WriteFile(path=path, flags=flags)
                | ops.Open(path=path, flags=flags)
                | ops.WritePid(path=path, flags=flags)
            ) if flags & os.O_ACCMODE != os.O_RDONLY:
                if path.startswith(f"{_AUTOMOUNT}/"):
                    path = tracefs.ROOT + path.removeprefix(_AUTOMOUNT)
                yield path


def _outlives_events(path: str) -> bool:
    """Whether a path is the filter of a system, or of an event that is not the case's own."""
    directory, _, name = path.rpartition("/")
    inside = directory.removeprefix(f"{tracefs.ROOT}/events/")
    if name != "filter" or inside == directory:
        return False
    system, _, event = inside.partition("/")
    return not event or system not in _OWN_SYSTEMS


def _reconfigures(operation: ops.Operation) -> bool:
    """Whether a mount changes the superblock of tracefs, which all mounts of it share."""
    match operation:
        case credentials.Mount(kind=kind, flags=flags):
            remounts = flags & credentials.MS_REMOUNT and not flags & credentials.MS_BIND
            return bool(remounts) or kind == "tracefs"
    return False

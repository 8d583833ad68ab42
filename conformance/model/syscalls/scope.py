"""Which pending work can change the answer to an operation.

Other work is left pending, since the order of independent steps does not matter: work on events
that the operation does not name, and references that are dropped while others remain.  Without this
a program that unregisters twenty events at once has a million possible states.
"""

from __future__ import annotations

from conformance import ops
from conformance.abi import uapi
from conformance.abi.profile import USER_REG_OF, Generation
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.process import Process
from conformance.model.state.world import Release, Remove, Transition, World
from conformance.model.text.definition import Command
from conformance.model.tracefs import files
from conformance.model.user_events.registration import copy_string

_POINTER = 8


def event_names(world: World, operation: ops.Operation) -> frozenset[str] | None:
    """The names of the events that an operation depends on; None if it may be any."""
    process = world.processes.get(operation.actor)
    if isinstance(operation, ops.Open) and operation.path in (files.DATA, files.STATUS):
        return frozenset()
    if process is None or not isinstance(operation, ops.Ioctl) or _is_crowded(world):
        return None
    file = process.slots.get(operation.slot)
    is_data = file is not None and file.path == files.DATA
    if not is_data or world.profile.generation not in USER_REG_OF:
        return None
    try:
        return _named(process, world.profile.generation, operation)
    except (Errno, NotModelled):
        # The call fails before it looks for an event.
        return frozenset()


def concerns(world: World, pending: Transition, names: frozenset[str] | None) -> bool:
    """Whether pending work may change an answer about events of some names, or None for any."""
    if names is None or not isinstance(pending, (Release, Remove)):
        return True
    event = world.table.find(pending.event)
    return event is None or event.name in names


def keeps_the_event(world: World, pending: Transition, count: int) -> bool:
    """Whether work drops references, pending ``count`` times, of an event that has others.

    The event stays referenced, whenever this reference is dropped.
    """
    event = world.table.find(pending.event) if isinstance(pending, Release) else None
    return event is not None and event.references > count


def _is_crowded(world: World) -> bool:
    """Whether the number of events, or their order in the status page, decides."""
    nearly = world.table.maximum - len(world.pending)
    return world.status_page is not None or len(world.table.events) >= nearly


def _named(process: Process, generation: Generation, operation: ops.Ioctl) -> frozenset[str]:
    match operation.request & 0xFFFFFFFF:
        case uapi.DIAG_IOCSREG:
            place = operation.argument + USER_REG_OF[generation].member("name_args").offset
            pointer = int.from_bytes(process.memory.read(place, _POINTER), "little")
            return frozenset({Command.parse(copy_string(process, pointer)).name})
        case uapi.DIAG_IOCSDEL:
            return frozenset({copy_string(process, operation.argument)})
    return frozenset()

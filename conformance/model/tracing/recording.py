"""A record on its way into the trace buffer: soft mode, filter, triggers.

Source: trace_events_user.c:user_event_ftrace; trace.c:trace_event_buffer_lock_reserve,
trace_event_buffer_commit; trace.h:__event_trigger_test_discard.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.model.errors import NotModelled
from conformance.model.state.event_file import EventFile, Trigger
from conformance.model.state.events import Event
from conformance.model.state.process import Process
from conformance.model.state.trace_instance import Instance, Record
from conformance.model.state.world import World
from conformance.model.tracing import triggers
from conformance.model.tracing.instances import actor_of

# A sub-buffer of one page less its header, an event header of 8 bytes: the longest record
# ring_buffer.c takes is 4072 bytes, common fields included.  Longer ones are dropped.
LONGEST_RECORD = 4072
# Where the event header may need a time extend of 8 bytes beside it.
SURE_RECORD = LONGEST_RECORD - 8
# The page that a record waits in while nobody knows whether it is wanted, less 8 bytes.
_LONGEST_WAITING = 4088


@dataclass(slots=True)
class Reservation:
    """Room for a record: in a buffer, on the page of those that wait, or in one nobody reads.

    ``buffer`` is what was the buffer of the instance when it was reserved, None for nobody's, and
    ``place`` how many records were in it: what triggers record meanwhile comes behind.
    """

    instance: Instance
    file: EventFile
    buffer: list[Record] | None
    waits: bool
    place: int = 0


def reserve(world: World, process: Process, event: Event, size: int) -> list[Reservation]:
    """What the instances that listen have room for; none of those that take no look at a payload.

    Triggers that need nothing of the record act here.
    """
    actor = actor_of(world, process)
    files = [event.file_in(name) for name in sorted(event.tracers)]
    found = [_room_for(world, file, size, actor) for file in files]
    return [room for room in found if room is not None]


def _room(instance: Instance, file: EventFile, size: int) -> Reservation | None:
    if not instance.reserve(size):
        return None
    return Reservation(instance, file, instance.records, waits=False, place=len(instance.records))


def _fits(world: World, size: int) -> bool:
    """Whether a buffer takes a record of so many bytes."""
    if LONGEST_RECORD >= size > SURE_RECORD and not world.profile.has("long_records_kept"):
        raise NotModelled("a record whose fate depends on the time since the last")
    return size <= LONGEST_RECORD


def _room_for(world: World, file: EventFile, size: int, actor: str) -> Reservation | None:
    instance = world.instances[file.instance]
    if file.triggers and not file.conditional:
        for trigger in list(file.triggers):
            triggers.act(world, file, trigger, None)
    if file.soft_disabled and not file.conditional:
        return None
    if instance.ignores(actor):
        return None
    if (file.soft_disabled or file.filter is not None) and size <= _LONGEST_WAITING:
        return Reservation(instance, file, instance.records, waits=True)
    if instance.is_recording:
        return _room(instance, file, size) if _fits(world, size) else None
    return Reservation(instance, file, None, waits=False) if file.conditional else None


def commit(world: World, room: Reservation, made: Record, *, stuck: bool) -> None:
    """The record is there: triggers that want it act, it is kept or not, others act behind it."""
    late = _act(world, room.file, made.raw) if room.file.conditional else []
    if _passes(room.file, made.raw) and _is_kept(room, len(made.raw)) and not stuck:
        assert room.buffer is not None
        room.buffer.insert(len(room.buffer) if room.waits else room.place, made)
    for trigger in late:
        triggers.act(world, room.file, trigger, None)


def _act(world: World, file: EventFile, raw: bytes) -> list[Trigger]:
    """event_triggers_call(); the triggers that are to act behind the record."""
    late = []
    for trigger in list(file.triggers):
        if trigger.paused or not (trigger.filter is None or trigger.filter.matches(raw)):
            continue
        if trigger.is_post:
            late.append(trigger)
        else:
            triggers.act(world, file, trigger, raw)
    return late


def _passes(file: EventFile, raw: bytes) -> bool:
    return not file.soft_disabled and (file.filter is None or file.filter.matches(raw))


def _is_kept(room: Reservation, size: int) -> bool:
    """What has waited still has to find room, and a buffer that takes something."""
    if room.waits:
        taken = size <= LONGEST_RECORD and room.instance.is_recording
        return taken and room.instance.reserve(size)
    return room.buffer is not None

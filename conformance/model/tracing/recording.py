"""The path of a record into the trace buffer: soft mode, filter, triggers.

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

# The longest record that ring_buffer.c takes, common fields included: a sub-buffer of one page less
# its header and an event header of 8 bytes.  Longer records are dropped.
MAX_RECORD = 4072
# Longer records fit only without a time extend of 8 bytes.
MAX_RECORD_WITH_EXTEND = MAX_RECORD - 8
# trace_buffered_event, a page, less 8 bytes.
_MAX_BUFFERED = 4088


@dataclass(slots=True)
class Reservation:
    """A reserved record: in the ring buffer, in trace_buffered_event, or in temp_buffer.

    ``buffer`` is the ring buffer at the time of the reservation, None for temp_buffer.  ``place``
    is the position in it: what triggers record in between comes later.
    """

    instance: Instance
    file: EventFile
    buffer: list[Record] | None
    buffered: bool
    place: int = 0


def reserve(world: World, process: Process, event: Event, size: int) -> list[Reservation]:
    """Reserve the record in all instances that enable the event.

    Triggers that need no record act here.
    """
    for instance in world.instances.values():
        instance.writer = process.tid
    files = [event.file_in(name) for name in sorted(event.tracers)]
    found = [_reserve_in(world, file, size, process.tid) for file in files]
    return [reservation for reservation in found if reservation is not None]


def _fits(world: World, instance: Instance, size: int) -> bool:
    """Whether a buffer takes a record of this size."""
    extends = MAX_RECORD >= size > MAX_RECORD_WITH_EXTEND
    if extends and not world.profile.fixed("long-record-stops-buffer"):
        if instance.records:
            raise NotModelled("a record that fits or not, depending on the time since the last one")
        # rb_reserve_next_event() never finds room for the record with its time, and gives up.
        instance.disabled = True
        return False
    return size <= MAX_RECORD


def _reserve_in(world: World, file: EventFile, size: int, tid: str) -> Reservation | None:
    instance = world.instances[file.instance]
    if file.triggers and not file.conditional:
        for trigger in list(file.triggers):
            triggers.run(world, file, trigger, None)
    if file.soft_disabled and not file.conditional:
        return None
    if instance.ignores(tid):
        return None
    if (file.soft_disabled or file.filter is not None) and size <= _MAX_BUFFERED:
        return Reservation(instance, file, instance.records, buffered=True)
    if instance.is_recording:
        if not _fits(world, instance, size) or not instance.reserve(size):
            return None
        records = instance.records
        return Reservation(instance, file, records, buffered=False, place=len(records))
    return Reservation(instance, file, None, buffered=False) if file.conditional else None


def commit(world: World, reservation: Reservation, record: Record, *, stuck: bool) -> None:
    """Commit a record: run its triggers, keep or discard it, run the post triggers."""
    file, buffer = reservation.file, reservation.buffer
    late = _run_triggers(world, file, record.raw) if file.conditional else []
    if _passes(file, record.raw) and _is_kept(reservation, len(record.raw)):
        assert buffer is not None
        if stuck:
            reservation.instance.invisible += 1
        else:
            buffer.insert(len(buffer) if reservation.buffered else reservation.place, record)
    for trigger in late:
        triggers.run(world, file, trigger, None)


def _run_triggers(world: World, file: EventFile, raw: bytes) -> list[Trigger]:
    """event_triggers_call(): returns the post triggers that are to run."""
    late = []
    for trigger in list(file.triggers):
        if trigger.paused or not (trigger.filter is None or trigger.filter.matches(raw)):
            continue
        if trigger.is_post:
            late.append(trigger)
        else:
            triggers.run(world, file, trigger, raw)
    return late


def _passes(file: EventFile, raw: bytes) -> bool:
    return not file.soft_disabled and (file.filter is None or file.filter.matches(raw))


def _is_kept(reservation: Reservation, size: int) -> bool:
    """A record in trace_buffered_event still has to be copied to the ring buffer."""
    if reservation.buffered:
        taken = size <= MAX_RECORD and reservation.instance.is_recording
        return taken and reservation.instance.reserve(size)
    return reservation.buffer is not None

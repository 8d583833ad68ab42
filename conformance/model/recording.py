"""A record on its way into the trace buffer: soft mode, filter, triggers.

Source: trace_events_user.c:user_event_ftrace; trace.c:trace_event_buffer_lock_reserve,
trace_event_buffer_commit; trace.h:__event_trigger_test_discard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.model import triggers
from conformance.model.errors import NotModelled
from conformance.model.event_state import EventFile
from conformance.model.events import Event
from conformance.model.world import TOP, Record, World

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

    ``buffer`` is what was the trace buffer when it was reserved, None for nobody's, and
    ``place`` how many records were in it: what triggers record meanwhile comes behind.
    """

    buffer: list[Record] | None
    waits: bool
    place: int = 0


def reserve(world: World, event: Event, size: int) -> Reservation | None:
    """What ftrace has room for, None if it does not even look at the payload.

    Triggers that need nothing of the record act here.
    """
    if not event.tracers:
        return None
    if event.tracers != {TOP}:
        raise NotModelled("records outside of the top instance")
    file = event.file
    if file.triggers and not file.conditional:
        for trigger in list(file.triggers):
            triggers.act(world, event, trigger, None)
    if file.soft_disabled and not file.conditional:
        return None
    if (file.soft_disabled or file.filter is not None) and size <= _LONGEST_WAITING:
        return Reservation(world.records, waits=True)
    if size > LONGEST_RECORD:
        return None
    if size > SURE_RECORD and not world.profile.has("long_records_kept"):
        raise NotModelled("a record whose fate depends on the time since the last")
    if world.tracing_on:
        return Reservation(world.records, waits=False, place=len(world.records))
    return Reservation(None, waits=False) if file.conditional else None


def commit(
    world: World,
    event: Event,
    room: Reservation,
    raw: bytes,
    written: Callable[[], Record],
    *,
    stuck: bool,
) -> None:
    """The record is there: triggers that want it act, it is kept or not, others act behind it.

    ``written`` makes what is kept of it.
    """
    late = _act(world, event, raw) if event.file.conditional else []
    if _passes(event.file, raw) and _is_kept(world, room, len(raw)) and not stuck:
        assert room.buffer is not None
        event.records += 1
        room.buffer.insert(len(room.buffer) if room.waits else room.place, written())
    for trigger in late:
        triggers.act(world, event, trigger, None)


def _act(world: World, event: Event, raw: bytes) -> list[triggers.Trigger]:
    """event_triggers_call(); the triggers that are to act behind the record."""
    late = []
    for trigger in list(event.file.triggers):
        if trigger.paused or not (trigger.filter is None or trigger.filter.matches(raw)):
            continue
        if trigger.is_post:
            late.append(trigger)
        else:
            triggers.act(world, event, trigger, raw)
    return late


def _passes(file: EventFile, raw: bytes) -> bool:
    return not file.soft_disabled and (file.filter is None or file.filter.matches(raw))


def _is_kept(world: World, room: Reservation, size: int) -> bool:
    """What has waited still has to find room, and a buffer that takes something."""
    if room.waits:
        return size <= LONGEST_RECORD and world.tracing_on
    return room.buffer is not None

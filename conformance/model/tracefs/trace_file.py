"""The files `trace` and `snapshot`, as far as ops.decoding.trace_text shows them.

Source: trace.c:s_show, print_event_info, print_snapshot_help, print_trace_fmt.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from conformance.model.errors import NotModelled
from conformance.model.state.copies import copied
from conformance.model.state.trace_instance import Instance, Record
from conformance.model.state.world import World
from conformance.model.text import printing

_MOST_CHOICES = 64


def text(world: World, instance: Instance) -> str:
    """The text of `trace`; with skipped records the overrun is not counted (get_total_entries)."""
    records = [each for each in instance.records if not each.stale]
    shown = lines(world, records, instance.unknown_because)
    entries = len(records) + instance.invisible
    skipped = len(records) < len(instance.records)
    return _header(entries, entries if skipped else entries + instance.overrun) + shown


def snapshot_text(world: World, instance: Instance) -> str:
    """The text of `snapshot`: without records, whether there is a spare buffer."""
    if not instance.snapshot:
        kept = "freed" if instance.snapshot is None else "allocated"
        return f"# * Snapshot is {kept} *\n"
    shown = lines(world, instance.snapshot, instance.snapshot_unknown_because)
    return _header(len(instance.snapshot), len(instance.snapshot)) + shown


def choices(world: World, records: Sequence[Record]) -> list[World]:
    """One state for every event that may have the id of a removed one, of which a record is left.

    The state itself if there are too many.
    """
    live = {event.id for event in world.table.events}
    ids = dict.fromkeys(each.id for each in records if not each.text and each.id not in live)
    open_ids = {id: found for id in ids if len(found := world.table.may_have(id)) > 1}
    if not open_ids or prod(map(len, open_ids.values())) > _MOST_CHOICES:
        return [world]
    chosen = []
    for serials in product(*open_ids.values()):
        events = [each for each in serials if each is not None]
        if len(events) == len(set(events)):
            copy = copied(world)
            copy.table.reused |= dict(zip(open_ids, serials, strict=True))
            chosen.append(copy)
    return chosen


def lines(world: World, records: Sequence[Record], unknown_because: str) -> str:
    """The lines of records; the pid of a line stands for the thread id."""
    if unknown_because:
        raise NotModelled(f"the trace buffer: {unknown_because}; clear it first")
    tids = dict.fromkeys(each.tid for each in records)
    pids = {tid: pid for pid, tid in enumerate(tids)}
    return "".join(
        f"model-{pids[each.tid]} [000] ..... 0.0: {_body(world, each)}" for each in records
    )


def _header(entries: int, written: int) -> str:
    return f"# entries-in-buffer/entries-written: {entries}/{written}   #P:1\n"


def _body(world: World, record: Record) -> str:
    """print_trace_fmt(): decoded as the event that has the id at present."""
    if record.text:
        return record.text
    event = world.table.with_id(record.id)
    if event is None:
        return f"Unknown type {record.id}\n"
    return printing.record_text(event.tracepoint, event.fields, record.raw, world.profile)

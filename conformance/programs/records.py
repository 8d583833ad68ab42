"""Records that a listener read back, and those that the model has for the same write."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from conformance.abi import perf
from conformance.abi.grammar import TRACE_ENTRY_SIZE
from conformance.model.answers import Difference
from conformance.model.state.perf_event import PerfEvent, Ring
from conformance.model.state.world import World
from conformance.ops.decoding import trace_page
from vm.recorder.recording import Details

INSTANCE = "uevt"
"""The tracefs instance of the listener."""
_PAGE_HEADER = struct.Struct("<QQ")
_LOST = struct.Struct("<QQ")


class Record(Struct, frozen=True):
    """A record: the name of its event, and its payload, with padding if it was read back."""

    event: str
    payload: bytes


def read_back(details: Details, names: Mapping[int, str]) -> list[Record]:
    """The records in pages and samples; events by id.  Lost ones have an empty name."""
    found = []
    for page in details.pages:
        _, commit = _PAGE_HEADER.unpack_from(page.data)
        if commit >> 30:
            found.append(Record("", b""))
        found += [_record(body, names) for body in trace_page.bodies(page.data)]
    for sample in details.samples:
        if sample.kind == perf.PERF_RECORD_SAMPLE:
            size = int.from_bytes(sample.data[:4], "little")
            found.append(_record(sample.data[4 : 4 + size], names))
        elif sample.kind == perf.PERF_RECORD_LOST:
            found += [Record("", b"")] * _LOST.unpack_from(sample.data)[1]
    return found


def _record(raw: bytes, names: Mapping[int, str]) -> Record:
    number = int.from_bytes(raw[:2], "little")
    return Record(names.get(number, f"event {number}"), raw[TRACE_ENTRY_SIZE:])


class Samples(Ring):
    """A ring that keeps the raw records, however many."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        super().__init__([], overwrites=False)
        self.taken: list[bytes] = []

    def sample(self, body: bytes, padding: int) -> None:
        """Keep the record of a sample."""
        self.taken.append(body[4:])


def attach_perf(world: World, system: str, name: str) -> None:
    """perf_event_open(2) of an event for all processes."""
    event = world.table.tracepoint(system, name)
    if any(each.source == event.serial for each in world.perf_events):
        return
    world.open_perf(
        PerfEvent(
            event.serial,
            period=1,
            sample_type=perf.PERF_SAMPLE_RAW,
            ring=Samples(),
        )
    )


def take_records(world: World) -> list[Record]:
    """Remove the records that the model has for the listener."""
    found = []
    instance = world.instances.get(INSTANCE)
    if instance is not None:
        for record in instance.records:
            event = world.table.with_id(record.id)
            name = "" if event is None else event.tracepoint
            found.append(Record(name, record.raw[TRACE_ENTRY_SIZE:]))
        instance.records.clear()
    for perf_event in world.perf_events:
        if isinstance(perf_event.ring, Samples) and perf_event.source is not None:
            event = world.table.find(perf_event.source)
            name = "" if event is None else event.tracepoint
            taken, perf_event.ring.taken = perf_event.ring.taken, []
            found += [Record(name, raw[TRACE_ENTRY_SIZE:]) for raw in taken]
    return found


def compare(
    allowed: Iterable[Sequence[Record]], found: Sequence[Record], *, samples: bool
) -> list[Difference]:
    """How the records that were read back differ from all that are allowed."""
    differing = [_differences(each, found, samples=samples) for each in allowed]
    return min(differing, key=len)


def without_unseen(
    allowed: Sequence[Sequence[Record]], found: Sequence[Record]
) -> tuple[list[Record], list[Record]]:
    """The records that are expected, in order, and all others: of writes that were not seen."""
    waiting = list(allowed[0]) if allowed else []
    expected, others = [], []
    for each in found:
        wanted = waiting[0] if waiting else None
        if wanted and wanted.event == each.event and each.payload.startswith(wanted.payload):
            expected.append(each)
            waiting.pop(0)
        else:
            others.append(each)
    return expected, others


def _differences(
    expected: Sequence[Record], found: Sequence[Record], *, samples: bool
) -> list[Difference]:
    if len(expected) != len(found):
        return [Difference("records", _summary(expected), _summary(found))]
    differing = []
    for one, other in zip(expected, found, strict=True):
        padding = _padding(len(one.payload), samples=samples)
        payload = other.payload[: len(one.payload)]
        if one.event != other.event:
            differing.append(Difference("event of the record", one.event, other.event))
        elif payload != one.payload:
            field = f"payload of the record of {one.event}"
            differing.append(Difference(field, one.payload.hex(" "), payload.hex(" ")))
        elif len(other.payload) != len(one.payload) + padding:
            field = f"bytes of the record of {one.event}"
            lengths = str(len(one.payload) + padding), str(len(other.payload))
            differing.append(Difference(field, *lengths))
    return differing


def _padding(length: int, *, samples: bool) -> int:
    """Bytes after a payload: in the ring buffer up to 4, in a perf sample with its size up to 8."""
    record = TRACE_ENTRY_SIZE + length
    if samples:
        return -(4 + record) % 8
    return trace_page.padded(record) - record


def _summary(records: Sequence[Record]) -> str:
    if not records:
        return "no record"
    names = ", ".join(each.event or "a lost record" for each in records)
    return f"{len(records)} of {names}"

"""Consuming reads: trace_pipe and trace_pipe_raw.

Source: trace.c:tracing_read_pipe, tracing_buffers_read; ring_buffer.c:ring_buffer_read_page,
rb_calculate_event_length, rb_update_event.
"""

from __future__ import annotations

import os
import re

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.trace_instance import Instance, Record
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import event_paths, trace_file
from conformance.model.tracing import instances
from conformance.ops.decoding import trace_page

_PIPE = re.compile(rf"{TRACEFS}/(?:per_cpu/cpu(\d+)/)?trace_pipe")
_RAW = re.compile(rf"{TRACEFS}/per_cpu/cpu(\d+)/trace_pipe_raw")
# One read(2) of trace_pipe returns at least this much text.
_SURE_TEXT = 2048


def read_pipe(world: World, process: Process, operation: ops.ReadPipe) -> Answer:
    """tracing_read_pipe(): whole lines; the records are consumed."""
    file = process.file(operation.slot)
    instance, cpu = _consumed(world, file, _PIPE)
    taken = instance.records_of(cpu)
    _check_waiting(file, taken)
    text = trace_file.lines(world, taken, instance.unknown_because).encode("latin-1")
    if len(text) > min(_SURE_TEXT, operation.count):
        raise NotModelled("more text than one read(2) of trace_pipe returns")
    for record in taken:
        instance.consume(record)
    return Answer(None, "", operation.compared(text))


def read_page(world: World, process: Process, operation: ops.ReadPage) -> Answer:
    """tracing_buffers_read(): one page of raw records."""
    file = process.file(operation.slot)
    event = event_paths.event_at(world, operation.id_path)
    if event is None:
        raise Errno("ENOENT")
    instance, cpu = _consumed(world, file, _RAW)
    taken = instance.records_of(cpu)
    _check_waiting(file, taken)
    shown = [
        trace_page.PageRecord(
            own_type=world.table.with_id(record.id) is event,
            own_pid=record.tid == process.tid,
            record=record.raw,
        )
        for record in taken
    ]
    if sum(len(each.record) for each in shown) > trace_page.DATA_SIZE // 2:
        raise NotModelled("more records than fit on one page in every release")
    for record in taken:
        instance.consume(record)
    return Answer(trace_page.SIZE, "", trace_page.describe_records(shown).encode())


def _consumed(world: World, file: OpenFile, kind: re.Pattern[str]) -> tuple[Instance, int | None]:
    """The instance and processor of an open file."""
    name, local = instances.locate(world, file.path)
    found = kind.fullmatch(local)
    if found is None:
        raise NotModelled(f"consuming {file.path}")
    instance = world.instances[name]
    if instance.unknown_because:
        raise NotModelled(f"the trace buffer: {instance.unknown_because}; clear it first")
    return instance, None if found[1] is None else int(found[1])


def _check_waiting(file: OpenFile, records: list[Record]) -> None:
    if records:
        return
    if not file.flags & os.O_NONBLOCK:
        raise NotModelled("waiting for a record")
    raise Errno("EAGAIN")


HANDLERS: Handlers = {
    ops.ReadPipe: read_pipe,
    ops.ReadPage: read_page,
}

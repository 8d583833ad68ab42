"""rfc-v1: ioctls, writes and the lines of dynamic_events.

A descriptor refers to one event, and a registration returns an index in the status page.
Source: the patch named in ``conformance/abi/rfc_v1.py``, trace_events_user.c; fs/read_write.c:
vfs_write, do_loop_readv_writev.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance import ops
from conformance.abi import grammar, rfc_v1
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls import file_io, text_files
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import files
from conformance.model.tracing import recording
from conformance.model.user_events import bpf_context, writing
from conformance.model.user_events.bpf_context import Segment
from conformance.model.user_events.registration import copy_string
from conformance.ops import View
from conformance.ops.compat import Write32


def _ioctl(world: World, process: Process, file: OpenFile, call: ops.Ioctl) -> int:
    """user_events_ioctl(); raises Errno."""
    match call.request & 0xFFFFFFFF:
        case rfc_v1.DIAG_IOCSREG:
            return _register(world, process, file, call.argument)
        case rfc_v1.DIAG_IOCSDEL:
            return _delete(world, process, call.argument)
        case rfc_v1.DIAG_IOCQLOCOFFSET:
            return grammar.TRACE_ENTRY_SIZE
    raise Errno("ENOTTY")


def _register(world: World, process: Process, file: OpenFile, argument: int) -> int:
    """The string is checked before the file, which has room for one event."""
    raw = copy_string(process, argument)
    if file.events:
        raise Errno("EMFILE")
    event = world.table.register(raw, 0, capable=process.credentials.perfmon)
    file.events.append(event.serial)
    event.references += 1
    return event.index


def _delete(world: World, process: Process, argument: int) -> int:
    """delete_user_event(): fails while a descriptor is open, unlike dynamic_events."""
    for event in world.table.named(copy_string(process, argument)):
        if not event.deletable:
            raise Errno("EBUSY")
        world.delete(event, capable=process.credentials.perfmon)
        return 0
    raise Errno("ENOENT")


# Writing


def _write(world: World, process: Process, file: OpenFile, call: ops.Write | ops.Pwrite) -> int:
    """write(2) and pwrite64(2): the whole buffer is payload."""
    position = call.offset if isinstance(call, ops.Pwrite) else 0
    writing.check_call(file)
    writing.check_range(call.address, call.count)
    writing.check_area(position, call.count)
    # The rest of a longer buffer is not checked (vfs_write).
    count = min(call.count, writing.MAX_RW_COUNT)
    return _write_one(world, process, file, (call.address, count), position)


def _writev(world: World, process: Process, file: OpenFile, call: ops.Writev | ops.Pwritev) -> int:
    """writev(2) and pwritev(2): without write_iter every segment is one write.

    Empty segments after the first are skipped.
    """
    position = call.offset if isinstance(call, ops.Pwritev) else 0
    writing.check_call(file)
    segments = writing.import_vector(world, process, call.address, call.count)
    total = sum(length for _, length in segments)
    if total == 0:
        return 0
    writing.check_area(position, total)
    done = 0
    for number, segment in enumerate(segments):
        if number and not segment[1]:
            continue
        try:
            done += _write_one(world, process, file, segment, position)
        except Errno:
            if not done:
                raise
            break
    return done


def _write_one(
    world: World, process: Process, file: OpenFile, segment: Segment, position: int
) -> int:
    """user_events_write(): the payload is not validated."""
    address, count = segment
    writing.check_range(address, count)
    if position != 0 or count == 0:
        raise Errno("EFAULT")
    if not file.events:
        raise Errno("ENOENT")
    event = world.event(file.events[0])
    if event.is_enabled:
        _record(world, process, event, segment)
    return count


def _record(world: World, process: Process, event: Event, segment: Segment) -> None:
    """Run the probes: each copies the payload, and BPF programs get its address.

    If the copy faults, user_event_ftrace() never commits its record, and user_event_perf() leaves
    its recursion counter raised.
    """
    address, count = segment
    context = rfc_v1.USER_BPF_CONTEXT.pack({"udatalen": count, "udata": address})
    bpf_context.run_attached(world, process, event, bpf_context.Context(context))
    size = grammar.TRACE_ENTRY_SIZE + count
    if event.file.triggers:
        raise NotModelled("triggers of rfc-v1")
    reservations = recording.reserve(world, process, event, size)
    listeners = writing.perf_listeners(world, process, event, size)
    if not reservations and not listeners:
        return
    if process.memory.readable(address, count) < count:
        if process.cpu is None:
            raise NotModelled("a record that is never committed, on some processor")
        for reservation in reservations:
            reservation.instance.stuck_cpus.add(process.cpu)
        if listeners:
            world.perf_stuck_cpus.add(process.cpu)
        return
    if not process.memory.is_known(address, count):
        raise NotModelled("a payload of unknown bytes")
    writing.record(world, process, event, process.memory.read(address, count))


# Operations

Rule = Callable[[World, Process, OpenFile, Any], int]


def _handler(rule: Rule) -> Callable[[World, Process, Any], Answer]:
    """Apply a rule to the data file, and the common rules to other files."""

    def handle(world: World, process: Process, operation: Any) -> Answer:
        if getattr(operation, "offset", 0) < 0:
            raise Errno("EINVAL")
        file = process.file(operation.slot)
        if file.path != files.DATA:
            return file_io.HANDLERS[type(operation)](world, process, operation)
        return Answer(rule(world, process, file, operation))

    return handle


def _read_file(world: World, process: Process, operation: ops.ReadFile) -> Answer:
    answer = text_files.read_file(world, process, operation)
    shows_status = operation.path == files.DYNAMIC_EVENTS and operation.view is not View.DEFINITIONS
    return Answer(None) if shows_status and _has_unknown_status(world) else answer


def _has_unknown_status(world: World) -> bool:
    """Whether the status of an event is not determined: the page was never cleared."""
    page = world.status_page
    return page is not None and not all(page.is_known(e.index) for e in world.table.events)


# Operations that rfc-v1 handles differently.
HANDLERS: Handlers = {
    ops.Ioctl: _handler(_ioctl),
    ops.Write: _handler(_write),
    Write32: _handler(_write),
    ops.Pwrite: _handler(_write),
    ops.Writev: _handler(_writev),
    ops.Pwritev: _handler(_writev),
    ops.ReadFile: _read_file,
}

"""rfc-v1: ioctls, writes and the lines of dynamic_events.

A descriptor refers to one event, and a registration returns an index in the status page.
Source: the patch named in ``conformance/abi/rfc_v1.py``, trace_events_user.c; fs/read_write.c:
vfs_write, do_loop_readv_writev.
"""

from __future__ import annotations

from conformance.abi import grammar, rfc_v1
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.events import Event
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.tracing import recording
from conformance.model.user_events import bpf_context, writing
from conformance.model.user_events.registration import copy_string
from conformance.model.user_events.status_file import USERS
from conformance.model.user_events.writing import Segment


def ioctl(world: World, process: Process, file: OpenFile, request: int, argument: int) -> int:
    """user_events_ioctl(); raises Errno."""
    match request & 0xFFFFFFFF:
        case rfc_v1.DIAG_IOCSREG:
            return _register(world, process, file, argument)
        case rfc_v1.DIAG_IOCSDEL:
            return _delete(world, process, argument)
        case rfc_v1.DIAG_IOCQLOCOFFSET:
            return grammar.TRACE_ENTRY_SIZE
    raise Errno("ENOTTY")


def _register(world: World, process: Process, file: OpenFile, argument: int) -> int:
    """The string is checked before the file, which has room for one event."""
    raw = copy_string(process, argument)
    if file.events:
        raise Errno("EMFILE")
    event = world.table.register(raw, 0, capable=process.capable)
    file.events.append(event.serial)
    event.references += 1
    return event.index


def _delete(world: World, process: Process, argument: int) -> int:
    """delete_user_event(): fails while a descriptor is open, unlike dynamic_events."""
    for event in world.table.named(copy_string(process, argument)):
        if not event.deletable:
            raise Errno("EBUSY")
        world.table.free(event, capable=process.capable)
        world.after_removal(event)
        return 0
    raise Errno("ENOENT")


# Writing

# MAX_RW_COUNT: the rest of a longer buffer is not checked (vfs_write).
_MAX_RW_COUNT = 0x7FFF_F000


def write(
    world: World, process: Process, file: OpenFile, segment: Segment, position: int = 0
) -> int:
    """write(2) and pwrite64(2): the whole buffer is payload."""
    writing.check_call(file, position)
    address, count = segment
    writing.check_range(address, count)
    return _write_one(world, process, file, (address, min(count, _MAX_RW_COUNT)), position)


def writev(
    world: World, process: Process, file: OpenFile, vector: Segment, position: int = 0
) -> int:
    """writev(2) and pwritev(2): without write_iter every segment is one write.

    Empty segments after the first are skipped.
    """
    writing.check_call(file, position)
    segments = writing.import_vector(process, *vector)
    if sum(length for _, length in segments) == 0:
        return 0
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
    given = rfc_v1.USER_BPF_CONTEXT.pack({"udatalen": count, "udata": address})
    bpf_context.run_attached(world, process, event, bpf_context.Context(given))
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


# dynamic_events


def definition_line(world: World, event: Event) -> str:
    """user_event_show(): the fields last first, and the probes.

    A status that is not determined shows no probe; see ``anything_unknown``.
    """
    assert world.status_page is not None
    fields = "".join(f";{field.type} {field.name}" for field in reversed(event.fields))
    status = world.status_page.byte(event.index)
    users = "".join(f" {user}" for bit, user in USERS.items() if status & bit)
    used = f" (Used by{users})" if status else ""
    return f"{rfc_v1.PREFIX}{event.name}{fields}{used}\n"


def anything_unknown(world: World) -> bool:
    """Whether a line depends on a status that is not determined."""
    page = world.status_page
    return page is not None and not all(page.is_known(e.index) for e in world.table.events)

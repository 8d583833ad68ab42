"""write(2) and writev(2) on user_events_data: index, payload, validation, probes.

Source: fs/read_write.c:vfs_write, vfs_writev, rw_verify_area; lib/iov_iter.c:import_iovec;
trace_events_user.c:user_events_write, user_events_write_core, user_event_validate.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from conformance.abi import grammar
from conformance.abi.perf import PERF_MAX_TRACE_SIZE
from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import pages
from conformance.model.state.events import Event
from conformance.model.state.perf_event import PerfEvent
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.trace_instance import Instance, Record
from conformance.model.state.world import World
from conformance.model.tracing import kprobes, recording
from conformance.model.user_events import bpf_context
from conformance.model.user_events.bpf_context import Segment

# struct iovec and struct compat_iovec.
_IOVEC = struct.Struct("<QQ")
_COMPAT_IOVEC = struct.Struct("<II")
_MAX_IOVECS = 1024
_INDEX_SIZE = 4
_U32 = 1 << 32
_U64 = 1 << 64
_LOFF_MAX = (1 << 63) - 1
# include/linux/fs.h: the rest of a longer write is left out.
MAX_RW_COUNT = 0x7FFF_F000
_WITHOUT_WRITE = (os.O_RDONLY, os.O_ACCMODE)
# struct trace_entry: type, flags, preempt count, pid.  Never compared.
_HEADER = bytes(grammar.TRACE_ENTRY_SIZE)


def write(
    world: World, process: Process, file: OpenFile, segment: Segment, position: int = 0
) -> int:
    """write(2) and pwrite64(2) of one buffer."""
    check_call(file)
    address, count = segment
    check_range(address, count)
    check_area(position, count)
    count = min(count, MAX_RW_COUNT)
    kprobes.hit(world, process, address, count)
    if position != 0:
        raise Errno("EFAULT", "the data file is written at offset 0 only")
    return write_core(world, process, file, [(address, count)])


def writev(
    world: World,
    process: Process,
    file: OpenFile,
    vector: Segment,
    position: int = 0,
    *,
    compat: bool = False,
) -> int:
    """writev(2), of a 32-bit task with ``compat``, and pwritev(2).

    ``vector`` is (address, number of iovecs).
    """
    segments = _import_checked(world, process, file, vector, compat=compat)
    total = sum(length for _, length in segments)
    if total == 0:
        return 0
    check_area(position, total)
    # user_events_write_iter() ignores the position: pwritev() works at any offset.
    return write_core(world, process, file, segments)


def _import_checked(
    world: World, process: Process, file: OpenFile, vector: Segment, *, compat: bool
) -> list[Segment]:
    """Check the descriptor and import the iovecs.

    The order of the two checks belongs to fs/read_write.c and has changed.
    """
    try:
        check_call(file)
    except Errno as refused:
        try:
            import_vector(world, process, *vector, compat=compat)
        except Errno as error:
            raise NotModelled(f"a vector with {error.name} on a file with {refused.name}") from None
        raise
    return import_vector(world, process, *vector, compat=compat)


def check_call(file: OpenFile) -> None:
    """The check of vfs_write() before the iterator: the mode."""
    if file.flags & os.O_ACCMODE in _WITHOUT_WRITE:
        raise Errno("EBADF", "the descriptor was not opened for writing")


def check_area(position: int, length: int) -> None:
    """rw_verify_area(): the end of what is written is an offset."""
    if position + length > _LOFF_MAX:
        raise Errno("EINVAL", f"{length} bytes at offset {position} pass the largest offset")


def check_range(address: int, length: int) -> None:
    """access_ok(): addresses outside of the user half are refused, even if not read."""
    if not pages.is_user_range(address, length):
        raise Errno("EFAULT", f"{address:#x} with {length} bytes is not in user space")


def import_vector(
    world: World, process: Process, address: int, count: int, *, compat: bool = False
) -> list[Segment]:
    """import_iovec(): the segments of an array of iovecs, up to MAX_RW_COUNT bytes."""
    # unsigned nr_segs
    count %= _U32
    if count > _MAX_IOVECS:
        raise Errno("EINVAL")
    walked = world.profile.has("iovecs_walked")
    segments = []
    room = MAX_RW_COUNT
    for base, length in _copy_vector(process, address, count, compat=compat, walked=walked):
        # With "iov_iter: import single vector iovecs as ITER_UBUF", of the same release as the
        # switch: import_ubuf() checks what is left of a single one.
        check_range(base, min(length, room) if walked and count == 1 else length)
        segments.append((base, min(length, room)))
        room -= segments[-1][1]
    return segments


def _copy_vector(
    process: Process, address: int, count: int, *, compat: bool, walked: bool
) -> list[Segment]:
    """copy_iovec_from_user(), which copied the whole array at first, and its compat variant."""
    if count == 0:
        return []
    layout = _COMPAT_IOVEC if compat else _IOVEC
    check_range(address, count * layout.size)
    if not walked and not compat:
        process.memory.read(address, count * layout.size)
    segments: list[Segment] = []
    for place in range(address, address + count * layout.size, layout.size):
        base, length = layout.unpack(process.memory.read(place, layout.size))
        if length >> layout.size * 4 - 1:
            raise Errno("EINVAL", "the length of an iovec is negative")
        segments.append((base, length))
    return segments


def write_core(world: World, process: Process, file: OpenFile, segments: Sequence[Segment]) -> int:
    """user_events_write_core(): index, event, payload, probes."""
    total = sum(length for _, length in segments)
    head, rest = _copy_from(process, segments, _INDEX_SIZE)
    index = int.from_bytes(head, "little", signed=True)
    if index < 0:
        if not world.profile.has("negative_index_refused"):
            if not file.events:
                # There is no array of references yet.
                raise Errno("ENOENT", "no event is registered on this descriptor")
            raise NotModelled("a negative index, which reads out of bounds")
        raise Errno("EINVAL", f"the write index is negative: {index}")
    if index >= len(file.events):
        raise Errno("ENOENT", _unregistered(index, len(file.events)))
    event = world.event(file.events[index])
    # A size_t is compared with an int: a negative one is larger than any payload.
    least = event.min_size % _U64
    if total - _INDEX_SIZE < least and world.profile.has("payload_size_checked"):
        reason = (
            f"the payload has {total - _INDEX_SIZE} bytes, the fields of {event.name} need {least}"
        )
        raise Errno("EINVAL", reason)
    if not event.is_enabled:
        if world.profile.has("ebadf_when_disabled"):
            raise Errno("EBADF", f"{event.name} is not enabled: test its bit before writing")
        return total
    if world.profile.has("unreadable_payload_refused"):
        payload, _ = _copy_from(process, rest, total - _INDEX_SIZE)
    else:
        payload = _readable(process, rest)
    bpf_context.run_programs(world, process, event, segments, _INDEX_SIZE, payload)
    record(world, process, event, payload)
    return total


def _unregistered(index: int, count: int) -> str:
    """Why an index is refused."""
    if not count:
        return "no event is registered on this descriptor"
    last = f"0 to {count - 1}" if count > 1 else "0"
    return f"write index {index} is not registered on this descriptor, which has {last}"


def _readable(process: Process, segments: Sequence[Segment]) -> bytes:
    """copy_from_iter(): the bytes up to the first fault."""
    taken = b""
    for base, length in segments:
        reach = process.memory.readable(base, length)
        taken += process.memory.read(base, reach)
        if reach < length:
            break
    return taken


def _copy_from(
    process: Process, segments: Sequence[Segment], count: int
) -> tuple[bytes, list[Segment]]:
    """The first ``count`` bytes of the segments, and the remaining segments."""
    taken = b""
    rest: list[Segment] = []
    for base, length in segments:
        part = min(length, count - len(taken))
        taken += process.memory.read(base, part)
        rest.append((base + part, length - part))
    if len(taken) < count:
        raise Errno("EFAULT", f"{count} bytes are needed, {len(taken)} were written")
    return taken, rest


def record(world: World, process: Process, event: Event, payload: bytes) -> None:
    """Pass the payload to every probe; a probe that fails makes the whole write fail.

    The payload is copied and validated only for probes that have room for the record.
    """
    raw = _HEADER + payload
    reservations = recording.reserve(world, process, event, len(raw))
    listeners = perf_listeners(world, process, event, len(raw))
    if not reservations and not listeners:
        return
    if not payload and not world.profile.has("empty_payload"):
        # A copy of no bytes counted as a failed copy.
        raise Errno("EFAULT")
    if world.profile.has("dynamic_fields_validated"):
        _validate(event, raw, world.profile)
    entry = Record(event.id, raw, process.tid, process.cpu)
    for reservation in reservations:
        recording.commit(world, reservation, entry, stuck=_is_stuck(reservation.instance, process))
    for listener in listeners:
        listener.deliver(raw)


def _is_stuck(instance: Instance, process: Process) -> bool:
    """Whether an earlier reservation was never committed (rb_end_commit)."""
    if instance.stuck_cpus and process.cpu is None:
        raise NotModelled("a write on any processor, and an uncommitted record on one")
    return process.cpu in instance.stuck_cpus


def perf_listeners(world: World, process: Process, event: Event, size: int) -> list[PerfEvent]:
    """user_event_perf(): the perf events on this processor that get the record."""
    if not world.profile.has("perf_sink"):
        return []
    found = [
        each for each in world.perf_events if each.source == event.serial and each.follows(process)
    ]
    if size > PERF_MAX_TRACE_SIZE:
        # Dropped; kernels with perf-warns-on-long-record also warn.
        return []
    if found and world.perf_stuck_cpus:
        if process.cpu is None:
            raise NotModelled("a write on any processor, and perf stuck on one")
        # perf_trace_buf_alloc() takes the write for a recursive one.
        return [] if process.cpu in world.perf_stuck_cpus else found
    return found


def _validate(event: Event, record: bytes, profile: Profile) -> None:
    """user_event_validate(): dynamic data lies within the record, strings end with NUL."""
    for field in event.fields:
        if not field.is_location:
            continue
        if not grammar.TRACE_ENTRY_SIZE <= field.offset <= len(record) - grammar.LOCATION_SIZE:
            raise NotModelled("a dynamic field outside of the payload, as offsets wrap")
        start, size = field.located(record)
        end = start + size
        if end > len(record):
            reason = f"the data of {field.name} end at byte {end} of a record of {len(record)}"
            raise Errno("EFAULT", reason)
        if not size and profile.fixed("empty-dynamic-string"):
            continue
        if "char" in field.type:
            if end <= grammar.TRACE_ENTRY_SIZE:
                raise NotModelled("a string that ends within or before the common fields")
            if record[end - 1] != 0:
                raise Errno("EFAULT", f"the string of {field.name} does not end with NUL")

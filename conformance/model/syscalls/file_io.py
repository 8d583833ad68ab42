"""Operations on descriptors: open, close, dup, ioctl, read, write, lseek, and io_uring.

Source of the 32-bit entry: fs/ioctl.c:compat_sys_ioctl; of writes through io_uring: io_uring/rw.c:
io_write, io_rw_init_file, io_kiocb_update_pos; lib/iov_iter.c.
"""

from __future__ import annotations

import os
from dataclasses import replace

from conformance import ops
from conformance.abi.perf import PERF_EVENT_IOC_SET_BPF
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.perf_event import perf_event_of
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls import lifecycle, perf, sockets
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import descriptors, dynamic_events, event_paths, files
from conformance.model.user_events import registration, writing
from conformance.ops.compat import Ioctl32, Read32, Write32, Writev32

# uapi/asm-generic/ioctl.h, and sizes of pointers.
_IOC_SIZE_SHIFT = 16
_IOC_SIZE_MASK = 0x3FFF
_POINTER = 8
_COMPAT_POINTER = 4
# The offset of a write through io_uring at the position of the file.
_HERE = -1


def _open(world: World, process: Process, operation: ops.Open) -> Answer:
    lifecycle.check_room(process)
    if operation.flags & os.O_ACCMODE == os.O_ACCMODE and operation.path != files.DATA:
        raise NotModelled(f"opening {operation.path} with O_ACCMODE")
    files.check_open(world, process, operation.path, operation.flags)
    file = OpenFile(operation.path, operation.flags)
    event = event_paths.event_at(world, operation.path)
    file.event = None if event is None else event.serial
    process.slots[operation.slot] = file
    return Answer(0)


def _close(world: World, process: Process, operation: ops.Close) -> Answer:
    file = process.file(operation.slot)
    del process.slots[operation.slot]
    process.closed_slots.add(operation.slot)
    world.close(file)
    return Answer(0)


def _dup(world: World, process: Process, operation: ops.Dup) -> Answer:
    process.slots[operation.new_slot] = process.file(operation.slot)
    return Answer(0)


def _store_descriptor(world: World, process: Process, operation: ops.StoreDescriptor) -> Answer:
    number = process.fd_of(operation.slot).to_bytes(4, "little")
    process.memory.store(operation.address, number)
    return Answer(len(number))


def _ioctl(world: World, process: Process, operation: ops.Ioctl) -> Answer:
    file = process.file(operation.slot)
    event = perf_event_of(file)
    if event is not None:
        answer = perf.ioctl(world, process, event, operation.request, operation.argument)
        return Answer(answer)
    if file.object is None:
        registration.check_request(operation.request)
    if file.path != files.DATA:
        # Neither user_events_status nor the other files of tracefs have an ioctl.
        raise Errno("ENOTTY")
    request, argument = operation.request, operation.argument
    return Answer(registration.ioctl(world, process, file, request, argument))


def _ioctl_descriptor(world: World, process: Process, operation: ops.IoctlDescriptor) -> Answer:
    event = perf_event_of(process.file(operation.slot))
    if event is None or operation.request != PERF_EVENT_IOC_SET_BPF:
        raise NotModelled(f"ioctl {operation.request:#x} with a descriptor")
    return Answer(perf.set_program(world, process, event, operation.argument_slot))


def _read(world: World, process: Process, operation: ops.Read) -> Answer:
    file = process.file(operation.slot)
    if isinstance(file.object, sockets.Socket):
        datagram = file.object.receive(operation.count)
        return Answer(len(datagram), "", datagram)
    event = perf_event_of(file)
    if event is not None:
        count = perf.read(event, operation.count)
        return Answer(len(count), "", count)
    _refuse_anonymous(file)
    if file.flags & os.O_ACCMODE in (os.O_WRONLY, os.O_ACCMODE):
        raise Errno("EBADF")
    if file.path in (files.DATA, files.MMAP):
        raise Errno("EINVAL")
    data = descriptors.read(world, file, operation.count)
    return Answer(len(data), "", data)


def _refuse_anonymous(file: OpenFile) -> None:
    """Refuse read(2) and write(2) of BPF maps and programs, and write(2) of a perf event.

    Source: bpf_dummy_read(), bpf_dummy_write(); perf_fops has no write.
    """
    if file.object is not None:
        raise Errno("EINVAL")


def _write(world: World, process: Process, operation: ops.Write) -> Answer:
    file = process.file(operation.slot)
    if isinstance(file.object, sockets.Socket):
        datagram = process.memory.read(operation.address, operation.count)
        return Answer(file.object.send(datagram))
    _refuse_anonymous(file)
    if file.path == files.DYNAMIC_EVENTS and file.flags & os.O_ACCMODE != os.O_RDONLY:
        reach = process.memory.readable(operation.address, operation.count)
        commands = process.memory.read(operation.address, reach).decode("latin-1")
        count = dynamic_events.run_commands(world, process, commands, operation.count)
        return Answer(count)
    if descriptors.control_at(world, file.path) and file.flags & os.O_ACCMODE != os.O_RDONLY:
        text = process.memory.read(operation.address, operation.count)
        return Answer(descriptors.write(world, file, text.decode("latin-1")))
    segment = (operation.address, operation.count)
    return Answer(writing.write(world, process, _data_file(world, file), segment))


def _pwrite(world: World, process: Process, operation: ops.Pwrite) -> Answer:
    if operation.offset < 0:
        raise Errno("EINVAL")
    file = _data_file(world, process.file(operation.slot))
    segment = (operation.address, operation.count)
    return Answer(writing.write(world, process, file, segment, operation.offset))


def _writev(world: World, process: Process, operation: ops.Writev | ops.Pwritev) -> Answer:
    if isinstance(operation, ops.Pwritev) and operation.offset < 0:
        raise Errno("EINVAL")
    file = _data_file(world, process.file(operation.slot))
    vector = (operation.address, operation.count)
    position = operation.offset if isinstance(operation, ops.Pwritev) else 0
    return Answer(writing.writev(world, process, file, vector, position))


def _data_file(world: World, file: OpenFile) -> OpenFile:
    """A file that is written.  Raises Errno, NotModelled unless it is user_events_data."""
    if file.path != files.DATA:
        if file.flags & os.O_ACCMODE == os.O_RDONLY:
            raise Errno("EBADF")
        if file.path == files.page_file(world):
            # Neither user_status_fops nor user_events_mmap_fops has a write.
            raise Errno("EINVAL")
        raise NotModelled(f"writing a descriptor of {file.path}")
    return file


def _lseek(world: World, process: Process, operation: ops.Lseek) -> Answer:
    file = process.file(operation.slot)
    if not 0 <= operation.whence <= os.SEEK_HOLE:
        raise Errno("EINVAL")
    if file.path in (files.DATA, files.MMAP):
        # Neither user_data_fops nor user_events_mmap_fops has a llseek.
        raise Errno("ESPIPE")
    return Answer(descriptors.seek(world, file, operation.offset, operation.whence))


def _submit_write(world: World, process: Process, operation: ops.SubmitWrite) -> Answer:
    """The result of a completion.

    All forms call user_events_write_iter(), even for no bytes.
    Negative offsets other than -1 are refused.
    """
    file = process.file(operation.slot)
    if file.path != files.DATA:
        raise NotModelled(f"io_uring on {file.path}")
    segments = [(operation.address, min(operation.count, writing.MAX_RW_COUNT))]
    if operation.vector:
        segments = writing.import_vector(world, process, operation.address, operation.count)
    else:
        writing.check_range(*segments[0])
    writing.check_call(file)
    if operation.offset < 0 and operation.offset != _HERE:
        raise Errno("EINVAL")
    writing.check_area(operation.offset, sum(length for _, length in segments))
    if any(event.inherit and process in event.tasks for event in world.perf_events):
        raise NotModelled("a worker of io_uring, which is a thread of a task that perf follows")
    # A worker thread of io_uring writes to a regular file, on any processor.
    worker = replace(process, tid="", cpu=None)
    return Answer(writing.write_core(world, worker, file, segments))


# The 32-bit entry


def _ioctl32(world: World, process: Process, operation: Ioctl32) -> Answer:
    """compat_sys_ioctl(): files of user_events have no compat_ioctl.

    Without the bug the data file has the ioctl of 64-bit tasks.
    """
    file = process.file(operation.slot)
    if file.object is not None:
        raise NotModelled("a 32-bit ioctl of a file without a path")
    registration.check_request(operation.request)
    if file.path != files.DATA or not world.profile.fixed("compat-ioctl"):
        raise Errno("ENOTTY", "this file has no ioctl for 32-bit programs")
    request = operation.request
    if request >> _IOC_SIZE_SHIFT & _IOC_SIZE_MASK == _COMPAT_POINTER:
        request += (_POINTER - _COMPAT_POINTER) << _IOC_SIZE_SHIFT
    argument = operation.argument & 0xFFFFFFFF
    return Answer(registration.ioctl(world, process, file, request, argument))


def _writev32(world: World, process: Process, operation: Writev32) -> Answer:
    """writev(2) with 32-bit iovecs."""
    file = process.file(operation.slot)
    if file.path != files.DATA:
        raise NotModelled(f"writev of {file.path}")
    vector = (operation.address, operation.count)
    return Answer(writing.writev(world, process, file, vector, compat=True))


HANDLERS: Handlers = {
    ops.Open: _open,
    ops.Close: _close,
    ops.Dup: _dup,
    ops.StoreDescriptor: _store_descriptor,
    ops.Ioctl: _ioctl,
    Ioctl32: _ioctl32,
    ops.IoctlDescriptor: _ioctl_descriptor,
    ops.Read: _read,
    Read32: _read,
    ops.Write: _write,
    Write32: _write,
    ops.Pwrite: _pwrite,
    ops.Writev: _writev,
    ops.Pwritev: _writev,
    ops.SubmitWrite: _submit_write,
    Writev32: _writev32,
    ops.Lseek: _lseek,
}

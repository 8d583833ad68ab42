"""One handler per operation: what a single state of the modelled system answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import errorcode
from typing import Any

from conformance.abi.perf import PERF_EVENT_IOC_SET_BPF
from conformance.abi.profile import Generation
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled, RawReturn
from conformance.model.historical import rfc_v1
from conformance.model.state.perf_event import perf_event_of
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls import (
    bpf,
    credentials,
    io_uring,
    lifecycle,
    mapping,
    perf,
    races,
    sockets,
)
from conformance.model.tracefs import (
    descriptors,
    directories,
    dynamic_events,
    enabling,
    files,
    trace_pipe,
)
from conformance.model.tracing import instances
from conformance.model.user_events import registration, writing
from conformance.ops import syscalls as op
from conformance.ops.decoding import file_views, perf_ring
from conformance.ops.race import Add
from conformance.ops.syscalls import View
from conformance.ops.tasks import Read32, Write32

# An `id` as the model as a kernel has it: with few behind it.
_SOME_ID = b"65000\n"


def perform(world: World, operation: op.Operation) -> Answer:
    """Apply an operation to one state and return that state's answer.

    Raises NotModelled for what the model does not know.
    """
    handler = _HANDLERS.get(type(operation))
    if handler is None:
        raise NotModelled(f"operation {type(operation).__name__}")
    lifecycle.check_awake(world, operation)
    try:
        return handler(world, credentials.enter(world, operation))
    except Errno as error:
        return Answer(-1, error.name)
    except RawReturn as returned:
        return _raw_answer(returned.value)


def _raw_answer(value: int) -> Answer:
    """How the C library shows a raw return value: -1 to -4095 are error numbers."""
    if -4096 < value < 0:
        return Answer(-1, errorcode.get(-value, f"errno {-value}"))
    return Answer(value)


def _spawn(world: World, operation: op.Spawn) -> Answer:
    world.processes[operation.actor] = Process()
    return Answer(None)


def _fork(world: World, operation: op.Fork) -> Answer:
    parent = world.process(operation.actor)
    if parent.pid_namespace_for_children is not parent.pid_namespace:
        raise NotModelled("fork(2) into another PID namespace")
    child = parent.task_with(parent.memory.fork(), dict(parent.slots))
    if parent.enablers is not None:
        # user_event_mm_dup(): bit and address are copied, each with a reference.
        child.enablers = [
            world.duplicate(enabler) for enabler in parent.enablers if not enabler.freeing
        ]
    for event in world.perf_events:
        if event.inherit and parent in event.tasks:
            event.tasks.append(child)
    world.processes[operation.child] = child
    return Answer(None)


def _setuid(world: World, operation: op.Setuid) -> Answer:
    who = world.process(operation.actor).credentials
    who.become(operation.uid, operation.uid, (), keep=False)
    return Answer(0)


def _open(world: World, operation: op.Open) -> Answer:
    process = world.process(operation.actor)
    lifecycle.check_room(process)
    files.check_open(world, process, operation.path, operation.flags)
    file = OpenFile(operation.path, operation.flags)
    event = files.event_at(world, operation.path)
    file.event = None if event is None else event.serial
    process.slots[operation.slot] = file
    return Answer(0)


def _close(world: World, operation: op.Close) -> Answer:
    process = world.process(operation.actor)
    file = process.file(operation.slot)
    del process.slots[operation.slot]
    process.closed_slots.add(operation.slot)
    world.close(file)
    return Answer(0)


def _dup(world: World, operation: op.Dup) -> Answer:
    process = world.process(operation.actor)
    process.slots[operation.new_slot] = process.file(operation.slot)
    return Answer(0)


def _is_rfc(world: World) -> bool:
    """Whether the data file is that of the first version."""
    return world.profile.generation is Generation.RFC_V1


def _ioctl(world: World, operation: op.Ioctl) -> Answer:
    process = world.process(operation.actor)
    file = process.file(operation.slot)
    event = perf_event_of(file)
    if event is not None:
        answer = perf.ioctl(world, process, event, operation.request, operation.argument)
        return Answer(answer)
    if file.path != files.DATA:
        # Neither user_events_status nor the other files of tracefs have an ioctl.
        raise Errno("ENOTTY")
    ioctl = rfc_v1.ioctl if _is_rfc(world) else registration.ioctl
    return Answer(ioctl(world, process, file, operation.request, operation.argument))


def _ioctl_descriptor(world: World, operation: op.IoctlDescriptor) -> Answer:
    process = world.process(operation.actor)
    event = perf_event_of(process.file(operation.slot))
    if event is None or operation.request != PERF_EVENT_IOC_SET_BPF:
        raise NotModelled(f"ioctl {operation.request:#x} with a descriptor")
    return Answer(perf.set_program(world, process, event, operation.argument_slot))


def _read(world: World, operation: op.Read) -> Answer:
    file = world.process(operation.actor).file(operation.slot)
    if isinstance(file.object, sockets.Socket):
        datagram = file.object.receive(operation.count)
        return Answer(len(datagram), "", datagram)
    event = perf_event_of(file)
    if event is not None:
        count = perf.read(event, operation.count)
        return Answer(len(count), "", count)
    _refuse_nameless(file)
    if file.flags & os.O_ACCMODE == os.O_WRONLY:
        raise Errno("EBADF")
    if file.path in (files.DATA, files.MMAP):
        raise Errno("EINVAL")
    data = descriptors.read(world, file, operation.count)
    return Answer(len(data), "", data)


def _refuse_nameless(file: OpenFile) -> None:
    """bpf_dummy_read(), bpf_dummy_write(): maps and programs are opened for both, in vain.

    perf_fops has no write at all.
    """
    if file.object is not None:
        raise Errno("EINVAL")


def _data_file(world: World, actor: str, slot: int) -> tuple[Process, OpenFile]:
    process = world.process(actor)
    file = process.file(slot)
    if file.path != files.DATA:
        if file.flags & os.O_ACCMODE == os.O_RDONLY:
            raise Errno("EBADF")
        if file.path == files.page_file(world):
            # user_status_fops has no write, nor has user_events_mmap_fops.
            raise Errno("EINVAL")
        raise NotModelled(f"writing a descriptor of {file.path}")
    return process, file


def _write(world: World, operation: op.Write) -> Answer:
    process = world.process(operation.actor)
    file = process.file(operation.slot)
    if isinstance(file.object, sockets.Socket):
        datagram = process.memory.read(operation.address, operation.count)
        return Answer(file.object.send(datagram))
    _refuse_nameless(file)
    if file.path == files.DYNAMIC_EVENTS and file.flags & os.O_ACCMODE != os.O_RDONLY:
        reach = process.memory.readable(operation.address, operation.count)
        commands = process.memory.read(operation.address, reach).decode("latin-1")
        run = dynamic_events.run_commands
        return Answer(run(world, process, commands, operation.count))
    to_be_set = descriptors.is_switch(world, file.path) or descriptors.is_filter(world, file.path)
    if to_be_set and file.flags & os.O_ACCMODE != os.O_RDONLY:
        text = process.memory.read(operation.address, operation.count)
        return Answer(descriptors.write(world, file, text.decode("latin-1")))
    process, file = _data_file(world, operation.actor, operation.slot)
    segment = (operation.address, operation.count)
    write = rfc_v1.write if _is_rfc(world) else writing.write
    return Answer(write(world, process, file, segment))


def _pwrite(world: World, operation: op.Pwrite) -> Answer:
    if operation.offset < 0:
        raise Errno("EINVAL")
    process, file = _data_file(world, operation.actor, operation.slot)
    segment = (operation.address, operation.count)
    write = rfc_v1.write if _is_rfc(world) else writing.write
    return Answer(write(world, process, file, segment, operation.offset))


def _writev(world: World, operation: op.Writev) -> Answer:
    process, file = _data_file(world, operation.actor, operation.slot)
    vector = (operation.address, operation.count)
    writev = rfc_v1.writev if _is_rfc(world) else writing.writev
    return Answer(writev(world, process, file, vector))


def _pwritev(world: World, operation: op.Pwritev) -> Answer:
    if operation.offset < 0:
        raise Errno("EINVAL")
    process, file = _data_file(world, operation.actor, operation.slot)
    vector = (operation.address, operation.count)
    writev = rfc_v1.writev if _is_rfc(world) else writing.writev
    return Answer(writev(world, process, file, vector, operation.offset))


def _lseek(world: World, operation: op.Lseek) -> Answer:
    file = world.process(operation.actor).file(operation.slot)
    if file.path in (files.DATA, files.MMAP):
        # user_data_fops has no llseek, nor had user_events_mmap_fops.
        raise Errno("ESPIPE")
    return Answer(descriptors.seek(world, file, operation.offset, operation.whence))


def _store(world: World, operation: op.Store) -> Answer:
    world.process(operation.actor).memory.store(operation.address, operation.data)
    return Answer(len(operation.data))


def _store_number(world: World, operation: op.StoreNumber) -> Answer:
    process = world.process(operation.actor)
    raw = files.number(world, process, operation.path).to_bytes(8, "little")
    process.memory.write(operation.address, raw)
    return Answer(len(raw))


def _pin(world: World, operation: op.Pin) -> Answer:
    world.process(operation.actor).cpu = operation.cpu
    return Answer(0)


def _perf_event_open(world: World, operation: op.PerfEventOpen) -> Answer:
    process = world.process(operation.actor)
    process.slots[operation.slot] = perf.open_event(world, process, operation)
    return Answer(0)


def _read_ring(world: World, operation: op.ReadRing) -> Answer:
    memory = world.process(operation.actor).memory
    mapping = memory.read(operation.address, operation.length)
    text = perf_ring.shown(mapping, operation.sample_type)
    return Answer(operation.length, "", text.encode())


def _load(world: World, operation: op.Load) -> Answer:
    memory = world.process(operation.actor).memory
    data = memory.read(operation.address, operation.length)
    if memory.is_unspecified(operation.address, operation.length):
        return Answer(operation.length, example=data)
    known = memory.is_known(operation.address, operation.length)
    return Answer(operation.length, "", data if known else None)


def _read_file(world: World, operation: op.ReadFile) -> Answer:
    text = files.read(world, world.process(operation.actor), operation.path)
    if files.is_first_id(world, operation.path):
        return Answer(None, example=_SOME_ID)
    if text is None:
        return Answer(None, example=files.example(world, operation.path))
    if _says_too_much(world, operation):
        return Answer(None)
    if operation.view is View.EXACT and files.shows_id(world, operation.path):
        raise NotModelled(f"the ID in {operation.path}: read it with a view without it")
    return Answer(None, "", file_views.read(operation, text))


def _says_too_much(world: World, operation: op.ReadFile) -> bool:
    """Whether the text shows bytes of the status page that nobody knows."""
    shown = operation.path == files.DYNAMIC_EVENTS and operation.view is not View.DEFINITIONS
    return shown and _is_rfc(world) and rfc_v1.anything_unknown(world)


def _write_file(world: World, operation: op.WriteFile) -> Answer:
    process = world.process(operation.actor)
    return Answer(files.write(world, process, operation.path, operation.data, operation.flags))


def _stat(world: World, operation: op.Stat) -> Answer:
    return Answer(credentials.attributes(world, operation.path).mode)


def _store_descriptor(world: World, operation: op.StoreDescriptor) -> Answer:
    process = world.process(operation.actor)
    number = process.fd_of(operation.slot).to_bytes(4, "little")
    process.memory.store(operation.address, number)
    return Answer(len(number))


_HANDLERS: dict[type[op.Operation], Callable[[World, Any], Answer]] = {
    op.Spawn: _spawn,
    op.Fork: _fork,
    op.Exit: lifecycle.exit_group,
    op.Setuid: _setuid,
    op.Open: _open,
    op.Close: _close,
    op.Dup: _dup,
    op.Ioctl: _ioctl,
    op.IoctlDescriptor: _ioctl_descriptor,
    op.PerfEventOpen: _perf_event_open,
    op.Pin: _pin,
    op.ReadRing: _read_ring,
    op.StoreNumber: _store_number,
    op.Read: _read,
    op.Write: _write,
    op.Pwrite: _pwrite,
    op.Writev: _writev,
    op.Pwritev: _pwritev,
    op.Lseek: _lseek,
    op.Store: _store,
    op.Load: _load,
    op.ReadFile: _read_file,
    op.WriteFile: _write_file,
    op.Stat: _stat,
    op.Bpf: bpf.bpf,
    op.StoreDescriptor: _store_descriptor,
    op.Socketpair: sockets.socketpair,
    op.Setsockopt: sockets.setsockopt,
    **trace_pipe.HANDLERS,
    **instances.HANDLERS,
    **enabling.HANDLERS,
    **io_uring.HANDLERS,
    # What 32-bit tasks do alike.
    Read32: _read,
    Write32: _write,
    Add: races.add,
    **lifecycle.HANDLERS,
    **mapping.HANDLERS,
    **credentials.HANDLERS,
    **directories.HANDLERS,
}

"""Non-blocking AF_UNIX datagram sockets and their BPF filters.

Source: net/unix/af_unix.c:unix_dgram_sendmsg; net/core/filter.c:sk_filter_trim_cap, sk_attach_bpf;
net/core/scm.c.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from socket import SOL_SOCKET

from conformance import ops
from conformance.abi.bpf import ProgramType
from conformance.model.answers import Answer
from conformance.model.bpf.programs import Program
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers

_SO_ATTACH_BPF = 50
# net.unix.max_dgram_qlen: the length of the queue.
_MAX_QUEUE = 10
_MAX_DATAGRAM = 4096


@dataclass(slots=True, eq=False)
class Socket:
    """One end of a pair: the queued datagrams and the filter."""

    waiting: list[bytes] = field(default_factory=list)
    filter: Program | None = None
    peer: Socket | None = None

    def receive(self, count: int) -> bytes:
        """The first datagram, truncated to ``count`` bytes.  Raises Errno."""
        if not self.waiting:
            raise Errno("EAGAIN")
        return self.waiting.pop(0)[:count]

    def send(self, datagram: bytes) -> int:
        """Pass a datagram through the filter of the peer, which truncates or drops it."""
        assert self.peer is not None
        if len(datagram) > _MAX_DATAGRAM or len(self.peer.waiting) >= _MAX_QUEUE:
            raise NotModelled("a datagram that exceeds the queue")
        self.peer.take(datagram)
        return len(datagram)

    def take(self, datagram: bytes) -> None:
        """Filter and queue a datagram."""
        if self.filter is None:
            self.waiting.append(datagram)
            return
        # The filter gets the first member of struct __sk_buff, the length.
        length = self.filter.run(len(datagram).to_bytes(4, "little")) & 0xFFFFFFFF
        if length:
            self.waiting.append(datagram[:length])


def socketpair(world: World, process: Process, operation: ops.Socketpair) -> Answer:
    """socketpair(2)."""
    one, other = Socket(), Socket()
    one.peer, other.peer = other, one
    process.slots[operation.slot] = OpenFile("socket:", os.O_RDWR, object=one)
    process.slots[operation.other_slot] = OpenFile("socket:", os.O_RDWR, object=other)
    return Answer(0)


def setsockopt(world: World, process: Process, operation: ops.Setsockopt) -> Answer:
    """setsockopt(2) of SO_ATTACH_BPF.  Raises Errno, NotModelled."""
    socket = _socket(process, operation.slot)
    if (operation.level, operation.option) != (SOL_SOCKET, _SO_ATTACH_BPF):
        raise NotModelled(f"option {operation.option} of level {operation.level}")
    if operation.length < 4:
        raise Errno("EINVAL")
    number = int.from_bytes(process.memory.read(operation.address, 4), "little")
    if operation.length != 4:
        raise Errno("EINVAL")
    socket.filter = _program(process, number)
    return Answer(0)


def _socket(process: Process, slot: int) -> Socket:
    found = process.file(slot).object
    if not isinstance(found, Socket):
        raise Errno("ENOTSOCK")
    return found


def _program(process: Process, number: int) -> Program:
    """bpf_prog_get_type() of a socket filter."""
    program = process.file(process.slot_of_fd(number)).object
    if not isinstance(program, Program) or program.kind is not ProgramType.SOCKET_FILTER:
        raise Errno("EINVAL")
    return program


# Descriptors


def send_descriptor(world: World, process: Process, operation: ops.SendDescriptor) -> Answer:
    """sendmsg(2) with SCM_RIGHTS: queues the file at the peer."""
    socket = _socket(process, operation.slot)
    passed = process.file(operation.passed)
    peer = _end_of(world, socket.peer)
    peer.queued.append(passed)
    return Answer(1)


def receive_descriptor(world: World, process: Process, operation: ops.ReceiveDescriptor) -> Answer:
    """recvmsg(2): the first queued file."""
    _socket(process, operation.slot)
    file = process.file(operation.slot)
    if not file.queued:
        raise Errno("EAGAIN")
    process.slots[operation.new_slot] = file.queued.pop(0)
    return Answer(0)


def _end_of(world: World, socket: Socket | None) -> OpenFile:
    for file in world.open_files:
        if file.object is socket:
            return file
    raise Errno("ECONNREFUSED")


HANDLERS: Handlers = {
    ops.Socketpair: socketpair,
    ops.Setsockopt: setsockopt,
    ops.SendDescriptor: send_descriptor,
    ops.ReceiveDescriptor: receive_descriptor,
}

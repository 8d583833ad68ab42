"""Non-blocking AF_UNIX datagram sockets and their BPF filters.

Source: net/unix/af_unix.c:unix_dgram_sendmsg; net/core/filter.c:sk_filter_trim_cap, sk_attach_bpf.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance import ops
from conformance.abi.bpf import ProgramType
from conformance.model.answers import Answer
from conformance.model.bpf.programs import Program
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers

SOL_SOCKET = 1
SO_ATTACH_BPF = 50
# net.unix.max_dgram_qlen: the length of the queue.
_MAX_QUEUE = 10
_MAX_DATAGRAM = 4096
_O_RDWR = 2


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
    process.slots[operation.slot] = OpenFile("socket:", _O_RDWR, object=one)
    process.slots[operation.other_slot] = OpenFile("socket:", _O_RDWR, object=other)
    return Answer(0)


def setsockopt(world: World, process: Process, operation: ops.Setsockopt) -> Answer:
    """setsockopt(2) of SO_ATTACH_BPF.  Raises Errno, NotModelled."""
    socket = process.file(operation.slot).object
    if not isinstance(socket, Socket):
        raise Errno("ENOTSOCK")
    if (operation.level, operation.option) != (SOL_SOCKET, SO_ATTACH_BPF):
        raise NotModelled(f"option {operation.option} of level {operation.level}")
    if operation.length < 4:
        raise Errno("EINVAL")
    number = int.from_bytes(process.memory.read(operation.address, 4), "little")
    if operation.length != 4:
        raise Errno("EINVAL")
    socket.filter = _program(process, number)
    return Answer(0)


def _program(process: Process, number: int) -> Program:
    """bpf_prog_get_type() of a socket filter."""
    program = process.file(process.slot_of_fd(number)).object
    if not isinstance(program, Program) or program.kind is not ProgramType.SOCKET_FILTER:
        raise Errno("EINVAL")
    return program


HANDLERS: Handlers = {ops.Socketpair: socketpair, ops.Setsockopt: setsockopt}

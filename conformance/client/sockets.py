"""A pair of datagram sockets, of which programs filter what arrives."""

from __future__ import annotations

from dataclasses import dataclass

from conformance import ops
from conformance.client.addresses import BUFFER, PAGE, STRUCT
from conformance.client.bpf_program import Program
from conformance.client.process import Process
from conformance.ops import Observation

_SOL_SOCKET = 1
_SO_ATTACH_BPF = 50


@dataclass(frozen=True, slots=True)
class SocketPair:
    """Two sockets: what one is given the other gets."""

    process: Process
    slot: int
    other: int

    def reversed(self) -> SocketPair:
        """The same in the other direction."""
        return SocketPair(self.process, self.other, self.slot)

    def attach(self, program: Program) -> Observation:
        """SO_ATTACH_BPF: a filter for what arrives at the second one."""
        actor = self.process.actor
        self.process.queue(ops.StoreDescriptor(actor, STRUCT, program.slot))
        return self.set_option(STRUCT, 4)

    def set_option(self, address: int, length: int) -> Observation:
        """setsockopt(2) of SO_ATTACH_BPF with an address of one's own."""
        operation = ops.Setsockopt(
            self.process.actor, self.other, _SOL_SOCKET, _SO_ATTACH_BPF, address, length
        )
        return self.process.run(operation)

    def send(self, datagram: bytes) -> Observation:
        """write(2) to the first one."""
        actor = self.process.actor
        self.process.queue(ops.Store(actor, BUFFER, datagram))
        return self.process.run(ops.Write(actor, self.slot, BUFFER, len(datagram)))

    def receive(self) -> Observation:
        """read(2) from the second one."""
        return self.process.run(ops.Read(self.process.actor, self.other, PAGE))

    def pass_through(self, datagram: bytes) -> bytes | None:
        """What arrives of a datagram; None where nothing does."""
        self.send(datagram)
        return self.receive().data

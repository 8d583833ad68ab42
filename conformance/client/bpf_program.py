"""Loaded eBPF programs, the verifier's log buffer, and sockets that filter with a program."""

from __future__ import annotations

import socket

from msgspec import Struct

from conformance import ops
from conformance.client.addresses import BUFFER, PAGE, STRUCT
from conformance.client.process import Process
from conformance.ops import Observation

_SO_ATTACH_BPF = 50


class LogBuffer(Struct, frozen=True):
    """Buffer of the verifier's log."""

    level: int = 1
    size: int = 0
    address: int = 0


class Program(Struct, frozen=True):
    """Result of BPF_PROG_LOAD."""

    loaded: Observation
    slot: int

    @property
    def errno(self) -> str:
        """Name of the error, "" on success."""
        return self.loaded.errno


class SocketPair(Struct, frozen=True):
    """Two connected sockets."""

    process: Process
    slot: int
    other: int

    def reversed(self) -> SocketPair:
        """The pair in the other direction."""
        return SocketPair(self.process, self.other, self.slot)

    def attach(self, program: Program) -> Observation:
        """SO_ATTACH_BPF: filter what the second socket receives."""
        actor = self.process.actor
        self.process.queue(ops.StoreDescriptor(actor, STRUCT, program.slot))
        return self.set_option(STRUCT, 4)

    def set_option(self, address: int, length: int) -> Observation:
        """setsockopt(2) of SO_ATTACH_BPF with a raw address."""
        operation = ops.Setsockopt(
            self.process.actor, self.other, socket.SOL_SOCKET, _SO_ATTACH_BPF, address, length
        )
        return self.process.run(operation)

    def send(self, datagram: bytes) -> Observation:
        """write(2) to the first socket."""
        actor = self.process.actor
        self.process.queue(ops.Store(actor, BUFFER, datagram))
        return self.process.run(ops.Write(actor, self.slot, BUFFER, len(datagram)))

    def receive(self) -> Observation:
        """read(2) from the second socket."""
        return self.process.run(ops.Read(self.process.actor, self.other, PAGE))

    def pass_through(self, datagram: bytes) -> bytes | None:
        """Send a datagram; return what arrives, None if nothing does."""
        self.send(datagram)
        return self.receive().data

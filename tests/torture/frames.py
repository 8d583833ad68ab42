"""Tamper with one frame between host and guest."""

from __future__ import annotations

import socket
import time
from random import Random

from vm.machine import Machine


class Meddler:
    """Flips, drops, doubles or delays the next frame, in a random direction."""

    def __init__(self, way: str, seed: int) -> None:
        self._way = way
        self._random = Random(seed)

    def meddle(self, machine: Machine) -> None:
        """Wrap the host's ends of all ports until one frame has passed."""
        assert machine._power is not None
        incoming = self._random.random() < 0.5
        pending = [True]
        for channel in machine._power.agent._channels:
            end = channel._socket
            if isinstance(end, _Between):
                # A wrapper of an earlier fault.
                end = end._end
            between = _Between(end, self._way, self._random, pending, incoming=incoming)
            channel._socket = between  # type: ignore[assignment]


class _Between:
    """A socket that tampers with the next chunk of its stream, one frame or several."""

    def __init__(
        self, end: socket.socket, way: str, random: Random, pending: list[bool], *, incoming: bool
    ) -> None:
        self._end = end
        self._way = way
        self._random = random
        self._pending = pending
        self._incoming = incoming

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    def send(self, data: memoryview) -> int:
        if self._incoming or not self._pending:
            return self._end.send(data)
        self._pending.clear()
        tampered = self._tampered(bytes(data))
        if tampered:
            self._end.sendall(tampered)
        return len(data)

    def recv(self, size: int) -> bytes:
        data = self._end.recv(size)
        if not self._incoming or not self._pending or not data:
            return data
        self._pending.clear()
        tampered = self._tampered(data)
        if not tampered:
            raise BlockingIOError
        return tampered

    def _tampered(self, data: bytes) -> bytes:
        match self._way:
            case "flipped":
                at = self._random.randrange(len(data))
                bit = bytes([data[at] ^ 1 << self._random.randrange(8)])
                return data[:at] + bit + data[at + 1 :]
            case "dropped":
                return b""
            case "doubled":
                return data + data
        time.sleep(self._random.uniform(0.05, 1.0))
        return data

"""The host's end of a program in the guest: its input and output, and its exit status."""

from __future__ import annotations

import os
import select
import signal
import socket
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress

from msgspec import Struct

from host.deadline import Deadline
from vm.errors import ChannelBroken
from vm.guest.shell import (
    CHUNK,
    ERRORS,
    HEADER,
    INPUT,
    OUTPUT,
    SIZE,
    SIZES,
    STATUS,
    STATUSES,
)
from vm.machine import Machine
from vm.qemu.command_line import Request, stream_names
from vm.shell.root import Root

ACTOR = "shell"
#: The first requests of a guest that runs a program; a snapshot is saved after them.
OPENING: tuple[Request, ...] = (("", (["spawn", ACTOR],)), (ACTOR, (["prepare_shell"],)))
#: Largest length of a frame from the guest.
_LIMIT = CHUNK


class Program(Struct, frozen=True):
    """A program and its environment; with a terminal if `interactive`."""

    words: Sequence[str]
    environment: Mapping[str, str]
    interactive: bool = False


class TimedOut(Exception):
    """The program did not end before the deadline."""


def run(
    machine: Machine,
    root: Root,
    program: Program,
    descriptors: tuple[int, int, int] = (0, 1, 2),
    deadline: Deadline | None = None,
) -> int:
    """Run a program with our input, output and errors; its exit code as a shell reports it.

    Raises TimedOut, after which the guest cannot run another, and what a failed call raises
    (Machine.call) if the guest ends first.
    """
    since = machine.console.position()
    source, output, errors = descriptors
    size = list(_size(source)) if program.interactive else None
    (stream,) = stream_names(machine.spec)
    call = [
        *("shell", stream, list(map(list, root.mounts)), list(map(list, root.links))),
        *(list(program.words), dict(program.environment), size),
    ]
    machine.call(ACTOR, [call])
    relay = _Relay(machine.stream(0), source, {OUTPUT: output, ERRORS: errors})
    with relay.terminal(source) if program.interactive else nullcontext():
        status = relay.run(deadline)
    if status is None:
        raise machine.stream_ended(since)
    return _exit_code(status)


class _Relay:
    """Copies between our descriptors and a stream."""

    def __init__(self, stream: socket.socket, source: int, outputs: Mapping[int, int]) -> None:
        stream.setblocking(False)
        self._stream = stream
        #: Our input, None after its end.
        self._source: int | None = source
        self._outputs = outputs
        self._to_send = bytearray()
        self._received = bytearray()

    def run(self, deadline: Deadline | None) -> int | None:
        """The wait status of the program; None if the stream ended first.

        Raises TimedOut, ChannelBroken.
        """
        while True:
            # Input is read when the guest has taken what was read before.
            idle = not self._to_send
            stream = self._stream.fileno()
            sources = [self._source] if idle and self._source is not None else []
            readable, writable, _ = select.select(
                [stream, *sources],
                [] if idle else [stream],
                [],
                None if deadline is None else deadline.remaining(),
            )
            # Also in the middle of endless output.
            if deadline is not None and deadline.expired:
                raise TimedOut
            if writable:
                self._send()
            if self._source in readable:
                self._read_input()
            if stream in readable:
                data = self._receive()
                if data is None:
                    return None
                self._received += data
                if (status := self._handle_frames(deadline)) is not None:
                    return status

    @contextmanager
    def terminal(self, terminal: int) -> Iterator[None]:
        """Hand every key and change of size of our terminal to the program."""

        def resized(*_: object) -> None:
            self._queue(SIZE, SIZES.pack(*_size(terminal)))
            self._send()

        settings = termios.tcgetattr(terminal)
        handler = signal.signal(signal.SIGWINCH, resized)
        try:
            tty.setraw(terminal)
            yield
        finally:
            termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
            signal.signal(signal.SIGWINCH, handler)

    def _read_input(self) -> None:
        assert self._source is not None
        try:
            data = os.read(self._source, CHUNK)
        except OSError:
            data = b""
        self._queue(INPUT, data)
        if not data:
            self._source = None
        self._send()

    def _queue(self, kind: int, data: bytes) -> None:
        self._to_send += HEADER.pack(kind, len(data)) + data

    def _send(self) -> None:
        try:
            while self._to_send:
                del self._to_send[: self._stream.send(self._to_send)]
        except BlockingIOError:
            return
        except OSError:
            # Reading reports the end.
            self._to_send.clear()

    def _receive(self) -> bytes | None:
        try:
            return self._stream.recv(CHUNK) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def _handle_frames(self, deadline: Deadline | None) -> int | None:
        while len(self._received) >= HEADER.size:
            kind, length = HEADER.unpack_from(self._received)
            if length > _LIMIT or kind not in (*self._outputs, STATUS):
                raise ChannelBroken(f"frame of kind {kind} with {length} bytes in a stream")
            end = HEADER.size + length
            if len(self._received) < end:
                break
            data = bytes(self._received[HEADER.size : end])
            del self._received[:end]
            if kind == STATUS:
                (status,) = STATUSES.unpack(data)
                return int(status)
            _write(self._outputs[kind], data, deadline)
        return None


def _write(descriptor: int, data: bytes, deadline: Deadline | None) -> None:
    """Write all, however slowly it is read.  Raises TimedOut, OSError."""
    rest = memoryview(data)
    while rest:
        limit = None if deadline is None else deadline.remaining()
        if not select.select([], [descriptor], [], limit)[1]:
            raise TimedOut
        # A pipe that is ready has room for so much; another process may use it without blocking.
        with suppress(BlockingIOError):
            rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _size(terminal: int) -> tuple[int, int]:
    """Its rows and columns."""
    columns, rows = os.get_terminal_size(terminal)
    return rows, columns

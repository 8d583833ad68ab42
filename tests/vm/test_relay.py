"""The host's end of a program in the guest, with a slow reader of its output."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from host.deadline import Deadline
from vm.guest.shell import CHUNK, ERRORS, HEADER, OUTPUT, STATUS, STATUSES
from vm.shell.relay import TimedOut, _Relay

CHUNKS = 20


@pytest.fixture
def output() -> Iterator[tuple[int, int]]:
    """A pipe: what reads our output, and our output."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def relay(output: tuple[int, int]) -> Iterator[_Relay]:
    """A relay whose program prints more than a pipe holds, and ends; its input is silent."""
    with ExitStack() as opened:
        pairs = [*socket.socketpair(), *socket.socketpair()]
        ours, guest, source, _ = [opened.enter_context(each) for each in pairs]

        def program() -> None:
            with suppress(OSError), guest:
                for _ in range(CHUNKS):
                    guest.sendall(HEADER.pack(OUTPUT, CHUNK) + b"x" * CHUNK)
                guest.sendall(HEADER.pack(STATUS, STATUSES.size) + STATUSES.pack(0))

        threading.Thread(target=program, daemon=True).start()
        yield _Relay(ours, source.fileno(), {OUTPUT: output[1], ERRORS: output[1]})


def test_deadline_ends_a_program_whose_output_nobody_reads(relay: _Relay) -> None:
    with pytest.raises(TimedOut):
        relay.run(Deadline(0.5, "end of the program"))


def test_output_that_does_not_block_is_written_whole(
    relay: _Relay, output: tuple[int, int]
) -> None:
    """Another process may have set O_NONBLOCK on a terminal or a pipe that it shares with us."""
    reader, writer = output
    os.set_blocking(writer, False)
    read: list[bytes] = []

    def consume() -> None:
        while sum(map(len, read)) < CHUNKS * CHUNK:
            read.append(os.read(reader, 1000))

    thread = threading.Thread(target=consume, daemon=True)
    thread.start()
    assert relay.run(Deadline(30, "end of the program")) == 0
    thread.join(30)
    assert sum(map(len, read)) == CHUNKS * CHUNK

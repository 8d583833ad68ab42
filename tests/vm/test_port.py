"""The guest's end of the channel: no request is performed twice."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from vm import wire
from vm.agent import Agent
from vm.channel import Channel
from vm.deadline import Deadline
from vm.errors import NoAnswer
from vm.guest import port
from vm.guest.port import HostGone, Port


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, Port]]:
    """The host's end, and the guest's port."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(port, "find", lambda name: f"/proc/self/fd/{theirs.fileno()}")
        monkeypatch.setattr(os, "open", lambda *words: os.dup(theirs.fileno()))
        opened = Port("uevt0")
        monkeypatch.undo()
        yield ours, opened
        opened.close()


@pytest.mark.parametrize(
    ("numbers", "good"),
    [([1, 2, 9], 3), ([1, 1], 1), ([5, 6, 5], 2), ([0], 0), (["1"], 0), ([None], 0), ([True], 1)],
)
def test_a_number_is_taken_once(
    ends: tuple[socket.socket, Port], numbers: list[object], good: int
) -> None:
    host, guest = ends
    for number in numbers:
        host.sendall(wire.pack({"id": number, "calls": []}))
    for _ in range(good):
        guest.receive()
    if good < len(numbers):
        with pytest.raises(wire.FrameError, match="frame order: request"):
            guest.receive()


def test_the_end_of_the_host(ends: tuple[socket.socket, Port]) -> None:
    host, guest = ends
    host.close()
    with pytest.raises(HostGone):
        guest.receive()


def test_a_restored_guest_is_asked_by_numbers_that_it_has_not_heard() -> None:
    """It was saved in the middle of another conversation."""
    numbers = []
    for restored in (False, True):
        ours, theirs = socket.socketpair()
        with theirs:
            agent = Agent([Channel(ours)], ["uevt0"], restored=restored)
            with pytest.raises(NoAnswer):
                agent.call("", [["ping"]], (), Deadline(0, "answer"))
            numbers.append(wire.unpack(theirs.recv(4096)[wire.HEADER.size :])["id"])
            agent.close()
    assert numbers == [1, (1 << 32) + 1]

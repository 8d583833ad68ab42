"""An actor in a process on the host, and the host's end of its port."""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from conformance.ops.calls import AT_FDCWD, Call, path_in, sys_call
from vm import wire
from vm.agent import encoding

ROOT = Path(__file__).parents[2]
_ACTOR = """
import socket, sys
from vm import wire
from vm.guest import native_engine
from vm.guest.actor import Actor
from vm.guest.port import HostGone

class Port(socket.socket):
    def send(self, message):
        self.sendall(wire.pack(message))

try:
    actor = Actor(Port(fileno=0))
    actor.begin()
    actor.serve(native_engine.serve())
except HostGone:
    sys.exit(7)
except wire.FrameError as error:
    sys.exit(str(error))
"""
SECONDS = 30
GETPID = sys_call("getpid")


def start_agent(code: str, port: socket.socket, *words: str) -> subprocess.Popen[str]:
    """Run a part of the agent, with its end of a port as standard input."""
    with port:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=port.fileno(),
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)},
        )


class Host:
    """The host's end of an actor's port."""

    actor: subprocess.Popen[str]

    def __init__(self) -> None:
        self.end, theirs = socket.socketpair()
        self.end.settimeout(SECONDS)
        self.actor = start_agent(_ACTOR, theirs)
        self._decoder = wire.Decoder()
        self._number = 0
        assert wire.unpack(self.receive()) == {"id": 0, "hello": self.actor.pid}

    def receive(self) -> bytes:
        while (payload := self._decoder.take()) is None:
            data = self.end.recv(1 << 16)
            assert data, "the actor is gone"
            self._decoder.feed(data)
        return payload

    def request(self, *calls: Any, watch: Any = ()) -> bytes:
        self._number += 1
        return wire.frame(encoding.request(self._number, calls, watch))

    def answer(self, lengths: Any = ()) -> list[dict[str, Any]]:
        return encoding.results(self.receive(), lengths)

    def call(self, *calls: Any, watch: Any = ()) -> list[dict[str, Any]]:
        """Perform calls and return their results."""
        self.end.sendall(self.request(*calls, watch=watch))
        return self.answer([length for _, _, length in watch])

    def close(self) -> str:
        """Hang up and return what the actor printed."""
        self.end.close()
        _, errors = self.actor.communicate(timeout=SECONDS)
        return str(errors)


def plain(results: list[dict[str, Any]]) -> list[tuple[int, int, bytes | None]]:
    """Value, errno and data of each."""
    data = (None if each["data"] is None else bytes.fromhex(each["data"]) for each in results)
    return [(each["value"], each["errno"], some) for each, some in zip(results, data, strict=True)]


def opening(path: Path | str, slot: int, flags: int = os.O_RDONLY) -> Call:
    return sys_call("openat", AT_FDCWD, path_in(str(path)), flags, 0, slot=slot)


def page_of(host: Host, length: int = mmap.PAGESIZE) -> int:
    """Map anonymous memory in the actor."""
    (made,) = host.call(sys_call("mmap", 0, length, 3, 0x22, -1, 0))
    assert made["errno"] == 0
    return int(made["value"])

"""The supervisor on the host, with pseudoterminals as ports."""

from __future__ import annotations

import errno
import os
import pty
import signal
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from socket import socketpair
from typing import Any

import pytest

from conformance.ops.calls import sys_call
from host.deadline import Deadline
from tests.vm.actors import GETPID, SECONDS, start_agent
from vm.agent.agent import Agent
from vm.agent.channel import Channel
from vm.errors import ActorDied
from vm.guest import port

_SUPERVISOR = """
import sys
from vm.guest import port, supervisor
devices = [word.split("=") for word in sys.argv[1:]]
# The driver adds one port after the other.
port._search = lambda: port._found.update([devices.pop(0)])
port.Port.named = classmethod(lambda port, name: port(0))
supervisor.Supervisor(("p0", "p1", "p2")).serve()
"""


class _Terminal:
    """The host's end of a port."""

    def __init__(self) -> None:
        self.descriptor, self.theirs = pty.openpty()
        tty.setraw(self.theirs)

    def setblocking(self, flag: bool) -> None:
        os.set_blocking(self.descriptor, flag)

    def fileno(self) -> int:
        return self.descriptor

    def send(self, data: bytes) -> int:
        return os.write(self.descriptor, data)

    def recv(self, size: int) -> bytes:
        return os.read(self.descriptor, size)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self.theirs)


class Host:
    """An agent with three ports for actors, one of which does not exist."""

    def __init__(self) -> None:
        ours, theirs = socketpair()
        self.terminals = [_Terminal() for _ in range(3)]
        devices = [f"p{n}={os.ttyname(each.theirs)}" for n, each in enumerate(self.terminals, 1)]
        self.supervisor = start_agent(_SUPERVISOR, theirs, *devices[:2])
        ports: list[Any] = [ours, *self.terminals]
        self.agent = Agent([Channel(each) for each in ports], ["p0", "p1", "p2", "p3"])
        self.agent.hello(Deadline(SECONDS, "answer"))

    def call(self, actor: str, *calls: Any) -> list[dict[str, Any]]:
        return self.agent.call(actor, calls, (), Deadline(SECONDS, "answer"))

    def spawn(self, actor: str) -> int:
        """The process id of a new actor."""
        (spawned,) = self.call("", ["spawn", actor])
        return int(spawned["value"])

    def close(self) -> None:
        self.agent.close()
        # It fails to power off the host and exits with an error.
        self.supervisor.communicate(timeout=SECONDS)


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()
    assert host.supervisor.returncode == 1


def test_spawn_call_and_kill(host: Host) -> None:
    pid = host.spawn("a")
    (answer,) = host.call("a", GETPID)
    assert answer["value"] == pid != host.supervisor.pid
    (killed,) = host.call("", ["kill", "a", signal.SIGKILL])
    assert (killed["value"], killed["errno"]) == (signal.SIGKILL, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_actor_inherits_no_descriptors(host: Host) -> None:
    pid = host.spawn("a")
    # Once it answers, it has closed what it inherited.
    host.call("a", GETPID)
    descriptors = Path(f"/proc/{pid}/fd").iterdir()
    held = {str(each.readlink()) for each in descriptors}
    assert os.ttyname(host.terminals[0].theirs) in held
    assert not any(name.startswith("socket:") for name in held)


def test_end_of_an_actor_is_reported(host: Host) -> None:
    pid = host.spawn("a")
    with pytest.raises(ActorDied, match="SIGSEGV"):
        host.call("a", ["sys", 62, [pid, signal.SIGSEGV], None])
    host.spawn("b")
    assert host.call("b", ["exit", 3])[0]["value"] == 0


def test_actor_without_a_port(host: Host) -> None:
    host.spawn("a")
    pid = host.spawn("b")
    assert host.call("b", GETPID)[0]["value"] == pid
    (refused,) = host.call("", ["spawn", "c"])
    assert refused["errno"] == errno.ENODEV
    assert host.call("", ["ping"])[0]["value"] == host.supervisor.pid


def test_port_that_never_appears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_SECONDS", 0)
    with pytest.raises(port.PortMissing, match="no virtio port named 'p3'"):
        port.find("p3")


def test_kill_fails(host: Host) -> None:
    pid = host.spawn("a")
    (refused,) = host.call("", ["kill", "a", 99])
    assert refused["errno"] == errno.EINVAL
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    (gone,) = host.call("", ["look", pid, 4096, 1])
    assert gone["errno"] == errno.ESRCH


def test_supervisor_reads_memory_of_actors(host: Host) -> None:
    pid = host.spawn("a")
    (where,) = host.call("a", sys_call("mmap", 0, 4096, 3, 0x22, -1, 0))
    host.call("a", ["poke", where["value"], "abcd"])
    seen, missing = host.call("", ["look", pid, where["value"], 2], ["look", pid, 16, 2])
    assert (seen["data"], missing["errno"]) == ("abcd", errno.EFAULT)

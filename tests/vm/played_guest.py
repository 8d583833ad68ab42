"""A guest that the test plays: the other ends of an agent's ports."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from host.deadline import Deadline
from tests import packed
from vm import wire
from vm.agent.agent import Agent
from vm.agent.channel import Channel

RESULT: dict[str, Any] = {"value": 7, "errno": 0, "data": None, "watch": []}


class Guest:
    """The guest's ends of the ports of the supervisor and two actors."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self.ports = [theirs for _, theirs in pairs]
        self.agent = Agent([Channel(ours) for ours, _ in pairs], ["p0", "p1", "p2"])
        self.requests: list[dict[str, Any]] = []
        self._decoders = [wire.Decoder() for _ in pairs]
        for port in self.ports:
            port.settimeout(5)

    def receive(self, port: int) -> dict[str, Any]:
        while (payload := self._decoders[port].take()) is None:
            self._decoders[port].feed(self.ports[port].recv(65536))
        self.requests.append(packed.decode_request(payload))
        return self.requests[-1]

    def send(self, port: int, message: object) -> None:
        self.ports[port].sendall(wire.pack(message))

    def call(self, actor: str, calls: Any, *acts: Act, watch: Any = ()) -> list[dict[str, Any]]:
        """Make a call, during which the guest acts in a thread."""
        thread = threading.Thread(target=lambda: [act(self) for act in acts])
        thread.start()
        try:
            return self.agent.call(actor, calls, watch, Deadline(1, "answer"))
        finally:
            thread.join()

    def spawn(self, name: str = "a", pid: int = 35) -> None:
        self.call("", [["spawn", name]], answer(0, value=pid))

    def close(self) -> None:
        for port in self.ports:
            port.close()
        self.agent.close()


Act = Callable[[Guest], object]


def answer(port: int, **result: Any) -> Act:
    """Answer the next request with the same result for every call."""

    def act(guest: Guest) -> None:
        request = guest.receive(port)
        results = [RESULT | result for _ in request["calls"]]
        guest.ports[port].sendall(wire.frame(packed.encode_reply(request["id"], results)))

    return act


def end(pid: int, status: int = signal.SIGKILL) -> Act:
    """Report the end of a process."""
    return lambda guest: guest.send(0, {"id": 0, "ended": pid, "status": status})

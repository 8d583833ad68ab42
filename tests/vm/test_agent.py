"""The host's half of the agent against guests that lie, stutter, fall silent or vanish."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from host.deadline import Deadline
from tests import packed
from vm import wire
from vm.agent.agent import Agent
from vm.agent.channel import Channel, ChannelEnded
from vm.errors import ActorDied, CallRefused, ChannelBroken, HostTrouble, NoAnswer
from vm.guest.version import NATIVE, native_version, versions

PING = [["sys", 39, [], None]]
RESULT: dict[str, Any] = {"value": 7, "errno": 0, "data": None, "watch": []}


class Guest:
    """The guest's ends of the ports of the supervisor and two actors."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self.ports = [theirs for _, theirs in pairs]
        self.agent = Agent([Channel(ours) for ours, _ in pairs], ["p0", "p1", "p2"])
        self._decoders = [wire.Decoder() for _ in pairs]
        for port in self.ports:
            port.settimeout(5)

    def receive(self, port: int) -> dict[str, Any]:
        while (payload := self._decoders[port].take()) is None:
            self._decoders[port].feed(self.ports[port].recv(65536))
        return packed.decode_request(payload)

    def send(self, port: int, message: object) -> None:
        self.ports[port].sendall(wire.pack(message))

    def answer(self, port: int, **result: Any) -> dict[str, Any]:
        """Answer the next request with the same result for every call."""
        request = self.receive(port)
        results = [RESULT | result for _ in request["calls"]]
        self.ports[port].sendall(wire.frame(packed.encode_reply(request["id"], results)))
        return request

    def close(self) -> None:
        for port in self.ports:
            port.close()
        self.agent.close()


@pytest.fixture
def guest() -> Iterator[Guest]:
    guest = Guest()
    yield guest
    guest.close()


@pytest.fixture
def pair(guest: Guest) -> Guest:
    """A guest with two actors."""
    _spawn(guest, "a", 35)
    _spawn(guest, "b", 36)
    return guest


def _during(
    guest: Guest, act: Callable[[], object], calls: Any, actor: str = "a", watch: Any = ()
) -> Any:
    """Make a call while the guest acts in a thread."""
    thread = threading.Thread(target=act)
    thread.start()
    try:
        return guest.agent.call(actor, calls, watch, Deadline(1, "answer"))
    finally:
        thread.join()


def _spawn(guest: Guest, name: str = "a", pid: int = 35) -> None:
    _during(guest, lambda: guest.answer(0, value=pid), [["spawn", name]], actor="")


def test_actor_reads_watched_memory_of_others(pair: Guest) -> None:
    requests = []
    watch = [["b", 4096, 1], ["a", 8192, 1]]

    def act() -> None:
        requests.append(pair.answer(1, watch=["bb", "aa"]))

    (result,) = _during(pair, act, PING, watch=watch)
    assert result["watch"] == ["bb", "aa"]
    assert requests[0]["watch"] == [[36, 4096, 1], [35, 8192, 1]]


def test_memory_that_may_not_be_read_is_no_answer_of_the_kernel(pair: Guest) -> None:
    def act() -> None:
        pair.answer(1, watch=["-"])
        pair.answer(0, value=-1, errno=errno.EPERM)

    with pytest.raises(HostTrouble, match="does not let root read") as caught:
        _during(pair, act, PING, watch=[["b", 4096, 1]])
    assert "ptrace_scope" in caught.value.hint


def test_supervisor_reads_after_the_last_call(pair: Guest) -> None:
    requests = []

    def act() -> None:
        requests.append(pair.answer(1, watch=["-", "aa"]))
        requests.append(pair.answer(0, data="bb"))

    watch = [["b", 4096, 1], ["a", 8192, 1]]
    first, last = _during(pair, act, PING * 2, watch=watch)
    assert (first["watch"], last["watch"]) == (["-", "aa"], ["bb", "aa"])
    assert requests[1]["calls"] == [["look", 36, 4096, 1]]


@pytest.mark.parametrize("reader", ["actor", "supervisor"])
def test_watching_a_dead_actor_raises(pair: Guest, reader: str) -> None:
    def act() -> None:
        pair.answer(1, watch=["gone" if reader == "actor" else "-"])
        if reader == "supervisor":
            pair.answer(0, value=-1, errno=errno.ESRCH)
        pair.send(0, {"id": 0, "ended": 36, "status": 9})

    with pytest.raises(ActorDied, match="b"):
        _during(pair, act, PING, watch=[["b", 4096, 1]])


def test_memory_of_unknown_process_is_not_readable(guest: Guest) -> None:
    _spawn(guest, "a", 35)
    watch = [["b", 4096, 1]]
    (result,) = _during(guest, lambda: guest.answer(1, watch=["gone"]), PING, watch=watch)
    assert result["watch"] == [None]


def test_task_is_watched_by_its_thread_id(guest: Guest) -> None:
    _spawn(guest, "a", 35)
    requests = []

    def act() -> None:
        guest.answer(1, value=41)
        requests.append(guest.answer(1, value=35, watch=["aa"]))
        requests.append(guest.answer(1, watch=["bb"]))

    thread = threading.Thread(target=act)
    thread.start()
    guest.agent.call("a", [["task", "a/1", None, 0]], (), Deadline(1, "answer"))
    for call in (["via", "a/1", ["exec", ""]], ["via", "a/1", ["peek", 0, 1]]):
        guest.agent.call("a", [call], [["a/1", 4096, 1]], Deadline(1, "answer"))
    thread.join()
    # After execve a thread has the id of its process.
    assert [each["watch"] for each in requests] == [[[41, 4096, 1]], [[35, 4096, 1]]]


def test_forked_actor_has_its_own_port(guest: Guest) -> None:
    _spawn(guest, "a", 35)
    _during(guest, lambda: guest.answer(1, value=36), [["fork", "b"]])
    assert _during(guest, lambda: guest.answer(2), PING, actor="b") == [RESULT]


def test_failed_fork_adds_no_actor(guest: Guest) -> None:
    _spawn(guest)
    (result,) = _during(guest, lambda: guest.answer(1, value=-1, errno=11), [["fork", "b"]])
    assert result["errno"] == 11
    with pytest.raises(CallRefused, match="no actor named 'b'"):
        guest.agent.call("b", PING, (), Deadline(1, "answer"))


def _reply(number: int = 2, *results: dict[str, Any]) -> bytes:
    return wire.frame(packed.encode_reply(number, results))


@pytest.mark.parametrize(
    ("stream", "part"),
    [
        (b"garbage", "magic"),
        (b"UEV1\xff\0\0\0\0\0\0\0", "length"),
        (_reply()[:-1] + b"!", "checksum"),
        (wire.frame(b"null"), "payload"),
        (wire.frame(b"RPLY"), "a reply of 4 bytes"),
        (_reply(3, RESULT), "answer to request 3, the last one was 2"),
        (wire.pack({"results": []}), "answer to request None"),
        (wire.pack({"id": 2, "results": [RESULT]}), "1 results expected"),
        (_reply(), "1 results expected, answer has 0"),
        (_reply(2, RESULT, RESULT), "1 results expected, answer has 2"),
        (_reply(2, RESULT)[:20], "only 20 bytes of a frame"),
    ],
)
def test_corrupt_answer_breaks_the_channel(guest: Guest, stream: bytes, part: str) -> None:
    _spawn(guest)
    with pytest.raises(ChannelBroken, match=part):
        _during(guest, lambda: guest.ports[1].sendall(stream), PING)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"watch": []}, "byte 32 of 32: 2 bytes expected"),
        ({"watch": [None]}, "malformed reply"),
        ({"watch": ["00" * 8]}, "malformed reply"),
        ({"watch": ["00" * 8] * 3}, "8 bytes after the results"),
        ({"watch": [None, None, "00" * 8]}, "8 bytes after the results"),
        ({"data": "00" * 8, "watch": []}, "malformed reply"),
    ],
)
def test_malformed_reply_breaks_the_channel(
    guest: Guest, answer: dict[str, Any], message: str
) -> None:
    """The request has two watched places and one call."""
    _spawn(guest)
    watch = [("a", 0x1000, 8), ("a", 0x2000, 8)]
    with pytest.raises(ChannelBroken, match=message):
        _during(guest, lambda: guest.answer(1, **answer), PING, watch=watch)


OURS = versions() | {NATIVE: native_version()}


@pytest.mark.parametrize(
    ("reported", "message"),
    [
        (None, "unknown files"),
        ({}, "unknown files"),
        ({"wire.py": 1}, "wire.py"),
        (versions(), "unknown files"),
        (OURS | {NATIVE: 1}, NATIVE),
        (OURS | {"guest/actor.py": 1}, "guest/actor.py"),
        (OURS | {"guest/gone.py": 1}, "guest/gone.py"),
    ],
)
def test_agent_of_another_version_is_refused(guest: Guest, reported: object, message: str) -> None:
    guest.send(0, {"id": 0, "hello": 1, "agent": reported})
    with pytest.raises(ChannelBroken, match=f"another version of .*{message}") as caught:
        guest.agent.hello(Deadline(1, "hello"))
    assert "run again" in caught.value.hint


def test_agent_of_the_same_version_is_accepted(guest: Guest) -> None:
    """The guest need not have every file."""
    reported = {name: checksum for name, checksum in OURS.items() if name != "guest/needs.py"}
    guest.send(0, {"id": 0, "hello": 1, "agent": reported})
    guest.agent.hello(Deadline(1, "hello"))


def test_late_answer_is_dropped(guest: Guest) -> None:
    _spawn(guest)
    with pytest.raises(NoAnswer, match="no answer of mine within"):
        guest.agent.call("a", PING, (), Deadline(0.05, "answer of mine"))
    guest.answer(1, value=1)
    assert _during(guest, lambda: guest.answer(1, value=2), PING)[0]["value"] == 2


def test_restored_guest_gets_new_request_numbers() -> None:
    """The agent in a snapshot has seen an unknown number of requests."""
    numbers = []
    for restored in (False, True, True):
        ours, theirs = socket.socketpair()
        with theirs:
            agent = Agent([Channel(ours)], ["uevt0"], restored=restored)
            with pytest.raises(NoAnswer):
                agent.call("", [["ping"]], (), Deadline(0, "answer"))
            numbers.append(packed.decode_request(theirs.recv(4096)[wire.HEADER.size :])["id"])
            agent.close()
    first, *others = numbers
    assert first == 1
    assert all(1 << 32 < number < 1 << 63 for number in others)
    assert len(set(others)) == 2


def test_closed_port_ends_the_channel(guest: Guest) -> None:
    _spawn(guest)
    with pytest.raises(ChannelEnded):
        _during(guest, guest.ports[0].close, PING)


def test_actor_dies_in_a_call(guest: Guest) -> None:
    _spawn(guest)
    with pytest.raises(ActorDied, match="ended by SIGSEGV") as caught:
        _during(guest, lambda: guest.send(0, {"id": 0, "ended": 35, "status": 11}), PING)
    assert caught.value.status == 11
    _spawn(guest, "a", 36)


def test_mark_reports_an_actor_that_has_ended(guest: Guest) -> None:
    _spawn(guest)
    mark = [["mark", "one"]]
    _during(guest, lambda: guest.answer(0), mark, actor="")

    def end() -> None:
        guest.send(0, {"id": 0, "ended": 35, "status": 256})
        guest.answer(0)

    with pytest.raises(ActorDied, match="'a' ended with exit status 1 between calls"):
        _during(guest, end, mark, actor="")


def test_actor_dies_between_calls(guest: Guest) -> None:
    _spawn(guest)
    guest.send(0, {"id": 0, "ended": 35, "status": 256})
    with pytest.raises(ActorDied, match="exit status 1"):
        guest.agent.call("a", PING, (), Deadline(1, "answer"))


def test_exit_is_answered_when_the_actor_is_reaped(guest: Guest) -> None:
    _spawn(guest)

    def act() -> None:
        guest.answer(1)
        assert guest.receive(1)["calls"] == [["exit", 3]]
        guest.send(0, {"id": 0, "ended": 35, "status": 768})

    results = _during(guest, act, [*PING, ["exit", 3]])
    assert [result["value"] for result in results] == [7, 0]
    with pytest.raises(CallRefused):
        guest.agent.call("a", PING, (), Deadline(1, "answer"))


@pytest.mark.parametrize(
    ("actor", "calls"),
    [
        ("unknown", PING),
        ("", [["spawn", "a"]]),
        ("", [["spawn", ""]]),
        ("", [["kill", "unknown", 9]]),
        ("a", [["exit", 0], *PING]),
        ("a", [["fork", "a"]]),
        ("a", [["sys", 57, [], None]]),
        ("a", [["sys", 39, [0] * 7, None]]),
        ("a", [["sys", 3, [{"fd": 65536}], None]]),
        ("a", [["sys", 39, [], -1]]),
        ("a", [["sys", 39, [{"what": 1}], None]]),
        ("a", [["peek", 0]]),
        ("a", [["peek", 0, -1]]),
        ("a", [["poke", 0, "0g"]]),
        ("a", [["slurp", "/a\0b", 10]]),
        ("a", [["unheard", {1, 2}]]),
    ],
)
def test_malformed_calls_are_refused(guest: Guest, actor: str, calls: Any) -> None:
    _spawn(guest)
    with pytest.raises(CallRefused):
        guest.agent.call(actor, calls, (), Deadline(1, "answer"))


def test_ports_are_reused(pair: Guest) -> None:
    with pytest.raises(CallRefused, match="no more than 2 actors"):
        pair.agent.call("", [["spawn", "c"]], (), Deadline(1, "answer"))
    _during(pair, lambda: pair.answer(0, value=2), [["reset"]], actor="")
    _spawn(pair, "c", 37)
    _spawn(pair, "d", 38)


def test_output_of_a_dead_actor_is_discarded(guest: Guest) -> None:
    _spawn(guest)
    guest.ports[1].sendall(b"UEV1 half a fra")
    _during(guest, lambda: guest.answer(0, value=9), [["kill", "a", 9]], actor="")
    _spawn(guest, "b", 36)
    assert _during(guest, lambda: guest.answer(1), PING, actor="b") == [RESULT]


def test_status_of_a_process_that_was_no_actor_is_dropped(guest: Guest) -> None:
    """Its process id may be used again."""
    _spawn(guest, "b", 36)
    guest.send(0, {"id": 0, "ended": 35, "status": 9})
    # The answer of the supervisor comes behind the status.
    _during(guest, lambda: guest.answer(0), [["mark", "later"]], actor="")
    _spawn(guest, "a", 35)
    assert _during(guest, lambda: guest.answer(2), PING) == [RESULT]


def test_status_of_a_process_that_ended_during_a_failed_spawn_is_dropped(guest: Guest) -> None:
    def fail() -> None:
        guest.send(0, {"id": 0, "ended": 35, "status": 9})
        guest.answer(0, errno=errno.EAGAIN)

    _during(guest, fail, [["spawn", "a"]], actor="")
    _spawn(guest)
    assert _during(guest, lambda: guest.answer(1), PING) == [RESULT]


def test_actor_that_ends_at_once_has_ended(guest: Guest) -> None:
    def end() -> None:
        guest.send(0, {"id": 0, "ended": 35, "status": 9})
        guest.answer(0, value=35)

    _during(guest, end, [["spawn", "a"]], actor="")
    with pytest.raises(ActorDied, match="SIGKILL"):
        guest.agent.call("a", PING, (), Deadline(1, "answer"))


@pytest.mark.parametrize(("maker", "call"), [("", "spawn"), ("a", "fork")])
def test_port_of_a_refused_call_is_reused(guest: Guest, maker: str, call: str) -> None:
    _spawn(guest)
    port = 1 if maker else 0

    def refuse() -> None:
        guest.send(port, {"id": guest.receive(port)["id"], "error": "OSError: no memory"})

    for _ in range(2):
        with pytest.raises(CallRefused, match="no memory"):
            _during(guest, refuse, [[call, "b"]], actor=maker)
    _spawn(guest, "b", 36)


@pytest.mark.parametrize("call", [["kill", "a", 9], ["reset"]])
def test_process_that_does_not_end_is_held_by_the_kernel(guest: Guest, call: list[object]) -> None:
    _spawn(guest)
    with pytest.raises(NoAnswer, match="does not end after a signal"):
        _during(guest, lambda: guest.answer(0, errno=errno.ETIMEDOUT), [call], actor="")


def test_reset_that_fails_ends_no_actor(guest: Guest) -> None:
    _spawn(guest)
    _during(guest, lambda: guest.answer(0, errno=errno.EINTR), [["reset"]], actor="")
    assert _during(guest, lambda: guest.answer(1), PING) == [RESULT]

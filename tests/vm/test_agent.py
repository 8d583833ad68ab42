"""The host's half of the agent against guests that lie, stutter, fall silent or vanish."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from host.deadline import Deadline
from tests import packed
from tests.vm.played_guest import RESULT, Act, Guest, answer, end
from vm import wire
from vm.agent.agent import Agent
from vm.agent.channel import Channel, ChannelEnded
from vm.errors import ActorDied, CallRefused, ChannelBroken, HostTrouble, NoAnswer
from vm.guest.version import NATIVE, native_version, versions

PING = [["sys", 39, [], None]]


@pytest.fixture
def idle() -> Iterator[Guest]:
    """A guest without actors."""
    guest = Guest()
    yield guest
    guest.close()


@pytest.fixture
def guest(idle: Guest) -> Guest:
    """A guest with the actor a."""
    idle.spawn("a", 35)
    return idle


@pytest.fixture
def pair(guest: Guest) -> Guest:
    """A guest with the actors a and b."""
    guest.spawn("b", 36)
    return guest


def test_actor_reads_watched_memory_of_others(pair: Guest) -> None:
    watch = [["b", 4096, 1], ["a", 8192, 1]]
    (result,) = pair.call("a", PING, answer(1, watch=["bb", "aa"]), watch=watch)
    assert result["watch"] == ["bb", "aa"]
    assert pair.requests[-1]["watch"] == [[36, 4096, 1], [35, 8192, 1]]


def test_memory_that_may_not_be_read_is_no_answer_of_the_kernel(pair: Guest) -> None:
    acts = (answer(1, watch=["-"]), answer(0, value=-1, errno=errno.EPERM))
    with pytest.raises(HostTrouble, match="does not let root read") as caught:
        pair.call("a", PING, *acts, watch=[["b", 4096, 1]])
    assert "ptrace_scope" in caught.value.hint


def test_supervisor_reads_after_the_last_call(pair: Guest) -> None:
    acts = (answer(1, watch=["-", "aa"]), answer(0, data="bb"))
    watch = [["b", 4096, 1], ["a", 8192, 1]]
    first, last = pair.call("a", PING * 2, *acts, watch=watch)
    assert (first["watch"], last["watch"]) == (["-", "aa"], ["bb", "aa"])
    assert pair.requests[-1]["calls"] == [["look", 36, 4096, 1]]


@pytest.mark.parametrize(
    "read",
    [
        (answer(1, watch=["gone"]),),
        (answer(1, watch=["-"]), answer(0, value=-1, errno=errno.ESRCH)),
    ],
    ids=["actor", "supervisor"],
)
def test_watching_a_dead_actor_raises(pair: Guest, read: tuple[Act, ...]) -> None:
    with pytest.raises(ActorDied, match="b"):
        pair.call("a", PING, *read, end(36), watch=[["b", 4096, 1]])


def test_memory_of_unknown_process_is_not_readable(guest: Guest) -> None:
    (result,) = guest.call("a", PING, answer(1, watch=["gone"]), watch=[["b", 4096, 1]])
    assert result["watch"] == [None]


def test_task_is_watched_by_its_thread_id(guest: Guest) -> None:
    watch = [["a/1", 4096, 1]]
    execute, peek = ["via", "a/1", ["exec", ""]], ["via", "a/1", ["peek", 0, 1]]
    guest.call("a", [["task", "a/1", None, 0]], answer(1, value=41))
    guest.call("a", [execute], answer(1, value=35, watch=["aa"]), watch=watch)
    assert guest.requests[-1]["watch"] == [[41, 4096, 1]]
    # After execve a thread has the id of its process.
    guest.call("a", [peek], answer(1, watch=["bb"]), watch=watch)
    assert guest.requests[-1]["watch"] == [[35, 4096, 1]]


def test_forked_actor_has_its_own_port(guest: Guest) -> None:
    guest.call("a", [["fork", "b"]], answer(1, value=36))
    assert guest.call("b", PING, answer(2)) == [RESULT]


def test_failed_fork_adds_no_actor(guest: Guest) -> None:
    (result,) = guest.call("a", [["fork", "b"]], answer(1, value=-1, errno=11))
    assert result["errno"] == 11
    with pytest.raises(CallRefused, match="no actor named 'b'"):
        guest.call("b", PING)


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
    with pytest.raises(ChannelBroken, match=part):
        guest.call("a", PING, lambda guest: guest.ports[1].sendall(stream))


@pytest.mark.parametrize(
    ("result", "message"),
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
    guest: Guest, result: dict[str, Any], message: str
) -> None:
    """The request has two watched places and one call."""
    watch = [("a", 0x1000, 8), ("a", 0x2000, 8)]
    with pytest.raises(ChannelBroken, match=message):
        guest.call("a", PING, answer(1, **result), watch=watch)


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
def test_agent_of_another_version_is_refused(idle: Guest, reported: object, message: str) -> None:
    idle.send(0, {"id": 0, "hello": 1, "agent": reported})
    with pytest.raises(ChannelBroken, match=f"another version of .*{message}") as caught:
        idle.agent.hello(Deadline(1, "hello"))
    assert "run again" in caught.value.hint


def test_agent_of_the_same_version_is_accepted(idle: Guest) -> None:
    """The guest need not have every file."""
    reported = {name: checksum for name, checksum in OURS.items() if name != "guest/needs.py"}
    idle.send(0, {"id": 0, "hello": 1, "agent": reported})
    idle.agent.hello(Deadline(1, "hello"))


def test_late_answer_is_dropped(guest: Guest) -> None:
    with pytest.raises(NoAnswer, match="no answer of mine within"):
        guest.agent.call("a", PING, (), Deadline(0.05, "answer of mine"))
    answer(1, value=1)(guest)
    assert guest.call("a", PING, answer(1, value=2))[0]["value"] == 2


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
    with pytest.raises(ChannelEnded):
        guest.call("a", PING, lambda guest: guest.ports[0].close())


def test_actor_dies_in_a_call(guest: Guest) -> None:
    with pytest.raises(ActorDied, match="ended by SIGSEGV") as caught:
        guest.call("a", PING, end(35, signal.SIGSEGV))
    assert caught.value.status == signal.SIGSEGV
    guest.spawn("a", 36)


def test_mark_reports_an_actor_that_has_ended(guest: Guest) -> None:
    mark = [["mark", "one"]]
    guest.call("", mark, answer(0))
    with pytest.raises(ActorDied, match="'a' ended with exit status 1 between calls"):
        guest.call("", mark, end(35, 256), answer(0))


def test_actor_dies_between_calls(guest: Guest) -> None:
    end(35, 256)(guest)
    with pytest.raises(ActorDied, match="exit status 1"):
        guest.call("a", PING)


def test_exit_is_answered_when_the_actor_is_reaped(guest: Guest) -> None:
    acts = (answer(1), lambda guest: guest.receive(1), end(35, 768))
    results = guest.call("a", [*PING, ["exit", 3]], *acts)
    assert guest.requests[-1]["calls"] == [["exit", 3]]
    assert [result["value"] for result in results] == [7, 0]
    with pytest.raises(CallRefused):
        guest.call("a", PING)


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
    with pytest.raises(CallRefused):
        guest.call(actor, calls)


def test_ports_are_reused(pair: Guest) -> None:
    with pytest.raises(CallRefused, match="no more than 2 actors"):
        pair.call("", [["spawn", "c"]])
    pair.call("", [["reset"]], answer(0, value=2))
    pair.spawn("c", 37)
    pair.spawn("d", 38)


def test_output_of_a_dead_actor_is_discarded(guest: Guest) -> None:
    guest.ports[1].sendall(b"UEV1 half a fra")
    guest.call("", [["kill", "a", 9]], answer(0, value=9))
    guest.spawn("b", 36)
    assert guest.call("b", PING, answer(1)) == [RESULT]


def test_status_of_a_process_that_was_no_actor_is_dropped(idle: Guest) -> None:
    """Its process id may be used again."""
    idle.spawn("b", 36)
    end(35)(idle)
    # The answer of the supervisor comes behind the status.
    idle.call("", [["mark", "later"]], answer(0))
    idle.spawn("a", 35)
    assert idle.call("a", PING, answer(2)) == [RESULT]


def test_status_of_a_process_that_ended_during_a_failed_spawn_is_dropped(idle: Guest) -> None:
    idle.call("", [["spawn", "a"]], end(35), answer(0, errno=errno.EAGAIN))
    idle.spawn()
    assert idle.call("a", PING, answer(1)) == [RESULT]


def test_actor_that_ends_at_once_has_ended(idle: Guest) -> None:
    idle.call("", [["spawn", "a"]], end(35), answer(0, value=35))
    with pytest.raises(ActorDied, match="SIGKILL"):
        idle.call("a", PING)


@pytest.mark.parametrize(("maker", "port", "call"), [("", 0, "spawn"), ("a", 1, "fork")])
def test_port_of_a_refused_call_is_reused(guest: Guest, maker: str, port: int, call: str) -> None:
    def refuse(guest: Guest) -> None:
        guest.send(port, {"id": guest.receive(port)["id"], "error": "OSError: no memory"})

    for _ in range(2):
        with pytest.raises(CallRefused, match="no memory"):
            guest.call(maker, [[call, "b"]], refuse)
    guest.spawn("b", 36)


@pytest.mark.parametrize("call", [["kill", "a", 9], ["reset"]])
def test_process_that_does_not_end_is_held_by_the_kernel(guest: Guest, call: list[object]) -> None:
    with pytest.raises(NoAnswer, match="does not end after a signal"):
        guest.call("", [call], answer(0, errno=errno.ETIMEDOUT))


def test_reset_that_fails_ends_no_actor(guest: Guest) -> None:
    guest.call("", [["reset"]], answer(0, errno=errno.EINTR))
    assert guest.call("a", PING, answer(1)) == [RESULT]

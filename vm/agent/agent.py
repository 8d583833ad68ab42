"""Conversation with the agent: which port an actor has, what a call is, and its result.

The supervisor ("") and every actor have a port of their own, so a call goes straight to the process
that performs it.  What one process cannot do (read another's memory, wait for its own end) is
combined here from requests to both.

A call is a list; integers are the kernel's, bytes are hexadecimal.  To an actor:

["sys", NUMBER, [ARGUMENT ...], SLOT]
    A system call.  ARGUMENT is an integer, {"fd": slot}, {"in": bytes} or {"out": size}.  The agent
    provides memory for the latter two; the first `value` bytes of "out" are returned as data.
    With a SLOT (else null) a successful result is a descriptor, stored there; value is then 0.
["peek", ADDRESS, LENGTH] and ["poke", ADDRESS, BYTES]
    Access own memory under its protections; EFAULT unless all of it was accessible.
["put_fd", ADDRESS, SLOT] and ["take_fd", ADDRESS, SLOT]
    Store a slot's descriptor number (also of a closed one) in memory as an int; store the
    descriptor whose number is in memory in a slot.
["fork", ACTOR]
    The child is a new actor; value is its process id.
["slurp", PATH, LIMIT] and ["spill", PATH, BYTES, FLAGS]
    Read a file to its end; open a file, write once and close.
["list", PATH]
    The names in a directory, one per line.
["number", PATH, ADDRESS]
    Store the decimal number in a file in own memory, as eight bytes.
["spill_pid", PATH, FLAGS]
    As "spill", with the process id in decimal as content.
["submit", SLOT, ADDRESS, COUNT, OFFSET, VECTOR]
    Write COUNT bytes of own memory, or with VECTOR that many iovecs, through io_uring; value and
    errno are those of the completion.
["exit", STATUS]
    The last call of an actor; answered when it is reaped.
["task", NAME, MAKER, FLAGS], ["via", NAME, CALL] and ["end_tasks"]
    Create a task, which runs no interpreter, with clone(2) and FLAGS from the task MAKER (null: the
    actor); value is its thread id.  Perform a call in a task.  Kill all tasks.  A task supports
    "sys" to "take_fd", "number", "spill" and: ["int80", ...], which is "sys" through the 32-bit
    entry; ["exec", PATH] (an empty path is a program that continues as the same task; value is its
    id); ["exit", STATUS] of its process; ["exit_task", STATUS] of the thread; ["die"], by SIGKILL;
    ["tid"], its thread id.
["race", TRACKS]
    Run several tasks concurrently from one starting point.  A track is [NAME, PASSES, CALLS].  The
    calls are "sys", ["add", ADDRESS, AMOUNT, TIMES] to four bytes of memory, "task" (query its
    "tid" afterwards), "exit" and "exit_task".  The data is JSON: for each call of each track how
    often it returned which value, up to four values, with null for all others.

["prepare_shell"] and ["shell", STREAM, MOUNTS, LINKS, WORDS, ENVIRONMENT, SIZE]
    Create a root for programs; mount exports in it and start a program (vm.guest.shell).  A mount
    is [TAG, DIRECTORY, OPTIONS, READ_ONLY], a link [NAME, TARGET]; value is the id of the relay.

["mount_programs", MOUNTS, LINKS], ["start_program", WORDS, ENVIRONMENT] and ["end_program"]
    Mount as "shell" does; start a program in /tmp of that root, one at a time; wait a second for
    its end.  errno is EAGAIN while it runs, then value is its exit code as a shell reports it and
    data its output and errors.

["unseen", CALL]
    One of the above up to "take_fd", without reading the watched memory afterwards.

To the supervisor: ["spawn", ACTOR], ["kill", ACTOR, SIGNAL] (value is the wait status), ["reset"]
(kill all other processes), ["ping"], ["mark", TEXT], which requires all actors to be alive,
["info"], and "sys" and "slurp".

A watch is [ACTOR, ADDRESS, LENGTH].  After every call the called actor reads all watched memory
that it has access to; the supervisor reads the rest after the last call, and "-" stands for it
before that.  null is memory that is not readable.
"""

from __future__ import annotations

import contextlib
import secrets
import select
from collections.abc import Iterator, Sequence
from errno import EPERM, ESRCH, ETIMEDOUT
from typing import Any

from host.deadline import Deadline
from vm.agent import encoding
from vm.agent.channel import Channel
from vm.agent.encoding import GONE, NOT_READ, Call, Result
from vm.agent.roster import Actor, Roster
from vm.errors import ActorDied, CallRefused, ChannelBroken, HostTrouble, NoAnswer
from vm.guest.version import NATIVE, native_version, versions

#: First request number in a restored guest: larger than any number used before the snapshot, plus
#: random bits, so that no reply from an earlier conversation matches.
_RESTORED, _RANDOM_BITS = 1 << 32, 61

Watch = Sequence[Sequence[Any]]
#: Calls that the supervisor performs like an actor.
_PLAIN = frozenset(("sys", "slurp"))


class Agent:
    """One conversation with the agent of one boot; after a ChannelBroken it is over."""

    def __init__(
        self, channels: Sequence[Channel], port_names: Sequence[str], *, restored: bool = False
    ) -> None:
        """`restored` says that the guest comes from a snapshot: its agent has seen requests."""
        self._supervisor, *_ = self._channels = list(channels)
        self._port_names = list(port_names)
        self.roster = Roster(len(channels))
        self._number = _RESTORED + secrets.randbits(_RANDOM_BITS) if restored else 0

    def close(self) -> None:
        """Hang up: the guest powers itself off.  Idempotent."""
        for channel in self._channels:
            channel.close()

    def hello(self, deadline: Deadline) -> None:
        """Wait for the supervisor's first message.

        Raises NoAnswer, and ChannelBroken if it is malformed or from another version.
        """
        while (first := self._supervisor.take()) is None:
            self._wait([self._supervisor], deadline)
        if "hello" not in first:
            raise ChannelBroken("the first message of the agent is no hello")
        _require_same_version(first.get("agent"))

    def call(
        self, actor: str, calls: Sequence[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        """Perform calls and read the watched memory: see Machine.call."""
        if actor == "":
            if all(call[0] in _PLAIN for call in calls):
                results = self._request(None, calls, [], deadline)
            else:
                results = [self._command(call, deadline) for call in calls]
            for result in results:
                result["watch"] = [NOT_READ] * len(watch)
        else:
            results = self._perform(self.roster.find(actor), calls, watch, deadline)
        self._read_remaining(results, watch, deadline)
        for result in results:
            result["watch"] = self._without_gone(result["watch"], watch, deadline)
        return results

    def _command(self, call: Call, deadline: Deadline) -> Result:
        """Perform one call in the supervisor, with names translated to processes and ports."""
        match list(call):
            case ["spawn", str(name)]:
                with self._port(name) as port:
                    result = self._request_supervisor(["spawn", self._port_names[port]], deadline)
                    self.roster.register(name, result, port)
            case ["kill", str(name), int(signal)]:
                actor = self.roster.find(name)
                result = self._request_supervisor(["kill", actor.pid, signal], deadline)
                _require_end(result, f"actor {name!r}")
                if result["errno"] == 0:
                    self._forget(actor)
            case ["reset"]:
                result = self._request_supervisor(["reset"], deadline)
                _require_end(result, "a process")
                if result["errno"] == 0:
                    for actor in self.roster:
                        self._forget(actor)
            case ["mark", _]:
                result = self._request_supervisor(call, deadline)
                self.roster.require_all_alive()
            case other:
                result = self._request_supervisor(other, deadline)
        return result

    def _perform(
        self, actor: Actor, calls: Sequence[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        leaving = [position for position, call in enumerate(calls) if call[0] == "exit"]
        if leaving and leaving != [len(calls) - 1]:
            raise CallRefused("exit must be the last call of an actor")
        before = list(calls[: len(calls) - len(leaving)])
        results = self._request_actor(actor, before, watch, deadline) if before else []
        if leaving:
            self._exit(actor, calls[-1], deadline)
            nothing = [NOT_READ] * len(watch)
            results.append({"value": 0, "errno": 0, "data": None, "watch": nothing})
        return results

    def _request_actor(
        self, actor: Actor, calls: list[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        forks = [position for position, call in enumerate(calls) if call[0] == "fork"]
        with contextlib.ExitStack() as allocated:
            ports = {
                position: allocated.enter_context(self._port(str(calls[position][1])))
                for position in forks
            }
            translated = [
                ["fork", self._port_names[ports[position]]] if position in ports else call
                for position, call in enumerate(calls)
            ]
            places = [[self.roster.pid(name), where, length] for name, where, length in watch]
            results = self._request(actor, translated, places, deadline)
            for position, port in ports.items():
                self.roster.register(str(calls[position][1]), results[position], port)
        for call, result in zip(calls, results, strict=True):
            self.roster.record_task(actor, call, result)
        return results

    @contextlib.contextmanager
    def _port(self, name: str) -> Iterator[int]:
        """A port for an actor that is registered inside, or never."""
        port = self.roster.allocate_port(name)
        try:
            yield port
        finally:
            self.roster.free_port(port)

    def _exit(self, actor: Actor, call: Call, deadline: Deadline) -> None:
        """Make an actor exit and wait until it is reaped."""
        self._number += 1
        message = encoding.request(self._number, [call], [])
        self._channels[actor.port].send(message, deadline)
        self._await_end(actor, deadline)

    def _await_end(self, actor: Actor, deadline: Deadline) -> None:
        # The report may have arrived already.
        self._receive_from_supervisor(None)
        while not actor.ended:
            self._wait([self._supervisor], deadline)
            self._receive_from_supervisor(None)
        self._forget(actor)

    def _read_remaining(self, results: list[Result], watch: Watch, deadline: Deadline) -> None:
        """Let the supervisor read, after the last call, the memory the actor has no access to."""
        if not results:
            return
        last = results[-1]["watch"]
        positions = [number for number, seen in enumerate(last) if seen == NOT_READ]
        if not positions:
            return
        reads = []
        for position in positions:
            name, where, length = watch[position]
            reads.append(["look", self.roster.pid(name), where, length])
        seen = self._request(None, reads, [], deadline)
        for position, read in zip(positions, seen, strict=True):
            if read["errno"] == EPERM:
                raise HostTrouble(
                    "the kernel does not let root read the memory of another process",
                    hint="check kernel.yama.ptrace_scope, and other security modules",
                )
            last[position] = {0: read["data"], ESRCH: GONE}.get(read["errno"])

    def _without_gone(self, seen: list[Any], watch: Watch, deadline: Deadline) -> list[Any]:
        """Replace the memory of ended tasks by None.  Raises ActorDied if an actor has ended."""
        if GONE not in seen:
            return seen
        for content, (name, _, _) in zip(seen, watch, strict=True):
            actor = self.roster.get(name) if content == GONE else None
            if actor is not None:
                self._await_end(actor, deadline)
                raise ActorDied(name, actor.status)
        return [None if content == GONE else content for content in seen]

    def _request_supervisor(self, call: Call, deadline: Deadline) -> Result:
        return self._request(None, [call], [], deadline)[0]

    def _request(
        self,
        actor: Actor | None,
        calls: Sequence[Call],
        places: Sequence[Any],
        deadline: Deadline,
    ) -> list[Result]:
        """Send one request and return its results, one per call."""
        self._number += 1
        message = encoding.request(self._number, calls, places)
        reply = self._exchange(actor, message, deadline)
        if "reply" not in reply:
            raise ChannelBroken(f"{len(calls)} results expected, answer was {reply!r:.200}")
        results = encoding.results(reply["reply"], [length for _, _, length in places])
        if len(results) != len(calls):
            raise ChannelBroken(f"{len(calls)} results expected, answer has {len(results)}")
        return results

    def _exchange(self, actor: Actor | None, message: bytes, deadline: Deadline) -> dict[str, Any]:
        channel = self._channels[actor.port] if actor else self._supervisor
        channel.send(message, deadline)
        while (reply := self._receive(actor)) is None:
            if actor and actor.ended:
                self._forget(actor)
                raise ActorDied(actor.name, actor.status)
            self._wait({channel, self._supervisor}, deadline)
        if "error" in reply:
            raise CallRefused(f"the agent refused the call: {reply['error']}")
        return reply

    def _receive(self, actor: Actor | None) -> dict[str, Any] | None:
        """The answer to the last request, if it has arrived; records ends of actors."""
        if actor is None:
            return self._receive_from_supervisor(self._number)
        channel = self._channels[actor.port]
        while (message := channel.take()) is not None:
            if self._is_answer(message, self._number):
                return message
        self._receive_from_supervisor(None)
        return None

    def _receive_from_supervisor(self, number: int | None) -> dict[str, Any] | None:
        while (message := self._supervisor.take()) is not None:
            if "ended" in message:
                self.roster.record_end(message["ended"], message.get("status"))
            elif self._is_answer(message, number):
                return message
        return None

    def _is_answer(self, message: dict[str, Any], number: int | None) -> bool:
        """Whether a message answers a request; late answers to earlier ones are dropped."""
        answered = message.get("id")
        if not isinstance(answered, int) or answered > self._number:
            raise ChannelBroken(f"answer to request {answered!r}, the last one was {self._number}")
        return answered == number

    def _wait(self, channels: Sequence[Channel] | set[Channel], deadline: Deadline) -> None:
        ready, _, _ = select.select(list(channels), [], [], deadline.remaining())
        for channel in ready:
            channel.fill()
        if not ready:
            waited = f"no {deadline.what} within {deadline.limit}"
            if pending := max(channel.pending for channel in channels):
                raise ChannelBroken(f"{waited}, only {pending} bytes of a frame")
            raise NoAnswer(waited)

    def _forget(self, actor: Actor) -> None:
        """Remove an actor that is gone, and what is left in its channel."""
        self.roster.forget(actor)
        self._channels[actor.port].clear()


def _require_end(result: Result, what: str) -> None:
    """Raise NoAnswer if a process did not end after its signal: the kernel holds it."""
    if result["errno"] == ETIMEDOUT:
        raise NoAnswer(f"{what} does not end after a signal")


def _require_same_version(reported: object) -> None:
    """Raise ChannelBroken unless the agent has the checksums of this checkout.

    The guest may have fewer files, but must report wire.py and the native engine.
    """
    ours = versions() | {NATIVE: native_version()}
    theirs = reported if isinstance(reported, dict) else {}
    differing = sorted(name for name, sum_ in theirs.items() if ours.get(name) != sum_)
    if differing or not {"wire.py", NATIVE} <= theirs.keys():
        which = ", ".join(f"vm/{name}" for name in differing) or "unknown files"
        what = f"the agent in the guest has another version of {which}"
        hint = "files of vm/ changed during the run: run again, from a checkout that is not edited"
        raise ChannelBroken(what, hint=hint)

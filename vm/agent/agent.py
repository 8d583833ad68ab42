"""The host's view of the agent: who the actors are, which port is whose, and what they answer.

The supervisor ("") has a port and every actor has another, so that a call goes straight to the
process that performs it.  What one process cannot do (look at another's memory after the call,
wait for its own end) is put together here from requests to both.

A call is a list; integers are the kernel's, bytes are in hexadecimal.  To an actor:

["sys", NUMBER, [ARGUMENT ...], SLOT]
    A system call.  ARGUMENT is an integer, {"fd": slot}, {"in": bytes} or {"out": size}; memory for
    the latter two is the agent's, and the first `value` bytes of "out" come back as data.  With a
    SLOT (else null) a result that is no error is a descriptor and is kept there; value is then 0.
["peek", ADDRESS, LENGTH] and ["poke", ADDRESS, BYTES]
    Its own memory, under its protections; EFAULT unless all of it was reached.
["put_fd", ADDRESS, SLOT] and ["take_fd", ADDRESS, SLOT]
    Write the number of a descriptor, an int, into its own memory, of one that was closed too; keep
    the descriptor whose number a system call left there.
["fork", ACTOR]
    The child is a new actor; value is its process id.
["slurp", PATH, LIMIT] and ["spill", PATH, BYTES, FLAGS]
    Read a file to its end, or open, write once and close.
["list", PATH]
    The names in a directory, a line each.
["number", PATH, ADDRESS]
    Store the decimal number that a file shows in its own memory, in eight bytes.
["spill_pid", PATH, FLAGS]
    The same with the number of the process, in decimal.
["submit", SLOT, ADDRESS, COUNT, OFFSET, VECTOR]
    Write COUNT bytes of its own memory, or with VECTOR so many iovecs, through io_uring; value and
    errno are those of the completion.
["exit", STATUS]
    The last call of an actor; answered when it is reaped.
["task", NAME, MAKER, FLAGS], ["via", NAME, CALL] and ["end_tasks"]
    A task that runs no interpreter, made with the flags of clone(2) by the task MAKER (null: by the
    actor), its id is the value; a call performed by it; the end of all of them.  A task knows "sys"
    to "take_fd" of these calls, "number" and "spill", and ["int80", ...], which is "sys" through
    the entry of 32-bit programs with their numbers, ["exec", PATH] (an empty path is a program that
    goes on as the same task; the value is its id), ["exit", STATUS] of its process, ["exit_task",
    STATUS] of itself alone, ["die"], by SIGKILL, and ["tid"], its id.
["race", TRACKS]
    Tasks at once: a track is [NAME, PASSES, CALLS], and all begin at one moment.  The calls are
    "sys", ["add", ADDRESS, AMOUNT, TIMES] to four bytes of memory, "task" (whose "tid" is to be
    asked for then), "exit" and "exit_task".  The data says, as JSON, how often which answer each
    call of each track had: four answers each, and null for all others.

["unseen", CALL]
    Any of these up to "take_fd", without a look at the watched memory behind it.

To the supervisor, actor "": ["spawn", ACTOR], ["kill", ACTOR, SIGNAL] (value is the wait status),
["reset"] (nobody is left), ["ping"], ["mark", TEXT], at which all actors have to live, ["info"];
"sys" and "slurp" too.

A watch is [ACTOR, ADDRESS, LENGTH].  The actor asked looks at all of them after every call, as
far as it has the right to; the supervisor looks at the others after the last one, and they stand
as "-" before that.  null is memory that is not readable.
"""

from __future__ import annotations

import secrets
import select
from collections.abc import Sequence
from errno import ESRCH
from typing import Any

from host.deadline import Deadline
from vm.agent import encoding
from vm.agent.channel import Channel
from vm.agent.encoding import GONE, NOT_LOOKED_AT, Call, Result
from vm.agent.roster import Actor, Roster
from vm.errors import ActorDied, CallRefused, ChannelBroken, NoAnswer
from vm.guest.version import NATIVE, native_version, versions

# More requests than any guest is sent before its state is saved, and how much more at random.
_RESTORED, _RANDOM_BITS = 1 << 32, 61

Watch = Sequence[Sequence[Any]]
# What the supervisor performs as any actor does.
_PLAIN = frozenset(("sys", "slurp"))


class Agent:
    """One conversation with the agent of one boot; after a ChannelBroken it is over."""

    def __init__(
        self, channels: Sequence[Channel], port_names: Sequence[str], *, restored: bool = False
    ) -> None:
        """``restored`` is a guest that was asked things before, in another conversation."""
        self._supervisor, *_ = self._channels = list(channels)
        self._port_names = list(port_names)
        #: Who lives; another conversation with the same guest goes on with its roll.
        self.roster = Roster(len(channels))
        # A guest takes no number twice.  What answers one that nobody could know is no recording.
        self._number = _RESTORED + secrets.randbits(_RANDOM_BITS) if restored else 0

    def close(self) -> None:
        """Hang up: the guest powers itself off.  Idempotent."""
        for channel in self._channels:
            channel.close()

    def hello(self, deadline: Deadline) -> None:
        """Wait for the supervisor's first word.

        Raises NoAnswer, and ChannelBroken for what is no agent, or one of another version.
        """
        while (first := self._supervisor.take()) is None:
            self._wait([self._supervisor], deadline)
        if "hello" not in first:
            raise ChannelBroken("the agent did not begin with hello")
        _require_ours(first.get("agent"))

    def call(
        self, actor: str, calls: Sequence[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        """Perform calls and look at the watched memory: see Machine.call."""
        if actor == "":
            if all(call[0] in _PLAIN for call in calls):
                results = self._ask(None, calls, [], deadline)
            else:
                results = [self._command(call, deadline) for call in calls]
            for result in results:
                result["watch"] = [NOT_LOOKED_AT] * len(watch)
        else:
            results = self._perform(self.roster.find(actor), calls, watch, deadline)
        self._look_elsewhere(results, watch, deadline)
        for result in results:
            result["watch"] = self._present(result["watch"], watch, deadline)
        return results

    def _command(self, call: Call, deadline: Deadline) -> Result:
        """One call to the supervisor, which knows processes and ports but no names."""
        match list(call):
            case ["spawn", str(name)]:
                port = self.roster.allot(name)
                result = self._ask_supervisor(["spawn", self._port_names[port]], deadline)
                self.roster.register(name, result, port)
            case ["kill", str(name), int(signal)]:
                actor = self.roster.find(name)
                result = self._ask_supervisor(["kill", actor.pid, signal], deadline)
                if result["errno"] == 0:
                    self._forget(actor)
            case ["reset"]:
                result = self._ask_supervisor(["reset"], deadline)
                for actor in self.roster:
                    self._forget(actor)
                self.roster.forget_strays()
            case ["mark", _]:
                result = self._ask_supervisor(call, deadline)
                self.roster.require_all()
            case other:
                result = self._ask_supervisor(other, deadline)
        return result

    def _perform(
        self, actor: Actor, calls: Sequence[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        leaving = [position for position, call in enumerate(calls) if call[0] == "exit"]
        if leaving and leaving != [len(calls) - 1]:
            raise CallRefused("an exit is the last call of an actor")
        before = list(calls[: len(calls) - len(leaving)])
        results = self._ask_actor(actor, before, watch, deadline) if before else []
        if leaving:
            self._leave(actor, calls[-1], deadline)
            nothing = [NOT_LOOKED_AT] * len(watch)
            results.append({"value": 0, "errno": 0, "data": None, "watch": nothing})
        return results

    def _ask_actor(
        self, actor: Actor, calls: list[Call], watch: Watch, deadline: Deadline
    ) -> list[Result]:
        ports = {
            position: self.roster.allot(str(call[1]))
            for position, call in enumerate(calls)
            if call[0] == "fork"
        }
        asked = [
            ["fork", self._port_names[ports[position]]] if position in ports else call
            for position, call in enumerate(calls)
        ]
        places = [[self.roster.pid(name), where, length] for name, where, length in watch]
        results = self._ask(actor, asked, places, deadline)
        for position, port in ports.items():
            self.roster.register(str(calls[position][1]), results[position], port)
        for call, result in zip(calls, results, strict=True):
            self.roster.note_task(actor, call, result)
        return results

    def _leave(self, actor: Actor, call: Call, deadline: Deadline) -> None:
        """Tell an actor to exit and wait until it is reaped."""
        self._number += 1
        message = encoding.request(self._number, [call], [])
        self._channels[actor.port].send(message, deadline)
        self._await_end(actor, deadline)

    def _await_end(self, actor: Actor, deadline: Deadline) -> None:
        # Its end may have been told already, with what was heard last.
        self._hear_supervisor(None)
        while not actor.ended:
            self._wait([self._supervisor], deadline)
            self._hear_supervisor(None)
        self._forget(actor)

    def _look_elsewhere(self, results: list[Result], watch: Watch, deadline: Deadline) -> None:
        """Fill in, after the last call, the watched memory that the actor could not look at."""
        if not results:
            return
        seen_last = results[-1]["watch"]
        positions = [number for number, seen in enumerate(seen_last) if seen == NOT_LOOKED_AT]
        if not positions:
            return
        looks = []
        for position in positions:
            name, where, length = watch[position]
            looks.append(["look", self.roster.pid(name), where, length])
        seen = self._ask(None, looks, [], deadline)
        for position, look in zip(positions, seen, strict=True):
            seen_last[position] = {0: look["data"], ESRCH: GONE}.get(look["errno"])

    def _present(self, seen: list[Any], watch: Watch, deadline: Deadline) -> list[Any]:
        """What was seen; nothing where there is no process.  Raises ActorDied for an actor's.

        One that nobody has ended has not lost its memory by what was called.
        """
        if GONE not in seen:
            return seen
        for look, (name, _, _) in zip(seen, watch, strict=True):
            actor = self.roster.get(name) if look == GONE else None
            if actor is not None:
                self._await_end(actor, deadline)
                raise ActorDied(name, actor.status)
        return [None if look == GONE else look for look in seen]

    def _ask_supervisor(self, call: Call, deadline: Deadline) -> Result:
        return self._ask(None, [call], [], deadline)[0]

    def _ask(
        self,
        actor: Actor | None,
        asked: Sequence[Call],
        places: Sequence[Any],
        deadline: Deadline,
    ) -> list[Result]:
        """One request and its answer: as many results as calls."""
        self._number += 1
        message = encoding.request(self._number, asked, places)
        reply = self._answer_of(actor, message, deadline)
        if "reply" not in reply:
            raise ChannelBroken(f"{len(asked)} results expected, answer was {reply!r:.200}")
        results = encoding.results(reply["reply"], [length for _, _, length in places])
        if len(results) != len(asked):
            raise ChannelBroken(f"{len(asked)} results expected, answer has {len(results)}")
        return results

    def _answer_of(self, actor: Actor | None, message: bytes, deadline: Deadline) -> dict[str, Any]:
        channel = self._channels[actor.port] if actor else self._supervisor
        channel.send(message, deadline)
        while (reply := self._hear(actor)) is None:
            if actor and actor.ended:
                self._forget(actor)
                raise ActorDied(actor.name, actor.status)
            self._wait({channel, self._supervisor}, deadline)
        if "error" in reply:
            raise CallRefused(f"the agent refused: {reply['error']}")
        return reply

    def _hear(self, actor: Actor | None) -> dict[str, Any] | None:
        """The answer to the last request, if it is here; ends of actors are noted on the way."""
        if actor is None:
            return self._hear_supervisor(self._number)
        channel = self._channels[actor.port]
        while (message := channel.take()) is not None:
            if self._is_answer(message, self._number):
                return message
        self._hear_supervisor(None)
        return None

    def _hear_supervisor(self, number: int | None) -> dict[str, Any] | None:
        while (message := self._supervisor.take()) is not None:
            if "ended" in message:
                self.roster.note_end(message["ended"], message.get("status"))
            elif self._is_answer(message, number):
                return message
        return None

    def _is_answer(self, message: dict[str, Any], number: int | None) -> bool:
        """Whether it answers; what answers an earlier request comes too late and is dropped."""
        answered = message.get("id")
        if not isinstance(answered, int) or answered > self._number:
            raise ChannelBroken(f"answer {answered!r} where {self._number} was asked last")
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
        """An actor is gone, and so is what it may have said last."""
        self.roster.forget(actor)
        self._channels[actor.port].clear()


def _require_ours(told: object) -> None:
    """Raise ChannelBroken unless the agent is made of the same files as we are."""
    ours = versions() | {NATIVE: native_version()}
    theirs = told if isinstance(told, dict) else {}
    # Not all of ours need be in the guest.
    differing = sorted(name for name, sum_ in theirs.items() if ours.get(name) != sum_)
    if differing or not {"wire.py", NATIVE} <= theirs.keys():
        which = ", ".join(differing) or "it does not say which"
        raise ChannelBroken(f"the agent in the guest is of another version: {which}")

"""Pool of guest processes: starting one costs more than most programs.

Before a process is reused its enablers are unregistered, its descriptors closed and its mappings
removed.  A process that was forked, pinned, or changed in another irreversible way is killed.

Unregistering also tells whether the kernel kept the enablers as the model has them: each is there
once, and leaves its bit clear.  That is checked in every process that may still open
user_events_data, forked ones included.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from errno import EFAULT, ENOENT, errorcode
from signal import SIGKILL
from typing import Any, Protocol

from msgspec import Struct, field

from conformance.abi import uapi
from conformance.client.tracefs import DATA
from conformance.listing.names import Names
from conformance.ops.calls import AT_FDCWD, Call, bytes_in, fd, path_in, sys_call
from conformance.ops.operation import Operation, Resources

# Slot of user_events_data for unregistering; no program uses it.
_OWN_SLOT = 1000

STILL_SET = "still set after its enabler was unregistered"
"""What is wrong with a bit that unregistering did not clear."""
MOST_ACTORS = 8
"""The most processes of a guest at a time, the standing one included: each has a port."""
# Calls per enabler: unregister, unregister again, read the byte of the bit.
_PER_ENABLER = 3


class Enablers(Struct, frozen=True):
    """The (address, bit) pairs that a process has registered.

    Unless ``settled``, faults of the kernel may still hold some of them.
    """

    places: tuple[tuple[int, int], ...] = ()
    settled: bool = True


class Returned(Struct, frozen=True):
    """Results of the calls after a clean-up; what the kernel kept wrongly, a line each."""

    results: list[dict[str, Any]]
    wrong: tuple[str, ...] = ()


class Caller(Protocol):
    """The part of a channel that the pool needs."""

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """Perform calls; one result each."""
        ...


class PooledProcess(Struct):
    """A process in use by a program: its name in the guest and what it must give back.

    ``plain`` is one that no program changed for good, though it may have been forked.  ``driver``
    is the process that drives this task (see vm.agent.agent), None for a process; ``tasks`` counts
    the tasks that a process has driven.
    """

    name: str
    reusable: bool = True
    plain: bool = True
    resources: Resources = field(default_factory=Resources)
    driver: PooledProcess | None = None
    tasks: int = 0

    def driven(self, calls: Sequence[Call]) -> list[Call]:
        """The calls as the driver of a task performs them."""
        if self.driver is None:
            return list(calls)
        own = ("task", "race", "via")
        return [call if call[0] in own else ["via", self.name, call] for call in calls]

    def note(self, operation: Operation, *, ok: bool) -> None:
        """Record what an operation leaves in the process."""
        if ok:
            operation.record(self.resources)
        if operation.irreversible:
            self.reusable = self.plain = False


class ProcessPool:
    """The processes of one guest.  Raises the channel's errors."""

    def __init__(self, channel: Caller, standing: str) -> None:
        """``standing`` is an actor that exists in the guest and never joins the pool."""
        self._channel = channel
        self._standing = standing
        self._idle: list[str] = []
        self._made = 0
        # In use; those that ended meanwhile count too.
        self._used = 0

    def borrow(self, actor: str, *, fresh: bool = False) -> PooledProcess:
        """A clean process; a ``fresh`` one has never been used."""
        if actor == self._standing:
            return PooledProcess(actor)
        if self._idle and not fresh:
            self._used += 1
            return PooledProcess(self._idle.pop())
        process = PooledProcess(self._new())
        self._channel.call("", [["spawn", process.name]])
        return process

    def child(self, parent: PooledProcess) -> PooledProcess:
        """A process that is about to be forked."""
        plain = parent.plain and parent.driver is None
        return PooledProcess(self._new(), reusable=False, plain=plain)

    def task(self, maker: PooledProcess) -> PooledProcess:
        """A task that a process, or a task of one, is about to clone."""
        driver = maker.driver or maker
        driver.reusable = False
        driver.tasks += 1
        return PooledProcess(f"{driver.name}/{driver.tasks}", reusable=False, driver=driver)

    def _new(self) -> str:
        """The name of a new process, for which an idle one ends if all ports are taken."""
        # The standing one is neither idle nor used.
        if self._idle and len(self._idle) + self._used + 1 >= MOST_ACTORS:
            self._end(self._idle.pop(0))
        self._used += 1
        self._made += 1
        return f"w{self._made}"

    def _end(self, name: str) -> None:
        self._channel.call("", [["kill", name, SIGKILL]])

    def give_back(
        self, used: Iterable[tuple[PooledProcess, Enablers]], then: Sequence[Call] = ()
    ) -> Returned:
        """Clean up or kill processes.

        The last process that is kept also performs ``then``; the results are those of ``then``,
        none if no process is kept.
        """
        ours = [each for each in used if each[0].name != self._standing and not each[0].driver]
        ours.sort(key=lambda each: each[0].reusable)
        last = Returned([])
        wrong: list[str] = []
        for position, (process, enablers) in enumerate(ours, start=1):
            last = self._take_back(process, enablers, then if position == len(ours) else ())
            wrong += last.wrong
        self._used = 0
        return Returned(last.results, tuple(wrong))

    def _take_back(
        self, process: PooledProcess, enablers: Enablers, then: Sequence[Call]
    ) -> Returned:
        if process.tasks:
            self._channel.call(process.name, [["end_tasks"]])
        wrong: tuple[str, ...] = ()
        if process.reusable:
            unregistering = _unregistering(enablers)
            calls = [*unregistering, *_releasing(process.resources)]
            results = self._channel.call(process.name, [*calls, *then]) if calls or then else []
            if not process.tasks:
                wrong = _wrong(enablers, results)
            # EFAULT of an unregistration whose word the program has unmapped is not an error.
            if all(result["errno"] == 0 for result in results[len(unregistering) : len(calls)]):
                self._idle.append(process.name)
                return Returned(results[len(calls) :], wrong)
        elif process.plain and not process.tasks and enablers.places:
            wrong = _wrong(enablers, self._channel.call(process.name, _unregistering(enablers)))
        self._end(process.name)
        return Returned([], wrong)


def _unregistering(enablers: Enablers) -> list[Call]:
    """Calls that unregister enablers; see ``_wrong``."""
    if not enablers.places:
        return []
    path = path_in(DATA)
    calls: list[Call] = [sys_call("openat", AT_FDCWD, path, os.O_RDONLY, 0, slot=_OWN_SLOT)]
    for address, bit in enablers.places:
        unregister = _unregister(address, bit)
        calls += [unregister, unregister, ["peek", address + bit // 8, 1]]
    return [*calls, sys_call("close", fd(_OWN_SLOT))]


def _wrong(enablers: Enablers, results: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Enablers that were not as the model has them, by the results of ``_unregistering``.

    A program may have unmapped a word: then unregistering gives EFAULT.
    """
    if not enablers.places or not enablers.settled or results[0]["errno"]:
        return ()
    found = []
    names = Names()
    for number, (address, bit) in enumerate(enablers.places):
        first, again, byte = results[1 + _PER_ENABLER * number :][:_PER_ENABLER]
        place = f"bit {bit} of {names.memory(address)}"
        if first["errno"] not in (0, EFAULT):
            error = errorcode.get(first["errno"], first["errno"])
            found.append(f"{place}: unregistering its enabler gave {error}")
        if again["errno"] != ENOENT:
            found.append(f"{place}: an enabler is left after it was unregistered")
        if not (first["errno"] or byte["errno"]) and int(byte["data"], 16) >> bit % 8 & 1:
            found.append(f"{place}: {STILL_SET}")
    return tuple(found)


def _releasing(resources: Resources) -> list[Call]:
    """Calls that return the descriptors and mappings of a process; none may fail."""
    return [
        *(sys_call("close", fd(slot)) for slot in sorted(resources.slots)),
        *(sys_call("munmap", address, length) for address, length in resources.ranges),
    ]


def _unregister(address: int, bit: int) -> Call:
    unreg = uapi.USER_UNREG.pack(
        {"size": uapi.USER_UNREG.size, "disable_bit": bit, "disable_addr": address}
    )
    return sys_call("ioctl", fd(_OWN_SLOT), uapi.DIAG_IOCSUNREG, bytes_in(unreg))

"""Pool of guest processes: starting one costs more than most programs.

Before a process is reused its enablers are unregistered, its descriptors closed and its mappings
removed.  A process that was forked, pinned, or changed in another irreversible way is killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from conformance.abi import uapi
from conformance.client.tracefs import DATA
from conformance.ops.calls import AT_FDCWD, Call, bytes_in, fd, path_in, sys_call
from conformance.ops.operation import Operation, Resources

_O_RDONLY = 0
_SIGKILL = 9
# Slot of user_events_data for unregistering; no program uses it.
_OWN_SLOT = 1000

# The (address, bit) pairs that a process has registered.
Enablers = Sequence[tuple[int, int]]


class Caller(Protocol):
    """The part of a channel that the pool needs."""

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """Perform calls; one result each."""
        ...


@dataclass(slots=True)
class PooledProcess:
    """A process in use by a program: its name in the guest and what it must give back.

    ``driver`` is the process that drives this task (see vm.agent.agent), None for a process;
    ``tasks`` counts the tasks that a process has driven.
    """

    name: str
    reusable: bool = True
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
            self.reusable = False


class ProcessPool:
    """The processes of one guest.  Raises the channel's errors."""

    def __init__(self, channel: Caller, standing: str) -> None:
        """``standing`` is an actor that exists in the guest and never joins the pool."""
        self._channel = channel
        self._standing = standing
        self._idle: list[str] = []
        self._made = 0

    def borrow(self, actor: str, *, fresh: bool = False) -> PooledProcess:
        """A clean process; a ``fresh`` one has never been used."""
        if actor == self._standing:
            return PooledProcess(actor)
        if self._idle and not fresh:
            return PooledProcess(self._idle.pop())
        process = PooledProcess(self._next_name())
        self._channel.call("", [["spawn", process.name]])
        return process

    def child(self) -> PooledProcess:
        """A process that is about to be forked."""
        return PooledProcess(self._next_name(), reusable=False)

    def task(self, maker: PooledProcess) -> PooledProcess:
        """A task that a process, or a task of one, is about to clone."""
        driver = maker.driver or maker
        driver.reusable = False
        driver.tasks += 1
        return PooledProcess(f"{driver.name}/{driver.tasks}", reusable=False, driver=driver)

    def _next_name(self) -> str:
        self._made += 1
        return f"w{self._made}"

    def give_back(
        self, used: Iterable[tuple[PooledProcess, Enablers]], then: Sequence[Call] = ()
    ) -> list[dict[str, Any]]:
        """Clean up or kill processes.

        The last process that is kept also performs ``then``; returns the results of ``then``,
        none if no process is kept.
        """
        ours = [each for each in used if each[0].name != self._standing and not each[0].driver]
        ours.sort(key=lambda each: each[0].reusable)
        results: list[dict[str, Any]] = []
        for position, (process, enablers) in enumerate(ours, start=1):
            results = self._take_back(process, enablers, then if position == len(ours) else ())
        return results

    def _take_back(
        self, process: PooledProcess, enablers: Enablers, then: Sequence[Call]
    ) -> list[dict[str, Any]]:
        if process.tasks:
            self._channel.call(process.name, [["end_tasks"]])
        if process.reusable:
            calls, needed = _clean_up(process.resources, enablers)
            results = self._channel.call(process.name, [*calls, *then]) if calls or then else []
            # EFAULT of an unregistration whose word the program has unmapped is not an error.
            if all(result["errno"] == 0 for result in results[needed : len(calls)]):
                self._idle.append(process.name)
                return results[len(calls) :]
        self._channel.call("", [["kill", process.name, _SIGKILL]])
        return []


def _clean_up(resources: Resources, enablers: Enablers) -> tuple[list[Call], int]:
    """Calls that return a process to a clean state, and the index from which none may fail."""
    calls: list[Call] = []
    if enablers:
        path = path_in(DATA)
        calls.append(sys_call("openat", AT_FDCWD, path, _O_RDONLY, 0, slot=_OWN_SLOT))
        calls += [_unregister(address, bit) for address, bit in enablers]
        calls.append(sys_call("close", fd(_OWN_SLOT)))
    needed = len(calls)
    calls += [sys_call("close", fd(slot)) for slot in sorted(resources.slots)]
    calls += [sys_call("munmap", address, length) for address, length in resources.ranges]
    return calls, needed


def _unregister(address: int, bit: int) -> Call:
    unreg = uapi.USER_UNREG.pack(
        {"size": uapi.USER_UNREG.size, "disable_bit": bit, "disable_addr": address}
    )
    return sys_call("ioctl", fd(_OWN_SLOT), uapi.DIAG_IOCSUNREG, bytes_in(unreg))

"""Reuse processes of a guest: to create one costs more than most cases.

A process that is given back unregisters its enablers, closes its descriptors and unmaps its memory.
A process with state that cannot be undone (forked, pinned to a processor, privileges dropped) is
killed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from conformance.abi import uapi
from conformance.client.tracefs import DATA
from conformance.ops import credentials, mapping, tasks, tracing
from conformance.ops import syscalls as op
from conformance.ops.encode.requests import Call, fd, path_in, sys_call

_AT_FDCWD = -100
_O_RDONLY = 0
_SIGKILL = 9
# The slot of the descriptor that unregisters.
_OWN_SLOT = 1000

# The (address, bit) pairs that a process still has registered.
Enablers = Sequence[tuple[int, int]]


class Caller(Protocol):
    """Performs calls in a guest."""

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """Perform calls; one result each."""
        ...


@dataclass(slots=True)
class PooledProcess:
    """A borrowed process: its name in the guest, and the state it has gained."""

    name: str
    reusable: bool = True
    slots: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    # The process that drives a task (see vm.agent.agent), and the number of its tasks so far.
    driver: PooledProcess | None = None
    tasks: int = 0

    def driven(self, calls: Sequence[Call]) -> list[Call]:
        """The calls, or for a task those of its driver that make the task perform them."""
        if self.driver is None:
            return list(calls)
        own = ("task", "race", "via")
        return [call if call[0] in own else ["via", self.name, call] for call in calls]

    def note(self, operation: op.Operation, *, ok: bool) -> None:
        """Record the state that an operation leaves in the process."""
        match operation:
            case op.Open(slot=slot) | op.Dup(new_slot=slot) | op.PerfEventOpen(slot=slot) if ok:
                self.slots.add(slot)
            case op.Bpf(slot=int(slot)) if ok:
                self.slots.add(slot)
            case op.Socketpair(slot=slot, other_slot=other_slot) if ok:
                self.slots |= {slot, other_slot}
            case op.Close(slot=slot) if ok:
                self.slots.discard(slot)
            case op.Mmap(address=address, length=length) if ok:
                self.ranges.append((address, length))
            case mapping.MemoryFile(slot=slot) | tasks.ReceiveDescriptor(new_slot=slot) if ok:
                self.slots.add(slot)
            case mapping.Mremap(new_address=address, length=length) if ok:
                self.ranges.append((address, length))
            case op.Setuid() | op.Pin() | tasks.LimitDescriptors():
                self.reusable = False
            case credentials.Lasting() | tracing.SubmitWrite():
                # io_uring leaves workers in the process.
                self.reusable = False


class ProcessPool:
    """The processes of one guest.  Raises what the channel raises."""

    def __init__(self, channel: Caller, standing: str) -> None:
        """``standing`` is an actor that lives in the guest already and is shared by all cases."""
        self._channel = channel
        self._standing = standing
        self._idle: list[str] = []
        self._made = 0

    def borrow(self, actor: str, *, fresh: bool = False) -> PooledProcess:
        """A process without state; a ``fresh`` one was never used."""
        if actor == self._standing:
            return PooledProcess(actor)
        if self._idle and not fresh:
            return PooledProcess(self._idle.pop())
        process = PooledProcess(self._next_name())
        self._channel.call("", [["spawn", process.name]])
        return process

    def child(self) -> PooledProcess:
        """A process that another is about to fork."""
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
        """Reset processes for reuse, or kill them.

        The last one that lives performs the calls ``then``; their results, [] if none lives.
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
            calls, unregistering = _reset_calls(process, enablers)
            results = self._channel.call(process.name, [*calls, *then]) if calls or then else []
            # Unregistering returns EFAULT where the program unmapped its enable word, and succeeds.
            if all(result["errno"] == 0 for result in results[unregistering : len(calls)]):
                self._idle.append(process.name)
                return results[len(calls) :]
        self._channel.call("", [["kill", process.name, _SIGKILL]])
        return []


def _reset_calls(process: PooledProcess, enablers: Enablers) -> tuple[list[Call], int]:
    """Calls that reset a process; the first ones, this many, may fail."""
    calls: list[Call] = []
    if enablers:
        path = path_in(DATA)
        calls.append(sys_call("openat", _AT_FDCWD, path, _O_RDONLY, 0, slot=_OWN_SLOT))
        calls += [_unregister(address, bit) for address, bit in enablers]
        calls.append(sys_call("close", fd(_OWN_SLOT)))
    unregistering = len(calls)
    calls += [sys_call("close", fd(slot)) for slot in sorted(process.slots)]
    calls += [sys_call("munmap", address, length) for address, length in process.ranges]
    return calls, unregistering


def _unregister(address: int, bit: int) -> Call:
    unreg = uapi.USER_UNREG.pack(
        {"size": uapi.USER_UNREG.size, "disable_bit": bit, "disable_addr": address}
    )
    return sys_call("ioctl", fd(_OWN_SLOT), uapi.DIAG_IOCSUNREG, {"in": unreg.hex()})

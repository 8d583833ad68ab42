"""Processes of a guest that programs borrow, since making one costs more than most programs.

A process that comes back is put in order: what it still follows is unregistered, its
descriptors are closed, its mappings go.  One of which something cannot be put back (it was
forked, pinned to a processor, or gave up its rights) is killed.
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
# The descriptor of this module's own use.
_OWN_SLOT = 1000

# The (address, bit) pairs that a process still follows.
Enablers = Sequence[tuple[int, int]]


class Caller(Protocol):
    """The part of a channel that is needed here."""

    def call(self, actor: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """Perform calls; one result each."""
        ...


@dataclass(slots=True)
class Hand:
    """A borrowed process: its name in the guest, and what it was used for."""

    name: str
    reusable: bool = True
    slots: set[int] = field(default_factory=set)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    # A task's (see vm.agent.agent) driving process, and how many tasks that process has had.
    driver: Hand | None = None
    tasks: int = 0

    def driven(self, calls: Sequence[Call]) -> list[Call]:
        """Calls as the process performs them that drives this task, if it is one."""
        if self.driver is None:
            return list(calls)
        own = ("task", "race", "via")
        return [call if call[0] in own else ["via", self.name, call] for call in calls]

    def note(self, operation: op.Operation, *, ok: bool) -> None:
        """Remember what an operation leaves in the process."""
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


class Crew:
    """The processes of one guest.  Raises what the channel raises."""

    def __init__(self, channel: Caller, standing: str) -> None:
        """``standing`` is an actor that lives in the guest already and is nobody's own."""
        self._channel = channel
        self._standing = standing
        self._idle: list[str] = []
        self._made = 0

    def enlist(self, actor: str, *, fresh: bool = False) -> Hand:
        """A process in which nothing has happened; a ``fresh`` one never was in use."""
        if actor == self._standing:
            return Hand(actor)
        if self._idle and not fresh:
            return Hand(self._idle.pop())
        hand = Hand(self._next_name())
        self._channel.call("", [["spawn", hand.name]])
        return hand

    def child(self) -> Hand:
        """A process that is about to be forked by another."""
        return Hand(self._next_name(), reusable=False)

    def task(self, maker: Hand) -> Hand:
        """A task that is about to be made by a process, or by a task of one."""
        driver = maker.driver or maker
        driver.reusable = False
        driver.tasks += 1
        return Hand(f"{driver.name}/{driver.tasks}", reusable=False, driver=driver)

    def _next_name(self) -> str:
        self._made += 1
        return f"w{self._made}"

    def dismiss(
        self, used: Iterable[tuple[Hand, Enablers]], then: Sequence[Call] = ()
    ) -> list[dict[str, Any]]:
        """Take processes back, put in order or killed.

        The last that lives performs what is to be done ``then``; the results, none without one.
        """
        ours = [each for each in used if each[0].name != self._standing and not each[0].driver]
        ours.sort(key=lambda each: each[0].reusable)
        results: list[dict[str, Any]] = []
        for position, (hand, enablers) in enumerate(ours, start=1):
            results = self._take_back(hand, enablers, then if position == len(ours) else ())
        return results

    def _take_back(
        self, hand: Hand, enablers: Enablers, then: Sequence[Call]
    ) -> list[dict[str, Any]]:
        if hand.tasks:
            self._channel.call(hand.name, [["end_tasks"]])
        if hand.reusable:
            calls, needed = _putting_in_order(hand, enablers)
            results = self._channel.call(hand.name, [*calls, *then]) if calls or then else []
            # An unregistration may say EFAULT where a program unmapped its word: it is done.
            if all(result["errno"] == 0 for result in results[needed : len(calls)]):
                self._idle.append(hand.name)
                return results[len(calls) :]
        self._channel.call("", [["kill", hand.name, _SIGKILL]])
        return []


def _putting_in_order(hand: Hand, enablers: Enablers) -> tuple[list[Call], int]:
    """Calls that leave nothing in a process, and from which on none may fail."""
    calls: list[Call] = []
    if enablers:
        path = path_in(DATA)
        calls.append(sys_call("openat", _AT_FDCWD, path, _O_RDONLY, 0, slot=_OWN_SLOT))
        calls += [_unregister(address, bit) for address, bit in enablers]
        calls.append(sys_call("close", fd(_OWN_SLOT)))
    needed = len(calls)
    calls += [sys_call("close", fd(slot)) for slot in sorted(hand.slots)]
    calls += [sys_call("munmap", address, length) for address, length in hand.ranges]
    return calls, needed


def _unregister(address: int, bit: int) -> Call:
    unreg = uapi.USER_UNREG.pack(
        {"size": uapi.USER_UNREG.size, "disable_bit": bit, "disable_addr": address}
    )
    return sys_call("ioctl", fd(_OWN_SLOT), uapi.DIAG_IOCSUNREG, {"in": unreg.hex()})

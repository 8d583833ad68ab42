"""Processes, what they have open, and the words by which they follow events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import AddressSpace
from conformance.model.state.credentials import Credentials
from conformance.model.state.namespaces import Namespace

# Descriptors have these numbers here, more than any process opens.
_FIRST_DESCRIPTOR = 1 << 20
_NO_DESCRIPTOR = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class OpenFile:
    """An open file description.

    ``events`` are the serials behind the write indices of user_events_data; ``text`` and
    ``position`` (in bytes) what a file that shows text has in its buffer.
    """

    path: str
    flags: int
    events: list[int] = field(default_factory=list)
    text: bytes = b""
    position: int = 0
    # The event whose file it is, which may be gone.
    event: int | None = None
    # A map, a program, a socket or an event of perf: what has no path.
    object: object | None = None
    # What was sent over a socket and waits at this end of it.
    passed: list[OpenFile] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Enabler:
    """One word and bit of a process that follows an event (struct user_event_enabler)."""

    event: int
    address: int
    bit: int
    faulting: bool = False
    freeing: bool = False


@dataclass(slots=True, eq=False)
class Numbers:
    """A namespace of process ids, and who was born into it; its first is process 1 there."""

    members: list[Process] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Process:
    """An actor.  ``enablers`` is None until it registers (no struct user_event_mm).

    ``cpu`` is the processor it keeps to, None where it may run on any.  Threads have a ``leader``,
    the task whose process they belong to.  ``kept`` are the slots that execve(2) leaves open.
    Tasks may have memory, slots and enablers in common: then those are the same objects.
    ``namespace`` is None for the mounts that all begin with, ``root`` a path there, and
    ``filtered`` names the errors by which a filter answers system calls.
    """

    memory: AddressSpace = field(default_factory=AddressSpace)
    slots: dict[int, OpenFile] = field(default_factory=dict)
    credentials: Credentials = field(default_factory=Credentials)
    closed: set[int] = field(default_factory=set)
    enablers: list[Enabler] | None = None
    cpu: int | None = None
    leader: Process | None = None
    kept: set[int] = field(default_factory=set)
    # RLIMIT_NOFILE, where it was set.
    most_descriptors: int | None = None
    # Of a task: the process that drives it; whose end a parent of vfork waits for.
    driver: Process | None = None
    waits_for: Process | None = None
    namespace: Namespace | None = None
    root: str = ""
    filtered: dict[str, str] = field(default_factory=dict)
    # Its namespace of process ids, None for the first of all, and that of its children.
    numbers: Numbers | None = None
    numbers_of_children: Numbers | None = None

    def task_with(self, memory: AddressSpace, slots: dict[int, OpenFile]) -> Process:
        """A new task of this one with such memory and descriptors: what else it inherits."""
        return Process(
            memory,
            slots,
            replace(self.credentials),
            set(self.closed),
            cpu=self.cpu,
            kept=set(self.kept),
            most_descriptors=self.most_descriptors,
            namespace=self.namespace,
            root=self.root,
            filtered=dict(self.filtered),
            numbers=self.numbers,
            numbers_of_children=self.numbers,
        )

    @property
    def is_first(self) -> bool:
        """Whether it is process 1 of a namespace."""
        return self.numbers is not None and self.numbers.members[0] is self

    @property
    def uid(self) -> int:
        """The user it runs as."""
        return self.credentials.uid

    @property
    def capable(self) -> bool:
        """perfmon_capable(): CAP_PERFMON or CAP_SYS_ADMIN."""
        return self.credentials.perfmon

    def file(self, slot: int) -> OpenFile:
        """The open file of a descriptor.  Raises Errno("EBADF")."""
        if slot not in self.slots:
            raise Errno("EBADF")
        return self.slots[slot]

    def number_of(self, slot: int) -> int:
        """The number of a descriptor, open or closed again: here, one of our own."""
        if slot not in self.closed:
            self.file(slot)
        return _FIRST_DESCRIPTOR + slot

    def slot_of(self, number: int) -> int:
        """The slot behind a number.  Raises NotModelled for numbers that were not asked for."""
        if not number < 1 << 31 or number == _NO_DESCRIPTOR:
            raise Errno("EBADF")
        if number < _FIRST_DESCRIPTOR:
            raise NotModelled(f"descriptor {number}, which may be anybody's")
        return number - _FIRST_DESCRIPTOR

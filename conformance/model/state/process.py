"""Processes: memory, descriptors, enablers, credentials and namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.model.state.credentials import Credentials
from conformance.model.state.namespaces import Namespace

# The model numbers descriptors from here, higher than any process of a case opens.
_FIRST_DESCRIPTOR = 1 << 20
_NO_DESCRIPTOR = (1 << 31) - 1


@dataclass(slots=True, eq=False)
class OpenFile:
    """struct file.

    ``events`` are the serials by write index (user_events_data).  ``text`` and ``position`` are the
    buffer and offset of a seq_file.
    """

    path: str
    flags: int
    events: list[int] = field(default_factory=list)
    text: bytes = b""
    position: int = 0
    # The serial of the event whose file it is; the event may be removed.
    event: int | None = None
    # A file without a path: a BPF map or program, a socket or a perf event.
    object: object | None = None
    # Files sent over a socket, waiting at this end of it.
    queued: list[OpenFile] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Enabler:
    """struct user_event_enabler: an enable bit of a process."""

    event: int
    address: int
    bit: int
    faulting: bool = False
    freeing: bool = False


@dataclass(slots=True, eq=False)
class PidNamespace:
    """A PID namespace and its members; the first is process 1."""

    members: list[Process] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Process:
    """A task.  ``enablers`` is None until it registers (no struct user_event_mm).

    ``tid`` is the thread id, given as the name of the actor that was created with it.  ``cpu`` is
    the processor that the task is bound to, None for any.  A thread has a ``leader``.
    ``kept_over_exec`` are slots without close-on-exec.  Tasks that share memory, slots or enablers
    hold the same objects.  ``namespace`` is None for the initial mount namespace and ``root`` a
    path in it.  ``seccomp_errors`` are errno names by system call.
    """

    tid: str = ""
    memory: AddressSpace = field(default_factory=AddressSpace)
    slots: dict[int, OpenFile] = field(default_factory=dict)
    credentials: Credentials = field(default_factory=Credentials)
    closed_slots: set[int] = field(default_factory=set)
    enablers: list[Enabler] | None = None
    cpu: int | None = None
    leader: Process | None = None
    kept_over_exec: set[int] = field(default_factory=set)
    # RLIMIT_NOFILE, if set.
    rlimit_nofile: int | None = None
    # The process that drives the task, and the vfork child that the task waits for.
    driver: Process | None = None
    waits_for: Process | None = None
    namespace: Namespace | None = None
    root: str = ""
    seccomp_errors: dict[str, str] = field(default_factory=dict)
    # None for the initial PID namespace.
    pid_namespace: PidNamespace | None = None
    pid_namespace_for_children: PidNamespace | None = None
    # The memory that a fork(2) on its way to user_events_fork() has copied.
    copied_memory: AddressSpace | None = None

    def task_with(self, tid: str, memory: AddressSpace, slots: dict[int, OpenFile]) -> Process:
        """A child with the given memory and descriptors; everything else is inherited."""
        return Process(
            tid,
            memory,
            slots,
            replace(self.credentials),
            set(self.closed_slots),
            cpu=self.cpu,
            kept_over_exec=set(self.kept_over_exec),
            rlimit_nofile=self.rlimit_nofile,
            namespace=self.namespace,
            root=self.root,
            seccomp_errors=dict(self.seccomp_errors),
            pid_namespace=self.pid_namespace,
            pid_namespace_for_children=self.pid_namespace,
        )

    @property
    def is_init(self) -> bool:
        """Whether the task is process 1 of a PID namespace."""
        return self.pid_namespace is not None and self.pid_namespace.members[0] is self

    def file(self, slot: int) -> OpenFile:
        """The open file of a descriptor.  Raises Errno("EBADF")."""
        if slot not in self.slots:
            raise Errno("EBADF", f"descriptor {slot} is not open")
        return self.slots[slot]

    def fd_of(self, slot: int) -> int:
        """A stand-in for the number of a descriptor, which may be closed."""
        if slot not in self.closed_slots:
            self.file(slot)
        return _FIRST_DESCRIPTOR + slot

    def slot_of_fd(self, number: int) -> int:
        """The slot of a descriptor number.

        Raises Errno("EBADF"), and NotModelled for a number that the model did not hand out.
        """
        if not number < 1 << 31 or number == _NO_DESCRIPTOR:
            raise Errno("EBADF")
        if number < _FIRST_DESCRIPTOR:
            raise NotModelled(f"descriptor {number}, which the model did not hand out")
        return number - _FIRST_DESCRIPTOR

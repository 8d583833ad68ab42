"""The operation vocabulary: frozen descriptions of system calls by named actors.

An actor is a process.  File descriptors are named by ``slot``, a number of the program's
own choosing which ``fork`` copies like the descriptor table.  Addresses, lengths and
offsets are in bytes; addresses are absolute, since programs map memory at addresses they
choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class View(StrEnum):
    """How the text of a file is read before it is compared (see ``views.read``)."""

    EXACT = "exact"
    # Only the lines of the program's own events: others may linger from earlier programs.
    OWN = "own"
    # The definitions of the program's own events in dynamic_events, without what the first
    # version of user_events shows behind them: who listens.
    DEFINITIONS = "definitions"
    # The structure of a `format` file: its id and the text of array lengths left out.
    STRUCTURE = "structure"
    # A `format` file without its id.
    ARRAYS = "arrays"
    # The bodies of trace lines: what follows the time stamp.  Of a record that is dumped
    # its payload, as hexadecimal bytes.
    RECORDS = "records"
    # The same, each once and sorted: who recorded first, and how often, is left open.
    DISTINCT = "distinct"
    # The bodies of all trace lines, whoever's; the number of a type that is unknown is left out.
    BODIES = "bodies"
    # The counts of per_cpu/cpuN/stats, without bytes and times.
    COUNTS = "counts"
    # The same, and where among them a stack was recorded.
    STACKS = "stacks"
    # The triggers in `trigger`, without the list of what there could be.
    TRIGGERS = "triggers"
    # What `error_log` says, without the times.
    ERRORS = "errors"


@dataclass(frozen=True, slots=True)
class Operation:
    """What every operation has: the process that performs it."""

    actor: str


@dataclass(frozen=True, slots=True)
class Spawn(Operation):
    """A new process ``actor`` comes into being: root, no descriptors, no mappings of ours."""


@dataclass(frozen=True, slots=True)
class Fork(Operation):
    """fork(2): ``child`` is a copy of ``actor``; the value is not compared (a pid)."""

    child: str


@dataclass(frozen=True, slots=True)
class Exit(Operation):
    """_exit(2), reaped before the next operation."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class Setuid(Operation):
    """Become user and group ``uid`` for good, losing all capabilities."""

    uid: int


@dataclass(frozen=True, slots=True)
class Pin(Operation):
    """sched_setaffinity(2): run on ``cpu`` alone from now on."""

    cpu: int


@dataclass(frozen=True, slots=True)
class Open(Operation):
    """openat(2) of an absolute path into ``slot``; ``flags`` as in fcntl.h."""

    slot: int
    path: str
    flags: int


@dataclass(frozen=True, slots=True)
class Close(Operation):
    """close(2)."""

    slot: int


@dataclass(frozen=True, slots=True)
class Dup(Operation):
    """dup(2) of ``slot`` into ``new_slot``: the same open file description."""

    slot: int
    new_slot: int


@dataclass(frozen=True, slots=True)
class Ioctl(Operation):
    """ioctl(2) with a 64-bit argument, most often an address."""

    slot: int
    request: int
    argument: int


@dataclass(frozen=True, slots=True)
class IoctlDescriptor(Operation):
    """ioctl(2) whose argument is the number of another descriptor."""

    slot: int
    request: int
    argument_slot: int


@dataclass(frozen=True, slots=True)
class PerfEventOpen(Operation):
    """perf_event_open(2) of the perf_event_attr at ``address`` into ``slot``.

    ``pid`` 0 is the caller and -1 everybody; ``cpu`` -1 is wherever that is.
    """

    slot: int
    address: int
    pid: int = 0
    cpu: int = -1


@dataclass(frozen=True, slots=True)
class ReadRing(Operation):
    """Look at ``length`` bytes of a perf ring buffer mapped at ``address``.

    They are compared as the text that ``ring.shown`` makes of them; ``sample_type`` says what
    the samples hold.
    """

    address: int
    length: int
    sample_type: int


@dataclass(frozen=True, slots=True)
class Read(Operation):
    """read(2) of at most ``count`` bytes into a buffer of the executor's own."""

    slot: int
    count: int


@dataclass(frozen=True, slots=True)
class Write(Operation):
    """write(2) of ``count`` bytes at ``address``."""

    slot: int
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Pwrite(Operation):
    """pwrite64(2)."""

    slot: int
    address: int
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class Writev(Operation):
    """writev(2) with ``count`` iovecs (16 bytes each) at ``address``."""

    slot: int
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Pwritev(Operation):
    """pwritev(2) with ``count`` iovecs at ``address``."""

    slot: int
    address: int
    count: int
    offset: int


@dataclass(frozen=True, slots=True)
class Lseek(Operation):
    """lseek(2)."""

    slot: int
    offset: int
    whence: int


@dataclass(frozen=True, slots=True)
class Mmap(Operation):
    """mmap(2) at a fixed address that must be free; ``slot`` None is anonymous memory."""

    address: int
    length: int
    protection: int
    flags: int
    slot: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Munmap(Operation):
    """munmap(2)."""

    address: int
    length: int


@dataclass(frozen=True, slots=True)
class Mprotect(Operation):
    """mprotect(2)."""

    address: int
    length: int
    protection: int


@dataclass(frozen=True, slots=True)
class Store(Operation):
    """The process writes ``data`` at ``address``; EFAULT stands for the fatal signal."""

    address: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StoreNumber(Operation):
    """The number that a text file shows is stored at ``address``, in 8 bytes.

    For numbers that the kernel chooses, such as the id of an event: a program uses them
    without knowing them.
    """

    address: int
    path: str


@dataclass(frozen=True, slots=True)
class Load(Operation):
    """The process reads ``length`` bytes at ``address``; EFAULT for the fatal signal."""

    address: int
    length: int


@dataclass(frozen=True, slots=True)
class ReadFile(Operation):
    """Open a file, read it to its end, close it; ``view`` says what of it is compared.

    ``prefix`` is what the names of the program's own events begin with (View.OWN and
    View.RECORDS).  ``sizes`` are the payload bytes of the records that kernels before 6.4
    dump, so that the padding behind them is left out; 0 or more each.
    """

    path: str
    view: View = View.EXACT
    prefix: str = ""
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteFile(Operation):
    """Open a file with ``flags``, give ``data`` to one write(2), close it."""

    path: str
    data: bytes
    flags: int


@dataclass(frozen=True, slots=True)
class Stat(Operation):
    """The permission bits of a path (stat(2), st_mode & 0o7777), as the value."""

    path: str


@dataclass(frozen=True, slots=True)
class Bpf(Operation):
    """bpf(2) with the attributes at ``address``, of which it is told ``size`` bytes.

    With a ``slot`` the answer is a descriptor, kept there; the value is 0 then.
    """

    command: int
    address: int
    size: int
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class StoreDescriptor(Operation):
    """The process writes the number of a descriptor, an int, at ``address``.

    Numbers are the kernel's choice: memory that holds one cannot be compared.
    """

    address: int
    slot: int


@dataclass(frozen=True, slots=True)
class Socketpair(Operation):
    """socketpair(2) of AF_UNIX datagram sockets that never wait."""

    slot: int
    other_slot: int


@dataclass(frozen=True, slots=True)
class Setsockopt(Operation):
    """setsockopt(2) with ``length`` bytes at ``address``."""

    slot: int
    level: int
    option: int
    address: int
    length: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What came back: the system call's value, its error's name, and bytes.

    ``value`` is -1 when ``errno`` is set; ``errno`` is "" on success, else a name such as
    "EINVAL".  ``data`` holds what was read.  ``watched`` holds the memory looked at right
    after the operation, by (actor, address); None is memory that cannot be read.
    """

    value: int
    errno: str = ""
    data: bytes | None = None
    watched: tuple[tuple[tuple[str, int], bytes | None], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return not self.errno

    @property
    def text(self) -> str:
        """``data`` as text; bytes outside UTF-8 are kept as surrogates."""
        return (self.data or b"").decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Watch:
    """A range of an actor's memory that is compared after every operation; bytes."""

    actor: str
    address: int
    length: int

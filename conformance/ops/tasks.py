"""Operations of tasks: clone, execve, ends of all kinds, 32-bit calls, descriptors on their way.

A task is an actor without an interpreter: what ``Clone`` makes, of a process or of another task.
It performs the operations that are system calls, reads and writes memory, and shares what the
flags of its making say.  The process that made the first one drives them all and must outlive
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.ops.syscalls import Operation

# include/uapi/linux/sched.h
CLONE_VM = 0x0000_0100
CLONE_FILES = 0x0000_0400
CLONE_VFORK = 0x0000_4000
CLONE_THREAD = 0x0001_0000
# What pthread_create(3) shares, as far as anybody can tell here: with CLONE_FS, CLONE_SIGHAND.
THREAD = CLONE_VM | 0x0000_0200 | CLONE_FILES | 0x0000_0800 | CLONE_THREAD
VFORK = CLONE_VM | CLONE_VFORK


@dataclass(frozen=True, slots=True)
class TaskOperation(Operation):
    """What this module describes."""


@dataclass(frozen=True, slots=True)
class SpawnDriver(TaskOperation):
    """A new process, as ``Spawn`` makes it, that never was anybody else's and drives tasks.

    A process that has registered once has a list of enablers ever after, though an empty one, and
    so have its children: they would not begin as a program does.
    """


@dataclass(frozen=True, slots=True)
class Clone(TaskOperation):
    """clone(2) with ``flags``: a task ``child``; the value is not compared (an id).

    With CLONE_VFORK the actor performs nothing more until its child is gone or another program.
    """

    child: str
    flags: int


@dataclass(frozen=True, slots=True)
class Exec(TaskOperation):
    """execve(2) of ``path``, or of a program that goes on as this actor, with fresh memory.

    Of its descriptors it has those that were kept (see KeepOverExec).  The value is not compared.
    """

    path: str = ""


@dataclass(frozen=True, slots=True)
class ExitTask(TaskOperation):
    """exit(2): this task alone ends, not its process; it is gone before the next operation."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class Die(TaskOperation):
    """SIGKILL, from outside, for the process of a task; it is gone before the next operation."""


@dataclass(frozen=True, slots=True)
class KeepOverExec(TaskOperation):
    """fcntl(2): take FD_CLOEXEC, with which all is opened, from a descriptor."""

    slot: int


@dataclass(frozen=True, slots=True)
class LimitDescriptors(TaskOperation):
    """setrlimit(2) of RLIMIT_NOFILE, the soft limit alone."""

    most: int


# The 32-bit entry (int 0x80), with numbers of 32 bits; of an address the upper half is not seen.


@dataclass(frozen=True, slots=True)
class Ioctl32(TaskOperation):
    """ioctl(2) of a 32-bit task."""

    slot: int
    request: int
    argument: int


@dataclass(frozen=True, slots=True)
class Read32(TaskOperation):
    """read(2) of a 32-bit task."""

    slot: int
    count: int


@dataclass(frozen=True, slots=True)
class Write32(TaskOperation):
    """write(2) of a 32-bit task."""

    slot: int
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Writev32(TaskOperation):
    """writev(2) of a 32-bit task: ``count`` iovecs of 8 bytes each at ``address``."""

    slot: int
    address: int
    count: int


@dataclass(frozen=True, slots=True)
class Mmap32(TaskOperation):
    """mmap2(2) of a 32-bit task, of a descriptor; ``offset`` in bytes."""

    address: int
    length: int
    protection: int
    flags: int
    slot: int
    offset: int = 0


# SCM_RIGHTS


@dataclass(frozen=True, slots=True)
class SendDescriptor(TaskOperation):
    """sendmsg(2) of one byte and the descriptor ``passed`` over a socket."""

    slot: int
    passed: int


@dataclass(frozen=True, slots=True)
class ReceiveDescriptor(TaskOperation):
    """recvmsg(2) of a byte and a descriptor, kept in ``new_slot``, with MSG_CMSG_CLOEXEC."""

    slot: int
    new_slot: int

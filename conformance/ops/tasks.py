"""Operations on tasks: clone, execve, and the ways in which tasks end.

A task is an actor without an interpreter: ``Clone`` makes it, from a process or from another
task.  It performs system calls, reads and writes memory, and shares what its clone flags say.
The process that made the first task drives all of them and must outlive them.
"""

from __future__ import annotations

import fcntl
import resource
import struct
from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import replace

from conformance.ops.c_text import flag_names
from conformance.ops.calls import Call, bytes_in, fd, sys_call
from conformance.ops.operation import Operation
from conformance.ops.processes import Spawn

# include/uapi/linux/sched.h
CLONE_VM = 0x0000_0100
CLONE_FS = 0x0000_0200
CLONE_FILES = 0x0000_0400
CLONE_SIGHAND = 0x0000_0800
CLONE_VFORK = 0x0000_4000
CLONE_THREAD = 0x0001_0000
# What pthread_create(3) shares, as far as user_events depend on it.
THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD
VFORK = CLONE_VM | CLONE_VFORK
CLONE_FLAGS = {
    CLONE_VM: "CLONE_VM",
    CLONE_FS: "CLONE_FS",
    CLONE_FILES: "CLONE_FILES",
    CLONE_SIGHAND: "CLONE_SIGHAND",
    CLONE_VFORK: "CLONE_VFORK",
    CLONE_THREAD: "CLONE_THREAD",
}
_HARD_LIMIT = 4096


class SpawnDriver(Spawn, frozen=True):
    """Start a process that drives tasks and has never run another program.

    A process that has registered once keeps a list of enablers, though an empty one, and its
    children inherit it: they would not start as a program does.
    """


class Clone(Operation, frozen=True):
    """clone(2) with ``flags``: a task ``child``; the value, a thread id, is not compared.

    With CLONE_VFORK the actor performs nothing until its child has exited or called execve.
    """

    child: str
    flags: int

    def c_text(self) -> str:
        names = flag_names(self.flags, CLONE_FLAGS, "")
        if not self.flags & CLONE_THREAD:
            names = f"{names} | SIGCHLD" if names else "SIGCHLD"
        return f"{self.child} = clone({names}, 0, 0, 0, 0)"

    def calls(self) -> list[Call]:
        # The name of a task has a slash in it, that of a process has none.
        maker = self.actor if "/" in self.actor else None
        return [["task", self.child, maker, self.flags]]

    def renamed(self, name: Callable[[str], str]) -> Clone:
        return replace(self, actor=name(self.actor), child=name(self.child))


class Exec(Operation, frozen=True):
    """execve(2) of ``path``, or of a program that continues as this actor with fresh memory.

    It keeps the descriptors of ``KeepOverExec``.  The value is not compared.
    """

    path: str = ""

    def c_text(self) -> str:
        return f'execve("{self.path or "/proc/self/exe"}", argv, envp)'

    def calls(self) -> list[Call]:
        return [["exec", self.path]]


class ExitTask(Operation, frozen=True):
    """exit(2) of this task only, not of its process; reaped before the next operation."""

    status: int = 0

    def c_text(self) -> str:
        return f"syscall(SYS_exit, {self.status})"

    def calls(self) -> list[Call]:
        return [["exit_task", self.status]]


class Die(Operation, frozen=True):
    """SIGKILL from outside to the process of a task; reaped before the next operation."""

    def c_text(self) -> str:
        return f"kill({self.actor}, SIGKILL)"

    def calls(self) -> list[Call]:
        return [["die"]]


class KeepOverExec(Operation, frozen=True):
    """fcntl(2): clear FD_CLOEXEC, which every descriptor is opened with."""

    slot: int

    def c_text(self) -> str:
        return f"fcntl(fd{self.slot}, F_SETFD, 0)"

    def calls(self) -> list[Call]:
        return [sys_call("fcntl", fd(self.slot), fcntl.F_SETFD, 0)]


class LimitDescriptors(Operation, frozen=True):
    """setrlimit(2) of the soft RLIMIT_NOFILE."""

    most: int
    irreversible: ClassVar[bool] = True

    def c_text(self) -> str:
        limit = f"&(struct rlimit){{{self.most}, {_HARD_LIMIT}}}"
        return f"setrlimit(RLIMIT_NOFILE, {limit})"

    def calls(self) -> list[Call]:
        limit = bytes_in(struct.pack("<QQ", self.most, _HARD_LIMIT))
        return [sys_call("prlimit64", 0, resource.RLIMIT_NOFILE, limit, 0)]

"""Operations on processes: spawn, fork, exit, change user, pin to a CPU, change priority."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import replace

from conformance.ops.calls import Call, bytes_in, sys_call
from conformance.ops.operation import Operation


class Spawn(Operation, frozen=True):
    """Start a root process ``actor`` without descriptors or mappings of a program."""

    def c_text(self) -> str:
        return "/* new process */"

    def calls(self) -> list[Call]:
        return [["spawn", self.actor]]


class Fork(Operation, frozen=True):
    """fork(2): ``child`` is a copy of ``actor``; the value, a pid, is not compared."""

    child: str

    def c_text(self) -> str:
        return f"{self.child} = fork()"

    def calls(self) -> list[Call]:
        return [["fork", self.child]]

    def renamed(self, name: Callable[[str], str]) -> Fork:
        return replace(self, child=name(self.child))


class Exit(Operation, frozen=True):
    """_exit(2); the process is reaped before the next operation."""

    status: int = 0

    def c_text(self) -> str:
        return f"_exit({self.status})"

    def calls(self) -> list[Call]:
        return [["exit", self.status]]


class Setuid(Operation, frozen=True):
    """Become user and group ``uid`` for good, without capabilities."""

    uid: int
    irreversible: ClassVar[bool] = True

    def c_text(self) -> str:
        ids = f"{self.uid}, {self.uid}, {self.uid}"
        return f"setresgid({ids}); setresuid({ids})"

    def calls(self) -> list[Call]:
        ids = (self.uid, self.uid, self.uid)
        return [
            sys_call("setgroups", 0, 0),
            sys_call("setresgid", *ids),
            sys_call("setresuid", *ids),
        ]


class Pin(Operation, frozen=True):
    """sched_setaffinity(2): run on ``cpu`` only."""

    cpu: int
    irreversible: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"sched_setaffinity(0, 8, &(long){{1 << {self.cpu}}})"

    def calls(self) -> list[Call]:
        mask = (1 << self.cpu).to_bytes(8, "little")
        return [sys_call("sched_setaffinity", 0, len(mask), bytes_in(mask))]


class Fifo(Operation, frozen=True):
    """sched_setscheduler(2): run before the kernel workers of the CPU, which wait meanwhile."""

    irreversible: ClassVar[bool] = True

    def c_text(self) -> str:
        return "sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1})"

    def calls(self) -> list[Call]:
        priority = (1).to_bytes(4, "little")
        return [sys_call("sched_setscheduler", 0, os.SCHED_FIFO, bytes_in(priority))]

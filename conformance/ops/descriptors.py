"""Operations on file descriptors: open, close, duplicate, control, and their numbers."""

from __future__ import annotations

import fcntl
import os
from typing import ClassVar

from conformance.ops.c_text import open_flags, request
from conformance.ops.calls import AT_FDCWD, Call, fd, path_in, sys_call
from conformance.ops.operation import Operation, Resources


class Open(Operation, frozen=True):
    """openat(2) of an absolute path into ``slot``; ``flags`` as in fcntl.h."""

    slot: int
    path: str
    flags: int
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'fd{self.slot} = open("{self.path}", {open_flags(self.flags)})'

    def calls(self) -> list[Call]:
        flags = self.flags | os.O_CLOEXEC
        return [sys_call("openat", AT_FDCWD, path_in(self.path), flags, 0, slot=self.slot)]

    def record(self, resources: Resources) -> None:
        resources.slots.add(self.slot)


class Close(Operation, frozen=True):
    """close(2)."""

    slot: int

    def c_text(self) -> str:
        return f"close(fd{self.slot})"

    def calls(self) -> list[Call]:
        return [sys_call("close", fd(self.slot))]

    def record(self, resources: Resources) -> None:
        resources.slots.discard(self.slot)


class Dup(Operation, frozen=True):
    """dup(2) of ``slot`` into ``new_slot``: the same open file description."""

    slot: int
    new_slot: int

    def c_text(self) -> str:
        return f"fd{self.new_slot} = dup(fd{self.slot})"

    def calls(self) -> list[Call]:
        return [sys_call("fcntl", fd(self.slot), fcntl.F_DUPFD_CLOEXEC, 0, slot=self.new_slot)]

    def record(self, resources: Resources) -> None:
        resources.slots.add(self.new_slot)


class StoreDescriptor(Operation, frozen=True):
    """Write the number of a descriptor, an int, to ``address``.

    The kernel chooses the number, so memory that holds it cannot be compared.
    """

    address: int
    slot: int

    def c_text(self) -> str:
        return f"*(int *){self.address:#x} = fd{self.slot}"

    def calls(self) -> list[Call]:
        return [["put_fd", self.address, self.slot]]


class Ioctl(Operation, frozen=True):
    """ioctl(2) with a 64-bit argument, most often an address."""

    slot: int
    request: int
    argument: int
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"ioctl(fd{self.slot}, {request(self.request)}, {self.argument:#x})"

    def calls(self) -> list[Call]:
        return [sys_call("ioctl", fd(self.slot), self.request, self.argument)]


class IoctlDescriptor(Operation, frozen=True):
    """ioctl(2) whose argument is the number of another descriptor."""

    slot: int
    request: int
    argument_slot: int

    def c_text(self) -> str:
        return f"ioctl(fd{self.slot}, {request(self.request)}, fd{self.argument_slot})"

    def calls(self) -> list[Call]:
        return [sys_call("ioctl", fd(self.slot), self.request, fd(self.argument_slot))]


class Lseek(Operation, frozen=True):
    """lseek(2)."""

    slot: int
    offset: int
    whence: int

    def c_text(self) -> str:
        return f"lseek(fd{self.slot}, {self.offset}, {self.whence})"

    def calls(self) -> list[Call]:
        return [sys_call("lseek", fd(self.slot), self.offset, self.whence)]

"""read(2) and all forms of write(2) on a descriptor, io_uring included."""

from __future__ import annotations

from typing import ClassVar

from conformance.ops.calls import Call, buffer, fd, sys_call
from conformance.ops.operation import Operation


class Read(Operation, frozen=True):
    """read(2) of at most ``count`` bytes into a buffer of the agent."""

    slot: int
    count: int
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"read(fd{self.slot}, buffer, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call("read", fd(self.slot), buffer(self.count), self.count)]


class Write(Operation, frozen=True):
    """write(2) of ``count`` bytes at ``address``."""

    slot: int
    address: int
    count: int

    def c_text(self) -> str:
        return f"write(fd{self.slot}, (void *){self.address:#x}, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call("write", fd(self.slot), self.address, self.count)]


class Pwrite(Operation, frozen=True):
    """pwrite64(2)."""

    slot: int
    address: int
    count: int
    offset: int

    def c_text(self) -> str:
        return f"pwrite(fd{self.slot}, (void *){self.address:#x}, {self.count}, {self.offset})"

    def calls(self) -> list[Call]:
        return [sys_call("pwrite64", fd(self.slot), self.address, self.count, self.offset)]


class Writev(Operation, frozen=True):
    """writev(2) with ``count`` iovecs (16 bytes each) at ``address``."""

    slot: int
    address: int
    count: int

    def c_text(self) -> str:
        return f"writev(fd{self.slot}, (struct iovec *){self.address:#x}, {self.count})"

    def calls(self) -> list[Call]:
        return [sys_call("writev", fd(self.slot), self.address, self.count)]


class Pwritev(Operation, frozen=True):
    """pwritev(2) with ``count`` iovecs at ``address``."""

    slot: int
    address: int
    count: int
    offset: int

    def c_text(self) -> str:
        iovecs = f"(struct iovec *){self.address:#x}"
        return f"pwritev(fd{self.slot}, {iovecs}, {self.count}, {self.offset})"

    def calls(self) -> list[Call]:
        # The offset is passed in two halves; on 64 bits the low one holds it all.
        return [sys_call("pwritev", fd(self.slot), self.address, self.count, self.offset, 0)]


class SubmitWrite(Operation, frozen=True):
    """IORING_OP_WRITE, or with ``vector`` IORING_OP_WRITEV, and the wait for its completion.

    ``registered`` is IORING_OP_WRITE_FIXED, from memory that is registered before.  ``count``
    counts bytes, or iovecs (16 bytes each) at ``address``; ``offset`` -1 is the file position.  The
    value is the result in the completion.
    """

    slot: int
    address: int
    count: int
    offset: int = 0
    vector: bool = False
    registered: bool = False
    # io_uring leaves workers in the process.
    irreversible: ClassVar[bool] = True

    def c_text(self) -> str:
        where = f"fd{self.slot}, (void *){self.address:#x}, {self.count}, {self.offset}"
        if self.registered:
            return f"io_uring_prep_write_fixed(sqe, {where}, 0)"
        return f"io_uring_prep_{'writev' if self.vector else 'write'}(sqe, {where})"

    def calls(self) -> list[Call]:
        where = (self.slot, self.address, self.count, self.offset)
        return [["submit", *where, self.vector, self.registered]]

"""Perform the calls of an actor in a task that it has created (see tasks.py)."""

from __future__ import annotations

import ctypes
import os
import struct
from errno import EBADF, EFAULT, EINVAL

from vm.guest import syscalls
from vm.guest.serving import BadCall
from vm.guest.task_program import COUNT, MAILBOXES_FD, Mailboxes
from vm.guest.tasks import CALL32, CALL64, CLONE_FILES, EmptySlot, Task

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import Array, c_char
    from typing import Any

    from vm.guest.native_engine import Slots
    from vm.guest.serving import Outcome

_SYS_READ, _SYS_WRITE, _SYS_CLOSE, _SYS_OPENAT, _SYS_PIPE2 = 0, 1, 3, 257, 293
_SYS_PROCESS_VM_READV, _SYS_PROCESS_VM_WRITEV = 310, 311
_AT_FDCWD = -100 & (1 << 64) - 1
#: Bytes that fit into a pipe and into a mailbox.
_PIECE = 4096
#: Maximum number of digits that fit into 64 bits.
_DIGITS = 19


class Driver:
    """The tasks of one actor, by name."""

    def __init__(self, slots: dict[int, int] | Slots, port: int) -> None:
        """`slots` belong to the actor; tasks close its `port`."""
        self._slots = slots
        self._port = port
        self._tasks: dict[str, Task] = {}
        self._mailboxes = Mailboxes()
        self._handlers: dict[str, Callable[..., Outcome]] = {
            "sys": self._sys,
            "int80": self._int80,
            "peek": self._peek,
            "poke": self._poke,
            "put_fd": self._put_fd,
            "take_fd": self._take_fd,
            "number": self._number,
            "spill": self._spill,
            "exec": self._exec,
            "tid": self._tid,
            "exit": self._exit,
            "exit_task": self._exit_task,
            "die": self._die,
        }

    def make(self, name: str, maker: str | None, flags: int) -> Outcome:
        """Create a task from another one or from the actor; the value is its thread id."""
        task = self.expect(name, maker, flags)
        try:
            task.make(None if maker is None else self._tasks[maker])
        except OSError:
            self.forget(task)
            raise
        if maker is None and not flags & CLONE_FILES:
            # A port can only be opened once, so the task must not keep it open.
            task.call(_SYS_CLOSE, self._port)
        return task.tid, 0, None

    def expect(self, name: str, maker: str | None, flags: int) -> Task:
        """Reserve a mailbox for a task that will be created."""
        taken = {task.number for task in self._tasks.values()}
        free = [number for number in range(1, COUNT) if number not in taken]
        if name in self._tasks or not free:
            raise BadCall(f"no room for a task {name!r}")
        slots = self._slots if maker is None else self._tasks[maker].slots
        task = self._tasks[name] = Task(self._mailboxes, name, free[0], flags, slots)
        return task

    def find(self, name: str) -> Task:
        """The task of a name.  Raises KeyError."""
        return self._tasks[name]

    def via(self, name: str, call: list[Any]) -> Outcome:
        """Perform one call in a task."""
        try:
            task, form = self._tasks[name], self._handlers[call[0]]
        except (KeyError, IndexError, TypeError):
            raise BadCall(f"unknown task or call: {name!r} {call!r:.200}") from None
        return form(task, *call[1:])

    def end(self) -> Outcome:
        """Kill all tasks."""
        for task in self._tasks.values():
            task.kill()
        os.close(MAILBOXES_FD)
        return 0, 0, None

    def _int80(self, task: Task, number: int, arguments: list[Any], slot: int | None) -> Outcome:
        return self._sys(task, number, arguments, slot, CALL32)

    def _sys(
        self, task: Task, number: int, arguments: list[Any], slot: int | None, kind: int = CALL64
    ) -> Outcome:
        task.clear()
        try:
            plain, out = task.arguments(arguments)
        except EmptySlot:
            return -1, EBADF, None
        value, errno = task.call(number, *plain, kind=kind)
        if errno == 0 and slot is not None:
            task.slots[slot] = value
            value = 0
        data = task.bytes_at(out, value) if out is not None and value > 0 else None
        return value, errno, data

    def _peek(self, task: Task, where: int, length: int) -> Outcome:
        memory = ctypes.create_string_buffer(length)
        value, errno = _transfer(_SYS_PROCESS_VM_READV, task.tid, where, memory)
        if errno != EFAULT:
            return value, errno, None if errno else memory.raw
        data = b""
        while len(data) < length:
            piece, errno = _load(task, where + len(data), min(_PIECE, length - len(data)))
            if errno:
                return -1, errno, None
            data += piece
        return length, 0, data

    def _poke(self, task: Task, where: int, content: str) -> Outcome:
        data = bytes.fromhex(content)
        memory = ctypes.create_string_buffer(data, len(data))
        return *_transfer(_SYS_PROCESS_VM_WRITEV, task.tid, where, memory), None

    def _put_fd(self, task: Task, where: int, slot: int) -> Outcome:
        if slot not in task.slots:
            return -1, EBADF, None
        return self._poke(task, where, task.slots[slot].to_bytes(4, "little").hex())

    def _take_fd(self, task: Task, where: int, slot: int) -> Outcome:
        value, errno, data = self._peek(task, where, 4)
        if data is not None:
            task.slots[slot] = int.from_bytes(data, "little")
            value = 0
        return value, errno, None

    def _number(self, task: Task, path: str, where: int) -> Outcome:
        """Store the decimal number in a file, read by the actor, as eight bytes."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            return -1, error.errno or 0, None
        digits = os.read(descriptor, _DIGITS).strip()
        os.close(descriptor)
        if not digits.isdigit():
            return -1, EINVAL, None
        return self._poke(task, where, int(digits).to_bytes(8, "little").hex())

    def _spill(self, task: Task, path: str, content: str, flags: int) -> Outcome:
        """Open a file, write once and close."""
        task.clear()
        where = task.place(os.fsencode(path) + b"\0")
        opened, errno = task.call(_SYS_OPENAT, _AT_FDCWD, where, flags | os.O_CLOEXEC, 0o644)
        if errno:
            return -1, errno, None
        data = bytes.fromhex(content)
        value, errno = task.call(_SYS_WRITE, opened, task.place(data), len(data))
        task.call(_SYS_CLOSE, opened)
        return value, errno, None

    def _exec(self, task: Task, path: str) -> Outcome:
        """Execute a program; the value is the new thread id, which is that of the process."""
        value, errno = task.execute(path)
        return value if errno else task.tid, errno, None

    def _tid(self, task: Task) -> Outcome:
        return task.tid, 0, None

    def _exit(self, task: Task, status: int) -> Outcome:
        task.leave(status & 0xFF, alone=False)
        self._await_threads(task)
        return self.forget(task)

    def _exit_task(self, task: Task, status: int) -> Outcome:
        task.leave(status & 0xFF, alone=True)
        return self.forget(task)

    def _die(self, task: Task) -> Outcome:
        task.kill()
        self._await_threads(task)
        return self.forget(task)

    def _await_threads(self, ended: Task) -> None:
        for task in self._tasks.values():
            if task.pid == ended.pid:
                task.wait()

    def forget(self, task: Task) -> Outcome:
        """Remove a task that has ended."""
        del self._tasks[task.name]
        return 0, 0, None


def _transfer(number: int, pid: int, where: int, memory: Array[c_char]) -> tuple[int, int]:
    """Read or write memory of a process: (count, errno); a partial transfer is EFAULT.

    These calls honour memory protection, unlike /proc/PID/mem.
    """
    length = len(memory)
    # struct iovec: the local one, the remote one.
    vectors = (ctypes.c_uint64 * 4)(ctypes.addressof(memory), length, where, length)
    local = ctypes.addressof(vectors)
    value, errno = syscalls.syscall(number, pid, local, 1, local + 16, 1, 0)
    return (-1, errno or EFAULT) if value != length else (value, 0)


def _load(task: Task, where: int, length: int) -> tuple[bytes, int]:
    """Read a task's memory that process_vm_readv cannot read, such as mapped page frames.

    The task writes it to a pipe: write() fails with EFAULT where a load would raise a signal.
    """
    task.clear()
    ends = task.place(bytes(8))
    task.call(_SYS_PIPE2, ends, 0)
    reader, writer = struct.unpack("ii", task.bytes_at(ends, 8))
    taken, errno = task.call(_SYS_WRITE, writer, where, length)
    content = task.place(bytes(length))
    if errno == 0 and taken == length:
        task.call(_SYS_READ, reader, content, length)
    for descriptor in (reader, writer):
        task.call(_SYS_CLOSE, descriptor)
    return (b"", errno or EFAULT) if taken != length else (task.bytes_at(content, length), 0)

"""Tasks: threads, vfork children and programs that run machine code (task_program.py).

A task waits for a request in its mailbox, performs one system call and stores the result there.  It
uses no stack, so that any number of tasks can share memory.  All mailboxes lie in memory shared by
all tasks, also after execve; the actor fills them.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time

from vm.guest import syscalls
from vm.guest.task_program import COUNT, GATE, MAILBOX, MAILBOXES, PROGRAM_FD, Mailboxes

TYPE_CHECKING = False  # importing typing takes 0.2 s under emulation
if TYPE_CHECKING:
    from typing import Any

    from vm.guest.native_engine import Slots

#: Kinds of requests; 0 means idle, with the result of the last request in place.
CALL64, CALL32, CLONE, RACE = 1, 2, 3, 4
#: A mailbox: kind (4 bytes and 4 of padding), number, six arguments, result.
_REQUEST = struct.Struct("<8Q")
_ANSWER = 64
_SCRATCH = 128
#: A step of a race: a call, TALLIED pairs of count and return value, and the count of all others.
_STEP = struct.Struct("<7Q")
TALLIED = 4
_TALLY = struct.Struct(f"<{2 * TALLIED + 1}q")
STEP = _STEP.size + _TALLY.size
#: Pseudo system call number: atomic addition to four bytes.
ADD = (1 << 64) - 1

CLONE_VM = 0x0000_0100
CLONE_FILES = 0x0000_0400
CLONE_VFORK = 0x0000_4000
CLONE_THREAD = 0x0001_0000
_SYS_GETPID = 39
SYS_CLONE = 56
SYS_EXIT = 60
_SYS_GETTID = 186
_SYS_FUTEX = 202
SYS_EXIT_GROUP = 231
_SYS_EXECVEAT = 322
_AT_EMPTY_PATH = 0x1000
_AT_FDCWD = -100
_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_SIGKILL = 9
_MASK = (1 << 64) - 1
#: Time limit in seconds, longer than any deadline of a request: the host decides what hangs.
_SECONDS = 600.0
#: How often to look for the end of a task, in milliseconds.
_POLL_MS = 1
#: How long to sleep in one wait for a result: a struct timespec of 50 ms.
_POLL = (ctypes.c_int64 * 2)(0, 50_000_000)


class TaskLost(RuntimeError):
    """A task does not answer or does not end."""


class EmptySlot(Exception):
    """An argument names a slot without a descriptor."""


class Task:
    """One task, driven through its mailbox.  Raises TaskLost if it does not answer.

    `slots` are its descriptors.
    """

    def __init__(
        self,
        mailboxes: Mailboxes,
        name: str,
        number: int,
        flags: int,
        makers_slots: dict[int, int] | Slots,
    ) -> None:
        """`flags` are those of clone(2); the task is not created yet."""
        if not 0 < number < COUNT:
            raise ValueError(f"mailbox {number}: there are 1 to {COUNT - 1}")
        self._mailboxes = mailboxes
        self.name = name
        self.number = number
        self._offset = number * MAILBOX
        self.where = MAILBOXES + self._offset
        self._used = _SCRATCH
        self.is_thread = bool(flags & CLONE_THREAD)
        # The supervisor becomes the parent and reaps the task.  Threads send no signal.
        self.flags = flags | (0 if self.is_thread else syscalls.CLONE_PARENT | syscalls.SIGCHLD)
        self.slots = makers_slots if flags & CLONE_FILES else dict(makers_slots)
        self.tid = self.pid = 0
        self._word().value = 0

    def make(self, maker: Task | None) -> None:
        """Create the task from another one or from this process.  Raises OSError."""
        if maker is None:
            made = self._mailboxes.enter(self.flags, self.where)
        else:
            maker.finish()
            maker._send(CLONE, 0, self.flags, self.where)
            if self.flags & CLONE_VFORK:
                # The parent returns only after the child has ended.
                made = 0
            else:
                value, errno = maker._answer()
                made = -errno if errno else value
        if made < 0:
            raise OSError(-made, os.strerror(-made))
        self.learn_ids(made)

    def learn_ids(self, made: int) -> None:
        """Set tid and pid; `made` is the id returned to the maker.

        The ids that the task sees itself may be relative to a pid namespace.
        """
        tid, _ = self.call(_SYS_GETTID)
        pid, _ = self.call(_SYS_GETPID)
        self.tid, self.pid = made or tid, made if made and pid == tid else pid

    def call(self, number: int, *arguments: int, kind: int = CALL64) -> tuple[int, int]:
        """Perform a system call and return (value, errno) like syscalls.syscall().

        CALL32 uses int 0x80 with 32-bit numbers.
        """
        self.finish()
        self._send(kind, number, *arguments)
        return self._answer()

    def begin_race(self, steps: list[list[int]], passes: int) -> int:
        """Perform all steps `passes` times once the gate opens.

        Returns their address; `finish` waits for the end.
        """
        packed = b"".join(
            _STEP.pack(*call, *[0] * (7 - len(call))) + bytes(_TALLY.size) for call in steps
        )
        where = self.place(packed)
        self.finish()
        self._send(RACE, len(steps), passes, where, GATE)
        return where

    def tally(self, where: int, step: int) -> list[tuple[int, int | None]]:
        """How often one step of a race returned which value; None stands for all others."""
        raw = self.bytes_at(where + step * STEP + _STEP.size, _TALLY.size)
        *pairs, others = _TALLY.unpack(raw)
        found: list[tuple[int, int | None]] = [
            (count, answer) for count, answer in zip(pairs[::2], pairs[1::2], strict=True) if count
        ]
        return found + [(others, None)] * bool(others)

    def arguments(self, arguments: list[Any]) -> tuple[list[int], int | None]:
        """The arguments as integers, and the address of an {"out": size}.

        Raises EmptySlot, ValueError.
        """
        out: int | None = None
        plain: list[int] = []
        for argument in arguments:
            if isinstance(argument, int):
                plain.append(argument & _MASK)
                continue
            ((kind, content),) = argument.items()
            if kind == "fd":
                if content not in self.slots:
                    raise EmptySlot
                plain.append(self.slots[content])
            elif kind == "in":
                plain.append(self.place(bytes.fromhex(content)))
            elif kind == "out":
                out = self.place(bytes(int(content)))
                plain.append(out)
            else:
                raise ValueError(f"unknown argument: {argument!r:.200}")
        return plain, out

    def place(self, content: bytes) -> int:
        """Copy bytes into the mailbox, valid until clear(), and return their address."""
        start, self._used = self._used, (self._used + len(content) | 7) + 1
        if self._used > MAILBOX:
            raise ValueError(f"{len(content)} bytes do not fit into a mailbox")
        base = self._offset + start
        self._mailboxes.memory[base : base + len(content)] = content
        return self.where + start

    def clear(self) -> None:
        """Release all placed bytes."""
        self._used = _SCRATCH

    def bytes_at(self, where: int, length: int) -> bytes:
        """The bytes at an address returned by place()."""
        start = where - MAILBOXES
        return bytes(self._mailboxes.memory[start : start + length])

    def execute(self, path: str) -> tuple[int, int]:
        """execve(2) of a path; "" is a program that serves the same mailbox."""
        self.clear()
        name = self.place(path.encode() + b"\0")
        nothing = self.place(bytes(1))
        # The program takes the number of its mailbox from argc.
        arguments = self.place(struct.pack(f"<{self.number + 1}Q", *[nothing] * self.number, 0))
        environment = self.place(bytes(8))
        directory, flags = (_AT_FDCWD, 0) if path else (PROGRAM_FD, _AT_EMPTY_PATH)
        value, errno = self.call(
            _SYS_EXECVEAT, directory & _MASK, name, arguments, environment, flags
        )
        if errno == 0:
            # execve ends all other threads, makes this one the leader and unshares descriptors.
            self.tid, self.is_thread = self.pid, False
            self.slots = dict(self.slots)
        return value, errno

    def leave(self, status: int, *, alone: bool) -> None:
        """exit(2) if `alone`, else exit_group(2), and wait for the end."""
        self.finish()
        self._send(CALL64, SYS_EXIT if alone else SYS_EXIT_GROUP, status)
        self.wait()

    def kill(self) -> None:
        """Kill the process of the task and wait for this thread."""
        if self.pid:
            try:
                os.kill(self.pid, _SIGKILL)
            except ProcessLookupError:
                return
            self.wait()

    def wait(self) -> None:
        """Wait until the task has ended or is a zombie."""
        end = time.monotonic() + _SECONDS
        while self._is_alive():
            if time.monotonic() > end:
                raise TaskLost(f"task {self.tid} did not end")
            # vm.postmortem.hang takes a task in poll(2) for waiting, one that yields for computing.
            select.poll().poll(_POLL_MS)

    def _is_alive(self) -> bool:
        try:
            descriptor = os.open(f"/proc/{self.tid}/stat", os.O_RDONLY)
        except OSError:
            return False
        try:
            text = os.read(descriptor, 4096)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        # proc(5): the state follows the name, which is in parentheses.
        return text.rpartition(b")")[2].split()[0] not in (b"Z", b"X")

    def _word(self) -> ctypes.c_uint32:
        return ctypes.c_uint32.from_address(self.where)

    def _send(self, kind: int, number: int, *arguments: int) -> None:
        filled = (*arguments, *(0,) * (6 - len(arguments)))
        request = _REQUEST.pack(0, number, *filled)
        start = self._offset
        self._mailboxes.memory[start + 8 : start + 64] = request[8:]
        self._word().value = kind
        syscalls.syscall(_SYS_FUTEX, self.where, _FUTEX_WAKE, 1)

    def finish(self) -> None:
        """Wait for the result of a vfork or a race, if one is outstanding."""
        if self._word().value:
            self._answer()

    def _answer(self) -> tuple[int, int]:
        word = self._word()
        end = time.monotonic() + _SECONDS
        while (kind := word.value) != 0:
            if time.monotonic() > end:
                raise TaskLost(f"task {self.tid} does not answer")
            limit = ctypes.addressof(_POLL)
            syscalls.syscall(_SYS_FUTEX, self.where, _FUTEX_WAIT, kind, limit)
        value = ctypes.c_int64.from_address(self.where + _ANSWER).value
        return (-1, -value) if -4096 < value < 0 else (value, 0)

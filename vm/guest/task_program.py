"""Tasks that an interpreter cannot be: threads of their own, children of vfork, other programs.

A task runs machine code of ours and nothing else: it waits for its mailbox to be filled, performs
the one system call that is in it, and answers there.  It uses no stack, so that any number of tasks
can share memory.  The mailboxes lie in memory that every task has in common, those that share
nothing else and those that have begun another program (execve) too; whoever made the first task
fills them, one after the other.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time

from vm.guest import syscalls

#: Where the mailboxes are in every task, and how long each is with its scratch memory, bytes.
MAILBOXES = 0x7000_0000
MAILBOX = 0x4000
COUNT = 16
#: Where the code is in a task, and in a program that a task has begun.
CODE = 0x7100_0000
PROGRAM = 0x4000_0000
#: The descriptors of the mailboxes and of the program; no program of the host's uses them.
MAILBOXES_FD = 900
PROGRAM_FD = 901

#: Where a program begins, relative to the code.
START = 0x1F
#: The code, of which task.s is the source.
STUB = bytes.fromhex(
    "4989f131f631d24531d24531c0b8380000000f054885c07401c3"  # enter
    "4d89cceb54"  # born
    "488b1c24b809000000bf00000070be00000400ba0300000041ba1100000041b884030000"  # start
    "4531c90f0548c1e30e4c8d241831c0"
    "498944244041c70424000000004c89e7be01000000ba01000000b8ca0000000f05"  # answer
    "418b042483f801744f83f802742183f803746f83f8040f848f000000"  # serve
    "4c89e731f689c24531d2b8ca0000000f05ebd1"
    "418b442408418b5c2410418b4c2418418b542420418b742428418b7c2430418b6c2438"  # call32
    "cd804898eb87"
    "498b442408498b7c2410498b742418498b5424204d8b5424284d8b4424304d8b4c24380f05"  # call64
    "e95dffffff"
    "498b7c241031f631d24531d24531c0b8380000000f054885c00f853effffff"  # clone
    "4d8b642418e955ffffff"
    "4d8b6c24104d8b742420f041ff0ef39041833e007ff8498b5c24184d8b7c2408"  # race
    "488b03488b7b08488b7310488b53184c8b53204c8b43284c8b4b30"  # step
    "4885c078160f054885c0751948833b3875134c8b6318e9fffeffff"
    "f0013748ffca75f831c0"  # add
    "4c8d7338b90400000049833e00741049394608740e4983c610ffc975eceb04"  # tell
    "4989460849ff064883eb80"  # new
    "49ffcf759149ffcd758231c0e999feffff"
)
# What a mailbox asks for; 0 is nothing, and the answer to what was asked before is there.
CALL64, CALL32, CLONE, RACE = 1, 2, 3, 4
#: A mailbox: what is asked (4 bytes, 4 of padding), the number, six arguments, the answer.
_REQUEST = struct.Struct("<8Q")
_ANSWER = 64
_SCRATCH = 128
# A step of a race: a call, so many answers with how often each came, how often all others did.
_STEP = struct.Struct("<7Q")
TALLIED = 4
_TALLY = struct.Struct(f"<{2 * TALLIED + 1}q")
STEP = _STEP.size + _TALLY.size
#: In the place of a number: add to four bytes of memory, locked.
ADD = (1 << 64) - 1
#: Mailbox 0 is nobody's: there is the gate of a race, the number of those that are not there yet.
GATE = MAILBOXES

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
#: How long a call may take, seconds; those of tasks do not wait.
_SECONDS = 20.0
#: The same of a race; whoever asked for it gives up before.
RACE_SECONDS = 600.0
_LOOK_AGAIN = struct.pack("<qq", 0, 50_000_000)


class TaskLost(RuntimeError):
    """A task does not answer, or does not end."""


class Mailboxes:
    """The memory that all tasks of one driver share, and the code they run."""

    def __init__(self) -> None:
        length = COUNT * MAILBOX
        made = os.memfd_create("mailboxes")
        os.ftruncate(made, length)
        os.dup2(made, MAILBOXES_FD)
        os.close(made)
        self._program()
        shared, private, fixed = mmap.MAP_SHARED, mmap.MAP_PRIVATE, 0x100000
        read, write, execute = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
        self._map(MAILBOXES, length, read | write, shared | fixed, MAILBOXES_FD)
        # The code is that of the program, which begins with a page of its own.
        self._map(CODE, mmap.PAGESIZE, read | execute, private | fixed, PROGRAM_FD, mmap.PAGESIZE)
        self.memory = memoryview((ctypes.c_ubyte * length).from_address(MAILBOXES)).cast("B")
        self.enter = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64)(CODE)

    def gate(self) -> ctypes.c_uint32:
        """How many have still to come before a race begins."""
        return ctypes.c_uint32.from_address(GATE)

    def _program(self) -> None:
        """The program that a task begins: the code, in a file that is in memory alone."""
        made = os.memfd_create("task")
        os.write(made, program())
        os.dup2(made, PROGRAM_FD, inheritable=False)
        os.close(made)

    def _map(
        self, where: int, length: int, rights: int, flags: int, file: int, offset: int = 0
    ) -> None:
        _, errno = syscalls.syscall(9, where, length, rights, flags, file, offset)
        if errno:
            raise OSError(errno, os.strerror(errno))


def program() -> bytes:
    """The code as a static program (elf(5)); its code begins on its second page."""
    size, offset = len(STUB), mmap.PAGESIZE
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    # ET_EXEC for x86-64, with one program header behind this one: PT_LOAD, readable, executable.
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, PROGRAM + START, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", 1, 5, offset, PROGRAM, PROGRAM, size, size, mmap.PAGESIZE)
    return header.ljust(offset, b"\0") + STUB


class Task:
    """One task, driven through its mailbox.  Raises TaskLost when it does not answer."""

    def __init__(self, mailboxes: Mailboxes, number: int, flags: int) -> None:
        """``flags`` are those of clone(2); nobody has made it yet."""
        if not 0 < number < COUNT:
            raise ValueError(f"mailbox {number}: there are 1 to {COUNT - 1}")
        self._mailboxes = mailboxes
        self.number = number
        self._offset = number * MAILBOX
        self.where = MAILBOXES + self._offset
        self._used = _SCRATCH
        self.is_thread = bool(flags & CLONE_THREAD)
        # The parent of all is the supervisor, which reaps them.  Threads signal nobody.
        self.flags = flags | (0 if self.is_thread else syscalls.CLONE_PARENT | syscalls.SIGCHLD)
        self.tid = self.pid = 0
        self._word().value = 0

    def make(self, maker: Task | None) -> None:
        """Have it made, by another task or by ourselves.  Raises OSError."""
        if maker is None:
            made = self._mailboxes.enter(self.flags, self.where)
        else:
            maker.finish()
            maker._ask(CLONE, 0, self.flags, self.where)
            # A parent of vfork has no answer before its child is gone.
            made = 0 if self.flags & CLONE_VFORK else self._made(*maker._answer())
        if made < 0:
            raise OSError(-made, os.strerror(-made))
        self.greet(made)

    @staticmethod
    def _made(value: int, errno: int) -> int:
        return -errno if errno else value

    def greet(self, made: int = 0) -> None:
        """Learn the ids of a task that has been made, by the id that its maker was told.

        Its own id may be that of a namespace.
        """
        tid, _ = self.call(_SYS_GETTID)
        pid, _ = self.call(_SYS_GETPID)
        self.tid, self.pid = made or tid, made if made and pid == tid else pid

    def call(self, number: int, *arguments: int, kind: int = CALL64) -> tuple[int, int]:
        """A system call: (value, errno), as syscalls.syscall() returns them.

        ``kind`` CALL32 enters the kernel as 32-bit programs do, with their numbers.
        """
        self.finish()
        self._ask(kind, number, *arguments)
        return self._answer()

    def begin_race(self, steps: list[list[int]], passes: int) -> int:
        """Have all steps, calls each, performed so many times once the gate is open.

        Returns where they are; ``finish`` waits for their end.
        """
        packed = b"".join(
            _STEP.pack(*call, *[0] * (7 - len(call))) + bytes(_TALLY.size) for call in steps
        )
        where = self.place(packed)
        self.finish()
        self._ask(RACE, len(steps), passes, where, GATE)
        return where

    def tally(self, where: int, step: int) -> list[tuple[int, int | None]]:
        """How often one step of a race had which answer; the answer None is all others."""
        raw = self.bytes_at(where + step * STEP + _STEP.size, _TALLY.size)
        *told, others = _TALLY.unpack(raw)
        found: list[tuple[int, int | None]] = [
            (count, answer) for count, answer in zip(told[::2], told[1::2], strict=True) if count
        ]
        return found + [(others, None)] * bool(others)

    def place(self, content: bytes) -> int:
        """Put bytes into memory of the task's own, until clear(); where they are."""
        start, self._used = self._used, (self._used + len(content) | 7) + 1
        if self._used > MAILBOX:
            raise ValueError(f"{len(content)} bytes have no room in a mailbox")
        base = self._offset + start
        self._mailboxes.memory[base : base + len(content)] = content
        return self.where + start

    def clear(self) -> None:
        """Forget what was placed."""
        self._used = _SCRATCH

    def bytes_at(self, where: int, length: int) -> bytes:
        """What is at a place that place() returned."""
        start = where - MAILBOXES
        return bytes(self._mailboxes.memory[start : start + length])

    def execute(self, path: str) -> tuple[int, int]:
        """execve(2) of a path, or of a program that serves the same mailbox."""
        self.clear()
        name = self.place(path.encode() + b"\0")
        nothing = self.place(bytes(1))
        # As many arguments as the number of the mailbox: that is how the program knows it.
        arguments = self.place(struct.pack(f"<{self.number + 1}Q", *[nothing] * self.number, 0))
        environment = self.place(bytes(8))
        directory, flags = (_AT_FDCWD, 0) if path else (PROGRAM_FD, _AT_EMPTY_PATH)
        mask = (1 << 64) - 1
        value, errno = self.call(
            _SYS_EXECVEAT, directory & mask, name, arguments, environment, flags
        )
        if errno == 0:
            # Whoever executes is the only thread left, and the first.
            self.tid, self.is_thread = self.pid, False
        return value, errno

    def leave(self, status: int, *, alone: bool) -> None:
        """exit(2) of this task ``alone``, or exit_group(2), and wait until it is gone."""
        self.finish()
        self._ask(CALL64, SYS_EXIT if alone else SYS_EXIT_GROUP, status)
        self.wait()

    def kill(self) -> None:
        """End the task's process from outside, all threads of it, and wait for this one."""
        if self.pid:
            try:
                os.kill(self.pid, _SIGKILL)
            except ProcessLookupError:
                return
            self.wait()

    def wait(self, seconds: float = _SECONDS) -> None:
        """Until the task is gone, or waits for nothing but to be reaped."""
        end = time.monotonic() + seconds
        while self._lives():
            if time.monotonic() > end:
                raise TaskLost(f"task {self.tid} did not end")
            os.sched_yield()

    def _lives(self) -> bool:
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
        # proc(5): the state stands behind the name, which is in parentheses.
        return text.rpartition(b")")[2].split()[0] not in (b"Z", b"X")

    def _word(self) -> ctypes.c_uint32:
        return ctypes.c_uint32.from_address(self.where)

    def _ask(self, kind: int, number: int, *arguments: int) -> None:
        filled = (*arguments, *(0,) * (6 - len(arguments)))
        request = _REQUEST.pack(0, number, *filled)
        start = self._offset
        self._mailboxes.memory[start + 8 : start + 64] = request[8:]
        self._word().value = kind
        syscalls.syscall(_SYS_FUTEX, self.where, _FUTEX_WAKE, 1)

    def finish(self, seconds: float = _SECONDS) -> None:
        """Wait for a call that had no answer when it was made: vfork, a race."""
        if self._word().value:
            self._answer(seconds)

    def _answer(self, seconds: float = _SECONDS) -> tuple[int, int]:
        word = self._word()
        end = time.monotonic() + seconds
        while (asked := word.value) != 0:
            if time.monotonic() > end:
                raise TaskLost(f"task {self.tid} does not answer")
            limit = syscalls.place(_LOOK_AGAIN)
            syscalls.syscall(_SYS_FUTEX, self.where, _FUTEX_WAIT, asked, limit)
        value = ctypes.c_int64.from_address(self.where + _ANSWER).value
        return (-1, -value) if -4096 < value < 0 else (value, 0)


def shares_descriptors(flags: int) -> bool:
    """Whether a task made with these flags has the descriptors of its maker, not copies."""
    return bool(flags & CLONE_FILES)

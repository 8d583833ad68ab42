"""The program that tasks run (native/tasks.S), and mailboxes in memory shared by all tasks."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

from vm.guest import native_engine, syscalls

#: Address of the mailboxes in every task, and size of each including its scratch memory.
MAILBOXES = 0x7000_0000
MAILBOX = 0x4000
COUNT = 16
#: Address of the code in a task, and in a program executed by a task.
CODE = 0x7100_0000
PROGRAM = 0x4000_0000
#: Descriptors of the mailboxes and of the program, which no test program uses.
MAILBOXES_FD = 900
PROGRAM_FD = 901

#: Mailbox 0 holds the gate of a race: the number of tasks that have not arrived yet.
GATE = MAILBOXES


class Mailboxes:
    """The memory shared by all tasks of a driver, and their code."""

    def __init__(self) -> None:
        length = COUNT * MAILBOX
        memfd = os.memfd_create("mailboxes")
        os.ftruncate(memfd, length)
        os.dup2(memfd, MAILBOXES_FD)
        os.close(memfd)
        self._program()
        shared, private, fixed = mmap.MAP_SHARED, mmap.MAP_PRIVATE, 0x100000
        read, write, execute = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
        self._map(MAILBOXES, length, read | write, shared | fixed, MAILBOXES_FD)
        # The second page of the program is the code.
        self._map(CODE, mmap.PAGESIZE, read | execute, private | fixed, PROGRAM_FD, mmap.PAGESIZE)
        self.memory = memoryview((ctypes.c_ubyte * length).from_address(MAILBOXES)).cast("B")
        self.enter = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64)(CODE)

    def _program(self) -> None:
        """Create the program for execve as a memfd."""
        memfd = os.memfd_create("task")
        os.write(memfd, program())
        os.dup2(memfd, PROGRAM_FD, inheritable=False)
        os.close(memfd)

    def _map(
        self, where: int, length: int, rights: int, flags: int, file: int, offset: int = 0
    ) -> None:
        _, errno = syscalls.syscall(9, where, length, rights, flags, file, offset)
        if errno:
            raise OSError(errno, os.strerror(errno))


def close_gate(tasks: int) -> None:
    """Keep the tasks of a race waiting until so many have arrived."""
    ctypes.c_uint32.from_address(GATE).value = tasks


def program() -> bytes:
    """The code as a static ELF program (elf(5)), starting on the second page."""
    code, start = native_engine.task_code()
    size, offset = len(code), mmap.PAGESIZE
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    # ET_EXEC for x86-64 with one program header: PT_LOAD, readable and executable.
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, PROGRAM + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", 1, 5, offset, PROGRAM, PROGRAM, size, size, mmap.PAGESIZE)
    return header.ljust(offset, b"\0") + code

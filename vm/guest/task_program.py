"""The program that tasks run: machine code, and mailboxes in memory shared by all tasks."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

from vm.guest import syscalls

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

#: Entry point of the program, relative to the code.
START = 0x1F
#: The code, assembled from task.s.
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
    "4c8d7338b90400000049833e00741049394608740e4983c610ffc975eceb04"  # count_result
    "4989460849ff064883eb80"  # new
    "49ffcf759149ffcd758231c0e999feffff"
)
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
    size, offset = len(STUB), mmap.PAGESIZE
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    # ET_EXEC for x86-64 with one program header: PT_LOAD, readable and executable.
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, PROGRAM + START, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    header += struct.pack("<IIQQQQQQ", 1, 5, offset, PROGRAM, PROGRAM, size, size, mmap.PAGESIZE)
    return header.ljust(offset, b"\0") + STUB

"""Numbers of system calls by machine, and calls that newer machines have in another form only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

AT_FDCWD = -100
_AT_REMOVEDIR = 0x200

# arch/x86/entry/syscalls/syscall_64.tbl
_X86_64 = {
    "read": 0,
    "write": 1,
    "close": 3,
    "stat": 4,
    "lseek": 8,
    "mmap": 9,
    "mprotect": 10,
    "munmap": 11,
    "ioctl": 16,
    "pwrite64": 18,
    "writev": 20,
    "mremap": 25,
    "madvise": 28,
    "getpid": 39,
    "sendmsg": 46,
    "recvmsg": 47,
    "socketpair": 53,
    "setsockopt": 54,
    "fcntl": 72,
    "ftruncate": 77,
    "mkdir": 83,
    "rmdir": 84,
    "unlink": 87,
    "chmod": 90,
    "chown": 92,
    "setgroups": 116,
    "setresuid": 117,
    "setresgid": 119,
    "capset": 126,
    "mknod": 133,
    "sched_setscheduler": 144,
    "prctl": 157,
    "chroot": 161,
    "mount": 165,
    "umount2": 166,
    "init_module": 175,
    "delete_module": 176,
    "sched_setaffinity": 203,
    "getdents64": 217,
    "openat": 257,
    "unshare": 272,
    "pwritev": 296,
    "perf_event_open": 298,
    "prlimit64": 302,
    "finit_module": 313,
    "seccomp": 317,
    "memfd_create": 319,
    "bpf": 321,
    "execveat": 322,
    "io_uring_setup": 425,
}
# include/uapi/asm-generic/unistd.h
_GENERIC = {
    "fcntl": 25,
    "ioctl": 29,
    "mknodat": 33,
    "mkdirat": 34,
    "unlinkat": 35,
    "umount2": 39,
    "mount": 40,
    "ftruncate": 46,
    "chroot": 51,
    "fchmodat": 53,
    "fchownat": 54,
    "openat": 56,
    "close": 57,
    "getdents64": 61,
    "lseek": 62,
    "read": 63,
    "write": 64,
    "writev": 66,
    "pwrite64": 68,
    "pwritev": 70,
    "newfstatat": 79,
    "capset": 91,
    "unshare": 97,
    "init_module": 105,
    "delete_module": 106,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "setresuid": 147,
    "setresgid": 149,
    "setgroups": 159,
    "prctl": 167,
    "getpid": 172,
    "socketpair": 199,
    "setsockopt": 208,
    "sendmsg": 211,
    "recvmsg": 212,
    "munmap": 215,
    "mremap": 216,
    "mmap": 222,
    "mprotect": 226,
    "madvise": 233,
    "perf_event_open": 241,
    "prlimit64": 261,
    "finit_module": 273,
    "seccomp": 277,
    "memfd_create": 279,
    "bpf": 280,
    "execveat": 281,
    "io_uring_setup": 425,
}
# Calls without a generic number: the one that takes a directory, and its last arguments.
_AT_FORMS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "stat": ("newfstatat", (0,)),
    "mkdir": ("mkdirat", ()),
    "rmdir": ("unlinkat", (_AT_REMOVEDIR,)),
    "unlink": ("unlinkat", (0,)),
    "chmod": ("fchmodat", ()),
    "chown": ("fchownat", (0,)),
    "mknod": ("mknodat", ()),
}


class Machine(Struct, frozen=True):
    """What programs of one machine depend on.

    `audit` is its AUDIT_ARCH_* (include/uapi/linux/audit.h); `stat_size`, `stat_mode` and
    `stat_owner` are the size of struct stat and the offsets of st_mode and st_uid; `runs_tasks` is
    whether the machine code of tasks runs on it (vm/guest/native/tasks.S).
    """

    numbers: Mapping[str, int]
    audit: int
    stat_size: int
    stat_mode: int
    stat_owner: int
    runs_tasks: bool = False


# Names as uname(2) has them.  Only x86_64 has been tested.
MACHINES = {
    "x86_64": Machine(_X86_64, 0xC000_003E, 144, 24, 28, runs_tasks=True),
    "aarch64": Machine(_GENERIC, 0xC000_00B7, 128, 16, 24),
    "riscv64": Machine(_GENERIC, 0xC000_00F3, 128, 16, 24),
    "loongarch64": Machine(_GENERIC, 0xC000_0102, 128, 16, 24),
}
MACHINE = MACHINES.get(os.uname().machine, MACHINES["x86_64"])
"""The machine of this process, which is that of its guests."""


def number_and_arguments(
    name: str, arguments: Sequence[object], machine: Machine = MACHINE
) -> tuple[int, list[object]]:
    """The number and the arguments of a system call by name.  Raises KeyError."""
    if name in machine.numbers:
        return machine.numbers[name], list(arguments)
    form, last = _AT_FORMS[name]
    return machine.numbers[form], [AT_FDCWD, *arguments, *last]

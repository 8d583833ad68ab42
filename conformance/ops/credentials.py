"""Operations on credentials: identity, capabilities, seccomp, namespaces and mounts.

A process cannot undo them.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar

from conformance.ops.c_text import flag_names
from conformance.ops.calls import (
    NUMBERS,
    STRUCT_PAGE,
    Call,
    bytes_in,
    map_page,
    path_in,
    sys_call,
)
from conformance.ops.operation import Operation
from conformance.ops.system_calls import MACHINE

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MNT_DETACH = 2
CLONE_FLAGS = {
    CLONE_NEWNS: "CLONE_NEWNS",
    CLONE_NEWUSER: "CLONE_NEWUSER",
    CLONE_NEWPID: "CLONE_NEWPID",
}
MOUNT_FLAGS = {MS_RDONLY: "MS_RDONLY", MS_REMOUNT: "MS_REMOUNT", MS_BIND: "MS_BIND"}
_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
_CAPABILITY_VERSION_3 = 0x20080522
_LOW = (1 << 32) - 1
_SET_MODE_FILTER = 1
# include/uapi/linux/{bpf_common,filter,seccomp,audit}.h
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_AT_NUMBER, _AT_ARCHITECTURE = 0, 4
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

Capability = IntEnum(
    "Capability",
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP "
    "LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER "
    "SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE "
    "SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP "
    "MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF "
    "CHECKPOINT_RESTORE",
    start=0,
)
"""Numbers of include/uapi/linux/capability.h."""
EVERYTHING = (1 << len(Capability)) - 1


def mask(*capabilities: Capability) -> int:
    """A set of capabilities as bits."""
    return sum(1 << each for each in set(capabilities))


def _names(capabilities: int) -> str:
    if capabilities == EVERYTHING:
        return "all"
    names = {1 << each: f"CAP_{each.name}" for each in Capability}
    return flag_names(capabilities, names, "none")


class Irreversible(Operation, frozen=True):
    """An operation that changes the credentials or the namespaces of its process for good."""

    irreversible: ClassVar[bool] = True
    changes_guest: ClassVar[bool] = True


class Become(Irreversible, frozen=True):
    """Become another user with a group and supplementary groups.

    ``keep`` keeps the permitted capabilities (PR_SET_KEEPCAPS), none of them effective.
    """

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    keep: bool = False

    def c_text(self) -> str:
        kept = "prctl(PR_SET_KEEPCAPS, 1); " if self.keep else ""
        listed = ", ".join(map(str, self.groups))
        groups = f"setgroups({len(self.groups)}, (gid_t[]){{{listed}}})"
        gids = ", ".join([str(self.gid)] * 3)
        uids = ", ".join([str(self.uid)] * 3)
        return f"{kept}{groups}; setresgid({gids}); setresuid({uids})"

    def calls(self) -> list[Call]:
        keep = [sys_call("prctl", _PR_SET_KEEPCAPS, 1, 0, 0, 0)] if self.keep else []
        count = len(self.groups)
        return [
            *keep,
            sys_call("setgroups", count, bytes_in(struct.pack(f"<{count}I", *self.groups))),
            sys_call("setresgid", self.gid, self.gid, self.gid),
            sys_call("setresuid", self.uid, self.uid, self.uid),
        ]


class Capset(Irreversible, frozen=True):
    """capset(2): permitted and effective capabilities as bits; none are inheritable."""

    permitted: int
    effective: int

    def c_text(self) -> str:
        return f"capset(v3, permitted {_names(self.permitted)}, effective {_names(self.effective)})"

    def calls(self) -> list[Call]:
        header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
        low = struct.pack("<3I", self.effective & _LOW, self.permitted & _LOW, 0)
        high = struct.pack("<3I", self.effective >> 32, self.permitted >> 32, 0)
        return [sys_call("capset", bytes_in(header), bytes_in(low + high))]


class NoNewPrivileges(Irreversible, frozen=True):
    """prctl(PR_SET_NO_NEW_PRIVS)."""

    def c_text(self) -> str:
        return "prctl(PR_SET_NO_NEW_PRIVS, 1)"

    def calls(self) -> list[Call]:
        return [sys_call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)]


class Seccomp(Irreversible, frozen=True):
    """seccomp(2): a filter that makes some system calls fail with ``errno``."""

    refused: tuple[str, ...]
    errno: str

    def c_text(self) -> str:
        rule = f"/* {', '.join(self.refused)}: {self.errno} */"
        return f"seccomp(SECCOMP_SET_MODE_FILTER, 0, {rule})"

    def calls(self) -> list[Call]:
        instructions = list(_filter(self.refused, getattr(errno, self.errno)))
        code = b"".join(struct.pack("<HBBI", *each) for each in instructions)
        program = struct.pack("<HxxxxxxQ", len(instructions), STRUCT_PAGE + 16)
        return [
            map_page(STRUCT_PAGE),
            ["poke", STRUCT_PAGE, (program + code).hex()],
            sys_call("seccomp", _SET_MODE_FILTER, 0, STRUCT_PAGE),
        ]


def _filter(refused: tuple[str, ...], number: int) -> Iterator[tuple[int, int, int, int]]:
    """Instructions of classic BPF that return an error number for the refused system calls."""
    last = len(refused) - 1
    yield (_LOAD, 0, 0, _AT_ARCHITECTURE)
    yield (_EQUAL, 0, last + 2, MACHINE.audit)
    yield (_LOAD, 0, 0, _AT_NUMBER)
    for place, name in enumerate(refused):
        yield (_EQUAL, last - place + 1, 0, NUMBERS[name])
    yield (_RETURN, 0, 0, _ALLOW)
    yield (_RETURN, 0, 0, _ERRNO | number)


class Unshare(Irreversible, frozen=True):
    """unshare(2): CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID (for future children)."""

    flags: int

    def c_text(self) -> str:
        return f"unshare({flag_names(self.flags, CLONE_FLAGS)})"

    def calls(self) -> list[Call]:
        return [sys_call("unshare", self.flags)]


class Chroot(Irreversible, frozen=True):
    """chroot(2)."""

    path: str

    def c_text(self) -> str:
        return f'chroot("{self.path}")'

    def calls(self) -> list[Call]:
        return [sys_call("chroot", path_in(self.path))]


class Mount(Irreversible, frozen=True):
    """mount(2) in the mount namespace of the process; ``options`` are the file system's."""

    source: str
    target: str
    kind: str = ""
    flags: int = 0
    options: str = ""

    def c_text(self) -> str:
        paths = f'"{self.source}", "{self.target}", "{self.kind}"'
        options = f'"{self.options}"' if self.options else "0"
        return f"mount({paths}, {flag_names(self.flags, MOUNT_FLAGS)}, {options})"

    def calls(self) -> list[Call]:
        source, target, kind, options = map(
            path_in, (self.source, self.target, self.kind, self.options)
        )
        return [sys_call("mount", source, target, kind, self.flags, options)]


class Umount(Irreversible, frozen=True):
    """umount2(2) with MNT_DETACH."""

    target: str

    def c_text(self) -> str:
        return f'umount2("{self.target}", MNT_DETACH)'

    def calls(self) -> list[Call]:
        return [sys_call("umount2", path_in(self.target), MNT_DETACH)]

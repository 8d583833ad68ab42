"""Operations about who may do what: identity, capabilities, modes, mounts, namespaces.

What a process does to itself it does for good; what it does to files, all others see.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from conformance.ops.syscalls import Operation

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MNT_DETACH = 2


class Capability(IntEnum):
    """Numbers of include/uapi/linux/capability.h."""

    CHOWN = 0
    DAC_OVERRIDE = 1
    DAC_READ_SEARCH = 2
    FOWNER = 3
    FSETID = 4
    KILL = 5
    SETGID = 6
    SETUID = 7
    SETPCAP = 8
    LINUX_IMMUTABLE = 9
    NET_BIND_SERVICE = 10
    NET_BROADCAST = 11
    NET_ADMIN = 12
    NET_RAW = 13
    IPC_LOCK = 14
    IPC_OWNER = 15
    SYS_MODULE = 16
    SYS_RAWIO = 17
    SYS_CHROOT = 18
    SYS_PTRACE = 19
    SYS_PACCT = 20
    SYS_ADMIN = 21
    SYS_BOOT = 22
    SYS_NICE = 23
    SYS_RESOURCE = 24
    SYS_TIME = 25
    SYS_TTY_CONFIG = 26
    MKNOD = 27
    LEASE = 28
    AUDIT_WRITE = 29
    AUDIT_CONTROL = 30
    SETFCAP = 31
    MAC_OVERRIDE = 32
    MAC_ADMIN = 33
    SYSLOG = 34
    WAKE_ALARM = 35
    BLOCK_SUSPEND = 36
    AUDIT_READ = 37
    PERFMON = 38
    BPF = 39
    CHECKPOINT_RESTORE = 40


EVERYTHING = (1 << len(Capability)) - 1


def mask(*capabilities: Capability) -> int:
    """A set of capabilities as bits."""
    return sum(1 << each for each in set(capabilities))


def listed(names: Iterable[bytes]) -> bytes:
    """Names of a directory as they are compared: sorted, a line each."""
    return b"".join(name + b"\n" for name in sorted(names))


@dataclass(frozen=True, slots=True)
class Right(Operation):
    """An operation of this module."""


@dataclass(frozen=True, slots=True)
class Lasting(Right):
    """What changes its process for good."""


@dataclass(frozen=True, slots=True)
class Become(Lasting):
    """Become another user with a group and supplementary groups.

    ``keep`` keeps the permitted capabilities (PR_SET_KEEPCAPS), none of them effective.
    """

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Capset(Lasting):
    """capset(2): capabilities as bits; inheritable are none."""

    permitted: int
    effective: int


@dataclass(frozen=True, slots=True)
class NoNewPrivileges(Lasting):
    """prctl(PR_SET_NO_NEW_PRIVS)."""


@dataclass(frozen=True, slots=True)
class Seccomp(Lasting):
    """seccomp(2): a filter that lets ``errno`` be the answer to some system calls."""

    refused: tuple[str, ...]
    errno: str


@dataclass(frozen=True, slots=True)
class Unshare(Lasting):
    """unshare(2) of namespaces: CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID (of children to come)."""

    flags: int


@dataclass(frozen=True, slots=True)
class Chroot(Lasting):
    """chroot(2)."""

    path: str


@dataclass(frozen=True, slots=True)
class Mount(Lasting):
    """mount(2) in the mount namespace of the process; ``options`` as of the file system."""

    source: str
    target: str
    kind: str = ""
    flags: int = 0
    options: str = ""


@dataclass(frozen=True, slots=True)
class Umount(Lasting):
    """umount2(2) with MNT_DETACH."""

    target: str


@dataclass(frozen=True, slots=True)
class Mknod(Right):
    """mknod(2) of an empty regular file, mode 0600."""

    path: str


@dataclass(frozen=True, slots=True)
class Mkdir(Right):
    """mkdir(2), mode 0755."""

    path: str


@dataclass(frozen=True, slots=True)
class Chmod(Right):
    """chmod(2)."""

    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class Chown(Right):
    """chown(2); -1 leaves user or group as it is."""

    path: str
    uid: int = -1
    gid: int = -1


@dataclass(frozen=True, slots=True)
class Ownership(Right):
    """Who owns a path (stat(2)): the text ``uid:gid``."""

    path: str


@dataclass(frozen=True, slots=True)
class Getdents(Right):
    """getdents64(2) of a directory, once: names that begin with ``prefix``, sorted, in lines."""

    slot: int
    prefix: str = ""

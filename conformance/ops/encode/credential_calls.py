"""Operations about rights as generic calls of a guest (see ``calls``), and what came back."""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Iterator

from conformance.ops import credentials
from conformance.ops.syscalls import Operation

# Numbers of the x86-64 system-call table (arch/x86/entry/syscalls/syscall_64.tbl).
_NR = {
    "stat": 4,
    "mmap": 9,
    "ioctl": 16,
    "pwrite64": 18,
    "writev": 20,
    "mkdir": 83,
    "chmod": 90,
    "chown": 92,
    "setgroups": 116,
    "setresuid": 117,
    "setresgid": 119,
    "capset": 126,
    "mknod": 133,
    "prctl": 157,
    "chroot": 161,
    "mount": 165,
    "umount2": 166,
    "getdents64": 217,
    "unshare": 272,
    "pwritev": 296,
    "seccomp": 317,
}
# Where filters are stored and stat(2) puts its answers: a page that no program maps.
_PAGE = 0x2FFF_0001_0000
_MAP_FIXED = 0x10
_STAT_SIZE = 144
_STAT_ATTRIBUTES = slice(24, 36)
_DIRECTORY_BUFFER = 1 << 16
# struct linux_dirent64: inode, offset, length of the entry, type, and the name with its NUL.
_DIRENT = struct.Struct("<QqHB")
_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS = 8, 38
_CAPABILITY_VERSION_3 = 0x20080522
_LOW = (1 << 32) - 1
_S_IFREG = 0o100000
_SET_MODE_FILTER = 1
# include/uapi/linux/{bpf_common,filter,seccomp,audit}.h.
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_AT_NUMBER, _AT_ARCHITECTURE = 0, 4
_X86_64 = 0xC000003E
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

Call = list[object]


def calls_of(operation: Operation) -> list[Call]:
    """The generic calls that perform an operation.  Raises TypeError for one of another kind."""
    match operation:
        case credentials.Become():
            return list(_becoming(operation))
        case credentials.Capset(permitted=permitted, effective=effective):
            header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
            low = struct.pack("<3I", effective & _LOW, permitted & _LOW, 0)
            high = struct.pack("<3I", effective >> 32, permitted >> 32, 0)
            return [_sys("capset", _in(header), _in(low + high))]
        case credentials.NoNewPrivileges():
            return [_sys("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)]
        case credentials.Seccomp(refused=refused, errno=name):
            return _filtering(refused, getattr(errno, name))
        case credentials.Unshare(flags=flags):
            return [_sys("unshare", flags)]
        case credentials.Mount(source=source, target=target, kind=kind, flags=flags):
            options = _path(operation.options)
            return [_sys("mount", _path(source), _path(target), _path(kind), flags, options)]
        case credentials.Umount(target=target):
            return [_sys("umount2", _path(target), credentials.MNT_DETACH)]
        case credentials.Ownership(path=path):
            return look_at(path)
        case credentials.Getdents(slot=slot):
            size = _DIRECTORY_BUFFER
            return [_sys("getdents64", {"fd": slot}, {"out": size}, size)]
        case credentials.Chown(path=path, uid=uid, gid=gid):
            return [_sys("chown", _path(path), uid, gid)]
        case credentials.Chmod(path=path, mode=mode):
            return [_sys("chmod", _path(path), mode)]
        case credentials.Mknod(path=path):
            return [_sys("mknod", _path(path), _S_IFREG | 0o600, 0)]
        case credentials.Mkdir(path=path):
            return [_sys("mkdir", _path(path), 0o755)]
        case credentials.Chroot(path=path):
            return [_sys("chroot", _path(path))]
    raise TypeError(f"operation without a system call: {operation!r}")


def look_at(path: str) -> list[Call]:
    """stat(2); the last call reads what it says: see ``attributes``."""
    return [_map_page(), _sys("stat", _path(path), _PAGE), ["peek", _PAGE, _STAT_SIZE]]


def attributes(status: bytes) -> tuple[int, int, int]:
    """Type and permission bits, user and group in a struct stat of x86-64."""
    mode, uid, gid = struct.unpack("<III", status[_STAT_ATTRIBUTES])
    return mode, uid, gid


def answer(operation: Operation, data: bytes | None) -> bytes | None:
    """What is compared of the bytes that an operation read."""
    match operation:
        case credentials.Ownership() if data is not None and len(data) == _STAT_SIZE:
            return b"%d:%d" % attributes(data)[1:]
        case credentials.Getdents(prefix=prefix):
            try:
                names = list(_names(data or b""))
            except struct.error:
                # No entries: nothing that the model allows looks like it.
                return data
            return credentials.listed(name for name in names if name.startswith(prefix.encode()))
    return data


def _names(entries: bytes) -> Iterator[bytes]:
    """The names in what getdents64 gave.  Raises struct.error for what it cannot have given."""
    position = 0
    while position < len(entries):
        *_, length, _ = _DIRENT.unpack_from(entries, position)
        if length <= _DIRENT.size:
            raise struct.error(f"an entry of {length} bytes")
        yield entries[position + _DIRENT.size : position + length].partition(b"\0")[0]
        position += length


def _becoming(operation: credentials.Become) -> Iterator[Call]:
    if operation.keep:
        yield _sys("prctl", _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    groups = struct.pack(f"<{len(operation.groups)}I", *operation.groups)
    yield _sys("setgroups", len(operation.groups), _in(groups))
    yield _sys("setresgid", operation.gid, operation.gid, operation.gid)
    yield _sys("setresuid", operation.uid, operation.uid, operation.uid)


def _filtering(refused: tuple[str, ...], number: int) -> list[Call]:
    """seccomp(2) with a program of classic BPF, which is stored first."""
    last = len(refused) - 1
    instructions = [(_LOAD, 0, 0, _AT_ARCHITECTURE), (_EQUAL, 0, last + 2, _X86_64)]
    instructions.append((_LOAD, 0, 0, _AT_NUMBER))
    for place, name in enumerate(refused):
        instructions.append((_EQUAL, last - place + 1, 0, _NR[name]))
    instructions += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | number)]
    code = b"".join(struct.pack("<HBBI", *each) for each in instructions)
    program = struct.pack("<HxxxxxxQ", len(instructions), _PAGE + 16)
    return [
        _map_page(),
        ["poke", _PAGE, (program + code).hex()],
        _sys("seccomp", _SET_MODE_FILTER, 0, _PAGE),
    ]


def _map_page() -> Call:
    fixed = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    return _sys("mmap", _PAGE, mmap.PAGESIZE, protection, fixed, -1, 0)


def _sys(name: str, *arguments: object) -> Call:
    return ["sys", _NR[name], list(arguments), None]


def _in(content: bytes) -> dict[str, str]:
    return {"in": content.hex()}


def _path(path: str) -> dict[str, str]:
    return _in(os.fsencode(path) + b"\0")

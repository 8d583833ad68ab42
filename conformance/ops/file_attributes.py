"""Operations on the names, modes and owners of files."""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from conformance.ops.calls import STRUCT_PAGE, Call, buffer, fd, path_in, sys_call
from conformance.ops.files import STAT_SIZE, stat_calls
from conformance.ops.operation import Operation, Reply
from conformance.ops.system_calls import MACHINE

# Of struct stat: st_uid and st_gid.
_STAT_OWNER = slice(MACHINE.stat_owner, MACHINE.stat_owner + 8)
_DIRECTORY_BUFFER = 1 << 16
# struct linux_dirent64: inode, offset, length of the entry, type; the name with its NUL follows.
_DIRENT = struct.Struct("<QqHB")


class Mknod(Operation, frozen=True):
    """mknod(2) of an empty regular file, mode 0600."""

    path: str
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'mknod("{self.path}", S_IFREG | 0600, 0)'

    def calls(self) -> list[Call]:
        return [sys_call("mknod", path_in(self.path), stat.S_IFREG | 0o600, 0)]


class Mkdir(Operation, frozen=True):
    """mkdir(2), mode 0755."""

    path: str
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'mkdir("{self.path}", 0755)'

    def calls(self) -> list[Call]:
        return [sys_call("mkdir", path_in(self.path), 0o755)]


class Chmod(Operation, frozen=True):
    """chmod(2)."""

    path: str
    mode: int
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'chmod("{self.path}", 0{self.mode:o})'

    def calls(self) -> list[Call]:
        return [sys_call("chmod", path_in(self.path), self.mode)]


class Chown(Operation, frozen=True):
    """chown(2); -1 leaves user or group as it is."""

    path: str
    uid: int = -1
    gid: int = -1
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'chown("{self.path}", {self.uid}, {self.gid})'

    def calls(self) -> list[Call]:
        return [sys_call("chown", path_in(self.path), self.uid, self.gid)]


class Ownership(Operation, frozen=True):
    """stat(2): user and group of a path as the text ``uid:gid``."""

    path: str

    def c_text(self) -> str:
        return f'stat("{self.path}", &st), st.st_uid, st.st_gid'

    def calls(self) -> list[Call]:
        return stat_calls(self.path, STRUCT_PAGE)

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        value, status = replies[-1].value, replies[-1].data
        if status is None or len(status) != STAT_SIZE:
            return value, status
        return value, b"%d:%d" % struct.unpack("<II", status[_STAT_OWNER])


class Getdents(Operation, frozen=True):
    """getdents64(2) of a directory, once: the names that begin with ``prefix``, sorted."""

    slot: int
    prefix: str = ""
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"getdents64(fd{self.slot}, buffer, sizeof(buffer))"

    def calls(self) -> list[Call]:
        size = _DIRECTORY_BUFFER
        return [sys_call("getdents64", fd(self.slot), buffer(size), size)]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        value, entries = replies[-1].value, replies[-1].data
        try:
            return value, self.compared(_entry_names(entries or b""))
        except struct.error:
            # Not directory entries: differs from every answer that the model allows.
            return value, entries

    def compared(self, names: Iterable[bytes]) -> bytes:
        """The names that are compared, one a line."""
        prefix = self.prefix.encode()
        return b"".join(name + b"\n" for name in sorted(names) if name.startswith(prefix))


def _entry_names(entries: bytes) -> Iterator[bytes]:
    """The names in the entries of getdents64(2).  Raises struct.error for malformed entries."""
    position = 0
    while position < len(entries):
        *_, length, _ = _DIRENT.unpack_from(entries, position)
        if length <= _DIRENT.size:
            raise struct.error(f"an entry of {length} bytes")
        yield entries[position + _DIRENT.size : position + length].partition(b"\0")[0]
        position += length

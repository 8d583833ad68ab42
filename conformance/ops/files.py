"""Operations on paths and on text files that are read or written whole."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Sequence
from typing import ClassVar

from conformance.ops.c_text import literal, open_flags
from conformance.ops.calls import ANSWER_PAGE, FILE_LIMIT, Call, map_page, path_in, sys_call
from conformance.ops.decoding import file_views
from conformance.ops.decoding.file_views import View
from conformance.ops.operation import Operation, Reply
from conformance.ops.system_calls import MACHINE

# struct stat: its size in bytes, and where st_mode is.
STAT_SIZE = MACHINE.stat_size
_STAT_MODE = slice(MACHINE.stat_mode, MACHINE.stat_mode + 4)
# Files that O_TRUNC, and so the ">" of a shell, empties.
_EMPTIED = re.compile(r"/(trace|trigger|error_log|\w+_events|set_\w+)$")
# A line of /proc/meminfo or /proc/vmstat, and what the counters of pinned pages end with.
_COUNTER = re.compile(rb"^(\w+):? +(\d{1,18})\b", re.MULTILINE)
_PINS = (b"acquired", b"released")


class ReadFile(Operation, frozen=True):
    """Open a file, read it to its end, close it; ``view`` says what of it is compared.

    ``prefix`` begins the names of the program's own events (View.OWN).  ``sizes`` are the payload
    bytes of the records that kernels before 6.4 dump, so that their padding is
    left out.
    """

    path: str
    view: View = View.EXACT
    prefix: str = ""
    sizes: tuple[int, ...] = ()
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f"cat {self.path}"

    def calls(self) -> list[Call]:
        return [["slurp", self.path, FILE_LIMIT]]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        return replies[-1].value, self.compared(replies[-1].data or b"")

    def compared(self, text: bytes) -> bytes:
        """The part of the file's text that is compared."""
        return file_views.read(self.view, text, self.prefix, self.sizes)


class KernelMemory(Operation, frozen=True):
    """Read how much memory the kernel cannot reclaim: its slabs and pinned pages, in kB.

    The value is not compared.  Source: Documentation/filesystems/proc.rst, mm/vmstat.c.
    """

    def c_text(self) -> str:
        return "cat /proc/meminfo /proc/vmstat"

    def calls(self) -> list[Call]:
        return [["slurp", f"/proc/{name}", FILE_LIMIT] for name in ("meminfo", "vmstat")]

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        lines = b"".join(reply.data or b"" for reply in replies)
        numbers = {name: int(digits) for name, digits in _COUNTER.findall(lines)}
        acquired, released = (numbers.get(b"nr_foll_pin_" + end, 0) for end in _PINS)
        return numbers.get(b"SUnreclaim", 0) + 4 * (acquired - released), None


class WriteFile(Operation, frozen=True):
    """Open a file with ``flags``, give ``data`` to one write(2), close it."""

    path: str
    data: bytes
    flags: int
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        text = self.data.removesuffix(b"\n").decode("ascii", "replace")
        shell = _redirection(self.path, self.flags) if text.isprintable() and text.isascii() else ""
        if not shell:
            return f'write(open("{self.path}", {open_flags(self.flags)}), {literal(self.data)})'
        option = "" if self.data.endswith(b"\n") else "-n "
        return f"echo {option}{shlex.quote(text)} {shell} {self.path}"

    def calls(self) -> list[Call]:
        return [["spill", self.path, self.data.hex(), self.flags]]


class WritePid(Operation, frozen=True):
    """Open a file with ``flags``, give the process's own pid to one write(2), close it.

    As ``echo $$`` of a shell does; the value, a number of digits, is not compared.
    """

    path: str
    flags: int
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        shell = _redirection(self.path, self.flags) or f"> /* {open_flags(self.flags)} */"
        return f"echo -n $$ {shell} {self.path}"

    def calls(self) -> list[Call]:
        return [["spill_pid", self.path, self.flags]]


class Stat(Operation, frozen=True):
    """stat(2); the value is st_mode & 0o7777."""

    path: str
    depends_on_events: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'stat("{self.path}", &st)'

    def calls(self) -> list[Call]:
        return stat_calls(self.path, ANSWER_PAGE)

    def decode(self, replies: Sequence[Reply]) -> tuple[int, bytes | None]:
        mode = int.from_bytes((replies[-1].data or b"")[_STAT_MODE], "little")
        return stat.S_IMODE(mode), None


def stat_calls(path: str, page: int) -> list[Call]:
    """stat(2) into a scratch page, whose content is the last reply.

    A buffer argument would not do: its reply is as long as the returned value, 0 here.
    """
    return [map_page(page), sys_call("stat", path_in(path), page), ["peek", page, STAT_SIZE]]


class MakeDirectory(Operation, frozen=True):
    """mkdir(2) of an absolute path with mode 0755, in tracefs."""

    path: str
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'mkdir("{self.path}", 0755)'

    def calls(self) -> list[Call]:
        return [sys_call("mkdir", path_in(self.path), 0o755)]


class RemoveDirectory(Operation, frozen=True):
    """rmdir(2)."""

    path: str
    changes_guest: ClassVar[bool] = True

    def c_text(self) -> str:
        return f'rmdir("{self.path}")'

    def calls(self) -> list[Call]:
        return [sys_call("rmdir", path_in(self.path))]


def _redirection(path: str, flags: int) -> str:
    """How a shell opens a file with these flags, "" if it cannot."""
    if flags in (os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_TRUNC | os.O_CREAT):
        return ">"
    if flags == os.O_WRONLY | os.O_APPEND:
        return ">>"
    return ">" if flags == os.O_WRONLY and not _EMPTIED.search(path) else ""

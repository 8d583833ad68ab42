"""The log of the running kernel, copied from /dev/kmsg to a file like that of a serial console.

The copy is made whenever the console is read: a record is in /dev/kmsg before the system call that
caused it returns.
"""

from __future__ import annotations

import os
import re
from errno import EAGAIN, EPIPE
from pathlib import Path

from vm.errors import HostTrouble
from vm.kernel_log.lines import MARK_PREFIX
from vm.qemu.console import Console

DEVICE = "/dev/kmsg"
#: Longest record (printk.c: PRINTK_MESSAGE_MAX) with room for its properties.
_RECORD = 8192
#: Documentation/ABI/testing/dev-kmsg: priority, sequence number, microseconds, flags; text.
_HEAD = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;")
#: The kernel escapes what is not printable.
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
#: Before a line of another program: /dev/kmsg accepts anything that looks like a report.
_FOREIGN = "user: "
#: Facilities above 0 are those of programs (printk.c: devkmsg_write).
_LEVELS = 8


class LogOverrun(HostTrouble):
    """The kernel discarded records before they were read."""


class KernelLog(Console):
    """The console file of the running kernel, from its creation on.

    Methods raise LogOverrun, OSError.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._device = os.open(DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # Only what is logged from now on.
        os.lseek(self._device, 0, os.SEEK_END)
        self._next: int | None = None

    def close(self) -> None:
        """Stop to follow.  Idempotent."""
        device, self._device = self._device, -1
        if device >= 0:
            os.close(device)

    def position(self) -> int:
        """The current size in bytes, where a slice may start."""
        self._follow()
        return super().position()

    def _read(self, since: int, size: int) -> str:
        self._follow()
        return super()._read(since, size)

    def _follow(self) -> None:
        """Copy all records that were logged since the last time."""
        lines: list[str] = []
        while self._device >= 0:
            try:
                record = os.read(self._device, _RECORD)
            except OSError as error:
                if error.errno == EAGAIN:
                    break
                if error.errno != EPIPE:
                    raise
                self.append("".join(lines))
                self._next = None
                raise LogOverrun(
                    "the kernel's log overran before it was read",
                    hint="boot with a larger log_buf_len, or stop what fills the log",
                ) from None
            lines.append(self._line(record))
        self.append("".join(lines))

    def _line(self, record: bytes) -> str:
        """A record as the serial console shows it.  Raises LogOverrun."""
        found = _HEAD.match(record)
        if found is None:
            return ""
        priority, sequence, stamp = map(int, found.groups())
        missed = sequence - (sequence if self._next is None else self._next)
        self._next = sequence + 1
        if missed:
            raise LogOverrun(f"{missed} records of the kernel's log are missing")
        text = record[found.end() :].partition(b"\n")[0].decode("utf-8", "replace")
        text = _ESCAPE.sub(lambda each: chr(int(each[1], 16)), text)
        prefix = f"[{stamp // 1_000_000:5d}.{stamp % 1_000_000:06d}] "
        if priority >= _LEVELS and not text.startswith(MARK_PREFIX):
            prefix += _FOREIGN
        return "".join(f"{prefix}{line}\n" for line in text.split("\n"))

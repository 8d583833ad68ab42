"""The guest's serial console: a growing file that is evidence, followed with pexpect.

QEMU writes the file itself, so that nothing is lost when nobody reads and it survives us; results
never travel here.
"""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
from pexpect.spawnbase import SpawnBase

from host.deadline import Deadline
from vm.kernel_log.reports import Finding, Phase, classify, phase

#: Of a slice that is evidence no more bytes are kept than these of its beginning and of its end.
_HEAD, _TAIL = 1 << 17, 1 << 15
#: So much is looked through for what the kernel reports.
_MOST = 1 << 26
#: How often a file that does not grow is looked at, seconds.
_LOOK = 0.002


if TYPE_CHECKING:
    _Expecting = SpawnBase[str]
else:
    _Expecting = SpawnBase


class _Follower(_Expecting):
    """What pexpect needs to expect things of a file that another process appends to."""

    def __init__(self, descriptor: int, alive: Callable[[], bool]) -> None:
        super().__init__(timeout=None, encoding="utf-8", codec_errors="replace")
        self.child_fd = descriptor
        self._alive = alive
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def read_nonblocking(self, size: int = 1, timeout: float | None = None) -> str:
        end = time.monotonic() + (timeout or 0)
        while True:
            # Asked before reading: what was written before the end is still read after it.
            alive = self._alive()
            data = os.read(self.child_fd, size)
            if data:
                return self._utf8.decode(data)
            if not alive:
                raise pexpect.EOF("the guest has ended")
            if time.monotonic() >= end:
                raise pexpect.TIMEOUT("nothing more on the console")
            time.sleep(_LOOK)


class Console:
    """The console's text so far, slices of it, and waiting for more."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def position(self) -> int:
        """Bytes so far: where a slice may begin."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def append(self, text: str) -> None:
        """Add what was said elsewhere; nobody may be writing yet."""
        if text:
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)

    def text(self, since: int = 0) -> str:
        """What was said since a position; of very much the beginning and the end."""
        end = self.position()
        if end - since <= _HEAD + _TAIL:
            return self._read(since, end - since)
        left_out = end - since - _HEAD - _TAIL
        head, tail = self._read(since, _HEAD), self._read(end - _TAIL, _TAIL)
        return f"{head}\n[{left_out} bytes left out]\n{tail}"

    def has(self, line: str, since: int) -> bool:
        """Whether a text is there already, not far behind a position."""
        return line in self._read(since, _HEAD)

    def findings(self, since: int = 0) -> tuple[Finding, ...]:
        """Panics, warnings … since a position."""
        return classify(self._read(since, _MOST))

    def _read(self, since: int, size: int) -> str:
        try:
            with self.path.open("rb") as file:
                file.seek(since)
                return file.read(max(0, size)).decode("utf-8", "replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

    def phase(self, since: int = 0) -> Phase:
        """How far the boot came whose console begins at a position."""
        return phase(self.text(since))

    def wait_for(
        self, pattern: str, deadline: Deadline, *, since: int, alive: Callable[[], bool]
    ) -> bool:
        """Whether a regular expression appears after a position, before deadline or end."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.lseek(descriptor, since, os.SEEK_SET)
            follower = _Follower(descriptor, alive)
            follower.delayafterread = None
            found: int = follower.expect(
                [re.compile(pattern), pexpect.TIMEOUT, pexpect.EOF], timeout=deadline.remaining()
            )
            return found == 0
        finally:
            os.close(descriptor)

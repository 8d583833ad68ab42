"""The guest's serial console: a log file that QEMU writes and that is evidence.

QEMU writes the file itself: nothing is lost if no process reads it, and it outlives this one.
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

#: Bytes kept from the start and the end of a slice.
_HEAD, _TAIL = 1 << 17, 1 << 15
#: Bytes searched for kernel reports.
_SEARCHED = 1 << 26
#: Polling interval in seconds.
_POLL_S = 0.002


if TYPE_CHECKING:
    _Spawn = SpawnBase[str]
else:
    _Spawn = SpawnBase


class _Follower(_Spawn):
    """Lets pexpect follow a file that another process appends to."""

    def __init__(self, descriptor: int, alive: Callable[[], bool]) -> None:
        super().__init__(timeout=None, encoding="utf-8", codec_errors="replace")
        self.child_fd = descriptor
        self._alive = alive
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def read_nonblocking(self, size: int = 1, timeout: float | None = None) -> str:
        end = time.monotonic() + (timeout or 0)
        while True:
            # Before the read, so that the last output of an ended guest is still read.
            alive = self._alive()
            data = os.read(self.child_fd, size)
            if data:
                return self._utf8.decode(data)
            if not alive:
                raise pexpect.EOF("the guest has ended")
            if time.monotonic() >= end:
                raise pexpect.TIMEOUT("nothing more on the console")
            time.sleep(_POLL_S)


class Console:
    """The console's text, slices of it, and waiting for more."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def position(self) -> int:
        """The current size in bytes, where a slice may start."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def append(self, text: str) -> None:
        """Append text before QEMU starts to write."""
        if text:
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)

    def text(self, since: int = 0) -> str:
        """The text since a position; of a long one only start and end."""
        end = self.position()
        if end - since <= _HEAD + _TAIL:
            return self._read(since, end - since)
        left_out = end - since - _HEAD - _TAIL
        head, tail = self._read(since, _HEAD), self._read(end - _TAIL, _TAIL)
        return f"{head}\n[{left_out} bytes left out]\n{tail}"

    def has(self, line: str, since: int) -> bool:
        """Whether a line is present shortly after a position."""
        return line in self._read(since, _HEAD)

    def findings(self, since: int = 0) -> tuple[Finding, ...]:
        """The kernel reports since a position."""
        return classify(self._read(since, _SEARCHED))

    def phase(self, since: int = 0) -> Phase:
        """The last phase of the boot that starts at a position."""
        return phase(self.text(since))

    def wait_for(
        self, pattern: str, deadline: Deadline, *, since: int, alive: Callable[[], bool]
    ) -> bool:
        """Whether a regular expression matches after a position before the deadline.

        Waiting ends as soon as the guest is not `alive`.
        """
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

    def _read(self, since: int, size: int) -> str:
        try:
            with self.path.open("rb") as file:
                file.seek(since)
                return file.read(max(0, size)).decode("utf-8", "replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

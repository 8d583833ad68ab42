"""The guest's serial console: a log file that QEMU writes and that is evidence.

QEMU writes the file itself: nothing is lost if no process reads it, and it outlives this one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from host.deadline import Deadline
from vm.kernel_log.reports import Finding, Phase, classify, phase

#: Bytes kept from the start and the end of a slice.
_HEAD, _TAIL = 1 << 17, 1 << 15
#: Bytes searched for kernel reports.
_SEARCHED = 1 << 26


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

    def phase(self, since: int) -> Phase:
        """The last phase of the boot that starts at a position."""
        return phase(self.text(since))

    def wait_for(
        self, pattern: str, deadline: Deadline, *, since: int, alive: Callable[[], bool]
    ) -> bool:
        """Whether a regular expression matches after a position before the deadline.

        Waiting ends as soon as the guest is not `alive`.
        """
        # Imported late: the log of the running kernel is never waited for.
        from vm.qemu.follower import wait_for

        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.lseek(descriptor, since, os.SEEK_SET)
            return wait_for(descriptor, re.compile(pattern), deadline, alive)
        finally:
            os.close(descriptor)

    def _read(self, since: int, size: int) -> str:
        try:
            with self.path.open("rb") as file:
                file.seek(since)
                return file.read(max(0, size)).decode("utf-8", "replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

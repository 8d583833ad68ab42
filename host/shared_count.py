"""A number that processes forked from one another share."""

from __future__ import annotations

import mmap


class SharedCount:
    """Counts events of a process and of all its children, in at most 255 steps."""

    def __init__(self) -> None:
        # One byte: its increment needs no lock, since a lost one does no harm.
        self._memory = mmap.mmap(-1, 1)

    def increment(self) -> None:
        """Count one more."""
        self._memory[0] = min(self._memory[0] + 1, 0xFF)

    @property
    def value(self) -> int:
        """The number so far."""
        return self._memory[0]

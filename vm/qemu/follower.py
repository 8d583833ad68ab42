"""Wait for text at the end of a file that another process appends to, with pexpect."""

from __future__ import annotations

import codecs
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pexpect
from pexpect.spawnbase import SpawnBase

from host.deadline import Deadline

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


def wait_for(
    descriptor: int, pattern: re.Pattern[str], deadline: Deadline, alive: Callable[[], bool]
) -> bool:
    """Whether a pattern matches before the deadline; ends as soon as the writer is not `alive`."""
    follower = _Follower(descriptor, alive)
    follower.delayafterread = None
    found: int = follower.expect(
        [pattern, pexpect.TIMEOUT, pexpect.EOF], timeout=deadline.remaining()
    )
    return found == 0

"""The verifier's log.  What it says is left open: it is there, and ends with NUL.

Source: kernel/bpf/log.c:bpf_verifier_log_attr_valid, bpf_vlog_finalize.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import AddressSpace

# BPF_LOG_LEVEL1, 2 and BPF_LOG_STATS.
_LEVELS = 7
# Above these no release has a bit.
_NO_LEVELS = ~0xFF
_LEAST_SIZE = 128
_MOST_SIZE = (1 << 32) - 1 >> 2
# What the log takes in any release for every instruction that is looked at, and what
# surely is enough.
_LEAST_LINE = 12
_LONGEST_LINE = 256
_ENOUGH = 2048


@dataclass(slots=True)
class Log:
    """Where a log goes.  ``said`` is our own verifier's."""

    level: int
    size: int
    address: int
    said: list[str] = field(default_factory=list)

    def check(self, profile: Profile) -> None:
        """Whether the attributes go together.  Raises Errno, NotModelled."""
        if not self.level and not self.size and not self.address:
            return
        if self.level & ~_LEVELS and not self.level & _NO_LEVELS:
            raise NotModelled(f"log level {self.level}")
        good = not self.level & ~_LEVELS and self.size <= _MOST_SIZE
        if profile.has("bpf_log_without_buffer"):
            good &= bool(self.size) == bool(self.address) and not (self.address and not self.level)
        else:
            good &= bool(self.level) and bool(self.address) and self.size >= _LEAST_SIZE
        if not good:
            raise Errno("EINVAL")

    def finish(self, memory: AddressSpace, count: int, *, refused: bool) -> None:
        """Write it, for a program of ``count`` instructions.  Raises Errno, NotModelled."""
        if not self.level or not self.size:
            return
        text = ("\n".join(self.said) + "\n").encode()
        short = self.size == 1 or (self.size <= _LEAST_LINE * count and not refused)
        if not short and self.size < _ENOUGH + _LONGEST_LINE * count:
            raise NotModelled("a log that may be long enough or not")
        memory.write(self.address, text[: self.size - 1] + b"\0")
        memory.leave_open(self.address, self.size)
        if short:
            raise Errno("ENOSPC")

"""The verifier log.  Its content is not compared: it is not empty and ends with NUL.

Source: kernel/bpf/log.c:bpf_verifier_log_attr_valid, bpf_vlog_finalize.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.abi.profile import Profile
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace

# BPF_LOG_LEVEL1, 2 and BPF_LOG_STATS.
_LEVELS = 7
# No release has higher bits.
_NO_LEVELS = ~0xFF
_MIN_SIZE = 128
_MAX_SIZE = (1 << 32) - 1 >> 2
# Bytes of log per instruction: at least, in any release, and enough in all of them.
_MIN_LINE = 12
_MAX_LINE = 256
_ENOUGH = 2048


@dataclass(slots=True)
class Log:
    """The log attributes, and the lines of our verifier."""

    level: int
    size: int
    address: int
    lines: list[str] = field(default_factory=list)

    def check(self, profile: Profile) -> None:
        """Check the attributes.  Raises Errno, NotModelled."""
        if not self.level and not self.size and not self.address:
            return
        if self.level & ~_LEVELS and not self.level & _NO_LEVELS:
            raise NotModelled(f"log level {self.level}")
        good = not self.level & ~_LEVELS and self.size <= _MAX_SIZE
        if profile.has("bpf_log_without_buffer"):
            good &= bool(self.size) == bool(self.address) and not (self.address and not self.level)
        else:
            good &= bool(self.level) and bool(self.address) and self.size >= _MIN_SIZE
        if not good:
            raise Errno("EINVAL")

    def finish(self, memory: AddressSpace, count: int, *, refused: bool) -> None:
        """Write the log of a program with ``count`` instructions.  Raises Errno, NotModelled."""
        if not self.level or not self.size:
            return
        text = ("\n".join(self.lines) + "\n").encode()
        short = self.size == 1 or (self.size <= _MIN_LINE * count and not refused)
        if not short and self.size < _ENOUGH + _MAX_LINE * count:
            raise NotModelled("a log buffer that suffices or not, depending on the release")
        memory.write(self.address, text[: self.size - 1] + b"\0")
        memory.mark_unspecified(self.address, self.size)
        if short:
            raise Errno("ENOSPC")

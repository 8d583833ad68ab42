"""BPF_PROG_LOAD: the program, its license, and the log of the verifier.

The content of the log is not compared: it is not empty and ends with NUL.
Source: kernel/bpf/syscall.c:bpf_prog_load; kernel/bpf/verifier.c:bpf_check;
kernel/bpf/log.c:bpf_verifier_log_attr_valid, bpf_vlog_finalize.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.abi.bpf import BPF_F_STRICT_ALIGNMENT, ProgramType
from conformance.abi.profile import Profile
from conformance.model.bpf import verifier
from conformance.model.bpf.programs import Program
from conformance.model.bpf.structure import FindMap
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.ops.bpf_assembler import INSTRUCTION_SIZE, Instruction

# BPF_COMPLEXITY_LIMIT_INSNS, for CAP_BPF.
_MAX_INSTRUCTIONS = 1_000_000
_MODELLED_INSTRUCTIONS = 4096
_LICENSE_SIZE = 128
# license_is_gpl_compatible() in include/linux/license.h.
_GPL = {"GPL", "GPL v2", "GPL and additional rights"}
_GPL |= {f"Dual {other}/GPL" for other in ("BSD", "MIT")} | {"Dual MPL/GPL"}
# No release has this many types.
_NO_TYPE = 1000

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


def load(
    profile: Profile, memory: AddressSpace, attributes: Mapping[str, int], map_of: FindMap
) -> Program:
    """Verify and load a program.  Raises Errno, NotModelled."""
    kind, count = attributes["prog_type"], attributes["insn_cnt"]
    license_text = ""
    if not profile.has("bpf_license_read_last"):
        license_text = _license(memory, attributes["license"])
    if count == 0 or count > _MAX_INSTRUCTIONS:
        raise Errno("E2BIG")
    if count > _MODELLED_INSTRUCTIONS:
        raise NotModelled("a program of more than 4096 instructions")
    raw = memory.read(attributes["insns"], count * INSTRUCTION_SIZE)
    if profile.has("bpf_license_read_last"):
        license_text = _license(memory, attributes["license"])
    if kind == ProgramType.UNSPEC or kind >= _NO_TYPE:
        raise Errno("EINVAL")
    if kind not in tuple(ProgramType):
        raise NotModelled(f"program of type {kind}")
    places = range(0, len(raw), INSTRUCTION_SIZE)
    program = [Instruction.decode(raw[at : at + INSTRUCTION_SIZE]) for at in places]
    submission = verifier.Submission(
        ProgramType(kind),
        program,
        gpl=license_text in _GPL,
        strict=bool(attributes["prog_flags"] & BPF_F_STRICT_ALIGNMENT),
    )
    log = _Log(attributes["log_level"], attributes["log_size"], attributes["log_buf"])
    log.check(profile)
    try:
        maps = verifier.check(submission, map_of, log.lines)
    except Errno:
        log.finish(memory, count, refused=True)
        raise
    log.finish(memory, count, refused=False)
    context_size = max(submission.context_ends, default=0)
    return Program(ProgramType(kind), program, maps, context_size)


def _license(memory: AddressSpace, address: int) -> str:
    """strncpy_from_user(): up to the NUL; a longer text is truncated."""
    size = min(_LICENSE_SIZE - 1, memory.readable(address, _LICENSE_SIZE - 1))
    text = memory.read(address, size)
    if size < _LICENSE_SIZE - 1 and b"\0" not in text:
        raise Errno("EFAULT")
    return text.partition(b"\0")[0].decode("latin-1")


@dataclass(slots=True)
class _Log:
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

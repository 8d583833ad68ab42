"""eBPF programs: load and run.

Source: kernel/bpf/syscall.c:bpf_prog_load; kernel/bpf/verifier.c:bpf_check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.abi.bpf import BPF_F_STRICT_ALIGNMENT, ProgramType
from conformance.abi.profile import Profile
from conformance.model.bpf import verifier
from conformance.model.bpf.interpreter import Machine, ReadMemory, Region
from conformance.model.bpf.log import Log
from conformance.model.bpf.maps import Map
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.ops.bpf_assembler import INSTRUCTION_SIZE, Instruction

# BPF_COMPLEXITY_LIMIT_INSNS, for CAP_BPF.
MAX_INSTRUCTIONS = 1_000_000
_MODELLED_INSTRUCTIONS = 4096
_LICENSE_SIZE = 128
# license_is_gpl_compatible() in include/linux/license.h.
_GPL = {"GPL", "GPL v2", "GPL and additional rights"}
_GPL |= {f"Dual {other}/GPL" for other in ("BSD", "MIT")} | {"Dual MPL/GPL"}
# No release has this many types.
_NO_TYPE = 1000


@dataclass(slots=True, eq=False)
class Program:
    """A loaded program; ``maps`` are by instruction.

    ``context_size`` is max_ctx_offset: the end of the last load from the context.
    """

    kind: ProgramType
    instructions: list[Instruction]
    maps: Mapping[int, Map] = field(default_factory=dict)
    context_size: int = 0

    def run(
        self,
        context: bytes,
        read_memory: ReadMemory | None = None,
        known: set[int] | None = None,
    ) -> int:
        """The return value for a context, of which only the ``known`` bytes may be read.

        Raises NotModelled for unknown bytes.
        """
        region = Region(bytearray(context), known)
        return Machine(self.instructions, self.maps, region, read_memory).run()


@dataclass(frozen=True, slots=True)
class LoadAttributes:
    """Attributes of BPF_PROG_LOAD, except for the log."""

    kind: int
    count: int
    instructions: int
    license: int
    flags: int


def load(
    profile: Profile,
    memory: AddressSpace,
    map_of: Callable[[int], Map],
    attributes: LoadAttributes,
    log: Log,
) -> Program:
    """Verify and load a program.  Raises Errno, NotModelled."""
    license_text = ""
    if not profile.has("bpf_license_read_last"):
        license_text = _license(memory, attributes.license)
    if attributes.count == 0 or attributes.count > MAX_INSTRUCTIONS:
        raise Errno("E2BIG")
    if attributes.count > _MODELLED_INSTRUCTIONS:
        raise NotModelled("a program of more than 4096 instructions")
    raw = memory.read(attributes.instructions, attributes.count * INSTRUCTION_SIZE)
    if profile.has("bpf_license_read_last"):
        license_text = _license(memory, attributes.license)
    if attributes.kind == ProgramType.UNSPEC or attributes.kind >= _NO_TYPE:
        raise Errno("EINVAL")
    if attributes.kind not in tuple(ProgramType):
        raise NotModelled(f"program of type {attributes.kind}")
    places = range(0, len(raw), INSTRUCTION_SIZE)
    program = [Instruction.decode(raw[at : at + INSTRUCTION_SIZE]) for at in places]
    submission = verifier.Submission(
        ProgramType(attributes.kind),
        program,
        gpl=license_text in _GPL,
        strict=bool(attributes.flags & BPF_F_STRICT_ALIGNMENT),
    )
    log.check(profile)
    try:
        maps = verifier.check(submission, map_of, log.lines)
    except Errno:
        log.finish(memory, attributes.count, refused=True)
        raise
    log.finish(memory, attributes.count, refused=False)
    context_size = max(submission.context_ends, default=0)
    return Program(ProgramType(attributes.kind), program, maps, context_size)


def _license(memory: AddressSpace, address: int) -> str:
    """strncpy_from_user(): up to the NUL; a longer text is truncated."""
    size = min(_LICENSE_SIZE - 1, memory.readable(address, _LICENSE_SIZE - 1))
    text = memory.read(address, size)
    if size < _LICENSE_SIZE - 1 and b"\0" not in text:
        raise Errno("EFAULT")
    return text.partition(b"\0")[0].decode("latin-1")

"""eBPF programs: loading them, and running them over a context.

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
from conformance.model.memory import AddressSpace
from conformance.ops.bpf_assembler import INSTRUCTION_SIZE, Instruction

# BPF_COMPLEXITY_LIMIT_INSNS: for who may do everything.
MOST_INSTRUCTIONS = 1_000_000
_MODELLED_INSTRUCTIONS = 4096
_LICENSE_SIZE = 128
# license_is_gpl_compatible() in include/linux/license.h.
_GPL = {"GPL", "GPL v2", "GPL and additional rights"}
_GPL |= {f"Dual {other}/GPL" for other in ("BSD", "MIT")} | {"Dual MPL/GPL"}
# No release has so many types.
_NO_TYPE = 1000


@dataclass(slots=True, eq=False)
class Program:
    """A loaded program, which keeps its maps: ``maps`` has them by instruction.

    ``context_size`` is how many bytes of its context it loads from: max_ctx_offset.
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
        """Its answer, R0, for a context, of which some bytes may be known or all of them.

        Raises NotModelled for what is not known.
        """
        region = Region(bytearray(context), known)
        return Machine(self.instructions, self.maps, region, read_memory).run()


@dataclass(frozen=True, slots=True)
class Loading:
    """What BPF_PROG_LOAD was asked for, its log left aside."""

    kind: int
    count: int
    instructions: int
    license: int
    flags: int


def load(
    profile: Profile,
    memory: AddressSpace,
    map_of: Callable[[int], Map],
    asked: Loading,
    log: Log,
) -> Program:
    """The program, if it is good.  Raises Errno, NotModelled."""
    license_text = ""
    if not profile.has("bpf_license_read_last"):
        license_text = _license(memory, asked.license)
    if asked.count == 0 or asked.count > MOST_INSTRUCTIONS:
        raise Errno("E2BIG")
    if asked.count > _MODELLED_INSTRUCTIONS:
        raise NotModelled("a long program")
    raw = memory.read(asked.instructions, asked.count * INSTRUCTION_SIZE)
    if profile.has("bpf_license_read_last"):
        license_text = _license(memory, asked.license)
    if asked.kind == ProgramType.UNSPEC or asked.kind >= _NO_TYPE:
        raise Errno("EINVAL")
    if asked.kind not in tuple(ProgramType):
        raise NotModelled(f"program of type {asked.kind}")
    places = range(0, len(raw), INSTRUCTION_SIZE)
    program = [Instruction.decode(raw[at : at + INSTRUCTION_SIZE]) for at in places]
    question = verifier.Question(
        ProgramType(asked.kind),
        program,
        gpl=license_text in _GPL,
        strict=bool(asked.flags & BPF_F_STRICT_ALIGNMENT),
    )
    log.check(profile)
    try:
        maps = verifier.check(question, map_of, log.said)
    except Errno:
        log.finish(memory, asked.count, refused=True)
        raise
    log.finish(memory, asked.count, refused=False)
    context_size = max(question.context_ends, default=0)
    return Program(ProgramType(asked.kind), program, maps, context_size)


def _license(memory: AddressSpace, address: int) -> str:
    """strncpy_from_user(): as far as its NUL; what is longer is cut off."""
    size = min(_LICENSE_SIZE - 1, memory.readable(address, _LICENSE_SIZE - 1))
    text = memory.read(address, size)
    if size < _LICENSE_SIZE - 1 and b"\0" not in text:
        raise Errno("EFAULT")
    return text.partition(b"\0")[0].decode("latin-1")

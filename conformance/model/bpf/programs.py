"""Loaded eBPF programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from conformance.abi.bpf import ProgramType
from conformance.model.bpf.interpreter import Machine, ReadMemory, Region
from conformance.model.bpf.maps import Map
from conformance.ops.bpf_assembler import Instruction


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

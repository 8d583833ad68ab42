"""A BPF program that stores its context in a map."""

from __future__ import annotations

import struct

from msgspec import Struct

from conformance.abi.bpf import Helper, ProgramType
from conformance.client.bpf import Bpf
from conformance.client.perf import PerfEvent, open_perf
from conformance.client.process import Process
from conformance.client.user_events import UserEvents
from conformance.ops import Observation
from conformance.ops.bpf_assembler import (
    Instruction,
    Label,
    Piece,
    alu64_imm,
    alu64_reg,
    call,
    exit_insn,
    ja,
    jmp_imm,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
    stx_mem,
    stx_xadd,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R6, R7, R8, R10, Alu, Jump, Size

# The map value: number of runs, the context, and the memory it points to.
RUNS = 0
CONTEXT = 8
CONTENT = 24
# For an iterator: the structure, then the iovecs.
ITERATOR = CONTENT
VECTOR = ITERATOR + 16
IOVEC_SIZE = 16
# Replaces any address in the kernel half.
KERNEL = 0xFFFF_FFFF_FFFF_FFFF

_DATA_ITER = 2
# The key of the map's only element.
_FIRST = bytes(4)


def recorder(slot: int, *, room: int, parts: int, answer: int, typed: bool) -> list[Piece]:
    """A program that stores its context in element 0 of the map in a slot.

    It stores the context, then ``room`` bytes of the data, or ``parts`` iovecs of an iterator.
    Contexts that are not ``typed`` have no iterator.  The program may not load the first eight
    bytes of its context, but probe_read may.
    """
    looking = [ldx_mem(Size.W, R1, R7, CONTEXT), jmp_imm(Jump.JEQ, R1, _DATA_ITER, "iterator")]
    return [
        mov64_reg(R6, R1),
        st_mem(Size.W, R10, -4, 0),
        ld_map_fd(R1, slot),
        mov64_reg(R2, R10),
        alu64_imm(Alu.ADD, R2, -4),
        call(Helper.MAP_LOOKUP_ELEM),
        jmp_imm(Jump.JEQ, R0, 0, "end"),
        mov64_reg(R7, R0),
        mov64_imm(R1, 1),
        stx_xadd(Size.DW, R7, R1, RUNS),
        *_probe_read(CONTEXT, 16, R6),
        *_take_address(CONTEXT + 8),
        *(looking if typed else []),
        *_probe_read(CONTENT, room, R6),
        *(_keep_iterator(parts) if typed else []),
        Label("end"),
        mov64_imm(R0, answer),
        exit_insn(),
    ]


def _keep_iterator(parts: int) -> list[Piece]:
    return [
        ja("end"),
        Label("iterator"),
        *_probe_read(ITERATOR, 16, R6),
        *_take_address(ITERATOR + 8),
        *_probe_read(VECTOR, parts * IOVEC_SIZE, R6),
    ]


def _probe_read(place: int, size: int, source: int) -> list[Instruction]:
    """Copy bytes from the address in a register to an offset of the value, if any."""
    copying = [
        mov64_reg(R1, R7),
        alu64_imm(Alu.ADD, R1, place),
        mov64_imm(R2, size),
        mov64_reg(R3, source),
        call(Helper.PROBE_READ),
    ]
    return copying if size else []


def _take_address(place: int) -> list[Instruction]:
    """Load an address into R6, and replace one in the kernel half by KERNEL."""
    return [
        ldx_mem(Size.DW, R6, R7, place),
        mov64_reg(R8, R6),
        alu64_imm(Alu.ARSH, R8, 63),
        alu64_reg(Alu.OR, R8, R6),
        stx_mem(Size.DW, R7, R8, place),
    ]


class Seen(Struct, frozen=True):
    """What the program stored: number of runs, and the context of the last one.

    ``raw`` is the context, with KERNEL instead of an address in the kernel half.
    """

    runs: int
    raw: bytes
    content: bytes

    @property
    def context(self) -> tuple[int, int, int]:
        """Type, length and address of the data."""
        data_type, data_len, address = struct.unpack("<IIQ", self.raw)
        return data_type, data_len, address

    @property
    def data_type(self) -> int:
        """Type of the data."""
        return self.context[0]

    @property
    def iterator(self) -> tuple[int, int, int]:
        """The content as struct user_bpf_iter: iov_offset, nr_segs, iov."""
        offset, count, vector = struct.unpack_from("<IIQ", self.content)
        return offset, count, vector

    @property
    def iovecs(self) -> list[tuple[int, int]]:
        """Address and length of the iovecs, up to the first empty one."""
        found = list(struct.iter_unpack("<QQ", self.content[VECTOR - CONTENT :]))
        return [(base, length) for base, length in found if base or length]


class Recorder:
    """The program, loaded by a process, and its map."""

    def __init__(
        self,
        process: Process,
        *,
        room: int = 8,
        parts: int = 0,
        answer: int = 1,
        typed: bool = True,
    ) -> None:
        bpf = Bpf(process)
        size = CONTENT + max(room, VECTOR - CONTENT + parts * IOVEC_SIZE)
        self._map = bpf.array(value_size=size, max_entries=1)
        assert self._map.errno == ""
        slot = self._map.slot
        instructions = recorder(slot, room=room, parts=parts, answer=answer, typed=typed)
        self.program = bpf.load(instructions, ProgramType.TRACEPOINT)
        assert self.program.errno == ""

    @classmethod
    def attached(cls, ue: UserEvents, *, room: int = 8, parts: int = 0) -> Recorder:
        """A recorder that is attached to a perf event on ``name()``."""
        recorder = cls(ue.process, room=room, parts=parts)
        assert recorder.attach(open_perf(ue.process, ue.name())).value == 0
        return recorder

    def attach(self, event: PerfEvent) -> Observation:
        """PERF_EVENT_IOC_SET_BPF."""
        return event.set_program(self.program.slot)

    def take(self) -> Seen:
        """Read and clear the map."""
        kept = self._map.value(_FIRST) or b""
        self._map.update(_FIRST, bytes(self._map.value_size))
        (runs,) = struct.unpack_from("<Q", kept)
        return Seen(runs, kept[CONTEXT:CONTENT], kept[CONTENT:])

"""BPF programs that compute: two operands from one map, up to eight results into another.

The verifier does not know the operands, so it cannot fold branches.
"""

import struct
from collections.abc import Sequence

from conformance.client.bpf import Bpf
from conformance.client.user_events import UserEvents
from conformance.ops.bpf_assembler import (
    Instruction,
    Label,
    Piece,
    alu64_imm,
    call,
    exit_insn,
    jmp_imm,
    ld_map_fd,
    ldx_mem,
    mov64_imm,
    mov64_reg,
    st_mem,
    stx_mem,
)
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R6, R7, R10, Alu, Jump, Size

KEY = b"\0\0\0\0"
# Where a program keeps its results and the key of both maps, from the end of its stack.
_RESULTS = -64
_KEY = -72
LOOKUP, UPDATE = 1, 2


def keep(number: int, register: int) -> Instruction:
    """Store a register as one of the results."""
    return stx_mem(Size.DW, R10, register, _RESULTS + 8 * number)


class Computer:
    """A program with its maps, attached to a socket.  Its body finds the operands in R6 and R7."""

    def __init__(self, ue: UserEvents, *body: Piece) -> None:
        self._system = Bpf(ue.process)
        self._inputs = self._system.array(value_size=16, max_entries=1)
        self._results = self._system.array(value_size=64, max_entries=1)
        program = self._system.load([*self._head(), *body, *self._tail()])
        assert program.errno == ""
        self._pair = self._system.pair()
        self._pair.attach(program)

    def _head(self) -> Sequence[Piece]:
        return [
            st_mem(Size.W, R10, _KEY, 0),
            *(st_mem(Size.DW, R10, _RESULTS + 8 * number, 0) for number in range(8)),
            ld_map_fd(R1, self._inputs.slot),
            mov64_reg(R2, R10),
            alu64_imm(Alu.ADD, R2, _KEY),
            call(LOOKUP),
            jmp_imm(Jump.JEQ, R0, 0, "out"),
            ldx_mem(Size.DW, R6, R0, 0),
            ldx_mem(Size.DW, R7, R0, 8),
        ]

    def _tail(self) -> Sequence[Piece]:
        return [
            Label("store"),
            ld_map_fd(R1, self._results.slot),
            mov64_reg(R2, R10),
            alu64_imm(Alu.ADD, R2, _KEY),
            mov64_reg(R3, R10),
            alu64_imm(Alu.ADD, R3, _RESULTS),
            mov64_imm(R4, 0),
            call(UPDATE),
            Label("out"),
            mov64_imm(R0, 0),
            exit_insn(),
        ]

    def run(self, left: int = 0, right: int = 0) -> list[int]:
        """The eight results for two 64-bit operands."""
        self._inputs.update(KEY, struct.pack("<QQ", left, right))
        self._pair.send(b"!")
        return list(struct.unpack("<8Q", self._results.value(KEY) or bytes(64)))

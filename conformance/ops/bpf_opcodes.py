"""Registers and parts of the opcodes of eBPF, as in ``bpf.h`` and ``bpf_common.h``."""

from __future__ import annotations

from enum import IntEnum


class Class(IntEnum):
    """Instruction classes: the low three bits of an opcode."""

    LD = 0x00
    LDX = 0x01
    ST = 0x02
    STX = 0x03
    ALU = 0x04
    JMP = 0x05
    ALU64 = 0x07


class Size(IntEnum):
    """Sizes of loads and stores."""

    W = 0x00
    H = 0x08
    B = 0x10
    DW = 0x18

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return {Size.W: 4, Size.H: 2, Size.B: 1, Size.DW: 8}[self]


class Alu(IntEnum):
    """Arithmetic operations."""

    ADD = 0x00
    SUB = 0x10
    MUL = 0x20
    DIV = 0x30
    OR = 0x40
    AND = 0x50
    LSH = 0x60
    RSH = 0x70
    NEG = 0x80
    MOD = 0x90
    XOR = 0xA0
    MOV = 0xB0
    ARSH = 0xC0
    END = 0xD0


class Jump(IntEnum):
    """Jump operations."""

    JA = 0x00
    JEQ = 0x10
    JGT = 0x20
    JGE = 0x30
    JSET = 0x40
    JNE = 0x50
    JSGT = 0x60
    JSGE = 0x70
    CALL = 0x80
    EXIT = 0x90


# Modes of loads and stores, and the source of an operand.
IMM = 0x00
MEM = 0x60
XADD = 0xC0
K = 0x00
X = 0x08
# BPF_TO_LE and BPF_TO_BE.
TO_LE = 0x00
TO_BE = 0x08

R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = range(11)

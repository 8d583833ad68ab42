"""Assembler for eBPF programs: typed instructions of eight bytes.

Functions are named after the macros of the kernel's samples.  A jump targets a label or a number
of instructions.  A map is named by the slot of its descriptor; its number is filled in before
the program is loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from conformance.abi.bpf import PSEUDO_MAP_FD, Helper
from conformance.ops.bpf_opcodes import (
    IMM,
    MEM,
    XADD,
    Alu,
    Class,
    Jump,
    K,
    Size,
    X,
)

INSTRUCTION_SIZE = 8


class Instruction(Struct, frozen=True):
    """One struct bpf_insn; ``target`` and ``slot`` are resolved to ``off`` and ``imm`` later."""

    code: int
    dst: int = 0
    src: int = 0
    off: int = 0
    imm: int = 0
    target: str = ""
    slot: int | None = None

    def encode(self) -> bytes:
        """Eight bytes: opcode, destination and source register, offset, immediate.

        Raises struct.error for a number out of range.
        """
        return struct.pack("<BBhi", self.code, self.src << 4 | self.dst, self.off, self.imm)

    @classmethod
    def decode(cls, raw: bytes) -> Instruction:
        """The instruction in eight bytes."""
        code, registers, off, imm = struct.unpack("<BBhi", raw)
        return cls(code, registers & 0xF, registers >> 4, off, imm)


class Label(Struct, frozen=True):
    """A jump target; it has no encoding."""

    name: str


Item = Instruction | Label
# The parts of a program: a label, one instruction, or two.
Piece = Item | tuple[Instruction, Instruction]


def assemble(program: Sequence[Piece]) -> bytes:
    """The bytes of a program.  Raises KeyError for an unknown label."""
    return b"".join(each.encode() for each in resolve(program))


def resolve(program: Sequence[Piece]) -> list[Instruction]:
    """The instructions of a program, with jumps to labels resolved."""
    places: dict[str, int] = {}
    instructions: list[Instruction] = []
    for item in _flat(program):
        if isinstance(item, Label):
            places[item.name] = len(instructions)
        else:
            instructions.append(item)
    return [
        replace(each, off=places[each.target] - number - 1, target="") if each.target else each
        for number, each in enumerate(instructions)
    ]


def descriptors(program: Sequence[Piece]) -> list[tuple[int, int]]:
    """(offset in bytes, slot) of every descriptor number in a program."""
    return [
        (number * INSTRUCTION_SIZE + 4, each.slot)
        for number, each in enumerate(resolve(program))
        if each.slot is not None
    ]


def _flat(program: Sequence[Piece]) -> Iterator[Item]:
    for piece in program:
        if isinstance(piece, tuple):
            yield from piece
        else:
            yield piece


# Arithmetic


def alu64_imm(operation: Alu, dst: int, imm: int) -> Instruction:
    """64-bit operation with a sign-extended immediate."""
    return Instruction(Class.ALU64 | operation | K, dst, imm=imm)


def alu64_reg(operation: Alu, dst: int, src: int) -> Instruction:
    """64-bit operation with a register."""
    return Instruction(Class.ALU64 | operation | X, dst, src)


def alu32_imm(operation: Alu, dst: int, imm: int) -> Instruction:
    """32-bit operation with an immediate; clears the upper half."""
    return Instruction(Class.ALU | operation | K, dst, imm=imm)


def alu32_reg(operation: Alu, dst: int, src: int) -> Instruction:
    """32-bit operation with a register; clears the upper half."""
    return Instruction(Class.ALU | operation | X, dst, src)


def mov64_imm(dst: int, imm: int) -> Instruction:
    """dst = imm, sign-extended."""
    return alu64_imm(Alu.MOV, dst, imm)


def mov64_reg(dst: int, src: int) -> Instruction:
    """dst = src."""
    return alu64_reg(Alu.MOV, dst, src)


def neg64(dst: int) -> Instruction:
    """dst = -dst."""
    return alu64_imm(Alu.NEG, dst, 0)


def endian(direction: int, dst: int, bits: int) -> Instruction:
    """Convert the low bits of a register to a byte order, ``TO_LE`` or ``TO_BE``."""
    return Instruction(Class.ALU | Alu.END | direction, dst, imm=bits)


# Memory


def ldx_mem(size: Size, dst: int, src: int, off: int) -> Instruction:
    """dst = *(src + off)."""
    return Instruction(Class.LDX | size | MEM, dst, src, off)


def stx_mem(size: Size, dst: int, src: int, off: int) -> Instruction:
    """*(dst + off) = src."""
    return Instruction(Class.STX | size | MEM, dst, src, off)


def st_mem(size: Size, dst: int, off: int, imm: int) -> Instruction:
    """*(dst + off) = imm."""
    return Instruction(Class.ST | size | MEM, dst, 0, off, imm)


def stx_xadd(size: Size, dst: int, src: int, off: int) -> Instruction:
    """*(dst + off) += src, atomically."""
    return Instruction(Class.STX | size | XADD, dst, src, off)


def ld_imm64(dst: int, value: int) -> tuple[Instruction, Instruction]:
    """dst = imm with 64 bits, in two instructions."""
    low, high = struct.unpack("<ii", (value & (1 << 64) - 1).to_bytes(8, "little"))
    return Instruction(Class.LD | Size.DW | IMM, dst, imm=low), Instruction(0, imm=high)


def ld_map_fd(dst: int, slot: int) -> tuple[Instruction, Instruction]:
    """dst = map, by the slot of its descriptor."""
    load = Instruction(Class.LD | Size.DW | IMM, dst, PSEUDO_MAP_FD, slot=slot)
    return load, Instruction(0)


# Jumps


def _to(code: int, dst: int, src: int, to: str | int, imm: int = 0) -> Instruction:
    if isinstance(to, str):
        return Instruction(code, dst, src, imm=imm, target=to)
    return Instruction(code, dst, src, to, imm)


def jmp_imm(operation: Jump, dst: int, imm: int, to: str | int) -> Instruction:
    """Jump if the comparison with a sign-extended immediate holds."""
    return _to(Class.JMP | operation | K, dst, 0, to, imm)


def jmp_reg(operation: Jump, dst: int, src: int, to: str | int) -> Instruction:
    """Jump if the comparison with a register holds."""
    return _to(Class.JMP | operation | X, dst, src, to)


def ja(to: str | int) -> Instruction:
    """Unconditional jump."""
    return _to(Class.JMP | Jump.JA, 0, 0, to)


def call(helper: Helper | int) -> Instruction:
    """Call a helper with R1 to R5; the result is in R0."""
    return Instruction(Class.JMP | Jump.CALL, imm=helper)


def exit_insn() -> Instruction:
    """Return R0."""
    return Instruction(Class.JMP | Jump.EXIT)

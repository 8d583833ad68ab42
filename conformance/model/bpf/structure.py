"""Checks of opcodes, reserved fields and jumps.

Instructions later than the first bpf.h raise NotModelled.
Source: kernel/bpf/verifier.c:check_subprogs, resolve_pseudo_ldimm64, check_cfg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from conformance.abi.bpf import PSEUDO_MAP_FD
from conformance.model.bpf.maps import Map
from conformance.model.errors import Errno, NotModelled
from conformance.ops.bpf_assembler import Instruction
from conformance.ops.bpf_opcodes import IMM, MEM, XADD, Alu, Class, Jump, Size, X

LD_IMM64 = Class.LD | Size.DW | IMM
EXIT = Class.JMP | Jump.EXIT
CALL = Class.JMP | Jump.CALL
JA = Class.JMP | Jump.JA

# Opcodes that no release has so far.
_NEVER = {0xFF, 0xF7, 0xE7, 0xF5, 0x0D, 0x9D, 0x00}
_SHIFTS = (Alu.LSH, Alu.RSH, Alu.ARSH)

FindMap = Callable[[int], Map]


class Refused(Errno):
    """The verifier refuses a program; ``why`` is the line in its log."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self.why = why


def check(program: Sequence[Instruction], find_map: FindMap) -> dict[int, Map]:
    """The maps that a program loads, by instruction.  Raises Errno, NotModelled."""
    _check_jumps(program)
    maps = _maps(program, find_map)
    _check_reached(program)
    for each in instructions(program):
        if _uses_reserved(program[each]):
            raise Refused("EINVAL", "uses reserved fields")
    return maps


def instructions(program: Sequence[Instruction]) -> Iterator[int]:
    """The indexes of instructions; a 64-bit load takes two slots."""
    number = 0
    while number < len(program):
        yield number
        number += 2 if program[number].code == LD_IMM64 else 1


def is_conditional(each: Instruction) -> bool:
    """Whether an instruction is a conditional jump."""
    return each.code & 7 == Class.JMP and each.code not in (JA, CALL, EXIT)


def targets(number: int, each: Instruction) -> list[int]:
    """The possible successors of an instruction."""
    if each.code == EXIT:
        return []
    if each.code == JA:
        return [number + 1 + each.off]
    if each.code == LD_IMM64:
        return [number + 2]
    jump = [number + 1 + each.off] if is_conditional(each) else []
    return [number + 1, *jump]


def _check_jumps(program: Sequence[Instruction]) -> None:
    for number, each in enumerate(program):
        if each.code & 7 != Class.JMP or each.code & 0xF0 in (Jump.CALL, Jump.EXIT):
            continue
        to = number + 1 + each.off
        if not 0 <= to < len(program):
            raise Refused("EINVAL", f"jump out of range from insn {number} to {to}")
    if program[-1].code not in (EXIT, JA):
        raise Refused("EINVAL", "last insn is not an exit or jmp")


def _maps(program: Sequence[Instruction], find_map: FindMap) -> dict[int, Map]:
    maps = {}
    for number in instructions(program):
        each = program[number]
        if each.code != LD_IMM64:
            if not _known(each.code):
                raise Refused("EINVAL", f"unknown opcode {each.code:02x}")
            continue
        second = program[number + 1] if number + 1 < len(program) else None
        if second is None or (second.code, second.dst, second.src, second.off) != (0, 0, 0, 0):
            raise Refused("EINVAL", "invalid bpf_ld_imm64 insn")
        if each.src == PSEUDO_MAP_FD:
            if second.imm:
                raise Refused("EINVAL", "unrecognized bpf_ld_imm64 insn")
            maps[number] = _map(each.imm, find_map)
        elif each.src:
            raise NotModelled(f"a 64-bit load of kind {each.src}")
    return maps


def _map(number: int, find_map: FindMap) -> Map:
    try:
        return find_map(number & 0xFFFFFFFF)
    except Errno as error:
        raise Refused(error.name, f"fd {number} is not pointing to valid bpf_map") from None


def _known(code: int) -> bool:
    """bpf_opcode_in_insntable(), for the first bpf.h."""
    operation, mode, size = code & 0xF0, code & 0xE0, code & 0x18
    match code & 7:
        case Class.ALU | Class.ALU64 if operation < Alu.END:
            known = operation != Alu.NEG or not code & X
        case Class.ALU if operation == Alu.END:
            known = True
        case Class.JMP:
            plain = operation in (Jump.JA, Jump.CALL, Jump.EXIT)
            known = operation <= Jump.EXIT and not (plain and code & X)
        case Class.LDX | Class.ST:
            known = mode == MEM
        case Class.STX:
            known = mode == MEM or (mode == XADD and size in (Size.W, Size.DW))
        case _:
            known = False
    if not known and code not in _NEVER:
        raise NotModelled(f"opcode {code:#04x}, which later releases may know")
    return known


def _uses_reserved(each: Instruction) -> bool:
    """Whether a reserved field is set."""
    operation = each.code & 0xF0
    match each.code & 7:
        case Class.ALU | Class.ALU64:
            if each.off:
                raise NotModelled("arithmetic with an offset, which later releases know")
            if operation == Alu.END:
                return bool(each.src) or each.imm not in (16, 32, 64)
            if operation == Alu.NEG:
                return bool(each.src or each.imm)
            return bool(each.imm if each.code & X else each.src)
        case Class.JMP if operation == Jump.EXIT:
            return bool(each.dst or each.src or each.off or each.imm)
        case Class.JMP if operation == Jump.JA:
            return bool(each.dst or each.src or each.imm)
        case Class.JMP if operation == Jump.CALL:
            return bool(each.dst or each.off)
        case Class.JMP:
            return bool(each.imm if each.code & X else each.src)
        case Class.LDX:
            return bool(each.imm)
        case Class.ST:
            return bool(each.src)
        case Class.STX:
            if each.code & 0xE0 == XADD and each.imm:
                raise NotModelled("an atomic operation that later releases know")
            return bool(each.imm)
    return False


def _check_reached(program: Sequence[Instruction]) -> None:
    """check_cfg().  A call of a function of the program reaches it."""
    if any(each.code == CALL and each.src for each in program):
        raise NotModelled("a call other than of a helper")
    beginnings = set(instructions(program))
    reached: set[int] = set()
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number in reached:
            continue
        reached.add(number)
        if number not in beginnings:
            raise Refused("EINVAL", f"jump into the middle of ldimm64 insn {number}")
        waiting += targets(number, program[number])
    for number in beginnings - reached:
        raise Refused("EINVAL", f"unreachable insn {number}")


def check_constant(each: Instruction) -> None:
    """Refuse constants that are invalid for an operation."""
    operation = each.code & 0xF0
    if each.code & X:
        return
    if operation in (Alu.DIV, Alu.MOD) and each.imm == 0:
        raise Refused("EINVAL", "div by zero")
    bits = 64 if each.code & 7 == Class.ALU64 else 32
    if operation in _SHIFTS and not 0 <= each.imm < bits:
        raise Refused("EINVAL", f"invalid shift {each.imm}")

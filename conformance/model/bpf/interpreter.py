"""Interpreter of verified eBPF programs.

Numbers are unsigned, 64 bits.  Source: kernel/bpf/core.c:___bpf_prog_run; kernel/bpf/helpers.c.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from conformance.abi.bpf import BPF_EXIST, PSEUDO_MAP_FD, Helper
from conformance.model.bpf.arithmetic import arithmetic, compare, signed, swap
from conformance.model.bpf.maps import Map
from conformance.model.errors import Errno, NotModelled
from conformance.ops.bpf_assembler import Instruction
from conformance.ops.bpf_opcodes import (
    IMM,
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R10,
    XADD,
    Alu,
    Class,
    Jump,
    Size,
    X,
)

_U64 = (1 << 64) - 1
_U32 = (1 << 32) - 1
STACK_SIZE = 512
# include/uapi/linux/bpf.h
_BPF_F_LOCK = 4
_MAX_STEPS = 1 << 16


@dataclass(slots=True, eq=False)
class Region:
    """Memory that a program can access: the stack, the context or a map value.

    ``known`` are the initialized bytes, None for all.  ``spilled`` are pointers by offset.
    """

    content: bytearray
    known: set[int] | None = None
    spilled: dict[int, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address in a region."""

    region: Region
    offset: int


Value = int | Pointer | Map
ReadMemory = Callable[[int, int], bytes]


@dataclass(slots=True)
class Machine:
    """One run of a program; ``maps`` are by instruction.

    ``read_memory`` reads kernel memory for probe_read: address and length.  It raises
    Errno("EFAULT").
    """

    program: list[Instruction]
    maps: Mapping[int, Map]
    context: Region
    read_memory: ReadMemory | None = None
    registers: dict[int, Value] = field(default_factory=dict)
    counter: int = 0

    def run(self) -> int:
        """The return value, R0.  Raises NotModelled for undefined content."""
        stack = Region(bytearray(STACK_SIZE), known=set())
        self.registers = {R1: Pointer(self.context, 0), R10: Pointer(stack, STACK_SIZE)}
        for _ in range(_MAX_STEPS):
            instruction = self.program[self.counter]
            self.counter += 1
            if instruction.code == Class.JMP | Jump.EXIT:
                return self.number(R0)
            self._step(instruction)
        raise NotModelled("a program with too many steps")

    def _step(self, each: Instruction) -> None:
        match each.code & 0x07:
            case Class.ALU | Class.ALU64:
                self._arithmetic(each)
            case Class.JMP:
                self._jump(each)
            case Class.LDX:
                self.registers[each.dst] = self._load(self.pointer(each.src, each.off), each)
            case Class.ST:
                self._store(self.pointer(each.dst, each.off), each, each.imm & _U64)
            case Class.STX:
                self._store_register(each)
            case Class.LD if each.code == Class.LD | Size.DW | IMM:
                self._load_wide(each)
            case _:
                raise NotModelled(f"instruction {each.code:#04x}")

    def pointer(self, register: int, offset: int = 0) -> Pointer:
        """The address in a register plus an offset."""
        value = self.registers[register]
        if not isinstance(value, Pointer):
            raise NotModelled(f"R{register} is not a pointer")
        return Pointer(value.region, value.offset + offset)

    # Arithmetic

    def _arithmetic(self, each: Instruction) -> None:
        operation = each.code & 0xF0
        wide = each.code & 0x07 == Class.ALU64
        operand: Value = each.imm & _U64
        if each.code & X and operation != Alu.END:
            operand = self.registers[each.src]
        if operation == Alu.MOV and wide:
            self.registers[each.dst] = operand
            return
        target = self.registers.get(each.dst, 0)
        if isinstance(target, Pointer) and wide and isinstance(operand, int):
            self.registers[each.dst] = _moved(target, operation, operand)
            return
        if not isinstance(target, int) or not isinstance(operand, int):
            raise NotModelled("a pointer as a number")
        if operation == Alu.END:
            self.registers[each.dst] = swap(target, each.imm, big=bool(each.code & X))
        else:
            self.registers[each.dst] = arithmetic(operation, target, operand, 64 if wide else 32)

    # Memory

    def _load(self, where: Pointer, each: Instruction) -> Value:
        size = Size(each.code & 0x18).bytes
        if where.offset in where.region.spilled and size == 8:
            return where.region.spilled[where.offset]
        return int.from_bytes(self.read(where, size), "little")

    def read(self, where: Pointer, size: int) -> bytes:
        """Bytes of a region.  Raises NotModelled for uninitialized ones."""
        places = range(where.offset, where.offset + size)
        region = where.region
        if region.known is not None and not region.known.issuperset(places):
            raise NotModelled("uninitialized stack")
        return bytes(region.content[where.offset : where.offset + size])

    def write(self, where: Pointer, data: bytes) -> None:
        """Store bytes in a region."""
        region = where.region
        region.content[where.offset : where.offset + len(data)] = data
        if region.known is not None:
            region.known.update(range(where.offset, where.offset + len(data)))
        for offset in [each for each in region.spilled if -8 < each - where.offset < len(data)]:
            del region.spilled[offset]

    def _store(self, where: Pointer, each: Instruction, value: int) -> None:
        size = Size(each.code & 0x18).bytes
        self.write(where, (value & (1 << 8 * size) - 1).to_bytes(size, "little"))

    def _store_register(self, each: Instruction) -> None:
        where = self.pointer(each.dst, each.off)
        value = self.registers[each.src]
        if each.code & 0xE0 == XADD:
            old = int.from_bytes(self.read(where, Size(each.code & 0x18).bytes), "little")
            self._store(where, each, old + self.number(each.src))
        elif isinstance(value, int):
            self._store(where, each, value)
        elif where.region.known is not None:
            self.write(where, bytes(8))
            where.region.spilled[where.offset] = value
        else:
            raise NotModelled("a pointer stored outside of the stack")

    def _load_wide(self, each: Instruction) -> None:
        if each.src == PSEUDO_MAP_FD:
            self.registers[each.dst] = self.maps[self.counter - 1]
        else:
            high = self.program[self.counter].imm & _U32
            self.registers[each.dst] = high << 32 | each.imm & _U32
        self.counter += 1

    # Jumps and calls

    def _jump(self, each: Instruction) -> None:
        operation = each.code & 0xF0
        if operation == Jump.CALL:
            self._call(Helper(each.imm))
        elif operation == Jump.JA or self._holds(each):
            self.counter += each.off

    def _holds(self, each: Instruction) -> bool:
        left = self.registers[each.dst]
        right = self.registers[each.src] if each.code & X else each.imm & _U64
        if isinstance(left, int) and isinstance(right, int):
            return compare(each.code & 0xF0, left, right)
        if right == 0 and each.code & 0xF0 in (Jump.JEQ, Jump.JNE):
            # No pointer is 0.
            return each.code & 0xF0 == Jump.JNE
        raise NotModelled("a comparison of a pointer with a number")

    def _call(self, helper: Helper) -> None:
        try:
            answer = _HELPERS[helper](self)
        except Errno as failure:
            answer = -getattr(errno, failure.name) & _U64
        for register in (R1, R2, R3, R4, R5):
            self.registers.pop(register, None)
        self.registers[R0] = answer

    # Arguments of helpers

    def map(self) -> Map:
        """R1 as a map."""
        value = self.registers[R1]
        if not isinstance(value, Map):
            raise NotModelled("a map helper without a map")
        return value

    def key(self) -> bytes:
        """R2 as a key."""
        return self.read(self.pointer(R2), self.map().key_size)

    def number(self, register: int) -> int:
        """A register as a number."""
        value = self.registers[register]
        if not isinstance(value, int):
            raise NotModelled("a pointer as a number")
        return value


def _moved(pointer: Pointer, operation: int, number: int) -> Pointer:
    signed_number = signed(number, 64)
    if operation == Alu.ADD:
        return Pointer(pointer.region, pointer.offset + signed_number)
    if operation == Alu.SUB:
        return Pointer(pointer.region, pointer.offset - signed_number)
    raise NotModelled("pointer arithmetic")


def _map_lookup_elem(machine: Machine) -> Value:
    value = machine.map().lookup(machine.key())
    return 0 if value is None else Pointer(Region(value), 0)


def _map_update_elem(machine: Machine) -> Value:
    if machine.number(R4) & ~_BPF_F_LOCK <= BPF_EXIST < machine.number(R4):
        raise NotModelled("BPF_F_LOCK of an update, which later releases know")
    value = machine.read(machine.pointer(R3), machine.map().value_size)
    machine.map().update(machine.key(), value, machine.number(R4))
    return 0


def _map_delete_elem(machine: Machine) -> Value:
    machine.map().delete(machine.key())
    return 0


def _probe_read(machine: Machine) -> Value:
    target, size = machine.pointer(R1), machine.number(R2)
    if machine.read_memory is None:
        raise NotModelled("kernel memory")
    source = machine.registers[R3]
    try:
        if isinstance(source, Pointer):
            data = machine.read(source, size)
        else:
            data = machine.read_memory(machine.number(R3), size)
    except Errno:
        # copy_from_kernel_nofault() failed: the destination is cleared.
        machine.write(target, bytes(size))
        raise
    machine.write(target, data)
    return 0


_HELPERS: dict[Helper, Callable[[Machine], Value]] = {
    Helper.MAP_LOOKUP_ELEM: _map_lookup_elem,
    Helper.MAP_UPDATE_ELEM: _map_update_elem,
    Helper.MAP_DELETE_ELEM: _map_delete_elem,
    Helper.PROBE_READ: _probe_read,
}

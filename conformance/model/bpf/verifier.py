"""A small verifier: follows every path of a program with what is known of its registers.

Source: kernel/bpf/verifier.c:do_check.  It knows less than the kernel's: what depends on
the range of an unknown number raises NotModelled.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformance.abi.bpf import PSEUDO_MAP_FD, ProgramType
from conformance.model.bpf import helpers, structure
from conformance.model.bpf.access import Access, check_access
from conformance.model.bpf.arithmetic import arithmetic, compare, signed, swap
from conformance.model.bpf.maps import Map
from conformance.model.bpf.registers import Address, Kind, Register, Scalar, State
from conformance.model.bpf.structure import CALL, EXIT, JA, LD_IMM64, FindMap, Refused
from conformance.model.errors import NotModelled
from conformance.ops.bpf_assembler import R0, XADD, Alu, Class, Instruction, Jump, Size, X

_U64 = (1 << 64) - 1
_MOST_STEPS = 1 << 14


@dataclass(frozen=True, slots=True)
class Question:
    """A program, and what else decides about it.

    ``context_ends`` takes where each access to the context ends.
    """

    kind: ProgramType
    program: Sequence[Instruction]
    gpl: bool
    strict: bool
    context_ends: list[int] = field(default_factory=list)


def check(question: Question, find_map: FindMap, said: list[str]) -> Mapping[int, Map]:
    """The maps of a good program; ``said`` takes what the log says.  Raises Errno."""
    try:
        maps = structure.check(question.program, find_map)
        _Walk(question, maps).run()
    except Refused as refused:
        said.append(refused.why)
        raise
    said += [f"{number}: ({each.code:02x})" for number, each in enumerate(question.program)]
    said.append(f"processed {len(question.program)} insns")
    return maps


@dataclass(slots=True)
class _Path:
    """A state, and the states that led to it."""

    state: State
    passed: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class _Walk:
    """All paths of one program."""

    question: Question
    maps: Mapping[int, Map]
    waiting: list[_Path] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)
    lookups: int = 0

    def run(self) -> None:
        """Follow them.  Raises Refused, NotModelled."""
        self.waiting.append(_Path(State.at_entry()))
        for _ in range(_MOST_STEPS):
            if not self.waiting:
                return
            path = self.waiting.pop()
            key = path.state.key
            if key in path.passed:
                raise Refused("EINVAL", f"infinite loop detected at insn {path.state.place}")
            if key in self.seen:
                continue
            self.seen.add(key)
            passed = path.passed | {key}
            self.waiting += [_Path(state, passed) for state in self._after(path.state)]
        raise NotModelled("a program with many paths")

    def _after(self, state: State) -> list[State]:
        """What one instruction makes of a state: none at the end, two where it branches."""
        each = self.question.program[state.place]
        state = state.copy(state.place)
        if each.code == EXIT:
            if isinstance(state.read(R0), Address):
                raise NotModelled("a program that answers with an address")
            return []
        if structure.is_conditional(each):
            return self._branch(state, each)
        if each.code == CALL:
            self.lookups += 1
            helpers.check(self._access(state), each.imm, self.question.gpl, self.lookups)
        elif each.code != JA:
            self._step(state, each)
        (state.place,) = structure.targets(state.place, each)
        return [state]

    def _access(self, state: State) -> Access:
        question = self.question
        return Access(state, question.kind, question.strict, question.context_ends)

    def _step(self, state: State, each: Instruction) -> None:
        match each.code & 7:
            case Class.ALU | Class.ALU64:
                self._arithmetic(state, each)
            case Class.LD if each.code == LD_IMM64:
                state.check_writable(each.dst)
                state.registers[each.dst] = self._wide(state.place, each)
            case Class.LDX:
                state.read(each.src)
                state.check_writable(each.dst)
                state.registers[each.dst] = self._load(state, each)
            case Class.STX | Class.ST:
                self._store(state, each)

    def _wide(self, place: int, each: Instruction) -> Register:
        if each.src == PSEUDO_MAP_FD:
            return Address(Kind.MAP, map=self.maps[place])
        high = self.question.program[place + 1].imm & 0xFFFFFFFF
        return Scalar(high << 32 | each.imm & 0xFFFFFFFF)

    def _load(self, state: State, each: Instruction) -> Register:
        return check_access(self._access(state), each.src, each.off, Size(each.code & 0x18).bytes)

    def _store(self, state: State, each: Instruction) -> None:
        size = Size(each.code & 0x18).bytes
        access = self._access(state)
        if each.code & 7 == Class.ST:
            if _kind(state.read(each.dst)) is Kind.CONTEXT:
                raise Refused("EACCES", f"BPF_ST stores into R{each.dst} ctx is not allowed")
            check_access(access, each.dst, each.off, size, Scalar(each.imm & _U64))
            return
        value = state.read(each.src)
        if each.code & 0xE0 == XADD:
            if _kind(state.read(each.dst)) is Kind.CONTEXT:
                raise Refused("EACCES", f"BPF_ATOMIC stores into R{each.dst} ctx is not allowed")
            access = replace(access, strict=True)
            check_access(access, each.dst, each.off, size)
            value = Scalar()
        else:
            state.read(each.dst)
        check_access(access, each.dst, each.off, size, value)

    # Arithmetic

    def _arithmetic(self, state: State, each: Instruction) -> None:
        operation, wide = each.code & 0xF0, each.code & 7 == Class.ALU64
        operand: Register = Scalar(each.imm & _U64)
        if each.code & X and operation != Alu.END:
            operand = state.read(each.src)
        if operation == Alu.MOV:
            state.check_writable(each.dst)
            whole = wide or isinstance(operand, Address)
            state.registers[each.dst] = operand if whole else _low(operand)
            if not wide and isinstance(operand, Address):
                state.registers[each.dst] = Scalar()
            return
        target = state.read(each.dst)
        structure.check_constant(each)
        state.check_writable(each.dst)
        if isinstance(target, Address) or isinstance(operand, Address):
            state.registers[each.dst] = _with_address(target, operand, each)
        elif target.value is None or operand.value is None:
            state.registers[each.dst] = Scalar()
        elif operation == Alu.END:
            state.registers[each.dst] = Scalar(
                swap(target.value, each.imm, big=bool(each.code & X))
            )
        else:
            bits = 64 if wide else 32
            number = arithmetic(operation, target.value, operand.value, bits)
            state.registers[each.dst] = Scalar(number)

    # Branches

    def _branch(self, state: State, each: Instruction) -> list[State]:
        operation = each.code & 0xF0
        right: Register = Scalar(each.imm & _U64)
        if each.code & X:
            right = state.read(each.src)
        left = state.read(each.dst)
        taken = _decided(operation, left, right)
        ways = []
        for jumps, place in ((False, state.place + 1), (True, state.place + 1 + each.off)):
            if taken is None or taken == jumps:
                way = state.copy(place)
                if operation in (Jump.JEQ, Jump.JNE):
                    _learn(way, each.dst, right, equal=jumps == (operation == Jump.JEQ))
                ways.append(way)
        return ways


def _kind(register: Register) -> Kind | None:
    return register.kind if isinstance(register, Address) else None


def _low(operand: Register) -> Register:
    if isinstance(operand, Scalar) and operand.value is not None:
        return Scalar(operand.value & 0xFFFFFFFF)
    return Scalar()


def _with_address(target: Register, operand: Register, each: Instruction) -> Register:
    """adjust_ptr_min_max_vals(), for who may see addresses."""
    operation, wide = each.code & 0xF0, each.code & 7 == Class.ALU64
    if operation in (Alu.NEG, Alu.END):
        return Scalar()
    if isinstance(target, Address) and isinstance(operand, Address):
        if operation != Alu.SUB:
            raise Refused("EACCES", f"R{each.dst} pointer operation with pointer prohibited")
        return Scalar()
    if not wide:
        if operation == Alu.SUB:
            return Scalar()
        raise Refused("EACCES", f"R{each.dst} 32-bit pointer arithmetic prohibited")
    address, number = (target, operand) if isinstance(target, Address) else (operand, target)
    assert isinstance(address, Address)
    assert isinstance(number, Scalar)
    if address.kind in (Kind.VALUE_OR_NULL, Kind.MAP):
        raise Refused("EACCES", f"R{each.dst} pointer arithmetic on {address.kind} prohibited")
    if operation == Alu.SUB and address is operand:
        raise Refused("EACCES", f"R{each.dst} tried to subtract pointer from scalar")
    if operation == Alu.SUB and address.kind is Kind.STACK:
        raise Refused("EACCES", f"R{each.dst} subtraction from stack pointer prohibited")
    if operation not in (Alu.ADD, Alu.SUB):
        raise Refused("EACCES", f"R{each.dst} pointer arithmetic with this operator prohibited")
    if number.value is None:
        raise NotModelled("an address and an unknown number")
    distance = signed(number.value, 64)
    if not -(1 << 29) < distance < 1 << 29:
        raise NotModelled("an address far away")
    return replace(
        address, offset=address.offset + (distance if operation == Alu.ADD else -distance)
    )


def _decided(operation: int, left: Register, right: Register) -> bool | None:
    """Whether a branch is taken, if that is known."""
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if left.value is None or right.value is None:
            return None
        return compare(operation, left.value, right.value)
    if right == Scalar(0) and operation in (Jump.JEQ, Jump.JNE):
        return None if _kind(left) is Kind.VALUE_OR_NULL else operation == Jump.JNE
    return None


def _learn(state: State, register: int, right: Register, *, equal: bool) -> None:
    left = state.registers[register]
    if isinstance(left, Address):
        if left.kind is Kind.VALUE_OR_NULL and right == Scalar(0):
            state.learn(left.id, null=equal)
    elif equal and left.value is None and isinstance(right, Scalar):
        state.registers[register] = right

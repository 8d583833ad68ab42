"""A small verifier that follows every path of a program.

What depends on the range of an unknown number raises NotModelled. Source:
kernel/bpf/verifier.c:do_check.
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
from conformance.ops.bpf_assembler import Instruction
from conformance.ops.bpf_opcodes import R0, XADD, Alu, Class, Jump, Size, X

_U64 = (1 << 64) - 1
_MAX_STEPS = 1 << 14


@dataclass(frozen=True, slots=True)
class Submission:
    """A program, and the properties that the verdict depends on.

    The end of each context access is appended to ``context_ends``.
    """

    kind: ProgramType
    program: Sequence[Instruction]
    gpl: bool
    strict: bool
    context_ends: list[int] = field(default_factory=list)


def check(submission: Submission, find_map: FindMap, log: list[str]) -> Mapping[int, Map]:
    """Verify a program and return its maps; ``log`` collects the log.  Raises Errno."""
    try:
        maps = structure.check(submission.program, find_map)
        _Verifier(submission, maps).run()
    except Refused as refused:
        log.append(refused.why)
        raise
    log += [f"{number}: ({each.code:02x})" for number, each in enumerate(submission.program)]
    log.append(f"processed {len(submission.program)} insns")
    return maps


@dataclass(slots=True)
class _Path:
    """A state and the states that led to it."""

    state: State
    passed: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class _Verifier:
    """All paths through one program."""

    submission: Submission
    maps: Mapping[int, Map]
    waiting: list[_Path] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)
    lookups: int = 0

    def run(self) -> None:
        """Follow all paths.  Raises Refused, NotModelled."""
        self.waiting.append(_Path(State.at_entry()))
        for _ in range(_MAX_STEPS):
            if not self.waiting:
                return
            path = self.waiting.pop()
            key = path.state.key
            if key in path.passed:
                raise Refused("EINVAL", f"infinite loop detected at insn {path.state.insn_idx}")
            if key in self.seen:
                continue
            self.seen.add(key)
            passed = path.passed | {key}
            self.waiting += [_Path(state, passed) for state in self._after(path.state)]
        raise NotModelled("a program with too many paths")

    def _after(self, state: State) -> list[State]:
        """The states after one instruction: none at exit, two at a branch."""
        each = self.submission.program[state.insn_idx]
        state = state.copy(state.insn_idx)
        if each.code == EXIT:
            if isinstance(state.read(R0), Address):
                raise NotModelled("a program that returns a pointer")
            return []
        if structure.is_conditional(each):
            return self._branch(state, each)
        if each.code == CALL:
            self.lookups += 1
            helpers.check(self._access(state), each.imm, self.submission.gpl, self.lookups)
        elif each.code != JA:
            self._step(state, each)
        (state.insn_idx,) = structure.targets(state.insn_idx, each)
        return [state]

    def _access(self, state: State) -> Access:
        submission = self.submission
        return Access(state, submission.kind, submission.strict, submission.context_ends)

    def _step(self, state: State, each: Instruction) -> None:
        match each.code & 7:
            case Class.ALU | Class.ALU64:
                self._arithmetic(state, each)
            case Class.LD if each.code == LD_IMM64:
                state.check_writable(each.dst)
                state.registers[each.dst] = self._wide(state.insn_idx, each)
            case Class.LDX:
                state.read(each.src)
                state.check_writable(each.dst)
                state.registers[each.dst] = self._load(state, each)
            case Class.STX | Class.ST:
                self._store(state, each)

    def _wide(self, insn_idx: int, each: Instruction) -> Register:
        if each.src == PSEUDO_MAP_FD:
            return Address(Kind.MAP, map=self.maps[insn_idx])
        high = self.submission.program[insn_idx + 1].imm & 0xFFFFFFFF
        return Scalar(high << 32 | each.imm & 0xFFFFFFFF)

    def _load(self, state: State, each: Instruction) -> Register:
        return check_access(self._access(state), each.src, each.off, Size(each.code & 0x18).bytes)

    def _store(self, state: State, each: Instruction) -> None:
        size = Size(each.code & 0x18).bytes
        access = self._access(state)
        if each.code & 7 == Class.ST:
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
            state.registers[each.dst] = operand if wide else _low(operand)
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
        if isinstance(left, Address) and each.code & X:
            raise NotModelled("a pointer compared with a register")
        taken = _decided(operation, left, right)
        ways = []
        for jumps, insn_idx in ((False, state.insn_idx + 1), (True, state.insn_idx + 1 + each.off)):
            if taken is None or taken == jumps:
                way = state.copy(insn_idx)
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
    """adjust_ptr_min_max_vals(), with CAP_PERFMON."""
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
    if address.kind is Kind.MAP and operation == Alu.ADD and number.value == 0:
        return address
    if address.kind in (Kind.VALUE_OR_NULL, Kind.MAP):
        raise Refused("EACCES", f"R{each.dst} pointer arithmetic on {address.kind} prohibited")
    if operation == Alu.SUB and address is operand:
        raise Refused("EACCES", f"R{each.dst} tried to subtract pointer from scalar")
    if operation == Alu.SUB and address.kind is Kind.STACK:
        raise Refused("EACCES", f"R{each.dst} subtraction from stack pointer prohibited")
    if operation not in (Alu.ADD, Alu.SUB):
        raise Refused("EACCES", f"R{each.dst} pointer arithmetic with this operator prohibited")
    if number.value is None:
        raise NotModelled("pointer arithmetic with an unknown number")
    distance = signed(number.value, 64)
    if not -(1 << 29) < distance < 1 << 29:
        raise NotModelled("pointer arithmetic with a large number")
    return replace(
        address, offset=address.offset + (distance if operation == Alu.ADD else -distance)
    )


def _decided(operation: int, left: Register, right: Register) -> bool | None:
    """Whether a branch is taken, None if unknown."""
    if isinstance(left, Scalar) and isinstance(right, Scalar):
        if left.value is None or right.value is None:
            return None
        return compare(operation, left.value, right.value)
    if right == Scalar(0) and operation in (Jump.JEQ, Jump.JNE):
        if _kind(left) is Kind.MAP:
            raise NotModelled("a map compared with NULL")
        # reg_not_null()
        return operation == Jump.JNE if _kind(left) is Kind.VALUE else None
    return None


def _learn(state: State, register: int, right: Register, *, equal: bool) -> None:
    left = state.registers[register]
    if isinstance(left, Address):
        if left.kind is Kind.VALUE_OR_NULL and right == Scalar(0):
            state.learn(left.id, null=equal)
    elif equal and left.value is None and isinstance(right, Scalar):
        state.registers[register] = right

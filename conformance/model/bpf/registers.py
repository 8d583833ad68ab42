"""The state of registers and stack at one instruction.

Source: kernel/bpf/verifier.c, struct bpf_verifier_state.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from conformance.model.bpf.interpreter import STACK_SIZE
from conformance.model.bpf.maps import Map
from conformance.model.bpf.structure import Refused
from conformance.ops.bpf_opcodes import R1, R10


class Kind(StrEnum):
    """Pointer types, in the verifier's words."""

    CONTEXT = "ctx"
    STACK = "fp"
    MAP = "map_ptr"
    VALUE = "map_value"
    VALUE_OR_NULL = "map_value_or_null"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; ``value`` is None if unknown."""

    value: int | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer at ``offset`` bytes into its object; ``id`` distinguishes lookups."""

    kind: Kind
    offset: int = 0
    map: Map | None = None
    id: int = 0


Register = Scalar | Address


@dataclass(slots=True)
class State:
    """A verifier state; ``written`` are the initialized stack bytes, by negative offset."""

    insn_idx: int = 0
    registers: dict[int, Register] = field(default_factory=dict)
    written: frozenset[int] = frozenset()
    spilled: dict[int, Register] = field(default_factory=dict)

    @classmethod
    def at_entry(cls) -> State:
        """R1 is the context, R10 the stack."""
        return cls(registers={R1: Address(Kind.CONTEXT), R10: Address(Kind.STACK)})

    def copy(self, insn_idx: int) -> State:
        """A copy at another instruction."""
        return State(insn_idx, dict(self.registers), self.written, dict(self.spilled))

    @property
    def key(self) -> Hashable:
        """Equal for equal states."""
        registers = tuple(sorted(self.registers.items(), key=lambda pair: pair[0]))
        spilled = tuple(sorted(self.spilled.items(), key=lambda pair: pair[0]))
        return self.insn_idx, registers, self.written, spilled

    def read(self, register: int) -> Register:
        """A register as a source operand."""
        _check_number(register)
        if register not in self.registers:
            raise Refused("EACCES", f"R{register} !read_ok")
        return self.registers[register]

    def check_writable(self, register: int) -> None:
        """Check a destination register."""
        _check_number(register)
        if register == R10:
            raise Refused("EACCES", "frame pointer is read only")

    def learn(self, id: int, *, null: bool) -> None:
        """A lookup result was compared with 0: update all copies of it."""
        for held in (self.registers, self.spilled):
            for insn_idx, each in held.items():
                if isinstance(each, Address) and each.id == id and each.kind is Kind.VALUE_OR_NULL:
                    held[insn_idx] = Scalar(0) if null else replace(each, kind=Kind.VALUE, id=0)

    # Stack

    def check_stack(self, offset: int, size: int, what: str) -> None:
        """Check that bytes lie in the stack."""
        if not -STACK_SIZE <= offset <= -size:
            raise Refused("EACCES", f"invalid {what} stack R10 off={offset} size={size}")

    def unwritten(self, offset: int, size: int) -> bool:
        """Whether any of the bytes is uninitialized."""
        return not self.written.issuperset(range(offset, offset + size))

    def write_stack(self, offset: int, size: int, value: Register | None) -> None:
        """Write stack bytes; 8 bytes keep the register that was stored."""
        self.written |= frozenset(range(offset, offset + size))
        for insn_idx in [each for each in self.spilled if -8 < each - offset < size]:
            del self.spilled[insn_idx]
        if size == 8 and value is not None:
            self.spilled[offset] = value

    def read_stack(self, offset: int, size: int) -> Register:
        """The register that was stored, or an unknown number."""
        if size == 8 and offset in self.spilled:
            return self.spilled[offset]
        return Scalar()


def _check_number(register: int) -> None:
    if register > R10:
        raise Refused("EINVAL", f"R{register} is invalid")

"""What the verifier knows about registers and stack at one place of a program.

Source: kernel/bpf/verifier.c, struct bpf_verifier_state.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from conformance.model.bpf.interpreter import STACK_SIZE
from conformance.model.bpf.maps import Map
from conformance.model.bpf.structure import Refused
from conformance.ops.bpf_assembler import R1, R10


class Kind(StrEnum):
    """What a register holds that is no number; the words are the verifier's."""

    CONTEXT = "ctx"
    STACK = "fp"
    MAP = "map_ptr"
    VALUE = "map_value"
    VALUE_OR_NULL = "map_value_or_null"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number; ``value`` None is an unknown one."""

    value: int | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """An address: ``offset`` bytes into what it is.  ``id`` tells answers of lookups apart."""

    kind: Kind
    offset: int = 0
    map: Map | None = None
    id: int = 0


Register = Scalar | Address


@dataclass(slots=True)
class State:
    """One state.  ``written`` has the bytes of the stack, by negative offset."""

    place: int = 0
    registers: dict[int, Register] = field(default_factory=dict)
    written: frozenset[int] = frozenset()
    spilled: dict[int, Register] = field(default_factory=dict)

    @classmethod
    def at_entry(cls) -> State:
        """A program begins with its context and its stack."""
        return cls(registers={R1: Address(Kind.CONTEXT), R10: Address(Kind.STACK)})

    def copy(self, place: int) -> State:
        """The same at another place."""
        return State(place, dict(self.registers), self.written, dict(self.spilled))

    @property
    def key(self) -> Hashable:
        """What makes two states equal."""
        registers = tuple(sorted(self.registers.items(), key=lambda pair: pair[0]))
        spilled = tuple(sorted(self.spilled.items(), key=lambda pair: pair[0]))
        return self.place, registers, self.written, spilled

    def read(self, register: int) -> Register:
        """A register that is used."""
        _check_number(register)
        if register not in self.registers:
            raise Refused("EACCES", f"R{register} !read_ok")
        return self.registers[register]

    def check_writable(self, register: int) -> None:
        """A register that is going to be set."""
        _check_number(register)
        if register == R10:
            raise Refused("EACCES", "frame pointer is read only")

    def learn(self, id: int, *, null: bool) -> None:
        """The answer of a lookup was compared with zero: all copies of it are known."""
        for held in (self.registers, self.spilled):
            for place, each in held.items():
                if isinstance(each, Address) and each.id == id and each.kind is Kind.VALUE_OR_NULL:
                    held[place] = Scalar(0) if null else replace(each, kind=Kind.VALUE, id=0)

    # Stack

    def check_stack(self, offset: int, size: int, what: str) -> None:
        """Whether bytes are in the stack."""
        if not -STACK_SIZE <= offset <= -size:
            raise Refused("EACCES", f"invalid {what} stack R10 off={offset} size={size}")

    def unwritten(self, offset: int, size: int) -> bool:
        """Whether some of these bytes have not been written."""
        return not self.written.issuperset(range(offset, offset + size))

    def write_stack(self, offset: int, size: int, value: Register | None) -> None:
        """Bytes of the stack are written; an address stays known."""
        self.written |= frozenset(range(offset, offset + size))
        for place in [each for each in self.spilled if -8 < each - offset < size]:
            del self.spilled[place]
        if size == 8 and value is not None:
            self.spilled[offset] = value

    def read_stack(self, offset: int, size: int) -> Register:
        """What was stored there as a whole, or any number."""
        if size == 8 and offset in self.spilled:
            return self.spilled[offset]
        return Scalar()


def _check_number(register: int) -> None:
    if register > R10:
        raise Refused("EINVAL", f"R{register} is invalid")

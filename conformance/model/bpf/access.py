"""Which memory a program may read and write.

Source: kernel/bpf/verifier.c:check_mem_access, check_ptr_alignment, check_ctx_access.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.abi.bpf import ProgramType
from conformance.model.bpf.registers import Address, Kind, Register, Scalar, State
from conformance.model.bpf.structure import Refused
from conformance.model.errors import NotModelled

# struct pt_regs of x86-64, the context of a program on a kprobe.
PT_REGS_SIZE = 168
# What a program for tracepoints may load: nothing of the pointer that the kernel's own have
# first, and no more than perf has room for.
_TRACEPOINT_CONTEXT = range(8, 8192)
# What of struct __sk_buff every release has: its first member, the length.
_SK_BUFF_LEN = (0, 4)
# Nothing of struct __sk_buff lies from here on in any release.
_SK_BUFF_END = 4096


@dataclass(frozen=True, slots=True)
class Access:
    """From where memory is accessed.  ``strict``: addresses must be aligned everywhere.

    ``context_ends`` takes where each access to the context ends.
    """

    state: State
    kind: ProgramType
    strict: bool
    context_ends: list[int] = field(default_factory=list)


def check_access(
    access: Access, register: int, offset: int, size: int, stored: Register | None = None
) -> Register:
    """A load, and what it gives; with ``stored`` a store.  Raises Refused, NotModelled."""
    address = access.state.read(register)
    if isinstance(address, Scalar):
        raise Refused("EACCES", f"R{register} invalid mem access 'scalar'")
    offset += address.offset
    if (access.strict or address.kind is Kind.STACK) and offset % size:
        raise Refused("EACCES", f"misaligned access off {offset} size {size}")
    match address.kind:
        case Kind.STACK:
            return _stack(access, offset, size, stored)
        case Kind.VALUE:
            check_value(address, offset - address.offset, size)
            return Scalar()
        case Kind.CONTEXT:
            return _context(access, address, offset, size, stored)
        case Kind.VALUE_OR_NULL:
            raise Refused("EACCES", f"R{register} invalid mem access '{address.kind}'")
    raise NotModelled("memory of a map itself")


def _stack(access: Access, offset: int, size: int, stored: Register | None) -> Register:
    state = access.state
    if stored is None:
        state.check_stack(offset, size, "read from")
        check_written(state, offset, size)
        held = [each for each in state.spilled if -8 < each - offset < size]
        whole = size == 8 and held == [offset]
        if not whole and any(isinstance(state.spilled[each], Address) for each in held):
            raise NotModelled("a part of an address on the stack")
        return state.read_stack(offset, size)
    state.check_stack(offset, size, "write to")
    if isinstance(stored, Address) and size != 8:
        raise Refused("EACCES", "invalid size of register spill")
    state.write_stack(offset, size, stored)
    return Scalar()


def check_written(state: State, offset: int, size: int) -> None:
    """Bytes of the stack that are read should have been written.

    Since 6.3 they need not ("bpf: Allow reads from uninit stack"), nor in some stable kernels
    before it, and nobody knows what they are then.
    """
    if state.unwritten(offset, size):
        raise NotModelled("a read of what the stack holds before it is written")


def check_value(address: Address, offset: int, size: int) -> None:
    """Bytes of a map's value."""
    assert address.map is not None
    start = address.offset + offset
    if start < 0 or start + size > address.map.value_size:
        told = f"value_size={address.map.value_size} off={start} size={size}"
        raise Refused("EACCES", f"invalid access to map value, {told}")


def _context(
    access: Access, address: Address, offset: int, size: int, stored: Register | None
) -> Register:
    if address.offset:
        raise NotModelled("an address inside of the context")
    if access.kind is ProgramType.KPROBE:
        good = offset >= 0 and offset % size == 0 and offset + size <= PT_REGS_SIZE
        if good and stored is not None:
            raise NotModelled("a store into the registers, which later releases allow")
    elif access.kind is ProgramType.TRACEPOINT:
        good = offset in _TRACEPOINT_CONTEXT and offset % size == 0 and stored is None
    else:
        good = (offset, size) == _SK_BUFF_LEN and stored is None
        if not good and 0 < offset < _SK_BUFF_END:
            raise NotModelled("members of struct __sk_buff that came later")
        if (offset, size) in ((0, 1), (0, 2)) and stored is None:
            raise NotModelled("a part of a member of struct __sk_buff")
    if not good:
        raise Refused("EACCES", f"invalid bpf_context access off={offset} size={size}")
    access.context_ends.append(offset + size)
    return Scalar()

"""Memory accesses that the verifier allows.

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
# A tracepoint program loads neither the pointer at the start of kernel contexts nor more than perf
# copies.
_TRACEPOINT_CONTEXT = range(8, 8192)
# struct __sk_buff::len, the member that every release has.
_SK_BUFF_LEN = (0, 4)
# No release has members of struct __sk_buff from here on.
_SK_BUFF_END = 4096


@dataclass(frozen=True, slots=True)
class Access:
    """The state and program of an access; ``strict`` requires alignment everywhere.

    The end of each context access is appended to ``context_ends``.
    """

    state: State
    kind: ProgramType
    strict: bool
    context_ends: list[int] = field(default_factory=list)


def check_access(
    access: Access, register: int, offset: int, size: int, stored: Register | None = None
) -> Register:
    """Check a load and return its result, or check a store of ``stored``.  Raises Refused."""
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
        case Kind.VALUE_OR_NULL if address.map is not None and address.map.is_array:
            raise NotModelled("an element that is not compared with NULL, which 6.14 may allow")
        case Kind.VALUE_OR_NULL:
            raise Refused("EACCES", f"R{register} invalid mem access '{address.kind}'")
    raise NotModelled("access to a map itself")


def _stack(access: Access, offset: int, size: int, stored: Register | None) -> Register:
    state = access.state
    if stored is None:
        state.check_stack(offset, size, "read from")
        check_written(state, offset, size)
        held = [each for each in state.spilled if -8 < each - offset < size]
        whole = size == 8 and held == [offset]
        if not whole and any(isinstance(state.spilled[each], Address) for each in held):
            raise NotModelled("a part of a spilled pointer")
        return state.read_stack(offset, size)
    state.check_stack(offset, size, "write to")
    if isinstance(stored, Address) and size != 8:
        raise Refused("EACCES", "invalid size of register spill")
    state.write_stack(offset, size, stored)
    return Scalar()


def check_written(state: State, offset: int, size: int) -> None:
    """Stack bytes that are read must be initialized.

    "bpf: Allow reads from uninit stack" (6.3 and some stable releases) allows them; their content
    is undefined.
    """
    if state.unwritten(offset, size):
        raise NotModelled("a read of uninitialized stack")


def check_value(address: Address, offset: int, size: int) -> None:
    """Bytes of a map value."""
    assert address.map is not None
    start = address.offset + offset
    if start < 0 or start + size > address.map.value_size:
        details = f"value_size={address.map.value_size} off={start} size={size}"
        raise Refused("EACCES", f"invalid access to map value, {details}")


def _context(
    access: Access, address: Address, offset: int, size: int, stored: Register | None
) -> Register:
    if address.offset:
        raise NotModelled("a pointer into the context")
    if access.kind is ProgramType.KPROBE:
        good = offset >= 0 and offset % size == 0 and offset + size <= PT_REGS_SIZE
        if good and stored is not None:
            raise NotModelled("a store into pt_regs, which later releases allow")
    elif access.kind is ProgramType.TRACEPOINT:
        good = offset in _TRACEPOINT_CONTEXT and offset % size == 0 and stored is None
    else:
        good = (offset, size) == _SK_BUFF_LEN and stored is None
        if not good and 0 < offset < _SK_BUFF_END:
            raise NotModelled("later members of struct __sk_buff")
        if (offset, size) in ((0, 1), (0, 2)) and stored is None:
            raise NotModelled("a part of a member of struct __sk_buff")
    if not good:
        raise Refused("EACCES", f"invalid bpf_context access off={offset} size={size}")
    access.context_ends.append(offset + size)
    return Scalar()

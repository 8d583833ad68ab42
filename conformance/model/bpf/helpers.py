"""Calls of helpers: availability and arguments.

Source: kernel/bpf/verifier.c:check_helper_call, check_func_arg.
"""

from __future__ import annotations

from conformance.abi.bpf import Helper, ProgramType
from conformance.model.bpf.access import Access, check_value, check_written
from conformance.model.bpf.maps import Map
from conformance.model.bpf.registers import Address, Kind, Scalar
from conformance.model.bpf.structure import Refused
from conformance.model.errors import NotModelled
from conformance.ops.bpf_opcodes import R0, R1, R2, R3, R4, R5

# No release has this many helpers.
_NO_HELPER = 10_000


def check(access: Access, number: int, gpl: bool, id: int) -> None:
    """Check a call; it sets R0 and clobbers R1 to R5.  Raises Refused, NotModelled."""
    helper = _helper(access.kind, number)
    if helper is Helper.PROBE_READ:
        if not gpl:
            why = "cannot call GPL-restricted function from non-GPL compatible program"
            raise Refused("EINVAL", why)
        _check_probe_read(access)
    else:
        _check_map_arguments(access, helper)
    state = access.state
    answer: Scalar | Address = Scalar()
    if helper is Helper.MAP_LOOKUP_ELEM:
        answer = Address(Kind.VALUE_OR_NULL, map=_map(access), id=id)
    for register in (R1, R2, R3, R4, R5):
        state.registers.pop(register, None)
    state.registers[R0] = answer


def _helper(kind: ProgramType, number: int) -> Helper:
    known = number in tuple(Helper) and number != Helper.UNSPEC
    if not known and 0 < number < _NO_HELPER:
        raise NotModelled(f"helper {number}")
    if not known or (number == Helper.PROBE_READ and kind is ProgramType.SOCKET_FILTER):
        raise Refused("EINVAL", f"unknown func #{number}")
    return Helper(number)


def _map(access: Access) -> Map:
    first = access.state.read(R1)
    if not isinstance(first, Address) or first.kind is not Kind.MAP:
        raise Refused("EACCES", f"R1 type={_name(first)} expected=map_ptr")
    assert first.map is not None
    return first.map


def _name(register: Scalar | Address) -> str:
    return register.kind.value if isinstance(register, Address) else "scalar"


def _check_map_arguments(access: Access, helper: Helper) -> None:
    map_ = _map(access)
    _check_memory(access, R2, map_.key_size)
    if helper is Helper.MAP_UPDATE_ELEM:
        _check_memory(access, R3, map_.value_size)
        access.state.read(R4)


def _check_memory(access: Access, register: int, size: int) -> None:
    """Memory that a helper reads, in the stack or a map value."""
    address = access.state.read(register)
    if isinstance(address, Address) and address.kind is Kind.STACK:
        _check_stack(access, address.offset, size)
        check_written(access.state, address.offset, size)
    elif isinstance(address, Address) and address.kind is Kind.VALUE:
        check_value(address, 0, size)
    else:
        raise Refused("EACCES", f"R{register} type={_name(address)} expected=fp, map_value")


def _check_stack(access: Access, offset: int, size: int) -> None:
    """Stack bytes that a helper reads or writes."""
    if offset < 0 < offset + size:
        # EACCES before "bpf: Fix accesses to uninit stack slots" (6.8 and stable releases).
        raise NotModelled("an argument that begins in the stack and ends above it")
    access.state.check_stack(offset, size, "indirect access to")


def _check_probe_read(access: Access) -> None:
    target, size = access.state.read(R1), access.state.read(R2)
    if not isinstance(size, Scalar):
        raise Refused("EACCES", f"R2 type={_name(size)} expected=scalar")
    if size.value is None or not 0 < size.value < 1 << 29:
        raise NotModelled("probe_read of an unknown size")
    if not isinstance(target, Address) or target.kind not in (Kind.STACK, Kind.VALUE):
        raise Refused("EACCES", f"R1 type={_name(target)} expected=fp, map_value")
    access.state.read(R3)
    if target.kind is Kind.VALUE:
        check_value(target, 0, size.value)
        return
    _check_stack(access, target.offset, size.value)
    access.state.write_stack(target.offset, size.value, None)

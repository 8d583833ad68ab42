"""The attributes of bpf(2).

Source: kernel/bpf/syscall.c:__sys_bpf, bpf_check_uarg_tail_zero, CHECK_ATTR.
"""

from __future__ import annotations

from conformance.abi.bpf import MAP_CREATE, MAP_ELEM, PROG_LOAD, Command
from conformance.abi.uapi import Layout
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory.address_space import AddressSpace
from conformance.model.memory.pages import PAGE_SIZE

# sizeof(union bpf_attr) is between these in all releases since 5.18.
_MIN_SIZE = 144
_MAX_SIZE = 256

LAYOUTS: dict[Command, Layout] = {
    Command.MAP_CREATE: MAP_CREATE,
    Command.MAP_LOOKUP_ELEM: MAP_ELEM,
    Command.MAP_UPDATE_ELEM: MAP_ELEM,
    Command.MAP_DELETE_ELEM: MAP_ELEM,
    Command.MAP_GET_NEXT_KEY: MAP_ELEM,
    Command.PROG_LOAD: PROG_LOAD,
}
# The end of the members that a command uses; None where it differs by release.
_END: dict[Command, int | None] = {
    Command.MAP_CREATE: None,
    Command.MAP_LOOKUP_ELEM: 32,
    Command.MAP_UPDATE_ELEM: 32,
    Command.MAP_DELETE_ELEM: 16,
    Command.MAP_GET_NEXT_KEY: 24,
    Command.PROG_LOAD: None,
}
# No release uses bytes of BPF_MAP_CREATE from here on.
_END_OF_MAP_CREATE = 128


def fetch(memory: AddressSpace, address: int, size: int) -> bytes:
    """Read the attributes, padded with zeros.  Raises Errno, NotModelled."""
    if size > PAGE_SIZE:
        raise Errno("E2BIG")
    if size > _MAX_SIZE and any(memory.read(address + _MAX_SIZE, size - _MAX_SIZE)):
        raise Errno("E2BIG")
    raw = memory.read(address, min(size, _MAX_SIZE))
    if any(raw[_MIN_SIZE:]):
        raise NotModelled("attributes that only some releases have")
    return raw.ljust(_MAX_SIZE, b"\0")


def check_unused(command: Command, raw: bytes) -> None:
    """CHECK_ATTR(): unused bytes must be zero.  Raises Errno, NotModelled."""
    end = _END[command]
    if end is not None:
        if any(raw[end:]):
            raise Errno("EINVAL")
        return
    if command is Command.MAP_CREATE and any(raw[_END_OF_MAP_CREATE:]):
        raise Errno("EINVAL")
    layout = LAYOUTS[command]
    if any(raw[max(each.offset + each.size for each in layout.members) :]):
        raise NotModelled("attributes of later releases")

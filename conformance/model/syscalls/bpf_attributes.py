"""Attributes of bpf(2), as the kernel reads them from a program's memory.

Source: kernel/bpf/syscall.c:__sys_bpf, bpf_check_uarg_tail_zero, CHECK_ATTR.
"""

from __future__ import annotations

from conformance.abi.bpf import MAP_CREATE, MAP_ELEM, PROG_LOAD, Command
from conformance.abi.uapi import Layout
from conformance.model.errors import Errno, NotModelled
from conformance.model.memory import PAGE_SIZE, AddressSpace

# sizeof(union bpf_attr) lies between these in all releases from 5.18 on.
_SHORTEST = 144
_LONGEST = 256

LAYOUTS: dict[Command, Layout] = {
    Command.MAP_CREATE: MAP_CREATE,
    Command.MAP_LOOKUP_ELEM: MAP_ELEM,
    Command.MAP_UPDATE_ELEM: MAP_ELEM,
    Command.MAP_DELETE_ELEM: MAP_ELEM,
    Command.MAP_GET_NEXT_KEY: MAP_ELEM,
    Command.PROG_LOAD: PROG_LOAD,
}
# Where the members that a command uses end; None differs by release.
_END: dict[Command, int | None] = {
    Command.MAP_CREATE: None,
    Command.MAP_LOOKUP_ELEM: 32,
    Command.MAP_UPDATE_ELEM: 32,
    Command.MAP_DELETE_ELEM: 16,
    Command.MAP_GET_NEXT_KEY: 24,
    Command.PROG_LOAD: None,
}
# Beyond this byte BPF_MAP_CREATE has no member in any release.
_END_OF_MAP_CREATE = 128


def fetch(memory: AddressSpace, address: int, size: int) -> bytes:
    """The attributes, as long as the longest union.  Raises Errno, NotModelled."""
    if size > PAGE_SIZE:
        raise Errno("E2BIG")
    if size > _LONGEST and any(memory.read(address + _LONGEST, size - _LONGEST)):
        raise Errno("E2BIG")
    raw = memory.read(address, min(size, _LONGEST))
    if any(raw[_SHORTEST:]):
        raise NotModelled("bytes that are attributes in some releases")
    return raw.ljust(_LONGEST, b"\0")


def check_unused(command: Command, raw: bytes) -> None:
    """CHECK_ATTR(): what a command has no use for is zero.  Raises Errno, NotModelled."""
    end = _END[command]
    if end is not None:
        if any(raw[end:]):
            raise Errno("EINVAL")
        return
    if command is Command.MAP_CREATE and any(raw[_END_OF_MAP_CREATE:]):
        raise Errno("EINVAL")
    layout = LAYOUTS[command]
    if any(raw[max(each.offset + each.size for each in layout.members) :]):
        raise NotModelled("attributes that came later")

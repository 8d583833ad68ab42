"""bpf(2).

Source: kernel/bpf/syscall.c.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from conformance import ops
from conformance.abi.bpf import BPF_F_STRICT_ALIGNMENT, Command
from conformance.model.answers import Answer
from conformance.model.bpf import maps
from conformance.model.bpf.maps import Map
from conformance.model.bpf.programs import Program
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.copies import copied
from conformance.model.state.namespaces import CONFIDENTIALITY
from conformance.model.state.process import OpenFile, Process
from conformance.model.state.world import World
from conformance.model.syscalls import bpf_attributes, bpf_load
from conformance.model.syscalls.handlers import Handlers
from conformance.ops.credentials import Capability

_BY_KEY = (
    Command.MAP_LOOKUP_ELEM,
    Command.MAP_UPDATE_ELEM,
    Command.MAP_DELETE_ELEM,
    Command.MAP_GET_NEXT_KEY,
)
# Higher flags are reserved, and every release checks them last.
_KNOWN_FLAGS = 3
# No release has this many commands; from 1 << 16 on there are flags.
_NO_COMMANDS = 1000
_COMMAND_FLAGS = 1 << 16


def bpf(world: World, process: Process, operation: ops.Bpf) -> Answer:
    """One command.  Raises Errno, NotModelled."""
    command, attributes = _command_of(world, process, operation)
    if command in _BY_KEY:
        key_command(process, command, attributes)
        return Answer(0)
    if operation.slot is None:
        raise NotModelled("a descriptor without a slot")
    file = _create(world, process, command, attributes)
    process.slots[operation.slot] = file
    return Answer(0)


def _command_of(
    world: World, process: Process, operation: ops.Bpf
) -> tuple[Command, Mapping[str, int]]:
    if _NO_COMMANDS <= operation.command < _COMMAND_FLAGS:
        bpf_attributes.fetch(process.memory, operation.address, operation.size)
        raise Errno("EINVAL")
    if operation.command not in tuple(Command):
        raise NotModelled(f"bpf command {operation.command}")
    command = Command(operation.command)
    suffices = world.profile.has("bpf_descriptor_suffices") and command in _BY_KEY
    early = not world.profile.has("bpf_attributes_before_rights")
    if early and not suffices:
        _check_capable(process)
    raw = bpf_attributes.fetch(process.memory, operation.address, operation.size)
    bpf_attributes.check_unused(command, raw)
    return command, bpf_attributes.LAYOUTS[command].unpack(raw)


def _create(
    world: World, process: Process, command: Command, attributes: Mapping[str, int]
) -> OpenFile:
    if command is Command.MAP_CREATE:
        return OpenFile("anon_inode:bpf-map", os.O_RDWR, object=_create_map(process, attributes))
    return OpenFile("anon_inode:bpf-prog", os.O_RDWR, object=_load(world, process, attributes))


def _create_map(process: Process, attributes: Mapping[str, int]) -> Map:
    if attributes["map_flags"]:
        raise NotModelled("flags of a map")
    map_ = maps.create(
        attributes["map_type"],
        attributes["key_size"],
        attributes["value_size"],
        attributes["max_entries"],
    )
    _check_capable(process)
    return map_


def _check_capable(process: Process) -> None:
    """bpf_capable(); CONFIG_BPF_UNPRIV_DEFAULT_OFF sets sysctl_unprivileged_bpf_disabled to 2."""
    cred = process.credentials
    if not (cred.has(Capability.BPF) or cred.has(Capability.SYS_ADMIN)):
        raise Errno("EPERM")


def _load(world: World, process: Process, attributes: Mapping[str, int]) -> Program:
    if attributes["prog_flags"] & ~BPF_F_STRICT_ALIGNMENT:
        raise NotModelled("flags of a program")
    _check_capable(process)
    if not process.credentials.perfmon:
        raise NotModelled("a program loaded with CAP_BPF and without CAP_PERFMON")
    if world.lockdown >= CONFIDENTIALITY:
        raise NotModelled("helpers that read kernel memory, under lockdown")
    return bpf_load.load(
        world.profile, process.memory, attributes, lambda number: _map_of(process, number)
    )


def _map_of(process: Process, number: int) -> Map:
    """The map of a descriptor.  Raises Errno."""
    file = process.file(process.slot_of_fd(number))
    if not isinstance(file.object, Map):
        raise Errno("EINVAL")
    return file.object


# Elements


def key_command(process: Process, command: Command, attributes: Mapping[str, int]) -> None:
    """BPF_MAP_*_ELEM and BPF_MAP_GET_NEXT_KEY.  Raises Errno, NotModelled."""
    flags = attributes["flags"]
    number = attributes["map_fd"]
    if command is Command.MAP_LOOKUP_ELEM and flags:
        # Whether the descriptor is checked before the flags differs by release.
        _check_is_map(process, number)
        raise Errno("EINVAL")
    map_ = _map_of(process, number)
    if command is Command.MAP_GET_NEXT_KEY:
        _get_next_key(process, map_, attributes)
        return
    try:
        key = process.memory.read(attributes["key"], map_.key_size)
        match command:
            case Command.MAP_LOOKUP_ELEM:
                _lookup(process, map_, key, attributes["value"])
            case Command.MAP_UPDATE_ELEM:
                value = process.memory.read(attributes["value"], map_.value_size)
                map_.update(key, value, flags)
            case Command.MAP_DELETE_ELEM:
                map_.delete(key)
    except Errno as error:
        if flags > _KNOWN_FLAGS and error.name != "EINVAL":
            raise NotModelled("reserved flags together with another error") from None
        raise


def _check_is_map(process: Process, number: int) -> None:
    try:
        _map_of(process, number)
    except Errno:
        raise NotModelled("flags together with a descriptor that is not a map") from None


def _lookup(process: Process, map_: Map, key: bytes, address: int) -> None:
    value = map_.lookup(key)
    if value is None:
        raise Errno("ENOENT")
    process.memory.write(address, bytes(value))


def _get_next_key(process: Process, map_: Map, attributes: Mapping[str, int]) -> None:
    key = _key_before(process, map_, attributes)
    following = map_.next_keys(key)[0]
    if not isinstance(following, bytes):
        raise Errno("ENOENT")
    process.memory.write(attributes["value"], following)


def _key_before(process: Process, map_: Map, attributes: Mapping[str, int]) -> bytes | None:
    address = attributes["key"]
    return process.memory.read(address, map_.key_size) if address else None


def choices(world: World, operation: ops.Operation) -> list[World]:
    """One state for every key that may come next when a hash is walked."""
    if not isinstance(operation, ops.Bpf) or operation.command != Command.MAP_GET_NEXT_KEY:
        return [world]
    try:
        map_, key = _walked(world, operation)
    except Errno:
        return [world]
    following = map_.next_keys(key)
    if len(following) == 1:
        map_.decide(key, following[0])
        return [world]
    chosen = []
    for place in range(len(following)):
        copy = copied(world)
        after, _ = _walked(copy, operation)
        after.decide(key, after.next_keys(key)[place])
        chosen.append(copy)
    return chosen


def _walked(world: World, operation: ops.Bpf) -> tuple[Map, bytes | None]:
    process = world.process(operation.actor)
    _, attributes = _command_of(world, process, operation)
    map_ = _map_of(process, attributes["map_fd"])
    return map_, _key_before(process, map_, attributes)


HANDLERS: Handlers = {ops.Bpf: bpf}

"""Directories of tracefs: getdents64(2), and mkdir(2) and rmdir(2) of instances.

Source: fs/tracefs/event_inode.c:eventfs_iterate; fs/readdir.c:filldir64, verify_dirent_name.
"""

from __future__ import annotations

import re

from conformance.abi import grammar
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import TRACEFS
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracing import event_files, instances
from conformance.ops import Getdents, MakeDirectory, RemoveDirectory

_SYSTEM = re.compile(rf"{TRACEFS}/events/({grammar.SYSTEM}|{grammar.MULTI_SYSTEM})")
# Entries of every system's directory.
_ALWAYS = [b".", b"..", b"enable", b"filter"]


def getdents(world: World, process: Process, operation: Getdents) -> Answer:
    """List the entries up to the first name that a directory cannot hold; the next call fails."""
    file = process.file(operation.slot)
    system = _SYSTEM.fullmatch(file.path)
    if system is None:
        raise NotModelled(f"the directory {file.path}")
    events = event_files.events_of(world, system[1])
    names = [event.tracepoint.encode("latin-1") for event in events]
    if not names:
        raise NotModelled("the directory of a system without events")
    if world.profile.has("directories_of_any_name"):
        good = next((n for n, name in enumerate(names) if not _listable(name)), len(names))
        entries = _ALWAYS + names[:good]
    else:
        # tracefs creates no directory for such a name, nor for a duplicate.
        good = len(names)
        entries = _ALWAYS + [name for name in names if _can_be_made(name)]
    rest = entries[file.position :]
    file.position = len(entries)
    if not rest and good < len(names):
        raise Errno("EINVAL" if world.profile.has("listing_ends_with_einval") else "EIO")
    return Answer(None, "", operation.compared(rest))


def _listable(name: bytes) -> bool:
    """verify_dirent_name()."""
    return bool(name) and b"/" not in name


def _can_be_made(name: bytes) -> bool:
    """Whether lookup_one_len() accepts the name and it is free."""
    return _listable(name) and len(name) <= 255 and name not in _ALWAYS


def _make(world: World, process: Process, operation: MakeDirectory) -> Answer:
    instances.make_directory(world, process, operation.path)
    return Answer(0)


def _remove(world: World, process: Process, operation: RemoveDirectory) -> Answer:
    instances.remove_directory(world, process, operation.path)
    return Answer(0)


HANDLERS: Handlers = {Getdents: getdents, MakeDirectory: _make, RemoveDirectory: _remove}

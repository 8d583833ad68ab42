"""Inodes: mknod(2), mkdir(2), chmod(2), chown(2), and owners."""

from __future__ import annotations

from dataclasses import replace

from conformance import ops
from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state.namespaces import (
    TRACEFS,
    Attributes,
)
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls.entry import attributes, resolve
from conformance.model.syscalls.handlers import Handlers
from conformance.model.tracefs import files as tracefs
from conformance.ops.credentials import Capability


def _create_node(world: World, process: Process, operation: ops.Mknod | ops.Mkdir) -> Answer:
    path = resolve(world, process, operation.path, 0)
    if not path.startswith("tmpfs"):
        raise NotModelled(f"making {path}")
    if path in world.tmpfs_files:
        raise Errno("EEXIST")
    world.tmpfs_files.append(path)
    return Answer(0)


def _chmod(world: World, process: Process, operation: ops.Chmod) -> Answer:
    before, path = _changed_attributes(world, process, operation)
    cred = process.credentials
    if cred.uid != before.uid and not cred.has(Capability.FOWNER):
        raise Errno("EPERM")
    world.attributes[path] = replace(before, mode=operation.mode)
    return Answer(0)


def _chown(world: World, process: Process, operation: ops.Chown) -> Answer:
    before, path = _changed_attributes(world, process, operation)
    cred = process.credentials
    uid = before.uid if operation.uid == -1 else operation.uid
    gid = before.gid if operation.gid == -1 else operation.gid
    own = cred.uid == before.uid == uid and gid in (before.gid, cred.gid, *cred.groups)
    if not own and not cred.has(Capability.CHOWN):
        raise Errno("EPERM")
    world.attributes[path] = replace(before, uid=uid, gid=gid)
    return Answer(0)


def _changed_attributes(
    world: World, process: Process, operation: ops.Chmod | ops.Chown
) -> tuple[Attributes, str]:
    """The attributes and path of a file.  Raises Errno: EROFS, or EPERM for a sysctl."""
    path = resolve(world, process, operation.path, 0)
    _, mount = (process.namespace or world.namespace).find(process.root + operation.path)
    if mount.readonly or (world.tracefs_readonly and path.startswith(TRACEFS)):
        raise Errno("EROFS")
    if path == tracefs.MAXIMUM:
        # proc_sys_setattr()
        raise Errno("EPERM")
    return attributes(world, path), path


def _ownership(world: World, process: Process, operation: ops.Ownership) -> Answer:
    path = resolve(world, process, operation.path, 0)
    owned = attributes(world, path)
    return Answer(None, "", b"%d:%d" % (owned.uid, owned.gid))


HANDLERS: Handlers = {
    ops.Mknod: _create_node,
    ops.Mkdir: _create_node,
    ops.Chmod: _chmod,
    ops.Chown: _chown,
    ops.Ownership: _ownership,
}

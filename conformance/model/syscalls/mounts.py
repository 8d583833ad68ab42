"""Mounts: chroot(2), mount(2), umount2(2).

Source: fs/namespace.c:path_mount, may_mount; fs/tracefs/inode.c:tracefs_apply_options.
"""

from __future__ import annotations

import os
from dataclasses import replace

from conformance.model.answers import Answer
from conformance.model.errors import Errno, NotModelled
from conformance.model.state import namespaces
from conformance.model.state.namespaces import (
    MAY_SEARCH,
    TRACEFS,
    Mount,
)
from conformance.model.state.process import Process
from conformance.model.state.world import World
from conformance.model.syscalls.entry import SECURITYFS, attributes, check_exists, resolve
from conformance.model.syscalls.handlers import Handlers
from conformance.ops import credentials
from conformance.ops.credentials import Capability

# TRACEFS_DEFAULT_MODE
_DEFAULT_MODE = 0o700


def _chroot(world: World, process: Process, operation: credentials.Chroot) -> Answer:
    path = process.root + operation.path
    found, _ = (process.namespace or world.namespace).find(path)
    if found == TRACEFS:
        namespaces.check(attributes(world, found), process.credentials, MAY_SEARCH, directory=True)
    if not process.credentials.has_in_own_namespace(Capability.SYS_CHROOT):
        raise Errno("EPERM")
    process.root = path
    return Answer(0)


def _may_mount(world: World, process: Process) -> None:
    """may_mount().  Raises Errno("EPERM")."""
    namespace = process.namespace
    if namespace is None:
        raise NotModelled("mounts in the initial mount namespace")
    cred = process.credentials
    in_user_namespace = (
        cred.in_user_namespace
        and namespace.in_user_namespace
        and cred.has_in_own_namespace(Capability.SYS_ADMIN)
    )
    if not in_user_namespace and not cred.has(Capability.SYS_ADMIN):
        raise Errno("EPERM")


def _mount(world: World, process: Process, operation: credentials.Mount) -> Answer:
    target = resolve(world, process, operation.target, 0)
    check_exists(world, target)
    _may_mount(world, process)
    assert process.namespace is not None
    mounts = process.namespace.mounts
    if operation.flags & credentials.MS_REMOUNT:
        places = [n for n, each in enumerate(mounts) if each.target == operation.target]
        if not places:
            raise NotModelled(f"remounting {operation.target}")
        place = places[-1]
        readonly = bool(operation.flags & credentials.MS_RDONLY)
        if not operation.flags & credentials.MS_BIND:
            _reconfigure(world, process, mounts[place].root, operation.options, readonly=readonly)
        mounts[place] = replace(mounts[place], readonly=readonly)
        return Answer(0)
    if operation.flags & credentials.MS_BIND:
        root = resolve(world, process, operation.source, 0)
        check_exists(world, root)
        readonly = process.namespace.find(operation.source)[1].readonly
    else:
        if operation.flags & credentials.MS_RDONLY:
            raise NotModelled("a new mount that is read-only")
        root, readonly = _new_root(world, process, operation.kind), False
        # get_tree_single() finds the superblock of the initial mount.
        if root != TRACEFS or world.profile.fixed("tracefs-mount-options"):
            _apply_options(world, root, operation.options)
    mounts.append(Mount(operation.target, root, readonly))
    return Answer(0)


def _new_root(world: World, process: Process, kind: str) -> str:
    """The root of a new mount."""
    if kind == "tmpfs":
        world.tmpfs_files.append(f"tmpfs{len(world.tmpfs_files)}:")
        return world.tmpfs_files[-1]
    if process.credentials.in_user_namespace:
        # tracefs and securityfs lack FS_USERNS_MOUNT.
        raise Errno("EPERM")
    match kind:
        case "tracefs":
            return TRACEFS
        case "securityfs":
            return SECURITYFS
    raise NotModelled(f"mounting {kind}")


def _reconfigure(
    world: World, process: Process, root: str, options: str, *, readonly: bool
) -> None:
    """do_remount(), reconfigure_super(): applies to every mount of the file system.

    Raises Errno: EPERM, or EBUSY while a file is open for writing or removed but not freed.
    """
    if root != TRACEFS:
        raise NotModelled(f"reconfiguring {root}")
    if not process.credentials.has(Capability.SYS_ADMIN):
        raise Errno("EPERM")
    if readonly and not world.tracefs_readonly and (_is_written(world) or world.inodes_leaked):
        raise Errno("EBUSY")
    _apply_options(world, root, options)
    world.tracefs_readonly = readonly


def _is_written(world: World) -> bool:
    """sb_prepare_remount_readonly(): whether a tracefs file is open for writing."""
    writable = (os.O_WRONLY, os.O_RDWR)
    return any(
        file.path.startswith(TRACEFS) and file.flags & os.O_ACCMODE in writable
        for file in world.open_files
    )


def _apply_options(world: World, root: str, options: str) -> None:
    """tracefs_apply_options(): tracefs has one superblock, which every mount changes."""
    if root == TRACEFS and not world.profile.has("remount_keeps_mode"):
        # tracefs_parse_options() starts from the default mode, but keeps uid and gid.
        _set_gid(world)
        before = attributes(world, TRACEFS)
        world.attributes[TRACEFS] = replace(before, mode=_DEFAULT_MODE, uid=0)
    if not options:
        return
    if root != TRACEFS:
        raise NotModelled(f"options of {root}")
    for option in options.split(","):
        name, _, value = option.partition("=")
        if name == "mode":
            before = attributes(world, TRACEFS)
            world.attributes[TRACEFS] = replace(before, mode=int(value, 8))
        elif name == "gid":
            world.tracefs_gid = int(value)
            _set_gid(world)
        else:
            raise NotModelled(f"option {option} of tracefs")


def _set_gid(world: World) -> None:
    """set_gid(): all files get the group of the superblock."""
    for path, before in world.attributes.items():
        world.attributes[path] = replace(before, gid=world.tracefs_gid)


def _umount(world: World, process: Process, operation: credentials.Umount) -> Answer:
    _may_mount(world, process)
    assert process.namespace is not None
    mounts = process.namespace.mounts
    mounted = [each for each in mounts if each.target == operation.target]
    if not mounted or mounted[-1].locked:
        raise Errno("EINVAL")
    mounts.remove(mounted[-1])
    return Answer(0)


HANDLERS: Handlers = {
    credentials.Chroot: _chroot,
    credentials.Mount: _mount,
    credentials.Umount: _umount,
}

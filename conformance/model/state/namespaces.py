"""Mounts of a namespace; modes and owners of files.

Source: fs/namei.c:generic_permission, do_open; fs/namespace.c:path_mount; fs/tracefs/inode.c;
fs/proc/proc_sysctl.c:test_perm.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from conformance.model.errors import Errno
from conformance.model.state.credentials import Credentials
from conformance.ops.credentials import Capability

TRACEFS = "/sys/kernel/tracing"
# debugfs mounts tracefs there on first access.
AUTOMOUNT = "/sys/kernel/debug/tracing"
LOCKDOWN = "/sys/kernel/security/lockdown"
# LOCKDOWN_CONFIDENTIALITY_MAX: the level that closes tracefs.
CONFIDENTIALITY = 2

MAY_READ, MAY_WRITE, MAY_SEARCH = 4, 2, 1


@dataclass(frozen=True, slots=True)
class Attributes:
    """Permission bits and owners of an inode."""

    mode: int
    uid: int = 0
    gid: int = 0

    def bits_for(self, cred: Credentials) -> int:
        """The rwx bits that apply to a process, its capabilities aside."""
        if cred.uid == self.uid:
            return self.mode >> 6 & 7
        if self.gid in (cred.gid, *cred.groups):
            return self.mode >> 3 & 7
        return self.mode & 7


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount: ``target`` shows ``root``, a path of the initial mount namespace.

    Files of a new tmpfs have paths that begin with a name like ``tmpfs1:``.
    """

    target: str
    root: str
    readonly: bool = False
    # MNT_LOCKED
    locked: bool = False


@dataclass(slots=True, eq=False)
class Namespace:
    """A mount namespace; the last of ``mounts`` is the topmost."""

    mounts: list[Mount] = field(
        default_factory=lambda: [Mount("", ""), Mount(TRACEFS, TRACEFS), Mount(AUTOMOUNT, TRACEFS)]
    )
    in_user_namespace: bool = False

    def find(self, path: str) -> tuple[str, Mount]:
        """The path in the initial mount namespace, and the mount that a path leads through."""
        for mount in reversed(self.mounts):
            if path == mount.target or path.startswith(f"{mount.target}/"):
                return mount.root + path[len(mount.target) :], mount
        raise AssertionError("every path is below the root")

    def copy(self, *, in_user_namespace: bool) -> Namespace:
        """unshare(CLONE_NEWNS); lock_mnt_tree() in a user namespace."""
        copies = [replace(each, locked=each.locked or in_user_namespace) for each in self.mounts]
        return Namespace(copies, in_user_namespace)


def check(attributes: Attributes, cred: Credentials, access: int, *, directory: bool) -> None:
    """generic_permission().  Raises Errno("EACCES").

    Capabilities in another user namespace do not count, since no owner is mapped there
    (capable_wrt_inode_uidgid).
    """
    if not access & ~attributes.bits_for(cred):
        return
    if cred.has(Capability.DAC_OVERRIDE):
        return
    harmless = not access & MAY_WRITE if directory else access == MAY_READ
    if not harmless or not cred.has(Capability.DAC_READ_SEARCH):
        raise Errno("EACCES")


def check_sysctl(cred: Credentials, access: int) -> None:
    """test_perm() for a sysctl of mode 0644, which ignores capabilities.

    Raises Errno("EACCES").
    """
    if access & ~(Attributes(0o644).bits_for(cred)):
        raise Errno("EACCES")

"""Credentials, namespaces and mounts of a process; modes and owners of files."""

from __future__ import annotations

import os

from conformance import ops
from conformance.client.data_file import DataFile
from conformance.client.process import Process
from conformance.ops import Observation, View, credentials
from conformance.ops.credentials import Capability


class Credentials:
    """Credentials of one process; each method is one operation."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._actor = process.actor

    def become(
        self, uid: int = 1000, gid: int | None = None, *groups: int, keep: bool = False
    ) -> Observation:
        """Become another user; ``gid`` defaults to ``uid``."""
        group = uid if gid is None else gid
        return self._process.run(credentials.Become(self._actor, uid, group, groups, keep))

    def keep_only(self, *capabilities: Capability) -> Observation:
        """Keep only these capabilities."""
        kept = credentials.mask(*capabilities)
        return self._process.run(credentials.Capset(self._actor, kept, kept))

    def make_effective(self, *capabilities: Capability) -> Observation:
        """Make only these capabilities effective; all stay permitted."""
        effective = credentials.mask(*capabilities)
        return self._process.run(credentials.Capset(self._actor, credentials.EVERYTHING, effective))

    def become_with(self, *capabilities: Capability) -> Observation:
        """Become an ordinary user with only these capabilities."""
        self.become(keep=True)
        return self.keep_only(*capabilities)

    def drop(self, *capabilities: Capability) -> Observation:
        """Drop these capabilities."""
        left = credentials.EVERYTHING & ~credentials.mask(*capabilities)
        return self._process.run(credentials.Capset(self._actor, left, left))

    def no_new_privileges(self) -> Observation:
        """prctl(PR_SET_NO_NEW_PRIVS)."""
        return self._process.run(credentials.NoNewPrivileges(self._actor))

    def filter(self, *refused: str, errno: str) -> Observation:
        """seccomp(2): make system calls fail with ``errno``."""
        return self._process.run(credentials.Seccomp(self._actor, refused, errno))

    def unshare(self, flags: int) -> Observation:
        """unshare(2)."""
        return self._process.run(credentials.Unshare(self._actor, flags))

    def chroot(self, path: str) -> Observation:
        """chroot(2)."""
        return self._process.run(credentials.Chroot(self._actor, path))

    def mount(self, kind: str, target: str, options: str = "") -> Observation:
        """mount(2) of a file system."""
        return self._process.run(credentials.Mount(self._actor, kind, target, kind, 0, options))

    def remount(self, target: str, options: str = "", *, read_only: bool = False) -> Observation:
        """mount(2) with MS_REMOUNT: other options, or read-only."""
        flags = credentials.MS_REMOUNT | (credentials.MS_RDONLY if read_only else 0)
        return self._process.run(credentials.Mount(self._actor, "none", target, "", flags, options))

    def bind(self, source: str, target: str) -> Observation:
        """mount(2) with MS_BIND."""
        return self._process.run(
            credentials.Mount(self._actor, source, target, "", credentials.MS_BIND)
        )

    def make_read_only(self, target: str) -> Observation:
        """mount(2): make a bind mount read-only."""
        flags = credentials.MS_BIND | credentials.MS_REMOUNT | credentials.MS_RDONLY
        return self._process.run(credentials.Mount(self._actor, "none", target, "", flags))

    def umount(self, target: str) -> Observation:
        """umount2(2)."""
        return self._process.run(credentials.Umount(self._actor, target))

    def make_file(self, path: str) -> Observation:
        """mknod(2)."""
        return self._process.run(ops.Mknod(self._actor, path))

    def make_directory(self, path: str) -> Observation:
        """mkdir(2)."""
        return self._process.run(ops.Mkdir(self._actor, path))

    def chmod(self, path: str, mode: int) -> Observation:
        """chmod(2)."""
        return self._process.run(ops.Chmod(self._actor, path, mode))

    def chown(self, path: str, uid: int = -1, gid: int = -1) -> Observation:
        """chown(2)."""
        return self._process.run(ops.Chown(self._actor, path, uid, gid))

    def owner(self, path: str) -> str:
        """``uid:gid`` of a path."""
        return self._process.run(ops.Ownership(self._actor, path)).text

    def mode(self, path: str) -> int:
        """Permission bits of a path."""
        return self._process.run(ops.Stat(self._actor, path)).value

    def read(self, path: str, prefix: str = "") -> Observation:
        """A whole file, or its lines of events whose names start with ``prefix``."""
        view = View.OWN if prefix else View.EXACT
        return self._process.run(ops.ReadFile(self._actor, path, view, prefix))

    def data(self, path: str, flags: int = os.O_RDWR) -> DataFile:
        """Open user_events_data by another path."""
        return DataFile(self._process, self._process.open(path, flags)[1])

    def write(self, path: str, text: str) -> Observation:
        """Open for writing, one write(2), close."""
        return self._process.run(ops.WriteFile(self._actor, path, text.encode(), os.O_WRONLY))


class Directory:
    """An open directory of tracefs."""

    def __init__(self, process: Process, path: str, prefix: str = "") -> None:
        self._process = process
        self._prefix = prefix
        self.opened, self._slot = process.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def next(self) -> Observation:
        """getdents64(2), once: the next names, empty at the end."""
        return self._process.run(ops.Getdents(self._process.actor, self._slot, self._prefix))

    def names(self) -> list[str]:
        """The names of one getdents64(2), sorted."""
        return self.next().text.splitlines()

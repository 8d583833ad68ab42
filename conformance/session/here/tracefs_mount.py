"""Have tracefs at /sys/kernel/tracing, mounted for this process alone if it is not there."""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

from conformance.client.tracefs import ROOT
from conformance.session.here.errors import Refused

_CLONE_NEWNS = 0x20000
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MOUNTS = Path("/proc/self/mountinfo")
_KINDS = Path("/proc/filesystems")
#: Octal escapes of mountinfo (fs/proc_namespace.c: mangle).
_ESCAPE = re.compile(r"\\([0-7]{3})")


def ensure_tracefs() -> str:
    """Mount tracefs where it is missing, unless the kernel has none; what was done, or "".

    Raises Refused, OSError.
    """
    if "\ttracefs\n" not in _KINDS.read_text():
        return ""
    mounts = _mounts()
    if ROOT in mounts:
        return ""
    _leave_mount_namespace()
    where = next(iter(mounts), "")
    if where:
        # A bind mount, because a mount of the type would set the options of all mounts.
        _mount(where, ROOT, None, _MS_BIND)
    else:
        # The superblock exists inside of the kernel: a mount keeps its default options.
        _mount("tracefs", ROOT, "tracefs", 0)
    found = f"is mounted at {where} only" if where else "is not mounted"
    return f"tracefs {found}: mounted at {ROOT} for this run alone"


def set_options(options: str) -> None:
    """Set the options of the superblock, as `current_options` has them.  Raises OSError."""
    kept = ",".join(each for each in options.split(",") if each not in ("rw", "ro"))
    _mount("none", ROOT, None, _MS_REMOUNT, kept)


def current_options() -> str:
    """The options of the superblock now."""
    return _mounts().get(ROOT, "")


def _mounts() -> dict[str, str]:
    """Mount points of tracefs with the options of its superblock; debugfs mounts it on access."""
    Path("/sys/kernel/debug/tracing/.").exists()
    found = {}
    for line in _MOUNTS.read_text().splitlines():
        mount, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)
        if kind == "tracefs":
            place = _ESCAPE.sub(lambda each: chr(int(each[1], 8)), mount.split(" ")[4])
            found[place] = options
    return found


def _leave_mount_namespace() -> None:
    """Give this process mounts of its own, gone when it ends."""
    if _libc.unshare(_CLONE_NEWNS):
        raise Refused(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)


def _mount(source: str | None, where: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [None if each is None else each.encode() for each in (source, where, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None):
        error = ctypes.get_errno()
        raise OSError(error, f"mount of tracefs at {where}: {os.strerror(error)}")


_libc = ctypes.CDLL(None, use_errno=True)

"""Run the supervisor on the running kernel, instead of as process 1 of a guest.

Run as `python -I -S here.py DIRECTORY NAME=DESCRIPTOR …`, where DIRECTORY holds the package vm and
the first port is that of the supervisor, as the leader of a session of its own.  All actors stay in
that session: it is what is killed.
"""

from __future__ import annotations

import os
import sys

#: Private file systems: type, mount point, options.
_PRIVATE = (("tmpfs", "/tmp", b"mode=1777"), ("tmpfs", "/run", b"mode=755"))
_TRACEFS = "/sys/kernel/tracing"
_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 2, 4, 32, 4096
_MS_REC, _MS_PRIVATE = 16384, 1 << 18
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9


def members(session: int) -> list[int]:
    """The processes of a session, and the children of its leader; without the leader."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != session:
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # proc(5): after the name, which is in parentheses: state, ppid, pgrp, session.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if session in (int(fields[1]), int(fields[3])):
                found.append(int(name))
    return found


def kill_members(session: int) -> None:
    """Send SIGKILL to the processes of a session except its leader."""
    for pid in members(session):
        try:
            os.kill(pid, _SIGKILL)
        except ProcessLookupError:
            pass


def _isolate(kept: list[str]) -> None:
    """Private mounts, so that files and mounts of cases are gone with this process.

    Those of ``kept`` directories that they would hide stay where they are.  No namespace of process
    ids: the kernel records global ones.  Raises OSError.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)

    def check(result: int, what: str) -> None:
        if result:
            raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")

    check(libc.unshare(_CLONE_NEWNS), "unshare(CLONE_NEWNS)")
    check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "private mounts")
    for kind, where, options in _PRIVATE:
        hidden = [
            (path, os.open(path, os.O_PATH | os.O_DIRECTORY))
            for path in kept
            if path.startswith(f"{where}/")
        ]
        source, flags = kind.encode(), _MS_NOSUID | _MS_NODEV
        check(libc.mount(source, where.encode(), source, flags, options), f"mount of {where}")
        for path, descriptor in hidden:
            os.makedirs(path, exist_ok=True)
            opened = f"/proc/self/fd/{descriptor}".encode()
            bound = libc.mount(opened, path.encode(), None, _MS_BIND | _MS_REC, None)
            check(bound, f"bind mount of {path}")
            os.close(descriptor)
    # A remount by a case clears the flags of its mount; the mounts of others keep theirs.
    flags = _MS_REMOUNT | _MS_BIND
    if os.path.ismount(_TRACEFS):
        check(libc.mount(None, _TRACEFS.encode(), None, flags, None), "remount of tracefs")
    check(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "PR_SET_CHILD_SUBREAPER")


def main(directory: str, *given: str) -> None:
    """Serve until the host hangs up, and kill what is left."""
    sys.path.insert(0, directory)
    from vm.guest import port
    from vm.guest.needed_files import import_all
    from vm.guest.supervisor import serve_host

    ports = {name: int(number) for name, _, number in (word.partition("=") for word in given)}
    port.inherit(ports)
    import_all()
    os.chdir("/")
    os.umask(0o022)
    # A lab unpacks the suite, and Python, where it likes.
    _isolate([directory, sys.base_prefix, os.path.dirname(sys.executable)])
    session = os.getpid()
    try:
        serve_host(tuple(ports), lambda: kill_members(session))
    finally:
        if os.getpid() == session:
            kill_members(session)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A kernel that is locked down."""

from __future__ import annotations

from conformance.program.rights import CLONE_NEWNS
from conformance.sut.process import Process
from conformance.sut.rights import Rights

SECURITY = "/sys/kernel/security"
LOCKDOWN = f"{SECURITY}/lockdown"


def lock_down(process: Process, level: str) -> None:
    """Lock the kernel down, until the next boot."""
    root = Rights(process)
    root.unshare(CLONE_NEWNS)
    root.mount("securityfs", SECURITY)
    root.write(LOCKDOWN, f"{level}\n")

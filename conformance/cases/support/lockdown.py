"""Lockdown of the kernel."""

from conformance.client.credentials import Credentials
from conformance.client.process import Process
from conformance.ops.credentials import CLONE_NEWNS

SECURITY = "/sys/kernel/security"
LOCKDOWN = f"{SECURITY}/lockdown"


def lockdown_administrator(process: Process) -> Credentials:
    """A process that sees securityfs, in a mount namespace of its own."""
    root = Credentials(process)
    root.unshare(CLONE_NEWNS)
    root.mount("securityfs", SECURITY)
    return root


def lock_down(process: Process, level: str) -> None:
    """Lock the kernel down, until the next boot."""
    lockdown_administrator(process).write(LOCKDOWN, f"{level}\n")

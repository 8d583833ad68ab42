"""Access of unprivileged users to tracefs."""

import os

from conformance.client.credentials import Credentials
from conformance.client.process import Process
from conformance.client.tracefs import DATA, DYNAMIC_EVENTS, ROOT, STATUS
from conformance.client.user_events import UserEvents
from conformance.ops import Observation

USER = 1000


def open_to_users(ue: UserEvents, *, data: int = 0o666) -> Credentials:
    """Let all users into tracefs; ``data`` is the mode of the data file."""
    administrator = Credentials(ue.new_process())
    administrator.chmod(ROOT, 0o701)
    administrator.chmod(DATA, data)
    return administrator


def restrict_again(administrator: Credentials, *others: str) -> None:
    """Restore mode and owner of the root, the data file, and ``others``."""
    modes = {ROOT: 0o700, DATA: 0o640, STATUS: 0o440, DYNAMIC_EVENTS: 0o640}
    for path in (ROOT, DATA, *others):
        administrator.chmod(path, modes[path])
        administrator.chown(path, 0, 0)


def try_open(process: Process, path: str, flags: int = os.O_RDWR) -> Observation:
    """open(2)."""
    return process.open(path, flags)[0]

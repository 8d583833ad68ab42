"""Errors of a run on the running kernel."""

from __future__ import annotations

from kernels.errors import HostTrouble, UserMistake


class Refused(UserMistake):
    """The system cannot be judged as it is; nothing was changed."""


class NotPermitted(Refused):
    """This process may not do what a run needs."""


class Occupied(Refused):
    """The system is in use in a way that a run would disturb."""


class NotRestored(HostTrouble):
    """The system cannot be put back into the state before a run."""

"""Errors of a run on the running kernel."""

from __future__ import annotations

from kernels.errors import UserMistake


class Refused(UserMistake):
    """The system cannot be judged as it is; nothing was changed."""

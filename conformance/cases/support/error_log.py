"""The error log of tracefs."""

from __future__ import annotations

import os

from conformance.client.tracefs import ERROR_LOG
from conformance.client.user_events import UserEvents


def clear_errors(ue: UserEvents) -> None:
    """Empty error_log, which every user of tracefs can read."""
    ue.tracefs.write(ERROR_LOG, "\n", os.O_WRONLY | os.O_TRUNC)

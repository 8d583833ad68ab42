"""What filters, triggers and histograms are hung on, as several files of cases begin with it."""

from __future__ import annotations

import os

from conformance.client.data_file import DataFile
from conformance.client.tracefs import ERROR_LOG, EventDirectory
from conformance.client.user_events import UserEvents


def registered(ue: UserEvents, fields: str) -> tuple[DataFile, EventDirectory]:
    """The data file, with an event of index 0, and the directory of that event."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    return data, ue.tracefs.directory(ue.name())


def forget_errors(ue: UserEvents) -> None:
    """Empty error_log, which tells what was refused to anybody."""
    ue.tracefs.write(ERROR_LOG, "\n", os.O_WRONLY | os.O_TRUNC)

"""What the cases about the first version of user_events share.

That version was sent for review and never merged: no release is judged by these cases, and
a kernel with it by no others.
"""

from __future__ import annotations

from conformance.cases.support.status_page import StatusPage, map_page
from conformance.client.data_file import DataFile
from conformance.client.process import Process
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import MMAP
from conformance.client.user_events import UserEvents


def page_of(process: Process) -> StatusPage:
    """The page of user_events_mmap, mapped to be read."""
    return map_page(process, file=MMAP)


def bound_data(ue: UserEvents, definition: str) -> DataFile:
    """A descriptor of the first process that stands for the event of a definition."""
    data = ue.open_data()
    register(data, definition)
    return data


def enabled_data(ue: UserEvents, definition: str = "") -> DataFile:
    """The same for the event ``name()``, with ftrace listening; ``definition`` are its fields."""
    data = bound_data(ue, ue.name() + definition)
    ue.tracefs.enable(ue.name())
    return data

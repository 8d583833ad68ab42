"""The first version of user_events.

It was sent for review and never merged.  Its cases judge no release, and no other cases judge a
kernel with it.
"""

from conformance.cases.support.status_page import StatusPage, map_page
from conformance.client.data_file import DataFile
from conformance.client.process import Process
from conformance.client.rfc_v1 import register
from conformance.client.tracefs import MMAP
from conformance.client.user_events import UserEvents

PATCH = "trace_events_user.c@rfc-v1, message of the patch"


def page_of(process: Process) -> StatusPage:
    """Map user_events_mmap for reading."""
    return map_page(process, file=MMAP)


def bound_data(ue: UserEvents, definition: str) -> DataFile:
    """Open a descriptor and bind it to the event of a definition."""
    data = ue.open_data()
    register(data, definition)
    return data


def enabled_data(ue: UserEvents, definition: str = "") -> DataFile:
    """Bind a descriptor to event ``name()`` and enable it; ``definition`` are its fields."""
    data = bound_data(ue, ue.name() + definition)
    ue.tracefs.enable(ue.name())
    return data

"""An event that is on its way out, beside one that is to stay.

Removal is work the kernel does later.  That an event *stays* is therefore shown beside a
passing one, which is let go right afterwards and must be gone before anybody looks.
"""

from __future__ import annotations

from conformance.client.process import Process
from conformance.client.user_events import UserEvents


def process_with_event(ue: UserEvents) -> Process:
    """A process with an event that goes with it; its exit takes longer than other ways.

    An exit waits for two RCU grace periods (user_event_mm_remove, then
    user_event_enabler_destroy), unregistering for one.
    """
    process = ue.new_process()
    process.open_data().register(ue.name("passing"))
    return process

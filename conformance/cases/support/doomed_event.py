"""An event that is removed, next to one that must stay.

The kernel removes events later.  To show that an event *stays*, a second event is released right
afterwards, and must be gone before the status is read.
"""

from conformance.client.process import Process
from conformance.client.user_events import UserEvents


def process_with_event(ue: UserEvents) -> Process:
    """A process with an event that is removed when the process exits.

    Removal after exit takes longest: two RCU grace periods (user_event_mm_remove, then
    user_event_enabler_destroy), after unregistering one.
    """
    process = ue.new_process()
    process.open_data().register(ue.name("passing"))
    return process


def status_after(ue: UserEvents, process: Process) -> str:
    """The own lines of user_events_status after a process has exited and left no work pending."""
    process.exit()
    return ue.tracefs.status(eventually=True)

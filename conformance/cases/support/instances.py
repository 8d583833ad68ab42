"""tracefs instances."""

from conformance.client.data_file import DataFile
from conformance.client.tracefs import Instance, Tracefs
from conformance.client.user_events import UserEvents


def create_instance(ue: UserEvents, stem: str = "i") -> Instance:
    """Create a tracefs instance."""
    instance = ue.instance(stem)
    assert instance.make().errno == ""
    return instance


def enabled_in(ue: UserEvents, fields: str, *instances: Tracefs) -> DataFile:
    """Register an event of index 0 and enable it in these instances; returns the data file."""
    event = ue.event(fields)
    for each in instances:
        each.enable(event.name)
    return event.data

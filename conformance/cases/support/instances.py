"""tracefs instances, as several files of cases make them and listen in them."""

from __future__ import annotations

from conformance.client.data_file import DataFile
from conformance.client.tracefs import Instance, Tracefs
from conformance.client.user_events import UserEvents


def made(ue: UserEvents, stem: str = "i") -> Instance:
    """An instance that is there."""
    instance = ue.instance(stem)
    assert instance.make().errno == ""
    return instance


def listening(ue: UserEvents, fields: str, *files: Tracefs) -> DataFile:
    """The data file, and an event of index 0 that is enabled: in these instances, or at the top."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    for each in files or (ue.tracefs,):
        each.enable(ue.name())
    return data

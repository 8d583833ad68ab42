"""Dated changes in listing a tracefs directory with names that a directory cannot hold."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.credentials import Directory
from conformance.client.tracefs import EVENTS
from conformance.client.user_events import UserEvents

case = surface(
    "dated",
    spec="fs/tracefs/event_inode.c",
    doc="Documentation/trace/user_events.rst@v6.12: Registering: events appear below events/ in "
    "tracefs; nothing is said of names that cannot",
)


@case(spec="eventfs_iterate; fs/readdir.c:verify_dirent_name", switch="directories_of_any_name")
def test_directories_of_any_name(ue: UserEvents) -> None:
    """An event with a slash in its name is left out of events/; later, listing fails at it."""
    ue.open_data().register(ue.name() + "/b")
    ue.new_process().open_data().register(ue.name("good"))
    directory = Directory(ue.process, EVENTS, ue.prefix)
    directory.next()
    since = ue.dated("listing_ends_with_einval", since="EINVAL", before="EIO")
    assert directory.next().errno == ue.dated("directories_of_any_name", since=since, before="")


@case(
    spec="eventfs_iterate; fs/readdir.c:filldir64",
    profiles="6.8..",
    needs="directories_of_any_name",
    switch="listing_ends_with_einval",
)
def test_listing_ends_with_einval(ue: UserEvents) -> None:
    """Listing fails at a name with a slash: EIO, and EINVAL since 7.1."""
    ue.open_data().register(ue.name() + "/")
    directory = Directory(ue.process, EVENTS, ue.prefix)
    assert directory.names() == []
    errno = ue.dated("listing_ends_with_einval", since="EINVAL", before="EIO")
    assert directory.next().errno == errno

"""Registration when all event ids are in use."""

from __future__ import annotations

from conformance.cases.case import surface
from conformance.client.tracefs import MAXIMUM
from conformance.client.user_events import UserEvents

case = surface(
    "registration",
    spec="trace_output.c",
    doc="Documentation/admin-guide/sysctl/kernel.rst@v6.12",
    profiles="6.4..",
    needs="persist lasting_events auto_delete",
    tier="full",
    isolation="fatal",
)

# Lines of dynamic_events in one write(2).
_BATCH = 300
# More than the kernel has events of its own.
_REFUSED = 1000


@case(
    spec="register_trace_event; trace_events_user.c:user_event_trace_register",
    doc="user_events_max, no other limit",
)
def test_no_id_left(ue: UserEvents) -> None:
    """All events share 65535 ids: when none is free a new event is ENODEV, and does not count."""
    data = ue.open_data()
    ue.tracefs.command("u:first\n")
    assert ue.tracefs.read(ue.tracefs.event_path("first", "id")).errno == ""
    ue.tracefs.write(MAXIMUM, "70000\n")
    # Names with a slash get no directory, and creating directories is most of the work.
    for start in range(0, 65535, _BATCH):
        # The last ones fail because the kernel's own events have ids, too.
        ue.tracefs.command("".join(f"u:/{start + each}\n" for each in range(_BATCH)))
    assert ue.tracefs.command("u:more\n").errno == "ENODEV"
    assert data.register("more u8 a").errno == "ENODEV"
    assert data.register("more long a").errno == "EINVAL"
    ue.tracefs.write(MAXIMUM, "1\n")
    assert data.register("more u8 a").errno == "EMFILE"
    ue.tracefs.write(MAXIMUM, "70000\n")
    # An existing event needs no id, and a freed id is used by the next event.
    assert data.register("first").errno == ""
    assert data.delete("/7").errno == ""
    assert data.register("more u8 a").errno == ""
    assert data.register("another u8 a").errno == "ENODEV"
    # A rejected event does not count: with its id free again an event fits below the limit.
    assert {ue.tracefs.command("u:another\n").errno for _ in range(_REFUSED)} == {"ENODEV"}
    ue.tracefs.write(MAXIMUM, "65535\n")
    assert data.delete("/8").errno == ""
    assert data.register("another u8 a").errno == ""

"""Registration when the kernel has no number left for another event."""

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
    """Events share 65535 numbers: without one left a new one is ENODEV, and does not count."""
    data = ue.open_data()
    ue.tracefs.command("u:first\n")
    assert ue.tracefs.read(ue.tracefs.event_path("first", "id")).errno == ""
    ue.tracefs.write(MAXIMUM, "70000\n")
    # Names with a slash get no directory, whose making is most of the work.
    for start in range(0, 65535, _BATCH):
        # The last ones find that the kernel's own events have numbers, too.
        ue.tracefs.command("".join(f"u:/{start + each}\n" for each in range(_BATCH)))
    assert ue.tracefs.command("u:more\n").errno == "ENODEV"
    assert data.register("more u8 a").errno == "ENODEV"
    assert data.register("more long a").errno == "EINVAL"
    ue.tracefs.write(MAXIMUM, "1\n")
    assert data.register("more u8 a").errno == "EMFILE"
    ue.tracefs.write(MAXIMUM, "70000\n")
    # What exists needs no number, and one that is free again is the next one's.
    assert data.register("first").errno == ""
    assert data.delete("/7").errno == ""
    assert data.register("more u8 a").errno == ""
    assert data.register("another u8 a").errno == "ENODEV"
    # What was refused does not count: with its number back an event is below the limit again.
    assert {ue.tracefs.command("u:another\n").errno for _ in range(_REFUSED)} == {"ENODEV"}
    ue.tracefs.write(MAXIMUM, "65535\n")
    assert data.delete("/8").errno == ""
    assert data.register("another u8 a").errno == ""

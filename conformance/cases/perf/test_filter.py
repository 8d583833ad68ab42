"""perf filters on the fields of user events."""

from __future__ import annotations

from conformance.cases.case import surface, variants
from conformance.cases.support.perf_samples import A
from conformance.client.perf import PERIOD, Wish, listen
from conformance.client.user_events import UserEvents

case = surface(
    "perf",
    spec="trace_events_filter.c:ftrace_profile_set_filter",
    doc="Documentation/trace/events.rst@v6.12: Event filtering",
    needs="perf_sink",
    facilities="perf",
)


@case(doc="field, operator, value")
@variants(
    ("equal", "a == 66", 1),
    ("unequal", "a != 66", 2),
    ("greater", "a > 65", 2),
    # The field is signed.
    ("negative", "b < 0", 1),
    ("none", "a == 0", 0),
)
def test_filter(ue: UserEvents, text: str, count: int) -> None:
    """With a numeric filter only records that match are sampled and counted."""
    data = ue.event("u32 a; s16 b").data
    event = listen(ue.process, ue.name(), Wish(sample_type=PERIOD))
    ring = event.map()
    assert event.set_filter(text).value == 0
    for payload in (b"\x41\0\0\0\0\0", b"\x42\0\0\0\xff\xff", b"\x43\0\0\0\1\0"):
        assert data.write_event(0, payload).value == 10
    assert ring.records() == ["SAMPLE misc 1 size 16 period 1"] * count
    assert event.count == count


@case(spec="trace_events_filter.c:parse_pred", doc="strings with ==, != and ~")
@variants(
    ("char", " char[4] s", [b"hi\0\0", b"ho\0\0"]),
    ("rel_loc", " __rel_loc char[] s", [b"\0\0\3\0hi\0", b"\0\0\3\0ho\0"]),
    ("data_loc", " __data_loc char[] s", [b"\x0c\0\3\0hi\0", b"\x0c\0\3\0ho\0"]),
)
def test_filter_string(ue: UserEvents, fields: str, payloads: list[bytes]) -> None:
    """Strings can be filtered since 6.4; before, no field is typed as a string: EINVAL."""
    data = ue.open_data()
    data.register(ue.name() + fields)
    event = listen(ue.process, ue.name())
    errno = ue.dated("remote_enable", since="", before="EINVAL")
    assert event.set_filter('s == "ho"').errno == errno
    for payload in payloads:
        data.write_event(0, payload)
    assert event.count == ue.dated("remote_enable", since=1, before=2)


@case(tier="full")
def test_filter_refused(ue: UserEvents) -> None:
    """A filter on an unknown field is EINVAL, one at a bad address EFAULT, a second one EEXIST."""
    data = ue.event("u32 a").data
    event = listen(ue.process, ue.name())
    assert event.set_filter("b == 1").errno == "EINVAL"
    assert event.set_filter('a == "x"').errno == "EINVAL"
    assert event.ioctl(0x40082406, 0).errno == "EFAULT"
    # The rejected filters left none behind.
    data.write_event(0, A)
    assert event.count == 1
    assert event.set_filter("a == 1").value == 0
    assert event.set_filter("a == 65").errno == "EEXIST"
    assert event.set_filter("b == 1").errno == "EEXIST"
    data.write_event(0, A)
    assert event.count == 1
